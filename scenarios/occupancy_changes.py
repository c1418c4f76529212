"""What other or faster servers would have changed for a log: bounds, and a replay where the policy is known."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from analysis.logs.hygiene import Cleaned
from analysis.occupancy import bounds
from analysis.occupancy.catalogue import finding
from analysis.occupancy.curve import Curve
from analysis.occupancy.inversion import Policy
from analysis.occupancy.replay import replay

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Served:
    """How a log was served, as far as that is known."""

    servers: int
    policy: Policy | None = None
    quantum_s: float = 0.1


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
    table = bounds.capacity(seen, served.servers, to, matched, per_job=_proved(served, "each job"))
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
    per_job, fcfs = _proved(served, "each job"), _proved(served, "speed")
    made = bounds.faster(seen, served.servers, factor, per_job=per_job, fcfs=fcfs)
    within = {"queueing_s_low": made.queueing_low_s, "queueing_s_high": made.queueing_high_s}
    return {"speed": factor, **within, "note": made.note}


def _proved(served: Served, claim: Literal["each job", "speed"]) -> bool:
    """Return whether the policy is known and a claim of docs/policies.md proved for it."""
    policy = served.policy
    return policy is not None and policy != "unknown" and finding(policy, claim).verdict == "proved"


def _replayed(log: Cleaned, served: Served, to: int, speed: float) -> dict[str, float]:
    if served.policy is None:
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
    )
    return {"replay_s": made.queueing_s, "replay_low": made.low_s, "replay_high": made.high_s}
