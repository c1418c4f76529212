"""Frames and samples of a profile as columns: sequences of `Frame` and `Sample`, of which tables are made by array."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from analysis.profiling.formats.foreign import Frame, Sample
from models.arrays import Ints

_AT_ONCE = 50_000
"""Samples that are unpacked at once."""

Amounts = NDArray[Any]
"""Whole numbers: of 64 bits, or objects where one is larger."""


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable(Sequence[Frame]):
    """Frames as columns.

    Examples
    --------
    >>> table = FrameTable.of([Frame("f", "a.out", line=7), Frame("main", "a.out", address=2**64 - 1)])
    >>> table[0], len(table), table.texts
    (Frame(function='f', image='a.out', build_id='', file='', function_line=0, line=7, address=0, file_address=-1), 2, \
('', 'f', 'a.out', 'main'))
    """

    texts: tuple[str, ...]
    """Each once; not all need be used."""
    names: Ints
    """(n, 4) array: function, image, build id and file, as indices of texts."""
    lines: Ints
    """(n, 2) array: the function's line and the line."""
    addresses: Sequence[int]
    file_addresses: Sequence[int]

    @classmethod
    def of(cls, frames: Sequence[Frame]) -> "FrameTable":
        """Return frames as columns."""
        if isinstance(frames, FrameTable):
            return frames
        texts = {"": 0}
        names = [[texts.setdefault(name, len(texts)) for name in frame[:4]] for frame in frames]
        lines = [(frame.function_line, frame.line) for frame in frames]
        return cls(
            tuple(texts),
            np.array(names, np.int64).reshape(-1, 4),
            np.array(lines, np.int64).reshape(-1, 2),
            [frame.address for frame in frames],
            [frame.file_address for frame in frames],
        )

    def content(self) -> Iterator[bytes]:
        """Yield bytes that are equal where frames are, however their texts are numbered."""
        used, first, place = np.unique(self.names, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(used), np.int64)
        rank[order] = np.arange(len(used))
        yield repr([self.texts[at] for at in used[order].tolist()]).encode()
        yield rank[place].tobytes()
        yield self.lines.tobytes()
        yield _bytes(self.addresses)
        yield _bytes(self.file_addresses)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Frame]:
        rows = zip(self.names.tolist(), self.lines.tolist(), self.addresses, self.file_addresses, strict=True)
        for names, lines, address, file_address in rows:
            function, image, build_id, file = names
            texts = self.texts[function], self.texts[image], self.texts[build_id], self.texts[file]
            yield Frame(*texts, lines[0], lines[1], address, file_address)

    @overload
    def __getitem__(self, at: int) -> Frame: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Frame, ...]: ...
    def __getitem__(self, at: int | slice) -> Frame | tuple[Frame, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        function, image, build_id, file = (self.texts[place] for place in self.names[at].tolist())
        line, own = self.lines[at].tolist()
        return Frame(function, image, build_id, file, line, own, self.addresses[at], self.file_addresses[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        if isinstance(other, FrameTable) and self.texts == other.texts:
            return (
                np.array_equal(self.names, other.names)
                and np.array_equal(self.lines, other.lines)
                and list(self.addresses) == list(other.addresses)
                and list(self.file_addresses) == list(other.file_addresses)
            )
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(len(self))


@dataclass(frozen=True, slots=True, eq=False)
class SampleTable(Sequence[Sample]):
    """Samples as columns.

    Examples
    --------
    >>> table = SampleTable.of([Sample((0, 1), (30,)), Sample((), (5,)), Sample((0, 1), (7,))])
    >>> table.stack.tolist(), table.depths.tolist(), table.amounts[:, 0].tolist(), table.total(0)
    ([0, 1, 0], [2, 0], [30, 5, 7], 42)
    >>> table[2]
    Sample(stack=(0, 1), amounts=(7,), origin=0, chain=True, taken=())
    """

    stack: Ints
    """Of each sample, its stack's place among those that differ."""
    frames: NDArray[np.int32]
    """Frames of all stacks that differ, one stack after another, the function sampled first."""
    depths: Ints
    """Frames of each of them."""
    amounts: Amounts
    """(n, measures) array."""
    origin: Ints
    chain: NDArray[np.bool_]
    taken: Amounts | None = None
    """(n, measures) array, −1 where the file does not say; none: nowhere does it."""

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "SampleTable":
        """Return samples as columns."""
        if isinstance(samples, SampleTable):
            return samples
        stacks: dict[tuple[int, ...], int] = {}
        stack = np.array([stacks.setdefault(sample.stack, len(stacks)) for sample in samples], np.int64)
        depths = np.fromiter(map(len, stacks), np.int64, len(stacks))
        places = (frame for path in stacks for frame in path)
        taken = [sample.taken or (-1,) * len(sample.amounts) for sample in samples]
        return cls(
            stack,
            np.fromiter(places, np.int32, int(depths.sum())),
            depths,
            _matrix([sample.amounts for sample in samples]),
            np.array([sample.origin for sample in samples], np.int64),
            np.array([sample.chain for sample in samples], np.bool_),
            _matrix(taken) if any(sample.taken for sample in samples) else None,
        )

    def __len__(self) -> int:
        return len(self.stack)

    def __iter__(self) -> Iterator[Sample]:
        stacks = self.stacks()
        for first in range(0, len(self), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            columns = (self.amounts[some].tolist(), self.origin[some].tolist(), self.chain[some].tolist())
            taken = ((),) * len(columns[0]) if self.taken is None else map(_of_one, self.taken[some].tolist())
            for amounts, origin, chain, numbers in zip(*columns, taken, strict=True):
                yield Sample(tuple(next(stacks)), tuple(amounts), origin, chain, numbers)

    def stacks(self) -> Iterator[list[int]]:
        """Yield the stack of each sample."""
        for first in range(0, len(self), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            places, begin = self.frames_of(some).tolist(), 0
            for end in np.cumsum(self.depths[self.stack[some]]).tolist():
                yield places[begin:end]
                begin = end

    def frames_of(self, rows: slice) -> NDArray[np.int32]:
        """Return the frames of some samples, one sample after another."""
        stack = self.stack[rows]
        depths = self.depths[stack]
        if len(stack) and np.array_equal(stack, np.arange(stack[0], stack[0] + len(stack))):
            first = int(self.depths[: stack[0]].sum())
            return self.frames[first : first + int(depths.sum())]
        begin = (np.cumsum(self.depths) - self.depths)[self.stack[rows]]
        at = np.arange(int(depths.sum())) + np.repeat(begin - (np.cumsum(depths) - depths), depths)
        return np.asarray(self.frames[at], np.int32)

    @overload
    def __getitem__(self, at: int) -> Sample: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, at: int | slice) -> Sample | tuple[Sample, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        stack = self.stack[at]
        last = int(self.depths[: stack + 1].sum())
        path = tuple(self.frames[last - self.depths[stack] : last].tolist())
        taken = () if self.taken is None else _of_one(self.taken[at].tolist())
        return Sample(path, tuple(self.amounts[at].tolist()), int(self.origin[at]), bool(self.chain[at]), taken)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        if isinstance(other, SampleTable) and self.taken is None and other.taken is None:
            names = ("stack", "depths", "frames", "amounts", "origin", "chain")
            if all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names):
                return True
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(len(self))

    def content(self) -> Iterator[bytes]:
        """Yield bytes that are equal where samples are, however their stacks are numbered."""
        taken = None if self.taken is None or (self.taken[:, :1] < 0).all() else self.taken
        for first in range(0, len(self), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            yield self.depths[self.stack[some]].tobytes()
            yield self.frames_of(some).tobytes()
            yield _bytes(self.amounts[some].ravel())
            yield self.origin[some].tobytes() + self.chain[some].tobytes()
            yield b"" if taken is None else repr([*map(_of_one, taken[some].tolist())]).encode()

    def paths(self) -> list[tuple[int, ...]]:
        """Return the stacks that differ."""
        places, last = self.frames.tolist(), np.cumsum(self.depths)
        bounds = zip((last - self.depths).tolist(), last.tolist(), strict=True)
        return [tuple(places[begin:end]) for begin, end in bounds]

    def amount(self, at: int) -> Amounts:
        """Return a measure's amounts."""
        return self.amounts[:, at] if len(self) else np.empty(0, np.int64)

    def total(self, at: int) -> int:
        """Return the sum of a measure, exact however large."""
        return exact_sum(self.amount(at))


def exact_sum(numbers: Amounts) -> int:
    """Return the sum of whole numbers, exact however large.

    Examples
    --------
    >>> exact_sum(np.full(4, 2**62))
    18446744073709551616
    """
    if numbers.dtype == object:
        return int(sum(numbers.tolist()))
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


def numbered(content: bytes, sizes: Ints, known: dict[bytes, int]) -> list[int]:
    """Return the numbers of pieces of a content, those that are new numbered in their order.

    Examples
    --------
    >>> known = {b"ab": 0}
    >>> numbered(b"cabab", np.array([1, 2, 2]), known), known
    ([1, 0, 0], {b'ab': 0, b'c': 1})
    """
    ends = np.cumsum(sizes)
    pieces = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    return [known.setdefault(content[begin:end], len(known)) for begin, end in pieces]


def _bytes(numbers: Sequence[int] | Amounts) -> bytes:
    """Return bytes that are equal where whole numbers are."""
    try:
        return np.asarray(numbers, np.int64).tobytes()
    except OverflowError:
        return repr([int(number) for number in numbers]).encode()


def _matrix(rows: Sequence[Sequence[int]]) -> Amounts:
    """Return rows of whole numbers as an array, of objects where 64 bits are too few."""
    width = len(rows[0]) if rows else 0
    try:
        return np.array(rows, np.int64).reshape(len(rows), width)
    except OverflowError:
        return np.array(rows, object).reshape(len(rows), width)


def _of_one(numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the samples behind each amount of a sample; none where the file does not say."""
    return () if numbers and numbers[0] < 0 else tuple(numbers)
