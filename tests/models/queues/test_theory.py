"""Simulated means against formulas of queueing theory: 24 seeds of 10,000 requests per law.

Every comparison is a two-sided t test over the seeds' means at level 1e-4: a law that holds is called false by one set
of seeds in 10,000. The first and the last tenth of a run are not counted. The first spans more than ten relaxation
times of these queues, 1 / (1 - sqrt(rho))^2 mean demands each, so what is left of starting empty
is below 1e-5 of the mean; the last tenth would not feel the arrivals that are missing after it.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from models.queues.serve import serve

pytestmark = pytest.mark.statistical
SEEDS, REQUESTS, LEVEL = 24, 10_000, 1e-4

DEMANDS = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "uniform": lambda rng, n: rng.uniform(1.0, 2.0, n),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.9, 0.5, 5.5),
}
MOMENTS = {"exponential": (1.0, 2.0), "uniform": (1.5, 7 / 3), "bimodal": (1.0, 0.9 * 0.25 + 0.1 * 30.25)}
"""Mean and mean square of each."""


def agrees(means, expected):
    """Assert that the seeds' means could have this expectation."""
    means = np.asarray(means)
    error = means.std(ddof=1) / np.sqrt(means.size)
    bound = stats.t.ppf(1 - LEVEL / 2, means.size - 1)
    assert error < 0.03 * expected, "the test would see little"
    assert abs(means.mean() - expected) < bound * error, f"{means.mean()} ± {error}, expected {expected}"


def middle(values):
    """The mean without the first and the last tenth."""
    tenth = values.size // 10
    return values[tenth:-tenth].mean()


def responses(policy, utilisation, demand="exponential", servers=1, **extra):
    """Mean response time of each seed; Poisson arrivals."""
    capacity = extra["rates"][-1] if "rates" in extra else sum(extra.get("speeds", [1.0] * servers))
    means = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, REQUESTS])
        arrival_s = np.cumsum(rng.exponential(MOMENTS[demand][0] / (utilisation * capacity), REQUESTS))
        demand_s, choice = DEMANDS[demand](rng, REQUESTS), rng.random(REQUESTS)
        service = serve(policy, arrival_s, demand_s, servers, choice=choice, **extra)
        means.append(middle(service.departure_s - arrival_s))
    return means


def response_in_birth_and_death(arrival_per_s, death_per_s):
    """Mean jobs present over the arrival rate; with n jobs they leave at death_per_s(n) (Kleinrock 1975, 3.1)."""
    weight = np.cumprod([1.0] + [arrival_per_s / death_per_s(n) for n in range(1, 2000)])
    return (weight * np.arange(2000)).sum() / weight.sum() / arrival_per_s


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [1, 2, 8])
def test_the_mean_wait_is_erlangs(policy, servers):
    """M/M/k, utilisation 0.7: Erlang's C over spare capacity (Erlang 1917). PS has the same jobs present."""
    load, factorial = 0.7 * servers, np.cumprod([1.0, *range(1, servers + 1)])
    waiting = load**servers / factorial[servers] / 0.3
    share = waiting / (sum(load**i / factorial[i] for i in range(servers)) + waiting)
    agrees(responses(policy, 0.7, servers=servers), 1.0 + share / (0.3 * servers))


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "random"])
@pytest.mark.parametrize("demand", ["uniform", "bimodal"])
def test_the_mean_wait_is_pollaczeks_and_khinchines_whichever_job_is_next(policy, demand):
    """M/G/1, utilisation 0.7: lambda E[x^2] / (2 (1 - rho)) (Kleinrock 1976, eq. 1.82), if the order ignores demand."""
    mean, square = MOMENTS[demand]
    agrees(responses(policy, 0.7, demand), mean + 0.7 / mean * square / 0.6)


@pytest.mark.parametrize("policy", ["ps", "lcfs_pr"])
@pytest.mark.parametrize("demand", ["uniform", "bimodal"])
def test_the_mean_response_depends_on_the_mean_demand_alone(policy, demand):
    """M/G/1, utilisation 0.7: E[x] / (1 - rho) under both symmetric policies (Kelly 1979, theorem 3.10)."""
    agrees(responses(policy, 0.7, demand), MOMENTS[demand][0] / 0.3)


def test_sharing_among_many_servers_depends_on_the_mean_demand_alone():
    """M/G/3 under PS has the jobs present of M/M/3 (Kelly 1979, theorem 3.10)."""
    expected = 1.5 * response_in_birth_and_death(2.1, lambda n: min(n, 3))
    agrees(responses("ps", 0.7, "uniform", servers=3), expected)


def test_each_class_waits_for_itself_and_those_above_it():
    """M/G/1, two classes, preemptive resume (Kleinrock 1976, eq. 3.39).

    T_j = E[x_j] / (1 - s_(j-1)) + sum_(i<=j) lambda_i E[x_i^2] / 2 / ((1 - s_(j-1)) (1 - s_j)), where s_j is the
    utilisation by the classes up to j. Class 0 is exponential (mean 1) with utilisation 0.3, class 1 is uniform on
    1..2 with 0.4. Two comparisons.
    """
    means = np.empty((SEEDS, 2))
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 1])
        rate = np.array([0.3, 0.4 / 1.5])
        arrival_s = np.cumsum(rng.exponential(1 / rate.sum(), REQUESTS))
        priority = (rng.random(REQUESTS) < rate[1] / rate.sum()).astype(int)
        demand_s = np.where(priority == 0, rng.exponential(1, REQUESTS), rng.uniform(1, 2, REQUESTS))
        response_s = serve("priority", arrival_s, demand_s, 1, priority=priority).departure_s - arrival_s
        means[seed] = [middle(response_s[priority == which]) for which in (0, 1)]
    rest = np.cumsum(rate * [2.0, 7 / 3]) / 2
    agrees(means[:, 0], 1.0 + rest[0] / 0.7)
    agrees(means[:, 1], 1.5 / 0.7 + rest[1] / (0.7 * 0.3))


def density(demand, x):
    return np.exp(-x) if demand == "exponential" else float(1.0 <= x <= 2.0)


def below(demand, power, x):
    """E[X^power; X <= x]."""
    if demand == "exponential":
        return {0: -np.expm1(-x), 1: 1 - np.exp(-x) * (1 + x), 2: 2 - np.exp(-x) * (2 + 2 * x + x * x)}[power]
    return (np.clip(x, 1.0, 2.0) ** (power + 1) - 1.0) / (power + 1)


def mean_over(demand, response):
    """The mean of a response time that depends on the demand."""
    low, high = (0.0, 50.0) if demand == "exponential" else (1.0, 2.0)
    return quad(lambda x: response(x) * density(demand, x), low, high)[0]


@pytest.mark.parametrize("demand", ["exponential", "uniform"])
def test_the_least_remaining_work_first_is_as_fast_as_schrage_and_miller_say(demand):
    """M/G/1 SRPT, utilisation 0.8 (Schrage and Miller 1966): the wait by quadrature plus the stretched service.

    E[T(x)] = lambda / 2 (E[X^2; X <= x] + x^2 P(X > x)) / (1 - rho(x))^2 + int_0^x dt / (1 - rho(t)).
    """
    rate = 0.8 / MOMENTS[demand][0]

    def response(x):
        square = below(demand, 2, x) + x * x * (1 - below(demand, 0, x))
        inside = quad(lambda t: 1 / (1 - rate * below(demand, 1, t)), 0, x, limit=200)[0]
        return rate / 2 * square / (1 - rate * below(demand, 1, x)) ** 2 + inside

    agrees(responses("srpt", 0.8, demand), mean_over(demand, response))


@pytest.mark.parametrize("demand", ["exponential", "uniform"])
def test_the_shortest_job_first_is_as_fast_as_phipps_says(demand):
    """M/G/1 SJF, not preemptive, utilisation 0.8 (Phipps 1956): E[W(x)] = lambda E[X^2] / 2 / (1 - rho(x))^2."""
    mean, square = MOMENTS[demand]
    rate = 0.8 / mean
    wait = mean_over(demand, lambda x: rate * square / 2 / (1 - rate * below(demand, 1, x)) ** 2)
    agrees(responses("sjf", 0.8, demand), mean + wait)


@pytest.mark.parametrize("demand", ["exponential", "uniform"])
def test_the_least_attained_service_first_is_as_fast_as_kleinrock_says(demand):
    """M/G/1 FB, utilisation 0.7 (Kleinrock 1976, eq. 4.27), demands cut at x: rho_x = lambda E[min(X, x)].

    E[T(x)] = lambda E[min(X, x)^2] / 2 / (1 - rho_x)^2 + x / (1 - rho_x).
    """
    rate = 0.7 / MOMENTS[demand][0]

    def response(x):
        first, second = (below(demand, i, x) + x**i * (1 - below(demand, 0, x)) for i in (1, 2))
        return rate * second / 2 / (1 - rate * first) ** 2 + x / (1 - rate * first)

    agrees(responses("fb", 0.7, demand), mean_over(demand, response))


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
def test_hyper_threads_make_a_birth_and_death_chain(policy):
    """M/M/4 whose four threads do the work of three cores: the jobs present are a birth and death chain."""
    rates = [1.0, 2.0, 2.6, 3.0]
    expected = response_in_birth_and_death(2.1, lambda n: rates[min(n, 4) - 1])
    agrees(responses(policy, 0.7, servers=4, rates=rates), expected)


def test_a_fast_and_a_slow_core_make_the_chain_of_gumbel():
    """M/M/2 under FCFS, speeds 1.5 and 0.5, the fast core first (Gumbel 1960): with one job present it matters which.

    States 0, fast alone, slow alone, 2, 3, ...; from 2 on the tail is geometric with ratio lambda / 2.
    """
    rate, fast, slow = 1.4, 1.5, 0.5
    balance = np.array(
        [[-rate, fast, slow, 0.0], [rate, -rate - fast, 0.0, slow], [0.0, 0.0, -rate - slow, fast], [1, 1, 1, 1 / 0.3]]
    )
    chance = np.linalg.solve(balance, [0.0, 0.0, 0.0, 1.0])
    jobs = chance[1] + chance[2] + chance[3] * (2 / 0.3 + 0.7 / 0.09)
    agrees(responses("fcfs", 0.7, servers=2, speeds=[slow, fast]), jobs / rate)


def mean_value_analysis(clients, think_s, servers):
    """Response time of a closed station of mean demand 1 (Reiser and Lavenberg 1980, load-dependent recursion)."""
    chance = np.array([1.0])
    for n in range(1, clients + 1):
        speed = np.minimum(np.arange(1, n + 1), servers)
        response_s = (np.arange(1, n + 1) / speed * chance).sum()
        throughput = n / (think_s + response_s)
        present = throughput * chance / speed
        chance = np.concatenate([[1 - present.sum()], present])
    return response_s


@pytest.mark.parametrize("policy", ["fcfs", "ps", "lcfs_pr"])
@pytest.mark.parametrize("servers", [1, 3])
def test_clients_who_think_see_what_mean_value_analysis_says(policy, servers):
    """12 clients, mean think time 12 / servers s, exponential: utilisation about 0.8."""
    clients, think_s, means = 12, 12 / servers, []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 2])
        after = np.arange(REQUESTS) - clients
        after[:clients] = -1
        arrival_s = np.full(REQUESTS, np.nan)
        arrival_s[:clients] = np.sort(rng.exponential(think_s, clients))
        extra = {"after": after, "think_s": rng.exponential(think_s, REQUESTS)}
        service = serve(policy, arrival_s, rng.exponential(1, REQUESTS), servers, **extra)
        means.append(middle(service.departure_s - service.arrival_s))
    agrees(means, mean_value_analysis(clients, think_s, servers))


def test_round_robin_becomes_sharing_as_the_quantum_shrinks():
    """No chance beyond the workload: departures come nearer by a factor of about ten with a tenth of the quantum."""
    rng = np.random.default_rng(8)
    arrival_s, demand_s = np.cumsum(rng.exponential(0.72, 2000)), rng.uniform(1, 2, 2000)
    shared = serve("ps", arrival_s, demand_s, 3).departure_s
    quanta = (0.3, 0.03, 0.003)
    gaps = [np.abs(serve("rr", arrival_s, demand_s, 3, quantum_s=q).departure_s - shared).mean() for q in quanta]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]
    assert gaps[2] < 0.01
