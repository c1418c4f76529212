"""A recorded load made heavier or lighter: bursts that were recorded are left out or come again, none is invented."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError

MOST = 64.0
"""A load that is more times the recorded one says little about what was recorded."""
_TOGETHER = 0.1
"""Requests whose gaps are shorter than this part of the mean gap belong to one burst."""
_LEAST_SHIFT, _MOST_SHIFT = 10.0, 0.02
"""A copy is moved by at least so many usual responses and gaps, and at most by such a share of the log, where the first
allows it: the course of the day stays, and the queues of the moment do not coincide."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedLoad:
    """Requests as they were recorded, with what makes copies of them."""

    arrival_s: Floats
    """(n,) non-decreasing, seconds."""
    demand_s: Floats
    """(n,) seconds on one server."""
    priority: Ints | None
    copy: Floats
    """(n,) numbers 0..1, the same within a burst: a load of 0.3 has the bursts below 0.3."""
    burst: Ints
    """(n,) number of the burst that each request belongs to, from 0 in order."""
    shift_s: Floats
    """(copies,) by which each further copy is moved."""

    def scaled(self, factor: float) -> tuple[Floats, Floats, Ints | None]:
        """Return arrivals, demands and classes of `factor` times the load, in order of arrival.

        A load below 1 has a share of the recorded bursts. One above 1 has all of them, and as many again as it takes,
        moved in time. A larger factor has all requests of a smaller one.

        Raises
        ------
        InputError
            If the factor is not above 0, or above 64.
        """
        if not 0 < factor <= MOST:
            raise InputError(f"load should be above 0 and at most {MOST:g} times the recorded one, got {factor:g}")
        rows, arrived = list[Ints](), list[Floats]()
        for at in range(int(np.ceil(factor))):
            # Each copy keeps other bursts first, so that a burst is not drawn again and again.
            mark = (self.copy + at * 0.6180339887498949) % 1.0
            kept = np.flatnonzero(mark < factor - at)
            rows.append(kept)
            arrived.append(self.arrival_s[kept] + (self.shift_s[at - 1] if at else 0.0))
        chosen, times = np.concatenate(rows), np.concatenate(arrived)
        order = np.argsort(times, kind="stable")
        chosen = chosen[order]
        return times[order], self.demand_s[chosen], None if self.priority is None else self.priority[chosen]

    def another_day(self, factor: float, rng: np.random.Generator) -> tuple[Floats, Floats, Ints | None]:
        """Return a day drawn from the recorded one: each burst comes a Poisson number of times, moved a little.

        That is the bootstrap of a compound Poisson process: the number of requests and their work differ between days
        as those of independent bursts do, and the course of the day stays.
        """
        bursts = int(self.burst.max(initial=-1)) + 1
        times = rng.poisson(factor, bursts)
        drawn = np.repeat(np.arange(bursts), times)
        first = np.searchsorted(self.burst, np.arange(bursts + 1))
        size = np.diff(first)[drawn]
        rows = np.repeat(first[drawn], size) + (np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size))
        reach = float(np.abs(self.shift_s).min(initial=0.0)) if len(self.arrival_s) else 0.0
        moved = self.arrival_s[rows] + np.repeat(rng.uniform(-reach, reach, len(drawn)), size)
        order = np.argsort(moved, kind="stable")
        rows = rows[order]
        return moved[order], self.demand_s[rows], None if self.priority is None else self.priority[rows]


def recorded(
    arrival_s: Floats, demand_s: Floats, response_s: Floats, priority: Ints | None = None, seed: int = 0
) -> RecordedLoad:
    """Return a load that can be scaled.

    Requests that follow each other by less than a tenth of the mean gap are one burst, and stay together: thinning
    them one by one would make the load smoother than it is.

    Parameters
    ----------
    arrival_s, demand_s, response_s : (n,) arrays, seconds, in any order
    priority : (n,) classes
    seed : of the choice of bursts and of the shifts

    Examples
    --------
    >>> load = recorded(np.repeat(np.arange(1000.0), 4), np.ones(4000), np.ones(4000))
    >>> [len(load.scaled(factor)[0]) // 4 * 4 / 4000 for factor in (1.0, 2.0)], len(load.scaled(0.5)[0]) % 4
    ([1.0, 2.0], 0)
    """
    order = np.argsort(arrival_s, kind="stable")
    times = np.asarray(arrival_s, dtype=np.float64)[order]
    n = len(times)
    span = float(np.ptp(times)) if n else 0.0
    gap = span / max(n - 1, 1)
    burst = np.cumsum(np.concatenate(([False], np.diff(times) > _TOGETHER * gap))) if n else np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng(seed)
    marks = rng.permutation(int(burst.max(initial=-1)) + 1)
    copy = (marks + 0.5) / max(len(marks), 1)
    usual = float(np.nanmedian(response_s)) if n else 0.0
    least = _LEAST_SHIFT * max(usual, gap)
    reach = max(_MOST_SHIFT * span, least)
    shifts = rng.uniform(least, max(reach, 2 * least), int(MOST)) * rng.choice([-1.0, 1.0], int(MOST))
    classes = None if priority is None else np.asarray(priority)[order]
    return RecordedLoad(times, np.asarray(demand_s, dtype=np.float64)[order], classes, copy[burst], burst, shifts)
