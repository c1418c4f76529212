"""A row's criteria drawn by themselves: where each number lies against its bound in every world, and what it is."""

import math
from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.figures import style
from analysis.figures.criteria import Criterion, Verdict, overall

LOOKS: Final[dict[Verdict, tuple[str, str]]] = {
    "holds": (style.BLUE, "o"),
    "depends on the world": (style.ORANGE, "s"),
    "does not hold": (style.RED, "X"),
}
"""Colour and marker by what the worlds say of a criterion."""
_EDGE: Final = 0.97
"""Where a number is drawn that is further from its bound than the line is long."""
_LEGEND_INCHES: Final = 0.6


def draw_criteria(criteria: Sequence[Criterion]) -> Figure:
    """Draw a line for each number that has bounds: its value in every world, and where the bounds are kept.

    Every line has a scale of its own, as numbers have units of their own. One bound is in the middle, zero at one end
    and twice the bound at the other; two bounds are a quarter of the line from its ends. Values beyond an end are drawn
    there. The words at the right have the median, the least and the most, and in how many worlds the bounds are kept.

    Parameters
    ----------
    criteria : of one row, one at least; bounds on the same number follow each other or not

    Examples
    --------
    >>> figure = draw_criteria([Criterion("cv", "at most", 0.3, "", (0.15, 0.31, 0.28))])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['cv']
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.28 (0.15 to 0.31), at most 0.3: 2 of 3']
    """
    by_name = dict[str, list[Criterion]]()
    for criterion in criteria:
        by_name.setdefault(criterion.name, []).append(criterion)
    figure, (axes,) = style.panels(height_inches=_LEGEND_INCHES + style.ROW_INCHES * len(by_name))
    figure.set_figwidth(style.TEXT_INCHES)
    for at, bounds in enumerate(by_name.values()):
        _line(axes, at, bounds)
    axes.set_yticks(range(len(by_name)), [style.shortened(name.replace("_", " ")) for name in by_name])
    axes.set_ylim(len(by_name) - 0.5, -0.5)
    axes.set_xlim(-1.0, 1.0)
    axes.set_xticks([])
    style.label(axes, "each on its own scale, from 0 to twice the bound, or a tolerance beyond both bounds", "")
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)
    used = {overall(bound.verdict for bound in bounds) for bounds in by_name.values()}
    marks = [
        Line2D([], [], linestyle="", color=colour, marker=marker, markersize=3.5, label=verdict)
        for verdict, (colour, marker) in LOOKS.items()
        if verdict in used
    ]
    shade = Patch(color=style.GREY, alpha=0.2, linewidth=0, label="where the bounds are kept")
    axes.legend(
        handles=[shade, *marks],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=4,
        frameon=False,
        fontsize=style.FONT_POINTS,
    )
    return figure


def _line(axes: Axes, at: int, bounds: Sequence[Criterion]) -> None:
    """Draw what keeps the bounds of one number, its values, and what it is in words."""
    low, high = _kept(bounds)
    values = [value for value in bounds[0].values if not math.isnan(value)]
    middle, half = _scale(low, high, values)

    def place(value: float) -> float:
        return max(-_EDGE, min(_EDGE, (value - middle) / half))

    least, most = (-1.0 if math.isinf(low) else place(low), 1.0 if math.isinf(high) else place(high))
    axes.barh(at, most - least, 0.7, least, color=style.GREY, alpha=0.2, linewidth=0)
    for end in (low, high):
        if math.isfinite(end):
            axes.plot([place(end)] * 2, [at - 0.35, at + 0.35], color=style.GREY, linewidth=0.8)
    colour, marker = LOOKS[overall(bound.verdict for bound in bounds)]
    axes.plot([place(value) for value in values], [at] * len(values), marker, color=colour, markersize=3.5, alpha=0.8)
    axes.text(1.03, at, _words(bounds), va="center", fontsize=style.LEAST_POINTS)


def _kept(bounds: Sequence[Criterion]) -> tuple[float, float]:
    """Return between what a number keeps its bounds; infinite where there is none."""
    low = max((bound.bound for bound in bounds if bound.relation == "at least"), default=-math.inf)
    return low, min((bound.bound for bound in bounds if bound.relation == "at most"), default=math.inf)


def _scale(low: float, high: float, values: Sequence[float]) -> tuple[float, float]:
    """Return the middle of a line and half of its length."""
    if math.isfinite(low) and math.isfinite(high):
        return (low + high) / 2, (high - low) or 1.0
    bound = low if math.isfinite(low) else high
    furthest = max((abs(value) for value in values if math.isfinite(value)), default=1.0)
    return bound, abs(bound) or furthest or 1.0


def _words(bounds: Sequence[Criterion]) -> str:
    """Return what a number is over the worlds, its bounds, and how many worlds keep them all."""
    least, _, median, _, most = bounds[0].quartiles
    single = len(bounds[0].values) == 1
    value = "not measured" if math.isnan(median) else f"{bounds[0].measured if single else median:.4g}"
    spread = "" if single or math.isnan(median) else f" ({least:.4g} to {most:.4g})"
    ends = " and ".join(f"{bound.relation} {bound.bound:.4g}" for bound in bounds)
    true_in = sum(all(bound.keeps(number) for bound in bounds) for number in bounds[0].values)
    return f"{value}{spread}, {ends}" + ("" if single else f": {true_in} of {len(bounds[0].values)}")
