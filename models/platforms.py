"""Server platforms as their makers' spec sheets give them.

A platform is a whole machine: the sums of its sockets' cores, last-level caches and memory channels, which simulations
divide among sockets again (`models.fleet.processors`). Frequencies are the steps up to the all-core turbo.
`core_cpi_factor` is core CPI relative to Haswell at equal instructions; it follows published per-clock comparisons
between generations.
docs/platforms.md says which values are printed, which were measured and which are estimates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from models.errors import InputError

InstructionSet: TypeAlias = Literal["x86", "arm64", "power", "riscv64", "s390x", "unknown"]
"""Families of instruction sets in which a program is one and the same; IA-32 and x86-64 are both x86."""
UNKNOWN: InstructionSet = "unknown"
Frequency: TypeAlias = Annotated[float, Ge(1e6), Le(1e11)]
Bytes: TypeAlias = Annotated[float, Ge(1024), Le(1e15)]
Watts: TypeAlias = Annotated[float, Gt(0), Le(100_000)]
Several: TypeAlias = Annotated[int, Ge(1), Le(4096)]
_STRICT: dict[str, str] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of data caches, each the same: what holds it and what a hit costs."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    size_bytes: Bytes
    """Size of one cache."""
    latency_cycles: Annotated[float, Gt(0), Le(10_000)]
    """From load to use, in cycles of the base frequency."""
    cores: Several = 1
    """Cores that share one."""


@dataclass(frozen=True, slots=True)
class Platform:
    """One server model: what its spec sheets say, units in the names.

    Examples
    --------
    >>> rome = PLATFORMS["rome_7742"]
    >>> rome.cores, rome.vcpus, rome.isa
    (64, 128, 'x86')
    """

    name: str
    cores: int
    threads_per_core: int
    base_frequency_hz: float
    min_frequency_hz: float
    max_frequency_hz: float
    llc_bytes: float
    memory_latency_s: float
    memory_bandwidth_bytes_per_s: float
    memory_bytes: float
    tdp_w: float
    idle_power_w: float
    core_cpi_factor: float
    source: str
    frequency_step_hz: float = 1.0e8
    sockets: int = 2
    caches: tuple[Cache, ...] = ()
    """Levels of data caches, the first first; the last is the last-level cache."""
    variant_of: str = ""
    """The server of which this is a configuration, with parts switched off; empty: itself."""
    branch_miss_cycles: float = 16.0
    """Cycles lost by a mispredicted branch, about the length of the pipeline."""
    isa: InstructionSet = "unknown"
    """Instruction set: what is counted in instructions on one platform is not on a platform of another."""

    @property
    def sheet(self) -> "Sheet":
        """What a file says of it.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].sheet.platform("mine").peak_power_w
        319.5
        """
        stated = {field.name for field in fields(Sheet)} - {"extends", "departs"}
        return Sheet(**{name: getattr(self, name) for name in stated})

    @property
    def vcpus(self) -> int:
        """Hardware threads of the machine, the unit of CPU quota.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].vcpus
        64
        """
        return self.cores * self.threads_per_core

    @property
    def instruction_cpi(self) -> float:
        """Typical cycles per instruction without memory delays.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].instruction_cpi
        0.85
        """
        return REFERENCE_CORE_CPI * self.core_cpi_factor

    @property
    def peak_power_w(self) -> float:
        """Power with all cores busy at base frequency: idle power plus the switched part of the TDP.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].peak_power_w
        319.5
        """
        return self.idle_power_w + SWITCHED_SHARE_OF_TDP * self.tdp_w


Factor: TypeAlias = Annotated[float, Gt(0), Le(100)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetDepartures:
    """How a real machine departs from its spec sheet, as factors; simulations have them, and predictions do not.

    What is null is as the sheet says in a fleet, and drawn in a world of kind `cross_platform`.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    core_cpi: Factor | None = None
    """Cycles per instruction without memory delays, real over sheet."""
    memory_latency: Factor | None = None
    """Latency of idle memory, real over sheet."""
    memory_bandwidth: Factor | None = None
    """Bandwidth of memory, real over sheet; never drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The spec sheet of a platform of your own."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT

    extends: str | None = None
    """A platform, shipped or of the same file, whose values hold where none is said."""
    cores: Several
    """Cores of all processors together."""
    threads_per_core: Annotated[int, Ge(1), Le(8)] = 1
    """Hardware threads of a core."""
    sockets: Several = 1
    """Processors."""
    base_frequency_hz: Frequency
    """Clock that the maker guarantees with all cores busy."""
    min_frequency_hz: Frequency | None = None
    """Lowest clock; null: the base frequency."""
    max_frequency_hz: Frequency | None = None
    """Highest clock with all cores busy; null: the base frequency."""
    frequency_step_hz: Frequency = 1.0e8
    """Distance of the clocks between them."""
    caches: Annotated[tuple[Cache, ...], MinLen(1)]
    """Levels of data caches, the innermost first."""
    memory_latency_s: Annotated[float, Gt(0), Le(1e-4)]
    """Latency of an access to idle memory, from load to use."""
    memory_bandwidth_bytes_per_s: Annotated[float, Ge(1e6), Le(1e15)]
    """What all memory channels, or the front-side bus, can move."""
    memory_bytes: Bytes = 64.0 * 2**30
    """Memory."""
    tdp_w: Watts
    """Thermal design power of all processors together."""
    idle_power_w: Watts
    """Power of the whole idle server."""
    core_cpi_factor: Annotated[float, Gt(0), Le(100)]
    """Cycles per instruction without memory delays, relative to Haswell at equal instructions."""
    branch_miss_cycles: Annotated[float, Ge(0), Le(1000)] = 16.0
    """Cycles lost by a mispredicted branch."""
    isa: InstructionSet = "unknown"
    """Instruction set; unknown: wsc predict and wsc select carry no instruction counts to it or from it."""
    variant_of: str = ""
    """The server of which this is a configuration, with parts switched off; empty: itself."""
    source: Annotated[str, MaxLen(1000)] = ""
    """Where the values come from; empty: the file, and the platform that it extends."""
    departs: SheetDepartures | None = None
    """How the real machine departs from the sheet, for simulations alone; null: not at all in a fleet, and as drawn in
    `cross_platform`."""

    def platform(self, name: str, file: str = "own spec sheet") -> Platform:
        """Return the platform that a complete sheet describes.

        Examples
        --------
        >>> sheet = Sheet(cores=4, base_frequency_hz=2e9, caches=(Cache(32768, 4),), memory_latency_s=1e-7,
        ...               memory_bandwidth_bytes_per_s=1e10, tdp_w=95, idle_power_w=40, core_cpi_factor=1)
        >>> sheet.platform("mine").max_frequency_hz, sheet.platform("mine").source
        (2000000000.0, 'own spec sheet')
        """
        derived = {"min_frequency_hz", "max_frequency_hz", "source"}
        stated = {field.name for field in fields(self)} - {"extends", "departs"} - derived
        return Platform(
            name=name,
            llc_bytes=self.sockets * pooled_bytes(self.caches[-1], self.cores // self.sockets),
            min_frequency_hz=self.min_frequency_hz or self.base_frequency_hz,
            max_frequency_hz=self.max_frequency_hz or self.base_frequency_hz,
            source=self.source or file + (f", from {self.extends}" if self.extends else ""),
            **{field: getattr(self, field) for field in stated},
        )


def sheets_of(own: Mapping[str, Sheet]) -> Mapping[str, Platform]:
    """Return the spec sheets that a world knows: the shipped platforms and its own.

    Examples
    --------
    >>> sheets_of({})["haswell_2698v3"].cores
    32
    """
    return PLATFORMS | {name: sheet.platform(name) for name, sheet in own.items()} if own else PLATFORMS


def machines_of(own: Mapping[str, Sheet]) -> Mapping[str, Platform]:
    """Return the platforms that a world knows as its machines really are, which only simulations may see.

    Examples
    --------
    >>> mine = replace(PLATFORMS["haswell_2698v3"].sheet, departs=SheetDepartures(core_cpi=1.5))
    >>> machines_of({"mine": mine})["mine"].core_cpi_factor, sheets_of({"mine": mine})["mine"].core_cpi_factor
    (1.5, 1.0)
    """
    departing = {name: sheet.departs for name, sheet in own.items() if sheet.departs is not None}
    sheets = sheets_of(own)
    return {**sheets, **{name: _departed(sheets[name], departs) for name, departs in departing.items()}}


def _departed(sheet: Platform, departs: SheetDepartures) -> Platform:
    return replace(
        sheet,
        core_cpi_factor=sheet.core_cpi_factor * (departs.core_cpi or 1.0),
        memory_latency_s=sheet.memory_latency_s * (departs.memory_latency or 1.0),
        memory_bandwidth_bytes_per_s=sheet.memory_bandwidth_bytes_per_s * (departs.memory_bandwidth or 1.0),
    )


def same_instructions(platform: Platform, other: Platform) -> bool:
    """Return whether the same program retires the same instructions on both: servers of one known instruction set.

    Configurations of one server are the same, whatever is known of it.

    Examples
    --------
    >>> same_instructions(PLATFORMS["piii"], PLATFORMS["rome_7742"])
    True
    >>> same_instructions(PLATFORMS["rome_7742"], PLATFORMS["altra_q80_30"])
    False
    """
    return (platform.isa == other.isa != UNKNOWN) or (platform.variant_of or platform.name) == (
        other.variant_of or other.name
    )


REFERENCE_CORE_CPI = 0.85
"""Cycles per instruction of server code on a Haswell core that waits for no memory, as predictors take it."""

SWITCHED_SHARE_OF_TDP = 0.85
"""Share of the TDP that busy cores add; the rest is drawn by uncore and leakage already when idle."""

_KIB, _MIB, _GIB = 2.0**10, 2.0**20, 2.0**30


def configuration(server: Platform, name: str, threads_per_core: int, cores: int, sockets: int) -> Platform:
    """Return a server of which firmware or scheduler switched parts off (Stewart et al. 2008, section 4.2.1).

    Processors that are off stay in their sockets, halted: idle power stays the whole server's, and so do memory and its
    bandwidth. The TDP is that of the processors that are on, and caches go with the cores that hold them.

    Parameters
    ----------
    server : with caches
    cores : of each processor that is on
    threads_per_core, sockets : what is on
    """
    parts = {"threads a core": threads_per_core, "cores a processor": cores, "processors": sockets}
    most = server.threads_per_core, server.cores // server.sockets, server.sockets
    for (what, number), has in zip(parts.items(), most, strict=True):
        if not 1 <= number <= has:
            raise InputError(f"{server.name} has 1 to {has} {what}, {number} asked")
    caches = tuple(replace(cache, cores=min(cache.cores, cores)) for cache in server.caches)
    return replace(
        server,
        name=name,
        threads_per_core=threads_per_core,
        cores=cores * sockets,
        sockets=sockets,
        caches=caches,
        llc_bytes=sockets * pooled_bytes(caches[-1], cores),
        tdp_w=server.tdp_w * sockets / server.sockets,
        variant_of=server.name,
    )


def pooled_bytes(cache: Cache, cores: int) -> float:
    """Return the size of all caches of a level together: as many as so many cores need.

    Examples
    --------
    >>> pooled_bytes(Cache(16 * 2.0**20, 39, 4), cores=64) / 2**20
    256.0
    """
    return cache.size_bytes * -(-cores // cache.cores)


_PRINTED = "clock and cache sizes as printed by Stewart et al. (2008, section 4.2.1); ARK"
_XEON = Platform(
    "xeon_2h_2c_2p", 4, 2, 2.8e9, 2.8e9, 2.8e9, 8 * _MIB, 130e-9, 6.4e9, 8 * _GIB, 270.0, 230.0, 2.6,
    f"2 × Intel Xeon 2.80 GHz dual core (Paxville DP): {_PRINTED}; one front-side bus of 800 MT/s",
    isa="x86", caches=(Cache(32 * _KIB, 4), Cache(2 * _MIB, 24)), branch_miss_cycles=31.0,
)  # fmt: skip

SERVERS_2008 = (
    Platform("piii", 2, 1, 1.1e9, 1.1e9, 1.1e9, 256 * _KIB, 110e-9, 0.8e9, 2 * _GIB, 66.0, 75.0, 2.0,
             f"2 × Intel Pentium III 1.10 GHz (Coppermine): {_PRINTED}; one front-side bus of 100 MT/s",
             isa="x86", caches=(Cache(32 * _KIB, 3), Cache(128 * _KIB, 8)), branch_miss_cycles=15.0),
    Platform("pres", 2, 1, 2.2e9, 2.2e9, 2.2e9, 1 * _MIB, 140e-9, 3.2e9, 4 * _GIB, 122.0, 150.0, 2.5,
             f"2 × Intel Pentium 4 2.20 GHz (Prescott): {_PRINTED}; one front-side bus of 400 MT/s",
             isa="x86", caches=(Cache(16 * _KIB, 4), Cache(512 * _KIB, 22)), branch_miss_cycles=31.0),
    Platform("pd4", 8, 1, 3.4e9, 3.4e9, 3.4e9, 64 * _MIB, 132e-9, 12.8e9, 16 * _GIB, 600.0, 450.0, 2.6,
             f"4 × Intel Xeon MP 3.40 GHz dual core (Tulsa): {_PRINTED}; two front-side buses of 800 MT/s",
             sockets=4, isa="x86", caches=(Cache(32 * _KIB, 4), Cache(4 * _MIB, 24, 2), Cache(16 * _MIB, 110, 2)),
             branch_miss_cycles=31.0),
    *(configuration(_XEON, f"xeon_{threads}h_{cores}c_{sockets}p", threads, cores, sockets)
      for threads, cores, sockets in product((1, 2), repeat=3) if (threads, cores, sockets) != (2, 2, 2)),
    _XEON,
)  # fmt: skip
"""The servers of Stewart et al. (2008); nothing turns their clocks up or down.

Of the Xeon, `xeon_1h_2c_1p` has no hyperthreads, both cores and one processor switched on (#H/#C/#P in the paper).
"""


def _levels(
    first: tuple[float, float], second: tuple[float, float], last: tuple[float, float, int]
) -> tuple[Cache, ...]:
    """Return three levels, sizes in KiB, KiB and MiB, latencies in cycles, then the cores that share the last."""
    size, cycles, cores = last
    return Cache(first[0] * _KIB, first[1]), Cache(second[0] * _KIB, second[1]), Cache(size * _MIB, cycles, cores)


MODERN_SERVERS = (
    Platform("sandybridge_2670", 16, 2, 2.6e9, 1.2e9, 3.0e9, 40 * 2.0**20, 81e-9, 102.4e9, 128 * _GIB, 230.0, 80.0,
             1.12, "2 × Intel Xeon E5-2670: ARK; 4 channels DDR3-1600 a socket",
             isa="x86", caches=_levels((32, 4), (256, 12), (20, 39, 8)), branch_miss_cycles=15.0),
    Platform("haswell_2698v3", 32, 2, 2.3e9, 1.2e9, 2.8e9, 80 * 2.0**20, 90e-9, 136.5e9, 256 * _GIB, 270.0, 90.0, 1.0,
             "2 × Intel Xeon E5-2698 v3: ARK; 4 channels DDR4-2133 a socket",
             isa="x86", caches=_levels((32, 4), (256, 12), (40, 49, 16))),
    Platform("broadwell_2698v4", 40, 2, 2.2e9, 1.2e9, 2.7e9, 100 * 2.0**20, 90e-9, 153.6e9, 256 * _GIB, 270.0, 90.0,
             0.95, "2 × Intel Xeon E5-2698 v4: ARK; 4 channels DDR4-2400 a socket",
             isa="x86", caches=_levels((32, 4), (256, 12), (50, 50, 20))),
    Platform("skylake_6148", 40, 2, 2.4e9, 1.0e9, 3.1e9, 55 * 2.0**20, 94e-9, 256.0e9, 384 * _GIB, 300.0, 100.0, 0.88,
             "2 × Intel Xeon Gold 6148: ARK; 6 channels DDR4-2666 a socket",
             isa="x86", caches=_levels((32, 4), (1024, 14), (27.5, 43, 20))),
    Platform("cascadelake_8280", 56, 2, 2.7e9, 1.0e9, 3.3e9, 77 * _MIB, 90e-9, 281.6e9, 384 * _GIB, 410.0, 110.0, 0.88,
             "2 × Intel Xeon Platinum 8280: ARK; 6 channels DDR4-2933 a socket",
             isa="x86", caches=_levels((32, 4), (1024, 14), (38.5, 46, 28))),
    Platform("icelake_8380", 80, 2, 2.3e9, 0.8e9, 3.0e9, 120 * 2.0**20, 96e-9, 409.6e9, 512 * _GIB, 540.0, 150.0,
             0.76, "2 × Intel Xeon Platinum 8380: ARK; 8 channels DDR4-3200 a socket",
             isa="x86", caches=_levels((48, 5), (1280, 14), (60, 50, 40)), branch_miss_cycles=17.0),
    Platform("sapphirerapids_8480", 112, 2, 2.0e9, 0.8e9, 3.0e9, 210 * _MIB, 110e-9, 614.4e9, 1024 * _GIB, 700.0, 230.0,
             0.66, "2 × Intel Xeon Platinum 8480+: ARK; 8 channels DDR5-4800 a socket",
             isa="x86", caches=_levels((48, 5), (2048, 15), (105, 66, 56)), branch_miss_cycles=17.0),
    Platform("emeraldrapids_8592", 128, 2, 1.9e9, 0.8e9, 2.9e9, 640 * _MIB, 110e-9, 716.8e9, 1024 * _GIB, 700.0, 200.0,
             0.65, "2 × Intel Xeon Platinum 8592+: ARK; 8 channels DDR5-5600 a socket",
             isa="x86", caches=_levels((48, 5), (2048, 15), (320, 66, 64)), branch_miss_cycles=17.0),
    Platform("graniterapids_6980p", 256, 2, 2.0e9, 0.8e9, 3.2e9, 1008 * _MIB, 125e-9, 1228.8e9, 1536 * _GIB, 1000.0,
             320.0, 0.63, "2 × Intel Xeon 6980P: ARK; 12 channels DDR5-6400 a socket",
             isa="x86", caches=_levels((48, 5), (2048, 15), (504, 72, 128)), branch_miss_cycles=17.0),
    Platform("naples_7601", 32, 2, 2.2e9, 1.2e9, 2.7e9, 64 * _MIB, 95e-9, 170.6e9, 256 * _GIB, 180.0, 75.0, 0.99,
             "1 × AMD EPYC 7601: product page; 8 channels DDR4-2666",
             sockets=1, isa="x86", caches=_levels((32, 4), (512, 12), (8, 35, 4)), branch_miss_cycles=18.0),
    Platform("rome_7742", 64, 2, 2.25e9, 1.5e9, 3.2e9, 256 * 2.0**20, 104e-9, 204.8e9, 512 * _GIB, 225.0, 95.0, 0.86,
             "1 × AMD EPYC 7742: product page; 8 channels DDR4-3200",
             sockets=1, isa="x86", caches=_levels((32, 4), (512, 12), (16, 39, 4)), branch_miss_cycles=18.0),
    Platform("milan_7763", 64, 2, 2.45e9, 1.5e9, 3.2e9, 256 * _MIB, 96e-9, 204.8e9, 512 * _GIB, 280.0, 105.0, 0.72,
             "1 × AMD EPYC 7763: product page; 8 channels DDR4-3200",
             sockets=1, isa="x86", caches=_levels((32, 4), (512, 12), (32, 46, 8)), branch_miss_cycles=13.0),
    Platform("genoa_9654", 96, 2, 2.4e9, 1.5e9, 3.5e9, 384 * _MIB, 115e-9, 460.8e9, 768 * _GIB, 360.0, 140.0, 0.63,
             "1 × AMD EPYC 9654: product page; 12 channels DDR5-4800",
             sockets=1, isa="x86", caches=_levels((32, 4), (1024, 14), (32, 50, 8)), branch_miss_cycles=13.0),
    Platform("altra_q80_30", 80, 1, 3.0e9, 1.0e9, 3.0e9, 32 * _MIB, 95e-9, 204.8e9, 256 * _GIB, 210.0, 70.0, 0.88,
             "1 × Ampere Altra Q80-30 (Arm Neoverse N1): product page; 8 channels DDR4-3200",
             sockets=1, isa="arm64", caches=_levels((64, 4), (1024, 11), (32, 90, 80)), branch_miss_cycles=11.0),
    Platform("sierraforest_6780e", 288, 1, 2.2e9, 0.8e9, 3.0e9, 216 * _MIB, 115e-9, 819.2e9, 1024 * _GIB, 660.0, 200.0,
             0.85, "2 × Intel Xeon 6780E: ARK; 8 channels DDR5-6400 a socket; core, latencies and idle power estimated",
             isa="x86", caches=(Cache(32 * _KIB, 3), Cache(4 * _MIB, 17, 4), Cache(108 * _MIB, 73, 144))),
    Platform("bergamo_9754", 128, 2, 2.25e9, 1.5e9, 3.1e9, 256 * _MIB, 115e-9, 460.8e9, 768 * _GIB, 360.0, 140.0, 0.63,
             "1 × AMD EPYC 9754: product page; 12 channels DDR5-4800; core, latencies, idle power those of genoa_9654",
             sockets=1, isa="x86", caches=_levels((32, 4), (1024, 14), (16, 50, 8)), branch_miss_cycles=13.0),
    Platform("turin_9755", 128, 2, 2.7e9, 1.5e9, 3.5e9, 512 * _MIB, 115e-9, 576.0e9, 768 * _GIB, 500.0, 180.0, 0.55,
             "1 × AMD EPYC 9755: product page; 12 channels DDR5-6000; all-core turbo, latencies, idle power estimated",
             sockets=1, isa="x86", caches=_levels((48, 4), (1024, 14), (32, 50, 8)), branch_miss_cycles=13.0),
    Platform("graviton_4", 96, 1, 2.8e9, 1.0e9, 2.8e9, 36 * _MIB, 115e-9, 537.6e9, 768 * _GIB, 260.0, 85.0, 0.54,
             "1 × AWS Graviton 4 (Arm Neoverse V2): press and reviewers; 12 channels DDR5-5600; AWS prints no clock "
             "and no TDP: 2.8 GHz as reported, power and latencies estimated",
             sockets=1, isa="arm64", caches=_levels((64, 4), (2048, 11), (36, 84, 96)), branch_miss_cycles=11.0),
    Platform("axion_c4a", 72, 1, 3.0e9, 1.0e9, 3.0e9, 72 * _MIB, 115e-9, 358.4e9, 576 * _GIB, 210.0, 70.0, 0.54,
             "1 × Google Axion (Arm Neoverse V2): only the core and the machine c4a-highmem-72 are public; clock, "
             "caches, channels, power and latencies estimated",
             sockets=1, isa="arm64", caches=_levels((64, 4), (2048, 11), (72, 90, 72)), branch_miss_cycles=11.0),
    Platform("grace_superchip", 144, 1, 3.1e9, 1.0e9, 3.1e9, 228 * _MIB, 125e-9, 1024.0e9, 480 * _GIB, 500.0, 150.0,
             0.54, "2 × NVIDIA Grace (Arm Neoverse V2): tuning guide; clock as reported; LPDDR5X, 512 GB/s a socket, "
             "in the TDP; latencies and idle power estimated",
             isa="arm64", caches=_levels((64, 4), (1024, 11), (114, 93, 72)), branch_miss_cycles=11.0),
)  # fmt: skip
"""Servers of 2012 and later, by maker and generation."""

PLATFORMS: dict[str, Platform] = {platform.name: platform for platform in (*SERVERS_2008, *MODERN_SERVERS)}
"""Every platform by name."""
