"""Which platform to buy: response-time-bounded throughput per watt, ranks, what a wrong choice costs, how sure it is.

The criterion and its measures are those of Stewart et al. (2008), section 5.1.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.crossplatform.evidence import NORMAL_90, Predictor
from analysis.crossplatform.throughput import Bounded, bounded_throughput
from models.arrays import Floats, Ints
from models.errors import InputError
from models.platforms import Platform


def rated_power_w(platform: Platform) -> float:
    """Return the processors' power as the spec sheet prints it, all sockets together: the paper's choice, watts.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> rated_power_w(PLATFORMS["haswell_2698v3"])
    270.0
    """
    return platform.tdp_w


def ranks(worth: ArrayLike) -> Ints:
    """Return the rank of each platform, 1 for the most worth; of equals the first named comes first, NaN comes last.

    Examples
    --------
    >>> ranks([0.2, 0.5, np.nan, 0.3])
    array([3, 1, 4, 2])
    """
    worth = np.asarray(worth, dtype=np.float64)
    order = np.argsort(np.where(np.isnan(worth), np.inf, -worth), kind="stable")
    positions = np.empty(len(worth), dtype=np.int64)
    positions[order] = np.arange(1, len(worth) + 1)
    return positions


def losses(actual: ArrayLike, predicted: ArrayLike) -> Floats:
    """Return, rank by rank, what is lost by the platform predicted there against the one that belongs there.

    One less the actual worth of the platform of predicted rank k over that of actual rank k (section 5.1); below 0
    where a better one was put there, NaN where both are worth nothing.

    Parameters
    ----------
    actual, predicted : (n,) throughput per watt of the same platforms

    Returns
    -------
    (n,) array
        Ranks 1, 2, …, n.

    Raises
    ------
    ValueError
        If the lengths differ or an actual worth is negative or NaN.

    Examples
    --------
    >>> losses([4.0, 5.0, 1.0], [4.0, 3.0, 1.0])
    array([ 0.2 , -0.25,  0.  ])
    """
    actual, predicted = _paired(actual, predicted)
    if not (actual >= 0).all():
        raise InputError(f"actual throughput per watt must not be negative, got {actual.min():g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 - actual[np.argsort(ranks(predicted))] / actual[np.argsort(ranks(actual))])


def wrong_choices(actual: ArrayLike, predicted: ArrayLike, size: int = 5, top: Sequence[int] = (1, 2, 3)) -> Floats:
    """Return the share of subsets of the platforms in which the best, the best two, … are not the predicted ones.

    Every subset of that size counts once; the best k are compared as sets, whatever their order (Fig. 7, whose own
    definition of the top two and three the paper does not give).

    Parameters
    ----------
    actual, predicted : (n,) throughput per watt of the same platforms
    size : platforms in a subset, 1 to n
    top : numbers k of best platforms to name, 1 to size each

    Returns
    -------
    (len(top),) array of shares

    Raises
    ------
    ValueError
        If the lengths differ or a number is out of its bounds.

    Examples
    --------
    >>> wrong_choices([3.0, 2.0, 1.0], [2.0, 3.0, 1.0], size=2, top=(1, 2)).round(3)
    array([0.333, 0.   ])
    """
    actual, predicted = _paired(actual, predicted)
    _within("size", size, len(actual))
    for k in top:
        _within("top", k, size)
    subsets = np.array(list(combinations(range(len(actual)), size)))
    place = [np.argsort(np.argsort(ranks(worth)[subsets])) for worth in (actual, predicted)]
    return np.array([((place[0] < k) != (place[1] < k)).any(axis=1).mean() for k in top])


def loss_of_best(actual: ArrayLike, predicted: ArrayLike, size: int = 5) -> float:
    """Return the mean loss over all subsets when the best platform is chosen as predicted, a share of the best's worth.

    Parameters
    ----------
    actual, predicted : (n,) throughput per watt of the same platforms, actual ones positive for one at least
    size : platforms in a subset, 1 to n

    Raises
    ------
    ValueError
        If the lengths differ, or size is out of its bounds.

    Examples
    --------
    >>> round(loss_of_best([4.0, 5.0, 1.0], [4.0, 3.0, 1.0], size=2), 3)
    0.067
    """
    actual, predicted = _paired(actual, predicted)
    _within("size", size, len(actual))
    subsets = np.array(list(combinations(range(len(actual)), size)))
    best = actual[subsets].max(axis=1)
    chosen = actual[subsets[np.arange(len(subsets)), ranks(predicted)[subsets].argmin(axis=1)]]
    return float(np.mean(1.0 - np.divide(chosen, best, out=np.ones_like(best), where=best > 0)))


def _paired(actual: ArrayLike, predicted: ArrayLike) -> tuple[Floats, Floats]:
    both = np.asarray(actual, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise InputError(f"actual and predicted must be of the same platforms, got {both[0].shape} and {both[1].shape}")
    return both


def _within(name: str, value: int, greatest: int) -> None:
    if not 1 <= value <= greatest:
        raise InputError(f"{name} must be 1 to {greatest}, got {value}")


def interval_draws(rng: np.random.Generator, values: Sequence[Bounded], draws: int = 4000) -> Floats:
    """Return draws of throughputs that have these medians and 90% intervals: log-normal, independent of each other.

    Either side of the median has its own spread. A side that ends at 0, or begins there, is normal instead, cut off at
    0: where the low end is 0, one draw in 20 is, and where the median is, half of them are. A side without an end has
    the spread of the other. Errors that platforms share are drawn as if they were not, so how sure a choice is comes
    out too low rather than too high.

    Parameters
    ----------
    rng : generator
    values : throughputs with intervals; one without an interval (NaN), or of infinity, is drawn as it is
    draws : how many

    Returns
    -------
    (draws, n) array, requests per second
    """
    normal = rng.standard_normal((draws, len(values))) / NORMAL_90
    return np.stack([_drawn(value, of) for value, of in zip(values, normal.T, strict=True)], axis=1)


def _drawn(value: Bounded, normal: Floats) -> Floats:
    """Return draws of one throughput from those of a normal variable whose 90% interval is -1 to 1."""
    middle, low, high = value.throughput_per_s, value.low, value.high
    if not np.isfinite(middle) or np.isnan(low + high):
        return np.full(len(normal), middle)
    if middle == 0:
        return np.maximum(normal, 0.0) * (high if np.isfinite(high) else 0.0)
    above = high / middle if np.isfinite(high) else middle / low if low else 1.0
    below = np.exp(normal * np.log(middle / low)) if low else np.maximum(1.0 + normal, 0.0)
    return np.asarray(middle * np.where(normal < 0, below, np.exp(normal * np.log(above))))


def probability_best(worth: ArrayLike) -> Floats:
    """Return how often each platform is the best of all in draws of what they are worth.

    Parameters
    ----------
    worth : (d, n) draws of throughput per watt; NaN is never the best, equals share the win

    Returns
    -------
    (n,) array of shares; their sum is 1, or less where a draw has no number at all
    """
    worth = np.asarray(worth, dtype=np.float64)
    if worth.ndim != 2 or not worth.size:
        raise InputError(f"draws must be a table of draws by platforms, got shape {worth.shape}")
    best = np.where(np.isnan(worth), -np.inf, worth).max(axis=1, keepdims=True)
    wins = worth == best
    return np.asarray((wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)).mean(axis=0))


def compare(
    predictor: Predictor,
    platforms: Mapping[str, Platform],
    mix: ArrayLike,
    bound_s: float,
    power_w: Callable[[Platform], float] = rated_power_w,
) -> pd.DataFrame:
    """Return the platforms from the most throughput per watt to the least, at a mix and a bound on mean response.

    Parameters
    ----------
    predictor : from platform, counts and interval to a prediction
    platforms : candidates by name
    mix : (J,) shares or counts of the request types
    bound_s : on mean response time, seconds
    power_w : watts of a platform; the paper takes the processors' from the spec sheet, `Platform.peak_power_w` is
        another choice

    Returns
    -------
    DataFrame
        rank, platform, throughput_per_s, low, high (90% interval), watts, throughput_per_watt, probability_best (NaN
        where the method gives no intervals).

    Raises
    ------
    ValueError
        If there is no platform, or as `bounded_throughput`.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> from analysis.crossplatform.evidence import Prediction
    >>> def clocks(platform, counts, interval_s):
    ...     used = 1e10 / platform.vcpus / platform.base_frequency_hz * counts.sum(axis=1) / interval_s
    ...     return Prediction(*[np.full(len(counts), np.nan)] * 3, *[np.where(used < 0.5, 0.1, 1.0)] * 3)
    >>> candidates = {name: PLATFORMS[name] for name in ("haswell_2698v3", "rome_7742")}
    >>> compare(clocks, candidates, [1.0], bound_s=0.2)[["rank", "platform"]].values.tolist()
    [[1, 'rome_7742'], [2, 'haswell_2698v3']]
    """
    if not platforms:
        raise InputError("platforms to choose from are none, must be at least one")
    bounded = [bounded_throughput(predictor, platform, mix, bound_s) for platform in platforms.values()]
    watts = np.array([power_w(platform) for platform in platforms.values()])
    table = pd.DataFrame(
        {
            "platform": list(platforms),
            "throughput_per_s": [bound.throughput_per_s for bound in bounded],
            "low": [bound.low for bound in bounded],
            "high": [bound.high for bound in bounded],
            "watts": watts,
        }
    )
    table["throughput_per_watt"] = table["throughput_per_s"] / watts
    # The seed is fixed so that the same log gives the same answer.
    drawn = interval_draws(np.random.default_rng(0), bounded) / watts
    # What serves nothing is never the best, even where nothing else serves more.
    sure = probability_best(np.where(drawn > 0, drawn, np.nan))
    table["probability_best"] = np.where(table["low"].isna().all(), np.nan, sure)
    table.insert(0, "rank", ranks(table["throughput_per_watt"]))
    return table.sort_values("rank", ignore_index=True)
