"""Rows of any answer about profiles as a table that fits the console."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.profiling.query import DIMENSIONS

if TYPE_CHECKING:
    from rich.console import Console

LEAST_NAME = 24
"""Characters that a name keeps on a line; columns of numbers give way first."""
_PREFIXES = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
_LONG = 10**7
"""Whole numbers from here on are told by four digits and a prefix."""
_UNITS = {"_bytes": "bytes", "_hz": "Hz", "_s": "s", "_w": "W"}
_NUMBERS = frozenset(DIMENSIONS) | {"day", "line"}
_LAST = ("standard_error", "samples")
"""Columns that are dropped before all others, and that have no interval."""
_GAP = 2
Row = Mapping[str, Any]


def amount(value: float) -> str:
    """Return a number for reading: whole ones with thousands, others and long ones with four digits and a prefix.

    Examples
    --------
    >>> amount(12345), amount(7486000000), amount(0.25), amount(1.5e-7), amount(float("nan"))
    ('12,345', '7.486 G', '0.25', '1.5e-07', '')
    """
    if isinstance(value, int) and abs(value) < _LONG:
        return f"{value:,}"
    if not math.isfinite(value):
        return "" if math.isnan(value) else str(value)
    for size, prefix in _PREFIXES:
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.4g} {prefix}"
    return f"{value:,.0f}" if 10**4 <= abs(value) < 10**6 else f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    """Return a count and its noun.

    Examples
    --------
    >>> plural(1, "visit"), plural(1200, "visit")
    ('1 visit', '1,200 visits')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def is_share(name: str, before: str = "") -> bool:
    """Return whether a column holds shares; low and high are what the column before them is.

    Examples
    --------
    >>> is_share("share_a"), is_share("low", "share"), is_share("low", "cpi"), is_share("money_per_year_low")
    (True, True, False, False)
    """
    if name in {"low", "high"} and before:
        return is_share(before)
    return name in {"change", "saving", "saved"} or "share" in name.split("_")


def print_rows(
    rows: Sequence[Row], console: "Console", titles: Mapping[str, str] | None = None, confidence: float = 0.95
) -> None:
    """Print rows: names whole, shares in percent, low and high as one interval; columns that do not fit are named.

    Parameters
    ----------
    rows : with the same columns; nothing is printed without any
    console : to print on
    titles : headings that are not made of the column's name
    confidence : of low and high

    Examples
    --------
    >>> from rich.console import Console
    >>> rows = [{"function": "f", "share": 0.25, "low": 0.2, "high": 0.31}]
    >>> print_rows(rows, Console(width=60))  # doctest: +NORMALIZE_WHITESPACE
    <BLANKLINE>
    function share 95% interval
    ───────────────────────────────────
    f 25.00% 20.00% to 31.00%
    <BLANKLINE>
    """
    if not rows:
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    columns = {_title(name, titles or {}, confidence): cells for name, cells in _columns(rows).items()}
    names = _names(rows, titles or {}, confidence)
    kept, dropped = _fitting(columns, names, console.width)
    widths = _widths(kept, names, console.width)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in kept:
        left = title in names
        table.add_column(Text(title), justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for i in range(len(rows)):
        table.add_row(*(Text(broken(cells[i], widths[title])) for title, cells in kept.items()))
    console.print(table)
    if dropped:
        console.print(f"no room for {', '.join(dropped)}; --json has all", markup=False, soft_wrap=True)


def broken(name: str, width: int) -> str:
    """Return a name on as many lines as it needs, broken after ``::``, or between words, where it can be.

    Examples
    --------
    >>> broken("leveldb::Writer::insert", 16).split()
    ['leveldb::', 'Writer::insert']
    """
    lines, rest = [], name
    while len(rest) > width:
        cut = max(rest.rfind("::", 0, width) + 2, rest.rfind(" ", 0, width) + 1)
        cut = cut if 2 < cut <= width else width
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:]
    return "\n".join([*lines, rest])


def _columns(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the cells of each column as text; low and high under the name of the interval."""
    made: dict[str, list[str]] = {}
    before = ""
    for name in rows[0]:
        low = name.removesuffix("high") + "low"
        if name.endswith("low") and name.removesuffix("low") + "high" in rows[0]:
            continue
        values = [row[name] for row in rows]
        if name.endswith("high") and low in rows[0]:
            percent = is_share(name, before)
            lows = [_text(name, row[low], percent) for row in rows]
            highs = [_text(name, value, percent) for value in values]
            made[name] = [f"{one} to {other}" if one or other else "" for one, other in zip(lows, highs, strict=True)]
            continue
        made[name] = [_text(name, value, is_share(name)) for value in values]
        before = before if name in _LAST else name
    return made


def _text(name: str, value: object, percent: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or name in _NUMBERS:
        return "".join(each if each.isprintable() else "�" for each in str(value))
    if not percent or not math.isfinite(value):
        return amount(value)
    return f"{100 * value:+.2f} pp" if name == "change" else f"{value:.2%}"


def _title(name: str, titles: Mapping[str, str], confidence: float) -> str:
    if name in titles:
        return titles[name]
    if name.endswith("high"):
        of = name.removesuffix("high").strip("_").replace("_", " ")
        return f"{confidence:.0%} interval{f' of {of}' * bool(of)}"
    for suffix, unit in _UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def _names(rows: Sequence[Row], titles: Mapping[str, str], confidence: float) -> set[str]:
    """Return the headings of the columns of names."""
    return {_title(name, titles, confidence) for name, value in rows[0].items() if isinstance(value, str)}


def _fitting(columns: Mapping[str, list[str]], names: set[str], width: int) -> tuple[dict[str, list[str]], list[str]]:
    """Return the columns that fit, and the headings of those that do not: the last numbers go first."""
    kept, dropped = dict(columns), []
    numbers = [title for title in columns if title not in names]
    last = [name.replace("_", " ") for name in _LAST]
    order = sorted(numbers[1:], key=lambda title: title in last)
    while order and sum(_least(title, cells, names) for title, cells in kept.items()) + 2 > width:
        dropped.append(order.pop())
        del kept[dropped[-1]]
    return kept, [title for title in columns if title in dropped]


def _least(title: str, cells: Sequence[str], names: set[str]) -> int:
    longest = max(len(title), *map(len, cells))
    return _GAP + (min(longest, max(LEAST_NAME, len(title))) if title in names else longest)


def _widths(kept: Mapping[str, list[str]], names: set[str], width: int) -> dict[str, int]:
    """Return the characters of each column: names share what numbers leave."""
    made = {title: max(len(title), *map(len, cells)) for title, cells in kept.items()}
    free = width - 2 - _GAP * len(made) - sum(size for title, size in made.items() if title not in names)
    waiting = sorted((title for title in made if title in names), key=lambda title: made[title])
    for i, title in enumerate(waiting):
        made[title] = max(1, min(made[title], free // (len(waiting) - i)))
        free -= made[title]
    return made
