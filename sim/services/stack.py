"""What a request costs on a machine: the stack of cores, caches and memory, solved for each interval of the load.

The same stack as the fleet's (`sim.fleet.kernel`): CPI is core CPI plus, for every level of caches that an access
misses, the latency of the next one over the misses that overlap; running requests hold shared caches in proportion to
their miss rates; memory latency grows with the traffic of all processors. The load is open: requests come however slow
they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.fleet.processors import beside_sibling
from models.services.applications import Activities
from models.services.world import Mechanisms
from sim.services.costs import Costs, corrected, costs_of, first_guess
from sim.services.hardware import Machine
from sim.services.setting import LoadedMachine, set_up

TOLERANCE, ITERATIONS = 1e-8, 60
"""Change of a share at which the fixed point counts as solved, and how often it is tried before bisection."""
MEMORY = (-1.0, 0.9)
"""Bounds on how far a step takes back the one before."""
HALVINGS = 50
"""Steps of the bisection for a busy share that iteration did not find."""
SETTLING = 1000
"""Steps at most for shares of caches at a given busy share."""


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """What the activities need in each of n intervals: A activities, L levels of caches."""

    cpu_s: Floats
    """(n, A) mean CPU seconds of a request, a collection, a second of ticks, while no sibling thread is busy."""
    instructions: Floats
    """(n, A) its mean instructions, spun ones included."""
    misses_per_instruction: Floats
    """(n, A, L) of each level."""
    busy_share: Floats
    """(n,) expected share of hardware threads that are busy."""


def demands(activities: Activities, machine: Machine, rate_per_s: Floats, mechanisms: Mechanisms) -> Demands:
    """Return what the activities need on a machine under a load.

    Unknown in each interval are the busy share of the machine, memory latency and what a running request holds of each
    shared cache; at the fixed point (to `TOLERANCE`) they agree. What is asked beyond capacity makes no traffic.

    Parameters
    ----------
    rate_per_s : (n, A) array, non-negative: requests, collections and seconds of ticks per second
    """
    a = activities.instructions.size
    if rate_per_s.ndim != 2 or rate_per_s.shape[1] != a:
        raise InputError(f"rate_per_s has shape {rate_per_s.shape}, must be (intervals, {a})")
    if not (np.isfinite(rate_per_s) & (rate_per_s >= 0)).all():
        raise InputError("rate_per_s must be finite and not negative")
    setting = _set_up(activities, machine, mechanisms, np.ascontiguousarray(rate_per_s.T, dtype=np.float64))
    costs, busy = _solved(setting)
    return Demands(
        cpu_s=(costs.instructions * costs.cpi / machine.frequency_hz).T,
        instructions=np.broadcast_to(costs.instructions, setting.rate_per_s.shape).T,
        misses_per_instruction=np.stack([np.broadcast_to(m, setting.rate_per_s.shape) for m in costs.misses]).T,
        busy_share=busy,
    )


def smt_rates(activities: Activities, machine: Machine, mechanisms: Mechanisms) -> tuple[float, ...]:
    """Return the work done per second with 1, 2, … hardware threads busy, in seconds of a thread without busy sibling.

    The slowdown is that of requests in their long-run mix, by CPU time, on an idle machine. The chance that a thread's
    sibling is busy is the square of the chance that any other thread is, as in the fleet: between random placement and
    idle cores first.
    """
    setting = _set_up(activities, machine, mechanisms, activities.rates(activities.popularity[None]).T)
    costs = costs_of(setting, first_guess(setting))
    work = (setting.rate_per_s * costs.instructions * costs.cpi)[:, 0]
    slowdown = float(work @ (setting.sibling_cpi / costs.cpi)[:, 0] / work.sum()) if work.any() else 0.0
    busy = np.arange(1, machine.vcpus + 1)
    sibling = ((busy - 1) / max(machine.vcpus - 1, 1)) ** 2
    return tuple((busy / (1.0 + sibling * slowdown)).tolist())


def _set_up(activities: Activities, machine: Machine, mechanisms: Mechanisms, rate_per_s: Floats) -> LoadedMachine:
    """Return what a load asks of a machine whose sibling threads slow each other down by what runs on them.

    How much a sibling waits for memory is that of everything in its long-run mix, by CPU time, on an idle machine.
    """
    setting = set_up(activities, machine, mechanisms, rate_per_s)
    if setting.siblings == 0.0:
        return setting
    mix = set_up(activities, machine, mechanisms, activities.rates(activities.popularity[None]).T)
    waiting = float(costs_of(mix, first_guess(mix)).waiting[0])
    return replace(setting, sibling_cpi=setting.sibling_cpi * beside_sibling(1.0, machine.sibling_relief, waiting))


def _solved(setting: LoadedMachine) -> tuple[Costs, Floats]:
    """Return costs and busy share at the fixed point.

    Anderson's method with one step of memory (1965) finds it in a dozen steps, but crawls where a busier machine asks
    for nearly as much more as it is busier, as sibling threads do near saturation. Such intervals are bisected.
    """
    guess, residual = _iterated(setting)
    late = np.flatnonzero(residual > TOLERANCE)
    if late.size:
        guess[:, late] = _bisected(replace(setting, rate_per_s=np.ascontiguousarray(setting.rate_per_s[:, late])))
    return costs_of(setting, guess), guess[0]


def _iterated(setting: LoadedMachine) -> tuple[Floats, Floats]:
    """Return the last guess, (K, n), and how far each interval is from its fixed point, (n,)."""
    guess = first_guess(setting)
    wanted = before = change = guess
    residual = np.zeros(guess.shape[1])
    for step in range(ITERATIONS):
        earlier, wanted = wanted, corrected(setting, guess, costs_of(setting, guess))
        before, change = change, wanted - guess
        residual = abs(change).max(axis=0)
        if (residual <= TOLERANCE).all():
            break
        if step == 0:
            guess = wanted
            continue
        bend = change - before
        memory = np.einsum("kn,kn->n", bend, change) / np.maximum(np.einsum("kn,kn->n", bend, bend), 1e-300)
        guess = np.clip(wanted - np.clip(memory, *MEMORY) * (wanted - earlier), 0.0, 1.0)
    return guess, residual


def _bisected(setting: LoadedMachine) -> Floats:
    """Return a fixed point of each interval, (K, n).

    An idle machine is asked for no less than it does and one that is always busy counts as asked for no more, so there
    is a busy share in between that is the one asked for.
    """
    guess = first_guess(setting)
    low, high = np.zeros_like(guess[0]), np.ones_like(guess[0])
    for _ in range(HALVINGS):
        guess[0] = 0.5 * (low + high)
        guess = _settled(setting, guess)
        enough = costs_of(setting, guess).wanted_busy < guess[0]
        low, high = np.where(enough, low, guess[0]), np.where(enough, guess[0], high)
    guess[0] = high
    return _settled(setting, guess)


def _settled(setting: LoadedMachine, guess: Floats) -> Floats:
    """Return a guess with its busy share and what is held of caches then, in steps that halve where they overshoot."""
    step, before = np.ones(guess.shape[1]), np.full(guess.shape[1], np.inf)
    for _ in range(SETTLING):
        change = corrected(setting, guess, costs_of(setting, guess))[1:] - guess[1:]
        residual = abs(change).max(axis=0, initial=0.0)
        if (residual <= 0.1 * TOLERANCE).all():
            return guess
        step = np.where(residual > before, 0.5 * step, step)
        before = residual
        guess = np.vstack([guess[:1], guess[1:] + step * change])
    raise ArithmeticError(f"no shares of caches in {SETTLING} steps: residual {residual.max():.2g}")
