"""How every figure looks: one column wide, thin lines, colours that colour-blind readers can tell apart.

What a paper prints stands beside ours in one way everywhere: open diamonds, hatched bars, dotted lines and hatched
bands. Their labels begin with "published", hidden ones with "_published".
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias

import pandas as pd
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.rcsetup import cycler
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, PercentFormatter, StrMethodFormatter
from numpy.typing import ArrayLike

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
RED: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
GREY: Final = "#595959"
INK: Final = "#000000"
CYCLE: Final = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
"""Okabe and Ito (2008), in the order in which series take them."""
MARKERS: Final = ("o", "s", "^", "v", "P", "X")
"""Of series, in the same order, so that they can be told apart without any colour."""

COLUMN_INCHES: Final = 3.4
"""Width of one column of a two-column paper."""
TEXT_INCHES: Final = 7.0
"""Width of both columns; no figure is wider."""

FONT_POINTS: Final = 7.0
"""Size of titles, legends and words inside a panel."""
LEAST_POINTS: Final = 6.0
"""Size of the smallest letters."""
ROW_INCHES: Final = 0.19
"""Height of a line of a `forest`."""
_LONGEST_NAME: Final = 34
TITLE_CHARACTERS: Final = 48
"""Characters of a title's line."""
HEADROOM: Final = 0.08
"""Of an axis that begins at 0: how much higher than the data it goes."""

_RC: Final[Any] = {
    "font.size": 8.0,
    "axes.titlesize": FONT_POINTS,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=list(CYCLE)),
}


Kind: TypeAlias = Literal["png", "pdf", "svg"]
KINDS: Final[tuple[Kind, ...]] = ("png", "pdf", "svg")
"""How every figure is written: to look at, to print, and for pages."""
_METADATA: Final[dict[Kind, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}
"""What writers would add that changes from day to day or machine to machine."""
_FILES: Final[Any] = {"svg.hashsalt": "wsc", "pdf.fonttype": 42, "hatch.linewidth": 0.5}
"""Names inside an SVG come from a fixed salt, and a PDF has letters that can be searched and edited."""


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


def of_measured(draw: Callable[[pd.DataFrame], Figure]) -> Callable[[pd.DataFrame, pd.DataFrame], Figure]:
    """Return a drawing of measured numbers alone as one that also gets the printed ones, as all rows' are called."""
    return lambda measured, _printed: draw(measured)


def write(figure: Figure, file: Path | BytesIO, kind: Kind) -> None:
    """Write a figure as PNG, PDF or SVG, the same bytes for the same figure.

    It is drawn once; `savefig` draws it twice.

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
    dpi, canvas = figure.dpi, _canvas(figure, kind)
    with rc_context(_FILES):
        getattr(canvas, f"print_{kind}")(file, metadata=_METADATA[kind])
    figure.dpi = dpi


def _canvas(figure: Figure, kind: Kind) -> FigureCanvasBase:
    if kind == "pdf":
        return _pdf()(figure)
    return FigureCanvasAgg(figure) if kind == "png" else FigureCanvasSVG(figure)


@cache
def _pdf() -> type[FigureCanvasBase]:
    """Return what writes PDFs, which takes a third of a second to import; fonts in them get no tables of layout.

    A PDF says where each letter stands, so nothing reads those tables, and to cut them takes half of a figure's time.
    """
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    fonts: Any = import_module("matplotlib.backends._backend_pdf_ps")
    subset = import_module("fontTools.subset")

    def load_font(*arguments: object) -> object:
        font = subset.load_font(*arguments)
        for table in {"GDEF", "GPOS", "GSUB", "MATH", "kern"} & set(font.keys()):
            del font[table]
        return font

    fonts.subset = SimpleNamespace(Options=subset.Options, Subsetter=subset.Subsetter, load_font=load_font)
    return FigureCanvasPdf


def panels(
    columns: int = 1,
    rows: int = 1,
    height_inches: float = 2.3,
    share_y: bool = False,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its axes, row by row, in the common style.

    Parameters
    ----------
    columns, rows : panels beside and below each other
    height_inches : height of one row
    share_y : whether the panels of a row have one vertical axis
    widths : of the columns, relative to each other; equal if not said

    Examples
    --------
    >>> figure, axes = panels(columns=2)
    >>> len(axes)
    2
    """
    width = COLUMN_INCHES if columns == 1 else min(COLUMN_INCHES * (0.35 + 0.65 * columns), TEXT_INCHES)
    with rc_context(_RC):
        figure = Drawing(figsize=(width, height_inches * rows), dpi=200, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y, width_ratios=widths).ravel().tolist()
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
    lines = (fill(line, TITLE_CHARACTERS) for line in title.split("\n"))
    axes.set_title("\n".join(lines), fontsize=FONT_POINTS)
    _lift(axes)


def percent(axes: Axes, which: str = "y", decimals: int | None = None) -> None:
    """Print shares on an axis as percentages.

    Examples
    --------
    >>> _, axes = panels()
    >>> percent(axes[0], "x")
    """
    axis = axes.yaxis if which == "y" else axes.xaxis
    if decimals is None:
        axis.set_major_formatter(lambda share, _place: f"{round(100 * share, 6):g}%".replace("-", "−"))
    else:
        axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals))


def right_axis(axes: Axes, y: str, colour: str) -> Axes:
    """Return a second vertical axis on the right with a name, in the colour of what it measures.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> right_axis(axes, "samples", SKY).get_ylabel()
    'samples'
    """
    with rc_context(_RC):
        right = axes.twinx()
    right.set_ylabel(y, color=colour)
    right.tick_params(axis="y", width=0.6, length=2.5, labelcolor=colour)
    right.spines["right"].set_visible(True)
    right.spines["right"].set_color(colour)
    return right


_SPACING: Final[Any] = {
    "frameon": False,
    "fontsize": FONT_POINTS,
    "borderaxespad": 0.2,
    "labelspacing": 0.3,
    "columnspacing": 1.0,
    "handlelength": 1.6,
}
_LINE_POINTS: Final = 1.5 * FONT_POINTS
"""Height of a line of a legend."""


def legend(axes: Axes, columns: int = 1, above: bool = False) -> None:
    """Put the names of the series where there is room, or above the panel and below its title.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> _ = axes.plot([0.0, 1.0], label="ours")
    >>> legend(axes, above=True)
    """
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)} if above else {}
    named = _named([axes])
    drawn = axes.legend([*named.values()], [*named], ncols=columns, **_SPACING | place)
    if above:
        drawn.set_gid(f"above {math.ceil(len(drawn.get_texts()) / columns)}")
    _lift(axes)


def _named(panels: Sequence[Axes]) -> dict[str, Artist]:
    """Return what panels name, each name once."""
    pairs = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in panels)
    return {name: handle for of_panel in pairs for handle, name in of_panel}


def _lift(axes: Axes) -> None:
    """Let the title stand above a legend that is above the panel."""
    drawn = axes.get_legend()
    above = str(drawn.get_gid() or "") if drawn else ""
    if above.startswith("above ") and axes.get_title():
        axes.set_title(
            axes.get_title(), fontsize=FONT_POINTS, pad=8.0 + _LINE_POINTS * int(above.removeprefix("above "))
        )


def shared_legend(figure: Figure, columns: int = 3, below: bool = False) -> None:
    """Put the names of the series of all panels above (or below) them, each once.

    Examples
    --------
    >>> figure, axes = panels(columns=2)
    >>> for panel in axes:
    ...     _ = panel.plot([0.0, 1.0], label="ours")
    >>> shared_legend(figure)
    >>> len(figure.legends[0].get_texts())
    1
    """
    named = _named(figure.axes)
    place: dict[str, Any] = {"loc": "outside lower center" if below else "outside upper center", "ncols": columns}
    figure.legend([*named.values()], [*named], **_SPACING | place)


def enlarge(drawn: Legend) -> None:
    """Draw markers in a legend as large as they must be to be told apart, however small they are in the panel.

    Examples
    --------
    >>> figure, (axes,) = panels()
    >>> _ = axes.plot([0.0, 1.0], ".", label="ours")
    >>> shared_legend(figure)
    >>> enlarge(figure.legends[0])
    """
    for handle in drawn.legend_handles:
        if isinstance(handle, Line2D):
            handle.set_markersize(4.0)


def from_zero(*panels: Axes, headroom: float = HEADROOM) -> None:
    """Let vertical axes begin at 0 and go somewhat higher than all that has been drawn.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> _ = axes.plot([3.0, 3.1])
    >>> from_zero(axes)
    >>> low, high = axes.get_ylim()
    >>> float(low), bool(high > 3.1)
    (0.0, True)
    """
    for axes in panels:
        axes.autoscale_view()
        highest = max(float(other.dataLim.y1) for other in axes.get_shared_y_axes().get_siblings(axes))
        if math.isfinite(highest) and highest > 0:
            axes.set_ylim(0.0, (1.0 + headroom) * highest)


def zoom(axes: Axes, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None) -> None:
    """Show only a part of what is drawn, as the original does.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> zoom(axes, y=(1.5, 2.0))
    >>> [float(end) for end in axes.get_ylim()]
    [1.5, 2.0]
    """
    if x is not None:
        axes.set_xlim(*x)
    if y is not None:
        axes.set_ylim(*y)
    axes.set_gid("zoom")


def published_points(axes: Axes, x: ArrayLike, y: ArrayLike, colour: str = INK, name: str = "published") -> None:
    """Draw printed values as open diamonds in front of ours; an empty name keeps them out of the legend.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> published_points(axes, [25, 100], [0.06, 0.03])
    >>> axes.lines[0].get_label()
    'published'
    """
    look: dict[str, Any] = {"markersize": 5.0, "markerfacecolor": "none", "markeredgecolor": colour}
    axes.plot(x, y, "D", label=name or "_published", zorder=5, markeredgewidth=1.0, **look)


def published_interval(axes: Axes, x: ArrayLike, y: ArrayLike, half_width: ArrayLike, name: str = "published") -> None:
    """Draw printed estimates with their margins as open diamonds with dotted bars.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> published_interval(axes, [0.0], [0.07], [0.02])
    >>> len(axes.lines)
    3
    """
    look: dict[str, Any] = {"markersize": 5.0, "markerfacecolor": "white", "color": INK, "capsize": 2, "linewidth": 0.9}
    drawn = axes.errorbar(x, y, half_width, fmt="D", label=name or "_published", markeredgewidth=1.0, **look)
    for bar in drawn[2]:
        bar.set_linestyle(":")


def published_line(axes: Axes, at: float, which: str = "y", name: str = "published", colour: str = INK) -> None:
    """Draw a printed value as a dotted line across the panel; one that is not printed (NaN) is left out.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> published_line(axes, 0.95, name="published 95%")
    >>> axes.lines[0].get_linestyle()
    ':'
    """
    look: dict[str, Any] = {"linestyle": ":", "color": colour, "linewidth": 1.2, "label": name or "_published"}
    if math.isfinite(at):
        (axes.axhline if which == "y" else axes.axvline)(at, **look)


def published_step(axes: Axes, at: float, left: float, right: float, name: str = "published") -> None:
    """Draw a printed value as a dotted line over one bar or column only; a value that is not printed is left out."""
    if math.isfinite(at):
        axes.plot([left, right], [at, at], ":", color=INK, linewidth=1.4, label=name or "_published", zorder=5)


def published_bars(
    axes: Axes,
    places: ArrayLike,
    heights: ArrayLike,
    width: float,
    name: str = "published",
    *,
    across: bool = False,
    start: float = 0.0,
) -> None:
    """Draw printed values as hatched bars beside ours, upright or across.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> published_bars(axes, [0, 1], [0.1, 0.2], 0.4)
    >>> str(axes.patches[0].get_hatch())
    '/////'
    """
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "hatch": "/////", "linewidth": 0.6}
    draw = axes.barh if across else axes.bar
    draw(places, heights, width, start, label=name or "_published", **look)


def published_band(axes: Axes, low: float, high: float, name: str = "published", which: str = "y") -> None:
    """Draw a printed range as a hatched band across the panel.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> published_band(axes, 1.7, 1.8)
    >>> axes.patches[0].get_label()
    'published'
    """
    draw = axes.axhspan if which == "y" else axes.axvspan
    look: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": GREY,
        "hatch": "/////",
        "linewidth": 0.6,
        "linestyle": ":",
    }
    draw(low, high, label=name or "_published", **look)


def colour_bar(figure: Figure, mapped: ScalarMappable, axes: Sequence[Axes], name: str) -> None:
    """Say what colours mean, beside panels that have one scale.

    Examples
    --------
    >>> figure, axes = panels()
    >>> colour_bar(figure, axes[0].imshow([[0.0, 1.0]]), axes, "instances")
    >>> figure.axes[-1].get_ylabel()
    'instances'
    """
    with rc_context(_RC):
        bar = figure.colorbar(mapped, ax=list(axes), pad=0.02, aspect=30)
    bar.set_label(name)
    bar.ax.tick_params(width=0.6, length=2.5)
    if isinstance(mapped.norm, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        bar.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        bar.ax.yaxis.set_minor_locator(NullLocator())


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


def minus(text: str) -> str:
    """Return a text with the minus signs of print.

    Examples
    --------
    >>> minus("published -1.2%")
    'published −1.2%'
    """
    return text.replace(" -", " −")


def plain_log(axes: Axes, which: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5 of each decade.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> _ = axes.plot([0.02, 0.3])
    >>> plain_log(axes)
    >>> axes.get_yscale()
    'log'
    """
    axes.set_xscale("log") if which == "x" else axes.set_yscale("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    least, most = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if most < _DECADES * least else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


_DECADES: Final = 100.0
"""How many times the least of an axis the most is, from which only powers of ten are marked."""


def zoom_share(axes: Axes, name: str, step: float = 0.05, most: float = 1.01) -> None:
    """Let an axis of shares begin close below what is drawn, and say so in its name.

    Parameters
    ----------
    name : of the axis
    step : the axis begins at a multiple of it
    most : where the axis ends

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> _ = axes.plot([0.81, 0.95])
    >>> zoom_share(axes, "share of draws")
    >>> axes.get_ylabel().splitlines(), round(float(axes.get_ylim()[0]), 2)
    (['share of draws', '(axis from 75%)'], 0.75)
    """
    axes.autoscale_view()
    lowest = float(axes.dataLim.y0)
    start = max(0.0, step * math.floor(lowest / step - 0.5)) if math.isfinite(lowest) else 0.0
    axes.set_ylim(start, most)
    axes.set_ylabel(f"{name}\n(axis from {start:.0%})" if start else name)


def whole_ticks(axes: Axes) -> None:
    """Mark whole numbers only, of days for instance, on the horizontal axis.

    Examples
    --------
    >>> _, (axes,) = panels()
    >>> whole_ticks(axes)
    """
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def forest(
    axes: Axes,
    names: Sequence[object],
    values: Iterable[float],
    low: Iterable[float],
    high: Iterable[float],
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


def shortened(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a name of which as much of the end is left as there is room for.

    Examples
    --------
    >>> shortened("absl::container_internal::raw_hash_set::find")
    '…iner_internal::raw_hash_set::find'
    """
    return name if len(name) <= longest else "…" + name[1 - longest :]
