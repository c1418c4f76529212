"""Governors set the clocks that their policy says, under a limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.code.compiled import of_numbers, with_functions
from models.platforms import PLATFORMS
from sim.fleet import power, slots
from sim.fleet.layout import GOVERNOR, OWN_POLICY, PLATFORM, OwnGovernor, Residents


def machine():
    sheet = PLATFORMS["haswell_2698v3"]
    record = np.zeros(1, PLATFORM)
    record["cores"], record["threads"], record["sockets"] = sheet.cores, sheet.vcpus, sheet.sockets
    record["min_hz"], record["max_hz"] = sheet.min_frequency_hz, sheet.max_frequency_hz
    record["step_hz"], record["single_hz"] = sheet.frequency_step_hz, 3.6e9
    return record[0]


def never(_utilisation, _stalled, _limit_hz, _min_hz, _max_hz):
    return 0.0


def governed(policy, limit_hz, *, utilisation=0.5, waited=(0.1, 0.7), function=never):
    """Set the clocks of residents that waited for memory so much; return the P-state and the clocks."""
    hot = np.zeros((slots.FIELDS, len(waited)))
    hot[slots.WAITED] = waited
    governor = np.array([(policy, 0.8, 0.5, 3e8)], GOVERNOR)[0]
    here = Residents(hot, np.zeros((slots.MARKS, len(waited)), np.int64), len(waited))
    own = OwnGovernor(of_numbers(function, 5), utilisation, 3.6e9, np.zeros(8))
    arguments = own, here, machine(), governor, limit_hz
    return with_functions(power.set_clocks, *arguments)(*arguments), hot[slots.FREQUENCY].tolist()


@settings(deadline=None, max_examples=30)
@given(limit_hz=st.floats(1.2e9, 3.6e9))
def test_performance_runs_at_the_limit_and_stall_aware_slows_down_who_stalls(limit_hz):
    assert governed(0, limit_hz) == (limit_hz, [limit_hz, limit_hz])
    assert governed(power.STALL_AWARE, limit_hz) == (limit_hz, [limit_hz, max(1.2e9, limit_hz - 3e8)])


@settings(deadline=None, max_examples=30)
@given(busy=st.floats(0.0, 64.0))
def test_ondemand_takes_the_clock_that_serves_at_its_threshold(busy):
    state, clocks = governed(power.ONDEMAND, 3.6e9, utilisation=busy / 64)
    assert clocks == [state, state] == pytest.approx([min(3.6e9, max(1.2e9, 3.6e9 * busy / 64 / 0.8))] * 2)
    assert governed(power.ONDEMAND, 1.5e9, utilisation=busy / 64)[0] == min(state, 1.5e9)


def slower_where_it_stalls(_utilisation, stalled, limit_hz, min_hz, _max_hz):
    return max(min_hz, limit_hz - 1e9 * stalled)


def test_an_own_governor_is_asked_for_each():
    state, clocks = governed(OWN_POLICY, 2.8e9, waited=(0.125, 0.7), function=slower_where_it_stalls)
    assert state == 2.8e9
    np.testing.assert_allclose(clocks, [2.675e9, 2.1e9])
