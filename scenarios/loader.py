"""From scenario files to scenarios: read, override, build, check; all faults at once, each with its place."""

import copy
import difflib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from scenarios import checks, schema, sweep
from scenarios.faults import Fault, FaultsError, shown
from scenarios.schema import Scenario
from scenarios.source import Override, library, override, read
from scenarios.tree import Keys, Node

_T = TypeVar("_T")

_PROBLEMS = {
    "missing": "is required",
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be text",
    "tuple_type": "should be a list",
    "dict_type": "should be a map",
    "mapping_type": "should be a map",
    "dataclass_type": "should be a map",
    "greater_than": "should be greater than {gt:g}",
    "greater_than_equal": "should be at least {ge:g}",
    "less_than": "should be less than {lt:g}",
    "less_than_equal": "should be at most {le:g}",
    "literal_error": "should be {expected}",
    "too_short": "should not be empty",
    "string_too_short": "should not be empty",
    "string_too_long": "should be at most {max_length} characters long",
    "string_pattern_mismatch": "should be lower-case letters, digits, '_', '.' and '-'",
}


def load(reference: str, overrides: Sequence[Override] = ()) -> Scenario:
    """Return the scenario that a file describes.

    Parameters
    ----------
    reference : name of a library scenario, or path of a file
    overrides : values that take the place of the file's, see `source.settings`

    Raises
    ------
    FaultsError
        Everything that is wrong with the files and the overrides, or that the file is a sweep.

    Examples
    --------
    >>> load("small").fleet.machines
    300
    """
    scenarios = load_each(reference, overrides)
    if len(scenarios) > 1:
        raise FaultsError([Fault(reference, 0, 0, "sweep", f"is {len(scenarios)} scenarios where one is needed")])
    return scenarios[0]


def load_each(reference: str, overrides: Sequence[Override] = ()) -> list[Scenario]:
    """Return the scenarios of a file: one, or every one of a sweep.

    Raises
    ------
    FaultsError
        Everything that is wrong with the files and the overrides.

    Examples
    --------
    >>> [scenario.name for scenario in load_each("small")]
    ['small']
    """
    root, faults = read(reference)
    if root.child("sweep") is None:
        roots = [_named(root, reference)]
    else:
        built = build(schema.SWEEP, _named(root, reference))
        asked, wrong = built
        faults = _joined(faults, wrong)
        roots = sweep.expand(asked, root, reference, faults) if asked is not None and not faults else []
    finished = [_finished(root, overrides, faults) for root in roots]
    faults = [*faults, *itertools.chain.from_iterable(wrong for _, wrong in finished)]
    if faults:
        raise FaultsError(faults)
    return [scenario for scenario, _ in finished if scenario is not None]


def shipped() -> list[dict[str, str]]:
    """Return name, kind and description of every library scenario, in alphabetical order.

    Examples
    --------
    >>> [one["kind"] for one in shipped() if one["name"] == "two_wscs"]
    ['sweep']
    """
    return [_entry(name) for name in library()]


def _entry(name: str) -> dict[str, str]:
    root, _ = read(name)
    kind = "fleet" if root.child("sweep") is None else "sweep"
    described = root.child("description")
    return {"name": name, "kind": kind, "description": str(described.value) if described else ""}


def build(adapter: TypeAdapter[_T], root: Node) -> tuple[_T | None, list[Fault]]:
    """Return what a tree describes, built without its faulty values, and a fault for each of those.

    What is left is good enough to check other fields across; None if nothing is.

    Examples
    --------
    >>> from scenarios.reader import parse
    >>> root, _ = parse("{name: day, sed: 1, epoch_s: yes}", "day.yaml")
    >>> scenario, faults = build(schema.SCENARIO, root)
    >>> print(*faults, sep="\\n")
    day.yaml:1:30: epoch_s: should be a number, got "yes"
    day.yaml:1:13: sed: unknown key (did you mean seed?), got 1
    >>> scenario.epoch_s
    300.0
    """
    errors, data = list[ErrorDetails](), root.plain()
    built: _T | None = None
    for _ in range(_depth(data)):
        try:
            built = adapter.validate_json(json.dumps(data, sort_keys=True), strict=True)
        except ValidationError as error:
            found = error.errors(include_url=False)
            errors = errors or found
            data = _pruned(data, found)
        else:
            break
    return built, [_fault(adapter, root, one) for one in errors if not _follows(one)]


def _follows(error: ErrorDetails) -> bool:
    """Return whether a list or map only looks empty because everything in it is wrong, which is told already."""
    return error["type"] == "too_short" and bool(error["input"])


def _finished(root: Node, overrides: Iterable[Override], known: Sequence[Fault]) -> tuple[Scenario | None, list[Fault]]:
    """Return the scenario of a tree and what is wrong with it, beside what is already known to be."""
    root, faults = override(root, overrides)
    built = build(schema.SCENARIO, root)
    scenario, wrong = built
    faults = _joined([*known, *faults], wrong)
    found = checks.findings(scenario, {fault.field for fault in faults}) if scenario is not None else []
    return scenario, [*faults, *(_located(root, finding) for finding in found)]


def _located(root: Node, finding: checks.Finding) -> Fault:
    place = root.nearest(finding.keys).place
    return place.fault(".".join(map(str, finding.keys)), finding.problem, finding.got)


def _joined(faults: list[Fault], more: Iterable[Fault]) -> list[Fault]:
    """Return `faults` and those of `more` that concern other fields."""
    known = {fault.field for fault in faults}
    return [*faults, *(fault for fault in more if fault.field not in known)]


def _named(root: Node, reference: str) -> Node:
    """Return the tree with the file's own name as `name` unless it says one."""
    if not isinstance(root.value, dict) or "name" in root.value:
        return root
    return replace(root, value={**root.value, "name": Node(Path(reference).stem, root.place, root.place)})


def _fault(adapter: TypeAdapter[Any], root: Node, error: ErrorDetails) -> Fault:
    keys: Keys = error["loc"]
    node, field = root.nearest(keys), ".".join(map(str, keys))
    if error["type"] == "unexpected_keyword_argument":
        known = _known_keys(adapter.json_schema(), keys[:-1])
        close = difflib.get_close_matches(str(keys[-1]), known, 1)
        meant = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"
        return node.key.fault(field, f"unknown key ({meant})", shown(node.plain()))
    problem = _PROBLEMS.get(error["type"], error["msg"]).format(**error.get("ctx", {}))
    return node.place.fault(field, problem, "" if error["type"] == "missing" else shown(node.plain()))


def _known_keys(document: Mapping[str, Any], keys: Keys) -> list[str]:
    """Return the properties of the object at the end of `keys` in a JSON Schema."""
    part = document
    for key in keys:
        part = part["items"] if isinstance(key, int) else part["properties"][key]
        part = next((choice for choice in part.get("anyOf", ()) if "$ref" in choice), part)
        part = document["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    return list(part["properties"])


def _depth(data: object) -> int:
    """Return how many levels a value has, which bounds how often faulty values can be cut out of it."""
    children = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 2 + max(map(_depth, children), default=0)


def _pruned(data: object, errors: Sequence[ErrorDetails]) -> object:
    """Return the data without the values that are wrong and without the maps that lack a key."""
    kept = copy.deepcopy(data)
    for keys in sorted({_blamed(error) for error in errors} - {()}, reverse=True, key=_order):
        part: Any = kept
        for key in keys[:-1]:
            part = part[key]
        del part[keys[-1]]
    return kept


def _blamed(error: ErrorDetails) -> Keys:
    return error["loc"][:-1] if error["type"] == "missing" else error["loc"]


def _order(keys: Keys) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts later list positions and inner values after earlier and outer ones."""
    return tuple((key, "") if isinstance(key, int) else (-1, key) for key in keys)
