"""New processors for a service: what WSMeter estimates from a trial, what the cross-platform model predicts.

Both speak of instructions per CPU second, new over old: one from the stays on the few machines that have the new
processors, the other from the old machines' logs and profile alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.crosscheck.check import FALSE_ALARM, Check
from analysis.statistics import NotEnoughDataError, student_quantile
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.measurements import measurements
from analysis.wsmeter.summaries import CodedMeasurements, Current, job_statistics

if TYPE_CHECKING:
    from analysis.crossplatform.evidence import PredictionMethod, ServiceLog
    from models.platforms import Platform

INTERVAL_S = 1800.0
"""Length of the intervals of the log that predictions are made from, or as many whole epochs as go into it, at least
one: a mix is what came in one."""
_LEVELS = ("l1_misses", "l2_misses")


@dataclass(frozen=True, slots=True)
class Change:
    """A relative change with an interval; low and high are the change itself where it is known exactly.

    Examples
    --------
    >>> Change(0.3, 0.25, 0.4).reach(0.35), Change(0.3, 0.25, 0.4).reach(0.2)
    (0.10000000000000003, 0.04999999999999999)
    """

    change: float
    low: float
    high: float

    def reach(self, other: float) -> float:
        """Return how far the interval goes towards another value."""
        return self.high - self.change if other > self.change else self.change - self.low


def agree(check: str, left: Change, right: Change) -> Check:
    """Return whether two changes are no farther apart than both intervals together explain.

    Parameters
    ----------
    check : its name
    left, right : of independent sources

    Examples
    --------
    >>> agree("upgrade", Change(0.3, 0.27, 0.33), Change(0.35, 0.31, 0.4)).payload()["holds"]
    True
    """
    reach = np.hypot(left.reach(right.change), right.reach(left.change))
    return Check(check, left.change, right.change, float(reach))


def tried(counters: pd.DataFrame, instances: pd.DataFrame, jobs: pd.DataFrame, old: str, new: str) -> Change | None:
    """Return WSMeter's estimate of a change of platform, from machines that have it; None from too few stays.

    Parameters
    ----------
    counters : a row a stay and window; windows are added up
    instances : the columns of the table, with the platform of each stay's machine
    jobs : job, quota, instances
    old, new : names of platforms

    Returns
    -------
    Change
        Of the quota-weighted instructions per CPU second of the jobs with enough stays on both (Lee et al. 2018). Its
        interval is of machines: what runs on one shares its clock, memory and cache, which WSMeter's own leaves out.

    Examples
    --------
    >>> stays = {"residence": range(12), "window": "all", "instructions": [2.0] * 6 + [3.0] * 5 + [2.9], "cpu_s": 1.0}
    >>> where = {"residence": range(12), "job": 0, "machine": range(12), "quota_vcpu": 1.0, "rack": 0, "feature": False}
    >>> where = pd.DataFrame({**where, "instance": range(12), "platform": ["a"] * 6 + ["b"] * 6})
    >>> fleet = pd.DataFrame({"job": [0], "quota": [12.0], "instances": [12]})
    >>> round(tried(pd.DataFrame({**stays, "wall_s": 1.0}), where, fleet, "a", "b").change, 3)
    0.492
    """
    sides = [CodedMeasurements.of(side) for side in _sides(counters, instances, old, new)]
    before, after = (side.summary() for side in sides)
    estimator = WSMeter(current_is="sample")
    try:
        change = estimator.estimate(before, after, jobs).change
        error = np.hypot(
            _jackknifed(sides[0], lambda left: estimator.estimate(left, after, jobs).change),
            _jackknifed(sides[1], lambda left: estimator.estimate(before, left, jobs).change),
        )
    except NotEnoughDataError:
        return None
    reach = float(error * -student_quantile(FALSE_ALARM / 2, min(side.machines for side in sides) - 1))
    return Change(change, change - reach, change + reach)


def _jackknifed(side: CodedMeasurements, change: Callable[[Current], float]) -> float:
    """Return the standard error that the machines of one side make: the estimate without each of them (Tukey 1958)."""
    if side.machines < 2:
        raise NotEnoughDataError(2, side.machines, "machines")
    machines = pd.unique(side.machine)
    without = np.array([change(side.summary(np.flatnonzero(side.machine != machine))) for machine in machines])
    return float(np.sqrt((side.machines - 1) * without.var()))


def covered(counters: pd.DataFrame, instances: pd.DataFrame, jobs: pd.DataFrame, old: str, new: str) -> pd.DataFrame:
    """Return the jobs that the estimate of `tried` speaks of: those with enough stays on both platforms.

    Parameters
    ----------
    counters, instances, jobs, old, new : as for `tried`
    """
    counts = [side.groupby("job").size() for side in _sides(counters, instances, old, new)]
    enough = [count.index[count >= WSMeter().min_instances] for count in counts]
    return jobs[jobs["job"].isin(enough[0].intersection(enough[1]))]


def known(before: pd.DataFrame, after: pd.DataFrame, instances: pd.DataFrame, jobs: pd.DataFrame) -> Change:
    """Return the true change of the quota-weighted instructions per CPU second of the jobs.

    Parameters
    ----------
    before, after : counters of the same stays without and with the new processors; windows are added up
    instances : the columns of the table, of the stays that count
    jobs : job, quota, instances

    Examples
    --------
    >>> stays = {"residence": range(4), "window": "all", "instructions": 2.0, "cpu_s": 1.0, "wall_s": 1.0}
    >>> where = {"residence": range(4), "job": 0, "machine": range(4), "quota_vcpu": 1.0, "rack": 0, "feature": False}
    >>> where, fleet = pd.DataFrame({**where, "instance": 0}), pd.DataFrame({"job": [0], "quota": 12.0})
    >>> off = pd.DataFrame(stays)
    >>> known(off, off.assign(instructions=3.0), where, fleet)
    Change(change=0.5, low=0.5, high=0.5)
    """
    quota = jobs.set_index("job")["quota"]
    old, new = (job_statistics(_speeds(part, instances)).set_index("job")["mean"] for part in (before, after))
    weight = quota.reindex(old.index.intersection(new.index))
    change = float((weight * new).sum() / (weight * old).sum() - 1)
    return Change(change, change, change)


def _sides(counters: pd.DataFrame, instances: pd.DataFrame, old: str, new: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the measured stays on either platform."""
    measured = _speeds(counters, instances)
    platform = measured["residence"].map(instances.set_index("residence")["platform"].astype(str))
    before, after = (measured[(platform == name).to_numpy()].reset_index(drop=True) for name in (old, new))
    return before, after


def _speeds(counters: pd.DataFrame, instances: pd.DataFrame) -> pd.DataFrame:
    """Return the measurement table of instructions per CPU second, windows added up."""
    sums = counters.drop(columns="window").groupby("residence", as_index=False).sum().assign(window="all")
    return measurements(sums, instances, "ips")


def log_of(
    requests: pd.DataFrame, epochs: pd.DataFrame, misses: "pd.Series[float]", platform: "Platform", epoch_s: float
) -> "ServiceLog":
    """Return the log of a service on one platform, as if its stays there shared one machine.

    Parameters
    ----------
    requests : type, arrival_s, departure_s; of stays on the platform
    epochs : epoch, cpu_s, instructions; of the same
    misses : per instruction, of cache levels ``l1_misses`` and ``l2_misses``, as profiled there
    platform : spec sheet
    epoch_s : length of an epoch

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> requests = pd.DataFrame({"type": ["page"], "arrival_s": [10.0], "departure_s": [12.0]})
    >>> counted = pd.DataFrame({"epoch": [0], "cpu_s": [2.0], "instructions": [4e9]})
    >>> misses = pd.Series({"l1_misses": 0.04, "l2_misses": 0.02})
    >>> log_of(requests, counted, misses, PLATFORMS["haswell_2698v3"], 300.0).misses
    array([[1.6e+08, 8.0e+07]])
    """
    from analysis.crossplatform.evidence import ServiceLog

    whole = max(int(INTERVAL_S / epoch_s + 1e-9), 1)
    interval_s = whole * epoch_s
    sums = epochs.groupby(epochs["epoch"] // whole)[["cpu_s", "instructions"]].sum()
    interval = (requests["arrival_s"] // interval_s).astype(np.int64)
    counts = pd.crosstab(interval, requests["type"].astype(str)).reindex(sums.index, fill_value=0)
    response_s = (requests["departure_s"] - requests["arrival_s"]).groupby(interval).mean().reindex(sums.index)
    instructions = sums["instructions"].to_numpy(np.float64)
    return ServiceLog(
        types=tuple(map(str, counts.columns)),
        interval_s=interval_s,
        start_s=sums.index.to_numpy(np.float64) * interval_s,
        counts=counts.to_numpy(np.float64),
        instructions=instructions,
        misses=np.asarray(instructions[:, None] * misses[list(_LEVELS)].to_numpy(np.float64), dtype=np.float64),
        response_time_s=response_s.to_numpy(np.float64),
        utilisation=sums["cpu_s"].to_numpy(np.float64) / (interval_s * platform.vcpus),
    )


def predicted(log: "ServiceLog", old: "Platform", new: "Platform", method: "PredictionMethod") -> Change:
    """Return what a method says of a change of platform, from the log of the old one, with its 90% interval.

    Parameters
    ----------
    log : of the service on the old platform
    old, new : spec sheets
    method : of `analysis.crossplatform.methods`; without intervals low and high are NaN

    Raises
    ------
    ValueError
        If the log does not suffice.

    Examples
    --------
    >>> from analysis.crossplatform.methods import METHODS
    >>> from models.platforms import PLATFORMS
    >>> old, new = PLATFORMS["haswell_2698v3"], PLATFORMS["cascadelake_8280"]
    >>> at_s = 1800.0 * np.arange(3)
    >>> requests = pd.DataFrame({"type": "page", "arrival_s": at_s + 10.0, "departure_s": at_s + 12.0})
    >>> counted = pd.DataFrame({"epoch": [0, 6, 12], "cpu_s": 2.0, "instructions": 4e9})
    >>> log = log_of(requests, counted, pd.Series({"l1_misses": 0.04, "l2_misses": 0.02}), old, 300.0)
    >>> round(predicted(log, old, new, METHODS[0]).change, 3)
    0.174
    """
    from analysis.crossplatform.evidence import Evidence

    fitted = method.fit(Evidence(old.name, {old.name: log}, {platform.name: platform for platform in (old, new)}))
    mean = log.counts.mean(axis=0, keepdims=True)
    before, after = (fitted(platform, mean, log.interval_s) for platform in (old, new))
    speed = float(before.service_time_s[0]) * old.vcpus / new.vcpus
    return Change(
        speed / float(after.service_time_s[0]) - 1,
        speed / float(after.service_high_s[0]) - 1,
        speed / float(after.service_low_s[0]) - 1,
    )


def advice_pays(realised: float, promised: float) -> Check:
    """Return whether jobs that were moved save something.

    A promise is made at the cycles per instruction that jobs have beside their present neighbours. Neighbours move too,
    so how much of it is kept is the fleet's to say; that it is a saving at all is the second criterion of row
    `world/affinity`, whose first one asks for half of the promise. Jobs that are moved for nothing just pass, so the
    check only decides whether there is a loss.

    Parameters
    ----------
    realised, promised : shares of the time that are saved

    Examples
    --------
    >>> advice_pays(0.03, 0.04).holds, advice_pays(0.09, 0.04).holds, advice_pays(-0.01, 0.04).holds
    (True, True, False)
    """
    return Check("affinity_moved", realised, promised, max(promised, realised - promised))
