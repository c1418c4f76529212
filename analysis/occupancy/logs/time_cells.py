"""A log's columns of times checked cell by cell: numbers, time stamps, or durations that say their unit."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.occupancy.logs.clocks import localised
from analysis.occupancy.logs.log import FARTHEST_S, PER_SECOND, LogOptions, Roles, counted, roles, unit_of
from analysis.occupancy.logs.records import NOT_SEEN, Times
from analysis.tables.cells import FileCells
from analysis.tables.faults import FileError, FileFault
from analysis.tables.quantities import numbers, with_points

_ZONE = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"

ZONELESS = "should have a zone, as others have"
"""The problem of a stamp without a zone in a column whose other stamps have one."""


@dataclass(slots=True)
class PartTally:
    """What is counted of a table's columns of times while it is read part by part, or of the only part."""

    is_stamp: Mapping[str, bool] = field(default_factory=dict)
    """Whether columns hold stamps or numbers, where that is known; else most cells of a part decide."""
    stamps: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Cells of columns that can be read as either."""
    low: dict[str, FileFault] = field(default_factory=dict)
    """The first cell of a column that is below what it may hold."""
    lows: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, numbers: int, stamps: int) -> None:
        """Count cells of a column."""
        self.numbers[name] = self.numbers.get(name, 0) + numbers
        self.stamps[name] = self.stamps.get(name, 0) + stamps

    def add_low(self, cells: FileCells, name: str, low: "pd.Series[bool]", least: float) -> None:
        """Take the cells of a column that are too low."""
        if low.any():
            first = next(cells.faults_of(name, low, f"should be at least {least:g}"))
            self.low.setdefault(name, first)
            self.lows[name] = self.lows.get(name, 0) + int(low.sum())

    def faults(self) -> Iterator[FileFault]:
        """Yield a fault for each column with cells that are too low: the first is shown, the others are counted."""
        for name, fault in self.low.items():
            others = self.lows[name] - 1
            more = f", as should {counted(others, 'cell')} further down" if others else ""
            yield fault._replace(problem=f"{fault.problem}{more}")


def careful_columns(
    cells: FileCells, options: LogOptions, form: Times | None, *, tally: PartTally | None = None
) -> tuple[Roles, dict[str, pa.ChunkedArray]]:
    """Return which columns hold what, and each of them, checked cell by cell.

    Parameters
    ----------
    cells : of a file, or of a part of it
    options : what the file does not say itself
    form : of its records, if that is known
    tally : of a part, which need not hold times of each kind: where its cells are counted
    """
    if not cells.names or any(fault.line == 1 for fault in cells.faults):
        raise FileError(cells.faults)
    which = _roles(cells, options, form)
    columns = {name: pa.chunked_array([pa.array(cells.columns[name])]) for name in which.labels()}
    faults = list(cells.faults)
    of_all = PartTally()
    for name in which.times():
        least = 0.0 if name == which.duration else form.least if form is not None else -np.inf
        columns[name], wrong = _checked(cells, name, least, options, tally or of_all, part=tally is not None)
        faults += wrong
    faults += of_all.faults()
    for name in which.classes():
        columns[name], wrong = _classes(cells, name)
        faults += wrong
    if not faults and not len(cells.lines):
        faults.append(FileFault(2, 1, "rows", "should hold at least one row", "none"))
    if faults:
        raise FileError(faults)
    return which, columns


def _roles(cells: FileCells, options: LogOptions, form: Times | None) -> Roles:
    """Return which columns hold what: by the form of a record, or by their names."""
    if form is None:
        return roles(cells.names, *options.stated())
    arrival, departure = (None, form.stamp) if form.by_end else (form.stamp, None)
    request = next((name for name in ("span_id", "insertId", "request_id") if name in cells.names), None)
    return Roles(arrival, departure, form.duration, request, None, options.priority)


def _checked(
    cells: FileCells, name: str, least: float, options: LogOptions, tally: PartTally, *, part: bool
) -> tuple[pa.ChunkedArray, list[FileFault]]:
    """Return a column as numbers or as time stamps, whichever most of its cells are, and its faults."""
    given = cells.columns[name]
    text = given.astype(str).str.strip()
    missing = given.isna() | text.str.lower().isin(NOT_SEEN)
    if kind_of_stamp(text[~missing]):
        given = pd.to_datetime(text.mask(missing), format=kind_of_stamp(text[~missing]), errors="coerce")
        faults = list(cells.faults_of(name, given.isna() & ~missing, "should be a time"))
        return _zoned(given, options.zone), faults
    times, kind = _read(given, text.mask(missing), name, tally)
    faults = list(cells.faults_of(name, times.isna() & ~missing, f"should be {kind}"))
    if kind == "a number":
        tally.add_low(cells, name, (times < least) & ~np.isinf(times), least)
        faults += _outside(cells, name, times, least, options.unit)
    elif given.dtype.kind != "M":
        zoned = text.str.contains(_ZONE) & ~missing
        faults += cells.faults_of(name, times.notna() & ~zoned & bool(zoned.any()), ZONELESS)
        times = times if zoned.any() or times.dtype.kind == "m" else times.dt.tz_localize(None)
    if len(text) and missing.all() and not part:
        faults.append(FileFault(2, cells.position(name), name, "should hold at least one time", "none"))
    return _zoned(times, options.zone), faults


def _outside(cells: FileCells, name: str, numbers: pd.Series, least: float, unit: str | None) -> Iterator[FileFault]:
    """Yield the faults of numbers that are no times: infinite ones, those that are too far away."""
    farthest = FARTHEST_S * PER_SECOND[unit_of(name, numbers.to_numpy(dtype=np.float64), unit)[0]]
    finite = ~np.isinf(numbers)
    yield from cells.faults_of(name, ~finite, "should be a finite number")
    far = finite & (numbers >= least) & (numbers.abs() > farthest)
    yield from cells.faults_of(name, far, f"should be within {FARTHEST_S:g} s of 0")


def _classes(cells: FileCells, name: str) -> tuple[pa.ChunkedArray, list[FileFault]]:
    """Return a column of classes, and the faults of the cells that hold none."""
    classes = pd.to_numeric(cells.columns[name].astype(str).str.strip(), errors="coerce")
    wrong = ~((classes >= 0) & (classes < 2.0**63) & (classes % 1 == 0))
    faults = list(cells.faults_of(name, wrong, "should be a whole number of at least 0"))
    return pa.chunked_array([classes.where(~wrong, 0).astype(np.int64).to_numpy()]), faults


def kind_of_stamp(text: pd.Series) -> str:
    """Return the form of stamps as web servers write them, if the first of them is one; else nothing."""
    first = str(text.iloc[0]).strip("[]") if len(text) else ""
    if not re.match(r"\d\d/[A-Z][a-z]{2}/\d{4}:", first):
        return ""
    brackets = ("[", "]") if str(text.iloc[0]).startswith("[") else ("", "")
    zone = " %z" if " " in first else ""
    return f"{brackets[0]}%d/%b/%Y:%H:%M:%S{'.%f' if '.' in first else ''}{zone}{brackets[1]}"


def _zoned(times: pd.Series, zone: str | None) -> pa.ChunkedArray:
    """Return stamps, those without a zone in the one that was said."""
    if zone is not None and times.dtype.kind == "M" and times.dt.tz is None:
        times = localised(times, zone)
    return pa.chunked_array([pa.array(times, from_pandas=True)])


def _read(given: pd.Series, text: pd.Series, name: str, tally: PartTally) -> tuple[pd.Series, str]:
    if given.dtype.kind == "M":
        return given, "a time"
    numeric = pd.to_numeric(text, errors="coerce").astype(float)
    if numeric.notna().sum() * 2 < text.notna().sum() and _has_units(text):
        return pd.to_timedelta(numbers(text.fillna(""), "duration").value, unit="s").to_series(
            index=text.index
        ), "a time"
    stamps = pd.to_datetime(with_points(text), errors="coerce", utc=True, format="ISO8601")
    counts = int(numeric.notna().sum()), int(stamps.notna().sum())
    tally.add(name, *counts)
    is_stamp = tally.is_stamp.get(name, counts[1] > counts[0])
    return (stamps, "an ISO 8601 time") if is_stamp else (numeric, "a number")


def _has_units(text: pd.Series) -> bool:
    """Return whether most cells are numbers with a unit of time, such as 12ms or 0.05s."""
    return bool(text.dropna().str.fullmatch(r"[0-9.]+(?:[eE][-+]?[0-9]+)?\s*(?:ns|us|µs|μs|ms|s|m|min|h)").mean() > 0.5)
