"""A fleet's day in a report: how busy it was hour by hour, and what test clusters say of its feature."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.figures.wsmeter.fleet import draw_day, draw_estimates
from models.arrays import DAY_S
from models.fleet.metrics import METRICS
from models.fleet.world import Rollout
from scenarios.files.schema import ProfileScenario, Scenario, WSMeter
from scenarios.report.figures import drawn, saved
from scenarios.report.subject import Subject, composed
from scenarios.runs.rundir import Run, epoch_length_s
from scenarios.views.section import Figure, Section, Table, Verdict, table
from scenarios.views.terminal import Progress
from scenarios.wsmeter.measure import FleetRun, capacity, estimates, has_truth, measure, summary
from scenarios.wsmeter.measurements import Tables, change, settings_of, unit_of

_HOURS_MOST = 48
_PICTURED = {
    "day": "CPU allocated and used, the share of power-capped machines, and power, over the time simulated",
    "estimates": "Estimates of the change from test clusters of several sizes, with their intervals",
}


def happened(subject: Subject, _progress: Progress) -> Iterator[Section]:
    """Yield how a fleet's time went: what was allocated and used, and power, by the hour; nothing of other runs."""
    if not isinstance(subject.scenario, Scenario | ProfileScenario):
        return
    fleet, epochs = summary(subject.run), subject.run.table("epochs")
    threads = capacity(subject.run)
    busy = f"{fleet['allocated_share']:.0%} of CPU allocated, {fleet['utilisation']:.0%} used"
    moved = f"{fleet['moved_share']:.0%} of instances restarted or moved"
    says = (
        f"{busy}, {fleet['power_w']:.0f} W a machine.",
        f"{moved}, {fleet['drained_share']:.1%} of machines drained.",
    )
    figure = (drawn(draw_day(epochs, threads), _PICTURED["day"]),) if len(epochs) > 1 else ()
    yield composed(
        "What happened",
        says,
        (course(epochs, threads, epoch_length_s(subject.run)),),
        figure,
        verdicts=(Verdict("The fleet", says[0]),),
        answer=fleet,
    )


def course(epochs: pd.DataFrame, threads: float, epoch_s: float) -> Table:
    """Return how busy a fleet was, by the hour; by the day if it is more than two days.

    Parameters
    ----------
    epochs : table `epochs`
    threads : hardware threads of the fleet
    epoch_s : length of an epoch
    """
    start_s = epochs["start_s"].to_numpy(np.float64)
    hours = (start_s[-1] + epoch_s) / 3600.0
    unit, length_s = ("hour", 3600.0) if hours <= _HOURS_MOST else ("day", 86400.0)
    rows = []
    for number, of in epochs.groupby((start_s // length_s).astype(np.int64)):
        room_s = epoch_s * len(of)
        shares = of["quota_vcpu"].mean() / threads, of["cpu_s"].sum() / (threads * room_s), of["capped_share"].mean()
        power_kw = of["energy_j"].sum() / room_s / 1e3
        rows.append((str(number), *(f"{share:.1%}" for share in shares), f"{power_kw:,.1f}"))
    return table((unit, "CPU allocated", "CPU used", "power-capped", "power, kW"), rows, words=0)


def wsmeter(subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what WSMeter says of the feature from test clusters, beside the truth; nothing of a run without one."""
    scenario, run = subject.scenario, subject.run
    if not isinstance(scenario, Scenario | ProfileScenario) or scenario.feature is None:
        return
    if isinstance(scenario, ProfileScenario):
        if (full_s := _complete_s(scenario.feature.rollout)) > 0:
            yield _no_estimate(full_s, scenario.horizon_s)
            return
        conclusion, figures = _of_profiled(scenario, run)
    else:
        conclusion = measure(scenario, run, run.path.parent, progress)
        figures = saved((str(file) for file in conclusion.figures if file.stem == "estimates"), _PICTURED)
    tables = tuple(conclusion.tables())
    if not tables:
        return
    words, true = METRICS[conclusion.metric].words, conclusion.true
    says = (
        f"What is measured: {words}. What is compared: test clusters of {conclusion.unit}s with the feature beside all "
        "without it, as published: differences that existed without the feature are not removed."
    )
    yield composed(
        "WSMeter: the change from small test clusters",
        (says, f"True change of the whole fleet: {true:+.2%}." if math.isfinite(true) else ""),
        tables,
        figures,
        _again(run, conclusion) if scenario.kind == "fleet" else (),
        (_verdict(conclusion),),
        conclusion,
    )


def _again(run: Run, conclusion: FleetRun) -> tuple[str, str]:
    """Return the commands that say it again, with the metric where it is not that of the scenario."""
    other = conclusion.metric != settings_of(run).metric
    metric = f" --metric {conclusion.metric}" if other else ""
    return f"wsc run {run.path}{metric}", f"wsc validate {conclusion.scenario}{metric}"


def _complete_s(rollout: Rollout) -> float:
    """Return when the last wave of a roll-out has the feature, in seconds; 0: all have it from the start."""
    return rollout.start_s + (rollout.waves - 1) * rollout.interval_s


def _no_estimate(full_s: float, horizon_s: float) -> Section:
    """Return why WSMeter says nothing of a feature that was rolled out during the days that are measured together."""
    days = f"{full_s / DAY_S:g} of {horizon_s / DAY_S:g} days"
    why = f"no estimate: the roll-out is complete only after {days}"
    says = (
        f"For the first {days} not all machines that get the feature had it. WSMeter would compare all days together, "
        "so that days without the feature count as days with it. The feature's effect above compares day by day.",
    )
    return composed("WSMeter: no estimate of this feature", says, verdicts=(Verdict("WSMeter", why),))


def _of_profiled(scenario: ProfileScenario, run: Run) -> tuple[FleetRun, tuple[Figure, ...]]:
    """Return what `wsc run` would say of a profiled fleet's feature, were it a fleet's run, and the picture."""
    settings, unit = _profiled(run), unit_of(scenario)
    estimated = estimates(run, settings, unit)
    true = change(Tables.of(run, settings)) if has_truth(run) else math.nan
    conclusion = FleetRun(
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
        rounds=pd.DataFrame(),
    )
    if not len(estimated):
        return conclusion, ()
    return conclusion, (drawn(draw_estimates(estimated, true, f"{unit}s"), _PICTURED["estimates"]),)


def wsmeter_settings(subject: Subject) -> WSMeter:
    """Return what WSMeter is asked of a fleet: what its scenario says, or of a profiled fleet all its days together."""
    scenario = subject.scenario
    return scenario.analyses.wsmeter if isinstance(scenario, Scenario) else _profiled(subject.run)


def _profiled(run: Run) -> WSMeter:
    """Return the settings for a profiled fleet: all days together, test clusters no larger than it can give.

    Instructions per CPU second, as `wsc effect RUN`: per cycle, a faster clock that waits more looks like a loss.
    """
    settings, having = settings_of(run), int(run.table("machines", ["feature"])["feature"].sum())
    sizes = tuple(size for size in settings.machines if size <= having)
    return replace(settings, machines=sizes or (max(1, having),))


def _verdict(conclusion: FleetRun) -> Verdict:
    rows = conclusion.estimates.to_dict("records")
    known = [row for row in rows if math.isfinite(row["change"]) and row["estimator"] == "wsmeter"]
    if not known:
        return Verdict("WSMeter", "too little data in every test cluster")
    row, true = known[-1], conclusion.true
    says = f"{row['change']:+.2%} ± {row['margin']:.2%} from {row['machines']:,} {conclusion.unit}s"
    if not math.isfinite(true):
        return Verdict("WSMeter", f"{says}; the truth is not known")
    holds = bool(row["low"] <= true <= row["high"])
    return Verdict("WSMeter", f"{says}; the truth, {true:+.2%}, is {'inside' if holds else 'outside'}", holds)
