"""Access logs of web servers and proxies: a line for each request, with the time that it took."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import union_categoricals

from analysis.occupancy.logs.clocks import NO_OFFSET, own_clock, quarters_of
from analysis.occupancy.logs.hygiene import any_twice, might_repeat
from analysis.occupancy.logs.log import FARTHEST_S, PER_SECOND, Log, LogFinding, counted, pieces_of, too_long
from analysis.occupancy.logs.records import RARE, left_out
from analysis.occupancy.logs.scanner import EMPTY, SURE, UNSURE, Scanned, digests, scan, unscanned
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats, Ints, Small, UInts

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FIELD = rf"(?:[^\" ]|{_QUOTED})+"
_NUMBER = r"\d+(?:\.\d+)?"
_WORD = (  # a field that is no number
    rf'(?:(?:[^" ]|{_QUOTED})*(?:[^" 0-9.]|{_QUOTED})(?:[^" ]|{_QUOTED})*'
    r"|\.[0-9.]*|[0-9.]*\.|[0-9]*\.[0-9]*\.[0-9.]*)"
)
_TIME = r"[-+.:/ 0-9A-Za-z]+"  # $time_local, $time_iso8601, $msec
_REQUEST = rf"\] {_QUOTED} \d{{3}} (?:\d+|-)"  # the common format up to the bytes


class Form(NamedTuple):
    """How the lines of a log are built around time and duration: regular expressions (RE2 syntax)."""

    name: str
    before: str
    """Up to the time."""
    between: str
    duration: str
    after: str
    unit: str | None = None
    """Of durations; None: seconds with a decimal point, as nginx writes them, or whole microseconds as Apache does."""
    by_end: bool = False
    """Whether the time is the request's end; where the unit is None the decimal point tells."""
    upstream: str | None = None
    """What follows the duration up to the time of the server behind the proxy, which is `after` beyond that."""

    def pattern(self) -> str:
        """Return what matches a line and names its time and its duration."""
        return rf"^{self.before}(?P<time>{_TIME}){self.between}(?P<duration>{self.duration}){self.after}\r?$"

    def behind(self) -> str:
        """Return what matches the beginning of a line up to the time of the server behind, and names it."""
        tried = r"[-0-9.]+(?:(?:, | : )[-0-9.]+)*"
        return rf"^{self.before}{_TIME}{self.between}{self.duration}{self.upstream}(?P<upstream>{tried})"

    def others(self) -> str:
        """Return what matches a line and numbers what is around its time and its duration."""
        return rf"^({self.before}){_TIME}({self.between}){self.duration}({self.after})\r?$"


_HEAD = r'[^"]*\['
SINGLE = Form("single", _HEAD, rf"{_REQUEST}(?: {_WORD})* ", _NUMBER, rf"(?: {_WORD})*")
FORMS = (
    Form(  # log_format upstreaminfo, Log format in the user guide of ingress-nginx
        "ingress-nginx's default format",
        _HEAD,
        rf"{_REQUEST} {_QUOTED} {_QUOTED} \d+ ",
        _NUMBER,
        r" \[[^\]]*\](?: \[[^\]]*\])? .*",
        "s",
        by_end=True,
        upstream=r" \[[^\]]*\](?: \[[^\]]*\])? (?:-|[^ ]+(?:, [^ ]+)*) (?:-|[0-9]+(?:, [0-9]+)*) ",
    ),
    Form(  # Default format string, Access logging in Envoy's documentation; Istio's adds three fields
        "Envoy's default format",
        r"\[",
        rf"\] {_QUOTED} (?:\d{{1,3}}|-) (?:-|[A-Z][A-Za-z0-9,]*) (?:[^\" ]+ [^\" ]+ {_QUOTED} )?\d+ \d+ ",
        r"\d+",
        r' (?:\d+|-) ".*',
        "ms",
        upstream=" ",
    ),
    Form(  # Common Log Format, Access logs in Traefik's documentation
        "Traefik's common format",
        _HEAD,
        rf'\] ".*" (?:\d+|-) (?:\d+|-) .*(?:{_QUOTED}|-) (?:\d+|-) (?:{_QUOTED}|-) (?:{_QUOTED}|-) ',
        r"\d+",
        "ms",
        "ms",
    ),
    Form("named", _HEAD, rf"{_REQUEST}(?: .*)? (?:rt|request_time)=", _NUMBER, "(?: .*)?"),
    SINGLE,
)
"""The formats that are known, and the common or the combined one with the duration after it; the first that fits."""
_SEVERAL = rf"^{_HEAD}{_TIME}{_REQUEST}(?: {_FIELD})* {_NUMBER}(?: {_FIELD})* {_NUMBER}(?: {_FIELD})*\r?$"
"""Lines with several numbers after the bytes, of which any could be the duration."""
_STAMPED = rf"^{_HEAD}{_TIME}{_REQUEST}"
"""Lines of an access log, whatever follows the bytes."""
_SAID = "the form that --duration says"
_TRIED = 10_000
"""Lines from the beginning that show which form a log has."""
LISTENER = (
    "an access log stamps requests when they are accepted: the wait in the accept queue before that is not counted"
)
_BEHIND = "times are those of the servers behind the proxy: from the request's arrival, for as long as they took"
_ABOUT = r'^(?:(?P<remote>[^ \[]+) .*?)?\[[^\]]*\] "(?P<method>[A-Z]+) (?P<path>[^ ?"]*)[^"]*" (?P<status>\d{1,3}|-)'
_ABOUT_NAMES = ("remote", "method", "path", "status")
_REMEDY = "add $request_time to log_format (%D in Apache), see docs/own-requests.md step 1"
MOST_DISORDER = 0.01
"""Share of lines that may end before one above them in a log that is in order of completion."""
HALF_ADDED = "the lines are not in order of completion, so half a second is added to each"
PUT_BETWEEN = "departures are put where the order of the lines leaves room for them"
_FEW = 30
"""Lines that may have the same number by chance."""
NGINX_DECIMALS = 3
_PIECE_BYTES = 1 << 24
"""Of a log's text that are read at a time."""


def read_access_log(
    path: Path,
    time: str | None = None,
    unit: str | None = None,
    duration: str | None = None,
    *,
    upstream: bool = False,
    fields: bool = False,
) -> Log:
    """Read an access log: nginx or Apache with the duration after the bytes, ingress-nginx, Envoy, Istio or Traefik.

    nginx stamps a request when it ends and gives its time in seconds with three decimals ($request_time; module
    ngx_http_log_module). Apache stamps it when it starts (%t) and gives whole microseconds (%D) or seconds (%T, which
    needs `unit`; module mod_log_config). So the decimal point tells them apart. The default formats of ingress-nginx
    (end, seconds), Envoy (start, milliseconds) and Traefik (start, milliseconds) are known by their fields. Where
    stamps are whole seconds, departures are put where the order of the lines, which is that of completion, leaves room
    for them.

    Parameters
    ----------
    path : the file, plain or gzipped
    time : arrival or departure, if the stamp is not what it is by default
    unit : s, ms, us or ns of the durations, if it is not the default
    duration : which field it is, if several could be: the number of a number after the bytes, from 1, or the name of a
        field `name=0.25`
    upstream : whether the time of the servers behind a proxy is wanted, where the form has it: from the arrival at the
        proxy, without the time that the proxy and the client took
    fields : whether what the lines say beside the times is wanted: remote, method, path (without a query), status

    Examples
    --------
    >>> import tempfile
    >>> line = '::1 - - [10/Oct/2023:13:55:3{} +0000] "GET / HTTP/1.1" 200 5 "-" "curl" {}\\n'
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text(line.format(6, "0.500") + line.format(7, "0.250"))
    ...     log = read_access_log(Path(file.name))
    >>> log.table.to_numpy().tolist(), log.origin_s
    ([[0.0, 0.5, 0.0], [1.25, 1.5, 1.0]], 1696946136.0)
    """
    form = form_of(path, duration)
    stated_unit = unit_in(form, unit)
    read = _read(path, form, upstream=upstream, fields=fields)
    nginx = form.by_end or bool(np.count_nonzero(read.decimals >= 0) * 2 > np.count_nonzero(~np.isnan(read.took)))
    per_second = PER_SECOND[stated_unit or ("s" if nginx else "us")]
    known = (np.abs(read.stamp_s) <= FARTHEST_S) & (read.took <= FARTHEST_S * per_second)
    whole = int(np.count_nonzero(read.other != NOTHING))
    other = np.flatnonzero(~known & (read.other != NOTHING))
    notes, findings = skipped(path, other, read.other[other].astype(np.int64), whole, form)
    by_end = time == "departure" if time else nginx
    stamp_s, took_s, rest = read.stamp_s[known], read.took[known], read.rest[known]
    if form is SINGLE and not stated_unit:
        decimals = read.decimals[known]
        varies = bool(np.ptp(took_s) != 0)
        unlike = int(np.count_nonzero(decimals != NGINX_DECIMALS))
        doubts = doubtful(len(took_s), f"{took_s[0]:.{max(decimals[0], 0)}f}", varies, unlike, nginx=nginx)
    clock = own_clock(stamp_s, read.quarters[known])
    about = None if read.about is None else read.about[known].reset_index(drop=True)
    behind_s = None if read.upstream is None else read.upstream[known] / PER_SECOND[stated_unit or "s"]
    del read
    took_s /= per_second
    origin = float(np.floor(stamp_s.min()))
    stamp_s -= origin
    if not stated_unit:
        row = too_long(stamp_s, took_s)
        if row is not None:
            refuse_long(int(np.flatnonzero(known)[row]) + 1, float(np.ptp(stamp_s)), float(took_s[row]))
        findings += doubts if form is SINGLE else []
    notes += [understood_lines(form, nginx, by_end, stated_unit or ("s" if nginx else "us")), LISTENER]
    end_s, resolution_s = stamp_s if by_end else stamp_s + took_s, 0.0
    moved = np.array_equal(stamp_s, np.floor(stamp_s))
    if moved:
        resolution_s = 1.0
        end_s, how = within_seconds(end_s)
        notes.append(moved_note(how))
    table = pd.DataFrame({"arrival_s": end_s - took_s, "departure_s": end_s}, copy=False)
    if moved:
        table["stamp_s"] = stamp_s
    if might_repeat(stamp_s, stamp_s + took_s):
        table["rest"] = _rest(stamp_s, took_s, rest)
    if behind_s is not None:
        reached = ~np.isnan(behind_s)
        table = table.assign(departure_s=table["arrival_s"] + behind_s)[reached].reset_index(drop=True)
        about = None if about is None else about[reached].reset_index(drop=True)
        notes += behind_notes(int(np.count_nonzero(~reached)))
    return Log(table, tuple(notes), origin, resolution_s, tuple(findings), about, clock)


def unit_in(form: Form, unit: str | None) -> str | None:
    """Return the unit of durations that was said, or that the form has; refuse another one than the form's."""
    if form.unit and unit not in {None, form.unit}:
        raise FileError([FileFault(1, 1, "--unit", f"should be {form.unit}, as in {form.name}", str(unit))])
    return unit or form.unit


def refuse_upstream(form: Form) -> None:
    """Raise the fault of a form that does not say how long the servers behind a proxy took."""
    if form.upstream is None:
        problem = "needs a log of ingress-nginx or Envoy; say --duration urt for a field urt=, or a --format"
        raise FileError([FileFault(1, 1, "--upstream", problem, "another form")])


def behind_notes(without: int) -> list[str]:
    """Return the notes on times of the servers behind a proxy, which so many requests did not reach."""
    return [_BEHIND, *([f"{counted(without, 'request')} reached no server, left out"] if without else [])]


def moved_note(how: str) -> str:
    """Return the note that stamps were put between whole seconds, given how."""
    return f"stamps are whole seconds: {how}; durations are exact, so is the aggregate response time"


@dataclass(frozen=True, slots=True, eq=False)
class AccessLines:
    """What was read of n lines, piece by piece; units are not known yet."""

    stamp_s: Floats
    """(n,) since 1970; NaN: it has none, or is of another form."""
    took: Floats
    """(n,) the duration as it is written; NaN alike."""
    rest: UInts
    """(n,) digest of all that the line says beside the two."""
    decimals: Small
    """(n,) digits behind the duration's point; -1: it has none."""
    other: Small
    """(n,) why it is of another form: bits `_BELOW`, `_MANY`, `_DATED`; 0: it is of it, `NOTHING`: it is empty."""
    upstream: Floats | None
    """(n,) the time of the servers behind as it is written, if that is wanted; NaN: none was reached."""
    about: pd.DataFrame | None
    """What the lines say beside the times, if that is wanted."""
    quarters: Small
    """(n,) quarters of an hour by which the stamp is ahead of UTC; `NO_OFFSET`: it does not say."""


_BELOW, _MANY, _DATED, NOTHING = 1, 2, 4, -1
"""A line of another form is of it with a duration below 0, has several numbers, or is that of an access log at all."""


def _read(path: Path, form: Form, *, upstream: bool, fields: bool) -> AccessLines:
    """Read a log in pieces of its lines, so that its text is never held as a whole."""
    if upstream:
        refuse_upstream(form)
    pieces = [
        lines_in(piece, count, form, upstream=upstream, fields=fields) for piece, count in pieces_of(path, _PIECE_BYTES)
    ]
    return AccessLines(
        np.concatenate([piece.stamp_s for piece in pieces]),
        np.concatenate([piece.took for piece in pieces]),
        np.concatenate([piece.rest for piece in pieces]),
        np.concatenate([piece.decimals for piece in pieces]),
        np.concatenate([piece.other for piece in pieces]),
        np.concatenate([piece.upstream for piece in pieces if piece.upstream is not None]) if upstream else None,
        _stacked([piece.about for piece in pieces if piece.about is not None]) if fields else None,
        np.concatenate([piece.quarters for piece in pieces]),
    )


def _stacked(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of categories below one another."""
    return pd.DataFrame({name: union_categoricals([table[name] for table in tables]) for name in tables[0]})


def lines_in(piece: bytes, lines: int, form: Form, *, upstream: bool, fields: bool) -> AccessLines:
    """Read some lines: by the scanner those that it is sure of, the others by the form's regular expression."""
    text = np.frombuffer(piece, np.uint8)
    scanned = scan(text, lines) if form is SINGLE else unscanned(text, lines)
    stamp_s, quarters = np.full(lines, np.nan), np.full(lines, NO_OFFSET, np.int8)
    sure, unsure = np.flatnonzero(scanned.kind == SURE), np.flatnonzero(scanned.kind == UNSURE)
    if len(sure):
        stamps, offsets = _stamps(pa.array([piece[begin:end] for begin, end in scanned.stamps], pa.large_binary()))
        stamp_s[sure], quarters[sure] = stamps[scanned.stamp[sure]], offsets[scanned.stamp[sure]]
    took, decimals, rest = scanned.took, scanned.decimals, scanned.rest
    other = np.where(scanned.kind == EMPTY, NOTHING, 0)
    if len(unsure):
        left = _array(piece, scanned, unsure)
        parts = pc.extract_regex(left, form.pattern())
        texts = pc.struct_field(parts, "duration").cast(pa.string())
        stamp_s[unsure], quarters[unsure] = _stamps(pc.struct_field(parts, "time"))
        took[unsure] = pc.fill_null(texts.cast(pa.float64()), np.nan).to_numpy(False)
        decimals[unsure] = _decimals(texts)
        rest[unsure] = _digests(pc.replace_substring_regex(left, form.others(), r"\1\2\3"))
        unread = np.isnan(stamp_s[unsure]) | np.isnan(took[unsure])
        other[unsure[unread]] = _why(left.filter(pa.array(unread)), form)
    every = _array(piece, scanned, np.arange(lines)) if upstream or fields else None
    return AccessLines(
        stamp_s,
        took,
        rest,
        decimals.astype(np.int8),
        other.astype(np.int8),
        _behind(every, form) if upstream else None,
        _about(every) if fields else None,
        quarters,
    )


def _array(piece: bytes, scanned: Scanned, rows: Ints) -> pa.Array:
    """Return some of the lines as texts."""
    if len(rows) == len(scanned.begin) and b"\r" not in piece:
        return pa.array(piece.split(b"\n"), pa.large_binary())
    return pa.array([piece[scanned.begin[row] : scanned.end[row]] for row in rows], pa.large_binary())


def _decimals(texts: pa.Array) -> Ints:
    """Return the digits behind the point of numbers that are written out; -1: there is no point."""
    point = pc.fill_null(pc.find_substring(texts, "."), -1).to_numpy(False).astype(np.int64)
    length = pc.fill_null(pc.binary_length(texts), 0).to_numpy(False).astype(np.int64)
    return np.where(point < 0, -1, length - point - 1)


def _digests(texts: pa.Array) -> UInts:
    _, offsets, content = texts.cast(pa.large_binary()).buffers()
    start = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return digests(np.frombuffer(content or b"", np.uint8), start)


def _why(lines: pa.Array, form: Form) -> Ints:
    """Return why lines are of another form, as bits."""
    below = form._replace(duration=rf"-(?:{form.duration})").pattern()
    bits = {_BELOW: below, _DATED: _STAMPED} | ({_MANY: _SEVERAL} if form is SINGLE else {})
    return sum((bit * _matches(lines, pattern) for bit, pattern in bits.items()), np.zeros(len(lines), np.int64))


def _matches(lines: pa.Array, pattern: str) -> Ints:
    return np.asarray(pc.match_substring_regex(lines, pattern).to_numpy(False), dtype=np.int64)


def _about(lines: pa.Array) -> pd.DataFrame:
    """Return what lines say beside the times."""
    parts = pc.extract_regex(lines, _ABOUT)
    return pd.DataFrame({name: _decoded(pc.struct_field(parts, name)) for name in _ABOUT_NAMES})


def _decoded(column: pa.Array) -> "pd.Series[str]":
    """Return texts as categories, those that are no UTF-8 with marks in place of it; "" where there is none."""
    coded = pc.fill_null(column, b"").dictionary_encode()
    names = [str(cell, errors="replace") for cell in coded.dictionary.to_pylist()]
    places, distinct = pd.factorize(pd.Series(names, dtype=object))
    codes = places[coded.indices.to_numpy(False)]
    return pd.Series(pd.Categorical.from_codes(codes.astype(np.int64), pd.Index(distinct.astype(str))))


def _behind(lines: pa.Array, form: Form) -> Floats:
    """Return how long the servers behind the proxy took, in all if several were tried; NaN: none was."""
    texts = pc.struct_field(pc.extract_regex(lines, form.behind()), "upstream").cast(pa.string()).to_pandas()
    parts = texts.str.split(r"\s*[,:]\s*", regex=True, expand=True).apply(pd.to_numeric, errors="coerce")
    took: Floats = parts.sum(axis=1, min_count=1).to_numpy(dtype=np.float64)
    return took


def within_seconds(earliest_s: Floats) -> tuple[Floats, str]:
    """Return when requests ended that are known to the second, and how that was found, from the order of their lines.

    Request i ended between `earliest_s[i]` and a second later, not before the requests of the lines above it and not
    after those below it. Requests with the same room share it evenly, in order.

    Parameters
    ----------
    earliest_s : (n,) array, seconds: the least that each end can be, in order of the lines
    """
    low = np.maximum.accumulate(earliest_s)
    high = np.minimum.accumulate(earliest_s[::-1])[::-1] + 1.0
    if np.mean(low > high) > MOST_DISORDER:
        return earliest_s + 0.5, HALF_ADDED
    new = np.concatenate(([True], (np.diff(low) != 0) | (np.diff(high) != 0)))
    run = np.cumsum(new) - 1
    size = np.bincount(run)
    place = np.arange(len(low)) - np.flatnonzero(new)[run]
    end_s = low + (high - low) * (place + 0.5) / size[run]
    return end_s, PUT_BETWEEN


def _stamps(texts: pa.Array) -> tuple[Floats, Small]:
    """Return time stamps as seconds since 1970, NaN where there is none, and their offsets; each text is read once."""
    coded = texts.cast(pa.large_string()).dictionary_encode()
    known = pd.Series(coded.dictionary.to_pandas(), dtype=object)
    seconds = pd.to_numeric(known, errors="coerce").astype(float)
    for form in ("%d/%b/%Y:%H:%M:%S %z", "ISO8601"):
        clock = pd.to_datetime(known, format=form, errors="coerce", utc=True)
        seconds = seconds.fillna((clock - pd.Timestamp(0, tz="UTC")).dt.total_seconds())
    codes = pc.fill_null(coded.indices, len(known)).to_numpy(False)
    quarters = np.array([*(quarters_of(text) for text in known), NO_OFFSET], dtype=np.int8)
    return np.asarray(np.append(seconds.to_numpy(), np.nan)[codes], dtype=np.float64), quarters[codes]


def form_of(path: Path, duration: str | None) -> Form:
    """Return the form of most lines at the beginning; of single numbers if there is none."""
    if duration is not None:
        return _said(duration)
    piece = next(pieces_of(path, _PIECE_BYTES), (b"", 0))[0]
    head = pa.array(piece.split(b"\n", _TRIED)[:_TRIED], pa.large_binary())
    fits = [int(_matches(head, form.pattern()).sum()) for form in FORMS]
    return FORMS[int(np.argmax(fits))] if max(fits) else SINGLE


def _said(duration: str) -> Form:
    """Return the form with the duration in a field that was said: by its number among numbers, or by its name."""
    if duration.isdecimal() and int(duration) > 0:
        between = rf"{_REQUEST}(?:(?: {_WORD})* {_NUMBER}){{{int(duration) - 1}}}(?: {_WORD})* "
        return Form(_SAID, _HEAD, between, _NUMBER, rf"(?: {_FIELD})*")
    return Form(_SAID, _HEAD, rf'{_REQUEST}(?: .*)? {re.escape(duration)}[=:]"?', _NUMBER, '"?(?: .*)?')


def _refuse_several(path: Path, other: Ints, why: Ints, whole: int) -> None:
    """Raise the fault of other lines, if they hold several numbers, which says how to settle it."""
    several = other[why & _MANY > 0]
    if len(several) <= RARE * whole:
        return
    number = int(several[0]) + 1
    tail = re.sub(rf"^{_HEAD}{_TIME}{_REQUEST}", "", _text(path, number))
    numbers = [field for field in re.findall(_FIELD, tail) if re.fullmatch(_NUMBER, field)]
    options = " or ".join(f"--duration {place}" for place in range(1, len(numbers) + 1))
    what = f"which of its {len(numbers)} numbers is the duration? say {options} ({len(several):,} such lines)"
    raise FileError([FileFault(number, 1, "line", what, f'"{" ".join(numbers)}"')])


def _text(path: Path, number: int) -> str:
    """Return a line by its number, from 1."""
    for piece, lines in pieces_of(path, _PIECE_BYTES):
        if number <= lines:
            return piece.split(b"\n", number)[number - 1].decode(errors="replace")
        number -= lines
    return ""


def refuse_long(line: int, span_s: float, took_s: float) -> None:
    """Raise the fault of a duration far longer than the log, which must be something else or in another unit."""
    what = f"should not be far longer than the whole log, {span_s:.4g} s: say --unit, or which field with --duration"
    raise FileError([FileFault(line, 1, "duration", what, f"{took_s:.4g} s")])


def doubtful(count: int, first: str, varies: bool, unlike: int, *, nginx: bool) -> list[LogFinding]:
    """Return what is odd about the only number after the bytes, which is taken for the duration for lack of others.

    Parameters
    ----------
    count : of lines
    first : the number on the first of them
    varies : whether others have another one
    unlike : numbers without the decimals that nginx writes
    nginx : whether it is taken for nginx's
    """
    done = "kept: is that number a duration? --unit says that it is one, and its unit"
    if count > _FEW and not varies:
        evidence = f"the number after the bytes is {first} on all lines"
        return [LogFinding("durations that never vary", count, evidence, done)]
    if nginx and count > _FEW and unlike > 0.5 * count:
        evidence = "the number after the bytes has a decimal point, but not three decimals as nginx's $request_time has"
        return [LogFinding("durations unlike nginx's", unlike, evidence, done)]
    return []


def _rest(stamp_s: Floats, took_s: Floats, rest: UInts) -> UInts:
    """Return a number for all that a line says beside its times; another one for each line if all lines differ."""
    return rest if any_twice(rest, stamp_s, took_s) else np.arange(len(rest), dtype=np.uint64)


def skipped(path: Path, other: Ints, why: Ints, whole: int, form: Form) -> tuple[list[str], list[LogFinding]]:
    """Return notes on lines without a duration that can be, from 1% of them on findings; half of the lines are refused.

    Lines of another form and those with a duration below 0 are counted apart.

    Parameters
    ----------
    path, form : of the log
    other : (n,) places of these lines, from 0
    why : (n,) as `AccessLines.other`
    whole : lines that are not empty
    """
    if form is SINGLE:
        _refuse_several(path, other, why, whole)
    below = why & _BELOW > 0
    if 2 * len(other) >= whole:
        raise FileError([_refused(path, other, why, whole, form)])
    notes, findings = list[str](), list[LogFinding]()
    for rows, name in ((other[~below], "lines of another form"), (other[below], "durations below 0")):
        told, wrong = left_out(rows, whole, name)
        notes += told
        findings += wrong
    return notes, findings


def _refused(path: Path, other: Ints, why: Ints, whole: int, form: Form) -> FileFault:
    """Return the fault of a log half of whose lines have no duration that can be, with their number."""
    if 2 * np.count_nonzero(why & _BELOW) >= len(other):
        problem, other = "the duration should be at least 0", other[why & _BELOW > 0]
    elif form.name == _SAID:
        problem = "should be a line of an access log with the duration where --duration says"
    elif len(other) == whole and np.mean(why & _DATED > 0) > 0.5:
        problem = f"no line has a duration: {_REMEDY}"
    else:
        problem = f"should be a line of an access log that ends in the request's duration; if it has none, {_REMEDY}"
    number = int(other[0]) + 1 if len(other) else 1
    count = f" ({len(other):,} of {counted(whole, 'line')})"
    return FileFault(number, 1, "line", problem + count, f'"{_text(path, number)[:60]}"')


def understood_lines(form: Form, nginx: bool, by_end: bool, unit: str) -> str:
    """Return the note on how lines were read."""
    kind = "with a decimal point, as nginx writes them" if nginx else "whole numbers, as Apache writes them"
    where = f"lines are in {form.name}, durations" if form.unit else f"durations are {kind}:"
    return f"{where} read in {unit}, with stamps of the request's {'end' if by_end else 'start'}"
