"""How far two slots of a fleet seem apart though nothing sets them apart: the noise floor of every pair."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots
from analysis.effects.past import Past
from analysis.effects.study import EffectMethod, Study, half_width, potential
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints

_FEWEST_PERIODS = 2
_ALONE = 10
"""Pairs, at most, that are studied by themselves; what the errors of others are multiplied by is learnt from them."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseFloor:
    """What the recommended estimator says of N slots in the past, in which nothing sets them apart."""

    before: int
    """Periods that stand for the past."""
    study: int
    """Periods after them that stand for the study."""
    change: Floats
    """(N,) relative, of each slot against all others."""
    error: Floats
    """(N,) standard errors."""
    freedom: Floats
    """(N,) degrees of freedom."""
    alone: pd.DataFrame
    """slot, other, difference, error, freedom of the pairs that were studied by themselves, without the other slots."""

    @classmethod
    def of(cls, past: Past, machines: pd.Index, slot: Ints, stratum: Ints) -> "NoiseFloor":
        """Return the noise floor of slots: the later half of the past is the study, the half before is its past.

        Parameters
        ----------
        past : two periods or more
        machines, slot : (M,) which machine is in which slot, 0 to N - 1, N at least 2
        stratum : (M,) the platform and cluster of each, of which slots have even shares

        Raises
        ------
        NotEnoughDataError
            If there are fewer than two periods, or slots.
        """
        periods, slots = len(past.periods), int(slot.max()) + 1
        if periods < _FEWEST_PERIODS:
            raise NotEnoughDataError(_FEWEST_PERIODS, periods, "periods without the feature")
        if slots < 2:
            raise NotEnoughDataError(2, slots, "slots")
        length, known = periods // 2, pd.Series(slot, index=machines)
        before, now = past.between(periods - 2 * length, periods - length), past.between(periods - length, periods)
        cells = potential(before, now, now, past.jobs)
        estimator = InSlots(Adjusted(), pd.Series(stratum, machines))
        answers = estimator.many(cells, known.reindex(cells.machines).to_numpy() == np.arange(slots)[:, None])
        alone = _studied_alone(before, now, past.jobs, known, estimator)
        return cls(length, length, *answers, alone=alone)

    def pairs(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return every pair of slots, k < l.

        A slot's error against all others is hardly larger than its own part: with equal slots the variance of a
        difference of two is (N - 1) / N times the sum of both variances against all others. A study of two slots has
        less to learn covariates from than one of all, so errors and half-widths are multiplied by what they are larger
        in the pairs that were studied by themselves; these have their own.

        Parameters
        ----------
        confidence : of the half-width, 0..1

        Returns
        -------
        pd.DataFrame
            slot, other (0 to N - 1), difference (relative, of the first to the other), error, half_width.

        Examples
        --------
        >>> alone = pd.DataFrame({"slot": [0], "other": [1], "difference": 0.02, "error": 0.03, "freedom": 1e9})
        >>> floor = NoiseFloor(1, 1, np.array([0.01, -0.01, 0.0]), np.full(3, 0.02), np.full(3, 1e9), alone)
        >>> floor.pairs().round(4).values.tolist()[:2]
        [[0.0, 1.0, 0.02, 0.03, 0.0588], [0.0, 2.0, 0.01, 0.03, 0.0588]]
        """
        slots = len(self.change)
        first, other = np.triu_indices(slots, 1)
        own = self.error**2 * (slots - 1) / slots
        variance, of_errors = own[first] + own[other], own**2 / self.freedom
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = variance**2 / (of_errors[first] + of_errors[other])
        error = np.sqrt(variance)
        pairs = pd.DataFrame({"slot": first, "other": other})
        pairs["difference"] = (1.0 + self.change[first]) / (1.0 + self.change[other]) - 1.0
        pairs["error"], pairs["half_width"] = error, half_width(error, freedom, confidence)
        known = self.alone.assign(
            half_width=half_width(self.alone["error"].to_numpy(), self.alone["freedom"].to_numpy(), confidence)
        ).set_index(["slot", "other"])
        place = pd.MultiIndex.from_frame(pairs[["slot", "other"]]).get_indexer(known.index)
        pairs["error"] *= _times_larger(known["error"], pairs["error"].iloc[place])
        pairs["half_width"] *= _times_larger(known["half_width"], pairs["half_width"].iloc[place])
        for name in ("difference", "error", "half_width"):
            pairs.loc[place, name] = known[name].to_numpy()
        return pairs


def _times_larger(alone: pd.Series, among_all: pd.Series) -> float:
    """Return the geometric mean of the ratios that are known; 1 without one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        larger = np.log(alone.to_numpy() / among_all.to_numpy())
    known = np.isfinite(larger)
    return float(np.exp(np.mean(larger[known]))) if known.any() else 1.0


def _studied_alone(
    before: pd.DataFrame,
    now: pd.DataFrame,
    jobs: pd.DataFrame | None,
    slot: "pd.Series[int]",
    estimator: EffectMethod,
) -> pd.DataFrame:
    """Return what the estimator says of up to `_ALONE` pairs of slots without the others, whose past alone is known.

    Parameters
    ----------
    before, now : observations of the past and of the study
    jobs : job, quota of the whole fleet
    slot : of each machine, 0 to N - 1
    estimator : of the differences
    """
    of_past = slot.reindex(before["machine"]).to_numpy()
    of_now = slot.reindex(now["machine"]).to_numpy()
    first, other = np.triu_indices(int(slot.max()) + 1, 1)
    rows = list[tuple[float, ...]]()
    for pair in np.unique(np.linspace(0, len(first) - 1, _ALONE).round().astype(int)):
        having, either = (of_now == first[pair], (of_now == first[pair]) | (of_now == other[pair]))
        past = before if "shard" in before else before[(of_past == first[pair]) | (of_past == other[pair])]
        try:
            study = Study.of(pd.concat([past, now[either].assign(treated=having[either] * 1)], ignore_index=True), jobs)
        except NotEnoughDataError:
            continue
        answer = estimator.many(study.cells, study.treated[None])
        rows.append((first[pair], other[pair], *(float(numbers[0]) for numbers in answer)))
    return pd.DataFrame(rows, columns=["slot", "other", "difference", "error", "freedom"]).dropna()
