"""How long a profile database takes over a hundred million samples: every kind of query, cold and repeated.

    python benchmarks/profiles.py [--rows 100000000] [--pandas 5000000] [--folder DIR] [--single]

A profile folder is made first, in a few minutes: 2,000 machines visited 20,000 times in 14 days, 300,000 processes of
400 programs with 600 places each, on three platforms; half of the samples are of cycles, 15% of CPU time with stacks.
With ``--single`` all are cycles, the worst case. ``--folder`` keeps the folder, or takes one that is there.

- cold: wall seconds of a new process from start to exit, Python and imports included, and the most memory that it held;
  `cpu` is its processor seconds on all cores, which do not depend on what else runs; `query` is the part after the
  imports: opening the profile, checking it, asking.
- repeated: milliseconds of the same question to a database that has answered it.
- commands and pages: `wsc profile …`, and pages and files of `wsc serve`, each in a process of its own; what a command
  refuses is told.
- pandas: the question `function` on the first rows of the same tables by `read_parquet`, `merge` and `groupby`, in a
  process of its own, beside the database on the same rows; `times` is how many times longer and larger it is.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.profiling.storage import write_samples
from models.tables import SCHEMAS
from sim.recorder import write_table

MACHINES, VISITS, DAYS = 2_000, 20_000, 14
PROCESSES, PROGRAMS, LINES = 300_000, 400, 8
PER_PROGRAM = 75 * LINES
LOCATIONS = PROGRAMS * PER_PROGRAM
DEPTH, PATHS = 8, 3
PLATFORMS, CENTRES = ("haswell", "skylake", "rome"), ("east", "west")
COUNTED = ("instructions", "l1_misses", "l2_misses", "llc_misses", "mispredictions")
SHARES = {"cpu_time": 0.15, "cycles": 0.5, **dict.fromkeys(COUNTED, 0.07)}
CHUNK = 1_000_000
PANDAS = 5_000_000
CHILD = """
import json, resource, sys, time
from pathlib import Path
start = time.perf_counter()
from analysis.profiling.database import Database
from analysis.profiling.query import Query
folder, kind, asked, top = json.loads(sys.argv[1])
asked = Query(**{key: tuple(map(tuple, value)) if key == "where" else value for key, value in asked.items()})
imported = time.perf_counter()
with Database([Path(folder)]) as database:
    ask = getattr(database, kind)
    ask_it = lambda: ask(asked) if top is None else ask(asked, top)
    answer = ask_it()
    done = time.perf_counter()
    ask_it()
    again = time.perf_counter()
    rows = len(answer)
peak = 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([done - imported, again - done, peak, rows, used.ru_utime + used.ru_stime]))
"""
COMMAND_CHILD = """
import contextlib, io, json, resource, sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
folder, words = json.loads(sys.argv[1])
refused = 0
with contextlib.redirect_stdout(io.StringIO()):
    if words[0].startswith("/"):
        from scenarios.web.application import DATA, FILES, PAGES
        from scenarios.web.site import ProfileSite
        url, site = urlsplit(words[0]), ProfileSite(Path(folder))
        answer = {**PAGES, **DATA, **FILES}[url.path](site, parse_qsl(url.query))
        if url.path in PAGES:
            site.render(answer)
    else:
        from scenarios.commands.entry import main
        sys.argv = ["wsc", "profile", *words]
        try:
            main()
        except SystemExit as ended:
            refused = int(ended.code or 0)
peak = 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, peak, refused]))
"""
PANDAS_CHILD = """
import json, sys, time
import pandas as pd
folder = sys.argv[1]
start = time.perf_counter()
read = lambda name, *columns: pd.read_parquet(f"{folder}/{name}.parquet", columns=list(columns) or None)
rows = read("samples")
rows = rows[rows["event"] == "cycles"]
visits = read("visits", "visit", "collection", "platform", "weight").merge(read("rates").query("event == 'cycles'"))
rows = rows.merge(read("processes", "process", "visit").merge(visits, on="visit"), on="process")
rows = rows.merge(read("locations", "location", "function"), on="location")
rows["value"] = rows["count"] * rows["period"] * rows["duty"] * rows["weight"]
table = rows.groupby("function")["value"].sum().sort_values(ascending=False)
seconds = time.perf_counter() - start
peak = 1024 * int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
print(json.dumps([seconds, peak, int(table.sum())]))
"""
QUESTIONS = {
    "function": ("query", {"by": ["function"]}, 20),
    "function, all rows": ("query", {"by": ["function"]}, None),
    "function x job x platform": ("query", {"by": ["function", "application", "platform"]}, 20),
    "job x revision x compiler": ("query", {"by": ["application", "revision", "compiler"]}, None),
    "image x day": ("query", {"by": ["image", "day"]}, None),
    "machine": ("query", {"by": ["machine"]}, None),
    "file x line of a job": (
        "query",
        {"by": ["file", "file_hash", "line"], "where": [["application", ["job7"]]]},
        None,
    ),
    "job of a function": ("query", {"by": ["application"], "where": [["function", ["libz_3"]]]}, None),
    "two days, one platform": (
        "query",
        {"by": ["function"], "where": [["platform", ["rome"]]], "since_s": 172800.0, "until_s": 345600.0},
        20,
    ),
    "all locations' dimensions": (
        "query",
        {"by": ["function", "image", "file", "file_hash", "line", "symbolised"]},
        20,
    ),
    "function x machine": ("query", {"by": ["function", "machine"]}, 20),
    "job x machine, clustered": ("clustered", {"by": ["application"]}, None),
    "total": ("total", {}, None),
    "stacks": ("stacks", {"event": "cpu_time"}, 1000),
    "inclusive": ("inclusive", {"event": "cpu_time"}, None),
    "edges": ("edges", {"event": "cpu_time"}, 150),
}

SECOND_WEEK = ",".join(map(str, range(DAYS // 2, DAYS)))
FIRST_WEEK = ",".join(map(str, range(DAYS // 2)))
COMMANDS = (
    ("regress", "@", "--at", f"{DAYS // 2}d"),
    ("watch", "@"),
    ("watch", "@", "--event", "cpu_time"),
    ("query", "@"),
    ("query", "@", "--by", "function,machine"),
    ("query", "@", "--cumulative", "--by", "machine"),
    ("query", "@", "--callers", "libz_3", "--by", "machine"),
    ("diff", "@", "@", "--where-a", f"day={FIRST_WEEK}", "--where-b", f"day={SECOND_WEEK}"),
    ("diff", "@", "@", "--where-a", "day=0", "--where-b", f"day={DAYS // 2}"),
    *(("ask", "@", name) for name in ("shared", "savings", "deprecated", "fdo", "versions", "colocate")),
    *(
        ("export", "@", "--format", form, "--event", "cpu_time", "--out", os.devnull + f".{form}")
        for form in ("pprof", "folded", "speedscope")
    ),
    ("export", "@", "--format", "pprof", "--event", "cycles", "--out", os.devnull + ".pprof"),
)
"""Words after `wsc profile`, @ for the folder."""
PAGES = (
    *("/", "/query", "/diff", "/flame", "/flamediff", "/callgraph", "/rollouts", "/stability"),
    *("/query.csv?by=function", "/profile.speedscope.json", "/flame.json", "/flamediff.json"),
)


def small_tables(seed):
    """Return every table of the synthetic profile but its samples."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(PROCESSES)
    visit = np.arange(VISITS)
    place = np.arange(LOCATIONS)
    program, function = place // PER_PROGRAM, place % PER_PROGRAM // LINES
    shared = function < 25
    platform = np.asarray(PLATFORMS)[rng.integers(0, len(PLATFORMS), MACHINES)]
    machine = rng.integers(0, MACHINES, VISITS)
    stack = np.arange(LOCATIONS * PATHS)
    depth = np.arange(DEPTH)
    up = program[stack // PATHS, None] * PER_PROGRAM + rng.integers(0, PER_PROGRAM, (len(stack), DEPTH))
    up[:, 0] = stack // PATHS
    build = np.arange(2 * PROGRAMS)
    return {
        "visits": {
            "visit": visit,
            "collection": ["fleet"] * VISITS,
            "machine": machine,
            "datacentre": np.asarray(CENTRES)[machine % 2],
            "platform": platform[machine],
            "kernel": np.asarray(["6.1.90", "6.6.30"])[(machine % 5 < visit // 4000).astype(int)],
            "start_s": visit * (DAYS * 86400.0 / VISITS),
            "length_s": np.full(VISITS, 300.0),
            "weight": np.full(VISITS, 1200),
            "status": ["ok"] * VISITS,
            "frequency_hz": np.full(VISITS, 2e9),
            "power_w": np.full(VISITS, 300.0),
            "overhead_cycles": np.zeros(VISITS),
        },
        "processes": {
            "process": numbers,
            "visit": numbers * VISITS // PROCESSES,
            "application": np.char.add("job", (numbers * 7919 % PROGRAMS).astype(str)),
            "job": numbers * 7919 % PROGRAMS,
            "residence": numbers,
            "build": numbers * 7919 % PROGRAMS * 2 + (numbers > PROCESSES // 2),
            "stacks": np.ones(PROCESSES, dtype=bool),
            "threads": np.full(PROCESSES, 8),
            "cpu_s": np.full(PROCESSES, 100.0),
            "wall_s": np.full(PROCESSES, 300.0),
        },
        "builds": {
            "build": build,
            "build_id": [f"{number * 2654435761 % 2**32:08x}" for number in build],
            "image": np.char.add("job", (build // 2).astype(str)),
            "kind": ["program"] * len(build),
            "revision": np.char.add("r", (1000 + build % 2 * 13).astype(str)),
            "compiler": np.asarray(["clang-17", "clang-18"])[build % 2 * (build // 2 % 2)],
            "builder": ["forge"] * len(build),
            "built_s": np.zeros(len(build)),
        },
        "rates": {
            "collection": ["fleet"] * len(SHARES) * 3,
            "platform": np.repeat(PLATFORMS, len(SHARES)),
            "event": list(SHARES) * 3,
            "native": list(SHARES) * 3,
            "unit": ["events"] * len(SHARES) * 3,
            "period": np.repeat([2_000_003, 2_500_009, 3_000_017], len(SHARES)),
            "duty": [8] * len(SHARES) * 3,
            "max_samples_per_s": [100.0] * len(SHARES) * 3,
        },
        "locations": {
            "location": place,
            "build": program * 2,
            "image": np.where(shared, "libz", np.char.add("job", program.astype(str))),
            "function": np.where(
                shared,
                np.char.add("libz_", function.astype(str)),
                np.char.add(np.char.add("job", program.astype(str)), np.char.add("::run_", function.astype(str))),
            ),
            "file": np.where(shared, "libz.cc", np.char.add(np.char.add("job", program.astype(str)), ".cc")),
            "file_hash": np.char.mod("%08x", program * 977 % 2**31),
            "function_line": function * 20 + 1,
            "line": function * 20 + 1 + place % LINES,
            "symbolised": np.ones(LOCATIONS, dtype=bool),
        },
        "stacks": {"stack": np.repeat(stack, DEPTH), "depth": np.tile(depth, len(stack)), "location": up.ravel()},
    }


def samples(rows, seed, shares):
    """Yield tables of samples sorted by event, process and location."""
    rng = np.random.default_rng(seed)
    whole = SCHEMAS["samples"]
    for event, share in sorted(shares.items()):
        each = max(1, round(rows * share / PROCESSES))
        step = max(1, CHUNK // each)
        for first in range(0, PROCESSES, step):
            process = np.arange(first, min(PROCESSES, first + step))
            gaps = rng.geometric(min(0.95, each / PER_PROGRAM * 1.2), (len(process), each))
            within = np.minimum(np.cumsum(gaps, axis=1), PER_PROGRAM) - 1
            place = (process * 7919 % PROGRAMS)[:, None] * PER_PROGRAM + within
            stacked = event == "cpu_time"
            stack = place * PATHS + rng.integers(0, PATHS, place.shape) if stacked else np.full(place.shape, -1)
            names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(place.size, np.int32)), pa.array([event]))
            yield pa.table(
                {
                    "process": np.repeat(process, each).astype(np.int32),
                    "event": names.cast(pa.string()),
                    "location": place.ravel().astype(np.int32),
                    "stack": stack.ravel().astype(np.int32),
                    "count": rng.geometric(0.5, place.size),
                },
                schema=whole,
            )


def synthesise(folder, rows, seed=0, shares=SHARES):
    """Write a profile folder with about so many rows of samples, streaming, and return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in small_tables(seed).items():
        write_table(folder, name, columns)
    return write_samples(folder / "samples.parquet", samples(rows, seed, shares))


def child(code, argument):
    """Return what a new process says, and its wall seconds from start to exit."""
    start = time.perf_counter()
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_CLOSE, reader)]
    spawned = os.posix_spawn(sys.executable, [sys.executable, "-c", code, argument], os.environ, file_actions=actions)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    _, status = os.waitpid(spawned, 0)
    if status:
        raise SystemExit(f"a process failed: {argument}")
    return json.loads(text.splitlines()[-1]), time.perf_counter() - start


def ask(folder, name):
    """Print a question's line and return its cold seconds, repeated seconds and bytes of memory."""
    kind, asked, top = QUESTIONS[name]
    (query_s, again_s, peak, rows, cpu_s), cold_s = child(CHILD, json.dumps([str(folder), kind, asked, top]))
    print(
        f"{name:>28} | {cold_s:6.2f} {cpu_s:6.2f} {query_s:7.2f} {again_s * 1e3:9.2f} {peak / 1e6:8.0f} {rows:9,}",
        flush=True,
    )
    return cold_s, again_s, peak


def of_command(folder, words):
    """Print a command's or page's line and return its processor seconds and bytes of memory."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"@": str(folder)}
        own = [places.get(word, word.replace(os.devnull, f"{scratch}/out")) for word in words]
        (cpu_s, peak, refused), _ = child(COMMAND_CHILD, json.dumps([str(folder), own]))
    name = " ".join(word for word in words if word != "@" and os.devnull not in word and word != "--out")
    print(f"{name:>60} | {cpu_s:6.2f} {peak / 1e6:8.0f}{'  refused' * bool(refused)}", flush=True)
    return cpu_s, peak


def beside_pandas(folder, rows):
    """Print how pandas and the database answer one question on the first rows of the cycles."""
    with tempfile.TemporaryDirectory() as made:
        part = Path(made) / "part"
        synthesise(part, rows, shares={"cycles": 1.0})
        (seconds, peak, total), wall_s = child(PANDAS_CHILD, str(part))
        kind, asked, top = QUESTIONS["function, all rows"]
        (_, _, own_peak, *_), own_s = child(CHILD, json.dumps([str(part), kind, asked, top]))
        held = pq.read_metadata(part / "samples.parquet").num_rows
    print(f"\n{held:,} rows of cycles by function: pandas {wall_s:.2f} s and {peak / 1e6:.0f} MB,")
    print(f"database {own_s:.2f} s and {own_peak / 1e6:.0f} MB: times {wall_s / own_s:.1f} and {peak / own_peak:.1f}")
    return seconds, total


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--rows", type=lambda text: int(float(text)), default=100_000_000)
    arguments.add_argument("--pandas", type=lambda text: int(float(text)), default=PANDAS, help="rows; 0: not at all")
    arguments.add_argument("--folder", type=Path, help="keep the profile here, or take the one that is here")
    arguments.add_argument("--single", action="store_true", help="every sample is of cycles")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "profile"
        if not (folder / "samples.parquet").is_file():
            start = time.perf_counter()
            synthesise(folder, asked.rows, shares={"cycles": 1.0} if asked.single else SHARES)
            print(f"written in {time.perf_counter() - start:.0f} s")
        rows = pq.read_metadata(folder / "samples.parquet").num_rows
        written = (folder / "samples.parquet").stat().st_size
        everything = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        print(f"{rows:,} rows of samples, {written / rows:.2f} bytes each; with all tables {everything / rows:.2f}\n")
        print(
            f"{'question':>28} | {'cold s':>6} {'cpu s':>6} {'query s':>7} {'again ms':>9} {'peak MB':>8} {'rows':>9}"
        )
        kinds = [name for name in QUESTIONS if not (asked.single and QUESTIONS[name][1].get("event"))]
        worst = np.max([ask(folder, name) for name in kinds], axis=0)
        print(f"worst: {worst[0]:.2f} s cold, {worst[1] * 1e3:.2f} ms repeated, {worst[2] / 1e6:.0f} MB")
        if not asked.single:
            print(f"\n{'command or page':>60} | {'cpu s':>6} {'peak MB':>8}")
            for words in (*COMMANDS, *((page,) for page in PAGES)):
                of_command(folder, words)
        if asked.pandas:
            beside_pandas(folder, asked.pandas)


if __name__ == "__main__":
    main()
