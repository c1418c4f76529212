"""What a page is asked: the parameters of a URL, checked, and the URL of a refined question."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlencode

from analysis.profiling.query import Query, QueryError
from models.errors import WscError
from scenarios.files.faults import FaultsError
from scenarios.files.options import PointInTime, moment, moment_or_point, time_since

_T = TypeVar("_T")
_D = TypeVar("_D")
Pairs = Iterable[tuple[str, str]]
Restrictions = tuple[tuple[str, tuple[str, ...]], ...]

MOST_ROWS = 10_000
"""Rows of a table, at most."""
_LONGEST, _MOST_VALUES, _MOST_KEYS = 500, 100, 5
_TIMES, _SIDES = frozenset({"since", "until", "at"}), frozenset({"a", "b"})
_FIELDS = frozenset({"event", "by", "where", "since", "until", "top"})


class RefusedError(WscError):
    """A page cannot be made of what was asked; `problems` has one line each, `status` is that of HTTP.

    Examples
    --------
    >>> raise RefusedError(["top: should be a whole number"])
    Traceback (most recent call last):
    scenarios.web.parameters.RefusedError: top: should be a whole number
    """

    def __init__(self, problems: Iterable[str], status: int = 400) -> None:
        self.problems = list(problems)
        self.status = status
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class PageQuery:
    """One query, how many of its rows are wanted, and what the page has in addition."""

    query: Query
    top: int = 50
    more: Mapping[str, str] = field(default_factory=dict)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the parameters that ask the same again, defaults left out."""
        query = self.query
        times = [("since", query.since_s), ("until", query.until_s)]
        return [
            ("event", query.event),
            *(("by", key) for key in query.by),
            *(("where", f"{key}={value}") for key, values in query.where for value in values),
            *((name, f"{seconds:.15g}") for name, seconds in times if seconds is not None),
            ("top", str(self.top)),
            *self.more.items(),
        ]

    def url(self, path: str, more: Iterable[tuple[str, str]] = ()) -> str:
        """Return the URL of a page about the same query, with parameters in addition."""
        return f"{path}?{urlencode([*self.pairs(), *more])}"

    def about(self, event: str) -> "PageQuery":
        """Return the same of another event."""
        return replace(self, query=replace(self.query, event=event))

    def grouped(self, *by: str) -> "PageQuery":
        """Return the same by other keys.

        Examples
        --------
        >>> PageQuery(Query()).grouped("platform", "day").query.by
        ('platform', 'day')
        """
        return replace(self, query=replace(self.query, by=by))

    def only(self, key: str, value: str) -> "PageQuery":
        """Return the same restricted to one value of a key, which stands in place of what was allowed of that key."""
        others = tuple(pair for pair in self.query.where if pair[0] != key)
        return replace(self, query=replace(self.query, where=(*others, (key, (value,)))))

    def without(self, key: str) -> "PageQuery":
        """Return the same with every value of a key allowed."""
        others = tuple(pair for pair in self.query.where if pair[0] != key)
        return replace(self, query=replace(self.query, where=others))


def read(pairs: Pairs, default: Query | None = None, top: int = 50, more: Collection[str] = ()) -> PageQuery:
    """Return what a URL's parameters ask.

    Parameters
    ----------
    pairs : name and value of each parameter, decoded; empty values count as not given
    default : what holds where nothing is given
    top : rows unless given
    more : names of parameters that the page has in addition, each at most once
    """
    default = default or Query()
    problems = list[str]()
    values = gather(pairs, {*_FIELDS, *more}, problems)
    for name in ("event", "since", "until", "top", *more):
        if len(values.get(name, ())) > 1:
            problems.append(f"{name}: is given {len(values[name])} times")
    by = tuple(key for text in values.get("by", ()) for key in text.split(",") if key)
    if len(by) > _MOST_KEYS:
        problems.append(f"by: at most {_MOST_KEYS} keys, got {len(by)}")
    query: Query | None = None
    first = {name: texts[0] for name, texts in values.items()}
    try:
        query = Query(
            values.get("event", [default.event])[0],
            by or default.by,
            restrictions(values.get("where", ()), "where", problems) or default.where,
            since_s=value_of("since", first, moment, default.since_s, problems),
            until_s=value_of("until", first, moment, default.until_s, problems),
        )
    except QueryError as error:
        problems.extend(str(error).splitlines())
    rows = _rows(values, top, problems)
    if problems or query is None:
        raise RefusedError(problems)
    return PageQuery(query, rows, {name: values[name][0] for name in more if name in values})


def in_seconds(pairs: Pairs, origin_s: float | None) -> list[tuple[str, str]]:
    """Return parameters whose points in time are seconds since the beginning, which is the earliest of them.

    Parameters
    ----------
    pairs : name and value of each parameter
    origin_s : the beginning, in seconds since 1970; None: it has no place in the calendar

    Examples
    --------
    >>> in_seconds([("since", "1970-01-02T01:00"), ("a", "until=2d"), ("b", "since=1970-01-03")], 86400.0)
    [('since', '3600'), ('a', 'until=2d'), ('b', 'since=86400')]
    """
    told, problems = list[tuple[str, str]](), list[str]()
    for name, value in pairs:
        time_of, equals, text = value.partition("=") if name in _SIDES else (name, "", value)
        time = _point(text) if time_of in _TIMES else None
        if time is None:
            told.append((name, value))
            continue
        seconds = value_of(time_of, {time_of: text}, partial(_since, time, origin_s), None, problems)
        told.append((name, f"{time_of if equals else ''}{equals}{max(seconds or 0.0, 0.0):.15g}"))
    if problems:
        raise RefusedError(problems)
    return told


def _since(time: PointInTime, origin_s: float | None, option: str, _: str) -> float | None:
    return time_since(option, time, origin_s)


def _point(text: str) -> PointInTime | None:
    """Return the point in time that a text is; none: it is another time, or none at all."""
    if not text[:1].isdigit() or len(text) > _LONGEST:
        return None
    try:
        time = moment_or_point("", text)
    except FaultsError:
        return None
    return time if isinstance(time, PointInTime) else None


def gather(pairs: Pairs, known: Collection[str], problems: list[str]) -> dict[str, list[str]]:
    """Return the values of each parameter; adds to `problems` what no page takes."""
    values = dict[str, list[str]]()
    unknown = set[str]()
    for name, value in pairs:
        if name not in known:
            unknown.add(name)
        elif len(value) > _LONGEST:
            problems.append(f"{name}: at most {_LONGEST} characters, got {len(value)}")
        elif "\0" in value:
            problems.append(f"{name}: has a character that no name has")
        elif value.strip():
            values.setdefault(name, []).append(value)
    listed = f"there are {', '.join(sorted(known))}" if known else "this page has none"
    problems += [f"{name[:60]}: is no parameter of this page; {listed}" for name in sorted(unknown)]
    return values


def restrictions(texts: Iterable[str], name: str, problems: list[str]) -> Restrictions:
    """Return restrictions written as ``dimension=value``, one value a text; several of one dimension are alternatives.

    Examples
    --------
    >>> restrictions(["platform=a", "function=f,g", "platform=b"], "where", [])
    (('platform', ('a', 'b')), ('function', ('f,g',)))
    """
    allowed = dict[str, list[str]]()
    texts = list(texts)
    if len(texts) > _MOST_VALUES:
        problems.append(f"{name}: at most {_MOST_VALUES} values, got {len(texts)}")
    for text in texts[:_MOST_VALUES]:
        key, equals, value = text.partition("=")
        if not equals:
            problems.append(f"{name}: should be dimension=value, got {text[:60]}")
        elif value not in allowed.setdefault(key.strip(), []):
            allowed[key.strip()].append(value)
    return tuple((key, tuple(values)) for key, values in allowed.items())


def value_of(
    name: str, texts: Mapping[str, str], read: Callable[[str, str], _T], default: _D, problems: list[str]
) -> _T | _D:
    """Return a parameter as an option of the command line is read, or its default; adds to `problems` what is wrong."""
    if name not in texts:
        return default
    try:
        return read(name, texts[name].strip())
    except FaultsError as error:
        problems += [f"{name}: {fault.problem}, got {texts[name].strip()[:60]}" for fault in error.faults]
        return default


def _rows(values: Mapping[str, list[str]], top: int, problems: list[str]) -> int:
    text = values.get("top", [str(top)])[0].strip()
    if text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= MOST_ROWS:
        return int(text)
    problems.append(f"top: should be a whole number from 1 to {MOST_ROWS}, got {text[:60]}")
    return top
