"""Which scheduling policies keep what the capacity laws ask of them: proved, refuted by an example, or open.

Proofs are in docs/policies.md. Every example can be served again (`broken`), and the tests search for smaller ones.
"""

from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
import pandas as pd

from models.arrays import Floats
from models.errors import InputError
from models.queues.policy import Policy
from models.queues.serve import serve

Claim = Literal["each job", "completions", "expansion", "speed"]
"""Every job departs no later; D_k'(t) >= D_k(t) (Assumption 3); the Capacity Expansion Law; Q_s <= Q / s."""
Verdict = Literal["proved", "refuted", "open"]

_MATTERS_S = 1e-9


@dataclass(frozen=True, slots=True)
class Example:
    """A workload for which a claim fails: the least number of jobs, then the least work, that a search found."""

    servers: int
    arrival_s: tuple[float, ...]
    demand_s: tuple[float, ...]
    to: int = 0
    """More servers; 0 where the example is about speed."""
    speed: float = 1.0
    priority: tuple[int, ...] | None = None
    choice: tuple[float, ...] | None = None
    quantum_s: float = 0.1


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a claim for a policy: the theorem, or the example against it."""

    policy: Policy
    claim: Claim
    verdict: Verdict
    reason: str
    example: Example | None = None


_ORDER, _SHARING, _LEAST, _SORTED = "static priority", "processor sharing", "feedback", "SRPT"
_THEOREMS: dict[tuple[Policy, Claim], str] = {
    **{(policy, "each job"): _ORDER for policy in ("fcfs", "lcfs_pr", "priority")},
    ("ps", "each job"): _SHARING,
    ("fb", "each job"): _LEAST,
    ("srpt", "completions"): _SORTED,
    ("fcfs", "speed"): "Kiefer and Wolfowitz",
}

_TWICE, _BURST = (0.0, 0.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 0.0, 1.0)
_EXAMPLES: dict[tuple[Policy, Claim], Example] = {
    ("lcfs", "each job"): Example(1, _TWICE, (1, 1, 2, 2, 1), to=2),
    ("lcfs", "completions"): Example(1, _TWICE, (1, 1, 3, 3, 1), to=2),
    ("lcfs", "expansion"): Example(1, _TWICE, (1, 1, 4, 4, 1), to=2),
    ("lcfs", "speed"): Example(1, (0, 1, 2), (3, 3, 1), speed=1.5),
    ("sjf", "each job"): Example(1, _BURST, (1, 1, 2, 2, 1), to=2),
    ("sjf", "completions"): Example(1, _BURST, (1, 1, 3, 3, 1), to=2),
    ("sjf", "expansion"): Example(1, _BURST, (1, 1, 4, 4, 1), to=2),
    ("sjf", "speed"): Example(1, (0, 0, 1), (2, 4, 1), speed=2.0),
    ("random", "each job"): Example(1, (0, 0, 0, 0), (1, 2, 1, 1), to=2, choice=(0.5, 0, 0, 0)),
    ("random", "completions"): Example(1, (0, 0, 0, 0), (1, 3, 1, 2), to=2, choice=(0.5, 0, 0, 0)),
    ("random", "expansion"): Example(1, (0, 0, 0, 0), (1, 3, 1, 2), to=2, choice=(0.5, 0, 0, 0)),
    ("random", "speed"): Example(1, (0, 1, 2), (3, 4, 1), speed=1.5, choice=(0.5, 0.5, 0.5)),
    ("rr", "each job"): Example(2, (0, 1, 1, 6, 6), (3, 6, 6, 1, 1), to=3, quantum_s=2.0),
    ("rr", "completions"): Example(2, (0, 1, 1, 6, 6), (3, 7, 7, 1, 1), to=3, quantum_s=2.0),
    ("rr", "expansion"): Example(2, (0, 1, 1, 6, 6), (3, 7, 7, 2, 1), to=3, quantum_s=2.0),
    ("rr", "speed"): Example(1, (0, 0), (2, 1), speed=1.1, quantum_s=1.0),
    ("srpt", "each job"): Example(1, (0, 0, 0, 0, 2), (2, 2, 1, 1, 1), to=2),
    ("lcfs_pr", "speed"): Example(2, (0, 2, 2, 2, 3), (4, 1, 5, 2, 2), speed=1.1),
    ("priority", "speed"): Example(2, (0, 2, 2, 2, 3), (4, 1, 5, 2, 2), speed=1.1, priority=(4, 3, 2, 1, 0)),
}

_FOLLOWS: dict[Claim, Claim] = {"completions": "each job", "expansion": "completions"}


def finding(policy: Policy, claim: Claim = "completions") -> Finding:
    """Return what is known of a claim for a policy (Kelly et al. 2008, section 4.2; proofs in docs/policies.md).

    Parameters
    ----------
    policy : scheduling policy
    claim : ``each job`` implies ``completions``, which implies ``expansion``

    Examples
    --------
    >>> finding("ps").verdict, finding("rr").verdict, finding("ps", "speed").verdict
    ('proved', 'refuted', 'open')
    """
    example = _EXAMPLES.get((policy, claim))
    if example is not None:
        return Finding(policy, claim, "refuted", f"{len(example.arrival_s)} jobs", example)
    if (policy, claim) in _THEOREMS:
        return Finding(policy, claim, "proved", _THEOREMS[policy, claim])
    if claim in _FOLLOWS:
        stronger = finding(policy, _FOLLOWS[claim])
        if stronger.verdict == "proved":
            return Finding(policy, claim, "proved", stronger.reason)
    return Finding(policy, claim, "open", "")


def never_more_work(policy: Policy) -> bool:
    """Return whether more or faster servers are proved to have no more work left at any time, which B3 needs.

    Where no job is ever further behind, as the proofs of ``each job`` show, nor is their sum. Under srpt single jobs
    may be, but the remaining demands in falling order are nowhere larger (docs/laws.md, B3).

    Parameters
    ----------
    policy : scheduling policy

    Examples
    --------
    >>> [never_more_work(policy) for policy in ("ps", "srpt", "rr")]
    [True, True, False]
    """
    return policy == "srpt" or finding(policy, "each job").verdict == "proved"


def catalogue() -> pd.DataFrame:
    """Return every finding: policy, claim, verdict, reason.

    Examples
    --------
    >>> table = catalogue()
    >>> table[table["policy"] == "srpt"]["verdict"].tolist()
    ['refuted', 'proved', 'proved', 'open']
    """
    known = [finding(policy, claim) for policy, claim in product(get_args(Policy), get_args(Claim))]
    return pd.DataFrame(
        [{"policy": f.policy, "claim": f.claim, "verdict": f.verdict, "reason": f.reason} for f in known]
    )


def broken(policy: Policy, claim: Claim, example: Example) -> bool:
    """Return whether a workload breaks a claim, by serving it both ways.

    Parameters
    ----------
    policy : scheduling policy
    claim : what should hold
    example : the workload, and what is changed

    Raises
    ------
    ValueError
        If the example is about speed and the claim is not, or the other way round.

    Examples
    --------
    >>> broken("sjf", "completions", finding("sjf", "completions").example)
    True
    >>> broken("fb", "completions", finding("sjf", "completions").example)
    False
    """
    if (claim == "speed") != (example.to == 0):
        raise InputError(f"an example for {claim} needs {'a speed and no' if claim == 'speed' else 'a'} number `to`")
    before = _departures(policy, example, example.servers, 1.0)
    after = _departures(policy, example, example.to or example.servers, example.speed)
    arrival_s = np.asarray(example.arrival_s, dtype=float)
    if claim == "each job":
        return bool((after > before + _MATTERS_S).any())
    if claim == "completions":
        return bool((np.sort(after) > np.sort(before) + _MATTERS_S).any())
    work_s = float(np.sum(example.demand_s))
    queueing_s = [
        float((ends - arrival_s).sum()) - work_s / speed for ends, speed in ((before, 1), (after, example.speed))
    ]
    if claim == "speed":
        return queueing_s[1] > queueing_s[0] / example.speed + _MATTERS_S
    return queueing_s[0] - queueing_s[1] < _between(arrival_s, before, example.servers, example.to) - _MATTERS_S


def _departures(policy: Policy, example: Example, servers: int, speed: float) -> Floats:
    demand_s = np.asarray(example.demand_s, dtype=float) / speed
    served = serve(
        policy, example.arrival_s, demand_s, servers,
        priority=example.priority if policy == "priority" else None,
        choice=example.choice if policy == "random" else None,
        quantum_s=example.quantum_s,
    )  # fmt: skip
    return served.departure_s


def _between(arrival_s: Floats, departure_s: Floats, servers: int, to: int) -> float:
    """Return the area of the occupancy curve between two levels, step by step."""
    times = np.unique(np.concatenate([arrival_s, departure_s]))
    present = [np.sum((arrival_s <= t) & (departure_s > t)) for t in times[:-1]]
    return float(np.sum(np.clip(present, servers, to) * np.diff(times)) - servers * np.sum(np.diff(times)))
