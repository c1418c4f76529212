"""The effect of a feature on a real fleet: tables of observations in, a verdict out: `wsc effect`."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import Audit
from analysis.audit.findings import Finding
from analysis.economics import Believed, costs_of_work
from analysis.effects.controls_step import controls_step
from analysis.effects.estimand import RATE, ChangeKind, Estimand, Target
from analysis.effects.estimator import ExperimentTables
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots
from analysis.effects.exposure import Exposure, WholeDomains
from analysis.effects.linearisation import Linearised
from analysis.effects.methods import (
    RECOMMENDED,
    SHIPPED,
    by_rack,
    clusters_machines,
    for_design,
    method,
    of_tables,
    unanswerable,
)
from analysis.effects.observations import Design, Observations, refuse_mixed, without_rolled_back
from analysis.effects.per_job import GAINED, LOST, UNDECIDABLE, PerJobCriteria, per_job
from analysis.effects.study import Effect, EffectMethod, Study, said
from analysis.statistics import ROUNDING, NotEnoughDataError
from analysis.tables.cells import Source
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.errors import InputError
from models.fleet.metrics import MetricName
from scenarios.effects.domains import SpillOver, domains_of, in_domains, whole_domains
from scenarios.effects.observations import (
    Experiment,
    clustered_by,
    experiment,
    is_own,
    racks_wrong,
    read_about,
    read_under,
)
from scenarios.effects.own import OwnEstimator, estimator_of
from scenarios.effects.own_guards import GuardFunction, own_guards
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.prices import priced
from scenarios.runs.rundir import open_run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.economics import cost_blocks
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says, Section, Table, finding_lines, note_lines, table
from scenarios.wsmeter.measurements import in_words, recorded_change

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TARGETS: Mapping[Target, str] = {
    "instances": "",
    "quota": "; within jobs instances count by their quota",
    "sums": "; a ratio of sums: all values by their exposure",
}
_ARMS = ("without", "with")
"""Of a table of prices: machines without the feature and with it."""
_INSTEAD_OF_DOMAINS: Mapping[Design, str] = {
    "crossover": (
        "where whole domains switch together, leave it out and name their column with --column domain=COLUMN, which "
        "makes them count as one, so that everybody on is compared with nobody on"
    ),
    "staged": (
        "leave out the periods after the first machines got it and before the last did, or give whole domains the "
        "feature at one time (wsc design --domain)"
    ),
}
_PERCENT_LIKE, _HUNDREDFOLD = 0.3, (50.0, 200.0)
"""A change from which on, and how many times another answer, somebody's own may be one in percent."""
_NAMED = 10
"""Gainers and losers printed, of each."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EffectAnswer(Conclusion):
    """By how much a feature changed a fleet's performance, and what would make that false."""

    effect: Effect
    confidence: float
    """Of the interval."""
    cluster: str | None
    """What the error counts as independent, by its column; unknown of an estimator of somebody's own."""
    estimand: Estimand
    """What is estimated."""
    periods_before: int
    published: Effect | None
    """What WSMeter as printed says, where it has an answer."""
    metric: MetricName | None
    """Of a run."""
    true_change: float
    """By that metric over all jobs of a run; NaN where none is recorded."""
    audit: Audit
    per_job: pd.DataFrame | None
    """As `analysis.effects.per_job.per_job`, jobs with most quota first; None where it was not asked for."""
    read_notes: tuple[str, ...]
    spill_over: SpillOver | None = None
    """Where machines disturb their neighbours: what the total effect is made of; None where that was not asked for."""
    costs: pd.DataFrame | None = None
    """Of what a machine without the feature does, as `analysis.economics.costs_of_work`; None without prices."""

    @property
    def change(self) -> float:
        """Change of the fleet's metric, relative or in its unit, as the estimand says."""
        return self.effect.change

    @property
    def low(self) -> float:
        """Lower end of its interval."""
        return self.effect.low

    @property
    def high(self) -> float:
        """Upper end of its interval."""
        return self.effect.high

    @property
    def machines(self) -> int:
        """Machines with the feature."""
        return self.effect.machines

    def jobs(self) -> pd.DataFrame:
        """Return the changes of single jobs, those with most quota first, as `analysis.effects.per_job.per_job`.

        Raises
        ------
        InputError
            If they were not asked for, or cannot be estimated in this design.
        """
        if self.per_job is None:
            raise InputError(f"effects on single jobs were not estimated in this {self.effect.design} study")
        return self.per_job

    def brief(self) -> str:
        """Return the verdict."""
        return self.verdict

    @property
    def trusted(self) -> bool:
        """Whether there is a verdict: no finding is an error, and machines differ, so that there is an interval."""
        return not self.audit.errors and not self._alike

    @property
    def zero_ruled_out(self) -> bool:
        """Whether there is an interval and it leaves zero out."""
        return not self._alike and not self.effect.low <= 0.0 <= self.effect.high

    @property
    def _alike(self) -> bool:
        """Whether machines do not differ at all within jobs; of somebody's own estimator it may be unknown."""
        return self.effect.error == 0.0

    def _amount(self, change: float) -> str:
        return self.estimand.amount(change, margin=self.effect.margin)

    @property
    def verdict(self) -> str:
        """What the interval says, in words; none if a finding is an error, or there is no interval."""
        change, low, high = self.change, self.low, self.high
        if self.audit.errors:
            return no_verdict(self.audit, change, low, high, self.estimand)
        if self._alike:
            why = "values do not differ between machines of a job, so chance cannot be judged"
            return f"undecided: {self._amount(change)} without an interval, as {why}"
        return verdict(change, low, high, self.estimand)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of the tables and of the estimate."""
        return (*self.read_notes, *self.effect.notes)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        payload: dict[str, object] = {
            "kind": "effect",
            **asdict(self.effect),
            "confidence": self.confidence,
            "trusted": self.trusted,
            "zero_ruled_out": self.zero_ruled_out,
            "verdict": self.verdict,
            "cluster": self.cluster,
            "metric_kind": self.estimand.name,
            "change_kind": self.estimand.change,
            "target": self.estimand.target,
            "periods_before": self.periods_before,
            "published": None if self.published is None else asdict(self.published),
            "metric": self.metric,
            "truth": {"change": self.true_change},
            **self.audit.payload(),
        }
        if self.per_job is not None:
            payload["per_job"] = self.per_job.to_dict("records")
        if self.spill_over is not None:
            payload["spill_over"] = self.spill_over.payload()
        if self.costs is not None:
            payload["costs"] = self.costs.to_dict("records")
        return payload | {"notes": list(self.notes)}

    def frame(self) -> pd.DataFrame:
        """Return the fleet's change, one row; the jobs' are in `per_job`."""
        return pd.DataFrame([asdict(self.effect)])

    def figure(self) -> "Figure":
        """Return the change beside what WSMeter as published says, and the changes of the jobs with most quota."""
        from analysis.figures.effects.answers import draw_effect

        estimates = [asdict(effect) for effect in (self.effect, self.published) if effect is not None]
        jobs = pd.DataFrame() if self.per_job is None else self.per_job.dropna(subset=["low", "high"]).head(_NAMED)
        unit = self.estimand.unit
        return draw_effect(pd.DataFrame(estimates), jobs, self.true_change, self.verdict, unit=unit)

    def section(self) -> Section:
        """Return findings, the verdict, what the published estimator would have said, and who gained or lost."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        effect, amount = self.effect, self._amount
        estimator = effect.estimator if self.spill_over is None else RECOMMENDED  # whose clusters it has
        yield from finding_lines(beside(estimator, self.audit.findings, self.cluster))
        yield Says(self.verdict, "strong" if self.trusted else "")
        yield Says(
            f"{effect.estimator}, {effect.design}: {effect.machines:,} machines with the feature, "
            f"{effect.controls:,} without; {plural(effect.jobs, 'job')} that {'hold' if effect.jobs != 1 else 'holds'} "
            f"{effect.quota_coverage:.1%} of the quota"
            + ("" if self._alike else f"; {self.confidence:.0%} from {amount(effect.low)} to {amount(effect.high)}")
            + ("" if self.spill_over else _clusters(self.cluster))
            + _TARGETS[self.estimand.target]
            + _metric(self.estimand)
        )
        if self.spill_over is not None:
            yield from self.spill_over.blocks(self.estimand)
        if self.metric is not None:
            yield Says(in_words(self.metric, self.true_change))
        if self.spill_over is None:
            yield Says(self._beside_published())
        if self.costs is not None:
            yield from cost_blocks(self.costs, _ARMS[0])
        if self.per_job is not None and self.trusted:
            yield _named_jobs(self.per_job, self.estimand)
            counts = self.per_job["verdict"].value_counts()
            yield Says(", ".join(f"{count:,} {_WHY.get(str(word), word)}" for word, count in counts.items()))
        yield from note_lines(self.notes)

    def _beside_published(self) -> str:
        published = self.published
        if published is None:
            has = f"has no answer to a {self.effect.design} study"
            if self.estimand.target != "instances":
                has = "estimates the mean over instances"
            if not self.estimand.plain:
                has = "estimates the relative change of a rate"
            return f"WSMeter as published {has}"
        baseline = "the periods before" if self.periods_before else "the machines without it"
        gives = f"WSMeter as published, against {baseline}, gives {published.change:+.2%}"
        if published.high - published.low <= ROUNDING:
            return f"{gives} without an interval, as values do not differ"
        gives = f"{gives} ({published.low:+.2%} to {published.high:+.2%})"
        if published.low - ROUNDING <= self.effect.change <= published.high + ROUNDING:
            return gives
        apart = published.change - self.effect.change
        gives = f"{gives}, {100 * abs(apart):.2f} points {'above' if apart > 0 else 'below'} the estimate"
        if self.effect.estimator not in SHIPPED:
            return gives
        why = (
            "it counts as effect what all machines do meanwhile, and what set these apart before"
            if self.periods_before
            else "it takes no past as help"
        )
        return f"{gives}: {why}"


def effect(
    sources: Sequence[Source],
    jobs: Source | None = None,
    *,
    estimator: object = RECOMMENDED,
    confidence: float = 0.95,
    by_job: bool = False,
    metric: MetricName | None = None,
    about: Path | None = None,
    recipe: Recipe = AS_IT_IS,
    guards: Sequence[str | GuardFunction] = (),
    cluster: str | None = None,
    domain: str | None = None,
    target: Target | None = None,
    metric_kind: str = "rate",
    change: ChangeKind | None = None,
    prices: Source | None = None,
    elsewhere: pd.DataFrame | None = None,
    strata: "pd.Series[int] | None" = None,
) -> EffectAnswer:
    """Return by how much a feature changed a fleet's performance, after the guards had their say.

    Parameters
    ----------
    sources : tables of observations, taken together, or the folder of a run
    jobs : job, quota, instances of the whole fleet; jobs weigh as in the tables without it
    estimator : a name in `analysis.effects.methods`; a staged roll-out has its own in place of the recommended one.
        Or somebody's own, as ``mine.py:Mine``, an object, its class or a function
    confidence : of the interval, 0..1
    by_job : whether to say who gained and who lost; not of a staged roll-out
    metric : of a run; that of its scenario if not said
    about : what is known of the experiment beside its tables, YAML or JSON, for the guards; where it says
        `clusters: rack` the error is that of racks
    recipe : how columns of the tables become ours
    guards : of somebody's own, beside ours: functions, or where they are, such as ``mine.py:racks_alike``
    cluster : a column of the tables; machines with the same value there are one cluster of the error
    domain : a column; machines with the same value there disturb each other: everybody on against nobody on
    target : the mean over a job's instances, or by their quota, with jobs weighed by quota; or a ratio of sums
    metric_kind : rate, mean, proportion, ratio, or a quantile such as p99
    change : relative or absolute; as `analysis.effects.estimand.Estimand.of` says if left out
    prices : of machines `without` the feature and `with` it, as `analysis.economics.FIELDS`; of a relative change
    elsewhere : observations of machines that take no part, from before the study: of a relative change of a rate, what
        shards did there is known too
    strata : by machine, of which both arms have even shares by design, as slots have; the error is that within strata

    Raises
    ------
    FaultsError
        With everything that is wrong with the files, or that there is too little in them.
    """
    chosen = method(estimator) if estimator in of_tables() else estimator_of(estimator)
    estimand = Estimand.of(metric_kind, change, target)
    priced_arms = None if prices is None else priced(prices, _ARMS)
    if prices is not None and estimand.change != "relative":
        raise FaultsError([Fault("", 0, 0, "prices", f"are of a relative change, not {quantity(estimand)}")])
    own = own_guards(guards) if guards else ()
    recipe = read_under(read_under(recipe, cluster, "rack", sources), domain, "domain", sources)
    read = experiment(sources, jobs, metric, recipe, estimand)
    stated = read_about(about) if about else About()
    read, stated, cluster = _clusters_of(read, stated, sources, cluster, domain)
    rows, left_out = read.observations.estimable()
    rows, rolled_back = without_rolled_back(rows)
    coded, notes = Observations.of(rows), [*read.notes]
    design = coded.design
    chosen = chosen if isinstance(chosen, OwnEstimator) else for_design(chosen.name, design)
    _refuse(read, coded, chosen, estimand, domain)
    stated, counted, not_counted = _counted(chosen, stated, cluster)
    notes += not_counted
    ungrouped = domain is not None or counted == "machine"
    if not ungrouped and (wrong := racks_wrong(stated, read.observations.table, about or read.source, counted)):
        raise FaultsError(wrong)
    audited = read.audit(stated, () if domain is None else ("spill_over",), own)
    notes += [*left_out, *rolled_back]
    spill_over: SpillOver | None = None
    study: Study | None
    if isinstance(chosen, OwnEstimator):
        with read.faults():
            study = whole = Study.of(rows, read.jobs, staged=design == "staged", target=estimand.target)
        estimate = _by_own(whole, ExperimentTables.of(rows, read.jobs, confidence), chosen)
    else:
        clustered = (by_rack(chosen) if counted != "machine" else None) or chosen
        if strata is not None and counted == "machine" and isinstance(clustered, Adjusted) and estimand.plain:
            clustered = InSlots(clustered, strata)
        with read.faults():
            answered = _estimated if domain is None else _total
            known = rows if elsewhere is None or not estimand.plain else pd.concat([rows, elsewhere], ignore_index=True)
            study, estimate, spill_over = answered(known, read, clustered, estimand, confidence)
    notes += [
        *_table_notes(read, audited),
        *_design_notes(rows, coded),
        *(_step_notes(coded) if estimand.plain else ()),
    ]
    published = None if study is None or spill_over is not None else _published(study, confidence)
    notes += _in_percent(estimate, published) if isinstance(chosen, OwnEstimator) else ()
    true_change, of_truth = _true(sources, read.metric, recipe) if estimand.plain else (math.nan, ())
    why_not = _no_jobs(design, counted, estimand) if by_job else ""
    jobs_effects = None
    if why_not:
        notes.append(f"effects on single jobs are not estimated {why_not}")
    elif by_job:
        with read.faults():
            jobs_effects = _by_job(study or Linearised.of(rows, read.jobs, estimand), estimand, confidence)
    return EffectAnswer(
        effect=_without_rounding(estimate) if estimand.plain or estimate.error == 0 else estimate,
        confidence=confidence,
        cluster=None if isinstance(chosen, OwnEstimator) else counted,
        estimand=estimand,
        periods_before=_periods_before(rows),
        published=published,
        metric=read.metric,
        true_change=true_change,
        audit=audited,
        per_job=jobs_effects,
        spill_over=spill_over,
        read_notes=(*notes, *of_truth, *audited.silent),
        costs=None if priced_arms is None else _costs(priced_arms, estimate, confidence),
    )


def _costs(prices: pd.DataFrame, effect: Effect, confidence: float) -> pd.DataFrame:
    """Return what work costs without and with the feature, given its relative change.

    Raises
    ------
    FaultsError
        If the change, or an end of its interval, leaves nothing of the performance.
    """
    worth, low, high = (np.array([1.0, 1.0 + end]) for end in (effect.change, effect.low, effect.high))
    if not (low > 0).all() or not np.isfinite(high).all():
        problem = f"need a change whose interval is above -100%, got {effect.low:+.1%} to {effect.high:+.1%}"
        raise FaultsError([Fault("", 0, 0, "prices", problem)])
    error = np.diag([0.0, float(np.nan_to_num(effect.error) / worth[1]) ** 2])
    return costs_of_work(prices, Believed(_ARMS, worth, low, high, error), _ARMS[0], confidence)


def _clusters_of(
    read: Experiment, stated: About, sources: Sequence[Source], cluster: str | None, domain: str | None
) -> tuple[Experiment, About, str | None]:
    """Return an experiment with the clusters that are asked for, what is then stated of it, and their column."""
    if domain is not None:
        if cluster is not None:
            raise FaultsError([Fault("", 0, 0, "cluster", "is left out beside --domain: domains are the clusters")])
        name = "domain" if is_own(domain, sources) else domain
        return in_domains(read, domain, name), replace(stated, clusters="rack"), domain
    if cluster in {None, "machine"}:
        return read, stated, cluster
    column = str(cluster)
    name = "rack" if is_own(column, sources) else column
    return clustered_by(read, column, name), replace(stated, clusters="rack"), cluster


def _counted(
    chosen: EffectMethod | OwnEstimator, stated: About, cluster: str | None
) -> tuple[About, str, tuple[str, ...]]:
    """Return what is stated of an experiment, the column of what its error counts as independent, and a note."""
    column = "rack" if cluster in {None, "machine"} else str(cluster)
    if stated.clusters != "rack":
        return stated, "machine", ()
    if not isinstance(chosen, OwnEstimator) and by_rack(chosen) is not None:
        return stated, column, ()
    ours = "taken by this estimator: its error is that of machines"
    note = f"clusters: {column} is not {ours if chosen.name in SHIPPED else f'passed to {chosen.name}'}"
    return replace(stated, clusters=None), "machine", (note,)  # then the guard of whole racks is not to be quiet


def _refuse(
    read: Experiment, coded: Observations, chosen: EffectMethod | OwnEstimator, estimand: Estimand, domain: str | None
) -> None:
    """Refuse what an estimator or a study cannot answer, or a machine that is in both arms in one period.

    Raises
    ------
    FaultsError
        With the reasons.
    """
    design = coded.design
    faults = list[Fault]()
    if domain is not None and design != "concurrent":
        problem = f"is for studies in which machines keep the feature from one time on, not for a {design} study"
        faults.append(Fault("", 0, 0, "domain", f"{problem}: {_INSTEAD_OF_DOMAINS[design]}"))
    elif domain is not None and not (isinstance(chosen, Adjusted) and chosen.pooling == "none"):
        faults.append(Fault("", 0, 0, "estimator", "tells no total effect; adjusted does", chosen.name))
    if wrong_kind := _unanswerable(chosen, estimand, design):
        faults.append(Fault("", 0, 0, "estimator", wrong_kind))
    if faults:
        with read.faults():
            refuse_mixed(coded)
        raise FaultsError(faults)


def _estimated(
    rows: pd.DataFrame, read: Experiment, chosen: EffectMethod, estimand: Estimand, confidence: float
) -> tuple[Study | None, Effect, None]:
    """Return what an estimator says, and the study that it says it of, which only a rate has."""
    if not estimand.plain:
        return None, Linearised.of(rows, read.jobs, estimand).estimate(chosen, confidence), None
    study = Study.of(rows, read.jobs, staged="staged" in chosen.designs, target=estimand.target)
    return study, chosen.estimate(study, confidence), None


def _total(
    rows: pd.DataFrame, read: Experiment, chosen: EffectMethod, estimand: Estimand, confidence: float
) -> tuple[Study | None, Effect, SpillOver]:
    """Return the total effect by domains: between those with everybody on and nobody on, else by neighbours' share."""
    of_machine, domains = domains_of(rows)
    answer = SpillOver.of(domains, read.observations.cluster, confidence)
    if problem := answer.untold(domains, estimand):
        raise FaultsError([Fault(str(read.source), 0, 0, "domain", problem)])
    covariates = chosen.covariates if isinstance(chosen, Adjusted) else 0
    line = Exposure(covariates=covariates)
    study = Study.of(rows, read.jobs, target=estimand.target) if estimand.plain else None
    if study is not None:
        answer = replace(answer, exposure=line.parts(study.cells, study.treated))
    if study is not None and not answer.between:
        return study, line.estimate(study, confidence), answer
    if not answer.between:
        return *_estimated(rows, read, line, estimand, confidence)[:2], answer
    whole = whole_domains(rows, of_machine, domains)
    return *_estimated(whole, read, WholeDomains(covariates=covariates), estimand, confidence)[:2], answer


def _no_jobs(design: Design, counted: str, estimand: Estimand) -> str:
    """Return why there are no effects on single jobs; nothing if there are."""
    if why := of_no_job(estimand):
        return why
    if counted != "machine":
        return f"by {counted}"
    return "of a staged roll-out" if design == "staged" else ""


def of_no_job(estimand: Estimand) -> str:
    """Return as what the effects on single jobs are not estimated; nothing if they are.

    Examples
    --------
    >>> of_no_job(Estimand.of("mean", "relative")), of_no_job(Estimand.of("mean"))
    ('as the relative change of a mean; --change absolute has them', '')
    """
    if estimand.metric_kind == "quantile":
        return f"as {quantity(estimand)}; --where takes the rows of one job"
    if estimand.change == "relative" and not estimand.plain:
        return f"as {quantity(estimand)}; --change absolute has them"
    return ""


def _unanswerable(chosen: EffectMethod | OwnEstimator, estimand: Estimand, design: Design) -> str:
    """Return why an estimator cannot say anything of a metric; nothing if it can."""
    if not isinstance(chosen, OwnEstimator):
        return unanswerable(chosen, estimand, design)
    return (
        "" if estimand.plain else f"{chosen.name} is asked for the relative change of a rate, not {quantity(estimand)}"
    )


def quantity(estimand: Estimand) -> str:
    """Return in words what is estimated.

    Examples
    --------
    >>> quantity(Estimand.of("proportion"))
    'the absolute change of a proportion'
    """
    article = "the" if estimand.metric_kind == "quantile" else "a"
    return f"the {estimand.change} change of {article} {estimand.name}"


def _metric(estimand: Estimand) -> str:
    return "" if estimand.plain else f"; {quantity(estimand)}"


def _clusters(cluster: str | None) -> str:
    if cluster in {None, "machine"}:
        return ""
    return "; racks are the clusters" if cluster == "rack" else f"; clusters by {cluster}"


def _table_notes(read: Experiment, audited: Audit) -> Iterator[str]:
    """Yield what the tables lack, and which guards cannot look at their metric."""
    if read.jobs is None:
        yield "no table of jobs: jobs weigh as in the tables"
    if read.metric is not None and any(finding.code == "ipc_across_frequencies" for finding in audited.errors):
        yield "the metric ips measures the run in instructions per CPU second"
    yield from read.not_looking()


def _step_notes(coded: Observations) -> Iterator[str]:
    """Yield that the machines without the feature changed, too, when it begins."""
    step = controls_step(coded)
    if step is not None and step.stands_out:
        yield (
            f"machines without the feature change by {step.change:+.1%} in period {step.period:g}, in which it begins, "
            f"and by {step.largest_other:.1%} at most from one period to the next at other times: if they have the "
            "feature, too, its effect is not in the estimate"
        )


def _design_notes(rows: pd.DataFrame, coded: Observations) -> Iterator[str]:
    """Yield what the design of an experiment leaves out, or lacks."""
    if coded.design != "crossover":
        if not _periods_before(rows):
            yield "no rows before the feature: rows of periods before it make the interval narrower"
    elif others := int((coded.ever & ~coded.switching).sum()):
        yield (
            f"{coded.switching.sum():,} machines switch, so this is a crossover of these; {others:,} that keep the "
            "feature are not in it: leave out those that switch (--where) for a study of the others"
        )


def beside(estimator: str, findings: Sequence[Finding], cluster: str | None = "machine") -> list[Finding]:
    """Return findings as they are shown beside an estimate: what its estimator sees to already needs no remedy.

    Parameters
    ----------
    estimator : its name; what somebody's own sees to is not known here
    findings : of the guards
    cluster : what its error counts as independent
    """
    if estimator not in SHIPPED or not clusters_machines(method(estimator)):
        return [*findings]
    remedy = f"none is needed: {estimator} takes {cluster}s as clusters"
    seen_to = {"instances_independent": "note"}
    return [
        replace(finding, remedy=remedy) if seen_to.get(finding.code) == finding.severity else finding
        for finding in findings
    ]


def no_verdict(audit: Audit, change: float, low: float, high: float, estimand: Estimand = RATE) -> str:
    """Return in words which errors forbid a verdict, and what the tables give as they are."""
    amount = partial(estimand.amount, margin=(high - low) / 2)
    numbers = f"the tables as they are give {amount(change)} ({amount(low)} to {amount(high)})"
    return f"no verdict: fix {audit.codes} first; {numbers}"


def verdict(change: float, low: float, high: float, estimand: Estimand = RATE) -> str:
    """Return in words what an interval says of a change.

    Examples
    --------
    >>> verdict(0.1, 0.05, 0.15)
    'faster by 10.00% (5.00% to 15.00%); zero is ruled out'
    >>> verdict(-0.004, -0.006, -0.002, Estimand.of("proportion"))
    'lower by 0.40 points (0.20 points to 0.60 points); zero is ruled out'
    """
    amount = partial(estimand.amount, margin=(high - low) / 2)
    if not low <= 0.0 <= high:
        least, most = sorted((abs(low), abs(high)))
        word = estimand.directions[0 if change > 0 else 1]
        return f"{word} by {amount(abs(change), '')} ({amount(least, '')} to {amount(most, '')}); zero is ruled out"
    gain, loss = ("gain", "loss") if estimand.metric_kind == "rate" else ("rise", "fall")
    bounds = f"a {gain} above {amount(high, '')} and a {loss} above {amount(abs(low), '')} are ruled out"
    return f"zero is not ruled out: {amount(change)} ({amount(low)} to {amount(high)}); {bounds}"


def _by_own(study: Study, tables: ExperimentTables, chosen: OwnEstimator) -> Effect:
    """Return what somebody's own estimator says of the tables of a study."""
    answer = said(chosen.name, study, chosen.estimate(tables))
    if study.design not in {"crossover", "staged"}:
        return answer
    note = f"{chosen.name} gets the rows of a {study.design} study as they are; no scorecard judges it there"
    return replace(answer, notes=(*answer.notes, note))


def _in_percent(estimate: Effect, published: Effect | None) -> Iterator[str]:
    """Yield that an answer of somebody's own looks like percent, where a share is asked for."""
    if published is None or not published.change or abs(estimate.change) < _PERCENT_LIKE:
        return
    times = estimate.change / published.change
    if _HUNDREDFOLD[0] < times < _HUNDREDFOLD[1]:
        yield (
            f"{estimate.estimator} answers {times:,.0f} times what WSMeter as published does; should it be a share, "
            "such as 0.05 for 5%?"
        )


def _without_rounding(effect: Effect) -> Effect:
    """Return what an estimator says with errors that are rounding taken for none, and told."""
    if not effect.error <= ROUNDING:  # of somebody's own it is unknown
        return effect
    change = effect.change if abs(effect.change) > ROUNDING else 0.0
    note = "machines do not differ at all within jobs, so the interval has no width: were values rounded or copied?"
    return replace(effect, change=change, low=change, high=change, margin=0.0, error=0.0, notes=(*effect.notes, note))


def _published(study: Study, confidence: float) -> Effect | None:
    """Return what WSMeter as printed says, where it can."""
    published = method("published")
    if study.design not in published.designs or study.cells.target != "instances":
        return None
    try:
        return _without_rounding(published.estimate(study, confidence))
    except NotEnoughDataError:
        return None


def _true(sources: Sequence[Source], metric: MetricName | None, recipe: Recipe) -> tuple[float, tuple[str, ...]]:
    """Return the true change of one run, NaN of anything else and of some of its rows, and why it is not shown."""
    if metric is None or len(sources) > 1 or not isinstance(sources[0], Path):
        return math.nan, ()
    if recipe.where is not None:
        return math.nan, ("where: the true change of a run is that of the whole fleet, not of the rows that are taken",)
    return recorded_change(open_run(sources[0]), metric), ()


def _periods_before(rows: pd.DataFrame) -> int:
    """Return how many periods there are before anything has the feature."""
    first = rows.loc[rows["treated"] == 1, "period"].min()
    return int(rows.loc[rows["period"] < first, "period"].nunique())


def _by_job(whole: Study | Linearised, estimand: Estimand, confidence: float) -> pd.DataFrame:
    """Return the changes of single jobs: of a rate relative, else in the unit of the values."""
    study, unit = (whole, 1.0) if isinstance(whole, Study) else whole.study_near_one()
    proportions = None if isinstance(whole, Study) else whole.proportions
    rows = per_job(study, PerJobCriteria(confidence=confidence), proportions)
    amounts = ["change", "error", "low", "high", "shrunken", "shrunken_error"]
    rows[amounts] *= unit
    rows["verdict"] = rows["verdict"].replace(dict(zip((GAINED, LOST), estimand.outcomes, strict=True)))
    return rows.sort_values("quota_share", ascending=False, kind="stable")


_WHY = {UNDECIDABLE: f"{UNDECIDABLE} (too little data)"}
"""Verdicts on jobs that the line which counts them explains."""


def _named_jobs(rows: pd.DataFrame, estimand: Estimand) -> Table:
    """Return the table of those that changed most."""
    named = list[tuple[str, ...]]()
    for word in estimand.outcomes:
        ranked = sorted(rows[rows["verdict"] == word].to_dict("records"), key=_smallest_last)
        named += [(str(row["job"]), word, *_job_cells(row, estimand)) for row in ranked[:_NAMED]]
    return table(("job", "verdict", "quota", "machines", "change", "interval", "adjusted p"), named, words=2)


def _job_cells(row: Mapping[Hashable, float], estimand: Estimand) -> tuple[str, ...]:
    amount = partial(estimand.amount, margin=math.nan if estimand.plain else (row["high"] - row["low"]) / 2)
    return (
        f"{row['quota_share']:.1%}",
        f"{row['machines']:,.0f}",
        amount(row["change"]),
        f"{amount(row['low'])} to {amount(row['high'])}",
        f"{row['adjusted']:.2g}",
    )


def _smallest_last(row: Mapping[Hashable, float]) -> float:
    return -abs(row["change"])
