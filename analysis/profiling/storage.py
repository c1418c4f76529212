"""A profile's folder: its Parquet tables, what their footers say, and how samples are written compactly."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.profiling.import_record import FILE as RECORD
from analysis.profiling.import_record import ImportFolderError, ImportRecord
from models.errors import WscError
from models.tables import SCHEMAS, TABLES

NEEDED = ("visits", "processes", "builds", "rates", "samples", "locations", "stacks")
"""Tables that every profile has."""
_TABLES = tuple(name for name in TABLES if not name.startswith("truth_"))
ROW_GROUP_ROWS = 1_000_000
"""Rows of samples in a row group: few enough to skip what a query does not ask for, many enough to pack well."""

Identity = tuple[tuple[str, int, int], ...]
"""Path, bytes and time of last change of every file of a profile."""
TAKEN = "taken"
"""Column that samples may have besides: how many samples a row rests on, where that is not its count."""


LABELS = pa.schema(
    [
        pa.field("process", pa.int32(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", pa.string(), nullable=False),
    ]
)
"""Table `labels` that a profile of other tools' files may have besides: what a process's samples were labelled with."""


class ProfileError(WscError):
    """A folder holds no usable profile; `str()` has one fault a line."""


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest integer of a column."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with the tables of one profile; all that is needed is there and has the right columns."""

    path: Path

    def file(self, table: str) -> Path:
        """Return where a table is, whether or not it is there."""
        return self.path / f"{table}.parquet"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of `models.tables` that are there, those that hold the truth left out."""
        return tuple(name for name in _TABLES if self.file(name).is_file())

    @property
    def labelled(self) -> bool:
        """Whether there is a table of labels."""
        return self.file("labels").is_file()

    @property
    def record(self) -> ImportRecord | None:
        """What is said of the files that were imported into it; none: no files were."""
        return ImportRecord.read(self.path) if (self.path / RECORD).is_file() else None

    def ranges(self, table: str) -> dict[str, Range]:
        """Return the ranges of a table's integer columns, as its footer says.

        Returns
        -------
        dict
            Column to range; a column is missing where the footer does not say it for all rows, or there are none.
        """
        with pq.ParquetFile(self.file(table)) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        by_column: dict[str, list[Range | None]] = {}
        for group in groups:
            for number in range(group.num_columns):
                column = group.column(number)
                by_column.setdefault(column.path_in_schema, []).append(_range(column.statistics, group.num_rows))
        return {name: _joined(ranges) for name, ranges in by_column.items() if None not in ranges}

    def complete(self, table: str, column: str) -> bool:
        """Return whether the table's footer says that no value of a column is missing."""
        with pq.ParquetFile(self.file(table)) as file:
            number = file.schema_arrow.names.index(column)
            groups = [file.metadata.row_group(group).column(number) for group in range(file.metadata.num_row_groups)]
        footers = [group.statistics for group in groups]
        return all(known is not None and known.has_null_count and not known.null_count for known in footers)

    def events(self) -> set[str] | None:
        """Return the events of the samples; None: the footer does not say that each row group is of one alone."""
        with pq.ParquetFile(self.file("samples")) as file:
            number = file.schema_arrow.names.index("event")
            groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
        footers = [group.column(number).statistics for group in groups if group.num_rows]
        told = all(known is not None and known.has_min_max and known.min == known.max for known in footers)
        return {str(known.min) for known in footers} if told and self.complete("samples", "event") else None

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns."""
        return tuple(pq.read_schema(self.file(table)).names)

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return int(pq.read_metadata(self.file(table)).num_rows)


def find(paths: Sequence[Path]) -> tuple[Folder, ...]:
    """Return the folders of a profile after a look at every table's name, columns and types.

    Parameters
    ----------
    paths : folders, each with Parquet tables as `models.tables` says; a finished run directory is one
    """
    if not paths:
        raise ProfileError("no profile was given")
    folders = tuple(Folder(Path(path)) for path in paths)
    faults = [fault for folder in folders for fault in _faults(folder)]
    if faults:
        raise ProfileError("\n".join(faults))
    return folders


def origin_of(folders: Sequence[Folder]) -> float | None:
    """Return from when the times of several folders count together, in seconds since 1970.

    That is the earliest of their beginnings; None: one has none, as of a simulated run.
    """
    origins = [None if (record := folder.record) is None else record.origin_s for folder in folders]
    return min((origin for origin in origins if origin is not None), default=None) if None not in origins else None


def identity(folders: Iterable[Folder]) -> Identity:
    """Return what changes when a file of the profile does or goes; asked before every answer."""
    files = []
    names = [*(f"{table}.parquet" for table in (*_TABLES, "labels")), RECORD]
    for folder in folders:
        place = os.path.abspath(folder.path)
        for name in names:
            file = f"{place}/{name}"
            with suppress(OSError):
                state = os.stat(file)
                files.append((file, state.st_size, state.st_mtime_ns))
    return tuple(files)


def write_samples(file: Path, batches: Iterable[pa.Table], *, taken: bool = False) -> int:
    """Write symbolised samples so that they are small and quick to ask, and return how many rows there are.

    Numbers that rise along the rows are stored as differences, so rows should be sorted by event, process and
    location: queries then read only the row groups of their event. The file has its final name only when it is whole.

    Parameters
    ----------
    file : where to; an older file is replaced
    batches : rows with the columns of `models.tables.SAMPLES`, streamed
    taken : whether they have the column `TAKEN` besides

    Raises
    ------
    ValueError
        If a batch lacks a column or holds another type.

    Examples
    --------
    >>> import tempfile
    >>> row = {"process": [0], "event": ["cycles"], "location": [0], "stack": [-1], "count": [3]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_samples(Path(folder) / "samples.parquet", [pa.table(row, schema=SCHEMAS["samples"])])
    1
    """
    partial = file.with_name(file.name + ".partial")
    whole, rows = SCHEMAS["samples"], 0
    whole = whole.append(pa.field(TAKEN, pa.int64())) if taken else whole
    numbers = {field.name: "DELTA_BINARY_PACKED" for field in whole if pa.types.is_integer(field.type)}
    options: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "use_dictionary": ["event"]}
    try:
        with pq.ParquetWriter(partial, whole, column_encoding=numbers, **options) as writer:
            for batch in batches:
                writer.write_table(batch.select(whole.names).cast(whole), row_group_size=ROW_GROUP_ROWS)
                rows += batch.num_rows
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
    return rows


def _faults(folder: Folder) -> Iterator[str]:
    """Yield a line for everything that is wrong with a folder's files."""
    if not folder.path.is_dir():
        file = "is a file, not a folder of tables; import it first: wsc profile import FILE… --out FOLDER"
        yield f"{folder.path}: {file if folder.path.exists() else 'is no folder'}"
        return
    missing = [table for table in NEEDED if not folder.file(table).is_file()]
    if missing:
        tables = ", ".join(folder.tables) or "none"
        files = "" if folder.tables else "; of files of other tools wsc profile import FILE… --out FOLDER makes one"
        yield f"{folder.path}: is no profile: no table {', '.join(missing)}; there are {tables}{files}"
    for table in NEEDED:
        if table not in missing:
            yield from _table_faults(folder.file(table), [(column.name, column.type) for column in TABLES[table]])
    if folder.labelled:
        yield from _table_faults(folder.file("labels"), [(field.name, field.type) for field in LABELS])
    try:
        _ = folder.record
    except ImportFolderError as error:
        yield str(error)


def _table_faults(file: Path, columns: Sequence[tuple[str, pa.DataType]]) -> Iterator[str]:
    """Yield a line for a file that cannot be read, and for each column that is missing or of another type."""
    try:
        with pq.ParquetFile(file) as opened:
            schema = opened.schema_arrow
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]
        yield f"{file}: is no whole Parquet file: {reason}"
        return
    for name, kind in columns:
        if name not in schema.names:
            yield f"{file}: {name}: column is missing; there are {', '.join(schema.names)}"
        elif _sort(schema.field(name).type) not in _accepted(kind):
            yield f"{file}: {name}: should hold {_sort(kind)}, got type {schema.field(name).type}"


def _sort(kind: pa.DataType) -> str:
    """Return what values a type has: texts, integers, numbers or truths."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests: Mapping[str, tuple[Any, ...]] = {
        "texts": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "integers": (pa.types.is_integer,),
        "numbers": (pa.types.is_floating,),
        "truths": (pa.types.is_boolean,),
    }
    return next((name for name, predicates in tests.items() if any(test(kind) for test in predicates)), str(kind))


def _accepted(kind: pa.DataType) -> tuple[str, ...]:
    return ("numbers", "integers") if _sort(kind) == "numbers" else (_sort(kind),)


def _range(statistics: pq.Statistics | None, rows: int) -> Range | None:
    """Return a column chunk's range; nothing where it is unknown, not of integers, or there are nulls."""
    if statistics is None or not statistics.has_min_max or not isinstance(statistics.min, int):
        return None
    if not statistics.has_null_count or statistics.null_count or statistics.num_values != rows:
        return None
    return Range(int(statistics.min), int(statistics.max))


def _joined(ranges: Sequence[Range | None]) -> Range:
    known = [range_ for range_ in ranges if range_ is not None]
    return Range(min(range_.least for range_ in known), max(range_.most for range_ in known))
