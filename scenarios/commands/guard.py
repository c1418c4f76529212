"""What every command of `wsc` shares: how it ends in an error, how it says its result, how it names a folder."""

import errno
import functools
import inspect
import os
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import typer
from typer.models import OptionInfo

from models.errors import ArgumentError, WscError
from scenarios.commands.entry import interrupted, interruptible, status
from scenarios.commands.options import with_typed_defaults
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.options import Refused

if TYPE_CHECKING:
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
    """

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            _refuse(function, kwargs)
            with interruptible():
                function(*args, **kwargs)
        except ArgumentError as error:
            option = option_names(function).get(error.argument, error.argument)
            got = "" if error.got is None else shown(error.got)
            typer.echo(_printable(str(Fault(option, 1, 1, "", error.problem, got))), err=True)
            raise typer.Exit(_FAULTY) from None
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
            if isinstance(error, FaultsError):
                error = _of_options(error, function)
            if isinstance(error, WscError) or (
                isinstance(error, OSError) and _mendable(error, [*args, *kwargs.values()])
            ):
                typer.echo(_printable(_in_words(error, [kwargs.get("out"), *args, *kwargs.values()])), err=True)
                raise typer.Exit(_FAULTY) from None
            traceback.print_exc()
            typer.echo(_BUG, err=True)
            raise typer.Exit(_OURS) from None

    vars(guarded)["__signature__"] = with_typed_defaults(function)
    return guarded


def _refuse(function: Callable[..., None], given: Mapping[str, object]) -> None:
    """Raise all that is wrong with the texts of options."""
    refused = {name: value for name, value in given.items() if isinstance(value, Refused)}
    if refused:
        options = option_names(function)
        raise FaultsError(replace(value.fault, file=options[name]) for name, value in refused.items())


def _of_options(error: FaultsError, function: Callable[..., None]) -> FaultsError:
    """Return faults with those of arguments said of the command's options."""
    options = option_names(function)
    return FaultsError(
        fault if fault.file else _of_option(fault, options.get(fault.field, fault.field)) for fault in error.faults
    )


def _of_option(fault: Fault, option: str) -> Fault:
    """Return the fault of an argument as that of its option, which a remedy may name, too."""
    return replace(
        fault, file=option, field="", problem=fault.problem.replace(f"give {fault.field} ", f"give {option} ")
    )


def option_names(function: Callable[..., None]) -> dict[str, str]:
    """Return how the command line calls each parameter of a command.

    Examples
    --------
    >>> from typing import Annotated
    >>> def predict(*, origin: Annotated[str, typer.Option("--from")], to: str) -> None: ...
    >>> option_names(predict)
    {'origin': '--from', 'to': '--to'}
    """
    names = {}
    for name, parameter in inspect.signature(function).parameters.items():
        options = [mark for mark in getattr(parameter.annotation, "__metadata__", ()) if isinstance(mark, OptionInfo)]
        # In annotations Typer takes the first name for a default.
        words = [word for option in options for word in (option.default, *(option.param_decls or ()))]
        declared = [word for word in words if isinstance(word, str) and word.startswith("--")]
        names[name] = next(iter(declared), f"--{name.replace('_', '-')}")
    return names


def _mendable(error: Exception, given: Sequence[object]) -> bool:
    """Return whether an error is the system's, of a path that the user gave or of none, such as a full disk."""
    if not isinstance(error, OSError):
        return False
    named = [Path(os.fsdecode(name)).absolute() for name in (error.filename, error.filename2) if _is_path(name)]
    if not named or error.errno in _FULL:
        return True
    paths = [Path(value).absolute() for value in _paths(given)]
    return any(place == path or path in place.parents or place in path.parents for place in named for path in paths)


def _in_words(error: Exception, given: Sequence[object]) -> str:
    """Return what an error says; of a folder that is full or may not be written also which, and how much is free."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno not in _FULL:
        return _of_file(error)
    reason = os.strerror(error.errno)
    folders = [Path(value) for value in _paths(given) if Path(value).is_dir()]
    named = [Path(os.fsdecode(error.filename)).absolute()] if _is_path(error.filename) else []
    place = next((path for path in folders if any(path.absolute() in file.parents for file in named)), None)
    place = place or next((file.parent for file in named if file.parent.is_dir()), next(iter(folders), None))
    if place is None:
        return reason
    free = f"; {disk_usage(place).free / 1e6:,.1f} MB are free there" if error.errno == errno.ENOSPC else ""
    return f"{place}: {reason}{free}"


def _of_file(error: OSError) -> str:
    """Return what the system says of a file; of one that is not yet whole, what it says of its folder."""
    if error.errno is None or not _is_path(error.filename):
        return str(error)
    file = Path(os.fsdecode(error.filename))
    place = file.parent if file.name.startswith(".") and file.suffix == ".partial" else file
    return f"{place}: {error.strerror}"


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes)


def _paths(given: Iterable[object]) -> Iterator[str]:
    """Yield the values of options that may be paths, those in lists too."""
    for value in given:
        if isinstance(value, str | Path):
            yield str(value)
        elif isinstance(value, (list, tuple)):
            yield from _paths(value)


def _printable(text: str) -> str:
    """Return a text whose control characters, which names in files may hold, do nothing to a terminal."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else f"\\x{ord(character):02x}"
        for character in text
    )


def _interrupted() -> typer.Exit:
    """Say that somebody interrupted, and return how to end."""
    typer.echo("interrupted", err=True)
    return typer.Exit(status())


@contextmanager
def folder(option: str) -> Generator[None]:
    """Say which option names a folder that cannot be made."""
    from scenarios.files.faults import Fault, FaultsError
    from scenarios.runs.rundir import FolderError

    try:
        yield
    except FolderError as error:
        raise FaultsError([Fault(option, 0, 0, "", str(error))]) from None


def answer(conclusion: "Conclusion", json: bool) -> None:
    """Print what was concluded, as JSON or as text."""
    answer_each([conclusion], json)


def answer_each(conclusions: Sequence["Conclusion"], json: bool) -> None:
    """Print one conclusion, or those of a sweep as one value."""
    from scenarios.views.terminal import show

    if json:
        from scenarios.views.records import texts

        if len(conclusions) == 1:
            value = conclusions[0].records()
        else:
            value = {"kind": "sweep", "runs": [conclusion.payload() for conclusion in conclusions]}
        for text in texts(value):
            typer.echo(text, nl=False)
        typer.echo()
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    for conclusion in conclusions:
        show(conclusion.section(), console)
