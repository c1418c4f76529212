"""Visits put on the wrong machine or time, beside brute force over every stay."""

import numpy as np
import pandas as pd
import pytest

from analysis.crosscheck.profile import residents, rounds

EPOCH_S, ROUND_S, HORIZON_S = 300.0, 1200.0, 6000.0


@pytest.fixture
def stays():
    rng = np.random.default_rng(5)
    start_s = rng.integers(0, 15, 60) * 317.0
    return pd.DataFrame(
        {
            "residence": np.arange(60),
            "machine": rng.integers(0, 6, 60),
            "start_s": start_s,
            "end_s": np.minimum(start_s + rng.uniform(1.0, 4000.0, 60), HORIZON_S),
        }
    )


@pytest.fixture
def visits():
    rng = np.random.default_rng(6)
    rows = [
        {"machine": machine, "start_s": number * ROUND_S + EPOCH_S * rng.integers(0, 4)}
        for number in range(5)
        for machine in rng.permutation(6)[: rng.integers(1, 3)]
    ]
    made = pd.DataFrame(rows).assign(collection="fleet", status="ok", length_s=EPOCH_S)
    return made.assign(visit=np.arange(len(made)))


def pairs(visits, stays):
    return {
        (visit.visit, stay.residence)
        for visit in visits.itertuples()
        for stay in stays.itertuples()
        if visit.machine == stay.machine and stay.start_s <= visit.start_s < stay.end_s
    }


def processes(found):
    own = [(visit, -1) for visit, _ in found]
    return pd.DataFrame(sorted(found) + own, columns=["visit", "residence"])


def test_what_is_there_is_found(visits, stays):
    seen = pairs(visits, stays)
    made = residents(visits, processes(seen), stays)
    assert (made.left, made.right, made.holds) == (len(seen), len(seen), True)
    assert len(seen) > 10


def test_a_visit_that_lasts_finds_who_was_there_at_any_time_of_it(visits, stays):
    short = stays.assign(start_s=stays["start_s"] + 150.0)
    seen = {
        (visit.visit, stay.residence)
        for visit in visits.itertuples()
        for stay in short.itertuples()
        if visit.machine == stay.machine and stay.start_s < visit.start_s + EPOCH_S and visit.start_s < stay.end_s
    }
    assert seen > pairs(visits, short)
    assert residents(visits, processes(seen), short, during=True).holds
    assert not residents(visits, processes(seen), short).holds


@pytest.mark.parametrize("by_s", [-300.0, 300.0, 3600.0])
def test_pairs_of_a_shifted_clock_are_counted(visits, stays, by_s):
    seen, late = pairs(visits, stays), visits.assign(start_s=visits["start_s"] + by_s)
    there = pairs(late, stays)
    made = residents(late, processes(seen), stays)
    assert (made.left, made.right) == (len(seen & there), len(seen | there))
    assert not made.holds


def test_another_machine_is_found_and_a_visit_without_an_answer_finds_nobody(visits, stays):
    seen = pairs(visits, stays)
    assert not residents(visits.assign(machine=(visits["machine"] + 1) % 6), processes(seen), stays).holds
    refused = visits.assign(status=["refused", *visits["status"][1:]])
    assert residents(refused, processes({pair for pair in seen if pair[0] > 0}), stays).holds


def test_a_stay_that_an_application_s_own_collection_leaves_out_is_no_fault_but_a_wrong_one_is(visits, stays):
    seen = pairs(visits, stays)
    first = min(seen)
    own = visits.assign(collection=np.where(visits["visit"] == first[0], "cache", "fleet"))
    assert residents(own, processes(seen - {first}), stays).holds
    assert not residents(visits, processes(seen - {first}), stays).holds
    absent = next(one for one in stays["residence"] if (first[0], one) not in seen)
    assert not residents(own, processes(seen | {(first[0], absent)}), stays).holds


def test_rounds_have_one_or_two_of_six_machines(visits):
    assert rounds(visits, ROUND_S, HORIZON_S, 1.5).holds
    assert not rounds(visits, ROUND_S, HORIZON_S, 1.0).holds


@pytest.mark.parametrize(
    "how",
    [
        lambda table: table.assign(start_s=table["start_s"] * 1000.0, length_s=EPOCH_S * 1000.0),
        lambda table: table.assign(start_s=table["start_s"] - ROUND_S),
        lambda table: table.assign(length_s=HORIZON_S),
        lambda table: table.assign(start_s=0.0),
        lambda table: pd.concat([table, table.tail(1)]),
        lambda table: table[table["start_s"] >= ROUND_S],
    ],
    ids=["milliseconds", "early", "long", "at_once", "twice", "lost"],
)
def test_a_round_that_is_not_as_it_should_be_is_found(visits, how):
    made = rounds(how(visits), ROUND_S, HORIZON_S, 1.5)
    assert not made.holds
    assert made.left < made.right


def test_a_machine_that_is_visited_twice_in_a_round_is_found():
    table = pd.DataFrame({"machine": [0, 1, 2, 3], "start_s": [0.0, 300.0, 1200.0, 1500.0], "length_s": EPOCH_S})
    assert rounds(table, ROUND_S, 2400.0, 2.0).holds
    made = rounds(table.assign(machine=[0, 0, 2, 3]), ROUND_S, 2400.0, 2.0)
    assert (made.left, made.right) == (1.0, 2.0)
