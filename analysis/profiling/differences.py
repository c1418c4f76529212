"""Two answers side by side, row for row in numbers: names are looked at once, however many rows have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct_rows
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import of_process
from analysis.profiling.shelf import give_back_memory
from models.arrays import Floats, Ints, unique_sorted

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
    keys: CodedKeys
    """(n,)"""
    code: Ints
    """(n,) number of each row's key, rising."""
    values: tuple[Amounts, Amounts]
    """(n,) events in A and in B; 0 where there is nothing."""
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
        starts = (0, 0), (len(a.keys.processes), len(a.keys.places))
        width = max(len(places), 1)
        codes = []
        for side, (first, second) in zip((a, b), starts, strict=True):
            own = process[first:][side.keys.process]
            own *= width
            own += place[second:][side.keys.place]
            codes.append(own)
        code = unique_sorted(np.concatenate(codes))
        values = [np.zeros(len(code), dtype=side.value.dtype) for side in (a, b)]
        for own, side, value in zip(codes, (a, b), values, strict=True):
            value[np.searchsorted(code, own)] = side.value
        del codes, own
        rows = np.empty((2, len(code)), dtype=np.int32)
        np.divmod(code, width, out=(rows[0], rows[1]), casting="same_kind")
        keys = CodedKeys(processes, places, rows[0], rows[1])
        give_back_memory()
        return cls(tuple(by), keys, code, (values[0], values[1]), (a.total, b.total))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.code)

    def shares(self, side: int) -> Floats:
        """Return (n,) shares of everything in A (0) or in B (1)."""
        from analysis.profiling.sums import shares

        return shares(pd.Series(self.values[side]), self.totals[side])

    @property
    def change(self) -> Floats:
        """(n,) share in B less share in A."""
        change = self.shares(1)
        change -= self.shares(0)
        return change

    def rows_of(self, keys: CodedKeys) -> AnyInts:
        """Return the rows that have some keys; −1: none has.

        Parameters
        ----------
        keys : (m,)
        """
        process, place = (
            _places(own, among)
            for own, among in ((keys.processes, self.keys.processes), (keys.places, self.keys.places))
        )
        row, width = np.full(len(keys.process), -1, dtype=np.int32), max(len(self.keys.places), 1)
        for begin in range(0, len(row) if len(self) else 0, _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            on_process, on_place = process[keys.process[some]], place[keys.place[some]]
            code = on_process * width + on_place
            at = np.minimum(np.searchsorted(self.code, code), len(self) - 1)
            row[some] = np.where((on_process >= 0) & (on_place >= 0) & (self.code[at] == code), at, -1)
        return row

    def greatest(self, change: Floats, most: int, among: Ints | None = None) -> Ints:
        """Return the rows with the greatest changes in either direction, these first; ties are in order of their keys.

        Parameters
        ----------
        change : (n,)
        most : so many rows
        among : rows that are looked at; none: all
        """
        size = np.abs(change if among is None else change[among])
        least = np.partition(size, len(size) - most)[len(size) - most] if len(size) > most else 0.0
        rows = np.flatnonzero(size >= least)
        size, rows = size[rows], rows if among is None else among[rows]
        ranks = [self._ranks(name, rows) for name in reversed(self.by)]
        return rows[np.lexsort((*ranks, -size))[:most]]

    def _ranks(self, name: str, rows: Ints) -> AnyInts:
        """Return the places of rows in the order of a dimension."""
        table, of_row = (
            (self.keys.processes, self.keys.process) if of_process(name) else (self.keys.places, self.keys.place)
        )
        return pd.factorize(table[name], sort=True)[0].astype(np.int32)[of_row[rows]]

    def table(self, rows: Ints) -> pd.DataFrame:
        """Return some rows as `Database.diff` does."""
        shares = [self.shares(side)[rows] for side in (0, 1)]
        return self.keys.names(rows, self.by).assign(
            value_a=self.values[0][rows],
            value_b=self.values[1][rows],
            share_a=shares[0],
            share_b=shares[1],
            change=shares[1] - shares[0],
        )


def _places(rows: pd.DataFrame, among: pd.DataFrame) -> Ints:
    """Return where rows are among others, which are each there once; −1: nowhere."""
    if not len(rows.columns):
        return np.zeros(len(rows), dtype=np.int64)
    number, known = distinct_rows(pd.concat([among, rows], ignore_index=True))
    place = np.full(len(known), -1, dtype=np.int64)
    place[number[: len(among)]] = np.arange(len(among))
    return place[number[len(among) :]]
