"""Estimators beside the truth: test clusters drawn from a recorded fleet, and how often their intervals were right.

This is the one place that holds both. Each draw of the featured half is a test cluster, the other half is the current
fleet (Lee et al. 2018, WSMeter, section 6.1).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from analysis.statistics import Current, NotEnoughDataError, quota_shares
from analysis.wsmeter.clusters import MachineRows, covering_machines, random_machines
from analysis.wsmeter.coverage import Covered
from analysis.wsmeter.estimators import Baseline, Estimator, WSMeter
from models.arrays import Ints
from models.fleet.metrics import METRICS
from models.randomness import stream
from scenarios.files import schema
from scenarios.wsmeter.truth import Tables, halves_of, truth

Progress = Callable[[int, int], None]
"""Called with the draws done and all draws."""


def estimators(settings: schema.WSMeter) -> tuple[Estimator, ...]:
    """Return the paper's estimators under a scenario's settings.

    Examples
    --------
    >>> [each.name for each in estimators(schema.WSMeter())]
    ['baseline', 'wsmeter', 'wsmeter-widened']
    """
    t, enough = settings.t, settings.min_instances
    return Baseline(t), WSMeter(t, enough), WSMeter(t, enough, settings.widen)


def validate(
    tables: Tables,
    settings: schema.WSMeter,
    seed: int,
    unit: Literal["machine", "instance"] = "machine",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return how often the estimators are right on test clusters of a recorded fleet.

    Parameters
    ----------
    tables : the recorded fleet, its jobs and the counterfactual fleets
    settings : the scenario's: sizes, draws, t, least instances, widening, top jobs, least coverage
    seed : of the draws; each size has a stream of its own
    unit : what the feature is rolled out by; for instances, sizes are numbers of instances
    progress : called after every draw

    Returns
    -------
    dict
        kind, metric, truth (relative changes: change of the whole fleet at job level, machine_change, and reference and
        machine_reference, the recorded half with the feature against the half without), rows per estimator and size.

    Raises
    ------
    NotEnoughDataError
        If the featured half has fewer machines than a test cluster.
    ValueError
        If the least coverage cannot be reached.

    Examples
    --------
    >>> off = pd.DataFrame({"job": [0, 1] * 20, "machine": np.repeat(range(20), 2), "weight": 1.0})
    >>> off["value"] = 1.0 + off["job"] + off["machine"] % 3
    >>> on = off.assign(value=1.1 * off["value"])
    >>> halves = on.assign(feature=on["machine"] < 10, value=on["value"].where(on["machine"] < 10, off["value"]))
    >>> jobs = pd.DataFrame({"job": [0, 1], "quota": [3.0, 1.0], "instances": 20})
    >>> made = validate(Tables(halves, jobs, off, on), schema.WSMeter(machines=(4, 8), draws=3), seed=1)
    >>> round(made["truth"]["change"], 6), [row["draws"] for row in made["rows"]]
    (0.1, [3, 3, 3, 3, 3, 3])
    """
    tables = tables.by_instance() if unit == "instance" else tables
    true = truth(tables)
    drawn = draws(tables, settings, seed, progress)
    return {
        "kind": "fleet",
        "metric": settings.metric,
        "unit": unit,
        "truth": true,
        "rows": list(_scores(drawn, true["change"])),
    }


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

    Raises
    ------
    NotEnoughDataError
        If the featured half has fewer machines than a test cluster.
    ValueError
        If the least coverage cannot be reached.

    Examples
    --------
    >>> off = pd.DataFrame({"job": [0, 1] * 20, "machine": np.repeat(range(20), 2), "weight": 1.0, "value": 2.0})
    >>> on = off.assign(value=2.2)
    >>> halves = on.assign(feature=on["machine"] < 10, value=on["value"].where(on["machine"] < 10, off["value"]))
    >>> jobs = pd.DataFrame({"job": [0, 1], "quota": [3.0, 1.0], "instances": 20})
    >>> made = draws(Tables(halves, jobs, off, on), schema.WSMeter(machines=(4,), draws=2), seed=1)
    >>> len(made), made["change"].round(6).unique().tolist()
    (6, [0.1])
    """
    without, having = halves_of(tables.observed)
    considered = _considered(tables.jobs, settings.top_jobs)
    current, whole = Current.of(without).only(pd.Index(considered["job"])), Current.of(having)
    cut = _Cut(having, MachineRows.of(having), considered, settings)
    each = estimators(settings)
    rows: list[dict[str, Any]] = []
    for size in settings.machines:
        rng = stream(seed, f"validate/{size}")
        for draw in range(settings.draws):
            chosen, reselections = cut.draw(rng, size)
            new = Current.of(having.take(chosen))
            head = {"machines": size, "draw": draw, "reselections": reselections}
            same_jobs = _only_covered(whole, current, new, tables.jobs, settings.min_instances)
            for one in each:
                rows.append(head | {"estimator": one.name} | _answers(one, current, new, same_jobs, tables.jobs))
            if progress is not None:
                progress(len(rows) // len(each), settings.draws * len(settings.machines))
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


def show_validate(payload: Mapping[str, Any], console: Console) -> None:
    """Print the truth and how often each estimator was right.

    Parameters
    ----------
    payload : what `validate` returned
    console : where to

    Examples
    --------
    >>> from io import StringIO
    >>> true = {"change": 0.1, "machine_change": 0.12, "reference": 0.09, "machine_reference": 0.11}
    >>> show_validate({"truth": true, "rows": []}, Console(file=(out := StringIO())))
    >>> out.getvalue().partition(";")[0]
    'True change +10.00% (whole fleet, job level), +12.00% (mean machine)'
    """
    true = payload["truth"]
    if "scenario" in payload:
        metric = METRICS[payload["metric"]]
        console.print(
            f"{payload['scenario']} (seed {payload['seed']}), {metric.words} ({metric.name})", highlight=False
        )
    console.print(
        f"True change {true['change']:+.2%} (whole fleet, job level), {true['machine_change']:+.2%} (mean machine); "
        f"recorded halves: {true['reference']:+.2%}, {true['machine_reference']:+.2%}",
        highlight=False,
        soft_wrap=True,
    )
    title = "Shares of the draws whose interval holds …"
    table = Table(title=title, caption=_CAPTION, box=None, padding=(0, 1, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, no_wrap=True)
    for row in payload["rows"]:
        if row["too_little_data"] == row["draws"]:
            table.add_row(f"{row['machines']:,}", row["estimator"], "too little data")
            continue
        shares = ("covers_covered", "excludes_current", "success", "quota_coverage")
        table.add_row(
            f"{row['machines']:,}",
            row["estimator"],
            f"{row['bias']:+.2%}",
            f"{row['margin']:.2%}",
            f"{row['covers_truth']:.1%}",
            f"{100 * row['covers_truth_low']:.0f}–{row['covers_truth_high']:.0%}",
            *(f"{row[share]:.1%}" for share in shares),
        )
    console.print(table)


_HEADINGS = ("size", "estimator", "bias", "margin", "truth", "95%", "covered", "not 0", "success", "quota")
_CAPTION = (
    "truth: the whole fleet's change, with the 95% interval of that share; covered: the recorded halves' change over "
    "the covered jobs; not 0: it excludes the current fleet; success: covered and not 0. quota: share covered."
)


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


def _answers(each: Estimator, current: Current, new: Current, whole: Current, jobs: pd.DataFrame) -> dict[str, float]:
    """Return an estimator's answer, and what it would say of the whole featured half over the same jobs."""
    try:
        made = each.estimate(current, new, jobs)
    except NotEnoughDataError:
        return dict.fromkeys(_ANSWERS, np.nan)
    answers = {name: getattr(made, name) for name in _ANSWERS[:-1]}
    return answers | {"reference": each.estimate(current, whole, jobs).change}


_ANSWERS = ("change", "low", "high", "margin", "quota_coverage", "jobs", "reference")


def _scores(drawn: pd.DataFrame, change: float) -> Iterator[dict[str, Any]]:
    """Yield what is counted over the draws of each estimator and size; draws with too little data apart."""
    for (size, name), all_draws in drawn.groupby(["machines", "estimator"], sort=False):
        made = all_draws.dropna(subset=["change"])
        true = made["low"].le(change) & made["high"].ge(change)
        over_covered = made["low"].le(made["reference"]) & made["high"].ge(made["reference"])
        excludes = made["low"].gt(0) | made["high"].lt(0)
        yield {
            "estimator": name,
            "machines": size,
            "draws": len(all_draws),
            "too_little_data": len(all_draws) - len(made),
            "bias": float((made["change"] - change).mean()),
            "bias_covered": float((made["change"] - made["reference"]).mean()),
            "margin": float(made["margin"].mean()),
            **_share("covers_truth", true),
            **_share("covers_covered", over_covered),
            "excludes_current": float(excludes.mean()),
            "success": float((excludes & over_covered).mean()),
            "success_truth": float((excludes & true).mean()),
            "quota_coverage": float(made["quota_coverage"].mean()),
            "reselections": float(all_draws["reselections"].mean()),
        }


def _share(name: str, holds: pd.Series) -> dict[str, float]:
    low, high = binomial_interval(int(holds.sum()), len(holds))
    return {name: float(holds.mean()), f"{name}_low": low, f"{name}_high": high}
