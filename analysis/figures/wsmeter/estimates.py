"""What test clusters of several sizes say of a change, beside the truth where it is known."""

import math

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import CYCLE, GREY, label, legend, panels, percent


def draw_estimates(estimates: pd.DataFrame, true_change: float = math.nan, unit: str = "machines") -> Figure:
    """Return the intervals of every estimator by size of the test cluster.

    Parameters
    ----------
    estimates : estimator, machines, change, margin; one row per estimator and size
    true_change : relative change of the whole fleet; NaN where nobody knows it
    unit : what sizes count

    Examples
    --------
    >>> estimates = pd.DataFrame({"estimator": ["wsmeter"], "machines": [25], "change": [0.07], "margin": [0.02]})
    >>> len(draw_estimates(estimates, 0.065).axes)
    1
    """
    figure, (axes,) = panels()
    sizes = list(dict.fromkeys(estimates["machines"]))
    names = list(dict.fromkeys(estimates["estimator"]))
    for i, (name, colour) in enumerate(zip(names, CYCLE, strict=False)):
        rows = estimates[estimates["estimator"] == name]
        at = [sizes.index(size) + 0.18 * (i - (len(names) - 1) / 2) for size in rows["machines"]]
        axes.errorbar(at, rows["change"], rows["margin"], fmt="o", ms=3, capsize=2, color=colour, label=name)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    if math.isfinite(true_change):
        axes.axhline(true_change, color=GREY, linestyle="--", label="truth, whole fleet")
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    percent(axes)
    label(axes, f"{unit} in the test cluster", "change of performance")
    legend(axes, columns=2, above=True)
    return figure
