"""Numbers on the command line, which may not be what they seem: written out, checked, refused with their place."""

import math
from typing import NoReturn

from scenarios.faults import Fault, FaultsError, shown


def share(option: str, text: str) -> float:
    """Return a share between 0 and 1 that is written as `3%` or `0.03`.

    Raises
    ------
    FaultsError
        If the text is no such share.

    Examples
    --------
    >>> share("--margin", "3%"), share("--margin", "0.03")
    (0.03, 0.03)
    """
    per_cent = text.strip().endswith("%")
    value = _float(text.strip().removesuffix("%")) / (100 if per_cent else 1)
    if not 0 < value < 1:
        refuse(option, "should be a share between 0 and 1, such as 3% or 0.03", text)
    return value


def number(option: str, text: str) -> float:
    """Return a finite number above 0.

    Raises
    ------
    FaultsError
        If the text is no such number.

    Examples
    --------
    >>> number("--t", "1.96")
    1.96
    """
    value = _float(text)
    if not 0 < value < math.inf:
        refuse(option, "should be a number greater than 0", text)
    return value


def whole(option: str, text: str) -> int:
    """Return a whole number of at least 1.

    Raises
    ------
    FaultsError
        If the text is no such number.

    Examples
    --------
    >>> whole("--min-instances", "4")
    4
    """
    value = int(text) if text.isascii() and text.isdecimal() else 0
    if value < 1:
        refuse(option, "should be a whole number of at least 1", text)
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def refuse(option: str, problem: str, text: str) -> NoReturn:
    """Raise the fault that an option's text has.

    Examples
    --------
    >>> refuse("--margin", "should be a share", "big")
    Traceback (most recent call last):
    ...
    scenarios.faults.FaultsError: --margin:1:1: should be a share, got "big"
    """
    raise FaultsError([Fault(option, 1, 1, "", problem, shown(text))])
