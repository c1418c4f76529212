"""What platforms could do with a service in the long run: types alone, how long a mix takes, a public score."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.arrays import Floats
from models.queues.birth_death import present
from models.services.applications import Activities, build_activities
from models.services.world import Application, Mechanisms, ServiceWorld
from sim.services.hardware import Machine, draw_machines
from sim.services.stack import Demands, demands, smt_rates

OTHER_TIERS_ON = "xeon_1h_2c_1p"
"""Where a static page took 48 ms: the dual-core Xeon (Stewart et al. 2008, Table 8)."""


@dataclass(frozen=True, slots=True, eq=False)
class HostedService:
    """A service on a machine, with what runs beside it."""

    activities: Activities
    """J types of requests, collections and ticks."""
    machine: Machine
    mechanisms: Mechanisms
    other_tiers_s: Floats
    """(J,) mean delay of a request of each type at the other tiers."""

    def rates(self) -> Floats:
        """Return the work per second of all busy processors while 1, 2, …, k are busy: (k,)."""
        return np.asarray(smt_rates(self.activities, self.machine, self.mechanisms), dtype=np.float64)

    def demands(self, rate_per_s: Floats) -> Demands:
        """Return the demands of all activities at n sets of their rates, (n, J + 2)."""
        return demands(self.activities, self.machine, rate_per_s, self.mechanisms)


def sites(world: ServiceWorld, what: Literal["application", "benchmark"] = "application") -> dict[str, HostedService]:
    """Return a world's service, or its public benchmark, on each of its platforms by name.

    Raises
    ------
    ValueError
        If a platform is not known.
    """
    software = world.application if what == "application" else world.benchmark
    service = build_activities(software, world.runtime, world.mechanisms, world.seed, what)
    return {name: host(service, machine, software, world) for name, machine in draw_machines(world).items()}


def host(service: Activities, machine: Machine, software: Application, world: ServiceWorld) -> HostedService:
    """Return a service on a machine of a world, with its other tiers elsewhere or on machines of the same kind."""
    delay_s = service.other_tiers_s
    if software.other_tiers == "platform":
        [known] = draw_machines(replace(world, platforms=(OTHER_TIERS_ON,), clocks={})).values()
        here_s, there_s = (_idle_s(service, where, world.mechanisms) for where in (machine, known))
        delay_s = delay_s * here_s / there_s
    return HostedService(service, machine, world.mechanisms, delay_s)


def _idle_s(service: Activities, machine: Machine, mechanisms: Mechanisms) -> Floats:
    """Return the time that a request of each type takes on a processor of an idle machine: (J,)."""
    idle = demands(service, machine, service.rates(np.zeros((1, service.types))), mechanisms)
    return np.asarray(idle.cpu_s[0, : service.types])


def offered(site: HostedService, requests_per_s: Floats) -> tuple[Floats, Floats]:
    """Return how much work comes per second and what a request of each type demands.

    Parameters
    ----------
    requests_per_s : (n, J) array

    Returns
    -------
    (n,) and (n, J) arrays, seconds of a processor
    """
    rate_per_s = site.activities.rates(requests_per_s)
    demand_s = site.demands(rate_per_s).cpu_s
    return (rate_per_s * demand_s).sum(axis=1), demand_s[:, : requests_per_s.shape[1]]


def response(site: HostedService, requests_per_s: Floats) -> Floats:
    """Return the mean response time of requests in steady state: (n,) seconds, infinite beyond saturation.

    Parameters
    ----------
    requests_per_s : (n, J) array, not all zero in any row
    """
    work, demand_s = offered(site, requests_per_s)
    share = requests_per_s / requests_per_s.sum(axis=1, keepdims=True)
    in_system, _ = present(work, site.rates())  # over the work: the response per second of demand, by Little's law
    return np.asarray(in_system / work * (share * demand_s).sum(axis=1) + share @ site.other_tiers_s)


def saturation(site: HostedService, mix: Floats) -> float:
    """Return the requests per second of a mix that a machine serves which is never idle.

    Demands are those under twice the load that any machine could bear, which the stack serves at its capacity.

    Parameters
    ----------
    mix : (J,) shares of the types
    """
    rate_per_s = site.activities.rates(ceiling(site, mix) * mix[None])
    demand_s = site.demands(2 * rate_per_s).cpu_s[0]
    beside = site.activities.rates(np.zeros((1, mix.size)))[0]
    per_request = site.activities.rates(mix[None])[0] - beside
    return float((site.rates()[-1] - beside @ demand_s) / (per_request @ demand_s))


def ceiling(site: HostedService, mix: Floats) -> float:
    """Return a rate that no load can exceed: what the processors would serve if demands were those of an idle machine.

    Demands only grow with the load.

    Parameters
    ----------
    mix : (J,) shares of the types
    """
    _, demand_s = offered(site, np.zeros((1, mix.size)))
    return float(site.rates()[-1] / (demand_s[0] @ mix))


def alone(site: HostedService, rate_per_s: float) -> tuple[Floats, Floats]:
    """Return what a request of each type demands of an idle machine, and its response time if only its type comes.

    Parameters
    ----------
    rate_per_s : of the one type, above 0

    Returns
    -------
    two (J,) arrays, seconds; the response is NaN where the machine would be saturated
    """
    types = site.activities.types
    idle_s = offered(site, np.zeros((1, types)))[1][0]
    response_s = response(site, rate_per_s * np.eye(types))
    return idle_s, np.where(response_s < np.inf, response_s, np.nan)


def per_request(site: HostedService, requests_per_s: Floats) -> Floats:
    """Return the instructions, first-level and second-level misses per request, of all that runs: (3,).

    Parameters
    ----------
    requests_per_s : (J,) array
    """
    rate_per_s = site.activities.rates(requests_per_s[None])
    needs = site.demands(rate_per_s)
    executed = (rate_per_s * needs.instructions)[0] / requests_per_s.sum()
    return np.append(executed.sum(), executed @ needs.misses_per_instruction[0, :, :2])
