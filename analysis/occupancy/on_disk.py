"""The Occupancy Law of a log that is too long for memory: sorted on disk in parts, repaired and summed part by part.

The repairs and the findings are those of `analysis.occupancy.logs.hygiene`, the sums those of `analysis.occupancy.law`.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.occupancy.curve import merge
from analysis.occupancy.law import Slices
from analysis.occupancy.logs.access_spool import AccessSpool, spooled_access_log
from analysis.occupancy.logs.clocks import NO_OFFSET, QUARTER_S, OwnClock, joined_clocks, own_clock_in
from analysis.occupancy.logs.hygiene import (
    ABSURD,
    LOOKED_AT,
    MOST_WRITTEN,
    Copies,
    PairCounts,
    Responses,
    alike,
    any_twice,
    backward_finding,
    might_repeat,
    pair_counts,
    repeat_findings,
    reported,
    row_digests,
    surely_copies,
    tick_of,
    timeless,
)
from analysis.occupancy.logs.log import LogFinding, LogOptions
from analysis.occupancy.logs.portions import Sizes
from analysis.occupancy.logs.reading import has_lines, refuse_unit
from analysis.occupancy.logs.rotation import each_of
from analysis.occupancy.logs.spool import FileSpool, Spools, bytes_of, spooled
from analysis.occupancy.percentiles import LEVELS, STEPS, Percentile, banded, block_counts, has_bands
from analysis.tables.bytes import head_of
from analysis.tables.faults import FileError, FileFault
from models.arrays import Bools, Floats, Ints, Small, UInts, unique_sorted
from models.errors import InputError

_HALF_TICK_S = 5e-7
"""Parts are divided between microseconds, so that times which are equal to the microsecond are in one part."""
_DECIMALS = 6
_EMPTY = PairCounts(0, 0, 0, 0, 0, 0, 0, np.zeros(0, np.int64))
_WHOLE = "leave --on-disk away"
_LINE = ("name", "stamp", "took")
"""What lines of an access log are alike in."""


@dataclass(frozen=True, slots=True, eq=False)
class DiskTotals:
    """What the law says of a log that was read on disk."""

    requests: int
    unfinished: int
    repaired: int
    start_s: float
    end_s: float
    service_time_s: float
    queueing_time_s: float
    peak: int
    busy_s: Floats
    """Time with 0, 1, … busy servers."""
    waiting_s: Floats
    """Time with 0, 1, … requests waiting."""
    interval_s: float
    intervals: Floats
    """Rows of `analysis.occupancy.law.COLUMNS`."""
    percentiles: tuple[Percentile, ...]
    """Of response times."""
    tick_s: float
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...]
    origin_s: float
    clock: OwnClock | None = None
    """The clock that stamps were written by, if they say their offset from UTC and no zone was said."""


class _Parts:
    """Rows on disk, divided by a key into parts that follow each other, each small enough to be sorted in memory."""

    def __init__(self, folder: Path, edges: NDArray[np.float64 | np.uint64], dtype: np.dtype[np.void]) -> None:
        self.edges, self.dtype = np.unique(edges), dtype
        self.files = [folder / str(at) for at in range(len(self.edges) + 1)]
        self.timeless = 0
        folder.mkdir()

    def add(self, key: NDArray[np.float64 | np.uint64], rows: NDArray[np.void]) -> None:
        """Add rows, in order, to the parts that their keys are in."""
        if not len(rows):
            return
        at = np.searchsorted(self.edges, key, side="right")
        if at.min() < at.max():
            order = np.argsort(at, kind="stable")
            at, rows = at[order], rows[order]
        ends = np.flatnonzero(np.diff(at, append=-1)) + 1
        for begin, end in zip((0, *ends[:-1]), ends, strict=True):
            with self.files[at[begin]].open("ab") as file:
                file.write(bytes_of(rows[begin:end]))

    def chunks(self, at: int, rows: int = -1) -> Iterator[NDArray[np.void]]:
        """Yield the rows of a part, in the order in which they were added, so many at a time."""
        if self.files[at].exists():
            with self.files[at].open("rb") as file:
                while len(stored := np.fromfile(file, self.dtype, rows)):
                    yield stored

    def part(self, at: int) -> NDArray[np.void]:
        """Return all rows of a part."""
        return next(self.chunks(at), np.empty(0, self.dtype))


class _Ranks:
    """Times on disk, of which order statistics are read."""

    def __init__(self, parts: _Parts, rows: int) -> None:
        self.parts, self.rows = parts, rows

    @property
    def ends(self) -> Ints:
        """(parts,) how many times there are up to the end of each part."""
        size = self.parts.dtype.itemsize
        return np.cumsum([file.stat().st_size // size if file.exists() else 0 for file in self.parts.files])

    @property
    def count(self) -> int:
        """How many times there are."""
        return int(self.ends[-1])

    def distinct(self, at: int) -> tuple[Floats, Ints]:
        """Return the distinct times of a part, and how often each is there."""
        values, counts = np.zeros(0), np.zeros(0, np.int64)
        for chunk in self.parts.chunks(at, self.rows):
            both, place = np.unique(np.concatenate((values, chunk["took"])), return_inverse=True)
            weights = np.concatenate((counts, np.ones(len(chunk), np.int64)))
            values, counts = both, np.bincount(place, weights).astype(np.int64)
        return values, counts

    def at(self, ranks: Ints) -> Floats:
        """Return the times of these ranks, from 0, in order."""
        values_s = np.full(len(ranks), np.nan)
        ends = self.ends
        for at, end in enumerate(ends):
            begin = ends[at - 1] if at else 0
            inside = np.flatnonzero((ranks >= begin) & (ranks < end))
            if len(inside):
                values, counts = self.distinct(at)
                values_s[inside] = values[np.searchsorted(np.cumsum(counts), ranks[inside] - begin, side="right")]
        return values_s

    def quantiles(self, levels: Floats) -> Floats:
        """Return the least times that such shares do not exceed, as method `inverted_cdf` of `np.quantile`."""
        return self.at(np.maximum(np.ceil(self.count * levels - 1), 0).astype(np.int64))

    def median(self) -> float:
        """Return the median, between the two in the middle of an even number."""
        return float(np.mean(self.at(np.array([(self.count - 1) // 2, self.count // 2]))))

    def counted(self, test: Callable[[Floats], Bools]) -> int:
        """Return of how many times something is true."""
        return sum(int(np.count_nonzero(test(chunk["took"]))) for chunk in self._every())

    def blocks(self, first_s: float, span_s: float, edges: Floats) -> Ints:
        """Return what `block_counts` says of all."""
        total = np.zeros(1, np.int64)
        for chunk in self._every():
            total = total + block_counts(chunk["took"], chunk["came"], first_s, span_s, edges)
        return total

    def _every(self) -> Iterator[NDArray[np.void]]:
        for at in range(len(self.parts.files)):
            yield from self.parts.chunks(at, self.rows)


@dataclass(slots=True)
class _Facts:
    """What has to be known of all requests before any is repaired."""

    pairs: int = 0
    backwards: int = 0
    least_s: float = np.inf
    longest_s: float = 0.0
    """Of those not backwards."""
    first_open_s: float = np.inf
    first_came_s: float = np.inf
    last_came_s: float = -np.inf
    first_left_s: float = np.inf
    last_left_s: float = -np.inf

    def add(self, came: Floats, left: Floats, *, forwards: bool) -> None:
        """Add requests; of their ends, only those that are forwards, or all."""
        took = left - came
        known = ~np.isnan(took)
        backwards = took < 0
        self.pairs += int(np.count_nonzero(known))
        self.backwards += int(np.count_nonzero(backwards))
        self.least_s = min(self.least_s, float(took[known].min(initial=np.inf)))
        kept_back = backwards & forwards
        came, left, took = came[~kept_back], left[~kept_back], took[~kept_back]
        self.longest_s = max(self.longest_s, float(took[~np.isnan(took)].max(initial=0.0)))
        gone = left[~np.isnan(left)]
        self.first_open_s = min(self.first_open_s, float(came[np.isnan(left)].min(initial=np.inf)))
        self.first_came_s = min(self.first_came_s, float(came.min(initial=np.inf)))
        self.last_came_s = max(self.last_came_s, float(came.max(initial=-np.inf)))
        self.first_left_s = min(self.first_left_s, float(gone.min(initial=np.inf)))
        self.last_left_s = max(self.last_left_s, float(gone.max(initial=-np.inf)))

    @property
    def last_s(self) -> float:
        """The last event."""
        return max(self.last_came_s, self.last_left_s)


@dataclass(slots=True)
class _Sums:
    """The law's sums over the curve, which comes piece by piece."""

    servers: int
    slices: Slices
    busy_s: Floats
    waiting_s: Floats = field(default_factory=lambda: np.zeros(1))
    rows: list[Floats] = field(default_factory=list)
    jobs: int = 0
    peak: int = 0
    now_s: float = 0.0

    def add(self, came: Floats, left: Floats) -> None:
        """Take the arrivals and the departures of a stretch, each in order, none before the last stretch's events."""
        if not len(came) + len(left):
            return
        last_s = max([*came[-1:], *left[-1:]])
        time_s, present, _ = merge(came, left, self.now_s, last_s, self.jobs)
        jobs, length_s = present[:-1], np.diff(time_s)
        self.rows.append(self.slices.advance(time_s, jobs))
        self.peak = max(self.peak, int(jobs.max(initial=0)))
        most = max(self.peak - self.servers, 0) + 1
        self.waiting_s = np.pad(self.waiting_s, (0, max(most - len(self.waiting_s), 0)))
        np.add.at(self.busy_s, np.minimum(jobs, self.servers), length_s)
        np.add.at(self.waiting_s, np.maximum(jobs - self.servers, 0), length_s)
        self.now_s, self.jobs = float(last_s), int(present[-1])

    def intervals(self) -> Floats:
        """Return all intervals, the last cut off."""
        return np.concatenate((*self.rows, self.slices.rest(self.now_s)))


class _Identity(NamedTuple):
    """What names say of rows that are written twice."""

    copies: Copies
    certain: int
    """Rows that are copies for certain."""


def read_on_disk(
    paths: Sequence[Path],
    servers: int,
    interval_of: Callable[[float], float],
    options: LogOptions | None = None,
    sizes: Sizes | None = None,
) -> DiskTotals:
    """Read tables of requests in any order, or access logs, in memory that does not grow with their length.

    What was read is written as numbers to a temporary folder, sorted there in parts, and taken part by part: 30 bytes
    a request, 50 if requests have names, 70 if rows are compared whole, 110 of an access log, in the folder that the
    environment's TMPDIR names. Sums over parts may differ from those over the whole in their last bits; all else is the
    same.

    Parameters
    ----------
    paths : the files of one log, in any order
    servers : k >= 1
    interval_of : length of the intervals, given that of the log, seconds
    options : what the files do not say themselves
    sizes : how much is in memory at a time

    Raises
    ------
    FileError
        With the faults of a file, or if there are no pairs, or requests without an arrival, which takes the whole log.

    Examples
    --------
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("arrival_s,departure_s\\n1,3\\n0,2\\n")
    ...     totals = read_on_disk([Path(file.name)], 1, lambda _: 2.0)
    >>> totals.queueing_time_s, totals.intervals[:, 3].tolist()
    (1.0, [1.0, 0.0])
    """
    if servers < 1:
        raise InputError(f"servers must be at least 1, got {servers}")
    refuse_unit(options or LogOptions())
    size, given, place = sizes or Sizes(), options or LogOptions(), os.environ.get("TMPDIR") or tempfile.gettempdir()
    try:
        with tempfile.TemporaryDirectory(prefix="wsc-occupancy-", dir=place) as folder:
            return _Disk(paths, Path(folder), servers, given, size).totals(interval_of)
    except OSError as error:
        if error.filename is not None and Path(error.filename) in paths:
            raise
        room = f"30 to 110 bytes a request have to be written to {place}"
        raise InputError(f"{room}, and cannot be ({error}); set TMPDIR to a folder with more room") from error


class _Disk:
    """One log, in a folder of its own."""

    def __init__(self, paths: Sequence[Path], folder: Path, servers: int, options: LogOptions, sizes: Sizes) -> None:
        self.folder, self.servers, self.sizes, self.options = folder, servers, sizes, options
        self.paths, self.spool = paths, Spools([])
        self.arrivals: _Parts
        self.is_sorted = False
        self.clocks: list[OwnClock | None] = []
        spools = list(each_of(paths, self._spooled))
        self.paths, self.spool = paths, Spools(spools)
        if not self.is_sorted or len(spools) > 1:
            self.arrivals = self._scattered("arrivals")
        # Copies have the stamp in common, and not the place between its ticks.
        self.stamped = self._scattered("stamps", by_stamp=True) if self.spool.moved else self.arrivals
        for spool in spools:
            spool.file.unlink()
        self.tick_s = self._tick()

    def _spooled(self, path: Path) -> FileSpool:
        """Return the requests of a file, named by all that its rows say if they have no other names and some repeat."""
        file = self.folder / f"rows {len(list(self.folder.iterdir()))}"
        if self.options.form is None and has_lines(head_of(path)):
            return self._spooled_lines(path, file)
        spool = spooled(path, self.options, file, self.sizes)
        spool.refuse_long(self.sizes.rows)
        self.paths, self.spool = [path], Spools([spool])
        self.clocks.append(self._clock(spool))
        if spool.naming is not None or not spool.others:
            return spool
        self.arrivals = self._scattered(f"arrivals of {file.name}")
        self.is_sorted = not _repeat(self.arrivals)
        return spool if self.is_sorted else spooled(path, self.options, file, self.sizes, rest=True)

    def _spooled_lines(self, path: Path, file: Path) -> AccessSpool:
        """Return the requests of an access log; lines that are all unlike are numbered, which says as much."""
        spool = spooled_access_log(path, self.options, file, self.sizes)
        spool.naming, self.is_sorted = "rest", False
        self.paths, self.spool = [path], Spools([spool])
        self.clocks.append(self._clock(spool))
        stamps = self._scattered(f"stamps of {file.name}", by_stamp=True)
        if not _repeat(stamps):
            spool.naming = None
        spool.numbers = not any(any_twice(*(rows[name] for name in _LINE)) for rows in _windows(stamps))
        rmtree(self.folder / f"stamps of {file.name}")
        return spool

    def _clock(self, spool: FileSpool) -> OwnClock | None:
        """Return the clock of stamps that say their offset, as `clocks.own_clock`; None if none does."""
        if self.options.zone is not None:
            return None
        first_s, last_s, offsets = np.inf, -np.inf, set[int]()
        for stamps, quarters in self._offsets(spool):
            first_s, last_s = min(first_s, float(stamps.min())), max(last_s, float(stamps.max()))
            offsets |= set(np.unique(quarters).tolist())
        if len(offsets) < 2:
            return OwnClock((first_s,), (QUARTER_S * offsets.pop(),)) if offsets else None
        stored = np.dtype([("stamp", np.float64), ("quarters", np.int8)])
        edges = self._edges(self.spool.sample(self.sizes.rows)[0] + spool.origin_s)
        parts = _Parts(self.folder / f"clock of {spool.file.name}", edges, stored)
        for stamps, quarters in self._offsets(spool):
            rows = np.empty(len(stamps), stored)
            rows["stamp"], rows["quarters"] = stamps, quarters
            parts.add(stamps, rows)
        every = (parts.part(at) for at in range(len(parts.files)))
        in_order = (part[np.argsort(part["stamp"], kind="stable")] for part in every)
        clock = own_clock_in(((part["stamp"], part["quarters"]) for part in in_order), last_s - first_s)
        rmtree(self.folder / f"clock of {spool.file.name}")
        return clock

    def _offsets(self, spool: FileSpool) -> Iterator[tuple[Floats, Small]]:
        """Yield stamps and the offsets that they say, of those that say one."""
        for stamps, quarters in spool.offsets(self.sizes.rows):
            known = (quarters != NO_OFFSET) & np.isfinite(stamps)
            if known.any():
                yield stamps[known], quarters[known]

    def totals(self, interval_of: Callable[[float], float]) -> DiskTotals:
        """Return all that is known of the log."""
        identity = self._identity()
        naming = self.spool.naming
        left_out, others = repeat_findings(identity.copies, identity.certain, naming == "request", naming == "id")
        findings = [*timeless(self.stamped.timeless), *left_out, *self.spool.cancelled.findings()]
        if identity.certain and self.spool.moved:
            self.arrivals = self._without_copies()
        facts, repair = self._repair(identity.certain > 0 and not self.spool.moved, findings)
        length_s = facts.last_s - facts.first_came_s
        interval_s = interval_of(length_s)
        slices = Slices(self.servers, facts.first_came_s, interval_s)
        sums = _Sums(self.servers, slices, np.zeros(self.servers + 1), now_s=facts.first_came_s)
        took = self._swept(sums, repair)
        least_s = min(facts.last_came_s - facts.first_came_s, facts.last_left_s - facts.first_left_s)
        about = Responses(
            took.requests,
            took.unfinished,
            took.ranks.count,
            took.ranks.median(),
            took.ranks.counted(lambda times: times == 0),
            took.ranks.counted(lambda times: times > least_s),
            took.total_s,
            least_s,
            length_s,
        )
        told = reported(about, took.beginning(), self.servers, self.tick_s)
        rows = sums.intervals()
        return DiskTotals(
            about.requests,
            about.unfinished,
            sum(finding.count for finding in findings),
            facts.first_came_s,
            facts.last_s,
            float(rows[:, 2].sum()),
            float(rows[:, 3].sum()),
            sums.peak,
            sums.busy_s,
            sums.waiting_s,
            interval_s,
            rows,
            took.percentiles(),
            self.tick_s,
            (*self.spool.findings, *findings, *others, *told),
            self.spool.notes,
            self.spool.origin_s,
            self.clocks[0] if len(self.clocks) == 1 else joined_clocks(self.clocks),
        )

    def _without_copies(self) -> _Parts:
        """Return the rows without copies, divided by their arrivals again."""
        parts = _Parts(self.folder / "once", self.arrivals.edges, self.stamped.dtype)
        for rows in _windows(self.stamped, drop=True):
            parts.add(rows["came"], rows)
        return parts

    def _scattered(self, name: str, *, by_stamp: bool = False) -> _Parts:
        """Return the rows of the spool, divided by their arrivals, or by the stamps of an access log."""
        self.sample_s = self.spool.sample(self.sizes.rows)
        fields: list[tuple[str, type[np.generic]]] = [("came", np.float64), ("left", np.float64)]
        fields += [("name", np.uint64)] * (self.spool.naming is not None) + [("own", np.uint64)] * self.spool.own
        fields += [("stamp", np.float64), ("took", np.float64)] * by_stamp
        parts = _Parts(self.folder / name, self._edges(self.sample_s[0]), np.dtype(fields))
        for chunk in self.spool.chunks(self.sizes.rows):
            rows = np.empty(len(chunk.came), parts.dtype)
            for column in parts.dtype.names or ():
                rows[column] = getattr(chunk, column)
            here = ~(np.isnan(chunk.came) & np.isnan(chunk.left))
            if np.isnan(chunk.came[here]).any():
                self._refuse_unseen()
            parts.timeless += int(np.count_nonzero(~here))
            parts.add((chunk.stamp if by_stamp and chunk.stamp is not None else chunk.came)[here], rows[here])
        return parts

    def _refuse_unseen(self) -> None:
        """Raise the fault of departures without an arrival, which are repaired with the whole log in memory alone."""
        for path, spool in zip(self.paths, self.spool.spools, strict=True):
            unseen = [np.isnan(chunk.came) & ~np.isnan(chunk.left) for chunk in spool.chunks(self.sizes.rows)]
            rows = np.flatnonzero(np.concatenate(unseen))
            if len(rows):
                lacking = f"no arrival in {len(rows):,} of {spool.rows:,} rows, first in row {rows[0] + 1:,}"
                problem = f"should tell when every request came; to have that repaired, {_WHOLE}"
                fault = FileFault(0, 0, str(spool.which.arrival or "arrivals"), problem, lacking)
                raise FileError([fault], str(path) if len(self.paths) > 1 else "")

    def _edges(self, sample_s: Floats) -> Floats:
        """Return what divides the log into parts of about as many rows each."""
        count = -(-self.spool.rows // self.sizes.part_rows)
        known = sample_s[np.isfinite(sample_s)]
        if count <= 1 or not len(known):
            return np.zeros(0)
        edges = np.quantile(known, np.linspace(0, 1, count + 1)[1:-1], method="inverted_cdf")
        between: Floats = np.floor(edges * 10**_DECIMALS) / 10**_DECIMALS + _HALF_TICK_S
        return between

    def _tick(self) -> float:
        """Return what stamps are multiples of, by the first rows in order of arrival."""
        came, left = [np.zeros(0)], [np.zeros(0)]
        for rows in _windows(self.arrivals):
            order = np.argsort(rows["came"], kind="stable")
            came.append(rows["came"][order])
            left.append(rows["left"][order])
            if sum(map(len, came)) >= LOOKED_AT:
                break
        tick_s = tick_of(np.concatenate(came)[:LOOKED_AT], np.concatenate(left)[:LOOKED_AT])
        return max(self.spool.resolution_s, tick_s)

    def _identity(self) -> _Identity:
        """Return what `hygiene.copies` says of the log."""
        kind, rows, conflicts = self.spool.naming, sum(len(rows) for rows in _windows(self.stamped)), 0
        if kind is None and not _repeat(self.stamped):
            return _Identity(_judged(_EMPTY, 0), 0)
        if kind is not None:
            named, pairs = self._names("name")
            if named == rows:
                return _Identity(_judged(_EMPTY, 0), 0)
            again = rows - pairs
            if self.spool.own:
                named, pairs = self._names("own")
            if MOST_WRITTEN * named >= rows:
                conflicts = 0 if kind == "rest" else pairs - named
                if surely_copies(kind, named, pairs - named, again):
                    return _Identity(_judged(_EMPTY, conflicts), again)
        return _Identity(_judged(self._pair_counts(), conflicts), 0)

    def _names(self, column: str) -> tuple[int, int]:
        """Return the distinct names, and the distinct names with their times."""
        count = -(-self.spool.rows // self.sizes.part_rows)
        edges = (np.arange(1, count, dtype=np.float64) * (2.0**64 / count)).astype(np.uint64)
        dtype = np.dtype([("name", np.uint64), ("pair", np.uint64)])
        parts, names, pairs = _Parts(self.folder / f"by_{column}", edges, dtype), 0, 0
        for rows in _windows(self.stamped):
            stored = np.empty(len(rows), dtype)
            stored["name"], stored["pair"] = rows[column], row_digests(rows[column], *_rounded(rows))
            parts.add(stored["name"], stored)
        for at in range(len(parts.files)):
            stored = parts.part(at)
            names, pairs = names + len(unique_sorted(stored["name"])), pairs + len(unique_sorted(stored["pair"]))
        return names, pairs

    def _pair_counts(self) -> PairCounts:
        """Return the pairs of rows alike; the last tick of a part is counted with the next."""
        total, before = _EMPTY, np.empty(0, self.stamped.dtype)
        for rows in _windows(self.stamped):
            both = np.concatenate((before, rows))
            total = total.plus(self._counts(both)).plus(self._counts(before), -1)
            ticks = self._at(both)
            before = both[ticks == ticks.max()]
        return total

    def _at(self, rows: NDArray[np.void]) -> Floats:
        stamp = rows["stamp" if self.spool.moved else "came"]
        return np.rint(stamp / self.tick_s) if self.tick_s > 0 else stamp

    def _counts(self, rows: NDArray[np.void]) -> PairCounts:
        if not len(rows):
            return _EMPTY
        names: UInts | None = rows["name"] if "name" in (rows.dtype.names or ()) else None
        codes = None if names is None else np.unique(names, return_inverse=True)[1].astype(np.int64)
        took: Floats = rows["left"] - rows["came"]
        took = np.round(took, _DECIMALS)
        return pair_counts(rows["stamp" if self.spool.moved else "came"], took, codes, self.tick_s)

    def _repair(self, drop: bool, findings: list[LogFinding]) -> tuple[_Facts, "_Repair"]:
        """Return what is known of all after the repair, and the repair, as `hygiene.clean` makes it; add findings."""
        facts = _Facts()
        for rows in _windows(self.arrivals, drop=drop):
            facts.add(rows["came"], rows["left"], forwards=True)
        if not facts.pairs:
            problem = f"should be pairs of an arrival and a departure: {_WHOLE}"
            raise FileError([FileFault(0, 0, "rows", problem, "none")])
        repair = _Repair(drop)
        if facts.backwards:
            move_s, backward = backward_finding(facts.backwards, facts.pairs, facts.least_s)
            findings.append(backward)
            repair = _Repair(drop, move_s, forwards=not move_s)
            facts = self._facts(repair)
        if facts.last_s - facts.first_open_s > ABSURD * facts.longest_s:
            repair = self._of_lost(facts, repair)
            lost, longest_s = 0, facts.longest_s
            for came, left in self._sorted(replace(repair, lost_after_s=np.inf)):
                lost += int(np.count_nonzero(np.isnan(left) & (repair.last_s - came > repair.lost_after_s)))
            evidence = f"open for longer than {3 * longest_s:.3g} s, three times the longest response"
            findings.append(LogFinding("lost departures", lost, evidence, "given that of the request before"))
            facts = self._facts(repair)
        return facts, repair

    def _facts(self, repair: "_Repair") -> _Facts:
        facts = _Facts()
        for came, left in self._sorted(repair):
            facts.add(came, left, forwards=False)
        return facts

    def _of_lost(self, facts: _Facts, repair: "_Repair") -> "_Repair":
        """Return the repair with how long a request has been open that has lost its departure (`hygiene.overdue`)."""
        took = self._took("before", repair)
        surely, old = 0, 0
        for came, left in self._sorted(repair):
            long = facts.last_s - came > ABSURD * facts.longest_s
            old += int(np.count_nonzero(long))
            surely += int(np.count_nonzero(long & np.isnan(left)))
            took.add(came, left)
        count, share = took.ranks.count, surely / old
        shorter = max(int(count * (1.0 - share)) - 2, 0)
        while not 1.0 - shorter / count < share:
            shorter += 1
        lost_after_s = float(took.ranks.at(np.array([shorter - 1]))[0])
        return replace(repair, last_s=facts.last_s, lost_after_s=lost_after_s)

    def _sorted(self, repair: "_Repair") -> Iterator[tuple[Floats, Floats]]:
        """Yield arrivals and departures of each part, in order of arrival, repaired."""
        donor_s = np.nan
        for at in range(len(self.arrivals.files)):
            rows = _window(self.arrivals, at, repair.drop)
            order = np.argsort(rows["came"], kind="stable")
            came, left = rows["came"][order], rows["left"][order] + repair.move_s
            if repair.forwards:
                came, left = came[~(left < came)], left[~(left < came)]
            if np.isfinite(repair.lost_after_s):
                left, donor_s = _given(came, left, repair, donor_s)
            yield came, left

    def _took(self, name: str, repair: "_Repair") -> "_Took":
        dtype = np.dtype([("took", np.float64), ("came", np.float64)])
        parts = _Parts(self.folder / name, self._edges(self.sample_s[1] + repair.move_s), dtype)
        return _Took(_Ranks(parts, self.sizes.rows))

    def _swept(self, sums: _Sums, repair: "_Repair") -> "_Took":
        """Sum over the log in order of time, and return its response times."""
        departures = _Parts(self.folder / "departures", self.arrivals.edges, np.dtype([("left", np.float64)]))
        took = self._took("took", repair)
        for at, (came, left) in enumerate(self._sorted(repair)):
            took.add(came, left)
            gone = left[~np.isnan(left)]
            departures.add(gone, gone.view(departures.dtype))
            self.arrivals.files[at].unlink(missing_ok=True)
            sums.add(came, np.sort(departures.part(at)["left"]))
            departures.files[at].unlink(missing_ok=True)
        return took


@dataclass(frozen=True, slots=True)
class _Repair:
    """What is done to the rows of a log before the law is applied."""

    drop: bool
    """Whether copies are left out."""
    move_s: float = 0.0
    """By how much all departures are moved."""
    forwards: bool = False
    """Whether departures before their arrivals are left out."""
    last_s: float = 0.0
    """The last event."""
    lost_after_s: float = np.inf
    """From so long before that on, a request without a departure has lost it."""


@dataclass(slots=True)
class _Took:
    """Response times of all requests that have left."""

    ranks: _Ranks
    requests: int = 0
    unfinished: int = 0
    total_s: float = 0.0
    first_s: float = np.inf
    """First arrival of one that has left."""
    last_s: float = -np.inf
    first: list[tuple[Floats, Floats]] = field(default_factory=list)
    """Arrivals and departures of the first requests."""

    def add(self, came: Floats, left: Floats) -> None:
        """Take requests in order of arrival."""
        if self.requests < LOOKED_AT:
            self.first.append((came, left))
        known = ~np.isnan(left)
        self.requests += len(came)
        self.unfinished += len(came) - int(np.count_nonzero(known))
        came, took = came[known], (left - came)[known]
        if len(came):
            self.total_s += float(took.sum())
            self.first_s, self.last_s = min(self.first_s, float(came[0])), max(self.last_s, float(came[-1]))
            rows = np.empty(len(came), self.ranks.parts.dtype)
            rows["took"], rows["came"] = took, came
            self.ranks.parts.add(took, rows)

    def beginning(self) -> tuple[Floats, Floats]:
        """Return arrivals and departures of the first requests."""
        came, left = (np.concatenate(ends)[:LOOKED_AT] for ends in zip(*self.first, strict=True))
        return came, left

    def percentiles(self) -> tuple[Percentile, ...]:
        """Return percentiles with bands, as `percentiles` does of times in memory."""
        values_s, span_s = self.ranks.quantiles(np.array(LEVELS)), self.last_s - self.first_s
        blocks = None
        if has_bands(self.ranks.count, span_s):
            edges = np.unique(self.ranks.quantiles(STEPS))
            blocks = (self.ranks.blocks(self.first_s, span_s, edges), edges)
        return banded(values_s, LEVELS, self.ranks.count, blocks)


def _given(came: Floats, left: Floats, repair: _Repair, donor_s: float) -> tuple[Floats, float]:
    """Return departures, lost ones as long after the arrival as that of the request before, and the last response."""
    took = left - came
    whole = np.flatnonzero(~np.isnan(took))
    first_s = donor_s if np.isfinite(donor_s) else float(took[whole[0]]) if len(whole) else np.nan
    known = np.concatenate(([first_s], took[whole]))
    donors_s = known[np.searchsorted(whole, np.arange(len(took)), side="right")]
    lost = np.isnan(left) & (repair.last_s - came > repair.lost_after_s)
    return np.where(lost, came + donors_s, left), float(known[-1])


def _windows(parts: _Parts, *, drop: bool = False) -> Iterator[NDArray[np.void]]:
    """Yield the parts of a log in order, without copies if they are certain."""
    for at in range(len(parts.files)):
        rows = _window(parts, at, drop)
        if len(rows):
            yield rows


def _window(parts: _Parts, at: int, drop: bool) -> NDArray[np.void]:
    rows = parts.part(at)
    if drop and len(rows):
        digest = row_digests(rows["name"], *_rounded(rows))
        rows = rows[np.sort(np.unique(digest, return_index=True)[1])]
    return rows


def _repeat(parts: _Parts) -> bool:
    """Return whether any two rows have their times in common: a stamp and a duration, or both ends."""
    if "stamp" in (parts.dtype.names or ()):
        return any(might_repeat(rows["stamp"], rows["stamp"] + rows["took"]) for rows in _windows(parts))
    return any(might_repeat(rows["came"], rows["left"]) for rows in _windows(parts))


def _rounded(rows: NDArray[np.void]) -> tuple[Floats, Floats]:
    """Return what copies have in common, to the microsecond: both times, or a stamp and how long it took.

    A departure that was not seen is like another.
    """
    first: Floats
    second: Floats
    if "stamp" in (rows.dtype.names or ()):
        first, second = rows["stamp"], rows["left"] - rows["came"]
    else:
        first, second = rows["came"], rows["left"]
    return first.round(_DECIMALS), second.round(_DECIMALS)


def _judged(counts: PairCounts, conflicts: int) -> Copies:
    pairs = alike(counts)
    return Copies(np.zeros(0, dtype=np.bool_), pairs.pairs, pairs.by_chance, pairs.usual, conflicts)
