"""Two profiles in numbers: who ran which code where, and what each was seen to do, one application at a time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct
from analysis.profiling.symbolise import UNKNOWN
from models.arrays import Floats, Ints

TAGS = ("revision", "compiler", "kernel", "platform", "datacentre")
"""Tags that can be at fault, the likelier first where two explain the same cells."""


@dataclass(frozen=True, slots=True, eq=False)
class CostEntries:
    """What one application was seen to do: arrays of n entries."""

    key: Ints
    """Of `CodedTable.keys`, from the application's first on."""
    function: Ints
    """Place of the function."""
    samples: Floats
    value: Floats

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class CodedTable:
    """Two profiles: keys are a cluster's code of one application, tag for tag and period for period."""

    keys: pd.DataFrame
    """(K,) later, application, the tags, group (number of the cluster), value; in order of applications."""
    applications: list[str]
    """(A,) in order."""
    first: Ints
    """(A + 1,) where each application's keys begin."""
    entries: Callable[[int], CostEntries]
    """Returns what an application was seen to do."""


def coded(table: pd.DataFrame, cluster: str) -> CodedTable:
    """Return a table in numbers; rows without value are left out.

    Parameters
    ----------
    table : columns later, application, function (place), tags, the cluster, samples, value
    cluster : what was drawn
    """
    used = table[table["value"].to_numpy(np.float64) > 0]
    tags = [name for name in TAGS if name in used.columns]
    group = pd.factorize(used[cluster])[0].astype(np.int64)
    key, keys = distinct(used.assign(group=group), ["application", "later", *tags, "group"])
    order = np.argsort(key, kind="stable")
    key = key[order]
    columns = [used[name].to_numpy()[order] for name in ("function", "samples", "value")]
    function, samples, value = columns[0].astype(np.int64), *(column.astype(np.float64) for column in columns[1:])
    keys = keys.assign(value=np.bincount(key, value, len(keys)))
    applications, first = edges(keys["application"])
    start = np.searchsorted(key, first)

    def entries(at: int) -> CostEntries:
        part = slice(*start[at : at + 2])
        return CostEntries(key[part] - first[at], function[part], samples[part], value[part])

    return CodedTable(keys, applications, first, entries)


def edges(application: "pd.Series[str]") -> tuple[list[str], Ints]:
    """Return the distinct applications of rows that are in order, and (A + 1,) where each one's begin.

    Examples
    --------
    >>> edges(pd.Series(["a", "a", "b"]))
    (['a', 'b'], array([0, 2, 3]))
    """
    code, names = pd.factorize(application)
    first = np.searchsorted(code, np.arange(len(names) + 1)).astype(np.int64)
    return [str(name) for name in names], first


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
    partly = partly_named(sums)
    if not len(partly):
        return table
    here = pd.MultiIndex.from_frame(table[["application", "image"]]).isin(partly)
    return table.assign(function=table["function"].astype(object).mask(here, "[" + table["image"].astype(str) + "]"))


def partly_named(sums: pd.DataFrame) -> pd.MultiIndex:
    """Return the applications and images that have symbols in some builds alone.

    Parameters
    ----------
    sums : columns application, image, value, unknown (the part without symbols), maybe revision
    """
    sums = sums.assign(missing=sums["unknown"] > 0.5 * sums["value"])
    both = sums.groupby(["application", "image"], observed=True)["missing"].nunique()
    return pd.MultiIndex.from_tuples(both[both > 1].index.to_list(), names=["application", "image"])
