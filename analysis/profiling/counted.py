"""Samples counted in one pass by keys that may be many: put away in parts, of which one at a time is in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pandas as pd

from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import LOCATION_DIMENSIONS, Query, of_process
from analysis.profiling.row_groups import Numbering, PlaceColumn, SampleBatch, SampleFile, batches
from analysis.profiling.shelf import Shelf, ShelfPlace, give_back_memory
from analysis.profiling.storage import TAKEN, ProfileError
from analysis.profiling.sums import frame, key_locations, name_processes, quoted, unrated
from analysis.profiling.views import MOST_VALUE, Counts
from models.arrays import Bools, Floats, Ints, unique_sorted
from models.code.compiled import njit

_PENDING = 500_000
"""Entries that wait in memory before they are put away."""
_WORD, _HALF = 2**63 - 1, 2**31 - 1
_MOST_SUM, _MOST_EXACT = 2.0**62, 2.0**53
"""Sums below which integers of 64 bits hold them though they were rounded, and below which decimals are not rounded."""

_Reduced = tuple[AnyInts, AnyInts, Amounts]


@dataclass(frozen=True, slots=True, eq=False)
class CountedEntries:
    """Sums of one part: arrays of n entries, in order of key and place, or as `CountedSamples.raw` has them."""

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
    """(K,) the query's dimensions of processes, `samples`, `value`, and `scale`: events that a count of one stands for;
    in order of dimensions and scale."""
    places: pd.DataFrame
    """(L,) the query's dimensions of locations, in order; or `stack`."""
    present: Bools
    """(L,) whether a place has events."""
    parts: int
    samples: int
    """Samples in all."""
    put: tuple[_PutAway, ...]
    shelf: Shelf

    @property
    def whole(self) -> bool:
        """Whether each sample stands for its key's scale."""
        return all(len(put.columns) == 3 for put in self.put)

    @property
    def exact(self) -> bool:
        """Whether sums of whole events are sure to be exact in 64 bits."""
        scale, whole = self.keys["scale"].to_numpy(np.float64), all(put.columns[2].kind[1] == "i" for put in self.put)
        most = _MOST_SUM if whole else _MOST_EXACT
        return bool(self.keys["value"].sum() < most and scale.max(initial=0.0) < _MOST_EXACT)

    def raw(self, part: int) -> CountedEntries:
        """Return the entries of a part in no order, some pairs of key and place several times."""
        if not self.put:
            rows, sums = np.zeros((2, 0), dtype=np.int32), np.zeros((2, 0))
            return CountedEntries(rows[0], rows[1], sums[0], sums[1])
        key, place, *sums = (self._column(at, part) for at in range(len(self.put[0].columns)))
        value = sums[0] * self.keys["scale"].to_numpy(np.float64)[key]
        return CountedEntries(key, place, sums[-1].astype(np.float64), value)

    def counts(self, part: int) -> tuple[AnyInts, AnyInts, Amounts]:
        """Return key, place and count of the entries of a part as `raw` does; each count stands for its key's scale."""
        if not self.put:
            nothing = np.zeros(0, dtype=np.int32)
            return nothing, nothing, nothing
        key, place, count = (self._column(at, part) for at in range(3))
        return key, place, count

    def taken(self, part: int) -> Amounts:
        """Return the samples of the entries of a part, in the order of `counts`."""
        return self._column(len(self.put[0].columns) - 1, part) if self.put else np.zeros(0, dtype=np.int32)

    def entries(self, part: int) -> CountedEntries:
        """Return the entries of a part."""
        if not self.put:
            return self.raw(part)
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
    cursor: duckdb.DuckDBPyConnection,
    query: Query,
    counts: Counts,
    part_of: Callable[[pd.DataFrame], Ints],
    files: Sequence[SampleFile],
    *,
    stacks: bool = False,
) -> CountedSamples:
    """Return the samples of a query, summed by its dimensions.

    Parameters
    ----------
    cursor : a cursor of its own on a connection of `views.connect`
    query : what is asked
    counts : bounds of the samples' counts
    part_of : returns of each process (of a table of the query's dimensions of processes) in which part its entries
        belong, 0, 1, 2, …
    files : of the samples
    stacks : whether places are stacks and not locations; samples without one do not count, and the query has no
        dimensions of locations

    Raises
    ------
    ProfileError
        If samples lack a rate, or sums are too large.
    """
    by_process = [name for name in query.by if of_process(name)]
    name_processes(cursor, query, by_process)
    process, keys = _keys(cursor, by_process)
    (places, location), within = _stacks(cursor) if stacks else _locations(cursor, query), None
    if stacks and any(name in LOCATION_DIMENSIONS for name, _ in query.where):
        within = Numbering.of(*_locations(cursor, replace(query, by=()))[1])
    numberings = Numbering.of(*process), Numbering.of(*location)
    del process, location
    give_back_memory()
    amounts = ["count", TAKEN][: 1 + counts.taken]
    kind = np.int64 if not counts.taken and counts.rows * counts.most <= _WORD else np.float64
    part, totals, shelf = part_of(keys).astype(np.int32), np.zeros((len(amounts), len(keys))), Shelf()
    parts = int(part.max(initial=-1)) + 1
    place = PlaceColumn(numberings[1], "stack" if stacks else "location", within)
    rows = batches(files, query.event, numberings[0], place, amounts)
    present = np.zeros(len(places), dtype=np.bool_)
    put = tuple(_put_away(shelf, part, parts, _reduced(rows, numberings, (totals, present), kind)))
    without = totals[-1, ~keys["rated"].to_numpy(np.bool_)].sum()
    if without:
        raise unrated(query.event, int(without))
    value = totals[0] * keys["scale"].to_numpy(np.float64)
    if max(totals[-1].sum(), value.sum()) > MOST_VALUE:
        raise ProfileError(f"samples: sum of {query.event} is beyond 1e37")
    keys = keys.drop(columns="rated").assign(samples=totals[-1], value=value)
    give_back_memory()
    return CountedSamples(keys, places, present, parts, int(totals[-1].sum()), put, shelf)


def _keys(cursor: duckdb.DuckDBPyConnection, by: Sequence[str]) -> tuple[tuple[Ints, AnyInts], pd.DataFrame]:
    """Return the numbers of `named_processes` and their keys, and these in order: processes of one scale are one.

    Parameters
    ----------
    cursor : that has the table, which is dropped
    by : dimensions
    """
    names = quoted(*by, "scale", "rated")
    rows = frame(cursor, f"SELECT * REPLACE (scale::DOUBLE AS scale) FROM named_processes ORDER BY {names}")
    cursor.execute("DROP TABLE named_processes")
    process, rows = rows["process"].to_numpy(np.int64), rows[[*by, "scale", "rated"]]
    new = np.ones(len(rows), dtype=np.bool_)
    if len(rows):
        new[1:] = np.any([(rows[name] != rows[name].shift()).to_numpy(np.bool_)[1:] for name in rows], axis=0)
    return (process, np.cumsum(new, dtype=np.int32) - 1), rows[new].reset_index(drop=True)


def _locations(cursor: duckdb.DuckDBPyConnection, query: Query) -> tuple[pd.DataFrame, tuple[Ints, AnyInts]]:
    """Return the query's dimensions of locations, in order, and the numbers of its locations and their places there."""
    by_location = [name for name in query.by if name in LOCATION_DIMENSIONS]
    key_locations(cursor, query, by_location)
    places = frame(cursor, f"SELECT * FROM location_keys ORDER BY {quoted(*by_location) or 'lkey'}")
    rank = np.empty(len(places) + 1, dtype=np.int32)
    rank[places.pop("lkey")] = np.arange(len(places))
    location = frame(cursor, "SELECT location, lkey FROM location_map")
    return places, (location["location"].to_numpy(np.int64), rank[location["lkey"]])


def _stacks(cursor: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, tuple[Ints, AnyInts]]:
    """Return the numbers of all stacks, in order, and once more with their places there."""
    stacks = unique_sorted(
        frame(cursor, "SELECT stack::BIGINT AS stack FROM stacks WHERE depth = 0")["stack"].to_numpy()
    )
    return pd.DataFrame({"stack": stacks}), (stacks, np.arange(len(stacks), dtype=np.int32))


def clusters_apart(counted: CountedSamples, apart: str, cluster: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the sums of each part by place and cluster, both categories, and what the part is of.

    Parameters
    ----------
    counted : of one dimension of places
    apart, cluster : dimensions of processes; each part has one value of the first
    """
    names, clusters = (pd.factorize(counted.keys[name], sort=True) for name in (apart, cluster))
    (place_of,) = counted.places.columns
    kinds = [pd.CategoricalDtype(known) for known in (counted.places[place_of], clusters[1])]
    for part, name in enumerate(names[1]):
        entries = counted.entries(part).positive()
        if len(entries.key):
            code, place = clusters[0][entries.key], entries.place
            sums = np.array([entries.samples, entries.value])
            if not _rising(code, place):
                order = ordered(code, ordered(place, np.arange(len(place), dtype=np.int32)))
                code, place, sums = code[order], place[order], sums[:, order]
                left = slice(add_equal(code, place, sums))
                code, place, sums = code[left], place[left], sums[:, left]
            columns = (
                pd.Categorical.from_codes(own, dtype=kind) for own, kind in zip((place, code), kinds, strict=True)
            )
            yield (
                str(name),
                pd.DataFrame(dict(zip((place_of, cluster, "samples", "value"), (*columns, *sums), strict=True))),
            )


def _rising(first: AnyInts, second: AnyInts) -> bool:
    """Return whether pairs of numbers are in order, each there once."""
    above, same = first[1:] > first[:-1], first[1:] == first[:-1]
    return bool((above | (same & (second[1:] > second[:-1]))).all())


def _reduced(
    rows: Iterable[SampleBatch],
    numberings: tuple[Numbering, Numbering],
    sums_of: tuple[Floats, Bools],
    kind: type[np.int64 | np.float64],
) -> Iterator[_Reduced]:
    """Yield keys, places and amounts of rows, those of a key that follow each other added up by place."""
    totals, present = sums_of
    where = np.full(len(present), -1, dtype=np.int32)
    numbered = numberings[0].places, numberings[1].places
    for batch in rows:
        size = len(batch.process)
        key, place, sums = np.empty(size, np.int32), np.empty(size, np.int32), np.empty((len(totals), size), kind)
        for column, amounts in enumerate(batch.amounts):
            sums[column] = amounts
        samples = _fixed(batch.process), _fixed(batch.place)
        left = _add_runs(samples, numbered, (key, place), sums, (where, totals, present))
        yield key[:left].copy(), place[:left].copy(), _narrow(sums[:, :left])


def _narrow(amounts: Amounts) -> Amounts:
    """Return a copy of amounts, of 32 bits where whole numbers fit in them."""
    small = amounts.dtype == np.int64 and amounts.max(initial=0) <= _HALF
    return amounts.astype(np.int32 if small else amounts.dtype)


def _fixed(array: AnyInts) -> AnyInts:
    """Return an array that cannot be written, as those of Arrow cannot."""
    array.flags.writeable = False
    return array


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
    count = sum(np.bincount(part[key], minlength=parts) for key, _, _ in pending)
    first = np.append(0, np.cumsum(count)).astype(np.int64)
    key, place = np.empty((2, int(first[-1])), dtype=np.int32)
    kind = np.result_type(*(amounts for _, _, amounts in pending))
    sums, begin = np.empty((len(pending[0][2]), len(key)), dtype=kind), first.copy()
    for some in pending:
        _by_part(part, some, begin, (key, place, sums))
    return _PutAway(first, tuple(shelf.put(column) for column in (key, place, *sums)))


@njit(nogil=True, borrows=True)
def _by_part(part: AnyInts, entries: _Reduced, begin: Ints, into: _Reduced) -> None:
    """Copy entries to where those of their parts begin, which is moved on."""
    keys, places, amounts = entries
    key, place, sums = into
    for row in range(len(keys)):
        own = part[keys[row]]
        at = begin[own]
        begin[own] = at + 1
        key[at], place[at] = keys[row], places[row]
        for column in range(len(amounts)):
            sums[column, at] = amounts[column, row]


@njit(nogil=True, borrows=True)
def _add_runs(
    samples: tuple[AnyInts, AnyInts],
    numbered: tuple[AnyInts, AnyInts],
    into: tuple[AnyInts, AnyInts],
    amounts: Amounts,
    sums: tuple[AnyInts, Floats, Bools],
) -> int:
    """Add up rows of equal key and place, of neighbours of equal key, in place; return how many are left.

    Parameters
    ----------
    samples : (n,) indices of processes and of locations; rows with one that is outside of the next are left out
    numbered : keys of processes and places of locations, −1: none
    into : (n,) keys and places of what is left
    amounts : (C, n)
    sums : (L,) of −1, as which it is left; (C, K) to which the amounts of each key are added; (L,) where is set which
        places have events
    """
    process, location = samples
    of_process, of_location = numbered
    key, place = into
    where, totals, present = sums
    left = start = 0
    for row in range(len(process)):
        by, on = process[row], location[row]
        if by < 0 or by >= len(of_process) or on < 0 or on >= len(of_location):
            continue
        own, at_place = of_process[by], of_location[on]
        if own < 0 or at_place < 0:
            continue
        if left and own != key[left - 1]:
            for at in range(start, left):
                where[place[at]] = -1
            start = left
        at = where[at_place]
        new = at < 0
        if new:
            at = where[at_place] = left
            left += 1
            key[at], place[at] = own, at_place
        present[at_place] |= amounts[0, row] > 0
        for column in range(len(amounts)):
            amount = amounts[column, row]
            totals[column, own] += amount
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
