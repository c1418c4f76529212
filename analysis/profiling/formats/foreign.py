"""A profile as the formats of other tools have it: measures, frames, and samples with a value of each measure."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.tables.faults import plain, refusal
from models.arrays import Ints

UNKNOWN = "[unknown]"
"""Function of a frame that no symbol covers."""
DEEPEST = 1 << 14
"""Most frames in a stack that is read."""
MOST_FRAMES = 1 << 23
"""Most frames in all distinct stacks of a file that is read, so that importing it takes less than 1 GB."""
STACK_FRAMES = 8
"""Frames that a distinct stack counts for besides its own: what it takes in memory however short it is."""
LARGEST = (1 << 63) - 1
"""Largest count that tables hold."""


class Frame(NamedTuple):
    """One place in code; what is unknown is empty or 0."""

    function: str
    image: str = ""
    build_id: str = ""
    file: str = ""
    function_line: int = 0
    line: int = 0
    address: int = 0
    file_address: int = -1
    """Byte of the image's file that the address was loaded from; −1: unknown."""


class Loaded(NamedTuple):
    """A part of an image in memory; what is unknown is empty or 0."""

    image: str = ""
    build_id: str = ""
    start: int = 0
    end: int = 0
    offset: int = -1
    """Byte of the image's file that `start` was loaded from; −1: unknown."""

    def file_address(self, address: int) -> int:
        """Return the byte of the file that an address was loaded from; −1: unknown, or outside of the part.

        Examples
        --------
        >>> part = Loaded("a.out", start=0x4000, end=0x5000, offset=0x1000)
        >>> hex(part.file_address(0x4010)), part.file_address(0x6000)
        ('0x1010', -1)
        """
        inside = self.offset >= 0 and self.start <= address < self.end
        return address - self.start + self.offset if inside else -1


def loaded_by(lines: Iterable[re.Match[str] | None]) -> Iterator[Loaded]:
    """Yield the parts of a memory map, from matched lines with `start`, `end`, `image` and perhaps `offset`."""
    for line in lines:
        if line is not None:
            start, end, offset = (int(line[name] or "-1", 16) for name in ("start", "end", "offset"))
            yield Loaded(plain(line["image"].strip()), "", start, end, offset)


def unnamed(address: int, images: Sequence[Loaded]) -> Frame:
    """Return the frame of an address without a symbol."""
    part = next((part for part in images if part.start <= address < part.end), Loaded())
    return Frame("", part.image, address=address, file_address=part.file_address(address))


class Measure(NamedTuple):
    """What values count: event, unit, events from one sample to the next, and the event's name in the source."""

    event: str
    unit: str = "count"
    period: int = 1
    native: str = ""


class Origin(NamedTuple):
    """Where samples were taken; what is unknown is empty."""

    application: str = ""
    process: str = ""
    machine: str = ""
    platform: str = ""
    datacentre: str = ""
    kernel: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of the samples, whatever they say: name and value, in order of the names."""


class Sample(NamedTuple):
    """Values of every measure at a stack."""

    stack: tuple[int, ...]
    """Indices of frames, the function sampled first, then its caller, …"""
    amounts: tuple[int, ...]
    """In the order of the measures, in their units."""
    origin: int = 0
    """Index of the origin."""
    chain: bool = True
    """Whether callers were recorded."""
    taken: tuple[int, ...] = ()
    """How many samples each amount rests on; empty: the file does not say."""


@dataclass(slots=True)
class FrameBudget:
    """The frames that distinct stacks of a file may have in all: a small file cannot take gigabytes.

    Examples
    --------
    >>> FrameBudget("a.pb").take(MOST_FRAMES)
    Traceback (most recent call last):
    analysis.tables.faults.FileError: a.pb: stacks: should be at most 8388608 frames in all, each stack counted as 8 \
more; split the file, or leave out what was sampled rarely, got more
    """

    name: str
    """The file."""
    used: int = 0
    times: int = 1
    """By what `MOST_FRAMES` is multiplied, where a frame takes so much less memory."""
    besides: str = ""
    """What else counts, for the message."""

    @property
    def most(self) -> int:
        """Frames that there may be."""
        return self.times * MOST_FRAMES

    def take(self, frames: int, *, line: int = 0, byte: int | None = None) -> None:
        """Take a new stack of so many frames.

        Raises
        ------
        FileError
            If that is more than the file may have.
        """
        self.used += frames + STACK_FRAMES
        if self.used > self.most:
            problem = (
                f"should be at most {self.most} frames in all, each stack counted as {STACK_FRAMES} more{self.besides}"
            )
            cure = "split the file, or leave out what was sampled rarely"
            raise refusal(self.name, "stacks", f"{problem}; {cure}", "more", line=line, byte=byte)

    def take_many(self, costs: Ints) -> int:
        """Take new stacks at their costs, the frames counted for besides among them; return how many there is room for.

        Examples
        --------
        >>> FrameBudget("a.pb").take_many(np.array([MOST_FRAMES - 9, 9, 1]))
        2
        """
        used = self.used + np.cumsum(costs)
        fitting = int(np.searchsorted(used, self.most, side="right"))
        self.used = int(used[fitting - 1]) if fitting else self.used
        return fitting


@dataclass(frozen=True, slots=True)
class ForeignProfile:
    """A profile of another tool, or one for another tool."""

    measures: tuple[Measure, ...]
    frames: Sequence[Frame] = ()
    samples: Sequence[Sample] = ()
    origins: tuple[Origin, ...] = (Origin(),)
    name: str = "profile"
    """Name of the file it came from."""
    main: str = ""
    """Image of the program itself."""
    start_s: float = math.nan
    """When it began, in seconds since 1970; NaN: unknown."""
    length_s: float = 0.0
    """Over how long; 0: unknown."""
    span: bool = False
    """Whether `length_s` is only the time from the first sample to the last."""
    default: str = ""
    """Event to show first."""
    comments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know about how it was understood."""

    def total(self, event: str) -> int:
        """Return the sum of an event over all samples, in its unit.

        Raises
        ------
        KeyError
            If there is no such measure.

        Examples
        --------
        >>> samples = Sample((0,), (3,)), Sample((0, 0), (4,))
        >>> ForeignProfile((Measure("samples"),), (Frame("f"),), samples).total("samples")
        7
        """
        at = {measure.event: index for index, measure in enumerate(self.measures)}[event]
        own = getattr(self.samples, "total", None)
        return int(own(at)) if own is not None else sum(sample.amounts[at] for sample in self.samples)
