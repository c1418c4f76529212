"""Which frames and functions changed beyond chance from one set of call stacks to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.profiling.intervals import ClusteredProfile, share_degrees, share_variances
from analysis.profiling.query import Query, of_process
from models.arrays import Floats, Ints
from scenarios.profiling.intervals import CLUSTER, ERRORS, incomparable, with_change
from scenarios.web.charts import OTHER
from scenarios.web.graph import SMALLEST_SHARE, Tree
from scenarios.web.site import ProfileSite

_MOST_PATHS, _MOST_FRAMES = 200_000, 5_000_000
_TOO_MANY = "no intervals: there are too many call paths"


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
        error = np.sqrt(share_variances(data))
        return keys.assign(share=data.shares, standard_error=error, degrees=share_degrees(data))


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
    both = [_side(site, query, roots) for query in (before, after)]
    if both[0] is None or both[1] is None:
        return _TOO_MANY
    return both[0], both[1]


def _side(site: ProfileSite, query: Query, roots: Sequence[str]) -> Side | None:
    key = next((name for name in query.by if of_process(name)), None) if roots else None
    rows = site.database.apart(replace(query, by=(CLUSTER,) if key is None else (key, CLUSTER)), _MOST_PATHS)
    if not len(rows) or sum(map(len, rows["path"])) > _MOST_FRAMES:
        return None
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


def frames(tree: Tree, before: Side, after: Side) -> Mapping[int, bool]:
    """Return of the frames of a tree whether their change is significant.

    Tested are those whose share, the mean of both sides, is large enough to be drawn: which these are says nothing of
    how they changed (Bourgon, Gentleman and Huber 2010). All others are left out.

    Parameters
    ----------
    tree : of both sides
    before, after : the sides
    """
    whole = [max(values[0], 1) for values in (tree.before, tree.after)]
    pairs = zip(tree.before, tree.after, strict=True)
    large = [
        number for number, (a, b) in enumerate(pairs) if number and a / whole[0] + b / whole[1] >= 2 * SMALLEST_SHARE
    ]
    place = {number: index for index, number in enumerate(large)}
    errors = []
    for side in (before, after):
        items = [np.array(_places(tree, path, place), dtype=np.int64) for path in side.paths]
        errors.append(side.errors(items, large))
    return dict(zip(large, _changes(errors)["significant"].tolist(), strict=True))


def _places(tree: Tree, path: Sequence[str], place: Mapping[int, int]) -> list[int]:
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
