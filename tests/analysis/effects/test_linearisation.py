"""Metrics that are no positive means, against formulas of the books in plain NumPy, and a bootstrap of machines."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analysis.effects.estimand import Estimand
from analysis.effects.linearisation import Linearised, Ranks, past_near_one
from analysis.effects.methods import method, unanswerable
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from models.errors import ArgumentError
from tests.helpers.effect_studies import observed
from tests.helpers.outside_fleets import Condition
from tests.helpers.outside_metrics import Metric, answers

MACHINE_LEVEL = ("ratio", "cuped", "unadjusted", "own-past", "adjusted")


def one_job(rng, machines=60, treated=24, rows=(1, 9)):
    """One job and one day: machines hold unlike numbers of instances, and differ among themselves."""
    machine = np.repeat(np.arange(machines), rng.integers(*rows, machines))
    having = (machine < treated).astype(int)
    value = rng.normal(0.0, 1.0, machines)[machine] + rng.normal(0.4 + having, 2.0)
    table = pd.DataFrame({"period": 1, "job": "a", "machine": machine, "weight": 1.0, "treated": having})
    return table.assign(instance=np.arange(len(table)), value=value, exposure=rng.integers(1, 6, len(table)))


def says(table, name, kind, change=None):
    return Linearised.of(table, None, Estimand.of(kind, change)).estimate(method(name))


def delta_method(table, above, below):
    """Each arm's ratio of sums and its variance, from machines' sums (Deng, Knoblich and Lu 2018, equation 4)."""
    out = []
    for arm in (0, 1):
        sums = table[table["treated"] == arm].groupby("machine")[[above, below]].sum()
        ratio = sums[above].sum() / sums[below].sum()
        residual = (sums[above] - ratio * sums[below]) / sums[below].mean()
        out.append((ratio, residual.var(ddof=1) / len(sums), len(sums)))
    return out


def test_an_absolute_change_of_zeros_and_negatives_is_the_difference_of_means_by_machine():
    table = one_job(np.random.default_rng(1)).assign(one=1.0)
    table.loc[::7, "value"] = 0.0
    (off, off_variance, n), (on, on_variance, m) = delta_method(table, "value", "one")
    error, parts = np.sqrt(off_variance + on_variance), (off_variance**2 / (n - 1) + on_variance**2 / (m - 1))
    effect = says(table, "ratio", "mean")
    assert effect.change == pytest.approx(on - off, rel=1e-3)
    assert effect.error == pytest.approx(error, rel=1e-3)
    assert effect.freedom == pytest.approx((off_variance + on_variance) ** 2 / parts, rel=1e-2)
    assert effect.high - effect.change == pytest.approx(t.ppf(0.975, effect.freedom) * effect.error, rel=1e-9)


def test_a_ratio_is_that_of_sums_with_the_interval_of_fieller():
    """All θ on a grid at which the arms' ratios, the controls' taken 1 + θ times, are not told apart."""
    table = one_job(np.random.default_rng(2), machines=80, treated=40).assign(value=lambda r: r["value"].abs())
    table.loc[5, ["value", "exposure"]] = 0.0
    (off, off_variance, _), (on, on_variance, _) = delta_method(table, "value", "exposure")
    effect = says(table, "ratio", "ratio")
    grid = np.linspace(-0.9, 3.0, 400_001)
    inside = grid[
        np.abs(on - (1 + grid) * off)
        <= t.ppf(0.975, effect.freedom) * np.sqrt(on_variance + (1 + grid) ** 2 * off_variance)
    ]
    assert effect.change == pytest.approx(on / off - 1, rel=2e-3)
    assert (effect.low, effect.high) == pytest.approx((inside[0], inside[-1]), rel=5e-3)
    assert effect.high - effect.change > effect.change - effect.low


@pytest.mark.parametrize("kind", ["p50", "p90"])
def test_a_quantile_has_the_error_of_a_bootstrap_of_machines(kind):
    """Their ratio is 0.7 to 1.4: errors of quantiles scatter by a tenth, those of 400 resamples by a twentieth."""
    rng, p = np.random.default_rng(3), float(kind[1:]) / 100
    table = one_job(rng, machines=120, treated=60)
    arms = [
        [rows["value"].to_numpy() for _, rows in table[table["treated"] == arm].groupby("machine")] for arm in (0, 1)
    ]

    def quantile(arm):
        return np.quantile(np.concatenate(arm), p, method="inverted_cdf")

    resampled = [
        np.subtract(*(quantile([arm[i] for i in rng.integers(0, len(arm), len(arm))]) for arm in arms[::-1]))
        for _ in range(400)
    ]
    effect = says(table, "ratio", kind, "absolute")
    assert effect.change == pytest.approx(quantile(arms[1]) - quantile(arms[0]), abs=1e-6)
    assert 0.7 <= effect.error / np.std(resampled, ddof=1) <= 1.4


def jobs_apart(rng, levels, machines):
    """Return `machines` values near each level, one a machine, of which every second has the feature."""
    job = np.arange(machines * len(levels)) % len(levels)
    value = np.array(levels)[job] * np.exp(rng.normal(0.0, 0.05, len(job)))
    row = {"period": 0, "job": job, "machine": np.arange(len(job)), "weight": 1.0, "value": value}
    return pd.DataFrame(row | {"treated": (np.arange(len(job)) // len(levels)) % 2})


def test_a_quantile_between_the_levels_of_jobs_is_refused():
    """Half of the machines are at 1, half at 2: the median may lie anywhere between, and no variance would tell."""
    table = jobs_apart(np.random.default_rng(8), [1.0, 2.0], machines=40)
    with pytest.raises(NotEnoughDataError, match="p50 lies between the jobs' levels"):
        says(table, "adjusted", "p50")
    with pytest.raises(NotEnoughDataError, match="p50 lies between the jobs' levels"):
        past_near_one(table, None, Estimand.of("p50"))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("machines", [2, 24])
def test_a_quantile_between_levels_that_every_machine_has_is_refused(jobs, machines):
    """Each machine has a value near 1 and one near 2: of two jobs, or of one. Half of all values are below, on each."""
    machine, level = np.divmod(np.arange(4 * machines), 2)
    value = (1.0 + level) * np.exp(np.random.default_rng(4).normal(0.0, 0.05, len(level)))
    row = {"period": 0, "job": level % jobs, "machine": machine, "instance": level, "weight": 1.0, "value": value}
    table = pd.DataFrame(row | {"treated": machine % 2})
    with pytest.raises(NotEnoughDataError, match="p50 lies between"):
        says(table, "adjusted", "p50")
    with pytest.raises(NotEnoughDataError, match="p50 lies between"):
        past_near_one(table, None, Estimand.of("p50"))


def test_of_a_single_machine_with_the_feature_its_number_is_said():
    value = np.random.default_rng(1).lognormal(0.0, 0.1, 100)
    row = {"period": 0, "job": 0, "machine": np.repeat([0, 1], 50), "instance": np.arange(100), "weight": 1.0}
    table = pd.DataFrame(row | {"value": value, "treated": np.repeat([0, 1], 50)})
    with pytest.raises(NotEnoughDataError, match="2 machines with the feature are needed, 1 given"):
        says(table, "adjusted", "p50")


@pytest.mark.parametrize(("pairs", "refused"), [(12, False), (13, True)])
def test_jobs_have_to_show_two_fifths_of_the_error_that_is_to_be_expected(pairs, refused):
    """Jobs at 1 and at 2, of 20 machines each; in the first of either one machine is at the other level.

    Of the error 0.404 is shown with 12 pairs of jobs, 0.390 with 13.
    """
    job, machine = (part.ravel() for part in np.indices((2 * pairs, 20)))
    value = 1.0 + job % 2 + 1e-3 * np.random.default_rng(2).random(len(job))
    swapped = (job < 2) & (machine == 0)
    value = np.where(swapped, 3.0 - job % 2 + 1e-3, value)
    value[job == 1] = np.where(machine[job == 1] == 0, 1.0, value[job == 1])
    ranks = Ranks.of(value, np.ones(len(job)), 20 * job + machine)
    if refused:
        with pytest.raises(NotEnoughDataError, match="p50 lies between the jobs' levels"):
            ranks.check_jobs(0.5, job)
    else:
        ranks.check_jobs(0.5, job)


def test_a_past_between_levels_is_no_reason_to_refuse():
    """Its quantile takes noise away; no error is estimated from it."""
    rng, (period, rest) = np.random.default_rng(6), np.divmod(np.arange(320), 160)
    machine, job = np.divmod(rest, 2)
    value = (1.0 + job * (period == 0)) * np.exp(rng.normal(0.0, 0.1, len(job)))
    row = {"period": period, "job": job, "machine": machine, "weight": 1.0, "value": value}
    effect = says(pd.DataFrame(row | {"treated": period * (machine % 2)}), "adjusted", "p50")
    assert effect.low <= 0.0 <= effect.high


def test_a_quantile_among_the_values_of_a_job_is_told_with_its_interval():
    """In 80 tables whose median lies within the second of three jobs: 95% less 7.3 points (three standard errors)."""
    covers = []
    for seed in range(80):
        table = jobs_apart(np.random.default_rng(seed), [1.0, 2.0, 4.0], machines=40)
        effect = says(table, "adjusted", "p50")
        covers.append(effect.low <= 0.0 <= effect.high)
    assert np.mean(covers) >= 0.95 - 0.073


def test_a_quantile_of_many_equal_values_is_that_value():
    """Jobs of constant values: seven in ten are 5, so the median is 5, whatever machines differ by."""
    job = np.arange(100) % 10 >= 7
    row = {"period": 0, "job": job, "machine": np.arange(100), "weight": 1.0, "value": np.where(job, 7.0, 5.0)}
    effect = says(pd.DataFrame(row | {"treated": (np.arange(100) // 10) % 2}), "adjusted", "p50", "absolute")
    assert effect.change == 0.0


def test_the_past_brings_a_quantile_nearer_to_the_truth():
    """One job whose machines differ for good: the past takes most of that away, and its sign matters."""
    errors = []
    for seed in range(5):
        rng, (period, machine) = np.random.default_rng(seed), np.divmod(np.arange(160), 80)
        value = (1.0 + 0.05 * rng.standard_normal(80))[machine] + 0.005 * rng.standard_normal(160)
        treated = (period == 1) & (machine < 40)
        table = pd.DataFrame({"period": period, "job": "a", "machine": machine, "weight": 1.0, "treated": treated * 1})
        table = table.assign(value=value + 0.05 * treated)
        changes = [says(table, name, "p50", "absolute").change for name in ("unadjusted", "adjusted")]
        errors.append(np.array(changes) - 0.05)
    without, with_it = np.sqrt(np.mean(np.square(errors), axis=0))
    assert with_it < 0.7 * without


@pytest.mark.parametrize("name", MACHINE_LEVEL)
@pytest.mark.parametrize("kind", ["mean", "p50"])
def test_the_zero_and_the_sign_of_the_scale_are_the_users(name, kind):
    table = observed(np.random.default_rng(4), machines=24)
    plain, moved = (says(rows, name, kind, "absolute") for rows in (table, table.assign(value=table["value"] - 50.0)))
    assert (moved.change, moved.low, moved.high) == pytest.approx((plain.change, plain.low, plain.high), rel=1e-3)
    if kind == "mean":
        turned = says(table.assign(value=-2.0 * table["value"]), name, kind, "absolute")
        assert (turned.change, turned.high) == pytest.approx((-2 * plain.change, -2 * plain.low), rel=1e-3)


@pytest.mark.parametrize("name", MACHINE_LEVEL)
def test_a_relative_change_of_positive_numbers_is_that_of_a_rate(name):
    """A rate's level without the feature is not adjusted, a mean's is, so they are a little apart."""
    table = observed(np.random.default_rng(5), machines=40)
    rate, mean = method(name).estimate(Study.of(table)), says(table, name, "mean", "relative")
    assert mean.change == pytest.approx(rate.change, abs=0.15 * rate.error)
    assert mean.error == pytest.approx(rate.error, rel=0.1)


@pytest.mark.parametrize(("name", "design"), [("adjusted", "crossover"), ("staged", "staged")])
def test_crossovers_and_roll_outs_give_absolute_changes(name, design):
    """All values lie near 1000, so that a relative change times 1000 is the absolute one."""
    rng, parts = np.random.default_rng(6), []
    own = 1000.0 + rng.normal(0.0, 5.0, 40)
    for period in range(6):
        turn = (period - np.arange(40) % 2) % 2 if design == "crossover" else period >= 2 + np.arange(40) % 3
        treated = np.where(np.arange(40) < 20, turn, 0).astype(int)
        row = {"period": period, "job": "a", "machine": np.arange(40), "weight": 1.0, "treated": treated}
        parts.append(pd.DataFrame(row | {"value": own + rng.normal(0.0, 2.0, 40) + 7.0 * treated}))
    table = pd.concat(parts, ignore_index=True)
    rate = method(name).estimate(Study.of(table, staged=design == "staged"))
    mean = says(table.assign(value=table["value"] - 1000.0), name, "mean")
    assert mean.design == design
    assert mean.change == pytest.approx(1000.0 * rate.change, rel=0.02)
    assert mean.error == pytest.approx(1000.0 * rate.error, rel=0.02)


def test_what_cannot_be_said_is_refused():
    table = one_job(np.random.default_rng(7))
    assert "not the absolute change of a mean" in unanswerable(method("concurrent"), Estimand.of("mean"), "concurrent")
    assert "jobs' effects for alike" in unanswerable(method("shrunken"), Estimand.of("p99"), "concurrent")
    assert "not in a crossover study" in unanswerable(method("adjusted"), Estimand.of("p99"), "crossover")
    with pytest.raises(
        ArgumentError, match=r"relative needs a mean above 0 without the feature, got -4\.797; give change absolute"
    ):
        says(table.assign(value=table["value"] - 5.0), "ratio", "mean", "relative")
    with pytest.raises(ArgumentError, match="relative needs a mean above 0"):
        says(table.assign(value=lambda r: r["value"] - r["value"].mean() + 0.05), "ratio", "mean", "relative")
    with pytest.raises(NotEnoughDataError, match=r"machines in each arm are needed for p99\.9, 36 given"):
        says(table, "ratio", "p99.9")


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["proportion", "p90"])
def test_intervals_hold_the_truth_on_fleets_of_another_making(kind):
    """15 small fleets, without a past: of a true 95% fewer than 11 hold it in 6 of 10,000 seeds."""
    small = Condition(machines=60, jobs=4, treated=30, before=0, study=1, change=0.2)
    metric = Metric(small, kind, Estimand.of(kind).change, 0.2)
    found = np.array([answers(metric, 8, number, ["adjusted", "ratio"]) for number in range(15)])
    change, low, high, truth = np.moveaxis(found, -1, 0)
    assert np.isfinite(change).all()
    assert (((low <= truth) & (truth <= high)).sum(axis=0) >= 11).all()
