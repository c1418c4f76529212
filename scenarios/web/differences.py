"""What chance makes of frames and functions: intervals of their shares, and which changed beyond it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.special import expit, stdtrit

from analysis.profiling.intervals import ClusteredProfile, ShareMoments
from analysis.profiling.query import Query, TooManyRowsError, of_process
from models.arrays import Floats, Ints
from scenarios.profiling.intervals import CLUSTER, ERRORS, LEVEL, drawn, incomparable, with_change, without
from scenarios.web.charts import OTHER
from scenarios.web.graph import SMALLEST_SHARE, Tree
from scenarios.web.site import ProfileSite

_T = TypeVar("_T")
Layout = Callable[[tuple[str, ...]], tuple[str, ...]]
"""From a path, root first, to the frames in the order in which they are drawn; none if it is not drawn."""
_MOST_PATHS, _MOST_FRAMES = 200_000, 5_000_000
_TOO_MANY = "no intervals: there are too many call paths"
_NO_PATHS = "no intervals: no samples have call paths"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Stacks of one side, visit by visit: each row a path, what it stands for, and the visit that it is of."""

    paths: list[tuple[str, ...]]
    """(P,) distinct paths, a root frame before them if there are any."""
    path: Ints
    """(R,) number of each row's path."""
    visit: Ints
    """(R,) number of each row's visit, 0 to M − 1."""
    value: Floats
    """(R,) events."""

    @property
    def size(self) -> Floats:
        """(M,) events of each visit."""
        return np.bincount(self.visit, self.value).astype(np.float64)

    def errors(self, items: Sequence[Ints], names: Sequence[object]) -> pd.DataFrame:
        """Return the shares of items, as of a clustered sample: item, share, standard_error, degrees.

        Parameters
        ----------
        items : (P,) numbers of the items that each path has, each once
        names : (K,) of the items
        """
        length = np.array([len(places) for places in items], dtype=np.int64)
        flat = np.concatenate([np.empty(0, np.int64), *items])
        start = np.cumsum(length) - length
        take = length[self.path]
        row = np.repeat(np.arange(len(self.path)), take)
        at = start[self.path][row] + np.arange(len(row)) - np.repeat(np.cumsum(take) - take, take)
        key = flat[at] * len(self.size) + self.visit[row]
        cell, place = np.unique(key, return_inverse=True)
        value = np.bincount(place, self.value[row], len(cell)).astype(np.float64)
        keys = pd.DataFrame({"item": list(names)})
        data = ClusteredProfile(keys, cell // len(self.size), cell % len(self.size), value, value, self.size)
        moments = ShareMoments.of(data)
        error = np.sqrt(moments.variance)
        return keys.assign(share=data.shares, standard_error=error, degrees=moments.degrees)


def sides(site: ProfileSite, before: Query, after: Query, roots: Sequence[str]) -> tuple[Side, Side] | str:
    """Return the stacks of both sides visit by visit, or a line that says why nothing can be told from chance.

    Parameters
    ----------
    site : asked
    before, after : of the same event and dimensions
    roots : values of the first dimension of processes that have root frames of their own; none: no root frames
    """
    if why := incomparable(site.database, before, site.database, after):
        return why
    first = _side(site, before, roots)
    if isinstance(first, str):
        return first
    second = _side(site, after, roots)
    return second if isinstance(second, str) else (first, second)


def one_side(site: ProfileSite, query: Query, roots: Sequence[str]) -> Side | str:
    """Return the stacks of a query visit by visit, or a line that says why their shares have no intervals.

    Parameters
    ----------
    site, query : asked
    roots : as of `sides`
    """
    if not drawn(site.database, query):
        return without(site.database, query)
    return _side(site, query, roots)


def _side(site: ProfileSite, query: Query, roots: Sequence[str]) -> Side | str:
    key = next((name for name in query.by if of_process(name)), None) if roots else None
    try:
        rows = site.database.apart(replace(query, by=(CLUSTER,) if key is None else (key, CLUSTER)), _MOST_PATHS)
    except TooManyRowsError:
        return _TOO_MANY
    if not len(rows) or sum(map(len, rows["path"])) > _MOST_FRAMES:
        return _TOO_MANY if len(rows) or site.database.has_paths(query) else _NO_PATHS
    root = [()] * len(rows) if key is None else [(root if root in roots else OTHER,) for root in rows[key].map(str)]
    number: dict[tuple[str, ...], int] = {}
    path = [number.setdefault((*first, *rest), len(number)) for first, rest in zip(root, rows["path"], strict=True)]
    visit = pd.factorize(rows[CLUSTER])[0].astype(np.int64)
    return Side(list(number), np.array(path, dtype=np.int64), visit, rows["value"].to_numpy(np.float64))


def functions(before: Side, after: Side) -> pd.DataFrame:
    """Return the functions on the paths of two sides: function, share_a, share_b, change, low, high, significant.

    Parameters
    ----------
    before, after : the sides, without root frames
    """
    names: dict[str, int] = {}
    items = [
        [np.unique([names.setdefault(name, len(names)) for name in path]).astype(np.int64) for path in side.paths]
        for side in (before, after)
    ]
    errors = [side.errors(items, list(names)) for side, items in zip((before, after), items, strict=True)]
    return _changes(errors).rename(columns={"item": "function"})


def frames(layouts: Sequence[tuple[Tree, Layout]], before: Side, after: Side) -> list[dict[int, bool]]:
    """Return of the frames of each tree whether their change is significant, corrected for the frames of all trees.

    Tested are those whose share, the mean of both sides, is large enough to be drawn: which these are says nothing of
    how they changed (Bourgon, Gentleman and Huber 2010). All others are left out.

    Parameters
    ----------
    layouts : trees of both sides, and how their paths were laid out
    before, after : the sides
    """
    large = []
    for tree, _ in layouts:
        whole = [max(values[0], 1) for values in (tree.before, tree.after)]
        pairs = zip(tree.before, tree.after, strict=True)
        shares = (a / whole[0] + b / whole[1] for a, b in pairs)
        large.append([number for number, share in enumerate(shares) if number and share >= 2 * SMALLEST_SHARE])
    changes = _changes([_frame_errors(layouts, large, side) for side in (before, after)])
    return _apart(large, changes["significant"].tolist())


def frame_intervals(layouts: Sequence[tuple[Tree, Layout]], side: Side) -> list[dict[int, tuple[float, float]]]:
    """Return of the larger frames of each tree the 95% interval of their share, Student's t of the logit over visits.

    Parameters
    ----------
    layouts : trees, and how their paths were laid out
    side : the stacks
    """
    large = []
    for tree, _ in layouts:
        least = SMALLEST_SHARE * max(tree.after[0], 1)
        large.append([number for number, value in enumerate(tree.after) if number and value >= least])
    errors = _frame_errors(layouts, large, side)
    return _apart(large, list(zip(*_logit_limits(errors), strict=True)))


def _logit_limits(errors: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Return low and high of shares: t limits of the logit, whose error is that of the share over p (1 − p)."""
    share = errors["share"].to_numpy(np.float64).clip(1e-12, 1 - 1e-12)
    reach = pd.Series(stdtrit(errors["degrees"], 0.5 + LEVEL / 2) * errors["standard_error"] / (share * (1 - share)))
    centre = np.log(share / (1 - share))
    low, high = (expit(centre + sign * reach.fillna(0.0).to_numpy(np.float64)) for sign in (-1, 1))
    return low.tolist(), high.tolist()


def _frame_errors(layouts: Sequence[tuple[Tree, Layout]], large: Sequence[Sequence[int]], side: Side) -> pd.DataFrame:
    """Return the shares and errors of the large frames of all trees, in their order."""
    items: list[list[int]] = [[] for _ in side.paths]
    start = 0
    for (tree, layout), numbers in zip(layouts, large, strict=True):
        place = {number: start + index for index, number in enumerate(numbers)}
        start += len(numbers)
        for own, path in zip(items, side.paths, strict=True):
            own.extend(_places(tree, layout(path), place))
    return side.errors([np.array(own, dtype=np.int64) for own in items], range(start))


def _apart(large: Sequence[Sequence[int]], values: Sequence[_T]) -> list[dict[int, _T]]:
    """Return values of all frames, tree by tree."""
    left = iter(values)
    return [dict(zip(numbers, left, strict=False)) for numbers in large]


def _places(tree: Tree, path: Sequence[str], place: dict[int, int]) -> list[int]:
    at, places = tree.find(path), list[int]()
    while at:
        if at in place:
            places.append(place[at])
        at = tree.caller[at]
    return places


def _changes(errors: Sequence[pd.DataFrame]) -> pd.DataFrame:
    a, b = errors
    table = pd.DataFrame({"item": a["item"], "share_a": a["share"], "share_b": b["share"]})
    table = table.assign(change=table["share_b"] - table["share_a"])
    return with_change(table, ["item"], a[["item", *ERRORS]], b[["item", *ERRORS]])
