"""What cores are to programs beside their clock and their mean speed: factors that no spec sheet prints.

The same binary takes other cycles on other cores, and one program gains where another loses. Measured cycles of ten
integer programs on eleven cores (SPEC CPU 2017, one copy, equal binaries: Chen 2024-2026) were taken as logarithms,
the means of programs and of cores taken away, and what is left reduced to its three largest principal components,
which hold 90% of it. A core has three loadings on them; a program has three traits, standard normal over programs. Its
core CPI is multiplied by exp(traits · loadings), so that the ratio of two cores differs between programs by a log
standard deviation that is the distance of their loadings: 0.04 from Haswell to Broadwell, 0.21 to Rome.

The components are no single parts of a core: none correlates with a program's mispredicted branches by more than 0.5.
Simulations alone know these numbers; what predicts sees spec sheets.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from models.arrays import Floats
from models.platforms import PLATFORMS, Sheet

Loadings: TypeAlias = tuple[float, float, float]
FACTORS: Final = 3
"""Loadings of a core, and traits of a program."""
PLAIN: Final[Loadings] = (0.0, 0.0, 0.0)
"""Loadings of a core of which nothing is known: those of Haswell, the reference of all core CPI."""
WINDOW: Final = 192.0
"""Entries of Haswell's reorder buffer."""
WINDOW_EXPONENT: Final = 0.25
"""Misses at once grow with the reorder buffer to this power; nothing published fixes it."""

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
_LOADINGS: Final[Mapping[str, Loadings]] = {
    "sandybridge_2670": _IVY_BRIDGE,
    "haswell_2698v3": PLAIN,
    "broadwell_2698v4": _BROADWELL,
    "skylake_6148": _SKYLAKE,
    "cascadelake_8280": _SKYLAKE,
    "icelake_8380": _ICE_LAKE,
    "sapphirerapids_8480": _GRANITE_RAPIDS,
    "emeraldrapids_8592": _GRANITE_RAPIDS,
    "graniterapids_6980p": _GRANITE_RAPIDS,
    "sierraforest_6780e": _ICE_LAKE,
    "naples_7601": _ZEN_1,
    "rome_7742": _ZEN_2,
    "milan_7763": _ZEN_3,
    "genoa_9654": _ZEN_4,
    "bergamo_9754": _ZEN_4,
    "turin_9755": _ZEN_5,
    "altra_q80_30": _NEOVERSE_V1,
    "graviton_4": _NEOVERSE_V1,
    "axion_c4a": _NEOVERSE_V1,
    "grace_superchip": _NEOVERSE_V1,
    "piii": _IVY_BRIDGE,
    "pres": _ZEN_1,
    "pd4": _ZEN_1,
    "xeon_2h_2c_2p": _ZEN_1,
}
"""Loadings of the cores of shipped platforms, less Haswell's. A core that was not measured has those of the next of its
maker: Sandy Bridge Ivy Bridge's, Sapphire and Emerald Rapids Granite Rapids', all of Arm's those of Neoverse V1. For
the servers of 2008 nothing was measured: the Pentium III and the Pentium 4 are as far apart as Ivy Bridge and Naples.
"""
_WINDOWS: Final[Mapping[str, float]] = {
    "sandybridge_2670": 168.0,
    "haswell_2698v3": 192.0,
    "broadwell_2698v4": 192.0,
    "skylake_6148": 224.0,
    "cascadelake_8280": 224.0,
    "icelake_8380": 352.0,
    "sapphirerapids_8480": 512.0,
    "emeraldrapids_8592": 512.0,
    "graniterapids_6980p": 512.0,
    "sierraforest_6780e": 256.0,
    "naples_7601": 192.0,
    "rome_7742": 224.0,
    "milan_7763": 256.0,
    "genoa_9654": 320.0,
    "bergamo_9754": 320.0,
    "turin_9755": 448.0,
    "altra_q80_30": 128.0,
    "graviton_4": 320.0,
    "axion_c4a": 320.0,
    "grace_superchip": 320.0,
    "piii": 40.0,
    "pres": 126.0,
    "pd4": 126.0,
    "xeon_2h_2c_2p": 126.0,
}
"""Entries of the reorder buffers of shipped platforms."""


def origin(name: str, own: Mapping[str, Sheet]) -> str:
    """Return the shipped platform whose core a platform has: its own, or that of the one that it extends or varies.

    Parameters
    ----------
    name : of a platform
    own : sheets of one's own, by name

    Examples
    --------
    >>> origin("rome_7742", {}), origin("xeon_1h_1c_2p", {})
    ('rome_7742', 'xeon_2h_2c_2p')
    """
    known = set()
    while name in own and name not in known:
        known.add(name)
        name = own[name].variant_of or own[name].extends or name
    return PLATFORMS[name].variant_of or name if name in PLATFORMS else name


def core_loadings(name: str, own: Mapping[str, Sheet]) -> Floats:
    """Return the loadings of a platform's core, (FACTORS,); `PLAIN` where nothing is known of it.

    Examples
    --------
    >>> core_loadings("broadwell_2698v4", {}).tolist(), core_loadings("mine", {}).tolist()
    ([0.037, 0.004, 0.022], [0.0, 0.0, 0.0])
    """
    return np.array(_LOADINGS.get(origin(name, own), PLAIN))


def overlap_factor(name: str, own: Mapping[str, Sheet]) -> float:
    """Return how many misses a platform's core overlaps, relative to Haswell's; 1 where nothing is known of it.

    Examples
    --------
    >>> round(overlap_factor("icelake_8380", {}), 3), overlap_factor("mine", {})
    (1.164, 1.0)
    """
    return float((_WINDOWS.get(origin(name, own), WINDOW) / WINDOW) ** WINDOW_EXPONENT)
