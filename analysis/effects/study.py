"""An experiment on a fleet as its tables tell it, and what an estimator concludes of it."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd

from analysis.effects import stages
from analysis.effects.cells import NEVER, JobMachineSums, StudyStays, numbered_stays, summed
from analysis.effects.covariates import covariates
from analysis.effects.crossovers import observed
from analysis.effects.estimand import Target
from analysis.effects.observations import Design, Observations, PeriodError, checked, numbered
from analysis.effects.stays import ObservedRows, fleet_of, places, ratio, scale_of
from analysis.effects.switching import FEW
from analysis.statistics import NotEnoughDataError, Statistic, student_quantile
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

Link = Literal["none", "own", "shard"]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The cells of an experiment, and which machines had the feature."""

    cells: JobMachineSums
    treated: Bools
    """(M,)"""
    design: Design
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        observations: pd.DataFrame | Observations,
        jobs: pd.DataFrame | None = None,
        link: Link = "shard",
        load: bool = True,
        *,
        staged: bool = False,
        target: Target = "instances",
    ) -> "Study":
        """Return the study that a table of observations tells of.

        Periods before anything had the feature are the past, from which covariates come; all others are the study. A
        machine that has the feature in some periods of the study only makes it a crossover: each instance is then its
        own control, less what its job's instances did in common at the same time. That is learnt from machines that
        never have it if they are as many at least (`switching`), else from those that switch (`crossovers`).

        Parameters
        ----------
        observations : one row per instance's stay and period: period (sortable), job, machine, weight (CPU quota),
            value (performance), treated (0 or 1), and perhaps instance, shard, rack, present_s, cpu_s, exposure; or
            the same, checked
        jobs : job, quota of the whole fleet; without it a job weighs as its rows do
        link : own: an instance is compared with itself before, where it was on the same machine; shard: otherwise with
            whatever served its shard
        load : whether to adjust for how much the machine's residents are used to compute
        staged : whether machines got the feature in waves; the study then has its sums by stage
        target : what is estimated; of staged roll-outs and crossovers it is the mean over instances

        Raises
        ------
        ValueError
            If a column or an identifier is missing, a number makes no sense, a job is there twice or not among the
            fleet's, or a machine has the feature only for part of a period.
        NotEnoughDataError
            If nothing has the feature, or nothing is without it.
        """
        coded = observations if isinstance(observations, Observations) else checked(observations)
        if target != "instances" and (staged or coded.switching.any()):
            raise InputError(
                f"target {target} is estimated where machines keep the feature from one time on; in a "
                f"{'staged' if staged else coded.design} study it is the mean over instances"
            )
        if staged:
            return cls._staged(coded, jobs, link=link, load=load)
        for arm, what in ((coded.treated, "with the feature"), (~coded.treated, "without the feature")):
            if not arm.any():
                raise NotEnoughDataError(1, 0, f"observations {what}")
        if coded.switching.any():
            return cls._crossover(coded, jobs)
        racks, platforms = coded.of_machines("rack"), coded.of_machines("platform")
        how = _Known(jobs, racks, link, load, target)
        whole = summed(_study_stays(how, *ObservedRows.of(coded)[0].split(coded.study)))
        machines = np.unique(coded.machine[coded.study])
        platform = None if platforms is None else _codes(platforms.iloc[machines])
        return cls(replace(whole, target=target, platform=platform), coded.ever[machines], "concurrent")

    @classmethod
    def _crossover(cls, coded: Observations, jobs: pd.DataFrame | None) -> "Study":
        try:
            whole = observed(coded, jobs)
        except NotEnoughDataError:
            if coded.treated[coded.period == 0].all():
                losing = int(coded.switching.sum())
                after = f", and {losing:,} are without it later: is `treated` the wrong way round?"
                raise PeriodError("every machine has the feature", coded.periods[0], after) from None
            raise
        return cls(whole, np.ones(len(whole.machines), dtype=np.bool_), "crossover")

    @classmethod
    def _staged(cls, coded: Observations, jobs: pd.DataFrame | None, *, link: Link, load: bool) -> "Study":
        rollout = stages.observed(coded, jobs, link=link, load=load)
        whole = summed(rollout.stays)
        since = rollout.stages.since
        treated = np.zeros(len(whole.machines), dtype=np.bool_) if since is None else since < NEVER
        names = ", ".join(map(str, rollout.dropped))
        notes = (f"periods without a machine that lacks the feature were left out: {names}",) if names else ()
        return cls(replace(whole, stages=rollout.stages), treated, "staged", notes)


def potential(
    before: pd.DataFrame,
    off: pd.DataFrame,
    on: pd.DataFrame,
    jobs: pd.DataFrame | None = None,
    *,
    link: Link = "shard",
    load: bool = True,
    target: Target = "instances",
) -> JobMachineSums:
    """Return the cells of a fleet whose course without the feature and with it are both known, to draw studies from.

    Parameters
    ----------
    before : observations of the past; none has the feature
    off, on : observations of the study without and with the feature, of the same stays
    jobs, link, load, target : as in `Study.of`

    Raises
    ------
    ValueError
        As in `Study.of`.

    Examples
    --------
    >>> past = pd.DataFrame({"period": 0, "job": "a", "machine": [1, 2], "weight": 1.0, "value": 2.0, "treated": 0})
    >>> now = past.assign(period=1)
    >>> potential(past, now, now.assign(value=3.0)).y
    array([[1. , 1.5],
           [1. , 1.5]])
    """
    past, without, with_it = (checked(table) for table in (before, off, on))
    how = _Known(jobs, without.of_machines("rack"), link, load, target)
    return replace(summed(_study_stays(how, *ObservedRows.of(past, without, with_it))), target=target)


def course(rows: ObservedRows, told: ObservedRows, scale: Floats) -> Floats:
    """Return by how much each row's job was above or below its mean in the row's period, (N,); 0 if nothing tells it.

    What all instances of a job do together is no effect of the feature, but would look like one where instances were
    there at different times. A job of few instances shows its course badly, so it counts for less.

    Parameters
    ----------
    rows : of which it is wanted
    told : rows without the feature, which tell it, numbered together with the others
    scale : of each job by number
    """
    count = len(told)
    if not count or (told.period == told.period[0]).all():
        return np.zeros(len(rows))
    number, first = numbered([np.append(told.job, rows.job), np.append(told.period, rows.period)])
    cell, job = number[:count], told.job[first[first < count]]
    time = np.bincount(cell, told.present)
    deviation = np.bincount(cell, told.present * told.value) / time / scale[job] - 1.0
    mean = ratio(np.bincount(job, time * deviation), np.bincount(job, time))[job]
    instances = time / told.present.max()
    own = (deviation - mean) * instances / (instances + FEW)
    return np.nan_to_num(np.append(own, 0.0)[np.minimum(number[count:], len(own))])


def _without(rows: ObservedRows, told: ObservedRows, scale: Floats) -> ObservedRows:
    """Return rows less the course of their jobs."""
    return replace(rows, value=rows.value / (1.0 + course(rows, told, scale)))


def _codes(values: "pd.Series[str]") -> Ints:
    return pd.factorize(values, sort=True)[0].astype(np.int64)


class _Known(NamedTuple):
    """What is known of a fleet beside its observations, and what is wanted of them, as in `Study.of`."""

    jobs: pd.DataFrame | None
    racks: pd.Series | None
    """By machine."""
    link: Link
    load: bool
    target: Target


def _study_stays(
    known: _Known, before: ObservedRows, study: ObservedRows, having: ObservedRows | None = None
) -> StudyStays:
    """Return the stays of a study that were observed in an arm, or in both if both courses are known.

    Parameters
    ----------
    known : of the fleet
    before : numbered together with the study
    study, having : the study as it was observed; or its course without the feature, and that with it
    """
    jobs, racks, link, load, target = known
    fleet = fleet_of(before, study, jobs, target)
    place, scale = places(fleet, study.jobs), scale_of(fleet, study.jobs)
    told = study.controls if having is None else study
    level = np.full(len(fleet), np.nan)
    level[place[place >= 0]] = _mean_levels(before if len(before) else told)[place >= 0]
    past, now = _without(before, before, scale), _without(study, told, scale)
    if having is None:
        arms, measured = _one_arm(study, now.level), _one_arm(study, study.level)
    else:
        arms, measured = _both_arms(now, _without(having, told, scale)), _both_arms(study, having)
    whole = np.flatnonzero(np.isfinite(arms).any(axis=1))
    presence, x = study.counting(target)[whole], covariates(past, now, scale, link=link, load=load)[whole]
    stays = numbered_stays(study, study.first[whole], fleet, presence, arms[whole], measured=measured[whole], x=x)
    return stays._replace(
        before=_quota_before(past)[np.unique(study.machine[study.first[whole]])],
        racks=None if racks is None else racks.reindex(stays.machines),
        level=level,
    )


def _one_arm(study: ObservedRows, level: Floats) -> Floats:
    """Return the stays' levels without and with the feature, (S, 2); NaN in the arm that they were not in."""
    having = study.treated[study.first]
    return np.stack([np.where(having, np.nan, level), np.where(having, level, np.nan)], axis=1)


def _both_arms(off: ObservedRows, on: ObservedRows) -> Floats:
    """Return the stays' levels without and with the feature, (S, 2); NaN of those that are in one course only."""
    of_on = np.full(1 + max(int(rows.stay.max(initial=0)) for rows in (off, on)), np.nan)
    of_on[on.stay[on.first]] = on.level
    level = of_on[off.stay[off.first]]
    return np.stack([np.where(np.isnan(level), np.nan, off.level), level], axis=1)


def _quota_before(past: ObservedRows) -> Floats:
    """Return sums over each machine's stays of quota times level, and of quota; (M, 2)."""
    machine, quota = past.machine[past.first], past.weight[past.first] * past.presence
    sums = [np.bincount(machine, amount, len(past.machines)) for amount in (quota * past.level, quota)]
    return np.stack(sums, axis=1, dtype=np.float64)


def _mean_levels(rows: ObservedRows) -> Floats:
    """Return the mean over each job's stays as they were measured, each alike; (J,)."""
    job, count = rows.job[rows.first], len(rows.jobs)
    return ratio(np.bincount(job, rows.level, count), np.bincount(job, minlength=count))


Need = Literal["platform", "stages", "pairs", "balancing"]
"""What an estimator has to know of how machines were drawn, beside who had the feature when."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A relative change of the fleet's performance, with its interval."""

    estimator: str
    design: str
    """concurrent, crossover, staged or before."""
    machines: int
    """Machines with the feature."""
    controls: int
    """Machines without it, at the same time."""
    change: float
    low: float
    high: float
    margin: float
    """Half-width of the interval."""
    error: float
    """Standard error."""
    freedom: float
    """Degrees of freedom of Student's t."""
    jobs: int
    """Jobs seen with the feature."""
    quota_coverage: float
    """Share of the fleet's CPU quota that they hold."""
    notes: tuple[str, ...] = ()


class Answers(NamedTuple):
    """What an estimator says of R draws; (R,) arrays."""

    change: Floats
    error: Floats
    freedom: Floats

    def margin(self, confidence: float = 0.95) -> Floats:
        """Return half-widths of Student's intervals.

        Examples
        --------
        >>> Answers(np.zeros(1), np.ones(1), np.full(1, 1e9)).margin().round(3)
        array([1.96])
        """
        return half_width(self.error, self.freedom, confidence)


class EffectMethod(Protocol):
    """What every estimator offers."""

    designs: ClassVar[frozenset[Design]]
    """The designs that it is for."""
    needs: ClassVar[tuple[Need, ...]]
    """What it has to know of how machines were drawn."""

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws of machines; `treated` is (R, M)."""

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""


def half_width(error: Floats, freedom: Floats, confidence: float = 0.95) -> Floats:
    """Return half-widths of intervals of Student's t.

    Parameters
    ----------
    error, freedom : arrays of one shape
    confidence : 0..1
    """
    return np.asarray(student_quantile(0.5 + confidence / 2, freedom) * error)


def concluded(method: EffectMethod, study: Study, confidence: float = 0.95) -> Effect:
    """Return what a method says of one experiment, as its only draw.

    Parameters
    ----------
    method : an estimator
    study : the experiment
    confidence : of the interval, 0..1
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence}")
    answers = method.many(study.cells, study.treated[None, :])
    machines, controls = _arms(study)
    change, error, freedom = (float(numbers[0]) for numbers in answers)
    if not (np.isfinite(change) and np.isfinite(error)):
        if machines < 2:
            raise NotEnoughDataError(2, machines, "machines with the feature")
        if controls < 2 and not study.cells.known:
            raise NotEnoughDataError(2, controls, "machines without the feature while others have it")
        if not study.cells.known and not _common_jobs(study):
            remedy = "give a job the same name in both arms (--column job=…)"
            raise NotEnoughDataError(1, 0, "jobs with machines in both arms", remedy)
        raise NotEnoughDataError(
            2, 0, f"machines in each arm of jobs that {method.name} can compare in a {study.design} study"
        )
    margin = float(half_width(np.array(error), np.array(freedom), confidence))
    return said(method.name, study, Statistic(change, change - margin, change + margin), error, freedom)


def said(estimator: str, study: Study, answer: Statistic, error: float = math.nan, freedom: float = math.nan) -> Effect:
    """Return an estimator's answer with what it is about.

    Parameters
    ----------
    estimator : its name
    study : the experiment
    answer : the relative change and the ends of its interval
    error, freedom : standard error and degrees of freedom, where the interval is of Student's t
    """
    machines, controls = _arms(study)
    chosen = np.repeat(study.treated, np.diff(study.cells.start))
    with_it = np.unique(study.cells.job[chosen])
    return Effect(
        estimator=estimator,
        design=study.design,
        machines=machines,
        controls=controls,
        change=answer.value,
        low=answer.low,
        high=answer.high,
        margin=(answer.high - answer.low) / 2,
        error=error,
        freedom=freedom,
        jobs=len(with_it),
        quota_coverage=float(study.cells.share[with_it].sum()),
        notes=study.notes,
    )


def _common_jobs(study: Study) -> int:
    """Return how many jobs machines with the feature and machines without it have."""
    has = np.repeat(study.treated, np.diff(study.cells.start))
    return len(np.intersect1d(study.cells.job[has], study.cells.job[~has]))


def _arms(study: Study) -> tuple[int, int]:
    """Return how many machines have the feature, and how many without it are beside them."""
    controls = int((~study.treated).sum())
    if study.cells.switched is not None:
        controls = len(np.unique(study.cells.switched.beside.machine))
    return int(study.treated.sum()), controls
