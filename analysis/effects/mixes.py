"""Arms of a comparison that have other mixes of machines: by how much that alone sets them apart."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.strata import StratifiedFleet
from models.arrays import Bools, Floats

_ROUNDED = 1.0
"""Machines of a stratum by which equal slots differ, as counts are whole."""


@dataclass(frozen=True, slots=True)
class MixDifference:
    """What the arms' shares of platforms and clusters differ by, and what that makes of a comparison."""

    skew: float
    """Relative difference of the arms by their mixes alone, without any change."""
    strata: pd.DataFrame
    """stratum, treated, controls (share of each arm's quota), level (performance of its machines beside the fleet's,
    job by job), skew (its part), uneven (whether counts differ by more than they must); the largest part first."""

    @property
    def uneven(self) -> bool:
        """Whether any platform of a cluster is in the arms with other shares than whole machines explain."""
        return bool(self.strata["uneven"].any())


def mix_difference(fleet: StratifiedFleet, treated: Bools, controls: Bools, slots: tuple[int, int]) -> MixDifference:
    """Return by how much two arms differ by their mixes of platforms and clusters.

    The level of a stratum is the quota-weighted mean of its machines' past performance, of each row beside its job's
    mean over the fleet. The skew is the sum over strata of the difference of quota shares times that level.

    Parameters
    ----------
    fleet : M machines
    treated, controls : (M,)
    slots : that each arm has

    Examples
    --------
    >>> rows = {"period": 0, "job": "a", "machine": range(8), "weight": 1.0, "value": [1.0, 1.1] * 4}
    >>> fleet = StratifiedFleet.of(pd.DataFrame(rows).assign(platform=["old", "new"] * 4))
    >>> treated = np.array([True, True, True, True, False, False, False, False])
    >>> round(mix_difference(fleet, treated, ~treated, (1, 1)).skew, 4)
    0.0
    >>> uneven = np.array([True, False, True, False, True, True, False, False])
    >>> round(mix_difference(fleet, uneven, ~uneven, (1, 1)).skew, 4)
    -0.0465
    """
    strata = len(fleet.strata)
    performance, quota = (fleet.levels[:, fleet.variables.index(name)] for name in ("past performance", "quota"))
    counts = [np.bincount(fleet.stratum[arm], minlength=strata) for arm in (treated, controls)]
    quotas = [np.bincount(fleet.stratum[arm], quota[arm], strata) for arm in (treated, controls)]
    shares = [of / max(float(of.sum()), 1e-300) for of in quotas]
    level = _weighted(fleet.stratum, performance, quota, strata)
    part = (shares[0] - shares[1]) * level
    uneven = np.abs(counts[0] / slots[0] - counts[1] / slots[1]) > _ROUNDED
    table = pd.DataFrame(
        {
            "stratum": fleet.strata,
            "treated": shares[0],
            "controls": shares[1],
            "level": level,
            "skew": part,
            "uneven": uneven,
        }
    )
    ranked = table.sort_values("skew", key=np.abs, ascending=False, kind="stable", ignore_index=True)
    return MixDifference(float(part.sum() / (1.0 + shares[1] @ level)), ranked)


def _weighted(of: "np.typing.NDArray[np.int64]", values: Floats, weights: Floats, groups: int) -> Floats:
    total = np.bincount(of, weights, groups)
    sums = np.bincount(of, weights * values, groups)
    return np.divide(sums, total, out=np.zeros(groups), where=total > 0)
