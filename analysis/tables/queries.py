"""Queries over files or a database in place of a file, and what they and frames in memory are as an Arrow table."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.tables.faults import FileError, FileFault

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

_SQLITE = b"SQLite format 3\0"
_PART_ROWS = 100_000
_LONGEST = 60
"""Characters of a query by which it is named."""


@dataclass(frozen=True, slots=True)
class TableQuery:
    """One SELECT over files that it names, or over the tables of a database, DuckDB's or SQLite's; nothing is written.

    Attributes
    ----------
    sql : in DuckDB's words, or in SQLite's of such a database
    database : a file; None: the query names its files, as in ``FROM 'export/*.parquet'``

    Examples
    --------
    >>> str(TableQuery("SELECT *, 1 AS treated\\n  FROM 'after.csv'"))
    "SELECT *, 1 AS treated FROM 'after.csv'"
    """

    sql: str
    database: Path | None = None

    def __str__(self) -> str:
        line = " ".join(self.sql.split())
        return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def table_of(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as an Arrow table: names are texts, and so are the cells of a column of mixed types."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        mixed = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in {"string", "empty"}
        columns[str(name)] = column.where(column.isna(), column.astype(str)) if mixed else column
    return pa.Table.from_pandas(pd.DataFrame(columns).reset_index(drop=True), preserve_index=False)


def answered(query: TableQuery) -> pa.Table:
    """Return the rows of a query.

    Raises
    ------
    FileError
        If it cannot be run, or its database not be opened.
    """
    if query.database is not None and _is_sqlite(query.database):
        return _of_sqlite(query.sql, query.database)
    with _of_duckdb(query) as rows:
        return rows.to_arrow_table()


def store(query: TableQuery, file: Path) -> None:
    """Write the rows of a query into a Parquet file, part by part where DuckDB answers it.

    Raises
    ------
    FileError
        As `answered`.
    OSError
        If the file cannot be written.
    """
    if query.database is not None and _is_sqlite(query.database):
        pq.write_table(_of_sqlite(query.sql, query.database), file)
        return
    with _of_duckdb(query) as rows:
        parts = rows.to_arrow_reader(_PART_ROWS)
        with pq.ParquetWriter(file, parts.schema) as writer:
            for part in parts:
                writer.write_batch(part)


def _is_sqlite(database: Path) -> bool:
    try:
        with database.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise _refused(f"{database}: {error.strerror}") from None


def _of_sqlite(sql: str, database: Path) -> pa.Table:
    """Return the rows of a query, all columns as SQLite types their values: text where they are mixed."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.set_authorizer(_reads)
            cursor = connection.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _refused(error) from None
    if not names:
        raise _refused("it answers with no table")
    return table_of(pd.DataFrame(rows, columns=names))


def _reads(action: int, *_what: object) -> int:
    """Allow SQLite what a SELECT does and nothing else: not ATTACH, which makes a file."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


@contextmanager
def _of_duckdb(query: TableQuery) -> Generator["DuckDBPyRelation"]:
    import duckdb

    sql, database = query.sql, query.database
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    try:
        with duckdb.connect(
            ":memory:" if database is None else str(database), read_only=database is not None, config=config
        ) as connection:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise _refused("it should be one SELECT")
            yield _in_seconds(connection.sql(sql))
    except duckdb.Error as error:
        place = "" if database is None else f"{database}: "
        raise _refused(place + str(error).partition("\n")[0]) from None


def _in_seconds(rows: "DuckDBPyRelation") -> "DuckDBPyRelation":
    """Return rows with intervals of time as seconds, as `ended - began` has them."""
    if not any(str(kind) == "INTERVAL" for kind in rows.types):
        return rows
    names = ['"' + name.replace('"', '""') + '"' for name in rows.columns]
    lengths = (
        f"epoch({name}) AS {name}" if str(kind) == "INTERVAL" else name
        for name, kind in zip(names, rows.types, strict=True)
    )
    return rows.project(", ".join(lengths))


def _refused(problem: object) -> FileError:
    return FileError([FileFault(0, 0, "query", "cannot be run", str(problem))])
