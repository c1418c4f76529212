"""Changes of functions on one platform, or in one data centre, alone: there the rest of the fleet does not dilute them.

A change of q of a function's samples moves all of them by q of it, so that its root is smaller by about √q. Parts of
the fleet are hence scanned like the fleet itself: by the noise, the drift and the machines of their own samples. Every
series that is scanned has its price. Half of the chance of a false alarm is the whole fleet's, half is that of all
parts: nobody knows which kind of change is likelier, and half of the chance raises the threshold of either by 1% to 2%.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.profiling.changes.detection import (
    SeriesChange,
    WatchCriteria,
    changes,
    clearest,
    drift_of,
    shifts,
    windows_of,
)
from analysis.profiling.changes.scan import Noise, exemplary_root, threshold
from analysis.profiling.changes.series import CountSeries, FleetPart
from models.arrays import Bools, Floats, Ints

HALVES = 2
"""By how many the chance of a false alarm is divided if parts are scanned: like that many times the series."""
MOST_SERIES = 4_000
"""Series within parts that are scanned, those of most samples: they take a second for every 15,000."""
DOUBLED = 2.0
"""By which factor a function must be able to grow, for a day, to be found if machines were all alike."""
LEAST_IN_PART = 6
"""Machines that must have been sampled side by side in a part: on three, two days do not tell chance."""
_MOST_OF_WHOLE = 0.9
"""Part of a function's samples from which the whole fleet shows its changes as well: √0.9 is what parts' price is."""


@dataclass(frozen=True, slots=True, eq=False)
class ScannedPart:
    """A part of the fleet and the functions that are looked at there."""

    part: FleetPart
    functions: Ints
    """Their places."""


@dataclass(frozen=True, slots=True, eq=False)
class PartChange:
    """A change of a function in a part of the fleet."""

    part: FleetPart
    series: CountSeries
    """Of the part."""
    change: SeriesChange


def scanned_parts(series: CountSeries, criteria: WatchCriteria) -> tuple[list[ScannedPart], int]:
    """Return which functions are looked at in which parts, and how many series of them are left out.

    Looked at are functions that are found if they double for a day in a part, were machines and days alike, and that
    have at most nine tenths of their samples there, in parts that have `LEAST_IN_PART` machines. Of too many the
    largest are. All this depends on a function's samples over all time alone, given which a window's are binomial, so
    it chooses no chance changes.

    Parameters
    ----------
    series : of functions
    criteria : when a change is worth an alarm
    """
    parts = [part for part in series.parts_of if part.side_by_side >= LEAST_IN_PART]
    if not parts or not len(series.functions):
        return [], 0
    strata, sizes = series.strata_of(), series.sizes
    bound = threshold(HALVES * len(parts) * len(sizes), windows_of(series), criteria.false_alarms)
    days = max(series.clock.bins / series.clock.day, 2.0)
    inside = np.array([strata @ _of(series, part) for part in parts], dtype=np.float64)
    daily = inside / days
    root = exemplary_root(np.full(1, DOUBLED), daily, np.maximum(inside - daily, 1e-9), np.ones(1))
    able: Bools = (root > bound) & (inside <= _MOST_OF_WHOLE * sizes)
    largest = np.argsort(-np.where(able, inside, 0.0), axis=None, kind="stable")[:MOST_SERIES]
    chosen = np.zeros(able.size, dtype=np.bool_)
    chosen[largest] = True
    looked_at = able & chosen.reshape(able.shape)
    scanned = [ScannedPart(part, np.flatnonzero(own)) for part, own in zip(parts, looked_at, strict=True) if own.any()]
    return scanned, int(able.sum() - looked_at.sum())


def _of(series: CountSeries, part: FleetPart) -> Floats:
    return np.asarray(series.strata[part.dimension].to_numpy(object) == part.value, dtype=np.float64)


def scanned_series(scanned: Sequence[ScannedPart]) -> int:
    """Return over how many series half of the chance of a false alarm is bounded, as if over all of it."""
    return HALVES * sum(len(part.functions) for part in scanned)


def bound_of(series: CountSeries, criteria: WatchCriteria, scanned: Sequence[ScannedPart]) -> float:
    """Return the bound of the roots of changes in parts."""
    return threshold(scanned_series(scanned), windows_of(series), criteria.false_alarms)


def changes_in_parts(
    series: CountSeries,
    criteria: WatchCriteria,
    scanned: Sequence[ScannedPart],
    known: Sequence[SeriesChange],
    tests: int | None = None,
) -> Iterator[tuple[FleetPart, CountSeries, list[SeriesChange]]]:
    """Yield parts of the fleet in which functions changed, their series, and the changes.

    Parameters
    ----------
    series : of functions in the whole fleet, with their drift
    criteria : when a change is worth an alarm
    scanned : of `scanned_parts`
    known : changes in the whole fleet, which are taken out of what others are compared with
    tests : as `scanned_series` returns them; none: those of what is scanned
    """
    tests = tests or scanned_series(scanned)
    bound = threshold(tests, windows_of(series), criteria.false_alarms)
    others = series.without([change.series for change in known]) if known else series
    for own in scanned:
        some = others.only(own.part)
        if _promising(some, own.functions, bound):
            some = _measured(some, own.part)
            yield own.part, some, shifts(some, changes(some, criteria, tests, among=own.functions))


def _promising(series: CountSeries, functions: Ints, bound: float) -> bool:
    """Return whether any function of a part stands out where days drift as in the fleet and machines come and go so.

    It saves the geometry and the drift of parts in which nothing happened. Machines' own differences count half, since
    a part's machines may stay longer than the fleet's.
    """
    noise = replace(series.noise, excess=0.5 * series.noise.excess)
    return bool(clearest(replace(series, noise=noise, weekly=None), bound, functions).changed.any())


def _measured(series: CountSeries, part: FleetPart) -> CountSeries:
    """Return a part's series with the geometry of its machines, and with its drift where that is more than the fleet's.

    Days that differ in the fleet differ in a part of it as well, whether its fewer samples tell it or not.
    """
    noise = series.noise
    still = replace(noise, drift=np.zeros(1), walk=np.zeros(1))
    geometry, weekly = part.geometry_of(0), part.weekly_of()
    series = replace(series, geometry=geometry, weekly=weekly, geometry_of=part.geometry_of, noise=still)
    drift, walk, _ = drift_of(series)
    return replace(series, noise=_more(noise, drift, walk))


def _more(noise: Noise, drift: Floats, walk: Floats) -> Noise:
    return replace(noise, drift=np.maximum(noise.drift, drift), walk=np.maximum(noise.walk, walk))


def clearest_of_both(whole: Sequence[SeriesChange], parts: Sequence[PartChange]) -> list[SeriesChange | PartChange]:
    """Return each function's change once: that of the whole fleet, or that of a part if it is clearer.

    Cost that moved in the whole fleet did not grow in a part of it.

    Parameters
    ----------
    whole : changes in the whole fleet
    parts : changes in parts of it
    """
    known: dict[int, SeriesChange | PartChange] = {change.series: change for change in whole}
    roots = {change.series: np.inf if change.kind == "shift" else abs(change.root) for change in whole}
    for own in parts:
        if abs(own.change.root) > roots.get(own.change.series, 0.0):
            known[own.change.series], roots[own.change.series] = own, abs(own.change.root)
    return list(known.values())
