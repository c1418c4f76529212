"""Numbers on the command line, which may not be what they seem: written out, checked, refused with their place.

Each reader takes the option's name and its text, and raises a `FaultsError` that names both if the text cannot be read.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn, TypeVar

from models.errors import ArgumentError
from scenarios.files.faults import Fault, FaultsError, shown

if TYPE_CHECKING:
    from analysis.occupancy.objective import Objective

MOST_SERVERS = 4096
"""As many as a scenario's station may have."""
_MOST = 10**9
_UNITS_S = {"d": 86400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
"""Units of time, the longest first; of two names of one length that which is shown."""
_UNITS_HZ = {"ghz": 1e9, "mhz": 1e6, "hz": 1.0}
"""Units of clocks, the longest first."""
_LEAST_HZ, _MOST_HZ = 1e6, 1e11
_DATED = re.compile(r"\d{4}-\d\d-\d\d|\d{8}T")
"""How a point in time begins."""
_EPOCH = datetime(1970, 1, 1)
_NEVER_S = (datetime.max - _EPOCH).total_seconds()
"""The calendar ends with the year 9999."""
_SINCE_1970_S = 1e8
"""A bare number from three years on counts from 1970, as in tables (`analysis.tables.quantities.times_s`)."""
_T = TypeVar("_T")
_S = TypeVar("_S", bound=str)


@dataclass(frozen=True, slots=True)
class Refused:
    """The value of an option whose text cannot be read; the guard of a command tells all of them at once."""

    fault: Fault
    """Names no option yet."""


def objective(option: str, text: str) -> "Objective":
    """Return an objective on a percentile, such as p99=300ms."""
    from analysis.occupancy.objective import Objective
    from models.errors import InputError

    try:
        return Objective.parse(text)
    except InputError:
        refuse(option, "should be a percentile and a time, such as p99=300ms", text)


def reading(read: Callable[[str, str], _T]) -> Callable[[object], object]:
    """Return how an option's text is read: its value, or why there is none.

    Parameters
    ----------
    read : takes the option's name and text, and raises FaultsError or ArgumentError if it is not what it should be

    Examples
    --------
    >>> read = reading(share)
    >>> read("3%"), read("big").fault.problem
    (0.03, 'should be a share between 0 and 1, such as 3% or 0.03')
    """

    def parse(given: object) -> object:
        if not isinstance(given, str):
            return given
        try:
            return read("", given)
        except FaultsError as error:
            return Refused(error.faults[0])
        except ArgumentError as error:
            return Refused(Fault("", 1, 1, "", error.problem, shown(error.got)))

    return parse


def share(option: str, text: str, *, zero: bool = False) -> float:
    """Return a share between 0 and 1, or 0 itself where it may be, that is written as `3%` or `0.03`.

    Examples
    --------
    >>> share("--margin", "3%"), share("--margin", "0.03")
    (0.03, 0.03)
    """
    per_cent = text.strip().endswith("%")
    value = _float(text.strip().removesuffix("%")) / (100 if per_cent else 1)
    if not (0 < value < 1 or (zero and value == 0)):
        refuse(option, "should be a share between 0 and 1, such as 3% or 0.03", text)
    return value


def shares(option: str, text: str) -> tuple[float, ...]:
    """Return shares from 0 to 1 that are written as `0,50%,1`.

    Examples
    --------
    >>> shares("--saturations", "0, 50%, 100%")
    (0.0, 0.5, 1.0)
    """
    return tuple(_whole_share(option, part.strip(), text) for part in text.split(","))


def _whole_share(option: str, part: str, text: str) -> float:
    value = _float(part.removesuffix("%")) / (100 if part.endswith("%") else 1)
    if not 0 <= value <= 1:
        refuse(option, "should be shares from 0 to 100%, such as 0,50%,100%", text)
    return value


def amount(option: str, text: str, *, zero: bool = False) -> float:
    """Return a finite number above 0, or 0 itself where it may be, that is perhaps written in percent.

    Examples
    --------
    >>> amount("--detect", "3%"), amount("--detect", "2.5")
    (0.03, 2.5)
    """
    per_cent = text.strip().endswith("%")
    value = _float(text.strip().removesuffix("%")) / (100 if per_cent else 1)
    if not (0 < value < math.inf or (zero and value == 0)):
        least = "at least 0" if zero else "above 0"
        refuse(option, f"should be {least}: a share, such as 3% or 0.03, or a number in the unit of a mean", text)
    return value


def number(option: str, text: str, least: float = 0.0, most: float = math.inf) -> float:
    """Return a finite number above 0, between bounds that may be reached.

    Examples
    --------
    >>> number("--t", "1.96")
    1.96
    """
    value = _float(text)
    if not 0 < value < math.inf:
        refuse(option, "should be a number greater than 0", text)
    if not least <= value <= most:
        refuse(option, f"should be {f'at least {least:g} and ' if least else ''}at most {most:g}", text)
    return value


def whole(option: str, text: str, most: int = _MOST, least: int = 1) -> int:
    """Return a whole number between bounds, which may be reached.

    Examples
    --------
    >>> whole("--min-instances", "4")
    4
    """
    digits = (text.lstrip("0") or "0" * (least < 1)) if text.isascii() and text.isdecimal() else ""
    if not digits:
        refuse(option, f"should be a whole number of at least {least}", text)
    if len(digits) > len(str(most)) or int(digits) > most:
        refuse(option, f"should be at most {most}", text)
    if int(digits) < least:
        refuse(option, f"should be at least {least}", text)
    return int(digits)


def numbers_of(option: str, text: str, most: int = _MOST) -> tuple[int, ...]:
    """Return whole numbers of at least 1 and at most so many that are written as `1,2,8`, each once.

    Examples
    --------
    >>> numbers_of("--to", "1,2,8,2")
    (1, 2, 8)
    """
    return tuple(dict.fromkeys(whole(option, part.strip(), most) for part in text.split(",")))


def factors(option: str, text: str) -> tuple[float, ...]:
    """Return numbers above 0 that are written as `1.5,2`, each once.

    Examples
    --------
    >>> factors("--speed", "1.5,2")
    (1.5, 2.0)
    """
    return tuple(dict.fromkeys(number(option, part.strip()) for part in text.split(",")))


def one_of(option: str, text: str, known: Sequence[_S]) -> _S:
    """Return which of the known names a text is."""
    if text not in known:
        refuse(option, f"should be one of {', '.join(map(str, known))}", text)
    return next(name for name in known if name == text)


def count_or_all(option: str, text: str) -> int | None:
    """Return a whole number of at least 1, or none for ``all``."""
    return None if text == "all" else whole(option, text)


def estimator_of(_option: str, name: str, *, own: bool = False) -> str:
    """Return the name of an estimator of a fleet-wide effect for which tables of observations are enough.

    Parameters
    ----------
    own : whether it may be somebody's own, as ``mine.py:Mine``
    """
    from analysis.effects.methods import method, of_tables

    return name if own and ":" in name else method(name, of_tables(), own=own).name


def names_of(_option: str, text: str) -> tuple[str, ...]:
    """Return the names in a text, as they are written."""
    return tuple(text.split(","))


def interval(option: str, text: str, least: float, most: float) -> tuple[float, float]:
    """Return the two ends of an interval that is written as `0.9,1.2`, the low end first.

    Parameters
    ----------
    least, most : bounds on both ends, which may be reached

    Examples
    --------
    >>> interval("--share", "0.2,0.4", 0.0, 1.0)
    (0.2, 0.4)
    """
    ends = [_float(part.strip()) for part in text.split(",")]
    if len(ends) != 2 or not least <= ends[0] <= ends[1] <= most:
        refuse(option, f"should be LOW,HIGH with {least:g} <= LOW <= HIGH <= {most:g}, such as 0.9,1.2", text)
    return ends[0], ends[1]


def duration(option: str, text: str) -> float:
    """Return seconds above 0 that are written as `60s`, `5min`, `200ms`, `1h` or `0.2`.

    Examples
    --------
    >>> duration("--interval", "5min"), duration("--interval", "200ms"), duration("--interval", "0.2")
    (300.0, 0.2, 0.2)
    """
    value = _seconds(text)
    if not 0 < value < math.inf:
        refuse(option, "should be a time above 0, such as 1d, 12h, 5min, 60s or 200ms", text)
    return value


def _seconds(text: str) -> float:
    bare = text.strip().lower()
    unit = next((suffix for suffix in ("ms", "us", *_UNITS_S) if bare.endswith(suffix)), "")
    return _float(bare.removesuffix(unit).strip()) * _UNITS_S.get(unit, 1.0)


def moment(option: str, text: str) -> float:
    """Return seconds since the start, written as a `duration`; 0 is the start."""
    value = _seconds(text)
    if not 0 <= value < math.inf:
        refuse(option, "should be a time such as 36h, 2d or 86400 (seconds)", text)
    return value


class PointInTime(float):
    """Seconds since 1970, where other times count from the beginning of what is looked at."""


def moment_or_point(option: str, text: str) -> float:
    """Return seconds since the start, written as a `duration`, or a point in time.

    That is written in ISO 8601, UTC without a zone, or as a number from 10⁸ on: seconds, ms, µs or ns since 1970.

    Examples
    --------
    >>> moment_or_point("--since", "2d"), moment_or_point("--since", "1970-01-02T02:00+01:00")
    (172800.0, 90000.0)
    >>> moment_or_point("--since", "1777593600000")
    1777593600.0
    """
    value, since_1970 = _seconds(text), _float(text) >= _SINCE_1970_S
    if 0 <= value < math.inf and not since_1970:
        return value
    import pandas as pd

    from analysis.tables.quantities import times_s

    (since_1970_s,), _ = times_s(pd.Series([text.strip()]))
    if not ((since_1970 or _DATED.match(text.strip())) and math.isfinite(since_1970_s)):
        kinds = "36h, 2d or 86400 (seconds), or for imported files such as 2026-05-01T12:00Z"
        refuse(option, f"should be a time such as {kinds}", text)
    return PointInTime(since_1970_s)


def time_given(option: str, time: float | str | datetime | None) -> float | None:
    """Return a time that Python code gives: a number of seconds, or what `moment_or_point` reads; None stays None.

    Examples
    --------
    >>> time_given("--at", 604800.0), time_given("--at", "7d"), time_given("--at", datetime(1970, 1, 2, 1))
    (604800.0, 604800.0, 90000.0)
    """
    return None if time is None else moment_or_point(option, str(time))


def time_since(option: str, time: float | None, origin_s: float | None) -> float | None:
    """Return a time in seconds since the start.

    Parameters
    ----------
    option : that says it
    time : as `moment_or_point` reads it
    origin_s : the start, in seconds since 1970; None: it has no place in the calendar

    Examples
    --------
    >>> time_since("--at", PointInTime(90000.0), 86400.0), time_since("--at", 7.0, None)
    (3600.0, 7.0)
    """
    if not isinstance(time, PointInTime):
        return time
    if origin_s is None:
        only = "only imported files that say when they were taken have a calendar"
        refuse(option, f"should be a time from the beginning, such as 36h or 2d: {only}", time_text(time, 0.0))
    return time - origin_s


def time_text(time_s: float, origin_s: float | None) -> str:
    """Return the text that one would type for a time since a start: a point in time where that is known.

    Examples
    --------
    >>> time_text(5400.0, None), time_text(5400.0, 86400.0), time_text(5400.5, 86400.0)
    ('90min', '1970-01-02T01:30Z', '1970-01-02T01:30:00.500Z')
    """
    if origin_s is None or origin_s + time_s >= _NEVER_S:
        return typed("TIME", time_s)
    milliseconds = round(1e3 * (origin_s + time_s))
    stamp = _EPOCH + timedelta(milliseconds=milliseconds)
    unit = "milliseconds" if milliseconds % 1_000 else "seconds" if milliseconds % 60_000 else "minutes"
    return f"{stamp.isoformat(timespec=unit)}Z"


def typed(metavar: str, value: object) -> str:
    """Return the text that one would type for an option's value, given how help calls that: 95%, 1h, 12,25,50.

    Examples
    --------
    >>> typed("SHARE", 0.95), typed("TIME", 3600.0), typed("TIME", 0.1), typed("N,N,…", (12, 25)), typed("N", 500)
    ('95%', '1h', '100ms', '12,25', '500')
    """
    if isinstance(value, tuple):
        return ",".join(typed(metavar, part) for part in value)
    if not isinstance(value, int | float):
        return str(value)
    if metavar == "SHARE":
        return f"{100 * value:.12g}%"
    unit, length_s = next(
        ((unit, length_s) for unit, length_s in _UNITS_S.items() if _is_whole(value / length_s)), ("s", 1.0)
    )
    return f"{value / length_s:.12g}{unit}" if metavar == "TIME" else f"{value:.12g}"


def _is_whole(number: float) -> bool:
    return number > 0.5 and math.isclose(number, round(number), rel_tol=1e-12)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def refuse(option: str, problem: str, text: str) -> NoReturn:
    """Raise the fault that an option's text has.

    Examples
    --------
    >>> refuse("--margin", "should be a share", "big")
    Traceback (most recent call last):
    ...
    scenarios.files.faults.FaultsError: --margin: should be a share, got "big"
    """
    raise FaultsError([Fault(option, 1, 1, "", problem, shown(text))])


def clocks(option: str, text: str) -> Mapping[str, float]:
    """Return the clocks of platforms in hertz that are written as `pres=1.6GHz,pd4=2800MHz`.

    Examples
    --------
    >>> dict(clocks("--clock", "pres=1.6GHz,pd4=2800MHz"))
    {'pres': 1600000000.0, 'pd4': 2800000000.0}
    """
    clock_hz = dict[str, float]()
    for part in text.split(","):
        name, _, clock = (word.strip() for word in part.partition("="))
        unit = next((unit for unit in _UNITS_HZ if clock.lower().endswith(unit)), "")
        value = _float(clock.lower().removesuffix(unit).strip()) * _UNITS_HZ.get(unit, 1.0)
        if not name or name in clock_hz or not _LEAST_HZ <= value <= _MOST_HZ:
            problem = "should be PLATFORM=CLOCK,… with a clock of 1MHz to 100GHz for each platform once, such as"
            refuse(option, f"{problem} pres=1.6GHz", text)
        clock_hz[name] = value
    return clock_hz


def instruction_ratio(option: str, text: str) -> tuple[float, float]:
    """Return a 90% interval for instructions on another instruction set over those in a log.

    Examples
    --------
    >>> instruction_ratio("--instruction-ratio", "0.9,1.2")
    (0.9, 1.2)
    """
    return interval(option, text, 0.1, 10.0)
