"""Samples of one event as columns, from the row groups of their files that may have it: decoded once, in no query."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.profiling.cancellation import check_current
from analysis.profiling.frames import AnyInts
from models.arrays import Bools, Ints

_ROWS_AT_ONCE = 131_072
_SPARSE = 4
"""Numbers that a dense table of places may have for each that is known."""
_FEW = 1_000_000
"""Numbers that it may have in any case."""

_Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of samples, and by how much its numbers are shifted among those of several."""

    file: Path
    process: int = 0
    location: int = 0
    stack: int = 0


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Rows of samples: arrays of n."""

    process: _Places
    """Index of `Numbering.places` of the processes; outside of it, it is of none."""
    place: AnyInts
    """The same of the locations, or of the stacks, of a `PlaceColumn`."""
    amounts: list[Ints]
    """Of each column asked for."""


@dataclass(frozen=True, slots=True)
class StackBatch:
    """Rows of samples whose stacks are numbers: arrays of n."""

    process: _Places
    """As of `SampleBatch`."""
    stack: Ints
    """Numbers, of a `StackColumn`."""
    amounts: list[Ints]


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Places of things that have numbers, which may be any."""

    ids: Ints
    """(n,) numbers, rising."""
    least: int
    dense: bool
    """Whether `places` is of every number from the least on; else of the numbers that are known."""
    places: _Places
    """Place of each, −1: none."""

    @classmethod
    def of(cls, ids: Ints, places: AnyInts) -> Self:
        """Return the numbering of things.

        Parameters
        ----------
        ids : (n,) their numbers, each once
        places : (n,)

        Examples
        --------
        >>> some = Numbering.of(np.array([7, 5]), np.array([0, 1]))
        >>> some.places[some.index(np.array([5, 7]))].tolist()
        [1, 0]
        >>> many = Numbering.of(np.array([2**40, 5]), np.array([0, 1]))
        >>> many.places[many.index(np.array([5, 6, 2**40]))].tolist()
        [1, -1, 0]
        """
        order = np.argsort(ids, kind="stable")
        ids, places = ids[order].astype(np.int64, copy=False), places[order].astype(np.int32, copy=False)
        least = int(ids[0]) if len(ids) else 0
        span = int(ids[-1]) - least + 1 if len(ids) else 0
        if span > max(_SPARSE * len(ids), _FEW):
            return cls(ids, least, False, np.append(places, np.int32(-1)))
        every = np.full(span, -1, dtype=np.int32)
        every[ids - least] = places
        return cls(ids, least, True, every)

    def index(self, numbers: AnyInts, shift: int = 0) -> _Places:
        """Return where numbers, once they are shifted, are among `places`; what is outside has none."""
        if self.dense:
            if numbers.dtype == np.int32 and self.least == shift:
                return numbers.astype(np.int32, copy=False)
            own = numbers.astype(np.int64) + (shift - self.least)
            return np.clip(own, -1, len(self.places)).astype(np.int32)
        own = numbers.astype(np.int64) + shift
        at = np.searchsorted(self.ids, own)
        known = self.ids[np.minimum(at, len(self.ids) - 1)] == own
        return np.where(known, at, len(self.ids)).astype(np.int32)

    def at(self, index: _Places) -> _Places:
        """Return the places of indices, −1 for those outside."""
        inside = (index >= 0) & (index < len(self.places))
        return np.where(inside, self.places[np.where(inside, index, 0)], np.int32(-1)) if len(self.places) else index


@dataclass(frozen=True, slots=True)
class PlaceColumn:
    """In which column of samples their places are told."""

    numbers: Numbering
    """Of those that there are."""
    name: Literal["location", "stack"] = "location"
    """Of stacks, which not all samples have, a negative number is none."""
    within: Numbering | None = None
    """Of the locations that are wanted, where places are stacks; none: all."""

    @property
    def columns(self) -> list[str]:
        """Those that are read."""
        return [self.name] if self.within is None else [self.name, "location"]

    def places(self, batch: pa.RecordBatch, source: SampleFile) -> AnyInts:
        """Return (n,) indices of places, as `SampleBatch` has them.

        Parameters
        ----------
        batch : n samples
        source : their file
        """
        numbers = _integers(batch.column(self.name))
        index = self.numbers.index(numbers, getattr(source, self.name))
        if self.name == "location":
            return index
        return np.where((numbers >= 0) & _wanted(self.within, batch, source), index, np.int32(-1))


NOWHERE = np.iinfo(np.int64).min
"""A place that is not wanted."""


@dataclass(frozen=True, slots=True)
class StackColumn:
    """Numbers of stacks; of samples that have none −1 − location, or `NOWHERE`."""

    within: Numbering | None
    """Of the locations that are wanted; none: all."""
    alone: bool
    """Whether samples without a stack are wanted."""
    apart: Numbering | None = None
    """Of the stacks that are told apart, where no others are; the others are −1. None: all."""
    span: tuple[int, int] | None = None
    """The first number that is wanted, and the one after the last; none: all are."""

    @property
    def columns(self) -> list[str]:
        """Those that are read."""
        return ["stack", "location"] if self.alone or self.within is not None else ["stack"]

    def stacks(self, batch: pa.RecordBatch, source: SampleFile) -> Ints:
        """Return (n,) numbers; parameters as of `PlaceColumn.places`."""
        stack = _integers(batch.column("stack")).astype(np.int64)
        stack[stack >= 0] += source.stack
        without = np.flatnonzero(stack < 0)
        if self.apart is not None:
            stack = np.where(self.apart.at(self.apart.index(stack)) < 0, -1, stack)
        alone = _integers(batch.column("location"))[without] if self.alone else None
        stack[without] = NOWHERE if alone is None else -1 - (alone.astype(np.int64) + source.location)
        if self.within is not None:
            stack = np.where(_wanted(self.within, batch, source), stack, NOWHERE)
        if self.span is not None:
            stack = np.where((stack >= self.span[0]) & (stack < self.span[1]), stack, NOWHERE)
        return stack


def _wanted(within: Numbering | None, batch: pa.RecordBatch, source: SampleFile) -> Bools | bool:
    """Return (n,) whether the locations of samples are among some; none: all are wanted."""
    if within is None:
        return True
    return within.at(within.index(_integers(batch.column("location")), source.location)) >= 0


def batches(
    files: Sequence[SampleFile], event: str, processes: Numbering, place: PlaceColumn, amounts: Sequence[str]
) -> Iterator[SampleBatch]:
    """Yield the samples of an event.

    Parameters
    ----------
    files : checked, as `views.connect` does
    event : whose samples
    processes : those that are wanted; row groups that have none of them are left out
    place : where places are told
    amounts : names of columns of integers; a file that lacks one has that of `count`
    """
    for source, batch, process, own in _read(files, event, processes, place.columns, amounts):
        yield SampleBatch(process, place.places(batch, source), own)


def stack_batches(
    files: Sequence[SampleFile], event: str, processes: Numbering, stack: StackColumn, amounts: Sequence[str]
) -> Iterator[StackBatch]:
    """Yield the samples of an event with numbers of stacks.

    Parameters
    ----------
    files, event, processes, amounts : as of `batches`
    stack : which numbers
    """
    for source, batch, process, own in _read(files, event, processes, stack.columns, amounts):
        yield StackBatch(process, stack.stacks(batch, source), own)


def _read(
    files: Sequence[SampleFile], event: str, processes: Numbering, columns: Sequence[str], amounts: Sequence[str]
) -> Iterator[tuple[SampleFile, pa.RecordBatch, _Places, list[Ints]]]:
    """Yield file, rows with some columns, their processes and amounts; parameters as of `batches`."""
    if not len(processes.ids):
        return
    for source in files:
        with pq.ParquetFile(source.file, read_dictionary=["event"], pre_buffer=False) as opened:
            names = ["count" if name not in opened.schema_arrow.names else name for name in amounts]
            span = int(processes.ids[0]) - source.process, int(processes.ids[-1]) - source.process
            for certain, groups in _groups(opened, event, span):
                wanted = dict.fromkeys(["process", *columns, *names, *([] if certain else ["event"])])
                rows = opened.iter_batches(_ROWS_AT_ONCE, groups, list(wanted), use_threads=False)
                for whole in rows:
                    check_current()
                    batch = whole if certain else whole.filter(pc.equal(whole.column("event").cast(pa.string()), event))
                    if batch.num_rows:
                        process = processes.index(_integers(batch.column("process")), source.process)
                        own = [_integers(batch.column(name)).astype(np.int64, copy=False) for name in names]
                        yield source, batch, process, own


def _integers(column: pa.Array) -> AnyInts:
    values: AnyInts = column.to_numpy(zero_copy_only=False)
    return values


def _groups(opened: pq.ParquetFile, event: str, span: tuple[int, int]) -> Iterator[tuple[bool, list[int]]]:
    """Yield runs of row groups that may have samples of an event and of processes in a span.

    Returns
    -------
    iterator
        Whether the footer says that all their samples are of the event, and their numbers.
    """
    certain: dict[bool, list[int]] = {True: [], False: []}
    for number in range(opened.metadata.num_row_groups):
        first, last = _bounds(opened, number, "event")
        least, most = _bounds(opened, number, "process")
        if first is not None and not first <= event <= last:
            continue
        if least is not None and (most < span[0] or least > span[1]):
            continue
        certain[first == last == event].append(number)
    yield from ((known, groups) for known, groups in certain.items() if groups)


def _bounds(opened: pq.ParquetFile, group: int, column: str) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column in a row group; None, None: its footer does not say."""
    leaves = [opened.schema.column(at).path for at in range(len(opened.schema))]  # a nested column is several
    statistics = opened.metadata.row_group(group).column(leaves.index(column)).statistics
    known = statistics is not None and statistics.has_min_max
    return (statistics.min, statistics.max) if known else (None, None)
