"""Where a fleet's cycles go: its hottest functions with their intervals beside the truth, and roll-outs day by day."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    ROW_INCHES,
    SKY,
    forest,
    label,
    legend,
    panels,
    percent,
    shared_legend,
    shortened,
)


def draw_functions(functions: pd.DataFrame, event: str = "cycles") -> Figure:
    """Return the shares of the hottest functions with intervals, beside the truth where it is known.

    Parameters
    ----------
    functions : function, share, low, high, true (NaN: unknown); hottest first
    event : what shares are of

    Examples
    --------
    >>> row = {"function": ["deflate"], "share": [0.05], "low": [0.04], "high": [0.06], "true": [0.05]}
    >>> len(draw_functions(pd.DataFrame(row)).axes)
    1
    """
    figure, (axes,) = panels(height_inches=0.6 + ROW_INCHES * len(functions))
    at = list(range(len(functions)))
    spread = [functions["share"] - functions["low"], functions["high"] - functions["share"]]
    axes.errorbar(functions["share"], at, xerr=spread, fmt="o", ms=3, capsize=2, color=BLUE, label="sampled")
    if functions["true"].notna().any():
        axes.plot(functions["true"], at, "x", ms=4, color=ORANGE, label="truth")
        legend(axes, columns=2, above=True)
    axes.set_yticks(at, [shortened(name) for name in functions["function"]])
    axes.invert_yaxis()
    percent(axes, "x")
    label(axes, f"share of {event}", "")
    return figure


def draw_query_view(views: Mapping[str, pd.DataFrame], event: str = "cycles") -> Figure:
    """Return the top of each view as bars with 95% intervals, the first on top (Ren et al. 2010, Figure 2).

    Parameters
    ----------
    views : title to a table whose first column is the name, with share, low, high; a panel each
    event : what shares are of

    Examples
    --------
    >>> top = pd.DataFrame({"function": ["deflate"], "share": 0.05, "low": 0.04, "high": 0.06})
    >>> float(draw_query_view({"(a) functions": top}).axes[0].get_xlim()[0])
    0.0
    """
    longest = max(len(view) for view in views.values())
    figure, axes = panels(columns=len(views), height_inches=0.6 + ROW_INCHES * longest)
    for panel, (title, view) in zip(axes, views.items(), strict=True):
        at = list(range(len(view)))
        panel.barh(at, view["share"], 0.6, color=SKY, label="sampled")
        spread = [view["share"] - view["low"], view["high"] - view["share"]]
        look: dict[str, Any] = {"color": INK, "capsize": 2, "linewidth": 0.9, "label": "95% interval"}
        panel.errorbar(view["share"], at, xerr=spread, fmt="none", **look)
        panel.set_yticks(at, [shortened(str(name).replace("_", " "), 22) for name in view.iloc[:, 0]])
        panel.set_ylim(longest - 0.5, -0.5)
        panel.set_xlim(0.0, 1.05 * float(view["high"].max()))
        percent(panel, "x")
        label(panel, f"share of {event}", "", title)
    shared_legend(figure)
    return figure


def draw_differences(changes: pd.DataFrame, event: str = "cycles") -> Figure:
    """Return by how much shares differ between two profiles, those that changed beyond chance in colour.

    Parameters
    ----------
    changes : function, change, low, high (NaN: unknown), significant; a row on each line, the first on top
    event : what shares are of

    Examples
    --------
    >>> row = {"function": ["deflate"], "change": [0.02], "low": [0.01], "high": [0.03], "significant": True}
    >>> len(draw_differences(pd.DataFrame(row)).axes)
    1
    """
    figure, (axes,) = panels(height_inches=0.6 + ROW_INCHES * len(changes))
    colours = [
        (ORANGE if change > 0 else BLUE) if significant else GREY
        for change, significant in zip(changes["change"], changes["significant"], strict=True)
    ]
    ends = (changes[name].tolist() for name in ("change", "low", "high"))
    forest(axes, changes["function"].tolist(), *ends, colours=colours)
    percent(axes, "x")
    label(axes, f"change of the share of {event}", "", "coloured: beyond chance")
    return figure


def draw_rollouts(shares: pd.DataFrame) -> Figure:
    """Return the share of cycles of each compiler, kernel and platform, day by day.

    Parameters
    ----------
    shares : day, dimension, name, share

    Examples
    --------
    >>> rows = pd.DataFrame({"day": [0, 1], "dimension": "kernel", "name": "6.6", "share": [0.0, 0.5]})
    >>> len(draw_rollouts(rows).axes)
    1
    """
    dimensions = list(dict.fromkeys(shares["dimension"]))
    figure, drawn = panels(columns=len(dimensions), height_inches=2.0, share_y=True)
    for axes, dimension in zip(drawn, dimensions, strict=True):
        rows = shares[shares["dimension"] == dimension]
        for name, colour in zip(dict.fromkeys(rows["name"]), CYCLE, strict=False):
            of = rows[rows["name"] == name]
            axes.plot(of["day"], of["share"], "o-", ms=2, color=colour, label=name)
        axes.set_ylim(0.0, 1.03)
        percent(axes)
        label(axes, "day", "share of cycles" if dimension == dimensions[0] else "")
        legend(axes, above=True)
    return figure
