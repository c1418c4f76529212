"""What a request log is once it is read."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.tables.bytes import salvaged, stream_of
from analysis.tables.faults import FileError, FileFault


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a log: what, in how many requests, what it is seen by and what was done."""

    name: str
    count: int
    evidence: str
    done: str

    def __str__(self) -> str:
        return f"{self.name}: {self.count:,}; {self.evidence}; {self.done}"


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A request log: its requests, and what a reader should know about how it was understood."""

    table: pd.DataFrame
    """Columns `arrival_s` and `departure_s`, NaN where it was not seen; perhaps `type`, `request` and `priority`.

    Further ones, where they matter: `id`, which may name requests or something else; `rest`, a number for all else that
    the file says of each, if rows have times in common, and `own`, the same without columns that name what has several
    requests, if there are any; `stamp_s`, the stamp as written, if times were put between ticks; `cancelled`, which
    left without service.
    """
    notes: tuple[str, ...] = ()
    origin_s: float = 0.0
    """What the times count from, in seconds since 1970; 0 if they are the file's own."""
    resolution_s: float = 0.0
    """What stamps were multiples of, in seconds, before they were put between; 0: they are as the file has them."""
    findings: tuple[Finding, ...] = ()
    """What the reader saw that `clean` cannot see."""


def counted(count: int, noun: str) -> str:
    """Return so many of something, with its plural in s.

    Examples
    --------
    >>> counted(1, "line"), counted(2_000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_seconds(value_s: float) -> str:
    """Return a time in seconds with four digits, or all before the point.

    Examples
    --------
    >>> in_seconds(0.25), in_seconds(40_000.0)
    ('0.25 s', '40,000 s')
    """
    return f"{value_s:,.0f} s" if value_s >= 1000 else f"{value_s:.4g} s"


def content_of(path: Path) -> bytes:
    """Return the whole text of a log, unpacked if it is gzipped; refuse one that is cut off or damaged."""
    with stream_of(path) as source:
        content, damage = salvaged(source)
    if damage is not None:
        raise FileError([FileFault(1, 1, "file", "should be a whole gzip file", "one cut off or damaged")])
    return content
