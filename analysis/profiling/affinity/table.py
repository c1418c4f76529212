"""What is known of jobs on platforms: load, cycles per instruction, capacities and clocks."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from analysis.tables.cells import FileCells, Source, cells_of
from analysis.tables.columns import BY_EXPRESSION, Field, Remedies, read_rows
from analysis.tables.faults import FileError, FileFault
from analysis.tables.recipe import AS_IT_IS, Recipe, prepared
from models.arrays import Bools, Floats, Ints
from models.platforms import PLATFORMS, Platform

COUNTERS = ("l1_misses", "l2_misses", "llc_misses", "mispredictions")
"""Columns of what was counted, per instruction; empty where the job was not sampled."""
FIELDS = (
    Field("job", "text"),
    Field("platform", "text"),
    Field("load", "real", above_zero=False),
    Field("cpi", "real", may_be_empty=True),
    Field("capacity", "real", above_zero=False),
    Field("clock_hz", "real", required=False),
    Field("cpi_se", "real", above_zero=False, required=False, may_be_empty=True),
    Field("load_se", "real", above_zero=False, required=False, may_be_empty=True),
    Field("misses", "real", above_zero=False, required=False),
    *(Field(name, "real", above_zero=False, required=False, may_be_empty=True) for name in COUNTERS),
)
"""Columns of a table of affinities."""
NAMES: Final = tuple(field.name for field in FIELDS)
_OF_PLATFORM = ("capacity", "clock_hz")
_SAME = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class AffinityTable:
    """J jobs on I platforms, each pair once.

    Examples
    --------
    >>> row = {"job": "a", "platform": "p", "load": 5.0, "cpi": 2.0, "capacity": 10.0}
    >>> table = AffinityTable.of(pd.DataFrame([row]))
    >>> table.jobs, table.platforms, table.load.tolist(), table.capacity.tolist(), table.clock_hz
    (('a',), ('p',), [[5.0]], [10.0], None)
    """

    jobs: tuple[str, ...]
    platforms: tuple[str, ...]
    load: Floats
    """(J, I) instructions that each job executes on each platform now."""
    cpi: Floats
    """(J, I) cycles per instruction; NaN: not observed."""
    cpi_se: Floats
    """(J, I) standard error of it; 0: known exactly."""
    allowed: Bools
    """(J, I) whether the job may run there."""
    capacity: Floats
    """(I,) cycles that the platform has for these jobs."""
    clock_hz: Floats | None = None
    """(I,) clock; none: not known, and cycles are minimised in place of time."""
    load_se: Floats | None = None
    """(J, I) standard error of the load; none: known exactly."""
    misses: Floats | None = None
    """(J, I) last-level-cache misses per instruction; none: not known."""
    counters: Floats | None = None
    """(J, I, 4) what was counted per instruction, in the order of `COUNTERS`, NaN: not sampled; none: not known."""
    unused: tuple[str, ...] = ()
    """Columns of `COUNTERS` that were given without the others, and so are not used."""
    sheets: Mapping[str, Platform] = field(default_factory=lambda: PLATFORMS)
    """Spec sheets by name, of other platforms too."""

    @classmethod
    def of(cls, frame: pd.DataFrame, sheets: Mapping[str, Platform] = PLATFORMS) -> "AffinityTable":
        """Return the table of rows that are sound; pairs without a row are not allowed.

        Parameters
        ----------
        frame : columns job, platform, load, cpi (NaN: not observed), capacity, and optionally clock_hz, cpi_se,
            load_se, misses and all of `COUNTERS`
        sheets : spec sheets by name
        """
        job, jobs = pd.factorize(frame["job"])
        platform, platforms = pd.factorize(frame["platform"])
        shape = len(jobs), len(platforms)

        def spread(name: str, missing: float) -> Floats:
            grid = np.full(shape, missing)
            if name in frame:
                grid[job, platform] = frame[name].to_numpy(np.float64)
            return grid

        first = np.unique(platform, return_index=True)[1]
        allowed = np.zeros(shape, np.bool_)
        allowed[job, platform] = True
        clocks = frame["clock_hz"].to_numpy(np.float64)[first] if "clock_hz" in frame else None
        return cls(
            tuple(map(str, jobs)),
            tuple(map(str, platforms)),
            spread("load", 0.0),
            spread("cpi", np.nan),
            np.nan_to_num(spread("cpi_se", 0.0)),
            allowed,
            frame["capacity"].to_numpy(np.float64)[first],
            clocks,
            np.nan_to_num(spread("load_se", 0.0)) if "load_se" in frame else None,
            spread("misses", 0.0) if "misses" in frame else None,
            np.stack([spread(name, np.nan) for name in COUNTERS], axis=2) if {*COUNTERS} <= {*frame} else None,
            () if {*COUNTERS} <= {*frame} else tuple(name for name in COUNTERS if name in frame),
            sheets,
        )

    @property
    def total(self) -> Floats:
        """(J,) instructions of each job, wherever they are executed."""
        return np.asarray(self.load.sum(axis=1))

    @property
    def unobserved(self) -> Bools:
        """(J, I) pairs that are allowed but whose CPI was not observed."""
        return self.allowed & np.isnan(self.cpi)

    @property
    def clock(self) -> Floats:
        """(I,) what CPI is divided by: clock, or 1 without one."""
        return np.ones(len(self.platforms)) if self.clock_hz is None else self.clock_hz

    def cost(self, cpi: Floats) -> Floats:
        """Return (J, I) cycles, or seconds with clocks, per instruction; infinite where a job may not run."""
        return np.where(self.allowed, cpi / self.clock, np.inf)


def read(source: Source, recipe: Recipe = AS_IT_IS) -> AffinityTable:
    """Read a table of affinities from a CSV or Parquet file, a query or a frame.

    A pair without a row is one on which the job must not run; one with a row and an empty CPI was not observed.

    Parameters
    ----------
    source : columns as in `FIELDS`, one row per job and platform
    recipe : how its columns become those; with one, its other columns are left aside

    Raises
    ------
    FileError
        With every fault: missing columns and unknown ones, counters that cannot be, pairs that are there twice, numbers
        out of bounds, capacities or clocks that differ between rows of one platform, jobs of which no CPI is known.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("job,platform,load,cpi,capacity\\na,p,5,2,10\\nb,p,1,,11\\n")
    ...     read(file)
    Traceback (most recent call last):
    analysis.tables.faults.FileError: 3:4: cpi: should be known on one platform at least for job b, got ""
    3:5: capacity: should be the same in all rows of platform p (10 in line 2), got 11
    """
    cells = cells_of(source)
    if not recipe.takes_as_is:
        cells = prepared(cells, recipe)
    strange = [*(unknown_columns(cells, NAMES) if recipe.takes_as_is else ()), *impossible(cells), *_across(cells)]
    try:
        frame = read_rows(source, FIELDS, _pair, recipe, Remedies(BY_EXPRESSION, by_query=True)).table
    except FileError as error:
        raise FileError([*error.faults, *strange]) from None
    faults = [*strange, *_unknown_jobs(cells, frame)]
    if faults:
        raise FileError(faults)
    return AffinityTable.of(frame)


def _pair(names: Sequence[str]) -> Sequence[str]:
    """Return the columns that say of which pair a row is."""
    return ("job", "platform") if {"job", "platform"} <= {*names} else ()


def _across(cells: FileCells) -> Iterator[FileFault]:
    """Yield a fault for every number of a platform that differs between its rows."""
    if "platform" not in cells.columns:
        return
    platforms = cells.columns["platform"].astype(str).str.strip()
    for name in (name for name in _OF_PLATFORM if name in cells.columns):
        numbers = pd.to_numeric(cells.columns[name], errors="coerce").to_numpy(np.float64)
        first = _first_known(platforms, numbers)
        for row in np.flatnonzero(np.isfinite(numbers) & (first >= 0)):
            at = first[row]
            if abs(numbers[row] - numbers[at]) > _SAME * abs(numbers[at]):
                known = f"{numbers[at]:.10g} in line {int(cells.lines[at])}"
                problem = f"should be the same in all rows of platform {platforms.iloc[row]} ({known})"
                yield FileFault(int(cells.lines[row]), cells.position(name), name, problem, f"{numbers[row]:.10g}")


def _first_known(platforms: "pd.Series[str]", numbers: Floats) -> Ints:
    """Return for each row the first row of its platform with a number, −1 if there is none."""
    rows = pd.Series(np.where(np.isfinite(numbers), np.arange(len(numbers)), np.nan))
    return rows.groupby(platforms.to_numpy()).transform("min").fillna(-1).to_numpy(np.int64)


def _unknown_jobs(cells: FileCells, frame: pd.DataFrame) -> Iterator[FileFault]:
    """Yield a fault for every job whose CPI is known on no platform: nothing can be said of it anywhere."""
    known = frame["cpi"].notna().groupby(frame["job"]).transform("any").to_numpy(np.bool_)
    unseen = frame.loc[~known, "job"].drop_duplicates()
    for row, job in zip(unseen.index, unseen, strict=True):
        line = int(cells.lines[row])
        yield FileFault(
            line, cells.position("cpi"), "cpi", f"should be known on one platform at least for job {job}", '""'
        )


def frame_of(table: AffinityTable, load: Floats) -> pd.DataFrame:
    """Return an assignment as rows of job, platform, load: every pair with load.

    Parameters
    ----------
    table : jobs and platforms
    load : (J, I) instructions

    Examples
    --------
    >>> row = {"job": "a", "platform": "p", "load": 5.0, "cpi": 2.0, "capacity": 10.0}
    >>> table = AffinityTable.of(pd.DataFrame([row]))
    >>> frame_of(table, table.load).to_dict("records")
    [{'job': 'a', 'platform': 'p', 'load': 5.0}]
    """
    job, platform = np.nonzero(load > 0)
    names, platforms = np.array(table.jobs), np.array(table.platforms)
    return pd.DataFrame({"job": names[job], "platform": platforms[platform], "load": load[job, platform]})


_LEVELS = ("l1_misses", "l2_misses", "llc_misses")
"""Caches from the first level on: what misses in one missed in those before it."""
_ROUNDING = 1e-9


def unknown_columns(cells: FileCells, known: Sequence[str]) -> Iterator[FileFault]:
    """Yield a fault for every column that is none of those known, with the nearest name.

    Parameters
    ----------
    cells : of the file
    known : names of the columns that a table may have

    Examples
    --------
    >>> cells = FileCells(["clok_hz"], {}, np.array([2]))
    >>> [fault.problem for fault in unknown_columns(cells, ["load", "clock_hz"])]
    ['unknown column; did you mean clock_hz?']
    """
    for place, name in enumerate(cells.names, 1):
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield FileFault(1, place, name, f"unknown column; {hint}", f'"{name}"')


def impossible(cells: FileCells) -> Iterator[FileFault]:
    """Yield a fault for every row with more misses of a cache than of one before it, or over 1 misprediction.

    Every access that misses in a level of a hierarchy of caches missed in the levels before it (Hennessy and Patterson
    2019, appendix B); an instruction is one branch at most.

    Parameters
    ----------
    cells : of the file; what is no number is left to others

    Examples
    --------
    >>> columns = {"l1_misses": pd.Series(["0.01"]), "llc_misses": pd.Series(["0.02"])}
    >>> [fault.problem for fault in impossible(FileCells([*columns], columns, np.array([2])))]
    ['should be at most l1_misses, 0.01']
    """
    levels = [name for name in _LEVELS if name in cells.columns]
    numbers = {name: _numbers(cells, name) for name in levels}
    for i, name in enumerate(levels[1:], 1):
        least = np.fmin.reduce([numbers[before] for before in levels[:i]])
        for row in np.flatnonzero(numbers[name] > least * (1.0 + _ROUNDING)).tolist():
            bound = next(before for before in reversed(levels[:i]) if numbers[before][row] == least[row])
            yield _fault(cells, row, name, f"should be at most {bound}, {least[row]:.10g}")
    if "mispredictions" in cells.columns:
        for row in np.flatnonzero(_numbers(cells, "mispredictions") > 1.0).tolist():
            yield _fault(cells, row, "mispredictions", "should be at most 1 an instruction")


def _numbers(cells: FileCells, name: str) -> Floats:
    return np.asarray(pd.to_numeric(cells.columns[name], errors="coerce"), dtype=np.float64)


def _fault(cells: FileCells, row: int, name: str, problem: str) -> FileFault:
    got = f"{_numbers(cells, name)[row]:.10g}"
    return FileFault(int(cells.lines[row]), cells.position(name), name, problem, got)
