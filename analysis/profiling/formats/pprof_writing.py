"""Writing profiles in pprof's format, profile.proto."""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.formats.wire import bytes_field, number_field, packed_field, varint
from models.errors import InputError

_GZIP = 31
"""What zlib calls gzip's format."""
_PACKED_AT_ONCE = 1_000_000
"""Bytes."""
_LABELS = ("application", "process", "machine", "platform", "datacentre", "kernel")


def write_pprof(profile: ForeignProfile) -> bytes:
    """Return a profile in pprof's format (google/pprof, proto/profile.proto), gzipped, the same bytes every time.

    Every measure becomes a sample type; the last one with a period above 1 gives the period. Every frame becomes a
    location, every image with its build id a mapping, the program's own the first. Origins become labels.

    Parameters
    ----------
    profile : values of at most 2⁶³ − 1

    Raises
    ------
    ValueError
        If the values of a measure sum to more than 2⁶³ − 1, which readers cannot hold.

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Sample
    >>> from analysis.profiling.formats.pprof import read_pprof
    >>> profile = ForeignProfile((Measure("cycles"),), (Frame("f", "a.out", line=3),), (Sample((0,), (10,)),))
    >>> read_pprof(write_pprof(profile)).frames[0] == profile.frames[0]
    True
    """
    return b"".join(pprof_parts(profile))


def pprof_parts(profile: ForeignProfile) -> Iterator[bytes]:
    """Yield what `write_pprof` returns, some of it after others; parameters and exceptions as there."""
    for measure in profile.measures:
        total = profile.total(measure.event)
        if total > LARGEST:
            raise InputError(f"{measure.event} sums to {total}, more than the {LARGEST} that pprof's format holds")
    packer, waiting, size = zlib.compressobj(6, zlib.DEFLATED, _GZIP), list[bytes](), 0
    for part in _Writer(profile).written():
        waiting.append(part)
        size += len(part)
        if size > _PACKED_AT_ONCE:
            yield packer.compress(b"".join(waiting))
            waiting, size = [], 0
    yield packer.compress(b"".join(waiting)) + packer.flush()


@dataclass(slots=True)
class _Writer:
    profile: ForeignProfile
    texts: dict[str, int] = field(default_factory=lambda: {"": 0})

    def written(self) -> Iterator[bytes]:
        """Yield the message, not gzipped, field by field."""
        profile = self.profile
        yield from [bytes_field(1, self._type(measure)) for measure in profile.measures]
        yield from self._samples()
        yield from self._code()
        if not math.isnan(profile.start_s):
            yield number_field(9, round(profile.start_s * 1e9))
        yield number_field(10, round(profile.length_s * 1e9))
        sampled = [measure for measure in profile.measures if measure.period > 1][-1:]
        yield from [bytes_field(11, self._type(measure)) + number_field(12, measure.period) for measure in sampled]
        yield packed_field(13, [self._text(comment) for comment in profile.comments])
        yield number_field(14, self._text(profile.default))
        yield from [bytes_field(6, text.encode(errors="replace")) for text in self.texts]

    def _type(self, measure: Measure) -> bytes:
        return number_field(1, self._text(measure.event)) + number_field(2, self._text(measure.unit))

    def _samples(self) -> Iterator[bytes]:
        places = [varint(number) for number in range(1, len(self.profile.frames) + 1)]
        labels: dict[int, bytes] = {}
        for sample in self.profile.samples:
            if sample.origin not in labels:
                labels[sample.origin] = self._labels(self.profile.origins[sample.origin])
            stack = b"".join([places[frame] for frame in sample.stack])
            path = bytes_field(1, stack) if stack else b""
            yield bytes_field(2, path + _amounts(sample.amounts) + labels[sample.origin])

    def _labels(self, origin: Origin) -> bytes:
        pairs = [(key, getattr(origin, key)) for key in _LABELS]
        pairs += [(key, text) for key, text in origin.labels if key not in _LABELS]
        labels = [number_field(1, self._text(key)) + number_field(2, self._text(text)) for key, text in pairs if text]
        return b"".join(bytes_field(3, label) for label in labels)

    def _code(self) -> Iterator[bytes]:
        """Yield mappings, locations and functions."""
        functions: dict[tuple[str, str, int], int] = {}
        images = self._images()
        for (image, build_id), number in images.items():
            names = number_field(5, self._text(image)) + number_field(6, self._text(build_id))
            known = b"".join(number_field(key, 1) for key in (7, 8, 9))
            yield bytes_field(3, number_field(1, number) + names + known)
        for number, frame in enumerate(self.profile.frames, 1):
            mapping = number_field(2, images.get((frame.image, frame.build_id), 0))
            yield bytes_field(
                4, number_field(1, number) + mapping + number_field(3, frame.address) + _lines(frame, functions)
            )
        for (name, file, begin), number in functions.items():
            texts = [(2, name), (3, name), (4, file)]
            fields = b"".join(number_field(key, self._text(text)) for key, text in texts)
            yield bytes_field(5, number_field(1, number) + fields + number_field(5, begin))

    def _images(self) -> dict[tuple[str, str], int]:
        """Return numbers of the images that are known, the program's own first."""
        named = dict.fromkeys((frame.image, frame.build_id) for frame in self.profile.frames)
        named.pop(("", ""), None)
        ordered = sorted(named, key=lambda image: image[0] != self.profile.main)
        return {image: number for number, image in enumerate(ordered, 1)}

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


@lru_cache(maxsize=1 << 16)
def _amounts(amounts: tuple[int, ...]) -> bytes:
    """Return a sample's values; few differ, as most samples are of a place sampled once or twice."""
    return packed_field(2, amounts)


def _lines(frame: Frame, functions: dict[tuple[str, str, int], int]) -> bytes:
    """Return a location's line; without a function it has none."""
    if not frame.function:
        return b""
    key = (frame.function, frame.file, frame.function_line)
    function = functions.setdefault(key, len(functions) + 1)
    return bytes_field(4, number_field(1, function) + number_field(2, frame.line))
