"""Measurements of a real fleet in tables of one's own: ``wsc wsmeter plan`` and ``wsc wsmeter estimate``."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.audit.case import Audit, examine
from analysis.audit.findings import Finding, Severity
from analysis.audit.guards import GUARDS
from analysis.audit.intervals import heavy_tails_of_samples
from analysis.effects.observations import ObservationsError
from analysis.statistics import NotEnoughDataError
from analysis.tables.cells import Source, name_of
from analysis.tables.quantities import numbers, times_s
from analysis.tables.recipe import AS_IT_IS, PERIOD, Recipe
from analysis.wsmeter.estimators import WIDENING, Baseline, CurrentIs, Estimate, WSMeter
from analysis.wsmeter.measurements import Reading, read_jobs, read_measurements, read_plan
from analysis.wsmeter.plan import Plan
from analysis.wsmeter.plan import plan as allocate
from analysis.wsmeter.summaries import Current
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, plural
from scenarios.views.section import Block, Says, Section, finding_lines, note_lines, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_JOBS_SHOWN = 40
_GUARDS = {
    "unit_change",
    "units_between_jobs",
    "few_clusters",
    "heavy_tails",
    "instances_independent",
    "weights_renormalised",
}
"""Guards of two tables of instances, of which neither a past nor how machines were chosen is known."""
_NAMES = ("before", "after"), ("old", "new"), ("current", "new"), ("control", "treated"), ("baseline", "candidate")
"""Words in the names of files, of the current table and of the new one."""
_TREATED = "treated"
_ALSO = (_TREATED, PERIOD)
"""Columns that may say which of the two tables has the feature."""
_AGAIN, _MOSTLY = 0.05, 0.25
"""Shares of new rows, beyond chance, from which rows that stand in the current table are a warning, and an error."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlannedInstances(Conclusion):
    """How many instances of each job to observe, and for what margin: ``wsc wsmeter plan``."""

    plan: Plan
    notes: tuple[str, ...]

    def brief(self) -> str:
        """Return how many instances there are to observe, at what cost and for what margin."""
        total = int(self.plan.allocation["instances"].sum())
        return f"{plural(total, 'instance')} at a cost of {self.plan.cost:g} for a margin of ±{self.plan.margin:.2%}"

    def section(self) -> Section:
        """Return the largest allotments, what all of them cost, and the margin that they promise."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        ranked = self.frame().sort_values(["instances", "job"], ascending=[False, True])
        shown = ranked.head(_JOBS_SHOWN)
        rows = [
            (job, f"{instances:,}", f"{continuous:,.2f}")
            for job, instances, continuous in zip(shown["job"], shown["instances"], shown["continuous"], strict=True)
        ]
        yield table(("job", "instances", "continuous"), rows, "Instances to observe")
        if len(ranked) > _JOBS_SHOWN:
            yield Says(f"and {len(ranked) - _JOBS_SHOWN:,} more jobs")
        proof = "the least possible" if self.plan.optimal else "not proven to be the least"
        total, cost = int(ranked["instances"].sum()), self.plan.cost
        yield Says(f"{total:,} instances cost {cost:g} ({proof}) for a margin of ±{self.plan.margin:.2%}")
        yield from note_lines(self.notes)

    def payload(self) -> Payload:
        """Return the instances of each job, in whole numbers and before they were rounded."""
        chosen = self.frame()
        return {
            "kind": "plan",
            "allocation": dict(zip(chosen["job"], chosen["instances"], strict=True)),
            "cost": float(self.plan.cost),
            "margin": float(self.plan.margin),
            "optimal": bool(self.plan.optimal),
            "continuous": dict(zip(chosen["job"], chosen["continuous"], strict=True)),
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return job, instances and continuous, a row a job in the order of the table."""
        return self.plan.allocation.astype({"job": str, "instances": np.int64, "continuous": np.float64})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EstimatedChange(Conclusion):
    """What the estimators say of two tables of instances, and what would make it false: ``wsc wsmeter estimate``."""

    current_is: CurrentIs
    estimates: tuple[Estimate, ...]
    audit: Audit
    notes: tuple[str, ...]

    def brief(self) -> str:
        """Return the change with its interval by the last estimator, or why there is no verdict."""
        if not self.trusted:
            return f"no verdict: fix {', '.join(finding.code for finding in self.audit.errors)} first"
        last = self.estimates[-1]
        return f"{last.change:+.2%} ({interval(last.low, last.high, '+.2%')}) by {last.estimator}"

    @property
    def trusted(self) -> bool:
        """Whether no finding is an error, so that there is a verdict."""
        return not self.audit.errors

    def figure(self) -> "Figure":
        """Return the change by each estimator, with its interval."""
        from analysis.figures.effects.answers import draw_effect

        return draw_effect(self.frame(), pd.DataFrame())

    def section(self) -> Section:
        """Return findings, the estimates, and in words whether there is a change, unless a finding is an error."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        yield from finding_lines(self.audit.findings)
        headings = ("estimator", "machines", "jobs", "change", "interval", "quota", "changed")
        rows = [(*_cells(estimate), self._verdict(estimate)) for estimate in self.estimates]
        yield table(headings, rows, numbers=(False, True, True, True, True, True, False))
        if not self.trusted:
            yield Says(f"no verdict: fix {', '.join(finding.code for finding in self.audit.errors)} first")
        yield from note_lines(self.notes)

    def _verdict(self, estimate: Estimate) -> str:
        if not self.trusted:
            return "no verdict"
        return "yes" if _excludes_current(estimate) else "not found"

    def payload(self) -> Payload:
        """Return all estimates, all findings and the notes."""
        return {
            "kind": "estimate",
            "current_is": self.current_is,
            "estimates": self.frame().to_dict("records"),
            "trusted": self.trusted,
            **self.audit.payload(),
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return a row an estimator: the fields of `Estimate`, and whether the interval excludes the current fleet."""
        rows = [asdict(estimate) | {"excludes_current": _excludes_current(estimate)} for estimate in self.estimates]
        return pd.DataFrame(rows)


def _cells(estimate: Estimate) -> tuple[str, ...]:
    return (
        estimate.estimator,
        f"{estimate.machines:,}",
        f"{estimate.jobs:,}",
        f"{estimate.change:+.2%}",
        interval(estimate.low, estimate.high, "+.2%"),
        "unknown" if math.isnan(estimate.quota_coverage) else f"{estimate.quota_coverage:.1%}",
    )


def _excludes_current(estimate: Estimate) -> bool:
    return not estimate.low <= 0 <= estimate.high


def plan(
    table: Source, margin: float, t: float = 2.0, min_instances: int = 4, recipe: Recipe = AS_IT_IS
) -> PlannedInstances:
    """Return how many instances of each job to observe, from a table of jobs.

    Parameters
    ----------
    table : CSV or Parquet, a query, or a frame; columns job, weight, mean, std, instances, cost
    margin : relative to the weighted mean, above 0
    t : half-width in standard errors
    min_instances : least instances of every job
    recipe : how the table's columns become these

    Raises
    ------
    FaultsError
        If the table cannot be used or no allocation meets the margin.
    """
    name = name_of(table)
    with faults_in(Path(name)):
        reading = read_plan(table, recipe)
        allotted = allocate(reading.table, margin, t, min_instances)
    notes = _located(name, reading)
    if allotted.jobs_below_minimum:
        notes.append(f"jobs with fewer than {min_instances} instances, observed whole: {allotted.jobs_below_minimum}")
    return PlannedInstances(allotted, tuple(notes))


def estimate(
    current: Source,
    new: Source,
    jobs: Source | None = None,
    *,
    current_is: CurrentIs = "population",
    t: float = 2.0,
    min_instances: int = 4,
    recipe: Recipe = AS_IT_IS,
) -> EstimatedChange:
    """Return what the estimators say of two instance tables of a real fleet.

    Parameters
    ----------
    current : the current fleet's; CSV or Parquet, a query, or a frame; columns job, machine, weight, value, all but
        value optional
    new : the same of the machines (or instances) that have the feature
    jobs : columns job, quota, instances of the whole fleet, for full-fleet weights and coverage
    current_is : a sampled current table adds its own variance
    t : half-width in standard errors
    min_instances : least instances of a job that is covered, 2 or more
    recipe : how the columns of both tables of instances become these

    Raises
    ------
    FaultsError
        If a table cannot be used, with all faults of all tables, if both are the same, or if there is too little in
        them.
    """
    wsmeter = [WSMeter(t, min_instances, widening, current_is) for widening in (1.0, WIDENING)]
    old, later = _names(current, new)
    before, after, fleet = _readings((current, old), (new, later), jobs, recipe)
    if before.table.equals(after.table):
        raise FaultsError([Fault(later, 0, 0, "", f"should hold other measurements than {old}", "the same")])
    notes = _located(old, before) + _located(later, after)
    measured = [reading.table.drop(columns=[*_ALSO], errors="ignore") for reading in (before, after)]
    with faults_in(Path(later)):
        tables = Current.of(measured[0]), Current.of(measured[1])
        fleet_jobs = None if fleet is None else fleet.table
        estimates, problems = _estimates(*tables, fleet_jobs, wsmeter, Baseline(t, current_is))
    if len(tables[0].job) == 1:
        values, whole = [side.machine_value for side in tables], current_is == "population"
        tails = heavy_tails_of_samples(values[0], values[1], whole=whole)
        notes += [f"{later}: {finding.what}; better {finding.remedy}" for finding in tails]
    if jobs is None or fleet is None:
        notes.append("no jobs table: jobs weigh as in the current table, and their share of the fleet is unknown")
    else:
        notes += _located(name_of(jobs), fleet)
        missing = len(set(measured[0]["job"]) - set(fleet.table["job"]))
        lacks = f"{name_of(jobs)}: lacks {missing} of the current table's jobs, which are left out"
        notes += [lacks] if missing else []
    swapped = list(
        _swapped(InstanceTable(old, before.table), InstanceTable(later, after.table), whole=current_is == "population")
    )
    audited = _audited(measured[0], measured[1], fleet_jobs, swapped)
    return EstimatedChange(current_is, estimates, audited, (*notes, *problems))


def _names(current: Source, new: Source) -> tuple[str, str]:
    """Return what messages call the two tables."""
    if isinstance(current, pd.DataFrame) or isinstance(new, pd.DataFrame):
        return "current", "new"
    return name_of(current), name_of(new)


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """One of the two tables of instances: its name and its rows."""

    name: str
    rows: pd.DataFrame

    @property
    def treated(self) -> float:
        """Share of the rows that say that they have the feature; NaN where the table does not say it."""
        if _TREATED not in self.rows:
            return math.nan
        flags = self.rows[_TREATED].astype(str).str.strip().str.lower().map({"1": 1, "true": 1, "0": 0, "false": 0})
        return math.nan if flags.isna().any() else float(flags.mean())

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last period, seconds of points in time; NaN where the table has none."""
        if PERIOD not in self.rows:
            return math.nan, math.nan
        texts = self.rows[PERIOD].astype(str)
        value = numbers(texts).value
        value = times_s(texts)[0] if np.isnan(value).any() else value
        return float(np.min(value)), float(np.max(value))

    def is_called(self, word: str) -> bool:
        """Whether the name of its file has a word."""
        return word in re.split(r"[^a-z]+", Path(self.name).name.lower())


def _swapped(current: InstanceTable, new: InstanceTable, *, whole: bool) -> Iterator[Finding]:
    """Yield the strongest sign that the two tables were given in each other's place.

    The tables tell it by the column treated, by periods, by sizes if the current one is said to be the whole fleet, or
    by the names of their files. Two samples without any of these look alike in either order.
    """
    remedy = "give the table without the feature as --current and the one with it as --new"
    if current.treated > 0.0 or new.treated < 1.0:
        shares = {"treated_in_current": current.treated, "treated_in_new": new.treated}
        said = " and ".join(
            f"{share:.0%} of the rows of {arm.name}"
            for arm, share in ((current, current.treated), (new, new.treated))
            if not math.isnan(share)
        )
        what = f"the column treated is true in {said}; it should be 0% of --current and 100% of --new"
        yield Finding("arms_swapped", "error", what, shares, remedy)
    elif new.span[1] < current.span[0]:
        ends = {"last_period_of_new": new.span[1], "first_period_of_current": current.span[0]}
        what = f"all periods of {new.name}, given as --new, lie before those of {current.name}, given as --current"
        yield Finding("arms_swapped", "warning", what, ends, remedy)
    elif whole and _machines(new) > _machines(current):
        counts = {"machines_current": _machines(current), "machines_new": _machines(new)}
        what = (
            f"{new.name}, given as --new, has {counts['machines_new']:,} machines, more than the "
            f"{counts['machines_current']:,} of {current.name}, which should be the whole fleet"
        )
        yield Finding("arms_swapped", "warning", what, counts, f"{remedy}; or give --current-is sample")
    elif any(current.is_called(later) and new.is_called(first) for first, later in _NAMES):
        what = f"the files' names read as if they were swapped: {current.name} is --current, {new.name} is --new"
        yield Finding("arms_swapped", "warning", what, {}, remedy)


def _machines(arm: InstanceTable) -> int:
    return int(arm.rows["machine"].nunique())


def _audited(current: pd.DataFrame, new: pd.DataFrame, jobs: pd.DataFrame | None, swapped: Sequence[Finding]) -> Audit:
    """Return what the guards say that need no past; a machine of both tables counts as two."""
    tables = [table.assign(period=1, treated=treated) for treated, table in enumerate((current, new))]
    both = pd.concat(tables, ignore_index=True)
    apart = both.assign(machine=both["treated"].astype(str) + " " + both["machine"].astype(str))
    single = (both["job"] == both["job"].iloc[0]).all()
    guards = (
        _GUARDS - {"heavy_tails"} if single else _GUARDS
    )  # of a single job a note says it, which knows whole fleets
    again = [*swapped, *_measured_again(current, new)]
    checked = ("arms_swapped", "duplicated_rows")
    try:
        audited = examine(apart, jobs, guards={code: guard for code, guard in GUARDS.items() if code in guards})
    except ObservationsError as error:
        unusable = Finding("unusable_values", "error", str(error), {}, "measure again; nothing can be compared")
        return Audit((*again, unusable), checked)
    return Audit((*again, *audited.findings), (*checked, *audited.checked))


def _measured_again(current: pd.DataFrame, new: pd.DataFrame) -> list[Finding]:
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


def _estimates(
    current: Current, new: Current, jobs: pd.DataFrame | None, wsmeter: Sequence[WSMeter], baseline: Baseline
) -> tuple[tuple[Estimate, ...], list[str]]:
    """Return the estimates, and why the baseline cannot be one where it cannot."""
    estimates = tuple(estimator.estimate(current, new, jobs) for estimator in wsmeter)
    try:
        return (baseline.estimate(current, new, jobs), *estimates), []
    except NotEnoughDataError as error:
        return estimates, [f"no baseline: {error}"]


def _readings(
    current: tuple[Source, str], new: tuple[Source, str], jobs: Source | None, recipe: Recipe
) -> tuple[Reading, Reading, Reading | None]:
    """Read the tables, the first two by their names; the faults of all of them are raised together."""
    faults: list[Fault] = []
    read: list[Reading] = []

    def measured(source: Source) -> Reading:
        return read_measurements(source, recipe, _ALSO)

    tables: list[tuple[Source, str, Callable[[Source], Reading]]] = [(*current, measured), (*new, measured)]
    if jobs is not None:
        tables.append((jobs, name_of(jobs), read_jobs))
    for source, name, reader in tables:
        try:
            with faults_in(Path(name)):
                read.append(reader(source))
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise FaultsError(faults)
    return read[0], read[1], read[2] if jobs is not None else None


def _located(name: str, reading: Reading) -> list[str]:
    """Return the notes on a table, with its name, and how many of its rows are left out for which reasons."""
    notes = [f"{name}: {note}" for note in reading.notes]
    out = reading.left_out
    if len(out):
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in out["reason"].value_counts().items())
        share = len(out) / (len(out) + len(reading.table))
        notes.append(f"{name}: {len(out):,} rows ({share:.2%}) are left out: {reasons}")
    return notes
