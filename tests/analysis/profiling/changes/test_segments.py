"""Partitions are those of brute force."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.profiling.changes.segments import by_hour, partition


def score(counts, expected, cuts, price):
    """The log likelihood of a partition less the price of its changes, written out."""
    edges = [0, *cuts, len(counts)]
    total = -price * len(cuts)
    for begin, end in pairwise(edges):
        seen, usual = counts[begin:end].sum(), expected[begin:end].sum()
        total += seen * np.log(seen / usual) if seen else 0.0
    return total


@given(counts=st.lists(st.integers(0, 30), min_size=2, max_size=8), price=st.floats(0.5, 6.0))
@settings(max_examples=60, deadline=None)
def test_no_other_partition_is_better(counts, price):
    counts = np.array(counts, dtype=float)
    expected = np.linspace(1.0, 2.0, len(counts))
    found = tuple(partition(counts, expected, price).start[1:].tolist())
    places = range(1, len(counts))
    best = max(
        score(counts, expected, cuts, price) for size in range(len(counts)) for cuts in combinations(places, size)
    )
    assert score(counts, expected, found, price) == pytest.approx(best, abs=1e-9)


def test_hours_are_learnt_outside_of_what_changed():
    counts = np.tile([100.0, 300.0], 5)
    outside = np.ones(10)
    outside[8:] = 0.0
    counts[8:] *= 5.0
    season = by_hour(counts, np.full(10, 200.0), 2, outside)
    assert season == pytest.approx(np.tile([100.0, 300.0], 5), rel=0.02)
