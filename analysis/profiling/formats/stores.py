"""Samples and call paths of many files: put away file by file, and taken out again in the order of their tables."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analysis.profiling.frames import AnyInts
from analysis.profiling.shelf import Shelf, ShelfPlace
from analysis.profiling.storage import TAKEN
from models.arrays import Ints
from models.tables import SCHEMAS

SAMPLES = pa.schema([*SCHEMAS["samples"], pa.field(TAKEN, pa.int64())])
"""Samples as they are taken out."""
PLACE = np.dtype(np.int32)
"""What a location is in a stack."""
_COLUMNS = ("process", "location", "stack", "count", TAKEN)
_DIGEST_BYTES = 16
_AT_ONCE = 2_000_000
"""Frames of call paths that are numbered at once, each path counted as `_PATH_FRAMES` more."""
_PATH_FRAMES = 16
MOST_KNOWN = 1 << 22
"""Call paths of many files that are known again, in some 80 MB; questions add up those that are there twice."""


@dataclass(slots=True)
class SampleStore:
    """Rows of samples; each file has processes of its own, so that files in their order are sorted by process.

    Examples
    --------
    >>> store = SampleStore(Shelf())
    >>> rows = np.array([[0, 0], [7, 7], [-1, -1], [3, 4], [3, 4]])  # process, location, stack, count, samples taken
    >>> store.add(np.array([1, 1]), rows)
    >>> [batch.to_pylist() for batch in store.batches({"cpu": 0, "cycles": 1})]
    [[{'process': 0, 'event': 'cycles', 'location': 7, 'stack': -1, 'count': 7, 'taken': 7}]]
    """

    shelf: Shelf
    pieces: dict[int, list[tuple[ShelfPlace, ...]]] = field(default_factory=dict)
    """Code of an event to where the columns of each file's rows are."""
    taken: bool = False
    """Whether a row rests on another number of samples than its count."""

    def add(self, event: AnyInts, columns: Sequence[AnyInts]) -> None:
        """Add a file's rows; counts of equal keys are summed.

        Parameters
        ----------
        event : (n,) array, codes
        columns : five of (n,): process, location, stack, count and samples taken
        """
        if not len(event):
            return
        process, location, stack, *_ = columns
        order = np.lexsort((stack, location, process, event))
        event, columns = event[order], [column[order] for column in columns]
        del order, process, location, stack
        first = np.ones(len(event), np.bool_)
        first[1:] = np.any([key[1:] != key[:-1] for key in (event, *columns[:3])], axis=0)
        begin = np.flatnonzero(first)
        if len(begin) < len(event):
            sums = [np.add.reduceat(amounts, begin) for amounts in columns[3:]]
            event, columns = event[begin], [*(key[begin] for key in columns[:3]), *sums]
        self.taken = self.taken or not np.array_equal(columns[3], columns[4])
        codes, bounds = np.unique(event, return_index=True)
        for code, first_of, end in zip(codes.tolist(), bounds, [*bounds[1:], len(event)], strict=True):
            places = tuple(self.shelf.put(column[first_of:end]) for column in columns)
            self.pieces.setdefault(code, []).append(places)

    def batches(self, events: Mapping[str, int]) -> Iterator[pa.Table]:
        """Yield the rows, sorted by event, process, location and stack, those of a file and an event at once.

        Parameters
        ----------
        events : codes of the events
        """
        for event in sorted(events, key=str.encode):
            yield from self.rows_of(event, events[event])

    def rows_of(self, event: str, code: int) -> Iterator[pa.Table]:
        """Yield the rows of an event."""
        for places in self.pieces.get(code, []):
            columns: dict[str, Any] = {
                name: self.shelf.get(place) for name, place in zip(_COLUMNS, places, strict=True)
            }
            columns["event"] = pa.repeat(event, places[0].length)
            yield pa.table({name: columns[name] for name in SAMPLES.names}).cast(SAMPLES)


def digests_of(path: NDArray[np.int32], begin: Ints, end: Ints) -> list[bytes]:
    """Return a digest of each call path.

    Parameters
    ----------
    path : locations of all, one path after another
    begin, end : where each begins and ends

    Examples
    --------
    >>> first, second, third = digests_of(np.array([5, 6, 5, 5, 6], PLACE), np.array([0, 2, 3]), np.array([2, 3, 5]))
    >>> first == third, first == second
    (True, False)
    """
    content = np.ascontiguousarray(path).data.cast("B") if len(path) else b""
    bounds = zip((begin * PLACE.itemsize).tolist(), (end * PLACE.itemsize).tolist(), strict=True)
    return [blake2b(content[b:e], digest_size=_DIGEST_BYTES).digest() for b, e in bounds]


@dataclass(slots=True)
class DigestIndex:
    """Numbers of digests, in the order in which these came: sorted runs, each at most half as long as that before.

    Examples
    --------
    >>> index = DigestIndex()
    >>> index.numbers([b"c" * 16, b"a" * 16, b"c" * 16])[0].tolist()
    [0, 1, 0]
    >>> [numbers.tolist() for numbers in index.numbers([b"b" * 16, b"a" * 16, b"d" * 16])]
    [[2, 1, 3], [0, 2]]
    """

    runs: list[tuple[NDArray[np.bytes_], NDArray[np.int32]]] = field(default_factory=list)
    """Digests in rising order, and the number of each."""
    size: int = 0
    most: int | None = None
    """Beyond so many, those known are forgotten, and what comes again gets another number; None: none is."""

    def numbers(self, digests: Sequence[bytes]) -> tuple[Ints, Ints]:
        """Return the number of each, and the places of those that are there for the first time."""
        whole = np.frombuffer(b"".join(digests), f"S{_DIGEST_BYTES}")
        distinct, first, place = np.unique(whole, return_index=True, return_inverse=True)
        number = np.full(len(distinct), -1)
        for run, known in self.runs:
            at = np.minimum(np.searchsorted(run, distinct), len(run) - 1)
            number = np.where(run[at] == distinct, known[at], number)
        new = np.flatnonzero(number < 0)
        new = new[np.argsort(first[new])]
        number[new] = self.size + np.arange(len(new))
        if len(new):
            self.size += len(new)
            new.sort()
            self._add(distinct[new], number[new].astype(np.int32))
        return number[place], np.sort(first[new])

    def _add(self, digests: NDArray[np.bytes_], numbers: NDArray[np.int32]) -> None:
        if self.most is not None and sum(len(run) for run, _ in self.runs) > self.most:
            self.runs.clear()
        while self.runs and len(self.runs[-1][0]) < 2 * len(digests):
            before = self.runs.pop()
            digests, numbers = np.concatenate([before[0], digests]), np.concatenate([before[1], numbers])
            order = np.argsort(digests, kind="stable")
            digests, numbers = digests[order], numbers[order]
        self.runs.append((digests, numbers))


@dataclass(slots=True)
class StackStore:
    """Call paths that differ, numbered in the order in which they came.

    Examples
    --------
    >>> store = StackStore(Shelf())
    >>> store.numbers(np.array([5, 6, 5, 5, 6], PLACE), np.array([0, 2, 3]), np.array([2, 3, 5])).tolist()
    [0, 1, 0]
    >>> [batch.to_pydict() for batch in store.batches()]
    [{'stack': [0, 0, 1], 'depth': [0, 1, 0], 'location': [5, 6, 5]}]
    """

    shelf: Shelf
    index: DigestIndex = field(default_factory=lambda: DigestIndex(most=MOST_KNOWN))
    pieces: list[tuple[ShelfPlace, ShelfPlace]] = field(default_factory=list)
    """Where the depths and the locations of a file's new paths are."""

    def numbers(self, path: NDArray[np.int32], begin: Ints, end: Ints) -> Ints:
        """Return the number of each of a file's paths.

        Parameters
        ----------
        path : locations of all, the function sampled first
        begin, end : where each begins and ends
        """
        run = np.cumsum(end - begin + _PATH_FRAMES) // _AT_ONCE
        edges = [0, *(np.flatnonzero(run[1:] != run[:-1]) + 1).tolist(), len(run)]
        parts = [slice(*pair) for pair in itertools.pairwise(edges)]
        return np.concatenate([self._some(path, begin[part], end[part]) for part in parts]).astype(np.int64)

    def _some(self, path: NDArray[np.int32], begin: Ints, end: Ints) -> Ints:
        numbers, new = self.index.numbers(digests_of(path, begin, end))
        if len(new):
            paths = np.concatenate([path[b:e] for b, e in zip(begin[new].tolist(), end[new].tolist(), strict=True)])
            self.pieces.append((self.shelf.put((end - begin)[new].astype(PLACE)), self.shelf.put(paths)))
        return numbers

    def batches(self) -> Iterator[pa.Table]:
        """Yield stack, depth and location of every frame."""
        first = 0
        for depths_at, path_at in self.pieces:
            depths = self.shelf.get(depths_at).astype(np.int64)
            last = np.cumsum(depths)
            stack = np.repeat(np.arange(first, first + len(depths)), depths)
            depth = np.arange(path_at.length) - np.repeat(last - depths, depths)
            columns = {"stack": stack, "depth": depth, "location": self.shelf.get(path_at)}
            yield pa.table(columns).cast(SCHEMAS["stacks"])
            first += len(depths)


def in_groups(batches: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of so many; the last one is shorter, and may be empty if it is the only one.

    Examples
    --------
    >>> tables = [pa.table({"a": [1, 2, 3]}), pa.table({"a": [4]}), pa.table({"a": [5, 6, 7]})]
    >>> [table["a"].to_pylist() for table in in_groups(tables, 3)]
    [[1, 2, 3], [4, 5, 6], [7]]
    >>> [table.num_rows for table in in_groups([tables[0][:0]], 3)]
    [0]
    """
    waiting, count, full = list[pa.Table](), 0, False
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            whole = pa.concat_tables(waiting)
            yield whole[:rows].combine_chunks()
            waiting, count, full = [whole[rows:]], count - rows, True
    if count or (waiting and not full):
        yield pa.concat_tables(waiting).combine_chunks()
