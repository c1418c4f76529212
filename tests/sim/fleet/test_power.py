"""The compiled governor takes the highest state that fits, as its policy says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.platforms import PLATFORMS
from sim.fleet import power, slots
from sim.fleet.layout import GOVERNOR, PLATFORM, Residents


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
