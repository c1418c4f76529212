"""Cells of two profiles: an application's code, tag for tag and period for period, and how its functions' shares stray.

A cell is an application's code of one revision and compiler, under one kernel, on one platform in one data centre, in
one of two periods. Within a cell the odds of a function's share are multiplied by what its cost is multiplied by,
whatever else the machine runs; so changes of the mix of jobs, platforms or builds move cells' sizes and not their odds.
Most cells expect less than one sample of most functions, so what was seen is compared with what a block of cells leads
to expect: unlike the logarithm of a small count, that is right in the mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from analysis.profiling.symbolise import UNKNOWN
from models.arrays import Floats, Ints

TAGS = ("revision", "compiler", "kernel", "platform", "datacentre")
"""Tags that can be at fault, the likelier first where two explain the same cells."""
_BLOCK = ("platform", "datacentre")
"""Where a function's share differs anyway."""
MIN_SAMPLES = 20
"""Samples in an application, both periods, from which a function is looked at there."""
PRIOR_CLUSTERS = 10.0
"""Weight of an application's usual spread between clusters against a function's own."""
_USUAL = 0.25
"""Variance of log odds between clusters where nothing tells it."""
_LARGEST = 2**62
_ALL = 1.0 - 2.0**-40
"""Largest share that is expected, so that its odds are finite."""


@dataclass(frozen=True, slots=True, eq=False)
class CostCells:
    """The C cells of one application, cluster by cluster: R rows in order of their units, F functions.

    A unit is a cluster (machine) within a block (platform and data centre): what it has of its own stays with it from
    cell to cell.
    """

    application: str
    tags: pd.DataFrame
    """(C,) later (whether of the later period) and the tags."""
    value: Floats
    """(C, F) estimated events of the fleet."""
    cell: Ints
    """(R,) number of its cell."""
    unit: Ints
    """(R,) number of its unit, not decreasing."""
    block: Ints
    """(U,) number of each unit's block."""
    functions: Ints
    """(F,) places of the functions."""
    count: Floats
    """(R,) samples."""
    by_function: Floats
    """(R, F) samples in each function: its share of the events times the count."""
    expected: Floats
    """(R, F) each function's share of its block, both periods."""
    lasting: Floats
    """(F,) variance of log odds between units."""
    passing: Floats
    """(F,) variance of log odds between a unit's rows."""
    usual: float = _USUAL
    """Variance of log odds between clusters that is usual in the application."""

    @property
    def later(self) -> Floats:
        """(R,) 1 in the later period."""
        return self.tags["later"].to_numpy(np.float64)[self.cell]

    @property
    def size(self) -> Floats:
        """(C,) samples of each cell."""
        return np.bincount(self.cell, self.count, len(self.tags)).astype(np.float64)

    @property
    def pairs(self) -> float:
        """What the squares of rows' strays from their cells are divided by for a variance between clusters."""
        squares, cubes = (np.bincount(self.cell, self.count**power, len(self.tags)) for power in (2, 3))
        return float((squares - 2 * cubes / self.size + squares**2 / self.size**2).sum())

    @property
    def stray(self) -> Floats:
        """(R, F) how far log odds are from what is expected: first order, so that its mean is right in small cells."""
        return np.asarray(
            (self.by_function / self.count[:, None] - self.expected) / (self.expected * (1.0 - self.expected)),
            np.float64,
        )

    @property
    def precision(self) -> Floats:
        """(R, F) inverse variance of that within units: of independent samples, and what passes."""
        alone = 1.0 / (self.count[:, None] * self.expected * (1.0 - self.expected))
        return np.asarray(1.0 / (alone + self.passing), np.float64)


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which an image that has symbols in some builds of an application alone is one function there.

    Else a function would seem to appear with the first build whose symbols the repository has.

    Parameters
    ----------
    table : columns function, image, application, value, maybe revision
    """
    keys = ["application", "image", *(name for name in ("revision",) if name in table.columns)]
    value = table["value"].astype(np.float64)
    unknown = value.where(table["function"] == UNKNOWN, 0.0)
    sums = table[keys].assign(unknown=unknown, value=value).groupby(keys, observed=True, as_index=False).sum()
    sums = sums.assign(missing=sums["unknown"] > 0.5 * sums["value"])
    both = sums.groupby(["application", "image"], observed=True)["missing"].nunique()
    partly = both[both > 1].index
    if not len(partly):
        return table
    here = pd.MultiIndex.from_frame(table[["application", "image"]]).isin(partly)
    return table.assign(function=table["function"].astype(object).mask(here, "[" + table["image"].astype(str) + "]"))


def cells(table: pd.DataFrame, cluster: str) -> Iterator[CostCells]:
    """Yield the cells of every application that was seen in both periods.

    Parameters
    ----------
    table : columns later, application, function (place), tags, the cluster, samples, value
    """
    used = table[table["value"].to_numpy(np.float64) > 0]
    tags = [name for name in TAGS if name in used.columns]
    codes = {name: _coded(used[name]) for name in ("application", "later", *tags)}
    cell, combined = _distinct(codes)
    function, group = used["function"].to_numpy(np.int64), pd.factorize(used[cluster])[0].astype(np.int64)
    key, first = _numbered([cell, function, group])
    sums = [np.bincount(key, used[name].to_numpy(np.float64)).astype(np.float64) for name in ("value", "samples")]
    cell, function, group = cell[first], function[first], group[first]
    application = combined["application"].to_numpy(object)
    change = np.flatnonzero(application[1:] != application[:-1]) + 1
    counted = []
    for here in np.split(np.arange(len(combined)), change):
        part = slice(*np.searchsorted(cell, [here[0], here[-1] + 1]))
        about = combined.iloc[here].reset_index(drop=True)
        if about["later"].nunique() == 2:
            entries = _Entries(cell[part] - here[0], function[part], group[part], sums[0][part], sums[1][part])
            counted.append(_counted(str(about["application"].iloc[0]), about[["later", *tags]], entries))
    counted = [own for own in counted if len(own.functions)]
    moments = [_moments(own) for own in counted]
    together, apart = (sum(own[i] for own in moments) for i in (2, 3))
    share = float(np.clip(together / apart, 0.0, 0.9)) if apart > 0 else 0.0
    for own, (between, usual, _, _) in zip(counted, moments, strict=True):
        yield replace(own, lasting=share * between, passing=(1.0 - share) * between, usual=usual)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """What one application was seen to do: arrays of one entry for each cell, function and cluster."""

    cell: Ints
    function: Ints
    group: Ints
    value: Floats
    samples: Floats


def _counted(application: str, tags: pd.DataFrame, entries: _Entries) -> CostCells:
    """Return an application's cells, the variances still left out."""
    functions = np.flatnonzero(np.bincount(entries.function, entries.samples) >= MIN_SAMPLES).astype(np.int64)
    names = [name for name in _BLOCK if name in tags.columns]
    block = _distinct({name: _coded(tags[name]) for name in names})[0] if names else np.zeros(len(tags), dtype=np.int64)
    row, first = _numbered([block[entries.cell], entries.group, entries.cell])
    cell, group = entries.cell[first], entries.group[first]
    unit, start = _numbered([block[cell], group])
    shape = (len(first), len(functions))
    column = np.minimum(np.searchsorted(functions, entries.function), max(len(functions) - 1, 0))
    large = functions[column] == entries.function if len(functions) else np.zeros(len(row), dtype=np.bool_)

    def sums(place: Ints, rows: int) -> Floats:
        where = (place * shape[1] + column)[large]
        return np.bincount(where, entries.value[large], rows * shape[1]).reshape(rows, shape[1]).astype(np.float64)

    total, count = (np.bincount(row, numbers).astype(np.float64) for numbers in (entries.value, entries.samples))
    counted = sums(row, shape[0]) * (count / total)[:, None]
    none = np.zeros(len(functions))
    return CostCells(
        application,
        tags,
        value=sums(entries.cell, len(tags)),
        cell=cell,
        unit=unit,
        block=block[cell][start],
        functions=functions,
        count=count,
        by_function=counted,
        expected=_expected(counted, count, block[cell]),
        lasting=none,
        passing=none,
    )


def _expected(counted: Floats, count: Floats, block: Ints) -> Floats:
    """Return (R, F) shares of the functions in each row's block, with one sample at the application's share added."""
    blocks = int(block.max()) + 1
    everywhere = (counted.sum(axis=0) + 0.5) / (count.sum() + 1.0)
    size = np.bincount(block, count, blocks)[:, None]
    own = (summed(counted, block, blocks) + 1.0) / (size + 1.0 / everywhere)
    return np.asarray(np.minimum(own, _ALL)[block], dtype=np.float64)


_FEW = 8
"""Columns up to which sums by place are quicker than a sparse product, with the same order of additions."""


def summed(values: Floats, group: Ints, groups: int) -> Floats:
    """Return sums over rows of a group.

    Parameters
    ----------
    values : (R, F)
    group : (R,) number of each row's group
    groups : G
    """
    columns = values.shape[1]
    if columns <= _FEW:
        place = (group[:, None] * columns + np.arange(columns)).ravel()
        sums = np.bincount(place, values.ravel(), groups * columns)
        return np.asarray(sums.reshape(groups, columns), dtype=np.float64)
    member = csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(groups, len(group)))
    return np.asarray(member @ values, dtype=np.float64)


def _moments(cells: CostCells) -> tuple[Floats, float, float, float]:
    """Return (F,) variances of log odds between clusters, the usual one, and sums of what of them lasts and of all.

    What the clusters of a cell differ beyond independent samples is summed over cells before it is divided, since most
    cells have few samples of a function. What lasts is what a unit's rows have in common.
    """
    combined, units = len(cells.tags), len(cells.block)
    count = cells.count[:, None]
    both = cells.expected * (1.0 - cells.expected)
    middle = (summed(cells.by_function, cells.cell, combined) / cells.size[:, None])[cells.cell]
    apart = cells.by_function - count * middle
    square, sampling = apart**2 / both**2, count / both
    excess = square.sum(axis=0) - (sampling * (1.0 - count / cells.size[cells.cell, None])).sum(axis=0)
    told = (count * both).sum(axis=0)
    typical = told >= MIN_SAMPLES
    several = cells.pairs > 1e-9
    own = excess / cells.pairs if several else np.zeros(len(excess))
    usual = max(float(np.median(own[typical])), 0.0) if several and typical.any() else _USUAL
    between = smoothed(own, usual, count * both * several)
    pairs = float((summed(count, cells.unit, units) ** 2).sum() - (count**2).sum())
    if pairs <= 0:
        return between, usual, 0.0, 0.0
    common = summed(apart / both, cells.unit, units) ** 2
    lasting = (common.sum(axis=0) - square.sum(axis=0)) / pairs
    weights = np.where(typical, told, 0.0)
    return between, usual, float((weights * lasting).sum()), float((weights * np.maximum(own, 0.0)).sum())


def smoothed(own: Floats, usual: float, information: Floats) -> Floats:
    """Return (F,) variances between clusters, smoothed with what is usual as far as the samples do not tell them.

    A function's own variance counts as far as its clusters' samples tell it (Smyth 2004, section 3: moderated
    variances), the usual one like that of `PRIOR_CLUSTERS` clusters.

    Parameters
    ----------
    own : (F,) variances of log odds between clusters as they were seen
    usual : variance that is usual in the application
    information : (R, F) inverse variances of the log odds of independent samples; 0 if no cell has two clusters

    Examples
    --------
    >>> smoothed(np.array([0.3]), 0.1, np.full((10, 1), 1e9)).round(6)
    array([0.2])
    """
    inside = usual * information
    support = ((inside / (1.0 + inside)) ** 2).sum(axis=0)
    return np.asarray(np.maximum((own * support + usual * PRIOR_CLUSTERS) / (support + PRIOR_CLUSTERS), 0.0))


def _coded(column: pd.Series) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.object_]]]:
    """Return each entry's place among the sorted distinct ones, and these."""
    code, values = pd.factorize(column, sort=True)
    return code.astype(np.int64), np.asarray(values, dtype=object)


def _distinct(
    codes: dict[str, tuple[Ints, np.ndarray[tuple[int], np.dtype[np.object_]]]],
) -> tuple[Ints, pd.DataFrame]:
    """Return each entry's number among the distinct combinations, and these in order."""
    number, first = _numbered([code for code, _ in codes.values()])
    return number, pd.DataFrame({name: values[code[first]] for name, (code, values) in codes.items()})


def _numbered(parts: Sequence[Ints]) -> tuple[Ints, Ints]:
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
