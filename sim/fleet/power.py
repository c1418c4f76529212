"""How fast a machine runs and what power it draws: the governor under a power cap, compiled."""

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from models.fleet.packages import FANS, LEAKAGE, SUPPLY, TURBO_SHARE, UNCORE_J_PER_BYTE
from models.fleet.packages import VOLTAGE_FLOOR as FLOOR
from sim.fleet.layout import OWN_POLICY, OwnGovernor, Residents
from sim.fleet.slots import CORE_NOW, CPI, FREQUENCY, USE, WAITED

ONDEMAND, STALL_AWARE = 1, 2
SHARED_CORE_POWER = 0.4  # part of a core's power that a thread saves when its sibling is busy too
STALLED_ACTIVITY = 0.45  # power of a stalled core relative to a computing one
ROUNDING = 1e-9  # by which part clocks may be off
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
        if power <= room or state <= least * (1.0 + ROUNDING):
            break
        state = max(least, state - step)
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        hot[FREQUENCY, i] = low if slower > 0.0 and stall > governor.stall_threshold else state
    return state, state < top * (1.0 - ROUNDING)


@njit(cache=False, error_model="numpy")
def _asked(own: OwnGovernor, platform: np.record, stalled: float, limit_hz: float) -> float:
    """Return the P-state that somebody's own governor asks for: the lowest that is no lower than what it returns."""
    call, least, most = own.call, platform.min_hz, max(platform.max_hz, limit_hz)
    call[1], call[2], call[3], call[4], call[5], call[-1] = own.utilisation, stalled, limit_hz, least, most, np.nan
    wish = own.function(own.utilisation, stalled, limit_hz, least, most)
    call[-1] = wish
    if not least * (1.0 - ROUNDING) <= wish <= limit_hz * (1.0 + ROUNDING):
        raise ValueError("no clock from min_hz to limit_hz")
    steps = np.ceil((wish - least) / platform.step_hz - ROUNDING)
    return float(min(limit_hz, max(least, least + platform.step_hz * steps)))


@njit(cache=False, error_model="numpy")
def govern_by(
    own: OwnGovernor, residents: Residents, platform: np.record, activity: Floats, room: float
) -> tuple[float, bool]:
    """Do what `govern` does by somebody's own governor, under the highest limit at which power fits the cap.

    Activity below and above the stall threshold is of the epoch before, and shared out among those who are there now;
    who has left was not stalled at all, or wholly.
    """
    hot, _, n = residents
    limit, least, top, state = platform.max_hz, platform.min_hz, 0.0, 0.0
    while True:
        power = 0.0
        for above in range(2):
            alone = weight = more = 0.0
            for i in range(-1, n):  # -1: somebody who is not stalled, or wholly
                stall = float(above) if i < 0 else 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
                if i >= 0 and (stall > own.stall_threshold) != (above == 1):
                    continue
                clock = _asked(own, platform, max(0.0, stall), limit)
                relative = _power_per_activity(clock, platform.base_hz)
                if i < 0:
                    alone, state = relative, clock if above == 0 else state
                    continue
                active = hot[USE, i] * (STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * (1.0 - stall))
                weight, more = weight + active, more + active * (relative - alone)
                hot[FREQUENCY, i] = clock
            power += activity[above] * (alone + (more / weight if weight > 0.0 else 0.0))
        top = max(top, state)
        if power <= room or limit <= least * (1.0 + ROUNDING):
            return state, state < top * (1.0 - ROUNDING)
        limit = max(least, limit - platform.step_hz)


@njit(cache=False, error_model="numpy")
def heat(residents: Residents, platform: np.record, threshold: float, sibling: float, activity: Floats) -> float:
    """Set the machine's activities below and above the stall threshold; return its power above idle, relative."""
    hot, _, n = residents
    core_share = (1.0 - SHARED_CORE_POWER * sibling) / platform.cores
    activity[0] = activity[1] = dynamic = 0.0
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        hot[WAITED, i] = stall
        active = hot[USE, i] * core_share * (STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * (1.0 - stall))
        activity[1 if stall > threshold else 0] += active
        dynamic += active * _power_per_activity(hot[FREQUENCY, i], platform.base_hz)
    return dynamic


@njit(cache=False, error_model="numpy")
def turbo_hz(platform: np.record, utilisation: float, sibling: float) -> float:
    """Return the highest clock that a processor allows with so many cores active: all-core turbo from `TURBO_SHARE` on.

    With two threads a core, of those that are busy a share of `sibling` have a busy one beside them.
    """
    threads = platform.threads / platform.cores
    active = min(1.0, threads * utilisation * (1.0 - 0.5 * sibling))
    few = 2.0 * platform.sockets / platform.cores
    more = min(1.0, max(0.0, (TURBO_SHARE - active) / (TURBO_SHARE - few))) if few < TURBO_SHARE else 0.0
    return float(platform.max_hz + (platform.single_hz - platform.max_hz) * more)


@njit(cache=False, error_model="numpy")
def set_clocks(
    own: OwnGovernor, residents: Residents, platform: np.record, governor: np.record, limit_hz: float
) -> float:
    """Set every resident's clock as its governor wishes under a limit; return the machine's P-state.

    What a governor knows of stalls is of the epoch before.
    """
    hot, _, n = residents
    least = platform.min_hz
    if governor.policy == OWN_POLICY:
        state = _asked(own, platform, 0.0, limit_hz)
        for i in range(n):
            hot[FREQUENCY, i] = _asked(own, platform, max(0.0, hot[WAITED, i]), limit_hz)
        return state
    state = min(limit_hz, _wish(hot[USE], n, platform, governor)) if governor.policy == ONDEMAND else limit_hz
    low = max(state - governor.step_down_hz, least) if governor.policy == STALL_AWARE else state
    for i in range(n):
        hot[FREQUENCY, i] = low if hot[WAITED, i] > governor.stall_threshold else state
    return state


@njit(cache=False, error_model="numpy")
def draw(
    residents: Residents, platform: np.record, power_factor: float, sibling: float, bytes_per_s: float
) -> tuple[float, float]:
    """Return what processors and the whole machine draw, in watts.

    Parameters
    ----------
    residents : with their clocks, CPI and busy threads
    power_factor : of this machine's silicon, on what cores and mesh draw
    sibling : chance that a busy thread has a busy one beside it
    bytes_per_s : memory traffic
    """
    hot, _, n = residents
    busy = cores = 0.0
    for i in range(n):
        relative = hot[FREQUENCY, i] / platform.max_hz
        voltage = FLOOR + (1.0 - FLOOR) * relative
        work = STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * hot[CORE_NOW, i] / hot[CPI, i]
        cores += hot[USE, i] * voltage * voltage * (LEAKAGE + (1.0 - LEAKAGE) * relative * work)
        busy += hot[USE, i]
    threads, per_core = platform.threads, platform.threads / platform.cores
    alone = platform.lone_thread / platform.cores
    cores *= alone + (1.0 / threads - alone) * sibling if per_core > 1.0 else 1.0 / threads
    awake = 1.0 - max(0.0, 1.0 - busy / threads) ** (threads / platform.sockets)
    above = platform.awake_w * awake + platform.core_w * cores + UNCORE_J_PER_BYTE * bytes_per_s
    above *= power_factor
    fans_w = FANS * platform.tdp_w * (above / platform.tdp_w) ** 3
    whole_w = platform.idle_w + SUPPLY * (above + platform.memory_j_per_byte * bytes_per_s) + fans_w
    return platform.asleep_w + above, whole_w
