"""Frames of a flame graph: trees of call paths, which are arrays, however many there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.profiling.frames import AnyInts
from analysis.profiling.shelf import give_back_memory
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

Amounts = npt.NDArray[Any]
"""Integers of 64 bits, or Python's."""
SMALLEST_SHARE = 1 / 4000
"""Share of the whole below which nothing is said of a frame's error."""
_PATHS_AT_ONCE = 50_000
MOST_FRAMES = 20_000
"""Frames of a drawing, at most; the largest are drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class PathFrames:
    """P paths of functions in the order in which they are drawn."""

    names: Sequence[str]
    """Of functions, each once."""
    first: Ints
    """(P + 1,) where each path's frames begin."""
    code: AnyInts
    """(n,) number of each frame's name."""
    roots: int = 0
    """Frames before the functions of each path: 1 if there are root frames, and they are first."""

    @classmethod
    def of(cls, paths: Sequence[Sequence[str]]) -> "PathFrames":
        """Return paths of names.

        Examples
        --------
        >>> PathFrames.of([("main", "f"), ("main",)]).code.tolist()
        [0, 1, 0]
        """
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(name, len(numbers)) for path in paths for name in path]
        first = np.append(0, np.cumsum([len(path) for path in paths], dtype=np.int64))
        return cls(list(numbers), first.astype(np.int64), np.array(codes, dtype=np.int32))

    @property
    def owner(self) -> AnyInts:
        """(n,) path of each frame."""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))

    def at(self, paths: Ints) -> "PathFrames":
        """Return some of the paths, which may be there several times."""
        many = np.diff(self.first)[paths]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return PathFrames(
            self.names, np.append(0, np.cumsum(many)), self.code[np.repeat(self.first[paths], many) + within]
        )

    def below(self, roots: Sequence[str], root: AnyInts) -> "PathFrames":
        """Return the paths with root frames, for which there is room, of −1, before each; they are written there.

        Parameters
        ----------
        roots : names of root frames
        root : (P,) which of them each path has
        """
        numbers = {name: at for at, name in enumerate(self.names)}
        own = [numbers.setdefault(name, len(numbers)) for name in roots]
        self.code[self.first[:-1]] = np.array(own, dtype=np.int32)[root]
        return PathFrames(list(numbers), self.first, self.code, 1)

    def inverted(self) -> "PathFrames":
        """Return the paths from their ends on."""
        owner = self.owner
        code = self.code[self.first[owner] + self.first[owner + 1] - 1 - np.arange(len(self.code))]
        return replace(self, code=code, roots=0)

    def around(self, name: str) -> tuple["PathFrames", "PathFrames"]:
        """Return the paths from the outermost frame of a function on, and from it up; without it they are empty."""
        owner, place = self.owner, np.arange(len(self.code))
        at = np.flatnonzero(self.code == (self.names.index(name) if name in self.names else -1))
        path, first = np.unique(owner[at], return_index=True)
        middle = np.full(len(self.first) - 1, len(self.code))
        middle[path] = at[first]
        having = (middle < len(self.code))[owner]
        inner, outer = place >= middle[owner], having & (place <= middle[owner])
        return self._only(inner & having), self._only(outer).inverted()

    def _only(self, frames: Bools) -> "PathFrames":
        wanted = np.bincount(self.owner[frames], minlength=len(self.first) - 1)
        return PathFrames(self.names, np.append(0, np.cumsum(wanted)), self.code[frames])

    def having(self, names: Bools) -> Bools:
        """Return (P,) which paths have a frame with one of some names, root frames among them."""
        having = np.zeros(len(self.first) - 1, dtype=np.bool_)
        having[np.searchsorted(self.first, np.flatnonzero(names[self.code]), "right") - 1] = True
        return having

    def once(self) -> tuple[Ints, AnyInts]:
        """Return (P + 1,) where the functions of each path begin, and which they are, each once; no root frames."""
        once, wanted = np.zeros(len(self.code), dtype=np.bool_), np.zeros(len(self.first), dtype=np.int64)
        _mark_first((self.first, self.roots), self.code, np.full(len(self.names), -1, dtype=np.int32), (once, wanted))
        return np.cumsum(wanted), self.code[once]

    def functions(self, value: Amounts) -> pd.DataFrame:
        """Return function, value (callees included) and own value of those that have events, the greatest first.

        Parameters
        ----------
        value : (P,) events of the paths

        Examples
        --------
        >>> rows = PathFrames.of([("main", "f"), ("main",)]).functions(np.array([3, 4]))
        >>> rows.to_dict("list")
        {'function': ['main', 'f'], 'value': [7, 3], 'own': [4, 3]}
        """
        sums = np.zeros((2, len(self.names)), dtype=value.dtype)
        for begin in range(0, len(value), _PATHS_AT_ONCE):
            some = slice(begin, begin + _PATHS_AT_ONCE)
            first = self.first[begin : begin + _PATHS_AT_ONCE + 1]
            part = replace(self, first=first - first[0], code=self.code[first[0] : first[-1]])
            inside, code = part.once()
            np.add.at(sums[0], code, np.repeat(value[some], np.diff(inside)))
            having = np.diff(part.first) > self.roots
            np.add.at(sums[1], part.code[part.first[1:][having] - 1], value[some][having])
        known = np.flatnonzero(sums[0])
        order = known[np.argsort(-sums[0, known], kind="stable")]
        names = [self.names[at] for at in order.tolist()]
        return pd.DataFrame({"function": names, "value": sums[0, order], "own": sums[1, order]})


@njit(nogil=True, borrows=True)
def _mark_first(paths: tuple[Ints, int], code: AnyInts, last: AnyInts, into: tuple[Bools, Ints]) -> None:
    """Mark the first frame of each function on each path, and count them.

    Parameters
    ----------
    paths : (P + 1,) where their frames begin; root frames of each
    code : (n,)
    last : of −1, by code
    into : (n,) marks; (P + 1,) zeros, to which the numbers of paths are added, each after its path
    """
    first, roots = paths
    once, wanted = into
    for path in range(len(first) - 1):
        for at in range(first[path] + roots, first[path + 1]):
            if last[code[at]] != path:
                last[code[at]] = path
                once[at] = True
                wanted[path + 1] += 1


def _numbered(key: Ints) -> tuple[Ints, AnyInts]:
    """Return the distinct keys, rising, and which each is."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    new = np.append(True, key[1:] != key[:-1])
    at = np.empty(len(key), dtype=np.int32)
    at[order] = np.cumsum(new, dtype=np.int32) - 1
    return key[new], at


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Frames of one depth, those that are left out too."""

    of_path: AnyInts
    """(p,) place of each path's frame among them."""
    events: Amounts
    """(f,)"""
    number: AnyInts
    """(f,) number of each, −1: it is left out."""


class Tree:
    """Frames of two sets of stacks: each a function under the frame before it; the root, number 0, is before all.

    Of very many frames those are left out that are too small to be drawn, and of whose change nothing is said. A number
    is larger than that of the frame before it, and frames of one depth follow each other.

    Parameters
    ----------
    paths : P, in the order in which frames are drawn
    after : (P,) events
    before : (P,) events of another set; none without it
    most : frames that are drawn at most

    Examples
    --------
    >>> paths, events = PathFrames.of([("main", "f"), ("main", "g"), ("main",)]), np.array([[3, 5, 1], [0, 0, 2]])
    >>> tree = Tree(paths, *events)
    >>> [tree.name(number) for number in tree.largest()], tree.after.tolist(), tree.own.tolist(), tree.before.tolist()
    (['all', 'main', 'g', 'f'], [9, 9, 3, 5], [0, 1, 3, 5], [2, 2, 0, 0])
    >>> small = Tree(paths, *events, most=3)
    >>> [small.name(number) for number in small.largest()], small.frames, small.unmatched
    (['all', 'main', 'g'], 4, 0)
    """

    def __init__(
        self, paths: PathFrames, after: Amounts, before: Amounts | None = None, most: int = MOST_FRAMES
    ) -> None:
        self._names, self.paths, self._most = paths.names, len(paths.first) - 1, most
        self.frames, self.unmatched = 1, 0
        """Frames in all; events of the other set in frames that have none of these, and are below such that have."""
        self._events = [after] if before is None else [after, before]
        self._whole = [max(int(events.sum()), 1) for events in self._events]
        self._count, self._levels = 1, list[tuple[AnyInts, AnyInts]]()
        """Of each depth, paths and their frames of that depth that are not left out."""
        self._columns = [(np.array([-1]), np.array([-1]), np.zeros(1, dtype=np.int64))]
        ends = paths.first[1:] == paths.first[:-1]
        sums = [np.array([events.sum()], dtype=after.dtype) for events in self._events]
        self._sums = [(*sums, np.array([after[ends].sum()], dtype=after.dtype))]
        going = np.flatnonzero(~ends).astype(np.int32)
        above = _Level(np.zeros(len(going), dtype=np.int32), np.array([1]), np.zeros(1, dtype=np.int32))
        # Beyond the least of the largest so far, a frame that is deeper may be one of these.
        top, waiting, least = [sums[0]], 0, -1
        while len(going):
            at = paths.first[going]
            at += len(self._levels)
            ends = at + 1 == paths.first[1:][going]
            level = self._descend(going, paths.code[at], above, (ends, least))
            top.append(self._sums[-1][0])
            waiting += len(top[-1])
            if waiting > most // 4:
                top, waiting = [np.sort(np.concatenate(top))[-most:]], 0
                least = int(top[0][0]) if len(top[0]) == most else -1
            going, above = going[~ends], _Level(level.of_path[~ends], level.events, level.number)
            if len(going) > _PATHS_AT_ONCE:
                give_back_memory()
        self.caller, self.code, self.depth = map(np.concatenate, zip(*self._columns, strict=True))
        self.after, *others, self.own = map(np.concatenate, zip(*self._sums, strict=True))
        self.before = others[0] if others else np.zeros_like(self.after)
        """Events with callees, those of the other set, and events of a frame itself."""

    def _descend(self, going: AnyInts, code: AnyInts, above: "_Level", rule: tuple[Bools, int]) -> "_Level":
        """Add the frames of the next depth.

        Parameters
        ----------
        going : (p,) paths that have one
        code : (p,) names there
        above : the depth before, of these paths
        rule : (p,) whether it is the last of its path; events beyond which a frame is not left out
        """
        key = above.of_path.astype(np.int64)
        key *= max(len(self._names), 1)
        key += code
        key, at = _numbered(key)
        caller = (key // max(len(self._names), 1)).astype(np.int32)
        sums = [np.zeros(len(key), dtype=events.dtype) for events in self._events]
        for own, events in zip(sums, self._events, strict=True):
            np.add.at(own, at, events[going])
        self.frames += len(key)
        drawn = sums[0] > rule[1]
        if len(sums) > 1:
            self.unmatched += int(sums[1][(sums[0] == 0) & (above.events[caller] != 0)].sum())
            shares = (own / whole for own, whole in zip(sums, self._whole, strict=True))
            drawn |= np.add(*shares) >= 2 * SMALLEST_SHARE
        else:
            drawn |= sums[0] >= 2 * SMALLEST_SHARE * self._whole[0]
        drawn &= above.number[caller] >= 0
        count = self._count
        number = np.where(drawn, count + np.cumsum(drawn, dtype=np.int32) - 1, np.int32(-1))
        self._columns.append(
            (
                above.number[caller[drawn]],
                key[drawn] % max(len(self._names), 1),
                np.full(int(drawn.sum()), len(self._levels) + 1),
            )
        )
        last, inside = np.zeros(int(drawn.sum()), dtype=sums[0].dtype), drawn[at]
        self._count += len(last)
        ending = inside & rule[0]
        np.add.at(last, number[at[ending]] - count, self._events[0][going[ending]])
        self._sums.append((*(own[drawn] for own in sums), last))
        self._levels.append((going[inside], number[at[inside]]))
        return _Level(at, sums[0], number)

    def __len__(self) -> int:
        """Return how many frames are left."""
        return len(self.caller)

    def name(self, number: int) -> str:
        """Return the name of a frame; that of the root is all."""
        return str(self._names[self.code[number]]) if number else "all"

    def find(self, path: Sequence[str]) -> int:
        """Return the number of the last frame of a path that there is."""
        at = 0
        for name in path:
            known = self._names.index(name) if name in self._names else -1
            below = np.flatnonzero((self.caller == at) & (self.code == known))
            if not len(below):
                break
            at = int(below[0])
        return at

    def largest(self) -> Ints:
        """Return the numbers of the frames with the most value, each after the frame that it is under.

        Frames of one value and depth are in order of their names.
        """
        having = self.after != 0
        having[0] = True
        number = np.flatnonzero(having)
        rank = np.unique(np.array(["", *self._names], dtype=object), return_inverse=True)[1]
        falling = np.unique(-self.after[number], return_inverse=True)[1]
        order = np.lexsort((rank[self.code[number] + 1], self.depth[number], falling))
        return number[order][: self._most]

    def on_paths(self, numbers: Ints) -> Iterator[tuple[AnyInts, AnyInts]]:
        """Yield paths and the places among some frames of those that they have at one depth; each path once.

        Parameters
        ----------
        numbers : of the frames
        """
        place = np.full(len(self), -1, dtype=np.int32)
        place[numbers] = np.arange(len(numbers))
        for going, node in self._levels:
            on = place[node] >= 0
            yield going[on], place[node[on]]

    def shares(self) -> tuple[Floats, Floats]:
        """Return (N,) shares of frames in both sets."""
        whole = [max(int(values[0]), 1) for values in (self.after, self.before)]
        after, before = (
            values.astype(np.float64) / total for values, total in zip((self.after, self.before), whole, strict=True)
        )
        return after, before
