"""What a watch reads: a profile's samples day by day, as series of counts, and how machines differ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from analysis.profiling.changes.scan import Geometry
from analysis.profiling.changes.series import ABOUT, WEEK, Clock, CountSeries, FleetPart, FunctionCells, ShelvedDay
from analysis.profiling.changes.spread import DayCounts, MachinePlaces, MachineSpread, Spread
from analysis.profiling.combinations import numbered
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import NoSamplesError, Query, QueryError
from analysis.profiling.shelf import Shelf, give_back_memory, narrow
from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

MIN_SAMPLES = 20
"""Samples of a function over all time from which it is looked at."""
_TAGS = ("platform", "datacentre")
"""Tags of strata within whose values functions may be looked at."""
_ENTRIES_AT_ONCE = 250_000
"""Entries that are taken at once."""
_MOST_PARTS = 24
"""Values of these, the first in order, that have sums of their own: each takes 32 bytes a function."""
_MOST = tuple((kind, int(np.iinfo(kind).max)) for kind in (np.uint16, np.int32))
"""Types of whole numbers, few so that little is compiled, and their largest."""


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
    request = _Request.of(database, event, span)
    series = _with_callees(database, request) if subtrees else _alone(database, request)
    give_back_memory()
    return series


def _alone(database: "Database", request: "_Request") -> CountSeries:
    """Return the series of functions themselves."""
    counted = database.counted(request.query, request.day_of)
    function, names = pd.factorize(counted.places["function"], sort=True)
    reading = _Reading(request, counted.keys, names)
    for part in range(counted.parts):
        for entries in _entries_of(counted, part, function.astype(np.int32)):
            reading.take(entries)
            del entries
        reading.end_day()
    tagged = counted.keys[[*ABOUT, "visit", "samples"]].astype(dict.fromkeys(ABOUT, "category"))
    return replace(reading.series(), tagged=tagged)


def _entries_of(counted: "CountedSamples", part: int, function: AnyInts) -> "Iterator[_Entries]":
    """Yield the samples of a part in functions themselves, some after others; `function` is of each place."""
    from analysis.profiling.counted import ordered

    scale = counted.keys["scale"].to_numpy(np.float64)
    key, place, count = counted.counts(part)
    taken = count if counted.whole else counted.taken(part)
    in_order = ordered(key, np.arange(len(key), dtype=np.int32))
    for begin in range(0, len(key), _ENTRIES_AT_ONCE):
        rows = in_order[begin : begin + _ENTRIES_AT_ONCE]
        keys, samples = key[rows], taken[rows]
        yield _Entries(keys, function[place[rows]], samples, count[rows] * scale[keys], samples, samples)


def _with_callees(database: "Database", request: "_Request") -> CountSeries:
    """Return the series of functions with all that they call."""
    from analysis.profiling.cumulative import CumulativeSums

    sums = CumulativeSums.of(database, replace(request.query, by=("application", "visit")), request.day_of)
    reading = _Reading(request, sums.keys, pd.Index(sums.names), within=False)
    for part in range(sums.parts):
        for entries in sums.part(part):
            reading.take(_Entries.of_sums(entries))
            del entries
        reading.end_day()
    return reading.series()


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """Of which samples series are wanted, and by which clock."""

    query: Query
    visits: pd.DataFrame
    """By visit, those in this time."""
    clock: Clock
    nameless: set[str]
    """Applications that are files which name no program."""

    @classmethod
    def of(cls, database: "Database", event: str, span: WatchSpan) -> Self:
        """Return what is asked for; parameters and errors as of `read`."""
        visits = visits_of_fleet(database)
        visits = visits[span.holds(visits["start_s"].to_numpy(np.float64))].set_index("visit")
        if visits.empty:
            raise QueryError("there are no visits in this time")
        clock = Clock.over(visits["start_s"].to_numpy(np.float64), span.width_s)
        query = of_fleet(database, event, ("function", *ABOUT, "visit")).during(span.since_s, span.until_s)
        return cls(query, visits, clock, set(database.values("collection")))

    def day_of(self, keys: pd.DataFrame) -> Ints:
        """Return the day of each key's visit, 0, 1, 2, …; of one that is not read, any."""
        day = keys["visit"].map(pd.Series(np.floor(self.visits["start_s"] / DAY_S)))
        code: Ints = pd.factorize(day, sort=True)[0].astype(np.int64)
        return np.maximum(code, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """Samples of a day, or of a part of it: arrays of n entries, in order of keys."""

    key: AnyInts
    function: AnyInts
    samples: Amounts
    value: Amounts
    own: Amounts
    """Of the samples `of` so much is of the function itself."""
    of: Amounts

    @classmethod
    def of_sums(cls, sums: Amounts) -> Self:
        """Return samples in functions and all that they call, of sums of `CumulativeSums.part`."""
        key, function, samples, value, own = sums
        return cls(key.astype(np.int32), function.astype(np.int32), samples, value, own, value)

    def at(self, rows: Bools) -> "_Entries":
        """Return some of the entries."""
        return _Entries(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class _Where:
    """Strata and machines on which K keys were sampled, and when."""

    strata: list[tuple[str, ...]]
    """(S,) application, platform and data centre."""
    machines: list[str]
    places: MachinePlaces
    columns: Ints
    """(2, K) stratum and bin of each key, and machine and bin; as one number."""

    @classmethod
    def of(cls, request: _Request, keys: pd.DataFrame) -> Self:
        """Return where keys were sampled; parameters as of `_Reading`."""
        row = request.visits.index.get_indexer(pd.Index(keys["visit"]))
        known = (row >= 0) & (keys["samples"] > 0).to_numpy(np.bool_)
        keys, (visited, at) = keys[known], np.unique(row[known], return_inverse=True)
        about = request.visits.iloc[visited]
        machine, machines = numbered_names(about["machine"])
        place, tags = numbered_names(*(about[name] for name in _TAGS))
        name, names = pd.factorize(keys["application"])
        application, applications = numbered_names(programs(pd.Series(names), request.nameless))
        stratum, pairs = numbered_codes(application[name], place[at])
        strata = [(*applications[first], *tags[second]) for first, second in pairs.tolist()]
        on, places = numbered_codes(stratum, machine[at])
        # One visit's processes of an application may do alike.
        visit, visits = numbered_codes(on, keys["visit"].to_numpy(np.int64))
        visit_of, columns = np.full(len(known), -1, dtype=np.int32), np.zeros((2, len(known)), dtype=np.int64)
        visit_of[known] = visit
        bins = request.clock.bin_of(about["start_s"].to_numpy(np.float64))[at]
        columns[:, known] = np.array([stratum, machine[at]]) * request.clock.bins + bins
        of_visits, of_places = visits[:, 0].astype(np.int32), places[:, 0].astype(np.int32)
        where = MachinePlaces(visit_of, of_visits, of_places, places[:, 1].copy(), len(strata))
        return cls(strata, [own for (own,) in machines], where, columns)


class _Reading:
    """Adds up the days of a profile.

    Parameters
    ----------
    request : what is read
    keys : (K,) application, visit and samples of everything, maybe others
    names : (F,) of functions, in order
    within : whether functions are looked at within platforms and data centres, too
    """

    def __init__(self, request: _Request, keys: pd.DataFrame, names: "pd.Index[str]", *, within: bool = True) -> None:
        self._request, self._names, self._within = request, names, within
        self._where = where = _Where.of(request, keys)
        give_back_memory()
        self._order = np.argsort(where.places.visit_of, kind="stable").astype(np.int32)
        tags = [tuple(zip(_TAGS, of_stratum, strict=True)) if within else () for _, *of_stratum in where.strata]
        known = dict.fromkeys(tag for own in tags for tag in own)
        self._values = {tag: at for at, tag in enumerate(list(known)[:_MOST_PARTS])}
        numbers = [[self._values.get(tag, -1) for tag in own] for own in tags]
        self._tags = np.array(numbers, dtype=np.int64).reshape(len(tags), len(_TAGS) if within else 0)
        self._spread = MachineSpread(where.places, len(names), self._tags)
        self._shelf, self._days = Shelf(), list[ShelvedDay]()
        bins = request.clock.bins
        self._exposure, self._by_machine = (np.zeros(len(own) * bins) for own in (where.strata, where.machines))
        self._total, self._value = np.zeros((2, len(names)))
        self._begin_day()

    def _begin_day(self) -> None:
        self._pending: list[list[Amounts]] = [[], []]
        self._entries = np.zeros(len(self._order), dtype=np.int64)
        self._own = np.zeros(len(self._order))

    def take(self, entries: _Entries) -> None:
        """Take samples of a day, or of a part of it; keys are those before or rise."""
        inside = self._where.places.visit_of[entries.key] >= 0
        here = entries if inside.all() else entries.at(inside)
        sums = (self._entries, self._own), (self._total, self._value)
        _add_entries((here.key, here.function), (here.samples, here.value), (here.own, here.of), *sums)
        for pending, column in zip(self._pending, (here.function, here.samples), strict=True):
            pending.append(_small(column))

    def end_day(self) -> None:
        """Add up what was taken since the last day's end."""
        own, pending, of_keys = self._own, self._pending, np.append(0, np.cumsum(self._entries))
        self._begin_day()
        if not of_keys[-1]:
            return
        function, samples = map(_concatenated, pending)
        first = np.append(0, np.cumsum(np.bincount(function, minlength=len(self._names))))
        by_function = np.empty(len(function), dtype=np.int32), np.empty_like(samples)
        _put_by_function((self._order, of_keys), (function, samples), first[:-1].copy(), by_function)
        del function, samples
        day = DayCounts(first, *by_function, own)
        del by_function
        for sums, columns in zip((self._exposure, self._by_machine), self._where.columns, strict=True):
            np.add.at(sums, columns, own)
        column = self._where.columns[0].astype(np.int32 if len(self._exposure) <= _MOST[-1][1] else np.int64)
        self._days.append(ShelvedDay(first, self._shelf.put(column[day.key]), self._shelf.put(narrow(day.samples))))
        self._spread.add(day)
        del day
        give_back_memory()

    def series(self) -> CountSeries:
        """Return the series of everything that was read."""
        request, bins = self._request, self._request.clock.bins
        if not self._days:
            raise NoSamplesError(f"the event {request.query.event} has no samples in this time")
        total, large = self._total, np.flatnonzero(self._total >= MIN_SAMPLES)
        lasting = self._spread.lasting.share()
        exposure, shelf, on_machines = self._exposure.reshape(-1, bins), self._shelf, self._shelf.put(self._by_machine)
        del self._by_machine

        def machines() -> Floats:
            return shelf.get(on_machines).reshape(-1, bins)

        return CountSeries(
            request.query.event,
            request.clock,
            self._names[large],
            pd.DataFrame(self._where.strata, columns=["application", *_TAGS]),
            FunctionCells.of(self._days, large, total, exposure.size, self._shelf),
            exposure,
            (self._value / np.maximum(total, 1.0))[large] * total.sum() / max(float(self._value.sum()), 1e-300),
            exposure.sum(axis=0),
            self._spread.spread.noise(large, lasting),
            _geometry(machines, request.clock),
            _weekly(machines, request.clock),
            side_by_side=int(self._spread.beside.max(initial=0)),
            geometry_of=cache(partial(_geometry, machines, request.clock)),
            parts_of=tuple(self._parts(large, lasting, machines)) if self._within else (),
        )

    def _parts(self, large: Ints, lasting: float, exposures: Callable[[], Floats]) -> "Iterator[FleetPart]":
        """Yield what is known of the samples on each platform and in each data centre; none if it is all of them."""
        clock = self._request.clock
        machines = self._request.visits.drop_duplicates("machine").set_index("machine").loc[self._where.machines]
        nothing = np.zeros(len(self._names))
        for (dimension, value), number in self._values.items():
            of_strata = self._tags[:, _TAGS.index(dimension)]
            if (of_strata != number).any():
                square, pairs, mean, concentration = self._spread.in_parts[:, number]
                # Of clumps on visits nothing is known: as if each sample came by itself.
                spread = Spread(square, pairs, mean, concentration, nothing, mean, nothing)
                noise = spread.noise(large, lasting)
                here = np.flatnonzero(machines[dimension].astype(str).to_numpy(object) == value)
                exposure = partial(_some, exposures, here)
                geometry_of = cache(partial(_geometry, exposure, clock))
                beside = int(self._spread.beside[of_strata == number].max(initial=0))
                weekly_of = partial(_weekly, exposure, clock)
                yield FleetPart(dimension, value, noise.excess, noise.clumps, beside, geometry_of, weekly_of)


def _some(exposures: Callable[[], Floats], machines: Ints) -> Floats:
    return exposures()[machines]


def _concatenated(parts: list[Amounts]) -> Amounts:
    """Return arrays as one; they are taken out of the list."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _small(amounts: Amounts) -> Amounts:
    """Return a copy of amounts, of 16 or 32 bits where these hold whole numbers."""
    most = amounts.max(initial=0)
    if most > _MOST[-1][1] or (amounts.dtype.kind == "f" and (amounts != np.floor(amounts)).any()):
        return amounts.astype(np.float64)
    return amounts.astype(next(kind for kind, limit in _MOST if most <= limit))


@njit(nogil=True, borrows=True, error_model="numpy")
def _add_entries(
    at: tuple[AnyInts, AnyInts],
    amounts: tuple[Amounts, Amounts],
    parts: tuple[Amounts, Amounts],
    of_keys: tuple[Ints, Floats],
    of_functions: tuple[Floats, Floats],
) -> None:
    """Add entries to sums.

    Parameters
    ----------
    at, amounts, parts : (n,) key and function, samples and value, own and of; as of `_Entries`
    of_keys : (K,) number of entries, and samples of the functions themselves
    of_functions : (F,) samples and value
    """
    (key, function), (samples, value), (own, of) = at, amounts, parts
    for entry in range(len(key)):
        of_keys[0][key[entry]] += 1
        if own[entry] > 0:
            # As decimals: samples times events may be more than 64 bits hold.
            of_keys[1][key[entry]] += float(own[entry]) * float(samples[entry]) / float(of[entry])
        of_functions[0][function[entry]] += samples[entry]
        of_functions[1][function[entry]] += value[entry]


@njit(nogil=True, borrows=True)
def _put_by_function(
    keys: tuple[AnyInts, Ints], entries: tuple[AnyInts, Amounts], begin: Ints, into: tuple[AnyInts, Amounts]
) -> None:
    """Fill in entries in order of functions, those of a function key by key.

    Parameters
    ----------
    keys : (K,) the keys in their order; (K + 1,) where each one's entries begin
    entries : (n,) function and samples, in order of keys
    begin : (F,) where each function's entries begin; it is written over
    into : (n,) key and samples
    """
    in_order, first = keys
    function, samples = entries
    for key in in_order:
        for entry in range(first[key], first[key + 1]):
            at = begin[function[entry]]
            into[0][at], into[1][at] = key, samples[entry]
            begin[function[entry]] = at + 1


def _geometry(machines: Callable[[], Floats], clock: Clock, back: int = 0) -> Geometry:
    """Return the geometry of some machines' exposures, which are fetched when they are needed."""
    return Geometry.of(machines(), clock.day, clock.period, back)


def _weekly(machines: Callable[[], Floats], clock: Clock) -> Geometry | None:
    """Return the same where hours of the week repeat; None: there is no second week."""
    week = WEEK * clock.day
    return Geometry.of(machines(), clock.day, week) if clock.bins > week and clock.width_s <= DAY_S else None


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
