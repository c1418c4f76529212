"""A recorded load made heavier or lighter: bursts that were recorded are left out or come again, none is invented."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from analysis.occupancy.course import LoadCourse, course
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
    course: LoadCourse
    """Of the day: how the rate of arrivals changes."""

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
        if len(rows) > 1:
            order = np.argsort(times, kind="stable")
            chosen, times = chosen[order], times[order]
        return self.requests(chosen, times)

    def another_day(self, factor: float, rng: np.random.Generator) -> tuple[Floats, Floats, Ints | None]:
        """Return a day that is put together from pieces of the recorded one.

        By the clock that counts requests (`course`) every stretch of the day is steady. Each piece of it, of half the
        root of the requests and at most a quarter of the stretch, is taken anew from anywhere in its stretch, its end
        being followed by its beginning: a block bootstrap (Kunsch 1989) of what arrives, not of what it waits. Bursts
        within a piece stay, the course of the day stays, and the crowds of the moment are others. A load of 1.3 has
        every piece once, and beside it bursts of a second draw.
        """
        return self.requests(*self.rows_of_another_day(factor, rng))

    def rows_of_another_day(self, factor: float, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Return which requests `another_day` has, and when they come, seconds, in order of arrival."""
        layers = list[tuple[Ints, Floats]]()
        for at in range(int(np.ceil(factor))):
            chosen, times, group = self.pieces(rng)
            if factor - at < 1:
                stays = (rng.random(int(group.max(initial=-1)) + 1) < factor - at)[group]
                chosen, times = chosen[stays], times[stays]
            layers.append((chosen, times))
        rows, passed = (np.concatenate(column) for column in zip(*layers, strict=True))
        order = np.argsort(passed, kind="stable")
        return rows[order], self.course.in_seconds(passed[order])

    def pieces(self, rng: np.random.Generator) -> tuple[Ints, Floats, Ints]:
        """Return which requests a day is put together from, when they come in requests passed, and their burst."""
        n = len(self.arrival_s)
        if not n:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64)
        passed, ends = self.course.by_requests(self.arrival_s), self.course.ends
        slot, length, low, high = _slots(ends, max(0.5 * np.sqrt(n), 1.0))
        start = low + rng.random(len(slot)) * (high - low)
        before = np.minimum(length, high - start)  # the rest of the piece is from the beginning of the stretch
        pieces = np.concatenate((start, low)), np.concatenate((start + before, low + length - before))
        first, last = (np.searchsorted(passed, end) for end in pieces)
        size = last - first
        piece = np.repeat(np.arange(len(size)), size)
        chosen = np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())
        times = passed[chosen] + (np.concatenate((slot, slot + before)) - pieces[0])[piece]
        group = np.cumsum((np.diff(piece, prepend=-1) > 0) | (np.diff(self.burst[chosen], prepend=-1) != 0)) - 1
        return chosen, times, group

    def requests(self, rows: Ints, at_s: Floats) -> tuple[Floats, Floats, Ints | None]:
        """Return arrivals, demands and classes of requests of the load that come at other times."""
        return at_s, self.demand_s[rows], None if self.priority is None else self.priority[rows]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDay:
    """Another day, or a stretch of it, at every load: a larger load has all requests of a smaller one.

    Examples
    --------
    >>> load = recorded(np.arange(1000.0), np.ones(1000), np.ones(1000))
    >>> day = DrawnDay(load, np.random.default_rng(0))
    >>> times, more = day.scaled(0.5)[0], day.scaled(1.5)[0]
    >>> bool(np.isin(times, more).all()), 450 < len(times) < 550, 1400 < len(more) < 1600
    (True, True, True)
    """

    load: RecordedLoad
    rng: np.random.Generator
    start_s: float = -np.inf
    end_s: float = np.inf
    layers: list[tuple[Ints, Floats, Floats, Floats]] = field(default_factory=list)
    """Rows, when they come in requests passed and in seconds, in this order, and numbers 0..1 by burst; one layer for
    each multiple of the load."""

    def scaled(self, factor: float) -> tuple[Floats, Floats, Ints | None]:
        """Return arrivals, demands and classes of `factor` times the load, in order of arrival."""
        while len(self.layers) < factor:
            rows, times, group = self.load.pieces(self.rng)
            mark = self.rng.random(int(group.max(initial=-1)) + 1)[group]
            at_s = self.load.course.in_seconds(times)
            inside = np.flatnonzero((at_s >= self.start_s) & (at_s < self.end_s))
            inside = inside[np.argsort(times[inside], kind="stable")]
            self.layers.append((rows[inside], times[inside], at_s[inside], mark[inside]))
        layers = self.layers[: int(np.ceil(factor))]
        stays = [np.flatnonzero(mark < factor - at) for at, (*_, mark) in enumerate(layers)]
        rows = np.concatenate([layer[own] for (layer, _, _, _), own in zip(layers, stays, strict=True)])
        times = np.concatenate([layer[own] for (_, layer, _, _), own in zip(layers, stays, strict=True)])
        at_s = np.concatenate([layer[own] for (_, _, layer, _), own in zip(layers, stays, strict=True)])
        if len(layers) > 1:
            order = np.argsort(times, kind="stable")
            rows, at_s = rows[order], at_s[order]
        return self.load.requests(rows, at_s)


def _slots(ends: Floats, length: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return where each piece of a day begins, its length, and from where to where its stretch goes."""
    columns = list[Floats]()
    for low, high in pairwise(ends.tolist()):
        count = int(np.ceil((high - low) / min(length, (high - low) / 4)))
        slot = np.linspace(low, high, count + 1)
        columns.append(np.stack((slot[:-1], np.diff(slot), np.full(count, low), np.full(count, high))))
    slots, lengths, lows, highs = np.concatenate(columns, axis=1)
    return slots, lengths, lows, highs


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
    burst, rng = _bursts(times), np.random.default_rng(seed)
    copy = _marks(burst, rng)
    usual = float(np.nanmedian(response_s)) if n else 0.0
    least = _LEAST_SHIFT * max(usual, gap)
    reach = max(_MOST_SHIFT * span, least)
    shifts = rng.uniform(least, max(reach, 2 * least), int(MOST)) * rng.choice([-1.0, 1.0], int(MOST))
    classes = None if priority is None else np.asarray(priority)[order]
    demands = np.asarray(demand_s, dtype=np.float64)[order]
    return RecordedLoad(times, demands, classes, copy, burst, shifts, course(times, demands))


def _bursts(arrival_s: Floats) -> Ints:
    """Return the number of the burst that each request belongs to."""
    gaps_s = np.diff(arrival_s, prepend=arrival_s[:1])
    burst: Ints = np.cumsum(gaps_s > _TOGETHER * gaps_s.sum() / max(len(gaps_s) - 1, 1))
    return burst


def _marks(burst: Ints, rng: np.random.Generator) -> Floats:
    """Return a number 0..1 for each request, evenly spread over the bursts and the same within one."""
    marks = rng.permutation(int(burst.max(initial=-1)) + 1)
    return (marks[burst] + 0.5) / max(len(marks), 1)
