"""Files of traces, CSV, JSON lines or Parquet, plain or gzipped, in blocks of rows: never as a whole."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.tables.bytes import PARQUET, DamagedError, head_of, is_packed, portions, stream_of, text_of
from analysis.tables.faults import Faults, FileFault
from analysis.traces.layouts import TraceTable
from models.arrays import Ints

_BLOCK_BYTES = 1 << 23
_BLOCK_ROWS = 1 << 16
_ARRAY = re.compile(rb"\s*\[\s*[{\]]")
_MOST_RAGGED = 10_000
"""Rows of a wrong number of fields after which the rest of a file is not read."""


class TraceBlock(NamedTuple):
    """Some rows of a file: the columns that are used, by what they are here; lines from 1; places from 1."""

    columns: Mapping[str, pa.Array]
    lines: Ints
    places: Mapping[str, int]


def blocks(path: Path, layout: TraceTable, faults: Faults) -> Iterator[TraceBlock]:
    """Yield the rows of a file, whatever its name ends in, some tens of thousands at a time.

    Parameters
    ----------
    path : CSV, with or without a line of names, or JSON lines, both plain or gzipped; or Parquet
    layout : the table that it holds
    faults : takes the faults of the file itself: columns that are missing, rows of another length, a damaged end
    """
    head = head_of(path)
    if head.startswith(PARQUET):
        if is_packed(path):
            faults.add(_whole("should be unpacked first", "Parquet within gzip"))
            return
        yield from _parquet(path, layout, faults)
    elif head.lstrip().startswith(b"{"):
        yield from _json(path, layout, faults)
    elif _ARRAY.match(head):
        faults.add(_whole("should be JSON lines, one object in each", "an array (jq -c '.[]' makes lines of it)"))
    else:
        yield from _csv(path, head, layout, faults)


def _csv(path: Path, head: bytes, layout: TraceTable, faults: Faults) -> Iterator[TraceBlock]:
    line = head.partition(b"\n")[0].decode(errors="replace").removeprefix("\ufeff").rstrip("\r")
    try:
        first = next(csv.reader([line]), [])
    except csv.Error:
        faults.add(_whole("should begin with a line of CSV", _cut(line.encode())))
        return
    named = bool(layout.places_of(first)) or _names(first)
    places = layout.places_of(first) if named else layout.fixed()
    if _unfit(first, named, layout, faults):
        return
    lines = _Lines(2 if named else 1, faults)
    for batch in _batches(path, len(first), list(places.values()), lines):
        columns = dict(zip(places, batch.columns, strict=True))
        yield _without_blanks(
            TraceBlock(columns, lines.of(batch.num_rows), {field: at + 1 for field, at in places.items()})
        )


def _names(first: list[str]) -> bool:
    """Return whether a line could be one of names, whatever these are: no cell is empty or a number."""
    return bool(first) and not any(_number(cell) for cell in first) and all(cell.strip() for cell in first)


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _without_blanks(block: TraceBlock) -> TraceBlock:
    """Return a block without the lines that are blank, in which all cells are empty."""
    empty = [pc.equal(column, "").to_numpy(zero_copy_only=False) for column in block.columns.values()]
    rows = ~np.logical_and.reduce(empty)
    if rows.all():
        return block
    columns = {field: column.filter(pa.array(rows)) for field, column in block.columns.items()}
    return TraceBlock(columns, block.lines[rows], block.places)


def _unfit(first: list[str], named: bool, layout: TraceTable, faults: Faults) -> bool:
    """Add what is wrong with the first line of a CSV file; return whether anything is."""
    before = faults.count
    if not first:
        faults.add(_whole(f"should hold the table {layout.table}", "an empty file"))
    elif named:
        for name in layout.missing(layout.places_of(first)):
            faults.add(FileFault(1, 1, name, "column is missing", f"columns {', '.join(first)}"[:200]))
    elif not layout.widths:
        faults.add(_whole("should begin with a line of column names", ", ".join(first)[:60]))
    elif len(first) not in layout.widths:
        fields = " or ".join(map(str, layout.widths))
        faults.add(FileFault(1, 1, "row", f"should have {fields} fields, as {layout.table} has", str(len(first))))
    return faults.count > before


@dataclass(slots=True)
class _Lines:
    """The lines that rows stand in, where some lines hold no row."""

    next: int
    faults: Faults
    skipped: list[int] = field(default_factory=list)

    def ragged(self, row: pacsv.InvalidRow) -> str:
        """Take note of a row of another length, which is left out."""
        self.skipped.append(row.number)
        problem = f"should have {row.expected_columns} fields"
        self.faults.add(FileFault(row.number, 1, "row", problem, str(row.actual_columns)))
        return "skip" if len(self.skipped) < _MOST_RAGGED else "error"

    def of(self, rows: int) -> Ints:
        """Return the lines of the next rows."""
        waiting = [line for line in self.skipped if line >= self.next]
        lines = np.setdiff1d(np.arange(self.next, self.next + rows + len(waiting)), waiting)[:rows]
        self.next = int(lines[-1]) + 1 if rows else self.next
        return lines.astype(np.int64)


def _batches(path: Path, width: int, places: list[int], lines: _Lines) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a CSV file as text until its end, or until it cannot be read on."""
    names = [f"f{at}" for at in range(width)]
    wanted = [names[at] for at in places]
    try:
        with text_of(path) as stream:
            yield from pacsv.open_csv(
                stream,
                pacsv.ReadOptions(
                    use_threads=False, block_size=_BLOCK_BYTES, column_names=names, skip_rows=lines.next - 1
                ),
                pacsv.ParseOptions(invalid_row_handler=lines.ragged, ignore_empty_lines=False),
                pacsv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
            )
    except (pa.ArrowException, DamagedError, OSError) as error:
        if len(lines.skipped) < _MOST_RAGGED:
            lines.faults.add(_unreadable(lines, error))


def _json(path: Path, layout: TraceTable, faults: Faults) -> Iterator[TraceBlock]:
    columns = {column.field: _member(column.names[0]) for column in layout.columns}
    places = dict.fromkeys(columns, 1)
    rows: list[object] = []
    lines: list[int] = []
    for number, text in _lines_of(path, faults):
        try:
            rows.append(json.loads(text))
            lines.append(number)
        except (ValueError, RecursionError):
            faults.add(FileFault(number, 1, "row", "should be one JSON object", _cut(text)))
        if len(rows) == _BLOCK_ROWS:
            if _lacking(rows, lines, layout, faults):
                return
            yield _block(rows, lines, columns, places)
            rows, lines = [], []
    if rows and not _lacking(rows, lines, layout, faults):
        yield _block(rows, lines, columns, places)


def _lacking(rows: list[object], lines: list[int], layout: TraceTable, faults: Faults) -> bool:
    """Add the members that no row has, if one is among them that every row needs; return whether there is one.

    Members that may be empty are often left out where they are.
    """
    absent = [
        column
        for column in layout.columns
        if column.required
        and not any(column.names[0].partition(".")[0] in row for row in rows if isinstance(row, dict))
    ]
    if not any(column.kind in {"name", "time"} for column in absent):
        return False
    members = next((", ".join(map(str, row)) for row in rows if isinstance(row, dict)), "")
    for column in absent:
        faults.add(FileFault(lines[0], 1, column.names[0], "member is missing", f"members {members or 'none'}"[:200]))
    return True


def _lines_of(path: Path, faults: Faults) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and the texts of the lines of a file that are not blank."""
    number = 0
    try:
        with stream_of(path) as stream:
            for lines in portions(stream):
                for text in lines:
                    number += 1
                    if text.strip():
                        yield number, text
    except (DamagedError, OSError) as error:
        faults.add(FileFault(number + 1, 1, "file", "cannot be read from here on", _said(error)))


def _block(
    rows: list[object], lines: list[int], columns: Mapping[str, Callable[[object], str]], places: Mapping[str, int]
) -> TraceBlock:
    texts = {
        column: pa.array([_whole_text(member(row)) for row in rows], pa.string()) for column, member in columns.items()
    }
    return TraceBlock(texts, np.array(lines, dtype=np.int64), places)


def _whole_text(text: str) -> str:
    """Return a text without halves of characters, which JSON can escape and no other file can hold."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _member(name: str) -> Callable[[object], str]:
    """Return the function from an object to the text of its member of that name; a dot goes into a member."""
    outer, _, inner = name.partition(".")

    def member(row: object) -> str:
        value = row.get(outer) if isinstance(row, dict) else None
        if inner and value is not None:
            value = value.get(inner) if isinstance(value, dict) else f"{json.dumps(value)} in place of an object"
        return value if isinstance(value, str) else "" if value is None else json.dumps(value)

    return member


def _parquet(path: Path, layout: TraceTable, faults: Faults) -> Iterator[TraceBlock]:
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        faults.add(_whole("should be a whole Parquet file", _said(error)))
        return
    names = [file.schema.column(at).path for at in range(len(file.schema))]
    places = layout.places_of(names)
    missing = layout.missing(places)
    for name in missing:
        faults.add(FileFault(1, 1, name, "column is missing", f"columns {', '.join(names)}"[:200]))
    if missing:
        return
    lines = _Lines(2, faults)
    batches = iter(file.iter_batches(_BLOCK_ROWS, columns=[names[at] for at in places.values()], use_threads=False))
    while (batch := _next(batches, lines, faults)) is not None:
        flat = pa.Table.from_batches([batch]).flatten().combine_chunks()
        columns = {field: flat.column(names[at]).combine_chunks() for field, at in places.items()}
        yield TraceBlock(columns, lines.of(len(flat)), {field: at + 1 for field, at in places.items()})


def _next(batches: Iterator[pa.RecordBatch], lines: _Lines, faults: Faults) -> pa.RecordBatch | None:
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError) as error:
        faults.add(_unreadable(lines, error))
        return None


def _whole(problem: str, got: str) -> FileFault:
    return FileFault(1, 1, "file", problem, got)


def _unreadable(lines: _Lines, error: Exception) -> FileFault:
    return FileFault(lines.next, 1, "file", "cannot be read from here on", _said(error))


def _said(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:120]


def _cut(text: bytes) -> str:
    return json.dumps(text[:40].decode(errors="replace"))
