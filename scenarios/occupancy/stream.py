"""`wsc occupancy -`: the Occupancy Law of events that come in on standard input, a finished interval at a time."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import pandas as pd
import typer

from analysis.occupancy.logs.events import Batch, EventReader
from analysis.occupancy.streaming import Stream
from analysis.tables.bytes import ByteSource, portions
from analysis.tables.faults import FileError
from scenarios.files.faults import Fault, FaultsError
from scenarios.occupancy.standard_input import NAME
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Says, Section
from scenarios.views.terminal import console, line, show

INTERVAL_S = 10.0
_LONGEST = 4096
"""A line is cut there, so that memory is bounded."""
_JUMP = 1_000_000
"""So many intervals may be without an event."""
_EPOCH_S = 1e9


class _Line(Conclusion):
    """What is said of a stream at once, on a line."""

    __slots__ = ()

    @abstractmethod
    def text(self) -> str:
        """Return what people read."""

    @abstractmethod
    def payload(self) -> Payload:
        """Return what ``--json`` prints."""

    def section(self) -> Section:
        """Return the line."""
        return Section("", (Says(self.text()),))

    def frame(self) -> pd.DataFrame:
        """Return the numbers in a row."""
        return pd.DataFrame([dict(self.payload())])


@dataclass(frozen=True, slots=True)
class FinishedInterval(_Line):
    """What the law says of an interval that is over; its fields are columns of `analysis.occupancy.law.intervals`."""

    start_s: float
    end_s: float
    service_time_s: float
    queueing_time_s: float
    response_time_s: float
    utilisation: float
    peak: int
    ratio: float

    def text(self) -> str:
        """Return when it was, and the law."""
        return f"{_when(self.start_s)}: {_law(self)}"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {"kind": "interval", **asdict(self)}


@dataclass(frozen=True, slots=True)
class Alert(_Line):
    """An interval of so much queueing, over service, that it is told."""

    start_s: float
    end_s: float
    ratio: float

    def text(self) -> str:
        """Return when it was, and how much."""
        return f"alert: {_when(self.start_s)}: queueing is {self.ratio:.2f} times service"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {"kind": "alert", **asdict(self)}


@dataclass(frozen=True, slots=True)
class FaultyLine(_Line):
    """A line that holds no event, and is left out."""

    fault: Fault

    def text(self) -> str:
        """Return the place and what is wrong there."""
        return str(self.fault)

    def payload(self) -> Payload:
        """Return the place and what is wrong there."""
        return {"kind": "fault", "text": self.text()}


@dataclass(frozen=True, slots=True)
class StreamTotal(_Line):
    """What the law says of all that was heard, and what was left out."""

    servers: int
    events: int
    start_s: float
    end_s: float
    service_time_s: float
    queueing_time_s: float
    response_time_s: float
    utilisation: float
    ratio: float
    peak: int
    present: int
    """Requests that are there at the end."""
    intervals: int
    alerts: int
    late: int
    surplus: int
    """Departures of nobody."""
    faults: int
    """Lines left out."""

    def text(self) -> str:
        """Return the law of all events, and counts of what was unusual."""
        return f"{self.events:,} events until {_when(self.end_s)}: {_law(self)}, {', '.join(self._counts())}"

    def _counts(self) -> Iterator[str]:
        yield f"{self.present:,} present"
        left_out = "line left out" if self.faults == 1 else "lines left out"
        for count, what in ((self.late, "late"), (self.surplus, "departures of nobody"), (self.faults, left_out)):
            if count:
                yield f"{count:,} {what}"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        reason = "events are not requests: departures belong to no arrivals"
        test = {"verdict": "not tested", "reason": reason}
        return {"kind": "total", "servers": self.servers, "servers_test": test, **asdict(self)}


Said = FinishedInterval | Alert | FaultyLine | StreamTotal
Say = Callable[[Said], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """What is asked of a stream."""

    servers: int
    interval_s: float = INTERVAL_S
    alert: float | None = None
    """Queueing over service time from which an interval is told."""
    reorder: int = 0
    """Events held back to be put in order."""
    unit: str | None = None
    """Of times without a header: s, ms, us or ns; None: s."""


@dataclass(slots=True)
class _Total:
    """Sums over what was told, so that nothing else has to be kept."""

    events: int = 0
    faults: int = 0
    intervals: int = 0
    alerts: int = 0
    sums: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("service_time_s", "queueing_time_s", "response_time_s"), 0.0)
    )
    peak: int = 0

    def add(self, rows: pd.DataFrame, alerted: int) -> None:
        """Add intervals."""
        self.intervals += len(rows)
        self.alerts += alerted
        self.peak = max(self.peak, int(rows["peak"].max()) if len(rows) else 0)
        for name in self.sums:
            self.sums[name] = sum(rows[name].tolist(), start=self.sums[name])


def watch(source: ByteSource, watched: Watched, say: Say) -> None:
    """Read events until the input ends or Ctrl-C, and say every finished interval, alert and fault at once.

    The total is said at the end. A faulty line is left out and counted; the first interval begins with the first event.

    Parameters
    ----------
    source : bytes of lines `time,change`
    watched : what is asked
    say : called with each of them

    Raises
    ------
    FaultsError
        At the end if lines were left out or there was no event; at once if the input is of another kind.
    KeyboardInterrupt
        After the total, if that ended it.

    Examples
    --------
    >>> import io
    >>> told = []
    >>> watch(io.BytesIO(b"0,+1\\n1,+1\\n5,-1\\n6,-1\\n"), Watched(servers=1, interval_s=4.0), told.append)
    >>> [(type(line).__name__, line.queueing_time_s) for line in told]
    [('FinishedInterval', 3.0), ('FinishedInterval', 1.0), ('StreamTotal', 4.0)]
    """
    reader = EventReader(watched.unit, _JUMP * watched.interval_s)
    stream: Stream | None = None
    total, interrupted = _Total(), False
    try:
        for lines in _portions(source):
            batch = _read(reader, lines, total, say)
            if stream is None and len(batch.time_s):
                stream = Stream(watched.servers, watched.interval_s, float(batch.time_s[0]), reorder=watched.reorder)
            if stream is not None and len(batch.time_s):
                _tell(stream.feed(batch.time_s, batch.change), watched, total, say)
    except KeyboardInterrupt:
        interrupted = True
    if stream is not None:
        _tell(stream.close(), watched, total, say)
        say(_totals(stream, total))
    if interrupted:
        raise KeyboardInterrupt
    if stream is None:
        raise FaultsError([Fault(NAME, 0, 0, "", "should hold at least one event", "none")])
    if total.faults:
        raise FaultsError([Fault(NAME, 0, 0, "", "every line should be an event", f"{total.faults} left out")])


def printer(json: bool) -> Say:
    """Return how to print what `watch` says, faults to stderr: each as one line of JSON, or as a line of text.

    Parameters
    ----------
    json : whether as JSON

    Examples
    --------
    >>> printer(json=True)(Alert(0.0, 10.0, 2.5))
    {"kind": "alert", "start_s": 0.0, "end_s": 10.0, "ratio": 2.5}
    >>> printer(json=False)(Alert(0.0, 10.0, 2.5))
    alert: 0.0 s: queueing is 2.50 times service
    """
    terminal = console()

    def say(message: Said) -> None:
        if isinstance(message, FaultyLine):
            typer.echo(message.text(), err=True)
        elif json:
            typer.echo(line(message))
        else:
            show(message.section(), terminal)

    return say


def _portions(source: ByteSource) -> Iterator[list[str]]:
    """Yield lines as they come, with those that are there already."""
    for lines in portions(source, _LONGEST):
        yield [line.decode(errors="replace") for line in lines]


def _read(reader: EventReader, lines: list[str], total: _Total, say: Say) -> Batch:
    """Return the events of lines; tell and count those that hold none."""
    try:
        batch = reader.read(lines)
    except FileError as error:
        raise FaultsError(Fault(NAME, *fault[:5]) for fault in error.faults) from None
    faults = [Fault(NAME, *fault[:5]) for fault in batch.faults]
    total.events += len(batch.time_s)
    total.faults += len(faults)
    for fault in faults:
        say(FaultyLine(fault))
    return batch


def _tell(rows: pd.DataFrame, watched: Watched, total: _Total, say: Say) -> None:
    """Say intervals, each with its alert."""
    above = rows["queueing_time_s"] > (math.inf if watched.alert is None else watched.alert) * rows["service_time_s"]
    total.add(rows, int(above.sum()))
    for row, high in zip(rows.to_dict("records"), above, strict=True):
        interval = FinishedInterval(**{str(name): value for name, value in row.items()})
        say(interval)
        if high:
            say(Alert(interval.start_s, interval.end_s, interval.ratio))


def _totals(stream: Stream, total: _Total) -> StreamTotal:
    length_s = stream.now_s - stream.start_s
    service_s = total.sums["service_time_s"]
    return StreamTotal(
        servers=stream.servers,
        events=total.events,
        start_s=stream.start_s,
        end_s=stream.now_s,
        **total.sums,
        utilisation=service_s / (stream.servers * length_s) if length_s > 0 else 0.0,
        ratio=total.sums["queueing_time_s"] / service_s if service_s > 0 else float("nan"),
        peak=total.peak,
        present=stream.jobs,
        intervals=total.intervals,
        alerts=total.alerts,
        late=stream.late,
        surplus=stream.surplus,
        faults=total.faults,
    )


def _law(law: FinishedInterval | StreamTotal) -> str:
    ratio = f"{law.ratio:.2f}" if math.isfinite(law.ratio) else "–"
    return (
        f"{law.utilisation:.1%} busy, service {law.service_time_s:,.1f} s, "
        f"queueing {law.queueing_time_s:,.1f} s, ratio {ratio}, peak {law.peak:,}"
    )


def _when(time_s: float) -> str:
    """Return a time by the calendar if it is one since 1970, else in seconds."""
    if time_s < _EPOCH_S:
        return f"{time_s:,.1f} s"
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
