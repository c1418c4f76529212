"""Measurements of a real fleet: ``wsc plan`` and ``wsc estimate``, as JSON-ready dicts and as tables to read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analysis.audit.findings import Audit, Finding, Severity
from analysis.audit.guards import GUARDS, examine
from analysis.audit.table import ObservationsError
from analysis.audit.tails import heavy_tails_of_samples
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import WIDENING, Baseline, Current, CurrentIs, Estimate, WSMeter
from analysis.wsmeter.measurements import Reading, read_jobs, read_measurements, read_plan
from analysis.wsmeter.plan import plan as allocate
from scenarios.files.faults import Fault, FaultsError, faults_in

_ROWS = 40
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}
_ASKED = {
    "unit_change",
    "units_between_jobs",
    "few_clusters",
    "heavy_tails",
    "instances_independent",
    "weights_renormalised",
}
"""Guards of two tables of instances, of which neither a past nor how machines were chosen is known."""
_AGAIN, _MOSTLY = 0.05, 0.25
"""Shares of new rows, beyond chance, from which rows that stand in the current table are a warning, and an error."""


def plan(table: Path, margin: float, t: float = 2.0, min_instances: int = 4) -> dict[str, Any]:
    """Return how many instances of each job to observe, from a table of jobs.

    Parameters
    ----------
    table : CSV or Parquet; columns job, weight, mean, std, instances, cost
    margin : relative to the weighted mean, above 0
    t : half-width in standard errors
    min_instances : least instances of every job

    Raises
    ------
    FaultsError
        If the file cannot be used or no allocation meets the margin.
    """
    with faults_in(table):
        reading = read_plan(table)
        made = allocate(reading.table, margin, t, min_instances)
    chosen = made.allocation
    notes = _located(table, reading)
    if made.jobs_below_minimum:
        notes.append(f"jobs with fewer than {min_instances} instances, observed whole: {made.jobs_below_minimum}")
    return {
        "kind": "plan",
        "allocation": {str(job): int(n) for job, n in zip(chosen["job"], chosen["instances"], strict=True)},
        "cost": float(made.cost),
        "margin": float(made.margin),
        "optimal": bool(made.optimal),
        "continuous": {str(job): float(x) for job, x in zip(chosen["job"], chosen["continuous"], strict=True)},
        "notes": notes,
    }


def estimate(
    current: Path,
    new: Path,
    jobs: Path | None = None,
    *,
    current_is: CurrentIs = "population",
    t: float = 2.0,
    min_instances: int = 4,
) -> dict[str, Any]:
    """Return what the estimators say of two instance tables of a real fleet.

    Parameters
    ----------
    current : the current fleet's; CSV or Parquet; columns job, machine, weight, value, all but value optional
    new : the same of the machines (or instances) that have the feature
    jobs : columns job, quota, instances of the whole fleet, for full-fleet weights and coverage
    current_is : a sampled current table adds its own variance
    t : half-width in standard errors
    min_instances : least instances of a job that is covered

    Raises
    ------
    FaultsError
        If a file cannot be used, with all faults of all files, if both are the same, or if there is too little in them.
    """
    before, after, fleet = _readings(current, new, jobs)
    if current.samefile(new) or before.table.equals(after.table):
        raise FaultsError([Fault(str(new), 0, 0, "", f"should hold other measurements than {current}", "the same")])
    notes = _located(current, before) + _located(new, after)
    wsmeter = [WSMeter(t, min_instances, widening, current_is) for widening in (1.0, WIDENING)]
    with faults_in(new):
        tables = Current.of(before.table), Current.of(after.table)
        fleet_jobs = None if fleet is None else fleet.table
        made, problems = _estimates(*tables, fleet_jobs, wsmeter, Baseline(t, current_is))
    if len(tables[0].job) == 1:
        values, whole = [each.machine_value for each in tables], current_is == "population"
        found = heavy_tails_of_samples(values[0], values[1], whole=whole)
        notes += [f"{new}: {one.what}; better {one.remedy}" for one in found]
    if jobs is None or fleet is None:
        notes.append("no jobs table: jobs weigh as in the current table, and their share of the fleet is unknown")
    else:
        notes += _located(jobs, fleet)
        missing = len(set(before.table["job"]) - set(fleet.table["job"]))
        notes += [f"{jobs}: lacks {missing} of the current table's jobs, which are left out"] if missing else []
    audited = _audited(before.table, after.table, fleet_jobs)
    trusted = all(one.severity != "error" for one in audited.findings)
    return {
        "kind": "estimate",
        "current_is": current_is,
        "estimates": made,
        "trusted": trusted,
        **audited.payload(),
        "notes": notes + problems,
    }


def status(payload: Mapping[str, Any]) -> int:
    """Return the exit status of `wsc estimate` and `wsc effect`: 0 if there is a verdict, 1 if a finding is an error.

    Examples
    --------
    >>> status({"trusted": True}), status({"trusted": False})
    (0, 1)
    """
    return 0 if payload["trusted"] else 1


def _audited(current: pd.DataFrame, new: pd.DataFrame, jobs: pd.DataFrame | None) -> Audit:
    """Return what the guards say that need no past; a machine of both tables counts as two."""
    tables = [table.assign(period=1, treated=treated) for treated, table in enumerate((current, new))]
    both = pd.concat(tables, ignore_index=True)
    apart = both.assign(machine=both["treated"].astype(str) + " " + both["machine"].astype(str))
    single = (both["job"] == both["job"].iloc[0]).all()
    asked = _ASKED - {"heavy_tails"} if single else _ASKED  # of a single job a note says it, which knows a whole fleet
    again = _told_again(current, new)
    try:
        found = examine(apart, jobs, without=GUARDS.keys() - asked)
    except ObservationsError as error:
        unusable = Finding("unusable_values", "error", str(error), {}, "measure again; nothing can be compared")
        return Audit((*again, unusable), ("duplicated_rows",))
    return Audit((*again, *found.findings), ("duplicated_rows", *found.checked))


def _told_again(current: pd.DataFrame, new: pd.DataFrame) -> list[Finding]:
    """Return whether rows of the new table stand in the current one, in more numbers than rounded values explain.

    A row stands there if all columns that both tables have agree. Rows that a machine or an instance tells apart agree
    by chance as often as two rows of the current table, others as often as one of them has a double there.
    """
    shared = [name for name in current.columns if name in new.columns]
    if any(table["machine"].tolist() == [str(row) for row in range(len(table))] for table in (current, new)):
        shared.remove("machine")  # every row is a machine of its own, named by its place
    counts = [table.value_counts(shared, dropna=False) for table in (current, new)]
    both = int(np.minimum(*counts[0].align(counts[1], join="inner")).sum())
    sizes = current.groupby(["job", "value"])["value"].size()
    if {"machine", "instance"} & {*shared}:
        whole = current.groupby("job")["value"].size()
        chance = float((sizes * (sizes - 1)).sum() / max((whole * (whole - 1)).sum(), 1))
    else:
        chance = float(sizes[sizes > 1].sum() / len(current))
    share = both / len(new)
    if share - chance <= _AGAIN:
        return []
    severity: Severity = "error" if share - chance > _MOSTLY else "warning"
    what = f"{both:,} of {len(new):,} new rows stand in the current table, too; rounding explains {chance:.0%} of them"
    evidence = {"rows": both, "share": share, "by_chance": chance}
    remedy = "leave the machines with the feature out of the current table, and give measurements of two times"
    return [Finding("duplicated_rows", severity, what, evidence, remedy)]


def show_plan(payload: Mapping[str, Any], console: Console) -> None:
    """Print a plan as a table, the largest allotments first."""
    table = Table("job", "instances", "continuous", title="Instances to observe")
    ranked = sorted(payload["allocation"].items(), key=lambda item: (-item[1], item[0]))
    for job, instances in ranked[:_ROWS]:
        table.add_row(escape(job), f"{instances:,}", f"{payload['continuous'][job]:,.2f}")
    console.print(table)
    if len(ranked) > _ROWS:
        console.print(f"and {len(ranked) - _ROWS:,} more jobs", highlight=False)
    proof = "the least possible" if payload["optimal"] else "not proven to be the least"
    total = sum(payload["allocation"].values())
    console.print(
        f"{total:,} instances cost {payload['cost']:g} ({proof}) for a margin of ±{payload['margin']:.2%}",
        highlight=False,
        soft_wrap=True,
    )
    show_notes(payload, console)


def show_estimate(payload: Mapping[str, Any], console: Console) -> None:
    """Print findings, estimates as a table, and in words whether there is a change, unless a finding is an error."""
    show_findings(payload, console)
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("estimator", "machines", "jobs", "change", "interval", "quota", "changed"):
        table.add_column(heading, no_wrap=True)
    for row in payload["estimates"]:
        table.add_row(
            row["estimator"],
            f"{row['machines']:,}",
            f"{row['jobs']:,}",
            f"{row['change']:+.2%}",
            f"{row['low']:+.2%} to {row['high']:+.2%}",
            "unknown" if math.isnan(row["quota_coverage"]) else f"{row['quota_coverage']:.1%}",
            "not said" if not payload["trusted"] else "yes" if row["excludes_current"] else "not found",
        )
    console.print(table)
    if not payload["trusted"]:
        errors = ", ".join(one["code"] for one in payload["findings"] if one["severity"] == "error")
        console.print(f"no verdict: mend {errors} first", highlight=False, soft_wrap=True)
    show_notes(payload, console)


def show_findings(payload: Mapping[str, Any], console: Console) -> None:
    """Print what guards found, with what to do about it."""
    for one in payload["findings"]:
        colour, what = _COLOURS[one["severity"]], escape(one["what"])
        console.print(f"[{colour}]{one['severity']}[/{colour}] [bold]{one['code']}[/bold]: {what}", soft_wrap=True)
        console.print(f"  remedy: {one['remedy']}", highlight=False, soft_wrap=True)


def show_notes(payload: Mapping[str, Any], console: Console) -> None:
    """Print a payload's notes, one a line."""
    for note in payload["notes"]:
        console.print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)


def _estimates(
    current: Current, new: Current, jobs: pd.DataFrame | None, wsmeter: Sequence[WSMeter], baseline: Baseline
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the estimates, and why the baseline cannot be one where it cannot."""
    made = [each.estimate(current, new, jobs) for each in wsmeter]
    try:
        made.insert(0, baseline.estimate(current, new, jobs))
    except NotEnoughDataError as error:
        return _rows(made), [f"no baseline: {error}"]
    return _rows(made), []


def _rows(estimates: Sequence[Estimate]) -> list[dict[str, Any]]:
    return [asdict(each) | {"excludes_current": not each.low <= 0 <= each.high} for each in estimates]


def _readings(current: Path, new: Path, jobs: Path | None) -> tuple[Reading, Reading, Reading | None]:
    """Read the files; the faults of all of them are raised together."""
    found: list[Fault] = []
    read: list[Reading] = []
    for path, reader in ((current, read_measurements), (new, read_measurements), (jobs, read_jobs)):
        if path is not None:
            try:
                with faults_in(path):
                    read.append(reader(path))
            except FaultsError as error:
                found += error.faults
    if found:
        raise FaultsError(found)
    return read[0], read[1], read[2] if jobs is not None else None


def _located(path: Path, reading: Reading) -> list[str]:
    return [f"{path}: {note}" for note in reading.notes]
