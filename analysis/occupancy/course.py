"""The course of a recorded day: stretches in which the rate of arrivals is steady, or rises or falls evenly."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from models.arrays import Floats, Ints

_MOST_CELLS = 2_000
"""A day is divided into twice the root of its requests of cells, and into no more."""
_PRICE = 3.0
"""What a further stretch must gain in twice the logarithm of the likelihood, in logarithms of the number of cells: one
that chance makes gains less."""
_LEAST_SPREAD = 0.2
"""Counts and demands of cells differ at least by so much of what independent ones do: clocked arrivals have no spread
at all, and each of their cells would be a stretch."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadCourse:
    """How many requests are expected by when; by this clock, which counts requests, every stretch is steady."""

    time_s: Floats
    """(cells + 1,) edges of cells, seconds."""
    passed: Floats
    """(cells + 1,) requests expected by then, non-decreasing."""
    ends: Floats
    """(stretches + 1,) ends of the stretches, in requests passed, increasing."""

    def by_requests(self, time_s: Floats) -> Floats:
        """Return times by the clock that counts requests."""
        return np.interp(time_s, self.time_s, self.passed)

    def in_seconds(self, passed: Floats) -> Floats:
        """Return times by the usual clock."""
        return np.interp(passed, self.passed, self.time_s)


def course(arrival_s: Floats, demand_s: Floats) -> LoadCourse:
    """Return the stretches of a day, divided where arrivals or demands change by more than chance.

    Twice the root of the requests in a cell has the same spread whatever the rate, so a stretch is a line through these
    roots, and the demands' ranks are steady in it. How much neighbouring cells differ says how much chance does:
    bursts spread more than single requests. The division with the least sum of squares and prices is found by dynamic
    programming (Jackson et al. 2005).

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, seconds

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quiet, busy = rng.uniform(0, 100, 1_000), rng.uniform(100, 200, 4_000)
    >>> day = course(np.sort(np.concatenate((quiet, busy))), np.ones(5_000))
    >>> len(day.ends) - 1, bool(abs(day.in_seconds(day.ends)[1] - 100) < 3)
    (2, True)
    """
    n = len(arrival_s)
    if n < 2:
        return LoadCourse(np.zeros(2), np.array([0.0, n]), np.array([0.0, n]))
    m = int(np.clip(round(2 * np.sqrt(n)), 1, _MOST_CELLS))
    first, span = float(arrival_s[0]), float(np.ptp(arrival_s))
    edges = np.linspace(first, first + span * n / (n - 1), m + 1)
    edges[-1] = max(edges[-1], np.nextafter(arrival_s[-1], np.inf))
    at = np.searchsorted(arrival_s, edges)
    count = np.diff(at).astype(np.float64)
    rank = (pd.Series(demand_s).rank().to_numpy() - 0.5) / n - 0.5
    ranks = np.diff(_summed(rank)[at])
    cells = _Cells.of(count, ranks)
    ends = cells.divided()
    passed = np.zeros(m + 1)
    for start, end in pairwise(ends.tolist()):
        total = float(cells.requests[end] - cells.requests[start])
        rate = cells.rate(start, end)
        share = rate / rate.sum() if rate.sum() > 0 else np.full(end - start, 1.0 / (end - start))
        passed[start + 1 : end + 1] = passed[start] + np.cumsum(share) * total
        passed[end] = cells.requests[end]
    return LoadCourse(edges, passed, np.unique(passed[ends]))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Sums over cells, from which a line through any of them follows at once."""

    requests: Floats
    ranks: Floats
    root: Floats
    place_root: Floats
    square: Floats
    place: Floats
    place_square: Floats
    root_spread: float
    rank_spread: float

    @classmethod
    def of(cls, count: Floats, ranks: Floats) -> "_Cells":
        m = len(count)
        place: Floats = np.arange(m, dtype=np.float64) + 0.5
        root: Floats = 2.0 * np.sqrt(count + 0.375)
        both = np.flatnonzero((count[1:] > 0) & (count[:-1] > 0))
        mean = ranks / np.maximum(count, 1.0)
        steps = np.diff(mean)[both] ** 2 / (1.0 / count[1:][both] + 1.0 / count[:-1][both])
        return cls(
            _summed(count),
            _summed(ranks),
            _summed(root),
            _summed(place * root),
            _summed(root**2),
            _summed(place),
            _summed(place**2),
            root_spread=max(float(np.sum(np.diff(root) ** 2)) / (2 * max(m - 1, 1)), _LEAST_SPREAD),
            rank_spread=max(float(steps.mean()) if len(steps) else 1.0, _LEAST_SPREAD / 12),
        )

    def divided(self) -> Ints:
        """Return the cells at which stretches end, the first and the last included."""
        m = len(self.requests) - 1
        price = _PRICE * np.log(m)
        best, before = np.zeros(m + 1), np.zeros(m + 1, dtype=np.int64)
        for end in range(1, m + 1):
            start = np.arange(end)
            cost = best[:end] + price + self._misfit(start, end)
            before[end] = np.argmin(cost)
            best[end] = cost[before[end]]
        ends = [m]
        while ends[-1] > 0:
            ends.append(int(before[ends[-1]]))
        return np.array(ends[::-1])

    def rate(self, start: int, end: int) -> Floats:
        """Return the requests expected in each cell of a stretch, up to a factor."""
        level, slope, _ = self._line(np.array([start]), end)
        middle = np.arange(start, end) + 0.5
        expected: Floats = np.maximum(level + slope * middle, 0.0) ** 2
        return expected

    def _misfit(self, start: Ints, end: int) -> Floats:
        count = np.maximum(self.requests[end] - self.requests[start], 1.0)
        ranks = self.ranks[end] - self.ranks[start]
        misfit: Floats = (
            np.maximum(self._line(start, end)[2], 0.0) / self.root_spread - ranks**2 / count / self.rank_spread
        )
        return misfit

    def _line(self, start: Ints, end: int) -> tuple[Floats, Floats, Floats]:
        """Return level, slope and sum of squares of the lines from each start on; two cells have no slope."""
        length = end - start
        place, root = self.place[end] - self.place[start], self.root[end] - self.root[start]
        spread = self.place_square[end] - self.place_square[start] - place**2 / length
        common = self.place_root[end] - self.place_root[start] - place * root / length
        squares = self.square[end] - self.square[start] - root**2 / length
        slope = np.where(length > 2, common / np.where(spread > 0, spread, 1.0), 0.0)
        return (root - slope * place) / length, slope, squares - slope * common


def _summed(column: Floats) -> Floats:
    """Return the sum of all before each place, and of all."""
    return np.concatenate(([0.0], np.cumsum(column)))
