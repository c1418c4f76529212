"""Foreign tables as columns: their cells as they stand, and of the types wanted, every fault at once with its place."""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.tables.bytes import PARQUET, DamagedError, head_of, is_packed, salvaged, stream_of
from analysis.tables.faults import FileError, FileFault
from models.arrays import Bools, Ints

_SEPARATOR = re.compile(r"[;\t|]")
_WIDEST = 200
"""Characters of a cell that a message shows."""
LEAST, MOST = 1e-50, 1e50
"""Between these lie all numbers but 0 that a table may hold: squares of their ratios are still floats."""
MOST_COUNTED = 2**53 - 1
"""Up to here a float holds every whole number."""

Kind = Literal["text", "real", "count", "flag"]
"""What a column holds; a flag is 0, 1, true or false."""


Problem = tuple[Bools, str]


@dataclass(slots=True)
class FileCells:
    """A file's cells before any check: texts from CSV, typed values from Parquet, with the line of every row."""

    names: list[str]
    columns: dict[str, pd.Series]
    lines: Ints
    faults: list[FileFault] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Types of a Parquet file's columns; CSV has none."""

    def position(self, name: str) -> int:
        """Return the column's place in the file, from 1."""
        return self.names.index(name) + 1

    def text(self, name: str) -> "pd.Series[str]":
        """Return a column's cells as text without blanks around it, "" for a null."""
        return self.columns[name].map(_as_text).astype(str).str.strip()

    def faults_of(self, name: str, wrong: "Bools | pd.Series[bool]", problem: str) -> Iterator[FileFault]:
        """Yield the fault of every cell of a column that is wrong."""
        for row in np.flatnonzero(np.asarray(wrong, dtype=np.bool_)):
            got = f'"{self.columns[name].iloc[row]}"'
            yield FileFault(int(self.lines[row]), self.position(name), name, problem, got)


def read_cells(path: Path) -> FileCells:
    """Read a file's cells, and the faults of the file itself.

    What the file is follows from its first bytes. Blank lines of a CSV file are skipped; of a gzip file that is cut
    off, the whole lines are read.

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job,quota\\na,2\\n\\nb\\n")
    ...     cells = read_cells(file)
    >>> cells.names, cells.lines.tolist(), str(cells.faults[0])
    (['job', 'quota'], [2], '4:1: row: should have 2 fields, got 1')
    """
    with stream_of(path) as stream:
        data, damage = salvaged(stream)
    cut = "" if damage is None else "one cut off" if damage.cut_off else "a damaged one"
    if data.startswith(PARQUET):
        return _parquet_cells(data, cut)
    if not cut:
        return _csv_cells(data)
    whole_lines = data[: data.rfind(b"\n") + 1]
    if not whole_lines:
        return _unreadable(1, "should be a whole gzip file", cut)
    cells = _csv_cells(whole_lines)
    cells.faults.append(FileFault(whole_lines.count(b"\n") + 1, 1, "file", "should be a whole gzip file", cut))
    return cells


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, of which only the beginning is read; none where it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job, quota\\na,2\\n")
    ...     column_names(file)
    ['job', 'quota']
    """
    try:
        head = head_of(path)
        if head.startswith(PARQUET):
            return [] if is_packed(path) else list(pq.read_schema(path).names)
        lines = head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
        return [name.strip() for name in next(csv.reader(io.StringIO(lines, newline="")), [])]
    except (OSError, DamagedError, pa.ArrowException, csv.Error):
        return []


def _csv_cells(data: bytes) -> FileCells:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _unreadable(line, "should be UTF-8 text", f"byte 0x{data[error.start]:02x}")
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        got = f"a field of more than {csv.field_size_limit():,} characters; perhaps a quotation mark is not closed"
        return _unreadable(reader.line_num, "should be CSV", got if "field limit" in str(error) else str(error))
    if not rows:
        return _unreadable(1, "should begin with a line of column names", "an empty file")
    names = [name.strip() for name in rows[0]]
    if len(names) == 1 and (other := _SEPARATOR.search(rows[0][0].strip(" "))):
        shown = "tabs" if other[0] == "\t" else other[0]
        return _unreadable(lines[0], "should be separated by commas", f"a header that looks separated by {shown}")
    return _from_rows(names, rows[1:], lines[1:])


def _from_rows(names: list[str], rows: list[list[str]], lines: list[int]) -> FileCells:
    faults = _repeated_names(names)
    width = len(names)
    ragged = [(line, len(row)) for line, row in zip(lines, rows, strict=True) if len(row) != width]
    faults += [FileFault(at, 1, "row", f"should have {width} fields", str(have)) for at, have in ragged]
    whole = [(line, row) for line, row in zip(lines, rows, strict=True) if len(row) == width]
    columns = zip(*(row for _, row in whole), strict=True) if whole else ([] for _ in names)
    texts = {name: pd.Series(list(texts), dtype=object) for name, texts in zip(names, columns, strict=True)}
    return FileCells(names, texts, np.array([line for line, _ in whole], dtype=np.int64), faults)


def _parquet_cells(data: bytes, cut: str) -> FileCells:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError):
        return _unreadable(1, "should be a whole Parquet file", cut or "one that is cut off or damaged")
    names, types = table.column_names, table.schema.types
    columns = {name: _series(column) for name, column in zip(names, table.columns, strict=True)}
    lines = np.arange(table.num_rows) + 2
    return FileCells(names, columns, lines, _repeated_names(names), dict(zip(names, types, strict=True)))


def _series(column: pa.ChunkedArray) -> pd.Series:
    """Return a column in which a null is None and whole numbers stay whole."""
    series: pd.Series = pd.Series(column.to_pylist(), dtype=object) if column.null_count else column.to_pandas()
    return series


def _repeated_names(names: Sequence[str]) -> list[FileFault]:
    return [
        FileFault(1, at + 1, name, "should be there once", f"it again after column {names.index(name) + 1}")
        for at, name in enumerate(names)
        if name in names[:at]
    ]


def _unreadable(line: int, problem: str, got: str) -> FileCells:
    return FileCells([], {}, np.array([], dtype=np.int64), [FileFault(line, 1, "file", problem, got)])


def _as_text(cell: object) -> str:
    return "" if cell is None else str(cell)


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a table has: what it holds, and from where on."""

    name: str
    kind: Kind
    above_zero: bool = True
    """Whether a number must be above 0, rather than 0 or more."""
    required: bool = True
    may_be_empty: bool = False
    """Whether a cell may be empty, which then is NaN."""
    lenient: bool = False
    """Whether a number that cannot be used (none, not finite, 0 or below) is no fault, but left for others to judge."""


def _nothing(names: Sequence[str]) -> Sequence[str]:
    """Say that no column identifies a row."""
    return names[:0]


def read_table(
    path: Path, fields: Sequence[Field], key: Callable[[Sequence[str]], Sequence[str]] = _nothing
) -> pd.DataFrame:
    """Read the named columns of a CSV or Parquet file, gzipped or not, whatever its name ends in.

    Identifiers come back as text, so that 7 in one file is 7 in another. Columns beyond `fields` are read as they
    are. Blank lines of a CSV file are skipped.

    Parameters
    ----------
    path : the file
    fields : columns that are checked; one that is not required may be missing
    key : from the file's column names to those by which a row may be there only once; none: rows may repeat

    Returns
    -------
    DataFrame
        The file's columns with a plain RangeIndex.

    Raises
    ------
    FileError
        With every fault: missing, repeated, empty, wrongly typed, not finite, out of bounds, ragged, cut off.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job,quota\\na,2\\nb,x\\n")
    ...     read_table(file, [Field("job", "text"), Field("quota", "real")])
    Traceback (most recent call last):
    analysis.tables.faults.FileError: 3:2: quota: should be a number, got "x"
    """
    cells = read_cells(path)
    faults = list(cells.faults)
    columns = dict(cells.columns)
    for wanted in fields:
        if wanted.name in cells.columns:
            columns[wanted.name], wrong = _checked(cells, wanted)
            faults += wrong
        elif wanted.required and cells.names:
            faults.append(FileFault(1, 1, wanted.name, "column is missing", f"columns {', '.join(cells.names)}"))
    faults += _repeated_rows(cells, key(cells.names))
    if cells.names and not len(cells.lines) and not cells.faults:
        faults.append(FileFault(2, 1, "rows", "should hold at least one row", "none"))
    if faults:
        raise FileError(faults)
    return pd.DataFrame(columns)


def not_used(given: pd.DataFrame, known: Collection[str]) -> Iterator[str]:
    """Yield a note that names the columns of a table that nobody reads, if there are any.

    Examples
    --------
    >>> list(not_used(pd.DataFrame(columns=["job", "colour", "size"]), ["job"]))
    ['columns not used: colour, size']
    """
    others = [str(name) for name in given.columns if name not in known]
    if others:
        yield f"columns not used: {', '.join(others)}"


def _repeated_rows(cells: FileCells, key: Sequence[str]) -> Iterator[FileFault]:
    """Yield a fault for every row whose key stood in an earlier row."""
    if not key or not len(cells.lines) or not set(key) <= set(cells.columns):
        return
    group = (
        pd.DataFrame({name: cells.columns[name].astype(str) for name in key}).groupby(list(key), sort=False).ngroup()
    )
    _, first, code = np.unique(group, return_index=True, return_inverse=True)
    whole = len(key) == len(cells.names)
    name = "row" if whole else ", ".join(key)
    column = 1 if whole else cells.position(key[0])
    for row in np.flatnonzero(first[code] != np.arange(len(code))):
        line, before = int(cells.lines[row]), int(cells.lines[first[code[row]]])
        yield FileFault(line, column, name, "should be there once", f"the same as in line {before}")


def _checked(cells: FileCells, wanted: Field) -> tuple[pd.Series, list[FileFault]]:
    """Return a column as what it should hold, and its faults."""
    given, column = cells.columns[wanted.name], cells.position(wanted.name)
    kind = cells.types.get(wanted.name)
    if kind is not None and not _fits(kind, wanted.kind):
        what = {"text": "text or whole numbers", "flag": "0 and 1, true and false"}.get(wanted.kind, "numbers")
        return given, [FileFault(1, column, wanted.name, f"should hold {what}", f"type {kind}")]
    text = cells.text(wanted.name)
    if wanted.kind == "flag":
        column_values, problems = _flags(text)
    else:
        column_values, problems = _texts(text) if wanted.kind == "text" else _numbers(given, text, wanted)
    faults = [
        FileFault(int(cells.lines[row]), column, wanted.name, problem, _shown(given.iloc[row]))
        for wrong, problem in problems
        for row in np.flatnonzero(wrong)
    ]
    return column_values, faults


def _texts(text: pd.Series) -> tuple[pd.Series, list[Problem]]:
    return text, [((text == "").to_numpy(), "should not be empty")]


def _flags(text: pd.Series) -> tuple[pd.Series, list[Problem]]:
    """Return a column as 0 and 1, NaN where a cell says neither, and which rows have which problem."""
    value = pd.to_numeric(text.str.lower().replace({"true": "1", "false": "0"}), errors="coerce")
    empty = (text == "").to_numpy()
    return value, [
        (empty, "should not be empty"),
        (~value.isin([0, 1]).to_numpy() & ~empty, "should be 0 or 1, true or false"),
    ]


def _numbers(given: pd.Series, text: pd.Series, wanted: Field) -> tuple[pd.Series, list[Problem]]:
    """Return a column as numbers, NaN where a cell is none, and which rows have which problem, one at most."""
    number = given if given.dtype.kind in "iuf" else pd.to_numeric(text, errors="coerce")
    value = number.to_numpy(dtype=np.float64, na_value=np.nan)
    empty = (text == "").to_numpy()
    infinite = np.isinf(value) | (np.isnan(value) & text.str.lower().str.lstrip("+-").eq("nan").to_numpy())
    low = (value <= 0) if wanted.above_zero else (value < 0)
    with np.errstate(invalid="ignore"):
        broken = (value != np.floor(value)) & (wanted.kind == "count")
    most = MOST_COUNTED if wanted.kind == "count" else MOST
    least = f"at least {LEAST:g}" if wanted.above_zero else f"0 or at least {LEAST:g}"
    ranges = [
        (np.isfinite(value) & (value > most), f"should be at most {most:.16g}"),
        ((value > 0) & (value < LEAST) & ~broken, f"should be {least}"),
    ]
    if wanted.lenient:
        return pd.Series(value), ranges
    return pd.Series(value), [
        (empty & (not wanted.may_be_empty), "should not be empty"),
        (np.isnan(value) & ~empty & ~infinite, "should be a number"),
        (infinite, "should be a finite number"),
        (np.isfinite(value) & low, f"should be {'above 0' if wanted.above_zero else 'at least 0'}"),
        (np.isfinite(value) & ~low & broken, "should be a whole number"),
        *ranges,
    ]


def _fits(kind: pa.DataType, wanted: Kind) -> bool:
    types = pa.types
    if wanted == "text":
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))
    if wanted == "flag" and types.is_boolean(kind):
        return True
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _shown(cell: object) -> str:
    text = json.dumps(cell) if isinstance(cell, str) else "null" if cell is None else str(cell)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
