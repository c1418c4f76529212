"""Spec sheets are possible machines, and newer ones are better."""

import re
from dataclasses import replace

import pytest

from models.platforms import (
    MODERN_SERVERS,
    PLATFORMS,
    SERVERS_2008,
    SWITCHED_SHARE_OF_TDP,
    Cache,
    configuration,
    pooled_bytes,
)

KIB, MIB = 2**10, 2**20
each = pytest.mark.parametrize("sheet", PLATFORMS.values(), ids=PLATFORMS)
each_modern = pytest.mark.parametrize("sheet", MODERN_SERVERS, ids=lambda sheet: sheet.name)
each_old = pytest.mark.parametrize("sheet", SERVERS_2008, ids=lambda sheet: sheet.name)


@each
def test_a_platform_is_listed_under_its_name_and_says_where_it_comes_from(sheet):
    assert PLATFORMS[sheet.name] is sheet
    assert ":" in sheet.source


def test_platforms_are_the_old_servers_and_then_a_dozen_modern_ones():
    assert tuple(PLATFORMS.values()) == (*SERVERS_2008, *MODERN_SERVERS)
    assert len(MODERN_SERVERS) >= 12


@each
def test_frequencies_are_steps_between_a_floor_and_a_turbo(sheet):
    assert sheet.min_frequency_hz <= sheet.base_frequency_hz <= sheet.max_frequency_hz
    steps = (sheet.max_frequency_hz - sheet.min_frequency_hz) / sheet.frequency_step_hz
    assert steps == pytest.approx(round(steps))


@each_modern
def test_clocks_of_modern_servers_vary(sheet):
    assert sheet.min_frequency_hz < sheet.base_frequency_hz
    assert sheet.base_frequency_hz < sheet.max_frequency_hz or "Arm" in sheet.source


@each_modern
def test_sizes_are_of_the_right_magnitude(sheet):
    assert 1 * MIB < (sheet.caches[1].size_bytes + sheet.llc_bytes / sheet.cores) < 8 * MIB
    assert 70e-9 < sheet.memory_latency_s < 130e-9
    assert 1e9 < sheet.memory_bandwidth_bytes_per_s / sheet.vcpus < (4e9 if sheet.threads_per_core > 1 else 8e9)
    assert 2 * 2**30 <= sheet.memory_bytes / sheet.vcpus <= 8 * 2**30


@each_old
def test_sizes_of_old_servers_are_of_the_right_magnitude(sheet):
    assert 0.4e9 <= sheet.memory_bandwidth_bytes_per_s / sheet.vcpus <= 6.4e9
    assert 1 * 2**30 <= sheet.memory_bytes / sheet.vcpus <= 8 * 2**30
    assert 100 < sheet.memory_latency_s * sheet.base_frequency_hz <= 450


@each_old
def test_bandwidth_is_that_of_the_front_side_buses_named(sheet):
    buses, megatransfers = re.search(r"(one|two) front-side bus(?:es)? of (\d+) MT/s", sheet.source).groups()
    count = {"one": 1, "two": 2}[buses]
    assert sheet.memory_bandwidth_bytes_per_s == pytest.approx(count * int(megatransfers) * 8e6)


@each
def test_caches_grow_outwards_in_size_latency_and_sharing_and_memory_is_beyond(sheet):
    sizes = [cache.size_bytes for cache in sheet.caches]
    cycles = [cache.latency_cycles for cache in sheet.caches]
    shared = [cache.cores for cache in sheet.caches]
    assert len(sheet.caches) >= 2
    assert sizes == sorted(set(sizes))
    assert cycles == sorted(set(cycles))
    assert shared == sorted(shared)
    assert shared[-1] <= sheet.cores / sheet.sockets
    assert cycles[-1] < sheet.memory_latency_s * sheet.base_frequency_hz


@each
def test_the_last_level_is_that_of_all_processors_together(sheet):
    last = sheet.caches[-1]
    assert sheet.llc_bytes == pytest.approx(last.size_bytes * sheet.cores / last.cores)


@each
def test_cores_stand_evenly_in_sockets(sheet):
    assert sheet.cores % sheet.sockets == 0
    assert int(sheet.source[0]) >= sheet.sockets


@each
def test_peak_power_is_idle_plus_what_cores_switch(sheet):
    assert sheet.peak_power_w == pytest.approx(sheet.idle_power_w + SWITCHED_SHARE_OF_TDP * sheet.tdp_w)
    idle_share = sheet.idle_power_w / sheet.peak_power_w
    assert 0.15 < idle_share < 0.4 if sheet in MODERN_SERVERS else 0.4 < idle_share < 0.7


@pytest.mark.parametrize(
    "names",
    [
        ("sandybridge_2670", "haswell_2698v3", "broadwell_2698v4", "skylake_6148", "icelake_8380",
         "sapphirerapids_8480", "emeraldrapids_8592", "graniterapids_6980p"),
        ("naples_7601", "rome_7742", "milan_7763", "genoa_9654", "turin_9755"),
        ("altra_q80_30", "graviton_4"),
    ],
    ids=["Intel", "AMD", "Arm"],
)  # fmt: skip
def test_each_generation_needs_fewer_cycles_than_the_one_before(names):
    factors = [PLATFORMS[name].core_cpi_factor for name in names]
    assert factors == sorted(set(factors), reverse=True)


def test_cycles_are_relative_to_haswell_and_the_old_servers_need_at_least_twice_as_many():
    assert PLATFORMS["haswell_2698v3"].core_cpi_factor == 1.0
    assert min(sheet.core_cpi_factor for sheet in SERVERS_2008) >= 2.0
    assert PLATFORMS["piii"].core_cpi_factor < PLATFORMS["pres"].core_cpi_factor


@pytest.mark.parametrize(
    ("name", "clock_hz", "cores", "kib"),
    [
        ("piii", 1.1e9, 2, (32, 128)),
        ("pres", 2.2e9, 2, (16, 512)),
        ("pd4", 3.4e9, 8, (32, 4096, 16384)),
        ("xeon_2h_2c_2p", 2.8e9, 4, (32, 2048)),
    ],
)
def test_the_old_servers_have_the_clocks_cores_and_caches_that_the_paper_prints(name, clock_hz, cores, kib):
    sheet = PLATFORMS[name]
    assert (sheet.base_frequency_hz, sheet.cores) == (clock_hz, cores)
    assert tuple(cache.size_bytes / KIB for cache in sheet.caches) == kib
    assert "Stewart" in sheet.source


@pytest.mark.parametrize(
    ("name", "cpus", "second_level_mib", "tdp_w"),
    [
        ("xeon_1h_1c_1p", 1, 2, 135),
        ("xeon_1h_1c_2p", 2, 4, 270),
        ("xeon_1h_2c_1p", 2, 4, 135),
        ("xeon_1h_2c_2p", 4, 8, 270),
        ("xeon_2h_1c_1p", 2, 2, 135),
        ("xeon_2h_1c_2p", 4, 4, 270),
        ("xeon_2h_2c_1p", 4, 4, 135),
        ("xeon_2h_2c_2p", 8, 8, 270),
    ],
)
def test_the_xeon_has_eight_configurations(name, cpus, second_level_mib, tdp_w):
    sheet, whole = PLATFORMS[name], PLATFORMS["xeon_2h_2c_2p"]
    assert (sheet.vcpus, sheet.llc_bytes / MIB, sheet.tdp_w) == (cpus, second_level_mib, tdp_w)
    assert sheet.variant_of == ("" if sheet is whole else whole.name)
    assert (sheet.idle_power_w, sheet.memory_bandwidth_bytes_per_s) == (230.0, 6.4e9)


def test_dense_cores_of_one_generation_need_the_cycles_of_the_others():
    genoa, bergamo = PLATFORMS["genoa_9654"], PLATFORMS["bergamo_9754"]
    assert (genoa.core_cpi_factor, genoa.caches[:2]) == (bergamo.core_cpi_factor, bergamo.caches[:2])
    assert genoa.caches[-1].size_bytes == 2 * bergamo.caches[-1].size_bytes


def test_servers_of_one_core_need_the_same_cycles():
    factors = {sheet.core_cpi_factor for sheet in PLATFORMS.values() if "Neoverse V2" in sheet.source}
    assert len(factors) == 1


def test_only_the_xeon_has_configurations():
    assert sum(bool(sheet.variant_of) for sheet in PLATFORMS.values()) == 7


def test_half_the_cores_of_each_processor_keep_every_last_level_cache():
    half = configuration(PLATFORMS["cascadelake_8280"], "half", threads_per_core=2, cores=14, sockets=2)
    assert (half.cores, half.caches[-1].cores, half.llc_bytes) == (28, 14, PLATFORMS["cascadelake_8280"].llc_bytes)


def test_cores_that_share_nothing_any_more_take_their_caches_along():
    server = replace(PLATFORMS["rome_7742"], cores=12)
    few = configuration(server, "few", threads_per_core=1, cores=6, sockets=1)
    assert few.llc_bytes == 2 * 16 * MIB


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ((3, 2, 2), "1 to 2 threads a core, 3 asked"),
        ((2, 0, 2), "1 to 2 cores a processor, 0 asked"),
        ((2, 2, 4), "1 to 2 processors, 4 asked"),
    ],
)
def test_no_more_can_be_on_than_there_is(asked, problem):
    with pytest.raises(ValueError, match=f"xeon_2h_2c_2p has {problem}"):
        configuration(PLATFORMS["xeon_2h_2c_2p"], "other", *asked)


def test_a_cache_that_is_shared_by_more_cores_than_there_are_is_there_once():
    assert pooled_bytes(Cache(8 * MIB, 40, cores=4), cores=3) == 8 * MIB
    assert pooled_bytes(Cache(8 * MIB, 40, cores=4), cores=5) == 16 * MIB


def test_servers_of_arm_are_the_only_shipped_ones_whose_instructions_are_not_those_of_x86():
    """The makers' names in the sources say which: Intel and AMD make x86, the others Arm."""
    for name, platform in PLATFORMS.items():
        arm, x86 = "Arm" in platform.source, "Intel" in platform.source or "AMD" in platform.source
        assert arm != x86, name
        assert platform.isa == ("arm64" if arm else "x86"), name
