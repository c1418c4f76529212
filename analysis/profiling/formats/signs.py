"""Profiles with negative values: differences of two, read as what there was before and after."""

from collections.abc import Sequence
from dataclasses import replace

from analysis.profiling.formats.foreign import ForeignProfile

BEFORE, AFTER = "before", "after"


def parted_by_sign(profile: ForeignProfile) -> ForeignProfile:
    """Return a profile in which a measure with negative values is two: what they take away, before, and add, after.

    A difference, as `pprof -diff_base` or `difffolded.pl` write it, is B less A; events of a profile are never
    negative. The sum of what was after less that of what was before is the sum of the difference.

    Parameters
    ----------
    profile : as it was read

    Examples
    --------
    >>> from analysis.profiling.formats.foreign import Frame, Measure, Sample
    >>> profile = ForeignProfile((Measure("cpu"),), (Frame("f"),), (Sample((0,), (-3,)), Sample((0,), (5,))))
    >>> parted = parted_by_sign(profile)
    >>> [measure.event for measure in parted.measures], [sample.amounts for sample in parted.samples]
    (['cpu/before', 'cpu/after'], [(3, 0), (0, 5)])
    """
    negative = [any(sample.amounts[at] < 0 for sample in profile.samples) for at in range(len(profile.measures))]
    if not any(negative):
        return profile
    measures = [
        part
        for measure, differs in zip(profile.measures, negative, strict=True)
        for part in (
            [measure._replace(event=f"{measure.event}/{side}") for side in (BEFORE, AFTER)] if differs else [measure]
        )
    ]
    samples = (
        sample._replace(amounts=_parted(sample.amounts, negative), taken=_twice(sample.taken, negative))
        for sample in profile.samples
    )
    events = [measure.event for measure, differs in zip(profile.measures, negative, strict=True) if differs]
    names = ", ".join(f"{event}/{BEFORE} and {event}/{AFTER}" for event in events)
    note = f"{', '.join(events)}: negative values, a difference: read as {names}"
    default = f"{profile.default}/{AFTER}" if profile.default in events else profile.default
    return replace(
        profile, measures=tuple(measures), samples=tuple(samples), default=default, notes=(*profile.notes, note)
    )


def _parted(amounts: Sequence[int], negative: Sequence[bool]) -> tuple[int, ...]:
    pairs = zip(amounts, negative, strict=True)
    return tuple(
        part for amount, differs in pairs for part in ((max(-amount, 0), max(amount, 0)) if differs else (amount,))
    )


def _twice(taken: Sequence[int], negative: Sequence[bool]) -> tuple[int, ...]:
    """Return the samples of each value; of the parts of a difference those of the whole."""
    pairs = zip(taken, negative, strict=False)
    return tuple(number for own, differs in pairs for number in ([own] * (1 + differs)))
