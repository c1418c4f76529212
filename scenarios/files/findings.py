"""What is wrong between the fields of a scenario: what checks find, and which checks can be made."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from scenarios.files.tree import Keys, Place
from scenarios.kinds import KINDS

if TYPE_CHECKING:
    from scenarios.files.schema import AnyScenario

_T = TypeVar("_T", bound=Hashable)
_S = TypeVar("_S")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong between fields: the way to the one that is blamed, the problem and what was found."""

    keys: Keys
    problem: str
    got: str = ""
    place: Place | None = None
    """Where it stands, if in another file than the scenario's own."""


Check: TypeAlias = Callable[[_S], Iterable[Finding]]


def findings(scenario: "AnyScenario", faulty: Set[str] = frozenset()) -> list[Finding]:
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
    >>> [wrong] = findings(Scenario(name="day", epoch_s=7.0))
    >>> wrong.keys, wrong.problem, wrong.got
    (('epoch_s',), 'should divide horizon_s = 86400', '7')
    """
    return checked(KINDS[scenario.kind].checks, scenario, faulty)


def checked(checks: Mapping[Check[_S], Sequence[str]], scenario: _S, faulty: Set[str] = frozenset()) -> list[Finding]:
    """Return what some checks find, each with the dotted paths of the fields that it needs."""
    able = (check for check, needs in checks.items() if not any(_overlap(a, b) for a in needs for b in faulty))
    return [finding for check in able for finding in check(scenario)]


def repeated(items: Sequence[_T]) -> Iterator[tuple[int, _T]]:
    """Yield position and value of every item that was there before.

    Examples
    --------
    >>> list(repeated(["a", "b", "a"]))
    [(2, 'a')]
    """
    counts = Counter[_T]()
    for i, item in enumerate(items):
        if counts[item]:
            yield i, item
        counts[item] += 1


def _overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
