"""Draws that belong to keys: against a twin in plain integers, and as independent as they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.profiling.draws import keys_of, mixed, normals, uniforms
from tests.helpers.programs_world import key_of, mix, normal, uniform

words = st.integers(0, 2**64 - 1)


@given(words, words)
def test_draws_are_those_of_plain_integers(first, second):
    a, b = np.array([first], np.uint64), np.array([second], np.uint64)
    assert int(mixed(a, b)[0]) == mix(first, second)
    assert uniforms(a)[0] == uniform(first)
    assert normals(a)[0] == pytest.approx(normal(first), abs=1e-12)


@given(st.integers(0, 99), st.integers(0, 10**6), st.integers(0, 10**6))
def test_keys_belong_to_seed_name_and_numbers(seed, first, second):
    made = keys_of(seed, "some name", np.array([first]), np.array([second]))
    assert int(made[0]) == key_of(seed, "some name", first, second)


@pytest.mark.statistical
def test_draws_of_neighbouring_numbers_are_independent_and_of_their_law():
    """Two Kolmogorov-Smirnov tests and three correlations of 100,000 draws, at one in 10,000 each: once in 2,000."""
    keys = keys_of(3, "test", np.arange(1000)[:, None], np.arange(100))
    uniform_draws, drawn = uniforms(keys), normals(keys)
    assert stats.kstest(uniform_draws.ravel(), "uniform").pvalue > 1e-4
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 1e-4
    for other in (drawn[1:, :-1], drawn[:-1, 1:], drawn[1:, 1:]):
        assert abs(np.corrcoef(drawn[:-1, :-1].ravel(), other.ravel())[0, 1]) < 3.9 / np.sqrt(other.size)
    assert np.unique(keys).size == keys.size
