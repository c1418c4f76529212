"""Samples summed by call path, or by the place sampled where they have none: every sample once, exact at any size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pandas as pd

from analysis.profiling.frames import Amounts, AnyInts, KeyedWeights, Weights
from analysis.profiling.pairs import PairNumbers
from analysis.profiling.query import LOCATION_DIMENSIONS, Query, QueryError, of_process
from analysis.profiling.row_groups import NOWHERE, Numbering, SampleFile, StackColumn, stack_batches
from analysis.profiling.storage import TAKEN, ProfileError
from analysis.profiling.sums import column, frame, key_locations, key_processes, quoted, unrated
from analysis.profiling.views import MOST_VALUE, Counts
from models.arrays import Ints

_WORD = 63
"""Bits of a sum that is never negative."""
_INTEGER_BYTES = 40
"""What one of Python's integers takes that is beyond 64 bits."""


class TooManyStacksError(QueryError):
    """There are more sums than are wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledStacks:
    """Sums by stack and by a query's dimensions of processes: r rows, in order of the stacks and keys.

    Samples and values are integers of 64 bits, or Python's if all together need more.
    """

    keys: pd.DataFrame
    """(K,) the dimensions."""
    key: AnyInts
    """(r,) row of `keys`, which are in order."""
    stack: Ints
    """(r,) number of the stack; of samples that have none, −1 − location."""
    samples: Amounts
    value: Amounts
    """(r,) events: Σ count × period × duty × weight."""
    totals: tuple[int, int]
    """Samples and events of all."""

    @property
    def nbytes(self) -> int:
        """Bytes of all rows and dimensions."""
        columns = (self.key, self.stack, self.samples, self.value)
        integers = sum(_INTEGER_BYTES * own.size for own in columns if own.dtype == object)
        return sum(own.nbytes for own in columns) + integers + int(self.keys.memory_usage(deep=True).sum())

    def weights(self) -> Weights:
        """Return the sums by stack, and by key where there are dimensions."""
        if not len(self.keys.columns):
            return Weights(self.stack, self.samples, self.value)
        start = np.flatnonzero(np.append(True, self.stack[1:] != self.stack[:-1])[: len(self.stack)])
        first, key = np.append(start, len(self.stack)), self.key.astype(np.int64)
        keyed = KeyedWeights(first, key, self.samples, self.value, max(len(self.keys), 1))
        if not len(start):
            return Weights(self.stack, self.samples, self.value, keyed)
        samples, value = (np.add.reduceat(amounts, start) for amounts in (self.samples, self.value))
        return Weights(self.stack[start], samples, value, keyed)


@dataclass(frozen=True, slots=True)
class _Bits:
    """Some bits of a number."""

    first: int
    count: int

    @classmethod
    def parts(cls, bits: int, most: int) -> "list[_Bits]":
        """Return those of a number of so many bits; each has at most so many."""
        return [cls(first, max(most, 1)) for first in range(0, max(bits, 1), max(most, 1))]

    def of(self, numbers: Ints) -> Ints:
        """Return them as numbers."""
        return (numbers >> self.first) & ((1 << self.count) - 1)


@dataclass(frozen=True, slots=True)
class _Product:
    """A part of an amount times a part of what one of it stands for: sums of all rows fit a word."""

    amount: int
    """Which of the amounts."""
    of_amount: _Bits
    of_scale: _Bits | None
    """None: it stands for itself."""

    @property
    def shift(self) -> int:
        """Bits by which sums are shifted."""
        return self.of_amount.first + (self.of_scale.first if self.of_scale else 0)


def sum_stacks(
    cursor: duckdb.DuckDBPyConnection,
    query: Query,
    counts: Counts,
    files: Sequence[SampleFile],
    *,
    alone: bool = False,
    apart: Ints | None = None,
    span: tuple[int, int] | None = None,
    most: int | None = None,
) -> SampledStacks:
    """Return the sums of a query's samples by stack and by its dimensions of processes.

    Parameters
    ----------
    cursor : a cursor of its own on a connection of `views.connect`
    query : what is asked; restrictions on locations are on the sampled one
    counts : bounds of the samples' counts
    files : of the samples
    alone : whether samples without a stack count
    apart : stacks that are told apart, the others are together as −1 (not `alone`); none: all are
    span : the first number of a stack, as `SampledStacks` has it, that counts, and the one after the last; none: all
    most : rows that there may be; none: any number

    Raises
    ------
    ProfileError
        If samples lack a rate, or sums are too large.
    TooManyStacksError
        If there are more rows.
    """
    by = [name for name in query.by if of_process(name)]
    greatest = key_processes(cursor, query, by).greatest
    products = list(_products(counts, greatest))
    process, key, scales = _processes(cursor, products)
    keys = frame(cursor, f"SELECT {quoted('rated', *by)} FROM process_keys ORDER BY pkey")
    places, within = Numbering.of(process, np.arange(len(process))), None
    if any(name in LOCATION_DIMENSIONS for name, _ in query.where):
        key_locations(cursor, query, [])
        location = np.array(column(cursor, "SELECT location FROM location_map"), dtype=np.int64)
        within = Numbering.of(location, np.zeros(len(location), dtype=np.int32))
    pairs, sums = PairNumbers(), np.zeros((len(products), 0), dtype=np.int64)
    told_apart = None if apart is None else Numbering.of(apart, np.arange(len(apart)))
    stacks = StackColumn(within, alone, told_apart, span)
    for batch in stack_batches(files, query.event, places, stacks, ["count", TAKEN][: 1 + counts.taken]):
        at = places.at(batch.process)
        pair = pairs.of(batch.stack, np.where((at < 0) | (batch.stack == NOWHERE), np.int32(-1), key[at]))
        if most is not None and len(pairs) > most:
            raise TooManyStacksError(f"there are more than {most:,} places and call paths; restrict the query")
        if (missing := len(pairs) - sums.shape[1]) > 0:
            sums = np.pad(sums, ((0, 0), (0, max(missing, sums.shape[1]))))
        some = np.flatnonzero(pair >= 0)
        for into, product, scale_of in zip(sums, products, scales, strict=True):
            amount = product.of_amount.of(batch.amounts[product.amount][some])
            np.add.at(into, pair[some], amount * scale_of[at[some]])
    return _sorted(query.event, keys, pairs, [*zip(products, sums[:, : len(pairs)], strict=True)])


def _products(counts: Counts, greatest: int) -> Iterator[_Product]:
    """Yield what is summed, samples first; `greatest` is the most that a count of one stands for."""
    room, bits = _WORD - counts.rows.bit_length(), counts.most.bit_length()
    yield from (_Product(int(counts.taken), own, None) for own in _Bits.parts(_WORD if counts.taken else bits, room))
    widest = min(bits, room if bits + greatest.bit_length() <= room else room // 2)
    for own in _Bits.parts(bits, widest):
        yield from (_Product(0, own, of_scale) for of_scale in _Bits.parts(greatest.bit_length(), room - widest))


def _processes(cursor: duckdb.DuckDBPyConnection, products: Sequence[_Product]) -> tuple[Ints, AnyInts, Ints]:
    """Return (P,) processes, their keys, and (C, P) what one of each product's amount stands for."""
    scales = [
        f"((scale >> {own.of_scale.first}) & {(1 << own.of_scale.count) - 1})::BIGINT" if own.of_scale else "1::BIGINT"
        for own in products
    ]
    named = ", ".join(f"{scale} AS s{at}" for at, scale in enumerate(scales))
    rows = cursor.execute(f"SELECT process, pkey - 1 AS key, {named} FROM process_map").fetchnumpy()
    scale = np.array([rows[f"s{at}"] for at in range(len(products))], dtype=np.int64)
    return np.asarray(rows["process"], np.int64), np.asarray(rows["key"], np.int32), scale


def _sorted(event: str, keys: pd.DataFrame, pairs: PairNumbers, sums: Sequence[tuple[_Product, Ints]]) -> SampledStacks:
    """Return sums in order; `keys` say whether they are rated, and `sums` are (Q,) of each product."""
    samples, taken = _whole([(product.shift, own) for product, own in sums if product.of_scale is None])
    value, events = _whole([(product.shift, own) for product, own in sums if product.of_scale is not None])
    if max(taken, events) > MOST_VALUE:
        raise ProfileError(f"samples: sum of {event} is beyond 1e37")
    rated = keys.pop("rated").to_numpy(np.bool_)[pairs.key]
    if without := int(samples[~rated].sum()):
        raise unrated(event, without)
    order = np.lexsort((pairs.key, pairs.place))
    order = order[rated[order]]
    return SampledStacks(keys, pairs.key[order], pairs.place[order], samples[order], value[order], (taken, events))


def _whole(parts: Sequence[tuple[int, Ints]]) -> tuple[Amounts, int]:
    """Return sums of which there are parts, each shifted by some bits, and what they are in all."""
    total = sum(int(own.sum()) << shift for shift, own in parts)
    kind = np.int64 if total.bit_length() <= _WORD else object
    amounts = np.zeros(len(parts[0][1]), dtype=kind)
    for shift, own in parts:
        if own.any():  # Parts for counts of other events may be shifted further than a word is long.
            amounts += own.astype(kind) * (1 << shift)
    return amounts, total
