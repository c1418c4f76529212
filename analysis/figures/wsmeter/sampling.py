"""WSMeter, Figures 7 and 11: what sample means do, of machines and of a job's instances."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import norm

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, rows
from analysis.figures.wsmeter.draws import Halves, heaviest_jobs
from analysis.figures.wsmeter.motivation import histograms
from analysis.statistics import Statistic
from analysis.wsmeter.normality import ks_distance, sample_means, standardised_means
from analysis.wsmeter.summaries import machine_values
from models.arrays import Floats


def measure_fig7(
    halves: Halves, sizes: tuple[int, int] = (1, 100), trials: int = 1000, resamples: int = 400, seed: int = 1
) -> pd.DataFrame:
    """Return the distribution of sample means of machine performance, and how it narrows with the sample size.

    The width is the interquartile range, which a few outliers do not decide.

    `size_N`, shares of trials over the sample mean; the exponent e in width ~ N**-e; bias_z, the distance of the mean
    of the larger samples' means from the true mean in standard errors.

    Parameters
    ----------
    halves : of which the current one is sampled
    sizes : machines per sample, the smaller first
    trials : samples of either size
    resamples : of the trials, for the 95% percentile bootstrap interval of the exponent
    seed : of samples and resamples
    """
    values = machine_values(halves.current)["value"].to_numpy()
    rng = np.random.default_rng(seed)
    means = [sample_means(values, size, trials, rng) for size in sizes]
    picks = rng.integers(trials, size=(resamples, trials))
    exponents = [_exponent([sample_means[pick] for sample_means in means], sizes) for pick in picks]
    low, high = np.quantile(exponents, [0.025, 0.975])
    error = values.std() / np.sqrt(sizes[-1] * trials)
    by_size = {f"size_{size}": sample_means for size, sample_means in zip(sizes, means, strict=True)}
    return measures(
        *histograms(by_size, bins=50),
        trials=trials,
        true_mean=values.mean(),
        exponent=Statistic(_exponent(means, sizes), low, high),
        bias_z=abs(means[-1].mean() - values.mean()) / error,
    )


def _exponent(means: list[Floats], sizes: tuple[int, int]) -> float:
    widths = [np.subtract(*np.quantile(sample_means, [0.75, 0.25])) for sample_means in means]
    return float(np.log(widths[0] / widths[1]) / np.log(sizes[1] / sizes[0]))


def fig7(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the histograms of sample means of 1 and of 100 machines."""
    figure, (axes,) = style.panels()
    for size, colour in ((1, style.GREY), (100, style.BLUE)):
        x, share = curve(measured, f"size_{size}")
        axes.bar(x, share, x[1] - x[0], color=colour, alpha=0.75, label=f"N = {size}")
    axes.axvline(number(measured, "true_mean"), color=style.RED, linestyle="--", linewidth=0.8, label="true mean")
    ours, paper = (number(table, "exponent") for table in (measured, published))
    title = f"width falls as N to the −{ours:.2f} (published −{paper:.2f})"
    style.label(axes, "mean IPC of the sampled machines", "share of trials", title)
    style.percent(axes, decimals=0)
    style.legend(axes)
    return figure


def measure_fig11(
    halves: Halves,
    sizes: tuple[int, ...] = (20, 4),
    *,
    top: int = 4,
    trials: int = 4000,
    shown: int = 100,
    seed: int = 1,
) -> pd.DataFrame:
    """Return how far standardised sample means of the heaviest jobs are from the standard normal distribution.

    `cdf_JOB_SIZE` over the standardised mean; the largest Kolmogorov-Smirnov distance per size, and with the
    Dvoretzky-Kiefer-Wolfowitz (Massart 1990) 95% band of the trials added.

    Parameters
    ----------
    halves : of which the current one is sampled
    sizes : instances per sample
    top : heaviest jobs
    trials : samples per job and size that are judged
    shown : of them drawn, as many as in the paper
    seed : of the samples
    """
    current = halves.current
    heaviest = heaviest_jobs(halves, top)["job"]
    rng, band = np.random.default_rng(seed), np.sqrt(np.log(2 / 0.05) / (2 * trials))
    parts: list[pd.DataFrame] = []
    distances: dict[int, list[float]] = {size: [] for size in sizes}
    for rank, job in enumerate(heaviest, start=1):
        values = current.loc[current["job"] == job, "value"].to_numpy()
        for size in sizes:
            z = standardised_means(values, size, trials, rng)
            distances[size].append(ks_distance(z))
            parts.append(rows(f"cdf_{rank}_{size}", np.sort(z[:shown]), (np.arange(shown) + 0.5) / shown))
    largest = {size: max(values, default=np.nan) for size, values in distances.items()}
    return measures(
        *parts,
        jobs=len(heaviest),
        trials=trials,
        **{f"distance_{size}": distance for size, distance in largest.items()},
        **{f"distance_high_{size}": distance + band for size, distance in largest.items()},
    )


def fig11(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the distribution of standardised sample means of the heaviest jobs against the standard normal."""
    figure, axes = style.panels(columns=2, share_y=True)
    grid = np.linspace(-3.5, 3.5, 141)
    for panel, size in zip(axes, (20, 4), strict=True):
        panel.plot(grid, norm.cdf(grid), color="black", linestyle="--", linewidth=0.9, label="standard normal")
        for rank, colour in enumerate(style.CYCLE[:4], start=1):
            x, share = curve(measured, f"cdf_{rank}_{size}")
            panel.step(x, share, where="post", color=colour, linewidth=0.9, label=f"job {rank}")
        distance = number(measured, f"distance_{size}")
        style.label(panel, "standardised sample mean", "", f"N = {size}: largest distance {distance:.3f}")
        panel.set_xlim(-3.5, 3.5)
    axes[0].set_ylabel(f"share of trials ({number(published, 'trials'):.0f} shown)")
    style.legend(axes[0])
    return figure
