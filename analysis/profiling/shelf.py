"""Arrays that are put away until they are wanted: in memory while they are few, else in a temporary file."""

import ctypes
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import numpy as np

from models.arrays import Floats

_Scalar = TypeVar("_Scalar", bound=np.generic)
_MOST_BYTES = 8_000_000
"""Bytes from which on they are in a file."""


@dataclass(frozen=True, slots=True)
class ShelfPlace:
    """Where an array of one dimension is."""

    at: int
    """First byte."""
    length: int
    kind: str


class Shelf:
    """Keeps arrays of one dimension.

    Parameters
    ----------
    most_bytes : from which on they are in a temporary file
    folder : where that file is, without a name; None: where the system has such files

    Examples
    --------
    >>> shelf = Shelf()
    >>> first, second = shelf.put(np.arange(3)), shelf.put(np.array([0.5, 1.5]))
    >>> shelf.get(first).tolist(), shelf.get(second, 1, 2).tolist()
    ([0, 1, 2], [1.5])
    """

    def __init__(self, most_bytes: int = _MOST_BYTES, folder: Path | None = None) -> None:
        self._file = SpooledTemporaryFile(max_size=most_bytes, dir=None if folder is None else str(folder))  # noqa: SIM115  # closed when the shelf is gone
        self._end = 0
        weakref.finalize(self, self._file.close)

    def put(self, array: np.ndarray[tuple[int], np.dtype[_Scalar]]) -> ShelfPlace:
        """Put an array away, and return where it is."""
        place = ShelfPlace(self._end, len(array), array.dtype.str)
        self._file.seek(self._end)
        self._file.write(np.ascontiguousarray(array).data)
        self._end += array.nbytes
        return place

    def get(self, place: ShelfPlace, first: int = 0, last: int | None = None) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """Return an array, or its entries from the first to before the last."""
        kind = np.dtype(place.kind)
        count = (place.length if last is None else last) - first
        self._file.seek(place.at + first * kind.itemsize)
        return np.frombuffer(self._file.read(count * kind.itemsize), kind)


def narrow(amounts: Floats) -> "np.ndarray[tuple[int], np.dtype[Any]]":
    """Return whole numbers in the smallest type that holds them, other numbers as they are.

    Parameters
    ----------
    amounts : 0 or more

    Examples
    --------
    >>> narrow(np.array([1.0, 300.0])).dtype, narrow(np.array([0.5])).dtype
    (dtype('uint16'), dtype('float64'))
    """
    most = float(amounts.max(initial=0.0))
    kind = next((kind for kind in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(kind).max), None)
    own = amounts if kind is None else amounts.astype(kind)
    return own if kind is None or (own == amounts).all() else amounts


def give_back_memory() -> None:
    """Give memory that nothing holds any more back to the system, where the C library and Arrow keep it otherwise."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
