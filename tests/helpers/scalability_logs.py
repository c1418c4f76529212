"""How often intervals of contention and coherence hold the planted values.

``python -m tests.helpers.scalability_logs 200`` simulates so many logs of each kind and prints coverage. All present
share a station equally whose capacity with n present is n / (1 + contention (n - 1) + coherence n (n - 1)). The planted
values are drawn anew for each log: contention from 0.01 to 0.3, coherence from 0.0002 to 0.01, evenly on a logarithmic
scale.

- *users*: up to 40 users who think for two mean demands; how many of them are there moves in steps, as in a load test.
- *open*: arrivals at a rate that moves by half, at 80% of the most that the station completes; none while 60 are there.

Demands are exponential in one half of the logs and lognormal (squared coefficient of variation 1.7) in the other.

- *queues*: logs of `tests.helpers.server_findings` of 1, 4 and 16 servers, in half of which demands follow the load:
  how often they are said to slow down.
"""

import heapq
import sys
from collections import Counter

import numpy as np

from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.scalability import relative, scalability_law, state_counts
from models.queues.serve import serve
from scenarios.occupancy.scalability import scalability
from tests.helpers.server_findings import LOADS, POLICIES, SERVERS, day

REQUESTS, USERS, ROOM, THINK_S = 20_000, 40, 60, 2.0
LEVELS = 24
"""Steps of the number of users, one after the other."""


def planted(rng):
    """Contention and coherence, and the capacity with 0, 1, 2, … present."""
    contention, coherence = np.exp(rng.uniform(np.log([0.01, 0.0002]), np.log([0.3, 0.01])))
    present = np.arange(1.0, 201.0)
    return contention, coherence, np.concatenate(([0.0], relative(present, contention, coherence)))


def demands(rng, law, n=REQUESTS):
    """Demands of mean 1 s."""
    return rng.exponential(1.0, n) if law == "exponential" else rng.lognormal(-0.5, 1.0, n)


class Shared:
    """A station that all present share equally: its clock is the service that each of them has got since the start."""

    def __init__(self, capacity):
        self.capacity, self.clock, self.now, self.leaving = capacity, 0.0, 0.0, []

    def pace(self):
        """Service per second of each request present."""
        return self.capacity[len(self.leaving)] / len(self.leaving) if self.leaving else 0.0

    def next_departure(self):
        """When the next request leaves if nobody comes before."""
        return self.now + (self.leaving[0][0] - self.clock) / self.pace() if self.leaving else np.inf

    def go_to(self, time):
        """Let time pass."""
        self.clock += (time - self.now) * self.pace()
        self.now = time


def log_of_users(rng, capacity, law):
    """Arrivals and departures of users who come back after thinking, so many as the step of the load test asks for."""
    station, demand, think = Shared(capacity), demands(rng, law), rng.exponential(THINK_S, REQUESTS)
    levels = rng.permutation(np.linspace(1, USERS, LEVELS).astype(int))
    arrival, departure = np.empty(REQUESTS), np.full(REQUESTS, np.nan)
    wanted = levels[0]
    coming = [think[user] for user in range(wanted)]
    heapq.heapify(coming)
    users, i = wanted, 0
    while i < REQUESTS:
        wanted = levels[i * LEVELS // REQUESTS]
        while users < wanted:
            heapq.heappush(coming, station.now + think[(i + users) % REQUESTS])
            users += 1
        leaves = station.next_departure()
        if coming and coming[0] < leaves:
            station.go_to(heapq.heappop(coming))
            arrival[i] = station.now
            heapq.heappush(station.leaving, (station.clock + demand[i], i))
            i += 1
            continue
        station.go_to(leaves)
        departure[heapq.heappop(station.leaving)[1]] = leaves
        if users > wanted:
            users -= 1
        else:
            heapq.heappush(coming, leaves + think[(i + 7) % REQUESTS])
    return arrival, departure


def log_in_the_open(rng, capacity, law):
    """Arrivals at a rate that moves by half, and departures; nobody comes in while 60 are present."""
    station, demand = Shared(capacity), demands(rng, law)
    most = 0.8 * capacity[: ROOM + 1].max() * 1.5
    arrival, departure = np.empty(REQUESTS), np.full(REQUESTS, np.nan)
    span, time, i = REQUESTS / most, 0.0, 0
    while i < REQUESTS:
        time += rng.exponential(1.0 / most)
        while (leaves := station.next_departure()) <= time:
            station.go_to(leaves)
            departure[heapq.heappop(station.leaving)[1]] = leaves
        station.go_to(time)
        rate = (1.0 + 0.5 * np.sin(8.0 * np.pi * time / span)) / 1.5
        if len(station.leaving) < ROOM and rng.random() < rate:
            arrival[i] = time
            heapq.heappush(station.leaving, (station.clock + demand[i], i))
            i += 1
    return arrival, departure


def judge_queues(repeats):
    """Print how often what is said of queues on which nothing slows down."""
    verdicts = Counter()
    for repeat in range(repeats):
        for policy in POLICIES:
            for servers in SERVERS:
                for load in LOADS:
                    for follow in (1.0, 2.0):
                        rng = np.random.default_rng([repeat, servers, int(100 * load), policy == "ps"])
                        arrival, demand = day(rng, servers, load, follow, repeat % 2)
                        departure = serve(policy, arrival, demand, servers).departure_s
                        answer = scalability(Cleaned(arrival, departure, (), 0, paired=True), servers)
                        verdicts[f"demands × {follow:g}", answer.verdict] += 1
    for (follow, verdict), count in sorted(verdicts.items()):
        print(f"queues, {follow}: {verdict} {count}")


def main(logs):
    """Print how often the intervals hold both values, and what is said of queues."""
    judge_queues(max(logs // 50, 1))
    for kind, make in (("users", log_of_users), ("open", log_in_the_open)):
        counts, widths = Counter(), {}
        for i in range(logs):
            rng = np.random.default_rng([i, kind == "open"])
            contention, coherence, capacity = planted(rng)
            law = "exponential" if i % 2 else "lognormal"
            fitted, why = scalability_law(state_counts(*make(rng, capacity, law)))
            if fitted is None:
                print(f"{kind} {i}: {why}")
                continue
            for name, truth in (("contention", contention), ("coherence", coherence)):
                interval = getattr(fitted, name)
                for demand in (law, "all"):
                    counts[name, demand, "of"] += 1
                    counts[name, demand, "holds"] += interval.low <= truth <= interval.high
                    counts[name, demand, "above"] += truth > interval.high
                widths.setdefault(name, []).append((interval.high - interval.low) / 2 / truth)
        for (name, demand, what), n in sorted(counts.items()):
            if what == "of":
                count = counts[name, demand, "holds"]
                error = np.sqrt((count + 1) * (n - count + 1) / (n + 2) ** 3)
                held = f"held in {count:4} of {n:4}, {count / n:6.1%} ± {100 * error:.1f}"
                width = f"median half width {np.median(widths[name]):.0%} of the value"
                print(f"{kind:6} {name:10} {demand:12} {held}; {counts[name, demand, 'above']} above; {width}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
