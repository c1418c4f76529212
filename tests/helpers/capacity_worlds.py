"""Many small workloads, each served with k and with k' servers, beside every bound on the second from the first.

`python -m tests.helpers.capacity_worlds 100000` looks at so many workloads for every policy and change, minutes in all,
and counts the busy periods in which queueing exceeds a bound.
"""

import sys

import numpy as np

from analysis.occupancy.bounds import busiest, busy_periods, most_queueing, sums
from analysis.occupancy.curve import curve
from models.queues.serve import serve

PER_JOB = ("fcfs", "lcfs_pr", "priority", "ps", "fb")
"""Policies under which no job is ever further behind with more servers: all bounds hold."""
MONOTONIC = (*PER_JOB, "srpt")
"""Policies with monotonic completions: all but B3 hold."""
CHANGES = ((1, 2), (1, 3), (2, 3), (2, 5), (3, 4))
MOST_JOBS, APART_S = 9, 64.0
"""Jobs in a workload, and seconds between the starts of two: each is long over when the next begins."""


def workloads(count, seed, tie=0.25):
    """Arrivals, demands and priorities of small workloads far apart in one array; times are multiples of `tie`."""
    rng = np.random.default_rng(seed)
    jobs = rng.integers(2, MOST_JOBS + 1, count)
    which = np.repeat(np.arange(count), jobs)
    spread = rng.choice([1.0, 3.0, 8.0], count)[which]
    large = rng.choice([1.0, 4.0], len(which), p=[0.6, 0.4])
    arrival = which * APART_S + np.floor(rng.random(len(which)) * spread / tie) * tie
    demand = np.maximum(np.ceil(rng.random(len(which)) * large / tie), 1) * tie
    order = np.argsort(arrival, kind="stable")
    return arrival[order], demand[order], rng.integers(0, 3, len(which))


def served(policy, load, servers, speed=1.0):
    """Departures of the workloads under a policy."""
    arrival, demand, priority = load
    return serve(
        policy, arrival, demand / speed, servers, priority=priority if policy == "priority" else None
    ).departure_s


def excesses(policy, load, servers, to, speed=1.0):
    """By how much queueing with the other servers exceeds B0, B1, B2 and B3 in each busy period: (4, n) seconds."""
    arrival, demand, _ = load
    seen = curve(arrival, served(policy, load, servers))
    periods, width = busy_periods(seen), np.diff(seen.time_s)
    of = np.searchsorted(seen.time_s[periods.first], arrival, "right") - 1
    waiting = served(policy, load, to, speed) - arrival - demand / speed
    queueing = np.bincount(of, waiting, len(periods.first))
    allowed = np.minimum(seen.jobs, servers) / speed
    bounds = (
        sums(periods, width * np.maximum(seen.jobs - to, 0)),
        busiest(seen, periods, to, sums(periods, width * allowed) / to),
        most_queueing(seen, periods, to, allowed),
        most_queueing(seen, periods, to, allowed, suffixes=True),
    )
    return queueing - np.array(bounds)


def main(count):
    """Print how many busy periods break each bound, for every policy and change of servers."""
    for policy in MONOTONIC:
        load = workloads(count, seed=2008)
        for servers, to in CHANGES:
            broken = np.count_nonzero(excesses(policy, load, servers, to) > 1e-8, axis=1)
            print(f"{policy:8} {servers} to {to}:", *(f"B{i} {x}" for i, x in enumerate(broken)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
