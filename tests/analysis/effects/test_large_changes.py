"""How often intervals hold the truth where the feature changes much: on fleets made here, by numpy alone.

A change is relative to the controls' level, so its error grows with the change: controls count (1 + change) times.
"""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells
from analysis.effects.cube import selections
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.balanced import Balanced, imbalance
from analysis.effects.methods import METHODS, together
from models.randomness import stream

JUDGED = [method for method in METHODS if isinstance(method, Adjusted)]
FLEETS, DRAWS = 30, 50


def fleet(rng, change, machines=100, jobs=20):
    """Instances with both outcomes: jobs' levels and effects, machines' speed and load, shards with a known past."""
    machine, job = np.nonzero(rng.random((machines, jobs)) < 0.6)
    shard, speed, load = 0.08 * rng.normal(size=len(job)), 0.06 * rng.normal(size=machines), rng.normal(size=machines)
    level = np.exp(rng.normal(size=jobs))[job]
    off = level * np.exp(shard + (speed + 0.06 * load)[machine] + 0.05 * rng.normal(size=len(job)))
    on = off * (1 + change * (1 + 0.1 * rng.normal(size=jobs)[job])) * np.exp(0.03 * rng.normal(size=len(job)))
    rows = pd.DataFrame({"job": job, "machine": machine, "quota": 1.0, "off": off, "on": on})
    rows = rows.assign(x0=shard + 0.03 * rng.normal(size=len(job)), x1=speed[machine])
    mean = rows.groupby("job")[["off", "on"]].mean()
    quota = 1.0 / (1 + rng.permutation(jobs))
    whole = pd.DataFrame({"job": np.arange(jobs), "quota": quota, "scale": mean["off"].to_numpy()})
    return cells(rows, whole), load[:, None], float(quota @ mean["on"] / (quota @ mean["off"]) - 1)


def drawn(rng, machines, share, draws=DRAWS):
    """Machines that get the feature, at random: (draws, machines)."""
    return rng.random((draws, machines)).argsort(axis=1) < round(share * machines)


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9], ids="{:.0%} treated".format)
@pytest.mark.parametrize("change", [0.1, 1.0], ids="+{:.0%}".format)
def test_intervals_hold_large_changes_as_often_as_they_say(change, share):
    """1,500 draws of 30 fleets: for a true coverage of 95% or 96.5%, a miss of either bound has a chance below 0.5%."""
    rng = stream(11, f"large changes {change} {share}")
    covered = []
    for _ in range(FLEETS):
        made, _, truth = fleet(rng, change)
        answers = together(JUDGED, made, drawn(rng, len(made.machines), share))
        covered.append([np.mean(abs(answer.change - truth) <= answer.margin()) for answer in answers])
    coverage = dict(zip([method.name for method in JUDGED], np.mean(covered, axis=0).tolist(), strict=True))
    assert all(0.93 <= share <= 0.985 for share in coverage.values()), coverage


@pytest.mark.statistical
def test_balanced_machines_hold_a_doubling_as_often_as_they_say():
    """3,000 draws of 60 fleets; a coverage below 94% of a true 95.5% has a probability below 0.1%."""
    rng = stream(12, "large changes, balanced")
    covered = []
    for _ in range(60):
        made, load, truth = fleet(rng, 1.0)
        chosen = selections(load, np.full(100, 0.5), 50, rng)
        answer = Balanced(load, imbalance(load, chosen)).many(made, chosen)
        covered.append(np.mean(abs(answer.change - truth) <= answer.margin()))
    assert np.mean(covered) >= 0.94
