"""An access log as numbers on disk: read, understood and put between seconds as `access_logs` does, in portions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.occupancy.logs.access_logs import (
    HALF_ADDED,
    LISTENER,
    MOST_DISORDER,
    NGINX_DECIMALS,
    NOTHING,
    PUT_BETWEEN,
    SINGLE,
    AccessLines,
    Form,
    behind_notes,
    doubtful,
    form_of,
    lines_in,
    moved_note,
    refuse_long,
    refuse_upstream,
    skipped,
    understood_lines,
    unit_in,
)
from analysis.occupancy.logs.log import FARTHEST_S, PER_SECOND, LogFinding, LogOptions, Roles, first_too_long, pieces_of
from analysis.occupancy.logs.portions import Sizes
from analysis.occupancy.logs.reading import stamp_of
from analysis.occupancy.logs.spool import LogChunk, bytes_of
from models.arrays import Floats, Ints, Small

_RAW = np.dtype([
    ("stamp", np.float64), ("took", np.float64), ("rest", np.uint64), ("line", np.int64), ("decimals", np.int8),
    ("why", np.int8), ("quarters", np.int8),
])  # fmt: skip
_ROW = np.dtype([
    ("end", np.float64), ("took", np.float64), ("stamp", np.float64), ("rest", np.uint64), ("quarters", np.int8),
])  # fmt: skip
_ROOM = np.dtype([("low", np.float64), ("high", np.float64), ("place", np.int64)])


@dataclass(slots=True)
class AccessSpool:
    """The requests of an access log, in the order of its lines, in a file of numbers."""

    file: Path
    rows: int
    origin_s: float
    moved: bool
    """Whether departures were put between the whole seconds of stamps."""
    notes: tuple[str, ...]
    findings: tuple[LogFinding, ...]
    naming: str | None = None
    """rest: all that the lines say beside the times names requests; None: nothing does."""
    numbers: bool = False
    """Whether these names are numbers of the lines, as no two lines are the same."""
    which: Roles = field(default_factory=Roles)
    own: bool = False
    own_nothing: bool = False
    others: bool = True
    behind: Path | None = None
    """Where it is written how long the servers behind a proxy took, if that is wanted."""

    @property
    def resolution_s(self) -> float:
        """What stamps were multiples of before they were put between; 0: they are as they were written."""
        return 1.0 if self.moved else 0.0

    def chunks(self, rows: int) -> Iterator[LogChunk]:
        """Yield the requests, so many at a time."""
        at = 0
        for part in _portions(self.file, _ROW, rows):
            names = np.arange(at, at + len(part), dtype=np.uint64) if self.numbers else part["rest"]
            came, left, stamp, took = part["end"] - part["took"], part["end"], part["stamp"], part["took"]
            begin, at = at, at + len(part)
            if self.behind is not None:
                behind_s = np.fromfile(self.behind, np.float64, len(part), offset=8 * begin)
                reached = ~np.isnan(behind_s)
                came, stamp, took = (column[reached] for column in (came, stamp, took))
                names = names[reached]
                left = came + behind_s[reached]
            yield LogChunk(came, left.copy(), names, names, stamp.copy(), took.copy())

    def offsets(self, rows: int) -> Iterator[tuple[Floats, Small]]:
        """Yield stamps, seconds since 1970, and the offsets from UTC that they say, so many at a time."""
        for part in _portions(self.file, _ROW, rows):
            yield part["stamp"] + self.origin_s, part["quarters"].copy()


@dataclass(slots=True)
class _Tally:
    """What is known of the lines of a log once all are read; units are not known before."""

    lines: int = 0
    whole: int = 0
    with_point: int = 0
    with_number: int = 0
    other: list[Ints] = field(default_factory=list)
    """Places of lines without a time or a duration that is one."""
    why: list[Ints] = field(default_factory=list)

    def add(self, read: AccessLines) -> tuple[NDArray[np.void], Floats | None]:
        """Take some lines, and return those that have both times, and how long servers behind took if it was read."""
        place = self.lines + np.arange(len(read.took))
        self.lines += len(place)
        self.whole += int(np.count_nonzero(read.other != NOTHING))
        self.with_point += int(np.count_nonzero(read.decimals >= 0))
        self.with_number += int(np.count_nonzero(~np.isnan(read.took)))
        both = ~np.isnan(read.stamp_s) & ~np.isnan(read.took)
        without = ~both & (read.other != NOTHING)
        self.skip(place[without], read.other[without])
        rows = np.empty(int(np.count_nonzero(both)), _RAW)
        columns = (read.stamp_s, read.took, read.rest, place, read.decimals, read.other, read.quarters)
        for name, column in zip(_RAW.names or (), columns, strict=True):
            rows[name] = np.asarray(column)[both]
        return rows, None if read.upstream is None else read.upstream[both]

    def skip(self, place: Ints, why: NDArray[np.int8]) -> None:
        """Take lines that are left out."""
        self.other.append(place)
        self.why.append(why.astype(np.int64))

    def left_out(self) -> tuple[Ints, Ints]:
        """Return the places of the lines that are left out, in order, and why."""
        other, why = np.concatenate(self.other), np.concatenate(self.why)
        order = np.argsort(other, kind="stable")
        return other[order], why[order]


@dataclass(slots=True)
class _Facts:
    """What has to be known of all requests before any is put in its place."""

    count: int = 0
    first: str = ""
    """The first duration, as it is written."""
    least: float = np.inf
    most: float = -np.inf
    unlike: int = 0
    first_s: float = np.inf
    last_s: float = -np.inf
    whole_seconds: bool = True

    def add(self, rows: NDArray[np.void]) -> None:
        """Take some requests."""
        if not len(rows):
            return
        if not self.count:
            self.first = f"{rows['took'][0]:.{max(int(rows['decimals'][0]), 0)}f}"
        self.count += len(rows)
        self.least, self.most = min(self.least, float(rows["took"].min())), max(self.most, float(rows["took"].max()))
        self.unlike += int(np.count_nonzero(rows["decimals"] != NGINX_DECIMALS))
        self.first_s = min(self.first_s, float(rows["stamp"].min()))
        self.last_s = max(self.last_s, float(rows["stamp"].max()))
        self.whole_seconds &= bool(np.array_equal(rows["stamp"], np.floor(rows["stamp"])))


def spooled_access_log(path: Path, options: LogOptions, file: Path, sizes: Sizes) -> AccessSpool:
    """Write the requests of an access log to a file of numbers, checked as `access_logs.read_access_log` does.

    Parameters
    ----------
    path : the log
    options : what it does not say itself
    file : to be written
    sizes : how much is in memory at a time

    Raises
    ------
    FileError
        With the faults of the log.
    """
    form, time = form_of(path, options.duration), stamp_of(options.arrival, options.departure)
    stated, tally, raw = unit_in(form, options.unit), _Tally(), file.with_suffix(".raw")
    if options.upstream:
        refuse_upstream(form)
    every, behind = file.with_suffix(".every"), file.with_suffix(".behind")
    with raw.open("wb") as target, every.open("wb") as beside:
        for piece, lines in pieces_of(path, sizes.piece_bytes):
            both, took = tally.add(lines_in(piece, lines, form, upstream=options.upstream, fields=False))
            target.write(bytes_of(both))
            if took is not None:
                beside.write(np.ascontiguousarray(took).view(np.uint8).data)
    nginx = form.by_end or tally.with_point * 2 > tally.with_number
    per_second, facts = PER_SECOND[stated or ("s" if nginx else "us")], _Facts()
    known, at, without = file.with_suffix(".known"), 0, 0
    with known.open("wb") as target, behind.open("wb") as beside:
        for rows in _portions(raw, _RAW, sizes.rows):
            near = (np.abs(rows["stamp"]) <= FARTHEST_S) & (rows["took"] <= FARTHEST_S * per_second)
            tally.skip(rows["line"][~near], rows["why"][~near])
            facts.add(rows[near])
            target.write(bytes_of(rows[near]))
            if options.upstream:
                took = np.fromfile(every, np.float64, len(rows), offset=8 * at)[near] / PER_SECOND[stated or "s"]
                beside.write(took.view(np.uint8).data)
                at, without = at + len(rows), without + int(np.count_nonzero(np.isnan(took)))
    raw.unlink()
    every.unlink()
    notes, findings = skipped(path, *tally.left_out(), tally.whole, form)
    by_end = time == "departure" if time else nginx
    if not stated:
        _refuse_long(known, per_second, sizes.rows)
        findings += _doubts(facts, form, nginx=nginx)
    notes += [understood_lines(form, nginx, by_end, stated or ("s" if nginx else "us")), LISTENER]
    origin_s = float(np.floor(facts.first_s))
    _placed(known, file, per_second, origin_s, sizes.rows, by_end=by_end)
    known.unlink()
    if facts.whole_seconds:
        notes.append(moved_note(_put_between(file, facts.count, sizes.rows)))
    if options.upstream:
        notes += behind_notes(without)
    after = behind if options.upstream else None
    return AccessSpool(file, facts.count, origin_s, facts.whole_seconds, tuple(notes), tuple(findings), behind=after)


def _doubts(facts: _Facts, form: Form, *, nginx: bool) -> list[LogFinding]:
    if form is not SINGLE:
        return []
    return doubtful(facts.count, facts.first, facts.least < facts.most, facts.unlike, nginx=nginx)


def _refuse_long(known: Path, per_second: float, rows: int) -> None:
    """Raise the fault of durations far longer than the log, if their unit was supposed."""

    def pieces() -> Iterator[tuple[Floats, Floats]]:
        for part in _portions(known, _RAW, rows):
            yield part["stamp"], part["took"] / per_second

    far = first_too_long(pieces)
    if far is not None:
        at = far[0]
        for part in _portions(known, _RAW, rows):
            if at < len(part):
                refuse_long(int(part["line"][at]) + 1, far[1], far[2])
            at -= len(part)


def _placed(known: Path, file: Path, per_second: float, origin_s: float, rows: int, *, by_end: bool) -> None:
    """Write the requests in seconds since the origin."""
    with file.open("wb") as target:
        for part in _portions(known, _RAW, rows):
            placed = np.empty(len(part), _ROW)
            placed["took"], placed["stamp"] = part["took"] / per_second, part["stamp"] - origin_s
            placed["rest"], placed["quarters"] = part["rest"], part["quarters"]
            stamp: Floats = placed["stamp"]
            placed["end"] = stamp if by_end else stamp + placed["took"]
            target.write(bytes_of(placed))


def _put_between(file: Path, count: int, rows: int) -> str:
    """Put the ends of requests between whole seconds, as `access_logs.within_seconds`; return how that was found."""
    room, low_s, high_s, crossed = file.with_suffix(".room"), -np.inf, np.inf, 0
    with room.open("wb") as target:
        for part in _portions(file, _ROW, rows):
            rooms = np.zeros(len(part), _ROOM)
            rooms["low"] = np.maximum(np.maximum.accumulate(part["end"]), low_s)
            low_s = float(rooms["low"][-1])
            target.write(bytes_of(rooms))
    for at in _backwards(count, rows):
        part, rooms = _read(file, _ROW, *at), _read(room, _ROOM, *at)
        rooms["high"] = np.minimum(np.minimum.accumulate(part["end"][::-1])[::-1] + 1.0, high_s)
        high_s = float(rooms["high"][0])
        crossed += int(np.count_nonzero(rooms["low"] > rooms["high"]))
        _write(room, at[0], rooms)
    is_ordered = crossed / count <= MOST_DISORDER
    if is_ordered:
        _number(room, count, rows)
    after, before_next = 0, (np.nan, np.nan)
    for at in _backwards(count, rows):
        part, rooms = _read(file, _ROW, *at), _read(room, _ROOM, *at)
        if is_ordered:
            last = np.append(_changes(rooms), (rooms["low"][-1], rooms["high"][-1]) != before_next)
            left = _after(last, after)
            size = rooms["place"] + left + 1
            part["end"] = rooms["low"] + (rooms["high"] - rooms["low"]) * (rooms["place"] + 0.5) / size
            after, before_next = int(left[0]) + 1, (rooms["low"][0], rooms["high"][0])
        else:
            part["end"] += 0.5
        _write(file, at[0], part)
    room.unlink()
    return PUT_BETWEEN if is_ordered else HALF_ADDED


def _number(room: Path, count: int, rows: int) -> None:
    """Number the requests that have the same room, each from 0."""
    before, number = (np.nan, np.nan), 0
    for begin in range(0, count, rows):
        rooms = _read(room, _ROOM, begin, min(rows, count - begin))
        new = np.concatenate(([(rooms["low"][0], rooms["high"][0]) != before], _changes(rooms)))
        rooms["place"] = _since(new, number)
        before, number = (rooms["low"][-1], rooms["high"][-1]), int(rooms["place"][-1]) + 1
        _write(room, begin, rooms)


def _changes(rooms: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return whether each row but the first has another room than the one before."""
    changes: NDArray[np.bool_] = (np.diff(rooms["low"]) != 0) | (np.diff(rooms["high"]) != 0)
    return changes


def _since(new: NDArray[np.bool_], number: int) -> Ints:
    """Return how many rows lie between each and the last that is new; the first is number so many if it is not new.

    Examples
    --------
    >>> _since(np.array([False, False, True, False]), 5).tolist()
    [5, 6, 0, 1]
    """
    place = np.arange(len(new))
    begun = np.maximum.accumulate(np.where(new, place, -1))
    return np.where(begun < 0, place + number, place - begun)


def _after(last: NDArray[np.bool_], number: int) -> Ints:
    """Return how many rows with the same room follow each; so many follow the last if it is not the last of them."""
    return _since(last[::-1], number)[::-1]


def _portions(file: Path, dtype: np.dtype[np.void], rows: int) -> Iterator[NDArray[np.void]]:
    with file.open("rb") as source:
        while len(part := np.fromfile(source, dtype, rows)):
            yield part


def _backwards(count: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield where portions begin and how long they are, from the last."""
    for begin in reversed(range(0, count, rows)):
        yield begin, min(rows, count - begin)


def _read(file: Path, dtype: np.dtype[np.void], begin: int, rows: int) -> NDArray[np.void]:
    return np.fromfile(file, dtype, rows, offset=begin * dtype.itemsize)


def _write(file: Path, begin: int, rows: NDArray[np.void]) -> None:
    with file.open("r+b") as target:
        target.seek(begin * rows.dtype.itemsize)
        target.write(bytes_of(rows))
