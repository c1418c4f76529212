"""A fleet's day beside its counterfactual twins, ready to be simulated again under any other arm."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from analysis.statistics import Current
from analysis.wsmeter.clusters import random_instances
from analysis.wsmeter.coverage import Covered, plannable
from analysis.wsmeter.measurements import measurements
from analysis.wsmeter.plan import plan
from models.arrays import Ints
from models.fleet.metrics import MetricName
from models.fleet.world import World
from models.tables import COUNTERS
from scenarios.files import schema
from scenarios.runs.rundir import Run
from scenarios.wsmeter.truth import Tables
from sim.fleet.arms import Arm
from sim.fleet.day import Day, prepare
from sim.fleet.experiment import measure, stays


def observe(day: Day, arm: Arm, metric: MetricName, window: str = "all", around: Ints | None = None) -> pd.DataFrame:
    """Return the measurement table of an arm; as `analysis.wsmeter.measurements.measurements` joins it.

    Parameters
    ----------
    day, arm : what happens, and who has the feature
    metric, window : what is measured, and when
    around : machines; only their power domains are simulated, and only their instances are in the table

    Returns
    -------
    DataFrame
        One row per stay that was long enough to measure.
    """
    counters = measure(day, arm, around)
    rows = measurements(counters[[column.name for column in COUNTERS]], stays(day), metric, window)
    return rows if around is None else rows[rows["machine"].isin(around)].reset_index(drop=True)


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """A fleet's day, measured without the feature and with the feature everywhere.

    Both are the same day: the same stays, phases and noise, so that they differ by the feature alone.

    Examples
    --------
    >>> from models.fleet.world import Feature, Fleet, Population
    >>> from sim.fleet.arms import everywhere, nowhere
    >>> feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50), feature=feature))
    >>> jobs = pd.DataFrame({"job": range(60), "quota": day.jobs.quota_vcpu, "instances": day.jobs.instances})
    >>> twins = Twins(day, "ipc", jobs, *(observe(day, arm(day), "ipc") for arm in (nowhere, everywhere)))
    >>> 0.0 < twins.change() < 0.2
    True
    >>> allocation = twins.allocation(margin=0.1, top_jobs=10)
    >>> rows = twins.chosen(np.random.default_rng(0), allocation)
    >>> len(rows) == int(allocation["instances"].sum()) == len(twins.composed(rows))
    True
    """

    day: Day
    metric: MetricName
    jobs: pd.DataFrame
    """job, quota, instances: those that count, for new code the jobs that have it."""
    without: pd.DataFrame
    having: pd.DataFrame

    @classmethod
    def of(cls, run: Run, metric: MetricName) -> "Twins":
        """Read a run's counterfactual fleets and prepare its day again.

        Parameters
        ----------
        run : with its truth tables, and a manifest that holds its scenario
        metric : what is measured

        Raises
        ------
        RunError
            If the run has no truth tables.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from models.fleet.world import Feature, Fleet, Population
        >>> from sim.fleet.experiment import experiment
        >>> feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
        >>> tiny = schema.Scenario(3, 900.0, 300.0, Fleet(20), Population(60, 50), feature=feature, name="tiny")
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     _ = experiment(tiny, Path(directory))
        ...     manifest = {"resolved": schema.SCENARIO.dump_python(tiny, mode="json")}
        ...     len(Twins.of(Run(Path(directory), manifest), "ipc").having)
        438
        """
        world = run.world(schema.SCENARIO)
        day = prepare(World(**{field.name: getattr(world, field.name) for field in fields(World)}))
        tables = Tables.of(run, schema.WSMeter(metric=metric))
        return cls(day, metric, touched(day, tables.jobs), *tables.arms)

    def change(self, jobs: pd.Index | None = None) -> float:
        """Return the true relative change over all jobs that count, or over some of them.

        Parameters
        ----------
        jobs : numbers of jobs; all that count without it

        Raises
        ------
        NotEnoughDataError
            If an arm measured none of them.
        """
        after = Current.of(self.having)
        both = Covered.of(Current.of(self.without), after if jobs is None else after.only(jobs), 1, 1, self.jobs)
        return float(both.weight @ both.new.mean / (both.weight @ both.current.mean) - 1)

    def composed(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the same stays as they are with the feature everywhere.

        Parameters
        ----------
        rows : column residence; stays too short to measure with the feature are left out
        """
        return self.having[self.having["residence"].isin(rows["residence"])]

    def allocation(self, margin: float, top_jobs: int) -> pd.DataFrame:
        """Return the plan for a margin over the largest jobs, as far as there are instances.

        Parameters
        ----------
        margin : relative half-width of the interval that is planned for
        top_jobs : how many jobs, by quota

        Returns
        -------
        DataFrame
            Columns job and instances; no job is asked for more instances than were measured, however often they moved.

        Raises
        ------
        MarginOutOfReachError
            If all instances of these jobs are too few.
        NotEnoughDataError
            If none of these jobs has enough instances to plan with.
        """
        measured = self.without.groupby("job")["instance"].nunique()
        jobs = self.jobs.nlargest(top_jobs, "quota")
        have = jobs["job"].map(measured).fillna(0)
        jobs = jobs.assign(instances=np.minimum(jobs["instances"], have).astype(np.int64))
        return plan(plannable(self.without, jobs), margin).allocation

    def chosen(self, rng: np.random.Generator, allocation: pd.DataFrame) -> pd.DataFrame:
        """Return one stay each of as many random instances of every job as are allotted.

        Parameters
        ----------
        rng : decides which
        allocation : columns job and instances

        Returns
        -------
        DataFrame
            Rows of `without`, each instance once.
        """
        once = self.without.drop_duplicates("instance", ignore_index=True)
        return once.iloc[random_instances(rng, once, allocation)]


def touched(day: Day, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that a feature is about: those with new code, or all where hardware or governor change.

    Parameters
    ----------
    day : whose feature
    jobs : column job, numbers of jobs
    """
    feature = day.world.feature
    if feature is None or feature.platforms or feature.governor:
        return jobs
    names = {name for new in feature.software for name in new.jobs}
    return jobs[[day.jobs.names[job] in names for job in jobs["job"]]]
