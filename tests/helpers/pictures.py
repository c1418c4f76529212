"""What is wrong with a drawn figure, found in the picture itself: what is cut off, covered, unnamed or too small."""

import itertools
import re

import numpy as np
from matplotlib.collections import Collection, LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import AffineDeltaTransform, Bbox

from analysis.figures import style

_PIXELS = 2.0
"""What is outside, or below something else, by less is the width of a line."""


def faults(figure):
    """Return what a reader would find wrong with a figure, in words; nothing if it is fit to print."""
    figure.draw_without_rendering()
    found = [*_words(figure), *_ticks(figure), *_overlaps(figure)]
    for axes in figure.axes:
        if axes.axison:
            found += [*_cut_off(axes), *_unnamed(axes)]
        found += _covered(figure, axes)
    return found


def published(figure):
    """Return the labels of what a figure draws of the paper, and its words about it."""
    names = [artist.get_label() for axes in figure.axes for artist in (*axes.get_children(), *axes.containers)]
    names += [text.get_text() for text in texts(figure)]
    return [name for name in map(str, names) if "published" in name]


def texts(figure):
    """Return the texts of a figure that can be seen."""
    ticks = [tick for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for tick in _all_ticks(axis)]
    of_ticks = {id(text) for tick in ticks for text in (tick.label1, tick.label2)}
    others = [text for text in figure.findobj(Text) if id(text) not in of_ticks and (text.axes is None or _on(text))]
    named = [text for axes in figure.axes if axes.axison for axis in (axes.xaxis, axes.yaxis) for text in _named(axis)]
    return [text for text in [*others, *named] if text.get_visible() and text.get_text().strip()]


def _on(text):
    return text.axes.axison or text in text.axes.texts


def _all_ticks(axis):
    return (*axis.get_major_ticks(), *axis.get_minor_ticks())


def _named(axis):
    """Return the tick labels in sight."""
    least, most = sorted(axis.get_view_interval())
    slack = 1e-9 * (most - least)
    places = ((axis.get_major_ticks(), axis.get_majorticklocs()), (axis.get_minor_ticks(), axis.get_minorticklocs()))
    ticks = [pair for some, at in places for pair in zip(some, at, strict=False)]
    inside = [tick for tick, at in ticks if least - slack <= at <= most + slack]
    return [text for tick in inside for text in (tick.label1, tick.label2) if text.get_visible()]


def _ticks(figure):
    """Yield ticks that a reader has to multiply out."""
    labels = [text.get_text() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for text in _named(axis)]
    yield from (f"tick {label!r}" for label in labels if "times" in label)


def _words(figure):
    for text in texts(figure):
        words = text.get_text()
        if "_" in words:
            yield f"raw name: {words!r}"
        if text.get_fontsize() < style.LEAST_POINTS:
            yield f"letters of {text.get_fontsize():g} points: {words!r}"


def _data(axes):
    """Yield what is drawn, and its points in pixels: corners of boxes, ends of lines, middles of dots."""
    frame = {axes.patch, *axes.spines.values()}
    for artist in axes.get_children():
        if artist in frame or not artist.get_visible():
            continue
        if isinstance(artist, Line2D):
            yield artist, artist.get_transform().transform(np.ma.filled(artist.get_xydata(), np.nan))
        elif isinstance(artist, Collection):
            yield artist, _of_collection(artist)
        elif isinstance(artist, Patch):
            yield artist, artist.get_window_extent().corners()


def _of_collection(collection):
    offsets = np.ma.filled(collection.get_offsets(), np.nan)
    if len(offsets) > 1 or np.any(offsets):
        relative = isinstance(collection.get_offset_transform(), AffineDeltaTransform)
        return (collection.axes.transData if relative else collection.get_offset_transform()).transform(offsets)
    paths = [path.vertices for path in collection.get_paths() if len(path.vertices)]
    return collection.get_transform().transform(np.concatenate(paths)) if paths else np.empty((0, 2))


def _cut_off(axes):
    """Yield what is beyond the limits of its axes, unless these are said to show a part."""
    box = axes.get_window_extent().padded(_PIXELS)
    for artist, points in _data(axes) if axes.get_gid() != "zoom" else ():
        known = points[np.isfinite(points).all(axis=1)]
        if ((known < box.min) | (known > box.max)).any():
            yield f"cut off: {artist.get_label()!r} of {axes.get_title() or axes.get_ylabel()!r}"


def _legends(figure):
    return [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]


def _overlaps(figure):
    """Yield what is printed over something else, or runs out of the figure: texts, tick labels, legends."""
    legends = _legends(figure)
    inside = {id(text) for legend in legends for text in (*legend.get_texts(), legend.get_title())}
    boxes = [(text.get_text(), _upright(text)) for text in texts(figure) if id(text) not in inside]
    boxes += [("legend", legend.get_window_extent()) for legend in legends]
    for name, box in boxes:
        if (box.min < figure.bbox.min - _PIXELS).any() or (box.max > figure.bbox.max + _PIXELS).any():
            yield f"outside of the figure: {name!r}"
    for (name, box), (other, its) in itertools.combinations(boxes, 2):
        if (np.minimum(box.max, its.max) - np.maximum(box.min, its.min) > _PIXELS).all():
            yield f"overprinted: {name!r} and {other!r}"


def _upright(text):
    """Return the box of a text; of a slanted one only its upper right corner, as boxes of such ones always overlap."""
    box = text.get_window_extent()
    return box if text.get_rotation() % 90 == 0 else Bbox([box.max - 1.0, box.max])


def _covered(figure, axes):
    """Yield what is drawn below a legend."""
    for legend in _legends(figure):
        box = legend.get_window_extent()
        if not box.overlaps(axes.get_window_extent()):
            continue
        for artist, points in _data(axes):
            if isinstance(artist, Line2D):
                path = artist.get_transform().transform_path(artist.get_path())
                below = path.intersects_bbox(box, filled=False)
            elif isinstance(artist, Patch):
                below = artist.get_window_extent().overlaps(box)
            else:
                below = ((points >= box.min) & (points <= box.max)).all(axis=1).any()
            if below:
                yield f"below a legend: {artist.get_label()!r}"


def _unnamed(axes):
    """Yield axes of numbers that have no name."""
    for side, axis in (("horizontal", axes.xaxis), ("vertical", axes.yaxis)):
        ticks = [text.get_text() for text in _named(axis)]
        numbers = [tick for tick in ticks if tick.strip("−-%×$").replace(".", "").replace(",", "").isdigit()]
        if axis.get_visible() and numbers and not axis.get_label_text():
            yield f"{side} axis without a name: {axes.get_title()!r}, {', '.join(ticks)}"


def not_drawn(figure, printed):
    """Return the printed numbers that neither a mark of the paper nor any words of a figure show, whatever their sign.

    Parameters
    ----------
    printed : series, value
    """
    shown = [*_in_words(figure), *_in_marks(figure)]
    rows = zip(printed["series"], printed["value"], strict=True)
    return [name for name, value in rows if not np.isclose(np.abs(shown), abs(value), rtol=0.005, atol=1e-9).any()]


def _in_words(figure):
    """Yield the numbers in a figure's words and legends, percentages as shares."""
    words = [text.get_text() for text in texts(figure)]
    words += [text.get_text() for legend in _legends(figure) for text in legend.get_texts()]
    for digits, unit in re.findall(r"(\d[\d,]*\.?\d*)(%?)", " ".join(words)):
        yield float(digits.replace(",", "").rstrip(".")) / (100.0 if unit else 1.0)


def _in_marks(figure):
    """Yield the places of what is drawn of the paper: points, lines, bars and bands, and the lengths of intervals."""
    for axes in figure.axes:
        inside = {id(part): bars.get_label() for bars in axes.containers for part in bars.get_children()}
        for artist in axes.get_children():
            if "published" not in str(inside.get(id(artist), artist.get_label())):
                continue
            if isinstance(artist, Line2D):
                yield from np.ravel(artist.get_xydata())
            elif isinstance(artist, Patch) and hasattr(artist, "get_height"):
                x, y, width, height = artist.get_x(), artist.get_y(), artist.get_width(), artist.get_height()
                yield from (width, height, x, y, x + width, y + height, x + width / 2, y + height / 2)
            elif isinstance(artist, LineCollection):
                yield from (np.ptp(segment, axis=0).max() / 2 for segment in artist.get_segments())
