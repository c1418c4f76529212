"""Every small workload with whole-numbered times, served step by step of one second: an exhaustive search, compiled.

It shares no code with the queues that it judges. Times, demands and quantum are whole numbers, so every event of these
policies falls on a whole second. At one second come departures, in order of index, each followed by the server's next
job, then arrivals, then ends of time slices.
"""

from itertools import product

import numpy as np

from models.code.compiled import njit

LCFS, SJF, RANDOM, RR, SRPT = range(5)
CODES = {"lcfs": LCFS, "sjf": SJF, "random": RANDOM, "rr": RR, "srpt": SRPT}
CLAIMS = {"completions": 0, "each job": 1, "expansion": 2}
WAITING, SERVED, GONE = 1, 2, 3
STATE, LEFT, PLACE, SLICE = range(4)


@njit(cache=False)
def take(policy, job, choice):
    """The waiting job that a free server takes, or -1; `choice[-1]` counts the choices used up."""
    state, left, place = job[STATE], job[LEFT], job[PLACE]
    best, waiting = -1, 0
    for i in range(state.size):
        waiting += state[i] == WAITING
    nth = -1
    if policy == RANDOM and waiting:
        nth = int(choice[int(choice[-1])] * waiting)
        choice[-1] += waiting > 1
    for i in range(state.size):
        if state[i] != WAITING:
            continue
        better = best < 0 or policy == LCFS or (policy == SJF and left[i] < left[best])
        better = better or (policy == RR and place[i] < place[best]) or (policy == SRPT and left[i] < left[best])
        if (policy == RANDOM and nth == 0) or (policy != RANDOM and better):
            best = i
        nth -= 1
    return best


@njit(cache=False)
def start(policy, job, choice, quantum):
    """Give a free server the next job, if there is one."""
    j = take(policy, job, choice)
    if j >= 0:
        job[STATE, j], job[SLICE, j] = SERVED, quantum
    return j >= 0


@njit(cache=False)
def interrupt(state):
    """Let everybody who is served wait again."""
    for i in range(state.size):
        if state[i] == SERVED:
            state[i] = WAITING


@njit(cache=False)
def serve(how, servers, work, choice, departure):
    """Fill in when each job leaves; `how` is policy and quantum, `work` arrivals and demands."""
    policy, quantum, (arrival, demand) = how[0], how[1], work
    n = arrival.size
    job = np.zeros((4, n), np.int64)
    for i in range(n):
        job[LEFT, i], job[PLACE, i] = demand[i], i
    choice[-1] = 0
    state, now, arrived, gone, busy, tail = job[STATE], 0, 0, 0, 0, n
    while gone < n:
        for i in range(n):
            if state[i] == SERVED and job[LEFT, i] == 0:
                state[i], departure[i] = GONE, now
                gone += 1
                busy += start(policy, job, choice, quantum) - 1
        while arrived < n and arrival[arrived] == now:
            state[arrived], job[PLACE, arrived] = WAITING, tail
            tail += 1
            arrived += 1
            if busy < servers:
                busy += start(policy, job, choice, quantum)
        for i in range(n):
            if policy == RR and state[i] == SERVED and job[SLICE, i] == 0:
                state[i], job[PLACE, i] = WAITING, tail
                tail += 1
                start(policy, job, choice, quantum)
        if policy == SRPT:
            interrupt(state)
            busy = 0
            for _ in range(servers):
                busy += start(policy, job, choice, quantum)
        for i in range(n):
            if state[i] == SERVED:
                job[LEFT, i] -= 1
                job[SLICE, i] -= 1
        now += 1


@njit(cache=False)
def breaks(claim, arrival, departures, servers, to):
    """Whether departures with more servers break a claim."""
    before, after = departures
    n, last, later, slack = arrival.size, 0, False, 0
    for i in range(n):
        last = max(last, before[i], after[i])
        later |= after[i] > before[i]
    if claim == 1:
        return later
    for t in range(last):
        few = more = 0
        for i in range(n):
            few += arrival[i] <= t < before[i]
            more += arrival[i] <= t < after[i]
        if claim == 0 and more > few:
            return True  # so fewer have left by then
        slack += max(few - servers, 0) - max(more - to, 0) - max(min(few, to) - servers, 0)
    return claim != 0 and slack < 0


@njit(cache=True)
def count_broken(how, change, grid, choices):
    """How many workloads break a claim.

    `how` is policy, quantum and claim, `change` the numbers of servers, `grid` how many jobs, the last arrival (the
    first is at 0) and the greatest demand (the least is 1).
    """
    (servers, to), (jobs, last, most) = change, grid
    work, departures = np.zeros((2, jobs), np.int64), np.zeros((2, jobs), np.int64)
    arrival, demand = work
    found = 0
    while True:
        for i in range(jobs):
            demand[i] = 1
        while True:
            for c in range(choices.shape[0]):
                serve(how, servers, work, choices[c], departures[0])
                serve(how, to, work, choices[c], departures[1])
                found += breaks(how[2], arrival, departures, servers, to)
            i = 0
            while i < jobs and demand[i] == most:
                demand[i] = 1
                i += 1
            if i == jobs:
                break
            demand[i] += 1
        i = jobs - 1
        while i > 0 and arrival[i] == last:
            i -= 1
        if i <= 0:
            return found
        for later in range(jobs - 1, i - 1, -1):
            arrival[later] = arrival[i] + 1


def broken_workloads(policy, claim, *, jobs, last, most, servers, to, quantum=1):
    """How many of all such workloads break a claim; random choices take every first or middle place in turn."""
    halves = product((0.0, 0.5), repeat=jobs) if policy == "random" else [(0.0,) * jobs]
    table = np.array(list(halves))
    choices = np.hstack([table, np.zeros((len(table), jobs + 1))])
    return count_broken((CODES[policy], quantum, CLAIMS[claim]), (servers, to), (jobs, last, most), choices)
