"""How fast a server completes requests when so many are present, how many servers that shows, and their tests."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import chdtrc, gammaincinv

from analysis.occupancy.curve import curve, met_on_arrival, pairs, undisturbed
from analysis.occupancy.logs.log import Cleaned, counted
from analysis.statistics import normal_quantile, normal_tail
from models.arrays import Bools, Floats, Ints

CLEAR = float(np.log(100.0))
"""A number of servers is told from the next by a factor of 100 in likelihood: its errors are themselves estimates."""
MATERIAL = 0.03
"""Least part of the completions that other rates than the likeliest would have to explain, to refuse them."""
LONE = 30
"""Least number of requests seen to be served alone from their arrival to their end, for a mean demand."""
FAR = 3.5
"""So many standard errors from the mean demand no number of servers is believed."""
COARSE = "stamps are too coarse"
"""Why servers are not tested where a finding says so already."""
_ENOUGH = 10
"""Fewer completions leave a rate open by more than a factor of two."""
_MOST = 100
"""States that are told; servers are counted from all."""
_TWICE, _THRICE = 2, 3
"""The rates contradict a number of servers from so large a factor on: where the work excludes it too, and without."""
_LOOKED_AT = 200_000
"""Requests from the beginning of the log that the test of servers looks at, as `clean` does."""
_BLAMES = ("more servers than", "servers idle while requests wait", "servers came or went", "more than one queue")
"""How findings about the number of servers begin."""
TEST_LEVEL = 0.001
"""Level of each of two tests: a server of the model is blamed in less than one log of 500."""
LEAST_DIFFERENCE = 0.05
"""Smaller differences are not worth a finding."""
LONGER, AT_RISK, VARIED = 0.01, 5, 6.0
"""The mean of demands is known if the one that 1% exceed was seen, while five requests were there for longer, and is at
most six times the mean."""
DISPERSED = 2.0
"""Variance over mean of the number of arrivals in a stretch of time from which on their rate varies."""
OFF, MISSED = 0.3, 0.1
"""A number of servers counts as not contradicted where one that is so much too large or too small, and by one at least,
would have been contradicted, but for so large a chance."""
STRETCH, STRATUM, STRATA = 50, 1_000, 6
"""Arrivals in a stretch of time on average, requests of a stratum of such stretches at least, and most strata."""
LEAST_SIDE = 30
"""Least number of requests on each side of a comparison."""
_COLUMNS = ("jobs", "time_s", "completions", "rate_per_s", "low", "high")


@dataclass(frozen=True, slots=True)
class Saturation:
    """Where completion rates stop growing."""

    servers: int | None
    """Servers; None if the log does not tell."""
    rate_per_s: float
    """Completions per second of one busy server; NaN without an answer."""
    score: float
    """How much likelier the best number is than the next, as a natural logarithm."""
    reason: str
    """Why there is no answer; empty if there is one."""
    least: int | None = None
    """The fewest servers that are not a hundred times less likely than the best number; None: nothing is known."""
    most: int | None = None
    """The most such servers; None: as many as were ever present, or more."""


def rates(arrival_s: Floats, departure_s: Floats, *, mean_demand_s: float | None = None) -> pd.DataFrame:
    """Return the completion rate of every number of requests present: completions from it over time in it.

    Departures need not belong to the arrivals beside them. With Poisson arrivals and processor sharing, or exponential
    demands under a policy that does not look at them, the rate with n present is that of all busy servers; otherwise
    it is so only on average over n. Intervals take completions for Poisson counts (Garwood 1936), 95%.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left
    mean_demand_s : if known, completions are also given as work

    Returns
    -------
    DataFrame
        jobs (1, 2, … up to the most present), time_s, completions, rate_per_s, low, high (per second), work_rate
        (seconds of demand done per second; NaN if the mean demand is not known). Never-seen numbers have rate NaN.
    """
    events = pairs(arrival_s, departure_s)
    peak = int(events.present.max(initial=0))
    time_s = np.bincount(events.present[:-1], weights=np.diff(events.time_s), minlength=peak + 1)[1:]
    completions = np.bincount(events.present[events.job < 0] + 1, minlength=peak + 1)[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(time_s > 0, completions / time_s, np.nan)
        low = np.where(completions > 0, gammaincinv(completions, 0.025), 0.0) / time_s
        high = gammaincinv(completions + 1, 0.975) / time_s
    return pd.DataFrame(
        {
            "jobs": np.arange(1, peak + 1),
            "time_s": time_s,
            "completions": completions,
            "rate_per_s": rate,
            "low": low,
            "high": high,
            "work_rate": rate * (np.nan if mean_demand_s is None else mean_demand_s),
        }
    )


def servers_of(table: pd.DataFrame, *, mean_demand_s: float | None = None, error_s: float = 0.0) -> Saturation:
    """Return the number of servers that a table of completion rates shows, if it tells.

    With a mean demand (such as `lone_demand`): by the work done. k servers have worked ∫ min(N, k) dt, whatever the
    policy, and that over the completions is the mean demand. Without: where the rates stop growing, by their Poisson
    likelihood under a rate proportional to min(n, k); this is as true as `rates` is, and refused where the rates are
    not of that form. Neither needs to know who is whose departure; where pairs are known, `identify` says more.

    Parameters
    ----------
    table : as made by `rates`
    mean_demand_s, error_s : mean demand and its standard error, seconds
    """
    jobs, time_s, completions = (table[name].to_numpy(dtype=np.float64) for name in ("jobs", "time_s", "completions"))
    if len(jobs) < 2 or completions.sum() == 0:
        return Saturation(None, np.nan, np.nan, "no two requests were present together")
    work_s = _capped(jobs, time_s)
    if mean_demand_s is not None:
        return _by_work(work_s / completions.sum(), mean_demand_s, error_s)
    rate = completions.sum() / work_s
    likely = _capped(np.log(jobs), completions) + completions.sum() * np.log(rate)
    best, second = np.argsort(-likely, kind="stable")[:2]
    score = float(likely[best] - likely[second])
    off = _misfit(completions, rate[best] * np.minimum(jobs, best + 1) * time_s)
    if off > MATERIAL:
        reason = f"rates are {off:.0%} off those of {best + 1} servers, the likeliest: the policy or demands forbid it"
        return Saturation(None, np.nan, score, reason)
    limits = _limits(likely[best] - likely)
    if score < CLEAR:
        reason = f"{best + 1} and {second + 1} servers explain the rates about equally"
        return Saturation(None, np.nan, score, reason, *limits)
    return Saturation(int(best) + 1, float(rate[best]), score, "", *limits)


def lone_demand(arrival_s: Floats, departure_s: Floats) -> tuple[float, float]:
    """Return the mean demand of requests that meet nobody on arrival, and its standard error, in seconds.

    Until the next arrival each is served alone, whatever the policy and the servers: the area under the Kaplan-Meier
    (1958) curve of their stays, censored there, with the variance they give. Both are NaN if fewer than 30 are seen
    to their end, or the curve does not come down to 1%: then nobody saw the longest demands, and the mean is not known.
    """
    events = pairs(arrival_s, departure_s)
    stay_s, leaves = undisturbed(events)
    lone = (met_on_arrival(events) == 0) & (stay_s > 0)
    if np.count_nonzero(leaves[lone]) < LONE:
        return np.nan, np.nan
    from scipy.stats import CensoredData, ecdf

    curve = ecdf(CensoredData(uncensored=stay_s[lone & leaves], right=stay_s[lone & ~leaves])).sf
    if curve.probabilities[-1] > 0.01:
        return np.nan, np.nan
    steps = np.diff(np.concatenate([[0.0], curve.quantiles]))
    above = np.concatenate([[1.0], curve.probabilities[:-1]])
    area = steps * above
    ended, at_risk = _at_risk(stay_s[lone], leaves[lone], curve.quantiles)
    later = area[::-1].cumsum()[::-1] - area
    spread = np.divide(ended, at_risk * (at_risk - ended), out=np.zeros(len(area)), where=at_risk > ended)
    return float(area.sum()), float(np.sqrt((later**2 * spread).sum()))


def _at_risk(stay_s: Floats, leaves: Bools, at_s: Floats) -> tuple[Floats, Floats]:
    """Return how many leave at each time, and how many have stayed until then."""
    every, left = np.sort(stay_s), np.sort(stay_s[leaves])
    ended = np.searchsorted(left, at_s, "right") - np.searchsorted(left, at_s, "left")
    return ended.astype(np.float64), (len(every) - np.searchsorted(every, at_s, "left")).astype(np.float64)


def _by_work(mean_s: Floats, demand_s: float, error_s: float) -> Saturation:
    """Return the number of servers under which the mean work per request (row k − 1) is the mean demand."""
    if not demand_s > 0:
        return Saturation(None, np.nan, np.nan, f"a mean demand of {demand_s} s says nothing")
    off = np.abs(mean_s - demand_s) / max(error_s, 1e-9 * demand_s)
    best, second = np.argsort(off, kind="stable")[:2]
    score = float((off[second] ** 2 - off[best] ** 2) / 2)
    if not off[best] <= FAR:
        reason = f"{best + 1} servers have worked {mean_s[best]:.4g} s per request, which needs {demand_s:.4g} s"
        return Saturation(None, np.nan, score, reason)
    limits = _limits((off**2 - off[best] ** 2) / 2)
    if score < CLEAR:
        reason = f"{best + 1} and {second + 1} servers have worked about as much"
        return Saturation(None, np.nan, score, reason, *limits)
    return Saturation(int(best) + 1, 1.0 / demand_s, score, "", *limits)


def _limits(behind: Floats) -> tuple[int, int | None]:
    """Return the fewest and the most servers that are not ruled out, given by how much each number is less likely."""
    near = np.flatnonzero(behind < CLEAR) + 1
    return int(near[0]), int(near[-1]) if near[-1] < len(behind) else None


def _capped(value: Floats, weight: Floats) -> Floats:
    """Return the weighted sums of rising values with each of them in turn for a cap."""
    sums: Floats = np.cumsum(value * weight) + value * (weight.sum() - np.cumsum(weight))
    return sums


def _misfit(measured: Floats, expected: Floats) -> float:
    """Return how far off counts are, relative to their sum; 0 if that is chance (G test, level 0.1%)."""
    known = expected > 5
    ratio = np.log(np.maximum(measured[known], 1e-9) / expected[known])
    deviance = 2 * float((measured[known] * ratio - measured[known] + expected[known]).sum())
    chance = chdtrc(max(1, int(known.sum()) - 1), max(deviance, 0.0)) >= 0.001
    return 0.0 if chance else float(np.abs(measured[known] - expected[known]).sum() / measured.sum())


@dataclass(frozen=True, slots=True, eq=False)
class CompletionRates:
    """How fast a log's servers completed requests, and how many servers that shows in two ways."""

    rates: pd.DataFrame
    """Of the first 100 states with at least 10 completions: jobs, time_s, completions, rate_per_s, low, high."""
    by_work: Saturation
    """Holds under any policy if demands are those of requests that were alone."""
    by_rates: Saturation
    """Holds under processor sharing, or with exponential demands."""


@dataclass(frozen=True, slots=True)
class ServersTest:
    """Whether a log contradicts the number of servers that it is said to be made with."""

    verdict: Literal["contradicted", "not contradicted", "cannot tell", "not tested"]
    """`cannot tell` if only completion rates speak against the number, or the log would not show that it is wrong."""
    reason: str
    """By what, or why not."""


def completion_rates(log: Cleaned) -> CompletionRates:
    """Return completion rates by requests present, and the servers that they show, or why none.

    Examples
    --------
    >>> arrival = np.repeat(10.0 * np.arange(40), 2)
    >>> log = Cleaned(arrival, arrival + np.tile([1.0, 2.0], 40), (), 0, paired=True)
    >>> completion_rates(log).rates["rate_per_s"].tolist(), completion_rates(log).by_work.servers
    ([1.0, 1.0], None)
    """
    table = rates(log.arrival_s, log.departure_s)
    known = table.loc[table["completions"] >= _ENOUGH, list(_COLUMNS)].head(_MOST)
    return CompletionRates(known, _servers_by_work(log, table), servers_of(table))


def servers_shown(by_work: Saturation, by_rates: Saturation, servers: int) -> int | None:
    """Return another number of servers that both ways agree on; None if there is none.

    Alone, rates were wrong in 17% of their answers about logs with other demands than exponential ones, and work in 4%;
    they were never wrong together.
    """
    return by_work.servers if by_work.servers == by_rates.servers and by_work.servers != servers else None


def contradiction(by_work: Saturation, by_rates: Saturation, servers: int) -> str:
    """Return how completion rates contradict a number of servers; empty if they do not, or not strongly.

    They do if they rule out every number less than twice as large, or more than half as large, and the work rules this
    number out as well; where the work is not known, from a factor of three on. Of 5,040 simulated logs with the right
    number (fcfs, ps, srpt and lcfs on 1 to 16 servers, constant to hyperexponential demands, which followed the load in
    two thirds of the logs) 23 were contradicted, all under srpt: it completes the faster, the more requests it can
    choose from.
    """
    if by_work.least is not None and by_work.least <= servers <= (by_work.most or servers):
        return ""
    return _far_off(by_rates, servers, _THRICE if by_work.least is None else _TWICE)


def servers_test(log: Cleaned, shown: CompletionRates, servers: int, peak: int) -> ServersTest:
    """Return whether a log contradicts the number of servers that it is said to be made with, or why nothing tells.

    Parameters
    ----------
    log : requests
    shown : as from `completion_rates`
    servers : that the log is said to be made with
    peak : most requests present
    """
    other = servers_shown(shown.by_work, shown.by_rates, servers)
    against = contradiction(shown.by_work, shown.by_rates, servers)
    if other is not None:
        against = f"completions show {other} servers, not {servers}: both the work done and the rates do"
    if against:
        return ServersTest("contradicted", against)
    for finding in log.findings:
        if finding.name.startswith(_BLAMES):
            return ServersTest("contradicted", f"{finding.name}: {finding.evidence}")
    return _unless_unseen(log, shown, servers, peak)


def _unless_unseen(log: Cleaned, shown: CompletionRates, servers: int, peak: int) -> ServersTest:
    """Return whether a number that nothing contradicts would have been, if it were wrong."""
    untested, unseen = _untested(log, servers, peak)
    on = counted(servers, "server")
    reason = untested or (unseen and f"demands are not known well enough to tell {on} from {unseen}")
    against, by_rates, by_work = _far_off(shown.by_rates, servers, _TWICE), shown.by_rates.servers, shown.by_work
    if not against and by_rates is not None and by_rates != servers:
        against = f"completions per second are those of {counted(by_rates, 'server')}"
    if against:
        under = f"{against}, but so may those of others be under some policies"
        return ServersTest("cannot tell", f"{under}{reason and f'; {reason}'}")
    if by_work.servers == servers:
        return ServersTest("not contradicted", f"the work done is that of {on}")
    if not reason:
        by_law = f"by the law {on} spent as long on a request as those need that never waited"
        return ServersTest("not contradicted", by_law)
    if by_rates == servers and by_work.least is not None and by_work.least <= servers <= (by_work.most or servers):
        agreed = f"completions per second are those of {counted(servers, 'server')}, and so may be the work done"
        return ServersTest("not contradicted", agreed)
    return ServersTest("cannot tell" if unseen else "not tested", reason)


def _far_off(by_rates: Saturation, servers: int, factor: int) -> str:
    """Return that the rates are those of more or fewer servers by at least a factor; empty if they are not."""
    if by_rates.least is not None and by_rates.least >= factor * servers:
        return (
            f"completions per second still grow with more than {servers} request{'' if servers == 1 else 's'} present, "
            f"as those of {by_rates.least} or more servers do"
        )
    if by_rates.most is not None and factor * by_rates.most <= servers:
        fewer = f"{by_rates.most} server{'' if by_rates.most == 1 else 's'} or fewer do"
        return f"completions per second stop growing long before {servers} requests are present, as those of {fewer}"
    return ""


def _untested(log: Cleaned, servers: int, peak: int) -> tuple[str, str]:
    """Return why the law could not be compared with demands, and which numbers it would not show; empty if neither."""
    if not log.paired:
        return "departures belong to no arrivals", ""
    if peak <= servers:
        present = f"{counted(peak, 'request')} {'was' if peak == 1 else 'were'} present"
        return f"at most {present}, and every number from {peak} on makes the same of the log", ""
    if log.coarse:
        return COARSE, ""
    order = np.argsort(log.arrival_s, kind="stable")[:_LOOKED_AT]
    came, left = log.arrival_s[order], log.departure_s[order]
    for comparison in conserves_work(came, left, servers):
        if comparison.name == "load":
            return "", " or ".join(map(str, _unseen(came, left, servers, comparison.error_s)))
    present = f"{counted(servers, 'request')} {'was' if servers == 1 else 'were'} present"
    short = f"too few requests, or only short ones, ended while at most {present}"
    return f"{short}: demands are not known without a policy", ""


def _unseen(came: Floats, left: Floats, servers: int, error_s: float) -> list[int]:
    """Return the numbers of servers, too small and too large, whose service time by the law would not stand out."""
    gone = np.sort(left[~np.isnan(left)])
    present = curve(came, gone)
    off = max(1, round(OFF * servers))
    others = [number for number in (servers - off, servers + off) if number >= 1]
    service_s = {
        number: float(np.minimum(present.jobs, number) @ np.diff(present.time_s)) / len(gone)
        for number in (servers, *others)
    }
    least_s = -float(normal_quantile(TEST_LEVEL / 2) + normal_quantile(MISSED)) * error_s
    return [
        number
        for number in others
        if abs(service_s[servers] - service_s[number]) <= max(least_s, LEAST_DIFFERENCE * service_s[number])
    ]


def _servers_by_work(log: Cleaned, table: pd.DataFrame) -> Saturation:
    reason = "departures belong to no arrivals: no request's demand is known"
    if log.paired:
        mean_s, error_s = lone_demand(log.arrival_s, log.departure_s)
        if np.isfinite(mean_s):
            return servers_of(table, mean_demand_s=mean_s, error_s=error_s)
        reason = f"fewer than {LONE} requests, or only the short ones, were seen to be served alone"
    return Saturation(None, np.nan, np.nan, reason)


@dataclass(frozen=True, slots=True)
class DemandComparison:
    """One test: the two sides, in seconds of mean service, and how rare such a difference is by chance."""

    name: str
    left_s: float
    right_s: float
    p_value: float
    error_s: float = math.nan
    """Standard error of the difference; NaN where it is not of means."""

    @property
    def against(self) -> bool:
        """Whether the difference is neither chance nor small."""
        return self.p_value < TEST_LEVEL and abs(self.left_s / self.right_s - 1.0) > LEAST_DIFFERENCE


class _Sample(NamedTuple):
    """Times that end, or that are only known to be longer; shortest first."""

    stay_s: Floats
    ended: Bools

    @property
    def longest_s(self) -> float:
        """The longest that was seen to end."""
        return float(self.stay_s[self.ended][-1])


class _Mean(NamedTuple):
    """The mean of times cut off somewhere, its variance, and the time that 1% exceed."""

    mean_s: float
    variance: float
    rare_s: float


def conserves_work(arrival_s: Floats, departure_s: Floats, servers: int) -> tuple[DemandComparison, ...]:
    """Return what speaks against work conservation on so many servers of one speed.

    As long as no more than k requests are there each has a server of its own, so the time that such a request stays is
    its demand, known until more than k are there: a censored sample (Kaplan and Meier 1958).

    * company: demands of requests that met others, but not all servers busy, on the left, and of those that met nobody
      on the right; the log-rank test (Mantel 1966). Servers that slow each other down (shared caches, hyper-threads,
      locks), or wait for something else, make the left larger.
    * load: service time by the law over requests served, on the left, and the mean of those demands on the right.
      Servers that idle although somebody waits, fewer servers than k, or slower ones under load make the left larger;
      more servers than k make it smaller.

    Demands often follow the load. If its rate varies, like is compared with like: the log is cut into stretches of
    time, those with about as many arrivals are taken together, and the comparisons of these strata are averaged by the
    requests in them. A stratum without 30 requests on either side is left out; so is one whose long demands are too
    rare to be seen, of the second test. Where the rate varies, that test leaves out the stretches that begin or end
    with more than k present, too: their requests were served in several stretches, and the demands of a crowd, which
    nobody sees, would be compared with those of a calmer time. Without any stratum a test is left out.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds; NaN departures have not left
    servers : k >= 1
    """
    order = np.argsort(arrival_s, kind="stable")
    came, left = arrival_s[order], departure_s[order]
    gone = np.sort(left[~np.isnan(left)])
    met = np.arange(len(came)) - np.searchsorted(gone, came, side="right")
    stay_s, ended = _uncrowded(came, left, met, servers)
    alone, company = met == 0, (met > 0) & (met < servers)
    beside, law_s = list[_Stratum](), list[_Stratum]()
    for stratum in _strata(came, gone, servers):
        inside = stratum.inside
        if all(np.count_nonzero(ended & side & inside) >= LEAST_SIDE for side in (alone, company)):
            samples = [_sample(stay_s, ended, side & inside) for side in (company, alone)]
            longest = min(sample.longest_s for sample in samples)
            left_s, right_s = (_mean(sample, longest).mean_s for sample in samples)
            beside.append(_Stratum(len(samples[0].stay_s), left_s, right_s, _logrank(*samples)))
        free = _sample(stay_s, ended, (alone | company) & stratum.calm)
        if stratum.departures > 0 and np.count_nonzero(free.ended) >= LEAST_SIDE:
            law_s += _load(stratum, servers, free)
    named = (("company", beside), ("load", law_s))
    return tuple(_averaged(name, strata) for name, strata in named if strata)


class _Stretches(NamedTuple):
    """Stretches of time with about as many arrivals."""

    inside: Bools
    """(n,) which requests came in them."""
    calm: Bools
    """(n,) which of them came in stretches that neither begin nor end in a crowd."""
    service_s: float
    """Service that the law gives in the calm stretches."""
    departures: int
    """In the calm stretches."""
    stretches: int
    """Calm ones."""


class _Stratum(NamedTuple):
    """A comparison within a stratum: its two sides, and by how many standard errors they differ."""

    requests: int
    left_s: float
    right_s: float
    z: float
    error_s: float = math.nan


def _strata(came: Floats, gone: Floats, servers: int) -> Iterator[_Stretches]:
    """Yield the log's stretches of time, those with about as many arrivals together; all of a short log."""
    count = len(came) // STRETCH
    strata = int(np.clip(len(came) // STRATUM, 1, STRATA)) if _varies(came) else 1
    present = curve(came, gone)
    edges = np.linspace(present.start_s, present.end_s, max(count, 1) + 1)
    at = np.clip(np.searchsorted(edges, came, side="right") - 1, 0, len(edges) - 2)
    worked = np.concatenate(([0.0], np.cumsum(np.minimum(present.jobs, servers) * np.diff(present.time_s))))
    service = np.diff(np.interp(edges, present.time_s, worked))
    left = np.histogram(gone, edges)[0]
    arrivals = np.bincount(at, minlength=len(edges) - 1).astype(np.float64)
    width = min(3, len(arrivals))
    around = np.convolve(arrivals, np.ones(width), "same") / np.convolve(np.ones(len(arrivals)), np.ones(width), "same")
    calm = np.ones(len(arrivals), dtype=np.bool_)
    if strata > 1:
        began = np.searchsorted(present.time_s, edges, side="right") - 1
        crowded = present.jobs[np.clip(began, 0, len(present.jobs) - 1)] > servers
        calm = ~crowded[:-1] & ~crowded[1:]
    order = np.argsort(around, kind="stable")
    part = np.empty(len(arrivals), dtype=np.int64)
    part[order] = np.minimum((np.cumsum(arrivals[order]) - 1) * strata // len(came), strata - 1)
    for stratum in range(strata):
        chosen = part == stratum
        within = chosen & calm
        yield _Stretches(
            chosen[at],
            within[at],
            float(service[within].sum()),
            int(left[within].sum()),
            int(np.count_nonzero(within)),
        )


def _varies(came: Floats) -> bool:
    """Return whether arrivals come at a rate that varies: their number in wider stretches more than Poisson's does."""
    counts = np.histogram(came, max(len(came) // (4 * STRETCH), 1))[0]
    return bool(counts.var() > DISPERSED * counts.mean())


def _averaged(name: str, strata: Sequence[_Stratum]) -> DemandComparison:
    """Return comparisons within strata as one, each weighted by its requests (Stouffer 1949)."""
    weight = np.array([stratum.requests for stratum in strata], dtype=np.float64)
    left_s, right_s = (
        float(np.average([getattr(s, side) for s in strata], weights=weight)) for side in ("left_s", "right_s")
    )
    z = np.array([stratum.z for stratum in strata])
    total = float((np.sqrt(weight) * z).sum() / np.sqrt(weight.sum()))
    error_s = float(np.sqrt(((weight * [stratum.error_s for stratum in strata]) ** 2).sum()) / weight.sum())
    return DemandComparison(name, left_s, right_s, float(2.0 * normal_tail(abs(total))), error_s)


def _uncrowded(came: Floats, left: Floats, met: Ints, servers: int) -> tuple[Floats, Bools]:
    """Return how long each request was there until more than k were, and whether it left before that."""
    crowded = np.flatnonzero(met >= servers)
    following = np.searchsorted(crowded, np.arange(len(came)), side="right")
    end_s = float(np.fmax(np.nanmax(left, initial=came[-1]), came[-1]))
    until = np.append(came[crowded], end_s)[following]
    ended: Bools = left <= until
    return np.where(ended, left, until) - came, ended


def _sample(stay_s: Floats, ended: Bools, which: Bools) -> _Sample:
    order = np.lexsort((~ended[which], stay_s[which]))
    return _Sample(stay_s[which][order], ended[which][order])


def _logrank(first: _Sample, other: _Sample) -> float:
    """Return the statistic, in standard errors; NaN, which blames nobody, where all demands are alike."""
    from scipy.stats import CensoredData, logrank

    ours, theirs = (
        CensoredData(uncensored=sample.stay_s[sample.ended], right=sample.stay_s[~sample.ended])
        for sample in (first, other)
    )
    with np.errstate(invalid="ignore"):
        return float(logrank(ours, theirs).statistic)


def _mean(sample: _Sample, up_to_s: float) -> _Mean:
    """Return mean and variance of the mean (Greenwood 1926) of times cut off there, and what 1% exceed."""
    at_risk = np.arange(len(sample.stay_s), 0, -1)
    counts = sample.ended & (sample.stay_s <= up_to_s)
    level = np.cumprod(np.where(counts, 1.0 - 1.0 / at_risk, 1.0))
    ends = np.minimum(np.append(sample.stay_s[1:], up_to_s), up_to_s)
    areas = level * (ends - np.minimum(sample.stay_s, up_to_s))
    beyond = np.cumsum(areas[::-1])[::-1]
    spread = np.where(counts, beyond**2 / (at_risk * np.maximum(at_risk - 1, 1)), 0.0)
    present = len(at_risk) - np.searchsorted(sample.stay_s, sample.stay_s)
    rare = np.append(sample.stay_s[(level <= LONGER) & (present >= AT_RISK)], np.inf)[0]
    return _Mean(float(min(sample.stay_s[0], up_to_s) + areas.sum()), float(spread.sum()), float(rare))


def _load(stratum: _Stretches, servers: int, free: _Sample) -> list[_Stratum]:
    """Return the comparison of the law's service time per request with the mean demand, if that is known.

    Where a stretch begins and ends, requests are in service that depart in another.
    """
    requests = stratum.departures
    service_s = stratum.service_s / requests
    mean, variance, rare = _mean(free, free.longest_s)
    if rare > VARIED * mean:
        return []
    cut = stratum.stretches * min(servers, 1 + requests // 10) * mean**2 / requests**2 if stratum.stretches > 1 else 0.0
    error = np.sqrt(variance + float(free.stay_s[free.ended].var()) / requests + cut)
    return [_Stratum(requests, service_s, mean, (service_s - mean) / max(float(error), 1e-300), float(error))]
