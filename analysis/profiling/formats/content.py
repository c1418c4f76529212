"""The bytes of a profile file, unpacked if it is gzipped, within bounds that a hostile file cannot pass."""

import gzip
import io
import zlib
from pathlib import Path

from analysis.profiling.formats.faults import refusal

LARGEST_BYTES = 1 << 29
"""Largest content that is read, after unpacking."""
_RATIO, _FREE_BYTES = 200, 1 << 24
_PIECE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"


def content_of(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """Return a file's content, unpacked if it is gzipped (several members too), whatever its name ends in.

    Parameters
    ----------
    path : the file
    largest : refuse content beyond so many bytes; above 16 MiB also one more than 200 times the packed file

    Raises
    ------
    FormatError
        If the file is empty, damaged, cut off or beyond the bounds.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_bytes(gzip.compress(b"main 3"))
    ...     content_of(Path(file.name))
    b'main 3'
    """
    with path.open("rb") as file:
        raw = bytearray()
        while piece := file.read(_PIECE_BYTES):
            raw += piece
            if len(raw) > largest:
                raise refusal(str(path), "", "file", f"should be at most {largest} bytes", "a larger one")
    if not raw:
        raise refusal(str(path), "", "file", "should hold a profile", "an empty file")
    return unpacked(bytes(raw), str(path), largest) if raw.startswith(_GZIP) else bytes(raw)


def unpacked(packed: bytes, name: str, largest: int = LARGEST_BYTES) -> bytes:
    """Return what gzip members hold, piece by piece, so that memory stays within the bound.

    Parameters
    ----------
    packed : one gzip member or several (RFC 1952)
    name : of the file, for faults
    largest : refuse content beyond so many bytes; above 16 MiB also one more than 200 times the packed file

    Raises
    ------
    FormatError
        If it is damaged, cut off or beyond the bounds.

    Examples
    --------
    >>> import gzip
    >>> unpacked(gzip.compress(b"a 1\\n") + gzip.compress(b"b 2\\n"), "two.gz")
    b'a 1\\nb 2\\n'
    """
    content = bytearray()
    bound = min(largest, max(_FREE_BYTES, _RATIO * len(packed)))
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as members:
        while True:
            try:
                piece = members.read(_PIECE_BYTES)
            except (EOFError, OSError, zlib.error) as error:
                raise refusal(name, "", "file", "should be a whole gzip file", error) from None
            if not piece:
                return bytes(content)
            content += piece
            if len(content) > bound:
                raise refusal(name, "", "file", f"should unpack to at most {bound} bytes", "one that grows larger")
