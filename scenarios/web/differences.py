"""What chance makes of frames and functions: intervals of their shares, and which changed beyond it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.special import expit, stdtrit

from analysis.profiling.frames import AnyInts
from analysis.profiling.intervals import ROUNDING, ShareMoments
from analysis.profiling.query import Query
from analysis.profiling.shelf import give_back_memory
from models.arrays import Floats, Ints
from scenarios.profiling.intervals import CLUSTER, ERRORS, LEVEL, drawn, with_change, without
from scenarios.web.rooted import RootedPaths
from scenarios.web.site import ProfileSite
from scenarios.web.tree import SMALLEST_SHARE, Tree

_T = TypeVar("_T")
_AT_ONCE = 500_000
"""Frames that are looked up at a time."""
_NO_PATHS = "no intervals: no samples have call paths"
Items = tuple[AnyInts, AnyInts]
"""(P + 1,) where the items of each path begin, and numbers of the items, each once on a path."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Samples of one side, to be summed by what P call paths have in common."""

    value: Floats
    """(P,) events of each path."""
    moments: Callable[[Items, Floats, Sequence[object]], ShareMoments]
    """Of items, (P,) events and the items' names."""

    def errors(self, items: Items, names: Sequence[object]) -> pd.DataFrame:
        """Return the shares of items, as of a clustered sample: item, share, standard_error, degrees.

        Parameters
        ----------
        items : those of each path
        names : (K,) of the items
        """
        give_back_memory()
        moments = self.moments(items, self.value, names)
        give_back_memory()
        return moments.errors()


def without_interval(site: ProfileSite, query: Query) -> str:
    """Return in a line why the shares of a query have no intervals; nothing if they can have some.

    Parameters
    ----------
    site, query : asked, before there are call paths, which take memory
    """
    known = not {CLUSTER, "process"} & set(query.by) and drawn(site.database, query)
    return "" if known else without(site.database, query)


def sides(paths: RootedPaths) -> tuple[Side, Side] | str:
    """Return the samples of both sides of paths, or a line that says why nothing can be told from chance.

    Parameters
    ----------
    paths : of two queries that can be compared
    """
    first, second = (one_side(paths, at) for at in (0, 1))
    return first if isinstance(first, str) else second if isinstance(second, str) else (first, second)


def one_side(paths: RootedPaths, at: int = 0) -> Side | str:
    """Return the samples of the paths of a query, or a line that says why their shares have no intervals.

    Parameters
    ----------
    paths : of queries whose shares can have some
    at : which query
    """
    if not paths.events[at].any():
        return _NO_PATHS
    moments = partial(paths.samples[at].moments, (paths.stack, paths.root))
    return Side(paths.events[at].astype(np.float64), moments)


def functions(paths: RootedPaths) -> pd.DataFrame | str:
    """Return the functions on the paths of two sides: function, share_a, share_b, change, low, high, significant.

    Parameters
    ----------
    paths : of two queries that can be compared, without root frames

    Returns
    -------
    DataFrame or str
        Or a line that says why nothing can be told from chance.
    """
    both = sides(paths)
    if isinstance(both, str):
        return both
    (first, function), every = paths.frames.once(), paths.frames.names
    del paths  # its frames take as much memory as the functions do
    place = np.zeros(len(every), dtype=function.dtype)
    parts = [function[begin : begin + _AT_ONCE] for begin in range(0, len(function), _AT_ONCE)]
    for some in parts:
        place[some] = 1
    on = np.flatnonzero(place)
    place[on] = np.arange(len(on))
    for some in parts:
        some[:] = place[some]
    items, names = (first, function), [every[at] for at in on.tolist()]
    errors = [side.errors(items, names) for side in both]
    return _changes(errors).rename(columns={"item": "function"})


def frames(trees: Sequence[Tree], before: Side, after: Side) -> list[dict[int, bool]]:
    """Return of the frames of each tree whether their change is significant, corrected for the frames of all trees.

    Tested are those whose share, the mean of both sides, is large enough to be drawn: which these are says nothing of
    how they changed (Bourgon, Gentleman and Huber 2010). All others are left out.

    Parameters
    ----------
    trees : of both sides
    before, after : the sides
    """
    large = [1 + np.flatnonzero(np.add(*tree.shares())[1:] >= 2 * SMALLEST_SHARE) for tree in trees]
    items = _items(trees, large)
    changes = _changes([side.errors(*items) for side in (before, after)])
    return _apart(large, changes["significant"].tolist())


def frame_intervals(trees: Sequence[Tree], side: Side) -> list[dict[int, tuple[float, float]]]:
    """Return of the larger frames of each tree the 95% interval of their share, Student's t of the logit over visits.

    Parameters
    ----------
    trees : of the paths
    side : their samples
    """
    large = [1 + np.flatnonzero(tree.shares()[0][1:] >= SMALLEST_SHARE) for tree in trees]
    errors = side.errors(*_items(trees, large))
    return _apart(large, list(zip(*_logit_limits(errors), strict=True)))


def _logit_limits(errors: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return low and high of shares: t limits of the logit, whose error is that of the share over p (1 − p).

    A share in which all visits are alike, but for rounding, has no width: one of everything is 100% of each.
    """
    share = errors["share"].to_numpy(np.float64).clip(1e-12, 1 - 1e-12)
    binomial, error = share * (1 - share), errors["standard_error"].to_numpy(np.float64)
    varies = (error**2 > ROUNDING * binomial) & (binomial > 2e-12)
    reach = np.where(varies, stdtrit(errors["degrees"], 0.5 + LEVEL / 2) * error / binomial, 0.0)
    centre = np.log(share / (1 - share))
    low, high = (expit(centre + sign * reach) for sign in (-1, 1))
    return low.tolist(), high.tolist()


def _items(trees: Sequence[Tree], large: Sequence[Ints]) -> tuple[Items, Sequence[int]]:
    """Return which of the large frames of all trees, in their order, each path has, and the numbers of these."""
    start = np.cumsum([0, *map(len, large)], dtype=np.int32)
    first = np.zeros(trees[0].paths + 1, dtype=np.int32)
    for tree, numbers in zip(trees, large, strict=True):
        for paths, _ in tree.on_paths(numbers):
            first[paths + 1] += 1
    np.cumsum(first, out=first)
    free, item = first[:-1].copy(), np.empty(int(first[-1]), dtype=np.int32)
    for tree, numbers, before in zip(trees, large, start, strict=False):
        for paths, own in tree.on_paths(numbers):
            item[free[paths]] = own + before
            free[paths] += 1
    return (first, item), range(int(start[-1]))


def _apart(large: Sequence[Ints], values: Sequence[_T]) -> list[dict[int, _T]]:
    """Return values of all frames, tree by tree."""
    left = iter(values)
    return [dict(zip(numbers.tolist(), left, strict=False)) for numbers in large]


def _changes(errors: Sequence[pd.DataFrame]) -> pd.DataFrame:
    a, b = errors
    table = pd.DataFrame({"item": a["item"], "share_a": a["share"], "share_b": b["share"]})
    table = table.assign(change=table["share_b"] - table["share_a"])
    return with_change(table, ["item"], a[["item", *ERRORS]], b[["item", *ERRORS]])
