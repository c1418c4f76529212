"""The square-root law of distances over samples, and subsets of machines against the whole."""

import math

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.sample_size import sqrt_law, subset_distances
from analysis.profiling.stability import expected_distance
from analysis.statistics import NotEnoughDataError
from models.randomness import stream

SHARES = 1 / np.arange(1, 41) / np.sum(1 / np.arange(1, 41))
SIZES = np.array([500, 1000, 2000, 4000, 8000, 16_000, 32_000])


@pytest.mark.statistical
def test_independent_samples_follow_the_square_root_law_with_the_closed_forms_constant():
    """Constant within 3%, exponent 0.50 ± 0.03; over 200 draws of 7 sizes their errors are 0.3% and 0.003."""
    rng = stream(1, "law")
    samples = np.repeat(SIZES, 200)
    distances = np.array([np.abs(rng.multinomial(n, SHARES) / n - SHARES).sum() for n in samples])
    law = sqrt_law(samples.astype(float), distances)
    assert law.sqrt_constant == pytest.approx(expected_distance(SHARES, 1.0), rel=0.03)
    assert law.exponent == pytest.approx(0.5, abs=0.03)
    assert abs(law.exponent - 0.5) < 5 * law.exponent_error
    assert law.at(2000.0) == pytest.approx(expected_distance(SHARES, 2000.0), rel=0.04)


def machines(rng, count, concentration, each=100):
    own = rng.dirichlet(SHARES * concentration, count)
    counts = np.array([rng.multinomial(each, share) for share in own])
    machine, function = np.nonzero(counts)
    seen = counts[machine, function]
    return pd.DataFrame({"function": function, "machine": machine, "samples": seen, "value": seen})


@pytest.mark.statistical
def test_subsets_of_alike_machines_are_as_far_as_the_closed_form_says():
    """Machines that differ by chance alone: mean ratio to the closed form within 8%; standard error 2%."""
    rng = stream(2, "alike")
    found = subset_distances(rng, machines(rng, 300, 1e7), [0.1, 0.5], draws=40)
    ratio = (found["distance"] / found["closed_form"]).groupby(found["fraction"]).mean()
    assert ratio.to_numpy() == pytest.approx(1.0, abs=0.08)


@pytest.mark.statistical
def test_subsets_of_differing_machines_are_farther_by_the_root_of_the_design_effect():
    """With the beta-binomial law's design effect d, √d times the closed form within 15%, over 4 standard errors."""
    rng = stream(3, "differing")
    found = subset_distances(rng, machines(rng, 300, 30.0), [0.1, 0.3], draws=40)
    effect = 1 + (100 - 1) / (30.0 + 1)
    assert (found["distance"] / found["closed_form"]).mean() == pytest.approx(math.sqrt(effect), rel=0.15)


def test_all_machines_are_the_whole():
    rng = stream(4, "whole")
    found = subset_distances(rng, machines(rng, 20, 30.0), [1.0], draws=2, k=5)
    assert found["distance"].to_numpy() == pytest.approx(0.0, abs=1e-12)
    assert found["closed_form"].tolist() == [0.0, 0.0]


def test_what_is_wrong_is_said():
    with pytest.raises(NotEnoughDataError, match="numbers of samples"):
        sqrt_law(np.array([5.0, 5.0]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="above 0"):
        sqrt_law(np.array([5.0, 0.0]), np.array([1.0, 2.0]))
    table = machines(stream(5, "none"), 4, 30.0)
    with pytest.raises(ValueError, match="1 to 4 clusters"):
        subset_distances(stream(6, "none"), table, [0.01])
