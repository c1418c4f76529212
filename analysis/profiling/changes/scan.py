"""A scan of series of counts for changes at unknown times: likelihood ratios of many windows against the time before.

The count of a function in a bin of time is `expected`, up to a factor of the function and one of the hour (of the day
or of the week). A window of L bins that ends at t is compared with the same hours before it began: given their sum, the
window's count is binomial, and the signed root of its deviance is compared with a threshold. Windows of about a dozen
lengths end at every t, so that a monitor which looks after every bin has made exactly these tests, and all of them
count in the chance of a false alarm. Chernoff's bound P(R ≥ r) ≤ exp(−r² / 2) holds for binomial counts
whatever their size (Hoeffding 1963, theorem 1), so a function with few samples raises no more false alarms than others.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

_PERIOD_PARTS = (1 / 24, 2 / 24, 3 / 24, 4 / 24, 6 / 24, 8 / 24, 12 / 24, 18 / 24, 1.0)
"""Lengths of windows within a period."""
_MULTIPLES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Lengths of longer windows, in periods."""
_MACHINE_EDGES = 100_000
"""Edges of bins of machines whose sums are there at a time."""


def lengths(bins: int, period: int) -> tuple[int, ...]:
    """Return the lengths of windows in bins, the shortest first; each leaves at least a period before it.

    Parameters
    ----------
    bins : T
    period : P, bins after which hours repeat; 1: there are no seasons

    Examples
    --------
    >>> lengths(72, 24)
    (1, 2, 3, 4, 6, 8, 12, 18, 24, 48)
    >>> lengths(10, 1)
    (1, 2, 3, 4, 6, 8)
    """
    within = sorted({max(1, round(part * period)) for part in _PERIOD_PARTS})
    longer = [period * multiple for multiple in _MULTIPLES]
    return tuple(length for length in (*within, *longer) if length + period <= bins or length < bins <= period)


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """How machines' differences enter each window: from what each machine was seen to do in each bin.

    A function has a factor of its own on each machine, which lasts, and another on each machine and day.
    """

    lengths: tuple[int, ...]
    window: Floats
    """(L, T) part of a machine-day's spread that is in the window: Σ over machine-days of squared exposures in the
    window over the window's exposure, in units of the same ratio over all time."""
    before: Floats
    """(L, T) the same of the time that the window is compared with."""
    lasting: Floats
    """(L, T) variance of what lasts, relative to that of as large factors drawn anew every day: 0 if the same machines
    are seen in the window and before, 1 if each machine is seen on one day only."""

    @classmethod
    def of(cls, exposure: Floats, day: int, period: int, back: int = 0) -> Self:
        """Return the geometry of windows that end after every bin.

        Parameters
        ----------
        exposure : (M, T) samples of each machine in each bin
        day : bins of a day
        period : as in `lengths`
        back : bins before a window that it is compared with, a multiple of the period; 0: all
        """
        every, edges = lengths(exposure.shape[1], period), exposure.shape[1] + 1
        own, sums, whole = np.zeros((4, edges)), np.zeros((len(every), 5, edges)), np.zeros(2)
        for machines in _MachineDays.parts(exposure, day):
            whole += machines.whole
            for length, of_length in zip(every, sums, strict=True):
                _add_machines(machines.sums, (length, period, back), own, of_length)
        part = sums[:, 0] / np.maximum(sums[:, 0] + sums[:, 2], 1e-300)
        for machines in _MachineDays.parts(exposure, day):
            for length, inside, of_length in zip(every, part, sums, strict=True):
                _add_lasting(machines.sums, (length, period, back), own, inside, of_length[4])
        usual = max(whole[0], 1e-300) / max(whole[1], 1e-300)
        daily = (1.0 - part) ** 2 * sums[:, 1] + part**2 * sums[:, 3]
        window, before = (sums[:, at + 1] / np.maximum(sums[:, at] * usual, 1e-300) for at in (0, 2))
        lasting = sums[:, 4] / np.maximum(daily, 1e-300)
        return cls(every, *(array[:, 1:].copy() for array in (window, before, lasting)))


@dataclass(frozen=True, slots=True, eq=False)
class _MachineDays:
    """Exposures of M machines up to each of E = T + 1 edges of bins, so that windows are differences.

    Squares of what of each day is in a window are `until` at its end and `since` at its start, if that is another day.
    """

    exposure: Floats
    """(M, E)"""
    since: Floats
    """(M, E) square of the rest of the day less those of all days until its end."""
    until: Floats
    """(M, E) square of what was before on the day and those of all days before."""
    day: Ints
    """(E,)"""

    @classmethod
    def of(cls, exposure: Floats, day: int) -> Self:
        """Return the sums; parameters as of `Geometry.of`."""
        machines, bins = exposure.shape
        total = np.concatenate([np.zeros((machines, 1)), np.cumsum(exposure, axis=1)], axis=1)
        days = np.arange(bins + 1) // day
        starts = np.minimum(np.arange(days[-1] + 2) * day, bins)
        squares = np.cumsum(np.diff(total[:, starts], prepend=0.0) ** 2, axis=1)
        since = (total[:, starts[days + 1]] - total) ** 2 - squares[:, days + 1]
        return cls(total, since, (total - total[:, starts[days]]) ** 2 + squares[:, days], days)

    @property
    def sums(self) -> tuple[Floats, Floats, Floats, Ints]:
        """All of it."""
        return self.exposure, self.since, self.until, self.day

    @property
    def whole(self) -> Floats:
        """Σ squares of machine-days, and of everything."""
        return np.array([self.until[:, -1].sum(), self.exposure[:, -1].sum()])

    @classmethod
    def parts(cls, exposure: Floats, day: int) -> Iterator[Self]:
        """Yield the sums of some machines after others, so that those of all are never there at once."""
        rows = max(1, _MACHINE_EDGES // exposure.shape[1])
        for first in range(0, len(exposure), rows):
            yield cls.of(exposure[first : first + rows], day)


_Sums = tuple[Floats, Floats, Floats, Ints]


@njit(nogil=True, borrows=True, error_model="numpy")
def _add_machines(machines: _Sums, windows: tuple[int, int, int], own: Floats, sums: Floats) -> None:
    """Add up machines' exposures and days' squares in windows of one length and before them.

    Parameters
    ----------
    machines : as of `_MachineDays`
    windows : length, `period` and `back` of `Geometry.of`
    own : (4, E) of zeros, is written over
    sums : (4, E) of zeros, or more rows: exposure in the window that ends there, squares, exposure before it, squares
    """
    exposure, since, until, day = machines
    for machine in range(len(exposure)):
        _of_machine((exposure[machine], since[machine], until[machine], day), windows, own)
        for which in range(4):
            for end in range(own.shape[1]):
                sums[which, end] += own[which, end]


@njit(nogil=True, borrows=True, error_model="numpy")
def _add_lasting(machines: _Sums, windows: tuple[int, int, int], own: Floats, part: Floats, sums: Floats) -> None:
    """Add up squares of machines' weights in the difference between windows and the time before.

    Parameters
    ----------
    machines, windows, own : as of `_add_machines`
    part : (E,) of the exposure in windows and before them, that in the windows
    sums : (E,) of zeros
    """
    exposure, since, until, day = machines
    for machine in range(len(exposure)):
        _of_machine((exposure[machine], since[machine], until[machine], day), windows, own)
        for end in range(len(sums)):
            sums[end] += ((1.0 - part[end]) * own[0, end] - part[end] * own[2, end]) ** 2


@njit(cache=False, borrows=True)
def _of_machine(machine: _Sums, windows: tuple[int, int, int], own: Floats) -> None:
    """Fill in a machine's part of `_add_machines`."""
    length, period, back = windows
    if length < period:
        _in_windows(machine, length, own[0], own[1])
        for which in range(2):
            _repeat(own[which], period, back, own[which + 2])
    else:
        _in_windows(machine, back or own.shape[1], own[0], own[1])
        for which in range(2):
            _delay(own[which], length, own[which + 2])
        _in_windows(machine, length, own[0], own[1])


@njit(cache=False, borrows=True)
def _in_windows(machine: _Sums, length: int, sums: Floats, squares: Floats) -> None:
    """Fill in a machine's exposure and its days' squares in the window of a length that ends at each edge."""
    exposure, since, until, day = machine
    early = min(length, len(exposure))
    for end in range(early):
        sums[end] = exposure[end]
        squares[end] = exposure[end] ** 2 if day[end] == 0 else since[0] + until[end]
    sums, squares = sums[early:], squares[early:]
    late, last, until_late = exposure[early:], day[early:], until[early:]
    for start in range(len(late)):
        sums[start] = late[start] - exposure[start]
        squares[start] = sums[start] ** 2 if last[start] == day[start] else since[start] + until_late[start]


@njit(cache=False, borrows=True)
def _delay(values: Floats, by: int, later: Floats) -> None:
    """Fill in values from a number of edges before, 0 where there is none."""
    for end in range(len(later)):
        later[end] = 0.0
    later = later[by:]
    for start in range(len(later)):
        later[start] = values[start]


@njit(cache=False, borrows=True)
def _repeat(values: Floats, period: int, back: int, sums: Floats) -> None:
    """Fill in sums of values in all periods before, or in those of so many edges."""
    for end in range(len(sums)):
        sums[end] = sums[end - period] + values[end - period] if end >= period else 0.0
    if back:
        for end in range(len(sums) - 1, back - 1, -1):
            sums[end] -= sums[end - back]


@dataclass(frozen=True, slots=True)
class Noise:
    """What counts vary by beyond independent samples."""

    excess: Floats
    """(F,) dispersion of a machine-day's count beyond 1: variance of the logarithm between machine-days times the mean
    count of the machine-day that a sample is in."""
    lasting: float = 0.0
    """Part of that variance that stays with the machine."""
    drift: Floats = field(default_factory=lambda: np.zeros(1))
    """(F,), or one for all: variance of the logarithm of the whole fleet's share from day to day, each day for
    itself."""
    clumps: Floats = field(default_factory=lambda: np.zeros(1))
    """(F,), or one for all: dispersion beyond that, of samples that come in clumps. It is that of windows of any
    length, and does not cancel where the same machines were seen before."""
    walk: Floats = field(default_factory=lambda: np.zeros(1))
    """(F,), or one for all: variance of the daily steps of the same, which last: a random walk."""

    def of(self, rows: "Ints | slice") -> "Noise":
        """Return the noise of some series."""
        drift, clumps, walk = (
            np.broadcast_to(part, self.excess.shape)[rows] for part in (self.drift, self.clumps, self.walk)
        )
        return Noise(self.excess[rows], self.lasting, drift, clumps, walk)

    @property
    def drifts(self) -> bool:
        """Whether days differ beyond samples and machines."""
        return bool((self.drift > 0.0).any() or (self.walk > 0.0).any())

    @property
    def by_days(self) -> tuple[Floats, Floats]:
        """(F,) by what Σ 1/days of a window and before it, and their days, are multiplied: see `of_days`."""
        nothing = np.zeros(len(self.excess))
        return self.drift + self.walk / 6.0 + nothing, self.walk / 3.0 + nothing

    def of_days(self, days: float, before: Floats) -> Floats:
        """Return (F, T) variances of the logarithm of a window's level over that before, of days that differ.

        Means of n and m days in a row of a random walk with steps of variance 1 differ by (n + m)/3 + (1/n + 1/m)/6.

        Parameters
        ----------
        days : of the window
        before : (F, T) days before it, or (T,) for all series

        Examples
        --------
        >>> Noise(np.zeros(1), walk=np.ones(1)).of_days(1.0, np.ones(1))
        array([[1.]])
        >>> Noise(np.zeros(1), drift=np.ones(1)).of_days(2.0, np.full(1, 4.0))
        array([[0.75]])
        """
        alone, together = (part[:, None] for part in self.by_days)
        return np.asarray(alone * (1.0 / days + 1.0 / before) + together * (days + before))

    def days_back(self, daily: Floats) -> Floats:
        """Return (F,) how many days before a window tell most of it: infinitely many where nothing drifts for good.

        That is where the variance of `of_days` and of the counts of as many days is least, whatever the window's days.

        Parameters
        ----------
        daily : (F,) samples of each series a day

        Examples
        --------
        >>> Noise(np.zeros(3), walk=np.array([1e-4, 1e-4, 0.0])).days_back(np.array([1e2, 1e5, 1e5])).round(1)
        array([17.3,  0.9,  inf])
        """
        alone, together = self.by_days
        own = (1.0 + self.excess + self.clumps) / np.maximum(daily, 1e-300)
        back = np.full(len(daily), np.inf)
        return np.sqrt(np.divide(own + alone, together, out=back, where=together > 0.0))

    def over_days(self, row: int) -> float:
        """Return the dispersion of a series' counts over whole days."""
        return 1.0 + float((self.excess + self.clumps)[row])

    def dispersion(self, geometry: Geometry, at: int, share: Floats, information: Floats, day: int) -> Floats:
        """Return (F, T) by what a window's deviance is divided.

        Parameters
        ----------
        geometry : of the windows
        at : place of the window's length
        share : (F, T) of what is expected in the window and before, that in the window
        information : (F, T) inverse variance of the logarithm of the factor, for independent samples; only of a drift
        day : bins of a day
        """
        stays = (1.0 - self.lasting) + self.lasting * geometry.lasting[at]
        spread = ((1.0 - share) * geometry.window[at] + share * geometry.before[at]) * stays
        still = 1.0 + self.excess[:, None] * spread + self.clumps[:, None]
        if not self.drifts:
            return np.asarray(still)
        days = max(geometry.lengths[at] / day, 1.0)
        before = np.maximum((1.0 - share) * days, 1e-12) / np.maximum(share, 1e-12)
        return np.asarray(still + information * self.of_days(days, before))


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The windows of one length that end after every bin, for each of F series."""

    length: int
    size: Floats
    """(F, T) samples in the window and before."""
    observed: Floats
    """(F, T) samples in the window."""
    mean: Floats
    """(F, T) how many of the size are expected there."""
    dispersion: Floats
    """(F, T) by what the deviance is divided."""

    def at(self, ends: Ints) -> "Windows":
        """Return those that end after some of the bins."""
        return Windows(
            self.length, *(array[:, ends] for array in (self.size, self.observed, self.mean, self.dispersion))
        )

    @property
    def comparable(self) -> Bools:
        """(F, T) whether anything is expected both in the window and before."""
        return _comparable(self.mean, self.size)

    @property
    def root(self) -> Floats:
        """(F, T) signed root of the deviance over its dispersion: about standard normal without a change."""
        rest, rest_mean = self._rest()
        deviance = 2.0 * (_entropy(self.observed, np.maximum(self.mean, 1e-9)) + _entropy(rest, rest_mean))
        root = np.sign(self.observed - self.mean) * np.sqrt(np.maximum(deviance, 0.0) / self.dispersion)
        return np.where(self.comparable, root, 0.0)

    @property
    def log_factor(self) -> Floats:
        """(F, T) logarithm of the window's level over that before."""
        rest, rest_mean = self._rest()
        odds = np.log((self.observed + 0.5) / (rest + 0.5)) - np.log((self.mean + 0.5) / (rest_mean + 0.5))
        return np.where(self.comparable, odds, 0.0)

    @property
    def error(self) -> Floats:
        """(F, T) its standard error."""
        rest = self._rest()[0]
        error = np.sqrt(self.dispersion * (1.0 / (self.observed + 0.5) + 1.0 / (rest + 0.5)))
        return np.where(self.comparable, error, np.inf)

    def beyond(self, bound: float) -> Floats:
        """Return the roots of series of which some may be beyond a bound, and 0 for all others, which is quicker.

        They are found without a logarithm: see `screened`.

        Parameters
        ----------
        bound : of the roots, in either direction
        """
        mean, (rest, rest_mean) = np.maximum(self.mean, 1e-9), self._rest()
        inside, before = mean + np.minimum(self.observed, mean), rest_mean + np.minimum(rest, rest_mean)
        square = 2.0 * (self.observed - mean) ** 2 * (1.0 / inside + 1.0 / before)
        near = ((square * (1.0 + 1e-9) + 1e-6 > bound**2 * self.dispersion) & self.comparable).any(axis=1)
        root = np.zeros_like(square)
        if near.any():
            arrays = (self.size, self.observed, self.mean, self.dispersion)
            root[near] = Windows(self.length, *(array[near] for array in arrays)).root
        return root

    def _rest(self) -> tuple[Floats, Floats]:
        """Return (F, T) samples before the window, and how many are expected there."""
        return np.maximum(self.size - self.observed, 0.0), np.maximum(self.size - self.mean, 1e-9)


def exemplary_root(factor: Floats, window: Floats, before: Floats, dispersion: Floats) -> Floats:
    """Return the roots of counts as they are expected where a level was multiplied by a factor.

    Parameters
    ----------
    factor : of the level in the window
    window, before : counts that would be expected in the window and before it without a change
    dispersion : of the window

    Examples
    --------
    >>> exemplary_root(np.array([1.1]), np.array([1e4]), np.array([1e6]), np.array([1.0])).round(1)
    array([9.8])
    """
    observed, size = factor * window, factor * window + before
    mean = size * window / (window + before)
    deviance = 2.0 * (_entropy(observed, mean) + _entropy(before, size - mean))
    return np.asarray(np.sign(factor - 1.0) * np.sqrt(np.maximum(deviance, 0.0) / dispersion))


def threshold(series: int, windows: int, false_alarms: float) -> float:
    """Return what a root must exceed in either direction so that the chance of any false alarm is bounded.

    Parameters
    ----------
    series : number of series
    windows : windows of each
    false_alarms : bound of the chance that any window of any series exceeds it, 0..1

    Examples
    --------
    >>> round(threshold(800_000, 12 * 672, 0.01), 2)
    7.47
    """
    return math.sqrt(2.0 * math.log(2.0 * max(series, 1) * max(windows, 1) / false_alarms))


def scan(
    counts: Floats, expected: Floats, noise: Noise, geometry: Geometry, *, day: int, period: int, reach: int = 0
) -> Iterator[Windows]:
    """Yield the windows of every length, the shortest first.

    Parameters
    ----------
    counts : (F, T) samples
    expected : (F, T) how many are expected without a change, up to a factor of each series and hour
    noise : of the series
    geometry : of the same bins and period
    day : bins of a day
    period : bins after which hours repeat, 1 without seasons
    reach : bins before a window that it is compared with, a multiple of the period, as of the geometry; 0: all
    """
    sums, exposure = _cumulative(counts, period), _cumulative(expected, period)
    back, totals = 0, list[Floats]()
    for at, length in enumerate(geometry.lengths):
        if back != (period if length < period else length):
            back = period if length < period else length
            near = (part - _shifted(part, back + reach) if reach else part for part in (sums, exposure))
            earlier = (
                _shifted(part, back) - _shifted(part, back + reach) if reach else _shifted(part, back)
                for part in (sums, exposure)
            )
            totals = [np.cumsum(part, axis=1) for part in _compared(*near, *earlier, drifting=noise.drifts)]
        size, observed, mean, *variance = (_rolling(total, min(length, period)) for total in totals)
        information = variance[0] if variance else np.zeros(1)
        dispersion = noise.dispersion(geometry, at, _part(mean, size), information, day)
        yield Windows(length, size, observed, mean, dispersion)


def screened(
    counts: Floats,
    expected: Floats,
    noise: Noise,
    geometry: Geometry,
    bound: float,
    *,
    day: int,
    period: int,
    reach: int = 0,
) -> Bools:
    """Return (F,) the series of which a window of `scan` may have a root beyond a bound: all that do, and few others.

    Of a count x and its mean m, x log(x/m) − x + m ≤ (x − m)²/(m + min(x, m)): above the mean as log(1 + u) ≤ u, below
    it as the difference, a power series of (m − x)/m whose signs change once, is 0 at 1. So a deviance is little more
    than Pearson's χ² at most, which needs no logarithm, and by far most series no division either.

    Parameters
    ----------
    counts, expected, noise, geometry, day, period, reach : as of `scan`
    bound : of the roots, in either direction

    Examples
    --------
    >>> counts = np.array([[5.0] * 48, [5.0] * 47 + [60.0]])
    >>> noise, geometry = Noise(np.zeros(2)), Geometry.of(counts, 24, 24)
    >>> screened(counts, np.full((2, 48), 5.0), noise, geometry, 6.0, day=24, period=24).tolist()
    [False, True]
    """
    near = np.zeros(len(counts), dtype=np.bool_)
    stays = (1.0 - noise.lasting) + noise.lasting * geometry.lasting
    spread = geometry.window * stays, geometry.before * stays
    lengths_of = np.array(geometry.lengths, dtype=np.int64)
    scratch = np.zeros((6, counts.shape[1]))
    beyond = noise.excess, noise.clumps + np.zeros(len(counts)), *noise.by_days
    limits = bound**2, day, period, reach or counts.shape[1]
    _screen((counts, expected, *beyond), (lengths_of, *spread), limits, scratch, near)
    return near


@njit(cache=False, borrows=True, error_model="numpy")
def _sum_up(counts: Floats, expected: Floats, period: int, scratch: Floats) -> None:
    """Fill the first rows of scratch with sums over the same hours up to each bin: counts and what is expected."""
    for at in range(len(counts)):
        scratch[0, at], scratch[1, at] = counts[at], expected[at]
        if at >= period:
            scratch[0, at] += scratch[0, at - period]
            scratch[1, at] += scratch[1, at - period]


@njit(cache=False, borrows=True, error_model="numpy")
def _compare(scratch: Floats, back: int, reach: int) -> None:
    """Fill the other rows with sums up to each bin of what `_compared` yields."""
    trials = inside = mean = information = 0.0
    for at in range(scratch.shape[1]):
        far = at - back - reach
        counted, exposed = (scratch[0, far], scratch[1, far]) if far >= 0 else (0.0, 0.0)
        if at >= back and scratch[1, at - back] > exposed:
            share = 1.0 - (scratch[1, at - back] - exposed) / max(scratch[1, at] - exposed, 1e-300)
            own = scratch[0, at] - counted
            trials += own
            inside += scratch[0, at] - scratch[0, at - back]
            mean += own * share
            information += own * share * (1.0 - share)
        scratch[2, at], scratch[3, at], scratch[4, at], scratch[5, at] = trials, inside, mean, information


@njit(cache=False, borrows=True, error_model="numpy")
def _any_beyond(scratch: Floats, width: int, square: float) -> bool:
    """Return whether any window may be beyond the bound if machines and days are alike; a dispersion is at least 1.

    There is no branch within, so that several windows are looked at by one instruction. Windows that begin with the
    first bin are compared with nothing.
    """
    size, observed, mean = scratch[2], scratch[3], scratch[4]
    any_beyond = False
    for at in range(len(size) - width):
        end = at + width
        any_beyond |= _beyond(mean[end] - mean[at], size[end] - size[at], observed[end] - observed[at], square)
    return any_beyond


@njit(cache=False, borrows=True, error_model="numpy")
def _beyond(own: float, all_of: float, count: float, square: float) -> bool:
    """Return the same of one window: what is expected in it, the samples of it and those before, and its own."""
    deviance, both = _deviance(own, all_of, count)
    return (min(own, all_of - own) > 0.5e-9) & (deviance + 1e-3 * both > square * both)


@njit(cache=False, borrows=True, error_model="numpy")
def _deviance(own: float, all_of: float, count: float) -> tuple[float, float]:
    """Return a bound of the deviance of a window, times the second, which is positive."""
    rest, usual = max(all_of - own, 1e-9), max(own, 1e-9)
    in_window, earlier_on = usual + min(count, usual), rest + min(max(all_of - count, 0.0), rest)
    both = in_window * earlier_on
    return 2.0 * (count - usual) ** 2 * (1.0 + 1e-6) * (in_window + earlier_on), both


@njit(nogil=True, borrows=True, error_model="numpy")
def _screen(
    series: tuple[Floats, Floats, Floats, Floats, Floats, Floats],
    windows: tuple[Ints, Floats, Floats],
    limits: tuple[float, int, int, int],
    scratch: Floats,
    near: Bools,
) -> None:
    """Mark series of which some window may be beyond the bound.

    Parameters
    ----------
    series : (F, T) counts and what is expected, (F,) dispersion beyond 1 of machine-days, and of clumps, and
        `Noise.by_days`
    windows : (L,) lengths, (L, T) spread in the window and before
    limits : squared bound, bins of a day and of a period, and those before a window
    scratch : (6, T)
    near : (F,) of False
    """
    counts, expected, excess, clumps, alone, together = series
    lengths_of, inside, earlier = windows
    square, day, period, reach = limits
    for row in range(len(counts)):
        _sum_up(counts[row], expected[row], period, scratch)
        back = 0
        for place in range(len(lengths_of)):
            length = lengths_of[place]
            width = min(length, period)
            if back != max(length, period):
                back = max(length, period)
                _compare(scratch, back, reach)
            if not _any_beyond(scratch, width, square):
                continue
            days = max(length / day, 1.0)
            for at in range(width, counts.shape[1]):
                all_of, count = scratch[2, at] - scratch[2, at - width], scratch[3, at] - scratch[3, at - width]
                own, inner = scratch[4, at] - scratch[4, at - width], scratch[5, at] - scratch[5, at - width]
                if not _beyond(own, all_of, count, square):
                    continue
                part = own / max(all_of, 1e-300)
                apart = excess[row] * ((1.0 - part) * inside[place, at] + part * earlier[place, at])
                dispersion = 1.0 + apart + clumps[row]
                if alone[row] > 0.0:
                    before = max((1.0 - part) * days, 1e-12) / max(part, 1e-12)
                    by_days = alone[row] * (1.0 / days + 1.0 / before) + together[row] * (days + before)
                    dispersion += inner * by_days
                deviance, both = _deviance(own, all_of, count)
                if deviance / both + 1e-3 > square * dispersion * (1.0 - 1e-6):
                    near[row] = True
                    break
            if near[row]:
                break


def _compared(sums: Floats, exposure: Floats, earlier: Floats, before: Floats, *, drifting: bool) -> Iterator[Floats]:
    """Yield (F, T) counts of each hour with those before, in it, expected in it, and their information if need be."""
    known = before > 0
    share = np.where(known, 1.0 - before / np.maximum(exposure, 1e-300), 0.0)
    trials = np.where(known, sums, 0.0)
    yield trials
    yield np.where(known, sums - earlier, 0.0)
    yield trials * share
    if drifting:
        yield trials * share * (1.0 - share)


def _part(mean: Floats, size: Floats) -> Floats:
    """Return (F, T) parts of what is expected in windows and before that are in the windows; ½ of nothing."""
    return np.where(_comparable(mean, size), mean / np.maximum(size, 1e-300), 0.5)


def _comparable(mean: Floats, size: Floats) -> Bools:
    """Return (F, T) whether anything is expected both in windows and before."""
    return np.asarray((mean > 1e-9) & (size - mean > 1e-9), dtype=np.bool_)


def _entropy(count: Floats, mean: Floats) -> Floats:
    return np.asarray(np.where(count > 0, count * np.log(np.maximum(count, 1e-300) / np.maximum(mean, 1e-300)), 0.0))


def _cumulative(values: Floats, period: int) -> Floats:
    """Return (F, T) sums over the same hours up to each bin."""
    series, bins = values.shape
    padded = np.zeros((series, -(-bins // period) * period))
    padded[:, :bins] = values
    return padded.reshape(series, -1, period).cumsum(axis=1).reshape(series, -1)[:, :bins]


def _shifted(values: Floats, by: int) -> Floats:
    earlier = np.zeros_like(values)
    if by < values.shape[1]:
        earlier[:, by:] = values[:, :-by]
    return earlier


def _rolling(total: Floats, width: int) -> Floats:
    """Return (F, T) sums over the last bins up to each, of sums up to each."""
    sums = total.copy()
    sums[:, width:] -= total[:, :-width]
    return sums
