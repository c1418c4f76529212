"""What processors are beside their spec sheets: factors of cores, memories and power that no sheet prints.

Cores. The same binary takes other cycles on other cores, and one program gains where another loses. Measured cycles of
ten integer programs on eleven cores (SPEC CPU 2017, one copy, equal binaries: Chen 2024-2026) were taken as logarithms,
the means of programs and of cores taken away, and what is left reduced to its three largest principal components,
which hold 90% of it. A core has three loadings on them; a program has three traits, standard normal over programs. Its
core CPI is multiplied by exp(traits · loadings), so that the ratio of two cores differs between programs by a log
standard deviation that is the distance of their loadings: 0.04 from Haswell to Broadwell, 0.21 to Rome. The components
are no single parts of a core: none correlates with a program's mispredicted branches by more than 0.5.

Width. No hardware thread retires more instructions in a cycle than its core renames and dispatches operations, as the
makers' optimisation guides give it: 3 on the Pentium III and Pentium 4, 4 from Sandy Bridge to Cascade Lake and on
Neoverse N1, 5 on Ice Lake, 6 since Golden Cove, on Crestmont and from Zen 1 to Zen 4 (of instructions 5 were measured
on Zen 1: Fog), 8 on Zen 5, Neoverse V1 and V2. An instruction is taken for one operation.

Memories. A processor of several dies, or a machine of several processors, has a memory for each; an access to another
one takes longer, and the links between them carry less than a memory does. Measured by Intel's latency checker on
machines of two sockets (KU Leuven 2016-2023; FD.io CSIT 2018-2022): Haswell E5-2680 v3 and 2699 v3, Skylake 8180, Ice
Lake 8360Y.

Power. Shares of the TDP were fitted to SPECpower_ssj2008 curves, medians over published results of 2014 to 2021 with
turbo off as most of them were measured: 2 × E5-2699 v3 (Haswell), 2 × Platinum 8180 (Skylake), 2 × Platinum 8380 (Ice
Lake), 1 × EPYC 7742 (Rome), from active idle to full load. The fit is within 10% of each of their 40 points.

Simulations alone know these numbers; what predicts sees spec sheets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

from models.arrays import Floats
from models.platforms import PLATFORMS, Platform, Sheet

Number = TypeVar("Number", float, Floats)
Loadings: TypeAlias = tuple[float, float, float]
FACTORS: Final = 3
"""Loadings of a core, and traits of a program."""
PLAIN: Final[Loadings] = (0.0, 0.0, 0.0)
"""Loadings of a core of which nothing is known: those of Haswell, the reference of all core CPI."""
REFERENCE_WIDTH: Final = 4
"""Instructions that a thread of Haswell's core retires in a cycle at most."""
WINDOW: Final = 192.0
"""Entries of Haswell's reorder buffer."""
WINDOW_EXPONENT: Final = 0.25
"""Misses at once grow with the reorder buffer to this power; nothing published fixes it."""
ATTAINABLE: Final = 0.75
"""Share of the theoretical bandwidth that a machine attains with some writes: 0.67 to 0.78 on Intel's servers. Of
front-side buses nothing published was at hand, and theirs is the same."""

VOLTAGE_FLOOR: Final = 0.6
"""Voltage relative to that at all-core turbo: VOLTAGE_FLOOR + (1 − VOLTAGE_FLOOR) · clock / all-core turbo."""
LEAKAGE: Final = 0.2
"""Share of a busy core's power at all-core turbo that leaks, and so does not depend on clock and work."""
SUPPLY: Final = 1.1
"""Watts at the wall for a watt of processors or memory: power supply, voltage regulators, fans at low speed."""
FANS: Final = 0.2
"""Fans at full speed: FANS · TDP · (processors' power above idle / TDP)³."""
LONE_THREAD: Final = 0.77
"""Power of a core with one busy hardware thread relative to both busy: as its work, which is 1.3 times with both (SMT
gains 20 to 40% on server code)."""
TURBO_SHARE: Final = 0.6
"""Share of active cores from which on only the all-core turbo is allowed: 9 of 16 on Haswell, 12 of 20 on Broadwell."""
UNCORE_J_PER_BYTE: Final = 0.1e-9
"""Energy of moving a byte over the mesh and to the memory controllers; nothing published fixes it."""


@dataclass(frozen=True, slots=True)
class MemoryNodes:
    """Memory nodes of a machine, and another node's memory relative to one's own."""

    count: int
    latency_ratio: float = 1.0
    """Idle latency."""
    bandwidth_ratio: float = 1.0
    """Bandwidth of the links of a node over that of its memory."""


class TdpShares(NamedTuple):
    """What the processors of a machine draw, as shares of their TDP."""

    asleep: float
    """With all cores in deep sleep."""
    awake: float
    """Beside that, once any core is awake: mesh, memory controllers, I/O die."""
    cores: float
    """Beside that, all cores computing with all threads at the all-core turbo."""


_IVY_BRIDGE: Final = (-0.091, -0.031, -0.016)
_BROADWELL: Final = (0.037, 0.004, 0.022)
_SKYLAKE: Final = (-0.072, 0.118, 0.014)
_ICE_LAKE: Final = (0.001, 0.142, 0.021)
_GRANITE_RAPIDS: Final = (0.073, 0.098, 0.053)
_ZEN_1: Final = (-0.146, 0.057, 0.028)
_ZEN_2: Final = (-0.140, 0.150, -0.023)
_ZEN_3: Final = (-0.056, 0.140, -0.027)
_ZEN_4: Final = (-0.011, 0.164, -0.026)  # half way from the one before to the next
_ZEN_5: Final = (0.034, 0.188, -0.024)
_NEOVERSE_V1: Final = (-0.102, 0.124, 0.117)

_HASWELL_LINKS, _SKYLAKE_LINKS, _ICE_LAKE_LINKS = (1.38, 0.51), (1.61, 0.47), (1.60, 0.32)
_DDR3, _DDR4, _DDR5 = 0.40e-9, 0.16e-9, 0.12e-9
_HASWELL_SHARES: Final = TdpShares(0.08, 0.075, 0.80)
_SKYLAKE_SHARES: Final = TdpShares(0.08, 0.075, 1.02)
_ICE_LAKE_SHARES: Final = TdpShares(0.08, 0.075, 0.88)
_ROME_SHARES: Final = TdpShares(0.17, 0.16, 0.85)


@dataclass(frozen=True, slots=True)
class Processor:
    """What no spec sheet prints of a machine's processors; as it stands, those of which nothing is known."""

    loadings: Loadings = PLAIN
    """Of its core. One that was not measured has those of the next of its maker."""
    window: float = WINDOW
    """Entries of its reorder buffer."""
    links: tuple[float, float] = _ICE_LAKE_LINKS
    """Latency and bandwidth of another node's memory over one's own."""
    shares: TdpShares = _ICE_LAKE_SHARES
    """Power; of processors that were not measured, that of the nearest of their maker."""
    single_core_hz: float = 0.0
    """Highest clock with two cores active, as the makers print it; 0 where they print none."""
    memory_j_per_byte: float = _DDR4
    """Energy of a byte moved: 40 to 70 pJ a bit with DDR3, 15 to 25 with DDR4, 12 to 18 with DDR5 at the modules."""
    attainable: float = ATTAINABLE
    """Share of the theoretical bandwidth that the machine attains."""
    dies: int = 1
    """Of a processor, that have a memory each; 0: all processors reach one memory over front-side buses."""
    width: int = REFERENCE_WIDTH
    """Instructions that a thread of its core retires in a cycle at most."""

    @property
    def overlap_factor(self) -> float:
        """Misses that its core overlaps, relative to Haswell's.

        Examples
        --------
        >>> round(PROCESSORS["icelake_8380"].overlap_factor, 3), Processor().overlap_factor
        (1.164, 1.0)
        """
        return float((self.window / WINDOW) ** WINDOW_EXPONENT)

    def memory_nodes(self, sockets: int) -> MemoryNodes:
        """Return the memory nodes of a machine: one for each die or processor that has a memory controller.

        Examples
        --------
        >>> PROCESSORS["haswell_2698v3"].memory_nodes(2)
        MemoryNodes(count=2, latency_ratio=1.38, bandwidth_ratio=0.51)
        >>> PROCESSORS["rome_7742"].memory_nodes(1).count, PROCESSORS["pd4"].memory_nodes(2).count
        (1, 1)
        """
        count = sockets * self.dies
        return MemoryNodes(count, *self.links) if count > 1 else MemoryNodes(1)


PROCESSORS: Final[Mapping[str, Processor]] = {
    "sandybridge_2670": Processor(_IVY_BRIDGE, 168.0, _HASWELL_LINKS, _HASWELL_SHARES, 3.3e9, _DDR3),
    "haswell_2698v3": Processor(PLAIN, 192.0, _HASWELL_LINKS, _HASWELL_SHARES, 3.6e9),
    "broadwell_2698v4": Processor(_BROADWELL, 192.0, _HASWELL_LINKS, _HASWELL_SHARES, 3.6e9),
    "skylake_6148": Processor(_SKYLAKE, 224.0, _SKYLAKE_LINKS, _SKYLAKE_SHARES, 3.7e9),
    "cascadelake_8280": Processor(_SKYLAKE, 224.0, _SKYLAKE_LINKS, _SKYLAKE_SHARES, 4.0e9),
    "icelake_8380": Processor(_ICE_LAKE, 352.0, single_core_hz=3.4e9, width=5),
    "sapphirerapids_8480": Processor(_GRANITE_RAPIDS, 512.0, single_core_hz=3.8e9, memory_j_per_byte=_DDR5, width=6),
    "emeraldrapids_8592": Processor(_GRANITE_RAPIDS, 512.0, single_core_hz=3.9e9, memory_j_per_byte=_DDR5, width=6),
    "graniterapids_6980p": Processor(_GRANITE_RAPIDS, 512.0, single_core_hz=3.9e9, memory_j_per_byte=_DDR5, width=6),
    "sierraforest_6780e": Processor(_ICE_LAKE, 256.0, memory_j_per_byte=_DDR5, width=6),
    "naples_7601": Processor(
        _ZEN_1, 192.0, shares=_ROME_SHARES, single_core_hz=3.2e9, attainable=0.67, dies=4, width=6
    ),
    "rome_7742": Processor(_ZEN_2, 224.0, shares=_ROME_SHARES, single_core_hz=3.4e9, attainable=0.67, width=6),
    "milan_7763": Processor(_ZEN_3, 256.0, shares=_ROME_SHARES, single_core_hz=3.5e9, attainable=0.67, width=6),
    "genoa_9654": Processor(_ZEN_4, 320.0, _ICE_LAKE_LINKS, _ROME_SHARES, 3.7e9, _DDR5, width=6),
    "bergamo_9754": Processor(_ZEN_4, 320.0, _ICE_LAKE_LINKS, _ROME_SHARES, 3.1e9, _DDR5, width=6),
    "turin_9755": Processor(_ZEN_5, 448.0, _ICE_LAKE_LINKS, _ROME_SHARES, 4.1e9, _DDR5, width=8),
    "altra_q80_30": Processor(_NEOVERSE_V1, 128.0),
    "graviton_4": Processor(_NEOVERSE_V1, 320.0, memory_j_per_byte=_DDR5, width=8),
    "axion_c4a": Processor(_NEOVERSE_V1, 320.0, memory_j_per_byte=_DDR5, width=8),
    "grace_superchip": Processor(_NEOVERSE_V1, 320.0, memory_j_per_byte=_DDR5, width=8),
    "piii": Processor(_IVY_BRIDGE, 40.0, dies=0, width=3),
    "pres": Processor(_ZEN_1, 126.0, dies=0, width=3),
    "pd4": Processor(_ZEN_1, 126.0, dies=0, width=3),
    "xeon_2h_2c_2p": Processor(_ZEN_1, 126.0, dies=0, width=3),
}  # fmt: skip
"""Those of shipped platforms. Cores that were not measured: Sandy Bridge has the loadings of Ivy Bridge, Sapphire and
Emerald Rapids those of Granite Rapids, all of Arm's those of Neoverse V1. For the servers of 2008 nothing was measured:
the Pentium III and the Pentium 4 are as far apart as Ivy Bridge and Naples."""


def processor(name: str, own: Mapping[str, Sheet]) -> Processor:
    """Return the processors of a platform: those of the shipped one that it is, or that it extends or varies.

    Parameters
    ----------
    name : of a platform
    own : sheets of one's own, by name

    Examples
    --------
    >>> processor("xeon_1h_1c_2p", {}) is PROCESSORS["xeon_2h_2c_2p"], processor("mine", {}).loadings
    (True, (0.0, 0.0, 0.0))
    """
    known = set()
    while name in own and name not in known:
        known.add(name)
        name = own[name].variant_of or own[name].extends or name
    origin = PLATFORMS[name].variant_of or name if name in PLATFORMS else name
    return PROCESSORS.get(origin, Processor())


def beside_sibling(chance: Number, relief: float, waiting: Number) -> Number:
    """Return by what part of its `smt_slowdown` a hardware thread is slowed down by the other one of its core.

    Beside a thread that waits for memory in half of its cycles it is all of it; from always to never it grows by
    `relief`, as who waits leaves the core to the other.

    Parameters
    ----------
    chance : that the sibling is busy
    relief : 0..1
    waiting : share of its cycles in which the sibling waits, in the mean over those that it may be: the factor is
        linear in it, so the mean is exact

    Examples
    --------
    >>> beside_sibling(1.0, 0.5, 0.5), beside_sibling(1.0, 0.5, 1.0)
    (1.0, 0.75)
    """
    return chance * (1.0 + relief * (0.5 - waiting))


def peak_power_w(platform: Platform, shares: TdpShares) -> float:
    """Return the power of a machine whose threads all compute at the all-core turbo, in watts, memory traffic aside.

    Examples
    --------
    >>> round(peak_power_w(PLATFORMS["haswell_2698v3"], PROCESSORS["haswell_2698v3"].shares))
    386
    """
    more = shares.awake + shares.cores
    return platform.idle_power_w + platform.tdp_w * (SUPPLY * more + FANS * more**3)
