"""Governors and mechanisms of interference that other people write: functions of numbers, which the kernel calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from inspect import signature
from typing import Final, Protocol, cast

import numpy as np

from models.arrays import Floats
from models.code.formulas import Formula, NumberFunction
from models.code.parts import PartError, is_part, part
from models.fleet.world import World
from sim.fleet.layout import OwnPhysics


class GovernorFunction(Protocol):
    """A governor of one's own: the clock of an instance's cores, anew in each epoch.

    Examples
    --------
    >>> def calm(utilisation: float, stalled: float, limit_hz: float, min_hz: float, max_hz: float) -> float:
    ...     return max(min_hz, limit_hz - 2.0e8 * stalled)
    >>> governor: GovernorFunction = calm
    """

    def __call__(self, utilisation: float, stalled: float, limit_hz: float, min_hz: float, max_hz: float) -> float:
        """Return a clock from `min_hz` to `limit_hz`, in Hz; between two clocks of the platform the core dithers.

        Parameters
        ----------
        utilisation : busy hardware threads of the machine over all
        stalled : share of its cycles in which the instance waited for memory when the governor looked last, 0..1
        limit_hz : the highest clock that the power limit allows
        min_hz, max_hz : the lowest clock of the platform, and the highest that it allows with so many cores active
        """


class MechanismFunction(Protocol):
    """A mechanism of interference of one's own: how fast an instance is beside its neighbours.

    Examples
    --------
    >>> def crowded(neighbour_utilisation: float, neighbour_bandwidth: float, neighbour_cache: float,
    ...             sibling_busy: float, misses_per_instruction: float, smt_slowdown: float) -> float:
    ...     return 0.9 if neighbour_utilisation > 0.8 else 1.0
    >>> mechanism: MechanismFunction = crowded
    """

    def __call__(  # noqa: PLR0917  # compiled code calls it by position
        self,
        neighbour_utilisation: float,
        neighbour_bandwidth: float,
        neighbour_cache: float,
        sibling_busy: float,
        misses_per_instruction: float,
        smt_slowdown: float,
    ) -> float:
        """Return the speed relative to that without the mechanism, above 0: core CPI is divided by it.

        Parameters
        ----------
        neighbour_utilisation : hardware threads that the machine's other instances keep busy over all
        neighbour_bandwidth : their memory traffic over the machine's bandwidth
        neighbour_cache : share of the last-level cache that they hold
        sibling_busy : chance that the other hardware thread of a core is busy; 0 where SMT siblings do not couple
        misses_per_instruction : of the instance in the epoch before
        smt_slowdown : by how much its core CPI grows while the other thread is busy
        """


GOVERNOR: Final = tuple(signature(GovernorFunction.__call__).parameters)[1:]
MECHANISM: Final = tuple(signature(MechanismFunction.__call__).parameters)[1:]
_CALL = 8
"""Length of `OwnPhysics.call`: which function, up to six arguments, the answer."""
_NOBODY = -1
WAYS: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("power", "governor", "policy"): GOVERNOR,
    ("feature", "governor", "policy"): GOVERNOR,
    ("interference", "mechanism"): MECHANISM,
}
"""Where a world may name such functions, and which parameters they have."""


@dataclass(frozen=True, slots=True)
class OwnFunctions:
    """What somebody's own decides on machines: the governors before and after the feature, and a mechanism."""

    before: Formula | None = None
    after: Formula | None = None
    mechanism: Formula | None = None

    def physics(self) -> OwnPhysics:
        """Return what the kernel takes; where nothing is somebody's own, a function that is never called.

        Raises
        ------
        PartError
            If a function cannot be loaded or compiled.
        """
        nothing = _compiled_nothing
        return OwnPhysics(
            before=self.before.compiled() if self.before else nothing(len(GOVERNOR)),
            after=self.after.compiled() if self.after else nothing(len(GOVERNOR)),
            mechanism=self.mechanism.compiled() if self.mechanism else nothing(len(MECHANISM)),
            slows=self.mechanism is not None,
            call=np.full(_CALL, float(_NOBODY)),
        )

    def fault(self, call: Floats) -> PartError | None:
        """Return what the function did wrong that was called last; None if none was called.

        Parameters
        ----------
        call : (8,) array, `OwnPhysics.call`
        """
        formula = {0: self.before, 1: self.after, 2: self.mechanism}.get(int(call[0]))
        if formula is None:
            return None
        clock = "should return a clock in Hz, from min_hz to limit_hz"
        return formula.fault(call[1:], "should return a speed above 0" if formula is self.mechanism else clock)


def own_functions(world: World) -> OwnFunctions:
    """Return what a world names of somebody's own governors and mechanisms.

    Raises
    ------
    PartError
        If there is no such function, or it has other parameters than `WAYS` says.

    Examples
    --------
    >>> own_functions(World())
    OwnFunctions(before=None, after=None, mechanism=None)
    """
    before, after, mechanism = (own_function(world, way) for way in WAYS)
    replaced = world.feature is not None and world.feature.governor is not None
    return OwnFunctions(before, after if replaced else before, mechanism)


def own_function(world: World, way: tuple[str, ...]) -> Formula | None:
    """Return the function that a world names at the end of one of `WAYS`; None where it names ours, or nothing.

    Raises
    ------
    PartError
        If there is no such function, or it has other parameters.
    """
    name: object = reduce(lambda at, key: getattr(at, key, None), way, cast(object, world))
    if not isinstance(name, str) or not is_part(name):
        return None
    formula = Formula(part(name), WAYS[way])
    _ = formula.function
    return formula


def _nothing_of_five(_a: float, _b: float, _c: float, _d: float, _e: float) -> float:
    return 0.0


def _nothing_of_six(_a: float, _b: float, _c: float, _d: float, _e: float, _f: float) -> float:
    return 0.0


@lru_cache
def _compiled_nothing(parameters: int) -> NumberFunction:
    """Return a function of so many numbers that stands where there is none."""
    from models.code.compiled import of_numbers

    return of_numbers(_nothing_of_five if parameters == len(GOVERNOR) else _nothing_of_six, parameters)
