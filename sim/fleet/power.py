"""How fast a machine runs and what power it draws: the governor under a power cap, compiled."""

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from sim.fleet.layout import Residents
from sim.fleet.slots import CORE_NOW, CPI, FREQUENCY, USE

ONDEMAND, STALL_AWARE = 1, 2
SHARED_CORE_POWER = 0.4  # part of a core's power that a thread saves when its sibling is busy too
STALLED_ACTIVITY = 0.45  # power of a stalled core relative to a computing one
VOLTAGE_FLOOR = 0.6  # voltage at frequency f relative to base is VOLTAGE_FLOOR + (1 − VOLTAGE_FLOOR) · f / base


@njit(cache=False, inline="always")
def _power_per_activity(frequency: float, base: float) -> float:
    """Return a busy core's power at `frequency` relative to `base`: f V(f)²."""
    relative = frequency / base
    voltage = VOLTAGE_FLOOR + (1.0 - VOLTAGE_FLOOR) * relative
    return relative * voltage * voltage


@njit(cache=False, error_model="numpy")
def _wish(use: Floats, n: int, platform: np.record, governor: np.record) -> float:
    """Return the P-state that the policy would like without a power cap."""
    if governor.policy != ONDEMAND:
        return float(platform.max_hz)
    wish = platform.max_hz * use[:n].sum() / (platform.threads * governor.ondemand_threshold)
    steps = np.ceil((wish - platform.min_hz) / platform.step_hz)
    return float(min(platform.max_hz, max(platform.min_hz, platform.min_hz + platform.step_hz * steps)))


@njit(cache=False, error_model="numpy")
def govern(
    residents: Residents, platform: np.record, governor: np.record, activity: Floats, room: float
) -> tuple[float, bool]:
    """Set every resident's frequency; return the machine's P-state and whether the cap lowered it.

    `activity` is that of the epoch before, below and above the stall threshold; at base frequency it may be `room`.
    """
    hot, _, n = residents
    top, step, least = _wish(hot[USE], n, platform, governor), platform.step_hz, platform.min_hz
    slower = governor.step_down_hz if governor.policy == STALL_AWARE else 0.0
    state = top
    while True:
        low = max(state - slower, least)
        power = activity[0] * _power_per_activity(state, platform.base_hz)
        power += activity[1] * _power_per_activity(low, platform.base_hz)
        if power <= room or state <= least + 0.5 * step:
            break
        state -= step
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        hot[FREQUENCY, i] = low if slower > 0.0 and stall > governor.stall_threshold else state
    return state, state < top - 0.5 * step


@njit(cache=False, error_model="numpy")
def heat(residents: Residents, platform: np.record, threshold: float, sibling: float, activity: Floats) -> float:
    """Set the machine's activities below and above the stall threshold; return its power above idle, relative."""
    hot, _, n = residents
    core_share = (1.0 - SHARED_CORE_POWER * sibling) / platform.cores
    activity[0] = activity[1] = dynamic = 0.0
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        active = hot[USE, i] * core_share * (STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * (1.0 - stall))
        activity[1 if stall > threshold else 0] += active
        dynamic += active * _power_per_activity(hot[FREQUENCY, i], platform.base_hz)
    return dynamic
