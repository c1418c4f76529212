"""Samples of a file that is being read, summed by stack and origin within the file's bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from analysis.profiling.formats.foreign import DEEPEST, LARGEST, Frame, FrameBudget, Origin, Sample
from analysis.tables.faults import refusal


@dataclass(slots=True)
class StackSums:
    """Amounts of every measure by stack and origin.

    Examples
    --------
    >>> sums = StackSums("a.json", measures=1)
    >>> sums.add([Frame("f"), Frame("main")], (3,))
    >>> sums.add([Frame("f"), Frame("main")], (4,))
    >>> sums.samples()
    (Sample(stack=(0, 1), amounts=(7,), origin=0, chain=True, taken=()),)
    """

    name: str
    """The file."""
    measures: int
    frames: dict[Frame, int] = field(default_factory=dict)
    origins: dict[Origin, int] = field(default_factory=dict)
    sums: dict[tuple[tuple[int, ...], int], list[int]] = field(default_factory=dict)
    budget: FrameBudget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = FrameBudget(self.name)

    def add(self, stack: Sequence[Frame], amounts: Sequence[int], origin: Origin | None = None) -> None:
        """Add a sample.

        Parameters
        ----------
        stack : frames, the function sampled first
        amounts : of every measure
        origin : where it was taken

        Raises
        ------
        FileError
            If an amount is negative or too large, the stack too deep, or the file beyond its bounds.
        """
        if len(stack) > DEEPEST:
            raise refusal(self.name, "stack", f"should be at most {DEEPEST} frames deep", len(stack))
        if min(amounts) < 0 or max(amounts) > LARGEST:
            raise refusal(self.name, "value", f"should be from 0 to {LARGEST}", min(amounts))
        places = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in stack)
        key = places, self.origins.setdefault(origin or Origin(), len(self.origins))
        if key not in self.sums:
            self.budget.take(len(places))
            self.sums[key] = [0] * self.measures
        for at, amount in enumerate(amounts):
            self.sums[key][at] += amount

    def samples(self) -> tuple[Sample, ...]:
        """Return the sums, in the order in which stacks came."""
        return tuple(Sample(stack, tuple(amounts), origin) for (stack, origin), amounts in self.sums.items())
