"""WSMeter, Figures 7 and 11: what sample means do, of machines and of a job's instances."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, rows, statistic
from analysis.figures.wsmeter.draws import Halves, heaviest_jobs
from analysis.figures.wsmeter.motivation import histograms
from analysis.statistics import Statistic, normal_cdf, normal_density
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
    """Draw the histograms of sample means of 1 and of 100 machines, and what the printed law makes of the former."""
    figure, (axes,) = style.panels(height_inches=2.6)
    for size, colour in ((1, style.ORANGE), (100, style.BLUE)):
        x, share = (np.asarray(side) for side in curve(measured, f"size_{size}"))
        axes.bar(x, share, x[1] - x[0], color=colour, alpha=0.8, label=f"N = {size}")
    one, share = (np.asarray(side) for side in curve(measured, "size_1"))
    mean, paper = number(measured, "true_mean"), number(published, "exponent")
    spread = np.sqrt(np.average((one - mean) ** 2, weights=share)) / 100**paper
    grid = np.linspace(one[0], one[-1], 400)
    law = normal_density((grid - mean) / spread) / spread * (one[1] - one[0])
    axes.plot(grid, law, ":", color=style.INK, linewidth=1.2, label="published law, σ²/N, at N = 100")
    axes.axvline(mean, color=style.RED, linestyle="--", linewidth=0.8, label="true mean")
    style.from_zero(axes)
    exponent = statistic(measured, "exponent")
    ours = f"−{exponent.value:.2f} (−{exponent.high:.2f} to −{exponent.low:.2f})"
    title = f"width falls as N to the {ours}; published −{paper:.2f}"
    trials = f"share of {number(measured, 'trials'):,.0f} trials\n(published {number(published, 'trials'):,.0f})"
    style.label(axes, "mean IPC of the sampled machines\n(end bins hold all beyond)", trials, title)
    style.percent(axes)
    style.shared_legend(figure, columns=2)
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
    curves = [side for side in measured["series"].unique() if side.startswith("cdf_")]
    drawn = measured[measured["series"].isin(curves)]
    most = max(3.5, 1.05 * float(drawn["x"].abs().max()))
    grid = np.linspace(-most, most, 141)
    trials, of_all = len(curve(measured, curves[0])[0]) if curves else 0, number(measured, "trials")
    for panel, size in zip(axes, (20, 4), strict=True):
        panel.plot(
            grid, normal_cdf(grid), color=style.INK, linestyle=":", linewidth=1.2, label="published ideal: normal"
        )
        for rank, (colour, form) in enumerate(zip(style.CYCLE, ("-", "--", "-.", "-"), strict=False), start=1):
            x, share = curve(measured, f"cdf_{rank}_{size}")
            panel.step(x, share, form, where="post", color=colour, linewidth=0.9, label=f"Job {rank}")
        distance, high = (number(measured, f"distance{end}_{size}") for end in ("", "_high"))
        words = f"in {of_all:,.0f} trials {distance:.3f} from normal (to {high:.3f})"
        style.label(panel, "standardised sample mean", "", f"N = {size}\n{words}")
        panel.set_xlim(-most, most)
        style.percent(panel)
    axes[0].set_ylabel(f"share of {trials} trials drawn\n(published {number(published, 'trials'):.0f})")
    style.shared_legend(figure, columns=5)
    return figure
