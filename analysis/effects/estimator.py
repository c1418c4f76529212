"""Anybody's estimator of a change: the tables of an experiment in, the change with its interval out.

The protocol is provisional: `target` and `metric_kind` have one value each today, and will have more.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from analysis.effects.observations import Observations
from analysis.effects.stays import ObservedRows, fleet_of
from analysis.effects.study import EffectMethod, Study
from analysis.statistics import NotEnoughDataError, Statistic
from models.arrays import Bools, Floats
from models.errors import InputError

Target = Literal["job_mean"]
"""job_mean: the relative change of the mean over jobs, by their quota, of each job's mean over its instances."""
MetricKind = Literal["rate"]
"""rate: positive numbers of which more is better, such as instructions per CPU second."""
CHANGED = ("value", "cpu_s", "exposure")
"""Columns that the feature changes."""
_LONGEST = 60
"""Characters of a wrong answer that are shown."""


@dataclass(frozen=True, slots=False, eq=False)
class ExperimentTables:
    """What an estimator sees of an experiment: the rows that a real fleet could give.

    Examples
    --------
    >>> rows = {"period": [1, 1], "job": "search", "machine": ["a", "b"], "weight": 2.0, "value": [1.0, 1.1]}
    >>> experiment = ExperimentTables.of(pd.DataFrame(rows).assign(treated=[False, True]), None)
    >>> experiment.study["machine"].tolist(), experiment.confidence
    (['a', 'b'], 0.95)
    """

    observations: pd.DataFrame
    """A row for each instance's stay and period: period, job, machine, weight (CPU quota), value (performance), treated
    (whether the machine had the feature then), and perhaps instance, shard, rack, platform, present_s, cpu_s."""
    jobs: pd.DataFrame
    """job, quota: of the whole fleet."""
    confidence: float = 0.95
    """Of the interval."""
    target: Target = "job_mean"
    metric_kind: MetricKind = "rate"

    @classmethod
    def of(cls, observations: pd.DataFrame, jobs: pd.DataFrame | None, confidence: float = 0.95) -> "ExperimentTables":
        """Return the tables of an experiment; without jobs, they weigh as their rows do.

        Examples
        --------
        >>> row = {"period": 0, "job": "a", "machine": [1, 2], "weight": 2.0, "value": [1.0, 1.2], "treated": [0, 1]}
        >>> ExperimentTables.of(pd.DataFrame(row), None).jobs
          job  quota
        0   a    4.0
        """
        rows = observations.assign(treated=observations["treated"].astype(bool))
        if jobs is None:
            study = rows[rows["period"] >= rows.loc[rows["treated"], "period"].min()]
            (coded,) = ObservedRows.of(Observations.of(study))
            jobs = fleet_of(coded[:0], coded, None)[["job", "quota"]]
        return cls(rows, jobs, confidence)

    @cached_property
    def first_period(self) -> float:
        """The first period in which a machine had the feature."""
        return float(self.observations.loc[self.observations["treated"], "period"].min())

    @cached_property
    def before(self) -> pd.DataFrame:
        """Rows of the periods before any machine had the feature; perhaps none."""
        return self.observations[self.observations["period"] < self.first_period]

    @cached_property
    def study(self) -> pd.DataFrame:
        """Rows of the periods from then on."""
        return self.observations[self.observations["period"] >= self.first_period]


@dataclass(frozen=True, slots=True, eq=False)
class PotentialTables:
    """An experiment of which both courses are known, and R draws of the machines that have the feature.

    An estimator that has `estimate_many` gets this in place of R experiments; it may use `off` of machines without the
    feature in a draw, and `on` of those with it, and nothing else of the study.
    """

    before: pd.DataFrame
    """Rows of the past."""
    off: pd.DataFrame
    """Rows of the study without the feature."""
    on: pd.DataFrame
    """The same stays and periods with it, row by row."""
    machines: pd.Index
    """M, in the order of the columns of `treated`."""
    treated: Bools
    """(R, M)"""
    jobs: pd.DataFrame
    """job, quota: of the whole fleet."""
    confidence: float = 0.95

    def copy(self) -> "PotentialTables":
        """Return tables of which an estimator may change all, and no other estimator sees it."""
        before, off, on, jobs = (table.copy() for table in (self.before, self.off, self.on, self.jobs))
        return PotentialTables(before, off, on, self.machines, self.treated.copy(), jobs, self.confidence)


Interval = Statistic | tuple[float, float, float]
"""The relative change, and the lower and upper end of its interval."""


@runtime_checkable
class Estimator(Protocol):
    """What an estimator offers; a function of the same arguments will do.

    It may have `name`, and `estimate_many(tables: PotentialTables)`, which returns three arrays, (R,): changes, lower
    and upper ends. It raises `NotEnoughDataError` where a table has too little for it.

    Examples
    --------
    >>> class MachineMeans:
    ...     def estimate(self, experiment: ExperimentTables) -> tuple[float, float, float]:
    ...         means = experiment.study.groupby(["treated", "machine"])["value"].mean()
    ...         off, on = means[False], means[True]
    ...         change = on.mean() / off.mean() - 1
    ...         half_width = 1.96 * (on.var() / len(on) + off.var() / len(off)) ** 0.5 / off.mean()
    ...         return change, change - half_width, change + half_width
    >>> isinstance(MachineMeans(), Estimator)
    True
    """

    def estimate(self, experiment: ExperimentTables) -> Interval:
        """Return the relative change and the ends of its interval."""


@dataclass(frozen=True, slots=True)
class OnTables:
    """One of our methods as an estimator on plain tables."""

    method: EffectMethod

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    def estimate(self, experiment: ExperimentTables) -> Statistic:
        """Return what the method says of an experiment."""
        study = Study.of(experiment.observations, experiment.jobs, staged="staged" in self.method.designs)
        effect = self.method.estimate(study, experiment.confidence)
        return Statistic(effect.change, effect.low, effect.high)


def answered(name: str, answer: object) -> Statistic:
    """Return what an estimator answered as a statistic.

    Raises
    ------
    InputError
        If it is no three finite numbers of which the change is the middle one.

    Examples
    --------
    >>> answered("mine", (0.1, 0.0, 0.2))
    Statistic(value=0.1, low=0.0, high=0.2)
    >>> answered("mine", (0.1, 0.2, 0.3))
    Traceback (most recent call last):
    models.errors.InputError: mine: should answer with low <= change <= high, got change 0.1, low 0.2, high 0.3
    """
    try:
        change, low, high = (float(number) for number in answer)  # pyrefly: ignore[not-iterable] # anything may come
    except (TypeError, ValueError):
        shape = "should answer with three numbers: change, low, high"
        raise InputError(f"{name}: {shape}, got {_short(answer)}") from None
    if not np.isfinite([change, low, high]).all():
        raise InputError(f"{name}: should answer with finite numbers, got change {change}, low {low}, high {high}")
    if not low <= change <= high:
        problem = "should answer with low <= change <= high"
        raise InputError(f"{name}: {problem}, got change {change:g}, low {low:g}, high {high:g}")
    return Statistic(change, low, high)


def many(name: str, estimator: Estimator, tables: PotentialTables) -> Floats:
    """Return the changes, lower and upper ends of R draws, (R, 3); NaN where an estimator had too little data.

    Parameters
    ----------
    name : of the estimator, for errors
    estimator : anybody's
    tables : both courses, and the draws
    """
    fast = getattr(estimator, "estimate_many", None)
    if fast is not None:
        try:
            return _stacked(name, fast(tables.copy()), len(tables.treated))
        except NotEnoughDataError:
            return np.full((len(tables.treated), 3), np.nan)
    out = np.full((len(tables.treated), 3), np.nan)
    for draw, experiment in enumerate(experiments(tables)):
        with suppress(NotEnoughDataError):
            out[draw] = answered(name, estimator.estimate(experiment))
    return out


def experiments(tables: PotentialTables) -> Iterator[ExperimentTables]:
    """Yield what would be seen of each draw: the course without the feature, and that with it on its machines."""
    place = tables.machines.get_indexer(pd.Index(tables.off["machine"]))
    before = tables.before.assign(treated=False)
    for treated in tables.treated:
        with_it = treated[place]
        columns = {
            column: np.where(with_it, tables.on[column].to_numpy(), tables.off[column].to_numpy())
            for column in CHANGED
            if column in tables.off
        }
        rows = pd.concat([before, tables.off.assign(**columns, treated=with_it)], ignore_index=True)
        yield ExperimentTables(rows, tables.jobs.copy(), tables.confidence)


def _stacked(name: str, answer: object, draws: int) -> Floats:
    """Return what `estimate_many` answered as one array, (R, 3); NaN is too little data."""
    try:
        numbers = list(answer)  # pyrefly: ignore[bad-argument-type] # anything may come
        out = np.stack(numbers, axis=1).astype(np.float64)
    except (TypeError, ValueError):
        out = np.zeros(0)
    if out.shape != (draws, 3):
        problem = f"estimate_many should answer with three arrays of {draws} numbers: changes, lower and upper ends"
        raise InputError(f"{name}: {problem}, got {_short(answer)}")
    out[~np.isfinite(out).all(axis=1)] = np.nan
    change, low, high = out[:, 0], out[:, 1], out[:, 2]
    wrong = (low > change) | (change > high)
    if wrong.any():
        at = int(wrong.argmax())
        got = f"in draw {at} got change {change[at]:g}, low {low[at]:g}, high {high[at]:g}"
        raise InputError(f"{name}: estimate_many should answer with low <= change <= high, {got}")
    return out


def _short(answer: object) -> str:
    text = " ".join(repr(answer).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
