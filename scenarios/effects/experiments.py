"""Many experiments at once, each on slots of its own: what each changed, and whether they interact."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.audit.findings import MATERIAL, Finding
from analysis.effects.methods import RECOMMENDED, method, of_tables
from analysis.effects.mixes import MixDifference, mix_difference
from analysis.effects.overlaps import Overlap, SlotExperiment, aliased, interaction, overlaps, taken_out
from analysis.effects.strata import StratifiedFleet
from analysis.statistics import Statistic
from analysis.tables.cells import Source, name_of
from analysis.tables.recipe import AS_IT_IS, Recipe
from analysis.wsmeter.measurements import read_jobs
from models.fleet.metrics import MetricName
from scenarios.effects.effect import EffectAnswer, effect
from scenarios.effects.observations import jobs_of_run, observed
from scenarios.effects.slot_plan import listed_slots, read_plan
from scenarios.effects.slots import in_order, read_slots
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, plural
from scenarios.views.section import Block, Cell, Says, Section, finding_lines, note_lines, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROOM = 10
"""Machines for each feature from which on what features change is taken out of experiments that they cross."""


@dataclass(frozen=True, slots=True)
class ExperimentsQuestion:
    """Which experiments ran on which slots, and how they are estimated."""

    slots: Source
    """Which machine is in which slot: machine, slot."""
    plan: Source
    """experiment, slot, treated (0 or 1), and perhaps since (the first period with the feature). Without it an
    experiment begins with the first period in which the tables have a machine of its treated slots as treated. An
    experiment without controls has all slots as controls that no experiment treats and that have no treated row."""
    estimator: str = RECOMMENDED
    """A name of those of `wsc effect`."""
    confidence: float = 0.95
    """Of the intervals; those of interactions hold together over all pairs."""
    metric: MetricName | None = None
    """Of runs."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotEffect:
    """One experiment, and what it changed."""

    experiment: SlotExperiment
    answer: EffectAnswer
    findings: tuple[Finding, ...]
    """Of the guards, and of the mix of the slots' machines."""
    mix_skew: float
    """By how much the mixes of platforms and clusters alone set the arms apart; NaN if nothing is known of the past."""

    @property
    def trusted(self) -> bool:
        """Whether there is a verdict."""
        return self.answer.trusted and not any(finding.severity == "error" for finding in self.findings)

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        of = self.answer
        return {
            "experiment": self.experiment.name,
            "treated_slots": list(in_order([*self.experiment.treated])),
            "control_slots": list(in_order([*self.experiment.controls])),
            "since": self.experiment.since,
            "estimator": of.effect.estimator,
            "change": of.change,
            "low": of.low,
            "high": of.high,
            "margin": of.effect.margin,
            "error": of.effect.error,
            "machines": of.effect.machines,
            "controls": of.effect.controls,
            "zero_ruled_out": of.zero_ruled_out,
            "trusted": self.trusted,
            "mix_skew": self.mix_skew,
            "findings": [
                {"code": finding.code, "severity": finding.severity, "what": finding.what, "remedy": finding.remedy}
                for finding in self.findings
            ],
        }

    def cells(self) -> tuple[str | Cell, ...]:
        """Return its row of the table for people."""
        of = self.answer
        says = "no verdict" if not self.trusted else "zero is ruled out" if of.zero_ruled_out else "zero is possible"
        return (
            self.experiment.name,
            listed_slots(self.experiment.treated),
            listed_slots(self.experiment.controls),
            f"{of.change:+.2%}",
            interval(of.low, of.high, "+.2%"),
            Cell(says, "" if self.trusted else "bad"),
        )


@dataclass(frozen=True, slots=True, eq=False)
class MeetingExperiments:
    """Two experiments that share slots, by how much each is off by the other, and whether their effects add up."""

    overlap: Overlap
    biases: tuple[float, float]
    interaction: Statistic | None
    """By how much more the first feature changes machines that have the second, relative; None if it cannot be told."""

    @property
    def interact(self) -> bool | None:
        """Whether effects do not add up; None if that cannot be told."""
        if self.interaction is None:
            return None
        return not self.interaction.low <= 0.0 <= self.interaction.high

    def payload(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        overlap = self.overlap
        return {
            "first": overlap.first,
            "second": overlap.second,
            "meeting": overlap.meeting,
            "second_in_first": list(overlap.second_in_first),
            "first_in_second": list(overlap.first_in_second),
            "bias_of_first": self.biases[0],
            "bias_of_second": self.biases[1],
            "interaction": None if self.interaction is None else self.interaction._asdict(),
            "interact": self.interact,
        }

    def sentence(self) -> str:
        """Return in words how they meet, and what follows."""
        overlap, (first, second) = self.overlap, (self.overlap.first, self.overlap.second)
        if overlap.meeting == "controls":
            return f"{first} and {second} share controls: errors of both go together, neither is off by the other"
        if overlap.meeting == "crossed":
            words = f"{first} and {second} cross evenly: neither is off by the other"
        elif overlap.meeting == "confounded":
            words = f"{first} and {second} cannot be told apart: one arm has the other feature, the other arm has not"
        else:
            words = (
                f"{first} and {second} cross unevenly: if effects add up, {first} is off by {self.biases[0]:+.2%} and "
                f"{second} by {self.biases[1]:+.2%}"
            )
        if self.interaction is None:
            return f"{words}; no slots show whether they interact" if overlap.meeting != "confounded" else words
        value, low, high = self.interaction
        verdict = "they interact" if self.interact else "no interaction is seen"
        return f"{words}; {verdict}: with {second}, {first} changes {value:+.2%} more ({interval(low, high, '+.2%')})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExperimentsAnswer(Conclusion):
    """What each of several experiments on slots changed, and which of them meet."""

    effects: tuple[SlotEffect, ...]
    meetings: tuple[MeetingExperiments, ...]
    """Pairs that share slots."""
    pairs: int
    """Of experiments, all."""
    confidence: float
    notes: tuple[str, ...]

    @property
    def trusted(self) -> bool:
        """Whether every experiment has a verdict."""
        return all(of.trusted for of in self.effects)

    def brief(self) -> str:
        """Return how many experiments there are, and how many changed something."""
        changed = sum(of.trusted and of.answer.zero_ruled_out for of in self.effects)
        return f"{plural(len(self.effects), 'experiment')}, {changed} with a change; {self._interacting()}"

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "experiments",
            "confidence": self.confidence,
            "trusted": self.trusted,
            "experiments": [of.payload() for of in self.effects],
            "pairs": self.pairs,
            "meetings": [meeting.payload() for meeting in self.meetings],
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return the experiments, a row each."""
        names = ("experiment", "change", "low", "high", "error", "machines", "controls", "zero_ruled_out", "trusted")
        return pd.DataFrame([{name: of.payload()[name] for name in (*names, "mix_skew")} for of in self.effects])

    def figure(self) -> "Figure":
        """Return the change of each experiment with its interval."""
        from analysis.figures.effects.answers import draw_effect

        return draw_effect(self.frame().rename(columns={"experiment": "estimator"}), pd.DataFrame())

    def section(self) -> Section:
        """Return the experiments as a table, what stands against their verdicts, and which of them meet."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        headings = ("experiment", "slots", "controls", "change", f"{self.confidence:.0%} interval", "")
        numbers = (False, False, False, True, True, False)
        yield table(headings, [of.cells() for of in self.effects], numbers=numbers)
        for of in self.effects:
            named = [
                replace(finding, what=f"{of.experiment.name}: {finding.what}")
                for finding in of.findings
                if finding.severity != "note"
            ]
            yield from finding_lines(named)
        apart = self.pairs - len(self.meetings)
        if apart:
            yield Says(f"{plural(apart, 'pair')} of experiments without a common slot: neither is off by the other")
        for meeting in self.meetings:
            yield Says(meeting.sentence(), "bad" if meeting.overlap.meeting == "confounded" else "")
        yield from note_lines(self.notes)

    def _interacting(self) -> str:
        interacting = sum(bool(meeting.interact) for meeting in self.meetings)
        return f"{plural(interacting, 'pair')} of {self.pairs} interact" if interacting else "none is seen to interact"


def experiments(
    sources: Sequence[Source],
    question: ExperimentsQuestion,
    jobs: Source | None,
    tell: Progress,
    recipe: Recipe = AS_IT_IS,
) -> ExperimentsAnswer:
    """Return what each experiment changed, estimated on its own slots, and whether experiments interact.

    Parameters
    ----------
    sources : tables of observations, before and during the experiments, or folders of runs
    question : the slots, the plan and how to estimate
    jobs : job, quota, instances of the whole fleet; one run has its own
    tell : told what is being done and the share done
    recipe : how columns of the tables become ours

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables, the slots or the plan.
    """
    method(question.estimator, of_tables())
    tell("reading", 0.0)
    reading, _ = observed(sources, question.metric, recipe=recipe)
    cut = read_slots(question.slots)
    rows = reading.table.drop(columns="file")
    rows["slot"] = rows["machine"].astype(str).map(cut)
    planned, against, of_plan = read_plan(question.plan, rows, cut)
    whole = _fleet(sources, jobs)
    effects, faults = list[SlotEffect](), list[Fault]()
    for place, experiment in enumerate(planned):
        tell(f"estimating {experiment.name}", place / len(planned))
        try:
            effects.append(_effect(experiment, planned, rows, whole, question))
        except FaultsError as error:
            where = f"{name_of(question.plan)}, {experiment.name}"
            faults += [replace(fault, file=where, line=0, column=0) for fault in error.faults]
    if faults:
        raise FaultsError(faults)
    sizes = {str(name): int(count) for name, count in cut.value_counts().items()}
    met = [overlap for overlap in overlaps(planned, sizes) if overlap.meeting != "apart"]
    crossed = {of.experiment.name: _crossing(of, effects, met, rows) for of in effects}
    effects = list(_without_crossing(effects, crossed, rows, whole, question))
    effects = [replace(of, findings=(*own, *of.findings)) for own, of in zip(against, effects, strict=True)]
    meetings = tuple(_meetings(met, effects, rows, whole, question))
    effects = [_beside_others(of, meetings) for of in effects]
    tell("estimating", 1.0)
    unplaced = int(rows.loc[rows["slot"].isna(), "machine"].nunique())
    notes = [
        *reading.notes,
        *of_plan,
        *([f"{plural(unplaced, 'machine')} of the tables are in no slot"] if unplaced else []),
        *(f"{name} is estimated without what {_all(others)} changed" for name, others in crossed.items() if others),
    ]
    pairs = len(planned) * (len(planned) - 1) // 2
    return ExperimentsAnswer(tuple(effects), meetings, pairs, question.confidence, tuple(notes))


def _fleet(sources: Sequence[Source], jobs: Source | None) -> pd.DataFrame | None:
    """Return job and quota of the whole fleet, if they are given; one run has its own."""
    if jobs is not None:
        with faults_in(Path(name_of(jobs))):
            return read_jobs(jobs).table
    alone = sources[0] if len(sources) == 1 else None
    return jobs_of_run(alone) if isinstance(alone, Path) and alone.is_dir() else None


def _effect(
    experiment: SlotExperiment,
    planned: Sequence[SlotExperiment],
    rows: pd.DataFrame,
    jobs: pd.DataFrame | None,
    question: ExperimentsQuestion,
) -> SlotEffect:
    """Return what one experiment changed, with what the guards say, that of the slots' mixes among them."""
    others = [other for other in planned if other is not experiment]
    own, elsewhere = experiment.rows(rows), experiment.elsewhere(rows, others)
    before = own[own["period"] < experiment.since]
    fleet = None if before.empty else StratifiedFleet.of(before)
    answer = effect(
        [own.drop(columns="slot")],
        jobs,
        estimator=question.estimator,
        confidence=question.confidence,
        elsewhere=None if elsewhere is None else elsewhere.drop(columns="slot"),
        strata=None if fleet is None else pd.Series(fleet.stratum, fleet.names),
    )
    if fleet is None:
        return SlotEffect(experiment, answer, tuple(answer.audit.findings), math.nan)
    slot = before.drop_duplicates("machine").set_index("machine")["slot"].reindex(fleet.names)
    treated, controls = (slot.isin(arm).to_numpy() for arm in (experiment.treated, experiment.controls))
    mix = mix_difference(fleet, treated, controls, (slot[treated].nunique(), slot[controls].nunique()))
    findings = [*answer.audit.findings, *([_mix_finding(mix)] if mix.uneven else [])]
    return SlotEffect(experiment, answer, tuple(findings), mix.skew)


def _crossing(
    of: SlotEffect, effects: Sequence[SlotEffect], met: Sequence[Overlap], rows: pd.DataFrame
) -> list[SlotEffect]:
    """Return the experiments that cross one evenly, if it has machines enough to estimate all of them beside it.

    What is taken out is estimated from the same machines, each change at the cost of one degree of freedom, which the
    interval does not know of.
    """
    name = of.experiment.name
    pairs = [{overlap.first, overlap.second} for overlap in met if overlap.meeting == "crossed"]
    names = {other for pair in pairs if name in pair for other in pair}
    crossing = [other for other in effects if other.experiment.name in names - {name}]
    return crossing if _has_room(rows[rows["slot"].isin(of.experiment.slots)], len(crossing) + 1) else []


def _has_room(rows: pd.DataFrame, features: int) -> bool:
    return rows["machine"].nunique() >= ROOM * features


def _all(effects: Sequence[SlotEffect]) -> str:
    return ", ".join(of.experiment.name for of in effects)


def _without_crossing(
    effects: Sequence[SlotEffect],
    crossed: Mapping[str, Sequence[SlotEffect]],
    rows: pd.DataFrame,
    jobs: pd.DataFrame | None,
    question: ExperimentsQuestion,
) -> Iterator[SlotEffect]:
    """Yield the experiments, those that others cross evenly estimated again without what these changed."""
    planned = [of.experiment for of in effects]
    for of in effects:
        crossing = [(other.experiment, other.answer.change) for other in crossed[of.experiment.name]]
        yield _effect(of.experiment, planned, taken_out(rows, crossing), jobs, question) if crossing else of


def _mix_finding(mix: MixDifference) -> Finding:
    """Return that the arms have other mixes of machines, and what that makes of a comparison without a past."""
    strata = mix.strata[mix.strata["uneven"]]
    worst = strata.iloc[0]
    others = f" and {plural(len(strata) - 1, 'other kind')}" if len(strata) > 1 else ""
    what = (
        f"the arms' machines differ: {worst['treated']:.1%} of the quota with the feature and {worst['controls']:.1%} "
        f"of the other are on {worst['stratum']}{others}; that alone sets the arms {mix.skew:+.2%} apart"
    )
    evidence = {"skew": mix.skew, "kinds": float(len(strata))}
    return Finding("unlike_slots", "warning", what, evidence, "mend the slots before the next experiment (--previous)")


def _meetings(
    met: Sequence[Overlap],
    effects: Sequence[SlotEffect],
    rows: pd.DataFrame,
    jobs: pd.DataFrame | None,
    question: ExperimentsQuestion,
) -> Iterator[MeetingExperiments]:
    """Yield the pairs of experiments that share slots; intervals of interactions hold for all of them together.

    What third features change is taken out. Where a third one is aliased with an interaction, that cannot be told.
    """
    by_name = {of.experiment.name: of.experiment for of in effects}
    changes, chosen = {of.experiment.name: of.answer.change for of in effects}, method(question.estimator)
    crossing = [overlap for overlap in met if overlap.meeting != "controls"]
    in_slots = rows.drop_duplicates("machine")["slot"].value_counts()
    sizes = {str(slot): int(count) for slot, count in in_slots.items()}
    level = 1.0 - (1.0 - question.confidence) / max(len(crossing), 1)
    for overlap in met:
        together, pair = None, (by_name[overlap.first], by_name[overlap.second])
        third = [of for of in by_name.values() if of not in pair]
        if overlap.meeting != "controls" and not any(aliased(pair, of, sizes) for of in third):
            room = third and _has_room(rows[rows["slot"].isin(pair[0].slots | pair[1].slots)], len(by_name))
            alone = taken_out(rows, [(of, changes[of.name]) for of in third]) if room else rows
            together = interaction(alone, pair, jobs, chosen, level)
        yield MeetingExperiments(overlap, overlap.biases(changes), together)


def _beside_others(of: SlotEffect, meetings: Sequence[MeetingExperiments]) -> SlotEffect:
    """Return an experiment with an error if others stand unevenly in its arms.

    That is, if one arm has all of another feature, or if others together set its change off by half of its margin.
    """
    name, biases, inseparable = of.experiment.name, dict[str, float](), list[str]()
    for meeting in meetings:
        names = meeting.overlap.first, meeting.overlap.second
        if meeting.overlap.meeting in {"uneven", "confounded"} and name in names:
            place = names.index(name)
            biases[names[1 - place]] = meeting.biases[place]
            inseparable += [names[1 - place]] if meeting.overlap.meeting == "confounded" else []
    total, margin = sum(biases.values()), of.answer.effect.margin
    if inseparable:
        what = f"cannot be told apart from {', '.join(inseparable)}: one arm has that feature, the other has not"
    elif abs(total) > MATERIAL * margin:
        what = (
            f"not evenly in both arms: {', '.join(biases)}; if effects add up, the change is {total:+.2%} off, beyond "
            f"half of its margin of {margin:.2%}"
        )
    else:
        return of
    remedy = "give each arm the same share of every other feature, or slots of its own"
    finding = Finding("uneven_overlap", "error", what, {"off": total}, remedy)
    return replace(of, findings=(*of.findings, finding))
