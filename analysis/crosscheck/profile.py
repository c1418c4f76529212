"""A profile beside counters, WSMeter, monitor and stays; and whether all of its visits and samples are there."""

import math

import numpy as np
import pandas as pd

from analysis.crosscheck.check import CONFIDENCE, FALSE_ALARM, Check, misses
from analysis.profiling.metrics import core_seconds, cpi
from analysis.statistics import student_quantile
from models.arrays import Ints

LEAST = 10
"""Visits of a job, and stays in WSMeter's sample, that an interval needs to be one."""
_PAIR = ["visit", "residence"]


def counted(counters: pd.DataFrame, instances: pd.DataFrame) -> "pd.Series[float]":
    """Return the cycles per instruction of every job over all of its stays, by job.

    Parameters
    ----------
    counters : residence, cycles, instructions; a row a stay and window
    instances : residence, job

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": [0, 1], "cycles": [4.0, 2.0], "instructions": [2.0, 1.0]})
    >>> counted(stays, pd.DataFrame({"residence": [0, 1], "job": [7, 7]})).to_dict()
    {7: 2.0}
    """
    job = counters["residence"].map(instances.set_index("residence")["job"])
    sums = counters.groupby(job)[["cycles", "instructions"]].sum()
    answer: pd.Series[float] = sums["cycles"] / sums["instructions"].where(sums["instructions"] > 0)
    return answer


def profiled(cycles: pd.DataFrame, instructions: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the cycles per instruction of every job as sampled in at least `LEAST` visits, with its interval.

    Parameters
    ----------
    cycles, instructions : application, visit, samples, value
    jobs : job, name

    Returns
    -------
    DataFrame
        job, cpi, low, high, standard_error, degrees (of freedom); by job.

    Examples
    --------
    >>> samples = pd.DataFrame({"application": "shop", "visit": range(12), "samples": 9, "value": [8, 9, 10, 11] * 3})
    >>> ratios = profiled(samples, samples.assign(value=5), pd.DataFrame({"job": [3], "name": ["shop"]}))
    >>> ratios[["job", "cpi"]].values.tolist()
    [[3.0, 1.9]]
    """
    applications = cpi(cycles, instructions, cluster="visit", confidence=CONFIDENCE)
    applications = applications[(applications["clusters"] >= LEAST) & np.isfinite(applications["standard_error"])]
    applications = applications.assign(
        name=applications["application"].astype(str), degrees=applications["clusters"] - 1
    )
    named = applications.merge(jobs[["job", "name"]], on="name").sort_values("job", ignore_index=True)
    columns: pd.DataFrame = named[["job", "cpi", "low", "high", "standard_error", "degrees"]]
    return columns


def sampled(counters: pd.DataFrame, instances: pd.DataFrame, drawn: Ints) -> pd.DataFrame:
    """Return WSMeter's 1 / IPC of every job with at least `LEAST` stays in a sample, with its interval.

    A job's performance is the mean of its stays', each weighing by its cycles, so that it is that of all its cycles.
    The interval is that of a mean of as many stays, drawn from the fleet's without replacement (Lee et al. 2018,
    WSMeter, section 4.3).

    Parameters
    ----------
    counters : residence, cycles, instructions; a row a stay and window
    instances : residence, job
    drawn : residences, drawn at random from each job's

    Returns
    -------
    DataFrame
        job, cpi, low, high, standard_error, degrees (of freedom); by job.

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": range(20), "cycles": 4.0, "instructions": [1.0, 2.0] * 10})
    >>> where = pd.DataFrame({"residence": range(20), "job": 0})
    >>> sampled(stays, where, np.arange(10))["cpi"].round(6).tolist()
    [2.666667]
    """
    sums = counters.groupby("residence", as_index=False)[["cycles", "instructions"]].sum()
    stays = sums[sums["cycles"] > 0].merge(instances[["residence", "job"]], on="residence")
    fleet = stays.groupby("job").size()
    here = stays[stays["residence"].isin(drawn)]
    by_job = here.groupby("job")
    sizes = by_job.size()
    ipc = by_job["instructions"].sum() / by_job["cycles"].sum()
    residual = (here["instructions"] - here["job"].map(ipc) * here["cycles"]) / here["job"].map(by_job["cycles"].sum())
    squares = (residual**2).groupby(here["job"]).sum()
    enough = sizes.index[sizes >= LEAST]
    count, ipc = sizes[enough], ipc[enough]
    error = np.sqrt(squares[enough] * count / (count - 1) * (1 - count / fleet[enough]))
    half = student_quantile(0.5 + CONFIDENCE / 2, np.asarray(count - 1, dtype=np.float64)) * error
    table = {"job": enough, "cpi": 1 / ipc, "low": 1 / (ipc + half), "high": 1 / np.maximum(ipc - half, 1e-300)}
    return pd.DataFrame(table | {"standard_error": error / ipc**2, "degrees": count - 1}).reset_index(drop=True)


def within(check: str, intervals: pd.DataFrame, counted: "pd.Series[float]") -> Check | None:
    """Return whether intervals hold what the counters say, but for as many as chance explains; None without jobs.

    Parameters
    ----------
    check : its name
    intervals : job, low, high
    counted : cycles per instruction by job

    Examples
    --------
    >>> intervals = pd.DataFrame({"job": [0, 1], "low": 1.0, "high": 2.0})
    >>> within("cpi", intervals, pd.Series({0: 1.5, 1: 2.5})).left
    1.0
    """
    value = intervals["job"].map(counted)
    wrong = int((~value.between(intervals["low"], intervals["high"])).sum())
    return misses(check, wrong, len(intervals)) if len(intervals) else None


def alike(check: str, left: pd.DataFrame, right: pd.DataFrame) -> Check | None:
    """Return whether two estimates of each job are no farther apart than both errors explain; None without jobs.

    Parameters
    ----------
    check : its name
    left, right : job, cpi, standard_error, degrees; of independent samples

    Examples
    --------
    >>> cpi = pd.DataFrame({"job": [0, 1], "cpi": [1.0, 2.0], "standard_error": 0.1, "degrees": 30})
    >>> alike("cpi", cpi, cpi.assign(cpi=[1.1, 3.0])).left
    1.0
    """
    both = left.merge(right, on="job", suffixes=("", "_right"))
    error = np.hypot(both["standard_error"], both["standard_error_right"])
    limit = student_quantile(0.5 + CONFIDENCE / 2, np.minimum(both["degrees"], both["degrees_right"]))
    wrong = int((~((both["cpi"] - both["cpi_right"]).abs() <= limit * error)).sum())
    return misses(check, wrong, len(both)) if len(both) else None


def seconds(
    visits: pd.DataFrame, cycles: pd.DataFrame, monitor: pd.DataFrame, machine_epochs: float | None = None
) -> Check | None:
    """Return whether the core-seconds of the profile are the monitor's, within its own interval; None: it has none.

    Parameters
    ----------
    visits : of the whole fleet, the columns of table `visits`
    cycles : visit, value
    monitor : busy_s
    machine_epochs : as of `core_seconds`

    Raises
    ------
    NotEnoughDataError
        If fewer than two visits answered.

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0, 1, 2], "machine": [0, 1, 2], "platform": "p", "start_s": 0.0, "weight": 10})
    >>> visits = visits.assign(length_s=300.0, status="ok", frequency_hz=2.0)
    >>> cycles = pd.DataFrame({"visit": [0, 1, 2], "value": [200, 210, 190]})
    >>> seconds(visits, cycles, pd.DataFrame({"busy_s": [301.0]})).holds
    True
    """
    profiled_s = core_seconds(visits, cycles, monitor, confidence=1.0 - FALSE_ALARM, machine_epochs=machine_epochs)
    if not math.isfinite(profiled_s.high):
        return None
    return Check("profile_core_seconds", profiled_s.core_s, profiled_s.monitor_s, profiled_s.high - profiled_s.core_s)


def visits_with_samples(
    visits: pd.DataFrame, processes: pd.DataFrame, samples: pd.DataFrame, rates: pd.DataFrame
) -> Check:
    """Return whether the visits that answered brought samples of cycles, but for those that chance left without.

    Parameters
    ----------
    visits : visit, collection, platform, status, frequency_hz; of the whole fleet
    processes : process, visit, cpu_s
    samples : process, event
    rates : collection, platform, event, period, duty

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0, 1], "collection": "fleet", "platform": "p", "status": "ok"})
    >>> rates = pd.DataFrame({"collection": "fleet", "platform": ["p"], "event": "cycles", "period": 100, "duty": 1})
    >>> ran = pd.DataFrame({"process": [0, 1], "visit": [0, 1], "cpu_s": 5.0})
    >>> samples = pd.DataFrame({"process": [0], "event": ["cycles"]})
    >>> check = visits_with_samples(visits.assign(frequency_hz=1e3), ran, samples, rates)
    >>> check.left, check.right, check.holds
    (1.0, 2.0, False)
    """
    periods = rates[rates["event"] == "cycles"].astype({"collection": str, "platform": str})
    answered = visits[visits["status"] == "ok"].astype({"collection": str, "platform": str})
    wanted = answered.merge(periods, on=["collection", "platform"])
    cpu_s = wanted["visit"].map(processes.groupby("visit")["cpu_s"].sum()).fillna(0.0)
    expected = cpu_s * wanted["frequency_hz"].fillna(0.0) / (wanted["period"] * wanted["duty"])
    busy = expected > 0
    sampled = samples.loc[samples["event"] == "cycles", "process"].unique()
    with_samples = processes.loc[processes["process"].isin(sampled), "visit"].unique()
    without = float(np.exp(-expected[busy]).sum())
    sampled_visits = int(wanted.loc[busy, "visit"].isin(with_samples).sum())
    from scipy.stats import poisson

    return Check("profile_visits", float(sampled_visits), float(busy.sum()), float(poisson.isf(FALSE_ALARM, without)))


def symbolised(raw: pd.DataFrame, samples: pd.DataFrame) -> Check:
    """Return whether symbolisation lost or made no sample, process by process and event by event.

    The estimates of Horvitz and Thompson from raw and from symbolised samples are then equal for every machine and
    hour, since all samples of an event and a process weigh the same.

    Parameters
    ----------
    raw : process, event, count; as collected
    samples : process, event, count; with symbols

    Returns
    -------
    Check
        ``profile_symbols``: samples that both have alike, and those of either, the greater number of each process and
        event.

    Examples
    --------
    >>> raw = pd.DataFrame({"process": [0, 0, 1], "event": "cycles", "count": [3, 4, 5]})
    >>> merged = pd.DataFrame({"process": [0, 1], "event": "cycles", "count": [7, 5]})
    >>> symbolised(raw, merged).holds, symbolised(raw[1:], merged).left, symbolised(raw, merged[:1]).left
    (True, 9.0, 7.0)
    """
    sums = [
        table.astype({"event": str}).groupby(["process", "event"])["count"].sum().rename(side)
        for table, side in ((raw, "raw"), (samples, "samples"))
    ]
    both = pd.concat(sums, axis=1).fillna(0).astype(np.int64)
    return Check("profile_symbols", float(both.min(axis=1).sum()), float(both.max(axis=1).sum()), 0.0)


def rounds(visits: pd.DataFrame, length_s: float, horizon_s: float, per_round: float) -> Check:
    """Return whether each round of the collector has its visits, each machine once at most, within the horizon.

    Parameters
    ----------
    visits : machine, start_s, length_s; of one collection that looks at all machines
    length_s : of a round; the last one may be cut short by the horizon's end
    horizon_s : until when there are rounds
    per_round : machines over the `one_in` of the collector: visits of a round are that, rounded up or down

    Returns
    -------
    Check
        ``profile_rounds``: rounds that are as they should be, and all, those outside the horizon included.

    Examples
    --------
    >>> visits = pd.DataFrame({"machine": [0, 1], "start_s": [0.0, 4200.0], "length_s": 300.0})
    >>> rounds(visits, 3600.0, 7200.0, 1.0).holds
    True
    >>> check = rounds(visits.assign(start_s=visits["start_s"] + 3600.0), 3600.0, 7200.0, 1.0)
    >>> check.left, check.right
    (1.0, 3.0)
    """
    start_s, end_s = visits["start_s"], visits["start_s"] + visits["length_s"]
    number = pd.Series(np.floor(start_s / length_s), name="round")
    every = pd.RangeIndex(round(np.ceil(horizon_s / length_s)))
    by_round = visits["machine"].groupby(number)
    count = by_round.size().reindex(every, fill_value=0)
    once = by_round.nunique().reindex(every, fill_value=0) == count
    outside = pd.Series((start_s < 0) | (end_s > horizon_s)).groupby(number).any()
    sound = count.between(np.floor(per_round), np.ceil(per_round)) & once & ~outside.reindex(every, fill_value=False)
    return Check("profile_rounds", float(sound.sum()), float(len(count.index.union(outside.index))), 0.0)


def residents(visits: pd.DataFrame, processes: pd.DataFrame, instances: pd.DataFrame, *, during: bool = False) -> Check:
    """Return whether visits that answered found just the stays that were on their machines at the time.

    Parameters
    ----------
    visits : visit, collection, machine, start_s, length_s, status; of all collections
    processes : visit, residence (below 0: of no stay)
    instances : residence, machine, start_s, end_s
    during : whether a visit finds who was there at any time of it; else who was there when it began

    Returns
    -------
    Check
        ``profile_residents``: pairs of a visit and a stay that both sides have, and those of either. A stay that was
        there and was not found counts for the fleet's own collection alone, as others may look for some jobs only.

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0], "collection": "fleet", "machine": 5, "start_s": 600.0, "status": "ok"})
    >>> visits["length_s"] = 300.0
    >>> samples = pd.DataFrame({"visit": [0, 0], "residence": [7, -1]})
    >>> where = pd.DataFrame({"residence": [7, 8], "machine": 5, "start_s": [0.0, 900.0], "end_s": [900.0, 1800.0]})
    >>> residents(visits, samples, where).holds
    True
    >>> check = residents(visits.assign(start_s=1200.0), samples, where)
    >>> check.left, check.right
    (0.0, 2.0)
    >>> residents(visits.assign(start_s=800.0), samples, where, during=True).right
    2.0
    """
    answered = visits[visits["status"].astype(str) == "ok"].astype({"collection": str})
    met = processes.loc[processes["residence"] >= 0, _PAIR].drop_duplicates()
    stays = instances[["residence", "machine", "start_s", "end_s"]]
    at = answered[["visit", "collection", "machine", "start_s", "length_s"]].rename(columns={"start_s": "at_s"})
    both = stays.merge(at, on="machine")
    until_s = both["at_s"] + both["length_s"]
    came = both["start_s"] < until_s if during else both["start_s"] <= both["at_s"]
    resident = both.loc[came & (both["at_s"] < both["end_s"]), [*_PAIR, "collection"]]
    pairs = met.merge(resident, on=_PAIR, how="outer", indicator="side")
    alike = int((pairs["side"] == "both").sum())
    missed = int(((pairs["side"] == "right_only") & (pairs["collection"] == "fleet")).sum())
    return Check("profile_residents", float(alike), float(alike + missed + (pairs["side"] == "left_only").sum()), 0.0)
