"""Which pace a station with changing rates had from time to time, by the stamps of those that it served."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.queues.limited import ServerCourse
from models.queues.serve import ChangingRates, RequestStamps


@dataclass(frozen=True, slots=True, eq=False)
class StationCourse:
    """Which state servers were in: from `time_s[i]` to the next, row (`step[i]`, `seen[i]`) with `busy[i]` at work."""

    time_s: Floats
    """(n + 1,) seconds, increasing."""
    step: Ints
    seen: Ints
    busy: Ints

    def done(self, rates: ChangingRates) -> float:
        """Return the work done, the integral of the rate."""
        per_s = np.where(self.busy > 0, rates.rates[self.step, self.seen, np.maximum(self.busy, 1) - 1], 0.0)
        return float(per_s @ np.diff(self.time_s))


def course(
    rates: ChangingRates, stamps: RequestStamps, edges_s: Floats, on: ServerCourse | None = None
) -> StationCourse:
    """Return the course of a station that served requests at these rates, from time 0 to the last departure.

    Looks are as in `models.queues.station`: they count who is busy after departures and before arrivals of the moment,
    and after changes of the number of servers.

    Parameters
    ----------
    rates : by step, number seen and number busy
    stamps : of all requests that had a server, in any order
    edges_s : more times at which a part of the course should begin
    on : how many servers are on, where that changes; without it as many as there are rates for

    Examples
    --------
    >>> rates = ChangingRates(np.array([[[1.0]], [[0.5]]]), np.array([0.0, 2.0]))
    >>> one = course(rates, RequestStamps(np.array([1.0]), np.array([1.0]), np.array([4.0])), np.empty(0))
    >>> one.time_s, one.step, one.busy, one.done(rates)
    (array([0., 1., 2., 4.]), array([0, 0, 1]), array([0, 1, 1]), 2.0)
    """
    stayed = stamps.departure_s > stamps.arrival_s
    arrived, left = np.sort(stamps.arrival_s[stayed]), np.sort(stamps.departure_s[stayed])
    end_s, (_, rows, most) = float(stamps.departure_s.max()), rates.rates.shape
    servers = ServerCourse(np.zeros(1), np.array([most]), np.zeros(1, np.int64)) if on is None else on
    look_s = np.arange(np.floor(end_s / rates.look_s) + 1.0) * rates.look_s if rates.look_s < np.inf else np.zeros(1)
    there = np.searchsorted(arrived, look_s, "left") - np.searchsorted(left, look_s, "right")
    looked = np.minimum(np.minimum(there, servers.at(look_s)), rows - 1)
    times = np.concatenate([[0.0], arrived, left, rates.start_s, look_s, edges_s, servers.time_s])
    time_s = np.unique(times[(times >= 0.0) & (times <= end_s)])
    begin_s = time_s[:-1]
    present = np.searchsorted(arrived, begin_s, "right") - np.searchsorted(left, begin_s, "right")
    return StationCourse(
        time_s=time_s,
        step=np.maximum(np.searchsorted(rates.start_s, begin_s, "right") - 1, 0),
        seen=looked[np.maximum(np.searchsorted(look_s, begin_s, "right") - 1, 0)],
        busy=np.minimum(present, servers.at(begin_s)),
    )
