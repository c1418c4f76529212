"""How a request log was served, as it is said or found out, and what serves the log again in that way."""

import math
from dataclasses import dataclass, replace

from analysis.occupancy.identification import Identified, identify
from analysis.occupancy.inversion import Reconstruction, drawn_demands
from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.objective import ReplayStation
from analysis.occupancy.replay import Replay, explained, replay
from models.queues.policies import MOST_SLICES, POLICIES, PolicyName
from scenarios.occupancy.objective import station_of
from scenarios.views.numbers import plural

OTHERWISE = (
    "a policy that you know is replayed without being identified, if the log does not contradict it: --policy fcfs"
)


@dataclass(frozen=True, slots=True)
class Discipline:
    """How a log was served, as far as that is known."""

    servers: int
    policy: PolicyName | None = None
    quantum_s: float = 0.1
    replayed: bool = True
    """Whether the log may be replayed under the policy."""
    reconstruction: Reconstruction | None = None
    """What the policy makes of the log, if that is known already; None in a conclusion: it is as long as the log."""
    identified: Identified | None = None
    """The policy as it was found out, where it was to be and was."""
    misfits: float = math.nan
    """Share of the departures while somebody waited that contradict the policy; NaN: nobody did, or none was tried."""
    notes: tuple[str, ...] = ()
    """Why there is no policy or no replay."""


def settle(log: Cleaned, stated: Discipline, work_s: float) -> Discipline:
    """Return how a log was served: as it is said to be, if the log does not contradict that, or as was found out.

    A policy that contradicts the log is no policy. One that merely cannot be replayed is still known.

    Parameters
    ----------
    log : requests
    stated : servers, quantum and policy; without a policy it is found out
    work_s : service time of all requests on the slowest servers that are asked about
    """
    bare = Discipline(stated.servers, None, stated.quantum_s)
    if not log.paired:
        why = "departures belong to no arrivals: neither a policy nor a replay can be had, only bounds"
        return replace(bare, notes=(why,))
    if stated.policy is not None:
        return _tried(log, stated, stated.policy, work_s)
    identified = identify(
        log.arrival_s,
        log.departure_s,
        expected_servers=stated.servers,
        priority=log.priority,
        quantum_s=stated.quantum_s,
        tick_s=log.tick_s or None,
    )
    if identified.policy is None:
        return replace(bare, notes=(f"no policy identified: {identified.reason}", OTHERWISE))
    if identified.servers != stated.servers:
        policy, servers = identified.policy, identified.servers or 0
        why = f"the log speaks for {plural(servers, 'server')} under {policy}, not {stated.servers}: no replay"
        return replace(bare, identified=identified, notes=(why,))
    stated = replace(stated, policy=identified.policy, identified=identified)
    return _tried(log, stated, identified.policy, work_s)


def hindrance(discipline: Discipline, classed: bool, work_s: float) -> tuple[str, str]:
    """Return why a policy can be replayed on no such log, after the option that would help; both empty if it can."""
    if discipline.policy is None:
        return "", ""
    rules = POLICIES[discipline.policy]
    if rules.hidden and discipline.servers > 1:
        return "--policy", f"cannot be replayed on {discipline.servers} servers, only on 1: {rules.hidden}"
    if rules.order == "class" and not classed:
        return "--policy", "priority needs the class of each request: --priority COLUMN"
    if rules.sliced and work_s / discipline.quantum_s > MOST_SLICES:
        least = f"should be at least {1.001 * work_s / MOST_SLICES:.4g} s"
        return "--quantum", f"{least}, or {work_s:.6g} s of service are more than {MOST_SLICES} slices"
    return "", ""


def _tried(log: Cleaned, stated: Discipline, policy: PolicyName, work_s: float) -> Discipline:
    """Return what becomes of a policy, the one that is stated, when the log is explained by it."""
    _, why = hindrance(stated, log.priority is not None, work_s)
    if why:
        return replace(stated, replayed=False, notes=(f"no replay under {policy}: {why}",))
    trial = explained(
        policy,
        log.arrival_s,
        log.departure_s,
        stated.servers,
        priority=log.priority,
        quantum_s=stated.quantum_s,
        tick_s=log.tick_s,
    )
    if trial.reason:
        return replace(stated, policy=None, misfits=trial.misfits, notes=(f"no replay under {policy}: {trial.reason}",))
    got = "it had got" if log.unfinished == 1 else "they had got"
    cut = f"the replay serves {plural(log.unfinished, 'request')} that had not left only what {got} by then"
    notes = (cut,) if log.unfinished else ()
    return replace(stated, reconstruction=trial.reconstruction, misfits=trial.misfits, notes=notes)


def station_under(log: Cleaned, discipline: Discipline) -> ReplayStation | None:
    """Return what serves a log's requests as they were served, on any number of servers; None if that is not known."""
    known = log.paired and discipline.replayed
    if not known or discipline.policy is None or discipline.reconstruction is None:
        return None
    return station_of(
        log, discipline.policy, discipline.servers, discipline.reconstruction.demand_s, discipline.quantum_s
    )


def course_under(log: Cleaned, policy: PolicyName, servers: int) -> ReplayStation | None:
    """Return what serves a course of events that a log's requests may have taken, if its policy hides the demands."""
    if not (POLICIES[policy].hidden and log.paired):
        return None
    demand_s = drawn_demands(log.arrival_s, log.departure_s, servers)
    return station_of(log, policy, servers, demand_s, 1.0)


def replayed(log: Cleaned, discipline: Discipline, to: int, speed: float) -> Replay | None:
    """Return what a log's requests would have met on so many servers of such a speed; None if that is not known."""
    if discipline.policy is None or not discipline.replayed:
        return None
    return replay(
        discipline.policy,
        log.arrival_s,
        log.departure_s,
        discipline.servers,
        to,
        speed=speed,
        priority=log.priority,
        quantum_s=discipline.quantum_s,
        reconstruction=discipline.reconstruction,
    )
