"""Spec sheets are possible machines, and newer ones are better."""

import pytest

from models.platforms import PLATFORMS, SWITCHED_SHARE_OF_TDP

each = pytest.mark.parametrize("sheet", PLATFORMS.values(), ids=PLATFORMS)


@each
def test_a_platform_is_listed_under_its_name_and_says_where_it_comes_from(sheet):
    assert PLATFORMS[sheet.name] is sheet
    assert ":" in sheet.source


@each
def test_frequencies_are_steps_between_a_floor_and_a_turbo(sheet):
    assert sheet.min_frequency_hz < sheet.base_frequency_hz < sheet.max_frequency_hz
    steps = (sheet.max_frequency_hz - sheet.min_frequency_hz) / sheet.frequency_step_hz
    assert steps == pytest.approx(round(steps))


@each
def test_sizes_are_of_the_right_magnitude(sheet):
    assert 0.5 * 2**20 < sheet.llc_bytes / sheet.cores < 8 * 2**20
    assert 70e-9 < sheet.memory_latency_s < 120e-9
    assert 1e9 < sheet.memory_bandwidth_bytes_per_s / sheet.vcpus < 4e9
    assert 2 * 2**30 <= sheet.memory_bytes / sheet.vcpus <= 8 * 2**30


@each
def test_peak_power_is_idle_plus_what_cores_switch(sheet):
    assert sheet.peak_power_w == pytest.approx(sheet.idle_power_w + SWITCHED_SHARE_OF_TDP * sheet.tdp_w)
    assert 0.15 < sheet.idle_power_w / sheet.peak_power_w < 0.4


def test_each_intel_generation_needs_fewer_cycles_than_the_one_before():
    names = ("sandybridge_2670", "haswell_2698v3", "broadwell_2698v4", "skylake_6148", "icelake_8380")
    factors = [PLATFORMS[name].core_cpi_factor for name in names]
    assert factors == sorted(factors, reverse=True)
    assert PLATFORMS["haswell_2698v3"].core_cpi_factor == 1.0
