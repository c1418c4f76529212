"""Ren et al. (2010), the square-root law: how far a part of the samples is from the whole profile."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, rows
from analysis.profiling.sample_size import sqrt_law, subset_distances
from analysis.profiling.stability import expected_distance
from models.arrays import Ints

PARTS: Final = tuple(float(part) for part in np.geomspace(0.002, 0.5, 11))
"""Parts of the samples that are kept."""
SHARES: Final = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the machines that are kept."""
REPEATS: Final = 200
"""Random parts of each size."""


def measure(clustered: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return distances of a part of the samples, and of the machines, from the whole, and how they shrink.

    Both parts are of the samples that there are, without replacement. A part f is nearer to the whole by √(1 − f) than
    to a profile without end (Cochran 1977, section 2.6): the law is fitted to distances freed of that factor.

    Parameters
    ----------
    clustered : entry, machine, samples
    rng : draws the parts

    Returns
    -------
    DataFrame
        Series `samples` and `machines`: distance by mean number of samples of the parts, `samples` freed of √(1 − f);
        and judged numbers. The design effect is the variance from machines over that from as many single samples.
    """
    counts = clustered.groupby("entry", sort=True)["samples"].sum().to_numpy(np.int64)
    exact = expected_distance(counts / counts.sum(), 1.0)
    sizes = np.maximum(np.rint(np.array(PARTS) * counts.sum()), 1).astype(np.int64)
    freed = np.array([_thinned(counts, int(size), rng) for size in sizes])
    law = sqrt_law(sizes.astype(np.float64), freed)
    whole = clustered[["entry", "machine", "samples"]].assign(value=clustered["samples"])
    distances = subset_distances(rng, whole, _possible(clustered["machine"].nunique()), draws=REPEATS)
    means = distances.groupby("fraction")[["samples", "distance", "closed_form"]].mean()
    over = means["distance"] / means["closed_form"]
    half, eighth = (float(over.iloc[int(np.abs(over.index - share).argmin())]) for share in (1 / 2, 1 / 8))
    return measures(
        rows("samples", sizes, freed),
        rows("machines", means["samples"], means["distance"]),
        exponent=-law.exponent,
        constant=law.sqrt_constant,
        closed_form=exact,
        constant_error=abs(law.sqrt_constant / exact - 1.0),
        design_effect=eighth**2,
        subset_error=abs(half / eighth - 1.0),
    )


def _thinned(counts: Ints, size: int, rng: np.random.Generator) -> float:
    """Return the mean distance from the whole of random parts of so many of its samples, over √(1 − f)."""
    parts = rng.multivariate_hypergeometric(counts, size, REPEATS, method="marginals")
    distance = np.abs(parts / size - counts / counts.sum()).sum(axis=1).mean()
    return float(distance / np.sqrt(1.0 - size / counts.sum()))


def _possible(machines: int) -> list[float]:
    """Return those of `SHARES` that hold a machine at least."""
    return [share for share in SHARES if round(share * machines) >= 1]


def draw(measured: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    """Draw both on logarithmic axes, beside the printed law with the constant of its closed form."""
    figure, (axes,) = style.panels(height_inches=2.6)
    sizes, distances = curve(measured, "samples")
    at, exponent = np.asarray(sizes), number(paper, "exponent")
    axes.plot(sizes, distances, "o", markersize=3, color=style.BLUE, label="parts of the samples")
    axes.plot(*curve(measured, "machines"), "s", markersize=3, color=style.ORANGE, label="subsets of machines")
    law = number(measured, "closed_form") * at**exponent
    axes.plot(at, law, ":", color=style.INK, linewidth=1.2, label="published law C / √N, C in closed form")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    title = f"exponent {number(measured, 'exponent'):.3f} (published {exponent:g})".replace("-", "−")
    style.label(axes, "samples", "Manhattan distance from the whole", title)
    style.legend(axes, above=True)
    return figure
