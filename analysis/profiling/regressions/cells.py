"""Cells of two profiles: an application's code, tag for tag and period for period, and how its functions' shares stray.

A cell is an application's code of one revision and compiler, under one kernel, on one platform in one data centre, in
one of two periods. Within a cell the odds of a function's share are multiplied by what its cost is multiplied by,
whatever else the machine runs; so changes of the mix of jobs, platforms or builds move cells' sizes and not their odds.
Most cells expect less than one sample of most functions, so what was seen is compared with what a block of cells leads
to expect: unlike the logarithm of a small count, that is right in the mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from analysis.profiling.combinations import distinct, numbered
from analysis.profiling.counted import ordered
from analysis.profiling.frames import AnyInts
from analysis.profiling.regressions.coded import TAGS, CodedTable, CostEntries, coded
from analysis.profiling.shelf import Shelf, ShelfPlace
from models.arrays import Floats, Ints
from models.code.compiled import njit

_BLOCK_TAGS = ("platform", "datacentre")
"""Where a function's share differs anyway."""
MIN_SAMPLES = 20
"""Samples in an application, both periods, from which a function is looked at there."""
PRIOR_CLUSTERS = 10.0
"""Weight of an application's usual spread between clusters against a function's own."""
_PRIOR_VARIANCE = 0.25
"""Variance of log odds between clusters where nothing tells it."""
_LARGEST_SHARE = 1.0 - 2.0**-40
"""Largest share that is expected, so that its odds are finite."""
_DENSE_NUMBERS = 2**18
"""Numbers of a dense array of some functions and all rows."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseSamples:
    """Samples of F functions in rows, function by function, zeros left out."""

    first: Ints
    """(F + 1,) where each function's entries begin."""
    row: ShelfPlace
    samples: ShelfPlace
    shelf: Shelf

    @classmethod
    def of(
        cls, entries: tuple[Ints, Ints, Floats], places: tuple[Ints, Ints], ratio: Floats, functions: int, shelf: Shelf
    ) -> Self:
        """Return the samples of entries, those of one row and function added up.

        Parameters
        ----------
        entries : keys, functions and values
        places : row of each key, and number of each function, −1: it is left out
        ratio : (R,) samples for each value
        functions : F
        shelf : where they are kept
        """
        column = places[1][entries[1]]
        first = np.append(0, np.cumsum(np.bincount(column[column >= 0], minlength=functions)))
        rows, sums = np.empty(first[-1], dtype=np.int32), np.empty(first[-1])
        left = _add_up((entries[0], column, entries[2]), (places[0], ratio), first, (rows, sums))
        return cls(first, shelf.put(rows[:left]), shelf.put(sums[:left]), shelf)

    def _between(self, part: slice) -> "_Entries":
        """Return the entries of some functions: where each function's begin, rows, samples."""
        first = self.first[part.start : part.stop + 1]
        row, samples = (self.shelf.get(own, int(first[0]), int(first[-1])) for own in (self.row, self.samples))
        return first - first[0], row, samples

    def dense(self, part: slice, rows: int) -> Floats:
        """Return (R, f) samples in f functions."""
        values = np.zeros((rows, part.stop - part.start))
        _spread(self._between(part), values)
        return values

    def summed(self, part: slice, group: Ints, scale: Floats) -> Floats:
        """Return (G, f) sums over rows of a group in f functions, each row times its scale.

        Parameters
        ----------
        part : functions
        group : (R,) number of each row's group
        scale : (R,)
        """
        sums = np.zeros((int(group.max()) + 1, part.stop - part.start))
        _add_groups(self._between(part), group, scale, sums)
        return sums


_Entries = tuple[Ints, AnyInts, Floats]


@njit(nogil=True)
def _add_up(
    entries: tuple[Ints, Ints, Floats], rows: tuple[Ints, Floats], first: Ints, into: tuple[AnyInts, Floats]
) -> int:
    """Write entries function by function, those of one row added up; return how many are left.

    Parameters
    ----------
    entries : keys, numbers of functions (−1: is left out), values
    rows : row of each key, and (R,) samples for each value
    first : (F + 1,) where each function's begin; afterwards of those that are left
    into : rows and samples
    """
    (key, column, value), (row_of, ratio), (row, samples) = entries, rows, into
    for at in range(len(key)):
        if column[at] >= 0:
            own = row_of[key[at]]
            to = first[column[at]]
            row[to], samples[to] = own, value[at] * ratio[own]
            first[column[at]] = to + 1
    place, left, start = np.full(len(ratio), -1), 0, 0
    for function in range(len(first) - 1):
        stop, first[function] = first[function], left
        for at in range(start, stop):
            own, amount = row[at], samples[at]
            to = place[own]
            if to < first[function]:  # the first of this row, in this function
                to = place[own] = left
                row[to], samples[to] = own, 0.0
                left += 1
            samples[to] += amount
        start = stop
    first[-1] = left
    return left


@njit(nogil=True, borrows=True)
def _spread(entries: _Entries, into: Floats) -> None:
    """Write the entries of f functions to (R, f) zeros."""
    first, row, samples = entries
    for function in range(len(first) - 1):
        for at in range(first[function], first[function + 1]):
            into[row[at], function] = samples[at]


@njit(nogil=True, borrows=True)
def _add_groups(entries: _Entries, group: Ints, scale: Floats, into: Floats) -> None:
    """Add the entries of f functions, times the scales of their rows, to (G, f) sums of groups of rows."""
    first, row, samples = entries
    for function in range(len(first) - 1):
        for at in range(first[function], first[function + 1]):
            own = row[at]
            into[group[own], function] += samples[at] * scale[own]


@dataclass(frozen=True, slots=True, eq=False)
class CostCells:
    """The C cells of one application, cluster by cluster: R rows in order of their units, F functions.

    A unit is a cluster (machine) within a block (platform and data centre): what it has of its own stays with it from
    cell to cell. Most rows have no sample of most functions, so samples are kept function by function, and a dense
    array is of a few functions at a time (`parts`).
    """

    application: str
    tags: pd.DataFrame
    """(C,) later (whether of the later period) and the tags."""
    cell: Ints
    """(R,) number of its cell."""
    later: Floats
    """(R,) 1 in the later period."""
    unit: Ints
    """(R,) number of its unit, not decreasing."""
    block: Ints
    """(U,) number of each unit's block, not decreasing."""
    functions: Ints
    """(F,) places of the functions."""
    count: Floats
    """(R,) samples."""
    size: Floats
    """(C,) samples of each cell."""
    pairs: float
    """What the squares of rows' strays from their cells are divided by for a variance between clusters."""
    scale: Floats
    """(R,) estimated events of the fleet that one of them stands for."""
    sampled: SparseSamples
    """Samples in each function: its share of the events times the count."""
    pooled: Floats
    """(B, F) each function's share of its block, both periods."""
    lasting: Floats
    """(F,) variance of log odds between units."""
    passing: Floats
    """(F,) variance of log odds between a unit's rows."""
    usual: float = _PRIOR_VARIANCE
    """Variance of log odds between clusters that is usual in the application."""

    @property
    def place(self) -> Ints:
        """(R,) number of each row's block."""
        return self.block[self.unit]

    def parts(self) -> Iterator[slice]:
        """Yield functions, so many at a time that a dense array of them and all rows is small."""
        width = max(1, _DENSE_NUMBERS // len(self.count))
        for first in range(0, len(self.functions), width):
            yield slice(first, min(first + width, len(self.functions)))

    def sizes(self) -> tuple[Ints, Ints, Floats]:
        """Return (R,) each row's pair of block and count, and (P,) the blocks and counts of the distinct ones."""
        counts, code = np.unique(self.count, return_inverse=True)
        pair, first = numbered([self.place, code.astype(np.int64)])
        return pair, self.place[first], counts[code[first]]

    def stray(self, part: slice) -> Floats:
        """Return (R, f) how far log odds are from what is expected: first order, so right in the mean of small cells.

        Parameters
        ----------
        part : f functions
        """
        shares, place = self.pooled[:, part], self.place
        values = self.sampled.dense(part, len(self.count))
        values /= self.count[:, None]
        values -= shares[place]
        values /= (shares * (1.0 - shares))[place]
        return values


def cells(table: pd.DataFrame, cluster: str) -> Iterator[CostCells]:
    """Yield the cells of every application that was seen in both periods.

    Parameters
    ----------
    table : columns later, application, function (place), tags, the cluster, samples, value
    """
    functions = int(table["function"].max()) + 1 if len(table) else 0
    yield from cost_cells(coded(table, cluster), functions)[0]


def cost_cells(table: CodedTable, functions: int) -> tuple[list[CostCells], Floats]:
    """Return the cells of every application that was seen in both periods, and (2, F) value of each function in them.

    Parameters
    ----------
    table : both periods
    functions : F
    """
    keys, shelf, counted = table.keys, Shelf(), []
    tags = [name for name in TAGS if name in keys.columns]
    cell, combined = distinct(keys, ["application", "later", *tags])
    combined = combined[["later", *tags]].astype(object)  # whose rows are quickly taken
    periods = combined["later"].to_numpy(np.bool_)
    value, later = np.zeros((2, functions)), keys["later"].to_numpy(np.int64)
    places = [name for name in _BLOCK_TAGS if name in tags]
    blocks = distinct(combined, places)[0] if places else np.zeros(len(combined), dtype=np.int64)
    group = keys["group"].to_numpy(np.int64)
    for at, application in enumerate(table.applications):
        here, entries = slice(*table.first[at : at + 2].tolist()), table.entries(at)
        place = later[here][entries.key] * functions + entries.function
        value += np.bincount(place, entries.value, 2 * functions).reshape(2, functions)
        first, last = int(cell[here].min()), int(cell[here].max())
        if len(set(periods[first : last + 1].tolist())) == 2:
            about = combined.iloc[first : last + 1].reset_index(drop=True)
            who = cell[here] - first, group[here]
            block = np.unique(blocks[first : last + 1], return_inverse=True)[1].astype(np.int64)
            own = _counted(application, (about, block), who, entries, shelf)
            counted += [own] if len(own.functions) else []
    moments = [_moments(own) for own in counted]
    together, apart = (sum(own[i] for own in moments) for i in (2, 3))
    share = float(np.clip(together / apart, 0.0, 0.9)) if apart > 0 else 0.0
    return [
        replace(own, lasting=share * between, passing=(1.0 - share) * between, usual=usual)
        for own, (between, usual, _, _) in zip(counted, moments, strict=True)
    ], value


def _counted(
    application: str, about: tuple[pd.DataFrame, Ints], who: tuple[Ints, Ints], entries: CostEntries, shelf: Shelf
) -> CostCells:
    """Return an application's cells, the variances still left out.

    Parameters
    ----------
    application : its name
    about : tags and blocks of the cells
    who : cells and groups of its keys
    entries : what it was seen to do
    shelf : where samples are kept
    """
    tags, block = about
    together = np.bincount(entries.function, entries.samples)
    functions = np.flatnonzero(together >= MIN_SAMPLES).astype(np.int64)
    row, first = numbered([block[who[0]], who[1], who[0]])
    cell, group = who[0][first], who[1][first]
    unit, start = numbered([block[cell], group])
    by_key = (np.bincount(entries.key, numbers, len(row)) for numbers in (entries.value, entries.samples))
    total, count = (np.bincount(row, numbers).astype(np.float64) for numbers in by_key)
    place = np.full(len(together), -1)
    place[functions] = np.arange(len(functions))
    triples = entries.key, entries.function, entries.value
    sampled = SparseSamples.of(triples, (row, place), count / total, len(functions), shelf)
    none = np.zeros(len(functions))
    size, squares, cubes = (np.bincount(cell, count**power, len(tags)).astype(np.float64) for power in (1, 2, 3))
    return CostCells(
        application,
        tags,
        cell=cell,
        later=tags["later"].to_numpy(np.float64)[cell],
        unit=unit,
        block=block[cell][start],
        functions=functions,
        count=count,
        size=size,
        pairs=float((squares - 2 * cubes / size + squares**2 / size**2).sum()),
        scale=total / count,
        sampled=sampled,
        pooled=_pooled(sampled, count, block[cell]),
        lasting=none,
        passing=none,
    )


def _pooled(sampled: SparseSamples, count: Floats, block: Ints) -> Floats:
    """Return (B, F) shares of the functions in each block, with one sample at the application's share added."""
    functions = slice(0, len(sampled.first) - 1)
    sums = sampled.summed(functions, block, np.ones(len(count)))
    everywhere = (sums.sum(axis=0) + 0.5) / (count.sum() + 1.0)
    own = (sums + 1.0) / (np.bincount(block, count)[:, None] + 1.0 / everywhere)
    return np.asarray(np.minimum(own, _LARGEST_SHARE), dtype=np.float64)


def members(group: Ints, groups: int) -> csr_array:
    """Return the (G, R) matrix whose product with values is their sums over rows of a group.

    Parameters
    ----------
    group : (R,) number of each row's group
    groups : G
    """
    rows = ordered(group, np.arange(len(group), dtype=np.int32))
    first = np.append(0, np.cumsum(np.bincount(group, minlength=groups))).astype(np.int32)
    return csr_array((np.ones(len(group)), rows, first), shape=(groups, len(group)))


def summed(member: csr_array, values: Floats) -> Floats:
    """Return (G, f) sums over rows of a group.

    Parameters
    ----------
    member : of `members`
    values : (R, f)
    """
    return np.asarray(member @ values, dtype=np.float64)


def _moments(cells: CostCells) -> tuple[Floats, float, float, float]:
    """Return (F,) variances of log odds between clusters, the usual one, and sums of what of them lasts and of all.

    What the clusters of a cell differ beyond independent samples is summed over cells before it is divided, since most
    cells have few samples of a function. What lasts is what a unit's rows have in common.
    """
    count, place, size = cells.count, cells.place, cells.size
    by_cell, by_unit = members(cells.cell, len(size)), members(cells.unit, len(cells.block))
    both = cells.pooled * (1.0 - cells.pooled)
    square, common = np.zeros((2, len(cells.functions)))
    for part in cells.parts():
        apart = cells.sampled.dense(part, len(count))
        apart -= count[:, None] * (summed(by_cell, apart) / size[:, None])[cells.cell]
        apart /= both[:, part][place]
        square[part] = np.einsum("rf,rf->f", apart, apart)
        sums = summed(by_unit, apart)
        common[part] = np.einsum("uf,uf->f", sums, sums)
    sampling = np.bincount(place, count * (1.0 - count / size[cells.cell])) @ (1.0 / both)
    told = np.bincount(place, count) @ both
    typical, pairs_apart = told >= MIN_SAMPLES, cells.pairs
    several = pairs_apart > 1e-9
    own = (square - sampling) / pairs_apart if several else np.zeros(len(square))
    usual = max(float(np.median(own[typical])), 0.0) if several and typical.any() else _PRIOR_VARIANCE
    pair, at, counts = cells.sizes()
    information = counts[:, None] * both[at] * several
    between = smoothed(own, usual, information, np.bincount(pair).astype(np.float64))
    pairs = float((np.bincount(cells.unit, count) ** 2).sum() - (count**2).sum())
    if pairs <= 0:
        return between, usual, 0.0, 0.0
    lasting = (common - square) / pairs
    weights = np.where(typical, told, 0.0)
    return between, usual, float((weights * lasting).sum()), float((weights * np.maximum(own, 0.0)).sum())


def smoothed(own: Floats, usual: float, information: Floats, times: Floats | None = None) -> Floats:
    """Return (F,) variances between clusters, smoothed with what is usual as far as the samples do not tell them.

    A function's own variance counts as far as its clusters' samples tell it (Smyth 2004, section 3: moderated
    variances), the usual one like that of `PRIOR_CLUSTERS` clusters.

    Parameters
    ----------
    own : (F,) variances of log odds between clusters as they were seen
    usual : variance that is usual in the application
    information : (R, F) inverse variances of the log odds of independent samples; 0 if no cell has two clusters
    times : (R,) how many clusters each row stands for; None: one

    Examples
    --------
    >>> smoothed(np.array([0.3]), 0.1, np.full((10, 1), 1e9)).round(6)
    array([0.2])
    """
    inside = usual * information
    known = (inside / (1.0 + inside)) ** 2
    support = known.sum(axis=0) if times is None else times @ known
    return np.asarray(np.maximum((own * support + usual * PRIOR_CLUSTERS) / (support + PRIOR_CLUSTERS), 0.0))
