"""Numbers of combinations of values."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from models.arrays import Ints

_LARGEST = 2**62


def distinct(table: pd.DataFrame, names: Sequence[str]) -> tuple[Ints, pd.DataFrame]:
    """Return each row's number among the distinct combinations of columns, and these in order.

    Examples
    --------
    >>> number, rows = distinct(pd.DataFrame({"a": ["y", "x", "y"], "b": [1, 1, 1]}), ["a", "b"])
    >>> number.tolist(), rows.values.tolist()
    ([1, 0, 1], [['x', 1], ['y', 1]])
    """
    parts = [pd.factorize(table[name], sort=True) for name in names]
    if len(parts) == 1:
        (code, values), (name,) = parts[0], names
        return code.astype(np.int64, copy=False), pd.DataFrame({name: np.asarray(values)})
    number, first = numbered([code.astype(np.int64) for code, _ in parts])
    rows = {name: np.asarray(values)[code[first]] for name, (code, values) in zip(names, parts, strict=True)}
    return number, pd.DataFrame(rows)


def numbered(parts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return each entry's number among the distinct combinations in order, and where each of these is first."""
    key, size = np.zeros(len(parts[0]), dtype=np.int64), 1
    for part in parts:
        wide = int(part.max(initial=0)) + 1
        if size * wide >= _LARGEST:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = int(key.max(initial=0)) + 1
        key, size = key * wide + part, size * wide
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.astype(np.int64), first.astype(np.int64)


def distinct_rows(table: pd.DataFrame) -> tuple[Ints, pd.DataFrame]:
    """Return the number of each row among the distinct ones, and these in order; without columns all are one.

    Examples
    --------
    >>> number, rows = distinct_rows(pd.DataFrame({"a": ["y", "x", "y"]}))
    >>> number.tolist(), rows["a"].tolist(), distinct_rows(pd.DataFrame(index=range(2)))[0].tolist()
    ([1, 0, 1], ['x', 'y'], [0, 0])
    """
    if not len(table.columns):
        return np.zeros(len(table), dtype=np.int64), pd.DataFrame(index=range(1))
    return distinct(table, [str(name) for name in table])
