"""What requests cost on a machine, against the model's own form, the fleet's kernel and a plain-loop reference."""

import math
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.fleet.memory import latency_factor
from models.fleet.processors import MemoryNodes
from models.platforms import PLATFORMS, Cache, Sheet
from models.services.applications import Activities, build_activities
from models.services.world import Application, Hardware, Mechanisms, Runtime, ServiceWorld
from sim.fleet import slots
from sim.fleet.layout import Contention
from sim.services.capacity import HostedService, saturation
from sim.services.hardware import Machine, draw_machines
from sim.services.setting import set_up
from sim.services.stack import demands, smt_rates
from tests.helpers.one_machine import solved

ALL, NOTHING = Mechanisms(), Mechanisms(**{field.name: False for field in fields(Mechanisms)})
PLAIN = Mechanisms(cores=False)
NAMES = ("piii", "pres", "pd4", "xeon_1h_2c_1p", "xeon_2h_1c_1p", "xeon_2h_2c_2p")
each_machine = pytest.mark.parametrize("name", NAMES)
OWN = {
    "mine": Sheet(
        cores=16, sockets=4, base_frequency_hz=2.5e9, caches=(Cache(2.0**15, 4), Cache(2.0**19, 14)), tdp_w=300,
        memory_latency_s=9e-8, memory_bandwidth_bytes_per_s=4e9, idle_power_w=90, core_cpi_factor=1.1,
    )
}  # fmt: skip
"""Four sockets with memory each, of which nothing else is known: links carry little, and caches are private."""


def _service(mechanisms=ALL, seed=1, **application) -> Activities:
    return build_activities(Application(**{"types": 5} | application), Runtime(), mechanisms, seed, "service")


def _machine(name, mechanisms=ALL, seed=1, hardware=None) -> Machine:
    hardware = hardware or Hardware()
    return draw_machines(
        ServiceWorld(seed=seed, platforms=(name,), mechanisms=mechanisms, hardware=hardware, own_platforms=OWN)
    )[name]


def _load(service: Activities, per_s=(0.0, 1.0, 4.0, 12.0), seed=0):
    """Rates in several intervals, each with its own mix."""
    mix = np.random.default_rng(seed).dirichlet(np.ones(service.types), len(per_s))
    return service.rates(np.array(per_s)[:, None] * mix)


def _idle_s(service: Activities, machine: Machine, mechanisms=ALL) -> float:
    """Mean time between requests that would keep the machine busy if its load cost no more than an idle one's."""
    cpu_s = demands(service, machine, np.zeros((1, len(service.names))), mechanisms).cpu_s[0, : service.types]
    return float(cpu_s @ service.popularity) / machine.vcpus


def _misses(service: Activities, a: int, size_bytes: float) -> float:
    """Misses per instruction of one activity alone in a cache."""
    sets = zip(service.weights[a].tolist(), service.set_bytes.tolist(), strict=True)
    return sum(weight * size**2 / (size**2 + size_bytes**2) for weight, size in sets)


@each_machine
def test_with_every_mechanism_off_the_truth_has_the_models_own_form(name):
    """s = I (CPI + H2 C2 + … + ML Cmem) / f, a hit in the first level being part of CPI (Stewart et al. 2008, 4.1)."""
    service, sheet = _service(NOTHING), PLATFORMS[name]
    found = demands(service, _machine(name, NOTHING), _load(service), NOTHING)
    for j in range(service.types):
        misses = [_misses(service, j, cache.size_bytes) for cache in sheet.caches]
        cycles = service.core_cpi[j] * sheet.core_cpi_factor
        for level, cache in enumerate(sheet.caches[1:]):
            cycles += (misses[level] - misses[level + 1]) * cache.latency_cycles
        cycles += misses[-1] * sheet.memory_latency_s * sheet.base_frequency_hz
        np.testing.assert_allclose(
            found.cpu_s[:, j], service.instructions[j] * cycles / sheet.base_frequency_hz, rtol=1e-12
        )
        np.testing.assert_allclose(found.misses_per_instruction[:, j], np.tile(misses, (4, 1)), rtol=1e-12)
        np.testing.assert_array_equal(found.instructions[:, j], service.instructions[j])


@each_machine
def test_with_every_mechanism_off_utilisation_is_work_over_processors(name):
    service, machine = _service(NOTHING), _machine(name, NOTHING)
    rate_per_s = _load(service)
    found = demands(service, machine, rate_per_s, NOTHING)
    expected = np.minimum(1.0, (rate_per_s * found.cpu_s).sum(axis=1) / machine.vcpus)
    np.testing.assert_allclose(found.busy_share, expected, atol=1e-8)


def _factor(utilisation: float) -> float:
    u = min(utilisation, 0.97)
    return 1 + 0.3 * u + 0.67 * u**4.4 + 20 * (utilisation - u)


def _core(service: Activities, machine: Machine, a: int) -> float:
    """Cycles per instruction of an activity that never waits."""
    suits = sum(t * loading for t, loading in zip(service.traits[a].tolist(), machine.loadings.tolist(), strict=True))
    return service.core_cpi[a] * machine.core_cpi_factor * math.exp(suits)


def _between(
    service: Activities, machine: Machine, a: int, last: float, again: float
) -> tuple[float, float, float, float]:
    """Waits for memory beyond one for each miss, at the bus and at the link, lines over it, and misses that hide."""
    away = 1 - 1 / machine.sockets
    changed = again * away / (1 - machine.cache_cores[-1] / machine.cores) if away else 0.0
    hidden = min(service.prefetched[a], last - changed)
    if machine.nodes.count == 1:
        return 0.3 * changed, 0.0, 0.0, hidden
    crossing, farther = (1 - 1 / machine.nodes.count) * service.interleaved, machine.nodes.latency_ratio - 1
    waits = (last - changed - hidden) * crossing * farther + 0.3 * changed
    return 0.0, waits, (last - changed) * crossing + changed, hidden


def _costs(service: Activities, machine: Machine, held, latency: tuple[float, float], busy: float):
    """Misses, CPI, instructions and lines over the link of every activity, said in plain loops."""
    misses, cpi, instructions, crossing = [], [], [], []
    for a in range(len(service.names)):
        found, again = [_misses(service, a, held[0][a])], 0.0
        for level in range(1, len(held)):
            below = min(_misses(service, a, held[level][a]), found[-1])
            written = service.shared_write_share[a] * (1 - machine.cache_cores[level] / machine.cores)
            again = written * max(found[0] - below, 0.0)
            found.append(below + again)
        stall = sum((found[k] - found[k + 1]) * machine.cache_cycles[k + 1] for k in range(len(held) - 1))
        bus, link, lines, hidden = _between(service, machine, a, found[-1], again)
        waits = (found[-1] - hidden + bus) * latency[0] + link * latency[1]
        stall += waits * machine.memory_latency_s * machine.frequency_hz
        core = _core(service, machine, a) + service.branch_misses[a] * machine.branch_miss_cycles
        misses.append(found)
        cpi.append(core + stall / max(1.0, service.overlap[a] * machine.overlap_factor))
        instructions.append(service.instructions[a] / (1 - service.spin_share * busy))
        crossing.append(lines)
    return np.array(misses), np.array(cpi), np.array(instructions), np.array(crossing)


def _relief(service: Activities, machine: Machine) -> float:
    """How much of the slowdown a sibling causes that runs the long-run mix on an idle machine."""
    held = [np.full(len(service.names), size) for size in machine.cache_bytes]
    rate_per_s = service.rates(service.popularity[None])[0]
    _, cpi, instructions, _ = _costs(service, machine, held, (1.0, 1.0), 0.0)
    _, near, _, _ = _costs(service, machine, held, (0.0, 0.0), 0.0)
    work = rate_per_s * instructions
    return 1 + machine.sibling_relief * (0.5 - (work * (cpi - near)).sum() / (work * cpi).sum())


def _reference(service: Activities, machine: Machine, rate_per_s, steps=4000, kept=None):
    """One interval by small steps of all unknowns at once, or at a busy share that is kept: then the one asked for."""
    threads = machine.threads_per_core
    held = [np.full(len(service.names), size) for size in machine.cache_bytes]
    core = np.array([_core(service, machine, a) for a in range(len(service.names))])
    busy, latency, link_latency = kept or 0.0, 1.0, 1.0
    for _ in range(steps):
        misses, cpi, instructions, crossing = _costs(service, machine, held, (latency, link_latency), busy)
        slowdown = service.smt_slowdown * machine.smt_factor * core * _relief(service, machine)
        beside = slowdown * busy**2 if threads > 1 else 0.0
        wanted = (rate_per_s * instructions * (cpi + beside)).sum() / machine.vcpus / machine.frequency_hz
        traffic = (rate_per_s * instructions * misses[:, -1]).sum() * 64 * 1.3 / max(1.0, wanted)
        use, pace = rate_per_s * instructions * cpi, misses / cpi[:, None]
        for level, size in enumerate(machine.cache_bytes):
            others = (machine.cache_cores[level] - 1) * threads * busy + (threads - 1) * busy**2
            mean = (use * pace[:, level]).sum() / max(use.sum(), 1e-300)
            held[level] = held[level] + 0.1 * (size * pace[:, level] / (pace[:, level] + others * mean) - held[level])
        busy = busy + 0.1 * (min(1.0, wanted) - busy) if kept is None else kept
        latency += 0.02 * (_factor(traffic / machine.memory_bandwidth_bytes_per_s) - latency)
        if machine.nodes.count > 1:
            over = (rate_per_s * instructions * crossing).sum() * 64 * 1.3 / max(1.0, wanted)
            carried = machine.memory_bandwidth_bytes_per_s * machine.nodes.bandwidth_ratio
            link_latency += 0.02 * (_factor(over / carried) - link_latency)
    return instructions * cpi / machine.frequency_hz, instructions, misses, busy if kept is None else min(1.0, wanted)


@pytest.mark.parametrize(
    ("name", "per_s"),
    [
        ("piii", 6.0),
        ("pd4", 40.0),
        ("xeon_2h_1c_1p", 8.0),
        ("pres", 60.0),
        ("icelake_8380", 6e3),
        ("naples_7601", 2e3),
        ("mine", 2e4),
    ],
)
def test_the_stack_is_what_small_steps_of_a_plain_loop_come_to(name, per_s):
    service, machine = _service(types=2), _machine(name)
    rate_per_s = _load(service, [per_s])
    found = demands(service, machine, rate_per_s, ALL)
    cpu_s, instructions, misses, busy = _reference(service, machine, rate_per_s[0], 1000)
    np.testing.assert_allclose(found.cpu_s[0], cpu_s, rtol=1e-5)
    np.testing.assert_allclose(found.instructions[0], instructions, rtol=1e-5)
    np.testing.assert_allclose(found.misses_per_instruction[0], misses, rtol=1e-5)
    assert found.busy_share[0] == pytest.approx(busy, abs=1e-5)


FLEET = replace(NOTHING, bus=True, overlap=True, shared_cache=True)


def _in_kernel(service: Activities, machine: Machine, use, *, share_llc: bool):
    """CPI and misses that the fleet's kernel finds for residents who are so busy; one level of caches, two sets."""
    hot = np.zeros((slots.FIELDS, use.size))
    hot[[slots.SET1, slots.SET2]] = np.square(service.set_bytes)[:, None]
    hot[[slots.GAIN1, slots.GAIN2]] = (service.weights * np.square(service.set_bytes)).T
    hot[slots.AHEAD] = 0.0
    hot[slots.STALL_NOW] = 1 / np.maximum(1.0, service.overlap * machine.overlap_factor)
    hot[slots.CORE_NOW] = service.core_cpi * machine.core_cpi_factor
    hot[slots.ACCESS_NOW], hot[slots.FREQUENCY], hot[slots.USE] = 1.0, machine.frequency_hz, use
    hot[slots.SHARE] = machine.cache_bytes[0] / (use.size if share_llc else 1)
    contention = Contention(
        machine.memory_latency_s, machine.memory_bandwidth_bytes_per_s, 1.0, machine.cache_bytes[0], 1, 1, 1.0, 1.0,
        share_llc, True, 1e-12, 20_000,
    )  # fmt: skip
    solved(hot, use.size, contention, machine.memory_latency_s)
    return hot[slots.CPI], hot[slots.MPI]


def _two_sets(service: Activities) -> Activities:
    return replace(service, set_bytes=np.array([4e5, 6e6]), weights=np.tile([0.02, 0.01], (len(service.names), 1)))


def _one_level(machine: Machine, sharing: int) -> Machine:
    last = {name: np.array([asdict(machine)[name][-1]]) for name in ("cache_bytes", "cache_cycles")}
    return replace(machine, cache_cores=np.array([float(sharing)]), **last)


@pytest.mark.parametrize("per_s", [0.5, 20.0, 60.0])
def test_where_both_apply_private_caches_cost_what_they_cost_in_the_fleet(per_s):
    service, machine = _two_sets(_service(FLEET)), _one_level(_machine("pd4", PLAIN), 1)
    rate_per_s = _load(service, [per_s])
    found = demands(service, machine, rate_per_s, FLEET)
    assert found.busy_share[0] < 1.0
    cpi, misses = _in_kernel(service, machine, (rate_per_s * found.cpu_s)[0], share_llc=False)
    there = service.instructions > 0
    expected = (service.instructions * cpi / machine.frequency_hz)[there]
    np.testing.assert_allclose(found.cpu_s[0][there], expected, rtol=1e-6)
    np.testing.assert_allclose(found.misses_per_instruction[0, :, 0][there], misses[there], rtol=1e-6)


def test_where_both_apply_a_shared_cache_costs_what_it_costs_in_the_fleet():
    """A saturated machine with one type: as many residents as processors, always busy."""
    service, machine = _two_sets(_service(FLEET, types=1)), _one_level(_machine("pd4", PLAIN), 8)
    found = demands(service, machine, service.rates(np.array([[1e4]])), FLEET)
    alike = replace(service, **{name: np.repeat(getattr(service, name)[:1], 8, axis=0) for name in (
        "weights", "overlap", "core_cpi", "instructions")})  # fmt: skip
    cpi, misses = _in_kernel(alike, machine, np.ones(8), share_llc=True)
    assert found.busy_share[0] == 1.0
    np.testing.assert_allclose(found.cpu_s[0, 0], (alike.instructions * cpi / machine.frequency_hz)[0], rtol=1e-6)
    np.testing.assert_allclose(found.misses_per_instruction[0, 0, 0], misses[0], rtol=1e-6)


def test_memory_is_as_slow_as_was_measured_under_the_same_traffic():
    service, machine, how = _service(), _machine("piii"), replace(ALL, spin=False, sockets=False, prefetch=False)
    service, rate_per_s = replace(service, spin_share=0.0), _load(service, [1.0, 4.0, 7.0])
    found = demands(service, machine, rate_per_s, how)
    idle = demands(service, machine, rate_per_s, replace(how, bus=False))
    assert (found.busy_share < 1).all()
    moved = (rate_per_s * found.instructions * found.misses_per_instruction[..., -1]).sum(axis=1) * 64 * 1.3
    traffic = moved / machine.memory_bandwidth_bytes_per_s
    slower = (found.cpu_s - idle.cpu_s)[:, 0] / found.instructions[:, 0]
    wait_s = machine.memory_latency_s / max(1.0, service.overlap[0] * machine.overlap_factor)
    expected = latency_factor(traffic) - 1.0
    np.testing.assert_allclose(slower, found.misses_per_instruction[:, 0, -1] * wait_s * expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "name", "costlier"),
    [
        ("branches", "piii", True), ("overlap", "piii", False), ("bus", "piii", True), ("coherence", "piii", True),
        ("shared_cache", "pd4", True), ("smt", "xeon_2h_1c_1p", True), ("spin", "piii", True),
        ("effective_cache", "piii", True), ("prefetch", "piii", False), ("sockets", "piii", True),
        ("sockets", "icelake_8380", True),
    ],
)  # fmt: skip
def test_every_mechanism_makes_requests_more_expensive_and_overlap_cheaper(mechanism, name, costlier):
    def cost(mechanisms):
        service = _service(mechanisms, type_reuse_log_sd=1.0)  # far apart, some would not need what others take
        return demands(service, _machine(name, mechanisms), _load(service, [9.0]), mechanisms).cpu_s[0, :5]

    change = cost(ALL) / cost(replace(ALL, **{mechanism: False})) - 1
    assert (change > 1e-4).all() if costlier else (change < -1e-4).all()


@each_machine
def test_demands_grow_with_load_and_stay_finite_beyond_saturation(name):
    service, machine = _service(), _machine(name)
    rate_per_s = service.rates(np.outer(np.geomspace(0.1, 1e6, 12), service.popularity))
    found = demands(service, machine, rate_per_s, ALL)
    assert (np.diff(found.busy_share) >= 0).all()
    assert (np.diff(found.cpu_s[found.busy_share < 1, : service.types], axis=0) > 0).all()
    assert found.busy_share[-1] == 1.0
    assert np.isfinite(found.cpu_s).all()
    np.testing.assert_allclose(found.cpu_s[-1], found.cpu_s[-2], rtol=1e-3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(NAMES), per_s=st.floats(0.01, 300.0))
def test_there_is_a_fixed_point_in_any_world(seed, name, per_s):
    service = _service(seed=seed, miss_curve="cliffs" if seed % 3 == 0 else "power")
    found = demands(service, _machine(name, seed=seed), _load(service, [per_s] * 5, seed), ALL)
    assert (found.cpu_s[:, : service.types] > 0).all()
    assert (np.diff(found.misses_per_instruction, axis=2) <= 1e-15).all()
    assert ((found.busy_share > 0) & (found.busy_share <= 1)).all()


def test_there_is_a_fixed_point_where_a_busier_machine_asks_for_as_much_more_as_it_is_busier():
    """Sibling threads slow each other down: close to saturation steps towards the fixed point become tiny."""
    unrelieved = Hardware(sibling_relief=0.0)
    service, machine = _service(seed=4, smt_slowdown=1.4), _machine("xeon_2h_1c_1p", PLAIN, 4, unrelieved)
    per_s = np.linspace(0.41, 0.4205, 6) / _idle_s(service, machine)
    rate_per_s = service.rates(np.outer(per_s, service.popularity))
    busy_share = demands(service, machine, rate_per_s, ALL).busy_share
    assert busy_share[0] < 0.98
    assert busy_share[-1] == 1.0
    for rates, busy in zip(rate_per_s[::2], busy_share[::2].tolist(), strict=True):
        *_, wanted = _reference(service, machine, rates, 600, kept=busy)
        assert wanted == pytest.approx(busy, abs=1e-6)


@each_machine
def test_bisection_finds_what_iteration_finds(name, monkeypatch):
    service, machine = _service(), _machine(name)
    rate_per_s = _load(service, np.array([0.0, 0.1, 0.3, 0.9, 3.0]) / _idle_s(service, machine))
    iterated = demands(service, machine, rate_per_s, ALL)
    monkeypatch.setattr("sim.services.stack.ITERATIONS", 1)
    bisected = demands(service, machine, rate_per_s, ALL)
    np.testing.assert_allclose(bisected.cpu_s, iterated.cpu_s, rtol=1e-6)
    np.testing.assert_allclose(bisected.busy_share, iterated.busy_share, atol=1e-7)


MODERN = ("icelake_8380", "rome_7742", "graniterapids_6980p", "altra_q80_30")


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), name=st.sampled_from((*NAMES, *MODERN)), of_ceiling=st.floats(0.3, 2.0),
    off=st.sets(st.sampled_from([field.name for field in fields(Mechanisms)]), max_size=4),
    asked=st.fixed_dictionaries({
        "spin_share": st.sampled_from([0.0, 0.3, 0.9]), "smt_slowdown": st.sampled_from([0.3, 2.0]),
        "miss_curve": st.sampled_from(["power", "cliffs"]),
    }),
)  # fmt: skip
def test_a_hostile_world_has_a_fixed_point_too(seed, name, of_ceiling, off, asked):
    how = replace(ALL, **dict.fromkeys(off, False))
    service = _service(how, seed, **asked)
    machine = _machine(name, how, seed, Hardware(cpi_log_sd=0.3, latency_log_sd=0.36, smt_log_sd=0.6))
    per_s = of_ceiling / _idle_s(service, machine, how) * np.linspace(0.8, 1.2, 5)
    found = demands(service, machine, service.rates(np.outer(per_s, service.popularity)), how)
    assert np.isfinite(found.cpu_s).all()
    assert ((found.busy_share > 0) & (found.busy_share <= 1)).all()


def test_intervals_do_not_see_each_other():
    service, machine = _service(), _machine("xeon_2h_2c_2p")
    rate_per_s = _load(service)
    together = demands(service, machine, rate_per_s, ALL).cpu_s
    alone = np.concatenate([demands(service, machine, rate_per_s[[i]], ALL).cpu_s for i in range(4)])
    np.testing.assert_allclose(together, alone, rtol=1e-6)


def test_nothing_asked_for_is_nothing_done():
    service, machine = _service(NOTHING), _machine("pd4")
    found = demands(service, machine, np.zeros((2, 7)), ALL)
    np.testing.assert_array_equal(found.busy_share, 0.0)
    assert np.isfinite(found.cpu_s).all()
    assert demands(service, machine, np.zeros((0, 7)), ALL).cpu_s.shape == (0, 7)


def test_lines_that_others_wrote_miss_only_in_caches_that_are_not_shared_with_them():
    service = _service(shared_write_share=0.5)
    without = replace(ALL, coherence=False)
    for name, level, misses in (("piii", 1, True), ("piii", 0, False), ("xeon_1h_1c_1p", 1, False), ("pd4", 2, True)):
        machine = _machine(name)
        found = [demands(service, machine, _load(service, [0.0]), how) for how in (ALL, without)]
        more = found[0].misses_per_instruction[..., level] - found[1].misses_per_instruction[..., level]
        assert (more > 0).all() == misses
        assert (more >= 0).all()


def test_a_request_that_misses_more_holds_more_of_a_shared_cache():
    service = _two_sets(_service(FLEET, types=2, core_cpi_log_sd=0, overlap_log_sd=0))
    service = replace(service, weights=service.weights * np.array([1.0, 4.0, 1.0, 1.0])[:, None])
    machine = _one_level(_machine("pd4"), 8)
    found = demands(service, machine, service.rates(np.array([[1e3, 1e3]])), FLEET)
    seldom, often = found.misses_per_instruction[0, :2, 0] / service.weights[:2].sum(axis=1)
    assert often < seldom


@each_machine
def test_threads_without_busy_siblings_work_at_full_rate_and_others_below(name):
    service, machine = _service(), _machine(name)
    rates = np.array(smt_rates(service, machine, ALL))
    assert rates.size == machine.vcpus
    assert rates[0] == 1.0
    assert (np.diff(rates) > 0).all()
    if machine.threads_per_core == 1:
        np.testing.assert_array_equal(rates, np.arange(1, machine.vcpus + 1))
    else:
        assert machine.cores < rates[-1] < machine.vcpus
    np.testing.assert_array_equal(smt_rates(service, machine, NOTHING), np.arange(1, machine.vcpus + 1))


def test_two_threads_of_one_core_are_slowed_by_what_the_sibling_adds_to_cpi():
    service, machine = _service(NOTHING, types=1), _machine("xeon_2h_1c_1p", NOTHING)
    only = replace(NOTHING, smt=True)
    core = service.core_cpi[0] * machine.core_cpi_factor
    cpi = demands(service, machine, np.zeros((1, 3)), only).cpu_s[0, 0] * machine.frequency_hz / service.instructions[0]
    far = _misses(service, 0, machine.cache_bytes[-1]) * machine.memory_latency_s * machine.frequency_hz
    for relief in (0.0, 0.5, 1.0):
        slowed = 1 + service.smt_slowdown[0] * core / cpi * (1 + relief * (0.5 - far / cpi))
        found = smt_rates(service, replace(machine, sibling_relief=relief), only)
        np.testing.assert_allclose(found, [1.0, 2 / slowed], rtol=1e-12)


def test_siblings_that_wait_more_slow_each_other_less():
    """A service of more misses beside itself: its slowdown relative to what core cycles alone would make it."""
    machine, slower = _machine("xeon_2h_1c_1p"), list[float]()
    for misses in (0.005, 0.5):
        service = _service(misses_per_instruction=misses)
        both = [2 / smt_rates(service, replace(machine, sibling_relief=relief), ALL)[-1] - 1 for relief in (0.5, 0.0)]
        slower.append(both[0] / both[1])
    assert 1.25 > slower[0] > slower[1] + 0.05 > 0.8


def test_prefetchers_hide_a_part_of_the_misses_that_no_cache_removes_and_leave_their_traffic():
    only = replace(NOTHING, prefetch=True)
    service, machine = _one_type("rome_7742", only, prefetched_share=0.5)
    large = service.set_bytes > 16 * 2**20
    memory_cycles = machine.memory_latency_s * machine.frequency_hz
    hidden = _cycles(service, machine, NOTHING) - _cycles(service, machine, only)
    capacity = _misses(service, 0, machine.cache_bytes[-1])
    floor = float(service.weights[0, large].sum())
    assert hidden == pytest.approx(min(0.5 * floor, capacity) * memory_cycles, rel=1e-9)
    rate_per_s = service.rates(np.array([[1.0]]))
    found, without = (demands(service, machine, rate_per_s, how).misses_per_instruction for how in (only, NOTHING))
    np.testing.assert_array_equal(found, without)


@pytest.mark.parametrize("name", ["xeon_2h_2c_1p", "xeon_2h_2c_2p"])
def test_siblings_are_busy_with_the_square_of_the_chance_that_any_other_thread_is(name):
    """As in the fleet (`sim.fleet.kernel`): when half of the others are busy, a quarter of the full slowdown."""
    service, machine = _service(), _machine(name)
    busy = np.arange(1, machine.vcpus + 1)
    slower = busy / np.array(smt_rates(service, machine, ALL)) - 1
    others = (busy - 1) / (machine.vcpus - 1)
    assert slower[-1] > 0.1
    np.testing.assert_allclose(slower, others * others * slower[-1], rtol=1e-9)


def test_rates_of_the_wrong_shape_or_sign_are_refused():
    service, machine = _service(), _machine("piii")
    with pytest.raises(ValueError, match=r"rate_per_s has shape \(4, 3\), must be \(intervals, 7\)"):
        demands(service, machine, np.zeros((4, 3)), ALL)
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="rate_per_s must be finite and not negative"):
            demands(service, machine, np.full((1, 7), wrong), ALL)


def test_a_setting_leaves_out_what_is_switched_off():
    service, machine = _service(), _machine("xeon_2h_2c_2p")
    setting = set_up(service, machine, NOTHING, np.zeros((7, 1)))
    assert not setting.crowded.any()
    assert setting.line_s == setting.siblings == 0.0
    assert (setting.shared == 0).all()
    assert (setting.sibling_cpi == 0).all()
    assert (setting.stall == 1).all()


def _one_type(name: str, mechanisms, own=None, **application) -> tuple[Activities, Machine]:
    """A service of one type on a machine as its spec sheet has it."""
    world = ServiceWorld(platforms=(name,), mechanisms=mechanisms, own_platforms=own or {})
    return _service(mechanisms, types=1, **application), draw_machines(world)[name]


def _cycles(service: Activities, machine: Machine, mechanisms, per_s: float = 0.0) -> float:
    """Cycles of an instruction of a service's one type."""
    cpu_s = demands(service, machine, service.rates(np.array([[per_s]])), mechanisms).cpu_s[0, 0]
    return float(cpu_s * machine.frequency_hz / service.instructions[0])


def test_a_request_suits_a_core_as_its_traits_meet_the_loadings():
    only = replace(NOTHING, cores=True)
    for name, loadings in (("rome_7742", (-0.140, 0.150, -0.023)), ("haswell_2698v3", (0.0, 0.0, 0.0))):
        service, machine = _one_type(name, only, misses_per_instruction=1e-12)
        core = service.core_cpi[0] * PLATFORMS[name].core_cpi_factor
        expected = core * math.exp(float(service.traits[0] @ np.array(loadings)))
        assert _cycles(service, machine, only) == pytest.approx(expected, rel=1e-6)
        assert _cycles(service, _machine(name, NOTHING), NOTHING) == pytest.approx(core, rel=1e-6)


def test_code_that_never_stalls_retires_what_its_core_is_wide():
    for name, width in (("pd4", 3), ("haswell_2698v3", 4), ("turin_9755", 8)):
        service, machine = _one_type(name, NOTHING, core_cpi=0.01, misses_per_instruction=1e-12)
        assert _cycles(service, machine, NOTHING) == pytest.approx(1 / width, rel=1e-6)


def test_a_core_with_a_larger_window_overlaps_more_misses():
    """Ice Lake's 352 entries to Haswell's 192: to the power of a quarter."""
    only = replace(NOTHING, cores=True, overlap=True)
    waits = {}
    for window in (True, False):
        how = replace(only, cores=window)
        service, machine = _one_type("icelake_8380", how, overlap=3.0)
        service = replace(service, traits=0 * service.traits)
        core = service.core_cpi[0] * machine.core_cpi_factor
        waits[window] = _cycles(service, machine, how) - core
    assert waits[False] / waits[True] == pytest.approx((352 / 192) ** 0.25, rel=1e-9)


def test_platforms_suit_types_differently_by_as_much_as_measured_programs():
    """Log standard deviations of ratios to Haswell over ten programs: 0.05 to 0.21 (Chen 2024-2026)."""
    service = _service(types=200)
    assert service.traits[:-2].std(axis=0) == pytest.approx([1, 1, 1], abs=4.5 / np.sqrt(2 * 200))
    np.testing.assert_array_equal(service.traits[-2:], 0.0)
    for name, published in (("broadwell_2698v4", 0.05), ("skylake_6148", 0.15), ("rome_7742", 0.21)):
        spread = (service.traits[:-2] @ _machine(name).loadings).std()
        assert spread == pytest.approx(published, abs=0.04)


def test_traits_do_not_shift_what_else_is_drawn_and_a_mechanism_that_is_off_changes_nothing():
    with_traits, without = _service(), _service(PLAIN)
    for name in (field.name for field in fields(with_traits)):
        np.testing.assert_array_equal(getattr(with_traits, name), getattr(without, name))
    machine = _machine("rome_7742", PLAIN)
    np.testing.assert_array_equal(machine.loadings, 0.0)
    plain = replace(without, traits=0 * without.traits)
    found, expected = (demands(service, machine, _load(service), PLAIN).cpu_s for service in (without, plain))
    np.testing.assert_array_equal(found, expected)


SOCKETS = replace(NOTHING, coherence=True, sockets=True)


def test_a_line_that_the_other_socket_has_changed_takes_longer_on_a_bus_than_one_of_the_own_package():
    """Private caches, every line written by all: half of what misses for that comes from the other core."""
    cycles = {}
    for name in ("xeon_1h_1c_2p", "xeon_1h_2c_1p"):
        service, machine = _one_type(name, SOCKETS, shared_write_share=0.1)
        cycles[name] = _cycles(service, machine, SOCKETS)
    capacity = [_misses(service, 0, size) for size in machine.cache_bytes.tolist()]
    changed = service.shared_write_share[0] * 0.5 * (capacity[0] - capacity[1])
    more = 0.3 * changed * machine.memory_latency_s * machine.frequency_hz
    assert more > 0
    assert cycles["xeon_1h_1c_2p"] - cycles["xeon_1h_2c_1p"] == pytest.approx(more, rel=1e-9)


@pytest.mark.parametrize("transfer", [1.0, 1.3, 1.6, 2.0])
def test_two_sockets_of_a_core_lose_more_against_one_of_two_the_longer_lines_take_between_them(transfer):
    """Nothing published fixes it for front-side buses, so it is swept: at 1 sockets and cores are the same."""
    capacity = {}
    for name in ("xeon_1h_1c_2p", "xeon_1h_2c_1p"):
        service, machine = _service(), _machine(name, hardware=Hardware(bus_transfer=transfer))
        capacity[name] = saturation(HostedService(service, machine, ALL, service.other_tiers_s), service.popularity)
    lost = 1 - capacity["xeon_1h_1c_2p"] / capacity["xeon_1h_2c_1p"]
    assert lost == pytest.approx(0.0, abs=1e-12) if transfer == 1.0 else 0.1 < lost / (transfer - 1.0) < 0.13


@pytest.mark.parametrize(("name", "farther", "carried"), [("icelake_8380", 1.60, 0.32), ("skylake_6148", 1.61, 0.47)])
def test_interleaved_memory_is_the_mean_of_both_sockets_and_local_memory_is_the_own(name, farther, carried):
    how = replace(NOTHING, sockets=True)
    service, machine = _one_type(name, how)
    far = _misses(service, 0, machine.cache_bytes[-1]) * machine.memory_latency_s * machine.frequency_hz
    pooled = _cycles(service, machine, NOTHING)
    assert _cycles(service, machine, how) - pooled == pytest.approx(far * 0.5 * (farther - 1.0), rel=1e-9)
    local = replace(service, interleaved=False)
    assert _cycles(local, machine, how) == pytest.approx(pooled, rel=1e-12)
    assert (machine.nodes.latency_ratio, machine.nodes.bandwidth_ratio) == (farther, carried)


def test_memory_of_other_sockets_is_served_no_faster_than_links_carry_it():
    """Of four sockets' accesses three quarters cross a link, which carries 0.32 of what memory attains, 3 of 4 GB/s."""
    how = replace(NOTHING, sockets=True, bus=True)
    share_carried = list[float]()
    for interleaved, carried in ((True, 0.32 / 0.75 * 3e9), (False, 3e9)):
        service, machine = _one_type("mine", how, own=OWN)
        service = replace(service, interleaved=interleaved)
        found = demands(service, machine, service.rates(np.array([[1e6]])), how)
        per_request_s = found.cpu_s[0, 0] / machine.vcpus
        moved = service.instructions[0] * found.misses_per_instruction[0, 0, -1] * 64 * 1.3 / per_request_s
        share_carried.append(moved / carried)
    assert min(share_carried) >= 1.0
    assert max(share_carried) <= 1.5  # what the steep end of the curve lets through


def test_a_single_socket_and_a_machine_whose_sockets_do_not_count_are_the_same():
    service = _service()
    for name, how in (("rome_7742", ALL), ("xeon_1h_2c_1p", ALL), ("icelake_8380", replace(ALL, sockets=False))):
        machine = _machine(name)
        off = replace(machine, nodes=MemoryNodes(1), transfer=1.0)
        found, expected = (demands(service, each, _load(service), how).cpu_s for each in (machine, off))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["piii", "rome_7742"])
def test_at_half_the_clock_cores_and_caches_take_twice_as_long_and_memory_as_long(name):
    service, sheet = _service(NOTHING, types=1), PLATFORMS[name]
    clock_hz = sheet.base_frequency_hz / 2
    world = ServiceWorld(platforms=(name,), measured=(name,), mechanisms=NOTHING, clocks={name: clock_hz})
    slow, base = (
        demands(service, machine, np.zeros((1, 3)), NOTHING).cpu_s[0, 0]
        for machine in (draw_machines(world)[name], _machine(name, NOTHING))
    )
    last = _misses(service, 0, sheet.caches[-1].size_bytes)
    memory_s = service.instructions[0] * last * sheet.memory_latency_s
    assert slow - memory_s == pytest.approx(2 * (base - memory_s), rel=1e-9)
