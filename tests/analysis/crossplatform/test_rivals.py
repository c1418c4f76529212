"""What is done in practice: exact where its assumption holds, silent or refused where it has nothing to go by."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.rivals import benchmark, cycle_mix, cycle_scalar
from models.platforms import PLATFORMS

COST_S = np.array([0.004, 0.010, 0.025])
"""Seconds of the whole calibration machine per request of each type."""
ELSEWHERE_S = np.array([0.05, 0.02, 0.10])
INTERVAL_S = 30.0
EVERY = (cycle_scalar, cycle_mix, benchmark)


def mixes(n=60, seed=1):
    return np.random.default_rng(seed).integers(0, 400, (n, 3)).astype(float)


def response_s(counts, factor=1.0):
    """Mean response on a machine that is `factor` times as slow: no queue but M/M/1, written as ρ / (μ − λ)."""
    requests = counts.sum(axis=1)
    service = counts @ COST_S * factor / requests
    arrivals, served = requests / INTERVAL_S, 1 / service
    return counts @ ELSEWHERE_S / requests + service + arrivals / served / (served - arrivals)


def log(counts, **changes):
    unknown = np.full(len(counts), np.nan)
    made = ServiceLog(
        types=("a", "b", "c"),
        interval_s=INTERVAL_S,
        start_s=INTERVAL_S * np.arange(len(counts)),
        counts=counts,
        instructions=unknown,
        misses=np.column_stack([unknown, unknown]),
        response_time_s=response_s(counts),
        utilisation=counts @ COST_S / INTERVAL_S,
    )
    return replace(made, **changes)


def scores(**per_s):
    return pd.DataFrame({"platform": list(per_s), "score_per_s": list(per_s.values())})


def evidence(scored=None, **changes):
    scored = scores(piii=20.0, pres=50.0) if scored is None else scored
    return Evidence("piii", {"piii": log(mixes(), **changes)}, PLATFORMS, scored)


NEW = mixes(20, seed=2)


@pytest.mark.parametrize(("method", "factor"), [(cycle_mix, 1.1 / 2.2), (benchmark, 20.0 / 50.0)])
def test_a_platform_that_differs_as_the_method_assumes_is_predicted_exactly(method, factor):
    made = method(evidence())(PLATFORMS["pres"], NEW, INTERVAL_S)
    np.testing.assert_allclose(made.service_time_s, factor * (NEW @ COST_S) / NEW.sum(axis=1))
    np.testing.assert_allclose(made.response_time_s, response_s(NEW, factor))


def test_clocks_are_summed_over_logical_processors():
    predictor = cycle_mix(evidence())
    one, eight = (
        predictor(PLATFORMS[name], NEW, INTERVAL_S).service_time_s for name in ("xeon_1h_1c_1p", "xeon_2h_2c_2p")
    )
    np.testing.assert_allclose(one, 8 * eight)


def test_the_scalar_model_knows_no_mix():
    made = cycle_scalar(evidence())(PLATFORMS["pres"], NEW, INTERVAL_S).service_time_s
    counts = mixes()
    np.testing.assert_allclose(made, 0.5 * (counts @ COST_S).sum() / counts.sum())


@pytest.mark.parametrize("method", EVERY)
def test_a_mix_without_requests_is_not_spoken_of(method):
    made = method(evidence())(PLATFORMS["pres"], np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]), INTERVAL_S)
    assert np.isnan(made.service_time_s).tolist() == [True, False]
    assert np.isnan(made.response_time_s).tolist() == [True, False]


@pytest.mark.parametrize("method", EVERY)
def test_without_response_times_only_service_is_predicted(method):
    made = method(evidence(response_time_s=np.full(60, np.nan)))(PLATFORMS["pres"], NEW, INTERVAL_S)
    assert np.isfinite(made.service_time_s).all()
    assert np.isnan(made.response_time_s).all()


@pytest.mark.parametrize("method", EVERY)
def test_intervals_whose_utilisation_nobody_counted_do_not_matter(method):
    counted = log(mixes()).utilisation
    some = np.where(np.arange(60) % 3 == 0, np.nan, counted)
    whole, part = (method(evidence(utilisation=each))(PLATFORMS["pres"], NEW, INTERVAL_S) for each in (counted, some))
    rounding = 0.1 if method is cycle_scalar else 1e-9
    np.testing.assert_allclose(part.service_time_s, whole.service_time_s, rtol=rounding)


@pytest.mark.parametrize("method", EVERY)
def test_a_log_without_utilisation_is_refused(method):
    with pytest.raises(ValueError, match="utilisation is not in the log of piii"):
        method(evidence(utilisation=np.full(60, np.nan)))


def test_a_platform_without_a_score_is_not_spoken_of():
    made = benchmark(evidence())(PLATFORMS["pd4"], NEW, INTERVAL_S)
    assert np.isnan(made.service_time_s).all()
    assert np.isnan(made.response_time_s).all()


def test_a_score_that_was_not_published_is_none():
    made = benchmark(evidence(scores(piii=20.0, pres=np.nan)))(PLATFORMS["pres"], NEW, INTERVAL_S)
    assert np.isnan(made.service_time_s).all()


@pytest.mark.parametrize(
    ("scored", "message"),
    [
        (scores(pres=50.0), "benchmarks have no score of piii"),
        (scores(piii=20.0, pres=0.0), "score of pres must be positive and finite, got 0"),
        (pd.concat([scores(piii=20.0)] * 2), "benchmarks score platform piii more than once"),
    ],
)
def test_scores_that_cannot_be_are_refused(scored, message):
    with pytest.raises(ValueError, match=message):
        benchmark(evidence(scored))


def test_a_comparison_by_scores_needs_some():
    bare = replace(evidence(), benchmarks=None)
    with pytest.raises(ValueError, match="benchmarks are not given"):
        benchmark(bare)
