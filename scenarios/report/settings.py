"""Settings: what names a run, what differs from the defaults, and the commands that repeat it."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from itertools import groupby
from operator import itemgetter

from ruamel.yaml import YAML

from scenarios.files.faults import FaultsError
from scenarios.files.loader import library, load
from scenarios.files.schema import AnyScenario
from scenarios.kinds import KINDS
from scenarios.report.subject import Subject, composed
from scenarios.runs.disk import Json
from scenarios.views.numbers import plain, plural
from scenarios.views.section import Section, table

_NAMING = frozenset({"name", "kind", "description"})


def facts(subject: Subject) -> dict[str, str]:
    """Return what names the run and says who made it when: label and text."""
    manifest = subject.run.manifest
    counted = manifest.get("counts", {}).items()
    counts = (plural(count, name.replace("_", " ").removesuffix("s")) for name, count in counted if count)
    versions = (f"{name} {version}" for name, version in manifest.get("versions", {}).items())
    told = {
        "seed": str(manifest.get("seed", "")),
        "digest": str(manifest.get("digest", "")),
        "simulated": f"{_minute(str(manifest.get('started', '')))} in {float(manifest.get('duration_s', 0.0)):.1f} s",
        "made by": ", ".join(versions),
        "source": str(manifest.get("source", "")),
        "folder": str(subject.run.path),
        "holds": ", ".join(counts),
    }
    return {name: text for name, text in told.items() if text}


def _minute(started: str) -> str:
    return started.replace("T", " ")[:16] + " UTC"


def settings(subject: Subject) -> Section:
    """Return what was asked where it differs from the defaults, and how to ask it again."""
    scenario = subject.scenario
    values, default = flat(dumped(scenario)), dumped(type(scenario)(name=scenario.name))
    usual = flat(default)
    rows = [
        (path, plain(value), plain(at(default, path)))
        for path, value in values.items()
        if (path not in usual or usual[path] != value) and path not in _NAMING
    ]
    command, code = again(subject.scenario)
    commands = (command, f"wsc report {shlex.quote(str(subject.run.path))}")
    sentence = (
        f"{len(rows)} settings differ from the defaults of a scenario of kind {scenario.kind}."
        if rows
        else "Nothing differs from the defaults."
    )
    told = (sentence, f"Without the shipped scenario of that name: save this as {scenario.name}.yaml.")
    tables = (table(("setting", "value", "default"), rows, words=3),) if rows else ()
    return composed("Settings", told[: 1 + bool(code)], tables, commands=commands, code=code)


def flat(value: Mapping[str, Json], above: str = "") -> dict[str, Json]:
    """Return nested maps as one, by dotted paths; everything else stays as it is."""
    flattened = dict[str, Json]()
    for name, inner in value.items():
        path = f"{above}{name}"
        flattened |= flat(inner, f"{path}.") if isinstance(inner, Mapping) and inner else {path: inner}
    return flattened


def at(value: object, path: str) -> object:
    """Return what stands at a dotted path of nested maps; None if nothing does."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def dumped(scenario: AnyScenario) -> Mapping[str, Json]:
    """Return a scenario as JSON holds it."""
    values: Mapping[str, Json] = KINDS[scenario.kind].adapter.dump_python(scenario, mode="json", by_alias=True)
    return values


def again(scenario: AnyScenario) -> tuple[str, str]:
    """Return the command that makes a scenario's run again, and its file where it is no shipped scenario."""
    changed = _changed(scenario)
    subject = scenario.name if changed is not None else f"{scenario.name}.yaml"
    command = " ".join(["wsc run", subject, *(f"--set {shlex.quote(change)}" for change in changed or ())])
    return command, "" if changed is not None else file_of(scenario, scenario.name)


def _changed(scenario: AnyScenario) -> tuple[str, ...] | None:
    """Return what is set otherwise than in the shipped scenario of that name; None if that is another or not there."""
    if scenario.name not in library():
        return None
    try:
        shipped = load(scenario.name)
    except FaultsError:
        return None
    if shipped.kind != scenario.kind:
        return None
    return tuple(f"{path}={json.dumps(value)}" for path, value in _differences(dumped(scenario), dumped(shipped)))


def _differences(left: Mapping[str, Json], right: Mapping[str, Json], above: str = "") -> Iterator[tuple[str, Json]]:
    """Yield path and value of what differs; maps whose keys differ are told as a whole."""
    for name, value in left.items():
        path, beside = f"{above}{name}", right.get(name)
        if value == beside or path in _NAMING:
            continue
        if isinstance(value, Mapping) and isinstance(beside, Mapping) and value.keys() == beside.keys():
            yield from _differences(value, beside, f"{path}.")
        else:
            yield path, value


def file_of(scenario: AnyScenario, name: str) -> str:
    """Return a scenario as a file of some name that says what differs from the defaults.

    Examples
    --------
    >>> from scenarios.report.subject import example
    >>> file_of(example().scenario, "other").splitlines()
    ['name: other', 'kind: queue', 'seed: 3']
    """
    changed = _differences(dumped(scenario), dumped(type(scenario)(name=scenario.name)))
    text, yaml = StringIO(), YAML()
    yaml.width = 100
    yaml.dump({"name": name, "kind": scenario.kind, **_nested(changed)}, text)
    return text.getvalue()


def _nested(values: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """Return values by dotted paths as maps in maps; those of one map follow each other."""
    split = ((*path.partition("."), value) for path, value in values)
    return {
        first: inner[0][3] if not inner[0][1] else _nested((rest, value) for _, _, rest, value in inner)
        for first, inner in ((first, list(group)) for first, group in groupby(split, key=itemgetter(0)))
    }
