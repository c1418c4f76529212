"""Speedscope's JSON: sampled and evented profiles of one file, each a thread."""

import dataclasses
import itertools
import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO

from analysis.profiling.formats.foreign import UNKNOWN, ForeignProfile, Frame, Measure, Origin
from analysis.profiling.formats.json_values import Object, field, place, typed
from analysis.profiling.formats.stack_sums import StackSums
from analysis.tables.faults import plain, refusal

_NS = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
_LAST_LINE = (1 << 31) - 1
_AT_ONCE = 10_000
"""Samples and frames that are written at once."""
_BYTES_AT_ONCE = 1 << 20


def is_speedscope(content: Object) -> bool:
    """Return whether JSON is such: frames that all profiles share."""
    return "profiles" in content and isinstance(content.get("shared"), dict)


def read_speedscope(content: Object, name: str = "speedscope.json") -> ForeignProfile:
    """Read speedscope's JSON (jlfwong/speedscope, src/lib/file-format-spec.ts).

    Weights of a unit of time become `time` in nanoseconds, those in bytes `bytes`, others `weight` in millionths if any
    is a fraction; each sample of a sampled profile counts as one of `samples`. The name of each of several profiles is
    the label `profile`.

    Parameters
    ----------
    content : the file's JSON
    name : of the file, for faults
    """
    profiles = field(content, "profiles", list, name)
    frames = [_frame(frame, name) for frame in field(content["shared"], "frames", list, name)]
    units = {field(profile, "unit", str, name, "none") for profile in profiles}
    if len(units) != 1:
        raise refusal(name, "unit", "should be one of all profiles", ", ".join(sorted(units)) or "no profile")
    unit = units.pop()
    sampled = any(field(profile, "type", str, name) == "sampled" for profile in profiles)
    whole = all(float(weight).is_integer() for profile in profiles for weight in _weights(profile, name))
    measure, scale = _measure(unit, whole=whole)
    sums = StackSums(name, 1 + sampled)
    for profile in profiles:
        origin = _origin(profile, len(profiles), name)
        for stack, amounts in _summed(profile, frames, name, scale):
            sums.add(stack, amounts if sampled else amounts[1:], origin)
    if not sums.sums:
        raise refusal(name, "samples", "should be at least one", "none")
    measures = (Measure("samples"), measure) if sampled else (measure,)
    return ForeignProfile(measures, tuple(sums.frames), sums.samples(), tuple(sums.origins), name=name)


def _measure(unit: str, *, whole: bool) -> tuple[Measure, int]:
    """Return what weights measure, and what they are multiplied by."""
    if unit in _NS:
        return Measure("time", "nanoseconds"), _NS[unit]
    if unit == "bytes":
        return Measure("bytes", "bytes"), 1
    return (Measure("weight"), 1) if whole else (Measure("weight", "millionths"), 10**6)


def _origin(profile: object, profiles: int, name: str) -> Origin:
    called = plain(field(profile, "name", str, name, ""))
    return Origin(labels=(("profile", called),)) if profiles > 1 and called else Origin()


def _weights(profile: object, name: str) -> Iterator[float]:
    """Yield the weights of samples, or for how long stacks were open between events."""
    kind = field(profile, "type", str, name)
    if kind == "sampled":
        yield from _weights_of_samples(profile, name)
    elif kind == "evented":
        before, depth = field(profile, "startValue", float, name, 0.0), 0
        for event in field(profile, "events", list, name):
            at = field(event, "at", float, name)
            if depth:
                yield at - before
            before, depth = at, depth + (1 if field(event, "type", str, name) == "O" else -1)
        if depth:
            yield field(profile, "endValue", float, name, before) - before
    else:
        raise refusal(name, "type", "should be sampled or evented", kind)


def _summed(profile: object, frames: list[Frame], name: str, scale: int) -> Iterator[tuple[list[Frame], list[int]]]:
    """Yield stacks, the frame sampled first, with how many samples or times each has, and their weight."""
    if field(profile, "type", str, name) == "evented":
        yield from _evented(profile, frames, name, scale)
        return
    samples, weights = field(profile, "samples", list, name), _weights_of_samples(profile, name)
    for sample, weight in zip(samples, weights, strict=True):
        stack = sample if isinstance(sample, list) else [sample]
        yield [place(frames, at, "samples", name) for at in reversed(stack)], [1, round(weight * scale)]


def _weights_of_samples(profile: object, name: str) -> list[float]:
    samples, weights = field(profile, "samples", list, name), field(profile, "weights", list, name)
    if len(samples) != len(weights):
        raise refusal(name, "weights", f"should be {len(samples)}, one a sample", len(weights))
    for weight in weights:
        if not typed(weight, float) or not math.isfinite(weight):
            raise refusal(name, "weights", "should be numbers", weight)
    return weights


@dataclass(slots=True)
class _OpenedStacks:
    """Stacks as they are opened, each a frame on the stack below it, however often it is opened again; −1 is none."""

    frame: list[int] = dataclasses.field(default_factory=list)
    below: list[int] = dataclasses.field(default_factory=list)
    amounts: list[list[int]] = dataclasses.field(default_factory=list)
    number: dict[tuple[int, int], int] = dataclasses.field(default_factory=dict)

    def opened(self, stack: int, frame: int) -> int:
        """Return the stack with a frame on another."""
        number = self.number.setdefault((stack, frame), len(self.frame))
        if number == len(self.frame):
            self.frame.append(frame)
            self.below.append(stack)
            self.amounts.append([0, 0])
        return number

    def add(self, stack: int, amount: int) -> None:
        """Add a time over which a stack was open."""
        self.amounts[stack][0] += 1
        self.amounts[stack][1] += amount

    def path(self, stack: int) -> Iterator[int]:
        """Yield the frames of a stack, the last opened first."""
        while stack >= 0:
            yield self.frame[stack]
            stack = self.below[stack]


def _evented(profile: object, frames: list[Frame], name: str, scale: int) -> Iterator[tuple[list[Frame], list[int]]]:
    """Yield what stacks were open, and for how long: frames open (O) and close (C) at times."""
    stacks, stack = _OpenedStacks(), -1
    before = field(profile, "startValue", float, name, 0.0)
    for event in field(profile, "events", list, name):
        kind, at = field(event, "type", str, name), field(event, "at", float, name)
        if not math.isfinite(at) or at < before:
            raise refusal(name, "at", f"should not be before {before}", at)
        if stack >= 0 and at > before:
            stacks.add(stack, round((at - before) * scale))
        before, frame = at, field(event, "frame", int, name)
        place(frames, frame, "frame", name)
        if kind == "O":
            stack = stacks.opened(stack, frame)
        elif kind == "C" and stack >= 0 and frames[stacks.frame[stack]] == frames[frame]:
            stack = stacks.below[stack]
        else:
            raise refusal(name, "events", "should open (O) a frame, or close (C) the last that is open", kind)
    end = field(profile, "endValue", float, name, before)
    if stack >= 0 and end > before:
        stacks.add(stack, round((end - before) * scale))
    for number, amounts in enumerate(stacks.amounts):
        if amounts[0]:
            yield [frames[at] for at in stacks.path(number)], amounts


def _frame(frame: object, name: str) -> Frame:
    line = field(frame, "line", float, name, 0)
    known = int(line) if 0 < line <= _LAST_LINE else 0
    function = plain(field(frame, "name", str, name)).strip() or UNKNOWN
    return Frame(function, file=plain(field(frame, "file", str, name, "")), line=known)


def write_speedscope(
    name: str, unit: str, frames: Sequence[Frame], stacks: Iterable[Iterable[int]], weights: Sequence[int]
) -> bytes:
    """Return call paths as speedscope's JSON, one sampled profile.

    Parameters
    ----------
    name : of the profile
    unit : what is counted; speedscope knows units of time and bytes
    frames : of the paths
    stacks : places of each path's frames among these, the outermost first
    weights : of each path

    Examples
    --------
    >>> written = write_speedscope("cpu", "nanoseconds", [Frame("f"), Frame("main")], [[1, 0]], [3])
    >>> read_speedscope(json.loads(written)).total("time")
    3
    """
    return b"".join(speedscope_parts(name, unit, [(frames, stacks, weights)]))


def speedscope_parts(
    name: str, unit: str, parts: Iterable[tuple[Sequence[Frame], Iterable[Iterable[int]], Sequence[int]]]
) -> Iterator[bytes]:
    """Yield what `write_speedscope` returns for call paths in parts, some of it after others.

    Parameters
    ----------
    name, unit : as there
    parts : frames, stacks and weights of some paths after others; the frames of each begin with those of the one before
    """
    numbers, total = _Numbers(), 0
    with tempfile.TemporaryFile() as samples, tempfile.TemporaryFile() as weights:  # frames come first in the file
        for frames, stacks, own in parts:
            numbers.frames = frames
            comma = b"," * (samples.tell() > 0)
            texts = (f"[{','.join(map(numbers.__getitem__, stack))}]" for stack in stacks)
            for file, items in ((samples, _joined(texts)), (weights, _joined(map(str, own)))):
                file.writelines(itertools.chain([comma] if own else [], items))
            total += sum(own)
            del frames, stacks, own, texts, items  # before the next are asked for
        encode = json.JSONEncoder(separators=(",", ":")).encode
        listed = (
            encode({"name": function} | ({"file": file} if file else {}) | ({"line": line} if line else {}))
            for function, file, line in numbers.known
        )
        content = {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": []},
            "profiles": [
                {
                    "type": "sampled",
                    "name": name,
                    "unit": unit if unit in (*_NS, "bytes") else "none",
                    "startValue": 0,
                    "endValue": total,
                    "samples": [],
                    "weights": [],
                }
            ],
            "name": name,
        }
        rest = encode(content)
        for key, items in (("frames", _joined(listed)), ("samples", _read(samples)), ("weights", _read(weights))):
            before, rest = rest.split(f'"{key}":[', 1)
            yield f'{before}"{key}":['.encode()
            yield from items
        yield rest.encode()


def _read(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file, some of it after others."""
    file.seek(0)
    return iter(lambda: file.read(_BYTES_AT_ONCE), b"")


class _Numbers(dict[int, str]):
    """Numbers of frames in the file, as text: in the order in which they are asked for, equal ones once."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: Sequence[Frame] = ()
        self.known: dict[tuple[str, str, int], str] = {}

    def __missing__(self, at: int) -> str:
        frame = self.frames[at]
        name = frame.function or UNKNOWN, frame.file, frame.line
        self[at] = number = self.known.setdefault(name, str(len(self.known)))
        return number


def _joined(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield texts with commas between them, some of them at once."""
    rest, comma = iter(texts), ""
    while some := [*islice(rest, _AT_ONCE)]:
        yield (comma + ",".join(some)).encode()
        comma = ","
