"""Every fault that a scenario file can have is told with its place, in words that say what would be right."""

import dataclasses
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Feature, Fleet, Population, Recording, Rollout, Service, Software, World
from scenarios.files.checks import fleet as checks
from scenarios.files.faults import FaultsError
from scenarios.files.findings import findings
from scenarios.files.loader import library, load, load_each
from scenarios.files.schema import Analyses, Scenario, WSMeter
from sim.fleet.control import plan_roll_out

FAULTS = Path(__file__).parents[3] / "faults"
EXPECT = "# expect: "


@pytest.mark.parametrize("file", sorted(FAULTS.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_faulty_file_is_told_all_its_faults_with_their_places(file, monkeypatch):
    monkeypatch.chdir(FAULTS)
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix(EXPECT) for line in lines if line.startswith(EXPECT)]
    with pytest.raises(FaultsError) as caught:
        load_each(file.name)
    assert [str(fault).removeprefix(f"{file.name}:") for fault in caught.value.faults] == expected


def test_there_are_at_least_fifty_faulty_files_and_each_expects_something():
    files = sorted(FAULTS.glob("*.yaml"))
    assert len(files) >= 50
    assert all(file.read_text(encoding="utf-8").startswith(EXPECT) for file in files)


@pytest.mark.parametrize("name", library())
def test_shipped_scenarios_have_no_faults(name):
    assert load_each(name)


def test_faults_of_types_bounds_and_between_fields_come_together(tmp_path):
    file = tmp_path / "day.yaml"
    file.write_text("seed: x\nfleet: {machines: 0, platforms: {haswell_2698v3: 2}}\nepoch_s: 7\n")
    with pytest.raises(FaultsError) as caught:
        load(str(file))
    assert [fault.field for fault in caught.value.faults] == ["seed", "fleet.machines", "fleet.platforms", "epoch_s"]


def test_estimators_of_ones_own_have_the_parameters_that_they_are_called_with(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def estimate(self):\n        pass\n\n\n"
        "class Level:\n    def __init__(self, level):\n        pass\n\n\n"
        "def bare():\n    pass\n\n\ndef right(experiment):\n    pass\n"
    )
    names = tuple(f"{tmp_path}/mine.py:{name}" for name in ("Mine", "Level", "bare", "right"))
    faults = findings(Scenario(name="day", analyses=Analyses(wsmeter=WSMeter(estimators=names))))
    assert [fault.problem.partition("mine.py:")[2] for fault in faults] == [
        "2: Mine.estimate: should be a function of (self, experiment), got (self)",
        "7: Level: should be a function of (), got a class that takes (level)",
        "11: bare: should be a function of (experiment), got ()",
    ]


def test_faulty_items_of_a_list_hide_no_fault_elsewhere(tmp_path):
    file = tmp_path / "day.yaml"
    good, bad = "{name: noon, start_s: 0, end_s: 300}", "{name: dawn, start_s: 0, end_s: 0}"
    file.write_text(f"recording: {{windows: [{bad}, {good}, {bad}, {{start_s: 0}}]}}\nepoch_s: 7\n")
    with pytest.raises(FaultsError) as caught:
        load(str(file))
    assert [fault.field for fault in caught.value.faults] == [
        "recording.windows.0.end_s",
        "recording.windows.2.end_s",
        "recording.windows.3.end_s",
        "recording.windows.3.name",
        "epoch_s",
    ]


def test_a_check_that_needs_a_faulty_field_says_nothing():
    wrong = Scenario(name="day", epoch_s=7.0)
    assert findings(wrong)
    assert findings(wrong, {"epoch_s"}) == []


def test_a_faulty_part_of_a_map_silences_the_checks_of_the_map_and_the_map_those_of_its_parts():
    wrong = Scenario(name="day", fleet=Fleet(platforms={"haswell_2698v3": 0.5}))
    for faulty in ("fleet", "fleet.platforms", "fleet.platforms.haswell_2698v3"):
        assert findings(wrong, {faulty}) == []
    assert findings(wrong, {"fleet.platform"})


def test_every_need_of_a_check_is_a_field_of_the_scenario():
    for need in {need for needs in checks.CHECKS.values() for need in needs} - {
        "feature.platforms",
        "feature.software",
    }:
        part = Scenario(name="day")
        for key in need.removesuffix(".*").split("."):
            part = getattr(part, key)


def test_names_of_drawn_jobs_are_those_that_the_world_gives():
    population = Population(jobs=120, common_jobs=50, heavyweights=11)
    world = World(seed=5, fleet=Fleet(machines=50), population=population)
    named = {f"{kind}" for kind in build_jobs(world, build_machines(world)).names}
    services = tuple(Service(name, 1, 1.0, 1.0, 0.01) for name in sorted(named))
    wrong = Scenario(
        name="day", seed=5, fleet=world.fleet, population=dataclasses.replace(population, services=services)
    )
    taken = [finding for finding in checks.service_names(wrong) if finding.problem == "a drawn job has this name"]
    assert len(taken) == len(named) == 120


def test_sizes_up_to_exactly_the_half_with_the_feature_are_allowed():
    feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    for size, faults in ((150, 0), (151, 1)):
        analyses = Analyses(WSMeter(machines=(size,)))
        scenario = Scenario(name="day", fleet=Fleet(machines=300), feature=feature, analyses=analyses)
        assert len(findings(scenario)) == faults


@pytest.mark.parametrize(
    ("unit", "machines", "share", "seed", "most"),
    [("rack", 30, 0.5, 2, 10), ("rack", 30, 0.5, 1, 20), ("domain", 30, 0.5, 1, 30), ("rack", 50, 0.29, 2, 20)],
)
def test_sizes_count_the_machines_of_racks_and_power_domains_that_get_the_feature(unit, machines, share, seed, most):
    """Of racks of 20, the last of 10; one domain that has all, or none: then nothing is drawn, whatever the size."""
    fleet = Fleet(machines=machines, machines_per_rack=20, racks_per_power_domain=10)
    feature = Feature("new", {"haswell_2698v3": "broadwell_2698v4"}, rollout=Rollout(share=share, unit=unit))
    day = Scenario(name="day", seed=seed, fleet=fleet, feature=feature)
    having = np.isfinite(plan_roll_out(day, build_machines(day), 0).machine_from_s).sum()
    assert having == (0 if unit == "domain" else most)
    for size, faults in ((most, 0), (most + 1, int(unit == "rack"))):
        scenario = replace(day, analyses=Analyses(WSMeter(machines=(size,))))
        assert len(findings(scenario)) == faults


def test_services_may_ask_for_what_is_overcommitted():
    """A fleet of 20 machines of 64 threads allocates 86% of them, or of half as many more."""
    for overcommit, instances, faults in ((1.0, 34, 0), (1.0, 35, 1), (1.5, 51, 0), (1.5, 52, 1)):
        service = Service("search", instances, 32.0, 1.0, 0.01)
        fleet, population = Fleet(20, overcommit=overcommit), Population(services=(service,))
        assert len(findings(Scenario(name="day", fleet=fleet, population=population))) == faults, instances


def test_sizes_count_the_instances_of_rebuilt_services():
    service = Service("search", 100, 2.0, 1.0, 0.01)
    feature = Feature("faster", software=(Software(("search",), 0.9),), rollout=Rollout(share=0.29, unit="instance"))
    for size, faults in ((29, 0), (30, 1)):
        analyses = Analyses(WSMeter(machines=(size,)))
        scenario = Scenario(name="day", population=Population(services=(service,)), feature=feature, analyses=analyses)
        assert len(findings(scenario)) == faults


def test_a_horizon_has_up_to_a_hundred_thousand_epochs():
    assert findings(Scenario(name="day", horizon_s=1e5, epoch_s=1.0)) == []
    assert [one.keys for one in findings(Scenario(name="day", horizon_s=1e5, epoch_s=0.5))] == [("epoch_s",)]


def test_every_machine_epoch_is_recorded_up_to_two_billion_rows():
    for machines, faults in ((20_000, 0), (20_001, 1)):
        scenario = Scenario(
            name="day",
            horizon_s=1e5,
            epoch_s=1.0,
            fleet=Fleet(machines=machines),
            recording=Recording(machine_epochs=True),
        )
        assert len(findings(scenario)) == faults


@pytest.mark.parametrize("epoch_s", [300.0, 0.9, 86400.0 / 7])
def test_an_epoch_divides_the_horizon_up_to_rounding(epoch_s):
    assert findings(Scenario(name="day", epoch_s=epoch_s)) == []
