"""A station that may refuse requests, that they may give up, and whose servers come and go, compiled.

All servers are alike; their speed is 1, or changes with time and with how many work. Row a·n + i of the arrays of m·n
attempts is attempt a of request i: a request that is refused or gives up comes again while it has attempts left. At
equal times departures come before changes of the number of servers, these before requests that give up, these before
time-outs, these before changes of the speed, and these before arrivals, time-outs and arrivals in order of row; free
servers look for work after each of them. A server that is taken away finishes what it has begun, or, under a preemptive
policy or processor sharing, leaves it to the others. Nothing is checked here: see `models.queues.limited`.
All compiled helpers live in this file because numba's cache does not look into others.
"""

from typing import Final, NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.queues.layout import Heap, Pace
from models.queues.policies import POLICIES

LCFS, LCFS_PR, SRPT = POLICIES["lcfs"].code, POLICIES["lcfs_pr"].code, POLICIES["srpt"].code
SJF, PRIORITY, RANDOM, PS = (POLICIES[name].code for name in ("sjf", "priority", "random", "ps"))
"""Policies by the codes that the kernel compares; first come, first served is its plain case."""
NOT_TRIED, SERVED, REFUSED, GAVE_UP, TIMED_OUT = -1, 0, 1, 2, 3
"""What became of an attempt."""
FIXED, UTILISATION, PRESENT, QUEUEING, LAW = range(5)
"""Rules by which servers are ordered; fixed: by the steps of a schedule, if there are any."""
NOBODY = -1
SERVERS, TURNS, DRAWS, STEP, LOOK, STARTING, LOGGED, DONE = range(8)
"""Places in `Floor.number`: servers that take requests; turns given; draws used; the step and the look that come next;
servers that are starting; rows of the log; requests served."""
NOW, ATTAINED, WORKED, EACH = range(4)
"""Places in `Floor.clock`; each: the work that a server has done by now which was never idle, at speed 1 the time."""
STRETCH, SEEN = range(2)
"""Places in `Pace.row`: the step in force, and how many were seen at work."""
STEP_SHARE: Final = 0.1
"""Of the servers, rounded up: by so many the rule about queueing time grows or shrinks at one look."""
WHOLE: Final = 1e-9
"""By so much a number of servers may be above a whole one without being the next: what rounding leaves."""
CALM: Final = 0.5
"""Of its target: below that the rule about queueing time lets servers go."""


class Attempts(NamedTuple):
    """What comes out: arrays of m·n, seconds, and what became of each; `work_s` is the service that it had."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats
    work_s: Floats
    outcome: Ints


class Offers(NamedTuple):
    """Requests: arrays of n, as in `models.queues.layout.RequestArrays`; the last four are arrays of m·n.

    `return_s` is the time from a failed attempt to the next one, NaN after the last.
    """

    arrival_s: Floats
    demand_s: Floats
    think_s: Floats
    first: Ints
    following: Ints
    priority: Ints
    choice: Floats
    patience_s: Floats
    timeout_s: Floats
    return_s: Floats


class Scaling(NamedTuple):
    """How many servers are ordered when: steps of a schedule, or a rule that looks every `look_s`.

    `least` and `most` bound what the rule orders; what it aims at is `target`.
    """

    start_up_s: float
    step_s: Floats
    step_servers: Ints
    rule: int
    look_s: float
    target: float
    least: int
    most: int


class LookTallies(NamedTuple):
    """What the last h looks saw, in turn.

    `present_s` is (h, most + 1): seconds with 0, 1, … present, `most` and more in the last column; `beyond_s` is the
    time that those beyond `most` waited; the others are busy time, waiting time, arrivals and servers wanted.
    """

    present_s: Floats
    beyond_s: Floats
    busy_s: Floats
    waiting_s: Floats
    arrivals: Ints
    wanted: Ints


class Floor(NamedTuple):
    """Who is to arrive, who waits, who is served and until when, who gives up or times out when, and the servers.

    Under processor sharing `serving` is keyed by the work that everybody present will have attained since the station
    was last empty. `ready_s` are the times at which starting servers are ready; `log` has a row for each change: when,
    how many are on, how many are starting.
    """

    pending: Heap
    waiting: Heap
    serving: Heap
    leaving: Heap
    expiring: Heap
    left: Floats
    ready_s: Floats
    number: Ints
    clock: Floats
    log_s: Floats
    log: Ints


class ElasticStation(NamedTuple):
    """All of it."""

    offers: Offers
    attempts: Attempts
    policy: int
    preemptive: bool
    capacity: int
    threads: int
    """Under processor sharing as many requests share the servers, the first to come; the others wait for a thread."""
    scaling: Scaling
    looks: LookTallies
    floor: Floor
    pace: Pace
    paced: bool
    """Whether the speed is ever another one than 1."""


@njit(cache=False, error_model="numpy", borrows=True)
def _before(heap: Heap, a: int, b: int) -> bool:
    """Tell whether row a comes before row b."""
    return bool(heap.key[a] < heap.key[b] or (heap.key[a] == heap.key[b] and heap.turn[a] < heap.turn[b]))


@njit(cache=False, error_model="numpy", borrows=True)
def _sift(heap: Heap, at: int, row: int) -> None:
    """Put a row into the hole at a place, or where it belongs above or below."""
    member, n = heap.member, heap.size[0]
    while at > 0 and _before(heap, row, member[(at - 1) // 2]):
        member[at] = member[(at - 1) // 2]
        at = (at - 1) // 2
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and _before(heap, member[child + 1], member[child]):
            child += 1
        if not _before(heap, member[child], row):
            break
        member[at] = member[child]
        at = child
    member[at] = row


@njit(cache=False, error_model="numpy", borrows=True)
def _push(heap: Heap, row: int) -> None:
    """Put a row into the heap."""
    heap.size[0] += 1
    _sift(heap, heap.size[0] - 1, row)


@njit(cache=False, error_model="numpy", borrows=True)
def _take(heap: Heap, at: int) -> int:
    """Take the row at a place out of the heap."""
    row = heap.member[at]
    heap.size[0] -= 1
    n = heap.size[0]
    if at < n:
        _sift(heap, at, heap.member[n])
    return int(row)


@njit(cache=False, error_model="numpy", borrows=True)
def _take_in_line(heap: Heap, at: int) -> int:
    """Take the row at a place out of a heap that stands in order, and leave the others in order."""
    row = heap.member[at]
    heap.size[0] -= 1
    for i in range(at, heap.size[0]):
        heap.member[i] = heap.member[i + 1]
    return int(row)


@njit(cache=False, error_model="numpy", borrows=True)
def _first(heap: Heap) -> float:
    """Return the least key, infinite if there is none."""
    return float(heap.key[heap.member[0]]) if heap.size[0] > 0 else np.inf


@njit(cache=False, error_model="numpy", borrows=True)
def _present(station: ElasticStation) -> int:
    """Return how many wait or are served."""
    return int(station.floor.waiting.size[0] + station.floor.serving.size[0])


@njit(cache=False, error_model="numpy", borrows=True)
def _busy(station: ElasticStation) -> int:
    """Return how many servers work."""
    serving = station.floor.serving.size[0]
    return int(min(serving, station.floor.number[SERVERS]) if station.policy == PS else serving)


@njit(cache=False, error_model="numpy", borrows=True)
def _speed(station: ElasticStation, busy: int) -> float:
    """Return the speed of every server while so many work, of which there is at least one."""
    pace = station.pace
    return float(pace.factor[pace.row[STRETCH], pace.row[SEEN], busy - 1]) if station.paced else 1.0


@njit(cache=False, error_model="numpy", borrows=True)
def _change_speed(station: ElasticStation, now_s: float) -> None:
    """Begin the steps that begin now, and see how many work if it is time for that."""
    pace, step, steps = station.pace, station.pace.row[STRETCH], station.pace.start_s.size
    while step + 1 < steps and pace.start_s[step + 1] <= now_s:
        step += 1
    pace.row[STRETCH], pace.next_s[0] = step, pace.start_s[step + 1] if step + 1 < steps else np.inf
    if pace.look_s < np.inf:
        look = np.round(now_s / pace.look_s)
        if look * pace.look_s == now_s:
            pace.row[SEEN] = min(_busy(station), pace.factor.shape[1] - 1)
        pace.next_s[0] = min(pace.next_s[0], (look + 1.0 if look * pace.look_s <= now_s else look) * pace.look_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _write(station: ElasticStation, now_s: float) -> None:
    """See that the last row of the log, the only one of its time, says how many servers are on and starting."""
    floor, on, rows = station.floor, max(station.floor.number[SERVERS], _busy(station)), station.floor.number[LOGGED]
    if floor.log_s[rows - 1] == now_s and rows > 1:
        rows -= 1
    if floor.log[rows - 1, 0] != on or floor.log[rows - 1, 1] != floor.number[STARTING]:
        floor.log_s[rows], floor.log[rows, 0], floor.log[rows, 1] = now_s, on, floor.number[STARTING]
        rows += 1
    floor.number[LOGGED] = rows


@njit(cache=False, error_model="numpy", borrows=True)
def _pass(station: ElasticStation, now_s: float) -> None:
    """Let time pass until now."""
    floor, looks = station.floor, station.looks
    passed_s, present, busy = now_s - floor.clock[NOW], _present(station), _busy(station)
    floor.clock[NOW] = now_s
    if not station.paced:
        floor.clock[EACH] = now_s
    elif busy > 0:
        floor.clock[EACH] += passed_s * _speed(station, busy)
    if station.policy == PS and present > 0:
        floor.clock[ATTAINED] += passed_s * busy / floor.serving.size[0] * _speed(station, busy)
    if station.scaling.rule != FIXED:
        h, most = floor.number[LOOK] % looks.busy_s.size, station.scaling.most
        looks.present_s[h, min(present, most)] += passed_s
        looks.beyond_s[h] += passed_s * max(present - most, 0)
        looks.busy_s[h] += passed_s * busy
        floor.clock[WORKED] += passed_s * busy
        looks.waiting_s[h] += passed_s * (present - busy)


@njit(cache=False, error_model="numpy", borrows=True)
def _resolve(station: ElasticStation, row: int, outcome: int, now_s: float) -> None:
    """Let an attempt leave; it comes again, or the requests that follow it will arrive."""
    offers, attempts = station.offers, station.attempts
    n = offers.demand_s.size
    attempts.departure_s[row], attempts.outcome[row] = now_s, outcome
    if outcome == SERVED:
        attempts.work_s[row] = offers.demand_s[row % n]
        station.floor.number[DONE] += 1
    if outcome != SERVED and not np.isnan(offers.return_s[row]):
        attempts.arrival_s[row + n] = now_s + offers.return_s[row]
        _push(station.floor.pending, row + n)
        return
    follower = offers.first[row % n] if offers.first.size > 0 else NOBODY
    while follower != NOBODY:
        attempts.arrival_s[follower] = now_s + offers.think_s[follower]
        _push(station.floor.pending, follower)
        follower = offers.following[follower]


@njit(cache=False, error_model="numpy", borrows=True)
def _begin(station: ElasticStation, row: int, now_s: float) -> None:
    """Let a server take a request."""
    floor, attempts = station.floor, station.attempts
    if np.isnan(attempts.start_s[row]):
        attempts.start_s[row] = now_s
    since = floor.clock[ATTAINED if station.policy == PS else EACH]
    floor.serving.key[row] = since + floor.left[row % floor.left.size]
    _push(floor.serving, row)


@njit(cache=False, error_model="numpy", borrows=True)
def _interrupt(station: ElasticStation, at: int) -> None:
    """Put the request at a place among those that are served back into the line."""
    floor = station.floor
    row = _take(floor.serving, at)
    floor.left[row % floor.left.size] = floor.serving.key[row] - floor.clock[EACH]
    if station.policy == SRPT:
        floor.waiting.key[row] = floor.left[row % floor.left.size]
    _push(floor.waiting, row)


@njit(cache=False, error_model="numpy", borrows=True)
def _worst(station: ElasticStation) -> int:
    """Return the place of the request in service that ranks last."""
    floor, worst = station.floor, 0
    for at in range(floor.serving.size[0]):
        row = floor.serving.member[at]
        if station.policy == SRPT:
            floor.waiting.key[row] = floor.serving.key[row] - floor.clock[EACH]
        if _before(floor.waiting, floor.serving.member[worst], row):
            worst = at
    return worst


@njit(cache=False, error_model="numpy", borrows=True)
def _fill(station: ElasticStation, now_s: float) -> None:
    """Let free servers take requests that wait, or free threads."""
    floor, number = station.floor, station.floor.number
    room = station.threads if station.policy == PS else number[SERVERS]
    while floor.serving.size[0] < room and floor.waiting.size[0] > 0:
        if station.policy != RANDOM:
            _begin(station, _take(floor.waiting, 0), now_s)
            continue
        n, place = floor.waiting.size[0], 0
        if n > 1:
            place = min(int(station.offers.choice[number[DRAWS]] * n), n - 1)
            number[DRAWS] += 1
        _begin(station, _take_in_line(floor.waiting, place), now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _done_s(station: ElasticStation) -> float:
    """Return when somebody's service is complete next."""
    floor, serving = station.floor, station.floor.serving.size[0]
    if serving == 0 or not (station.paced or station.policy == PS):
        return _first(floor.serving)
    busy, since = _busy(station), floor.clock[ATTAINED if station.policy == PS else EACH]
    stretch = serving / busy if station.policy == PS else 1.0
    return float(floor.clock[NOW] + max(0.0, _first(floor.serving) - since) * stretch / _speed(station, busy))


@njit(cache=False, error_model="numpy", borrows=True)
def _leave(station: ElasticStation, now_s: float) -> None:
    """Let whose service ends now leave: all of them, or under processor sharing the first."""
    floor = station.floor
    if station.policy == PS:
        row = _take(floor.serving, 0)
        floor.clock[ATTAINED] = floor.serving.key[row] if floor.serving.size[0] > 0 else 0.0
        _resolve(station, row, SERVED, now_s)
    else:
        floor.clock[EACH] = max(floor.clock[EACH], _first(floor.serving))
        while _first(floor.serving) <= floor.clock[EACH]:
            _resolve(station, _take(floor.serving, 0), SERVED, now_s)
    _fill(station, now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _rank(station: ElasticStation, row: int) -> float:
    """Return what an attempt that arrives is ranked by; equal ranks go by turn."""
    i, policy = row % station.offers.demand_s.size, station.policy
    if policy in (SRPT, SJF):
        return float(station.offers.demand_s[i])
    if policy in (LCFS, LCFS_PR):
        return -float(station.floor.number[TURNS])
    return float(station.offers.priority[i]) if policy == PRIORITY else 0.0


@njit(cache=False, error_model="numpy", borrows=True)
def _arrive(station: ElasticStation, now_s: float) -> None:
    """Let the next attempt arrive: it is refused, served, or joins the line."""
    floor, offers, attempts = station.floor, station.offers, station.attempts
    row, n = _take(floor.pending, 0), offers.demand_s.size
    if station.scaling.rule != FIXED:
        station.looks.arrivals[floor.number[LOOK] % station.looks.busy_s.size] += 1
    if _present(station) >= station.capacity:
        _resolve(station, row, REFUSED, now_s)
        return
    floor.left[row % n] = offers.demand_s[row % n]
    floor.waiting.key[row], floor.waiting.turn[row] = _rank(station, row), floor.number[TURNS]
    floor.number[TURNS] += 1
    if offers.timeout_s[row] < np.inf:
        floor.expiring.key[row] = now_s + offers.timeout_s[row]
        _push(floor.expiring, row)
    if station.preemptive and floor.serving.size[0] == floor.number[SERVERS]:
        worst = _worst(station)
        if _before(floor.waiting, row, floor.serving.member[worst]):
            _interrupt(station, worst)
            _begin(station, row, now_s)
            return
    _push(floor.waiting, row)
    _fill(station, now_s)
    if np.isnan(attempts.start_s[row]) and offers.patience_s[row] < np.inf:
        floor.leaving.key[row] = now_s + offers.patience_s[row]
        _push(floor.leaving, row)


@njit(cache=False, error_model="numpy", borrows=True)
def _gives_up_s(station: ElasticStation) -> float:
    """Return when the next request that waits gives up; forget those that a server took in time, or that are gone."""
    leaving, attempts = station.floor.leaving, station.attempts
    while leaving.size[0] > 0:
        row = leaving.member[0]
        if np.isnan(attempts.start_s[row]) and attempts.outcome[row] == NOT_TRIED:
            break
        _take(leaving, 0)
    return _first(leaving)


@njit(cache=False, error_model="numpy", borrows=True)
def _give_up(station: ElasticStation, now_s: float) -> None:
    """Let the first request whose patience ends leave the line."""
    row, waiting, at = _take(station.floor.leaving, 0), station.floor.waiting, 0
    while waiting.member[at] != row:
        at += 1
    if station.policy == RANDOM:
        _take_in_line(waiting, at)
    else:
        _take(waiting, at)
    _resolve(station, row, GAVE_UP, now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _times_out_s(station: ElasticStation) -> float:
    """Return when the next request times out; forget those that are gone."""
    expiring = station.floor.expiring
    while expiring.size[0] > 0 and station.attempts.outcome[expiring.member[0]] != NOT_TRIED:
        _take(expiring, 0)
    return _first(expiring)


@njit(cache=False, error_model="numpy", borrows=True)
def _place(heap: Heap, row: int) -> int:
    """Return the place of a row in a heap, or `NOBODY`."""
    for at in range(heap.size[0]):
        if heap.member[at] == row:
            return at
    return NOBODY


@njit(cache=False, error_model="numpy", borrows=True)
def _time_out(station: ElasticStation, now_s: float) -> None:
    """Let the first request whose time is over leave the server or the line."""
    floor, row = station.floor, _take(station.floor.expiring, 0)
    demand_s, at = station.offers.demand_s[row % floor.left.size], _place(floor.serving, row)
    if at == NOBODY:
        station.attempts.work_s[row] = demand_s - floor.left[row % floor.left.size]
        at = _place(floor.waiting, row)
        if station.policy == RANDOM:
            _take_in_line(floor.waiting, at)
        else:
            _take(floor.waiting, at)
    else:
        since = floor.clock[ATTAINED if station.policy == PS else EACH]
        station.attempts.work_s[row] = demand_s - (floor.serving.key[row] - since)
        _take(floor.serving, at)
        if station.policy == PS and floor.serving.size[0] == 0:
            floor.clock[ATTAINED] = 0.0
    _resolve(station, row, TIMED_OUT, now_s)
    _fill(station, now_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _order(station: ElasticStation, servers: int, now_s: float) -> None:
    """Let as many servers be on or starting as are wanted; those that started last are cancelled first."""
    floor, number = station.floor, station.floor.number
    while number[SERVERS] + number[STARTING] < servers:
        floor.ready_s[number[STARTING]] = now_s + station.scaling.start_up_s
        number[STARTING] += 1
    while number[SERVERS] + number[STARTING] > servers:
        number[STARTING if number[STARTING] > 0 else SERVERS] -= 1
    while station.preemptive and floor.serving.size[0] > number[SERVERS]:
        _interrupt(station, _worst(station))


@njit(cache=False, error_model="numpy", borrows=True)
def _by_law(looks: LookTallies, first: int, last: int, scaling: Scaling) -> int:
    """Return the fewest servers for which the Occupancy Law says that requests of these looks wait as long as aimed at.

    With k servers and the requests present as they were, they wait ∫ max(N − k, 0) dt together: no longer than that if
    there are more servers than there were.
    """
    rows, waiting_s, longer_s, aim_s, servers = looks.busy_s.size, 0.0, 0.0, 0.0, scaling.most
    for look in range(first, last + 1):
        waiting_s += looks.beyond_s[look % rows]
        aim_s += scaling.target * looks.arrivals[look % rows]
    while servers > scaling.least:
        for look in range(first, last + 1):
            longer_s += looks.present_s[look % rows, servers]
        if waiting_s + longer_s > aim_s:
            break
        waiting_s += longer_s
        servers -= 1
    return servers


@njit(cache=False, error_model="numpy", borrows=True)
def _by_load(load: float, wait: float, most: int) -> int:
    """Return the fewest servers with which a wait, in mean demands, is not longer by Erlang's C; `most` if none are."""
    blocked = 1.0
    for servers in range(1, most):
        blocked = load * blocked / (servers + load * blocked)
        spare = servers - load
        if spare > 0.0 and servers * blocked <= wait * spare * (spare + load * blocked):
            return servers
    return most


@njit(cache=False, error_model="numpy", borrows=True)
def _wanted(station: ElasticStation, look: int) -> int:
    """Return how many servers the rule wants after what this look saw.

    What the law says of more servers than there are is an upper bound, of fewer ones a lower bound. So its rule orders
    no more than the load needs by Erlang's C with those that wait, and lets none go that the load of the last looks
    needs.
    """
    looks, scaling, floor = station.looks, station.scaling, station.floor
    h, ordered = look % looks.busy_s.size, floor.number[SERVERS] + floor.number[STARTING]
    if scaling.rule == UTILISATION:
        return int(np.ceil(looks.busy_s[h] / scaling.look_s / scaling.target - WHOLE))
    if scaling.rule == PRESENT:
        return int(np.ceil((looks.busy_s[h] + looks.waiting_s[h]) / scaling.look_s / scaling.target - WHOLE))
    if scaling.rule == LAW:
        demand_s = floor.clock[WORKED] / floor.number[DONE] if floor.number[DONE] > 0 else scaling.look_s
        wait, first = scaling.target / demand_s, max(0, look + 1 - looks.busy_s.size)
        servers = _by_law(looks, look, look, scaling)
        if servers > ordered:
            backlog = (_present(station) - _busy(station)) * demand_s / (scaling.look_s + scaling.start_up_s)
            load = looks.arrivals[h] * demand_s / scaling.look_s
            enough = int(np.ceil(_by_load(load, wait, scaling.most) + backlog - WHOLE))
            return int(min(servers, max(ordered + 1, enough)))
        load = looks.arrivals.sum() * demand_s / scaling.look_s / (look + 1 - first)
        servers = max(_by_law(looks, first, look, scaling), _by_load(load, wait, scaling.most))
        return int(min(ordered, servers))
    step, wait_s = int(np.ceil(STEP_SHARE * ordered)), looks.waiting_s[h]
    if wait_s > scaling.target * looks.arrivals[h]:
        return int(ordered + step)
    return int(ordered - step if wait_s <= CALM * scaling.target * looks.arrivals[h] else ordered)


@njit(cache=False, error_model="numpy", borrows=True)
def _look(station: ElasticStation, now_s: float) -> None:
    """Order what the rule wants; what one of the last h looks wanted is not undercut."""
    looks, scaling, look = station.looks, station.scaling, station.floor.number[LOOK]
    rows, h = looks.busy_s.size, look % looks.busy_s.size
    looks.wanted[h] = wanted = min(max(_wanted(station, look), scaling.least), scaling.most)
    if scaling.rule != LAW:  # which looks back by itself
        for row in range(rows):
            wanted = max(wanted, looks.wanted[row])
    _order(station, wanted, now_s)
    station.floor.number[LOOK] = look + 1
    h = (look + 1) % rows
    looks.present_s[h] = 0.0
    looks.beyond_s[h] = looks.busy_s[h] = looks.waiting_s[h] = 0.0
    looks.arrivals[h] = 0


@njit(cache=False, error_model="numpy", borrows=True)
def _changes_s(station: ElasticStation) -> float:
    """Return when servers are ready, a step of the schedule begins, or the rule looks, next."""
    scaling, number = station.scaling, station.floor.number
    next_s = station.floor.ready_s[0] if number[STARTING] > 0 else np.inf
    if number[STEP] < scaling.step_s.size:
        next_s = min(next_s, scaling.step_s[number[STEP]])
    return float(min(next_s, (number[LOOK] + 1) * scaling.look_s) if scaling.rule != FIXED else next_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _change(station: ElasticStation, now_s: float) -> None:
    """Let servers that are ready take requests; else begin a step; else look."""
    floor, scaling, number = station.floor, station.scaling, station.floor.number
    if number[STARTING] > 0 and floor.ready_s[0] == now_s:
        number[STARTING] -= 1
        number[SERVERS] += 1
        for i in range(number[STARTING]):
            floor.ready_s[i] = floor.ready_s[i + 1]
    elif number[STEP] < scaling.step_s.size and scaling.step_s[number[STEP]] == now_s:
        _order(station, scaling.step_servers[number[STEP]], now_s)
        number[STEP] += 1
    else:
        _look(station, now_s)
    _fill(station, now_s)


@njit(cache=True, error_model="numpy", borrows=True)
def run(station: ElasticStation) -> bool:
    """Serve until nobody is there or to come, or until the log is full: whether there is more to do."""
    floor = station.floor
    while floor.pending.size[0] > 0 or _present(station) > 0:
        if floor.number[LOGGED] >= floor.log_s.size - 1:
            return True
        done_s, change_s, quit_s = _done_s(station), _changes_s(station), _gives_up_s(station)
        out_s, pace_s = _times_out_s(station), station.pace.next_s[0]
        now_s = min(done_s, change_s, quit_s, out_s, pace_s, _first(floor.pending))
        _pass(station, now_s)
        if done_s == now_s:
            _leave(station, now_s)
        elif change_s == now_s:
            _change(station, now_s)
        elif quit_s == now_s:
            _give_up(station, now_s)
        elif out_s == now_s:
            _time_out(station, now_s)
        elif pace_s == now_s:
            _change_speed(station, now_s)
        else:
            _arrive(station, now_s)
        _write(station, now_s)
    return False
