"""What a scenario of several stations must satisfy: how they follow each other, and what they are not modelled with."""

from collections.abc import Iterable, Iterator
from functools import wraps

from models.queues.policies import MOST_SLICES, POLICIES
from scenarios.files.checks.load import rate, sound
from scenarios.files.distributions import faults_of
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.schema import Occupancy, QueueScenario
from sim.queues.distributions import mean
from sim.queues.network import beside_stations


def of_one(check: Check[QueueScenario]) -> Check[QueueScenario]:
    """Return a check of `station` and what goes with it, silent beside `stations`, which refuse all of that."""

    @wraps(check)
    def silent(scenario: QueueScenario) -> Iterable[FieldFault]:
        return () if scenario.stations else check(scenario)

    return silent


def beside(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Several stations stand alone: each has its own servers and demands, and open arrivals."""
    if not scenario.stations:
        return
    for way in beside_stations(scenario):
        yield FieldFault(way, "cannot be given beside stations")
    for name in ("interval_s", "to", "policy"):
        if getattr(scenario.analyses.occupancy, name) != getattr(Occupancy(), name):
            yield FieldFault(("analyses", "occupancy", name), "cannot be given beside stations")


def order(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Stations have names of their own, and come after others that stand above them."""
    stations = scenario.stations
    for i, name in repeated([station.name for station in stations]):
        yield FieldFault(("stations", i, "name"), "another station has this name", shown(name))
    for i, station in enumerate(stations):
        way, above = ("stations", i), [other.name for other in stations[:i]]
        if station.policy == "priority":
            problem = "has no classes to go by: requests of several stations have no types"
            yield FieldFault((*way, "policy"), problem, shown(station.policy))
        if station.threads is not None and station.policy != "ps":
            yield FieldFault((*way, "threads"), f"needs policy ps, here it is {station.policy}", str(station.threads))
        elif station.threads is not None and station.threads < station.servers:
            problem = f"should be at least {station.servers}, or some servers could never work"
            yield FieldFault((*way, "threads"), problem, str(station.threads))
        after = station.after if station.after is not None else tuple(above[-1:])
        for j, name in enumerate(after):
            if name not in above:
                known = f"the stations above are {', '.join(above)}" if above else "there is none above the first"
                yield FieldFault((*way, "after", j), f"should be a station above it; {known}", shown(name))
        for j, _ in repeated(after):
            yield FieldFault((*way, "after", j), "is there twice", shown(after[j]))
        if station.needs is not None and station.needs > len(after):
            problem = f"should be at most {len(after)}, the stations that it comes after" if after else (
                "has no effect: requests come here as they arrive"
            )  # fmt: skip
            yield FieldFault((*way, "needs"), problem, str(station.needs))


def slices(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Round robin takes no more time slices at a station than can be waited for."""
    if not sound(scenario):
        return
    requests = rate(scenario)[1] * scenario.horizon_s
    for i, station in enumerate(scenario.stations):
        if not POLICIES[station.policy].sliced or any(faults_of(station.demand_s)):
            continue
        work_s = requests * mean(station.demand_s)
        if work_s / station.quantum_s > MOST_SLICES:
            least = f"{1.001 * work_s / MOST_SLICES:.4g}"
            problem = f"should be at least {least}, or {work_s:.3g} s of service are too many slices"
            yield FieldFault(("stations", i, "quantum_s"), problem, f"{station.quantum_s:g}")
