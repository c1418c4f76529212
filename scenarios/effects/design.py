"""How to find a change of a given size in one's own fleet: `wsc design`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.effects.assignment import COLUMNS, assigned, is_assignment
from analysis.effects.methods import RECOMMENDED
from analysis.effects.observations import read_jobs
from analysis.effects.past import Past, period_length
from analysis.effects.planning import Plan, Wanted, fewest, ranked
from analysis.effects.rehearsals import Assumed, Rehearsal, crossover, spans
from analysis.statistics import NotEnoughDataError
from models.arrays import HOUR_S
from models.metrics import METRICS, MetricName
from scenarios.effects.observed import observed, run_metric
from scenarios.effects.simulated_past import simulated, simulated_periods
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.loader import load
from scenarios.files.schema import Scenario
from scenarios.runs.unfinished import unwritable, whole
from scenarios.views.output import Progress
from scenarios.wsmeter.own import faults_in, show_notes

if TYPE_CHECKING:
    from rich.console import Console

ESTIMATORS = (RECOMMENDED, "cuped", "published")
_AFTERWARDS = {
    "balanced": "wsc effect estimates it by adjusted: the same change, but its interval knows nothing of the balancing",
    "paired": "wsc effect estimates it by adjusted, with all machines without the feature as controls, not by pairs",
}
"""Designs whose own estimator would need to know how machines were drawn, which tables of results do not tell."""
_LONGEST_S = 7200.0
"""Longest period of a crossover."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the experiment is to be able to do."""

    detect: float = 0.01
    """Relative change of the fleet to be seen."""
    power: float = 0.95
    confidence: float = 0.95
    days: float = 7.0
    """Days of the longer study, and of the time before it."""
    crossover: bool = False
    """Whether the feature can be switched on and off by the period."""
    spread: float | None = None
    """Standard deviation of the jobs' relative effects; twice the change if not said."""
    apart: float | None = None
    """Standard deviation of what a machine adds to effects on what it holds; a quarter of the jobs' if not said."""
    draws: int = 500
    seed: int = 1
    assign: Path | None = None
    """File for who gets the feature when, by the first design."""
    metric: MetricName | None = None
    """Of runs and of a scenario; that of the scenario if not said."""

    @property
    def wanted(self) -> Wanted:
        """What plans are made for."""
        return Wanted(self.detect, self.power, self.confidence, self.draws, self.seed)

    @property
    def assumed(self) -> Assumed:
        """What the feature is taken to be like."""
        spread = 2 * self.detect if self.spread is None else self.spread
        return Assumed(self.detect, spread, spread / 4 if self.apart is None else self.apart, self.seed)


def design(sources: Sequence[str], asked: Asked, jobs: Path | None, tell: Progress) -> dict[str, Any]:
    """Return the designs that would find a change, the cheapest that can be trusted first.

    Parameters
    ----------
    sources : files of observations, or folders of runs, of a fleet without the feature; or one scenario
    asked : what the experiment is to do
    jobs : job, quota, instances of the whole fleet; with tables alone
    tell : told what is being done and the share done

    Returns
    -------
    dict
        kind, detect, power, confidence, spread, apart, period_s, periods, machines (of the fleet), designs (design,
        estimator, machines (None where the fleet is too small), machine_hours, margin, power, power_error, coverage,
        coverage_error, smallest (change that is seen with the power asked for), trusted, why, afterwards (the estimator
        that `wsc effect` is to take of the result), notes), smallest (of the best design that can be trusted, on as
        many machines as it may have), assigned (file and design; None if nothing was to be assigned, or no design that
        can be trusted finds the change), notes.

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables, the scenario or what is asked.
    """
    if asked.assign is not None and (problem := _unassignable(asked.assign, [*sources, *([jobs] if jobs else [])])):
        raise FaultsError([Fault("--assign", 0, 0, "", problem)])
    tables = [source for source in sources if Path(source).exists() and Path(source).suffix not in {".yaml", ".yml"}]
    if not tables:
        return _of_scenario(sources, asked, tell)
    missing = [Fault(source, 0, 0, "", "is not there") for source in sources if source not in tables]
    if missing:
        raise FaultsError(missing)
    past, notes = _past(tables, jobs, asked.metric)
    if asked.crossover and past.period_s > _LONGEST_S:
        problem = "needs periods of two hours or less"
        raise FaultsError([Fault("--crossover", 0, 0, "", problem, f"periods of {past.period_s / HOUR_S:g} h")])
    with faults_in(Path(tables[0])):
        found = list(_rehearsals(past, asked))
        if asked.crossover:
            found.append(crossover(past, asked.assumed))
    return _planned(past, found, asked, tell, notes)


def _unassignable(file: Path, read: Sequence[str | Path]) -> str:
    """Return why who gets the feature cannot be written there; empty: it may take the place of what is there."""
    if problem := unwritable(file):
        return problem
    if file.resolve() in {Path(each).resolve() for each in read}:
        return f"would overwrite what is read, got {file}"
    try:
        former = not file.exists() or is_assignment(file)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if former else f"is there and holds no former plan ({', '.join(COLUMNS)}), got {file}"


def _of_scenario(sources: Sequence[str], asked: Asked, tell: Progress) -> dict[str, Any]:
    if len(sources) != 1:
        raise FaultsError([Fault("SCENARIO", 0, 0, "", "only one may be given", shown(list(sources)))])
    world = load(sources[0])
    if not isinstance(world, Scenario):
        raise FaultsError([Fault(sources[0], 0, 0, "kind", "should be fleet", world.kind)])
    tell("simulating", 0.0)
    metric = asked.metric or world.analyses.wsmeter.metric
    past = simulated(world, max(2 * round(asked.days), 2), metric)
    found = list(_rehearsals(past, asked))
    if asked.crossover:
        tell("simulating", 0.5)
        found.append(crossover(simulated_periods(world, metric=metric), asked.assumed))
    tell("simulating", 1.0)
    notes = [
        "simulated without the feature, in epochs of an hour (of a quarter where the feature is switched)",
        _measured(metric),
    ]
    if world.cells > 1:
        notes.append(f"of the fleet's {world.cells} cells one is simulated, and the experiment takes place in one")
    return _planned(past, found, asked, tell, notes)


def _past(tables: Sequence[str], jobs: Path | None, metric: MetricName | None) -> tuple[Past, list[str]]:
    """Return what the tables say of the time before anything had the feature."""
    paths = [Path(source) for source in tables]
    table, notes = observed(paths, metric)
    if (measured := run_metric(paths, metric)) is not None:
        notes.append(_measured(measured))
    fleet = None
    if jobs is not None:
        with faults_in(jobs):
            fleet = read_jobs(jobs).table
    treated = table.loc[table["treated"] == 1, "period"]
    if len(treated):
        table = table[table["period"] < treated.min()].reset_index(drop=True)
        notes.append(f"only the periods before {treated.min():g} are used, when the first machine has the feature")
    periods = table["period"].nunique()
    if periods < 2:
        problem = "at least two periods in which nothing has the feature are needed"
        raise FaultsError([Fault(", ".join(tables), 0, 0, "period", problem, str(periods))])
    return Past(table.drop(columns="file"), period_length(table), fleet), notes


def _measured(metric: MetricName) -> str:
    return f"measured: {METRICS[metric].words} ({metric})"


def _rehearsals(past: Past, asked: Asked) -> Iterator[Rehearsal]:
    lengths = sorted({1.0, asked.days})
    for days in lengths:
        yield from spans(past, days, asked.assumed, ESTIMATORS)


def _planned(
    past: Past, found: Sequence[Rehearsal], asked: Asked, tell: Progress, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what rehearsals say, and write who gets the feature if that is asked."""
    plans, impossible = _rehearsed(found, asked.wanted, tell)
    best = next((plan for plan in plans if plan.trusted), None)
    written, unwritten = _assigned(best, asked)
    return {
        "kind": "design",
        "detect": asked.detect,
        "power": asked.power,
        "confidence": asked.confidence,
        "spread": asked.assumed.spread,
        "apart": asked.assumed.apart,
        "period_s": past.period_s,
        "periods": len(past.periods),
        "machines": int(past.table["machine"].nunique()),
        "designs": [_row(plan, best, asked) for plan in plans],
        "smallest": _smallest(plans, best),
        "assigned": written,
        "notes": [*notes, *impossible, *unwritten],
    }


def _rehearsed(found: Sequence[Rehearsal], wanted: Wanted, tell: Progress) -> tuple[list[Plan], list[str]]:
    """Return the smallest size of each design, the first to take first, and which designs cannot be, and why."""
    plans, impossible = list[Plan](), list[str]()
    for place, rehearsal in enumerate(found):
        tell("rehearsing designs", place / len(found))
        if rehearsal.most < rehearsal.least:
            impossible.append(f"{rehearsal.design}, {rehearsal.estimator}: the fleet has too few machines")
            continue
        try:
            plans.append(fewest(rehearsal, wanted))
        except NotEnoughDataError as error:
            impossible.append(f"{rehearsal.design}, {rehearsal.estimator}: {error}")
    tell("rehearsing designs", 1.0)
    return ranked(plans), impossible


def _smallest(plans: Sequence[Plan], best: Plan | None) -> float | None:
    """Return the smallest change that is seen where none of the designs that can be trusted sees the one asked for."""
    if best is None or best.enough:
        return None
    return min(plan.found.smallest for plan in plans if plan.trusted)


def _assigned(best: Plan | None, asked: Asked) -> tuple[dict[str, str] | None, list[str]]:
    """Write who gets the feature when; return file and design, and why not if there is no design to do it by."""
    if asked.assign is None:
        return None, []
    if best is None or not best.enough:
        return None, [f"no design that can be trusted finds the change, so {asked.assign} is not written"]
    _write(assigned(best, asked.seed), asked.assign)
    return {"file": str(asked.assign), "design": best.rehearsal.design}, []


def _write(table: pd.DataFrame, file: Path) -> None:
    try:
        with whole(file) as partial:
            if file.suffix == ".parquet":
                table.to_parquet(partial, index=False)
            else:
                table.to_csv(partial, index=False, lineterminator="\n")
    except OSError as error:
        problem = f"cannot write {file}: {error.strerror or error}"
        raise FaultsError([Fault("--assign", 0, 0, "", problem)]) from None


def _row(plan: Plan, best: Plan | None, asked: Asked) -> dict[str, Any]:
    found, own = plan.found, plan.rehearsal.estimator
    return {
        "design": plan.rehearsal.design,
        "estimator": own,
        "machines": found.machines if plan.enough else None,
        "machine_hours": plan.machine_hours if plan.enough else None,
        "margin": found.margin,
        "power": found.power,
        "power_error": found.power_error,
        "coverage": found.coverage,
        "coverage_error": found.coverage_error,
        "smallest": found.smallest,
        "tried": found.machines,
        "trusted": plan.trusted,
        "why": _why(plan, best, asked),
        "afterwards": RECOMMENDED if own in _AFTERWARDS else own,
        "notes": [*plan.rehearsal.notes, *([_AFTERWARDS[own]] if own in _AFTERWARDS else [])],
    }


def _why(plan: Plan, best: Plan | None, asked: Asked) -> str:
    """Return in words why a design stands where it does."""
    found = plan.found
    if not plan.trusted:
        return f"its intervals hold the truth in {found.coverage:.0%} where they claim {asked.confidence:.0%}"
    if not plan.enough:
        seen = f"{found.smallest:.2%}" if math.isfinite(found.smallest) else "nothing"
        return f"the fleet is too small: {found.machines:,} machines see {seen}"
    if best is None or plan is best:
        return "fewest machine-hours of those whose intervals hold what they claim"
    hours = plan.machine_hours / best.machine_hours
    machines = found.machines / best.found.machines
    return f"{hours:.1f} times the first one's machine-hours, {machines:.1f} times its machines"


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the designs as a table, the first to take on top."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("design", "estimator", "machines", "machine-hours", "margin", "power", "coverage", "why"):
        table.add_column(heading, no_wrap=heading != "why")
    for row in payload["designs"]:
        enough = row["machines"] is not None
        table.add_row(
            row["design"],
            row["estimator"],
            f"{row['machines']:,}" if enough else f"over {row['tried']:,}",
            f"{row['machine_hours']:,.0f}" if enough else "",
            f"±{row['margin']:.2%}",
            f"{row['power']:.1%} ±{row['power_error']:.1%}",
            f"{row['coverage']:.1%}",
            row["why"],
        )
    console.print(
        f"To see a change of {payload['detect']:.2%} in {payload['power']:.0%} of experiments, "
        f"in a fleet of {payload['machines']:,} machines:",
        highlight=False,
    )
    console.print(table)
    if payload["smallest"] is not None:
        console.print(
            f"The fleet is too small for that. The smallest change that it shows is {payload['smallest']:.2%}.",
            highlight=False,
        )
    if payload["assigned"] is not None:
        console.print("Who gets the feature when, by {design}: {file}".format(**payload["assigned"]), highlight=False)
    first = payload["designs"][0] if payload["designs"] else None
    if first is not None and first["trusted"] and first["machines"] is not None:
        console.print(
            f"The first design's result afterwards: wsc effect … --estimator {first['afterwards']}", highlight=False
        )
    said = dict.fromkeys(f"{row['design']}: {note}" for row in payload["designs"] for note in row["notes"])
    show_notes({"notes": [*payload["notes"], *said]}, console)
