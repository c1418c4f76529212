"""Common questions to a fleet's profile, each answered by one documented function."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import pandas as pd

from analysis.profiling.query import Profile
from analysis.profiling.questions import code, corunners, days, places
from analysis.profiling.questions.question import Question, Value


def _by(dimension: str) -> Callable[..., pd.DataFrame]:
    def answer(database: Profile, application: str, event: str, top: int) -> pd.DataFrame:
        return days.rollout(database, dimension, application, event, top)

    return answer


_OVER_DAYS: Mapping[str, Value] = MappingProxyType({"application": "", "event": "cycles", "top": 200})

_ALL = (
    Question(
        "shared",
        "Which shared code is hottest?",
        "Code that is hot in no single application can be large in the sum, and is worth one team's work.",
        {"by": "function", "event": "cycles", "top": 20},
        code.shared,
        nothing="nothing is run by two applications or more; what a file is of, wsc profile import --service-from says",
    ),
    Question(
        "savings",
        "What would a cheaper function save?",
        "For a change of a function's cost: cycles, or another event, and core-hours over the days of the profile; "
        "core-hours and money a year, in the currency of price_per_core_hour. As precise as its sampled share.",
        {"function": "", "change": 0.01, "event": "cycles", "price_per_core_hour": 0.03, "top": 20},
        code.savings,
    ),
    Question(
        "deprecated",
        "Who calls code that is to be deprecated?",
        "The largest callers, from sampled call paths; rare callers may be missed.",
        {"function": "", "event": "cpu_time", "top": 20},
        code.deprecated,
    ),
    Question(
        "floating-point",
        "How many instructions are floating-point?",
        "Whether a coprocessor would pay; from disassembled code, so within a function all calls count alike.",
        {"by": "application", "trait": "floating_point", "top": 20},
        code.instruction_class,
    ),
    Question(
        "old-hardware",
        "Which jobs are left on old hardware?",
        "Jobs that must move before machines are retired, and whether they gain by moving.",
        {"old": "", "top": 20},
        places.old_hardware,
    ),
    Question(
        "locks",
        "Which locks are most contended?",
        "Time waited, by the function that waits; waiting threads may cost no cycles.",
        {"event": "lock_wait", "top": 20},
        code.locks,
    ),
    Question(
        "memory",
        "Who holds most memory?",
        "Mean live heap, by application or by the function that allocated it; of an event such as alloc_space, all "
        "that was allocated, freed or not.",
        {"by": "application", "event": "heap_bytes", "top": 20},
        code.memory,
    ),
    Question(
        "colocate",
        "Which jobs suffer beside which others?",
        "Candidates for moving apart or together: first by what was seen on visited machines, then, also for jobs that "
        "were never seen together, by one's sensitivity and the other's cache misses. Effects are changes of the "
        "natural logarithm of CPI: 0.05 is 5% more cycles per instruction.",
        {"min_visits": 5, "min_machines": 5, "top": 20, "threads": 4.0, "application": "", "beside": ""},
        places.colocate,
        corunners.predicted_pairs,
    ),
    Question(
        "fdo",
        "Which code suits feedback-directed optimisation badly?",
        "Where profiles differ between machines or days beyond sampling, one profile misleads the compiler.",
        {"across": "machine", "min_excess": 0.25, "event": "cycles", "top": 20},
        days.unsuited,
    ),
    Question(
        "versions",
        "How far are new versions rolled out?",
        "Share of each revision day by day, of one application or of all.",
        _OVER_DAYS,
        _by("revision"),
    ),
    Question(
        "compilers",
        "How far is the compiler rolled out?",
        "Share of each compiler day by day, by executed and not by built code.",
        _OVER_DAYS,
        _by("compiler"),
    ),
    Question(
        "platforms",
        "How does the mix of platforms change?",
        "Share of each platform day by day.",
        _OVER_DAYS,
        _by("platform"),
    ),
    Question(
        "kernels",
        "How far is the operating system's kernel rolled out?",
        "Share of each kernel version day by day.",
        _OVER_DAYS,
        _by("kernel"),
    ),
)

QUESTIONS: Mapping[str, Question] = MappingProxyType({question.name: question for question in _ALL})
"""All documented questions by name."""
