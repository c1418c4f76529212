"""How machines differ from each other in what was sampled on them: what a watch takes for the noise of counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np
import pandas as pd

from analysis.profiling.changes.scan import Noise
from analysis.profiling.frames import Amounts, AnyInts
from models.arrays import Floats, Ints
from models.code.compiled import njit

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
_NO_PART = 1e-9
"""Part of a function's machine-days that tell how machines differ up to which it is rounding: others are alone."""
_LASTING_PAIRS = 200
"""Pairs of function and stratum, the largest, by which the part of the variance that lasts is measured."""
_TOGETHER = 250_000
"""Entries of which the pairs of function and stratum are looked at together."""


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

    @property
    def of_machines(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Those of machine-days."""
        return self.square, self.pairs, self.mean, self.concentration

    @property
    def of_clumps(self) -> tuple[Floats, Floats, Floats]:
        """Those of applications on visits."""
        return self.clumped, self.by_visit, self.largest

    def noise(self, large: Ints, lasting: float) -> Noise:
        """Return the noise of some functions.

        Parameters
        ----------
        large : (F,) their numbers
        lasting : part of the variance that stays with the machine
        """
        mean, concentration = np.maximum(self.mean[large], 1e-300), self.concentration[large]
        part = self.pairs[large] / np.maximum(concentration, 1e-300)
        telling = part > _NO_PART
        own = np.where(telling, self.square[large] / np.where(telling, self.pairs[large], 1.0), 0.0)
        days, usual_count = part * mean**2 / np.maximum(concentration, 1e-300), concentration / mean
        variance = smoothed(own, days, usual_count)
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


@dataclass(frozen=True, slots=True, eq=False)
class MachinePlaces:
    """Where K keys were sampled: strata, machines in them, and visits to these, each in order of the former."""

    visit_of: AnyInts
    """(K,) each key's visit to a place; −1: nothing of it counts."""
    place_of: AnyInts
    """(V,) place of each visit."""
    stratum_of: AnyInts
    """(P,) stratum of each place."""
    machine_of: Ints
    """(P,)"""
    strata: int

    def sizes(self, own: Floats) -> "_Sizes":
        """Return what was sampled there, of (K,) samples of everything."""
        on_visits, on_machines = np.zeros(len(self.place_of)), np.zeros(len(self.stratum_of))
        powers, squares = np.zeros((3, self.strata)), np.zeros(self.strata)
        places = self.visit_of, self.place_of, self.stratum_of
        _add_sizes(places, own, (on_visits, on_machines), (powers, squares))
        return _Sizes(on_visits, on_machines, powers, squares)


@njit(nogil=True, borrows=True)
def _add_sizes(
    places: tuple[AnyInts, AnyInts, AnyInts], own: Floats, sums: tuple[Floats, Floats], of_strata: tuple[Floats, Floats]
) -> None:
    """Add up what was sampled.

    Parameters
    ----------
    places : `visit_of`, `place_of` and `stratum_of` of `MachinePlaces`
    own : (K,)
    sums : zeros, as `on_visits` and `places` of `_Sizes`
    of_strata : zeros, as its `powers` and `visit_squares`
    """
    visit_of, place_of, stratum_of = places
    on_visits, on_machines = sums
    powers, squares = of_strata
    for key in range(len(visit_of)):
        if visit_of[key] >= 0:
            on_visits[visit_of[key]] += own[key]
    for visit in range(len(place_of)):
        on_machines[place_of[visit]] += on_visits[visit]
        squares[stratum_of[place_of[visit]]] += on_visits[visit] ** 2
    for place in range(len(stratum_of)):
        size = on_machines[place]
        for power in range(3):
            powers[power, stratum_of[place]] += size ** (power + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Sizes:
    """Samples of everything on a day."""

    on_visits: Floats
    """(V,)"""
    places: Floats
    """(P,)"""
    powers: Floats
    """(3, S) Σ over a stratum's machines of samples, of their squares, and of their cubes."""
    visit_squares: Floats
    """(S,) Σ of squares over visits."""


@dataclass(frozen=True, slots=True, eq=False)
class DayCounts:
    """What was sampled on a day: n entries in order of functions, then of visits to places, those of one together."""

    first: Ints
    """(F + 1,) where each function's entries begin."""
    key: AnyInts
    samples: Amounts
    own: Floats
    """(K,) samples of everything."""

    def together(self) -> Iterator[tuple[int, int]]:
        """Yield spans of functions, so many at a time that they have few entries."""
        number = self.first[1:] // _TOGETHER
        ends = np.append(np.flatnonzero(np.diff(number)) + 1, len(number))
        yield from zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)


class MachineSpread:
    """Adds up how machines differ, day by day.

    Parameters
    ----------
    places : where everything was sampled
    functions : F
    tags : (S, D) numbers of the tags of strata whose sums stay apart, too; −1: none
    """

    def __init__(self, places: MachinePlaces, functions: int, tags: Ints) -> None:
        self._places, self._tags = places, tags
        self.spread, self.lasting = Spread.of(functions), Lasting()
        self.in_parts = np.zeros((4, int(tags.max(initial=-1)) + 1, functions))
        """`square`, `pairs`, `mean` and `concentration` of `Spread` of each tag."""
        self.beside = np.zeros(places.strata, dtype=np.int64)
        """(S,) most machines of a stratum on which anything was sampled on one day."""
        self._largest: Ints | None = None

    def add(self, day: DayCounts) -> None:
        """Add a day."""
        sizes, places = self._places.sizes(day.own), self._places
        some = sizes.places > 0
        self.beside = np.maximum(self.beside, np.bincount(places.stratum_of[some], minlength=places.strata))
        chosen = []
        for functions in day.together():
            pairs = self._pairs(day, sizes, functions)
            self._add(pairs, sizes)
            wanted = self._wanted(pairs)
            chosen.append(pairs.at(wanted))
        largest = _Pairs.joined(chosen)
        if self._largest is None and len(largest.total):
            largest = largest.at(_greatest(largest.total))
            self._largest = largest.number
        self.lasting.rows.append(self._strays(largest, day, sizes))

    def _wanted(self, pairs: "_Pairs") -> Ints:
        """Return which pairs' machines are remembered, or may be."""
        return _greatest(pairs.total) if self._largest is None else _found(pairs.number, self._largest)

    def _pairs(self, day: DayCounts, sizes: _Sizes, functions: tuple[int, int]) -> "_Pairs":
        """Add some functions' differences between visits, and return what of machines is needed."""
        places, (begin, end) = self._places, (int(day.first[at]) for at in functions)
        numbers, sums = np.empty((4, end - begin), dtype=np.int64), np.empty((3, end - begin))
        entries = day.first[functions[0] : functions[1] + 1], day.key, day.samples
        clumped, by_visit, largest = (array[functions[0] : functions[1]] for array in self.spread.of_clumps)
        many = _compare(
            entries,
            (places.visit_of, places.place_of, places.stratum_of),
            (sizes.on_visits, sizes.places, sizes.powers[0], sizes.visit_squares),
            (clumped, by_visit, largest),
            (numbers, sums),
        )
        numbers[0, :many] += functions[0]
        return _Pairs(*numbers[:, :many].copy(), *sums[:, :many].copy())

    def _add(self, pairs: "_Pairs", sizes: _Sizes) -> None:
        """Add differences between machines."""
        of_pairs = np.array([pairs.total, pairs.cross, pairs.square])
        sums = self.spread.of_machines, self.in_parts
        _add_machines((pairs.function, pairs.stratum), of_pairs, (sizes.powers, self._tags), *sums)

    def _strays(self, pairs: "_Pairs", day: DayCounts, sizes: _Sizes) -> pd.DataFrame:
        """Return the deviations of machines of some pairs: pair, machine, stray and mean."""
        places = self._places
        first = np.searchsorted(places.stratum_of, np.arange(places.strata + 1))
        machines = np.diff(first)[pairs.stratum]
        which, place = _numbers_in(first[pairs.stratum], machines)
        begins = np.cumsum(machines) - machines - first[pairs.stratum]
        of_entry, entry = _numbers_in(pairs.begin, pairs.end - pairs.begin)
        at = begins[of_entry] + places.place_of[places.visit_of[day.key[entry]]]
        count = np.bincount(at, day.samples[entry], len(place)).astype(np.float64)
        size = sizes.places[place]
        mean = (pairs.total / sizes.powers[0, pairs.stratum])[which] * size
        some = size > 0
        columns = {
            "pair": pairs.number[which],
            "machine": places.machine_of[place],
            "stray": count - mean,
            "mean": mean,
        }
        return pd.DataFrame({name: column[some] for name, column in columns.items()})


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of function and stratum, in order: arrays of n."""

    function: Ints
    stratum: Ints
    begin: Ints
    """The first entry."""
    end: Ints
    """The entry after the last."""
    total: Floats
    """Σ over machines of samples,"""
    cross: Floats
    """of these times samples of everything,"""
    square: Floats
    """and of their squares."""

    @property
    def number(self) -> Ints:
        """(n,) of function and stratum together."""
        return self.function * 2**31 + self.stratum

    def at(self, places: Ints) -> "_Pairs":
        """Return some of them."""
        return _Pairs(*(getattr(self, column.name)[places] for column in fields(self)))

    @classmethod
    def joined(cls, parts: "Sequence[_Pairs]") -> "_Pairs":
        """Return the pairs of several."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))


def _numbers_in(first: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Return of spans of whole numbers, one after another, which span each number is of, and the numbers.

    Parameters
    ----------
    first, length : (n,) of each span

    Examples
    --------
    >>> _numbers_in(np.array([5, 0]), np.array([2, 3]))
    (array([0, 0, 1, 1, 1]), array([5, 6, 0, 1, 2]))
    """
    which = np.repeat(np.arange(len(length)), length)
    return which, np.arange(len(which)) + np.repeat(first - (np.cumsum(length) - length), length)


def _found(numbers: Ints, wanted: Ints) -> Ints:
    """Return where numbers that are wanted are among others; both rise.

    Examples
    --------
    >>> _found(np.array([2, 3, 7]), np.array([1, 2, 7, 9]))
    array([0, 2])
    """
    at: Ints = np.searchsorted(numbers, wanted)
    at, wanted = at[at < len(numbers)], wanted[at < len(numbers)]
    return np.asarray(at[numbers[at] == wanted])


def _greatest(total: Floats) -> Ints:
    """Return the places of the largest, in order; of equal ones the first."""
    return np.sort(np.argsort(-total, kind="stable")[:_LASTING_PAIRS])


@njit(nogil=True, borrows=True, error_model="numpy")
def _compare(
    entries: tuple[Ints, AnyInts, Amounts],
    places: tuple[AnyInts, AnyInts, AnyInts],
    sizes: tuple[Floats, Floats, Floats, Floats],
    clumps: tuple[Floats, Floats, Floats],
    pairs: tuple[Ints, Floats],
) -> int:
    """Add differences between visits, and sum what machines differ by; return of how many pairs that is.

    Parameters
    ----------
    entries : as of `DayCounts`, of some functions alone
    places : `visit_of`, `place_of` and `stratum_of` of `MachinePlaces`
    sizes : samples of everything on visits, in places and in strata, and strata's squares of those of visits
    clumps : `clumped`, `by_visit` and `largest` of `Spread`, added to
    pairs : function from 0, stratum, begin and end of `_Pairs`, and its sums; filled in
    """
    first, key, samples = entries
    visit_of, place_of, stratum_of = places
    on_visits, in_places, in_strata, visit_squares = sizes
    clumped, by_visit, largest = clumps
    numbers, sums = pairs
    many = 0
    for function in range(len(first) - 1):
        at, end = first[function], first[function + 1]
        while at < end:
            begin, visit = at, visit_of[key[at]]
            place = place_of[visit]
            stratum = stratum_of[place]
            total = cross = square = every = crossed = squares = 0.0
            while at < end and stratum_of[place] == stratum:
                on_machine, here = 0.0, place
                while at < end and place == here:
                    count, own = 0.0, visit
                    while at < end and visit == own:
                        count += samples[at]
                        at += 1
                        if at < end:
                            visit = visit_of[key[at]]
                    every, crossed, squares = every + count, crossed + count * on_visits[own], squares + count**2
                    largest[function] = max(largest[function], count)
                    on_machine += count
                    place = place_of[visit]
                if in_places[here] > 0.0:
                    total, cross = total + on_machine, cross + on_machine * in_places[here]
                    square += on_machine**2
            size = in_strata[stratum]
            share = every / size if size > 0.0 else 0.0
            alone = share * (1.0 - share) * (size - visit_squares[stratum] / max(size, 1e-300))
            clumped[function] += squares - 2.0 * share * crossed + share**2 * visit_squares[stratum] - alone
            by_visit[function] += share**2 * visit_squares[stratum]
            if total > 0.0:
                numbers[0, many], numbers[1, many], numbers[2, many], numbers[3, many] = function, stratum, begin, at
                sums[0, many], sums[1, many], sums[2, many] = total, cross, square
                many += 1
    return many


@njit(nogil=True, borrows=True, error_model="numpy")
def _add_machines(
    at: tuple[Ints, Ints],
    of_pairs: Floats,
    strata: tuple[Floats, Ints],
    whole: tuple[Floats, Floats, Floats, Floats],
    in_parts: Floats,
) -> None:
    """Add a day's differences between machines, and each to those of its platform and data centre.

    Parameters
    ----------
    at : (n,) function and stratum of each pair
    of_pairs : (3, n) `total`, `cross` and `square` of `_Pairs`
    strata : (3, S) `powers` of `_Sizes`; (S, D) numbers of platform and data centre; −1: none
    whole : (F,) `square`, `pairs`, `mean` and `concentration` of `Spread`
    in_parts : (4, parts, F) of them
    """
    (function, stratum), (powers, tags) = at, strata
    for pair in range(len(function)):
        own, where = function[pair], stratum[pair]
        n1, n2, n3 = powers[0, where], powers[1, where], powers[2, where]
        share = of_pairs[0, pair] / n1
        alone = share * (1.0 - share) * (n1 - n2 / n1)
        amounts = (
            of_pairs[2, pair] - 2.0 * share * of_pairs[1, pair] + share**2 * n2 - alone,
            max(share**2 * (n2 - 2.0 * n3 / n1 + n2**2 / n1**2), 0.0),
            of_pairs[0, pair],
            share**2 * n2,
        )
        for which in range(4):
            whole[which][own] += amounts[which]
            for dimension in range(tags.shape[1]):
                if tags[where, dimension] >= 0:
                    in_parts[which, tags[where, dimension], own] += amounts[which]


def _beyond(own: Floats, usual: Floats, units: Floats) -> Floats:
    """Return by how much dispersions are beyond the usual ones, 0 where that may be chance.

    Parameters
    ----------
    own, usual : (F,) dispersions beyond 1
    units : (F,) how many counts told them
    """
    error = np.sqrt(2.0 / np.maximum(units, 1e-300)) * (1.0 + usual)
    return np.where(own - usual > _USUAL_ERRORS * error, own - usual, 0.0)


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
