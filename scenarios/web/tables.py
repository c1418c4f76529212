"""Tables as pages show them: cells with text, link and bar, made of data frames."""

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

Link = Callable[[Mapping[str, Any]], str]
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
_SHARES = frozenset({"share", "shares", "change", "fraction", "coverage", "known"})
_BOUNDS = ("low", "high")
_VALUES = frozenset({"value", "value_a", "value_b", "own", "with_callees"})
_NUMERIC = frozenset({"value", "value_a", "value_b", "samples"})
_UNITS = {"s": " (s)", "w": " (W)", "hz": " (Hz)", "bytes": " (bytes)", "kwh": " (kWh)", "a": " A", "b": " B"}
_WORDS = {
    "previous": "distance to the day before",
    "previous_expected": "expected by sampling",
    "mean": "distance to the mean day",
    "mean_expected": "expected by sampling",
    "cpi": "CPI",
    "cpi_elsewhere": "CPI elsewhere",
    "with_callees": "with callees",
}
_SHORT = frozenset({"cpu", "llc", "l1", "l2"})
_TIMES = (("days", 86400 * 10**9), ("hours", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6))


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, in full when pointed at, where it leads, its bar's length (0..1), how it is marked."""

    text: str
    full: str = ""
    href: str = ""
    bar: float | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; `numeric` are the columns to be set flush right."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = field(default_factory=frozenset)


def table(
    frame: pd.DataFrame, caption: str, links: Mapping[str, Link] | None = None, *, bar: str = "share", unit: str = ""
) -> Table:
    """Return a data frame as a table, column by column.

    Parameters
    ----------
    frame : columns named as in the rest of the testbed, with units as suffixes
    caption : what the table holds
    links : column to the function that makes a row's link; an empty link is none
    bar : column of shares that get a bar, as long as its share of the largest, if there is one
    unit : what the values count, as `amount` takes it

    Examples
    --------
    >>> made = table(pd.DataFrame({"function": ["f"], "share": [0.25]}), "Functions")
    >>> made.heads, made.rows[0][1].text, made.rows[0][1].bar, sorted(made.numeric)
    (('function', 'share'), '25.00%', 1.0, [1])
    """
    links = links or {}
    names = [str(name) for name in frame.columns]
    kinds = {name: bounded(name, names) for name in names}
    longest = {bar: max((float(share) for share in frame[bar].dropna()), default=0.0)} if bar in names else {}
    largest = {name: max(map(abs, frame[name]), default=0) for name in names if unit and name in _VALUES}
    rows = []
    for values in frame.itertuples(index=False, name=None):
        row = dict(zip(names, values, strict=True))
        texts = {name: _said(kinds[name], row[name], unit, largest.get(name)) for name in names}
        rows.append(
            tuple(_cell(row[name], texts[name], _led(row, links.get(name)), longest.get(name)) for name in names)
        )
    numeric = frozenset(
        index
        for index, name in enumerate(names)
        if pd.api.types.is_numeric_dtype(frame.iloc[:, index]) or name in _NUMERIC
    )
    return Table(caption, tuple(heading(name) for name in names), tuple(rows), numeric)


def heading(name: str) -> str:
    """Return a column's name as a heading.

    Examples
    --------
    >>> heading("core_cycles"), heading("length_s"), heading("share_a"), heading("previous_expected")
    ('core cycles', 'length (s)', 'share A', 'expected by sampling')
    """
    stem, _, last = name.rpartition("_")
    if name in _WORDS:
        return _WORDS[name]
    return f"{stem.replace('_', ' ')}{_UNITS[last]}" if stem and last in _UNITS else name.replace("_", " ")


def bounded(name: str, names: Sequence[str]) -> str:
    """Return the column of which a column is an end of the interval; of any other column its own name.

    Parameters
    ----------
    name : the column; ``low`` and ``high`` belong to the nearest column before them, ``x_low`` to ``x``
    names : all columns in order

    Examples
    --------
    >>> bounded("low", ["share", "cpi", "low", "high"]), bounded("money_low", ["money_low"])
    ('cpi', 'money')
    """
    stem, _, last = name.rpartition("_")
    if last not in _BOUNDS:
        return name
    if stem:
        return stem
    before = [each for each in names[: list(names).index(name)] if each not in _BOUNDS]
    return before[-1] if before else name


def amount(value: int, unit: str = "", like: int = 0) -> str:
    """Return a value of an event in its unit: nanoseconds as days down to milliseconds, bytes and counts with a prefix.

    Parameters
    ----------
    value : count times period, duty and weight
    unit : what the event's rates say: events, bytes, nanoseconds, threads; anything else counts as events
    like : a larger value, beside which this one stands: in its unit of time

    Examples
    --------
    >>> amount(195 * 10**15, "nanoseconds"), amount(2 * 10**15, "bytes"), amount(12)
    ('2\u202f257 days', '2.000 PB', '12')
    """
    if unit == "bytes":
        text = short(value)
        return f"{text}B" if " " in text else f"{text} B"
    if unit != "nanoseconds":
        return short(value)
    name, size = next(((name, size) for name, size in _TIMES if max(abs(value), like) >= 3 * size), _TIMES[-1])
    whole = value / size
    return f"{grouped(round(whole)) if abs(whole) >= 1000 or not value else f'{whole:#.4g}'} {name}"


def worded(value: int, event: str, unit: str = "") -> str:
    """Return how much of an event there is, in words.

    Examples
    --------
    >>> worded(5 * 10**12, "llc_misses", "events"), worded(10**15, "cpu_time", "nanoseconds")
    ('5.000 T LLC misses', '11.57 days of CPU time')
    """
    words = named(event)
    if unit == "bytes":
        return f"{amount(value, unit)} of {words.removesuffix(' bytes')}"
    return f"{amount(value, unit)} of {words}" if unit == "nanoseconds" else f"{amount(value)} {words}"


def named(event: str) -> str:
    """Return an event's name in words.

    Examples
    --------
    >>> named("llc_misses"), named("cpu_time"), named("cycles")
    ('LLC misses', 'CPU time', 'cycles')
    """
    return " ".join(word.upper() if word in _SHORT else word for word in event.split("_"))


def said(name: str, value: object) -> str:
    """Return a value of a column as text: shares in per cent, large numbers with a prefix, no value as a dash.

    Examples
    --------
    >>> said("share", 0.125), said("value", 3 * 10**15), said("share", float("nan")), said("ok", True)
    ('12.50%', '3.000 P', '–', 'yes')
    """
    if isinstance(value, tuple | list):
        return " → ".join(map(str, value))
    if _is_number(value):
        return _number(name, value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return "–" if value is None or value is pd.NA else str(value)


def grouped(value: int) -> str:
    """Return a whole number with its thousands set apart by narrow spaces.

    Examples
    --------
    >>> grouped(1234567).split()
    ['1', '234', '567']
    """
    return f"{value:,}".replace(",", "\u202f")


def short(value: int) -> str:
    """Return a whole number to four digits with a prefix of the SI.

    Examples
    --------
    >>> short(999), short(1_234_567), short(-5 * 10**18), short(10**40)
    ('999', '1.235 M', '-5.000 E', '1.000e+40')
    """
    if abs(value) < 10_000:
        return str(value)
    power = (len(str(abs(value))) - 1) // 3
    if power >= len(_PREFIXES):
        return f"{value:.3e}"
    return f"{value / 1000**power:#.4g} {_PREFIXES[power]}"


def _said(kind: str, value: object, unit: str, largest: int | None) -> str:
    if largest is not None and isinstance(value, numbers.Integral):
        return amount(int(value), unit, int(largest))
    return said(kind, value)


def _led(row: Mapping[str, Any], link: Link | None) -> str:
    return link(row) if link else ""


def _cell(value: object, text: str, href: str, longest: float | None) -> Cell:
    full, length = "", None
    if _is_number(value):
        full = str(value)
        if longest is not None and not math.isnan(value):
            length = min(1.0, max(0.0, float(value) / longest)) if longest > 0 else 0.0
    return Cell(text, "" if full == text else full, href, length)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _number(name: str, value: float) -> str:
    if math.isnan(value):
        return "–"
    if not _SHARES.isdisjoint(name.split("_")):
        return f"{float(value):+.2%}" if "change" in name else f"{float(value):.2%}"
    if isinstance(value, numbers.Integral):
        return grouped(int(value)) if abs(int(value)) < 10**9 else short(int(value))
    if 10**4 <= abs(float(value)) < 10**6:
        return grouped(round(float(value)))
    if 10**6 <= abs(float(value)) < 10**30:
        return short(round(float(value)))
    return f"{float(value):.4g}"
