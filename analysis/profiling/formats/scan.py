"""Many messages of one shape in protocol buffers' wire format at once, by a compiled scan.

Where a message is damaged the scan only says which: `Wire`, the readable reader of the format, then says why.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.profiling.formats import wire as bounds
from analysis.profiling.formats.wire import Shape, Wire
from models.arrays import Ints, UInts
from models.code.compiled import njit

_SKIPPED, _NUMBER, _REPEATED, _LENGTH = range(4)
_BLOCK_BYTES = 1 << 20
"""Bytes of messages that are scanned at once where what they hold is not kept."""
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_ZERO, _ONE, _THREE, _SEVEN, _TOP = map(np.uint64, (0, 1, 3, 7, 63))
_MORE, _BITS = np.uint64(0x80), np.uint64(0x7F)


class Source(NamedTuple):
    """What is scanned."""

    data: NDArray[np.uint8]
    spans: UInts
    """Of each message the first byte, in the upper half, and the first after it."""
    fields: Ints
    """(fields, 2) array: what each field is, and its column."""


class Target(NamedTuple):
    """What a scan fills."""

    numbers: UInts
    """(messages, fields of a number) array."""
    cursor: Ints
    """(messages, fields of several) array: where in `flat` the next value goes, moved on; from 0 it counts."""
    flat: UInts
    """Values of fields of several; empty: they are only counted."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Known fields of many messages of a shape.

    Examples
    --------
    >>> data = bytes([8, 5, 18, 2, 7, 8, 8, 6])
    >>> shape = Shape("part", numbers=frozenset({1}), repeated=frozenset({2}))
    >>> messages = scanned(Wire(data, "a.pb"), shape, span(0, len(data)))
    >>> messages.number(1).tolist(), messages.values(2).tolist(), messages.counts(2).tolist()
    ([6], [7, 8], [2])
    """

    shape: Shape
    spans: UInts
    """Of each message the first byte, in the upper half, and the first after it."""
    numbers: UInts
    """A row a message, a column a number."""
    lengths: Ints
    """How many values each message has, a column a field of several."""
    flat: UInts
    """Values field by field, in the order of the messages; of what has a length its span."""

    def __len__(self) -> int:
        return len(self.spans)

    def offsets(self) -> Ints:
        """Return the first byte of each."""
        return (self.spans >> _HALF).astype(np.int64)

    def number(self, key: int) -> UInts:
        """Return a field's number in each message, the last that was said; 0 if none was."""
        return self.numbers[:, _columns(self.shape)[1][key]]

    def counts(self, key: int) -> Ints:
        """Return how many values of a field each message has."""
        return self.lengths[:, _columns(self.shape)[1][key]]

    def values(self, key: int) -> UInts:
        """Return the values of a field, message by message."""
        column = _columns(self.shape)[1][key]
        before = int(self.lengths[:, :column].sum())
        return self.flat[before : before + int(self.lengths[:, column].sum())]


def span(begin: int, end: int) -> UInts:
    """Return where a single message is, for `scanned`."""
    return np.array([begin << 32 | end], dtype=np.uint64)


def begin_end(place: int) -> tuple[int, int]:
    """Return a span's first byte and the first after it."""
    return place >> 32, place & 0xFFFFFFFF


def scanned(wire: Wire, shape: Shape, spans: UInts) -> Messages:
    """Return the known fields of messages.

    Raises
    ------
    FileError
        With the fault of the first message that is damaged.
    """
    messages, whole = scanned_until(wire, shape, spans)
    if whole < len(spans):
        wire.message(shape, *begin_end(int(spans[whole])))
    return messages


def scanned_until(wire: Wire, shape: Shape, spans: UInts) -> tuple[Messages, int]:
    """Return the known fields of the messages before the first that is damaged, and how many they are."""
    fields, _, (single, several) = _columns(shape)
    source = Source(np.frombuffer(wire.data, np.uint8), spans, fields)
    numbers = np.zeros((len(spans), single), np.uint64)
    lengths = np.zeros((len(spans), several), np.int64)
    most = bounds.MOST_VALUES
    whole = scan(source, Target(numbers, lengths, np.empty(0, np.uint64)), most)
    spans, numbers, lengths = spans[:whole], numbers[:whole], lengths[:whole]
    flat = np.empty(int(lengths.sum()), np.uint64)
    if len(flat):
        by_field = lengths.T.ravel()
        cursor = np.ascontiguousarray((np.cumsum(by_field) - by_field).reshape(several, whole).T)
        scan(source._replace(spans=spans), Target(numbers, cursor, flat), most)
    return Messages(shape, spans, numbers, lengths, flat), whole


def blocks(spans: UInts) -> Iterator[slice]:
    """Yield slices of messages that are not many bytes each, if they are more than one.

    Examples
    --------
    >>> list(blocks(np.concatenate([span(0, 1 << 20), span(1 << 20, 3 << 20), span(3 << 20, (3 << 20) + 4)])))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    size = np.cumsum((spans & _LOW).astype(np.int64) - (spans >> _HALF).astype(np.int64))
    first = 0
    while first < len(spans):
        before = int(size[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(size, before + _BLOCK_BYTES, side="right")))
        yield slice(first, last)
        first = last


@cache
def _columns(shape: Shape) -> tuple[Ints, dict[int, int], tuple[int, int]]:
    """Return what each field is and its column, each field's column, and how many columns of either kind there are."""
    known = {**dict.fromkeys(shape.numbers, _NUMBER), **dict.fromkeys(shape.repeated, _REPEATED)}
    known |= dict.fromkeys(shape.lengths, _LENGTH)
    fields = np.zeros((max(known) + 1, 2), np.int64)
    columns, many = dict[int, int](), [0, 0]
    for key in sorted(known):
        several = int(known[key] != _NUMBER)
        columns[key] = many[several]
        fields[key] = known[key], many[several]
        many[several] += 1
    return fields, columns, (many[0], many[1])


@njit(cache=False, error_model="numpy", borrows=True)
def _varint(data: NDArray[np.uint8], at: int, end: int) -> tuple[np.uint64, int]:
    """Return the number that begins at a byte, and the byte after it; −1 if it is cut off or too long."""
    value, shift = _ZERO, _ZERO
    for place in range(at, min(end, at + 10)):
        byte = np.uint64(data[place])
        value |= (byte & _BITS) << shift
        if byte < _MORE:
            return (value, -1) if shift == _TOP and byte > _ONE else (value, place + 1)
        shift += _SEVEN
    return value, -1


@njit(cache=False, error_model="numpy", borrows=True)
def _put(target: Target, message: int, column: int, value: np.uint64) -> None:
    """Take a value of a field of several, or count it."""
    if target.flat.size:
        target.flat[target.cursor[message, column]] = value
    target.cursor[message, column] += 1


@njit(cache=False, error_model="numpy", borrows=True)
def _length(source: Source, target: Target, field: tuple[int, int, int], at: int, end: int) -> tuple[int, int]:
    """Take what has a length; return the byte after it, −1 if it is damaged, and how many values it counts as."""
    message, what, column = field
    length, at = _varint(source.data, at, end)
    if at < 0 or length > np.uint64(end - at) or what == _NUMBER:
        return -1, 0
    stop, values = at + int(np.int64(length)), 1
    if what == _LENGTH:
        _put(target, message, column, np.uint64(at) << _HALF | np.uint64(stop))
    elif what == _REPEATED:
        values += (stop - at) // 10
        while 0 <= at < stop:
            value, at = _varint(source.data, at, stop)
            if at >= 0:
                _put(target, message, column, value)
        return at, values
    return stop, values


@njit(cache=False, error_model="numpy", borrows=True)
def _field(source: Source, target: Target, message: int, at: int, end: int) -> tuple[int, int]:
    """Take a field; return the byte after it, −1 if it is damaged, and how many values it counts as."""
    tag, at = _varint(source.data, at, end)
    key, kind = tag >> _THREE, tag & _SEVEN
    if at < 0 or key == _ZERO:
        return -1, 0
    known = key < np.uint64(source.fields.shape[0])
    what = source.fields[np.int64(key), 0] if known else _SKIPPED
    column = source.fields[np.int64(key), 1] if known else 0
    if kind == 2:
        return _length(source, target, (message, what, column), at, end)
    if kind == 0 and what != _LENGTH:
        value, at = _varint(source.data, at, end)
        if at >= 0 and what == _NUMBER:
            target.numbers[message, column] = value
        elif at >= 0 and what == _REPEATED:
            _put(target, message, column, value)
        return at, 1
    width = 8 if kind == 1 else 4
    fixed = kind in (1, 5) and what == _SKIPPED and at + width <= end
    return (at + width if fixed else -1), 1


@njit(cache=True, nogil=True, error_model="numpy", borrows=True)
def scan(source: Source, target: Target, most: int) -> int:
    """Scan messages up to the first that is damaged; return its place, or how many messages there are.

    Parameters
    ----------
    source : what is scanned
    target : filled
    most : values that a message may have
    """
    for message in range(source.spans.size):
        at, values = int(np.int64(source.spans[message] >> _HALF)), 0
        end = int(np.int64(source.spans[message] & _LOW))
        while at < end:
            at, more = _field(source, target, message, at, end)
            values += more
            if at < 0 or values > most:
                return message
    return source.spans.size
