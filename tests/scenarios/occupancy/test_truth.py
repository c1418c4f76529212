"""What servers really did, counted from tables that were made by hand."""

import math
from dataclasses import astuple

import pandas as pd
import pytest

from models.queues.world import Contention, Distribution, QueueWorld, Station
from scenarios.occupancy.truth import QueueTruth, errors, truth
from scenarios.runs.rundir import Run

COLUMNS = ["request", "arrival_s", "departure_s", "demand_s"]


def run_of(folder, requests, utilisation, end_s):
    pd.DataFrame(requests, columns=COLUMNS).to_parquet(folder / "truth_requests.parquet")
    cpu = pd.DataFrame({"start_s": [0.0], "end_s": [end_s], "utilisation": [utilisation]})
    cpu.to_parquet(folder / "truth_cpu.parquet")
    return Run(folder, {"tables": {}})


def test_work_that_is_in_no_log_is_busy_but_nobodys_service(tmp_path):
    run = run_of(tmp_path, [(0, 0.0, 4.0, 3.0), (-1, 1.0, 2.0, 1.0)], 0.5, 8.0)
    true = truth(run, QueueWorld(station=Station(servers=1)))
    assert true == QueueTruth(1.0, 3.0, 1.0)


def test_faster_servers_serve_for_less_time(tmp_path):
    run = run_of(tmp_path, [(0, 0.0, 2.0, 4.0)], 0.5, 4.0)
    assert truth(run, QueueWorld(station=Station(servers=1, speeds=(2.0,)))).service_time_s == 2.0


def test_blocked_time_is_neither_service_nor_queueing(tmp_path):
    run = run_of(tmp_path, [(0, 0.0, 5.0, 3.0)], 0.6, 5.0)
    contention = Contention(blocking_s=Distribution("constant", mean=1.5))
    assert truth(run, QueueWorld(station=Station(servers=1), contention=contention)).queueing_time_s == 0.5


def test_parts_that_run_at_once_are_waited_for_once(tmp_path):
    run = run_of(tmp_path, [(0, 0.0, 2.5, 4.0)], 0.4, 5.0)
    true = truth(run, QueueWorld(station=Station(servers=2), contention=Contention(parallelism=2)))
    assert true.queueing_time_s == pytest.approx(0.5)


def test_a_run_of_nothing_has_no_utilisation_and_no_error(tmp_path):
    true = truth(run_of(tmp_path, [], 0.0, 60.0), QueueWorld())
    assert math.isnan(true.utilisation)
    assert (true.service_time_s, true.queueing_time_s) == (0.0, 0.0)
    assert all(math.isnan(value) for value in astuple(errors(1.0, 0.0, true)))


def test_work_in_vain_that_outlasts_the_log_does_not_make_servers_busier_than_all_the_time(tmp_path):
    run = run_of(tmp_path, [(0, 0.0, 2.0, 2.0), (-1, 2.0, 10.0, 8.0)], 1.0, 10.0)
    assert truth(run, QueueWorld(station=Station(servers=1))).utilisation == 1.0
