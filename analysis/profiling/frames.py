"""Frames of call paths as arrays: read some at a time, in order, and summed once per path."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.profiling.shelf import give_back_memory
from analysis.profiling.views import row
from models.arrays import Bools, Ints

_FRAMES_AT_ONCE = 250_000
"""Frames that are summed at once, to bound the memory."""
_PATHS_AT_ONCE = 2_000_000
"""Frames of which equal paths are found at once."""
_PENDING = 500_000
"""Sums of parts that wait before they are added up."""
_INT64_MAX = 2**63 - 1

AnyInts = npt.NDArray[np.integer[Any]]
Amounts = npt.NDArray[Any]
"""Whole numbers: of 64 bits, or Python's where they need more; sums that are counted may be decimal."""


class BrokenStacksError(Exception):
    """A stack has not the depths 0, 1, 2, … once each, or a place that is not there, or is missing itself."""


@dataclass(frozen=True, slots=True)
class Frames:
    """All frames of some stacks, in order of stack and depth."""

    stack: Ints
    """(s,) numbers of the stacks, ascending."""
    start: Ints
    """(s + 1,) each stack's first frame, the place sampled; the last is the number of frames."""
    code: AnyInts
    """(n,) code of each frame's function."""

    @property
    def length(self) -> Ints:
        """(s,) frames of each stack."""
        return np.diff(self.start)

    @property
    def called(self) -> Bools:
        """(n,) whether the next frame is the caller; otherwise there is none."""
        inner = np.ones(self.code.size, dtype=bool)
        inner[self.start[1:] - 1] = False
        return inner


@dataclass(frozen=True, slots=True)
class KeyedWeights:
    """Sums of samples by stack and key, in order of the stacks."""

    first: Ints
    """(s + 1,) each stack's first row; the last is the number of rows."""
    key: Ints
    """(r,) each row's key, below `keys`."""
    samples: npt.NDArray[Any]
    """(r,) samples."""
    value: npt.NDArray[Any]
    """(r,) events."""
    keys: int

    def rows(self, place: Ints) -> tuple[Ints, Ints]:
        """Return the rows of stacks one after another, and for each row which of the stacks it is of.

        Parameters
        ----------
        place : (k,) places of stacks
        """
        many = self.first[place + 1] - self.first[place]
        owner = np.repeat(np.arange(place.size), many)
        within = np.arange(owner.size) - np.repeat(np.cumsum(many) - many, many)
        return self.first[place][owner] + within, owner


@dataclass(frozen=True, slots=True)
class Weights:
    """Sums of samples by stack."""

    stack: Ints
    """(s,) numbers of the stacks, ascending."""
    samples: npt.NDArray[Any]
    """(s,) samples: integers of 64 bits, or Python's if sums need more."""
    value: npt.NDArray[Any]
    """(s,) events."""
    keys: "KeyedWeights | None" = None
    """The same by stack and key, where keys stay apart."""

    def places(self, stack: Ints) -> Ints:
        """Return where other stacks are among these, −1 for those that are not.

        Parameters
        ----------
        stack : (k,) numbers of stacks
        """
        if not self.stack.size:
            return np.full(stack.size, -1)
        at = np.minimum(np.searchsorted(self.stack, stack), self.stack.size - 1)
        return np.asarray(np.where(self.stack[at] == stack, at, -1))


def read(cursor: duckdb.DuckDBPyConnection, span: tuple[int, int] | None = None) -> Iterator[Frames]:
    """Yield the frames of all stacks, some stacks after the others.

    Parameters
    ----------
    cursor : cursor that holds `function_codes`, the code of each location's function
    span : the least and the greatest number of the stacks that are wanted; none: all
    """
    within, bounds = ("", ()) if span is None else ("WHERE stack BETWEEN ? AND ?", span)
    first, last, rows = row(cursor, f"SELECT min(stack), max(stack), count(*) FROM stacks {within}", *bounds)
    if not rows:
        return
    step, codes = -(-(last - first + 1) // -(-rows // _FRAMES_AT_ONCE)), _Codes.of(cursor)
    for least in range(first, last + 1, step):
        yield _frames(cursor, codes, "WHERE stack BETWEEN ? AND ?", least, least + step - 1)


def read_by_leaf(cursor: duckdb.DuckDBPyConnection) -> Iterator[Frames]:
    """Yield the frames of all stacks so that stacks with equal paths come together.

    Parameters
    ----------
    cursor : as for `read`
    """
    (rows,) = row(cursor, "SELECT count(*) FROM stacks")
    parts, codes = -(-rows // _PATHS_AT_ONCE), _Codes.of(cursor)
    if parts == 1:
        yield _frames(cursor, codes)
        return
    leaves = "SELECT stack FROM stacks JOIN function_codes USING (location) WHERE depth = 0 AND code % ? = ?"
    for part in range(parts):
        yield _frames(cursor, codes, f"WHERE stack IN ({leaves})", parts, part)


@dataclass(frozen=True, slots=True)
class _Codes:
    """Codes of the functions of L locations: quicker than a join of every part of the frames."""

    location: Ints
    """(L + 1,) numbers, rising; the last is none's."""
    code: AnyInts
    """(L + 1,) of each, and −1."""

    @classmethod
    def of(cls, cursor: duckdb.DuckDBPyConnection) -> "_Codes":
        """Return those of `function_codes`."""
        columns = cursor.execute("SELECT location, code FROM function_codes ORDER BY location").fetchnumpy()
        location = np.append(np.asarray(columns["location"], dtype=np.int64), _INT64_MAX)
        return cls(location, np.append(np.asarray(columns["code"], dtype=np.int32), np.int32(-1)))

    def at(self, location: AnyInts) -> AnyInts:
        """Return the codes of (n,) locations, −1 of those that are not there."""
        none, first = len(self.location) - 1, int(self.location[0])
        if int(self.location[none - 1]) - first == none - 1:  # without gaps, so each is where its number says
            place = np.clip(location.astype(np.int64) - first, 0, none)
        else:
            place = np.searchsorted(self.location, location)
        return np.asarray(self.code[np.where(self.location[place] == location, place, none)])


def _frames(cursor: duckdb.DuckDBPyConnection, codes: _Codes, where: str = "", *values: int) -> Frames:
    columns = cursor.execute(
        "SELECT coalesce(stack, -1) AS stack, coalesce(depth, -1) AS depth, coalesce(location, -1) AS location"
        f" FROM stacks {where}",
        list(values),
    ).fetchnumpy()
    stack, depth, location = (np.asarray(columns[name]) for name in ("stack", "depth", "location"))
    code = codes.at(location)
    if not _in_order(stack, depth):
        order = np.lexsort((depth, stack))
        stack, depth, code = stack[order], depth[order], code[order]
    same = stack[1:] == stack[:-1]
    right = np.where(same, depth[1:] - depth[:-1] == 1, depth[1:] == 0)
    if not right.all() or depth[:1].any() or (code < 0).any():
        raise BrokenStacksError
    new = np.flatnonzero(np.append(True, ~same)[: stack.size])
    return Frames(stack[new].astype(np.int64), np.append(new, stack.size), code)


def _in_order(stack: AnyInts, depth: AnyInts) -> bool:
    later = stack[1:] > stack[:-1]
    return bool((later | ((stack[1:] == stack[:-1]) & (depth[1:] > depth[:-1]))).all())


def once_per_stack(place: Ints, item: AnyInts, weights: Weights) -> pd.DataFrame:
    """Sum the weights of the stacks that have each item, however often they have it.

    Parameters
    ----------
    place : (n,) places in `weights`
    item : (n,) numbers of what the stacks have, not negative
    weights : of the stacks

    Returns
    -------
    DataFrame
        `item`, `samples`, `value`, in order of the items; where keys stay apart, items are item × keys + key.
    """
    if not item.size:
        return pd.DataFrame({"item": item, "samples": item, "value": item})
    names: Ints | None = None
    item = item.astype(np.int64)
    if (int(item.max()) + 1) * max(1, weights.stack.size) > _INT64_MAX:
        names, item = np.unique(item, return_inverse=True)
    key = np.sort(item * weights.stack.size + place)
    key = key[np.append(True, key[1:] != key[:-1])]
    item = key // weights.stack.size
    at = key - item * weights.stack.size
    if names is not None:
        item = names[item]
    samples, value = weights.samples, weights.value
    if (apart := weights.keys) is not None:
        at, owner = apart.rows(at)
        item = item[owner] * apart.keys + apart.key[at]
        order = np.argsort(item, kind="stable")
        item, at, samples, value = item[order], at[order], apart.samples, apart.value
    start = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
    return pd.DataFrame(
        {
            "item": item[start],
            "samples": np.add.reduceat(samples[at], start),
            "value": np.add.reduceat(value[at], start),
        }
    )


def together(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Add up sums by item; the greatest value first, ties in order of the items.

    Parameters
    ----------
    parts : frames with `item` and columns of integers; taken one after the other
    """
    whole = pd.DataFrame({"item": [], "samples": [], "value": []}, dtype=np.int64)
    pending: list[pd.DataFrame] = []
    for part in parts:
        pending.append(part)
        if sum(map(len, pending)) > max(_PENDING, len(whole) // 2):
            pending.insert(0, whole)
            del whole, part
            whole = _added(pending)
            give_back_memory()
    pending.insert(0, whole)
    del whole
    whole = _added(pending)
    return whole.iloc[np.argsort(-whole["value"].to_numpy(), kind="stable")].reset_index(drop=True)


def _added(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the sums by item, in order of the items; the parts are taken out of the list."""
    every = [part for part in parts if len(part)] or parts[:1]
    parts.clear()
    if len(every) < 2:
        return every[0]
    columns = [[part[name].to_numpy() for part in every] for name in every[0].columns]
    names = every[0].columns
    del every
    item = np.concatenate(columns[0])
    order = np.argsort(item, kind="stable").astype(np.int32 if len(item) < 2**31 else np.int64)
    item = item[order]
    start = np.flatnonzero(np.append(True, item[1:] != item[:-1]))
    sums = {"item": item[start]}
    del item
    columns.reverse()
    columns.pop()
    for name in names[1:]:
        own = np.concatenate(columns.pop())[order]
        sums[name] = np.add.reduceat(own, start)
        del own
    return pd.DataFrame(sums, copy=False)


def same_paths(frames: Frames, codes: int) -> Ints:
    """Return the number of the first stack with the same functions in the same order, for each stack.

    Paths are told apart from the place sampled outwards: two are equal up to a depth if they were up to the one before
    and have the same function there.

    Parameters
    ----------
    frames : frames of stacks
    codes : how many functions there are

    Returns
    -------
    (s,) numbers of stacks
    """
    length = frames.length
    first = np.arange(frames.stack.size)
    going, depth = first, 0
    node = np.zeros(frames.stack.size, dtype=np.int64)
    while going.size:
        ends = length[going] == depth
        begun, node_of_end = np.unique(node[ends], return_index=True)
        first[going[ends]] = going[ends][node_of_end][np.searchsorted(begun, node[ends])]
        going, node = going[~ends], node[~ends]
        different, node = np.unique(node * codes + frames.code[frames.start[going] + depth], return_inverse=True)
        if different.size == going.size:
            break
        depth += 1
    return np.asarray(frames.stack[first])
