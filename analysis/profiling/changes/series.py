"""Series of counts by function and time: what was sampled, what was expected, and how machines differ.

Samples of a function are expected where its applications have samples: in each application, on each platform in each
data centre, the function has its share of all time. So neither load nor a changed mix of applications, platforms or
places moves a function from what is expected; a change of its cost within them does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array, vstack

from analysis.profiling.changes.scan import Geometry, Noise
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import Query, QueryError
from analysis.profiling.regressions.coded import distinct, numbered
from analysis.profiling.shelf import Shelf, ShelfPlace
from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

ABOUT = ("application", "revision", "compiler")
"""What may be at fault besides the tags of visits."""
MIN_SAMPLES = 20
"""Samples of a function over all time from which it is looked at."""
WEEK = 7
_USUAL = 0.01
"""Variance of log shares between machine-days where nothing tells it."""
_PRIOR_DAYS = 20.0
"""Weight of the usual variance, in machine-days."""
_FEW_DAYS = 5.0
"""Machine-days from which a function has a say in the usual variance where few have `_PRIOR_DAYS`."""
_TELLING = 7
"""Times `_PRIOR_DAYS` that functions have together if they tell the usual variance."""
_LASTING_PAIRS = 200
"""Pairs of function and application, the largest, by which the part of the variance that lasts is measured."""
MOST_BINS = 4_000
_TOGETHER = 200_000
"""Counts of functions in bins that are dense at a time."""
_EVERY = slice(None)


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
    tagged: pd.DataFrame | None = None
    """`ABOUT`, visit and samples of everything; None: series of subtrees, whose changes are not explained."""

    @property
    def sizes(self) -> Floats:
        """(F,) samples over all time."""
        sizes = np.zeros(len(self.functions))
        for part in self.parts():
            sizes[part] = self.cells[part].sum(axis=1)
        return sizes

    def parts(self, rows: Ints | None = None) -> Iterator[Ints]:
        """Yield functions, so many at a time that what was sampled of them and their counts are few.

        Parameters
        ----------
        rows : of which functions; none: of all
        """
        chosen = np.arange(len(self.functions)) if rows is None else rows
        entries = self.cells.entries if isinstance(self.cells, FunctionCells) else np.diff(self.cells.indptr)
        size = np.cumsum(entries[chosen] + self.exposure.shape[1])
        number = size // _TOGETHER
        yield from np.split(chosen, np.flatnonzero(np.diff(number)) + 1) if len(chosen) else ()

    def strata_of(self) -> csr_array:
        """Return (F, S) samples of functions in each stratum."""
        parts = [csr_array((0, len(self.strata)))]
        for part in self.parts():
            cells = self.cells[part].tocoo()
            parts.append(csr_array(_summed(cells, cells.col // self.exposure.shape[1], len(self.strata))))
        return csr_array(vstack(parts, format="csr"))

    def counts(self, rows: slice | Ints = _EVERY) -> Floats:
        """Return (F, T) samples.

        Parameters
        ----------
        rows : places of the functions; none: all
        """
        return self._counts(self.cells[rows].tocoo())

    def expected(self, rows: slice | Ints = _EVERY) -> Floats:
        """Return (F, T) samples that are expected from each stratum's share over all time; parameter as of `counts`."""
        return self._expected(self.cells[rows].tocoo())

    def counts_and_expected(self, rows: slice | Ints = _EVERY) -> tuple[Floats, Floats]:
        """Return both, for which samples are fetched once; parameter as of `counts`."""
        cells = self.cells[rows].tocoo()
        return self._counts(cells), self._expected(cells)

    def _counts(self, cells: coo_array) -> Floats:
        bins = self.exposure.shape[1]
        return _summed(cells, cells.col % bins, bins)

    def _expected(self, cells: coo_array) -> Floats:
        strata, bins = self.exposure.shape
        total = np.maximum(self.exposure.sum(axis=1), 1e-300)
        share = csr_array(_summed(cells, cells.col // bins, strata) / total)
        return np.asarray(share @ self.exposure, dtype=np.float64)

    def without(self, functions: Sequence[int]) -> "CountSeries":
        """Return the series with samples of some functions taken out of what all others are compared with."""
        strata, bins = self.exposure.shape
        taken = np.asarray(self.cells[np.array(functions, dtype=np.int64)].sum(axis=0)).reshape(strata, bins)
        return replace(self, exposure=np.maximum(self.exposure - taken, 0.0))

    def home(self) -> Ints:
        """Return (F,) the number of the application in which each function has most of its samples."""
        application, names = pd.factorize(self.strata["application"])
        most = [np.zeros(0, dtype=np.int64)]
        for part in self.parts():
            cells = self.cells[part].tocoo()
            owner = application[cells.col // self.exposure.shape[1]]
            most.append(_summed(cells, owner, len(names)).argmax(axis=1))
        return np.concatenate(most).astype(np.int64)

    def of(self, function: int) -> Floats:
        """Return (S, T) samples of a function."""
        cells = self.cells[np.array([function])].tocoo()
        return np.bincount(cells.col, cells.data, self.exposure.size).reshape(self.exposure.shape).astype(np.float64)


def _summed(cells: coo_array, group: Ints, groups: int) -> Floats:
    """Return (f, G) sums over entries of a group."""
    sums = np.bincount(cells.row.astype(np.int64) * groups + group, cells.data, cells.shape[0] * groups)
    return sums.reshape(cells.shape[0], groups).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCells:
    """Samples by function, stratum and bin, put away function by function; rows are taken as of a sparse matrix."""

    first: Ints
    """(F + 1,) where each function's entries begin."""
    columns: int
    column: Shelf
    samples: Shelf
    kind: str
    """Of the columns."""

    @property
    def entries(self) -> Ints:
        """(F,) how many entries each function has."""
        return np.diff(self.first)

    def __getitem__(self, rows: "slice | Ints") -> coo_array:
        """Return (f, S · T) samples of some functions."""
        wanted = np.arange(len(self.first) - 1)[rows]
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1) if len(wanted) else []
        spans = [(int(self.first[run[0]]), int(self.first[run[-1] + 1])) for run in runs]
        total = int(self.first[-1])
        column, samples = (
            np.concatenate([np.zeros(0, kind), *(shelf.get(ShelfPlace(0, total, kind), *span) for span in spans)])
            for shelf, kind in ((self.column, self.kind), (self.samples, "f8"))
        )
        row = np.repeat(np.arange(len(wanted)), self.entries[wanted])
        return coo_array((samples, (row, column)), shape=(len(wanted), self.columns))

    @classmethod
    def of(cls, days: "Sequence[_PutAway]", large: Ints, columns: int, shelf: Shelf) -> Self:
        """Return the cells of some functions from those of each day.

        Parameters
        ----------
        days : where they are
        large : (F,) numbers of the functions, rising
        columns : S · T
        shelf : where the days are
        """
        from analysis.profiling.counted import ordered

        sizes = np.zeros(int(large.max(initial=-1)) + 1, dtype=np.int64)
        for day in days:
            own = np.diff(day.first)[: len(sizes)]
            sizes[: len(own)] += own
        kind = "i4" if columns < 2**31 else "i8"
        cells = cls(np.append(0, np.cumsum(sizes[large])), columns, Shelf(), Shelf(), kind)
        wanted = np.isin(np.arange(len(sizes)), large)
        for part in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(np.cumsum(sizes) // _TOGETHER)) + 1):
            spans = [(day, day.first[np.minimum([part[0], part[-1] + 1], len(day.first) - 1)]) for day in days]
            owner = np.concatenate(
                [
                    np.repeat(np.arange(len(own)), own)
                    for own in (np.diff(day.first[part[0] : part[-1] + 2]) for day, _ in spans)
                ]
            )
            inside = np.flatnonzero(wanted[part][owner])
            order = inside[ordered(owner[inside], np.arange(len(inside), dtype=np.int32))]
            for target, name in ((cells.column, "column"), (cells.samples, "samples")):
                values = np.concatenate([shelf.get(getattr(day, name), *span.tolist()) for day, span in spans])
                target.put(values[order].astype(kind if name == "column" else "f8"))
        return cells


@dataclass(frozen=True, slots=True)
class _PutAway:
    """A day's samples, function by function."""

    first: Ints
    """Where each function's entries begin."""
    column: ShelfPlace
    samples: ShelfPlace


@dataclass(slots=True)
class _Spread:
    """Sums over days by which the spread between machines is measured; arrays of one entry for each function."""

    square: Floats
    """Σ squared deviations between machines within strata and days, less independent samples' part."""
    pairs: Floats
    """What a variance of log shares is multiplied by in them."""
    mean: Floats
    """Σ expected counts of machine-days."""
    concentration: Floats
    """Σ squared expected counts of machine-days."""

    @classmethod
    def of(cls, functions: int) -> Self:
        return cls(*np.zeros((4, functions)))

    def wider(self, functions: int) -> "_Spread":
        """Return the sums with room for more functions."""
        more = functions - len(self.mean)
        parts = (self.square, self.pairs, self.mean, self.concentration)
        return _Spread(*(np.concatenate([part, np.zeros(more)]) for part in parts))


@dataclass(slots=True)
class _Lasting:
    """Deviations of machines, day by day, of the pairs of function and stratum that are largest."""

    rows: list[pd.DataFrame] = field(default_factory=list)

    def share(self) -> float:
        """Return the part of the variance between machine-days that stays with the machine, 0..0.98."""
        if not self.rows:
            return 0.0
        rows = pd.concat(self.rows, ignore_index=True)
        own = rows.assign(square=rows["stray"] ** 2 - rows["mean"], size=rows["mean"] ** 2)
        machines = rows.groupby(["pair", "machine"], observed=True)[["stray", "mean"]].sum()
        apart = float((machines["stray"] ** 2).sum() - (rows["stray"] ** 2).sum())
        ways = float((machines["mean"] ** 2).sum() - own["size"].sum())
        if ways <= 0 or own["square"].sum() <= 0:
            return 0.0
        return float(np.clip((apart / ways) / (own["square"].sum() / own["size"].sum()), 0.0, 0.98))


@dataclass(frozen=True, slots=True)
class WatchSpan:
    """The time that is looked at, and in what steps."""

    since_s: float | None = None
    """Visits from this time on; None: from the first."""
    until_s: float | None = None
    """Visits before this time; None: to the last."""
    width_s: float = HOUR_S
    """Width of the bins of time."""

    def holds(self, start_s: Floats) -> Bools:
        """Return which times are within."""
        after = start_s >= (-np.inf if self.since_s is None else self.since_s)
        return np.asarray(after & (start_s < (np.inf if self.until_s is None else self.until_s)), dtype=np.bool_)


def read(database: "Database", event: str, span: WatchSpan, *, subtrees: bool = False) -> CountSeries:
    """Return the series of all functions, read day by day.

    Parameters
    ----------
    database : asked
    event : generic event
    span : time that is looked at
    subtrees : of functions with all that they call, from the samples that have call paths

    Raises
    ------
    QueryError
        If there are no samples, or too many bins.
    """
    visits = visits_of_fleet(database)
    visits = visits[span.holds(visits["start_s"].to_numpy(np.float64))].set_index("visit")
    if visits.empty:
        raise QueryError("there are no visits in this time")
    clock = Clock.over(visits["start_s"].to_numpy(np.float64), span.width_s)
    query = of_fleet(database, event, ("function", *ABOUT, "visit")).during(span.since_s, span.until_s)
    reading = _Reading(clock, visits, set(database.values("collection")))
    if subtrees:
        return reading.series(event, _with_callees(database, query, visits))
    day = np.floor(visits["start_s"] / DAY_S)
    counted = database.counted(query, lambda keys: pd.factorize(keys["visit"].map(day), sort=True)[0])
    return replace(reading.series(event, _alone(counted)), tagged=counted.keys)


def _alone(counted: "CountedSamples") -> "Iterator[_Day]":
    """Yield samples in functions themselves, day by day, as they were counted."""
    function, names = _small_codes(counted.places["function"])
    for part in range(counted.parts):
        entries = counted.entries(part)
        samples = entries.samples
        day = _Day(counted.keys, names, entries.key, function[entries.place], samples, entries.value, samples)
        del entries, samples
        yield day


def _with_callees(database: "Database", query: Query, visits: pd.DataFrame) -> "Iterator[_Day]":
    """Yield samples in functions and all that they call, day by day."""
    for since_s, until_s in days_of(visits):
        bounded = replace(query, by=(), since_s=since_s, until_s=until_s)
        rows = database.inclusive(bounded, apart=("application", "visit"))
        key, keys = distinct(rows, ["application", "visit"])
        function, names = _small_codes(rows["function"])
        samples, value = (rows[name].to_numpy(np.float64) for name in ("samples", "value"))
        own = rows["own"].to_numpy(np.float64) * samples / np.maximum(value, 1.0)
        yield _Day(keys, names, key.astype(np.int32), function, samples, value, own)


def _small_codes(functions: "pd.Series[str]") -> "tuple[AnyInts, pd.Index[str]]":
    """Return functions as numbers of names in order."""
    code, names = pd.factorize(functions, sort=True)
    return code.astype(np.int32), names


@dataclass(frozen=True, slots=True, eq=False)
class _Day:
    """What was sampled on a day, by the query's keys: arrays of n entries, keys of applications and visits by row."""

    keys: pd.DataFrame
    """(K,) application, visit, maybe others."""
    names: "pd.Index[str]"
    """(F,) functions, in order."""
    key: AnyInts
    function: AnyInts
    samples: Floats
    value: Floats
    own: Floats
    """Samples of the function itself."""

    def of_visits(self, visits: pd.Index) -> "_Day":
        """Return what was sampled on some visits."""
        inside = self.keys["visit"].isin(visits).to_numpy(np.bool_)[self.key]
        if inside.all():
            return self
        key, function, amounts = self.key[inside], self.function[inside], (self.samples, self.value, self.own)
        return _Day(self.keys, self.names, key, function, *(array[inside] for array in amounts))


class _Reading:
    """Adds up the days of a profile."""

    def __init__(self, clock: Clock, visits: pd.DataFrame, nameless: set[str]) -> None:
        self.clock, self.visits, self.nameless = clock, visits, nameless
        self.functions: dict[str, int] = {}
        self.strata: dict[tuple[str, str, str], int] = {}
        self.machines: dict[object, int] = {}
        self.spread, self.lasting = _Spread.of(0), _Lasting()
        self.largest: set[int] = set()
        self.shelf, self.days = Shelf(), list[_PutAway]()
        self.value = self.total = np.zeros(0)
        self.exposure = self.by_machine = np.zeros((0, clock.bins))

    def series(self, event: str, days: "Iterator[_Day]") -> CountSeries:
        """Return the series of everything that is read."""
        for day in days:
            here = day.of_visits(self.visits.index)
            if len(here.key):
                self._add(here)
        if not self.days:
            raise QueryError(f"the event {event} has no samples in this time")
        total, value = self.total, self.value
        large = np.flatnonzero(total >= MIN_SAMPLES)
        return CountSeries(
            event,
            self.clock,
            pd.Index(np.array(list(self.functions), dtype=object)[large]),
            pd.DataFrame(list(self.strata), columns=["application", "platform", "datacentre"]),
            FunctionCells.of(self.days, large, self.exposure.size, self.shelf),
            self.exposure,
            (value / np.maximum(total, 1.0))[large] * total.sum() / max(float(value.sum()), 1e-300),
            self.exposure.sum(axis=0),
            self._noise(large),
            *self._geometries(),
        )

    def _geometries(self) -> tuple[Geometry, Geometry | None]:
        machines, clock = self.by_machine, self.clock
        week = WEEK * clock.day
        weekly = Geometry.of(machines, clock.day, week) if clock.bins > week and clock.width_s <= DAY_S else None
        return Geometry.of(machines, clock.day, clock.period), weekly

    def _add(self, rows: "_Day") -> None:
        from analysis.profiling.counted import ordered

        here = np.flatnonzero(np.bincount(rows.key, minlength=len(rows.keys)))
        keys, of_key = rows.keys.iloc[here], np.zeros(len(rows.keys), dtype=np.int32)
        of_key[here] = np.arange(len(here))
        key = of_key[rows.key]
        visit = keys["visit"].to_numpy(np.int64)
        about = self.visits.loc[visit]
        application, named = numbered_names(programs(keys["application"], self.nameless))
        place, places = numbered_names(about["platform"], about["datacentre"])
        code, pairs = numbered_codes(application, place)
        strata = [(named[first][0], *places[second]) for first, second in pairs.tolist()]
        present = np.bincount(rows.function, minlength=len(rows.names)) > 0
        function = (np.cumsum(present, dtype=np.int32) - np.int32(1))[rows.function]
        functions = [(str(name),) for name in rows.names[present]]
        machine, machines = numbered_names(about["machine"])
        # The first day's numbers are in the order of the greatest values: of equal ones that decides which are kept.
        codes = function, code, machine
        first = None if self.functions else _greatest_first(rows.value, key, codes, (visit, application))
        of_functions, of_strata, of_machines = first or (None, None, None)
        function = _known(self.functions, functions, of_functions).astype(np.int32)[function]
        stratum = _known(self.strata, strata, of_strata)[code]
        machine = _known(self.machines, machines, of_machines)[machine]
        bins, count = self.clock.bins, len(self.functions)
        at = self.clock.bin_of(about["start_s"].to_numpy(np.float64))
        own, column = np.bincount(key, rows.own).astype(np.float64), stratum * bins + at
        self.exposure = _longer(self.exposure, len(self.strata))
        self.by_machine = _longer(self.by_machine, len(self.machines))
        self.exposure += np.bincount(column, own, self.exposure.size).reshape(-1, bins)
        self.by_machine += np.bincount(machine * bins + at, own, self.by_machine.size).reshape(-1, bins)
        self.total = _longer(self.total, count) + np.bincount(function, rows.samples, count)
        self.value = _longer(self.value, count) + np.bincount(function, rows.value, count)
        on, sizes = numbered_codes(stratum, machine)
        place = on.astype(np.int32)
        order = ordered(function, ordered(place[key], np.arange(len(key), dtype=np.int32)))
        function, key, samples = function[order], key[order], rows.samples[order]
        kind = np.int32 if self.exposure.size < 2**31 else np.int64
        starts = np.append(0, np.cumsum(np.bincount(function, minlength=count)))
        self.days.append(_PutAway(starts, self.shelf.put(column.astype(kind)[key]), self.shelf.put(samples)))
        self.spread = self.spread.wider(count)
        self._measure(function, place[key], samples, sizes, np.bincount(on, own, len(sizes)).astype(np.float64))

    def _measure(self, function: AnyInts, at: AnyInts, samples: Floats, sizes: Ints, size: Floats) -> None:
        """Add a day's differences between machines.

        Parameters
        ----------
        function, at, samples : (n,) in order of functions, then of places; `at` are numbers of strata and machines
        sizes : (P, 2) stratum and machine of those numbers
        size : (P,) samples of everything
        """
        from analysis.profiling.counted import add_equal

        strata, functions = len(self.strata), len(self.functions)
        left = slice(add_equal(function, at, samples[None]))
        function, at, samples = function[left], at[left], samples[left]
        some = size > 0
        n1, n2, n3 = (np.bincount(sizes[some, 0], size[some] ** power, strata) for power in (1, 2, 3))
        stratum_of = sizes[:, 0].astype(np.int32)[at]
        new = (function[1:] != function[:-1]) | (stratum_of[1:] != stratum_of[:-1])
        begin = np.append(0, np.flatnonzero(new) + 1)
        end = np.append(begin[1:], len(function))
        samples = samples if some.all() else np.where(some[at], samples, 0.0)
        beside = samples * size[at]
        total, cross = np.add.reduceat(samples, begin), np.add.reduceat(beside, begin)
        square = np.add.reduceat(np.square(samples, out=beside), begin)
        known = total > 0
        begin, end, total, cross, square = (array[known] for array in (begin, end, total, cross, square))
        pair, stratum = function[begin].astype(np.int64), stratum_of[begin].astype(np.int64)
        n1, n2, n3 = n1[stratum], n2[stratum], n3[stratum]
        share = total / n1
        away = square - 2.0 * share * cross + share**2 * n2
        alone = share * (1.0 - share) * (n1 - n2 / n1)
        ways = share**2 * (n2 - 2.0 * n3 / n1 + n2**2 / n1**2)
        self.spread.square += np.bincount(pair, away - alone, functions)
        self.spread.pairs += np.bincount(pair, np.maximum(ways, 0.0), functions)
        self.spread.mean += np.bincount(pair, total, functions)
        self.spread.concentration += np.bincount(pair, share**2 * n2, functions)
        key = pair * 2**31 + stratum
        if not self.largest:
            order = np.argsort(-total, kind="stable")[:_LASTING_PAIRS]
            self.largest = set(key[order].tolist())
        wanted = np.isin(key, np.array(sorted(self.largest)))
        spans = [np.arange(*span) for span in zip(begin[wanted].tolist(), end[wanted].tolist(), strict=True)]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *spans])
        rows = rows[some[at[rows]]]
        stratum_on, machine = sizes[at[rows]].T
        self._remember(
            pd.DataFrame({"pair": key, "function": pair, "stratum": stratum, "share": share})[wanted],
            pd.DataFrame({"stratum": sizes[some, 0], "machine": sizes[some, 1], "size": size[some]}),
            pd.DataFrame(
                {
                    "function": function[rows].astype(np.int64),
                    "stratum": stratum_on,
                    "machine": machine,
                    "samples": samples[rows],
                }
            ),
        )

    def _remember(self, wanted: pd.DataFrame, size: pd.DataFrame, count: pd.DataFrame) -> None:
        """Keep the deviations of machines of the largest pairs."""
        rows = wanted.merge(size, on="stratum")
        rows = rows.merge(count, "left").fillna({"samples": 0.0})
        mean = rows["share"] * rows["size"]
        strays = rows[["pair", "machine"]].assign(stray=rows["samples"] - mean, mean=mean)
        self.lasting.rows.append(strays)

    def _noise(self, large: Ints) -> Noise:
        spread = self.spread
        mean, concentration = np.maximum(spread.mean[large], 1e-300), spread.concentration[large]
        own = spread.square[large] / np.maximum(spread.pairs[large], 1e-300)
        days, usual_count = mean**2 / np.maximum(concentration, 1e-300), concentration / mean
        variance = smoothed(own, spread.pairs[large] / np.maximum(concentration, 1e-300) * days, usual_count)
        return Noise(variance * usual_count, self.lasting.share())


def _longer(values: Floats, rows: int) -> Floats:
    """Return an array with as many rows, the new ones of zeros."""
    more = np.zeros((rows - len(values), *values.shape[1:]))
    return np.concatenate([values, more]) if len(more) else values


def numbered_names(*columns: pd.Series) -> tuple[Ints, list[tuple[str, ...]]]:
    """Return rows' numbers among their distinct tuples of names, and these in order.

    Examples
    --------
    >>> numbered_names(pd.Series(["b", "a", "b"]), pd.Series(["x", "x", "x"]))
    (array([1, 0, 1]), [('a', 'x'), ('b', 'x')])
    """
    parts = [pd.factorize(column, sort=True) for column in columns]
    code = parts[0][0].astype(np.int64)
    names: list[tuple[str, ...]] = [(name,) for name in parts[0][1].tolist()]
    for own, more in parts[1:]:
        code, pairs = numbered_codes(code, own.astype(np.int64))
        names = [(*names[first], more[second]) for first, second in pairs.tolist()]
    return code, names


def numbered_codes(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return rows' numbers among their distinct pairs of numbers, and (n, 2) these in order.

    Examples
    --------
    >>> numbered_codes(np.array([1, 0, 1]), np.array([5, 5, 5]))[1].tolist()
    [[0, 5], [1, 5]]
    """
    number, at = numbered([first, second])
    return number, np.column_stack([first[at], second[at]])


def _greatest_first(
    value: Floats, key: AnyInts, codes: tuple[AnyInts, Ints, Ints], ties: tuple[Ints, Ints]
) -> list[Ints]:
    """Return the distinct functions, strata and machines in the order of their greatest values.

    Of equal values the first is that of the first function, application and visit.

    Parameters
    ----------
    value, key : (n,) of entries
    codes : functions (n,), strata and machines (K,) of keys
    ties : (K,) visit and application
    """
    of_rows: list[AnyInts] = [codes[0], codes[1][key], codes[2][key]]
    first = np.zeros(len(value), dtype=np.bool_)
    for code in of_rows:
        greatest = np.zeros(int(code.max()) + 1)
        np.maximum.at(greatest, code, value)
        first |= value == greatest[code]
    rows = np.flatnonzero(first)
    visit, application = (array[key[rows]] for array in ties)
    order = rows[np.lexsort((visit, application, codes[0][rows], -value[rows]))]
    return [np.asarray(pd.unique(code[order]), dtype=np.int64) for code in of_rows]


def _known(known: dict[Any, int], names: Sequence[tuple[Any, ...]], first: Ints | None) -> Ints:
    """Return the numbers of names; new ones get the next, in the order given or in their own.

    Parameters
    ----------
    known : numbers of those before
    names : in order, of one or several parts
    first : places of the names in the order of new numbers
    """
    own = [name if len(name) > 1 else name[0] for name in names]
    for at in range(len(own)) if first is None else first.tolist():
        known.setdefault(own[at], len(known))
    return np.array([known[name] for name in own], dtype=np.int64)


def days_of(visits: pd.DataFrame) -> list[tuple[float, float]]:
    """Return beginning and end of each day that has visits."""
    days = np.unique(np.floor(visits["start_s"].to_numpy(np.float64) / DAY_S))
    return [(float(day) * DAY_S, float(day + 1) * DAY_S) for day in days.tolist()]


def programs(application: "pd.Series[str]", nameless: set[str]) -> "pd.Series[str]":
    """Return applications; files that name no program, which otherwise go by their own names, are of one."""
    if isinstance(application.dtype, pd.CategoricalDtype):
        names = {name: NOBODY if name in nameless else name for name in application.cat.categories}
        return application.map(names) if nameless & set(names) else application
    names_of = application.astype(object)
    return names_of.mask(names_of.isin(nameless), NOBODY)


def smoothed(own: Floats, machine_days: Floats, counts: Floats) -> Floats:
    """Return (F,) variances of log shares between machine-days, as far as counts do not tell them the usual one.

    Parameters
    ----------
    own : (F,) estimates from each function's samples
    machine_days : (F,) how many told them
    counts : (F,) mean count of the machine-day that a sample is in

    Examples
    --------
    >>> smoothed(np.array([0.04]), np.array([0.0]), np.array([5.0]))
    array([0.01])
    """
    usual = _usual(own[counts >= 2.0], machine_days[counts >= 2.0])
    inside = usual * counts
    support = machine_days * (inside / (1.0 + inside)) ** 2
    return np.asarray(np.maximum((own * support + usual * _PRIOR_DAYS) / (support + _PRIOR_DAYS), 0.0))


def _usual(own: Floats, machine_days: Floats) -> float:
    """Return the variance of a function in the middle, of those that enough machine-days tell, or all together do."""
    for least in (_PRIOR_DAYS, _FEW_DAYS):
        telling = machine_days >= least
        if telling.any() and machine_days[telling].sum() >= _TELLING * _PRIOR_DAYS:
            return max(float(np.median(own[telling])), 0.0)
    return _USUAL
