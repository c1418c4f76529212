"""Two answers side by side, row for row in numbers: names are looked at once, however many rows have them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct_rows
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import of_process
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.sums import shares
from models.arrays import Floats, Ints

_AT_ONCE = 200_000
"""Rows that are looked up at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedKeys:
    """Keys of n rows: each is a combination of dimensions of processes, and one of dimensions of locations."""

    processes: pd.DataFrame
    """(P,) combinations of the first, each once."""
    places: pd.DataFrame
    """(L,) combinations of the others, each once."""
    process: AnyInts
    """(n,) rows of `processes`."""
    place: AnyInts
    """(n,) rows of `places`."""

    @classmethod
    def of(cls, keys: pd.DataFrame) -> Self:
        """Return the keys of a table with a column for each dimension.

        Examples
        --------
        >>> keys = CodedKeys.of(pd.DataFrame({"function": ["g", "f", "g"], "machine": ["m", "m", "n"]}))
        >>> keys.process.tolist(), keys.place.tolist(), keys.places["function"].tolist()
        ([0, 0, 1], [1, 0, 1], ['f', 'g'])
        """
        by = [str(name) for name in keys]
        kinds = ([name for name in by if of_process(name) == kind] for kind in (True, False))
        (process, processes), (place, places) = (distinct_rows(keys[own]) for own in kinds)
        return cls(processes, places, process, place)

    def names(self, rows: AnyInts, by: Sequence[str]) -> pd.DataFrame:
        """Return the dimensions of some rows.

        Parameters
        ----------
        rows : (m,)
        by : dimensions, in the order of the columns
        """
        processes, places = self.processes.iloc[self.process[rows]], self.places.iloc[self.place[rows]]
        columns = {name: (processes if of_process(name) else places)[name] for name in by}
        return pd.DataFrame({name: column.reset_index(drop=True) for name, column in columns.items()})


@dataclass(frozen=True, slots=True, eq=False)
class CodedAnswer:
    """The rows of an answer, in no order."""

    keys: CodedKeys
    value: Amounts
    """(n,) events."""
    total: int
    """Events in all."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        tables = self.keys.processes, self.keys.places
        names = sum(int(table.memory_usage(deep=True).sum()) for table in tables)
        return names + self.keys.process.nbytes + self.keys.place.nbytes + self.value.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Two answers to the same question, row for row: the rows that either has."""

    by: tuple[str, ...]
    processes: pd.DataFrame
    """(P,) combinations of dimensions of processes, as of `CodedKeys`."""
    places: pd.DataFrame
    """(L,) those of locations."""
    code: Ints
    """(n,) of each row L times the place of the first, and that of the other; rising."""
    at: tuple[AnyInts, AnyInts]
    """(n,) which row of A and of B each is; −1: none."""
    amounts: tuple[Amounts, Amounts]
    """Events of the rows of A and of those of B."""
    totals: tuple[int, int]

    @classmethod
    def of(cls, a: CodedAnswer, b: CodedAnswer, by: Sequence[str]) -> Self:
        """Return two answers side by side.

        Parameters
        ----------
        a, b : the answers
        by : their dimensions
        """
        tables = [
            distinct_rows(pd.concat([getattr(side.keys, kind) for side in (a, b)], ignore_index=True))
            for kind in ("processes", "places")
        ]
        (process, processes), (place, places) = tables
        process *= max(len(places), 1)
        sides = (a.keys, process, place), (b.keys, process[len(a.keys.processes) :], place[len(a.keys.places) :])
        code = np.empty(sum(len(keys.process) for keys, _, _ in sides), dtype=np.int64)
        for first, side in zip((0, len(a.keys.process)), sides, strict=True):
            for begin, own in _codes(*side):
                code[first + begin : first + begin + len(own)] = own
        code.sort()
        code = code[np.append(True, code[1:] != code[:-1])[: len(code)]]
        give_back_memory()
        at = [np.full(len(code), -1, dtype=np.int32) for _ in sides]
        for row, side in zip(at, sides, strict=True):
            for begin, own in _codes(*side):
                row[np.searchsorted(code, own)] = np.arange(begin, begin + len(own), dtype=np.int32)
        return cls(tuple(by), processes, places, code, (at[0], at[1]), (a.value, b.value), (a.total, b.total))

    def like(self, code: Ints, amounts: tuple[Amounts, Amounts]) -> "Difference":
        """Return other rows of the same dimensions.

        Parameters
        ----------
        code : (n,) in any order
        amounts : (n,) events in A and in B, 0 where there is nothing
        """
        at = np.arange(len(code), dtype=np.int32)
        return replace(self, code=code, at=(at, at), amounts=amounts)

    @property
    def _width(self) -> int:
        return max(len(self.places), 1)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.code)

    def values(self, side: int, rows: Ints | slice) -> Amounts:
        """Return events in A (0) or in B (1); 0 where there is nothing.

        Parameters
        ----------
        side : 0 or 1
        rows : whose
        """
        amounts, at = self.amounts[side], self.at[side][rows]
        values = np.zeros(len(at), dtype=amounts.dtype)
        known = at >= 0
        values[known] = amounts[at[known]]
        return values

    def shares(self, side: int, rows: Ints | slice) -> Floats:
        """Return shares of everything in A (0) or in B (1); parameters as of `values`."""
        return shares(pd.Series(self.values(side, rows)), self.totals[side])

    @property
    def change(self) -> Floats:
        """(n,) share in B less share in A."""
        change = np.empty(len(self))
        for begin in range(0, len(self), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            change[some] = self.shares(1, some) - self.shares(0, some)
        return change

    def at_keys(self, keys: CodedKeys) -> AnyInts:
        """Return (n,) which of some keys each row has; −1: none of them.

        Parameters
        ----------
        keys : (m,) each once; those that no row has do not matter
        """
        process, place = (
            _places(own, among) for own, among in ((keys.processes, self.processes), (keys.places, self.places))
        )
        at = np.full(len(self), -1, dtype=np.int32)
        for begin in range(0, len(keys.process) if len(self) else 0, _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            on_process, on_place = process[keys.process[some]], place[keys.place[some]]
            code = on_process * self._width + on_place
            row = np.minimum(np.searchsorted(self.code, code), len(self) - 1)
            known = np.flatnonzero((on_process >= 0) & (on_place >= 0) & (self.code[row] == code))
            at[row[known]] = begin + known
        return at

    def greatest(self, change: Floats, most: int, among: Ints | None = None) -> Ints:
        """Return the rows with the greatest changes in either direction, these first; ties are in order of their keys.

        Parameters
        ----------
        change : (n,)
        most : so many rows
        among : rows that are looked at; none: all
        """
        if len(change if among is None else among) > most:
            least = _least(change if among is None else change[among], most)
            rows = np.flatnonzero((change >= least) | (change <= -least)) if among is None else among
            rows = rows[np.abs(change[rows]) >= least]
        else:
            rows = np.arange(len(change)) if among is None else among
        size = np.abs(change[rows])
        ranks = [self._ranks(name, rows) for name in reversed(self.by)]
        return rows[np.lexsort((*ranks, -size))[:most]]

    def _ranks(self, name: str, rows: Ints) -> AnyInts:
        """Return the places of rows in the order of a dimension."""
        code = self.code[rows]
        table, place = (self.processes, code // self._width) if of_process(name) else (self.places, code % self._width)
        return pd.factorize(table[name], sort=True)[0].astype(np.int32)[place]

    def table(self, rows: Ints) -> pd.DataFrame:
        """Return some rows as `Database.diff` does."""
        share_a, share_b = (self.shares(side, rows) for side in (0, 1))
        code = self.code[rows]
        keys = CodedKeys(self.processes, self.places, code // self._width, code % self._width)
        return keys.names(np.arange(len(rows)), self.by).assign(
            value_a=self.values(0, rows),
            value_b=self.values(1, rows),
            share_a=share_a,
            share_b=share_b,
            change=share_b - share_a,
        )


def _codes(keys: CodedKeys, process: Ints, place: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield the codes of some keys at a time, and which is the first of them.

    Parameters
    ----------
    keys : (n,)
    process, place : whose sums codes are, of each row of the keys' tables
    """
    for begin in range(0, len(keys.process), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        yield begin, process[keys.process[some]] + place[keys.place[some]]


def _places(rows: pd.DataFrame, among: pd.DataFrame) -> Ints:
    """Return where rows are among others, which are each there once; −1: nowhere."""
    if not len(rows.columns):
        return np.zeros(len(rows), dtype=np.int64)
    number, known = distinct_rows(pd.concat([among, rows], ignore_index=True))
    place = np.full(len(known), -1, dtype=np.int64)
    place[number[: len(among)]] = np.arange(len(among))
    return place[number[len(among) :]]


def _least(change: Floats, most: int) -> float:
    """Return the size of the last of so many greatest changes in either direction."""
    sizes = np.zeros(0)
    for begin in range(0, len(change), _AT_ONCE):
        sizes = np.append(sizes, np.abs(change[begin : begin + _AT_ONCE]))
        if len(sizes) > most:
            sizes = np.partition(sizes, len(sizes) - most)[-most:]
    return float(sizes.min())
