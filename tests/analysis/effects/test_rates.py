"""Rates between platforms: exact where nothing is left to chance, right on fleets of another making."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.effects.conditions import conditions_of
from analysis.effects.rates import FILLED, JobSpread, PlatformLevels, PlatformRates, PlatformRows, PooledRates
from analysis.statistics import NotEnoughDataError
from tests.helpers.outside_rates import CONDITIONS, RateCondition, fleet, judged, summary


def rows_of(cells):
    """Return rows of (job, machine, platform, value), one period, weight 1."""
    return pd.DataFrame(cells, columns=["job", "machine", "platform", "value"]).assign(period=0, weight=1.0)


def compared(rows, jobs=None, conditions=None, **more):
    return PlatformRates.of(PlatformRows.of(rows, jobs, conditions), "old", **more)


def test_the_rate_of_the_fleet_is_the_mean_of_the_jobs_rates_by_quota():
    """Two jobs without spread: 2 and 3 times, three quarters and a quarter of the quota; the plain ratio is 12."""
    cells = [("a", m, "old", 1.0) for m in range(9)] + [("b", m, "old", 10.0) for m in range(9, 10)]
    cells += [("a", m, "new", 2.0) for m in range(10, 11)] + [("b", m, "new", 30.0) for m in range(11, 20)]
    answer = compared(rows_of(cells), pd.DataFrame({"job": ["a", "b"], "quota": [3.0, 1.0]}))
    row = answer.fleet.iloc[0]
    assert row["rate"] == pytest.approx(0.75 * 2 + 0.25 * 3, rel=1e-6)
    assert row["naive"] == pytest.approx((2 + 9 * 30) / 10 / ((9 + 10) / 10))
    assert answer.jobs["rate"].tolist() == pytest.approx([2.0, 3.0], rel=1e-6)


def test_levels_are_logarithms_of_arithmetic_means_and_slopes_those_of_a_poisson_regression():
    """Against the normal equations, solved by NumPy alone: scores of levels and slopes are 0 at the fit."""
    rng = np.random.default_rng(1)
    rows, jobs, _ = fleet(CONDITIONS["week"], rng)
    table = pd.DataFrame(rows).query("period == 0").reset_index(drop=True)
    coded = PlatformRows.of(table, pd.DataFrame(jobs), conditions_of(table).table)
    levels = PlatformLevels.fit(coded)
    assert levels.slopes.shape == (2, 2)
    slope = (coded.conditions * levels.slopes[coded.platform]).sum(axis=1)
    residual = coded.weight * (coded.relative() - np.exp(levels.level[coded.job, coded.platform] + slope))
    assert np.abs(residual @ coded.conditions).max() < 1e-6 * len(table)
    means = table.pivot_table(values="value", index="job", columns="platform", aggfunc="mean")
    log = np.log(means["p1"] / means["p0"]).to_numpy(copy=True)
    plain = PlatformLevels.fit(PlatformRows.of(table, pd.DataFrame(jobs)))
    contrast, variance = plain.contrast(1, 0), plain.meetings.variance.reshape(-1, 2)
    log += (variance[:, 1] - variance[:, 0]) / 2  # logarithms of means are too low by half of their variances
    np.testing.assert_allclose(contrast.log[contrast.paired], log[contrast.paired], rtol=1e-6)
    assert np.abs(variance[contrast.paired] - variance[contrast.paired].mean()).max() > 1e-4


def test_scores_are_as_large_as_errors_are_although_levels_follow_their_machines():
    """On two machines of each platform a residual is the half of what two errors differ by: its square is doubled."""
    rng = np.random.default_rng(3)
    cells = [
        (f"j{j}", 4 * j + m, "old" if m < 2 else "new", 1.0 + rng.normal(0, 0.1)) for j in range(900) for m in range(4)
    ]
    rows, load = rows_of(cells), rng.normal(size=(3600, 1))
    levels = PlatformLevels.fit(PlatformRows.of(rows, None, pd.DataFrame(load, columns=["load"])))
    apart = load.ravel() - load.reshape(-1, 2).mean(axis=1).repeat(2)
    expected = 0.1**2 * (apart**2).sum()
    assert (levels.scores[:, 0] ** 2).sum() + (levels.scores[:, 1] ** 2).sum() == pytest.approx(expected, rel=0.15)


def test_a_sandwich_of_one_job_is_that_of_two_means():
    """The squared error of one job on n machines of each platform is what Welch's test takes, as logarithms."""
    rng = np.random.default_rng(2)
    cells = [("a", m, "old" if m < 30 else "new", v) for m, v in enumerate(rng.lognormal(0.0, 0.1, 70))]
    rows = rows_of(cells)
    contrast = PlatformLevels.fit(PlatformRows.of(rows)).contrast(0, 1)
    parts = rows.groupby("platform")["value"].agg(["mean", "var", "size"])
    welch = (parts["var"] / parts["size"] / parts["mean"] ** 2).sum()
    assert contrast.square[0] == pytest.approx(welch, rel=0.05)  # two variances are drawn towards each other


def test_jobs_never_seen_on_both_are_filled_in_by_the_others_and_by_what_a_model_predicts():
    jobs = [f"j{number:02}" for number in range(20)]
    log = np.linspace(-0.3, 0.3, 20)
    cells = [(job, m, "old", 1.0 + 0.001 * m) for job in jobs for m in range(6)]
    cells += [
        (job, m, "new", np.exp(g) * (1.0 + 0.001 * m))
        for job, g in zip(jobs[:-1], log, strict=False)
        for m in range(6, 12)
    ]
    rows = rows_of(cells)
    without, told = compared(rows), compared(rows, predicted={"new": 0.5 * log})
    sources = [answer.jobs.set_index("job").loc["j19"] for answer in (without, told)]
    assert [row["source"] for row in sources] == [FILLED, FILLED]
    assert sources[0]["rate"] == pytest.approx(np.exp(log[:-1].mean()), rel=0.01)
    assert sources[1]["rate"] == pytest.approx(np.exp(log[-1]), rel=0.01)  # half of the slope is learnt
    assert sources[0]["low"] < np.exp(log[-1]) < sources[0]["high"]


def test_little_measured_is_drawn_to_the_others_by_as_much_as_it_is_uncertain():
    """Fay and Herriot by hand: trust is τ² / (τ² + v), and the mean of rates holds half of the variance."""
    rng = np.random.default_rng(3)
    rows, jobs, _ = fleet(CONDITIONS["base"], rng)
    table = pd.DataFrame(rows)
    contrast = PlatformLevels.fit(PlatformRows.of(table, pd.DataFrame(jobs))).contrast(1, 0)
    pooled = PooledRates.of(contrast)
    seen = contrast.paired
    trust = pooled.spread**2 / (pooled.spread**2 + contrast.square[seen])
    weight = 1 / (pooled.spread**2 + contrast.square[seen])
    expected = (weight * contrast.log[seen]).sum() / weight.sum()
    np.testing.assert_allclose(pooled.log[seen], expected + trust * (contrast.log[seen] - expected), rtol=1e-9)
    np.testing.assert_allclose(pooled.by_measured @ contrast.log, pooled.log, rtol=1e-9)
    np.testing.assert_allclose(pooled.rate[seen], np.exp(pooled.log[seen] + trust * contrast.square[seen] / 2))


def test_no_job_on_both_platforms_is_told():
    rows = rows_of([("a", 1, "old", 1.0), ("a", 2, "old", 1.1), ("b", 3, "new", 2.0)])
    with pytest.raises(NotEnoughDataError, match="no jobs that ran on both platforms"):
        compared(rows)
    apart = rows_of([("a", 1, "old", 1.0), ("a", 2, "new", 1.1)]).assign(period=[0, 1])
    with pytest.raises(NotEnoughDataError, match="no jobs that ran on both platforms"):
        compared(apart)


def test_jobs_that_share_their_machines_share_the_error_of_what_is_expected_of_them():
    """50 jobs on the same 8 machines, which alone differ: each rate is as uncertain as two means of 4 machines are."""
    of_machine = np.random.default_rng(5).normal(0.0, 0.1, 8)
    cells = [(f"j{j}", m, "old" if m < 4 else "new", np.exp(of_machine[m])) for j in range(50) for m in range(8)]
    cells += [("alone", m, "old", np.exp(of_machine[m])) for m in range(4)]
    error = compared(rows_of(cells)).jobs.set_index("job")["log_error"]
    expected = np.sqrt(of_machine[:4].var(ddof=1) / 4 + of_machine[4:].var(ddof=1) / 4)
    assert error["j0"] == pytest.approx(expected, rel=0.25)
    assert error["alone"] == pytest.approx(expected, rel=0.25)


def test_neighbours_are_no_heavier_because_their_machine_is_slow():
    """Instances that a slow machine keeps busy for longer do not make it a loaded one: others of their jobs say so."""
    cells = [(job, m, "old" if m < 4 else "new", 1.0) for m in range(8) for job in ("a", f"pair{m % 4}")]
    rows = rows_of(cells).assign(vcpus=4.0, present_s=100.0)
    usual = 20.0 + 20.0 * (rows["machine"] % 4)
    slow = rows["machine"] == 1
    before, after = (
        conditions_of(rows.assign(cpu_s=use)).table["load"] for use in (usual, np.where(slow, 1.5 * usual, usual))
    )
    more = (after - before).to_numpy()[rows["job"].to_numpy() == "a"]
    assert more[1] < 0.25 * more[5]  # machine 5 has the other instance of pair1


def test_values_that_are_all_alike_are_a_rate_without_error():
    cells = [(job, m, "old" if m < 4 else "new", 1.0) for job in "abc" for m in range(8)]
    answer = compared(rows_of(cells))
    assert answer.fleet[["rate", "low", "high"]].to_numpy() == pytest.approx(np.ones((1, 3)), abs=1e-6)
    assert answer.jobs[["rate", "low", "high"]].to_numpy() == pytest.approx(np.ones((3, 3)), abs=1e-6)


def test_neighbours_count_by_who_they_are():
    """A job that misses ten times as often on the new platform as on the old is the same neighbour on both."""
    row = {"period": 0, "machine": [1, 1, 2, 2], "job": ["a", "b", "a", "b"], "platform": ["x", "x", "y", "y"]}
    table = pd.DataFrame(row).assign(weight=1.0, vcpus=4.0, cpu_s=50.0, present_s=100.0)
    table["llc_misses"] = [10.0, 40.0, 100.0, 400.0]
    conditions = conditions_of(table)
    assert "load" not in conditions.table  # all alike
    assert conditions.table["traffic"].tolist() == pytest.approx([0.125, -0.125, 0.125, -0.125])


@pytest.mark.parametrize("name", ["heavy_new_fuller", "never_seen"])
def test_intervals_hold_the_truth_on_fleets_of_another_making(name):
    """60 fleets each, seed 1: fewer than 52 held by 95% intervals has a probability of 0.4% by chance.

    The plain ratio of means errs by more than 15% on each of these.
    """
    told = summary(name, 60)
    assert told["coverage"] >= 52 / 60
    assert told["naive"] > 0.15
    assert told["naive"] > 5 * told["rmse"]


def test_few_rows_of_a_job_in_a_period_tell_little_of_platforms():
    """Machines do another of 20 jobs each day: a job has 1.75 rows a day in 40 tables, whose platforms differ by 1.3.

    Fewer than 34 fleets held by 95% intervals have a probability of 0.3% by chance. In four such sets 99.9% of the jobs
    were held; as if nothing was fitted by period, 72% of the fleets and 75% of the jobs.
    """
    fleets, jobs = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        period, machine = (part.ravel() for part in np.indices((10, 35)))
        job = rng.integers(0, 20, len(period))
        common = 0.2 * rng.standard_normal((20, 10))[job, period]
        noise = 0.05 * rng.standard_normal(35)[machine] + 0.1 * rng.standard_normal(len(period))
        platform = np.where(machine < 20, "old", "new")
        row = {"period": period, "job": job, "machine": machine, "platform": platform, "weight": 1.0}
        rows = pd.DataFrame(row | {"value": np.where(machine < 20, 1.0, 1.3) * np.exp(common + noise)})
        answer = compared(rows, pd.DataFrame({"job": np.arange(20), "quota": 1.0}))
        fleets.append(answer.fleet["low"].iloc[0] <= 1.3 <= answer.fleet["high"].iloc[0])
        jobs += ((answer.jobs["low"] <= 1.3) & (answer.jobs["high"] >= 1.3)).tolist()
    assert sum(fleets) >= 34
    assert np.mean(jobs) >= 0.88


@pytest.mark.parametrize(("old", "new"), [([1], [1]), ([1, 3], [3, 1])])
def test_an_error_is_that_with_which_contrasts_within_periods_vary(old, new):
    """So many machines of either platform in each of ten periods in turn; 400 tables: errors are known to some 4%."""
    counts = {"old": np.resize(old, 10), "new": np.resize(new, 10)}
    of = [(period, name) for name, each in counts.items() for period in range(10) for _ in range(each[period])]
    rows = pd.DataFrame(of, columns=["period", "platform"]).assign(job="a", machine=np.arange(len(of)), weight=1.0)
    logs, squares = [], []
    for seed in range(400):
        value = np.exp(0.1 * np.random.default_rng(seed).standard_normal(len(rows)))
        contrast = PlatformLevels.fit(PlatformRows.of(rows.assign(value=value))).contrast(0, 1)
        logs.append(contrast.log[0])
        squares.append(contrast.square[0])
    assert np.sqrt(np.mean(squares)) == pytest.approx(np.std(logs), rel=0.12)


def test_what_jobs_with_one_machine_share_counts():
    """Machines differ much, and most jobs have one or two on a platform: 40 fleets, seed 4, false alarm 0.3%.

    Residuals of a job's only machine are 0, so without what machines do to all jobs the mean square of errors in
    standard errors is above 1.9.
    """
    condition = RateCondition(
        machines=(20, 20), jobs=60, per_machine=5.0, concentration=3.0, rate_sd=0.0, shard_sd=0.02, machine_sd=0.2,
        noise_sd=0.01, load_slope=0.0,
    )  # fmt: skip
    answers = [judged(condition, np.random.default_rng([4, number]))[0].iloc[0] for number in range(40)]
    errors = np.array([np.log(row["rate"] / row["true"]) / row["log_error"] for row in answers])
    assert (errors**2).mean() < 1.75


def test_jobs_that_happen_to_be_alike_leave_open_how_much_the_others_differ():
    """No spread is found between four jobs; the more quota others have, the less the fleet's rate is known."""
    rng = np.random.default_rng(7)
    cells = [
        (f"j{j}", 16 * j + m, "old" if m < 8 else "new", rng.lognormal(0, 0.1)) for j in range(4) for m in range(16)
    ]
    cells += [("alone", 64 + m, "old", 1.0 + 0.01 * m) for m in range(8)]
    rows, jobs = rows_of(cells), pd.DataFrame({"job": ["j0", "j1", "j2", "j3", "alone"], "quota": [1.0] * 5})
    little, much = (compared(rows, jobs.assign(quota=[1, 1, 1, 1, quota])).fleet.iloc[0] for quota in (0.01, 36))
    assert little["spread"] == much["spread"] == 0
    assert np.log(much["high"] / much["rate"]) > 1.3 * np.log(little["high"] / little["rate"])


def test_a_single_job_on_both_platforms_says_what_is_likely_and_nothing_of_the_others():
    cells = [("a", m, "old" if m < 8 else "new", (1.0 + 0.3 * (m >= 8)) * (1 + 0.01 * (m % 4))) for m in range(16)]
    cells += [("b", m, "old", 1 + 0.01 * (m % 4)) for m in range(16, 24)]
    row = compared(rows_of(cells)).fleet.iloc[0]
    assert row["rate"] == pytest.approx(1.3, rel=0.01)
    assert row["low"] < 0.3
    assert row["high"] > 5.0


def test_a_spread_that_was_not_found_may_be_there():
    """Three jobs that differ as much as each is uncertain, and one never seen: 150 draws, seed 6.

    Of draws in which no spread is found, intervals without any hold 58%.
    """
    rng, held = np.random.default_rng(6), []
    for _ in range(150):
        log, other = rng.normal(0.0, 0.1, 3) + rng.normal(0.0, 0.1, 3), rng.normal(0.0, 0.1)
        spread = JobSpread.of(log, np.full(3, 0.01), np.ones((3, 1)))
        half = spread.half_width(np.array([0.01 / 3]), np.array([1e6]), np.array([4 / 3]), 0.95)[0]
        held.append((abs(log.mean() - other) <= half, spread.square == 0))
    inside, none = np.array(held).T
    assert 0.90 <= inside.mean() <= 0.985
    assert inside[none].mean() > 0.8


def test_a_spread_of_jobs_measured_exactly_is_as_uncertain_as_students_t():
    for count in (4, 9):
        log = np.random.default_rng(count).normal(0.0, 0.1, count)
        spread = JobSpread.of(log, np.full(count, 1e-12), np.ones((count, 1)))
        half = spread.half_width(np.array([1e-12]), np.array([9.0]), np.array([1 + 1 / count]), 0.95)
        expected = stats.t.ppf(0.975, count - 1) * log.std(ddof=1) * np.sqrt(1 + 1 / count)
        assert half == pytest.approx(expected, rel=0.002)


@pytest.mark.parametrize("sd", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("slopes", [1, 2])
def test_at_each_variance_weighted_squares_are_a_quantile_of_theirs(sd, slopes):
    """By least squares of their own at each variance; at one of 0 squares are fewer without any."""
    rng = np.random.default_rng(3)
    square, x = np.maximum(rng.uniform(0, sd**2, 12), 1e-18), rng.normal(size=(12, 2))[:, [0, 1][:slopes]]
    y = sd * rng.standard_normal(12) + x.sum(axis=1)
    spread = JobSpread.of(y, square, x)
    quantiles = stats.chi2.ppf(((np.arange(64) + 0.5) / 64) ** 2, 12 - slopes)
    inside = 0
    for variance, quantile in zip(spread.variances, quantiles, strict=True):
        root = np.sqrt(1 / (square + variance))
        weighted = np.linalg.lstsq(root[:, None] * x, root * y)[1][0]
        inside += 0 < variance < 4
        if variance in {0.0, 4.0}:
            assert (weighted <= quantile) == (variance == 0)
        else:
            assert weighted == pytest.approx(quantile, rel=1e-6)
    assert inside > 20


def test_a_sum_of_parts_that_cancel_has_no_negative_variance():
    """Jobs on the same machines of which a model predicts some: the slope of what it predicts has an error, too."""
    cells = [(f"j{j}", m, "old" if m < 6 else "new", 1 + 0.001 * m) for j in range(19) for m in range(12)]
    levels = PlatformLevels.fit(PlatformRows.of(rows_of(cells)))
    weights = np.stack([np.ones(19), np.linspace(-1.0, 1.0, 19)]) / 19
    assert np.linalg.eigvalsh(levels.contrast(0, 1).products(weights)).min() > 0
