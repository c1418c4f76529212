"""Manhattan distance, days beside each other, and what sampling alone makes of them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cityblock
from scipy.stats import binom
from scipy.stats import entropy as reference

from analysis.profiling.stability import (
    clustered_entropy,
    entropy,
    expected_distance,
    manhattan,
    periods,
)
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.clustered_counts import SHARES, clustered, slow_variances, table


def test_the_whole_distance_is_another_librarys():
    rng = stream(4, "cityblock")
    x, y = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    assert manhattan(pd.Series(x), pd.Series(y)) == pytest.approx(cityblock(x, y))


def test_the_k_largest_of_x_count_and_what_y_lacks_is_zero():
    x = pd.Series({"a": 5.0, "b": 3.0, "c": 2.0})
    y = pd.Series({"b": 1.0, "z": 9.0})
    assert manhattan(x, y, k=1) == pytest.approx(0.5)
    assert manhattan(x, y, k=2) == pytest.approx(0.5 + 0.2)
    assert manhattan(x, y, k=99) == pytest.approx(0.5 + 0.2 + 0.2)
    assert manhattan(x, y) == pytest.approx(0.5 + 0.2 + 0.2 + 0.9)


def test_the_closed_form_is_the_binomial_law_for_many_samples():
    n = 20_000
    exact = sum(binom(n, p).expect(lambda k, p=p: abs(k / n - p)) for p in SHARES[:10])
    assert expected_distance(SHARES, n, k=10) == pytest.approx(exact, rel=0.01)


@pytest.mark.statistical
def test_the_closed_form_for_two_samples_and_for_a_part_of_the_whole():
    """Means of 400 distances within 3% of the closed forms; the standard error is 0.7%."""
    rng = stream(5, "closed form")
    one, other = (rng.multinomial(n, SHARES, 400) / n for n in (5000, 2000))
    assert np.abs(one - other).sum(axis=1).mean() == pytest.approx(
        expected_distance(SHARES, 5000, against=2000), rel=0.03
    )
    whole = rng.multinomial(20_000, SHARES)
    part = rng.multivariate_hypergeometric(whole, 8000, 400) / 8000
    found = np.abs(part - whole / 20_000).sum(axis=1).mean()
    assert found == pytest.approx(expected_distance(whole / 20_000, 8000, fraction=0.4), rel=0.03)


@pytest.mark.statistical
def test_what_sampling_alone_makes_is_said_for_clustered_samples():
    """40 pairs of samples of one profile: mean distance within 6% of the mean expected, over 2.5 standard errors."""
    rng = stream(6, "pairs")
    pairs = [pd.concat([table(clustered(rng), day=day) for day in (0, 1)], ignore_index=True) for _ in range(40)]
    second = pd.concat([periods(pair, cluster="machine").iloc[[1]] for pair in pairs])
    assert second["previous"].mean() == pytest.approx(second["previous_expected"].mean(), rel=0.06)
    assert second["previous"].mean() > 1.5 * expected_distance(SHARES, 80 * 150, against=80 * 150)


def test_days_are_compared_with_the_day_before_and_with_all():
    rng = stream(8, "days")
    counts = [clustered(rng, machines=30) for _ in range(3)]
    days = pd.concat([table(one, day=day) for day, one in enumerate(counts)], ignore_index=True)
    found = periods(days, cluster="machine").set_index("day")
    shares = [one.sum(axis=0) / one.sum() for one in counts]
    mean = sum(one.sum(axis=0) for one in counts) / sum(one.sum() for one in counts)
    assert np.isnan(found.loc[0, "previous"])
    assert found.loc[2, "previous"] == pytest.approx(cityblock(shares[2], shares[1]))
    assert found.loc[1, "mean"] == pytest.approx(cityblock(shares[1], mean))
    assert found["samples"].tolist() == [one.sum() for one in counts]
    assert (found["mean_expected"] < found["previous_expected"].max()).all()


def unlike_days():
    """Three days of unequal size, six entries that are all seen on each."""
    rng, shares = stream(9, "unlike days"), np.full(6, 1 / 6)
    counts = [clustered(rng, shares, machines, 20.0) for machines in (10, 20, 60)]
    days = pd.concat([table(one, day=day) for day, one in enumerate(counts)], ignore_index=True)
    return counts, periods(days, cluster="machine").set_index("day")


def test_what_sampling_makes_of_a_day_and_the_mean_that_it_is_part_of():
    """The day counts 1 − w in the difference and every other one w: (1 − w)² v + Σ w² v of the others."""
    counts, found = unlike_days()
    weight = np.array([one.sum() for one in counts]) / sum(one.sum() for one in counts)
    variance = np.array([slow_variances(one) for one in counts])
    for day in range(3):
        factor = np.where(np.arange(3) == day, 1 - weight, weight) ** 2
        expected = math.sqrt(2 / math.pi) * np.sqrt(factor @ variance).sum()
        assert found.loc[day, "mean_expected"] == pytest.approx(expected)


def test_what_sampling_makes_of_two_days_and_what_a_day_is_worth():
    counts, found = unlike_days()
    variance = [slow_variances(one) for one in counts]
    for day, one in enumerate(counts):
        share = one.sum(axis=0) / one.sum()
        effective = np.sum(share * (1 - share)) / variance[day].sum()
        assert found.loc[day, "effective_samples"] == pytest.approx(effective)
        assert found.loc[day, "design_effect"] == pytest.approx(one.sum() / effective)
        if day:
            expected = math.sqrt(2 / math.pi) * np.sqrt(variance[day] + variance[day - 1]).sum()
            assert found.loc[day, "previous_expected"] == pytest.approx(expected)


@pytest.mark.statistical
def test_days_of_one_profile_are_as_far_from_their_mean_as_is_said():
    """16 draws of days of 10, 20 and 60 machines: mean distance within 20% of that expected, over 2.4 errors."""
    rng, shares = stream(10, "around the mean"), np.full(6, 1 / 6)
    found = []
    for _ in range(16):
        days = [table(clustered(rng, shares, machines, 20.0), day=day) for day, machines in enumerate((10, 20, 60))]
        found.append(periods(pd.concat(days, ignore_index=True), cluster="machine")[["mean", "mean_expected"]])
    ratio = sum(one["mean"] for one in found) / sum(one["mean_expected"] for one in found)
    assert ratio.tolist() == pytest.approx([1.0] * 3, abs=0.2)


def test_what_is_wrong_is_said():
    empty = pd.DataFrame({"f": [], "day": [], "visit": [], "samples": [], "value": []})
    with pytest.raises(NotEnoughDataError, match="no samples: at least 1 is needed"):
        periods(empty)
    with pytest.raises(ValueError, match="k must be at least 1"):
        manhattan(pd.Series({"a": 1.0}), pd.Series({"a": 1.0}), k=0)
    with pytest.raises(NotEnoughDataError):
        manhattan(pd.Series({"a": 1.0}), pd.Series({"a": 0.0}))


def test_plain_entropy_is_another_librarys():
    counts = np.array([5.0, 0.0, 17.0, 3.0, 1.0])
    assert entropy(counts, correction="none") == pytest.approx(reference(counts))
    assert entropy(counts, correction="none", bits=True) == pytest.approx(reference(counts, base=2))


@pytest.mark.statistical
@pytest.mark.parametrize(("correction", "most"), [("miller-madow", 0.06), ("chao-shen", 0.05)])
def test_corrections_take_away_most_of_the_bias(correction, most):
    """100 samples of 30 entries, 500 times: plain is 0.13 too small, corrected within `most`; standard error 0.004."""
    rng = stream(1, "bias")
    counts = rng.multinomial(100, SHARES, 500).astype(float)
    truth = float(reference(SHARES))
    assert np.mean([entropy(row, correction="none") for row in counts]) < truth - 0.08
    assert abs(np.mean([entropy(row, correction=correction) for row in counts]) - truth) < most


def test_chao_and_shen_is_the_formula_written_out():
    counts = [4, 1, 1, 2]
    n, coverage, expected = 8, 1 - 2 / 8, 0.0
    for count in counts:
        p = coverage * count / n
        expected -= p * math.log(p) / (1 - (1 - p) ** n)
    assert entropy(np.array(counts, dtype=float), correction="chao-shen") == pytest.approx(expected)


@pytest.mark.statistical
def test_the_clustered_entropy_has_the_error_and_bias_that_it_says():
    """60 profiles: mean within 0.02 of the truth (3 errors), spread within 25% of the stated error (2.4 errors)."""
    rng = stream(2, "clustered entropy")
    found = [clustered_entropy(table(clustered(rng))) for _ in range(60)]
    truth = float(reference(SHARES))
    assert abs(np.mean([one.value for one in found]) - truth) < 0.02
    assert np.mean([one.plain for one in found]) < np.mean([one.value for one in found])
    spread = np.std([one.value for one in found])
    assert np.mean([one.standard_error for one in found]) == pytest.approx(spread, rel=0.25)


def test_bits_are_nats_over_the_logarithm_of_two():
    data = table(clustered(stream(3, "bits")))
    nats, bits = clustered_entropy(data), clustered_entropy(data, bits=True)
    for name in ("value", "plain", "standard_error"):
        assert getattr(bits, name) == pytest.approx(getattr(nats, name) / math.log(2))


def test_error_and_bias_of_the_entropy_are_the_delta_method_written_out():
    counts = clustered(stream(11, "delta"), np.array([0.5, 0.3, 0.2]), machines=8)
    share, total = counts.sum(axis=0) / counts.sum(), counts.sum()
    found = clustered_entropy(table(counts))
    scores = [sum(-count * math.log(p) for count, p in zip(row, share, strict=True)) for row in counts]
    residuals = [score - found.plain * row.sum() for score, row in zip(scores, counts, strict=True)]
    squares = [(one / total) ** 2 / (1 - row.sum() / total) for one, row in zip(residuals, counts, strict=True)]
    assert found.standard_error == pytest.approx(math.sqrt(sum(squares)))
    assert found.value - found.plain == pytest.approx(np.sum(slow_variances(counts) / share) / 2)


def test_counts_that_are_no_counts_have_no_entropy():
    with pytest.raises(ValueError, match="finite and not negative"):
        entropy(np.array([-1.0]))
    with pytest.raises(ValueError, match="correction must be"):
        entropy(np.array([1.0]), correction="other")
    with pytest.raises(NotEnoughDataError, match="no samples: at least 1 is needed"):
        entropy(np.zeros(3))
