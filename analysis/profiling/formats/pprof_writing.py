"""Writing profiles in pprof's format, profile.proto."""

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.profiling.formats.columns import Amounts, FrameTable, SampleTable
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Measure, Origin
from analysis.profiling.formats.wire import (
    Words,
    bytes_field,
    number_field,
    packed_field,
    varint,
    varint_sizes,
    varints,
)
from models.arrays import Bools, Ints
from models.errors import InputError

_GZIP = 31
"""What zlib calls gzip's format."""
_PACKED_AT_ONCE = 1_000_000
"""Bytes."""
_ROWS_AT_ONCE = 20_000
"""Samples, frames or functions."""
_VARINT, _LENGTH = 0, 2
"""Types of fields, in the wire format."""
_WORD = (1 << 64) - 1
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
    >>> from analysis.profiling.formats.foreign import Frame, Sample
    >>> from analysis.profiling.formats.pprof import read_pprof
    >>> profile = ForeignProfile((Measure("cycles"),), (Frame("f", "a.out", line=3),), (Sample((0,), (10,)),))
    >>> read_pprof(write_pprof(profile)).frames[0] == profile.frames[0]
    True
    """
    return b"".join(pprof_parts([profile]))


def pprof_parts(parts: Iterable[ForeignProfile]) -> Iterator[bytes]:
    """Yield what `write_pprof` returns for a profile in parts, some of it after others; exceptions as there.

    Parameters
    ----------
    parts : at least one, which differ in samples; the frames and origins of each begin with those of the one before.
        Each is let go of before the next is asked for.
    """
    packer, waiting, size = zlib.compressobj(6, zlib.DEFLATED, _GZIP), list[bytes](), 0
    for field_of in _Writer().written(parts):
        waiting.append(field_of)
        size += len(field_of)
        if size > _PACKED_AT_ONCE:
            yield packer.compress(b"".join(waiting))
            waiting, size = [], 0
    yield packer.compress(b"".join(waiting)) + packer.flush()


@dataclass(slots=True)
class _Writer:
    texts: dict[str, int] = field(default_factory=lambda: {"": 0})
    totals: dict[str, int] = field(default_factory=dict)
    """Of each event, those of the parts so far."""

    def written(self, parts: Iterable[ForeignProfile]) -> Iterator[bytes]:
        """Yield the message, not gzipped, field by field."""
        profile = ForeignProfile((), (), ())
        for part in parts:
            self._refuse_large(part)
            if len(self.texts) == 1:
                yield from [bytes_field(1, self._type(measure)) for measure in part.measures]
            yield from self._samples(SampleTable.of(part.samples), part.origins)
            profile = replace(part, samples=())
            del part
        yield from self._code(FrameTable.of(profile.frames), profile.main)
        if not math.isnan(profile.start_s):
            yield number_field(9, round(profile.start_s * 1e9))
        yield number_field(10, round(profile.length_s * 1e9))
        sampled = [measure for measure in profile.measures if measure.period > 1][-1:]
        yield from [bytes_field(11, self._type(measure)) + number_field(12, measure.period) for measure in sampled]
        yield packed_field(13, [self._text(comment) for comment in profile.comments])
        yield number_field(14, self._text(profile.default))
        yield from [bytes_field(6, text.encode(errors="replace")) for text in self.texts]

    def _refuse_large(self, part: ForeignProfile) -> None:
        """Refuse measures that are too large with this part."""
        for measure in part.measures:
            total = self.totals[measure.event] = self.totals.get(measure.event, 0) + part.total(measure.event)
            if total > LARGEST:
                raise InputError(f"{measure.event} sums to {total}, more than the {LARGEST} that pprof's format holds")

    def _type(self, measure: Measure) -> bytes:
        return number_field(1, self._text(measure.event)) + number_field(2, self._text(measure.unit))

    def _samples(self, table: SampleTable, origins: Sequence[Origin]) -> Iterator[bytes]:
        used, first = np.unique(table.origin, return_index=True)
        labels = [np.zeros(0, np.uint64)] * len(origins)
        for origin in used[np.argsort(first)].tolist():
            labels[origin] = self._labels(origins[origin])
        for rows in _slices(len(table)):
            yield _messages_of_samples(table, rows, labels)

    def _labels(self, origin: Origin) -> Words:
        """Return the labels of samples as numbers that are written as varints."""
        pairs = [(key, getattr(origin, key)) for key in _LABELS]
        pairs += [(key, text) for key, text in origin.labels if key not in _LABELS]
        words = list[int]()
        for key, text in pairs:
            if text:
                numbers = [(1, self._text(key)), (2, self._text(text))]
                label = [word for tag, number in numbers if number for word in (tag << 3 | _VARINT, number)]
                words += [3 << 3 | _LENGTH, sum(map(len, map(varint, label))), *label]
        return np.array(words, np.uint64)

    def _code(self, frames: FrameTable, main: str) -> Iterator[bytes]:
        """Yield mappings, locations and functions."""
        image, images = self._images(frames, main)
        for number, (name, build_id) in enumerate(images, 1):
            names = number_field(5, self._text(name)) + number_field(6, self._text(build_id))
            known = b"".join(number_field(key, 1) for key in (7, 8, 9))
            yield bytes_field(3, number_field(1, number) + names + known)
        function, at = _functions(frames)
        address = np.array([number & _WORD for number in frames.addresses], np.uint64)
        for rows in _slices(len(frames)):
            numbers = np.arange(len(frames))[rows] + 1
            own = _Columns.of({1: numbers, 2: image[rows], 3: address[rows]})
            line = _Columns.of({1: function[rows], 2: frames.lines[rows, 1]})
            yield varints(own.beside(line.within(4, function[rows] > 0)).within(4).words())
        texts = [self._text(frames.texts[own]) for own in frames.names[at][:, [0, 3]].ravel().tolist()]
        name_and_file = np.array(texts, np.int64).reshape(-1, 2)
        for rows in _slices(len(at)):
            numbers, begin = np.arange(len(at))[rows] + 1, frames.lines[at[rows], 0]
            name, file = name_and_file[rows].T
            own = _Columns.of({1: numbers, 2: name, 3: name, 4: file, 5: begin})
            yield varints(own.within(5).words())

    def _images(self, frames: FrameTable, main: str) -> tuple[Ints, list[tuple[str, str]]]:
        """Return the number of each frame's image, 0 if it is unknown, and images from 1, the program's own first."""
        own, at = _numbered(frames.names[:, 1], frames.names[:, 2])
        named = [(frames.texts[name], frames.texts[build_id]) for name, build_id in frames.names[at][:, 1:3].tolist()]
        known = [place for place, image in enumerate(named) if image != ("", "")]
        known.sort(key=lambda place: named[place][0] != main)
        number = np.zeros(len(named), np.int64)
        number[known] = np.arange(len(known)) + 1
        return number[own], [named[place] for place in known]

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Numbers that are written as varints, a message a row."""

    table: Words
    """(n, columns)"""
    written: Bools
    """(n, columns) which of them are."""

    @classmethod
    def of(cls, numbers: Mapping[int, Ints | Words]) -> "_Columns":
        """Return fields of numbers, (n,) each; 0 is the default and not written."""
        values = np.column_stack([number.astype(np.uint64) for number in numbers.values()])
        table = np.empty((len(values), 2 * len(numbers)), np.uint64)
        table[:, ::2], table[:, 1::2] = [tag << 3 | _VARINT for tag in numbers], values
        return cls(table, np.repeat(values > 0, 2, axis=1))

    def beside(self, other: "_Columns") -> "_Columns":
        """Return each message with the fields of another after its own."""
        return _Columns(np.hstack([self.table, other.table]), np.hstack([self.written, other.written]))

    def within(self, tag: int, only: Bools | bool = True) -> "_Columns":
        """Return messages of one field that holds these, or of none."""
        size = (varint_sizes(self.table) * self.written).sum(axis=1)
        head = np.column_stack([np.full(len(size), tag << 3 | _LENGTH), size]).astype(np.uint64)
        needed = np.broadcast_to(np.reshape(only, (-1, 1)), head.shape)
        return _Columns(np.hstack([head, self.table]), np.hstack([needed, self.written & needed[:, :1]]))

    def words(self) -> Words:
        """Return what is written, row by row."""
        return self.table[self.written]


def _messages_of_samples(table: SampleTable, rows: slice, labels: Sequence[Words]) -> bytes:
    """Return samples; `labels` are those of each origin."""
    frames, depth = table.frames_of(rows).astype(np.uint64) + np.uint64(1), table.depths[table.stack[rows]]
    amounts, origin = _words(table.amounts[rows]), table.origin[rows]
    label = np.concatenate([labels[at] for at in origin.tolist()])
    of_label, values = np.array([len(words) for words in labels])[origin], np.full(len(depth), amounts.shape[1])
    parts = [
        _packed(1, frames, depth),
        _packed(2, amounts.ravel(), values),
        (label, of_label),
    ]
    size = sum((_sums(varint_sizes(words), lengths) for words, lengths in parts), start=np.zeros(len(depth), np.int64))
    head = np.column_stack([np.full(len(size), 2 << 3 | _LENGTH), size]).astype(np.uint64)
    return varints(_joined([(head.ravel(), np.full(len(size), 2)), *parts]))


def _packed(tag: int, words: Words, lengths: Ints) -> tuple[Words, Ints]:
    """Return packed fields of so many numbers each, nothing where there are none, and how many numbers they take."""
    size, some = _sums(varint_sizes(words), lengths), lengths > 0
    head = np.column_stack([np.full(int(some.sum()), tag << 3 | _LENGTH), size[some]]).astype(np.uint64)
    return _joined([(head.ravel(), 2 * some), (words, lengths)]), lengths + 2 * some


def _joined(parts: Sequence[tuple[Words, Ints]]) -> Words:
    """Return the rows of several parts beside each other; a part is numbers, row by row, and how many each row has."""
    lengths = sum((lengths for _, lengths in parts), start=np.zeros(len(parts[0][1]), np.int64))
    at, joined = np.cumsum(lengths) - lengths, np.empty(int(lengths.sum()), np.uint64)
    for words, own in parts:
        joined[np.arange(len(words)) + np.repeat(at - (np.cumsum(own) - own), own)] = words
        at = at + own
    return joined


def _sums(numbers: Ints, lengths: Ints) -> Ints:
    """Return the sums of rows of so many numbers."""
    last = np.cumsum(lengths)
    before = np.append(0, np.cumsum(numbers))
    return np.asarray(before[last] - before[last - lengths])


def _words(amounts: Amounts) -> Words:
    """Return whole numbers modulo 2⁶⁴, as negative ones are written."""
    return (amounts & _WORD if amounts.dtype == object else amounts).astype(np.uint64)


def _functions(frames: FrameTable) -> tuple[Ints, Ints]:
    """Return the number of each frame's function, from 1; 0 if it has none; and of each a frame that has it."""
    named = np.flatnonzero(np.array([bool(text) for text in frames.texts])[frames.names[:, 0]])
    own, at = _numbered(frames.names[named, 0], frames.names[named, 3], frames.lines[named, 0])
    function = np.zeros(len(frames), np.int64)
    function[named] = own + 1
    return function, named[at]


def _numbered(*columns: Ints) -> tuple[Ints, Ints]:
    """Return numbers of rows in the order in which they come, equal ones as one; and where each is first."""
    number, at = np.zeros(len(columns[0]), np.int64), np.zeros(0, np.int64)
    for column in columns:
        values, own = np.unique(column, return_inverse=True)
        _, at, number = np.unique(number * max(1, len(values)) + own, return_index=True, return_inverse=True)
    order = np.argsort(at)
    rank = np.empty(len(at), np.int64)
    rank[order] = np.arange(len(at))
    return rank[number], at[order]


def _slices(rows: int) -> Iterator[slice]:
    return (slice(first, first + _ROWS_AT_ONCE) for first in range(0, rows, _ROWS_AT_ONCE))
