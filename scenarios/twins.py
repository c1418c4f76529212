"""A fleet's day beside its counterfactual twins, ready to be simulated again under any other arm."""

import json
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from analysis.clusters import random_instances
from analysis.coverage import Covered, plannable
from analysis.measurements import Metric, performance
from analysis.plan import plan
from analysis.statistics import Current, Ints
from models.scenario import World
from models.tables import COUNTERS
from scenarios import schema
from scenarios.rundir import Run
from scenarios.truth import Tables
from sim.fleet import Arm, Day, prepare
from sim.testclusters import measure, stays


def observe(day: Day, arm: Arm, metric: Metric, window: str = "all", around: Ints | None = None) -> pd.DataFrame:
    """Return the measurement table of an arm; what `analysis.measurements.performance` says of it.

    Parameters
    ----------
    day, arm : what happens, and who has the feature
    metric, window : what is measured, and when
    around : machines; only their power domains are simulated, and only their instances are in the table

    Examples
    --------
    >>> from models.scenario import Fleet, Population
    >>> from sim.fleet import nowhere
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> observe(day, nowhere(day), "ipc", around=np.array([4, 7]))["machine"].unique().tolist()
    [4, 7]
    """
    seen = measure(day, arm, around)
    made = performance(seen[[column.name for column in COUNTERS]], stays(day), metric, window)
    return made if around is None else made[made["machine"].isin(around)].reset_index(drop=True)


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """A fleet's day, measured without the feature and with the feature everywhere."""

    day: Day
    metric: Metric
    jobs: pd.DataFrame
    """job, quota, instances: those that count, for new code the jobs that have it."""
    without: pd.DataFrame
    having: pd.DataFrame

    @classmethod
    def of(cls, run: Run, metric: Metric) -> "Twins":
        """Read a run's counterfactual fleets and prepare its day again.

        Raises
        ------
        RunError
            If the run has no truth tables.
        """
        world = schema.SCENARIO.validate_json(json.dumps(run.manifest["resolved"]))
        day = prepare(World(**{field.name: getattr(world, field.name) for field in fields(World)}))
        tables = Tables.of(run, schema.WSMeter(metric=metric))
        return cls(day, metric, touched(day, tables.jobs), *tables.arms)

    def change(self, jobs: pd.Index | None = None) -> float:
        """Return the true relative change over all jobs that count, or over some of them."""
        after = Current.of(self.having)
        both = Covered.of(Current.of(self.without), after if jobs is None else after.only(jobs), 1, 1, self.jobs)
        return float(both.weight @ both.new.mean / (both.weight @ both.current.mean) - 1)

    def composed(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the same stays as they are with the feature everywhere."""
        return self.having[self.having["residence"].isin(rows["residence"])]

    def allocation(self, margin: float, top_jobs: int) -> pd.DataFrame:
        """Return job and instances of the plan for a margin over the largest jobs, as far as there are instances."""
        there = self.without.groupby("job")["instance"].nunique()
        jobs = self.jobs.nlargest(top_jobs, "quota")
        have = jobs["job"].map(there).fillna(0)
        jobs = jobs.assign(instances=np.minimum(jobs["instances"], have).astype(np.int64))
        return plan(plannable(self.without, jobs), margin).allocation

    def chosen(self, rng: np.random.Generator, allocation: pd.DataFrame) -> pd.DataFrame:
        """Return one stay each of as many random instances of every job as are allotted."""
        once = self.without.drop_duplicates("instance", ignore_index=True)
        return once.iloc[random_instances(rng, once, allocation)]


def touched(day: Day, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that a feature is about: those with new code, or all where hardware or governor change.

    Parameters
    ----------
    day : whose feature
    jobs : column job, numbers of jobs

    Examples
    --------
    >>> from models.scenario import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> len(touched(day, pd.DataFrame({"job": range(60)})))
    60
    """
    feature = day.world.feature
    if feature is None or feature.platforms or feature.governor:
        return jobs
    names = {name for new in feature.software for name in new.jobs}
    return jobs[[day.jobs.names[job] in names for job in jobs["job"]]]
