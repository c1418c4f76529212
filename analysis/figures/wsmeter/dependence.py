"""WSMeter, Figures 8 and 9: whether jobs that share machines or racks move together."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.distance import distance_correlation
from analysis.figures import style
from analysis.figures.criteria import curve, number, numbers, rows
from analysis.figures.wsmeter.changes import NORMAL_95, share_interval
from analysis.figures.wsmeter.motivation import histograms
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.dependence import colocated_values, rack_dependence
from analysis.wsmeter.selection import top_jobs
from models.arrays import Floats

LEAST_RACKS = 10
"""Racks that two jobs must share for a coefficient to be worth anything."""
SMALL = 0.3
"""Cohen's (1988) medium correlation: what is below it counts as small."""


def measure_fig8(
    current: pd.DataFrame, jobs: pd.DataFrame, *, top: int = 3, most: int = 4000, resamples: int = 100, seed: int = 1
) -> pd.DataFrame:
    """Return the heaviest jobs' instance performance beside that of their co-runners, and how they depend.

    Parameters
    ----------
    current : measurement table (job, machine, weight, value, exposure)
    jobs : columns job, quota
    top : heaviest jobs
    most : instances of a job looked at, chosen at random
    resamples : of the instances, for the standard error of the distance correlation (bootstrap)
    seed : of choice and resamples

    Returns
    -------
    DataFrame
        series, x, value: `colocated_1` and so on, co-runners' over the instance's performance; the distance
        correlations (Székely et al. 2007), and the largest with the upper end of its 95% interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"job": [1, 2] * 300, "machine": np.repeat(range(300), 2), "weight": 1.0})
    >>> table = table.assign(value=rng.normal(1.0, 0.1, 600))
    >>> measured = measure_fig8(table, pd.DataFrame({"job": [1, 2], "quota": [9.0, 1.0]}), top=1)
    >>> number(measured, "distance_correlation_1") < 0.2
    True
    """
    heaviest = top_jobs(jobs[jobs["job"].isin(current["job"])], top)["job"].tolist()
    rng = np.random.default_rng(seed)
    parts, highs = [numbers(jobs=len(heaviest))], []
    for rank, job in enumerate(heaviest, start=1):
        pairs = colocated_values(current, job)
        pairs = pairs.sample(min(most, len(pairs)), random_state=rng)
        own, others = pairs["value"].to_numpy(), pairs["others"].to_numpy()
        value, high = _with_upper_end(own, others, resamples, rng)
        highs.append(high)
        singles = {f"distance_correlation_{rank}": value, f"distance_correlation_{rank}_high": high}
        parts += [numbers(**singles), rows(f"colocated_{rank}", own, others)]
    parts.append(numbers(distance_correlation_high_max=max(highs, default=np.nan)))
    return pd.concat(parts, ignore_index=True)


def _with_upper_end(own: Floats, others: Floats, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the distance correlation and the upper end of its 95% interval (bootstrap standard error)."""
    picks = rng.integers(len(own), size=(resamples, len(own)))
    error = np.std([distance_correlation(own[pick], others[pick]) for pick in picks])
    value = distance_correlation(own, others)
    return (value, float(value + NORMAL_95 * error))


def fig8(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw heat maps of co-runners' performance over the instance's, one for each heavyweight."""
    count = max(1, int(number(measured, "jobs")))
    figure, axes = style.panels(columns=count, share_y=True)
    for rank, panel in enumerate(axes, start=1):
        own, others = curve(measured, f"colocated_{rank}")
        panel.grid(visible=False)
        panel.hexbin(own, others, gridsize=28, cmap="viridis", mincnt=1, linewidths=0.1)
        value = number(measured, f"distance_correlation_{rank}")
        style.label(panel, "IPC of the instance", "", f"job {rank}: distance correlation {value:.3f}")
    axes[0].set_ylabel("IPC of its co-runners")
    return figure


def measure_fig9(
    current: pd.DataFrame, jobs: pd.DataFrame, *, top: int = 100, resamples: int = 200, seed: int = 1
) -> pd.DataFrame:
    """Return how the heaviest jobs' mean performance in the same racks correlates, pair by pair.

    Parameters
    ----------
    current : measurement table (job, rack, value)
    jobs : columns job, quota
    top : heaviest jobs, all pairs of which are looked at
    resamples : of the racks, for the 95% percentile bootstrap interval of the median Pearson coefficient
    seed : of the resamples

    Returns
    -------
    DataFrame
        series, x, value: histograms `pearson` and `distance` over the coefficient as shares of pairs; the median
        Pearson coefficient and the shares of small coefficients with 95% intervals. Pairs share jobs, so those of
        the shares count as many observations as there are jobs.

    Raises
    ------
    NotEnoughDataError
        If no pair of jobs meets in enough racks.

    Examples
    --------
    >>> table = pd.DataFrame({"job": [1, 2] * 40, "rack": np.repeat(range(40), 2), "weight": 1.0})
    >>> table = table.assign(value=np.random.default_rng(0).normal(1.0, 0.1, 80))
    >>> measured = measure_fig9(table, pd.DataFrame({"job": [1, 2], "quota": [9.0, 1.0]}))
    >>> abs(number(measured, "median_pearson")) < 0.3
    True
    """
    heaviest = top_jobs(jobs[jobs["job"].isin(current["job"])], top)
    pairs = rack_dependence(current, heaviest)
    pairs = pairs[(pairs["racks"] >= LEAST_RACKS) & pairs["pearson"].notna()]
    if pairs.empty:
        raise NotEnoughDataError(2, 0, "jobs that vary together over the same racks")
    pearson, distance = pairs["pearson"].to_numpy(), pairs["distance_correlation"].to_numpy()
    low, high = _median_interval(current[current["job"].isin(heaviest["job"])], resamples, seed)
    small = [float(np.mean(np.abs(values) <= SMALL)) for values in (pearson, distance)]
    ends = [share_interval(share * len(heaviest), len(heaviest)) for share in small]
    singles = numbers(
        jobs=len(heaviest),
        pairs=len(pairs),
        median_pearson=float(np.median(pearson)),
        median_pearson_low=low,
        median_pearson_high=high,
        median_distance=float(np.median(distance)),
        share_small_pearson=small[0],
        share_small_pearson_low=ends[0][1],
        share_small_distance=small[1],
        share_small_distance_low=ends[1][1],
    )
    return pd.concat([singles, *histograms({"pearson": pearson}), *histograms({"distance": distance})])


def _median_interval(measured: pd.DataFrame, resamples: int, seed: int) -> tuple[float, float]:
    """Return the ends of the 95% interval of the median Pearson coefficient, racks resampled."""
    by_rack = measured.pivot_table(index="rack", columns="job", values="value", aggfunc="mean")
    rng, (racks, jobs) = np.random.default_rng(seed), by_rack.shape
    upper = np.triu_indices(jobs, 1)
    medians = []
    for pick in rng.integers(racks, size=(resamples, racks)):
        matrix = by_rack.iloc[pick].corr(min_periods=LEAST_RACKS).to_numpy()
        known = matrix[upper][np.isfinite(matrix[upper])]
        medians.append(np.median(known) if len(known) else np.nan)
    low, high = np.nanquantile(medians, [0.025, 0.975])
    return (float(low), float(high))


def fig9(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw the histograms of distance and Pearson correlation over the pairs of heavyweights."""
    figure, axes = style.panels(columns=2, share_y=True)
    names = (("distance", "distance correlation"), ("pearson", "Pearson's correlation"))
    for panel, (name, text), colour in zip(axes, names, (style.BLUE, style.ORANGE), strict=True):
        x, share = curve(measured, name)
        panel.bar(x, share, x[1] - x[0], color=colour)
        panel.axvline(number(measured, f"median_{name}"), color="black", linestyle="--", linewidth=0.8, label="median")
        style.label(panel, text, "")
        style.percent(panel, decimals=0)
        style.legend(panel)
    axes[0].set_ylabel(f"share of pairs (of {number(measured, 'jobs'):.0f} jobs)")
    return figure
