"""The Occupancy Law where the number of servers changes: service, queueing and server time of a whole log."""

from dataclasses import dataclass

import numpy as np

from analysis.occupancy.curve import Curve
from models.arrays import Floats, Ints
from models.errors import InputError


@dataclass(frozen=True, slots=True)
class ChangingTotals:
    """What the law says of a log and the servers that were on, seconds."""

    service_time_s: float
    """∫ min(N, k) dt."""
    queueing_time_s: float
    """∫ max(N − k, 0) dt."""
    server_time_s: float
    """∫ k dt, from the first arrival to the last departure."""

    @property
    def utilisation(self) -> float:
        """Busy servers over those that were on, 0..1; NaN for a log without length."""
        return self.service_time_s / self.server_time_s if self.server_time_s > 0 else float("nan")


def changing_law(curve: Curve, time_s: Floats, servers: Ints) -> ChangingTotals:
    """Return service and queueing time by the Occupancy Law (Kelly et al. 2008, result 1) for a number k(t) of servers.

    At each moment min(N, k) requests are served if no server idles while a request waits. A server that was taken away
    and finishes what it has begun counts until then: it is busy, so the law holds with it.

    Parameters
    ----------
    curve : occupancy
    time_s, servers : (r,) arrays, increasing seconds and the number of servers from then on; the first is no later
        than the curve's start

    Raises
    ------
    ValueError
        If it is not known how many servers there were at the start.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> changing_law(curve([0.0, 0.0], [2.0, 3.0]), np.array([0.0, 1.0]), np.array([1, 2]))
    ChangingTotals(service_time_s=4.0, queueing_time_s=1.0, server_time_s=5.0)
    """
    if not len(time_s) or time_s[0] > curve.start_s:
        raise InputError(f"servers are known from {time_s[:1]} s on, and the log begins at {curve.start_s:g} s")
    inside = time_s[(time_s > curve.start_s) & (time_s < curve.end_s)]
    edges_s = np.union1d(curve.time_s, inside)
    length_s, begin_s = np.diff(edges_s), edges_s[:-1]
    jobs = curve.jobs[np.searchsorted(curve.time_s, begin_s, "right") - 1]
    on = servers[np.searchsorted(time_s, begin_s, "right") - 1]
    return ChangingTotals(
        float(np.minimum(jobs, on) @ length_s),
        float(np.maximum(jobs - on, 0) @ length_s),
        float(on @ length_s),
    )
