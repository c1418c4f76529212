"""`wsc profile ask`: the named questions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.profiling.questions.question import Value
from scenarios.files.faults import Fault, FaultsError
from scenarios.profiling.colocate_trial import TakenApart
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Says, Section, says, table
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.questions.question import Question


@dataclass(frozen=True, slots=True, repr=False)
class QuestionList(Conclusion):
    """The questions that there are."""

    questions: "tuple[Question, ...]"

    def frame(self) -> "pd.DataFrame":
        """Return name, title, why and parameters, one row a question."""
        import pandas as pd

        return pd.DataFrame(self.payload())

    def payload(self) -> Sequence[Payload]:
        """Return what ``--json`` prints."""
        return [
            {"name": question.name, "title": question.title, "why": question.why}
            | {"parameters": dict(question.parameters)}
            for question in self.questions
        ]

    def section(self) -> Section:
        """Return the questions and their parameters with defaults."""
        rows = [
            (question.name, question.title, ", ".join(f"{name}={value}" for name, value in question.parameters.items()))
            for question in self.questions
        ]
        return Section("", (table(("question", "what it answers", "parameters"), rows, words=3),))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuestionAnswer(Conclusion):
    """What a profile answers to a named question."""

    question: "Question"
    parameters: Mapping[str, Value]
    """Of the question, those that were not given too."""
    table: "pd.DataFrame"
    """As the question's function documents it."""
    tried: tuple[TakenApart, ...] | None = None
    """Of colocate, if it was judged: each pair taken apart in simulation."""

    def frame(self) -> "pd.DataFrame":
        """Return the answer's rows."""
        return self.table

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        payload = {
            "kind": "profile ask",
            "name": self.question.name,
            "title": self.question.title,
            "why": self.question.why,
            "parameters": dict(self.parameters),
            "rows": self.table.to_dict("records"),
        }
        return payload if self.tried is None else payload | {"tried": [pair.payload() for pair in self.tried]}

    def section(self) -> Section:
        """Return the question, why one asks it, and the answer as a table."""
        from scenarios.profiling import colocate_trial

        judged = () if self.tried is None else colocate_trial.blocks(self.tried)
        return Section(
            "",
            (
                Says(self.question.title),
                *says(self.question.why, mark="quiet"),
                of_rows(self.table),
                *judged,
            ),
        )


def listing() -> QuestionList:
    """Return the questions: name, title, why, parameters with their defaults.

    Examples
    --------
    >>> [question.name for question in listing().questions][:2]
    ['shared', 'savings']
    """
    from analysis.profiling.questions.catalogue import QUESTIONS

    return QuestionList(tuple(QUESTIONS.values()))


def ask(folder: Path, name: str, given: Iterable[str]) -> QuestionAnswer:
    """Return the answer of a named question.

    Parameters
    ----------
    folder : a profile directory
    name : a name of `listing`
    given : parameters such as ``function=inflate_fast``

    Raises
    ------
    FaultsError
        If there is no such question, or a parameter has no value.
    QueryError, ProfileError
        If a parameter is wrong, or the folder is no profile.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.questions.catalogue import QUESTIONS
    from scenarios.views.numbers import closest

    if name not in QUESTIONS:
        near = closest(name, QUESTIONS, "wsc profile ask --list")
        raise FaultsError([Fault("QUESTION", 0, 0, "", f"there is none of this name; {near}", name)])
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise FaultsError([Fault("--set", 0, 0, "", "should be PARAMETER=VALUE", text) for text in wrong])
    question = QUESTIONS[name]
    parameters: dict[str, Value] = {key.strip(): value.strip() for key, value in (text.split("=", 1) for text in given)}
    with Database([folder]) as database:
        answer = question.ask(database, **parameters)
    return QuestionAnswer(question, {**question.parameters, **parameters}, answer)
