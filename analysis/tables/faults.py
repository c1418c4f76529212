"""What is wrong with a foreign file: line and column or byte, field, problem and what was found; all at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from models.errors import WscError

PRINTED = 20
"""Faults that a message spells out; the others are counted."""
_LONGEST = 60
"""Characters of what was found that a fault has, where the file is not a table."""
_MOST_KEPT = 50 * PRINTED


class FileFault(NamedTuple):
    """One fault of a file: its place, the field, what is wrong and what was found.

    Examples
    --------
    >>> print(FileFault(3, 2, "quota", "should be a number", '"x"'))
    3:2: quota: should be a number, got "x"
    >>> print(FileFault(0, 0, "sample", "should be whole", "cut off", byte=7))
    byte 7: sample: should be whole, got cut off
    >>> print(FileFault(3, 2, "start_us", "should be a number", '"x"', record="span"))
    span 3: start_us: should be a number, got "x"
    """

    line: int
    """From 1, which is a table's header; 0: the file as a whole, or the byte; or the number of the record."""
    column: int
    """From 1; 0: the line as a whole."""
    field: str
    problem: str
    got: str
    """What was found; empty where the problem says it."""
    byte: int | None = None
    """Offset in files that have no lines."""
    record: str = ""
    """What is counted where a record is no line, such as `span`."""

    def __str__(self) -> str:
        what = f"{self.field}: " if self.field else ""
        return f"{self.place}{what}{self.problem}{', got ' * bool(self.got)}{self.got}"

    @property
    def place(self) -> str:
        """The place with a colon and a blank after it; nothing for the file as a whole."""
        if self.byte is not None:
            return f"byte {self.byte}: "
        if self.record and self.line:
            return f"{self.record} {self.line}: "
        return f"{self.line}:{self.column}: " if self.column else f"{self.line}: " if self.line else ""


class FileError(WscError):
    """A file cannot be used; `faults` holds every fault in the order of the file.

    Examples
    --------
    >>> raise FileError([FileFault(0, 0, "sample", "should be whole", "cut off", byte=7)], "cpu.pb")
    Traceback (most recent call last):
    analysis.tables.faults.FileError: cpu.pb: byte 7: sample: should be whole, got cut off
    """

    def __init__(self, faults: Sequence[FileFault], file: str = "", counted: int = 0) -> None:
        self.faults = tuple(sorted(faults, key=_in_file))
        self.file = file
        """Its name, where the reader knows it."""
        self.counted = counted
        """Faults beyond these, of which only the number is known."""
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return one line per fault, the first twenty, and how many more there are."""
        if not self.file:
            return [*map(str, self.printed), *([f"and {self.unprinted} more"] if self.unprinted else [])]
        lines = [f"{self.file}:{'' if fault.line and not fault.record else ' '}{fault}" for fault in self.printed]
        others = f"{self.file}: {self.unprinted} more fault{'s' * (self.unprinted > 1)}"
        return [*lines, *([others] if self.unprinted else [])]

    @property
    def printed(self) -> tuple[FileFault, ...]:
        """The faults that are spelled out."""
        return self.faults[:PRINTED]

    @property
    def unprinted(self) -> int:
        """How many faults are only counted."""
        return len(self.faults) - len(self.printed) + self.counted


@dataclass(slots=True)
class Faults:
    """The faults of one file, found in any order: the first thousand are remembered, all are counted.

    Examples
    --------
    >>> faults = Faults()
    >>> faults.add(FileFault(7, 1, "row", "should have 20 fields", "3"))
    >>> faults.add(FileFault(3, 6, "cpus", "should be a number", '"x"'))
    >>> faults.printed()[0].line, faults.count
    (3, 2)
    """

    file: str = ""
    """Its name, for the error."""
    count: int = 0
    _first: list[FileFault] = field(default_factory=list)

    def add(self, fault: FileFault) -> None:
        """Count a fault, and remember it if it is one of the first."""
        self.count += 1
        if len(self._first) < _MOST_KEPT:
            self._first.append(fault)

    def tell(self, what: str, problem: str, got: object, *, line: int = 0, byte: int | None = None) -> None:
        """Add the fault of a field; what was found is shortened to 60 characters, none of which steers a terminal."""
        self.add(_told(what, problem, got, line, byte))

    def printed(self) -> tuple[FileFault, ...]:
        """Return the faults that are spelled out, in the order of the file."""
        return tuple(self._in_order()[:PRINTED])

    def unprinted(self) -> tuple[int, FileFault] | None:
        """Return how many faults are only counted, and the first of them; None if there is none."""
        return (self.count - PRINTED, self._in_order()[PRINTED]) if self.count > PRINTED else None

    def refuse(self) -> None:
        """Raise what was found, if there was anything."""
        if self.count:
            raise FileError(self._first, self.file, self.count - len(self._first))

    def _in_order(self) -> list[FileFault]:
        return sorted(self._first, key=_in_file)


def refusal(file: str, what: str, problem: str, got: object, *, line: int = 0, byte: int | None = None) -> FileError:
    """Return the error of a single fault after which reading makes no sense."""
    return FileError([_told(what, problem, got, line, byte)], file)


def plain(text: str) -> str:
    """Return a text without control characters, which could steer a terminal; each becomes U+FFFD."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _told(what: str, problem: str, got: object, line: int, byte: int | None) -> FileFault:
    text = plain(str(got))
    return FileFault(line, 0, what, problem, text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…", byte)


def _in_file(fault: FileFault) -> tuple[int, int, int]:
    return fault.line, fault.column, fault.byte or 0


def _visible(character: str) -> str:
    code = ord(character)
    hidden = code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in {0x2028, 0x2029}
    return "\ufffd" if hidden else character
