"""Sorting what is nearly in order, against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.order import in_order, order_of

TIMES = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1.5, np.inf, np.nan]) | st.floats(0.0, 9.0), max_size=60)


@given(TIMES)
def test_times_are_put_in_order_as_numpy_does(times):
    np.testing.assert_array_equal(in_order(times), np.sort(times, kind="stable"))
    np.testing.assert_array_equal(order_of(times), np.argsort(times, kind="stable"))


@pytest.mark.parametrize("reach", [0.0, 3.0, 1e9])
def test_nearly_in_order_or_not_at_all_the_result_is_that_of_numpy(reach):
    rng = np.random.default_rng(5)
    times = np.floor(np.arange(3000.0) + rng.uniform(0.0, reach, 3000))
    times[0] += 1e6 * (reach == 0.0)
    before = times.copy()
    np.testing.assert_array_equal(in_order(times), np.sort(times))
    np.testing.assert_array_equal(order_of(times), np.argsort(times, kind="stable"))
    np.testing.assert_array_equal(times, before)


@pytest.mark.parametrize("put", [in_order, order_of])
def test_a_table_has_no_order(put):
    with pytest.raises(ValueError, match="one dimension, got 2"):
        put(np.zeros((2, 2)))
