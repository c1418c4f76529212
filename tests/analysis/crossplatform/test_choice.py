"""Choosing a platform: ranks, losses and wrong choices against enumeration by hand, and how sure a choice is."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from analysis.crossplatform.choice import (
    compare,
    interval_draws,
    loss_of_best,
    losses,
    probability_best,
    ranks,
    rated_power_w,
    wrong_choices,
)
from analysis.crossplatform.evidence import Prediction
from analysis.crossplatform.throughput import Bounded
from models.platforms import PLATFORMS

worths = st.lists(st.integers(1, 1000), min_size=6, max_size=7, unique=True)


def top(subset, worth, k):
    return set(sorted(subset, key=lambda platform: -worth[platform])[:k])


@given(worths, st.randoms())
def test_wrong_choices_are_those_counted_one_by_one(actual, random):
    predicted = random.sample(actual, len(actual))
    wrong = np.zeros(3)
    subsets = list(combinations(range(len(actual)), 5))
    for subset in subsets:
        for k in (1, 2, 3):
            wrong[k - 1] += top(subset, actual, k) != top(subset, predicted, k)
    np.testing.assert_allclose(wrong_choices(actual, predicted), wrong / len(subsets))


@given(worths, st.randoms())
def test_the_loss_of_the_best_is_that_of_every_subset_on_average(actual, random):
    predicted = random.sample(actual, len(actual))
    lost = []
    for subset in combinations(range(len(actual)), 5):
        chosen = max(subset, key=lambda i: predicted[i])
        lost.append(1 - actual[chosen] / max(actual[i] for i in subset))
    assert loss_of_best(actual, predicted) == pytest.approx(np.mean(lost))


@given(worths)
def test_nothing_is_lost_or_wrong_by_the_truth(actual):
    assert not wrong_choices(actual, actual).any()
    assert loss_of_best(actual, actual) == 0
    assert not losses(actual, actual).any()


def test_losses_go_by_ranks():
    np.testing.assert_allclose(losses([10.0, 8.0, 5.0], [1.0, 3.0, 2.0]), [1 - 8 / 10, 1 - 5 / 8, 1 - 10 / 5])


def test_a_choice_among_worthless_platforms_loses_nothing():
    assert loss_of_best([0.0, 0.0, 1.0], [2.0, 1.0, 3.0], size=2) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses([1.0], [1.0, 2.0]), "must be of the same platforms"),
        (lambda: losses([-1.0, 1.0], [1.0, 2.0]), "must not be negative, got -1"),
        (lambda: wrong_choices([1.0, 2.0], [1.0, 2.0], size=5), "size must be 1 to 2, got 5"),
        (lambda: wrong_choices([1.0, 2.0], [1.0, 2.0], size=2, top=(3,)), "top must be 1 to 2, got 3"),
        (lambda: loss_of_best([1.0, 2.0], [1.0, 2.0], size=0), "size must be 1 to 2, got 0"),
        (lambda: probability_best([]), "draws must be a table"),
        (lambda: compare(clocks, {}, [1.0], 0.2), "platforms to choose from are none"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_of_equals_the_first_is_ranked_first_and_the_unknown_last():
    assert ranks([1.0, np.nan, 2.0, 2.0, np.inf]).tolist() == [4, 5, 2, 3, 1]


@pytest.mark.statistical
def test_draws_have_the_interval_they_were_made_from():
    """Each share is of 20,000 draws: five standard deviations, a false alarm once in a million."""
    drawn = interval_draws(np.random.default_rng(3), [Bounded(10.0, 8.0, 13.0)], 20_000)[:, 0]
    for share, end in ((0.05, 8.0), (0.5, 10.0), (0.95, 13.0)):
        assert np.mean(drawn < end) == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 20_000))


@pytest.mark.statistical
def test_the_better_of_two_wins_as_often_as_two_log_normals_say():
    """A share of 20,000 draws: five standard deviations, a false alarm once in a million."""
    pair = [Bounded(10.0, 10 / 1.2, 12.0), Bounded(11.0, 11 / 1.3, 14.3)]
    won = probability_best(interval_draws(np.random.default_rng(4), pair, 20_000))
    sd = np.hypot(np.log(1.2), np.log(1.3)) / norm.ppf(0.95)
    assert won[1] == pytest.approx(norm.cdf(np.log(1.1) / sd), abs=5 * np.sqrt(0.25 / 20_000))
    assert won.sum() == pytest.approx(1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("value", "quantiles"),
    [
        (Bounded(10.0, 0.0, 13.0), {0.04: 0.0, 0.5: 10.0, 0.95: 13.0}),
        (Bounded(0.0, 0.0, 7.0), {0.04: 0.0, 0.49: 0.0, 0.95: 7.0}),
        (Bounded(10.0, 8.0, np.inf), {0.05: 8.0, 0.5: 10.0, 0.95: 12.5}),
    ],
    ids=["low end 0", "median 0", "no high end"],
)
def test_draws_of_a_side_that_ends_at_0_or_nowhere_have_the_rest_of_their_interval(value, quantiles):
    """Quantiles of 40,000 draws, within a twentieth of themselves: six standard deviations at least."""
    drawn = interval_draws(np.random.default_rng(6), [value], 40_000)[:, 0]
    np.testing.assert_allclose(np.quantile(drawn, list(quantiles)), list(quantiles.values()), rtol=0.05, atol=1e-9)
    assert drawn.min() >= 0
    assert len(np.unique(drawn)) > 1000


def test_what_serves_nothing_is_never_the_best():
    def only_piii_answers_in_time(platform, counts, interval_s):
        made = clocks(platform, counts, interval_s)
        late = 0.0 if platform.name == "piii" else 1.0
        ends = (made.response_time_s, made.response_low_s, made.response_high_s)
        return Prediction(*[made.service_time_s] * 3, *(each + late for each in ends))

    pair = {name: PLATFORMS[name] for name in ("piii", "pd4")}
    assert compare(only_piii_answers_in_time, pair, [1.0], 0.2)["probability_best"].tolist() == [1.0, 0.0]
    assert compare(only_piii_answers_in_time, pair, [1.0], 0.01)["probability_best"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("sure", [0.0, np.inf, 5.0])
def test_a_throughput_without_an_interval_is_drawn_as_it_is(sure):
    drawn = interval_draws(np.random.default_rng(5), [Bounded(sure, sure, sure), Bounded(4.0, np.nan, np.nan)], 10)
    np.testing.assert_array_equal(drawn, np.tile([sure, 4.0], (10, 1)))


def test_a_platform_of_unknown_worth_is_never_the_best():
    assert probability_best([[np.nan, 1.0], [np.nan, np.nan], [-1.0, 1.0]]).tolist() == [0.0, 2 / 3]


def clocks(platform, counts, interval_s, spread=1.2):
    """Half a machine's clock cycles are what it serves, ten million a request, under any bound."""
    used = 1e7 / (platform.vcpus * platform.base_frequency_hz) * counts.sum(axis=1) / interval_s
    nothing = np.full(len(counts), np.nan)
    ends = [np.where(factor * used < 0.5, 0.1, 1.0) for factor in (1.0, 1 / spread, spread)]
    return Prediction(nothing, nothing, nothing, *ends)


def test_a_comparison_ranks_by_throughput_over_watts():
    names = ("piii", "pd4", "xeon_2h_2c_2p")
    table = compare(clocks, {name: PLATFORMS[name] for name in names}, [2.0, 1.0], 0.2)
    expected = {
        name: 0.5 * PLATFORMS[name].vcpus * PLATFORMS[name].base_frequency_hz / 1e7 / PLATFORMS[name].tdp_w
        for name in names
    }
    assert table["platform"].tolist() == sorted(names, key=lambda name: -expected[name])
    np.testing.assert_allclose(table["throughput_per_watt"], sorted(expected.values(), reverse=True), rtol=1e-3)
    np.testing.assert_allclose(table["high"] / table["throughput_per_s"], 1.2, rtol=1e-3)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["probability_best"].is_monotonic_decreasing
    assert table["probability_best"].sum() == pytest.approx(1)


def test_watts_are_the_callers_choice():
    asked = {name: PLATFORMS[name] for name in ("piii", "pd4")}
    rated, busy = (compare(clocks, asked, [1.0], 0.2, watts) for watts in (rated_power_w, lambda p: p.peak_power_w))
    assert rated.set_index("platform").loc["pd4", "watts"] == PLATFORMS["pd4"].tdp_w
    assert busy.set_index("platform").loc["pd4", "watts"] == PLATFORMS["pd4"].peak_power_w


def test_how_sure_is_not_said_without_intervals():
    def bare(platform, counts, interval_s):
        made = clocks(platform, counts, interval_s)
        nothing = made.service_time_s
        return Prediction(nothing, nothing, nothing, made.response_time_s, nothing, nothing)

    table = compare(bare, {name: PLATFORMS[name] for name in ("piii", "pd4")}, [1.0], 0.2)
    assert table["probability_best"].isna().all()
    assert table["rank"].tolist() == [1, 2]


def test_the_same_comparison_gives_the_same_answer():
    asked = {name: PLATFORMS[name] for name in ("piii", "pres")}
    assert compare(clocks, asked, [1.0], 0.2).equals(compare(clocks, asked, [1.0], 0.2))
