"""The kinds of scenarios, and all that differs between them: what a file may say, how it is simulated and measured.

What one kind needs is loaded when it is asked for, so this module stands below those that read files and keep runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from models.code.parts import is_part, part
from models.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from scenarios.files.findings import Check
    from scenarios.files.schema import AnyScenario
    from scenarios.runs.rundir import Draft, Run
    from scenarios.views.conclusion import Conclusion
    from scenarios.views.terminal import Progress

Reference: TypeAlias = Literal["file", "scenario", "part"]
"""What a value names: a file, relative to the one that says so; a scenario, which may be one of the library; or, if it
is no name of ours, a part in somebody's own file."""


ANALYSES = "analyses."
"""How the ways begin to what decides no table of a run."""


class Lens(Protocol):
    """The module that knows how one kind is simulated and what is measured of its runs."""

    def simulate(self, scenario: "AnyScenario", draft: "Draft", out: Path, progress: "Progress") -> Mapping[str, int]:
        """Write the tables of a scenario into a draft, and return how much there is of what."""

    def measure(self, scenario: "AnyScenario", run: "Run", out: Path, progress: "Progress") -> "Conclusion":
        """Return what `wsc run` says of a run that is there."""

    def numbers(self, answer: "Conclusion") -> Iterable[tuple[str, float]]:
        """Yield what `measure` answered in a line of numbers, each with its name: a row of the report of many runs."""


_OF_ONE_STATION = (
    *("station", "contention", "scaling", "machine", "platforms", "replays", "load.types", "load.job", "load.trace"),
    *(f"observation.{name}" for name in ("accept_at_application", "workers", "background_share", "background_s")),
    *(f"analyses.occupancy.{name}" for name in ("interval_s", "to", "policy")),
)
"""What a queue says of its only station and of those that it serves."""


@dataclass(frozen=True)
class Kind:
    """One kind of scenario; its schema, its checks and its lens are loaded on first use."""

    name: str
    """What a file says as `kind`."""
    schema: str
    """The class in `scenarios.files.schema` that a file becomes."""
    lens_name: str
    """The folder in `scenarios` whose module `measure` simulates and measures it."""
    checks_name: str
    """The module in `scenarios.files.checks` that knows what its fields must satisfy together."""
    singular: str
    """What a run of it is called, with its article."""
    plural: str
    """What many are called."""
    files: Mapping[tuple[str, ...], Reference] = field(default_factory=dict)
    """The ways to values that name something outside the file, and what that is."""
    own_platforms: str = ""
    """The key under which a file has spec sheets of platforms of its own; empty: it has no platforms."""
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys that take the place of others, dotted paths: a file may then not have them, even with their defaults."""
    distinct: Mapping[str, str] = field(default_factory=dict)
    """Lists, by dotted paths, whose items each have a name of their own, and what an item is called."""
    judge_name: str = ""
    """The module in `scenarios` whose `validate` says how often intervals are right; that of its lens if not named."""
    draws: str = "analyses.wsmeter.draws"
    """Dotted path of what `wsc validate --draws` sets."""
    makers: tuple[str, ...] = ()
    """Modules that make tables of its runs, beside `models` and `sim`: a run that others made is made again."""

    @property
    def scenario(self) -> type[Any]:
        """The frozen dataclass that a file becomes."""
        return cast(type[Any], getattr(import_module("scenarios.files.schema"), self.schema))

    @property
    def adapter(self) -> "TypeAdapter[Any]":
        """What builds a scenario from a file's values, and writes it into a manifest."""
        return cast("TypeAdapter[Any]", import_module("scenarios.files.schema").ADAPTERS[self.scenario])

    @property
    def checks(self) -> Mapping["Check[Any]", Sequence[str]]:
        """What its fields must satisfy together, each check with the fields that it needs."""
        module = import_module(f"scenarios.files.checks.{self.checks_name}")
        return cast("Mapping[Check[Any], Sequence[str]]", module.CHECKS)

    @property
    def lens(self) -> Lens:
        """What simulates and measures it."""
        return cast(Lens, import_module(f"scenarios.{self.lens_name}.measure"))

    def outside(self, scenario: "AnyScenario") -> Mapping[str, str]:
        """Return what is taken from outside: the way to the value that names it, and a digest of what that holds."""
        named = {way: text for way, text in self.parts(scenario).items() if not way.startswith(ANALYSES)}
        parts = {way: f"{part(text).sha256} {part(text).name}" for way, text in named.items()}
        outside: Callable[[AnyScenario], Mapping[str, str]] | None = getattr(self.lens, "outside", None)
        return parts if outside is None else {**parts, **outside(scenario)}

    def parts(self, scenario: "AnyScenario") -> Mapping[str, str]:
        """Return the parts of somebody's own that a scenario names, each by the way to the value that names it."""
        ways = (keys for keys, reference in self.files.items() if reference == "part")
        named: dict[str, object] = {}
        for keys in ways:
            value: object = reduce(lambda at, key: getattr(at, key, None), keys, cast(object, scenario))
            listed = enumerate(value) if isinstance(value, tuple) else ()
            named |= {".".join(keys): value} | {".".join([*keys, str(i)]): text for i, text in listed}
        return {way: text for way, text in named.items() if isinstance(text, str) and is_part(text)}

    def validate(self, scenario: "AnyScenario", out: Path, force: bool, progress: "Progress") -> "Conclusion":
        """Return what `wsc validate` says: how often intervals were right, of many test clusters or in many worlds."""
        judges = import_module(f"scenarios.{self.judge_name}") if self.judge_name else self.lens
        judge: Callable[..., Conclusion] | None = getattr(judges, "validate", None)
        if judge is None:
            why = "the laws stand beside the truth in what wsc run says"
            raise InputError(f"{scenario.name}: is a {self.name}, of which no test clusters can be drawn; {why}")
        return judge(scenario, out, force, progress)

    def precise(
        self, scenario: "AnyScenario", share: float, out: Path, force: bool, progress: "Progress"
    ) -> "Conclusion":
        """Return what is measured of a run that is lengthened until its mean is known to so small a share of it."""
        lengthened: Callable[..., Conclusion] | None = getattr(self.lens, "precise", None)
        if lengthened is None:
            raise InputError(
                f"{scenario.name}: is a {self.name}; --precision is only for queues, about their mean response time"
            )
        return lengthened(scenario, share, out, force, progress)


_PHYSICS: Mapping[tuple[str, ...], Reference] = {
    ("power", "governor", "policy"): "part",
    ("feature", "governor", "policy"): "part",
    ("interference", "mechanism"): "part",
}
"""Where machines of every fleet may do what somebody's own functions say: `sim.fleet.own_physics.WAYS`."""
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "fleet",
            "Scenario",
            "wsmeter",
            "fleet",
            "a fleet",
            "fleets",
            files={("analyses", "wsmeter", "estimators"): "part", **_PHYSICS},
            own_platforms="platforms",
            judge_name="effects.validate",
        ),
        Kind(
            "queue",
            "QueueScenario",
            "occupancy",
            "queue",
            "a request server",
            "request servers",
            files={
                ("load", "trace", "file"): "file",
                ("load", "job", "scenario"): "scenario",
                ("station", "policy"): "part",
                ("machine", "governor", "policy"): "part",
                ("machine", "interference", "mechanism"): "part",
            },
            own_platforms="platforms",
            instead={"stations": _OF_ONE_STATION},
            distinct={"stations": "station", "load.types": "type"},
            makers=("scenarios.files.traces", "scenarios.occupancy.job_pace"),
        ),
        Kind(
            "cross_platform",
            "ServiceScenario",
            "crossplatform",
            "service",
            "a service on several platforms",
            "services",
            files={("analyses", "crossplatform", "methods"): "part"},
            own_platforms="own_platforms",
            draws="analyses.crossplatform.worlds",
        ),
        Kind(
            "profile",
            "ProfileScenario",
            "profiling",
            "profile",
            "a profiled fleet",
            "profiled fleets",
            files=_PHYSICS,
            own_platforms="platforms",
            draws="analyses.profiling.draws",
            makers=(
                "analysis.profiling.symbolise",
                "scenarios.profiling.symbols",
            ),
        ),
    )
}
