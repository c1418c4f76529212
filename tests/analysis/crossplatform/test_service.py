"""The paper's service time against arithmetic done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.crossplatform.service import cycles_per_instruction, service_time_s, sizes_bytes
from models.platforms import PLATFORMS, Cache

PIII, PD4 = PLATFORMS["piii"], PLATFORMS["pd4"]


def test_two_levels_cost_what_the_papers_equation_says():
    platform = replace(
        PIII, caches=(Cache(2.0**15, 3), Cache(2.0**17, 7)), memory_latency_s=1e-7, base_frequency_hz=1e9
    )
    hits_1, hits_2, misses_2 = 0.4 - 0.06, 0.06 - 0.02, 0.02
    by_hand = platform.instruction_cpi + hits_1 * 3 + hits_2 * 7 + misses_2 * 100
    assert cycles_per_instruction(platform, [0.06, 0.02], hits_1) == pytest.approx(by_hand, rel=1e-12)
    included = by_hand - hits_1 * 3  # a spec sheet's CPI counts hits of the first level
    assert cycles_per_instruction(platform, [0.06, 0.02]) == pytest.approx(included, rel=1e-12)


def test_a_third_level_takes_the_hits_that_memory_loses():
    latencies = [cache.latency_cycles for cache in PD4.caches]
    memory = PD4.memory_latency_s * PD4.base_frequency_hz
    by_hand = PD4.instruction_cpi + 0.34 * latencies[0] + 0.05 * latencies[1] + 0.006 * latencies[2] + 0.004 * memory
    assert cycles_per_instruction(PD4, [0.06, 0.01, 0.004], 0.34) == pytest.approx(by_hand, rel=1e-12)


def test_mixes_are_independent_columns():
    both = cycles_per_instruction(PIII, np.array([[0.06, 0.03], [0.02, 0.01]]))
    assert both == pytest.approx([float(cycles_per_instruction(PIII, rates)) for rates in ([0.06, 0.02], [0.03, 0.01])])


def test_hits_of_the_first_level_cost_its_latency_each():
    more = cycles_per_instruction(PIII, [0.06, 0.02], 0.5) - cycles_per_instruction(PIII, [0.06, 0.02], 0.4)
    assert more == pytest.approx(0.1 * PIII.caches[0].latency_cycles)


def test_logical_processors_are_one_large_one():
    one = service_time_s(PLATFORMS["xeon_1h_1c_1p"], np.array([2.8e9]), np.array([2.0]), np.array([4.0]))
    all_eight = service_time_s(PLATFORMS["xeon_2h_2c_2p"], np.array([2.8e9]), np.array([2.0]), np.array([4.0]))
    assert one == pytest.approx(0.5)
    assert all_eight == pytest.approx(0.5 / 8)


def test_no_request_has_no_service_time():
    assert np.isnan(service_time_s(PIII, np.array([1e9]), np.array([2.0]), np.array([0.0]))).all()


def test_misses_of_another_number_of_levels_are_refused():
    with pytest.raises(ValueError, match="misses of 2 levels are given, must be of the 3 of pd4"):
        cycles_per_instruction(PD4, [0.06, 0.02])


def test_a_spec_sheet_without_caches_is_named():
    with pytest.raises(ValueError, match="caches of platform piii are not given"):
        sizes_bytes(replace(PIII, caches=()))
