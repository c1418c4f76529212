"""WSMeter, Figures 8 and 9: whether jobs that share machines or racks move together."""

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from analysis.distance import distance_correlation
from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows, statistic
from analysis.figures.wsmeter.changes import NORMAL_95, share_interval
from analysis.figures.wsmeter.draws import Halves, heaviest_jobs
from analysis.figures.wsmeter.motivation import histograms
from analysis.statistics import NotEnoughDataError, Statistic
from analysis.wsmeter.dependence import colocated_values, rack_dependence
from models.arrays import Floats

LEAST_RACKS = 10
"""Racks that two jobs must share for a coefficient to be worth anything."""
SMALL = 0.3
"""Cohen's (1988) medium correlation: what is below it counts as small."""


def measure_fig8(
    halves: Halves, *, top: int = 3, most: int = 4000, resamples: int = 100, seed: int = 1
) -> pd.DataFrame:
    """Return the heaviest jobs' instance performance beside that of their co-runners, and how they depend.

    `colocated_1` and so on, co-runners' over the instance's performance; the distance correlations (Székely et al.
    2007) with 95% intervals by their bootstrap standard errors, and the largest upper end.

    Parameters
    ----------
    halves : of which the current one is looked at
    top : heaviest jobs
    most : instances of a job looked at, chosen at random
    resamples : of the instances, for the standard error of the distance correlation (bootstrap)
    seed : of choice and resamples
    """
    heaviest = heaviest_jobs(halves, top)["job"].tolist()
    rng = np.random.default_rng(seed)
    parts, highs = [numbers(jobs=len(heaviest))], []
    for rank, job in enumerate(heaviest, start=1):
        pairs = colocated_values(halves.current, job)
        pairs = pairs.sample(min(most, len(pairs)), random_state=rng)
        own, others = pairs["value"].to_numpy(), pairs["others"].to_numpy()
        picks = rng.integers(len(own), size=(resamples, len(own)))
        error = float(np.std([distance_correlation(own[pick], others[pick]) for pick in picks]))
        correlation = Statistic.around(distance_correlation(own, others), NORMAL_95 * error)
        highs.append(correlation.high)
        parts += [numbers(**{f"distance_correlation_{rank}": correlation}), rows(f"colocated_{rank}", own, others)]
    parts.append(numbers(distance_correlation_high_max=max(highs, default=np.nan)))
    return pd.concat(parts, ignore_index=True)


def fig8(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw heat maps of co-runners' performance over the instance's, one for each heavyweight, in one scale."""
    jobs = range(1, 1 + max(1, int(min(number(table, "jobs") for table in (measured, published)))))
    figure, axes = style.panels(columns=len(jobs), share_y=True, height_inches=2.1)
    maps = []
    for rank, panel in zip(jobs, axes, strict=True):
        own, others = curve(measured, f"colocated_{rank}")
        panel.grid(visible=False)
        maps.append(panel.hexbin(own, others, gridsize=24, cmap="cividis", mincnt=1, linewidths=0.1))
        value, low, high = statistic(measured, f"distance_correlation_{rank}")
        style.label(panel, f"IPC of Job {rank}", "", f"distance correlation\n{value:.3f} ({low:.3f} to {high:.3f})")
    for panel in axes:
        ends = [other.get_xlim() for other in axes]
        panel.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    most = max(float(np.max(np.asarray(drawn.get_array()))) for drawn in maps)
    for drawn in maps:
        drawn.set_norm(LogNorm(1.0, max(most, 2.0)))
    style.colour_bar(figure, maps[0], axes, "instances in a cell")
    axes[0].set_ylabel("IPC of co-located jobs")
    figure.suptitle("published: coefficients near zero, no line in any map", fontsize=style.FONT_POINTS)
    return figure


def measure_fig9(halves: Halves, *, top: int = 100, resamples: int = 200, seed: int = 1) -> pd.DataFrame:
    """Return how the heaviest jobs' mean performance in the same racks correlates, pair by pair.

    Histograms `pearson` and `distance` over the coefficient as shares of pairs; the median Pearson coefficient and the
    shares of small coefficients with 95% intervals. Pairs share jobs, so those of the shares count as many observations
    as there are jobs.

    Parameters
    ----------
    halves : of which the current one is looked at
    top : heaviest jobs, all pairs of which are looked at
    resamples : of the racks, for the 95% percentile bootstrap interval of the median Pearson coefficient
    seed : of the resamples

    Raises
    ------
    NotEnoughDataError
        If no pair of jobs meets in enough racks.
    """
    heaviest = heaviest_jobs(halves, top)
    pairs = rack_dependence(halves.current, heaviest)
    pairs = pairs[(pairs["racks"] >= LEAST_RACKS) & pairs["pearson"].notna()]
    if pairs.empty:
        raise NotEnoughDataError(2, 0, "jobs that vary together over the same racks")
    pearson, distance = pairs["pearson"].to_numpy(), pairs["distance_correlation"].to_numpy()
    low, high = _median_interval(halves.current[halves.current["job"].isin(heaviest["job"])], resamples, seed)
    return measures(
        *histograms({"pearson": pearson}),
        *histograms({"distance": distance}),
        jobs=len(heaviest),
        pairs=len(pairs),
        median_pearson=Statistic(float(np.median(pearson)), low, high),
        median_distance=float(np.median(distance)),
        share_small_pearson=_small(pearson, len(heaviest)),
        share_small_distance=_small(distance, len(heaviest)),
    )


def _small(correlations: Floats, jobs: int) -> Statistic:
    """Return the share of pairs whose correlation is small, with the interval of so many jobs."""
    share = float(np.mean(np.abs(correlations) <= SMALL))
    return share_interval(share * jobs, jobs)._replace(value=share)


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


def fig9(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the histograms of distance and Pearson correlation over the pairs of heavyweights."""
    figure, axes = style.panels(columns=2, share_y=True)
    names = (("distance", "distance correlation", (0.0, 1.0)), ("pearson", "Pearson's correlation", (-1.0, 1.0)))
    for panel, (name, text, ends), colour in zip(axes, names, (style.BLUE, style.ORANGE), strict=True):
        x, share = curve(measured, name)
        panel.bar(x, share, x[1] - x[0], color=colour)
        median = number(measured, f"median_{name}")
        panel.axvline(median, color=style.RED, linestyle="--", linewidth=1.0, label="median")
        style.published_line(panel, 0.0, "x", "published: small, or clustered around zero")
        small = statistic(measured, f"share_small_{name}")
        words = f"median {median:.2f}; within ±{SMALL}: {small.value:.0%} ({small.low:.0%} to {small.high:.0%})"
        style.label(panel, text, "", words)
        panel.set_xlim(ends)
        style.percent(panel)
    style.from_zero(*axes)
    ours, paper = (number(table, "jobs") for table in (measured, published))
    axes[0].set_ylabel(f"share of pairs of {ours:.0f} jobs\n(published {paper:.0f})")
    style.shared_legend(figure)
    return figure
