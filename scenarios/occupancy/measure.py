"""A queue's run is measured as its scenario's analyses say: the operational laws beside what the servers really did."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.figures.occupancy import accuracy
from analysis.figures.occupancy.occupancy import draw_occupancy
from analysis.figures.occupancy.utilisation import draw_beside
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.hygiene import Cleaned
from models.arrays import Floats
from models.queues.world import Contention
from scenarios.files.schema import QueueScenario
from scenarios.files.source import digest
from scenarios.files.traces import read_trace
from scenarios.occupancy.job_pace import fleet_of, pace_of
from scenarios.occupancy.own import Asked, laws
from scenarios.occupancy.steady import lengthen, steady_state
from scenarios.occupancy.steady import said as steadily
from scenarios.occupancy.text import NOTHING
from scenarios.occupancy.truth import errors, truth
from scenarios.runs.pictures import save
from scenarios.runs.provenance import file_digest
from scenarios.runs.rundir import Draft, Run
from scenarios.views.output import Progress


def outside(scenario: QueueScenario) -> dict[str, str]:
    """Return what the load takes from outside: the way to the value that names it, and a digest of what that holds."""
    load, digests = scenario.load, dict[str, str]()
    if load.trace is not None:
        digests["load.trace.file"] = file_digest(Path(load.trace.file))
    if load.job is not None:
        digests["load.job.scenario"] = digest(fleet_of(load.job))
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


def measure(scenario: QueueScenario, found: Run, _out: Path, progress: Progress) -> dict[str, Any]:
    """Return what `wsc run` says of a queue's run that is there; without its ``truth_`` tables the truth is NaN.

    Figures go into the run's directory.

    Parameters
    ----------
    scenario : whose analyses are made
    found : its run
    progress : told what is being done
    """
    progress("measuring", 0.0)
    log, servers = found.table("requests", ["arrival_s", "departure_s", "type"]), scenario.station.servers
    seen = curve(*_stamps(log))
    occupancy = _laws(scenario, log, seen)
    true = truth(found, scenario)
    cpu = found.table("cpu")
    beside = accuracy.beside(log, cpu[cpu["start_s"] < scenario.horizon_s], servers)
    parts = pd.DataFrame(occupancy["intervals"])
    files = [
        *(save(draw_occupancy(seen, servers, parts), found.path / "occupancy") if len(parts) else ()),
        *save(draw_beside(beside), found.path / "utilisation"),
    ]
    return {
        "kind": scenario.kind,
        "run": str(found.path),
        "scenario": scenario.name,
        "seed": scenario.seed,
        "counts": found.manifest["counts"],
        "truth": true,
        "errors": errors(occupancy, true),
        "counter": accuracy.errors(beside) | {"low": beside["counted"].min(), "high": beside["counted"].max()},
        "occupancy": occupancy,
        "replays": _replays(found, occupancy, lawful=scenario.contention == Contention()),
        "steady": steady_state(scenario, log),
        "figures": [str(file) for file in files],
    }


def precise(scenario: QueueScenario, share: float, out: Path, force: bool, progress: Progress) -> dict[str, Any]:
    """Return what is measured of a run that is lengthened until its mean response time is known to a share of it."""
    longer = lengthen(scenario, share, out, force, progress)
    told = {"asked": share, "horizon_s": longer.scenario.horizon_s, "runs": longer.runs}
    return measure(longer.scenario, longer.run, out, progress) | {"precision": told}


def numbers(payload: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    yield "busy by the law", payload["occupancy"]["utilisation"]
    yield "busy in truth", payload["truth"]["utilisation"]
    service_s, queueing_s = (payload["occupancy"][f"{name}_time_s"] for name in ("service", "queueing"))
    yield "queueing over service", queueing_s / service_s if service_s > 0 else math.nan


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print what the laws say of a run's log beside what its servers did."""
    counts, said, true = payload["counts"], payload["occupancy"], payload["truth"]
    of = "".join(f" of {counts[who]:,} {who}" for who in ("sessions", "clients") if counts[who])
    console.print(
        f"{payload['scenario']} (seed {payload['seed']}): {counts['requests']:,} requests{of}, "
        f"{said['servers']} servers",
        soft_wrap=True,
    )
    console.print(_law_table(said, true, payload["errors"]))
    counter = payload["counter"]
    median, most = (100 * counter[f"raw_error_{name}"] for name in ("median", "p97"))
    console.print(
        f"  by interval: {counter['low']:.1%} to {counter['high']:.1%} busy, the law off by "
        f"{median:.2f} points (median), {most:.2f} (97th percentile)",
        soft_wrap=True,
    )
    for line in steadily(payload["steady"]):
        console.print(f"  {line}", soft_wrap=True)
    if "precision" in payload:
        console.print(_lengthened(payload["precision"]), soft_wrap=True)
    if said["capacity"]:
        console.print(_capacity_table(said, payload["replays"]))
    for note in said["notes"]:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    console.print(f"  tables and figures: {payload['run']}", soft_wrap=True)


def _stamps(log: pd.DataFrame) -> tuple[Floats, Floats]:
    return log["arrival_s"].to_numpy(), log["departure_s"].to_numpy()


def _laws(scenario: QueueScenario, log: pd.DataFrame, seen: Curve) -> dict[str, Any]:
    """Return what `wsc occupancy` would say of the log; bounds alone where its policy cannot be replayed."""
    asked, why = _asked(scenario)
    urgency = {one.name: one.priority for one in scenario.load.types}
    classes = log["type"].map(urgency).fillna(0).to_numpy().astype(np.int64)
    whole = Cleaned(*_stamps(log), (), 0, paired=True, priority=classes)
    made = laws(whole, seen, asked)
    return {"kind": "occupancy", **made, "notes": [*made["notes"], *why, *_caveats(scenario)]}


def _asked(scenario: QueueScenario) -> tuple[Asked, list[str]]:
    """Return what the laws are asked, and why no replay can be asked for."""
    settings, station = scenario.analyses.occupancy, scenario.station
    told = station.policy if settings.policy == "station" else settings.policy
    asked = Asked(
        station.servers,
        to=settings.to or scenario.replays,
        interval_s=settings.interval_s,
        policy=None if told == "auto" else told,
        identify=told == "auto",
        quantum_s=station.quantum_s,
    )
    if told and (station.speeds or station.rates):
        return replace(asked, policy=None, identify=False), ["no replay: the servers are not all alike"]
    return asked, []


def _caveats(scenario: QueueScenario) -> Iterator[str]:
    """Yield what must be known to read the numbers."""
    load, seen = scenario.load, scenario.observation
    waiting = "sessions" if load.sessions is not None else "clients" if load.clients is not None else ""
    others = scenario.analyses.occupancy.to or scenario.replays
    if waiting and others:
        yield f"{waiting} wait for answers; what other numbers of servers would do is of these arrivals as they were"
    if seen.accept_at_application:
        yield "arrivals are stamped when a worker takes the request: what it waited before that is in no log"
    if scenario.contention != Contention():
        yield "the laws do not hold here: a request that is present may be neither on a server nor waiting for one"


def _replays(found: Run, occupancy: Mapping[str, Any], *, lawful: bool) -> list[dict[str, Any]]:
    """Return what the same load really met on other numbers of servers; queueing only where the law tells it."""
    if not found.has("replays"):
        return []
    table = found.table("replays", ["servers", "arrival_s", "departure_s"])
    rows = []
    for servers in table["servers"].drop_duplicates().tolist():
        made = law(curve(*_stamps(table[table["servers"] == servers])), servers)
        queueing_s = made.queueing_time_s if lawful else math.nan
        change = {"queueing_time_s": queueing_s, "change_s": queueing_s - occupancy["queueing_time_s"]}
        rows.append({"servers": servers, "response_time_s": made.response_time_s, **change})
    return rows


def _lengthened(precision: Mapping[str, Any]) -> str:
    return (
        f"  ±{precision['asked']:.3g} of the mean needed a horizon of {precision['horizon_s']:,.10g} s "
        f"({precision['runs']} runs);\n  a run that stops at a precision covers somewhat less often than it says"
    )


def _law_table(made: Mapping[str, Any], true: Mapping[str, float], off: Mapping[str, float]) -> Table:
    head = ("aggregate over all requests", "by the law", "truth", "error")
    table = Table(*head, title="the Occupancy Law", box=SIMPLE_HEAD)
    for name in ("service", "queueing"):
        known = math.isfinite(off[name])
        seconds, error = f"{true[f'{name}_time_s']:,.1f} s", f"{round(off[name], 4) + 0.0:+.2%} of service"
        table.add_row(f"{name} time", f"{made[f'{name}_time_s']:,.1f} s", *((seconds, error) if known else ("", "")))
    known = math.isfinite(true["utilisation"])
    points = f"{round(100 * (made['utilisation'] - true['utilisation']), 2) + 0.0:+.2f} points"
    truly = (f"{true['utilisation']:.2%}", points) if known else ("", "")
    seen = f"{made['utilisation']:.2%}" if math.isfinite(made["utilisation"]) else "unknown"
    table.add_row("utilisation", seen, *truly)
    return table


def _capacity_table(made: Mapping[str, Any], replays: list[dict[str, Any]]) -> Table:
    head = ("servers", "bounds", "replayed", "demands ±5%", "happened")
    table = Table(*head, title="queueing time", box=SIMPLE_HEAD)
    happened = {row["servers"]: row["queueing_time_s"] for row in replays}
    for row in made["capacity"]:
        table.add_row(str(row["servers"]), *_capacity_cells(row, happened.get(row["servers"], math.nan)))
    return table


def _capacity_cells(row: Mapping[str, Any], happened_s: float) -> Iterator[str]:
    bounds = f"{_seconds(row['queueing_s_low'])} to {_seconds(row['queueing_s_high'])}"
    yield NOTHING if row["bounds_say_nothing"] else bounds
    yield _seconds(row["replay_s"])
    yield f"{_seconds(row['replay_low'])} to {_seconds(row['replay_high'])}" if math.isfinite(row["replay_s"]) else ""
    yield _seconds(happened_s)


def _seconds(value: float) -> str:
    return f"{value:,.1f} s" if math.isfinite(value) else "any" if math.isinf(value) else ""
