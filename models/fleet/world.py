"""What is asked of a simulated fleet: frozen dataclasses, one per part of the world, defaults and units included.

Every field's bounds stand in its annotation; the YAML reader, the JSON Schema and the documentation are made from
them. The text under a field is its documentation. Shares are in 0..1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen, Predicate

from models.code.parts import is_part
from models.fleet.concentration import QuotaClasses
from models.fleet.metrics import MetricName
from models.fleet.processors import REFERENCE_WIDTH
from models.platforms import Platform, Sheet, machines_of, sheets_of

Share = Annotated[float, Ge(0), Le(1)]
Positive = Annotated[float, Gt(0)]
CoreCpi = Annotated[float, Ge(1.0 / REFERENCE_WIDTH)]
NonNegative = Annotated[float, Ge(0)]
Count = Annotated[int, Ge(1), Le(1_000_000_000)]
Jobs = Annotated[int, Ge(0), Le(1_000_000)]
PartName = Annotated[str, Predicate(is_part)]
"""What names a part of somebody's own: ``mine.py:name`` or ``package.module:name``."""
Forbid = dict[str, str]
FORBID: Forbid = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines and how they stand in racks and power domains."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    machines: Annotated[int, Ge(1), Le(2_000_000)] = 6000
    """Machines in the fleet."""
    platforms: Annotated[Mapping[str, Positive], MinLen(1)] = field(default_factory=lambda: {"haswell_2698v3": 1.0})
    """Platform name, shipped or one of `platforms`, to its share of the machines; the shares sum to 1."""
    machines_per_rack: Count = 40
    """Machines in a rack: they share inlet temperature and the rack's load."""
    racks_per_power_domain: Count = 4
    """Racks behind one power budget."""
    overcommit: Annotated[float, Ge(1), Le(10)] = 1.0
    """Quotas that the scheduler may place on a machine relative to its hardware threads. Above 1, more threads may be
    runnable than there are: latency-critical ones run first, and those of a class share by quota."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the jobs use a core, the caches and memory: medians and spreads between jobs, before any co-runner."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    core_cpi: Positive = 0.88
    """Median cycles per instruction without last-level-cache misses and `inner_miss_cycles`, alone on a core; no job
    has less than 0.25 with `inner_miss_cycles`, as the reference core retires four instructions a cycle at most."""
    core_cpi_log_sd: NonNegative = 0.54
    """Spread of `core_cpi` between jobs."""
    memory_accesses_per_instruction: Positive = 0.0128
    """Median memory accesses (LLC misses) per instruction at the reference cache share."""
    memory_accesses_log_sd: NonNegative = 0.55
    """Spread of memory accesses per instruction between jobs."""
    size_exponent: float = -0.11
    """Core CPI and memory accesses are proportional to the job's quota to this power: large jobs are better tuned."""
    overlap: Annotated[float, Ge(1)] = 3.0
    """Median number of overlapping misses (memory-level parallelism)."""
    overlap_log_sd: NonNegative = 0.75
    """Spread of the number of overlapping misses between jobs."""
    working_set_bytes: Positive = 3.0e6
    """Median size of the larger of a job's two working sets that compete for the last-level cache."""
    working_set_log_sd: NonNegative = 0.9
    """Spread of the working set's size between jobs."""
    streaming_share: Share = 0.80
    """Mean share of an instance's last-level-cache misses that no cache size removes."""
    smt_slowdown: NonNegative = 0.55
    """Median relative growth of core CPI while the sibling hardware thread is busy."""
    utilisation: Share = 0.55
    """Mean CPU use of an instance as a share of its quota."""
    input_log_sd: NonNegative = 0.17
    """Median over jobs of the persistent spread between shards (input data)."""
    input_log_sd_spread: NonNegative = 0.45
    """Spread of `input_log_sd` between jobs."""
    instance_log_sd: NonNegative = 0.06
    """Spread of the autocorrelated part of one instance's behaviour over time."""
    job_log_sd: NonNegative = 0.08
    """Spread over time of the part that all instances of a job have in common (their requests change together)."""
    wander_time_factor: Positive = 1.0
    """Factor on the time constants of random changes: half an hour and eight hours for behaviour of jobs and shared
    conditions, half an hour for changes of single instances and machines. The latter have an autocorrelation from hour
    to hour of 0.14 with factor 1, and of 0.8, 0.5 and 0 with 8.96, 2.89 and 0.2."""
    core_trait_sd: NonNegative = 1.0
    """Spread between jobs of the three traits in which cores differ (`models.fleet.processors`): 1 as measured, 0 for
    cores that treat all jobs alike."""
    prefetched_share: Share = 0.5
    """Share of the streaming misses whose latency prefetchers hide; their traffic stays."""
    inner_miss_cycles: NonNegative = 58.0
    """Core cycles that go along with a memory access: who misses the last-level cache more often also misses inner
    caches, address translation and instruction caches more often. Part of core CPI."""
    latency_critical_share: Share = 0.6
    """Share of jobs that serve requests; the rest are best-effort."""
    diurnal_amplitude: Share = 0.11
    """Median half-amplitude of the daily load swing of latency-critical jobs."""
    day_load_log_sd: NonNegative = 0.0
    """Spread of the load of a latency-critical job from day to day, independent between days, of mean 1."""
    spin_share: Share = 0.03
    """Median share of instructions spent spinning on locks on a fully busy machine."""


@dataclass(frozen=True, slots=True)
class Service:
    """A named job with every parameter of its behaviour given, for example a cloud customer's service."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """The job's name."""
    instances: Annotated[int, Ge(1), Le(10_000_000)]
    """How many instances run."""
    quota_vcpu: Positive
    """CPU quota of one instance, in hardware threads."""
    core_cpi: CoreCpi
    """Cycles per instruction without last-level-cache misses, alone on a core; the reference core retires four
    instructions a cycle at most."""
    memory_accesses_per_instruction: NonNegative
    """Memory accesses per instruction at the reference cache share."""
    working_set_bytes: Positive = 3.0e6
    """Size of the larger working set."""
    streaming_share: Share = 0.45
    """Share of its misses that no cache size removes."""
    overlap: Annotated[float, Ge(1)] = 2.25
    """Overlapping misses."""
    smt_slowdown: NonNegative = 0.55
    """Relative growth of core CPI while the sibling thread is busy."""
    utilisation: Share = 0.55
    """CPU use as a share of quota when it does not wait for the network."""
    instructions_per_request: Positive = 1.0e6
    """User-level instructions of one request."""
    network_s_per_request: NonNegative = 0.0
    """Time of one request spent waiting for the network on an idle network."""
    input_log_sd: NonNegative = 0.05
    """Persistent spread between its shards."""
    instance_log_sd: NonNegative = 0.06
    """Spread over time of one instance's behaviour."""
    job_log_sd: NonNegative = 0.05
    """Spread over time of what all its instances share."""
    latency_critical: bool = True
    """Whether it outranks best-effort jobs."""
    open_load: bool = False
    """Whether its load comes from outside, so that a faster machine is less busy; off: it is always saturated."""
    core_traits: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """What cores that differ from Haswell's gain or lose on it, in standard deviations over programs
    (`models.fleet.processors`)."""
    prefetched_share: Share = 0.0
    """Share of its streaming misses whose latency prefetchers hide."""


Preset = Literal["wsmeter", "google2011"]


@dataclass(frozen=True, slots=True)
class Population:
    """The jobs of this WSC, drawn from a universe that several WSCs share."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    jobs: Jobs = 4000
    """Jobs running in this WSC, services not counted."""
    common_jobs: Jobs = 1846
    """How many of them every WSC of the universe runs, the same number in all; at least the heavyweights."""
    universe: Annotated[int, Ge(0)] = 1
    """Seed of the universe: WSCs with the same number share their common jobs."""
    heavyweights: Jobs = 40
    """Heavyweight jobs (infrastructure), common to every WSC."""
    heavyweight_share: Share = 0.87
    """Share of the CPU quota that the heavyweights hold."""
    heavyweight_log_sd: NonNegative = 0.75
    """Spread of quota among heavyweights."""
    light_log_sd: NonNegative = 0.9
    """Spread of quota among the other jobs."""
    instance_quota_vcpu: Positive = 3.1
    """Median CPU quota of one instance, in hardware threads."""
    instance_quota_log_sd: NonNegative = 0.5
    """Spread of that between jobs."""
    memory_bytes_per_vcpu: Positive = 2.5e9
    """Median memory request per hardware thread of quota."""
    allocated_share: Share = 0.86
    """Share of the fleet's hardware threads that the quotas add up to."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    """How they use the hardware."""
    services: tuple[Service, ...] = ()
    """Jobs described one by one, beside the drawn ones."""
    preset: Preset | None = None
    """How CPU quota is spread over jobs: wsmeter (two classes, the top 200 hold 91%), google2011 (one smooth curve, the
    top 1% hold 54%) or, with null, as `heavyweight_share`, `heavyweight_log_sd` and `light_log_sd` say, whose defaults
    are those of wsmeter; a preset decides these three. With google2011 the largest common jobs bear the heavyweights'
    names."""
    balancer: Literal["even", "speed"] = "even"
    """How load from outside is spread over the instances of a job. even: each gets the same. speed: each in proportion
    to the speed at which the job runs alone on the platform of its machine; the job's whole load stays."""

    @property
    def stated_classes(self) -> QuotaClasses:
        """What its keys say of the two classes, whatever the preset."""
        return QuotaClasses(self.heavyweight_share, self.heavyweight_log_sd, self.light_log_sd)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Where an instance goes; decided from requests only, never from measured use."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    policy: Literal["least_loaded", "best_fit", "random"] = "least_loaded"
    """How to choose among the candidates that fit."""
    candidates: Count = 6
    """Machines looked at before a full search."""
    spread: Literal["machine", "rack", "none"] = "machine"
    """Failure domain over which a job's instances are spread where possible."""
    preemption: bool = True
    """Whether a latency-critical instance may evict best-effort ones when nothing fits."""


@dataclass(frozen=True, slots=True)
class Churn:
    """What changes during the horizon. Rates are per day."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    restarts_per_instance_day: NonNegative = 0.16
    """An instance stops and starts again, wherever it then fits (new binary, crash)."""
    exits_per_instance_day: NonNegative = 0.05
    """An instance leaves for good; arrivals replace as many on average."""
    drains_per_machine_day: NonNegative = 0.02
    """A machine is emptied for maintenance and comes back."""
    drain_s: Positive = 7200.0
    """Mean length of a drain."""
    failures_per_machine_day: NonNegative = 0.001
    """A machine fails at once."""
    repair_s: Positive = 14400.0
    """Mean time to repair."""


@dataclass(frozen=True, slots=True)
class Interference:
    """Which shared resources couple co-runners; each can be switched off for an ablation."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    llc: bool = True
    """Co-runners share the last-level cache; off: each has the share its quota buys."""
    bandwidth: bool = True
    """Memory latency grows with bandwidth use; off: idle latency always."""
    smt: bool = True
    """Busy sibling threads slow each other; off: every thread has a core of its own."""
    tolerance: Positive = 1.0e-4
    """Relative change at which the fixed point of an epoch counts as solved."""
    max_iterations: Count = 12
    """Iterations of the fixed point at most; the residual left is recorded."""
    mechanism: PartName | None = None
    """How neighbours slow each other down besides: a function of your own, as `file.py:name` (docs/extend.md)."""
    sibling_relief: Share = 0.5
    """By how much less a sibling thread slows down that always waits for memory than one that always computes, in
    shares of `smt_slowdown`; the mean of both stays."""
    sockets: bool = True
    """Every processor has caches and a memory of its own, and an EPYC a last-level cache for each complex: an instance
    lives on as few of them as its quota needs; off: all of a machine's are pooled."""
    remote_share: Share = 0.25
    """Mean share of an instance's memory accesses that go to another socket's memory where there are several; drawn
    for each stay, uniform from 0 to twice the mean. 0: threads and memory are bound to one socket."""
    windows: bool = True
    """Cores with larger reorder buffers overlap more misses; off: as many on every core."""
    best_effort_ways: Annotated[float, Gt(0), Le(1)] = 1.0
    """Share of the ways of every last-level cache that best-effort jobs together may hold; 1: no limit (Intel CAT)."""
    best_effort_delay: Annotated[float, Ge(1)] = 1.0
    """Factor on the memory latency of best-effort jobs, whose requests are held back (Intel MBA); 1: none are."""


@dataclass(frozen=True, slots=True)
class Governor:
    """How P-states are chosen, under the TDP of the processors and the power cap of the machine."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    policy: Literal["performance", "ondemand", "stall_aware"] | PartName = "performance"
    """performance: the highest P-state that fits both. ondemand: lower when the machine is little used.
    stall_aware: cores whose stall share is above `stall_threshold` run `step_down_hz` slower, and where a limit binds
    the power that they free lets the others run faster. Or a function of your own, as `file.py:name`
    (docs/extend.md)."""
    ondemand_threshold: Share = 0.8
    """Utilisation at which ondemand reaches the highest P-state."""
    stall_threshold: Share = 0.5
    """Stall share above which stall_aware slows a core down."""
    step_down_hz: NonNegative = 3.0e8
    """By how much stall_aware slows a stalling core down."""


@dataclass(frozen=True, slots=True)
class Power:
    """Power limits and the governor in force before any feature."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    governor: Governor = field(default_factory=Governor)
    """The DVFS policy of the current fleet."""
    cap_share: Positive = 0.85
    """Machine power cap as a share of its peak power, which is that of all threads computing at the all-core turbo; 10
    switches the cap off. The processors' own limit, their TDP, always holds."""
    domain_budget_share: Positive = 0.82
    """Budget of a power domain as a share of its machines' peak power; 10 switches it off."""
    turbo: bool = True
    """Whether clocks rise above the all-core turbo when few cores are active."""


LogSd = Annotated[float, Ge(0), Le(2)]


@dataclass(frozen=True, slots=True)
class Steps:
    """How load and clocks move within an epoch, on the event-driven machine alone (`simulation: events`)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    load_s: Positive = 60.0
    """From one step of load to the next, of all residents of a machine at once."""
    load_log_sd: LogSd = 0.39
    """Spread of an instance's load from step to step around that of the epoch, independent between steps; 0: none."""
    governor_s: Positive = 1.0
    """From one look of a machine's governor to the next."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that racks and machines have; they cause the co-variance between co-located jobs."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    machine_latency_log_sd: NonNegative = 0.033
    """Persistent spread of memory latency between machines of one platform."""
    machine_bandwidth_log_sd: NonNegative = 0.05
    """Persistent spread of memory bandwidth between machines."""
    machine_power_log_sd: NonNegative = 0.04
    """Persistent spread of power at the same work (silicon quality)."""
    rack_latency_log_sd: NonNegative = 0.01
    """Persistent spread of memory latency between racks (temperature and refresh)."""
    rack_power_log_sd: NonNegative = 0.02
    """Persistent spread of power between racks (inlet temperature, leakage)."""
    rack_access_log_sd: NonNegative = 0.02
    """Spread over time of the memory accesses that all instances of a rack share (hot data, incidents)."""
    machine_access_log_sd: NonNegative = 0.02
    """Spread over time of the memory accesses that all instances of a machine share (kernel, daemons)."""
    network_log_sd: NonNegative = 0.25
    """Spread of the time that requests wait for the network, between racks and over time."""
    slow_memory_share: Share = 0.023
    """Share of machines whose memory is slower for good (a failing module, a wrong setting)."""
    slow_memory_factor: Positive = 1.62
    """Memory latency of those relative to the others."""


Rate = Annotated[float, Ge(0), Le(1000)]


@dataclass(frozen=True, slots=True)
class Incidents:
    """What happens to machines for minutes to hours, and to jobs for good; rates are per day, 0: never.

    In the tables these are no events: `truth_incidents` and `truth_shifts` hold them.
    """

    __pydantic_config__: ClassVar[Forbid] = FORBID

    memory_per_machine_day: Rate = 0.0
    """How often a machine's memory becomes slower for a while (a failing module, a co-tenant that no table shows)."""
    memory_log_sd: LogSd = 0.3
    """Size of these incidents: memory latency is exp(|z|) times as long, z normal with this standard deviation."""
    clock_per_machine_day: Rate = 0.0
    """How often a machine's highest clock falls for a while (thermal throttling)."""
    clock_log_sd: LogSd = 0.15
    """Size of these incidents: the highest clock is divided by exp(|z|), down to the platform's lowest."""
    duration_s: Positive = 3600.0
    """Mean length of an incident, at least an epoch; lengths are geometric, in whole epochs."""
    shifts_per_job_day: Rate = 0.0
    """How often a job's level changes and stays so (a release, another mix of inputs): a regime shift."""
    shift_log_sd: LogSd = 0.05
    """Size of a regime shift: core CPI and memory accesses of all its instances become exp(z) times as many, z normal
    with this standard deviation."""

    @property
    def happen(self) -> bool:
        """Whether there may be any."""
        return max(self.memory_per_machine_day, self.clock_per_machine_day, self.shifts_per_job_day) > 0.0


@dataclass(frozen=True, slots=True)
class Software:
    """Another instruction path for the instances of some jobs; a factor of 1 changes nothing."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    jobs: Annotated[tuple[str, ...], MinLen(1)]
    """Names of the jobs (or services) that are rebuilt."""
    instructions_factor: Positive = 1.0
    """Instructions per request, new over old."""
    core_cpi_factor: Positive = 1.0
    """Core CPI, new over old."""
    memory_accesses_factor: Positive = 1.0
    """Last-level-cache accesses per instruction, new over old."""
    network_factor: Positive = 1.0
    """Time that a request waits for the network, new over old."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """Machines switch the feature on and off: it is on in one period of each pair, drawn at random.

    Every machine (or rack) draws for itself and anew for every pair of periods (a switchback with machines as units).
    """

    __pydantic_config__: ClassVar[Forbid] = FORBID

    period_s: Positive = 3600.0
    """Length of a period, a multiple of the epoch."""
    pairs: Count | None = None
    """Pairs of periods from the roll-out's start on; null: as many as fit into the horizon. After the last pair the
    feature is off."""
    wash_s: NonNegative | None = None
    """First part of each period, with counting windows of its own so that it can be left out, a multiple of the epoch;
    null: as long as the feature settles. Governor and caches need some more epochs to find their balance."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Which machines (or, for software, instances) get the feature in the recorded fleet, and when."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    share: Share = 0.5
    """Share of the machines; 0.5 is the half of WSMeter section 6.1."""
    unit: Literal["machine", "rack", "domain", "instance"] = "machine"
    """Unit that is drawn at random; a domain is all machines behind one power budget, so one machine's power affects
    the others."""
    start_s: NonNegative = 0.0
    """Time at which the first wave is switched on."""
    waves: Count = 1
    """Number of equal waves of the roll-out."""
    interval_s: NonNegative = 3600.0
    """Time between waves."""
    crossover: Crossover | None = None
    """How machines with the feature switch it on and off repeatedly; null: it stays on."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A change of the fleet by physics: other hardware, another governor, other code."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Name of the feature in outputs."""
    platforms: Mapping[str, str] = field(default_factory=dict)
    """Platform to the platform that replaces it, with at least as many hardware threads; placement does not change."""
    governor: Governor | None = None
    """The new DVFS policy."""
    software: tuple[Software, ...] = ()
    """New code of some jobs."""
    settle_s: NonNegative = 0.0
    """How long after a switch, on or off, the old state still acts: clocks ramp, caches and code warm up. A multiple of
    the epoch; whatever is on at time 0 has settled."""
    rollout: Rollout = field(default_factory=Rollout)
    """Who has it in the recorded fleet."""


@dataclass(frozen=True, slots=True)
class Window:
    """A named interval of the horizon over which counters are summed."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Its name in the tables."""
    start_s: NonNegative
    """From this time on, a multiple of the epoch."""
    end_s: Positive
    """Up to this time, a multiple of the epoch."""


@dataclass(frozen=True, slots=True)
class Loop:
    """WSMeter's loop: plan, roll the feature out to so many machines, check the margin, plan again."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    target_margin: Annotated[float, Gt(0), Lt(1)] = 0.02
    """Relative margin that must be reached."""
    metric: MetricName = "ipc"
    """Performance of an instance."""
    window: Annotated[str, MinLen(1)] = "all"
    """Counting window that is measured."""
    top_jobs: Count = 200
    """Only so many jobs with the largest quota are planned for and measured."""
    min_instances: Annotated[int, Ge(2), Le(1_000_000_000)] = 4
    """Least measured instances of a job."""
    t: Positive = 2.0
    """Half-width of intervals in standard errors."""
    headroom: Annotated[float, Ge(1)] = 1.2
    """How much more than planned is rolled out."""
    rounds: Count = 5
    """Rounds at most."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is written. Adding a table changes no other."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    windows: tuple[Window, ...] = ()
    """Counting windows, which must not overlap; none means one, `all`, over the whole horizon, or in a crossover
    `before`, and `wash` and `rest` of every period: `wash.000` is its first part."""
    truth: bool = True
    """Whether the counterfactual pair (feature nowhere, feature everywhere) is simulated and kept."""
    instance_epoch_share: Share = 0.0
    """Share of the instances of which every epoch is recorded."""
    machine_epochs: bool = False
    """Whether every machine's every epoch is recorded."""
    loop: Loop | None = None
    """The roll-out loop to run before the recorded day, each round really simulated; null: none."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that decides what a fleet's day looks like. Same world, same tables."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    seed: Annotated[int, Ge(0)] = 1
    """All random draws follow from it."""
    horizon_s: Annotated[float, Gt(0), Le(366 * 86400)] = 86400.0
    """Simulated time, a multiple of the epoch."""
    epoch_s: Positive = 300.0
    """Time step of the machines' physics; on the event-driven machine, that of slow changes and of records."""
    fleet: Fleet = field(default_factory=Fleet)
    """Machines."""
    population: Population = field(default_factory=Population)
    """Jobs."""
    scheduler: Scheduler = field(default_factory=Scheduler)
    """Placement."""
    churn: Churn = field(default_factory=Churn)
    """Arrivals, exits, restarts, drains, failures."""
    interference: Interference = field(default_factory=Interference)
    """Shared resources."""
    power: Power = field(default_factory=Power)
    """Power limits and governor."""
    conditions: Conditions = field(default_factory=Conditions)
    """Shared and machine-own conditions."""
    feature: Feature | None = None
    """The change under study."""
    recording: Recording = field(default_factory=Recording)
    """What is written."""
    platforms: Mapping[str, Sheet] = field(default_factory=dict)
    """Platforms of your own by name: the name of a file that has them, as ``wsc predict --platforms`` reads it, or the
    sheets themselves."""
    simulation: Literal["epochs", "events"] = "epochs"
    """epochs: every machine is solved once an epoch, stays begin and end with epochs. events: the event-driven machine,
    solved again whenever residents, load or clocks change, at their own times."""
    steps: Steps = field(default_factory=Steps)
    """Load and clocks within an epoch, for `simulation: events`."""
    incidents: Incidents = field(default_factory=Incidents)
    """Slow spells of machines and regime shifts of jobs."""

    @property
    def sheets(self) -> Mapping[str, Platform]:
        """The spec sheets of all platforms that it may name: the shipped ones and its own."""
        return sheets_of(self.platforms)

    @property
    def machines(self) -> Mapping[str, Platform]:
        """The same platforms as machines really are, where one of its own departs from its sheet."""
        return machines_of(self.platforms)

    @property
    def epochs(self) -> int:
        """Number of epochs in the horizon."""
        return round(self.horizon_s / self.epoch_s)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The counting windows in order of time, the default one included."""
        given = self.recording.windows or self._period_windows() or (Window("all", 0.0, self.horizon_s),)
        return tuple(sorted(given, key=lambda window: window.start_s))

    @property
    def periods(self) -> tuple[tuple[float, float], ...]:
        """Start and end of each period of the feature's crossover in seconds, in order; none without a crossover."""
        plan = self.feature.rollout if self.feature is not None else None
        if plan is None or plan.crossover is None:
            return ()
        period_s = plan.crossover.period_s
        fits = int((self.horizon_s - plan.start_s) / (2 * period_s) + 1e-9)
        pairs = fits if plan.crossover.pairs is None else min(plan.crossover.pairs, fits)
        return tuple((plan.start_s + k * period_s, plan.start_s + (k + 1) * period_s) for k in range(2 * pairs))

    def _period_windows(self) -> tuple[Window, ...]:
        """Return the counting windows of a crossover; none without one."""
        plan = self.feature.rollout.crossover if self.feature is not None else None
        if self.feature is None or plan is None or not self.periods:
            return ()
        first_s, windows = self.periods[0][0], []
        for k, (start_s, end_s) in enumerate(self.periods):
            wash_s = min(start_s + (self.feature.settle_s if plan.wash_s is None else plan.wash_s), end_s)
            windows += [Window(f"wash.{k:03}", start_s, wash_s), Window(f"rest.{k:03}", wash_s, end_s)]
        return tuple(window for window in (Window("before", 0.0, first_s), *windows) if window.end_s > window.start_s)
