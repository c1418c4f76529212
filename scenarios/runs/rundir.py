"""Run directories: ``runs/<scenario>-<digest>/`` with one Parquet file per table and a manifest written last.

The manifest says which source files and which versions made the run.
"""

import json
import os
import platform
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from errno import EEXIST, ENOTEMPTY
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter, ValidationError

import models
import sim
from models.errors import InputError, WscError
from models.platforms import Platform, Sheet, sheets_of
from models.tables import TABLES
from scenarios.files.faults import FaultsError
from scenarios.kinds import KINDS
from scenarios.runs import partitions
from scenarios.runs.disk import SUFFIX, JsonError, abandoned, file_digest, hidden, json_of
from scenarios.runs.partitions import Listed
from scenarios.runs.verify import faults_of
from sim.recorder import TableSummary

_T = TypeVar("_T")
_SHEETS: TypeAdapter[Mapping[str, Sheet]] = TypeAdapter(Mapping[str, Sheet])
_CLOCKS: TypeAdapter[Mapping[str, float]] = TypeAdapter(Mapping[str, float])
JsonObject: TypeAlias = Mapping[str, Any]
"""What a manifest says, or a part of it, as JSON holds it; `_SHAPES` is checked when it is read."""
DISTRIBUTIONS = ("wsc-testbed", "numpy", "numba", "scipy", "pandas", "simpy", "pyarrow")
"""What, beside Python, decides a run's last bit: the testbed itself, and the libraries that its numbers go through."""
MANIFEST = "manifest.json"
_DIGEST_CHARACTERS = 12


class RunError(WscError):
    """A directory is not a finished run, or a run lacks what was asked of it."""


class FolderError(RunError):
    """A folder cannot be made; `str()` says where and why."""

    def __init__(self, folder: Path, fault: OSError) -> None:
        super().__init__(f"cannot make a folder at {folder}: {fault.strerror}")


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its directory and its manifest. Tables are read when asked for.

    `cell` and `parts` are of one cell seen alone, see `split`.

    Examples
    --------
    >>> Run(Path("runs/small-1234"), {"scenario": "small"})
    <Run: runs/small-1234>
    """

    path: Path
    manifest: JsonObject
    cell: str | None = None
    parts: partitions.Parts | None = None

    def __repr__(self) -> str:
        return f"<Run: {self.path}>"

    @property
    def listed(self) -> Listed:
        """What the manifest says of each table: rows, digest, and file_bytes, file_digest, or these by cell."""
        return dict(self.manifest.get("tables", {}))

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells of which tables are in parts, in order; none of a run that is whole."""
        return tuple(self.manifest.get("cells", ()))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that are there, in alphabetical order."""
        whole = {file.stem for file in self.path.glob("*.parquet")}
        return tuple(sorted(whole | {name for name in self.listed if self.has(name)} if self.cells else whole))

    def has(self, name: str) -> bool:
        """Return whether a table is there; a copy of a run may lack its ``truth_`` tables."""
        return self.file(name).is_dir() if self.cells else self.file(name).is_file()

    def split(self) -> tuple["Run", ...]:
        """Return the run cell by cell, each with its own rows and the whole fleet's numbers; a whole run is one part.

        Examples
        --------
        >>> facts = {"numbers": {}}
        >>> run = Run(Path("runs/cells-1"), {"tables": {}, "cells": {"c0001": facts, "c0002": facts}})
        >>> [part.cell for part in run.split()]
        ['c0001', 'c0002']
        """
        if not self.cells or self.cell is not None:
            return (self,)
        parts = self._parts()
        return tuple(replace(self, cell=name, parts=parts) for name in self.cells)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read a table, with a plain RangeIndex; of several cells as `partitions.Parts.read` says.

        Parameters
        ----------
        name : a table of `models.tables` that was recorded
        columns : which columns, in this order; all without it

        Raises
        ------
        RunError
            If the table or a column is not there, and then the message lists those that are; or it cannot be read.
        FaultsError
            If a cell's part of it is damaged.
        """
        if not self.has(name):
            raise RunError(f"{self.path}: no table {name}; there are {', '.join(self.tables) or 'none'}")
        if self.cells:
            parts = self.parts or self._parts()
            wanted = self._known(name, parts.columns(name), columns)
            return parts.read(name, self.cells if self.cell is None else (self.cell,), wanted)
        try:
            with pq.ParquetFile(self.file(name)) as file:
                wanted = self._known(name, file.schema_arrow.names, columns)
                frame: pd.DataFrame = file.read(wanted).to_pandas()
        except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
            code = error.errno if isinstance(error, OSError) else None
            why = os.strerror(code) if code else f"is {self.file(name).name} cut off?"
            raise RunError(f"{self.path}: table {name} cannot be read: {why}") from error
        self._check(name)
        return frame

    def file(self, name: str) -> Path:
        """Return where a table is, or would be if it were there; of several cells it is a folder."""
        return self.path / (name if self.cells else f"{name}.parquet")

    def files(self) -> Iterator[tuple[Path, JsonObject]]:
        """Yield every file that the manifest lists, and what it says of it."""
        for name, entry in self.listed.items():
            if "partitions" not in entry:
                yield self.file(name), entry
            for cell, part in entry.get("partitions", {}).items():
                yield partitions.partition(self.path, name, cell), part

    def _known(self, name: str, known: list[str], columns: Sequence[str] | None) -> list[str]:
        """Return the columns that are asked for, all if none is named, if the table has them."""
        unknown = [column for column in columns or () if column not in known]
        if unknown:
            raise RunError(f"{self.path}: {name} has no column {', '.join(unknown)}; it has {', '.join(known)}")
        return known if columns is None else list(columns)

    def _check(self, name: str) -> None:
        """Refuse a table that is not as the run wrote it, if it is not what such a table can be."""
        entry = self.listed.get(name, {})
        if name in TABLES and "file_digest" in entry and file_digest(self.file(name)) != entry["file_digest"]:
            faults = list(faults_of(self.file(name), name, entry.get("rows", 1)))
            if faults:
                raise FaultsError(faults)

    def world(self, adapter: TypeAdapter[_T]) -> _T:
        """Return the scenario that was run, by the schema of its kind; refuse one of another version.

        Raises
        ------
        RunError
            If the manifest does not hold such a scenario.
        """
        try:
            return adapter.validate_json(json.dumps(self.manifest.get("resolved")))
        except ValidationError as fault:
            raise RunError(f"{self.path}: the manifest holds no scenario: {fault.error_count()} faults") from None

    @property
    def sheets(self) -> Mapping[str, Platform]:
        """The spec sheets that the scenario knew: the shipped platforms, and its own by the manifest.

        Examples
        --------
        >>> from dataclasses import asdict
        >>> from models.platforms import Cache
        >>> mine = Sheet(cores=4, base_frequency_hz=2e9, caches=(Cache(32768, 4),), memory_latency_s=1e-7,
        ...              memory_bandwidth_bytes_per_s=1e10, tdp_w=95, idle_power_w=40, core_cpi_factor=1)
        >>> run = Run(Path("runs/mine-1"), {"kind": "fleet", "resolved": {"platforms": {"mine": asdict(mine)}}})
        >>> run.sheets["mine"].cores
        4
        """
        kind, resolved = KINDS.get(str(self.manifest.get("kind"))), self.manifest.get("resolved")
        own = resolved.get(kind.own_platforms, {}) if kind is not None and isinstance(resolved, Mapping) else {}
        try:
            return sheets_of(_SHEETS.validate_json(json.dumps(own)))
        except ValidationError as fault:
            raise RunError(f"{self.path}: the manifest holds no platforms: {fault.error_count()} faults") from None

    @property
    def clock_hz(self) -> Mapping[str, float]:
        """The clocks of platforms that did not run at the base clocks of their spec sheets, by the manifest.

        Examples
        --------
        >>> Run(Path("runs/slow-1"), {"kind": "cross_platform", "resolved": {"clocks": {"pres": 1.1e9}}}).clock_hz
        {'pres': 1100000000.0}
        """
        resolved = self.manifest.get("resolved")
        clocks = resolved.get("clocks", {}) if isinstance(resolved, Mapping) else {}
        try:
            return _CLOCKS.validate_json(json.dumps(clocks))
        except ValidationError as fault:
            raise RunError(f"{self.path}: the manifest holds no clocks: {fault.error_count()} faults") from None

    def _parts(self) -> partitions.Parts:
        numbers = {cell: entry["numbers"] for cell, entry in self.manifest["cells"].items()}
        return partitions.Parts(self.path, self.listed, numbers)


class _Manifest(dict[str, Any]):
    """What a manifest says; what it does not say is told as its fault."""

    def __init__(self, path: Path, facts: JsonObject) -> None:
        super().__init__(facts)
        self._path = path

    def __missing__(self, name: str) -> NoReturn:
        raise RunError(f"{self._path}: {MANIFEST} does not say {name}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_map(value: object, fits: Callable[[Any], bool] = lambda _: True) -> bool:
    return isinstance(value, dict) and all(map(fits, value.values()))


def _is_file(value: object) -> bool:
    """Return whether that could be said of a file: its rows, size and digest, as far as they are there."""
    if not isinstance(value, dict):
        return False
    numbers = all(_is_whole(value[name]) for name in ("rows", "file_bytes") if name in value)
    return numbers and all(isinstance(value[name], str) for name in ("digest", "file_digest") if name in value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and _is_file(value) and _is_map(value.get("partitions", {}), _is_file)


def _is_cell(value: object) -> bool:
    return isinstance(value, dict) and _is_map(value.get("numbers"), _is_whole)


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "tables": lambda value: _is_map(value, _is_table),
    "cells": lambda value: _is_map(value, _is_cell),
    "counts": lambda value: _is_map(value, _is_whole),
    "resolved": _is_map,
    "versions": _is_map,
    "seed": _is_whole,
    "duration_s": lambda value: isinstance(value, float | int),
    "scenario": lambda value: isinstance(value, str),
}
"""What a manifest holds, where it holds it, has such a shape."""


@dataclass(slots=True)
class Draft:
    """A run that is being made: where its tables go, and what its manifest will say.

    `path` is the hidden directory to write into, `destination` where the finished run will be.
    """

    path: Path
    destination: Path
    facts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, TableSummary] = field(default_factory=dict)
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: dict[str, dict[str, JsonObject]] = field(default_factory=dict)

    def describe(self, kind: str, seed: int, scenario: JsonObject, counts: Mapping[str, int]) -> None:
        """Say what was run: the scenario's kind and seed, all its resolved values, and how much there was of what."""
        self.facts = {"kind": kind, "seed": seed, "resolved": dict(scenario), "counts": dict(counts)}

    def add(self, *summaries: TableSummary) -> None:
        """Take tables that `sim.recorder` has written to `path` into the run."""
        self.tables |= {summary.table: summary for summary in summaries}

    def take(self, cell: str, run: Run) -> None:
        """Take the tables of a cell's own run as its parts of the tables of this one."""
        self.cells[cell] = {
            "seed": run.manifest["seed"],
            "counts": run.manifest["counts"],
            "numbers": partitions.used([run.file(name) for name in run.listed]),
        }
        for name, entry in run.listed.items():
            partitions.place(run.file(name), self.path, name, cell)
            self.parts.setdefault(name, {})[cell] = entry


def run_directory(out: Path, name: str, digest: str) -> Path:
    """Return where the run of a scenario is kept: same question, same place.

    Parameters
    ----------
    out : parent folder of all runs; ~ is the user's home, as shells leave it in ``--out=~/runs``
    name : the scenario's name
    digest : digest of the resolved scenario, hexadecimal; its first 12 characters are used
    """
    if not name or name.startswith(".") or Path(name).name != name:
        raise InputError(f"scenario name {name!r}: must be usable as the name of a visible folder")
    return Path(os.path.expanduser(out)) / f"{name}-{digest[:_DIGEST_CHARACTERS]}"


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, unless it is there.

    Raises
    ------
    FolderError
        If something else is in its place, or it may not be made.

    Examples
    --------
    >>> make_folder(Path("/dev/null"))
    Traceback (most recent call last):
    scenarios.runs.rundir.FolderError: cannot make a folder at /dev/null: File exists
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise FolderError(folder, fault) from fault


@contextmanager
def creating(out: Path, name: str, digest: str) -> Generator[Draft]:
    """Make a run in a hidden directory beside its place, and move it there when it is complete.

    The manifest is written last. Whatever ends the block early, Ctrl-C included, removes the hidden directory; one
    that a killed process left behind is removed by the next `creating` in the same folder. A run that was already
    there is replaced, and stays until the new one is complete.

    Parameters
    ----------
    out : parent folder of all runs, made if need be
    name : the scenario's name
    digest : digest of the resolved scenario, hexadecimal

    Yields
    ------
    Draft
        Write tables into its `path`, then call its `add` and `describe`.
    """
    destination = run_directory(out, name, digest)
    make_folder(destination.parent)
    _remove_stale(destination.parent)
    draft = Draft(hidden(destination), destination)
    started, clock = datetime.now(UTC), perf_counter()
    try:
        draft.path.mkdir()
        yield draft
        manifest = _manifest(draft, name, digest)
        manifest = {
            **manifest,
            "started": started.isoformat(timespec="seconds"),
            "duration_s": round(perf_counter() - clock, 3),
        }
        (draft.path / MANIFEST).write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        _swap(draft.path, destination)
    except BaseException:
        _remove(draft.path)
        raise


def open_run(path: Path) -> Run:
    """Open a finished run; one copied without its ``truth_`` tables opens too.

    Raises
    ------
    RunError
        If there is no readable manifest, or the directory is an unfinished run.
    FaultsError
        If the cells' parts of its tables are not those that it lists.
    """
    path = Path(path)
    if path.name.endswith(SUFFIX):
        raise RunError(f"{path}: an unfinished run")
    try:
        manifest = json_of(path / MANIFEST)
    except FileNotFoundError:
        raise RunError(f"{path}: not a finished run, there is no {MANIFEST}") from None
    except NotADirectoryError:
        raise RunError(f"{path}: is a file, not the folder of a run") from None
    except (OSError, JsonError) as fault:
        raise RunError(f"{path}: {MANIFEST} cannot be read: {fault}") from fault
    if not isinstance(manifest, dict) or not isinstance(manifest.get("tables"), dict):
        raise RunError(f"{path}: {MANIFEST} does not list the run's tables")
    wrong = [name for name, fits in _SHAPES.items() if name in manifest and not fits(manifest[name])]
    if wrong:
        raise RunError(f"{path}: {MANIFEST} does not hold what wsc run writes as {', '.join(wrong)}")
    if "cells" in manifest:
        partitions.check(path, manifest["tables"])
    return Run(path, _Manifest(path, manifest))


def intact(path: Path) -> bool:
    """Return whether a run is complete and undamaged: every table has the size and the bytes that the manifest says."""
    try:
        run = open_run(path)
        return all(_file_facts(file).items() <= dict(entry).items() for file, entry in run.files())
    except (RunError, OSError, TypeError, ValueError):
        return False


def reusable(path: Path) -> bool:
    """Return whether a run is intact and this very code with these versions would make the same again."""
    if not intact(path):
        return False
    manifest = open_run(path).manifest
    source = source_of_run(str(manifest.get("kind")))
    return bool(manifest.get("source") == source and manifest.get("versions") == versions())


def _manifest(draft: Draft, name: str, digest: str) -> JsonObject:
    """Return what the manifest says but for the clock, or complain of what the draft left unsaid."""
    written = {file.name.removesuffix(SUFFIX).removesuffix(".parquet") for file in draft.path.glob("*.parquet*")}
    if not draft.facts:
        raise RunError(f"{draft.destination.name}: the run was not described")
    if written != set(draft.tables):
        raise RunError(
            f"{draft.destination.name}: tables written ({', '.join(sorted(written))}) "
            f"are not the tables added ({', '.join(sorted(draft.tables))})"
        )
    tables: dict[str, JsonObject] = {
        table: {"rows": summary.rows, "digest": summary.digest, **_file_facts(draft.path / f"{table}.parquet")}
        for table, summary in sorted(draft.tables.items())
    }
    tables |= {table: partitions.whole(parts) for table, parts in sorted(draft.parts.items())}
    head = {"kind": draft.facts["kind"], "scenario": name, "digest": digest}
    cells = {"cells": draft.cells} if draft.cells else {}
    code = {"versions": versions(), "source": source_of_run(draft.facts["kind"])}
    return {**head, **draft.facts, **cells, **code, "tables": tables}


def _file_facts(file: Path) -> JsonObject:
    return {"file_bytes": file.stat().st_size, "file_digest": file_digest(file)}


def _swap(finished: Path, destination: Path) -> None:
    """Move the finished run into its place; one that stands there, or that another process puts there, makes way."""
    retired: list[Path] = []
    while not _moved(finished, destination):
        aside = hidden(destination)
        with suppress(FileNotFoundError):
            destination.rename(aside)
            retired.append(aside)
    for run in retired:
        _remove(run)


def _moved(finished: Path, destination: Path) -> bool:
    """Move a directory to a free place, or return False if a run stands there."""
    try:
        finished.rename(destination)
    except OSError as fault:
        if fault.errno not in {ENOTEMPTY, EEXIST}:
            raise
        return False
    return True


def _remove_stale(out: Path) -> None:
    """Remove the hidden directories of processes that are no more."""
    for directory in abandoned(out):
        _remove(directory)


def _remove(directory: Path) -> None:
    """Remove a directory, its manifest first, so that no part of it ever looks complete."""
    (directory / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)


def versions() -> dict[str, str]:
    """Return the versions of Python, of the testbed and of the libraries that decide what a run holds."""
    return {"python": platform.python_version()} | {name: version_of(name) for name in DISTRIBUTIONS}


def source_of_run(kind: str) -> str:
    """Return the digest of all the code that makes the tables of a run of a kind."""
    return source_digest(models, sim, names=KINDS[kind].makers if kind in KINDS else ())


def source_digest(*packages: ModuleType, names: Sequence[str] = ()) -> str:
    """Return the digest of the source files of packages and of named modules; of `models` and `sim` if none is said."""
    digest = blake2b(digest_size=16)
    for package in packages or (models, sim):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{package.__name__}/{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    for name in names:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(name)
        digest.update(f"{name} {file_digest(Path(spec.origin))}\n".encode())
    return digest.hexdigest()


def version_of(name: str) -> str:
    """Return the version of a library that is installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def epoch_length_s(run: Run) -> float:
    """Return the length of a run's epochs in seconds, as its manifest says.

    Without a manifest that says so it is the time between the first two starts in table `epochs`, NaN of one epoch.

    Examples
    --------
    >>> epoch_length_s(Run(Path("nowhere"), {"resolved": {"epoch_s": 300.0}}))
    300.0
    """
    resolved = run.manifest.get("resolved")
    if isinstance(resolved, Mapping) and "epoch_s" in resolved:
        return float(resolved["epoch_s"])
    start_s = np.sort(run.table("epochs", ["start_s"])["start_s"].to_numpy(np.float64))
    return float(start_s[1] - start_s[0]) if start_s.size > 1 else float("nan")
