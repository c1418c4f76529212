"""Test clusters that are really rolled out, each beside the draw composed of the two counterfactual fleets.

Validation composes a test cluster: rows of the fleet with the feature everywhere. A team would give the feature to just
those machines, or add machines, or pack instances together, while all the rest stays as it is. Here that is simulated.

Either way the current fleet is the one without the feature, measured whole (Lee et al. 2018, WSMeter, section 5.1, step
1): it is what a team has before its roll-out, and it is the same for both, so that they differ by the new sample alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
import pandas as pd

from analysis.clusters import random_instances
from analysis.coverage import Covered, plannable
from analysis.estimators import WSMeter
from analysis.measurements import Metric, performance
from analysis.plan import plan
from analysis.statistics import Current, Ints, NotEnoughDataError
from models.machines import build_machines
from models.randomness import stream
from models.scenario import World
from models.tables import COUNTERS
from scenarios import schema
from scenarios.rundir import Run
from scenarios.truth import Tables
from sim.fleet import Arm, Day, day_of, everywhere, on_instances, on_machines, prepare
from sim.testclusters import added, measure, packed, stays

Pair = tuple[pd.DataFrame, pd.DataFrame]
"""Measurement tables of one test cluster: really rolled out, and composed."""


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


def moved(day: Day, number: int) -> Day:
    """Return the day on other machines, in racks of their own, with other momentary behaviour of each instance.

    Machines and racks differ as they do in the world; jobs, shards and placement stay.

    Parameters
    ----------
    day : on machines that differ by their conditions alone
    number : which others, 0, 1, 2, …

    Examples
    --------
    >>> from models.scenario import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> moved(day, 5).machines.rack.min()
    np.int64(5)
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


class Design(Protocol):
    """A way to build a test cluster."""

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters, each really rolled out and composed."""


@dataclass(frozen=True, slots=True)
class OnMachines:
    """Random machines get the feature where they stand (section 5.2.2)."""

    size: int = 40

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of disjoint machines."""
        for which in _clusters(rng, twins.day, self.size, draws):
            real = observe(twins.day, on_machines(twins.day, which), twins.metric, around=which)
            yield real, twins.composed(real)


@dataclass(frozen=True, slots=True)
class OnAdded:
    """What runs on random machines migrates to new ones that have the feature (section 5.2.2)."""

    size: int = 40

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of disjoint machines; a multiple of a rack makes their new racks disjoint, too."""
        clusters = _clusters(rng, twins.day, self.size, draws)
        day = added(twins.day, np.concatenate(clusters))
        for which in clusters:
            real = observe(day, on_machines(day, which), twins.metric, around=which)
            yield real, twins.composed(real)


@dataclass(frozen=True, slots=True)
class OnPacked:
    """The planned instances of the largest jobs are packed onto new machines with nothing beside them."""

    margin: float = 0.02
    top_jobs: int = 200

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters on new machines each, composed of the same instances where they were."""
        allocation = twins.allocation(self.margin, self.top_jobs)
        for number in range(draws):
            rows = twins.chosen(rng, allocation)
            day = moved(packed(twins.day, rows["instance"].to_numpy(np.int64)), number)
            yield observe(day, everywhere(day), twins.metric), twins.composed(rows)


@dataclass(frozen=True, slots=True)
class OnInstances:
    """The planned number of random instances of each job gets new code (section 5.3)."""

    margin: float = 0.03
    top_jobs: int = 200

    def draw(self, twins: Twins, rng: np.random.Generator, draws: int) -> Iterator[Pair]:
        """Yield test clusters of single instances among neighbours that stay as they are."""
        allocation = twins.allocation(self.margin, self.top_jobs)
        for _ in range(draws):
            rows = twins.chosen(rng, allocation)
            arm = on_instances(twins.day, rows["instance"].to_numpy(np.int64))
            real = observe(twins.day, arm, twins.metric, around=rows["machine"].unique().astype(np.int64))
            yield real[real["residence"].isin(rows["residence"])], twins.composed(rows)


def compare(twins: Twins, design: Design, draws: int, name: str) -> pd.DataFrame:
    """Return what WSMeter says of test clusters that are really rolled out, and of the same composed.

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
