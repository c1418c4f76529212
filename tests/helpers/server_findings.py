"""How often findings about servers are false, and how often a wrong ``--servers`` or a broken premise is reported.

``python -m tests.helpers.server_findings 16`` prints a line for each situation. Logs have 6,000 requests on 1, 4 and 16
servers at 50, 70 and 85% mean load under fcfs and ps; the rate of arrivals moves by half over four cycles.

- *demand follows load*: demands are twice as long in the busiest hours, servers as said: any finding is false. The
  limit is 2%.
- policies by their names: healthy logs under nine policies, with six laws of demands (exponential and lognormal ones,
  uniform, gamma, nearly constant, constant, hyperexponential), at 70 and 90%, where demands follow load in every other.
- *stamps of 20%*: the same, and wrong numbers under fcfs, with stamps rounded down to that share of the mean demand.
- *wrong number*: off by 30%, at least one, up and down, in logs in which at least 500 arrivals met all servers busy. It
  is reported if `said_servers` contradicts it, or, with ``--policy auto`` (first two repeats), if another number or
  nothing is answered. The limit is 90%.
- *half unusable*: half of the servers take no request during a third of the log (4 and 16 servers).
- *hosts mixed*: the log of two machines with half of the servers each, said as one.
- *long polls*: one request in a hundred stays without using a server, for a minute of mean demands or for a random time
  of that mean.
- *cut off*: requests are logged as left after five mean demands, while their work goes on.
"""

import sys
from collections import Counter

import numpy as np
import pandas as pd

from analysis.occupancy.identification import identify
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.rates import completion_rates, servers_test
from analysis.occupancy.servers import said_servers
from models.queues.serve import ChangingRates, serve

REQUESTS, SERVERS, LOADS, POLICIES = 6_000, (1, 4, 16), (0.5, 0.7, 0.85), ("fcfs", "ps")
OTHERS = ("rr", "srpt", "fb", "lcfs", "lcfs_pr", "sjf", "random", "priority", "ps")
FITTING = {
    "half unusable": ("servers came or went",),
    "hosts mixed": ("more than one queue", "completions grow beyond the servers"),
    "long polls": ("responses end at one value", "requests that hold no server"),
    "cut off": ("responses end at one value",),
}
"""Names of findings that say what is wrong."""
TICKS = (0.01, 0.05, 0.2)
"""Resolutions of stamps, in mean demands."""
WITH_AUTO = 2
"""Repeats in which the policy is identified, which takes most of the time."""


def day(rng, servers, load, follow, law):
    """Arrivals whose rate moves by half over four cycles, and demands of mean 1 that move with it by a factor."""
    span = REQUESTS / (servers * load)
    times = np.sort(rng.random(2 * REQUESTS) * span)
    phase = (1 + np.sin(8 * np.pi * times / span)) / 2
    kept = rng.random(2 * REQUESTS) < (0.35 + 0.65 * phase) * 0.75
    times, factor = times[kept], 1 + (follow - 1) * phase[kept]
    drawn = rng.exponential(1, len(times)) if law else rng.lognormal(-0.5, 1, len(times))
    return times, drawn * factor * load * servers * span / (drawn * factor).sum()


def judged(arrival, departure, servers):
    """Return the findings about servers and the verdict on their number."""
    log = clean(pd.DataFrame({"arrival_s": arrival, "departure_s": departure}), servers)
    peak = int((np.arange(len(arrival)) + 1 - np.searchsorted(np.sort(departure), arrival)).max())
    test = servers_test(log, completion_rates(log), servers, peak)
    return [finding.name for finding in log.findings], said_servers(log, test, servers).verdict


def rounded(times, tick_s):
    """Round stamps down."""
    return np.floor(times / tick_s) * tick_s


def waited(arrival, departure, servers):
    """Return how many arrivals met all servers busy."""
    return int((np.arange(len(arrival)) - np.searchsorted(np.sort(departure), arrival) >= servers).sum())


def unusable(policy, arrival, demand, servers):
    """Serve a log during the second third of which half of the servers take no request."""
    begin, end = arrival[len(arrival) // 3], arrival[2 * len(arrival) // 3]
    if policy == "ps":
        whole = np.arange(1.0, servers + 1)
        rates = np.stack([whole, np.minimum(whole, servers // 2), whole])[:, np.newaxis]
        pace = ChangingRates(rates, np.array([0.0, begin, end]))
        return serve("ps", arrival, demand, servers, rates=pace).departure_s
    free, broken_half = np.zeros(servers), np.arange(servers) >= servers // 2
    departure = np.empty(len(arrival))
    for i, (came, needs) in enumerate(zip(arrival, demand, strict=True)):
        start = np.maximum(free, came)
        start[broken_half & (start >= begin) & (start < end)] = end
        server = int(np.argmin(start))
        departure[i] = free[server] = start[server] + needs
    return departure


def on_two_hosts(rng, policy, arrival, demand, servers):
    """Serve a log on two machines with half of the servers each, drawn for each request."""
    departure, first = np.empty(len(arrival)), rng.random(len(arrival)) < 0.5
    for rows in (first, ~first):
        departure[rows] = serve(policy, arrival[rows], demand[rows], servers // 2).departure_s
    return departure


def broken(rng, policy, arrival, demand, servers):
    """Yield logs whose premise fails, each with its name."""
    whole = serve(policy, arrival, demand, servers).departure_s
    if servers > 1:
        yield f"half unusable, {policy}", arrival, unusable(policy, arrival, demand, servers)
        yield f"hosts mixed, {policy}", arrival, on_two_hosts(rng, policy, arrival, demand, servers)
    polls = rng.random(len(arrival)) < 0.01
    yield "long polls of a minute", arrival, np.where(polls, arrival + 60.0, whole)
    yield "long polls of any length", arrival, np.where(polls, arrival + rng.exponential(60.0, len(arrival)), whole)
    yield "cut off", arrival, np.minimum(whole, arrival + 5.0)


def healthy(rng, servers, load, law):
    """Yield logs of one pool under other policies, each with its policy."""
    arrival, demand = day(rng, servers, load, 1.0 + law % 2, law % 2)
    n = len(arrival)
    mean_s = float(demand.mean())
    laws = (
        demand,
        rng.uniform(0.5, 1.5, n),
        rng.gamma(4.0, 0.25, n),
        rng.uniform(0.9, 1.1, n),
        np.ones(n),
        np.where(rng.random(n) < 0.9, rng.exponential(0.5, n), rng.exponential(5.5, n)),
    )
    demand = laws[law % 6] * mean_s / laws[law % 6].mean()
    for policy in OTHERS:
        more = {
            "rr": {"quantum_s": 0.1 * mean_s},
            "random": {"choice": rng.random(n)},
            "priority": {"priority": rng.integers(0, 2, n)},
        }.get(policy, {})
        yield policy, arrival, serve(policy, arrival, demand, servers, **more).departure_s


class Tally:
    """How often something happened."""

    def __init__(self):
        self.counts, self.logs = Counter(), Counter()

    def add(self, name, happened):
        """Count a log."""
        self.logs[name] += 1
        self.counts[name] += bool(happened)

    def print(self):
        """Print the shares."""
        for name, n in sorted(self.logs.items()):
            share = self.counts[name] / n
            error = np.sqrt((self.counts[name] + 1) * (n - self.counts[name] + 1) / (n + 2) ** 3)
            print(f"{name:55} {self.counts[name]:4} of {n:4}  {share:6.1%} ± {100 * error:.1f}")


def judge_pool(tally, policy, servers, load, repeat):
    """Judge the logs of one pool: as said, with a wrong number, and with its premise broken."""
    rng = np.random.default_rng([repeat, servers, int(100 * load), policy == "ps"])
    for name, follow in (("demand follows load", 2.0), ("demand steady", 1.0)):
        arrival, demand = day(rng, servers, load, follow, repeat % 2)
        departure = serve(policy, arrival, demand, servers).departure_s
        findings, verdict = judged(arrival, departure, servers)
        tally.add(f"{name}: false finding", findings or verdict == "contradicted")
    off = max(1, round(0.3 * servers))
    for said in (servers + off, servers - off):
        if said >= 1 and waited(arrival, departure, servers) >= 500:
            way = "more" if said > servers else "fewer"
            verdict = judged(arrival, departure, said)[1]
            tally.add(f"wrong number, {way} said, {policy}: contradicted", verdict == "contradicted")
            tally.add(f"wrong number, {way} said, {policy}: confirmed", verdict == "not contradicted")
            for tick in TICKS if policy == "fcfs" else ():
                coarse = [rounded(times, tick * demand.mean()) for times in (arrival, departure)]
                wrong = judged(*coarse, said)[1] == "contradicted"
                tally.add(f"wrong number, {way} said, {policy}, stamps of {tick:.0%}: contradicted", wrong)
            if repeat < WITH_AUTO:
                answer = identify(arrival, departure, policies=POLICIES, expected_servers=said)
                reported = answer.policy is None or answer.servers != said
                tally.add(f"wrong number, {way} said, --policy auto: reported", reported)
    for name, came, left in broken(rng, policy, arrival, demand, servers):
        findings, verdict = judged(came, left, servers)
        tally.add(f"{name}: reported", findings or verdict == "contradicted")
        named = next(names for start, names in FITTING.items() if name.startswith(start))
        tally.add(f"{name}: called by its name", any(finding in named for finding in findings))


def judge_others(tally, servers, load, repeat):
    """Judge healthy logs under policies that no finding is made for."""
    rng = np.random.default_rng([repeat, servers, int(100 * load), 2])
    for policy, came, left in healthy(rng, servers, load, repeat):
        findings, verdict = judged(came, left, servers)
        tally.add(f"{policy}: false finding", findings or verdict == "contradicted")
        tally.add("right number: contradicted", verdict == "contradicted")
        for tick in TICKS:
            coarse = [rounded(times, tick * servers * load * came[-1] / len(came)) for times in (came, left)]
            wrong = judged(*coarse, servers)[1] == "contradicted"
            tally.add(f"right number, stamps of {tick:.0%}: contradicted", wrong)


def main(repeats):
    """Print how often what was said."""
    tally = Tally()
    for repeat in range(repeats):
        for servers in SERVERS:
            for policy in POLICIES:
                for load in LOADS:
                    judge_pool(tally, policy, servers, load, repeat)
            for load in (0.7, 0.9):
                judge_others(tally, servers, load, repeat)
    tally.print()


if __name__ == "__main__":
    main(int(sys.argv[1]))
