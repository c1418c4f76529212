"""Scheduling policies that other people write: functions of what is known of a request; the least number comes first.

`models.queues.station.by_key` serves by it.
"""

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import ClassVar, Final, Protocol, cast

from models.code.formulas import Formula
from models.code.parts import is_part, part
from models.queues.policies import POLICIES, Policy, PolicyName


class PolicyFunction(Protocol):
    """A queue policy of one's own: the waiting request with the least number is served first.

    Examples
    --------
    >>> def shortest(arrival_s: float, demand_s: float, remaining_s: float, priority: float) -> float:
    ...     return demand_s
    >>> policy: PolicyFunction = shortest
    """

    def __call__(self, arrival_s: float, demand_s: float, remaining_s: float, priority: float) -> float:
        """Return the request's place in the line; equal ones go by arrival.

        Parameters
        ----------
        arrival_s : when it arrived, seconds
        demand_s, remaining_s : what it needs and what it still needs on a server of speed 1, seconds
        priority : the class of its type
        """


PARAMETERS: Final = tuple(signature(PolicyFunction.__call__).parameters)[1:]


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """Whoever has the least key comes first, of equal ones who arrived first.

    A key is taken when a request arrives. A policy that is marked ``preemptive`` takes the keys of those in service
    anew whenever a request arrives or leaves, and who comes first takes the core of whom it comes before.
    """

    key: Formula
    preemptive: bool
    sliced: ClassVar[bool] = False

    @property
    def migrates(self) -> bool:
        """Whether a request moves to a faster server as soon as one is free."""
        return self.preemptive


def own_policy(text: str, folder: Path = Path()) -> OwnPolicy:
    """Return the policy that a name such as ``mine.py:shortest_first`` stands for.

    Parameters
    ----------
    text : the name
    folder : to which a file is relative

    Raises
    ------
    PartError
        If there is no such function, or it has other parameters than `PARAMETERS`.
    """
    key = Formula(part(text, folder), PARAMETERS)
    _ = key.function
    return OwnPolicy(key, key.has("preemptive"))


def scheduling(name: str) -> PolicyName | OwnPolicy:
    """Return what `models.queues.serve.serve` takes as the policy of this name.

    Examples
    --------
    >>> scheduling("ps")
    'ps'
    """
    return own_policy(name) if is_part(name) else cast(PolicyName, name)


def rules_of(name: str) -> Policy | OwnPolicy:
    """Return what is known of the policy of this name, whoever wrote it.

    Examples
    --------
    >>> rules_of("srpt").migrates
    True
    """
    policy = scheduling(name)
    return policy if isinstance(policy, OwnPolicy) else POLICIES[policy]
