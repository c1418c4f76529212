"""What a cross-platform scenario's fields must satisfy together: where the bounds lie."""

import typing

import pytest

from analysis.crossplatform.methods import METHODS
from models.services.world import Application, ServiceLoad
from scenarios.files.catalogue import shipped
from scenarios.files.checks.service import MOST_INTERVALS, MOST_REQUESTS, SPARE_INTERVALS
from scenarios.files.findings import findings
from scenarios.files.loader import digest, draws_path, load, load_each, settings
from scenarios.files.schema import SERVICE, CrossPlatform, MethodName, ServiceAnalyses, ServiceScenario
from scenarios.kinds import KINDS


def told(**fields):
    made = findings(ServiceScenario(**{"name": "auction"} | fields))
    return [".".join(map(str, finding.keys)) for finding in made]


def analysed(**fields):
    return {"analyses": ServiceAnalyses(CrossPlatform(**fields))}


def test_a_plain_scenario_has_no_faults():
    assert told() == []


def test_the_methods_that_a_file_may_name_are_those_that_there_are():
    assert [method.name for method in METHODS] == list(typing.get_args(MethodName))


def test_predictions_start_from_the_first_measured_platform_unless_said():
    scenario = ServiceScenario(name="a", platforms=("pd4", "piii", "pres"), measured=("pres", "piii"))
    assert (scenario.calibration, scenario.targets) == ("pres", ("pd4", "piii"))
    other = ServiceScenario(name="a", measured=("piii", "pres"), **analysed(calibration="pres", targets=("pd4",)))
    assert (other.calibration, other.targets) == ("pres", ("pd4",))


def test_half_of_the_trace_needs_an_interval_for_each_type_and_two_more():
    for types in (1, 22):
        needed = 2 * (types + SPARE_INTERVALS)
        fine = {"application": Application(types=types), "interval_s": 10.0}
        assert told(horizon_s=10.0 * needed, **fine) == []
        assert told(horizon_s=10.0 * (needed - 1), **fine) == ["horizon_s"]


def test_so_many_requests_and_intervals_may_be_asked_for():
    rate = MOST_REQUESTS / 36000 / 4
    assert told(load=ServiceLoad(requests_per_s=rate * 0.999)) == []
    assert told(load=ServiceLoad(requests_per_s=rate * 1.001)) == ["load.requests_per_s"]
    assert told(load=ServiceLoad(requests_per_s=rate / 2, volume=2.002)) == ["load.requests_per_s"]
    assert told(interval_s=36000 / MOST_INTERVALS) == []
    assert told(interval_s=36000 / (MOST_INTERVALS + 1)) == ["interval_s"]


def test_what_is_asked_for_twice_is_told_once_for_each_time_it_comes_again():
    assert told(platforms=("piii", "pres", "piii", "piii")) == ["platforms.2", "platforms.3"]
    assert told(measured=("piii", "piii")) == ["measured.1"]
    assert told(bounds_s=(0.15, 0.2, 0.15)) == ["bounds_s.2"]


def test_a_platform_is_chosen_under_a_bound_of_which_there_is_a_truth():
    assert told(bounds_s=(0.1, 0.2), **analysed(bound_s=0.2)) == []
    assert told(bounds_s=(0.1, 0.2)) == ["analyses.crossplatform.bound_s"]
    assert told(bounds_s=()) == ["analyses.crossplatform.bound_s"]


def test_a_faulty_part_hides_no_fault_elsewhere(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "kind: cross_platform\nplatforms: [piii]\nload: {volume: -1}\nanalyses: {crossplatform: {methods: [magic]}}\n"
    )
    with pytest.raises(ValueError, match=r"load.volume: should be greater than 0") as caught:
        load(str(tmp_path / "a.yaml"))
    assert "analyses.crossplatform.methods.0: should be 'cycle_scalar'" in str(caught.value)


def test_the_word_of_the_file_is_from_and_survives_a_manifest():
    scenario = load("cross_rubis", settings(["analyses.crossplatform.from=pres"]))
    assert scenario.calibration == "pres"
    said = SERVICE.dump_json(scenario, by_alias=True)
    assert b'"from":"pres"' in said
    assert SERVICE.validate_json(said) == scenario


def test_the_analyses_do_not_decide_the_run_and_the_world_does():
    plain = load("cross_rubis")
    assert digest(load("cross_rubis", settings(["analyses.crossplatform.worlds=3"]))) == digest(plain)
    assert digest(load("cross_rubis", settings(["hardware.cpi_log_sd=0.2"]))) != digest(plain)


def test_the_library_has_the_three_applications_and_says_so():
    kinds = {one["name"]: one["kind"] for one in shipped().entries}
    names = [name for name in kinds if kinds[name] == "cross_platform"]
    assert names == [f"cross_{name}" for name in ("cliffs", "rubis", "saturated", "stationary", "stockonline", "tpcw")]
    types = {name: load(f"cross_{name}").application.types for name in ("rubis", "stockonline", "tpcw")}
    assert types == {"rubis": 22, "stockonline": 6, "tpcw": 13}
    assert all(len(load(name).targets) == 10 for name in names)


def test_draws_are_worlds_of_a_cross_platform_scenario_and_of_a_sweep_of_one(tmp_path):
    (tmp_path / "many.yaml").write_text("sweep: {scenario: cross_rubis, axes: {load.volume: [1, 3]}}")
    assert draws_path("cross_rubis") == KINDS["cross_platform"].draws == "analyses.crossplatform.worlds"
    assert draws_path(str(tmp_path / "many.yaml")) == "analyses.crossplatform.worlds"
    assert [one.load.volume for one in load_each(str(tmp_path / "many.yaml"))] == [1, 3]


def test_clocks_are_of_platforms_that_serve_and_can_have_them():
    assert told(clocks={"piii": 8e8, "pd4": 3.4e9}) == []
    assert told(clocks={"piii": 1.2e9, "rome_7742": 1e9}) == ["clocks.piii", "clocks.rome_7742"]
