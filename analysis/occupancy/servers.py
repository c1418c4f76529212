"""Another number of servers, which served in turn: it explains a log far better than the said one."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.occupancy.identification import MISFITS, identify
from analysis.occupancy.logs.log import Cleaned, counted
from analysis.occupancy.logs.rates import ServersTest, conserves_work
from models.queues.policies import PolicyName

WAITED = 100
"""Fewer arrivals that met all servers busy, or departures while somebody waited, tell no number from another."""
LOOKED_AT = 6_000
"""Requests from the middle of the log that candidates are compared on."""
GAIN, GAIN_EACH = 50.0, 0.1
"""So much likelier, as a natural logarithm, and so much for each departure while somebody waited, must first come first
served be on another number of servers than any policy on the said one."""
NEAR = 2.0
"""Numbers that are further from the said one than by this factor show in the completion rates, if they are right."""
VARY = 0.5
"""Demands of a smaller coefficient of variation leave in turn under any policy, so their order tells no policy."""
_RIVALS: tuple[PolicyName, ...] = ("fcfs", "ps", "srpt", "lcfs_pr")


def said_servers(log: Cleaned, test: ServersTest, servers: int) -> ServersTest:
    """Return a verdict on the number of servers after first come first served on other numbers was asked, too.

    Servers that take requests in turn leave their number in the order and the times of departures. It shows whether
    demands follow the load or not, which completion rates do not survive. Processor sharing leaves no such trace:
    demands that are longer in busy times look like fewer servers, so it is not asked.

    Parameters
    ----------
    log : requests
    test : verdict of `analysis.occupancy.logs.rates.servers_test`
    servers : that the log is said to be made with

    Returns
    -------
    ServersTest
        The verdict as it was, or that the number is contradicted.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arrival, free, departure = rng.exponential(1.0, 1000).cumsum(), [0.0, 0.0], []
    >>> for time, demand in zip(arrival, rng.exponential(1.6, 1000), strict=True):
    ...     free[0] = max(free[0], time) + demand
    ...     departure.append(free[0])
    ...     free.sort()
    >>> log = Cleaned(arrival, np.array(departure), (), 0, paired=True)
    >>> said_servers(log, ServersTest("cannot tell", ""), 3).reason
    'first come first served on 2 servers explains the log far better than any policy on 3'
    """
    if test.verdict == "contradicted" or not log.paired or log.coarse:
        return test
    if np.count_nonzero(_met(log) >= servers) < WAITED:
        return test
    candidates = identify(
        log.arrival_s,
        log.departure_s,
        policies=_RIVALS,
        expected_servers=servers,
        tick_s=log.tick_s or None,
        most=LOOKED_AT,
        simulate=False,
    ).candidates
    number = _other(candidates, servers)
    if number is None or _contradicted(log, number, servers):
        return test
    on = counted(number, "server")
    reason = f"first come first served on {on} explains the log far better than any policy on {servers}"
    return ServersTest("contradicted", reason)


def _met(log: Cleaned) -> npt.NDArray[np.int64]:
    """Return how many requests each one met."""
    order = np.argsort(log.arrival_s, kind="stable")
    gone = np.sort(log.departure_s[~np.isnan(log.departure_s)])
    met = np.empty(len(order), dtype=np.int64)
    met[order] = np.arange(len(order)) - np.searchsorted(gone, log.arrival_s[order], side="right")
    return met


def _contradicted(log: Cleaned, servers: int, claimed: int) -> bool:
    """Return whether demands that are known without a policy contradict a number of servers, too, or tell nothing.

    Where there are too few of them to compare, and they vary little, requests leave in turn under any policy.
    """
    comparisons = conserves_work(log.arrival_s, log.departure_s, servers)
    if comparisons:
        return any(comparison.against for comparison in comparisons)
    free = _met(log) < min(servers, claimed)
    stay_s = (log.departure_s - log.arrival_s)[free]
    stay_s = stay_s[~np.isnan(stay_s)]
    return len(stay_s) == 0 or float(stay_s.std()) < VARY * float(stay_s.mean())


def _other(candidates: pd.DataFrame, servers: int) -> int | None:
    """Return the servers of the likeliest candidate, if that serves in turn and is likely enough."""
    own = candidates["servers"].eq(servers)
    others = candidates[~own & candidates["crowded"].ge(WAITED)]
    if others.empty or not own.any():
        return None
    best = others.iloc[int(others["log_likelihood"].to_numpy().argmax())]
    gain = float(best["log_likelihood"]) - float(candidates.loc[own, "log_likelihood"].max())
    number = int(best["servers"])
    near = abs(number - servers) == 1 or max(number / servers, servers / number) < NEAR
    clear = near and best["misfits"] <= MISFITS and gain >= max(GAIN, GAIN_EACH * float(best["crowded"]))
    return number if best["policy"] == "fcfs" and clear else None
