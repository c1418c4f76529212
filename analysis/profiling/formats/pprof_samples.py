"""Samples of profiles in pprof's format, block by block; every stack and label that differs is looked at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.profiling.formats.columns import SampleTable, numbered
from analysis.profiling.formats.foreign import DEEPEST, LARGEST, STACK_FRAMES, FrameBudget, Origin
from analysis.profiling.formats.scan import Messages, begin_end, blocks, scanned_until
from analysis.profiling.formats.wire import Shape, Wire
from analysis.profiling.frames import AnyInts
from analysis.tables.faults import Faults, refusal
from models.arrays import Ints, UInts

_SAMPLE = Shape("sample", repeated=frozenset({1, 2}), lengths=frozenset({3}))
_LABEL = Shape("label", frozenset({1, 2, 3, 4}))
_LABELS: Mapping[str, str] = {
    "application": "application",
    "job": "application",
    "comm": "application",
    "process": "process",
    "pid": "process",
    "machine": "machine",
    "hostname": "machine",
    "platform": "platform",
    "datacentre": "datacentre",
    "datacenter": "datacentre",
    "kernel": "kernel",
}
"""Labels that say where a sample was taken, and what they say."""
MOST_LABEL_VALUES = 1000
"""Values of a label beyond which it is left out: one that names each sample, such as a span, is no dimension."""
MOST_AMOUNTS = 1 << 23
"""Most values of all samples of a file, a value a sample type."""
_REMEMBERED = 100_000
_MOST_NAMED = 20
_NEVER = np.iinfo(np.int64).max
_WIDTH = 8
"""Bytes of an id."""


@dataclass(slots=True)
class Texts:
    """The string table; equal texts have the code of the first."""

    texts: list[str]
    faults: Faults
    codes: Ints = field(init=False)

    def __post_init__(self) -> None:
        first: dict[str, int] = {}
        self.codes = np.array([first.setdefault(text, at) for at, text in enumerate(self.texts)] or [0], np.int64)

    def text(self, at: int, what: str, offset: int) -> str:
        """Return a text; tell the fault of an index that none has."""
        if at < len(self.texts):
            return self.texts[at]
        if at:
            self.faults.tell(what, f"should be an index of the {len(self.texts)} strings", at, byte=offset or None)
        return ""

    def beyond(self, places: UInts) -> NDArray[np.bool_]:
        """Return which indices no text has."""
        outside: NDArray[np.bool_] = (places >= np.uint64(len(self.texts))) & (places != 0)
        return outside

    def code(self, places: UInts) -> Ints:
        """Return the codes of texts; that of the empty one for indices that none has."""
        return self.codes[np.where(self.beyond(places), 0, places).astype(np.int64)]


@dataclass(frozen=True, slots=True)
class IdIndex:
    """Where messages with ids are.

    Examples
    --------
    >>> places = IdIndex.of(np.array([7, 9, 7, 0], np.uint64))
    >>> places.find(np.array([9, 8], np.uint64)).tolist(), places.repeated.tolist()
    ([1, -1], [False, False, True, True])
    """

    ids: UInts
    """In rising order."""
    places: Ints
    repeated: NDArray[np.bool_]
    """Of each message, whether its id is 0 or was there before."""

    @classmethod
    def of(cls, ids: UInts) -> "IdIndex":
        """Return where ids are."""
        places = np.argsort(ids, kind="stable")
        ordered = ids[places]
        repeated = ids == 0
        repeated[places[1:][ordered[1:] == ordered[:-1]]] = True
        return cls(ordered, places, repeated)

    def find(self, wanted: UInts) -> Ints:
        """Return the place of each id; −1 where there is none."""
        if not len(self.ids):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, self.places[at], -1)


@dataclass(frozen=True, slots=True)
class Locations:
    """Frames of locations, those of one after those of another."""

    places: IdIndex
    frames: NDArray[np.int32]
    depths: Ints
    """How many each has."""


@dataclass(slots=True)
class _Labels:
    """Labels that were read, and those with too many values."""

    texts: Texts
    numbers: dict[bytes, int] = field(default_factory=dict)
    """Of a label's bytes its place in `of_bytes`."""
    of_bytes: list[int] = field(default_factory=list)
    """Number of the label; −1: it is left out."""
    names: list[tuple[str, str]] = field(default_factory=list)
    """Name and value of each label."""
    until: list[int] = field(default_factory=list)
    """From which occurrence on each is left out."""
    values: dict[str, dict[str, int]] = field(default_factory=dict)
    """Values of a name to the numbers of labels."""
    left_out: dict[str, None] = field(default_factory=dict)
    """Names with too many values, in the order of the file."""
    occurrences: int = 0
    faulty: list[tuple[int, int, int]] = field(default_factory=list)
    """Occurrence, index of a text that there is not, and byte."""

    def read(self, wire: Wire, spans: UInts) -> tuple[Ints, int]:
        """Return labels' numbers, −1 where one is left out, and how many come before the first that is damaged."""
        if len(self.numbers) > _REMEMBERED:
            self.numbers, self.of_bytes = {}, []
        before, data = len(self.of_bytes), wire.data
        places = (begin_end(place) for place in spans.tolist())
        at = np.array([self.numbers.setdefault(data[b:e], len(self.numbers)) for b, e in places], np.int64)
        new = newly(at, before)
        messages, whole = scanned_until(wire, _LABEL, spans[new])
        columns = [messages.number(key).tolist() for key in (1, 2, 4, 3)]
        for occurrence, offset, *fields in zip(
            new[:whole].tolist(), messages.offsets().tolist(), *columns, strict=True
        ):
            self.of_bytes.append(self._label(occurrence, offset, fields))
        self.of_bytes += [-1] * (len(new) - whole)
        numbers = np.array(self.of_bytes or [-1], np.int64)[at]
        late = np.arange(len(at)) + self.occurrences >= np.array([*self.until, _NEVER], np.int64)[numbers]
        self.occurrences += len(at)
        return np.where(late, -1, numbers), int(new[whole]) if whole < len(new) else len(spans)

    def _label(self, occurrence: int, offset: int, fields: Sequence[int]) -> int:
        """Return the number of a label that comes for the first time."""
        known = len(self.texts.texts)
        self.faulty += [(occurrence, at, offset) for at in fields[:3] if at >= known and at]
        key, text, unit = (self.texts.texts[at] if at < known else "" for at in fields[:3])
        if not fields[1]:
            text = f"{signed(fields[3])} {unit}" if unit else str(signed(fields[3]))
        if key in self.left_out:
            return -1
        values = self.values.setdefault(key, {})
        if text not in values and len(values) == MOST_LABEL_VALUES:
            self.left_out[key] = None
            for number in self.values.pop(key).values():
                self.until[number] = self.occurrences + occurrence
            return -1
        if text not in values:
            values[text] = len(self.names)
            self.names.append((key, text))
            self.until.append(_NEVER)
        return values[text]


@dataclass(slots=True)
class SampleReader:
    """Reads samples, or tells their faults."""

    wire: Wire
    texts: Texts
    locations: Locations
    measures: int
    faults: Faults
    budget: FrameBudget = field(init=False)
    labels: _Labels = field(init=False)
    stacks: dict[bytes, int] = field(default_factory=dict)
    """Ids of locations to the number of the stack."""
    sets: dict[bytes, int] = field(default_factory=dict)
    """Numbers of labels to that of all that a sample has."""
    parts: dict[str, list[AnyInts]] = field(default_factory=dict)
    """Columns of the samples, block by block."""

    def __post_init__(self) -> None:
        self.budget = FrameBudget(self.wire.name)
        self.labels = _Labels(self.texts)

    def read(self, spans: UInts) -> tuple[SampleTable, tuple[Origin, ...]]:
        """Return the samples and their origins, without labels of which too many values were read.

        Parameters
        ----------
        spans : of the samples' messages

        Raises
        ------
        FileError
            If a message is damaged, or stacks or values are too many; other faults are told.
        """
        values = len(spans) * self.measures
        if values > MOST_AMOUNTS:
            raise refusal(self.wire.name, "samples", f"should have at most {MOST_AMOUNTS} values in all", values)
        for block in blocks(spans):
            self._read_block(spans[block])
        origins: dict[Origin, int] = {}
        numbers = [origins.setdefault(self._origin(key), len(origins)) for key in self.sets]
        stack, frames, depths, sets = (self._column(name) for name in ("stack", "frames", "depths", "sets"))
        origin = np.array(numbers or [0], np.int64)[sets]
        amounts = self._column("amounts").reshape(-1, self.measures)
        chain = np.ones(len(stack), np.bool_)
        stack, depths = (column.astype(np.int64, copy=False) for column in (stack, depths))
        table = SampleTable(stack, frames.astype(np.int32, copy=False), depths, amounts, origin, chain)
        return table, tuple(origins) or (Origin(),)

    def notes(self) -> list[str]:
        """Return which labels are left out."""
        names = ", ".join(list(self.labels.left_out)[:_MOST_NAMED])
        return [f"labels of over {MOST_LABEL_VALUES:,} values are left out: {names}"] if names else []

    def _column(self, name: str) -> AnyInts:
        parts = self.parts.get(name, [])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _keep(self, **columns: AnyInts) -> None:
        for name, column in columns.items():
            self.parts.setdefault(name, []).append(column)

    def _read_block(self, spans: UInts) -> None:
        """Read samples: what ends the reading first, then what is told of each, then columns."""
        messages, whole = scanned_until(self.wire, _SAMPLE, spans)
        counts, ids = messages.counts(1), messages.values(1)
        before = len(self.stacks)
        stack = np.array(numbered(ids.tobytes(), counts * _WIDTH, self.stacks), np.int64)
        new = newly(stack, before)
        chosen = np.zeros(len(messages), np.bool_)
        chosen[new] = True
        stacks = _NewStacks.of(self.locations, counts[new], ids[np.repeat(chosen, counts)])
        labels, damaged = self.labels.read(self.wire, messages.values(3))
        sample = np.repeat(np.arange(len(messages)), messages.counts(3))
        labelled = np.bincount(sample[labels >= 0], minlength=len(messages))
        known = len(self.sets)
        sets = np.array(numbered(labels[labels >= 0].tobytes(), labelled * _WIDTH, self.sets), np.int64)
        self._within(messages, (new, stacks.costs), newly(sets, known), (spans, whole, sample, damaged))
        self._tell(messages, new, stacks, sample)
        depths, frames = stacks.frames(self.locations)
        self._keep(stack=stack, depths=depths, frames=frames, sets=sets)
        if (messages.counts(2) == self.measures).all():
            self._keep(amounts=messages.values(2).view(np.int64))

    def _within(
        self, messages: Messages, stacks: tuple[Ints, Ints], sets: Ints, damage: tuple[UInts, int, Ints, int]
    ) -> None:
        """Take what is new from the budget; raise what comes first: too much, or a message that is damaged."""
        spans, whole, sample, damaged = damage
        costs = np.zeros((len(messages), 2), np.int64)
        costs[stacks[0], 0], costs[sets, 1] = stacks[1], STACK_FRAMES
        taken = self.budget.take_many(costs.ravel())
        of_label = int(sample[damaged]) if damaged < len(sample) else len(spans)
        if taken < costs.size and taken < 2 * min(whole, of_label) + (of_label < whole):
            self.budget.take(int(costs.ravel()[taken]) - STACK_FRAMES, byte=int(messages.offsets()[taken // 2]))
        if of_label < whole:
            self.wire.message(_LABEL, *begin_end(int(messages.values(3)[damaged])))
        if whole < len(spans):
            self.wire.message(_SAMPLE, *begin_end(int(spans[whole])))

    def _tell(self, messages: Messages, new: Ints, stacks: "_NewStacks", sample: Ints) -> None:
        """Tell the faults of samples, one sample after another."""
        offsets, counts, values = messages.offsets(), messages.counts(2), messages.values(2).view(np.int64)
        owner = np.repeat(np.arange(len(messages)), counts)
        beyond = np.zeros(len(messages), np.bool_)
        beyond[owner[values < -LARGEST]] = True
        place = {int(at): number for number, at in enumerate(new.tolist()) if stacks.wrong[number]}
        labelled: dict[int, list[tuple[int, int]]] = {}
        for occurrence, index, offset in self.labels.faulty:
            labelled.setdefault(int(sample[occurrence]), []).append((index, offset))
        self.labels.faulty.clear()
        wrong = np.flatnonzero((counts != self.measures) | beyond).tolist()
        for at in sorted({*place, *labelled, *wrong}):
            offset, count = int(offsets[at]), int(counts[at])
            if at in place:
                self._tell_of_stack(stacks, place[at], offset)
            if count != self.measures:
                self.faults.tell("sample.value", f"should be {self.measures}, one a sample type", count, byte=offset)
            elif beyond[at]:
                problem = f"should be from {-LARGEST} to {LARGEST}"
                self.faults.tell("sample.value", problem, -LARGEST - 1, byte=offset)
            for index, byte in labelled.get(at, []):
                self.texts.text(index, "label", byte)

    def _tell_of_stack(self, stacks: "_NewStacks", number: int, offset: int) -> None:
        missing = int(stacks.missing[number])
        if missing < len(stacks.ids):
            problem = "should be a location's id"
            self.faults.tell("sample.location_id", problem, int(stacks.ids[missing]), byte=offset)
        else:
            depth = int(stacks.depths[number])
            self.faults.tell("sample", f"should be at most {DEEPEST} frames deep", depth, byte=offset)

    def _origin(self, labels: bytes) -> Origin:
        """Return where samples with such labels were taken; a label that is there twice has both values."""
        known: dict[str, str] = {}
        values: dict[str, list[str]] = {}
        for number in np.frombuffer(labels, np.int64).tolist():
            key, text = self.labels.names[number]
            if key in self.labels.left_out:
                continue
            values.setdefault(key, []).append(text)
            if key in _LABELS:
                known.setdefault(_LABELS[key], text)
        return Origin(**known, labels=tuple((key, ", ".join(values[key])) for key in sorted(values)))


@dataclass(frozen=True, slots=True)
class _NewStacks:
    """Stacks that come for the first time."""

    ids: UInts
    """Of their locations, stack by stack."""
    owner: Ints
    """The stack of each."""
    places: Ints
    """Of the locations; −1: there is none."""
    depths: Ints
    """Frames of each stack."""
    missing: Ints
    """The first id of each that no location has; the number of all ids: there is none."""
    wrong: NDArray[np.bool_]
    """Whether a location is missing or it is too deep."""

    @classmethod
    def of(cls, locations: Locations, counts: Ints, ids: UInts) -> "_NewStacks":
        """Return stacks with so many locations each."""
        owner = np.repeat(np.arange(len(counts)), counts)
        places = locations.places.find(ids)
        deep = np.concatenate([[0], np.cumsum(np.append(locations.depths, 0)[places])])
        last = np.cumsum(counts)
        depths = deep[last] - deep[last - counts]
        missing = np.full(len(counts), len(ids))
        gaps = np.flatnonzero(places < 0)[::-1]
        missing[owner[gaps]] = gaps
        return cls(ids, owner, places, depths, missing, (depths > DEEPEST) | (missing < len(ids)))

    @property
    def costs(self) -> Ints:
        """What each takes from the budget."""
        return np.where(self.wrong, 0, self.depths) + STACK_FRAMES

    def frames(self, locations: Locations) -> tuple[Ints, NDArray[np.int32]]:
        """Return how many frames each has, none where it is wrong, and the frames."""
        places = self.places[~self.wrong[self.owner]]
        widths = locations.depths[places]
        first = (np.cumsum(locations.depths) - locations.depths)[places]
        within = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
        return np.where(self.wrong, 0, self.depths), locations.frames[np.repeat(first, widths) + within]


def newly(numbers: Ints, before: int) -> Ints:
    """Return where numbers that rise from `before` as they come are there for the first time.

    Examples
    --------
    >>> newly(np.array([1, 4, 2, 4, 5]), before=4).tolist()
    [1, 4]
    """
    highest = np.maximum.accumulate(np.append(before - 1, numbers))
    return np.flatnonzero(highest[1:] > highest[:-1])


def signed(number: int) -> int:
    """Return a number of 64 bits as one with a sign."""
    return number - (1 << 64) if number >> 63 else number
