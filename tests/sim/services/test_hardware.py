"""Machines as they are, drawn around their spec sheets."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from models.platforms import PLATFORMS
from models.services.world import Hardware, Mechanisms, ServiceWorld
from sim.services.hardware import Machine, draw_machines

XEONS = tuple(name for name, sheet in PLATFORMS.items() if sheet.variant_of == "xeon_2h_2c_2p")
SPEC = Mechanisms(departure=False, effective_cache=False, cores=False)

EPYC = ("naples_7601", "rome_7742", "milan_7763")


def _one(name: str, **world) -> Machine:
    return draw_machines(ServiceWorld(platforms=(name,), **world))[name]


def test_machines_come_in_the_order_asked_for_and_are_drawn_alone():
    world = ServiceWorld(platforms=("pd4", "piii"))
    assert list(draw_machines(world)) == ["pd4", "piii"]
    for one, again in zip(astuple(draw_machines(world)["piii"]), astuple(_one("piii")), strict=True):
        np.testing.assert_array_equal(one, again)


def test_configurations_of_one_server_depart_alike():
    machines = draw_machines(ServiceWorld(platforms=(*XEONS, "xeon_2h_2c_2p")))
    whole = machines["xeon_2h_2c_2p"]
    assert len(machines) == 8
    for machine in machines.values():
        assert machine.core_cpi_factor == whole.core_cpi_factor
        assert machine.memory_latency_s == whole.memory_latency_s
        assert machine.smt_factor == whole.smt_factor
        np.testing.assert_array_equal(machine.cache_bytes, whole.cache_bytes)


def test_different_servers_and_seeds_depart_differently():
    factors = {_one(name, seed=seed).overlap_factor for name in ("piii", "pres", "pd4") for seed in (1, 2)}
    assert len(factors) == 6


@pytest.mark.parametrize("name", [name for name, sheet in PLATFORMS.items() if sheet.caches])
def test_without_departure_a_machine_is_its_spec_sheet(name):
    sheet, machine = PLATFORMS[name], _one(name, mechanisms=SPEC)
    assert machine.vcpus == sheet.vcpus
    assert machine.frequency_hz == sheet.base_frequency_hz
    assert machine.core_cpi_factor == sheet.core_cpi_factor
    assert machine.memory_latency_s == sheet.memory_latency_s
    assert (machine.overlap_factor, machine.smt_factor) == (1.0, 1.0)
    assert (machine.loadings == 0).all()
    attained = machine.memory_bandwidth_bytes_per_s / sheet.memory_bandwidth_bytes_per_s
    assert attained == pytest.approx(0.67 if name in EPYC else 0.75)
    np.testing.assert_array_equal(machine.cache_bytes, [cache.size_bytes for cache in sheet.caches])
    np.testing.assert_array_equal(machine.cache_cycles, [cache.latency_cycles for cache in sheet.caches])
    assert (machine.cache_cores <= machine.cores).all()


def test_without_departure_caches_hold_the_mean_share():
    machine = _one("piii", mechanisms=Mechanisms(departure=False), hardware=Hardware(effective_cache_share=0.5))
    np.testing.assert_allclose(machine.cache_bytes, [16 * 2**10, 64 * 2**10])


def test_no_cache_holds_more_than_its_size():
    wild = Hardware(effective_cache_share=1.0, effective_cache_log_sd=3.0)
    for seed in range(20):
        assert (_one("pd4", seed=seed, hardware=wild).cache_bytes <= [2**15, 2**22, 2**24]).all()


@pytest.mark.statistical
def test_machines_depart_as_much_as_is_asked_for():
    """Standard deviations of 400 draws; a false alarm needs 4.5 standard errors: 7 in a million."""
    spreads, asked = Hardware(), PLATFORMS["piii"]
    drawn = [_one("piii", seed=seed) for seed in range(400)]
    for values, expected in (
        ([machine.core_cpi_factor for machine in drawn], spreads.cpi_log_sd),
        ([machine.memory_latency_s for machine in drawn], spreads.latency_log_sd),
        ([machine.cache_cycles[1] for machine in drawn], spreads.latency_log_sd),
        ([machine.overlap_factor for machine in drawn], spreads.overlap_log_sd),
        ([machine.smt_factor for machine in drawn], spreads.smt_log_sd),
    ):
        assert np.log(values).std() == pytest.approx(expected, rel=4.5 / np.sqrt(2 * 400))
    middle = np.median([machine.core_cpi_factor for machine in drawn])
    assert np.log(middle / asked.core_cpi_factor) == pytest.approx(0.0, abs=4.5 * 1.25 * spreads.cpi_log_sd / 20)


def test_all_faults_of_a_world_are_named_at_once():
    with pytest.raises(ValueError, match="no platform 'i486'; no platform 'i586'"):
        draw_machines(ServiceWorld(platforms=("i486", "piii", "i586")))


def test_a_platform_of_ones_own_has_the_core_and_the_links_of_what_it_extends_or_varies():
    rome, plain = PLATFORMS["rome_7742"].sheet, PLATFORMS["haswell_2698v3"].sheet
    own = {
        "bigger": replace(rome, extends="rome_7742", cores=128, sockets=2),
        "half": replace(plain, variant_of="haswell_2698v3"),
        "unknown": plain,
    }
    machines = draw_machines(ServiceWorld(platforms=(*own, "rome_7742", "haswell_2698v3", "pd4"), own_platforms=own))
    np.testing.assert_array_equal(machines["bigger"].loadings, machines["rome_7742"].loadings)
    np.testing.assert_array_equal(machines["unknown"].loadings, 0.0)
    nodes = {name: machine.nodes for name, machine in machines.items()}
    assert nodes["half"] == nodes["haswell_2698v3"] != nodes["unknown"]
    assert (nodes["bigger"].count, nodes["rome_7742"].count, nodes["pd4"].count) == (2, 1, 1)
    assert machines["pd4"].sockets == 4
