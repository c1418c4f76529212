"""Profiles in pprof's format, profile.proto: read with every reference checked, written so that all tools read them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.profiling.formats.columns import FrameTable, numbered
from analysis.profiling.formats.foreign import ForeignProfile, Measure
from analysis.profiling.formats.pprof_samples import IdIndex, Locations, SampleReader, Texts, signed
from analysis.profiling.formats.scan import Messages, begin_end, blocks, scanned, span
from analysis.profiling.formats.signs import parted_by_sign
from analysis.profiling.formats.wire import Shape, Wire
from analysis.tables.bytes import unpacked
from analysis.tables.faults import Faults, plain
from models.arrays import Ints, UInts

_PROFILE = Shape(
    "profile", frozenset({7, 8, 9, 10, 12, 14}), repeated=frozenset({13}), lengths=frozenset({1, 2, 3, 4, 5, 6, 11})
)
_TYPE = Shape("sample_type", frozenset({1, 2}))
_MAPPING = Shape("mapping", frozenset({1, 2, 3, 4, 5, 6}))
_LOCATION = Shape("location", frozenset({1, 2, 3}), lengths=frozenset({4}))
_LINE = Shape("line", frozenset({1, 2}))
_FUNCTION = Shape("function", frozenset({1, 2, 3, 4, 5}))
_LAST_LINE = np.uint64((1 << 31) - 1)
_NS = 1e9
_OUTSIDE, _INSIDE, _BEYOND = range(3)
"""Whether the place of a frame in its image's file is known, and whether 64 bits hold it."""
_FRAME_COLUMNS = 9
"""Columns of `_frame_rows`."""


def read_pprof(data: bytes, name: str = "profile.pb") -> ForeignProfile:
    """Read a profile in pprof's format (google/pprof, proto/profile.proto), gzipped or plain.

    Every sample type becomes a measure. Labels become labels of origins; those that name the application, process,
    machine, platform, data centre or kernel also say that. A label of over a thousand values is left out, with a note.
    Inlined functions become frames of their own.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults
    """
    if data.startswith(b"\x1f\x8b"):
        data = unpacked(data, name)
    wire = Wire(data, name)
    return _ProfileReader(wire, scanned(wire, _PROFILE, span(0, len(data)))).profile()


@dataclass(frozen=True, slots=True)
class _Mappings:
    """Parts of images in memory, and one that nothing is known of in the end."""

    places: IdIndex
    image: Ints
    """Code of the text, as of the build id."""
    build_id: Ints
    start: UInts
    end: UInts
    offset: UInts


@dataclass(frozen=True, slots=True)
class _Functions:
    """Functions, and one that nothing is known of in the end."""

    places: IdIndex
    name: Ints
    """Code of the text, as of the file."""
    file: Ints
    line: Ints


@dataclass(slots=True)
class _ProfileReader:
    wire: Wire
    root: Messages
    faults: Faults = field(init=False)
    texts: Texts = field(init=False)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.faults = Faults(self.wire.name)
        self.texts = Texts(list(map(self._decoded, self.root.values(6).tolist())), self.faults)

    def profile(self) -> ForeignProfile:
        """Return the profile, or raise all faults."""
        if self.texts.texts and self.texts.texts[0]:
            self.faults.tell("string_table", "should begin with an empty string", self.texts.texts[0])
        measures = self._measures()
        mappings = self._mappings()
        functions, places = self._functions()
        frames, locations = self._locations(mappings, functions, places)
        if not measures:
            self.faults.tell("sample_type", "should be at least one", "none")
        self.faults.refuse()
        reader = SampleReader(self.wire, self.texts, locations, len(measures), self.faults)
        samples, origins = reader.read(self.root.values(2))
        comments = tuple(self.texts.text(at, "comment", 0) for at in self.root.values(13).tolist())
        default = self.texts.text(self._number(14), "default_sample_type", 0)
        self.faults.refuse()
        profile = ForeignProfile(
            measures,
            frames,
            samples,
            origins,
            name=self.wire.name,
            main=self.texts.texts[mappings.image[0]] if len(mappings.image) > 1 else "",
            start_s=signed(self._number(9)) / _NS if self._number(9) else float("nan"),
            length_s=max(signed(self._number(10)), 0) / _NS,
            default=default,
            comments=comments,
            notes=(*self.notes, *reader.notes(), *self._not_applied()),
        )
        return parted_by_sign(profile)

    def _number(self, key: int) -> int:
        return int(self.root.number(key)[0])

    def _measures(self) -> tuple[Measure, ...]:
        """Return what the values count; the one of the period's type gets the period."""
        named = self._named(self.root.values(1))
        sampled = self._named(self.root.values(11)[-1:])
        period = signed(self._number(12))
        return tuple(replace_period(measure, period) if measure in sampled else measure for measure in named)

    def _named(self, spans: UInts) -> list[Measure]:
        types = scanned(self.wire, _TYPE, spans)
        rows = zip(types.number(1).tolist(), types.number(2).tolist(), types.offsets().tolist(), strict=True)
        text = self.texts.text
        return [Measure(text(event, _TYPE.name, at), text(unit, _TYPE.name, at)) for event, unit, at in rows]

    def _tell_of(self, messages: Messages, texts: Sequence[int], *, ids: bool = True) -> None:
        """Tell the faults of messages whose ids are 0 or were there before, or whose texts are none."""
        wrong = IdIndex.of(messages.number(1)).repeated if ids else np.zeros(len(messages), np.bool_)
        beyond = [self.texts.beyond(messages.number(key)) for key in texts]
        offsets = messages.offsets()
        for at in np.flatnonzero(np.logical_or.reduce([wrong, *beyond])).tolist():
            if wrong[at]:
                self._tell_of_id(messages, at, int(offsets[at]))
            for key in texts:
                self.texts.text(int(messages.number(key)[at]), messages.shape.name, int(offsets[at]))

    def _tell_of_id(self, messages: Messages, at: int, offset: int) -> None:
        number = int(messages.number(1)[at])
        self.faults.tell(f"{messages.shape.name}.id", "should be an id of its own, not 0", number, byte=offset)

    def _mappings(self) -> _Mappings:
        messages = scanned(self.wire, _MAPPING, self.root.values(3))
        self._tell_of(messages, (5, 6))
        image, build_id = (np.append(self.texts.code(messages.number(key)), 0) for key in (5, 6))
        start, end, offset = (np.append(messages.number(key), np.uint64(0)) for key in (2, 3, 4))
        return _Mappings(IdIndex.of(messages.number(1)), image, build_id, start, end, offset)

    def _functions(self) -> tuple[_Functions, IdIndex]:
        """Return the functions, and the places of locations.

        Profilers of .NET write no ids of functions; each location then is of the function of its own place, if there
        are as many of both and locations count from 1.
        """
        messages = scanned(self.wire, _FUNCTION, self.root.values(5))
        ids, count = messages.number(1), len(messages)
        locations = self._ids_of_locations()
        if count and not ids.any() and np.array_equal(locations, np.arange(1, count + 1, dtype=np.uint64)):
            self.notes.append("functions have no ids: numbered in their order, as profilers of .NET mean it")
            ids = locations
            self._tell_of(messages, (2, 3, 4), ids=False)
        else:
            self._tell_of(messages, (2, 3, 4))
        name, system, file = (self.texts.code(messages.number(key)) for key in (2, 3, 4))
        named = np.append(np.where(name == 0, system, name), 0)
        lines = np.append(_lines(messages.number(5)), 0)
        return _Functions(IdIndex.of(ids), named, np.append(file, 0), lines), IdIndex.of(locations)

    def _ids_of_locations(self) -> UInts:
        spans = self.root.values(4)
        return np.concatenate(
            [
                np.empty(0, np.uint64),
                *(scanned(self.wire, _LOCATION, spans[block]).number(1) for block in blocks(spans)),
            ]
        )

    def _locations(self, mappings: _Mappings, functions: _Functions, places: IdIndex) -> tuple[FrameTable, Locations]:
        """Return the frames that differ, and those of each location, the innermost inlined function first."""
        known: dict[bytes, int] = {}
        numbers, depths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        spans, wrong = self.root.values(4), places.repeated
        for block in blocks(spans):
            messages = scanned(self.wire, _LOCATION, spans[block])
            lines = scanned(self.wire, _LINE, messages.values(4))
            mapping = np.where(messages.number(2) == 0, -1, mappings.places.find(messages.number(2)))
            function = functions.places.find(lines.number(1))
            self._tell_of_locations(messages, lines, (wrong[block], mapping, function))
            depth = np.maximum(messages.counts(4), 1)
            rows = _frame_rows(messages, lines, mappings, functions, (mapping, function))
            numbers.append(
                np.array(numbered(rows.tobytes(), np.full(len(rows), rows.itemsize * _FRAME_COLUMNS), known), np.int32)
            )
            depths.append(depth)
        depth = np.concatenate(depths)
        return self._frames(known), Locations(places, np.concatenate(numbers), depth)

    def _tell_of_locations(
        self, messages: Messages, lines: Messages, checks: tuple[NDArray[np.bool_], Ints, Ints]
    ) -> None:
        """Tell the faults of locations: of their ids, of their mappings, and of the functions of their lines."""
        wrong, mapping, function = checks
        unknown = (mapping < 0) & (messages.number(2) != 0)
        last = np.cumsum(messages.counts(4))
        owner = np.repeat(np.arange(len(messages)), messages.counts(4))
        faulty = wrong | unknown
        faulty[owner[function < 0]] = True
        offsets, counts, mappings = messages.offsets(), messages.counts(4), messages.number(2)
        for at in np.flatnonzero(faulty).tolist():
            offset = int(offsets[at])
            if wrong[at]:
                self._tell_of_id(messages, at, offset)
            if unknown[at]:
                number = int(mappings[at])
                self.faults.tell("location.mapping_id", "should be a mapping's id", number, byte=offset)
            mine = slice(int(last[at] - counts[at]), int(last[at]))
            for number in lines.number(1)[mine][function[mine] < 0].tolist():
                self.faults.tell("location.line.function_id", "should be a function's id", number, byte=offset)

    def _frames(self, known: dict[bytes, int]) -> FrameTable:
        rows = np.frombuffer(b"".join(known), np.int64).reshape(-1, _FRAME_COLUMNS)
        addresses, low = (rows[:, at].astype(np.uint64).tolist() for at in (6, 7))
        file_addresses = [
            -1 if state == _OUTSIDE else address + ((state == _BEYOND) << 64)
            for address, state in zip(low, rows[:, 8].tolist(), strict=True)
        ]
        return FrameTable(tuple(self.texts.texts) or ("",), rows[:, :4], rows[:, 4:6], addresses, file_addresses)

    def _not_applied(self) -> list[str]:
        fields = ((7, "drop_frames"), (8, "keep_frames"))
        return [f"{which} is not applied: every frame is kept" for key, which in fields if self._number(key)]

    def _decoded(self, place: int) -> str:
        begin, end = begin_end(place)
        return plain(self.wire.data[begin:end].decode(errors="replace"))


def _frame_rows(
    messages: Messages, lines: Messages, mappings: _Mappings, functions: _Functions, places: tuple[Ints, Ints]
) -> Ints:
    """Return what each frame of locations says, a row a frame, in the order of the file.

    Columns are the codes of function, image, build id and file, the function's line, the line, the address, the place
    in the image's file and whether that is known: of frames that no function names.
    """
    mapping, function = places
    depth = np.maximum(messages.counts(4), 1)
    location = np.repeat(np.arange(len(messages)), depth)
    named = messages.counts(4)[location] > 0
    part, address = mapping[location], messages.number(3)[location]
    rows = np.zeros((len(location), _FRAME_COLUMNS), np.int64)
    rows[named, 0], rows[named, 3] = functions.name[function], functions.file[function]
    rows[:, 1], rows[:, 2] = mappings.image[part], mappings.build_id[part]
    rows[named, 4], rows[named, 5] = functions.line[function], _lines(lines.number(2))
    rows[:, 6] = address.astype(np.int64)
    inside = ~named & (part >= 0) & (mappings.start[part] <= address) & (address < mappings.end[part])
    loaded = address - mappings.start[part] + mappings.offset[part]
    rows[inside, 7] = loaded[inside].astype(np.int64)
    rows[inside, 8] = np.where(loaded < mappings.offset[part], _BEYOND, _INSIDE)[inside]
    return rows


def replace_period(measure: Measure, period: int) -> Measure:
    """Return a measure with the period of its samples; one that is not positive is no period.

    Examples
    --------
    >>> replace_period(Measure("cpu", "nanoseconds"), 10_000_000).period, replace_period(Measure("cpu"), -1).period
    (10000000, 1)
    """
    return measure._replace(period=max(period, 1))


def _lines(numbers: UInts) -> Ints:
    """Return lines that tables can hold; 0, unknown, for those that no file has."""
    return np.where(numbers <= _LAST_LINE, numbers, 0).astype(np.int64)
