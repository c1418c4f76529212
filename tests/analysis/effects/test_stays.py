"""Numbers of keys against pandas' grouping."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.effects import stays

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(-1, 1)), min_size=1, max_size=30)


@pytest.mark.parametrize("most", [2**62, 4])
@settings(max_examples=30)
@given(rows=ROWS)
def test_rows_are_numbered_as_pandas_groups_them(most, rows):
    """With room for few combinations only, numbers are made small again on the way."""
    table = pd.DataFrame(rows, columns=["x", "y", "z"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stays, "_MOST", most)
        number, first = stays.numbered([table["x"], table["y"], table["z"].to_numpy()])
    np.testing.assert_array_equal(number, table.groupby(["x", "y", "z"], sort=False).ngroup())
    np.testing.assert_array_equal(first, table.drop_duplicates().index)
