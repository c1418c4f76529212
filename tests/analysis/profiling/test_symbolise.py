"""Symbolisation against a twin that writes every address of every symbol into a dictionary."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.profiling.symbolise import Repository, SymboliseError, Symboliser, symbolised
from models import tables

IMAGES = ["search", "libz", "kernel"]
EVENTS = ["cycles", "cpu_time"]


def profile(seed, samples=4000, stacks=60):
    """Return random tables: builds with gaps between symbols, the last one without symbols."""
    rng = np.random.default_rng(seed)
    symbols, functions = [], 0
    for build in (1, 0):
        at = 64
        for _ in range(12):
            at += int(rng.integers(0, 9))
            begin, functions = at, functions + 1
            for line in range(int(rng.integers(1, 4))):
                end = at + int(rng.integers(1, 7))
                row = (build, at, end, f"f{functions}", begin, f"{build}.cc", f"hash{build}", 10 * functions, line)
                symbols.append(row)
                at = end
    names = [column.name for column in tables.TABLES["symbols"]]
    order = rng.permutation(len(symbols))
    place = {"build": rng.integers(-1, 3, samples), "address": rng.integers(40, 200, samples)}
    stack = rng.integers(-1, stacks, samples)
    raw = {
        "process": np.sort(rng.integers(0, 30, samples)),
        "event": rng.choice(EVENTS, samples).tolist(),
        **place,
        "stack": stack,
        "count": rng.integers(1, 2**40, samples),
    }
    depth = [np.arange(int(rng.integers(1, 4))) for _ in range(stacks)]
    frames = sum(part.size for part in depth)
    callers = {
        "stack": np.repeat(np.arange(stacks), [part.size for part in depth]),
        "depth": np.concatenate(depth),
        "build": rng.integers(-1, 3, frames),
        "address": rng.integers(60, 72, frames),
    }
    made = {
        "symbols": dict(zip(names, zip(*[symbols[i] for i in order], strict=True), strict=True)),
        "builds": {
            **{column.name: [""] * 3 for column in tables.TABLES["builds"]},
            "build": [0, 1, 2],
            "image": IMAGES,
            "built_s": [0.0] * 3,
        },
        "raw_samples": raw,
        "raw_stacks": callers,
    }
    return {name: pa.table({k: pa.array(v) for k, v in made[name].items()}).cast(tables.SCHEMAS[name]) for name in made}


def twin(made):
    """Return samples by what their addresses mean, and how often, in plain Python."""
    meaning = {}
    for s in made["symbols"].to_pylist():
        for address in range(s["start"], s["end"]):
            image = IMAGES[s["build"]]
            meaning[s["build"], address] = (
                image,
                s["function"],
                s["file"],
                s["file_hash"],
                s["function_line"],
                s["line"],
            )

    def of(row):
        image = IMAGES[row["build"]] if row["build"] >= 0 else "[generated]"
        return meaning.get((row["build"], row["address"]), (image, "[unknown]", "", "", 0, 0))

    paths = {}
    for row in sorted(made["raw_stacks"].to_pylist(), key=lambda row: (row["stack"], row["depth"])):
        paths.setdefault(row["stack"], []).append(of(row))
    total = Counter()
    for row in made["raw_samples"].to_pylist():
        total[row["process"], row["event"], of(row), tuple(paths.get(row["stack"], ()))] += row["count"]
    return total


def read(parts):
    """Return the same from the tables that symbolisation gives."""
    frames = {}
    for name, columns in parts:
        frames.setdefault(name, []).append(pd.DataFrame({k: pa.array(v).to_pandas() for k, v in columns.items()}))
    samples, locations, stacks = (pd.concat(frames[name]) for name in ("samples", "locations", "stacks"))
    words = ["image", "function", "file", "file_hash", "function_line", "line"]
    assert locations.location.tolist() == list(range(len(locations)))
    assert (locations.symbolised == (locations.function != "[unknown]")).all()
    places = [tuple(row) for row in locations[words].itertuples(index=False)]
    assert len(set(places)) == len(places)
    paths = {}
    for row in stacks.sort_values(["stack", "depth"]).itertuples():
        paths.setdefault(row.stack, []).append(places[row.location])
    assert len({tuple(path) for path in paths.values()}) == len(paths)
    total = {}
    for row in samples.itertuples():
        key = row.process, str(row.event), places[row.location], tuple(paths.get(row.stack, ()))
        assert key not in total
        total[key] = row.count
    return total


@pytest.mark.parametrize("seed", range(5))
def test_every_address_means_what_the_dictionary_says(seed, tmp_path):
    made = profile(seed)
    for name, table in made.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert read(symbolised(tmp_path)) == twin(made)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rows", [37, 1000])
def test_neither_workers_nor_cuts_between_processes_change_the_meaning(workers, rows):
    made = profile(7)
    symboliser = Symboliser(Repository.of(made["symbols"], made["builds"]), made["raw_stacks"])
    process = made["raw_samples"]["process"].to_numpy()
    cuts = np.append(np.flatnonzero(np.diff(process, prepend=-1)), process.size)
    cuts = [*cuts[:: max(1, rows // 134)].tolist(), process.size]
    batches = [made["raw_samples"].slice(a, b - a).combine_chunks() for a, b in pairwise(cuts)]
    parts = [("samples", part) for part in symboliser.samples([b.to_batches()[0] for b in batches if len(b)], workers)]
    assert read([*parts, ("locations", symboliser.locations()), ("stacks", symboliser.stacks())]) == twin(made)


def test_tables_are_the_same_for_any_number_of_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.profiling.symbolise.BATCH_ROWS", 500)
    for name, table in profile(9).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    one, four = (
        [(n, {k: pa.array(v).to_pylist() for k, v in c.items()}) for n, c in symbolised(tmp_path, w)] for w in (1, 4)
    )
    assert one == four
    assert sum(name == "samples" for name, _ in one) > 3


def test_totals_by_event_stay_what_they_were(tmp_path):
    made = profile(11)
    for name, table in made.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    before = made["raw_samples"].to_pandas().groupby("event")["count"].sum().to_dict()
    after = Counter()
    for name, columns in symbolised(tmp_path):
        if name == "samples":
            for event, count in zip(columns["event"].to_pylist(), columns["count"].tolist(), strict=True):
                after[event] += count
    assert dict(after) == before


def test_no_samples_no_symbols_no_trouble(tmp_path):
    made = profile(1)
    for name in ("raw_samples", "raw_stacks", "symbols"):
        made[name] = made[name].slice(0, 0)
    for name, table in made.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert read([("samples", pd.DataFrame(columns=["process"])), *symbolised(tmp_path)]) == {}


def test_without_symbols_everything_stays_visible_as_unknown(tmp_path):
    made = profile(2)
    made["symbols"] = made["symbols"].slice(0, 0)
    for name, table in made.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert read(symbolised(tmp_path)) == twin(made)


def test_two_lines_of_a_function_by_hand():
    symbols = {
        "build": [0, 0], "start": [4096, 4100], "end": [4100, 4104], "function": ["main"] * 2,
        "function_start": [4096] * 2, "file": ["main.cc"] * 2, "file_hash": ["a1"] * 2, "function_line": [10] * 2,
        "line": [11, 12],
    }  # fmt: skip
    repository = Repository.of(pa.table(symbols), pa.table({"build": [0, 1], "image": ["search", "libz"]}))
    codes = repository.look_up(np.array([0, 0, 1, -1]), np.array([4100, 4096, 4096, 77]))
    assert codes.tolist() == [1, 0, 4, 2]
    symboliser = Symboliser(repository, pa.table({name: [] for name in ("stack", "depth", "build", "address")}))
    columns = {"process": [0, 0], "event": ["cycles"] * 2, "build": [0, 0], "address": [4096, 4097]}
    (merged,) = symboliser.samples([pa.record_batch({**columns, "stack": [-1, -1], "count": [1, 2]})])
    assert merged["count"].tolist() == [3]
    assert symboliser.locations()["function"].to_pylist() == ["main"]


def test_faults_are_told():
    made = profile(3)
    symbols, builds = made["symbols"], made["builds"]
    first = symbols.sort_by([("build", "ascending"), ("start", "ascending")]).slice(0, 1).to_pylist()[0]
    odd = pa.Table.from_pylist([{**first, "start": first["start"] - 1}], schema=symbols.schema)
    with pytest.raises(SymboliseError, match="1 overlap, the first at"):
        Repository.of(pa.concat_tables([symbols, odd]), builds)
    with pytest.raises(SymboliseError, match="not numbered 0 to 1"):
        Repository.of(symbols, builds.slice(1))
    with pytest.raises(SymboliseError, match="symbols: builds 0 to 1, but there are 0 to 0"):
        Repository.of(symbols, builds.slice(0, 1))
    few = Repository.of(symbols.slice(0, 0), builds.slice(0, 1))
    with pytest.raises(SymboliseError, match="but there are 0 to 0"):
        Symboliser(few, made["raw_stacks"])
    lost = Symboliser(Repository.of(symbols, builds), made["raw_stacks"].slice(0, 0))
    with pytest.raises(SymboliseError, match="stack 59 is not in raw_stacks"):
        list(lost.samples(made["raw_samples"].to_batches()))


def test_parts_are_in_order_of_events_whatever_the_order_of_their_dictionary(tmp_path, monkeypatch):
    """Batches of other row groups and dictionaries are put together, so that an event's rows stand side by side."""
    monkeypatch.setattr("analysis.profiling.symbolise.BATCH_ROWS", 500)
    made = profile(13)
    table = made["raw_samples"]
    pieces = [table.slice(at, 100) for at in range(0, len(table), 100)]
    with pq.ParquetWriter(tmp_path / "raw_samples.parquet", table.schema) as file:
        for piece in pieces:
            file.write_table(piece)
    for name in ("raw_stacks", "symbols", "builds"):
        pq.write_table(made[name], tmp_path / f"{name}.parquet")
    parts = [columns["event"].to_pylist() for name, columns in symbolised(tmp_path) if name == "samples"]
    assert 1 < len(parts) < len(pieces) / 3
    assert all(part == sorted(part) for part in parts)
    assert read(symbolised(tmp_path)) == twin(made)
