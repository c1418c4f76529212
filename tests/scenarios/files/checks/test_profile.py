"""Checks of profile scenarios beyond the faulty files: they agree with what the simulation makes of the same fields."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from models.fleet.inventory import build_machines
from models.fleet.world import Fleet, Recording, Window
from models.profiling.world import Collector, Programs, Watch
from scenarios.files.checks import profile as profile_checks
from scenarios.files.findings import findings
from scenarios.files.loader import load
from scenarios.files.schema import ProfileScenario
from sim.profiling.register import place


def fortnight(**fields):
    return ProfileScenario(name="fortnight", horizon_s=14 * 86400.0, **fields)


def asked(**collector):
    base = fortnight()
    return replace(base, profiling=replace(base.profiling, collector=Collector(**collector)))


def test_a_fortnight_of_the_defaults_has_no_faults():
    assert findings(fortnight()) == []


def test_every_need_of_a_check_is_a_field_of_the_scenario():
    optional = {"feature.platforms", "feature.software", "feature.rollout"}
    for need in {need for needs in profile_checks.CHECKS.values() for need in needs} - optional:
        part = fortnight()
        for key in need.removesuffix(".*").split("."):
            part = getattr(part, key)


@settings(max_examples=60, deadline=None)
@given(
    shares=some.lists(some.integers(1, 30), min_size=1, max_size=5),
    racks=some.integers(1, 12),
    racks_per_power_domain=some.integers(1, 3),
)
def test_a_data_centre_is_told_to_be_empty_exactly_if_no_machine_is_placed_there(shares, racks, racks_per_power_domain):
    names = {f"dc{i}": share / sum(shares) for i, share in enumerate(shares)}
    fleet = Fleet(racks, machines_per_rack=1, racks_per_power_domain=racks_per_power_domain)
    base = fortnight(fleet=fleet)
    scenario = replace(base, profiling=replace(base.profiling, datacentres=names))
    found = {finding.got for finding in profile_checks.datacentres(scenario)}
    used = np.unique(place(scenario, build_machines(scenario)).datacentre)
    empty = [f'"dc{i}"' for i in range(len(shares)) if i not in used]
    assert found == ({", ".join(empty)} if empty else set())


def test_a_visit_has_time_for_exactly_so_many_events():
    assert findings(asked(seconds_per_event=50.0)) == []
    assert [one.keys[-1] for one in findings(asked(seconds_per_event=50.1))] == ["seconds_per_event"]


@pytest.mark.parametrize(("round_s", "faults"), [(300.0, 0), (86400.0, 0), (172800.0, 1), (450.0, 1), (4200.0, 1)])
def test_rounds_are_whole_epochs_and_make_whole_days(round_s, faults):
    assert len(findings(asked(round_s=round_s, one_in=100))) == faults


def test_watches_may_be_of_services_and_of_platforms_that_the_feature_brings():
    base = load("profiled_small")
    watch = Watch("one", job="heavyweight-01", platform="skylake_6148", kernel="6.6.30")
    profiling = replace(base.profiling, collector=replace(base.profiling.collector, watches=(watch,)))
    assert findings(replace(base, profiling=profiling)) == []


def test_two_windows_are_told_by_name():
    recording = Recording(windows=(Window("a", 0.0, 300.0), Window("b", 300.0, 600.0)))
    assert [one.got for one in findings(fortnight(recording=recording))] == ['"a", "b"']


def test_libraries_may_leave_just_what_is_told():
    base = fortnight()
    for share, faults in ((0.94, 0), (0.96, 1)):
        programs = Programs(libraries=(), kernel_share=share)
        scenario = replace(base, profiling=replace(base.profiling, programs=programs))
        assert len(findings(scenario)) == faults


@pytest.mark.parametrize("rate", [1e-9, 9.9e-4, 1.001e5, 1e9])
def test_rates_beyond_what_can_be_kept_are_faults(rate):
    for fields in ({"samples_per_s": rate}, {"stacks_per_s": rate}):
        assert [(one.keys[-1], one.got) for one in findings(asked(**fields))] == [(*fields, f"{rate:.12g}")]
    watch = Watch("one", samples_per_s=rate)
    assert [one.keys[-3:] for one in findings(asked(watches=(watch,)))] == [("watches", 0, "samples_per_s")]


def test_rates_at_the_bounds_are_none():
    assert findings(asked(samples_per_s=1e-3, stacks_per_s=0.0)) == []
    assert findings(asked(samples_per_s=1e5, stacks_per_s=1e-3)) == []
