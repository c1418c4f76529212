"""Small random profiles for tests: tables as data frames, and a folder of them."""

import numpy as np
import pandas as pd

from models.tables import SCHEMAS
from sim.recorder import write_table

EVENTS = ("cycles", "instructions", "cpu_time")
SMALL_TABLES = ("visits", "processes", "builds", "rates", "samples", "locations", "stacks")


def random_tables(seed, rows=60, visits=5, processes=9, locations=12):
    """Return the seven tables of a profile, drawn at random."""
    rng = np.random.default_rng(seed)
    stacks = 7
    builds = 4

    def pick(values, size):
        return [values[index] for index in rng.integers(0, len(values), size)]

    tables = {
        "visits": {
            "visit": range(visits),
            "collection": pick(["fleet", "watch"], visits),
            "machine": rng.integers(0, 3, visits),
            "datacentre": pick(["east", "west"], visits),
            "platform": pick(["haswell", "rome"], visits),
            "kernel": pick(["6.1", "6.6"], visits),
            "start_s": np.sort(rng.uniform(0, 4 * 86400, visits)),
            "length_s": 300.0,
            "weight": rng.integers(1, 5, visits) * 12,
            "status": "ok",
            "frequency_hz": 2e9,
            "power_w": np.nan,
            "overhead_cycles": 0.0,
        },
        "processes": {
            "process": range(processes),
            "visit": rng.integers(0, visits, processes),
            "application": pick(["search", "mail", "[kernel]"], processes),
            "job": 0,
            "residence": -1,
            "build": rng.integers(-1, builds, processes),
            "stacks": True,
            "threads": 4,
            "cpu_s": 1.0,
            "wall_s": 2.0,
        },
        "builds": {
            "build": range(builds),
            "build_id": [f"{number:08x}" for number in range(builds)],
            "image": ["search", "search", "mail", "libz"],
            "kind": "program",
            "revision": ["r1", "r2", "r1", "r9"],
            "compiler": pick(["clang-17", "clang-18"], builds),
            "builder": "forge",
            "built_s": 0.0,
        },
        "rates": pd.DataFrame(
            [
                (collection, platform, event, event, "events", int(period), int(duty), 25.0)
                for (collection, platform, event), period, duty in zip(
                    [(c, p, e) for c in ("fleet", "watch") for p in ("haswell", "rome") for e in EVENTS],
                    rng.integers(1000, 2_000_003, 12),
                    rng.integers(1, 9, 12),
                    strict=True,
                )
            ],
            columns=SCHEMAS["rates"].names,
        ),
        "samples": {
            "process": rng.integers(0, processes, rows),
            "event": pick(EVENTS, rows),
            "location": rng.integers(0, locations, rows),
            "stack": -1,
            "count": rng.integers(0, 6, rows),
        },
        "locations": {
            "location": range(locations),
            "build": rng.integers(-1, builds, locations),
            "image": pick(["search", "libz", "vmlinux"], locations),
            "function": pick(["main", "deflate", "parse<int, int>", "[unknown]", "größe"], locations),
            "file": pick(["a.cc", "b.cc", ""], locations),
            "file_hash": pick(["1f", "2e"], locations),
            "function_line": 1,
            "line": rng.integers(0, 4, locations),
            "symbolised": pick([True, False], locations),
        },
    }
    frames = {name: pd.DataFrame(columns) for name, columns in tables.items()}
    depths = rng.integers(1, 5, stacks)
    frames["stacks"] = pd.DataFrame(
        {
            "stack": np.repeat(np.arange(stacks), depths),
            "depth": np.concatenate([np.arange(depth) for depth in depths]),
            "location": rng.integers(0, locations, depths.sum()),
        }
    )
    _give_stacks(frames, rng.integers(0, stacks, rows))
    return frames


def _give_stacks(frames, stack):
    """Give each sample of CPU time a stack that begins where the sample is."""
    leaf = frames["stacks"].query("depth == 0").set_index("stack")["location"]
    samples = frames["samples"]
    timed = (samples["event"] == "cpu_time").to_numpy()
    samples.loc[timed, "stack"] = stack[timed]
    samples.loc[timed, "location"] = leaf.loc[stack[timed]].to_numpy()


def write_folder(folder, tables):
    """Write a profile's tables into a new folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        write_table(folder, name, frame)
    return folder


def long_form(tables):
    """Return every sample with all its dimensions and its value as a Python integer, by plain pandas merges."""
    days = (tables["visits"]["start_s"] // 86400).astype(int)
    visits = tables["visits"].assign(day=days, date="[none]")
    builds = tables["builds"][["build", "build_id", "revision", "compiler", "builder"]]
    processes = tables["processes"][["process", "visit", "application", "build"]]
    processes = (
        processes.merge(builds, on="build", how="left").drop(columns="build").rename(columns={"build_id": "build"})
    )
    tags = ["build", "revision", "compiler", "builder"]
    processes[tags] = processes[tags].fillna("[none]")
    rows = tables["samples"].merge(processes, on="process").merge(visits, on="visit")
    rows = rows.merge(tables["locations"].drop(columns="build"), on="location")
    rows = rows.merge(tables["rates"], on=["collection", "platform", "event"])
    scale = [int(p) * int(d) * int(w) for p, d, w in zip(rows["period"], rows["duty"], rows["weight"], strict=True)]
    rows["value"] = pd.Series([int(c) * s for c, s in zip(rows["count"], scale, strict=True)], dtype=object)
    return rows
