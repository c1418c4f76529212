"""Errors that whoever runs a command or calls a function can mend; whatever else is raised is a fault of ours."""


class WscError(ValueError):
    """What the user of the testbed can mend: a file, an option, an argument; its message says which, and how.

    Examples
    --------
    >>> raise InputError("servers must be at least 1, got 0")
    Traceback (most recent call last):
    models.errors.InputError: servers must be at least 1, got 0
    """


class InputError(WscError):
    """A value that cannot be used; the message names it, says what it should be and what it is."""
