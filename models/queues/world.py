"""What is asked of a request server: frozen dataclasses for arrivals, demands, servers and what is observed of them.

Every field's bounds stand in its annotation; the text under a field is its documentation. Shares are in 0..1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, MinLen

from models.fleet.world import FORBID, Count, Forbid, NonNegative, PartName, Positive, Share
from models.platforms import Platform, Sheet, sheets_of
from models.queues.machine import ServingMachine
from models.queues.policies import PolicyName, RuleName

LONGEST_S = 366 * 86400
"""A year: the longest horizon."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of times, or of amounts. Each kind needs the fields named with it, and takes no other."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    kind: Literal["constant", "uniform", "exponential", "gamma", "lognormal", "hyperexponential", "pareto"]
    """constant (mean); uniform (low, high); exponential (mean); gamma, lognormal (mean, cv); hyperexponential (mean,
    cv at least 1, balanced means); pareto (low, high, shape), which is bounded on both sides."""
    mean: NonNegative | None = None
    """Mean."""
    cv: NonNegative | None = None
    """Coefficient of variation: standard deviation over mean."""
    low: NonNegative | None = None
    """Least value."""
    high: NonNegative | None = None
    """Greatest value."""
    shape: Positive | None = None
    """Tail index of a Pareto distribution."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """A point of the load curve; the curve is straight between points and level before the first and after the last."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    time_s: NonNegative
    """Time of the point."""
    factor: NonNegative
    """Arrival rate as a multiple of `rate_per_s`."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Arrivals that alternate between calm and burst, each for an exponential time (a Markov-modulated process)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    factor: Annotated[float, Ge(1)] = 4.0
    """Arrival rate in a burst over that in calm; the mean rate stays what it is."""
    burst_s: Positive = 20.0
    """Mean length of a burst."""
    calm_s: Positive = 100.0
    """Mean time between bursts."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests or sessions arrive from outside: a renewal process in operational time, so that rates may vary."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    rate_per_s: Positive = 1.0
    """Mean arrivals per second where the load curve is 1."""
    cv: NonNegative = 1.0
    """Coefficient of variation of the gaps (gamma): 1 is Poisson, 0 is a clock."""
    load: tuple[LoadPoint, ...] = ()
    """The load curve over time; none is a constant load."""
    bursts: Bursts | None = None
    """Bursts on top of it; null: none."""


@dataclass(frozen=True, slots=True)
class RequestType:
    """One type of request: frequency, service demand and priority."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Its name in the tables."""
    demand_s: Distribution
    """Service demand: CPU seconds on a server of speed 1."""
    weight: Positive = 1.0
    """Its share of the requests, relative to the other types."""
    priority: Annotated[int, Ge(0), Le(1000)] = 0
    """Class of the static preemptive priority policy; 0 is served first."""


@dataclass(frozen=True, slots=True)
class JobDemand:
    """Demands from a fleet's job: instructions of a request times seconds per instruction on its machine then."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    scenario: Annotated[str, MinLen(1)]
    """A fleet scenario: a library name or a path relative to this file."""
    job: Annotated[str, MinLen(1)]
    """Name of one of its jobs."""
    instructions: Distribution
    """Instructions of one request."""
    instance: Annotated[int, Ge(0)] = 0
    """Which of the job's instances, counted from 0."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests replayed from a file: CSV or Parquet with columns `arrival_s` and `demand_s`, and perhaps `type`."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    file: Annotated[str, MinLen(1)]
    """Path, relative to this file."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Semi-open load: a session arrives, asks, waits for the answer, thinks, asks again; then it leaves."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    requests: Count = 8
    """Requests of a session."""
    think_s: Distribution = field(default_factory=lambda: Distribution("uniform", low=3.0, high=6.0))
    """Time between an answer and the next request."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Closed load: so many clients that ask, wait for the answer, think and ask again until the horizon."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    count: Count = 10
    """Clients."""
    think_s: Distribution = field(default_factory=lambda: Distribution("exponential", mean=1.0))
    """Time between an answer and the next request; the first comes after one such time."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the server. Exactly one source: `arrivals` (open, or semi-open with `sessions`), `clients` or
    `trace`; and exactly one demand: `types`, `job` or the trace's own."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    arrivals: Arrivals | None = None
    """Requests, or sessions, from outside; none arrives after the horizon."""
    sessions: Sessions | None = None
    """Session that each arrival starts; null: each arrival is one request."""
    clients: Clients | None = None
    """A fixed number of clients."""
    trace: Trace | None = None
    """A recorded trace."""
    types: tuple[RequestType, ...] = ()
    """Types of requests with their demands."""
    job: JobDemand | None = None
    """Demands from a fleet's job."""


@dataclass(frozen=True, slots=True)
class Retries:
    """What requests do that were refused, gave up or timed out: they come again, each time after a pause."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    most: Annotated[int, Ge(1), Le(20)] = 3
    """Most times that a request comes again."""
    delay_s: Distribution = field(default_factory=lambda: Distribution("exponential", mean=1.0))
    """From the failure, as the client sees it, to the next attempt."""


@dataclass(frozen=True, slots=True)
class Station:
    """One queue and its servers."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    servers: Annotated[int, Ge(1), Le(4096)] = 4
    """Servers (cores)."""
    policy: PolicyName | PartName = "ps"
    """Scheduling: first come first served; last come first served without and with preemption; processor sharing;
    round robin; shortest remaining processing time; shortest job first; feedback (least attained service); static
    preemptive priority; random. Or a function of your own, as `file.py:name` (docs/extend.md)."""
    quantum_s: Positive = 0.1
    """Time slice of round robin."""
    speeds: tuple[Positive, ...] = ()
    """Speed of each server; none means 1 each."""
    rates: tuple[Positive, ...] = ()
    """Work done per second by 1, 2, … busy servers together (hyper-threads); none means as many as are busy."""
    capacity: Annotated[int, Ge(1), Le(1_000_000_000)] | None = None
    """Most requests present, waiting or in service; one that finds so many is refused; null: no limit."""
    threads: Annotated[int, Ge(1), Le(65536)] | None = None
    """Threads under processor sharing, with a limit or changing servers: as many requests share the servers, the others
    wait for a thread in order of arrival; null: a thread for everybody."""
    patience_s: Distribution | None = None
    """How long a request waits for a server, or a thread, to take it before it gives up; null: as long as it takes."""
    timeout_s: Distribution | None = None
    """How long a request stays, waiting or in service; then it leaves unserved, and its service was in vain; null: as
    long as it takes."""
    retries: Retries | None = None
    """What requests do that were refused, gave up or timed out; null: they never come again."""

    @property
    def limited(self) -> bool:
        """Whether requests may leave unserved."""
        return self.capacity is not None or self.patience_s is not None or self.timeout_s is not None


@dataclass(frozen=True, slots=True)
class NetworkStation:
    """One of several stations that a request passes: its queue, its servers, and what a request needs of it."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Its name in the tables."""
    demand_s: Distribution
    """Service demand of a request at this station: seconds on one of its servers."""
    servers: Annotated[int, Ge(1), Le(4096)] = 1
    """Servers, all of speed 1."""
    policy: PolicyName = "fcfs"
    """Scheduling, as of `station.policy`; not by priority, because requests have no classes here."""
    quantum_s: Positive = 0.1
    """Time slice of round robin."""
    threads: Annotated[int, Ge(1), Le(65536)] | None = None
    """Threads under processor sharing: as many requests share the servers, the others wait for a thread in order of
    arrival; null: a thread for everybody."""
    after: tuple[str, ...] | None = None
    """Stations of the list above it that a request leaves before it comes here; null: the one above; `[]`: none, so
    that it comes here as it arrives. Stations after the same one work at the same time (a fork)."""
    needs: Annotated[int, Ge(1)] | None = None
    """Of the stations that it comes after, how many a request must have left, whichever are first; null: all."""


@dataclass(frozen=True, slots=True)
class ServerStep:
    """A step of the schedule: from then on so many servers are wanted."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    time_s: NonNegative
    """When it begins."""
    servers: Annotated[int, Ge(1), Le(4096)]
    """Servers that are on or starting from then on."""


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """A rule that looks at the station now and then and says how many servers are wanted."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    rule: RuleName
    """utilisation: busy servers over `target`; present: requests present over `target`; queueing: a tenth more, or
    fewer, when requests waited longer than `target`, or less than half of it; law: the fewest servers with which, by
    the Occupancy Law, requests would have waited no longer than `target`; of more than there are no more, and of fewer
    no fewer, than the load needs by Erlang's C (docs/scenarios.md)."""
    target: Positive
    """What the rule aims at: a utilisation (share of 1), requests present for each server, or a mean waiting time in
    seconds."""
    look_s: Positive = 15.0
    """From one look to the next."""
    hold_s: NonNegative = 300.0
    """Servers go only when no look of this long wanted them; law: as all looks of this long together say."""
    least: Annotated[int, Ge(1), Le(4096)] = 1
    """Fewest servers."""
    most: Annotated[int, Ge(1), Le(4096)] = 64
    """Most servers."""


@dataclass(frozen=True, slots=True)
class ServerScaling:
    """How the number of servers changes; exactly one of `schedule` and `autoscaler`."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    schedule: tuple[ServerStep, ...] = ()
    """Numbers of servers by time; before the first step there are `station.servers`."""
    autoscaler: Autoscaler | None = None
    """The rule; it begins with `station.servers`."""
    start_up_s: NonNegative = 30.0
    """From ordering a server until it takes requests; it costs from the order on."""


@dataclass(frozen=True, slots=True)
class Contention:
    """What breaks the assumptions of the operational laws; each is off by default. Needs first come first served."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    blocking_s: Distribution | None = None
    """Time that every request waits for a disk or another service, halfway through its service and off the CPU."""
    lock_share: Share = 0.0
    """Share of a request's demand during which it holds the only lock; its server idles while it waits for the lock."""
    concurrency_limit: Annotated[int, Ge(0)] = 0
    """Most requests admitted at a time; the others wait outside; 0: no limit."""
    parallelism: Annotated[int, Ge(1), Le(4096)] = 1
    """Number of equal parts into which a request is split; they run at the same time."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a client and the server's own accounting record."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    rtt_s: NonNegative = 0.0
    """Round trip of the network between client and server."""
    overhead_s: NonNegative = 0.0
    """Mean latency of a request beyond its service (accept, parse, reply); half before it, half after."""
    accept_at_application: bool = False
    """Whether arrivals are stamped only when one of `workers` takes the request, as an access log does."""
    workers: Annotated[int, Ge(0)] = 0
    """Worker processes that take requests from the listener's queue; 0: as many as come."""
    background_share: Annotated[float, Ge(0), Le(0.5)] = 0.0
    """Share of the CPU capacity used by work that is in no request log (daemons, kernel)."""
    background_s: Positive = 0.002
    """Mean demand of one piece of such work."""
    counter_interval_s: Positive = 60.0
    """How often utilisation is read."""
    counter_tick_s: Annotated[float, Gt(0)] = 0.01
    """Utilisation is counted by looking which servers are busy this often."""


@dataclass(frozen=True, slots=True)
class QueueWorld:
    """Everything that decides what a request server's hours look like. Same world, same tables."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    seed: Annotated[int, Ge(0)] = 1
    """All random draws follow from it."""
    horizon_s: Annotated[float, Gt(0), Le(LONGEST_S)] = 3600.0
    """Time in which requests or sessions arrive. Nothing is cut off: every request runs to its end."""
    load: Load = field(default_factory=Load)
    """Arrivals and service demands."""
    station: Station = field(default_factory=Station)
    """Servers and scheduling."""
    stations: tuple[NetworkStation, ...] = ()
    """Stations that every request passes, in place of `station` and `load.types`: one after another, or several at a
    time. A request ends when it has left every station that no other comes after."""
    scaling: ServerScaling | None = None
    """How the number of servers changes; null: it does not."""
    contention: Contention = field(default_factory=Contention)
    """What breaks the laws."""
    observation: Observation = field(default_factory=Observation)
    """What is seen from outside."""
    replays: tuple[Annotated[int, Ge(1), Le(4096)], ...] = ()
    """Other numbers of servers that the same open load is served with, each recorded too."""
    machine: ServingMachine | None = None
    """The machine whose hardware threads the servers are, with neighbours that requests slow down and that slow them
    down; null: servers whose speed nothing changes."""
    platforms: Mapping[str, Sheet] = field(default_factory=dict)
    """Platforms of your own that `machine.platform` may name: the name of a file that has them, or the sheets
    themselves."""

    @property
    def sheets(self) -> Mapping[str, Platform]:
        """The spec sheets of all platforms that its machine may be: the shipped ones and its own."""
        return sheets_of(self.platforms)
