"""Samples counted in one pass by keys that may be many: put away in parts, of which one at a time is in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis.profiling.frames import AnyInts
from analysis.profiling.query import LOCATION_DIMENSIONS, Query, of_process
from analysis.profiling.shelf import Shelf, ShelfPlace
from analysis.profiling.storage import TAKEN, ProfileError
from analysis.profiling.sums import frame, key_locations, name_processes, unrated
from analysis.profiling.views import MOST_VALUE, Counts
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

_ROWS_AT_ONCE = 100_000
_PENDING = 400_000
"""Entries that wait in memory before they are put away."""
_WORD, _HALF = 2**63 - 1, 2**31 - 1

Amounts = npt.NDArray[Any]


_Reduced = tuple[AnyInts, AnyInts, Amounts]


@dataclass(frozen=True, slots=True, eq=False)
class CountedEntries:
    """Sums of one part, in order of key and place: arrays of n entries."""

    key: AnyInts
    """Row of `CountedSamples.keys`."""
    place: AnyInts
    """Row of `CountedSamples.places`."""
    samples: Floats
    value: Floats
    """Events: Σ count × period × duty × weight."""

    def at(self, rows: Bools) -> "CountedEntries":
        """Return some of the entries."""
        return CountedEntries(self.key[rows], self.place[rows], self.samples[rows], self.value[rows])

    def positive(self) -> "CountedEntries":
        """Return those that have events."""
        return self if (self.value > 0).all() else self.at(self.value > 0)


@dataclass(frozen=True, slots=True)
class _PutAway:
    """Entries of all parts, part after part."""

    first: Ints
    """(P + 1,) where each part's begin."""
    columns: tuple[ShelfPlace, ...]
    """Key, place, count, and samples where they are others."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedSamples:
    """Samples by process and by place; sums are exact up to 2**53."""

    keys: pd.DataFrame
    """(K,) of each process the query's dimensions, `samples`, and `scale`: events that a count of one stands for."""
    places: pd.DataFrame
    """(L,) the query's dimensions of locations."""
    parts: int
    samples: int
    """Samples in all."""
    put: tuple[_PutAway, ...]
    shelf: Shelf

    def entries(self, part: int) -> CountedEntries:
        """Return the entries of a part."""
        if not self.put:
            return CountedEntries(*np.zeros((2, 0), dtype=np.int32), *np.zeros((2, 0)))
        key, place = self._column(0, part), self._column(1, part)
        order = ordered(key, ordered(place, np.arange(len(place), dtype=np.int32)))
        key, place = key[order], place[order]
        sums = np.array([_wide(self._column(at, part))[order] for at in range(2, len(self.put[0].columns))])
        del order
        left = slice(add_equal(key, place, sums))
        value = sums[0, left] * self.keys["scale"].to_numpy(np.float64)[key[left]]
        return CountedEntries(key[left], place[left], sums[-1, left].astype(np.float64), value)

    def _column(self, at: int, part: int) -> Amounts:
        """Return a column of a part, as it was put away."""
        return np.concatenate([self.shelf.get(put.columns[at], *put.first[part : part + 2]) for put in self.put])


def _wide(amounts: Amounts) -> Amounts:
    """Return amounts of a type that holds their sum."""
    if amounts.dtype == np.int32 and amounts.sum(dtype=np.int64) > _HALF:
        return amounts.astype(np.int64)
    return amounts


def count_samples(
    cursor: duckdb.DuckDBPyConnection, query: Query, counts: Counts, part_of: Callable[[pd.DataFrame], Ints]
) -> CountedSamples:
    """Return the samples of a query, summed by its dimensions.

    Parameters
    ----------
    cursor : a cursor of its own on a connection of `views.connect`
    query : what is asked
    counts : bounds of the samples' counts
    part_of : returns of each process (of a table of the query's dimensions of processes) in which part its entries
        belong, 0, 1, 2, …

    Raises
    ------
    ProfileError
        If samples lack a rate, or sums are too large.
    """
    by_location = [name for name in query.by if name in LOCATION_DIMENSIONS]
    name_processes(cursor, query, [name for name in query.by if of_process(name)])
    key_locations(cursor, query, by_location)
    keys = frame(cursor, "SELECT * REPLACE (scale::DOUBLE AS scale) FROM named_processes")
    cursor.execute("DROP TABLE named_processes")
    cursor.register("process_map", pa.table({"process": keys.pop("process"), "pkey": np.arange(len(keys))}))
    places = frame(cursor, "SELECT * FROM location_keys ORDER BY lkey").drop(columns="lkey")
    amounts = ["count", TAKEN][: 1 + counts.taken]
    exact = not counts.taken and counts.rows * counts.most <= _WORD
    kind = "" if exact else "::DOUBLE"
    rows = cursor.sql(
        f"SELECT pkey, lkey - {int(bool(by_location))}, {', '.join(name + kind for name in amounts)} FROM samples"
        " JOIN process_map USING (process) JOIN location_map USING (location) WHERE event = ?",
        params=[query.event],
    ).to_arrow_reader(_ROWS_AT_ONCE)
    part, totals, shelf = part_of(keys).astype(np.int32), np.zeros((len(amounts), len(keys))), Shelf()
    parts = int(part.max(initial=-1)) + 1
    put = tuple(_put_away(shelf, part, parts, _reduced(rows, totals, len(places))))
    without = totals[-1, ~keys["rated"].to_numpy(np.bool_)].sum()
    if without:
        raise unrated(query.event, int(without))
    if max(totals[-1].sum(), totals[0] @ keys["scale"].to_numpy(np.float64)) > MOST_VALUE:
        raise ProfileError(f"samples: sum of {query.event} is beyond 1e37")
    keys = keys.drop(columns="rated").assign(samples=totals[-1])
    return CountedSamples(keys, places, parts, int(totals[-1].sum()), put, shelf)


def _reduced(rows: pa.RecordBatchReader, totals: Floats, places: int) -> Iterator[_Reduced]:
    """Yield keys, places and amounts of rows, those of a key that follow each other added up by place."""
    where = np.full(places, -1, dtype=np.int64)
    for batch in rows:
        key, place, *columns = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
        key, place, amounts = key.astype(np.int32), place.astype(np.int32), np.array(columns)
        left = slice(_add_runs(key, place, amounts, where, totals))
        yield key[left], place[left], amounts[:, left]


def _put_away(shelf: Shelf, part: AnyInts, parts: int, entries: Iterator[_Reduced]) -> Iterator[_PutAway]:
    """Put entries away, many at a time, and yield where they are.

    Parameters
    ----------
    shelf : where they are kept
    part : (K,) of each key
    parts : P
    entries : keys, places, (1 or 2, n) amounts
    """
    pending: list[_Reduced] = []
    for some in entries:
        pending.append(some)
        if sum(len(key) for key, _, _ in pending) >= _PENDING:
            yield _in_parts(shelf, part, parts, pending)
            pending = []
    if pending:
        yield _in_parts(shelf, part, parts, pending)


def _in_parts(shelf: Shelf, part: AnyInts, parts: int, pending: list[_Reduced]) -> _PutAway:
    """Put entries away in order of their parts."""
    key, place = (np.concatenate([some[at] for some in pending]) for at in (0, 1))
    amounts = np.concatenate([some[2] for some in pending], axis=1)
    small = amounts.dtype == np.int64 and amounts.max(initial=0) <= _HALF
    own = part[key]
    order = ordered(own, np.arange(len(own), dtype=np.int32))
    first = np.append(0, np.cumsum(np.bincount(own, minlength=parts)))
    columns = (key, place, *(amounts.astype(np.int32) if small else amounts))
    return _PutAway(first, tuple(shelf.put(column[order]) for column in columns))


@njit(nogil=True, borrows=True)
def _add_runs(key: AnyInts, place: AnyInts, amounts: Amounts, where: Ints, totals: Floats) -> int:
    """Add up rows of equal key and place, of neighbours of equal key, in place; return how many are left.

    Parameters
    ----------
    key, place : (n,)
    amounts : (C, n)
    where : (L,) of −1, as which it is left
    totals : (C, K) to which the amounts of each key are added
    """
    left = start = 0
    for row in range(len(key)):
        if row and key[row] != key[start]:
            for at in range(start, left):
                where[place[at]] = -1
            start = left
        at = where[place[row]]
        new = at < 0
        if new:
            at = where[place[row]] = left
            left += 1
            key[at], place[at] = key[row], place[row]
        for column in range(len(amounts)):
            amount = amounts[column, row]
            totals[column, key[at]] += amount
            amounts[column, at] = amount if new else amounts[column, at] + amount
    for at in range(start, left):
        where[place[at]] = -1
    return left


@njit(nogil=True)
def ordered(code: AnyInts, order: AnyInts) -> AnyInts:
    """Return the places in an order by codes, those of equal ones as they were; by as many steps as there are codes."""
    if not len(code):
        return order
    least = code.min()
    count = np.zeros(code.max() - least + 2, np.int64)
    for own in code:
        count[own - least + 1] += 1
    begin = np.cumsum(count)
    sorted_places = np.empty(len(code), order.dtype)
    for at in order:
        own = code[at] - least
        sorted_places[begin[own]] = at
        begin[own] += 1
    return sorted_places


@njit(nogil=True, borrows=True)
def add_equal(key: AnyInts, place: AnyInts, amounts: Amounts) -> int:
    """Add up neighbours of equal key and place, in place; return how many are left."""
    left = 0
    for row in range(len(key)):
        if left and key[row] == key[left - 1] and place[row] == place[left - 1]:
            for column in range(len(amounts)):
                amounts[column, left - 1] += amounts[column, row]
        else:
            key[left], place[left] = key[row], place[row]
            for column in range(len(amounts)):
                amounts[column, left] = amounts[column, row]
            left += 1
    return left
