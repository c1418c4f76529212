"""Facts about a population, its machines and its days, on tables whose facts are known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.world.calibration import (
    diurnal_facts,
    machine_facts,
    placement_facts,
    quantiles,
    quota_facts,
    service_facts,
)
from analysis.statistics import NotEnoughDataError


def named(facts):
    return dict(zip(facts["series"], facts["value"], strict=True))


def test_equal_jobs_hold_as_much_quota_as_they_are_many():
    facts = named(quota_facts(pd.DataFrame({"quota": np.ones(1000), "instances": np.arange(1000)})))
    shares = {"1pct": 0.01, "5pct": 0.05, "10pct": 0.1, "20pct": 0.2, "200": 0.2}
    assert {name: facts[f"quota_of_top_{name}"] for name in shares} == pytest.approx(shares)
    assert facts["instances_of_job_p90"] == pytest.approx(0.9 * 999)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=300), st.randoms())
def test_quota_shares_rise_to_at_most_one_and_do_not_depend_on_the_order(quota, random):
    names = [f"quota_of_top_{name}pct" for name in (1, 5, 10, 20)]
    shares = named(quota_facts(pd.DataFrame({"quota": quota, "instances": 1})))
    random.shuffle(quota)
    again = named(quota_facts(pd.DataFrame({"quota": quota, "instances": 1})))
    held = [shares[name] for name in names]
    assert held == sorted(held)
    assert held[-1] <= 1 + 1e-12
    assert again == pytest.approx(shares)


def test_a_large_job_is_the_top_whatever_its_place():
    jobs = pd.DataFrame({"quota": [*np.ones(99), 99.0], "instances": 1})
    assert named(quota_facts(jobs))["quota_of_top_1pct"] == pytest.approx(0.5)


STAYS = pd.DataFrame(
    {
        "job": [1, 1, 2, 3, 3, 9],
        "machine": [0, 0, 0, 1, 1, 1],
        "start_s": [0.0, 0, 0, 0, 100, 0],
        "end_s": [200.0, 200, 200, 100, 200, 50],
    }
)


def test_only_stays_that_are_there_at_the_moment_count():
    facts = named(placement_facts(STAYS, 100.0))
    assert facts["instances_on_machine_mean"] == 2
    assert facts["single_pairs"] == pytest.approx(2 / 3)


def test_an_end_is_not_there_any_more():
    assert named(placement_facts(STAYS, 50.0))["instances_on_machine_mean"] == 2
    with pytest.raises(NotEnoughDataError, match="no instances at 200 s: at least 1 is needed"):
        placement_facts(STAYS, 200.0)


def test_tails_are_relative_to_the_median():
    counts = np.repeat(np.arange(100), np.arange(1, 101))
    stays = pd.DataFrame({"job": np.arange(len(counts)), "machine": counts, "start_s": 0.0, "end_s": 1.0})
    facts = named(placement_facts(stays, 0.5))
    assert facts["instances_on_machine_p5_over_p50"] == pytest.approx(5.95 / 50.5)
    assert facts["instances_on_machine_p95_over_p50"] == pytest.approx(95.05 / 50.5)
    assert facts["single_pairs"] == 1


def test_a_service_varies_by_its_own_instances_alone():
    table = pd.DataFrame({"job": [1, 1, 2, 2, 3], "weight": 1.0, "value": [9.0, 11, 80, 120, 7]})
    names = pd.DataFrame({"job": [1, 2], "name": ["compute", "network"]})
    assert named(service_facts(table, names)) == pytest.approx({"job_cv_compute": 0.1, "job_cv_network": 0.2})


def test_machines_vary_by_their_ratio_of_counters():
    table = pd.DataFrame({"machine": [0, 0, 1], "weight": 1.0, "exposure": [3.0, 1, 1], "value": [1.0, 5.0, 4.0]})
    assert named(machine_facts(table))["machine_cv"] == pytest.approx(1 / 3)


@given(st.floats(0, 0.9), st.floats(0, 24), st.sampled_from([300.0, 900.0]), st.integers(1, 3))
def test_the_daily_swing_is_found_whatever_its_peak(amplitude, peak_hour, epoch_s, days):
    start_s = np.arange(0, days * 86400, epoch_s)
    load = 7.0 * (1 + amplitude * np.cos(2 * np.pi * (start_s / 86400 - peak_hour / 24)))
    facts = diurnal_facts(pd.DataFrame({"start_s": start_s, "cpu_s": load}))
    assert named(facts)["diurnal_half_amplitude"] == pytest.approx(amplitude, abs=1e-9)


def test_a_swing_of_half_a_day_is_not_daily():
    start_s = np.arange(288) * 300.0
    load = 1 + 0.5 * np.cos(4 * np.pi * start_s / 86400)
    assert named(diurnal_facts(pd.DataFrame({"start_s": start_s, "cpu_s": load})))["diurnal_half_amplitude"] < 1e-9


@pytest.mark.parametrize(("epochs", "needed"), [(1, 2), (287, 288)])
def test_less_than_a_day_has_no_daily_swing(epochs, needed):
    table = pd.DataFrame({"start_s": np.arange(epochs) * 300.0, "cpu_s": 1.0})
    with pytest.raises(NotEnoughDataError) as caught:
        diurnal_facts(table)
    assert (caught.value.needed, caught.value.have) == (needed, epochs)


def test_quantiles_are_named_by_percent():
    assert quantiles("mai", pd.Series([0.0, 1.0]), (5, 95)) == pytest.approx({"mai_p5": 0.05, "mai_p95": 0.95})
