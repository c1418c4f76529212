"""Numbers in place of keys: rows that agree in several columns get one number, faster than by grouping a table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from models.arrays import Ints

_MOST = 2**62
"""Numbers of combinations must stay below this."""


def numbered(columns: Sequence[pd.Series | Ints]) -> tuple[Ints, Ints]:
    """Return the number of each row's combination of values, in order of appearance, and where each is first.

    Parameters
    ----------
    columns : one at least, without missing values

    Examples
    --------
    >>> numbered([pd.Series(["b", "a", "b"]), np.array([1, 1, 1])])
    (array([0, 1, 0]), array([0, 1]))
    """
    number, total = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        part, values = pd.factorize(column)
        if total * len(values) >= _MOST:
            number, found = pd.factorize(number)
            total = len(found)
        number, total = number * len(values) + part, total * len(values)
    number, found = pd.factorize(number)
    first = np.empty(len(found), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number.astype(np.int64), first
