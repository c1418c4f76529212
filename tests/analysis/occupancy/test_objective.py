"""Percentiles with bands, loads that are scaled, and what an objective needs, beside theory and brute force."""

import math

import numpy as np
import pytest

from analysis.occupancy.load import recorded
from analysis.occupancy.objective import Objective, ReplayStation
from analysis.occupancy.percentiles import Percentile, percentiles
from models.queues.serve import serve


def mm1(seed=0, requests=40_000, load=0.5):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.exponential(1 / load, requests)), rng.exponential(1.0, requests)


def station(arrival, demand, policy="fcfs"):
    response = serve(policy, arrival, demand, 1).departure_s - arrival
    return ReplayStation(recorded(arrival, demand, response), policy)


def test_percentiles_of_one_server_are_those_of_theory():
    """M/M/1 under FCFS: response is exponential with rate μ − λ, and waits at all with probability ρ."""
    own = station(*mm1())
    for at in own.percentiles([0.5, 0.9, 0.99], 1):
        assert at.low_s < -math.log(1 - at.level) / 0.5 < at.high_s
    _, waiting = own.response_and_waiting([0.4, 0.9], 1)
    assert waiting[0].value_s == 0.0
    assert waiting[0].low_s == 0.0 <= waiting[0].high_s < 0.1
    assert waiting[1].low_s < -math.log((1 - 0.9) / 0.5) / 0.5 < waiting[1].high_s


def test_the_largest_load_and_the_fewest_servers_are_those_of_theory():
    """p99 of M/M/1 at load ρ is ln(100)/(1 − ρ); 12 allow ρ = 0.616; the load was 0.5."""
    own = station(*mm1(0, 30_000))
    largest = own.largest(Objective(0.99, 12.0), 1)
    assert largest.load * 0.5 == pytest.approx(1 - math.log(100) / 12, abs=0.03)
    assert 0 < largest.surely < largest.load
    fewest = own.fewest(Objective(0.99, 7.0))
    assert fewest.servers == 2
    assert fewest.surely in {2, 3}
    assert own.fewest(Objective(0.99, 2.0)).servers is None  # one request in a hundred needs more than 4.6 alone
    assert own.largest(Objective(0.99, 2.0), 1).load == 0.0


def test_something_is_sure_of_a_log_however_long(monkeypatch):
    """Of a log that is longer than all requests that may be drawn a few days are drawn, with a wider band."""
    own = station(*mm1(3, 6_000))
    (short,) = own.percentiles([0.99], 1)
    monkeypatch.setattr("analysis.occupancy.objective._MOST_DRAWN", 1_000)
    (long,) = own.percentiles([0.99], 1)
    assert short.value_s == long.value_s
    assert long.low_s < long.value_s < long.high_s
    assert own.fewest(Objective(0.99, 1_000.0)).surely == 1
    assert 0 < own.largest(Objective(0.99, 20.0), 1).surely < own.largest(Objective(0.99, 20.0), 1).load


@pytest.mark.parametrize(
    ("seed", "requests", "level", "bound_s"),
    [(4, 3_000, 0.99, 14.0), (4, 3_000, 0.99, 20.0), (3, 3_000, 0.99, 16.0), (5, 1_500, 0.9, 6.0)],
)
def test_servers_that_surely_suffice_carry_the_load_surely(seed, requests, level, bound_s):
    """In the third case the percentile's bracket alone forbids the load, in the last one the loads' bracket."""
    own = station(*mm1(seed, requests))
    objective = Objective(level, bound_s)
    assert (own.fewest(objective).surely == 1) == (own.largest(objective, 1).surely >= 1)


def test_a_larger_load_has_all_requests_of_a_smaller_one_and_the_share_that_was_asked_for():
    arrival, demand = mm1(1, 20_000)
    load = recorded(arrival, demand, demand)
    before = set()
    for factor in (0.3, 0.7, 1.0, 1.3, 2.6):
        times, _, _ = load.scaled(factor)
        assert len(times) == pytest.approx(factor * len(arrival), rel=0.02)
        assert before <= set(times.tolist())
        before = set(times.tolist())
    assert np.array_equal(load.scaled(1.0)[0], arrival)


@pytest.mark.parametrize("factor", [0.5, 1.3, 2.0])
def test_bursts_stay_bursts(factor):
    """Variance over mean of counts per second stays that of batches of eight; a Poisson process has 1."""
    rng = np.random.default_rng(2)
    arrival = np.sort(np.repeat(rng.uniform(0, 4_000, 4_000), 8) + rng.uniform(0, 0.01, 32_000))
    times, _, _ = recorded(arrival, np.ones(32_000), np.ones(32_000)).scaled(factor)
    counts = np.bincount(np.floor(times - times.min()).astype(int))[100:3_900]
    assert counts.var() / counts.mean() == pytest.approx(8.0, rel=0.2)


def test_another_day_has_as_much_load_and_the_spread_of_independent_bursts():
    arrival, demand = mm1(5, 10_000)
    load, rng = recorded(arrival, demand, demand), np.random.default_rng(0)
    days = [load.another_day(1.3, rng) for _ in range(60)]
    counts, work = np.array([len(day[0]) for day in days]), np.array([day[1].sum() for day in days])
    assert counts.mean() == pytest.approx(13_000, rel=0.01)
    assert work.std() == pytest.approx(math.sqrt(1.3 * (demand**2).sum()), rel=0.35)
    assert all((np.diff(day[0]) >= 0).all() for day in days)


def test_another_day_is_no_burstier_than_the_recorded_one():
    """Variance over mean of counts is 1 in a Poisson process; the crowds of the recorded day once more would make 2."""
    arrival, demand = mm1(6, 20_000)
    load, rng = recorded(arrival, demand, demand), np.random.default_rng(0)
    ratios = []
    for _ in range(10):
        counts = np.histogram(load.another_day(1.0, rng)[0], 100, (arrival[0], arrival[-1]))[0]
        ratios.append(counts.var() / counts.mean())
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)


def test_another_day_keeps_the_rush_and_its_heavier_requests():
    rng = np.random.default_rng(3)
    arrival = np.sort(np.concatenate((rng.uniform(0, 1_000, 5_000), rng.uniform(600, 650, 1_000))))
    demand = np.where((arrival > 600) & (arrival < 650), 3.0, 1.0) * rng.exponential(1.0, 6_000)
    times, demands, _ = recorded(arrival, demand, demand).another_day(1.0, rng)
    inside = (times > 600) & (times < 650)
    assert np.count_nonzero(inside) == pytest.approx(1_250, rel=0.12)
    assert demands[inside].mean() == pytest.approx(3.0, rel=0.15)
    assert demands[~inside].mean() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("requests", [0, 1, 2, 3])
def test_another_day_of_hardly_any_requests_is_one(requests):
    times = np.arange(requests) * 10.0
    load = recorded(times, np.ones(requests), np.ones(requests))
    drawn, demand, _ = load.another_day(1.3, np.random.default_rng(0))
    assert len(drawn) == len(demand)
    assert ((drawn >= 0) & (drawn <= 40)).all()


def test_days_in_which_fewer_wait_differ_although_the_percentile_is_no_waiting():
    """40% wait, so the median is 0; another day in which more than half wait lies in its band."""
    own = station(*mm1(4, 4_000, 0.48))
    _, (median, ninety) = own.response_and_waiting([0.5, 0.9], 1)
    assert median.low_s == 0.0
    assert 0.0 < median.high_s < ninety.low_s


@pytest.mark.statistical
def test_bands_hold_the_percentile_of_another_day():
    """60 pairs of days of M/M/1 at 70%; 95% bands hold at least 88% (a true 95% falls below in 1 of 80 cases)."""
    held = 0
    for seed in range(60):
        (band,) = station(*mm1(seed, 4_000, 0.7)).percentiles([0.95], 1, days=20)
        arrival, demand = mm1(1_000 + seed, 4_000, 0.7)
        other = np.quantile(serve("fcfs", arrival, demand, 1).departure_s - arrival, 0.95)
        held += band.low_s <= other <= band.high_s
    assert held >= 53


def test_a_percentile_beyond_which_few_lie_has_no_band():
    arrival, demand = mm1(0, 2_000)
    p50, p999 = percentiles(demand, arrival, [0.5, 0.999])
    assert p50.low_s < p50.value_s < p50.high_s
    assert (math.isnan(p999.low_s), p999.name) == (True, "p99.9")
    assert math.isnan(percentiles(demand[:20], arrival[:20], [0.5])[0].high_s)
    assert math.isnan(percentiles(np.empty(0), np.empty(0), [0.5])[0].value_s)


def test_long_times_are_written_without_powers_of_ten():
    assert str(Percentile(0.99, 12_345.6, 1_183.0, 999.96)) == "12,346 s (1,180 to 1,000)"
    assert str(Percentile(0.5, 0.0123, 0.01, 12.0)) == "0.0123 s (0.01 to 12)"


@pytest.mark.parametrize("text", ["p99", "p0=1s", "p100=1s", "99=1s", "p99=-1s", "p99=1furlong", "p99=", "pxx=1s"])
def test_an_objective_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="should be a percentile and a time, such as p99=300ms"):
        Objective.parse(text)


def test_an_objective_reads_as_it_is_written():
    assert Objective.parse(" p95 = 250 ms") == Objective(0.95, 0.25)
    assert Objective.parse("p99.9=2").name == "p99.9 ≤ 2 s"


def test_loads_that_say_nothing_are_refused():
    load = recorded(*mm1(0, 100), np.ones(100))
    for factor in (0.0, -1.0, 65.0):
        with pytest.raises(ValueError, match="load should be above 0 and at most 64 times"):
            load.scaled(factor)
