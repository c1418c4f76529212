import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from analysis.crossplatform.mix import REGRESSIONS, fit
from analysis.crossplatform.traits import normalised_residuals

COSTS = np.array([9.0, 3.0, 27.0, 1.0, 12.0, 6.0]) * 1e6
each = pytest.mark.parametrize("method", REGRESSIONS)


def counts_of(rng, wander, intervals=600, requests=200.0):
    """Poisson counts of six types whose log popularity wanders, and whose volume swings."""
    steps = rng.normal(size=(intervals, len(COSTS)))
    path = np.cumsum(steps, axis=0) * wander / np.sqrt(intervals / 4)
    share = np.exp(path - 0.5 * np.arange(len(COSTS)))
    volume = requests * (1 + 0.5 * np.sin(np.arange(intervals) / 40))
    return rng.poisson(volume[:, None] * share / share.sum(axis=1, keepdims=True)).astype(float)


def metric_of(rng, counts, cv=0.4):
    """What the requests cost together when each departs from its type's cost by that much, independently."""
    return rng.normal(counts @ COSTS, cv * np.sqrt(counts @ COSTS**2))


def test_least_squares_are_those_of_numpy():
    rng = np.random.default_rng(1)
    counts = counts_of(rng, wander=1.0)
    metric = metric_of(rng, counts)
    expected, *_ = np.linalg.lstsq(counts, metric)
    np.testing.assert_allclose(fit(counts, metric).coefficients, expected, rtol=1e-9)


def test_weights_are_the_inverse_of_the_noise():
    rng = np.random.default_rng(2)
    counts = counts_of(rng, wander=1.0)
    metric = metric_of(rng, counts)
    root = 1 / np.sqrt(counts.sum(axis=1))
    expected, *_ = np.linalg.lstsq(counts * root[:, None], metric * root)
    np.testing.assert_allclose(fit(counts, metric, noise_exponent=1.0).coefficients, expected, rtol=1e-9)


def test_the_covariance_is_hc3_written_out():
    rng = np.random.default_rng(3)
    counts = counts_of(rng, wander=1.0, intervals=40)
    metric = metric_of(rng, counts)
    bread = np.linalg.inv(counts.T @ counts)
    left_out = [
        metric[i] - counts[i] @ np.linalg.lstsq(np.delete(counts, i, 0), np.delete(metric, i))[0] for i in range(40)
    ]
    expected = bread @ (counts.T * np.square(left_out)) @ counts @ bread
    np.testing.assert_allclose(fit(counts, metric).covariance, expected, rtol=1e-8)


def test_no_cost_is_negative_with_nnls_and_all_are_as_scipy_has_them():
    rng = np.random.default_rng(4)
    counts = counts_of(rng, wander=0.3, intervals=30, requests=20.0)
    metric = metric_of(rng, counts, cv=3.0)
    assert (fit(counts, metric).coefficients < 0).any()
    model = fit(counts, metric, "nnls")
    np.testing.assert_allclose(model.coefficients, nnls(counts, metric)[0], rtol=1e-6, atol=1.0)


def test_the_posterior_is_least_squares_where_the_log_tells_much_and_the_prior_where_it_tells_nothing():
    rng = np.random.default_rng(5)
    counts = counts_of(rng, wander=1.0)
    metric = counts @ COSTS
    np.testing.assert_allclose(fit(counts, metric, "bayes").coefficients, COSTS, rtol=1e-6)
    silent = np.outer(rng.uniform(50, 150, 30), [0.5, 0.5])
    model = fit(silent, rng.normal(silent.sum(axis=1), 5.0), "bayes")
    np.testing.assert_allclose(model.coefficients, 1.0, rtol=0.05)


def test_the_posterior_is_nearer_to_the_truth_than_least_squares_when_a_log_is_short():
    """Mean squared error over 40 short logs; the prior's gain is a third, so a false alarm is out of question."""
    lost = {"ols": 0.0, "bayes": 0.0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = counts_of(rng, wander=0.3, intervals=20, requests=30.0)
        metric = metric_of(rng, counts, cv=1.0)
        for method in lost:
            lost[method] += float(np.square(fit(counts, metric, method).coefficients - COSTS).sum())
    assert lost["bayes"] < 0.8 * lost["ols"]


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "noise_exponent"), [("ols", 0.0), ("ols", 1.0), ("bayes", 1.0), ("nnls", 1.0)])
def test_intervals_cover_the_costs_as_often_as_they_say(method, noise_exponent):
    """90% intervals of 6 costs in 150 logs; 0.86..0.94 is left with a probability below 1e-3 if they are right."""
    inside = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        counts = counts_of(rng, wander=1.0, intervals=200)
        model = fit(counts, metric_of(rng, counts), method, noise_exponent)
        inside.append(np.abs(model.coefficients - COSTS) <= model.half_widths)
    assert 0.86 <= np.mean(inside) <= 0.94


def test_noise_grows_with_requests_as_said():
    rng = np.random.default_rng(8)
    counts = counts_of(rng, wander=1.0, intervals=2000)
    metric = metric_of(rng, counts)
    model = fit(counts, metric, noise_exponent=1.0)
    standard = (metric - model.predict(counts)) / model.noise_sd(counts)
    volume = counts.sum(axis=1)
    for part in (volume < np.quantile(volume, 0.3), volume > np.quantile(volume, 0.7)):
        assert standard[part].std() == pytest.approx(1.0, rel=0.15)


@each
def test_a_nonstationary_mix_is_predicted_three_times_better_than_by_one_type(method):
    rng = np.random.default_rng(9)
    counts = counts_of(rng, wander=1.5, requests=1000.0)
    metric = metric_of(rng, counts)
    train, test = slice(0, 300), slice(300, None)
    model = fit(counts[train], metric[train], method, noise_exponent=1.0)
    one = fit(counts[train].sum(axis=1, keepdims=True), metric[train])
    error = normalised_residuals(metric[test], model.predict(counts[test]))
    of_one = normalised_residuals(metric[test], one.predict(counts[test].sum(axis=1, keepdims=True)))
    assert np.median(of_one) > 3 * np.median(error)
    assert model.identified
    assert model.verdict.startswith("the mix identifies the types: condition number ")


@each
def test_a_stationary_mix_is_said_not_to_identify_the_types(method):
    rng = np.random.default_rng(10)
    counts = counts_of(rng, wander=0.0)
    model = fit(counts, metric_of(rng, counts), method, noise_exponent=1.0)
    assert not model.identified
    assert model.dispersion == pytest.approx(1.0, abs=0.1)
    numbers = re.match(
        r"the mix does not identify the types: it varies only (\S+) times as much as by chance, must be 1.5 or more",
        model.verdict,
    )
    assert float(numbers[1]) == pytest.approx(model.dispersion, rel=0.01)


REASONS = {
    "dispersion": "varies only 1.2 times as much as by chance, must be 1.5 or more",
    "condition_number": "types come together, condition number 42, must be below 30",
    "covariance": "types whose cost is known to ±50% make 0% of requests, must be 80% or more",
}
"""What a verdict says of each thing that alone makes it one of refusal."""


@pytest.mark.parametrize("wrong", [(), ("dispersion",), ("condition_number",), ("covariance",), tuple(REASONS)])
def test_a_verdict_names_the_criteria_that_refuse_and_no_others(wrong):
    rng = np.random.default_rng(14)
    counts = counts_of(rng, wander=1.5, requests=1000.0)
    model = fit(counts, metric_of(rng, counts), noise_exponent=1.0)
    bad = {"dispersion": 1.2, "condition_number": 42.0, "covariance": model.covariance * 1e6}
    model = replace(model, **{name: bad[name] for name in wrong})
    assert model.identified == (not wrong)
    assert model.verdict.startswith(f"the mix {'does not identify' if wrong else 'identifies'} the types: ")
    assert [name for name, said in REASONS.items() if said in model.verdict] == list(wrong)
    assert ("condition number" in model.verdict) == (not wrong or "condition_number" in wrong)


def test_a_mix_in_exact_proportion_identifies_nothing_but_predicts():
    volume = np.arange(10.0, 60.0)
    counts = np.outer(volume, [3.0, 2.0, 1.0])
    for method in REGRESSIONS:
        model = fit(counts, 7.0 * volume, method)
        assert model.condition_number == np.inf
        assert not model.identified
        np.testing.assert_allclose(model.predict(counts), 7.0 * volume, rtol=1e-9)
        np.testing.assert_allclose(model.coefficients, 7.0 / 6.0, rtol=1e-6)


def test_the_cost_of_a_type_that_never_came_is_the_mean_request_and_as_uncertain():
    counts = np.array([[1.0, 0.0, 5.0], [4.0, 0.0, 1.0], [2.0, 0.0, 2.0], [3.0, 0.0, 1.0]])
    metric = counts @ np.array([2.0, 99.0, 4.0])
    mean = metric.sum() / counts.sum()
    for method in ("ols", "nnls"):
        model = fit(counts, metric, method)
        np.testing.assert_allclose(model.coefficients, [2.0, mean, 4.0], rtol=1e-9)
        np.testing.assert_allclose(model.half_widths, [0.0, 1.6449 * mean, 0.0], rtol=1e-4, atol=1e-6)
        assert model.told.tolist() == [True, False, True]
    bayes = fit(counts, metric, "bayes")
    np.testing.assert_allclose(bayes.coefficients, [2.0, mean, 4.0], rtol=1e-6)
    assert not bayes.told[1]


def test_an_interval_that_alone_tells_a_cost_does_not_make_it_certain():
    rng = np.random.default_rng(11)
    counts = np.column_stack([rng.poisson(50.0, 100), np.zeros(100)]).astype(float)
    counts[40, 1] = 5.0
    model = fit(counts, metric_of(rng, np.pad(counts, ((0, 0), (0, 4)))))
    assert model.half_widths[1] > 0.5 * model.residual_sd / 5.0


@each
def test_one_type_costs_what_the_metric_has_per_request(method):
    counts = np.array([[1.0], [2.0], [4.0]])
    model = fit(counts, 3.0 * counts[:, 0], method)
    assert model.coefficients == pytest.approx([3.0])
    assert model.identified


@each
def test_a_metric_of_zeros_costs_nothing(method):
    counts = counts_of(np.random.default_rng(12), wander=1.0)
    model = fit(counts, np.zeros(len(counts)), method)
    np.testing.assert_allclose(model.coefficients, 0.0, atol=1e-9)
    assert np.isfinite(model.coefficients).all()


@each
def test_the_unit_of_the_metric_is_that_of_the_costs(method):
    rng = np.random.default_rng(13)
    counts = counts_of(rng, wander=1.0)
    metric = metric_of(rng, counts)
    small, large = fit(counts, 1e-9 * metric, method), fit(counts, metric, method)
    np.testing.assert_allclose(1e9 * small.coefficients, large.coefficients, rtol=1e-6)
    np.testing.assert_allclose(1e9 * small.half_widths, large.half_widths, rtol=1e-6)


@pytest.mark.parametrize(
    ("counts", "metric", "method", "message"),
    [
        (np.ones((4, 1)), np.ones(4), "ridge", "method must be one of ols, nnls, bayes, got 'ridge'"),
        (np.ones((4, 1)), np.ones(3), "ols", r"counts must be \(n, J\) and the metric \(n,\), got \(4, 1\) and \(3,\)"),
        (np.ones(4), np.ones(4), "ols", r"got \(4,\) and \(4,\)"),
        (np.array([[1.0], [-1.0], [2.0]]), np.ones(3), "ols", "counts must be at least 0 and all finite, .* row 1"),
        (np.ones((3, 1)), np.array([1.0, 2.0, np.nan]), "ols", "all finite, got .* and nan in row 2"),
        (np.zeros((4, 2)), np.ones(4), "ols", "requests must have come in some interval, got none"),
        (np.zeros((0, 2)), np.ones(0), "ols", "requests must have come in some interval, got none"),
        (np.ones((3, 2)), np.ones(3), "bayes", "2 types need at least 4 intervals, got 3"),
    ],
)
def test_what_no_regression_can_be_run_on_is_refused(counts, metric, method, message):
    with pytest.raises(ValueError, match=message):
        fit(counts, metric, method)


@pytest.mark.parametrize("method", REGRESSIONS)
def test_requests_that_cost_more_where_more_come_are_told_from_dear_ones(method):
    """A tenth more for each hundred that come together; the bounds hold for 200 other logs too."""
    rng = np.random.default_rng(11)
    counts, later = counts_of(rng, wander=1.0), 2.0 * counts_of(rng, wander=1.0)
    crowding = 1e-3 * COSTS.mean()

    def metric(counts):
        return metric_of(rng, counts) + crowding * counts.sum(axis=1) ** 2

    seen = metric(counts)
    model, without = (fit(counts, seen, method, 1.0, crowding=there) for there in (True, False))
    assert (np.abs(model.coefficients - COSTS) < 3 * model.half_widths).all()
    assert model.crowding == pytest.approx(crowding, rel=0.1)
    asked = metric(later)
    error, worse = (np.median(normalised_residuals(asked, each.predict(later))) for each in (model, without))
    assert error < 0.5 * worse


def test_crowding_is_the_column_written_out():
    rng = np.random.default_rng(12)
    counts = counts_of(rng, wander=1.0)
    metric = metric_of(rng, counts)
    expected, *_ = np.linalg.lstsq(np.column_stack([counts, counts.sum(axis=1) ** 2]), metric)
    model = fit(counts, metric, crowding=True)
    np.testing.assert_allclose([*model.coefficients, model.crowding], expected, rtol=1e-7)
    assert fit(counts, metric).crowding == 0.0
