"""`wsc occupancy -`: the Occupancy Law of events that come in on standard input, a finished interval at a time."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BufferedIOBase
from typing import Any

import pandas as pd
import typer
from rich.console import Console

from analysis.occupancy.logs.events import Batch, EventReader
from analysis.occupancy.streaming import Stream
from analysis.tables.bytes import portions
from analysis.tables.faults import FileError
from scenarios.files.faults import Fault, FaultsError
from scenarios.views.output import line

NAME = "stdin"
INTERVAL_S = 10.0
_LONGEST = 4096
"""A line is cut there, so that memory is bounded."""
_JUMP = 1_000_000
"""So many intervals may be without an event."""
_EPOCH_S = 1e9

Say = Callable[[Mapping[str, Any]], None]


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


def watch(source: BufferedIOBase, watched: Watched, say: Say) -> None:
    """Read events until the input ends or Ctrl-C, and say every finished interval, alert and fault at once.

    What is said has a `kind`: interval, alert, fault (its `text` has the place) and at the end total. A faulty line is
    left out and counted; the first interval begins with the first event.

    Parameters
    ----------
    source : bytes of lines `time,change`
    watched : what is asked
    say : called with each payload

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
    >>> [(each["kind"], each["queueing_time_s"]) for each in told]
    [('interval', 3.0), ('interval', 1.0), ('total', 4.0)]
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
    >>> printer(json=True)({"kind": "alert", "start_s": 0.0, "end_s": 10.0, "ratio": 2.5})
    {"kind": "alert", "start_s": 0.0, "end_s": 10.0, "ratio": 2.5}
    """
    console = Console(highlight=False)

    def say(payload: Mapping[str, Any]) -> None:
        if payload["kind"] == "fault":
            typer.echo(payload["text"], err=True)
        elif json:
            typer.echo(line(payload))
        else:
            show_stream(payload, console)

    return say


def show_stream(payload: Mapping[str, Any], console: Console) -> None:
    """Print an interval, an alert or the total on a line.

    Parameters
    ----------
    payload : as `watch` says it; not a fault
    console : to print on

    Examples
    --------
    >>> show_stream({"kind": "alert", "start_s": 0.0, "end_s": 10.0, "ratio": 2.5}, Console())
    alert: 0.0 s: queueing is 2.50 times service
    """
    when = _when(payload["start_s"])
    if payload["kind"] == "alert":
        text = f"alert: {when}: queueing is {payload['ratio']:.2f} times service"
    elif payload["kind"] == "interval":
        text = f"{when}: {_law(payload)}"
    else:
        text = f"{payload['events']:,} events until {_when(payload['end_s'])}: {_law(payload)}, {_rest(payload)}"
    console.print(text, markup=False, soft_wrap=True)


def _portions(source: BufferedIOBase) -> Iterator[list[str]]:
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
        say({"kind": "fault", "text": str(fault)})
    return batch


def _tell(rows: pd.DataFrame, watched: Watched, total: _Total, say: Say) -> None:
    """Say intervals, each with its alert."""
    above = rows["queueing_time_s"] > (math.inf if watched.alert is None else watched.alert) * rows["service_time_s"]
    total.add(rows, int(above.sum()))
    for row, high in zip(rows.to_dict("records"), above, strict=True):
        interval = {str(name): value for name, value in row.items()}
        say({"kind": "interval", **interval})
        if high:
            say({"kind": "alert", **{name: interval[name] for name in ("start_s", "end_s", "ratio")}})


def _totals(stream: Stream, total: _Total) -> dict[str, Any]:
    length_s = stream.now_s - stream.start_s
    service_s = total.sums["service_time_s"]
    return {
        "kind": "total",
        "servers": stream.servers,
        "servers_test": {
            "verdict": "not tested",
            "reason": "events are not requests: departures belong to no arrivals",
        },
        "events": total.events,
        "start_s": stream.start_s,
        "end_s": stream.now_s,
        **total.sums,
        "utilisation": service_s / (stream.servers * length_s) if length_s > 0 else 0.0,
        "ratio": total.sums["queueing_time_s"] / service_s if service_s > 0 else float("nan"),
        "peak": total.peak,
        "present": stream.jobs,
        "intervals": total.intervals,
        "alerts": total.alerts,
        "late": stream.late,
        "surplus": stream.surplus,
        "faults": total.faults,
    }


def _law(payload: Mapping[str, Any]) -> str:
    ratio = f"{payload['ratio']:.2f}" if math.isfinite(payload["ratio"]) else "–"
    return (
        f"{payload['utilisation']:.1%} busy, service {payload['service_time_s']:,.1f} s, "
        f"queueing {payload['queueing_time_s']:,.1f} s, ratio {ratio}, peak {payload['peak']:,}"
    )


def _rest(payload: Mapping[str, Any]) -> str:
    left_out = "line left out" if payload["faults"] == 1 else "lines left out"
    counts = {"present": "present", "late": "late", "surplus": "departures of nobody", "faults": left_out}
    return ", ".join(f"{payload[name]:,} {what}" for name, what in counts.items() if payload[name] or name == "present")


def _when(time_s: float) -> str:
    """Return a time by the calendar if it is one since 1970, else in seconds."""
    if time_s < _EPOCH_S:
        return f"{time_s:,.1f} s"
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
