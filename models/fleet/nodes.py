"""How the memory of platforms is divided: nodes with a memory of their own, and what a thread pays for another's.

A processor of several dies, or a machine of several processors, has a memory for each; an access to another one takes
longer, and the links between them carry less than a memory does. Measured by Intel's latency checker on machines of two
sockets (KU Leuven 2016-2023; FD.io CSIT 2018-2022): Haswell E5-2680 v3 and 2699 v3, Skylake 8180, Ice Lake 8360Y.
Simulations alone know these numbers: a spec sheet prints none of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from models.fleet.cores import origin
from models.platforms import Platform, Sheet


@dataclass(frozen=True, slots=True)
class MemoryNodes:
    """Memory nodes of a machine, and another node's memory relative to one's own."""

    count: int
    latency_ratio: float = 1.0
    """Idle latency."""
    bandwidth_ratio: float = 1.0
    """Bandwidth of the links of a node over that of its memory."""


_HASWELL: Final = (1.38, 0.51)
_SKYLAKE: Final = (1.61, 0.47)
_ICE_LAKE: Final = (1.60, 0.32)
_RATIOS: Final[Mapping[str, tuple[float, float]]] = {
    "sandybridge_2670": _HASWELL,
    "haswell_2698v3": _HASWELL,
    "broadwell_2698v4": _HASWELL,
    "skylake_6148": _SKYLAKE,
    "cascadelake_8280": _SKYLAKE,
}
"""Latency and bandwidth of another node's memory over one's own; of all others as measured on Ice Lake."""
_ONE_BUS: Final = frozenset({"piii", "pres", "pd4", "xeon_2h_2c_2p"})
"""Machines whose processors reach one memory over front-side buses."""
_DIES: Final[Mapping[str, int]] = {"naples_7601": 4}
"""Dies of a processor that have a memory each."""


def memory_nodes(platform: Platform, own: Mapping[str, Sheet]) -> MemoryNodes:
    """Return the memory nodes of a platform: one for each die or processor that has a memory controller.

    Parameters
    ----------
    platform : whose processors count
    own : sheets of one's own, by name; where they extend a shipped platform, its links are theirs

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> memory_nodes(PLATFORMS["haswell_2698v3"], {})
    MemoryNodes(count=2, latency_ratio=1.38, bandwidth_ratio=0.51)
    >>> [memory_nodes(PLATFORMS[name], {}).count for name in ("rome_7742", "pd4", "xeon_1h_1c_2p")]
    [1, 1, 1]
    """
    core = origin(platform.name, own)
    count = 1 if core in _ONE_BUS else platform.sockets * _DIES.get(core, 1)
    return MemoryNodes(count, *_RATIOS.get(core, _ICE_LAKE)) if count > 1 else MemoryNodes(1)
