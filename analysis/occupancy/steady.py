"""Means of a simulation in steady state: its warm-up dropped, an interval from batch means, a stop at a precision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.statistics import NotEnoughDataError, normal_quantile, student_quantile
from models.arrays import Floats
from models.errors import InputError, WscError

BATCH = 5
"""Observations averaged before the warm-up is looked for: MSER-5."""
BATCHES = 20
"""Batches of an interval; more would hardly narrow it, but be more alike (Schmeiser 1982, Operations Research 30)."""
WARM_UP = 0.1
"""Share of a series that is dropped as its warm-up. A search for the best place, as by MSER, finds quiet stretches: the
means of what it leaves are too low (by 3% where a queue's run is 150 times its memory), and their intervals miss."""
STANDS_OUT = 6.0
"""Standard deviations of later batches from which on the first one still belongs to the warm-up."""
INDEPENDENCE_LEVEL = 0.95
"""Batches whose correlation would be rarer than this among independent ones are not taken for independent."""
LEAST = 2 * BATCHES
"""Observations that a mean in steady state needs at least."""
GROWTHS = 3
"""Doublings in a row with half as much mean again, after which no steady state is hoped for: from an empty queue at
its very limit the mean grows by the root of 2."""


class UnsteadyError(WscError):
    """A mean keeps growing with the series, as without a steady state: `mean` after `have` observations."""

    def __init__(self, have: int, mean: float) -> None:
        super().__init__(f"the mean keeps growing, to {mean:.6g} with {have} observations: no steady state is in sight")
        self.have, self.mean = have, mean


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How many observations come before the steady state, and whether the series shows that it was reached."""

    dropped: int
    settled: bool
    """Whether the best truncation is not at the bound, half of the series."""


@dataclass(frozen=True, slots=True)
class Steady:
    """A mean in steady state with a confidence interval; units of the observations."""

    mean: float
    half_width: float
    level: float
    observations: int
    """All of them, the warm-up included."""
    dropped: int
    """Observations of the warm-up, and up to a batch less one that filled no batch."""
    settled: bool
    """Whether the warm-up ended in the first half."""
    correlation: float
    """Between neighbouring batch means, von Neumann's estimate; NaN where they are all equal."""
    independent: bool
    """Whether that correlation is small enough for independent batches; if not, the interval is too narrow."""

    @property
    def low(self) -> float:
        """Return the lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Return the upper end of the interval."""
        return self.mean + self.half_width


def warm_up(series: Floats, batch: int = BATCH) -> WarmUp:
    """Return where the steady state begins, by MSER.

    Of all truncations by whole batches, at most half of them, the one with the least ``Σ (Z_j − mean)² / (n − d)²``
    over the n − d batch means Z_j that are left: it makes the interval of their mean the narrowest, had they been
    independent (White 1997, Simulation 69; with batches of 5: White, Cobb and Spratt 2000, Winter Simulation
    Conference; the bound at half: Franklin and White 2008, Winter Simulation Conference).

    Parameters
    ----------
    series : (n,) array in order of time
    batch : observations averaged to one; 5 is MSER-5
    """
    values = _batch_means(_finite(series), _at_least_one("batch", batch))
    n = len(values)
    if n < 4:
        raise NotEnoughDataError(4 * batch, len(series), "observations")
    from_end = values[::-1] - values[n // 2 :].mean()  # near 0, so that the difference of squares keeps its digits
    count = np.arange(1, n + 1)
    squares = np.maximum(np.cumsum(from_end**2) - np.cumsum(from_end) ** 2 / count, 0.0)
    score = (squares / count**2)[::-1][: n // 2 + 1]
    best = int(np.argmin(score))
    return WarmUp(best * batch, best < n // 2)


def batch_means(series: Floats, level: float = 0.95, batches: int = BATCHES) -> Steady:
    """Return the mean of a series that is in steady state, with an interval from the means of consecutive batches.

    The means of long batches are nearly normal and independent, so their mean over its standard error is nearly
    Student's t with one degree less than there are batches (Law and Carson 1979, Operations Research 27). Their
    independence is tested by von Neumann's ratio (1941; Fishman and Yarberry 1997, INFORMS Journal on Computing 9).

    Parameters
    ----------
    series : (n,) array in order of time; what fills no batch is dropped at the front
    level : confidence, in 0..1
    batches : b >= 3
    """
    _check(level, batches)
    values = _finite(series)
    if len(values) < batches:
        raise NotEnoughDataError(batches, len(values), "observations")
    size, rest = divmod(len(values), batches)
    means = _batch_means(values[rest:], size)
    error = means.std(ddof=1) / np.sqrt(batches)
    correlation = _von_neumann(means)
    bound = normal_quantile(INDEPENDENCE_LEVEL) * np.sqrt((batches - 2) / (batches**2 - 1))
    return Steady(
        mean=float(means.mean()),
        half_width=float(student_quantile((1 + level) / 2, batches - 1) * error),
        level=level,
        observations=len(values),
        dropped=rest,
        settled=True,
        correlation=correlation,
        independent=not correlation > bound,
    )


def steady(series: Floats, level: float = 0.95, batches: int = BATCHES) -> Steady:
    """Return the mean of a series in steady state: its first tenth dropped, then an interval from batch means.

    Where the first batch after it still stands out, the warm-up lasts longer, and as much is dropped as MSER-5 says.

    Parameters
    ----------
    series : (n,) array in order of time, from a start that need not be typical
    level : confidence, in 0..1
    batches : b >= 3

    Raises
    ------
    NotEnoughDataError
        If there are fewer than 20 observations, or fewer than batches after the warm-up.
    ValueError
        If a value is not finite, `level` is not between 0 and 1, or there are fewer than 3 batches.

    Examples
    --------
    >>> started_high = np.concatenate((np.full(100, 30.0), np.random.default_rng(1).normal(10.0, 1.0, 2000)))
    >>> result = steady(started_high)
    >>> round(result.mean, 1), result.dropped, result.settled
    (10.0, 220, True)
    """
    _check(level, batches)
    start, tenth = warm_up(series), int(WARM_UP * len(series))
    dropped = start.dropped if _stands_out(series[tenth:], batches) else tenth
    if len(series) - dropped < batches:
        raise NotEnoughDataError(2 * batches, len(series), "observations")
    after = batch_means(series[dropped:], level, batches)
    return replace(after, observations=len(series), dropped=dropped + after.dropped, settled=start.settled)


def _check(level: float, batches: int) -> None:
    if not 0 < level < 1:
        raise InputError(f"level: {level} is not between 0 and 1")
    if batches < 3:
        raise InputError(f"batches: {batches} is below 3")


def _stands_out(series: Floats, batches: int) -> bool:
    """Return whether the first batch is far from those of the second half, as by chance in one of three thousand."""
    size = len(series) // batches
    if size == 0:
        return False
    means = _batch_means(series[len(series) % batches :], size)
    late = means[batches // 2 :]
    return bool(abs(means[0] - late.mean()) > STANDS_OUT * late.std(ddof=1))


def until(longer: Iterable[Floats], half_width_share: float, *, level: float = 0.95, stable: bool = False) -> Steady:
    """Return the mean once its interval is narrow enough, from series of which each is about twice as long.

    It stops when the half-width is at most so large a share of the mean, the warm-up is over in the first half, and
    the batches look independent (relative precision: Law and Kelton 1982, Management Science 28). Stopping at a
    width that is itself random covers the truth less often than `level`, most of all where precision is low and
    correlation strong; the shortfall vanishes as the precision grows (Glynn and Whitt 1992, Annals of Applied
    Probability 2). A queue that is fed more than it can serve has a mean that doubles each time.

    Parameters
    ----------
    longer : (n,) arrays in order of time; the next is asked for only if the last one does not do
    half_width_share : half-width over mean that is wanted, above 0
    level : confidence, in 0..1
    stable : whether there is known to be a steady state, so that growth is no sign against it

    Raises
    ------
    NotEnoughDataError
        If the longest series does not do; `needed` estimates how much would.
    UnsteadyError
        If the mean grows with the length, as it does without a steady state; near the limit it may only seem so.
    ValueError
        If a value is not finite, or an argument is out of its bounds.

    Examples
    --------
    >>> series = np.random.default_rng(1).exponential(2.0, 100_000)
    >>> result = until((series[: 1000 * 2**i] for i in range(7)), 0.02)
    >>> result.observations, bool(result.half_width <= 0.02 * result.mean)
    (16000, True)
    """
    if not half_width_share > 0:
        raise InputError(f"half_width_share: {half_width_share} is not above 0")
    needed, have, means = LEAST, 0, list[float]()
    for series in longer:
        have = len(series)
        if have < LEAST:
            continue
        result = steady(series, level)
        wide = result.half_width / (half_width_share * abs(result.mean)) if result.mean else np.inf
        if wide <= 1 and result.settled and result.independent:
            return result
        needed = _needed(have, wide)
        means.append(result.mean)
        if not stable and _grows(means[-GROWTHS - 1 :]):
            raise UnsteadyError(have, means[-1])
    raise NotEnoughDataError(needed, have, "observations")


def _grows(means: Sequence[float]) -> bool:
    """Return whether all of these means were at least half as much again as the one before, and there are enough."""
    return len(means) > GROWTHS and all(2 * later > 3 * mean for mean, later in pairwise(means))


def _needed(have: int, wide: float) -> int:
    """Return about how many observations would do: the width falls with the root of their number."""
    return int(have * max(2.0, wide**2)) if np.isfinite(wide) else 2 * have


def _von_neumann(values: Floats) -> float:
    """Return the correlation of neighbours, corrected for the ends; near 0 for independent values."""
    deviations = float(np.sum((values - values.mean()) ** 2))
    return 1 - float(np.sum(np.diff(values) ** 2)) / (2 * deviations) if deviations else np.nan


def _batch_means(values: Floats, size: int) -> Floats:
    """Return the means of consecutive batches; what fills no batch is left out at the end."""
    whole = len(values) // size
    means: Floats = values[: whole * size].reshape(whole, size).mean(axis=1)
    return means


def _finite(series: Floats) -> Floats:
    values: Floats = np.asarray(series, np.float64)
    if values.ndim != 1:
        raise InputError(f"series: {values.ndim} dimensions, must have 1")
    if (wrong := np.flatnonzero(~np.isfinite(values))).size:
        raise InputError(f"series: value {wrong[0]} is {values[wrong[0]]}")
    return values


def _at_least_one(name: str, number: int) -> int:
    if number < 1:
        raise InputError(f"{name}: {number} is below 1")
    return number
