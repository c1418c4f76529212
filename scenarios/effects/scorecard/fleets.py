"""Fleets whose every course is known: each machine without the feature, with it, and switching it on and off.

Instances, noise and churn are the same in all courses (`sim.fleet.arms`), so the tables of two arms have the same
stays and an experiment on any machines can be put together from their rows. That is exact as far as machines do not
disturb each other; machines of a power domain share its budget, and `simulated` says what they do when just some have
the feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from models.arrays import DAY_S, Bools, Floats, Ints
from scenarios.effects.scorecard import corners
from sim.fleet.arms import Arm, crossover, everywhere, nowhere, on_machines, run_arm
from sim.fleet.control import plan_crossover
from sim.fleet.day import Day, prepare
from sim.fleet.slots import CPU_S, CYCLES, INSTRUCTIONS

STUDY = 7
"""The day from which the feature may act; those before are the past."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Observations of a fleet before a study, and in it without and with the feature everywhere.

    Columns of all tables, one row per stay and period: period, job, machine, rack, instance, shard, weight (CPU quota,
    hardware threads), value (instructions per CPU second), treated, present_s, cpu_s. `off` and `on` hold the same
    stays and periods row by row.
    """

    before: pd.DataFrame
    off: pd.DataFrame
    on: pd.DataFrame
    truth: float
    """Relative change of the whole fleet."""

    def observed(self, treated: Bools) -> pd.DataFrame:
        """Return what would be seen if these machines had the feature in the study: past and study together.

        Parameters
        ----------
        treated : (M,) array
        """
        with_it = treated[self.off["machine"].to_numpy()]
        rows = self.off.assign(
            **{
                name: np.where(with_it, self.on[name].to_numpy(), self.off[name].to_numpy())
                for name in ("value", "treated", "cpu_s")
                if name in self.off
            }
        )
        return pd.concat([self.before, rows], ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class Switching:
    """Observations of a day in which machines switch the feature on and off: of one that never does, then off, then on.

    All three hold the same stays and periods row by row, without the first part of each period, in which the state
    before still acts or the new one settles (carry-over). Off and on are each really simulated after the other.
    """

    never: pd.DataFrame
    off: pd.DataFrame
    on: pd.DataFrame
    truth: float
    """Relative change of the whole fleet over these periods."""


@dataclass(frozen=True, slots=True, eq=False)
class ScorecardFleet:
    """A fleet of a corner of the sweep: its jobs, potential outcomes over two spans, and of switching."""

    corner: str
    seed: int
    machines: int
    jobs: pd.DataFrame
    """job, quota (hardware threads, of the whole job), instances."""
    day: Span
    """The day before, and a day."""
    week: Span
    """The week before, and a week, day by day."""
    switching: Switching | None = None
    """None of a feature that cannot be switched off."""
    platform: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(M,) number of each machine's platform before the feature."""
    one_job: "OneJob | None" = None
    """What new code of one job alone does on the day."""


@dataclass(frozen=True, slots=True, eq=False)
class OneJob:
    """The job with most quota, which alone has new code: its observations with it, and its relative change."""

    job: int
    on: pd.DataFrame
    truth: float


def fleet(
    corner: str, seed: int, machines: int = 1000, *, switching: bool = True, one_job: bool = False
) -> ScorecardFleet:
    """Return the fleet of a corner and a seed; the same for any number of threads.

    Parameters
    ----------
    corner : a name in `scenarios.effects.scorecard.corners.CORNERS`
    seed : of all random draws
    machines : of the fleet, times those of the corner
    switching : whether to simulate machines that switch the feature on and off, if that can be
    one_job : whether to simulate new code of one job besides
    """
    where = corners.corner(corner)
    world = corners.world(where, seed, machines)
    day = prepare(world)
    off, on = _courses(day, (nowhere(day), on_machines(day, np.arange(day.machines.count), _study(day))))
    on["treated"] = on["period"] >= STUDY
    jobs = pd.DataFrame(
        {"job": np.arange(day.jobs.count), "quota": day.jobs.quota_vcpu, "instances": day.jobs.instances}
    )
    one_day, week = (_span(off, on, jobs, days) for days in (1, STUDY))
    whole = ScorecardFleet(corner, seed, day.machines.count, jobs, one_day, week, platform=day.machines.platform)
    if one_job:
        whole = replace(whole, one_job=_one_job(day, one_day.off, jobs))
    if where.change == "platform" or not switching:
        return whole
    return replace(whole, switching=switched(prepare(corners.crossover(world)), jobs))


def simulated(day: Day, treated: Ints) -> pd.DataFrame:
    """Return what is seen if just these machines get the feature when the study begins: past and study together.

    Parameters
    ----------
    day : of a world of `scenarios.effects.scorecard.corners`
    treated : numbers of machines
    """
    (course,) = _courses(day, (on_machines(day, treated, _study(day)),))
    course["treated"] = (course["period"] >= STUDY) & course["machine"].isin(treated)
    return course


def switched(day: Day, jobs: pd.DataFrame) -> Switching:
    """Return what machines do that never have the feature, and that switch it off and on.

    Two schedules that mirror each other are simulated, so that every machine is off and on in each period of one.

    Parameters
    ----------
    day : of a world of `corners.crossover`
    jobs : job, quota
    """
    settled = np.array([window.name.startswith("rest") for window in day.world.windows])[day.row_window]
    arms = nowhere(day), everywhere(day), crossover(day, 0), crossover(day, 1)
    tables = _tables(day, [_sums(day, arm) for arm in arms], settled)
    never, always, first, mirrored = (table.assign(period=table["period"] // 2) for table in tables)
    having = plan_crossover(day.world, day.machines, 0)[never["machine"].to_numpy(), never["period"].to_numpy()]
    off, on = either(~having, first, mirrored), either(having, first, mirrored)
    return Switching(never, off, on, change(never, always, jobs))


def either(which: Bools, first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return one table's values and CPU times in these rows, the other's in all others.

    Parameters
    ----------
    which : (N,) rows of the first
    first, second : of the same stays and periods, row by row
    """
    return first.assign(**{name: np.where(which, first[name], second[name]) for name in ("value", "cpu_s")})


def change(off: pd.DataFrame, on: pd.DataFrame, jobs: pd.DataFrame) -> float:
    """Return the change of the quota-weighted mean over all jobs of a fleet that were seen.

    A stay's value is that of all its periods together, by CPU time; a job's is the mean of its stays, by presence.

    Parameters
    ----------
    off, on : observations without and with the feature
    jobs : job, quota
    """
    before, after = (_job_means(table, len(jobs)) for table in (off, on))
    known = np.isfinite(before) & np.isfinite(after)
    quota = jobs["quota"].to_numpy(dtype=np.float64)[known]
    return float((quota * after[known]).sum() / (quota * before[known]).sum() - 1)


def _job_means(table: pd.DataFrame, jobs: int) -> Floats:
    """Return the mean performance of each job, NaN where no stay was seen."""
    key = table["instance"].to_numpy(dtype=np.int64) * (int(table["machine"].max()) + 1) + table["machine"].to_numpy()
    _, first, stay = np.unique(key, return_index=True, return_inverse=True)
    cpu_s = table["cpu_s"].to_numpy()
    value = np.bincount(stay, cpu_s * table["value"].to_numpy()) / np.bincount(stay, cpu_s)
    present_s, job = np.bincount(stay, table["present_s"]), table["job"].to_numpy()[first]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(job, present_s * value, jobs) / np.bincount(job, present_s, jobs))


def _study(day: Day) -> int:
    """Return the first epoch of the study."""
    return round(STUDY * DAY_S / day.world.epoch_s)


def _span(off: pd.DataFrame, on: pd.DataFrame, jobs: pd.DataFrame, days: int) -> Span:
    """Return the span of so many days before the study and of it."""
    period = off["period"].to_numpy()
    study = (period >= STUDY) & (period < STUDY + days)
    before = (period >= STUDY - days) & (period < STUDY)
    without, having = off[study].reset_index(drop=True), on[study].reset_index(drop=True)
    return Span(off[before].reset_index(drop=True), without, having, change(without, having, jobs))


def _one_job(day: Day, off: pd.DataFrame, jobs: pd.DataFrame) -> OneJob:
    """Return what new code of the job with most quota does on the first day of the study."""
    job = int(jobs["quota"].to_numpy().argmax())
    rebuilt = replace(day, world=corners.rebuilt(day.world, day.jobs.names[job]))
    arm = nowhere(day)
    arm.stay_from[day.timeline.job == job] = _study(day)
    stay = np.repeat(day.order, np.diff(day.row_start))
    instructions, cpu_s = _sums(rebuilt, arm)
    chosen = (day.timeline.job[stay] == job) & (day.row_window == STUDY) & (cpu_s > 0) & (instructions > 0)
    value = {"value": instructions[chosen] / cpu_s[chosen], "cpu_s": cpu_s[chosen]}
    on = pd.DataFrame(_places(day, chosen) | value).assign(treated=True)
    without = off[off["job"] == job]
    return OneJob(job, on, change(without, on, jobs))


def _courses(day: Day, arms: Sequence[Arm]) -> list[pd.DataFrame]:
    """Return the observations of each arm, all untreated."""
    return _tables(day, [_sums(day, arm) for arm in arms], np.ones(len(day.row_window), dtype=np.bool_))


def _tables(day: Day, sums: Sequence[tuple[Floats, Floats]], wanted: Bools) -> list[pd.DataFrame]:
    """Return the observations of each arm in some rows; those in which some arm did nothing are in none."""
    worked = np.all([wanted, *((cpu_s > 0) & (instructions > 0) for instructions, cpu_s in sums)], axis=0)
    shared = _places(day, worked)
    return [
        pd.DataFrame(shared | {"value": instructions[worked] / cpu_s[worked], "cpu_s": cpu_s[worked]})
        for instructions, cpu_s in sums
    ]


def _sums(day: Day, arm: Arm) -> tuple[Floats, Floats]:
    """Return instructions and CPU seconds of each stay and window."""
    rows = [block.rows[:, [INSTRUCTIONS - CYCLES, CPU_S - CYCLES]] for block in run_arm(day, arm)]
    instructions, cpu_s = np.concatenate(rows).T
    return instructions, cpu_s


def _places(day: Day, chosen: Bools) -> dict[str, NDArray[Any]]:
    """Return the columns that all arms share, of the chosen rows: who, where, when, how long."""
    timeline, epoch_s = day.timeline, day.world.epoch_s
    stay = np.repeat(day.order, np.diff(day.row_start))[chosen]
    period = day.row_window[chosen]
    opens, closes = np.array([(round(w.start_s / epoch_s), round(w.end_s / epoch_s)) for w in day.world.windows]).T
    return {
        "period": period.astype(np.int16),
        "job": timeline.job[stay].astype(np.int32),
        "machine": timeline.machine[stay].astype(np.int32),
        "rack": day.machines.rack[timeline.machine[stay]].astype(np.int32),
        "instance": timeline.instance[stay].astype(np.int32),
        "shard": timeline.shard[stay].astype(np.int32),
        "weight": day.jobs.instance_quota_vcpu[timeline.job[stay]],
        "treated": np.zeros(stay.size, np.bool_),
        "present_s": day.present_s(stay, opens[period], closes[period]),
    }
