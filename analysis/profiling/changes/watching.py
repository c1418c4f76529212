"""A profile watched: its series read and scanned, each change explained by what it goes with."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from analysis.profiling.changes.causes import Explanation, explanations
from analysis.profiling.changes.course import course
from analysis.profiling.changes.coverage import NamedParts, by_names
from analysis.profiling.changes.detection import (
    SeriesChange,
    WatchCriteria,
    changes,
    drifting,
    renamed,
    shifts,
    windows_of,
)
from analysis.profiling.changes.parts import (
    HALVES,
    PartChange,
    ScannedPart,
    bound_of,
    changes_in_parts,
    clearest_of_both,
    scanned_parts,
)
from analysis.profiling.changes.reading import WatchSpan, programs, read
from analysis.profiling.changes.scan import threshold
from analysis.profiling.changes.segments import by_hour
from analysis.profiling.changes.series import ABOUT, LEAST_MACHINES, CountSeries, FleetPart
from analysis.profiling.combinations import distinct
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.query import NoSamplesError
from analysis.profiling.shelf import give_back_memory
from models.arrays import Floats, Ints

if TYPE_CHECKING:
    from analysis.profiling.database import Database

_OF_VISITS = ("kernel", "platform", "datacentre")
_MOST_PATHS = 100_000
_MOST_SAMPLES = 200_000
"""Samples of functions that are looked into at once: so many rows there may be by tags and visit."""
_CALLER_SHARE = 0.5
"""Part of a function's samples that a caller has on its path if it is reported with the function."""
_BINS_OF_ONE_CHANGE = 12
"""Bins between the beginnings of two changes that may be one: those of subtrees rest on fewer samples."""
_UNEXPLAINED = 0.4
"""Part of a subtree's change that its functions' may leave unexplained."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchFinding:
    """A change, what it goes with, and the callers whose subtrees changed with it."""

    function: str
    subtree: bool
    """Whether it is of the function with all that it calls, where no function of those alone explains it."""
    change: SeriesChange
    course: pd.DataFrame
    """As `course` returns it."""
    explanations: tuple[Explanation, ...] = ()
    callers: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    """Of a shift: functions from or to which cost moved."""
    within: tuple[str, str] | None = None
    """Tag and value of the part of the fleet in which it is clearer than in all of it; None: the whole fleet."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchedSeries:
    """Series that were watched, and the changes that were found in them."""

    series: CountSeries
    subtrees: CountSeries | None
    """Of functions with all that they call; None: there are no call paths."""
    paths_event: str
    """Whose samples have the call paths; empty: none."""
    findings: tuple[WatchFinding, ...]
    parts: tuple[ScannedPart, ...] = ()
    """Platforms and data centres within which functions were scanned."""
    left_out: int = 0
    """Series within them that were too many to be scanned."""

    @property
    def tests(self) -> int:
        """Series by which the whole fleet's bound is: those that were scanned; twice as many if parts were, too."""
        return _tests(self.series, self.subtrees, self.parts)


def _tests(series: CountSeries, subtrees: CountSeries | None, parts: Sequence[ScannedPart]) -> int:
    scanned = len(series.functions) + (0 if subtrees is None else len(subtrees.functions))
    return scanned * (HALVES if parts else 1)


def watch(database: "Database", event: str, criteria: WatchCriteria, span: WatchSpan) -> WatchedSeries:
    """Return the changes of a profile's functions and subtrees, and what they go with.

    Of fewer than `LEAST_MACHINES` side by side there are none: chance could be anything.

    Parameters
    ----------
    database : asked
    event : generic event
    criteria : when a change is worth an alarm
    span : time that is looked at, and in what steps

    Raises
    ------
    QueryError
        If there are no samples in this time, or too many bins.
    """
    series = drifting(read(database, event, span))
    events = _with_paths(database, event)
    if series.side_by_side < LEAST_MACHINES:
        return WatchedSeries(series, None, "".join(events[:1]), ())
    give_back_memory()
    subtrees = _subtrees(database, events, span)
    paths_event = "" if subtrees is None else subtrees.event
    parts, left_out = scanned_parts(series, criteria)
    tests = _tests(series, subtrees, parts)
    bound = threshold(tests, windows_of(series), criteria.false_alarms)
    own = by_names(series, shifts(series, changes(series, criteria, tests)), NamedParts(database, series).of, bound)
    both = clearest_of_both(own, list(_in_parts(database, series, criteria, parts, own)))
    findings = [
        _finding(change.series, change.change, part=change.part)
        if isinstance(change, PartChange)
        else _finding(series, change)
        for change in both
    ]
    findings.sort(key=lambda finding: -abs(finding.change.root))
    if subtrees is not None:
        paths = _Paths(database, paths_event)
        nested = changes(subtrees, criteria, tests, nested=True)
        nested = by_names(subtrees, nested, NamedParts(database, subtrees, paths=True).of, bound)
        moved = renamed(subtrees, nested, paths.alike)
        others = _besides(series, subtrees, nested, {change.series for change in moved})
        above = [_finding(subtrees, change, subtree=True) for change in others]
        findings = _once(paths, subtrees, findings, above)
        findings += [_finding(subtrees, change, subtree=True) for change in moved]
        findings.sort(key=lambda finding: -abs(finding.change.root))
    explained = tuple(_explained(database, series, findings))
    return WatchedSeries(series, subtrees, paths_event, explained, tuple(parts), left_out)


def _in_parts(
    database: "Database",
    series: CountSeries,
    criteria: WatchCriteria,
    parts: Sequence[ScannedPart],
    known: Sequence[SeriesChange],
) -> Iterator[PartChange]:
    """Yield changes in parts of the fleet, those that names explain as shifts."""
    for part, some, local in changes_in_parts(series, criteria, parts, known):
        named = NamedParts(database, some, where=((part.dimension, (part.value,)),))
        for change in by_names(some, local, named.of, bound_of(series, criteria, parts)):
            yield PartChange(part, some, change)


def _besides(
    series: CountSeries, subtrees: CountSeries, nested: Sequence[SeriesChange], moved: Collection[int]
) -> list[SeriesChange]:
    """Return changes of subtrees, without those that were renamed, and of callers alone.

    A function that calls nothing was looked at by itself, and there compared with what did not change.
    """
    own = pd.Series(series.sizes, series.functions).reindex(subtrees.functions).to_numpy(np.float64)
    calls = ~(subtrees.sizes <= own) if series.event == subtrees.event else np.ones(len(own), dtype=bool)
    return [
        change for change in nested if change.series not in moved and (calls[change.series] or change.kind == "shift")
    ]


def _finding(
    series: CountSeries, change: SeriesChange, *, subtree: bool = False, part: FleetPart | None = None
) -> WatchFinding:
    names = series.functions
    partners = tuple(str(names[at]) for at in change.partners)
    within = (part.dimension, part.value) if part else None
    steps = course(series, change)
    return WatchFinding(str(names[change.series]), subtree, change, steps, partners=partners, within=within)


def _with_paths(database: "Database", event: str) -> list[str]:
    """Return the events whose samples may have call paths: the one asked for, and those that measure time."""
    units, with_stacks = database.units(), set(database.with_stacks())
    others = (name for name, unit in units.items() if unit == "nanoseconds" and name != event)
    return [name for name in (event, *others) if name in units and name in with_stacks]


def _subtrees(database: "Database", events: Sequence[str], span: WatchSpan) -> CountSeries | None:
    """Return the series of functions with all that they call, of the first event that has any."""
    for event in events:
        with suppress(NoSamplesError):
            return drifting(read(database, event, span, subtrees=True))
    return None


class _Paths:
    """Call paths of the fleet, the greatest, to tell how much of a function is called beneath another."""

    def __init__(self, database: "Database", event: str) -> None:
        self._database, self._event = database, event

    @cached_property
    def _table(self) -> pd.DataFrame:
        return self._database.stacks(of_fleet(self._database, self._event, ()), _MOST_PATHS)

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        return list(self._table["path"])

    @cached_property
    def _value(self) -> Floats:
        return self._table["value"].to_numpy(np.float64)

    @cached_property
    def _with(self) -> dict[str, list[int]]:
        """Which paths have each function."""
        having: dict[str, list[int]] = {}
        for at, path in enumerate(self._paths):
            for name in set(path):
                having.setdefault(name, []).append(at)
        return having

    def beneath(self, function: str, caller: str, *, subtree: bool) -> float:
        """Return the part of a function's events that have a caller on their path, the function itself included."""
        own = self._with.get(function, [])
        own = own if subtree else [at for at in own if self._paths[at][-1] == function]
        beneath = [at for at in own if caller in self._paths[at][: _last(self._paths[at], function) + 1]]
        total = float(self._value[own].sum())
        return float(self._value[beneath].sum()) / total if total > 0 else 0.0

    def alike(self, function: str, other: str) -> float:
        """Return which part of the events beneath two functions ends in the same functions, 0..1."""
        own, beside = (self._ends(name) for name in (function, other))
        return float(sum(min(part, beside.get(end, 0.0)) for end, part in own.items()))

    def _ends(self, function: str) -> dict[str, float]:
        """Return by the last function of its path the part of the events beneath a function, itself left out."""
        ends: dict[str, float] = {}
        for at in self._with.get(function, []):
            if (end := self._paths[at][-1]) != function:
                ends[end] = ends.get(end, 0.0) + float(self._value[at])
        total = sum(ends.values())
        return {end: value / total for end, value in ends.items()}


def _last(path: tuple[str, ...], function: str) -> int:
    return len(path) - 1 - path[::-1].index(function)


def _once(
    paths: _Paths, subtrees: CountSeries, own: Sequence[WatchFinding], above: Sequence[WatchFinding]
) -> list[WatchFinding]:
    """Return changes of functions, and of the smallest subtrees that no change of a function explains.

    A function's growth is all of the growth of callers that have it beneath them. Shares add up to 1, so it also takes
    from every subtree of its application as large a part as that has of the samples.
    """
    reported = list(own)
    for subtree in sorted(above, key=lambda finding: abs(finding.change.cost)):
        change, known = subtree.change, 0.0
        beneath = {}
        for at, finding in enumerate(reported):
            if _together(finding.change, change):
                beneath[at] = paths.beneath(finding.function, subtree.function, subtree=finding.subtree)
                known += finding.change.cost * (beneath[at] - _part_of_home(subtrees, change.series))
        if beneath and abs(change.cost - known) <= _UNEXPLAINED * abs(change.cost) + 2.0 * change.cost_error:
            for at, part in beneath.items():
                if part >= _CALLER_SHARE and subtree.function != reported[at].function:
                    reported[at] = replace(reported[at], callers=(*reported[at].callers, subtree.function))
        else:
            reported.append(subtree)
    return sorted(reported, key=lambda finding: -abs(finding.change.root))


def _together(change: SeriesChange, other: SeriesChange) -> bool:
    """Return whether two changes may be one."""
    same = (change.kind == "transient") == (other.kind == "transient")
    return same and abs(change.start - other.start) <= _BINS_OF_ONE_CHANGE


def _part_of_home(series: CountSeries, row: int) -> float:
    """Return the part that a series has of the samples of its main application."""
    strata, samples = series.within(row)
    cells = samples.sum(axis=1)
    application = series.strata["application"].to_numpy(object)
    own = application == application[strata[int(np.argmax(cells))]]
    return float(cells[own[strata]].sum() / max(float(series.exposure[own].sum()), 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What was sampled of everything by the tags that may be at fault, in bins of time."""

    tags: pd.DataFrame
    """(C,)"""
    exposure: Floats
    """(C, T)"""
    bins: "pd.Series[int]"
    """Of visits in this time."""
    nameless: set[str]
    names: tuple[pd.Index, ...]
    """Values of each of `ABOUT`."""
    places: "pd.Series[int]"
    """Number of the other tags of visits."""
    codes: Ints
    """(C,) the tags in numbers, rising with the cells."""

    @classmethod
    def read(cls, database: "Database", series: CountSeries, tagged: pd.DataFrame) -> Self:
        """Return the cells of a series' time; `tagged` are what was sampled by `ABOUT` and visit."""
        clock, visits = series.clock, visits_of_fleet(database)
        bins = clock.bin_of(visits["start_s"].to_numpy(np.float64))
        visits = visits.assign(bin=bins)[(bins >= 0) & (bins < clock.bins)].set_index("visit")
        place, about = distinct(visits, _OF_VISITS)
        nameless = set(database.values("collection"))
        names = []
        for name in ABOUT:
            values = tagged[name].drop_duplicates()
            names.append(pd.Index(programs(values, nameless) if name == "application" else values).unique())
            names[-1] = names[-1].astype(str).sort_values()
        nothing = np.zeros(0, dtype=np.int64)
        places = pd.Series(place, visits.index)
        empty = cls(about, np.zeros((0, clock.bins)), visits["bin"], nameless, tuple(names), places, nothing)
        code, rows = empty._coded(tagged)
        codes, cell = np.unique(code, return_inverse=True)
        at = cell * clock.bins + rows["bin"].to_numpy(np.int64)
        exposure = np.bincount(at, rows["samples"], len(codes) * clock.bins).reshape(-1, clock.bins)
        parts = np.unravel_index(codes, (*map(len, names), len(about)))
        tags = {name: values[part] for name, values, part in zip(ABOUT, names, parts[:-1], strict=True)}
        tags |= {name: pd.Index(about[name])[parts[-1]] for name in _OF_VISITS}
        return replace(empty, tags=pd.DataFrame(tags), exposure=exposure.astype(np.float64), codes=codes)

    def _coded(self, rows: pd.DataFrame) -> tuple[Ints, pd.DataFrame]:
        """Return numbers of the tags of rows in this time, −1 where a value is in none, and the rows with bins."""
        here = rows[rows["visit"].isin(self.bins.index)]
        visit = here["visit"].to_numpy()
        code, known = np.zeros(len(here), dtype=np.int64), np.ones(len(here), dtype=np.bool_)
        for name, values in zip(ABOUT, self.names, strict=True):
            own, distinct_values = pd.factorize(here[name])
            texts = pd.Series(distinct_values)
            texts = programs(texts, self.nameless) if name == "application" else texts
            at = values.get_indexer(pd.Index(texts.astype(str)))[own]
            known &= at >= 0
            code = code * len(values) + at
        place = self.places.loc[visit].to_numpy(np.int64)
        code = np.where(known, code * (int(self.places.max()) + 1) + place, -1)
        return code, here.assign(bin=self.bins.loc[visit].to_numpy(np.int64))

    def located(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows in this time whose tags a cell has, with cell and bin."""
        code, here = self._coded(rows)
        at: Ints = np.minimum(np.searchsorted(self.codes, code), len(self.codes) - 1)
        located: pd.DataFrame = here.assign(cell=at)[self.codes[at] == code]
        return located

    def counts(self, rows: pd.DataFrame) -> Floats:
        """Return (C, T) samples of rows of `located`."""
        at = rows["cell"].to_numpy(np.int64) * self.exposure.shape[1] + rows["bin"].to_numpy(np.int64)
        return np.bincount(at, rows["samples"], self.exposure.size).reshape(self.exposure.shape).astype(np.float64)


def _explained(database: "Database", series: CountSeries, findings: Sequence[WatchFinding]) -> list[WatchFinding]:
    """Return findings with what a function's change goes with; a subtree's is not looked into further."""
    sizes = {
        finding.function: float(series.within(finding.change.series)[1].sum())
        for finding in findings
        if not finding.subtree
    }
    if not sizes or series.tagged is None:
        return list(findings)
    cells = _Cells.read(database, series, series.tagged)
    give_back_memory()
    causes: dict[int, tuple[Explanation, ...]] = {}
    for functions in _together_few(sizes):
        rows = cells.located(_rows_of(database, series, functions))
        for at, finding in enumerate(findings):
            if finding.function in functions and not finding.subtree:
                causes[at] = _causes(series, cells, finding, rows[rows["function"] == finding.function])
    return [replace(finding, explanations=causes.get(at, ())) for at, finding in enumerate(findings)]


def _together_few(sizes: Mapping[str, float]) -> Iterator[list[str]]:
    """Yield functions, so many at a time that they have few samples together.

    Examples
    --------
    >>> list(_together_few({"a": 100.0, "b": 20_000.0, "c": 400_000.0, "d": 900_000.0, "e": 1.0}))
    [['a', 'b'], ['c'], ['d'], ['e']]
    """
    chosen: list[str] = []
    for function, size in sizes.items():
        if chosen and sum(sizes[name] for name in chosen) + size > _MOST_SAMPLES:
            yield chosen
            chosen = []
        chosen.append(function)
    if chosen:
        yield chosen


def _rows_of(database: "Database", series: CountSeries, functions: Sequence[str]) -> pd.DataFrame:
    """Return the samples of functions by their tags and visit, in a series' time."""
    query = of_fleet(database, series.event, ("function", *ABOUT)).restricted("function", *functions)
    clock = series.clock
    return database.clustered(query.during(clock.start_s(0), clock.start_s(clock.bins)), "visit")


def _causes(series: CountSeries, cells: _Cells, finding: WatchFinding, rows: pd.DataFrame) -> tuple[Explanation, ...]:
    """Return what a function's change goes with; `rows` are its samples by cell and bin."""
    change, row, clock = finding.change, finding.change.series, series.clock
    applications = set(cells.tags["application"].to_numpy(object)[rows["cell"].unique()])
    concerned = cells.tags["application"].isin(applications).to_numpy()
    counts = cells.counts(rows)
    end = clock.bins if change.end is None else change.end
    outside = np.ones(clock.bins)
    outside[change.start : end] = 0.0
    observed, exposure = counts[concerned], cells.exposure[concerned]
    expected = exposure.sum(axis=0)
    season = by_hour(observed.sum(axis=0), expected, clock.period, outside) / np.maximum(expected, 1e-300)
    return tuple(
        explanations(
            observed,
            np.maximum(exposure, observed) * season,
            cells.tags[concerned].reset_index(drop=True),
            change.start,
            end,
            dispersion=series.noise.over_days(row),
            grew=change.log_factor > 0,
        )
    )
