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
# Thresholds were set together on repeats 0 to 2 of tests/helpers/policy_logs.py, whose criterion is that at most 1% of
# decisive logs are named wrongly; how often they decide was counted on other repeats (docs/requests.md). Where another
# reason set one, it stands beside it.
FIRST_REQUESTS = 6_000
"""So many requests, from the middle of a log, are looked at first; if that decides nothing, more. Set by time: twice as
many take twice as long."""
REPLICATES = 3
"""Logs that are simulated under each candidate. Set by time: the least that has a standard deviation worth its name."""
INDIFFERENCE = 0.03
"""Standard deviation that every statistic has beside that of replicates: so large a correlation, half of it in misfits,
or three times in nats for each departure while somebody waits. No real server is a simulated one."""
NAT_WEIGHT, MISFIT_WEIGHT = 0.3, 2.0
"""What a nat for each departure while somebody waits and a share of misfits count, relative to a correlation."""
LEAST_SEPARATION = 0.5
"""Two candidates are separated if their means differ by so many standard deviations, as a root mean square over the
statistics."""
LARGEST_NOISE = 0.5
"""And if the standard deviations of both along the discriminant add up to less than this part of the distance of their
means."""
ACCEPTED = 0.6
"""Least score, between 0 for the other candidate and 1 for this one, with which a log is a candidate's: 0.5 would be as
far from both."""
ACCEPTED_ALONE = 0.7
"""And with which it is so whatever the likelihood says."""
GOOD_FIT = 1.25
"""Nor is another policy than the likeliest named if the log differs from its replicates by more standard deviations, as
a root mean square; those of a true policy differ by some 1."""
POOR_FIT = 3.0
"""So many are too many for any policy of which the log is not clearly."""
SHUFFLED_WITHIN = 500
"""Demands are dealt to requests that came so near to each other, so that busy times are busy in replicates, too."""
LEAST_FREE = 100
"""Least number of requests that met a free server whose demands stand for those of all."""
LEAST_DEMAND = 1e-3
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
    score: Floats
    """(m, m): scores on the discriminant of two: 1 at the mean of the row's replicates, 0 at that of the column's."""
    separated: Floats
    """(m, m): 1 if the replicates of the two are separated, else 0."""
    distance: Floats
    """(m,) by how many standard deviations the log differs from the replicates, as a root mean square."""

    @property
    def nearest(self) -> Served:
        """The candidate that the log is nearest to in the worst of its comparisons."""
        return self.candidates[int(self._least_score().argmax())]

    @property
    def winner(self) -> Served | None:
        """The nearest candidate, if the log is near to it compared with every other one, and all are told from it."""
        at = int(self._least_score().argmax())
        others = np.arange(len(self.candidates)) != at
        clear = bool((self.score[at] >= ACCEPTED)[others].all() and (self.separated[at] > 0)[others].all())
        return self.candidates[at] if clear else None

    @property
    def sure(self) -> bool:
        """Whether the log is so near to the winner and so like its logs that no likelihood is needed."""
        at = int(self._least_score().argmax())
        return bool(self._least_score()[at] >= ACCEPTED_ALONE and self.distance[at] <= GOOD_FIT)

    def beaten(self, candidate: Served, accepted: float = ACCEPTED) -> bool:
        """Return whether the log is clearly another candidate's than this one's."""
        at = self.candidates.index(candidate)
        return bool(((self.score[at] < 1 - accepted) & (self.separated[at] > 0)).any())

    def in_question(self) -> list[Served]:
        """Return the candidates that the log may be from."""
        return [candidate for candidate in self.candidates if not self.beaten(candidate, ACCEPTED_ALONE)]

    def _least_score(self) -> Floats:
        least: Floats = np.where(np.eye(len(self.candidates)) > 0, np.inf, self.score).min(axis=1)
        return least


def discriminate(
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
    recorded = summary(log, servers, policies)
    simulated = [
        np.array([summary(replicate, servers, policies) for replicate in _replicates(log, candidate)])
        for candidate in candidates
    ]
    means = np.array([replicates.mean(axis=0) for replicates in simulated])
    variances = np.array([replicates.var(axis=0, ddof=1) for replicates in simulated]) + INDIFFERENCE**2
    m = len(candidates)
    score, separated = np.full((m, m), 0.5), np.zeros((m, m))
    for a in range(m):
        for b in range(m):
            difference = means[a] - means[b]
            discriminant = difference / (variances[a] + variances[b])
            squared_distance = float(discriminant @ difference)
            if a == b or squared_distance <= 0.0:
                continue
            score[a, b] = float(discriminant @ (recorded - means[b])) / squared_distance
            noise = sum(float((simulated[side] @ discriminant).std(ddof=1)) for side in (a, b)) / squared_distance
            root_mean_square = np.sqrt(squared_distance / len(discriminant))
            separated[a, b] = root_mean_square >= LEAST_SEPARATION and noise <= LARGEST_NOISE
    distance = np.sqrt(((recorded - means) ** 2 / variances).mean(axis=1))
    return CandidateTrial(tuple(candidates), score, separated, distance)


def summary(log: RequestPairs, servers: int, policies: Sequence[PolicyName]) -> Floats:
    """Return the statistics that logs are compared by: what every policy makes of one.

    Parameters
    ----------
    log : requests
    servers : k that the policies have
    policies : that can make something of any log on so many servers, processor sharing among them

    Returns
    -------
    (3 × policies,) array
        Likelihoods relative to that of processor sharing, misfits, and correlations of demands with requests met.

    Examples
    --------
    >>> log = RequestPairs(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0]), None, 0.1, 0.0)
    >>> summary(log, 1, ("ps",)).round(2).tolist()
    [0.0, 0.0, 0.93]
    """
    events = pairs(log.arrival_s, log.departure_s)
    crowded = int(np.count_nonzero((events.job < 0) & (events.present >= servers)))
    longest_s = float(np.nanmax(log.departure_s - log.arrival_s, initial=0.0)) or 1.0
    met = np.empty(len(log.arrival_s))
    met[events.order] = met_on_arrival(events)
    likelihood, misfits, correlations = dict[PolicyName, float](), list[float](), list[float]()
    for policy in policies:
        reconstruction = _reconstructed(log, policy, servers)
        known = reconstruction.fits & reconstruction.finished
        likelihood[policy] = log_likelihood(reconstruction, longest_s, crowded, log.tick_s)
        misfits.append(np.count_nonzero(~reconstruction.fits & reconstruction.finished) / max(crowded, 1))
        log_demand = np.log(np.maximum(reconstruction.demand_s[known] / longest_s, LEAST_DEMAND))
        correlations.append(_correlation(log_demand, met[known]))
    nats = (np.array([*likelihood.values()]) - likelihood["ps"]) / max(crowded, 1)
    return np.concatenate([NAT_WEIGHT * nats, MISFIT_WEIGHT * np.array(misfits), correlations])


def _replicates(log: RequestPairs, candidate: Served) -> Iterator[RequestPairs]:
    """Yield logs that the candidate might have made of the requests of one."""
    policy, servers = candidate
    rng, n, tick_s = np.random.default_rng(0), len(log.arrival_s), log.tick_s
    if POLICIES[policy].hidden and servers > 1:
        demand_s = _demands_at_free_servers(log, servers, rng)
    else:
        demand_s = np.maximum(_reconstructed(log, policy, servers).demand_s, 0.0)
    classes = np.zeros(n, np.int64) if log.priority is None else np.asarray(log.priority)
    by_arrival = np.argsort(log.arrival_s, kind="stable")
    rows_of_class = [by_arrival[classes[by_arrival] == number] for number in np.unique(classes)]
    for _ in range(REPLICATES):
        came_s = log.arrival_s + rng.uniform(0.0, tick_s, n)
        dealt_s = np.empty(n)
        for rows in rows_of_class:
            places = np.arange(len(rows)) + rng.uniform(0.0, SHUFFLED_WITHIN, len(rows))
            dealt_s[rows] = demand_s[rows[np.argsort(places)]]
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


def _demands_at_free_servers(log: RequestPairs, servers: int, rng: np.random.Generator) -> Floats:
    """Return demands that requests may have had whose policy runs each to its end, and hides whom it takes.

    They are drawn from those of requests that met a free server, and make as much work as was done; if there are too
    few of these, they are those of one course of events.
    """
    events = pairs(log.arrival_s, log.departure_s)
    free = events.order[met_on_arrival(events) < servers]
    known_s = (log.departure_s - log.arrival_s)[free]
    known_s = known_s[~np.isnan(known_s)]
    if len(known_s) < LEAST_FREE or not known_s.sum() > 0.0:
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
