"""Profiles that are added to a folder of imported ones: what is there stays, and what is there already is left out."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.profiling.formats.fleet import Recount
from analysis.profiling.formats.stores import SAMPLES
from analysis.profiling.formats.tables import NAMES, ProfileStore
from analysis.profiling.storage import TAKEN
from models.tables import SCHEMAS

_BATCHED_TABLES = ("samples", "stacks")
"""Tables that are read and written in parts."""
_SHIFTED = {
    "visits": ("visit", "machine"),
    "processes": ("process", "visit", "build"),
    "builds": ("build",),
    "samples": ("process", "location", "stack"),
    "locations": ("location", "build"),
    "stacks": ("stack", "location"),
    "labels": ("process",),
}
"""Columns that number what earlier imports numbered, too; −1 stays what it is."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class EarlierImport:
    """A folder that files were imported into: samples and stacks in files, the other tables in memory."""

    folder: Path
    tables: dict[str, pd.DataFrame]
    stacks: int
    """How many call paths there are."""
    events: frozenset[str]
    taken: bool
    """Whether samples have the column `taken`."""

    @classmethod
    def read(cls, folder: Path) -> "EarlierImport":
        """Return that of a folder."""
        more = (name for name in ("labels", "sources") if (folder / f"{name}.parquet").is_file())
        names = [*(name for name in NAMES if name not in _BATCHED_TABLES), *more]
        tables = {name: pq.read_table(folder / f"{name}.parquet").to_pandas() for name in names}
        steps = _batches(folder / "stacks.parquet", ["stack"])
        stacks = max((pc.max(batch["stack"]).as_py() + 1 for batch in steps), default=0)
        samples = folder / "samples.parquet"
        events = {event for batch in _batches(samples, ["event"]) for event in pc.unique(batch["event"]).to_pylist()}
        return cls(folder, tables, stacks, frozenset(events), TAKEN in pq.read_schema(samples).names)

    def rows(self) -> dict[str, int]:
        """Return how many rows each table has."""
        return {
            name: pq.read_metadata(self.folder / f"{name}.parquet").num_rows
            for name in (*self.tables, *_BATCHED_TABLES)
        }

    def rows_of(self, event: str) -> Iterator[pa.Table]:
        """Yield the samples of an event."""
        for batch in _batches(self.folder / "samples.parquet", None, event):
            chosen = batch.filter(pc.equal(batch["event"], event))
            if chosen.num_rows:
                whole = chosen if self.taken else chosen.append_column(TAKEN, chosen["count"])
                yield whole.select(SAMPLES.names).cast(SAMPLES)

    def steps(self) -> Iterator[pa.Table]:
        """Yield stack, depth and location of every frame."""
        for batch in _batches(self.folder / "stacks.parquet", None):
            yield batch.select(SCHEMAS["stacks"].names).cast(SCHEMAS["stacks"])

    def next_numbers(self) -> dict[str, int]:
        """Return from where on numbers are free, by column."""
        keys = {"visits": "visit", "processes": "process", "builds": "build", "locations": "location"}
        columns = [*keys.items(), ("visits", "machine")]
        largest = {key: self.tables[table][key].max() for table, key in columns if len(self.tables[table])}
        return {key: int(largest.get(key, -1)) + 1 for _, key in columns} | {"stack": self.stacks}


@dataclass(frozen=True, slots=True)
class ImportedRows:
    """Samples and call paths of an import: those of an earlier one, then those of files that are added."""

    store: ProfileStore
    earlier: EarlierImport | None = None
    recount: Recount | None = None
    """What counts are multiplied by; none: nothing."""

    @property
    def taken(self) -> bool:
        """Whether a row rests on another number of samples than its count."""
        if self.store.samples.taken or (self.earlier is not None and self.earlier.taken):
            return True
        recount = self.recount
        return recount is not None and any(
            bool((recount.of(event, batch["process"].to_numpy()) != 1).any()) for event, batch in self._by_event()
        )

    def samples(self) -> Iterator[pa.Table]:
        """Yield the samples, sorted by event, process, location and stack."""
        for event, batch in self._by_event():
            if self.recount is None:
                yield batch
                continue
            counts = batch["count"].to_numpy() * self.recount.of(event, batch["process"].to_numpy())
            yield batch.set_column(batch.schema.get_field_index("count"), SAMPLES.field("count"), pa.array(counts))

    def steps(self) -> Iterator[pa.Table]:
        """Yield stack, depth and location of every frame, sorted by stack and depth."""
        shift = {}
        if self.earlier is not None:
            yield from self.earlier.steps()
            shift = self.earlier.next_numbers()
        for batch in self.store.stacks.batches():
            yield _moved(batch, _SHIFTED["stacks"], shift)

    def _by_event(self) -> Iterator[tuple[str, pa.Table]]:
        earlier, store = self.earlier, self.store
        shift = earlier.next_numbers() if earlier is not None else {}
        for event in sorted({*store.events, *(earlier.events if earlier is not None else ())}, key=str.encode):
            if earlier is not None and event in earlier.events:
                yield from ((event, batch) for batch in earlier.rows_of(event))
            if event in store.events:
                for batch in store.samples.rows_of(event, store.events[event]):
                    yield event, _moved(batch, _SHIFTED["samples"], shift)


def appended(
    earlier: EarlierImport, added: Mapping[str, pd.DataFrame], machines: Mapping[int, int]
) -> dict[str, pd.DataFrame]:
    """Return two imports' tables as one, without samples and stacks; numbers of the later are shifted.

    Parameters
    ----------
    earlier : the import before
    added : as `ProfileStore.small` returns them
    machines : of machines of `added` that were there before, their numbers there
    """
    shift, before = earlier.next_numbers(), earlier.tables
    joined = {}
    for table in dict.fromkeys([*before, *added]):
        parts = [before[table]] if table in before else []
        if table in added:
            parts.append(_shifted(added[table], _SHIFTED.get(table, ()), shift, machines))
        whole = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
        joined[table] = whole.astype(parts[0].dtypes.to_dict())
    return joined


def _batches(file: Path, columns: list[str] | None, event: str | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a file, without those row groups of samples that are of other events alone."""
    with pq.ParquetFile(file) as opened:
        groups = [group for group in range(opened.num_row_groups) if event is None or _may_hold(opened, group, event)]
        for batch in opened.iter_batches(row_groups=groups, columns=columns):
            yield pa.Table.from_batches([batch])


def _may_hold(file: pq.ParquetFile, group: int, event: str) -> bool:
    known = file.metadata.row_group(group).column(file.schema_arrow.names.index("event")).statistics
    return known is None or not known.has_min_max or known.min <= event <= known.max


def _moved(batch: pa.Table, columns: tuple[str, ...], shift: Mapping[str, int]) -> pa.Table:
    """Return rows whose numbers are shifted; −1 stays what it is."""
    if not shift:
        return batch
    for name in columns:
        numbers = batch[name].to_numpy()
        moved = np.where(numbers >= 0, numbers + shift[name], numbers)
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at), pa.array(moved, batch.schema.field(at).type))
    return batch


def _shifted(
    table: pd.DataFrame, columns: tuple[str, ...], shift: Mapping[str, int], machines: Mapping[int, int]
) -> pd.DataFrame:
    moved = {name: (table[name] + shift[name]).where(table[name] >= 0, table[name]) for name in columns}
    if "machine" in moved and machines:
        moved["machine"] = table["machine"].map(machines).fillna(moved["machine"])
    return table.assign(**{name: column.astype(table[name].dtype) for name, column in moved.items()})
