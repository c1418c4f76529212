"""How fast a machine runs and what power it draws: turbo, governors under a limit, and watts; compiled."""

import numpy as np

from models.code.compiled import njit
from models.fleet.processors import FANS, LEAKAGE, SUPPLY, TURBO_SHARE, UNCORE_J_PER_BYTE, VOLTAGE_FLOOR
from sim.fleet.layout import OWN_POLICY, OwnGovernor, Residents
from sim.fleet.slots import CORE_NOW, CPI, FREQUENCY, USE, WAITED

ONDEMAND, STALL_AWARE = 1, 2
STALLED_ACTIVITY = 0.45  # power of a stalled core relative to a computing one
ROUNDING = 1e-9  # by which part clocks may be off


@njit(cache=False, error_model="numpy", borrows=True)
def _ondemand(own: OwnGovernor, platform: np.record, governor: np.record) -> float:
    """Return the clock that serves the load at the threshold of ondemand; between two P-states the core dithers."""
    wish = own.most_hz * own.utilisation / governor.ondemand_threshold
    return float(min(own.most_hz, max(platform.min_hz, wish)))


@njit(cache=False, error_model="numpy", borrows=True)
def _asked(own: OwnGovernor, platform: np.record, stalled: float, limit_hz: float) -> float:
    """Return the clock that somebody's own governor asks for; between two P-states the core dithers."""
    call, least, most = own.call, platform.min_hz, own.most_hz
    call[1], call[2], call[3], call[4], call[5], call[-1] = own.utilisation, stalled, limit_hz, least, most, np.nan
    wish = own.function(own.utilisation, stalled, limit_hz, least, most)
    call[-1] = wish
    if not least * (1.0 - ROUNDING) <= wish <= limit_hz * (1.0 + ROUNDING):
        raise ValueError("no clock from min_hz to limit_hz")
    return float(min(limit_hz, max(least, wish)))


@njit(cache=False, error_model="numpy", borrows=True)
def turbo_hz(platform: np.record, utilisation: float, sibling: float) -> float:
    """Return the highest clock that a processor allows with so many cores active: all-core turbo from `TURBO_SHARE` on.

    With two threads a core, of those that are busy a share of `sibling` have a busy one beside them.
    """
    threads = platform.threads / platform.cores
    active = min(1.0, threads * utilisation * (1.0 - 0.5 * sibling))
    few = 2.0 * platform.sockets / platform.cores
    more = min(1.0, max(0.0, (TURBO_SHARE - active) / (TURBO_SHARE - few))) if few < TURBO_SHARE else 0.0
    steps = np.floor((platform.single_hz - platform.max_hz) * more / platform.step_hz + ROUNDING)
    return float(platform.max_hz + platform.step_hz * steps)


@njit(cache=False, error_model="numpy", borrows=True)
def set_clocks(
    own: OwnGovernor, residents: Residents, platform: np.record, governor: np.record, limit_hz: float
) -> float:
    """Set every resident's clock as its governor wishes under a limit; return the machine's P-state.

    What a governor knows of stalls is what it saw when it looked last.
    """
    hot, _, n = residents
    least = platform.min_hz
    if governor.policy == OWN_POLICY:
        state = _asked(own, platform, 0.0, limit_hz)
        for i in range(n):
            hot[FREQUENCY, i] = _asked(own, platform, max(0.0, hot[WAITED, i]), limit_hz)
        return state
    wished = _ondemand(own, platform, governor) if governor.policy == ONDEMAND else limit_hz
    state = min(limit_hz, wished)
    low = max(state - governor.step_down_hz, least) if governor.policy == STALL_AWARE else state
    for i in range(n):
        hot[FREQUENCY, i] = low if hot[WAITED, i] > governor.stall_threshold else state
    return state


@njit(cache=False, error_model="numpy", borrows=True)
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
        voltage = VOLTAGE_FLOOR + (1.0 - VOLTAGE_FLOOR) * relative
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
