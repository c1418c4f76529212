"""How fast a log's servers completed requests, and how many servers that shows."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from analysis.occupancy.logs.conservation import conserves_work
from analysis.occupancy.logs.hygiene import Cleaned
from analysis.occupancy.rates import LONE, Saturation, lone_demand, rates, servers_of

COARSE = "stamps are too coarse"
"""Why servers are not tested where a finding says so already."""
_ENOUGH = 10
"""Fewer completions leave a rate open by more than a factor of two."""
_MOST = 100
"""States that are told; servers are counted from all."""
_TWICE, _THRICE = 2, 3
"""The rates contradict a number of servers from so large a factor on: where the work excludes it too, and without."""
_LOOKED_AT = 200_000
"""Requests from the beginning of the log that the test of servers looks at, as `clean` does."""
_BLAMES = ("more servers than", "servers idle while requests wait")
"""How findings about the number of servers begin."""
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
        (per second); servers_by_work and servers_by_rates: servers (None: not told), rate_per_s, score, reason, and the
        least and most servers that are not ruled out (None: nothing is known; as many as were present, or more).

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


def contradiction(made: dict[str, Any], servers: int) -> str:
    """Return how completion rates contradict a number of servers; empty if they do not, or not strongly.

    They do if they rule out every number less than twice as large, or more than half as large, and the work rules this
    number out as well; where the work is not known, from a factor of three on. Of 5,040 simulated logs with the right
    number (fcfs, ps, srpt and lcfs on 1 to 16 servers, constant to hyperexponential demands, which followed the load in
    two thirds of the logs) 23 were contradicted, all under srpt: it completes the faster, the more requests it can
    choose from.

    Parameters
    ----------
    made : as from `service_rates`
    servers : that the log is said to be made with

    Examples
    --------
    >>> both = {"servers_by_work": {"least": 4, "most": 5}, "servers_by_rates": {"least": 4, "most": 4}}
    >>> contradiction(both, servers=2)
    'completions per second still grow with more than 2 requests present, as those of 4 or more servers do'
    >>> contradiction(both, servers=3)
    ''
    """
    work = made["servers_by_work"]
    if work["least"] is not None and work["least"] <= servers <= (work["most"] or servers):
        return ""
    return _off(made["servers_by_rates"], servers, _THRICE if work["least"] is None else _TWICE)


def _off(rates: dict[str, Any], servers: int, factor: int) -> str:
    """Return that the rates are those of more or fewer servers by at least a factor; empty if they are not."""
    if rates["least"] is not None and rates["least"] >= factor * servers:
        return (
            f"completions per second still grow with more than {servers} request{'' if servers == 1 else 's'} present, "
            f"as those of {rates['least']} or more servers do"
        )
    if rates["most"] is not None and factor * rates["most"] <= servers:
        fewer = f"{rates['most']} server{'' if rates['most'] == 1 else 's'} or fewer do"
        return f"completions per second stop growing long before {servers} requests are present, as those of {fewer}"
    return ""


def servers_test(log: Cleaned, made: dict[str, Any], servers: int, peak: int) -> dict[str, str]:
    """Return whether a log contradicts the number of servers that it is said to be made with, or why nothing tells.

    Parameters
    ----------
    log : requests
    made : as from `service_rates`
    servers : that the log is said to be made with
    peak : most requests present

    Returns
    -------
    dict
        verdict: "contradicted", "not contradicted", "cannot tell" if only completion rates speak against the number, or
        "not tested"; reason: by what, or why not.

    Examples
    --------
    >>> few = Cleaned(np.array([0.0, 1.0]), np.array([3.0, 4.0]), (), 0, paired=True)
    >>> servers_test(few, service_rates(few), servers=1, peak=2)["verdict"]
    'not tested'
    """
    other, against = shown_instead(made, servers), contradiction(made, servers)
    if other is not None:
        against = f"completions show {other} servers, not {servers}: both the work done and the rates do"
    if against:
        return {"verdict": "contradicted", "reason": against}
    for finding in log.findings:
        if finding.name.startswith(_BLAMES):
            return {"verdict": "contradicted", "reason": f"{finding.name}: {finding.evidence}"}
    untested = _untested(log, servers, peak)
    if not untested:
        reason = f"by the law {servers} servers spent as long on a request as those need that never waited"
        return {"verdict": "not contradicted", "reason": reason}
    against = _off(made["servers_by_rates"], servers, _TWICE)
    if against:
        return {"verdict": "cannot tell", "reason": f"{against}, but so do others under some policies; {untested}"}
    if made["servers_by_work"]["servers"] == servers:
        return {"verdict": "not contradicted", "reason": f"the work done is that of {servers} servers"}
    return {"verdict": "not tested", "reason": untested}


def _untested(log: Cleaned, servers: int, peak: int) -> str:
    """Return why the law could not be compared with demands; empty if it was."""
    if not log.paired:
        return "departures belong to no arrivals"
    if peak <= servers:
        return f"at most {peak} requests were present, and every number from {peak} on makes the same of the log"
    if any(each.name == "coarse stamps" for each in log.findings):
        return COARSE
    order = np.argsort(log.arrival_s, kind="stable")[:_LOOKED_AT]
    tests = conserves_work(log.arrival_s[order], log.departure_s[order], servers)
    if any(each.name == "load" for each in tests):
        return ""
    return f"too few requests, or only short ones, left before more than {servers} were present: demands are not known"


def _by_work(log: Cleaned, table: pd.DataFrame) -> Saturation:
    reason = "departures belong to no arrivals: nobody's demand is known"
    if log.paired:
        mean_s, error_s = lone_demand(log.arrival_s, log.departure_s)
        if np.isfinite(mean_s):
            return servers_of(table, mean_demand_s=mean_s, error_s=error_s)
        reason = f"fewer than {LONE} requests, or only the short ones, were seen to be served alone"
    return Saturation(None, np.nan, np.nan, reason)
