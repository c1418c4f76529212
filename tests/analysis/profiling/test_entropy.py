"""Entropy of independent and of clustered samples: corrections, errors, bias."""

import math

import numpy as np
import pytest
from scipy.stats import entropy as reference

from analysis.profiling.entropy import clustered_entropy, entropy
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.clustered_counts import SHARES, clustered, slow_variances, table


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
    """100 profiles: mean within 0.02 of the truth (4 errors), spread within 25% of the stated error (3 errors)."""
    rng = stream(2, "clustered entropy")
    found = [clustered_entropy(table(clustered(rng))) for _ in range(100)]
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


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="finite and not negative"):
        entropy(np.array([-1.0]))
    with pytest.raises(ValueError, match="correction must be"):
        entropy(np.array([1.0]), correction="other")
    with pytest.raises(NotEnoughDataError, match="1 samples are needed"):
        entropy(np.zeros(3))
