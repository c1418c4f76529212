"""Ren et al. (2010), the square-root law: how far a part of the samples is from the whole profile."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.figures import style
from analysis.figures.criteria import curve, numbers, rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIZES: Final = tuple(int(n) for n in np.geomspace(1e3, 1e6, 13))
"""Numbers of independent samples that are drawn."""
SHARES: Final = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the machines that are drawn."""
REPEATS: Final = 200
"""Draws of each size."""


def constant(shares: Floats) -> float:
    """Return C in E[M] = C / √N: the expected distance of N independent samples from the profile they come from.

    Each entry's share is off by |N(0, p (1 − p) / N)| where N is large, of which the mean is √(2 p (1 − p) / (π N)).

    Examples
    --------
    >>> round(constant(np.array([0.5, 0.5])), 6)
    0.797885
    """
    return float(np.sqrt(2.0 / np.pi) * np.sqrt(shares * (1.0 - shares)).sum())


def measure(table: Ints, rng: np.random.Generator) -> pd.DataFrame:
    """Return distances of independent samples and of subsets of machines from the whole, and how they shrink.

    Parameters
    ----------
    table : (machines, entries) samples
    rng : draws samples and subsets

    Returns
    -------
    DataFrame
        Series `independent` by number of samples and `machines` by mean number of samples of the subsets; and judged
        numbers. The design effect is the variance from subsets of machines over that from as many independent samples,
        both as if the whole were infinite.

    Examples
    --------
    >>> from analysis.figures.criteria import number
    >>> rng = np.random.default_rng(3)
    >>> table = rng.multinomial(400, [0.4, 0.3, 0.2, 0.1], 64)
    >>> abs(number(measure(table, rng), "exponent") + 0.5) < 0.03
    True
    """
    total = table.sum(axis=0)
    shares = total / total.sum()
    exact = constant(shares)
    independent = [np.abs(rng.multinomial(n, shares, REPEATS) / n - shares).sum(axis=1).mean() for n in SIZES]
    exponent, level = np.polyfit(np.log(SIZES), np.log(independent), 1)
    fitted = float(np.exp(level + (exponent + 0.5) * np.mean(np.log(SIZES))))
    drawn = np.array([_subsets(table, shares, share, rng) for share in SHARES])
    scaled = drawn[:, 1] * np.sqrt(drawn[:, 0]) / np.sqrt(1.0 - np.array(SHARES))
    half, eighth = scaled[SHARES.index(1 / 2)], scaled[SHARES.index(1 / 8)]
    return pd.concat(
        [
            rows("independent", SIZES, independent),
            rows("machines", drawn[:, 0], drawn[:, 1]),
            numbers(
                exponent=float(exponent),
                constant=fitted,
                closed_form=exact,
                constant_error=abs(fitted / exact - 1.0),
                design_effect=float((eighth / exact) ** 2),
                subset_error=abs(float(half / eighth) - 1.0),
            ),
        ]
    )


def _subsets(table: Ints, shares: Floats, share: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the mean number of samples and the mean distance from the whole of random subsets of machines."""
    take = max(1, round(share * len(table)))
    parts = np.array([table[rng.permutation(len(table))[:take]].sum(axis=0) for _ in range(REPEATS)])
    counts = np.maximum(parts.sum(axis=1), 1)
    return float(counts.mean()), float(np.abs(parts / counts[:, None] - shares).sum(axis=1).mean())


def draw(measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    """Draw both on logarithmic axes, beside the closed form.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> len(draw(measure(rng.multinomial(400, [0.4, 0.3, 0.2, 0.1], 64), rng), pd.DataFrame()).axes)
    1
    """
    figure, (axes,) = style.panels()
    sizes, independent = curve(measured, "independent")
    known = measured.set_index("series")["value"]
    exact = float(known["closed_form"])
    axes.plot(sizes, [exact / np.sqrt(n) for n in sizes], color=style.GREY, linestyle="--", label="C / √N, closed form")
    axes.scatter(sizes, independent, s=9, color=style.BLUE, label="independent samples")
    axes.scatter(*curve(measured, "machines"), s=9, color=style.ORANGE, marker="s", label="subsets of machines")
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.label(axes, "samples", "Manhattan distance from the whole", "The square-root law")
    style.legend(axes)
    return figure
