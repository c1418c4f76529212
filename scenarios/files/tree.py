"""Values that know where they stand: a tree of maps, lists and scalars with file, line and column of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scenarios.files.faults import Fault

Scalar = None | bool | int | float | str
Keys = tuple[str | int, ...]
"""The way from the top of a tree to a value: map keys and list positions."""


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


def merge(base: Node, other: Node) -> Node:
    """Return `other` laid over `base`: maps merge, lists and scalars replace, null is a value.

    Examples
    --------
    >>> from scenarios.files.reader import parse
    >>> base, other = parse("{a: {b: 1, c: 2}, d: [1]}", "x")[0], parse("{a: {b: null}, d: []}", "y")[0]
    >>> merge(base, other).plain()
    {'a': {'b': None, 'c': 2}, 'd': []}
    """
    if not (isinstance(base.value, dict) and isinstance(other.value, dict)):
        return other
    both = {key: merge(base.value[key], node) for key, node in other.value.items() if key in base.value}
    return replace(other, value={**base.value, **other.value, **both})


def put(node: Node, keys: Sequence[str], new: Node, faults: list[Fault]) -> Node:
    """Return `node` with `new` at the end of `keys`; a list position that does not exist is added to `faults`.

    Examples
    --------
    >>> from scenarios.files.reader import parse
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


def without(root: Node, keys: Iterable[str]) -> Node:
    """Return a map without some of its keys.

    Examples
    --------
    >>> here = Place("x.yaml", 1, 1)
    >>> without(Node({"a": Node(1, here, here), "b": Node(2, here, here)}, here, here), ["a"]).plain()
    {'b': 2}
    """
    entries = root.value if isinstance(root.value, dict) else {}
    return replace(root, value={key: node for key, node in entries.items() if key not in keys})
