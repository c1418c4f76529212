"""The sample-size plan, against Table 2 of the paper, brute force and a general-purpose optimiser."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from analysis.wsmeter.plan import MarginOutOfReachError, plan, rounded

TABLE_2 = pd.DataFrame(
    {"job": ["compute", "network"], "weight": 1.0, "mean": 100.0, "std": [7.4, 17.5], "instances": 1500, "cost": 1.0}
)

tables = st.lists(
    st.tuples(
        st.integers(0, 5),  # weight
        st.integers(1, 40),  # mean
        st.integers(0, 30),  # std
        st.integers(1, 9),  # instances
        st.integers(0, 7),  # cost
    ),
    min_size=1,
    max_size=4,
).filter(lambda jobs: any(job[0] for job in jobs))


def frame(jobs, cost_scale=1.0):
    columns = dict(zip(("weight", "mean", "std", "instances", "cost"), map(list, zip(*jobs, strict=True)), strict=True))
    table = pd.DataFrame({"job": range(len(jobs))} | columns)
    return table.assign(cost=table["cost"] * cost_scale)


def many(jobs, seed, cost=None):
    """Return a table with heavy tails: few jobs hold most of the weight."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0, 2, jobs)
    instances = np.maximum(1, (weight / weight.sum() * 30 * jobs * rng.uniform(0.5, 2, jobs)).astype(int))
    mean = rng.uniform(0.5, 2, jobs)
    columns = {"weight": weight, "mean": mean, "std": mean * rng.uniform(0.05, 0.3, jobs), "instances": instances}
    return pd.DataFrame({"job": range(jobs)} | columns | {"cost": weight / instances if cost is None else cost})


def by_brute_force(jobs, margin, t, min_instances):
    """Return the least cost over all whole numbers of instances; None if none meets the margin."""
    weight, mean, std, instances, cost = zip(*jobs, strict=True)
    allowed = (margin * sum(w * m for w, m in zip(weight, mean, strict=True)) / t) ** 2
    ranges = [range(min(min_instances, most), most + 1) for most in instances]
    costs = [
        sum(n * c for n, c in zip(choice, cost, strict=True))
        for choice in product(*ranges)
        if sum(Fraction((w * s) ** 2, n) for w, s, n in zip(weight, std, choice, strict=True)) <= allowed
    ]
    return min(costs, default=None)


def achieved(table, instances, t=2.0):
    weight = table["weight"] / table["weight"].sum()
    variance = np.sum((weight * table["std"]) ** 2 / np.asarray(instances))
    return t * math.sqrt(variance) / np.sum(weight * table["mean"])


def test_table_2_costs_69_one_less_than_the_papers_rounding_up():
    found, paper = plan(TABLE_2, 0.03), rounded(TABLE_2, 0.03)
    assert found.cost == 69
    assert found.allocation["instances"].tolist() in ([20, 49], [21, 48])
    assert found.allocation["continuous"].tolist() == pytest.approx([20.473, 48.417], abs=5e-4)
    assert found.optimal
    assert paper.allocation["instances"].tolist() == [21, 49]
    assert not paper.optimal


def test_table_2_with_the_normal_quantile_costs_67():
    assert plan(TABLE_2, 0.03, t=1.96).cost == 67


@settings(deadline=None, max_examples=100)
@given(tables, st.integers(1, 60), st.integers(1, 5))
def test_small_plans_cost_as_little_as_brute_force_says(jobs, percent, min_instances):
    margin, t = Fraction(percent, 100), 2
    if (least := by_brute_force(jobs, margin, t, min_instances)) is None:
        with pytest.raises(MarginOutOfReachError):
            plan(frame(jobs), percent / 100, t, min_instances)
        return
    found = plan(frame(jobs), percent / 100, t, min_instances)
    assert found.optimal
    assert found.cost == least
    assert found.margin <= percent / 100 * (1 + 1e-12)


@settings(deadline=None, max_examples=60)
@given(tables, st.integers(1, 60), st.floats(0.01, 100))
def test_real_costs_are_as_good_as_brute_force_to_a_billionth(jobs, percent, scale):
    costs = [cost * scale * (1 + 0.1 * math.sqrt(place)) for place, (*_, cost) in enumerate(jobs)]
    jobs = [(*job, cost) for (*job, _), cost in zip(jobs, costs, strict=True)]
    if (least := by_brute_force(jobs, Fraction(percent, 100), 2, 4)) is not None:
        assert plan(frame(jobs), percent / 100).cost == pytest.approx(least, rel=2e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_continuous_optimum_is_what_a_general_optimiser_finds(seed):
    table = many(6, seed).assign(instances=400)
    margin = 0.5 * achieved(table, np.full(6, 4))
    low, high, cost = 4.0, table["instances"].to_numpy(float), table["cost"].to_numpy()
    found = minimize(
        lambda n: np.sum(cost * n) / cost.sum(),
        np.full(6, 100.0),
        method="SLSQP",
        bounds=[(low, most) for most in high],
        constraints={"type": "ineq", "fun": lambda n: 1 - (achieved(table, n) / margin) ** 2},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    made = plan(table, margin)
    assert found.success
    assert made.continuous_cost == pytest.approx(found.fun * cost.sum(), rel=1e-6)
    assert made.allocation["continuous"].to_numpy() == pytest.approx(found.x, rel=1e-2)


@pytest.mark.parametrize("margin", [0.01, 0.0012])
def test_five_thousand_jobs_are_planned_to_within_a_thousandth_of_the_continuous_bound(margin):
    table = many(5000, seed=1)
    found = plan(table, margin)
    assert found.optimal
    assert achieved(table, found.allocation["instances"]) == pytest.approx(found.margin, rel=1e-9)
    assert found.margin <= margin
    assert found.continuous_cost <= found.cost <= found.continuous_cost * 1.001


def test_no_job_can_give_up_an_instance_of_an_optimal_plan():
    table = many(200, seed=2)
    instances = plan(table, 0.01).allocation["instances"].to_numpy()
    for job in np.flatnonzero(instances > np.minimum(4, table["instances"])):
        assert achieved(table, instances - (np.arange(200) == job)) > 0.01


@pytest.mark.parametrize("cost", [1.0, 0.1, 3.0])
def test_thousands_of_equal_jobs_differ_by_one_instance_at_most(cost):
    table = pd.DataFrame({"job": range(4000), "weight": 1.0, "mean": 1.0, "std": 0.5, "instances": 100, "cost": cost})
    found = plan(table, 0.0073)
    needed = 4000 * 0.25 / 4000 / (0.0073 / 2) ** 2  # all the same n = std² / (jobs · bound), then per job
    assert found.optimal
    assert np.ptp(found.allocation["instances"]) <= 1
    assert needed <= found.allocation["instances"].sum() <= needed * 1.01


def test_rounding_up_meets_the_margin_and_is_never_cheaper():
    table = many(200, seed=3)
    found, up = plan(table, 0.01), rounded(table, 0.01)
    assert up.margin <= 0.01
    assert found.cost <= up.cost <= found.cost + table["cost"].sum()


def test_a_margin_met_exactly_counts_as_met():
    table = pd.DataFrame({"job": ["a"], "weight": 1, "mean": 100, "std": 30, "instances": 9, "cost": 1})
    found = plan(table, 0.3, t=2, min_instances=1)
    assert found.allocation["instances"].tolist() == [4]
    assert found.margin == 0.3


def test_the_scale_of_weights_changes_nothing():
    found = plan(TABLE_2, 0.03)
    again = plan(TABLE_2.assign(weight=123.0), 0.03)
    assert again.cost == found.cost
    assert again.allocation["continuous"].tolist() == pytest.approx(found.allocation["continuous"].tolist())


def test_jobs_with_fewer_instances_than_the_minimum_are_observed_whole():
    table = TABLE_2.assign(instances=[3, 1500], std=[1.0, 17.5])
    found = plan(table, 0.03)
    assert found.allocation["instances"][0] == 3
    assert found.jobs_below_minimum == 1


def test_jobs_without_spread_or_weight_get_the_minimum_and_free_ones_everything():
    table = pd.DataFrame(
        {
            "job": ["steady", "weightless", "free", "normal"],
            "weight": [1.0, 0.0, 1.0, 1.0],
            "mean": 100.0,
            "std": [0.0, 10.0, 10.0, 10.0],
            "instances": 50,
            "cost": [1.0, 1.0, 0.0, 1.0],
        }
    )
    found = plan(table, 0.02)
    assert found.allocation["instances"].tolist()[:3] == [4, 4, 50]
    assert found.allocation["continuous"].tolist()[:3] == [4, 4, 50]
    assert found.optimal


def test_an_unreachable_margin_says_the_best_one_which_can_then_be_planned():
    with pytest.raises(MarginOutOfReachError, match=r"margin 0\.1% is out of reach: observing all .* 0\.49") as caught:
        plan(TABLE_2, 0.001)
    assert caught.value.best == pytest.approx(achieved(TABLE_2, [1500, 1500]))
    again = plan(TABLE_2, caught.value.best * (1 + 1e-12))
    assert again.allocation["instances"].tolist() == [1500, 1500]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE_2.drop(columns="std"), {}, "the table lacks std"),
        (TABLE_2.head(0), {}, "the table has no job"),
        (TABLE_2.assign(job="a"), {}, "job a is there twice"),
        (TABLE_2.assign(std=[1.0, -2.0]), {}, "std must be a number of at least 0, got -2.0 for job network"),
        (TABLE_2.assign(mean=[1.0, math.nan]), {}, "mean must be a number, got nan for job network"),
        (TABLE_2.assign(instances=2.5), {}, "instances must be a whole number of at least 1, got 2.5 for job compute"),
        (TABLE_2.assign(weight=0), {}, "the weights must add up to more than 0, got 0"),
        (TABLE_2.assign(mean=-1), {}, "the weighted mean must be above 0, got -1"),
        (TABLE_2, {"margin": 0.0}, "margin must be a finite number above 0, got 0.0"),
        (TABLE_2, {"t": math.inf}, "t must be a finite number above 0, got inf"),
        (TABLE_2, {"min_instances": 0}, "min_instances must be at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_named(table, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        plan(table, **({"margin": 0.03} | options))
