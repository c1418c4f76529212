"""Hardware counters of a service: what each job executed is counted in the intervals in which it was in service."""

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from sim.services.sharing import SharedJobs


def count(shared: SharedJobs, demand_s: Floats, interval: Ints, amounts: Floats) -> Floats:
    """Return what all jobs did in each interval, each spread over its service in proportion to what it attained there.

    A job that a full machine serves late is counted late. So counts of arrivals and counters fall apart when a machine
    is saturated (Stewart et al. 2008, table 3, last column). What is done after the last interval is not counted.

    Parameters
    ----------
    shared : N jobs in n intervals
    demand_s : (N,) array, seconds
    interval : (N,) interval of arrival
    amounts : (N, M) array, M counters of each job

    Returns
    -------
    (n, M) array
    """
    return _spread(shared.arrival_level_s, demand_s, interval, shared.edge_level_s, amounts)


@njit(cache=True)
def _spread(level_s: Floats, demand_s: Floats, interval: Ints, edge_level_s: Floats, amounts: Floats) -> Floats:
    """Add each job's amounts to the intervals between whose edges its levels lie."""
    counted = np.zeros((edge_level_s.size - 1, amounts.shape[1]))
    for j in range(level_s.size):
        low, high, i = level_s[j], level_s[j] + demand_s[j], interval[j]
        while True:
            end = edge_level_s[i + 1]
            share = 1.0 if high <= low else (min(high, end) - low) / demand_s[j]
            for m in range(amounts.shape[1]):
                counted[i, m] += share * amounts[j, m]
            if end >= high or i + 2 == edge_level_s.size:
                break
            low, i = end, i + 1
    return counted


def sample(counted: Floats, events: int, rng: np.random.Generator) -> Floats:
    """Return counters as a sampling profiler knows them: an interrupt every so many events, each worth that many.

    Which events meet an interrupt is left to chance, so the number of interrupts is Poisson (OProfile in the paper
    samples every 24,000 events; Stewart et al. 2008, section 3.3).

    Parameters
    ----------
    counted : array of non-negative numbers of events
    events : per sample, at least 1
    """
    return np.asarray(events * rng.poisson(counted / events), dtype=np.float64)
