"""Differences by machine, of any number of rows: the rows of some machines at a time, with what intervals rest on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd
from pandas.util import hash_pandas_object

from analysis.profiling.combinations import distinct_rows
from analysis.profiling.counted import ordered
from analysis.profiling.counted_shares import clusters_of
from analysis.profiling.differences import Difference
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.intervals import ShareMoments, welch
from analysis.profiling.query import Query, of_process
from analysis.profiling.shelf import Shelf, ShelfPlace, give_back_memory
from models.arrays import Floats, Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

_PER_PART = 500_000
"""Rows of samples that a part is of, about."""
_APART = ("machine", "visit", "process")
"""Dimensions of which values are many, by one of which rows are parted."""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Samples of one side, in parts."""

    counted: "CountedSamples"
    process: AnyInts
    """(K,) combination of dimensions of processes of each of their keys."""
    place: AnyInts
    """(L,) that of locations of each of their places."""
    cluster: AnyInts
    """(K,) number of the cluster of each key."""
    clusters: tuple[Floats, Floats]
    """(M,) of them, as of `clusters_of`."""
    scale: Ints
    """(K,) events that a count of one stands for."""
    total: int
    """Events in all."""

    def rows(self, part: int, height: int) -> tuple[Ints, Ints, Floats, Floats]:
        """Return of a part's rows codes, events, variances of shares, and their degrees of freedom.

        Parameters
        ----------
        part : number of the part
        height : P; codes are P times the place of the combination of locations, and that of processes
        """
        if part >= self.counted.parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        key, place, count = self.counted.counts(part)
        place = self.place[place]
        # Keys are in order of processes' dimensions, then of clusters.
        order = ordered(place, ordered(key, np.arange(len(key), dtype=np.int32)))
        key, count = key[order], count[order]
        code = place[order].astype(np.int64) * height
        code += self.process[key]
        value = count.astype(np.int64) * self.scale[key]
        second, fourth = np.empty((2, len(code)))
        left = _add_up((code, self.cluster[key], value), (*self.clusters, float(self.total)), (second, fourth))
        some = slice(left)
        share, clusters = value[some] / max(self.total, 1), int((self.clusters[0] > 0).sum())
        every = pd.DataFrame(index=range(left))
        moments = ShareMoments(every, share, second[some], fourth[some], share, clusters)
        return code[some], value[some], np.nan_to_num(moments.variance), moments.degrees


@dataclass(frozen=True, slots=True, eq=False)
class PartedDifference:
    """Two answers to the same question, and variances of their differences: one part of the rows at a time."""

    parts: list[list[ShelfPlace]]
    """Of each part codes, events of A and B, variances of changes and their degrees of freedom."""
    shelf: Shelf
    every: Difference
    """Without rows."""
    rows: int

    @classmethod
    def of(cls, sides: Sequence[tuple["Database", Query]], cluster: str = "visit") -> Self | None:
        """Count the samples of both sides; none where rows are of no machines, or sums are not sure to be exact.

        Parameters
        ----------
        sides : databases, and what is asked of them: one event, by the same dimensions
        cluster : a dimension of processes that was drawn at random

        Raises
        ------
        QueryError, ProfileError
            As `Database.query` does.
        """
        by = sides[0][1].by
        apart = [name for name in _APART if name in by]
        if not apart:
            return None
        parts = max(1, max(database.rows for database, _ in sides) // _PER_PART)

        def part_of(keys: pd.DataFrame) -> Ints:
            code, names = pd.factorize(keys[apart[0]].astype(str))
            hashed: Ints = hash_pandas_object(pd.Index(names), index=False).to_numpy() % np.uint64(parts)
            return hashed.astype(np.int64)[code]

        counted = []
        for database, query in sides:
            wide = replace(query, by=tuple(dict.fromkeys((*by, cluster))))
            counted.append(database.counted(wide, part_of))
            give_back_memory()
        if not all(side.exact and side.keys["scale"].all() for side in counted):
            return None
        names = [name for name in by if of_process(name)]
        process, processes = distinct_rows(pd.concat([side.keys[names] for side in counted], ignore_index=True))
        place, places = distinct_rows(pd.concat([side.places for side in counted], ignore_index=True))
        keys, locations = len(counted[0].keys), len(counted[0].places)
        both = (
            _side(counted[0], process[:keys], place[:locations], cluster),
            _side(counted[1], process[keys:], place[locations:], cluster),
        )
        nothing, shelf = np.zeros(0, dtype=np.int64), Shelf()
        totals = both[0].total, both[1].total
        empty = Difference(by, processes, places, nothing, (nothing, nothing), (nothing, nothing), totals)
        put, rows, height, width = [], 0, len(processes), max(len(places), 1)
        for part in range(max(1, *(side.counted.parts for side in both))):
            code, *events, a, b, of_a, of_b = _side_by_side(*(side.rows(part, height) for side in both))
            code = code % height * width + code // height
            put.append([shelf.put(array) for array in (code, *events, *welch((a, b), (of_a, of_b)))])
            rows += len(code)
        return cls(put, shelf, empty, rows)

    def __iter__(self) -> Iterator[tuple[Difference, Floats, Floats]]:
        """Yield some rows, variances of their changes, and degrees of freedom."""
        for part in self.parts:
            code, of_a, of_b, variance, degrees = (self.shelf.get(place) for place in part)
            yield self.every.like(code, (of_a, of_b)), variance, degrees


def _side(counted: "CountedSamples", process: Ints, place: Ints, cluster: str) -> _Side:
    """Return a side; of its keys and places combinations of dimensions are given."""
    code = pd.factorize(counted.keys[cluster])[0].astype(np.int32)
    size = np.bincount(code, counted.keys["value"]).astype(np.float64)
    scale = counted.keys["scale"].to_numpy(np.float64).astype(np.int64)
    bare = replace(counted, keys=counted.keys[["scale"]], places=counted.places[[]])
    total = 0
    for part in range(counted.parts):
        key, _, count = counted.counts(part)
        total += int((count.astype(np.int64) * scale[key]).sum())
    return _Side(bare, process.astype(np.int32), place.astype(np.int32), code, clusters_of(size), scale, total)


def _side_by_side(a: tuple[Amounts, ...], b: tuple[Amounts, ...]) -> list[Amounts]:
    """Return the codes that either side has, rising, and the numbers of A and B at them; 0, 0 and 1 where are none."""
    code = np.concatenate([a[0], b[0]])
    code.sort(kind="stable")  # runs that are in order, as these are mostly, are soon merged
    code = code[np.append(True, code[1:] != code[:-1])[: len(code)]]
    columns, rows = [code], [np.searchsorted(code, side[0]) for side in (a, b)]
    for fill, both in zip((0, 0, 1), zip(a[1:], b[1:], strict=True), strict=True):
        for at, own in zip(rows, both, strict=True):
            columns.append(np.full(len(code), fill, dtype=own.dtype))
            columns[-1][at] = own
    return columns


@njit(nogil=True, borrows=True)
def _add_up(
    entries: tuple[Ints, AnyInts, Ints], clusters: tuple[Floats, Floats, float], into: tuple[Floats, Floats]
) -> int:
    """Add entries up by code, in place; return how many are left.

    Parameters
    ----------
    entries : (n,) codes, those of a code by cluster; clusters; events
    clusters : as of `clusters_of`, and events of them all
    into : second and fourth moments of shares, as of `ShareMoments`
    """
    (code, cluster, value), (leverage, weight, total), (second, fourth) = entries, clusters, into
    usual = usual_squares = 0.0
    for own in range(len(leverage)):
        square = weight[own] * leverage[own] * leverage[own]
        usual, usual_squares = usual + square, usual_squares + square * square
    left = begin = 0
    while begin < len(code):
        end, events = begin, value[begin] * 0
        while end < len(code) and code[end] == code[begin]:
            events += value[end]
            end += 1
        share = events / total
        squares = fourths = inside = inside_squares = 0.0
        at = begin
        while at < end:
            own, amount = cluster[at], value[at] * 0
            while at < end and cluster[at] == own:
                amount += value[at]
                at += 1
            if amount > 0:
                residual = amount / total - share * leverage[own]
                square, expected = weight[own] * residual * residual, weight[own] * leverage[own] * leverage[own]
                squares, fourths = squares + square, fourths + square * square
                inside, inside_squares = inside + expected, inside_squares + expected * expected
        code[left], value[left] = code[begin], events
        second[left] = squares + share**2 * max(usual - inside, 0.0)
        fourth[left] = fourths + share**4 * max(usual_squares - inside_squares, 0.0)
        left, begin = left + 1, end
    return left
