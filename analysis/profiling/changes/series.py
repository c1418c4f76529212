"""Series of counts by function and time: what was sampled, what was expected, and how machines differ.

Samples of a function are expected where its applications have samples: in each application, on each platform in each
data centre, the function has its share of all time. So neither load nor a changed mix of applications, platforms or
places moves a function from what is expected; a change of its cost within them does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array, vstack

from analysis.profiling.changes.scan import Geometry, Noise
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import QueryError
from analysis.profiling.shelf import Shelf, ShelfPlace
from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints
from models.code.compiled import njit

ABOUT = ("application", "revision", "compiler")
"""What may be at fault besides the tags of visits."""
WEEK = 7
MOST_BINS = 4_000
_DENSE_COUNTS = 200_000
"""Counts of functions in bins that are dense at a time."""
_EVERY = slice(None)
_FEW_PLACES = 40
"""Places that are sorted one by one."""

_Cells = tuple[Ints, AnyInts, Amounts]
"""Where the entries of each of F functions begin, F + 1; of n entries the column, stratum · T + bin, and samples."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Bins of time: the first's start, their width, how many."""

    since_s: float
    width_s: float
    bins: int

    @property
    def day(self) -> int:
        """Bins of a day, at least 1."""
        return max(1, round(DAY_S / self.width_s))

    @property
    def period(self) -> int:
        """Bins after which hours repeat: a day's if there are two days, else 1."""
        return self.day if self.bins > self.day else 1

    def bin_of(self, start_s: Floats) -> Ints:
        """Return the bins of times."""
        return np.floor((start_s - self.since_s) / self.width_s).astype(np.int64)

    def start_s(self, at: int) -> float:
        """Return when a bin begins."""
        return self.since_s + at * self.width_s

    @classmethod
    def over(cls, start_s: Floats, width_s: float = HOUR_S) -> Self:
        """Return the clock whose bins hold all times; they begin at a multiple of the width.

        Raises
        ------
        QueryError
            If there would be too many bins.
        """
        bins = cls.count(start_s, width_s)
        if bins > MOST_BINS:
            least = f"they should be at least {least_width_s(start_s):g} s wide"
            raise QueryError(f"{bins:,} bins of time are more than {MOST_BINS:,}; {least}")
        return cls(float(np.floor(start_s.min() / width_s) * width_s), width_s, bins)

    @staticmethod
    def count(start_s: Floats, width_s: float) -> int:
        """Return how many bins hold all times."""
        since_s = float(np.floor(start_s.min() / width_s) * width_s)
        return int(np.floor((start_s.max() - since_s) / width_s)) + 1


def repeats_daily(width_s: float) -> bool:
    """Return whether bins of a width begin at the same hours every day: it divides a day, or is a number of days.

    Examples
    --------
    >>> [repeats_daily(hours * HOUR_S) for hours in (1.0, 1.5, 5.0, 48.0)]
    [True, True, False, True]
    """
    ratio = max(width_s / DAY_S, DAY_S / width_s)
    return bool(np.isclose(ratio, round(ratio), rtol=1e-9, atol=0.0))


def least_width_s(start_s: Floats) -> float:
    """Return the least width, in whole seconds that repeat daily, from which on bins are at most `MOST_BINS`.

    Examples
    --------
    >>> least_width_s(np.array([0.0, 2.0 * DAY_S])), least_width_s(np.array([0.0, 9_000.0 * DAY_S]))
    (45.0, 259200.0)
    """
    least = float(start_s.max() - start_s.min()) / (MOST_BINS - 1)
    if least > DAY_S:
        return float(np.ceil(least / DAY_S)) * DAY_S
    seconds = np.arange(max(1.0, np.ceil(least)), DAY_S + 1.0)
    return float(seconds[DAY_S % seconds == 0][0])


LEAST_MACHINES = 3
"""Machines side by side from which on their differences are known well enough to judge changes by."""


@dataclass(frozen=True, slots=True, eq=False)
class FleetPart:
    """The samples of the fleet with one value of a tag: of a platform, or of a data centre."""

    dimension: str
    value: str
    excess: Floats
    """(F,) as of `Noise`, measured there."""
    clumps: Floats
    """(F,) the same, of machines and days."""
    side_by_side: int
    """As of `CountSeries`, there."""
    geometry_of: Callable[[int], Geometry]
    """As of `CountSeries`, of the machines there."""
    weekly_of: Callable[[], Geometry | None]
    """As `CountSeries.weekly`, of the machines there."""


@dataclass(frozen=True, slots=True, eq=False)
class CountSeries:
    """Counts of F functions in T bins and S strata: an application on a platform in a data centre."""

    event: str
    clock: Clock
    functions: "pd.Index[str]"
    strata: pd.DataFrame
    """(S,) application, platform, datacentre."""
    cells: "csr_array | FunctionCells"
    """(F, S · T) samples, of which rows can be taken."""
    exposure: Floats
    """(S, T) samples that the functions' are compared with: of everything, until `without` takes some out."""
    weight: Floats
    """(F,) how much a sample of the function stands for, over that of any sample."""
    everything: Floats
    """(T,) samples of everything."""
    noise: Noise
    geometry: Geometry
    weekly: Geometry | None = None
    """Of the same bins where hours of the week repeat; None: there is no second week."""
    known: "dict[str, csr_array]" = field(default_factory=dict, repr=False)
    """What was worked out of the cells."""
    geometry_of: Callable[[int], Geometry] | None = None
    """The geometry where windows are compared with so many bins before them alone; None: nobody knows."""
    side_by_side: int = LEAST_MACHINES
    """Most machines on which an application was sampled on one day, on one platform in one data centre."""
    reach: Ints | None = None
    """(F,) with how many bins before it a window of each function is compared, 0: all; None: all of all."""
    chance: Noise | None = None
    """Standard errors of the variances of the noise's drift, as its `drift` and `walk`; None: nobody knows."""
    tagged: pd.DataFrame | None = None
    """`ABOUT`, visit and samples of everything; None: series of subtrees, whose changes are not explained."""
    parts_of: tuple[FleetPart, ...] = ()
    """Platforms and data centres within which functions may be looked at; nothing of subtrees."""
    whole: "CountSeries | None" = None
    """Of a part, the series of the whole fleet, whose samples tell a season of the week better; None: these are."""
    totals: Floats = field(init=False, repr=False)
    """(S,) exposure over all time."""

    def __post_init__(self) -> None:
        """Add up the exposure once, since every part of the functions is compared with it."""
        object.__setattr__(self, "totals", np.maximum(self.exposure.sum(axis=1), 1e-300))

    @property
    def sizes(self) -> Floats:
        """(F,) samples over all time."""
        if isinstance(self.cells, FunctionCells):
            return self.cells.sizes
        return np.asarray(self.cells.sum(axis=1), dtype=np.float64)

    def reach_of(self, rows: Ints) -> Ints:
        """Return (f,) with how many bins before it a window of some functions is compared; 0: all."""
        return np.zeros(len(rows), dtype=np.int64) if self.reach is None else self.reach[rows]

    def near(self, reach: int) -> Geometry:
        """Return the geometry of windows that are compared with so many bins before them; 0: all."""
        return self.geometry_of(reach) if reach and self.geometry_of is not None else self.geometry

    def since(self, row: int, start: int) -> int:
        """Return the first bin that a window from a bin on is compared with."""
        reach = int(self.reach_of(np.array([row]))[0])
        return max(start - reach, 0) // self.clock.period * self.clock.period if reach else 0

    def parts(self, rows: Ints | None = None) -> Iterator[Ints]:
        """Yield functions, so many at a time that what was sampled of them and their counts are few.

        Parameters
        ----------
        rows : of which functions; none: of all
        """
        chosen = np.arange(len(self.functions)) if rows is None else rows
        entries = self.cells.entries if isinstance(self.cells, FunctionCells) else np.diff(self.cells.indptr)
        size = np.cumsum(entries[chosen] + self.exposure.shape[1])
        number = size // _DENSE_COUNTS
        yield from np.split(chosen, np.flatnonzero(np.diff(number)) + 1) if len(chosen) else ()

    def strata_of(self) -> csr_array:
        """Return (F, S) samples of functions in each stratum, in order of strata; they are worked out once."""
        if "strata" not in self.known:
            parts = [csr_array((0, len(self.strata)))]
            for part in self.parts():
                cells = self._entries(part)
                size = int(np.minimum(len(cells[1]), len(part) * len(self.strata)))
                first, stratum, sums = np.zeros(len(part) + 1, np.int64), np.zeros(size, np.int64), np.zeros(size)
                _by_stratum(cells, self.exposure.shape[1], self._scratch(), first, (stratum, sums))
                filled = int(first[-1])
                shape = len(part), len(self.strata)
                parts.append(csr_array((sums[:filled].copy(), stratum[:filled].copy(), first), shape=shape))
            self.known["strata"] = csr_array(vstack(parts, format="csr"))
        return self.known["strata"]

    def _entries(self, rows: slice | Ints, *, all_strata: bool = False) -> _Cells:
        """Return the cells of some functions; `all_strata` as of `FunctionCells.of_rows`."""
        if isinstance(self.cells, FunctionCells):
            return self.cells.of_rows(np.arange(len(self.functions))[rows], all_strata=all_strata)
        cells = self.cells[rows]
        return cells.indptr.astype(np.int64), cells.indices, cells.data

    def _scratch(self) -> tuple[Floats, Ints]:
        return np.zeros(len(self.exposure)), np.zeros((2, len(self.exposure)), dtype=np.int64)

    def counts(self, rows: slice | Ints = _EVERY) -> Floats:
        """Return (F, T) samples.

        Parameters
        ----------
        rows : places of the functions; none: all
        """
        return self.counts_and_expected(rows)[0]

    def expected(self, rows: slice | Ints = _EVERY) -> Floats:
        """Return (F, T) samples that are expected from each stratum's share over all time; parameter as of `counts`."""
        return self.counts_and_expected(rows)[1]

    def counts_and_expected(self, rows: slice | Ints = _EVERY) -> tuple[Floats, Floats]:
        """Return both, for which samples are fetched once; parameter as of `counts`."""
        functions = len(np.arange(len(self.functions))[rows])
        counts, expected = np.zeros((2, functions, self.exposure.shape[1]))
        inside = np.ones(len(self.exposure), dtype=np.bool_)
        if isinstance(self.cells, FunctionCells) and self.cells.strata is not None:
            inside = self.cells.strata
        strata = np.ascontiguousarray(self.exposure), self.totals, inside
        _spread_out(self._entries(rows, all_strata=True), strata, self._scratch(), counts, expected)
        return counts, expected

    def without(self, functions: Sequence[int]) -> "CountSeries":
        """Return the series with samples of some functions taken out of what all others are compared with."""
        strata, bins = self.exposure.shape
        taken = np.asarray(self.cells[np.array(functions, dtype=np.int64)].sum(axis=0)).reshape(strata, bins)
        return replace(self, exposure=np.maximum(self.exposure - taken, 0.0))

    def only(self, part: FleetPart) -> "CountSeries":
        """Return the same functions' samples of one part of the fleet, which differ between machines as there.

        Samples that come in clumps on visits are as clumped as if all clumps were there. Drift and the geometry of
        machines stay those of the whole fleet. So do samples of everything: costs are shares of all events.
        """
        inside = np.asarray(self.strata[part.dimension].to_numpy(object) == part.value, dtype=np.bool_)
        by_stratum = csr_array(self.strata_of().multiply(inside[None, :].astype(np.float64)))
        by_stratum.eliminate_zeros()
        sizes = np.asarray(by_stratum.sum(axis=1), dtype=np.float64)
        clumps = np.maximum(part.clumps, self.noise.clumps * self.sizes / np.maximum(sizes, 1.0))
        if isinstance(self.cells, FunctionCells):
            cells: csr_array | FunctionCells = replace(self.cells, strata=inside, sizes=sizes)
        else:
            columns = np.repeat(inside.astype(np.float64), self.exposure.shape[1])
            cells = csr_array(self.cells.multiply(columns[None, :]))
            cells.eliminate_zeros()
        return replace(
            self,
            cells=cells,
            exposure=self.exposure * inside[:, None],
            noise=replace(self.noise, excess=part.excess, clumps=clumps),
            known={"strata": by_stratum},
            tagged=None,
            parts_of=(),
            whole=self,
        )

    def by_application(self) -> csr_array:
        """Return (F, A) samples of functions in each application, in order of their first strata."""
        application, names = pd.factorize(self.strata["application"])
        member = csr_array(
            (np.ones(len(application)), (np.arange(len(application)), application)),
            shape=(len(application), len(names)),
        )
        return csr_array(self.strata_of() @ member)

    def concentration(self) -> Floats:
        """Return (F,) the chance that two samples of each function are of one application (Simpson 1949).

        It is 1 of a function of one application alone and 1/n of one that n applications have as much of.
        """
        sums, every = self.by_application(), np.maximum(self.sizes, 2.0)
        sums.data *= sums.data - 1.0
        return np.asarray(sums.sum(axis=1), dtype=np.float64) / (every * (every - 1.0))

    def home(self) -> Ints:
        """Return (F,) the number of the application in which each function has most of its samples."""
        sums = self.by_application()
        sums.sort_indices()
        most = np.zeros(len(self.functions), dtype=np.int64)
        filled = np.flatnonzero(np.diff(sums.indptr))
        if len(filled):
            greatest = np.maximum.reduceat(sums.data, sums.indptr[filled])
            owner = np.repeat(np.arange(len(filled)), np.diff(sums.indptr)[filled])
            first = np.flatnonzero(sums.data == greatest[owner])[::-1]
            most[filled[owner[first]]] = sums.indices[first]
        return most

    def of(self, function: int) -> Floats:
        """Return (S, T) samples of a function."""
        cells = self.cells[np.array([function])].tocoo()
        return np.bincount(cells.col, cells.data, self.exposure.size).reshape(self.exposure.shape).astype(np.float64)

    def within(self, function: int) -> tuple[Ints, Floats]:
        """Return (s,) the strata in which a function has samples, and (s, T) these."""
        (_, column, values), bins = self._entries(np.array([function])), self.exposure.shape[1]
        strata, own = np.unique(column // bins, return_inverse=True)
        samples = np.bincount(own * bins + column % bins, values, len(strata) * bins)
        return strata.astype(np.int64), samples.reshape(-1, bins).astype(np.float64)


@njit(cache=False, borrows=True)
def _put_in_order(places: Ints, several: int) -> None:
    """Put the first places of the second row in order; those have a mark in the first."""
    if several > _FEW_PLACES:
        several = 0
        for place in range(places.shape[1]):
            if places[0, place]:
                places[1, several] = place
                several += 1
    for at in range(1, several if several <= _FEW_PLACES else 0):
        own, before = places[1, at], at
        while before and places[1, before - 1] > own:
            places[1, before] = places[1, before - 1]
            before -= 1
        places[1, before] = own


@njit(nogil=True, borrows=True, error_model="numpy")
def _spread_out(
    cells: _Cells,
    strata: tuple[Floats, Floats, Bools],
    scratch: tuple[Floats, Ints],
    counts: Floats,
    expected: Floats,
) -> None:
    """Add up samples by bin, and what is expected of functions from their shares of strata.

    Parameters
    ----------
    cells : of F functions
    strata : (S, T) exposure, (S,) totals, and whether its samples count
    scratch : (S,) and (2, S) zeros
    counts, expected : (F, T) zeros
    """
    first, column, samples = cells
    exposure, total, inside = strata
    sums, places = scratch
    bins = counts.shape[1]
    for function in range(len(first) - 1):
        several = 0
        for at in range(first[function], first[function + 1]):
            # Quicker than a division of whole numbers, and exact for those that fit in memory.
            stratum = int((column[at] + 0.5) * (1.0 / bins))
            if not inside[stratum]:
                continue
            if not places[0, stratum]:
                places[0, stratum], places[1, several] = 1, stratum
                several += 1
            counts[function, column[at] - stratum * bins] += samples[at]
            sums[stratum] += samples[at]
        _put_in_order(places, several)
        for place in range(several):
            stratum = places[1, place]
            share = sums[stratum] / total[stratum]
            sums[stratum], places[0, stratum] = 0.0, 0
            for bin_ in range(bins):
                expected[function, bin_] += share * exposure[stratum, bin_]


@njit(nogil=True, borrows=True)
def _by_stratum(
    cells: _Cells,
    bins: int,
    scratch: tuple[Floats, Ints],
    begin: Ints,
    into: tuple[Ints, Floats],
) -> None:
    """Add up samples by function and stratum.

    Parameters
    ----------
    cells, scratch : as of `_spread_out`
    bins : T
    begin : (F + 1,) zeros, filled with where the sums of each function begin
    into : strata and sums, in order
    """
    first, column, samples = cells
    sums, places = scratch
    left = 0
    for function in range(len(first) - 1):
        several = 0
        for at in range(first[function], first[function + 1]):
            stratum = int((column[at] + 0.5) * (1.0 / bins))
            if not places[0, stratum]:
                places[0, stratum], places[1, several] = 1, stratum
                several += 1
            sums[stratum] += samples[at]
        _put_in_order(places, several)
        for place in range(several):
            stratum = places[1, place]
            into[0][left], into[1][left] = stratum, sums[stratum]
            sums[stratum], places[0, stratum] = 0.0, 0
            left += 1
        begin[function + 1] = left


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCells:
    """Samples by function, stratum and bin, put away function by function; rows are taken as of a sparse matrix."""

    first: Ints
    """(F + 1,) where each function's entries begin."""
    columns: int
    column: Shelf
    samples: Shelf
    kinds: tuple[str, str]
    """Of the columns and of the samples."""
    sizes: Floats
    """(F,) samples over all time."""
    strata: Bools | None = None
    """(S,) those that are taken; None: all."""

    @property
    def entries(self) -> Ints:
        """(F,) how many entries each function has, at most."""
        return np.diff(self.first)

    def __getitem__(self, rows: "slice | Ints") -> coo_array:
        """Return (f, S · T) samples of some functions."""
        wanted = np.arange(len(self.first) - 1)[rows]
        first, column, samples = self.of_rows(wanted)
        row = np.repeat(np.arange(len(wanted)), np.diff(first))
        return coo_array((samples.astype(np.float64), (row, column)), shape=(len(wanted), self.columns))

    def of_rows(self, wanted: Ints, *, all_strata: bool = False) -> _Cells:
        """Return the cells of some functions.

        Parameters
        ----------
        wanted : places of the functions
        all_strata : also of strata that are not taken, which is quicker
        """
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1) if len(wanted) else []
        spans = [(int(self.first[run[0]]), int(self.first[run[-1] + 1])) for run in runs] or [(0, 0)]
        total = int(self.first[-1])
        parts = [
            [shelf.get(ShelfPlace(0, total, kind), *span) for span in spans]
            for shelf, kind in zip((self.column, self.samples), self.kinds, strict=True)
        ]
        column, samples = (own[0] if len(own) == 1 else np.concatenate(own) for own in parts)
        first = np.append(0, np.cumsum(self.entries[wanted]))
        if self.strata is not None and not all_strata:
            here = np.repeat(self.strata, self.columns // len(self.strata))[column]
            return np.append(0, np.cumsum(here))[first], column[here], samples[here]
        return first, column, samples

    @classmethod
    def of(cls, days: "Sequence[ShelvedDay]", large: Ints, sizes: Floats, columns: int, shelf: Shelf) -> Self:
        """Return the cells of some functions from those of each day.

        Parameters
        ----------
        days : where they are
        large : (F,) numbers of the functions, rising
        sizes : of every function its samples
        columns : S · T
        shelf : where the days are
        """
        count = int(large.max(initial=-1)) + 1
        first = np.array([day.first[np.minimum(np.arange(count + 1), len(day.first) - 1)] for day in days])
        entries = np.diff(first, axis=1).sum(axis=0)
        kinds = tuple(np.result_type(*(getattr(day, name).kind for day in days)).str for name in ("column", "samples"))
        cells = cls(
            np.append(0, np.cumsum(entries[large])), columns, Shelf(), Shelf(), (kinds[0], kinds[1]), sizes[large]
        )
        wanted = np.isin(np.arange(count), large)
        parts = np.split(np.arange(count), np.flatnonzero(np.diff(np.cumsum(entries) // _DENSE_COUNTS)) + 1)
        for part in parts if count else ():
            own = first[:, part[0] : part[-1] + 2]
            length = own[:, -1] - own[:, 0]
            order = np.empty(int(entries[part][wanted[part]].sum()), dtype=np.int64)
            _function_by_function(own - own[:, :1] + (np.cumsum(length) - length)[:, None], wanted[part], order)
            for target, name, kind in ((cells.column, "column", kinds[0]), (cells.samples, "samples", kinds[1])):
                spans = zip(days, own[:, 0].tolist(), own[:, -1].tolist(), strict=True)
                values = np.concatenate([shelf.get(getattr(day, name), *span) for day, *span in spans])
                target.put(values[order].astype(kind, copy=False))
        return cells


@njit(nogil=True, borrows=True)
def _function_by_function(first: Ints, wanted: Bools, order: Ints) -> None:
    """Fill in where the entries of functions that are wanted are, function by function, day by day.

    Parameters
    ----------
    first : (D, F + 1) where each day's entries of functions begin
    wanted : (F,)
    order : (n,)
    """
    at = 0
    for function in range(len(wanted)):
        if wanted[function]:
            for day in range(len(first)):
                for entry in range(first[day, function], first[day, function + 1]):
                    order[at] = entry
                    at += 1


@dataclass(frozen=True, slots=True)
class ShelvedDay:
    """A day's samples, function by function."""

    first: Ints
    """Where each function's entries begin."""
    column: ShelfPlace
    samples: ShelfPlace
