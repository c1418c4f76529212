"""Which jobs a plan or an estimate rests on, and what they weigh."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.statistics import Current, NotEnoughDataError, Table, quota_shares
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """The jobs that two tables cover: weights that sum to 1, and the statistics of just these jobs, in this order."""

    weight: Floats
    quota_share: Floats
    """Share of the whole fleet's CPU quota; NaN without a jobs table."""
    current: Current
    new: Current

    @property
    def job(self) -> pd.Index:
        """The jobs."""
        return self.new.job

    @classmethod
    def of(
        cls, current: Current, new: Current, min_instances: int, min_current: int, jobs: pd.DataFrame | None
    ) -> "Covered":
        """Find the covered jobs; parameters and errors as in `covered`."""
        at = current.job.get_indexer(new.job)
        share = np.full(len(at), np.nan) if jobs is None else quota_shares(jobs, new.job)
        known = np.flatnonzero((at >= 0) & (True if jobs is None else share > 0))
        have_new, have_current = new.instances[known], current.instances[at[known]]
        enough = known[(have_new >= min_instances) & (have_current >= min_current)]
        if not len(enough):
            sampled = min_current > 1
            raise _too_few(min_instances, sampled, np.minimum(have_new, have_current) if sampled else have_new)
        left, right = current.take(at[enough]), new.take(enough)
        weight = left.weight if jobs is None else share[enough]
        return cls(weight / weight.sum(), share[enough], left, right)


def covered(
    current: Table,
    new: Table,
    min_instances: int = 4,
    min_current: int = 1,
    jobs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the jobs that both tables cover, with their weights renormalised to sum to 1 (section 5.2.2).

    Parameters
    ----------
    current, new : measurement tables, or their summaries
    min_instances : instances of a job that `new` must hold
    min_current : instances of a job that `current` must hold
    jobs : columns job, quota; without it a job weighs as the sum of its weights in `current`

    Returns
    -------
    DataFrame
        job, weight (sums to 1), quota_share (of the whole fleet; NaN without `jobs`), and mean, std and instances
        of either table, such as mean_current and std_new; ordered by job. Standard deviations are the samples'.

    Raises
    ------
    NotEnoughDataError
        If no job is covered.

    Examples
    --------
    >>> new = pd.DataFrame({"job": list("aaaab"), "machine": range(5), "weight": 1.0, "value": 1.0})
    >>> covered(new, new)["job"].tolist()
    ['a']
    """
    common = Covered.of(Current.of(current), Current.of(new), min_instances, min_current, jobs)
    statistics = {
        f"{name}_{side}": getattr(summary, name)
        for side, summary in (("current", common.current), ("new", common.new))
        for name in ("mean", "std", "instances")
    }
    return pd.DataFrame({"job": common.job, "weight": common.weight, "quota_share": common.quota_share} | statistics)


def plannable(current: Table, jobs: pd.DataFrame | None = None, min_instances: int = 4) -> pd.DataFrame:
    """Return the table that a plan is made from: the jobs with enough instances in the whole fleet (section 5.1).

    Parameters
    ----------
    current : measurement table of the current fleet, or its summary
    jobs : columns job, quota, instances; without it the current table's own sums and counts
    min_instances : least instances of a job

    Returns
    -------
    DataFrame
        job, weight (sums to 1), mean, std (the population's), instances (the most that can be observed), cost (CPU
        quota of one instance).

    Raises
    ------
    NotEnoughDataError
        If no job has enough instances.

    Examples
    --------
    >>> table = pd.DataFrame({"job": list("aaaab"), "machine": range(5), "weight": 2.0, "value": 1.0})
    >>> plannable(table)
      job  weight  mean  std  instances  cost
    0   a     1.0   1.0  0.0          4   2.0
    """
    known = Current.of(current)
    instances = known.instances
    table = pd.DataFrame(
        {
            "job": known.job,
            "weight": known.weight,
            "mean": known.mean,
            "std": np.where(instances > 1, known.std * np.sqrt((instances - 1) / instances), 0.0),
            "instances": instances,
            "cost": known.weight / instances,
        }
    )
    if jobs is not None:
        whole = jobs[["job", "quota", "instances"]].rename(columns={"quota": "weight"})
        table = table.drop(columns=["weight", "instances"]).merge(whole, on="job")
    enough = table[table["instances"] >= min_instances].reset_index(drop=True)
    if enough.empty:
        have = int(table["instances"].max()) if len(table) else 0
        raise NotEnoughDataError(min_instances, have, "instances of one job in the fleet")
    return enough.assign(weight=enough["weight"] / enough["weight"].sum())


def _too_few(min_instances: int, sampled: bool, instances: Ints) -> NotEnoughDataError:
    where = "in both tables" if sampled else "of the current table in the new one"
    return NotEnoughDataError(min_instances, int(instances.max(initial=0)), f"instances of one job {where}")
