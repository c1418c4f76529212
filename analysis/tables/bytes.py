"""The bytes of foreign files: unpacked by what they begin with, read within bounds, and damage told."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from analysis.tables.faults import FileFault, refusal
from models.errors import WscError

LARGEST_BYTES = 1 << 29
"""Largest content of a file that has to be held as a whole, after unpacking."""
PARQUET = b"PAR1"
"""What a Parquet file begins with."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_HEAD_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_RATIO, _FREE_BYTES = 200, 1 << 24
"""Content beyond the second may be so many times as large as the packed file."""


class DamagedError(WscError):
    """A packed file that is cut off or damaged, or a text that is none; the message is the decoder's."""

    def __init__(self, message: str, *, cut_off: bool = False, form: str = "gzip") -> None:
        super().__init__(message)
        self.cut_off, self.form = cut_off, form

    def fault(self, whole_lines: int) -> FileFault:
        """Return the fault of the line after the last that could be read whole."""
        got = "one cut off" if self.cut_off else "a damaged one"
        return FileFault(whole_lines + 1, 1, "file", f"should be a whole {self.form} file", got)


class ByteSource(Protocol):
    """Something that gives the bytes that there are."""

    def read1(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""
        ...


class _Unpacked(io.RawIOBase):
    """The content of gzip members (RFC 1952) or zstd frames (RFC 8878), one after another."""

    def __init__(self, packed: BinaryIO, *, zstd: bool = False) -> None:
        self._packed, self._form = packed, "zstd" if zstd else "gzip"
        self._content = memoryview(b"")
        self._members: ByteSource
        if zstd:
            import pyarrow as pa

            self._members = pa.CompressedInputStream(packed, "zstd")
        else:
            self._members = gzip.GzipFile(fileobj=packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyrefly: ignore[bad-override] # any buffer there
        if not self._content:  # always as much at a time, so that as much is read of a damaged file, however it is read
            self._content = memoryview(self._unpacked())
        content, self._content = self._content[: len(buffer)], self._content[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)

    def _unpacked(self) -> bytes:
        try:
            return self._members.read1(_HEAD_BYTES)
        except EOFError as error:
            raise DamagedError(str(error), cut_off=True, form=self._form) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise DamagedError(str(error), cut_off=False, form=self._form) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise DamagedError(str(error), cut_off="Truncated" in str(error), form=self._form) from None

    def close(self) -> None:
        self._packed.close()
        super().close()


class _Text(io.RawIOBase):
    """Bytes that are UTF-8, up to the first that is not."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-8")()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyrefly: ignore[bad-override] # any buffer there
        content = self._stream.read1(len(buffer))
        try:
            self._decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            raise DamagedError(f"text that is not UTF-8: byte 0x{error.object[error.start]:02x}") from None
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def text_of(path: Path) -> io.BufferedReader:
    """Return a text file to read from, as `stream_of`; reading raises a DamagedError at bytes that are not UTF-8."""
    return io.BufferedReader(_Text(stream_of(path)), _HEAD_BYTES)


def stream_of(path: Path) -> io.BufferedReader:
    """Return a file to read from, unpacked if it is packed by gzip or zstd, whatever its name ends in.

    Reading raises a DamagedError where a packed file is cut off or damaged.

    Examples
    --------
    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_bytes(gzip.compress(b"1,2"))
    ...     stream_of(Path(file.name)).read()
    b'1,2'
    """
    file = path.open("rb")
    begin = file.peek(4)
    return _unpacking(file, zstd=begin[:4] == _ZSTD) if begin[:2] == _GZIP or begin[:4] == _ZSTD else file


def head_of(path: Path) -> bytes:
    """Return the first 64 KiB of a file, unpacked if it is gzipped; of a damaged one what there is."""
    with stream_of(path) as stream:
        return salvaged(stream, _HEAD_BYTES)[0]


def is_packed(path: Path) -> bool:
    """Return whether a file is packed by gzip or zstd."""
    with path.open("rb") as file:
        begin = file.read(4)
    return begin[:2] == _GZIP or begin == _ZSTD


def salvaged(stream: ByteSource, most: int | None = None) -> tuple[bytes, DamagedError | None]:
    """Return what can be read of a stream, and why no more of it."""
    content = io.BytesIO()
    try:
        while most is None or content.tell() < most:
            left = _PIECE_BYTES if most is None else min(_PIECE_BYTES, most - content.tell())
            piece = stream.read1(left)
            if not piece:
                break
            content.write(piece)
    except DamagedError as error:
        return content.getvalue(), error
    return content.getvalue(), None


def content_of(path: Path, largest: int = LARGEST_BYTES) -> bytes:
    """Return a file's content, unpacked if it is gzipped, within bounds that a hostile file cannot pass.

    Parameters
    ----------
    path : the file
    largest : refuse content beyond so many bytes; above 16 MiB also one more than 200 times the packed file

    Raises
    ------
    FileError
        If the file is empty, damaged, cut off or beyond the bounds.
    """
    raw = bytearray()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            raw += piece
            if len(raw) > largest:
                raise refusal(str(path), "file", f"should be at most {largest} bytes", "a larger one")
    if not raw:
        raise refusal(str(path), "file", "should hold a profile", "an empty file")
    return unpacked(bytes(raw), str(path), largest) if raw.startswith(_GZIP) else bytes(raw)


def unpacked(packed: bytes, name: str, largest: int = LARGEST_BYTES) -> bytes:
    """Return what gzip members hold; refuse it, by the name of the file, if it is damaged or as `content_of`."""
    bound = min(largest, max(_FREE_BYTES, _RATIO * len(packed)))
    content, damage = salvaged(_unpacking(io.BytesIO(packed)), bound + 1)
    if damage is not None:
        raise refusal(name, "file", "should be a whole gzip file", "one cut off" if damage.cut_off else "a damaged one")
    if len(content) > bound:
        raise refusal(name, "file", f"should unpack to at most {bound} bytes", "one that grows larger")
    return content


def portions(stream: ByteSource, longest: int | None = None) -> Iterator[list[bytes]]:
    """Yield the lines of a stream as they come, without their ends; a line that is longer than so many bytes is cut.

    Examples
    --------
    >>> list(portions(io.BytesIO(b"0,+1\\n1,-1\\n2")))
    [[b'0,+1', b'1,-1'], [b'2']]
    """
    rest = b""
    while portion := stream.read1(_PIECE_BYTES):
        *whole, rest = (rest + portion).split(b"\n")
        if longest is not None and len(rest) > longest:
            whole, rest = [*whole, rest], b""
        yield whole
    yield [rest]


def _unpacking(packed: BinaryIO, *, zstd: bool = False) -> io.BufferedReader:
    return io.BufferedReader(_Unpacked(packed, zstd=zstd), _HEAD_BYTES)
