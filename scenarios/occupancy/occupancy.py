"""`wsc occupancy`: the operational laws of a request log, how it was served, and what other servers would change."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from analysis.occupancy.bounds import Bounds, faster, others
from analysis.occupancy.catalogue import divides_queueing, never_more_work, proved
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.hours import hours
from analysis.occupancy.law import MOST_SLICES as MOST_INTERVALS
from analysis.occupancy.law import busy_distribution, intervals, law, queue_distribution
from analysis.occupancy.logs.clocks import BY_UTC, LogClock, zone_of
from analysis.occupancy.logs.hygiene import clean, tick_of
from analysis.occupancy.logs.log import Cleaned, Log, LogFinding, LogOptions, in_seconds
from analysis.occupancy.logs.network import at_the_servers
from analysis.occupancy.logs.rates import (
    COARSE,
    CompletionRates,
    ServersTest,
    completion_rates,
    servers_test,
)
from analysis.occupancy.logs.reading import read_logs
from analysis.occupancy.objective import ReplayStation
from analysis.occupancy.percentiles import LEVELS, Percentile, percentiles, why_no_waiting, why_without
from analysis.occupancy.replay import Replay
from analysis.occupancy.servers import WAITED, said_servers
from analysis.occupancy.streaming import alerts
from models.errors import ArgumentError
from models.queues.policies import POLICIES, PolicyName
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.files.options import refuse
from scenarios.occupancy.discipline import Discipline, course_under, hindrance, replayed, settle, station_under
from scenarios.occupancy.objective import SloAnswer, slo_answer
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.scalability import ScalabilityAnswer, scalability
from scenarios.occupancy.slices import ClassTimes, by_host, chosen_rows, class_times, cut, moved, stretch, without_bands
from scenarios.occupancy.unserved import elsewhere, refuse_elsewhere
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import duration, number, plural, share
from scenarios.views.section import Block, Place, Says, Section, Table, note_lines, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUN_TABLE = "requests.parquet"
"""What of the folder of a queue's run is its log."""
NOTHING = "says nothing"
"""What stands in place of bounds that exclude nothing."""
_OF_AN_OBJECTIVE = "is about an objective: say --slo, too"
_HUGE = 100.0
"""An interval for fewer servers that begins at today's queueing and ends at so many response times says nothing."""
_LENGTHS_S = (0.2, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 86400.0)
_MOST_HANDY = 120
"""Intervals that a log is divided into where no length is given."""
LONGEST_QUEUE = 1000
"""Shares of time with so many waiting are told; quantiles are of all."""
_SHOWN = "p99"
"""Percentile that people see of other servers."""
_WORST = 5
"""Intervals that people see."""


@dataclass(frozen=True, slots=True)
class OtherServers:
    """What another number of servers would have made of a log."""

    bounds: Bounds
    bounds_say_nothing: bool
    """Whether the interval excludes nothing that was not plain before."""
    change_says_nothing: bool
    """The same of the bound on the change."""
    replay: Replay | None
    """Under the policy, where there is one."""
    percentiles: tuple[Percentile, ...] = ()
    """Of the response times of the replay."""

    def within(self) -> str:
        """Return the interval that queueing lies in, as people read it."""
        return _within(self.bounds.queueing_low_s, self.bounds.queueing_high_s, self.bounds_say_nothing)

    def change(self) -> str:
        """Return the bound on the change; without a sign where nobody waits that more servers could help."""
        bound_s, more = self.bounds.change_s_paper_bound, self.bounds.to >= self.bounds.servers
        if self.change_says_nothing:
            return NOTHING
        if bound_s == 0 and more:
            return _number(bound_s)
        return f"{'≤' if more else '≥'} {'+' if bound_s > 0 else ''}{_number(bound_s)}"

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        empty = {"bounds_say_nothing": self.bounds_say_nothing, "change_says_nothing": self.change_says_nothing}
        return {**self.bounds.row(), **empty, **_replay_payload(self.replay, self.percentiles)}


@dataclass(frozen=True, slots=True)
class OtherSpeed:
    """What as many servers of another speed would have made of a log; slower ones have no bounds."""

    speed: float
    queueing_s_low: float
    queueing_s_high: float
    bounds_say_nothing: bool
    note: str
    replay: Replay | None
    percentiles: tuple[Percentile, ...] = ()
    """As of `OtherServers`."""

    def within(self) -> str:
        """Return the interval that queueing lies in, as people read it."""
        return _within(self.queueing_s_low, self.queueing_s_high, self.bounds_say_nothing)

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        names = ("speed", "queueing_s_low", "queueing_s_high", "bounds_say_nothing", "note")
        return {**{name: getattr(self, name) for name in names}, **_replay_payload(self.replay, self.percentiles)}


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The least values that are not exceeded for half and for 95% of the time; None for no time at all."""

    p50: int | None
    p95: int | None

    def words(self) -> str:
        """Return what people read."""
        return f"median {self.p50:,}, 95% of the time at most {self.p95:,}"


@dataclass(frozen=True, slots=True)
class LogPercentiles:
    """Percentiles of response and waiting times of a log, with bands for another such day."""

    response: tuple[Percentile, ...]
    waiting: tuple[Percentile, ...]
    """Empty where no policy tells each request's waiting."""

    def payload(self) -> Payload:
        """Return what ``--json`` has."""
        return {name: [asdict(at) for at in getattr(self, name)] for name in ("response", "waiting")}

    def blocks(self, requests: int) -> Iterator[Block]:
        """Yield what people read: the percentiles of so many requests, and why some have no bracket."""
        columns = [name for name in ("response", "waiting") if getattr(self, name)]
        rows = [(at.name, *(str(getattr(self, name)[row]) for name in columns)) for row, at in enumerate(self.response)]
        yield table(("of the requests", *columns), rows)
        for why in (why_without(self.response, requests), why_no_waiting(self.response, self.waiting)):
            if why:
                yield Says(why)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OccupancyConclusion(Conclusion):
    """What the laws say of a log."""

    requests: int
    unfinished: int
    repaired: int
    servers: int
    start_s: float
    end_s: float
    service_time_s: float
    queueing_time_s: float
    response_time_s: float
    utilisation: float
    peak: int
    busy: list[float]
    """Shares of time with 0, 1, ... busy servers."""
    busy_quantiles: Quantiles
    waiting: list[float]
    """Shares of time with 0, 1, ... requests waiting."""
    waiting_quantiles: Quantiles
    discipline: Discipline
    interval_s: float
    intervals: pd.DataFrame
    """As from `analysis.occupancy.law.intervals`."""
    capacity: tuple[OtherServers, ...]
    speeds: tuple[OtherSpeed, ...]
    completion_rates: CompletionRates
    servers_test: ServersTest
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...]
    percentiles: LogPercentiles | None = None
    """None of a log without pairs."""
    slo: SloAnswer | None = None
    """If an objective was asked about."""
    scalability: ScalabilityAnswer | None = None
    """If the Universal Scalability Law was asked for."""
    classes: tuple[ClassTimes, ...] = ()
    """If classes are compared."""
    hosts: tuple[tuple[str, "OccupancyConclusion"], ...] = ()
    """If each host is a queue of its own."""
    alerts: pd.DataFrame | None = None
    """Intervals above the ratio that was asked for; None without one."""
    log: str | None = None
    """The file; None if it was no file's."""
    origin_s: float = 0.0
    """What times count from, in seconds since 1970; 0 if they are the log's own."""
    clock: LogClock = BY_UTC
    """By which times are told."""
    figures: tuple[str, ...] | None = None
    """Files of pictures; None if none were asked for."""

    def brief(self) -> str:
        """Return the mean response of a request in its two parts, and how busy the servers were."""
        n = max(self.requests, 1)
        times = [f"{value / n:.3g} s" for value in (self.response_time_s, self.service_time_s, self.queueing_time_s)]
        busy = f"{share(self.utilisation, 1, 'unknown')} of {plural(self.servers, 'server')} busy"
        return f"response {times[0]} = service {times[1]} + queueing {times[2]}; {busy}"

    @property
    def policy(self) -> PolicyName | None:
        """Policy that the log is replayed under."""
        return self.discipline.policy if self.discipline.replayed else None

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        identified, shown = self.discipline.identified, self.completion_rates
        whence = {} if self.log is None else {"log": self.log, "origin_s": self.origin_s}
        names = ("requests", "unfinished", "repaired", "servers", "start_s", "end_s", "service_time_s")
        more = ("queueing_time_s", "response_time_s", "utilisation", "peak")
        return {
            "kind": "occupancy",
            **whence,
            **{name: getattr(self, name) for name in (*names, *more)},
            "busy": self.busy,
            "busy_quantiles": asdict(self.busy_quantiles),
            "waiting": self.waiting,
            "waiting_quantiles": asdict(self.waiting_quantiles),
            "policy": self.policy,
            "identified": identified
            and {"policy": identified.policy, "servers": identified.servers, "score": identified.score},
            "replay_misfits": self.discipline.misfits,
            "interval_s": self.interval_s,
            "intervals": self.intervals.to_dict("records"),
            "capacity": [row.payload() for row in self.capacity],
            "speeds": [row.payload() for row in self.speeds],
            "rates": shown.rates.to_dict("records"),
            "servers_by_work": asdict(shown.by_work),
            "servers_by_rates": asdict(shown.by_rates),
            "servers_test": asdict(self.servers_test),
            "findings": [asdict(flaw) for flaw in self.findings],
            "notes": list(self.notes),
            **({} if self.percentiles is None else {"percentiles": self.percentiles.payload()}),
            **({} if self.slo is None else {"slo": self.slo.payload()}),
            **({} if self.scalability is None else {"scalability": self.scalability.payload()}),
            **({"classes": [row.payload() for row in self.classes]} if self.classes else {}),
            **({"hosts": {name: answer.payload() for name, answer in self.hosts}} if self.hosts else {}),
            **({} if self.alerts is None else {"alerts": self.alerts.to_dict("records")}),
            **({} if self.figures is None else {"figures": list(self.figures)}),
        }

    def frame(self) -> pd.DataFrame:
        """Return the intervals: start_s, end_s, service, queueing and response time, utilisation, peak, ratio."""
        return self.intervals

    def figure(self) -> "Figure":
        """Return response time by interval, and queueing time with other numbers of servers."""
        from analysis.figures.occupancy.occupancy import draw_response

        measured = {"servers": self.servers, "seen_s": self.queueing_time_s}
        others = [
            {
                "servers": row.bounds.to,
                "low_s": row.bounds.queueing_low_s,
                "high_s": math.inf if row.bounds_say_nothing else row.bounds.queueing_high_s,
                "replayed_s": math.nan if row.replay is None else row.replay.queueing_s,
            }
            for row in self.capacity
        ]
        columns = ["servers", "seen_s", "low_s", "high_s", "replayed_s"]
        what_if = pd.DataFrame([measured, *others] if others else [], columns=columns).sort_values("servers")
        return draw_response(self.intervals, what_if, self.requests)

    def section(self) -> Section:
        """Return totals, other servers, the worst intervals, findings and notes."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        yield Says(
            f"{plural(self.requests, 'request')} on {plural(self.servers, 'server')}, "
            f"{duration(self.end_s - self.start_s)}: "
            f"utilisation {share(self.utilisation, 1, 'unknown')}, at most {self.peak:,} present"
        )
        yield self._totals()
        if self.percentiles is not None:
            yield from self.percentiles.blocks(self.requests - self.unfinished)
        if self.classes:
            yield self.class_table()
        if self.hosts:
            yield self._hosts()
        identified = self.discipline.identified
        if identified is not None:
            yield Says(f"scheduling looks like {identified.policy} on {plural(identified.servers or 0, 'server')}")
        if self.slo is not None:
            yield from self.slo.blocks()
        if self.scalability is not None:
            yield from self.scalability.blocks()
        if self.capacity:
            yield self._capacity()
        if self.speeds:
            rows = [
                (f"{row.speed:g}", row.within(), *_replay_cells(row.replay, row.percentiles)) for row in self.speeds
            ]
            yield table(("speed", "queueing, s", *self._replay_headings()), rows)
        if self.busy_quantiles.p50 is not None:
            halves = (("busy", self.busy_quantiles), ("waiting", self.waiting_quantiles))
            yield Says(
                "; ".join(f"{name}: median {at.p50:,}, 95% of the time at most {at.p95:,}" for name, at in halves)
            )
        if len(self.intervals):
            yield self._worst()
        yield from self._alerts()
        yield from (Says(f"found: {flaw}") for flaw in self.findings)
        yield from note_lines(self.notes)
        yield from (Place(f"figure: {file}") for file in self.figures or ())

    def _totals(self) -> Table:
        rows = []
        for name in ("response", "service", "queueing"):
            seconds = getattr(self, f"{name}_time_s")
            part = seconds / self.response_time_s if self.response_time_s > 0 else 0.0
            rows.append((name, f"{seconds:,.1f}", f"{part:.1%}", in_seconds(seconds / self.requests)))
        return table(("aggregate time", "seconds", "share", "per request"), rows)

    def class_table(self) -> Table:
        """Return the classes that are compared, as people see them."""
        rows = [
            (
                row.name,
                f"{row.requests:,}",
                share(row.share, 1),
                in_seconds(row.response_time_s / row.requests),
                str(row.p50),
                str(row.p99),
                f"{row.queueing_time_s:,.1f} s",
            )
            for row in self.classes
        ]
        return table(("class", "requests", "of time", "mean", "p50", "p99", "queueing*"), rows)

    def _hosts(self) -> Table:
        rows = []
        for name, answer in self.hosts:
            at = {} if answer.percentiles is None else {row.name: row.value_s for row in answer.percentiles.response}
            busy = share(answer.utilisation, 1, "unknown")
            queueing = f"{answer.queueing_time_s:,.1f} s"
            rows.append(
                (name, f"{answer.requests:,}", busy, queueing, f"{answer.peak:,}", in_seconds(at.get("p99", math.nan)))
            )
        return table(("host", "requests", "busy", "queueing", "peak", "p99"), rows)

    def _capacity(self) -> Table:
        rows = [
            (f"{row.bounds.to}", row.within(), row.change(), *_replay_cells(row.replay, row.percentiles))
            for row in self.capacity
        ]
        return table(("servers", "queueing, s", "change, s", *self._replay_headings()), rows)

    def _replay_headings(self) -> tuple[str, ...]:
        return (f"as {self.policy}, s", "±5% demand, s", f"{_SHOWN} as {self.policy}") if self.policy else ()

    def _worst(self) -> Table:
        """Return the intervals in which requests waited longest."""
        busy = self.intervals[self.intervals["peak"] > 0]
        worst = busy.sort_values("queueing_time_s", ascending=False, kind="stable").head(_WORST)
        rows = [
            (
                f"{self._when(row['start_s'])} + {duration(row['end_s'] - row['start_s'])}",
                f"{row['utilisation']:.1%}",
                f"{row['service_time_s']:,.1f} s",
                f"{row['queueing_time_s']:,.1f} s",
                f"{row['ratio']:.2f}",
                f"{row['peak']:,}",
            )
            for row in worst.sort_values("start_s", kind="stable").to_dict("records")
        ]
        heading = f"worst intervals, {self.clock.name}" if self.origin_s else "worst intervals"
        return table((heading, "busy", "service", "queueing", "ratio", "peak"), rows)

    def _alerts(self) -> Iterator[Says]:
        if self.alerts is None:
            return
        if self.alerts.empty:
            yield Says("no interval is above the alert")
        for row in self.alerts.to_dict("records"):
            length = duration(row["end_s"] - row["start_s"])
            yield Says(f"alert: {self._when(row['start_s'])} + {length}: queueing is {row['ratio']:.2f} times service")

    def _when(self, time_s: float) -> str:
        """Return a time by the calendar if the log has one, else in seconds."""
        if self.origin_s:
            return self.clock.shown(self.origin_s + time_s)
        return f"{time_s:,.1f} s"


def occupancy(
    log: Path | Sequence[Path],
    query: OccupancyQuery,
    options: LogOptions | None = None,
    out: Path | None = None,
    *,
    given: Log | None = None,
    name: str | None = None,
) -> OccupancyConclusion:
    """Return what the laws say of a log file, of the files of its rotation, or of the folder of a run.

    Parameters
    ----------
    log : in any format that `read_log` reads
    query : servers and what else is wanted
    options : what the files do not say themselves
    out : folder for a picture
    given : the log, if it is no file: a stay of a fleet's run
    name : what people call the file, if it is a copy

    Raises
    ------
    FaultsError
        If the file cannot be used, with all its faults, or the policy not be replayed, or intervals are too short.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("arrival_s,departure_s\\n0,2\\n1,3\\n")
    ...     answer = occupancy(file, OccupancyQuery(servers=1))
    >>> answer.service_time_s, answer.queueing_time_s, answer.peak
    (3.0, 1.0, 2)
    """
    refuse_together(query, out)
    files, of_others = files_of(log, query) if given is None else RequestFiles(listed(log), ())
    said, called = options or LogOptions(), name or named(log)
    with faults_in(files[0] if name is None else Path(name)):
        rows, since_s, until_s = query.rows, None, None
        if rows is not None:
            said = replace(said, fields=said.fields or rows.reads_fields)
        source = given or read_logs(files, said)
        clock = LogClock(None if said.zone is None else zone_of(said.zone).key, source.clock)
        if rows is not None:
            source, since_s, until_s = stretch(chosen_rows(source, rows), rows, clock)
        if query.network_delay_s is not None:
            source = _at_the_servers(source, query.network_delay_s)
        if rows is not None and rows.hosts is not None:
            hosts = tuple(_by_host(source, query))
            total = _summed(source, hosts, query)
            return replace(total, log=called, origin_s=source.origin_s, clock=clock)
        cleaned = clean(source.table, query.servers, source.resolution_s)
        cleaned = replace(cleaned, findings=(*source.findings, *cleaned.findings))
        present = _present(cleaned) if rows is None else cut(_present(cleaned), since_s, until_s)
    _refuse(query, cleaned, present)
    answer = laws(cleaned, present, query, source.origin_s, clock)
    unsure = doubts(answer.servers_test, answer.discipline) if given is None else ()
    notes = (*source.notes, *answer.notes, *unsure, *of_others)
    answer = replace(answer, log=called, origin_s=source.origin_s, notes=notes)
    return answer if out is None else _pictured(answer, present, out)


def _at_the_servers(log: Log, network_delay_s: float) -> Log:
    try:
        stamps = (log.table[name].to_numpy(np.float64) for name in ("arrival_s", "departure_s"))
        return at_the_servers(log, network_delay_s, max(log.resolution_s, tick_of(*stamps)))
    except ArgumentError as error:
        refuse("--network-delay", error.problem, error.got or "")


def _by_host(source: Log, query: OccupancyQuery) -> Iterator[tuple[str, OccupancyConclusion]]:
    """Yield what the laws say of each host's requests, as of a queue of its own."""
    alone = replace(query, rows=None, to=(), speed=(), identify=False, policy=None, objective=None)
    for name, rows in by_host(tuple(source.table["label"])):
        table = source.table.iloc[rows].drop(columns="label").reset_index(drop=True)
        cleaned = clean(table, query.servers, source.resolution_s)
        yield name, laws(cleaned, _present(cleaned), alone)


def _summed(
    source: Log, hosts: tuple[tuple[str, OccupancyConclusion], ...], query: OccupancyQuery
) -> OccupancyConclusion:
    """Return the sums over the hosts, each a queue of its own, in one answer."""
    answers = [answer for _, answer in hosts]
    first = max(answers, key=lambda answer: answer.requests)
    service, queueing = (sum(getattr(a, f"{name}_time_s") for a in answers) for name in ("service", "queueing"))
    start, end = min(a.start_s for a in answers), max(a.end_s for a in answers)
    offered = query.servers * len(answers) * (end - start)
    findings = tuple(
        replace(flaw, evidence=f"{name}: {flaw.evidence}") for name, answer in hosts for flaw in answer.findings
    )
    own = f"each of {len(answers)} hosts is a queue with {query.servers} servers of its own"
    busiest = next(name for name, answer in hosts if answer is first)
    note = f"{own}; intervals and rates are those of {busiest}"
    whole = source.table[["arrival_s", "departure_s"]].to_numpy(dtype=np.float64)
    return replace(
        first,
        requests=sum(a.requests for a in answers),
        unfinished=sum(a.unfinished for a in answers),
        repaired=sum(a.repaired for a in answers),
        servers=query.servers * len(answers),
        start_s=start,
        end_s=end,
        service_time_s=service,
        queueing_time_s=queueing,
        response_time_s=service + queueing,
        utilisation=service / offered if offered > 0 else math.nan,
        peak=max(a.peak for a in answers),
        percentiles=LogPercentiles(percentiles(whole[:, 1] - whole[:, 0], whole[:, 0]), ()),
        findings=findings,
        notes=(*source.notes, note),
        hosts=hosts,
    )


class RequestFiles(NamedTuple):
    """The files that a log is in."""

    files: list[Path]
    notes: tuple[str, ...]
    """What cannot be asked of them, if they are of a run."""


def listed(log: Path | Sequence[Path]) -> list[Path]:
    """Return the files of a log in one file or several."""
    return [log] if isinstance(log, Path) else list(log)


def named(log: Path | Sequence[Path]) -> str:
    """Return how people call it."""
    return ", ".join(map(str, listed(log)))


def files_of(log: Path | Sequence[Path], query: OccupancyQuery) -> RequestFiles:
    """Return the files that hold a log; the folder of a queue's run, or a file of it, is known by its manifest.

    Raises
    ------
    FaultsError
        If the folder has no requests, or it is asked what those of the run that were not served leave open; or with
        those of several files that cannot be opened.
    """
    files = listed(log)
    unlike = next(filter(None, map(elsewhere, filter(_beside_manifest, files))), "")
    if unlike:
        refuse_elsewhere(query, unlike)
    notes = (f"what other servers or another load would change {unlike}",) if unlike else ()
    whole = [_file_of(path) for path in files]
    if len(whole) > 1 and (faults := [fault for path in whole for fault in _unopened(path)]):
        raise FaultsError(faults)
    return RequestFiles(whole, notes)


def _unopened(path: Path) -> Iterator[Fault]:
    """Yield why a file cannot be opened, if it cannot."""
    try:
        with path.open("rb"):
            return
    except OSError as error:
        yield Fault(str(path), 0, 0, "", "cannot be read", str(error.strerror))


def _beside_manifest(path: Path) -> bool:
    """Return whether a log may be of a run: the folder that it is, or lies in, has a manifest."""
    folder = path if path.is_dir() else path.resolve().parent
    return (folder / "manifest.json").exists() and (path.is_file() or (path / RUN_TABLE).exists())


def _file_of(path: Path) -> Path:
    """Return the file that holds a log: that itself, or the requests of a queue's run in its folder."""
    if not path.is_dir():
        return path
    if (path / RUN_TABLE).exists():
        return path / RUN_TABLE
    problem = f"is no run with requests: neither {RUN_TABLE} of a queue's run nor stay_requests of a fleet's is there"
    raise FaultsError([Fault(str(path), 0, 0, "", problem)])


def laws(
    log: Cleaned,
    present: Curve,
    query: OccupancyQuery,
    origin_s: float = 0.0,
    clock: LogClock = BY_UTC,
) -> OccupancyConclusion:
    """Return what the laws say of a log that is fit for them.

    Parameters
    ----------
    log : requests
    present : their occupancy
    query : what is asked
    origin_s : what the log's times count from, in seconds since 1970; 0: they are its own
    clock : by which times are told
    """
    total = law(present, query.servers)
    interval_s = query.interval_s or handy(present.end_s - present.start_s)
    parts = intervals(present, query.servers, interval_s)
    stated = Discipline(query.servers, query.policy, query.quantum_s)
    discipline = stated
    if query.policy is not None or query.identify:
        discipline = settle(log, stated, _slowest_s(query, present))
    shown, notes = completion_rates(log), list(discipline.notes)
    test = servers_test(log, shown, query.servers, total.peak)
    if len(log.arrival_s) > WAITED:
        test = said_servers(log, test, query.servers)
    if test.verdict == "contradicted" and not any(test.reason.startswith(flaw.name) for flaw in log.findings):
        notes.append(test.reason)
    notes += caveats(discipline, query.to, query.speed)
    station = None if discipline.policy is None else station_under(log, discipline)
    answered = None
    if query.objective is not None:
        if log.paired:
            answered = slo_answer(
                log,
                query.objective,
                query.servers,
                load=query.load,
                station=station,
                quantum_s=query.quantum_s,
                stated=query.policy,
                calendar=hours(present.start_s, present.end_s, origin_s, clock) if query.hourly else (),
                clock=clock.name if origin_s else "",
            )
        else:
            notes.append("no answer about the objective: departures belong to no arrivals")
    own = clock.own if clock.zone is None else None
    if own is not None and (query.hourly or own.matters):
        notes.append(own.note())
    classes: tuple[ClassTimes, ...] = ()
    if log.label is not None:
        notes.append("* queueing of a class: as if the requests present shared the servers evenly")
        days = station or (None if discipline.policy is None else course_under(log, discipline.policy, query.servers))
        classes = class_times(log.arrival_s, log.departure_s, log.label, present, query.servers, station=days)
        notes += without_bands(classes)
    busy = busy_distribution(present, query.servers)["share"]
    waiting = queue_distribution(present, query.servers)["share"]
    return OccupancyConclusion(
        requests=len(log.arrival_s),
        unfinished=log.unfinished,
        repaired=log.repaired,
        servers=query.servers,
        start_s=present.start_s,
        end_s=present.end_s,
        service_time_s=total.service_time_s,
        queueing_time_s=total.queueing_time_s,
        response_time_s=total.response_time_s,
        utilisation=total.utilisation,
        peak=total.peak,
        busy=busy.tolist(),
        busy_quantiles=quantiles(busy),
        waiting=waiting.head(LONGEST_QUEUE).tolist(),
        waiting_quantiles=quantiles(waiting),
        discipline=replace(discipline, reconstruction=None),
        interval_s=interval_s,
        intervals=parts,
        capacity=capacity(log, present, discipline, query.to, station) if query.to else (),
        speeds=speeds(log, present, discipline, query.speed, station),
        completion_rates=shown,
        servers_test=test,
        findings=log.findings,
        notes=tuple(notes),
        percentiles=log_percentiles(log, station, query.servers, discipline.policy),
        slo=answered,
        clock=clock,
        scalability=scalability(log, query.servers) if query.scalability else None,
        classes=classes,
        alerts=None if query.alert is None else alerts(parts, query.alert),
    )


def log_percentiles(
    log: Cleaned, station: ReplayStation | None, servers: int, policy: PolicyName | None = None
) -> LogPercentiles | None:
    """Return the percentiles of a log; None of one without pairs.

    Where the policy is known, bands come from days drawn from the recorded one and served again. If its choices do not
    follow from the log, one course of events is drawn that they may have taken; its waiting times are not those of the
    log. Else bands come from blocks of time.
    """
    if not log.paired:
        return None
    response_s = log.departure_s - log.arrival_s
    own = percentiles(response_s, log.arrival_s)
    if station is not None:
        bands, waiting = station.response_and_waiting(LEVELS, servers)
        return LogPercentiles(tuple(map(moved, own, bands)), waiting)
    possible = None if policy is None else course_under(log, policy, servers)
    return LogPercentiles(
        own if possible is None else tuple(map(moved, own, possible.percentiles(LEVELS, servers))), ()
    )


def caveats(discipline: Discipline, to: Sequence[int], factors: Sequence[float]) -> Iterator[str]:
    """Yield what the bounds for other or faster servers rest on, where they are no theorem for the policy.

    Parameters
    ----------
    discipline : the policy, if it is known
    to : numbers of servers that bounds are told for
    factors : the same of speeds
    """
    more, fast = any(servers != discipline.servers for servers in to), any(factor > 1 for factor in factors)
    if not (more or fast):
        return
    if discipline.policy is None:
        changes = " or ".join(name for name, wanted in (("more", more), ("faster", fast)) if wanted)
        yield f"no policy known: the bounds assume that {changes} servers never delay completions"
    elif not proved(discipline.policy, "expansion"):
        yield (
            f"under {discipline.policy} the bounds, the change as well as the interval, usually hold, but there are "
            "loads for which they do not"
        )


def capacity(
    log: Cleaned, present: Curve, discipline: Discipline, to: Iterable[int], station: ReplayStation | None = None
) -> tuple[OtherServers, ...]:
    """Return bounds on queueing, and the replay where there is a policy, for each number of servers.

    Parameters
    ----------
    log, present, discipline : requests, how many were there, and how they were served
    to : numbers of servers
    station : what serves the log again, for percentiles; None: there are none
    """
    matched = (log.arrival_s, log.departure_s) if log.paired else None
    now = law(present, discipline.servers)
    return tuple(
        OtherServers(
            row,
            *_empty(row, now.queueing_time_s, now.response_time_s),
            _replay(log, discipline, row.to, 1.0),
            () if station is None else station.percentiles(LEVELS, row.to),
        )
        for row in others(present, discipline.servers, to, matched, per_job=_per_job(discipline))
    )


def speeds(
    log: Cleaned,
    present: Curve,
    discipline: Discipline,
    factors: Iterable[float],
    station: ReplayStation | None = None,
) -> tuple[OtherSpeed, ...]:
    """Return bounds on queueing, and the replay where there is a policy, with as many servers of each other speed.

    Parameters
    ----------
    log, present, discipline, station : as of `capacity`
    factors : speeds, in that of the log's servers
    """
    divides = discipline.policy is not None and divides_queueing(discipline.policy, discipline.servers)
    rows = []
    for factor in factors:
        if 0 < factor < 1:
            note = "bounds are about servers that are not slower"
            within = (math.nan, math.nan, True, note)
        else:
            row = faster(present, discipline.servers, factor, per_job=_per_job(discipline), divides=divides)
            empty = factor > 1 and row.queueing_s > 0 and row.queueing_high_s >= row.queueing_s * (1 - 1e-9)
            within = (row.queueing_low_s, row.queueing_high_s, empty, row.note)
        again = () if station is None else station.faster(factor).percentiles(LEVELS, discipline.servers)
        rows.append(OtherSpeed(factor, *within, _replay(log, discipline, discipline.servers, factor), again))
    return tuple(rows)


def doubts(test: ServersTest, discipline: Discipline) -> Iterator[str]:
    """Yield what must be known of a number of servers that no test confirms, unless a finding says it.

    Parameters
    ----------
    test : verdict
    discipline : the number of servers that was said, and the policy, said or found out
    """
    identified, policy, on = discipline.identified, discipline.policy, plural(discipline.servers, "server")
    if test.verdict == "not tested" and test.reason != COARSE:
        if identified is not None and identified.servers == discipline.servers:
            yield f"nothing but the identified policy, {identified.policy}, speaks for {on}: {test.reason}"
        elif policy is not None and math.isfinite(discipline.misfits):
            departures = f"{discipline.misfits:.1%} of the departures while a request waited"
            yield f"{departures} contradict {policy} on {on}; nothing else tests the number of servers: {test.reason}"
        elif policy is not None and discipline.replayed:
            yield f"no request ever waited, so nothing tests {policy} on {on}: {test.reason}"
        else:
            yield f"the number of servers was not tested: {test.reason}"
    elif test.verdict == "cannot tell":
        yield f"whether {discipline.servers} is the number of servers cannot be decided: {test.reason}"


def refuse_together(query: OccupancyQuery, out: Path | None) -> None:
    """Raise the faults of questions that have no answer together, which else would be left out without a word."""
    faults, no_objective = list[Fault](), query.objective is None
    if query.rows is not None and query.rows.hosts is not None:
        of_one = query.of_other_servers() | {"--by": query.rows.by or "", "--out": "" if out is None else str(out)}
        of_one |= {"--alert": "" if query.alert is None else f"{query.alert:g}"}
        of_one |= {"--scalability": "--scalability" * query.scalability}
        problem = "is about one queue and should not be given beside --hosts; choose a host with --where"
        faults = [Fault(option, 0, 0, "", problem, text) for option, text in of_one.items() if text]
    if no_objective and query.load != 1.0:
        faults.append(Fault("--load", 0, 0, "", _OF_AN_OBJECTIVE, f"{query.load:g}"))
    if no_objective and query.hourly:
        faults.append(Fault("--hourly", 0, 0, "", _OF_AN_OBJECTIVE))
    if faults:
        raise FaultsError(faults)


def _refuse(query: OccupancyQuery, log: Cleaned, present: Curve) -> None:
    """Raise the faults of options that a log is no log for."""
    if query.interval_s is not None and (present.end_s - present.start_s) / query.interval_s + 2 > MOST_INTERVALS:
        least = f"{1.001 * (present.end_s - present.start_s) / MOST_INTERVALS:.4g}"
        refuse("--interval", f"should be at least {least} s, {MOST_INTERVALS} intervals", f"{query.interval_s:g} s")
    if log.paired and query.policy is not None:
        stated = Discipline(query.servers, query.policy, query.quantum_s)
        option, problem = hindrance(stated, log.priority is not None, _slowest_s(query, present))
        replays = bool(query.to or query.speed or query.objective is not None)
        if option and (replays or not POLICIES[query.policy].hidden):
            refuse(option, problem, f"{query.quantum_s:g} s" if option == "--quantum" else query.policy)


def _slowest_s(query: OccupancyQuery, present: Curve) -> float:
    """Return the service time of all requests on the slowest servers that are asked about."""
    return law(present, query.servers).service_time_s / min((1.0, *query.speed))


def _pictured(answer: OccupancyConclusion, present: Curve, out: Path) -> OccupancyConclusion:
    """Return an answer with the files of its pictures; none, with a note, of a log without length."""
    if answer.intervals.empty:
        return replace(answer, figures=(), notes=(*answer.notes, "the log is one instant: no picture"))
    from analysis.figures.occupancy.occupancy import draw_hours, draw_occupancy, draw_scalability
    from scenarios.runs.disk import save

    files = save(draw_occupancy(present, answer.servers, answer.intervals), out / "occupancy")
    if answer.scalability is not None and answer.scalability.law is not None:
        files += save(draw_scalability(answer.scalability.rates, answer.servers), out / "scalability")
    if answer.slo is not None and any(row.known for row in answer.slo.hours):
        files += save(draw_hours(answer.slo.by_hour(), answer.servers), out / "hours")
    return replace(answer, figures=tuple(map(str, files)))


def _present(log: Cleaned) -> Curve:
    return curve(log.arrival_s, log.departure_s if log.paired else log.departure_s[~np.isnan(log.departure_s)])


def handy(length_s: float) -> float:
    """Return the shortest handy interval of which there are not too many."""
    return next(
        (handy_s for handy_s in _LENGTHS_S if length_s <= _MOST_HANDY * handy_s), max(length_s, 1.0) / _MOST_HANDY
    )


def quantiles(shares: pd.Series) -> Quantiles:
    """Return the median and the 95th percentile of a distribution over 0, 1, 2, …; None of a log without length."""
    up_to = shares.cumsum().to_numpy()
    if not np.isfinite(up_to).all():
        return Quantiles(None, None)
    # Rounding may leave the sum of a half a little short of it.
    return Quantiles(*(int(np.searchsorted(up_to, cent / 100 - 1e-12)) for cent in (50, 95)))


def _empty(row: Bounds, queueing_s: float, response_s: float) -> tuple[bool, bool]:
    """Return whether an interval, and a change, exclude nothing: more servers do not add queueing, fewer take none."""
    off_s = 1e-9 * response_s
    waits, unmoved = queueing_s > 0, abs(row.change_s_paper_bound) <= off_s
    if row.to > row.servers:
        return waits and row.queueing_high_s >= queueing_s - off_s, waits and unmoved
    fewer = row.to < row.servers
    loose = row.queueing_low_s <= queueing_s + off_s and row.queueing_high_s >= _HUGE * response_s
    return fewer and loose, fewer and unmoved


def _per_job(discipline: Discipline) -> bool:
    """Return whether other servers surely have no more work left."""
    return discipline.policy is not None and never_more_work(discipline.policy)


def _replay(log: Cleaned, discipline: Discipline, to: int, speed: float) -> Replay | None:
    return None if discipline.policy is None else replayed(log, discipline, to, speed)


def _replay_payload(again: Replay | None, within: Sequence[Percentile]) -> dict[str, object]:
    times = dict.fromkeys(("replay_s", "replay_low", "replay_high"), math.nan)
    if again is not None:
        times = {"replay_s": again.queueing_s, "replay_low": again.low_s, "replay_high": again.high_s}
    return {**times, "response_percentiles": [asdict(at) for at in within]}


def _replay_cells(again: Replay | None, within: Sequence[Percentile]) -> tuple[str, ...]:
    if again is None:
        return ()
    shown = next((str(at) for at in within if at.name == _SHOWN), "–")
    return _number(again.queueing_s), f"{_number(again.low_s)} to {_number(again.high_s)}", shown


def _within(low_s: float, high_s: float, says_nothing: bool) -> str:
    if math.isnan(low_s):
        return "unknown"
    return NOTHING if says_nothing else f"{_number(low_s)} to {_number(high_s)}"


def _number(seconds: float) -> str:
    if abs(seconds) >= 1e7:
        return number(seconds, ".3g")
    return f"{seconds:,.0f}" if abs(seconds) >= 1000 else f"{round(seconds, 1) + 0.0:.1f}"
