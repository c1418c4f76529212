"""The scorecard of estimators drawn: coverage by corner of the sweep, margin and power by test machines."""

from textwrap import fill
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from analysis.figures import style

NOMINAL: Final = 0.95
_RANGE: Final = 0.1
"""Coverage this far from the nominal one has the darkest colour."""
_COLOURS: Final = LinearSegmentedColormap.from_list("coverage", [style.RED, "#ffffff", style.BLUE])
"""Too narrow intervals are red, too wide ones blue."""
_ROW_INCHES: Final = 0.18
_LETTER_INCHES: Final = 0.045
"""What a letter of a slanted label adds to the height."""
_LEAST_INCHES: Final = 2.4
_TITLE_CHARACTERS: Final = 36
_ALIKE: Final = 1.01
_LINES: Final = ("-", "--", ":")


def coverage_map(rows: pd.DataFrame) -> Figure:
    """Draw how often each estimator's intervals held the truth in each corner, all sizes together.

    Parameters
    ----------
    rows : of one design: corner, estimator, covered, draws; one row for each number of machines

    Examples
    --------
    >>> figure = coverage_map(pd.DataFrame({"corner": ["base"], "estimator": "cuped", "covered": 470, "draws": 500}))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['94']
    """
    covered, draws = (
        rows.pivot_table(index="corner", columns="estimator", values=name, aggfunc="sum", sort=False)
        for name in ("covered", "draws")
    )
    share = covered / draws
    names = [_plain(name) for name in share.columns]
    title = fill("draws whose 95% interval holds the full fleet's change (%)", _TITLE_CHARACTERS)
    around = 0.35 + _LETTER_INCHES * max(map(len, names), default=0) + 0.12 * title.count("\n")
    figure, (axes,) = style.panels(height_inches=around + _ROW_INCHES * len(share))
    figure.set_figwidth(max(_LEAST_INCHES, 1.4 + 0.42 * share.shape[1]))
    axes.imshow(share, cmap=_COLOURS, vmin=NOMINAL - _RANGE, vmax=NOMINAL + _RANGE, aspect="auto")
    for (row, column), value in np.ndenumerate(share.to_numpy(dtype=np.float64)):
        if np.isfinite(value):
            dark = abs(value - NOMINAL) > 0.6 * _RANGE
            axes.text(
                column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6, color="w" if dark else "k"
            )
    axes.set_xticks(range(share.shape[1]), names, rotation=40, ha="right")
    axes.set_yticks(range(len(share)), [_plain(name) for name in share.index])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=style.FONT_POINTS)
    return figure


def curves(rows: pd.DataFrame) -> Figure:
    """Draw the mean margin and the power at +1% by number of test machines, a column for each design.

    Parameters
    ----------
    rows : design, estimator, machines, margin, power

    Examples
    --------
    >>> columns = {"machines": [25, 100], "margin": [0.02, 0.01], "power": [0.3, 0.9]}
    >>> len(curves(pd.DataFrame({"design": "day", "estimator": "cuped", **columns})).axes)
    2
    """
    designs = list(dict.fromkeys(rows["design"]))
    figure, axes = style.panels(columns=len(designs), rows=2, height_inches=2.1)
    looks = {
        name: (style.CYCLE[i % len(style.CYCLE)], _LINES[i // len(style.CYCLE) % len(_LINES)])
        for i, name in enumerate(dict.fromkeys(rows["estimator"]))
    }
    for column, design in enumerate(designs):
        above, below = axes[column], axes[column + len(designs)]
        for name, of in rows[rows["design"] == design].groupby("estimator", sort=False):
            look: dict[str, Any] = dict(zip(("color", "linestyle"), looks[name], strict=True))
            look |= {"marker": "o", "markersize": 2.0, "label": _plain(name)}
            above.plot(of["machines"], of["margin"], **look)
            below.plot(of["machines"], of["power"], **look)
        above.set_yscale("log")
        low, high = above.get_ylim()
        if high < _ALIKE * low:  # margins that are alike but for rounding leave an axis without a height
            above.set_ylim(low / _ALIKE, high * _ALIKE)
        below.axhline(NOMINAL, color=style.GREY, linewidth=0.6)
        sizes = sorted(set(rows.loc[rows["design"] == design, "machines"]))
        for panel in (above, below):
            _sized(panel, sizes)
        style.percent(above)
        above.yaxis.set_minor_formatter(NullFormatter())
        style.percent(below)
        style.label(above, "", "margin" if not column else "", _plain(design))
        style.label(below, "test machines", "detects +1%" if not column else "")
    named = {str(line.get_label()): line for panel in axes for line in panel.get_lines() if line.get_marker() == "o"}
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 4, "frameon": False}
    figure.legend(list(named.values()), list(named), fontsize=style.FONT_POINTS, **place)
    return figure


def _sized(axes: Axes, sizes: list[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())


def _plain(name: object) -> str:
    return str(name).replace("_", " ")
