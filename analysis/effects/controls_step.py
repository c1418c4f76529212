"""By how much machines without a feature change when it begins, beside what they do at other times."""

from dataclasses import dataclass

import numpy as np

from analysis.effects.observations import Observations

_FEWEST_OTHERS = 4
"""Steps between other periods from which it can be said what is usual."""
_TIMES = 5.0
"""Of the largest other step. Of independent normal steps that are alike, one is so many times the largest of four
others at a chance of (2 / (5 * 2.507))^4 * 3 = 0.002, and less often of more."""
_LEAST = 0.01
"""Relative change from which it is spoken of."""


@dataclass(frozen=True, slots=True)
class ControlsStep:
    """The change of machines without the feature from the last period before a study to its first one."""

    change: float
    """Relative, of the mean over series: an instance, or a job on a machine."""
    period: float
    """The first one of the study."""
    largest_other: float
    """The largest change from one period to the next at other times, in size."""

    @property
    def stands_out(self) -> bool:
        """Whether it is far beyond what these machines do at other times."""
        return abs(self.change) > max(_LEAST, _TIMES * self.largest_other)


def controls_step(coded: Observations) -> ControlsStep | None:
    """Return the step of the machines that never have the feature, or None if too few other steps are known.

    A step is the mean difference of logarithms between two periods, over the jobs on machines that are in both.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"period": range(6), "job": "a", "weight": 1.0}).merge(
    ...     pd.DataFrame({"machine": ["m1", "m2"]}), how="cross"
    ... )
    >>> table["treated"] = ((table["machine"] == "m1") & (table["period"] >= 3)).astype(int)
    >>> table["value"] = 1.0 + 0.3 * (table["period"] >= 3) + 0.01 * (table["period"] % 2)
    >>> step = controls_step(Observations.of(table))
    >>> round(step.change, 2), step.period, round(step.largest_other, 2), step.stands_out
    (0.31, 3.0, 0.01, True)
    """
    if not coded.study.any() or coded.study.all():
        return None
    onset = int(coded.period[coded.study].min())
    value = coded.rows["value"].to_numpy(dtype=np.float64)
    rows = (coded.never & ~coded.ever)[coded.machine] & (value > 0)
    if onset == 0 or len(coded.periods) < _FEWEST_OTHERS + 2 or not rows.any():
        return None
    series = coded.machine[rows].astype(np.int64) * len(coded.jobs) + coded.job[rows]
    _, of = np.unique(series, return_inverse=True)
    shape = (int(of.max()) + 1, len(coded.periods))
    cell = of * shape[1] + coded.period[rows]
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, np.log(value[rows]), len(count))
    mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0).reshape(shape)
    differences = np.diff(mean, axis=1)
    both = np.isfinite(differences)
    if not both.any(axis=0).all():
        return None
    steps = np.expm1(np.where(both, differences, 0.0).sum(axis=0) / both.sum(axis=0))
    others = np.delete(steps, onset - 1)
    return ControlsStep(float(steps[onset - 1]), float(coded.periods[onset]), float(np.abs(others).max()))
