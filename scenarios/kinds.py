"""The kinds of scenarios: how each is built from a file, how it is checked, and which of its values name files."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from scenarios.files.checks import fleet as checks
from scenarios.files.checks import profile as profile_checks
from scenarios.files.checks import queue as queue_checks
from scenarios.files.checks import service as service_checks
from scenarios.files.findings import Check, Finding, made
from scenarios.files.schema import PROFILE, QUEUE, SCENARIO, SERVICE, AnyScenario
from scenarios.files.source import beside, named_beside

Resolve: TypeAlias = Callable[[str, Path], str]
"""From what a file says of another, and the file that says it, to the other as seen from the working directory."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of scenario."""

    adapter: TypeAdapter[Any]
    """Builds it from a file's values, and writes it into a manifest."""
    checks: Mapping[Check[Any], Sequence[str]]
    """What its fields must satisfy together, each check with the fields that it needs."""
    files: Mapping[tuple[str, ...], Resolve] = field(default_factory=dict)
    """The ways to values that name a file relative to the file that says them, and how each is found from there."""
    draws: str = "analyses.wsmeter.draws"
    """Dotted path of what `wsc validate --draws` sets."""


KINDS: Mapping[str, Kind] = {
    "fleet": Kind(SCENARIO, checks.CHECKS),
    "queue": Kind(
        QUEUE, queue_checks.CHECKS, {("load", "trace", "file"): beside, ("load", "job", "scenario"): named_beside}
    ),
    "cross_platform": Kind(SERVICE, service_checks.CHECKS, draws="analyses.crossplatform.worlds"),
    "profile": Kind(PROFILE, profile_checks.CHECKS, draws="analyses.profiling.draws"),
}


def findings(scenario: AnyScenario, faulty: Set[str] = frozenset()) -> list[Finding]:
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
    >>> found = findings(Scenario(name="day", epoch_s=7.0))[0]
    >>> found.keys, found.problem, found.got
    (('epoch_s',), 'should divide horizon_s = 86400', '7')
    """
    return made(KINDS[scenario.kind].checks, scenario, faulty)
