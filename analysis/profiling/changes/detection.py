"""Which series changed, when, by how much, and what kind of change it is."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from analysis.profiling.changes.scan import Geometry, Noise, Windows, exemplary_root, scan, screened, threshold
from analysis.profiling.changes.segments import Segments, by_hour, partition
from analysis.profiling.changes.series import WEEK, CountSeries
from analysis.profiling.regressions.criteria import check_criteria
from models.arrays import Bools, Floats, Ints

Kind = Literal["growth", "improvement", "transient", "shift"]
_ROUNDS = 12
"""Times that the clearest changes are taken out of what all others are compared with."""
_RETURN_ROOT = 3.0
"""Root of the likelihood ratio within which a level is what it was."""
_FACTOR_FROM_NOTHING = 1_000.0
"""Factor from which a function came from nothing, or went to it, as far as anybody minds."""
_BINS_TOGETHER = 3
"""Bins between two changes that begin at the same time, as far as can be told."""
_NET_OF_SHIFT = 0.25
"""Part of the largest change up to which the sum of a shift may differ from 0."""
_ALIKE_CALLEES = 0.5
"""Part of what two functions call from which they may be one that was renamed."""
_PARTNER_CHANCE = 0.1
"""Chance that some healthy function looks like a partner."""
_SEASON_ROOT = 1.96
"""Root from which days of the week count as a season."""
_CHUNK_BINS = 100_000
"""Bins of series from which on these are scanned."""
_MOST_DRIFTING = 1_000
"""Functions, the largest of half of them, by which drift is measured."""
_DAYS_BACK = (7, 14, 21, 28, 42, 56)
"""Days before a window that it may be compared with, where functions drift: whole weeks, so that no Monday is compared
with a Sunday alone."""
_KNOWN_PAIRS = 100
"""Of samples of one application from which on a function's concentration is known, with a chance error of a tenth."""
_LEAST_DRIFT = 1e-8
"""Least variance of drift that is tried, and how many, evenly by their logarithms."""
_TRIED_DRIFTS = 40
_ROUNDS_OF_DRIFT = 6
"""How often its variances are fitted, each beside the others."""


@dataclass(frozen=True, slots=True)
class WatchCriteria:
    """When a change is worth an alarm."""

    false_alarms: float = 0.01
    """Bound of the chance of any false alarm, over all functions and times, 0..1."""
    min_factor: float = 1.0
    """What the 95% interval of the factor must lie beyond, in either direction."""
    min_cost: float = 2e-5
    """Least cost, as a share of all events."""

    def __post_init__(self) -> None:
        check_criteria(self.false_alarms, self.min_factor, self.min_cost)


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """A change of one series."""

    series: int
    """Place among the functions."""
    kind: Kind
    start: int
    """First bin of the new level."""
    end: int | None
    """Bin from which the level is back; None: it lasts."""
    alarm: int
    """Bin after which the alarm could have been raised."""
    log_factor: float
    error: float
    cost: float
    """Of all events since the start, what the change costs; negative: it saves."""
    cost_error: float
    root: float
    """Of the clearest window."""
    partners: tuple[int, ...] = ()
    """Of a shift: the functions from or to which cost moved."""

    @property
    def nothing(self) -> bool:
        """Whether it is from nothing, or to nothing, or nearly so, so that its factor says nothing."""
        return abs(self.log_factor) > np.log(_FACTOR_FROM_NOTHING) or self.error > 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Clearest:
    """Of each series the window with the greatest root, and when a root first was beyond the threshold."""

    root: Floats
    """(F,) signed."""
    end: Ints
    """(F,) bin before which the window ends."""
    length: Ints
    """(F,) bins."""
    alarm: Ints
    """(F,) first bin after which a root is beyond the threshold; −1: none."""

    @classmethod
    def of(cls, windows: Iterable[Windows], bound: float, functions: int, *, beyond: bool = False) -> "Clearest":
        """Return the clearest of windows of every length; without windows, no window of none of the functions.

        Parameters
        ----------
        windows : of `scan`
        bound : of the roots
        functions : F
        beyond : whether only windows beyond the bound matter, which is quicker
        """
        root, never = np.zeros(functions), np.iinfo(np.int64).max
        end, length, alarm = (np.full(functions, start, dtype=np.int64) for start in (0, 0, never))
        for group in windows:
            roots = group.beyond(bound) if beyond else group.root
            size = np.abs(roots)
            at = np.argmax(size, axis=1)
            value = roots[np.arange(functions), at]
            over = size > bound
            alarm = np.minimum(alarm, np.where(over.any(axis=1), np.argmax(over, axis=1), never))
            better = np.abs(value) > np.abs(root)
            root, end = np.where(better, value, root), np.where(better, at + 1, end)
            length = np.where(better, group.length, length)
        return cls(root, end, length, np.where(alarm == never, -1, alarm + 1))

    def replaced(self, rows: Ints, others: "Clearest") -> "Clearest":
        """Return these with those of some functions in the place of their own."""
        arrays = {name: getattr(self, name).copy() for name in _CLEAREST}
        for name, array in arrays.items():
            array[rows] = getattr(others, name)
        return Clearest(**arrays)

    @property
    def changed(self) -> Bools:
        """(F,) whether any root was beyond the threshold."""
        return self.alarm >= 0


def clearest(series: CountSeries, bound: float, rows: Ints | None = None) -> Clearest:
    """Return the clearest windows beyond a bound; those that a season of the week explains are looked at by weeks.

    Parameters
    ----------
    series : of F functions in T bins
    bound : of the roots
    rows : of which functions; none: of all
    """
    rows = np.arange(len(series.functions)) if rows is None else rows
    whole = _scanned(series, rows, bound, weekly=False)
    if series.weekly is None or not whole.changed.any():
        return whole
    changed = np.flatnonzero(whole.changed).tolist()
    tell = [series] if series.whole is None else [series, series.whole]
    again = np.array(
        [at for at in changed if any(of_the_week(own, whole, at, int(rows[at]), bound) for own in tell)], dtype=np.int64
    )
    return whole.replaced(again, _scanned(series, rows[again], bound, weekly=True)) if len(again) else whole


_CLEAREST = ("root", "end", "length", "alarm")


def _scanned(series: CountSeries, rows: Ints, bound: float, *, weekly: bool) -> Clearest:
    """Return the clearest windows of some functions, a part of them at a time."""
    reach = np.zeros(len(rows), dtype=np.int64) if weekly else series.reach_of(rows)
    whole = Clearest.of((), bound, len(rows))
    for back in np.unique(reach).tolist():
        at = np.flatnonzero(reach == back)
        whole = whole.replaced(at, _scanned_alike(series, rows[at], bound, back, weekly=weekly))
    return whole


def _scanned_alike(series: CountSeries, rows: Ints, bound: float, reach: int, *, weekly: bool) -> Clearest:
    """Return the same of functions whose windows are compared with so many bins before them; 0: all."""
    geometry = series.weekly if weekly and series.weekly is not None else series.near(reach)
    period, day = series.clock.period * (WEEK if weekly else 1), series.clock.day
    whole, first, waiting = Clearest.of((), bound, len(rows)), 0, list[tuple[Ints, Floats, Floats]]()

    def looked_at() -> Clearest:
        place, *arrays = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
        noise = series.noise.of(rows[place])
        windows = scan(arrays[0], arrays[1], noise, geometry, day=day, period=period, reach=reach)
        return whole.replaced(place, Clearest.of(windows, bound, len(place), beyond=True))

    for some in series.parts(rows):
        noise = series.noise.of(some)
        counts, expected = series.counts_and_expected(some)
        near = np.flatnonzero(screened(counts, expected, noise, geometry, bound, day=day, period=period, reach=reach))
        waiting += [(first + near, counts[near], expected[near])] if len(near) else []
        first += len(some)
        if sum(len(place) for place, _, _ in waiting) * counts.shape[1] > _CHUNK_BINS:
            whole, waiting = looked_at(), []
    return looked_at() if waiting else whole


def of_the_week(series: CountSeries, whole: Clearest, at: int, row: int, bound: float) -> bool:
    """Return whether the same hours of other weeks stand out as the clearest window does.

    They do by at least half of it, or so that what the window has beyond them does not pass the bound. Of the weeks
    before the window and those after it, the side with more samples counts.
    """
    only = np.array([row])
    (counts,), (expected,) = series.counts_and_expected(only)
    clock, bins = series.clock, np.arange(len(counts))
    week, end, length = WEEK * clock.day, int(whole.end[at]), int(whole.length[at])
    start = end - length
    if length > week - clock.day:
        return False
    same = np.isin(bins % week, np.arange(start, end) % week)
    hours = np.isin(bins % clock.period, np.arange(start, end) % clock.period)
    base = hours & ~same & (bins < start)
    log_factor = _apart(counts, expected, (bins >= start) & (bins < end), base)[0]
    sides = [side for side in (bins < start, bins >= end) if (same & side).any() and (hours & ~same & side).any()]
    if not sides:
        return False
    side = max(sides, key=lambda part: float(expected[same & part].sum()))
    apart, error = _apart(counts, expected, same & side, hours & ~same & side)
    error *= float(np.sqrt(series.noise.over_days(row)))
    beyond = abs(log_factor - apart) / float(np.hypot(log_factor / whole.root[at], error))
    told = abs(apart) > 0.5 * abs(log_factor) or beyond <= bound
    return bool(apart * log_factor > 0 and abs(apart) > _SEASON_ROOT * error and told)


def _apart(counts: Floats, expected: Floats, here: Bools, elsewhere: Bools) -> tuple[float, float]:
    """Return the logarithm of the level in some bins over that in others, and its error of independent samples."""
    levels = Segments(
        np.zeros(2, dtype=np.int64),
        np.array([counts[here].sum(), counts[elsewhere].sum()]),
        np.array([expected[here].sum(), expected[elsewhere].sum()]),
    )
    log, error = levels.log_level, levels.error(1.0)
    return float(log[0] - log[1]), float(np.hypot(*error))


def changes(
    series: CountSeries,
    criteria: WatchCriteria,
    tests: int | None = None,
    *,
    nested: bool = False,
    among: Ints | None = None,
) -> list[SeriesChange]:
    """Return the changes of all functions, the clearest first.

    The clearest change of each application is taken out of what its other functions are compared with, and all are
    looked at again: shares add up to 1, so where one function grows all others seem to shrink.

    Parameters
    ----------
    series : of functions
    criteria : when a change is worth an alarm
    tests : series over which the chance of a false alarm is bounded; none: these
    nested : series hold each other's samples, so that none can be taken out
    among : places of the functions that are looked at; none: all
    """
    among = np.arange(len(series.functions)) if among is None else among
    bound = threshold(tests or len(among), windows_of(series), criteria.false_alarms)
    home = series.home()
    taken: list[int] = []
    others, peaks = series, Clearest.of((), bound, len(home)).replaced(among, clearest(series, bound, among))
    strata = series.strata_of() if peaks.changed.any() and not nested else None
    for _ in range(0 if nested else _ROUNDS):
        fresh = [row for row in np.flatnonzero(peaks.changed).tolist() if row not in taken]
        first = {int(home[row]): row for row in sorted(fresh, key=lambda row: abs(peaks.root[row]))}
        if not first:
            break
        taken += list(first.values())
        before, others = others, series.without(taken)
        # Functions that have nothing to do with what was taken out are what they were.
        moved = (others.exposure != before.exposure).any(axis=1).astype(np.float64)
        rows = among if strata is None else among[(strata @ moved)[among] > 0]
        peaks = peaks.replaced(rows, clearest(others, bound, rows))
    named = np.flatnonzero(peaks.changed)
    expected = others.expected(named)
    pairs = zip(expected, named.tolist(), strict=True)
    dated = [_dated(others, usual, peaks, row, bound) for usual, row in pairs]
    worth = [change for change in dated if change is not None and _worth(change, criteria)]
    return sorted(worth, key=lambda change: -abs(change.root))


def windows_of(series: CountSeries) -> int:
    """Return how many windows of each series are looked at."""
    return len(series.geometry.lengths) * series.clock.bins


def comparable(series: CountSeries) -> bool:
    """Return whether there are samples in any window and, at the same hours, before it."""
    clock, everything = series.clock, series.everything[None]
    windows = scan(everything, everything, Noise(np.zeros(1)), series.geometry, day=clock.day, period=clock.period)
    return any(bool(np.isfinite(group.error).any()) for group in windows)


def drifting(series: CountSeries) -> CountSeries:
    """Return series whose noise has the drift that is measured in them.

    Where it lasts, a window is compared with as many days before it as tell most (`Noise.days_back`): the level of a
    random walk long ago says little of what it is, so that all time before would only hide a change.
    """
    drift, walk, chance = drift_of(series)
    noise = replace(series.noise, drift=drift, walk=walk)
    series = replace(series, chance=chance)
    if not walk.any() or series.geometry_of is None:
        return replace(series, noise=noise)
    days = series.clock.bins / series.clock.day
    back = np.log(np.clip(noise.days_back(series.sizes / days), 1e-300, 1e300))
    choices = np.array([*(choice for choice in _DAYS_BACK if 2 * choice <= days), days])
    chosen = np.argmin(np.abs(back[:, None] - np.log(choices)), axis=1)
    return replace(series, noise=noise, reach=np.append(choices[:-1], 0)[chosen].astype(np.int64) * series.clock.day)


def drift_of(series: CountSeries) -> tuple[Floats, Floats, Noise]:
    """Return variances of the logarithm of functions' shares beyond samples and machines, over the fleet.

    Where each application goes its own way from day to day, a function that many have in common drifts less than those
    of one: by the chance that two of its samples are of one application (`CountSeries.concentration`). What is beyond
    that, all have in common. Half of the squared changes of days against those before, and of the longest windows, are
    below the median of their normal law (an empirical null, Efron 2004): a few functions that did change do not matter.

    Returns
    -------
    (F,) array
        From day to day, where a day has nothing to do with others.
    (F,) array
        Of daily steps that last: 0 in less than four days.
    Noise
        Standard errors of both, as its `drift` and `walk`; 0 of what is 0.
    """
    clock = series.clock
    nothing = np.zeros(len(series.functions))
    if clock.day not in series.geometry.lengths or clock.bins < 2 * clock.day:
        return nothing, nothing, Noise(nothing)
    shared = series.concentration()
    longest = max(length for length in series.geometry.lengths if 2 * length <= clock.bins)
    steps = {clock.day: clock.day} | ({longest: longest // 2} if longest >= 2 * clock.day else {})
    days, *longer = _Squares.of(series, steps, shared)
    windows = longer[0] if longer else None
    own = common = walk = 0.0
    for _ in range(_ROUNDS_OF_DRIFT):
        own = days.fitted((0, common, walk))
        common = days.fitted((own, 0, walk), 1)
        walk = windows.fitted((own, common, 0), 2) if windows else 0.0
    variances = own, common, walk
    own_error, common_error = (days.fitted_error(variances, way) for way in (0, 1))
    walk_error = windows.fitted_error(variances, 2) if windows else 0.0
    chance = Noise(nothing, drift=np.hypot(own_error * shared, common_error), walk=nothing + walk_error)
    return own * shared + common, nothing + walk, chance


@dataclass(frozen=True, slots=True)
class _Squares:
    """Squared changes of windows against the days before, of the functions that tell them best."""

    square: Floats
    """(n,)"""
    error: Floats
    """(n,) variance of each by samples and machines."""
    ways: Floats
    """(3, n) variance of each by days that differ with variance 1: each application's days for themselves, all
    together, and by steps that last."""
    function: Ints
    """(n,) whose they are."""

    @classmethod
    def of(cls, series: CountSeries, steps: Mapping[int, int], shared: Floats) -> "list[_Squares]":
        """Return those of windows of each length, for which samples are fetched once.

        Parameters
        ----------
        series : of functions
        steps : by length, how many bins after the window before each one ends
        shared : (F,) chance that two samples of a function are of one application
        """
        clock, size = series.clock, series.sizes
        half = np.flatnonzero(size >= np.median(size))
        largest = np.sort(half[np.argsort(-size[half], kind="stable")[:_MOST_DRIFTING]])
        parts: dict[int, list[tuple[Floats, Ints]]] = {length: [] for length in steps}
        for some in series.parts(largest):
            noise = replace(series.noise.of(some), drift=np.zeros(1), walk=np.zeros(1))
            counts, expected = series.counts_and_expected(some)
            for length, step in steps.items():
                at = series.geometry.lengths.index(length)
                only = Geometry((length,), *(array[at : at + 1] for array in _arrays(series.geometry)))
                ends = np.arange(2 * length, clock.bins + 1, step) - 1
                days, before = length / clock.day, (ends + 1 - length) / clock.day
                alone, walk = (variance.of_days(days, before) for variance in (_DRIFT, _WALK))
                for windows in scan(counts, expected, noise, only, day=clock.day, period=clock.period):
                    error, square = windows.at(ends).error ** 2, windows.at(ends).log_factor ** 2
                    told = np.isfinite(error)
                    ways = np.broadcast_arrays(shared[some, None] * alone, alone, walk, error)[:3]
                    functions = np.broadcast_to(some[:, None], error.shape)[told]
                    parts[length].append((np.stack([square, error, *ways])[:, told], functions))
        return [cls._joined(own) for own in parts.values()]

    @classmethod
    def _joined(cls, parts: "list[tuple[Floats, Ints]]") -> "_Squares":
        nothing = np.zeros((5, 0)), np.zeros(0, dtype=np.int64)
        amounts, functions = zip(nothing, *parts, strict=True)
        square, error, *ways = np.concatenate(amounts, axis=1)
        return cls(square, error, np.array(ways), np.concatenate(functions))

    def fitted(self, variances: tuple[float, float, float], way: int = 0) -> float:
        """Return the variance at which half of the squares are below the median of their law.

        Of days each square counts by what it tells of the variance: under a normal law by the derivative of the
        logarithm of its own, which is the same for all functions that chance moves less than the drift. It is the
        greatest such variance: against none at all the largest function alone would outweigh all others, and if it is
        steady nothing would seem to drift. Of steps that last all count alike: else the few functions that counts tell
        best would decide, such as those of a kernel that was rolled out.

        Parameters
        ----------
        variances : of `ways`, of which that of the one that is fitted is 0
        way : the one that is fitted
        """
        own, others = self.ways[way], self.error + np.array(variances) @ self.ways
        middle, told = self.square / _MEDIAN_SQUARE, own > 0.0

        def above(variance: float) -> bool:
            whole = others + variance * own
            weight = own / whole if way < 2 else np.ones_like(own)
            return float(np.sum(np.where(middle > whole, weight, -weight))) > 0.0

        if not told.any():
            return 0.0
        low, high = 0.0, float((middle[told] / own[told]).max()) + 1e-12
        for tried in np.geomspace(high, _LEAST_DRIFT, _TRIED_DRIFTS).tolist() if way < 2 else ():
            if above(tried):
                low = tried
                break
            high = tried
        if not low and not above(0.0):
            return 0.0
        for _ in range(60):
            between = (low + high) / 2.0
            low, high = (between, high) if above(between) else (low, between)
        return high

    def fitted_error(self, variances: tuple[float, float, float], way: int) -> float:
        """Return the standard error of a variance that was fitted beside the others; 0 where it is 0.

        That of the root of an equation (Huber 1967): the spread of its sum over its slope. Squares of a function may
        depend on each other, those of different functions do not (Liang and Zeger 1986).

        Parameters
        ----------
        variances : of `ways`, as they were fitted
        way : the one whose error is asked
        """
        if variances[way] <= 0.0:
            return 0.0
        own, whole = self.ways[way], self.error + np.array(variances) @ self.ways
        weight = own / whole if way < 2 else np.ones_like(own)
        sums = np.bincount(self.function, np.where(self.square / _MEDIAN_SQUARE > whole, weight, -weight))
        # Of the chance that a square is above the median of its law, by the logarithm of its variance, twice.
        slope = np.sqrt(2.0 * _MEDIAN_SQUARE / np.pi) * np.exp(-_MEDIAN_SQUARE / 2.0)
        return float(np.sqrt((sums**2).sum()) / (slope * (weight * own / whole).sum()))


_MEDIAN_SQUARE = float(chdtri(1, 0.5))
"""Of the square of a standard normal number."""
_DRIFT, _WALK = Noise(np.zeros(1), drift=np.ones(1)), Noise(np.zeros(1), walk=np.ones(1))


def _worth(change: SeriesChange, criteria: WatchCriteria) -> bool:
    beyond = abs(change.log_factor) - (0.0 if change.nothing else 1.96 * change.error)
    return beyond > np.log(criteria.min_factor) and abs(change.cost) >= criteria.min_cost


def _dated(series: CountSeries, expected: Floats, peaks: Clearest, row: int, bound: float) -> SeriesChange | None:
    """Return what kind of change a series went through, and when; None: its level is what it was."""
    clock, end, length = series.clock, int(peaks.end[row]), int(peaks.length[row])
    since = series.since(row, end - length)
    counts, expected = series.within(row)[1].sum(axis=0)[since:], expected[since:]
    end -= since
    bins = np.arange(len(counts))
    outside = (bins < end - length) | (bins >= end)
    usual = by_hour(counts, expected, clock.period, outside.astype(np.float64))
    dispersion = series.noise.over_days(row)
    parts = partition(counts, usual, dispersion * bound**2 / 2.0)
    # The window may be a part of the change alone, so that hours of the change are taken for a season.
    still = np.repeat(parts.apart(dispersion) <= _RETURN_ROOT, np.diff(np.append(parts.start, len(counts))))
    if (still < outside).any() and np.bincount(bins % clock.period, still, clock.period).all():
        usual = by_hour(counts, expected, clock.period, still.astype(np.float64))
        parts = partition(counts, usual, dispersion * bound**2 / 2.0)
    if len(parts.start) == 1:
        edges = np.unique([0, end - length, end, len(counts)])
        sums = [np.add.reduceat(values, edges[:-1]) for values in (counts, usual)]
        parts = Segments(edges[:-1], *sums)
    gone, apart = parts.log_level - parts.log_level[0], parts.apart(dispersion)
    last, peak = len(gone) - 1, int(np.argmax(apart))
    lasting = apart[last] > _RETURN_ROOT and abs(gone[last]) > 0.25 * float(np.abs(gone).max())
    if lasting or 0 < peak == last:
        same = np.sign(gone) == np.sign(gone[last])
        halfway = same & (np.abs(gone) > 0.5 * abs(gone[last]))
        first = last
        while first > 1 and halfway[first - 1]:
            first -= 1
        until: int | None = None
        kind: Kind = "growth" if gone[last] > 0 else "improvement"
    else:
        if peak == 0:
            return None
        until, kind, first = int(np.append(parts.start, len(counts))[peak + 1]), "transient", peak
    start, stop = int(parts.start[first]) + since, since + (len(counts) if until is None else until)
    moved = moved_between(series, row, (int(parts.start[1]) + since, start, stop), since=since)
    return SeriesChange(
        series=row,
        kind=kind,
        start=start,
        end=None if until is None else stop,
        alarm=max(int(peaks.alarm[row]), start + 1),
        log_factor=moved.log_factor,
        error=moved.error,
        cost=moved.cost,
        cost_error=moved.cost_error,
        root=float(peaks.root[row]),
    )


@dataclass(frozen=True, slots=True)
class LevelChange:
    """By how much a series changed between two times that are known."""

    log_factor: float
    error: float
    cost: float
    cost_error: float


def moved_between(
    series: CountSeries, row: int, edges: tuple[int, int, int], *, weekly: bool = False, since: int = 0
) -> LevelChange:
    """Return by how much a series changed from the bins before the first edge to those between the other two.

    Parameters
    ----------
    series : of functions
    row : place of the function
    edges : bins
    weekly : compare with the same hours of the weeks before alone
    since : first bin that is compared with
    """
    until, start, stop = edges
    (strata, cells), clock = series.within(row), series.clock
    counts, exposure = cells.sum(axis=0), series.exposure[strata]
    bins = np.arange(len(counts))
    inside, before = (bins >= start) & (bins < stop), (bins >= since) & (bins < until)
    geometry = series.near(int(series.reach_of(np.array([row]))[0]) if since else 0)
    total = series.exposure.sum(axis=0)
    if weekly and series.weekly is not None:
        week = WEEK * clock.day
        geometry, before = series.weekly, before & np.isin(bins % week, bins[inside] % week)
    else:
        usual = by_hour(counts, total, clock.period, (~inside).astype(np.float64))
        exposure = exposure * (usual / np.maximum(total, 1e-300))
    log_factor = _log_factor(cells, exposure, inside, before, _Strata(strata, len(series.exposure)))
    observed, earlier = float(counts[inside].sum()), float(counts[before].sum())
    at = int(np.argmin(np.abs(np.array(geometry.lengths) - (stop - start))))
    last = Geometry((stop - start,), *(array[at : at + 1, stop - 1 : stop] for array in _arrays(geometry)))
    window_exposure, earlier_exposure = float(total[inside].sum()), float(total[before].sum())
    part = np.array([[window_exposure / max(window_exposure + earlier_exposure, 1e-300)]])
    own = series.noise.of(np.array([row]))
    dispersion = float(own.dispersion(last, 0, part, part * earlier, clock.day)[0, 0])
    error = float(np.sqrt(dispersion * (1.0 / (observed + 0.5) + 1.0 / (earlier + 0.5))))
    weight = float(series.weight[row]) / max(float(series.everything[inside].sum()), 1.0)
    sides = np.array([part[0, 0], 1.0 - part[0, 0]])
    rest = (observed + 0.5 / max(float(sides[1]), 1e-9)) * weight * float(np.exp(-log_factor))
    # An error relative to what is left would be without bounds where next to nothing is.
    mean = (observed + earlier + 1.0) * sides
    half = min(error, float(np.sqrt(dispersion * (1.0 / np.maximum(mean, 0.5)).sum())))
    return LevelChange(log_factor, error, observed * weight - rest, rest * half)


@dataclass(frozen=True, slots=True)
class _Strata:
    """Some strata of all."""

    places: Ints
    count: int

    def sum(self, values: Floats) -> float:
        """Return the sum over all strata of values that are 0 but in these, as it is rounded where all are given."""
        everywhere = np.zeros(self.count)
        everywhere[self.places] = values
        return float(everywhere.sum())


def _log_factor(counts: Floats, exposure: Floats, after: Bools, before: Bools, strata: _Strata) -> float:
    """Return the logarithm of the rate after over that before, within strata (Mantel and Haenszel's ratio of rates).

    What is expected from all time falls behind where a stratum has more of its samples after the change.
    """
    observed, earlier = counts[:, after].sum(axis=1), counts[:, before].sum(axis=1)
    exposed, exposed_before = exposure[:, after].sum(axis=1), exposure[:, before].sum(axis=1)
    exposed_in_all = np.maximum(exposed + exposed_before, 1e-300)
    top = strata.sum(observed * exposed_before / exposed_in_all)
    bottom = strata.sum(earlier * exposed / exposed_in_all)
    return float(np.log((top + 0.5) / (bottom + 0.5)))


def shifts(series: CountSeries, named: list[SeriesChange]) -> list[SeriesChange]:
    """Return the changes, those that only move cost between functions as such.

    Functions of one application that changed at the same time, in both directions, are taken together: if what they
    cost together is what it was, nothing grew. Partners are taken greedily, the largest first.

    Parameters
    ----------
    series : whose functions they are
    named : of `changes`
    """
    home = series.home()
    partners: dict[int, set[int]] = {}
    for change in sorted(named, key=lambda change: -abs(change.cost)):
        if change.kind == "transient" or change.series in partners:
            continue
        others = [
            other
            for other in named
            if other.kind not in {"transient", change.kind}
            and other.series not in partners
            and abs(other.start - change.start) <= _BINS_TOGETHER
            and home[other.series] == home[change.series]
        ]
        group, net, variance = [change], change.cost, change.cost_error**2
        for other in sorted(others, key=lambda change: -abs(change.cost)):
            if abs(net + other.cost) < abs(net):
                group.append(other)
                net, variance = net + other.cost, variance + other.cost_error**2
        if len(group) > 1 and abs(net) <= max(_NET_OF_SHIFT * abs(change.cost), 2.0 * float(np.sqrt(variance))):
            for member in group:
                opposite = {other.series for other in group if np.sign(other.cost) != np.sign(member.cost)}
                partners[member.series] = opposite
        elif (quiet := _quiet_partner(series, change, home, partners)) is not None:
            partners |= {change.series: {quiet}, quiet: {change.series}}
    return [
        replace(change, kind="shift", partners=tuple(sorted(partners[change.series])))
        if change.series in partners
        else change
        for change in named
    ]


def renamed(
    series: CountSeries, named: Sequence[SeriesChange], alike: Callable[[str, str], float]
) -> list[SeriesChange]:
    """Return the shifts of functions that vanished as another came, of the same cost and with the same callees.

    Parameters
    ----------
    series : of functions with all that they call
    named : of `changes`
    alike : which part of what two functions call is the same, 0..1
    """
    home, names, pairs = series.home(), series.functions, dict[int, SeriesChange]()
    for come in (change for change in named if change.kind == "growth" and change.nothing):
        left = [
            other
            for other in named
            if (other.kind, other.nothing) == ("improvement", True)
            and other.series not in pairs
            and home[other.series] == home[come.series]
            and abs(other.start - come.start) <= _BINS_TOGETHER
            and abs(come.cost + other.cost) <= _NET_OF_SHIFT * come.cost
        ]
        likeness = [alike(str(names[come.series]), str(names[other.series])) for other in left]
        if likeness and max(likeness) >= _ALIKE_CALLEES:
            gone = left[int(np.argmax(likeness))]
            for change, partner in ((come, gone), (gone, come)):
                pairs[change.series] = replace(change, kind="shift", partners=(partner.series,))
    return list(pairs.values())


def _quiet_partner(series: CountSeries, change: SeriesChange, home: Ints, taken: Collection[int]) -> int | None:
    """Return a function that took over a change's cost, or gave it, though its own time or change is less clear.

    Of the functions of the application, the one for which "it changed by as much in the other direction" is likelier
    than "it did not change" by most, if by more than chance among so many gives in one of ten; compared with all hours
    of the day before, and with the same hours of the weeks before where there are any.
    """
    near = [row for row in np.flatnonzero(home == home[change.series]).tolist() if row not in taken]
    near.remove(change.series)
    best, greatest = None, 2.0 * np.log(max(len(near), 1) / _PARTNER_CHANCE)
    for row in near:
        edges = (change.start, change.start, series.clock.bins)
        evidence = _took_over(moved_between(series, row, edges, since=series.since(row, change.start)), change)
        if evidence > greatest and _compared_by_weeks(series, change.start):
            evidence = min(evidence, _took_over(moved_between(series, row, edges, weekly=True), change))
        if evidence > greatest:
            best, greatest = row, evidence
    return best


def _took_over(moved: LevelChange, change: SeriesChange) -> float:
    """Return twice the log likelihood of "it took over the cost" less that of "no change"; 0: not as much."""
    net = moved.cost + change.cost
    if abs(net) > 2.0 * _NET_OF_SHIFT * abs(change.cost):
        return 0.0
    alone = (moved.cost / max(moved.cost_error, 1e-300)) ** 2
    return float(alone - net**2 / max(moved.cost_error**2 + change.cost_error**2, 1e-300))


def _compared_by_weeks(series: CountSeries, start: int) -> bool:
    """Return whether every hour of the week was there before a bin."""
    return series.weekly is not None and start >= WEEK * series.clock.day


@dataclass(frozen=True, slots=True)
class DetectableGrowth:
    """By what factor a function of some size must grow to be found."""

    share: float
    """Of all events."""
    functions: int
    """Of about this size."""
    factor: float | None
    """None: not found even if it grows by the last of `FACTORS`."""
    limit: float | None
    """The same for a test that knows the function and the time, with the same chance of a false alarm."""


FACTORS = np.concatenate([np.geomspace(1.0005, 1.2, 150), np.geomspace(1.2, 64.0, 150)[1:]])
"""Factors that are tried."""
PROBABILITY = 0.8
"""With which a change by the stated factor is found."""


def detectable(
    series: CountSeries, criteria: WatchCriteria, tests: int, sizes: Iterable[float]
) -> list[DetectableGrowth]:
    """Return by what factors functions of some sizes must grow, in the last day, to be found with `PROBABILITY`.

    Counts as they are expected are put into the test (O'Brien 1986), its root about standard normal about theirs.

    Parameters
    ----------
    series : of functions
    criteria : when a change is worth an alarm
    tests : series over which the chance of a false alarm is bounded
    sizes : shares of all events
    """
    clock, geometry = series.clock, series.geometry
    bound = threshold(tests, windows_of(series), criteria.false_alarms)
    within = [at for at, length in enumerate(geometry.lengths) if length <= clock.day]
    share = series.sizes * series.weight / max(float(series.everything.sum()), 1.0)
    rows = []
    for size in sizes:
        near = np.flatnonzero((share >= size / 2.0) & (share <= size * 2.0))
        if not len(near) or not within:
            continue
        at, length = within[-1], geometry.lengths[within[-1]]
        reach, roots = series.reach_of(near), list[Floats]()
        for back in np.unique(reach).tolist():
            alike = near[reach == back]
            inside, before = _split(series, alike, length, back)
            part = (inside / np.maximum(inside + before, 1e-300))[:, None]
            information = part * before[:, None]
            last = Geometry((length,), *(array[at : at + 1, -1:] for array in _arrays(series.near(back))))
            dispersion = series.noise.of(alike).dispersion(last, 0, part, information, clock.day)
            roots.append(exemplary_root(FACTORS, inside[:, None], before[:, None], dispersion))
        root = np.concatenate(roots)
        worth = (size * (FACTORS - 1.0) >= criteria.min_cost) & (criteria.min_factor < FACTORS)
        alone = -float(ndtri(criteria.false_alarms))
        factor, limit = (_least(ndtr(root - least).mean(axis=0) * worth) for least in (bound, alone))
        rows.append(DetectableGrowth(size, len(near), factor, limit))
    return rows


@dataclass(frozen=True, slots=True)
class HiddenGrowth:
    """What functions' own drift hides, however many samples there are: of the steadiest and of the least steady.

    Of functions with at least `_KNOWN_PAIRS` pairs of samples of one application, which tell whether many have it in
    common, and whose drift is beyond two of its standard errors.
    """

    least_drift: float
    most_drift: float
    """Standard deviation of the logarithm of the last day's level over the days that it is compared with, beyond
    samples and machines."""
    least: float
    most: float
    """Factors by which such functions must grow to be told from it within a day."""


def hidden_by_drift(series: CountSeries, criteria: WatchCriteria, tests: int) -> HiddenGrowth | None:
    """Return what drift hides; None: no drift was measured, it may be chance, or no function tells.

    Parameters
    ----------
    series : of `drifting`
    criteria : when a change is worth an alarm
    tests : series over which the chance of a false alarm is bounded
    """
    clock, noise = series.clock, series.noise.of(slice(None))
    days = clock.bins / clock.day
    if not noise.drifts or days < 2.0:
        return None
    bound = threshold(tests, windows_of(series), criteria.false_alarms)
    pairs = series.concentration() * series.sizes * (series.sizes - 1.0) / 2.0
    reach = series.reach_of(np.arange(len(series.functions)))
    before = np.where(reach > 0, reach / clock.day, days - 1.0)
    variance, error = noise.of_days(1.0, before[:, None])[:, 0], np.zeros(len(before))
    if series.chance is not None:
        nothing = np.zeros_like(before)
        ways = replace(series.chance, walk=nothing), replace(series.chance, drift=nothing)
        error = np.hypot(*(way.of_days(1.0, before[:, None])[:, 0] for way in ways))
    drift = np.sqrt(variance[(pairs >= _KNOWN_PAIRS) & (variance > 2.0 * error)])
    if not len(drift):
        return None
    least, most = float(drift.min()), float(drift.max())
    return HiddenGrowth(least, most, *(float(np.exp(bound * part)) for part in (least, most)))


def _split(series: CountSeries, rows: Ints, length: int, reach: int) -> tuple[Floats, Floats]:
    """Return what is expected of some functions in the last bins, and in so many before them; 0: all."""
    first = max(series.clock.bins - length - reach, 0) if reach else 0
    parts = [np.zeros((2, 0))]
    for some in series.parts(rows):
        expected = series.expected(some)
        parts.append(np.array([expected[:, -length:].sum(axis=1), expected[:, first:-length].sum(axis=1)]))
    inside, before = np.concatenate(parts, axis=1)
    return inside, before


def _arrays(geometry: Geometry) -> tuple[Floats, Floats, Floats]:
    return geometry.window, geometry.before, geometry.lasting


def _least(chance: Floats) -> float | None:
    """Return the least of `FACTORS` whose chance is enough."""
    enough = np.flatnonzero(chance >= PROBABILITY)
    return float(FACTORS[enough[0]]) if len(enough) else None
