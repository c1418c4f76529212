"""How often the band of a percentile holds that of another simulated day, and how often the fewest servers are right.

``python -m tests.helpers.slo_days 200`` prints lines for each policy: a day is seen on k servers, its percentiles on k
and on other servers and of 1.3 times its load are predicted from arrivals and departures alone, and compared with
another day. The load follows the hour and comes in bursts.

``python -m tests.helpers.slo_days hours 36 fcfs,ps 1000`` asks how often the word *surely* is right by hour: logs of
one day and of five have hours of three loads, and what `needs_by_hour` says surely of each is held against ten further
such hours, by themselves and in the course of a day. The objective lies anywhere around what the middle hour does. The
last number is that of the first log; logs of number 5000 and more were looked at when the brackets were made.
"""

import sys
from collections import Counter

import numpy as np

from analysis.occupancy.hours import hours, needs_by_hour
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
    surely = station.largest(objective, servers).surely
    if surely > 0:
        heavier = day(rng, servers, load, factor=surely)
        yield "surely so much load", "p99", not late(policy, heavier, servers, rng, objective), surely
    yield "fewest servers", "p99", answer is not None and abs(answer - truly) <= 1, (answer or 0) / truly


HOURS = {8: 0.55, 9: 0.85, 10: 0.7}
"""Mean load by hour of the day."""
MEAN_S = 3.0


def hour(rng, servers, load, factor=1.0):
    """Arrivals within an hour, demands and classes; a tenth of the arrivals are bursts of five."""
    mean = 3600.0 * servers * load / MEAN_S
    times = rng.uniform(0.0, 3600.0, rng.poisson(0.9 * mean * factor))
    burst = rng.uniform(0.0, 3590.0, rng.poisson(0.1 * mean * factor / 5))
    times = np.sort(np.concatenate((times, *(burst + 0.01 * i for i in range(5)))))
    return times, MEAN_S * rng.lognormal(-0.5, 1.0, len(times)), rng.integers(0, 3, len(times))


def busy_days(rng, servers, days, factor=1.0):
    """The hours of several days."""
    parts = []
    for at in range(days):
        for number, load in HOURS.items():
            times, demand, classes = hour(rng, servers, load, factor)
            parts.append((times + 86_400.0 * at + 3600.0 * number, demand, classes))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def late(policy, load, servers, rng, objective):
    """Whether the percentile of such a load is above the bound."""
    return np.quantile(served(policy, load, servers, rng) - load[0], objective.level, method="inverted_cdf") > (
        objective.bound_s
    )


def late_by_hour(policy, servers, rng, objective, number):
    """The same of an hour in the course of its day."""
    times, demand, classes = busy_days(rng, servers[0], 1, servers[2])
    mine = times // 3600.0 == number
    response = served(policy, (times, demand, classes), servers[1], rng) - times
    return np.quantile(response[mine], objective.level, method="inverted_cdf") > objective.bound_s


def judged_hours(policy, seed, days, servers=4, again=10):
    """Yield what was said of an hour, and the share of further ones in which it was wrong: alone, and in their days."""
    rng = np.random.default_rng([seed, days, POLICIES[policy].code])
    log = busy_days(rng, servers, days)
    left = served(policy, log, servers, rng)
    demand = np.maximum(reconstruct(policy, log[0], left, servers).demand_s, 0.0)
    station = ReplayStation(recorded(log[0], demand, left - log[0]), policy)
    middle = hour(rng, servers, 0.7)
    usual = np.quantile(served(policy, middle, servers, rng) - middle[0], 0.99)
    objective = Objective(0.99, float(usual * rng.uniform(1.0, 2.5)))
    for row in needs_by_hour(hours(0.0, 86_400.0 * days), [station], objective, servers, left - log[0]):
        if not row.known:
            continue
        number = int(row.hour)
        statements = []
        if row.surely is not None:
            statements.append(("surely so many servers", row.surely, 1.0, False))
            statements.append(("this many, surely enough", servers, 1.0, False)) if row.surely <= servers else None
        if row.fewest is not None and row.fewest > servers:
            statements.append(("this many, too few", servers, 1.0, True))
        if row.largest_load_surely > 0:
            statements.append(("surely so much load", servers, row.largest_load_surely, False))
        for what, k, factor, expected in statements:
            alone = [
                late(policy, hour(rng, servers, HOURS[number], factor), k, rng, objective) != expected
                for _ in range(again)
            ]
            among = [
                late_by_hour(policy, (servers, k, factor), rng, objective, number) != expected for _ in range(again)
            ]
            yield what, HOURS[number], float(np.mean(alone)), float(np.mean(among))


def main_hours(logs, policies, first):
    for policy in policies:
        for days in (1, 5):
            wrong = {}
            for seed in range(first, first + logs):
                for what, load, alone, among in judged_hours(policy, seed, days):
                    for key in ((what, "all"), (what, f"{load:.0%}")):
                        wrong.setdefault(key, []).append((alone, among))
            for (what, load), shares in sorted(wrong.items()):
                mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / len(shares) ** 0.5
                told = ", ".join(f"{100 * m:.1f} ± {100 * e:.1f}%" for m, e in zip(mean, error, strict=True))
                print(f"{policy:5} {days} day(s) {what:25} {load:4} {len(shares):4} hours wrong: {told}", flush=True)


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
                n = len(values)
                shares = f"{held[what, level] / n:6.1%} ± {100 * (0.0475 / n) ** 0.5:.1f} of {n}"
                print(
                    f"{policy:8} k={servers} {load:.0%} {what:22} {level:6} {shares}  ratio {np.median(values):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["hours"]:
        main_hours(int(sys.argv[2]), sys.argv[3].split(","), int(sys.argv[4]) if len(sys.argv) > 4 else 0)
        sys.exit()
    names = sys.argv[2].split(",") if len(sys.argv) > 2 else list(POLICIES)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, names, (0.7,))
