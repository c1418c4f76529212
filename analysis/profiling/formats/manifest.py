"""A manifest: a table that says where and when each of several files of profiles was taken."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.profiling.formats.foreign import ForeignProfile
from analysis.profiling.query import LABEL, did_you_mean
from analysis.tables.cells import FileCells, cells_of
from analysis.tables.faults import FileError, FileFault
from analysis.tables.quantities import times_s
from models.arrays import Floats

_FILE, _MACHINE, _SERVICE, _START, _DURATION = KNOWN = ("file", "machine", "service", "start", "duration_s")
"""Columns that are no labels."""
_LEAST_S = 1e8
"""Smaller numbers are no seconds since 1970 at which anybody profiled."""
_MISTYPED = 0.8
"""Likeness of names from which on one may be meant for another."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """What a manifest says of a file; what is empty or NaN is as the file says."""

    machine: str = ""
    service: str = ""
    start_s: float = math.nan
    """Since 1970."""
    length_s: float = math.nan
    labels: tuple[tuple[str, str], ...] = ()
    """Name and value of what all samples are labelled with, too."""

    def of(self, profile: ForeignProfile) -> ForeignProfile:
        """Return a profile with what the manifest says of it.

        Examples
        --------
        >>> entry = ManifestEntry("web1", start_s=7.0, labels=(("rack", "r2"),))
        >>> profile = entry.of(ForeignProfile(()))
        >>> profile.start_s, profile.origins[0].machine, profile.origins[0].labels
        (7.0, 'web1', (('rack', 'r2'),))
        """
        origins = tuple(
            origin._replace(
                machine=self.machine or origin.machine,
                application=self.service or origin.application,
                labels=tuple(sorted((dict(origin.labels) | dict(self.labels)).items())),
            )
            for origin in profile.origins
        )
        profile = replace(profile, origins=origins)
        if not math.isnan(self.start_s):
            profile = replace(profile, start_s=self.start_s)
        return profile if math.isnan(self.length_s) else replace(profile, length_s=self.length_s, span=False)


def read_manifest(path: Path) -> tuple[dict[Path, ManifestEntry], list[str]]:
    """Return what a table says of each file that it names, in its order, and notes on its columns.

    Its columns are `file` (relative to the table) and perhaps `machine`, `service`, `start` (ISO 8601, UTC without a
    zone, or seconds since 1970) and `duration_s`; every other column is a label. An empty cell says nothing.

    Parameters
    ----------
    path : CSV or Parquet, perhaps packed

    Raises
    ------
    FileError
        With every fault: a file that is named twice, a time that is none. Files that are not there are faults beside
        others only: by themselves they are left to the import, which leaves them out.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.pb").write_text(""), (Path(folder) / "m.csv").write_text("file,rack\\na.pb,r2\\n")
    ...     entries, notes = read_manifest(Path(folder) / "m.csv")
    >>> [(file.name, entry.labels) for file, entry in entries.items()], notes
    ([('a.pb', (('rack', 'r2'),))], ['column rack became label label.rack'])
    """
    cells = cells_of(path)
    if not cells.faults:
        cells.faults += _of_header(cells)
    if cells.faults:
        raise FileError(cells.faults, str(path))
    files = [path.parent / name for name in cells.text(_FILE)]
    texts = {name: cells.text(name) for name in cells.names if name != _FILE}
    start_s, length_s = _starts(cells), _lengths(cells)
    faults = [*_of_files(cells, files), *_of_numbers(cells, _START, start_s), *_of_numbers(cells, _DURATION, length_s)]
    if faults:
        raise FileError([*faults, *_absent(cells, files)], str(path))
    keys = [name for name in texts if name not in KNOWN]
    entries = {
        file: ManifestEntry(
            texts[_MACHINE].iloc[row] if _MACHINE in texts else "",
            texts[_SERVICE].iloc[row] if _SERVICE in texts else "",
            float(start_s[row]),
            float(length_s[row]),
            tuple((key.removeprefix(LABEL), texts[key].iloc[row]) for key in keys if texts[key].iloc[row]),
        )
        for row, file in enumerate(files)
    }
    return entries, label_notes(cells.names)


def label_notes(names: Sequence[str]) -> list[str]:
    """Return which columns became labels without being called such, and what the mistyped ones may be meant for.

    Examples
    --------
    >>> label_notes(["file", "machne", "rack", "label.team"])
    ['columns machne, rack became labels label.machne, label.rack', 'column machne: did you mean machine?']
    """
    labels = [name for name in names if name not in KNOWN and not name.startswith(LABEL)]
    if not labels:
        return []
    several, called = "s" * (len(labels) > 1), ", ".join(f"{LABEL}{name}" for name in labels)
    absent = [name for name in KNOWN if name not in names]
    meant = {name: did_you_mean(name.lower(), absent, _MISTYPED) for name in labels}
    return [
        f"column{several} {', '.join(labels)} became label{several} {called}",
        *(f"column {name}: {question}" for name, question in meant.items() if question),
    ]


def _of_header(cells: FileCells) -> Iterator[FileFault]:
    """Yield what is wrong with the names of columns, or that there is no row."""
    if _FILE not in cells.names:
        yield FileFault(1, 1, _FILE, "should be a column", ", ".join(cells.names))
    for at, name in enumerate(cells.names, 1):
        if not name.removeprefix(LABEL):
            yield FileFault(1, at, "", "should have a name", "none")
        elif name.removeprefix(LABEL) != name and name.removeprefix(LABEL) in cells.names:
            yield FileFault(1, at, name, "should be there once", f"{name.removeprefix(LABEL)}, too")
    if not len(cells.lines):
        yield FileFault(1, 1, "", "should be followed by a row for each file", "none")


def _of_files(cells: FileCells, files: list[Path]) -> Iterator[FileFault]:
    """Yield the cells that name no file, or one for the second time."""
    lines, position = dict[Path, int](), cells.position(_FILE)
    for line, file, text in zip(cells.lines.tolist(), files, cells.text(_FILE), strict=True):
        if problem := _no_file(file) if text else "should name a file":
            yield FileFault(line, position, _FILE, problem, f'"{text}"')
        elif (first := lines.setdefault(file.resolve(), line)) != line:
            yield FileFault(line, position, _FILE, f"should be there once, and is in line {first}", f'"{text}"')


def _no_file(path: Path) -> str:
    """Return why a path cannot be a file of a profile; empty: it may be one that is not there."""
    try:
        if path.is_dir():
            return "should be a file, not a folder"
        return "should be a file, not a pipe or a device" if path.exists() and not path.is_file() else ""
    except (OSError, ValueError) as error:
        return f"should name a file: {error.strerror if isinstance(error, OSError) else error}"


def _absent(cells: FileCells, files: list[Path]) -> Iterator[FileFault]:
    """Yield the files that are not there."""
    for line, file, text in zip(cells.lines.tolist(), files, cells.text(_FILE), strict=True):
        if not _no_file(file) and not file.exists():
            yield FileFault(line, cells.position(_FILE), _FILE, f"is not there: {file}", f'"{text}"')


def _starts(cells: FileCells) -> Floats:
    """Return when each file began, in seconds since 1970; NaN: no such time is there."""
    if _START not in cells.names:
        return np.full(len(cells.lines), np.nan)
    texts = cells.text(_START)
    few = pd.to_numeric(texts, errors="coerce").abs() < _LEAST_S  # else the number would be a year
    known = zip(texts, few.tolist(), strict=True)
    return np.array([times_s(pd.Series([text]))[0][0] if text and not small else np.nan for text, small in known])


def _lengths(cells: FileCells) -> Floats:
    """Return how long each file took; NaN: no such time is there."""
    if _DURATION not in cells.names:
        return np.full(len(cells.lines), np.nan)
    length_s = pd.to_numeric(cells.text(_DURATION), errors="coerce").to_numpy(np.float64)
    return np.where((length_s > 0) & np.isfinite(length_s), length_s, np.nan)


def _of_numbers(cells: FileCells, name: str, value: Floats) -> Iterator[FileFault]:
    """Yield the cells of a column of times that say none."""
    if name in cells.names:
        time = "should be a time such as 2026-05-01T12:00Z, or seconds since 1970"
        problem = time if name == _START else "should be a number of seconds above 0"
        yield from cells.faults_of(name, np.isnan(value) & (cells.text(name) != "").to_numpy(), problem)
