"""How often a log tells its policy and servers: known worlds, and worlds in which no candidate is right.

Usage: python benchmarks/identification.py [--requests 1000] [--repeats 20] [--seed 1] [--known] [--json]

Poisson arrivals, utilisation drawn evenly from 0.5 to 0.9; 1, 2 and 4 servers; demands uniform on 1 to 2 s,
exponential and Pareto with tail index 2, all of mean 1.5 s. The candidates are all policies that can be reconstructed,
on 1 to 16 servers and some of the larger numbers; with --known the number of servers is said, as by `--servers`.
Every repeat has random numbers of its own. Right is the true policy on the true number of servers; a refusal is not.
"""

import argparse
from collections import Counter, deque
from heapq import heapify, heappop, heappush
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from analysis.occupancy.identification import ON_ONE, identify
from models.queues.policies import POLICIES
from models.queues.serve import serve
from models.randomness import stream
from scenarios.views.terminal import dumps

SERVERS = (1, 2, 4)
LAWS = {
    "uniform": lambda rng, n: rng.uniform(1.0, 2.0, n),
    "exponential": lambda rng, n: rng.exponential(1.5, n),
    "pareto": lambda rng, n: np.minimum(0.75 * (1 - rng.random(n)) ** -0.5, 150.0),
}


def load(rng, law, servers, n):
    demand = LAWS[law](rng, n)
    return np.cumsum(rng.exponential(demand.mean() / (rng.uniform(0.5, 0.9) * servers), n)), demand


def known(requests, repeats, seed, servers_known):
    """Return one row per log of a policy that is a candidate."""
    rows = []
    for law, servers, policy, repeat in product(LAWS, SERVERS, POLICIES, range(repeats)):
        if servers > 1 and policy in ON_ONE:
            continue
        rng = stream(seed, f"{law} {servers} {policy} {repeat}")
        arrival, demand = load(rng, law, servers, requests)
        classes = rng.integers(0, 3, requests)
        log = serve(policy, arrival, demand, servers, priority=classes, choice=rng.random(requests))
        expected = servers if servers_known else None
        found = identify(arrival, log.departure_s, priority=classes, expected_servers=expected)
        rows.append(
            {"law": law, "servers": servers, "policy": policy, "found": found.policy, "found_servers": found.servers}
            | {"why": found.reason, "true_is_rival": (policy, servers) in found.rivals}
        )
    return rows


def blocking(rng, arrival, demand, servers):
    """Halfway through, every request waits off the CPU: two visits to the servers."""
    events = [(time, i, "comes") for i, time in enumerate(arrival.tolist())]
    heapify(events)
    free, queue, departure = servers, deque(), np.empty(len(arrival))
    while events:
        time, i, what = heappop(events)
        if what in ("comes", "comes back"):
            queue.append((i, "waits" if what == "comes" else "leaves"))
        else:
            free += 1
            departure[i] = time
        if what == "waits":
            heappush(events, (time + rng.exponential(0.7), i, "comes back"))
        while free and queue:
            i, then = queue.popleft()
            heappush(events, (time + demand[i] / 2, i, then))
            free -= 1
    return arrival, departure


def delayed(rng, arrival, demand, servers):
    """Requests wait unseen before they join the queue."""
    joined = arrival + rng.uniform(0.0, 2.0, len(arrival))
    order, departure = np.argsort(joined), np.empty(len(arrival))
    departure[order] = serve("fcfs", joined[order], demand[order], servers).departure_s
    return arrival, departure


def shuffled(rng, arrival, demand, servers):
    """Every departure is given to somebody present at random."""
    departure, here, given = serve("fcfs", arrival, demand, servers).departure_s, [], np.empty(len(arrival))
    events = sorted(
        [(time, 1, i) for i, time in enumerate(arrival)] + [(time, 0, i) for i, time in enumerate(departure)]
    )
    for time, arrives, i in events:
        if arrives:
            here.append(i)
        else:
            given[here.pop(rng.integers(len(here)))] = time
    return arrival, given


def hidden(rng, arrival, demand, servers):
    """Three in ten requests are not in the log."""
    seen = rng.random(len(arrival)) < 0.7
    return arrival[seen], serve("fcfs", arrival, demand, servers).departure_s[seen]


def random_order(rng, arrival, demand, servers):
    """Random order of service on several servers, which cannot be reconstructed."""
    return arrival, serve("random", arrival, demand, max(servers, 2), choice=rng.random(len(arrival))).departure_s


def shortest_job(rng, arrival, demand, servers):
    """Shortest job first on several servers, which cannot be reconstructed."""
    return arrival, serve("sjf", arrival, demand, max(servers, 2)).departure_s


def parallel(rng, arrival, demand, servers):
    """Every request runs on two servers at once, in unequal parts."""
    parts = np.repeat(demand, 2) / 2 * rng.uniform(0.5, 1.5, 2 * len(demand))
    departure = serve("fcfs", np.repeat(arrival, 2), parts, max(servers, 2)).departure_s
    return arrival, departure.reshape(-1, 2).max(axis=1)


def unequal(rng, arrival, demand, servers):
    """Servers of speed 1.5 down to 0.5."""
    k = max(servers, 2)
    return arrival, serve("fcfs", arrival, demand, k, speeds=np.linspace(1.5, 0.5, k)).departure_s


def hyper_threads(rng, arrival, demand, servers):
    """Servers that slow each other down to 65%."""
    k = max(servers, 2)
    return arrival, serve("ps", arrival, demand, k, rates=np.linspace(1.0, 0.65 * k, k)).departure_s


def ageing(rng, arrival, demand, servers):
    """Demands that grow threefold in the course of the log."""
    return arrival, serve("ps", arrival, demand * np.linspace(0.5, 1.5, len(demand)), servers).departure_s


COUNTER = (
    blocking,
    delayed,
    shuffled,
    hidden,
    random_order,
    shortest_job,
    parallel,
    unequal,
    hyper_threads,
    ageing,
)


def unknown(requests, repeats, seed, servers_known):
    """Return one row per log of a world in which no candidate is right."""
    rows = []
    for world, law, servers, repeat in product(COUNTER, LAWS, SERVERS, range(repeats)):
        rng = stream(seed, f"{world.__name__} {law} {servers} {repeat}")
        log = world(rng, *load(rng, law, servers, requests), servers)
        found = identify(*log, expected_servers=servers if servers_known else None)
        rows.append(
            {"world": world.__name__, "law": law, "servers": servers}
            | {"found": found.policy, "found_servers": found.servers}
        )
    return rows


def show_known(rows, console):
    table = Table("policy", *(f"{law}: right" for law in LAWS), "refused", "wrong servers", "wrong policy", "taken for")
    for policy in (*POLICIES, "all"):
        own = [row for row in rows if policy in (row["policy"], "all")]
        right = [row for row in own if (row["found"], row["found_servers"]) == (row["policy"], row["servers"])]
        shares = [(sum(r["law"] == law for r in right), sum(r["law"] == law for r in own)) for law in LAWS]
        refused = sum(row["found"] is None for row in own)
        other = Counter(row["found"] for row in own if row["found"] not in (None, row["policy"]))
        miscounted = len(own) - len(right) - refused - sum(other.values())
        names = ", ".join(f"{name} {count}" for name, count in other.most_common())
        counts = [f"{a}/{b} {a / b:.1%}" for a, b in shares]
        table.add_row(policy, *counts, str(refused), str(miscounted), str(sum(other.values())), names)
    console.print(table)
    for reason, count in Counter(row["why"] for row in rows if row["found"] is None).most_common():
        console.print(f"refused {count}: {reason}", highlight=False)


def show_unknown(rows, console):
    table = Table("world without a right candidate", "refused", "taken for")
    for world in COUNTER:
        own = [row["found"] for row in rows if row["world"] == world.__name__]
        names = ", ".join(f"{name} {count}" for name, count in Counter(filter(None, own)).most_common())
        table.add_row(world.__doc__, f"{own.count(None)}/{len(own)} {own.count(None) / len(own):.0%}", names)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="say the number of servers")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    payload = {
        "kind": "identification",
        "known": known(asked.requests, asked.repeats, asked.seed, asked.known),
        "unknown": unknown(asked.requests, max(1, asked.repeats // 4), asked.seed, asked.known),
    }
    if asked.json:
        print(dumps(payload))
    else:
        console = Console(width=140)
        show_known(payload["known"], console)
        show_unknown(payload["unknown"], console)


if __name__ == "__main__":
    main()
