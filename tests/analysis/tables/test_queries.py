import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from analysis.tables.cells import cells_of, source_of
from analysis.tables.columns import Field, read_table
from analysis.tables.faults import FileError
from analysis.tables.queries import TableQuery

FIELDS = (Field("job", "text"), Field("quota", "real"))
ROWS = [("a", 2.0), ("b", 3.5)]


def test_a_file_whose_name_reads_as_a_query_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "select all.csv"
    assert source_of(name) == TableQuery(name)
    (tmp_path / name).touch()
    assert source_of(name) == Path(name)


@pytest.mark.parametrize("before", ["-- as this\n", "/* a\nb */ ", "-- select\n\n/**/(", "--\r\n"])
def test_a_query_may_begin_with_comments(before):
    text = f"{before}SELECT 1 AS job{')' * before.count('(')}"
    assert source_of(text) == TableQuery(text)
    assert cells_of(source_of(text)).names == ["job"]
    assert source_of(f"{before}fleet.csv") == Path(f"{before}fleet.csv")


def test_a_query_over_files_is_a_table(tmp_path):
    pd.DataFrame(ROWS, columns=["svc", "cpu"]).to_parquet(tmp_path / "one.parquet")
    pd.DataFrame(ROWS, columns=["svc", "cpu"]).to_parquet(tmp_path / "two.parquet")
    query = TableQuery(f"SELECT svc AS job, sum(cpu) AS quota FROM '{tmp_path}/*.parquet' GROUP BY svc ORDER BY svc")
    assert read_table(query, FIELDS).to_numpy().tolist() == [["a", 4.0], ["b", 7.0]]


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_query_over_a_database_is_a_table_and_writes_nothing(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fleet.db"
    with closing(duckdb.connect(path) if kind == "duckdb" else sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (job TEXT, quota DOUBLE)")
        connection.executemany("INSERT INTO jobs VALUES (?, ?)", ROWS)
        connection.commit()
    before = path.read_bytes()
    assert read_table(TableQuery("SELECT * FROM jobs", path), FIELDS).to_numpy().tolist() == [list(row) for row in ROWS]
    for statement in ("DELETE FROM jobs", "DROP TABLE jobs", "SELECT 1; DROP TABLE jobs", "ATTACH 'x' AS y"):
        with pytest.raises(FileError, match="query: cannot be run"):
            cells_of(TableQuery(statement, path))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["fleet.db"]


@pytest.mark.parametrize(
    "sql", ["SELEKT 1", "SELECT * FROM nowhere", "COPY (SELECT 1) TO 'x.csv'", "SELECT 1; SELECT 2", ""]
)
def test_what_is_no_select_is_refused(sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="query: cannot be run"):
        cells_of(TableQuery(sql))
    assert not list(tmp_path.iterdir())


def test_a_frame_with_mixed_cells_is_read_as_texts():
    table = read_table(pd.DataFrame({"job": [1, "b"], "quota": ["500m", 2]}), FIELDS)
    assert table.to_numpy().tolist() == [["1", 0.5], ["b", 2.0]]


def test_statements_that_are_no_select_are_refused_as_such_unless_a_file_has_their_name(tmp_path, monkeypatch):
    """They were told as missing files; so was a SELECT in brackets, and DuckDB's FROM without one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="it should be one SELECT"):
        cells_of(source_of("DROP TABLE x"))
    (tmp_path / "rows.csv").write_text("job\na\n")
    for text in ("FROM 'rows.csv'", "(SELECT * FROM 'rows.csv')", "( SELECT * FROM 'rows.csv')"):
        assert cells_of(source_of(text)).names == ["job"]
    (tmp_path / "from here.csv").write_text("job\na\n")
    assert source_of("from here.csv") == Path("from here.csv")
