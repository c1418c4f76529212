"""CPU profiles in the binary format of gperftools: words of addresses, then the map of the process's memory."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.profiling.formats.foreign import (
    DEEPEST,
    ForeignProfile,
    FrameBudget,
    Loaded,
    Measure,
    Sample,
    loaded_by,
    unnamed,
)
from analysis.tables.faults import refusal

_LAYOUTS = tuple((order, code, width) for order in "<>" for code, width in (("Q", 8), ("I", 4)))
_HEADER_WORDS = 5
_LARGEST_PERIOD_US = 10**9
_MAP = re.compile(
    r"(?P<start>[0-9a-f]{1,16})-(?P<end>[0-9a-f]{1,16})\s+..x.\s+(?P<offset>[0-9a-f]+)\s+\S+\s+[0-9]+\s*(?P<image>.*)"
)


def is_cpu_profile(data: bytes) -> bool:
    """Return whether bytes begin with the header of such a profile, in either byte order, of 32 or 64 bits."""
    return _layout(data) is not None


def read_cpu_profile(data: bytes, name: str = "cpu.prof") -> ForeignProfile:
    """Read a CPU profile of gperftools (its doc/cpuprofile-fileformat.html): measures `samples` and `cpu`.

    Addresses have no symbols; callers' are moved back by one, into the call. Images are those of the map at the end.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults
    """
    layout = _layout(data)
    if layout is None:
        raise refusal(name, "header", "should be that of a CPU profile of gperftools", data[:16].hex(), byte=0)
    words = _Words(data, name, *layout)
    period_us = words.at(3)
    if not 0 < period_us <= _LARGEST_PERIOD_US:
        raise refusal(name, "sampling period", "should be from 1 µs to 1000 s", f"{period_us} µs", byte=3 * words.width)
    counts: dict[tuple[int, ...], int] = {}
    budget = FrameBudget(name)
    begin = 2 + words.at(1)
    for addresses, count in words.records(begin):
        if addresses not in counts:
            budget.take(len(addresses))
        counts[addresses] = counts.get(addresses, 0) + count
    return _profile(counts, 1000 * period_us, _images(data[words.end :]), name)


@dataclass(slots=True)
class _Words:
    data: bytes
    name: str
    order: str
    code: str
    width: int
    end: int = 0
    """First byte after the last record, once `records` has been read."""

    def at(self, index: int, many: int = 1) -> int:
        """Return the word at an index."""
        return self.several(index, many)[0]

    def several(self, index: int, many: int) -> tuple[int, ...]:
        """Return words, or refuse what is cut off."""
        start = index * self.width
        if start + many * self.width > len(self.data):
            problem = f"should have {many} more words of {self.width} bytes"
            raise refusal(self.name, "record", problem, f"a file of {len(self.data)} bytes", byte=start)
        return struct.unpack_from(f"{self.order}{many}{self.code}", self.data, start)

    def records(self, index: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield each record's addresses, the sampled one first, and its count, up to the record that ends them."""
        while True:
            count, depth = self.several(index, 2)
            if not 0 < depth <= DEEPEST:
                raise refusal(
                    self.name, "depth", f"should be from 1 to {DEEPEST}", depth, byte=(index + 1) * self.width
                )
            addresses = self.several(index + 2, depth)
            index += 2 + depth
            if not count and addresses == (0,):
                self.end = index * self.width
                return
            yield addresses, count


def _layout(data: bytes) -> tuple[str, str, int] | None:
    """Return byte order, code and width of the words; nothing if the file is no such profile."""
    for order, code, width in _LAYOUTS:
        if len(data) >= _HEADER_WORDS * width:
            first, words, version = struct.unpack_from(f"{order}3{code}", data)
            if (first, version) == (0, 0) and 3 <= words <= 64:
                return order, code, width
    return None


def _images(text: bytes) -> list[Loaded]:
    """Return the executable parts of memory, from the text of /proc/self/maps."""
    return list(loaded_by(map(_MAP.fullmatch, text.decode(errors="replace").splitlines())))


def _profile(counts: dict[tuple[int, ...], int], period_ns: int, images: list[Loaded], name: str) -> ForeignProfile:
    frames: dict[int, int] = {}
    samples = []
    for addresses, count in counts.items():
        places = (addresses[0], *(max(address - 1, 0) for address in addresses[1:]))
        stack = tuple(frames.setdefault(place, len(frames)) for place in places)
        samples.append(Sample(stack, (count, count * period_ns)))
    return ForeignProfile(
        (Measure("samples"), Measure("cpu", "nanoseconds", period_ns)),
        tuple(unnamed(address, images) for address in frames),
        tuple(samples),
        name=name,
        main=next((part.image for part in images), ""),
        notes=("it has no symbols: functions are [unknown], unless --binary names them",),
    )
