"""Requests on a machine beside neighbours, both ways: the pace at which they are served, and what they do to the rest.

The machine's states are solved beforehand (`sim.fleet.served_machine`); a queue runs at their speeds
(`models.queues.serve.ChangingRates`), and which state it was in, and for how long, follows from its stamps. One way,
the same requests are served at speeds averaged over five minutes, as if they were a smooth stream: what neighbours do
to them is there, and what they do to neighbours and to one another is not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.queues.limited import ServerCourse
from models.queues.machine import ServingMachine
from models.queues.serve import ChangingRates, RequestStamps
from sim.fleet.served_machine import (
    CAPPED,
    EPOCH_S,
    POWER_W,
    SHIPPED_ALONE,
    SLOWDOWN,
    SPEED,
    STATE_HZ,
    TRAFFIC,
    UTILISATION,
    MachineStates,
    Sheets,
    machine_states,
    smooth_rates,
)
from sim.queues.course import course

Serve = Callable[[ChangingRates], RequestStamps]
"""Serves the same requests at given rates."""
MEANS = {
    "slowdown": SLOWDOWN,
    "power_w": POWER_W,
    "capped_share": CAPPED,
    "frequency_hz": STATE_HZ,
    "machine_utilisation": UTILISATION,
    "bandwidth_utilisation": TRAFFIC,
}
"""What is averaged over time, by its column of `truth_machine`."""


@dataclass(frozen=True, slots=True, eq=False)
class OnMachine:
    """Requests that a machine served, one by one."""

    stamps: RequestStamps
    states: MachineStates
    machine: ServingMachine
    servers: int
    seed: int
    platforms: Sheets

    def means(self, interval_s: float, end_s: float, on: ServerCourse | None = None) -> dict[str, Floats]:
        """Return the columns of `truth_machine`: means over intervals; of a speed, over the time of busy threads.

        Parameters
        ----------
        interval_s, end_s : length of an interval, end of the last one
        on : how many servers are on, where that changes
        """
        edges_s = interval_s * np.arange(np.ceil(end_s / interval_s) + 1)
        way = course(self.states.rates, self.stamps, edges_s, on)
        at = np.searchsorted(edges_s, way.time_s[:-1], "right") - 1
        length_s, size = np.diff(way.time_s), edges_s.size - 1
        state = self.states.states[way.step, way.seen, way.busy]

        def total(values: Floats) -> Floats:
            return np.asarray(np.bincount(at, values, size)[:size], np.float64)

        whole_s, busy_s = total(length_s), total(length_s * way.busy)
        speed = np.where(way.busy > 0, state[:, SPEED], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            columns = {"speed": total(length_s * way.busy * speed) / busy_s}
            columns |= {name: total(length_s * state[:, column]) / whole_s for name, column in MEANS.items()}
        return {"start_s": edges_s[:-1], "end_s": edges_s[1:], **columns}

    def one_way_rates(self, demand_s: Floats, horizon_s: float) -> ChangingRates:
        """Return the rates that average over epochs, as if requests had no effect of their own.

        Parameters
        ----------
        demand_s : (n,) array, in the order of the stamps: the work that each had
        horizon_s : requests come until then; later ones are few
        """
        offered = offered_per_s(self.stamps.arrival_s, demand_s, horizon_s)
        late = int(np.ceil(float(self.stamps.departure_s.max()) / EPOCH_S)) - offered.size
        offered = np.pad(offered, (0, max(late, 0)), mode="edge")  # what is left of the last epoch's requests
        return smooth_rates(self.machine, self.servers, self.seed, offered, self.platforms)


def offered_per_s(arrival_s: Floats, demand_s: Floats, horizon_s: float) -> Floats:
    """Return the work that comes per second in each epoch until the horizon, of which the last may be shorter.

    Parameters
    ----------
    arrival_s, demand_s : (n,) arrays
    horizon_s : end of the last epoch, unless requests come later

    Examples
    --------
    >>> offered_per_s(np.array([0.0, 310.0]), np.array([30.0, 30.0]), 360.0)
    array([0.1, 0.5])
    """
    end_s = max(horizon_s, float(arrival_s.max()))
    start_s = np.arange(np.ceil(end_s / EPOCH_S)) * EPOCH_S
    epoch = np.minimum((arrival_s / EPOCH_S).astype(np.int64), start_s.size - 1)
    return np.asarray(np.bincount(epoch, demand_s, start_s.size) / np.minimum(EPOCH_S, end_s - start_s))


def on_machine(
    machine: ServingMachine,
    servers: int,
    seed: int,
    until_s: float,
    serve: Serve,
    *,
    platforms: Sheets = SHIPPED_ALONE,
) -> OnMachine:
    """Return requests served on a machine, whose states are solved until the last of them has left.

    Parameters
    ----------
    machine : what is asked
    servers : k
    seed : neighbours and their load follow from it
    until_s : a first guess of the last departure, which decides nothing
    serve : serves the requests at given rates
    platforms : of somebody's own, by name, beside the shipped ones

    Raises
    ------
    ValueError
        If the servers do not fit the machine, or the requests take far longer than was guessed.
    """
    first_s = until_s
    while True:
        states = machine_states(machine, servers, seed, until_s, platforms)
        stamps = serve(states.rates)
        last_s = float(stamps.departure_s.max(initial=0.0))
        if last_s <= until_s or machine.neighbours is None:
            return OnMachine(stamps, states, machine, servers, seed, platforms)
        if last_s > MOST_DELAY * first_s:
            raise InputError(f"the last request leaves after {last_s:.4g} s: the machine is too slow for this load")
        until_s = last_s * 1.1


MOST_DELAY = 100.0
"""Requests may take so many times as long as their arrivals before the queue is called overloaded."""
