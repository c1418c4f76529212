"""The symbol repository: which line of which function each address of a build is."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models import tables
from models.arrays import Ints
from models.errors import WscError

Columns = dict[str, pa.Array | Ints]

UNKNOWN, GENERATED = "[unknown]", "[generated]"
"""Function that no symbol covers, and image of memory without one."""


class SymboliseError(WscError):
    """Raw profiles, symbols or builds that cannot be put together; one line per fault."""


@dataclass(frozen=True, slots=True, eq=False)
class Repository:
    """Symbols of builds, by build and first address; S in all, numbered in that order.

    What they do not cover has the numbers S, for memory without an image, and S + 1 + b, for build b.
    """

    table: pa.Table
    first: Ints
    """(B + 1,) first symbol of each build."""
    start: Ints
    end: Ints
    images: tuple[str, ...]
    """(B,) name of each build's image."""

    @classmethod
    def of(cls, symbols: pa.Table, builds: pa.Table) -> "Repository":
        """Return the repository of some symbols.

        Parameters
        ----------
        symbols, builds : tables of these names, in any order

        Raises
        ------
        SymboliseError
            If a symbol's build is not in `builds`, builds are not numbered 0, 1, 2, …, or two symbols overlap.

        Examples
        --------
        >>> made = Repository.of(*example_symbols())
        >>> made.look_up(np.array([0, 0, 1, -1]), np.array([4100, 4096, 4096, 77]))
        array([1, 0, 4, 2])
        """
        number = builds["build"].to_numpy()
        order = np.argsort(number, kind="stable")
        if (number[order] != np.arange(number.size)).any():
            raise SymboliseError(f"builds: the {number.size} builds are not numbered 0 to {number.size - 1}")
        sort = pc.sort_indices(symbols, [("build", "ascending"), ("start", "ascending")])
        table = symbols.take(sort)
        build, start, end = (table[name].to_numpy() for name in ("build", "start", "end"))
        if build.size and not 0 <= build[0] <= build[-1] < number.size:
            raise SymboliseError(f"symbols: builds {build[0]} to {build[-1]}, but there are 0 to {number.size - 1}")
        over = np.flatnonzero((build[1:] == build[:-1]) & (start[1:] < end[:-1]))
        if over.size:
            at = int(over[0])
            raise SymboliseError(f"symbols: {over.size} overlap, the first at {start[at + 1]:#x} of build {build[at]}")
        images = tuple(builds["image"].take(pa.array(order)).to_pylist())
        first = np.searchsorted(build, np.arange(number.size + 1))
        return cls(table, first, start.astype(np.int64), end.astype(np.int64), images)

    def look_up(self, build: Ints, address: Ints) -> Ints:
        """Return which symbol covers each address.

        Parameters
        ----------
        build, address : (n,) arrays; build −1 is memory without an image

        Raises
        ------
        SymboliseError
            If a build is not known.
        """
        if build.size and not -1 <= build.min() <= build.max() < len(self.images):
            raise SymboliseError(
                f"raw_samples or raw_stacks: builds {build.min()} to {build.max()}, but there are 0 to "
                f"{len(self.images) - 1}, and −1"
            )
        found = self.start.size + 1 + build
        order = np.argsort(build, kind="stable")
        ordered = build[order]
        bounds = np.searchsorted(ordered, np.arange(len(self.images) + 1))
        for b in np.unique(ordered[bounds[0] :]).tolist():
            mine = order[bounds[b] : bounds[b + 1]]
            low, high = int(self.first[b]), int(self.first[b + 1])
            place = low + np.searchsorted(self.start[low:high], address[mine], side="right") - 1
            inside = (
                (place >= low) & (address[mine] < self.end[np.maximum(place, 0)]) if high > low else place < low - 1
            )
            found[mine[inside]] = place[inside]
        return found

    def locations(self, codes: Ints) -> Columns:
        """Return the columns of table `locations` for symbols, numbered in the order given.

        Parameters
        ----------
        codes : (n,) array, as `look_up` returns
        """
        covered = codes < self.start.size
        row = pa.array(codes, mask=~covered)
        symbol = self.table.take(row) if self.table.num_rows else None
        bare = np.where(covered, 0, codes - self.start.size - 1)
        build = bare if symbol is None else np.where(covered, numbers(pc.fill_null(symbol["build"], 0)), bare)
        images = pa.array([*self.images, GENERATED])
        blank = {"function": UNKNOWN, "file": "", "file_hash": "", "function_line": 0, "line": 0}
        rest: Columns = {}
        for name, default in blank.items():
            kind = tables.schema("locations").field(name).type
            column = pa.nulls(codes.size, kind) if symbol is None else symbol[name].combine_chunks()
            rest[name] = pc.fill_null(column, pa.scalar(default, kind))
        return {
            "location": np.arange(codes.size),
            "build": build,
            "image": images.take(pa.array(np.where(build >= 0, build, len(self.images)))),
            **rest,
            "symbolised": pa.array(covered),
        }


def example_symbols() -> tuple[pa.Table, pa.Table]:
    """Return symbols of a build with one function of two lines, and two builds, for examples.

    Examples
    --------
    >>> example_symbols()[1]["image"].to_pylist()
    ['search', 'libz']
    """
    symbols = {
        "build": [0, 0], "start": [4096, 4100], "end": [4100, 4104], "function": ["main"] * 2,
        "function_start": [4096] * 2, "file": ["main.cc"] * 2, "file_hash": ["a1"] * 2, "function_line": [10] * 2,
        "line": [11, 12],
    }  # fmt: skip
    return pa.table(symbols), pa.table({"build": [0, 1], "image": ["search", "libz"]})


def numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Return a column of whole numbers as an array.

    Examples
    --------
    >>> numbers(pa.chunked_array([[1, 2], [3]]))
    array([1, 2, 3])
    """
    return np.asarray(
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    ).astype(np.int64)
