"""What every command of `wsc` shares: how it ends in an error, how it says its result, how it names a folder."""

import functools
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from scenarios.entry import INTERRUPTED, interrupted, interruptible

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
"""The option that every command with a result has."""
_P = ParamSpec("_P")
_T = TypeVar("_T")
_FAULTY = 2
_WIDE = 160
"""Columns of what is printed to a file or another program, which is as wide as it is told."""

app = typer.Typer(
    help="A simulated warehouse-scale computer with a statistician beside it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(function: Callable[_P, None]) -> Callable[_P, None]:
    """Make a function a command of `wsc`, guarded."""
    guarded = guard(function)
    app.command()(guarded)
    return guarded


def guard(function: Callable[_P, None]) -> Callable[_P, None]:
    """Make expected errors of a command, faults above all, end it in a plain line and a status.

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
        except BrokenPipeError:
            raise
        except MemoryError as error:
            typer.echo(f"there is not enough memory: {error}".removesuffix(": "), err=True)
            raise typer.Exit(_FAULTY) from None
        except Exception as error:
            if interrupted():
                raise _interrupted() from None
            if not (isinstance(error, OSError) or expected(error)):
                raise
            typer.echo(_printable(str(error)), err=True)
            raise typer.Exit(_FAULTY) from None

    return guarded


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
    >>> from scenarios.rundir import make_folder
    >>> with folder("--out"):
    ...     make_folder(Path("/dev/null"))
    Traceback (most recent call last):
    scenarios.faults.FaultsError: --out: cannot make a folder at /dev/null: File exists
    """
    from scenarios.faults import Fault, FaultsError
    from scenarios.rundir import FolderError

    try:
        yield
    except FolderError as error:
        raise FaultsError([Fault(option, 0, 0, "", str(error))]) from None


def say(payload: _T, show: Callable[[_T, "Console"], None], json: bool) -> None:
    """Print a payload as JSON or as text.

    Examples
    --------
    >>> say({"margin": 0.03}, lambda payload, console: console.print(payload["margin"]), json=False)
    0.03
    """
    from scenarios.output import dumps

    if json:
        typer.echo(dumps(payload))
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


def expected(error: Exception) -> bool:
    """Return whether the testbed raised the error, to say what the user can mend.

    Examples
    --------
    >>> expected(KeyError("a table"))
    False
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = str(frames[-1].f_globals.get("__name__", "")) if isinstance(error, ValueError) else ""
    ours = {"models", "sim", "analysis", "scenarios"}
    return bool({type(error).__module__.partition(".")[0], raised_in.partition(".")[0]} & ours)
