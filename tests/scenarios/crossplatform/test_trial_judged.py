"""One world judged: errors, intervals and choices are those of an arithmetic done by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis.crossplatform.evidence import Prediction, PredictionMethod
from models.errors import InputError
from models.platforms import PLATFORMS
from scenarios.crossplatform import trial as judging
from scenarios.crossplatform.trial import actual_throughput, judge
from scenarios.files.schema import CrossPlatform, ServiceAnalyses, ServiceScenario

NAMES = ("piii", "pres", "pd4")
INTERVALS = 8
ACTUAL_S = {"piii": 0.02, "pres": 0.01, "pd4": 0.004}


def scenario(**settings):
    analyses = ServiceAnalyses(CrossPlatform(choices=2, **settings))
    return ServiceScenario(name="tiny", seed=5, platforms=NAMES, analyses=analyses)


def throughputs(**per_s):
    return pd.DataFrame({"platform": list(per_s), "bound_s": 0.15, "throughput_per_s": list(per_s.values())})


@pytest.fixture
def tables():
    start_s = 30.0 * np.arange(INTERVALS)
    log = pd.DataFrame({"platform": "piii", "start_s": start_s, "instructions": 1e9, "l1_misses": 1e7})
    truth = [
        pd.DataFrame({"platform": name, "start_s": start_s, "requests": 10, "service_time_s": ACTUAL_S[name]})
        for name in NAMES
    ]
    return {
        "service_counts": pd.DataFrame({"start_s": start_s, "type": "page", "requests": 10}),
        "service_log": log.assign(l2_misses=1e6, response_time_s=0.1),
        "service_cpu": log[["platform", "start_s"]].assign(utilisation=0.1),
        "truth_service": pd.concat(truth).assign(response_time_s=0.2, utilisation=0.1),
        "truth_throughput": throughputs(piii=5.0, pres=10.0, pd4=200.0),
    }


def guesser(times_s, half=np.nan, response_s=0.1):
    """Say a fixed service time of each platform and a bounded throughput that is its inverse."""

    def fit(_evidence):
        def predict(platform, counts, interval_s):
            middle = np.full(len(counts), times_s[platform.name])
            rate = counts.sum(axis=1) / interval_s
            keeps = np.where(rate * middle < 1, response_s, 9.0)
            return Prediction(middle, middle * (1 - half), middle * (1 + half), keeps, keeps * (1 - half), keeps)

        return predict

    return fit


def judged_by(monkeypatch, tables, fit, **settings):
    monkeypatch.setattr(judging, "named_methods", lambda _names: [PredictionMethod("guess", "as told", fit)])
    return judge(tables, scenario(**settings))


def test_errors_are_medians_relative_to_what_happened(monkeypatch, tables):
    made = judged_by(monkeypatch, tables, guesser({"pres": 0.012, "pd4": 0.003}))
    rows = {row["target"]: row for row in made["methods"]}
    assert {name: row["service_error"] for name, row in rows.items()} == pytest.approx({"pres": 0.2, "pd4": 0.25})
    assert rows["pres"]["response_error"] == pytest.approx(0.5)
    assert np.isnan(rows["pres"]["coverage"])


@pytest.mark.parametrize(
    ("middle", "half", "covered"), [(0.012, 0.16, 0.0), (0.012, 0.17, 1.0), (0.008, 0.24, 0.0), (0.008, 0.26, 1.0)]
)
def test_an_interval_is_right_when_it_holds_what_happened(monkeypatch, tables, middle, half, covered):
    """0.012 less a sixth of it is the actual 0.010, and so is 0.008 with a quarter more."""
    made = judged_by(monkeypatch, tables, guesser({"pres": middle, "pd4": 0.004}, half))
    rows = {row["target"]: row for row in made["methods"]}
    assert (rows["pres"]["coverage"], rows["pd4"]["coverage"]) == (covered, 1.0)
    assert rows["pres"]["half_width"] == pytest.approx(half)


def test_a_choice_by_throughput_per_watt_is_wrong_when_another_platform_is_better(monkeypatch, tables):
    """Per watt PD4 serves 0.33 a second and PRES 0.08: choosing PRES loses three quarters of it."""
    right = judged_by(monkeypatch, tables, guesser({"pres": 0.1, "pd4": 0.005}))["choices"]
    assert right == [{"method": "guess", "wrong": 0.0, "loss": 0.0}]
    (wrong,) = judged_by(monkeypatch, tables, guesser({"pres": 0.005, "pd4": 0.1}))["choices"]
    watts = {name: PLATFORMS[name].tdp_w for name in NAMES}
    assert wrong["wrong"] == 1.0
    assert wrong["loss"] == pytest.approx(1 - (10.0 / watts["pres"]) / (200.0 / watts["pd4"]))


def test_no_choice_is_judged_where_no_platform_keeps_the_bound_or_too_few_are_there(monkeypatch, tables):
    tables["truth_throughput"] = throughputs(pres=0.0, pd4=0.0)
    (none,) = judged_by(monkeypatch, tables, guesser({"pres": 0.1, "pd4": 0.005}))["choices"]
    assert np.isnan(none["wrong"])
    tables["truth_throughput"] = throughputs(pd4=3.0)
    (few,) = judged_by(monkeypatch, tables, guesser({"pres": 0.1, "pd4": 0.005}))["choices"]
    assert np.isnan(few["loss"])


def test_the_true_throughput_is_that_under_the_bound_of_the_analysis(tables):
    tables["truth_throughput"] = pd.concat(
        [throughputs(pres=3.0, pd4=4.0), throughputs(pres=30.0, pd4=40.0).assign(bound_s=0.3)]
    )
    assert actual_throughput(tables, scenario()) == {"pres": 3.0, "pd4": 4.0}
    assert actual_throughput({}, scenario()) == {}


def test_a_method_that_cannot_be_calibrated_is_told_and_hides_no_other(monkeypatch, tables):
    def refusing(_evidence):
        raise InputError("utilisation is not in the log")

    methods = [
        PredictionMethod("shy", "", refusing),
        PredictionMethod("guess", "", guesser({"pres": 0.01, "pd4": 0.004})),
    ]
    monkeypatch.setattr(judging, "named_methods", lambda _names: methods)
    made = judge(tables, scenario())
    assert made["notes"] == ["shy: utilisation is not in the log"]
    assert {row["method"] for row in made["methods"]} == {"guess"}


def test_without_the_truth_nothing_is_judged_and_nothing_breaks(monkeypatch, tables):
    seen = {name: table for name, table in tables.items() if not name.startswith("truth_")}
    made = judged_by(monkeypatch, seen, guesser({"pres": 0.01, "pd4": 0.004}, 0.1))
    assert all(np.isnan(row["service_error"]) and np.isnan(row["coverage"]) for row in made["methods"])
    assert made["methods"][0]["half_width"] == pytest.approx(0.1)
    assert made["platforms"] == []


def test_platforms_are_described_by_what_they_really_did(monkeypatch, tables):
    of = tables["truth_service"]["platform"] == "pd4"
    tables["truth_service"].loc[of, "utilisation"] = [1.0, 1.0, *[0.5] * (INTERVALS - 2)]
    tables["truth_service"].loc[of, "requests"] = [0, *[10] * (INTERVALS - 1)]
    tables["truth_service"].loc[of, "service_time_s"] = [np.nan, *[0.004] * (INTERVALS - 1)]
    made = judged_by(monkeypatch, tables, guesser({"pres": 0.01, "pd4": 0.004}))
    pd4 = next(row for row in made["platforms"] if row["platform"] == "pd4")
    assert (pd4["utilisation"], pd4["peak_utilisation"], pd4["saturated"]) == (0.625, 1.0, 0.25)
    assert pd4["service_time_s"] == pytest.approx(0.004)


def test_what_is_said_of_a_world_is_plain_numbers(monkeypatch, tables):
    made = judged_by(monkeypatch, tables, guesser({"pres": 0.01, "pd4": 0.004}))
    assert json.loads(json.dumps(made))["seed"] == 5
