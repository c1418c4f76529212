"""Networks of stations against theory, and what is refused.

Comparisons with theory are two-sided tests by Student's t of the mean of 12 seeds at level 1e-4 each: one set of seeds
in 10,000 would call a formula that holds false.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from models.queues import closed
from models.queues.mean_values import mean_values
from models.queues.network import NetworkQueue, serve_network

CIW = pd.read_csv(Path(__file__).parents[2] / "helpers" / "ciw_networks.csv")
LEAST_RATIO = 5.7  # of t with 11 degrees of freedom at level 1e-4


def agree(measured, expected):
    error = np.std(measured, axis=0, ddof=1) / math.sqrt(len(measured))
    assert (error < 0.02 * np.asarray(expected)).all(), "the test would see little"
    assert (abs(np.mean(measured, axis=0) - expected) < LEAST_RATIO * error).all(), (np.mean(measured, axis=0), error)


def poisson(stations, per_s, per_server_s, n=100_000):
    """Stamps of Poisson arrivals with exponential demands, seed by seed, and the requests but the first tenth."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        arrival_s = np.cumsum(rng.exponential(1.0 / per_s, n))
        demand_s = np.array([rng.exponential(1.0 / rate, n) for rate in per_server_s])
        yield serve_network(stations, arrival_s, demand_s), slice(n // 10, None)


def erlang_c(servers, load):
    """The chance that all servers are busy (Erlang 1917)."""
    terms = [load**i / math.factorial(i) for i in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def line(*servers, policy="fcfs"):
    """Stations one after another."""
    return [NetworkQueue(policy, k, (i - 1,) if i else ()) for i, k in enumerate(servers)]


@pytest.mark.statistical
def test_stations_in_a_row_wait_as_if_each_stood_alone():
    """M/M/1, M/M/3 and M/M/2 in a row: departures are Poisson (Burke 1956), so each wait is by Erlang's C."""
    servers, per_server_s, per_s = (1, 3, 2), (1.6, 0.5, 0.9), 1.0
    waits = [
        erlang_c(k, per_s / rate) / (k * rate - per_s) for k, rate in zip(servers, per_server_s, strict=True)
    ]  # fmt: skip
    measured, whole_s = [], []
    for stamps, settled in poisson(line(*servers), per_s, per_server_s):
        measured.append((stamps.start_s - stamps.arrival_s)[:, settled].mean(axis=1))
        whole_s.append((stamps.end_s - stamps.arrival_s[0])[settled].mean())
    agree(measured, waits)
    agree(whole_s, sum(waits) + sum(1 / rate for rate in per_server_s))


@pytest.mark.statistical
def test_numbers_at_two_stations_are_independent_at_one_moment():
    """Product form (Jackson 1957): both of two M/M/1 in a row are empty in (1 - 0.6)(1 - 0.5) of the time."""
    empty = []
    for stamps, _ in poisson(line(1, 1), 0.6, (1.0, 1.2)):
        at_s = np.linspace(0.1, 0.99, 200_000) * stamps.arrival_s[0, -1]
        here = [
            np.searchsorted(came, at_s) - np.searchsorted(np.sort(left), at_s)
            for came, left in zip(np.sort(stamps.arrival_s), stamps.departure_s, strict=True)
        ]
        empty.append([(here[0] == 0).mean(), ((here[0] == 0) & (here[1] == 0)).mean()])
    agree(empty, [0.4, 0.4 * 0.5])


@pytest.mark.statistical
def test_times_through_two_stations_are_the_sum_of_exponentials():
    """Sojourns at M/M/1 in a row are independent exponentials of mu - lambda (Reich 1957): shares beyond times."""
    fast, slow = 1.5 - 0.7, 1.1 - 0.7
    times = np.array([2.0, 6.0, 9.0])
    beyond = (fast * np.exp(-slow * times) - slow * np.exp(-fast * times)) / (fast - slow)
    shares = []
    for stamps, settled in poisson(line(1, 1), 0.7, (1.5, 1.1)):
        whole_s = (stamps.end_s - stamps.arrival_s[0])[settled]
        shares.append([(whole_s > time_s).mean() for time_s in times])
    agree(shares, beyond)


@pytest.mark.statistical
@pytest.mark.parametrize("per_s", [0.3, 0.6])
def test_a_fork_over_two_stations_is_joined_as_nelson_and_tantawi_say(per_s):
    """R = (12 - rho) / 8 / (mu - lambda) at two M/M/1 with the same arrivals (Nelson and Tantawi 1988)."""
    measured = [
        (stamps.end_s - stamps.arrival_s[0])[settled].mean()
        for stamps, settled in poisson([NetworkQueue("fcfs", 1)] * 2, per_s, (1.0, 1.0))
    ]
    agree(measured, (12 - per_s) / 8 / (1.0 - per_s))


@pytest.mark.statistical
@pytest.mark.parametrize("needs", [1, 3, 5])
def test_the_first_of_several_branches_without_queues_are_order_statistics(needs):
    """With servers for everybody the needs-th of five exponentials of mean 1 takes 1/5 + 1/4 + ... in the mean."""
    stations = [*[NetworkQueue("fcfs", 60)] * 5, NetworkQueue("fcfs", 1, tuple(range(5)), needs)]
    measured = []
    for stamps, settled in poisson(stations, 1.0, (1.0,) * 5 + (np.inf,), n=5_000):
        measured.append((stamps.end_s - stamps.arrival_s[0])[settled].mean())
    agree(measured, sum(1 / (5 - i) for i in range(needs)))


@pytest.mark.parametrize("network", CIW["network"].unique())
def test_every_request_leaves_every_station_when_ciw_says(network):
    """Ciw shares nothing with us; `tests/helpers/ciw_departures.py` made the stamps."""
    kinds = [station.split("_") for station in network.split()]
    stations = [NetworkQueue(policy, int(k), (i - 1,) if i else ()) for i, (policy, k) in enumerate(kinds)]
    stamps = CIW[CIW["network"] == network].drop(columns="network").pivot_table(index="station", columns="request")
    came, demand, left = (stamps[name].to_numpy() for name in ("arrival_s", "demand_s", "departure_s"))
    served = serve_network(stations, came[0], demand)
    assert (came[0] < left[0] - 1.01 * demand[0]).mean() > 0.3, "hardly anybody waits"
    np.testing.assert_allclose(served.arrival_s, came, rtol=0, atol=1e-9)
    np.testing.assert_allclose(served.departure_s, left, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("stations", "problem"),
    [
        ([], "at least one"),
        ([NetworkQueue("ps", 1, (0,))], r"stations\[0\] comes after 0, which is not before it"),
        ([*line(1), NetworkQueue("ps", 1, (0, 0))], "after the same station twice"),
        ([*line(1), NetworkQueue("ps", 1, (0,), 2)], "needs 2 of the 1"),
        (line(1, 1), r"demand_s has shape \(1, 2\), must be \(2, 2\)"),
        (line(0), "servers is 0"),
    ],
)
def test_a_network_that_cannot_be_served_is_refused(stations, problem):
    with pytest.raises(ValueError, match=problem):
        serve_network(stations, [0.0, 1.0], [[1.0, 1.0]])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stations": line(0)}, r"stations\[0\]: servers and quantum_s must be positive"),
        ({"stations": [NetworkQueue("rr", 1, quantum_s=0.0)]}, "quantum_s must be positive"),
        ({"stations": line(1, policy="priority")}, "must be one that needs no classes"),
        ({"stations": line(1, policy="random")}, "policy random needs choice"),
        ({"demand_s": [[1.0, -1.0]]}, r"demand_s\[1\] is -1.0"),
        ({"demand_s": [[1.0]]}, r"demand_s has shape \(1, 1\), must be \(1, 2\)"),
        ({"after": [-1, 1]}, r"after\[1\] is 1"),
        ({"think_s": [0.0, -1.0]}, r"think_s\[1\] is -1.0"),
    ],
)
def test_clients_that_cannot_be_served_are_refused(changes, problem):
    world = {"stations": line(1), "arrival_s": [0.0, np.nan], "demand_s": [[1.0, 1.0]], "after": [-1, 0], **changes}
    with pytest.raises(ValueError, match=problem):
        serve_network(**world)


def test_in_whatever_order_demands_are_stored_one_machine_code_serves_them():
    """To compile it takes ten seconds."""
    demand_s = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]])
    for order in ("C", "F"):
        stamps = serve_network(line(1, 1), [0.0, 0.0, np.nan], demand_s.copy(order), after=[-1, -1, 0])
        assert stamps.end_s.tolist() == [1.5, 3.5, 6.5]
    assert len({str(arguments[2]) for arguments in closed.run.overloads}) == 1


@pytest.mark.parametrize(("threads", "policy"), [(3, "fcfs"), (10_000, "ps")])
def test_as_many_threads_as_servers_are_first_come_first_served_and_one_for_everybody_is_sharing(threads, policy):
    rng = np.random.default_rng(5)
    arrival_s, demand_s = np.cumsum(rng.exponential(0.4, 2_000)), rng.pareto(1.5, (1, 2_000))
    pool = serve_network([NetworkQueue("ps", 3, threads=threads)], arrival_s, demand_s)
    plain = serve_network([NetworkQueue(policy, 3)], arrival_s, demand_s)
    for name in ("start_s", "departure_s"):
        np.testing.assert_allclose(getattr(pool, name), getattr(plain, name), rtol=0, atol=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("stations", "needs_s", "clients", "think_s"),
    [
        ([NetworkQueue("ps", 2, threads=3), NetworkQueue("fcfs", 1, (0,)), NetworkQueue("fcfs", 30, (1,))],
         (0.5, 0.3, 1.0), 20, 3.0),
        ([NetworkQueue("rr", 1), NetworkQueue("fb", 2, (0,)), NetworkQueue("lcfs_pr", 1, (1,))],
         (0.2, 0.5, 0.2), 12, 2.0),
        ([NetworkQueue("fcfs", 3)], (1.0,), 8, 2.0),
    ],
)  # fmt: skip
def test_clients_that_think_are_as_in_mean_value_analysis(stations, needs_s, clients, think_s):
    """With exponential demands whoever is served: throughput, and time at each station, in the long run."""
    theory, n, measured = mean_values(needs_s, [row.servers for row in stations], clients, think_s), 10_000, []
    after = np.where(np.arange(n) < clients, -1, np.arange(n) - clients)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        came_s = np.where(after < 0, np.sort(rng.exponential(think_s, n)[:clients], kind="stable").max(), np.nan)
        demand_s = np.array([rng.exponential(need_s, n) for need_s in needs_s])
        stamps = serve_network(stations, came_s, demand_s, after=after, think_s=rng.gamma(0.5, 2 * think_s, n))
        from_s, to_s = 0.1 * stamps.end_s.max(), 0.8 * stamps.end_s.max()
        settled = (from_s < stamps.end_s) & (stamps.end_s < to_s)
        times_s = (stamps.departure_s - stamps.arrival_s)[:, settled].mean(axis=1)
        measured.append([settled.sum() / (to_s - from_s), *times_s])
    agree(measured, [theory.per_s, *theory.response_s])


@pytest.mark.statistical
def test_clients_that_share_servers_need_no_exponential_demands():
    """Processor sharing and servers for everybody depend on mean demands alone; first come first served does not."""
    needs_s, clients, think_s, n, measured = (0.4, 1.0), 6, 1.0, 10_000, []
    theory = mean_values(needs_s, [1, 6], clients, think_s)
    after = np.where(np.arange(n) < clients, -1, np.arange(n) - clients)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        demand_s = np.array([rng.gamma(0.25, 4 * needs_s[0], n), np.full(n, needs_s[1])])
        think = rng.exponential(think_s, n)
        rows = []
        for policy in ("ps", "fcfs"):
            stations = [NetworkQueue(policy, 1), NetworkQueue("fcfs", 6, (0,))]
            stamps = serve_network(stations, np.where(after < 0, 0.0, np.nan), demand_s, after=after, think_s=think)
            settled = slice(n // 10, -n // 10)
            rows.append((stamps.departure_s - stamps.arrival_s)[0, settled].mean())
        measured.append(rows)
    shared, in_turn = np.transpose(measured)
    agree(shared, theory.response_s[0])
    assert in_turn.min() > 1.1 * theory.response_s[0]


@pytest.mark.statistical
def test_who_waits_for_a_thread_is_as_in_birth_and_death():
    """M/M/2 at a load of 1.5 with 4 threads: present as in M/M/2, since exponential work left does not tell who is in.

    With p the chance that both servers are busy and r = 0.75, a request in the mean finds p r^3 / (1 - r) beyond four.
    """
    busy, ratio = erlang_c(2, 1.5), 0.75
    line_s, whole_s = [], []
    for stamps, settled in poisson([NetworkQueue("ps", 2, threads=4)], 1.5, (1.0,), n=200_000):
        line_s.append((stamps.start_s - stamps.arrival_s[0])[0, settled].mean())
        whole_s.append((stamps.end_s - stamps.arrival_s[0])[settled].mean())
    agree(line_s, busy * ratio**3 / (1 - ratio) / 1.5)
    agree(whole_s, 1.0 + busy / (2 - 1.5))
