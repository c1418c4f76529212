"""A small profile folder written by hand: three programs, two compilers, names that no page may trip over."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from models.tables import TABLES

HOSTILE = "</script><script>alert('x')</script>"
FUNCTIONS = ("main", "serve", "std::map<int, char>::find", "deflate", HOSTILE, 'say("hi\\n")', "memcpy", "[unknown]")
FILES = (
    "app/main.cc",
    "app/serve.cc",
    "std/map.h",
    "../../../../etc/passwd",
    "zlib/<b>deflate</b>.c",
    "app/say.cc",
    "",
    "",
)
PATHS = ((0,), (0, 1), (0, 1, 2), (0, 1, 3), (0, 4), (0, 1, 5), (0, 1, 3, 6), (0, 1, 1, 6))
EVENTS = (("cycles", 1_000_000), ("llc_misses", 10_000), ("cpu_time", 10_000_000))
DAYS, VISITS = 4, 24
LINES = 3


def write(folder: Path, seed: int = 1) -> Path:
    """Write the tables of a profile into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(seed)
    visit = np.arange(VISITS)
    _save(
        folder,
        "visits",
        {
            "visit": visit,
            "collection": "fleet",
            "machine": visit % 7,
            "datacentre": np.where(visit % 3 == 0, "west", "east"),
            "platform": np.where(visit % 7 < 4, "old", "new"),
            "kernel": np.where(visit >= VISITS // 2, "6.6.30", "6.1.90"),
            "start_s": visit * DAYS * 86400.0 / VISITS,
            "length_s": 240.0,
            "weight": 120,
            "status": np.where(visit == 5, "failed", "ok"),
            "frequency_hz": 2.5e9,
            "power_w": 210.0,
            "overhead_cycles": 1e8,
        },
    )
    process = np.arange(3 * VISITS)
    program = process % 3
    new = process // 3 >= VISITS // 2
    build = np.where(program == 2, -1, program * 2 + new)
    names = np.array(["search", "a&b <c>", "[kernel]"])
    _save(
        folder,
        "processes",
        {
            "process": process,
            "visit": process // 3,
            "application": names[program],
            "job": np.where(program == 2, -1, program),
            "residence": np.where(program == 2, -1, process),
            "build": build,
            "stacks": program != 2,
            "threads": 8,
            "cpu_s": 100.0,
            "wall_s": 800.0,
        },
    )
    builds = np.arange(4)
    _save(
        folder,
        "builds",
        {
            "build": builds,
            "build_id": [f"{number:040x}" for number in builds],
            "image": names[builds // 2],
            "kind": "program",
            "revision": [f"r{number}" for number in builds],
            "compiler": np.where(builds % 2 == 1, "clang-18", "clang-17"),
            "builder": "release",
            "built_s": -86400.0 + builds * 43200.0,
        },
    )
    _save(
        folder,
        "rates",
        {
            "collection": "fleet",
            "platform": [platform for platform in ("old", "new") for _ in EVENTS],
            "event": [event for _ in range(2) for event, _ in EVENTS],
            "native": "native",
            "unit": "events",
            "period": [period for _ in range(2) for _, period in EVENTS],
            "duty": 6,
            "max_samples_per_s": float("nan"),
        },
    )
    locations = [(function, line) for function in range(len(FUNCTIONS)) for line in range(1, LINES + 1)]
    _save(
        folder,
        "locations",
        {
            "location": range(len(locations)),
            "build": [0 if function < 7 else -1 for function, _ in locations],
            "image": ["search" if function < 7 else "[generated]" for function, _ in locations],
            "function": [FUNCTIONS[function] for function, _ in locations],
            "file": [FILES[function] for function, _ in locations],
            "file_hash": [f"h{function}" if FILES[function] else "" for function, _ in locations],
            "function_line": [1 if function < 7 else 0 for function, _ in locations],
            "line": [line if function < 7 else 0 for function, line in locations],
            "symbolised": [function < 7 for function, _ in locations],
        },
    )
    _save(folder, "stacks", _stacks())
    _save(
        folder,
        "sources",
        {
            "file": [FILES[function] for function in range(6) for _ in range(5)],
            "file_hash": [f"h{function}" for function in range(6) for _ in range(5)],
            "line": [line for _ in range(6) for line in range(1, 6)],
            "text": [f"\tif (a < {line} && b) /* <i>&amp; */" for _ in range(6) for line in range(1, 6)],
        },
    )
    _save(folder, "samples", _samples(draws, program))
    return folder


def _stacks() -> dict[str, list[int]]:
    rows = [
        (number, depth, function * LINES)
        for number, path in enumerate(PATHS)
        for depth, function in enumerate(reversed(path))
    ]
    return dict(zip(("stack", "depth", "location"), map(list, zip(*rows, strict=True)), strict=True))


def _samples(draws: np.random.Generator, program: np.ndarray) -> pd.DataFrame:
    """Return samples: counters without stacks at any line, CPU time with stacks."""
    rows = []
    for process, kind in enumerate(program):
        for event, _ in EVENTS[:2]:
            for function in range(len(FUNCTIONS)):
                line = int(draws.integers(LINES))
                rows.append((process, event, function * LINES + line, -1, int(draws.integers(1, 60))))
        if kind != 2:
            for number, path in enumerate(PATHS):
                rows.append((process, "cpu_time", path[-1] * LINES, number, int(draws.integers(1, 30))))
    return pd.DataFrame(rows, columns=["process", "event", "location", "stack", "count"])


def _save(folder: Path, name: str, columns: object) -> None:
    frame = pd.DataFrame(columns)
    schema = pa.schema([(column.name, column.type) for column in TABLES[name]])
    pq.write_table(
        pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False), folder / f"{name}.parquet"
    )
