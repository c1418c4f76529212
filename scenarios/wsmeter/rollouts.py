"""Test clusters that are really rolled out, each beside the draw composed of the two counterfactual fleets.

Validation composes a test cluster: rows of the fleet with the feature everywhere. A team would give the feature to just
those machines, or add machines, or pack instances together, while all the rest stays as it is. Here that is simulated.

Either way the current fleet is the day's twin with the feature nowhere, measured whole, the machines of the test
cluster included. The day is that of the roll-out, with the same load, phases and noise: as if the team had measured the
whole fleet under exactly the conditions of the roll-out. (New machines have conditions of their own, and instances that
are packed have other momentary behaviour.) A team gathers its current fleet before the roll-out (Lee et al. 2018,
WSMeter, section 5.1, step 1). Drift between gathering and roll-out is therefore missing, and with it the error that it
would add to either change. Real and composed share the current fleet, so that they differ by the new sample alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.clusters import random_instances
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.plan import plan, plannable
from analysis.wsmeter.summaries import Covered, Current
from models.arrays import Ints
from models.fleet.inventory import build_machines
from models.fleet.metrics import MetricName
from models.fleet.world import World
from models.randomness import stream
from scenarios.files import schema
from scenarios.runs.rundir import Run
from scenarios.wsmeter.loop import observe, touched
from scenarios.wsmeter.measurements import Tables
from sim.fleet.arms import everywhere, on_instances, on_machines
from sim.fleet.day import Day, day_of, prepare
from sim.fleet.testclusters import added, packed

Pair = tuple[pd.DataFrame, pd.DataFrame]
"""Measurement tables of one test cluster: really rolled out, and composed."""


def moved(day: Day, number: int) -> Day:
    """Return the day on other machines, in racks of their own, with other momentary behaviour of each instance.

    Machines and racks differ as they do in the world; jobs, shards and placement stay.

    Parameters
    ----------
    day : on machines that differ by their conditions alone
    number : which others, 0, 1, 2, …
    """
    rng = stream(day.world.seed, f"other machines/{number}")
    fleet = replace(day.world.fleet, machines=day.machines.count)
    others = build_machines(replace(day.world, seed=int(rng.integers(2**32)), fleet=fleet))
    others = replace(others, rack=others.rack + number * (int(others.rack.max()) + 1))
    label = rng.permutation(day.timeline.instance_feature_from_s.size)
    timeline = replace(
        day.timeline,
        instance=label[day.timeline.instance],
        instance_feature_from_s=day.timeline.instance_feature_from_s[np.argsort(label)],
    )
    return day_of(day.world, others, day.jobs, timeline)


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """A fleet's day, measured without the feature and with the feature everywhere.

    Both are the same day: the same stays, phases and noise, so that they differ by the feature alone.
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


class Design(Protocol):
    """A way to build a test cluster."""

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters, each really rolled out and composed.

        Parameters
        ----------
        twins : the fleet
        rng : decides what is in the clusters
        draws : how many
        """


@dataclass(frozen=True, slots=True)
class OnMachines:
    """Random machines get the feature where they stand (section 5.2.2); `size` of them."""

    size: int = 40

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of disjoint machines.

        Raises
        ------
        NotEnoughDataError
            If there are too few machines for so many clusters.
        """
        for which in _clusters(rng, twins.day, self.size, draws):
            real = observe(twins.day, on_machines(twins.day, which), twins.metric, around=which)
            yield real, twins.composed(real)


@dataclass(frozen=True, slots=True)
class OnAdded:
    """What runs on `size` random machines migrates to new ones that have the feature (section 5.2.2)."""

    size: int = 40

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of disjoint machines; a multiple of a rack makes their new racks disjoint, too.

        Raises
        ------
        NotEnoughDataError
            If there are too few machines for so many clusters.
        """
        clusters = _clusters(rng, twins.day, self.size, draws)
        day = added(twins.day, np.concatenate(clusters))
        for which in clusters:
            real = observe(day, on_machines(day, which), twins.metric, around=which)
            yield real, twins.composed(real)


@dataclass(frozen=True, slots=True)
class OnPacked:
    """The planned instances of the largest jobs are packed onto new machines with nothing beside them.

    The plan is for a relative `margin` over the `top_jobs` largest jobs.
    """

    margin: float = 0.02
    top_jobs: int = 200

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters on new machines each, composed of the same instances where they were.

        Raises
        ------
        MarginOutOfReachError
            If all instances of the largest jobs are too few for the margin.
        """
        allocation = twins.allocation(self.margin, self.top_jobs)
        for number in range(draws):
            rows = twins.chosen(rng, allocation)
            day = moved(packed(twins.day, rows["instance"].to_numpy(np.int64)), number)
            yield observe(day, everywhere(day), twins.metric), twins.composed(rows)


@dataclass(frozen=True, slots=True)
class OnInstances:
    """The planned number of random instances of each job gets new code (section 5.3).

    The plan is for a relative `margin` over the `top_jobs` largest jobs.
    """

    margin: float = 0.03
    top_jobs: int = 200

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of single instances among neighbours that stay as they are.

        Raises
        ------
        MarginOutOfReachError
            If all instances of the largest jobs are too few for the margin.
        """
        allocation = twins.allocation(self.margin, self.top_jobs)
        for _ in range(draws):
            rows = twins.chosen(rng, allocation)
            arm = on_instances(twins.day, rows["instance"].to_numpy(np.int64))
            real = observe(twins.day, arm, twins.metric, around=rows["machine"].unique().astype(np.int64))
            yield real[real["residence"].isin(rows["residence"])], twins.composed(rows)


def compare(twins: Twins, design: Design, draws: int, name: str) -> pd.DataFrame:
    """Return what WSMeter says of test clusters that are really rolled out, and of the same composed.

    Both are compared with the whole fleet without the feature on the same day: no drift between gathering and roll-out
    is in the errors.

    Parameters
    ----------
    twins : the fleet
    design : how test clusters are built
    draws : how many
    name : of the random stream, under the world's seed

    Returns
    -------
    DataFrame
        draw, machines (of the real cluster), real and composed (relative changes), margin and composed_margin (of
        either), truth (the change over all jobs that count), reference (over the covered jobs), quota_coverage (of the
        jobs that count).

    Raises
    ------
    NotEnoughDataError
        If a cluster covers no job, or there are too few machines for so many clusters.
    """
    before, truth, estimator = Current.of(twins.without), twins.change(), WSMeter()
    rows = []
    for number, pair in enumerate(design.draw(twins, stream(twins.day.world.seed, name), draws)):
        real, composed = (estimator.estimate(before, table, twins.jobs) for table in pair)
        common = Covered.of(before, Current.of(pair[0]), estimator.min_instances, 1, twins.jobs)
        rows.append(
            {
                "draw": number,
                "machines": real.machines,
                "real": real.change,
                "composed": composed.change,
                "margin": real.margin,
                "composed_margin": composed.margin,
                "truth": truth,
                "reference": twins.change(common.job),
                "quota_coverage": real.quota_coverage,
            }
        )
    return pd.DataFrame(rows)


def _clusters(rng: np.random.Generator, day: Day, size: int, draws: int) -> list[Ints]:
    """Return disjoint random sets of machines, each in ascending order."""
    if size * draws > day.machines.count:
        raise NotEnoughDataError(size * draws, day.machines.count, "machines")
    order = rng.permutation(day.machines.count)
    return [np.sort(order[at : at + size]) for at in range(0, size * draws, size)]
