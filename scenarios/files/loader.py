"""From scenario files to scenarios: find, read, extend, override, check; all faults at once, with their places."""

import dataclasses
import functools
import hashlib
import json
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from scenarios.files import sweep
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.findings import FieldFault, build, findings, repeated
from scenarios.files.own_platforms import KEYS, flat, with_files, with_sheets
from scenarios.files.schema import SWEEP, AnyScenario
from scenarios.files.tree import Keys, Position, ValueNode, merge, parse, parse_file, put, without
from scenarios.kinds import KINDS, Reference
from scenarios.views.numbers import closest

LIBRARY = Path(__file__).parents[1] / "library"
_OWN = ("name", "description", "extends")
"""What a file says of itself alone: a file that extends it does not inherit these."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Override:
    """A value from the command line for a dotted path; `value` is YAML, None if the text had no `=`.

    A fault in it is located as `option:number`: which of the options of that name, if not the first.
    """

    path: str
    value: str | None
    option: str = "--set"
    number: int = 1
    column: int = 1

    def place(self, column: int = 1) -> Position:
        """Return the place of a column of the option's text."""
        return Position(self.option, self.number, column)


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


def overrides(
    sets: Iterable[str] | None, seed: str | None = None, machines: str | None = None, metric: str | None = None
) -> list[Override]:
    """Return the values that the options of a command give in place of those of a scenario file."""
    sizes = f"[{machines}]" if machines is not None else None
    options = [
        Override("seed", seed, "--seed"),
        Override("analyses.wsmeter.machines", sizes, "--machines", column=0),
        Override("analyses.wsmeter.metric", metric, "--metric"),
    ]
    return [*settings(sets or ()), *(option for option in options if option.value is not None)]


def read(reference: str) -> tuple[ValueNode, list[Fault]]:
    """Return a scenario file as a tree of located values, everything that it extends merged in, and its faults.

    Maps merge; lists and scalars replace; null is a value. `name` and `description` are a file's own and are not
    inherited.

    Parameters
    ----------
    reference : name of a library scenario, or path of a file (with a slash, or ending in .yaml or .yml)
    """
    path, faults = locate(reference), list[Fault]()
    if not path.is_file():
        raise FaultsError([Fault(reference, 0, 0, "", absent(reference, path))])
    root = _chain(path, (), faults)
    if root is None:
        raise FaultsError(faults)
    return root, faults


def locate(reference: str, other: Path | None = None) -> Path:
    """Return the path of a scenario: a library name, or a path, relative to the file `other` if given."""
    if _is_path(reference):
        return Path(os.path.normpath(other.parent / reference if other else reference))
    return LIBRARY / f"{reference}.yaml"


def _is_path(reference: str) -> bool:
    return "/" in reference or reference.endswith((".yaml", ".yml"))


def beside(file: str, other: Path) -> str:
    """Return the path of a file that stands relative to another."""
    return os.path.normpath(other.parent / file)


def named_beside(reference: str, other: Path) -> str:
    """Return a scenario that another file names: a library name stays, a path is relative to that file.

    Examples
    --------
    >>> named_beside("small", Path("queues/rush.yaml")), named_beside("day.yaml", Path("queues/rush.yaml"))
    ('small', 'queues/day.yaml')
    """
    return beside(reference, other) if _is_path(reference) else reference


def part_beside(text: str, other: Path) -> str:
    """Return a part that another file names, its file by its absolute path: processes elsewhere load it, too.

    Examples
    --------
    >>> part_beside("fcfs", Path("rush.yaml")), part_beside("mine.py:least", Path("/home/rush.yaml"))
    ('fcfs', '/home/mine.py:least')
    """
    file, _, name = text.rpartition(":")
    return f"{os.path.abspath(other.parent / file)}:{name}" if file.endswith(".py") else text


def library() -> list[str]:
    """Return the names of the shipped scenarios and sweeps, sorted.

    Examples
    --------
    >>> "small" in library()
    True
    """
    return sorted(path.stem for path in LIBRARY.glob("*.yaml"))


def absent(reference: str, path: Path) -> str:
    """Return why there is no scenario file where a reference leads."""
    if path.is_dir():
        return "is a folder, not a scenario file"
    if _is_path(reference):
        return "there is no such file"
    return f"there is no such scenario ({closest(reference, library(), 'wsc scenarios')})"


def kind_of(root: ValueNode) -> str:
    """Return the kind of scenario that a file says, known or not; a fleet if it says none.

    Examples
    --------
    >>> kind_of(parse("{kind: queue}", "x.yaml")[0]), kind_of(parse("{seed: 3}", "x.yaml")[0])
    ('queue', 'fleet')
    """
    named = root.child("kind")
    return "fleet" if named is None else str(named.plain())


def named(root: ValueNode, reference: str) -> ValueNode:
    """Return the tree with the file's own name as `name` unless it says one."""
    if not isinstance(root.value, dict) or "name" in root.value:
        return root
    return replace(root, value={**root.value, "name": ValueNode(Path(reference).stem, root.place, root.place)})


def override(root: ValueNode, overrides: Iterable[Override]) -> tuple[ValueNode, list[Fault]]:
    """Return the tree with values replaced, such as `fleet.machines=500` or `population.services.0.instances=10`.

    A value is YAML. It takes the place of what was there, a whole map or list included; maps on the way are made.
    Faults: an override that is no `path=value`, a value that is not YAML, a list position that does not exist.
    """
    faults: list[Fault] = []
    for change in overrides:
        keys = change.path.strip().split(".")
        if change.value is None or not all(keys):
            text = change.path if change.value is None else f"{change.path}={change.value}"
            faults.append(change.place().fault("", "should be path=value", shown(text)))
            continue
        value, wrong = parse(change.value, change.option, change.number, change.column, change.path)
        faults += wrong
        if value is not None:
            root = put(root, keys, replace(value, key=change.place()), faults)
    return root, faults


def digest(scenario: AnyScenario, inputs: Mapping[str, str] = _NOTHING) -> str:
    """Return the 12 hexadecimal digits that name what decides a run's tables.

    They are the head of the SHA-256 of JSON (no blanks, shortest floats) of the fields of its world alone: the name,
    the description and the analyses are not part of it, and neither are parts and platforms of one's own where there
    are none. Maps count in the order that they have in the world; a scenario that was loaded has them sorted, whatever
    the order in its files.

    Parameters
    ----------
    scenario : what is asked
    inputs : dotted path of a value that names something outside, such as a file, to a digest of what that holds;
        the name itself counts for nothing then

    Examples
    --------
    >>> from scenarios.files.schema import Scenario
    >>> day = digest(Scenario(name="day"))
    >>> day == digest(Scenario(name="today", seed=1)), day == digest(Scenario(name="day", seed=2))
    (True, False)
    """
    world = scenario.world
    fields = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    fields = {name: value for name, value in fields.items() if value or name not in KEYS}
    values = json.loads(json.dumps(fields, default=dataclasses.asdict, allow_nan=False))
    for keys, reference in KINDS[scenario.kind].files.items():
        at = functools.reduce(lambda value, key: (value or {}).get(key), keys[:-1], values)
        if reference == "part" and at and at.get(keys[-1]) is None:
            at.pop(keys[-1], None)
    for path, content in inputs.items():
        *above, last = path.split(".")
        functools.reduce(operator.getitem, above, values)[last] = content
    text = json.dumps(values, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _chain(path: Path, above: tuple[Path, ...], faults: list[Fault]) -> ValueNode | None:
    root, wrong = parse_file(path)
    faults += wrong
    if root is None:
        return None
    if not isinstance(root.value, dict):
        faults.append(root.place.fault("", "a scenario is a map of keys to values", shown(root.plain())))
        return None
    if _names_platforms(root):
        root = with_files(root, faults)
    named = root.child("extends")
    return root if named is None else _extended(root, named, path, (*above, path.resolve()), faults)


def _extended(
    root: ValueNode, named: ValueNode, path: Path, chain: tuple[Path, ...], faults: list[Fault]
) -> ValueNode | None:
    base_path = _base(named, path, chain, faults)
    base = _chain(base_path, chain, faults) if base_path else None
    if base is not None and base.child("sweep") is not None:
        faults.append(named.place.fault("extends", "should be a scenario, not a sweep", shown(named.value)))
    elif base is not None and root.child("sweep") is not None:
        problem = "is not for a sweep, whose sweep.scenario names the scenario that it varies"
        faults.append(named.place.fault("extends", problem, shown(named.value)))
        return without(root, ("extends",))
    elif base is not None and (kind := root.child("kind")) is not None and kind.plain() != kind_of(base):
        problem = f"should be kind {kind_of(base)}, as the scenario that is extended"
        faults.append(kind.place.fault("kind", problem, shown(kind.plain())))
        return None
    return merge(without(base, _OWN), without(root, ("extends",))) if base is not None else None


def _base(named: ValueNode, path: Path, chain: Sequence[Path], faults: list[Fault]) -> Path | None:
    """Return the file that `extends` names, None after adding why it cannot be."""
    if not isinstance(named.value, str):
        faults.append(named.place.fault("extends", "should be a scenario's name or path", shown(named.plain())))
        return None
    base = locate(named.value, path)
    if base.resolve() in chain:
        loop = [*chain[chain.index(base.resolve()) :], base]
        problem = f"goes round in a circle: {' -> '.join(file.name for file in loop)}"
        faults.append(named.place.fault("extends", problem))
    elif not base.is_file():
        faults.append(named.place.fault("extends", absent(named.value, base), shown(named.value)))
    else:
        return base
    return None


def load(reference: str, overrides: Sequence[Override] = ()) -> AnyScenario:
    """Return the scenario that a file describes.

    Parameters
    ----------
    reference : name of a library scenario, or path of a file
    overrides : values that take the place of the file's, see `overrides`

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


def load_each(reference: str, overrides: Sequence[Override] = ()) -> list[AnyScenario]:
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
        roots = [named(root, reference)]
    else:
        roots, wrong = _swept(root, reference, whole=not faults)
        faults = _joined(faults, wrong)
    finished = [_finished(root, overrides, faults) for root in roots]
    for tree, (_, wrong) in zip(roots, finished, strict=True):
        faults += wrong if root.child("sweep") is None else _of_sweep(tree, root, wrong)
    if faults:
        raise FaultsError(faults)
    return [scenario for scenario, _ in finished if scenario is not None]


def draws_path(reference: str) -> str:
    """Return the dotted path of what `wsc validate --draws` sets in a scenario; of a sweep, in what it varies.

    Raises
    ------
    FaultsError
        If there is no such scenario.

    Examples
    --------
    >>> draws_path("small"), draws_path("two_wscs")
    ('analyses.wsmeter.draws', 'analyses.wsmeter.draws')
    """
    root, _ = read(reference)
    varied = root.nearest(("sweep", "scenario")).plain()
    if root.child("sweep") is not None and isinstance(varied, str):
        root, _ = read(str(locate(varied, locate(reference))))
    return KINDS.get(kind_of(root), KINDS["fleet"]).draws


def _swept(root: ValueNode, reference: str, *, whole: bool) -> tuple[list[ValueNode], list[Fault]]:
    """Return the tree of every scenario of a sweep, if its file is whole, and what is wrong with the sweep.

    Axes without values are told, and left out of the scenarios.
    """
    built = build(SWEEP, named(root, reference))
    described, faults = built
    axes = root.nearest(("sweep", "axes"))
    empty = [key for key, node in axes.value.items() if node.value == []] if isinstance(axes.value, dict) else []
    if described is None and {fault.field for fault in faults} == {f"sweep.axes.{key}" for key in empty}:
        root = put(root, ("sweep", "axes"), without(axes, empty), [])
        rest = build(SWEEP, named(root, reference))
        described = rest[0]
    if described is None or not whole:
        return [], faults
    of_axes = list[Fault]()
    base = _varied(described.sweep.scenario, root, reference, of_axes)
    return sweep.expand(described, root, base, of_axes), [*faults, *of_axes]


def _of_sweep(tree: ValueNode, root: ValueNode, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults of a sweep's scenario; outside of the sweep's file they say which scenario it is."""
    for fault in faults:
        here = fault.file == root.place.file
        yield fault if here else replace(fault, problem=f"{fault.problem} (in {tree.nearest(('name',)).plain()})")


def _varied(scenario: str, root: ValueNode, reference: str, faults: list[Fault]) -> ValueNode | None:
    """Return the tree of the scenario that a sweep varies, None after adding why there is none."""
    node, path = root.nearest(("sweep", "scenario")), locate(scenario, locate(reference))
    if not path.is_file():
        faults.append(node.place.fault("sweep.scenario", "there is no such scenario", shown(scenario)))
        return None
    try:
        base, wrong = read(str(path))
    except FaultsError as error:
        faults += error.faults
        return None
    faults += wrong
    if base.child("sweep") is not None:
        faults.append(node.place.fault("sweep.scenario", "should be a scenario, not a sweep", shown(scenario)))
    return base


def _names_platforms(root: ValueNode) -> bool:
    return any(root.child(key) is not None for key in KEYS)


def _finished(
    root: ValueNode, overrides: Iterable[Override], known: Sequence[Fault]
) -> tuple[AnyScenario | None, list[Fault]]:
    """Return the scenario of a tree and what is wrong with it, beside what is already known to be."""
    root, faults = override(root, overrides)
    own_platforms = _names_platforms(root)
    if own_platforms:
        root = with_files(root, faults)
    kind = KINDS.get(kind_of(root))
    if kind is None:
        return None, [*faults, _unknown_kind(root)]
    for keys, reference in kind.files.items():
        root = _relative(root, keys, reference)
    if own_platforms and kind.own_platforms:
        faults = [*known, *faults]
        root = with_sheets(root if kind.own_platforms == "platforms" else flat(root), kind.own_platforms, faults)
        faults = faults[len(known) :]
    scenario: AnyScenario | None
    scenario, wrong = build(kind.adapter, root)
    faults = _joined([*known, *faults], wrong)
    blamed = findings(scenario, {fault.field for fault in faults}) if scenario is not None else []
    blamed += [
        wrong for wrong in (*_replaced(root, kind.instead), *_of_one_name(root, kind.distinct)) if wrong not in blamed
    ]
    return scenario, [*faults, *(_located(root, finding) for finding in blamed)]


def _replaced(root: ValueNode, instead: Mapping[str, Sequence[str]]) -> Iterator[FieldFault]:
    """Yield the faults of keys that stand beside those that take their place, even if they say what is so anyway.

    No value (null, an empty list, 0 or false) takes back what an extended file says, and may stand there.
    """
    for key, others in instead.items():
        node = root.child(key)
        if node is None or not node.plain():
            continue
        for way in others:
            node = _at(root, way)
            if node is not None and (isinstance(node.value, dict) or node.plain()):
                yield FieldFault(tuple(way.split(".")), f"cannot be given beside {key}")


def _of_one_name(root: ValueNode, distinct: Mapping[str, str]) -> Iterator[FieldFault]:
    """Yield the faults of items that have the name of one above them, whatever else is wrong with them."""
    for way, noun in distinct.items():
        node = _at(root, way)
        items = node.value if node is not None and isinstance(node.value, list) else []
        named = [(i, item.nearest(("name",)).plain()) for i, item in enumerate(items)]
        texts = [(i, text) for i, text in named if isinstance(text, str)]
        for at, text in repeated([text for _, text in texts]):
            keys: Keys = (*way.split("."), texts[at][0], "name")
            yield FieldFault(keys, f"another {noun} has this name", shown(text))


def _at(root: ValueNode, way: str) -> ValueNode | None:
    """Return the node at the end of a dotted path, None if there is none."""
    node: ValueNode | None = root
    for key in way.split("."):
        node = None if node is None else node.child(key)
    return node


def _unknown_kind(root: ValueNode) -> Fault:
    """Return the fault that there is no such kind, of which nothing else can be checked."""
    named = root.nearest(("kind",))
    return named.place.fault("kind", f"should be {' or '.join(map(repr, KINDS))}", shown(named.plain()))


def _relative(root: ValueNode, keys: tuple[str, ...], reference: Reference) -> ValueNode:
    """Return the tree with files named at the end of `keys` as seen from here, not from the file that says them."""
    node: ValueNode | None = root
    for key in keys:
        node = node.child(key) if node is not None else None
    if node is None:
        return root
    resolve = {"file": beside, "scenario": named_beside, "part": part_beside}[reference]

    def resolved(named: ValueNode) -> ValueNode:
        if isinstance(named.value, list):
            return replace(named, value=[resolved(item) for item in named.value])
        text = named.value
        return replace(named, value=resolve(text, Path(named.place.file))) if isinstance(text, str) else named

    return put(root, keys, resolved(node), [])


def _located(root: ValueNode, finding: FieldFault) -> Fault:
    """Return a finding with its place; what a shipped scenario says does not fit what somebody else says."""
    place, got = finding.place or root.nearest(finding.keys).place, finding.got
    other = _other_place(root, finding) if _is_shipped(place) else None
    if other is not None:
        got, place = f"{got or 'that'} of {Path(place.file).name}:{place.line}", other
    return place.fault(".".join(map(str, finding.keys)), finding.problem, got)


def _other_place(root: ValueNode, finding: FieldFault) -> Position | None:
    """Return the place of the value, of those that no shipped file says, that a finding is about.

    That is the only one that the problem names, or the only one there is; else the file as a whole, None if it is
    shipped, too.
    """
    own = {way: node for way, node in _leaves(root) if not _is_shipped(node.place) and way not in _OWN}
    named = [way for way in own if re.search(rf"(?<![\w.]){re.escape(way)}(?![\w.])", finding.problem)]
    for ways in (named, list(own)):
        if len(ways) == 1:
            return own[ways[0]].place
    return None if _is_shipped(root.place) else root.place


def _leaves(node: ValueNode, way: str = "") -> Iterator[tuple[str, ValueNode]]:
    """Yield what is no map, with the dotted path to it."""
    if not isinstance(node.value, dict):
        yield way, node
        return
    for key, below in node.value.items():
        yield from _leaves(below, f"{way}.{key}".removeprefix("."))


def _is_shipped(place: Position) -> bool:
    return Path(place.file).resolve().is_relative_to(LIBRARY.resolve())


def _joined(faults: list[Fault], more: Iterable[Fault]) -> list[Fault]:
    """Return `faults` and those of `more` that concern other fields."""
    known = {fault.field for fault in faults}
    return [*faults, *(fault for fault in more if fault.field not in known)]
