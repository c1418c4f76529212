"""What every command of `wsc` shares: how it ends in an error, how it says its result, how it names a folder."""

import errno
import functools
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import typer

from models.errors import WscError
from scenarios.commands.interrupts import INTERRUPTED, interrupted, interruptible

if TYPE_CHECKING:
    from rich.console import Console

    from scenarios.views.conclusion import Conclusion

_P = ParamSpec("_P")
_T = TypeVar("_T")
_FAULTY = 2
_OURS = 70
"""Exit status of a fault of ours, EX_SOFTWARE of sysexits."""
_BUG = (
    "this is a fault of wsc, not of your input: please report it with the command, the lines above and what "
    "`python -m pip list` prints"
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}
"""Errors of the system that whoever owns it can mend, whatever file they name."""
_WIDE = 160
"""Columns of what is printed to a file or another program, which is as wide as it is told."""


def guard(function: Callable[_P, None]) -> Callable[_P, None]:
    """Make what the user can mend end a command in a plain line and status 2, and faults of ours in a traceback and 70.

    The user can mend a `WscError`, and an error of the system about a path that was given or about no path at all.

    Examples
    --------
    >>> @guard
    ... def double(text: str) -> None:
    ...     print(2 * float(text))
    >>> double("1.5")
    3.0
    """

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            with interruptible():
                function(*args, **kwargs)
        except KeyboardInterrupt:
            raise _interrupted() from None
        except (BrokenPipeError, typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except MemoryError as error:
            typer.echo(f"there is not enough memory: {error}".removesuffix(": "), err=True)
            raise typer.Exit(_FAULTY) from None
        except Exception as error:
            if interrupted():
                raise _interrupted() from None
            if isinstance(error, WscError) or (
                isinstance(error, OSError) and _mendable(error, [*args, *kwargs.values()])
            ):
                typer.echo(_printable(str(error)), err=True)
                raise typer.Exit(_FAULTY) from None
            traceback.print_exc()
            typer.echo(_BUG, err=True)
            raise typer.Exit(_OURS) from None

    return guarded


def _mendable(error: Exception, given: Sequence[object]) -> bool:
    """Return whether an error is the system's, of a path that the user gave or of none, such as a full disk."""
    if not isinstance(error, OSError):
        return False
    named = [Path(os.fsdecode(name)).absolute() for name in (error.filename, error.filename2) if _is_path(name)]
    if not named or error.errno in _FULL:
        return True
    paths = [Path(each).absolute() for each in _paths(given)]
    return any(one == path or path in one.parents or one in path.parents for one in named for path in paths)


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes)


def _paths(given: Iterable[object]) -> Iterator[str]:
    """Yield the values of options that may be paths, those in lists too."""
    for value in given:
        if isinstance(value, str | Path):
            yield str(value)
        elif isinstance(value, list | tuple):
            yield from _paths(value)


def _printable(text: str) -> str:
    """Return a text whose control characters, which names in files may hold, do nothing to a terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else f"\\x{ord(each):02x}" for each in text)


def _interrupted() -> typer.Exit:
    """Say that somebody interrupted, and return how to end."""
    typer.echo("interrupted", err=True)
    return typer.Exit(INTERRUPTED)


@contextmanager
def folder(option: str) -> Iterator[None]:
    """Say which option names a folder that cannot be made.

    Raises
    ------
    FaultsError
        In place of a FolderError.

    Examples
    --------
    >>> from pathlib import Path
    >>> from scenarios.runs.rundir import make_folder
    >>> with folder("--out"):
    ...     make_folder(Path("/dev/null"))
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: --out: cannot make a folder at /dev/null: File exists
    """
    from scenarios.files.faults import Fault, FaultsError
    from scenarios.runs.rundir import FolderError

    try:
        yield
    except FolderError as error:
        raise FaultsError([Fault(option, 0, 0, "", str(error))]) from None


@contextmanager
def named_options() -> Iterator[None]:
    """Say which option an argument that cannot be used was given by: ``instruction_ratio`` by ``--instruction-ratio``.

    Raises
    ------
    FaultsError
        In place of an ArgumentError.
    """
    from models.errors import ArgumentError
    from scenarios.files.options import refuse

    try:
        yield
    except ArgumentError as error:
        refuse(f"--{error.argument.replace('_', '-')}", error.problem, error.got)


def answer(conclusion: "Conclusion", json: bool) -> None:
    """Print what was concluded, as JSON or as text."""
    from scenarios.views.text import show

    say(conclusion, lambda said, console: show(said.section(), console), json)


def say(payload: _T, show: Callable[[_T, "Console"], None], json: bool) -> None:
    """Print a payload as JSON or as text.

    Examples
    --------
    >>> say({"margin": 0.03}, lambda payload, console: console.print(payload["margin"]), json=False)
    0.03
    """
    from scenarios.views.conclusion import Conclusion
    from scenarios.views.output import dumps

    if json:
        typer.echo(dumps(payload.payload() if isinstance(payload, Conclusion) else payload))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    show(payload, console)


def say_each(payloads: list[_T], show: Callable[[_T, "Console"], None], json: bool) -> None:
    """Print one payload, or those of a sweep as one value.

    Examples
    --------
    >>> say_each([1, 2], lambda payload, console: console.print(payload), json=False)
    1
    2
    """
    if len(payloads) == 1:
        say(payloads[0], show, json)
        return

    def show_all(sweep: dict[str, Any], console: "Console") -> None:
        for payload in sweep["runs"]:
            show(payload, console)

    say(dict[str, Any](kind="sweep", runs=payloads), show_all, json)
