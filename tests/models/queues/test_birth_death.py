"""The law of those present under processor sharing, against Erlang's formula, sums of its terms and a simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.birth_death import present
from models.queues.serve import serve

RATES = st.lists(st.floats(0.1, 2.0), min_size=1, max_size=6).map(np.cumsum)


@settings(max_examples=80)
@given(rates=RATES, load=st.floats(1e-6, 0.95))
def test_the_mean_and_the_slope_are_those_of_the_terms_summed_one_by_one(rates, load):
    work, terms = load * rates[-1], np.arange(3000)
    steps = [work / rates[min(n, rates.size) - 1] for n in terms[1:]]
    weight = np.cumprod([1.0, *steps])
    weight /= weight.sum()
    mean, slope = present(work, rates)
    assert mean == pytest.approx(weight @ terms, rel=1e-9)
    assert slope == pytest.approx((weight @ terms**2 - (weight @ terms) ** 2) / work, rel=1e-6)


@pytest.mark.parametrize("k", [1, 2, 8, 128, 1024])
def test_with_equal_servers_it_is_erlangs(k):
    """Erlang's B by its recursion (Jagerman 1974), and C from it."""
    work, inverse = 0.8 * k, 1.0
    for n in range(1, k + 1):
        inverse = 1.0 + inverse * n / work
    waits = 1.0 / (inverse * (1.0 - 0.8) + 0.8)
    assert present(work, np.arange(1, k + 1))[0] == pytest.approx(work + waits * 0.8 / 0.2, rel=1e-9)


@settings(max_examples=50)
@given(rates=RATES, load=st.floats(0.01, 0.9))
def test_the_slope_is_the_derivative_of_the_mean(rates, load):
    work, step = load * rates[-1], 1e-5 * rates[-1]
    low, high = (present(work + side * step, rates)[0] for side in (-1, 1))
    assert present(work, rates)[1] == pytest.approx((high - low) / (2 * step), rel=1e-4)


@settings(max_examples=50)
@given(steps=st.lists(st.floats(0.05, 1.0), min_size=1, max_size=8))
def test_the_mean_is_convex_where_every_further_processor_adds_no_more_than_the_one_before(steps):
    rates = np.cumsum(sorted(steps, reverse=True))
    _, slope = present(np.linspace(0.0, 0.98, 60) * rates[-1], rates)
    assert (np.diff(slope) > -1e-9 * slope[1:]).all()


@pytest.mark.statistical
def test_a_simulated_station_has_as_many_present_whatever_the_demands():
    """Ten runs of 20,000 requests at 70% load; five standard errors: called false in about 1 of 1,000 sets of seeds."""
    rates, means = np.array([1.0, 2.0, 2.4, 2.6]), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        arrival_s = np.cumsum(rng.exponential(1.0 / (0.7 * 2.6), 20_000))
        demand_s = np.where(rng.random(20_000) < 0.9, 0.5, 5.5)
        served = serve("ps", arrival_s, demand_s, 4, rates=rates)
        means.append((served.departure_s - arrival_s)[2000:-2000].mean() * 0.7 * 2.6)
    error = np.std(means, ddof=1) / np.sqrt(10)
    assert error < 0.05
    assert abs(np.mean(means) - present(0.7 * 2.6, rates)[0]) < 5 * error


def test_nobody_is_present_without_work_and_ever_more_where_too_much_comes():
    mean, slope = present([[0.0, 2.0, 3.0]], [1.0, 2.0])
    np.testing.assert_array_equal(mean, [[0.0, np.inf, np.inf]])
    np.testing.assert_array_equal(slope, [[1.0, np.inf, np.inf]])


@pytest.mark.parametrize(
    ("offered", "rates", "message"),
    [
        (-1.0, [1.0], "offered must not be negative, got -1"),
        (np.nan, [1.0], "offered must not be negative, got nan"),
        (1.0, [], r"rates must be positive and finite, at least one, got \[\]"),
        (1.0, [1.0, 0.0], r"rates must be positive and finite, at least one, got \[1.0, 0.0\]"),
    ],
)
def test_what_cannot_be_is_refused(offered, rates, message):
    with pytest.raises(ValueError, match=message):
        present(offered, rates)
