"""Faults of what a user wrote: where, in which field, what is wrong and what was found; all reported at once."""

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from analysis.tables.faults import FileError
from models.code.parts import PartError
from models.errors import WscError

if TYPE_CHECKING:
    from analysis.tables.cells import Source

_LONGEST = 60
_WIDEST = 400
"""Characters of what was found that a fault's line has."""


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault: its place (line and column from 1; line 0: the file as a whole), field, problem and what was found.

    An option of the command line is a place of its own; its line is which of that name. A fault of an argument has no
    file, and its field is the argument; a command says it of the option of the same name.

    Examples
    --------
    >>> print(Fault("day.yaml", 3, 13, "fleet.machines", "should be a whole number", shown("3")))
    day.yaml:3:13: fleet.machines: should be a whole number, got "3"
    >>> print(Fault("day.yaml", 0, 0, "", "is not there"))
    day.yaml: is not there
    >>> print(Fault("--days", 1, 1, "", "should be a number greater than 0", shown("0")))
    --days: should be a number greater than 0, got "0"
    >>> print(Fault("--seed", 1, 1, "seed", "should be a whole number", "1.5"))
    --seed: should be a whole number, got 1.5
    >>> print(Fault("", 0, 0, "days", "should be a number greater than 0", "0"))
    days: should be a number greater than 0, got 0
    >>> print(Fault("spans.json", 3, 1, "start_us", "should be a number", shown("soon"), record="span"))
    spans.json: span 3: start_us: should be a number, got "soon"
    """

    file: str
    line: int
    column: int
    field: str
    problem: str
    got: str = ""
    record: str = ""
    """What `line` counts where records are no lines, such as `span`."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        if self.record and self.line:
            place = f"{self.file}: {self.record} {self.line}"
        if self.file.startswith("--"):
            place = f"{self.file}:{self.line}" if self.line > 1 else self.file
        field = f"{self.field}: " if self.field and self.file != f"--{self.field}" else ""
        got = f", got {_cut(self.got, _WIDEST)}" if self.got else ""
        return f"{place}: {field}{self.problem}{got}".removeprefix(": ")


class FaultsError(WscError):
    """Everything that is wrong with the input, sorted by place; `str()` has a line for each, and one for alike headers.

    Examples
    --------
    >>> raise FaultsError([Fault("b.yaml", 2, 1, "seed", "is said twice"), Fault("b.yaml", 1, 1, "", "is empty")])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: b.yaml:1:1: is empty
    b.yaml:2:1: seed: is said twice
    >>> raise FaultsError([Fault(file, 1, 1, "job", "column is missing") for file in ("a.csv", "b.csv")])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: a.csv:1:1: job: column is missing (also in b.csv)
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted(set(faults))
        alike = dict[tuple[object, ...], list[Fault]]()
        for fault in self.faults:
            place = () if fault.line == 1 and not fault.file.startswith("--") else (fault.file,)
            alike.setdefault((*place, *astuple(fault)[1:]), []).append(fault)
        super().__init__("\n".join(map(_of_files, alike.values())))


def _of_files(faults: Sequence[Fault]) -> str:
    """Return in a line what is wrong alike with the headers of some files."""
    others = ", ".join(fault.file for fault in faults[1:])
    return f"{faults[0]} (also in {others})" if others else str(faults[0])


@contextmanager
def faults_in(source: "Source") -> Generator[None]:
    """Turn whatever is wrong with a file, or another table, into located faults.

    Parameters
    ----------
    source : what is read or judged meanwhile

    Raises
    ------
    FaultsError
        In place of a FileError, an OSError or another WscError; faults that have their places keep them, and so do
        those of somebody's part.

    Examples
    --------
    >>> from pathlib import Path
    >>> from models.errors import InputError
    >>> with faults_in(Path("jobs.csv")):
    ...     raise InputError("holds no jobs")
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: jobs.csv: holds no jobs
    """
    try:
        yield
    except (FaultsError, PartError):
        raise
    except FileError as error:
        raise FaultsError(_of_file(_name_of(source), error)) from error
    except OSError as error:
        raise FaultsError([Fault(_name_of(source), 0, 0, "", "cannot be read", str(error.strerror))]) from error
    except WscError as error:
        raise FaultsError([Fault(_name_of(source), 0, 0, "", str(error))]) from error


def _name_of(source: "Source") -> str:
    from analysis.tables.cells import name_of

    return name_of(source)


def _of_file(name: str, error: FileError) -> Iterator[Fault]:
    for fault in error.printed:
        yield Fault(error.file or name, *fault[:5], record=fault.record)
    if error.unprinted:
        first = error.faults[len(error.printed)]
        yield Fault(error.file or name, first.line, first.column, "", and_more(error.unprinted), record=first.record)


def and_more(count: int) -> str:
    """Return what is said in place of so many further faults."""
    return f"and {count} more fault{'s' * (count > 1)} from here on"


def shown(value: object) -> str:
    """Return a value as a user would write it, shortened to 60 characters.

    Examples
    --------
    >>> shown(True), shown("3"), shown(None), shown({"a": 1}), shown(1.0)
    ('true', '"3"', 'null', '{"a": 1}', '1.0')
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _cut(text, _LONGEST)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
