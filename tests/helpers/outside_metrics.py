"""How often intervals hold the truth of metrics that are no positive means, on fleets of another making.

Usage: python -m tests.helpers.outside_metrics [--draws 1000] [--conditions signed,proportion] [--out runs/outside]
       python -m tests.helpers.outside_metrics --jobs 60 | --plans 24

A fleet of `outside_fleets` says what is behind the numbers; here they become numbers below and at zero, yes and no,
numerators and denominators, or values with a long tail. Each draw is a new fleet, of which some machines get the
feature, and goes the way of `wsc effect`. The truth is that of all rows of the study of the fleet drawn, with the
feature against without it. What has no answer is counted apart. Parts of a hundred draws are kept in the folder.

`--jobs` counts, on so many fleets in which nothing has an effect, how often jobs' own intervals hold 0 and how many
verdicts on jobs are false; `--plans` compares the half-width that `wsc design` foretells with that of an experiment.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.estimand import Estimand
from analysis.effects.linearisation import Linearised, past_near_one
from analysis.effects.methods import method
from analysis.effects.past import Past
from analysis.effects.per_job import per_job
from analysis.effects.planning import Wanted, forecast
from analysis.effects.rehearsals import Assumed, spans
from models.errors import WscError
from tests.helpers.outside_fleets import Condition, fleet

ESTIMATORS = ("adjusted", "unadjusted", "cuped", "ratio")
PART = 100


@dataclass(frozen=True)
class Metric:
    """A kind of fleet, what its numbers are, and what is estimated."""

    fleet: Condition
    metric_kind: str
    change: str
    chance: float = 0.0
    """Of yes, in the mean."""


_HALF = {"machines": 200, "treated": 100}
_TAIL = Condition(**_HALF, study=5, noise="lognormal", change=0.1)
METRICS = {
    "signed": Metric(Condition(), "mean", "absolute"),
    "signed_large": Metric(Condition(treated=50, change=1.0), "mean", "absolute"),
    "with_zeros": Metric(Condition(treated=50, change=0.2), "mean", "relative"),
    "proportion": Metric(Condition(**_HALF, change=0.3), "proportion", "absolute", 0.02),
    "proportion_relative": Metric(Condition(**_HALF, change=0.3), "proportion", "relative", 0.02),
    "proportion_fifth": Metric(Condition(), "proportion", "absolute", 0.2),
    "ratio": Metric(Condition(exposures_vary=True), "ratio", "relative"),
    "ratio_half": Metric(Condition(exposures_vary=True, treated=50, change=0.3), "ratio", "relative"),
    "p50": Metric(Condition(treated=50), "p50", "relative"),
    "p90": Metric(Condition(treated=50, noise="lognormal"), "p90", "relative"),
    "p99": Metric(_TAIL, "p99", "relative"),
    "p99_absolute": Metric(_TAIL, "p99", "absolute"),
}


def drawn(metric, rng):
    """Return the rows that are observed of a new fleet, the fleet's jobs, and the truth."""
    made = fleet(metric.fleet, rng)
    rows = {name: np.asarray(values) for name, values in made.rows.items()}
    off, on = (numbers(metric, rows, arm, np.random.default_rng(rng.integers(2**32))) for arm in common(rng))
    chosen = made.assigned(rng)
    study = rows["period"] >= metric.fleet.before
    treated = study & chosen[rows["machine"]]
    observed = {name: values for name, values in rows.items() if name not in {"off", "on"}}
    observed |= {"value": np.where(treated, on, off), "treated": treated.astype(int)}
    weights = _weights(metric, rows, study, made.jobs["quota"])
    before, after = (_value(metric, values[study], weights[study], rows, study) for values in (off, on))
    return observed, made.jobs, after / before - 1.0 if metric.change == "relative" else after - before


def common(rng):
    """Return the two arms, before each of which the generator is where it was."""
    state = rng.bit_generator.state
    for arm in ("off", "on"):
        rng.bit_generator.state = state
        yield arm


def numbers(metric, rows, arm, rng):
    """Return what is recorded of each row, of either arm; chance is the same in both."""
    value = rows[arm]
    if metric.metric_kind == "mean" and metric.change == "absolute":
        return np.where(rng.random(len(value)) < 0.1, 0.0, 20.0 * np.log(value) + 3.0)
    if metric.metric_kind == "mean":
        return np.where(rng.random(len(value)) < 0.4, 0.0, value)
    if metric.metric_kind == "proportion":
        return (rng.random(len(value)) < metric.chance * value / rows["off"].mean()).astype(float)
    return value * rows["exposure"] if metric.metric_kind == "ratio" else value


def _weights(metric, rows, study, quota):
    """Return what each row counts for; of a ratio its numbers are sums already."""
    count = np.bincount(rows["job"], study, len(quota))
    return np.ones(len(study)) if metric.metric_kind == "ratio" else (quota / np.maximum(count, 1))[rows["job"]]


def _value(metric, values, weights, rows, study):
    """Return the metric of all rows of the study."""
    if metric.metric_kind == "ratio":
        return values.sum() / rows["exposure"][study].sum()
    if not metric.metric_kind.startswith("p") or metric.metric_kind == "proportion":
        return (weights * values).sum() / weights.sum()
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    return values[order][np.searchsorted(share, float(metric.metric_kind[1:]) / 100.0 - 1e-12)]


def answers(metric, seed, number, estimators=ESTIMATORS):
    """Return change, lower and upper end and truth of each estimator in one draw, (E, 4); NaN if it has no answer."""
    rng = np.random.default_rng([seed, number])
    observed, jobs, truth = drawn(metric, rng)
    estimand, found = Estimand.of(metric.metric_kind, metric.change), []
    try:
        linearised = Linearised.of(pd.DataFrame(observed), pd.DataFrame(jobs), estimand)
    except WscError:
        return np.array([(np.nan, np.nan, np.nan, truth)] * len(estimators))
    for name in estimators:
        try:
            effect = linearised.estimate(method(name))
            found.append((effect.change, effect.low, effect.high, truth))
        except WscError:
            found.append((np.nan, np.nan, np.nan, truth))
    return np.array(found)


def counted(name, draws, out, seed=1):
    """Return the answers of all draws of a condition, (draws, E, 4); parts may be in the folder."""
    parts = []
    for first in range(0, draws, PART):
        file = out / f"metric-{name}-{seed}-{first:05d}.json"
        if not file.is_file():
            block = np.array([answers(METRICS[name], seed, number) for number in range(first, first + PART)])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(json.dumps(block.tolist()), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64))
    return np.concatenate(parts)


def summary(name, found):
    """Return a row for each estimator: coverage of what was answered, bias, root mean squared error, half-width."""
    rows = []
    for number, estimator in enumerate(ESTIMATORS):
        change, low, high, truth = found[:, number].T
        known = np.isfinite(change)
        inside = ((low <= truth) & (truth <= high))[known]
        rows.append(
            {
                "condition": name,
                "estimator": estimator,
                "draws": len(change),
                "answered": known.mean(),
                "coverage": inside.mean(),
                "coverage_error": np.sqrt(inside.mean() * (1 - inside.mean()) / max(known.sum(), 1)),
                "truth": truth.mean(),
                "bias": (change - truth)[known].mean(),
                "rmse": np.sqrt(((change - truth)[known] ** 2).mean()),
                "half_width": np.median((high - low)[known]) / 2,
            }
        )
    return rows


PLACEBOS = {
    "mean": Metric(Condition(before=5, study=1), "mean", "absolute"),
    "proportion": Metric(Condition(before=5, study=1), "proportion", "absolute", 0.2),
    "ratio": Metric(Condition(before=5, study=1, exposures_vary=True), "ratio", "absolute"),
    "rate": Metric(Condition(before=5, study=1), "rate", "absolute"),
    "rare": Metric(Condition(before=5, study=1), "proportion", "absolute", 0.02),
}
"""Fleets of which the days before the feature are looked at: the last of them as if it were the study."""


PLANNED = PLACEBOS | {
    "p75": Metric(Condition(before=5, study=1, noise="lognormal"), "p75", "relative"),
    "p95": Metric(Condition(machines=300, treated=100, before=5, study=1), "p95", "relative"),
}
"""Fleets that experiments are planned for."""


def placebo(metric, first, number, seed=1):
    """Return rows and jobs of a fleet, from a day to the last before the feature, on which it is said to be there."""
    observed, jobs, _ = drawn(metric, np.random.default_rng([seed, number]))
    table, last = pd.DataFrame(observed), metric.fleet.before - 1
    having = table["machine"].isin(table.loc[table["treated"] == 1, "machine"])
    table = table.assign(treated=(having & (table["period"] == last)).astype(int))
    return table[table["period"].between(first, last)].reset_index(drop=True), pd.DataFrame(jobs)


def of_jobs(name, fleets, seed=1):
    """Return how often jobs' own intervals hold 0, and on how many jobs and in how many fleets a verdict is false."""
    metric, rows = PLACEBOS[name], []
    for number in range(fleets):
        table, jobs = placebo(metric, 2, number, seed)
        linearised = Linearised.of(table, jobs, Estimand.of(metric.metric_kind, metric.change))
        known = per_job(linearised.study_near_one()[0], None, linearised.proportions).query("verdict != 'undecidable'")
        held, false = (known["low"] <= 0) & (known["high"] >= 0), known["verdict"].isin(["gained", "lost"])
        rows.append((held.mean(), len(known), false.sum(), false.any()))
    held, known, false, fleets_with = np.array(rows, dtype=np.float64).T
    error = held.std(ddof=1) / np.sqrt(fleets)
    numbers = {"coverage": held.mean(), "error": error, "jobs": known.sum(), "false": false.sum()}
    return {"kind": name, **numbers, "fleets": fleets_with.sum()}


def of_plans(name, fleets, seed=1):
    """Return the geometric mean of planned over observed half-widths of a day after a day, with its error."""
    metric, logs = PLANNED[name], []
    estimand, adjusted = Estimand.of(metric.metric_kind, metric.change), method("adjusted")
    for number in range(fleets):
        table, jobs = placebo(metric, 0, number, seed)
        last = table["period"].max()
        near, unit = past_near_one(table[table["period"] < last].reset_index(drop=True), jobs, estimand)
        past = Past(near, 86400.0, jobs, estimand.target)
        rehearsal = next(spans(past, 1.0, Assumed(1e-9, 0.0, 0.0), ["adjusted"]))
        planned = unit * forecast(rehearsal, metric.fleet.treated, Wanted(draws=100)).margin
        study = table[table["period"] >= last - 1].reset_index(drop=True)
        logs.append(np.log(planned / Linearised.of(study, jobs, estimand).estimate(adjusted).margin))
    return {"kind": name, "ratio": np.exp(np.mean(logs)), "error": np.std(logs, ddof=1) / np.sqrt(fleets)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conditions", default=",".join(METRICS))
    parser.add_argument("--out", type=Path, default=Path("runs/outside"))
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--plans", type=int, default=0)
    asked = parser.parse_args()
    for counted_of, names, fleets in ((of_jobs, PLACEBOS, asked.jobs), (of_plans, PLANNED, asked.plans)):
        if fleets:
            rows = [counted_of(name, fleets, asked.seed) for name in names]
            print(pd.DataFrame(rows).round(4).to_string(index=False))
    if asked.jobs or asked.plans:
        return
    for number, name in enumerate(asked.conditions.split(",")):
        rows = summary(name, counted(name, asked.draws, asked.out, asked.seed))
        print(pd.DataFrame(rows).round(4).to_string(index=False, header=number == 0), flush=True)


if __name__ == "__main__":
    main()
