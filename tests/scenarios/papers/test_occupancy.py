"""The operational laws' figures and tables: worlds with their finding, and worlds without it."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import number, numbers, printed
from analysis.figures.occupancy import accuracy, capacity, staircases
from models.queues.serve import serve
from scenarios.papers.rows import published
from tests.helpers.reproduce_worlds import failing

PAPER2 = printed(published("occupancy/table2"))


def load(demand_s=None, minutes=90, rate=0.28, burst=2.2, seed=1):
    """Requests that one server can do in the long run, in bursts that it cannot, and their demands."""
    rng = np.random.default_rng(seed)
    horizon = 60.0 * minutes
    arrival = np.sort(rng.uniform(0, horizon, rng.poisson(burst * rate * horizon)))
    in_burst = arrival % 1200 < 120
    arrival = arrival[rng.uniform(size=arrival.size) < np.where(in_burst, 1, 1 / burst)]
    return arrival, rng.uniform(1, 2, arrival.size) if demand_s is None else np.full(arrival.size, demand_s)


def served(policy, arrival, demand, servers=(1, 2, 3, 4), **how):
    parts = []
    for k in servers:
        departure = serve(policy, arrival, demand, k, **how).departure_s
        parts.append(pd.DataFrame({"servers": k, "arrival_s": arrival, "departure_s": departure, "demand_s": demand}))
    return pd.concat(parts, ignore_index=True)


ARRIVAL, DEMAND = load()
SLICED = served("rr", ARRIVAL, DEMAND, quantum_s=0.1)
SHORTEST = served("fcfs", *load(demand_s=1.5))


def test_fig2_comes_out_as_drawn():
    assert failing("occupancy/fig2", staircases.measure_fig2()) == []


def test_fig2_fails_for_longer_jobs():
    assert failing("occupancy/fig2", staircases.measure_fig2(1.1)) == ["agreement"]


def on_two_servers():
    made = serve("fcfs", ARRIVAL, DEMAND, 2)
    stamps = {"arrival_s": ARRIVAL, "start_s": made.start_s, "departure_s": made.departure_s}
    return pd.DataFrame({**stamps, "demand_s": DEMAND})


def test_fig3_holds_on_a_work_conserving_server():
    assert failing("occupancy/fig3", staircases.measure_fig3(on_two_servers(), 2)) == []


def test_fig3_fails_where_requests_wait_for_a_disk():
    blocked = on_two_servers().assign(departure_s=lambda table: table["departure_s"] + 0.1)
    failed = failing("occupancy/fig3", staircases.measure_fig3(blocked, 2))
    assert {"service_error", "queueing_error"} <= set(failed)


def test_fig3_fails_in_its_intervals_where_a_server_idles_while_requests_wait():
    idling = on_two_servers()
    late = idling.assign(start_s=idling["start_s"] + 0.3, departure_s=idling["departure_s"] + 0.3)
    assert "interval_error" in failing("occupancy/fig3", staircases.measure_fig3(late, 2))


def test_fig4_holds_where_queues_are_long():
    assert failing("occupancy/fig4", staircases.measure_fig4(served("ps", *load(rate=0.8)), 2, 4)) == []


def test_fig4_fails_where_the_queue_is_no_longer_than_the_servers_added():
    short = served("fcfs", np.zeros(4), np.ones(4))
    assert failing("occupancy/fig4", staircases.measure_fig4(short, 2, 4)) == ["excess"]


def test_fig5_holds_under_processor_sharing():
    assert failing("occupancy/fig5", staircases.measure_fig5(served("ps", ARRIVAL, DEMAND))) == []


def test_fig5_fails_where_a_further_server_does_harm():
    harmed = served("sjf", np.array([0.0, 0, 0, 0, 1]), np.array([1.0, 1, 4, 4, 1]), servers=(1, 2))
    assert failing("occupancy/fig5", staircases.measure_fig5(harmed)) == ["rise_max", "slack_min"]


def utilisation(error=0.0, low=0.05, exact=1e-12, tail=0.05):
    counted = np.linspace(low, 0.995, 60)
    columns = {
        "start_s": 60.0 * np.arange(60),
        "counted": counted,
        "law": counted + error,
        "raw": abs(error),
        "jobs": 1.0,
        "fewest": 0.0,
        "most": 2.0,
    }
    near = pd.DataFrame(columns).assign(normalised=lambda table: table["raw"] / table["counted"])
    short = near.assign(normalised=near["normalised"] + np.where(np.arange(60) % 10 == 0, tail, 0.0))
    return accuracy.measure_fig6(near, short, near.assign(raw=exact), near)


def test_fig6_holds_where_both_agree():
    assert failing("occupancy/fig6", utilisation(0.001)) == []


@pytest.mark.parametrize(
    ("counter", "failed"),
    [
        ({"error": 0.03}, "raw_error_p97"),
        ({"error": 0.03}, "live_raw_error_median"),
        ({"low": 0.3}, "utilisation_low"),
        ({"exact": 1e-6}, "exact_error"),
        ({"tail": 0.0}, "normalised_error_p97_short"),
        ({"tail": 0.2}, "normalised_error_p97_short"),
    ],
)
def test_fig6_fails_where_they_do_not(counter, failed):
    assert failed in failing("occupancy/fig6", utilisation(**counter))


def test_the_servers_own_record_by_hand():
    served = pd.DataFrame({"start_s": [0.0, 2.0, 2.0], "departure_s": [2.0, 5.0, 4.0]})
    record = accuracy.in_service(served, 2, [0.0, 2.0, 3.0, 6.0])
    np.testing.assert_allclose(record["utilisation"], [2 / 4, 2 / 2, 3 / 6])


def test_fig6_errors_by_hand():
    requests = pd.DataFrame({"arrival_s": [0.0, 0.0], "departure_s": [1.0, 2.0]})
    cpu = pd.DataFrame({"start_s": [0.0, 1.0], "end_s": [1.0, 2.0], "utilisation": [1.0, 0.4]})
    made = accuracy.beside(requests, cpu, servers=2)
    np.testing.assert_allclose(made["law"], [1.0, 0.5])
    np.testing.assert_allclose(made["normalised"], [0.0, 0.25])


def test_utilisation_beside_the_counter_is_that_of_a_slow_count_in_windows_of_any_length():
    rng = np.random.default_rng(3)
    arrival, edges = np.sort(rng.uniform(0, 50, 60)), np.concatenate(([0.0], np.sort(rng.uniform(0, 60, 9)), [60.0]))
    departure = arrival + rng.exponential(3.0, 60)
    cpu = pd.DataFrame({"start_s": edges[:-1], "end_s": edges[1:], "utilisation": 0.5})
    seen = accuracy.beside(pd.DataFrame({"arrival_s": arrival, "departure_s": departure}), cpu, servers=2)
    for row in seen.itertuples():
        moments = np.unique(np.clip(np.concatenate((arrival, departure, edges)), row.start_s, row.end_s))
        present = [((arrival <= t) & (departure > t)).sum() for t in moments[:-1]]
        length_s = row.end_s - row.start_s
        assert row.law == pytest.approx((np.minimum(present, 2) * np.diff(moments)).sum() / (2 * length_s), rel=1e-12)
        assert row.jobs == pytest.approx((present * np.diff(moments)).sum() / length_s, rel=1e-12)


def test_table1_holds_where_one_server_is_briefly_overloaded():
    assert failing("occupancy/table1", capacity.measure_table1(SLICED, DEMAND.sum())) == []


def test_table1_fails_where_nothing_queues():
    idle = served("rr", np.arange(20.0) * 10, np.ones(20))
    assert failing("occupancy/table1", capacity.measure_table1(idle, 20.0))[:1] == ["queueing_ratio_12"]


def test_table1_fails_where_requests_are_other_ones():
    other = SLICED.assign(departure_s=SLICED["departure_s"] + 0.2 * (SLICED["servers"] == 3))
    assert "service_spread" in failing("occupancy/table1", capacity.measure_table1(other, DEMAND.sum()))


def test_table2_comes_out_of_the_printed_table1():
    assert failing("occupancy/table2", capacity.measure_table2(PAPER2)) == []


def test_table2_fails_for_another_table1():
    changed = PAPER2.assign(value=PAPER2["value"].replace(5431.77, 5431.97))
    assert failing("occupancy/table2", capacity.measure_table2(changed)) == ["agreement"]


def test_table2_is_what_replays_show():
    """The change by response times less service demands, which the areas never see."""
    made = capacity.measure_table2(capacity.measure_table1(SLICED, DEMAND.sum()))
    queueing = (SLICED["departure_s"] - SLICED["arrival_s"] - SLICED["demand_s"]).groupby(SLICED["servers"]).sum()
    np.testing.assert_allclose(number(made, "change_k1", 3), queueing[3] - queueing[1])
    np.testing.assert_allclose(number(made, "change_k4", 2), queueing[2] - queueing[4])


def test_load_holds_where_the_rate_swings():
    assert failing("occupancy/load", capacity.measure_load(SLICED[SLICED["servers"] == 4])) == []


def test_load_fails_where_it_is_steady():
    steady = pd.DataFrame({"arrival_s": np.arange(0.0, 600, 2), "departure_s": np.arange(0.0, 600, 2) + 1})
    assert failing("occupancy/load", capacity.measure_load(steady)) == ["peak_utilisation", "fluctuation"]


def test_tightness_holds_on_a_load_like_the_papers():
    assert failing("occupancy/tightness", capacity.measure_tightness(served("ps", ARRIVAL, DEMAND))) == []


def test_tightness_fails_where_the_papers_bound_leaves_little_to_improve():
    light = served("ps", *load(rate=0.1))
    assert "best_excess_share" in failing("occupancy/tightness", capacity.measure_tightness(light))


def test_srpt_holds_where_it_makes_bounds_tighter():
    assert failing("occupancy/srpt", capacity.measure_srpt(SLICED, SHORTEST)) == []


def test_srpt_fails_where_scheduling_is_no_better():
    assert "excess_share_max" in failing("occupancy/srpt", capacity.measure_srpt(SLICED, SLICED))


def test_the_table_of_pairs_shows_change_and_bound():
    table = capacity.pairs(capacity.measure_table2(PAPER2))
    assert table.loc[0, "k' = 4"] == "-5136.04 (-3455.12)"
    assert table.loc[3, "k' = 4"] == ""


def test_a_change_without_a_bound_is_no_ratio():
    assert np.isnan(
        number(capacity.measure_table2(numbers(**{f"response_k{k}": 1.0 for k in range(1, 5)})), "excess_14")
    )
