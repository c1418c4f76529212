"""`wsc live --replay`: one trace served with one CPU and with two; the bounds and the replays beside what changed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from analysis.occupancy.bounds import capacity
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.replay import replay as served_again
from models.errors import InputError
from scenarios.live.client import Session
from scenarios.live.command import (
    REQUESTS,
    SUMMARY,
    Asked,
    interval_s,
    machine,
    plain_table,
    show_where,
    write_log,
)
from scenarios.live.gate import before, during, reasons
from scenarios.live.load import DEMAND_S, trace
from scenarios.live.run import LiveError, Observed, Place, observe, place
from scenarios.live.summary import tables
from scenarios.runs.rundir import make_folder
from scenarios.runs.unfinished import whole
from scenarios.views.output import Progress, dumps

if TYPE_CHECKING:
    from rich.console import Console

BOTH = (1, 2)
BOUNDS = ("b0", "b1", "b2", "b3", "pairs")
POLICIES: tuple[Literal["ps", "rr"], ...] = ("ps", "rr")
"""What the kernel's schedulers come close to: equal shares, and slices of 100 ms under SCHED_RR."""


def replay(asked: Asked, out: Path, tell: Progress) -> dict[str, Any]:
    """Serve one open trace with one CPU and then with two, and set bounds and replays beside the change in queueing.

    Parameters
    ----------
    asked : length and seed of the trace, scheduler; its number of servers is not looked at
    out : folder for requests_1.csv.gz, requests_2.csv.gz and summary.json; written in the end, the summary last
    tell : progress

    Returns
    -------
    dict
        The payload of `--json`, which is also the summary.

    Raises
    ------
    LiveError
        If this machine cannot do it, or server or client fails.
    """
    where = {servers: place(servers, asked.scheduler) for servers in BOTH}
    make_folder(out)
    load = trace(asked.seed, asked.length_s)
    if not load:
        raise LiveError(f"with seed {asked.seed} nothing arrives in {asked.length_s:g} s; more --minutes will do")
    looked = before(where[max(BOTH)].server_cpus)
    seen = {servers: _served(load, asked.length_s, where[servers], tell) for servers in BOTH}
    then = {servers: during(seen[servers], where[servers]) for servers in BOTH}
    why = [
        f"{_cpus(servers)}: {reason}"
        for servers in BOTH
        for reason in reasons(looked, then[servers], where[servers].scheduler)
    ]
    written = {servers: tables(seen[servers], servers) for servers in BOTH}
    logs = {servers: log for servers, (log, _) in written.items()}
    payload = {
        "kind": "live_replay",
        "quiet": not why,
        "reasons": why,
        "before": asdict(looked),
        "during": {servers: asdict(each) for servers, each in then.items()},
        "machine": machine(where[max(BOTH)]),
        "settings": {"seed": asked.seed, "length_s": asked.length_s, "demand_s": DEMAND_S},
        **comparison(logs, {servers: float(cpu["run_queue_wait_s"].sum()) for servers, (_, cpu) in written.items()}),
    }
    (out / SUMMARY).unlink(missing_ok=True)
    for servers, log in logs.items():
        write_log(out / REQUESTS.replace(".", f"_{servers}.", 1), log)
    with whole(out / SUMMARY) as partial:
        partial.write_text(f"{dumps(payload)}\n", encoding="utf-8")
    return payload


def comparison(logs: Mapping[int, pd.DataFrame], waited_s: Mapping[int, float]) -> dict[str, Any]:
    """Return, for every change of servers, how queueing changed and what was said of it beforehand.

    Parameters
    ----------
    logs : by number of servers: arrival_s, departure_s of the requests
    waited_s : by number of servers: run-queue waits by the kernel, seconds

    Returns
    -------
    dict
        `served`: per number of servers, requests, queueing_time_s by the law and run_queue_wait_s by the kernel.
        `changes`: servers, to, the change in seconds (negative: queueing fell) by the law and by the kernel, by every
        bound, and by the replays with their error bars.

    Raises
    ------
    ValueError
        If a request was not answered, as neither bounds nor replays hold then.

    Examples
    --------
    >>> one = pd.DataFrame({"arrival_s": [0.0, 0.0, 1.0], "departure_s": [2.0, 4.0, 4.0]})
    >>> two = pd.DataFrame({"arrival_s": [0.0, 0.0, 1.0], "departure_s": [1.0, 2.0, 2.0]})
    >>> change = comparison({1: one, 2: two}, {1: 5.0, 2: 0.0})["changes"][0]
    >>> change["servers"], change["to"], change["change_s"], change["kernel_change_s"], change["bounds"]["b0"]
    (1, 2, -5.0, -5.0, -4.0)
    """
    for servers, log in logs.items():
        lost = int(log["departure_s"].isna().sum())
        if lost:
            raise InputError(f"with {servers} servers {lost} of {len(log)} requests were not answered")
    curves = {servers: curve(log["arrival_s"], log["departure_s"]) for servers, log in logs.items()}
    queueing = {servers: law(seen, servers).queueing_time_s for servers, seen in curves.items()}
    return {
        "served": [
            {"servers": k, "requests": len(logs[k]), "queueing_time_s": queueing[k], "run_queue_wait_s": waited_s[k]}
            for k in logs
        ],
        "changes": [
            {
                "servers": k,
                "to": to,
                "change_s": queueing[to] - queueing[k],
                "kernel_change_s": waited_s[to] - waited_s[k],
                **_bounds(logs[k], k, to),
                "replays": {policy: _replayed(policy, logs[k], k, to) for policy in POLICIES},
            }
            for k in logs
            for to in logs
            if to != k
        ],
    }


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the change beside what was said of it, as the paper's Table 2."""
    show_where(payload, console)
    served = plain_table("CPUs", "requests", "queueing by the law", "by the kernel")
    for row in payload["served"]:
        waits = f"{row['queueing_time_s']:.2f} s", f"{row['run_queue_wait_s']:.2f} s"
        served.add_row(str(row["servers"]), str(row["requests"]), *waits)
    console.print(served)
    changes = plain_table("change in queueing", *(f"{row['servers']} → {row['to']}" for row in payload["changes"]))
    for name, cells in _lines(payload["changes"]):
        changes.add_row(name, *cells)
    console.print(changes)


def _served(load: Sequence[Session], length_s: float, where: Place, tell: Progress) -> Observed:
    what = f"serving with {_cpus(len(where.server_cpus))}"
    return observe(load, length_s, where, interval_s(length_s), lambda share: tell(what, share))


def _cpus(servers: int) -> str:
    return f"{servers} CPU{'s' * (servers > 1)}"


def _bounds(log: pd.DataFrame, servers: int, to: int) -> dict[str, Any]:
    """Return the bounds as changes with the sign of the paper's Table 2, and the interval for queueing afterwards."""
    pairs = (log["arrival_s"].to_numpy(), log["departure_s"].to_numpy())
    (row,) = capacity(curve(*pairs), servers, [to], pairs, per_job=True).to_dict("records")
    sign = -1.0 if to > servers else 1.0
    return {
        "bounds": {name: sign * row[name] for name in BOUNDS},
        "queueing_s_low": row["queueing_s_low"],
        "queueing_s_high": row["queueing_s_high"],
        "note": row["note"],
    }


def _replayed(policy: Literal["ps", "rr"], log: pd.DataFrame, servers: int, to: int) -> dict[str, float]:
    pairs = log["arrival_s"].to_numpy(), log["departure_s"].to_numpy()
    seen_s = law(curve(*pairs), servers).queueing_time_s
    made = served_again(policy, *pairs, servers, to)
    return {
        "change_s": made.queueing_s - seen_s,
        "low_s": made.low_s - seen_s,
        "high_s": made.high_s - seen_s,
        "misfits": made.misfits,
    }


def _lines(changes: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    names = {"b0": "at least, by the paper", "b1": "B1", "b2": "B2", "b3": "B3", "pairs": "from pairs"}
    lines = [("by the law", [_seconds(row["change_s"]) for row in changes])]
    lines += [("by the kernel", [_seconds(row["kernel_change_s"]) for row in changes])]
    lines += [(name, [_seconds(row["bounds"][bound]) for row in changes]) for bound, name in names.items()]
    for policy in POLICIES:
        made = [row["replays"][policy] for row in changes]
        lines.append((f"replayed as {policy}", [_seconds(each["change_s"]) for each in made]))
        lines.append(("  demands 5% off", [f"{each['low_s']:+.2f} to {each['high_s']:+.2f}" for each in made]))
    return lines


def _seconds(value: float) -> str:
    return f"{value:+.2f} s" if math.isfinite(value) else "–"
