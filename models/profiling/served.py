"""What is asked of a profiled fleet besides its jobs: services of which every request is served, hardware under trial.

Every field's bounds stand in its annotation, as in `models.fleet.world`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Lt, MinLen

from models.fleet.world import FORBID, Count, Forbid, NonNegative, Positive
from models.queues.policies import PolicyName


@dataclass(frozen=True, slots=True)
class ServedType:
    """One type of request of a served service: its frequency over the day and its size."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Annotated[str, MinLen(1)]
    """Its name in the tables."""
    weight: Positive = 1.0
    """Its share of the requests in the mean of a day, relative to the other types."""
    size: Positive = 1.0
    """Its mean instructions, relative to those of the other types."""
    swing: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Half-amplitude of the day's wave of its weight, relative to its mean."""
    peak_hour: Annotated[float, Ge(0), Lt(24)] = 14.0
    """Hour of the day at which its weight is greatest."""
    priority: Annotated[int, Ge(0)] = 0
    """Its class under policy priority, 0 first."""


@dataclass(frozen=True, slots=True)
class Served:
    """A service of the population whose requests are served one by one, on the machines that its instances run on.

    Requests come at random (Poisson), as many in the mean as the service's load has instructions for. Each instance is
    a station of as many servers as its quota has hardware threads.
    """

    __pydantic_config__: ClassVar[Forbid] = FORBID

    job: Annotated[str, MinLen(1)]
    """Name of one of `population.services`, with a quota of whole hardware threads."""
    policy: PolicyName = "ps"
    """Scheduling of an instance's requests, as of a queue's station: `fcfs`, `lcfs`, `lcfs_pr`, `ps`, `rr`, `srpt`,
    `sjf`, `fb`, `priority` or `random`."""
    quantum_s: Positive = 0.1
    """Time slice of round robin, which needs `simulation: events`: elsewhere requests are served in instructions."""
    capacity: Annotated[int, Ge(1)] | None = None
    """Most requests that an instance holds, waiting or in service; one that comes then is refused (table
    `stay_unserved`). At least its hardware threads; null: no limit. Needs `simulation: events`."""
    request_cv: NonNegative = 1.0
    """Coefficient of variation of the instructions of requests of one type (gamma)."""
    types: Annotated[tuple[ServedType, ...], MinLen(1)] = (ServedType("request"),)
    """Types of requests; the mean over them is the service's `instructions_per_request`."""


@dataclass(frozen=True, slots=True)
class HardwareTrial:
    """A new generation of processors under consideration: a few machines have it for the whole horizon.

    Instances stay where they were placed, as if machines had been exchanged under them.
    """

    __pydantic_config__: ClassVar[Forbid] = FORBID

    platforms: Annotated[Mapping[str, str], MinLen(1)]
    """Platform to the platform that may replace it, with at least as many hardware threads, new in the fleet."""
    machines: Count = 12
    """Machines of those platforms that have the new one, drawn at random."""
