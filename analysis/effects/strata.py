"""A fleet's machines by stratum, a platform in a cluster, and the numbers that subsets of them should share evenly."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.effects.cube import balancing_variables
from analysis.statistics import ROUNDING
from models.arrays import Floats, Ints

HEAVYWEIGHTS = 20
"""Jobs with most quota whose quota is balanced one by one."""
UNASSIGNED = -1
"""Slot of a machine that has none."""
_PLATFORM = "platform "
"""What columns of `balancing_variables` begin with that counts balance exactly."""


@dataclass(frozen=True, eq=False)
class StratifiedFleet:
    """M machines, each of one of S strata (a platform in a cluster), and p numbers to balance them by."""

    names: pd.Index
    stratum: Ints
    """(M,)"""
    platform: Ints
    """(S,) of each stratum."""
    cluster: Ints
    """(S,) of each stratum."""
    strata: tuple[str, ...]
    variables: tuple[str, ...]
    """Names of the numbers, p of them."""
    levels: Floats
    """(M, p) the numbers, in their own units."""
    several: int = 0
    """Machines that were of several strata over time; the last one counts."""

    @classmethod
    def of(cls, past: pd.DataFrame, heavyweights: int = HEAVYWEIGHTS) -> "StratifiedFleet":
        """Return the machines of observations in which nothing has the feature.

        Parameters
        ----------
        past : period, job, machine, weight, value, and perhaps platform, cluster, cpu_s
        heavyweights : jobs with most quota that are balanced one by one

        Examples
        --------
        >>> rows = pd.DataFrame({"period": 0, "job": "a", "machine": ["m1", "m2"], "weight": 1.0, "value": [1.0, 3.0]})
        >>> machines = StratifiedFleet.of(rows)
        >>> machines.strata, machines.variables, machines.levels[:, 1].tolist()
        (('all machines',), ('quota', 'past performance', 'quota of job a'), [-0.5, 0.5])
        """
        known = balancing_variables(past, heavyweights).set_index("machine")
        known = known[[name for name in known.columns if not str(name).startswith(_PLATFORM)]]
        known.columns = pd.Index([_in_words(str(name)) for name in known.columns])
        columns = [name for name in ("cluster", "platform") if name in past]
        ordered = past.sort_values("period", kind="stable") if columns else past
        rows = ordered[["machine", *columns]].drop_duplicates(keep="last").astype(dict.fromkeys(columns, str))
        places = rows.drop_duplicates("machine", keep="last").set_index("machine").reindex(known.index)
        if not columns:
            places["all"] = "all machines"
        stratum, combinations = pd.factorize(pd.MultiIndex.from_frame(places), sort=True)
        values = pd.DataFrame([*combinations], columns=places.columns)
        of_stratum = {
            name: pd.factorize(values[name])[0] if name in values else np.zeros(len(values), dtype=np.int64)
            for name in ("platform", "cluster")
        }
        return cls(
            names=pd.Index(known.index),
            stratum=stratum.astype(np.int64),
            platform=of_stratum["platform"].astype(np.int64),
            cluster=of_stratum["cluster"].astype(np.int64),
            strata=tuple(", ".join(row) for row in values.itertuples(index=False)),
            variables=tuple(known.columns),
            levels=known.to_numpy(dtype=np.float64),
            several=int(rows["machine"].duplicated().groupby(rows["machine"]).any().sum()) if columns else 0,
        )

    @cached_property
    def scaled(self) -> Floats:
        """(M, p) the numbers less the mean of their stratum, in standard deviations; columns that do not vary are 0."""
        size = np.bincount(self.stratum, minlength=len(self.strata))
        means = np.stack([np.bincount(self.stratum, column) / size for column in self.levels.T], axis=1)
        apart = self.levels - means[self.stratum]
        spread = apart.std(axis=0)
        varies = spread > ROUNDING * np.abs(self.levels).max(axis=0)
        scaled: Floats = np.divide(apart, spread, out=np.zeros_like(apart), where=varies)
        return scaled

    def counts(self, slot: Ints, slots: int) -> Ints:
        """Return how many machines of each stratum each slot has, (N, S); machines without a slot are in none."""
        strata, placed = len(self.strata), slot != UNASSIGNED
        number = slot[placed] * strata + self.stratum[placed]
        return np.bincount(number, minlength=slots * strata).reshape(slots, strata).astype(np.int64)


def _in_words(name: str) -> str:
    """Return what a balancing variable is called here."""
    return {"residual": "past performance"}.get(name, f"quota of {name}" if name.startswith("job ") else name)
