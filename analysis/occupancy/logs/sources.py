"""What a request log is once it is read, and the bytes of log files, gzipped or not."""

import zlib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

_HEAD_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"


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


def head_of(path: Path) -> bytes:
    """Return the beginning of a file, unpacked if it is gzipped; of a damaged one what there is.

    Raises
    ------
    OSError
        If it cannot be opened.

    Examples
    --------
    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_bytes(gzip.compress(b"arrival_s,departure_s"))
    ...     head_of(Path(file.name))
    b'arrival_s,departure_s'
    """
    with path.open("rb") as file:
        raw = file.read(_HEAD_BYTES)
    if not raw.startswith(_GZIP):
        return raw
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(raw)
    except zlib.error:
        return b""


def stream_of(path: Path) -> pa.NativeFile:
    """Return a file to read from, unpacked if it is gzipped, whatever its name ends in.

    Raises
    ------
    OSError
        If it cannot be opened; reading on raises it too where a gzip file is cut off.

    Examples
    --------
    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_bytes(gzip.compress(b"1,2"))
    ...     stream_of(Path(file.name)).read()
    b'1,2'
    """
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    source = pa.OSFile(str(path))
    return pa.CompressedInputStream(source, "gzip") if packed else source
