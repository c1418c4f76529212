"""What a command answers: a frozen conclusion that people see, programs read and notebooks show."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, TypeAlias

from models.errors import InputError
from scenarios.views.section import Section

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Payload: TypeAlias = Mapping[str, object]
"""What becomes one JSON value: maps, lists, texts, truth values and numbers, numpy's too; NaN becomes null."""


_LONGEST = 90
"""Characters of an answer in a line."""


def _unchanged(answer: "Conclusion", name: str, value: object) -> None:
    raise FrozenInstanceError(f"an answer cannot be changed: {type(answer).__name__}.{name}")


class Conclusion(ABC):
    """What was concluded: said once to people, once to programs, and as a table.

    Answers of commands are frozen dataclasses that derive from it.
    """

    __slots__ = ()

    @abstractmethod
    def section(self) -> Section:
        """Return what people see."""

    @abstractmethod
    def payload(self) -> Payload | Sequence[Payload]:
        """Return what ``--json`` prints: one value, or a list of them."""

    def records(self) -> Payload | Sequence[Payload]:
        """Return `payload` for who writes it part by part: a list of rows may be `TableRecords` of `views.records`."""
        return self.payload()

    @abstractmethod
    def frame(self) -> "pd.DataFrame":
        """Return the numbers as a table, one row for each thing that was asked about."""

    def figure(self) -> "Figure":
        """Return a drawing of it, which a notebook shows and `savefig` writes; no file is written here.

        Raises
        ------
        InputError
            If it has none, or nothing that could be drawn.
        """
        raise InputError(f"{type(self).__name__} has no figure; .frame() has its numbers")

    def __init_subclass__(cls) -> None:
        """Let no answer be changed; a dataclass with slots would end in an error about `super` for a property."""
        super().__init_subclass__()
        if "__setattr__" in vars(cls):  # written by `dataclass`, which makes a class with slots anew
            cls.__setattr__ = _unchanged  # pyrefly: ignore[bad-assignment] # a method once it is there

    def brief(self) -> str:
        """Return the answer in a line, which its `repr` shows."""
        return f"{len(self.frame())} rows"

    def __repr__(self) -> str:
        text = self.brief()
        return f"<{type(self).__name__}: {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from scenarios.views.html import section

        return section(self.section())
