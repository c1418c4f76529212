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
    digest = "5709ff28b655e825"
    assert key("machines").to_bytes(8, "little").hex() == digest


@pytest.mark.statistical
@pytest.mark.parametrize("other", [lambda k: stream(k + 2, "name"), lambda k: stream(1, f"name {k}")])
def test_streams_of_neighbouring_seeds_and_names_do_not_correlate(other):
    """A correlation of 10,000 pairs within 4.5 standard errors: 1 in 150,000 runs."""
    first = stream(1, "name").standard_normal(100)
    others = np.array([other(k).standard_normal(100) for k in range(100)])
    assert abs((others * first).sum()) < 4.5 * np.sqrt(100 * (first**2).sum())
