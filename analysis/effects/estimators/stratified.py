"""Machines drawn within strata, such as platforms: how many of each, and the effect from contrasts within them."""

from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums, MachineTotals, totals
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.errors import InputError


class _Arms(NamedTuple):
    """A draw's machines by stratum and arm: group 2 h + 1 is stratum h with the feature."""

    group: Ints
    """(M,)"""
    machines: Ints
    """(2 H,) how many each group has."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratified:
    """The effect from machines drawn at random within strata, whatever share of each is drawn.

    Jobs weigh by their full quota through the machines that hold them. Covariates are adjusted for by one regression
    over all strata (Cochran 1977, "Sampling Techniques", sections 6.10 and 6.11 on ratios, 5A.9 on collapsed strata).
    """

    stratum: Ints | None = None
    """(M,) number of each machine's stratum, 0 or more, in the order of the cells' machines; else their platform."""
    combined: bool = False
    """False: each stratum's own ratio of performance to quota, weighted by its quota. True: one ratio of sums over all
    strata, each machine weighing by how many it stands for; for strata with few machines drawn."""
    name: str = "stratified"
    """Its name in tables and on the command line."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ("platform",)

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : of M machines
        treated : (R, M), drawn at random within strata

        Returns
        -------
        Answers
            NaN where a stratum has fewer than two machines with the feature, or without it.
        """
        known = self._strata(cells)
        if len(known) != len(cells.machines):
            raise InputError(f"each of {len(cells.machines)} machines needs a stratum, {len(known)} are given")
        if cells.known:
            raise InputError("a crossover has no contrast between machines: each is its own control")
        sums = totals(cells)
        stratum = np.unique(known, return_inverse=True)[1].astype(np.int64)
        answers = np.array([_answer(sums, stratum, draw, self.combined) for draw in treated]).reshape(-1, 3)
        return Answers(answers[:, 0], answers[:, 1], answers[:, 2])

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        known = self._strata(study.cells)
        numbers = np.unique(known)
        arms = ((study.treated, "with the feature"), (~study.treated, "without it"))
        for arm, what in arms if len(known) == len(study.treated) else ():
            machines = [int(arm[known == number].sum()) for number in numbers]
            if min(machines) < 2:
                number = numbers[int(np.argmin(machines))]
                raise NotEnoughDataError(2, min(machines), f"machines {what} in stratum {number}")
        return concluded(self, study, confidence)

    def _strata(self, cells: JobMachineSums) -> Ints:
        """Return the stratum of each machine, (M,)."""
        known = cells.platform if self.stratum is None else self.stratum
        if known is None:
            raise InputError(f"the estimator {self.name} needs the column platform")
        return known


def allocate(machines: Ints, deviation: Floats, total: int, low: int = 2) -> Ints:
    """Return how many machines to draw from each stratum for the least variance, in whole numbers (Neyman 1934).

    Each further machine goes where it lowers Σ (N S)² / n most, which is exactly optimal (Wright 2012, "The equivalence
    of Neyman optimum allocation for sampling and equal proportions for apportioning").

    Parameters
    ----------
    machines : (H,) array, N, machines of each stratum
    deviation : (H,) array, S, standard deviation of what is measured between machines of a stratum; 0 or more
    total : machines to draw
    low : fewest to draw from a stratum, and fewest to leave in it as controls

    Returns
    -------
    (H,) array, which adds up to `total`
    """
    if not (np.isfinite(deviation).all() and (deviation >= 0).all()):
        raise InputError(f"deviations of strata must be finite and 0 or more, got {deviation.tolist()}")
    high = machines - low
    if (high < low).any():
        raise NotEnoughDataError(2 * low, int(machines.min()), "machines in every stratum")
    if not low * len(machines) <= total <= high.sum():
        least, most = low * len(machines), int(high.sum())
        raise NotEnoughDataError(least, total, f"machines to draw (at least; at most {most})")
    take = np.full(len(machines), low, dtype=np.int64)
    gain = machines * deviation
    queue = [_priority(float(gain[h]), low, h) for h in range(len(machines)) if high[h] > low]
    heapify(queue)
    for _ in range(total - int(take.sum())):
        h = queue[0][2]
        take[h] += 1
        full = take[h] == high[h]
        heapreplace(queue, (np.inf, 0.0, h) if full else _priority(float(gain[h]), int(take[h]), h))
    return take


def draw(stratum: Ints, take: Ints, rng: np.random.Generator) -> Bools:
    """Draw machines at random within strata.

    Parameters
    ----------
    stratum : (M,) array, 0 to H - 1
    take : (H,) array, how many to draw of each
    rng : where the draws come from

    Returns
    -------
    (M,) array of bool
        Every choice of `take` machines within strata is equally likely, so machines of stratum h are drawn with
        probability take / machines.
    """
    machines = np.bincount(stratum, minlength=len(take))
    if (machines < take).any():
        h = int(np.argmax(machines < take))
        raise NotEnoughDataError(int(take[h]), int(machines[h]), f"machines in stratum {h}")
    order = rng.permutation(len(stratum))
    order = order[np.argsort(stratum[order], kind="stable")]
    rank = np.empty(len(stratum), dtype=np.int64)
    rank[order] = np.arange(len(stratum)) - (np.cumsum(machines) - machines)[stratum[order]]
    return np.asarray(rank < take[stratum], dtype=np.bool_)


def strata(observations: pd.DataFrame, jobs: int = 0, smallest: int = 20) -> pd.DataFrame:
    """Return the stratum of each machine: its platform, and which of the top jobs it holds.

    Strata that would be smaller than `smallest` forget the lesser of the jobs, one after another, until they are not,
    or only the platform is left.

    Parameters
    ----------
    observations : columns job, machine, weight (quota), value (performance), and perhaps platform; rows of the time
        before the study
    jobs : how many of the jobs with most quota are told apart, 0 or more
    smallest : fewest machines

    Returns
    -------
    DataFrame
        machine, stratum (0, 1, … in the order of labels), label, and deviation: the standard deviation of the
        machine's quota-weighted relative performance within its stratum, for `allocate`.
    """
    if observations.empty:
        raise NotEnoughDataError(1, 0, "rows before the study")
    rows = observations.assign(part=observations["value"] / observations.groupby("job")["value"].transform("mean"))
    rows["part"] = (rows["part"] - 1) * rows["weight"]
    of = rows.groupby("machine", sort=True)
    quota = of["weight"].sum()
    machines_ = pd.DataFrame({"machine": quota.index, "performance": (of["part"].sum() / quota).to_numpy()})
    machines_["load"] = (quota / quota.mean()).to_numpy()
    platform = of["platform"].first().astype(str).to_numpy() if "platform" in rows else np.full(len(machines_), "fleet")
    label = pd.Series(platform, dtype=object)
    top = rows.groupby("job")["weight"].sum().sort_values(ascending=False, kind="stable").index[:jobs]
    holders = [machines_["machine"].isin(rows.loc[rows["job"] == job, "machine"]).to_numpy() for job in top]
    for last in range(len(holders), 0, -1):
        full = pd.Series(platform, dtype=object)
        for has, job in zip(holders[:last], top[:last], strict=True):
            full += np.where(has, f" +{job}", f" -{job}")
        open_ones = (label == pd.Series(platform, dtype=object)).to_numpy()
        size = full[open_ones].groupby(full[open_ones]).transform("size")
        enough = size.index[size >= smallest]
        label[enough] = full[enough]
    machines_["label"] = label
    machines_["stratum"] = pd.factorize(label, sort=True)[0].astype(np.int64)
    contribution = machines_["load"] * (1 + machines_["performance"])
    deviation = (contribution - machines_["load"]).groupby(machines_["stratum"]).transform("std")
    return machines_.assign(deviation=deviation.fillna(0.0))[["machine", "stratum", "label", "deviation"]]


def _priority(gain: float, taken: int, h: int) -> tuple[float, float, int]:
    """Return a key that is least where one more machine lowers the variance most; without spread, where fewest are."""
    return -gain / np.sqrt(taken * (taken + 1)), float(taken), h


def _answer(sums: MachineTotals, stratum: Ints, treated: Bools, combined: bool) -> tuple[float, float, float]:
    """Return change, standard error and degrees of freedom of one draw."""
    group = 2 * stratum + treated
    arms = _Arms(group, np.bincount(group, minlength=2 * (int(stratum.max()) + 1)))
    if arms.machines.min() < 2:
        return np.nan, np.nan, np.nan
    observed = np.where(treated, sums.value[:, 1], sums.value[:, 0])
    whole = np.repeat(np.bincount(stratum, sums.quota), 2)
    machines = np.repeat(np.bincount(stratum), 2)
    expand = machines / arms.machines if combined else whole / np.bincount(group, sums.quota, len(whole))
    ratio = _ratios(observed, sums.quota, arms, expand, combined)
    adjusted, lost = _adjusted(observed - ratio[group] * sums.quota, sums.x, arms)
    ratio = _ratios(observed - adjusted, sums.quota, arms, expand, combined)
    residual = _within(observed - adjusted - ratio[group] * sums.quota, arms)
    base = np.array([(expand * np.bincount(group, sums.quota, len(whole)))[arm::2].sum() for arm in range(2)])
    level = [(expand * np.bincount(group, observed - adjusted, len(whole)))[arm::2].sum() / base[arm] for arm in (0, 1)]
    square = np.bincount(group, residual**2, len(whole)) * arms.machines / (arms.machines - 1) * expand**2 * lost
    scale = np.where(np.arange(len(whole)) % 2, 1.0, level[1] / level[0]) / level[0] / np.tile(base, len(whole) // 2)
    part = square * scale**2
    freedom = part.sum() ** 2 / max((part**2 / (arms.machines - 1)).sum(), 1e-300)
    return level[1] / level[0] - 1, float(np.sqrt(part.sum())), float(freedom) if part.sum() > 0 else np.inf


def _ratios(value: Floats, quota: Floats, arms: _Arms, expand: Floats, combined: bool) -> Floats:
    """Return the ratio of value to quota of each group: its own, or that of its arm over all strata."""
    groups = len(arms.machines)
    above, below = (expand * np.bincount(arms.group, numbers, groups) for numbers in (value, quota))
    if combined:
        above, below = (np.tile([numbers[0::2].sum(), numbers[1::2].sum()], groups // 2) for numbers in (above, below))
    return np.asarray(above / below)


def _adjusted(residual: Floats, x: Floats, arms: _Arms) -> tuple[Floats, float]:
    """Return what the covariates explain of each machine, within groups, and the factor for the slopes it costs."""
    left = len(residual) - len(arms.machines) - x.shape[1]
    if x.shape[1] == 0 or left < 1:
        return np.zeros(len(residual)), 1.0
    within = np.stack([_within(column, arms) for column in x.T], axis=1)
    slope = np.linalg.lstsq(within, _within(residual, arms))[0]
    return x @ slope, (left + x.shape[1]) / left


def _within(value: Floats, arms: _Arms) -> Floats:
    """Return values less the mean of their group."""
    mean = np.bincount(arms.group, value, len(arms.machines)) / arms.machines
    return np.asarray(value - mean[arms.group])
