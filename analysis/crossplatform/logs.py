"""The 15-cent log of a service, from a run's tables or from a file: counts of requests by type and counters."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.log_columns import REQUESTS, LogColumn, log_columns
from analysis.occupancy.logs.log import PER_SECOND, unit_of
from analysis.tables.cells import FileCells, Source, cells_of
from analysis.tables.faults import FileError, FileFault
from analysis.tables.recipe import AS_IT_IS, NO_NUMBER, Recipe, prepared
from models.arrays import Floats, Ints
from models.errors import InputError

_EMPTY = ("", "-", "nan", "null", "none", "na", "n/a", "nat", "<na>")
"""Cells of what nobody measured."""
_MOST = 1e18
"""No number of a log is larger: it is what two thousand processors do in a day."""
_MAY_BE_EMPTY = ("response_time", "utilisation")
_ZONED = re.compile(r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$")
_UNEVEN = 0.01
"""Share of an interval by which its start may be off a whole number of intervals after the first."""


def from_tables(counts: pd.DataFrame, log: pd.DataFrame, cpu: pd.DataFrame, platform: str) -> ServiceLog:
    """Return the log of one platform from the tables of a run.

    Parameters
    ----------
    counts : table `service_counts`; a type that has no row in an interval had no request there
    log : table `service_log`, a row for each platform and interval
    cpu : table `service_cpu`; intervals that it lacks are NaN

    Raises
    ------
    ValueError
        If the platform was not measured, an interval is there twice, or counts are of intervals the log lacks.

    Examples
    --------
    >>> counts = pd.DataFrame({"start_s": [0.0, 30.0, 30.0], "type": ["buy", "buy", "see"], "requests": [2, 1, 4]})
    >>> log = pd.DataFrame({"platform": "piii", "start_s": [0.0, 30.0], "instructions": 9.0, "l1_misses": 3.0,
    ...     "l2_misses": 1.0, "response_time_s": 0.2})
    >>> cpu = pd.DataFrame({"platform": "piii", "start_s": [0.0, 30.0], "utilisation": [0.1, 0.2]})
    >>> read = from_tables(counts, log, cpu, "piii")
    >>> read.types, read.counts.tolist(), read.interval_s
    (('buy', 'see'), [[2.0, 0.0], [1.0, 4.0]], 30.0)
    """
    measured = log[log["platform"] == platform].sort_values("start_s")
    start_s = measured["start_s"].to_numpy(dtype=np.float64)
    if len(start_s) < 2:
        known = ", ".join(sorted(map(str, log["platform"].unique())))
        raise InputError(f"{platform} must have at least 2 intervals, got {len(start_s)}; there are logs of {known}")
    _once(start_s, f"the log of {platform}")
    busy = cpu[cpu["platform"] == platform]
    utilisation = np.full(len(start_s), np.nan)
    at = pd.Index(start_s).get_indexer(pd.Index(busy["start_s"]))
    utilisation[at[at >= 0]] = busy["utilisation"].to_numpy(dtype=np.float64)[at >= 0]
    levels = [name for name in (f"l{level}_misses" for level in range(1, 10)) if name in measured.columns]
    types, requests = _pivoted(counts, start_s)
    return ServiceLog(
        types,
        float(np.diff(start_s).min()),
        start_s,
        requests,
        measured["instructions"].to_numpy(dtype=np.float64),
        measured[levels].to_numpy(dtype=np.float64),
        measured["response_time_s"].to_numpy(dtype=np.float64),
        utilisation,
    )


def read(source: Source, recipe: Recipe = AS_IT_IS) -> ServiceLog:
    """Read the log of a service from a CSV or Parquet file, a query or a frame, in the form of table 1 of the paper.

    `log_columns` says which columns there are. Rows may be in any order; an interval without a row is not in the log.
    Where a cell of response time or utilisation is empty, it is NaN.

    Parameters
    ----------
    source : the file, gzipped or not, query or frame
    recipe : how its columns become those of a log; with one, its other columns are left aside

    Raises
    ------
    FileError
        With every fault: unknown, missing or repeated columns; cells that are empty, no number, negative or no time;
        a utilisation above 1; an interval that is there twice or does not start a whole number of intervals after the
        first; a type that never comes; a counter or a utilisation that is always 0; more misses of a cache level than
        of the one before, or than instructions, in total; fewer intervals than types and two more; a file that is cut
        off or separated by something else than commas.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("start_s,requests_buy,instructions_1e4,l1_misses,l2_misses,response_time_ms\\n"
    ...         "0,18,280322,31026,2072,250\\n60,33,311641,33375,2700,\\n120,7,90000,9000,500,125\\n")
    ...     log = read(file)
    >>> log.types, log.interval_s, log.instructions.tolist(), log.response_time_s.tolist()
    (('buy',), 60.0, [2803220000.0, 3116410000.0, 900000000.0], [0.25, nan, 0.125])
    """
    cells = cells_of(source)
    if not cells.names or any(fault.line == 1 for fault in cells.faults):
        raise FileError(cells.faults)
    if not recipe.takes_as_is:
        cells = prepared(cells, recipe)
    columns, faults = log_columns(cells.names, others=not recipe.takes_as_is)
    faults = [*cells.faults, *faults]
    values = dict[str, Floats]()
    for holds, column in columns.items():
        values[holds], problems = _times(cells, column) if holds == "timestamp" else _numbers(cells, column)
        faults += problems
    wrong = {fault.field for fault in faults}
    faults += _of_all(cells, columns, values, wrong)
    if faults:
        raise FileError(faults)
    return _log(values)


def _log(values: Mapping[str, Floats]) -> ServiceLog:
    """Return the log of columns without faults, in order of time."""
    start_s = values["start"] if "start" in values else values["timestamp"]
    order = np.argsort(start_s, kind="stable")
    types = [name for name in values if name.startswith(REQUESTS)]
    nobody = np.full(len(start_s), np.nan)
    return ServiceLog(
        tuple(name.removeprefix(REQUESTS) for name in types),
        float(np.diff(start_s[order]).min()),
        start_s[order],
        np.stack([values[name][order] for name in types], axis=1),
        values["instructions"][order],
        np.stack([values[name][order] for name in _levels(values)], axis=1),
        values.get("response_time", nobody)[order],
        values.get("utilisation", nobody)[order],
    )


def _numbers(cells: FileCells, column: LogColumn) -> tuple[Floats, list[FileFault]]:
    """Return a column as numbers in its base unit, and the faults of its cells, one for each at most."""
    text = _text(cells, column.name)
    unread = np.zeros(len(text), dtype=bool)
    for missing in cells.computed.get(column.name, ()):
        unread |= missing.rows & (missing.problem == NO_NUMBER)
    empty = text.str.lower().isin(_EMPTY).to_numpy() & ~unread
    value = pd.to_numeric(text.mask(empty), errors="coerce").to_numpy(dtype=np.float64)
    finite = np.isfinite(value)
    problems = {
        "should not be empty": empty & (column.holds not in _MAY_BE_EMPTY),
        NO_NUMBER: np.isnan(value) & ~empty,
        "should be a finite number": np.isinf(value),
        "should be at least 0": finite & (value < 0) & (column.holds != "start"),
        "should be a whole number": finite & (value != np.floor(value)) & column.holds.startswith(REQUESTS),
        f"should be at most {_MOST:g}": finite & (np.abs(value) > _MOST),
        "should be a share of at most 1": finite & (value <= _MOST) & (value > 1) & (column.holds == "utilisation"),
    }
    faults = [fault for problem, wrong in problems.items() for fault in cells.faults_of(column.name, wrong, problem)]
    return value * column.factor, faults


def _times(cells: FileCells, column: LogColumn) -> tuple[Floats, list[FileFault]]:
    """Return time stamps as seconds since 1970, and the faults of their cells."""
    text = _text(cells, column.name)
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    if len(text) and np.isfinite(numbers).all():
        return numbers / PER_SECOND[unit_of(column.name, numbers)[0]], []
    stamps = pd.to_datetime(text, errors="coerce", utc=True, format="ISO8601")
    # A number of four or six digits would be read as a year or a month.
    wrong = stamps.isna().to_numpy() | ~np.isnan(numbers)
    zoned = text.str.contains(_ZONED).to_numpy(dtype=bool)
    hint = "should be a time with its date, such as 2008-06-22T14:00:30, or seconds since 1970"
    faults = list(cells.faults_of(column.name, wrong, hint))
    faults += cells.faults_of(column.name, ~wrong & ~zoned & zoned.any(), "should have a zone, as others have")
    since: pd.Series = (stamps - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return np.asarray(since, dtype=np.float64), faults


def _of_all(
    cells: FileCells, columns: Mapping[str, LogColumn], values: Mapping[str, Floats], wrong: set[str]
) -> Iterator[FileFault]:
    """Yield what is wrong with whole columns: too few intervals, zeros, misses; and the spacing of intervals.

    Sums need every cell, so that columns with wrong cells have none; the spacing is that of the stamps that are right.
    """
    types = [name for name in columns if name.startswith(REQUESTS)]
    needed, have = len(types) + 2, len(cells.lines)
    right = {name: value for name, value in values.items() if columns[name].name not in wrong}
    if have < needed:
        if types and not cells.faults:  # of a row that is no row it is not known whether it were one
            yield FileFault(2, 1, "rows", f"should be at least {needed} intervals, two more than types", str(have))
    else:
        yield from _zeros(cells, columns, right)
    for upper, lower in pairwise(name for name in ("instructions", *_levels(values)) if name in right):
        # In total: the samples of a single interval may say so by chance.
        above, below = float(values[upper].sum()), float(values[lower].sum())
        if below > above > 0:
            name = columns[lower].name
            unit = ": is a unit such as _1e4 missing in a name?" if upper == "instructions" else ""
            problem = f"should be at most {columns[upper].name} in total, {above:g}{unit}"
            yield FileFault(1, cells.position(name), name, problem, f"{below:g}")
    time = next((name for name in ("start", "timestamp") if name in values), None)
    if time is not None:
        yield from _spacing(cells, columns[time].name, values[time])


def _zeros(cells: FileCells, columns: Mapping[str, LogColumn], values: Mapping[str, Floats]) -> Iterator[FileFault]:
    """Yield a fault for every column that is 0 throughout and must not be, one for all types if none ever came."""
    known = {name: value[~np.isnan(value)] for name, value in values.items() if name not in ("start", "timestamp")}
    zero = [name for name, value in known.items() if value.size and not value.any()]
    types = [name for name in values if name.startswith(REQUESTS)]
    if types and set(types) <= set(zero):
        yield FileFault(1, cells.position(columns[types[0]].name), f"{REQUESTS}TYPE", "should not all be 0", "zeros")
        zero = [name for name in zero if name not in types]
    for name in zero:
        out = ": leave the column out" if name in types or name in _MAY_BE_EMPTY else ""
        problem = f"should not be 0 in every interval{out}"
        yield FileFault(1, cells.position(columns[name].name), columns[name].name, problem, "zeros")


def _spacing(cells: FileCells, name: str, start_s: Floats) -> Iterator[FileFault]:
    """Yield a fault for every interval that is there twice, or starts at no multiple of their length."""
    order = np.argsort(start_s, kind="stable")[: np.count_nonzero(np.isfinite(start_s))]
    step = np.diff(start_s[order])
    again = np.zeros(len(start_s), dtype=bool)
    again[order[1:]] = step == 0
    yield from cells.faults_of(name, again, "should be there once")
    if not (step > 0).any():
        return
    # One wrong stamp makes the shortest step too short; many absent intervals make the median too long.
    lengths = (float(step[step > 0].min()), float(np.median(step[step > 0])))
    off = [np.abs(step / length - np.round(step / length)) > _UNEVEN for length in lengths]
    fewest = int(off[1].sum() < off[0].sum())
    uneven = np.zeros(len(start_s), dtype=bool)
    uneven[order[1:]] = off[fewest]
    problem = f"should start a whole number of intervals of {lengths[fewest]:g} s after the one before"
    yield from cells.faults_of(name, uneven, problem)


def _levels(values: Mapping[str, Floats]) -> list[str]:
    """Return the names of what counts misses, the first level first."""
    return sorted(name for name in values if name.endswith("_misses") and not name.startswith(REQUESTS))


def _text(cells: FileCells, name: str) -> pd.Series:
    return cells.columns[name].astype(str).fillna("").str.strip()


def _pivoted(counts: pd.DataFrame, start_s: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return the types in the order in which they come up first, and the requests of each: (n, J)."""
    column, types = pd.factorize(counts["type"])
    row = pd.Index(start_s).get_indexer(pd.Index(counts["start_s"]))
    if (row < 0).any():
        raise InputError(f"counts must be of intervals in the log, got one at {counts['start_s'].iloc[row.argmin()]} s")
    cell = row * len(types) + column
    _once(cell, "counts of a type")
    flat = np.zeros(len(start_s) * len(types))
    flat[cell] = counts["requests"].to_numpy(dtype=np.float64)
    return tuple(map(str, types)), flat.reshape(len(start_s), len(types))


def _once(keys: Floats | Ints, what: str) -> None:
    """Refuse keys that are there twice."""
    again = len(keys) - len(np.unique(keys))
    if again:
        raise InputError(f"{what} must have each interval once, got {again} again")
