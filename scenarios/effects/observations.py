"""Experiments from files and from the folders of runs: observations as one table, the fleet's jobs, what is stated."""

import math
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.audit.about import About, AboutError
from analysis.audit.case import Audit, examine
from analysis.audit.guards import GUARDS, OF_MEANS, OF_RATES
from analysis.effects.estimand import RATE, Estimand
from analysis.effects.observations import FIELDS, NO_FEATURE, FlaggedRows, PeriodError, joined, read_observations
from analysis.tables.cells import Source, cells_of, header_of, name_of
from analysis.tables.columns import BY_SELECT, Field, Remedies, read_rows
from analysis.tables.faults import PRINTED, FileError
from analysis.tables.recipe import AS_IT_IS, Recipe, in_words, prepared, values_beside
from analysis.wsmeter.measurements import Reading, measurements
from models.arrays import DAY_S, Bools, Floats
from models.errors import ArgumentError, InputError, WscError
from models.fleet.metrics import MetricName
from models.fleet.world import Window
from models.tables import KEYS
from scenarios.effects.own_guards import OwnGuard
from scenarios.files.faults import Fault, FaultsError, faults_in, shown
from scenarios.files.schema import PROFILE, SCENARIO
from scenarios.runs.rundir import Run, RunError, open_run
from scenarios.views.numbers import plural
from scenarios.wsmeter.measurements import job_quotas, settings_of

_JOBS = (Field("job", "text"), Field("quota", "real"), Field("instances", "count", required=False))
_FEWEST_RACKS = 2
_FARTHEST = 1e15
"""Values of one job that are farther apart are no measurements of one thing: a sum of both is that of the larger."""

_COUNTED = ("instructions", "llc_misses")
"""Counters of a run that are kept beside its metric."""
POWER_DOMAIN = "power_domain"
"""Of a run: which machines share a budget, for `--domain` and `--cluster`."""
NO_DENOMINATORS = "is missing: a ratio needs its denominators there, and its numerators in value"
_FIRST_LINE = 2
"""Of the rows of a table that has no file (`analysis.tables.cells.cells_of`)."""


_KNOWN = 0.5
"""Of the study's machines, or jobs, and of those before: where fewer are the same, names may differ."""


class Dates(NamedTuple):
    """When periods begin, where they were made of points in time.

    Examples
    --------
    >>> Dates(0.0, 86400.0).of(2), Dates(0.0).of(3600.0), Dates().of(2)
    ('1970-01-03', '1970-01-01T01:00:00', '')
    """

    zero_s: float = math.nan
    """Seconds since 1970, in the zone's own time, at period 0."""
    unit_s: float = 1.0

    def of(self, period: float) -> str:
        """Return the date at which a period begins, with the time if that is not midnight; empty if it is not known."""
        time_s = self.zero_s + period * self.unit_s
        return "" if math.isnan(time_s) else _stamp(time_s).removesuffix("T00:00:00")

    def named(self, period: float) -> str:
        """Return a period's number, and its date if that is known."""
        return f"{period:g} ({date})" if (date := self.of(period)) else f"{period:g}"


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """An experiment as its files or its run tell it."""

    observations: FlaggedRows
    """With the column `file`. What cannot be used is left in for guards to judge."""
    jobs: pd.DataFrame | None
    """The whole fleet's jobs, if they are known."""
    metric: MetricName | None
    """Of runs."""
    source: Path
    """The name under which what is wrong with all files together is told."""
    notes: tuple[str, ...]
    dates: Dates

    @contextmanager
    def faults(self) -> Generator[None]:
        """Turn whatever is wrong with the experiment into faults of its files, with dates of periods."""
        with faults_in(self.source):
            try:
                yield
            except PeriodError as error:
                period = error.period
                raise InputError(error.dated(self.dates.of(period) if isinstance(period, float) else "")) from error
            except ArgumentError as error:
                raise FaultsError([Fault("", 0, 0, error.argument, error.problem, error.got or "")]) from error

    def about(self, stated: About) -> About:
        """Return what is stated of the experiment, and of a run the metric too, which need not be stated."""
        return stated if stated.metric is not None or self.metric is None else replace(stated, metric=self.metric)

    @property
    def not_of_metric(self) -> frozenset[str]:
        """The guards that cannot look at such a metric."""
        kind = self.observations.estimand.metric_kind
        return (OF_RATES if kind != "rate" else frozenset()) | (OF_MEANS if kind == "quantile" else frozenset())

    def not_looking(self) -> Iterator[str]:
        """Yield a note on the guards that cannot look at such a metric, if there are any."""
        if codes := sorted(self.not_of_metric):
            yield f"guards that cannot look at a {self.observations.estimand.metric_kind}: {', '.join(codes)}"

    def audit(self, stated: About, without: Collection[str] = (), own: Sequence[OwnGuard] = ()) -> Audit:
        """Return what would make the answer false, by what is stated and by all guards but some, and by others' own."""
        guards = {code: guard for code, guard in GUARDS.items() if code not in {*without, *self.not_of_metric}}
        guards |= {guard.name: guard.of(self.jobs) for guard in own}
        with faults_in(self.source):
            audited = examine(self.observations, self.jobs, self.about(stated), guards=guards)
        unable = dict.fromkeys(sorted(self.not_of_metric - {*without}), "a metric of another kind (metric_kind)")
        return replace(audited, unchecked={**audited.unchecked, **unable})


def experiment(
    sources: Sequence[Source],
    jobs: Source | None = None,
    metric: MetricName | None = None,
    recipe: Recipe = AS_IT_IS,
    estimand: Estimand = RATE,
    *,
    study: bool = True,
) -> Experiment:
    """Return the experiment that tables or runs tell of.

    Parameters
    ----------
    sources : files of observations, queries or frames, or the folders of runs
    jobs : job, quota, instances; if left out, one run has its own
    metric : of runs; that of their scenario if not said
    recipe : how columns of the tables of observations become ours; of runs as in `observed`
    estimand : what values are of
    study : whether something should have the feature; if nothing has, that is told with the other faults
    """
    faults = [*repeated_sources(sources), *ratios_of_runs(sources, estimand)]
    if faults:
        raise FaultsError(faults)
    reading, dates, whole, of_jobs = Reading(pd.DataFrame(), ()), Dates(), None, tuple[str, ...]()
    try:
        reading, dates = observed(sources, metric, strict=False, recipe=recipe, estimand=estimand)
    except FaultsError as error:
        faults += error.faults
    try:
        whole, of_jobs = _jobs(jobs)
    except FaultsError as error:
        faults += error.faults
    beside = _in_one_arm_only(sources, recipe) if study else ()
    if faults:
        raise FaultsError([*faults, *beside])
    if jobs is None and len(sources) == 1 and (run := _folder(sources[0])):
        whole = jobs_of_run(run)
    source = Path(", ".join(map(name_of, sources)))
    if estimand.metric_kind == "ratio" and "exposure" not in reading.table:
        raise FaultsError([Fault(str(source), 0, 0, "exposure", NO_DENOMINATORS), *beside])
    flagged = replace(FlaggedRows.of(reading.table, reading.left_out, estimand), lines=reading.lines)
    faults = [
        *_apart(flagged, source),
        *(_no_denominators(flagged, sources) if estimand.metric_kind == "ratio" else ()),
    ]
    if faults:
        raise FaultsError([*faults, *beside])
    in_one_arm(sources, reading.table, recipe)
    if study and all(map(_folder, sources)) and not reading.table["treated"].any():
        raise FaultsError([Fault(str(source), 0, 0, "", _NO_FEATURE_IN_RUNS)])
    if whole is not None and not reading.table["job"].isin(whole["job"]).any():
        name = name_of(sources[0] if jobs is None else jobs)
        raise FaultsError([Fault(name, 0, 0, "job", "should name the jobs of the observations")])
    notes = (*reading.notes, *of_jobs, *(strangers(reading.table) if study else ()))
    return Experiment(flagged, whole, run_metric(sources, metric), source, notes, dates)


def strangers(table: pd.DataFrame) -> Iterator[str]:
    """Yield that most machines, or jobs, of the study have no row before it, though others have."""
    if "treated" not in table or not (treated := table["treated"] == 1).any():
        return
    before = table["period"] < table.loc[treated, "period"].min()
    if not before.any():
        return
    for name in ("machine", "job"):
        past, study = (table.loc[rows, name].unique() for rows in (before, ~before))
        known = int(pd.Index(study).isin(past).sum())
        if known < _KNOWN * min(len(study), len(past)):
            yield (
                f"{len(study) - known:,} of the study's {plural(len(study), name)} have no row in the periods before, "
                f"and {len(past) - known:,} of {len(past):,} there have none in the study: if names differ, make them "
                f"the same (--column {name}=…), or the past tells nothing of these"
            )


def in_one_arm(sources: Sequence[Source], table: pd.DataFrame, recipe: Recipe, *, both: bool = True) -> None:
    """Refuse an expression for `treated` that is true in every row or none; the message shows what its columns hold.

    Parameters
    ----------
    sources : as they were named; some of them are tables, where the recipe has columns
    table : what was read of them
    recipe : how their columns became ours
    both : whether there must be rows with the feature
    """
    text, treated = recipe.columns.get("treated"), table["treated"] == 1
    if text is None or ((treated.any() or not both) and not treated.all()):
        return
    where, meaning = (
        ("every row", "nothing is without the feature") if treated.all() else ("no row", "nothing has the feature")
    )
    columns = [values_beside(cells_of(source), recipe, text) for source in sources if _folder(source) is None]
    joined_columns = {name: pd.concat([column[name] for column in columns]) for name in columns[0]}
    beside = in_words(joined_columns)
    problem = f"{text} is true in {where}, so {meaning}{beside and f'; {beside}'}"
    raise FaultsError([Fault(", ".join(map(name_of, sources)), 0, 0, "treated", problem)])


def _in_one_arm_only(sources: Sequence[Source], recipe: Recipe) -> Iterator[Fault]:
    """Yield that nothing has the feature, or everything, of tables with other faults; nothing where that is unknown."""
    flags = list[Floats]()
    for source in sources:
        try:
            if _folder(source) is not None:
                return
            table = read_rows(source, [Field("treated", "flag", required=False)], recipe=recipe).table
        except (WscError, OSError):
            return
        flags.append(table["treated"].to_numpy(np.float64) if "treated" in table else np.zeros(len(table)))
    treated = np.concatenate(flags)
    try:
        in_one_arm(sources, pd.DataFrame({"treated": treated}), recipe)
    except FaultsError as error:
        yield from error.faults
        return
    if not treated.any():
        yield Fault(", ".join(map(name_of, sources)), 0, 0, "", NO_FEATURE)


def repeated_sources(sources: Sequence[Source]) -> list[Fault]:
    """Return the tables that are given more than once; two queries are one if text and database are equal."""
    again = [
        (source, count)
        for number, source in enumerate(sources)
        if (count := sum(map(partial(_same, source), sources))) > 1
        and not any(_same(source, earlier) for earlier in sources[:number])
    ]
    return [Fault(name_of(source), 0, 0, "", "should be given once", f"{count} times") for source, count in again]


def ratios_of_runs(sources: Sequence[Source], estimand: Estimand) -> Iterator[Fault]:
    """Yield that values of runs are no numerators, if a ratio of them is asked for."""
    if estimand.metric_kind == "ratio" and (runs := [source for source in sources if _folder(source) is not None]):
        by = "per exposure already, by which wsc effect --target sums weighs"
        problem = f"is of tables; values of the run {name_of(runs[0])} are {by}"
        yield Fault("", 0, 0, "metric_kind", problem, estimand.name)


def _same(left: Source, right: Source) -> bool:
    return left is right if isinstance(left, pd.DataFrame) or isinstance(right, pd.DataFrame) else left == right


def _labels(sources: Sequence[Source]) -> list[str]:
    """Return what tables are called in messages, no two of them alike."""
    labels = dict[str, None]()
    for number, source in enumerate(sources, 1):
        name = f"table {number}" if isinstance(source, pd.DataFrame) and len(sources) > 1 else name_of(source)
        labels[name if name not in labels else f"{name} (table {number})"] = None
    return list(labels)


def _apart(flagged: FlaggedRows, source: Path) -> Iterator[Fault]:
    """Yield the jobs whose values are so far apart that no sum holds the smaller ones."""
    rows = flagged.table[~flagged.unusable]
    sizes = rows["value"].abs()
    ends = sizes[sizes > 0].groupby(rows["job"], sort=False).agg(["min", "max"])
    for job, low, high in ends[ends["max"] / ends["min"] > _FARTHEST].head(PRINTED).itertuples():
        problem = (
            f"should be within {_FARTHEST:g} times of each other in a job, are {low:g} and {high:g} in {shown(job)}"
        )
        yield Fault(str(source), 0, 0, "value", problem)


def _no_denominators(flagged: FlaggedRows, sources: Sequence[Source]) -> Iterator[Fault]:
    """Yield the arms of the study, or the whole table, whose denominators are all 0, by the first of their rows."""
    table = flagged.table
    exposure, treated = pd.to_numeric(table["exposure"], errors="coerce").to_numpy(), (table["treated"] == 1).to_numpy()
    known, study = np.isfinite(exposure), (table["period"] >= table.loc[treated, "period"].min()).to_numpy()
    arms = {"": known, " with the feature": known & treated, " without the feature": known & study & ~treated}
    for words, arm in arms.items():
        if not arm.any() or exposure[arm].any():
            continue
        row, name = int(np.flatnonzero(arm)[0]), str(table["file"].iloc[np.flatnonzero(arm)[0]])
        header = next((header_of(source) for source in sources if name_of(source) == name and not _folder(source)), [])
        line, column = (
            (int(flagged.lines[row]), list(header).index("exposure") + 1)
            if flagged.lines is not None and "exposure" in header
            else (0, 0)
        )
        yield Fault(name, line, column, "exposure", f"should be above 0 in some row{words}", f"0 in all {arm.sum():,}")
        if not words:
            return


def _folder(source: Source) -> Path | None:
    """Return the folder of a run, if a source is one."""
    return source if isinstance(source, Path) and source.is_dir() else None


def run_metric(sources: Sequence[Source], metric: MetricName | None = None) -> MetricName | None:
    """Return what is measured of the runs among some sources: the metric asked for, else that of their scenarios.

    None if there is no run, or none that can be opened.
    """
    metrics = dict[MetricName, Path]()
    for path in filter(None, map(_folder, sources)):
        with suppress(RunError):
            metrics.setdefault(metric or settings_of(open_run(path)).metric, path)
    if len(metrics) > 1:
        differ = ", ".join(f"{path} in {name}" for name, path in metrics.items())
        raise FaultsError([Fault("", 0, 0, "metric", f"should say one metric for runs measured in several: {differ}")])
    return next(iter(metrics), None)


def observed(
    sources: Sequence[Source],
    metric: MetricName | None = None,
    *,
    strict: bool = True,
    recipe: Recipe = AS_IT_IS,
    estimand: Estimand = RATE,
) -> tuple[Reading, Dates]:
    """Return the observations of tables or of runs as one table with the column `file`, and dates.

    Parameters
    ----------
    sources : files of observations, queries or frames, or the folders of runs
    metric : of runs; that of their scenario if not said
    strict : as in `read_observations` and `joined`
    recipe : how columns of the tables become ours; periods of a day are numbered from 1, others begin so many seconds
        after the first. Of a run only `where` is taken, over the columns of its observations
    estimand : what values are of
    """
    faults = [*repeated_sources(sources), *_of_tables_alone(sources, recipe)]
    notes, readings = list[str](), dict[str, Reading]()
    if faults:
        raise FaultsError(faults)
    metric = run_metric(sources, metric)
    for name, source in zip(_labels(sources), sources, strict=True):
        try:
            with faults_in(Path(name)):
                readings[name] = _read(source, metric, estimand, strict=strict, recipe=recipe)
            notes += [f"{name}: {note}" for note in readings[name].notes]
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise FaultsError(faults)
    with faults_in(Path(next(reversed(readings)))):
        table = joined({name: reading.table for name, reading in readings.items()}, strict=strict)
    left_out = pd.concat([reading.left_out for reading in readings.values()], ignore_index=True)
    dates = Dates()
    if recipe.period_s is not None:
        first, length_s = float(table["period"].min()), recipe.period_s
        for rows in filter(len, (table, left_out)):
            steps = pd.to_numeric(rows["period"], errors="coerce").to_numpy(np.float64)
            place, start_s = recipe.whole_periods(steps, first)
            rows["period"] = place + 1 if length_s == DAY_S else place * length_s
            dates = Dates(start_s - DAY_S, DAY_S) if length_s == DAY_S else Dates(start_s)
        least = float(table["period"].min())
        notes.append(f"period {least:g} begins {_stamp(start_s)}")
    if len(left_out):
        share = len(left_out) / (len(table) + len(left_out))
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in left_out["reason"].value_counts().items())
        notes.append(f"{len(left_out):,} rows ({share:.2%}) are left out: {reasons}")
    lines = [reading.lines for reading in readings.values() if reading.lines is not None]
    return Reading(table, tuple(notes), left_out, np.concatenate(lines) if len(lines) == len(readings) else None), dates


def _of_tables_alone(sources: Sequence[Source], recipe: Recipe) -> Iterator[Fault]:
    """Yield what a recipe says that runs do not take: periods if one is given, the rest if no table is."""
    runs = [source for source in sources if _folder(source) is not None]
    if runs and recipe.period_s is not None:
        problem = 'the periods of a run are in seconds from its start; --where, such as "period >= 86400", takes some'
        yield Fault(name_of(runs[0]), 0, 0, "period", f"is for tables (--period, --from, --until): {problem}")
    if len(runs) < len(sources) or not runs:
        return
    if recipe.columns:
        problem = "are for tables (--column, --columns): the observations of a run have our names already"
        yield Fault(name_of(runs[0]), 0, 0, "columns", problem, ", ".join(recipe.columns))
    if recipe.zone != AS_IT_IS.zone:
        problem = "is for tables (--zone): a run has no time stamps"
        yield Fault(name_of(runs[0]), 0, 0, "zone", problem, recipe.zone)
    if recipe.skip_bad is not None:
        problem = "is for tables (--skip-bad): a run has no cell that cannot be read; --where leaves out rows"
        yield Fault(name_of(runs[0]), 0, 0, "skip_bad", problem, f"{recipe.skip_bad:g}")


_NO_FEATURE_IN_RUNS = (
    "nothing has the feature: no machine got it in a window that is counted; give a run of a scenario with a feature"
)
_ROUNDED = 1e-9
"""Share of a window that is rounding."""


def _stamp(time_s: float) -> str:
    return pd.Timestamp(time_s, unit="s").isoformat()


def recorded(run: Run, metric: MetricName | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations of a run of a fleet, of the jobs that its scenario measures, and notes.

    Of a crossover the first part of each period, in which the state before may still act, is left out. A machine had
    the feature from its roll-out on; periods of which it had it for a part are left out.
    """
    settings = settings_of(run)
    cells = [_recorded(part, metric or settings.metric) for part in run.split()]
    whole = cells[0][0] if len(cells) == 1 else pd.concat([table for table, _ in cells], ignore_index=True)
    if settings.jobs is not None:
        whole = whole[whole["job"].isin(job_quotas(run, settings)["job"])].reset_index(drop=True)
    return whole, cells[0][1]


def _recorded(run: Run, metric: MetricName) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations of one cell, and notes."""
    counters, instances = run.table("counters"), run.table("instances")
    windows = _windows(run, counters)
    faults = [*_repeated(run, "counters", counters), *_repeated(run, "instances", instances)]
    if faults:
        raise FaultsError(faults)
    notes = []
    if windows["window"].str.startswith("wash.").any():
        windows = windows[~windows["window"].str.startswith("wash.")]
        notes.append("of each period of the crossover, the time to settle is left out")
    treated = _treated(run, instances)
    windows, left_out = _whole(windows, treated)
    return of_run(counters, instances, windows, treated, metric), notes + left_out


def _whole(windows: pd.DataFrame, treated: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the windows without those in which machines get the feature and none has it all the time, and notes.

    Nothing with the feature is measured in these, and the machines that get it would only be missing.

    Raises
    ------
    InputError
        If no window is left in which a machine has the feature, but it is on in some.

    Examples
    --------
    >>> windows = pd.DataFrame({"window": ["a", "b"], "start_s": [0.0, 9.0], "end_s": [9.0, 18.0]})
    >>> whole, notes = _whole(windows, pd.DataFrame({"machine": [5], "start_s": 3.0, "end_s": math.inf}))
    >>> whole["window"].tolist(), notes
    (['b'], ['window a is left out: machines get the feature within it, and none has it all the time'])
    """
    spans = treated[["start_s", "end_s"]].drop_duplicates()
    begins = np.maximum.outer(windows["start_s"].to_numpy(), spans["start_s"].to_numpy())
    ends = np.minimum.outer(windows["end_s"].to_numpy(), spans["end_s"].to_numpy())
    share = np.maximum(ends - begins, 0.0) / (windows["end_s"] - windows["start_s"]).to_numpy()[:, None]
    whole: Bools = np.any(share >= 1.0 - _ROUNDED, axis=1)
    broken: Bools = np.any(share > _ROUNDED, axis=1) & ~whole
    if not broken.any():
        return windows, []
    names = " and ".join(windows["window"][broken])
    if not whole.any():
        raise InputError(
            f"machines get the feature within window {names}, and in no counting window it is on all the time: "
            "simulate with one that begins when all have it (recording.windows)"
        )
    note = f"window {names} is left out: machines get the feature within it, and none has it all the time"
    return windows.loc[~broken], [note]


def _repeated(run: Run, name: str, table: pd.DataFrame) -> Iterator[Fault]:
    """Yield the rows of a run's table, the first of them by its line, whose key an earlier row has."""
    keys = list(KEYS[name])
    again = table.duplicated(keys).to_numpy().nonzero()[0]
    if len(again):
        first = ", ".join(str(table[key].iloc[again[0]]) for key in keys)
        more = f" and {len(again) - 1:,} more" if len(again) > 1 else ""
        yield Fault(
            str(run.file(name)), int(again[0]) + 2, 1, ", ".join(keys), "should be there once", f"{first} again{more}"
        )


def _jobs(source: Source | None) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """Return the fleet's jobs, if they are given, and how their units were understood."""
    if source is None:
        return None, ()
    with faults_in(Path(name_of(source))):
        rows = read_rows(source, _JOBS, lambda _: ("job",), remedies=Remedies(missing=BY_SELECT))
    return rows.table, tuple(f"{name_of(source)}: {note}" for note in rows.notes)


def jobs_of_run(path: Path) -> pd.DataFrame | None:
    """Return job, quota and instances of all jobs that a run's scenario measures; None of a run without them.

    Examples
    --------
    >>> jobs_of_run(Path("nowhere"))
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    run = open_run(path)
    if not run.has("jobs"):
        return None
    jobs = run.table("jobs", ["job", "quota_vcpu", "instances"])
    if faults := list(_repeated(run, "jobs", jobs)):
        raise FaultsError(faults)
    return job_quotas(run, settings_of(run))


def _read(source: Source, metric: MetricName | None, estimand: Estimand, *, strict: bool, recipe: Recipe) -> Reading:
    run = _folder(source)
    if run is None:
        try:
            return read_observations(source, strict=strict, recipe=recipe, estimand=estimand)
        except FileError:
            names, others = set(header_of(source)), ("period", "machine", "weight", "value")
            if {"job", "quota"} <= names and not names & {*others}:
                why = f"it has quota, and no {', '.join(others)}"
                problem = f"takes the table of jobs, which {name_of(source)} is: {why}"
                raise FaultsError([Fault("", 0, 0, "jobs", problem)]) from None
            raise
    try:
        table, notes = recorded(open_run(run), metric)
    except RunError as error:
        raise InputError(str(error).removeprefix(f"{run}: ")) from None
    if recipe.where is None:
        return Reading(table, tuple(notes))
    try:
        taken = prepared(cells_of(table), Recipe(where=recipe.where))
    except FileError as error:  # its lines are those of no file
        raise FileError([fault._replace(line=0, column=0) for fault in error.faults]) from None
    return Reading(table.iloc[taken.lines - _FIRST_LINE].reset_index(drop=True), (*notes, *taken.notes))


def _windows(run: Run, counters: pd.DataFrame) -> pd.DataFrame:
    """Return window, start_s and end_s of the counting windows, as the scenario has them."""
    counted = set(counters["window"].unique())
    rows = [{"window": window.name, "start_s": window.start_s, "end_s": window.end_s} for window in _asked_windows(run)]
    return pd.DataFrame([row for row in rows if row["window"] in counted])


def _asked_windows(run: Run) -> tuple[Window, ...]:
    """Return the counting windows of a run; those of a profiled fleet are its days."""
    if run.manifest.get("kind") != "profile":
        return run.world(SCENARIO).windows
    from sim.profiling.setting import with_days  # alone here, so that a fleet's run needs no profiler

    return with_days(run.world(PROFILE)).windows


def _treated(run: Run, instances: pd.DataFrame) -> pd.DataFrame:
    """Return machine, start_s and end_s of when machines had the feature."""
    if run.has("switches"):
        switches = run.table("switches")
        if len(switches):
            return switches.loc[switches["feature"], ["machine", "start_s", "end_s"]]
    events = run.table("events", ["time_s", "kind", "machine"]) if run.has("events") else pd.DataFrame()
    having = instances.loc[instances["feature"], "machine"].unique()
    since = pd.Series(0.0, index=having)
    if len(events):
        rolled = events[events["kind"] == "rollout"].groupby("machine")["time_s"].min()
        since = rolled.reindex(having).fillna(0.0)
    return pd.DataFrame({"machine": having, "start_s": since.to_numpy(), "end_s": math.inf})


def of_run(
    counters: pd.DataFrame,
    instances: pd.DataFrame,
    windows: pd.DataFrame,
    treated: pd.DataFrame | None = None,
    metric: MetricName = "ips",
) -> pd.DataFrame:
    """Return the observations of a simulated fleet: counters per stay and window.

    Parameters
    ----------
    counters : a run's table of counters
    instances : a run's table of instances
    windows : window, start_s: the counting windows to take, one period each
    treated : machine, start_s, end_s: when machines had the feature; nothing has it otherwise
    metric : a name in `models.fleet.metrics.METRICS`

    Returns
    -------
    DataFrame
        period (seconds), job, machine, weight, value, treated (the whole of the period), instance, shard, rack,
        platform, present_s, cpu_s, exposure (what the value is per), mean_frequency_hz, power_domain; rows without CPU
        time, and those whose machine had the feature for part of the period, are left out.

    Raises
    ------
    ValueError
        If there is no such metric, or no row in the windows.

    Examples
    --------
    >>> stay = {"residence": [0], "job": 3, "machine": 5, "quota_vcpu": 2.0, "rack": 1, "instance": 0, "shard": 0}
    >>> counted = {"residence": [0], "window": "d0", "instructions": 6.0, "cycles": 4.0, "cpu_s": 2.0, "wall_s": 9.0}
    >>> windows = pd.DataFrame({"window": ["d0"], "start_s": [0.0], "end_s": [9.0]})
    >>> observations = of_run(pd.DataFrame(counted), pd.DataFrame(stay | {"platform": "x"}), windows)
    >>> observations[["period", "job", "machine", "value"]].values.tolist()
    [[0.0, 3.0, 5.0, 3.0]]
    """
    columns = ["residence", "window", "wall_s", "cpu_s", "mean_frequency_hz", "instance", "shard", "rack", "platform"]
    columns += [POWER_DOMAIN, *_COUNTED]
    keep = [name for name in columns if name in counters or name in instances]
    rows = measurements(
        counters, instances, metric, list(windows["window"]), least_presence=0.0, busy=True, keep=keep
    ).merge(windows, on="window")
    if rows.empty:
        raise InputError(f"windows must be of {', '.join(map(str, counters['window'].unique())) or 'none'}")
    state = _state(rows, treated)
    rows = rows.rename(columns={"start_s": "period", "wall_s": "present_s"}).assign(
        treated=(state == 1.0).astype(np.int64)
    )
    names = ["period", "job", "machine", "weight", "value", "treated", "instance", "shard", "rack", "platform"]
    names += ["present_s", "cpu_s", "exposure"]
    names += [name for name in ("mean_frequency_hz", POWER_DOMAIN, *_COUNTED) if name in rows]
    return rows.loc[np.isin(state, (0.0, 1.0)), names].reset_index(drop=True)


def _state(rows: pd.DataFrame, treated: pd.DataFrame | None) -> Floats:
    """Return the share of each row's period in which its machine had the feature; (N,)."""
    share = np.zeros(len(rows))
    if treated is None or treated.empty:
        return share
    spans = rows[["machine", "start_s", "end_s"]].drop_duplicates().reset_index(drop=True)
    both = spans.merge(treated, on="machine", suffixes=("", "_on"))
    inside = np.minimum(both["end_s"], both["end_s_on"]) - np.maximum(both["start_s"], both["start_s_on"])
    both["on"] = np.maximum(inside, 0.0) / (both["end_s"] - both["start_s"])
    shares = both.groupby(["machine", "start_s"])["on"].sum()
    of_rows = shares.reindex(pd.MultiIndex.from_frame(rows[["machine", "start_s"]])).fillna(0.0)
    return np.asarray(of_rows.round(9).to_numpy(dtype=np.float64))


def is_own(column: str, sources: Sequence[Source]) -> bool:
    """Return whether a column is somebody's own, which tables then hold under the name of one of ours."""
    of_runs = all(isinstance(source, Path) and source.is_dir() for source in sources)
    return not of_runs and column not in {field.name for field in FIELDS}


def read_under(recipe: Recipe, column: str | None, name: str, sources: Sequence[Source]) -> Recipe:
    """Return the recipe with which a column that is none of ours is read under the name of one of ours."""
    if column is None or not is_own(column, sources):
        return recipe
    quoted = column.replace('"', '""')
    return replace(recipe, columns={**recipe.columns, name: f'"{quoted}"'})


def clustered_by(read: Experiment, column: str, name: str) -> Experiment:
    """Return an experiment in which the values of a column stand in place of racks.

    Parameters
    ----------
    column : as it is asked for
    name : its name in the table

    Raises
    ------
    FaultsError
        If no table has the column, or a machine has several values there.
    """
    flagged, source = read.observations, str(read.source)
    if name not in flagged.table:
        raise FaultsError([Fault(source, 0, 0, "cluster", *without(column, flagged.table))])
    values = flagged.table.groupby("machine")[name].nunique(dropna=False)
    if (values > 1).any():
        problem = f"a machine should have one value of {column} throughout"
        raise FaultsError([Fault(source, 0, 0, "cluster", problem, f"{values.max()} on {values.idxmax()}")])
    table = flagged.table.assign(rack=flagged.table[name].astype(str))
    return replace(read, observations=replace(flagged, table=table, cluster=column))


def without(column: str, table: pd.DataFrame) -> tuple[str, str]:
    """Return that a table has no such column, and which there are that say where machines belong."""
    known = [name for name in ("rack", "domain", POWER_DOMAIN, "platform") if name in table]
    return f"no column {column}", ", ".join(known) or "no rack, domain or platform either"


def racks_wrong(about: About, rows: pd.DataFrame, file: Path, column: str = "rack") -> list[Fault]:
    """Return why racks cannot be the clusters that an experiment is said to have; nothing if they can or need not be.

    Parameters
    ----------
    about : what is said of the experiment
    rows : observations
    file : the one that says it
    column : what stands in place of racks

    Examples
    --------
    >>> rows = pd.DataFrame({"machine": [1, 2], "treated": [0, 1], "rack": [7, 7]})
    >>> print(*racks_wrong(About(clusters="rack"), rows, Path("about.yaml")))
    about.yaml: clusters: rack needs 2 racks with and without the feature, got 1 with it and 1 without it
    """
    if about.clusters != "rack":
        return []
    if "rack" not in rows:
        return [Fault(str(file), 0, 0, "clusters", "rack needs the column rack in the observations")]
    machines = rows.groupby("machine").agg(having=("treated", "max"), rack=("rack", "first"))
    racks = [set(machines.loc[machines["having"] == arm, "rack"]) for arm in (1, 0)]
    counts = [len(racks[0])] if (machines["having"] == 1).all() else [len(racks_) for racks_ in racks]
    if min(counts) >= _FEWEST_RACKS:
        return []
    got = " and ".join(f"{count} {arm} it" for count, arm in zip(counts, ("with", "without"), strict=False))
    problem = f"{column} needs {_FEWEST_RACKS} {column}s with and without the feature"
    return [Fault(str(file), 0, 0, "clusters", problem, got)]


def read_about(path: Path) -> About:
    """Return what a file says of the experiment, YAML or JSON, which is YAML.

    Raises
    ------
    FaultsError
        With every fault, at its line.
    """
    from scenarios.files.tree import parse_file  # alone here: most experiments come without

    node, faults = parse_file(path)
    if faults or node is None:
        raise FaultsError(faults)
    statements = node.plain()
    if not isinstance(statements, Mapping):
        raise FaultsError([node.place.fault("", "should be a mapping of fields to values", shown(statements))])
    try:
        return About.of(statements)
    except AboutError as error:
        raise FaultsError(
            node.nearest((name,)).place.fault(name, problem, shown(value)) for name, problem, value in error.problems
        ) from None
