"""A log of requests as numbers on disk: read a portion at a time, so that memory does not grow with its length."""

import csv
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis.occupancy.logs.clocks import NO_OFFSET, localised, set_back_in
from analysis.occupancy.logs.documents import document_rows
from analysis.occupancy.logs.hygiene import none_served, row_digests
from analysis.occupancy.logs.log import (
    FARTHEST_S,
    PER_SECOND,
    LogFinding,
    LogOptions,
    Roles,
    begin_of,
    first_too_long,
    names_requests,
    names_several,
    pieces_of,
)
from analysis.occupancy.logs.log import roles as roles_of
from analysis.occupancy.logs.reading import (
    TEXT,
    TimeBase,
    base_of,
    cell_quarters,
    clock_finding,
    csv_types,
    extent_of,
    hours_of,
    is_json,
    is_swf,
    is_zoned,
    line_form,
    not_behind,
    numbers_in,
    passed_s,
    plain_frame,
    refuse_for_swf,
    refuse_undecided,
    table_names,
    text_quarters,
    zone_notes,
    zone_quarters,
)
from analysis.occupancy.logs.records import (
    MANY_LINES,
    NO_OBJECTS,
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
    left_out,
    matched,
    no_objects,
    no_requests,
    parsed,
    record_cells,
    refuse_most,
    understood,
    with_parts,
    with_path,
    without_times,
)
from analysis.occupancy.logs.rotation import together
from analysis.occupancy.logs.spans import PLAIN, JsonRecord, answers_requests, form_of_object, notes_on_spans, rows_of
from analysis.occupancy.logs.swf import job_lines, jobs_of, never_ran, no_jobs, parallel_notes
from analysis.occupancy.logs.time_cells import ZONELESS, PartTally, careful_columns
from analysis.occupancy.logs.upstream import behind, behind_notes, refuse_unreached, refuse_upstream
from analysis.tables.bytes import PARQUET, head_of, is_packed
from analysis.tables.cells import FileCells, cells_of_table, csv_cells
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Ints, Small, UInts

_MISSING = np.iinfo(np.int64).min
_MOST_FAULTS = 1000
_NO_TIME = "should hold at least one time"
_BATCH = 1 << 14
"""Requests of a JSON document in a portion."""
_SAMPLE = 100_000
"""Rows, evenly over the log, that parts on disk are divided by."""


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


@dataclass(slots=True)
class CancelledJobs:
    """Jobs that were cancelled before any service, which are not among the requests."""

    jobs: int = 0
    waited_s: float = 0.0
    unknown: int = 0

    def add(self, waited: "pd.Series[float]") -> None:
        """Count jobs by how long they waited, NaN where that is unknown."""
        self.jobs, self.unknown = self.jobs + len(waited), self.unknown + int(waited.isna().sum())
        self.waited_s += float(waited.sum())


class _Portion(NamedTuple):
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


class LogChunk(NamedTuple):
    """Some requests of a log, seconds since the log's origin; NaN: not seen."""

    came: Floats
    left: Floats
    name: UInts | None
    """Digest of what names each, if that is known."""
    own: UInts | None
    """The same without what several requests share."""
    stamp: Floats | None = None
    """What an access log says of each, as `took`: its stamp, before ends were put between whole seconds."""
    took: Floats | None = None


class FileSpool(Protocol):
    """The requests of one file of a log, in the order of its rows, in a file of numbers."""

    @property
    def file(self) -> Path:
        """Return where they are."""

    @property
    def which(self) -> Roles:
        """Return the columns of the times, where there are columns."""

    @property
    def rows(self) -> int:
        """Return how many there are."""

    @property
    def naming(self) -> str | None:
        """Return what the names are of, as `Spool.naming`."""

    @property
    def own(self) -> bool:
        """Return whether names contain what several requests share."""

    @property
    def own_nothing(self) -> bool:
        """Return whether there is nothing beside that."""

    @property
    def numbers(self) -> bool:
        """Return whether names are numbers of the rows of this file."""

    @property
    def moved(self) -> bool:
        """Return whether ends were put between ticks of the stamps."""

    @property
    def resolution_s(self) -> float:
        """Return what stamps were multiples of before that."""

    @property
    def origin_s(self) -> float:
        """Return what times count from, in seconds since 1970."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was supposed."""

    @property
    def findings(self) -> tuple[LogFinding, ...]:
        """Return what was seen."""

    def chunks(self, rows: int) -> Iterator[LogChunk]:
        """Yield the requests, so many at a time."""

    def offsets(self, rows: int) -> Iterator[tuple[Floats, Small]]:
        """Yield stamps, seconds since 1970, and the offsets from UTC that they say, so many at a time; none of none."""


@dataclass(slots=True)
class Spool:
    """A log's requests, in the order of its rows, in a file of numbers."""

    file: Path
    which: Roles
    kinds: dict[str, pa.DataType]
    """Types of the columns of times."""
    bases: dict[str, TimeBase] = field(default_factory=dict)
    rows: int = 0
    naming: str | None = None
    """What the names are of: request, id, or rest, all that the rows say; None: there are none."""
    own: bool = False
    """Whether `rest` contains what several requests share."""
    own_nothing: bool = False
    """Whether there is nothing beside that, so that it tells requests of one file from no others of it."""
    others: bool = False
    """Whether the file says more of each row than its times."""
    notes: tuple[str, ...] = ()
    findings: tuple[LogFinding, ...] = ()
    numbers: bool = False
    moved: bool = False
    resolution_s: float = 0.0
    behind: bool = False
    """Whether times are to be those of the servers behind a proxy."""
    quarters: bool = False
    """Whether stamps say their offset from UTC, as they are written."""
    cancelled: CancelledJobs = field(default_factory=CancelledJobs)
    hours: tuple[Floats, Small] | None = None
    """The hours of stamps in Parquet, and what their zone is ahead of UTC in each."""
    places: dict[str, int] = field(default_factory=dict)
    """Places of the file's columns, from 1."""
    runs: Sequence[tuple[int, int]] = ()
    """Rows, from 0, and the lines that they are in, where rows that follow are in the lines that follow."""

    def line_of(self, row: int) -> int:
        """Return the line of a row, from 0, by the runs."""
        begin, line = self.runs[bisect_right(self.runs, (row, self.rows + self.runs[-1][1])) - 1]
        return line + row - begin

    @property
    def dtype(self) -> np.dtype[np.void]:
        """How a row is stored."""
        names = [("name", np.uint64)] * (self.naming is not None) + [("own", np.uint64)] * self.own
        behind = [("delay", np.float64), ("behind", np.float64)] * self.behind
        quarters = [("quarters", np.int8)] * self.quarters
        return np.dtype(
            [(f"time{at}", _stored(kind)) for at, kind in enumerate(self.kinds.values())] + names + behind + quarters
        )

    @property
    def origin_s(self) -> float:
        """What times count from, in seconds since 1970; 0 if they are the log's own."""
        return min(base.since_s for name, base in self.bases.items() if name != self.which.duration)

    def chunks(self, rows: int) -> Iterator[LogChunk]:
        """Yield the requests, so many at a time."""
        with self.file.open("rb") as file:
            while len(stored := np.fromfile(file, self.dtype, rows)):
                yield self._requests(stored)

    def offsets(self, rows: int) -> Iterator[tuple[Floats, Small]]:
        """Yield stamps, seconds since 1970, and the offsets from UTC that they say, so many at a time; none of none."""
        stamp = str(self.which.arrival or self.which.departure)
        if self.hours is not None:
            yield self.hours
        elif self.quarters:
            with self.file.open("rb") as file:
                while len(stored := np.fromfile(file, self.dtype, rows)):
                    yield self._seconds(stored)[stamp] + self.origin_s, stored["quarters"].copy()

    def clocks(self, rows: int) -> tuple[LogFinding, ...]:
        """Return the finding of stamps without a zone that a change of clocks put back, as `reading` does.

        Parameters
        ----------
        rows : to be read at a time
        """
        for at, (name, kind) in enumerate(self.kinds.items()):
            if name in self.which.times() and pa.types.is_timestamp(kind) and kind.tz is None:
                row = set_back_in(self._stamps(at, kind, rows))
                if row is not None:
                    return (clock_finding(row, self.rows),)
        return ()

    def localise(self, zone: str, rows: int) -> dict[str, tuple[float, ...]]:
        """Put stamps without a zone in one, as `reading` does; return the least and the largest of each column.

        Parameters
        ----------
        zone : such as Europe/Berlin
        rows : to be read at a time
        """
        extents = dict[str, tuple[float, ...]]()
        for at, (name, kind) in enumerate(self.kinds.items()):
            if not (pa.types.is_timestamp(kind) and kind.tz is None):
                continue
            step, zoned = set_back_in(self._stamps(at, kind, rows)), pa.timestamp(kind.unit, "UTC")
            stored = np.memmap(self.file, self.dtype, "r+")
            for begin in range(0, len(stored), rows):
                part = stored[begin : begin + rows]
                ticks = pa.array(part[f"time{at}"], mask=part[f"time{at}"] == _MISSING).cast(kind)
                summer = np.arange(begin, begin + len(part)) < (self.rows if step is None else step)
                times = localised(ticks.to_pandas(), zone, summer)
                column = pa.chunked_array([pa.array(times, from_pandas=True).cast(zoned)])
                part[f"time{at}"] = column.cast(pa.int64()).fill_null(_MISSING).to_numpy()
                ends = (*extents.get(name, ()), *extent_of(column))
                extents[name] = (min(ends), max(ends)) if ends else ()
            stored.flush()
            self.kinds[name] = zoned
        return extents

    def _stamps(self, at: int, kind: pa.DataType, rows: int) -> Iterator[Floats]:
        """Yield a column of time stamps in seconds since 1970."""
        with self.file.open("rb") as file:
            while len(stored := np.fromfile(file, self.dtype, rows)):
                ticks = pa.array(stored[f"time{at}"], mask=stored[f"time{at}"] == _MISSING).cast(kind)
                yield (
                    np.asarray(ticks.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy(False), np.float64)
                    / 1e6
                )

    def refuse_long(self, rows: int) -> None:
        """Raise the fault of durations far longer than the file, if their unit was supposed, as `reading` does.

        Parameters
        ----------
        rows : to be read at a time
        """
        name, stamp = self.which.duration, str(self.which.arrival or self.which.departure)
        if name is None or not any(note.startswith(f"column {name} is read as seconds;") for note in self.notes):
            return
        far = first_too_long(lambda: self._known(stamp, name, rows))
        if far is not None:
            what = f"should not be far longer than the whole log, {far[1]:.4g} s"
            what += ": say --unit, or another column with --duration"
            raise FileError([FileFault(self.line_of(far[0]), self.places.get(name, 0), name, what, f"{far[2]:.4g} s")])

    def _known(self, stamp: str, duration: str, rows: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield stamps and durations of requests, seconds."""
        with self.file.open("rb") as file:
            while len(stored := np.fromfile(file, self.dtype, rows)):
                seconds = self._seconds(stored)
                yield seconds[stamp], seconds[duration]

    def _requests(self, stored: NDArray[np.void]) -> LogChunk:
        """Return stored rows as `reading` does: all times since one origin."""
        seconds, which = self._seconds(stored), self.which
        if which.duration is not None:
            took = seconds[which.duration]
            came = seconds[which.arrival] if which.arrival else seconds[str(which.departure)] - took
            left = came + took if which.arrival else seconds[str(which.departure)]
        else:
            came, left = seconds[str(which.arrival)], seconds[str(which.departure)]
        names = stored["name"] if self.naming is not None else None
        own = stored["own"] if self.own else names
        if not self.behind:
            return LogChunk(came, left, names, own)
        reached = ~np.isnan(stored["behind"])
        came = (came + stored["delay"])[reached]
        names, own = (None if column is None else column[reached] for column in (names, own))
        return LogChunk(came, came + stored["behind"][reached], names, own)

    def _seconds(self, stored: NDArray[np.void]) -> dict[str, Floats]:
        """Return the columns of times: stamps since the origin, durations."""
        seconds = dict[str, Floats]()
        for at, (name, kind) in enumerate(self.kinds.items()):
            column = pa.array(stored[f"time{at}"])
            if pa.types.is_timestamp(kind):
                ticks = pa.array(stored[f"time{at}"], mask=stored[f"time{at}"] == _MISSING)
                column = ticks.cast(kind)
            since = 0.0 if name == self.which.duration else self.bases[name].since_s - self.origin_s
            passed = passed_s(pa.chunked_array([column]), self.bases[name])
            seconds[name] = passed + since
        return seconds


@dataclass(frozen=True, slots=True)
class Spools:
    """The files of one log as one, in their order, as `rotation.joined` has them."""

    spools: Sequence[FileSpool]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(spool.rows for spool in self.spools)

    @property
    def naming(self) -> str | None:
        """What names the requests of all files; None: nothing does."""
        kinds = {spool.naming for spool in self.spools}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def own(self) -> bool:
        """Whether names of all files contain what several requests share."""
        return self.naming is not None and all(spool.own for spool in self.spools)

    @property
    def cancelled(self) -> CancelledJobs:
        """Jobs that were cancelled in any of the files."""
        every = [spool.cancelled for spool in self.spools if isinstance(spool, Spool)]
        return CancelledJobs(*(sum(getattr(jobs, name) for jobs in every) for name in ("jobs", "waited_s", "unknown")))

    @property
    def moved(self) -> bool:
        """Whether ends were put between ticks of the stamps in all files."""
        return all(spool.moved for spool in self.spools)

    @property
    def resolution_s(self) -> float:
        """What stamps were multiples of before that, the coarsest."""
        return max(spool.resolution_s for spool in self.spools)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was supposed of the files, each once."""
        return tuple(dict.fromkeys(note for spool in self.spools for note in spool.notes))

    @property
    def findings(self) -> tuple[LogFinding, ...]:
        """What was seen in the files, those of one name as one."""
        return tuple(together([finding for spool in self.spools for finding in spool.findings]))

    @property
    def origin_s(self) -> float:
        """What times count from: the first origin of a file."""
        return min(spool.origin_s for spool in self.spools)

    def chunks(self, rows: int) -> Iterator[LogChunk]:
        """Yield the requests, so many at a time."""
        naming, own, after = self.naming, self.own, 0
        for spool in self.spools:
            later_s = spool.origin_s - self.origin_s
            for chunk in spool.chunks(rows):
                names = chunk.name if naming is not None else None
                if names is not None and spool.numbers:
                    names = row_digests(names + np.uint64(after))  # other numbers in each file, and evenly spread
                alone = chunk.own if own else names
                if own and spool.own_nothing and chunk.own is not None:
                    alone = chunk.own + np.uint64(after)  # as `joined` numbers what says nothing
                stamp = None if chunk.stamp is None else chunk.stamp + later_s
                yield LogChunk(chunk.came + later_s, chunk.left + later_s, names, alone, stamp, chunk.took)
            after += spool.rows

    def sample(self, rows: int) -> tuple[Floats, Floats]:
        """Return arrivals and response times of requests evenly over the log."""
        step = self.rows // _SAMPLE + 1
        came, took, at = [np.zeros(0)], [np.zeros(0)], 0
        for chunk in self.chunks(rows):
            picked = slice(-at % step, None, step)
            came.append(chunk.came[picked].copy())  # a view would hold all of the chunk
            took.append(chunk.left[picked] - chunk.came[picked])
            at += len(chunk.came)
        return np.concatenate(came), np.concatenate(took)


def bytes_of(rows: NDArray[np.void]) -> memoryview:
    """Return rows as they are written to a file: `tofile` does not tell if there is no room for them.

    Parameters
    ----------
    rows : (n,) array of rows of numbers
    """
    return np.ascontiguousarray(rows).view(np.uint8).data


def spooled(path: Path, options: LogOptions, file: Path, sizes: Sizes, *, rest: bool = False) -> Spool:
    """Write the requests of a table, CSV, Parquet or JSON lines, to a file of numbers, checked as `reading` does.

    Parameters
    ----------
    path : the table
    options : what it does not say itself
    file : to be written
    sizes : how much is in memory at a time
    rest : whether requests without a name have one made of all that their rows say

    Raises
    ------
    FileError
        With every fault of the file, by line.
    """
    reader = _Reader(path, options, sizes, rest=rest)
    spool, extents, reached = None, dict[str, tuple[float, ...]](), 0
    with file.open("wb") as target:
        for unlike in reader.portions():
            spool = spool or _begun(file, reader, unlike, rest)
            portion = _alike(spool, unlike)
            for name, column in portion.times.items():
                ends = (*extents.get(name, ()), *extent_of(column))
                extents[name] = (min(ends), max(ends)) if ends else ()
            rows = _stored_rows(spool, portion)
            target.write(bytes_of(rows))
            reached += int(np.count_nonzero(~np.isnan(rows["behind"]))) if spool.behind else 0
            spool.rows += len(next(iter(portion.times.values())))
            if spool.naming and portion.names is not None and portion.names.null_count:
                raise FileError([FileFault(0, 0, str(spool.which.request), "should name every request", "a null")])
    reader.refuse()
    if spool is None:
        raise FileError([FileFault(2, 1, "rows", "should hold at least one row", "none")])
    spool.cancelled = reader.cancelled
    spool.places, spool.runs = {name: at + 1 for at, name in enumerate(reader.names)}, reader.runs
    if options.zone is None and reader.hours is not None and is_zoned(reader.stamp_kind):
        spool.hours = reader.hours, zone_quarters(reader.hours, reader.stamp_kind)
    if options.zone is not None:
        extents |= spool.localise(options.zone, sizes.rows)
    _settle(spool, reader, extents, options)
    if spool.behind and reader.form is not None:
        refuse_unreached(reader.form, reached)
        spool.notes += tuple(behind_notes(reader.form, spool.rows - reached))
    spool.findings += spool.clocks(sizes.rows)
    return spool


class _Reader:
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
        """As of `Spool`."""
        self.not_read: list[int] = []
        self.lines = 0
        self.without_times = 0
        self.unlike = NO_OBJECTS
        self.notes: list[str] = []
        self.hours: Floats | None = None
        """Those of stamps in Parquet that say their zone."""
        self.stamp_kind = pa.null()
        self.is_swf = False
        """Whether times are seconds from the beginning of a log of jobs."""
        self.cancelled = CancelledJobs()
        self.findings: list[LogFinding] = []

    def portions(self) -> Iterator[_Portion]:
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

    def _parquet(self) -> Iterator[_Portion]:
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

    def _csv(self) -> Iterator[_Portion]:
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

    def _swf(self) -> Iterator[_Portion]:
        """Yield the jobs of the Standard Workload Format that were not cancelled, as `swf` reads them.

        In memory cancelled jobs are left out after those that are written twice.
        """
        if self.options.upstream:
            raise not_behind()
        refuse_for_swf(self.options)
        self.which, self.is_swf = Roles("arrival_s", "departure_s", request="request"), True
        line, parallel, never, waited_s, count, far = 1, 0, 0, 0.0, 0, list[FileFault]()
        for piece, lines in pieces_of(self.path, self.sizes.piece_bytes):
            rows = job_lines(piece.decode(errors="replace").split("\n"), line)
            line += lines
            if not rows:
                continue
            jobs = jobs_of(rows)
            self._add(jobs.wrong)
            far += jobs.far[: _MOST_FAULTS - len(far)]
            parallel, never, waited_s = parallel + jobs.parallel, never + jobs.never, waited_s + jobs.never_waited_s
            gone = jobs.table[jobs.table["cancelled"]]
            self.cancelled.add(gone["departure_s"] - gone["arrival_s"])
            table = jobs.table[~jobs.table["cancelled"]]
            count += len(rows)
            if len(table) and not (self.faults or far):
                columns = {name: pa.chunked_array([table[name].to_numpy()]) for name in self.which.times()}
                yield _Portion(columns, pa.chunked_array([pa.array(table["request"])]), None)
        self._add(far)
        if not count:
            raise no_jobs(line - 1)
        if count == self.cancelled.jobs and not self.faults:
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

    def _json(self) -> Iterator[_Portion]:
        """Yield the requests of JSON, of lines or of documents, as `records` reads them."""
        of_lines = has_object_lines(self.path)
        batches = self._object_lines if of_lines else self._documents
        first = next((row for batch in batches(note=False) for _, row in batch), None)
        if first is None and of_lines:
            for _ in batches(note=True):
                pass
        if first is None:
            raise no_requests()
        form = form_of_object(first) if of_lines else next(document_rows(self.path, self.sizes.piece_bytes))[0]
        if form != PLAIN:
            yield from self._spans(batches, form)
            return
        names = list[str]()
        for batch in batches(note=True):
            cells = record_cells([dict(flat(row)) for _, row in batch], [number for number, _ in batch], names)
            names = names or list(cells.names)
            cells = with_path(cells)
            if not self.names:
                self.form = None if any(self.options.stated()[:3]) else json_form(cells.names)
            if self.form is not None and self.form.by_end:
                rows = has_times(cells, self.form)
                self.without_times += int(np.count_nonzero(~rows))
                cells = chosen(cells, rows)
            yield from self._quickly(None, partial(_same, cells), 0)

    def _spans(self, batches: "_Batches", form: str) -> Iterator[_Portion]:
        """Yield the spans that answer requests, or all of them if none says that it does."""
        of_lines = batches == self._object_lines

        def spans(*, note: bool) -> Iterator[list[JsonRecord]]:
            for batch in batches(note=note):
                yield [span for _, row in batch for span in (rows_of(row, form) if of_lines else (row,))]

        served = any(answers_requests(span) for batch in spans(note=False) for span in batch)
        self.form = None if any(self.options.stated()[:3]) else SPAN_TIMES[form]
        names, count, others, services = list[str](), 0, 0, set[str]()
        for every in spans(note=True):
            batch = [span for span in every if answers_requests(span)] if served else every
            others += len(every) - len(batch)
            services |= {str(span["service"]) for span in batch if served}
            if batch:
                cells = record_cells(batch, range(count + 1, count + 1 + len(batch)), names)
                names, count = names or list(cells.names), count + len(batch)
                yield from self._quickly(None, partial(_same, cells), 0)
        if not count:
            raise no_requests()
        self.notes = notes_on_spans(count, others, sorted(services))

    def _documents(self, *, note: bool) -> Iterator[list[tuple[int, JsonRecord]]]:
        """Yield the objects of JSON documents, or their spans, numbered; there is nothing to be noted of them."""
        del note
        rows = ((number, row) for number, (_, row) in enumerate(document_rows(self.path, self.sizes.piece_bytes), 1))
        while batch := list(islice(rows, min(self.sizes.rows, _BATCH))):
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
            line += lines
            if objects:
                yield objects
        if note and 2 * len(self.not_read) >= self.lines:
            raise no_objects(self.not_read[0] if self.not_read else 0, unlike)

    def _lines(self, pattern: str, form: Times | None, *, parts: bool) -> Iterator[_Portion]:
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
    ) -> Iterator[_Portion]:
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
                yield _Portion(times, names, others, None, self._quarters(table, text))
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
        yield _Portion({name: columns[name] for name in self.which.times()}, names, others, after, quarters)

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
            again = _Reader(self.path, self.options, self.sizes, rest=False, zoned=zoned, is_stamp=is_stamp)
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


def _stored(kind: pa.DataType) -> type[np.generic]:
    return np.int64 if pa.types.is_timestamp(kind) else np.float64


def _begun(file: Path, reader: _Reader, portion: _Portion, rest: bool) -> Spool:
    """Return an empty spool for portions like the first one."""
    which, kinds = reader.which, {name: _widest(column) for name, column in portion.times.items()}
    naming = None
    if which.request is not None and portion.names is not None:
        naming = "request" if names_requests(which.request) else "id"
    others = which.request is None and bool(reader.others)
    own = nothing = False
    if naming is None and rest and others:
        shared = [names_several(name) for name in reader.others]
        naming, own, nothing = "rest", any(shared), all(shared)
    spool = Spool(file, which, kinds, naming=naming, own=own, own_nothing=nothing, others=others)
    spool.behind, spool.quarters = portion.behind is not None, portion.quarters is not None
    return spool


def _alike(spool: Spool, portion: _Portion) -> _Portion:
    """Return a portion whose times are of the kinds of the first one."""
    times = dict(portion.times)
    for name, kind in spool.kinds.items():
        if times[name].type != kind:
            try:
                times[name] = times[name].cast(kind)
            except pa.ArrowException:
                problem = f"should hold the same kind of times throughout, first {kind}"
                got = f"{times[name].type} from row {spool.rows + 1:,} on"
                raise FileError([FileFault(0, 0, name, problem, got)]) from None
    return portion._replace(times=times)


def _widest(column: pa.ChunkedArray) -> pa.DataType:
    """Return the kind of a column, nanoseconds of stamps that these hold: later ones may be finer."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return kind
    try:
        return column.cast(pa.timestamp("ns", kind.tz)).type
    except pa.ArrowException:
        return kind


def _stored_rows(spool: Spool, portion: _Portion) -> NDArray[np.void]:
    """Return a portion as rows of numbers."""
    rows = np.empty(len(next(iter(portion.times.values()))), spool.dtype)
    for at, (name, kind) in enumerate(spool.kinds.items()):
        column = portion.times[name]
        if pa.types.is_timestamp(kind):
            rows[f"time{at}"] = column.cast(pa.int64()).fill_null(_MISSING).to_numpy()
        else:
            rows[f"time{at}"] = numbers_in(column)
    if spool.naming == "rest" and portion.others is not None:
        rows["name"] = pd.util.hash_pandas_object(portion.others, index=False).to_numpy()
        own = [str(name) for name in portion.others if not names_several(str(name))]
        if spool.own:
            rows["own"] = pd.util.hash_pandas_object(portion.others[own], index=False).to_numpy() if own else 0
    elif spool.naming is not None and portion.names is not None:
        rows["name"] = _digests(portion.names)
    if spool.behind and portion.behind is not None:
        rows["delay"], rows["behind"] = portion.behind
    if spool.quarters:
        rows["quarters"] = NO_OFFSET if portion.quarters is None else portion.quarters
    return rows


def _digests(names: pa.ChunkedArray) -> UInts:
    """Return a number for each name, the same for the same one."""
    if pa.types.is_integer(names.type):
        return np.asarray(pd.util.hash_array(names.to_numpy().astype(np.int64)), dtype=np.uint64)
    texts = names.to_pandas()
    series = texts if isinstance(texts.dtype, pd.CategoricalDtype) else texts.astype(str).astype(object)
    return pd.util.hash_pandas_object(series, index=False, categorize=False).to_numpy().astype(np.uint64)


def _settle(spool: Spool, reader: _Reader, extents: Mapping[str, tuple[float, ...]], options: LogOptions) -> None:
    """Decide on the units and zones of a whole log, and note what was supposed."""
    which, form, findings, notes = spool.which, reader.form, list(reader.findings), list[str]()
    if reader.lines:
        notes, findings = left_out(np.array(reader.not_read, np.int64), reader.lines, reader.unlike)
    notes += reader.notes
    if form is not None:
        notes.append(understood(form))
        findings += without_times(form, reader.without_times)
    for name in which.times():
        if not extents.get(name):
            raise FileError([FileFault(2, spool.places.get(name, 1), name, _NO_TIME, "none")])
        own = TimeBase(1.0, 0.0) if reader.is_swf else None
        spool.bases[name] = own or base_of(name, spool.kinds[name], extents[name], options.unit, form)
    supposed = [*zone_notes(spool.kinds), *(base.note for base in spool.bases.values() if base.note)]
    refuse_undecided(which, supposed)
    for name, base in spool.bases.items():
        far = FARTHEST_S + 1 if base.ticks == "" else 0.0
        if base.ticks is None:
            far = max(abs(end / base.per_second - base.since_s) for end in extents[name])
        if far > FARTHEST_S:
            raise FileError([FileFault(0, 0, name, f"should be within {FARTHEST_S:g} s of 0", "times further away")])
    spool.notes, spool.findings = (*notes, *supposed), tuple(findings)
