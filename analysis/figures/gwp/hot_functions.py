"""Where a fleet's cycles go: its hottest functions with their intervals beside the truth, and roll-outs day by day."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, CYCLE, ORANGE, label, legend, panels, percent

_LONGEST = 34


def draw_functions(functions: pd.DataFrame) -> Figure:
    """Return the shares of the hottest functions with intervals, beside the truth where it is known.

    Parameters
    ----------
    functions : function, share, low, high, true (NaN: unknown); hottest first

    Examples
    --------
    >>> rows = pd.DataFrame({"function": ["deflate"], "share": [0.05], "low": [0.04], "high": [0.06], "true": [0.05]})
    >>> len(draw_functions(rows).axes)
    1
    """
    figure, (axes,) = panels(height_inches=0.6 + 0.19 * len(functions))
    at = list(range(len(functions)))
    spread = [functions["share"] - functions["low"], functions["high"] - functions["share"]]
    axes.errorbar(functions["share"], at, xerr=spread, fmt="o", ms=3, capsize=2, color=BLUE, label="sampled")
    if functions["true"].notna().any():
        axes.plot(functions["true"], at, "x", ms=4, color=ORANGE, label="truth")
        legend(axes, columns=2, above=True)
    axes.set_yticks(at, [_short(name) for name in functions["function"]])
    axes.invert_yaxis()
    percent(axes, "x")
    label(axes, "share of cycles", "")
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


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else "…" + name[1 - _LONGEST :]
