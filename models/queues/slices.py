"""Compiled kernels of an open queue, second part: round robin.

Everybody present stands in one ring, those in service first, in the order in which their slices began. When a quantum
expires the front goes to the tail and the first who waits comes into service: the ring turns by one, whoever it is. So
many turns of the ring are one piece of arithmetic, and a job costs the same however many quanta it needs.

What decides at equal times: departures, then arrivals, then expiries, those in the order in which their slices began.
Slices that follow each other on a server end at base + number · quantum, so that no sum of quanta is rounded twice; a
departure begins a new base. A job whose demand is a whole number of quanta but for rounding (1e-12 of it) needs just as
many slices.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.queues.kernels import JobBatch, doubled

PATIENCE = 16
"""Turns of the ring that are cheaper one by one, beyond two for everybody present."""
WHOLE = 1e-12
"""Share of a demand that is rounding and no slice of its own."""
HEAD, PRESENT, FRONT = range(3)
"""Of `Ring.place`: where the first job stands in the ring, how many are present, where the first server stands."""


class Ring(NamedTuple):
    """Who is present between two batches.

    `ring` holds rows from `place[HEAD]` on; `base_s` and `served` belong to the first ones, who are in service, from
    `place[FRONT]` on: the slice of each ends at base + (served + 1) · quantum. `slices` are left of a row, the present
    one included, and `last_s` is how long its last one takes.
    """

    ring: Ints
    slices: Ints
    last_s: Floats
    base_s: Floats
    served: Ints
    place: Ints
    quantum_s: float


def ring(capacity: int, servers: int, quantum_s: float) -> Ring:
    """Return an empty ring for batches of up to `capacity` rows, a power of two.

    Examples
    --------
    >>> ring(8, servers=2, quantum_s=0.1).place
    array([0, 0, 0])
    """
    return Ring(
        np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity),
        np.empty(servers), np.empty(servers, np.int64), np.zeros(3, np.int64), quantum_s,
    )  # fmt: skip


@njit(cache=False, borrows=True)
def _row(state: Ring, position: int) -> int:
    """Return who stands at that position of the ring."""
    return int(state.ring[(state.place[HEAD] + position) & (state.ring.size - 1)])


@njit(cache=False, borrows=True)
def _server(state: Ring, position: int) -> int:
    """Return the place in `base_s` and `served` of a position in service are."""
    place = state.place[FRONT] + position
    return int(place - state.served.size if place >= state.served.size else place)


@njit(cache=False, borrows=True)
def _leaves(state: Ring, position: int) -> float:
    """Return when the job at that position would leave if its server stayed with it."""
    row, server = _row(state, position), _server(state, position)
    before = state.served[server] + state.slices[row] - 1
    end = state.base_s[server] + before * state.quantum_s + state.last_s[row]
    return float(min(end, state.base_s[server] + (before + 1) * state.quantum_s))


@njit(cache=False, borrows=True)
def _next(state: Ring) -> tuple[float, int]:
    """Return when the first in service would leave in the slice that it has, and its position.

    While nobody waits, the slices it has are all that it needs.
    """
    servers, present = state.served.size, state.place[PRESENT]
    soonest, position = np.inf, -1
    for p in range(min(present, servers)):
        if present <= servers or state.slices[_row(state, p)] == 1:
            end = _leaves(state, p)
            if end < soonest:
                soonest, position = end, p
    return soonest, position


@njit(cache=False, borrows=True)
def _begin(jobs: JobBatch, state: Ring, position: int, now: float) -> None:
    """Note when the job at that position got its first slice, if this is it."""
    row = _row(state, position)
    if np.isnan(jobs.start_s[row]):
        jobs.start_s[row] = now


@njit(cache=False, borrows=True)
def _depart(jobs: JobBatch, state: Ring, position: int, now: float) -> None:
    """Let the job at that position in service leave and the first who waits take its server."""
    place, mask, servers = state.place, state.ring.size - 1, state.served.size
    jobs.departure_s[_row(state, position)] = now
    for p in range(position, 0, -1):
        state.ring[(place[HEAD] + p) & mask] = state.ring[(place[HEAD] + p - 1) & mask]
    for p in range(position, min(place[PRESENT], servers) - 1):
        here, behind = _server(state, p), _server(state, p + 1)
        state.base_s[here], state.served[here] = state.base_s[behind], state.served[behind]
    place[HEAD] = (place[HEAD] + 1) & mask
    place[PRESENT] -= 1
    if place[PRESENT] >= servers:
        last = _server(state, servers - 1)
        state.base_s[last], state.served[last] = now, 0
        _begin(jobs, state, servers - 1, now)


@njit(cache=False, borrows=True, error_model="numpy")
def _expires(state: Ring, position: int, rounds: int) -> float:
    """Return when the slice of a position in service expires, or one so many rounds later on the same server."""
    server = _server(state, position)
    return float(state.base_s[server] + (state.served[server] + 1 + rounds) * state.quantum_s)


@njit(cache=False, borrows=True, error_model="numpy")
def _first_to_leave(state: Ring) -> float:
    """Return when somebody leaves first if nobody arrives.

    Divide p + (s − 1) · present by k: who stands at position p has its s-th slice, the present one being the first,
    on the server at the position that remains, and in the round of the quotient.
    """
    servers, present, soonest = state.served.size, state.place[PRESENT], np.inf
    for p in range(present):
        row = _row(state, p)
        steps = p + (state.slices[row] - 1) * present
        rounds = steps // servers
        begins = _expires(state, steps - rounds * servers, rounds - 1)
        end = min(begins + state.last_s[row], _expires(state, steps - rounds * servers, rounds))
        soonest = min(soonest, end)
    return soonest


@njit(cache=False, borrows=True, error_model="numpy")
def _turns_before(state: Ring, until: float) -> int:
    """Return how many turns come before that time."""
    servers, position = state.served.size, 0
    rounds = max(0, int((until - _expires(state, servers - 1, 0)) / state.quantum_s) - 1)
    while _expires(state, position, rounds) < until:
        position += 1
        if position == servers:
            position, rounds = 0, rounds + 1
    return rounds * servers + position


@njit(cache=False, borrows=True, error_model="numpy")
def _turn(jobs: JobBatch, state: Ring, turns: int) -> None:
    """Make many turns at once, in none of which somebody leaves."""
    place, mask, servers, present = state.place, state.ring.size - 1, state.served.size, state.place[PRESENT]
    for p in range(servers, min(present, servers + turns)):
        rounds = (p - servers) // servers
        _begin(jobs, state, p, _expires(state, p - (rounds + 1) * servers, rounds))
    rounds, rest = turns // present, turns % present
    for p in range(present):
        state.slices[_row(state, p)] -= rounds + (1 if p < rest else 0)
    for _ in range(rest):
        state.ring[(place[HEAD] + present) & mask] = state.ring[place[HEAD]]
        place[HEAD] = (place[HEAD] + 1) & mask
    rounds, rest = turns // servers, turns % servers
    for p in range(servers):
        state.served[_server(state, p)] += rounds + (1 if p < rest else 0)
    place[FRONT] = (place[FRONT] + rest) % servers


@njit(cache=False, borrows=True, error_model="numpy")
def _turn_singly(jobs: JobBatch, state: Ring, leaves: float, until: float) -> float:
    """Turn before an arrival at `until` and until somebody leaves, at `leaves` or sooner; return when."""
    ring, slices, base_s, served, quantum_s = state.ring, state.slices, state.base_s, state.served, state.quantum_s
    mask, servers, present = ring.size - 1, served.size, state.place[PRESENT]
    head, first = state.place[HEAD], state.place[FRONT]
    expires = base_s[first] + (served[first] + 1) * quantum_s
    while expires < leaves and expires < until:
        row = ring[head]
        slices[row] -= 1
        ring[(head + present) & mask] = row
        head = (head + 1) & mask
        row = ring[(head + servers - 1) & mask]
        if np.isnan(jobs.start_s[row]):
            jobs.start_s[row] = expires
        served[first] += 1
        if slices[row] == 1:
            end = base_s[first] + served[first] * quantum_s + state.last_s[row]
            leaves = min(leaves, end, base_s[first] + (served[first] + 1) * quantum_s)
        first = first + 1 if first + 1 < servers else 0
        expires = base_s[first] + (served[first] + 1) * quantum_s
    state.place[HEAD], state.place[FRONT] = head, first
    return leaves


@njit(cache=False, borrows=True, error_model="numpy")
def _run(jobs: JobBatch, state: Ring, until: float) -> None:
    """Let everything happen that comes before an arrival at `until`."""
    servers = state.served.size
    while state.place[PRESENT] > 0:
        leaves, position = _next(state)
        if state.place[PRESENT] > servers:
            many = state.quantum_s * (2 * state.place[PRESENT] + PATIENCE) / servers
            if min(leaves, until) - _expires(state, 0, 0) > many:
                turns = _turns_before(state, min(until, _first_to_leave(state)))
                _turn(jobs, state, turns)
                leaves, position = _next(state)
            leaves = _turn_singly(jobs, state, leaves, until)
        if leaves > until:
            return
        if state.place[PRESENT] > servers:
            leaves, position = _next(state)
        _depart(jobs, state, position, leaves)


@njit(cache=False, borrows=True, error_model="numpy")
def _under_way(state: Ring, position: int, now: float) -> int:
    """Return how many slices of a server have expired before `now`, while nobody waits."""
    server = _server(state, position)
    served = max(state.served[server], int((now - state.base_s[server]) / state.quantum_s) - 2)
    while state.base_s[server] + (served + 1) * state.quantum_s < now:
        served += 1
    return int(served)


@njit(cache=False, borrows=True)
def _swap(state: Ring, position: int) -> None:
    """Let two neighbours in service, with their servers, change places."""
    mask, ahead, behind = state.ring.size - 1, _server(state, position - 1), _server(state, position)
    before, at = (state.place[HEAD] + position - 1) & mask, (state.place[HEAD] + position) & mask
    state.ring[before], state.ring[at] = state.ring[at], state.ring[before]
    state.base_s[ahead], state.base_s[behind] = state.base_s[behind], state.base_s[ahead]
    state.served[ahead], state.served[behind] = state.served[behind], state.served[ahead]


@njit(cache=False, borrows=True)
def _line_up(state: Ring, now: float) -> None:
    """Sort who is in service by the end of the slice under way at `now`; a slice that ends then is still under way.

    Two servers in step have begun their slices at the later of their bases, one by an arrival or a departure, which
    comes first, the other by an expiry; unless that slice was noted then already, and stands where it belongs.
    """
    servers = state.served.size
    for p in range(1, servers):
        end = _expires(state, p, _under_way(state, p, now) - state.served[_server(state, p)])
        base = state.base_s[_server(state, p)]
        for q in range(p, 0, -1):
            other = _server(state, q - 1)
            other_end = _expires(state, q - 1, _under_way(state, q - 1, now) - state.served[other])
            began = state.base_s[other] + state.served[other] * state.quantum_s
            if other_end < end or (other_end == end and began >= base):
                break
            _swap(state, q)
    for p in range(servers):
        server, served = _server(state, p), _under_way(state, p, now)
        state.slices[_row(state, p)] -= served - state.served[server]
        state.served[server] = served


@njit(borrows=True)
def rr(jobs: JobBatch, state: Ring, first: int, n: int, drain: bool) -> None:
    """Serve rows `first` to `n` by round robin: the servers give the one queue a quantum each in turn (Kleinrock 1964).

    Turns of the queue between two arrivals or departures are taken at once: O(n (k + N)) time, however short the
    quantum.
    """
    servers, mask = state.served.size, state.ring.size - 1
    for i in range(first, n):
        now, demand = jobs.arrival_s[i], jobs.demand_s[i]
        _run(jobs, state, now)
        jobs.start_s[i], jobs.departure_s[i] = np.nan, np.nan
        whole = int(demand / state.quantum_s)
        left = demand - whole * state.quantum_s
        state.slices[i] = whole if whole > 0 and left <= WHOLE * demand else whole + 1
        state.last_s[i] = min(demand - (state.slices[i] - 1) * state.quantum_s, state.quantum_s)
        present = state.place[PRESENT]
        if present == servers:
            _line_up(state, now)
        state.ring[(state.place[HEAD] + present) & mask] = i
        state.place[PRESENT] += 1
        if present < servers:
            server = _server(state, present)
            state.base_s[server], state.served[server] = now, 0
            jobs.start_s[i] = now
    if drain:
        _run(jobs, state, np.inf)


@njit(borrows=True)
def renumber(state: Ring, row: Ints) -> None:
    """Let rows that remain after a batch be called by their new numbers: `row[old]`, −1 for who has left."""
    mask = state.ring.size - 1
    for p in range(state.place[PRESENT]):
        place = (state.place[HEAD] + p) & mask
        state.ring[place] = row[state.ring[place]]
    for old in range(row.size):
        if row[old] >= 0:
            state.slices[row[old]], state.last_s[row[old]] = state.slices[old], state.last_s[old]


def grown(state: Ring) -> Ring:
    """Return the ring with room for as many rows again."""
    turned = np.roll(state.ring, -state.place[HEAD])
    state.place[HEAD] = 0
    return state._replace(ring=doubled(turned), slices=doubled(state.slices), last_s=doubled(state.last_s))
