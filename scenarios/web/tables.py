"""Tables as pages show them: cells with text, link and bar, made of data frames."""

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

Link = Callable[[Mapping[str, Any]], str]
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
_SHARES = frozenset({"share", "low", "high", "change", "fraction", "coverage"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, in full when pointed at, where it leads, and the length of its bar (0..1)."""

    text: str
    full: str = ""
    href: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption; `numeric` are the columns to be set flush right."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = field(default_factory=frozenset)


def table(frame: pd.DataFrame, caption: str, links: Mapping[str, Link] | None = None, bar: str = "share") -> Table:
    """Return a data frame as a table, column by column.

    Parameters
    ----------
    frame : columns named as in the rest of the testbed, with units as suffixes
    caption : what the table holds
    links : column to the function that makes a row's link; an empty link is none
    bar : column of shares that get a bar, if there is one

    Examples
    --------
    >>> made = table(pd.DataFrame({"function": ["f"], "share": [0.25]}), "Functions")
    >>> made.heads, made.rows[0][1].text, made.rows[0][1].bar, sorted(made.numeric)
    (('function', 'share'), '25.00%', 0.25, [1])
    """
    links = links or {}
    names = [str(name) for name in frame.columns]
    rows = []
    for values in frame.itertuples(index=False, name=None):
        row = dict(zip(names, values, strict=True))
        rows.append(tuple(_cell(name, row, links.get(name), name == bar) for name in names))
    numeric = frozenset(
        index
        for index, name in enumerate(names)
        if pd.api.types.is_numeric_dtype(frame.iloc[:, index]) or name in {"value", "value_a", "value_b", "samples"}
    )
    return Table(caption, tuple(heading(name) for name in names), tuple(rows), numeric)


def heading(name: str) -> str:
    """Return a column's name as a heading.

    Examples
    --------
    >>> heading("core_cycles"), heading("length_s"), heading("share_a")
    ('core cycles', 'length (s)', 'share A')
    """
    stem, _, last = name.rpartition("_")
    units = {"s": " (s)", "w": " (W)", "hz": " (Hz)", "bytes": " (bytes)", "a": " A", "b": " B"}
    return f"{stem.replace('_', ' ')}{units[last]}" if stem and last in units else name.replace("_", " ")


def said(name: str, value: object) -> str:
    """Return a value of a column as text: shares in per cent, large counts with a prefix, no value as a dash.

    Examples
    --------
    >>> said("share", 0.125), said("value", 3 * 10**15), said("low", float("nan")), said("lines", 7), said("ok", True)
    ('12.50%', '3.000 P', '–', '7', 'yes')
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


def _cell(name: str, row: Mapping[str, Any], link: Link | None, bar: bool) -> Cell:
    value = row[name]
    text = said(name, value)
    full, length = "", None
    if _is_number(value):
        full = str(value)
        length = min(1.0, max(0.0, float(value))) if bar and not math.isnan(value) else None
    return Cell(text, "" if full == text else full, link(row) if link else "", length)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _number(name: str, value: float) -> str:
    if math.isnan(value):
        return "–"
    if not _SHARES.isdisjoint(name.split("_")):
        return f"{float(value):+.2%}" if "change" in name else f"{float(value):.2%}"
    if isinstance(value, numbers.Integral):
        return grouped(int(value)) if abs(int(value)) < 10**9 else short(int(value))
    return f"{float(value):.4g}"
