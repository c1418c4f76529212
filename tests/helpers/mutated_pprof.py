"""Small files in pprof's format that have everything the format knows, and what may become of them on the way."""

import random

from analysis.profiling.formats.wire import bytes_field, number_field, packed_field

TEXTS = (
    "",
    "cpu",
    "nanoseconds",
    "f",
    "g",
    "main",
    "a.out",
    "abc",
    "f.c",
    "pid",
    "f",
    "",
    "unit",
    "job",
    "k\x1b",
    "pod",
)
HIGH = 1 << 64
TAILS = (
    b"\x68\x00",  # a comment
    b"\x12\x00",  # an empty sample
    b"\x22\x02\x08\x05",  # a location
    b"\x2a\x02\x08\x01",  # a function whose id was there before
    b"\x12\x06\x08\x01\x08\x02\x10\x03",  # numbers that are not packed
    b"\x12\x04\x0a\x02\x81\x00",  # a number longer than need be
    b"\x6a\x02\x03\x04",  # packed comments
    b"\x6a\x64" + bytes(100),  # many of them
    b"\x68" + b"\xff" * 9 + b"\x02",  # a number of 65 bits
    b"\x12\x04\x1a\x02\x08\x80",  # a sample whose label is cut off
    b"\x0b\x0c",  # a group
    b"\x79" + bytes(8) + b"\x7d" + bytes(4),  # fields that are not known
    b"\xf8" + b"\xff" * 8 + b"\x01\x05",  # the last field that there can be
)


def drawn_pprof(rng: random.Random) -> bytes:
    """Return a file: mostly a valid one, of functions, inlined lines, labels, ids with gaps or none, as .NET writes."""
    text = lambda: rng.randrange(len(TEXTS))  # noqa: E731
    types = rng.choice((1, 1, 2, 3))
    without_ids = rng.random() < 0.1
    count = rng.randrange(1, 6)
    functions = [0 if without_ids else number * rng.choice((1, 1, 10**9)) for number in range(1, count + 1)]
    mappings = range(1, rng.randrange(1, 4))
    locations = range(1, (count if without_ids else rng.randrange(1, 7)) + 1)
    named = range(1, count + 1) if without_ids else functions
    paths = [[rng.choice(locations) for _ in range(rng.randrange(5))] for _ in range(4)]
    parts = [bytes_field(6, name.encode()) for name in TEXTS]
    parts += [
        bytes_field(1, number_field(1, rng.randrange(3)) + number_field(2, rng.randrange(3))) for _ in range(types)
    ]
    for number in mappings:
        fields = (
            number,
            rng.choice((0, 4096, 1 << 63)),
            rng.choice((0, 8192, HIGH - 1)),
            rng.choice((0, 16, HIGH - 1)),
        )
        parts.append(_message(3, *fields, text(), text()))
    parts += [_message(5, number, text(), text(), text(), rng.choice((0, 5, 1 << 40, -1))) for number in functions]
    for number in locations:
        place = number_field(1, number) + number_field(2, rng.choice((0, *mappings)))
        place += number_field(3, rng.choice((0, 5000, 4100, HIGH - 1, (1 << 63) + 5)))
        lines = (
            _message(4, rng.choice(named), rng.choice((0, 7, 7, 1 << 33))) for _ in range(rng.choice((0, 1, 1, 2)))
        )
        parts.append(bytes_field(4, place + b"".join(lines)))
    for _ in range(rng.randrange(12)):
        values = [rng.choice((0, 1, 3, -2, (1 << 63) - 1, 300)) for _ in range(types)]
        labels = (
            _message(
                3, rng.choice((9, 13, 14, 15)), rng.choice((0, 3, 4, 5)), rng.choice((1, 2, -5)), rng.choice((0, 12))
            )
            for _ in range(rng.choice((0, 0, 1, 2)))
        )
        parts.append(bytes_field(2, packed_field(1, rng.choice(paths)) + packed_field(2, values) + b"".join(labels)))
    parts += [number_field(key, rng.choice((0, 3))) for key in (7, 8, 13, 14)]
    parts += [number_field(key, rng.choice((0, 10**9, -5))) for key in (9, 10, 12)]
    if rng.random() < 0.5:
        parts.append(_message(11, rng.randrange(3), rng.randrange(3)))
    return b"".join(parts)


def mutated(rng: random.Random, content: bytes) -> bytes:
    """Return a content after some changes, often one, sometimes none: bytes set, lost or come in, or a tail."""
    data = bytearray(content)
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 5))):
        at, change = rng.randrange(len(data)), rng.randrange(8)
        if change == 0:
            data[at] = rng.randrange(256)
        elif change == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif change == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 4))
        elif change == 3:
            del data[at : at + rng.randrange(1, 4)]
        elif change == 4:
            data[at:at] = b"\xff" * rng.randrange(1, 11) + bytes([rng.randrange(4)])
        else:
            data += rng.choice(TAILS)
    return bytes(data)


def _message(key: int, *numbers: int) -> bytes:
    """Return a field that is a message, of numbers in the order of their fields."""
    return bytes_field(key, b"".join(number_field(at, number) for at, number in enumerate(numbers, 1)))
