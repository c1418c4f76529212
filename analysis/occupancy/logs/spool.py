"""A log of requests as numbers on disk: read a portion at a time, so that memory does not grow with its length."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from analysis.occupancy.logs.cancelled import CancelledJobs
from analysis.occupancy.logs.clocks import NO_OFFSET, localised, set_back_in
from analysis.occupancy.logs.hygiene import row_digests
from analysis.occupancy.logs.log import (
    FARTHEST_S,
    LogFinding,
    LogOptions,
    Roles,
    first_too_long,
    names_requests,
    names_several,
)
from analysis.occupancy.logs.portions import Portion, PortionReader, Sizes
from analysis.occupancy.logs.reading import (
    TimeBase,
    base_of,
    clock_finding,
    extent_of,
    is_zoned,
    numbers_in,
    passed_s,
    refuse_undecided,
    zone_notes,
    zone_quarters,
)
from analysis.occupancy.logs.records import (
    left_out,
    understood,
    without_times,
)
from analysis.occupancy.logs.rotation import together
from analysis.occupancy.logs.upstream import behind_notes, refuse_unreached
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Small, UInts

_MISSING = np.iinfo(np.int64).min
_NO_TIME = "should hold at least one time"
_SAMPLE = 100_000
"""Rows, evenly over the log, that parts on disk are divided by."""


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
        return CancelledJobs(
            [line for jobs in every for line in jobs.lines], [waited for jobs in every for waited in jobs.waited_s]
        )

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
    reader = PortionReader(path, options, sizes, rest=rest)
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


def _stored(kind: pa.DataType) -> type[np.generic]:
    return np.int64 if pa.types.is_timestamp(kind) else np.float64


def _begun(file: Path, reader: PortionReader, portion: Portion, rest: bool) -> Spool:
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


def _alike(spool: Spool, portion: Portion) -> Portion:
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


def _stored_rows(spool: Spool, portion: Portion) -> NDArray[np.void]:
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


def _settle(spool: Spool, reader: PortionReader, extents: Mapping[str, tuple[float, ...]], options: LogOptions) -> None:
    """Decide on the units and zones of a whole log, and note what was supposed."""
    which, form, findings, notes = spool.which, reader.form, list(reader.findings), list[str]()
    if reader.lines:
        notes, unlike = left_out(np.array(reader.not_read, np.int64), reader.lines, reader.unlike)
        findings = [*unlike, *findings]
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
