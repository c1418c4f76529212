"""Estimators beside the truth: test clusters drawn from a recorded fleet, and how often their intervals were right.

This is the one place that holds both. Each draw of the featured half is a test cluster, the other half is the current
fleet (Lee et al. 2018, WSMeter, section 6.1). WSMeter sees the measurements of both; other estimators see the
observations of an experiment, from which the machines are missing that have the feature and were not drawn.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.effects.cells import of_machines
from analysis.effects.estimator import ExperimentTables
from analysis.effects.study import EffectMethod, Study
from analysis.statistics import NotEnoughDataError, Statistic, normal_cdf
from analysis.wsmeter.clusters import MachineRows, covering_machines, random_machines
from analysis.wsmeter.estimators import PAPER_ESTIMATORS, ClusterEstimator, paper_estimators
from analysis.wsmeter.summaries import Covered, Current, quota_shares
from models.arrays import Ints
from models.fleet.metrics import METRICS, MetricName
from models.randomness import stream
from scenarios.effects.observations import recorded
from scenarios.effects.own import OwnEstimator, estimator_of, own_names
from scenarios.files import schema
from scenarios.files.schema import AnyScenario
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run, RunError
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import listed, number, plural
from scenarios.views.section import Block, Says, Section, Table, says, table
from scenarios.views.terminal import Progress
from scenarios.wsmeter.measurements import (
    Tables,
    Unit,
    halves_of,
    job_quotas,
    partly_on,
    settings_of,
    truth,
    unit_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn = Callable[[int, int], None]
"""Called with the draws done and all draws."""


_HEADINGS = ("size", "estimator", "bias", "margin", "truth", "95%", "covered", "not 0", "success", "quota")
_CAPTION = (
    "bias: mean error; margin: half of the interval's width; truth: share of the draws whose interval holds the whole "
    "fleet's change, and the 95% interval of that share; covered: share whose interval holds the change between the "
    "recorded halves, over the jobs that enough test machines run; not 0: share whose interval rules out zero; "
    "success: covered and not 0; quota: share of the fleet's CPU quota in these jobs; –: an estimator of all jobs"
)
_LEVEL = 0.95
"""Confidence of estimators that see the observations of an experiment."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterScores:
    """How often each estimator's interval was right over test clusters of each size, and what the truth is."""

    metric: MetricName
    unit: Unit
    true: Mapping[str, float]
    """Relative changes: change (whole fleet, job level), machine_change, reference and machine_reference."""
    scores: pd.DataFrame
    """A row an estimator and size: bias, margin, and shares of the draws, NaN where none had enough data; reason: what
    the first draw without an answer lacked, empty where all had enough."""
    promised: Mapping[str, float]
    """Confidence of each estimator's intervals, by name."""
    featured: float = math.inf
    """Measured machines (or instances) with the feature, of which test clusters are drawn."""

    def rows(self, estimator: str) -> Sequence[Mapping[Hashable, float]]:
        """Return the scores of one estimator, a row a size."""
        return self.scores[self.scores["estimator"] == estimator].to_dict("records")

    def blocks(self) -> Iterator[Block]:
        """Yield the truth, and how often each estimator was right."""
        true = {name: f"{change:+.2%}" for name, change in self.true.items()}
        yield Says(
            f"True change {true['change']} (whole fleet, job level), {true['machine_change']} (mean machine); "
            f"recorded halves: {true['reference']}, {true['machine_reference']}"
        )
        empty = self.scores["too_little_data"] == self.scores["draws"]
        yield self._table(self.scores[~empty])
        for size, name, reason in self.scores.loc[empty, ["machines", "estimator", "reason"]].itertuples(index=False):
            yield Says(f"{size:,} {self.unit}s, {name}: too little data in every draw: {reason}")
        yield from says(self.advice())

    def advice(self) -> str:
        """Return by which estimator to decide: the one with the narrowest intervals of those that keep their promise.

        An estimator's intervals are right too seldom if the 95% interval of its coverage, over the draws of all sizes,
        ends below its confidence. Sizes at which test clusters overlap do not count: their draws are few observations.
        """
        if self.overlapping == set(self.scores["machines"]):
            return f"No estimator is named to decide by: every size is half or more of the {self._available}."
        scores = self.scores[~self.scores["machines"].isin(self.overlapping)]
        scores = scores.assign(known=scores["draws"] - scores["too_little_data"]).query("known > 0")
        if scores.empty:
            return ""
        right, seldom = dict[str, float](), dict[str, float]()
        for name, rows in scores.groupby("estimator", sort=False):
            hits, count = round((rows["covers_truth"] * rows["known"]).sum()), int(rows["known"].sum())
            promised = binomial_interval(hits, count)[1] >= self.promised[str(name)]
            (right if promised else seldom)[str(name)] = hits / count
        limit = f"as far as {scores.groupby('estimator')['known'].sum().max():,} draws of this fleet can show"
        largest = scores[scores["machines"] == scores["machines"].max()].sort_values("margin", kind="stable")
        candidates = largest[largest["estimator"].isin([*right])]
        if candidates.empty:
            return f"Decide by none of them: their intervals hold the truth too seldom ({_held(seldom)})."
        name, margin, size = candidates.iloc[0][["estimator", "margin", "machines"]]
        narrow = f"±{margin:.2%} at {size:,} {self.unit}s"
        reason = f"the narrowest of those that hold the truth as often as they promise, {limit}"
        reason = reason if len(right) > 1 else f"right as often as they promise, {limit}"
        return (
            f"Decide by {name}: its intervals ({narrow}) are {reason}. Truth held: {_held(right)}"
            f"{f'; too seldom: {_held(seldom)}' if seldom else ''}."
        )

    @property
    def overlapping(self) -> set[int]:
        """Sizes at which two test clusters have half of their machines in common on average, or more."""
        return {int(size) for size in self.scores["machines"].unique() if 2 * size >= self.featured}

    @property
    def _available(self) -> str:
        return f"{self.featured:,} {self.unit}s with the feature"

    def dependence(self) -> str:
        """Return what to say of sizes at which draws are not independent; empty if there are none."""
        if not self.overlapping:
            return ""
        sizes = listed([f"{size:,}" for size in sorted(self.overlapping)], len(self.overlapping))
        return (
            f"test clusters of {sizes} of the {self._available} have half or more of their {self.unit}s in common: "
            "their draws are not independent, so the 95% interval of coverage is too narrow"
        )

    def _table(self, scores: pd.DataFrame) -> Table:
        shares = ("covers_covered", "excludes_current", "success", "quota_coverage")
        rows = [
            (
                f"{row['machines']:,}",
                row["estimator"],
                f"{row['bias']:+.2%}",
                f"{row['margin']:.2%}",
                f"{row['covers_truth']:.1%}",
                f"{100 * row['covers_truth_low']:.0f}–{row['covers_truth_high']:.0%}",
                *(number(row[share], ".1%", "–") for share in shares),
            )
            for row in scores.to_dict("records")
        ]
        numbers = [heading != "estimator" for heading in _HEADINGS]
        title = f"{plural(int(scores['draws'].max()) if len(scores) else 0, 'test cluster')} of each size"
        return table(_HEADINGS, rows, title, numbers=numbers, caption=_CAPTION, keys=2)

    def payload(self) -> Payload:
        """Return the truth and all scores."""
        rows = self.scores.to_dict("records")
        return {"kind": "fleet", "metric": self.metric, "unit": self.unit, "truth": self.true, "rows": rows}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValidatedFleet(Conclusion):
    """How often the estimators were right on test clusters of a run: ``wsc validate`` of a fleet."""

    scenario: str
    run: Path
    seed: int
    judged: ClusterScores
    notes: tuple[str, ...] = ()

    def brief(self) -> str:
        """Return how often the intervals of each estimator with an answer held the truth, on the largest clusters.

        Of those whose draws are independent, if there are any.
        """
        rows = self.judged.scores
        apart = ~rows["machines"].isin(self.judged.overlapping)
        rows = rows[apart] if apart.any() else rows
        rows = rows[rows["machines"] == rows["machines"].max()]
        size = plural(int(rows["machines"].iloc[0]), self.judged.unit)
        answered = rows.dropna(subset=["covers_truth"])
        if answered.empty:
            return f"no interval: too little data in every draw ({size})"
        shares = listed(f"{row.estimator} {row.covers_truth:.0%}" for row in answered.itertuples())
        return f"intervals held the truth: {shares} ({size})"

    def figure(self) -> "Figure":
        """Return how often the intervals of each estimator hold the truth, by size of the test cluster."""
        from analysis.figures.wsmeter.fleet import draw_coverage

        names = {"covers_truth": "coverage", "covers_truth_low": "low", "covers_truth_high": "high"}
        scores = self.judged.scores[["estimator", "machines", *names]].rename(columns=names)
        return draw_coverage(scores.assign(design=""), f"{self.judged.unit}s")

    def section(self) -> Section:
        """Return what was measured, the truth, and how often each estimator was right."""
        metric = METRICS[self.judged.metric]
        head = Says(f"{self.scenario} (seed {self.seed}), {metric.words} ({metric.name})")
        return Section("", (head, *self.judged.blocks(), *map(Says, self.notes)))

    def payload(self) -> Payload:
        """Return the truth, all scores, and of which run they are."""
        about = {"scenario": self.scenario, "run": str(self.run), "seed": self.seed, "notes": list(self.notes)}
        return {**self.judged.payload(), **about}

    def frame(self) -> pd.DataFrame:
        """Return a row an estimator and size of test cluster."""
        return self.judged.scores


def validate(scenario: schema.Scenario, out: Path, force: bool, progress: Progress) -> ValidatedFleet:
    """Return what `wsc validate` says: how often each estimator's interval was right over many test clusters."""
    return validate_fleet(scenario, out, force, progress)


def validate_fleet(
    scenario: AnyScenario, out: Path, force: bool, progress: Progress, own: Sequence[OwnEstimator] = ()
) -> ValidatedFleet:
    """Return how often each estimator's interval was right over many test clusters of a fleet.

    Parameters
    ----------
    scenario : whose settings name the estimators
    out, force : as of `obtain`
    progress : told what is being done
    own : estimators judged beside those that the scenario names
    """
    if not isinstance(scenario, schema.Scenario):
        raise RunError(f"{scenario.name}: is a {scenario.kind}; estimators of a change are judged on fleets")
    if scenario.feature is None or not scenario.recording.truth:
        why = "it has no feature" if scenario.feature is None else "recording.truth is false"
        raise RunError(f"{scenario.name}: there is no truth to validate against, {why}")
    if scenario.periods:
        raise RunError(f"{scenario.name}: machines switch the feature on and off, so no test clusters can be drawn")
    settings, unit = scenario.analyses.wsmeter, unit_of(scenario)
    others = _named(settings, unit, own)
    if not settings.estimators and not others:
        raise RunError(f"{scenario.name}: analyses.wsmeter.estimators names none")
    run = obtain(scenario, out, force, progress)
    judged = scores(
        Tables.of(run, settings),
        settings,
        scenario.seed,
        unit,
        lambda done, all_: progress("drawing", done / all_),
        others=_on_run(others, run, settings.metric) if others else (),
    )
    notes = tuple(filter(None, [partly_on(scenario), judged.dependence()]))
    return ValidatedFleet(scenario.name, run.path, scenario.seed, judged, notes)


def _named(settings: schema.WSMeter, unit: Unit, own: Sequence[OwnEstimator]) -> Sequence[EffectMethod | OwnEstimator]:
    """Return the estimators that see the observations of experiments."""
    others = [estimator_of(name) for name in settings.estimators if name not in PAPER_ESTIMATORS]
    others += own
    own_names([estimator for estimator in others if isinstance(estimator, OwnEstimator)])
    if others and unit == "instance":
        listed = ", ".join(estimator.name for estimator in others)
        raise RunError(f"{listed}: can compare machines, but in this scenario single instances have the feature")
    return others


def _on_run(
    others: Sequence[EffectMethod | OwnEstimator], run: Run, metric: MetricName
) -> Sequence["ExperimentEstimator"]:
    """Return the estimators with the observations of a run."""
    rows, jobs = recorded(run, metric)[0], job_quotas(run, settings_of(run))
    return [
        _OfOthers(estimator, rows, jobs) if isinstance(estimator, OwnEstimator) else _OfOurs.of(estimator, rows, jobs)
        for estimator in others
    ]


def scores(
    tables: Tables,
    settings: schema.WSMeter,
    seed: int,
    unit: Unit = "machine",
    progress: Drawn | None = None,
    *,
    others: Sequence["ExperimentEstimator"] = (),
) -> ClusterScores:
    """Return how often the estimators are right on test clusters of a recorded fleet.

    Parameters
    ----------
    tables : the recorded fleet, its jobs and the counterfactual fleets
    settings : the scenario's: sizes, draws, t, least instances, widening, top jobs, least coverage
    seed : of the draws; each size has a stream of its own
    unit : what the feature is rolled out by; for instances, sizes are numbers of instances
    progress : called after every draw
    others : estimators that see the observations of experiments

    Raises
    ------
    NotEnoughDataError
        If the featured half has fewer machines than a test cluster.
    ValueError
        If the least coverage cannot be reached.
    """
    tables = tables.by_instance() if unit == "instance" else tables
    true = truth(tables)
    drawn = draws(tables, settings, seed, progress, others=others)
    normal = 2 * float(normal_cdf(settings.t)) - 1
    promised = {name: normal if name in PAPER_ESTIMATORS else _LEVEL for name in drawn["estimator"].unique()}
    featured = halves_of(tables.observed)[1]["machine"].nunique()
    return ClusterScores(settings.metric, unit, true, pd.DataFrame(_scores(drawn, true["change"])), promised, featured)


def draws(
    tables: Tables,
    settings: schema.WSMeter,
    seed: int,
    progress: Drawn | None = None,
    *,
    others: Sequence["ExperimentEstimator"] = (),
) -> pd.DataFrame:
    """Return what each estimator says of each test cluster.

    Parameters
    ----------
    tables, settings, seed, progress, others : as in `scores`; the counterfactual fleets are not looked at

    Returns
    -------
    DataFrame
        machines (size of the cluster), draw, reselections, estimator, change, low, high, margin, quota_coverage, jobs,
        and reference: the change from the whole featured half over the same jobs with the same weights, which the
        paper validates against. NaN where there was too little data, and for estimators of the whole fleet's change,
        which cover all jobs. reason: what was needed where there was too little data, else empty.
    """
    without, having = halves_of(tables.observed)
    considered = _considered(tables.jobs, settings.top_jobs)
    current, whole = Current.of(without).only(pd.Index(considered["job"])), Current.of(having)
    cut = _Cut(having, MachineRows.of(having), considered, settings)
    known = {
        estimator.name: estimator for estimator in paper_estimators(settings.t, settings.min_instances, settings.widen)
    }
    judged = [known[name] for name in settings.estimators if name in known]
    rows: list[dict[str, object]] = []
    for size in settings.machines:
        rng = stream(seed, f"validate/{size}")
        for draw in range(settings.draws):
            chosen, reselections = cut.draw(rng, size)
            new = Current.of(having.take(chosen))
            head = {"machines": size, "draw": draw, "reselections": reselections}
            same_jobs = _only_covered(whole, current, new, tables.jobs, settings.min_instances)
            for estimator in judged:
                answers = _answers(estimator, current, new, same_jobs, tables.jobs)
                rows.append({**head, "estimator": estimator.name, **answers})
            machines = having["machine"].to_numpy()[chosen]
            rows += [{**head, "estimator": other.name, **_of_experiment(other, machines)} for other in others]
            if progress is not None:
                progress(len(rows) // (len(judged) + len(others)), settings.draws * len(settings.machines))
    return pd.DataFrame(rows)


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a share from independent trials (Clopper and Pearson 1934).

    Examples
    --------
    >>> [round(end, 4) for end in binomial_interval(95, 100)]
    [0.8872, 0.9836]
    """
    if trials == 0:
        return 0.0, 1.0
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = beta.ppf(tail, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - tail, successes + 1, trials - successes) if successes < trials else 1.0
    return float(low), float(high)


@dataclass(frozen=True, slots=True, eq=False)
class _Cut:
    """How test clusters are cut out of the featured half."""

    having: pd.DataFrame
    rows: MachineRows
    considered: pd.DataFrame
    settings: schema.WSMeter

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Ints, int]:
        """Return the rows of a cluster, and the draws before it that covered too little."""
        floor, enough = self.settings.min_coverage, self.settings.min_instances
        if floor == 0:
            return random_machines(rng, self.rows, size), 0
        cluster = covering_machines(
            rng, self.having, self.rows, size, jobs=self.considered, floor=floor, min_instances=enough
        )
        return cluster.rows, cluster.reselections


def _considered(jobs: pd.DataFrame, top: int | None) -> pd.DataFrame:
    """Return job and quota_share of the jobs that an estimate may rest on."""
    shares = pd.DataFrame({"job": jobs["job"], "quota_share": quota_shares(jobs, pd.Index(jobs["job"]))})
    return shares.nlargest(len(shares) if top is None else top, "quota_share")


def _only_covered(whole: Current, current: Current, new: Current, jobs: pd.DataFrame, min_instances: int) -> Current:
    """Return the whole featured half over the jobs that a test cluster covers."""
    try:
        return whole.only(Covered.of(current, new, min_instances, 1, jobs).job)
    except NotEnoughDataError:
        return whole


def _answers(
    estimator: ClusterEstimator, current: Current, new: Current, whole: Current, jobs: pd.DataFrame
) -> dict[str, float | str]:
    """Return an estimator's answer, and what it would say of the whole featured half over the same jobs."""
    try:
        estimate = estimator.estimate(current, new, jobs)
    except NotEnoughDataError as error:
        return {**dict.fromkeys(_ANSWERS, np.nan), "reason": str(error)}
    answers = {name: getattr(estimate, name) for name in _ANSWERS[:-1]}
    return {**answers, "reference": estimator.estimate(current, whole, jobs).change, "reason": ""}


_ANSWERS = ("change", "low", "high", "margin", "quota_coverage", "jobs", "reference")


class ExperimentEstimator(Protocol):
    """An estimator that sees the observations of an experiment on some of the recorded machines with the feature."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    def answer(self, machines: NDArray[Any]) -> Statistic:
        """Return the change and its interval if only these machines had the feature; others that have are not seen."""


@dataclass(frozen=True, slots=True, eq=False)
class _OfOthers:
    """An estimator of other people, which sees tables."""

    estimator: OwnEstimator
    rows: pd.DataFrame
    jobs: pd.DataFrame

    @property
    def name(self) -> str:
        return self.estimator.name

    def answer(self, machines: NDArray[Any]) -> Statistic:
        return self.estimator.estimate(
            ExperimentTables.of(_with_only(self.rows, machines), self.jobs[["job", "quota"]].copy())
        )


@dataclass(frozen=True, slots=True, eq=False)
class _OfOurs:
    """One of our methods; where nothing of the past counts, the sums by machine and job are made once for all draws."""

    method: EffectMethod
    rows: pd.DataFrame
    jobs: pd.DataFrame
    whole: Study | None
    """All of the recorded machines, if the sums of some are those of a study of them alone."""

    @classmethod
    def of(cls, chosen: EffectMethod, rows: pd.DataFrame, jobs: pd.DataFrame) -> "_OfOurs":
        staged = "staged" in chosen.designs
        whole = None if staged else Study.of(rows, jobs)
        apart = whole is not None and whole.design == "concurrent" and not whole.cells.x.shape[1]
        return cls(chosen, rows, jobs, whole if apart else None)

    @property
    def name(self) -> str:
        return self.method.name

    def answer(self, machines: NDArray[Any]) -> Statistic:
        if self.whole is None:
            study = Study.of(_with_only(self.rows, machines), self.jobs, staged="staged" in self.method.designs)
        else:
            observed = ~self.whole.treated | self.whole.cells.machines.isin(machines)
            study = replace(
                self.whole, cells=of_machines(self.whole.cells, observed), treated=self.whole.treated[observed]
            )
        effect = self.method.estimate(study)
        return Statistic(effect.change, effect.low, effect.high)


def _with_only(rows: pd.DataFrame, machines: NDArray[Any]) -> pd.DataFrame:
    """Return the observations if only some of the machines with the feature had it; of the others the past is seen."""
    treated = rows["treated"] == 1
    first = rows.loc[treated, "period"].min()
    others = rows["machine"].isin(rows.loc[treated, "machine"].unique()) & ~rows["machine"].isin(machines)
    observed: pd.DataFrame = rows[~others | (rows["period"] < first)]
    return observed


def _of_experiment(estimator: ExperimentEstimator, machines: NDArray[Any]) -> dict[str, float | str]:
    """Return an estimator's answer; it is about all jobs, so it has no reference over those that are covered."""
    answers = dict.fromkeys(_ANSWERS, np.nan)
    try:
        change, low, high = estimator.answer(machines)
    except NotEnoughDataError as error:
        return {**answers, "reason": str(error)}
    return {**answers, "change": change, "low": low, "high": high, "margin": (high - low) / 2, "reason": ""}


def _scores(drawn: pd.DataFrame, change: float) -> Iterator[dict[str, object]]:
    """Yield what is counted over the draws of each estimator and size; draws with too little data apart."""
    for (size, name), all_draws in drawn.groupby(["machines", "estimator"], sort=False):
        enough = all_draws.dropna(subset=["change"])
        true = enough["low"].le(change) & enough["high"].ge(change)
        covering = enough.dropna(subset=["reference"])
        over_covered = covering["low"].le(covering["reference"]) & covering["high"].ge(covering["reference"])
        excludes = enough["low"].gt(0) | enough["high"].lt(0)
        yield {
            "estimator": name,
            "machines": size,
            "draws": len(all_draws),
            "too_little_data": len(all_draws) - len(enough),
            "bias": float((enough["change"] - change).mean()),
            "bias_covered": float((enough["change"] - enough["reference"]).mean()),
            "margin": float(enough["margin"].mean()),
            **_share("covers_truth", true),
            **_share("covers_covered", over_covered),
            "excludes_current": float(excludes.mean()),
            "success": float((excludes & over_covered).mean()) if len(over_covered) else math.nan,
            "success_truth": float((excludes & true).mean()),
            "quota_coverage": float(enough["quota_coverage"].mean()),
            "reselections": float(all_draws["reselections"].mean()),
            "reason": next(filter(None, all_draws["reason"]), ""),
        }


def _held(coverage: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in coverage.items())


def _share(name: str, holds: pd.Series) -> dict[str, float]:
    low, high = binomial_interval(int(holds.sum()), len(holds))
    return {name: float(holds.mean()), f"{name}_low": low, f"{name}_high": high}
