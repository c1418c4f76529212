"""What is wrong between the fields of a scenario: what checks find, and which checks can be made."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from scenarios.files.tree import Keys, Place

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


def made(checks: Mapping[Check[_S], Sequence[str]], scenario: _S, faulty: Set[str] = frozenset()) -> list[Finding]:
    """Return what checks find in a scenario.

    Parameters
    ----------
    checks : each with the dotted paths of the fields that it needs
    scenario : what is checked
    faulty : dotted paths of fields that are wrong by themselves; checks that need one of them are left out

    Examples
    --------
    >>> made({lambda number: [Finding(("seed",), "is odd")] if number % 2 else []: ("seed",)}, 3)
    [Finding(keys=('seed',), problem='is odd', got='', place=None)]
    """
    able = (check for check, needs in checks.items() if not any(_overlap(a, b) for a in needs for b in faulty))
    return [finding for check in able for finding in check(scenario)]


def repeated(items: Sequence[_T]) -> Iterator[tuple[int, _T]]:
    """Yield position and value of every item that was there before.

    Examples
    --------
    >>> list(repeated(["a", "b", "a"]))
    [(2, 'a')]
    """
    seen = Counter[_T]()
    for i, item in enumerate(items):
        if seen[item]:
            yield i, item
        seen[item] += 1


def _overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
