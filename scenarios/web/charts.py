"""Charts drawn on the server: stacked bars and lines as numbers that a template turns into SVG."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

OTHER = "all others"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _GAP, _TOP = 720.0, 220.0, 40.0, 30.0, 0.12, 8.0
_LETTER, _SPACE = 6.5, 8.0
"""Width of a letter of a label, and between two labels."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a stack: place and size in the chart's units, its series, and what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    series: int
    says: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked bars of shares: one stack for each x, one part for each series."""

    width: float
    height: float
    series: tuple[str, ...]
    bars: tuple[Bar, ...]
    x_labels: tuple[tuple[float, str], ...]
    y_labels: tuple[tuple[float, str], ...]


def stacked(rows: Iterable[tuple[int, str, int]], most: int = 7, text: Callable[[int], str] = "day {}".format) -> Chart:
    """Return shares over days as stacked bars: what was there first in the first colour, what came last in the second.

    Parameters
    ----------
    rows : day, series, value
    most : series drawn, the largest in all; the rest are drawn as one
    text : what a day is called
    """
    cells: dict[tuple[int, str], int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    listed = list(rows)
    for _, name, value in listed:
        totals[name] += value
    largest = sorted(totals, key=lambda name: (-totals[name], name))
    drawn = largest if len(largest) <= most + 1 else largest[:most]
    drawn = _newest_second(listed, drawn) + ([] if drawn == largest else [OTHER])
    for day, name, value in listed:
        cells[day, name if name in drawn else OTHER] += value
    days = sorted({day for day, _ in cells})
    pitch = (_WIDTH - _LEFT) / max(1, len(days))
    bars = list[Bar]()
    for index, day in enumerate(days):
        whole, below = sum(cells.get((day, name), 0) for name in drawn), 0
        for series, name in enumerate(drawn):
            value = cells.get((day, name), 0)
            if value and whole:
                below += value
                top, size = _HEIGHT * (1 - below / whole), _HEIGHT * value / whole
                x = _LEFT + pitch * (index + _GAP / 2)
                says = f"{text(day)}: {name} {value / whole:.1%}"
                bars.append(Bar(round(x, 2), round(top, 2), round(pitch * (1 - _GAP), 2), round(size, 2), series, says))
    y_labels = tuple((_HEIGHT * (1 - share), f"{share:.0%}") for share in (0.0, 0.5, 1.0))
    return Chart(
        _WIDTH, _HEIGHT + _BOTTOM, tuple(drawn), tuple(bars), _x_labels(list(map(text, days)), pitch), y_labels
    )


def _newest_second(rows: Sequence[tuple[int, str, int]], names: Sequence[str]) -> list[str]:
    """Return the names by their mean day, the last of them moved to the second place."""
    totals, moments = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for day, name, value in rows:
        if name in totals:
            totals[name] += value
            moments[name] += day * value
    ordered = sorted(names, key=lambda name: (moments[name] / max(1, totals[name]), name))
    return [*ordered[:1], *ordered[-1:], *ordered[1:-1]] if len(ordered) > 1 else ordered


@dataclass(frozen=True, slots=True)
class Dot:
    """One value of a line: place in the chart's units, and what it says when pointed at."""

    x: float
    y: float
    says: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over days as lines, each with its dots; `paths` are what SVG calls points."""

    width: float
    height: float
    series: tuple[str, ...]
    dots: tuple[tuple[Dot, ...], ...]
    paths: tuple[str, ...]
    x_labels: tuple[tuple[float, str], ...]
    y_labels: tuple[tuple[float, str], ...]


def lines(
    days: Sequence[int], series: Mapping[str, Sequence[float]], text: Callable[[int], str] = "day {}".format
) -> Lines:
    """Return values over days, each with what it is called, as lines from zero; days without a value are left out."""
    known = [value for values in series.values() for value in values if math.isfinite(value)]
    most = _round_up(max(known, default=1.0) or 1.0)
    pitch = (_WIDTH - _LEFT) / max(1, len(days))
    places = {index: round(_LEFT + pitch * (index + 0.5), 2) for index in range(len(days))}
    dots = tuple(
        tuple(
            Dot(places[index], _height(value / most), f"{text(days[index])}: {name} {value:.4g}")
            for index, value in enumerate(values)
            if math.isfinite(value)
        )
        for name, values in series.items()
    )
    paths = tuple(" ".join(f"{dot.x},{dot.y}" for dot in line) for line in dots)
    y_labels = tuple((_height(part), f"{part * most:.4g}") for part in (0.0, 0.5, 1.0))
    return Lines(
        _WIDTH, _HEIGHT + _BOTTOM, tuple(series), dots, paths, _x_labels(list(map(text, days)), pitch), y_labels
    )


def _round_up(value: float) -> float:
    """Return a number easy to read, not below a positive one: the least of 1, 1.5, 2, … 8 times a power of ten.

    Examples
    --------
    >>> [_round_up(value) for value in (0.059, 0.041, 3.52, 10.0, 112.0)]
    [0.06, 0.05, 4.0, 10.0, 150.0]
    """
    unit = 10.0 ** math.floor(math.log10(value))
    return next(
        float(f"{digits * unit:.6g}") for digits in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if digits * unit >= value
    )


def _height(part: float) -> float:
    return round(_TOP + (_HEIGHT - _TOP) * (1 - part), 2)


def _x_labels(days: Sequence[str], pitch: float) -> tuple[tuple[float, str], ...]:
    """Return days' names without the word, as many as have place side by side."""
    short = [day.removeprefix("day ") for day in days]
    pixels = max(map(len, short), default=1) * _LETTER + _SPACE
    every = max(1, math.ceil(pixels / pitch), -(-len(days) // 15))
    return tuple((round(_LEFT + pitch * (i + 0.5), 2), day) for i, day in enumerate(short) if i % every == 0)
