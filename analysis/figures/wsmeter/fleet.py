"""The figures of a fleet's run: its day, and what test clusters say of a change beside the truth."""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, CYCLE, FONT_POINTS, GREY, ORANGE, label, legend, panels, percent

_CLAIMED = 0.95
"""Share of intervals that are to hold the truth."""
_MARKERS = ("o", "s", "^")


def draw_day(epochs: pd.DataFrame, threads: float) -> Figure:
    """Return allocation, utilisation and the share of capped machines over the day, and below them power.

    Parameters
    ----------
    epochs : table `epochs`, at least two rows
    threads : hardware threads of the fleet

    Examples
    --------
    >>> epochs = pd.DataFrame({"start_s": [0.0, 300.0], "quota_vcpu": 8.0, "cpu_s": 1200.0, "energy_j": 6e4})
    >>> len(draw_day(epochs.assign(capped_share=0.5), threads=10.0).axes)
    2
    """
    figure, (shares, power) = panels(rows=2, height_inches=1.7)
    hours = epochs["start_s"] / 3600.0
    epoch_s = float(epochs["start_s"].diff().median())
    shares.plot(hours, epochs["quota_vcpu"] / threads, color=GREY, label="CPU allocated")
    shares.plot(hours, epochs["cpu_s"] / (epoch_s * threads), color=BLUE, label="CPU used")
    shares.plot(hours, epochs["capped_share"], color=ORANGE, label="power-capped")
    shares.set_ylim(0.0, 1.03)
    percent(shares)
    label(shares, "", "share of the fleet")
    legend(shares, columns=3, above=True)
    drawn_mw = epochs["energy_j"] / epoch_s / 1e6
    power.plot(hours, drawn_mw, color=BLUE)
    power.set_ylim(0.0, 1.15 * float(drawn_mw.max()))
    label(power, "time (h)", "power (MW)")
    return figure


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


def draw_coverage(scores: pd.DataFrame, unit: str = "machines") -> Figure:
    """Return how often the intervals of every estimator hold the truth, by size of the test cluster.

    Parameters
    ----------
    scores : design (of each a panel), estimator, machines, coverage (share of the draws) with low and high (its 95%
        interval); NaN where no draw had enough data
    unit : what sizes count

    Examples
    --------
    >>> scores = pd.DataFrame({"estimator": ["wsmeter"], "machines": 25, "coverage": 0.9, "low": 0.87, "high": 0.92})
    >>> len(draw_coverage(scores.assign(design="")).axes)
    1
    """
    designs, names = (list(dict.fromkeys(scores[column])) for column in ("design", "estimator"))
    figure, axes = panels(columns=len(designs), share_y=True)
    for panel, design in zip(axes, designs, strict=True):
        of_design = scores[scores["design"] == design]
        sizes = sorted(set(of_design["machines"]))
        for place, name in enumerate(names):
            rows = of_design[of_design["estimator"] == name]
            at = [sizes.index(size) + 0.6 / len(names) * (place - (len(names) - 1) / 2) for size in rows["machines"]]
            spread = [rows["coverage"] - rows["low"], rows["high"] - rows["coverage"]]
            look: dict[str, Any] = {"fmt": _MARKERS[place // len(CYCLE) % len(_MARKERS)], "ms": 3, "capsize": 2}
            look |= {"color": CYCLE[place % len(CYCLE)], "label": str(name).replace("_", " ")}
            panel.errorbar(at, rows["coverage"], spread, **look)
        panel.axhline(_CLAIMED, color=GREY, linestyle="--", linewidth=0.8)
        panel.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        percent(panel)
        first = "intervals that hold the truth" if panel is axes[0] else ""
        label(panel, f"{unit} in the test cluster", first, str(design).replace("_", " "))
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=FONT_POINTS,
    )
    return figure
