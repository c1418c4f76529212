"""`wsc profile ask`: the named questions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.profiling.questions.question import Value
from scenarios.files.faults import Fault, FaultsError
from scenarios.profiling.beside_trial import TriedPairs
from scenarios.profiling.colocate_trial import TakenApart
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import number
from scenarios.views.section import Block, Says, Section, says, table
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.questions.prediction import PredictedPairs
    from analysis.profiling.questions.question import Question

_REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True, repr=False)
class QuestionList(Conclusion):
    """The questions that there are."""

    questions: "tuple[Question, ...]"

    def frame(self) -> "pd.DataFrame":
        """Return name, title, why and parameters, one row a question."""
        import pandas as pd

        return pd.DataFrame(self.payload()).drop(columns="kind")

    def payload(self) -> Sequence[Payload]:
        """Return what ``--json`` prints."""
        return [
            {"kind": "question", "name": question.name, "title": question.title, "why": question.why}
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
    predicted: "PredictedPairs | None" = None
    """Of colocate: what it would do to put jobs beside each other."""
    together: TriedPairs | None = None
    """Of colocate, if it was judged: predictions of pairs that were not seen together, and what simulation says."""

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
        if self.predicted is not None:
            payload |= {"predicted": _predicted_payload(self.predicted)}
        if self.tried is not None:
            payload |= {"tried": [pair.payload() for pair in self.tried]}
        return payload if self.together is None else payload | {"tried_together": self.together.payload()}

    def section(self) -> Section:
        """Return the question, why one asks it, and the answer as a table."""
        from scenarios.profiling import beside_trial, colocate_trial

        judged = () if self.tried is None else colocate_trial.blocks(self.tried)
        together = () if self.together is None else beside_trial.blocks(self.together)
        return Section(
            "",
            (
                Says(self.question.title),
                *says(self.question.why, mark="quiet"),
                of_rows(self.table) if len(self.table) else Says(f"nothing found: {self.question.nothing}"),
                *judged,
                *(() if self.predicted is None else _predicted_blocks(self.predicted)),
                *together,
            ),
        )


def _predicted_payload(predicted: "PredictedPairs") -> Payload:
    return {
        "threads": predicted.threads,
        "rows": predicted.rows.to_dict("records"),
        "pairs": predicted.pairs,
        "slower": predicted.slower,
        "faster": predicted.faster,
        "half_width": predicted.half_width,
        "applications": predicted.applications,
        "left_out": predicted.left_out.to_dict("records"),
        "too_small": predicted.too_small,
        "reason": predicted.reason,
    }


def _predicted_blocks(predicted: "PredictedPairs") -> tuple[Block, ...]:
    """Return what was predicted, what could have been, and of which applications nothing."""
    from analysis.profiling.questions.prediction import MOST_INSTANCES

    if predicted.reason:
        return (Says(f"note: no prediction of what moving jobs would do: {predicted.reason}"),)
    left = predicted.left_out.sort_values(["visits", "application"], ascending=[False, True])
    examples = [f"{name}: {why}" for name, why in zip(left["application"], left["reason"], strict=True)][
        :_REASONS_SHOWN
    ]
    out = f"{len(left)} of {predicted.applications} applications are not predicted: {'; '.join(examples)}"
    more = len(left) - len(examples)
    small = f"{predicted.too_small} applications are too small to be put beside others: over {MOST_INSTANCES} instances"
    return (
        of_rows(
            predicted.rows,
            title=f"Predicted: instances of another job that keep {predicted.threads:g} threads busy come in place of "
            "mean neighbours that keep as many busy",
        ),
        Says(
            f"{predicted.pairs:,} pairs: {predicted.slower:,} are slower and {predicted.faster:,} faster beyond "
            f"chance; a typical effect must be above {number(predicted.half_width, '.2g')} to stand out from 0"
        ),
        *says(
            f"{out}{f'; and {more} more' if more else ''}" if len(left) else "",
            small if predicted.too_small else "",
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
    from analysis.profiling.query import unknown
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
        usual, events = question.defaults(database), database.events()
        event = str({**usual, **parameters}.get("event", ""))
        if event and "event" in usual and event not in events:
            raise FaultsError([Fault("--set event=…", 0, 0, "", unknown("event", event, events))])
        answer = question.ask(database, **parameters)
        predicted = question.predict(database, **parameters)
    return QuestionAnswer(question, {**usual, **parameters}, answer, predicted=predicted)
