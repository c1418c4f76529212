"""Estimators that other people wrote, by name as ``mine.py:Mine`` or as objects, ready to be judged beside ours."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from analysis.effects.estimator import Estimator, ExperimentTables, Interval, PotentialTables, answered, many
from analysis.effects.methods import METHODS
from analysis.statistics import Statistic
from models.arrays import Floats
from models.code.parts import Part, blamed
from models.errors import InputError
from scenarios.effects.own_environment import InEnvironment


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as an estimator."""

    estimate: Callable[[ExperimentTables], Interval]


@dataclass(frozen=True, slots=True)
class OwnEstimator:
    """Somebody's estimator: what it answers is checked, and its errors are told as its author's."""

    name: str
    """Its `name` if it has one, else that of its class or function."""
    estimator: Estimator
    part: Part | None = None
    """Its file; none of an object."""

    @classmethod
    def of(cls, given: object, part: Part | None = None) -> "OwnEstimator":
        """Return the estimator of an object, or of a class, which is made without arguments, or of a function.

        Raises
        ------
        InputError
            If it has no `estimate`, or the name of one of ours.

        Examples
        --------
        >>> def none(experiment: ExperimentTables) -> tuple[float, float, float]:
        ...     return 0.0, -1.0, 1.0
        >>> OwnEstimator.of(none).name
        'none'
        """
        environment = getattr(given, "environment", None)
        if environment is None:
            with _blamed(part):
                estimator = given() if isinstance(given, type) else given
        elif part is None:
            raise InputError("an estimator in an environment of its own is named by its file, as mine.py:Mine")
        else:
            estimator = InEnvironment.of(part, str(environment))
        named = estimator if environment is None else given
        name = str(getattr(named, "name", None) or getattr(named, "__name__", type(named).__name__))
        where = f"{part.file}: " if part else ""
        if not isinstance(estimator, Estimator):
            if not callable(estimator):
                raise InputError(f"{where}{name} has no method estimate(experiment), and is no function")
            estimator = _Function(estimator)
        if name in {method.name for method in METHODS}:
            raise InputError(
                f"{where}{name} is the name of a shipped estimator; give yours another as attribute `name`"
            )
        return cls(name, estimator, part)

    @classmethod
    def of_part(cls, part: Part) -> "OwnEstimator":
        """Return the estimator that a file holds."""
        return cls.of(part.load(), part)

    def estimate(self, experiment: ExperimentTables) -> Statistic:
        """Return what it answers to one experiment."""
        with _blamed(self.part):
            return answered(self._label, self.estimator.estimate(experiment))

    def many(self, tables: PotentialTables) -> Floats:
        """Return what it answers to R draws, (R, 3); NaN where it had too little data."""
        with _blamed(self.part):
            return many(self._label, self.estimator, tables)

    @property
    def _label(self) -> str:
        return f"{self.part.file}: {self.name}" if self.part else self.name


@contextmanager
def _blamed(part: Part | None) -> Iterator[None]:
    """Say that errors are the author's where his file is known; an object's are raised to whoever gave it."""
    if part is None:
        yield
    else:
        with blamed(part):
            yield
