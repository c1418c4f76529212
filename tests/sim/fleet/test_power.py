"""The compiled governor takes the highest state that fits, as its policy says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.code.compiled import of_numbers, with_functions
from models.platforms import PLATFORMS
from sim.fleet import power, slots
from sim.fleet.layout import GOVERNOR, PLATFORM, OwnGovernor, Residents


def machine(name="haswell_2698v3"):
    sheet = PLATFORMS[name]
    record = np.zeros(1, PLATFORM)
    record["cores"], record["threads"] = sheet.cores, sheet.vcpus
    record["min_hz"], record["max_hz"] = sheet.min_frequency_hz, sheet.max_frequency_hz
    record["step_hz"], record["base_hz"] = sheet.frequency_step_hz, sheet.base_frequency_hz
    return record[0]


def governed(policy, room, *, use=1.0, activity=(0.5, 0.2)):
    """Govern a computing and a stalling resident; return P-state, capped and both frequencies."""
    hot = np.zeros((slots.FIELDS, 2))
    hot[slots.USE], hot[slots.CORE_NOW], hot[slots.CPI] = use, 1.0, [1.1, 4.0]
    governor = np.array([(policy, 0.8, 0.5, 3e8)], GOVERNOR)[0]
    here = Residents(hot, np.zeros((slots.MARKS, 2), np.int64), 2)
    state, capped = power.govern(here, machine(), governor, np.array(activity), room)
    return state, capped, *hot[slots.FREQUENCY]


def dynamic_power(frequency_hz):
    relative = frequency_hz / 2.3e9
    return relative * (0.6 + 0.4 * relative) ** 2


@settings(deadline=None)
@given(room=st.floats(0.0, 3.0), active=st.floats(0.0, 1.2), stalled=st.floats(0.0, 1.2), policy=st.integers(0, 2))
def test_the_chosen_state_is_the_highest_that_fits(room, active, stalled, policy):
    state, capped, computing, stalling = governed(policy, room, use=30.0, activity=(active, stalled))
    top = governed(policy, math.inf, use=30.0)[0]

    def drawn(state_hz):
        low = max(state_hz - 3e8, 1.2e9) if policy == power.STALL_AWARE else state_hz
        return active * dynamic_power(state_hz) + stalled * dynamic_power(low)

    assert computing == state
    assert stalling == pytest.approx(max(state - 3e8, 1.2e9) if policy == power.STALL_AWARE else state)
    assert capped == (state < top - 5e7)
    assert drawn(state) <= room * (1 + 1e-9) or state == pytest.approx(1.2e9)
    assert not capped or drawn(state + 1e8) > room * (1 - 1e-9)


@settings(deadline=None)
@given(st.tuples(st.floats(-1.0, 3.0), st.floats(-1.0, 3.0)), st.integers(0, 2))
def test_more_room_never_lowers_a_frequency(rooms, policy):
    low, high = (governed(policy, room) for room in sorted(rooms))
    assert (np.array(low[2:]) <= np.array(high[2:])).all()


@settings(deadline=None)
@given(busy=st.floats(0.0, 64.0))
def test_ondemand_takes_the_lowest_state_that_serves_at_its_threshold(busy):
    state = governed(power.ONDEMAND, math.inf, use=busy / 2)[0]
    wish = min(2.8e9, 2.8e9 * busy / (64 * 0.8))
    assert state >= wish - 1.0
    assert state == pytest.approx(1.2e9) or state - 1e8 < wish


def slower_where_it_stalls(utilisation, stalled, limit_hz, min_hz, max_hz):
    return max(min_hz, limit_hz - 1e9 * stalled)


@pytest.mark.parametrize("room", [0.1, 0.4, 0.6, 0.65, 0.7, 2.0])
def test_an_own_governor_has_the_highest_limit_at_which_the_power_of_all_its_clocks_fits(room):
    """Two residents stall little and one much; in the epoch before the activity of such was 0.5 and 0.3."""
    sheet, activity = machine(), np.array([0.5, 0.3])
    stalled, use = np.array([0.1, 0.3, 0.8]), np.array([3.0, 1.0, 2.0])
    hot = np.zeros((slots.FIELDS, 3))
    hot[slots.USE], hot[slots.CORE_NOW], hot[slots.CPI] = use, 1.0 - stalled, 1.0
    here = Residents(hot, np.zeros((slots.MARKS, 3), np.int64), 3)
    own = OwnGovernor(of_numbers(slower_where_it_stalls, 5), 0.5, 0.5, np.zeros(8))
    arguments = own, here, sheet, activity, room
    state, capped = with_functions(power.govern_by, *arguments)(*arguments)

    def clocks(limit_hz):
        return np.clip(np.ceil((limit_hz - 1e9 * stalled) / 1e8 - 1e-6) * 1e8, sheet["min_hz"], limit_hz)

    def drawn(limit_hz):
        each, weight = dynamic_power(clocks(limit_hz)), use * (0.45 + 0.55 * (1.0 - stalled))
        return activity @ [np.average(each[:2], weights=weight[:2]), each[2]]

    limits_hz = np.arange(sheet["max_hz"], sheet["min_hz"] - 1.0, -1e8)
    chosen_hz = next((limit_hz for limit_hz in limits_hz if drawn(limit_hz) <= room), limits_hz[-1])
    np.testing.assert_allclose(hot[slots.FREQUENCY], clocks(chosen_hz), rtol=1e-12)
    assert (state, capped) == (chosen_hz, chosen_hz < sheet["max_hz"])


@pytest.mark.parametrize("step_hz", [1.6e9, 0.7e9])
def test_the_lowest_clock_is_the_last_where_the_steps_do_not_end_at_it(step_hz):
    """1.3 GHz is less than one step of 1.6 GHz below 2.8 GHz, and two steps of 0.7 GHz and a rest of 0.1 GHz."""
    sheet, hot = machine(), np.ones((slots.FIELDS, 1))
    sheet["min_hz"], sheet["max_hz"], sheet["step_hz"] = 1.3e9, 2.8e9, step_hz
    governor = np.array([(0, 0.8, 0.5, 3e8)], GOVERNOR)[0]
    here = Residents(hot, np.zeros((slots.MARKS, 1), np.int64), 1)
    assert power.govern(here, sheet, governor, np.array([1.0, 0.0]), 0.1) == (1.3e9, True)
    own = OwnGovernor(of_numbers(slower_where_it_stalls, 5), 0.5, 0.5, np.zeros(8))
    arguments = own, here, sheet, np.array([1.0, 0.0]), 0.1
    assert with_functions(power.govern_by, *arguments)(*arguments) == (1.3e9, True)
