"""Estimators beside the truth: test clusters drawn from a recorded fleet, and how often their intervals were right.

This is the one place that holds both. Each draw of the featured half is a test cluster, the other half is the current
fleet (Lee et al. 2018, WSMeter, section 6.1).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import beta

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.clusters import MachineRows, covering_machines, random_machines
from analysis.wsmeter.estimators import ClusterEstimator, paper_estimators
from analysis.wsmeter.summaries import Covered, Current, quota_shares
from models.arrays import Ints
from models.fleet.metrics import METRICS, MetricName
from models.randomness import stream
from scenarios.files import schema
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Block, Says, Section, Table, table
from scenarios.wsmeter.measurements import Tables, halves_of, truth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[int, int], None]
"""Called with the draws done and all draws."""


Unit: TypeAlias = Literal["machine", "instance"]
"""What a test cluster is made of."""
_HEADINGS = ("size", "estimator", "bias", "margin", "truth", "95%", "covered", "not 0", "success", "quota")
_CAPTION = (
    "truth: the whole fleet's change, with the 95% interval of that share; covered: the recorded halves' change over "
    "the covered jobs; not 0: it excludes the current fleet; success: covered and not 0. quota: share covered."
)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterScores:
    """How often each estimator's interval was right over test clusters of each size, and what the truth is."""

    metric: MetricName
    unit: Unit
    true: Mapping[str, float]
    """Relative changes: change (whole fleet, job level), machine_change, reference and machine_reference."""
    scores: pd.DataFrame
    """A row an estimator and size: bias, margin, and shares of the draws; NaN where none had enough data."""

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
        for size, name in self.scores.loc[empty, ["machines", "estimator"]].itertuples(index=False):
            yield Says(f"{size:,} {self.unit}s, {name}: too little data in every draw")

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
                *(f"{row[share]:.1%}" for share in shares),
            )
            for row in scores.to_dict("records")
        ]
        numbers = [heading != "estimator" for heading in _HEADINGS]
        return table(_HEADINGS, rows, "Shares of the draws whose interval holds …", numbers=numbers, caption=_CAPTION)

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
        return Section("", (head, *self.judged.blocks()))

    def payload(self) -> Payload:
        """Return the truth, all scores, and of which run they are."""
        return {**self.judged.payload(), "scenario": self.scenario, "run": str(self.run), "seed": self.seed}

    def frame(self) -> pd.DataFrame:
        """Return a row an estimator and size of test cluster."""
        return self.judged.scores


def validate(
    tables: Tables,
    settings: schema.WSMeter,
    seed: int,
    unit: Unit = "machine",
    progress: Progress | None = None,
) -> ClusterScores:
    """Return how often the estimators are right on test clusters of a recorded fleet.

    Parameters
    ----------
    tables : the recorded fleet, its jobs and the counterfactual fleets
    settings : the scenario's: sizes, draws, t, least instances, widening, top jobs, least coverage
    seed : of the draws; each size has a stream of its own
    unit : what the feature is rolled out by; for instances, sizes are numbers of instances
    progress : called after every draw

    Raises
    ------
    NotEnoughDataError
        If the featured half has fewer machines than a test cluster.
    ValueError
        If the least coverage cannot be reached.
    """
    tables = tables.by_instance() if unit == "instance" else tables
    true = truth(tables)
    scores = _scores(draws(tables, settings, seed, progress), true["change"])
    return ClusterScores(settings.metric, unit, true, pd.DataFrame(scores))


def draws(tables: Tables, settings: schema.WSMeter, seed: int, progress: Progress | None = None) -> pd.DataFrame:
    """Return what each estimator says of each test cluster.

    Parameters
    ----------
    tables, settings, seed, progress : as in `validate`; the counterfactual fleets are not looked at

    Returns
    -------
    DataFrame
        machines (size of the cluster), draw, reselections, estimator, change, low, high, margin, quota_coverage, jobs,
        and reference: the change from the whole featured half over the same jobs with the same weights, which the
        paper validates against. NaN where there was too little data.
    """
    without, having = halves_of(tables.observed)
    considered = _considered(tables.jobs, settings.top_jobs)
    current, whole = Current.of(without).only(pd.Index(considered["job"])), Current.of(having)
    cut = _Cut(having, MachineRows.of(having), considered, settings)
    judged = paper_estimators(settings.t, settings.min_instances, settings.widen)
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
            if progress is not None:
                progress(len(rows) // len(judged), settings.draws * len(settings.machines))
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
) -> dict[str, float]:
    """Return an estimator's answer, and what it would say of the whole featured half over the same jobs."""
    try:
        estimate = estimator.estimate(current, new, jobs)
    except NotEnoughDataError:
        return dict.fromkeys(_ANSWERS, np.nan)
    answers = {name: getattr(estimate, name) for name in _ANSWERS[:-1]}
    return answers | {"reference": estimator.estimate(current, whole, jobs).change}


_ANSWERS = ("change", "low", "high", "margin", "quota_coverage", "jobs", "reference")


def _scores(drawn: pd.DataFrame, change: float) -> Iterator[dict[str, object]]:
    """Yield what is counted over the draws of each estimator and size; draws with too little data apart."""
    for (size, name), all_draws in drawn.groupby(["machines", "estimator"], sort=False):
        enough = all_draws.dropna(subset=["change"])
        true = enough["low"].le(change) & enough["high"].ge(change)
        over_covered = enough["low"].le(enough["reference"]) & enough["high"].ge(enough["reference"])
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
            "success": float((excludes & over_covered).mean()),
            "success_truth": float((excludes & true).mean()),
            "quota_coverage": float(enough["quota_coverage"].mean()),
            "reselections": float(all_draws["reselections"].mean()),
        }


def _share(name: str, holds: pd.Series) -> dict[str, float]:
    low, high = binomial_interval(int(holds.sum()), len(holds))
    return {name: float(holds.mean()), f"{name}_low": low, f"{name}_high": high}
