"""How often the band of a percentile holds that of another simulated day, and how often the fewest servers are right.

``python -m tests.helpers.slo_days 200`` prints lines for each policy: a day is seen on k servers, its percentiles on k
and on other servers and of 1.3 times its load are predicted from arrivals and departures alone, and compared with
another day. The load follows the hour and comes in bursts.
"""

import sys
from collections import Counter

import numpy as np

from analysis.occupancy.inversion import reconstruct
from analysis.occupancy.load import recorded
from analysis.occupancy.objective import Objective, ReplayStation
from models.queues.policies import POLICIES
from models.queues.serve import serve

LEVELS = (0.5, 0.9, 0.99)


def day(rng, servers, load, requests=10_000, factor=1.0):
    """Arrivals, demands and classes: rate ±30% over the day, a tenth of the arrivals are bursts of five."""
    n = rng.poisson(requests * factor * 0.9)
    grid = np.linspace(0, 1, 1001)
    rate = 1 + 0.3 * np.sin(2 * np.pi * grid)
    span = requests / (servers * load)
    share = np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)))
    times = np.interp(rng.random(n), share / share[-1], grid) * span
    burst = rng.choice(times, rng.poisson(0.1 * requests * factor / 5))
    times = np.sort(np.concatenate((times, *(burst + 0.01 * i for i in range(5)))))
    demand = rng.lognormal(-0.5, 1.0, len(times))
    return times, demand, rng.integers(0, 3, len(times))


def served(policy, load, servers, rng):
    times, demand, classes = load
    kind = POLICIES[policy]
    return serve(
        policy, times, demand, servers,
        priority=classes if kind.order == "class" else None,
        choice=rng.random(len(times)) if kind.order == "drawn" else None,
    ).departure_s  # fmt: skip


def judged(policy, seed, servers, load):
    """Yield (what, level, whether the band holds the other day's percentile, predicted over realised)."""
    rng = np.random.default_rng([seed, POLICIES[policy].code])
    first, other = day(rng, servers, load), day(rng, servers, load)
    left = served(policy, first, servers, rng)
    kind = POLICIES[policy]
    made = reconstruct(policy, first[0], left, servers, priority=first[2] if kind.order == "class" else None)
    scaled = recorded(first[0], np.maximum(made.demand_s, 0.0), left - first[0], first[2])
    station = ReplayStation(scaled, policy)
    heavier = day(rng, servers, load, factor=1.3)
    for what, k, factor, held in (
        ("as it is", servers, 1.0, other),
        ("one server more", servers + 1, 1.0, other),
        ("load x 1.3, two more", servers + 2, 1.3, heavier),
    ):
        true = np.quantile(served(policy, held, k, rng) - held[0], LEVELS, method="inverted_cdf")
        for at, real in zip(station.percentiles(LEVELS, k, factor), true, strict=True):
            yield what, at.name, at.low_s <= real <= at.high_s, at.value_s / real
    if kind.order == "drawn":
        return
    objective = Objective(0.99, float(np.quantile(served(policy, other, servers + 1, rng) - other[0], 0.99)) * 1.02)
    truly = next(
        k for k in range(1, 99) if np.quantile(served(policy, other, k, rng) - other[0], 0.99) <= objective.bound_s
    )
    answer = station.least_servers(objective)
    yield "fewest servers", "p99", answer is not None and abs(answer - truly) <= 1, (answer or 0) / truly


def main(days, policies, loads):
    for policy in policies:
        servers = 1 if POLICIES[policy].hidden else 4
        for load in loads:
            held, ratios = Counter(), {}
            for seed in range(days):
                for what, level, holds, ratio in judged(policy, seed, servers, load):
                    held[what, level] += holds
                    ratios.setdefault((what, level), []).append(ratio)
            for (what, level), values in ratios.items():
                shares = f"{held[what, level] / days:6.1%} ± {100 * (0.0475 / days) ** 0.5:.1f}"
                print(
                    f"{policy:8} k={servers} {load:.0%} {what:22} {level:6} {shares}  ratio {np.median(values):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    names = sys.argv[2].split(",") if len(sys.argv) > 2 else list(POLICIES)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, names, (0.7,))
