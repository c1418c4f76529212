"""The scheduling policies of a station in one table: what each does, how it is computed, and what is proved of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

PolicyName: TypeAlias = Literal["fcfs", "lcfs", "lcfs_pr", "ps", "rr", "srpt", "sjf", "fb", "priority", "random"]
"""First come first served; last come first served without and with preemption; processor sharing; round robin; shortest
remaining processing time; shortest job first; feedback (least attained service); static preemptive priority; random."""
Claim: TypeAlias = Literal["each job", "completions", "expansion", "speed of one", "speed"]
"""Every job departs no later; D_k'(t) >= D_k(t) (Assumption 3); the Capacity Expansion Law; Q_s <= Q / s on one server,
and on any number of servers."""
RuleName: TypeAlias = Literal["utilisation", "present", "queueing", "law"]
"""Rules by which servers are ordered: by busy servers, by requests present, by waiting time, by the Occupancy Law."""
MOST_SLICES: Final = 100_000_000
"""Time slices of round robin that can be waited for: some 10 s."""


@dataclass(frozen=True, slots=True)
class Counterexample:
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
class Policy:
    """One policy."""

    name: PolicyName
    code: int
    """By which compiled kernels know it."""
    words: str
    sharing: Literal["cores", "evenly", "least attained"] = "cores"
    """Whether every job in service holds a core, all present share the servers, or those with least attained do."""
    order: Literal["arrival", "latest", "remaining", "size", "class", "drawn"] = "arrival"
    """Of those that hold cores, who comes first."""
    preemptive: bool = False
    """Whether who comes first takes the core of whom it comes before."""
    sliced: bool = False
    """Whether a core is held for a quantum at a time."""
    open_form: bool = False
    """Whether servers of speed 1 and open arrivals have compiled kernels of their own (`models.queues.open`)."""
    hidden: str = ""
    """Why demands cannot be reconstructed from a log of several servers; empty if they can."""
    proved: Mapping[Claim, str] = field(default_factory=dict)
    """Claims and their theorems (docs/policies.md); what follows from them is not repeated."""
    refuted: Mapping[Claim, Counterexample] = field(default_factory=dict)
    no_more_work: bool = False
    """Whether more or faster servers never have more work left although single jobs may be further behind."""

    @property
    def migrates(self) -> bool:
        """Whether a request moves to a faster server as soon as one is free."""
        return self.preemptive or self.sharing != "cores"

    @property
    def reconstructed_on_several(self) -> bool:
        """Whether demands follow from a log of several servers."""
        return not self.hidden


_ORDER, _SHARING, _LEAST, _SORTED = "static priority", "processor sharing", "feedback", "SRPT"
_AHEAD = "work ahead"
_TWICE, _BURST = (0.0, 0.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 0.0, 1.0)
_OVERTAKEN = (2, (0, 2, 2, 2, 3), (4, 1, 5, 2, 2))
_AT_ONCE = (0, 0, 0, 0)
_LATER = (0, 1, 1, 6, 6)

POLICIES: Final[Mapping[PolicyName, Policy]] = {
    policy.name: policy
    for policy in (
        Policy(
            "fcfs",
            0,
            "first come, first served",
            open_form=True,
            proved={"each job": _ORDER, "speed": "Kiefer and Wolfowitz"},
        ),
        Policy(
            "lcfs",
            1,
            "last come, first served, without preemption",
            order="latest",
            refuted={
                "each job": Counterexample(1, _TWICE, (1, 1, 2, 2, 1), to=2),
                "completions": Counterexample(1, _TWICE, (1, 1, 3, 3, 1), to=2),
                "expansion": Counterexample(1, _TWICE, (1, 1, 4, 4, 1), to=2),
                "speed": Counterexample(1, (0, 1, 2), (3, 3, 1), speed=1.5),
            },
        ),
        Policy(
            "lcfs_pr",
            2,
            "last come, first served, with preemption",
            order="latest",
            preemptive=True,
            proved={"each job": _ORDER, "speed of one": _AHEAD},
            refuted={"speed": Counterexample(*_OVERTAKEN, speed=1.1)},
        ),
        Policy(
            "ps",
            3,
            "processor sharing: all requests share the servers evenly",
            sharing="evenly",
            open_form=True,
            proved={"each job": _SHARING, "speed": "gaps on the clock of service"},
        ),
        Policy(
            "rr",
            4,
            "round robin: a time slice for each request in turn",
            sliced=True,
            open_form=True,
            refuted={
                "each job": Counterexample(2, _LATER, (3, 6, 6, 1, 1), to=3, quantum_s=2.0),
                "completions": Counterexample(2, _LATER, (3, 7, 7, 1, 1), to=3, quantum_s=2.0),
                "expansion": Counterexample(2, _LATER, (3, 7, 7, 2, 1), to=3, quantum_s=2.0),
                "speed": Counterexample(1, (0, 0), (2, 1), speed=1.1, quantum_s=1.0),
            },
        ),
        Policy(
            "fb",
            7,
            "feedback: the requests with the least attained service share the servers",
            sharing="least attained",
            proved={"each job": _LEAST, "speed of one": _AHEAD},
        ),
        Policy(
            "srpt",
            5,
            "shortest remaining processing time, with preemption",
            order="remaining",
            preemptive=True,
            open_form=True,
            proved={"completions": _SORTED, "speed of one": "feasible deadlines"},
            refuted={"each job": Counterexample(1, (0, 0, 0, 0, 2), (2, 2, 1, 1, 1), to=2)},
            no_more_work=True,
        ),
        Policy(
            "sjf",
            6,
            "shortest job first, without preemption",
            order="size",
            refuted={
                "each job": Counterexample(1, _BURST, (1, 1, 2, 2, 1), to=2),
                "completions": Counterexample(1, _BURST, (1, 1, 3, 3, 1), to=2),
                "expansion": Counterexample(1, _BURST, (1, 1, 4, 4, 1), to=2),
                "speed": Counterexample(1, (0, 0, 1), (2, 4, 1), speed=2.0),
            },
        ),
        Policy(
            "random",
            9,
            "a waiting request drawn at random, without preemption",
            order="drawn",
            hidden="whom a server took does not follow from arrivals and departures",
            refuted={
                "each job": Counterexample(1, _AT_ONCE, (1, 2, 1, 1), to=2, choice=(0.5, 0, 0, 0)),
                "completions": Counterexample(1, _AT_ONCE, (1, 3, 1, 2), to=2, choice=(0.5, 0, 0, 0)),
                "expansion": Counterexample(1, _AT_ONCE, (1, 3, 1, 2), to=2, choice=(0.5, 0, 0, 0)),
                "speed": Counterexample(1, (0, 1, 2), (3, 4, 1), speed=1.5, choice=(0.5, 0.5, 0.5)),
            },
        ),
        Policy(
            "priority",
            8,
            "static priority: the lowest class number first, with preemption",
            order="class",
            preemptive=True,
            open_form=True,
            proved={"each job": _ORDER, "speed of one": _AHEAD},
            refuted={"speed": Counterexample(*_OVERTAKEN, speed=1.1, priority=(4, 3, 2, 1, 0))},
        ),
    )
}
"""Every policy, in the order in which one is named where several explain a log alike."""
LIMITED: Final = tuple(name for name, policy in POLICIES.items() if not policy.sliced and name != "fb")
"""Policies under which a station may have limits or change its servers."""
PATIENT: Final = tuple(name for name in LIMITED if name != "ps")
"""Policies under which requests wait, so that they may give up."""
