"""Distributions as scenario files say them: where they are, and what is wrong with each."""

import dataclasses
from collections.abc import Iterator

from models.queues.world import Distribution
from scenarios.files.findings import FieldFault
from scenarios.files.tree import Keys
from sim.queues.distributions import FIELDS


def within(part: object, keys: Keys = ()) -> Iterator[tuple[Keys, Distribution]]:
    """Yield every distribution that a dataclass holds, with the way to it."""
    if isinstance(part, Distribution):
        yield keys, part
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from within(item, (*keys, i))
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from within(getattr(part, field.name), (*keys, field.name))


def faults_of(distribution: Distribution, keys: Keys = ()) -> Iterator[FieldFault]:
    """Yield what is wrong with a distribution.

    Parameters
    ----------
    distribution : as the file has it
    keys : the way to it in its file
    """
    needed = FIELDS[distribution.kind]
    given = {name: getattr(distribution, name) for name in ("mean", "cv", "low", "high", "shape")}
    for name, value in given.items():
        if name in needed and value is None:
            yield FieldFault((*keys, name), f"is required by {distribution.kind}")
        if name not in needed and value is not None:
            problem = f"is no field of {distribution.kind}, which takes {' and '.join(needed)}"
            yield FieldFault((*keys, name), problem, f"{value:g}")
    if all(given[name] is not None for name in needed):
        yield from _bounds(distribution, keys)


def _bounds(distribution: Distribution, keys: Keys) -> Iterator[FieldFault]:
    """Yield what is wrong with the values of a distribution that has all its fields."""
    low, high, cv = distribution.low, distribution.high, distribution.cv
    if low is not None and high is not None and high < low:
        yield FieldFault((*keys, "high"), f"should be at least low = {low:g}", f"{high:g}")
    if distribution.kind == "pareto" and low == 0:
        yield FieldFault((*keys, "low"), "should be greater than 0", f"{low:g}")
    if distribution.kind == "hyperexponential" and cv is not None and cv < 1:
        yield FieldFault((*keys, "cv"), "should be at least 1", f"{cv:g}")
