"""Questions about code, of profiles so small that the answers can be counted."""

import pandas as pd
import pytest

from analysis.profiling.query import QueryError
from analysis.profiling.questions.catalogue import QUESTIONS
from analysis.profiling.questions.code import deprecated, instruction_class, locks, memory, savings, shared
from tests.helpers.profile_in_memory import ProfileTable


def test_shared_code_has_the_largest_share_of_one_application():
    rows = {"event": "cycles", "application": ["a", "a", "b", "b"], "function": ["x", "zip", "y", "zip"]}
    profile = ProfileTable(pd.DataFrame(rows).assign(visit=[0, 0, 1, 1], samples=9, value=[95, 5, 95, 5]))
    assert shared(profile)[["function", "share", "largest_share_in_one"]].to_numpy().tolist() == [["zip", 0.05, 0.05]]


def test_savings_are_cycles_core_hours_and_money():
    visits = pd.DataFrame({"collection": "all", "platform": "p", "start_s": [0.0, 9.0], "weight": 1})
    rows = {"event": "cycles", "platform": "p", "function": ["f", "g"] * 2, "visit": [0, 0, 1, 1]}
    table = pd.DataFrame(rows).assign(samples=9, value=1_800_000)
    profile = ProfileTable(table, {"visits": visits.assign(frequency_hz=1000.0)})
    saved = savings(profile, "f", change=0.5, price_per_core_hour=2.0)
    columns = ["cycles_saved", "core_hours_saved", "money_per_year"]
    assert saved[columns].to_numpy().tolist() == [[1800000.0, 0.5, 365.0]]


def test_callers_of_code_to_be_deprecated_share_its_time():
    rows = {"event": "cpu_time", "application": ["a", "b"], "function": "old", "caller": "main", "samples": 1}
    callers = deprecated(ProfileTable(pd.DataFrame(rows).assign(value=[3, 1])), "old")
    assert callers[["application", "share"]].to_numpy().tolist() == [["a", 0.75], ["b", 0.25]]


def test_a_class_of_instructions_says_how_much_is_known():
    rows = {"event": "instructions", "application": ["a", "b"], "image": "m", "function": ["f", "g"], "samples": 1}
    traits = pd.DataFrame({"image": ["m"], "function": ["f"], "floating_point": [0.5]})
    profile = ProfileTable(pd.DataFrame(rows).assign(value=[40, 60]), {"function_traits": traits})
    answer = instruction_class(profile)[["application", "share", "known"]].to_numpy().tolist()
    assert answer == [["[all]", 0.2, 0.4], ["a", 0.5, 1.0], ["b", 0.0, 0.0]]


def test_locks_are_told_in_seconds():
    rows = {"event": "lock_wait", "application": "a", "function": ["f", "g"], "samples": 1, "value": [1e9, 3e9]}
    waits = locks(ProfileTable(pd.DataFrame(rows)))[["function", "waited_s"]].to_numpy().tolist()
    assert waits == [["g", 3.0], ["f", 1.0]]


def test_locks_and_memory_are_of_events_that_count_time_and_bytes():
    rows = pd.DataFrame({"event": ["cycles", "delay"], "application": "a", "function": "f", "samples": 1, "value": 5e6})
    profile = ProfileTable(rows)
    assert QUESTIONS["locks"].ask(profile)["waited_s"].tolist() == [5.0]
    with pytest.raises(QueryError, match=r"event: should be time that is waited, .* got cycles, which counts events"):
        locks(profile, "cycles")
    with pytest.raises(
        QueryError, match=r"event: should be time that is waited, .* got cpu_time, which is time of proc"
    ):
        locks(ProfileTable(rows.assign(event="cpu_time")), "cpu_time")
    with pytest.raises(QueryError, match=r"event: should be memory in bytes, .* got cycles, which counts events"):
        memory(profile, event="cycles")


def test_memory_is_the_mean_over_the_day():
    visits = pd.DataFrame({"collection": ["all"], "start_s": 0.0, "weight": 288, "length_s": 300.0})
    rows = pd.DataFrame({"event": "heap_bytes", "application": ["a"], "samples": 5, "value": 288 * 700})
    assert memory(ProfileTable(rows, {"visits": visits}))["mean_bytes"].tolist() == [700.0]


def test_memory_that_was_allocated_is_a_total_and_no_live_heap():
    visits = pd.DataFrame({"collection": "a", "start_s": 0.0, "weight": 1, "length_s": 0.0, "machine": [0, 0]})
    rows = pd.DataFrame({"event": "alloc_space", "application": ["a"], "samples": 5, "value": 900})
    answer = memory(ProfileTable(rows, {"visits": visits}), event="alloc_space")
    assert answer["allocated_bytes"].tolist() == [900.0]
    assert "mean_bytes" not in answer


def test_memory_of_heaps_without_lengths_is_the_mean_over_those_of_each_machine():
    visits = pd.DataFrame({"collection": "a", "start_s": 0.0, "weight": 1, "length_s": 0.0, "machine": [0, 0, 1]})
    rows = pd.DataFrame({"event": "inuse_space", "application": ["a"], "samples": 5, "value": 900})
    assert QUESTIONS["memory"].ask(ProfileTable(rows, {"visits": visits}))["mean_bytes"].tolist() == [600.0]
