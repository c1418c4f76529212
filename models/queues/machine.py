"""What is asked of the machine on which a queue's requests are served: its platform, neighbours and governor.

Every field's bounds stand in its annotation, as in `models.queues.world`.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Ge, MinLen

from models.fleet.world import FORBID, CoreCpi, Forbid, Governor, Interference, NonNegative, Positive, Share, Steps


@dataclass(frozen=True, slots=True)
class RequestBehaviour:
    """How requests use cores, caches and memory; as the median job of a fleet unless said otherwise."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    core_cpi: CoreCpi = 1.42
    """Cycles per instruction without last-level-cache misses, alone on a core; the reference core retires four
    instructions a cycle at most."""
    memory_accesses_per_instruction: NonNegative = 0.0112
    """Memory accesses per instruction at the reference cache share."""
    working_set_bytes: Positive = 3.0e6
    """Size of the larger of the two working sets that compete for the last-level cache."""
    streaming_share: Share = 0.80
    """Share of the misses that no cache size removes."""
    overlap: Annotated[float, Ge(1)] = 3.0
    """Overlapping misses."""
    smt_slowdown: NonNegative = 0.55
    """Relative growth of core CPI while the sibling hardware thread is busy."""
    prefetched_share: Share = 0.5
    """Share of the streaming misses whose latency prefetchers hide; their traffic stays."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The instances beside the servers: drawn from the jobs of a fleet, each job as often as it has instances."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    allocated_share: Share = 0.86
    """Share of the machine's hardware threads that CPU quotas hold, those of the queue's servers included."""
    utilisation: Share = 0.55
    """Mean CPU use of an instance as a share of its quota."""


@dataclass(frozen=True, slots=True)
class ServingMachine:
    """The machine that serves the requests on its hardware threads; it is as its sheet says."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    platform: Annotated[str, MinLen(1)] = "haswell_2698v3"
    """Name of a shipped platform or of one of `platforms`; it has at least as many hardware threads as there are
    servers."""
    neighbours: Neighbours | None = field(default_factory=Neighbours)
    """Who runs beside the servers; null: nobody."""
    governor: Governor = field(default_factory=Governor)
    """The DVFS policy."""
    requests: RequestBehaviour = field(default_factory=RequestBehaviour)
    """How requests use the machine."""
    cap_share: Positive = 0.85
    """The machine's power cap as a share of its peak power; 10 switches it off. The processors' TDP always holds."""
    interference: Interference = field(default_factory=Interference)
    """Shared resources that couple requests and neighbours; each can be switched off."""
    steps: Steps = field(default_factory=Steps)
    """How the neighbours' load moves, and how often the governor looks."""
