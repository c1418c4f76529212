"""What a tree of values describes, and what is wrong with it: its values one by one, and its fields between them."""

import copy
import difflib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from scenarios.files.faults import Fault, shown
from scenarios.files.tree import Keys, Position, ValueNode
from scenarios.kinds import KINDS

if TYPE_CHECKING:
    from scenarios.files.schema import AnyScenario

_T = TypeVar("_T", bound=Hashable)
_S = TypeVar("_S")
_D = TypeVar("_D")
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
    "literal_or_part": "should be {expected}, or file.py:name of your own",
    "predicate_failed": "should be file.py:name of your own",
    "too_short": "should not be empty",
    "string_too_short": "should not be empty",
    "string_too_long": "should be at most {max_length} characters long",
    "string_pattern_mismatch": "should be lower-case letters, digits, '_', '.' and '-'",
}
_CHOICES = ("literal[", "function-after[")
"""What the validator adds to the way where a value may be one of a few words, or a part's name."""


@dataclass(frozen=True, slots=True)
class FieldFault:
    """What is wrong between fields: the way to the one that is blamed, the problem and what was found."""

    keys: Keys
    problem: str
    got: str = ""
    place: Position | None = None
    """Where it stands, if in another file than the scenario's own."""


Check: TypeAlias = Callable[[_S], Iterable[FieldFault]]


def build(adapter: TypeAdapter[_D], root: ValueNode) -> tuple[_D | None, list[Fault]]:
    """Return what a tree describes, built without its faulty values, and a fault for each of those.

    What is left is good enough to check other fields across; None if nothing is.

    Examples
    --------
    >>> from scenarios.files.tree import parse
    >>> from scenarios.files.schema import SCENARIO
    >>> root, _ = parse("{name: day, sed: 1, epoch_s: yes}", "day.yaml")
    >>> scenario, faults = build(SCENARIO, root)
    >>> print(*faults, sep="\\n")
    day.yaml:1:30: epoch_s: should be a number, got "yes"
    day.yaml:1:13: sed: unknown key (did you mean seed?), got 1
    >>> scenario.epoch_s
    300.0
    """
    errors, data = list[ErrorDetails](), root.plain()
    built: _D | None = None
    for _ in range(_depth(data)):
        try:
            built = adapter.validate_json(json.dumps(data, sort_keys=True), strict=True)
        except ValidationError as error:
            wrong = _of_choices(error.errors(include_url=False))
            errors = errors or wrong
            data = _pruned(data, wrong)
        else:
            break
    return built, [_fault(adapter, root, error) for error in errors if not _follows(error)]


def _of_choices(errors: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return what is wrong, once for a value that may be one of ours or a part: the first choice that it is not."""
    once: dict[Keys, ErrorDetails] = {}
    for error in errors:
        *keys, last = error["loc"] or ("",)
        choice = isinstance(last, str) and last.startswith(_CHOICES)
        way: Keys = tuple(keys) if choice else error["loc"]
        kind = "literal_or_part" if choice and error["type"] == "literal_error" else error["type"]
        once.setdefault((*way, "" if choice else len(once)), {**error, "loc": way, "type": kind})
    return list(once.values())


def _follows(error: ErrorDetails) -> bool:
    """Return whether a list or map only looks empty because everything in it is wrong, which is told already."""
    return error["type"] == "too_short" and bool(error["input"])


def _fault(adapter: TypeAdapter[Any], root: ValueNode, error: ErrorDetails) -> Fault:
    keys: Keys = error["loc"]
    node, field = root.nearest(keys), ".".join(map(str, keys))
    if error["type"] == "unexpected_keyword_argument":
        known = _known_keys(adapter, keys[:-1])
        known += ["extends"] if "kind" in known else []  # is resolved before, and no property
        close = difflib.get_close_matches(str(keys[-1]), known, 1)
        meant = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"
        return node.key.fault(field, f"unknown key ({meant})", shown(node.plain()))
    problem = _PROBLEMS.get(error["type"], error["msg"]).format(**error.get("ctx", {}))
    return node.place.fault(field, problem, "" if error["type"] == "missing" else shown(node.plain()))


def _known_keys(adapter: TypeAdapter[Any], keys: Keys) -> list[str]:
    """Return the properties of the object at the end of `keys` in what an adapter takes."""
    part = document = adapter.json_schema()
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
    sound = copy.deepcopy(data)
    for keys in sorted({_blamed(error) for error in errors} - {()}, reverse=True, key=_order):
        part: Any = sound
        for key in keys[:-1]:
            part = part[key]
        del part[keys[-1]]
    return sound


def _blamed(error: ErrorDetails) -> Keys:
    return error["loc"][:-1] if error["type"] == "missing" else error["loc"]


def _order(keys: Keys) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts later list positions and inner values after earlier and outer ones."""
    return tuple((key, "") if isinstance(key, int) else (-1, key) for key in keys)


def findings(scenario: "AnyScenario", faulty: Set[str] = frozenset()) -> list[FieldFault]:
    """Return what is wrong between the fields of a scenario, whatever its kind.

    Parameters
    ----------
    scenario : what is checked
    faulty : dotted paths of fields that are wrong by themselves; checks that need one of them are left out

    Examples
    --------
    >>> from scenarios.files.schema import Scenario
    >>> findings(Scenario(name="day"))
    []
    >>> [wrong] = findings(Scenario(name="day", epoch_s=7.0))
    >>> wrong.keys, wrong.problem, wrong.got
    (('epoch_s',), 'should divide horizon_s = 86400', '7')
    """
    return checked(KINDS[scenario.kind].checks, scenario, faulty)


def checked(
    checks: Mapping[Check[_S], Sequence[str]], scenario: _S, faulty: Set[str] = frozenset()
) -> list[FieldFault]:
    """Return what some checks find, each with the dotted paths of the fields that it needs; a faulty one not again."""
    able = (check for check, needs in checks.items() if not any(_overlap(a, b) for a in needs for b in faulty))
    every = (finding for check in able for finding in check(scenario))
    return [finding for finding in every if ".".join(map(str, finding.keys)) not in faulty]


def repeated(items: Sequence[_T]) -> Iterator[tuple[int, _T]]:
    """Yield position and value of every item that was there before."""
    counts = Counter[_T]()
    for i, item in enumerate(items):
        if counts[item]:
            yield i, item
        counts[item] += 1


def _overlap(path: str, other: str) -> bool:
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")
