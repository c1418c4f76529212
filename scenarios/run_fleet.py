"""A fleet's run is measured as its scenario's analyses say: what `wsc run` and `wsc validate` print of it."""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.clusters import MachineRows, random_machines
from analysis.estimators import Estimate
from analysis.figures.day import draw_day
from analysis.figures.estimates import draw_estimates
from analysis.statistics import Current, NotEnoughDataError
from models.randomness import stream
from scenarios.beside import beside, beside_table
from scenarios.execution import obtain
from scenarios.loader import load
from scenarios.output import Progress
from scenarios.pictures import save
from scenarios.recorded import job_quotas, measured
from scenarios.rundir import Run, RunError
from scenarios.schema import Scenario, WSMeter
from scenarios.truth import Tables, by_own_machine, change, halves_of
from scenarios.validate import estimators
from scenarios.validate import validate as judge

Unit = Literal["machine", "instance"]


def measure(scenario: Scenario, found: Run, out: Path, progress: Progress) -> dict[str, Any]:
    """Return what `wsc run` says of a run that is there; without its ``truth_`` tables the truth is NaN.

    Parameters
    ----------
    scenario : whose analyses are made
    found : its run
    out : folder of the runs that stand beside it
    progress : told what is being done
    """
    settings = scenario.analyses.wsmeter
    unit = unit_of(scenario)
    made = estimates(found, settings, unit) if not scenario.periods else pd.DataFrame()
    true = change(Tables.of(found, settings)) if has_truth(found) else math.nan
    files = [
        *save(draw_day(found.table("epochs"), _capacity(found)), found.path / "day"),
        *(save(draw_estimates(made, true, f"{unit}s"), found.path / "estimates") if len(made) else []),
    ]
    others = [obtain(load(name), out, False, progress) for name in scenario.analyses.beside]
    return {
        "kind": scenario.kind,
        "run": str(found.path),
        "scenario": scenario.name,
        "seed": scenario.seed,
        "counts": found.manifest["counts"],
        "unit": unit,
        "truth": {"change": true},
        "estimates": made.to_dict("records"),
        "rounds": found.table("rounds").to_dict("records") if found.has("rounds") else [],
        "beside": [beside(found, other, settings) for other in others],
        "fleet": _summary(found),
        "figures": [str(file) for file in files],
    }


def validate(scenario: Scenario, out: Path, force: bool, progress: Progress) -> dict[str, Any]:
    """Return what `wsc validate` says: how often each estimator's interval was right over many test clusters.

    Raises
    ------
    RunError
        If the scenario has no feature or records no truth, so that there is nothing to be right about.
    """
    if scenario.feature is None or not scenario.recording.truth:
        why = "it has no feature" if scenario.feature is None else "recording.truth is false"
        raise RunError(f"{scenario.name}: there is no truth to validate against, {why}")
    if scenario.periods:
        raise RunError(f"{scenario.name}: machines switch the feature on and off, for which WSMeter has no estimator")
    found = obtain(scenario, out, force, progress)
    settings, unit = scenario.analyses.wsmeter, unit_of(scenario)
    payload = judge(
        Tables.of(found, settings), settings, scenario.seed, unit, lambda done, all_: progress("drawing", done / all_)
    )
    return payload | {"scenario": scenario.name, "run": str(found.path), "seed": scenario.seed}


def estimates(found: Run, settings: WSMeter, unit: Unit) -> pd.DataFrame:
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
    table = measured(found, settings)
    try:
        without, having = halves_of(by_own_machine(table) if unit == "instance" else table)
    except NotEnoughDataError:
        return pd.DataFrame(columns=names)
    jobs, current, rows = job_quotas(found, settings), Current.of(without), MachineRows.of(having)
    made = []
    for size in settings.machines:
        rng = stream(int(found.manifest["seed"]), f"test cluster/{size}")
        new = Current.of(having.take(random_machines(rng, rows, size)))
        for each in estimators(settings):
            try:
                made.append(_row(each.estimate(current, new, jobs), names))
            except NotEnoughDataError:
                made.append({"estimator": each.name, "machines": size})
    return pd.DataFrame(made, columns=names)


def has_truth(found: Run) -> bool:
    """Return whether a run has the counterfactual pair."""
    return found.has("truth_nowhere_counters") and found.has("truth_everywhere_counters")


def unit_of(scenario: Scenario) -> Unit:
    """Return what a test cluster of the scenario is made of: machines, or instances for new code."""
    by_instance = scenario.feature is not None and scenario.feature.rollout.unit == "instance"
    return "instance" if by_instance else "machine"


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print what a run was and what its test clusters said."""
    counts, fleet, true = payload["counts"], payload["fleet"], payload["truth"]["change"]
    console.print(
        f"{payload['scenario']} (seed {payload['seed']}): {counts['machines']:,} machines, {counts['jobs']:,} jobs, "
        f"{counts['instances']:,} instances, {counts['epochs']:,} epochs",
        f"  {fleet['allocated_share']:.0%} of CPU allocated, {fleet['utilisation']:.0%} used, "
        f"{fleet['power_w']:.0f} W a machine",
        f"  {fleet['moved_share']:.0%} of instances restarted or moved, "
        f"{fleet['drained_share']:.1%} of machines drained",
        sep="\n",
        soft_wrap=True,
    )
    if math.isfinite(true):
        console.print(f"  true change of the whole fleet: {true:+.2%}")
    if payload["estimates"]:
        console.print(_estimate_table(payload))
    if payload["rounds"]:
        console.print(_round_table(payload))
    for other in payload["beside"]:
        console.print(beside_table(payload["scenario"], other))
    console.print(f"  tables and figures: {payload['run']}", soft_wrap=True)


def _estimate_table(payload: Mapping[str, Any]) -> Table:
    head = (f"{payload['unit']}s", "estimator", "change", "excludes 0", "quota", "jobs")
    table = Table(
        *head, title="one test cluster of each size", caption="quota: share that the jobs hold", box=SIMPLE_HEAD
    )
    for row in payload["estimates"]:
        if not math.isfinite(row["change"]):
            table.add_row(f"{row['machines']:,}", row["estimator"], "too little data")
            continue
        table.add_row(
            f"{row['machines']:,}",
            row["estimator"],
            f"{row['change']:+.2%} ±{row['margin']:.2%}",
            "no" if row["low"] <= 0 <= row["high"] else "yes",
            f"{row['quota_coverage']:.1%}",
            f"{row['jobs']:,.0f}",
        )
    return table


def _round_table(payload: Mapping[str, Any]) -> Table:
    title = "the loop: plan, roll out, check, plan again"
    head = ("round", f"{payload['unit']}s", "jobs", "target", "planned", "margin", "change", "accepted")
    table = Table(*head, title=title, box=SIMPLE_HEAD)
    for row in payload["rounds"]:
        margins = (f"±{row[name]:.2%}" for name in ("target_margin", "planned_margin", "margin"))
        accepted = "yes" if row["accepted"] else "no"
        table.add_row(
            str(row["round"]), f"{row['machines']:,}", str(row["jobs"]), *margins, f"{row['change']:+.2%}", accepted
        )
    return table


def _summary(found: Run) -> dict[str, float]:
    """Return shares that say what kind of a day it was."""
    epochs, events = found.table("epochs"), found.table("events")
    instances = found.table("instances", ["instance", "ended_by"])
    counts, threads = found.manifest["counts"], _capacity(found)
    epoch_s = float(found.manifest["resolved"]["epoch_s"])
    moved = instances[~instances["ended_by"].isin(["horizon", "exit"])]["instance"].nunique()
    drained = events[events["kind"] == "drain"]["machine"].nunique()
    horizon_s = epoch_s * counts["epochs"]
    return {
        "allocated_share": float(epochs["quota_vcpu"].mean()) / threads,
        "utilisation": float(epochs["cpu_s"].sum()) / (threads * horizon_s),
        "moved_share": moved / counts["instances"],
        "drained_share": drained / counts["machines"],
        "power_w": float(epochs["energy_j"].sum()) / (counts["machines"] * horizon_s),
    }


def _capacity(found: Run) -> float:
    return float(found.table("machines", ["vcpus"])["vcpus"].sum())


def _row(made: Estimate, names: list[str]) -> dict[str, Any]:
    return {name: getattr(made, name) for name in names}
