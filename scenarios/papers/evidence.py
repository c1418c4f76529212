"""What a row of a paper is judged on: runs, obtained once, as halves with and without the feature; and the outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import COLUMNS
from models.errors import InputError
from models.metrics import MetricName
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run
from scenarios.views.output import Progress
from scenarios.wsmeter.measurements import run_measurements
from scenarios.wsmeter.truth import halves_of

Obtain = Callable[[str, Mapping[str, Any], Progress], Run]
"""From scenario, overrides and progress to the run, found or simulated."""
Judge = Callable[[str, Mapping[str, Any], Progress], list[dict[str, Any]]]
"""From scenario, overrides and progress to its worlds, as `judged_world.judge` judges each; of a profiled fleet, to
what `validate_profile.validate` says."""


Trial = Callable[..., dict[str, Any]]
"""From progress, and what else is asked by name, to what a study by simulation says."""


def no_worlds(scenario: str, _overrides: Mapping[str, Any], _progress: Progress) -> list[dict[str, Any]]:
    """Be the `Judge` of those who have no worlds.

    Raises
    ------
    ValueError
        Always.
    """
    raise InputError(f"{scenario}: its worlds are not to be had here")


def published(row: str) -> pd.DataFrame:
    """Return the printed numbers and the criteria of a row, as committed.

    Parameters
    ----------
    row : its id

    Raises
    ------
    ValueError
        If there is no such table, or its columns are not those of `criteria.COLUMNS`.

    Examples
    --------
    >>> published("wsmeter/fig4")["figure"].unique().tolist()
    ['wsmeter/fig4']
    """
    file = files("analysis.figures") / f"{row}.csv"
    if not file.is_file():
        raise InputError(f"{row}: no table of printed numbers")
    with file.open(encoding="utf-8") as text:
        table = pd.read_csv(text, dtype={"series": str, "x": str, "unit": str, "read_from": str})
    if tuple(table.columns) != COLUMNS:
        raise InputError(f"{row}: columns must be {', '.join(COLUMNS)}, got {', '.join(table.columns)}")
    return table


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """A recorded fleet cut in two (WSMeter, section 6.1): measurement tables without and with the feature."""

    current: pd.DataFrame
    new: pd.DataFrame
    jobs: pd.DataFrame
    """job, name, quota, instances of the whole fleet."""

    def only(self, names: tuple[str, ...]) -> "Halves":
        """Return the same of some jobs, by name."""
        jobs = self.jobs[self.jobs["name"].isin(names)]
        missing = sorted(set(names) - set(jobs["name"]))
        if missing:
            raise InputError(f"the run has no job named {', '.join(missing)}")
        kept = [table[table["job"].isin(jobs["job"])].reset_index(drop=True) for table in (self.current, self.new)]
        return Halves(kept[0], kept[1], jobs.reset_index(drop=True))


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Runs by scenario, each obtained and measured once."""

    obtain: Obtain
    progress: Progress
    judge: Judge = no_worlds
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """Studies by simulation, by name."""
    kept: dict[tuple[object, ...], Any] = field(default_factory=dict)

    def run(self, scenario: str, **overrides: object) -> Run:
        """Return the run of a scenario of the library, found or simulated."""
        key = (scenario, *sorted(overrides.items()))
        if key not in self.kept:
            self.kept[key] = self.obtain(scenario, overrides, self.progress)
        run: Run = self.kept[key]
        return run

    def worlds(self, scenario: str, count: int, **overrides: object) -> list[dict[str, Any]]:
        """Return many worlds of a cross-platform scenario, each judged as `judged_world.judge` does."""
        key = ("worlds", scenario, count, *sorted(overrides.items()))
        if key not in self.kept:
            asked = {"analyses.crossplatform.worlds": count, **overrides}
            self.kept[key] = self.judge(scenario, asked, self.progress)
        judged: list[dict[str, Any]] = self.kept[key]
        return judged

    def trial(self, name: str, **asked: object) -> dict[str, Any]:
        """Return what a study by simulation says.

        Raises
        ------
        ValueError
            If it is not to be had here.
        """
        key = ("trial", name, *sorted(asked.items()))
        if key not in self.kept:
            if name not in self.trials:
                raise InputError(f"{name}: it is not to be had here")
            self.kept[key] = self.trials[name](progress=self.progress, **asked)
        told: dict[str, Any] = self.kept[key]
        return told

    def collectors(self, scenario: str, draws: int, **overrides: object) -> dict[str, Any]:
        """Return how right many collectors of one profiled fleet were, as `validate_profile.summary` says it."""
        key = ("collectors", scenario, draws, *sorted(overrides.items()))
        if key not in self.kept:
            self.kept[key] = self.judge(scenario, {"analyses.profiling.draws": draws, **overrides}, self.progress)
        judged: list[dict[str, Any]] = self.kept[key]
        return judged[0]

    def fleet(self, scenario: str, metric: MetricName, **overrides: object) -> Halves:
        """Return a whole recorded fleet as `current`, whatever has the feature; `new` is empty."""
        run = self.run(scenario, **overrides)
        whole = run_measurements(run, WSMeter(metric=metric))
        return Halves(whole, whole.iloc[:0], _jobs(run))

    def halves(self, scenario: str, metric: MetricName, **overrides: object) -> Halves:
        """Return the halves of a recorded fleet without and with the feature.

        Raises
        ------
        NotEnoughDataError
            If nothing, or everything, has the feature.
        RunError
            If the run lacks a table.
        """
        key = ("halves", scenario, metric, *sorted(overrides.items()))
        if key not in self.kept:
            whole = self.fleet(scenario, metric, **overrides)
            self.kept[key] = Halves(*halves_of(whole.current), whole.jobs)
        made: Halves = self.kept[key]
        return made


def _jobs(run: Run) -> pd.DataFrame:
    jobs = run.table("jobs", ["job", "name", "quota_vcpu", "instances"])
    return jobs.rename(columns={"quota_vcpu": "quota"})


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What was measured for a row, and what to draw."""

    judged: pd.DataFrame
    """series, x, value: put to the criteria."""
    drawn: pd.DataFrame | None = None
    """The same in the metric of the paper's numbers and of the drawing, where that is another one."""
    metrics: tuple[str, str] = ("", "")
    """Names of the metrics that are judged and drawn, where they differ."""
    draw: Callable[[pd.DataFrame, pd.DataFrame], Figure] | None = None
    """From measured and printed numbers to the figure; none for a table."""
    note: str = ""
    """What a reader should know, whatever the verdict."""
    table: pd.DataFrame | None = None
    """Further numbers, printed row by row below the verdict."""


Compute = Callable[[Sources, pd.DataFrame], Outcome]
"""From the runs and the printed numbers (series, x, value) of a row to its outcome."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure or table of a paper: what it shows, what it needs, and how its outcome is computed."""

    what: str
    scenarios: tuple[str, ...]
    """Library scenarios whose runs it needs; none where printed numbers suffice."""
    compute: Compute
