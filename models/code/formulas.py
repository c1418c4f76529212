"""Formulas that other people write: functions of plain numbers, compiled for the kernels that call them.

A formula has the parameters that its protocol names, in that order, all numbers, and returns a number. It is compiled
once and kept on disk beside its file. A kernel takes it as a first-class function, and is not compiled anew for it.
"""

import builtins
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from dis import get_instructions
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TypeAlias

from models.arrays import Floats
from models.code.parts import Part, PartError, blamed, definition

NumberFunction: TypeAlias = Callable[..., float]


@dataclass(frozen=True, slots=True)
class Formula:
    """Somebody's function of plain numbers, with the parameters that it should have."""

    part: Part
    parameters: tuple[str, ...]

    @property
    def function(self) -> FunctionType:
        """The function as it was written.

        Raises
        ------
        PartError
            If it cannot be loaded, or is no function of these parameters.
        """
        written = self.part.load()
        function = getattr(written, "py_func", written)
        wanted = f"should be a function of ({', '.join(self.parameters)})"
        if not isinstance(function, FunctionType):
            where, got = str(self.part.file), type(written).__name__
            if isinstance(written, type):
                where, got = definition(written), "a class"
            raise PartError(f"{where}: {self.part.name}: {wanted}, got {got}")
        parameters = tuple(inspect.signature(function).parameters)
        if parameters != self.parameters:
            line = function.__code__.co_firstlineno
            raise PartError(f"{self.part.file}:{line}: {self.part.name}: {wanted}, got ({', '.join(parameters)})")
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        around = {name: cell.cell_contents for name, cell in cells if cell != CellType()}  # an empty one has none
        for problem in filter(None, map(_problem, _looked_up(function.__code__, function.__globals__, around))):
            raise PartError(f"{self.part.file}:{function.__code__.co_firstlineno}: {self.part.name}: {problem}")
        return function

    def has(self, mark: str) -> bool:
        """Return whether the function carries a mark, an attribute that is true, such as ``mine.preemptive = True``.

        Raises
        ------
        PartError
            If the attribute is neither true nor false, as "no" is.
        """
        marked = getattr(self.part.load(), mark, False)
        if not isinstance(marked, bool):
            problem = f"{self.part.name}.{mark} should be True or False, got {marked!r}"
            raise PartError(f"{self.part.file}:{self.function.__code__.co_firstlineno}: {problem}")
        return marked

    def compiled(self) -> NumberFunction:
        """Return the function, compiled; out of its cache on disk if its file is as it was.

        Raises
        ------
        PartError
            If it cannot be loaded or compiled.
        """
        return _compiled(self)

    def fault(self, call: Floats, wanted: str) -> PartError:
        """Return what the function did wrong when compiled code called it: its own error, or a wrong answer.

        Parameters
        ----------
        call : its arguments, perhaps more numbers, and last what it returned; NaN if it raised an error
        wanted : what it should return
        """
        arguments = dict(zip(self.parameters, call[:-1].tolist(), strict=False))
        try:
            with blamed(self.part):
                self.function(**arguments)  # in Python, where an error has a line
        except PartError as error:
            return error
        called = ", ".join(f"{name}={value:.6g}" for name, value in arguments.items())
        line = self.function.__code__.co_firstlineno
        problem = f"{wanted}, got {call[-1]:.6g}"
        return PartError(f"{self.part.file}:{line}: {self.part.name}({called}): {problem}")


@lru_cache
def _compiled(formula: Formula) -> NumberFunction:
    """Return a formula, compiled once in a process."""
    from models.code.compiled import NoNumberError, of_numbers

    function = formula.function
    try:
        return of_numbers(function, len(formula.parameters))
    except NoNumberError as error:
        raise PartError(f"{formula.part.file}:{_raised(function.__code__)}: {formula.part.name}: {error}") from error
    except Exception as error:  # Numba's own are not all of one class
        line = getattr(getattr(error, "loc", None), "line", None) or function.__code__.co_firstlineno
        where = f"{formula.part.file}:{line}: {formula.part.name}"
        raise PartError(f"{where}: cannot be compiled: {_reason(error)}") from error


def _raised(code: CodeType) -> int:
    """Return the line where a function raises an error first, or else its own."""
    raising = (step.positions for step in get_instructions(code) if step.opname == "RAISE_VARARGS")
    return next((place.lineno for place in raising if place and place.lineno), code.co_firstlineno)


_RANDOM = ("random.", "numpy.random.")
"""How the names of modules begin, each with a dot behind it, that a formula may not use."""
_PLAIN = {
    "No conversion from none": "it should return a number wherever it ends",
    "(IMPORT_NAME)": "it should import nothing: import above it, in the file",
}
"""What a compiler's own words mean."""


def _looked_up(code: CodeType, module: Mapping[str, object], around: Mapping[str, object]) -> Iterator[object]:
    """Yield what code looks up by name in its module and in functions around it, and in other modules by attribute.

    Attributes of anything else, and parameters, are only called as they are.
    """
    owner: object = None
    for step in get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            owner = module.get(step.argval, getattr(builtins, step.argval, None))
            yield owner
        elif step.opname == "LOAD_DEREF":
            owner = around.get(step.argval)
            yield owner
        elif step.opname in {"LOAD_ATTR", "LOAD_METHOD"} and isinstance(owner, ModuleType):
            owner = getattr(owner, step.argval, None)
            yield owner
        else:
            owner = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _looked_up(constant, module, around)


def _problem(value: object) -> str:
    """Return why a formula may not use what it looks up; nothing if it may."""
    owner = getattr(value, "__self__", None)  # of a generator's method the generator
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    if any(f"{name}.".startswith(_RANDOM) for name in (module, type(value).__module__, type(owner).__module__)):
        return "should draw no random numbers: its answers must be the same in every run"
    return "should print nothing: compiled code would print it into the answer" if value is print else ""


def _reason(error: Exception) -> str:
    """Return what a compiler says: frequent errors in plain words, else its first line without its steps and names."""
    plain = next((words for part, words in _PLAIN.items() if part in str(error)), None)
    if plain is not None:
        return plain
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith("Failed in")), type(error).__name__)
    return re.split(r" for '\$|, defined at|\.? Raised from", reason)[0]
