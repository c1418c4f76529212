"""How often intervals hold the truth of fleets of another making: counted draw by draw, kept, and resumed.

Usage: python -m tests.helpers.outside_coverage [--draws 4000] [--conditions base,half] [--whole] [--out runs/outside]

A fleet is made with both outcomes, and 25 times some of its machines get the feature at random; `--whole` makes a new
fleet for each draw, whose rows go the whole way of `wsc effect` from a table of observations, 20 times as slow. Fleets
are kept in parts of a hundred draws in the folder, so that interrupted work goes on where it stopped; remove the folder
after the estimators have changed. What has no answer counts as a miss. Monte-Carlo errors are those over fleets.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.methods import METHODS, together
from analysis.effects.study import Study, potential
from analysis.statistics import NotEnoughDataError
from tests.helpers.outside_fleets import CONDITIONS, fleet

ESTIMATORS = ("adjusted", "own-past", "unadjusted", "shrunken", "cuped", "ratio", "concurrent", "published")
FLEETS, ASSIGNMENTS = 4, 25
"""Fleets that are kept in one file, and how often the machines with the feature are drawn in each."""


def answers(condition, seed, number, estimators=ESTIMATORS):
    """Return change, half-width and truth of each estimator in the draws of one fleet, (25, E, 3)."""
    rng = np.random.default_rng([seed, number])
    made = fleet(condition, rng)
    chosen = np.array([made.assigned(rng) for _ in range(ASSIGNMENTS)])
    table = pd.DataFrame(made.rows)
    without, with_it = table.assign(value=table["off"], treated=0), table.assign(value=table["on"], treated=1)
    study = (table["period"] >= condition.before).to_numpy()
    cells = potential(without[~study], without[study], with_it[study], pd.DataFrame(made.jobs), target=condition.target)
    chosen = chosen[:, cells.machines.to_numpy()]
    said = together(_methods(condition, estimators), cells, chosen)
    truth = np.full(ASSIGNMENTS, made.truth[condition.target])
    return np.stack([np.stack([answer.change, answer.margin(), truth], axis=1) for answer in said], axis=1)


def whole(condition, seed, number, estimators=ESTIMATORS):
    """Return the same of one draw of one fleet by the way of `wsc effect`, (1, E, 3); NaN where there is no answer."""
    rng = np.random.default_rng([seed, number])
    made = fleet(condition, rng)
    rows = pd.DataFrame(made.observed(made.assigned(rng)))
    study = Study.of(rows, pd.DataFrame(made.jobs), target=condition.target)
    found = []
    for method in _methods(condition, estimators):
        try:
            effect = method.estimate(study)
            found.append((effect.change, effect.margin, made.truth[condition.target]))
        except NotEnoughDataError:
            found.append((np.nan, np.nan, made.truth[condition.target]))
    return np.array(found)[None]


def _methods(condition, names):
    known = {method.name: method for method in METHODS}
    return [_method(known[name], condition) for name in names]


def _method(method, condition):
    if condition.cluster == "rack" and isinstance(method, Adjusted):
        return Adjusted(method.name, pooling=method.pooling, covariates=method.covariates, cluster="rack")
    return method


def counted(name, draws, out, seed=1, estimators=ESTIMATORS, *, of=answers):
    """Return the answers of all draws of a condition, (fleets, draws of each, E, 3); parts may be in the folder."""
    parts, each = [], ASSIGNMENTS if of is answers else 1
    fleets = FLEETS * ASSIGNMENTS // each
    for first in range(0, draws // each, fleets):
        file = out / f"{of.__name__}-{name}-{seed}-{first:05d}.json"
        if not file.is_file():
            block = [of(CONDITIONS[name], seed, number, estimators) for number in range(first, first + fleets)]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(json.dumps(np.array(block).tolist()), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64))
    return np.concatenate(parts)


def summary(name, found, estimators=ESTIMATORS):
    """Return a row for each estimator: coverage with its Monte-Carlo error, bias, root mean squared error, width."""
    rows = []
    for number, estimator in enumerate(estimators):
        change, margin, truth = np.moveaxis(found[:, :, number], -1, 0)
        error, answered = change - truth, np.isfinite(change) & np.isfinite(margin)
        if not answered.any():
            continue
        by_fleet = (np.abs(error) <= margin).mean(axis=1)
        rows.append(
            {
                "condition": name,
                "estimator": estimator,
                "draws": change.size,
                "answered": float(answered.mean()),
                "coverage": float(by_fleet.mean()),
                "coverage_error": float(by_fleet.std(ddof=1) / np.sqrt(len(by_fleet))),
                "bias": float(error[answered].mean()),
                "rmse": float(np.sqrt((error[answered] ** 2).mean())),
                "margin": float(np.median(margin[answered])),
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--whole", action="store_true", help="one draw of each fleet, by the way of wsc effect")
    parser.add_argument("--out", type=Path, default=Path("runs/outside"))
    parser.add_argument("--table", type=Path, help="CSV that the figures are written into")
    asked = parser.parse_args()
    rows = []
    for name in asked.conditions.split(","):
        found = summary(name, counted(name, asked.draws, asked.out, asked.seed, of=whole if asked.whole else answers))
        rows += found
        print(pd.DataFrame(found).round(4).to_string(index=False, header=name == "base"), flush=True)
    if asked.table:
        pd.DataFrame(rows).round(6).to_csv(asked.table, index=False)


if __name__ == "__main__":
    main()
