"""Profiles with faults at random places, for minutes: each is imported or refused with a reason.

    python -m tests.helpers.fuzzed_profiles [FILE ...] [--minutes 10] [--seed 1]

Every format in turn that needs no other program, or the files given. What can be read is imported as `wsc profile
import` does it: the totals of its tables must be those of the file, and one in 47 is opened as a database. Anything
else is a crash: it is printed, its file is kept in the working directory, and the status is 1. So is a peak beyond
500 MB.
"""

import argparse
import collections
import json
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pyarrow.parquet as pq

from analysis.profiling.database import Database
from analysis.profiling.formats.reading import read_foreign, write_profile
from analysis.profiling.query import Query
from models.errors import WscError
from tests.helpers.mutants import json_mutants, mutants
from tests.helpers.mutated_pprof import drawn_pprof, mutated

MOST_BYTES = 500_000_000
FRAME = {"functionName": "f", "url": "a.js", "lineNumber": 3}
SHARED = {"frames": [{"name": "a"}, {"name": "b", "file": "b.c", "line": 7}]}
EVENTS = [{"type": kind, "frame": int(frame), "at": at} for at, (kind, frame) in enumerate(("O0", "O1", "C1", "C0"))]
_FIREFOX = {
    "samples": {"stack": [1, 0, None], "weight": [3, 1, 1], "length": 3},
    "stackTable": {"prefix": [None, 0], "frame": [0, 1]},
    "frameTable": {"func": [0, 1]},
    "funcTable": {"name": [0, 1]},
    "stringArray": ["root", "f"],
}
_DICTIONARY = {
    "stringTable": ["", "cpu", "nanoseconds", "f", "pod", "a", "n", "ms"],
    "stackTable": [{}, {"locationIndices": [1]}],
    "locationTable": [{}, {"lines": [{"functionIndex": 1, "line": "9"}]}],
    "functionTable": [{}, {"nameStrindex": 3}],
    "attributeTable": [{}, {"keyStrindex": 4, "value": {"stringValueStrindex": 5}}],
}
_PROFILE = {
    "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
    "timeUnixNano": "1700000000000000000",
    "samples": [{"stackIndex": 1, "values": ["7"], "attributeIndices": [1]}],
}
_OTLP = {"resourceProfiles": [{"scopeProfiles": [{"profiles": [_PROFILE]}]}], "dictionary": _DICTIONARY}
_GO = (
    "heap profile: 3: 5120 [7: 600000] @ heap/1048576\n2: 4096 [4: 500000] @ 0x42 0x43\n#\t0x42\tmain.f+0x10\t/a.go:1\n"
)
_THREADS = "--- threadz 1 ---\n\n--- Thread 7f794 (name: main/1) stack: ---\n  PC:  0x50: f(arg *)\n  0x0040: main\n"
_JAVA = "--- heapz 1 ---\nformat = java\nresolution = bytes\n  7048  1 @ 0x3 0x4\n\n\n 0x3 f (S.java:3)\n 0x4 g (N)\n"
_GROWTH = (
    "heap profile: 1: 4096 [1: 4096] @ growthz\n1: 4096 [1: 4096] @ 0x10 0x20\nMAPPED_LIBRARIES:\n0-1 r-xp 0 0:0 1 /a\n"
)
_CONTENTION = (
    "--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\n 194 27 @ 0x10 0x20\n 7 1 @ 0x1\n"
)
CORPUS = {
    "folded": b'main;read 12\nmain;write 3\nmain;"req 200" 7\n',
    "perf script": b"web 12 [003] 5.25: 1000 cycles:u: \n\t 4a1 f+0x1 (/opt/a)\n\t 4b2 main (/opt/a)\n\n" * 3,
    "gperftools": struct.pack("<12Q", 0, 3, 0, 10000, 0, 2, 2, 0x401000, 0x402000, 0, 1, 0) + b"4-5 r-xp 0 8:1 1 /a\n",
    "heap of Go": _GO.encode(),
    "heap of Java": _JAVA.encode(),
    "growth": _GROWTH.encode(),
    "contention": _CONTENTION.encode(),
    "threads": _THREADS.encode(),
    "counts of Go": b"goroutine profile: total 12\n11 @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/a.go:3\n\n1 @ 0x2\n",
    "speedscope, sampled": json.dumps(
        {"profiles": [{"type": "sampled", "name": "t", "samples": [[0, 1]], "weights": [2]}], "shared": SHARED}
    ).encode(),
    "speedscope, evented": json.dumps(
        {"profiles": [{"type": "evented", "unit": "seconds", "events": EVENTS, "endValue": 3}], "shared": SHARED}
    ).encode(),
    "cpuprofile": json.dumps(
        {
            "nodes": [{"id": 1, "callFrame": FRAME, "children": [2]}, {"id": 2, "callFrame": FRAME}],
            **{"startTime": 0, "endTime": 10, "samples": [2, 1, 2], "timeDeltas": [1, 2, 3]},
        }
    ).encode(),
    "heapprofile": json.dumps(
        {
            "head": {
                "id": 1,
                "callFrame": FRAME,
                "selfSize": 0,
                "children": [{"id": 2, "callFrame": FRAME, "selfSize": 5}],
            }
        }
    ).encode(),
    "Firefox": json.dumps({"meta": {"interval": 1, "startTime": 1e12}, "threads": [{"name": "m"} | _FIREFOX]}).encode(),
    "OTLP, JSON": json.dumps(_OTLP).encode(),
    "OTLP": bytes.fromhex(
        "0a99010a2a0a150a0c736572766963652e6e616d6512050a037765620a110a09686f73742e6e616d6512040a026831126b12480a040801"
        "1002121f08011201012a1801000000000000000200000000000000030000000000000012050802220104190000"
        "2a36fe9c97172080e497d0122a04080310043080e1eb17121f0a04080310041206080122021e281900002a36fe9c97172a04"
        "08031004300a12e1010a000a0520082a010212001210080110641a04080310091a0408021008120a080110321a0408011004"
        "12040801104d1a001a060805180920031a060806180920031a0608071809200322002a002a0773616d706c65732a05636f75"
        "6e742a036370752a0b6e616e6f7365636f6e64732a046d61696e2a01662a01672a036170702a04662e676f2a0b7468726561"
        "642e6e616d652a0277312a1f70726f636573732e65786563757461626c652e6275696c645f69642e676e752a036162633200"
        "3208080a12040a0277313209080c12050a036162633a003a040a0201023a030a0103"
    ),
}


def files(given, seed):
    """Yield the name of a format and a file of it, without end; pprof is drawn anew, its own faults besides."""
    corpus = {Path(name).name: Path(name).read_bytes() for name in given} or CORPUS
    turns = {name: mutants(content, 1 << 40, f"{seed} {name}") for name, content in corpus.items()}
    structured = {name: content for name, content in corpus.items() if content.startswith(b"{")}
    turns |= {f"{name}, values": json_mutants(content, 1 << 40, f"{seed}") for name, content in structured.items()}
    rng = random.Random(seed)
    while True:
        for name, turn in turns.items():
            yield name, next(turn)
        if not given:
            content = drawn_pprof(rng)
            yield "pprof", mutated(rng, content)
            *_, mutant = mutants(content, 2, str(rng.random()))
            yield "pprof, drawn", mutant


def columns(file, *names):
    """Return the rows of some columns of a table."""
    return zip(*pq.read_table(file, columns=list(names)).to_pydict().values(), strict=True)


def imported(file, folder, *, opened):
    """Import a file; whatever is read must be in the tables."""
    profile = read_foreign(file)
    write_profile([file], folder)
    periods, stored = dict(columns(folder / "rates.parquet", "event", "period")), collections.Counter()
    for event, count in columns(folder / "samples.parquet", "event", "count"):
        stored[event] += count * periods[event]
    read = [sum(amounts) for amounts in zip(*(sample.amounts for sample in profile.samples), strict=True)]
    assert sorted(filter(None, stored.values())) == sorted(filter(None, read)), (
        f"{stored} in tables, {read} in the file"
    )
    if opened:
        with Database([folder]) as database:
            for event in database.events():
                assert database.total(Query(event=event))[0] >= 0


def main():
    """Import files until the time is up, and print how many of each format were read and refused."""
    options = argparse.ArgumentParser()
    options.add_argument("files", nargs="*", help="valid profiles to begin from; without any, one of every format")
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    tallies, crashes = collections.defaultdict(collections.Counter), 0
    end_s, slowest_s = time.monotonic() + 60 * given.minutes, collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        for number, (name, content) in enumerate(files(given.files, given.seed)):
            begin_s = time.monotonic()
            if begin_s > end_s:
                break
            file = Path(place) / "file"
            file.write_bytes(content)
            with tempfile.TemporaryDirectory(dir=place) as folder:
                try:
                    imported(file, Path(folder), opened=number % 47 == 0)
                    tallies[name]["read"] += 1
                except (WscError, OSError):
                    tallies[name]["refused"] += 1
                except Exception:
                    crashes += 1
                    Path(f"crash-{given.seed}-{number}").write_bytes(content)
                    print(f"crash-{given.seed}-{number} ({name}):\n{traceback.format_exc()}", flush=True)
            slowest_s[name] = max(slowest_s[name], time.monotonic() - begin_s)
    print(f"{'format':>28} | {'read':>7} {'refused':>7} slowest s")
    for name, tally in tallies.items():
        print(f"{name:>28} | {tally['read']:7,} {tally['refused']:7,} {slowest_s[name]:9.2f}")
    peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = sum(tally.total() for tally in tallies.values())
    print(f"{total:,} files, {crashes} crashes, at most {peak_bytes / 1e6:.0f} MB")
    return int(crashes > 0 or peak_bytes > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
