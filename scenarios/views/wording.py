"""Numbers and values in words that people can read: large ones in millions, tiny shares by a bound, lists by commas."""

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Final

_LARGE: Final = 1e15
_STEPS: Final = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_TINY: Final = 1e-5
_MOST_NAMES: Final = 12


def large(value: float) -> str:
    """Return a number of four digits in millions, billions or trillions, or whole with commas below a million.

    Examples
    --------
    >>> large(5.4301e8), large(12345.6), large(math.nan)
    ('543.0 million', '12,346', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown"
    for step, name in _STEPS:
        if abs(value) >= step:
            digits = max(0, 3 - math.floor(math.log10(abs(value) / step)))
            return f"{value / step:,.{digits}f}{name}"
    return f"{value:,.0f}"


def share(value: float | None, digits: int = 2) -> str:
    """Return a share as a percentage; nothing of what is not known.

    Examples
    --------
    >>> share(0.0312), share(0.5, 1), share(math.nan)
    ('3.12%', '50.0%', '')
    """
    return f"{value:.{digits}%}" if value is not None and math.isfinite(value) else ""


def small_share(value: float) -> str:
    """Return a share that is near 0 by two digits, and one too small for them by its bound.

    Examples
    --------
    >>> small_share(0.00234), small_share(4.2e-9), small_share(0.0)
    ('0.23%', '<0.001%', '0%')
    """
    return "<0.001%" if 0.0 < value < _TINY else f"{100 * value:.2g}%"


def plain(value: object) -> str:
    """Return a value plainly: parts of maps and lists with commas, lists of maps with semicolons, nothing for none.

    Examples
    --------
    >>> plain((10, 20.0)), plain({"cap": True, "names": ["a", "b"]}), plain(None), plain(0.1)
    ('10, 20', 'cap true, names (a, b)', '', '0.1')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_inside(each)}".rstrip() for name, each in value.items())
    if isinstance(value, list | tuple):
        nested = any(isinstance(each, Mapping | list | tuple) for each in value)
        return ("; " if nested else ", ").join(plain(each) for each in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGE:
        return str(int(value))
    return "" if value is None else str(value)


def _inside(value: object) -> str:
    """Return a value within a map plainly; what has parts of its own is in parentheses."""
    text = plain(value)
    return f"({text})" if isinstance(value, Mapping | list | tuple) and value else text or "none"


def closest(name: str, among: Iterable[str], lists: str = "wsc platforms") -> str:
    """Return what somebody who wrote a name that is not known should hear.

    Parameters
    ----------
    name : as it was written
    among : the names that there are
    lists : the command that lists them, where they are too many to be said

    Examples
    --------
    >>> closest("haswel", ["haswell_2698v3", "rome_7742"])
    'did you mean haswell_2698v3?'
    >>> closest("vax", ["piii", "pres"])
    'known: piii, pres'
    >>> closest("vax", [f"p{i}" for i in range(100)], "ls")
    'ls lists them'
    """
    known, name = list(among), name.lower()
    # A first word alone, as in "rome", is further from "rome_7742" than difflib likes.
    near = [one for one in known if len(name) > 1 and one.startswith(name)][:3]
    near = near or difflib.get_close_matches(name, known, 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known)}" if len(known) <= _MOST_NAMES else f"{lists} lists them"
