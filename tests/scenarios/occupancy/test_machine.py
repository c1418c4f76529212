"""`wsc run` of a queue on a machine: what it did, and how far the tail is off without the requests' own effect."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from scenarios.files.loader import load, settings
from scenarios.occupancy.measure import numbers
from scenarios.runs import execution as runs
from scenarios.runs.rundir import open_run
from scenarios.views.terminal import show


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    short = settings(["horizon_s=60", "load.arrivals.rate_per_s=60", "observation.counter_interval_s=20"])
    return runs.run(load("queue_on_machine", short), tmp_path_factory.mktemp("runs"), False, lambda _what, _share: None)


def test_a_run_on_a_machine_says_what_both_did_to_each_other(answer):
    machine, run = answer.payload()["machine"], open_run(answer.run)
    course = run.table("truth_machine")
    assert machine["platform"] == "haswell_2698v3"
    assert machine["governor"] == "performance"
    assert machine["neighbours"] == run.manifest["counts"]["neighbours"] > 5
    last_s, busy_s = run.table("truth_requests")["departure_s"].max(), 20.0 * run.table("truth_cpu")["utilisation"]
    length_s = np.array([20.0, 20.0, 20.0, last_s - 60.0])
    assert 0.0 < length_s[3] < 5.0
    for name in ("slowdown", "power_w"):
        assert machine[name] == pytest.approx((course[name] * length_s).sum() / last_s)
    assert machine["speed"] == pytest.approx((course["speed"] * busy_s).sum() / busy_s.sum())
    assert machine["speed_low"] <= machine["speed"] <= machine["speed_high"]
    both, single = run.table("truth_requests"), run.table("truth_one_way")
    times = [np.quantile(log["departure_s"] - log["arrival_s"], 0.99, method="inverted_cdf") for log in (both, single)]
    tail = machine["tail"]["p99"]
    assert [tail["two_way_s"], tail["one_way_s"]] == pytest.approx(times)
    assert tail["off"] == pytest.approx(times[1] / times[0] - 1.0)
    assert dict(numbers(answer))["p99 one way off"] == tail["off"]


def test_people_read_it_too(answer):
    console = Console(width=120, file=StringIO())
    show(answer.section(), console)
    text = console.file.getvalue()
    assert f"on haswell_2698v3 beside {answer.machine.neighbours} neighbours, performance" in text
    assert "speeds averaged, no push-back" in text
    assert f"{answer.machine.off('p99'):+.1%}" in text


def test_servers_that_come_and_go_on_a_machine_have_its_account_and_the_percentiles_of_their_log(tmp_path):
    asked = settings(["horizon_s=60", "load.arrivals.rate_per_s=180", "scaling.autoscaler.most=12"])
    answer = runs.run(load("queue_machine_scaled", asked), tmp_path, False, lambda _what, _share: None)
    told = answer.payload()
    assert told["machine"]["power_w"] > 90.0
    assert told["machine"]["unanswered"] == told["counts"]["unanswered"] > 0
    both = open_run(answer.run).table("truth_requests").query("request >= 0")
    p99_s = np.quantile(both["departure_s"] - both["arrival_s"], 0.99, method="inverted_cdf")
    assert told["machine"]["tail"]["p99"]["two_way_s"] == pytest.approx(p99_s)
    assert told["errors"]["service"] == pytest.approx(-told["errors"]["queueing"], abs=1e-9)
    assert told["utilisation"] < told["truth"]["utilisation"] < 1.0  # the law does not see what timed out
