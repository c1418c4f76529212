"""Counts of machines against the plan, by binomial laws and by draws that are made here."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chi2_contingency

from analysis.audit.about import About
from analysis.audit.case import examine
from analysis.audit.guards import GUARDS
from analysis.audit.sample_ratio import _unlikely


def table(ever, platform="p", speed=1.0, periods=2):
    """Rows of one job on machines in two periods; those of `ever` have the feature in the second."""
    machine, period = np.divmod(np.arange(periods * len(ever)), periods)
    rng = np.random.default_rng(5)
    value = (np.ones(len(ever)) * speed)[machine] * np.exp(rng.normal(0, 0.01, len(machine)))
    rows = {"period": period, "job": "a", "machine": machine, "weight": 1.0, "value": value}
    rows["platform"] = np.broadcast_to(platform, len(ever))[machine]
    return pd.DataFrame(rows | {"treated": (np.asarray(ever)[machine] & (period == periods - 1)).astype(int)})


def found(rows, planned):
    """What the guard says under a plan."""
    about = About(selection="random", planned_share=planned)
    return examine(rows, about=about, guards={"sample_ratio": GUARDS["sample_ratio"]}).findings


def test_without_a_past_all_machines_are_counted_by_the_binomial_law():
    ever = np.arange(100) < 33
    assert not found(table(ever | (np.arange(100) == 99), periods=1), 0.5)[1:]
    ((finding),) = found(table(ever, periods=1), 0.5)
    assert finding.evidence["chance"] == pytest.approx(binomtest(33, 100, 0.5).pvalue)
    assert "33 of 100 units have the feature in all machines; 50% were to have it" in finding.what


def test_slow_machines_that_were_lost_are_missed_where_counts_alone_say_little():
    """Of 300 machines 150 were drawn, and 28 of the slowest of these are lost: by counts alone a chance of 9%."""
    rng = np.random.default_rng(8)
    speed, ever = np.exp(rng.normal(0, 0.05, 300)), rng.permutation(300) < 150
    lost = np.flatnonzero(ever)[np.argsort(speed[ever])[:28]]
    there = np.setdiff1d(np.arange(300), lost)
    assert binomtest(122, 272, 0.5).pvalue > 0.08
    ((finding),) = found(table(ever[there], speed=speed[there]), 0.5)
    assert "of the fifth with the lowest values before the study" in finding.what
    assert not found(table(ever, speed=speed), 0.5)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_chance_is_the_share_of_draws_as_planned_that_are_as_far_off(share):
    """20,000 draws of 60 machines, with the weights written out; and as many whose chance is below 1%: 0.2 points."""
    rng = np.random.default_rng(9)
    rank = (np.arange(60) + 0.5) / 60
    weights = np.array([np.ones(60), (1 - rank) ** 3, (1 - rank) ** 9, rank**3, rank**9])
    weights /= np.sqrt((weights**2).sum(axis=1) * share * (1 - share))[:, None]
    drawn = np.abs(((rng.random((20_000, 60)) < share) - share) @ weights.T).max(axis=1)
    ever = rng.random(60) < share
    ever[:12] = True
    size = np.abs((ever - share) @ weights.T).max()
    assert _unlikely(ever, np.full(60, share), np.arange(60.0)) == (
        -1,
        pytest.approx((drawn >= size - 1e-9).mean(), abs=0.002),
    )


def test_counts_of_many_machines_are_judged_by_the_normal_law():
    ever = np.arange(3000) % 2 == 0
    ever[:300:6] = False
    side, chance = _unlikely(ever, np.full(3000, 0.5), np.arange(3000.0))
    assert side == -1
    assert chance < 0.01


def test_two_platforms_off_in_opposite_ways_are_seen_together():
    """65 and 35 of 150 each where 50 were planned: each by itself has a chance of 1%, Pearson's of both of 0.02%.

    All are counted too, and platforms by themselves: the chance that is told is four times that.
    """
    ever = np.concatenate([np.arange(150) < 65, np.arange(150) < 35])
    platform = np.repeat(["new", "old"], 150)
    assert binomtest(65, 150, 1 / 3).pvalue > 0.008
    ((finding),) = found(table(ever, platform), {"new": 1 / 3, "old": 1 / 3})
    pearson = chi2_contingency([[65, 35], [85, 115]], correction=False)
    assert finding.evidence["chi_square"] == pytest.approx(pearson.statistic, rel=1e-6)
    assert finding.evidence["chance"] == pytest.approx(4 * pearson.pvalue, rel=1e-6)
    assert "+15 units with the feature on new, -15 on old" in finding.what
    assert not found(table(np.tile(np.arange(150) < 50, 2), platform), {"new": 1 / 3, "old": 1 / 3})


@pytest.mark.statistical
def test_as_planned_it_alarms_as_rarely_as_it_says():
    """200 draws of 100 machines at a chance of 5%: more than 23 alarms have one of 0.01%."""
    rng = np.random.default_rng(10)
    alarms = sum(_unlikely(rng.random(100) < 0.3, np.full(100, 0.3), np.arange(100.0))[1] <= 0.05 for _ in range(200))
    assert alarms <= 23


@pytest.mark.parametrize("alike", [0.3, 1.0])
def test_machines_that_were_alike_before_have_no_order(alike):
    """Of 200 machines in order of their names the first half has the feature, and the fastest are equally fast."""
    ever, share = np.arange(200) < 100, np.full(200, 0.5)
    past = np.where(np.arange(200) % 10 < 10 * alike, 1.0, np.random.default_rng(3).uniform(0.0, 1.0, 200))
    assert _unlikely(ever, share, past)[1] > 0.05


def test_machines_without_a_past_count_too():
    """Of 60 machines with a past 30 have the feature, and of 75 new ones 70: half was planned."""
    ever = np.concatenate([np.arange(60) % 2 == 0, np.arange(75) < 70])
    rows = table(ever, periods=2)
    rows = rows[(rows["machine"] < 60) | (rows["period"] == 1)]
    ((finding),) = found(rows, 0.5)
    assert "100 of 135 units have the feature in all machines; 50% were to have it" in finding.what
