"""What an objective needs by hour: the clock, and a planted rush beside an own queue of a few lines."""

import heapq

import numpy as np
import pytest

from analysis.occupancy.hours import hours, needs_by_hour
from analysis.occupancy.load import recorded
from analysis.occupancy.logs.clocks import LogClock
from analysis.occupancy.objective import Objective, ReplayStation
from models.errors import InputError

MONDAY_NINE_S = 1_718_010_000.0
"""2024-06-10T09:00Z."""


def first_come(arrival_s, demand_s, servers):
    """Response times of first come first served."""
    free, left = [-np.inf] * servers, []
    for came, demand in zip(arrival_s, demand_s, strict=True):
        left.append(max(came, free[0]) + demand)
        heapq.heapreplace(free, left[-1])
    return np.array(left) - arrival_s


def test_hours_are_those_of_the_zones_clock_and_cover_the_log():
    of_day = hours(1800.0, 1800.0 + 13 * 86_400.0, MONDAY_NINE_S)
    assert len(of_day) == 24
    assert {len(hour.start_s) for hour in of_day} == {13, 14}
    assert sum(hour.length_s for hour in of_day) == pytest.approx(13 * 86_400.0)
    assert max(of_day, key=lambda hour: len(hour.start_s)).name == "09"
    of_week = hours(0.0, 14 * 86_400.0, MONDAY_NINE_S, LogClock("Asia/Kolkata"))
    assert len(of_week) == 168
    half_past = next(hour for hour in of_week if hour.name == "Mon 14")
    assert half_past.start_s == (0.0, 7 * 86_400.0 - 1800.0, 14 * 86_400.0 - 1800.0)
    assert [hour.name for hour in hours(7200.0, 7300.0, 0.0)] == ["02"]


def test_a_change_of_clocks_makes_an_hour_come_twice():
    autumn_s = 1_729_983_600.0  # 2024-10-27T01:00 in Berlin, where 02:00 comes twice
    found = {hour.name: len(hour.start_s) for hour in hours(0.0, 4 * 3600.0, autumn_s, LogClock("Europe/Berlin"))}
    assert found == {"01": 1, "02": 2, "03": 1}


def test_the_rush_hour_needs_more_servers_and_each_hour_what_a_plain_queue_says():
    rng = np.random.default_rng(5)
    rates = {8: 0.125, 9: 0.75, 10: 0.002}
    arrival = np.sort(
        np.concatenate(
            [
                86_400.0 * day + 3600.0 * hour + rng.uniform(0, 3600.0, int(3600 * rate))
                for day in range(3)
                for hour, rate in rates.items()
            ]
        )
    )
    demand = rng.exponential(4.0, len(arrival))
    logged = first_come(arrival, demand, 4)
    station = ReplayStation(recorded(arrival, demand, logged), "fcfs")
    objective = Objective(0.99, 24.0)
    calendar = hours(8 * 3600.0, 2 * 86_400.0 + 11 * 3600.0)
    rows = {row.hour: row for row in needs_by_hour(calendar, [station], objective, 4, logged)}
    assert {name for name, row in rows.items() if row.known} == {"08", "09"}
    assert (rows["10"].requests, rows["10"].fewest, rows["12"].requests) == (21, None, 0)
    for name, hour in (("08", 8), ("09", 9)):
        mine = (arrival % 86_400.0) // 3600.0 == hour
        joined = arrival[mine] % 3600.0 + 3600.0 * (arrival[mine] // 86_400.0)
        slow = [np.mean(first_come(joined, demand[mine], k) > 24.0) for k in range(1, 8)]
        assert rows[name].fewest == 1 + next(at for at, share in enumerate(slow) if share <= 0.01)
        assert rows[name].surely >= rows[name].fewest
        assert rows[name].percentile_s == np.quantile(logged[mine], 0.99, method="inverted_cdf")
    assert rows["09"].fewest > rows["08"].fewest
    assert rows["08"].largest_load > 1.5 > rows["09"].largest_load > rows["09"].largest_load_surely


def test_what_an_hour_surely_carries_holds_for_one_such_hour_and_not_only_for_all_of_them_together():
    """Five hours of one rate: their common percentile hardly varies, but that of a single one does."""
    rng = np.random.default_rng(1)
    arrival = np.sort(np.concatenate([86_400.0 * day + rng.uniform(0, 3600.0, 1000) for day in range(5)]))
    demand = rng.exponential(2.0, 5_000)
    logged = first_come(arrival, demand, 1)
    objective = Objective(0.99, 25.0)
    (row,) = (
        row
        for row in needs_by_hour(
            hours(0.0, 4 * 86_400.0 + 3600.0),
            [ReplayStation(recorded(arrival, demand, logged), "fcfs")],
            objective,
            1,
            logged,
        )
        if row.known
    )
    joined = arrival % 86_400.0 + 3600.0 * (arrival // 86_400.0)
    together = ReplayStation(recorded(joined, demand, logged), "fcfs").largest(objective, 1)
    assert row.largest_load == together.load
    assert 0 < row.largest_load_surely < 0.95 * together.surely


def test_without_a_policy_that_fits_there_is_no_answer():
    with pytest.raises(InputError, match="no policy fits the log"):
        list(needs_by_hour(hours(0.0, 60.0), [], Objective(0.9, 1.0), 1, np.zeros(0)))
