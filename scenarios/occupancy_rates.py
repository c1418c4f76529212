"""How fast a log's servers completed requests, and how many servers that shows."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from analysis.logs.hygiene import Cleaned
from analysis.occupancy.rates import LONE, Saturation, lone_demand, rates, servers_of

_ENOUGH = 10
"""Fewer completions leave a rate open by more than a factor of two."""
_MOST = 100
"""States that are told; servers are counted from all."""
_COLUMNS = ("jobs", "time_s", "completions", "rate_per_s", "low", "high")


def service_rates(log: Cleaned) -> dict[str, Any]:
    """Return completion rates by requests present, and the servers that they show in two ways, or why none.

    `servers_by_work` holds under any policy if demands are those of requests that were alone; `servers_by_rates` under
    processor sharing, or with exponential demands. Either may be wrong where its assumptions are.

    Parameters
    ----------
    log : requests

    Returns
    -------
    dict
        rates: of the first 100 states with at least 10 completions, jobs, time_s, completions, rate_per_s, low and high
        (per second); servers_by_work and servers_by_rates: servers (None: not told), rate_per_s, score, reason.

    Examples
    --------
    >>> arrival = np.repeat(10.0 * np.arange(40), 2)
    >>> made = service_rates(Cleaned(arrival, arrival + np.tile([1.0, 2.0], 40), (), 0, paired=True))
    >>> [(row["jobs"], row["rate_per_s"]) for row in made["rates"]], made["servers_by_work"]["servers"]
    ([(1, 1.0), (2, 1.0)], None)
    """
    table = rates(log.arrival_s, log.departure_s)
    known = table.loc[table["completions"] >= _ENOUGH, list(_COLUMNS)].head(_MOST)
    ways = {"servers_by_work": _by_work(log, table), "servers_by_rates": servers_of(table)}
    return {"rates": known.to_dict("records"), **{name: asdict(found) for name, found in ways.items()}}


def shown_instead(made: dict[str, Any], servers: int) -> int | None:
    """Return another number of servers that both ways agree on; None if there is none.

    Alone, rates were wrong in 17% of their answers about logs with other demands than exponential ones, and work in 4%;
    they were never wrong together.

    Parameters
    ----------
    made : as from `service_rates`
    servers : that the log is said to be made with

    Examples
    --------
    >>> shown_instead({"servers_by_work": {"servers": 2}, "servers_by_rates": {"servers": 2}}, servers=3)
    2
    """
    found: int | None = made["servers_by_work"]["servers"]
    return found if found == made["servers_by_rates"]["servers"] and found != servers else None


def _by_work(log: Cleaned, table: pd.DataFrame) -> Saturation:
    reason = "departures belong to no arrivals: nobody's demand is known"
    if log.paired:
        mean_s, error_s = lone_demand(log.arrival_s, log.departure_s)
        if np.isfinite(mean_s):
            return servers_of(table, mean_demand_s=mean_s, error_s=error_s)
        reason = f"fewer than {LONE} requests, or only the short ones, were seen to be served alone"
    return Saturation(None, np.nan, np.nan, reason)
