"""Is the whole profile there? The time that it says the fleet computed, samples of every visit and of every address."""

import numpy as np
import pandas as pd
from scipy.stats import norm, poisson

from analysis.crosscheck.check import FALSE_ALARM, Check
from analysis.profiling.metrics import core_seconds


def seconds(visits: pd.DataFrame, cycles: pd.DataFrame, monitor: pd.DataFrame) -> Check:
    """Return whether the core-seconds of the profile are the monitor's, within the profile's own interval.

    Parameters
    ----------
    visits : of the whole fleet, the columns of table `visits`
    cycles : visit, value
    monitor : busy_s

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
    found = core_seconds(visits, cycles, monitor)
    half = float(norm.isf(FALSE_ALARM / 2)) * found.standard_error
    return Check("profile_core_seconds", found.core_s, found.monitor_s, half)


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
    >>> seen = pd.DataFrame({"process": [0], "event": ["cycles"]})
    >>> made = visits_with_samples(visits.assign(frequency_hz=1e3), ran, seen, rates)
    >>> made.left, made.right, made.holds
    (1.0, 2.0, False)
    """
    periods = rates[rates["event"] == "cycles"].astype({"collection": str, "platform": str})
    answered = visits[visits["status"] == "ok"].astype({"collection": str, "platform": str})
    asked = answered.merge(periods, on=["collection", "platform"])
    cpu_s = asked["visit"].map(processes.groupby("visit")["cpu_s"].sum()).fillna(0.0)
    expected = cpu_s * asked["frequency_hz"].fillna(0.0) / (asked["period"] * asked["duty"])
    busy = expected > 0
    sampled = samples.loc[samples["event"] == "cycles", "process"].unique()
    seen = processes.loc[processes["process"].isin(sampled), "visit"].unique()
    without = float(np.exp(-expected[busy]).sum())
    there = int(asked.loc[busy, "visit"].isin(seen).sum())
    return Check("profile_visits", float(there), float(busy.sum()), float(poisson.isf(FALSE_ALARM, without)))


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
        each.astype({"event": str}).groupby(["process", "event"])["count"].sum().rename(side)
        for each, side in ((raw, "raw"), (samples, "samples"))
    ]
    both = pd.concat(sums, axis=1).fillna(0).astype(np.int64)
    return Check("profile_symbols", float(both.min(axis=1).sum()), float(both.max(axis=1).sum()), 0.0)
