"""Which policy and how many servers a log speaks for: every candidate explains it, the likeliest is put to the test."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from analysis.occupancy.curve import Pairs, met_on_arrival, pairs, undisturbed
from analysis.occupancy.inversion import Reconstruction, reconstruct
from analysis.occupancy.likelihood import CLOSE_S, log_likelihood
from analysis.occupancy.logs.hygiene import resolution_s
from analysis.occupancy.logs.network import network_option
from analysis.occupancy.trial import (
    ACCEPTED,
    ACCEPTED_ALONE,
    FIRST_REQUESTS,
    POOR_FIT,
    CandidateTrial,
    RequestPairs,
    Served,
    discriminate,
)
from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.policies import POLICIES, PolicyName

ODDS = float(np.log(20.0))
"""A rival whose likelihood is within a factor of 20 of the best one's is not ruled out."""
CROWDED = 20
"""Least number of departures while somebody waits that tell how servers choose."""
HIDDEN = 0.5
"""So much likelier for each departure while somebody waited must another number be beside that, times the events in one
tick of the stamps up to one: their order is not known, and a wrong number may take the best."""
CONTRARY = 30.0
"""So much likelier, as a natural logarithm, must a policy be on another number of servers than on the expected one:
between neighbouring numbers chance alone made up to 22 in 72 simulated logs."""
EVERY = 16
"""So many servers are tried one by one, more in steps of a fifth and then between those that explain the log best."""
MISFITS = 0.02
"""Largest part of the departures while somebody waits that may contradict the policy: wrong stamps."""
LONE = 10
"""Least number of requests that meet nobody on arrival, whose demands are known without a policy."""
ORDERED = 200
"""Least number of requests that might have left before their turn that show a policy without any lone request. Random
order, lcfs and sjf, taken for fcfs on 4 to 64 servers, made up to 29 such requests without misfits in 300 simulated
logs, but up to 4,934 departures while somebody waited: these alone say nothing."""
COMMON: tuple[PolicyName, ...] = ("fcfs", "ps")
"""Where the number of servers is said, other numbers are tried under these and under the likeliest policy on that."""
ROUNDED = 0.2
"""More departures may contradict a policy where stamps are rounded: five ticks over the mean demand, or so many."""
ON_ONE: tuple[PolicyName, ...] = ("random",)
"""Policies that are looked for on one server only: whom several took does not follow from the log; the likelihood is
a sum over all that they may have taken, the permanent of a matrix: no quick algorithm is known (Valiant 1979)."""
RESOLVED = 5.0
"""Other numbers of servers are no candidates if the mean demand on them is less than so many ticks of the stamps."""
SUPPORT = 30
"""The distribution of demands that are known without a policy is compared up to where so many are left."""
SLICES = 1000
"""Mean stay in slices above which round robin is processor sharing."""
LEVEL = 0.003
"""Level of each of three tests: all together refuse less than 1% of the true."""
MATERIAL = 0.15
"""Smaller differences are not held against a policy: no real server is one to the last digit. On six logs of a real
server that shared its core those who met more requests seemed to need less, by 0.03 to 0.12: newcomers are favoured."""
DELAYED = 0.05
"""The same of demands that are larger the more requests were met: who waits without service seems to need more. Random
order, taken for processor sharing, makes 0.08 to 0.16."""
AT_ONCE = 2.0
"""If so many events share a tick, policies that compare demands or slices with each other are not told: where 2.2 to
3.1 did, on eight servers, 8 of 27 logs were named wrongly, most of them srpt."""


@dataclass(frozen=True, slots=True)
class DemandTest:
    """One test: what it compares, how large the difference is, and how rare one so large is under the true policy."""

    name: str
    size: float
    """A correlation, or a distance of distribution functions; between −1 and 1."""
    p_value: float
    longer_s: float = np.nan
    """By how much demands are longer in the mean of those that met nobody (alone), or a free server (waiting)."""

    @property
    def against(self) -> bool:
        """Whether the difference is neither chance nor small."""
        least = MATERIAL if self.size < 0 or self.name == "alone" else DELAYED
        return self.p_value < LEVEL and abs(self.size) >= least


@dataclass(frozen=True, slots=True)
class Identified:
    """What a log says of its server."""

    policy: PolicyName | None
    """The policy; None if nothing fits or the log does not tell."""
    servers: int | None
    score: float
    """How much likelier the best candidate is than the next one that explains the log differently, as a natural
    logarithm; NaN without any. On the expected number of servers the next one is on that number, too. Below 0 if only
    simulated logs tell the policy."""
    reason: str
    """Why there is no answer; empty if there is one."""
    rivals: tuple[tuple[PolicyName, int], ...]
    """Candidates that the log does not tell from the best one."""
    findings: tuple[DemandTest, ...]
    """The tests that the best candidate was put to."""
    candidates: pd.DataFrame
    """policy, servers, log_likelihood, crowded (departures while somebody waits), misfits (share of these that
    contradict the candidate); best first."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A policy on so many servers, and what it makes of the log."""

    policy: PolicyName
    servers: int
    reconstruction: Reconstruction
    log_likelihood: float
    crowded: int
    """Departures while somebody waits."""

    @property
    def misfits(self) -> float:
        """Share of these that contradict the candidate."""
        wrong = ~self.reconstruction.fits & self.reconstruction.finished
        return float(np.count_nonzero(wrong) / max(self.crowded, 1))

    @property
    def mean_s(self) -> float:
        """Mean demand; 0 without any."""
        known = self.reconstruction.demand_s[self.reconstruction.fits & self.reconstruction.finished]
        return float(known.mean()) if len(known) else 0.0


_Tested = tuple[_Candidate, tuple[DemandTest, ...]]


def identify(
    arrival_s: Floats,
    departure_s: Floats,
    *,
    policies: Sequence[PolicyName] = tuple(POLICIES),
    servers: Sequence[int] | None = None,
    expected_servers: int | None = None,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    tick_s: float | None = None,
    most: int = 20_000,
    simulate: bool = True,
) -> Identified:
    """Return the policy and number of servers that explain a log of matched pairs, or why none does.

    Under each candidate the demands are reconstructed, and candidates are compared by the likelihood of the departures
    whatever the distribution of demands (`log_likelihood`). The best must then agree with what holds under any policy:
    few departures contradict it, and its demands depend neither on what requests meet on arrival nor differ from those
    of requests that meet nobody (`agreement`: fewer than 1% of true candidates are refused). Other policies must be 20
    times less likely, unless they make the same of the log. Candidates that fail these tests and under which hardly
    anybody waited are passed over.

    On several servers logs are then simulated under every policy on the number in question (`trial`). The candidate is
    refused if the log is clearly another's or, where stamps are rounded, lies nearer to those of another; where one
    policy's logs are like it and no other's are, that policy is the answer, whatever the likelihood said.

    If the number of servers is known from elsewhere, say it as `expected_servers`: then the likeliest policy on that
    number which passes the tests is the answer where the likeliest of all candidates fails them, or is the same policy
    on another number and not e³⁰ times likelier. Another number of servers is answered if it passes and is that likely.
    On the expected number a policy that serves in turn needs no requests that met nobody if 200 might have left before
    their turn and none did: busy servers of many cores are never empty.

    What cannot be told from a candidate is taken for it: a soft limit of concurrency for fewer servers, round robin
    with a quantum other than the one given for ps, to which it tends.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left
    policies, servers : the candidates; random only on one server, priority only with classes. None: 1 to 16
        servers, and of more every sixth number and those around the likeliest, no more than requests were ever present
    expected_servers : the number of servers that the log is said to be made with; None: nothing is known
    priority : (n,) classes, 0 first
    quantum_s : time slice of rr, which is no candidate if stays are above 1,000 slices, where it is ps, nor if 99% of
        the demands are below one slice, where it is fcfs
    tick_s : what stamps were rounded to; None: what all of them are multiples of
    most : so many requests are looked at, from the middle of the log
    simulate : whether logs are simulated under the candidates; without, the policy is that of the likelihood alone

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
    >>> identified = identify(arrival, departure)
    >>> identified.policy, identified.servers
    ('fcfs', 1)
    """
    arrival_s, departure_s = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    tick_s = max(map(resolution_s, (arrival_s, departure_s))) if tick_s is None else tick_s
    rows, departure_s = _window(arrival_s, departure_s, pairs(arrival_s, departure_s), most)
    arrival_s = arrival_s[rows]
    events = pairs(arrival_s, departure_s)
    peak = int(events.present.max(initial=0))
    if servers is None and peak > 0 and expected_servers is not None and expected_servers > peak:
        present = f"{peak} request{' was' if peak == 1 else 's were'} present"
        reason = f"at most {present}, so none waited on {_count(expected_servers)}"
        return Identified(None, None, np.nan, reason, (), (), _table([]))
    chosen = [name for name in policies if POLICIES[name].order != "class" or priority is not None]
    fine = quantum_s * SLICES < float(np.nan_to_num(departure_s - arrival_s).sum()) / max(len(rows), 1)
    chosen = [name for name in chosen if not (fine and POLICIES[name].sliced)]
    classes = None if priority is None else np.asarray(priority)[rows]

    longest_s = float(np.nanmax(departure_s - arrival_s, initial=0.0))

    def explained(policy: PolicyName, k: int) -> _Candidate:
        reconstruction = reconstruct(
            policy, arrival_s, departure_s, k, priority=classes, quantum_s=quantum_s, tolerance_s=CLOSE_S, tick_s=tick_s
        )
        crowded = int(np.count_nonzero((events.job < 0) & (events.present >= k)))
        likely = log_likelihood(reconstruction, longest_s, crowded, tick_s) if longest_s > 0 else 0.0
        return _Candidate(policy, k, reconstruction, likely, crowded)

    def searched(some: Sequence[PolicyName], numbers: Sequence[int]) -> Iterator[_Candidate]:
        for policy in some:
            alone = policy in ON_ONE
            on = {k: explained(policy, k) for k in numbers if k == 1 or not alone}
            if servers is None and not alone:
                _between(on, partial(explained, policy))
            yield from on.values()

    if servers is not None:
        candidates = list(searched(chosen, sorted(set(servers))))
    elif expected_servers is None:
        candidates = list(searched(chosen, _steps(peak)))
    else:
        own = [
            explained(policy, expected_servers) for policy in chosen if expected_servers == 1 or policy not in ON_ONE
        ]
        best = max(own, key=lambda candidate: candidate.log_likelihood, default=None)
        likely = [name for name in chosen if name in COMMON or (best is not None and name == best.policy)]
        others = searched(likely, _steps(peak))
        candidates = own + [candidate for candidate in others if candidate.servers != expected_servers]
    if not candidates and len(rows) > 0:
        numbers = tuple(servers or ())
        raise InputError(f"policies {tuple(policies)} on {numbers} servers: there is no candidate among them")
    resolved = [each for each in candidates if each.servers == expected_servers or each.mean_s >= RESOLVED * tick_s]
    candidates = [each for each in resolved or candidates if not _one_slice(each, quantum_s)] or candidates
    candidates = sorted(candidates, key=lambda candidate: -round(candidate.log_likelihood, 6))
    judged = _judge(candidates, events, departure_s - arrival_s, expected_servers, tick_s)
    number = expected_servers or judged.servers or (candidates[0].servers if candidates else 1)
    own = [candidate for candidate in candidates if candidate.servers == number]
    if not simulate or number == 1 or not own:
        return judged
    explaining = [name for name, rules in POLICIES.items() if not rules.hidden and not (fine and rules.sliced)]
    explaining = [name for name in explaining if POLICIES[name].order != "class" or classes is not None]
    return _after_trial(
        RequestPairs(arrival_s, departure_s, classes, quantum_s, tick_s), own, judged, events, explaining
    )


def agreement(
    reconstruction: Reconstruction, events: Pairs, servers: int, tick_s: float = 0.0
) -> tuple[DemandTest, ...]:
    """Return what speaks against demands: requests do not know what they will meet when they arrive.

    * congestion: distance of the demands of those that met more than the median from the others' (Kolmogorov-Smirnov);
    * waiting: the same of those that met all servers busy;
    * alone: demands of requests that met nobody, until the next arrival known without any policy (Kaplan and Meier
      1958), against the others' by the log-rank test (Mantel 1966); the size is the distance where the former is known.

    A test without at least 10 requests on either side is left out.

    Parameters
    ----------
    reconstruction, events : a log under a policy, and its events
    servers : k of the policy
    tick_s : what stamps were rounded to. A distance is what remains if all demands of one side are moved by so much
        (Lévy 1925), since they are known no better
    """
    from scipy.stats import ks_2samp

    demand_s = reconstruction.demand_s[events.order]
    known = (reconstruction.fits & reconstruction.finished)[events.order]
    met = met_on_arrival(events)
    known &= np.isin(
        np.arange(len(known)), events.job
    )  # who leaves in the tick in which it comes, met nobody knows whom
    findings = []
    usual = float(np.median(met[known])) if known.any() else 0.0
    for name, more in (("congestion", met > usual), ("waiting", met >= servers)):
        some, others = demand_s[known & more], demand_s[known & ~more]
        if min(len(some), len(others)) >= 10:
            apart = float(ks_2samp(some, others, method="asymp").pvalue)
            longer_s = float(others.mean() - some.mean()) if name == "waiting" else np.nan
            findings.append(DemandTest(name, _distance(some, others, tick_s), apart, longer_s))
    return (*findings, *_alone(demand_s, known, met, events, tick_s))


def _steps(peak: int) -> list[int]:
    """Return numbers of servers up to as many as were ever present: all of the few, of more every sixth or so."""
    numbers = set(range(1, min(peak, EVERY) + 1))
    step = EVERY
    while step < peak:
        step = min(step + step // 5, peak)
        numbers.add(step)
    return sorted(numbers)


def _between(on: dict[int, _Candidate], explained: Callable[[int], _Candidate]) -> None:
    """Add candidates between the likeliest number of servers and its neighbours, halving what is left between them."""
    while on:
        tried = sorted(on)
        at = max(range(len(tried)), key=lambda i: on[tried[i]].log_likelihood)
        around = zip(tried[max(at - 1, 0) : at + 1], tried[at : at + 2], strict=False)
        middle = [(low + high) // 2 for low, high in around if high - low > 1]
        if not middle:
            return
        on.update({k: explained(k) for k in middle})


def _window(arrival_s: Floats, departure_s: Floats, events: Pairs, most: int) -> tuple[Ints, Floats]:
    """Return the rows of the middle of a long log, and their departures until its end: later ones are not finished.

    It begins with the arrival of its first half that met the fewest requests.
    """
    n = len(events.order)
    if n <= most:
        return np.arange(n), departure_s
    met, first = met_on_arrival(events), (n - most) // 2
    start = first + int(met[first : first + most // 2].argmin())
    rows = np.sort(events.order[start : start + most])
    end_s = arrival_s[rows].max()
    return rows, np.where(departure_s <= end_s, departure_s, np.nan)[rows]


def _judge(
    candidates: list[_Candidate], events: Pairs, stay_s: Floats, expected: int | None, tick_s: float
) -> Identified:
    """Return the best of the candidates, given best first, or why it is not the answer."""
    table = _table(candidates)
    if not candidates:
        return Identified(None, None, np.nan, "there are no requests", (), (), table)
    possible = [candidate for candidate in candidates if candidate.misfits <= _allowed(candidate, tick_s)]
    span_s = float(np.ptp(events.time_s)) if len(events.time_s) else 0.0
    at_once = len(events.time_s) * tick_s / span_s if span_s > 0 else 0.0
    best, findings = _answer(possible or candidates, events, expected, tick_s, at_once)
    among = [candidate for candidate in possible if best.servers != expected or candidate.servers == expected]
    behind = [
        candidate for candidate in among if candidate is not best and candidate.log_likelihood <= best.log_likelihood
    ]
    others = [candidate for candidate in behind if not _same(candidate, best)]
    better = [each for each in candidates if each.servers == best.servers and each not in possible]
    unsure = next((each for each in better if each.log_likelihood > best.log_likelihood + ODDS), None)
    score = best.log_likelihood - others[0].log_likelihood if others else np.nan
    rivals = tuple((o.policy, o.servers) for o in behind if best.log_likelihood - o.log_likelihood < ODDS)
    seen = int(np.count_nonzero(met_on_arrival(events) == 0)) >= LONE or _out_of_turn(best, stay_s)
    reason = _refusal(best, others, findings, tick_s, at_once=at_once, seen=seen, stay_s=stay_s) or (
        _unsure(best, unsure) if unsure else ""
    )
    policy, servers = (None, None) if reason else (best.policy, best.servers)
    return Identified(policy, servers, float(score), reason, rivals, findings, table)


def _middle(log: RequestPairs) -> RequestPairs:
    """Return the requests of a log that are looked at first."""
    rows, departure_s = _window(log.arrival_s, log.departure_s, pairs(log.arrival_s, log.departure_s), FIRST_REQUESTS)
    classes = None if log.priority is None else log.priority[rows]
    return RequestPairs(log.arrival_s[rows], departure_s, classes, log.quantum_s, log.tick_s)


def _trial(
    log: RequestPairs, own: list[_Candidate], judged: Identified, explaining: list[PolicyName]
) -> CandidateTrial:
    """Return the trial of candidates on one number of servers, of random order and of the one that was judged best.

    If some requests do not decide it, those candidates that the log may be from are tried on all of them.
    """
    servers = own[0].servers
    sources: list[Served] = [(candidate.policy, servers) for candidate in own]
    sources += [(name, servers) for name in ON_ONE]
    if judged.policy is not None and judged.servers is not None and (judged.policy, judged.servers) not in sources:
        sources.append((judged.policy, judged.servers))
    middle = _middle(log)
    trial = discriminate(middle, sources, servers, explaining)
    left = trial.in_question()
    if trial.winner is None and len(middle.arrival_s) < len(log.arrival_s) and len(left) > 1:
        return discriminate(log, left, servers, explaining)
    return trial


def _after_trial(
    log: RequestPairs, own: list[_Candidate], judged: Identified, events: Pairs, explaining: list[PolicyName]
) -> Identified:
    """Return what is judged of a log after the trial of its candidates, of which some are on the number in question."""
    if own[0].crowded >= CROWDED:
        return _judged_by_trial(_trial(log, own, judged, explaining), judged, own, events, log.tick_s)
    if judged.policy is None or judged.servers is None or judged.servers in {1, own[0].servers}:
        return judged
    # Hardly anybody waited on so many servers: any policy there stands for all.
    rivals: list[Served] = [(judged.policy, judged.servers), (own[0].policy, own[0].servers)]
    return _refused_by_trial(discriminate(_middle(log), rivals, judged.servers, explaining), judged, log.tick_s)


def _judged_by_trial(
    trial: CandidateTrial, judged: Identified, own: list[_Candidate], events: Pairs, tick_s: float
) -> Identified:
    """Return what is judged of a log by such a trial."""
    servers, winner = own[0].servers, trial.winner
    if winner is not None and winner == (judged.policy, judged.servers):
        return judged
    surely = tick_s > 0.0 or trial.sure
    if winner is not None and winner[0] in ON_ONE and judged.policy is not None and surely:
        reason = (
            f"{judged.policy} is likeliest, but logs simulated under it do not look like this one: those in "
            f"{winner[0]} order do, of which the demands on {_count(servers)} cannot be known"
        )
        return replace(judged, policy=None, servers=None, reason=reason)
    best = next((candidate for candidate in own if winner is not None and candidate.policy == winner[0]), None)
    if best is None or not trial.sure or (tick_s == 0.0 and judged.policy is not None):
        return _refused_by_trial(trial, judged, tick_s)
    findings = agreement(best.reconstruction, events, servers, tick_s)
    if _contradicted((best, findings)):
        return _refused_by_trial(trial, judged, tick_s)
    others = [candidate for candidate in own if candidate is not best and not _same(candidate, best)]
    return replace(
        judged,
        policy=best.policy,
        servers=servers,
        score=best.log_likelihood - max((other.log_likelihood for other in others), default=np.nan),
        reason="",
        rivals=tuple((o.policy, servers) for o in others if best.log_likelihood - o.log_likelihood < ODDS),
        findings=findings,
    )


def _refused_by_trial(trial: CandidateTrial, judged: Identified, tick_s: float) -> Identified:
    """Return what is judged of a log that is not clearly like those simulated under one of the candidates.

    With exact stamps the likelihood decides unless the log is clearly another candidate's.
    """
    if judged.policy is None or judged.servers is None:
        return judged
    named = judged.policy, judged.servers
    known = named in trial.candidates and not trial.beaten(named, ACCEPTED if tick_s > 0.0 else ACCEPTED_ALONE)
    if known and tick_s == 0.0:
        return judged
    if known and trial.nearest == named and trial.distance[trial.candidates.index(named)] <= POOR_FIT:
        return judged
    nearest = next(candidate for candidate in (trial.nearest, *trial.candidates) if candidate != named)
    on = f"{nearest[0]} on {nearest[1]}" + (", rounded alike," if tick_s > 0 else "")
    reason = (
        f"{named[0]} on {_count(named[1])} is likeliest, but logs simulated under {on} look at least as much like this "
        f"one; a longer log{', or finer stamps,' if tick_s > 0 else ''} would decide"
    )
    return replace(judged, policy=None, servers=None, reason=reason)


def _count(servers: int) -> str:
    return f"{servers} server{'' if servers == 1 else 's'}"


def _allowed(candidate: _Candidate, tick_s: float) -> float:
    """Return the largest share of departures that may contradict a candidate: wrong stamps, and what rounding hides."""
    return MISFITS + (min(ROUNDED, 5.0 * tick_s / candidate.mean_s) if candidate.mean_s > 0 else 0.0)


def _table(candidates: list[_Candidate]) -> pd.DataFrame:
    columns = ["policy", "servers", "log_likelihood", "crowded", "misfits"]
    return pd.DataFrame([[getattr(candidate, name) for name in columns] for candidate in candidates], columns=columns)


def _answer(
    candidates: list[_Candidate], events: Pairs, expected: int | None, tick_s: float, at_once: float
) -> _Tested:
    """Return the candidate that is to be answered or refused, and its tests.

    That is the likeliest, except for contradicted ones under which hardly anybody waited: their demands are response
    times, and where stamps are coarse these look likely because they are multiples of the resolution. On the expected
    number of servers it is the likeliest that no test contradicts, if the likeliest of all is contradicted or is the
    same policy on another number of servers and not much likelier.
    """
    best = _first(candidates, events, lambda candidate: candidate.crowded < CROWDED, tick_s)
    own = [candidate for candidate in candidates if candidate.servers == expected]
    if not own or (best[0].servers == expected and not _contradicted(best)):
        return best
    second = _first(own, events, lambda _: True, tick_s)
    needed = CONTRARY + HIDDEN * second[0].crowded * min(1.0, at_once)
    other = best[0].servers != expected and best[0].log_likelihood - second[0].log_likelihood < needed
    return second if _contradicted(best) or (other and not _contradicted(second)) else best


def _first(
    candidates: list[_Candidate], events: Pairs, passed_over: Callable[[_Candidate], bool], tick_s: float
) -> _Tested:
    """Return the first candidate that no test contradicts or that is not passed over for it; the first, without any."""
    tested = list[_Tested]()
    for candidate in candidates:
        if any(_same(candidate, other) for other, _ in tested):
            continue
        tested.append((candidate, agreement(candidate.reconstruction, events, candidate.servers, tick_s)))
        if not (_contradicted(tested[-1]) and passed_over(candidate)):
            return tested[-1]
    return tested[0]


def _contradicted(tested: _Tested) -> bool:
    return any(finding.against for finding in tested[1])


def _unsure(best: _Candidate, better: _Candidate) -> str:
    return (
        f"{better.policy} would explain the log far better than {best.policy}, but {better.misfits:.1%} of the "
        "departures while a request waited contradict it: finer stamps, or the quantum of round robin, would decide"
    )


def _one_slice(candidate: _Candidate, quantum_s: float) -> bool:
    """Return whether all but 1% of the requests need no second slice: round robin then is first come, first served."""
    demand_s = candidate.reconstruction.demand_s
    return POLICIES[candidate.policy].sliced and len(demand_s) > 0 and float(np.quantile(demand_s, 0.99)) <= quantum_s


def _same(candidate: _Candidate, other: _Candidate) -> bool:
    """Return whether two candidates make the same of every request that they fit."""
    both = candidate.reconstruction.fits & other.reconstruction.fits
    off_s = np.abs(candidate.reconstruction.demand_s - other.reconstruction.demand_s)
    return bool(both.all()) and bool(off_s.max(initial=0.0) < CLOSE_S)


def _out_of_turn(best: _Candidate, stay_s: Floats) -> bool:
    """Return whether many requests might have left before their turn, as policies that have turns would not let them.

    Such a one had waited, under the policy, for longer than a twentieth of the demands last. Processor sharing has no
    turns.
    """
    known = best.reconstruction.fits & best.reconstruction.finished
    if POLICIES[best.policy].sharing == "evenly" or not known.any():
        return True
    demand_s = best.reconstruction.demand_s[known]
    return int(np.count_nonzero(stay_s[known] - demand_s > np.quantile(demand_s, 0.05))) >= ORDERED


def _refusal(
    best: _Candidate,
    others: list[_Candidate],
    findings: tuple[DemandTest, ...],
    tick_s: float,
    *,
    at_once: float,
    seen: bool,
    stay_s: Floats,
) -> str:
    """Return why the best candidate is not the answer; empty if it is."""
    name = f"{best.policy} on {_count(best.servers)}"
    if best.crowded < CROWDED:
        count = f"{best.crowded} departures while more than {best.servers} were present"
        return f"{count}: at least {CROWDED} are needed; a longer log, or one of busier hours, would decide"
    if best.misfits > _allowed(best, tick_s):
        return (
            f"nothing fits: {best.misfits:.1%} of the departures while a request waits contradict {name}, the "
            "likeliest: it is another policy or number of servers"
        )
    for finding in findings:
        if finding.against:
            return (
                f"nothing fits: under {name}, the likeliest, demands depend on {finding.name} ({finding.size:+.2f}): "
                "it is another policy or number of servers, or servers wait for something else"
                + _networks(best, finding, stay_s)
            )
    return _undecided(best, others, tick_s, at_once=at_once, seen=seen)


def _networks(best: _Candidate, finding: DemandTest, stay_s: Floats) -> str:
    """Return what else may make requests take longer that met nobody, or a free server.

    Where a request has a server for itself the difference is the network's delay; where requests share servers it is
    less, and says no more than that there may be one.
    """
    option = network_option(finding.longer_s, stay_s)
    if not option:
        return ""
    alone = not POLICIES[best.policy].migrates
    return f", or a client wrote the log and the network is in it ({option if alone else option.split()[0]})"


def _undecided(best: _Candidate, others: list[_Candidate], tick_s: float, *, at_once: float, seen: bool) -> str:
    """Return why another policy may be the true one although nothing speaks against the best; empty if none may."""
    name = f"{best.policy} on {_count(best.servers)}"
    rules = POLICIES[best.policy]
    compared = rules.order in {"remaining", "size"} or rules.sliced or rules.sharing == "least attained"
    if at_once > AT_ONCE and compared:
        return (
            f"{name} is likeliest, but {at_once:.1f} arrivals and departures share a tick of the stamps, and which "
            "requests needed less does not show: finer stamps would decide"
        )
    if not seen:
        return (
            f"{name} is likeliest, but hardly a request waited for as long as short ones take, and fewer than {LONE} "
            "found no other on arrival: another order of service would look the same; a busier log would decide"
        )
    for candidate in others:
        if candidate.policy != best.policy and best.log_likelihood - candidate.log_likelihood < ODDS:
            return (
                f"{name} and {candidate.policy} on {candidate.servers} explain the log about equally well; more "
                f"requests that wait{', or finer stamps,' if tick_s > 0 else ''} would decide"
            )
    return ""


def _distance(some: Floats, others: Floats, tick_s: float) -> float:
    """Return how far two distributions are apart however one is moved by a tick; positive if the first is larger."""
    some, others = np.sort(some), np.sort(others)
    at = np.concatenate((some, others))
    larger = np.searchsorted(others, at, "right") / len(others) - np.searchsorted(some, at + tick_s, "right") / len(
        some
    )
    smaller = np.searchsorted(some, at, "right") / len(some) - np.searchsorted(others, at + tick_s, "right") / len(
        others
    )
    up, down = max(float(larger.max()), 0.0), max(float(smaller.max()), 0.0)
    return up if up >= down else -down


def _alone(demand_s: Floats, known: Bools, met: Ints, events: Pairs, tick_s: float) -> tuple[DemandTest, ...]:
    """Return the comparison with the requests that met nobody."""
    length_s, leaves = undisturbed(events)
    lone, others = met == 0, demand_s[known & (met > 0)]
    if min(int((lone & leaves).sum()), len(others)) < 10:
        return ()
    from scipy.stats import CensoredData, ecdf, logrank

    alone = CensoredData(uncensored=length_s[lone & leaves], right=length_s[lone & ~leaves])
    curve, rest = ecdf(alone).cdf, ecdf(others).cdf
    longest = np.sort(length_s[lone])[-min(SUPPORT, int(lone.sum()))]
    at = curve.quantiles[curve.quantiles <= longest]
    if not len(at):
        return ()
    sides = (curve.evaluate(at) - rest.evaluate(at + tick_s), rest.evaluate(at - tick_s) - curve.evaluate(at))
    distance = max(0.0, *(float(side.max()) for side in sides))
    p_value = float(logrank(alone, CensoredData(others)).pvalue)
    some = demand_s[known & (met == 0)]
    return (DemandTest("alone", distance, p_value, float(some.mean() - others.mean()) if len(some) else np.nan),)
