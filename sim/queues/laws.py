"""Laws that every run of a queue obeys, whatever is asked and however it is served: one that does not is wrong."""

import numpy as np

from models.arrays import Floats, Ints
from models.queues.limited import ServerCourse
from models.queues.own_policies import rules_of
from models.queues.serve import ChangingRates, RequestStamps
from models.queues.world import Station
from sim.queues.course import course
from sim.queues.observe import Busy, present

CLOCK_SHARE = 1e-9
"""Of the last departure: by so much the times of one request may be off, rounding included."""
SUM_SHARE = 1e-9
"""Of a sum over all requests: by so much another may differ, beside the rounding of the clock at every step."""
STEPS = 4
"""Of the clock at most, for each request and each of its slices."""
LITTLE = "Little's law: the integral of jobs present is {:.9g} s, the sum of response times {:.9g} s"
CONSERVATION = "conservation of work: the integral of work done is {:.9g} s, the sum of demands {:.9g} s"


class BrokenLawError(RuntimeError):
    """A queue was simulated wrongly: what came out of it breaks a law that no scenario can break."""

    def __init__(self, broken: str) -> None:
        super().__init__(f"{broken}; this is a bug of the simulation, not of the scenario, and no run was kept")


def obey(
    station: Station,
    arrival_s: Floats,
    start_s: Floats,
    departure_s: Floats,
    *,
    demand_s: Floats,
    busy: Busy,
    parts: int = 1,
    rates: ChangingRates | None = None,
    on: ServerCourse | None = None,
) -> None:
    """Raise an error unless served requests obey the laws that hold under every scheduling.

    Each starts when it has arrived or later, and departs no sooner than the fastest server could have served it.
    The integral of those present is the sum of their response times (Little 1961, Operations Research 9), and the
    work that the busy servers do is the work that was demanded (conservation of work: Kleinrock 1976, Queueing Systems
    2, section 3.4). The latter is not asked of servers of several speeds to which requests stick.

    Parameters
    ----------
    station : k servers, their scheduling, speeds and rates
    arrival_s, start_s, departure_s : (n,) arrays, seconds, in any order
    demand_s : (n,) array, seconds on a server of speed 1
    busy : how many servers worked, to the last departure
    parts : of a request that may be served at once
    rates : of a station whose speed changes
    on : how many of its servers are on, where that changes, too
    """
    slack_s = CLOCK_SHARE * _last(departure_s)
    if (wrong := np.flatnonzero(~(start_s >= arrival_s - slack_s))).size:
        i = wrong[0]
        raise BrokenLawError(f"request {i} started at {start_s[i]:.9g} s and arrived at {arrival_s[i]:.9g} s")
    least_s, had_s = demand_s / (parts * _fastest(station, rates)), departure_s - start_s
    if (wrong := np.flatnonzero(~(had_s >= least_s - slack_s))).size:
        i = wrong[0]
        raise BrokenLawError(f"request {i} was served for {had_s[i]:.9g} s where it needs at least {least_s[i]:.9g} s")
    everybody = present(arrival_s, departure_s, max(len(arrival_s), 1))
    rounding_s = _rounding_s(station, departure_s, demand_s)
    present_s = _integral(everybody.time_s, everybody.servers)
    _same(LITTLE, present_s, departure_s - arrival_s, rounding_s)
    if rates is not None:
        stamps = RequestStamps(arrival_s, start_s, departure_s)
        _same(CONSERVATION, course(rates, stamps, np.empty(0), on).done(rates), demand_s, rounding_s)
    elif rules_of(station.policy).migrates or len(set(station.speeds)) <= 1:
        done = _integral(busy.time_s, _work_per_s(station)[busy.servers])
        _same(CONSERVATION, done, demand_s, rounding_s)


def _rounding_s(station: Station, departure_s: Floats, demand_s: Floats) -> float:
    """Return by how much the clock's rounding may falsify a sum at most: a last digit at every step."""
    slices = float(demand_s.sum()) / station.quantum_s if rules_of(station.policy).sliced else 0.0
    return STEPS * (len(demand_s) + slices) * float(np.spacing(_last(departure_s)))


def _same(law: str, integral: float, parts: Floats, rounding_s: float) -> None:
    total = float(parts.sum())
    if not abs(integral - total) <= rounding_s + SUM_SHARE * total:
        raise BrokenLawError(law.format(integral, total))


def _last(departure_s: Floats) -> float:
    return float(np.fmax.reduce(departure_s, initial=0.0))  # NaN, which is a bug, is told by its own request


def _integral(time_s: Floats, level: Floats | Ints) -> float:
    """Return the area under steps that end at 0."""
    return float(level[:-1] @ np.diff(time_s))


def _work_per_s(station: Station) -> Floats:
    """Return the work per second that 0, 1, …, k busy servers do together."""
    if station.rates:
        return np.array([0.0, *station.rates])
    speeds = np.sort(station.speeds or np.ones(station.servers))[::-1]
    return np.concatenate(([0.0], np.cumsum(speeds)))


def _fastest(station: Station, rates: ChangingRates | None) -> float:
    """Return the most work per second that one server ever does."""
    if rates is not None:
        return float(rates.factor.max())
    work = _work_per_s(station)
    return float((work[1:] / np.arange(1, len(work))).max())
