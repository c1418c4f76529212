import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.profiling.database import Database
from analysis.profiling.query import Query
from analysis.profiling.storage import NEEDED, Folder, ProfileError, Range, find, identity, write_samples
from models.tables import SCHEMAS
from tests.helpers.profile_tables import random_tables, write_folder


@pytest.fixture
def tables():
    return random_tables(0)


@pytest.fixture
def folder(tmp_path, tables):
    return write_folder(tmp_path / "profile", tables)


def ask(folder):
    """Ask a profile of everything: its samples and its call paths."""
    with Database([folder]) as database:
        database.query(Query())
        database.stacks(Query("cpu_time"))


def refusal(folder):
    """Return the lines with which a profile is refused, also if only a query or call paths find out."""
    with pytest.raises(ProfileError) as caught:
        ask(folder)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("table", NEEDED)
def test_a_missing_table_is_named(folder, table):
    (folder / f"{table}.parquet").unlink()
    (line,) = refusal(folder)
    assert f"no table {table};" in line


def test_all_missing_tables_are_named_at_once(tmp_path):
    (line,) = refusal(tmp_path)
    assert ", ".join(NEEDED) in line


@pytest.mark.parametrize("table", NEEDED)
@pytest.mark.parametrize("damage", ["empty", "cut", "text", "no_footer"])
def test_a_damaged_file_is_refused_in_one_line(folder, table, damage):
    file = folder / f"{table}.parquet"
    content = file.read_bytes()
    damaged = {"empty": b"", "cut": content[: len(content) // 2], "text": b"a,b\n1,2\n", "no_footer": content[:-8]}
    file.write_bytes(damaged[damage])
    (line,) = refusal(folder)
    assert line.startswith(f"{file}: is no whole Parquet file")


@pytest.mark.parametrize("table", ["samples", "processes", "locations"])
def test_damaged_pages_are_refused(folder, table):
    file = folder / f"{table}.parquet"
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 3] = b"\xff" * (len(content) // 3 - 4)
    file.write_bytes(content)
    assert refusal(folder)


def test_a_missing_column_and_a_wrong_type_are_told_together(folder, tables):
    pq.write_table(pa.Table.from_pandas(tables["visits"].drop(columns="weight")), folder / "visits.parquet")
    wrong = tables["rates"].assign(period=1.5)
    pq.write_table(pa.Table.from_pandas(wrong), folder / "rates.parquet")
    lines = refusal(folder)
    assert len(lines) == 2
    assert "weight: column is missing" in lines[0]
    assert "period: should hold integers, got type double" in lines[1]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("samples", "count", 5), -3, "count: should be at least 0, got -3"),
        (("samples", "process", 0), 99, "process: should be a process, got 99"),
        (("samples", "process", 0), -1, "process: should be a process, got -1"),
        (("samples", "location", 0), 99, "location: should be a location, got 99"),
        (("samples", "stack", 0), 99, "stack: should be a stack or −1, got 99"),
        (("samples", "stack", 0), -2, "stack: should be a stack or −1, got -2"),
        (("processes", "process", 1), 0, "process: should be there once, got 0"),
        (("processes", "visit", 1), 77, "visit: should be a visit, got 77"),
        (("processes", "build", 1), 77, "build: should be a build or −1, got 77"),
        (("visits", "visit", 1), 0, "visit: should be there once, got 0"),
        (("visits", "start_s", 0), float("nan"), "start_s: should be a finite number, got nan"),
        (("visits", "start_s", 0), float("-inf"), "start_s: should be a finite number, got -inf"),
        (("builds", "build", 1), 0, "build: should be there once, got 0"),
        (("locations", "location", 1), 0, "location: should be there once, got 0"),
        (("rates", "period", 0), 0, "period: should be at least 1, got 0"),
        (("rates", "duty", 0), -5, "duty: should be at least 1, got -5"),
        (("rates", "event", 1), "cycles", "collection, platform, event: should be there once"),
        (("stacks", "location", 0), 55, "location: should be a location, got 55"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(folder, tables, place, value, said):
    table, column, row = place
    tables[table].loc[row, column] = value
    write_folder(folder, {table: tables[table]})
    assert any(str(folder / f"{table}.parquet") in line and said in line for line in refusal(folder))


def test_a_weight_of_nothing_is_refused_where_there_are_processes(folder, tables):
    tables["visits"]["weight"] = 0
    write_folder(folder, {"visits": tables["visits"]})
    assert "weight: should be at least 1, got 0" in refusal(folder)[0]


def test_stacks_with_a_gap_or_a_frame_twice_are_refused(folder, tables):
    for depths in ([0, 2], [0, 0], [1, 2], [0, 0, 3, 3]):
        frames = pd.DataFrame({"stack": 7, "depth": depths, "location": 0})
        write_folder(folder, {"stacks": pd.concat([tables["stacks"], frames])})
        assert "should be 0, 1, 2, … once each" in refusal(folder)[0]


def test_missing_values_are_refused_where_something_is_said(folder, tables):
    for table, column in (("visits", "platform"), ("processes", "application"), ("locations", "function")):
        frame = tables[table].astype({column: object})
        frame.loc[0, column] = None
        pq.write_table(pa.Table.from_pandas(frame), folder / f"{table}.parquet")
    lines = refusal(folder)
    assert [line.partition(": should not be empty")[0].rpartition(" ")[2] for line in lines] == [
        "platform",
        "application",
        "function",
    ]


def test_missing_counts_are_refused(folder, tables):
    frame = tables["samples"].astype({"count": "Int64"})
    frame.loc[3, "count"] = None
    pq.write_table(pa.Table.from_pandas(frame), folder / "samples.parquet")
    assert "count: should be at least 0, got null" in refusal(folder)[0]


def test_files_without_statistics_are_checked_row_by_row(folder, tables):
    tables["samples"].loc[7, ["count", "process"]] = -3, 50
    pq.write_table(pa.Table.from_pandas(tables["samples"]), folder / "samples.parquet", write_statistics=False)
    lines = refusal(folder)
    assert len(lines) == 2
    assert Folder(folder).ranges("samples") == {}


def test_numbers_with_gaps_are_no_fault(folder, tables):
    spread = {"processes": ["process"], "samples": ["process", "location"], "locations": ["location"]}
    for table, columns in spread.items():
        tables[table][columns] = tables[table][columns] * 3 + 5
    tables["stacks"]["location"] = tables["stacks"]["location"] * 3 + 5
    with Database([folder]) as database:
        before = database.query(Query(by=("function", "job")))
    write_folder(folder, {name: tables[name] for name in (*spread, "stacks")})
    with Database([folder]) as database:
        pd.testing.assert_frame_equal(database.query(Query(by=("function", "job"))), before)


def test_a_footer_says_ranges_over_all_row_groups(tmp_path):
    pq.write_table(pa.table({"a": [5, 2, 9], "b": ["x", "y", "z"]}), tmp_path / "visits.parquet", row_group_size=1)
    assert Folder(tmp_path).ranges("visits") == {"a": Range(2, 9)}
    assert Folder(tmp_path).rows("visits") == 3


def test_a_file_in_place_of_a_folder_and_nothing_at_all_are_refused(folder):
    with pytest.raises(
        ProfileError, match="is a file, not a folder of tables; import it first: wsc profile import FILE… --out FOLDER"
    ):
        find([folder / "visits.parquet"])
    with pytest.raises(ProfileError, match="no profile was given"):
        find([])


def test_the_identity_changes_with_a_file_and_a_file_that_goes_is_told(folder, tables):
    folders = find([folder])
    before = identity(folders)
    assert identity(folders) == before
    write_folder(folder, {"samples": tables["samples"].head(3)})
    assert identity(folders) != before
    with Database([folder]) as database:
        for file in folder.iterdir():
            file.unlink()
        with pytest.raises(ProfileError):
            database.events()


def test_samples_written_in_parts_are_read_back(tmp_path, tables):
    whole = pa.Table.from_pandas(tables["samples"], schema=SCHEMAS["samples"], preserve_index=False)
    file = tmp_path / "samples.parquet"
    assert write_samples(file, [whole.slice(0, 7), whole.slice(7)]) == whole.num_rows
    assert pq.read_table(file).equals(whole)
    assert [each.name for each in tmp_path.iterdir()] == ["samples.parquet"]


def test_writing_that_fails_leaves_nothing(tmp_path):
    with pytest.raises((ValueError, KeyError)):
        write_samples(tmp_path / "samples.parquet", [pa.table({"process": [1]})])
    assert list(tmp_path.iterdir()) == []
