"""A simulated fleet's past without any feature, as the planner of experiments takes it."""

from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.effects.past import Past
from models.arrays import DAY_S, HOUR_S
from models.fleet.metrics import MetricName
from models.fleet.world import Recording, Window, World
from scenarios.effects.observations import of_run
from scenarios.effects.scorecard import corners
from sim.fleet.arms import Arm, nowhere
from sim.fleet.day import Day, prepare
from sim.fleet.experiment import measure

_QUARTER_S = 900.0
"""Longest epoch where the feature is switched."""


def simulated(world: World, days: int, metric: MetricName = "ips") -> Past:
    """Return a fleet's observations day by day, without any feature.

    Parameters
    ----------
    world : the fleet
    days : from its beginning on
    metric : what is measured
    """
    windows = tuple(Window(f"day.{day:03}", day * DAY_S, (day + 1) * DAY_S) for day in range(days))
    return _without_feature(world, windows, DAY_S, max(world.epoch_s, HOUR_S), metric)


def simulated_periods(
    world: World, periods: int = round(DAY_S / corners.CROSSOVER_PERIOD_S), metric: MetricName = "ips"
) -> Past:
    """Return a fleet's observations in periods of a crossover, without any feature and without what is washed out.

    Parameters
    ----------
    world : the fleet
    periods : from its beginning on
    metric : what is measured

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> past = simulated_periods(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)), 2)
    >>> len(past.periods), past.period_s == corners.CROSSOVER_PERIOD_S, past.periods.tolist()[0] == corners.WASH_S
    (2, True, True)
    """
    length = corners.CROSSOVER_PERIOD_S
    windows = tuple(Window(f"rest.{k:03}", k * length + corners.WASH_S, (k + 1) * length) for k in range(periods))
    return _without_feature(world, windows, length, min(world.epoch_s, _QUARTER_S), metric)


def _without_feature(
    world: World, windows: tuple[Window, ...], period_s: float, epoch_s: float, metric: MetricName
) -> Past:
    """Return a fleet's observations in counting windows, one a period, without any feature."""
    recording = Recording(windows=windows)
    day = prepare(replace(world, feature=None, horizon_s=windows[-1].end_s, epoch_s=epoch_s, recording=recording))
    return Past(observations(day, nowhere(day), metric), period_s, job_quotas(day))


def observations(day: Day, arm: Arm, metric: MetricName = "ips") -> pd.DataFrame:
    """Return the observations of an arm in the world's counting windows, all untreated, with power domains."""
    measured = measure(day, arm)
    windows = pd.DataFrame(
        [{"window": window.name, "start_s": window.start_s, "end_s": window.end_s} for window in day.world.windows]
    )
    places = ["residence", "job", "machine", "quota_vcpu", "instance", "shard", "rack", "platform"]
    counters = [name for name in measured.columns if name not in places[1:] and name not in {"start_s", "end_s"}]
    rows = of_run(measured[counters], measured.drop_duplicates("residence")[places], windows, metric=metric)
    return rows.assign(domain=day.machines.power_domain[rows["machine"].to_numpy(dtype=np.int64)])


def job_quotas(day: Day) -> pd.DataFrame:
    """Return job, quota and instances of a simulated fleet's jobs."""
    jobs = day.jobs
    return pd.DataFrame({"job": np.arange(jobs.count), "quota": jobs.quota_vcpu, "instances": jobs.instances})
