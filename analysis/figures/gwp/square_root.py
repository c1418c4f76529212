"""Ren et al. (2010), the square-root law: how far a part of the samples is from the whole profile."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, rows
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


def draw(measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    """Draw both on logarithmic axes, beside the closed form."""
    figure, (axes,) = style.panels()
    sizes, distances = curve(measured, "samples")
    known = measured.set_index("series")["value"]
    exact = float(known["closed_form"])
    axes.plot(sizes, [exact / np.sqrt(n) for n in sizes], color=style.GREY, linestyle="--", label="C / √N, closed form")
    axes.scatter(sizes, distances, s=9, color=style.BLUE, label="parts of the samples")
    axes.scatter(*curve(measured, "machines"), s=9, color=style.ORANGE, marker="s", label="subsets of machines")
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.label(axes, "samples", "Manhattan distance from the whole", "The square-root law")
    style.legend(axes)
    return figure
