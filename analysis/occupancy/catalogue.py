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
from models.queues.policies import POLICIES, Claim, Counterexample, PolicyName
from models.queues.serve import serve

Verdict = Literal["proved", "refuted", "open"]

_MATTERS_S = 1e-9


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """What is known of a claim for a policy: the theorem, or the example against it."""

    policy: PolicyName
    claim: Claim
    verdict: Verdict
    reason: str
    example: Counterexample | None = None


_FOLLOWS: dict[Claim, Claim] = {"completions": "each job", "expansion": "completions", "speed of one": "speed"}


def finding(policy: PolicyName, claim: Claim = "completions") -> PolicyFinding:
    """Return what is known of a claim for a policy (Kelly et al. 2008, section 4.2; proofs in docs/policies.md).

    Parameters
    ----------
    policy : scheduling policy
    claim : ``each job`` implies ``completions``, which implies ``expansion``; ``speed`` implies ``speed of one``
    """
    rules = POLICIES[policy]
    example = rules.refuted.get(claim)
    if claim == "speed of one" and "speed" in rules.refuted and rules.refuted["speed"].servers == 1:
        example = rules.refuted["speed"]
    if example is not None:
        return PolicyFinding(policy, claim, "refuted", f"{len(example.arrival_s)} jobs", example)
    if claim in rules.proved:
        return PolicyFinding(policy, claim, "proved", rules.proved[claim])
    if claim in _FOLLOWS:
        stronger = finding(policy, _FOLLOWS[claim])
        if stronger.verdict == "proved":
            return PolicyFinding(policy, claim, "proved", stronger.reason)
    return PolicyFinding(policy, claim, "open", "")


def proved(policy: PolicyName, claim: Claim) -> bool:
    """Return whether a claim is proved for a policy."""
    return finding(policy, claim).verdict == "proved"


def divides_queueing(policy: PolicyName, servers: int) -> bool:
    """Return whether servers s times as fast are proved to divide queueing at least by s.

    Examples
    --------
    >>> [(divides_queueing(policy, 1), divides_queueing(policy, 2)) for policy in ("ps", "srpt", "rr")]
    [(True, True), (True, False), (False, False)]
    """
    return proved(policy, "speed of one" if servers == 1 else "speed")


def never_more_work(policy: PolicyName) -> bool:
    """Return whether more or faster servers are proved to have no more work left at any time, which B3 needs.

    Where no job is ever further behind, as the proofs of ``each job`` show, nor is their sum. Under srpt single jobs
    may be, but the remaining demands in falling order are nowhere larger (docs/laws.md, B3).

    Examples
    --------
    >>> [never_more_work(policy) for policy in ("ps", "srpt", "rr")]
    [True, True, False]
    """
    return POLICIES[policy].no_more_work or finding(policy, "each job").verdict == "proved"


def catalogue() -> pd.DataFrame:
    """Return every finding: policy, claim, verdict, reason."""
    known = [finding(policy, claim) for policy, claim in product(POLICIES, get_args(Claim))]
    return pd.DataFrame(
        [{"policy": f.policy, "claim": f.claim, "verdict": f.verdict, "reason": f.reason} for f in known]
    )


def broken(policy: PolicyName, claim: Claim, example: Counterexample) -> bool:
    """Return whether a workload breaks a claim, by serving it both ways."""
    speed = claim in {"speed", "speed of one"}
    if speed != (example.to == 0):
        raise InputError(f"an example for {claim} needs {'a speed and no' if speed else 'a'} number `to`")
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
    if speed:
        return queueing_s[1] > queueing_s[0] / example.speed + _MATTERS_S
    return queueing_s[0] - queueing_s[1] < _between(arrival_s, before, example.servers, example.to) - _MATTERS_S


def _departures(policy: PolicyName, example: Counterexample, servers: int, speed: float) -> Floats:
    demand_s = np.asarray(example.demand_s, dtype=float) / speed
    served = serve(
        policy, example.arrival_s, demand_s, servers,
        priority=example.priority if POLICIES[policy].order == "class" else None,
        choice=example.choice if POLICIES[policy].order == "drawn" else None,
        quantum_s=example.quantum_s,
    )  # fmt: skip
    return served.departure_s


def _between(arrival_s: Floats, departure_s: Floats, servers: int, to: int) -> float:
    """Return the area of the occupancy curve between two levels, step by step."""
    times = np.unique(np.concatenate([arrival_s, departure_s]))
    present = [np.sum((arrival_s <= t) & (departure_s > t)) for t in times[:-1]]
    return float(np.sum(np.clip(present, servers, to) * np.diff(times)) - servers * np.sum(np.diff(times)))
