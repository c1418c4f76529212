"""A queue's run is measured as its scenario's analyses say: the operational laws beside what the servers really did."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from analysis.figures.occupancy import accuracy
from analysis.figures.occupancy.occupancy import draw_occupancy
from analysis.figures.occupancy.utilisation import draw_beside
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.logs.rates import ServersTest
from models.arrays import Floats
from models.code.parts import is_part
from models.queues.policies import PolicyName
from models.queues.world import Contention
from scenarios.files.loader import digest
from scenarios.files.schema import QueueScenario
from scenarios.files.traces import read_trace
from scenarios.kinds import KINDS
from scenarios.occupancy.job_pace import fleet_of, pace_of
from scenarios.occupancy.machine import PushedBack, pushed_back
from scenarios.occupancy.network import NetworkConclusion, measure_network
from scenarios.occupancy.occupancy import NOTHING, OccupancyConclusion, OtherServers, laws
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.scaled import ScaledConclusion, measure_scaled
from scenarios.occupancy.steady import Precision, SteadyState, lengthen, steady_state
from scenarios.occupancy.truth import LawErrors, QueueTruth, errors, truth
from scenarios.occupancy.unserved import Unserved, unserved
from scenarios.runs.conclusions import kept_conclusion
from scenarios.runs.disk import file_digest, save
from scenarios.runs.rundir import Draft, Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import seconds, share
from scenarios.views.section import Block, Place, Says, Section, Table, note_lines, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the same load really met on another number of servers, seconds."""

    servers: int
    response_time_s: float
    queueing_time_s: float
    """NaN where the law does not tell it."""
    change_s: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QueueConclusion(Conclusion):
    """What `wsc run` says of a queue's run."""

    run: Path
    scenario: str
    seed: int
    counts: Mapping[str, int]
    truth: QueueTruth
    errors: LawErrors
    counter: Mapping[str, float]
    """The law beside the counter, interval by interval: shares of time."""
    occupancy: OccupancyConclusion
    replays: tuple[Replayed, ...]
    steady: SteadyState
    figures: tuple[str, ...]
    precision: Precision | None = None
    """If the run was lengthened for one."""
    machine: PushedBack | None = None
    """What the machine did; None: there is none, or its tables are away."""
    unserved: Unserved | None = None
    """What was refused or given up, and what was answered in time; None: there are no limits and no objective."""

    def brief(self) -> str:
        """Return queueing time and utilisation by the law, beside the truth."""
        law, truth = self.occupancy, self.truth
        queueing = f"queueing {law.queueing_time_s:.4g} s by the law, {truth.queueing_time_s:.4g} s in truth"
        busy = [share(source.utilisation, 1, "unknown") for source in (law, truth)]
        return f"{queueing}; {busy[0]} busy, {busy[1]} in truth"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "queue",
            "run": str(self.run),
            "scenario": self.scenario,
            "seed": self.seed,
            "counts": self.counts,
            "truth": asdict(self.truth),
            "errors": asdict(self.errors),
            "counter": self.counter,
            "occupancy": self.occupancy.payload(),
            "replays": [asdict(row) for row in self.replays],
            "steady": asdict(self.steady),
            "figures": list(self.figures),
            **({} if self.precision is None else {"precision": asdict(self.precision)}),
            **({} if self.machine is None else {"machine": self.machine.payload()}),
            **({} if self.unserved is None else {"unserved": asdict(self.unserved)}),
        }

    def frame(self) -> pd.DataFrame:
        """Return service time, queueing time and utilisation by the law and in truth."""
        names = ("service_time_s", "queueing_time_s", "utilisation")
        rows = [(name, getattr(self.occupancy, name), getattr(self.truth, name)) for name in names]
        return pd.DataFrame(rows, columns=["quantity", "law", "truth"])

    def figure(self) -> "Figure":
        """Return response time by interval, and queueing time with other numbers of servers."""
        return self.occupancy.figure()

    def section(self) -> Section:
        """Return what the laws say of the run's log beside what its servers did."""
        who = "".join(f" of {self.counts[name]:,} {name}" for name in ("sessions", "clients") if self.counts[name])
        first = f"{self.scenario} (seed {self.seed}): {self.counts['requests']:,} requests{who}, "
        blocks = (Says(f"{first}{self.occupancy.servers} servers"), *self.beside_truth(), *self.notes())
        return Section("", (*blocks, Place(f"tables and figures: {self.run}")))

    def beside_truth(self) -> Iterator[Block]:
        """Yield the law beside the truth, the steady state, and other numbers of servers."""
        yield self._law()
        median, most = (100 * self.counter[f"raw_error_{name}"] for name in ("median", "p97"))
        yield Says(
            f"by interval: {self.counter['low']:.1%} to {self.counter['high']:.1%} busy, the law off by "
            f"{median:.2f} points (median), {most:.2f} (97th percentile)"
        )
        if self.occupancy.percentiles is not None:
            yield from self.occupancy.percentiles.blocks(self.occupancy.requests)
        if self.occupancy.classes:
            yield self.occupancy.class_table()
        if self.unserved is not None:
            yield from self.unserved.blocks()
        yield from map(Says, self.steady.lines())
        if self.precision is not None:
            yield from map(Says, self.precision.lines())
        if self.machine is not None:
            yield from self.machine.blocks()
        if self.occupancy.capacity:
            yield self._capacity()

    def notes(self) -> Iterator[Says]:
        """Yield what must be known to read the numbers."""
        yield from note_lines(self.occupancy.notes)
        if self.unserved is not None:
            yield from note_lines(self.unserved.notes())

    def _law(self) -> Table:
        rows = []
        for name in ("service", "queueing"):
            off = getattr(self.errors, name)
            true = (f"{getattr(self.truth, f'{name}_time_s'):,.1f} s", f"{round(off, 4) + 0.0:+.2%} of service")
            estimate = f"{getattr(self.occupancy, f'{name}_time_s'):,.1f} s"
            rows.append((f"{name} time", estimate, *(true if math.isfinite(off) else ("", ""))))
        busy, truly = self.occupancy.utilisation, self.truth.utilisation
        true = (f"{truly:.2%}", f"{round(100 * (busy - truly), 2) + 0.0:+.2f} points")
        rows.append(("utilisation", share(busy, unknown="unknown"), *(true if math.isfinite(truly) else ("", ""))))
        return table(("aggregate over all requests", "by the law", "truth", "error"), rows, "the Occupancy Law")

    def _capacity(self) -> Table:
        happened_s = {row.servers: row.queueing_time_s for row in self.replays}
        rows = [
            (str(row.bounds.to), *_capacity_cells(row, happened_s.get(row.bounds.to, math.nan)))
            for row in self.occupancy.capacity
        ]
        return table(("servers", "bounds", "replayed", "demands ±5%", "happened"), rows, "queueing time")


def outside(scenario: QueueScenario) -> dict[str, str]:
    """Return what the load takes from outside: the way to the value that names it, and a digest of what that holds."""
    load, digests = scenario.load, dict[str, str]()
    if load.trace is not None:
        digests["load.trace.file"] = file_digest(Path(load.trace.file))
    if load.job is not None:
        fleet = fleet_of(load.job)
        digests["load.job.scenario"] = digest(fleet, KINDS["fleet"].outside(fleet))
    return digests


def simulate(scenario: QueueScenario, draft: Draft, out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a queue into a draft, and return how much there is of what."""
    from sim.queues.requests import requests

    load = scenario.load
    trace = None if load.trace is None else read_trace(Path(load.trace.file))
    steps = None if load.job is None else pace_of(load.job, out, progress)
    outcome = requests(scenario.world, draft.path, trace=trace, seconds_per_instruction=steps, progress=progress)
    draft.add(*outcome.tables)
    return outcome.counts


@kept_conclusion
def measure(
    scenario: QueueScenario, run: Run, _out: Path, progress: Progress
) -> QueueConclusion | ScaledConclusion | NetworkConclusion:
    """Return what `wsc run` says of a queue's run that is there; without its ``truth_`` tables the truth is NaN.

    Figures go into the run's directory.
    """
    progress("measuring", 0.0)
    if scenario.stations:
        return measure_network(scenario, run)
    return _measure(scenario, run) if scenario.scaling is None else measure_scaled(scenario, run)


def _measure(scenario: QueueScenario, run: Run) -> QueueConclusion:
    """Return what is concluded of a run whose number of servers stays."""
    log, servers = run.table("requests", ["arrival_s", "departure_s", "type"]), scenario.station.servers
    occupancy = _laws(scenario, log)
    true = truth(run, scenario)
    cpu = run.table("cpu")
    beside = accuracy.beside(log, _within(cpu, scenario.horizon_s), servers)
    parts, within_s = occupancy.intervals, scenario.analyses.occupancy.within_s
    files = [
        *(save(draw_occupancy(curve(*_stamps(log)), servers, parts), run.path / "occupancy") if len(parts) else ()),
        *save(draw_beside(beside), run.path / "utilisation"),
    ]
    return QueueConclusion(
        run=run.path,
        scenario=scenario.name,
        seed=scenario.seed,
        counts=run.manifest["counts"],
        truth=true,
        errors=errors(occupancy.service_time_s, occupancy.queueing_time_s, true),
        counter=accuracy.errors(beside) | {"low": beside["counted"].min(), "high": beside["counted"].max()},
        occupancy=occupancy,
        replays=tuple(_replays(run, occupancy, lawful=scenario.contention == Contention())),
        steady=steady_state(scenario, log),
        figures=tuple(map(str, files)),
        machine=None if scenario.machine is None else pushed_back(run, scenario.machine),
        unserved=unserved(run, log, within_s) if scenario.station.limited or within_s is not None else None,
    )


def precise(
    scenario: QueueScenario, share: float, out: Path, force: bool, progress: Progress
) -> QueueConclusion | NetworkConclusion:
    """Return what is measured of a run that is lengthened until its mean response time is known to a share of it."""
    longer = lengthen(scenario, share, out, force, progress)
    precision = Precision(share, longer.scenario.horizon_s, longer.runs)
    progress("measuring", 0.0)
    if not scenario.stations:
        return replace(_measure(longer.scenario, longer.run), precision=precision)
    log = longer.run.table("requests", ["arrival_s", "departure_s"])
    answer = measure_network(longer.scenario, longer.run)
    return replace(answer, steady=steady_state(longer.scenario, log), precision=precision)


def numbers(answer: QueueConclusion | ScaledConclusion | NetworkConclusion) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    if isinstance(answer, NetworkConclusion):
        yield "bottleneck busy", answer.bottleneck.utilisation
        yield "most a second", answer.most_per_s
        if answer.clients is not None:
            whole = answer.clients.whole
            yield "answers a second", whole.per_s
            yield "by MVA", whole.theory_per_s
            yield "mean response", whole.response_s
            yield "its mean by MVA", whole.theory_response_s
        yield "p99", next(at.value_s for at in answer.percentiles.response if at.name == "p99")
        yield "in time", answer.unserved.in_time
        return
    if isinstance(answer, ScaledConclusion):
        yield "server hours", answer.cost.server_hours
        yield "queueing over service", answer.queueing_time_s / answer.service_time_s
        yield "p99", next(at.value_s for at in answer.percentiles.response if at.name == "p99")
        yield "in time", answer.unserved.in_time
        return
    yield "busy by the law", answer.occupancy.utilisation
    yield "busy in truth", answer.truth.utilisation
    service_s, queueing_s = answer.occupancy.service_time_s, answer.occupancy.queueing_time_s
    yield "queueing over service", queueing_s / service_s if service_s > 0 else math.nan
    if answer.machine is not None:
        yield "speed of requests", answer.machine.speed
        yield "neighbours' time", answer.machine.slowdown
        yield "p99 one way off", answer.machine.off("p99")
    if answer.unserved is not None:
        yield "never served", answer.unserved.unanswered / answer.unserved.requests


def _within(cpu: pd.DataFrame, horizon_s: float) -> pd.DataFrame:
    """Return the counting intervals that end within the horizon; those that begin in it where it has no whole one."""
    whole = cpu["end_s"] <= horizon_s
    return cpu[whole if whole.any() else cpu["start_s"] < horizon_s]


def _stamps(log: pd.DataFrame) -> tuple[Floats, Floats]:
    return log["arrival_s"].to_numpy(), log["departure_s"].to_numpy()


def _laws(scenario: QueueScenario, log: pd.DataFrame) -> OccupancyConclusion:
    """Return what `wsc occupancy` would say of the log; bounds alone where its policy cannot be replayed."""
    query, why = _query(scenario)
    urgency = {kind.name: kind.priority for kind in scenario.load.types}
    classes = log["type"].map(urgency).fillna(0).to_numpy().astype(np.int64)
    labels = tuple(log["type"]) if len(scenario.load.types) > 1 else None
    whole = Cleaned(*_stamps(log), (), 0, paired=True, priority=classes, label=labels)
    answer = laws(whole, curve(*_stamps(log)), query)
    if scenario.station.timeout_s is not None:
        answer = _of_those_in_time(answer)
    return replace(answer, notes=(*answer.notes, *why, *_caveats(scenario)))


def _of_those_in_time(answer: OccupancyConclusion) -> OccupancyConclusion:
    """Return what is concluded of a log without requests that timed out, which says nothing of the servers' number."""
    reason = "servers also worked for requests that timed out, so completions do not tell how many there are"
    notes = tuple(note for note in answer.notes if note != answer.servers_test.reason)
    return replace(answer, servers_test=ServersTest("not tested", reason), notes=notes)


def _query(scenario: QueueScenario) -> tuple[OccupancyQuery, tuple[str, ...]]:
    """Return what the laws are asked, and why no replay can be asked for."""
    settings, station = scenario.analyses.occupancy, scenario.station
    policy = station.policy if settings.policy == "station" else settings.policy
    own = settings.policy == "station" and is_part(station.policy)
    query = OccupancyQuery(
        station.servers,
        to=settings.to or scenario.replays,
        interval_s=settings.interval_s,
        policy=None if own or policy == "auto" else cast(PolicyName | None, policy),
        identify=policy == "auto",
        quantum_s=station.quantum_s,
    )
    if own:
        name = station.policy.rpartition("/")[2]
        return query, (f"no replay: demands cannot be reconstructed under a policy of your own ({name})",)
    if policy and (station.speeds or station.rates):
        return replace(query, policy=None, identify=False), ("no replay: the servers differ in speed",)
    if station.limited:
        why = "no replay: who is refused or gives up on other servers, or another day, does not follow from this log"
        return replace(query, policy=None, identify=False, to=()), (why,)
    if policy and scenario.machine is not None:
        return replace(query, policy=None, identify=False), ("no replay: the machine's speed changes",)
    return query, ()


def _caveats(scenario: QueueScenario) -> Iterator[str]:
    """Yield what must be known to read the numbers."""
    load, observation = scenario.load, scenario.observation
    waiting = "sessions" if load.sessions is not None else "clients" if load.clients is not None else ""
    others = scenario.analyses.occupancy.to or scenario.replays
    if waiting and others:
        yield f"{waiting} wait for answers; answers about other numbers of servers take these arrivals as they were"
    if observation.accept_at_application:
        yield "arrivals are stamped when a worker takes the request: the wait before that is in no log"
    if scenario.contention != Contention():
        yield "the laws do not hold here: a request that is present may be neither on a server nor waiting for one"


def _replays(run: Run, occupancy: OccupancyConclusion, *, lawful: bool) -> Iterator[Replayed]:
    """Yield what the same load really met on other numbers of servers; queueing only where the law tells it."""
    if not run.has("replays"):
        return
    replays = run.table("replays", ["servers", "arrival_s", "departure_s"])
    for servers in replays["servers"].drop_duplicates().tolist():
        total = law(curve(*_stamps(replays[replays["servers"] == servers])), servers)
        queueing_s = total.queueing_time_s if lawful else math.nan
        yield Replayed(servers, total.response_time_s, queueing_s, queueing_s - occupancy.queueing_time_s)


def _capacity_cells(row: OtherServers, happened_s: float) -> Iterator[str]:
    low, high = seconds(row.bounds.queueing_low_s), seconds(row.bounds.queueing_high_s, unknown="any")
    yield NOTHING if row.bounds_say_nothing else f"{low} to {high}"
    yield "" if row.replay is None else seconds(row.replay.queueing_s)
    yield "" if row.replay is None else f"{seconds(row.replay.low_s)} to {seconds(row.replay.high_s)}"
    yield seconds(happened_s)
