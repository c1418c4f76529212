"""Tables of a fleet of several cells: a folder with a Parquet file for each cell, read as one table.

The files hold what the cell would have written alone: its machines are numbered from 0. Read together, numbers are the
whole fleet's, cell after cell, and a job that several cells run is one job, known by its name.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from models.arrays import Ints
from models.tables import ARMS
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.disk import file_digest

Entry: TypeAlias = Mapping[str, Any]
"""What a manifest says of a table or of a file, as JSON holds it: rows, digest, file_bytes and file_digest."""
Listed: TypeAlias = Mapping[str, Entry]
"""What a manifest says of each table; `partitions` has rows, digest, file_bytes and file_digest by cell."""

NUMBERED = ("machine", "rack", "power_domain", "residence", "instance")
"""Columns that count within a cell, and whose numbers are counted."""
_PREFIX, _FILE = "cell=", "part.parquet"
_EPOCHS = frozenset({"epochs", *(f"truth_{arm}_epochs" for arm in ARMS)})
_SUMMED = ("instances", "quota_vcpu", "cycles", "instructions", "llc_misses", "cpu_s", "energy_j")


def partition(folder: Path, table: str, cell: str) -> Path:
    """Return where a cell's part of a table is, in a run's folder: readers of Parquet take `table` as a whole."""
    return folder / table / f"{_PREFIX}{cell}" / _FILE


def place(file: Path, folder: Path, table: str, cell: str) -> None:
    """Put a table of a cell into the folder of the whole run; the file stays where it is too.

    Nothing is copied where the file system can give a file two names.
    """
    target = partition(folder, table, cell)
    target.parent.mkdir(parents=True)
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def whole(parts: Mapping[str, Entry]) -> Entry:
    """Return what a manifest says of a table that has parts: rows, a digest over those of the cells, and the parts."""
    text = "".join(f"{cell} {part['digest']}\n" for cell, part in sorted(parts.items()))
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return {"rows": sum(part["rows"] for part in parts.values()), "digest": digest, "partitions": dict(parts)}


def used(files: Sequence[Path]) -> dict[str, int]:
    """Return how many numbers a cell's tables use of each of `NUMBERED`: one more than the largest.

    Parameters
    ----------
    files : the cell's tables; only what their footers say of each row group is read
    """
    most = dict.fromkeys(NUMBERED, 0)
    for file in files:
        footer = pq.read_metadata(file)
        for group in range(footer.num_row_groups):
            for i in range(footer.num_columns):
                column = footer.row_group(group).column(i)
                name = column.path_in_schema
                if name in most and column.statistics is not None and column.statistics.has_min_max:
                    most[name] = max(most[name], int(column.statistics.max) + 1)
    return most


def check(folder: Path, listed: Listed) -> None:
    """Check that a run has exactly the parts that it lists, each with its size; a table may be missing as a whole."""
    faults = [fault for table, entry in listed.items() for fault in _faults(folder, table, entry.get("partitions", {}))]
    if faults:
        raise FaultsError(faults)


def _faults(folder: Path, table: str, parts: Mapping[str, Entry]) -> Iterator[Fault]:
    if not parts or not (folder / table).exists():
        return
    present = {file for file in (folder / table).rglob("*") if not file.is_dir()}
    for cell, entry in parts.items():
        file = partition(folder, table, cell)
        if file not in present:
            yield Fault(str(file), 0, 0, "", "is not there, though the run lists it")
        elif file.stat().st_size != entry["file_bytes"]:
            got = f"{file.stat().st_size:,}"
            yield Fault(str(file), 0, 0, "", f"should have {entry['file_bytes']:,} bytes; is it cut off?", got)
    for file in sorted(present - {partition(folder, table, cell) for cell in parts}):
        yield Fault(str(file), 0, 0, "", "is not of this run, which does not list it")


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a run's tables, and how cells' numbers become the fleet's."""

    folder: Path
    listed: Listed
    numbers: Mapping[str, Mapping[str, int]]
    """Of each cell, in order, how many numbers of each of `NUMBERED` it uses."""
    _known: dict[str, "_Known"] = field(default_factory=dict, init=False, repr=False)
    _sound: set[Path] = field(default_factory=set, init=False, repr=False)
    """Files that were found to hold what the run wrote."""

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        cell = next(iter(self.listed[table]["partitions"]))
        return list(pq.read_schema(self._undamaged(table, cell)).names)

    def read(self, table: str, cells: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
        """Return a table of some cells, one after the other, with the numbers of the whole fleet.

        Jobs are added up over the cells that run them, and so are epochs; the order of jobs is that of falling quota.
        The table `truth_jobs` has one row per job and cell.

        Parameters
        ----------
        table : its name
        cells : which, in their order
        columns : of the table, in this order
        """
        if table == "jobs":
            return self._jobs(cells)[list(columns)]
        if table in _EPOCHS:
            machines = [self.numbers[cell]["machine"] for cell in cells]
            return _epochs([self._raw(table, cell) for cell in cells], machines)[list(columns)]
        first = self._first_numbers()
        job = self._fleet().numbers if "job" in columns else {}
        frames = [_renumbered(self._raw(table, cell, columns), first[cell], job.get(cell)) for cell in cells]
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def _raw(self, table: str, cell: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        with pq.ParquetFile(self._undamaged(table, cell)) as file:
            frame: pd.DataFrame = file.read(None if columns is None else list(columns)).to_pandas()
        return frame

    def _undamaged(self, table: str, cell: str) -> Path:
        file = partition(self.folder, table, cell)
        if file not in self._sound and file_digest(file) != self.listed[table]["partitions"][cell]["file_digest"]:
            raise FaultsError([Fault(str(file), 0, 0, "", "holds something else than this run wrote")])
        self._sound.add(file)
        return file

    def _first_numbers(self) -> dict[str, dict[str, int]]:
        """Return the first number of each cell in each of `NUMBERED`."""
        first, at = dict[str, dict[str, int]](), dict.fromkeys(NUMBERED, 0)
        for cell, most in self.numbers.items():
            first[cell] = dict(at)
            at = {name: at[name] + most[name] for name in NUMBERED}
        return first

    def _jobs(self, cells: Sequence[str]) -> pd.DataFrame:
        """Return the jobs of some cells, numbered as in the whole fleet."""
        fleet = self._fleet()
        if len(cells) == len(self.numbers):
            return fleet.jobs
        some = _together([self._raw("jobs", cell) for cell in cells]).drop(columns="job")
        return fleet.jobs[["job", "name"]].merge(some, on="name")[fleet.jobs.columns.tolist()]

    def _fleet(self) -> "_Known":
        """Return the jobs of the whole fleet, read once."""
        if "jobs" not in self._known:
            frames = {cell: self._raw("jobs", cell) for cell in self.numbers}
            jobs = _together(list(frames.values()))
            names = pd.Index(jobs["name"])
            numbers = {cell: names.get_indexer(pd.Index(frame["name"])) for cell, frame in frames.items()}
            self._known["jobs"] = _Known(jobs, numbers)
        return self._known["jobs"]


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The jobs of a whole fleet, and the number that each job of each cell has there."""

    jobs: pd.DataFrame
    numbers: Mapping[str, Ints]


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the jobs of several cells added up by name, in order of falling quota, then of name."""
    columns = {"latency_critical": "first", "instances": "sum", "quota_vcpu": "sum"}
    summed = pd.concat(frames, ignore_index=True).groupby("name", sort=True, as_index=False).agg(columns)
    ordered = summed.sort_values("quota_vcpu", ascending=False, kind="stable", ignore_index=True)
    return ordered.assign(job=np.arange(len(ordered)))[frames[0].columns.tolist()]


def _epochs(frames: Sequence[pd.DataFrame], machines: Sequence[int]) -> pd.DataFrame:
    """Return the epochs of several cells added up; shares of machines are of all machines."""
    epochs = frames[0].copy()
    for name in _SUMMED:
        epochs[name] = sum((frame[name] for frame in frames[1:]), frames[0][name])
    capped = [frame["capped_share"] * count for frame, count in zip(frames, machines, strict=True)]
    epochs["capped_share"] = sum(capped[1:], capped[0]) / sum(machines)
    epochs["residual_max"] = np.max([frame["residual_max"] for frame in frames], axis=0)
    return epochs


def _renumbered(frame: pd.DataFrame, first: Mapping[str, int], job: Ints | None) -> pd.DataFrame:
    """Return a cell's rows with the numbers of the whole fleet; −1, nothing, stays.

    A job's shards hold other data in each cell. As there are no more of them than instances, they begin where these do.
    """
    renumbered, starts = {}, {**first, "shard": first["instance"]}
    for name in frame.columns.intersection(list(starts)):
        number = frame[name].to_numpy(dtype=np.int64)
        renumbered[name] = np.where(number < 0, number, number + starts[name])
    if job is not None:
        renumbered["job"] = job[frame["job"].to_numpy()]
    return frame.assign(**renumbered)
