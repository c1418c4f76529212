"""Cells of two profiles: an application's code, tag for tag and period for period, and how its functions' shares stray.

A cell is an application's code of one revision and compiler, under one kernel, on one platform in one data centre, in
one of two periods. Within a cell the odds of a function's share are multiplied by what its cost is multiplied by,
whatever else the machine runs; so changes of the mix of jobs, platforms or builds move cells' sizes and not their odds.
Most cells expect less than one sample of most functions, so what was seen is compared with what a block of cells leads
to expect: unlike the logarithm of a small count, that is right in the mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.repository import UNKNOWN
from analysis.statistics import Floats, Ints

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


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of one application: R rows in B blocks (platform and data centre), F functions."""

    application: str
    tags: pd.DataFrame
    """(R,) later (whether of the later period) and the tags."""
    block: Ints
    """(R,) number of its block."""
    functions: Ints
    """(F,) places of the functions."""
    count: Floats
    """(R,) samples."""
    seen: Floats
    """(R, F) samples in each function: its share of the events times the count."""
    expected: Floats
    """(R, F) each function's share of its block, both periods."""
    between: Floats
    """(F,) variance of log odds between clusters."""
    concentration: Floats
    """(R,) inverse of the effective number of clusters (Kish 1965)."""
    value: Floats
    """(R, F) estimated events of the fleet."""

    @property
    def later(self) -> Floats:
        """(R,) 1 in the later period."""
        return self.tags["later"].to_numpy(np.float64)

    @property
    def stray(self) -> Floats:
        """(R, F) how far log odds are from what is expected: first order, so that its mean is right in small cells."""
        return np.asarray(
            (self.seen / self.count[:, None] - self.expected) / (self.expected * (1.0 - self.expected)), np.float64
        )

    @property
    def precision(self) -> Floats:
        """(R, F) inverse variance of that: of independent samples, and between clusters."""
        alone = 1.0 / (self.count[:, None] * self.expected * (1.0 - self.expected))
        return np.asarray(1.0 / (alone + self.between * self.concentration[:, None]), np.float64)


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which an image that has symbols in some builds of an application alone is one function there.

    Else a function would seem to appear with the first build whose symbols the repository has.

    Parameters
    ----------
    table : columns function, image, application, value, maybe revision

    Examples
    --------
    >>> rows = {"function": ["[unknown]", "f", "g"], "image": ["a", "a", "libz"], "application": "a", "value": 9.0}
    >>> comparable(pd.DataFrame(rows).assign(revision=["r1", "r2", "r2"]))["function"].tolist()
    ['[a]', '[a]', 'g']
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


def cells(table: pd.DataFrame, cluster: str) -> Iterator[Cells]:
    """Yield the cells of every application that was seen in both periods.

    Parameters
    ----------
    table : columns later, application, function (place), tags, the cluster, samples, value

    Examples
    --------
    >>> row = {"application": "a", "function": [0, 1] * 2, "platform": "p", "machine": 1, "samples": 30, "value": 3.0}
    >>> next(cells(pd.DataFrame(row).assign(later=[False, False, True, True]), "machine")).stray.round(6)
    array([[0., 0.],
           [0., 0.]])
    """
    kept = table[table["value"].to_numpy(np.float64) > 0]
    tags = [name for name in TAGS if name in kept.columns]
    codes = {name: _coded(kept[name]) for name in ("application", "later", *tags)}
    row, rows = _distinct(codes)
    function = kept["function"].to_numpy(np.int64)
    group = pd.factorize(kept[cluster])[0].astype(np.int64)
    key = _numbered([row, function, group])[0]
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    sums = [np.bincount(same, kept[name].to_numpy(np.float64)).astype(np.float64) for name in ("value", "samples")]
    row, function, group = row[first], function[first], group[first]
    application = rows["application"].to_numpy(object)
    change = np.flatnonzero(application[1:] != application[:-1]) + 1
    for here in np.split(np.arange(len(rows)), change):
        part = slice(*np.searchsorted(row, [here[0], here[-1] + 1]))
        about = rows.iloc[here].reset_index(drop=True)
        if about["later"].nunique() == 2:
            seen = _Seen(row[part] - here[0], function[part], group[part], sums[0][part], sums[1][part])
            found = _cells(str(about["application"].iloc[0]), about[["later", *tags]], seen)
            if len(found.functions):
                yield found


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What one application was seen to do: arrays of one entry for each row, function and cluster."""

    row: Ints
    function: Ints
    group: Ints
    value: Floats
    samples: Floats


def _cells(application: str, tags: pd.DataFrame, seen: _Seen) -> Cells:
    row, value = seen.row, seen.value
    functions = np.flatnonzero(np.bincount(seen.function, seen.samples) >= MIN_SAMPLES).astype(np.int64)
    pair, home = _numbered([row, seen.group])
    size = np.bincount(pair, value)
    total, count = (np.bincount(row, one).astype(np.float64) for one in (value, seen.samples))
    many = np.bincount(home).astype(np.int64)
    shape = (len(tags), len(functions))
    column = np.minimum(np.searchsorted(functions, seen.function), max(len(functions) - 1, 0))
    kept = functions[column] == seen.function if len(functions) else np.zeros(len(row), dtype=np.bool_)
    place = (row * shape[1] + column)[kept]

    def sums(weights: Floats) -> Floats:
        return np.bincount(place, weights[kept], shape[0] * shape[1]).reshape(shape).astype(np.float64)

    inside = sums(value)
    share = inside / total[:, None]
    squares = np.bincount(home, size**2, len(tags))
    spread = sums(value**2) - 2 * share * sums(value * size[pair]) + share**2 * squares[:, None]
    variance, concentration = np.maximum(spread, 0.0) / total[:, None] ** 2, squares / total**2
    names = [name for name in _BLOCK if name in tags.columns]
    block = _distinct({name: _coded(tags[name]) for name in names})[0] if names else np.zeros(len(tags), dtype=np.int64)
    counted = share * count[:, None]
    expected = _expected(counted, count, block)
    between = _between(expected, variance, count, (many, concentration))
    return Cells(application, tags, block, functions, count, counted, expected, between, concentration, inside)


def _expected(seen: Floats, count: Floats, block: Ints) -> Floats:
    """Return (R, F) shares of the functions in each row's block, with one sample at the application's share added."""
    member = (block[:, None] == np.arange(block.max() + 1)).astype(np.float64)
    everywhere = (seen.sum(axis=0) + 0.5) / (count.sum() + 1.0)
    own = (member.T @ seen + 1.0) / ((member.T @ count)[:, None] + 1.0 / everywhere)
    return np.asarray(own[block], dtype=np.float64)


def _between(expected: Floats, variance: Floats, count: Floats, groups: tuple[Ints, Floats]) -> Floats:
    """Return (F,) variances of log odds between clusters by moments, a function's own smoothed with the usual.

    What clusters differ beyond independent samples is summed over rows before it is divided, since most rows have few
    samples of a function; it counts as far as a cluster's samples tell it (Smyth 2004, section 3: moderated variances).
    """
    many, concentration = groups
    usable = many > 1
    both = (expected * (1.0 - expected))[usable]
    each, clusters = count[usable, None], many[usable, None]
    excess = (each**2 * (variance[usable] * clusters / (clusters - 1) - both / each)).sum(axis=0)
    weight = (each**2 * both**2 * concentration[usable, None]).sum(axis=0)
    known = weight > 0
    own = np.divide(excess, weight, out=np.zeros(len(weight)), where=known)
    typical = known & ((each * both).sum(axis=0) >= MIN_SAMPLES)
    usual = max(float(np.median(own[typical])), 0.0) if typical.any() else _USUAL
    inside = usual * each * both / clusters
    support = (clusters * (inside / (1.0 + inside)) ** 2).sum(axis=0)
    return np.asarray(np.maximum((own * support + usual * PRIOR_CLUSTERS) / (support + PRIOR_CLUSTERS), 0.0))


def _coded(column: pd.Series) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.object_]]]:
    """Return each entry's place among the sorted distinct ones, and these."""
    code, values = pd.factorize(column, sort=True)
    return code.astype(np.int64), np.asarray(values, dtype=object)


def _distinct(
    codes: dict[str, tuple[Ints, np.ndarray[tuple[int], np.dtype[np.object_]]]],
) -> tuple[Ints, pd.DataFrame]:
    """Return each entry's number among the distinct combinations, and these in order."""
    number, first = _numbered([code for code, _ in codes.values()], firsts=True)
    return number, pd.DataFrame({name: values[code[first]] for name, (code, values) in codes.items()})


def _numbered(parts: Sequence[Ints], *, firsts: bool = False) -> tuple[Ints, Ints]:
    """Return each entry's number among the distinct combinations, and of each the first part (or where it is first)."""
    key, size = np.zeros(len(parts[0]), dtype=np.int64), 1
    for part in parts:
        wide = int(part.max(initial=0)) + 1
        if size * wide >= _LARGEST:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = int(key.max(initial=0)) + 1
        key, size = key * wide + part, size * wide
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.astype(np.int64), (first if firsts else parts[0][first]).astype(np.int64)
