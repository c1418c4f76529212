"""Who is on a machine from epoch to epoch: stays that enter, get new code, are written out and leave; compiled."""

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from sim.fleet.draws import OWN, mix, normal
from sim.fleet.layout import Inputs, PowerDomain, Residents
from sim.fleet.slots import (
    AHEAD,
    CORE,
    CYCLES,
    END,
    FLOOR,
    GAIN1,
    GAIN2,
    INPUT_SD,
    JOB,
    KEY,
    NOWHERE,
    ROW,
    SHARD,
    SLICE,
    SOFT_FROM,
    STATION,
    TRACE,
    TRAITS,
    UNTIL_S,
    WANDER,
)


@njit(cache=False, borrows=True)
def _old_code(traits: Floats, job: int, shard: int, inputs: Inputs) -> None:
    """Set traits to those of a job's shard, whose data decide how it departs from its job's mean, under old code."""
    shard_key = mix(mix(inputs.settings[0].key + np.uint64(job)) + np.uint64(shard))
    spread = inputs.jobs[job, INPUT_SD]
    for field in range(TRAITS):
        traits[field] = inputs.jobs[job, field]
    traits[CORE] *= np.exp(spread * normal(shard_key, 0) - 0.5 * spread * spread)
    access_factor = np.exp(spread * normal(shard_key, 1) - 0.5 * spread * spread)
    for field in (FLOOR, GAIN1, GAIN2, AHEAD):
        traits[field] *= access_factor


@njit(cache=False, borrows=True)
def enter(hot: Floats, mark: Ints, slot: int, stay: np.record, inputs: Inputs) -> None:
    """Fill a slot with the stay that starts now."""
    job, key = stay.job, inputs.settings[0].key
    own_key = mix(mix(key ^ OWN) + np.uint64(stay.instance))
    for field in range(TRAITS, hot.shape[0]):
        hot[field, slot] = 0.0
    _old_code(hot[:TRAITS, slot], job, stay.shard, inputs)
    mark[SHARD, slot], mark[SLICE, slot], mark[STATION, slot] = stay.shard, NOWHERE, stay.station
    hot[WANDER, slot], hot[UNTIL_S, slot] = normal(mix(own_key), stay.start), stay.end_s
    mark[JOB, slot], mark[END, slot], mark[SOFT_FROM, slot] = job, stay.end, stay.soft_from
    mark[ROW, slot], mark[TRACE, slot], mark[KEY, slot] = stay.row, stay.traced, np.int64(own_key)
    if stay.soft_from < stay.start:
        renew(hot, mark, slot, inputs)


@njit(cache=False, borrows=True)
def renew(hot: Floats, mark: Ints, slot: int, inputs: Inputs) -> None:
    """Give a resident the new code of its job."""
    for field in range(TRAITS):
        hot[field, slot] *= inputs.software[mark[JOB, slot], field]


@njit(cache=False, borrows=True)
def write_out(hot: Floats, mark: Ints, slot: int, window: int, rows: Floats) -> None:
    """Add a resident's sums to its row of the window, if any, and clear them."""
    for field in range(CYCLES, hot.shape[0]):
        if window >= 0:
            rows[mark[ROW, slot] + window, field - CYCLES] += hot[field, slot]
        hot[field, slot] = 0.0


@njit(cache=False, borrows=True)
def leave(residents: Residents, epoch: int, window: int, rows: Floats) -> int:
    """Write out residents whose stay ends and fill their slots with the last ones; return how many stay."""
    (hot, mark, n), slot = residents, 0
    while slot < n:
        if mark[END, slot] > epoch:
            slot += 1
            continue
        write_out(hot, mark, slot, window, rows)
        n -= 1
        for field in range(hot.shape[0]):
            hot[field, slot] = hot[field, n]
        for field in range(mark.shape[0]):
            mark[field, slot] = mark[field, n]
    return int(n)


@njit(cache=False, borrows=True)
def _next_change(residents: Residents, epoch: int, entering: int) -> int:
    """Return the next epoch in which somebody leaves, enters or gets new code."""
    _, mark, n = residents
    change = entering
    for i in range(n):
        renewal = mark[SOFT_FROM, i]
        change = min(change, mark[END, i], renewal if renewal > epoch else change)
    return int(change)


@njit(cache=False, borrows=True)
def switches(inputs: Inputs, machine: int, epoch: int) -> bool:
    """Return whether the feature begins or ceases to act on a machine that switches on and off."""
    if inputs.switched.shape[0] == 0 or epoch == 0:
        return False
    return bool(inputs.switched[machine, epoch] != inputs.switched[machine, epoch - 1])


@njit(cache=False, borrows=True)
def switch(inputs: Inputs, residents: Residents, newcomers: int, machine: int, epoch: int) -> None:
    """Give residents the code of the machine's state: newcomers, or all of them when that has changed."""
    hot, mark, n = residents
    for i in range(0 if switches(inputs, machine, epoch) else newcomers, n):
        _old_code(hot[:TRAITS, i], mark[JOB, i], mark[SHARD, i], inputs)
        if inputs.switched[machine, epoch]:
            renew(hot, mark, i, inputs)


@njit(cache=False, borrows=True)
def turn_over(inputs: Inputs, rows: Floats, domain: PowerDomain, local: int, epoch: int) -> None:
    """Write out who leaves or has come to the end of a window; let stays enter, and new code in."""
    hot, mark, n = domain.hot[local], domain.mark[local], domain.residents[local]
    previous = inputs.window_of_epoch[epoch - 1] if epoch > 0 else -1
    if previous != inputs.window_of_epoch[epoch]:
        for i in range(n):
            write_out(hot, mark, i, previous, rows)
    n = leave(Residents(hot, mark, n), epoch, previous, rows)
    newcomers = n
    following, end = domain.upcoming[local], inputs.stay_start[domain.first + local + 1]
    while following < end and inputs.stays[following].start <= epoch:
        enter(hot, mark, n, inputs.stays[following], inputs)
        n += 1
        following += 1
    for i in range(n):
        if mark[SOFT_FROM, i] == epoch:
            renew(hot, mark, i, inputs)
    if inputs.switched.shape[0] > 0:
        switch(inputs, Residents(hot, mark, n), newcomers, domain.first + local, epoch)
    entering = inputs.stays[following].start if following < end else inputs.window_of_epoch.size
    domain.residents[local], domain.upcoming[local] = n, following
    domain.change[local] = _next_change(Residents(hot, mark, n), epoch, entering)
