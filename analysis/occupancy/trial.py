"""Candidates put to the trial: a log must look like logs that are simulated under its policy, and like no other's.

A likelihood compares candidates with each other, and where stamps are rounded it is not quite theirs: what happens
within a tick counts in the order that suits each policy, which is worth more to one policy than to another. So a log
is simulated under each candidate, with the demands that the candidate makes of the recorded one, and looked at as the
recorded one was (Cox 1961; Williams 1970).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from analysis.occupancy.curve import met_on_arrival, pairs
from analysis.occupancy.inversion import Reconstruction, drawn_demands, reconstruct
from analysis.occupancy.likelihood import CLOSE_S, log_likelihood
from models.arrays import Floats, Ints
from models.queues.policies import POLICIES, PolicyName
from models.queues.serve import serve

Served: TypeAlias = tuple[PolicyName, int]
"""A policy on so many servers."""
FIRST = 6_000
"""So many requests, from the middle of a log, are looked at first; if that decides nothing, more."""
SIMULATED = 3
"""Logs that are simulated under each candidate."""
DIFFERENCE = 0.03
"""What no two logs are told apart by: so large a correlation, half of it in misfits, or three times in nats for each
departure while somebody waits. No real server is a simulated one."""
NAT, MISFIT = 0.3, 2.0
"""What a nat for each departure while somebody waits and a share of misfits count, relative to a correlation."""
APART = 0.5
"""Two candidates are told apart if what they are looked at for differs by so many standard deviations on average."""
SPREAD = 0.5
"""And if both standard deviations along the line between them add up to less than this part of it."""
NEAR = 0.6
"""A log that is so far from one candidate to another is the other's: half way would be as far from both."""
SURE = 0.7
"""And that is far enough to name another policy than the likeliest, or not to look at a candidate again."""
UNLIKE = 1.25
"""Nor is another policy than the likeliest named if the log differs from those simulated under it by more standard
deviations on average."""
STRANGE = 3.0
"""So many are too many for any policy of which the log is not clearly."""
NEARBY = 500
"""Demands are dealt to requests that came so near to each other, so that busy times are busy in simulated logs, too."""
KNOWN = 100
"""Least number of requests that met a free server whose demands stand for those of all."""
LEAST = 1e-3
"""Least demand that counts in a correlation, relative to the longest stay."""


@dataclass(frozen=True, slots=True)
class RequestPairs:
    """Matched pairs of a log, and what else is known of it."""

    arrival_s: Floats
    departure_s: Floats
    """(n,) NaN: not left."""
    priority: Ints | None
    quantum_s: float
    tick_s: float
    """What stamps were rounded to; 0: nothing."""


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """Where a log is between those that are simulated under candidates."""

    candidates: tuple[Served, ...]
    place: Floats
    """(m, m): 1 if the log is where those of the row are, 0 if it is where those of the column are."""
    told: Floats
    """(m, m): 1 if the two are told apart, else 0."""
    unlike: Floats
    """(m,) by how many standard deviations the log differs from those of each candidate, on average."""

    @property
    def nearest(self) -> Served:
        """The candidate that the log is nearest to in the worst of its comparisons."""
        return self.candidates[int(self._worst().argmax())]

    @property
    def winner(self) -> Served | None:
        """The nearest candidate, if the log is near to it compared with every other one, and all are told from it."""
        at = int(self._worst().argmax())
        others = np.arange(len(self.candidates)) != at
        clear = bool((self.place[at] >= NEAR)[others].all() and (self.told[at] > 0)[others].all())
        return self.candidates[at] if clear else None

    @property
    def sure(self) -> bool:
        """Whether the log is so near to the winner and so like its logs that no likelihood is needed."""
        at = int(self._worst().argmax())
        return bool(self._worst()[at] >= SURE and self.unlike[at] <= UNLIKE)

    def beaten(self, candidate: Served, near: float = NEAR) -> bool:
        """Return whether the log is clearly another candidate's than this one's."""
        at = self.candidates.index(candidate)
        return bool(((self.place[at] < 1 - near) & (self.told[at] > 0)).any())

    def in_question(self) -> list[Served]:
        """Return the candidates that the log may be from."""
        return [candidate for candidate in self.candidates if not self.beaten(candidate, SURE)]

    def _worst(self) -> Floats:
        worst: Floats = np.where(np.eye(len(self.candidates)) > 0, np.inf, self.place).min(axis=1)
        return worst


def tried(
    log: RequestPairs, candidates: Sequence[Served], servers: int, policies: Sequence[PolicyName]
) -> CandidateTrial:
    """Return where a log is between those simulated under some candidates.

    A log is looked at for what every policy makes of it on `servers`: the likelihood relative to that of processor
    sharing, the share of departures that contradict the policy, and the correlation of its demands with the number of
    requests met. Two candidates are compared along the line that tells them apart best if these do not hang together
    (Fisher 1936). Demands are dealt to other requests that came nearby, those of one class among themselves; of random
    order on several servers they are drawn from those of requests that met a free server.

    Parameters
    ----------
    log : requests
    candidates : at least one
    servers : k that the log is looked at on
    policies : that can make something of any log on so many servers, processor sharing among them
    """
    views = _Views(servers, tuple(policies))
    recorded = views.of(log)
    simulated = [np.array([views.of(again) for again in _again(log, candidate)]) for candidate in candidates]
    means, spreads = (np.array([getattr(some, name)(axis=0) for some in simulated]) for name in ("mean", "std"))
    variances = spreads**2 * SIMULATED / (SIMULATED - 1) + DIFFERENCE**2
    m = len(candidates)
    place, told = np.full((m, m), 0.5), np.zeros((m, m))
    for a in range(m):
        for b in range(m):
            between = means[a] - means[b]
            line = between / (variances[a] + variances[b])
            length = float(line @ between)
            if a == b or length <= 0.0:
                continue
            place[a, b] = float(line @ (recorded - means[b])) / length
            noise = sum(float((simulated[side] @ line).std(ddof=1)) / length for side in (a, b))
            told[a, b] = np.sqrt(length / len(line)) >= APART and noise <= SPREAD
    unlike = np.sqrt(((recorded - means) ** 2 / variances).mean(axis=1))
    return CandidateTrial(tuple(candidates), place, told, unlike)


@dataclass(frozen=True, slots=True)
class _Views:
    """What policies make of logs."""

    servers: int
    policies: tuple[PolicyName, ...]

    def of(self, log: RequestPairs) -> Floats:
        """Return what all make of a log, in numbers."""
        events = pairs(log.arrival_s, log.departure_s)
        crowded = int(np.count_nonzero((events.job < 0) & (events.present >= self.servers)))
        longest_s = float(np.nanmax(log.departure_s - log.arrival_s, initial=0.0)) or 1.0
        met = np.empty(len(log.arrival_s))
        met[events.order] = met_on_arrival(events)
        likely, misfits, correlations = dict[PolicyName, float](), list[float](), list[float]()
        for policy in self.policies:
            what = _reconstructed(log, policy, self.servers)
            known = what.fits & what.finished
            likely[policy] = log_likelihood(what, longest_s, crowded, log.tick_s)
            misfits.append(np.count_nonzero(~what.fits & what.finished) / max(crowded, 1))
            correlations.append(_correlation(np.log(np.maximum(what.demand_s[known] / longest_s, LEAST)), met[known]))
        nats = (np.array([*likely.values()]) - likely["ps"]) / max(crowded, 1)
        return np.concatenate([NAT * nats, MISFIT * np.array(misfits), correlations])


def _again(log: RequestPairs, candidate: Served) -> Iterator[RequestPairs]:
    """Yield logs that the candidate might have made of the requests of one."""
    policy, servers = candidate
    rng, n, tick_s = np.random.default_rng(0), len(log.arrival_s), log.tick_s
    if POLICIES[policy].hidden and servers > 1:
        demand_s = _supposed(log, servers, rng)
    else:
        demand_s = np.maximum(_reconstructed(log, policy, servers).demand_s, 0.0)
    classes = np.zeros(n, np.int64) if log.priority is None else np.asarray(log.priority)
    by_arrival = np.argsort(log.arrival_s, kind="stable")
    alike = [by_arrival[classes[by_arrival] == some] for some in np.unique(classes)]
    for _ in range(SIMULATED):
        came_s = log.arrival_s + rng.uniform(0.0, tick_s, n)
        dealt_s = np.empty(n)
        for rows in alike:
            dealt_s[rows] = demand_s[rows[np.argsort(np.arange(len(rows)) + rng.uniform(0.0, NEARBY, len(rows)))]]
        order = np.argsort(came_s, kind="stable")
        left_s = np.empty(n)
        left_s[order] = serve(
            policy,
            came_s[order],
            dealt_s[order],
            servers,
            priority=classes[order],
            quantum_s=log.quantum_s,
            choice=rng.random(n),
        ).departure_s
        if tick_s > 0:
            came_s, left_s = (tick_s * np.floor(stamp_s / tick_s) for stamp_s in (came_s, left_s))
        seen_s = np.where(left_s <= came_s.max(initial=0.0), left_s, np.nan)
        yield RequestPairs(came_s, seen_s, log.priority, log.quantum_s, tick_s)


def _supposed(log: RequestPairs, servers: int, rng: np.random.Generator) -> Floats:
    """Return demands that requests may have had whose policy runs each to its end, and hides whom it takes.

    They are drawn from those of requests that met a free server, and make as much work as was done; if there are too
    few of these, they are those of one course of events.
    """
    events = pairs(log.arrival_s, log.departure_s)
    free = events.order[met_on_arrival(events) < servers]
    known_s = (log.departure_s - log.arrival_s)[free]
    known_s = known_s[~np.isnan(known_s)]
    if len(known_s) < KNOWN or not known_s.sum() > 0.0:
        return drawn_demands(log.arrival_s, log.departure_s, servers)
    work_s = float((np.diff(events.time_s) * np.minimum(events.present[:-1], servers)).sum())
    demand_s = rng.choice(known_s, len(log.arrival_s))
    demand_s = np.abs(demand_s * work_s / demand_s.sum() + rng.uniform(-log.tick_s, log.tick_s, len(demand_s)))
    return np.asarray(demand_s)


def _reconstructed(log: RequestPairs, policy: PolicyName, servers: int) -> Reconstruction:
    return reconstruct(
        policy,
        log.arrival_s,
        log.departure_s,
        servers,
        priority=log.priority,
        quantum_s=log.quantum_s,
        tolerance_s=CLOSE_S,
        tick_s=log.tick_s,
    )


def _correlation(x: Floats, y: Floats) -> float:
    """Return Pearson's correlation; 0 where it is not defined."""
    steady = len(x) < 2 or float(np.ptp(x)) < CLOSE_S or float(np.ptp(y)) == 0.0
    return 0.0 if steady else float(np.corrcoef(x, y)[0, 1])
