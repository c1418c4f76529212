"""A station of k servers, compiled: ten policies, unequal cores, load-dependent rates, requests that follow others.

Three kernels share the calendar of arrivals. Where jobs hold cores (`on_cores`), a job in service has one time at which
it ends, touched only when its speed changes, so plain FCFS rounds once per job. Processor sharing (`sharing`) keeps the
service that each job present has received since the station was last empty (virtual time; Parekh and Gallager 1993).
Foreground-background (`foreground`) keeps a stack of groups with equal attained service. Nothing is checked here: see
`models.queues.serve`. All compiled helpers live in this file because numba's cache does not look into others.

At equal times departures come before arrivals and arrivals before the end of a quantum; all who leave at one moment
leave before a core is filled again; simultaneous arrivals come in order of index. Where the cores' pace changes with
time, it does so after departures and before arrivals; a look counts who is busy then.
"""

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.code.formulas import NumberFunction
from models.queues.layout import (
    AttainedLine,
    Cores,
    Foreground,
    Heap,
    Pace,
    RequestArrays,
    Servers,
    ServiceTimes,
    Shared,
    Shop,
)
from models.queues.policies import POLICIES

LCFS, LCFS_PR, SRPT = POLICIES["lcfs"].code, POLICIES["lcfs_pr"].code, POLICIES["srpt"].code
SJF, PRIORITY, RANDOM = POLICIES["sjf"].code, POLICIES["priority"].code, POLICIES["random"].code
"""Policies by the codes that the kernels compare; the others are their plain cases."""
PREEMPTIVE = tuple(policy.code for policy in POLICIES.values() if policy.preemptive)
NOBODY = -1
SLIVER = 1e-9
"""What a slice would leave over, as a share of the quantum, that is served in it: 0.3 s are three slices of 0.1 s."""
TURNS, SLICES, DRAWS = range(3)
"""Places in `Shop.tally`."""
GROUPS, JOBS = range(2)
"""Places in `AttainedLine.size`."""
STEP, SEEN = range(2)
"""Places in `Pace.row`."""
NOW, ATTAINED = range(2)
"""Places in `Shared.clock`."""


@njit(cache=False, error_model="numpy", borrows=True)
def _before(heap: Heap, a: int, b: int) -> bool:
    """Tell whether job a comes before job b."""
    return bool(heap.key[a] < heap.key[b] or (heap.key[a] == heap.key[b] and heap.turn[a] < heap.turn[b]))


@njit(cache=False, error_model="numpy", borrows=True)
def push(heap: Heap, job: int) -> None:
    """Put a job into the heap."""
    member, at = heap.member, heap.size[0]
    heap.size[0] += 1
    while at > 0 and _before(heap, job, member[(at - 1) // 2]):
        member[at] = member[(at - 1) // 2]
        at = (at - 1) // 2
    member[at] = job


@njit(cache=False, error_model="numpy", borrows=True)
def pop(heap: Heap) -> int:
    """Take the first job out of the heap."""
    member, at = heap.member, 0
    heap.size[0] -= 1
    n = heap.size[0]
    top, job = member[0], member[n]
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and _before(heap, member[child + 1], member[child]):
            child += 1
        if not _before(heap, member[child], job):
            break
        member[at] = member[child]
        at = child
    member[at] = job
    return int(top)


@njit(cache=False, error_model="numpy")
def empty_heap(key: Floats, turn: Ints) -> Heap:
    """Return an empty heap with room for every job."""
    return Heap(key, turn, np.empty(key.size + 1, np.int64), np.zeros(1, np.int64))


@njit(cache=False, error_model="numpy")
def _calendar(load: RequestArrays, times: ServiceTimes) -> Heap:
    """Return the arrivals known from the start, those of nobody's followers; nobody has started."""
    times.start_s[:] = np.nan
    pending = empty_heap(times.arrival_s, np.arange(times.arrival_s.size))
    for job in range(load.arrival_s.size):
        times.arrival_s[job] = load.arrival_s[job]
        if not np.isnan(load.arrival_s[job]):
            push(pending, job)
    return pending


@njit(cache=False, error_model="numpy", borrows=True)
def first_key(pending: Heap) -> float:
    """Return when the next request arrives."""
    return float(pending.key[pending.member[0]]) if pending.size[0] > 0 else np.inf


@njit(cache=False, error_model="numpy", borrows=True)
def _depart(load: RequestArrays, times: ServiceTimes, pending: Heap, job: int, now_s: float) -> None:
    """Let a job leave; the requests that follow it will arrive when their user has thought."""
    times.departure_s[job] = now_s
    follower = load.first[job] if load.first.size > 0 else NOBODY
    while follower != NOBODY:
        times.arrival_s[follower] = now_s + load.think_s[follower]
        push(pending, follower)
        follower = load.following[follower]


@njit(cache=False, error_model="numpy", borrows=True)
def _factor(pace: Pace, busy: int) -> float:
    """Return the factor on every core's speed while so many are busy."""
    return float(pace.factor[pace.row[STEP], pace.row[SEEN], busy - 1])


@njit(cache=False, error_model="numpy", borrows=True)
def _change_pace(pace: Pace, now_s: float, busy: int) -> None:
    """Let the steps begin that do now, and look how many are busy if it is time."""
    row, last = pace.row, pace.start_s.size - 1
    while row[STEP] < last and pace.start_s[row[STEP] + 1] <= now_s:
        row[STEP] += 1
    pace.next_s[0] = pace.start_s[row[STEP] + 1] if row[STEP] < last else np.inf
    if pace.look_s < np.inf:
        looks = np.floor(now_s / pace.look_s)
        looks += 1.0 if (looks + 1.0) * pace.look_s <= now_s else 0.0
        if looks * pace.look_s == now_s:
            row[SEEN] = min(busy, pace.factor.shape[1] - 1)
        pace.next_s[0] = min(pace.next_s[0], (looks + 1.0) * pace.look_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _busy(cores: Cores) -> int:
    """Return how many cores are busy."""
    busy = 0
    for c in range(cores.job.size):
        busy += cores.job[c] != NOBODY
    return busy


@njit(cache=False, error_model="numpy", borrows=True)
def _free(cores: Cores) -> int:
    """Return the fastest core that is free, or `NOBODY`."""
    for c in range(cores.job.size):
        if cores.job[c] == NOBODY:
            return c
    return NOBODY


@njit(cache=False, error_model="numpy", borrows=True)
def _time(cores: Cores, c: int, quantum_s: float) -> None:
    """Set when the job on a core is done at its speed, and when its quantum ends if that comes first."""
    rest_s = cores.left[c] / cores.rate[c]
    cores.finish_s[c] = cores.since_s[c] + rest_s
    enough = rest_s <= cores.slice_s[c] + SLIVER * quantum_s
    cores.expiry_s[c] = np.inf if enough else cores.end_s[c]


@njit(cache=False, error_model="numpy", borrows=True)
def _settle(cores: Cores, station: Servers, now_s: float) -> None:
    """Give every busy core the speed that it has with as many busy as there are now."""
    busy = _busy(cores)
    for c in range(cores.job.size):
        if cores.job[c] == NOBODY:
            continue
        rate = station.speed[c] * _factor(station.pace, busy)
        if rate != cores.rate[c]:
            passed_s = now_s - cores.since_s[c]
            cores.left[c] -= cores.rate[c] * passed_s
            cores.slice_s[c] -= passed_s
            cores.since_s[c], cores.rate[c] = now_s, rate
            _time(cores, c, station.quantum_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _left(cores: Cores, c: int, now_s: float) -> float:
    """Return the work that the job on a core still needs."""
    return float(cores.left[c] - cores.rate[c] * (now_s - cores.since_s[c]))


@njit(cache=False, error_model="numpy", borrows=True)
def _rank_by_rest(cores: Cores, waiting: Heap, now_s: float) -> None:
    """Rank the jobs in service by the work that they still need."""
    for c in range(cores.job.size):
        if cores.job[c] != NOBODY:
            waiting.key[cores.job[c]] = _left(cores, c, now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _worst(cores: Cores, waiting: Heap) -> int:
    """Return the core whose job ranks last; all are busy."""
    worst = 0
    for c in range(1, cores.job.size):
        if _before(waiting, cores.job[worst], cores.job[c]):
            worst = c
    return worst


@njit(cache=False, error_model="numpy", borrows=True)
def _swap(cores: Cores, a: int, b: int) -> None:
    """Let two cores change jobs."""
    cores.job[a], cores.job[b] = cores.job[b], cores.job[a]
    for values in (cores.rate, cores.left, cores.since_s, cores.finish_s):
        values[a], values[b] = values[b], values[a]


@njit(cache=False, error_model="numpy", borrows=True)
def _line_up(cores: Cores, waiting: Heap) -> None:
    """Put the i-th ranked job in service on the i-th fastest core."""
    for i in range(1, cores.job.size):
        c = i
        while c > 0 and cores.job[c] != NOBODY and (
            cores.job[c - 1] == NOBODY or _before(waiting, cores.job[c], cores.job[c - 1])
        ):  # fmt: skip
            _swap(cores, c - 1, c)
            c -= 1


@njit(cache=False, error_model="numpy", borrows=True)
def _rank(policy: int, priority: int, demand: float, turn: int) -> float:
    """Return what a job that arrives is ranked by; equal ranks go by turn."""
    if policy in (SRPT, SJF):
        return demand
    if policy in (LCFS, LCFS_PR):
        return -float(turn)
    return float(priority) if policy == PRIORITY else 0.0


@njit(cache=False, error_model="numpy", borrows=True)
def _own_rank(shop: Shop, job: int, left: float, key: NumberFunction) -> float:
    """Return what a job is ranked by under somebody's own policy; raise an error if that is no number."""
    call = shop.call
    call[0], call[1], call[2] = shop.times.arrival_s[job], shop.load.demand_s[job], left
    call[3], call[-1] = float(shop.load.priority[job]), np.nan
    rank = key(call[0], call[1], call[2], call[3])
    call[-1] = rank
    if np.isnan(rank):
        raise ValueError("a key is no number")
    return rank


@njit(cache=False, error_model="numpy", borrows=True)
def _rank_anew(shop: Shop, now_s: float, key: NumberFunction) -> None:
    """Rank the jobs in service by what they still need, under somebody's own policy."""
    for c in range(shop.cores.job.size):
        job = shop.cores.job[c]
        if job != NOBODY:
            shop.waiting.key[job] = _own_rank(shop, job, _left(shop.cores, c, now_s), key)


@njit(cache=False, error_model="numpy", borrows=True)
def soonest(cores: Cores) -> tuple[int, int]:
    """Return the core that is done first and the core whose slice ends first."""
    done = ended = 0
    for c in range(1, cores.job.size):
        if cores.finish_s[c] < cores.finish_s[done]:
            done = c
        earlier, same = cores.expiry_s[c] < cores.expiry_s[ended], cores.expiry_s[c] == cores.expiry_s[ended]
        if earlier or (same and cores.serial[c] < cores.serial[ended]):
            ended = c
    return done, ended


@njit(cache=False, error_model="numpy", borrows=True)
def _turn(shop: Shop, job: int) -> None:
    """Put a job behind all others in order of turns."""
    shop.waiting.turn[job] = shop.tally[TURNS]
    shop.tally[TURNS] += 1


@njit(cache=False, error_model="numpy", borrows=True)
def _seat(shop: Shop, c: int, job: int, now_s: float) -> None:
    """Put a job on a core with a fresh quantum; `_settle` gives it its speed."""
    cores, quantum_s = shop.cores, shop.station.quantum_s
    cores.job[c], cores.left[c], cores.since_s[c], cores.rate[c] = job, shop.left[job], now_s, 0.0
    cores.slice_s[c], cores.end_s[c], cores.serial[c] = quantum_s, now_s + quantum_s, shop.tally[SLICES]
    shop.tally[SLICES] += 1
    if np.isnan(shop.times.start_s[job]):
        shop.times.start_s[job] = now_s


@njit(cache=False, error_model="numpy", borrows=True)
def _draw(shop: Shop) -> int:
    """Take a drawn job out of the line, which stands in order of arrival; one alone needs no draw."""
    line, n, place = shop.waiting.member, shop.waiting.size[0], 0
    if n > 1:
        place = min(int(shop.load.choice[shop.tally[DRAWS]] * n), n - 1)
        shop.tally[DRAWS] += 1
    job = line[place]
    for i in range(place, n - 1):
        line[i] = line[i + 1]
    shop.waiting.size[0] -= 1
    return int(job)


@njit(cache=False, error_model="numpy", borrows=True)
def _fill(shop: Shop, now_s: float) -> None:
    """Let free cores, the fastest first, take jobs that wait."""
    core = _free(shop.cores)
    while core != NOBODY and shop.waiting.size[0] > 0:
        job = _draw(shop) if shop.station.policy == RANDOM else pop(shop.waiting)
        _seat(shop, core, job, now_s)
        core = _free(shop.cores)


@njit(cache=False, error_model="numpy", borrows=True)
def _leave(shop: Shop, now_s: float) -> None:
    """Let all whose service ends now leave."""
    cores = shop.cores
    for c in range(cores.job.size):
        if cores.finish_s[c] == now_s:
            _depart(shop.load, shop.times, shop.pending, cores.job[c], now_s)
            cores.job[c], cores.finish_s[c], cores.expiry_s[c] = NOBODY, np.inf, np.inf


@njit(cache=False, error_model="numpy", borrows=True)
def _arrive(shop: Shop, now_s: float, preemptive: bool, key: NumberFunction | None) -> None:
    """Let the next request join the line, and take the core of whom it may preempt."""
    job, waiting, cores = pop(shop.pending), shop.waiting, shop.cores
    if key is None:
        waiting.key[job] = _rank(shop.station.policy, shop.load.priority[job], shop.left[job], shop.tally[TURNS])
    else:
        waiting.key[job] = _own_rank(shop, job, shop.left[job], key)
    _turn(shop, job)
    if preemptive and _free(cores) == NOBODY:
        worst = _worst(cores, waiting)
        victim = cores.job[worst]
        if _before(waiting, job, victim):
            shop.left[victim] = _left(cores, worst, now_s)
            push(waiting, victim)
            _seat(shop, worst, job, now_s)
            return
    push(waiting, job)


@njit(cache=False, error_model="numpy", borrows=True)
def _expire(shop: Shop, c: int, now_s: float) -> None:
    """End the slice on a core: its job goes behind those who wait, or on if nobody does."""
    cores, job = shop.cores, shop.cores.job[c]
    shop.left[job] = cores.left[c] - cores.rate[c] * cores.slice_s[c]
    if shop.waiting.size[0] > 0:
        _turn(shop, job)
        push(shop.waiting, job)
        job = pop(shop.waiting)
    _seat(shop, c, job, now_s)


@njit(cache=False, error_model="numpy")
def open_shop(load: RequestArrays, station: Servers, times: ServiceTimes, call: Floats) -> Shop:
    """Return the station before the first request."""
    k, n = station.speed.size, load.demand_s.size
    never = np.full(k, np.inf)
    cores = Cores(
        np.full(k, NOBODY), np.zeros(k, np.int64), np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k), never,
        never.copy(), never.copy(),
    )  # fmt: skip
    waiting = empty_heap(np.zeros(n), np.zeros(n, np.int64))
    calendar = _calendar(load, times)
    return Shop(load, station, times, calendar, waiting, cores, load.demand_s.copy(), np.zeros(3, np.int64), call)


@njit(cache=False, error_model="numpy", borrows=True)
def next_on_cores(shop: Shop) -> float:
    """Return when a request arrives or leaves, or a slice ends, next."""
    done, ended = soonest(shop.cores)
    return float(min(first_key(shop.pending), shop.cores.finish_s[done], shop.cores.expiry_s[ended]))


@njit(cache=False, error_model="numpy", borrows=True)
def happen_on_cores(shop: Shop, now_s: float, preemptive: bool, key: NumberFunction | None) -> None:
    """Let what is due now happen: all departures, or one arrival, or the end of one slice.

    Where there is a key, by that (what is done only without one, or with one, is compiled out).
    """
    done, ended = soonest(shop.cores)
    if key is None:
        if shop.station.policy == SRPT:
            _rank_by_rest(shop.cores, shop.waiting, now_s)
    elif preemptive:
        _rank_anew(shop, now_s, key)
    if shop.cores.finish_s[done] == now_s:
        _leave(shop, now_s)
    elif first_key(shop.pending) == now_s:
        _arrive(shop, now_s, preemptive, key)
    else:
        _expire(shop, ended, now_s)
    _fill(shop, now_s)
    if preemptive:
        _line_up(shop.cores, shop.waiting)
    pace_on_cores(shop, now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def pace_on_cores(shop: Shop, now_s: float) -> None:
    """Let every busy core run from now on at the speed that it has now."""
    _settle(shop.cores, shop.station, now_s)


@njit(cache=False, error_model="numpy")
def _run(shop: Shop, preemptive: bool, key: NumberFunction | None) -> None:
    """Serve everybody."""
    pace = shop.station.pace
    while True:
        now_s = next_on_cores(shop)
        if now_s == np.inf:
            return
        if pace.next_s[0] <= now_s and pace.next_s[0] != shop.cores.finish_s[soonest(shop.cores)[0]]:
            now_s = pace.next_s[0]
            _change_pace(pace, now_s, _busy(shop.cores))
            pace_on_cores(shop, now_s)
        else:
            happen_on_cores(shop, now_s, preemptive, key)


@njit(error_model="numpy")
def on_cores(load: RequestArrays, station: Servers, times: ServiceTimes) -> None:
    """Fill the times where every job in service holds a core: all policies but PS and FB."""
    _run(open_shop(load, station, times, np.empty(0)), station.policy in PREEMPTIVE, None)


@njit(error_model="numpy")
def by_key(  # noqa: PLR0917  # compiled code takes arguments by position
    load: RequestArrays, station: Servers, times: ServiceTimes, preemptive: bool, key: NumberFunction, call: Floats
) -> None:
    """Fill the times where jobs hold cores and the one with the least key comes first; equal keys go by arrival.

    A key that is no number, or raises an error, ends in an error; `call` is (5,), the last call of it: its four
    arguments and what it returned.
    """
    _run(open_shop(load, station, times, call), preemptive, key)


@njit(cache=False, error_model="numpy")
def total_speed(station: Servers) -> Floats:
    """Return the summed speed of the 0, 1, .., k fastest cores."""
    total = np.zeros(station.speed.size + 1)
    for core in range(station.speed.size):
        total[core + 1] = total[core] + station.speed[core]
    return total


@njit(cache=False, error_model="numpy", borrows=True)
def _rate(shop: Shared) -> float:
    """Return the speed of each job present under processor sharing."""
    jobs, k = shop.present.size[0], shop.station.speed.size
    return float(shop.total[min(jobs, k)] * _factor(shop.station.pace, min(jobs, k)) / jobs) if jobs > 0 else 0.0


@njit(cache=False, error_model="numpy", borrows=True)
def _done_sharing(shop: Shared) -> float:
    """Return when somebody is done next."""
    present, clock, rate = shop.present, shop.clock, _rate(shop)
    if rate == 0.0:
        return np.inf
    return float(clock[NOW] + max(0.0, present.key[present.member[0]] - clock[ATTAINED]) / rate)


@njit(cache=False, error_model="numpy", borrows=True)
def next_sharing(shop: Shared) -> float:
    """Return when a request arrives or leaves next."""
    return float(min(first_key(shop.pending), _done_sharing(shop)))


@njit(cache=False, error_model="numpy", borrows=True)
def pass_sharing(shop: Shared, now_s: float) -> None:
    """Let everybody present attain what they do until now."""
    clock = shop.clock
    clock[ATTAINED] += _rate(shop) * (now_s - clock[NOW])
    clock[NOW] = now_s


@njit(cache=False, error_model="numpy", borrows=True)
def happen_sharing(shop: Shared) -> None:
    """Let the next request leave or arrive."""
    finish_s, arrival_s, clock, present = _done_sharing(shop), first_key(shop.pending), shop.clock, shop.present
    if finish_s <= arrival_s:
        jobs, job = present.size[0], pop(present)
        clock[NOW], clock[ATTAINED] = finish_s, present.key[job] if jobs > 1 else 0.0
        _depart(shop.load, shop.times, shop.pending, job, finish_s)
    else:
        pass_sharing(shop, arrival_s)
        job = pop(shop.pending)
        shop.times.start_s[job] = arrival_s
        present.key[job] = clock[ATTAINED] + shop.load.demand_s[job]
        push(present, job)


@njit(error_model="numpy")
def sharing(load: RequestArrays, station: Servers, times: ServiceTimes) -> None:
    """Fill the times under processor sharing: the speed of the min(N, k) fastest cores is split evenly."""
    n, pace = load.demand_s.size, station.pace
    present = empty_heap(np.zeros(n), np.arange(n))
    shop = Shared(load, station, times, _calendar(load, times), present, total_speed(station), np.zeros(2))
    while next_sharing(shop) < np.inf:
        change_s = pace.next_s[0]
        if change_s <= first_key(shop.pending) and change_s < _done_sharing(shop):
            pass_sharing(shop, change_s)
            _change_pace(pace, change_s, min(present.size[0], station.speed.size))
        else:
            happen_sharing(shop)


@njit(cache=False, error_model="numpy", borrows=True)
def _share_out(groups: AttainedLine, station: Servers, total: Floats) -> int:
    """Give the last groups as many cores as they have jobs, fastest first, while any are left; return the first served.

    Cores that are fewer than the jobs of a group are split evenly.
    """
    g, used, k = groups.size[GROUPS], 0, station.speed.size
    while g > 0 and used < k:
        g -= 1
        jobs = groups.start[g + 1] - groups.start[g]
        taken = min(jobs, k - used)
        busy = min(groups.size[JOBS], k)
        groups.rate[g] = (total[used + taken] - total[used]) * _factor(station.pace, busy) / jobs
        used += taken
    return int(g)


@njit(cache=False, error_model="numpy", borrows=True)
def _first_done(load: RequestArrays, groups: AttainedLine, served: int) -> tuple[float, int, int]:
    """Return in how many seconds somebody is done if nothing changes, the group and the place in the line."""
    soonest, group, place = np.inf, NOBODY, NOBODY
    for g in range(served, groups.size[GROUPS]):
        for i in range(groups.start[g], groups.start[g + 1]):
            rest_s = max(0.0, load.demand_s[groups.line[i]] - groups.level[g]) / groups.rate[g]
            if rest_s < soonest:  # never at speed 0
                soonest, group, place = rest_s, g, i
    return soonest, group, place


@njit(cache=False, error_model="numpy", borrows=True)
def _first_caught(groups: AttainedLine, served: int) -> tuple[float, int]:
    """Return in how many seconds a group catches up with the one before it if nothing changes, and which group."""
    soonest, group = np.inf, NOBODY
    for g in range(max(1, served), groups.size[GROUPS]):
        closing = groups.rate[g] - (groups.rate[g - 1] if g > served else 0.0)
        if closing > 0.0 and max(0.0, groups.level[g - 1] - groups.level[g]) / closing < soonest:
            soonest, group = max(0.0, groups.level[g - 1] - groups.level[g]) / closing, g
    return soonest, group


@njit(cache=False, error_model="numpy", borrows=True)
def _merge(groups: AttainedLine, group: int) -> None:
    """Make a group part of the one before it."""
    for g in range(group, groups.size[GROUPS] - 1):
        groups.start[g], groups.level[g] = groups.start[g + 1], groups.level[g + 1]
    groups.size[GROUPS] -= 1
    groups.start[groups.size[GROUPS]] = groups.size[JOBS]


@njit(cache=False, error_model="numpy", borrows=True)
def _join(groups: AttainedLine, job: int) -> None:
    """Put a job that has attained nothing at the end of the line, in a group of its own."""
    groups.level[groups.size[GROUPS]] = 0.0
    groups.size[GROUPS] += 1
    groups.line[groups.size[JOBS]] = job
    groups.size[JOBS] += 1
    groups.start[groups.size[GROUPS]] = groups.size[JOBS]


@njit(cache=False, error_model="numpy", borrows=True)
def _remove(groups: AttainedLine, group: int, place: int) -> None:
    """Take a job out of the line, and its group if nobody is left in it."""
    groups.size[JOBS] -= 1
    for i in range(place, groups.size[JOBS]):
        groups.line[i] = groups.line[i + 1]
    for g in range(group + 1, groups.size[GROUPS] + 1):
        groups.start[g] -= 1
    if groups.start[group] == groups.start[group + 1]:
        _merge(groups, group)


@njit(cache=False, error_model="numpy", borrows=True)
def _advance(groups: AttainedLine, served: int, passed_s: float) -> None:
    """Let the groups served attain what they do in that time."""
    for g in range(served, groups.size[GROUPS]):
        groups.level[g] += groups.rate[g] * passed_s


@njit(cache=False, error_model="numpy", borrows=True)
def _done_foreground(shop: Foreground) -> float:
    """Return when somebody is done, or a group catches up with another, next."""
    served = _share_out(shop.groups, shop.station, shop.total)
    done_s, _, _ = _first_done(shop.load, shop.groups, served)
    caught_s, _ = _first_caught(shop.groups, served)
    return float(shop.clock[NOW] + min(done_s, caught_s))


@njit(cache=False, error_model="numpy", borrows=True)
def next_foreground(shop: Foreground) -> float:
    """Return when a request arrives or leaves, or a group catches up with another, next."""
    return float(min(first_key(shop.pending), _done_foreground(shop)))


@njit(cache=False, error_model="numpy", borrows=True)
def pass_foreground(shop: Foreground, now_s: float) -> None:
    """Let whom the servers serve attain what they do until now."""
    served = _share_out(shop.groups, shop.station, shop.total)
    _advance(shop.groups, served, now_s - shop.clock[NOW])
    shop.clock[NOW] = now_s


@njit(cache=False, error_model="numpy", borrows=True)
def happen_foreground(shop: Foreground) -> None:
    """Let the next request arrive or leave, or the next group catch up."""
    load, groups, clock = shop.load, shop.groups, shop.clock
    served = _share_out(groups, shop.station, shop.total)
    done_s, leaving, place = _first_done(load, groups, served)
    caught_s, merging = _first_caught(groups, served)
    arrival_s, step_s = first_key(shop.pending), min(done_s, caught_s)
    if arrival_s < clock[NOW] + step_s:
        _advance(groups, served, arrival_s - clock[NOW])
        job, clock[NOW] = pop(shop.pending), arrival_s
        shop.times.start_s[job] = arrival_s
        _join(groups, job)
        return
    _advance(groups, served, step_s)
    clock[NOW] += step_s
    if caught_s < done_s:
        _merge(groups, merging)
    else:
        job = groups.line[place]
        groups.level[leaving] = load.demand_s[job]
        _remove(groups, leaving, place)
        _depart(load, shop.times, shop.pending, job, clock[NOW])


@njit(error_model="numpy")
def foreground(load: RequestArrays, station: Servers, times: ServiceTimes) -> None:
    """Fill the times under foreground-background: the jobs with the least attained service share the servers."""
    n, pace = load.demand_s.size, station.pace
    groups = AttainedLine(
        np.empty(n, np.int64), np.zeros(n + 1, np.int64), np.zeros(n), np.zeros(n), np.zeros(2, np.int64)
    )
    shop = Foreground(load, station, times, _calendar(load, times), groups, total_speed(station), np.zeros(2))
    while next_foreground(shop) < np.inf:
        change_s = pace.next_s[0]
        if change_s <= first_key(shop.pending) and change_s < _done_foreground(shop):
            pass_foreground(shop, change_s)
            _change_pace(pace, change_s, min(groups.size[JOBS], station.speed.size))
        else:
            happen_foreground(shop)
