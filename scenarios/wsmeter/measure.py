"""A fleet's run is measured as its scenario's analyses say: what `wsc run` and `wsc validate` print of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.figures.wsmeter.changes import NORMAL_95, job_changes
from analysis.figures.wsmeter.fleet import draw_day, draw_estimates
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.clusters import MachineRows, random_machines
from analysis.wsmeter.estimators import Estimate, paper_estimators
from analysis.wsmeter.summaries import Current
from models.arrays import Ints
from models.code.parts import PartError
from models.fleet.metrics import MetricName
from models.randomness import stream
from scenarios.files.loader import digest, load
from scenarios.files.schema import Scenario, WSMeter
from scenarios.kinds import ANALYSES, KINDS
from scenarios.runs.conclusions import concluded, kept_conclusion
from scenarios.runs.disk import save
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Draft, Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, plural
from scenarios.views.section import Block, Place, Says, Section, Table, table
from scenarios.views.terminal import Progress
from scenarios.wsmeter.measurements import (
    Unit,
    change_of,
    halves_of,
    in_words,
    job_quotas,
    measurements_by_cell,
    partly_on,
    run_measurements,
    unit_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def simulate(scenario: Scenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a fleet into a draft, and return how much there is of what."""
    from sim.fleet.experiment import experiment

    outcome = experiment(scenario.world, draft.path, progress=progress)
    draft.add(*outcome.tables)
    return outcome.counts


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """Another run whose jobs changed too, and how far the changes are apart."""

    scenario: str
    run: Path
    jobs: pd.DataFrame
    """name, change, margin, change_there, margin_there, and differs: by more than both margins together."""

    def payload(self) -> Payload:
        """Return what ``--json`` prints of it."""
        return {"scenario": self.scenario, "run": str(self.run), "jobs": self.jobs.to_dict("records")}

    def table(self, here: str) -> Table:
        """Return the changes beside those of the scenario that is called so."""
        rows = [
            (
                row["name"],
                f"{row['change']:+.2%} ±{row['margin']:.2%}",
                f"{row['change_there']:+.2%} ±{row['margin_there']:.2%}",
                "yes" if row["differs"] else "no",
            )
            for row in self.jobs.to_dict("records")
        ]
        return table(("job", here, self.scenario, "differ"), rows, f"change beside {self.scenario}", words=4)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FleetRun(Conclusion):
    """What test clusters say of a fleet's feature, beside the truth: ``wsc run`` of a fleet."""

    kind: str
    run: Path
    scenario: str
    seed: int
    counts: Mapping[str, int]
    metric: MetricName
    unit: Unit
    """What a test cluster is made of."""
    true: float
    """Change of the whole fleet; NaN where the truth is not recorded."""
    estimates: pd.DataFrame
    """A row an estimator and size, the fields of `Estimate`."""
    fleet: Mapping[str, float]
    rounds: pd.DataFrame
    """A row a round of the loop: table `rounds`."""
    beside: tuple[Beside, ...] = ()
    figures: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not concluded, and why."""

    def brief(self) -> str:
        """Return the true change, and the last estimate on the largest test cluster."""
        true = f"true change {self.true:+.2%}" if math.isfinite(self.true) else ""
        if not len(self.estimates):
            return true or f"{self.counts['machines']:,} machines, {self.counts['jobs']:,} jobs"
        row = self.estimates.iloc[-1]
        ends = f"{row['change']:+.2%} ({interval(row['low'], row['high'], '+.2%')})"
        return f"{true}; {row['estimator']} {ends}, {plural(int(row['machines']), self.unit)}".removeprefix("; ")

    def figure(self) -> "Figure":
        """Return the intervals of every estimator by size of the test cluster, beside the truth."""
        if not len(self.estimates):
            return Conclusion.figure(self)
        return draw_estimates(self.estimates, self.true, f"{self.unit}s")

    def section(self) -> Section:
        """Return what kind of a day it was, and what estimators and the loop say of the feature."""
        return Section(
            "",
            (*self.day(), *self.truth(), *self.tables(), *self.missing(), Place(f"  tables and figures: {self.run}")),
        )

    def day(self) -> Iterator[Block]:
        """Yield how large the fleet is and how busy it was."""
        counts, fleet = self.counts, self.fleet
        cells = f"{counts['cells']:,} cells, " if "cells" in counts else ""
        yield Says(
            f"{self.scenario} (seed {self.seed}): {cells}{counts['machines']:,} machines, {counts['jobs']:,} jobs, "
            f"{counts['instances']:,} instances, {counts['epochs']:,} epochs"
        )
        yield Says(
            f"  {fleet['allocated_share']:.0%} of CPU allocated, {fleet['utilisation']:.0%} used, "
            f"{fleet['power_w']:.0f} W a machine"
        )
        yield Says(
            f"  {fleet['moved_share']:.0%} of instances restarted or moved, "
            f"{fleet['drained_share']:.1%} of machines drained"
        )

    def truth(self) -> Iterator[Block]:
        """Yield what is measured, and the true change."""
        if math.isfinite(self.true) or len(self.estimates):
            yield Says(f"  {in_words(self.metric, self.true)}")

    def tables(self) -> Iterator[Table]:
        """Yield what each estimator, each round of the loop and each run beside this one says."""
        if len(self.estimates):
            yield self._estimates()
        if len(self.rounds):
            yield self._rounds()
        yield from (other.table(self.scenario) for other in self.beside)

    def missing(self) -> Iterator[Block]:
        """Yield what is not concluded, and why."""
        yield from (Says(f"  {note}") for note in self.notes)

    def _estimates(self) -> Table:
        rows = []
        for row in self.estimates.to_dict("records"):
            size, name = f"{row['machines']:,}", row["estimator"]
            if not math.isfinite(row["change"]):
                rows.append((size, name, "too little data", "", "", ""))
                continue
            change, excludes = f"{row['change']:+.2%} ±{row['margin']:.2%}", not row["low"] <= 0 <= row["high"]
            quota, jobs = f"{row['quota_coverage']:.1%}", f"{row['jobs']:,.0f}"
            rows.append((size, name, change, "yes" if excludes else "no", quota, jobs))
        headings = (f"{self.unit}s", "estimator", "change", "excludes 0", "quota", "jobs")
        title, caption = (
            "what one test cluster of each size shows",
            "±: half of the 95% interval; quota: share of the fleet's CPU quota that the measured jobs hold",
        )
        return table(headings, rows, title, words=6, caption=caption, keys=2)

    def _rounds(self) -> Table:
        rows = []
        for row in self.rounds.to_dict("records"):
            margins = (f"±{row[name]:.2%}" for name in ("target_margin", "planned_margin", "margin"))
            size, change = f"{row['machines']:,}", f"{row['change']:+.2%}"
            rows.append(
                (str(row["round"]), size, str(row["jobs"]), *margins, change, "yes" if row["accepted"] else "no")
            )
        headings = ("round", f"{self.unit}s", "jobs", "target", "planned", "margin", "change", "accepted")
        return table(headings, rows, "the loop: plan, roll out, check, plan again", words=8)

    def payload(self) -> Payload:
        """Return the run, the truth and all estimates."""
        return {
            "kind": self.kind,
            "run": str(self.run),
            "scenario": self.scenario,
            "seed": self.seed,
            "counts": self.counts,
            "metric": self.metric,
            "unit": self.unit,
            "truth": {"change": self.true},
            "estimates": self.estimates.to_dict("records"),
            "rounds": self.rounds.to_dict("records"),
            "beside": [other.payload() for other in self.beside],
            "fleet": self.fleet,
            "notes": list(self.notes),
            "figures": [str(file) for file in self.figures],
        }

    def frame(self) -> pd.DataFrame:
        """Return a row an estimator and size of test cluster."""
        return self.estimates


def measure(scenario: Scenario, run: Run, out: Path, progress: Progress) -> FleetRun:
    """Return what `wsc run` says of a run that is there; without its ``truth_`` tables the truth is NaN.

    Parameters
    ----------
    scenario : whose analyses are made
    run : its run
    out : folder of the runs that stand beside it
    progress : told what is being done
    """
    measured = _alone(scenario, run, out, progress)
    others = [obtain(load(name), out, False, progress) for name in scenario.analyses.beside]
    return replace(measured, beside=tuple(beside(run, other, scenario.analyses.wsmeter) for other in others))


@kept_conclusion
def _alone(scenario: Scenario, run: Run, _out: Path, progress: Progress) -> FleetRun:
    """Return what a run says without those beside it."""
    settings, unit = scenario.analyses.wsmeter, unit_of(scenario)
    estimated = estimates(run, settings, unit) if not scenario.periods else pd.DataFrame()
    true = change_of(run, settings) if has_truth(run) else math.nan
    rounds, without = _rounds(scenario, run, progress)
    notes = *filter(None, (partly_on(scenario), _not_estimated(scenario, run, estimated))), *without
    figures = [
        *(save(draw_day(run.table("epochs"), capacity(run)), run.path / "day") if scenario.epochs > 1 else []),
        *(save(draw_estimates(estimated, true, f"{unit}s"), run.path / "estimates") if len(estimated) else []),
    ]
    return FleetRun(
        kind=scenario.kind,
        run=run.path,
        scenario=scenario.name,
        seed=scenario.seed,
        counts=run.manifest["counts"],
        metric=settings.metric,
        unit=unit,
        true=true,
        estimates=estimated,
        fleet=summary(run),
        rounds=rounds,
        figures=tuple(Path(file) for file in figures),
        notes=notes,
    )


def _not_estimated(scenario: Scenario, run: Run, estimated: pd.DataFrame) -> str:
    """Return why nothing is estimated of a feature; empty if something is, or machines switch it on and off."""
    if scenario.feature is None or scenario.periods or len(estimated):
        return ""
    having = any(part.table("instances", ["feature"])["feature"].any() for part in run.split())
    return f"no estimates: {'every' if having else 'no'} {unit_of(scenario)} has the feature"


def beside(run: Run, other: Run, settings: WSMeter) -> Beside:
    """Return the change of each job that a run and another one measure, with 95% margins."""
    own, others = (_changes(each_run, settings) for each_run in (run, other))
    both = own.merge(others, on="name", suffixes=("", "_there"))
    apart = (both["change"] - both["change_there"]).abs() > both["margin"] + both["margin_there"]
    return Beside(other.manifest["scenario"], other.path, both.assign(differs=apart))


def _changes(run: Run, settings: WSMeter) -> pd.DataFrame:
    changes = job_changes(*halves_of(run_measurements(run, settings)), min_instances=settings.min_instances)
    named = changes.merge(run.table("jobs", ["job", "name"]), on="job")
    return pd.DataFrame({"name": named["name"], "change": named["change"], "margin": NORMAL_95 * named["error"]})


def _rounds(scenario: Scenario, run: Run, progress: Progress) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return what each round of WSMeter's loop planned, rolled out and found, and why there is none.

    There is no row if the scenario asks for none. Rounds are simulated: with a governor or a mechanism that is not the
    one of the run they would be of another fleet.
    """
    loop = scenario.recording.loop
    if scenario.feature is None or loop is None:
        return pd.DataFrame(), ()

    def rolled_out() -> pd.DataFrame:
        from scenarios.wsmeter.loop import rounds
        from sim.fleet.day import prepare

        if changed := _changed(scenario, run):
            raise PartError(f"the loop is not simulated: {changed} changed since the run was made, or is gone")
        progress("preparing the loop", 0.0)
        return rounds(prepare(scenario.world), loop, progress)

    try:
        return concluded(run.path, "rounds", rolled_out), ()
    except PartError as error:
        return pd.DataFrame(), (str(error),)


def _changed(scenario: Scenario, run: Run) -> str:
    """Return the names of a world's own governors and mechanisms if they are not all as the run had them."""
    kind = KINDS[scenario.kind]
    names = [text for way, text in kind.parts(scenario).items() if not way.startswith(ANALYSES)]
    try:
        same = not names or digest(scenario, kind.outside(scenario)) == run.manifest["digest"]
    except PartError:
        same = False
    return "" if same else " or ".join(names)


def estimates(run: Run, settings: WSMeter, unit: Unit) -> pd.DataFrame:
    """Return what each estimator says of one test cluster of each size; the truth tables are not looked at.

    Parameters
    ----------
    found : a run, with or without its ``truth_`` tables
    settings : metric, window, sizes and the estimators' settings
    unit : ``machine`` or ``instance``: what a test cluster is made of

    Returns
    -------
    DataFrame
        One row per estimator and size, the fields of `Estimate`; empty without a feature.
    """
    names = [field.name for field in fields(Estimate)]
    drawn = clusters(run, settings, int(run.manifest["seed"]), by_instance=unit == "instance")
    if drawn is None:
        return pd.DataFrame(columns=names)
    jobs, rows = job_quotas(run, settings), []
    for size, new in drawn.new.items():
        for estimator in paper_estimators(settings.t, settings.min_instances, settings.widen):
            try:
                rows.append(_row(estimator.estimate(drawn.current, new, jobs), names))
            except NotEnoughDataError:
                rows.append({"estimator": estimator.name, "machines": size})
    return pd.DataFrame(rows, columns=names)


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The fleet without the feature, and a test cluster of each size that was asked for."""

    current: Current
    new: Mapping[int, Current]


def clusters(run: Run, settings: WSMeter, seed: int, *, by_instance: bool = False) -> Clusters | None:
    """Draw a test cluster of each size, None if all or nothing has the feature; one cell is in memory at a time.

    Parameters
    ----------
    run : a run, with or without its ``truth_`` tables
    settings : metric, window, jobs and sizes
    seed : of the draws; each size has a stream of its own
    by_instance : whether every instance counts as a machine of its own, for features of single instances
    """
    cells = _Cells(run, settings, by_instance)
    summed, counts = list[Current](), list[pd.Series]()
    for without, having in cells:
        counts.append(having["machine"].value_counts(sort=False).sort_index())
        summed += [Current.of(without)] if len(without) else []
    rows = _machine_rows(counts)
    if not summed or not len(rows.machines):
        return None
    chosen = {size: random_machines(stream(seed, f"test cluster/{size}"), rows, size) for size in settings.machines}
    ends = np.cumsum([int(count.sum()) for count in counts])
    taken = {size: list[pd.DataFrame]() for size in chosen}
    for (_, having), end in zip(cells, ends, strict=True):
        for size, at in chosen.items():
            inside = at[(at >= end - len(having)) & (at < end)] - (end - len(having))
            taken[size].append(having.take(inside))
    return Clusters(Current.joined(summed), {size: Current.of(_joined(tables)) for size, tables in taken.items()})


class _Cells:
    """The halves of each cell without and with the feature, the latter in order of machines; read anew each time."""

    def __init__(self, run: Run, settings: WSMeter, by_instance: bool) -> None:
        self.run, self.settings, self.by_instance = run, settings, by_instance
        self.only = None if run.cells else list(measurements_by_cell(run, settings))

    def __iter__(self) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        before = 0
        for rows in self.only or measurements_by_cell(self.run, self.settings):
            own = rows.assign(machine=before + np.arange(len(rows))) if self.by_instance else rows
            before += len(rows)
            feature = own["feature"].to_numpy(dtype=np.bool_)
            yield own[~feature], own[feature].sort_values("machine", kind="stable", ignore_index=True)


def _machine_rows(counts: Sequence[pd.Series]) -> MachineRows:
    """Return where each machine's rows stand in the cells' tables, one after the other."""
    count: Ints = np.concatenate([rows.to_numpy(dtype=np.int64) for rows in counts])
    machines = pd.Index(np.concatenate([rows.index.to_numpy() for rows in counts]))
    return MachineRows(machines, np.arange(count.sum()), np.concatenate([[0], np.cumsum(count)]))


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def has_truth(run: Run) -> bool:
    """Return whether a run has the counterfactual pair."""
    return run.has("truth_nowhere_counters") and run.has("truth_everywhere_counters")


def numbers(answer: FleetRun) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    yield "true change", answer.true
    known = [
        row
        for row in answer.estimates.to_dict("records")
        if row["estimator"] == "wsmeter" and math.isfinite(row["change"])
    ]
    if known:
        yield "WSMeter's estimate", known[-1]["change"]
        yield "margin", known[-1]["margin"]
    yield "CPU used", answer.fleet["utilisation"]


def summary(run: Run) -> dict[str, float]:
    """Return shares that say what kind of a day it was: CPU allocated and used, instances moved, machines drained."""
    epochs, cells = run.table("epochs"), run.split()
    counts, threads = run.manifest["counts"], capacity(run)
    epoch_s = float(run.manifest["resolved"]["epoch_s"])
    moved = sum(_moved(cell.table("instances", ["instance", "ended_by"])) for cell in cells)
    drained = sum(_drained(cell.table("events", ["machine", "kind"])) for cell in cells)
    horizon_s = epoch_s * counts["epochs"]
    return {
        "allocated_share": float(epochs["quota_vcpu"].mean()) / threads,
        "utilisation": float(epochs["cpu_s"].sum()) / (threads * horizon_s),
        "moved_share": moved / counts["instances"],
        "drained_share": drained / counts["machines"],
        "power_w": float(epochs["energy_j"].sum()) / (counts["machines"] * horizon_s),
    }


def _moved(instances: pd.DataFrame) -> int:
    return int(instances[~instances["ended_by"].isin(["horizon", "exit"])]["instance"].nunique())


def _drained(events: pd.DataFrame) -> int:
    return int(events[events["kind"] == "drain"]["machine"].nunique())


def capacity(run: Run) -> float:
    """Return the hardware threads of a run's fleet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"vcpus": [40, 80]}).to_parquet(Path(folder, "machines.parquet"))
    ...     capacity(Run(Path(folder), {}))
    120.0
    """
    return float(run.table("machines", ["vcpus"])["vcpus"].sum())


def _row(estimate: Estimate, names: list[str]) -> dict[str, object]:
    return {name: getattr(estimate, name) for name in names}
