"""Parts that other people write: an object in a Python file or module, named as ``mine.py:Mine``.

What a part does wrong is its author's to mend: it is told with the line of the part's own file.
"""

import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType, ModuleType
from typing import TextIO, cast

from models.errors import WscError


class PartError(WscError):
    """A part that cannot be loaded, or that raised an error of its own."""


_IMPORTED: dict[str, str] = {}
"""Digests of the files of modules, as they were when the modules were imported for a part."""


@dataclass(frozen=True, slots=True)
class Part:
    """Where somebody's part is, and what its file held when it was named."""

    reference: str
    """As ``file.py:Name`` or ``package.module:Name``; files by their absolute path, for other processes."""
    file: Path
    sha256: str
    """Of the bytes of the file, not of what it imports."""

    @property
    def name(self) -> str:
        """The object in the file."""
        return self.reference.rpartition(":")[2]

    def load(self) -> object:
        """Return the object.

        Raises
        ------
        PartError
            If its file cannot be run, or holds no such object.
        """
        return _object(self)


def is_part(text: str) -> bool:
    """Return whether a name is that of somebody's part, not of one of ours.

    Examples
    --------
    >>> is_part("mine.py:Mine"), is_part("adjusted")
    (True, False)
    """
    return ":" in text


def called(given: object) -> str:
    """Return the name of an object: its attribute `name` if it has one, else that of its class or function.

    Examples
    --------
    >>> called(called), called(0)
    ('called', 'int')
    """
    return str(getattr(given, "name", None) or getattr(given, "__name__", type(given).__name__))


def name_problems(named: Sequence[tuple[str, str]], shipped: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the problem of every part whose name is that of a shipped one, or of one before it.

    Parameters
    ----------
    named : where each part is, as ``mine.py:Mine``, and its name
    shipped : names that are ours

    Examples
    --------
    >>> [problem for _, problem in name_problems([("a.py:Mine", "Mine"), ("b.py:Mine", "Mine")], ["adjusted"])]
    ['should have a name of its own, a.py:Mine is called Mine, too']
    >>> list(name_problems([("mine.py:adjusted", "adjusted")], ["adjusted"]))
    [(0, 'should have a name of its own, adjusted is one of ours')]
    """
    places = dict[str, str]()
    for number, (place, name) in enumerate(named):
        if name in shipped:
            yield number, f"should have a name of its own, {name} is one of ours"
        elif name in places:
            yield number, f"should have a name of its own, {places[name]} is called {name}, too"
        places.setdefault(name, place)


def definition(function: Callable[..., object]) -> str:
    """Return file and line of a function, or of what a class or an object does when it is called.

    Examples
    --------
    >>> definition(definition)
    '...parts.py:...'
    """
    written = function
    if not inspect.isroutine(function):
        begin = function.__init__ if isinstance(function, type) else type(function).__call__
        written = begin if isinstance(begin, FunctionType) else function
    try:
        return f"{inspect.getsourcefile(written)}:{inspect.getsourcelines(written)[1]}"
    except (OSError, TypeError):
        return "an object without a file"


def check_parameters(function: Callable[..., object], *arguments: str) -> None:
    """Refuse somebody's function, method or class that cannot be called with these arguments.

    Parameters
    ----------
    arguments : names that the message has; they are given by position

    Raises
    ------
    PartError
        With the line of the function.

    Examples
    --------
    >>> import statistics
    >>> check_parameters(statistics.median, "data")
    >>> check_parameters(statistics.median, "data", "weights")
    Traceback (most recent call last):
    models.code.parts.PartError: ...statistics.py:...: median: should be a function of (data, weights), got (data)
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C: what it takes is known when it is called
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        got = f"({', '.join(signature.parameters)})"
        got = f"a class that takes {got}" if isinstance(function, type) else got
        name = getattr(function, "__qualname__", type(function).__qualname__)
        wanted = f"should be a function of ({', '.join(arguments)})"
        raise PartError(f"{definition(function)}: {name}: {wanted}, got {got}") from None


def check_method(owner: object, name: str, *arguments: str) -> None:
    """Refuse a method of somebody's class or object that cannot be called with these arguments.

    Raises
    ------
    PartError
        With the line of the method.

    Examples
    --------
    >>> class Mine:
    ...     def estimate(self, experiment): ...
    ...     @staticmethod
    ...     def guess(experiment): ...
    >>> check_method(Mine, "estimate", "experiment")
    >>> check_method(Mine, "guess", "experiment")
    >>> check_method(Mine(), "estimate", "experiment")
    """
    bound = not isinstance(owner, type) or isinstance(inspect.getattr_static(owner, name), (staticmethod, classmethod))
    check_parameters(getattr(owner, name), *() if bound else ("self",), *arguments)


def part(text: str, folder: Path = Path()) -> Part:
    """Return the part that a text names.

    Parameters
    ----------
    text : ``file.py:Name`` or ``package.module:Name``
    folder : to which the file's path is relative

    Raises
    ------
    PartError
        If the text has another form, or there is no such file or module.

    Examples
    --------
    >>> part("statistics:median").name
    'median'
    >>> part("mine.py:")
    Traceback (most recent call last):
    models.code.parts.PartError: mine.py:: should be file.py:Name or package.module:Name
    """
    where, _, name = text.strip().rpartition(":")
    if not where or not name.isidentifier():
        raise PartError(f"{text}: should be file.py:Name or package.module:Name")
    file = (folder / where).absolute() if where.endswith(".py") else _module_file(where, text)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise PartError(f"{text}: {file} cannot be read: {error.strerror}") from None
    place = str(file) if where.endswith(".py") else where
    return Part(f"{place}:{name}", file, hashlib.sha256(content).hexdigest())


@contextmanager
def blamed(somebodys: Part) -> Generator[None]:
    """Say of every error that a part raises that it is its author's, with the line of his file.

    Parameters
    ----------
    somebodys : the part that is called meanwhile

    Raises
    ------
    PartError
        In place of any error but a `WscError`, which says itself what can be mended.

    Examples
    --------
    >>> with blamed(part("statistics:median")):
    ...     part("statistics:median").load()([])
    Traceback (most recent call last):
    models.code.parts.PartError: ...statistics.py:...: StatisticsError: no median for empty data
    """
    try:
        with _aside():  # what it prints is not part of an answer
            yield
    except WscError:
        raise
    except (Exception, SystemExit) as error:  # a part that ends the process would end it without an answer
        raise PartError(f"{_place(somebodys.file, error)}: {type(error).__name__}: {error}") from error


class _Aside:
    """Standard output, which to those that call a part is the standard error."""

    def __init__(self, output: TextIO) -> None:
        self.output, self.calls = output, 0

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr if _CALLING.get() else self.output, name)


_CALLING = ContextVar("_CALLING", default=False)
"""Whether a part is being called, in this thread."""
_EXCHANGING = Lock()


@contextmanager
def _aside() -> Generator[None]:
    """Let what is printed meanwhile go to the standard error; what other threads print goes where it went."""
    with _EXCHANGING:
        aside = sys.stdout if isinstance(sys.stdout, _Aside) else _Aside(sys.stdout)
        aside.calls += 1
        sys.stdout = cast(TextIO, aside)
    before = _CALLING.set(True)
    try:
        yield
    finally:
        _CALLING.reset(before)
        with _EXCHANGING:
            aside.calls -= 1
            if not aside.calls and cast(object, sys.stdout) is aside:
                sys.stdout = aside.output


def _module_file(name: str, text: str) -> Path:
    """Return the file of an importable module."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise PartError(f"{text}: there is no module {name}: {error}") from None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise PartError(f"{text}: there is no module {name} in Python that can be imported from here")
    return Path(spec.origin)


@lru_cache
def _object(somebodys: Part) -> object:
    """Return a part's object; its file runs once in a process."""
    with blamed(somebodys):
        module = _module(somebodys)
    if not hasattr(module, somebodys.name):
        public = ", ".join(sorted(name for name in vars(module) if not name.startswith("_"))) or "nothing"
        raise PartError(f"{somebodys.file}: holds no {somebodys.name}, but {public}")
    return getattr(module, somebodys.name)


def _module(somebodys: Part) -> ModuleType:
    """Return the module of a part; a file becomes one of its own, whatever its name."""
    where = somebodys.reference.rpartition(":")[0]
    content = somebodys.file.read_bytes()
    if not where.endswith(".py"):
        module = importlib.import_module(where)
        if somebodys.sha256 != _IMPORTED.setdefault(where, hashlib.sha256(content).hexdigest()):
            raise PartError(f"{somebodys.file}: has changed since {where} was imported: start Python anew")
        return module
    digest = hashlib.sha256(f"{somebodys.file} {somebodys.sha256}".encode()).hexdigest()
    name = f"wsc_part_{somebodys.file.stem}_{digest[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if hashlib.sha256(content).hexdigest() != somebodys.sha256:
        raise PartError(f"{somebodys.file}: has changed while it was in use: start again")
    module = ModuleType(name)
    module.__file__ = str(somebodys.file)
    sys.modules[name] = module
    try:
        # From its bytes: kept bytecode may be that of an older file of the same size and second.
        exec(compile(content, str(somebodys.file), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _place(file: Path, error: BaseException) -> str:
    """Return the last line of a file that an error went through, or of what was called wrongly; else the file."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    called = re.match(r"([\w.<>]+)\(\) ", str(error)) if isinstance(error, TypeError) else None
    line = lines[-1] if lines else called and _line(file, called[1])
    return f"{file}:{line}" if line else str(file)


def _line(file: Path, name: str) -> int | None:
    """Return the line where a file defines a function or class of this qualified name."""
    try:
        codes = [compile(file.read_bytes(), str(file), "exec")]
    except OSError:  # a cell of a notebook
        return None
    for code in codes:  # it grows
        if code.co_qualname == name:
            return code.co_firstlineno
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return None
