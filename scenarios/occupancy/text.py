"""What the laws say of a request log, as text for people."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from scenarios.wsmeter.own import show_notes

_WORST = 5
NOTHING = "says nothing"
"""What stands in place of bounds that exclude nothing."""


def show_occupancy(payload: Mapping[str, Any], console: Console) -> None:
    """Print totals, other numbers of servers, the worst intervals, findings and notes.

    Parameters
    ----------
    payload : as from `occupancy.occupancy`
    console : to print on

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> from scenarios.occupancy.own import Asked, Columns, occupancy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("arrival_s,departure_s\\n0,2\\n1,3\\n")
    ...     show_occupancy(occupancy(file, Asked(servers=1), Columns()), Console(width=100))  # doctest: +ELLIPSIS
    2 requests on 1 server, 3.0 s: utilisation 100.0%, at most 2 present
    ...
    """
    k, length_s = payload["servers"], payload["end_s"] - payload["start_s"]
    console.print(
        f"{payload['requests']:,} requests on {_servers(k)}, {_duration(length_s)}: "
        f"utilisation {_share(payload['utilisation'])}, at most {payload['peak']:,} present",
        soft_wrap=True,
    )
    table = _table("aggregate time", "seconds", "share", "per request")
    for name in ("response_time_s", "service_time_s", "queueing_time_s"):
        share = payload[name] / payload["response_time_s"] if payload["response_time_s"] > 0 else 0.0
        each = payload[name] / payload["requests"]
        table.add_row(name.removesuffix("_time_s"), f"{payload[name]:,.1f}", f"{share:.1%}", f"{each:,.4g} s")
    console.print(table)
    if payload["identified"]:
        found = payload["identified"]
        console.print(f"scheduling looks like {found['policy']} on {_servers(found['servers'])}", soft_wrap=True)
    if payload["capacity"]:
        console.print(_capacity(payload))
    if payload["speeds"]:
        console.print(_speeds(payload))
    if payload["busy_quantiles"]["p50"] is not None:
        console.print(f"{_half(payload, 'busy')}; {_half(payload, 'waiting')}", soft_wrap=True)
    if payload["intervals"]:
        console.print(_intervals(payload))
    _show_alerts(payload, console)
    for found in payload["findings"]:
        line = f"{found['name']}: {found['count']:,}; {found['evidence']}; {found['done']}"
        console.print(f"found: {line}", markup=False, soft_wrap=True)
    show_notes(payload, console)
    for file in payload.get("figures", ()):
        console.print(f"figure: {file}", markup=False, soft_wrap=True)


def _half(payload: Mapping[str, Any], name: str) -> str:
    """Return how many were busy, or waiting, for half and for nearly all of the time."""
    quantiles = payload[f"{name}_quantiles"]
    return f"{name}: median {quantiles['p50']:,}, 95% of the time at most {quantiles['p95']:,}"


def _share(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else "unknown"


def _capacity(payload: Mapping[str, Any]) -> Table:
    table = _table("servers", "queueing, s", "change, s", *_replay_heads(payload))
    for row in payload["capacity"]:
        table.add_row(f"{row['servers']}", _bounds(row), _change(row, payload), *_replayed(row))
    return table


def _bounds(row: Mapping[str, Any]) -> str:
    known = not math.isnan(row["queueing_s_low"])
    return NOTHING if known and row["bounds_say_nothing"] else _range(row["queueing_s_low"], row["queueing_s_high"])


def _change(row: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """Return the bound on the change; without a sign where nobody waits that more servers could help."""
    bound_s = row["change_s_paper_bound"]
    if row["change_says_nothing"]:
        return NOTHING
    if bound_s == 0 and row["servers"] >= payload["servers"]:
        return _number(bound_s)
    return f"{'≤' if row['servers'] >= payload['servers'] else '≥'} {'+' if bound_s > 0 else ''}{_number(bound_s)}"


def _speeds(payload: Mapping[str, Any]) -> Table:
    table = _table("speed", "queueing, s", *_replay_heads(payload))
    for row in payload["speeds"]:
        table.add_row(f"{row['speed']:g}", _bounds(row), *_replayed(row))
    return table


def _replay_heads(payload: Mapping[str, Any]) -> list[str]:
    return [f"as {payload['policy']}, s", "±5% demand, s"] if payload["policy"] else []


def _replayed(row: Mapping[str, Any]) -> list[str]:
    known = math.isfinite(row["replay_s"])
    return [_number(row["replay_s"]), _range(row["replay_low"], row["replay_high"])] if known else []


def _range(low: float, high: float) -> str:
    return "unknown" if math.isnan(low) else f"{_number(low)} to {_number(high)}"


def _number(seconds: float) -> str:
    if abs(seconds) >= 1e7:
        return f"{seconds:.3g}"
    return f"{seconds:,.0f}" if abs(seconds) >= 1000 else f"{round(seconds, 1) + 0.0:.1f}"


def _intervals(payload: Mapping[str, Any]) -> Table:
    """Return the intervals in which requests waited longest."""
    rows: Sequence[Mapping[str, Any]] = payload["intervals"]
    worst = sorted(rows, key=lambda row: -row["queueing_time_s"])[:_WORST]
    heads = ("worst intervals", "busy", "service", "queueing", "ratio", "peak")
    table = _table(*heads)
    for row in sorted(worst, key=lambda row: row["start_s"]):
        table.add_row(
            f"{_when(payload, row['start_s'])} + {_duration(row['end_s'] - row['start_s'])}",
            f"{row['utilisation']:.1%}",
            f"{row['service_time_s']:,.1f} s",
            f"{row['queueing_time_s']:,.1f} s",
            f"{row['ratio']:.2f}",
            f"{row['peak']:,}",
        )
    return table


def _show_alerts(payload: Mapping[str, Any], console: Console) -> None:
    if "alerts" not in payload:
        return
    if not payload["alerts"]:
        console.print("no interval is above the alert")
    for row in payload["alerts"]:
        length = _duration(row["end_s"] - row["start_s"])
        line = f"alert: {_when(payload, row['start_s'])} + {length}: queueing is {row['ratio']:.2f} times service"
        console.print(line, soft_wrap=True)


def _table(*heads: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for at, head in enumerate(heads):
        table.add_column(head, justify="left" if at == 0 else "right", no_wrap=True)
    return table


def _servers(count: int) -> str:
    return f"{count} server{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    for unit_s, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.4g} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _when(payload: Mapping[str, Any], time_s: float) -> str:
    """Return a time by the calendar if the log has one, else in seconds."""
    if payload["origin_s"]:
        return datetime.fromtimestamp(payload["origin_s"] + time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{time_s:,.1f} s"
