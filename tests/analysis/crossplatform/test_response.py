"""Waits against textbook formulas, a chain of states solved as linear equations, and a simulated queue."""

from math import factorial

import numpy as np
import pytest

from analysis.crossplatform.response import busy, queueing, stay_s, thread_rates
from models.platforms import PLATFORMS
from models.queues.serve import serve

HT = PLATFORMS["xeon_2h_2c_2p"]


def erlang_c(servers, offered):
    """Probability of waiting in M/M/k."""
    full = offered**servers / factorial(servers) * servers / (servers - offered)
    return full / (sum(offered**n / factorial(n) for n in range(servers)) + full)


def chain(offered, rates, states=400):
    """Mean number of busy servers by solving the balance equations of a truncated chain."""
    k = len(rates)
    up = np.full(states - 1, offered)
    down = np.array([rates[min(n, k) - 1] for n in range(1, states)])
    generator = np.diag(up, 1) + np.diag(down, -1)
    generator -= np.diag(generator.sum(axis=1))
    system = np.vstack([generator.T, np.ones(states)])
    share = np.linalg.lstsq(system, np.append(np.zeros(states), 1.0), rcond=None)[0]
    return share @ np.minimum(np.arange(states), k)


def test_the_published_wait_is_that_of_one_server():
    assert queueing([0.1], [5.0]) == pytest.approx([0.5**2 / 0.5 / 5.0])
    assert queueing(0.1, [0.0, 10.0, 11.0]).tolist() == [0.0, np.inf, np.inf]
    assert queueing([np.nextafter(0.1, 0.0)], [10.0]).tolist() == [np.inf]


@pytest.mark.parametrize("name", ["xeon_1h_1c_1p", "piii", "pd4"])
@pytest.mark.parametrize("load", [0.1, 0.7, 0.95])
def test_equal_processors_make_requests_stay_as_erlang_c_says(name, load):
    platform = PLATFORMS[name]
    rate, offered = 3.0, load * platform.vcpus
    by_hand = offered / rate * (1 + erlang_c(platform.vcpus, offered) / (platform.vcpus - offered))
    assert stay_s(platform, np.array([load / rate]), np.array([rate])) == pytest.approx(by_hand)
    assert busy([offered], np.arange(1.0, platform.vcpus + 1)[None]) == pytest.approx(offered)


@pytest.mark.parametrize("offered", [0.3, 1.0, 1.2])
def test_threads_that_slow_each_other_solve_the_balance_equations(offered):
    rates = np.array([1.0, 1.3])
    assert busy(offered, rates[None])[0] == pytest.approx(chain(offered, rates), rel=1e-6)


def test_nothing_offered_keeps_nothing_busy_and_too_much_has_no_end():
    assert busy([0.0, 2.0, 3.0], np.array([[1.0, 2.0]])).tolist() == [0.0, 2.0, 2.0]
    full = np.array([0.1, np.nextafter(0.1, 0.0), 0.2])
    assert stay_s(PLATFORMS["piii"], full, np.full(3, 10.0)).tolist() == [np.inf] * 3


def test_hundreds_of_processors_do_not_overflow():
    assert busy(np.array([1.0, 250.0]), np.arange(1.0, 257.0)[None]) == pytest.approx([1.0, 250.0])


@pytest.mark.statistical
def test_a_simulated_machine_of_slowed_threads_is_as_busy():
    """60,000 requests at 0.75 of the capacity: the mean is within 4% with probability above 0.999."""
    rng = np.random.default_rng(5)
    rates, rate = np.array([1.0, 1.3]), 0.75 * 1.3
    arrival = np.cumsum(rng.exponential(1.0 / rate, 60_000))
    left = np.sort(serve("ps", arrival, rng.gamma(0.5, 2.0, 60_000), 2, rates=rates).departure_s)
    edges = np.sort(np.concatenate([arrival, left]))
    number = np.searchsorted(arrival, edges, "right") - np.searchsorted(left, edges, "right")
    simulated = (np.minimum(number[:-1], 2) * np.diff(edges)).sum() / edges[-1]
    assert busy(rate, rates[None])[0] == pytest.approx(simulated, rel=0.04)


def test_idle_cores_come_first_then_siblings():
    rates = thread_rates(HT, 0.6)[0]
    assert rates[:4] == pytest.approx([1, 2, 3, 4])
    assert np.diff(rates[3:]) == pytest.approx(np.full(4, 2 / 1.6 - 1))
    assert thread_rates(PLATFORMS["piii"], [0.6, 0.7])[0].tolist() == [1.0, 2.0]
