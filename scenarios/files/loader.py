"""From scenario files to scenarios: read, override, build, check; all faults at once, each with its place."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from scenarios.files import sweep
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.findings import FieldFault, build, findings
from scenarios.files.schema import SWEEP, AnyScenario
from scenarios.files.source import Override, beside, kind_of, locate, named, named_beside, override, read
from scenarios.files.tree import ValueNode, put
from scenarios.kinds import KINDS, Reference


def load(reference: str, overrides: Sequence[Override] = ()) -> AnyScenario:
    """Return the scenario that a file describes.

    Parameters
    ----------
    reference : name of a library scenario, or path of a file
    overrides : values that take the place of the file's, see `source.overrides`

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
        built = build(SWEEP, named(root, reference))
        described, wrong = built
        faults = _joined(faults, wrong)
        roots = sweep.expand(described, root, reference, faults) if described is not None and not faults else []
    finished = [_finished(root, overrides, faults) for root in roots]
    faults = [*faults, *itertools.chain.from_iterable(wrong for _, wrong in finished)]
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


def _finished(
    root: ValueNode, overrides: Iterable[Override], known: Sequence[Fault]
) -> tuple[AnyScenario | None, list[Fault]]:
    """Return the scenario of a tree and what is wrong with it, beside what is already known to be."""
    root, faults = override(root, overrides)
    kind = KINDS.get(kind_of(root))
    if kind is None:
        return None, [*faults, _unknown_kind(root)]
    for keys, reference in kind.files.items():
        root = _relative(root, keys, reference)
    scenario: AnyScenario | None
    scenario, wrong = build(kind.adapter, root)
    faults = _joined([*known, *faults], wrong)
    blamed = findings(scenario, {fault.field for fault in faults}) if scenario is not None else []
    return scenario, [*faults, *(_located(root, finding) for finding in blamed)]


def _unknown_kind(root: ValueNode) -> Fault:
    """Return the fault that there is no such kind, of which nothing else can be checked."""
    named = root.nearest(("kind",))
    return named.place.fault("kind", f"should be {' or '.join(map(repr, KINDS))}", shown(named.plain()))


def _relative(root: ValueNode, keys: tuple[str, ...], reference: Reference) -> ValueNode:
    """Return the tree with the file named at the end of `keys` as seen from here, not from the file that says it."""
    node: ValueNode | None = root
    for key in keys:
        node = node.child(key) if node is not None else None
    if node is None or not isinstance(node.value, str):
        return root
    resolve = beside if reference == "file" else named_beside
    return put(root, keys, replace(node, value=resolve(node.value, Path(node.place.file))), [])


def _located(root: ValueNode, finding: FieldFault) -> Fault:
    place = finding.place or root.nearest(finding.keys).place
    return place.fault(".".join(map(str, finding.keys)), finding.problem, finding.got)


def _joined(faults: list[Fault], more: Iterable[Fault]) -> list[Fault]:
    """Return `faults` and those of `more` that concern other fields."""
    known = {fault.field for fault in faults}
    return [*faults, *(fault for fault in more if fault.field not in known)]
