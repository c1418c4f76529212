"""`wsc live --replay`: one trace served with one CPU and with two; the bounds and the replays beside what changed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from analysis.occupancy.bounds import others
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.replay import replay as served_again
from models.errors import InputError
from scenarios.live.client import Session
from scenarios.live.gate import Before, During, before, during, reasons
from scenarios.live.load import DEMAND_S, trace
from scenarios.live.measurement import (
    REQUESTS,
    SUMMARY,
    Circumstances,
    LiveMachine,
    LiveOptions,
    interval_s,
    tables,
    write_log,
    write_summary,
)
from scenarios.live.processes import LiveError, Observed, ServingPlace, observe, place
from scenarios.runs.rundir import make_folder
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import number, plural
from scenarios.views.section import Section, table
from scenarios.views.terminal import Progress

BOTH = (1, 2)
BOUNDS = ("b0", "b1", "b2", "b3", "pairs")
POLICIES: tuple[Literal["ps", "rr"], ...] = ("ps", "rr")
"""What the kernel's schedulers come close to: equal shares, and slices of 100 ms under SCHED_RR."""


@dataclass(frozen=True, slots=True)
class ServedTrace:
    """What a trace met on so many CPUs, seconds."""

    servers: int
    requests: int
    queueing_time_s: float
    """By the law."""
    run_queue_wait_s: float
    """By the kernel."""


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """By how much queueing was said to change by a replay, with all demands 5% off in either direction; seconds."""

    change_s: float
    low_s: float
    high_s: float
    misfits: int


@dataclass(frozen=True, slots=True)
class ServersChange:
    """How queueing changed with another number of servers, and what was said of it beforehand; seconds."""

    servers: int
    to: int
    change_s: float
    """By the law; negative: queueing fell."""
    kernel_change_s: float
    bounds: Mapping[str, float]
    """With the sign of the paper's Table 2."""
    queueing_s_low: float
    queueing_s_high: float
    note: str
    replays: Mapping[str, ReplayedChange]
    """By policy."""


@dataclass(frozen=True, slots=True, repr=False)
class LiveReplayConclusion(Conclusion):
    """What `wsc live --replay` says."""

    circumstances: Circumstances
    before: Before
    during: Mapping[int, During]
    seed: int
    sending_s: float
    served: tuple[ServedTrace, ...]
    changes: tuple[ServersChange, ...]

    def payload(self) -> Payload:
        """Return what ``--json`` prints, which is also the summary that is kept."""
        return {
            "kind": "live_replay",
            "quiet": not self.circumstances.reasons,
            "reasons": self.circumstances.reasons,
            "before": asdict(self.before),
            "during": {servers: asdict(shares) for servers, shares in self.during.items()},
            "machine": asdict(self.circumstances.machine),
            "settings": {"seed": self.seed, "length_s": self.sending_s, "demand_s": DEMAND_S},
            "served": [asdict(row) for row in self.served],
            "changes": [asdict(row) for row in self.changes],
        }

    def frame(self) -> pd.DataFrame:
        """Return the changes: servers, to, change_s, kernel_change_s, the bounds and the replays."""
        return pd.DataFrame(
            [
                {
                    "servers": row.servers,
                    "to": row.to,
                    "change_s": row.change_s,
                    "kernel_change_s": row.kernel_change_s,
                    **row.bounds,
                    **{f"replayed_as_{policy}_s": replayed.change_s for policy, replayed in row.replays.items()},
                }
                for row in self.changes
            ]
        )

    def section(self) -> Section:
        """Return the change beside what was said of it, as the paper's Table 2."""
        served = [
            (str(row.servers), str(row.requests), f"{row.queueing_time_s:.2f} s", f"{row.run_queue_wait_s:.2f} s")
            for row in self.served
        ]
        heads = ("change in queueing", *(f"{row.servers} → {row.to}" for row in self.changes))
        tables = (
            table(("CPUs", "requests", "queueing by the law", "by the kernel"), served),
            table(heads, list(self._lines())),
        )
        return Section("", (*self.circumstances.blocks(), *tables))

    def _lines(self) -> Iterator[tuple[str, ...]]:
        yield ("by the law", *(_seconds(row.change_s) for row in self.changes))
        yield ("by the kernel", *(_seconds(row.kernel_change_s) for row in self.changes))
        for bound, name in zip(BOUNDS, ("at least, by the paper", "B1", "B2", "B3", "from pairs"), strict=True):
            yield (name, *(_seconds(row.bounds[bound]) for row in self.changes))
        for policy in POLICIES:
            replays = [row.replays[policy] for row in self.changes]
            yield (f"replayed as {policy}", *(_seconds(row.change_s) for row in replays))
            yield ("  demands 5% off", *(f"{row.low_s:+.2f} to {row.high_s:+.2f}" for row in replays))


def replay(options: LiveOptions, out: Path, tell: Progress) -> LiveReplayConclusion:
    """Serve one open trace with one CPU and then with two, and set bounds and replays beside the change in queueing.

    Parameters
    ----------
    options : length and seed of the trace, scheduler; its number of servers is not looked at
    out : folder for requests_1.csv.gz, requests_2.csv.gz and summary.json; written in the end, the summary last
    tell : progress

    Raises
    ------
    LiveError
        If this machine cannot do it, or server or client fails.
    """
    where = {servers: place(servers, options.scheduler) for servers in BOTH}
    make_folder(out)
    load = trace(options.seed, options.length_s)
    if not load:
        raise LiveError(f"with seed {options.seed} nothing arrives in {options.length_s:g} s; more --minutes will do")
    idle = before(where[max(BOTH)].server_cpus)
    observed = {servers: _served(load, options.length_s, where[servers], tell) for servers in BOTH}
    loaded = {servers: during(observed[servers], where[servers]) for servers in BOTH}
    why = [
        f"{plural(servers, 'CPU')}: {reason}"
        for servers in BOTH
        for reason in reasons(idle, loaded[servers], where[servers].scheduler)
    ]
    written = {servers: tables(observed[servers], servers) for servers in BOTH}
    logs = {servers: log for servers, (log, _) in written.items()}
    waited_s = {servers: float(cpu["run_queue_wait_s"].sum()) for servers, (_, cpu) in written.items()}
    answer = LiveReplayConclusion(
        circumstances=Circumstances(LiveMachine.of(where[max(BOTH)]), why),
        before=idle,
        during=loaded,
        seed=options.seed,
        sending_s=options.length_s,
        served=served_traces(logs, waited_s),
        changes=changes(logs, waited_s),
    )
    (out / SUMMARY).unlink(missing_ok=True)
    for servers, log in logs.items():
        write_log(out / REQUESTS.replace(".", f"_{servers}.", 1), log)
    write_summary(out, answer)
    return answer


def served_traces(logs: Mapping[int, pd.DataFrame], waited_s: Mapping[int, float]) -> tuple[ServedTrace, ...]:
    """Return what a trace met with each number of servers.

    Parameters
    ----------
    logs : by number of servers: arrival_s, departure_s of the requests
    waited_s : by number of servers: run-queue waits by the kernel, seconds
    """
    for servers, log in logs.items():
        lost = int(log["departure_s"].isna().sum())
        if lost:
            raise InputError(f"with {plural(servers, 'server')} {lost} of {len(log)} requests were not answered")
    return tuple(
        ServedTrace(servers, len(log), _queueing_s(log, servers), waited_s[servers]) for servers, log in logs.items()
    )


def changes(logs: Mapping[int, pd.DataFrame], waited_s: Mapping[int, float]) -> tuple[ServersChange, ...]:
    """Return, for every change of servers, how queueing changed and what was said of it beforehand.

    Arguments as of `served_traces`, which refuses what does not hold.
    """
    return tuple(_change(logs, waited_s, servers, to) for servers in logs for to in logs if to != servers)


def _served(load: Sequence[Session], length_s: float, where: ServingPlace, tell: Progress) -> Observed:
    what = f"serving with {plural(len(where.server_cpus), 'CPU')}"
    return observe(load, length_s, where, interval_s(length_s), lambda share: tell(what, share))


def _queueing_s(log: pd.DataFrame, servers: int) -> float:
    return law(curve(log["arrival_s"], log["departure_s"]), servers).queueing_time_s


def _change(logs: Mapping[int, pd.DataFrame], waited_s: Mapping[int, float], servers: int, to: int) -> ServersChange:
    """Return one change; bounds have the sign of the paper's Table 2."""
    log = logs[servers]
    pairs = (log["arrival_s"].to_numpy(), log["departure_s"].to_numpy())
    (row,) = others(curve(*pairs), servers, [to], pairs, per_job=True)
    sign = -1.0 if to > servers else 1.0
    return ServersChange(
        servers=servers,
        to=to,
        change_s=_queueing_s(logs[to], to) - _queueing_s(log, servers),
        kernel_change_s=waited_s[to] - waited_s[servers],
        bounds={name: sign * getattr(row, name) for name in BOUNDS},
        queueing_s_low=row.queueing_low_s,
        queueing_s_high=row.queueing_high_s,
        note=row.note,
        replays={policy: _replayed(policy, log, servers, to) for policy in POLICIES},
    )


def _replayed(policy: Literal["ps", "rr"], log: pd.DataFrame, servers: int, to: int) -> ReplayedChange:
    now_s = _queueing_s(log, servers)
    replayed = served_again(policy, log["arrival_s"].to_numpy(), log["departure_s"].to_numpy(), servers, to)
    return ReplayedChange(
        replayed.queueing_s - now_s, replayed.low_s - now_s, replayed.high_s - now_s, replayed.misfits
    )


def _seconds(value: float) -> str:
    return number(value, "+.2f", "–") + (" s" if math.isfinite(value) else "")
