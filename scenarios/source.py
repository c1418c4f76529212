"""Scenario files as they stand: YAML 1.2 with the line and column of every value, `extends`, `--set` and the digest."""

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from models.scenario import World
from scenarios.faults import Fault, FaultsError, shown

LIBRARY = Path(__file__).parent / "library"
Scalar = None | bool | int | float | str
Keys = tuple[str | int, ...]
"""The way from the top of a file to a value: map keys and list positions."""

_MOST_VALUES = 100_000
_OWN = ("name", "description", "extends")
"""What a file says of itself alone: a file that extends it does not inherit these."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, line and column from 1."""

    file: str
    line: int
    column: int

    def fault(self, field: str, problem: str, got: str = "") -> Fault:
        """Return the fault that something is wrong with `field` here."""
        return Fault(self.file, self.line, self.column, field, problem, got)


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a map of nodes or a list of nodes, with its place and the place of its key."""

    value: "Scalar | dict[str, Node] | list[Node]"
    place: Place
    key: Place

    def plain(self) -> object:
        """Return the value without places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value

    def child(self, key: str | int) -> "Node | None":
        """Return the node under a key or a list position, None if there is none."""
        if isinstance(self.value, dict) and isinstance(key, str):
            return self.value.get(key)
        if isinstance(self.value, list) and isinstance(key, int) and 0 <= key < len(self.value):
            return self.value[key]
        return None

    def nearest(self, keys: Keys) -> "Node":
        """Return the node at the end of `keys`, or the last one on the way that exists."""
        node = self
        for key in keys:
            found = node.child(key)
            if found is None:
                break
            node = found
        return node


@dataclass(frozen=True, slots=True)
class Override:
    """A value from the command line for a dotted path; `value` is YAML, None if the text had no `=`.

    A fault in it is located as `option:number:column`: which of the options of that name, and where in its text.
    """

    path: str
    value: str | None
    option: str = "--set"
    number: int = 1
    column: int = 1

    def place(self, column: int = 1) -> Place:
        """Return the place of a column of the option's text."""
        return Place(self.option, self.number, column)


def settings(texts: Iterable[str]) -> list[Override]:
    """Return the overrides that `--set path=value` options ask for.

    Examples
    --------
    >>> settings(["fleet.machines=500"])
    [Override(path='fleet.machines', value='500', option='--set', number=1, column=16)]
    """
    parted = [(number, *text.partition("=")) for number, text in enumerate(texts, 1)]
    return [
        Override(path, value if equals else None, "--set", number, len(path) + 2)
        for number, path, equals, value in parted
    ]


def read(reference: str) -> tuple[Node, list[Fault]]:
    """Return a scenario file as a tree of located values, everything that it extends merged in, and its faults.

    Maps merge; lists and scalars replace; null is a value. `name` and `description` are a file's own and are not
    inherited.

    Parameters
    ----------
    reference : name of a library scenario, or path of a file (with a slash, or ending in .yaml or .yml)

    Raises
    ------
    FaultsError
        If there is no tree: a file of the chain is missing, is not YAML, or extends itself. Faults that leave a
        tree, such as a key said twice, are returned with it, so that they can be reported with all others.

    Examples
    --------
    >>> root, faults = read("small")
    >>> root.child("extends") is None, faults
    (True, [])
    """
    path, faults = locate(reference), list[Fault]()
    if not path.is_file():
        raise FaultsError([Fault(reference, 0, 0, "", f"there is no such scenario; {_known()}")])
    root = _chain(path, (), faults)
    if root is None:
        raise FaultsError(faults)
    return root, faults


def locate(reference: str, beside: Path | None = None) -> Path:
    """Return the path of a scenario: a library name, or a path, relative to the file `beside` if given.

    Examples
    --------
    >>> locate("small").parent.name, str(locate("day.yaml", Path("fleets/base.yaml")))
    ('library', 'fleets/day.yaml')
    """
    if "/" in reference or reference.endswith((".yaml", ".yml")):
        return Path(os.path.normpath(beside.parent / reference if beside else reference))
    return LIBRARY / f"{reference}.yaml"


def library() -> list[str]:
    """Return the names of the shipped scenarios and sweeps, sorted.

    Examples
    --------
    >>> "small" in library()
    True
    """
    return sorted(path.stem for path in LIBRARY.glob("*.yaml"))


def parse(text: str, file: str) -> tuple[Node | None, list[Fault]]:
    """Return the tree of one YAML text, or None, and its faults.

    Examples
    --------
    >>> tree, faults = parse("seed: 1", "day.yaml")
    >>> tree.plain(), tree.child("seed").place
    ({'seed': 1}, Place(file='day.yaml', line=1, column=7))
    >>> print(parse("seed: [1", "day.yaml")[1][0])
    day.yaml:1:9: is not YAML: expected ',' or ']', but got '<stream end>'
    """
    return _Reader(Place(file, 1, 1)).read(text)


def override(root: Node, overrides: Iterable[Override]) -> tuple[Node, list[Fault]]:
    """Return the tree with values replaced, such as `fleet.machines=500` or `population.services.0.instances=10`.

    A value is YAML. It takes the place of what was there, a whole map or list included; maps on the way are made.
    Faults: an override that is no `path=value`, a value that is not YAML, a list position that does not exist.

    Examples
    --------
    >>> tree, _ = parse("{seed: 1}", "day.yaml")
    >>> override(tree, settings(["fleet.machines=500"]))[0].plain()
    {'seed': 1, 'fleet': {'machines': 500}}
    >>> print(override(tree, settings(["fleet.machines"]))[1][0])
    --set:1:1: should be path=value, got "fleet.machines"
    """
    faults: list[Fault] = []
    for one in overrides:
        keys = one.path.strip().split(".")
        if one.value is None or not all(keys):
            text = one.path if one.value is None else f"{one.path}={one.value}"
            faults.append(one.place().fault("", "should be path=value", shown(text)))
            continue
        value, wrong = _Reader(one.place(one.column), one.path).read(one.value)
        faults += wrong
        if value is not None:
            root = put(root, keys, replace(value, key=one.place()), faults)
    return root, faults


def merge(base: Node, other: Node) -> Node:
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


def digest(world: World) -> str:
    """Return the 12 hexadecimal digits that name what decides a run's tables.

    They are the head of the SHA-256 of canonical JSON (sorted keys, shortest floats) of the fields of `World`: the
    name, the description and the analyses of a scenario are not part of it.

    Examples
    --------
    >>> digest(World()) == digest(World(seed=1)), digest(World()) == digest(World(seed=2))
    (True, False)
    """
    fields = {field.name: getattr(world, field.name) for field in dataclasses.fields(World)}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), default=dataclasses.asdict, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _known() -> str:
    return f"the library has {', '.join(library())}"


def _label(path: Path) -> str:
    """Return a path as the user sees it: relative when the file lies below the working directory."""
    absolute = Path(os.path.abspath(path))
    below = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd()) if below else path)


def _chain(path: Path, above: tuple[Path, ...], faults: list[Fault]) -> Node | None:
    label = _label(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        faults.append(Fault(label, 0, 0, "", f"cannot be read: {getattr(error, 'strerror', None) or 'is not UTF-8'}"))
        return None
    root, wrong = parse(text, label)
    faults += wrong
    if root is None:
        return None
    if not isinstance(root.value, dict):
        faults.append(root.place.fault("", "a scenario is a map of keys to values", shown(root.plain())))
        return None
    named = root.child("extends")
    return root if named is None else _extended(root, named, path, (*above, path.resolve()), faults)


def _extended(root: Node, named: Node, path: Path, chain: tuple[Path, ...], faults: list[Fault]) -> Node | None:
    base_path = _base(named, path, chain, faults)
    base = _chain(base_path, chain, faults) if base_path else None
    if base is not None and base.child("sweep") is not None:
        faults.append(named.place.fault("extends", "should be a scenario, not a sweep", shown(named.value)))
    return merge(_without(base, _OWN), _without(root, ("extends",))) if base is not None else None


def _base(named: Node, path: Path, chain: Sequence[Path], faults: list[Fault]) -> Path | None:
    """Return the file that `extends` names, None after adding why it cannot be."""
    if not isinstance(named.value, str):
        faults.append(named.place.fault("extends", "should be a scenario's name or path", shown(named.plain())))
        return None
    base = locate(named.value, path)
    if base.resolve() in chain:
        loop = [*chain[chain.index(base.resolve()) :], base]
        problem = f"goes round in a circle: {' -> '.join(one.name for one in loop)}"
        faults.append(named.place.fault("extends", problem))
    elif not base.is_file():
        faults.append(named.place.fault("extends", f"there is no such scenario; {_known()}", shown(named.value)))
    else:
        return base
    return None


def _without(root: Node, keys: Iterable[str]) -> Node:
    entries = root.value if isinstance(root.value, dict) else {}
    return replace(root, value={key: node for key, node in entries.items() if key not in keys})


def put(node: Node, keys: Sequence[str], new: Node, faults: list[Fault]) -> Node:
    """Return `node` with `new` at the end of `keys`; a list position that does not exist is added to `faults`.

    Examples
    --------
    >>> tree, five = parse("{services: [{instances: 3}]}", "x")[0], parse("5", "y")[0]
    >>> put(tree, ["services", "0", "instances"], five, []).plain()
    {'services': [{'instances': 5}]}
    """
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
    below = entries.get(keys[0]) or Node({}, new.place, new.key)
    return replace(node, value={**entries, keys[0]: put(below, keys[1:], new, faults)})


@dataclass(slots=True)
class _Reader:
    """Turns one YAML text into nodes, collecting its faults.

    `start` is the place of the text's first character, `path` the field that the text is the value of.
    """

    start: Place
    path: str = ""
    faults: list[Fault] = dataclasses.field(default_factory=list)
    values: int = 0

    def read(self, text: str) -> tuple[Node | None, list[Fault]]:
        try:
            tree = YAML(typ="safe", pure=True).compose(text)
            if tree is None:
                return None, [self.start.fault(self.path, "is empty")]
            return self._node(tree, None, self.path, ()), self.faults
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            return None, [self._place(mark).fault(self.path, f"is not YAML: {error.problem}")]
        except YAMLError as error:
            return None, [self.start.fault(self.path, f"is not YAML: {str(error).splitlines()[0]}")]
        except RecursionError:
            return None, [self.start.fault(self.path, "is nested too deeply")]

    def _place(self, mark: object) -> Place:
        line, column = getattr(mark, "line", 0), getattr(mark, "column", 0)
        first = self.start.column - 1 if line == 0 else 0
        return Place(self.start.file, self.start.line + line, first + column + 1)

    def _node(self, tree: YamlNode, key: Place | None, path: str, above: tuple[int, ...]) -> Node:
        place = self._place(tree.start_mark)
        self.values += 1
        if id(tree) in above or self.values > _MOST_VALUES:
            problem = "holds itself" if id(tree) in above else f"makes more than {_MOST_VALUES} values"
            raise MarkedYAMLError(problem=f"an alias {problem}", problem_mark=tree.start_mark)
        above = (*above, id(tree))
        value: Scalar | dict[str, Node] | list[Node]
        if isinstance(tree, MappingNode):
            value = self._map(tree, path, above)
        elif isinstance(tree, SequenceNode):
            value = [self._node(item, None, _field(path, i), above) for i, item in enumerate(tree.value)]
        else:
            value = self._scalar(str(tree.tag), str(tree.value), place, path)
        return Node(value, place, key or place)

    def _map(self, tree: MappingNode, path: str, above: tuple[int, ...]) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for key, value in tree.value:
            place = self._place(key.start_mark)
            if not isinstance(key, ScalarNode):
                self.faults.append(place.fault(path, "a key should be text"))
                continue
            field = _field(path, key.value)
            node = self._node(value, place, field, above)
            if key.value in entries:
                first = entries[key.value].key
                self.faults.append(
                    place.fault(field, f"is said twice, first in line {first.line}", shown(node.plain()))
                )
            entries.setdefault(key.value, node)
        return entries

    def _scalar(self, tag: str, text: str, place: Place, path: str) -> Scalar:
        try:
            value = _scalar(tag, text)
        except (ValueError, KeyError):
            self.faults.append(place.fault(path, f"cannot be read as {tag.rpartition(':')[2]}", shown(text)))
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.faults.append(place.fault(path, "should be a finite number", text))
            return None
        return value


def _field(path: str, key: str | int) -> str:
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
        raise ValueError(tag)
    return text
