"""Whether counters stand in the rows of the requests that made them, or some rows off."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.crossplatform.evidence import ServiceLog
from models.arrays import Floats, Ints

SHIFTS = (-2, -1, 1, 2)
"""Intervals by which a column is tried later."""
LEAST_ROWS = 30
"""Fewer rows tell no shift."""
CLOSER = 0.7
"""Share of the median distance from the fit that is left, at most, where a shift is right."""
MORE_OFTEN = 3.0
"""Standard errors of a fair coin by which more rows must be nearer to the shifted fit: one in 740 by chance alone."""


@dataclass(frozen=True, slots=True)
class ShiftedColumn:
    """A column that follows the requests of other intervals."""

    column: str
    intervals: int
    """How many intervals after their requests the numbers stand; negative: before."""
    distance_ratio: float
    """Median distance from the fit to these requests over that to the row's own."""


def shifted_columns(log: ServiceLog) -> tuple[ShiftedColumn, ...]:
    """Return the columns that follow the requests of earlier or later intervals far better than those of their own.

    Each column is fitted by least squares to the requests by type, of its own row and of those up to two intervals
    away, over the same rows. A shift is reported if its median distance is at most 0.7 of that of the rows as they
    are, and if significantly more rows are nearer to it (sign test, `MORE_OFTEN`). Where the load is so steady, or a
    counter so noisy, that requests do not explain it, no shift is ever seen.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> counts = rng.poisson([60.0, 30.0], (50, 2)).astype(float)
    >>> work = counts @ [2e6, 5e6]
    >>> empty = np.full(50, np.nan)
    >>> late = ServiceLog(("see", "buy"), 30.0, 30.0 * np.arange(50), counts, np.roll(work, 1), empty[:, None], empty,
    ...     empty)
    >>> [(told.column, told.intervals) for told in shifted_columns(late)]
    [('instructions', 1)]
    """
    shifted = (_shifted(log, name, values) for name, values in _columns(log))
    return tuple(column for column in shifted if column is not None)


def _columns(log: ServiceLog) -> Iterator[tuple[str, Floats]]:
    """Yield what requests make, by the names of the file."""
    yield "instructions", log.instructions
    for level in range(log.misses.shape[1]):
        yield f"l{level + 1}_misses", log.misses[:, level]
    yield "utilisation", log.utilisation


def _shifted(log: ServiceLog, name: str, values: Floats) -> ShiftedColumn | None:
    """Return the best of all shifts of a column that are far better than none, if there is one."""
    better = list[ShiftedColumn]()
    for shift in SHIFTS:
        row, later = _rows_apart(log, values, shift)
        if len(row) < max(LEAST_ROWS, 3 * (1 + len(log.types))):
            continue
        own, other = (_distances(log.counts[row], values[at]) for at in (row, later))
        middle, elsewhere = float(np.median(own)), float(np.median(other))
        often = float(np.count_nonzero(other < own) - len(row) / 2) / np.sqrt(len(row) / 4)
        if elsewhere <= CLOSER * middle and often >= MORE_OFTEN:
            better.append(ShiftedColumn(name, shift, elsewhere / middle))
    return min(better, key=lambda column: column.distance_ratio, default=None)


def _rows_apart(log: ServiceLog, values: Floats, shift: int) -> tuple[Ints, Ints]:
    """Return rows, and those so many intervals later, where both are in the log and have a value."""
    tick = np.rint((log.start_s - log.start_s[0]) / log.interval_s).astype(np.int64)
    later = np.minimum(np.searchsorted(tick, tick + shift), len(tick) - 1)
    both = (tick[later] == tick + shift) & np.isfinite(values) & np.isfinite(values[later])
    return np.flatnonzero(both), later[both]


def _distances(counts: Floats, values: Floats) -> Floats:
    """Return how far values are from their least-squares fit to counts of requests."""
    design = np.column_stack([np.ones(len(counts)), counts / np.maximum(counts.max(axis=0), 1.0)])
    weights = np.linalg.lstsq(design, values, rcond=None)[0]
    return np.asarray(np.abs(values - design @ weights))
