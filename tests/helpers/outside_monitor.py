"""How often monitored experiments end in a false or a true verdict, on fleets of another making.

Usage: python -m tests.helpers.outside_monitor [--fleets 30] [--seed 1] [--conditions signed,ratio] [--out FOLDER]

60 machines, of which 20 get the feature, 3 days before and 28 looks, one a day; machines keep 0.9 of their course from
a day to the next. In `moving` 5% of the instances move each day, in `steady` none. Every fleet is drawn 20 times with a
feature that does nothing, and 20 times with one of +2.5%. Correlations, shares and boundaries are those of the fleet's
first draw, without the feature. Monte-Carlo errors are those over fleets.

`signed` (numbers at and below zero), `proportion` (yes and no, one in five yes) and `ratio` (numerators beside their
exposures) are `moving` fleets as `outside_metrics` makes numbers of them, with a feature of +3, +20 and +2.5%. They go
the way of `wsc monitor --metric-kind`: as values near 1, of which the arms are compared as if nothing had changed.

`p75` is the third quartile of all rows of a `moving` fleet whose noise has a long tail, with a feature of +15%. Arms
have quartiles and densities of their own at every look, so every draw and look is linearised anew, as `wsc monitor`
does; of each fleet there are `QUANTILE_DRAWS` draws.

Criteria, stated before the first run:
1. With no change, at most 5% of the draws ever rule zero out by any rule (the 95% interval of the rate reaches 5%).
2. With the change, `obrien-fleming` rules zero out in at least 0.90 times as many draws as the one look at the end,
   `pocock` in at least 0.80 times as many.
3. Half of the detections at any time come before look 19.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from analysis.effects.estimand import Estimand
from analysis.effects.information import Redrawn, machine_levels, shares
from analysis.effects.linearisation import Linearised
from analysis.effects.methods import METHODS
from analysis.effects.sequential import Boundary
from analysis.effects.spending import SHAPES, boundaries
from analysis.effects.study import potential
from scenarios.effects.monitor import LookedAt
from tests.helpers.outside_fleets import Condition, fleet
from tests.helpers.outside_metrics import Metric, common, numbers

LOOKS, DRAWS, QUANTILE_DRAWS, PAST = 28, 20, 6, 3
RULES = ("at the end alone", "alone at each look", "at any time", "obrien-fleming", "pocock", "shares of looks")
"""The last: at any time, with a share of the looks planned in place of the information, and no first look."""
_FLEET = {"machines": 60, "treated": 20, "before": PAST, "study": LOOKS}
CONDITIONS = {
    "moving": Metric(Condition(**_FLEET, change=0.025, churn=0.05), "rate", "relative"),
    "steady": Metric(Condition(**_FLEET, change=0.025), "rate", "relative"),
    "signed": Metric(Condition(**_FLEET, change=0.03, churn=0.05), "mean", "absolute"),
    "proportion": Metric(Condition(**_FLEET, change=0.2, churn=0.05), "proportion", "absolute", 0.2),
    "ratio": Metric(Condition(**_FLEET, change=0.025, churn=0.05, exposures_vary=True), "ratio", "relative"),
    "p75": Metric(Condition(**_FLEET, change=0.15, churn=0.05, noise="lognormal"), "p75", "absolute"),
}


def first_looks(condition, seed, number):
    """Return the look at which each rule first rules zero out, 29 for never: without and with a change, (2, D, R)."""
    rng = np.random.default_rng([seed, number])
    made = fleet(condition.fleet, rng)
    if Estimand.of(condition.metric_kind).metric_kind == "quantile":
        return _first_looks_at_a_quantile(condition, made, rng)
    assigned = np.array([made.assigned(rng) for _ in range(DRAWS)])
    table, jobs = _near_one(condition, made, rng), pd.DataFrame(made.jobs)
    target = Estimand.of(condition.metric_kind, condition.change).target
    method = next(method for method in METHODS if method.name == "adjusted")
    redrawn, answers = Redrawn(method), []
    for look in range(1, LOOKS + 1):
        rows = table[table["period"] < PAST + look]
        off, on = rows.assign(value=rows["off"], treated=0), rows.assign(value=rows["on"], treated=1)
        study = (rows["period"] >= PAST).to_numpy()
        nothing = potential(off[~study], off[study], off[study].assign(treated=1), jobs, target=target)
        redrawn.look(nothing, condition.fleet.treated)
        chosen = assigned[:, nothing.machines.to_numpy()]
        changed = potential(off[~study], off[study], on[study], jobs, target=target)
        answers.append([np.array(method.many(cells, chosen)) for cells in (nothing, changed)])
    change, error, freedom = np.moveaxis(np.array(answers), 2, 0)
    distance = np.moveaxis(np.abs(change) / error, 0, -1)
    freedom = np.moveaxis(freedom, 0, -1)
    first = table.assign(value=table["off"], treated=(table["period"] >= PAST) & assigned[0][table["machine"]])
    first = first.assign(weight=first["exposure"]) if target == "sums" else first
    share = shares(machine_levels(first), PAST, list(range(1, LOOKS + 1)), LOOKS)
    return np.stack([_first(distance, rule) for rule in _rules(share, redrawn.correlation(), freedom)], axis=-1)


def _first_looks_at_a_quantile(condition, made, rng):
    """Return the same of a quantile: every draw and look is linearised anew."""
    table, jobs = pd.DataFrame(made.rows), pd.DataFrame(made.jobs)
    estimand = Estimand.of(condition.metric_kind, condition.change)
    method = next(method for method in METHODS if method.name == "adjusted")
    distance, freedom = np.zeros((2, 2, QUANTILE_DRAWS, LOOKS))
    redrawn, share = Redrawn(method), None
    for draw in range(QUANTILE_DRAWS):
        treated = (table["period"] >= PAST) & made.assigned(rng)[table["machine"]]
        for arm in (0, 1):
            value = table["on"] if arm else table["off"]
            observed = table.assign(value=np.where(treated, value, table["off"]), treated=treated.astype(int))
            looked_at = LookedAt(jobs, method, estimand, 0.95)
            for look in range(1, LOOKS + 1):
                rows = observed[observed["period"] < PAST + look]
                at = looked_at.look(look, PAST + look - 1, rows)
                distance[arm, draw, look - 1] = abs(at.effect.change) / at.effect.error
                freedom[arm, draw, look - 1] = at.effect.freedom
                if draw == 0 and arm == 0:
                    redrawn.look(at.without_feature(rows, jobs, estimand.target), condition.fleet.treated)
            if share is None:
                levels = machine_levels(Linearised.of(observed, jobs, estimand).near_one()[0])
                share = shares(levels, PAST, list(range(1, LOOKS + 1)), LOOKS)
    rules = _rules(share, redrawn.correlation(), freedom)
    return np.stack([_first(distance, rule) for rule in rules], axis=-1)


def _near_one(condition, made, rng):
    """Return the rows of a fleet; what is no rate has values near 1, a standard deviation being 1e-4."""
    table = pd.DataFrame(made.rows)
    if condition.metric_kind == "rate":
        return table
    rows = {name: np.asarray(values) for name, values in made.rows.items()}
    arms = [numbers(condition, rows, arm, np.random.default_rng(rng.integers(2**32))) for arm in common(rng)]
    if condition.metric_kind == "ratio":
        arms = [arm / rows["exposure"] for arm in arms]
    level, spread = arms[0].mean(), arms[0].std()
    off, on = (1.0 + 1e-4 * (arm - level) / spread for arm in arms)
    return table.assign(off=off, on=on)


def _rules(share, correlation, freedom):
    """Return the distances at which each rule rules zero out, (2, D, looks) each, in the order of `RULES`."""
    alone = t.ppf(0.975, freedom)
    at_end = np.where(np.arange(LOOKS) == LOOKS - 1, alone, np.inf)
    start = freedom[..., 0].mean()
    spent = [t.isf(norm.sf(boundaries(of(share, 0.05), correlation)), freedom) for of in SHAPES.values()]
    looks = Boundary(start).multiplier(np.arange(1, LOOKS + 1) / LOOKS, freedom)
    return at_end, alone, Boundary(start, start=share[0]).multiplier(share, freedom), *spent, looks


def _first(distance, critical):
    out = distance > critical
    return np.where(out.any(axis=-1), out.argmax(axis=-1) + 1, LOOKS + 1)


def counted(name, fleets, seed, out):
    """Return the first looks of all fleets, (fleets, 2, draws, rules); each fleet is kept in the folder."""
    out.mkdir(parents=True, exist_ok=True)
    parts = []
    for number in range(fleets):
        file = out / f"{name}-{seed}-{number:04d}.json"
        if not file.is_file():
            found = first_looks(CONDITIONS[name], seed, number)
            file.with_suffix(".new").write_text(json.dumps(found.tolist()), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8"))))
    return np.array(parts)


def summary(name, found):
    """Return a row for each rule: false and true verdicts with their Monte-Carlo errors, and when they come."""
    rows = []
    for place, rule in enumerate(RULES):
        first = found[..., place]
        false, true = ((first[:, arm] <= LOOKS).mean(axis=1) for arm in (0, 1))
        detected = first[:, 1][first[:, 1] <= LOOKS]
        rows.append(
            {
                "condition": name,
                "rule": rule,
                "false": false.mean(),
                "false_error": false.std(ddof=1) / np.sqrt(len(false)),
                "power": true.mean(),
                "power_error": true.std(ddof=1) / np.sqrt(len(true)),
                "of_the_end": true.mean() / (found[:, 1, :, 0] <= LOOKS).mean(),
                "by_look_7": (first[:, 1] <= 7).mean(),
                "median_look": np.median(detected) if len(detected) else np.nan,
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--out", type=Path, default=Path("runs/outside-monitor"))
    asked = parser.parse_args()
    for name in asked.conditions.split(","):
        found = counted(name, asked.fleets, asked.seed, asked.out)
        print(pd.DataFrame(summary(name, found)).round(4).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
