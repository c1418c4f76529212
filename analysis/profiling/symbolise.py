"""Symbolisation: addresses become functions and source lines, apart from collecting and in parallel.

Raw profiles keep addresses and the builds that they are in; a repository says which line of which function each address
of a build is. What it does not cover stays visible: function `[unknown]` of its image, or of `[generated]` where there
is no image. Counts are integers and nothing is dropped, so every event sums to what it did before.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
        codes = self.start.size + 1 + build
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
            codes[mine[inside]] = place[inside]
        return codes

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
            kind = tables.SCHEMAS["locations"].field(name).type
            column = pa.nulls(codes.size, kind) if symbol is None else symbol[name].combine_chunks()
            rest[name] = pc.fill_null(column, pa.scalar(default, kind))
        return {
            "location": np.arange(codes.size),
            "build": build,
            "image": images.take(pa.array(np.where(build >= 0, build, len(self.images)))),
            **rest,
            "symbolised": pa.array(covered),
        }


def numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Return a column of whole numbers as an array."""
    return np.asarray(
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    ).astype(np.int64)


__all__ = ["Repository", "SymboliseError", "Symboliser", "symbolised"]


BATCH_ROWS = 500_000
"""Samples that one worker symbolises at a time: what memory is proportional to."""
INPUTS = ("raw_samples", "raw_stacks", "symbols", "builds")
"""Tables that symbolisation reads."""


class Symboliser:
    """Symbolises one profile: batches of samples as they come, then the locations and stacks that they were in.

    Locations and stacks are numbered in the order in which they are first met, whatever the number of workers.

    Parameters
    ----------
    repository : symbols and builds
    stacks : table `raw_stacks`

    Raises
    ------
    SymboliseError
        If an address is in a build that is not known.
    """

    def __init__(self, repository: Repository, stacks: pa.Table) -> None:
        self._repository = repository
        self._number = np.full(repository.start.size + 1 + len(repository.images), -1)
        self._codes: list[Ints] = []
        self._met = 0
        self._new_stack, self._paths = self._merge_stacks(stacks)

    def samples(self, batches: Iterable[pa.RecordBatch], workers: int | None = None) -> Iterator[Columns]:
        """Yield rows of table `samples`; equal ones of a process are merged, their counts summed.

        Each part is in order of events, then processes, so that who asks for one event need not read the others.

        Parameters
        ----------
        batches : rows of `raw_samples`; those of a process follow one another
        workers : threads at most; the default is one per processor
        """
        for batch, code in _ahead(batches, self._look_up, workers or cpu_count() or 1):
            yield self._merged(batch, self._numbered(code))

    def locations(self) -> Columns:
        """Return the columns of table `locations`: all that were met so far."""
        return self._repository.locations(np.concatenate([np.zeros(0, np.int64), *self._codes]))

    def stacks(self) -> Columns:
        """Return the columns of table `stacks`; stacks that only differed within lines are one."""
        return self._paths

    def _look_up(self, batch: pa.RecordBatch) -> Ints:
        return self._repository.look_up(numbers(batch["build"]), numbers(batch["address"]))

    def _numbered(self, code: Ints) -> Ints:
        """Return the location of each symbol, new ones numbered on."""
        unique, first = np.unique(code, return_index=True)
        fresh = self._number[unique] < 0
        codes = unique[fresh][np.argsort(first[fresh], kind="stable")]
        self._number[codes] = self._met + np.arange(codes.size)
        self._met += codes.size
        self._codes.append(codes)
        return np.asarray(self._number[code])

    def _merge_stacks(self, stacks: pa.Table) -> tuple[Ints, Columns]:
        """Return the new number of each stack, and the rows of those that differ by location."""
        stack, depth = numbers(stacks["stack"]), numbers(stacks["depth"])
        order = np.lexsort((depth, stack))
        stack, depth = stack[order], depth[order]
        code = self._repository.look_up(numbers(stacks["build"])[order], numbers(stacks["address"])[order])
        old, start = np.unique(stack, return_index=True)
        lengths = np.diff(np.append(start, stack.size))
        met: dict[bytes, int] = {}
        new = np.full(int(old.max(initial=-1)) + 1, -1)
        parts = []
        for i, (begin, length) in enumerate(zip(start.tolist(), lengths.tolist(), strict=True)):
            path = code[begin : begin + length].tobytes()
            if path not in met:
                parts.append(i)
            new[old[i]] = met.setdefault(path, len(met))
        rows = np.isin(np.repeat(np.arange(old.size), lengths), np.array(parts, np.int64))
        location = self._numbered(code[rows])
        return new, {"stack": new[stack[rows]], "depth": depth[rows], "location": location}

    def _merged(self, batch: pa.RecordBatch, location: Ints) -> Columns:
        event = (
            batch["event"].dictionary_encode() if not pa.types.is_dictionary(batch["event"].type) else batch["event"]
        )
        stack = numbers(batch["stack"])
        if stack.size and stack.max() >= self._new_stack.size:
            raise SymboliseError(f"raw_samples: stack {stack.max()} is not in raw_stacks")
        stack = np.where(stack >= 0, self._new_stack[np.maximum(stack, 0)] if self._new_stack.size else -1, -1)
        process, kind = numbers(batch["process"]), numbers(event.indices)
        rank = np.argsort(np.argsort(np.array(event.dictionary.to_pylist(), dtype=str), kind="stable"))
        order = np.lexsort((location, stack, process, rank[kind]))
        key = np.column_stack([process, kind, stack, location])[order]
        begin = np.flatnonzero(np.append(True, (key[1:] != key[:-1]).any(axis=1))[: order.size])
        count = np.add.reduceat(numbers(batch["count"])[order], begin) if begin.size else np.zeros(0, np.int64)
        process, kind, stack, location = key[begin].T
        texts = pa.DictionaryArray.from_arrays(pa.array(kind.astype(np.int32)), event.dictionary)
        return {"process": process, "event": texts, "location": location, "stack": stack, "count": count}


def symbolised(folder: Path, workers: int | None = None) -> Iterator[tuple[str, Columns]]:
    """Yield what the raw profiles of a folder are with symbols: tables by name, to be written as they come.

    Parameters
    ----------
    folder : with the tables `raw_samples`, `raw_stacks`, `symbols` and `builds` as Parquet files
    workers : threads at most; results do not depend on it

    Yields
    ------
    name and columns
        ``samples`` part by part, then ``locations`` and ``stacks`` once.

    Raises
    ------
    SymboliseError
        If a table is missing, or they do not fit together.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     next(symbolised(Path(folder)))
    Traceback (most recent call last):
        ...
    analysis.profiling.symbolise.SymboliseError: raw_samples.parquet, raw_stacks.parquet, symbols.parquet, \
builds.parquet: not there
    """
    paths = {name: Path(folder) / f"{name}.parquet" for name in INPUTS}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        raise SymboliseError(f"{', '.join(missing)}: not there")
    repository = Repository.of(pq.read_table(paths["symbols"]), pq.read_table(paths["builds"]))
    symboliser = Symboliser(repository, pq.read_table(paths["raw_stacks"]))
    with pq.ParquetFile(paths["raw_samples"], read_dictionary=["event"]) as raw:
        for columns in symboliser.samples(_whole_processes(raw.iter_batches(BATCH_ROWS)), workers):
            yield "samples", columns
    yield "locations", symboliser.locations()
    yield "stacks", symboliser.stacks()


def _ahead(
    batches: Iterable[pa.RecordBatch], work: Callable[[pa.RecordBatch], Ints], workers: int
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """Yield each batch and the work done on it, in order, a few batches ahead of who takes them."""
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[pa.RecordBatch, Future[Ints]]] = deque()
        for batch in batches:
            waiting.append((batch, pool.submit(work, batch)))
            if len(waiting) > workers:
                done, result = waiting.popleft()
                yield done, result.result()
        for done, result in waiting:
            yield done, result.result()


def _whole_processes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows, many at a time, cut between processes, so that equal rows of a process come together."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        process = numbers(batch["process"])
        cut = int(np.flatnonzero(process != process[-1])[-1]) + 1 if (process != process[-1]).any() else 0
        whole = cut > 0 or (bool(waiting) and numbers(waiting[-1]["process"])[-1] != process[-1])
        if not whole or sum(part.num_rows for part in waiting) + cut < BATCH_ROWS:
            waiting.append(batch)
            continue
        yield pa.concat_batches([*waiting, batch.slice(0, cut)])
        waiting = [batch.slice(cut)]
    if waiting:
        yield pa.concat_batches(waiting)
