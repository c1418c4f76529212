"""How often intervals hold the truth of fleets of another making: counted draw by draw, kept, and resumed.

Usage: python -m tests.helpers.outside_coverage [--draws 4000] [--conditions base,half] [--out runs/outside]

Each draw is a new fleet under a seed of its own; its rows go the way of `wsc effect`, from a table of observations to
an interval. Draws are kept in parts of a hundred in the folder, so that interrupted work goes on where it stopped;
remove the folder after the estimators have changed. What has no answer counts as a miss.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.methods import METHODS
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from tests.helpers.outside_fleets import CONDITIONS, draw

ESTIMATORS = ("adjusted", "own-past", "unadjusted", "shrunken", "cuped", "ratio", "concurrent", "published")
PART = 100
"""Draws that are kept in one file."""


def answers(condition, seed, number, estimators=ESTIMATORS):
    """Return change, half-width and truth of each estimator in one draw, (E, 3); NaN where there is no answer."""
    experiment = draw(condition, np.random.default_rng([seed, number]))
    table = pd.DataFrame(experiment.rows)
    study = Study.of(table, pd.DataFrame(experiment.jobs))
    known = {method.name: method for method in METHODS}
    rows = []
    for name in estimators:
        try:
            effect = _method(known[name], condition).estimate(study)
            rows.append((effect.change, effect.margin, experiment.truth[condition.target]))
        except NotEnoughDataError:
            rows.append((np.nan, np.nan, experiment.truth[condition.target]))
    return np.array(rows)


def _method(method, condition):
    if condition.cluster == "rack" and isinstance(method, Adjusted):
        return Adjusted(method.name, pooling=method.pooling, covariates=method.covariates, cluster="rack")
    return method


def counted(name, draws, out, seed=1, estimators=ESTIMATORS):
    """Return the answers of all draws of a condition, (draws, E, 3); parts of them may be in the folder."""
    parts = []
    for first in range(0, draws, PART):
        file = out / f"{name}-{seed}-{first:05d}.json"
        if not file.is_file():
            block = [answers(CONDITIONS[name], seed, number, estimators) for number in range(first, first + PART)]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(json.dumps(np.array(block).tolist()), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64))
    return np.concatenate(parts)[:draws]


def summary(name, found, estimators=ESTIMATORS):
    """Return a row for each estimator: coverage with its Monte-Carlo error, bias, root mean squared error, width."""
    rows = []
    for number, estimator in enumerate(estimators):
        change, margin, truth = found[:, number].T
        error, answered = change - truth, np.isfinite(change) & np.isfinite(margin)
        if not answered.any():
            continue
        covered = float((np.abs(error) <= margin).mean())
        rows.append(
            {
                "condition": name,
                "estimator": estimator,
                "draws": len(change),
                "answered": float(answered.mean()),
                "coverage": covered,
                "coverage_error": float(np.sqrt(covered * (1.0 - covered) / len(change))),
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
    parser.add_argument("--out", type=Path, default=Path("runs/outside"))
    parser.add_argument("--table", type=Path, help="CSV that the figures are written into")
    asked = parser.parse_args()
    rows = []
    for name in asked.conditions.split(","):
        found = summary(name, counted(name, asked.draws, asked.out, asked.seed))
        rows += found
        print(pd.DataFrame(found).round(4).to_string(index=False, header=name == "base"), flush=True)
    if asked.table:
        pd.DataFrame(rows).round(6).to_csv(asked.table, index=False)


if __name__ == "__main__":
    main()
