"""Machines matched in pairs by what was known of them, one of each pair with the feature by the toss of a coin."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from analysis.effects.cells import JobMachineSums, MachineTotals, totals
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

FEWEST = 3
"""Pairs below which nothing is said."""
_COLLINEAR = 1e-9
"""Covariates that differ by less from a combination of others have no slope of their own."""
_NEIGHBOURS = 12
"""Machines that are looked at as partners of one, turn by turn until all have one."""


class _Arm(NamedTuple):
    """The machines of an arm, by draw and pair; 0 for pairs that take no part. All (R, P)."""

    quota: Floats
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The effect from pairs of machines of which one has the feature; the variance is that between pairs.

    Jobs weigh by their full quota through the machines that hold them. What covariates still differ by within pairs is
    adjusted for with slopes from the machines without the feature, which no coin of a pair can tilt (Rosenbaum 2002,
    "Covariance adjustment in randomized experiments and observational studies", for pairs Fogarty 2018,
    "Regression-assisted inference for the average treatment effect in paired experiments").
    """

    pairs: Ints | None = None
    """(P, 2) places of machines in the order of the cells' machines, as `matched` returns them."""
    name: str = "paired"
    """Its name in tables and on the command line."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ("pairs",)

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : of M machines
        treated : (R, M), one machine of each pair that takes part, as `tossed` draws them

        Returns
        -------
        Answers
            NaN where fewer than 3 pairs take part.
        """
        if cells.known:
            raise InputError("a crossover has no contrast between machines: each is its own control")
        chosen = np.asarray(treated, dtype=np.bool_)
        pairs = self._pairs()
        first, second = self._sides(chosen)
        sums = totals(cells)
        slope, lost = _slopes(sums, chosen)
        on, off = (_arm(sums, pairs, turn, side, slope) for side, turn in ((1, first), (0, second)))
        part = first | second
        return _answers(on, off, part, lost)

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        first, second = self._sides(study.treated[None, :])
        pairs = int((first | second).sum())
        if pairs < FEWEST:
            raise NotEnoughDataError(FEWEST, pairs, "pairs of machines")
        return replace(concluded(self, study, confidence), design="paired", controls=pairs)

    def _sides(self, treated: Bools) -> tuple[Bools, Bools]:
        """Return in which pairs the first machine has the feature, and in which the second; (R, P)."""
        pairs = self._pairs()
        first, second = treated[:, pairs[:, 0]], treated[:, pairs[:, 1]]
        if (first & second).any():
            raise InputError("both machines of a pair have the feature")
        if int(treated.sum()) != int(first.sum() + second.sum()):
            raise InputError("a machine that is in no pair has the feature")
        return first, second

    def _pairs(self) -> Ints:
        if self.pairs is None:
            raise InputError(f"the estimator {self.name} needs the pairs in which machines were drawn")
        return self.pairs


def matched(aux: Floats, stratum: Ints | None = None) -> Ints:
    """Return pairs of machines that were like each other, each in one pair at most.

    The nearest of those still free are paired first (greedy matching; Rosenbaum 1989, "Optimal matching for
    observational studies", section 1), in the variables' own standard deviations.

    Parameters
    ----------
    aux : (M, p) array of what was known of machines before, such as from `balance.balancing_variables`
    stratum : (M,) such as the platform; partners have the same

    Returns
    -------
    (P, 2) array
        Places of machines. One machine of each stratum with an odd number is left over.
    """
    if not np.isfinite(aux).all():
        machine, column = np.argwhere(~np.isfinite(aux))[0]
        raise InputError(f"variable {column} of machine {machine} must be finite, got {aux[machine, column]}")
    spread = aux.std(axis=0)
    scaled: Floats = (aux - aux.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    groups = np.zeros(len(aux), dtype=np.int64) if stratum is None else stratum
    pairs = [_near(scaled, np.flatnonzero(groups == group)) for group in np.unique(groups)]
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.int64)


def tossed(pairs: Ints, number: int, machines: int, rng: np.random.Generator) -> Bools:
    """Draw pairs at random, and one machine of each by a fair coin.

    Parameters
    ----------
    pairs : (P, 2) as from `matched`
    number : of pairs
    machines : M, of the fleet
    rng : where the draws come from

    Returns
    -------
    (M,) array of bool
    """
    if number > len(pairs):
        raise NotEnoughDataError(number, len(pairs), "pairs of machines")
    chosen = pairs[rng.permutation(len(pairs))[:number]]
    treated = np.zeros(machines, dtype=np.bool_)
    treated[chosen[np.arange(number), rng.integers(2, size=number)]] = True
    return treated


def _near(scaled: Floats, machines: Ints) -> Ints:
    """Return the pairs among some machines."""
    taken = list[tuple[int, int]]()
    free = np.zeros(len(scaled), dtype=np.bool_)
    free[machines] = True
    while len(machines) > 1:
        count = min(_NEIGHBOURS, len(machines))
        distance, beside = cKDTree(scaled[machines]).query(scaled[machines], k=count)
        first, second = np.repeat(machines, count), machines[np.ravel(beside)]
        for at in np.lexsort((second, first, np.ravel(distance))).tolist():
            a, b = int(first[at]), int(second[at])
            if a != b and free[a] and free[b]:
                taken.append((min(a, b), max(a, b)))
                free[a] = free[b] = False
        machines = machines[free[machines]]
    return np.array(taken, dtype=np.int64).reshape(-1, 2)


def _slopes(sums: MachineTotals, treated: Bools) -> tuple[Floats, Floats]:
    """Return the slopes of machines without the feature on covariates, (R, K), and what they cost, a factor, (R,)."""
    pick = (~treated).astype(np.float64)
    machines, covariates = pick.sum(axis=1), sums.x.shape[1]
    left = machines - 1 - covariates
    if covariates == 0 or left.min() < covariates:
        return np.zeros((len(pick), covariates)), np.ones(len(pick))
    value = sums.value[:, 0]
    level = (pick @ value) / (pick @ sums.quota)
    mean = (pick @ sums.x) / machines[:, None]
    products = (sums.x[:, :, None] * sums.x[:, None, :]).reshape(len(sums.x), -1)
    xx = (pick @ products).reshape(-1, covariates, covariates)
    xx -= machines[:, None, None] * mean[:, :, None] * mean[:, None, :]
    xy = pick @ (sums.x * value[:, None]) - level[:, None] * (pick @ (sums.x * sums.quota[:, None]))
    root = np.sqrt(np.maximum(np.einsum("rkk->rk", xx), 0.0))
    root = np.where(root > 0, root, 1.0)
    inverse = np.linalg.pinv(xx / root[:, :, None] / root[:, None, :], rcond=_COLLINEAR, hermitian=True)
    slope: Floats = np.einsum("rkl,rl->rk", inverse, xy / root) / root
    return slope, (left + covariates) / left


def _arm(sums: MachineTotals, pairs: Ints, first: Bools, side: int, slope: Floats) -> _Arm:
    """Return the first machine of each pair where `first` says so, else the second, with or without the feature."""
    place = np.where(first, pairs[:, 0], pairs[:, 1])
    value = sums.value[:, side] - slope @ sums.x.T
    return _Arm(sums.quota[place], np.take_along_axis(value, place, axis=1))


def _answers(on: _Arm, off: _Arm, part: Bools, lost: Floats) -> Answers:
    """Return the ratio of both arms' ratios of performance to quota, less 1, with the variance between pairs."""
    pairs = part.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        quotas = [(arm.quota * part).sum(axis=1) for arm in (off, on)]
        level = [(arm.value * part).sum(axis=1) / total for arm, total in zip((off, on), quotas, strict=True)]
        growth = level[1] / level[0]
        apart = [
            part * (arm.value - at[:, None] * arm.quota) * (1.0 / total)[:, None]
            for arm, at, total in zip((off, on), level, quotas, strict=True)
        ]
        difference = (apart[1] - growth[:, None] * apart[0]) / level[0][:, None]
        variance = (difference**2).sum(axis=1) * pairs / (pairs - 1.0) * lost
    enough = pairs >= FEWEST
    change, error = (np.where(enough, numbers, np.nan) for numbers in (growth - 1.0, np.sqrt(variance)))
    return Answers(change, error, np.where(enough, pairs - 1.0, np.nan))
