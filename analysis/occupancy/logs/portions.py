"""A log of requests as portions of its rows, of any format: checked as they are read, and their faults collected."""

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.occupancy.logs.cancelled import CancelledJobs, none_served
from analysis.occupancy.logs.documents import document_rows
from analysis.occupancy.logs.log import (
    FARTHEST_S,
    PER_SECOND,
    LogFinding,
    LogOptions,
    Roles,
    begin_of,
    pieces_of,
)
from analysis.occupancy.logs.log import roles as roles_of
from analysis.occupancy.logs.reading import (
    TEXT,
    cell_quarters,
    csv_types,
    hours_of,
    is_json,
    is_swf,
    is_zoned,
    line_form,
    not_behind,
    numbers_in,
    plain_frame,
    refuse_for_swf,
    table_names,
    text_quarters,
)
from analysis.occupancy.logs.records import (
    MANY_LINES,
    NO_OBJECTS,
    OBJECT,
    SPAN,
    SPAN_TIMES,
    UNLIKE,
    Times,
    chosen,
    flat,
    format_times,
    has_object_lines,
    has_times,
    held_back,
    json_form,
    matched,
    no_fields,
    no_objects,
    no_requests,
    other_objects,
    parsed,
    record_cells,
    refuse_most,
    with_parts,
    with_path,
)
from analysis.occupancy.logs.spans import (
    OTHER,
    PLAIN,
    JsonRecord,
    answers_requests,
    form_of_object,
    lost_of,
    notes_on_spans,
    rows_of,
    service_of,
)
from analysis.occupancy.logs.swf import job_lines, jobs_of, lines_of, never_ran, no_jobs, parallel_notes
from analysis.occupancy.logs.time_cells import ZONELESS, PartTally, careful_columns
from analysis.occupancy.logs.upstream import behind, refuse_upstream
from analysis.tables.bytes import PARQUET, head_of, is_packed
from analysis.tables.cells import FileCells, cells_of_table, csv_cells
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Ints, Small

_MOST_FAULTS = 1000
_BATCH = 1 << 14
"""Requests of a JSON document in a portion."""


class _Batches(Protocol):
    """Objects of JSON with their numbers, so many at a time, as often as they are wanted."""

    def __call__(self, *, note: bool) -> Iterator[list[tuple[int, JsonRecord]]]:
        """Yield them; note what is left out if that is wanted."""


class Sizes(NamedTuple):
    """How much of a log is in memory at a time; no answer depends on it."""

    rows: int = 1 << 18
    """Of a portion."""
    piece_bytes: int = 1 << 23
    """Of a portion of text."""
    part_rows: int = 1 << 20
    """Of a part that is sorted."""


class Portion(NamedTuple):
    """Some rows of a file."""

    times: Mapping[str, pa.ChunkedArray]
    names: pa.ChunkedArray | None
    """What names requests, if a column does."""
    others: pd.DataFrame | None
    """All but times, if that was wanted."""
    behind: tuple[Floats, Floats] | None = None
    """As of `upstream.behind`, if that was wanted."""
    quarters: Small | None = None
    """(n,) offsets that the stamps say, if they do."""


class PortionReader:
    """A file as portions, and what was learnt of it on the way."""

    def __init__(
        self,
        path: Path,
        options: LogOptions,
        sizes: Sizes,
        *,
        rest: bool,
        zoned: Collection[str] = (),
        is_stamp: Mapping[str, bool] | None = None,
    ) -> None:
        self.path, self.options, self.sizes, self.rest = path, options, sizes, rest
        self.zoned = zoned
        """Columns whose stamps should all have a zone."""
        self.which = Roles()
        self.form: Times | None = None
        self.names: list[str] = []
        self.others: list[str] = []
        self.faults: list[FileFault] = []
        self.counted = 0
        """Faults beyond these."""
        self.is_stamp = is_stamp or {}
        """Whether columns hold stamps or numbers, where that is known."""
        self.tally = PartTally(self.is_stamp)
        self.kinds: dict[str, set[bool]] = {}
        """Whether a column holds stamps, in some portion."""
        self.zones: dict[str, set[bool]] = {}
        """Whether stamps of a column say their zone, in some portion."""
        self.rows = 0
        self.runs: list[tuple[int, int]] = []
        """As of `spool.Spool`."""
        self.not_read: list[int] = []
        self.lines = 0
        self.without_times = 0
        self.lost, self.held = 0, PLAIN
        """Requests in JSON of another form than the first object, and what that holds."""
        self.unlike = NO_OBJECTS
        self.notes: list[str] = []
        self.hours: Floats | None = None
        """Those of stamps in Parquet that say their zone."""
        self.stamp_kind = pa.null()
        self.is_swf = False
        """Whether times are seconds from the beginning of a log of jobs."""
        self.cancelled = CancelledJobs()
        self.findings: list[LogFinding] = []

    def portions(self) -> Iterator[Portion]:
        """Yield some rows after the others; faults are collected."""
        head = begin_of(self.path)
        lines = line_form(head)
        if self.options.form is not None:
            yield from self._lines(*format_times(self.options.form), parts=False)
        elif head.startswith(PARQUET):
            yield from self._parquet()
        elif is_json(head):
            yield from self._json()
        elif lines is not None:
            yield from self._lines(*lines, parts=True)
        elif is_swf(head):
            yield from self._swf()
        else:
            yield from self._csv()

    def _parquet(self) -> Iterator[Portion]:
        if is_packed(self.path):
            problem = "should be unpacked: with --on-disk Parquet is read where it lies"
            raise FileError([FileFault(1, 1, "file", problem, "a packed one")])
        line = 2
        try:
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)
            self._named(file.schema_arrow.names)
            for batch in file.iter_batches(self.sizes.rows, columns=self._wanted()):
                table = pa.Table.from_batches([batch])
                self._note_hours(table)
                yield from self._quickly(table, partial(cells_of_table, table), line - 2)
                line += len(table)
        except (pa.ArrowException, OSError):
            problem = "should be a whole Parquet file"
            raise FileError([FileFault(1, 1, "file", problem, "one that is cut off or damaged")]) from None

    def _note_hours(self, table: pa.Table) -> None:
        """Note in which hours the stamps of a part of Parquet are, if they say their zone."""
        stamp = table[self.stamp]
        if is_zoned(stamp.type):
            known = stamp.drop_null().cast(pa.timestamp("s", stamp.type.tz), safe=False).cast(pa.int64())
            hours = hours_of(np.asarray(known.to_numpy(), dtype=np.float64))
            self.hours = hours if self.hours is None else np.union1d(self.hours, hours)
            self.stamp_kind = stamp.type

    @property
    def stamp(self) -> str:
        """The column whose clock is that of the log."""
        return str(self.which.arrival or self.which.departure)

    def _csv(self) -> Iterator[Portion]:
        names, header, line, types = table_names(self.path), b"", 1, dict[str, pa.DataType]()
        for piece, lines in self._whole_rows():
            begun = bool(header)
            if not begun:
                header = piece.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0] + b"\n"
                first = csv_cells(header)
                if first.faults and not names:
                    raise FileError(first.faults)
                self._named(names or first.names)
                types = dict.fromkeys(self._wanted(), TEXT) | (self._types() if names else {})
            text = header + piece if begun else piece
            rows, skipped = lines - (not begun), line - 2 if begun else 0
            line += lines
            if not rows:
                continue
            table = self._parsed(text, types) if names and text.count(b'"') % 2 == 0 else None
            if table is not None and len(table) != rows:
                table = None
            yield from self._quickly(table, partial(csv_cells, text), skipped, text)

    def _swf(self) -> Iterator[Portion]:
        """Yield the jobs of the Standard Workload Format that were not cancelled, as `swf` reads them."""
        if self.options.upstream:
            raise not_behind()
        refuse_for_swf(self.options)
        self.which, self.is_swf = Roles("arrival_s", "departure_s", request="request"), True
        line, parallel, never, waited_s, count, served, far = 1, 0, 0, 0.0, 0, 0, list[FileFault]()
        for piece, _ in pieces_of(self.path, self.sizes.piece_bytes):
            lines = lines_of(piece + b"\n")
            rows = job_lines(lines, line)
            line += len(lines)
            if not rows:
                continue
            jobs = jobs_of(rows)
            self._add(jobs.wrong)
            far += jobs.far[: _MOST_FAULTS - len(far)]
            parallel, never, waited_s = parallel + jobs.parallel, never + jobs.never, waited_s + jobs.never_waited_s
            cancelled = jobs.table["cancelled"]
            if cancelled.any():
                self.cancelled.add(jobs.table[cancelled])
            table = jobs.table[~cancelled]
            count, served = count + len(rows), served + len(table)
            if len(table) and not (self.faults or far):
                columns = {name: pa.chunked_array([table[name].to_numpy()]) for name in self.which.times()}
                yield Portion(columns, pa.chunked_array([pa.array(table["request"])]), None)
        self._add(far)
        if not count:
            raise no_jobs(line - 1)
        if not served and not self.faults:
            raise none_served(count)
        self.notes, self.findings = list(parallel_notes(parallel)), list(never_ran(never, waited_s))

    def _whole_rows(self) -> Iterator[tuple[bytes, int]]:
        """Yield pieces of a table that do not end within quotation marks; damage is told beside other faults."""
        begun, before = b"", 0
        try:
            for piece, lines in pieces_of(self.path, self.sizes.piece_bytes):
                text = begun + piece
                if text.count(b'"') % 2 and len(begun) <= csv.field_size_limit():
                    begun, before = text + b"\n", before + lines
                    continue
                yield text, before + lines
                begun, before = b"", 0
        except FileError as error:
            self._add(error.faults)
        if begun:
            yield begun, before

    def _types(self) -> dict[str, pa.DataType]:
        """Return what the columns hold, by the first lines; nothing if these are no table, which their rows tell."""
        try:
            return csv_types(head_of(self.path), self.which)
        except (pa.ArrowException, KeyError):
            return {}

    def _parsed(self, text: bytes, types: Mapping[str, pa.DataType]) -> pa.Table | None:
        options = pacsv.ConvertOptions(include_columns=self._wanted(), column_types=types)
        try:
            return pacsv.read_csv(pa.BufferReader(text), convert_options=options)
        except (pa.ArrowException, KeyError):
            return None

    def _json(self) -> Iterator[Portion]:
        """Yield the requests of JSON, of lines or of documents, as `records` reads them."""
        of_lines = has_object_lines(self.path)
        batches = self._object_lines if of_lines else self._documents
        first = next((row for batch in batches(note=False) for _, row in batch), None)
        if first is None and of_lines:
            for _ in batches(note=True):
                pass
        if first is None:
            raise no_requests()
        kinds = (kind for kind, _ in document_rows(self.path, self.sizes.piece_bytes) if kind != OTHER)
        self.held = form_of_object(first) if of_lines else next(kinds)
        if self.held != PLAIN:
            yield from self._spans(batches, self.held)
            return
        names = list[str]()
        for batch in batches(note=True):
            record = "" if of_lines else OBJECT
            numbers = [number for number, _ in batch]
            cells = record_cells([dict(flat(row)) for _, row in batch], numbers, names, record=record)
            names = names or list(cells.names)
            if not names:
                raise no_fields(batch[0][1], batch[0][0], record)
            cells = with_path(cells)
            if not self.names:
                self.form = None if any(self.options.stated()[:3]) else json_form(cells.names)
            if self.form is not None and self.form.by_end:
                rows = has_times(cells, self.form)
                self.without_times += int(np.count_nonzero(~rows))
                cells = chosen(cells, rows)
            yield from self._quickly(None, partial(_same, cells), 0)
        self.findings = other_objects(self.lost, self.held)

    def _spans(self, batches: "_Batches", form: str) -> Iterator[Portion]:
        """Yield the spans that answer requests, or all of them if none says that it does."""
        of_lines = batches == self._object_lines

        def spans(*, note: bool) -> Iterator[list[JsonRecord]]:
            for batch in batches(note=note):
                yield [span for _, row in batch for span in (rows_of(row, form) if of_lines else (row,))]

        served = any(answers_requests(span) for batch in spans(note=False) for span in batch)
        self.form = None if any(self.options.stated()[:3]) else SPAN_TIMES[form]
        names, count, others, services = list[str](), 0, 0, set[str]()
        for every in spans(note=True):
            numbered = enumerate(every, count + others + 1)
            lines = [number for number, span in numbered if not served or answers_requests(span)]
            batch = [every[line - 1 - count - others] for line in lines]
            services |= {service_of(span) for span in batch if served}
            count, others = count + len(batch), others + len(every) - len(batch)
            if batch:
                cells = record_cells(batch, lines, names, record=SPAN)
                names = names or list(cells.names)
                yield from self._quickly(None, partial(_same, cells), 0)
        if not count:
            raise no_requests()
        self.notes, self.findings = notes_on_spans(count, others, sorted(services)), other_objects(self.lost, form)

    def _documents(self, *, note: bool) -> Iterator[list[tuple[int, JsonRecord]]]:
        """Yield the objects of JSON documents, or their spans, numbered, and count others if it is wanted."""

        def rows() -> Iterator[JsonRecord]:
            for kind, row in document_rows(self.path, self.sizes.piece_bytes):
                if kind != OTHER:
                    yield row
                elif note:
                    self.lost += 1

        numbered = enumerate(rows(), 1)
        while batch := list(islice(numbered, min(self.sizes.rows, _BATCH))):
            yield batch

    def _object_lines(self, *, note: bool) -> Iterator[list[tuple[int, JsonRecord]]]:
        """Yield the objects of lines with the numbers of these, and note which lines are none if that is wanted."""
        line, unlike = 1, b""
        for piece, lines in pieces_of(self.path, self.sizes.piece_bytes):
            text = piece.removeprefix(b"\xef\xbb\xbf") if line == 1 else piece
            numbered = [(line + at, parsed(row)) for at, row in enumerate(text.split(b"\n")) if row.strip()]
            objects = [(number, row) for number, row in numbered if isinstance(row, dict)]
            if note:
                other = [number - 1 for number, row in numbered if not isinstance(row, dict)]
                if other and not self.not_read:
                    unlike = text.split(b"\n")[other[0] - (line - 1)]
                self.not_read += other
                self.lines += len(numbered)
                if 2 * len(self.not_read) > max(MANY_LINES, self.lines):
                    raise no_objects(self.not_read[0], unlike)
                lost = [lost_of(row, self.held) for _, row in objects]
                objects = [pair for pair, gone in zip(objects, lost, strict=True) if not gone]
                self.lost += sum(lost)
            line += lines
            if objects:
                yield objects
        if note and 2 * len(self.not_read) >= self.lines:
            raise no_objects(self.not_read[0] if self.not_read else 0, unlike)

    def _lines(self, pattern: str, form: Times | None, *, parts: bool) -> Iterator[Portion]:
        """Yield the lines of a regular expression, as `records` reads them; with parts those of HAProxy or AWS."""
        self.form, self.unlike = None if any(self.options.stated()[:3]) else form, UNLIKE
        line, unlike, held_s, refused = 1, "", 0.0, 0
        for piece, lines in pieces_of(self.path, self.sizes.piece_bytes):
            cells, other, filled, first = matched(piece, line, pattern)
            unlike = unlike if self.not_read else first
            self.not_read += other.tolist()
            self.lines += filled
            line += lines
            if not len(cells.lines):
                continue
            if parts:
                cells, more_s, without = with_parts(cells)
                held_s, refused = held_s + more_s, refused + without
            else:
                cells = with_path(cells)
            if self.form is not None and (self.form.by_end or parts):
                rows = has_times(cells, self.form)
                self.without_times += int(np.count_nonzero(~rows))
                cells = chosen(cells, rows)
            if len(cells.lines):
                yield from self._quickly(None, partial(_same, cells), 0)
        refuse_most(np.array(self.not_read, np.int64), self.lines, unlike)
        self.notes = held_back(held_s, refused)

    def _named(self, names: Sequence[str]) -> None:
        self.names, self.which = list(names), roles_of(names, *self.options.stated())
        self.others = [name for name in names if name not in self.which.times()]

    def _wanted(self) -> list[str]:
        request = [self.which.request] if self.which.request is not None else []
        return [*self.which.times(), *(self.others if self.rest else request)]

    def _quickly(
        self, table: pa.Table | None, cells_of: Callable[[], FileCells], skipped: int, text: bytes = b""
    ) -> Iterator[Portion]:
        """Yield a portion as Arrow reads it, of a text if it is one, or checked cell by cell if anything is unusual.

        Its faults are collected.
        """
        if self.options.upstream and self.form is None:
            refuse_upstream(None, self.which.times())
        if table is not None and _is_sound(table, self.which) and not self._is_unlike(table):
            others = plain_frame(table.select(self.others)) if self.rest else None
            request = self.which.request
            names = None if request is None else table[request]
            times = {name: table[name] for name in self.which.times()}
            for name, column in times.items():
                self.tally.add(name, *self._counts(column))
            if self._note(times, skipped + 2 + np.arange(len(table))):
                yield Portion(times, names, others, None, self._quarters(table, text))
            return
        cells = cells_of()
        cells.lines = cells.lines + skipped
        cells.faults = [
            fault._replace(line=fault.line + skipped) for fault in cells.faults if not skipped or fault.line > 1
        ]
        if not cells.names:
            raise FileError(cells.faults)
        try:
            self.which, columns = careful_columns(cells, replace(self.options, zone=None), self.form, tally=self.tally)
        except FileError as error:
            if any(fault.line <= 1 for fault in error.faults):
                raise
            self._add(error.faults)
            return
        for name in self.which.times():
            if self._lacks_zone(name, columns[name]):
                self._add(cells.faults_of(name, ~np.asarray(columns[name].is_null()), ZONELESS))
        if not self._note(columns, cells.lines):
            return
        self.names = cells.names
        self.others = [name for name in cells.names if name not in self.which.times()]
        names = columns.get(str(self.which.request))
        others = pd.DataFrame({name: cells.columns[name].astype(str) for name in self.others}) if self.rest else None
        after = None
        if self.options.upstream:
            refuse_upstream(self.form, cells.names)
            after = None if self.form is None else behind(cells, self.form)
        quarters = cell_quarters(cells, self.stamp) if is_zoned(columns[self.stamp].type) else None
        yield Portion({name: columns[name] for name in self.which.times()}, names, others, after, quarters)

    def _quarters(self, table: pa.Table, text: bytes) -> Small | None:
        """Return the offsets that stamps of a portion of CSV say."""
        if not text or not is_zoned(table[self.stamp].type) or self.options.zone is not None:
            return None
        options = pacsv.ConvertOptions(include_columns=[self.stamp], column_types={self.stamp: pa.string()})
        return text_quarters(pacsv.read_csv(pa.BufferReader(text), convert_options=options)[self.stamp])

    def _is_unlike(self, table: pa.Table) -> bool:
        """Return whether a portion has to be told what its columns hold, as most others hold it."""
        times = {name: table[name] for name in self.which.times()}
        return any(self._lacks_zone(name, column) or not self._is_kind(name, column) for name, column in times.items())

    def _is_kind(self, name: str, column: pa.ChunkedArray) -> bool:
        """Return whether a column holds stamps or numbers, whichever it should, if that is known."""
        is_stamp = bool(pa.types.is_timestamp(column.type))
        return column.null_count == len(column) or self.is_stamp.get(name, is_stamp) == is_stamp

    def _counts(self, column: pa.ChunkedArray) -> tuple[int, int]:
        """Return how many cells of a column are numbers, and how many are stamps."""
        known = len(column) - column.null_count
        return (0, known) if pa.types.is_timestamp(column.type) else (known, 0)

    def _lacks_zone(self, name: str, column: pa.ChunkedArray) -> bool:
        """Return whether stamps of a column have no zone that should have one."""
        kind, known = column.type, column.null_count < len(column)
        return name in self.zoned and pa.types.is_timestamp(kind) and kind.tz is None and known

    def _note(self, times: Mapping[str, pa.ChunkedArray], lines: Ints) -> bool:
        """Note in which lines a portion is, and what its columns hold; return whether that is the same so far."""
        begins = np.flatnonzero(np.diff(lines, prepend=-1) != 1) if len(lines) else lines
        follows = self.runs and len(lines) and self.rows - self.runs[-1][0] + self.runs[-1][1] == lines[0]
        self.runs += [(self.rows + int(at), int(lines[at])) for at in (begins[1:] if follows else begins)]
        self.rows += len(lines)
        for name in self.which.times():
            kind, known = times[name].type, times[name].null_count < len(times[name])
            if pa.types.is_timestamp(kind) and known:
                self.zones.setdefault(name, set()).add(kind.tz is not None)
            if known and not pa.types.is_duration(kind):
                self.kinds.setdefault(name, set()).add(pa.types.is_timestamp(kind))
        return not self._mixed()

    def _mixed(self) -> list[str]:
        """Return the columns that hold stamps in some portions and numbers in others."""
        return [name for name, kinds in self.kinds.items() if len(kinds) > 1]

    def _add(self, faults: Iterable[FileFault]) -> None:
        """Take faults: the first thousand are remembered, all are counted."""
        for fault in faults:
            if fault.problem == ZONELESS:
                self.zones[fault.field] = {True, False}
            if len(self.faults) < _MOST_FAULTS:
                self.faults.append(fault)
            else:
                self.counted += 1

    def refuse(self) -> None:
        """Raise the faults, if there are any; those of a second reading if portions are unlike: most cells decide."""
        faults = [*self.faults, *self.tally.faults()]
        zoned = {name for name, zones in self.zones.items() if len(zones) > 1}
        both = [name for name, stamps in self.tally.stamps.items() if stamps and self.tally.numbers[name]]
        if not self.is_stamp and (zoned or self._mixed() or (faults and both)):
            is_stamp = {name: stamps > self.tally.numbers[name] for name, stamps in self.tally.stamps.items()}
            again = PortionReader(self.path, self.options, self.sizes, rest=False, zoned=zoned, is_stamp=is_stamp)
            for _ in again.portions():
                pass
            again.refuse()
        for name in self._mixed():
            faults.append(FileFault(0, 0, name, "should hold the same kind of times throughout", "stamps and numbers"))
        if faults:
            raise FileError(faults, counted=self.counted)


def _same(cells: FileCells) -> FileCells:
    return cells


def _is_sound(table: pa.Table, which: Roles) -> bool:
    """Return whether times are time stamps or numbers near enough, and durations not negative."""
    for name in which.times():
        if pa.types.is_timestamp(table[name].type):
            continue
        values = numbers_in(table[name])
        if (np.abs(values) > FARTHEST_S * PER_SECOND["ns"]).any() or (name == which.duration and (values < 0).any()):
            return False
    return True
