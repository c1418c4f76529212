"""What fields about served services and hardware under trial must satisfy together, in a profile scenario."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.fleet.world import Service
from models.queues.policies import MOST_SLICES, POLICIES
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.schema import ProfileScenario
from scenarios.files.tree import Keys

MOST_REQUESTS = 20_000_000
"""Requests that all served services together may be asked within the horizon."""
_CLOCK_HZ = 2.8e9
"""Of the reference machine; a request's pace without neighbours is what counts requests here."""


def served_services(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Services that are served are there, once, with whole servers and a load from outside."""
    services = {service.name: service for service in scenario.population.services}
    for i, name in repeated([served.job for served in scenario.served]):
        yield FieldFault(("served", i, "job"), "is served twice", shown(name))
    if scenario.served and scenario.population.balancer != "even":
        problem = "should be even where services are served: their requests come to all instances alike"
        yield FieldFault(("population", "balancer"), problem, shown(scenario.population.balancer))
    if scenario.served and scenario.simulation == "epochs" and scenario.fleet.overcommit > 1.0:
        problem = "should be 1 where services are served, or simulation: events: only there requests wait for threads"
        yield FieldFault(("fleet", "overcommit"), problem, f"{scenario.fleet.overcommit:g}")
    for i, served in enumerate(scenario.served):
        keys: Keys = ("served", i, "job")
        if served.job in services:
            yield from _suits(services[served.job], keys)
        else:
            known = ", ".join(services) or "none"
            yield FieldFault(keys, f"population.services has no such service; it has {known}", shown(served.job))
        yield from _scheduled(scenario, i)
        for k, name in repeated([kind.name for kind in served.types]):
            yield FieldFault(("served", i, "types", k, "name"), "another type has this name", shown(name))


def _scheduled(scenario: ProfileScenario, i: int) -> Iterator[FieldFault]:
    """Yield what of the i-th served service its policy lacks."""
    served = scenario.served[i]
    classes, keys = {kind.priority for kind in served.types}, ("served", i, "policy")
    if served.policy == "priority" and len(classes) == 1:
        yield FieldFault(keys, "needs types of several classes: give them priority 0, 1, …", '"priority"')
    if POLICIES[served.policy].sliced and scenario.simulation == "epochs":
        yield FieldFault(keys, "needs simulation: events: a time slice is one of seconds", shown(served.policy))
    if served.capacity is None:
        return
    threads = max((s.quota_vcpu for s in scenario.population.services if s.name == served.job), default=0.0)
    if scenario.simulation == "epochs":
        problem = "needs simulation: events: elsewhere what a service does follows a smooth load"
        yield FieldFault(("served", i, "capacity"), problem, str(served.capacity))
    if served.capacity < threads:
        problem = f"should be null or at least {threads:g}, or some hardware threads could never work"
        yield FieldFault(("served", i, "capacity"), problem, str(served.capacity))


def _slices(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Yield time slices of round robin that are more than can be waited for."""
    for i, served in enumerate(scenario.served):
        if POLICIES[served.policy].sliced:
            busy = sum(
                service.instances * service.quota_vcpu * service.utilisation
                for service in scenario.population.services
                if service.name == served.job
            )
            work_s = busy * scenario.horizon_s
            if work_s / served.quantum_s > MOST_SLICES:
                least = f"{1.001 * work_s / MOST_SLICES:.4g}"
                problem = f"should be at least {least}, or {work_s:.3g} s of service are too many slices"
                yield FieldFault(("served", i, "quantum_s"), problem, f"{served.quantum_s:g}")


def _suits(service: Service, keys: Keys) -> Iterator[FieldFault]:
    """Yield what of a service keeps its requests from being served."""
    if not float(service.quota_vcpu).is_integer():
        yield FieldFault(keys, "its quota_vcpu should be whole, as many servers", f"{service.quota_vcpu:.12g}")
    if not service.open_load:
        yield FieldFault(keys, "its open_load should be true: requests come from outside", "false")
    if service.network_s_per_request:
        yield FieldFault(keys, "its network_s_per_request should be 0", f"{service.network_s_per_request:.12g}")


def served_requests(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Requests are no more than can be kept, and of one length all the time."""
    if not scenario.served:
        return
    yield from _slices(scenario)
    names = {served.job for served in scenario.served}
    requests = sum(
        service.instances
        * service.quota_vcpu
        * service.utilisation
        * _CLOCK_HZ
        / service.core_cpi
        / service.instructions_per_request
        for service in scenario.population.services
        if service.name in names
    )
    if requests * scenario.horizon_s > MOST_REQUESTS:
        problem = f"should be at most {MOST_REQUESTS:,} requests within horizon_s: raise instructions_per_request"
        yield FieldFault(("served",), problem, f"about {requests * scenario.horizon_s:,.0f}")
    if scenario.profiling.releases.share > 0:
        problem = "should be 0 where services are served: a new build would change what a request is"
        yield FieldFault(("profiling", "releases", "share"), problem, f"{scenario.profiling.releases.share:.12g}")


def trial(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Hardware under trial is known, new in the fleet, takes what it replaces, and has machines to be put into."""
    if scenario.trial is None:
        return
    fleet, feature, sheets = scenario.fleet.platforms, scenario.feature, scenario.sheets
    brought = set(feature.platforms.values()) | set(feature.platforms) if feature is not None else set()
    for old, new in scenario.trial.platforms.items():
        keys = ("trial", "platforms", old)
        if old not in fleet:
            yield FieldFault(keys, f"the fleet has no such platform; it has {', '.join(fleet)}")
        elif new not in sheets:
            yield FieldFault(keys, f"unknown platform; known: {', '.join(sorted(sheets))}", shown(new))
        elif new in fleet or {old, new} & brought:
            yield FieldFault(keys, "should be new in the fleet, and not of the feature", shown(new))
        elif old in sheets and sheets[new].vcpus < sheets[old].vcpus:
            yield FieldFault(keys, f"should have at least {sheets[old].vcpus} hardware threads", shown(new))
    share = sum(part for name, part in fleet.items() if name in scenario.trial.platforms)
    room = int(share * scenario.fleet.machines)
    if scenario.trial.machines > room > 0:
        problem = f"should be at most {room}, the machines on those platforms"
        yield FieldFault(("trial", "machines"), problem, str(scenario.trial.machines))


CHECKS: Mapping[Check[Any], tuple[str, ...]] = {
    served_services: ("served", "population.services", "simulation", "fleet.overcommit"),
    served_requests: ("served", "population.services", "horizon_s", "profiling.releases"),
    trial: ("trial", "fleet", "feature.platforms", "platforms"),
}
"""Every check with the fields that it needs."""
