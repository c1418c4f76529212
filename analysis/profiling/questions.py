"""Common questions to a fleet's profile, each answered by one documented function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from analysis.profiling import code_questions, place_questions, time_questions
from analysis.profiling.asking import Value, read
from analysis.profiling.held import Profile


@dataclass(frozen=True, slots=True)
class Question:
    """A question, why it is asked, and what it may be told; see the answer's docstring for its columns."""

    name: str
    """Short name, as in addresses of pages."""
    title: str
    """The question itself."""
    why: str
    """What the answer decides, and what it does not say."""
    parameters: Mapping[str, Value]
    """Names and defaults."""
    answer: Callable[..., pd.DataFrame]
    """From a database and all parameters to a table."""

    def ask(self, database: Profile, **given: Value) -> pd.DataFrame:
        """Return the answer, with defaults for what is not given.

        Parameters
        ----------
        database : asked
        given : parameters; text is read as the default's type

        Raises
        ------
        QueryError
            If a parameter is unknown or wrong, or the profile lacks what is needed.

        Examples
        --------
        >>> question = Question("n", "How many?", "", {"top": 1}, lambda database, top: pd.DataFrame({"n": [top]}))
        >>> question.ask(None, top="3")["n"].tolist()
        [3]
        """
        return self.answer(database, **read(self.parameters, given))


def _by(dimension: str) -> Callable[..., pd.DataFrame]:
    def answer(database: Profile, application: str, event: str, top: int) -> pd.DataFrame:
        return time_questions.rollout(database, dimension, application, event, top)

    return answer


_OVER_DAYS: Mapping[str, Value] = MappingProxyType({"application": "", "event": "cycles", "top": 200})

_ALL = (
    Question(
        "shared",
        "Which shared code is hottest?",
        "Code that is hot in no single application can be large in the sum, and is worth one team's work.",
        {"by": "function", "event": "cycles", "top": 20},
        code_questions.shared,
    ),
    Question(
        "savings",
        "What would a cheaper function save?",
        "For a change of a function's cost: cycles and core-hours over the days of the profile; core-hours and money a "
        "year, in the currency of price_per_core_hour. As precise as its sampled share.",
        {"function": "", "change": 0.01, "price_per_core_hour": 0.03, "top": 20},
        code_questions.savings,
    ),
    Question(
        "deprecated",
        "Who calls code that is to be deprecated?",
        "The largest callers, from sampled call paths; rare callers may be missed.",
        {"function": "", "event": "cpu_time", "top": 20},
        code_questions.deprecated,
    ),
    Question(
        "floating-point",
        "How many instructions are floating-point?",
        "Whether a coprocessor would pay; from disassembled code, so within a function all calls count alike.",
        {"by": "application", "trait": "floating_point", "top": 20},
        code_questions.instruction_class,
    ),
    Question(
        "old-hardware",
        "Which jobs are left on old hardware?",
        "What has to move before machines are retired, and whether it gains by moving.",
        {"old": "", "top": 20},
        place_questions.old_hardware,
    ),
    Question(
        "locks",
        "Which locks are most contended?",
        "Time waited, by the function that waits; waiting threads may cost no cycles.",
        {"event": "lock_wait", "top": 20},
        code_questions.locks,
    ),
    Question(
        "memory",
        "Who holds most memory?",
        "Mean live heap, by application or by the function that allocated it.",
        {"by": "application", "event": "heap_bytes", "top": 20},
        code_questions.memory,
    ),
    Question(
        "colocate",
        "Which jobs suffer beside which others?",
        "Candidates for moving apart or together; seen on several visited machines, not tried. Effects are changes of "
        "the natural logarithm of CPI: 0.05 is 5% more cycles per instruction.",
        {"min_visits": 5, "min_machines": 5, "top": 20},
        place_questions.colocate,
    ),
    Question(
        "fdo",
        "Which code suits feedback-directed optimisation badly?",
        "Where profiles differ between machines or days beyond sampling, one profile misleads the compiler.",
        {"across": "machine", "min_excess": 0.25, "event": "cycles", "top": 20},
        time_questions.unsuited,
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
        "Share of each compiler day by day, by what is executed and not by what is built.",
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
