"""A fleet's run is measured as its scenario's analyses say: what `wsc run` and `wsc validate` print of it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.figures.wsmeter.day import draw_day
from analysis.figures.wsmeter.estimates import draw_estimates
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import Estimate
from models.fleet.world import World
from scenarios.files.loader import load
from scenarios.files.schema import Scenario, WSMeter
from scenarios.runs.execution import obtain
from scenarios.runs.kept import concluded
from scenarios.runs.pictures import save
from scenarios.runs.rundir import Draft, Run, RunError
from scenarios.views.output import Progress
from scenarios.wsmeter.beside import beside, beside_table
from scenarios.wsmeter.clusters import clusters
from scenarios.wsmeter.measurements import job_quotas
from scenarios.wsmeter.truth import Tables, change_of, in_words
from scenarios.wsmeter.validate import estimators, show_validate
from scenarios.wsmeter.validate import validate as judge

Unit = Literal["machine", "instance"]
__all__ = ("measure", "numbers", "render", "show_validate", "simulate", "validate")


def simulate(scenario: Scenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a fleet into a draft, and return how much there is of what."""
    from sim.fleet.experiment import experiment

    outcome = experiment(scenario.world, draft.path, progress=progress)
    draft.add(*outcome.tables)
    return outcome.counts


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
    true = change_of(found, settings) if has_truth(found) else math.nan
    files = [
        *save(draw_day(found.table("epochs"), capacity(found)), found.path / "day"),
        *(save(draw_estimates(made, true, f"{unit}s"), found.path / "estimates") if len(made) else []),
    ]
    others = [obtain(load(name), out, False, progress) for name in scenario.analyses.beside]
    return {
        "kind": scenario.kind,
        "run": str(found.path),
        "scenario": scenario.name,
        "seed": scenario.seed,
        "counts": found.manifest["counts"],
        "metric": settings.metric,
        "unit": unit,
        "truth": {"change": true},
        "estimates": made.to_dict("records"),
        "rounds": _rounds(scenario, found, progress).to_dict("records"),
        "beside": [beside(found, other, settings) for other in others],
        "fleet": summary(found),
        "figures": [str(file) for file in files],
    }


def _rounds(scenario: Scenario, found: Run, progress: Progress) -> pd.DataFrame:
    """Return what each round of WSMeter's loop planned, rolled out and found; no row if the scenario asks for none."""
    loop = scenario.recording.loop
    if scenario.feature is None or loop is None:
        return pd.DataFrame()

    def rolled_out() -> pd.DataFrame:
        from scenarios.wsmeter.loop import rounds
        from sim.fleet.day import prepare

        progress("preparing the loop", 0.0)
        return rounds(prepare(scenario.world), loop, progress)

    return concluded(found.path, "rounds", rolled_out)


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
    drawn = clusters(found, settings, int(found.manifest["seed"]), by_instance=unit == "instance")
    if drawn is None:
        return pd.DataFrame(columns=names)
    jobs, made = job_quotas(found, settings), []
    for size, new in drawn.new.items():
        for each in estimators(settings):
            try:
                made.append(_row(each.estimate(drawn.current, new, jobs), names))
            except NotEnoughDataError:
                made.append({"estimator": each.name, "machines": size})
    return pd.DataFrame(made, columns=names)


def has_truth(found: Run) -> bool:
    """Return whether a run has the counterfactual pair."""
    return found.has("truth_nowhere_counters") and found.has("truth_everywhere_counters")


def unit_of(scenario: World) -> Unit:
    """Return what a test cluster of the scenario is made of: machines, or instances for new code."""
    by_instance = scenario.feature is not None and scenario.feature.rollout.unit == "instance"
    return "instance" if by_instance else "machine"


def numbers(payload: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    yield "true change", payload["truth"]["change"]
    known = [row for row in payload["estimates"] if row["estimator"] == "wsmeter" and math.isfinite(row["change"])]
    if known:
        yield "WSMeter's estimate", known[-1]["change"]
        yield "margin", known[-1]["margin"]
    yield "CPU used", payload["fleet"]["utilisation"]


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print what a run was and what its test clusters said."""
    counts, fleet, true = payload["counts"], payload["fleet"], payload["truth"]["change"]
    cells = f"{counts['cells']:,} cells, " if "cells" in counts else ""
    console.print(
        f"{payload['scenario']} (seed {payload['seed']}): {cells}"
        f"{counts['machines']:,} machines, {counts['jobs']:,} jobs, "
        f"{counts['instances']:,} instances, {counts['epochs']:,} epochs",
        f"  {fleet['allocated_share']:.0%} of CPU allocated, {fleet['utilisation']:.0%} used, "
        f"{fleet['power_w']:.0f} W a machine",
        f"  {fleet['moved_share']:.0%} of instances restarted or moved, "
        f"{fleet['drained_share']:.1%} of machines drained",
        sep="\n",
        soft_wrap=True,
    )
    if math.isfinite(true) or payload["estimates"]:
        console.print(f"  {in_words(payload['metric'], true)}", highlight=False, soft_wrap=True)
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


def summary(found: Run) -> dict[str, float]:
    """Return shares that say what kind of a day it was: CPU allocated and used, instances moved, machines drained."""
    epochs, cells = found.table("epochs"), found.split()
    counts, threads = found.manifest["counts"], capacity(found)
    epoch_s = float(found.manifest["resolved"]["epoch_s"])
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


def capacity(found: Run) -> float:
    """Return the hardware threads of a run's fleet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"vcpus": [40, 80]}).to_parquet(Path(folder, "machines.parquet"))
    ...     capacity(Run(Path(folder), {}))
    120.0
    """
    return float(found.table("machines", ["vcpus"])["vcpus"].sum())


def _row(made: Estimate, names: list[str]) -> dict[str, Any]:
    return {name: getattr(made, name) for name in names}
