"""What is wrong with a profile of another tool: line or byte, field, problem and what was found; all at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from models.errors import WscError

_SHOWN = 20
_LONGEST = 60


class FormatFault(NamedTuple):
    """One fault: its place (`12` for a line, `byte 17` for an offset, empty for the file), field, problem, finding."""

    place: str
    field: str
    problem: str
    got: str


class FormatError(WscError):
    """Everything that is wrong with a file; `str()` has one fault a line, of many the first 20 and how many more.

    Examples
    --------
    >>> print(FormatError("cpu.pb", [FormatFault("byte 7", "sample", "should be whole", "cut off")]))
    cpu.pb: byte 7: sample: should be whole, got cut off
    """

    def __init__(self, name: str, faults: Sequence[FormatFault], more: int = 0) -> None:
        self.name, self.faults, self.more = name, tuple(faults), more
        lines = [_line(name, fault) for fault in faults]
        super().__init__("\n".join([*lines, f"{name}: {more} more faults"] if more else lines))


@dataclass(slots=True)
class FaultList:
    """Faults found so far: the first 20 are kept, the others counted."""

    name: str
    """The file."""
    first: list[FormatFault] = field(default_factory=list)
    more: int = 0

    def add(self, place: str, what: str, problem: str, got: object) -> None:
        """Add a fault; what was found is shortened to 60 characters.

        Examples
        --------
        >>> faults = FaultList("a.folded")
        >>> faults.add("3", "count", "should be a whole number", "x" * 99)
        >>> len(faults.first[0].got)
        60
        """
        if len(self.first) == _SHOWN:
            self.more += 1
            return
        text = plain(str(got))
        self.first.append(
            FormatFault(place, what, problem, text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
        )

    def refuse(self) -> None:
        """Raise what was found, if there was anything.

        Raises
        ------
        FormatError
            With every fault.

        Examples
        --------
        >>> FaultList("a.folded").refuse()
        """
        if self.first:
            raise FormatError(self.name, self.first, self.more)


def refusal(name: str, place: str, what: str, problem: str, got: object) -> FormatError:
    """Return the error of a single fault after which reading makes no sense.

    Examples
    --------
    >>> raise refusal("a.pb", "", "file", "should be a profile", "an empty one")
    Traceback (most recent call last):
    analysis.profiling.formats.faults.FormatError: a.pb: file: should be a profile, got an empty one
    """
    faults = FaultList(name)
    faults.add(place, what, problem, got)
    return FormatError(name, faults.first)


def plain(text: str) -> str:
    """Return a text without control characters, which could steer a terminal; each becomes U+FFFD.

    Examples
    --------
    >>> plain("a\\x1b[31mb") == "a\\ufffd[31mb"
    True
    """
    return text if text.isprintable() else "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    hidden = code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in {0x2028, 0x2029}
    return "\ufffd" if hidden else character


def _line(name: str, fault: FormatFault) -> str:
    place = f"{name}:{fault.place}" if fault.place.isdigit() else ": ".join(filter(None, (name, fault.place)))
    what = f"{fault.field}: " if fault.field else ""
    return f"{place}: {what}{fault.problem}, got {fault.got}"
