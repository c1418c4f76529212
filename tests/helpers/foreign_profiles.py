"""Profiles of other tools, written as stacks and their values."""

from collections.abc import Iterable

from analysis.profiling.formats.foreign import ForeignProfile, Frame, Measure, Sample


def profile_of(
    measures: Iterable[Measure], samples: Iterable[tuple[tuple[Frame, ...], tuple[int, ...]]]
) -> ForeignProfile:
    """Return a profile of stacks and their values, equal stacks summed."""
    frames: dict[Frame, int] = {}
    sums: dict[tuple[int, ...], tuple[int, ...]] = {}
    for stack, values in samples:
        key = tuple(frames.setdefault(frame, len(frames)) for frame in stack)
        sums[key] = tuple(map(sum, zip(sums[key], values, strict=True))) if key in sums else values
    return ForeignProfile(
        tuple(measures), tuple(frames), tuple(Sample(stack, values) for stack, values in sums.items())
    )
