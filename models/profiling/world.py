"""What is asked of a fleet that is profiled: its programs, roll-outs, planted incidents and the collector.

Every field's bounds stand in its annotation, as in `models.fleet.world`. A fleet that is profiled is a fleet:
`ProfileWorld` adds to `World` what runs inside the instances and who looks at it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, MinLen

from models.fleet.world import FORBID, Count, Forbid, NonNegative, Positive, Share, World
from models.profiling.served import HardwareTrial, Served

EAST_WEST: Mapping[str, float] = {"east": 0.6, "west": 0.4}
"""Two data centres."""
Event = Literal["cycles", "instructions", "l1_misses", "l2_misses", "llc_misses", "mispredictions"]


@dataclass(frozen=True, slots=True)
class Library:
    """Code that many programs link: its functions are hot in no single job and large in the sum."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Name of its image, such as `libz`."""
    functions: Annotated[int, Ge(1), Le(1000)]
    """Functions in it."""
    instruction_share: Share
    """Its share of the instructions of a program that links it, in the mean over such programs."""
    linked_share: Share = 1.0
    """Share of the programs that link it."""
    log_sd: NonNegative = 0.7
    """Spread of its share of instructions between programs (standard deviation of the logarithm)."""
    floating_point: Share = 0.02
    """Share of floating-point instructions in its code."""


TAX: tuple[Library, ...] = (
    Library("libz", 12, 0.055, 0.9, 0.5),
    Library("liballoc", 14, 0.06, 1.0, 0.4),
    Library("libproto", 24, 0.06, 0.95, 0.6),
    Library("librpc", 20, 0.055, 0.9, 0.6),
    Library("libhash", 6, 0.02, 0.9, 0.6),
    Library("libstring", 10, 0.04, 1.0, 0.4),
    Library("libcrypto", 16, 0.02, 0.6, 0.8),
    Library("libm", 12, 0.015, 0.4, 1.0, 0.7),
)
"""Shared libraries after the taxes that Kanev et al. (2015, fig. 4) found: compression, allocation, serialisation,
remote calls, hashing, data movement; each a few per cent of all cycles, compression five (Ren et al. 2010)."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What runs inside the instances: functions, call paths, states, and how these differ."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    functions: Annotated[int, Ge(3), Le(5000)] = 60
    """Median number of functions of a program, libraries excluded."""
    functions_log_sd: NonNegative = 0.5
    """Spread of the number of functions between programs."""
    zipf: Positive = 1.1
    """Instructions of a program's own functions are proportional to their rank to minus this power."""
    libraries: tuple[Library, ...] = TAX
    """Shared libraries."""
    kernel_functions: Annotated[int, Ge(1), Le(1000)] = 40
    """Functions of the operating system's kernel and its modules."""
    kernel_share: Share = 0.18
    """Mean share of an instance's instructions spent in the kernel on its behalf (Kanev et al. 2015: 19%)."""
    jit_share: Share = 0.04
    """Share of the programs that run code generated at run time, which no repository has."""
    core_cpi_log_sd: NonNegative = 0.35
    """Spread of core CPI between the functions of a program."""
    misses_log_sd: NonNegative = 0.9
    """Spread of misses per instruction between the functions of a program."""
    states: Annotated[int, Ge(1), Le(8)] = 2
    """Behaviour states that an instance's input data can put it into."""
    two_state_share: Share = 0.5
    """Share of the programs whose instances are in one of `states` states; the others have one."""
    state_flattening: Positive = 0.45
    """How much flatter each further state's profile is: weights of functions are raised to this power."""
    state_change_per_day: Share = 0.02
    """Chance that an instance's data put it into another state from one day to the next."""
    shard_log_sd: NonNegative = 0.35
    """Persistent spread of a function's weight between instances of one program (input data)."""
    day_log_sd: NonNegative = 0.05
    """Spread from day to day of a function's weight in all instances of a program (requests change)."""
    visit_log_sd: NonNegative = 0.15
    """Spread of a function's weight from one five-minute visit to the next within an instance."""
    lines: Annotated[int, Ge(1), Le(100)] = 8
    """Source lines with code in a function, at the median."""
    paths: Annotated[int, Ge(1), Le(50)] = 3
    """Call paths that lead to a function, at the median."""
    profiling_share: Share = 0.92
    """Share of the programs that link the profiling library and so answer with stacks."""


@dataclass(frozen=True, slots=True)
class Releases:
    """New builds of the programs during the horizon: from one revision to the next, wave by wave, at midnight."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    share: Share = 0.6
    """Share of the programs released within the horizon (two-week cycles)."""
    wave_shares: Annotated[tuple[Share, ...], MinLen(1)] = (0.1, 0.5, 1.0)
    """Share of a program's instances that run the new build on the first, second, … day of its release."""
    changed_functions: Share = 0.15
    """Share of a program's own functions whose cost a release changes."""
    change_log_sd: NonNegative = 0.10
    """Spread of the factor on those functions' instructions."""
    unstored_share: Share = 0.02
    """Share of the builds whose unstripped binary never reached the repository."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A roll-out of a new compiler: programs built from some day on use it, more and more of them."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    old: Annotated[str, MinLen(1)] = "clang-17"
    """Compiler before."""
    new: Annotated[str, MinLen(1)] = "clang-18"
    """Compiler after."""
    start_s: NonNegative = 3 * 86400.0
    """From when on the first programs are released with it."""
    until_s: Positive = 10 * 86400.0
    """From when on every release is built with it; between the two the share grows linearly."""
    instructions_factor: Positive = 0.97
    """Mean factor on a function's instructions, new over old."""
    log_sd: NonNegative = 0.05
    """Spread of `instructions_factor` between functions."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A roll-out of a new operating-system kernel over the machines, wave by wave, each at a midnight."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    old: Annotated[str, MinLen(1)] = "6.1.90"
    """Version before."""
    new: Annotated[str, MinLen(1)] = "6.6.30"
    """Version after."""
    start_s: NonNegative = 5 * 86400.0
    """Time at which the first wave gets it."""
    waves: Count = 4
    """Equal waves of machines, drawn at random."""
    interval_s: Positive = 86400.0
    """Time between waves."""
    function_log_sd: NonNegative = 0.10
    """Spread of the factor on the kernel's functions' instructions, new over old."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that makes a function more expensive where all the given tags match; empty tags match everything.

    It acts on where an instance's instructions are spent. How many it has stays what the fleet gives it, so a costlier
    function takes from the others: fewer requests are served.
    """

    __pydantic_config__: ClassVar[Forbid] = FORBID

    function: Annotated[str, MinLen(1)]
    """Name of the function."""
    factor: Positive
    """Factor on its instructions."""
    from_s: NonNegative = 0.0
    """From this time on, a multiple of a day."""
    application: str = ""
    """Only in this program."""
    revision: str = ""
    """Only in builds of this revision."""
    compiler: str = ""
    """Only in builds by this compiler."""
    platform: str = ""
    """Only on this platform."""
    datacentre: str = ""
    """Only in this data centre."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Application-specific profiling: a named set of machines, sampled more densely."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Name of the collection in the tables."""
    job: str = ""
    """Machines that run this job; empty: any."""
    platform: str = ""
    """Machines of this platform; empty: any."""
    kernel: str = ""
    """Machines with this kernel at the time; empty: any."""
    one_in: Count = 8
    """One machine of the set in so many is profiled in each round."""
    start_s: NonNegative = 0.0
    """Start of the watch."""
    end_s: Positive = 366 * 86400.0
    """End of the watch."""
    target_samples: Annotated[int, Ge(0), Le(1_000_000_000)] = 0
    """Number of samples of cycles wanted of the job in all; rounds stop when it is reached. 0: no target."""
    samples_per_s: Positive | None = None
    """Samples a second of an event on a busy machine; null: as many as the collector asks for elsewhere."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The profiler of the fleet: random machines in turn, events sampled on each (Ren et al. 2010)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    seed: Annotated[int, Ge(0)] = 0
    """Draws of the collector and of its samples; another number looks at the same fleet again."""
    one_in: Count = 100
    """In each round one machine in so many is profiled, in a random order of all machines."""
    round_s: Positive = 3600.0
    """Length of a round, a multiple of the epoch; each visit is one random epoch of it."""
    seconds_per_event: Positive = 40.0
    """Time for which each event is counted in a visit; events follow one another."""
    events: Annotated[tuple[Event, ...], MinLen(1)] = (
        "cycles",
        "instructions",
        "l1_misses",
        "l2_misses",
        "llc_misses",
        "mispredictions",
    )
    """Events of whole-machine profiles, in their order."""
    samples_per_s: Positive = 25.0
    """Samples a second of an event on a busy machine that the collector asks for; gatekeepers may allow fewer."""
    stacks_per_s: NonNegative = 5.0
    """Samples a second of CPU time with stacks on a busy machine, from processes that support them; 0: none."""
    overhead_limit: Annotated[float, Gt(0), Le(1)] = 0.02
    """Largest share of a machine's cycles that profiling may cost while it is on; sets the highest rates."""
    failure_share: Share = 0.01
    """Chance that a visit fails: no answer, or a profile that is cut off."""
    stop_failures: Share = 0.2
    """Share of failed visits within a round at which profiling stops for the rest of the day."""
    outage_s: tuple[float, ...] = ()
    """Times at which for one round every visit fails."""
    watches: tuple[Watch, ...] = ()
    """Application-specific profiling beside it."""


@dataclass(frozen=True, slots=True)
class Profiling:
    """What runs inside the instances, what is rolled out, and who looks at it."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    datacentres: Annotated[Mapping[str, Positive], MinLen(1)] = field(
        default_factory=lambda: {"east": 0.6, "west": 0.4}
    )
    """Data centre to its share of the power domains, in order of their numbers; the shares sum to 1."""
    programs: Programs = field(default_factory=Programs)
    """Programs."""
    releases: Releases = field(default_factory=Releases)
    """New builds."""
    compiler: Compiler | None = field(default_factory=Compiler)
    """Compiler roll-out; null: none."""
    kernel: Kernel | None = field(default_factory=Kernel)
    """Kernel roll-out; null: none."""
    incidents: tuple[Incident, ...] = ()
    """Planted regressions."""
    collector: Collector = field(default_factory=Collector)
    """The profiler."""


@dataclass(frozen=True, slots=True)
class ProfileWorld(World):
    """A fleet that is profiled.

    Examples
    --------
    >>> ProfileWorld(seed=3).profiling.collector.one_in
    100
    """

    horizon_s: Annotated[float, Gt(0), Le(366 * 86400)] = 14 * 86400.0
    """Simulated time, whole days: programs, hardware and kernels change at midnight alone."""
    profiling: Profiling = field(default_factory=Profiling)
    """Programs and profiler."""
    served: tuple[Served, ...] = ()
    """Services of the population whose requests are served one by one."""
    trial: HardwareTrial | None = None
    """New processors under consideration, on a few machines; null: none."""

    @property
    def days(self) -> int:
        """Whole days of the horizon; programs change at midnight alone.

        Examples
        --------
        >>> ProfileWorld().days
        14
        """
        return max(1, round(self.horizon_s / 86400.0))
