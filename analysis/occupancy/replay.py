"""A log served once more: its demands under the same policy on other or faster servers, with error bars."""

from dataclasses import dataclass

import numpy as np

from analysis.occupancy.curve import curve, pairs
from analysis.occupancy.identification import MISFITS
from analysis.occupancy.inversion import AnyPolicy, Reconstruction, reconstruct
from analysis.occupancy.law import law
from analysis.occupancy.likelihood import CLOSE_S
from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.serve import serve

STRAYS = 0.01
"""Largest difference between the queueing of a log and of its replay on its own servers, relative to the former."""
_ROUNDED = 1e-6
"""Queueing is known to so small a share of the response time, and to no less."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A log as a policy explains it, and whether it may be replayed under it."""

    reconstruction: Reconstruction
    misfits: float
    """Share of the departures while somebody waits that contradict the policy, 0..1; NaN where nobody waited."""
    again_s: float
    """Queueing time when the demands are served once more by the log's own servers; NaN if too many do not fit."""
    reason: str
    """Why the log is not replayed under the policy; empty if it may be."""


def explained(
    policy: AnyPolicy,
    arrival_s: Floats,
    departure_s: Floats,
    servers: int,
    *,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    tick_s: float = 0.0,
) -> Explained:
    """Return what a policy makes of a log, put to two tests: departures that contradict it, and the log itself again.

    On as many servers the replay of a log is the log, unless the policy is another one. Processor sharing contradicts
    no log: whether its demands are likely, only `identify` tells. Whom random took is unknown, so it is not replayed.

    Parameters
    ----------
    policy, arrival_s, departure_s, servers, priority, quantum_s : as for `demands`
    tick_s : what stamps were rounded to; 0: nothing

    Raises
    ------
    ValueError
        As `demands` does.

    Examples
    --------
    >>> arrival_s, departure_s = np.arange(4.0), np.array([8.0, 7.0, 6.0, 5.0])
    >>> explained("fcfs", arrival_s, departure_s, servers=1).reason
    '100.0% of the departures while a request waited contradict it, more than 2%'
    >>> explained("lcfs_pr", arrival_s, departure_s, servers=1).reason
    ''
    """
    reconstruction = reconstruct(
        policy,
        arrival_s,
        departure_s,
        servers,
        priority=priority,
        quantum_s=quantum_s,
        tolerance_s=CLOSE_S,
        tick_s=tick_s,
    )
    if not len(arrival_s):
        return Explained(reconstruction, 0.0, 0.0, "")
    events = pairs(arrival_s, departure_s)
    crowded = int(np.count_nonzero((events.job < 0) & (events.present >= servers)))
    against = int(np.count_nonzero(~reconstruction.fits & reconstruction.finished))
    misfits = against / max(crowded, 1) if crowded or against else float("nan")
    if misfits > MISFITS:
        reason = f"{misfits:.1%} of the departures while a request waited contradict it, more than {MISFITS:.0%}"
        return Explained(reconstruction, misfits, float("nan"), reason)
    total = law(curve(arrival_s, departure_s), servers)
    if policy == "random":
        return Explained(reconstruction, misfits, total.queueing_time_s, "")
    again_s = replay(
        policy,
        arrival_s,
        departure_s,
        servers,
        servers,
        error=0.0,
        priority=priority,
        quantum_s=quantum_s,
        reconstruction=reconstruction,
    ).queueing_s
    off_s = abs(again_s - total.queueing_time_s)
    strays = off_s > max(STRAYS * total.queueing_time_s, _ROUNDED * total.response_time_s)
    reason = f"on the log's own servers it makes {again_s:,.4g} s of {total.queueing_time_s:,.4g} s of queueing"
    return Explained(reconstruction, misfits, again_s, reason if strays else "")


@dataclass(frozen=True, slots=True)
class Replay:
    """What a log's requests would have met. Rows as in the log."""

    servers: int
    speed: float
    queueing_s: float
    """Aggregate queueing time of all requests."""
    low_s: float
    """Least queueing with all demands off by at most the error, in one direction."""
    high_s: float
    """Greatest queueing with all demands off by at most the error, in one direction."""
    response_s: float
    """Aggregate response time."""
    departure_s: Floats
    """(n,) when each request would have left."""
    demand_s: Floats
    """(n,) demands used, seconds on a server of speed 1."""
    misfits: int
    """Requests that contradict the policy; they are served what it had given them when they left."""
    unfinished: int
    """Requests that had not left; they are served what they had attained by the end of the log."""


def replay(
    policy: AnyPolicy,
    arrival_s: Floats,
    departure_s: Floats,
    servers: int,
    to: int,
    *,
    speed: float = 1.0,
    error: float = 0.05,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    rates: Floats | None = None,
    to_rates: Floats | None = None,
    choice: Floats | None = None,
    reconstruction: Reconstruction | None = None,
) -> Replay:
    """Return what the requests of a log would have met on `to` servers of another speed under the same policy.

    Exact where the demands are (`demands`), for loads that arrive as they did whatever they meet: clients that wait for
    answers would have come earlier or later. The error bars take all demands for too large or too small by the same
    part, which is what a wrong clock, number of servers or policy does; errors that differ between requests cancel.
    Near saturation queueing answers a common error several times over.

    Parameters
    ----------
    policy, arrival_s, departure_s, servers, priority, quantum_s, rates : as for `demands`, and what the log was made by
    to : k' >= 1 servers
    speed : of each server, relative to the log's
    error : relative error of the demands that the bars stand for, 0 up to below 1
    to_rates : (k',) work per second done by 1 to k' busy servers together, before `speed`; None: as many as are busy
    choice : (n,) numbers in 0 up to below 1, for policy random (`serve`); None: drawn, the same every time
    reconstruction : what the policy makes of the log, as from `reconstruct`; None: made here

    Raises
    ------
    ValueError
        If the policy is `unknown`, the demands cannot be reconstructed, or an argument is out of its bounds.

    Examples
    --------
    >>> twice = replay("ps", np.array([0.0, 1.0]), np.array([3.0, 5.0]), servers=1, to=2)
    >>> twice.queueing_s, twice.departure_s
    (0.0, array([2., 4.]))
    """
    if policy == "unknown":
        raise InputError("policy unknown: a replay needs the policy by which servers choose the next request")
    if not (speed > 0 and np.isfinite(speed)):
        raise InputError(f"speed {speed}: it must be a number above 0")
    if not 0 <= error < 1:
        raise InputError(f"error {error}: it must be from 0 up to below 1")
    if reconstruction is None:
        reconstruction = reconstruct(
            policy, arrival_s, departure_s, servers, priority=priority, quantum_s=quantum_s, rates=rates
        )
    order = np.argsort(arrival_s, kind="stable")
    arrived, classes = np.asarray(arrival_s, dtype=np.float64)[order], None
    if policy == "priority" and priority is not None:
        classes = np.asarray(priority)[order]
    needed = np.maximum(reconstruction.demand_s[order], 0.0) / speed
    if policy == "random" and choice is None:
        choice = np.random.default_rng(0).random(len(order))
    left, queueing = np.empty(len(order)), []
    for factor in (1 - error, 1 + error, 1.0) if error else (1.0,):
        served = serve(
            policy,
            arrived,
            factor * needed,
            to,
            priority=classes,
            quantum_s=quantum_s,
            choice=choice if policy == "random" else None,
            rates=to_rates,
        )
        left[order] = served.departure_s
        queueing.append(law(curve(arrived, served.departure_s), to).queueing_time_s if len(order) else 0.0)
    return Replay(
        servers=to,
        speed=speed,
        queueing_s=queueing[-1],
        low_s=min(queueing),
        high_s=max(queueing),
        response_s=float((left - arrival_s).sum()),
        departure_s=left,
        demand_s=reconstruction.demand_s,
        misfits=int(np.count_nonzero(~reconstruction.fits & reconstruction.finished)),
        unfinished=int(np.count_nonzero(~reconstruction.finished)),
    )
