"""How every figure looks: one column wide, thin lines, colours that colour-blind readers can tell apart."""

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any, Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
RED: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
GREY: Final = "#767676"
CYCLE: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
"""Okabe and Ito (2008), in the order in which series take them."""

COLUMN_INCHES: Final = 3.4
"""Width of one column of a two-column paper."""

FONT_POINTS: Final = 7.0
"""Size of titles, legends and words inside a panel."""
ROW_INCHES: Final = 0.19
"""Height of a line of a `forest`."""
_LONGEST_NAME: Final = 34
TITLE_CHARACTERS: Final = 48
"""Characters of a title's line."""

_RC: Final[Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


_CANVASES: Final = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG}
_METADATA: Final = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
"""What writers would add that changes from day to day or machine to machine."""


class Drawing(Figure):
    """A figure that a notebook shows without pyplot.

    Examples
    --------
    >>> Drawing()._repr_png_()[1:4]
    b'PNG'
    """

    def _repr_png_(self) -> bytes:
        write(self, file := BytesIO(), "png")
        return file.getvalue()


def write(figure: Figure, file: Path | BytesIO, kind: Literal["png", "svg"]) -> None:
    """Write a figure as PNG or SVG, the same bytes for the same figure, drawing it once (`savefig` draws it twice).

    Names inside an SVG are drawn from a fixed salt.

    Examples
    --------
    >>> def text() -> bytes:
    ...     figure, (axes,) = panels()
    ...     _ = axes.plot([0.0, 1.0])
    ...     write(figure, file := BytesIO(), "svg")
    ...     return file.getvalue()
    >>> text() == text()
    True
    """
    dpi, canvas = figure.dpi, _CANVASES[kind](figure)
    with rc_context({"svg.hashsalt": "wsc"}):
        getattr(canvas, f"print_{kind}")(file, metadata=_METADATA[kind])
    figure.dpi = dpi


def panels(
    columns: int = 1, rows: int = 1, height_inches: float = 2.3, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its axes, row by row, in the common style.

    Parameters
    ----------
    columns, rows : panels beside and below each other
    height_inches : height of one row
    share_y : whether the panels of a row have one vertical axis

    Examples
    --------
    >>> figure, axes = panels(columns=2)
    >>> len(axes)
    2
    """
    width = COLUMN_INCHES if columns == 1 else COLUMN_INCHES * (0.35 + 0.65 * columns)
    with rc_context(_RC):
        figure = Drawing(figsize=(width, height_inches * rows), dpi=200, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).ravel().tolist()
        for panel in axes:
            panel.tick_params(width=0.6, length=2.5)
            panel.grid(visible=True, color="#e4e4e4", linewidth=0.5)
            panel.set_axisbelow(True)
    return figure, axes


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Name both axes, units included, and the panel.

    Examples
    --------
    >>> _, axes = panels()
    >>> label(axes[0], "machines", "margin of error (%)")
    >>> axes[0].get_xlabel()
    'machines'
    """
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(fill(title, TITLE_CHARACTERS), fontsize=FONT_POINTS)


def percent(axes: Axes, which: str = "y", decimals: int | None = None) -> None:
    """Print shares on an axis as percentages.

    Examples
    --------
    >>> _, axes = panels()
    >>> percent(axes[0], "x")
    """
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals))


def legend(axes: Axes, columns: int = 1, above: bool = False) -> None:
    """Put the names of the series where there is room, or above the panel."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)} if above else {}
    spacing: dict[str, Any] = {"borderaxespad": 0.2, "labelspacing": 0.3, "columnspacing": 1.0, "handlelength": 1.4}
    axes.legend(frameon=False, ncols=columns, fontsize=FONT_POINTS, **spacing, **place)


def log_percent(axes: Axes, ticks: Sequence[float]) -> None:
    """Make the vertical axis logarithmic, with these shares as its ticks.

    Examples
    --------
    >>> _, axes = panels()
    >>> log_percent(axes[0], [0.01, 0.1])
    """
    axes.set_yscale("log")
    axes.set_yticks(ticks, [f"{100 * tick:g}%" for tick in ticks])
    axes.minorticks_off()


def forest(
    axes: Axes,
    names: Sequence[object],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    colours: Sequence[str] = (),
) -> None:
    """Draw a value with its interval on a line for each name (a forest plot), and a line at zero if that is in sight.

    Parameters
    ----------
    names : of the lines, from the top
    values, low, high : NaN and infinite ones are left out
    colours : of the lines; blue if none are given

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> forest(axes, ["search", "mail"], [0.1, 0.05], [0.08, 0.04], [0.12, 0.06])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['search', 'mail']
    """
    for at, ends in enumerate(zip(values, low, high, strict=True)):
        value, least, most = (end if math.isfinite(end) else math.nan for end in ends)
        colour = colours[at] if colours else BLUE
        axes.plot([least, most], [at, at], "|-", color=colour, markersize=3.0)
        axes.plot([value], [at], "o", color=colour, markersize=3.0)
    axes.set_yticks(range(len(names)), [shortened(str(name)) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    least, most = axes.get_xlim()
    if least <= 0 <= most:
        axes.axvline(0.0, color=GREY, linewidth=0.6)


def shortened(name: str) -> str:
    """Return a name of which as much of the end is left as there is room for.

    Examples
    --------
    >>> shortened("absl::container_internal::raw_hash_set::find")
    '…iner_internal::raw_hash_set::find'
    """
    return name if len(name) <= _LONGEST_NAME else "…" + name[1 - _LONGEST_NAME :]
