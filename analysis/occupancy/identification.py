"""Which policy and how many servers a log speaks for: every candidate explains it, the likeliest is put to the test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp
from scipy.stats import CensoredData, ecdf, ks_2samp, logrank, spearmanr

from analysis.occupancy.curve import Pairs, met_on_arrival, pairs, undisturbed
from analysis.occupancy.inversion import Reconstruction, reconstruct
from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.policies import POLICIES, PolicyName

ODDS = float(np.log(20.0))
"""A rival whose likelihood is within a factor of 20 of the best one's is not ruled out."""
CROWDED = 20
"""Least number of departures while somebody waits that tell how servers choose."""
LONE = 10
"""Least number of requests that meet nobody on arrival: only they show demands without a policy."""
ORDERED = 200
"""Least number of requests that might have left before their turn, none of which did, that show a policy without any
lone request. Random order, lcfs and sjf, taken for fcfs on 4 to 64 servers, made up to 29 such requests without misfits
in 300 simulated logs, but up to 4,934 departures while somebody waited: these alone say nothing."""
CONTRARY = 30.0
"""So much likelier, as a natural logarithm, must a policy be on another number of servers than on the expected one:
between neighbouring numbers chance alone made up to 22 in 72 simulated logs."""
EVERY = 16
"""So many servers are tried one by one, more in steps of a fifth and then between those that explain the log best."""
MISFITS = 0.02
"""Largest part of the departures while somebody waits that may contradict the policy: wrong stamps."""
SLICES = 1000
"""Mean stay in slices above which round robin is processor sharing."""
CLOSE_S = 1e-9
"""Demands that differ by less are the same."""
LEVEL = 0.003
"""Level of each of three tests: all together refuse less than 1% of the true."""
MATERIAL = 0.05
"""Smaller differences are not held against a policy: no real server is one to the last digit."""
RESOLUTIONS = tuple(2**power for power in range(11))
"""Numbers of equal bins between 0 and the longest stay, and of bins equal in ratio."""
FLOOR = 1e-3
"""Least demand told apart on the ratio scale, relative to the longest stay."""
MISFIT = 1e-3
"""Probability that a request leaves when the policy was not serving it: a wrong stamp."""


@dataclass(frozen=True, slots=True)
class DemandTest:
    """One test: what it compares, how large the difference is, and how rare one so large is under the true policy."""

    name: str
    size: float
    """A correlation, or a distance of distribution functions; between −1 and 1."""
    p_value: float

    @property
    def against(self) -> bool:
        """Whether the difference is neither chance nor small."""
        return self.p_value < LEVEL and abs(self.size) >= MATERIAL


@dataclass(frozen=True, slots=True)
class Identified:
    """What a log says of its server."""

    policy: PolicyName | None
    """The policy; None if nothing fits or the log does not tell."""
    servers: int | None
    score: float
    """How much likelier the best candidate is than the next one that explains the log differently, as a natural
    logarithm; NaN without any. On the expected number of servers the next one is on that number, too."""
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
    stay_s: Floats
    log_likelihood: float
    crowded: int
    misfits: float


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
    most: int = 10_000,
) -> Identified:
    """Return the policy and number of servers that explain a log of matched pairs, or why none does.

    Under each candidate the demands are reconstructed, and candidates are compared by the likelihood of the departures
    whatever the distribution of demands (`log_likelihood`). The best must then agree with what holds under any policy:
    few departures contradict it, and its demands depend neither on what requests meet on arrival nor differ from those
    of requests that meet nobody (`agreement`: fewer than 1% of true candidates are refused). Other policies must be 20
    times less likely, unless they make the same of the log. Candidates that fail these tests and under which hardly
    anybody waited are passed over.

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
    policies, servers : the candidates; sjf and random only on one server, priority only with classes. None: 1 to 16
        servers, and of more every sixth number and those around the likeliest, no more than requests were ever present
    expected_servers : the number of servers that the log is said to be made with; None: nothing is known
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
    >>> identified = identify(arrival, departure)
    >>> identified.policy, identified.servers
    ('fcfs', 1)
    """
    arrival_s, departure_s = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    rows = _window(arrival_s, pairs(arrival_s, departure_s), most)
    arrival_s, departure_s = arrival_s[rows], departure_s[rows]
    events = pairs(arrival_s, departure_s)
    peak = int(events.present.max(initial=0))
    if servers is None and peak > 0 and expected_servers is not None and expected_servers > peak:
        reason = f"at most {peak} requests were present, so none waited on {expected_servers} servers"
        return Identified(None, None, np.nan, reason, (), (), _table([]))
    numbers = _steps(peak, expected_servers) if servers is None else sorted(set(servers))
    chosen = [name for name in policies if POLICIES[name].order != "class" or priority is not None]
    fine = quantum_s * SLICES < float(np.nan_to_num(departure_s - arrival_s).sum()) / max(len(rows), 1)
    chosen = [name for name in chosen if not (fine and POLICIES[name].sliced)]
    classes = None if priority is None else np.asarray(priority)[rows]

    def explained(policy: PolicyName, k: int) -> _Candidate:
        reconstruction = reconstruct(
            policy, arrival_s, departure_s, k, priority=classes, quantum_s=quantum_s, tolerance_s=CLOSE_S
        )
        return _candidate(policy, k, reconstruction, events, departure_s - arrival_s)

    candidates = list[_Candidate]()
    for policy in chosen:
        alone = not POLICIES[policy].reconstructed_on_several
        on = {k: explained(policy, k) for k in numbers if k == 1 or not alone}
        if servers is None and not alone:
            _between(on, partial(explained, policy))
        candidates += on.values()
    if not candidates and len(rows) > 0:
        raise InputError(f"policies {tuple(policies)} on {tuple(numbers)} servers: there is no candidate among them")
    return _judge(
        sorted(candidates, key=lambda candidate: -round(candidate.log_likelihood, 6)), events, expected_servers
    )


def agreement(reconstruction: Reconstruction, events: Pairs, servers: int) -> tuple[DemandTest, ...]:
    """Return what speaks against demands: requests do not know what they will meet when they arrive.

    * congestion: rank correlation of demand with the number of requests met on arrival (Spearman 1904);
    * waiting: distance of the demands of those that met all servers busy from the others' (Kolmogorov-Smirnov);
    * alone: demands of requests that met nobody, until the next arrival known without any policy (Kaplan and Meier
      1958), against the others' by the log-rank test (Mantel 1966); the size is the distance where the former is known.

    A test without at least 10 requests on either side is left out.

    Parameters
    ----------
    made, events : a log under a policy, and its events
    servers : k of the policy
    """
    demand_s = reconstruction.demand_s[events.order]
    known = (reconstruction.fits & reconstruction.finished)[events.order]
    met = met_on_arrival(events)
    findings = []
    if known.sum() >= 10 and np.ptp(met[known]) > 0 and np.ptp(demand_s[known]) > 0:
        ranks = spearmanr(demand_s[known], met[known])
        findings.append(DemandTest("congestion", float(ranks.statistic), float(ranks.pvalue)))
    some, others = demand_s[known & (met >= servers)], demand_s[known & (met < servers)]
    if min(len(some), len(others)) >= 10:
        apart = ks_2samp(some, others, method="asymp")
        findings.append(DemandTest("waiting", float(apart.statistic), float(apart.pvalue)))
    return (*findings, *_alone(demand_s, known, met, events))


def log_likelihood(reconstruction: Reconstruction, longest_s: float) -> float:
    """Return the log density of a log's departures under a policy, given its arrivals.

    Demands are independent draws from a distribution that is not known. Departures are a one-to-one function of
    demands, and the derivative of a request's demand in its own departure is the rate at which it was served when it
    left; taken in order of departure no demand depends on a later departure, so the Jacobian is the product of these
    rates. It is what tells a policy that had to let this request leave next from one under which it might have been any
    of those present. Under `random` the rate comes with the probability of the choice that was made.
    The density of the demands is that of the sequence under histograms of many resolutions with a Dirichlet(1/2) prior
    (Krichevsky and Trofimov 1981) and under a gamma law less the price of its parameters (Schwarz 1978), mixed in equal
    parts: every distribution can be learnt, and none is learnt for free.

    Parameters
    ----------
    reconstruction : what the policy makes of the log; requests that have not left do not count
    longest_s : the longest stay in the log, seconds: no demand is larger

    Returns
    -------
    float
        Natural logarithm; differences between policies count, the larger explains the log better.
    """
    fit = reconstruction.fits & reconstruction.finished
    misfits = int(np.count_nonzero(~reconstruction.fits & reconstruction.finished))
    rates = float(np.log(reconstruction.rate[fit]).sum())
    stamps = float(fit.sum() * np.log1p(-MISFIT) + misfits * np.log(MISFIT / longest_s))
    return rates + stamps + _log_density(reconstruction.demand_s[fit], longest_s)


def _steps(peak: int, expected: int | None) -> list[int]:
    """Return numbers of servers up to as many as were ever present: all of the few, of more every sixth or so."""
    numbers = set(range(1, min(peak, EVERY) + 1))
    step = EVERY
    while step < peak:
        step = min(step + step // 5, peak)
        numbers.add(step)
    if expected is not None:
        numbers |= {k for k in (expected - 1, expected, expected + 1) if 1 <= k <= peak}
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


def _window(arrival_s: Floats, events: Pairs, most: int) -> Ints:
    """Return the rows of the middle of a long log: from an arrival at an empty system to another, if half is left."""
    n = len(events.order)
    if n <= most:
        return np.arange(n)
    lone, first = np.flatnonzero(met_on_arrival(events) == 0), (n - most) // 2
    start = int(next(iter(lone[(lone >= first) & (lone <= first + most // 2)]), first))
    ends = lone[(lone >= start + most // 2) & (lone <= start + most)]
    return np.sort(events.order[start : int(ends[-1]) if len(ends) else start + most])


def _candidate(
    policy: PolicyName, servers: int, reconstruction: Reconstruction, events: Pairs, stay_s: Floats
) -> _Candidate:
    """Return a policy with how well it explains the log."""
    crowded, longest_s = (
        int(np.count_nonzero((events.job < 0) & (events.present >= servers))),
        float(np.nanmax(stay_s, initial=0.0)),
    )
    misfits = np.count_nonzero(~reconstruction.fits & reconstruction.finished) / max(crowded, 1)
    likely = log_likelihood(reconstruction, longest_s) if longest_s > 0 else 0.0
    return _Candidate(policy, servers, reconstruction, stay_s, likely, crowded, float(misfits))


def _judge(candidates: list[_Candidate], events: Pairs, expected: int | None) -> Identified:
    """Return the best of the candidates, given best first, or why it is not the answer."""
    table = _table(candidates)
    if not candidates:
        return Identified(None, None, np.nan, "there are no requests", (), (), table)
    possible = [candidate for candidate in candidates if candidate.misfits <= MISFITS]
    best, findings = _answer(possible or candidates, events, expected)
    among = [candidate for candidate in possible if best.servers != expected or candidate.servers == expected]
    behind = [
        candidate for candidate in among if candidate is not best and candidate.log_likelihood <= best.log_likelihood
    ]
    others = [candidate for candidate in behind if not _same(candidate, best)]
    score = best.log_likelihood - others[0].log_likelihood if others else np.nan
    rivals = tuple((o.policy, o.servers) for o in behind if best.log_likelihood - o.log_likelihood < ODDS)
    lone = int(np.count_nonzero(met_on_arrival(events) == 0))
    if lone < LONE and best.servers == expected and _ordered(best):
        lone = LONE
    reason = _refusal(best, others, findings, lone)
    policy, servers = (None, None) if reason else (best.policy, best.servers)
    return Identified(policy, servers, float(score), reason, rivals, findings, table)


def _ordered(best: _Candidate) -> bool:
    """Return whether very many requests left in their turn that might as well have left before it.

    Such a one had waited, under the policy, for longer than a twentieth of the demands last; processor sharing has no
    turns.
    """
    reconstruction = best.reconstruction
    if POLICIES[best.policy].sharing == "evenly" or best.misfits > 0 or not reconstruction.finished.any():
        return False
    waited_s = (best.stay_s - reconstruction.demand_s)[reconstruction.finished]
    return (
        int(np.count_nonzero(waited_s > np.quantile(reconstruction.demand_s[reconstruction.finished], 0.05))) >= ORDERED
    )


def _table(candidates: list[_Candidate]) -> pd.DataFrame:
    columns = ["policy", "servers", "log_likelihood", "crowded", "misfits"]
    return pd.DataFrame([[getattr(candidate, name) for name in columns] for candidate in candidates], columns=columns)


def _answer(candidates: list[_Candidate], events: Pairs, expected: int | None) -> _Tested:
    """Return the candidate that is to be answered or refused, and its tests.

    That is the likeliest, except for contradicted ones under which hardly anybody waited: their demands are response
    times, and where stamps are coarse these look likely because they are multiples of the resolution. On the expected
    number of servers it is the likeliest that no test contradicts, if the likeliest of all is contradicted or is the
    same policy on another number of servers and not much likelier.
    """
    best = _first(candidates, events, lambda candidate: candidate.crowded < CROWDED)
    own = [candidate for candidate in candidates if candidate.servers == expected and candidate.misfits <= MISFITS]
    if not own or (best[0].servers == expected and not _contradicted(best)):
        return best
    second = _first(own, events, lambda _: True)
    alike = second[0].policy == best[0].policy and best[0].log_likelihood - second[0].log_likelihood < CONTRARY
    return second if _contradicted(best) or (alike and not _contradicted(second)) else best


def _first(candidates: list[_Candidate], events: Pairs, passed_over: Callable[[_Candidate], bool]) -> _Tested:
    """Return the first candidate that no test contradicts or that is not passed over for it; the first, without any."""
    tested = list[_Tested]()
    for candidate in candidates:
        if any(_same(candidate, other) for other, _ in tested):
            continue
        tested.append((candidate, agreement(candidate.reconstruction, events, candidate.servers)))
        if not (_contradicted(tested[-1]) and passed_over(candidate)):
            return tested[-1]
    return tested[0]


def _contradicted(tested: _Tested) -> bool:
    return any(finding.against for finding in tested[1])


def _same(candidate: _Candidate, other: _Candidate) -> bool:
    """Return whether two candidates make the same of every request that they fit."""
    both = candidate.reconstruction.fits & other.reconstruction.fits
    off_s = np.abs(candidate.reconstruction.demand_s - other.reconstruction.demand_s)
    return bool(both.all()) and bool(off_s.max(initial=0.0) < CLOSE_S)


def _refusal(best: _Candidate, others: list[_Candidate], findings: tuple[DemandTest, ...], lone: int) -> str:
    """Return why the best candidate is not the answer; empty if it is."""
    name = f"{best.policy} on {best.servers} server{'' if best.servers == 1 else 's'}"
    if best.crowded < CROWDED:
        count = f"{best.crowded} departures while more than {best.servers} were present"
        return f"{count}: at least {CROWDED} are needed"
    if lone < LONE:
        return f"{lone} request{'' if lone == 1 else 's'} found no other request on arrival: at least {LONE} are needed"
    if best.misfits > MISFITS:
        return (
            f"nothing fits: {best.misfits:.1%} of the departures while a request waits contradict {name}, the likeliest"
        )
    for finding in findings:
        if finding.against:
            return f"nothing fits: under {name}, the likeliest, demands depend on {finding.name} ({finding.size:+.2f})"
    for candidate in others:
        if candidate.policy != best.policy and best.log_likelihood - candidate.log_likelihood < ODDS:
            return f"{name} and {candidate.policy} on {candidate.servers} explain the log about equally well"
    return ""


def _alone(demand_s: Floats, known: Bools, met: Ints, events: Pairs) -> tuple[DemandTest, ...]:
    """Return the comparison with the requests that met nobody."""
    length_s, leaves = undisturbed(events)
    lone, others = met == 0, demand_s[known & (met > 0)]
    if min(int((lone & leaves).sum()), len(others)) < 10:
        return ()
    alone = CensoredData(uncensored=length_s[lone & leaves], right=length_s[lone & ~leaves])
    curve, rest = ecdf(alone).cdf, ecdf(others).cdf
    at = curve.quantiles[curve.quantiles <= length_s[lone].max()]
    distance = float(np.abs(curve.evaluate(at) - rest.evaluate(at)).max())
    return (DemandTest("alone", distance, float(logrank(alone, CensoredData(others)).pvalue)),)


def _log_density(demand_s: Floats, longest_s: float) -> float:
    """Return the log density of the demands under the mixture of histograms."""
    part = np.clip(demand_s / longest_s, 0.0, 1.0)
    small = part < FLOOR
    depth = np.log(part[~small])  # from log(FLOOR) to 0
    # Below the floor the density is level. Above it bins cover logarithms, so it is over the demand.
    sides = _counted(small.astype(np.float64), 2) - len(part) * np.log(2) - small.sum() * np.log(FLOOR)
    sides -= depth.sum() + len(depth) * np.log(-np.log(FLOOR))
    logs = [_counted(part, bins) for bins in RESOLUTIONS]
    logs += [sides + _counted(depth / np.log(FLOOR), bins) for bins in RESOLUTIONS]
    logs += [_gamma(np.maximum(part, FLOOR**2))]
    return float(logsumexp(logs) - np.log(len(logs)) - len(part) * np.log(longest_s))


def _counted(part: Floats, bins: int) -> float:
    """Return the log density of points in 0..1 under a histogram with a Dirichlet(1/2) prior."""
    counts = np.bincount(np.minimum((part * bins).astype(np.int64), bins - 1), minlength=bins)
    prior = gammaln(0.5 * bins) - gammaln(len(part) + 0.5 * bins) - bins * gammaln(0.5)
    return float(prior + gammaln(counts + 0.5).sum() + len(part) * np.log(bins))


def _gamma(part: Floats) -> float:
    """Return the log density of positive numbers under a gamma law, less the price of its parameters (Schwarz 1978)."""
    n, mean = len(part), float(part.mean()) if len(part) else 1.0
    if n < 2:
        return -np.inf
    mean_log = float(np.log(part).mean())
    gap = max(np.log(mean) - mean_log, 1e-4)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)  # Minka (2002); within 1.5%
    fitted = (shape - 1) * mean_log - shape * (1 + np.log(mean / shape)) - gammaln(shape)
    return float(n * fitted - np.log(n))
