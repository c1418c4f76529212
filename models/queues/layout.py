"""What the kernels of a station work on: named tuples of arrays, one row per request, core or group."""

from typing import NamedTuple

from models.arrays import Floats, Ints


class RequestArrays(NamedTuple):
    """Requests: arrays of n. `first` and `following` list who follows whom: first one, then the next."""

    arrival_s: Floats
    demand_s: Floats
    think_s: Floats
    first: Ints
    following: Ints
    priority: Ints
    choice: Floats


class Pace(NamedTuple):
    """The factor on every core's speed while 1..k are busy, which of its rows are in force, and until when.

    `factor` is (steps, m, k): a row for each step of time, and in it for each number of busy cores from 0 to m − 1
    that was seen at the last look; with m = 1 looks change nothing.
    """

    factor: Floats
    start_s: Floats  # (steps,) when each step begins; the first row holds before, too
    look_s: float  # from one look to the next, the first at 0; inf: none
    row: Ints  # step and number seen in force
    next_s: Floats  # (1,) when another step begins, or the next look is due


class Servers(NamedTuple):
    """Servers: speeds of the cores (fastest first), and the pace of all of them."""

    policy: int
    quantum_s: float
    speed: Floats
    pace: Pace


class ServiceTimes(NamedTuple):
    """What comes out, arrays of n in seconds; arrivals of requests that follow others are filled in."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats


class Heap(NamedTuple):
    """Jobs, the one with the least (key, turn) on top; keys are arrays over all jobs and rest while a job is in."""

    key: Floats
    turn: Ints
    member: Ints
    size: Ints


class Cores(NamedTuple):
    """Per core: its job; the job's rate, since when, and the work and slice left then; when it is done.

    A slice ends at `end_s`; `expiry_s` is that, or infinite if the job is done by then. `serial` is the order in which
    slices began.
    """

    job: Ints
    serial: Ints
    rate: Floats
    since_s: Floats
    left: Floats
    slice_s: Floats
    finish_s: Floats
    end_s: Floats
    expiry_s: Floats


class Shop(NamedTuple):
    """All of it: what comes, who serves, what comes out, who is to arrive, who waits, who is served.

    `left` is the work that a waiting job still needs; `tally` counts turns, slices and draws; `call` is the last call
    of somebody's own policy, its arguments and what it returned.
    """

    load: RequestArrays
    station: Servers
    times: ServiceTimes
    pending: Heap
    waiting: Heap
    cores: Cores
    left: Floats
    tally: Ints
    call: Floats


class AttainedLine(NamedTuple):
    """Jobs by falling attained service, those of equal service in one group; `size` counts groups and jobs.

    Group g stands in the line from `start[g]` on, has attained `level[g]` and runs at `rate[g]` per job.
    """

    line: Ints
    start: Ints
    level: Floats
    rate: Floats
    size: Ints


class Shared(NamedTuple):
    """A station under processor sharing: `present` holds what each job will have attained when it is done.

    `total` is the summed speed of the 0, 1, .., k fastest cores; `clock` the time of the last event, and the work that
    each job present has attained then since the station was last empty.
    """

    load: RequestArrays
    station: Servers
    times: ServiceTimes
    pending: Heap
    present: Heap
    total: Floats
    clock: Floats


class Foreground(NamedTuple):
    """A station under feedback; `total` and `clock` as in `Shared`, of the clock the time alone."""

    load: RequestArrays
    station: Servers
    times: ServiceTimes
    pending: Heap
    groups: AttainedLine
    total: Floats
    clock: Floats
