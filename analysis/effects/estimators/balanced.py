"""The error of an estimate from machines that were selected to balance, and the estimator that states it."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.linear_systems import slopes
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, EffectMethod, Need, Study, concluded
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError


class _Sums(NamedTuple):
    """Cells of machines and jobs, the products of covariates over all of them, and what jobs weigh."""

    start: Ints
    job: Ints
    instances: Floats
    y: Floats
    x: Floats
    xy: Floats
    xx: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class BalancedError:
    """Standard error of a difference between treated and control machines under a design that balances."""

    error: float
    """In the units of the estimate."""
    freedom: float
    """Degrees of freedom."""
    saved: float
    """Share of the variance under simple random selection that balancing removes; below 0 if it harms."""


@dataclass(frozen=True, slots=True, eq=False)
class Balanced:
    """An estimator whose error allows for machines having been selected so that they balance."""

    aux: Floats | None = None
    """(M, p) balancing variables in the order of the cells' machines, such as from `balance.balancing_variables`."""
    left: Floats | None = None
    """(p, p) from `imbalance` of selections by the same design."""
    base: EffectMethod = field(default_factory=Adjusted)
    """Whose change is taken; its error loses the share that balancing saves."""
    name: str = "balanced"
    """Its name in tables and on the command line."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ("balancing",)

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : of M machines
        treated : (R, M), selected by the design that balances
        """
        if self.aux is None or self.left is None:
            raise InputError(f"the estimator {self.name} needs the variables that machines were balanced on")
        if len(self.aux) != len(cells.machines):
            raise InputError(f"balancing variables are needed of {len(cells.machines)} machines, not {len(self.aux)}")
        if cells.known:
            raise InputError("a crossover has no contrast between machines: each is its own control")
        answers = self.base.many(cells, treated)
        influences = _influences(cells, treated, _covariates(self.base), np.nan_to_num(answers.change))
        saved = [
            balanced_error(influence_, draw, self.aux, self.left).saved
            for influence_, draw in zip(influences, treated, strict=True)
        ]
        return answers._replace(error=answers.error * np.sqrt(1 - np.array(saved)))

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def imbalance(aux: Floats, treated: Bools) -> Floats:
    """Return the mean square and product of differences of the balancing variables between arms over repeated draws.

    Parameters
    ----------
    aux : (M, p) array
    treated : (R, M) array of bool, selections drawn by the design that is used, such as by `selections`

    Returns
    -------
    (p, p) array
        In units of the variables squared; near 0 if the design balances them.
    """
    on = treated.sum(axis=1)
    off = treated.shape[1] - on
    if min(on.min(), off.min()) < 1:
        raise NotEnoughDataError(1, 0, "machines in either arm of every draw")
    share = treated @ aux
    difference = share / on[:, None] - (aux.sum(axis=0) - share) / off[:, None]
    moments: Floats = difference.T @ difference / len(treated)
    return moments


def balanced_error(
    influence: Floats, treated: Bools, aux: Floats, left: Floats, remainder: float = 0.0
) -> BalancedError:
    """Return the standard error of a difference between arms under a design that balances `aux`.

    What machines contribute to the estimate is regressed on the balancing variables, with one slope for both arms
    (any slope keeps the residual variance from being too small on average; that of many control machines costs the few
    treated ones no degree of freedom). Residuals have the variance that they have under random selection, without
    finite-population correction, since no machine shows both outcomes; of what is explained, that share is left which
    the design leaves of the variance of fitted values. The idea is that of Deville and Tillé (2005), for a contrast.

    Parameters
    ----------
    influence : (M,) array, what each machine adds to its arm's estimate about that arm's mean: the squares of an arm
        add up to the variance of its estimate (0 for machines without measurement)
    treated : (M,) array of bool
    aux : (M, p) array, balancing variables
    left : (p, p) array, from `imbalance`
    remainder : variance of the estimate that does not come from the choice of machines, such as jobs never seen
    """
    arms = (treated, ~treated)
    count = [int(arm.sum()) for arm in arms]
    if min(count) < 2:
        raise NotEnoughDataError(2, min(count), "machines in either arm")
    if len(treated) <= aux.shape[1] + 2:
        raise NotEnoughDataError(aux.shape[1] + 3, len(treated), "machines")
    contributions = influence * np.where(treated, *count)
    within = _centred(np.vstack([contributions, aux.T]), arms)
    slope, _, rank, _ = np.linalg.lstsq(within[1:].T, within[0])
    residual = within[0] - slope @ within[1:]
    machines = len(treated)
    random, rest = (_contrast_variance(values, arms) for values in (within[0], residual))
    rest *= (machines - 2) / (machines - 2 - rank)
    fitted = _contrast_variance(slope @ within[1:], arms)
    share_left = float(slope @ left @ slope) / fitted if fitted > 0 else 1.0
    variance = rest + share_left * (random - rest)
    saved = 1 - variance / random if random > 0 else 0.0
    return BalancedError(float(np.sqrt(variance + remainder)), count[0] - 1.0, float(saved))


def influence(cells: JobMachineSums, treated: Bools, covariates: int = 99, change: float = 0.0) -> Floats:
    """Return what each machine adds to the estimate of its arm: weighted residuals of its instances.

    Jobs weigh by their full quota, instances are adjusted for covariates within jobs and arms, and residuals are from
    the job's mean in the arm (post-stratification). Jobs that one arm lacks count for nothing. Of controls, `change`
    times the residual that is not adjusted is added, since the estimate is also divided by their level.

    Parameters
    ----------
    cells : of M machines
    treated : (M,) array of bool
    covariates : how many of them are used at most, in their order
    change : the fleet's relative change, as estimated

    Returns
    -------
    (M,) array, relative to the fleet's performance
    """
    (influence_of,) = _influences(cells, treated[None, :], covariates, np.array([change]))
    return np.asarray(influence_of)


def _influences(cells: JobMachineSums, treated: Bools, covariates: int, change: Floats) -> Floats:
    """Return the influences of machines in each of R draws, (R, M)."""
    used = min(covariates, cells.x.shape[1])
    sums = _Sums(
        cells.start,
        cells.job,
        cells.count,
        np.ascontiguousarray(cells.y),
        np.ascontiguousarray(cells.x[:, :used]),
        np.ascontiguousarray(cells.xy[:, :, :used]),
        np.ascontiguousarray(cells.xx[:, :used, :used].sum(axis=0)),
        cells.weight,
    )
    out = np.zeros(treated.shape)
    _all_influences(sums, np.array(treated, dtype=np.bool_, order="C"), change, out)
    return out


def _centred(values: Floats, arms: tuple[Bools, Bools]) -> Floats:
    """Return rows of values, one for each variable, less their arm's mean."""
    on, off = (values.compress(arm, axis=1).mean(axis=1, keepdims=True) for arm in arms)
    centred: Floats = values - np.where(arms[0], on, off)
    return centred


def _contrast_variance(values: Floats, arms: tuple[Bools, Bools]) -> float:
    """Return the variance of the difference of two arms' means (Neyman 1923), values being centred in each."""
    squares = [(values[arm] @ values[arm], int(arm.sum())) for arm in arms]
    return float(sum(square / (n * (n - 1)) for square, n in squares))


@njit(cache=True)
def _all_influences(sums: _Sums, treated: Bools, change: Floats, out: Floats) -> None:
    """Add to `out`, (R, M), what each machine adds to its arm in each draw."""
    jobs, covariates = sums.weight.size, sums.x.shape[1]
    for r in range(treated.shape[0]):
        count, y = np.zeros((jobs, 2)), np.zeros((jobs, 2))
        x, xy = np.zeros((jobs, 2, covariates)), np.zeros(covariates)
        for machine in range(treated.shape[1]):
            arm = 1 if treated[r, machine] else 0
            for c in range(sums.start[machine], sums.start[machine + 1]):
                count[sums.job[c], arm] += sums.instances[c]
                y[sums.job[c], arm] += sums.y[c, arm]
                for k in range(covariates):
                    x[sums.job[c], arm, k] += sums.x[c, k]
                    xy[k] += sums.xy[c, arm, k]
        slope = _slope(sums.xx.copy(), xy, count, x, y)
        weight, whole = np.zeros(jobs), 0.0
        for j in range(jobs):
            if count[j, 0] > 0.0 and count[j, 1] > 0.0:
                weight[j] = sums.weight[j]
                whole += weight[j]
        for j in range(jobs):
            weight[j] /= max(whole, 1e-300)
        for machine in range(treated.shape[1]):
            arm = 1 if treated[r, machine] else 0
            for c in range(sums.start[machine], sums.start[machine + 1]):
                j = sums.job[c]
                share = sums.instances[c] / count[j, arm]
                rest = (sums.y[c, arm] - share * y[j, arm]) * (1.0 if arm == 1 else 1.0 + change[r])
                for k in range(covariates):
                    rest -= slope[k] * (sums.x[c, k] - share * x[j, arm, k])
                out[r, machine] += weight[j] * rest / count[j, arm]


@njit(cache=False)
def _slope(xx: Floats, xy: Floats, count: Floats, x: Floats, y: Floats) -> Floats:
    """Return the slopes of instances on covariates within groups of job and arm, whose sums are `x` and `y`."""
    covariates = len(xy)
    for j in range(len(count)):
        for arm in range(2):
            if count[j, arm] <= 0.0:
                continue
            for k in range(covariates):
                xy[k] -= x[j, arm, k] * y[j, arm] / count[j, arm]
                for m in range(covariates):
                    xx[k, m] -= x[j, arm, k] * x[j, arm, m] / count[j, arm]
    return slopes(xx, xy)


def _covariates(base: EffectMethod) -> int:
    """Return how many covariates an estimator uses; those that are not adjusted by instance use none here."""
    return base.covariates if isinstance(base, Adjusted) else 0
