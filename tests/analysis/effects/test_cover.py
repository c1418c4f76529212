"""Random machines that hold enough of each job: against all bundles of a deal."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from analysis.effects import cover
from analysis.effects.cover import (
    ShortageError,
    covering,
    fewest_machines,
    holdings,
    partition,
)


def fleet(seed, machines=60, jobs=12):
    rng = np.random.default_rng(seed)
    instances = rng.poisson(rng.uniform(0.05, 0.8, jobs), (machines, jobs))
    instances[rng.permutation(machines)[:3]] += 1
    return instances


def test_all_jobs_that_are_too_few_are_named():
    instances = np.array([[1, 0, 2], [0, 0, 2]])
    expected = (
        "job of column 0: 2 instances in the fleet are needed, there are 1\n"
        "job of column 1: 2 instances in the fleet are needed, there are 0"
    )
    with pytest.raises(ShortageError) as fault:
        fewest_machines(instances, np.full(3, 2))
    assert str(fault.value) == expected
    with pytest.raises(ShortageError, match="column 0: 2 instances in 2 bundles"):
        covering(instances[:, [0]], np.ones(1, dtype=int), 1, np.random.default_rng(1))
    with pytest.raises(ShortageError, match="between 1 and 2 machines can be drawn, 3 are asked for"):
        covering(instances[:, [2]], np.ones(1, dtype=int), 3, np.random.default_rng(1))


@pytest.mark.parametrize("seed", range(6))
def test_every_bundle_holds_enough_and_every_machine_is_in_one(seed):
    instances = fleet(seed, 203, 20)
    need = np.random.default_rng(seed).integers(0, 3, 20)
    most = len(instances) // fewest_machines(instances, need)
    for bundles in (1, max(1, most // 2), max(1, int(0.8 * most))):
        dealt = partition(instances, need, bundles, np.random.default_rng(seed))
        size = np.bincount(dealt, minlength=bundles)
        assert len(size) == bundles
        assert size.max() - size.min() <= 1
        for bundle in range(bundles):
            assert (instances[dealt == bundle].sum(axis=0) >= need).all()


def test_nothing_can_be_drawn_with_fewer_machines_than_the_scarcest_job_needs():
    instances, need = np.zeros((30, 1), dtype=int), np.array([2])
    instances[:7] = 1
    assert fewest_machines(instances, need) == 10
    assert covering(instances, need, 10, np.random.default_rng(1)).sum() == 10
    with pytest.raises(ShortageError):
        covering(instances, need, 7, np.random.default_rng(1))


def test_a_deal_that_cannot_come_out_is_refused(monkeypatch):
    """Two bundles of two machines; the one machine that holds both scarce jobs' second instances is in one of them."""
    monkeypatch.setattr(cover, "ATTEMPTS", 3)
    instances = np.array([[2, 2], [0, 0], [0, 0], [0, 0]])
    with pytest.raises(ShortageError, match="4 machines could not be dealt into 2 bundles"):
        partition(instances, np.ones(2, dtype=int), 2, np.random.default_rng(1))


@pytest.mark.statistical
def test_every_machine_is_drawn_as_often_as_every_other():
    """Exact binomial bounds for 60 machines together; false-alarm rate at most 1 in 1,000."""
    instances, rng = fleet(3), np.random.default_rng(4)
    need = np.ones(12, dtype=int)
    chosen = np.array([covering(instances, need, 12, rng) for _ in range(3_000)])
    assert (chosen @ instances >= 1).all()
    low, high = binom.interval(1 - 1e-3 / 60, 3_000, 1 / 5)
    times = chosen.sum(axis=0)
    assert ((low <= times) & (times <= high)).all()


def test_holdings_count_instances():
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"job": rng.choice(list("abcd"), 50), "machine": rng.integers(9, size=50), "weight": 1.0})
    rows["weight"] = rows["job"].map({"a": 1.0, "b": 50.0, "c": 9.0, "d": 2.0})
    made = holdings(rows, 3)
    assert made.columns.tolist() == ["machine", "b", "c", "d"]
    for machine, *counts in made.to_numpy().tolist():
        there = rows.loc[rows["machine"] == machine, "job"].tolist()
        assert counts == [there.count(job) for job in "bcd"]
