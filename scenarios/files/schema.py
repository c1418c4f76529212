"""What a scenario file may say: the world, a name, and the settings of the analyses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import Field, TypeAdapter

from models.fleet.metrics import MetricName
from models.fleet.world import FORBID, Count, Forbid, PartName, Positive, Share, World
from models.profiling.world import ProfileWorld
from models.queues.policies import PolicyName
from models.queues.world import QueueWorld
from models.services.world import ServiceWorld

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=200)]
_W = TypeVar("_W", World, QueueWorld, ServiceWorld, ProfileWorld)


def _world(kind: type[_W], scenario: _W) -> _W:
    return kind(**{field.name: getattr(scenario, field.name) for field in fields(kind)})


@dataclass(frozen=True, slots=True)
class WSMeter:
    """How the feature is measured: metric, test clusters and intervals (Lee et al. 2018)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    metric: MetricName = "ipc"
    """Performance of an instance: instructions per cycle, instructions per CPU second, or requests per CPU second or
    per second of presence."""
    window: Annotated[str, MinLen(1)] = "all"
    """Counting window that is measured; `all` is the whole horizon when no windows are recorded. `rest.*` stands for
    all windows whose names begin with `rest.`, summed."""
    jobs: Annotated[tuple[str, ...], MinLen(1)] | None = None
    """Names of the jobs that matter, for a customer who owns just those; null: all jobs of the fleet."""
    machines: Annotated[tuple[Count, ...], MinLen(1)] = (25, 50, 100)
    """Sizes of the test clusters; for a feature rolled out by instance, numbers of instances."""
    draws: Count = 500
    """Test clusters drawn of each size when estimators are validated."""
    estimators: tuple[str, ...] = ("baseline", "wsmeter", "wsmeter-widened")
    """Estimators that are validated: those three, names of `wsc effect`'s, or your own as `mine.py:Mine`."""
    min_instances: Annotated[int, Ge(2)] = 4
    """A job counts as covered from this many measured instances on."""
    t: Positive = 2.0
    """Standard errors on either side of the estimate; 2 is about 95% confidence."""
    top_jobs: Count | None = None
    """Only so many jobs with the largest quota are considered; null: all."""
    widen: Annotated[float, Ge(1)] = 1.2
    """By how much the conservative estimator widens the margin."""
    min_coverage: Share = 0.0
    """Test clusters are drawn again until the covered jobs hold this share of the CPU quota."""


@dataclass(frozen=True, slots=True)
class Analyses:
    """Settings of the analyses. They decide no table of the run, so changing them needs no new run."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    wsmeter: WSMeter = field(default_factory=WSMeter)
    """WSMeter: the fleet's change from a small test cluster."""
    beside: tuple[str, ...] = ()
    """Scenarios that are run too, so that their jobs' changes stand beside this one's: library names or paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(World):
    """A scenario of a fleet: its world, its name and the settings of its analyses.

    Examples
    --------
    >>> Scenario(name="day", seed=3).epochs
    288
    """

    name: Name
    """Name of the run's folder: lower-case letters, digits, `_`, `.` and `-`. The file's own name if not said."""
    kind: Literal["fleet"] = "fleet"
    """Kind of world that is simulated."""
    description: str = ""
    """Purpose of the scenario, in a line or two."""
    cells: Annotated[int, Ge(1), Le(1000)] = 1
    """Cells (data centres) of the fleet: each as `fleet` and `population` say, with machines, local jobs and a seed of
    its own; common jobs and services run in all of them. They are simulated as pieces, on processors or a cluster."""
    analyses: Analyses = field(default_factory=Analyses)
    """Settings of the analyses."""

    @property
    def world(self) -> World:
        """What decides its tables: all but the name and the analyses."""
        return _world(World, self)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Operational laws applied to the log: utilisation per interval, and queueing on other numbers of servers."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    interval_s: Positive = 60.0
    """Length of the intervals that utilisation is estimated for."""
    to: tuple[Annotated[int, Ge(1), Le(4096)], ...] = ()
    """Other numbers of servers, of which queueing is bounded and predicted; none: those of `replays`."""
    policy: Literal[PolicyName, "station", "auto"] | None = "station"
    """Scheduling under which the log is replayed: `station` is the one simulated, `auto` the one that the log shows;
    null: bounds alone, which need no policy."""
    within_s: Positive | None = None
    """Objective of the response time: the share of all requests that were answered in time is reported; null: none."""


@dataclass(frozen=True, slots=True)
class QueueAnalyses:
    """Settings of the analyses of a queue. They decide no table of the run, so changing them needs no new run."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    occupancy: Occupancy = field(default_factory=Occupancy)
    """The operational laws (Kelly et al. 2008)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueScenario(QueueWorld):
    """A scenario of a request queue: its world, its name and the settings of its analyses.

    Examples
    --------
    >>> QueueScenario(name="rush", seed=3).station.servers
    4
    """

    name: Name
    """Name of the run's folder: lower-case letters, digits, `_`, `.` and `-`. The file's own name if not said."""
    kind: Literal["queue"] = "queue"
    """Kind of world that is simulated."""
    description: str = ""
    """Purpose of the scenario, in a line or two."""
    analyses: QueueAnalyses = field(default_factory=QueueAnalyses)
    """Settings of the analyses."""

    @property
    def world(self) -> QueueWorld:
        """What decides its tables: all but the name and the analyses."""
        return _world(QueueWorld, self)


MethodName: TypeAlias = Literal[
    "cycle_scalar", "cycle_mix", "benchmark", "published", "calibrated", "shrunken", "testbed", "network", "modern"
]


@dataclass(frozen=True, slots=True)
class CrossPlatform:
    """What is predicted for platforms where the service never ran, from the log of one where it did."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    calibration: Annotated[str | None, Field(alias="from")] = None
    """Platform whose log predictions start from; null: the first of `measured`."""
    targets: tuple[str, ...] = ()
    """Platforms that are predicted for; none: all of `platforms` but the one that predictions start from."""
    methods: tuple[MethodName | PartName, ...] = ()
    """Ways to predict; none: all that are shipped. Or a class or function of your own, as `file.py:name`
    (docs/extend.md)."""
    split: Literal["halves"] = "halves"
    """Which mixes calibrate and which judge: the first half of the trace and the second."""
    bound_s: Positive = 0.150
    """Bound on mean response time under which platforms are chosen by throughput per watt; one of `bounds_s`."""
    choices: Annotated[int, Ge(2)] = 5
    """Platforms of which the best is chosen: every subset of that size is tried."""
    worlds: Count = 100
    """Worlds that `wsc validate` judges: seeds from the scenario's own on."""


@dataclass(frozen=True, slots=True)
class ServiceAnalyses:
    """Settings of the analyses of a service. They decide no table of the run, so changing them needs no new run."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    crossplatform: CrossPlatform = field(default_factory=CrossPlatform)
    """Cross-platform prediction (Stewart et al. 2008)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceScenario(ServiceWorld):
    """A scenario of a service on several platforms: its world, its name and the settings of its analyses.

    Examples
    --------
    >>> ServiceScenario(name="auction", seed=3).calibration
    'piii'
    """

    name: Name
    """Name of the run's folder: lower-case letters, digits, `_`, `.` and `-`. The file's own name if not said."""
    kind: Literal["cross_platform"] = "cross_platform"
    """Kind of world that is simulated."""
    description: str = ""
    """Purpose of the scenario, in a line or two."""
    analyses: ServiceAnalyses = field(default_factory=ServiceAnalyses)
    """Settings of the analyses."""

    @property
    def world(self) -> ServiceWorld:
        """What decides its tables: all but the name and the analyses."""
        return _world(ServiceWorld, self)

    @property
    def calibration(self) -> str:
        """The platform whose log predictions start from."""
        return self.analyses.crossplatform.calibration or self.measured[0]

    @property
    def targets(self) -> tuple[str, ...]:
        """The platforms that are predicted for.

        Examples
        --------
        >>> ServiceScenario(name="auction", platforms=("piii", "pres")).targets
        ('pres',)
        """
        targets = self.analyses.crossplatform.targets
        return targets or tuple(name for name in self.platforms if name != self.calibration)


@dataclass(frozen=True, slots=True)
class GWP:
    """Analyses of a fleet's profiles, and how often their intervals are judged (Ren et al. 2010)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    top: Count = 10
    """Functions and applications that `wsc run` shows."""
    top_functions: Count = 100
    """Functions whose shares are judged: those with the most cycles."""
    confidence: Annotated[float, Gt(0), Lt(1)] = 0.95
    """Confidence of intervals."""
    draws: Count = 100
    """Collectors that look at the same fleet when intervals are judged: other machines, other epochs."""


@dataclass(frozen=True, slots=True)
class ProfileAnalyses:
    """Settings of the analyses of profiles. They decide no table of the run, so changing them needs no new run."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    profiling: GWP = field(default_factory=GWP)
    """Fleet-wide profiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileScenario(ProfileWorld):
    """A scenario of a profiled fleet: its world, its name and the settings of its analyses.

    Examples
    --------
    >>> ProfileScenario(name="fortnight", horizon_s=14 * 86400.0).days
    14
    """

    name: Name
    """Name of the run's folder: lower-case letters, digits, `_`, `.` and `-`. The file's own name if not said."""
    kind: Literal["profile"] = "profile"
    """Kind of world that is simulated."""
    description: str = ""
    """Purpose of the scenario, in a line or two."""
    analyses: ProfileAnalyses = field(default_factory=ProfileAnalyses)
    """Settings of the analyses."""

    @property
    def world(self) -> ProfileWorld:
        """What decides its tables: all but the name and the analyses."""
        return _world(ProfileWorld, self)


AnyScenario: TypeAlias = Scenario | QueueScenario | ServiceScenario | ProfileScenario


@dataclass(frozen=True, slots=True)
class Sweep:
    """Many scenarios from one: every combination of the values on the axes, under every seed."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    scenario: Annotated[str, MinLen(1)]
    """The scenario that is varied: a library name or a path relative to this file."""
    axes: Mapping[str, Annotated[tuple[Any, ...], MinLen(1)]] = field(default_factory=dict)
    """Dotted path of a value, such as `fleet.machines`, to the values that it takes."""
    seeds: tuple[Annotated[int, Ge(0)], ...] = ()
    """Seeds; none means the scenario's own."""


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A file that holds a sweep instead of a scenario."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    name: Name
    """First part of the scenarios' names. The file's own name if not said."""
    sweep: Sweep
    """What is varied."""
    description: str = ""
    """Purpose of the scenario, in a line or two."""


SCENARIO = TypeAdapter(Scenario)
QUEUE = TypeAdapter(QueueScenario)
SERVICE = TypeAdapter(ServiceScenario)
PROFILE = TypeAdapter(ProfileScenario)
SWEEP = TypeAdapter(SweepFile)
ADAPTERS: Mapping[type, TypeAdapter[Any]] = {
    Scenario: SCENARIO,
    QueueScenario: QUEUE,
    ServiceScenario: SERVICE,
    ProfileScenario: PROFILE,
}
"""What builds a scenario of each class from a file's values, and writes it into a manifest."""
