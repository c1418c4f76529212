"""Exports read by other tools, and their files read here, with equal totals: run with RUN EVENT, or with neither.

Needs npm and PyPI, which give the readers of package.json and requirements.txt; llvm-profdata where it is installed.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from analysis.profiling.database import Database
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.query import Query
from scenarios.profiling.files import ExportSelection, export, import_files
from tests.helpers.foreign_profiles import profile_of

HERE = Path(__file__).parent


def ran(*words, folder):
    """What a command prints; one that fails ends everything."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def small_run(folder):
    """A profile directory with random call paths through two images."""
    dice = random.Random(1)
    frames = [Frame(f"f{n}(int, a::b)", f"image{n % 2}", f"{n % 2:04x}", f"{n}.cc", 10, 10 + n % 7) for n in range(40)]
    stacks = [(tuple(dice.choices(frames, k=dice.randint(1, 9))), (10 * dice.randint(1, 99),)) for _ in range(500)]
    (folder / "small.pb.gz").write_bytes(write_pprof(profile_of([Measure("cycles", "events", 10)], stacks)))
    import_files([folder / "small.pb.gz"], folder / "small")
    return folder / "small"


class Readers:
    """Other tools, installed into a folder."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("package.json", "package-lock.json", "totals.mjs"):
            shutil.copy(HERE / name, folder)
        ran("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)
        venv.create(folder / "python")
        self.python = folder / "python" / "bin" / "python"
        pip = (sys.executable, "-m", "pip", "--python", self.python)
        ran(*pip, "install", "-q", "-r", HERE / "requirements.txt", folder=folder)

    def pprof_format(self, mode, file):
        """Event to its total and its functions' own, as pprof-format reads it."""
        found = json.loads(ran("node", "totals.mjs", mode, file, folder=self.folder))[str(file)]
        return {each["event"]: (int(each["total"]), each["functions"]) for each in found}

    def flamegraph_textual(self, file):
        """Totals of all measures, as flamegraph-textual reads them."""
        found = json.loads(ran(self.python, HERE / "totals.py", file, folder=self.folder))[str(file)]
        return [int(total) for total in found]


def equal(what, found, expected):
    """Say that two things are equal, or end everything."""
    if found != expected:
        sys.exit(f"{what}: got {found}, expected {expected}")
    print(f"{what}: equal")


def check_exports(run, event, readers, folder):
    """Files that are exported, read by others."""
    with Database([run]) as database:
        samples, value = database.total(Query(event))
        own = dict(database.query(Query(event, ("function",)))[["function", "value"]].itertuples(index=False))
        image = str(database.query(Query(event, ("image",)), 1)["image"][0])
        restricted = Query(event, where=(("image", (image,)),))
        known = Query(event, where=(*restricted.where, ("symbolised", ("true",))))
        within = database.total(known)[1]
    pprof, folded, llvm = (folder / f"out.{suffix}" for suffix in ("pb.gz", "folded", "prof"))
    export([run], "pprof", pprof, ExportSelection(event, weighted=True))
    seen = readers.pprof_format("read", pprof)
    equal("pprof by pprof-format", {key: total for key, (total, _) in seen.items()}, {"samples": samples, event: value})
    equal("own values of functions", {key: int(each) for key, each in seen[event][1].items()}, own)
    equal("pprof by flamegraph-textual", readers.flamegraph_textual(pprof), [samples, value])
    export([run], "folded", folded, ExportSelection(event))
    equal("folded stacks by flamegraph-textual", readers.flamegraph_textual(folded), [samples])
    export([run], "llvm", llvm, ExportSelection(event, (f"image={image}",), weighted=True))
    if shutil.which("llvm-profdata"):
        again = ran("llvm-profdata", "merge", "--sample", "--text", llvm, "-o", "-", folder=folder)
        heads = [line.rsplit(":", 2) for line in again.splitlines() if line and not line.startswith(" ")]
        equal("sample profile by llvm-profdata", sum(int(total) for _, total, _ in heads), within)
    else:
        print("llvm-profdata is not installed: the sample profile is not checked")


def check_imports(readers, folder):
    """A file that another tool wrote, read here."""
    file = folder / "theirs.pb.gz"
    expected = {event: total for event, (total, _) in readers.pprof_format("write", file).items()}
    totals = import_files([file], folder / "theirs").totals
    equal("import of what pprof-format wrote", {total.event: total.value for total in totals}, expected)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("run", type=Path, nargs="?", help="a run directory with profiles")
    arguments.add_argument("event", nargs="?", help="one of its events, given with RUN")
    options = arguments.parse_args()
    if options.run and not options.event:
        arguments.error("RUN needs EVENT")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readers = Readers(folder)
        run, event = (options.run, options.event) if options.run else (small_run(folder), "cycles")
        check_exports(run, event, readers, folder)
        check_imports(readers, folder)


if __name__ == "__main__":
    main()
