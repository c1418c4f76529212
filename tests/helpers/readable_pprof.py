"""The readable twin of the reader of pprof's format: a message after another, a sample after another."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from analysis.profiling.formats import pprof_samples
from analysis.profiling.formats.foreign import (
    DEEPEST,
    LARGEST,
    ForeignProfile,
    Frame,
    FrameBudget,
    Loaded,
    Measure,
    Origin,
    Sample,
)
from analysis.profiling.formats.pprof import replace_period
from analysis.profiling.formats.signs import parted_by_sign
from analysis.profiling.formats.wire import Message, Shape, Wire
from analysis.tables.bytes import unpacked
from analysis.tables.faults import Faults, plain, refusal

_T = TypeVar("_T")
_PROFILE = Shape(
    "profile", frozenset({7, 8, 9, 10, 12, 14}), repeated=frozenset({13}), lengths=frozenset({1, 2, 3, 4, 5, 6, 11})
)
_TYPE = Shape("sample_type", frozenset({1, 2}))
_SAMPLE = Shape("sample", repeated=frozenset({1, 2}), lengths=frozenset({3}))
_LABEL = Shape("label", frozenset({1, 2, 3, 4}))
_MAPPING = Shape("mapping", frozenset({1, 2, 3, 4, 5, 6}))
_LOCATION = Shape("location", frozenset({1, 2, 3}), lengths=frozenset({4}))
_LINE = Shape("line", frozenset({1, 2}))
_FUNCTION = Shape("function", frozenset({1, 2, 3, 4, 5}))
_NUMBERED = ((5, _FUNCTION), (4, _LOCATION))
_LAST_LINE = (1 << 31) - 1
_NS = 1e9
_REMEMBERED = 100_000
_NAMED = 20
Labels = tuple[tuple[str, str], ...]


def read_pprof_message_by_message(data: bytes, name: str = "profile.pb") -> ForeignProfile:
    """Read a profile in pprof's format, gzipped or plain: what `read_pprof` should return or raise."""
    if data.startswith(b"\x1f\x8b"):
        data = unpacked(data, name)
    wire = Wire(data, name)
    return _MessageReader(wire, wire.message(_PROFILE), Faults(name)).profile()


@dataclass(slots=True)
class _MessageReader:
    wire: Wire
    root: Message
    faults: Faults
    texts: list[str] = field(default_factory=list)
    frames: dict[Frame, int] = field(default_factory=dict)
    remembered: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    """Labels that were read."""
    values: dict[str, set[str]] = field(default_factory=dict)
    """Values of each label."""
    left_out: dict[str, None] = field(default_factory=dict)
    """Labels with too many values, in the order of the file."""
    notes: list[str] = field(default_factory=list)

    def profile(self) -> ForeignProfile:
        """Return the profile, or raise all faults."""
        self.texts = [self._decoded(*part) for part in self.root.lengths.get(6, [])]
        if self.texts and self.texts[0]:
            self.faults.tell("string_table", "should begin with an empty string", self.texts[0])
        measures = self._measures()
        images = self._by_id(3, _MAPPING, self._image)
        functions = self._functions()
        locations = self._by_id(4, _LOCATION, lambda message: self._location(message, images, functions))
        if not measures:
            self.faults.tell("sample_type", "should be at least one", "none")
        self.faults.refuse()
        samples, origins = self._samples(locations, len(measures))
        comments = tuple(self._text(at, "comment", 0) for at in self.root.numbers.get(13, []))
        default = self._text(self.root.number(14), "default_sample_type", 0)
        self.faults.refuse()
        profile = ForeignProfile(
            measures,
            tuple(self.frames),
            samples,
            origins or (Origin(),),
            name=self.wire.name,
            main=next(iter(images.values()), Loaded()).image,
            start_s=_signed(self.root.number(9)) / _NS if self.root.number(9) else float("nan"),
            length_s=max(_signed(self.root.number(10)), 0) / _NS,
            default=default,
            comments=comments,
            notes=self._notes(),
        )
        return parted_by_sign(profile)

    def _messages(self, key: int, shape: Shape) -> Iterator[Message]:
        for begin, end in self.root.lengths.get(key, []):
            yield self.wire.message(shape, begin, end)

    def _measures(self) -> tuple[Measure, ...]:
        """Return what the values count; the one of the period's type gets the period."""
        named = [self._measure(message) for message in self._messages(1, _TYPE)]
        spans = self.root.lengths.get(11)
        if not spans:
            return tuple(named)
        sampled = self._measure(self.wire.message(_TYPE, *spans[-1]))
        period = _signed(self.root.number(12))
        return tuple(replace_period(measure, period) if measure == sampled else measure for measure in named)

    def _measure(self, message: Message) -> Measure:
        event, unit = (self._text(message.number(key), "sample_type", message.offset) for key in (1, 2))
        return Measure(event, unit)

    def _by_id(self, key: int, shape: Shape, read: Callable[[Message], _T]) -> dict[int, _T]:
        """Return the messages of a field, read, by their ids."""
        messages: dict[int, _T] = {}
        for message in self._messages(key, shape):
            number = message.number(1)
            if not number or number in messages:
                problem = "should be an id of its own, not 0"
                self.faults.tell(f"{shape.name}.id", problem, number, byte=message.offset)
            messages[number] = read(message)
        return messages

    def _functions(self) -> dict[int, tuple[str, str, int]]:
        """Return the functions by their ids.

        Profilers of .NET write no ids of functions; each location then is of the function of its own place, if there
        are as many of both and locations count from 1.
        """
        ids = [[message.number(1) for message in self._messages(key, shape)] for key, shape in _NUMBERED]
        if ids[0] and not any(ids[0]) and ids[1] == list(range(1, len(ids[0]) + 1)):
            self.notes.append("functions have no ids: numbered in their order, as profilers of .NET mean it")
            return {at: self._function(message) for at, message in enumerate(self._messages(5, _FUNCTION), 1)}
        return self._by_id(5, _FUNCTION, self._function)

    def _image(self, message: Message) -> Loaded:
        file, build_id = (self._text(message.number(key), "mapping", message.offset) for key in (5, 6))
        start, end, offset = (message.number(key) for key in (2, 3, 4))
        return Loaded(file, build_id, start, end, offset)

    def _function(self, message: Message) -> tuple[str, str, int]:
        name, system, file = (self._text(message.number(key), "function", message.offset) for key in (2, 3, 4))
        return name or system, file, _line(message.number(5))

    def _location(
        self, message: Message, images: Mapping[int, Loaded], functions: Mapping[int, tuple[str, str, int]]
    ) -> tuple[int, ...]:
        """Return a location's frames, the innermost inlined function first."""
        place, mapping = message.offset, message.number(2)
        if mapping and mapping not in images:
            self.faults.tell("location.mapping_id", "should be a mapping's id", mapping, byte=place)
        loaded = images.get(mapping, Loaded())
        address = message.number(3)
        lines = [self.wire.message(_LINE, *part) for part in message.lengths.get(4, [])]
        frames = []
        for line in lines:
            if line.number(1) not in functions:
                self.faults.tell("location.line.function_id", "should be a function's id", line.number(1), byte=place)
                continue
            function, file, begin = functions[line.number(1)]
            at = _line(line.number(2))
            frames.append(Frame(function, loaded.image, loaded.build_id, file, begin, at, address))
        if not lines:
            frames.append(Frame("", loaded.image, loaded.build_id, "", 0, 0, address, loaded.file_address(address)))
        return tuple(self.frames.setdefault(frame, len(self.frames)) for frame in frames)

    def _samples(
        self, locations: Mapping[int, tuple[int, ...]], measures: int
    ) -> tuple[tuple[Sample, ...], tuple[Origin, ...]]:
        """Return the samples and their origins, without labels of which too many values were read."""
        if (values := len(self.root.lengths.get(2, [])) * measures) > pprof_samples.MOST_AMOUNTS:
            problem = f"should have at most {pprof_samples.MOST_AMOUNTS} values in all"
            raise refusal(self.wire.name, "samples", problem, values)
        rows = []
        labelled: dict[Labels, int] = {}
        stacks: dict[tuple[int, ...], tuple[int, ...]] = {}
        budget = FrameBudget(self.wire.name)
        for message in self._messages(2, _SAMPLE):
            place = message.offset
            ids = tuple(message.numbers.get(1, []))
            if ids not in stacks:
                stacks[ids] = self._stack(ids, locations, place)
                budget.take(len(stacks[ids]), byte=place)
            values = tuple(map(_signed, message.numbers.get(2, [])))
            if len(values) != measures:
                self.faults.tell("sample.value", f"should be {measures}, one a sample type", len(values), byte=place)
            elif min(values) < -LARGEST:
                self.faults.tell("sample.value", f"should be from {-LARGEST} to {LARGEST}", min(values), byte=place)
            labels = tuple(label for part in message.lengths.get(3, []) if (label := self._label(*part)) is not None)
            if labels not in labelled:
                labelled[labels] = len(labelled)
                budget.take(0, byte=place)
            rows.append((stacks[ids], values, labelled[labels]))
        origins: dict[Origin, int] = {}
        numbers = [origins.setdefault(self._origin(labels), len(origins)) for labels in labelled]
        return tuple(Sample(stack, values, numbers[at]) for stack, values, at in rows), tuple(origins)

    def _stack(self, ids: tuple[int, ...], locations: Mapping[int, tuple[int, ...]], place: int) -> tuple[int, ...]:
        missing = [location for location in ids if location not in locations]
        for location in missing[:1]:
            self.faults.tell("sample.location_id", "should be a location's id", location, byte=place)
        if missing:
            return ()
        depth = sum(len(locations[location]) for location in ids)
        if depth > DEEPEST:
            self.faults.tell("sample", f"should be at most {DEEPEST} frames deep", depth, byte=place)
            return ()
        return tuple(frame for location in ids for frame in locations[location])

    def _label(self, begin: int, end: int) -> tuple[str, str] | None:
        """Return a label's name and value; none of one that is left out."""
        raw = self.wire.data[begin:end]
        label = self.remembered.get(raw)
        if label is None:
            label = self._read_label(begin, end)
            if len(self.remembered) < _REMEMBERED:
                self.remembered[raw] = label
            values = self.values.setdefault(label[0], set())
            values.add(label[1])
            if len(values) > pprof_samples.MOST_LABEL_VALUES:
                self.left_out[label[0]] = None
                values.clear()
        return None if label[0] in self.left_out else label

    def _read_label(self, begin: int, end: int) -> tuple[str, str]:
        message = self.wire.message(_LABEL, begin, end)
        key, text, unit = (self._text(message.number(at), "label", message.offset) for at in (1, 2, 4))
        if message.number(2):
            return key, text
        number = str(_signed(message.number(3)))
        return key, f"{number} {unit}" if unit else number

    def _origin(self, labels: Labels) -> Origin:
        """Return where samples with such labels were taken; a label that is there twice has both values."""
        known: dict[str, str] = {}
        values: dict[str, list[str]] = {}
        for key, text in labels:
            if key in self.left_out:
                continue
            values.setdefault(key, []).append(text)
            if key in pprof_samples._LABELS:
                known.setdefault(pprof_samples._LABELS[key], text)
        return Origin(**known, labels=tuple((key, ", ".join(values[key])) for key in sorted(values)))

    def _notes(self) -> tuple[str, ...]:
        names = ", ".join(list(self.left_out)[:_NAMED])
        notes = (
            [f"labels of over {pprof_samples.MOST_LABEL_VALUES:,} values are left out: {names}"]
            if self.left_out
            else []
        )
        for key, which in ((7, "drop_frames"), (8, "keep_frames")):
            if self.root.number(key):
                notes.append(f"{which} is not applied: every frame is kept")
        return (*self.notes, *notes)

    def _decoded(self, begin: int, end: int) -> str:
        return plain(self.wire.data[begin:end].decode(errors="replace"))

    def _text(self, at: int, what: str, offset: int) -> str:
        if at < len(self.texts):
            return self.texts[at]
        if at:
            self.faults.tell(what, f"should be an index of the {len(self.texts)} strings", at, byte=offset or None)
        return ""


def _line(number: int) -> int:
    """Return a line that tables can hold; 0, unknown, for one that no file has."""
    return number if number <= _LAST_LINE else 0


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
