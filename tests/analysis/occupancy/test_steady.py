"""The warm-up is what a search finds, and intervals cover known means as often as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import binom

from analysis.occupancy.steady import UnsteadyError, batch_means, steady, until, warm_up
from analysis.statistics import NotEnoughDataError


def searched(series):
    """MSER-5 by its definition: every truncation tried, every sum written out."""
    z = [sum(series[i : i + 5]) / 5 for i in range(0, len(series) - 4, 5)]
    scores = []
    for d in range(len(z) // 2 + 1):
        rest = z[d:]
        middle = sum(rest) / len(rest)
        scores.append(sum((each - middle) ** 2 for each in rest) / len(rest) ** 2)
    return scores


@given(st.lists(st.integers(-9, 9), min_size=20, max_size=120))
def test_the_truncation_is_the_one_that_a_search_over_all_finds(values):
    scores = searched([float(value) for value in values])
    found = warm_up(np.array(values, np.float64))
    assert scores[found.dropped // 5] == pytest.approx(min(scores), abs=1e-9)
    assert found.settled == (found.dropped // 5 < (len(values) // 5) // 2)


def test_a_large_level_loses_no_digits():
    rng = np.random.default_rng(1)
    series = np.concatenate((rng.normal(3.0, 1.0, 100), rng.normal(0.0, 1.0, 900)))
    assert warm_up(1e9 + series) == warm_up(series)


def test_a_series_that_keeps_rising_does_not_settle():
    assert not warm_up(np.arange(200.0)).settled


def test_a_transient_is_dropped_and_the_mean_is_that_of_the_rest():
    rng = np.random.default_rng(2)
    series = 5.0 + rng.normal(size=5000) + 40.0 * 0.98 ** np.arange(5000)
    result = steady(series)
    assert result.settled
    assert 100 <= result.dropped <= 600
    assert result.low <= 5.0 <= result.high
    assert batch_means(series).mean > 5.3


def test_a_warm_up_longer_than_a_tenth_is_dropped_where_it_stands_out():
    rng = np.random.default_rng(2)
    series = np.concatenate([rng.normal(30.0, 1.0, 900), rng.normal(5.0, 1.0, 2100)])
    result = steady(series)
    assert 900 <= result.dropped <= 1100
    assert result.low <= 5.0 <= result.high


@pytest.mark.statistical
def test_a_stationary_series_seldom_loses_more_than_its_first_tenth():
    """Of 400 at most two (false alarm 0.04%): a batch stands out in one of 3,000, at 3 deviations in one of 50."""
    series = np.random.default_rng(15).normal(size=(400, 2_000))
    assert sum(steady(row).dropped != 200 for row in series) <= 2


@pytest.mark.statistical
def test_the_mean_of_a_stationary_series_is_not_biased_by_where_it_begins():
    """M/M/1 at 80%, from empty: 300 means of 5,400 responses, 5 in the long run; within 4 standard errors.

    Cut where MSER-5 says they are 3% too low, seven standard errors.
    """
    rng = np.random.default_rng(14)
    means = [steady(waits(rng, 5_400, 0.8) + 0.8).mean for _ in range(300)]
    assert abs(np.mean(means) - 4.0) <= 4 * np.std(means) / np.sqrt(300)


def test_an_interval_is_that_of_the_batches_by_hand():
    series = np.array([7.0, 1.0, 3.0, 2.0, 4.0, 6.0, 8.0])
    result = batch_means(series, level=0.9, batches=3)
    # Batches 1 3 | 2 4 | 6 8 have means 2, 3, 7: mean 4, variance 7; t with 2 degrees at 0.95 is 2.919986.
    assert result.mean == 4.0
    assert result.half_width == pytest.approx(2.919986 * np.sqrt(7 / 3), rel=1e-6)
    # Squared steps 1 + 16 over twice the squared deviations, 14.
    assert result.correlation == pytest.approx(1 - 17 / 28)
    assert (result.dropped, result.observations) == (1, 7)


def test_the_unit_changes_mean_and_width_by_its_factor_and_nothing_else():
    series = np.random.default_rng(3).exponential(size=3000)
    one, thousand = steady(series), steady(1000 * series)
    assert thousand.mean == pytest.approx(1000 * one.mean)
    assert thousand.half_width == pytest.approx(1000 * one.half_width)
    assert (one.dropped, one.independent) == (thousand.dropped, thousand.independent)


def autoregressive(rng, n, repeats, memory):
    """Stationary AR(1) series of mean 0 and variance 1, one per row."""
    noise = rng.normal(size=(repeats, n)) * np.sqrt(1 - memory**2)
    noise[:, 0] = rng.normal(size=repeats)
    return lfilter([1.0], [1.0, -memory], noise, axis=1)


def covered(series, truth, **settings):
    return sum(result.low <= truth <= result.high for result in (steady(row, **settings) for row in series))


def bounds(repeats, level, false_alarm=0.001):
    return binom.ppf(false_alarm / 2, repeats, level), binom.ppf(1 - false_alarm / 2, repeats, level)


@pytest.mark.statistical
def test_intervals_cover_the_mean_of_an_autoregressive_series_as_often_as_they_say():
    """False-alarm rate 0.1%: the binomial bounds of 600 intervals at 90%, 20 batches of 500 at a memory of 0.8."""
    series = 3.0 + autoregressive(np.random.default_rng(4), 10_000, 600, 0.8)
    low, high = bounds(600, 0.9)
    assert low <= covered(series, 3.0, level=0.9) <= high


@pytest.mark.statistical
def test_the_half_width_is_that_of_the_known_variance_of_the_mean():
    """False-alarm rate below 0.1%: 400 half-widths average to 1 ± 4 standard errors of their spread.

    The variance of the mean of n values is about (1 + a) / (1 - a) / n; the mean of Student's half-widths is the t
    quantile times the mean of a chi variable with 19 degrees of freedom over √19, 0.98693.
    """
    series = autoregressive(np.random.default_rng(5), 20_000, 400, 0.5)
    widths = np.array([batch_means(row).half_width for row in series])
    relative = widths / (2.093024 * 0.986934 * np.sqrt(3 / 20_000))
    assert abs(relative.mean() - 1) <= 4 * relative.std() / np.sqrt(400)


@pytest.mark.statistical
def test_short_batches_of_a_long_memory_are_seen_to_depend_on_each_other():
    """False-alarm rate below 0.1%: at least 90 of 100 are caught, where each is with a chance of 98%.

    Twenty batches of 20 at a memory of 0.99 are nearly as correlated as single values.
    """
    series = autoregressive(np.random.default_rng(6), 400, 100, 0.99)
    assert sum(not batch_means(row).independent for row in series) >= 90


@pytest.mark.statistical
def test_independent_batches_are_seldom_taken_for_dependent():
    """False-alarm rate 0.1%: binomial bounds of 600 tests at 5%, 3 to 7% allowed as the test is approximate."""
    series = np.random.default_rng(7).normal(size=(600, 400))
    caught = sum(not batch_means(row).independent for row in series)
    assert binom.ppf(0.0005, 600, 0.03) <= caught <= binom.ppf(0.9995, 600, 0.07)


def waits(rng, customers, utilisation):
    """Waiting times at one server from empty, by Lindley's recursion as a running maximum."""
    steps = rng.exponential(utilisation, customers) - rng.exponential(1.0, customers)
    walk = np.concatenate(([0.0], np.cumsum(steps)[:-1]))
    return walk - np.minimum.accumulate(walk)


@pytest.mark.statistical
def test_intervals_cover_the_waiting_time_of_one_exponential_server():
    """False-alarm rate 0.1%: the binomial bounds of 300 intervals, true coverage of 86 to 90% allowed for 90%.

    From empty, utilisation 0.5; the mean wait is utilisation² / (1 − utilisation) mean gaps (Erlang). Batches of 1000
    waits are still a little skew and correlated, which costs coverage
    some 2 points.
    """
    rng = np.random.default_rng(8)
    hits = covered([waits(rng, 20_000, 0.5) for _ in range(300)], 0.5, level=0.9)
    assert bounds(300, 0.86)[0] <= hits <= bounds(300, 0.9)[1]


def longer(series, first=500):
    """The beginnings of a series, each twice as long as the last."""
    while first < 2 * len(series):
        yield series[:first]
        first *= 2


@pytest.mark.statistical
def test_a_run_that_stops_at_a_precision_has_it_and_covers_nearly_as_often_as_it_says():
    """False-alarm rate 0.1%: binomial bounds of 150 intervals, whose coverage stopping lowers to some 93% of 95%.

    Chances of 90 to 95% are allowed.
    """
    hits, rng = 0, np.random.default_rng(9)
    for _ in range(150):
        result = until(longer(rng.exponential(2.0, 16_000)), 0.05)
        assert result.half_width <= 0.05 * result.mean
        hits += result.low <= 2.0 <= result.high
    assert bounds(150, 0.9)[0] <= hits <= bounds(150, 0.95)[1]


def test_a_narrow_interval_of_dependent_batches_is_not_enough():
    series = 100.0 + autoregressive(np.random.default_rng(12), 64_000, 1, 0.99)[0]
    first = steady(series[:500])
    assert first.half_width < 1.0
    assert not first.independent
    result = until(longer(series), 0.01)
    assert result.independent
    assert result.observations > 500


def test_too_little_says_how_much_would_do_and_that_does():
    rng = np.random.default_rng(10)
    with pytest.raises(NotEnoughDataError) as caught:
        until(longer(rng.normal(10.0, 20.0, 2000)), 0.01)
    assert caught.value.have == 2000
    result = until(longer(rng.normal(10.0, 20.0, 4 * caught.value.needed)), 0.011)
    assert result.half_width <= 0.11


def test_nothing_longer_is_asked_for_than_does():
    asked = []
    series = np.random.default_rng(11).normal(10.0, 1.0, 8000)
    result = until((asked.append(n) or series[:n] for n in (1000, 2000, 4000, 8000)), 0.0055)
    assert asked == [1000, 2000]
    assert result.observations == 2000


def test_series_too_short_for_an_interval_are_only_a_beginning():
    series = np.random.default_rng(11).normal(10.0, 1.0, 640)
    assert until(longer(series, first=10), 0.5).observations == 40
    for none in ([], [series[:39]]):
        with pytest.raises(NotEnoughDataError, match=f"^40 observations are needed, {len(none) and 39} given$"):
            until(none, 0.5)


def test_an_overloaded_server_has_no_steady_state_and_one_that_is_not_is_not_taken_for_it():
    rng = np.random.default_rng(13)
    with pytest.raises(UnsteadyError, match=r"^the mean keeps growing, to \S+ with \d+ observations: no steady state"):
        until(longer(waits(rng, 64_000, 1.2)), 0.02)
    with pytest.raises(NotEnoughDataError):
        until(longer(waits(rng, 64_000, 1.2)), 0.02, stable=True)
    for _ in range(20):
        with pytest.raises(NotEnoughDataError):
            until(longer(waits(rng, 64_000, 0.8)), 0.001)


def test_a_mean_of_zero_has_no_relative_precision():
    with pytest.raises(NotEnoughDataError):
        until(longer(np.tile([1.0, -1.0], 100), first=100), 0.1)


def test_a_constant_series_has_an_interval_of_no_width():
    result = steady(np.full(100, 4.0))
    assert (result.mean, result.half_width, result.dropped, result.independent) == (4.0, 0.0, 20, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: warm_up(np.zeros(19)), "20 observations are needed, 19 given"),
        (lambda: warm_up(np.zeros(0)), "20 observations are needed, 0 given"),
        (lambda: warm_up(np.array([1.0, np.nan] * 20)), "series: value 1 is nan"),
        (lambda: warm_up(np.zeros(40), batch=0), "batch: 0 is below 1"),
        (lambda: warm_up(np.zeros((4, 40))), "series: 2 dimensions, must have 1"),
        (lambda: batch_means(np.zeros(19)), "20 observations are needed, 19 given"),
        (lambda: batch_means(np.zeros(40), level=1.0), "level: 1.0 is not between 0 and 1"),
        (lambda: batch_means(np.zeros(40), batches=2), "batches: 2 is below 3"),
        (lambda: steady(np.zeros(40), batches=0), "batches: 0 is below 3"),
        (lambda: steady(np.arange(21.0)), "40 observations are needed, 21 given"),
        (lambda: until([], 0.0), "half_width_share: 0.0 is not above 0"),
    ],
)
def test_what_cannot_be_is_said(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()
