"""Another number of servers, which served in turn: it explains a log far better than the said one."""

import numpy as np
import pandas as pd

from analysis.occupancy.identification import identify
from analysis.occupancy.logs.log import Cleaned, counted
from analysis.occupancy.logs.rates import ServersTest
from models.queues.policies import PolicyName

WAITED = 100
"""Fewer arrivals that met all servers busy, or departures while somebody waited, tell no number from another."""
LOOKED_AT = 6_000
"""Requests from the middle of the log that candidates are compared on."""
GAIN, GAIN_EACH = 50.0, 0.1
"""So much likelier, as a natural logarithm, and so much for each departure while somebody waited, must first come first
served be on another number of servers than any policy on the said one."""
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
    if test.verdict == "contradicted" or not log.paired or log.coarse or _waited(log, servers) < WAITED:
        return test
    candidates = identify(
        log.arrival_s,
        log.departure_s,
        policies=_RIVALS,
        expected_servers=servers,
        tick_s=log.tick_s or None,
        most=LOOKED_AT,
    ).candidates
    number = _other(candidates, servers)
    if number is None:
        return test
    on = counted(number, "server")
    reason = f"first come first served on {on} explains the log far better than any policy on {servers}"
    return ServersTest("contradicted", reason)


def _waited(log: Cleaned, servers: int) -> int:
    """Return how many arrivals met all servers busy."""
    gone = np.sort(log.departure_s[~np.isnan(log.departure_s)])
    before = np.searchsorted(gone, np.sort(log.arrival_s), side="right")
    return int(np.count_nonzero(np.arange(len(before)) - before >= servers))


def _other(candidates: pd.DataFrame, servers: int) -> int | None:
    """Return the servers of the likeliest candidate, if that serves in turn and is likely enough."""
    own = candidates["servers"].eq(servers)
    others = candidates[~own & candidates["crowded"].ge(WAITED)]
    if others.empty or not own.any():
        return None
    best = others.iloc[int(others["log_likelihood"].to_numpy().argmax())]
    gain = float(best["log_likelihood"]) - float(candidates.loc[own, "log_likelihood"].max())
    clear = gain >= max(GAIN, GAIN_EACH * float(best["crowded"]))
    return int(best["servers"]) if best["policy"] == "fcfs" and clear else None
