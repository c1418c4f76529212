"""What a row of a paper is judged on: runs, obtained once, as halves with and without the feature; and the outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.measurements import Metric, performance
from analysis.statistics import NotEnoughDataError
from scenarios.output import Progress
from scenarios.rundir import Run

Obtain = Callable[[str, Mapping[str, Any], Progress], Run]
"""From scenario, overrides and progress to the run, found or simulated."""


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
            raise ValueError(f"the run has no job named {', '.join(missing)}")
        kept = [table[table["job"].isin(jobs["job"])].reset_index(drop=True) for table in (self.current, self.new)]
        return Halves(kept[0], kept[1], jobs.reset_index(drop=True))


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Runs by scenario, each obtained and measured once."""

    obtain: Obtain
    progress: Progress
    kept: dict[tuple[object, ...], Any] = field(default_factory=dict)

    def run(self, scenario: str, **overrides: object) -> Run:
        """Return the run of a scenario of the library, found or simulated."""
        key = (scenario, *sorted(overrides.items()))
        if key not in self.kept:
            self.kept[key] = self.obtain(scenario, overrides, self.progress)
        run: Run = self.kept[key]
        return run

    def fleet(self, scenario: str, metric: Metric, **overrides: object) -> Halves:
        """Return a whole recorded fleet as `current`, whatever has the feature; `new` is empty."""
        run = self.run(scenario, **overrides)
        measured = performance(run.table("counters"), run.table("instances"), metric)
        return Halves(measured, measured.iloc[:0], _jobs(run))

    def halves(self, scenario: str, metric: Metric) -> Halves:
        """Return the halves of a recorded fleet without and with the feature.

        Raises
        ------
        NotEnoughDataError
            If nothing, or everything, has the feature.
        RunError
            If the run lacks a table.
        """
        key = ("halves", scenario, metric)
        if key not in self.kept:
            whole = self.fleet(scenario, metric)
            has = whole.current["feature"].to_numpy(dtype=bool)
            if has.all() or not has.any():
                raise NotEnoughDataError(1, 0, f"measured instances {'without' if has.any() else 'with'} the feature")
            halves = [whole.current[kept].reset_index(drop=True) for kept in (~has, has)]
            self.kept[key] = Halves(halves[0], halves[1], whole.jobs)
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
    """The same in the metric of the drawing, where that is another one."""
    draw: Callable[[pd.DataFrame, pd.DataFrame], Figure] | None = None
    """From measured and printed numbers to the figure; none for a table."""
    note: str = ""
    """What a reader should know, whatever the verdict."""


Compute = Callable[[Sources, pd.DataFrame], Outcome]
"""From the runs and the printed numbers (series, x, value) of a row to its outcome."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure or table of a paper: what it shows, what it needs, and how its outcome is computed."""

    what: str
    scenarios: tuple[str, ...]
    """Library scenarios whose runs it needs; none where printed numbers suffice."""
    compute: Compute
