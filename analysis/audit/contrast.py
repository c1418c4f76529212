"""The plain estimate that harm is measured against: means of jobs with and without the feature, clustered."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from analysis.audit.table import Table
from analysis.statistics import ROUNDING
from models.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A relative change of the fleet over the jobs that both arms have, and what it rests on.

    Its variance is that of linearised sums over clusters (Särndal, Swensson and Wretman 1992, section 5.5).
    """

    change: float
    error: float
    freedom: float
    influence: Floats
    """(G, 2) what each cluster adds to the estimate's error, by arm."""
    hold: Floats
    """(G, 2) share of each arm's mean that a cluster carries."""
    by_job: Floats
    """(J,) each job's own change; NaN where it was not seen."""
    seen: Bools
    """(J,) whether at least two clusters of each arm hold the job."""
    covered: float
    """Share of the quota of all jobs that they hold."""
    alone_error: float
    """The standard error if every row were independent."""

    @property
    def half_width(self) -> float:
        """Half of the 95% interval."""
        return float(t.ppf(0.975, self.freedom)) * self.error

    def half_widths(self, shift: float) -> float:
        """Return how many half-widths of the 95% interval a shift is, in size; 0 of an interval without width."""
        return abs(shift) / self.half_width if self.half_width > 0 else 0.0

    @property
    def clusters(self) -> Floats:
        """(2,) effective number of clusters without and with the feature (Kish 1965)."""
        return np.asarray(1 / np.maximum((self.hold**2).sum(axis=0), 1e-300), dtype=np.float64)

    @property
    def design_effect(self) -> float:
        """Variance relative to that of independent rows."""
        return (self.error / self.alone_error) ** 2 if self.alone_error > 0 else 1.0


def contrast(
    table: Table,
    among: Bools,
    treated: Bools,
    cluster: Ints,
    value: Floats | None = None,
) -> Contrast | None:
    """Return the change between two sets of rows, or None if they share no job on two clusters each.

    Parameters
    ----------
    table : the experiment
    among : (N,) rows that are compared
    treated : (N,) which of them have the feature
    cluster : (M,) what each machine belongs to
    value : (N,) relative values; those of the table if not given

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": range(8), "weight": 1.0, "treated": [0, 0, 0, 0, 1, 1, 1, 1]}
    >>> table = Table.of(pd.DataFrame(rows | {"value": [1.0, 2.0, 3.0, 2.0, 2.0, 3.0, 4.0, 3.0]}))
    >>> made = contrast(table, table.study, table.treated, table.units())
    >>> made.change, round(made.half_width, 3), made.clusters, round(made.design_effect, 3)
    (0.5, 0.706, array([4., 4.]), 1.0)
    """
    jobs, groups = len(table.jobs), int(cluster.max()) + 1
    y = (table.relative if value is None else value)[among]
    job, arm, group = table.job[among], treated[among].astype(np.int64), cluster[table.machine[among]].astype(np.int64)
    cell, of = np.unique((group * 2 + arm) * jobs + job, return_inverse=True)
    n, s = np.bincount(of).astype(np.float64), np.bincount(of, y, len(cell))
    cell_job, cell_arm, cell_group = cell % jobs, cell // jobs % 2, cell // jobs // 2
    key = cell_arm * jobs + cell_job
    held, rows, sums = (np.bincount(key, each, 2 * jobs).reshape(2, jobs) for each in (np.ones(len(cell)), n, s))
    seen: Bools = np.asarray((held >= 2).all(axis=0), dtype=np.bool_)
    weight = np.where(seen, table.quota * table.scale, 0.0)
    if not weight.sum() > 0:
        return None
    mean = sums / np.maximum(rows, 1)
    level = float((weight * mean[0]).sum())
    part = np.where(seen, weight / level, 0.0) / np.maximum(rows, 1)
    spread = np.sqrt(held / np.maximum(held - 1, 1))
    out = (part * spread).ravel()[key] * (s - n * mean.ravel()[key])
    of_group = cell_group * 2 + cell_arm
    influence: Floats = np.bincount(of_group, out, 2 * groups).astype(np.float64).reshape(groups, 2)
    hold: Floats = np.bincount(of_group, part.ravel()[key] * n, 2 * groups).astype(np.float64).reshape(groups, 2)
    squares = np.bincount(arm * jobs + job, (y - mean.ravel()[arm * jobs + job]) ** 2, 2 * jobs).reshape(2, jobs)
    alone = part**2 * rows * squares / np.maximum(rows - 1, 1)
    change = float((weight * (mean[1] - mean[0])).sum()) / level
    error = float(np.sqrt(((influence[:, 1] - influence[:, 0]) ** 2).sum()))
    return Contrast(
        change=change if abs(change) > ROUNDING else 0.0,
        error=error if error > ROUNDING else 0.0,
        freedom=_freedom(influence, hold),
        influence=influence,
        hold=hold / hold.sum(axis=0),
        by_job=np.where(seen, mean[1] / np.where(mean[0] > 0, mean[0], 1.0) - 1, np.nan),
        seen=seen,
        covered=float(table.quota[seen].sum() / table.quota.sum()) * (1 - table.unseen),
        alone_error=float(np.sqrt(alone.sum())),
    )


def study(table: Table, value: Floats | None = None) -> Contrast | None:
    """Return the change between treated and concurrent untreated rows, clustered by what got the feature together.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": range(4), "weight": 1.0, "treated": [0, 0, 1, 1]}
    >>> study(Table.of(pd.DataFrame(rows | {"value": [1.0, 3.0, 2.0, 3.0]}))).change
    0.25
    """
    return contrast(table, table.study, table.treated, table.units(), value)


def before(table: Table) -> Contrast | None:
    """Return the difference, before the study, of machines that later got the feature from those that did not.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": [0, 0, 0, 0, 1], "job": "a", "machine": [1, 2, 3, 4, 1], "weight": 1.0}
    >>> table = Table.of(pd.DataFrame(rows | {"treated": [0, 0, 0, 0, 1], "value": [2.0, 1.0, 1.0, 1.0, 2.0]}))
    >>> before(table) is None
    True
    """
    return contrast(table, ~table.study, table.ever[table.machine], table.units())


def _freedom(influence: Floats, hold: Floats) -> float:
    """Return Welch's degrees of freedom; clusters that are in both arms count once."""
    count = (hold > 0).sum(axis=0)
    if ((hold > 0).all(axis=1)).sum() > 0.5 * count[1]:
        return float(max((hold > 0).any(axis=1).sum() - 1, 1))
    variance = (influence**2).sum(axis=0)
    if not variance.sum() > 0:
        return float(max(count.min() - 1, 1))
    return float(max(variance.sum() ** 2 / (variance**2 / np.maximum(count - 1, 1)).sum(), 1))
