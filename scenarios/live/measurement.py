"""`wsc live`: the Occupancy Law tried on this machine, a real server's utilisation and queueing beside the kernel's."""

import gzip
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import OccupancyTotals, law
from analysis.occupancy.percentiles import Percentile, percentiles, why_without
from models.errors import ArgumentError, InputError
from scenarios.files.loader import LIBRARY
from scenarios.live.client import Session
from scenarios.live.gate import Before, During, before, during, reasons
from scenarios.live.load import DEMAND_S, MEAN_DEMAND_S, REQUESTS_PER_SESSION, THINK_S, arrivals, scaled, sessions
from scenarios.live.processes import LiveError, Observed, ServingPlace, Wish, observe, place
from scenarios.live.worker import MOST_CPU_S
from scenarios.runs.disk import whole
from scenarios.runs.rundir import make_folder
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Block, Says, Section, table
from scenarios.views.terminal import Progress, dumps

REQUESTS, CPU, SUMMARY = "requests.csv.gz", "cpu.csv", "summary.json"
FOLDER = LIBRARY / "live"
"""The run that is shipped: its log, the kernel's accounts per interval and its summary."""
LEAST_UTILISATION = 0.01
"""Intervals with less, by the kernel, have no normalised error: the server's own bookkeeping is then what is left."""
_DIGITS = 6
"""Decimals of seconds in the tables: microseconds."""
_LONGEST_INTERVAL_S, _INTERVALS, _SHOWN = 20.0, 10, 12


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What is asked of a live measurement."""

    servers: int
    """CPUs of the server."""
    length_s: float
    """Seconds in which requests are sent."""
    seed: int
    scheduler: Wish = "auto"
    pool: int = 0
    """Workers made beforehand; 0: one for each request."""
    mean_demand_s: float = MEAN_DEMAND_S
    """Of a request."""
    utilisation: float | None = None
    """Demand per second and server of requests that arrive at one rate, 0..1; none: sessions, the load a sawtooth."""

    def with_demand(self, mean_demand_s: float) -> "LiveOptions":
        """Return the options with another mean demand of requests."""
        if scaled(DEMAND_S, mean_demand_s)[1] > MOST_CPU_S:
            most_s = MOST_CPU_S * MEAN_DEMAND_S / DEMAND_S[1]
            raise ArgumentError("demand", f"should be at most {most_s:g} s", f"{mean_demand_s:g} s")
        return replace(self, mean_demand_s=mean_demand_s)

    def sent(self) -> list[Session]:
        """Return what is sent."""
        if self.utilisation is None:
            return sessions(self.seed, self.length_s, self.servers, self.mean_demand_s)
        return arrivals(self.seed, self.length_s, self.servers, self.utilisation, self.mean_demand_s)

    def settings(self) -> dict[str, object]:
        """Return what was chosen, as ``--json`` has it."""
        own: dict[str, object] = {"seed": self.seed, "length_s": self.length_s, "utilisation": self.utilisation}
        own["demand_s"] = scaled(DEMAND_S, self.mean_demand_s)
        think_s = None if self.utilisation is not None else scaled(THINK_S, self.mean_demand_s)
        return own | {"think_s": think_s, "requests_per_session": REQUESTS_PER_SESSION if think_s else 1}


@dataclass(frozen=True, slots=True)
class LiveMachine:
    """What a measurement was made on: no names of hosts, users or folders."""

    cpus: int | None
    kernel: str
    architecture: str
    python: str
    scheduler: str
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    client_shares_cpu: bool
    pool: int

    @classmethod
    def of(cls, where: ServingPlace) -> "LiveMachine":
        """Return this machine, with where on it a load is served."""
        return cls(
            cpus=os.cpu_count(),
            kernel=f"{platform.system()} {platform.release().partition('-')[0]}",
            architecture=platform.machine(),
            python=platform.python_version(),
            scheduler=where.scheduler,
            server_cpus=where.server_cpus,
            client_cpus=where.client_cpus,
            client_shares_cpu=where.shared,
            pool=where.pool,
        )


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where a load was served, and whether the machine was quiet enough for the numbers to judge the law."""

    machine: LiveMachine
    reasons: list[str]
    """Why it was not quiet; none if it was."""

    def blocks(self) -> Iterator[Block]:
        """Yield the machine, the scheduler in force and whether it was quiet."""
        server, client = (", ".join(map(str, cpus)) for cpus in (self.machine.server_cpus, self.machine.client_cpus))
        where = f"server on CPU {server}, client on CPU {client} of {self.machine.cpus}"
        yield Says(f"{where}, under {self.machine.scheduler}")
        if self.reasons:
            yield Says("not quiet: the machine was too busy for these numbers to judge the law")
            yield from map(Says, self.reasons)


@dataclass(frozen=True, slots=True)
class KernelTotals:
    """What the kernel says of the server's processes."""

    cpu_s: float
    run_queue_wait_s: float
    utilisation: float


@dataclass(frozen=True, slots=True, eq=False)
class LiveSummary:
    """What the law says of a log beside what the kernel says, per interval and over all."""

    requests: int
    failed: int
    sessions: int
    length_s: float
    law: OccupancyTotals
    kernel: KernelTotals
    errors: Mapping[str, Mapping[str, float]]
    """Of utilisation, as from `errors`."""
    queueing_error: float
    intervals: pd.DataFrame
    """As from `intervals`."""
    percentiles: tuple[Percentile, ...] = ()
    """Of response times."""

    def payload(self) -> dict[str, object]:
        """Return it as ``--json`` has it."""
        names = ("service_time_s", "queueing_time_s", "response_time_s", "utilisation", "peak")
        return {
            "requests": self.requests,
            "failed": self.failed,
            "sessions": self.sessions,
            "servers": self.law.servers,
            "length_s": self.length_s,
            **{name: getattr(self.law, name) for name in names},
            "kernel": asdict(self.kernel),
            "errors": {**self.errors, "queueing": self.queueing_error},
            "percentiles": [asdict(at) for at in self.percentiles],
            "intervals": self.intervals.to_dict("records"),
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LiveConclusion(Conclusion):
    """What `wsc live` says."""

    circumstances: Circumstances
    before: Before
    during: During
    options: LiveOptions
    interval_s: float
    summary: LiveSummary

    def payload(self) -> Payload:
        """Return what ``--json`` prints, which is also the summary that is kept."""
        return {
            "kind": "live",
            "quiet": not self.circumstances.reasons,
            "reasons": self.circumstances.reasons,
            "before": asdict(self.before),
            "during": asdict(self.during),
            "machine": asdict(self.circumstances.machine),
            "settings": {**self.options.settings(), "interval_s": self.interval_s},
            **self.summary.payload(),
        }

    def frame(self) -> pd.DataFrame:
        """Return the law beside the kernel, interval by interval."""
        return self.summary.intervals

    def section(self) -> Section:
        """Return the law beside the kernel, over all and by interval, and how far they differ."""
        return Section("", (*self.circumstances.blocks(), *self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        answer, kernel = self.summary, self.summary.kernel
        yield Says(f"{answer.requests} requests in {answer.length_s:.1f} s, {answer.failed} without an answer")
        totals = (
            ("utilisation", f"{answer.law.utilisation:.2%}", f"{kernel.utilisation:.2%}"),
            ("service time", f"{answer.law.service_time_s:.2f} s", f"{kernel.cpu_s:.2f} s"),
            ("queueing time", f"{answer.law.queueing_time_s:.2f} s", f"{kernel.run_queue_wait_s:.2f} s"),
        )
        yield table(("over all", "law", "kernel"), totals)
        yield table(("of the requests", "response"), [(at.name, str(at)) for at in answer.percentiles])
        why = why_without(answer.percentiles, answer.requests - answer.failed)
        if why:
            yield Says(why)
        every = -(-len(answer.intervals) // _SHOWN)
        rows = [
            (
                f"{row['start_s']:.1f} s",
                f"{row['end_s']:.1f} s",
                f"{row['utilisation']:.2%}",
                f"{row['kernel_utilisation']:.2%}",
                f"{row['queueing_time_s']:.2f} s",
                f"{row['run_queue_wait_s']:.2f} s",
            )
            for row in answer.intervals.iloc[::every].to_dict("records")
        ]
        heads = ("from", "to", "utilisation by the law", "by the kernel", "queueing by the law", "by the kernel")
        yield table(heads, rows, words=0)
        if self.circumstances.machine.pool:
            yield Says("A pool's requests also wait to be accepted: the kernel's figure of queueing lacks that.")
        spreads = [
            (name, *(f"{100 * answer.errors[name][level]:.2f}{unit}" for level in ("median", "p97", "max")))
            for name, unit in (("raw", " points"), ("normalised", "%"))
        ]
        yield table(("error of utilisation", "median", "97th percentile", "greatest"), spreads)


def live(options: LiveOptions, out: Path, tell: Progress) -> LiveConclusion:
    """Serve sessions on this machine for a while, and set the law beside the kernel's accounts.

    Parameters
    ----------
    options : how many CPUs, how long, under which scheduler
    out : folder for requests.csv.gz, cpu.csv and summary.json; written in the end, the summary last
    tell : progress

    Raises
    ------
    LiveError
        If this machine cannot do it, or server or client fails.
    """
    where = place(options.servers, options.scheduler, options.pool)
    make_folder(out)
    load = options.sent()
    if not load:
        nothing = f"with seed {options.seed} nothing is sent in {options.length_s:g} s; more --minutes will do"
        raise LiveError(nothing)
    idle, every_s = before(where.server_cpus), interval_s(options.length_s)
    observed = observe(load, options.length_s, where, every_s, lambda share: tell("serving", share))
    loaded = during(observed, where)
    requests, cpu = tables(observed, options.servers)
    why = reasons(idle, loaded, where.scheduler)
    if options.utilisation is not None and len(requests) < len(load):
        why.append(f"the client sent {len(requests):,} of {len(load):,} requests: it cannot send so many in this time")
    answer = LiveConclusion(
        circumstances=Circumstances(LiveMachine.of(where), why),
        before=idle,
        during=loaded,
        options=options,
        interval_s=every_s,
        summary=summary(requests, cpu, options.servers),
    )
    (out / SUMMARY).unlink(missing_ok=True)
    write_log(out / REQUESTS, requests)
    with whole(out / CPU) as partial:
        cpu.to_csv(partial, index=False, lineterminator="\n")
    write_summary(out, answer)
    return answer


def interval_s(length_s: float) -> float:
    """Return the length of the intervals: a tenth of the run, 20 s at most."""
    return min(_LONGEST_INTERVAL_S, length_s / _INTERVALS)


def write_log(file: Path, requests: pd.DataFrame) -> None:
    """Write a log as gzipped CSV, the same bytes for the same log.

    Parameters
    ----------
    file : where
    requests : any columns
    """
    with whole(file) as partial:
        partial.write_bytes(gzip.compress(requests.to_csv(index=False, lineterminator="\n").encode("ascii"), mtime=0))


def write_summary(out: Path, answer: Conclusion) -> None:
    """Write what was concluded into a folder, as the last of its files."""
    with whole(out / SUMMARY) as partial:
        partial.write_text(f"{dumps(answer)}\n", encoding="utf-8")


def tables(observed: Observed, servers: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the requests' log and the table of the kernel's accounts per interval, as they are written.

    Returns
    -------
    (DataFrame, DataFrame)
        session, arrival_s, departure_s, demand_s; and start_s, end_s, utilisation (0..1), cpu_s, run_queue_wait_s,
        others_s, stolen_s of the intervals, in seconds to six decimals.
    """
    requests = observed.requests[["session", "arrival_s", "departure_s", "demand_s"]].round(_DIGITS)
    time_s = observed.samples["time_s"].to_numpy()
    steps = {name: np.diff(observed.samples[name]) for name in ("run_s", "wait_s", "busy_s", "stolen_s")}
    cpu = pd.DataFrame(
        {
            "start_s": time_s[:-1],
            "end_s": time_s[1:],
            "utilisation": steps["run_s"] / (servers * np.diff(time_s)),
            "cpu_s": steps["run_s"],
            "run_queue_wait_s": steps["wait_s"],
            "others_s": np.maximum(0.0, steps["busy_s"] - steps["run_s"]),
            "stolen_s": steps["stolen_s"],
        }
    )
    return requests, cpu.round(_DIGITS)


def summary(requests: pd.DataFrame, cpu: pd.DataFrame, servers: int) -> LiveSummary:
    """Return what the law says of a log beside what the kernel says, per interval and over all.

    A last interval of less than half the length counts in the totals only.
    """
    answered = requests[requests["departure_s"].notna()]
    if answered.empty or cpu.empty:
        raise InputError(
            f"of {len(requests)} requests {len(answered)} were answered in {len(cpu)} intervals; none will do"
        )
    start_s, end_s = float(cpu["start_s"].iloc[0]), float(cpu["end_s"].iloc[-1])
    ends_s = max(end_s, float(answered["departure_s"].max()))
    present = curve(answered["arrival_s"], answered["departure_s"], start_s, ends_s)
    total, rows = law(present, servers), intervals(present, cpu, servers)
    worked_s, waited_s = float(cpu["cpu_s"].sum()), float(cpu["run_queue_wait_s"].sum())
    return LiveSummary(
        requests=len(requests),
        failed=len(requests) - len(answered),
        sessions=int(requests["session"].nunique()),
        length_s=end_s - start_s,
        law=total,
        kernel=KernelTotals(worked_s, waited_s, worked_s / (servers * (end_s - start_s))),
        errors=errors(rows),
        queueing_error=(total.queueing_time_s - waited_s) / waited_s if waited_s else float("nan"),
        intervals=rows,
        percentiles=percentiles(
            (answered["departure_s"] - answered["arrival_s"]).to_numpy(), answered["arrival_s"].to_numpy()
        ),
    )


def intervals(present: Curve, cpu: pd.DataFrame, servers: int) -> pd.DataFrame:
    """Return the law beside the kernel for each interval of the kernel's table.

    Parameters
    ----------
    present : occupancy that covers the intervals
    cpu : start_s, end_s, utilisation, run_queue_wait_s
    servers : k >= 1

    Returns
    -------
    DataFrame
        start_s, end_s, utilisation (law, 0..1), kernel_utilisation, error (their difference), queueing_time_s (law),
        run_queue_wait_s, peak.
    """
    parts = [law(present, servers, start, end) for start, end in zip(cpu["start_s"], cpu["end_s"], strict=True)]
    rows = cpu[["start_s", "end_s"]].assign(
        utilisation=[part.utilisation for part in parts],
        kernel_utilisation=cpu["utilisation"],
        queueing_time_s=[part.queueing_time_s for part in parts],
        run_queue_wait_s=cpu["run_queue_wait_s"],
        peak=[part.peak for part in parts],
    )
    rows.insert(4, "error", rows["utilisation"] - rows["kernel_utilisation"])
    return rows


def errors(rows: pd.DataFrame) -> dict[str, Mapping[str, float]]:
    """Return the median, the 97th percentile and the greatest of both errors of utilisation (Kelly et al. 2008, 5.1).

    Parameters
    ----------
    rows : start_s, end_s, error, kernel_utilisation; intervals shorter than half the longest are left out, and
        those below `LEAST_UTILISATION` from the normalised error
    """
    length_s = rows["end_s"] - rows["start_s"]
    whole = rows[length_s >= length_s.max() / 2]
    raw = whole["error"].abs()
    used = whole["kernel_utilisation"] >= LEAST_UTILISATION
    return {"raw": _spread(raw), "normalised": _spread(raw[used] / whole["kernel_utilisation"][used])}


def stored() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the shipped run's log and the kernel's accounts, as `tables` made them.

    Returns
    -------
    (DataFrame, DataFrame)
        session, arrival_s, departure_s, demand_s; and start_s, end_s, utilisation, cpu_s, run_queue_wait_s, others_s,
        stolen_s.

    Examples
    --------
    >>> requests, cpu = stored()
    >>> list(requests), float(cpu["start_s"][0])
    (['session', 'arrival_s', 'departure_s', 'demand_s'], 0.0)
    """
    return pd.read_csv(FOLDER / REQUESTS), pd.read_csv(FOLDER / CPU)


def _spread(values: pd.Series) -> dict[str, float]:
    names = {"median": 0.5, "p97": 0.97, "max": 1.0}
    return {name: float(values.quantile(share)) for name, share in names.items()}
