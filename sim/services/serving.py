"""A service on one platform: its work is served, and what is to be seen of it is counted, interval by interval."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from sim.queues.laws import BrokenLawError
from sim.services.capacity import HostedService
from sim.services.counters import count
from sim.services.sharing import SharedJobs, share
from sim.services.stack import Demands
from sim.services.work import Work

LAW_SHARE = 1e-8
"""Of the work done: by so much rounding may part what the processors did and what the jobs got."""


@dataclass(frozen=True, slots=True, eq=False)
class PlatformRun:
    """What a platform did in n intervals with R requests."""

    response_s: Floats
    """(R,) response time of each, other tiers included."""
    utilisation: Floats
    """(n,) busy logical processors over all."""
    counters: Floats
    """(n, 3) retired instructions, first-level and second-level data misses."""


def run(site: HostedService, work: Work, edge_s: Floats) -> PlatformRun:
    """Serve all jobs on a machine and return what it did.

    Demands depend on how busy an interval is: on what arrives in it.

    Parameters
    ----------
    work : N jobs in n intervals
    edge_s : (n + 1,) edges of the intervals, seconds
    """
    cell, needs, demand_s, shared = _served(site, work, edge_s)
    executed = needs.instructions[..., None]
    amounts = np.concatenate((executed, executed * needs.misses_per_instruction[..., :2]), axis=2)
    per_request = amounts.reshape(-1, 3).take(cell, axis=0)
    per_request *= work.size[:, None]
    counted = count(shared, demand_s, work.interval, per_request)
    return PlatformRun(_response_s(site, work, shared), shared.busy_s / np.diff(edge_s) / site.machine.vcpus, counted)


def responses(site: HostedService, work: Work, edge_s: Floats) -> Floats:
    """Return the response times of the requests alone, as `run` does, without what is counted: (R,) seconds."""
    return _response_s(site, work, _served(site, work, edge_s)[-1])


def _served(site: HostedService, work: Work, edge_s: Floats) -> tuple[Ints, Demands, Floats, SharedJobs]:
    """Return which interval and activity each job is of, what those need, what each demands, and what became of it."""
    n, kinds = edge_s.size - 1, site.activities.instructions.size
    cell = work.interval * kinds + work.activity
    came = np.bincount(cell, work.size, minlength=n * kinds).reshape(n, kinds)
    needs = site.demands(came / np.diff(edge_s)[:, None])
    demand_s = needs.cpu_s.ravel()[cell] * work.size
    shared = share(work.arrival_s, demand_s, site.rates(), edge_s)
    obey(shared, demand_s)
    return cell, needs, demand_s, shared


def _response_s(site: HostedService, work: Work, shared: SharedJobs) -> Floats:
    delay_s = site.other_tiers_s[work.activity[work.request]] * work.delay
    return shared.departure_s[work.request] - work.arrival_s[work.request] + delay_s


def obey(shared: SharedJobs, demand_s: Floats) -> None:
    """Raise an error unless the work that the processors did is what the jobs got (Kleinrock 1976, section 3.4).

    Parameters
    ----------
    shared : N jobs
    demand_s : (N,) array, seconds
    """
    did_s = float(shared.work_s.sum())
    got_s = float(np.clip(shared.edge_level_s[-1] - shared.arrival_level_s, 0.0, demand_s).sum())
    if not abs(did_s - got_s) <= LAW_SHARE * (did_s + got_s):
        raise BrokenLawError(f"conservation of work: processors did {did_s:.9g} s, jobs got {got_s:.9g} s")
