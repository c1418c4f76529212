"""A profile as the formats of other tools have it: measures, frames, and samples with a value of each measure."""

import math
from dataclasses import dataclass
from typing import NamedTuple

UNKNOWN = "[unknown]"
"""Function of a frame that no symbol covers."""
DEEPEST = 1 << 14
"""Most frames in a stack that is read."""
MOST_FRAMES = 1 << 25
"""Most frames in all distinct stacks of a file that is read."""
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


@dataclass(frozen=True, slots=True)
class ForeignProfile:
    """A profile of another tool, or one for another tool."""

    measures: tuple[Measure, ...]
    frames: tuple[Frame, ...] = ()
    samples: tuple[Sample, ...] = ()
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
        return sum(sample.amounts[at] for sample in self.samples)
