"""How often a simulated log with rounded stamps tells its policy: servers x load x resolution x policy.

``python -m tests.helpers.policy_logs 3 > identified.csv`` writes a row for each log of three repeats, ``python -m
tests.helpers.policy_logs 3 2 8`` of 2 and 8 servers alone, ``python -m tests.helpers.policy_logs 3-4 2 8`` of the
fourth and fifth repeat; with ``--sample 200`` behind it only so many of them, drawn at random, in random order: if it
is stopped before, what is there is a smaller sample. ``python -m tests.helpers.policy_logs --table identified.csv``
prints the tables of docs/requests.md from it.

The grid, written down before the first run:

- servers 1, 2, 4, 8, 16, 64 or those that are given, said as by ``--servers``; utilisation 0.3, 0.7, 0.9, 0.97;
- stamps rounded down to ticks of 0, 1, 5 and 20% of the mean demand;
- every policy that can be reconstructed on so many servers: nine, and random on one. Classes are said under
  priority alone; the quantum of rr, half a mean demand, is said;
- 12,000 requests, Poisson arrivals, demands exponential, lognormal (sigma 1) and uniform on 0.5 to 1.5 means, in turn.

A log is *decisive* if at least 1,000 arrivals met all servers busy. The criterion: of the decisive logs at least 95%
are named right, policy and servers, at most 1% wrong, and at most 5% not at all; of all other logs at most 1% are named
wrong. As a second measure, without a criterion: random order on several servers, which is no candidate, so that any
name is wrong.
"""

import csv
import sys
from itertools import product

import numpy as np
import pandas as pd

from analysis.occupancy.identification import ON_ONE, identify
from models.queues.policies import POLICIES
from models.queues.serve import serve
from models.randomness import stream

SERVERS, LOADS, RESOLUTIONS = (1, 2, 4, 8, 16, 64), (0.3, 0.7, 0.9, 0.97), (0.0, 0.01, 0.05, 0.2)
REQUESTS, DECISIVE, TICK_S = 12_000, 1_000, 1e-3
LAWS = ("exponential", "lognormal", "uniform")
COLUMNS = ("servers", "load", "resolution", "policy", "law", "repeat", "crowded", "named", "named_servers", "reason")


def demands(rng, law, n):
    """Draw n demands of mean 1."""
    if law == "exponential":
        return rng.exponential(1.0, n)
    return rng.lognormal(-0.5, 1.0, n) if law == "lognormal" else rng.uniform(0.5, 1.5, n)


def simulated(servers, load, resolution, policy, repeat):
    """Return a log: arrivals and departures in seconds, classes, the quantum, and how many arrivals met all busy."""
    rng = stream(repeat, f"policy {servers} {load} {resolution} {policy}")
    law = LAWS[repeat % len(LAWS)]
    mean_s = TICK_S / resolution if resolution else 1.0
    demand = demands(rng, law, REQUESTS) * mean_s
    arrival = np.cumsum(rng.exponential(mean_s / (load * servers), REQUESTS))
    classes, quantum = rng.integers(0, 3, REQUESTS), 0.5 * mean_s
    served = serve(
        policy, arrival, demand, servers, priority=classes, quantum_s=quantum, choice=rng.random(REQUESTS)
    )  # fmt: skip
    departure = served.departure_s
    met = np.arange(REQUESTS) - np.searchsorted(np.sort(departure), arrival)
    if resolution:
        arrival, departure = (np.floor(stamps / TICK_S) * TICK_S for stamps in (arrival, departure))
    return arrival, departure, classes if policy == "priority" else None, quantum, int(np.count_nonzero(met >= servers))


def asked(servers, load, resolution, policy, repeat):
    """Return the row of one log."""
    arrival, departure, classes, quantum, crowded = simulated(servers, load, resolution, policy, repeat)
    answer = identify(arrival, departure, expected_servers=servers, priority=classes, quantum_s=quantum)
    law = LAWS[repeat % len(LAWS)]
    named = (answer.policy or "", answer.servers or "", answer.reason)
    return (servers, load, resolution, policy, law, repeat, crowded, *named)


def cells(numbers=SERVERS):
    """Yield the cells of the grid, those without a right candidate last."""
    for cell in product(numbers, LOADS, RESOLUTIONS, POLICIES):
        if cell[0] == 1 or cell[3] not in ON_ONE:
            yield cell
    yield from product([k for k in numbers if k > 1], LOADS, RESOLUTIONS, ON_ONE)


def verdicts(rows):
    """Return rows with columns decisive, right, wrong and silent."""
    candidate = (rows["servers"] == 1) | ~rows["policy"].isin(ON_ONE)
    named = rows["named"].notna() & (rows["named"] != "")
    right = named & candidate & (rows["named"] == rows["policy"]) & (rows["named_servers"] == rows["servers"])
    return rows.assign(
        candidate=candidate, decisive=rows["crowded"] >= DECISIVE, right=right, wrong=named & ~right, silent=~named
    )


def shares(rows):
    """Return right, wrong and silent of some logs in words, with the Monte-Carlo error of the first."""
    n = len(rows)
    if not n:
        return "-"
    right, wrong = int(rows["right"].sum()), int(rows["wrong"].sum())
    error = 100 * np.sqrt((right + 1) * (n - right + 1) / (n + 2) ** 3)
    return f"{right / n:.0%} ± {error:.0f}" + (f", {wrong} wrong" if wrong else "")


def tables(file):
    """Print the tables of the documentation."""
    rows = verdicts(pd.read_csv(file))
    true, none = rows[rows["candidate"]], rows[~rows["candidate"]]
    decisive, other = true[true["decisive"]], true[~true["decisive"]]
    for name, some in (("decisive", decisive), ("other", other), ("no right candidate", none)):
        n = max(len(some), 1)
        counts = {verdict: int(some[verdict].sum()) for verdict in ("right", "wrong", "silent")}
        print(f"{name}: {len(some):,} logs, " + ", ".join(f"{v} {c} ({c / n:.1%})" for v, c in counts.items()))
    for rows_by, columns_by in (
        (["servers", "load"], "resolution"),
        (["policy"], "resolution"),
        (["policy"], "servers"),
    ):
        heads = sorted(decisive[columns_by].unique())
        print("\n| " + " | ".join((*rows_by, *(f"{columns_by} {head:g}" for head in heads))) + " |")
        print("|" + "---|" * (len(rows_by) + len(heads)))
        for key, some in decisive.groupby(rows_by):
            cells_ = [shares(some[some[columns_by] == head]) for head in heads]
            print("| " + " | ".join((*map(str, key), *cells_)) + " |")


def main(repeats, numbers=SERVERS, sample=None):
    """Print the rows of some repeats of the grid, or of some numbers of servers, or of a sample of these."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    logs = [(*cell, repeat) for repeat in repeats for cell in cells(numbers)]
    order = range(len(logs)) if sample is None else stream(0, "sample of policy logs").permutation(len(logs))[:sample]
    for at in order:
        out.writerow(asked(*logs[at]))
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        tables(sys.argv[2])
    else:
        words = sys.argv[1:]
        sample = int(words[words.index("--sample") + 1]) if "--sample" in words else None
        first, _, last = words[0].rpartition("-")
        numbers = [int(word) for word in words[1 : words.index("--sample") if sample else None]]
        main(range(int(first), int(last) + 1) if first else range(int(last)), numbers or SERVERS, sample)
