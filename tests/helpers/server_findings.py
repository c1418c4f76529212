"""How often findings about servers are false, and how often a wrong ``--servers`` or a broken premise is reported.

``python -m tests.helpers.server_findings 4`` prints a line for each situation. Logs have 6,000 requests on 1, 4 and 16
servers at 50, 70 and 85% mean load under fcfs and ps; the rate of arrivals moves by half over four cycles.

- *demand follows load*: demands are twice as long in the busiest hours, servers as said: any finding about servers is
  false. The limit is 2%.
- *wrong number*: off by 30%, at least one, up and down, in logs in which at least 500 arrivals met all servers busy. It
  is reported if `servers_test` contradicts it, or, with ``--policy auto``, if another number or nothing is answered.
  The limit is 90%.
- *half unusable*: half of the servers do nothing during a third of the log (4 and 16 servers).
- *hosts mixed*: the log of two machines with half of the servers each, said as one.
- *long polls*: one request in a hundred stays for a minute of mean demands without using a server.
- *cut off*: requests are logged as left after five mean demands, while their work goes on.
"""

import sys
from collections import Counter

import numpy as np
import pandas as pd

from analysis.occupancy.identification import identify
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.rates import completion_rates, servers_test
from models.queues.serve import serve

REQUESTS, SERVERS, LOADS, POLICIES = 6_000, (1, 4, 16), (0.5, 0.7, 0.85), ("fcfs", "ps")


def day(rng, servers, load, follow, law):
    """Arrivals whose rate moves by half over four cycles, and demands of mean 1 that move with it by a factor."""
    span = REQUESTS / (servers * load)
    times = np.sort(rng.random(2 * REQUESTS) * span)
    phase = (1 + np.sin(8 * np.pi * times / span)) / 2
    kept = rng.random(2 * REQUESTS) < (0.35 + 0.65 * phase) * 0.75
    times, factor = times[kept], 1 + (follow - 1) * phase[kept]
    drawn = rng.exponential(1, len(times)) if law else rng.lognormal(-0.5, 1, len(times))
    return times, drawn * factor * load * servers * span / (drawn * factor).sum()


def test_of(arrival, departure, servers):
    """Return the findings about servers and the verdict on their number."""
    log = clean(pd.DataFrame({"arrival_s": arrival, "departure_s": departure}), servers)
    peak = int((np.arange(len(arrival)) + 1 - np.searchsorted(np.sort(departure), arrival)).max())
    verdict = servers_test(log, completion_rates(log), servers, peak).verdict
    return [finding.name for finding in log.findings if "server" in finding.name], verdict


def waited(arrival, departure, servers):
    """Return how many arrivals met all servers busy."""
    return int((np.arange(len(arrival)) - np.searchsorted(np.sort(departure), arrival) >= servers).sum())


def unusable(policy, arrival, demand, servers):
    """Serve a log of which the second third has half of the servers."""
    parts = np.array_split(np.arange(len(arrival)), 3)
    return np.concatenate(
        [
            serve(policy, arrival[rows], demand[rows], servers // 2 if part == 1 else servers).departure_s
            for part, rows in enumerate(parts)
        ]
    )


def broken(rng, policy, arrival, demand, servers):
    """Yield logs whose premise fails, each with its name."""
    whole = serve(policy, arrival, demand, servers).departure_s
    if servers > 1:
        yield "half unusable", arrival, unusable(policy, arrival, demand, servers)
        left, first = np.empty(len(arrival)), rng.random(len(arrival)) < 0.5
        for rows in (first, ~first):
            left[rows] = serve(policy, arrival[rows], demand[rows], servers // 2).departure_s
        yield "hosts mixed", arrival, left
    yield "long polls", arrival, np.where(rng.random(len(arrival)) < 0.01, arrival + 60.0, whole)
    yield "cut off", arrival, np.minimum(whole, arrival + 5.0)


def main(repeats):
    """Print how often what was said."""
    counts, logs = Counter(), Counter()

    def told(name, yes):
        logs[name] += 1
        counts[name] += bool(yes)

    for repeat in range(repeats):
        for policy in POLICIES:
            for servers in SERVERS:
                for load in LOADS:
                    rng = np.random.default_rng([repeat, servers, int(100 * load), policy == "ps"])
                    arrival, demand = day(rng, servers, load, 2.0, repeat % 2)
                    departure = serve(policy, arrival, demand, servers).departure_s
                    findings, verdict = test_of(arrival, departure, servers)
                    told("demand follows load: false finding", findings or verdict == "contradicted")
                    arrival, demand = day(rng, servers, load, 1.0, repeat % 2)
                    departure = serve(policy, arrival, demand, servers).departure_s
                    findings, verdict = test_of(arrival, departure, servers)
                    told("demand steady: false finding", findings or verdict == "contradicted")
                    off = max(1, round(0.3 * servers))
                    for said in (servers + off, servers - off):
                        if said >= 1 and waited(arrival, departure, servers) >= 500:
                            way = "more" if said > servers else "fewer"
                            verdict = test_of(arrival, departure, said)[1]
                            told(f"wrong number, {way} said: contradicted", verdict == "contradicted")
                            told(f"wrong number, {way} said: confirmed", verdict == "not contradicted")
                            answer = identify(arrival, departure, policies=POLICIES, expected_servers=said)
                            told(
                                f"wrong number, {way} said, --policy auto: reported",
                                answer.policy is None or answer.servers != said,
                            )
                    for name, came, left in broken(rng, policy, arrival, demand, servers):
                        findings, verdict = test_of(came, left, servers)
                        told(f"{name}: reported", findings or verdict == "contradicted")
    for name, n in sorted(logs.items()):
        share = counts[name] / n
        error = np.sqrt((counts[name] + 1) * (n - counts[name] + 1) / (n + 2) ** 3)
        print(f"{name:50} {counts[name]:4} of {n:4}  {share:6.1%} ± {100 * error:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
