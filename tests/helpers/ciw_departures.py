"""Departures according to Ciw, a library that shares nothing with ours; made once, read from `ciw_departures.csv`.

    python -m venv elsewhere && elsewhere/bin/pip install ciw==3.2.7
    elsewhere/bin/python tests/helpers/ciw_departures.py > tests/helpers/ciw_departures.csv
    elsewhere/bin/python tests/helpers/ciw_departures.py --networks > tests/helpers/ciw_networks.csv

Ciw installs a package called `tests`, which would take the place of this folder in scripts, so it is no dependency.
"""

import random
import sys

REQUESTS = 150
SETTINGS = ("fcfs_2", "lcfs_2", "ps_1", "ps_3", "priority_1", "priority_2")
NETWORKS = ("fcfs_2 lcfs_1 fcfs_3", "ps_1 ps_2", "lcfs_2 lcfs_1")
"""Stations one after another."""


def draw():
    """Return gaps of two classes, and demands in order of arrival: a utilisation of 0.85 on one server of speed 1."""
    rng = random.Random(7)
    gaps = {name: [rng.expovariate(0.425) for _ in range(REQUESTS // 2)] for name in ("0", "1")}
    return gaps, [rng.expovariate(1.0) for _ in range(REQUESTS)]


def simulate(setting):
    """Return arrival, class, demand and departure of every request in order of arrival."""
    policy, servers = setting.split("_")
    gaps, demands = draw()
    demands = [int(servers) * demand for demand in demands]
    priorities = {"priority_classes": ({"0": 0, "1": 1}, ["resume"])} if policy == "priority" else {}
    records = served([(policy, int(servers))], gaps, [demands], priorities)
    return [
        (each.arrival_date, each.customer_class, demand, each.exit_date)
        for each, demand in zip(records, demands, strict=True)
    ]


def pass_through(network):
    """Return request, station, arrival there, demand and departure from there, in order of arrival at the first."""
    stations = [(policy, int(servers)) for policy, servers in (text.split("_") for text in network.split())]
    rng = random.Random(network)
    gaps = {"0": [rng.expovariate(0.8) for _ in range(REQUESTS)]}
    demands = [[servers * rng.expovariate(1.0) for _ in range(REQUESTS)] for _, servers in stations]
    return [
        (
            each.id_number - 1,
            each.node - 1,
            each.arrival_date,
            demands[each.node - 1][each.id_number - 1],
            each.exit_date,
        )
        for each in served(stations, gaps, demands, {})
    ]


def served(stations, gaps, demands, more):
    """Return Ciw's records of requests that pass stations one after another, those of a request together."""
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

    m, sharing = len(stations), stations[0][0] == "ps"
    next_one = [[float(to == at + 1) for to in range(m)] for at in range(m)]
    given = {
        "arrival_distributions": {name: [Listed(values), *[None] * (m - 1)] for name, values in gaps.items()},
        "service_distributions": {name: [Numbered(values) for values in demands] for name in gaps},
        "number_of_servers": [float("inf") if sharing else servers for _, servers in stations],
        "routing": dict.fromkeys(gaps, next_one),
        "service_disciplines": [
            ciw.disciplines.LIFO if policy == "lcfs" else ciw.disciplines.FIFO for policy, _ in stations
        ],
    }
    given |= more | ({"ps_thresholds": [servers for _, servers in stations]} if sharing else {})
    ciw.seed(1)
    simulation = ciw.Simulation(ciw.create_network(**given), node_class=ciw.PSNode if sharing else ciw.Node)
    simulation.simulate_until_max_time(1e9)
    records = [each for each in simulation.get_all_records() if each.record_type == "service"]
    return sorted(records, key=lambda each: (each.id_number, each.node))


def main():
    """Print the requests of single stations, or of networks."""
    if "--networks" in sys.argv:
        sys.stdout.write("network,request,station,arrival_s,demand_s,departure_s\n")
        rows = ((network, row) for network in NETWORKS for row in pass_through(network))
    else:
        sys.stdout.write("setting,arrival_s,priority,demand_s,departure_s\n")
        rows = ((setting, row) for setting in SETTINGS for row in simulate(setting))
    for name, row in rows:
        sys.stdout.write(f"{name},{','.join(map(str, row))}\n")


if __name__ == "__main__":
    main()
