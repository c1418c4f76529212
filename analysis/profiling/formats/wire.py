"""The wire format of protocol buffers: varints, lengths and their bounds, with the byte at which something is wrong.

Source: Protocol Buffers documentation, "Encoding". Groups, which no profile has, are refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.tables.faults import refusal
from models.arrays import Ints

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_KINDS = (_VARINT, _FIXED64, _LENGTH, _FIXED32)
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10
MOST_VALUES = 1 << 21
"""Most values of the fields of a message that are read, each of some 130 bytes of memory."""

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Shape:
    """Which fields of a message are numbers and which have a length: texts and messages. Others are skipped."""

    name: str
    numbers: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()
    """Numbers that may come packed."""
    lengths: frozenset[int] = frozenset()


@dataclass(slots=True)
class Message:
    """A message's known fields, in the order of the file."""

    offset: int
    numbers: dict[int, list[int]] = field(default_factory=dict)
    """Field to its numbers, unsigned, 64 bits."""
    lengths: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Field to the first byte of each of its values, and the first after it."""
    values: int = 0
    """How many it has of all fields."""

    def number(self, key: int) -> int:
        """Return a field's number, the last that was said; 0 if none was."""
        values = self.numbers.get(key)
        return values[-1] if values else 0


@dataclass(slots=True)
class Wire:
    """Bytes to read messages from."""

    data: bytes
    name: str
    """The file."""

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """Return the number that begins at a byte, and the byte after it.

        Examples
        --------
        >>> Wire(bytes([150, 1]), "a.pb").varint(0, 2)
        (150, 2)
        """
        data = self.data
        if at < end and data[at] < 0x80:
            return data[at], at + 1
        if at + 1 < end and data[at + 1] < 0x80:
            return data[at] & 0x7F | data[at + 1] << 7, at + 2
        value = shift = 0
        for place in range(at, min(end, at + _LONGEST_VARINT)):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 64:
                    break
                return value, place + 1
            shift += 7
        if end - at < _LONGEST_VARINT:
            raise refusal(self.name, "number", "should end within its message", "one cut off", byte=at)
        raise refusal(self.name, "number", "should fit 64 bits", "a longer one", byte=at)

    def varints(self, at: int, end: int) -> list[int]:
        """Return the numbers packed between two bytes.

        Examples
        --------
        >>> Wire(bytes([3, 150, 1]), "a.pb").varints(0, 3)
        [3, 150]
        """
        data = self.data
        values = []
        while at < end:
            value = data[at]
            if value < 0x80:
                at += 1
            else:
                value, at = self.varint(at, end)
            values.append(value)
        return values

    def message(self, shape: Shape, at: int = 0, end: int | None = None) -> Message:
        """Return the known fields of the message between two bytes."""
        end = len(self.data) if end is None else end
        message = Message(at)
        while at < end:
            start = at
            tag, at = (self.data[at], at + 1) if self.data[at] < 0x80 else self.varint(at, end)
            at = self._field(shape, message, (start, tag, at), end)
            self._bound(shape, message, 1, start)
        return message

    def _field(self, shape: Shape, message: Message, head: tuple[int, int, int], end: int) -> int:
        """Take one field into the message; return the byte after it."""
        start, tag, at = head
        key, kind = tag >> 3, tag & 7
        if not key or kind not in _KINDS:
            raise refusal(self.name, shape.name, "should begin with a field of profile.proto", hex(tag), byte=start)
        if kind == _VARINT:
            value, at = self.varint(at, end)
            if key in shape.numbers or key in shape.repeated:
                message.numbers.setdefault(key, []).append(value)
            elif key in shape.lengths:
                raise self._mistyped(shape, start, key, kind)
            return at
        if kind == _LENGTH:
            length, at = self.varint(at, end)
            self._within(shape, start, at + length, end)
            if key in shape.lengths:
                message.lengths.setdefault(key, []).append((at, at + length))
            elif key in shape.repeated:
                self._bound(shape, message, length // _LONGEST_VARINT, start)
                message.numbers.setdefault(key, []).extend(self.varints(at, at + length))
            elif key in shape.numbers:
                raise self._mistyped(shape, start, key, kind)
            return at + length
        if key in shape.numbers or key in shape.repeated or key in shape.lengths:
            raise self._mistyped(shape, start, key, kind)
        self._within(shape, start, at + _WIDTHS[kind], end)
        return at + _WIDTHS[kind]

    def _bound(self, shape: Shape, message: Message, values: int, start: int) -> None:
        """Count values, at least so many, or refuse the message."""
        message.values += values
        if message.values > MOST_VALUES:
            problem = f"should have at most {MOST_VALUES} values in all its fields"
            raise refusal(self.name, shape.name, problem, "more", byte=start)

    def _within(self, shape: Shape, start: int, stop: int, end: int) -> None:
        if stop > end:
            problem = f"should end by byte {end}, with the message or file that holds it"
            raise refusal(self.name, shape.name, problem, f"one up to byte {stop}", byte=start)

    def _mistyped(self, shape: Shape, start: int, key: int, kind: int) -> Exception:
        expected = _LENGTH if key in shape.lengths else _VARINT
        problem = f"field {key} should be of wire type {expected}"
        return refusal(self.name, shape.name, problem, kind, byte=start)


def number_field(key: int, value: int) -> bytes:
    """Return a field with a number of 64 bits; nothing if it is 0, which is the default."""
    return varint(key << 3) + varint(value) if value else b""


def bytes_field(key: int, value: bytes) -> bytes:
    """Return a field with a text or a message."""
    return varint(key << 3 | _LENGTH) + varint(len(value)) + value


def packed_field(key: int, values: Iterable[int]) -> bytes:
    """Return a field with packed numbers of 64 bits; nothing if there are none."""
    packed = b"".join(map(varint, values))
    return bytes_field(key, packed) if packed else b""


def varint(value: int) -> bytes:
    """Return a number of 64 bits, seven of them in a byte.

    Examples
    --------
    >>> varint(150).hex()
    '9601'
    """
    value &= (1 << 64) - 1
    if value < 0x80:
        return bytes((value,))
    coded = bytearray()
    while value > 0x7F:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    coded.append(value)
    return bytes(coded)


def varint_sizes(words: Words) -> Ints:
    """Return the bytes that each number takes.

    Examples
    --------
    >>> varint_sizes(np.array([0, 127, 150, 2**64 - 1], np.uint64)).tolist()
    [1, 1, 2, 10]
    """
    sizes = np.ones(words.shape, np.int64)
    for bits in range(7, 64, 7):
        longer = words >> np.uint64(bits) > 0
        if not longer.any():
            break
        sizes += longer
    return sizes


def varints(words: Words) -> bytes:
    """Return numbers of 64 bits as `varint` has each of them, one after another.

    Examples
    --------
    >>> varints(np.array([150, 3, 2**64 - 1], np.uint64)) == b"".join(map(varint, [150, 3, 2**64 - 1]))
    True
    """
    sizes = varint_sizes(words)
    coded = np.empty(int(sizes.sum()), np.uint8)
    at, left = np.cumsum(sizes) - sizes, words
    while len(left):
        longer = left > 0x7F
        coded[at] = left & np.uint64(0x7F) | longer.astype(np.uint64) << np.uint64(7)
        at, left = at[longer] + 1, left[longer] >> np.uint64(7)
    return coded.tobytes()
