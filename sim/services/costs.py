"""What requests cost on a machine if a guess is true of how busy it is and of who holds which part of its caches."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from models.fleet.memory import BEYOND, CUT, LINEAR, POWER, POWER_GAIN
from sim.services.setting import LoadedMachine

DAMPING = 0.6
"""How far the fixed point steps to new cache shares."""
HALVINGS = 50
"""Steps of the bisection for how late a saturated machine is."""


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What follows from a guess; arrays are (A, n) or (A, 1)."""

    misses: tuple[Floats, ...]
    """L arrays, per instruction."""
    instructions: Floats
    cpi: Floats
    wanted_busy: Floats
    """(n,) hardware threads asked for, over all."""
    waiting: Floats
    """(n,) share of their cycles in which busy threads wait for memory."""


def _held_bytes(setting: LoadedMachine, guess: Floats) -> list[Floats]:
    """Return what a running request holds of a cache of each level: (A, n); (A, 1) where it has it to itself."""
    alone = np.ones((setting.instructions.size, 1))
    return [
        size * (_part(setting, guess, level) if setting.crowded[level] else alone)
        for level, size in enumerate(setting.cache_bytes.tolist())
    ]


def _part(setting: LoadedMachine, guess: Floats, level: int) -> Floats:
    """Return the rows of the guess that say which part of a shared cache each activity holds: (A, n)."""
    a = setting.instructions.size
    row = 1 + a * int(setting.crowded[:level].sum())
    return guess[row : row + a]


def first_guess(setting: LoadedMachine) -> Floats:
    """Return the unknowns of an idle machine: first its busy share, then what is held of each shared cache: (K, n).

    Examples
    --------
    >>> from models.services.applications import build_activities
    >>> from models.services.world import Application, Mechanisms, Runtime, ServiceWorld
    >>> from sim.services.hardware import draw_machines
    >>> from sim.services.setting import set_up
    >>> service = build_activities(Application(types=2), Runtime(), Mechanisms(), 1, "service")
    >>> machine = draw_machines(ServiceWorld(platforms=("pd4",)))["pd4"]
    >>> setting = set_up(service, machine, Mechanisms(), service.rates(np.array([[5.0, 2.0]])).T)
    >>> first_guess(setting).shape
    (9, 1)
    """
    a, n = setting.rate_per_s.shape
    guess = np.ones((1 + a * int(setting.crowded.sum()), n))
    guess[0] = 0.0
    return guess


def costs_of(setting: LoadedMachine, guess: Floats) -> Costs:
    """Return what follows from a guess of the unknowns, (K, n); memory latency and traffic agree with each other.

    Examples
    --------
    >>> from models.services.applications import build_activities
    >>> from models.services.world import Application, Mechanisms, Runtime, ServiceWorld
    >>> from sim.services.hardware import draw_machines
    >>> from sim.services.setting import set_up
    >>> service = build_activities(Application(types=2), Runtime(), Mechanisms(), 1, "service")
    >>> machine = draw_machines(ServiceWorld(platforms=("pd4",)))["pd4"]
    >>> setting = set_up(service, machine, Mechanisms(), service.rates(np.array([[5.0, 2.0]])).T)
    >>> bool(0 < costs_of(setting, first_guess(setting)).wanted_busy[0] < 1)
    True
    """
    misses, again = _misses(setting, _held_bytes(setting, guess))
    near = setting.core_cpi
    for level, cycles in enumerate(setting.cycles[:-1]):
        near = near + setting.stall * (misses[level] - misses[level + 1]) * cycles
    across = setting.across * again
    capacity = misses[-1] - across
    late = np.maximum(misses[-1] - setting.prefetched, across)
    far = setting.stall * late * setting.cycles[-1] + setting.stall * across * setting.bus_cycles
    link = setting.stall * ((late - across) * setting.link_cycles[0] + across * setting.link_cycles[1])
    instructions = setting.instructions / (1.0 - setting.spin_share * guess[0])
    work = setting.rate_per_s * instructions

    def together(values: Floats) -> Floats:
        return np.asarray(np.einsum("an,an->n", work, np.broadcast_to(values, work.shape)))

    threads_hz = setting.threads * setting.frequency_hz
    idle = np.stack([together(cpi) for cpi in (near + setting.sibling_cpi * guess[0] ** 2, far, link)]) / threads_hz
    crossing = setting.crossing * capacity + across
    use = np.stack([together(misses[-1]) * setting.line_s, together(crossing) * setting.link_s])
    latency = _latencies(idle, use)
    waited = idle[1] * latency[0] + idle[2] * latency[1]
    wanted = idle[0] + waited
    cpi = near + far * latency[0] + link * latency[1]
    return Costs(misses, instructions, cpi, wanted, waited / np.maximum(wanted, 1e-300))


@njit(cache=False, inline="always")
def _latency_factor(utilisation: float) -> float:
    """Return `models.fleet.memory.latency_factor`: numba's cache does not look into other files."""
    measured = min(utilisation, CUT)
    bend: float = measured**POWER
    return 1.0 + LINEAR * measured + POWER_GAIN * bend + BEYOND * (utilisation - measured)


@njit(cache=True, error_model="numpy")
def _latencies(busy: Floats, use: Floats) -> Floats:
    """Return latencies of memory and of the link between sockets relative to idle: (2, n).

    Parameters
    ----------
    busy : (3, n) array, hardware threads kept busy over all: by all else, by memory and by the link while they are idle
    use : (2, n) array, bandwidth utilisation of memory and link if all traffic comes in time
    """
    latency = np.empty(use.shape)
    for i in range(use.shape[1]):
        near, far, link = busy[0, i], busy[1, i], busy[2, i]
        memory_use, link_use = use[0, i], use[1, i]
        low, high = 1.0, near + far * _latency_factor(memory_use) + link * _latency_factor(link_use)
        # What takes longer than there is time for makes less traffic in it: one crossing, so halve.
        for _ in range(HALVINGS if high > 1.0 else 0):
            late = 0.5 * (low + high)
            wait = far * _latency_factor(memory_use / late) + link * _latency_factor(link_use / late)
            if near + wait > late:
                low = late
            else:
                high = late
        late = max(1.0, high)
        latency[0, i], latency[1, i] = _latency_factor(memory_use / late), _latency_factor(link_use / late)
    return latency


def _misses(setting: LoadedMachine, held_bytes: list[Floats]) -> tuple[tuple[Floats, ...], Floats]:
    """Return misses per instruction of each level: of capacity, and of lines that another processor has written.

    The latter are a share of the first level's misses; they miss again where the writer has another cache. Those of the
    last level are returned alone, too.
    """
    first, *inner = (
        _of_capacity(setting.gains, setting.squares, np.square(capacity_bytes)) for capacity_bytes in held_bytes
    )
    levels, again = [first], np.zeros_like(first)
    for misses, chance in zip(inner, setting.elsewhere[1:].tolist(), strict=True):
        below = np.minimum(misses, levels[-1])
        again = setting.shared * chance * np.maximum(first - below, 0.0)
        levels.append(below + again)
    return tuple(levels), again


@njit(cache=True, error_model="numpy")
def _of_capacity(gains: Floats, squares: Floats, size_squares: Floats) -> Floats:
    """Return the sum over working sets of gain / (squared set + squared size): (A, n) from (A, C), (C,), (A, n)."""
    misses = np.zeros(size_squares.shape)
    for a in range(gains.shape[0]):
        row, sizes = misses[a], size_squares[a]
        for c in range(squares.size):
            gain, square = gains[a, c], squares[c]
            for i in range(row.size):
                row[i] += gain / (square + sizes[i])
    return misses


def corrected(setting: LoadedMachine, guess: Floats, needs: Costs) -> Floats:
    """Return what a guess should have been if what follows from it were true; of caches it takes a damped step."""
    use = setting.rate_per_s * needs.instructions * needs.cpi
    use /= np.maximum(use.sum(axis=0), 1e-300)
    steps = [np.minimum(1.0, needs.wanted_busy)[None]]
    for level in np.flatnonzero(setting.crowded).tolist():
        others = setting.mates[level] * guess[0] + setting.siblings * guess[0] ** 2
        pace = needs.misses[level] / needs.cpi
        paced = pace / (pace + others * np.einsum("an,an->n", use, pace))
        steps.append(DAMPING * paced + (1.0 - DAMPING) * _part(setting, guess, level))
    return np.concatenate(steps)
