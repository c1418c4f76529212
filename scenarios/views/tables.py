"""Rows and data frames as tables: headings of columns, shares in percent, ends of intervals, links and bars."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from analysis.profiling.query import DIMENSIONS
from scenarios.views.numbers import amount, event_name, quantity, share
from scenarios.views.section import Cell, Heading, Table

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, object]
Link = Callable[[Row], str]
NOTHING = "–"
"""What a cell without a value says."""
_SHARES = frozenset({"share", "shares", "change", "saving", "fraction", "coverage", "known"})
_BOUNDS = ("low", "high")
_PLAIN = frozenset(DIMENSIONS) | {"day", "line"}
"""Columns whose numbers are names."""
_LAST = ("standard_error", "samples")
"""Columns that give way before all others, and that have no interval."""
_MOST_SHOWN = 10_000
"""Rows of a data frame that are shown: nobody reads more, and each takes a sixth of a millisecond."""
_LEAST_POINTS, _TWO_DECIMALS = 0.0001, 0.005
"""Percentage points below which a change is as good as none, and below which two decimals say nothing."""
_VALUES = frozenset({"value", "value_a", "value_b", "own", "with_callees"})
_NUMERIC = _VALUES | {"samples"}
_UNITS = {"s": " (s)", "w": " (W)", "hz": " (Hz)", "bytes": " (bytes)", "kwh": " (kWh)", "a": " A", "b": " B"}
_WORDS_OF_VALUES = {"None": NOTHING, "<NA>": NOTHING, "nan": NOTHING, "True": "yes", "False": "no"}
_WORDS = {
    "previous": "distance to the day before",
    "previous_expected": "expected by sampling",
    "mean": "distance to the mean day",
    "mean_expected": "expected by sampling",
    "cpi": "CPI",
    "cpi_elsewhere": "CPI elsewhere",
    "with_callees": "with callees",
}


def of_rows(
    frame: "pd.DataFrame",
    titles: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    title: str = "",
    *,
    keys: int = 0,
) -> Table:
    """Return a data frame as a table in which low and high are one interval; of more than 10,000 rows the first.

    Parameters
    ----------
    frame : what any command answers
    titles : headings that are not made of the column's name
    confidence : of low and high
    title : what stands above
    keys : columns, the first ones, that say what a row is about; 0: those before the first number

    Examples
    --------
    >>> import pandas as pd
    >>> top = of_rows(pd.DataFrame([{"function": "f", "share": 0.25, "low": 0.2, "high": 0.31}]))
    >>> [heading.text for heading in top.headings], [cell.text for cell in top.rows[0]]
    (['function', 'share', '95% interval'], ['f', '25.00%', '20.00% to 31.00%'])
    """
    names = [str(name) for name in frame.columns]
    first = frame.head(_MOST_SHOWN)
    rows = [dict(zip(names, values, strict=True)) for values in first.itertuples(index=False, name=None)]
    cut = f"the first {_MOST_SHOWN:,} of these {len(frame):,} rows; --json has all of them"
    columns = [name for name in names if not (name.endswith("low") and _other_end(name) in names)]
    flags = [not (rows and isinstance(rows[0][name], str)) for name in columns]
    heads = [(titles or {}).get(name) or _ends(name, names, confidence) or heading(name) for name in columns]
    return Table(
        tuple(map(Heading, heads, flags)),
        tuple(flags),
        tuple(tuple(Cell(_text(row, name, names)) for name in columns) for row in rows),
        title,
        cut if len(frame) > len(first) else "",
        tuple(i for name in _LAST for i, column in enumerate(columns) if column == name),
        keys=keys or max(1, (*flags, True).index(True)),
    )


def of_frame(
    frame: "pd.DataFrame",
    title: str,
    links: Mapping[str, Link] | None = None,
    *,
    bar: str = "share",
    unit: str = "",
    event: str = "",
) -> Table:
    """Return a data frame as a table, column by column.

    Parameters
    ----------
    frame : columns named as in the rest of the testbed, with units as suffixes
    title : what the table holds
    links : column to the function that makes a row's link; an empty link is none
    bar : column of shares that get a bar, as long as its share of the largest, if there is one
    unit : what the values count, as `scenarios.views.numbers.quantity` takes it
    event : whose values they are, which stands above them

    Examples
    --------
    >>> import pandas as pd
    >>> top = of_frame(pd.DataFrame({"function": ["f"], "share": [0.25]}), "Functions")
    >>> top.numbers, top.rows[0][1].text, top.rows[0][1].bar
    ((False, True), '25.00%', 1.0)
    """
    import pandas as pd

    links = links or {}
    names = [str(name) for name in frame.columns]
    longest = {bar: max((float(length) for length in frame[bar].dropna()), default=0.0)} if bar in names else {}
    largest = {name: max(map(abs, frame[name]), default=0) for name in names if unit and name in _VALUES}

    def cell(row: Row, name: str) -> Cell:
        value, link = row[name], links.get(name)
        if name in largest and isinstance(value, numbers.Integral):
            text = quantity(int(value), unit, int(largest[name]))
        else:
            text = value_text(bounded(name, names), value)
        full = str(value) if _is_number(value) and str(value) != text else ""
        return Cell(text, "", full, link(row) if link else "", _bar(value, longest.get(name)))

    flags = tuple(
        pd.api.types.is_numeric_dtype(frame.iloc[:, index]) or name in _NUMERIC for index, name in enumerate(names)
    )
    rows = (dict(zip(names, values, strict=True)) for values in frame.itertuples(index=False, name=None))
    return Table(
        tuple(Heading(_of_event(name, event), flag) for name, flag in zip(names, flags, strict=True)),
        flags,
        tuple(tuple(cell(row, name) for name in names) for row in rows),
        title,
    )


def beside(listed: Table, head: str, cells: tuple[Cell, ...]) -> Table:
    """Return a table with a column more, of words.

    Parameters
    ----------
    listed : the table
    head : the column's heading
    cells : one a row
    """
    rows = tuple((*row, cell) for row, cell in zip(listed.rows, cells, strict=True))
    return replace(listed, headings=(*listed.headings, Heading(head)), numbers=(*listed.numbers, False), rows=rows)


def _of_event(name: str, event: str) -> str:
    """Return a column's heading; of values the event's name."""
    first, side = heading(name), name.removeprefix("value")
    return (
        f"{event_name(event)}{side.upper().replace('_', ' ')}"
        if event not in ("", "samples") and side in ("", "_a", "_b")
        else first
    )


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


def bounded(name: str, names: Iterable[str]) -> str:
    """Return the column of which a column is an end of the interval; of any other column its own name.

    Parameters
    ----------
    name : the column; ``low`` and ``high`` belong to the nearest column before them, ``x_low`` to ``x``
    names : all columns in order
    """
    stem, _, last = name.rpartition("_")
    if last not in _BOUNDS:
        return name
    if stem:
        return stem
    columns = list(names)
    before = [column for column in columns[: columns.index(name)] if column not in (*_BOUNDS, *_LAST)]
    return before[-1] if before else name


def is_share(name: str) -> bool:
    """Return whether a column holds shares.

    Examples
    --------
    >>> is_share("share_a"), is_share("cycles_saved")
    (True, False)
    """
    return not _SHARES.isdisjoint(name.split("_"))


def value_text(name: str, value: object) -> str:
    """Return a value of a column as text: shares in percent, changes of them in points, large numbers with prefixes.

    Parameters
    ----------
    name, value : of the column

    Examples
    --------
    >>> value_text("change", 0.00254), value_text("change", -0.000019), value_text("share_a", 0.25)
    ('+0.25 pp', '-0.0019 pp', '25.00%')
    """
    if isinstance(value, (tuple, list)):
        return " → ".join(map(str, value))
    if isinstance(value, str):
        return _printable(value)
    word = _WORDS_OF_VALUES.get(str(value))
    if word:
        return word
    return _number_text(name, value) if _is_number(value) and name not in _PLAIN else _printable(str(value))


def _number_text(name: str, value: float) -> str:
    if "change" in name.split("_"):
        points = 100 * float(value)
        # Two digits that are not 0, of a change that has some at all.
        return f"{points:+.2g} pp" if _LEAST_POINTS <= abs(points) < _TWO_DECIMALS else f"{points:+.2f} pp"
    if is_share(name):
        return share(float(value), unknown=str(value))
    return amount(int(value) if isinstance(value, numbers.Integral) else float(value))


def _other_end(name: str) -> str:
    """Return the column of the other end of an interval."""
    return name.removesuffix("low") + "high" if name.endswith("low") else name.removesuffix("high") + "low"


def _ends(name: str, names: Sequence[str], confidence: float) -> str:
    """Return the heading of an interval; nothing of any other column."""
    if not name.endswith("high") or _other_end(name) not in names:
        return ""
    of = name.removesuffix("high").strip("_").replace("_", " ")
    return f"{confidence:.0%} interval{f' of {of}' * bool(of)}"


def _text(row: Row, name: str, names: Sequence[str]) -> str:
    of = bounded(name, names)
    if of == name or _other_end(name) not in names:
        return value_text(of, row[name])
    low, high = (value_text(of, row[end]) for end in (_other_end(name), name))
    return "" if low == high == NOTHING else f"{low} to {high}"


def _bar(value: object, longest: float | None) -> float | None:
    if longest is None or not _is_number(value) or math.isnan(value):
        return None
    return min(1.0, max(0.0, float(value) / longest)) if longest > 0 else 0.0


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
