"""The loop of WSMeter (Lee et al. 2018, Figs 10 and 14), run in the simulation: gather, plan, roll out, check, re-plan.

Each round really simulates the fleet with the feature on just the machines (or instances) chosen so far. No round looks
at the fleet with the feature everywhere.

But a round knows more than a team would. The current fleet is measured on the day's twin with the feature nowhere: the
day of the roll-out itself, with the same stays, phases and noise, the machines of the test cluster included. It is as
if the team had measured the whole fleet under exactly the conditions of the roll-out. A team gathers before it rolls
out. Drift between gathering and roll-out is therefore missing, and with it the error that it would add to the change.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import Estimate, WSMeter
from analysis.wsmeter.measurements import measurements
from analysis.wsmeter.plan import MarginOutOfReachError, plan, plannable
from analysis.wsmeter.summaries import covered
from models.arrays import Floats, Ints
from models.fleet.metrics import MetricName
from models.fleet.world import Loop
from models.randomness import stream
from models.tables import COUNTERS, ROUNDS
from scenarios.views.terminal import Progress
from sim.fleet.arms import Arm, nowhere, on_instances, on_machines
from sim.fleet.day import Day
from sim.fleet.experiment import measure, stays

LARGEST_SHARE = 0.5
"""Largest share of the fleet, or of a job's instances, that gets the feature."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What the rounds share: the day, the current fleet, who may get the feature and in what order.

    Examples
    --------
    >>> from models.fleet.world import Feature, Fleet, Population, World
    >>> from sim.fleet.day import prepare
    >>> feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50), feature=feature))
    >>> trial = _trial(day, Loop(top_jobs=10))
    >>> len(trial.queues), trial.current["job"].nunique(), trial.most
    (1, 10, array([10.]))
    """

    day: Day
    settings: Loop
    current: pd.DataFrame
    """Measurement table of the whole fleet without the feature on the same day, the considered jobs only."""
    jobs: pd.DataFrame
    """job, quota, instances of the whole fleet."""
    plannable: pd.DataFrame
    """What the first plan is made from: the considered jobs that have enough instances."""
    by_instance: bool
    queues: tuple[Ints, ...]
    """Machines in the random order in which they get the feature; or the instances of each job of `plannable`."""

    @property
    def most(self) -> Floats:
        """How many of each queue get the feature at most: (queues,) array of machines, or of each job's instances."""
        length: Floats = np.array([queue.size for queue in self.queues], np.float64)
        most: Floats = np.minimum(length, np.maximum(np.floor(LARGEST_SHARE * length), self.settings.min_instances))
        return most


def rounds(day: Day, settings: Loop, progress: Progress) -> pd.DataFrame:
    """Return what every round planned, rolled out and found: table `rounds`.

    The first round rolls out to as many machines as hold the planned instances of the considered jobs, or to the
    planned instances themselves where the feature is new code, times the headroom. One that missed its margin is
    followed by another that plans with the spreads now seen, and has at least so many times more machines as the margin
    was too wide, squared, times the headroom (footnote 7). The loop ends when the margin is met, or nothing is left.

    The current fleet is the whole fleet without the feature under the very conditions of the roll-out: no drift between
    gathering and roll-out is in the change or in its margin.

    Parameters
    ----------
    day : a day of a world with a feature
    settings : target margin, headroom, rounds, metric, top jobs, least instances
    progress : told that a round is being made

    Returns
    -------
    DataFrame
        Columns of table `rounds`; `machines` counts instances where the roll-out is by instance, `planned_margin` is
        the best there is where the target is out of reach.
    """
    rows = []
    for row in _rounds(_trial(day, settings)):
        rows.append(row)
        progress("rolling out", len(rows) / settings.rounds)
    progress("rolling out", 1.0)
    return pd.DataFrame(rows, columns=[column.name for column in ROUNDS])


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


def _trial(day: Day, settings: Loop) -> Trial:
    jobs = pd.DataFrame({"job": range(day.jobs.count), "quota": day.jobs.quota_vcpu, "instances": day.jobs.instances})
    considered = touched(day, jobs).nlargest(settings.top_jobs, "quota")
    current = observe(day, nowhere(day), settings.metric, settings.window)
    current = current[current["job"].isin(considered["job"])]
    table = plannable(current, considered, settings.min_instances)
    by_instance = day.world.feature is not None and day.world.feature.rollout.unit == "instance"
    units = [current.loc[current["job"] == job, "instance"] for job in table["job"]] if by_instance else []
    rng = stream(day.world.seed, "loop")
    queues = tuple(rng.permutation(np.unique(unit)) for unit in units or [np.arange(day.machines.count)])
    return Trial(day, settings, current, jobs, table, by_instance, queues)


def _rounds(trial: Trial) -> Iterator[dict[str, float]]:
    table, settings = trial.plannable, trial.settings
    size, growth = np.zeros(len(trial.queues)), 1.0
    for number in range(1, settings.rounds + 1):
        needed, planned = _needed(trial, table)
        size = np.minimum(trial.most, np.maximum(np.ceil(needed * settings.headroom), np.ceil(size * growth)))
        new = _observe(trial, size.astype(np.int64))
        estimate = _estimate(trial, new)
        yield _row(number, int(size.sum()), settings.target_margin, planned, estimate)
        if _accepted(estimate, settings.target_margin) or bool((size == trial.most).all()):
            return
        growth = 2.0
        if estimate is not None:
            growth = (estimate.margin / settings.target_margin) ** 2 * settings.headroom
            table = _with_spreads_of(new, table, trial)


def _needed(trial: Trial, table: pd.DataFrame) -> tuple[Floats, float]:
    """Return how many of each queue hold the planned instances, and the margin that the plan promises."""
    settings = trial.settings
    try:
        planned = plan(table, settings.target_margin, settings.t, settings.min_instances)
    except MarginOutOfReachError as error:
        return trial.most, error.best
    if trial.by_instance:
        return planned.allocation["instances"].to_numpy(np.float64), planned.margin
    quota = float((table["cost"] * table["instances"]).sum())
    return np.array([planned.cost / quota * trial.day.machines.count]), planned.margin


def _observe(trial: Trial, size: Ints) -> pd.DataFrame:
    """Simulate the fleet with the feature on the first `size` of the queues, and measure those."""
    which = np.concatenate([queue[:count] for queue, count in zip(trial.queues, size, strict=True)])
    arm, hosts = _arm(trial, which)
    new = observe(trial.day, arm, trial.settings.metric, trial.settings.window, around=hosts)
    unit = "instance" if trial.by_instance else "machine"
    return new[new[unit].isin(which)]


def _arm(trial: Trial, which: Ints) -> tuple[Arm, Ints]:
    """Return the arm in which these have the feature, and the machines that are concerned."""
    if not trial.by_instance:
        return on_machines(trial.day, which), which
    timeline = trial.day.timeline
    return on_instances(trial.day, which), np.unique(timeline.machine[np.isin(timeline.instance, which)])


def _estimate(trial: Trial, new: pd.DataFrame) -> Estimate | None:
    """Return what WSMeter says, or nothing if no job is covered."""
    settings = trial.settings
    try:
        return WSMeter(settings.t, settings.min_instances).estimate(trial.current, new, trial.jobs)
    except NotEnoughDataError:
        return None


def _with_spreads_of(new: pd.DataFrame, table: pd.DataFrame, trial: Trial) -> pd.DataFrame:
    """Return the plan's table with the spreads of the new sample where it has them."""
    spread = covered(trial.current, new, trial.settings.min_instances, jobs=trial.jobs).set_index("job")["std_new"]
    return table.assign(std=table["job"].map(spread).fillna(table["std"]))


def _accepted(estimate: Estimate | None, target_margin: float) -> bool:
    return estimate is not None and estimate.margin <= target_margin


def _row(number: int, size: int, target_margin: float, planned: float, estimate: Estimate | None) -> dict[str, float]:
    return {
        "round": number,
        "machines": size,
        "jobs": estimate.jobs if estimate else 0,
        "target_margin": target_margin,
        "planned_margin": planned,
        "margin": estimate.margin if estimate else np.nan,
        "change": estimate.change if estimate else np.nan,
        "quota_coverage": estimate.quota_coverage if estimate else 0.0,
        "accepted": _accepted(estimate, target_margin),
    }
