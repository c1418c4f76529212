"""Samples of a file that is being read, summed by stack and origin within the file's bounds."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.profiling.formats.columns import Amounts, SampleTable
from analysis.profiling.formats.foreign import (
    DEEPEST,
    LARGEST,
    STACK_FRAMES,
    Frame,
    FrameBudget,
    Origin,
    Sample,
)
from analysis.profiling.formats.stores import PLACE, DigestIndex, digests_of
from analysis.tables.faults import refusal

_AT_ONCE, _FRAMES_AT_ONCE = 100_000, 2_000_000
"""Stacks, or frames of them, that wait before they are summed."""


@dataclass(slots=True)
class StackSums:
    """Amounts of every measure by stack and origin.

    Examples
    --------
    >>> sums = StackSums("a.json", measures=1)
    >>> sums.add([Frame("f"), Frame("main")], (3,))
    >>> sums.add([Frame("f"), Frame("main")], (4,))
    >>> sums.samples()
    (Sample(stack=(0, 1), amounts=(7,), origin=0, chain=True, taken=()),)
    """

    name: str
    """The file."""
    measures: int
    frames: dict[Frame, int] = field(default_factory=dict)
    origins: dict[Origin, int] = field(default_factory=dict)
    sums: dict[tuple[tuple[int, ...], int], list[int]] = field(default_factory=dict)
    budget: FrameBudget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = FrameBudget(self.name)

    def add(self, stack: Sequence[Frame], amounts: Sequence[int], origin: Origin | None = None) -> None:
        """Add a sample.

        Parameters
        ----------
        stack : frames, the function sampled first
        amounts : of every measure
        origin : where it was taken

        Raises
        ------
        FileError
            If an amount is negative or too large, the stack too deep, or the file beyond its bounds.
        """
        if len(stack) > DEEPEST:
            raise refusal(self.name, "stack", f"should be at most {DEEPEST} frames deep", len(stack))
        if min(amounts) < 0 or max(amounts) > LARGEST:
            raise refusal(self.name, "value", f"should be from 0 to {LARGEST}", min(amounts))
        places = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in stack)
        key = places, self.origins.setdefault(origin or Origin(), len(self.origins))
        if key not in self.sums:
            self.budget.take(len(places))
            self.sums[key] = [0] * self.measures
        for at, amount in enumerate(amounts):
            self.sums[key][at] += amount

    def samples(self) -> tuple[Sample, ...]:
        """Return the sums, in the order in which stacks came."""
        return tuple(Sample(stack, tuple(amounts), origin) for (stack, origin), amounts in self.sums.items())


@dataclass(slots=True)
class PathSums:
    """Amounts of every measure by stack, in arrays: a stack takes some forty bytes and four for each frame.

    Examples
    --------
    >>> sums = PathSums(FrameBudget("a.folded"), measures=1)
    >>> for path, amount in (([0, 1], 3), ([2], 1), ([0, 1], 4)):
    ...     sums.add(path, (amount,), line=1)
    >>> [(sample.stack, sample.amounts) for sample in sums.table()]
    [((0, 1), (7,)), ((2,), (1,))]
    """

    budget: FrameBudget
    measures: int
    index: DigestIndex = field(default_factory=DigestIndex)
    frames: "array[int]" = field(default_factory=lambda: array("i"))
    """Of the stacks that differ, one after another."""
    depths: "array[int]" = field(default_factory=lambda: array("i"))
    sums: Amounts = field(init=False)
    """(measures, s) array, of which the stacks that differ are the first."""
    total: int = 0
    """Of all amounts, whatever their signs."""
    pending: "tuple[array[int], array[int], array[int], list[tuple[int, ...]]]" = field(init=False)
    """Frames, depths and lines of stacks that came since, and their amounts."""

    def __post_init__(self) -> None:
        self.sums = np.zeros((self.measures, 1), np.int64)
        self._wait()

    def add(self, path: Sequence[int], amounts: tuple[int, ...], *, line: int) -> None:
        """Add a sample.

        Parameters
        ----------
        path : numbers of frames, the function sampled first
        amounts : of every measure
        line : of the file

        Raises
        ------
        FileError
            If the file is beyond its bounds.
        """
        frames, depths, lines, waiting = self.pending
        frames.extend(path)
        depths.append(len(path))
        lines.append(line)
        waiting.append(amounts)
        if len(waiting) == _AT_ONCE or len(frames) >= _FRAMES_AT_ONCE:
            self._settle()

    def table(self, taken: int = -1) -> SampleTable:
        """Return the sums, in the order in which stacks came.

        Parameters
        ----------
        taken : samples that each amount rests on; −1: the file does not say
        """
        self._settle()
        size = self.index.size
        amounts = self.sums[:, :size].T.copy()
        return SampleTable(
            np.arange(size),
            np.frombuffer(self.frames, PLACE),
            np.frombuffer(self.depths, np.int32).astype(np.int64),
            amounts,
            np.zeros(size, np.int64),
            np.ones(size, np.bool_),
            None if taken < 0 else np.full_like(amounts, taken),
        )

    def _wait(self) -> None:
        self.pending = array("i"), array("i"), array("q"), []

    def _settle(self) -> None:
        """Sum what waits."""
        frames, depths, lines, waiting = self.pending
        if not waiting:
            return
        path, depth = np.frombuffer(frames, PLACE), np.frombuffer(depths, np.int32).astype(np.int64)
        end = np.cumsum(depth)
        numbers, new = self.index.numbers(digests_of(path, end - depth, end))
        fitting = self.budget.take_many(depth[new] + STACK_FRAMES)
        if fitting < len(new):
            beyond = int(new[fitting])
            self.budget.take(int(depth[beyond]), line=lines[beyond])
        first = np.zeros(len(depth), np.bool_)
        first[new] = True
        self.frames.frombytes(path[np.repeat(first, depth)].tobytes())
        self.depths.frombytes(depth[new].astype(np.int32).tobytes())
        self.total += sum(abs(amount) for amounts in waiting for amount in amounts)
        kind = np.int64 if self.total <= LARGEST and self.sums.dtype != object else object
        room = np.zeros((self.measures, max(self.sums.shape[1], self.index.size * 3 // 2)), kind)
        room[:, : self.sums.shape[1]] = self.sums
        self.sums = room
        for sums, amounts in zip(self.sums, zip(*waiting, strict=True), strict=True):
            np.add.at(sums, numbers, np.array(amounts, kind))
        self._wait()
