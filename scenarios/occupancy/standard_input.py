"""Standard input of `wsc occupancy -`: events as they happen, or a whole log in any format that files may have."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from analysis.occupancy.logs.events import begins_events
from analysis.tables.bytes import ByteSource

NAME = "stdin"
_LONGEST_BYTES = 4096
"""Of a first line that is one of events."""
_PORTION_BYTES = 1 << 16


@dataclass(slots=True)
class StandardInput:
    """Bytes of which the first line has been looked at, and is read once more.

    Examples
    --------
    >>> import io
    >>> given = StandardInput(io.BytesIO(b"0,+1\\n5,-1\\n"))
    >>> given.events, given.read1(100), given.read1(100), given.read1(100)
    (True, b'0,+1\\n5,-1\\n', b'', b'')
    >>> StandardInput(io.BytesIO(b"arrival_s,departure_s\\n0,1\\n")).events
    False
    """

    source: ByteSource
    events: bool = field(init=False)
    """Whether the first line that is not blank is an event, or the header of events; nothing at all counts so, too."""
    _begun: bytes = field(default=b"", init=False, repr=False)

    def __post_init__(self) -> None:
        while b"\n" not in self._begun.lstrip() and len(self._begun) < _LONGEST_BYTES:
            portion = self.source.read1(_PORTION_BYTES)
            if not portion:
                break
            self._begun += portion
        first = self._begun.strip().partition(b"\n")[0]
        self.events = len(first) <= _LONGEST_BYTES and begins_events(first.decode(errors="replace"))

    def read1(self, size: int, /) -> bytes:
        """Return the next bytes, as they come."""
        if not self._begun:
            return self.source.read1(size)
        portion, self._begun = self._begun[:size], self._begun[size:]
        return portion

    @contextmanager
    def file(self) -> Generator[Path]:
        """Yield a temporary file of all the bytes, which goes when the block ends, however it ends."""
        with tempfile.TemporaryDirectory(prefix="wsc-occupancy-") as folder:
            path = Path(folder) / NAME
            with path.open("wb") as file:
                self._copy_to(file)
            yield path

    def _copy_to(self, file: BinaryIO) -> None:
        while portion := self.read1(_PORTION_BYTES):
            file.write(portion)
