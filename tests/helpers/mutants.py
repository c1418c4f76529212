"""Files with faults at random places: cut off, flipped, doubled, nested, with numbers that nothing is."""

import gzip
import json
import random
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

_NUMBERS = (*b"1e400 -1 nan inf 1e308 0 1_0 -9223372036854775808".split(), b"9" * 30, b"9" * 5000, b"")
_WORDS = (*b"null true ~ [] {} .nan 2020-01-01 99999-01-01 0001-01-01T00:00:00+14:00".split(), b"")
_VALUES = (
    *(None, True, 0, 1, -1, 0.5, 2**31, 2**63, -(2**63), 2**64 - 1, 10**30, 1e308, float("nan"), float("inf")),
    *("", "9" * 5000, "\ud800", "a;b\n", "-3", [], {}, [[]], {"a": [1]}, [0, 1, 2]),
)
_PIECES = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\xef\xbb\xbf",
        b'"',
        b"'",
        b",",
        b";",
        b":",
        b"\r",
    ),
    *(b"[" * 1500, b'{"a":' * 1500, b"- " * 500, b"*a", b"&a ", b"!!python/object:os.system x", b"<<: *b", b"# "),
)


def mutants(data: bytes, count: int, seed: str) -> Iterator[bytes]:
    """Yield so many files that differ from a valid one in one place or a few, some of them gzipped."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        mutant = data
        for _ in range(rng.choice([1, 1, 2, 4])):
            mutant = rng.choice(_WAYS)(mutant, rng)
        packed = gzip.compress(mutant, mtime=0)
        yield mutant if number % 8 else packed if number % 16 else _flipped(packed, rng)


def json_mutants(data: bytes, count: int, seed: str) -> Iterator[bytes]:
    """Yield so many JSON files that differ from a valid one in a value or a few, so that they get behind the parser."""
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        content = json.loads(data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            holder, key = rng.choice([*_places(content)] or [([content], 0)])
            if rng.random() < 0.25:
                del holder[key]
            elif isinstance(holder, list) and rng.random() < 0.3:
                again = holder[rng.randrange(len(holder))]
                holder[key:key] = [deepcopy(again) for _ in range(rng.choice([1, 1, 300]))]
            else:
                holder[key] = deepcopy(rng.choice(_VALUES))
        yield json.dumps(content).encode()


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every value's holder and its key or index there."""
    keys = list(content) if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield content, key
        yield from _places(content[key])


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flipped(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_PIECES) + data[at:]


def _without(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(1, 40) :]


def _number(data: bytes, rng: random.Random) -> bytes:
    return _replaced(data, rb"-?\d+(\.\d+)?", _NUMBERS, rng)


def _word(data: bytes, rng: random.Random) -> bytes:
    return _replaced(data, rb"[A-Za-z_]{2,}", _WORDS, rng)


def _replaced(data: bytes, pattern: bytes, others: tuple[bytes, ...], rng: random.Random) -> bytes:
    places = [match.span() for match in re.finditer(pattern, data)]
    if not places:
        return data
    begin, end = rng.choice(places)
    return data[:begin] + rng.choice(others) + data[end:]


def _line_doubled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"\n".join(lines)


def _line_lost(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


_WAYS = (_cut, _flipped, _inserted, _inserted, _without, _number, _number, _word, _line_doubled, _line_lost)
