"""A machine with requests on it: its states beside the epoch kernel's, and what they are by construction."""

from dataclasses import replace

import numpy as np
import pytest

from models.fleet.inventory import build_machines
from models.fleet.world import Governor, Interference
from models.platforms import PLATFORMS
from models.queues.machine import Neighbours, ServingMachine
from sim.fleet import served_machine
from sim.fleet.arms import nowhere, run_arm
from sim.fleet.day import day_of
from sim.fleet.served_machine import (
    POWER_W,
    RESIDUAL,
    SLOWDOWN,
    SPEED,
    STATE_HZ,
    TRAFFIC,
    UTILISATION,
    machine_states,
    residents_of,
    smooth_rates,
    world_of,
)
from sim.fleet.timeline import from_placement

PLAIN = ServingMachine()
UNCOUPLED = ServingMachine(
    "graviton_4", cap_share=10.0, interference=Interference(llc=False, bandwidth=False, smt=False)
)
"""All its cores run at one clock, however many are active."""


def still(jobs):
    """The same jobs, whose behaviour and load never change."""
    nothing = np.zeros(jobs.count)
    return replace(jobs, instance_log_sd=nothing, job_log_sd=nothing, diurnal_amplitude=nothing)


def constant_load(machine, servers, busy):
    """The machine in a fleet for four hours, epoch by epoch: the service keeps so many threads busy all the time."""
    world = replace(world_of(machine, 1, 4 * 3600.0), simulation="epochs")
    recording = replace(world.recording, instance_epoch_share=1.0, machine_epochs=True)
    world = replace(world, recording=recording)
    jobs = still(residents_of(world, machine, servers))
    jobs = replace(jobs, utilisation=np.append(busy / servers, jobs.utilisation[1:]))
    timeline = from_placement(world, 1, np.arange(jobs.count), np.zeros(jobs.count, np.int64))
    day = day_of(world, build_machines(world), jobs, timeline)
    [block] = run_arm(day, nowhere(day), threads=1)
    return block.trace.reshape(-1, world.epochs, 5)[:, -1], block.machine_trace[0, -1]


@pytest.mark.parametrize("policy", ["performance", "ondemand"])
def test_a_state_is_what_the_epoch_kernel_comes_to_with_so_many_threads_busy(monkeypatch, policy):
    """The governor of a state (n, n) sees what it is in, like one that looks every epoch of a constant load."""
    machine = replace(PLAIN, steps=replace(PLAIN.steps, load_log_sd=0.0), governor=Governor(policy))
    monkeypatch.setattr(served_machine, "residents_of", lambda *asked: still(residents_of(*asked)))
    states = machine_states(machine, 8, 1, 300.0)
    trace, whole = constant_load(machine, 8, 5.0)
    alone, _ = constant_load(machine, 8, 0.0)
    state = states.states[0, -1 if states.states.shape[1] == 1 else 5, 5]
    assert states.alone_s / (trace[0, 3] / trace[0, 1]) == pytest.approx(state[SPEED], rel=2e-3)
    numbers = [state[column] for column in (STATE_HZ, POWER_W, UTILISATION, TRAFFIC)]
    assert whole == pytest.approx(numbers, rel=2e-3)
    if policy == "performance":
        beside, before = (rows[1:, 3] / rows[1:, 1] for rows in (trace, alone))
        rate = alone[1:, 1]
        assert (rate @ beside) / (rate @ before) == pytest.approx(state[SLOWDOWN], rel=2e-3)


def test_without_coupling_every_request_runs_as_if_alone_and_nobody_is_slowed_down():
    for policy in ("performance", "ondemand"):
        governor = Governor(policy, ondemand_threshold=1e-9)
        states = machine_states(replace(UNCOUPLED, governor=governor), 4, 1, 900.0).states
        np.testing.assert_array_equal(states[..., 1:, SPEED], 1.0)
        np.testing.assert_allclose(states[..., SLOWDOWN], 1.0, rtol=1e-12)


def test_busy_threads_heat_the_machine_slow_the_neighbours_down_and_are_solved_closely():
    states = machine_states(PLAIN, 16, 1, 600.0).states[:, 0]
    assert (np.diff(states[..., POWER_W]) > 0.0).all()
    assert (np.diff(states[..., SLOWDOWN]) > 0.0).all()
    assert (states[:, 0, SLOWDOWN] == 1.0).all()
    assert states[..., RESIDUAL].max() <= 1e-7
    assert (states[:, 1:, SPEED] < 1.2).all()


def test_best_effort_neighbours_can_be_held_back():
    """By their memory requests or their cache ways; requests, which are latency-critical, gain."""
    plain = machine_states(PLAIN, 8, 1, 60.0)
    for key, value in (("best_effort_delay", 3.0), ("best_effort_ways", 0.1)):
        held = machine_states(replace(PLAIN, interference=Interference(**{key: value})), 8, 1, 60.0)
        assert held.alone_s == plain.alone_s
        assert (held.states[0, 0, 1:, SPEED] > plain.states[0, 0, 1:, SPEED]).all(), key


def test_a_platform_of_ones_own_is_what_its_sheet_says():
    mine = replace(PLATFORMS["haswell_2698v3"].sheet, extends="haswell_2698v3")
    machine, slower = replace(PLAIN, platform="mine"), replace(mine, memory_latency_s=2.0 * mine.memory_latency_s)
    same, other = (machine_states(machine, 2, 1, 60.0, {"mine": sheet}) for sheet in (mine, slower))
    plain = machine_states(PLAIN, 2, 1, 60.0)
    np.testing.assert_array_equal(same.states, plain.states)
    assert other.alone_s > 1.2 * plain.alone_s
    rates = [smooth_rates(machine, 2, 1, np.ones(1), {"mine": sheet}).rates for sheet in (mine, slower)]
    assert (rates[1] != rates[0]).all()


def test_a_later_end_adds_steps_and_changes_none():
    short, long = (machine_states(PLAIN, 4, 1, until_s) for until_s in (300.0, 900.0))
    steps = short.start_s.size
    assert long.start_s.size == 3 * steps == 15
    np.testing.assert_array_equal(long.states[:steps], short.states)


def test_a_governor_that_saw_a_busier_machine_wishes_higher_clocks():
    governor = Governor("ondemand", ondemand_threshold=0.95)
    states = machine_states(replace(PLAIN, governor=governor), 16, 1, 60.0)
    hz = states.states[0, :, 8, STATE_HZ]
    assert states.look_s == 1.0
    assert (np.diff(hz) > 0.0).all()


def test_a_lone_service_has_one_step_and_turbo_beyond_that_of_all_cores():
    states = machine_states(ServingMachine(neighbours=None), 2, 1, 9000.0)
    assert states.start_s.tolist() == [0.0]
    assert states.neighbours == 0
    assert states.states[0, 0, 1, STATE_HZ] == 3.6e9
    assert states.states[0, 0, 1, SPEED] > 1.0


def test_quotas_of_neighbours_fill_what_is_allocated():
    for share in (0.3, 0.86):
        machine = replace(PLAIN, neighbours=Neighbours(share))
        jobs = residents_of(world_of(machine, 3, 60.0), machine, 8)
        assert jobs.instance_quota_vcpu[0] == 8.0
        assert jobs.instance_quota_vcpu.sum() == pytest.approx(share * 64)
        assert jobs.instances.tolist() == [1] * jobs.count


def test_a_smooth_stream_has_one_speed_a_step_between_those_of_the_states_around_it():
    states, rates = machine_states(PLAIN, 8, 1, 300.0), smooth_rates(PLAIN, 8, 1, np.array([4.0])).factor
    np.testing.assert_allclose(rates, np.broadcast_to(rates[..., :1], rates.shape), rtol=1e-15)
    busy = 4.0 / rates[:, 0, 0]
    speed = [np.interp(n, np.arange(1, 9), row) for n, row in zip(busy, states.states[:, 0, 1:, SPEED], strict=True)]
    np.testing.assert_allclose(rates[:, 0, 0], speed, rtol=1e-3)


def test_servers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="65 servers on haswell_2698v3, which has 64 hardware threads"):
        machine_states(PLAIN, 65, 1, 60.0)
    with pytest.raises(ValueError, match=r"60 servers leave no room within 0\.86 of 64 hardware threads"):
        machine_states(PLAIN, 60, 1, 60.0)


def test_a_governor_of_ones_own_acts_and_its_fault_is_its_authors(tmp_path):
    head = "def {}(utilisation, stalled, limit_hz, min_hz, max_hz):\n    return "
    (tmp_path / "mine.py").write_text(
        head.format("slow") + "min_hz\n" + head.format("wrong") + "limit_hz + 1e9 * utilisation\n"
    )
    slow, wrong = (replace(PLAIN, governor=Governor(f"{tmp_path}/mine.py:{name}")) for name in ("slow", "wrong"))
    assert (machine_states(slow, 1, 1, 60.0).states[..., STATE_HZ] == 1.2e9).all()
    with pytest.raises(ValueError, match="should return a clock in Hz, from min_hz to limit_hz"):
        machine_states(wrong, 1, 1, 60.0)
