"""A request log: its requests once it is read, what was seen in it, and which columns of a file hold what."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.logs.clocks import OwnClock
from analysis.tables.bytes import head_of, salvaged, stream_of
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Ints

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of a unit make a second."""
COARSE_STAMPS = "coarse stamps"
"""The finding that stamps are coarser than responses are long."""
FARTHEST_S = 1e15
"""Times further than this from 0, 30 million years, are no times; floats tell eighths of a second there."""

_SPELLED = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "msecs", "millis", "milliseconds"),
    "us": ("us", "usec", "usecs", "micros", "microseconds"),
    "ns": ("ns", "nsec", "nanos", "nanoseconds"),
}
_UNITS = {word: unit for unit, words in _SPELLED.items() for word in words}
_ARRIVAL = ("arrival", "arrival_time", "arr", "arrived", "start", "start_time", "started", "begin", "sent", "submit")
_DEPARTURE = ("departure", "departure_time", "dep", "departed", "end", "end_time", "finish", "finished", "completed")
_DURATION = ("duration", "response_time", "latency", "elapsed", "request_time", "time_taken", "rt", "took")
_STAMP = ("timestamp", "time", "ts", "date", "datetime")
_REQUEST = ("request_id", "req_id", "span_id", "request", "id", "uuid")
_ANYTHING = ("id", "uuid")
"""Names of columns that need not name requests."""
_SEVERAL = re.compile(
    r"(trace|correlation|conversation|session|visitor|user|customer|client|account|tenant|batch|parent)(_?(id|uuid))?"
)
"""Columns whose values have several requests each."""
_TYPE = ("type", "class", "cls", "kind")
FEW = 30
LONG, FAR = 10.0, 1e5
"""Times the length of a log that half of its durations, and any of them, may take."""
_EPOCH = {"s": 1e9, "ms": 1e12, "us": 1e15, "ns": 1e18}
"""Times since 1970 lie between once and ten times these from 2001 to 2286."""


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Something about a log: what, in how many requests, what it is seen by and what was done."""

    name: str
    count: int
    evidence: str
    done: str

    def __str__(self) -> str:
        return f"{self.name} ({counted(self.count, 'request')}); {self.evidence}; {self.done}"


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A request log: its requests, and what a reader should know about how it was understood."""

    table: pd.DataFrame
    """Columns `arrival_s` and `departure_s`, NaN where it was not seen; perhaps `type`, `request` and `priority`.

    Further ones, where they matter: `id`, which may name requests or something else; `rest`, a number for all else that
    the file says of each, if rows have times in common, and `own`, the same without columns that name what has several
    requests, if there are any; `stamp_s`, the stamp as written, if times were put between ticks; `cancelled`, which
    left without service.
    """
    notes: tuple[str, ...] = ()
    origin_s: float = 0.0
    """What the times count from, in seconds since 1970; 0 if they are the file's own."""
    resolution_s: float = 0.0
    """What stamps were multiples of, in seconds, before they were put between; 0: they are as the file has them."""
    findings: tuple[LogFinding, ...] = ()
    """What the reader saw that `clean` cannot see."""
    fields: pd.DataFrame | None = None
    """What else the file says of each row of the table, if that was wanted."""
    clock: OwnClock | None = None
    """The clock that stamps were written by, if they say their offset from UTC and it was wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """A log that the law can be applied to."""

    arrival_s: Floats
    """(n,) seconds, none missing."""
    departure_s: Floats
    """(n,) the same requests' departures if the log has pairs, NaN: unfinished; (d,) sorted ones if it has not."""
    findings: tuple[LogFinding, ...]
    repaired: int
    """Requests that were changed, added or left out."""
    paired: bool
    """Whether departures belong to arrivals."""
    priority: Ints | None = None
    """(n,) class of each request, 0 served first, if the log has them and pairs."""
    tick_s: float = 0.0
    """What stamps are multiples of, or were before a reader put them between; 0: of nothing."""
    label: tuple[str, ...] | None = None
    """(n,) to what each request belongs, if classes are compared and the log has pairs."""

    @property
    def coarse(self) -> bool:
        """Whether most departures were put between stamps that are coarser than responses are long."""
        return any(finding.name == COARSE_STAMPS for finding in self.findings)

    @property
    def unfinished(self) -> int:
        """Requests that have not left at the end."""
        return len(self.arrival_s) - int(np.count_nonzero(~np.isnan(self.departure_s)))


def counted(count: int, noun: str) -> str:
    """Return so many of something, with its plural in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_seconds(value_s: float) -> str:
    """Return a time in seconds with four digits, or all before the point.

    Examples
    --------
    >>> in_seconds(0.25), in_seconds(40_000.0)
    ('0.25 s', '40,000 s')
    """
    return f"{value_s:,.0f} s" if value_s >= 1000 else f"{value_s:.4g} s"


def content_of(path: Path) -> bytes:
    """Return the whole text of a log, unpacked if it is packed; refuse one that is cut off or damaged.

    Lines that end in a carriage return alone, as the first does then, end in a line feed in what is returned.
    """
    with stream_of(path) as source:
        content, damage = salvaged(source)
    if damage is not None:
        raise FileError([damage.fault(content.count(b"\n"))])
    return content.replace(b"\r", b"\n") if _ends_in_returns(head_of(path)) else content


def _ends_in_returns(head: bytes) -> bool:
    """Return whether lines of a log that begins so end in a carriage return alone: the first does."""
    return b"\r" in head.partition(b"\n")[0].rstrip(b"\r")


def begin_of(path: Path) -> bytes:
    """Return the beginning of a log, as `head_of`; refuse one that is empty or of which nothing can be unpacked."""
    head = head_of(path)
    if not head:
        content_of(path)
        raise FileError([FileFault(0, 0, "", "is empty", "")])
    return head


def pieces_of(path: Path, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield a log's text in pieces of about so many bytes, whole lines, and how many lines each has; refuse damage.

    Lines that end in a carriage return alone, as the first does then, end in a line feed in what is yielded.
    """
    rest, lines, damage = b"", 0, None
    old = _ends_in_returns(head_of(path))
    with stream_of(path) as source:
        while damage is None:
            content, damage = salvaged(source, size)
            if not content:
                break
            content = content.replace(b"\r", b"\n") if old else content
            end = content.rfind(b"\n")
            if end < 0:
                rest += content
                continue
            piece = b"".join((rest, memoryview(content)[:end]))
            lines += piece.count(b"\n") + 1
            yield piece, piece.count(b"\n") + 1
            rest = content[end + 1 :]
    if damage is not None:
        raise FileError([damage.fault(lines)])
    if rest:
        yield rest, rest.count(b"\n") + 1


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What was said of a log that its files do not say themselves."""

    arrival: str | None = None
    departure: str | None = None
    duration: str | None = None
    """Columns of a table, fields of a record. Of an access log one of the first two may be `time`, to say what its
    stamp is, and the last the number or the name of its field."""
    unit: str | None = None
    """s, ms, us or ns of numbers that do not say it themselves."""
    priority: str | None = None
    """Column with the class of each request, 0 served first."""
    form: str | None = None
    """Format string of lines, of nginx's log_format or Apache's LogFormat."""
    upstream: bool = False
    """Whether the time that the servers behind a proxy took is wanted, not that of the proxy."""
    zone: str | None = None
    """Zone of stamps that do not say theirs; None: UTC."""
    fields: bool = False
    """Whether what else each row says is wanted, to choose rows and to compare classes."""

    def stated(self) -> tuple[str | None, ...]:
        """Return the columns that were named."""
        return self.arrival, self.departure, self.duration, self.priority


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of the columns that hold what; two of the first three are there."""

    arrival: str | None = None
    departure: str | None = None
    duration: str | None = None
    request: str | None = None
    type: str | None = None
    priority: str | None = None

    def times(self) -> list[str]:
        """Return the columns that hold times."""
        return [name for name in (self.arrival, self.departure, self.duration) if name is not None]

    def classes(self) -> list[str]:
        """Return the column that holds priorities, if there is one."""
        return [self.priority] if self.priority is not None else []

    def labels(self) -> list[str]:
        """Return the columns that hold names of requests and of their types."""
        return [name for name in (self.request, self.type) if name is not None]


def roles(
    names: Sequence[str],
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    priority: str | None = None,
) -> Roles:
    """Return which columns hold what: those that were said, and those whose names are common for the rest.

    A time stamp of no telling name beside a duration may be a request's start or its end, and which makes a
    difference; so it has to be said. So has a column of priorities, since 0 is served first here, and last elsewhere.

    Parameters
    ----------
    names : the file's columns
    arrival, departure, duration, priority : names that were said
    """
    options = {"--arrival": arrival, "--departure": departure, "--duration": duration, "--priority": priority}
    faults = list(_contradictions({option: name for option, name in options.items() if name is not None}))
    if faults:
        raise FileError(faults)
    stated = [name for name in options.values() if name is not None]
    missing = [name for name in stated if name not in names]
    if missing:
        raise FileError([_lacking(name, names) for name in missing])
    free = [name for name in names if name not in stated]
    came = arrival or (None if departure and duration else _named(free, _ARRIVAL))
    left = departure or (None if arrival and duration else _named(free, _DEPARTURE))
    took = duration or (None if came and left else _named(free, _DURATION))
    if came and left:
        took = None
    if sum(name is not None for name in (came, left, took)) < 2:
        raise FileError([_unsaid(names, free, took)])
    return Roles(came, left, took, _named(free, _REQUEST), _named(free, _TYPE), priority)


def _contradictions(stated: Mapping[str, str]) -> Iterator[FileFault]:
    """Yield what is wrong with options whatever the file has: a column for two of them, three times where two do."""
    first = dict[str, str]()
    for option, name in stated.items():
        if name in first:
            yield FileFault(1, 1, option, f"should be another column than that of {first[name]}", name)
        first.setdefault(name, option)
    if {"--arrival", "--departure", "--duration"} <= set(stated):
        shown = f"{stated['--arrival']}, {stated['--departure']} and {stated['--duration']}"
        yield FileFault(1, 1, "--duration", "should not be given beside --arrival and --departure", shown)


def _lacking(name: str, names: Sequence[str]) -> FileFault:
    return FileFault(1, 1, name, "column is missing", f"columns {', '.join(names)}")


def _unsaid(names: Sequence[str], free: Sequence[str], took: str | None) -> FileFault:
    """Return what is missing: which end a stamp marks, or any two columns of times."""
    stamp = _named(free, _STAMP)
    if stamp and took:
        return FileFault(1, 1, stamp, "is it a start (--arrival) or an end (--departure)?", "either")
    shown = ", ".join(names)
    if len(names) == 1 and re.search(r"[;\t|]", shown):
        return FileFault(1, 1, "columns", "should be separated by commas", shown)
    what = "two of --arrival, --departure and --duration should be given"
    return FileFault(1, 1, "columns", what, f"columns {shown}")


def _named(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the column whose name, without its unit, comes first among the known ones."""
    bare = {_parts(name)[0]: name for name in reversed(names)}
    return next((bare[word] for word in known if word in bare), None)


def _parts(name: str) -> tuple[str, str | None]:
    """Return a column's name in lower case without its unit, and the unit."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("µ", "u")
    words = [word for word in re.split(r"[^a-z0-9]+", snake) if word]
    unit = _UNITS.get(words[-1]) if len(words) > 1 else None
    return "_".join(words[:-1] if unit else words), unit


def names_requests(name: str) -> bool:
    """Return whether a column's name says that each request has one of its values, as `id` alone does not.

    Examples
    --------
    >>> names_requests("requestId"), names_requests("id")
    (True, False)
    """
    bare = _parts(name)[0]
    return bare in _REQUEST and bare not in _ANYTHING


def names_several(name: str) -> bool:
    """Return whether a column's values have several requests each: a trace, a session, a user.

    Examples
    --------
    >>> names_several("traceId"), names_several("user"), names_several("request_id")
    (True, True, False)
    """
    return _SEVERAL.fullmatch(_parts(name)[0]) is not None


def unit_of(name: str, values: Floats, stated: str | None = None) -> tuple[str, str]:
    """Return the unit of a column of numbers, and a note if it was neither in the name nor said.

    The name comes first. Numbers that all lie where times since 1970 do are such times, whose size tells the unit.
    Otherwise it is what was said, or seconds.

    Parameters
    ----------
    name : the column's name, such as `arr_ms`, `latency (us)` or `durationMs`
    values : its numbers, NaN where there is none
    said : s, ms, us or ns

    Raises
    ------
    FileError
        If the name says another unit than was said.

    Examples
    --------
    >>> unit_of("arr_ms", np.array([0.0, 12.0]))
    ('ms', '')
    >>> unit_of("start", np.array([1.7e9, 1.7e9 + 60]), "ms")
    ('s', 'column start is read as seconds since 1970')
    >>> unit_of("took", np.array([0.2]))
    ('s', 'column took is read as seconds; --unit says another')
    """
    named = _parts(name)[1]
    if named and stated and named != stated:
        raise FileError([FileFault(1, 1, name, f"should be in {stated}, as --unit says", f"a name in {named}")])
    if named:
        return named, ""
    for unit in _EPOCH:
        if count_from_1970(values, unit):
            return unit, f"column {name} is read as {_SPELLED[unit][-1]} since 1970"
    return stated or "s", "" if stated else f"column {name} is read as seconds; --unit says another"


def count_from_1970(values: Floats, unit: str) -> bool:
    """Return whether numbers in a unit all lie where times since 1970 do: between 2001 and 2286.

    Parameters
    ----------
    values : NaN where there is none; the least and the largest are enough
    unit : s, ms, us or ns

    Examples
    --------
    >>> count_from_1970(np.array([1.7e12, np.nan]), "ms"), count_from_1970(np.array([1.7e12]), "s")
    (True, False)
    """
    known, least = values[np.isfinite(values)], _EPOCH[unit]
    return bool(len(known) and least <= known.min() and known.max() < min(10 * least, 2 * known.min()))


def undecided(stamp: str, duration: str, notes: Sequence[str]) -> FileFault | None:
    """Return the fault of durations without a unit beside stamps in milliseconds or less: either unit may be meant.

    Parameters
    ----------
    stamp, duration : names of the columns
    notes : what `unit_of` said of them
    """
    if not any(note.startswith(f"column {duration} is read as seconds;") for note in notes):
        return None
    named = _parts(stamp)[1]
    since = re.compile(rf"column {re.escape(stamp)} is read as (\w+) since 1970$")
    unit = named or next((_UNITS[match[1]] for match in map(since.match, notes) if match), "s")
    if unit == "s":
        return None
    seconds = f"call it {duration}_s" if named else "--unit s"
    problem = f"is it in {unit}, as {stamp} is, or in s? say --unit {unit} or {seconds}"
    return FileFault(1, 1, duration, problem, "a name without a unit")


def too_long(stamp_s: Floats, took_s: Floats) -> int | None:
    """Return the first of the durations that cannot be: far longer than the time between the first and the last stamp.

    They are if half of them are more than ten times as long, or one 100,000 times: the beginning of a log may hold
    long requests only. Fewer than 30 requests, or stamps that are all the same, tell nothing.

    Parameters
    ----------
    stamp_s, took_s : (n,) arrays, seconds; NaN: not seen

    Returns
    -------
    None if all may be.
    """
    known = np.flatnonzero(~np.isnan(stamp_s + took_s))
    if len(known) < FEW:
        return None
    span, took = float(np.ptp(stamp_s[known])), took_s[known]
    times = LONG if float(np.median(took)) > LONG * span else FAR
    far = known[took > times * span]
    return int(far[0]) if span > 0 and len(far) else None


def first_too_long(pieces: Callable[[], Iterable[tuple[Floats, Floats]]]) -> tuple[int, float, float] | None:
    """Return the first of the durations that cannot be, as `too_long` does, of columns that come piece by piece.

    Parameters
    ----------
    pieces : yields stamps and durations, seconds, each time that it is called

    Returns
    -------
    its row, the length of the log and the duration; None if all may be

    Examples
    --------
    >>> stamps = np.arange(40.0)
    >>> first_too_long(lambda: [(stamps[:21], np.full(21, 500.0)), (stamps[21:], np.full(19, 5.0))])
    (0, 39.0, 500.0)
    """
    count, first_s, last_s = 0, np.inf, -np.inf
    for stamp_s, took_s in pieces():
        known = stamp_s[~np.isnan(stamp_s + took_s)]
        count += len(known)
        first_s, last_s = min(first_s, known.min(initial=np.inf)), max(last_s, known.max(initial=-np.inf))
    span_s = float(last_s - first_s)
    if count < FEW or not span_s > 0:
        return None
    longer, below_s, above_s = 0, -np.inf, np.inf
    for stamp_s, took_s in pieces():
        known = took_s[~np.isnan(stamp_s + took_s)]
        far = known > LONG * span_s
        longer += int(np.count_nonzero(far))
        below_s, above_s = max(below_s, known[~far].max(initial=-np.inf)), min(above_s, known[far].min(initial=np.inf))
    # The median of an even number is between the two in the middle.
    usual = 2 * longer > count or (2 * longer == count and (below_s + above_s) / 2 > LONG * span_s)
    row = 0
    for stamp_s, took_s in pieces():
        far = ~np.isnan(stamp_s) & (took_s > (LONG if usual else FAR) * span_s)
        if far.any():
            return row + int(np.argmax(far)), span_s, float(took_s[np.argmax(far)])
        row += len(took_s)
    return None
