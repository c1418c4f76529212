"""YAML 1.2 as a tree of located values: maps, lists and scalars with file, line and column; and its faults."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from models.errors import InputError
from scenarios.files.faults import Fault, shown

_MOST_VALUES = 100_000
Scalar = None | bool | int | float | str
Keys = tuple[str | int, ...]
"""The way from the top of a tree to a value: map keys and list positions."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a value stands, line and column from 1."""

    file: str
    line: int
    column: int

    def fault(self, field: str, problem: str, got: str = "") -> Fault:
        """Return the fault that something is wrong with `field` here."""
        return Fault(self.file, self.line, self.column, field, problem, got)


@dataclass(frozen=True, slots=True)
class ValueNode:
    """A scalar, a map of nodes or a list of nodes, with its place and the place of its key."""

    value: "Scalar | dict[str, ValueNode] | list[ValueNode]"
    place: Position
    key: Position

    def plain(self) -> object:
        """Return the value without places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value

    def child(self, key: str | int) -> "ValueNode | None":
        """Return the node under a key or a list position, None if there is none."""
        if isinstance(self.value, dict) and isinstance(key, str):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and 0 <= key < len(self.value):
            return self.value[key]
        return None

    def nearest(self, keys: Keys) -> "ValueNode":
        """Return the node at the end of `keys`, or the last one on the way that exists."""
        node = self
        for key in keys:
            child = node.child(key)
            if child is None:
                break
            node = child
        return node


def merge(base: ValueNode, other: ValueNode) -> ValueNode:
    """Return `other` laid over `base`: maps merge, lists and scalars replace, null is a value.

    Examples
    --------
    >>> base, other = parse("{a: {b: 1, c: 2}, d: [1]}", "x")[0], parse("{a: {b: null}, d: []}", "y")[0]
    >>> merge(base, other).plain()
    {'a': {'b': None, 'c': 2}, 'd': []}
    """
    if not (isinstance(base.value, dict) and isinstance(other.value, dict)):
        return other
    both = {key: merge(base.value[key], node) for key, node in other.value.items() if key in base.value}
    return replace(other, value={**base.value, **other.value, **both})


def put(node: ValueNode, keys: Sequence[str], new: ValueNode, faults: list[Fault]) -> ValueNode:
    """Return `node` with `new` at the end of `keys`; a list position that does not exist is added to `faults`."""
    if not keys:
        return new
    if isinstance(node.value, list):
        here = int(keys[0]) if keys[0].isdecimal() else -1
        if node.child(here) is None:
            problem = f"there is no item {keys[0]} in a list of {len(node.value)} (counted from 0)"
            faults.append(new.key.fault(keys[0], problem))
            return node
        items = [put(item, keys[1:], new, faults) if i == here else item for i, item in enumerate(node.value)]
        return replace(node, value=items)
    entries = node.value if isinstance(node.value, dict) else {}
    below = entries.get(keys[0]) or ValueNode({}, new.place, new.key)
    return replace(node, value={**entries, keys[0]: put(below, keys[1:], new, faults)})


def without(root: ValueNode, keys: Iterable[str]) -> ValueNode:
    """Return a map without some of its keys.

    Examples
    --------
    >>> here = Position("x.yaml", 1, 1)
    >>> without(ValueNode({"a": ValueNode(1, here, here), "b": ValueNode(2, here, here)}, here, here), ["a"]).plain()
    {'b': 2}
    """
    entries = root.value if isinstance(root.value, dict) else {}
    return replace(root, value={key: node for key, node in entries.items() if key not in keys})


def parse(text: str, file: str, line: int = 1, column: int = 1, path: str = "") -> tuple[ValueNode | None, list[Fault]]:
    """Return the tree of a YAML text, or None, and its faults.

    Dates are text, only true and false are bool, a key may be said once, and numbers are finite.

    Parameters
    ----------
    file, line, column : where the text begins
    path : the field that the text is the value of

    Examples
    --------
    >>> tree, faults = parse("seed: 1", "day.yaml")
    >>> tree.plain(), tree.child("seed").place
    ({'seed': 1}, Position(file='day.yaml', line=1, column=7))
    >>> print(parse("seed: [1", "day.yaml")[1][0])
    day.yaml:1:9: is not YAML: expected ',' or ']', but got '<stream end>'
    """
    tree, faults = _parsed(text, Position(file, line, column), path)
    return tree, list(faults)


def parse_file(file: Path, path: str = "", named: ValueNode | None = None) -> tuple[ValueNode | None, list[Fault]]:
    """Return the tree of a YAML file, or None, and its faults, as `parse` does.

    Parameters
    ----------
    path : the field that the file's content is the value of
    named : the value that names the file, of which it is a fault that the file cannot be read
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or 'is not UTF-8'}"
        whole = Fault(_label(file), 0, 0, "", problem)
        return None, [named.place.fault(path, problem, shown(named.value)) if named else whole]
    return parse(text, _label(file), path=path)


def _label(file: Path) -> str:
    """Return a path as the user sees it: relative when the file lies below the working directory."""
    absolute = Path(os.path.abspath(file))
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else file)


@lru_cache(maxsize=64)
def _parsed(text: str, start: Position, path: str) -> tuple[ValueNode | None, tuple[Fault, ...]]:
    """Return the tree, which nobody changes, and the faults; one command reads what others extend many times."""
    tree, faults = _YamlReader(start, path).read(text)
    return tree, tuple(faults)


@dataclass(slots=True)
class _YamlReader:
    """Turns one YAML text into nodes, collecting its faults.

    `start` is the place of the text's first character, `path` the field that the text is the value of.
    """

    start: Position
    path: str = ""
    faults: list[Fault] = field(default_factory=list)
    values: int = 0

    def read(self, text: str) -> tuple[ValueNode | None, list[Fault]]:
        try:
            tree = YAML(typ="safe", pure=True).compose(text)
            if tree is None:
                return None, [self.start.fault(self.path, "is empty")]
            return self._node(tree, None, self.path, ()), self.faults
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = str(error.problem)
            told = f"{error.context} {problem}" if problem.startswith("but ") else problem
            return None, [self._place(mark).fault(self.path, f"is not YAML: {told}")]
        except YAMLError as error:
            return None, [self.start.fault(self.path, f"is not YAML: {str(error).splitlines()[0]}")]
        except RecursionError:
            return None, [self.start.fault(self.path, "is nested too deeply")]

    def _place(self, mark: object) -> Position:
        line, column = getattr(mark, "line", 0), getattr(mark, "column", 0)
        first = self.start.column - 1 if line == 0 else 0
        return Position(self.start.file, self.start.line + line, first + column + 1)

    def _node(self, tree: YamlNode, key: Position | None, path: str, above: tuple[int, ...]) -> ValueNode:
        place = self._place(tree.start_mark)
        self.values += 1
        if id(tree) in above or self.values > _MOST_VALUES:
            problem = "holds itself" if id(tree) in above else f"makes more than {_MOST_VALUES} values"
            raise MarkedYAMLError(problem=f"an alias {problem}", problem_mark=tree.start_mark)
        above = (*above, id(tree))
        value: Scalar | dict[str, ValueNode] | list[ValueNode]
        if isinstance(tree, MappingNode):
            value = self._map(tree, path, above)
        elif isinstance(tree, SequenceNode):
            value = [self._node(item, None, field_of(path, i), above) for i, item in enumerate(tree.value)]
        else:
            value = self._scalar(str(tree.tag), str(tree.value), place, path)
        return ValueNode(value, place, key or place)

    def _map(self, tree: MappingNode, path: str, above: tuple[int, ...]) -> dict[str, ValueNode]:
        entries: dict[str, ValueNode] = {}
        for key, value in tree.value:
            place = self._place(key.start_mark)
            if not isinstance(key, ScalarNode):
                self.faults.append(place.fault(path, "a key should be text"))
                continue
            name = field_of(path, key.value)
            node = self._node(value, place, name, above)
            if key.value in entries:
                first = entries[key.value].key
                self.faults.append(
                    place.fault(name, f"is given twice, first in line {first.line}", shown(node.plain()))
                )
            entries.setdefault(key.value, node)
        return entries

    def _scalar(self, tag: str, text: str, place: Position, path: str) -> Scalar:
        try:
            value = _scalar(tag, text)
        except (ValueError, KeyError):
            self.faults.append(place.fault(path, f"cannot be read as {tag.rpartition(':')[2]}", shown(text)))
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.faults.append(place.fault(path, "should be a finite number", text))
            return None
        return value


def field_of(path: str, key: str | int) -> str:
    """Return the field under a key of a field.

    Examples
    --------
    >>> field_of("fleet", "machines"), field_of("", "fleet")
    ('fleet.machines', 'fleet')
    """
    return f"{path}.{key}" if path else str(key)


def _scalar(tag: str, text: str) -> Scalar:
    """Return a scalar as YAML 1.2 has it: dates are text, and only true and false are bool."""
    kind = tag.removeprefix("tag:yaml.org,2002:")
    if kind == "null":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[text.lower()]
    if kind == "int":
        return int(text, {"0x": 16, "0o": 8}.get(text.lstrip("+-")[:2], 10))
    if kind == "float":
        return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    if kind.startswith("!"):
        raise InputError(tag)
    return text
