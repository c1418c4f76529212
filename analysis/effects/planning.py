"""How many machines an experiment needs: every design is tried again and again, at one size after another."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from analysis.effects.rehearsals import Rehearsal
from analysis.effects.study import Answers
from models.arrays import Bools, Floats
from models.errors import InputError

_CLOSE = 1.08
"""Sizes of a bracket that are no further apart are near enough to interpolate."""
_TURNS = 8
_START = 64
_SLACK = 0.02
"""Coverage may fall so far below what is claimed, beside what chance explains, until a design is distrusted."""

Tell = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an experiment is to see, how surely, and how carefully that is worked out."""

    detect: float = 0.01
    """Relative change of the fleet."""
    power: float = 0.95
    """Share of experiments that are to exclude no change, if that is the change."""
    confidence: float = 0.95
    draws: int = 500
    """Experiments rehearsed for each size."""
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("detect", "power", "confidence"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must be between 0 and 1, got {getattr(self, name):g}")
        if self.draws < 20:
            raise InputError(f"draws must be at least 20, got {self.draws}")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What experiments of one size will say."""

    machines: int
    margin: float
    """Mean half-width of the interval, relative."""
    power: float
    power_error: float
    """Monte-Carlo standard error; of courses that differ, at least what they differ by."""
    coverage: float
    coverage_error: float
    smallest: float
    """Smallest relative change that is seen with the power asked for."""

    def times(self, unit: float) -> "Forecast":
        """Return it with changes in another unit."""
        return replace(self, margin=unit * self.margin, smallest=unit * self.smallest)


class DesignPlan(NamedTuple):
    """The smallest size of a design that does what is asked, or the largest if none does."""

    rehearsal: Rehearsal
    forecast: Forecast
    enough: bool
    """Whether it has the power asked for."""
    trusted: bool
    """Whether its intervals hold the truth about as often as they claim."""
    tried: tuple[Forecast, ...] = ()
    """Every size that was rehearsed, the smallest first."""

    def times(self, unit: float) -> "DesignPlan":
        """Return it with changes in another unit."""
        return self._replace(forecast=self.forecast.times(unit), tried=tuple(sized.times(unit) for sized in self.tried))

    @property
    def machine_hours(self) -> float:
        """Machines times hours of the study."""
        return self.forecast.machines * self.rehearsal.hours


def forecast(rehearsal: Rehearsal, machines: int, wanted: Wanted) -> Forecast:
    """Return what experiments on so many machines will say, from draws of machines on all courses.

    The machines of a draw come first in the same random order whatever the size (common random numbers), where the
    design draws them at random.

    Parameters
    ----------
    rehearsal : a design with its potential outcomes
    machines : treated
    wanted : what is to be seen
    """
    parts = []
    draws = -(-wanted.draws // len(rehearsal.courses))
    for place, course in enumerate(rehearsal.courses):
        rng = np.random.default_rng((wanted.seed, place))
        method, treated = course.arrange(machines, draws, rng)
        parts.append(_judged(method.many(course.cells, treated), course.truth, rehearsal.scale, wanted))
    needed, covered = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
    margins = np.concatenate([part[2] for part in parts])
    detected = needed < wanted.detect
    return Forecast(
        machines=machines,
        margin=float(np.nanmean(margins)) if np.isfinite(margins).any() else math.inf,
        power=float(detected.mean()),
        power_error=_error(detected),
        coverage=float(covered.mean()),
        coverage_error=_error(covered),
        smallest=float(np.quantile(needed, wanted.power, method="higher")),
    )


def fewest(rehearsal: Rehearsal, wanted: Wanted) -> DesignPlan:
    """Return the smallest size of a design that has the power asked for, found on the logarithm of the size.

    The change that a size just sees falls about as the root of the size, so a few sizes bracket the answer; between
    them it is interpolated, log on log.

    Parameters
    ----------
    rehearsal : a design with its potential outcomes
    wanted : what is to be seen
    """
    forecasts = dict[int, Forecast]()

    def at(size: float) -> Forecast:
        machines = int(min(max(round(size), rehearsal.least), rehearsal.most))
        if machines not in forecasts:
            forecasts[machines] = forecast(rehearsal, machines, wanted)
        return forecasts[machines]

    low, high, size = rehearsal.least, rehearsal.most + 1, float(_START)
    for _ in range(_TURNS):
        sized = at(size)
        if sized.smallest > wanted.detect:
            low = max(low, sized.machines)
        else:
            high = min(high, sized.machines)
        if high <= low or low >= rehearsal.most or high <= max(low + 1, _CLOSE * low):
            break
        guess = sized.machines * min((sized.smallest / wanted.detect) ** 2, 16.0)
        inside = low < round(guess) < high
        size = guess if inside else rehearsal.most if high > rehearsal.most else math.sqrt(low * high)
    if high > rehearsal.most:
        return _planned(rehearsal, at(rehearsal.most), wanted, forecasts)
    sized = at(high if high <= low else _between(at(low), at(high), wanted.detect))
    while sized.smallest > wanted.detect and sized.machines < high:
        sized = at(min(high, math.ceil(sized.machines * 1.01)))
    return _planned(rehearsal, sized, wanted, forecasts)


def ranked(plans: Sequence[DesignPlan]) -> list[DesignPlan]:
    """Return designs that can be trusted and see the change first, the fewest machine-hours first."""
    return sorted(plans, key=lambda plan: (not plan.trusted, not plan.enough, plan.machine_hours))


def _planned(rehearsal: Rehearsal, sized: Forecast, wanted: Wanted, forecasts: dict[int, Forecast]) -> DesignPlan:
    fair = wanted.confidence - _SLACK - 2 * math.sqrt(wanted.confidence * (1 - wanted.confidence) / wanted.draws)
    tried = tuple(forecasts[machines] for machines in sorted(forecasts))
    return DesignPlan(rehearsal, sized, sized.smallest <= wanted.detect, sized.coverage >= fair, tried)


def _judged(answers: Answers, truth: float, scale: float, wanted: Wanted) -> tuple[Floats, Bools, Floats]:
    """Return the change that each draw needs to be seen, whether it holds the truth, and its margin."""
    margin = scale * answers.margin(wanted.confidence)
    off = scale * (answers.change - truth)
    known = np.isfinite(margin) & np.isfinite(off)
    needed: Floats = np.where(known, margin - off, np.inf)
    covered: Bools = known & (np.abs(off) <= margin)
    return needed, covered, np.where(known, margin, np.nan)


def _between(low: Forecast, high: Forecast, detect: float) -> int:
    """Return the size at which a change is just seen, between two sizes, log on log."""
    if low.machines >= high.machines or not low.smallest > high.smallest or not math.isfinite(low.smallest):
        return high.machines
    share = math.log(low.smallest / detect) / math.log(low.smallest / high.smallest)
    logs = (1 - share) * math.log(low.machines) + share * math.log(high.machines)
    return min(max(math.ceil(math.exp(logs)), low.machines), high.machines)


def _error(hits: Bools) -> float:
    """Return the standard error of the mean of hits by course, (C, R)."""
    mean = float(hits.mean())
    plain = math.sqrt(mean * (1 - mean) / hits.size)
    courses = len(hits)
    apart = float(np.std(hits.mean(axis=1), ddof=1)) / math.sqrt(courses) if courses > 1 else 0.0
    return max(plain, apart)
