"""Profiles with negative values: differences of two, read as what there was before and after."""

from dataclasses import replace

import numpy as np

from analysis.profiling.formats.columns import Amounts, SampleTable
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
    samples = SampleTable.of(profile.samples)
    negative = [bool((samples.amount(at) < 0).any()) for at in range(len(profile.measures))]
    if not any(negative):
        return profile
    measures = [
        part
        for measure, differs in zip(profile.measures, negative, strict=True)
        for part in (
            [measure._replace(event=f"{measure.event}/{side}") for side in (BEFORE, AFTER)] if differs else [measure]
        )
    ]
    columns = [part for at, differs in enumerate(negative) for part in _parts(samples.amount(at), differs=differs)]
    taken = None if samples.taken is None else np.repeat(samples.taken, [1 + differs for differs in negative], axis=1)
    parted = replace(samples, amounts=np.column_stack(columns), taken=taken)
    events = [measure.event for measure, differs in zip(profile.measures, negative, strict=True) if differs]
    names = ", ".join(f"{event}/{BEFORE} and {event}/{AFTER}" for event in events)
    note = f"{', '.join(events)}: negative values, a difference: read as {names}"
    default = f"{profile.default}/{AFTER}" if profile.default in events else profile.default
    return replace(profile, measures=tuple(measures), samples=parted, default=default, notes=(*profile.notes, note))


def _parts(amounts: Amounts, *, differs: bool) -> list[Amounts]:
    """Return what amounts take away and add, or themselves."""
    return [np.maximum(-amounts, 0), np.maximum(amounts, 0)] if differs else [amounts]
