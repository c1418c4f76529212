"""What is asked of an internet service that several platforms could serve: its types of requests, its load, hardware.

The service is the business-logic tier of a multi-tier application (Stewart et al. 2008, section 2): requests of a few
types arrive in a mix that never settles, and each needs instructions and memory accesses. One world is one draw of the
types' behaviour and of how far the hardware departs from its spec sheets. Every field's bounds stand in its annotation;
the text under a field is its documentation. Shares are in 0..1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen

from models.fleet.world import FORBID, CoreCpi, Count, Forbid, NonNegative, Positive, Share
from models.platforms import Frequency, Platform, Sheet, sheets_of
from models.queues.world import LONGEST_S
from models.services.clocks import at_clocks


@dataclass(frozen=True, slots=True)
class Application:
    """The types of requests of a service and how they use a core and its caches: medians and spreads between types."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    types: Annotated[int, Ge(1), Le(200)] = 22
    """Types of requests."""
    popularity_exponent: NonNegative = 0.9
    """In the long run the frequency of the i-th most frequent type is proportional to i to minus this power (Zipf)."""
    instructions_per_request: Positive = 8.0e6
    """Mean user-level instructions of a request, over the types in their long-run mix."""
    instructions_log_sd: NonNegative = 0.9
    """Spread of instructions per request between types."""
    request_cv: NonNegative = 0.4
    """Coefficient of variation of the instructions of requests of one type (gamma)."""
    core_cpi: CoreCpi = 0.85
    """Median cycles per instruction on the reference core (Haswell), every access a hit in the first-level cache and no
    branch mispredicted."""
    core_cpi_log_sd: NonNegative = 0.15
    """Spread of core CPI between types."""
    misses_per_instruction: Positive = 0.058
    """Mean data misses per instruction of a cache of 32 KiB."""
    misses_log_sd: NonNegative = 0.35
    """Spread of misses per instruction between types."""
    miss_exponent: Annotated[float, Gt(-2), Lt(0)] = -0.83
    """Slope of log misses over log cache size for the whole service, collections included; reuse distances are drawn
    around it."""
    miss_exponent_sd: NonNegative = 0.12
    """Spread of `miss_exponent` between types."""
    reuse_log_sd: NonNegative = 0.2
    """Spread of the log weights of the whole service's working sets around `miss_exponent`: how far it is from a power
    law. Fitted to the largest residuals from 16 KB to 16 MB, 0.03 to 0.09 (Stewart et al. 2008, Fig. 3)."""
    type_reuse_log_sd: NonNegative = 3.0
    """Spread between types of the log weights of each working set: types have working sets of different sizes.
    Fitted to four types whose response times on two servers have log ratios that range over 0.80 (Stewart et al. 2008,
    Table 8): 3.0 gives 0.7, and 0.35 in processor time; larger values add little."""
    miss_curve: Literal["power", "cliffs"] = "power"
    """power: working sets of all sizes, weights around the slope; cliffs: a small one and a large one, little between
    them, so that no power law fits."""
    branch_misses_per_instruction: NonNegative = 0.005
    """Mean mispredicted branches per instruction; their cycles come on top of core CPI."""
    allocation_bytes_per_instruction: NonNegative = 0.12
    """Mean heap allocation per instruction, which garbage collection works off."""
    overlap: Annotated[float, Ge(1)] = 1.4
    """Median number of overlapping misses of a type (memory-level parallelism)."""
    overlap_log_sd: NonNegative = 0.15
    """Spread of the number of overlapping misses between types."""
    shared_write_share: Share = 0.06
    """Mean share of first-level misses to lines that other requests write: they miss again when another processor had
    the line."""
    smt_slowdown: NonNegative = 0.55
    """Relative growth of core CPI while the sibling hardware thread is busy and waits for memory half of the time."""
    prefetched_share: Share = 0.5
    """Share of the misses that no cache removes (working sets above 16 MiB) whose latency prefetchers hide; their
    traffic stays."""
    spin_share: Share = 0.03
    """Share of instructions spent spinning on locks when all processors are busy."""
    other_tiers_s: NonNegative = 0.05
    """Mean delay of a request at the other tiers (web server and database): at most the 48 ms that a whole static page
    takes (Stewart et al. 2008, Table 8)."""
    other_tiers: Literal["elsewhere", "platform"] = "elsewhere"
    """Where the other tiers run. elsewhere: on the same machines whatever the platform, so their delay stays;
    platform: on machines like the service's, so a type's delay changes from platform to platform as the time that its
    requests take on an idle processor does; `other_tiers_s` is then the mean on the dual-core Xeon (`xeon_1h_2c_1p`),
    on which it was measured."""
    other_tiers_log_sd: NonNegative = 0.5
    """Spread of the delay at the other tiers between types."""


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """How many requests of each type arrive: volume and mix, under open arrivals."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    requests_per_s: Positive = 10.0
    """Mean arrivals per second over the horizon, at volume 1. The default is 300 in an interval; the paper's Fig. 2
    ranges from nearly none to 700."""
    volume: Positive = 1.0
    """Factor on the arrivals: 3 saturates the oldest platform in more than half of the intervals."""
    swing: Annotated[float, Ge(0), Lt(1)] = 0.55
    """Half-amplitude of the volume's waves, relative to its mean."""
    period_s: Positive = 9000.0
    """Length of one wave of the volume."""
    mix_log_sd: NonNegative = 0.6
    """Spread over time of each type's log popularity: 0 is a stationary mix. Fitted to the ratio of the two most
    popular types, which ranges from 0.13 to 12.5, a factor of 96 (Stewart et al. 2008, Fig. 2)."""
    mix_time_s: Positive = 5400.0
    """Correlation time of the changes of popularity."""
    trend_log_sd: NonNegative = 0.4
    """Spread between types of the change of log popularity from the first to the last second: the mix of requests
    drifts."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Work beside the requests: garbage collection and background ticks of runtime and operating system."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    heap_bytes: Positive = 96.0 * 2**20
    """Allocation between two collections."""
    collection_instructions: NonNegative = 6.0e7
    """Instructions of one collection."""
    collection_misses_factor: Positive = 1.6
    """Misses per instruction of a collection relative to the mean request, in a cache of 32 KiB."""
    collection_exponent_factor: Positive = 0.8
    """Slope of a collection's misses relative to that of the mean request: it walks the whole heap."""
    tick_instructions_per_s: NonNegative = 1.5e6
    """Instructions per second of background ticks, on every machine."""
    tick_misses_factor: Positive = 2.0
    """Misses per instruction of the ticks relative to the mean request, in a cache of 32 KiB: they find it cold."""
    placement: Literal["interleaved", "local"] = "interleaved"
    """Where memory lies on machines that have some at each socket. interleaved: one process whose pages spread over all
    sockets; local: a process for each socket, with its memory beside it."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """How real machines differ from their spec sheets; drawn for each server model, the same for its configurations."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    cpi_log_sd: NonNegative = 0.10
    """Spread of core CPI around what the spec sheet says."""
    latency_log_sd: NonNegative = 0.12
    """Spread of the latency of every cache and of memory, drawn independently."""
    overlap_log_sd: NonNegative = 0.10
    """Spread between server models of how many misses they overlap."""
    effective_cache_share: Annotated[float, Gt(0), Le(1)] = 0.8
    """Mean share of a cache's size that holds the service's own data; conflicts, code and the kernel take the rest."""
    effective_cache_log_sd: NonNegative = 0.1
    """Spread of the effective share between server models and between their levels of caches."""
    smt_log_sd: NonNegative = 0.2
    """Spread between server models of the slowdown by a busy sibling thread."""
    sibling_relief: Share = 0.5
    """By how much less a sibling thread slows down that always waits for memory than one that always computes, in
    shares of `smt_slowdown`; the mean of both stays."""
    bus_transfer: Annotated[float, Ge(1)] = 1.3
    """Time of a line that another socket has changed, over that of idle memory, where sockets share front-side buses:
    1 makes sockets and cores the same."""


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """Effects of real machines that the published equation leaves out; each can be switched off for an ablation."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    collection: bool = True
    """Garbage collection."""
    ticks: bool = True
    """Background ticks."""
    branches: bool = True
    """Mispredicted branches cost cycles."""
    cores: bool = True
    """Types of requests suit some cores more than others, and cores with larger windows overlap more misses."""
    overlap: bool = True
    """Misses overlap."""
    prefetch: bool = True
    """Prefetchers hide the latency of some misses."""
    bus: bool = True
    """Memory latency grows with the traffic of all processors."""
    coherence: bool = True
    """Lines written by another processor miss again."""
    sockets: bool = True
    """Memory of another socket and lines that it has changed take longer than those of the own."""
    shared_cache: bool = True
    """Requests in service at once share the caches that their cores share; those that sibling threads share go with
    ``smt``."""
    smt: bool = True
    """A busy sibling thread slows a thread down and takes part of its caches."""
    spin: bool = True
    """Waiting requests spin on locks."""
    effective_cache: bool = True
    """Caches hold less than their nominal size."""
    departure: bool = True
    """Hardware departs from its spec sheet."""
    request_noise: bool = True
    """Requests of one type differ."""
    sampling: bool = True
    """Counters are sampled."""


@dataclass(frozen=True, slots=True)
class ServiceWorld:
    """Everything that decides what a service does on each of several platforms. Same world, same tables."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    seed: Annotated[int, Ge(0)] = 1
    """All random draws follow from it."""
    horizon_s: Annotated[float, Gt(0), Le(LONGEST_S)] = 36000.0
    """Length of the trace."""
    interval_s: Positive = 30.0
    """Length of an interval of the log: a request mix is what came in one."""
    application: Application = field(default_factory=Application)
    """The service."""
    benchmark: Application = field(default_factory=lambda: Application(types=13, miss_exponent=-0.89))
    """A public benchmark whose score is known on every platform, in a stationary mix."""
    load: ServiceLoad = field(default_factory=ServiceLoad)
    """Requests over time."""
    runtime: Runtime = field(default_factory=Runtime)
    """What runs beside them."""
    hardware: Hardware = field(default_factory=Hardware)
    """Departures from spec sheets."""
    mechanisms: Mechanisms = field(default_factory=Mechanisms)
    """What to leave out for an ablation."""
    platforms: Annotated[tuple[str, ...], MinLen(1)] = ("piii", "pres", "pd4", "xeon_2h_2c_2p")
    """Platforms that serve the same requests, each from the trace's start to its end. The name of a file of your own
    platforms, such as `mine.yaml`, stands for all of them."""
    measured: Annotated[tuple[str, ...], MinLen(1)] = ("piii",)
    """Platforms of whose run there is a log; what the others did is in the ``truth_`` tables alone."""
    sampling_events: Count = 24000
    """Events per sample of the counters (OProfile's setting in the paper)."""
    bounds_s: tuple[Positive, ...] = (0.150,)
    """Bounds on mean response time for which the greatest throughput of every platform is found, at the mean mix."""
    own_platforms: Mapping[str, Sheet] = field(default_factory=dict)
    """Platforms of your own that `platforms` may name: the name of a file that has them, or the sheets themselves.
    Those of files that `platforms` names are among them."""
    clocks: Mapping[str, Frequency] = field(default_factory=dict)
    """Clocks of platforms that do not run at the base clock of their spec sheets but are set to another by hand, hertz:
    the name of one of `platforms`, and at most its highest clock with all cores busy. Predictions know them; public
    scores are of machines at the base clock."""

    @property
    def sheets(self) -> Mapping[str, Platform]:
        """The spec sheets of all platforms that it may name, shipped and own, at the clocks at which they run.

        Examples
        --------
        >>> ServiceWorld(clocks={"pres": 1.1e9}).sheets["pres"].base_frequency_hz
        1100000000.0
        """
        return at_clocks(sheets_of(self.own_platforms), self.clocks)
