"""The published estimator against the one that is run on two tables, and ratios against gbstats and a slow twin."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from analysis.effects import classic
from analysis.effects.classic import Published, Ratio
from analysis.effects.observations import checked
from analysis.effects.stays import stays
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import WSMeter
from tests.helpers.effect_studies import observed

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SEED = st.integers(0, 10**6)


def tables(seed):
    """A random experiment, with some instances gone and some jobs too rare, and the fleet's jobs."""
    rng = np.random.default_rng(seed)
    table = observed(rng, machines=24, jobs=5)
    gone = (rng.random(len(table)) < 0.2) | ((table["job"] == 4) & (table["machine"] > 5))
    jobs = pd.DataFrame({"job": range(6), "quota": rng.uniform(1, 9, 6)})
    return table[~gone | (table["machine"] < 2)].reset_index(drop=True), jobs


@settings(max_examples=6)
@given(SEED)
def test_published_is_wsmeter_against_yesterdays_fleet(seed):
    table, jobs = tables(seed)
    made = Published().estimate(Study.of(table, jobs))
    past, new = table[table["period"] == 0], table[table["treated"]]
    known = jobs[jobs["job"] < 5]
    expected = WSMeter(norm.isf(0.025), min_instances=4).estimate(past, new, known)
    assert made.change == pytest.approx(expected.change, abs=1e-12)
    assert made.margin == pytest.approx(expected.margin, abs=1e-12)
    wide = Published(widening=1.2).estimate(Study.of(table, jobs))
    assert wide.margin == pytest.approx(1.2 * expected.margin, abs=1e-12)


@settings(max_examples=6)
@given(SEED)
def test_the_concurrent_one_takes_the_machines_without_the_feature(seed):
    table, jobs = tables(seed)
    made = Published(baseline="concurrent").estimate(Study.of(table, jobs))
    now = table[table["period"] == 1]
    expected = WSMeter(norm.isf(0.025)).estimate(now[~now["treated"]], now[now["treated"]], jobs)
    assert made.change == pytest.approx(expected.change, abs=1e-12)
    assert made.margin == pytest.approx(expected.margin, abs=1e-12)


@pytest.fixture(scope="module")
def example():
    """The observations of the documents: three days before, three days in which 20 of 60 machines have the feature."""
    days = [pd.read_csv(EXAMPLES / f"fleet_{name}.csv") for name in ("before", "after")]
    return pd.concat(days, ignore_index=True), pd.read_csv(EXAMPLES / "fleet_jobs.csv")


@pytest.mark.parametrize("widening", [1.0, 1.2])
def test_of_the_same_stays_it_says_what_wsmeter_says(example, widening):
    """They said +9.91% and +10.45%: the one took the jobs' course off, and let stays count by their length."""
    table, jobs = example
    first = table.loc[table["treated"] == 1, "period"].min()
    before, after = (stays(checked(table[part]).rows) for part in (table["period"] < first, table["period"] >= first))
    expected = WSMeter(2.0, widening=widening).estimate(before, after[after["treated"]], jobs)
    two_errors = 2 * norm.cdf(2.0) - 1
    published = Published(widening=widening).estimate(Study.of(table, jobs), two_errors)
    assert published.change == pytest.approx(expected.change, abs=1e-12)
    assert published.margin == pytest.approx(expected.margin, abs=1e-12)
    assert (published.jobs, published.quota_coverage) == (expected.jobs, pytest.approx(expected.quota_coverage))
    assert round(published.change, 4) == 0.1045


@pytest.mark.parametrize("baseline", ["before", "concurrent"])
def test_many_draws_say_what_wsmeter_says_of_each(example, baseline):
    table, jobs = example
    study, one = Study.of(table, jobs), Published(baseline=baseline)
    draw = one.many(study.cells, study.treated[None, :])
    estimate = one.estimate(study)
    assert draw.change[0] == pytest.approx(estimate.change, abs=1e-12)
    assert draw.margin()[0] == pytest.approx(estimate.margin, rel=1e-9)


def test_its_margin_is_that_of_the_confidence_asked_for(example):
    study = Study.of(*example)
    narrow, wide = (Published().estimate(study, confidence) for confidence in (0.8, 0.99))
    assert narrow.error == pytest.approx(wide.error)
    for made, sure in ((narrow, 0.8), (wide, 0.99)):
        assert made.margin == pytest.approx(norm.isf((1 - sure) / 2) * made.error)


def test_no_covered_job_is_no_answer():
    table, jobs = tables(1)
    with pytest.raises(NotEnoughDataError):
        Published(min_instances=100).estimate(Study.of(table, jobs))


def machine_sums(table, jobs):
    """Each machine's arm, and its sums of weight times value and of weight, now and before.

    Now a job's quota is spread over its instances, before each has its own.
    """
    spread = jobs.set_index("job")["quota"] / table[table["period"] == 1].groupby("job").size()
    by = np.where(table["period"] == 1, table["job"].map(spread), table["weight"])
    parts = table.assign(m=by * table["value"], d=by)
    now, past = (parts[parts["period"] == day].groupby("machine")[["m", "d"]].sum() for day in (1, 0))
    treated = table[table["period"] == 1].groupby("machine")["treated"].any()
    return now.join(past.add_suffix("_past")).fillna(0.0).assign(treated=treated)


def by_gradient(arms, theta):
    """Relative change and its variance by the delta method, with numeric derivatives of all eight means."""
    names = ["m", "d", "m_past", "d_past"]
    means = np.concatenate([arm[names].mean() for arm in arms])
    spread = np.zeros((8, 8))
    for k, arm in enumerate(arms):
        spread[4 * k : 4 * k + 4, 4 * k : 4 * k + 4] = arm[names].cov() / len(arm)

    def change(b):
        off, on = b[:4], b[4:]
        return (on[0] / on[1] - off[0] / off[1] - theta * (on[2] / on[3] - off[2] / off[3])) / (off[0] / off[1])

    steps = 1e-6 * np.abs(means)
    gradient = np.array([(change(means + e) - change(means - e)) / (2 * e.sum()) for e in np.diag(steps)])
    return change(means), np.sqrt(gradient @ spread @ gradient)


def linear(arm, theta):
    """Adjusted, linearised machines of an arm, about 0."""
    parts = [
        (arm["m" + when] - arm["m" + when].sum() / arm["d" + when].sum() * arm["d" + when]) / arm["d" + when].mean()
        for when in ("", "_past")
    ]
    return parts[0] - theta * parts[1]


@settings(max_examples=6)
@given(SEED, st.booleans())
def test_a_ratio_is_the_delta_method_of_its_sums_over_machines(seed, cuped):
    table, jobs = tables(seed)
    made = Ratio(cuped=cuped).estimate(Study.of(table, jobs))
    sums = machine_sums(table, jobs)
    arms = [sums[~sums["treated"]], sums[sums["treated"]]]
    theta = 0.0
    if cuped:
        pairs = [(linear(arm, 0.0), linear(arm, 0.0) - linear(arm, 1.0)) for arm in arms]
        theta = sum(np.cov(now, past)[0, 1] for now, past in pairs) / sum(past.var() for _, past in pairs)
    change, error = by_gradient(arms, theta)
    assert made.change == pytest.approx(change, rel=1e-9)
    assert made.error == pytest.approx(error, rel=1e-6)
    parts = [linear(arm, theta).var() / len(arm) for arm in arms]
    expected = sum(parts) ** 2 / sum(part**2 / (len(arm) - 1) for part, arm in zip(parts, arms, strict=True))
    assert made.freedom == pytest.approx(expected, rel=1e-9)


def gbstats():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("gbstats")
        from gbstats.frequentist import tests
        from gbstats.models import statistics
    return statistics, tests


def mean_of(statistics, value):
    return statistics.SampleMeanStatistic(n=len(value), sum=value.sum(), sum_squares=(value**2).sum())


def t_test(tests, stats):
    if hasattr(tests, "TTest") and hasattr(tests.TTest, "point_estimate"):
        found = tests.TwoSidedTTest(*stats)
        return found.point_estimate, np.sqrt(found.variance), found.dof
    from gbstats.models.tests import EffectMoments

    found = EffectMoments(*stats).compute_result()
    return found.point_estimate, found.standard_error, found.degrees_of_freedom


def test_without_the_past_it_is_the_ratio_of_gbstats():
    statistics, tests = gbstats()
    table, jobs = tables(3)
    sums = machine_sums(table, jobs)
    stats = [
        statistics.RatioStatistic(
            n=len(arm),
            m_statistic=mean_of(statistics, arm["m"]),
            d_statistic=mean_of(statistics, arm["d"]),
            m_d_sum_of_products=(arm["m"] * arm["d"]).sum(),
        )
        for arm in (sums[~sums["treated"]], sums[sums["treated"]])
    ]
    made = Ratio(cuped=False).estimate(Study.of(table, jobs))
    assert (made.change, made.error, made.freedom) == pytest.approx(t_test(tests, stats), rel=1e-9)


def test_with_the_past_it_is_the_regression_adjusted_ratio_of_gbstats():
    statistics, tests = gbstats()
    if not hasattr(statistics, "RegressionAdjustedRatioStatistic"):
        pytest.skip("this gbstats has no regression-adjusted ratio")
    table, jobs = tables(3)
    sums = machine_sums(table, jobs)
    stats = [
        statistics.RegressionAdjustedRatioStatistic(
            n=len(arm),
            m_statistic_post=mean_of(statistics, arm["m"]),
            d_statistic_post=mean_of(statistics, arm["d"]),
            m_statistic_pre=mean_of(statistics, arm["m_past"]),
            d_statistic_pre=mean_of(statistics, arm["d_past"]),
            m_post_m_pre_sum_of_products=(arm["m"] * arm["m_past"]).sum(),
            d_post_d_pre_sum_of_products=(arm["d"] * arm["d_past"]).sum(),
            m_pre_d_pre_sum_of_products=(arm["m_past"] * arm["d_past"]).sum(),
            m_post_d_post_sum_of_products=(arm["m"] * arm["d"]).sum(),
            m_post_d_pre_sum_of_products=(arm["m"] * arm["d_past"]).sum(),
            m_pre_d_post_sum_of_products=(arm["m_past"] * arm["d"]).sum(),
            theta=None,
        )
        for arm in (sums[~sums["treated"]], sums[sums["treated"]])
    ]
    made = Ratio().estimate(Study.of(table, jobs))
    assert (made.change, made.error, made.freedom) == pytest.approx(t_test(tests, stats), rel=1e-9)


def test_a_ratio_without_a_past_leaves_the_past_alone():
    table, jobs = tables(1)
    study = Study.of(table[table["period"] == 1], jobs)
    assert Ratio().estimate(study).change == Ratio(cuped=False).estimate(study).change
    new = table[(table["period"] == 1) | ~table["machine"].isin(table.loc[table["treated"], "machine"])]
    study = Study.of(new, jobs)
    assert Ratio().estimate(study).change == Ratio(cuped=False).estimate(study).change


@pytest.mark.parametrize("baseline", ["before", "concurrent"])
def test_jobs_and_quota_are_those_that_the_published_estimator_covers(baseline):
    """Of jobs on fewer than four treated instances it says nothing: they were counted as if it did."""
    rng = np.random.default_rng(8)
    count = np.array([1, 6, 12, 30, 60])
    job = np.repeat(np.arange(5), count)
    now = pd.DataFrame(
        {"job": job, "machine": rng.integers(40, size=len(job)), "weight": 1.0, "instance": range(len(job))}
    )
    tables = []
    for period in (0, 1):
        treated = (now["machine"] % 2 == 0) & (period == 1)
        tables.append(now.assign(period=period, value=1 + 0.1 * rng.normal(size=len(job)), treated=treated.astype(int)))
    on = tables[1].groupby("job")["treated"].sum()
    covers = (on >= 4) & ((on < count) | (baseline == "before"))
    made = Published(baseline=baseline).estimate(Study.of(pd.concat(tables, ignore_index=True)))
    assert 0 < covers.sum() < 5
    assert made.jobs == covers.sum()
    assert made.quota_coverage == pytest.approx(count[covers].sum() / count.sum())


def test_moments_are_numpys_covariances_of_linearised_machines():
    rng = np.random.default_rng(2)
    values, treated = rng.uniform(1.0, 2.0, (30, 5)), rng.random((4, 30)) < 0.4
    out = np.empty((4, 2, 6))
    classic.moments(values, treated, out)
    for draw, made in zip(treated, out, strict=True):
        for arm, chosen in enumerate((~draw, draw)):
            above, below = values[chosen, arm], values[chosen, 2]
            before, below_before = values[chosen, 3], values[chosen, 4]
            now = (above - above.sum() / below.sum() * below) / below.mean()
            past = (before - before.sum() / below_before.sum() * below_before) / below_before.mean()
            spread = np.cov(now, past)
            expected = [chosen.sum(), above.sum() / below.sum(), before.sum() / below_before.sum()]
            assert made[arm] == pytest.approx([*expected, spread[0, 0], spread[1, 1], spread[0, 1]], rel=1e-12)


def test_machines_without_a_past_have_none():
    values = np.array([[1.0, 1.0, 1.0, 0.0, 0.0], [2.0, 2.0, 1.0, 0.0, 0.0], [3.0, 3.0, 1.0, 5.0, 5.0]])
    out = np.empty((1, 2, 6))
    classic.moments(values, np.array([[True, True, False]]), out)
    assert out[0, 1, [classic.PAST, classic.BEFORE, classic.BOTH]].tolist() == [0.0, 0.0, 0.0]
    assert out[0, 1, classic.RATIO] == pytest.approx(1.5)


def test_a_job_without_a_control_instance_is_not_covered():
    """Job 1 is on treated machines only: its values decide nothing, however odd."""
    cells = classic.JobCells(
        start=np.array([0, 2, 4, 5, 6]),
        job=np.array([0, 1, 0, 1, 0, 0]),
        instances=np.array([2, 2, 2, 2, 2, 2]),
        sums=np.array([[2.2, 2.5, 2.0]] * 6) * np.array([[1.0], [9.0], [1.0], [9.0], [1.0], [1.0]]),
        weight=np.array([1.0, 5.0]),
        level=np.ones(2),
    )
    out = np.empty((2, 2))
    classic.covered_jobs(cells, np.array([[True, True, False, False], [False, False, False, False]]), 4, True, out)
    assert out[0, 0] == pytest.approx(0.1)
    assert np.isnan(out[1]).all()
