"""Departures according to Ciw, a library that shares nothing with ours; made once, read from `ciw_departures.csv`.

    python -m venv elsewhere && elsewhere/bin/pip install ciw==3.2.7
    elsewhere/bin/python tests/helpers/ciw_departures.py > tests/helpers/ciw_departures.csv

Ciw installs a package called `tests`, which would take the place of this folder in scripts, so it is no dependency.
"""

import random
import sys

REQUESTS = 150
SETTINGS = ("fcfs_2", "lcfs_2", "ps_1", "ps_3", "priority_1", "priority_2")


def draw():
    """Return gaps of two classes, and demands in order of arrival: a utilisation of 0.85 on one server of speed 1."""
    rng = random.Random(7)
    gaps = {name: [rng.expovariate(0.425) for _ in range(REQUESTS // 2)] for name in ("0", "1")}
    return gaps, [rng.expovariate(1.0) for _ in range(REQUESTS)]


def simulate(setting):
    """Return arrival, class, demand and departure of every request in order of arrival."""
    import ciw

    class Listed(ciw.dists.Distribution):
        def __init__(self, values):
            self.values = iter(values)

        def sample(self, t=None, ind=None):
            return next(self.values, float("inf"))

    class Numbered(ciw.dists.Distribution):
        def __init__(self, values):
            self.values = values

        def sample(self, t=None, ind=None):
            return self.values[ind.id_number - 1]

    policy, servers = setting.split("_")
    gaps, demands = draw()
    demands = [int(servers) * demand for demand in demands]
    given = {
        "arrival_distributions": {name: [Listed(values)] for name, values in gaps.items()},
        "service_distributions": {name: [Numbered(demands)] for name in gaps},
        "number_of_servers": [float("inf") if policy == "ps" else int(servers)],
    }
    given |= {"service_disciplines": [ciw.disciplines.LIFO]} if policy == "lcfs" else {}
    given |= {"priority_classes": ({"0": 0, "1": 1}, ["resume"])} if policy == "priority" else {}
    given |= {"ps_thresholds": [int(servers)]} if policy == "ps" else {}
    ciw.seed(1)
    simulation = ciw.Simulation(ciw.create_network(**given), node_class=ciw.PSNode if policy == "ps" else ciw.Node)
    simulation.simulate_until_max_time(1e9)
    records = [each for each in simulation.get_all_records() if each.record_type == "service"]
    records.sort(key=lambda each: each.id_number)
    return [
        (each.arrival_date, each.customer_class, demand, each.exit_date)
        for each, demand in zip(records, demands, strict=True)
    ]


def main():
    sys.stdout.write("setting,arrival_s,priority,demand_s,departure_s\n")
    for setting in SETTINGS:
        for row in simulate(setting):
            sys.stdout.write(f"{setting},{','.join(map(str, row))}\n")


if __name__ == "__main__":
    main()
