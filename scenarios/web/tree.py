"""Frames of a flame graph: trees of call paths, which are arrays, however many there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
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
_FEW_NAMES = 2**15
"""Names whose numbers have 16 bits."""
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

    def at(self, paths: AnyInts) -> "PathFrames":
        """Return some of the paths, which may be there several times."""
        first = np.zeros(len(paths) + 1, dtype=np.int64)
        np.cumsum(np.diff(self.first)[paths], out=first[1:])
        code = np.empty(int(first[-1]), dtype=np.int16 if len(self.names) <= _FEW_NAMES else np.int32)
        for begin in range(0, len(paths), _PATHS_AT_ONCE):
            edge = first[begin : begin + _PATHS_AT_ONCE + 1]
            start = self.first[paths[begin : begin + _PATHS_AT_ONCE]] - edge[:-1]
            code[edge[0] : edge[-1]] = self.code[np.repeat(start, np.diff(edge)) + np.arange(edge[0], edge[-1])]
        return PathFrames(self.names, first, code)

    def below(self, roots: Sequence[str], root: AnyInts) -> "PathFrames":
        """Return the paths with root frames, for which there is room, of −1, before each; they may be written there.

        Parameters
        ----------
        roots : names of root frames
        root : (P,) which of them each path has
        """
        numbers = {name: at for at, name in enumerate(self.names)}
        own = [numbers.setdefault(name, len(numbers)) for name in roots]
        code = self.code if len(numbers) <= _FEW_NAMES else self.code.astype(np.int32, copy=False)
        code[self.first[:-1]] = np.array(own, dtype=np.int32)[root]
        return PathFrames(list(numbers), self.first, code, 1)

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


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Frames above those of the next depths, those that are left out too."""

    of_path: AnyInts
    """(p,) place of each path's frame among them."""
    events: Amounts
    """(f,)"""
    number: AnyInts
    """(f,) number of each, −1: it is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Frames of p paths at some successive depths, in order of depth and callers; a frame has cells that follow."""

    order: AnyInts
    """(p,) paths in the order in which frames are drawn."""
    depth: AnyInts
    """(c,) of each cell, from 0 on."""
    row: AnyInts
    """(c,) which of the ordered paths each is of."""
    frame: AnyInts
    """(c,) which frame."""
    start: AnyInts
    """(f,) first cell of each frame."""
    code: AnyInts
    """(f,) its name."""
    caller: AnyInts
    """(f,) frame before it; of those of the first depth, that in the level above."""
    last: AnyInts
    """(p,) frame of the last of the depths, of the ordered paths that have one there; −1 otherwise."""

    @classmethod
    def of(cls, above: AnyInts, code: AnyInts, names: int) -> "_Cells":
        """Return the frames of paths.

        Depths are compared all at once: paths are sorted by their names there, and two that follow each other have the
        same frame as far as their names are the same.

        Parameters
        ----------
        above : (p,) frame above the first of the depths
        code : (depths, p) names; −1 behind the end of a path
        names : how many there are
        """
        key = above.astype(np.int64)
        key *= max(names, 1)
        key += code[0]
        order = np.lexsort((*code[:0:-1], key)).astype(np.int32)
        key.sort()
        code = code[:, order]
        new = code >= 0
        at = np.flatnonzero(new).astype(np.int32)
        same = np.empty((len(code), len(key) - 1), dtype=np.bool_)
        np.equal(key[1:], key[:-1], out=same[0])
        np.equal(code[1:, 1:], code[1:, :-1], out=same[1:])
        del key
        for before, own in pairwise(same):
            np.logical_and(before, own, out=own)
        new[:, 1:] &= ~same
        first = new.ravel()[at]
        start = np.flatnonzero(first).astype(np.int32)
        frame = np.cumsum(first, dtype=np.int32)
        frame -= 1
        frames = np.full(code.shape, -1, dtype=np.int32)
        frames.ravel()[at] = frame
        begin, size = at[start], code.shape[1]
        outer, inner = np.split(begin, [np.count_nonzero(new[0])])
        caller = np.append(above[order[outer]], frames.ravel()[inner - size])
        depth, row = at // size, at % size
        return cls(order, depth, row, frame, start, code.ravel()[begin], caller, frames[-1])


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """The frames of paths at the next depths."""

    cells: _Cells
    going: AnyInts
    """(p,) the paths, in the cells' order."""
    left: AnyInts
    """(p,) frames that each has from the first of these depths on."""
    sums: list[Amounts]
    """(f,) events of each set."""
    depths: int

    def deeper(self) -> tuple[AnyInts, AnyInts]:
        """Return the paths that are deeper, and which frame of the last of these depths each has."""
        deeper = self.left > self.depths
        return self.going[deeper], self.cells.last[deeper]


def _parts(of_path: AnyInts) -> Iterator[slice]:
    """Yield parts of paths that have frames, those with one frame together, some thousands at a time."""
    edges = np.append(np.flatnonzero(np.append(True, of_path[1:] != of_path[:-1])[: len(of_path)]), len(of_path))
    wanted = np.searchsorted(edges, np.arange(0, len(of_path), _PATHS_AT_ONCE))
    for begin, end in pairwise([*dict.fromkeys(edges[wanted].tolist()), len(of_path)]):
        yield slice(begin, end)


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
        root = (np.array([-1]), np.array([-1]), np.zeros(1, dtype=np.int64))
        self._columns: list[tuple[AnyInts, AnyInts, AnyInts]] = [root]
        ends = paths.first[1:] == paths.first[:-1]
        sums = [np.array([events.sum()], dtype=after.dtype) for events in self._events]
        self._sums = [(*sums, np.array([after[ends].sum()], dtype=after.dtype))]
        going = np.flatnonzero(~ends).astype(np.int32)
        above = _Level(np.zeros(len(going), dtype=np.int32), np.array([1]), np.zeros(1, dtype=np.int32))
        # Beyond the least of the largest so far, a frame that is deeper may be one of these.
        top, waiting, least = [sums[0]], 0, -1
        while len(going):
            going, above = self._descend(paths, going, above, least)
            top.append(self._sums[-1][0])
            waiting += len(top[-1])
            if waiting > most // 4:
                top, waiting = [np.sort(np.concatenate(top))[-most:]], 0
                least = int(top[0][0]) if len(top[0]) == most else -1
            if len(going) > _PATHS_AT_ONCE:
                give_back_memory()
        self.caller, self.code, self.depth = map(np.concatenate, zip(*self._columns, strict=True))
        self.after, *others, self.own = map(np.concatenate, zip(*self._sums, strict=True))
        self.before = others[0] if others else np.zeros_like(self.after)
        """Events with callees, those of the other set, and events of a frame itself."""

    def _descend(self, paths: PathFrames, going: AnyInts, above: _Level, least: int) -> tuple[AnyInts, _Level]:
        """Add the frames of the next depths, and return the paths that are deeper and of which a frame is left.

        Parameters
        ----------
        paths : all
        going : (p,) those that have a frame at the next depth
        above : the depth before, of these paths
        least : events beyond which a frame is not left out
        """
        depth = len(self._levels)
        below = self._below(paths, going, above, depth)
        cells, sums = below.cells, below.sums
        if len(sums) > 1:
            share = sums[0] / self._whole[0]
            share += sums[1] / self._whole[1]
            drawn = share >= 2 * SMALLEST_SHARE
            del share
        else:
            drawn = sums[0] >= 2 * SMALLEST_SHARE * self._whole[0]
        drawn |= sums[0] > least
        inner = cells.depth[cells.start] > 0
        # No frame has more events than its caller: of these depths, only what is above them may be left out first.
        drawn &= above.number[above.of_path[cells.order[cells.row[cells.start]]]] >= 0
        number = np.where(drawn, self._count + np.cumsum(drawn, dtype=np.int32) - 1, np.int32(-1))
        callers = np.append(above.number[cells.caller[~inner]], number[cells.caller[inner]])
        self._columns.append((callers[drawn], cells.code[drawn], depth + 1 + cells.depth[cells.start][drawn]))
        inside = drawn[cells.frame]
        path, node, within = below.going[cells.row[inside]], number[cells.frame[inside]], cells.depth[inside]
        last, ends = np.zeros(int(drawn.sum()), dtype=sums[0].dtype), below.left[cells.row[inside]] == within + 1
        np.add.at(last, node[ends] - self._count, self._events[0][path[ends]])
        self._count += len(last)
        self._sums.append((*(own[drawn] for own in sums), last))
        bounds = np.searchsorted(within, np.arange(1, below.depths))
        self._levels += zip(np.split(path, bounds), np.split(node, bounds), strict=True)
        del inside, path, node, within, ends, callers, drawn, inner
        going, of_path = below.deeper()
        left_out = number[of_path] < 0
        rest = going[left_out], of_path[left_out]
        going, of_path = going[~left_out], of_path[~left_out]
        del below, cells
        if len(rest[0]) > _PATHS_AT_ONCE:
            give_back_memory()
        for some in _parts(rest[1]):
            self._leave_out(paths, rest[0][some], _Level(rest[1][some], sums[0], number), len(self._levels))
        return going, _Level(of_path, sums[0], number)

    def _leave_out(self, paths: PathFrames, going: AnyInts, above: _Level, depth: int) -> None:
        """Count the frames of paths from a depth on, below such that are left out."""
        while len(going):
            below = self._below(paths, going, above, depth)
            depth += below.depths
            going, of_path = below.deeper()
            above = _Level(of_path, below.sums[0], above.number)

    def _below(self, paths: PathFrames, going: AnyInts, above: _Level, depth: int) -> "_Below":
        """Return the frames of the next depths, as many as few paths have, which are counted."""
        at = paths.first[going] + depth
        left = (paths.first[1:][going] - at).astype(np.int32)
        depths = np.arange(min(max(self._most // len(going), 1), int(left.max())))[:, None]
        at = at + depths
        code = np.where(depths < left, paths.code[np.minimum(at, len(paths.code) - 1, out=at)], np.int32(-1))
        del at
        cells = _Cells.of(above.of_path, code, max(len(self._names), 1))
        del code
        going, left = going[cells.order], left[cells.order]
        sums = [np.add.reduceat(events[going[cells.row]], cells.start) for events in self._events]
        self.frames += len(cells.start)
        if len(sums) > 1:
            inner = cells.depth[cells.start] > 0
            callers = np.append(above.events[cells.caller[~inner]], sums[0][cells.caller[inner]])
            self.unmatched += int(sums[1][(sums[0] == 0) & (callers != 0)].sum())
        return _Below(cells, going, left, sums, len(depths))

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
