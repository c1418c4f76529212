"""Numbers and values in words that people can read, said once for terminals, pages and reports."""

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Final

_LARGE: Final = 1e15
_STEPS: Final = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_TINY: Final = 1e-5
_MOST_NAMES: Final = 12
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
_LONG: Final = 10**7
"""Whole numbers from here on are told by four digits and a prefix."""
_TIMES: Final = (("days", 86400 * 10**9), ("hours", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6))
_ACRONYMS: Final = frozenset({"cpu", "llc", "l1", "l2"})


def number(value: float | None, form: str = ".4g", unknown: str = "") -> str:
    """Return a number in a format; what is not finite in a word.

    Examples
    --------
    >>> number(0.12345), number(12.0, "+.1f"), number(math.nan), number(None, unknown="any"), number(1183.0, ".3g")
    ('0.1235', '+12.0', '', 'any', '1,180')
    """
    return _written(value, form) if value is not None and math.isfinite(value) else unknown


def _written(value: float, form: str) -> str:
    """Return a number in a format, with thousands where that would write a power of ten for a number people read."""
    text = format(value, form)
    large = "e+" in text and abs(value) < _LARGE
    return format(float(text), "+,.0f" if form.startswith("+") else ",.0f") if large else text


def share(value: float | None, digits: int = 2, unknown: str = "") -> str:
    """Return a share as a percentage; what is not known in a word.

    Examples
    --------
    >>> share(0.0312), share(0.5, 1), share(math.nan), share(None, unknown="unknown")
    ('3.12%', '50.0%', '', 'unknown')
    """
    return number(value, f".{digits}%", unknown)


def small_share(value: float) -> str:
    """Return a share that is near 0 by two digits, and one too small for them by its bound.

    Examples
    --------
    >>> small_share(0.00234), small_share(4.2e-9), small_share(0.0), small_share(1.1)
    ('0.23%', '<0.001%', '0%', '110%')
    """
    return "<0.001%" if 0.0 < value < _TINY else f"{_written(100 * value, '.2g')}%"


def interval(low: float, high: float, form: str = ".4g", unknown: str = "") -> str:
    """Return the ends of an interval; what has no ends in a word.

    Examples
    --------
    >>> interval(0.2, 0.31, ".1%"), interval(1.25, 3.0), interval(math.nan, math.nan)
    ('20.0% to 31.0%', '1.25 to 3', '')
    """
    return f"{_written(low, form)} to {_written(high, form)}" if math.isfinite(low) and math.isfinite(high) else unknown


def seconds(value: float | None, digits: int = 1, unknown: str = "") -> str:
    """Return a time in seconds.

    Examples
    --------
    >>> seconds(12345.67), seconds(0.25, 2), seconds(math.inf, unknown="any")
    ('12,345.7 s', '0.25 s', 'any')
    """
    text = number(value, f",.{digits}f")
    return f"{text} s" if text else unknown


def duration(value_s: float) -> str:
    """Return a length of time in the unit in which it is short.

    Examples
    --------
    >>> duration(0.0123), duration(90.0), duration(7200.0), duration(691200.0), duration(0.9996)
    ('12.3 ms', '90.0 s', '2 h', '8 d', '1,000 ms')
    """
    for unit_s, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if value_s >= 2 * unit_s:
            return f"{_written(value_s / unit_s, '.4g')} {unit}"
    return f"{value_s:.1f} s" if value_s >= 1 else f"{_written(1000 * value_s, '.3g')} ms"


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


def amount(value: float) -> str:
    """Return a number for a table: whole ones with thousands, others and long ones with four digits and a prefix.

    Examples
    --------
    >>> amount(12345), amount(7486000000), amount(0.25), amount(1.5e-7), amount(float("nan"))
    ('12,345', '7.486 G', '0.25', '1.5e-07', '')
    """
    if isinstance(value, int) and abs(value) < _LONG:
        return f"{value:,}"
    if not math.isfinite(value):
        return "" if math.isnan(value) else str(value)
    for power in range(2, len(_PREFIXES)):
        if 1000**power <= abs(value) < 1000 ** (power + 1):
            return f"{value / 1000**power:.4g} {_PREFIXES[power]}"
    return f"{value:,.0f}" if 10**4 <= abs(value) < 10**6 else f"{value:.4g}"


def short(value: int) -> str:
    """Return a whole number to four digits with a prefix of the SI."""
    if abs(value) < 10_000:
        return str(value)
    power = (len(str(abs(value))) - 1) // 3
    if power >= len(_PREFIXES):
        return f"{value:.3e}"
    return f"{value / 1000**power:#.4g} {_PREFIXES[power]}"


def quantity(value: int, unit: str = "", like: int = 0) -> str:
    """Return a value of an event in its unit: nanoseconds as days down to milliseconds, bytes and counts with a prefix.

    Parameters
    ----------
    value : count times period, duty and weight
    unit : what the event's rates say: events, bytes, nanoseconds, threads; anything else counts as events
    like : a larger value, beside which this one stands: in its unit of time

    Examples
    --------
    >>> quantity(195 * 10**15, "nanoseconds"), quantity(2 * 10**15, "bytes"), quantity(12)
    ('2,257 days', '2.000 PB', '12')
    """
    if unit == "bytes":
        text = short(value)
        return f"{text}B" if " " in text else f"{text} B"
    if unit != "nanoseconds":
        return short(value)
    name, size = next(((name, size) for name, size in _TIMES if max(abs(value), like) >= 3 * size), _TIMES[-1])
    whole = value / size
    return f"{f'{round(whole):,}' if abs(whole) >= 1000 or not value else f'{whole:#.4g}'} {name}"


def event_quantity(value: int, event: str, unit: str = "") -> str:
    """Return how much of an event there is, in words.

    Examples
    --------
    >>> event_quantity(5 * 10**12, "llc_misses", "events"), event_quantity(10**15, "cpu_time", "nanoseconds")
    ('5.000 T LLC misses', '11.57 days of CPU time')
    """
    words = event_name(event)
    if unit == "bytes":
        return f"{quantity(value, unit)} of {words.removesuffix(' bytes')}"
    return f"{quantity(value, unit)} of {words}" if unit == "nanoseconds" else f"{quantity(value)} {words}"


def event_name(event: str) -> str:
    """Return an event's name in words.

    Examples
    --------
    >>> event_name("llc_misses"), event_name("cpu_time"), event_name("cycles")
    ('LLC misses', 'CPU time', 'cycles')
    """
    return " ".join(word.upper() if word in _ACRONYMS else word for word in event.split("_"))


def plural(count: int, noun: str) -> str:
    """Return a count and its noun.

    Examples
    --------
    >>> plural(1, "visit"), plural(1200, "visit")
    ('1 visit', '1,200 visits')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def listed(texts: Iterable[str], most: int = 3) -> str:
    """Return the first texts of several, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b"]), listed("abcde", 3)
    ('a, b', 'a, b, c and 2 more')
    """
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def plain(value: object) -> str:
    """Return a value plainly: parts of maps and lists with commas, lists of maps with semicolons, nothing for none.

    Examples
    --------
    >>> plain((10, 20.0)), plain({"cap": True, "names": ["a", "b"]}), plain(None), plain(0.1)
    ('10, 20', 'cap true, names (a, b)', '', '0.1')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_inside(part)}".rstrip() for name, part in value.items())
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(part, (Mapping, list, tuple)) for part in value)
        return ("; " if nested else ", ").join(plain(part) for part in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGE:
        return str(int(value))
    return "" if value is None else str(value)


def _inside(value: object) -> str:
    """Return a value within a map plainly; what has parts of its own is in parentheses."""
    text = plain(value)
    return f"({text})" if isinstance(value, (Mapping, list, tuple)) and value else text or "none"


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
    near = [entry for entry in known if len(name) > 1 and entry.startswith(name)][:3]
    near = near or difflib.get_close_matches(name, known, 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known)}" if len(known) <= _MOST_NAMES else f"{lists} lists them"
