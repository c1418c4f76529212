"""What each machine holds of the fleet's metric, which is the sum over machines: quota, performance, covariates."""

from typing import NamedTuple

import numpy as np

from analysis.effects.cells import Cells
from models.arrays import Floats


class Totals(NamedTuple):
    """Sums by machine, in units of the fleet's performance; each job weighs by its full quota."""

    quota: Floats
    """(M,) without the feature, were all instances like their job's `scale`."""
    value: Floats
    """(M, 2) without and with the feature."""
    x: Floats
    """(M, K) covariates, as the quota times a relative deviation."""


def totals(cells: Cells) -> Totals:
    """Return the cells' sums by machine, each job's full quota spread evenly over its instances.

    Examples
    --------
    >>> from analysis.effects.study import example
    >>> made = totals(example().cells)
    >>> round(float(made.quota.sum() / example().cells.weight.sum()), 9), made.value.shape
    (1.0, (12, 2))
    """
    instances = np.bincount(cells.job, cells.count, len(cells.jobs))
    each = (cells.weight / np.where(instances > 0, instances, 1.0))[cells.job]
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))

    def summed(values: Floats) -> Floats:
        sums = [np.bincount(machine, each * column, len(cells.machines)) for column in values.T]
        return np.stack(sums, axis=1) if sums else np.zeros((len(cells.machines), 0))

    return Totals(summed(cells.count[:, None])[:, 0], summed(cells.y), summed(cells.x))
