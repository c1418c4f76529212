"""Functions with all that they call, by keys so many that their sums are of one part of the keys at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.query import Query
from analysis.profiling.shelf import give_back_memory
from models.arrays import Ints
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

_PER_PART = 500_000
"""Rows of samples that a part is of, about."""
_ROOM = 200_000
"""Sums that are looked at together."""
_FEW = 2**16
"""Functions whose numbers fit in 16 bits."""

_Stacks = tuple[AnyInts, AnyInts]
"""Where the functions of each of S stacks begin, S + 1; functions, each once of a stack, the one sampled first."""


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
    """(K,) the query's dimensions, in order, and `samples`."""
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
        keys["samples"] = np.bincount(key, counted.keys["samples"], len(keys)).astype(np.float64)
        exact, stacks = counted.exact, counted.places["stack"].to_numpy(np.int64)
        counted = replace(counted, keys=counted.keys[["scale"]].copy(), places=counted.places[:0])
        give_back_memory()
        names, first, code = database.frames_on(stacks)
        _once_per_stack(first, code, np.full(len(names), -1, dtype=np.int64))
        item = code[: first[-1]].astype(np.uint16 if len(names) <= _FEW else np.int32)
        del code, stacks
        give_back_memory()
        return cls(keys, names, counted.parts, exact, counted, key.astype(np.int32), (first.astype(np.int32), item))

    def part(self, number: int) -> Iterator[Amounts]:
        """Yield the sums of a part: (5, n) row of `keys`, function, samples, value, own value; good until the next.

        They are integers of 64 bits, or decimal where these are not `exact`.
        """
        kind, names = np.int64 if self.exact else np.float64, len(self.names)
        key, place, count = self._counted.counts(number)
        scale = self._counted.keys["scale"].to_numpy(np.float64).astype(kind)
        order = _by_key(self._key, key)
        taken = count if self._counted.whole else self._counted.taken(number)
        entries = (key, place, count, taken), (self._key, scale), order
        work, touched = np.zeros((names, 4), dtype=kind), np.zeros(names, dtype=np.int64)
        out, begin = np.empty((5, _ROOM + names), dtype=kind), 0
        while begin < len(order):
            begin, many = _add_functions(entries, self._stacks, (work, touched), out, begin)
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
    table = sums.keys.drop(columns="samples").iloc[key].reset_index(drop=True)
    table = table.assign(function=named, samples=samples, value=value, share=value / float(total or 1), own=own)
    return table, count


def _greatest(rows: Amounts, top: int) -> Amounts:
    """Return the columns of sums that may be among the greatest."""
    if rows.shape[1] <= top:
        return rows
    least = np.partition(rows[3], -top)[-top]
    rows = rows[:, rows[3] >= least]
    return rows if rows.shape[1] <= 2 * top else rows[:, np.lexsort((rows[0], rows[1], -rows[3]))[:top]]


@njit(nogil=True, borrows=True)
def _once_per_stack(first: Ints, code: AnyInts, last: Ints) -> None:
    """Put the last function of each stack, that which was sampled, first, and leave each out but for the first time.

    Parameters
    ----------
    first : (S + 1,) where the functions of each stack begin
    code : (n,) functions
    last : (F,) of −1, is written to
    """
    put = begin = 0
    for stack in range(len(first) - 1):
        end = first[stack + 1]
        if begin < end:
            code[begin], code[end - 1] = code[end - 1], code[begin]
        for place in range(begin, end):
            if last[code[place]] != stack:
                last[code[place]] = stack
                code[put] = code[place]
                put += 1
        first[stack + 1], begin = put, end


@njit(nogil=True, borrows=True)
def _add_functions(
    entries: tuple[tuple[AnyInts, AnyInts, Amounts, Amounts], tuple[AnyInts, Amounts], AnyInts],
    stacks: _Stacks,
    work: tuple[Amounts, Ints],
    out: Amounts,
    begin: int,
) -> tuple[int, int]:
    """Sum entries by key and function until there is no room for another key's; return where, and how many sums.

    Parameters
    ----------
    entries : (n,) counted key, stack, count and samples; of counted keys the key, and what a count of one stands for;
        (n,) places of entries in order of keys
    stacks : as of `_Stacks`
    work : (F, 4) zeros, as which they are left, and (F,)
    out : (5, r) into which sums are put: key, function, samples, value, own
    begin : place in the order of the first entry, the first of its key
    """
    (counted, stack, count, samples), (key_of, scale), order = entries
    first, item = stacks
    inside, touched = work
    put = many = 0
    for at in range(begin, len(order)):
        entry = order[at]
        on, key = stack[entry], key_of[counted[entry]]
        taken, value = samples[entry], count[entry] * scale[counted[entry]]
        for place in range(first[on], first[on + 1]):
            sums = inside[item[place]]
            if sums[3] == 0:
                sums[3] = 1
                touched[many] = item[place]
                many += 1
            sums[0] += taken
            sums[1] += value
        inside[item[first[on]], 2] += value
        if at + 1 == len(order) or key_of[counted[order[at + 1]]] != key:
            for own in touched[:many]:
                out[0, put], out[1, put] = key, own
                out[2, put], out[3, put], out[4, put] = inside[own, 0], inside[own, 1], inside[own, 2]
                inside[own, 0] = inside[own, 1] = inside[own, 2] = inside[own, 3] = 0
                put += 1
            many = 0
            if put + len(touched) > out.shape[1]:
                return at + 1, put
    return len(order), put


@njit(nogil=True)
def _by_key(key_of: AnyInts, counted: AnyInts) -> AnyInts:
    """Return the places of entries in order of keys, those of one as they were.

    Parameters
    ----------
    key_of : (C,) key of each counted key
    counted : (n,) counted keys
    """
    if not len(counted):
        return np.empty(0, dtype=np.int32)
    least, most = key_of[counted[0]], key_of[counted[0]]
    for own in counted:
        least, most = min(least, key_of[own]), max(most, key_of[own])
    begin = np.zeros(most - least + 2, dtype=np.int64)
    for own in counted:
        begin[key_of[own] - least + 1] += 1
    begin = np.cumsum(begin)
    order = np.empty(len(counted), dtype=np.int32)
    for at in range(len(counted)):
        key = key_of[counted[at]] - least
        order[begin[key]] = at
        begin[key] += 1
    return order
