"""Answers of the database as data frames: exact integers of any size, shares, differences."""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from analysis.profiling.sums import Sums
from models.arrays import Floats


def frame(cursor: duckdb.DuckDBPyConnection, sql: str, *values: object) -> pd.DataFrame:
    """Return the rows of a query, with integers of 64 bits and texts that share their memory.

    Examples
    --------
    >>> with duckdb.connect() as connection:
    ...     frame(connection, "SELECT ?::BIGINT AS samples", 3).to_dict("records")
    [{'samples': 3}]
    """
    found: pd.DataFrame = cursor.sql(sql, params=list(values)).to_arrow_table().to_pandas()
    return found


def column(cursor: duckdb.DuckDBPyConnection, sql: str, *values: object) -> list[Any]:
    """Return the first column of a query as a list.

    Examples
    --------
    >>> with duckdb.connect() as connection:
    ...     column(connection, "SELECT unnest([2, 3])")
    [2, 3]
    """
    return [row[0] for row in cursor.execute(sql, list(values)).fetchall()]


def summed(cursor: duckdb.DuckDBPyConnection, sums: Sums, sql: str, *values: object) -> pd.DataFrame:
    """Return rows whose sums came as `Sums.numbers` gives them; sums beyond 64 bits are Python's integers.

    Parameters
    ----------
    cursor : cursor that holds the sums
    sums : what all rows add up to
    sql : a query with the columns `samples` and `value`
    values : what is bound to its marks
    """
    found = frame(cursor, sql, *values)
    return found.assign(**{name: pd.Series(list(map(int, found[name])), dtype=object) for name in sums.wide})


def shares(values: pd.Series, total: int) -> Floats:
    """Return values over their total; 0 of nothing.

    Parameters
    ----------
    values : integers, of 64 bits or Python's
    total : of which they are shares

    Examples
    --------
    >>> shares(pd.Series([3, 1]), 4)
    array([0.75, 0.25])
    """
    if values.dtype == object:
        return np.array([int(value) / total if total else 0.0 for value in values])
    return values.to_numpy(dtype=np.float64) / float(total or 1)


def difference(a: pd.DataFrame, b: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return two answers side by side, the greatest change of share first, ties by the keys.

    Parameters
    ----------
    a, b : frames with the columns of `by`, `value` and `share`
    by : the keys; none: one row each

    Examples
    --------
    >>> a = pd.DataFrame({"function": ["f", "g"], "value": [3, 1], "share": [0.75, 0.25]})
    >>> b = pd.DataFrame({"function": ["f"], "value": [2], "share": [1.0]})
    >>> difference(a, b, ["function"])[["function", "value_a", "value_b", "change"]].values.tolist()
    [['f', 3, 2, 0.25], ['g', 1, 0, -0.25]]
    """
    joined = _side(a, by, "a").merge(
        _side(b, by, "b"), **({"on": list(by), "how": "outer"} if by else {"how": "cross"})
    )
    for name in ("value_a", "value_b"):
        value = joined[name]
        joined[name] = value.mask(value.isna(), 0) if value.dtype == object else value.fillna(0).astype(np.int64)
    for name in ("share_a", "share_b"):
        joined[name] = joined[name].fillna(0.0)
    joined["change"] = joined["share_b"] - joined["share_a"]
    order = joined.assign(size=-joined["change"].abs()).sort_values(["size", *by], kind="stable").index
    names = [*by, "value_a", "value_b", "share_a", "share_b", "change"]
    return joined.loc[order, names].reset_index(drop=True)


def _side(answer: pd.DataFrame, by: Sequence[str], side: str) -> pd.DataFrame:
    """Return an answer's keys, value and share under the names of its side; whole numbers stay whole when some miss."""
    value = answer["value"] if answer["value"].dtype == object else answer["value"].astype("Int64")
    return answer[list(by)].assign(**{f"value_{side}": value, f"share_{side}": answer["share"]})
