"""An experiment on a fleet as its tables tell it, and what an estimator concludes of it."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd

from analysis.effects import stages
from analysis.effects.cells import NEVER, JobMachineSums, cells, covariates
from analysis.effects.crossovers import observed
from analysis.effects.estimand import Target
from analysis.effects.observations import (
    Design,
    Observations,
    PeriodError,
    checked,
    counting,
    fleet_of,
    identity,
    numbered,
    scale_of,
    stays,
)
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
        study, before = coded.rows[coded.study], coded.rows[~coded.study]
        fleet, racks, switching = fleet_of(before, study, jobs, target), coded.of_machines("rack"), coded.switching
        if switching.any():
            enough = (coded.never & ~coded.ever).sum() >= switching.sum()
            try:
                whole = observed(study, fleet, racks, coded.machines[switching] if enough else None)
            except NotEnoughDataError:
                if coded.treated[coded.period == 0].all():
                    losing = int(coded.switching.sum())
                    after = f", and {losing:,} are without it later: is `treated` the wrong way round?"
                    raise PeriodError("every machine has the feature", coded.periods[0], after) from None
                raise
            return cls(whole, np.ones(len(whole.machines), dtype=np.bool_), "crossover")
        measured, level = stays(study)["value"], _level(before if len(before) else study[~study["treated"]])
        study = _without(study, course(study[~study["treated"]], fleet))
        before = _without(before, course(before, fleet))
        rows = stays(study).assign(presence=counting(study, target))
        having = rows["treated"]
        arms = {"off": rows["value"].where(~having), "on": rows["value"].where(having)}
        arms |= {"measured_off": measured.where(~having), "measured_on": measured.where(having)}
        whole = _cells(rows.assign(**arms), study, before, fleet, racks=racks, level=level, link=link, load=load)
        whole = replace(whole, target=target)
        treated = rows.groupby("machine")["treated"].any().reindex(whole.machines).to_numpy(dtype=np.bool_)
        platforms = coded.of_machines("platform")
        platform = None if platforms is None else _codes(platforms.reindex(whole.machines))
        return cls(replace(whole, platform=platform), treated, "concurrent")

    @classmethod
    def _staged(cls, coded: Observations, jobs: pd.DataFrame | None, *, link: Link, load: bool) -> "Study":
        rollout = stages.observed(coded, jobs, link=link, load=load)
        whole = cells(rollout.rows, rollout.jobs)
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
    before, off, on, racks = past.rows, without.rows, with_it.rows, without.of_machines("rack")
    fleet = fleet_of(before, off, jobs, target)
    level = _level(before if len(before) else off)
    measured = [stays(table)["value"] for table in (off, on)]
    common = course(off, fleet)
    before, off, on = _without(before, course(before, fleet)), _without(off, common), _without(on, common)
    rows, keys = stays(off).assign(measured_off=measured[0], presence=counting(off, target)), identity(off)
    levels_on = stays(on).assign(measured_on=measured[1])[[*keys, "value", "measured_on"]]
    both = rows.rename(columns={"value": "off"}).merge(levels_on.rename(columns={"value": "on"}), on=keys)
    rows = both.assign(value=both["off"])
    return replace(
        _cells(rows, off, before, fleet, racks=racks, level=level, link=link, load=load),
        target=target,
    )


def course(table: pd.DataFrame, fleet: pd.DataFrame) -> pd.Series:
    """Return by how much each job's instances were above or below its mean in each period, by job and period.

    What all instances of a job do together is no effect of the feature, but would look like one where instances were
    there at different times. A job of few instances shows its course badly, so it counts for less.

    Parameters
    ----------
    table : observations without the feature
    fleet : job, scale
    """
    if not len(table) or (table["period"] == table["period"].iloc[0]).all():
        return pd.Series(dtype=np.float64)
    keys = ["job", "period"]
    present = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    place, first = numbered([table[name] for name in keys])
    time = np.bincount(place, present)
    job, jobs = pd.factorize(table["job"].iloc[first])
    scale = scale_of(fleet).reindex(jobs).to_numpy()[job]
    deviation = np.bincount(place, present * table["value"].to_numpy(dtype=np.float64)) / time / scale - 1.0
    mean = np.bincount(job, time * deviation) / np.bincount(job, time)
    instances = time / present.max()
    own = (deviation - mean[job]) * instances / (instances + FEW)
    return pd.Series(own, index=pd.MultiIndex.from_frame(table[keys].iloc[first]))


def _codes(values: "pd.Series[str]") -> Ints:
    return pd.factorize(values, sort=True)[0].astype(np.int64)


def _without(table: pd.DataFrame, common: pd.Series) -> pd.DataFrame:
    """Return observations less the course of their jobs."""
    if common.empty:
        return table
    of_rows = common.reindex(pd.MultiIndex.from_frame(table[["job", "period"]])).fillna(0.0).to_numpy()
    return table.assign(value=table["value"] / (1.0 + of_rows))


def _cells(
    rows: pd.DataFrame,
    study: pd.DataFrame,
    past: pd.DataFrame,
    fleet: pd.DataFrame,
    *,
    racks: pd.Series | None,
    level: "pd.Series[float]",
    link: Link,
    load: bool,
) -> JobMachineSums:
    before = stays(past) if len(past) else past
    known = covariates(rows, before, study, past, fleet, link=link, load=load)
    whole = pd.concat([rows.rename(columns={"weight": "quota"}), known], axis=1)
    return cells(whole, fleet, _before(before), racks, level)


def _level(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean over each job's stays as they were measured, each alike."""
    mean: pd.Series[float] = stays(table).groupby("job")["value"].mean()
    return mean


def _before(before: pd.DataFrame) -> pd.DataFrame | None:
    if before.empty:
        return None
    quota = before["weight"] * before["presence"]
    return before.assign(value=quota * before["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()


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
