"""What processors draw beside what their sheets print: shares of the TDP, single-core clocks, energy of memory traffic.

Shares were fitted to SPECpower_ssj2008 curves, medians over published results of 2014 to 2021 with turbo off as most of
them were measured: 2 × E5-2699 v3 (Haswell), 2 × Platinum 8180 (Skylake), 2 × Platinum 8380 (Ice Lake), 1 × EPYC 7742
(Rome), from active idle to full load. The fit is within 10% of each of their 40 points. Other processors have the
shares of the nearest of their maker. Simulations alone know these numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from models.fleet.cores import origin
from models.platforms import Platform, Sheet

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
class Package:
    """What the processors of a machine draw, as shares of their TDP, and what a byte from memory takes."""

    asleep: float
    """With all cores in deep sleep."""
    awake: float
    """Beside that, once any core is awake: mesh, memory controllers, I/O die."""
    cores: float
    """Beside that, all cores computing with all threads at the all-core turbo."""
    single_core_hz: float
    """Highest clock with two cores active."""
    memory_j_per_byte: float


_HASWELL: Final = (0.08, 0.075, 0.80)
_SKYLAKE: Final = (0.08, 0.075, 1.02)
_ICE_LAKE: Final = (0.08, 0.075, 0.88)
_ROME: Final = (0.17, 0.16, 0.85)
_SHARES: Final[Mapping[str, tuple[float, float, float]]] = {
    "sandybridge_2670": _HASWELL,
    "haswell_2698v3": _HASWELL,
    "broadwell_2698v4": _HASWELL,
    "skylake_6148": _SKYLAKE,
    "cascadelake_8280": _SKYLAKE,
    "naples_7601": _ROME,
    "rome_7742": _ROME,
    "milan_7763": _ROME,
    "genoa_9654": _ROME,
    "bergamo_9754": _ROME,
    "turin_9755": _ROME,
}
"""Shares asleep, awake and of cores; of all others as of Ice Lake."""
_SINGLE_HZ: Final[Mapping[str, float]] = {
    "sandybridge_2670": 3.3e9,
    "haswell_2698v3": 3.6e9,
    "broadwell_2698v4": 3.6e9,
    "skylake_6148": 3.7e9,
    "cascadelake_8280": 4.0e9,
    "icelake_8380": 3.4e9,
    "sapphirerapids_8480": 3.8e9,
    "emeraldrapids_8592": 3.9e9,
    "graniterapids_6980p": 3.9e9,
    "naples_7601": 3.2e9,
    "rome_7742": 3.4e9,
    "milan_7763": 3.5e9,
    "genoa_9654": 3.7e9,
    "bergamo_9754": 3.1e9,
    "turin_9755": 4.1e9,
}
"""Single-core turbo as the makers print it; the all-core turbo where they print none."""
_DDR3, _DDR4, _DDR5 = 0.40e-9, 0.16e-9, 0.12e-9
_MEMORY: Final[Mapping[str, float]] = {
    "sandybridge_2670": _DDR3,
    "sapphirerapids_8480": _DDR5,
    "emeraldrapids_8592": _DDR5,
    "graniterapids_6980p": _DDR5,
    "sierraforest_6780e": _DDR5,
    "genoa_9654": _DDR5,
    "bergamo_9754": _DDR5,
    "turin_9755": _DDR5,
    "graviton_4": _DDR5,
    "axion_c4a": _DDR5,
    "grace_superchip": _DDR5,
}
"""Energy of a byte moved: 40 to 70 pJ a bit with DDR3, 15 to 25 with DDR4, 12 to 18 with DDR5 at the modules; DDR4
where nothing is said."""


def package(platform: Platform, own: Mapping[str, Sheet]) -> Package:
    """Return what a platform's processors draw.

    Parameters
    ----------
    platform : its all-core turbo holds where no single-core one is known
    own : sheets of one's own, by name; where they extend a shipped platform, its processors are theirs

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> rome = package(PLATFORMS["rome_7742"], {})
    >>> rome.asleep, rome.single_core_hz
    (0.17, 3400000000.0)
    """
    core = origin(platform.name, own)
    return Package(
        *_SHARES.get(core, _ICE_LAKE),
        single_core_hz=max(platform.max_frequency_hz, _SINGLE_HZ.get(core, 0.0)),
        memory_j_per_byte=_MEMORY.get(core, _DDR4),
    )


def peak_power_w(platform: Platform, own: Mapping[str, Sheet]) -> float:
    """Return the power of a machine whose threads all compute at the all-core turbo, in watts, memory traffic aside.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> round(peak_power_w(PLATFORMS["haswell_2698v3"], {}))
    386
    """
    its = package(platform, own)
    more = its.awake + its.cores
    return platform.idle_power_w + platform.tdp_w * (SUPPLY * more + FANS * more**3)
