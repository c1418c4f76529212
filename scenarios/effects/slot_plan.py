"""The plan of experiments on slots: read, with everything that is wrong in it, and held against the tables."""

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pandas as pd

from analysis.audit.findings import Finding
from analysis.effects.overlaps import SlotExperiment
from analysis.effects.recorded_slots import RecordedSlots, recorded_slots
from analysis.tables.cells import Source, name_of
from analysis.tables.columns import BY_SELECT, Field, Remedies, read_rows
from scenarios.effects.slots import in_order
from scenarios.files.faults import Fault, FaultsError, faults_in, shown
from scenarios.views.numbers import plural, share

FIELDS = (
    Field("experiment", "text"),
    Field("slot", "text"),
    Field("treated", "flag"),
    Field("since", "real", above_zero=False, required=False, may_be_empty=True),
)
_NAMED = 5
"""Names that a message lists."""


def read_plan(
    plan: Source, rows: pd.DataFrame, cut: "pd.Series[str]"
) -> tuple[list[SlotExperiment], list[tuple[Finding, ...]], list[str]]:
    """Return the experiments of a plan, what the tables say against each, and notes.

    Parameters
    ----------
    plan : experiment, slot, treated and perhaps since
    rows : the tables: machine, period, treated, and slot, empty for a machine that has none
    cut : the slot of each machine

    Raises
    ------
    FaultsError
        With everything that is wrong with the plan.
    """
    with faults_in(Path(name_of(plan))):
        read = read_rows(plan, FIELDS, lambda _: ("experiment", "slot"), remedies=Remedies(missing=BY_SELECT))
    columns = {str(name): place for place, name in enumerate(read.table.columns, 1)}
    entries = read.table.assign(line=read.lines)
    if "since" not in entries:
        entries["since"] = math.nan
    treated_rows = set(rows.loc[rows["treated"] == 1, "slot"].dropna())
    free = frozenset(cut) - frozenset(entries.loc[entries["treated"] == 1, "slot"])
    experiments, faults, notes = list[SlotExperiment](), list[Fault](), list[str]()
    for name, own in entries.groupby("experiment", sort=False):
        experiment = _experiment(str(name), own, rows, free - treated_rows)
        experiments.append(experiment)
        for line, field, problem, got in _wrong(experiment, own, rows, frozenset(cut)):
            faults.append(Fault(name_of(plan), line, columns.get(field, 1), field, problem, got))
        if own["treated"].all() and (treated_elsewhere := free & treated_rows):
            notes.append(f"{name}: {_named(treated_elsewhere)}: no controls, as the tables have treated rows there")
    if faults:
        raise FaultsError(faults)
    if not treated_rows:
        return experiments, [()] * len(experiments), [*notes, "no row of the slots is treated: nothing checks the plan"]
    findings = list[tuple[Finding, ...]]()
    for experiment in experiments:
        record = recorded_slots(experiment, [other for other in experiments if other is not experiment], rows)
        findings.append(tuple(_disagreements(experiment, record)))
        if record.untold:
            notes.append(
                f"{experiment.name}: {_named(record.untold)} also under another experiment: the tables do not say "
                "whose feature they have, so nothing checks the plan there"
            )
    return experiments, findings, notes


def listed_slots(names: Collection[str]) -> str:
    """Return names of slots in their order, many of them by their number."""
    return ", ".join(in_order([*names])) if len(names) <= _NAMED else plural(len(names), "slot")


def _named(names: Collection[str]) -> str:
    """Return slots as words of a sentence."""
    return f"slot{'s' * (len(names) > 1)} {listed_slots(names)}" if len(names) <= _NAMED else listed_slots(names)


def _experiment(name: str, own: pd.DataFrame, rows: pd.DataFrame, free: frozenset[str]) -> SlotExperiment:
    """Return an experiment of its rows of the plan; its first period is NaN where neither plan nor tables say it."""
    having = own["treated"] == 1
    treated, controls = frozenset(own.loc[having, "slot"]), frozenset(own.loc[~having, "slot"])
    recorded = rows.loc[rows["slot"].isin(treated) & (rows["treated"] == 1), "period"]
    since = own["since"].min() if own["since"].notna().any() else recorded.min()
    return SlotExperiment(name, treated, controls or free, float(since))


def _wrong(
    experiment: SlotExperiment, own: pd.DataFrame, rows: pd.DataFrame, known: frozenset[str]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield what is wrong with the rows of an experiment: line, column, problem and what was found."""
    unknown = own[~own["slot"].isin(known)]
    for line, slot in zip(unknown["line"], unknown["slot"], strict=True):
        yield int(line), "slot", "should be a slot of the cut", shown(slot)
    line, name, filled = int(own["line"].iloc[0]), experiment.name, frozenset(rows["slot"].dropna())
    if not experiment.treated:
        yield line, "treated", f"should be 1 for a slot of {name}", ""
    if not experiment.controls:
        yield line, "slot", f"{name} names no controls (treated 0), and no slot is without a feature", ""
    for arm, words in ((experiment.treated & known, "treated slots"), (experiment.controls & known, "controls")):
        if arm and not arm & filled:
            yield line, "slot", f"should have rows in the tables: the {words} of {name} have none", ""
    first, last = rows["period"].min(), rows["period"].max()
    begins = own[own["since"].notna()]
    for place, since in zip(begins["line"], begins["since"], strict=True):
        if not first <= since <= last:
            yield int(place), "since", f"should be in the tables' periods, {first:g} to {last:g}", f"{since:g}"
        elif since != begins["since"].iloc[0]:
            same = f"{begins['since'].iloc[0]:g} as in line {begins['line'].iloc[0]}: {name} begins once"
            yield int(place), "since", f"should be {same}", f"{since:g}"
    if experiment.treated and begins.empty and math.isnan(experiment.since):
        yield line, "since", f"is needed: the tables have nothing as treated in the slots of {name}", ""


def _disagreements(experiment: SlotExperiment, record: RecordedSlots) -> Iterator[Finding]:
    """Yield what the tables say against the plan of an experiment."""
    since, correct = f"period {experiment.since:g}", "correct the plan, or treated in the tables"
    if wrong := record.disagreeing:
        what = f"by the tables these rows have the feature from {since} on: {_shares(wrong)}"
        remedy = f"{correct}; name in the plan what else runs in these slots"
        yield Finding("other_slots", "error", what, wrong, remedy)
    if record.first != experiment.since and not math.isnan(record.first):
        what = f"it begins with {since}; the first treated row of its treated slots is of period {record.first:g}"
        evidence = {"since": experiment.since, "first_treated": record.first}
        yield Finding("other_since", "warning", what, evidence, "correct since, or treated in the tables")
    if partly := {f"treated slot {slot}": of for slot, of in record.partly.items()}:
        what = f"only a part of the rows of treated slots has the feature: {_shares(partly)}"
        yield Finding("partly_treated", "warning", what, partly, f"{correct}; the change is that of the whole slots")
    if record.before:
        what = f"controls have treated rows before {since}: {_named(record.before)}"
        remedy = "take other slots as controls, or leave those periods out (--where)"
        yield Finding("treated_before", "warning", what, {"slots": float(len(record.before))}, remedy)


def _shares(shares: Mapping[str, float]) -> str:
    """Return shares in words, many of them by their number."""
    words = [f"{share(of, 0)} of {name}" for name, of in shares.items()]
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {plural(more, 'other')}" if more > 0 else "")
