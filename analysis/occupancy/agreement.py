"""Whether demands reconstructed under a policy agree with what holds under any policy."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.stats import CensoredData, ecdf, ks_2samp, logrank, spearmanr

from analysis.occupancy.inversion import Reconstruction
from analysis.occupancy.pairs import Pairs
from models.arrays import Bools, Floats, Ints

LEVEL = 0.003
"""Level of each of three tests: all together refuse less than 1% of the true."""
MATERIAL = 0.05
"""Smaller differences are not held against a policy: no real server is one to the last digit."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One test: what it compares, how large the difference is, and how rare one so large is under the true policy."""

    name: str
    size: float
    """A correlation, or a distance of distribution functions; between −1 and 1."""
    p_value: float

    @property
    def against(self) -> bool:
        """Whether the difference is neither chance nor small."""
        return self.p_value < LEVEL and abs(self.size) >= MATERIAL


def agreement(made: Reconstruction, events: Pairs, servers: int) -> tuple[Finding, ...]:
    """Return what speaks against demands: requests do not know what they will meet when they arrive.

    * congestion: rank correlation of demand with the number of requests met on arrival (Spearman 1904);
    * waiting: distance of the demands of those that met all servers busy from the others' (Kolmogorov-Smirnov);
    * alone: demands of requests that met nobody, until the next arrival known without any policy (Kaplan and Meier
      1958), against the others' by the log-rank test (Mantel 1966); the size is the distance where the former is known.

    A test without at least 10 requests on either side is left out.

    Parameters
    ----------
    made, events : a log under a policy, and its events
    servers : k of the policy

    Examples
    --------
    >>> from analysis.occupancy.inversion import reconstruct
    >>> from analysis.occupancy.pairs import pairs
    >>> log = np.repeat(10.0 * np.arange(20), 2), np.repeat(10.0 * np.arange(20), 2) + np.tile([1.0, 2.0], 20)
    >>> [(each.name, each.size, each.against) for each in agreement(reconstruct("fcfs", *log, 1), pairs(*log), 1)]
    [('waiting', 0.0, False)]
    """
    demand_s = made.demand_s[events.order]
    known = (made.fits & made.finished)[events.order]
    met = met_on_arrival(events)
    findings = []
    if known.sum() >= 10 and np.ptp(met[known]) > 0 and np.ptp(demand_s[known]) > 0:
        ranks = spearmanr(demand_s[known], met[known])
        findings.append(Finding("congestion", float(ranks.statistic), float(ranks.pvalue)))
    some, others = demand_s[known & (met >= servers)], demand_s[known & (met < servers)]
    if min(len(some), len(others)) >= 10:
        apart = ks_2samp(some, others, method="asymp")
        findings.append(Finding("waiting", float(apart.statistic), float(apart.pvalue)))
    return (*findings, *_alone(demand_s, known, met, events))


def met_on_arrival(events: Pairs) -> Ints:
    """Return how many requests each one met when it arrived, in order of arrival.

    Examples
    --------
    >>> from analysis.occupancy.pairs import pairs
    >>> met_on_arrival(pairs(np.array([0.0, 1.0, 4.0]), np.array([3.0, 4.0, 5.0])))
    array([0, 1, 0])
    """
    met = np.zeros(len(events.order), dtype=np.int64)
    arrivals = events.job >= 0
    met[events.job[arrivals]] = events.present[arrivals] - 1
    return met


def undisturbed(events: Pairs) -> tuple[Floats, Bools]:
    """Return for each request, in order of arrival, how long nothing happens after it arrives, and if it then leaves.

    Examples
    --------
    >>> from analysis.occupancy.pairs import pairs
    >>> undisturbed(pairs(np.array([0.0, 1.0, 4.0]), np.array([3.0, 4.0, 5.0])))
    (array([1., 2., 1.]), array([False, False,  True]))
    """
    length_s, leaves = np.zeros(len(events.order)), np.zeros(len(events.order), dtype=np.bool_)
    _undisturbed(events.time_s, events.job, length_s, leaves)
    return length_s, leaves


@njit(cache=True)
def _undisturbed(time_s: Floats, job: Ints, length_s: Floats, leaves: Bools) -> None:
    for event in range(len(job) - 1):
        i = job[event]
        if i >= 0:
            length_s[i], leaves[i] = time_s[event + 1] - time_s[event], job[event + 1] == -1 - i


def _alone(demand_s: Floats, known: Bools, met: Ints, events: Pairs) -> tuple[Finding, ...]:
    """Return the comparison with the requests that met nobody."""
    length_s, leaves = undisturbed(events)
    lone, others = met == 0, demand_s[known & (met > 0)]
    if min(int((lone & leaves).sum()), len(others)) < 10:
        return ()
    alone = CensoredData(uncensored=length_s[lone & leaves], right=length_s[lone & ~leaves])
    curve, rest = ecdf(alone).cdf, ecdf(others).cdf
    at = curve.quantiles[curve.quantiles <= length_s[lone].max()]
    distance = float(np.abs(curve.evaluate(at) - rest.evaluate(at)).max())
    return (Finding("alone", distance, float(logrank(alone, CensoredData(others)).pvalue)),)
