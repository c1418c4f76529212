"""Spec sheets of your own: a file of them, or a part of a scenario, with all their faults."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter

from models.platforms import PLATFORMS, Platform, Sheet
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.findings import Check, FieldFault, build, checked
from scenarios.files.tree import Position, Scalar, ValueNode, field_of, merge, parse_file, without
from scenarios.views.numbers import closest

KEYS = ("platforms", "own_platforms")
"""Keys of a scenario under which the name of a file stands for the platforms in it."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ROUNDING = 1e-9
_OWN = ("name", "extends", "source", "variant_of")
"""What a platform says of itself alone: one that extends it does not inherit these."""


def read_platforms(file: Path) -> dict[str, Platform]:
    """Return the shipped platforms and those of a YAML file, a map of names to sheets.

    Raises
    ------
    FaultsError
        Everything that is wrong with the file.
    """
    root, faults = _parsed(file)
    sheets = {} if root is None else judged(root, "", faults)[0]
    if faults:
        raise FaultsError(faults)
    return PLATFORMS | {name: sheet.platform(name, str(file)) for name, sheet in sheets.items()}


def written(value: object) -> object:
    """Return a value of a scenario as a file says it: a path as text, a platform or a sheet as a map.

    Examples
    --------
    >>> written({"mine": PLATFORMS["pd4"]})["mine"]["cores"], written([Path("mine.yaml")])
    (8, ['mine.yaml'])
    """
    if isinstance(value, Mapping):
        return {name: written(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [written(entry) for entry in value]
    if isinstance(value, Platform | Sheet):
        return asdict(value.sheet if isinstance(value, Platform) else value)
    return str(value) if isinstance(value, Path) else value


def with_files(root: ValueNode, faults: list[Fault]) -> ValueNode:
    """Return a scenario's tree in which each name of a file of platforms is what the file holds.

    A file is looked for beside the one that names it, and from here if the command line does. In a list of platforms
    each item may name a file.

    Parameters
    ----------
    root : of a scenario file, or of all that it extends
    faults : what is wrong with a file is added
    """
    if not isinstance(root.value, dict):
        return root
    here = {key: _with_file(root.value[key], key, faults) for key in KEYS if key in root.value}
    return replace(root, value={**root.value, **here})


def flat(root: ValueNode) -> ValueNode:
    """Return a scenario's tree whose list of platforms is of names; the sheets in it are its own platforms.

    Examples
    --------
    >>> from scenarios.files.tree import parse
    >>> tree, _ = parse("{platforms: [piii, {mine: {extends: pd4}}, pres]}", "day.yaml")
    >>> flat(tree).plain()
    {'platforms': ['piii', 'mine', 'pres'], 'own_platforms': {'mine': {'extends': 'pd4'}}}
    """
    listed = root.child("platforms")
    items = listed.value if listed is not None else None
    if isinstance(items, dict) and listed is not None:  # a file, or sheets, in place of a list
        items = [listed]
    if not isinstance(items, list) or listed is None or not isinstance(root.value, dict):
        return root
    names, sheets = list[ValueNode](), dict[str, ValueNode]()
    for item in items:
        if isinstance(item.value, dict):
            names += [ValueNode(name, node.key, node.key) for name, node in item.value.items()]
            sheets |= item.value
        else:
            names.append(item)
    named = {**root.value, "platforms": replace(listed, value=names)}
    if sheets:
        beside = root.child("own_platforms") or replace(listed, value={})
        named["own_platforms"] = merge(beside, replace(listed, value=sheets))
    return replace(root, value=named)


def with_sheets(root: ValueNode, key: str, faults: list[Fault]) -> ValueNode:
    """Return a scenario's tree whose own platforms are complete, as those that they extend say; add what is wrong."""
    node = root.child(key)
    if node is not None and isinstance(node.value, str):
        problem = "should be the name of a file that ends in .yaml, or a map of platform names to sheets"
        faults.append(node.place.fault(key, problem, shown(node.value)))
    if node is None or not isinstance(node.value, dict) or not isinstance(root.value, dict):
        return root
    _, trees = judged(node, key, faults)
    return replace(root, value={**root.value, key: replace(node, value=dict(trees))})


def shallow(own: Mapping[str, Sheet], key: str, used: Collection[str]) -> Iterator[FieldFault]:
    """Yield own platforms that are used and have a single level of caches: counters are of two.

    Parameters
    ----------
    own : sheets by name
    key : under which they are in a file
    used : names of platforms
    """
    for name, sheet in own.items():
        if name in used and len(sheet.caches) < 2:
            problem = "should have two levels at least, whose misses are counted"
            yield FieldFault((key, name, "caches"), problem, "one")


def judged(root: ValueNode, path: str, faults: list[Fault]) -> tuple[dict[str, Sheet], dict[str, ValueNode]]:
    """Return the sheets of a map of names to sheets, and their trees with what each extends; add what is wrong.

    Of a sheet with faults the tree is that of a shipped platform, so that all else can still be judged.

    Parameters
    ----------
    root : the map
    path : the field that it is the value of; empty for a file of its own
    """
    own = _extended(root, path, faults)
    built = {name: _built(name, node, path, faults) for name, node in own.items()}
    sheets = {name: sheet for name, (sheet, _) in built.items() if sheet is not None}
    _check(sheets, own, root, path, faults)
    stand_in = _tree(asdict(next(iter(PLATFORMS.values()))), root.place)
    trees = {name: node if built[name][1] else replace(stand_in, key=node.key) for name, node in own.items()}
    return sheets, trees


def _with_file(node: ValueNode, key: str, faults: list[Fault]) -> ValueNode:
    """Return a node, or the items of a list, with what a file holds in place of its name."""
    if isinstance(node.value, list):
        return replace(node, value=[_with_file(item, key, faults) for item in node.value])
    if not isinstance(node.value, str) or not node.value.endswith((".yaml", ".yml")):
        return node
    tree, wrong = _parsed(Path(node.place.file).parent / node.value, key, node)
    faults += wrong
    return replace(node, value={}) if tree is None else replace(tree, key=node.key)


def _parsed(file: Path, path: str = "", named: ValueNode | None = None) -> tuple[ValueNode | None, list[Fault]]:
    """Return the tree of a file of platforms, None if it holds none, and its faults, as `parse_file`."""
    root, faults = parse_file(file, path, named)
    if root is not None and (not isinstance(root.value, dict) or not root.value):
        return None, [*faults, root.place.fault(path, "should be a map of platform names to sheets")]
    return root, faults


def _extended(root: ValueNode, path: str, faults: list[Fault]) -> dict[str, ValueNode]:
    """Return the tree of each platform, what it extends laid under it; add what is wrong with names."""
    entries = root.value if isinstance(root.value, dict) else {}
    for name, node in entries.items():
        if name in PLATFORMS:
            problem = "is the name of a shipped platform: give yours another"
            faults.append(node.key.fault(field_of(path, name), problem))
        elif not _NAME.fullmatch(name):
            faults.append(node.key.fault(field_of(path, name), "should be lower-case letters, digits, '_' and '-'"))
    return {name: _resolved(name, entries, path, (), faults) for name in entries}


def _resolved(
    name: str, entries: Mapping[str, ValueNode], path: str, above: tuple[str, ...], faults: list[Fault]
) -> ValueNode:
    own = entries[name]
    extends = own.child("extends")
    if extends is None or extends.value is None:
        return own
    base, chain = extends.value, (*above, name)
    if isinstance(base, str) and base in PLATFORMS:
        return merge(_tree(asdict(PLATFORMS[base]), extends.place), own)
    if isinstance(base, str) and base in entries and base not in chain:
        return merge(without(_resolved(base, entries, path, chain, faults), _OWN), own)
    others = [other for other in (*PLATFORMS, *entries) if other != name]
    problem = f"should be a platform ({closest(str(extends.plain()), others)})"
    if base in chain:
        problem = f"goes round in a circle: {' -> '.join((*chain, str(base)))}"
    faults.append(extends.place.fault(field_of(field_of(path, name), "extends"), problem, shown(extends.plain())))
    # On any base, values that are wrong by themselves are told, and not those that are missing.
    return merge(_tree(asdict(next(iter(PLATFORMS.values()))), extends.place), own)


def _tree(value: object, place: Position) -> ValueNode:
    """Return a value as a tree that stands in one place; of a platform's, what another inherits."""
    if isinstance(value, dict):
        inherited = {key: entry for key, entry in value.items() if key not in (*_OWN, "llc_bytes")}
        return ValueNode({key: _tree(entry, place) for key, entry in inherited.items()}, place, place)
    if isinstance(value, (list, tuple)):
        return ValueNode([_tree(entry, place) for entry in value], place, place)
    return ValueNode(cast(Scalar, value), place, place)


def _built(name: str, node: ValueNode, path: str, faults: list[Fault]) -> tuple[Sheet | None, bool]:
    """Return a sheet without its faulty values, None if nothing is left, and whether it has none; add what is wrong."""
    built = build(_SHEET, node)
    sheet, wrong = built
    told = {fault.field for fault in faults} | {(fault.file, fault.line, fault.column) for fault in faults}
    for fault in wrong:
        field = f"{field_of(path, name)}.{fault.field}".rstrip(".")
        if not told & {field, (fault.file, fault.line, fault.column)}:
            faults.append(replace(fault, field=field))
    return sheet, not wrong


def _check(
    sheets: Mapping[str, Sheet], trees: Mapping[str, ValueNode], root: ValueNode, path: str, faults: list[Fault]
) -> None:
    """Add what is wrong between fields that are each right.

    Parameters
    ----------
    sheets, trees : with what each extends
    root : the map that says them, without that
    """
    variants = {name for name, sheet in (PLATFORMS | dict(sheets)).items() if sheet.variant_of}
    blamed = {fault.field for fault in faults}
    groundless = {name for name in trees if f"{field_of(path, name)}.extends" in blamed}
    grounded = {name: sheet for name, sheet in sheets.items() if not {name, sheet.extends} & groundless}
    for name, sheet in grounded.items():
        told = {(fault.file, fault.line, fault.column) for fault in faults}
        field = field_of(path, name)
        faulty = {other.field.removeprefix(f"{field}.") for other in faults if other.field.startswith(f"{field}.")}
        findings = [*checked(_CHECKS, sheet, faulty), *_variant(name, sheet, [*PLATFORMS, *trees], variants)]
        for finding in (_anew(finding, root.child(name)) for finding in findings):
            place = finding.place or trees[name].nearest(finding.keys).place
            if (place.file, place.line, place.column) not in told:
                faults.append(place.fault(".".join(map(str, (field, *finding.keys))), finding.problem, finding.got))


def _anew(finding: FieldFault, own: ValueNode | None) -> FieldFault:
    """Return a finding; if a platform has too few cores for inherited caches, at the place of its cores."""
    if own is None or finding.keys[::2] != ("caches", "cores") or own.child("caches") is not None:
        return finding
    cores = own.child("cores") or own.child("sockets")
    if cores is None:
        return finding
    return replace(finding, problem=f"{finding.problem}; it is inherited, so give all caches anew", place=cores.place)


def _processors(sheet: Sheet) -> Iterator[FieldFault]:
    if sheet.cores % sheet.sockets:
        yield FieldFault(("cores",), f"should be a multiple of sockets = {sheet.sockets}", str(sheet.cores))


def _clocks(sheet: Sheet) -> Iterator[FieldFault]:
    low, base, high = sheet.min_frequency_hz, sheet.base_frequency_hz, sheet.max_frequency_hz
    if low is not None and low > base:
        yield FieldFault(("min_frequency_hz",), f"should be at most base_frequency_hz = {base:g}", f"{low:g}")
    if high is not None and high < base:
        yield FieldFault(("max_frequency_hz",), f"should be at least base_frequency_hz = {base:g}", f"{high:g}")
    lowest, highest, step = min(low or base, base), max(high or base, base), sheet.frequency_step_hz
    if lowest < highest < lowest + step * (1.0 - _ROUNDING):
        problem = f"should be at most {highest - lowest:g}, from the lowest clock to the highest"
        yield FieldFault(("frequency_step_hz",), problem, f"{step:g}")


def _levels(sheet: Sheet) -> Iterator[FieldFault]:
    """Yield levels that are not larger and slower than the level before, or shared by cores that there are not."""
    cores = sheet.cores // sheet.sockets
    for i, level in enumerate(sheet.caches):
        if level.cores > cores:
            problem = f"should be at most {cores}, the cores of a processor"
            yield FieldFault(("caches", i, "cores"), problem, str(level.cores))
    for i, (inner, outer) in enumerate(zip(sheet.caches, sheet.caches[1:], strict=False), 1):
        for field in ("size_bytes", "latency_cycles"):
            least, got = getattr(inner, field), getattr(outer, field)
            if got <= least:
                yield FieldFault(
                    ("caches", i, field), f"should be greater than the {least:g} of the level before", f"{got:g}"
                )


def _memory(sheet: Sheet) -> Iterator[FieldFault]:
    least_s = sheet.caches[-1].latency_cycles / sheet.base_frequency_hz
    if sheet.memory_latency_s <= least_s:
        problem = f"should be greater than that of the last cache, {least_s:.3g}"
        yield FieldFault(("memory_latency_s",), problem, f"{sheet.memory_latency_s:g}")


def _variant(name: str, sheet: Sheet, known: Sequence[str], variants: Set[str]) -> Iterator[FieldFault]:
    other, others = sheet.variant_of, [candidate for candidate in known if candidate != name]
    if other and other not in others:
        yield FieldFault(("variant_of",), f"should be another platform ({closest(other, others)})", shown(other))
    elif other in variants:
        yield FieldFault(("variant_of",), "should be a whole server, not a configuration of one", shown(other))


_SHEET: TypeAdapter[Sheet] = TypeAdapter(Sheet)
_CHECKS: Mapping[Check[Sheet], tuple[str, ...]] = {
    _processors: ("cores", "sockets"),
    _clocks: ("min_frequency_hz", "base_frequency_hz", "max_frequency_hz", "frequency_step_hz"),
    _levels: ("caches", "cores", "sockets"),
    _memory: ("caches", "base_frequency_hz", "memory_latency_s"),
}
