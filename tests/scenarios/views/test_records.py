import numpy as np
import pandas as pd
import pytest

from scenarios.views import records
from scenarios.views.records import TableRecords, texts
from scenarios.views.terminal import dumps

ROWS = 23


def table_of(rows):
    rng = np.random.default_rng(rows)
    share = rng.random(rows)
    share[::3] = [np.nan, np.inf, -np.inf, 0.0, 1e-300, 1e22, 5.0, 0.1][: len(share[::3])]
    return pd.DataFrame(
        {
            'a "name"\n': rng.choice(['quoted "f"', "größe\n", "\\ \t", "", "null"], rows),
            "samples": rng.integers(-5, 2**62, rows),
            "share": share,
            "significant": rng.random(rows) < 0.5,
            "wide": pd.Series(
                [2**70, None, 1.5, float("nan"), {"a": [1]}][:rows] + [7] * max(0, rows - 5), dtype=object
            ),
            "kind": pd.Categorical(rng.choice(["x", "y"], rows)),
            "missing": pd.array([None] * rows, dtype="Int64").fillna(3) if rows % 2 else rng.random(rows) < 2.0,
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 2, ROWS])
@pytest.mark.parametrize("at_once", [1, 5, ROWS, 1000])
def test_the_parts_are_what_all_rows_are_at_once(rows, at_once, monkeypatch):
    monkeypatch.setattr(records, "_AT_ONCE", at_once)
    table = table_of(ROWS).head(rows)
    rest = {"kind": "profile", "where": [{"values": ["a"]}], "unit": None, "notes": []}
    value, whole = ({**rest, "rows": some, "last": 1.0} for some in (TableRecords(table), table.to_dict("records")))
    assert "".join(texts(value)) == dumps(whole)
    assert "".join(texts({"rows": TableRecords(table)})) == dumps({"rows": table.to_dict("records")})


@pytest.mark.parametrize("value", [{}, {"a": 1}, [], [{"a": float("nan")}]])
def test_what_has_no_rows_is_itself(value):
    assert [*texts(value)] == [dumps(value)]
