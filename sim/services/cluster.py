"""A world's requests on a cluster of machines that differ: which serves a request is decided when it arrives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.cluster import OPEN
from models.queues.dispatch import PREDICTING, Dispatch, Router, dispatch
from models.services.applications import build_activities
from models.services.world import ServiceWorld
from sim.services import mixes, work
from sim.services.capacity import HostedService, alone, host, saturation
from sim.services.hardware import draw_machines
from sim.services.work import Work

PASSES = 2
"""How often requests are routed: first demands are those of requests spread evenly, then of the time before."""


@dataclass(frozen=True, slots=True, eq=False)
class ServiceCluster:
    """m machines and what comes to all of them together, whoever routes it."""

    sites: tuple[HostedService, ...]
    capacity_per_s: Floats
    """(m,) requests of the long-run mix per second at which each machine is saturated."""
    work: Work
    """All jobs: requests and collections, and ticks for one machine."""
    edge_s: Floats
    """(n + 1,) edges of the intervals, seconds."""

    @property
    def idle_s(self) -> Floats:
        """What a request of each type needs of a processor of each machine when all are idle: (J, m) seconds."""
        return np.stack([alone(site, 1.0)[0] for site in self.sites], axis=1)

    @property
    def rates(self) -> tuple[Floats, ...]:
        """Work per second of each machine while 1, 2, … of its processors are busy."""
        return tuple(site.rates() for site in self.sites)


@dataclass(frozen=True, slots=True, eq=False)
class _Jobs:
    """Rows of the work, ticks once for every machine, in order of arrival; where each has to go."""

    row: Ints
    machine: Ints
    beside: Ints


def gather(world: ServiceWorld, platforms: Sequence[str], load: float) -> ServiceCluster:
    """Return a cluster of platforms and the world's requests, their volume set to a share of what the cluster can do.

    Parameters
    ----------
    world : what is asked; the mean arrival rate and the platforms are those of the cluster
    platforms : names, one for each machine; a name may come more than once
    load : mean arrival rate over the sum of the machines' saturation rates, each with the long-run mix; above 0

    Raises
    ------
    ValueError
        If there is no platform, one is not known, or the load is not positive.
    """
    if not platforms:
        raise InputError("platforms is empty, must name at least one machine")
    if not 0.0 < load < np.inf:
        raise InputError(f"load is {load:g}, must be positive and finite")
    service = build_activities(world.application, world.runtime, world.mechanisms, world.seed, "application")
    machines = draw_machines(replace(world, platforms=tuple(dict.fromkeys(platforms))))
    sites = tuple(host(service, machines[name], world.application, world) for name in platforms)
    capacity = np.array([saturation(site, service.popularity) for site in sites])
    loaded = replace(world, load=replace(world.load, requests_per_s=load * float(capacity.sum()), volume=1.0))
    came = mixes.draw(loaded, service.popularity)
    return ServiceCluster(sites, capacity, work.draw(loaded, service, came), np.append(came.start_s, loaded.horizon_s))


def route(cluster: ServiceCluster, router: Router, table: Floats | None = None) -> pd.DataFrame:
    """Route a cluster's requests and return what became of each.

    Every machine has ticks of its own, and serves the collections that its requests bring about. Demands in an interval
    follow from what a machine gets in it, so requests are routed `PASSES` times.

    Parameters
    ----------
    router : one of `models.queues.dispatch.ROUTERS` but fixed
    table : (J, m) array: predicted seconds for routers that compare them, otherwise weights, 0: never. None: the
        weights of `models.queues.dispatch.dispatch`

    Returns
    -------
    one row a request
        `request`, `type`, `machine` (its number in the cluster), `arrival_s`, `departure_s` from the business tier,
        `response_s` other tiers included.
    """
    jobs, m = _expand(cluster), len(cluster.sites)
    share = np.broadcast_to(cluster.capacity_per_s / cluster.capacity_per_s.sum(), (jobs.row.size, m))
    fixed = jobs.machine != OPEN
    share = np.where(fixed[:, None], jobs.machine[:, None] == np.arange(m), share)
    for _ in range(PASSES):
        done = _served(cluster, jobs, _demands(cluster, jobs, share), router, table)
        share = done.machine[:, None] == np.arange(m)
    return _frame(cluster, jobs, done)


def _expand(cluster: ServiceCluster) -> _Jobs:
    """Return all jobs: ticks on every machine, a collection where the request that filled the heap is."""
    kind, m, types = cluster.work.activity, len(cluster.sites), cluster.sites[0].activities.types
    copies = np.where(kind == types + 1, m, 1)
    row = np.repeat(np.arange(kind.size), copies)
    copy = np.arange(row.size) - np.repeat(np.cumsum(copies) - copies, copies)
    activity = kind[row]
    latest = np.maximum.accumulate(np.where(activity < types, np.arange(row.size), OPEN))
    return _Jobs(row, np.where(activity == types + 1, copy, OPEN), np.where(activity == types, latest, OPEN))


def _demands(cluster: ServiceCluster, jobs: _Jobs, share: Floats | Bools) -> Floats:
    """Return what each job needs of each machine if machines get those shares of the jobs: (N, m) seconds."""
    n, kinds = cluster.edge_s.size - 1, cluster.sites[0].activities.instructions.size
    cell = (cluster.work.interval * kinds + cluster.work.activity)[jobs.row]
    size = cluster.work.size[jobs.row]
    demand_s = np.empty(share.shape)
    for i, site in enumerate(cluster.sites):
        came = np.bincount(cell, size * share[:, i], minlength=n * kinds).reshape(n, kinds)
        demand_s[:, i] = site.demands(came / np.diff(cluster.edge_s)[:, None]).cpu_s.ravel()[cell] * size
    return demand_s


def _served(cluster: ServiceCluster, jobs: _Jobs, demand_s: Floats, router: Router, table: Floats | None) -> Dispatch:
    """Return when all jobs leave and where they were."""
    kind = cluster.work.activity[jobs.row]
    return dispatch(
        router,
        cluster.work.arrival_s[jobs.row],
        demand_s,
        [site.machine.vcpus for site in cluster.sites],
        choice=jobs.machine,
        beside=jobs.beside,
        kind=None if table is None else np.where(kind < len(table), kind, 0),
        weights=None if router in PREDICTING else table,
        predicted_s=table if router in PREDICTING else None,
        rates=cluster.rates,
    )


def _frame(cluster: ServiceCluster, jobs: _Jobs, done: Dispatch) -> pd.DataFrame:
    """Return the requests among the jobs, a row each."""
    activities = cluster.sites[0].activities
    kind = cluster.work.activity[jobs.row]
    request = kind < activities.types
    names = np.array(activities.names, dtype=object)
    arrival_s, departure_s, machine = done.arrival_s[request], done.departure_s[request], done.machine[request]
    mean_s = np.array([site.other_tiers_s for site in cluster.sites])
    delay_s = cluster.work.delay * mean_s[machine, kind[request]]
    return pd.DataFrame(
        {
            "request": np.arange(arrival_s.size),
            "type": names[kind[request]],
            "machine": machine,
            "arrival_s": arrival_s,
            "departure_s": departure_s,
            "response_s": departure_s - arrival_s + delay_s,
        }
    )


def responses(routed: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and the 99th percentile of response times, of all requests and type by type.

    Returns
    -------
    columns `type` (``all`` comes first), `requests`, `mean_s`, `p99_s`

    Examples
    --------
    >>> responses(pd.DataFrame({"type": ["a", "b", "a"], "response_s": [1.0, 2.0, 3.0]})).iloc[:2, :3]
      type  requests  mean_s
    0  all         3     2.0
    1    a         2     2.0
    """
    both = pd.concat([routed.assign(type="all"), routed])[["type", "response_s"]]
    grouped = both.groupby("type", sort=False)["response_s"]
    told = grouped.agg(requests="size", mean_s="mean", p99_s=lambda times: times.quantile(0.99))
    return told.reset_index()
