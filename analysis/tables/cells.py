"""The cells of a table before any check of what they hold: of a file, CSV or Parquet, of a query, or of a frame."""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.tables.bytes import PARQUET, DamagedError, head_of, is_packed, salvaged, stream_of
from analysis.tables.faults import FileFault
from analysis.tables.queries import TableQuery, answered, table_of
from models.arrays import Bools, Ints

Source: TypeAlias = Path | TableQuery | pd.DataFrame
"""Where a table comes from: a file, a query, or a frame in memory."""
_QUOTED = re.compile(r'"[^"]*"')
_UNCLOSED = "should close the quotation mark that a field opens here"
_LINE_END = re.compile(r"\r\n|\r|\n")
_END = "\ue000"
"""Stands below the last line of CSV, and within a field if that is not closed."""
_RECIPE = ".columns.yaml"
_OTHER_FORMS = {
    b"BZh": "a file of bzip2",
    b"\xfd7zXZ": "a file of xz",
    b"PK\x03\x04": "a zip file, as spreadsheets are: save the sheet as CSV",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"SQLite format 3": "a database of SQLite: give a SELECT and --database",
}
"""How files of frequent other formats begin."""
_NO_JSON = "JSON lines are not read: make a CSV of them, as docs/own-columns.md does"


class Missing(NamedTuple):
    """Why cells that were computed have no value: a cell of the file that cannot be used."""

    column: str
    """Of the file."""
    problem: str
    rows: Bools
    found: pd.Series | None = None
    """Its cells, where a column that was computed has taken its name."""

    def taken(self, rows: Bools) -> "Missing":
        """Return the same of some rows."""
        found = None if self.found is None else self.found[rows].reset_index(drop=True)
        return self._replace(rows=self.rows[rows], found=found)


@dataclass(slots=True)
class FileCells:
    """A file's cells before any check: texts from CSV, typed values from Parquet, with the line of every row."""

    names: list[str]
    columns: dict[str, pd.Series]
    lines: Ints
    faults: list[FileFault] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Types of a Parquet file's columns; CSV has none."""
    computed: dict[str, list[Missing]] = field(default_factory=dict)
    """Columns that were computed from others, and why cells of them have no value."""
    positions: dict[str, int] = field(default_factory=dict)
    """Places in the file of columns that go by another name than there."""
    notes: list[str] = field(default_factory=list)
    """What should be known of how its rows were taken."""
    record: str = ""
    """What `lines` count where a row is no line: the spans or the objects of a JSON document."""

    def position(self, name: str) -> int:
        """Return the column's place in the file, from 1; 0 of one that was computed from several."""
        return self.positions[name] if name in self.positions else self.names.index(name) + 1

    def taken(
        self,
        columns: Mapping[str, pd.Series],
        positions: Mapping[str, int],
        computed: Mapping[str, list[Missing]],
        rows: Bools,
    ) -> "FileCells":
        """Return some rows of a table with other columns."""
        chosen = {name: column[rows].reset_index(drop=True) for name, column in columns.items()}
        types = {name: kind for name, kind in self.types.items() if columns[name] is self.columns.get(name)}
        missing = {name: [why.taken(rows) for why in whys] for name, whys in computed.items()}
        return replace(
            self,
            names=list(columns),
            columns=chosen,
            lines=self.lines[rows],
            types=types,
            computed=missing,
            positions=dict(positions),
        )

    def text(self, name: str) -> "pd.Series[str]":
        """Return a column's cells as text without blanks around it, "" for a null."""
        column = self.columns[name]
        if name in self.types or name in self.computed:
            column = column.map(_as_text)
        return column.astype(str).str.strip()

    def faults_of(self, name: str, wrong: "Bools | pd.Series[bool]", problem: str) -> Iterator[FileFault]:
        """Yield the fault of every cell of a column that is wrong; of one that was computed, that of what it lacks."""
        for row in np.flatnonzero(np.asarray(wrong, dtype=np.bool_)):
            lacks = next((missing for missing in self.computed.get(name, ()) if missing.rows[row]), None)
            field, what = (name, problem) if lacks is None else lacks[:2]
            cell = (self.columns[field] if lacks is None or lacks.found is None else lacks.found).iloc[row]
            line, got = int(self.lines[row]), f'"{"" if cell is None else cell}"'
            yield FileFault(line, self.position(field), field, what, got, record=self.record)


def name_of(source: Source) -> str:
    """Return what a source is called in messages."""
    if isinstance(source, Path):  # a name may have bytes that are no text
        return os.fsencode(source).decode("utf-8", errors="backslashreplace")
    return "table" if isinstance(source, pd.DataFrame) else str(source)


_QUERIES = frozenset(["select", "with"])
_STATEMENTS = frozenset([
    *("from", "values", "table", "show", "describe", "summarize", "drop", "create", "insert", "update", "delete"),
    *("merge", "truncate", "alter", "copy", "attach", "load", "set", "call", "pragma", "explain"),
])  # fmt: skip
"""First words of what is no file, if no file has that name, nor could have by its end."""
_BEFORE = re.compile(r"(?:[\s(]|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.S)
"""Blanks, comments and parentheses that a query may begin with."""
_FILE = re.compile(
    r"[^'\"();=]*\.(csv|tsv|txt|log|jsonl?|ndjson|parquet|arrow|feather|swf|pb)(\.(gz|zst|bz2|xz))?", re.I
)
"""Names that are no statements, such as ``Copy of fleet.csv``."""


def source_of(text: str, database: Path | None = None) -> Source:
    """Return the table that an argument names: a file that is there is that file, a SELECT a query, the rest a path.

    Other statements are queries, too, so that they are refused as such and not looked for as files.

    Examples
    --------
    >>> source_of("select 1 AS job")
    TableQuery(sql='select 1 AS job', database=None)
    >>> source_of("-- all jobs\\nselect 1 AS job")
    TableQuery(sql='-- all jobs\\nselect 1 AS job', database=None)
    >>> source_of("Copy of fleet.csv")
    PosixPath('Copy of fleet.csv')
    """
    words = _BEFORE.sub("", text, count=1).split(maxsplit=1)
    first = words[0].lower() if len(words) > 1 else ""
    is_query = first in _QUERIES or (first in _STATEMENTS and not _FILE.fullmatch(text))
    return TableQuery(text, database) if is_query and not _is_file(text) else Path(text)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # a query may be longer than a name, or have bytes that no name has
        return False


def recipe_beside(sources: Sequence[Source]) -> Path | None:
    """Return the recipe that lies beside the first of some files, ``fleet.columns.yaml`` beside ``fleet.csv.gz``."""
    for source in sources:
        if isinstance(source, Path) and not source.is_dir():
            recipe = source.with_name(source.name.partition(".")[0] + _RECIPE)
            if recipe.is_file():
                return recipe
    return None


def header_of(source: Source) -> Sequence[str]:
    """Return the names of a source's columns, with little read of a file; none where that takes the whole of it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job, quota\\na,2\\n")
    ...     header_of(file)
    ['job', 'quota']
    """
    if isinstance(source, pd.DataFrame):
        return [str(name) for name in source.columns]
    if isinstance(source, TableQuery):
        return []
    try:
        head = head_of(source)
        if head.startswith(PARQUET):
            return [] if is_packed(source) else list(pq.read_schema(source).names)
        if not _is_text(head):
            return []
        lines = head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
        return [
            name.strip() for name in next(csv.reader(io.StringIO(lines, newline=""), delimiter=_separator(lines)), [])
        ]
    except (OSError, DamagedError, pa.ArrowException, csv.Error):
        return []


def cells_of(source: Source) -> FileCells:
    """Return a source's cells, and the faults of a file itself.

    What a file is follows from its first bytes. Blank lines of CSV are skipped; of a gzip file that is cut off, the
    whole lines are read.

    Raises
    ------
    FileError
        If a query cannot be run.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job,quota\\na,2\\n\\nb\\n")
    ...     cells = cells_of(file)
    >>> cells.names, cells.lines.tolist(), str(cells.faults[0])
    (['job', 'quota'], [2], '4:1: row: should have 2 fields, got 1')
    >>> cells_of(TableQuery("SELECT 'a' AS job, 2 AS quota")).names
    ['job', 'quota']
    """
    if not isinstance(source, Path):
        return cells_of_table(table_of(source) if isinstance(source, pd.DataFrame) else answered(source))
    with stream_of(source) as stream:
        data, damage = salvaged(stream)
    if data.startswith(PARQUET):
        return _parquet_cells(data, damage)
    if damage is None:
        return csv_cells(data)
    whole_lines = data[: data.rfind(b"\n") + 1]
    cells = csv_cells(whole_lines) if whole_lines else FileCells([], {}, np.array([], dtype=np.int64))
    cells.faults.append(damage.fault(whole_lines.count(b"\n")))
    return cells


def _is_text(head: bytes) -> bool:
    """Return whether the first line of a file is text."""
    try:
        return "\0" not in head.lstrip(b"\r\n").partition(b"\n")[0].decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # the line is longer than its head


def csv_cells(data: bytes) -> FileCells:
    """Return the cells of a CSV file's content."""
    form = next((form for begin, form in _OTHER_FORMS.items() if data.startswith(begin)), None)
    if form is not None:
        return _unreadable(1, "should be CSV or Parquet, as it is or packed by gzip or zstd", form)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _unreadable(line, "should be UTF-8 text", f"byte 0x{data[error.start]:02x}")
    if text.startswith("{"):
        return _unreadable(1, _NO_JSON, text.partition("\n")[0][:60])
    separator, read = _separator(text), list[str]()
    reader = csv.reader(_remembered(chain(io.StringIO(text, newline=""), (_END,)), read), delimiter=separator)
    rows: list[list[str]] = []
    lines: list[int] = []
    stray: list[FileFault] = []
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
            if len(read) > 1:
                stray += _stray(read, separator, reader.line_num)
            read.clear()
    except csv.Error as error:
        line, got = reader.line_num, str(error)
        if "field limit" in got:
            line = _opened(text, lines[-1] + 1 if lines else 1, line)
            got = f"a field of more than {csv.field_size_limit():,} characters; perhaps a quotation mark is not closed"
        return _unreadable(line, "should be CSV", got)
    last, end = rows.pop(), lines.pop()
    unclosed = None
    if last != [_END]:
        field = last[-1].removesuffix(_END)
        spanned = len(_LINE_END.findall(field)) + (not field.endswith(("\n", "\r")))
        unclosed = FileFault(end - spanned, len(last), "row", f"{_UNCLOSED}: all below is read as its text", "none")
    if not rows:
        told = _unreadable(1, "should begin with a line of column names", "an empty file")
        return told if unclosed is None else replace(told, faults=[unclosed])
    names = [name.strip() for name in rows[0]]
    cells = _from_rows(names, rows[1:], lines[1:])
    cells.faults += stray if unclosed is None else [*stray, unclosed]
    return cells


def _remembered(lines: Iterable[str], read: list[str]) -> Iterator[str]:
    """Yield lines, and add each to those that were read."""
    for line in lines:
        read.append(line)
        yield line


def _stray(read: Sequence[str], separator: str, end: int) -> Iterator[FileFault]:
    """Yield the fault of a row over several lines in which a quotation ends before a field does.

    Then a mark that is not closed took the rows below it for text, up to another stray mark.

    Parameters
    ----------
    read : its lines
    separator : of fields
    end : number of the last line
    """
    try:
        next(csv.reader(read, delimiter=separator, strict=True))
    except csv.Error as error:
        if "expected after" in str(error):
            first = next((at for at, line in enumerate(read) if line.count('"') % 2), 0)
            below = len(read) - 1 - first
            lines = "1 line below is" if below == 1 else f"{below:,} lines below are"
            problem = f"{_UNCLOSED}: {lines} read as its text"
            yield FileFault(end - below, 1, "row", problem, "none")


def _opened(text: str, first: int, last: int) -> int:
    """Return the line, of those from a first to a last one, in which a quotation begins that is not closed in them."""
    opened, within = last, False
    for line in islice(io.StringIO(text, newline=""), first - 1, last):
        if line.count('"') % 2:
            opened, within = (opened, False) if within else (first, True)
        first += 1
    return opened


def _separator(text: str) -> str:
    """Return what stands between the cells of the first line: a comma, if there is one; else a semicolon, tab or bar.

    Examples
    --------
    >>> _separator("job;quota\\n1,5;2\\n")
    ';'
    """
    header = _QUOTED.sub("", text.lstrip("\r\n").partition("\n")[0])
    return max(",;\t|", key=lambda mark: (mark == "," and mark in header, header.count(mark)))


def _from_rows(names: list[str], rows: list[list[str]], lines: list[int]) -> FileCells:
    faults = _repeated_names(names)
    width = len(names)
    ragged = [(line, len(row)) for line, row in zip(lines, rows, strict=True) if len(row) != width]
    faults += [FileFault(at, 1, "row", f"should have {width} fields", str(have)) for at, have in ragged]
    whole = [(line, row) for line, row in zip(lines, rows, strict=True) if len(row) == width]
    columns = zip(*(row for _, row in whole), strict=True) if whole else ([] for _ in names)
    texts = {name: pd.Series(list(texts), dtype=object) for name, texts in zip(names, columns, strict=True)}
    return FileCells(names, texts, np.array([line for line, _ in whole], dtype=np.int64), faults)


def _parquet_cells(data: bytes, damage: DamagedError | None) -> FileCells:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError):
        got = "one that is cut off or damaged" if damage is None else damage.fault(0).got
        return _unreadable(1, "should be a whole Parquet file", got)
    return cells_of_table(table)


def cells_of_table(table: pa.Table) -> FileCells:
    """Return the cells of an Arrow table; its rows are counted as if a header stood in line 1."""
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
