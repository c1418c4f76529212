"""The tables of one or several profiles as checked views of a DuckDB connection that can read nothing else."""

import re
import secrets
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from analysis.profiling.query import QueryError
from analysis.profiling.storage import NEEDED, TAKEN, Folder, ProfileError, Range, origin_of
from models.tables import TABLES

MOST_VALUE = 10**37
"""Sums of events beyond this are refused; DuckDB's widest integers hold ten times as much."""
_SPILL = "8GB"
_CELLS = 2**18
"""Most sums that all threads together hold in plain arrays, at 50 bytes each, in place of hash tables."""
_IDS = {
    "visits": ("visit",),
    "processes": ("process", "visit", "build"),
    "builds": ("build",),
    "rates": (),
    "samples": ("process", "location", "stack"),
    "locations": ("location", "build"),
    "stacks": ("stack", "location"),
}
"""Columns that number things within one profile, and so are shifted where several are put together."""

_YEAR_10000_S = 253_402_300_800
_NUMBERED = ("visits", "processes", "builds", "locations")


@dataclass(frozen=True, slots=True)
class Counts:
    """Bounds of the counts of a profile's samples."""

    rows: int
    """Rows of samples."""
    most: int
    """Greatest count of a row."""
    taken: bool = False
    """Whether rows may rest on another number of samples than their count."""


@dataclass(frozen=True, slots=True)
class _Check:
    """Rows that should not be there: a query that yields the offending value, and what it should be."""

    table: str
    field: str
    rows: str
    should: str


_CHECKS = (
    *(
        _Check(
            table, field, f"SELECT {field} FROM {table}_@ GROUP BY {field} HAVING count(*) > 1", "should be there once"
        )
        for table, field in zip(_NUMBERED, ("visit", "process", "build", "location"), strict=True)
    ),
    _Check(
        "rates",
        "collection, platform, event",
        "SELECT concat_ws(', ', collection, platform, event) FROM rates_@"
        " GROUP BY collection, platform, event HAVING count(*) > 1",
        "should be there once",
    ),
    _Check("rates", "period", "SELECT period FROM rates_@ WHERE period < 1", "should be at least 1"),
    _Check("rates", "duty", "SELECT duty FROM rates_@ WHERE duty < 1", "should be at least 1"),
    _Check(
        "visits", "start_s", "SELECT start_s FROM visits_@ WHERE NOT isfinite(start_s)", "should be a finite number"
    ),
    _Check("visits", "start_s", "SELECT start_s FROM visits_@ WHERE abs(start_s) > 1e12", "should be at most 1e12"),
    _Check("processes", "visit", "SELECT visit FROM processes_@ ANTI JOIN visits_@ USING (visit)", "should be a visit"),
    _Check(
        "processes",
        "build",
        "SELECT build FROM (SELECT build FROM processes_@ WHERE build <> -1) ANTI JOIN builds_@ USING (build)",
        "should be a build or −1",
    ),
    _Check(
        "visits",
        "weight",
        "SELECT weight FROM visits_@ SEMI JOIN processes_@ USING (visit) WHERE weight < 1",
        "should be at least 1",
    ),
)
_SAMPLE_CHECKS = {
    "count": "SELECT count FROM samples_@ WHERE count < 0 OR count IS NULL",
    "process": "SELECT process FROM samples_@ ANTI JOIN processes_@ USING (process)",
    "location": "SELECT location FROM samples_@ ANTI JOIN locations_@ USING (location)",
    "event": "SELECT event FROM samples_@ WHERE event IS NULL",
}
_SHOULD = {
    "count": "should be at least 0",
    "process": "should be a process",
    "location": "should be a location",
    "event": "should not be empty",
}
_STACK_CHECKS = (
    _Check(
        "stacks",
        "depth",
        "SELECT stack FROM stacks_@ GROUP BY stack HAVING min(depth) <> 0 OR max(depth) <> count(*) - 1"
        " OR 2 * sum(depth) <> count(*) * (count(*) - 1)"
        " OR 6 * sum(depth::BIGINT * depth) <> count(*) * (count(*) - 1) * (2 * count(*) - 1)",
        "should be 0, 1, 2, … once each in every stack",
    ),
    _Check(
        "stacks",
        "location",
        "SELECT location FROM stacks_@ ANTI JOIN locations_@ USING (location)",
        "should be a location",
    ),
)
_SAMPLE_STACKS = _Check(
    "samples",
    "stack",
    "SELECT stack FROM (SELECT DISTINCT stack FROM samples_@ WHERE stack IS DISTINCT FROM -1)"
    " ANTI JOIN stacks_@ USING (stack)",
    "should be a stack or −1",
)


@contextmanager
def understood(what: str) -> Generator[None]:
    """Turn what DuckDB cannot do into a ProfileError or QueryError of one line."""
    try:
        yield
    except duckdb.OutOfRangeException:
        raise ProfileError(f"{what}: counts are too large to be summed") from None
    except duckdb.OutOfMemoryException:
        raise QueryError(f"{what}: too many rows at once; sum by fewer dimensions or restrict others") from None
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise ProfileError(f"{what}: cannot be read: {reason}") from None


def row(connection: duckdb.DuckDBPyConnection, sql: str, *values: object) -> tuple[Any, ...]:
    """Return the one row of a query, fetched to its end so that the connection is free again."""
    (only,) = connection.execute(sql, list(values)).fetchall()
    return tuple(only)


def connect(folders: Sequence[Folder], memory_bytes: int, threads: int | None) -> duckdb.DuckDBPyConnection:
    """Return a connection with the profiles' tables as views, put together, and no access to anything else.

    Every table of `storage.NEEDED` is one view over all folders, with the folder's number as `source` in visits and
    rates; each other table of folder 0, 1, … is the view `<table>_<number>`.

    Parameters
    ----------
    folders : as `storage.find` returns them
    memory_bytes : most that DuckDB may hold; beyond it, intermediate results go to temporary files
    threads : threads that work on a query; all processors without it
    """
    config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": f"{memory_bytes}B"}
    # Else DuckDB keeps some 50 MB that it has no use for.
    config["allocator_background_threads"] = True
    config |= dict.fromkeys(("allocator_flush_threshold", "allocator_bulk_deallocation_flush_threshold"), "2MB")
    if threads is not None:
        config["threads"] = threads
    connection = duckdb.connect(":memory:", config=config)
    (workers,) = row(connection, "SELECT current_setting('threads')")
    connection.execute(f"SET GLOBAL perfect_ht_threshold = {max(1, (_CELLS // workers).bit_length() - 1)}")
    try:
        with understood(", ".join(str(folder.path) for folder in folders)):
            _shut(connection, _tables(connection, folders))
            faults = [fault for number, folder in enumerate(folders) for fault in _faults(connection, folder, number)]
            if faults:
                raise ProfileError("\n".join(faults))
            _put_together(connection, folders)
    except BaseException:
        connection.close()
        raise
    return connection


def check_stacks(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder], *, frames: bool = True) -> None:
    """Check the call paths, which only some queries need.

    Parameters
    ----------
    connection : of `connect`
    folders : the profiles' folders
    frames : the frames too; otherwise only whether every sample has a stack
    """
    faults = []
    for number, folder in enumerate(folders):
        checks = list(_STACK_CHECKS) if frames else []
        sampled = folder.ranges("samples").get("stack")
        leaves = "count(*) FILTER (depth = 0)"
        first, last, stacks = row(connection, f"SELECT min(stack), max(stack), {leaves} FROM stacks_{number}")
        dense = stacks and last - first + 1 == stacks
        if not (dense and sampled and _inside(sampled, Range(min(-1, first), last)) and first <= 0):
            checks.append(_SAMPLE_STACKS)
        faults += [fault for check in checks for fault in _offending(connection, folder, number, check)]
    if faults:
        raise ProfileError("\n".join(faults))


def counts(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> Counts:
    """Return bounds of the samples' counts, from the files' footers if these say them."""
    ranges = [folder.ranges("samples").get("count") for folder in folders if folder.rows("samples")]
    rows = sum(folder.rows("samples") for folder in folders)
    taken = any(TAKEN in folder.columns("samples") for folder in folders)
    if None not in ranges:
        return Counts(rows, max((bounds.most for bounds in ranges if bounds is not None), default=0), taken)
    (most,) = row(connection, "SELECT max(count) FROM samples")
    return Counts(rows, int(most or 0), taken)


def _tables(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> list[str]:
    """Make a view of each file, and return the names under which DuckDB opens the files."""
    opened = []
    for number, folder in enumerate(folders):
        for table in (*folder.tables, *(["labels"] if folder.labelled else [])):
            file = str(folder.file(table).resolve())
            pattern = re.sub(r"([*?\[])", r"[\1]", file)
            connection.read_parquet(pattern).create_view(f"{table}_{number}")
            opened += [file, pattern]
    return opened


def _shut(connection: duckdb.DuckDBPyConnection, files: list[str]) -> None:
    """Allow the given files and temporary ones, nothing else, for good."""
    spill = Path(tempfile.gettempdir()) / f"wsc-profile-{secrets.token_hex(8)}"
    connection.execute("SET temp_directory = ?", [str(spill)])
    connection.execute("SET max_temp_directory_size = ?", [_SPILL])
    connection.execute("SET allowed_paths = ?", [files])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _faults(connection: duckdb.DuckDBPyConnection, folder: Folder, number: int) -> Iterator[str]:
    """Yield a line for everything that is wrong with what a profile's tables say."""
    for table in NEEDED:
        if table not in {"samples", "stacks"}:
            yield from _nulls(connection, folder, number, table)
    for check in _CHECKS:
        yield from _offending(connection, folder, number, check)
    certain = set(_certain(connection, folder, number))
    if TAKEN in folder.columns("samples"):
        rows = f"SELECT {TAKEN} FROM samples_@ WHERE {TAKEN} < 0 OR {TAKEN} IS NULL"
        yield from _offending(connection, folder, number, _Check("samples", TAKEN, rows, "should be at least 0"))
    for field, rows in _SAMPLE_CHECKS.items():
        if field not in certain:
            yield from _offending(connection, folder, number, _Check("samples", field, rows, _SHOULD[field]))


def _nulls(connection: duckdb.DuckDBPyConnection, folder: Folder, number: int, table: str) -> Iterator[str]:
    names = [column.name for column in TABLES[table] if column.type != pa.float64() or column.name == "start_s"]
    missing_of = ", ".join(f"count(*) - count({name})" for name in names)
    counts = row(connection, f"SELECT {missing_of} FROM {table}_{number}")
    for name, missing in zip(names, counts, strict=True):
        if missing:
            yield f"{folder.file(table)}: {name}: should not be empty, got null in {missing:,} rows"


def _offending(connection: duckdb.DuckDBPyConnection, folder: Folder, number: int, check: _Check) -> Iterator[str]:
    """Yield a line if any row offends."""
    rows = check.rows.replace("@", str(number))
    count, least = row(connection, f"SELECT count(*), min(found) FROM ({rows}) AS offending(found)")
    if count:
        more = f" and {count - 1:,} more" if count > 1 else ""
        got = "null" if least is None else least
        yield f"{folder.file(check.table)}: {check.field}: {check.should}, got {got}{more}"


def _certain(connection: duckdb.DuckDBPyConnection, folder: Folder, number: int) -> Iterator[str]:
    """Yield the columns of samples that the file's footer proves to be right, without a look at every row."""
    ranges = folder.ranges("samples")
    if not folder.rows("samples"):
        yield from _SAMPLE_CHECKS
    if "count" in ranges and ranges["count"].least >= 0:
        yield "count"
    if folder.complete("samples", "event"):
        yield "event"
    for field, table in (("process", "processes"), ("location", "locations")):
        least, most, rows = row(connection, f"SELECT min({field}), max({field}), count(*) FROM {table}_{number}")
        within = field in ranges and rows and _inside(ranges[field], Range(least, most))
        if within and most - least + 1 == rows:
            yield field


def _inside(inner: Range, outer: Range) -> bool:
    return outer.least <= inner.least and inner.most <= outer.most


def _put_together(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> None:
    """Make one view of each table over all folders; numbers of later folders are shifted past the earlier ones'."""
    parts: dict[str, list[str]] = {table: [] for table in NEEDED}
    machines, origin_s = _named_machines(connection, folders), origin_of(folders)
    parts["labels"] = ["SELECT -1 AS process, '' AS key, '' AS value WHERE false"]
    for number, (folder, shift) in enumerate(zip(folders, shifts(connection, folders), strict=True)):
        if folder.labelled:
            process = _shifted("process", ("process",), shift)
            parts["labels"].append(f"SELECT {process}, key, value FROM labels_{number}")
        for table in NEEDED:
            columns = [_shifted(column.name, _IDS[table], shift) for column in TABLES[table]]
            if table == "samples":
                columns.append(TAKEN if TAKEN in folder.columns(table) else f"count AS {TAKEN}")
            source = f"{table}_{number}"
            if table == "visits":
                later_s = (
                    0.0 if origin_s is None or folder.record is None else (folder.record.origin_s or 0.0) - origin_s
                )
                columns = [f"start_s + {later_s!r} AS start_s" if name == '"start_s"' else name for name in columns]
                columns += [f"{machines[number]} AS named_machine", f"{_date(origin_s, later_s)} AS dated"]
                source += f" LEFT JOIN machine_names_{number} USING (machine)"
            parts[table].append(f"SELECT {', '.join(columns)}, {number} AS source FROM {source}")
    for table, selects in parts.items():
        connection.execute(f"CREATE VIEW {table} AS {' UNION ALL '.join(selects)}")


def _date(origin_s: float | None, later_s: float) -> str:
    """Return the date of a visit in UTC; without an origin, before 1970 or after 9999 it has none."""
    if origin_s is None:
        return "'[none]'"
    time_s = f"start_s + {origin_s + later_s!r}"
    date = f"strftime(make_timestamp(floor(1e6 * ({time_s}))::BIGINT), '%Y-%m-%d')"
    return f"CASE WHEN {time_s} BETWEEN 0 AND {_YEAR_10000_S - 1} THEN {date} ELSE '[none]' END"


def _named_machines(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> list[str]:
    """Make a table of the names of each folder's machines, and return what each says of a machine.

    That is its number, unless an import names machines of any folder; where it names others it is its number in
    brackets.
    """
    records = [folder.record for folder in folders]
    for number, record in enumerate(records):
        names = record.names if record is not None else {}
        connection.execute(
            f"CREATE TABLE machine_names_{number} AS SELECT unnest(?)::BIGINT AS machine, unnest(?)::VARCHAR AS name",
            [list(names), list(names.values())],
        )
    if not any(record is not None and record.machines for record in records):
        return ["machine::BIGINT"] * len(records)
    return ["machine::VARCHAR" if record is None else "coalesce(name, '[' || machine || ']')" for record in records]


def shifts(connection: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> list[dict[str, int]]:
    """Return by how much each folder's numbers of visits, processes, builds, locations and stacks are shifted."""
    past = [dict.fromkeys(("visit", "process", "build", "location", "stack"), 0)]
    for number in range(len(folders) - 1):
        shift = dict(past[-1])
        for table, (name, *_) in ((table, names) for table, names in _IDS.items() if names and table != "samples"):
            (most,) = row(connection, f"SELECT max({name}) FROM {table}_{number}")
            shift[name] += 1 + max(-1, most if most is not None else -1)
        past.append(shift)
    return past


def _shifted(name: str, ids: Sequence[str], shift: dict[str, int]) -> str:
    """Return a column, shifted if it numbers things; −1 stays what it is."""
    if name not in ids or not shift[name]:
        return f'"{name}"'
    return f'CASE WHEN "{name}" < 0 THEN "{name}" ELSE "{name}"::BIGINT + {shift[name]} END AS "{name}"'
