"""What is asked of a profile: an event, the dimensions to sum by, and restrictions on the others."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from models.errors import WscError

if TYPE_CHECKING:
    import pandas as pd

PROCESS_DIMENSIONS: Mapping[str, str] = MappingProxyType(
    {
        "application": "program that ran: the job's name, [kernel] or [daemons]",
        "revision": "source revision of the program's main binary; [none] without one",
        "compiler": "compiler of the main binary; [none] without one",
        "builder": "who built the main binary; [none] without one",
        "build": "build identifier of the main binary; [none] without one",
        "kernel": "version of the operating-system kernel",
        "platform": "platform of the machine at the time",
        "machine": "machine: its name where an import knows it, else its number",
        "datacentre": "data centre",
        "collection": "collection of visits: fleet, or the name of an application-specific profile",
        "day": "day of the visit, from the beginning of the profile: 0, 1, 2, …",
        "date": "date of the visit, in UTC; [none] in simulated runs and of files that do not say when they are of",
        "visit": "one machine profiled once",
        "process": "one program seen on one visit",
    }
)
"""Dimensions that belong to a process, and what each means."""
LOCATION_DIMENSIONS: Mapping[str, str] = MappingProxyType(
    {
        "function": "function; [unknown] where no symbol covers the address",
        "image": "image that holds the code: program, library, kernel or module",
        "file": "source file; empty: unknown",
        "file_hash": "signature of the source file's content; empty: unknown",
        "line": "source line; 0: unknown",
        "symbolised": "whether a symbol covers the address",
    }
)
"""Dimensions that belong to what was sampled, and what each means."""
DIMENSIONS: dict[str, str] = {**PROCESS_DIMENSIONS, **LOCATION_DIMENSIONS}
"""Every dimension by which samples are summed or restricted, and what it means."""
LABEL = "label."
"""Beginning of the dimensions that are labels of the files' own: `label.pod` is what the label `pod` says."""
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "job": "application",
        "program": "application",
        "datacenter": "datacentre",
        "version": "revision",
        "symbolized": "symbolised",
    }
)
"""Other names that are understood."""
Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Restrictions: a dimension and its allowed values as text, all of which must hold."""

NO_SAMPLES = "no event has samples: all counts are zero"
"""What is wrong with any event where none has samples."""
_MOST_LISTED = 12
_LONGEST = 60


class QueryError(WscError):
    """A query cannot be answered as it is asked; `str()` says why, with the nearest names that would do."""


class NoSamplesError(QueryError):
    """An event has no samples where they are asked for."""


class TooManyRowsError(QueryError):
    """An answer would have too many rows."""


class UnknownValueError(QueryError):
    """A restriction is by values that a dimension does not have."""


def event_or_default(events: Collection[str], named: str | None = None) -> str:
    """Return the event that is meant: the one that is named, or cycles, or the first of a profile that has none.

    Examples
    --------
    >>> event_or_default(["cpu", "cycles"]), event_or_default(["cpu", "samples"]), event_or_default([])
    ('cycles', 'cpu', 'cycles')
    >>> event_or_default(["cpu"], "")
    ''
    """
    return ("cycles" if "cycles" in events else next(iter(events), "cycles")) if named is None else named


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """Return a line that says that a name is not known, with the nearest that are; or that no event has samples.

    Parameters
    ----------
    kind : what the name should be, such as `event`
    name : the name as it was given
    known : the names that would do

    Examples
    --------
    >>> unknown("event", "cycels", ["cycles", "instructions"])
    'unknown event "cycels"; did you mean cycles?'
    >>> unknown("event", "x", ["cycles", "instructions"])
    'unknown event "x"; there are cycles, instructions'
    >>> unknown("event", "cycles", [])
    'no event has samples: all counts are zero'
    """
    if kind == "event" and not known:
        return NO_SAMPLES
    problem = f'unknown {kind} "{_printable(name)}"'
    if near := did_you_mean(name, known):
        return f"{problem}; {near}"
    listed = ", ".join(map(_printable, known[:_MOST_LISTED])) or "none"
    more = f" and {len(known) - _MOST_LISTED:,} more" if len(known) > _MOST_LISTED else ""
    return f"{problem}; there are {listed}{more}"


def did_you_mean(name: str, known: Sequence[str], likeness: float = 0.5) -> str:
    """Return which known names are like another, as a question; empty: none is.

    Parameters
    ----------
    name : as it was written
    known : the names that would do
    likeness : from 0 to 1, `difflib`'s ratio, that they have at least

    Examples
    --------
    >>> did_you_mean("machne", ["machine", "service"]), did_you_mean("rack", ["machine"])
    ('did you mean machine?', '')
    """
    near = difflib.get_close_matches(name, known, 3, likeness)
    return f"did you mean {' or '.join(map(_printable, near))}?" if near else ""


def is_label(name: str) -> bool:
    """Return whether a dimension is a label of the files' own."""
    return name.startswith(LABEL) and len(name) > len(LABEL)


def of_process(name: str) -> bool:
    """Return whether a dimension belongs to processes, as labels do, and not to what was sampled.

    Examples
    --------
    >>> of_process("machine"), of_process("label.pod"), of_process("function")
    (True, True, False)
    """
    return name in PROCESS_DIMENSIONS or is_label(name)


def dimension(name: str) -> str:
    """Return a dimension's own name, also for an alias.

    Raises
    ------
    QueryError
        If there is no such dimension.

    Examples
    --------
    >>> dimension("job"), dimension("datacenter")
    ('application', 'datacentre')
    """
    own = ALIASES.get(name, name)
    if own not in DIMENSIONS and not is_label(own):
        raise QueryError(unknown("dimension", name, [*DIMENSIONS, *ALIASES]))
    return own


@dataclass(frozen=True, slots=True)
class Query:
    """Samples of one event, summed by dimensions, restricted by others; aliases of dimensions are resolved.

    Raises
    ------
    QueryError
        If a dimension is unknown or asked for twice, or the time range is empty; the message lists every fault.

    Examples
    --------
    >>> Query(by=("function", "job"), where=(("machine", ("3", "5")),)).by
    ('function', 'application')
    >>> Query(by=("functoin",))
    Traceback (most recent call last):
    analysis.profiling.query.QueryError: unknown dimension "functoin"; did you mean function?
    """

    event: str = "cycles"
    """Generic event."""
    by: tuple[str, ...] = ("function",)
    """Dimensions to sum by; none: one sum of everything."""
    where: Where = ()
    """Restrictions: dimension and allowed values as text; all must hold."""
    since_s: float | None = None
    """Visits that began at this time or later."""
    until_s: float | None = None
    """Visits that began before this time."""

    def __post_init__(self) -> None:
        faults = [*_unknown_dimensions(self), *_wrong_times(self.since_s, self.until_s)]
        if not faults:
            by = tuple(map(dimension, self.by))
            faults = [f"dimension {name} is given twice" for name in dict.fromkeys(by) if by.count(name) > 1]
        if faults:
            raise QueryError("\n".join(faults))
        object.__setattr__(self, "by", by)
        where = tuple((dimension(name), tuple(dict.fromkeys(allowed))) for name, allowed in self.where)
        object.__setattr__(self, "where", where)

    def restricted(self, name: str, *values: str) -> "Query":
        """Return the query with one more restriction.

        Parameters
        ----------
        name : a dimension
        values : its allowed values, as text

        Examples
        --------
        >>> Query().restricted("job", "search").where
        (('application', ('search',)),)
        """
        return replace(self, where=(*self.where, (name, values)))

    def during(self, since_s: float | None, until_s: float | None) -> "Query":
        """Return the query of visits from one time on and before another; None: of all times."""
        return replace(self, since_s=since_s, until_s=until_s)


class Profile(Protocol):
    """A profile that can be asked; `database.Database` is one."""

    def query(self, query: Query, top: int | None = None) -> "pd.DataFrame":
        """Return samples, value and share by the query's dimensions, largest value first."""
        ...

    def clustered(self, query: Query, cluster: str = "machine", rows: "pd.DataFrame | None" = None) -> "pd.DataFrame":
        """Return samples and value by the query's dimensions within each cluster, perhaps of some rows alone."""
        ...

    def clustered_apart(
        self, query: Query, apart: str, cluster: str = "machine"
    ) -> "Iterator[tuple[str, pd.DataFrame]]":
        """Yield what `clustered` returns for each value of another dimension of processes, in order of the values."""
        ...

    def callers(self, function: str, query: Query) -> "pd.DataFrame":
        """Return caller, samples, value of a function by the query's dimensions."""
        ...

    def undrawn(self, query: Query) -> str:
        """Return why a query's samples are not a random sample of machines; nothing if they are one."""
        ...

    def values(self, name: str, limit: int = ...) -> list[str]:
        """Return the values of a dimension as text."""
        ...

    def events(self) -> list[str]:
        """Return the events that have samples, in alphabetical order."""
        ...

    def units(self) -> dict[str, str]:
        """Return what each event counts."""
        ...

    def table(self, name: str) -> "pd.DataFrame":
        """Return a table as it is."""
        ...


_OPERATOR = r"operator *(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?)"
_TOKEN = re.compile(rf"\\.|\b{_OPERATOR}|->|[(\[{{<>}}\]),]")
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}


def _values(text: str) -> list[str]:
    r"""Return a text's values between commas that are in no brackets; between all commas if brackets do not match.

    A comma or bracket after a backslash parts and opens nothing.

    Examples
    --------
    >>> _values("f(int, A<b, c>),operator<,g")
    ['f(int, A<b, c>)', 'operator<', 'g']
    >>> _values("f(int, g"), _values(r"f\(int, g")
    (['f(int', ' g'], ['f\\(int', ' g'])
    """
    opened, outside, everywhere, matched = list[str](), [-1], [-1], True
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == ",":
            everywhere.append(token.start())
            outside += [token.start()] * (not opened)
        elif mark in _CLOSES.values():
            opened.append(mark)
        elif mark in _CLOSES:
            matched &= bool(opened) and opened.pop() == _CLOSES[mark]
    commas = outside if matched and not opened else everywhere
    return [text[begin + 1 : end] for begin, end in pairwise([*commas, len(text)])]


def parse_where(texts: Iterable[str]) -> Where:
    r"""Return restrictions from text such as ``job=a,b``.

    A comma within brackets, as in ``pair<int, int>`` or ``f(int, char)``, is part of its value; any other is written
    ``\,``. A bracket that is not closed is written with a backslash, too, or all commas part values.

    Raises
    ------
    QueryError
        If a text is no ``dimension=value``; the message lists every fault.

    Examples
    --------
    >>> parse_where(["job=a,b", r"function=a\,b,pair<int, int>,f(char const*, int)"])
    (('application', ('a', 'b')), ('function', ('a,b', 'pair<int, int>', 'f(char const*, int)')))
    """
    restrictions: list[tuple[str, tuple[str, ...]]] = []
    faults = []
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            faults.append(f'a restriction should be dimension=value[,value], got "{_printable(text)}"')
            continue
        allowed = tuple(re.sub(r"\\([\\,(){}<>\[\]])", r"\1", value) for value in _values(values))
        try:
            restrictions.append((dimension(name.strip()), allowed))
        except QueryError as error:
            faults.append(str(error))
    if faults:
        raise QueryError("\n".join(faults))
    return tuple(restrictions)


def where_text(name: str, values: Iterable[str]) -> str:
    r"""Return a restriction as `parse_where` reads it.

    Examples
    --------
    >>> where_text("function", ["f(int, char)", "a,b"])
    'function=f\\(int\\, char\\),a\\,b'
    >>> parse_where([where_text("function", ["f(int, char)", "a,b"])])
    (('function', ('f(int, char)', 'a,b')),)
    """
    escaped = (re.sub(r"([\\,(){}<>\[\]])", r"\\\1", value) for value in values)
    return f"{name}={','.join(escaped)}"


def restriction_text(value: object) -> str:
    """Return a value of a dimension as it is written in a restriction.

    Examples
    --------
    >>> restriction_text("read"), restriction_text(7), restriction_text(True)
    ('read', '7', 'true')
    """
    # NumPy's truth values are no subclass of Python's, and are written like them.
    return str(value).lower() if type(value).__name__ in {"bool", "bool_"} else str(value)


def _unknown_dimensions(query: Query) -> list[str]:
    """Return a line for each name that is no dimension, and for each restriction that allows nothing."""
    faults = []
    for name in dict.fromkeys((*query.by, *(name for name, _ in query.where))):
        try:
            dimension(name)
        except QueryError as error:
            faults.append(str(error))
    return faults + [f"restriction on {name} allows no value" for name, allowed in query.where if not allowed]


def _wrong_times(since_s: float | None, until_s: float | None) -> list[str]:
    """Return a line for each time that is no number, and for a range that holds no time."""
    times = {"since": since_s, "until": until_s}
    faults = [
        f"{name} should be a time, got {time}" for name, time in times.items() if time is not None and math.isnan(time)
    ]
    if not faults and since_s is not None and until_s is not None and until_s <= since_s:
        faults.append(f"until should be after since, {since_s:g} s, got {until_s:g} s")
    return faults


def _printable(text: str) -> str:
    """Return text on one line, shortened to 60 characters."""
    safe = "".join(character if character.isprintable() else "�" for character in text)
    return safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"
