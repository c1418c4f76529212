"""A recorded table says the same however its rows were cut, and nothing wrong gets in."""

import random
import struct
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import tables
from sim.recorder import ROW_GROUP_ROWS, TableWriter, write_table

KINDS = ("arrival", "drain", "", "Ausfall äöü")
EVENT = {"time_s": [1.5], "kind": ["drain"], "machine": [3], "instance": [-1]}


def events(rows, seed=0):
    rng = np.random.default_rng(seed)
    time_s = rng.exponential(size=rows)
    time_s[rng.random(rows) < 0.1] = np.nan
    return {
        "time_s": time_s,
        "kind": [KINDS[i] for i in rng.integers(len(KINDS), size=rows)],
        "machine": rng.integers(-1, 50, rows),
        "instance": rng.integers(-1, 900, rows),
    }


def written(directory, columns, cuts):
    with TableWriter(directory, "events") as writer:
        for begin, end in pairwise(cuts):
            writer.append({name: values[begin:end] for name, values in columns.items()})
    return writer.close()


def spelled_out(table, columns):
    """The digest by its definition, value by value: struct for numbers, lengths and UTF-8 for texts."""
    formats = {"int32": "<i", "double": "<d", "bool": "<?"}
    whole = blake2b(digest_size=16)
    for field in tables.SCHEMAS[table]:
        values = list(columns[field.name])
        texts = [value.encode() for value in values] if field.type == pa.string() else []
        lengths = b"".join(struct.pack("<i", len(text)) for text in texts)
        content = b"".join(texts or [struct.pack(formats[str(field.type)], value) for value in values])
        whole.update(f"{field.name}\0{field.type}\0".encode())
        whole.update(blake2b(lengths, digest_size=16).digest() + blake2b(content, digest_size=16).digest())
    return whole.hexdigest()


@given(
    st.integers(0, 60).flatmap(
        lambda rows: st.tuples(st.just(rows), st.lists(st.integers(0, rows), max_size=6), st.integers(0, 9))
    )
)
def test_neither_file_nor_digest_depends_on_how_the_rows_were_cut(tmp_path_factory, case):
    rows, cuts, seed = case
    columns = events(rows, seed)
    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    assert written(one, columns, [0, rows]) == written(many, columns, [0, *sorted(cuts), rows])
    assert (one / "events.parquet").read_bytes() == (many / "events.parquet").read_bytes()


def test_cuts_across_row_groups_change_nothing_and_groups_are_full(tmp_path):
    rows = 2 * ROW_GROUP_ROWS + 17
    columns = events(rows)
    cuts = [0, *sorted(random.Random(1).choices(range(rows), k=40)), rows]
    for name, chosen in (("one", [0, rows]), ("many", cuts)):
        (tmp_path / name).mkdir()
        assert written(tmp_path / name, columns, chosen).digest == spelled_out("events", columns)
        file = pq.ParquetFile(tmp_path / name / "events.parquet").metadata
        groups = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
        assert groups == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 17]
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "many" / "events.parquet"), pd.DataFrame(columns), check_dtype=False
    )


def test_the_digest_is_the_one_that_its_definition_gives(tmp_path):
    columns = events(50)
    assert write_table(tmp_path, "events", columns).digest == spelled_out("events", columns)


@pytest.mark.parametrize(
    ("name", "value"),
    [("time_s", 1.5000000000000002), ("kind", "drai"), ("machine", 4), ("instance", 0), ("time_s", np.nan)],
)
def test_one_changed_value_changes_the_digest(tmp_path, name, value):
    changed = EVENT | {name: [value]}
    assert write_table(tmp_path, "events", changed).digest != write_table(tmp_path, "events", EVENT).digest


def test_texts_are_not_confused_across_rows(tmp_path):
    both = [{**events(2), "kind": kinds} for kinds in (["ab", "c"], ["a", "bc"])]
    assert len({write_table(tmp_path, "events", columns).digest for columns in both}) == 2


def test_columns_of_equal_values_are_told_apart_by_name(tmp_path):
    columns = {"residence": [1], "epoch": [2], "cycles": [0], "instructions": [0], "llc_misses": [0], "cpu_s": [0]}
    swapped = columns | {"residence": [2], "epoch": [1]}
    digests = {write_table(tmp_path, "instance_epochs", each).digest for each in (columns, swapped)}
    assert len(digests) == 2


def test_every_nan_is_the_same_nan(tmp_path):
    odd = np.array([0x7FF8000000000123], np.uint64).view(np.float64)
    assert np.isnan(odd[0])
    digests = {write_table(tmp_path, "events", EVENT | {"time_s": t}).digest for t in (odd, -odd, [np.nan])}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "kinds",
    [
        np.array(["drain", "drain", "exit"]),
        np.array(["drain", "drain", "exit"], object),
        pa.array(["drain", "drain", "exit"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(np.array([1, 1, 0], np.int8), ["exit", "drain"]),
        pa.array(["repair", "drain", "drain", "exit"])[1:],
        pa.chunked_array([["drain"], ["drain", "exit"]]),
        pd.Series(["drain", "drain", "exit"]),
        pd.Series(["drain", "drain", "exit"]).astype("category"),
    ],
    ids=lambda kinds: f"{type(kinds).__name__}-{getattr(kinds, 'dtype', getattr(kinds, 'type', ''))}".split("<")[0],
)
def test_texts_may_come_in_any_form(tmp_path, kinds):
    numbers = {"time_s": [0, 1, 2], "machine": np.arange(3, dtype=np.int8), "instance": pd.Series([1, 2, 3])}
    expected = write_table(tmp_path, "events", numbers | {"kind": ["drain", "drain", "exit"]})
    assert write_table(tmp_path, "events", numbers | {"kind": kinds}) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time_s": [1.0]}, "events: missing column kind, machine, instance"),
        (EVENT | {"colour": ["red"]}, "events: unknown column colour"),
        (EVENT | {"machine": [1, 2]}, "events.machine: 2 rows, but events.time_s has 1"),
        (EVENT | {"machine": [1.0]}, "events.machine: expects int32, got double"),
        (EVENT | {"machine": [True]}, "events.machine: expects int32, got bool"),
        (EVENT | {"machine": [2**31]}, "events.machine: expects int32: .*2147483648"),
        (EVENT | {"time_s": ["soon"]}, "events.time_s: expects double, got string"),
        (EVENT | {"time_s": [None]}, "events.time_s: 1 of 1 values are missing"),
        (EVENT | {"kind": [7]}, "events.kind: expects string, got int64"),
        (EVENT | {"kind": pd.Series([None, "a"], dtype="category")}, "events.kind: 1 of 2 values are missing"),
        (EVENT | {"time_s": np.zeros((1, 2))}, "events.time_s: expects double: .*1-dimensional"),
        (EVENT | {"kind": [object()]}, "events.kind: expects string: .*object"),
    ],
    ids=lambda case: case.partition(":")[2] if isinstance(case, str) else "",
)
def test_a_column_that_does_not_fit_is_named(tmp_path, columns, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        write_table(tmp_path, "events", columns)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_append_adds_nothing(tmp_path):
    with TableWriter(tmp_path, "events") as writer:
        writer.append(EVENT)
        with pytest.raises(ValueError, match="missing column"):
            writer.append({"time_s": [2.0]})
    assert writer.close() == write_table(tmp_path, "events", EVENT)


def test_the_writer_may_reuse_its_arrays(tmp_path):
    time_s = np.array([1.5])
    with TableWriter(tmp_path, "events") as writer:
        writer.append(EVENT | {"time_s": time_s})
        time_s[:] = 99
    assert pd.read_parquet(tmp_path / "events.parquet")["time_s"].tolist() == [1.5]


def test_the_file_has_its_name_only_when_it_is_complete(tmp_path):
    writer = TableWriter(tmp_path, "events")
    writer.append(EVENT)
    assert [file.name for file in tmp_path.iterdir()] == ["events.parquet.partial"]
    writer.close()
    assert [file.name for file in tmp_path.iterdir()] == ["events.parquet"]


def test_a_fault_in_the_block_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="missing"), TableWriter(tmp_path, "events") as writer:
        writer.append({"time_s": [1.0]})
    assert list(tmp_path.iterdir()) == []


def test_pending_memory_is_bounded_by_a_row_group(tmp_path):
    columns = events(5000)
    with TableWriter(tmp_path, "events") as writer:
        for _ in range(40):
            writer.append(columns)
            assert sum(batch.num_rows for batch in writer._pending) < ROW_GROUP_ROWS + 5000


def test_meanings_stand_in_the_file(tmp_path):
    write_table(tmp_path, "events", EVENT)
    field = pq.read_schema(tmp_path / "events.parquet").field("time_s")
    assert field.metadata[b"meaning"] == b"when"
    assert not field.nullable


@pytest.mark.parametrize("table", tables.TABLES)
def test_every_table_can_be_written_empty(tmp_path, table):
    assert write_table(tmp_path, table, {name: [] for name in tables.SCHEMAS[table].names}).rows == 0
    assert pq.read_schema(Path(tmp_path, f"{table}.parquet")).equals(tables.SCHEMAS[table])


def test_an_unknown_table_is_refused(tmp_path):
    with pytest.raises(KeyError, match="weather"):
        TableWriter(tmp_path, "weather")
