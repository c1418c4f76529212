"""A flame graph as a picture inside a report: the largest frames, root on top, widths as shares."""

import base64
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING
from zlib import crc32

from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.query import Query
from scenarios.views.numbers import event_name
from scenarios.views.section import Figure
from scenarios.web.charts import OTHER
from scenarios.web.rooted import rooted_paths, roots_of
from scenarios.web.tree import Tree

if TYPE_CHECKING:
    from analysis.profiling.database import Database

_WIDTH, _ROW, _LETTER, _LEGEND = 1100.0, 18.0, 6.3, 26.0
_LEAST = 1.5
"""Width of the narrowest frame that is drawn."""
_MOST_ROWS, _WIDTH_REM = 40, 68.0
_FEWEST = 4
_HUES = (28, 205, 140, 330, 262, 58, 178, 8)
_STYLE = "text{font:11px system-ui,'Segoe UI',Roboto,sans-serif;fill:#1f2328}rect{stroke:#fff;stroke-width:.5}"


def flames(database: "Database", again: str) -> tuple[Figure, ...]:
    """Return flame graphs of the fleet, and of its application with most; nothing if no event has call paths.

    The event is cycles if they have call paths, or else one that measures time, or any.

    Parameters
    ----------
    database : asked
    again : the command that shows all of it
    """
    units = database.units()
    timed = [event for event, unit in units.items() if unit == "nanoseconds"]
    for event in dict.fromkeys(("cycles", *timed, *database.events())):
        query = of_fleet(database, event, ("application",))
        if event in units and len(database.stacks(query, 1)):
            return _of_event(database, query, again)
    return ()


def _of_event(database: "Database", query: Query, again: str) -> tuple[Figure, ...]:
    """Return the flame graphs of an event."""
    places = database.query(replace(query, by=("function", "image"))).astype({"function": str, "image": str})
    first = places.drop_duplicates("function")
    images = dict(zip(first["function"], first["image"], strict=True))
    roots = roots_of(database, query)
    paths = rooted_paths(database, [query], roots)
    whole = Tree(paths.frames, paths.events[0])
    name = event_name(query.event)
    hues = _hues(whole, images)
    pictures = [_picture(whole, name, images, hues, again)]
    if len(roots) > 1:
        (((key, (value,)),), *_) = roots
        alone = rooted_paths(database, [query.restricted(key, value)])
        own = Tree(alone.frames, alone.events[0])
        pictures.append(_picture(own, f"{name} of {value}, which has the most,", images, hues, again))
    return tuple(pictures)


def _picture(tree: Tree, what: str, images: Mapping[str, str], hues: Mapping[str, int], again: str) -> Figure:
    """Return a tree as a picture; of frames too narrow to be drawn it is said how many there are."""
    scale = _WIDTH / max(tree.after[0], 1)
    wide = [number for number in tree.largest().tolist() if tree.after[number] * scale >= _LEAST]
    shown = [number for number in wide if tree.depth[number] < _MOST_ROWS]
    shown.sort(key=lambda number: (tree.depth[number], tree.name(number) == OTHER))
    left, ends = {0: 0.0}, {0: 0.0}
    for number in shown[1:]:
        caller = tree.caller[number]
        left[number] = ends[number] = ends[caller]
        ends[caller] += tree.after[number] * scale
    rows = 1 + max(tree.depth[number] for number in shown)
    frames = [
        _frame(tree, number, left[number], scale, _colour(hues, _image(tree, number, images)) if number else "#e4e3e0")
        for number in shown
    ]
    legend = [
        f'<rect x="{60 + 130 * at}" y="{rows * _ROW + 9:g}" width="10" height="10" fill="{_colour(hues, image)}"/>'
        f'<text x="{75 + 130 * at}" y="{rows * _ROW + 18:g}">{escape(_cut(image, 110))}</text>'
        for at, image in enumerate(hues)
    ]
    height = rows * _ROW + _LEGEND
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" width="{_WIDTH:g}" '
        f'height="{height:g}"><style>{_STYLE}</style>{"".join(frames)}'
        f'<text x="0" y="{rows * _ROW + 18:g}">image</text>{"".join(legend)}</svg>'
    )
    says = (
        f"Who calls whom: {what} as a flame graph, callers above callees, widths are shares, colours images. Of "
        f"{tree.frames:,} frames the {len(shown):,} with {_LEAST / _WIDTH:.2%} or more are drawn; `{again}` has "
        "all, with intervals"
    )
    return Figure(f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}", says, _WIDTH_REM)


def _frame(tree: Tree, number: int, left: float, scale: float, fill: str) -> str:
    """Return a frame as SVG; its text as far as there is room."""
    width, top = tree.after[number] * scale, tree.depth[number] * _ROW
    text = _cut(tree.name(number), width - 5)
    label = f'<text x="{left + 3:.1f}" y="{top + 13:g}">{escape(text)}</text>' if text else ""
    return f'<rect x="{left:.1f}" y="{top:g}" width="{width:.1f}" height="{_ROW:g}" fill="{fill}"/>{label}'


def _hues(tree: Tree, images: Mapping[str, str]) -> dict[str, int]:
    """Return the colours of the images that have most in themselves."""
    own = Counter[str]()
    for number, value in enumerate(tree.own.tolist()):
        own[_image(tree, number, images)] += value
    return {image: hue for (image, _), hue in zip(own.most_common(len(_HUES)), _HUES, strict=False)}


def _image(tree: Tree, number: int, images: Mapping[str, str]) -> str:
    """Return the image of a frame's function; of an application's frame, the image that is called like it."""
    return images.get(tree.name(number), tree.name(number))


def _colour(hues: Mapping[str, int], image: str) -> str:
    """Return the colour of an image; of one without a hue of its own a pale one that its name decides."""
    hue = hues.get(image)
    return f"hsl({crc32(image.encode()) % 360} 25% 88%)" if hue is None else f"hsl({hue} 62% 80%)"


def _cut(text: str, width: float) -> str:
    """Return as much of a text as there is room for; nothing if that is too little to be read."""
    letters = int(width / _LETTER)
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…" if letters >= _FEWEST else ""
