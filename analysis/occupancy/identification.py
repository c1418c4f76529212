"""Which policy and how many servers a log speaks for: every candidate explains it, the likeliest is put to the test."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.occupancy.agreement import Finding, agreement, met_on_arrival
from analysis.occupancy.inversion import Policy, Reconstruction, reconstruct
from analysis.occupancy.likelihood import log_likelihood
from analysis.occupancy.pairs import Floats, Ints, Pairs, pairs

POLICIES: tuple[Policy, ...] = ("fcfs", "lcfs", "lcfs_pr", "ps", "rr", "fb", "srpt", "sjf", "random", "priority")
"""Candidates, in the order in which one is named where several explain a log alike."""
ODDS = float(np.log(20.0))
"""A rival whose likelihood is within a factor of 20 of the best one's is not ruled out."""
CROWDED = 20
"""Least number of departures while somebody waits that tell how servers choose."""
LONE = 10
"""Least number of requests that meet nobody on arrival: only they show demands without a policy."""
MISFITS = 0.02
"""Largest part of the departures while somebody waits that may contradict the policy: wrong stamps."""
SLICES = 1000
"""Mean stay in slices above which round robin is processor sharing."""
CLOSE_S = 1e-9
"""Demands that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Identified:
    """What a log says of its server."""

    policy: Policy | None
    """The policy; None if nothing fits or the log does not tell."""
    servers: int | None
    score: float
    """How much likelier the best candidate is than the next one that explains the log differently, as a natural
    logarithm; NaN without any."""
    reason: str
    """Why there is no answer; empty if there is one."""
    rivals: tuple[tuple[Policy, int], ...]
    """Candidates that the log does not tell from the best one."""
    findings: tuple[Finding, ...]
    """The tests that the best candidate was put to."""
    candidates: pd.DataFrame
    """policy, servers, log_likelihood, crowded (departures while somebody waits), misfits (share of these that
    contradict the candidate); best first."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A policy on so many servers, and what it makes of the log."""

    policy: Policy
    servers: int
    made: Reconstruction
    log_likelihood: float
    crowded: int
    misfits: float


def identify(
    arrival_s: Floats,
    departure_s: Floats,
    *,
    policies: Sequence[Policy] = POLICIES,
    servers: Sequence[int] | None = None,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    most: int = 10_000,
) -> Identified:
    """Return the policy and number of servers that explain a log of matched pairs, or why none does.

    Under each candidate the demands are reconstructed, and candidates are compared by the likelihood of the departures
    whatever the distribution of demands (`log_likelihood`). The best must then agree with what holds under any policy:
    few departures contradict it, and its demands depend neither on what requests meet on arrival nor differ from those
    of requests that meet nobody (`agreement`: fewer than 1% of true candidates are refused). Other policies must be 20
    times less likely, unless they make the same of the log.

    What cannot be told from a candidate is taken for it: a soft limit of concurrency for fewer servers, round robin
    with a quantum other than the one given for ps, to which it tends.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left
    policies, servers : the candidates; sjf and random only on one server, priority only with classes. None: 1 to 16
        servers, no more than requests were ever present
    priority : (n,) classes, 0 first
    quantum_s : time slice of rr, which is no candidate if stays are above 1,000 slices: there it is ps
    most : so many requests are looked at, from the middle of the log

    Raises
    ------
    ValueError
        If there is no candidate, or the pairs are none (`pairs`).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arrival, demand = np.cumsum(rng.exponential(1.0, 500)), rng.uniform(0.5, 1.0, 500)
    >>> departure, free = np.empty(500), 0.0
    >>> for i in range(500):
    ...     free = departure[i] = max(arrival[i], free) + demand[i]
    >>> found = identify(arrival, departure)
    >>> found.policy, found.servers
    ('fcfs', 1)
    """
    arrival_s, departure_s = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    rows = _window(arrival_s, pairs(arrival_s, departure_s), most)
    arrival_s, departure_s = arrival_s[rows], departure_s[rows]
    events = pairs(arrival_s, departure_s)
    numbers = range(1, min(int(events.present.max(initial=0)), 16) + 1) if servers is None else servers
    chosen = [(p, k) for p in policies for k in numbers if k == 1 or p not in ("sjf", "random")]
    chosen = [(p, k) for p, k in chosen if p != "priority" or priority is not None]
    fine = quantum_s * SLICES < float(np.nan_to_num(departure_s - arrival_s).sum()) / max(len(rows), 1)
    chosen = [(p, k) for p, k in chosen if p != "rr" or not fine]
    classes = None if priority is None else np.asarray(priority)[rows]
    candidates = []
    for p, k in chosen:
        made = reconstruct(p, arrival_s, departure_s, k, priority=classes, quantum_s=quantum_s, tolerance_s=CLOSE_S)
        candidates.append(_candidate(p, k, made, events, float(np.nanmax(departure_s - arrival_s, initial=0.0))))
    if not candidates and len(rows) > 0:
        raise ValueError(f"policies {tuple(policies)} on {tuple(numbers)} servers: there is no candidate among them")
    return _judge(sorted(candidates, key=lambda each: -round(each.log_likelihood, 6)), events)


def _window(arrival_s: Floats, events: Pairs, most: int) -> Ints:
    """Return the rows of the middle of a long log: from an arrival at an empty system to another, if there are any."""
    n = len(events.order)
    if n <= most:
        return np.arange(n)
    lone = np.flatnonzero(met_on_arrival(events) == 0)
    start = int(next(iter(lone[lone >= (n - most) // 2]), (n - most) // 2))
    ends = lone[(lone > start) & (lone <= start + most)]
    return np.sort(events.order[start : int(ends[-1]) if len(ends) else start + most])


def _candidate(policy: Policy, servers: int, made: Reconstruction, events: Pairs, longest_s: float) -> _Candidate:
    """Return a policy with how well it explains the log."""
    crowded = int(np.count_nonzero((events.job < 0) & (events.present >= servers)))
    misfits = np.count_nonzero(~made.fits & made.finished) / max(crowded, 1)
    likely = log_likelihood(made, longest_s) if longest_s > 0 else 0.0
    return _Candidate(policy, servers, made, likely, crowded, float(misfits))


def _judge(candidates: list[_Candidate], events: Pairs) -> Identified:
    """Return the best of the candidates, given best first, or why it is not the answer."""
    columns = ["policy", "servers", "log_likelihood", "crowded", "misfits"]
    table = pd.DataFrame([[getattr(each, name) for name in columns] for each in candidates], columns=columns)
    if not candidates:
        return Identified(None, None, np.nan, "there are no requests", (), (), table)
    possible = [each for each in candidates if each.misfits <= MISFITS]
    best = (possible or candidates)[0]
    behind = [each for each in possible if each is not best]
    others = [each for each in behind if not _same(each, best)]
    score = best.log_likelihood - others[0].log_likelihood if others else np.nan
    rivals = tuple((o.policy, o.servers) for o in behind if best.log_likelihood - o.log_likelihood < ODDS)
    findings = agreement(best.made, events, best.servers)
    reason = _refusal(best, others, findings, int(np.count_nonzero(met_on_arrival(events) == 0)))
    policy, servers = (None, None) if reason else (best.policy, best.servers)
    return Identified(policy, servers, float(score), reason, rivals, findings, table)


def _same(one: _Candidate, other: _Candidate) -> bool:
    """Return whether two candidates make the same of every request that they fit."""
    both = one.made.fits & other.made.fits
    return bool(both.all()) and bool(np.abs(one.made.demand_s - other.made.demand_s).max(initial=0.0) < CLOSE_S)


def _refusal(best: _Candidate, others: list[_Candidate], findings: tuple[Finding, ...], lone: int) -> str:
    """Return why the best candidate is not the answer; empty if it is."""
    name = f"{best.policy} on {best.servers} servers"
    if best.crowded < CROWDED:
        seen = f"{best.crowded} departures while more than {best.servers} were present"
        return f"{seen}: it takes {CROWDED} to tell policies"
    if lone < LONE:
        return f"{lone} requests met nobody on arrival: it takes {LONE} to check demands"
    if best.misfits > MISFITS:
        return (
            f"nothing fits: {best.misfits:.1%} of the departures while somebody waits contradict {name}, the likeliest"
        )
    for finding in findings:
        if finding.against:
            return f"nothing fits: under {name}, the likeliest, demands depend on {finding.name} ({finding.size:+.2f})"
    for each in others:
        if each.policy != best.policy and best.log_likelihood - each.log_likelihood < ODDS:
            return f"{name} and {each.policy} on {each.servers} explain the log about equally well"
    return ""
