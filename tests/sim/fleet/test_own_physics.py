"""Governors and mechanisms from outside: those that are said like ours make the same day, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from models.code.parts import PartError
from models.fleet.world import Governor, Power, World
from scenarios.kinds import KINDS
from sim.fleet import kernel, slots
from sim.fleet.arms import run_arm
from sim.fleet.interference import LINE_BYTES, WRITE_BACK, slow_down_by
from sim.fleet.layout import Contention, Residents
from sim.fleet.own_physics import GOVERNOR, MECHANISM, WAYS, OwnFunctions, own_function
from tests.helpers.small_days import SHARP, arrays, small_and_busy

CLOCKS = {
    "performance": "limit_hz",
    "ondemand": "min(limit_hz, max(min_hz, max_hz * utilisation / 0.3))",
    "stall_aware": "max(min_hz, limit_hz - 3e8) if stalled > {threshold} else limit_hz",
}


def written(folder, parameters, result):
    """Write a function of these parameters into a file from outside; return its name."""
    file = folder / "mine.py"
    file.write_text(f"import math\n\n\ndef mine({', '.join(parameters)}):\n    return {result}\n")
    return f"{file}:mine"


def with_own(folder, governor):
    """One of our governors, as people would write it."""
    name = written(folder, GOVERNOR, CLOCKS[governor.policy].format(threshold=governor.stall_threshold))
    return replace(governor, policy=name)


def day_of(arm_and_day, **changed):
    day, arm = arm_and_day
    return arrays(run_arm(replace(day, world=replace(day.world, **changed)), arm))


@pytest.mark.parametrize("how", ["capped", "budget", "ondemand", "stall_aware", "feature"])
def test_a_governor_written_like_ours_makes_the_same_day(tmp_path, how):
    day, arm = small_and_busy(how)
    world = day.world
    if how == "feature":
        changed = {"feature": replace(world.feature, governor=with_own(tmp_path, world.feature.governor))}
    else:
        changed = {"power": replace(world.power, governor=with_own(tmp_path, world.power.governor))}
    ours, own = day_of((day, arm)), day_of((day, arm), **changed)
    for name, array in ours.items():
        np.testing.assert_array_equal(own[name], array, err_msg=name)


def test_between_two_states_a_core_dithers_and_one_kernel_calls_all(tmp_path):
    states, kernels = [], set()
    for clock in ("min_hz", "min_hz + 0.5e8"):
        power = Power(Governor(written(tmp_path, GOVERNOR, clock)))
        states.append(np.unique(day_of(small_and_busy("gaps"), power=power)["machine_trace"][..., 0]).tolist())
        kernels.add(len(kernel._simulated.overloads))
    assert states == [[1.0e9, 1.2e9], [1.05e9, 1.25e9]]  # two platforms
    assert len(kernels) == 1


def test_a_mechanism_that_slows_nobody_down_changes_nothing(tmp_path):
    changed = {"interference": replace(SHARP, mechanism=written(tmp_path, MECHANISM, "1.0"))}
    ours, own = (day_of(small_and_busy("plain"), **each) for each in ({}, changed))
    for name, array in ours.items():
        np.testing.assert_array_equal(own[name], array, err_msg=name)


def test_a_mechanism_doubles_the_core_cpi_of_those_whose_speed_it_halves(tmp_path):
    """Cycles but for stalls over instructions, stay by stay and epoch by epoch."""
    half = written(tmp_path, MECHANISM, "0.5 if neighbour_utilisation > 0.05 else 1.0")
    quiet = replace(SHARP, smt=False)
    core = [
        (trace[:, 4] / trace[:, 1])[trace[:, 1] > 0]
        for mechanism in (None, half)
        for trace in [day_of(small_and_busy("gaps"), interference=replace(quiet, mechanism=mechanism))["trace"]]
    ]
    slower = np.round(core[1] / core[0], 9)
    assert set(slower) == {1.0, 2.0}


def test_what_a_mechanism_is_given_is_of_the_neighbours(tmp_path):
    rng = np.random.default_rng(4)
    hot = np.zeros((slots.FIELDS, 3))
    fields = [slots.USE, slots.FREQUENCY, slots.CPI, slots.MPI, slots.SHARE, slots.SMT, slots.CORE_NOW]
    hot[fields] = rng.uniform(0.5, 2.0, (len(fields), 3))
    use, hz, cpi, mpi, share, smt, core = hot[fields].copy()
    terms = " + ".join(f"{10.0**-k} * {name}" for k, name in enumerate(MECHANISM))
    name = written(tmp_path, MECHANISM, terms)
    own = OwnFunctions(mechanism=own_function(world_of(mechanism=name), ("interference", "mechanism"))).physics()
    contention = Contention(1e-7, 64.0, 1.0, 4.0, 1, 1, 1.0, 1.0, True, True, 1e-4, 10)
    slow_down_by.py_func(own, Residents(hot, np.zeros((slots.MARKS, 3), np.int64), 3), contention, 8.0, 0.25)
    traffic = use * hz / cpi * mpi * LINE_BYTES * WRITE_BACK / 64.0
    others = [each.sum() - each for each in (use / 8.0, traffic, share / 4.0)]
    speed = sum(10.0**-k * given for k, given in enumerate([*others, 0.25, mpi, smt]))
    np.testing.assert_allclose(hot[slots.CORE_NOW], core / speed, rtol=1e-12)


def world_of(**interference):
    day, _ = small_and_busy("plain")
    return replace(day.world, interference=replace(SHARP, **interference))


@pytest.mark.parametrize(
    ("clock", "problem"),
    [
        ("limit_hz / 1e9", r"mine\.py:4: mine\(.*limit_hz=3.6e\+09.*\): should return a clock in Hz, .* got 3\.6"),
        ("max_hz + 1e8", "got 3.7e"),
        ("math.nan", "got nan"),
        ("-limit_hz", "got -3.6e"),
        ("limit_hz / (min_hz - min_hz)", r"mine\.py:5: ZeroDivisionError"),
        ("limit_hz.mine", r"mine\.py:5: mine: cannot be compiled: Unknown attribute 'mine'"),
    ],
)
def test_what_a_governor_does_wrong_is_its_authors(tmp_path, clock, problem):
    power = Power(Governor(written(tmp_path, GOVERNOR, clock)))
    with pytest.raises(PartError, match=problem):
        day_of(small_and_busy("plain"), power=power)


@pytest.mark.parametrize("speed", ["0.0", "-1.0", "math.nan", "math.inf"])
def test_a_speed_is_a_number_above_0(tmp_path, speed):
    changed = replace(SHARP, mechanism=written(tmp_path, MECHANISM, speed))
    with pytest.raises(PartError, match=r"mine\.py:4: mine\(.*smt_slowdown=.*\): should return a speed above 0, got"):
        day_of(small_and_busy("plain"), interference=changed)


def test_a_function_has_the_parameters_that_it_is_called_with(tmp_path):
    way = ("power", "governor", "policy")
    assert own_function(World(), way) is None
    with pytest.raises(PartError, match=r"mine\.py:4: mine: should be a function of \(utilisation, .*, got \(x\)"):
        own_function(World(power=Power(Governor(written(tmp_path, ["x"], "x")))), way)


def test_scenarios_look_for_parts_wherever_a_world_may_name_such_a_function():
    for kind in ("fleet", "profile"):
        assert set(WAYS) <= {keys for keys, reference in KINDS[kind].files.items() if reference == "part"}
