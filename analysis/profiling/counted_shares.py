"""Shares of so many keys and clusters that their pairs are not held at once: what their intervals rest on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.combinations import distinct
from analysis.profiling.differences import CodedKeys
from analysis.profiling.frames import Amounts, AnyInts
from analysis.profiling.intervals import ShareMoments
from analysis.profiling.query import Query, TooManyRowsError, of_process
from analysis.profiling.row_groups import Numbering
from analysis.profiling.shelf import give_back_memory
from models.arrays import Floats, Ints, unique_sorted
from models.code.compiled import njit

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.database import Database

_PER_PART = 500_000
"""Rows of samples that a part is of, about."""
_PAIRS_AT_ONCE = 50_000
_AT_ONCE = 500_000
"""Pairs of groups and places that wait before they are put among those that are known."""
_WIDE = 2.0**62
"""Events that are summed as integers of 64 bits."""
_DENSE = 1_000_000
"""Pairs of a group and a place up to which each has a number, sampled or not."""
_MARKED = 16_000_000
"""Pairs up to which those that are sampled are marked in a table of all; beyond, they are sorted."""


def counted_moments(database: "Database", query: Query, cluster: str = "visit") -> ShareMoments:
    """Return what the intervals of a query's shares rest on, from the samples of one part of the clusters at a time.

    It is what `ShareMoments.of` says of `Database.clustered`, without a table of all pairs of a key and a cluster.

    Parameters
    ----------
    database : asked
    query : its dimensions are the keys
    cluster : a dimension of processes that was drawn at random, each all on one platform, such as `visit`

    Raises
    ------
    QueryError, ProfileError
        As `Database.query` does.
    """
    numbers, _, moments = _counted_moments(database, query, cluster)
    order = np.argsort(-moments.share, kind="stable")[: int((moments.share > 0).sum())]
    keys = numbers.keys(order).names(np.arange(len(order)), query.by)
    return moments.at(order, keys)


def coded_moments(
    database: "Database", query: Query, cluster: str = "visit"
) -> tuple[CodedKeys, Ints | None, ShareMoments]:
    """Return the keys of a query as numbers, their events, and what the intervals of their shares rest on, unnamed.

    Parameters
    ----------
    database, query, cluster : as of `counted_moments`

    Returns
    -------
    CodedKeys, (n,) array or None, ShareMoments
        Of n rows, in the same order; no events where sums are not sure to be exact in 64 bits.

    Raises
    ------
    QueryError, ProfileError
        As `Database.query` does.
    """
    numbers, exact, moments = _counted_moments(database, query, cluster)
    some = moments.share > 0 if exact is None else exact >= 0
    rows: Ints | slice = slice(None)
    if not some.all():
        rows = np.flatnonzero(some)
        moments, exact = moments.at(rows, moments.keys), None if exact is None else exact[rows]
    return numbers.keys(rows), exact, moments


def _counted_moments(
    database: "Database", query: Query, cluster: str
) -> tuple["_KeyNumbers", Ints | None, ShareMoments]:
    """Return numbers of K keys; exact events of each, where they are sure; its moments.

    Of keys without samples exact events are −1; moments say of no key what it is.
    """
    parts = max(1, database.rows // _PER_PART)
    apart = replace(query, by=(*query.by, cluster))
    counted = database.counted(apart, lambda keys: pd.factorize(keys[cluster])[0].astype(np.int64) % parts)
    code = pd.factorize(counted.keys[cluster])[0].astype(np.int64)
    size = np.bincount(code, counted.keys["value"]).astype(np.float64)
    total = max(float(size.sum()), 1.0)
    numbers = _KeyNumbers.of(counted, [name for name in query.by if of_process(name)])
    share, samples = np.zeros(numbers.count), np.zeros(numbers.count)
    scale = counted.keys["scale"].to_numpy(np.float64)
    # Of a scale of 0 it is not known whether it is one at all: there may be no rate.
    exact = np.full(numbers.count, -1, dtype=np.int64) if counted.exact and scale.all() else np.zeros(0, dtype=np.int64)
    whole, scratch = scale.astype(np.int64) if len(exact) else exact, np.zeros((3, numbers.count))
    for part in range(counted.parts):
        key, place, count = counted.counts(part)
        number = numbers.index(key, place)
        own = number, count * scale[key], counted.taken(part).astype(np.float64)
        _add_amounts(own, scratch, (share, samples))
        if len(exact):
            _add_exactly(number, count, whole[key], exact)
    del scratch
    give_back_memory()
    share /= total
    clusters = clusters_of(size)
    sums = _no_sums(numbers.count)
    for part in range(counted.parts):
        entries = counted.entries(part).positive()
        key = numbers.index(entries.key, entries.place)
        _add_moments((key, code[entries.key], entries.value / total), share, clusters, sums)
    second, fourth = _moments(sums, share, clusters)
    del sums
    give_back_memory()
    every = pd.DataFrame(index=range(numbers.count))
    moments = ShareMoments(every, share, second, fourth, samples, int((size > 0).sum()))
    return numbers, exact if len(exact) else None, moments


@njit(nogil=True, borrows=True)
def _add_amounts(entries: tuple[AnyInts, Floats, Floats], scratch: Floats, sums: tuple[Floats, Floats]) -> None:
    """Add up two amounts of entries by key, and these sums to those of all parts.

    Parameters
    ----------
    entries : (n,) keys, and their amounts
    scratch : (3, K) zeros, as which they are left
    sums : (K,) to which the amounts are added
    """
    keys, first, second = entries
    for at in range(len(keys)):
        key = keys[at]
        scratch[0, key] += first[at]
        scratch[1, key] += second[at]
        scratch[2, key] = 1.0
    for at in range(len(keys)):
        key = keys[at]
        if scratch[2, key] > 0.0:
            sums[0][key] += scratch[0, key]
            sums[1][key] += scratch[1, key]
            scratch[0, key] = scratch[1, key] = scratch[2, key] = 0.0


@njit(nogil=True, borrows=True)
def _add_exactly(keys: AnyInts, count: Amounts, scale: Ints, sums: Ints) -> None:
    """Add counts times scales up by key; sums that are −1 begin at 0."""
    for at in range(len(keys)):
        sums[keys[at]] = max(sums[keys[at]], 0) + np.int64(count[at]) * scale[at]


def clusters_of(size: Floats) -> tuple[Floats, Floats]:
    """Return (M,) the part of everything that each cluster has, and 1 / (1 − that)."""
    leverage = size / max(float(size.sum()), 1.0)
    return leverage, 1.0 / np.maximum(1.0 - leverage, 1e-9)


_Sums = tuple[Floats, Floats, Floats, Floats]
"""(K,) sums of `_add`."""


def _no_sums(keys: int) -> _Sums:
    return np.zeros(keys), np.zeros(keys), np.zeros(keys), np.zeros(keys)


def _moments(sums: _Sums, share: Floats, clusters: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return (K,) second and fourth moments of shares; `sums`, as of `_add`, are not the same afterwards.

    Clusters are as of `clusters_of`.
    """
    leverage, weight = clusters
    usual = leverage**2 * weight
    for own, inside, power in zip(sums, sums[2:], (1, 2), strict=False):
        np.subtract((usual**power).sum(), inside, out=inside)
        np.maximum(inside, 0.0, out=inside)
        np.multiply(share ** (2 * power), inside, out=inside)
        np.add(own, inside, out=own)
    return sums[0], sums[1]


@njit(cache=False)
def _add(sums: _Sums, key: int, share: float, value: float, cluster: tuple[float, float]) -> None:
    """Add a key's value in a cluster.

    Parameters
    ----------
    sums : (K,) squares of residuals, their fourth powers, and both of what they would be if the cluster had nothing
    key : its number
    share : of the key
    value : as a part of everything
    cluster : part of everything that it has, and 1 / (1 − that)
    """
    leverage, weight = cluster
    residual = value - share * leverage
    square, usual = weight * residual * residual, weight * leverage * leverage
    sums[0][key] += square
    sums[1][key] += square * square
    sums[2][key] += usual
    sums[3][key] += usual * usual


@njit(nogil=True, borrows=True)
def _add_moments(
    entries: tuple[AnyInts, Ints, Floats], share: Floats, clusters: tuple[Floats, Floats], sums: _Sums
) -> None:
    """Add the entries of some clusters to sums.

    Parameters
    ----------
    entries : (n,) key, cluster, and value as a part of everything; each pair once
    share : (K,)
    clusters : of `clusters_of`
    sums : as of `_add`
    """
    keys, cluster_of, values = entries
    leverage, weight = clusters
    for at in range(len(keys)):
        key, own = keys[at], cluster_of[at]
        _add(sums, key, share[key], values[at], (leverage[own], weight[own]))


@dataclass(frozen=True, slots=True, eq=False)
class CountedStacks:
    """Samples by visit, root frame and stack, to be summed by what stacks have in common."""

    counted: "CountedSamples"
    visit: AnyInts
    """(K,) number of the visit of each of its keys."""
    root: AnyInts
    """(K,) root frame of each key."""
    pairs: "_Pairs"
    """Stacks and root frames that there are."""
    size: Floats
    """(M,) events of visits."""

    @classmethod
    def of(cls, database: "Database", query: Query, roots: Sequence[str]) -> "CountedStacks":
        """Count the samples of a query.

        Parameters
        ----------
        database : asked
        query : of one dimension of processes, or none
        roots : values of the dimension that have a root frame each; all others have one together

        Raises
        ------
        QueryError, ProfileError
            As `Database.stacks` does.
        """
        parts, by_process = max(1, database.rows // _PER_PART), tuple(filter(of_process, query.by))
        counted = database.counted(
            replace(query, by=tuple(dict.fromkeys(("visit", *by_process)))),
            lambda keys: pd.factorize(keys["visit"])[0].astype(np.int64) % parts,
            stacks=True,
        )
        visit = pd.factorize(counted.keys["visit"])[0].astype(np.int64)
        root = np.zeros(len(visit), dtype=np.int32)
        for name in by_process:
            place = {value: number for number, value in enumerate(roots)}
            values, codes = np.unique(counted.keys[name].astype(str).to_numpy(object), return_inverse=True)
            root = np.array([place.get(value, len(roots)) for value in values], dtype=np.int32)[codes]
        size = np.bincount(visit, counted.keys["value"]).astype(np.float64)
        pairs = _Pairs.of(counted, root)
        counted = replace(counted, keys=counted.keys[["scale"]])
        give_back_memory()
        return cls(counted, visit.astype(np.int32), root, pairs, size)

    def sums(self) -> tuple[Ints, AnyInts, Amounts]:
        """Return stacks and root frames of all pairs that have events, in their order, and these.

        Events are integers of 64 bits, or Python's where they need more; counts beyond 2**53 are rounded.
        """
        some = np.flatnonzero(self.pairs.value > 0)
        stack, root = self.counted.places["stack"].to_numpy(np.int64)[self.pairs.place[some]], self.pairs.root[some]
        order = np.lexsort((root, stack))
        return stack[order], root[order], self.pairs.value[some][order]

    def summed(self) -> "CountedStacks":
        """Return them without what only `sums` rests on."""
        return replace(self, pairs=replace(self.pairs, value=self.pairs.value[:0].copy()))

    def moments(
        self, on: tuple[Ints, AnyInts], items: tuple[AnyInts, AnyInts], value: Floats, names: Sequence[object]
    ) -> ShareMoments:
        """Return what the intervals of the shares of items rest on.

        Parameters
        ----------
        on : (P,) stacks and root frames, each pair once, in their order
        items : (P + 1,) where the items of each pair begin, and their numbers, each once of a pair
        value : (P,) events
        names : (K,) of the items, as `item` of the keys
        """
        from analysis.profiling.counted import ordered

        total, clusters = max(float(self.size.sum()), 1.0), clusters_of(self.size)
        share = np.zeros(len(names))
        for begin in range(0, len(value), _PAIRS_AT_ONCE):
            first = items[0][begin : begin + _PAIRS_AT_ONCE + 1]
            weight = np.repeat(value[begin : begin + _PAIRS_AT_ONCE] / total, np.diff(first))
            share += np.bincount(items[1][first[0] : first[-1]], weight, len(names))
        first, last = self._ranges(on, items[0])
        give_back_memory()
        sums, inside, touched = _no_sums(len(names)), np.zeros(len(names)), np.zeros(len(names), dtype=np.int64)
        scale = self.counted.keys["scale"].to_numpy(np.float64) / total
        for part in range(self.counted.parts):
            key, on_place, count = self.counted.counts(part)
            order = ordered(self.visit[key], np.arange(len(key), dtype=np.int32))
            key = key[order]
            pair = self.pairs.find(on_place[order], self.root[key])
            rows = self.visit[key], pair, count[order] * scale[key]
            _add_items(rows, (first, last, items[1]), (share, *clusters), (inside, touched, sums))
        second, fourth = _moments(sums, share, clusters)
        counts, visits = np.full(len(names), np.nan), int((self.size > 0).sum())
        return ShareMoments(pd.DataFrame({"item": list(names)}), share, second, fourth, counts, visits)

    def _ranges(self, on: tuple[Ints, AnyInts], begin: AnyInts) -> tuple[AnyInts, AnyInts]:
        """Return where the items of each of our pairs begin and end; `on` and `begin` are as of `moments`."""
        width = int(max(on[1].max(initial=0), self.root.max(initial=0))) + 1
        known = on[0] * width
        known += on[1]
        own = self.counted.places["stack"].to_numpy(np.int64)[self.pairs.place]
        own *= width
        own += self.pairs.root
        at = np.searchsorted(known, own)
        np.minimum(at, len(known) - 1, out=at)
        other = known[at] != own
        del known, own
        first = begin[at]
        at += 1
        last = begin[at]
        first[other] = last[other] = 0
        return first, last


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of a place and a root frame; most places have one root."""

    last: AnyInts
    """(L,) number of the last pair of each place, −1: it has none."""
    before: AnyInts
    """(Q,) number of the pair of the same place before it."""
    place: AnyInts
    """(Q,)"""
    root: AnyInts
    """(Q,)"""
    value: Amounts
    """(Q,) events."""

    @classmethod
    def of(cls, counted: "CountedSamples", root: AnyInts) -> "_Pairs":
        """Return the pairs of samples; `root` is of each of their keys."""
        kind = object if float(counted.keys["value"].sum()) >= _WIDE else np.int64
        scale = _whole(counted.keys["scale"].to_numpy(np.float64), kind)
        last, count = np.full(len(counted.places), -1, dtype=np.int32), 0
        before, place, of_pair = np.empty((3, max(len(last), 1)), dtype=np.int32)
        value = np.zeros(len(before), dtype=kind)
        for part in range(counted.parts):
            key, on, amount = counted.counts(part)
            rows, pair, begin = (on, root[key]), np.empty(len(key), dtype=np.int32), 0
            while begin < len(key):
                begin, count = _find_pairs(rows, pair, last, (before, place, of_pair), (begin, count))
                if begin < len(key):
                    more = np.empty((3, len(before)), dtype=np.int32)
                    before, place, of_pair = np.concatenate([(before, place, of_pair), more], axis=1)
                    value = np.concatenate([value, np.zeros(len(value), dtype=kind)])
            np.add.at(value, pair, _whole(amount, kind) * scale[key])
        before, place, of_pair = (own[:count].copy() for own in (before, place, of_pair))
        return cls(last, before, place, of_pair, value[:count].copy())

    def find(self, place: AnyInts, root: AnyInts) -> AnyInts:
        """Return the numbers of pairs that there are."""
        pair = np.empty(len(place), dtype=np.int32)
        known = self.before, self.place, self.root
        _find_pairs((place, root), pair, self.last, known, (0, len(self.before)))
        return pair


def _whole(amounts: Amounts, kind: type) -> Amounts:
    """Return whole amounts as integers of 64 bits, or Python's if the kind is object."""
    return (
        np.array([int(amount) for amount in amounts.tolist()], dtype=object) if kind is object else amounts.astype(kind)
    )


@njit(nogil=True, borrows=True)
def _find_pairs(
    rows: tuple[AnyInts, AnyInts],
    pair: AnyInts,
    last: AnyInts,
    known: tuple[AnyInts, AnyInts, AnyInts],
    state: tuple[int, int],
) -> tuple[int, int]:
    """Write the numbers of rows' pairs, new ones where there are none; return where there was no room, and the pairs.

    Parameters
    ----------
    rows : (n,) places and roots
    pair : (n,)
    last, known : as of `_Pairs`, with room for more
    state : first row, and pairs so far
    """
    place, root = rows
    before, place_of, root_of = known
    row, count = state
    while row < len(place):
        at = last[place[row]]
        while at >= 0 and root_of[at] != root[row]:
            at = before[at]
        if at < 0:
            if count == len(before):
                break
            at = count
            before[at], place_of[at], root_of[at] = last[place[row]], place[row], root[row]
            last[place[row]] = at
            count += 1
        pair[row] = at
        row += 1
    return row, count


@njit(nogil=True, borrows=True)
def _add_items(
    entries: tuple[AnyInts, AnyInts, Floats],
    items: tuple[AnyInts, AnyInts, AnyInts],
    shares: tuple[Floats, Floats, Floats],
    into: tuple[Floats, Ints, _Sums],
) -> None:
    """Add the entries of some visits, visit after visit, up by what their stacks have.

    Parameters
    ----------
    entries : (n,) visit, pair, and value as a part of everything
    items : where the items of each pair begin and end; items
    shares : (K,) of items; clusters as of `clusters_of`
    into : (K,) zeros, as which they are left, and numbers: a visit's values of items, and which these are; as of `_add`
    """
    visits, pairs, value = entries
    first, last, item = items
    share, leverage, weight = shares
    inside, touched, sums = into
    count = 0
    for at in range(len(pairs)):
        pair, visit = pairs[at], visits[at]
        for place in range(first[pair], last[pair] if value[at] > 0.0 else first[pair]):
            own = item[place]
            if inside[own] == 0.0:
                touched[count] = own
                count += 1
            inside[own] += value[at]
        if at + 1 == len(pairs) or visits[at + 1] != visit:
            for own in touched[:count]:
                _add(sums, own, share[own], inside[own], (leverage[visit], weight[visit]))
                inside[own] = 0.0
            count = 0


def _refuse(keys: int) -> None:
    """Refuse more keys than an answer may have."""
    from analysis.profiling.database import MOST_ROWS

    if keys > MOST_ROWS:
        raise TooManyRowsError(f"the answer would have more than {MOST_ROWS:,} rows; ask for fewer dimensions")


class _KeyNumbers:
    """Numbers of keys: a combination of dimensions of processes, and one of dimensions of locations."""

    def __init__(self, counted: "CountedSamples", group: Ints, groups: pd.DataFrame) -> None:
        self._groups, self._places = groups, counted.places
        self._width = max(len(counted.places), 1)
        self._first = group * self._width
        self._known: Numbering | None = None
        self.count = max(len(groups), 1) * self._width
        """K"""

    @classmethod
    def of(cls, counted: "CountedSamples", by_process: list[str]) -> "_KeyNumbers":
        """Return those of samples; where few of very many pairs are sampled, only these have numbers.

        Parameters
        ----------
        counted : the samples
        by_process : dimensions of processes that are of the keys

        Raises
        ------
        QueryError
            If there are more keys than an answer may have.
        """
        group, groups = np.zeros(len(counted.keys), dtype=np.int64), pd.DataFrame(index=[0])
        if by_process:
            group, groups = distinct(counted.keys, by_process)
        numbers = cls(counted, group, groups)
        if numbers.count > _DENSE:
            known = numbers._marked(counted) if numbers.count <= _MARKED else numbers._sorted(counted)
            numbers._known, numbers.count = Numbering.of(known, np.arange(len(known), dtype=np.int32)), len(known)
        return numbers

    def _marked(self, counted: "CountedSamples") -> Ints:
        """Return the pairs that are sampled, rising, of not too many that there may be."""
        present = np.zeros(self.count, dtype=np.bool_)
        for part in range(counted.parts):
            key, place, _ = counted.counts(part)
            present[self._codes(key, place)] = True
        known = np.flatnonzero(present)
        _refuse(len(known))
        return known

    def _sorted(self, counted: "CountedSamples") -> Ints:
        """Return the pairs that are sampled, rising, of any number that there may be."""
        known, pending = np.zeros(0, dtype=np.int64), list[Ints]()
        for part in range(counted.parts):
            key, place, _ = counted.counts(part)
            pending.append(unique_sorted(self._codes(key, place)))
            if part + 1 == counted.parts or sum(map(len, pending)) > max(_AT_ONCE, len(known)):
                known = unique_sorted(np.concatenate([known, *pending]))
                pending.clear()
            _refuse(len(known))
        return known

    def _codes(self, key: AnyInts, place: AnyInts) -> Ints:
        codes: Ints = self._first[key] + place
        return codes

    def index(self, key: AnyInts, place: AnyInts) -> AnyInts:
        """Return (n,) numbers of keys.

        Parameters
        ----------
        key, place : (n,) rows of the samples' keys and places
        """
        codes = self._codes(key, place)
        return codes if self._known is None else self._known.places[self._known.index(codes)]

    def keys(self, numbers: Ints | slice) -> CodedKeys:
        """Return the dimensions of keys."""
        codes = (np.arange(self.count) if self._known is None else self._known.ids)[numbers]
        process, place = np.empty((2, len(codes)), dtype=np.int32)
        np.floor_divide(codes, self._width, out=process, casting="unsafe")
        np.remainder(codes, self._width, out=place, casting="unsafe")
        return CodedKeys(self._groups, self._places, process, place)
