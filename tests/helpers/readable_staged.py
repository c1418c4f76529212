"""The readable twin of `analysis.effects.estimators.staged`: the change of one roll-out, from rows, by numpy alone."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.covariates import covariates
from analysis.effects.observations import Observations, checked
from analysis.effects.per_job import between
from analysis.effects.stays import ObservedRows, scale_of
from analysis.effects.study import Effect, Link, half_width
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""
_RIDGE = 1e-9
_TINY = 1e-12


def staged(
    observations: pd.DataFrame,
    jobs: pd.DataFrame | None = None,
    *,
    confidence: float = 0.95,
    link: Link = "shard",
    load: bool = True,
) -> Effect:
    """Return the change that a feature makes to the fleet, from machines that got it one wave after another.

    Each instance is compared, period by period, with its job's instances on machines that have not got the feature yet
    (Callaway and Sant'Anna 2021, section 2, with not-yet-treated controls), after adjustment for what was known of it
    before the first wave. So a job's course over time drops out, whatever it is. A job's periods count by
    how well both arms are seen in them, which is efficient if its relative effect is the same in all. Jobs weigh by
    their full quota; those seen too little, or never, are shrunk towards the others. The variance is clustered by
    machine over all periods, so a machine is one cluster, before its wave and after.

    Parameters
    ----------
    observations : as `Study.of` takes them; a machine that has the feature keeps it
    jobs : job, quota of the whole fleet; without it a job weighs as its rows of the study do
    confidence : of the interval, 0..1
    link, load : as in `Study.of`

    Raises
    ------
    ValueError
        If a column is missing, a value makes no sense, or a machine loses the feature again.
    NotEnoughDataError
        If fewer than two machines get the feature, or fewer than two are there without it while others have it, or no
        job is seen in both states in one period.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence}")
    table = checked(observations).rows
    _never_back(table)
    if not table["treated"].any():
        raise NotEnoughDataError(2, 0, "machines with the feature")
    past = table["period"] < table.loc[table["treated"], "period"].min()
    both = table[~past].groupby("period")["treated"].nunique()
    dropped = both.index[both < 2].tolist()
    study = table[~past & ~table["period"].isin(dropped)]
    _enough(study)
    fleet = _fleet(table[~past], table[past], jobs)
    rows = _rows(study, table[past], fleet, link=link, load=load)
    found = _estimated(rows, fleet)
    margin = float(half_width(np.array(found.error), np.array(found.freedom), confidence))
    seen = np.unique(rows.job[rows.treated])
    return Effect(
        estimator="staged",
        design="staged",
        machines=study.loc[study["treated"], "machine"].nunique(),
        controls=study.loc[~study["treated"], "machine"].nunique(),
        change=found.change,
        low=found.change - margin,
        high=found.change + margin,
        margin=margin,
        error=found.error,
        freedom=found.freedom,
        jobs=len(seen),
        quota_coverage=float(fleet.quota[seen].sum()),
        notes=_notes(dropped),
    )


def _notes(dropped: list[object]) -> tuple[str, ...]:
    if not dropped:
        return ()
    return (f"periods without a machine that lacks the feature were left out: {', '.join(map(str, dropped))}",)


class _Found(NamedTuple):
    change: float
    error: float
    freedom: float


@dataclass(frozen=True, slots=True, eq=False)
class _Fleet:
    """Jobs with their shares of the quota, and the performance that their values are relative to; (J,)."""

    jobs: pd.Index
    quota: Floats
    scale: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """One entry per stay and period: relative value, centred covariates, and places of job, period and machine."""

    value: Floats
    x: Floats
    job: Ints
    period: Ints
    machine: Ints
    treated: Bools
    presence: Floats
    """Time present relative to the longest in the period; rows count by it."""


def _never_back(table: pd.DataFrame) -> None:
    states = table.groupby(["machine", "period"])["treated"].first()
    again = (~states & states.groupby("machine").cummax()).to_numpy()
    if again.any():
        machine, period = states.index[int(np.argmax(again))]
        raise InputError(
            f"machine {machine} has lost the feature again in period {period}, which is no staged roll-out"
        )


def _enough(study: pd.DataFrame) -> None:
    for arm, what in ((True, "with the feature"), (False, "without it while others have it")):
        machines = study.loc[study["treated"] == arm, "machine"].nunique()
        if machines < 2:
            raise NotEnoughDataError(2, machines, f"machines {what}")


def _fleet(study: pd.DataFrame, past: pd.DataFrame, jobs: pd.DataFrame | None) -> _Fleet:
    quota: Floats
    if jobs is None:
        held = (study["weight"] * _presence(study)).groupby(study["job"]).sum()
        index, quota = pd.Index(held.index), np.asarray(held, dtype=np.float64)
    else:
        index, quota = pd.Index(jobs["job"]), jobs["quota"].to_numpy(dtype=np.float64)
    scale = pd.Series(np.nan, index=index, dtype=np.float64)
    for known in (past, study[~study["treated"]], study):
        scale = scale.fillna(known.groupby("job")["value"].mean())
    unknown = ~study["job"].isin(index).to_numpy()
    if unknown.any():
        raise InputError(f"job {study['job'].to_numpy()[unknown][0]} is not among the fleet's jobs")
    relative: Floats = np.nan_to_num(scale.to_numpy(dtype=np.float64), nan=1.0)
    return _Fleet(index, np.asarray(quota / quota.sum(), dtype=np.float64), relative)


def _rows(study: pd.DataFrame, past: pd.DataFrame, fleet: _Fleet, *, link: Link, load: bool) -> _Rows:
    """Return the rows of the study, with what was known of their stays before."""
    before, now = ObservedRows.of(Observations.of(past), Observations.of(study))
    scale = scale_of(pd.DataFrame({"job": fleet.jobs, "scale": fleet.scale}), now.jobs)
    x = covariates(before, now, scale, link=link, load=load)[now.place]
    job = fleet.jobs.get_indexer(pd.Index(study["job"])).astype(np.int64)
    presence = _presence(study)
    held = np.bincount(job, presence, len(fleet.jobs))[job]
    for k in range(x.shape[1]):
        x[:, k] -= np.bincount(job, presence * x[:, k], len(fleet.jobs))[job] / held
    return _Rows(
        value=study["value"].to_numpy(dtype=np.float64) / fleet.scale[job],
        x=x,
        job=job,
        period=pd.factorize(study["period"], sort=True)[0].astype(np.int64),
        machine=pd.factorize(study["machine"], sort=True)[0].astype(np.int64),
        treated=study["treated"].to_numpy(dtype=np.bool_),
        presence=presence,
    )


def _presence(table: pd.DataFrame) -> Floats:
    if "present_s" not in table:
        return np.ones(len(table))
    longest = table.groupby("period")["present_s"].transform("max")
    return np.asarray((table["present_s"] / longest).to_numpy(dtype=np.float64))


def _estimated(rows: _Rows, fleet: _Fleet) -> _Found:
    jobs = len(fleet.jobs)
    groups = _Groups.of(rows, jobs)
    if not groups.overlap.any():
        raise NotEnoughDataError(1, 0, "jobs seen with and without the feature in one period")
    effect, there = groups.effects()
    level = groups.level()
    coefficient = groups.coefficients(effect)
    residual = groups.residuals(effect)
    variance = _variances(rows, coefficient, residual, there)
    weight = fleet.quota * fleet.scale * level
    share = weight / weight.sum()
    within = max(between(effect[there], variance[there]), _TINY) if there.sum() > 1 else _TINY
    trust = np.where(there, within / (within + np.where(there, variance, 1.0)), 0.0)
    centre = share * trust / (share * trust).sum()
    gain = share * trust + (share * (1 - trust)).sum() * centre
    middle = float((centre * effect).sum())
    fitted = np.where(there, middle + trust * (effect - middle), 0.0)
    residual = groups.residuals(fitted) / groups.leverage()
    influence: Floats = np.bincount(rows.machine, gain[rows.job] * coefficient * residual).astype(np.float64)
    left = within * float(((gain - share) ** 2).sum())
    return _concluded(float((gain * effect).sum()), influence, left, rows)


def _concluded(change: float, influence: Floats, left: float, rows: _Rows) -> _Found:
    """Return the change with its clustered error, and the freedom of machines that ever get the feature and others."""
    ever = np.bincount(rows.machine, rows.treated) > 0
    parts, freedoms = [], []
    for arm in (ever, ~ever):
        machines = int(arm.sum())
        if machines > 1:
            parts.append(float((influence[arm] ** 2).sum()) * machines / (machines - 1))
            freedoms.append(machines - 1.0)
        else:
            parts.append(float((influence[arm] ** 2).sum()))
            freedoms.append(1.0)
    total = sum(parts) + left
    shares = [part / total if total > 0 else 0.0 for part in parts]
    guessed = sum(share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True))
    freedom = max(1 / guessed, freedoms[0]) if guessed > 0 else freedoms[0]
    return _Found(change, float(np.sqrt(total)), float(freedom))


def _variances(rows: _Rows, coefficient: Floats, residual: Floats, there: Bools) -> Floats:
    """Return each job's variance, clustered by machine, drawn towards what all jobs show; (J,)."""
    jobs = len(there)
    inverse, pair = pd.factorize(rows.machine * jobs + rows.job)
    job = pair % jobs
    own = np.bincount(job, np.bincount(inverse, coefficient * residual) ** 2, jobs)
    unit = np.bincount(rows.job, coefficient**2, jobs)
    freedom = np.maximum(np.bincount(job, minlength=jobs) - 2.0, 0.0)
    pooled = own[there].sum() / unit[there].sum() if there.any() else 0.0
    ratio = np.divide(own, unit, out=np.zeros(jobs), where=unit > 0)
    return np.asarray(np.maximum((freedom * ratio + _PRIOR * pooled) / (freedom + _PRIOR) * unit, _TINY))


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Adjusted means of each job, period and arm: groups are numbered job × periods + period."""

    rows: _Rows
    jobs: int
    group: Ints
    """(N,)"""
    adjusted: Floats
    """(N,) values less what the covariates explain."""
    count: Floats
    """(J P, 2)"""
    mean: Floats
    """(J P, 2)"""
    overlap: Floats
    """(J P,) what a period counts for in its job's effect: N₁ N₀ / (N₁ + N₀)."""

    @classmethod
    def of(cls, rows: _Rows, jobs: int) -> "_Groups":
        periods = int(rows.period.max()) + 1
        group = rows.job * periods + rows.period
        armed, size = group * 2 + rows.treated, jobs * periods * 2
        count = np.bincount(armed, rows.presence, size)
        held = np.where(count > 0, count, 1.0)

        def means(value: Floats) -> Floats:
            return np.asarray(np.bincount(armed, rows.presence * value, size) / held)

        x = np.stack([value - means(value)[armed] for value in [*rows.x.T, rows.value]], axis=1)
        squares = (x * rows.presence[:, None]).T @ x
        xx = squares[:-1, :-1]
        xx[np.diag_indices(len(xx))] += _RIDGE * np.diag(xx) + _TINY
        adjusted = rows.value - rows.x @ np.linalg.solve(xx, squares[:-1, -1])
        both: Floats = count.astype(np.float64).reshape(-1, 2)
        overlap = both.prod(axis=1) / held.reshape(-1, 2).sum(axis=1)
        return cls(rows, jobs, group, adjusted, both, means(adjusted).reshape(-1, 2), overlap)

    def by_job(self, value: Floats) -> Floats:
        return np.asarray(value.reshape(self.jobs, -1).sum(axis=1))

    def effects(self) -> tuple[Floats, Bools]:
        """Return each job's relative effect, 0 where it was not seen in both states, and which were; (J,)."""
        below = self.by_job(self.overlap * self.mean[:, 0])
        there = self.by_job(self.overlap) > 0
        above = self.by_job(self.overlap * (self.mean[:, 1] - self.mean[:, 0]))
        return np.divide(above, below, out=np.zeros(self.jobs), where=there), there

    def level(self) -> Floats:
        """Return each job's mean over periods without the feature; 1 where it was never seen so; (J,)."""
        seen = self.count[:, 0] > 0
        periods = self.by_job(seen.astype(np.float64))
        return np.divide(self.by_job(self.mean[:, 0] * seen), periods, out=np.ones(self.jobs), where=periods > 0)

    def coefficients(self, effect: Floats) -> Floats:
        """Return how much each row moves its job's effect; (N,)."""
        arm = self.rows.treated.astype(np.int64)
        below = self.by_job(self.overlap * self.mean[:, 0])[self.rows.job]
        sign = np.where(self.rows.treated, 1.0, -(1 + effect[self.rows.job]))
        part = self.rows.presence * self.overlap[self.group] * sign / self.count[self.group, arm]
        return np.divide(part, below, out=np.zeros(len(part)), where=below > 0)

    def residuals(self, effect: Floats) -> Floats:
        """Return what is left of each row without its job's course, times the effect where treated; (N,)."""
        factor = np.where(self.rows.treated, 1 + effect[self.rows.job], 1.0)
        return np.asarray(self.adjusted - self.mean[self.group, 0] * factor)

    def leverage(self) -> Floats:
        """Return by what to divide each row's residual, because its own machine drew the fit to itself; (N,).

        As if each machine were left out of its job in turn (jackknife; Bell and McCaffrey 2002).
        """
        rows, overlap = self.rows, self.overlap[self.group]
        arm = rows.treated.astype(np.int64)
        machines = int(rows.machine.max()) + 1
        inverse = pd.factorize((self.group * 2 + arm) * machines + rows.machine)[0]
        alike = np.bincount(inverse, rows.presence)[inverse] / self.count[self.group, arm]
        pair = pd.factorize(rows.job * machines + rows.machine)[0]
        held = np.bincount(pair, rows.treated * rows.presence * overlap / self.count[self.group, arm])[pair]
        whole = np.maximum(self.by_job(self.overlap)[rows.job], _TINY)
        share = np.where(rows.treated, held / whole, alike)
        return np.asarray(np.maximum(1 - share, 1 / (1 + np.maximum(self.count[self.group, arm], 1))))
