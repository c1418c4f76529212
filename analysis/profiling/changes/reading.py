"""What a watch reads: a profile's samples day by day, as series of counts, and how machines differ."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from analysis.profiling.changes.scan import Geometry, Noise
from analysis.profiling.changes.series import ABOUT, WEEK, Clock, CountSeries, FleetPart, FunctionCells, ShelvedDay
from analysis.profiling.combinations import numbered
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import NoSamplesError, Query, QueryError
from analysis.profiling.shelf import Shelf, give_back_memory, narrow
from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

MIN_SAMPLES = 20
"""Samples of a function over all time from which it is looked at."""
_USUAL_VARIANCE = 0.01
"""Variance of log shares between machine-days where nothing tells it."""
_PRIOR_DAYS = 20.0
"""Weight of the usual variance, in machine-days."""
_FEW_DAYS = 5.0
"""Machine-days from which a function has a say in the usual variance where few have `_PRIOR_DAYS`."""
_TELLING_TIMES = 7
"""Times `_PRIOR_DAYS` that functions have together if they tell the usual variance."""
_TAIL_RATIO = 3.0
"""Largest count of a visit over the dispersion at most, where visits differ by more than their mean: where clumps are
exponential it is a half to a third of log n for n clumps, and where it is more, tails are heavier."""
_USUAL_ERRORS = 2.0
"""Standard errors of a function's own dispersion within which it is the usual one."""
_LASTING_PAIRS = 200
"""Pairs of function and application, the largest, by which the part of the variance that lasts is measured."""


_TAGS = ("platform", "datacentre")
"""Tags of strata within whose values functions may be looked at."""
_MOST_PARTS = 24
"""Values of these, the first that were sampled, that have sums of their own: each takes 32 bytes a function."""


@dataclass(slots=True)
class Spread:
    """Sums over days by which the spread between machines is measured; arrays of one entry for each function."""

    square: Floats
    """Σ squared deviations between machines within strata and days, less independent samples' part."""
    pairs: Floats
    """What a variance of log shares is multiplied by in them."""
    mean: Floats
    """Σ expected counts of machine-days."""
    concentration: Floats
    """Σ squared expected counts of machine-days."""
    clumped: Floats
    """Σ squared deviations between an application's counts on visits, less independent samples' part."""
    by_visit: Floats
    """Σ squared expected counts of applications on visits."""
    largest: Floats
    """Largest count of an application on a visit."""

    @classmethod
    def of(cls, functions: int) -> Self:
        """Return the sums of nothing yet."""
        return cls(*np.zeros((len(fields(cls)), functions)))

    def add_clumps(self, entries: tuple[AnyInts, AnyInts, Floats], visits: tuple[Ints, Floats]) -> None:
        """Add a day's differences between visits; parameters as of `_add_clumps`."""
        stratum, size = visits
        sums, squares = (np.bincount(stratum, amount).astype(np.float64) for amount in (size, size**2))
        _add_clumps(entries, visits, (sums, squares), (self.clumped, self.by_visit, self.largest))

    def wider(self, functions: int) -> "Spread":
        """Return the sums with room for more functions."""
        more = np.zeros(functions - len(self.mean))
        return Spread(*(np.concatenate([getattr(self, part.name), more]) for part in fields(self)))

    def noise(self, large: Ints, lasting: float) -> Noise:
        """Return the noise of some functions.

        Parameters
        ----------
        large : (F,) their numbers
        lasting : part of the variance that stays with the machine
        """
        mean, concentration = np.maximum(self.mean[large], 1e-300), self.concentration[large]
        own = self.square[large] / np.maximum(self.pairs[large], 1e-300)
        days, usual_count = mean**2 / np.maximum(concentration, 1e-300), concentration / mean
        variance = smoothed(own, self.pairs[large] / np.maximum(concentration, 1e-300) * days, usual_count)
        clumps = np.maximum(_beyond(own * usual_count, variance * usual_count, days), self._clumps(large, variance))
        return Noise(variance * usual_count, lasting, clumps=clumps)

    def _clumps(self, large: Ints, variance: Floats) -> Floats:
        """Return (F,) dispersions of counts on visits beyond those of machines' variances of log shares."""
        mean, by_visit = np.maximum(self.mean[large], 1e-300), self.by_visit[large]
        own, usual_count = self.clumped[large] / mean, by_visit / mean
        heavy = own > usual_count
        own = np.where(heavy, np.maximum(own, self.largest[large] / _TAIL_RATIO - 1.0), own)
        return _beyond(own, variance * usual_count, mean**2 / np.maximum(by_visit, 1e-300))


@dataclass(slots=True)
class Lasting:
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
    reading = _Reading(clock, visits, set(database.values("collection")), within=not subtrees)
    day = pd.Series(np.floor(visits["start_s"] / DAY_S))

    def day_of(keys: pd.DataFrame) -> Ints:
        return pd.factorize(keys["visit"].map(day), sort=True)[0].astype(np.int64)

    if subtrees:
        return reading.series(event, _with_callees(database, query, day_of))
    counted = database.counted(query, day_of)
    return replace(reading.series(event, _alone(counted)), tagged=counted.keys)


def _alone(counted: "CountedSamples") -> "Iterator[_Day]":
    """Yield samples in functions themselves, day by day, as they were counted."""
    function, names = _small_codes(counted.places["function"])
    for part in range(counted.parts):
        entries = counted.entries(part)
        samples = entries.samples
        days = [_Day(counted.keys, names, entries.key, function[entries.place], samples, entries.value, samples)]
        del entries, samples
        yield days.pop()


def _with_callees(database: "Database", query: Query, part_of: Callable[[pd.DataFrame], Ints]) -> "Iterator[_Day]":
    """Yield samples in functions and all that they call, day by day."""
    from analysis.profiling.cumulative import CumulativeSums

    sums = CumulativeSums.of(database, replace(query, by=("application", "visit")), part_of)
    names = pd.Index(sums.names)
    for part in range(sums.parts):
        numbers, amounts = list[AnyInts](), list[Floats]()
        for some in sums.part(part):
            numbers.append(some[:2].astype(np.int32))
            amounts.append(some[2:].astype(np.float64))
        if numbers:
            key, function = np.concatenate(numbers, axis=1)
            numbers.clear()
            samples, value, own = np.concatenate(amounts, axis=1)
            amounts.clear()
            own *= samples
            own /= np.maximum(value, 1.0)
            days = [_Day(sums.keys, names, key, function, samples, value, own)]
            del key, function, samples, value, own
            yield days.pop()


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

    def __init__(self, clock: Clock, visits: pd.DataFrame, nameless: set[str], *, within: bool) -> None:
        self.clock, self.visits, self.nameless, self.within = clock, visits, nameless, within
        self.functions: dict[str, int] = {}
        self.names: pd.Index[str] | None = None
        self.numbers: AnyInts = np.zeros(0, dtype=np.int32)
        self.strata: dict[tuple[str, str, str], int] = {}
        self.machines: dict[object, int] = {}
        self.spread, self.lasting = Spread.of(0), Lasting()
        self.values: dict[tuple[str, str], int] = {}
        self.tags_of = np.zeros((0, len(_TAGS) if within else 0), dtype=np.int64)
        self.in_parts = np.zeros((4, 0, 0))
        self.beside = np.zeros(0, dtype=np.int64)
        self.largest: set[int] = set()
        self.shelf, self.days = Shelf(), list[ShelvedDay]()
        self.value = self.total = np.zeros(0)
        self.side_by_side = 0
        self.exposure = self.by_machine = np.zeros((0, clock.bins))

    def series(self, event: str, days: "Iterator[_Day]") -> CountSeries:
        """Return the series of everything that is read."""
        for day in days:
            here = day.of_visits(self.visits.index)
            between = self._add(here) if len(here.key) else None
            # What is not needed any more goes before anything else comes.
            del day, here
            if between is not None:
                self._measure(*between)
                del between
                give_back_memory()
        if not self.days:
            raise NoSamplesError(f"the event {event} has no samples in this time")
        total, value = self.total, self.value
        large, functions = np.flatnonzero(total >= MIN_SAMPLES), list(self.functions)
        lasting = self.lasting.share()
        return CountSeries(
            event,
            self.clock,
            pd.Index([functions[at] for at in large]),
            pd.DataFrame(list(self.strata), columns=["application", "platform", "datacentre"]),
            FunctionCells.of(self.days, large, total, self.exposure.size, self.shelf),
            self.exposure,
            (value / np.maximum(total, 1.0))[large] * total.sum() / max(float(value.sum()), 1e-300),
            self.exposure.sum(axis=0),
            self.spread.noise(large, lasting),
            *self._geometries(),
            side_by_side=self.side_by_side,
            geometry_of=cache(partial(Geometry.of, self.by_machine, self.clock.day, self.clock.period)),
            parts_of=tuple(self._parts(large, lasting)) if self.within else (),
        )

    def _parts(self, large: Ints, lasting: float) -> "Iterator[FleetPart]":
        """Yield what is known of the samples on each platform and in each data centre; none if it is all of them."""
        machines = self.visits.drop_duplicates("machine").set_index("machine").loc[list(self.machines)]
        nothing = np.zeros(len(self.functions))
        for (dimension, value), number in self.values.items():
            of_strata = self.tags_of[:, _TAGS.index(dimension)]
            if (of_strata != number).any():
                square, pairs, mean, concentration = self.in_parts[:, number]
                # Of clumps on visits nothing is known: as if each sample came by itself.
                spread = Spread(square, pairs, mean, concentration, nothing, mean, nothing)
                noise = spread.noise(large, lasting)
                here = np.flatnonzero(machines[dimension].astype(str).to_numpy(object) == value)
                exposure = partial(np.take, self.by_machine, here, 0)
                geometry_of = cache(partial(_geometry, exposure, self.clock))
                beside = int(self.beside[of_strata == number].max(initial=0))
                weekly_of = partial(_weekly, exposure, self.clock)
                yield FleetPart(dimension, value, noise.excess, noise.clumps, beside, geometry_of, weekly_of)

    def _geometries(self) -> tuple[Geometry, Geometry | None]:
        machines = partial(np.asarray, self.by_machine)
        return _geometry(machines, self.clock), _weekly(machines, self.clock)

    def _number_parts(self) -> None:
        """Number platforms and data centres of new strata."""
        fresh = list(self.strata)[len(self.tags_of) :]
        tags = [tuple(zip(_TAGS, places, strict=True)) if self.within else () for _, *places in fresh]
        for tag in (tag for own in tags for tag in own):
            if len(self.values) < _MOST_PARTS:
                self.values.setdefault(tag, len(self.values))
        numbers = [[self.values.get(tag, -1) for tag in own] for own in tags]
        shape = len(fresh), self.tags_of.shape[1]
        self.tags_of = np.concatenate([self.tags_of, np.array(numbers, dtype=np.int64).reshape(shape)])
        self.beside = np.append(self.beside, np.zeros(len(fresh), dtype=np.int64))
        before, sums = self.in_parts, np.zeros((4, len(self.values), len(self.functions)))
        if sums.shape != before.shape:
            sums[:, : before.shape[1], : before.shape[2]] = before
            self.in_parts = sums

    def _add(self, rows: "_Day") -> tuple[AnyInts, AnyInts, Floats, Ints, Floats]:
        """Add a day, and return what `_measure` takes."""
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
        machine, machines = numbered_names(about["machine"])
        # The first day's numbers are in the order of the greatest values: of equal ones that decides which are kept.
        codes = rows.function, code, machine
        first = None if self.functions else _greatest_first(rows.value, key, codes, (visit, application))
        of_functions, of_strata, of_machines = first or (None, None, None)
        function = self._numbers(rows.names, np.flatnonzero(present) if of_functions is None else of_functions)[
            rows.function
        ]
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
        # One visit's processes of an application may do alike.
        together, visits = numbered_codes(on, visit)
        together = together.astype(np.int32)
        starts = np.append(0, np.cumsum(np.bincount(function, minlength=count)))
        order = _by_function_and_place(key, together, function, starts)
        samples = rows.samples[order]
        function = function[order]
        key = key[order]
        del order
        kind = np.int32 if self.exposure.size < 2**31 else np.int64
        self.days.append(ShelvedDay(starts, self.shelf.put(column.astype(kind)[key]), self.shelf.put(narrow(samples))))
        self._number_parts()
        self.spread = self.spread.wider(count)
        on_visits = np.bincount(together, own, len(visits)).astype(np.float64)
        self.spread.add_clumps((function, together[key], samples), (sizes[visits[:, 0], 0], on_visits))
        return function, place[key], samples, sizes, np.bincount(on, own, len(sizes)).astype(np.float64)

    def _numbers(self, names: "pd.Index[str]", present: Ints) -> AnyInts:
        """Return the numbers of functions; those present that are new get the next, in the order in which they are."""
        if self.names is not names:
            self.names = names
            self.numbers = np.array([self.functions.get(str(name), -1) for name in names], dtype=np.int32)
        fresh = present[self.numbers[present] < 0]
        self.numbers[fresh] = len(self.functions) + np.arange(len(fresh))
        self.functions |= {str(name): len(self.functions) + at for at, name in enumerate(names[fresh])}
        return self.numbers

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
        self.beside = np.maximum(self.beside, np.bincount(sizes[some, 0], minlength=strata))
        self.side_by_side = int(self.beside.max(initial=self.side_by_side))
        n1, n2, n3 = (np.bincount(sizes[some, 0], size[some] ** power, strata) for power in (1, 2, 3))
        stratum_of = sizes[:, 0].astype(np.int32)[at]
        new = (function[1:] != function[:-1]) | (stratum_of[1:] != stratum_of[:-1])
        begin = np.append(0, np.flatnonzero(new) + 1)
        end = np.append(begin[1:], len(function))
        samples = samples if some.all() else np.where(some[at], samples, 0.0)
        beside = size[at]
        beside *= samples
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
        amounts = away - alone, np.maximum(ways, 0.0), total, share**2 * n2
        of_spread = self.spread.square, self.spread.pairs, self.spread.mean, self.spread.concentration
        for sums, own in zip(of_spread, amounts, strict=True):
            np.add(sums, np.bincount(pair, own, functions), out=sums)
        _add_in_parts(pair, self.tags_of[stratum], np.array(amounts), self.in_parts)
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


def _beyond(own: Floats, usual: Floats, units: Floats) -> Floats:
    """Return by how much dispersions are beyond the usual ones, 0 where that may be chance.

    Parameters
    ----------
    own, usual : (F,) dispersions beyond 1
    units : (F,) how many counts told them
    """
    error = np.sqrt(2.0 / np.maximum(units, 1e-300)) * (1.0 + usual)
    return np.where(own - usual > _USUAL_ERRORS * error, own - usual, 0.0)


def _by_function_and_place(key: AnyInts, place: AnyInts, function: AnyInts, starts: Ints) -> AnyInts:
    """Return (n,) the places of entries in order of functions, then of places of their keys, then of entries.

    Parameters
    ----------
    key : (n,)
    place : (K,) of each key
    function : (n,)
    starts : (F + 1,) where each function's entries are to begin
    """
    from analysis.profiling.counted import ordered

    rising = bool((key[1:] >= key[:-1]).all())
    by_key = np.zeros(0, dtype=np.int32) if rising else ordered(key, np.arange(len(key), dtype=np.int32))
    first = np.append(0, np.cumsum(np.bincount(key, minlength=len(place))))
    order, keys = np.empty(len(key), dtype=np.int32), ordered(place, np.arange(len(place), dtype=np.int32))
    _put_by_function((keys, first, by_key), function, starts.copy(), order)
    return order


@njit(nogil=True, borrows=True)
def _put_by_function(keys: tuple[AnyInts, Ints, AnyInts], function: AnyInts, begin: Ints, order: AnyInts) -> None:
    """Fill in the places of entries in order of functions, those of a function key by key.

    Parameters
    ----------
    keys : the keys in their order; (K + 1,) where each one's entries begin in the last; places of entries by key, none
        if they are in that order
    function : (n,)
    begin : (F + 1,) where each function's entries begin; it is written over
    order : (n,)
    """
    in_order, first, by_key = keys
    for key in in_order:
        for at in range(first[key], first[key + 1]):
            entry = by_key[at] if len(by_key) else at
            own = function[entry]
            order[begin[own]] = entry
            begin[own] += 1


@njit(nogil=True, borrows=True, error_model="numpy")
def _add_clumps(
    entries: tuple[AnyInts, AnyInts, Floats],
    visits: tuple[Ints, Floats],
    strata: tuple[Floats, Floats],
    spread: tuple[Floats, Floats, Floats],
) -> None:
    """Add a day's differences between visits.

    Parameters
    ----------
    entries : (n,) function, visit and samples; in order of functions, then of strata, then of visits
    visits : (V,) stratum of each application on each visit, and samples of everything
    strata : (S,) sums of these samples and of their squares
    spread : (F,) `clumped`, `by_visit` and `largest` of `_Spread`
    """
    function, visit, samples = entries
    stratum, size = visits
    clumped, by_visit, largest = spread
    at = 0
    while at < len(function):
        own, on = function[at], stratum[visit[at]]
        total = cross = square = 0.0
        while at < len(function) and function[at] == own and stratum[visit[at]] == on:
            here, count = visit[at], 0.0
            while at < len(function) and function[at] == own and visit[at] == here:
                count += samples[at]
                at += 1
            total, cross, square = total + count, cross + count * size[here], square + count**2
            largest[own] = max(largest[own], count)
        every, squares = strata[0][on], strata[1][on]
        share = total / every if every > 0.0 else 0.0
        alone = share * (1.0 - share) * (every - squares / max(every, 1e-300))
        clumped[own] += square - 2.0 * share * cross + share**2 * squares - alone
        by_visit[own] += share**2 * squares


@njit(nogil=True, borrows=True)
def _add_in_parts(function: Ints, tags: Ints, amounts: Floats, sums: Floats) -> None:
    """Add a day's differences between machines to those of each platform and data centre.

    Parameters
    ----------
    function : (n,)
    tags : (n, D) numbers of platform and data centre; −1: none
    amounts : (4, n) `square`, `pairs`, `mean` and `concentration` of `Spread`
    sums : (4, parts, F) of them
    """
    for at in range(len(function)):
        for dimension in range(tags.shape[1]):
            part = tags[at, dimension]
            for which in range(len(amounts) if part >= 0 else 0):
                sums[which, part, function[at]] += amounts[which, at]


def _geometry(machines: Callable[[], Floats], clock: Clock, back: int = 0) -> Geometry:
    """Return the geometry of some machines' exposures, which are fetched when they are needed."""
    return Geometry.of(machines(), clock.day, clock.period, back)


def _weekly(machines: Callable[[], Floats], clock: Clock) -> Geometry | None:
    """Return the same where hours of the week repeat; None: there is no second week."""
    week = WEEK * clock.day
    return Geometry.of(machines(), clock.day, week) if clock.bins > week and clock.width_s <= DAY_S else None


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
        if telling.any() and machine_days[telling].sum() >= _TELLING_TIMES * _PRIOR_DAYS:
            return max(float(np.median(own[telling])), 0.0)
    return _USUAL_VARIANCE
