"""Shares of so many keys and clusters that their pairs are not held at once: what their intervals rest on."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.frames import AnyInts
from analysis.profiling.intervals import ShareMoments
from analysis.profiling.query import Query, QueryError, of_process
from analysis.profiling.regressions.coded import distinct
from analysis.profiling.row_groups import Numbering
from models.arrays import Floats, Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

_PER_PART = 500_000
"""Rows of samples that a part is of, about."""
_DENSE = 1_000_000
"""Pairs of a group and a place up to which each has a number, sampled or not."""


def counted_moments(database: "Database", query: Query, cluster: str = "visit") -> ShareMoments:
    """Return what the intervals of a query's shares rest on, from the samples of one part of the clusters at a time.

    It is what `ShareMoments.of` says of `Database.clustered`, without a table of all pairs of a key and a cluster.

    Parameters
    ----------
    database : asked
    query : its dimensions are the keys
    cluster : a dimension of processes that was drawn at random, each all on one platform, such as `visit`

    Raises
    ------
    QueryError, ProfileError
        As `Database.query` does.
    """
    parts = max(1, database.rows // _PER_PART)
    apart = replace(query, by=(*query.by, cluster))
    counted = database.counted(apart, lambda keys: pd.factorize(keys[cluster])[0].astype(np.int64) % parts)
    code = pd.factorize(counted.keys[cluster])[0].astype(np.int64)
    size = np.bincount(code, counted.keys["value"]).astype(np.float64)
    total = max(float(size.sum()), 1.0)
    numbers = _KeyNumbers.of(counted, [name for name in query.by if of_process(name)])
    value, samples = np.zeros((2, numbers.count))
    for part in range(counted.parts):
        entries = counted.raw(part).positive()
        key = numbers.index(entries.key, entries.place)
        value += np.bincount(key, entries.value, numbers.count)
        samples += np.bincount(key, entries.samples, numbers.count)
    share, leverage = value / total, size / total
    weight = 1.0 / np.maximum(1.0 - leverage, 1e-9)
    # Within the clusters that have samples of a key: squares and fourth powers of residuals, and of leverages.
    sums = np.zeros((4, numbers.count))
    for part in range(counted.parts):
        entries = counted.entries(part).positive()
        key = numbers.index(entries.key, entries.place)
        _add_moments((key, code[entries.key], entries.value / total), share, (leverage, weight), sums)
    elsewhere = [
        np.maximum(((leverage**2 * weight) ** power).sum() - own, 0.0)
        for power, own in zip((1, 2), sums[2:], strict=True)
    ]
    order = np.argsort(-value, kind="stable")[: int((value > 0).sum())]
    second, fourth = (own + share**power * rest for own, power, rest in zip(sums, (2, 4), elsewhere, strict=False))
    keys = numbers.names(order)[list(query.by)]
    return ShareMoments(keys, share[order], second[order], fourth[order], samples[order], int((size > 0).sum()))


@njit(nogil=True, borrows=True)
def _add_moments(
    entries: tuple[AnyInts, Ints, Floats], share: Floats, clusters: tuple[Floats, Floats], sums: Floats
) -> None:
    """Add the entries of some clusters to (4, K) sums.

    Parameters
    ----------
    entries : (n,) key, cluster, and value as a part of everything; each pair once
    share : (K,)
    clusters : (M,) part of everything that each has, and 1 / (1 − that)
    sums : squares of residuals, their fourth powers, and both of what they are where a cluster has nothing of a key
    """
    keys, cluster_of, values = entries
    leverage, weight = clusters
    for at in range(len(keys)):
        key, own = keys[at], cluster_of[at]
        residual = values[at] - share[key] * leverage[own]
        square, usual = weight[own] * residual * residual, weight[own] * leverage[own] * leverage[own]
        sums[0, key] += square
        sums[1, key] += square * square
        sums[2, key] += usual
        sums[3, key] += usual * usual


class _KeyNumbers:
    """Numbers of keys: a combination of dimensions of processes, and one of dimensions of locations."""

    def __init__(self, counted: "CountedSamples", group: Ints, groups: pd.DataFrame) -> None:
        self._groups, self._places = groups, counted.places
        self._width = max(len(counted.places), 1)
        self._first = group * self._width
        self._known: Numbering | None = None
        self.count = max(len(groups), 1) * self._width
        """K"""

    @classmethod
    def of(cls, counted: "CountedSamples", by_process: list[str]) -> "_KeyNumbers":
        """Return those of samples; where few of very many pairs are sampled, only these have numbers.

        Parameters
        ----------
        counted : the samples
        by_process : dimensions of processes that are of the keys

        Raises
        ------
        QueryError
            If there are more keys than an answer may have.
        """
        from analysis.profiling.database import MOST_ROWS

        group, groups = np.zeros(len(counted.keys), dtype=np.int64), pd.DataFrame(index=[0])
        if by_process:
            group, groups = distinct(counted.keys, by_process)
        numbers = cls(counted, group, groups)
        if numbers.count > _DENSE:
            known = np.zeros(0, dtype=np.int64)
            for part in range(counted.parts):
                entries = counted.raw(part).positive()
                known = np.union1d(known, numbers._codes(entries.key, entries.place))
                if len(known) > MOST_ROWS:
                    raise QueryError(f"the answer would have more than {MOST_ROWS:,} rows; ask for fewer dimensions")
            numbers._known, numbers.count = Numbering.of(known, np.arange(len(known), dtype=np.int32)), len(known)
        return numbers

    def _codes(self, key: AnyInts, place: AnyInts) -> Ints:
        codes: Ints = self._first[key] + place
        return codes

    def index(self, key: AnyInts, place: AnyInts) -> AnyInts:
        """Return (n,) numbers of keys.

        Parameters
        ----------
        key, place : (n,) rows of the samples' keys and places
        """
        codes = self._codes(key, place)
        return codes if self._known is None else self._known.places[self._known.index(codes)]

    def names(self, numbers: Ints) -> pd.DataFrame:
        """Return the dimensions of keys."""
        codes = numbers if self._known is None else self._known.ids[numbers]
        parts = (self._groups.iloc[codes // self._width], self._places.iloc[codes % self._width])
        return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
