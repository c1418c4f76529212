"""What other or faster servers would have changed for a log: bounds, and a replay where the policy is known."""

from collections.abc import Iterable
from typing import Any

from analysis.occupancy import bounds
from analysis.occupancy.catalogue import finding, never_more_work
from analysis.occupancy.curve import Curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.hygiene import Cleaned
from analysis.occupancy.replay import replay
from scenarios.occupancy.policy import Served

_NAN = float("nan")
_HUGE = 100.0
"""An interval for fewer servers that begins at today's queueing and ends at so many response times says nothing."""


def capacity(log: Cleaned, seen: Curve, served: Served, to: Iterable[int]) -> list[dict[str, Any]]:
    """Return bounds on queueing, and the replay where there is a policy, for each number of servers.

    Each row says whether its interval, and its bound on the change, exclude anything that was not plain before:
    `bounds_say_nothing` and `change_says_nothing`.

    Parameters
    ----------
    log : requests
    seen : their occupancy
    served : how they were served
    to : other numbers of servers

    Raises
    ------
    ValueError
        If the policy cannot be replayed on so many servers.

    Examples
    --------
    >>> import numpy as np
    >>> from analysis.occupancy.curve import curve
    >>> log = Cleaned(np.array([0.0, 1.0]), np.array([2.0, 3.0]), (), 0, paired=True)
    >>> row = capacity(log, curve(log.arrival_s, log.departure_s), Served(1, "ps"), [2])[0]
    >>> row["servers"], row["queueing_s_high"], row["replay_s"]
    (2, 0.0, 0.0)
    """
    matched = (log.arrival_s, log.departure_s) if log.paired else None
    table = bounds.capacity(seen, served.servers, to, matched, per_job=_per_job(served))
    rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    now = law(seen, served.servers)
    rows = [row | _empty(row, served.servers, now.queueing_time_s, now.response_time_s) for row in rows]
    return [row | _replayed(log, served, row["servers"], 1.0) for row in rows]


def _empty(row: dict[str, Any], servers: int, queueing_s: float, response_s: float) -> dict[str, bool]:
    """Return whether the bounds of a row exclude nothing: more servers do not add queueing, fewer do not take any."""
    low_s, high_s, off_s = row["queueing_s_low"], row["queueing_s_high"], 1e-9 * response_s
    waits, unmoved = queueing_s > 0, abs(row["change_s_paper_bound"]) <= off_s
    if row["servers"] > servers:
        return {"bounds_say_nothing": waits and high_s >= queueing_s - off_s, "change_says_nothing": waits and unmoved}
    fewer = row["servers"] < servers
    loose = low_s <= queueing_s + off_s and high_s >= _HUGE * response_s
    return {"bounds_say_nothing": fewer and loose, "change_says_nothing": fewer and unmoved}


def speeds(log: Cleaned, seen: Curve, served: Served, factors: Iterable[float]) -> list[dict[str, Any]]:
    """Return bounds on queueing, and the replay where there is a policy, with as many servers of each other speed.

    Slower servers have no bounds.

    Parameters
    ----------
    log : requests
    seen : their occupancy
    served : how they were served
    factors : other speeds, in that of the log's servers

    Raises
    ------
    ValueError
        If the policy cannot be replayed on so many servers, or a speed is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from analysis.occupancy.curve import curve
    >>> log = Cleaned(np.array([0.0, 1.0]), np.array([2.0, 4.0]), (), 0, paired=True)
    >>> row = speeds(log, curve(log.arrival_s, log.departure_s), Served(1, "fcfs"), [2.0])[0]
    >>> row["queueing_s_high"], row["replay_s"]
    (0.5, 0.0)
    """
    return [_faster(seen, served, factor) | _replayed(log, served, served.servers, factor) for factor in factors]


def _faster(seen: Curve, served: Served, factor: float) -> dict[str, Any]:
    if 0 < factor < 1:
        note = "bounds are about servers that are not slower"
        unknown = {"queueing_s_low": _NAN, "queueing_s_high": _NAN, "bounds_say_nothing": True}
        return {"speed": factor, **unknown, "note": note}
    policy = served.policy
    fcfs = policy is not None and policy != "unknown" and finding(policy, "speed").verdict == "proved"
    made = bounds.faster(seen, served.servers, factor, per_job=_per_job(served), fcfs=fcfs)
    within = {"queueing_s_low": made.queueing_low_s, "queueing_s_high": made.queueing_high_s}
    now_s = made.queueing_s
    empty = factor > 1 and now_s > 0 and made.queueing_high_s >= now_s * (1 - 1e-9)
    return {"speed": factor, **within, "bounds_say_nothing": empty, "note": made.note}


def _per_job(served: Served) -> bool:
    """Return whether other servers surely have no more work left."""
    policy = served.policy
    return policy is not None and policy != "unknown" and never_more_work(policy)


def _replayed(log: Cleaned, served: Served, to: int, speed: float) -> dict[str, float]:
    if served.policy is None or not served.replayed:
        return dict.fromkeys(("replay_s", "replay_low", "replay_high"), _NAN)
    made = replay(
        served.policy,
        log.arrival_s,
        log.departure_s,
        served.servers,
        to,
        speed=speed,
        priority=log.priority,
        quantum_s=served.quantum_s,
        made=served.made,
    )
    return {"replay_s": made.queueing_s, "replay_low": made.low_s, "replay_high": made.high_s}
