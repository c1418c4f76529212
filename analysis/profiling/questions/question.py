"""What every documented question shares: its parameters, how they are read, and how answers are ranked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.query import Profile, QueryError, event_or_default

if TYPE_CHECKING:
    from analysis.profiling.questions.prediction import PredictedPairs

Value = str | int | float
_OF_CODE = ("cycles", "cpu_time")
"""Events that any other of time can stand for."""
_ALSO_CALLED = {"lock_wait": ("delay",), "heap_bytes": ("inuse_space",)}
"""What the same is called in files of other tools: pprof's contention and heap profiles."""


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
    prediction: "Callable[..., PredictedPairs] | None" = None
    """From the same to what moving jobs would do; None for questions that predict nothing."""
    nothing: str = "no row fits these parameters"
    """What an answer without rows says."""

    def defaults(self, database: Profile) -> dict[str, Value]:
        """Return the parameters that are not given: of a profile without the usual event the one that stands for it.

        Parameters
        ----------
        database : asked
        """
        usual = self.parameters.get("event")
        events = database.events() if usual in {*_OF_CODE, *_ALSO_CALLED} else []
        if not events or usual in events:
            return dict(self.parameters)
        alike = (name for name in _ALSO_CALLED.get(str(usual), ()) if name in events)
        event = event_or_default(events) if usual in _OF_CODE else next(alike, str(usual))
        return {**self.parameters, "event": event}

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
        return self.answer(database, **read(self.defaults(database), given))

    def predict(self, database: Profile, **given: Value) -> "PredictedPairs | None":
        """Return what moving jobs would do, with defaults for what is not given; None if the question predicts nothing.

        Parameters
        ----------
        database, given : as in `ask`
        """
        return None if self.prediction is None else self.prediction(database, **read(self.parameters, given))


def read(defaults: Mapping[str, Value], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters of a question: the defaults, and what was given in the defaults' types."""
    faults, values = [], dict(defaults)
    for name, value in given.items():
        if name not in defaults:
            faults.append(f"{name[:60]}: no such parameter; there are {', '.join(defaults) or 'none'}")
            continue
        kind = type(defaults[name])
        try:
            values[name] = kind(value)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            faults.append(f'{name}: should be {what}, got "{str(value)[:60]}"')
    faults += [f"{name}: should be finite, got {value}" for name, value in values.items() if not _finite(value)]
    if "top" in values and float(values["top"]) < 1:
        faults.append(f"top: should be 1 or more, got {values['top']}")
    if faults:
        raise QueryError("\n".join(faults))
    return values


def _finite(value: Value) -> bool:
    return isinstance(value, str) or bool(np.isfinite(value))


def shares(values: "pd.Series[float]") -> "pd.Series[float]":
    """Return values over their sum; 0 of nothing."""
    numbers = values.astype(np.float64)
    return numbers / max(float(numbers.sum()), 1.0)


def ranked(table: pd.DataFrame, by: str, keys: Sequence[str], top: int) -> pd.DataFrame:
    """Return the first rows by a column, largest first, ties in order of the keys."""
    order = table.sort_values([by, *keys], ascending=[False, *[True] * len(keys)], kind="stable")
    return order.head(max(top, 0)).reset_index(drop=True)
