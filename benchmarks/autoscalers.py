"""What servers cost for an objective under each rule that orders them, tuned on some days and judged on others.

    python benchmarks/autoscalers.py [--tune 3] [--judge 6] [--only WORLD] [--out docs/autoscalers.csv]

A day is two hours of a queue world (`WORLDS`), and every day has its own seed. Each rule is tried with every target and
every length of hold on the days for tuning. Its candidates are those settings of which none is both cheaper and less
often late there. On the days for judging every candidate is a row of `--out`, which docs/figures.py draws: server
hours, and the share of requests that were late, not answered within two seconds. The table has, for each rule and each
objective, the cheapest setting that met the objective on the days for tuning, and what it did on the days for judging,
with the standard error over days. Energy with servers that idle at a power of p0 and work at p1 is p0 × server hours +
(p1 − p0) × busy hours, and busy hours are the same under every rule; so the front of energy is that of server hours.
In the last world the servers are hardware threads of a machine without neighbours: the more of them work, the slower
each is, and the machine's energy over the two hours is a column of its own.
"""

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from models.queues.limited import Autoscaling, serve_limited
from models.queues.machine import ServingMachine
from models.queues.serve import RequestStamps
from models.queues.world import Arrivals, Bursts, Distribution, Load, LoadPoint, QueueWorld, RequestType, Station
from sim.fleet.served_machine import machine_states
from sim.queues.machine import OnMachine
from sim.queues.workloads import draw

LIMIT_S = 2.0
OBJECTIVES = (0.05, 0.01, 0.001)
"""Shares of requests that may take longer."""
START_UP_S, LOOK_S, MOST = 30.0, 15.0, 60
HOLDS_S = (60.0, 300.0)
TARGETS = {
    "utilisation": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    "present": (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0),
    "queueing": (1e-4, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 1.0),
    "law": (1e-4, 0.002, 0.005, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5),
}


def swing(low):
    """Return a load that rises from a share of its mean for an hour, and falls for another."""
    return tuple(LoadPoint(time_s, factor) for time_s, factor in ((0, low), (3600, 2.0 - low), (7200, low)))


_PAGE = RequestType("page", Distribution("lognormal", mean=0.4, cv=0.5))
_BURSTY = QueueWorld(
    horizon_s=7200.0,
    load=Load(Arrivals(20.0, load=swing(0.5), bursts=Bursts(1.5, 60.0, 300.0)), types=(_PAGE,)),
    station=Station(8, "fcfs"),
)
WORLDS = {
    "swing and bursts, FCFS": _BURSTY,
    "swing alone, FCFS": replace(_BURSTY, load=Load(Arrivals(20.0, load=swing(0.5)), types=(_PAGE,))),
    "deep swing and bursts, FCFS": replace(
        _BURSTY, load=Load(Arrivals(20.0, load=swing(0.1), bursts=Bursts(1.5, 60.0, 300.0)), types=(_PAGE,))
    ),
    "swing and bursts, PS": replace(_BURSTY, station=Station(8, "ps")),
    "on a machine, FCFS": replace(
        _BURSTY,
        load=Load(Arrivals(35.0, load=swing(0.5), bursts=Bursts(1.5, 60.0, 300.0)), types=(_PAGE,)),
        station=Station(16, "fcfs"),
        machine=ServingMachine(neighbours=None),
    ),
}


def day(world, rule, target, hold_s, workloads):
    """Return server hours, the share that was late and the machine's energy in watt hours, day by day."""
    rows = []
    states = world.machine and machine_states(world.machine, MOST, world.seed, world.horizon_s)
    for workload in workloads:
        scaling = Autoscaling(rule, target, LOOK_S, 2, MOST, 1 + int(hold_s / LOOK_S))
        stamps = serve_limited(
            world.station.policy, workload.arrival_s, workload.demand_s, world.station.servers,
            autoscaling=scaling, start_up_s=START_UP_S, rates=states and states.rates,
        )  # fmt: skip
        late = stamps.departure_s[0] - stamps.arrival_s[0] > LIMIT_S
        energy_wh = energy(world, states, stamps) if states else np.nan
        rows.append((stamps.servers.cost_s(float(stamps.departure_s.max())) / 3600.0, late.mean(), energy_wh))
    return np.array(rows)


def energy(world, states, stamps):
    """Return what the machine takes until the horizon, watt hours."""
    served = RequestStamps(stamps.arrival_s[0], stamps.start_s[0], stamps.departure_s[0])
    on = OnMachine(served, states, world.machine, MOST, world.seed, world.platforms)
    power_w = on.means(world.horizon_s, 2.0 * world.horizon_s, stamps.servers)["power_w"][0]
    return power_w * world.horizon_s / 3600.0


def front(points):
    """Return the places of those points of which none is both cheaper and less often late."""
    return [i for i, a in enumerate(points) if not any((b <= a).all() and (b < a).any() for b in points)]


def trial(world, tune, judge):
    """Return for each rule its settings on the front of the days for tuning, with both kinds of days."""
    seeds = [*range(1, tune + 1), *range(101, 101 + judge)]
    days = [draw(replace(world, seed=seed)) for seed in seeds]
    found = {}
    for rule, targets in TARGETS.items():
        settings = list(product(targets, HOLDS_S))
        tuned = [day(world, rule, *setting, days[:tune]).mean(axis=0) for setting in settings]
        best = front([row[:2] for row in tuned])
        found[rule] = [(settings[i], tuned[i], day(world, rule, *settings[i], days[tune:])) for i in best]
    return found


def table(found):
    """Print what each rule costs for each objective."""
    print(f"{'objective':>10}  {'rule':<12} {'target':>8} {'hold':>6} {'server hours a day':>20} {'late':>18}")
    for objective in OBJECTIVES:
        for rule, candidates in found.items():
            fit = [candidate for candidate in candidates if candidate[1][1] <= objective]
            if not fit:
                print(f"{objective:>10.1%}  {rule:<12} no setting met it on the days for tuning")
                continue
            (target, hold_s), _, judged = min(fit, key=lambda candidate: candidate[1][0])
            (cost, late, energy_wh), error = judged.mean(axis=0), judged.std(axis=0, ddof=1) / np.sqrt(len(judged))
            print(
                f"{objective:>10.1%}  {rule:<12} {target:>8g} {hold_s:>5g}s {cost:>12.2f} ± {error[0]:.2f}"
                f" {late:>12.2%} ± {error[1]:.2%}" + (f" {energy_wh:>10.1f} Wh" if energy_wh > 0 else "")
            )


def points(name, found):
    """Return a row for each candidate of a world, as `docs/autoscalers.csv` has them."""
    rows = []
    for rule, candidates in found.items():
        for (target, hold_s), _, judged in candidates:
            (cost, late, energy_wh), error = judged.mean(axis=0), judged.std(axis=0, ddof=1) / np.sqrt(len(judged))
            rows.append((name, rule, target, hold_s, cost, error[0], late, error[1], energy_wh, error[2]))
    columns = ["world", "rule", "target", "hold_s", "server_hours", "server_hours_error", "late", "late_error"]
    columns += ["energy_wh", "energy_wh_error"]
    return pd.DataFrame(rows, columns=columns).sort_values(["rule", "server_hours"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", type=int, default=3)
    parser.add_argument("--judge", type=int, default=6)
    parser.add_argument("--only", choices=WORLDS, help="one of the worlds")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    tables = []
    for name, world in WORLDS.items():
        if asked.only not in (None, name):
            continue
        print(name)
        found = trial(world, asked.tune, asked.judge)
        table(found)
        tables.append(points(name, found))
        if asked.out:
            pd.concat(tables).to_csv(asked.out, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
