"""The greatest arrival rate that keeps a bound on the mean response, against the queue's closed form."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.crossplatform.evidence import Prediction
from analysis.crossplatform.throughput import Bounded, bounded_throughput
from models.platforms import PLATFORMS

PLATFORM = PLATFORMS["pres"]


def queue(service_s=0.01, elsewhere_s=0.05, low=1.0, high=1.0):
    """M/M/1 responses, with an interval of service times between `low` and `high` times the predicted one."""

    def predict(platform, counts, interval_s):
        rate = counts.sum(axis=1) / interval_s
        ends = [service_s, low * service_s, high * service_s]
        with np.errstate(divide="ignore"):
            responses = [elsewhere_s + np.where(s * rate < 1, s / (1 - s * rate), np.inf) for s in ends]
        return Prediction(*(np.full(len(rate), s) for s in ends), *responses)

    return predict


@given(
    service_s=st.floats(1e-4, 1.0), elsewhere_s=st.floats(0.0, 0.2), bound_s=st.floats(0.05, 5.0), scale=st.floats(1, 9)
)
def test_the_throughput_is_where_the_queue_reaches_the_bound(service_s, elsewhere_s, bound_s, scale):
    found = bounded_throughput(queue(service_s, elsewhere_s), PLATFORM, [scale, 2 * scale], bound_s).throughput_per_s
    room = bound_s - elsewhere_s
    exact = 1 / service_s - 1 / room if room > 0 else 0.0
    assert found <= max(exact, 0.0) * (1 + 1e-9)
    assert found >= exact * (1 - 1e-3) or exact < 0.0101


def test_a_slow_prediction_gives_the_low_end():
    found = bounded_throughput(queue(low=0.8, high=1.25), PLATFORM, [1.0], 0.15)
    exact = [1 / s - 1 / 0.1 for s in (0.01, 0.0125, 0.008)]
    np.testing.assert_allclose([found.throughput_per_s, found.low, found.high], exact, rtol=1e-3)


def test_the_ends_are_those_of_the_long_run_mean():
    def few_requests_are_noisy(platform, counts, interval_s):
        said, off = queue(low=0.8, high=1.25)(platform, counts, interval_s), 1 / np.sqrt(counts.sum(axis=1))
        ends = said.response_low_s * (1 - off), said.response_high_s * (1 + off)
        return replace(said, response_low_s=ends[0], response_high_s=ends[1])

    found = bounded_throughput(few_requests_are_noisy, PLATFORM, [1.0], 0.07)
    exact = [1 / s - 1 / 0.02 for s in (0.01, 0.0125, 0.008)]
    np.testing.assert_allclose([found.throughput_per_s, found.low, found.high], exact, rtol=2e-3)
    assert bounded_throughput(few_requests_are_noisy, PLATFORM, [1.0], 0.07, interval_s=3600.0).low == 0


def test_the_mix_is_asked_about_whatever_its_sum():
    def second_is_dear(platform, counts, interval_s):
        used = counts @ [0.001, 0.1] / interval_s
        return Prediction(*[used] * 3, *[np.where(used < 0.5, 0.1, 1.0)] * 3)

    few, many = (bounded_throughput(second_is_dear, PLATFORM, [3 * s, s], 0.2) for s in (0.01, 700.0))
    np.testing.assert_allclose(few.throughput_per_s, 0.5 / (0.75 * 0.001 + 0.25 * 0.1), rtol=1e-3)
    assert few == many


def constantly(response_s):
    return lambda platform, counts, interval_s: Prediction(*[np.full(len(counts), response_s)] * 6)


def test_no_rate_keeps_a_bound_that_an_idle_machine_breaks():
    assert bounded_throughput(constantly(0.3), PLATFORM, [1.0], 0.2) == Bounded(0.0, 0.0, 0.0)


def test_a_method_that_knows_no_queue_keeps_every_rate():
    assert bounded_throughput(constantly(0.1), PLATFORM, [1.0], 0.2) == Bounded(np.inf, np.inf, np.inf)


def test_a_method_that_says_nothing_has_no_throughput():
    found = bounded_throughput(constantly(np.nan), PLATFORM, [1.0], 0.2)
    assert np.isnan([found.throughput_per_s, found.low, found.high]).all()


def test_the_bound_is_first_broken_where_a_prediction_is_not_monotonous():
    def wave(platform, counts, interval_s):
        rate = counts.sum(axis=1) / interval_s
        return Prediction(*[rate] * 3, *[np.where((rate > 10) & (rate < 1000), 1.0, 0.1)] * 3)

    assert bounded_throughput(wave, PLATFORM, [1.0], 0.2).throughput_per_s == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize("mix", [[], [0.0, 0.0], [1.0, -1.0], [np.nan], [[1.0]], [np.inf]])
def test_a_mix_that_is_none_is_refused(mix):
    with pytest.raises(ValueError, match="mix must be one share per request type"):
        bounded_throughput(queue(), PLATFORM, mix, 0.1)


@pytest.mark.parametrize(("name", "value"), [("bound_s", 0.0), ("bound_s", np.nan), ("interval_s", -1.0)])
def test_times_that_are_not_positive_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be positive and finite"):
        bounded_throughput(queue(), PLATFORM, [1.0], **{"bound_s": 0.1, name: value})
