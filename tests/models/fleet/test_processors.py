"""Processors draw what measured servers draw, and sustain server code at their all-core turbo; whose is whose."""

from dataclasses import replace

import numpy as np
import pytest

from models.fleet.processors import PROCESSORS, peak_power_w, processor
from models.platforms import MODERN_SERVERS, PLATFORMS, SERVERS_2008
from sim.fleet import power
from tests.helpers.specpower import curve_w, row_of, running

SPECPOWER_W = {
    "haswell_2699v3": (47, 88, 106, 121, 138, 150, 170, 190, 217, 244, 272),
    "skylake_8180": (51, 122, 144, 168, 189, 214, 246, 285, 332, 390, 449),
    "icelake_8380": (126, 191, 220, 248, 274, 302, 336, 380, 438, 496, 601),
    "rome_7742": (64, 112, 130, 143, 154, 166, 178, 190, 203, 218, 242),
}
"""Wall watts of lean servers from active idle to full load in steps of a tenth, turbo off: medians of 12, 20, 10 and 10
published SPECpower_ssj2008 results (spec.org/power_ssj2008, 2014 to 2021)."""


def measured(name):
    """The sheet of the lean machine that was measured."""
    own = {
        "haswell_2699v3": replace(
            PLATFORMS["haswell_2698v3"].sheet, extends="haswell_2698v3", cores=36, tdp_w=290.0, max_frequency_hz=2.8e9
        ),
        "skylake_8180": replace(
            PLATFORMS["skylake_6148"].sheet,
            extends="skylake_6148",
            cores=56,
            tdp_w=410.0,
            base_frequency_hz=2.5e9,
            max_frequency_hz=3.2e9,
        ),
    }
    sheet = own.get(name) or replace(PLATFORMS[name].sheet, extends=name)
    return replace(sheet, idle_power_w=float(SPECPOWER_W[name][0]))


@pytest.mark.parametrize("name", SPECPOWER_W)
def test_wall_power_from_idle_to_full_load_is_that_of_measured_servers(name):
    np.testing.assert_allclose(curve_w(measured(name)), SPECPOWER_W[name], rtol=0.10)


@pytest.mark.parametrize("name", [sheet.name for sheet in MODERN_SERVERS])
def test_full_load_of_server_code_at_all_core_turbo_is_within_the_tdp(name):
    """Half of the cycles of server code wait for memory."""
    row = row_of(replace(PLATFORMS[name].sheet, extends=name))
    assert running(row, 1.0, row["max_hz"], stalled=0.5)[0] <= row["tdp_w"]


POWER_DECIDES = {
    "skylake_6148", "cascadelake_8280", "naples_7601", "rome_7742", "milan_7763", "genoa_9654", "bergamo_9754",
    "turin_9755",
}  # fmt: skip
"""Whose shares, fitted at the base clock, leave less than the all-core turbo to code that seldom waits for memory."""


@pytest.mark.parametrize("name", [sheet.name for sheet in MODERN_SERVERS])
def test_full_load_of_a_fleets_own_jobs_holds_the_all_core_turbo_or_more_than_the_base_clock(name):
    """They wait for memory in 0.29 of their cycles alone, in the mean over jobs."""
    row, sheet = row_of(replace(PLATFORMS[name].sheet, extends=name)), PLATFORMS[name]
    at_turbo, at_base = (running(row, 1.0, hz, stalled=0.29)[0] for hz in (row["max_hz"], sheet.base_frequency_hz))
    assert (at_turbo > row["tdp_w"]) == (name in POWER_DECIDES)
    assert at_base < row["tdp_w"]


@pytest.mark.parametrize("sheet", [*MODERN_SERVERS, *SERVERS_2008], ids=lambda sheet: sheet.name)
def test_power_rises_with_load_clock_and_traffic_and_peak_is_all_threads_computing(sheet):
    row = row_of(replace(sheet.sheet, extends=sheet.name))
    by_load = [running(row, load / 20, row["max_hz"])[1] for load in range(21)]
    by_clock = [running(row, 0.6, clock)[1] for clock in np.linspace(row["min_hz"], row["max_hz"], 9)]
    assert by_load == sorted(by_load)
    assert by_clock == sorted(by_clock)
    assert by_load[0] == sheet.idle_power_w
    assert by_load[-1] == pytest.approx(peak_power_w(sheet, processor(sheet.name, {}).shares)) == row["peak_w"]


def test_few_active_cores_clock_higher():
    """Haswell's bins: 3.6 GHz with two active cores a socket, 2.8 GHz from nine of sixteen on."""
    row = row_of(replace(PLATFORMS["haswell_2698v3"].sheet, extends="haswell_2698v3"))
    clocks = [power.turbo_hz(row, busy, 0.0) for busy in (0.0, 2 / 32, 0.2, 0.3, 0.6, 1.0)]
    assert clocks[:2] == pytest.approx([3.6e9, 3.6e9])
    assert 2.8e9 < clocks[2] < 3.6e9
    assert clocks[3:] == pytest.approx([2.8e9] * 3)


def test_every_shipped_server_has_processors_and_nothing_else_has():
    assert set(PROCESSORS) == {sheet.variant_of or name for name, sheet in PLATFORMS.items()}


def test_a_platform_of_ones_own_has_the_processors_of_the_one_that_it_extends():
    sheet = PLATFORMS["milan_7763"].sheet
    own = {"mine": replace(sheet, extends="milan_7763"), "newer": replace(sheet, extends="mine"), "other": sheet}
    assert processor("mine", own) is processor("newer", own) is PROCESSORS["milan_7763"]
    assert (processor("mine", own).attainable, processor("other", own).attainable) == (0.67, 0.75)
