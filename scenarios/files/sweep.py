"""Sweeps: one scenario, axes and seeds become many scenarios."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from scenarios.files.faults import Fault, shown
from scenarios.files.schema import SweepFile
from scenarios.files.tree import ValueNode, put

MOST = 1000
"""Scenarios of a sweep at most."""

Axis = tuple[str, Sequence[ValueNode]]


def expand(plan: SweepFile, root: ValueNode, base: ValueNode | None, faults: list[Fault]) -> list[ValueNode]:
    """Return one tree per combination of the sweep's values and seeds, adding to `faults` why there is none.

    A value keeps its place in the sweep file, so that a fault in it is reported there. Each name is the sweep's name
    with the last key of each axis and the value: `coverage-machines-300-seed-2`.

    Parameters
    ----------
    plan : what the sweep file says
    root : its tree, for the places
    base : tree of the scenario that is varied; None if it cannot be read
    """
    axes = _axes(plan, root)
    faults += _too_large(plan, root, prod(len(values) for _, values in axes))
    if base is None or faults:
        return []
    paths = [path for path, _ in axes]
    chosen = itertools.product(*(enumerate(values) for _, values in axes))
    return [_combination(base, plan.name, paths, values, faults) for values in chosen]


def _too_large(plan: SweepFile, root: ValueNode, count: int) -> list[Fault]:
    """Return what is wrong with the axes as a whole."""
    place = root.nearest(("sweep", "axes")).place
    faults = [place.fault("sweep.axes", f"should make at most {MOST} scenarios", str(count))] if count > MOST else []
    for path, values in plan.sweep.axes.items():
        key = root.nearest(("sweep", "axes", path)).key
        if path == "name" or (path == "seed" and plan.sweep.seeds):
            faults.append(key.fault(f"sweep.axes.{path}", "is already set by the sweep"))
        if len(set(map(shown, values))) < len(values):
            faults.append(key.fault(f"sweep.axes.{path}", "says a value twice", shown(values)))
    if len(set(plan.sweep.seeds)) < len(plan.sweep.seeds):
        key = root.nearest(("sweep", "seeds")).key
        faults.append(key.fault("sweep.seeds", "says a value twice", shown(plan.sweep.seeds)))
    return faults


def _axes(plan: SweepFile, root: ValueNode) -> list[Axis]:
    axes = [(path, root.nearest(("sweep", "axes", path))) for path in _in_order(plan, root)]
    if plan.sweep.seeds:
        axes.append(("seed", root.nearest(("sweep", "seeds"))))
    return [(path, [replace(value, key=node.key) for value in _items(node)]) for path, node in axes]


def _in_order(plan: SweepFile, root: ValueNode) -> list[str]:
    """Return the paths of the axes as the file orders them; the first varies slowest."""
    node = root.nearest(("sweep", "axes"))
    return [path for path in node.value if path in plan.sweep.axes] if isinstance(node.value, dict) else []


def _items(node: ValueNode) -> list[ValueNode]:
    return node.value if isinstance(node.value, list) else []


def _combination(
    base: ValueNode, name: str, paths: Sequence[str], values: Sequence[tuple[int, ValueNode]], faults: list[Fault]
) -> ValueNode:
    """Return the tree of one combination."""
    suffixes = [
        f"{word}-{_in_name(number, value)}" for word, (number, value) in zip(_words(paths), values, strict=True)
    ]
    for path, (_, value) in zip(paths, values, strict=True):
        base = put(base, path.split("."), value, faults)
    label = ValueNode("-".join([name, *suffixes]), base.place, base.place)
    return put(base, ["name"], label, faults)


def _words(paths: Sequence[str]) -> list[str]:
    """Return a short word for each path: its last key, or all of it where two paths end alike."""
    last = [path.rpartition(".")[2] for path in paths]
    words = [word if last.count(word) == 1 else path for word, path in zip(last, paths, strict=True)]
    return [re.sub(r"[^a-z0-9_]", "-", word.lower()) for word in words]


def _in_name(number: int, value: ValueNode) -> str:
    """Return a value as part of a name: itself if it is one word or number, else its position on the axis."""
    text = shown(value.plain()).strip('"').lower()
    return text if re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", text) else str(number + 1)
