"""What other or faster servers would have changed for a log: bounds, and a replay where the policy is known."""

from collections.abc import Iterable
from typing import Any

from analysis.logs.hygiene import Cleaned
from analysis.occupancy import bounds
from analysis.occupancy.catalogue import finding, never_more_work
from analysis.occupancy.curve import Curve
from analysis.occupancy.replay import replay
from scenarios.occupancy_policy import Served

_NAN = float("nan")


def capacity(log: Cleaned, seen: Curve, served: Served, to: Iterable[int]) -> list[dict[str, Any]]:
    """Return bounds on queueing, and the replay where there is a policy, for each number of servers.

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
    return [row | _replayed(log, served, row["servers"], 1.0) for row in rows]


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
        return {"speed": factor, "queueing_s_low": _NAN, "queueing_s_high": _NAN, "note": note}
    policy = served.policy
    fcfs = policy is not None and policy != "unknown" and finding(policy, "speed").verdict == "proved"
    made = bounds.faster(seen, served.servers, factor, per_job=_per_job(served), fcfs=fcfs)
    within = {"queueing_s_low": made.queueing_low_s, "queueing_s_high": made.queueing_high_s}
    return {"speed": factor, **within, "note": made.note}


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
