"""What is known of how a log was served: whether its policy can be replayed, and what the bounds rest on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.occupancy.catalogue import finding
from analysis.occupancy.identification import identify
from analysis.occupancy.inversion import Policy, Reconstruction
from analysis.occupancy.logs.hygiene import Cleaned
from analysis.occupancy.replay import explained

MOST_SLICES = 100_000_000
"""Time slices that a replay may take: some 10 s."""

KNOWN = "a policy that you know is replayed without being identified, if the log does not contradict it: --policy fcfs"


@dataclass(frozen=True, slots=True)
class Served:
    """How a log was served, as far as that is known."""

    servers: int
    policy: Policy | None = None
    quantum_s: float = 0.1
    replayed: bool = True
    """Whether the log may be replayed under the policy."""
    made: Reconstruction | None = None
    """What the policy makes of the log, if that was found already."""


@dataclass(frozen=True, slots=True)
class Settled:
    """How a log was served, and what was found on the way."""

    served: Served
    identified: dict[str, Any] | None = None
    """Policy, servers and score, where the policy was to be found out and was."""
    misfits: float = float("nan")
    """Share of the departures while somebody waited that contradict the policy."""
    notes: list[str] = field(default_factory=list)
    """Why there is no policy or no replay."""


def hindrance(served: Served, classed: bool, work_s: float) -> tuple[str, str]:
    """Return why a policy can be replayed on no such log, after the option that would help; both empty if it can.

    Parameters
    ----------
    served : the policy, and on what
    classed : whether the log has classes of requests
    work_s : service time of all requests on the slowest servers that are asked about

    Examples
    --------
    >>> hindrance(Served(2, "sjf"), classed=False, work_s=1.0)[0]
    '--policy'
    >>> hindrance(Served(1, "rr", quantum_s=1e-9), classed=False, work_s=1.0)
    ('--quantum', 'should be at least 1.001e-08 s, or 1 s of service are more than 100000000 slices')
    """
    if served.policy in ("sjf", "random") and served.servers > 1:
        why = "whom a server took does not follow from arrivals and departures"
        return "--policy", f"cannot be replayed on {served.servers} servers, only on 1: {why}"
    if served.policy == "priority" and not classed:
        return "--policy", "priority needs the class of each request: --priority COLUMN"
    if served.policy == "rr" and work_s / served.quantum_s > MOST_SLICES:
        least = f"should be at least {1.001 * work_s / MOST_SLICES:.4g} s"
        return "--quantum", f"{least}, or {work_s:.6g} s of service are more than {MOST_SLICES} slices"
    return "", ""


def settle(log: Cleaned, said: Served, work_s: float, *, find_out: bool = False) -> Settled:
    """Return how a log was served: as it is said to be, if the log does not contradict that, or as was found out.

    A policy that contradicts the log is no policy. One that merely cannot be replayed is still known.

    Parameters
    ----------
    log : requests
    said : servers, quantum and, unless it is to be found out, perhaps a policy
    work_s : service time of all requests on the slowest servers that are asked about
    find_out : whether the policy is to be found out

    Examples
    --------
    >>> import numpy as np
    >>> log = Cleaned(np.array([0.0, 1.0]), np.array([3.0, 2.0]), (), 0, paired=True)
    >>> settle(log, Served(1, "fcfs"), 3.0).notes
    ['no replay under fcfs: 100.0% of the departures while somebody waited contradict it, more than 2%']
    """
    bare = Served(said.servers, None, said.quantum_s)
    if said.policy is None and not find_out:
        return Settled(bare)
    if not log.paired:
        why = "departures belong to no arrivals: neither a policy nor a replay can be had, only bounds"
        return Settled(bare, notes=[why])
    identified = None
    if find_out:
        found = identify(
            log.arrival_s,
            log.departure_s,
            expected_servers=said.servers,
            priority=log.priority,
            quantum_s=said.quantum_s,
        )
        if found.policy is None:
            return Settled(bare, notes=[f"no policy identified: {found.reason}", KNOWN])
        identified = {"policy": found.policy, "servers": found.servers, "score": found.score}
        if found.servers != said.servers:
            why = f"the log speaks for {found.servers} servers under {found.policy}, not {said.servers}: no replay"
            return Settled(bare, identified, notes=[why])
        said = Served(said.servers, found.policy, said.quantum_s)
    return _tried(log, said, work_s, identified)


def _tried(log: Cleaned, said: Served, work_s: float, identified: dict[str, Any] | None) -> Settled:
    """Return what becomes of a policy when the log is explained by it."""
    policy = said.policy
    if policy is None:
        return Settled(said, identified)
    _, why = hindrance(said, log.priority is not None, work_s)
    if why:
        kept = Served(said.servers, policy, said.quantum_s, replayed=False)
        return Settled(kept, identified, notes=[f"no replay under {policy}: {why}"])
    of = explained(
        policy, log.arrival_s, log.departure_s, said.servers, priority=log.priority, quantum_s=said.quantum_s
    )
    if of.reason:
        bare = Served(said.servers, None, said.quantum_s)
        return Settled(bare, identified, of.misfits, [f"no replay under {policy}: {of.reason}"])
    notes = []
    if log.unfinished:
        notes.append(f"the replay serves {log.unfinished:,} requests that had not left only what they had got by then")
    return Settled(Served(said.servers, policy, said.quantum_s, made=of.made), identified, of.misfits, notes)


def caveats(served: Served, to: Sequence[int], speeds: Sequence[float]) -> Iterator[str]:
    """Yield what the bounds for other or faster servers rest on, where they are no theorem for the policy.

    Parameters
    ----------
    served : the policy, if it is known
    to : numbers of servers that bounds are told for
    speeds : the same of speeds

    Examples
    --------
    >>> list(caveats(Served(2, "ps"), to=[4], speeds=[]))
    []
    >>> list(caveats(Served(2), to=[4], speeds=[]))
    ['no policy known: the bounds assume that more servers never delay completions']
    """
    more, fast = any(each != served.servers for each in to), any(speed > 1 for speed in speeds)
    if not (more or fast):
        return
    if served.policy is None or served.policy == "unknown":
        changes = " or ".join(name for name, there in (("more", more), ("faster", fast)) if there)
        yield f"no policy known: the bounds assume that {changes} servers never delay completions"
    elif finding(served.policy, "expansion").verdict != "proved":
        yield (
            f"under {served.policy} the bounds, the change as well as the interval, usually hold, but there are loads "
            "for which they do not"
        )
