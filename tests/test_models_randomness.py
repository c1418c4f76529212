"""A stream belongs to its name and seed, and to nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.randomness import key, stream


@given(st.integers(0, 2**63), st.text(max_size=20))
def test_the_same_name_and_seed_give_the_same_draws(seed, name):
    np.testing.assert_array_equal(stream(seed, name).random(5), stream(seed, name).random(5))


@given(st.lists(st.tuples(st.integers(0, 50), st.text(max_size=3)), min_size=2, max_size=20, unique=True))
def test_other_names_or_seeds_give_other_draws(owners):
    assert len({stream(seed, name).random() for seed, name in owners}) == len(owners)


def test_seed_zero_is_a_seed():
    assert stream(0, "drains").random() == stream(0, "drains").random() != stream(1, "drains").random()


def test_keys_are_the_same_everywhere():
    """By definition: the first eight bytes of SHA-256, little-endian (from `printf machines | sha256sum`)."""
    digest = "cbb7ab22b8ff7c40"
    assert key("machines").to_bytes(8, "little").hex() == digest


@pytest.mark.statistical
def test_streams_of_neighbouring_seeds_and_names_do_not_correlate():
    """Two correlations of 10,000 pairs within 4.5 standard errors each: 1 in 70,000 runs."""
    n = 10_000
    for others in (range(2, 102), [f"name {k}" for k in range(100)]):
        first = [stream(1, "name").standard_normal(100) for _ in range(100)]
        second = [
            stream(other, "name").standard_normal(100) if isinstance(other, int) else stream(1, other).standard_normal(100)
            for other in others
        ]
        assert abs((np.array(first) * np.array(second)).mean()) < 4.5 / np.sqrt(n) * np.sqrt(100)
