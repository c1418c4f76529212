import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import Baseline, WSMeter, paper_estimators
from analysis.wsmeter.summaries import Current

EVERY = [*paper_estimators(), Baseline(current_is="sample"), WSMeter(current_is="sample")]
each = pytest.mark.parametrize("estimator", EVERY, ids=repr)
EXACT = ["change", "low", "high", "margin"]


def fleet(seed, machines=30, jobs=5, instances=6, gain=1.0):
    """Return a measurement table of heterogeneous jobs and machines, with weights, and the jobs' quotas."""
    rng = np.random.default_rng(seed)
    machine = np.repeat(np.arange(machines), instances)
    job = rng.choice(jobs, len(machine))
    value = gain * np.exp(rng.normal(0.1 * job, 0.2))
    weight = rng.uniform(0.5, 2.0, len(machine))
    table = pd.DataFrame({"job": job, "machine": machine, "weight": weight, "value": value})
    return table, pd.DataFrame({"job": np.arange(jobs), "quota": rng.uniform(1, 9, jobs), "instances": 1000})


def rows_by(table, column):
    groups = {}
    for row in table.to_dict("records"):
        groups.setdefault(row[column], []).append(row)
    return groups


def mean_and_variance(values):
    """Return the mean of a sample and its variance, by the textbook."""
    mean = sum(values) / len(values)
    return mean, sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)


def loop_baseline(current, new):
    """Return the machine-level means and their variances, re-derived with plain loops."""
    sides = []
    for table in (current, new):
        machines = []
        for rows in rows_by(table, "machine").values():
            machines.append(sum(r["weight"] * r["value"] for r in rows) / sum(r["weight"] for r in rows))
        sides.append(mean_and_variance(machines))
    return sides


def loop_wsmeter(current, new, min_instances, jobs, sampled):
    """Return the weighted sums over the covered jobs, their variances and the coverage, re-derived with plain loops."""
    old, late = rows_by(current, "job"), rows_by(new, "job")
    quota = None if jobs is None else {row["job"]: row["quota"] for row in jobs.to_dict("records")}
    weights = {}
    for job, rows in late.items():
        if len(rows) >= min_instances and len(old.get(job, [])) >= (min_instances if sampled else 1):
            weights[job] = sum(r["weight"] for r in old[job]) if quota is None else quota[job]
    total = sum(weights.values())
    sides = []
    for side in (old, late):
        mean = variance = 0.0
        for job, weight in weights.items():
            mean_i, variance_i = mean_and_variance([r["value"] for r in side[job]])
            mean += weight / total * mean_i
            variance += (weight / total) ** 2 * variance_i
        sides.append((mean, variance))
    return sides, None if quota is None else total / sum(quota.values())


def interval(sides, half_width_se, sampled):
    (before, var_before), (after, var_after) = sides
    ratio = after / before
    margin = half_width_se * math.sqrt((var_after + (ratio**2 * var_before if sampled else 0)) / before**2)
    return [ratio - 1, ratio - 1 - margin, ratio - 1 + margin, margin]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 4, 9]), st.booleans(), st.booleans())
def test_wsmeter_equals_a_re_derivation_with_plain_loops(seed, min_instances, sampled, with_jobs):
    current, jobs = fleet(seed)
    new, _ = fleet(seed + 1, machines=8)
    jobs = jobs if with_jobs else None
    estimator = WSMeter(
        t=1.7, min_instances=min_instances, widening=1.3, current_is="sample" if sampled else "population"
    )
    sides, coverage = loop_wsmeter(current, new, min_instances, jobs, sampled)
    made = estimator.estimate(current, new, jobs)
    assert [getattr(made, name) for name in EXACT] == pytest.approx(interval(sides, 1.7 * 1.3, sampled))
    assert (made.current, made.new) == pytest.approx((sides[0][0], sides[1][0]))
    assert made.quota_coverage == pytest.approx(math.nan if coverage is None else coverage, nan_ok=True)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_the_baseline_equals_a_re_derivation_with_plain_loops(seed, sampled):
    current, _ = fleet(seed)
    new, _ = fleet(seed + 1, machines=8)
    made = Baseline(t=1.7, current_is="sample" if sampled else "population").estimate(current, new)
    expected = interval(loop_baseline(current, new), 1.7, sampled)
    assert [getattr(made, name) for name in EXACT] == pytest.approx(expected)
    assert (made.machines, made.jobs) == (8, new["job"].nunique())
    assert math.isnan(made.quota_coverage)


@each
def test_the_same_table_twice_shows_no_change(estimator):
    current, _ = fleet(1)
    made = estimator.estimate(current, current)
    assert made.change == pytest.approx(0, abs=1e-12)
    assert made.low < 0 < made.high


@each
def test_changing_the_unit_changes_no_relative_number(estimator):
    (current, jobs), (new, _) = fleet(1), fleet(2, machines=10)
    one = estimator.estimate(current, new, jobs)
    thousand = estimator.estimate(
        current.assign(value=1000 * current["value"]), new.assign(value=1000 * new["value"]), jobs
    )
    assert [getattr(thousand, name) for name in EXACT] == pytest.approx([getattr(one, name) for name in EXACT])
    assert (thousand.current, thousand.new) == pytest.approx((1000 * one.current, 1000 * one.new))


@each
def test_the_order_of_rows_and_the_names_of_jobs_and_machines_do_not_matter(estimator):
    (current, jobs), (new, _) = fleet(1), fleet(2, machines=10)
    one = estimator.estimate(current, new, jobs)
    names = dict(enumerate(["web", "ads", "db", "log", "ml"]))

    def other(table):
        shuffled = table.sample(frac=1, random_state=3).reset_index(drop=True)
        return shuffled.assign(job=shuffled["job"].map(names))

    current, new = (other(table).assign(machine=lambda t: "m" + t["machine"].astype(str)) for table in (current, new))
    two = estimator.estimate(current, new, other(jobs))
    assert [getattr(two, name) for name in EXACT] == pytest.approx([getattr(one, name) for name in EXACT])
    assert two.quota_coverage == pytest.approx(one.quota_coverage)


@each
def test_a_summary_stands_for_its_table(estimator):
    (current, jobs), (new, _) = fleet(1), fleet(2, machines=10)
    assert estimator.estimate(Current.of(current), Current.of(new), jobs) == estimator.estimate(current, new, jobs)


def test_widening_widens_the_margin_alone():
    (current, jobs), (new, _) = fleet(1), fleet(2, machines=10)
    plain, wide = (WSMeter(widening=widening).estimate(current, new, jobs) for widening in (1.0, 1.2))
    assert (wide.estimator, plain.estimator) == ("wsmeter-widened", "wsmeter")
    assert (wide.change, wide.margin) == pytest.approx((plain.change, 1.2 * plain.margin))


def normal_jobs(rng, jobs, instances, gain=1.0):
    """Return independent normal measurements with equal weights: the population in which the nominal level holds."""
    job = np.repeat(np.arange(jobs), instances)
    value = gain * rng.normal(1 + 0.1 * job, 0.1)
    return pd.DataFrame({"job": job, "machine": np.arange(len(job)), "weight": 1.0, "value": value})


@pytest.mark.statistical
@pytest.mark.parametrize(("jobs", "instances"), [(1, 4), (3, 4), (20, 20)])
def test_wsmeter_covers_as_often_as_student_says_where_jobs_are_normal_and_independent(jobs, instances):
    """False-alarm rate: 1e-4 each, by the binomial law.

    Equal weights, spreads and sizes make the pooled variance exactly chi-square with jobs × (instances - 1) degrees of
    freedom, so the coverage at t = 2 is known exactly: 86%, 92% and 95%.
    """
    rng, gain, repeats = np.random.default_rng(11), 1.05, 600
    means = pd.DataFrame({"job": np.arange(jobs), "machine": 0, "weight": 1.0, "value": 1 + 0.1 * np.arange(jobs)})
    current, estimator = Current.of(means), WSMeter()
    made = [estimator.estimate(current, normal_jobs(rng, jobs, instances, gain)) for _ in range(repeats)]
    hits = sum(one.low <= gain - 1 <= one.high for one in made)
    law = 1 - 2 * stats.t.sf(2, jobs * (instances - 1))
    assert stats.binomtest(hits, repeats, law).pvalue > 1e-4


@pytest.mark.statistical
def test_the_baseline_covers_as_often_as_student_says_where_machines_are_normal():
    """False-alarm rate: 1e-4, by the binomial law; Student with 9 degrees of freedom covers 92% at t = 2."""
    rng, repeats = np.random.default_rng(12), 600
    current = Current.of(pd.DataFrame({"job": 0, "machine": [0, 1], "weight": 1.0, "value": 1.0}))
    made = [Baseline().estimate(current, normal_jobs(rng, 1, 10)) for _ in range(repeats)]
    hits = sum(one.low <= 0 <= one.high for one in made)
    assert stats.binomtest(hits, repeats, 1 - 2 * stats.t.sf(2, 9)).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("estimator", "jobs"), [(Baseline(t=1, current_is="sample"), 1), (WSMeter(t=1, current_is="sample"), 2)]
)
def test_a_sampled_current_adds_the_variance_that_a_simulation_shows(estimator, jobs):
    """False-alarm rate: below 1e-4 each.

    The variance of the change over 400 repeats has a relative standard error of √(2 / 400) = 7.1%; the bound is
    four of them. Without the variance of the current sample, the prediction would be a third of it.
    """
    rng = np.random.default_rng(13)
    made = [estimator.estimate(normal_jobs(rng, jobs, 15), normal_jobs(rng, jobs, 30, gain=1.1)) for _ in range(400)]
    predicted = np.mean([one.margin**2 for one in made])
    assert predicted == pytest.approx(np.var([one.change for one in made], ddof=1), rel=0.28)


def test_the_needed_instances_would_do():
    current = pd.DataFrame({"job": ["a"] * 9, "machine": range(9), "weight": 1.0, "value": range(1, 10)})
    with pytest.raises(NotEnoughDataError) as caught:
        WSMeter().estimate(current, current.head(3))
    said = "4 instances of one job of the current table in the new one are needed, 3 given"
    assert (str(caught.value), caught.value.needed, caught.value.have) == (said, 4, 3)
    assert WSMeter().estimate(current, current.head(caught.value.needed)).jobs == 1


def test_a_sampled_current_needs_as_many_instances():
    table = pd.DataFrame({"job": ["a"] * 9, "machine": range(9), "weight": 1.0, "value": range(1, 10)})
    with pytest.raises(NotEnoughDataError) as caught:
        WSMeter(current_is="sample").estimate(table.head(2), table)
    said = "4 instances of one job in both tables are needed, 2 given"
    assert (str(caught.value), caught.value.needed, caught.value.have) == (said, 4, 2)
    assert WSMeter(current_is="sample").estimate(table.head(4), table).jobs == 1


def test_tables_without_a_common_job_are_refused():
    table = pd.DataFrame({"job": ["a"] * 5, "machine": range(5), "weight": 1.0, "value": 1.0})
    with pytest.raises(NotEnoughDataError, match=r"in the new one are needed, 0 given$"):
        WSMeter().estimate(table, table.assign(job="b"))


def test_a_job_that_the_jobs_table_lacks_is_not_covered():
    (current, jobs), (new, _) = fleet(1), fleet(2)
    made = WSMeter().estimate(current, new, jobs[jobs["job"] != 3])
    assert (made.jobs, made.quota_coverage) == (4, pytest.approx(1.0))


def test_one_machine_is_no_sample_of_machines():
    table, _ = fleet(1)
    with pytest.raises(NotEnoughDataError, match=r"^2 machines are needed, 1 given$"):
        Baseline().estimate(table, table[table["machine"] == 0])
    with pytest.raises(NotEnoughDataError, match=r"^2 machines are needed, 1 given$"):
        Baseline(current_is="sample").estimate(table[table["machine"] == 0], table)
    assert Baseline().estimate(table[table["machine"] == 0], table).machines == 30


@each
@pytest.mark.parametrize(
    ("column", "bad", "said"),
    [
        ("value", math.nan, "value must be a finite number, got nan in row 3"),
        ("value", math.inf, "value must be a finite number, got inf in row 3"),
        ("weight", 0.0, "weight must be a finite number above 0, got 0.0 in row 3"),
        ("weight", -1.0, "weight must be a finite number above 0, got -1.0 in row 3"),
        ("job", None, "job must not be missing, it is in row 3"),
        ("machine", None, "machine must not be missing, it is in row 3"),
    ],
)
def test_a_table_that_cannot_be_is_refused(estimator, column, bad, said):
    table, _ = fleet(1)
    broken = table.astype({column: object if bad is None else float})
    broken.loc[3, column] = bad
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        estimator.estimate(table, broken)


@each
def test_an_empty_table_is_too_little(estimator):
    table, _ = fleet(1)
    for current, new in ((table, table.head(0)), (table.head(0), table)):
        with pytest.raises(NotEnoughDataError, match=r"needed, 0 given$|at least 1 is needed$"):
            estimator.estimate(current, new)


@each
def test_a_current_metric_of_zero_is_refused(estimator):
    table, _ = fleet(1)
    with pytest.raises(ValueError, match=r"^the current metric must be above 0 for a relative change, got 0\.0$"):
        estimator.estimate(table.assign(value=0.0), table)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: WSMeter(min_instances=1),
            "min_instances: should be at least 2: a spread needs two instances, got '1'",
        ),
        (lambda: WSMeter(t=0), "t must be a finite number above 0, got 0"),
        (lambda: WSMeter(widening=-1), "widening must be a finite number above 0, got -1"),
        (lambda: Baseline(t=math.nan), "t must be a finite number above 0, got nan"),
        (lambda: Baseline().plan(fleet(1)[0], None, margin=0), "margin must be a finite number above 0, got 0"),
    ],
)
def test_parameters_out_of_bounds_are_refused(made, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        made()


@pytest.mark.parametrize(
    ("std", "margin", "machines"), [(0.15, 0.06, 25), (0.15, 0.03, 100), (0.13, 0.026, 100), (0.13, 0.006, 1878)]
)
def test_the_baselines_plan_is_the_papers_arithmetic(std, margin, machines):
    table = pd.DataFrame({"job": 0, "machine": [1, 2], "weight": 1.0, "value": [1 - std, 1 + std]})
    assert Baseline().plan(table, None, margin)["machines"].item() == machines


def test_wsmeters_plan_meets_the_margin_and_counts_the_widening():
    table, jobs = fleet(4, machines=400)
    weight = jobs["quota"] / jobs["quota"].sum()
    statistics = table.groupby("job")["value"].agg(["mean", lambda v: v.std(ddof=0)]).to_numpy()
    totals = []
    for widening in (1.0, 1.2):
        plan = WSMeter(widening=widening).plan(table, jobs, margin=0.02)
        variance = np.sum((weight * statistics[:, 1]) ** 2 / plan["instances"].to_numpy())
        assert 2 * widening * math.sqrt(variance) / (weight @ statistics[:, 0]) <= 0.02
        totals.append(plan["instances"].sum())
    assert totals[0] < totals[1]


def test_a_plan_without_a_job_of_enough_instances_is_refused():
    table = pd.DataFrame({"job": ["a"] * 3, "machine": range(3), "weight": 1.0, "value": 1.0})
    with pytest.raises(NotEnoughDataError, match=r"^4 instances of one job in the fleet are needed, 3 given$"):
        WSMeter().plan(table, None, margin=0.01)


@each
def test_a_change_that_is_no_finite_number_is_refused(estimator):
    new = pd.DataFrame({"job": "a", "machine": range(8), "weight": 1.0, "value": [1e150, 2e150] * 4})
    with pytest.raises(ValueError, match=r"^the change from 1e-160 to 1\.5e\+150 is too large to compute$"):
        estimator.estimate(new.assign(value=1e-160), new)
