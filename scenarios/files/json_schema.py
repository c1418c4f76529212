"""The JSON Schema of scenario files, for editors: every key with its meaning, unit, bounds and default."""

import ast
import dataclasses
import inspect
import itertools
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from scenarios.files.schema import ADAPTERS, SWEEP, SweepFile
from scenarios.kinds import KINDS

_UNITS = {
    "_s": "seconds",
    "_per_s": "per second",
    "_hz": "hertz",
    "_w": "watts",
    "_bytes": "bytes",
    "_bytes_per_s": "bytes per second",
    "_vcpu": "hardware threads",
    "_day": "per day",
    "_s_per_request": "seconds",
    "_log_sd": "standard deviation of the natural logarithm",
    "_bytes_per_vcpu": "bytes per hardware thread",
    "_share": "share of 1",
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files: `$defs` has a part for every kind and theirs.

    Keys that a base file may say are not required: what is required is checked after `extends` is followed. A file that
    extends another may leave the kind to that one.

    Examples
    --------
    >>> parts = json_schema()["$defs"]
    >>> parts["Scenario"]["properties"]["horizon_s"]["description"]
    'Simulated time, a multiple of the epoch. Unit: seconds.'
    >>> parts["Fleet"]["properties"]["machines"]["minimum"]
    1
    """
    parts: dict[str, Any] = {}
    for kind, adapter in (*ADAPTERS.items(), (SweepFile, SWEEP)):
        schema = adapter.json_schema()
        parts |= schema.pop("$defs")
        parts[kind.__name__] = schema
    for kind in (*ADAPTERS, *_parts(*ADAPTERS, SweepFile)):
        _describe(parts[kind.__name__], kind)
    del parts["SweepFile"]
    listed = {name for part in parts.values() for name in parts if _is_item(part, name)}
    for name in parts.keys() - listed - {"Sweep"}:
        parts[name].pop("required", None)
    for known in KINDS.values():
        if known.own_platforms:
            _allow_file(parts[known.schema]["properties"][known.own_platforms])
    for kind in ADAPTERS:
        parts[kind.__name__]["properties"] |= {"extends": _EXTENDS, "sweep": {"$ref": "#/$defs/Sweep"}}
    return {
        "$schema": _DIALECT,
        "title": "Scenario",
        "type": "object",
        **_by_kind(),
        "$defs": dict(sorted(parts.items())),
    }


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {
    "type": "string",
    "description": "The scenario that this one differs from: a library name or a path relative to this file. Maps "
    "merge, lists and scalars replace, null is a value.",
}


def _by_kind() -> dict[str, Any]:
    """Return what a file of each kind is; one that says no kind is a fleet, or whatever it extends."""
    parts = {name: {"$ref": f"#/$defs/{kind.schema}"} for name, kind in KINDS.items()}
    properties = {"kind": {"enum": list(KINDS), "default": "fleet", "description": "What is simulated."}}
    chosen: dict[str, Any] = {
        "if": {"required": ["extends"], "not": {"required": ["kind"]}},
        "then": {"anyOf": list(parts.values())},
        "else": parts.pop("fleet"),
    }
    for name, part in reversed(parts.items()):
        named = {"required": ["kind"], "properties": {"kind": {"const": name}}}
        chosen = {"if": named, "then": part, "else": chosen}
    return {"properties": properties, **chosen}


def _allow_file(entry: dict[str, Any]) -> None:
    """Let the name of a file stand in place of a map."""
    map_schema = {key: entry.pop(key) for key in ("type", "additionalProperties")}
    entry["anyOf"] = [{"type": "string", "pattern": r"\.ya?ml$"}, map_schema]


def _parts(*roots: type) -> list[type]:
    """Return the dataclasses that the fields of `roots` are made of."""
    parts: list[type] = []
    waiting = [hint for root in roots for hint in get_type_hints(root).values()]
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type) and hint not in parts:
            parts.append(hint)
            waiting += get_type_hints(hint).values()
    return parts


def _is_item(part: dict[str, Any], name: str) -> bool:
    """Return whether some property of `part` is a list of `name`."""
    return any(member.get("items") == {"$ref": f"#/$defs/{name}"} for member in part["properties"].values())


def _describe(part: dict[str, Any], kind: type) -> None:
    """Put meaning, unit and default into the properties of one JSON Schema object."""
    meanings, hints = field_meanings(kind), get_type_hints(kind, include_extras=True)
    part["description"] = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    for field in dataclasses.fields(kind):
        entry = part["properties"][_key(field.name, hints[field.name])]
        entry.pop("title", None)
        entry["description"] = " ".join([meanings[field.name], *_unit(field.name)])
        if field.default_factory is not dataclasses.MISSING and not dataclasses.is_dataclass(field.default_factory):
            entry["default"] = _written(field.default_factory())


def _key(name: str, hint: object) -> str:
    """Return what a file calls a field: its alias if it has one, as where the name is a word of Python."""
    return next((mark.alias for mark in getattr(hint, "__metadata__", ()) if getattr(mark, "alias", None)), name)


def _written(value: object) -> object:
    """Return a default as a file would say it: of a dataclass, what differs from its own defaults."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    known = {field.name: field.default for field in dataclasses.fields(value)}
    return {name: item for name, item in dataclasses.asdict(value).items() if item != known[name]}


def _unit(name: str) -> list[str]:
    suffixes = sorted((suffix for suffix in _UNITS if name.endswith(suffix)), key=len)
    return [f"Unit: {_UNITS[suffixes[-1]]}."] if suffixes else []


def field_meanings(kind: type) -> dict[str, str]:
    """Return what each field of a dataclass means: the text under it in the source, inherited fields included."""
    bases = [base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)]
    return {name: text for base in bases for name, text in _texts(base)}


def _texts(kind: type) -> Iterator[tuple[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__).body
    for statement, text in itertools.pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(text, ast.Expr)
        ):
            yield statement.target.id, " ".join(str(ast.literal_eval(text.value)).split())
