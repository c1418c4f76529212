"""Errors that whoever runs a command or calls a function can mend; whatever else is raised is a fault of ours."""

from collections.abc import Mapping


class WscError(ValueError):
    """What the user of the testbed can mend: a file, an option, an argument; its message says which, and how.

    An error of any subclass survives pickling with all that it holds, so that other processes can raise it.

    Examples
    --------
    >>> raise InputError("servers must be at least 1, got 0")
    Traceback (most recent call last):
    models.errors.InputError: servers must be at least 1, got 0
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[WscError], args: tuple[object, ...], state: Mapping[str, object]) -> WscError:
    """Return an error as it was, whatever its class is made of."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class InputError(WscError):
    """A value that cannot be used; the message names it, says what it should be and what it is."""


class ArgumentError(InputError):
    """An argument that cannot be used; a command says it of the option of the same name.

    Examples
    --------
    >>> raise ArgumentError("method", "there is no such method", "publish")
    Traceback (most recent call last):
    models.errors.ArgumentError: method: there is no such method, got 'publish'
    """

    def __init__(self, argument: str, problem: str, got: str | None = None) -> None:
        super().__init__(f"{argument}: {problem}" + ("" if got is None else f", got {got!r}"))
        self.argument, self.problem, self.got = argument, problem, got
