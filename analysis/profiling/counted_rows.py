"""The greatest rows of an answer that has very many: sums of one part of the keys at a time, exact in 64 bits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.counted import CountedSamples, add_equal, ordered
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import of_process
from models.arrays import Ints


@dataclass(frozen=True, slots=True)
class GreatestRows:
    """The greatest rows of an answer, and what all are."""

    table: pd.DataFrame
    """The dimensions, `samples`, `value`, `share` of everything; the greatest value first, ties by the keys."""
    rows: int
    """How many there are."""
    samples: int
    value: int
    """Of all rows."""


def parts_of(by: Sequence[str], parts: int) -> Callable[[pd.DataFrame], Ints]:
    """Return what puts keys into parts, as of `Database.counted`, so that all of one row are in one.

    Parameters
    ----------
    by : dimensions of the answer
    parts : how many
    """
    return lambda keys: _rows_of(keys, by).astype(np.int64) % parts


def greatest_rows(counted: CountedSamples, by: Sequence[str], top: int) -> GreatestRows | None:
    """Return the greatest rows; None: sums are not sure to be exact in 64 bits.

    Parameters
    ----------
    counted : samples by these dimensions, in parts of `parts_of`
    by : dimensions, in whose order ties are
    top : so many rows at most
    """
    if not counted.exact:
        return None
    scale, row_of = counted.keys["scale"].to_numpy(np.float64).astype(np.int64), _rows_of(counted.keys, by)
    first = np.flatnonzero(np.append(True, row_of[1:] != row_of[:-1])[: len(row_of)])
    keys = counted.keys.iloc[first].reset_index(drop=True)
    rank = {name: _ranks(keys[name] if of_process(name) else counted.places[name]) for name in by}

    def in_order(rows: Ints) -> Ints:
        """Return (4, n) rows of key, place, samples and value in the answer's order."""
        ties = [rank[name][rows[0] if of_process(name) else rows[1]] for name in reversed(by)]
        return rows[:, np.lexsort((*ties, -rows[3]))[:top]]

    whole, count, totals, least = np.zeros((4, 0), dtype=np.int64), 0, np.zeros(2, dtype=np.int64), 0
    for part in range(counted.parts):
        some = _sums(counted, part, row_of, scale)
        count, totals = count + some.shape[1], totals + some[2:].sum(axis=1)
        whole = np.concatenate([whole, some[:, some[3] >= least]], axis=1)
        if whole.shape[1] > 2 * top:
            least = np.partition(whole[3], -top)[-top]
            whole = whole[:, whole[3] >= least]
        if whole.shape[1] > 2 * top:  # very many are as great as the last
            whole = in_order(whole)
    key, place, samples, value = in_order(whole)
    columns = {name: (keys[name].iloc[key] if of_process(name) else counted.places[name].iloc[place]) for name in by}
    table = pd.DataFrame({name: column.reset_index(drop=True) for name, column in columns.items()})
    samples_in_all, value_in_all = map(int, totals)
    table = table.assign(samples=samples, value=value, share=value / float(value_in_all or 1))
    return GreatestRows(table, count, samples_in_all, value_in_all)


def _sums(counted: CountedSamples, part: int, row_of: AnyInts, scale: Ints) -> Ints:
    """Return (4, n) key, place, samples and value of the rows of a part."""
    key, place, count = counted.counts(part)
    own = row_of[key]
    order = ordered(own, ordered(place, np.arange(len(place), dtype=np.int32)))
    sums = np.array([counted.taken(part)[order], count[order] * scale[key[order]]], dtype=np.int64)
    own, place = own[order], place[order]
    left = slice(add_equal(own, place, sums))
    rows: Ints = np.concatenate([[own[left], place[left]], sums[:, left]]).astype(np.int64, copy=False)
    return rows


def _rows_of(keys: pd.DataFrame, by: Sequence[str]) -> AnyInts:
    """Return which of the distinct dimensions each key has, which are in order: keys differ in their scale, too."""
    names = [name for name in by if of_process(name)]
    new = np.zeros(len(keys), dtype=np.bool_)
    for name in names:
        new[1:] |= (keys[name] != keys[name].shift()).to_numpy(np.bool_)[1:]
    return np.cumsum(new, dtype=np.int32)


def _ranks(values: pd.Series) -> Ints:
    return pd.factorize(values, sort=True)[0].astype(np.int64)
