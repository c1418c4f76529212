"""The files of one log that was rotated, given in any order: read one by one, and joined."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import pandas as pd

from analysis.occupancy.logs.clocks import joined_clocks
from analysis.occupancy.logs.log import Log, LogFinding
from analysis.tables.faults import FileError, FileFault


class _Since(Protocol):
    """What was read of a file."""

    @property
    def origin_s(self) -> float:
        """What its times count from, in seconds since 1970; 0 if they are the file's own."""


_R = TypeVar("_R", bound=_Since)


def each_of(paths: Sequence[Path], read: Callable[[Path], _R]) -> Iterator[_R]:
    """Yield what is read of each of the files of one log; faults of several files name theirs.

    Raises
    ------
    FileError
        If a file has faults, two files are the same, or one counts from its own beginning where another has dates.
    """
    seen, dated = dict[bytes, Path](), dict[bool, Path]()
    for path in paths:
        digest = _digest(path) if len(paths) > 1 else b""
        if digest in seen:
            raise FileError([FileFault(0, 0, "", f"is the same as {seen[digest]}", "")], str(path))
        seen[digest] = path
        try:
            log = read(path)
        except FileError as error:
            raise (FileError(error.faults, str(path), error.counted) if len(paths) > 1 else error) from None
        dated.setdefault(log.origin_s != 0.0, path)
        if len(dated) > 1:
            problem = f"its times count from its own beginning, where {dated[True]} has dates"
            raise FileError([FileFault(0, 0, "", problem, "")], str(dated[False]))
        yield log


def joined(logs: Sequence[Log]) -> Log:
    """Return several logs as one: times count from the first origin, and whatever a row says stays its own."""
    origin_s = min(log.origin_s for log in logs)
    tables, after = list[pd.DataFrame](), 0
    for log in logs:
        times = [name for name in ("arrival_s", "departure_s", "stamp_s") if name in log.table]
        table = log.table.assign(**{name: log.table[name] + (log.origin_s - origin_s) for name in times})
        for name in ("rest", "own"):
            if name in table and table[name].max() < len(table):  # numbers of its file, not digests of the row
                table[name] += after
        tables.append(table)
        after += len(table)
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    fields = None
    if all(log.fields is not None for log in logs):
        fields = pd.concat([log.fields for log in logs], ignore_index=True)
    return Log(
        pd.concat([table[shared] for table in tables], ignore_index=True),
        tuple(dict.fromkeys(note for log in logs for note in log.notes)),
        origin_s,
        max(log.resolution_s for log in logs),
        tuple(together([finding for log in logs for finding in log.findings])),
        fields,
        joined_clocks([log.clock for log in logs]),
    )


def together(findings: Sequence[LogFinding]) -> Iterator[LogFinding]:
    """Yield findings of several files, those of one name as one, with the evidence of the first."""
    for name in dict.fromkeys(finding.name for finding in findings):
        alike = [finding for finding in findings if finding.name == name]
        yield replace(alike[0], count=sum(finding.count for finding in alike))


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
