"""Estimators that other people wrote, by name as ``mine.py:Mine`` or as objects, ready to be judged beside ours."""

import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from analysis.effects.estimator import Estimator, ExperimentTables, Interval, PotentialTables, answered, many
from analysis.effects.methods import SHIPPED, method, of_tables
from analysis.effects.study import EffectMethod
from analysis.statistics import Statistic
from models.arrays import Floats
from models.code.parts import Part, blamed, called, definition, is_part, name_problems, part
from models.errors import InputError
from scenarios.effects.own_environment import InEnvironment


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as an estimator."""

    function: Callable[[ExperimentTables], Interval]

    def estimate(self, experiment: ExperimentTables) -> Interval:
        """Return what the function says."""
        return self.function(experiment)


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
            with _blamed(part, given):
                estimator = given() if isinstance(given, type) else given
        elif part is None:
            raise InputError("an estimator in an environment of its own is named by its file, as mine.py:Mine")
        else:
            estimator = InEnvironment.of(part, str(environment))
        name = called(estimator if environment is None else given)
        where = f"{part.file}: " if part else ""
        if not isinstance(estimator, Estimator):
            if not callable(estimator):
                raise InputError(f"{where}{name} has no method estimate(experiment), and is no function")
            estimator = _Function(estimator)
        own = cls(name, estimator, part)
        own_names([own])
        return own

    @classmethod
    def of_part(cls, part: Part) -> "OwnEstimator":
        """Return the estimator that a file holds."""
        return cls.of(part.load(), part)

    def estimate(self, experiment: ExperimentTables) -> Statistic:
        """Return what it answers to one experiment."""
        with _blamed(self.part, self.estimator):
            return answered(self._label, self.estimator.estimate(experiment))

    def many(self, tables: PotentialTables) -> Floats:
        """Return what it answers to R draws, (R, 3); NaN where it had too little data."""
        with _blamed(self.part, self.estimator):
            return many(self._label, self.estimator, tables)

    @property
    def place(self) -> str:
        """Where it is: ``mine.py:Mine``, or the line of a function, or the class of an object."""
        if self.part:
            return self.part.reference
        given = self.estimator.function if isinstance(self.estimator, _Function) else self.estimator
        code = getattr(given, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else f"an object of {type(given).__name__}"

    @property
    def _label(self) -> str:
        if isinstance(self.estimator, InEnvironment):
            return f"{self.estimator.part.file}: {self.name}"
        written = self.estimator.function if isinstance(self.estimator, _Function) else self.estimator.estimate
        return f"{definition(written)}: {self.name}"


def estimator_of(given: object) -> EffectMethod | OwnEstimator:
    """Return one of our estimators, or somebody's.

    Parameters
    ----------
    given : an estimator, its class, a function, a name of ours that tables of observations are enough for, or
        ``mine.py:Mine``

    Raises
    ------
    InputError
        If ours has no such name, or somebody's is no estimator.

    Examples
    --------
    >>> estimator_of("adjusted").name
    'adjusted'
    """
    if not isinstance(given, str):
        return OwnEstimator.of(given)
    return OwnEstimator.of_part(part(given)) if is_part(given) else method(given, of_tables(), own=True)


def own_names(estimators: Sequence[OwnEstimator]) -> None:
    """Refuse estimators that are judged together under one name, or under that of one of ours.

    Raises
    ------
    InputError
        That names the place of each.
    """
    problems = name_problems([(estimator.place, estimator.name) for estimator in estimators], SHIPPED)
    told = [f"{estimators[number].place}: {problem}; say another as attribute `name`" for number, problem in problems]
    if told:
        raise InputError("\n".join(told))


@contextmanager
def _blamed(part: Part | None, given: object) -> Generator[None]:
    """Say that errors are the author's, with the line of his file; those of an object without a file are raised."""
    somebodys = part or _written_in(given)
    if somebodys is None:
        yield
    else:
        with blamed(somebodys):
            yield


def _written_in(given: object) -> Part | None:
    """Return where an object's class or a function is written; None if Python does not know a file."""
    if isinstance(given, _Function):
        given = given.function
    written = given if inspect.isroutine(given) or isinstance(given, type) else type(given)
    try:
        file = inspect.getsourcefile(written)
    except (OSError, TypeError):  # a class of a notebook, or one of C
        return None
    return Part(f"{file}:{called(given)}", Path(file), "") if file else None
