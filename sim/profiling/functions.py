"""What the functions of a program do: events that sum to the fleet's counters.

A row's instructions go to functions by weight. Its cycles but for memory stalls go by weight × core CPI on the
platform, its last-level misses by weight × intensity, its stalls by those misses over the function's overlap. The first
two levels' misses and mispredictions follow from instructions: a level's misses are those that the next level has, and
those that it misses too.

Where a program's instructions go in one counter row: a residence's day.

The weights of a program's functions are those of its state, times the spread of its shard's data, the drift of the
day's requests, what the new build and the new kernel change, and incidents. All belongs to names and numbers: who asks
for which rows in which order changes nothing. Within a row all is constant, so rows are days and everything that is
rolled out changes at midnight.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import DAY_S, Floats, Ints
from models.errors import InputError
from models.profiling.programs import ProgramArrays
from models.profiling.world import Incident
from models.randomness import key
from sim.profiling.draws import keys_of, mixed, normals
from sim.profiling.rows import CounterRows, RunningSoftware


def row_weights(software: RunningSoftware, rows: CounterRows) -> Floats:
    """Return the share of each row's instructions that each function of its program has.

    Parameters
    ----------
    software : programs, builds and places
    rows : R rows, all of one program

    Returns
    -------
    (R, F) array in the order of the program's entries, sum 1 over each row
    """
    if np.unique(rows.program).size > 1:
        raise InputError(f"rows are of {np.unique(rows.program).size} programs, must be of one")
    if not rows.count:
        return np.zeros((0, 0))
    programs, builds, how = software.programs, software.builds, software.programs.how
    program = int(rows.program[0])
    here, function = programs.entries(program), programs.functions(program)
    drawn = programs.code.key[function]
    shards, of_shard = np.unique(rows.shard, return_inverse=True)
    days, of_day = np.unique(rows.day, return_inverse=True)
    shard = keys_of(programs.seed, "data of shards", np.array(program), shards)
    day = keys_of(programs.seed, "requests of days", np.array(program), days)
    built = np.stack([np.ones(function.size), builds.factor[here]])
    kernels = np.stack([np.ones(function.size), builds.kernel_factor[function]])
    usual = programs.weight[:, None, None, here] * built[:, None] * kernels
    weight = usual[rows.state, rows.build, rows.kernel]
    weight *= np.exp(how.shard_log_sd * normals(mixed(shard[:, None], drawn)))[of_shard]
    weight *= np.exp(how.day_log_sd * normals(mixed(day[:, None], drawn)))[of_day]
    for incident in software.world.profiling.incidents:
        _strike(software, incident, rows, weight)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(weight)


def _strike(software: RunningSoftware, incident: Incident, rows: CounterRows, weight: Floats) -> None:
    """Multiply the weights that an incident makes more expensive."""
    programs, builds, places = software.programs, software.builds, software.places
    program = int(rows.program[0])
    names = programs.code.name
    function = np.array([names[f] == incident.function for f in programs.functions(program)])
    struck = rows.day * DAY_S >= incident.from_s
    struck &= incident.application in {"", programs.names[program]}
    build = builds.of_image[programs.image_of_program[program], rows.build]
    for wanted, has in (
        (incident.revision, np.array(builds.revision)[build]),
        (incident.compiler, np.array(builds.compiler)[build]),
        (incident.platform, np.array(places.platforms)[rows.platform]),
        (incident.datacentre, np.array(places.datacentres)[rows.datacentre]),
    ):
        struck &= (has == wanted) | (not wanted)
    weight[np.ix_(struck, function)] *= incident.factor


EVENTS = ("cycles", "instructions", "l1_misses", "l2_misses", "llc_misses", "mispredictions")
"""The last axis of what functions do."""
CYCLES, INSTRUCTIONS, L1_MISSES, L2_MISSES, LLC_MISSES, MISPREDICTIONS = range(6)
ROW_SUMS = (0, 1, 2, 3, 5)
"""Columns of `sim.fleet.arms.Block.rows` that `spread` takes; those of `visit_sums` are these."""
COMMON = 0.5
"""Share of the variance between visits that all events of a visit have in common; the rest is each event's own, as
events follow one another within the visit."""
LEAST = 0.05
"""Where noise would leave a function less than so much of its mean, the row's noise is weakened."""


def spread(programs: ProgramArrays, rows: CounterRows, weights: Floats, totals: Floats) -> Floats:
    """Return what each function does in each row.

    Parameters
    ----------
    programs : what functions cost on each platform
    rows : R rows, all of one program
    weights : (R, F) shares of instructions, as `sim.profiling.functions.row_weights` gives
    totals : (R, 5) cycles, instructions, last-level misses, CPU seconds, and cycles but for memory stalls

    Returns
    -------
    (R, F, 6) array of `EVENTS`; cycles, instructions and last-level misses sum to the row's
    """
    if not rows.count:
        return np.zeros((*weights.shape, len(EVENTS)))
    costs = _costs(programs, programs.functions(int(rows.program[0])), rows.platform)
    return _events(costs, [part[:, None] * weights for part in _per_weight(costs, weights, totals)])


def summed(programs: ProgramArrays, rows: CounterRows, weights: Floats, totals: Floats) -> Floats:
    """Return what each function does in all rows together: the sum of `spread` over rows, without its array.

    Parameters
    ----------
    programs : what functions cost on each platform
    rows : R rows, all of one program on one platform
    weights, totals : as for `spread`

    Returns
    -------
    (F, 6) array of `EVENTS`
    """
    if np.unique(rows.platform).size != 1:
        raise InputError(f"rows are on {np.unique(rows.platform).size} platforms, must be on one")
    costs = _costs(programs, programs.functions(int(rows.program[0])), int(rows.platform[0]))
    return _events(costs, [np.einsum("r,rf->f", part, weights) for part in _per_weight(costs, weights, totals)])


class _Costs(NamedTuple):
    """What an instruction of each of F functions costs: the first three on each row's platform, or on one."""

    core_cpi: Floats
    l2_hits: Floats
    llc_hits: Floats
    mispredictions: Floats
    intensity: Floats
    waiting: Floats


def _costs(programs: ProgramArrays, function: Ints, platform: Ints | int) -> _Costs:
    code = programs.code
    intensity = code.miss_intensity[function]
    return _Costs(
        programs.core_cpi[:, function][platform], programs.l2_hits[:, function][platform],
        programs.llc_hits[:, function][platform], code.mispredictions[function],
        intensity, intensity / code.overlap[function],
    )  # fmt: skip


def _per_weight(costs: _Costs, weights: Floats, totals: Floats) -> list[Floats]:
    """Return (R,) instructions, core cycles, misses and stalls of a row per unit of what they are spread by."""
    cycles, instructions, misses, _, core = totals.T
    stalls = np.maximum(cycles - core, 0.0)
    return [
        instructions,
        core / np.einsum("rf,rf->r", weights, np.broadcast_to(costs.core_cpi, weights.shape)),
        misses / np.einsum("rf,f->r", weights, costs.intensity),
        stalls / np.einsum("rf,f->r", weights, costs.waiting),
    ]


def _events(costs: _Costs, parts: list[Floats]) -> Floats:
    """Return events from weights times what stands for one unit of each, in rows or summed over them."""
    instructions, core, misses, stalls = parts
    events = np.empty((*instructions.shape, len(EVENTS)))
    events[..., CYCLES] = core * costs.core_cpi + stalls * costs.waiting
    events[..., INSTRUCTIONS] = instructions
    events[..., LLC_MISSES] = misses * costs.intensity
    events[..., L2_MISSES] = instructions * costs.llc_hits + events[..., LLC_MISSES]
    events[..., L1_MISSES] = instructions * costs.l2_hits + events[..., L2_MISSES]
    events[..., MISPREDICTIONS] = instructions * costs.mispredictions
    return events


def jitter(
    programs: ProgramArrays, rows: CounterRows, events: Floats, visit: Ints, names: Sequence[str] = EVENTS
) -> Floats:
    """Return what each function does in a visit of a few minutes, which is not its mean over the day.

    Every event of a row keeps its sum, and every function's mean over visits stays what it was: if z is a function's
    noise, it does x (1 + z − Σ x z / Σ x) for x. Events are counted one after the other, so that the z of two events of
    a function have a part in common (`COMMON`), and each a part of its own, which belongs to the event's name.

    Parameters
    ----------
    programs : spread from visit to visit
    rows : R rows, all of one program
    events : (R, F, K) array, without noise
    visit : (R,) numbers of the visits
    names : of the K events
    """
    sd = programs.how.visit_log_sd
    if not rows.count or sd == 0.0:
        return events
    drawn = programs.code.key[programs.functions(int(rows.program[0]))]
    who = mixed(keys_of(programs.seed, "visits", rows.program, rows.shard, visit)[:, None], drawn)
    common = np.sqrt(COMMON) * normals(who)
    noise = np.empty(events.shape)
    for k, name in enumerate(names):
        own = normals(mixed(who, np.array(key(name), np.uint64)))
        noise[:, :, k] = np.exp(sd * (common + np.sqrt(1.0 - COMMON) * own) - 0.5 * sd * sd)
    totals = events.sum(axis=1, keepdims=True)
    noise -= (events * noise).sum(axis=1, keepdims=True) / np.where(totals > 0.0, totals, 1.0)
    lowest = noise.min(axis=(1, 2), keepdims=True)
    return np.asarray(events * (1.0 + np.minimum(1.0, (1.0 - LEAST) / np.maximum(-lowest, 1e-300)) * noise))
