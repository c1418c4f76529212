"""Stratified selection: against all allocations, all samples of a tiny fleet, and textbook sums in loops."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from analysis.effects.cells import cells
from analysis.effects.estimators.stratified import Stratified, allocate, draw, strata
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from tests.helpers.effect_studies import small_study as example


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(4, 9), st.integers(0, 30)), min_size=1, max_size=4), st.floats(0, 1), st.booleans()
)
def test_no_allocation_has_less_variance(drawn, share, two):
    machines, deviation = (np.array(each) for each in zip(*drawn, strict=True))
    low = 2 if two else 1
    least, most = low * len(machines), int((machines - low).sum())
    total = least + round(share * (most - least))
    take = allocate(machines, deviation.astype(float), total, low)
    assert take.sum() == total
    assert ((take >= low) & (take <= machines - low)).all()

    def variance(each):
        return sum((size * spread) ** 2 / n for size, spread, n in zip(machines, deviation, each, strict=True))

    choices = product(*(range(low, size - low + 1) for size in machines))
    assert variance(take) <= min(variance(each) for each in choices if sum(each) == total) * (1 + 1e-12)


def test_a_third_machine_may_be_worth_more_than_a_second_elsewhere():
    """81 (10² + 18² / 3) is below 81 (10² / 2 + 18² / 2)."""
    assert allocate(np.array([9, 9]), np.array([10.0, 18.0]), 4, low=1).tolist() == [1, 3]


def test_an_allocation_that_cannot_be_is_refused():
    with pytest.raises(NotEnoughDataError, match="4 machines in every stratum are needed, 3 given"):
        allocate(np.array([3, 9]), np.ones(2), 4)
    for total in (3, 11):
        with pytest.raises(NotEnoughDataError, match="at most 9"):
            allocate(np.array([4, 9]), np.ones(2), total)
    with pytest.raises(ValueError, match="finite and 0 or more"):
        allocate(np.array([9]), np.array([-1.0]), 4)


@pytest.mark.statistical
def test_every_choice_within_strata_is_equally_likely():
    """30 choices, exact binomial bounds; false-alarm rate at most 1 in 1,000."""
    stratum, rng = np.array([1, 0, 1, 0, 1, 1, 0, 1]), np.random.default_rng(1)
    chosen = np.array([draw(stratum, np.array([1, 2]), rng) for _ in range(3_000)])
    _, times = np.unique(chosen @ (1 << np.arange(8)), return_counts=True)
    low, high = binom.interval(1 - 1e-3 / 30, 3_000, 1 / 30)
    assert len(times) == 30
    assert low <= times.min() <= times.max() <= high


def test_more_than_a_stratum_has_cannot_be_drawn():
    with pytest.raises(NotEnoughDataError, match="3 machines in stratum 1 are needed, 2 given"):
        draw(np.array([0, 1, 1]), np.array([1, 3]), np.random.default_rng(1))


def made(rows):
    jobs = rows.groupby("job", as_index=False).agg(quota=("quota", "sum"))
    return cells(rows, jobs.assign(scale=2.0))


def test_over_all_samples_the_answer_is_right_and_the_error_no_smaller_than_the_spread():
    """Without the feature all machines are alike, so that nothing but the choice of treated machines matters."""
    rng = np.random.default_rng(2)
    stratum = np.array([0] * 5 + [1] * 6)
    on = np.r_[rng.normal(2.2, 0.1, 5), rng.normal(2.6, 0.4, 6)]
    fleet = made(pd.DataFrame({"job": "a", "machine": np.arange(11), "quota": 1.0, "off": 2.0, "on": on}))
    samples = []
    for first, second in product(combinations(range(5), 2), combinations(range(5, 11), 3)):
        samples.append(np.isin(np.arange(11), first + second))
    for combined in (False, True):
        found = Stratified(stratum, combined).many(fleet, np.array(samples))
        assert found.change.mean() == pytest.approx(on.mean() / 2.0 - 1)
        one, other = (np.var(on[stratum == h], ddof=1) / 4 for h in (0, 1))
        expected = (5 / 11) ** 2 * one / 2 + (6 / 11) ** 2 * other / 3
        finite = (5 / 11) ** 2 * one / 2 * 3 / 5 + (6 / 11) ** 2 * other / 3 * 3 / 6
        assert np.mean(found.error**2) == pytest.approx(expected)
        assert np.var(found.change) == pytest.approx(finite)


def unlike(seed, machines=24):
    """Rows of an unlike fleet: jobs of several instances on some machines, each with own performance and effect."""
    rng = np.random.default_rng(seed)
    size = 5 * machines
    rows = pd.DataFrame({"job": rng.integers(4, size=size), "machine": rng.integers(machines, size=size)})
    rows = pd.concat([rows, pd.DataFrame({"job": 0, "machine": np.arange(machines)})], ignore_index=True)
    rows["quota"] = 1.0 + rows["job"]
    rows["off"] = 2.0 + 0.2 * rng.normal(size=len(rows))
    return rows.assign(on=rows["off"] * (1.1 + 0.05 * rows["job"]) + 0.1 * rng.normal(size=len(rows)))


def by_hand(rows, stratum, treated, combined):
    """Change and error from sums over the rows of each machine, in loops (Cochran 1977, sections 6.10 and 6.11)."""
    share = rows.groupby("job")["quota"].sum() / rows["quota"].sum()
    instances = rows.groupby("job").size()
    value, quota = np.zeros((len(stratum), 2)), np.zeros(len(stratum))
    for row in rows.to_dict("records"):
        each = share[row["job"]] / instances[row["job"]]
        value[row["machine"]] += each * row["off"], each * row["on"]
        quota[row["machine"]] += each
    level, variance = [], []
    for arm in (0, 1):
        groups = [(stratum == h, (stratum == h) & (treated == arm)) for h in range(stratum.max() + 1)]
        if combined:
            expand = [whole.sum() / part.sum() for whole, part in groups]
        else:
            expand = [quota[whole].sum() / quota[part].sum() for whole, part in groups]
        above = sum(e * value[part, arm].sum() for e, (_, part) in zip(expand, groups, strict=True))
        below = sum(e * quota[part].sum() for e, (_, part) in zip(expand, groups, strict=True))
        total = 0.0
        for e, (_, part) in zip(expand, groups, strict=True):
            ratio = above / below if combined else value[part, arm].sum() / quota[part].sum()
            total += e**2 * part.sum() * np.var(value[part, arm] - ratio * quota[part], ddof=1)
        level.append(above / below)
        variance.append(total / below**2)
    change = level[1] / level[0] - 1
    return change, np.sqrt(variance[1] / level[0] ** 2 + (1 + change) ** 2 * variance[0] / level[0] ** 2)


@pytest.mark.parametrize("combined", [False, True])
def test_answers_are_the_sums_of_the_textbook(combined):
    rows, rng = unlike(3), np.random.default_rng(4)
    stratum = np.arange(24) % 3
    treated = np.array([draw(stratum, np.array([2, 3, 5]), rng) for _ in range(5)])
    found = Stratified(stratum, combined).many(made(rows), treated)
    for r, chosen in enumerate(treated):
        change, error = by_hand(rows, stratum, chosen, combined)
        assert found.change[r] == pytest.approx(change)
        assert found.error[r] == pytest.approx(error)
        assert 1 <= found.freedom[r] <= 24 - 6


def test_what_covariates_explain_is_no_error():
    rng = np.random.default_rng(5)
    rows = unlike(6, 60).assign(x0=lambda table: rng.normal(size=len(table)))
    rows["off"], rows["on"] = 2.0 * (1.0 + 0.3 * rows["x0"]), 2.0 * (1.2 + 0.3 * rows["x0"])
    stratum = np.arange(60) % 2
    treated = draw(stratum, np.array([8, 12]), rng)[None, :]
    found = Stratified(stratum).many(made(rows), treated)
    without = Stratified(stratum).many(made(rows.drop(columns="x0")), treated)
    assert found.error[0] < 0.1 * without.error[0]
    assert abs(found.change[0] - 0.2) < 0.1 * without.error[0]


@pytest.mark.statistical
def test_intervals_hold_the_truth_where_strata_are_drawn_unequally():
    """600 draws at a coverage of 95%: below 92% has a probability of 0.1%. Taken for a random sample, it is biased."""
    rows, rng = unlike(7, 240), np.random.default_rng(8)
    stratum = (np.arange(240) < 60).astype(int)
    rows["on"] *= np.where(stratum[rows["machine"]] == 1, 1.3, 1.0)
    fleet = made(rows)
    share = rows.groupby("job")["quota"].sum() / rows["quota"].sum()
    truth = (share * rows.groupby("job")["on"].mean()).sum() / (share * rows.groupby("job")["off"].mean()).sum() - 1
    treated = np.array([draw(stratum, np.array([20, 30]), rng) for _ in range(600)])
    for combined in (False, True):
        found = Stratified(stratum, combined).many(fleet, treated)
        inside = abs(found.change - truth) <= found.margin()
        assert inside.mean() >= 0.92
        assert abs(found.change.mean() - truth) < 0.1 * found.error.mean()
    naive = Stratified(np.zeros(240, dtype=int)).many(fleet, treated)
    assert (abs(naive.change - truth) <= naive.margin()).mean() < 0.5


def test_strata_with_too_few_machines_are_named():
    study = example()
    with pytest.raises(NotEnoughDataError, match="2 machines with the feature in stratum 7 are needed, 1 given"):
        Stratified(np.r_[7, 7, np.zeros(10, dtype=int)]).estimate(study)
    with pytest.raises(ValueError, match="each of 12 machines needs a stratum, 3 are given"):
        Stratified(np.zeros(3, dtype=int)).estimate(study)
    assert np.isnan(Stratified(np.r_[7, 7, np.zeros(10, dtype=int)]).many(study.cells, study.treated[None, :]).error[0])


def test_the_effect_of_one_study_is_that_of_its_draw():
    study = example()
    assert isinstance(study, Study)
    method = Stratified(np.arange(12) // 6)
    found, many = method.estimate(study), method.many(study.cells, study.treated[None, :])
    assert (found.change, found.error) == (many.change[0], many.error[0])
    assert (found.machines, found.controls, found.estimator) == (6, 6, "stratified")


def test_strata_are_platforms_and_top_jobs_while_large_enough():
    rows = [{"machine": m, "platform": "x" if m < 8 else "y", "job": "all", "weight": 9.0} for m in range(12)]
    rows += [{"machine": m, "platform": "x", "job": "big", "weight": 5.0} for m in (0, 1, 2)]
    rows += [{"machine": m, "platform": "x", "job": "less", "weight": 1.0} for m in (0, 3, 4)]
    table = pd.DataFrame(rows).assign(value=1.0)
    found = strata(table, jobs=3, smallest=2).set_index("machine")["label"]
    assert found[8] == found[11] == "y +all -big -less"
    assert found[1] == found[2] == "x +all +big -less"
    assert found[3] == found[4] == "x +all -big +less"
    assert found[5] == "x +all -big -less"
    assert found[0] != found[1]
    assert strata(table, jobs=0)["label"].tolist() == ["x"] * 8 + ["y"] * 4


def test_deviations_are_those_of_the_quota_weighted_performance():
    rows = unlike(9)[["job", "machine", "quota", "off"]].rename(columns={"quota": "weight", "off": "value"})
    rows["platform"] = rows["machine"] % 2
    relative = rows["value"] / rows["job"].map(rows.groupby("job")["value"].mean()) - 1
    part = (relative * rows["weight"]).groupby(rows["machine"]).sum() / rows.groupby("machine")["weight"].sum().mean()
    found = strata(rows).set_index("machine")["deviation"]
    assert found[0] == pytest.approx(np.std(part[::2], ddof=1))
    assert found[1] == pytest.approx(np.std(part[1::2], ddof=1))
