"""What a scenario file may say: the world, a name, and the settings of the analyses; and its JSON Schema."""

import ast
import dataclasses
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from annotated_types import Ge, MinLen
from pydantic import Field, TypeAdapter

from models.scenario import FORBID, Count, Forbid, Positive, Share, World

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=200)]


@dataclass(frozen=True, slots=True)
class WSMeter:
    """How the feature is measured: metric, test clusters and intervals (Lee et al. 2018)."""

    __pydantic_config__: ClassVar[Forbid] = FORBID

    metric: Literal["ipc", "ips", "requests_per_cpu_s", "requests_per_s"] = "ipc"
    """Performance of an instance: instructions per cycle, instructions per CPU second, or requests per CPU second or
    per second of presence."""
    window: Annotated[str, MinLen(1)] = "all"
    """Counting window that is measured; `all` is the whole horizon when no windows are recorded."""
    jobs: Annotated[tuple[str, ...], MinLen(1)] | None = None
    """Names of the jobs that matter, for a customer who owns just those; null: all jobs of the fleet."""
    machines: Annotated[tuple[Count, ...], MinLen(1)] = (25, 50, 100)
    """Sizes of the test clusters; for a feature rolled out by instance, numbers of instances."""
    draws: Count = 500
    """Test clusters drawn of each size when estimators are validated."""
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
    """A world with a name, what it is for and how it is analysed: everything that one scenario file says.

    Examples
    --------
    >>> Scenario(name="day", seed=3).epochs
    288
    """

    name: Name
    """Name of the run's folder: lower-case letters, digits, `_`, `.` and `-`. The file's own name if not said."""
    kind: Literal["fleet"] = "fleet"
    """What is simulated."""
    description: str = ""
    """What it shows, in a line or two."""
    analyses: Analyses = field(default_factory=Analyses)
    """Settings of the analyses."""


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
    """What it shows, in a line or two."""


SCENARIO = TypeAdapter(Scenario)
SWEEP = TypeAdapter(SweepFile)

_UNITS = {
    "_s": "seconds",
    "_hz": "hertz",
    "_bytes": "bytes",
    "_vcpu": "hardware threads",
    "_day": "per day",
    "_s_per_request": "seconds",
    "_log_sd": "standard deviation of the natural logarithm",
    "_bytes_per_vcpu": "bytes per hardware thread",
    "_share": "share of 1",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files, for editors: every key with its meaning, unit, bounds and default.

    Keys that a base file may say are not required: what is required is checked after `extends` is followed.

    Examples
    --------
    >>> schema = json_schema()
    >>> schema["properties"]["horizon_s"]["description"]
    'Simulated time, a multiple of the epoch. Unit: seconds.'
    >>> schema["$defs"]["Fleet"]["properties"]["machines"]["minimum"]
    1
    """
    schema = SCENARIO.json_schema()
    sweep = SWEEP.json_schema()
    parts = {**schema.pop("$defs"), **sweep["$defs"]}
    for part, kind in (*((parts[kind.__name__], kind) for kind in _parts(Scenario, SweepFile)), (schema, Scenario)):
        _describe(part, kind)
    listed = {name for part in parts.values() for name in parts if _is_item(part, name)}
    for name in parts.keys() - listed - {"Sweep"}:
        parts[name].pop("required", None)
    schema.pop("required", None)
    schema["properties"] |= {"extends": _EXTENDS, "sweep": {"$ref": "#/$defs/Sweep"}}
    return {"$schema": _DIALECT, "title": "Scenario", **schema, "$defs": dict(sorted(parts.items()))}


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "type": "string",
    "description": "The scenario that this one differs from: a library name or a path relative to this file. Maps "
    "merge, lists and scalars replace, null is a value.",
}


def _parts(*roots: type) -> list[type]:
    """Return the dataclasses that the fields of `roots` are made of."""
    found: list[type] = []
    waiting = [hint for root in roots for hint in get_type_hints(root).values()]
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type) and hint not in found:
            found.append(hint)
            waiting += get_type_hints(hint).values()
    return found


def _is_item(part: dict[str, Any], name: str) -> bool:
    """Return whether some property of `part` is a list of `name`."""
    return any(one.get("items") == {"$ref": f"#/$defs/{name}"} for one in part["properties"].values())


def _describe(part: dict[str, Any], kind: type) -> None:
    """Put meaning, unit and default into the properties of one JSON Schema object."""
    meanings = field_meanings(kind)
    part["description"] = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    for one in dataclasses.fields(kind):
        entry = part["properties"][one.name]
        entry.pop("title", None)
        entry["description"] = " ".join([meanings[one.name], *_unit(one.name)])
        if one.default_factory is not dataclasses.MISSING and not dataclasses.is_dataclass(one.default_factory):
            entry["default"] = one.default_factory()


def _unit(name: str) -> list[str]:
    suffixes = sorted((suffix for suffix in _UNITS if name.endswith(suffix)), key=len)
    return [f"Unit: {_UNITS[suffixes[-1]]}."] if suffixes else []


def field_meanings(kind: type) -> dict[str, str]:
    """Return what each field of a dataclass means: the text under it in the source, inherited fields included.

    Examples
    --------
    >>> field_meanings(Scenario)["seed"]
    'All random draws follow from it.'
    """
    bases = [base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)]
    return {name: text for base in bases for name, text in _texts(base)}


def _texts(kind: type) -> Iterator[tuple[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__).body
    for one, text in itertools.pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(text, ast.Expr):
            yield one.target.id, " ".join(str(ast.literal_eval(text.value)).split())
