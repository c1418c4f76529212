"""A world's trial: methods see the first half of measured platforms, and are judged on the second."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.crossplatform.departures import Priors
from analysis.crossplatform.measured import measure
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.own_methods import named_methods
from analysis.crossplatform.scores import scores
from scenarios.crossplatform.trial import errors, trial
from scenarios.files.schema import CrossPlatform, ServiceAnalyses, ServiceScenario
from sim.services.run import services

MINUTES = 12
TYPES = ("buy", "see")


def scenario(**settings):
    return ServiceScenario(
        name="tiny",
        platforms=("piii", "pres", "pd4"),
        measured=("piii", "pres"),
        analyses=ServiceAnalyses(CrossPlatform(**settings)),
    )


@pytest.fixture
def tables():
    start_s = 60.0 * np.arange(MINUTES)
    measured = [
        pd.DataFrame({"platform": name, "start_s": start_s, "instructions": 1e9, "l1_misses": 1e7, "l2_misses": 1e6})
        for name in ("piii", "pres")
    ]
    return {
        "service_counts": pd.DataFrame(
            {"start_s": np.repeat(start_s, 2), "type": TYPES * MINUTES, "requests": np.arange(2 * MINUTES)}
        ),
        "service_log": pd.concat(measured).assign(response_time_s=0.1),
        "service_cpu": pd.concat(measured)[["platform", "start_s"]].assign(utilisation=0.2),
        "truth_service": pd.concat(
            [
                pd.DataFrame({"platform": name, "start_s": start_s, "service_time_s": s * start_s})
                for s, name in enumerate(("piii", "pres", "pd4"))
            ]
        ).assign(response_time_s=0.3)[::-1],
    }


def test_methods_see_the_first_half_and_are_judged_on_the_second(tables):
    made = trial(tables, scenario())
    assert {name: log.start_s.max() for name, log in made.evidence.logs.items()} == {"piii": 300.0, "pres": 300.0}
    assert made.test.start_s.tolist() == [60.0 * minute for minute in range(6, 12)]
    assert made.actual["pd4"].service_time_s.tolist() == [2 * 60.0 * minute for minute in range(6, 12)]
    assert made.mix.tolist() == [sum(range(0, 24, 2)), sum(range(1, 24, 2))]
    assert list(made.actual) == ["pres", "pd4"]


def test_the_evidence_has_no_truth(tables):
    plain = trial(tables, scenario()).evidence
    without = trial({name: table for name, table in tables.items() if "truth" not in name}, scenario())
    assert plain.calibration == without.evidence.calibration == "piii"
    for name, log in plain.logs.items():
        np.testing.assert_array_equal(log.counts, without.evidence.logs[name].counts)
    assert np.isnan(without.actual["pd4"].service_time_s).all()


def test_another_platform_to_start_from_is_another_trial(tables):
    made = trial(tables, scenario(calibration="pres", targets=("piii",)))
    assert made.evidence.calibration == "pres"
    assert list(made.actual) == ["piii"]


def test_an_interval_without_a_truth_is_not_judged(tables):
    tables["truth_service"] = tables["truth_service"].query("start_s != 600")
    actual = trial(tables, scenario()).actual["pd4"].service_time_s
    assert np.isnan(actual).tolist() == [False, False, False, False, True, False]


def test_errors_are_relative_to_what_happened():
    assert errors(np.array([0.5, 2.0, np.nan]), np.array([1.0, 1.0, 1.0]))[:2].tolist() == [0.5, 1.0]


def test_methods_come_in_the_order_of_the_registry_and_all_if_none_is_named():
    assert [method.name for method in named_methods(("published", "cycle_scalar"))] == ["cycle_scalar", "published"]
    assert {"published", "calibrated", "testbed", "benchmark"} <= {method.name for method in named_methods(())}


def test_what_another_platform_did_changes_nothing_for_methods_that_go_from_one():
    """Logs and counters of `pres`, a target, are there for learners; all other methods must not look at them."""
    two = ServiceScenario(name="two", horizon_s=3600.0, platforms=("piii", "pres"))
    worlds = [replace(two, measured=names) for names in (("piii",), ("piii", "pres"))]
    without, beside = (trial(services(one, throughput=False, types=False), one) for one in worlds)
    for method in METHODS:
        if method.learns:
            continue
        first, second = (each.predict(each.fit(method), "pres") for each in (without, beside))
        np.testing.assert_array_equal(first.service_time_s, second.service_time_s, method.name)
        np.testing.assert_array_equal(first.response_high_s, second.response_high_s, method.name)


def test_a_method_knows_clocks_set_by_hand_and_that_scores_are_of_base_clocks():
    slow = ServiceScenario(name="slow", horizon_s=3600.0, platforms=("piii", "pres"), clocks={"pres": 1.1e9})
    evidence = trial(services(slow, throughput=False, types=False), slow).evidence
    assert evidence.platforms["pres"].base_frequency_hz == 1.1e9
    assert evidence.scored is not None
    assert evidence.scored["pres"].base_frequency_hz == 2.2e9
    measured = measure(evidence.log, evidence.platform, Priors())
    known = scores(evidence, measured)
    assert known is not None
    assert [each.base_frequency_hz for each in known.platforms] == [1.1e9, 2.2e9]
