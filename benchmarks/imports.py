"""How long many pprof files take to import, beside what Go's own tool takes to read and add them up.

    python benchmarks/imports.py [--files 240] [--folder DIR]

Files like Go's CPU profiles are drawn first, of 40 to 500 KB packed: 120 to 9,000 stacks of some 18 frames each, of
3,000 functions, a third of the places with functions inlined. Each program then runs once on all files and once on one
small file, in processes of their own, and the second is taken from the first as its start. `user` are processor seconds
in user mode, which say what a program did and not how long it waited. Without Go its line is left out.
"""

import argparse
import gzip
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from analysis.profiling.formats.wire import bytes_field, number_field, packed_field

FUNCTIONS, LEAST, MOST = 3_000, 120, 9_000
PERIOD_NS = 10_000_000
PACKAGES = ("net/http", "runtime", "encoding/json", "example.com/search/index", "example.com/search/rank", "syscall")
OFFSETS = (1, 1, 1, 4, 7)
"""Lines of a function at which it was seen, counted from its first."""


def drawn(rng, program, samples):
    """Return a profile of so many stacks that differ."""
    texts, functions, locations = {"": 0}, {}, {}

    def text(name):
        return texts.setdefault(name, len(texts))

    def function(number):
        if number not in functions:
            package = PACKAGES[number % len(PACKAGES)]
            name, file = (
                text(f"{package}.(*Server{number % 40}).handle{number}"),
                text(f"/src/{package}/{number % 17}.go"),
            )
            fields = enumerate((len(functions) + 1, name, name, file, number % 1900 + 10), 1)
            functions[number] = len(functions) + 1, b"".join(number_field(key, value) for key, value in fields)
        return functions[number][0]

    def location(number, line):
        if (number, line) not in locations:
            inlined = range((number * 7 + line) % 5 // 3, -1, -1)
            lines = (
                bytes_field(4, number_field(1, function((number + by) % FUNCTIONS)) + number_field(2, line + by + 10))
                for by in inlined
            )
            place = len(locations) + 1, 1, 0x400000 + number * 512 + line * 8
            fields = b"".join(number_field(key, value) for key, value in enumerate(place, 1))
            locations[number, line] = place[0], fields + b"".join(lines)
        return locations[number, line][0]

    stacks = set()
    while len(stacks) < samples:
        at, path = rng.randrange(12), []
        for _ in range(min(60, max(3, int(rng.gauss(18, 9))))):
            path.append(location(at, rng.choice(OFFSETS)))
            at = (at * 31 + 17 * rng.choice((0, 0, 0, 1, 2, 3)) + 1) % FUNCTIONS
        stacks.add(tuple(reversed(path)))
    types = [(text("samples"), text("count")), (text("cpu"), text("nanoseconds"))]
    label = number_field(1, text("pod")) + number_field(2, text(f"web-{program}"))
    image = text(f"/usr/bin/search{program}"), text(f"{program:040x}")
    counts = [int(rng.expovariate(0.3)) + 1 for _ in stacks]
    kinds = [number_field(1, event) + number_field(2, unit) for event, unit in types]
    parts = [bytes_field(1, kind) for kind in kinds]
    for path, count in zip(sorted(stacks), counts, strict=True):
        values = packed_field(2, [count, count * PERIOD_NS])
        parts.append(bytes_field(2, packed_field(1, path) + values + bytes_field(3, label)))
    mapped = enumerate((1, 0x400000, 0x900000, 0, *image), 1)
    parts.append(bytes_field(3, b"".join(number_field(key, value) for key, value in mapped)))
    parts += [bytes_field(4, fields) for _, fields in locations.values()]
    parts += [bytes_field(5, fields) for _, fields in functions.values()]
    parts += [bytes_field(6, name.encode()) for name in texts]
    parts += [number_field(9, 1_700_000_000 * 10**9), number_field(10, 30 * 10**9)]
    return b"".join([*parts, bytes_field(11, kinds[1]), number_field(12, PERIOD_NS)])


def write_files(folder, count):
    """Write so many profiles, and return them: a small one first."""
    paths = [folder / f"p{number:04d}.pb.gz" for number in range(count + 1)]
    for number, path in enumerate(paths):
        rng = random.Random(number)
        samples = int(math.exp(rng.uniform(math.log(LEAST), math.log(MOST)))) if number else 2
        path.write_bytes(gzip.compress(drawn(rng, number % 6, samples), 6, mtime=0))
    return paths


def user_s(command):
    """Return the processor seconds in user mode of a command, and the most memory of any command so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before, after.ru_maxrss * 1024


def own(folder, paths):
    """Return the command that imports files."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "profile"
    return [sys.executable, "-m", "wsc", "profile", "import", *map(str, paths), "--out", str(out)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--files", type=int, default=240)
    arguments.add_argument("--folder", type=Path, help="take the files that are here: NAME.pb.gz, the first one small")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        paths = sorted(options.folder.glob("*.pb.gz")) if options.folder else write_files(folder, options.files)
        small, *files = paths
        packed = sum(path.stat().st_size for path in files)
        print(f"{len(files)} files of {packed / len(files) / 1e3:.0f} KB on average\n")
        user_s(own(folder, [small]))  # what is compiled is kept from here on
        start_s, _ = user_s(own(folder, [small]))
        own_s, peak = user_s(own(folder, files))
        own_s -= start_s
        print(f"{'program':>24} | {'start s':>7} {'user s':>7} {'ms a file':>9}")
        of_file_ms = own_s / len(files) * 1e3
        print(f"{'wsc profile import':>24} | {start_s:7.2f} {own_s:7.2f} {of_file_ms:9.1f}  {peak / 1e6:.0f} MB")
        if shutil.which("go"):
            os.environ["PPROF_TMPDIR"] = scratch
            go = ["go", "tool", "pprof", "-symbolize=none", "-top"]
            go_start_s, _ = user_s([*go, str(small)])
            go_s = user_s([*go, *map(str, files)])[0] - go_start_s
            print(f"{'go tool pprof -top':>24} | {go_start_s:7.2f} {go_s:7.2f} {go_s / len(files) * 1e3:9.1f}")
            print(f"\nthe import takes {own_s / go_s:.2f} times as long as go tool pprof")


if __name__ == "__main__":
    main()
