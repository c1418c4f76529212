"""Functions with all that they call, by keys so many that their sums are of one part of the keys at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct
from analysis.profiling.counted import ordered
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import Query
from models.arrays import Bools, Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

_PER_PART = 500_000
"""Rows of samples that a part is of, about."""
_ROOM = 500_000
"""Sums that are looked at together."""

_Stacks = tuple[Ints, AnyInts, AnyInts]
"""Where the functions of each of S stacks begin, S + 1; functions, each once of a stack; which was sampled itself."""


def cumulative(database: "Database", query: Query, top: int | None) -> tuple[pd.DataFrame, int] | None:
    """Return the greatest rows of `Database.inclusive`, and how many there are, however many that is.

    Parameters
    ----------
    database : asked
    query : its dimensions, all of processes, stay apart
    top : only so many rows, no more than an answer may have; none: all

    Returns
    -------
    tuple or None
        The dimensions, `function`, `samples`, `value`, `share` of all samples with call paths, `own`; the number. None:
        sums are not sure to be exact in 64 bits.

    Raises
    ------
    QueryError, ProfileError
        As `Database.inclusive` does, and if all rows are asked for and are too many.
    """
    from analysis.profiling.database import MOST_ROWS, refuse_many

    parts = max(1, database.rows // _PER_PART)
    sums = CumulativeSums.of(database, query, lambda keys: distinct(keys, query.by)[0] % parts)
    if not sums.exact:
        return None
    table, rows = _table(sums, MOST_ROWS if top is None else top)
    if top is None:
        refuse_many(rows)
    return table, rows


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeSums:
    """Samples by key and by each function on the path, once per path, of one part of the keys at a time."""

    keys: pd.DataFrame
    """(K,) the query's dimensions, in order."""
    names: list[str]
    """(F,) of functions, in order."""
    parts: int
    exact: bool
    """Whether sums are sure to be exact in 64 bits; otherwise they are decimal."""
    _counted: "CountedSamples"
    _key: AnyInts
    """Which of `keys` each key of the counted samples has."""
    _stacks: _Stacks

    @classmethod
    def of(cls, database: "Database", query: Query, part_of: Callable[[pd.DataFrame], Ints]) -> "CumulativeSums":
        """Count the samples of a query.

        Parameters
        ----------
        database : asked
        query : by dimensions of processes
        part_of : as of `Database.counted`; one key is all in one part

        Raises
        ------
        QueryError, ProfileError
            As `Database.inclusive` does.
        """
        counted = database.counted(query, part_of, stacks=True)
        key, keys = distinct(counted.keys, query.by)
        names, first, code = database.frames_on(counted.places["stack"].to_numpy(np.int64))
        leaf = code[first[1:] - 1]
        _once_per_stack(first, code, np.full(len(names), -1, dtype=np.int64))
        return cls(keys, names, counted.parts, counted.exact, counted, key.astype(np.int32), (first, code, leaf))

    def part(self, number: int) -> Iterator[Amounts]:
        """Yield the sums of a part: (5, n) row of `keys`, function, samples, value, own value; good until the next."""
        kind, names = np.int64 if self.exact else np.float64, len(self.names)
        key, place, count = self._counted.counts(number)
        own = self._key[key]
        order = ordered(own, np.arange(len(key), dtype=np.int32))
        scale = self._counted.keys["scale"].to_numpy(np.float64).astype(kind)[key[order]]
        amounts = np.array([self._counted.taken(number)[order], count[order] * scale], dtype=kind)
        entries, begin = (own[order], place[order], amounts), 0
        del key, place, count, own, scale
        work = np.zeros((3, names), dtype=kind), np.zeros(names, dtype=np.bool_), np.zeros(names, dtype=np.int64)
        out = np.empty((5, _ROOM + names), dtype=kind)
        while begin < len(order):
            begin, many = _add_functions(entries, self._stacks, work, out, begin)
            yield out[:, :many]


def _table(sums: CumulativeSums, top: int) -> tuple[pd.DataFrame, int]:
    """Return the greatest sums as a table, and how many there are."""
    rows, count, total = np.zeros((5, 0), dtype=np.int64), 0, 0
    for part in range(sums.parts):
        for some in sums.part(part):
            count, total = count + some.shape[1], total + int(some[4].sum())  # of each sample one function is the own
            rows = _greatest(np.concatenate([rows, some], axis=1), top)
    key, function, samples, value, own = rows[:, np.lexsort((rows[0], rows[1], -rows[3]))[:top]]
    named = pd.Series(np.asarray(sums.names, dtype=object)[function], dtype="str")
    table = sums.keys.iloc[key].reset_index(drop=True).assign(function=named, samples=samples, value=value)
    return table.assign(share=value / float(total or 1), own=own), count


def _greatest(rows: Amounts, top: int) -> Amounts:
    """Return the columns of sums that may be among the greatest."""
    if rows.shape[1] <= top:
        return rows
    least = np.partition(rows[3], -top)[-top]
    rows = rows[:, rows[3] >= least]
    return rows if rows.shape[1] <= 2 * top else rows[:, np.lexsort((rows[0], rows[1], -rows[3]))[:top]]


@njit(nogil=True, borrows=True)
def _once_per_stack(first: Ints, code: AnyInts, last: Ints) -> None:
    """Leave each function of a stack out but for the first time, in place.

    Parameters
    ----------
    first : (S + 1,) where the functions of each stack begin
    code : (n,) functions
    last : (F,) of −1, is written to
    """
    put = begin = 0
    for stack in range(len(first) - 1):
        end = first[stack + 1]
        for place in range(begin, end):
            if last[code[place]] != stack:
                last[code[place]] = stack
                code[put] = code[place]
                put += 1
        first[stack + 1], begin = put, end


@njit(nogil=True, borrows=True)
def _add_functions(
    entries: tuple[AnyInts, AnyInts, Amounts],
    stacks: _Stacks,
    work: tuple[Amounts, Bools, Ints],
    out: Amounts,
    begin: int,
) -> tuple[int, int]:
    """Sum entries by key and function until there is no room for another key's; return where, and how many sums.

    Parameters
    ----------
    entries : (n,) key and stack, in order of the keys, and (2, n) samples and value
    stacks : as of `_Stacks`
    work : (3, F) zeros and (F,) of nothing, as which they are left, and (F,)
    out : (5, r) into which sums are put: key, function, samples, value, own
    begin : first entry, the first of its key
    """
    key, stack, amounts = entries
    first, item, leaf = stacks
    inside, has, touched = work
    put = count = 0
    for at in range(begin, len(key)):
        on = stack[at]
        samples, value = amounts[0, at], amounts[1, at]
        for place in range(first[on], first[on + 1]):
            own = item[place]
            if not has[own]:
                has[own] = True
                touched[count] = own
                count += 1
            inside[0, own] += samples
            inside[1, own] += value
        inside[2, leaf[on]] += value
        if at + 1 == len(key) or key[at + 1] != key[at]:
            for own in touched[:count]:
                out[0, put], out[1, put] = key[at], own
                out[2, put], out[3, put], out[4, put] = inside[0, own], inside[1, own], inside[2, own]
                inside[0, own] = inside[1, own] = inside[2, own] = 0
                has[own] = False
                put += 1
            count = 0
            if put + len(touched) > out.shape[1]:
                return at + 1, put
    return len(key), put
