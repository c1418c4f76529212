"""Which samples stand for the fleet and were drawn at random, and what intervals their shares then have."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from analysis.profiling.fleet_samples import FLEET, drawn_collections, visits_of
from analysis.profiling.query import Query, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from analysis.profiling.database import Database
    from analysis.profiling.differences import CodedAnswer, CodedKeys, Difference
    from analysis.profiling.frames import AnyInts
    from analysis.profiling.intervals import ShareMoments
    from models.arrays import Bools, Floats

LEVEL = 0.95
"""Confidence of the intervals."""
CLUSTER = "visit"
"""What the collector draws at random."""
ERRORS = ["standard_error", "degrees"]
"""Columns of a share's error and of the degrees of freedom that it is known to."""
FALSE_CHANGES = 0.05
"""Chance that any change of a table or a drawing is called significant though nothing changed."""
DEPENDENT = "no intervals: some visits are on both sides"
_ROUNDING = 1e-9
_NO_VARIANCE = 1e-12
"""Variance over the squared change up to which it is rounding: it is none, as where all visits have the same share."""
_FEW = 200
"""Rows up to which they are asked for alone, as all others are one to them."""
_FEW_CHANGES = 100_000
"""Rows of a difference up to which all are told."""
_AT_ONCE = 200_000
"""Rows of a difference that are tested at a time."""
_MOST_CELLS = 1_000_000
"""Rows of samples up to which they are summed within visits at once."""


def of_fleet(database: "Database", question: Query) -> tuple[Query, list[str]]:
    """Return a question without the collections that look at machines of the fleet again, and their names.

    A question that names collections itself stays as it is.

    Parameters
    ----------
    database : asked
    question : the question
    """
    if "collection" in {*question.by, *(name for name, _ in question.where)}:
        return question, []
    collections = database.values("collection")
    again = [name for name in collections if name != FLEET and name in drawn_collections(database)]
    if FLEET not in collections or not again:
        return question, []
    return question.restricted("collection", *(name for name in collections if name not in again)), again


def intervals(database: "Database", question: Query, rows: "pd.DataFrame | None" = None) -> "pd.DataFrame | None":
    """Return keys, low, high, standard_error and degrees of each share over visits; none if none was drawn at random.

    Parameters
    ----------
    database : asked
    question : the question, of one collection; clusters among its dimensions have no interval
    rows : keys of the rows that are wanted; none: all

    Raises
    ------
    QueryError
        If the question cannot be answered.
    """
    from analysis.profiling.database import MOST_ROWS
    from analysis.profiling.intervals import intervals_of

    if not _drawn_within(database, question):
        return None
    try:
        if rows is not None and len(rows) and (len(rows) <= _FEW or database.row_count(question) > MOST_ROWS):
            shares = intervals_of(database, question, rows)
        else:
            shares = _moments(database, question).intervals(LEVEL)
    except QueryError:
        return None
    return shares[[*question.by, "low", "high", *ERRORS]]


def _drawn_within(database: "Database", question: Query) -> bool:
    return not {CLUSTER, "process"} & set(question.by) and drawn(database, question)


def _moments(database: "Database", question: Query) -> "ShareMoments":
    """Return what the intervals of all rows rest on, part by part where samples are many."""
    from analysis.profiling.intervals import ClusteredProfile, ShareMoments

    if database.rows > _MOST_CELLS:
        from analysis.profiling.counted_shares import counted_moments

        return counted_moments(database, question, CLUSTER)
    return ShareMoments.of(ClusteredProfile.of(database.clustered(question, CLUSTER), CLUSTER))


def _errors(database: "Database", question: Query) -> "_Errors | None":
    """Return the errors of all shares over visits; none where they have no intervals."""
    from analysis.profiling.differences import CodedAnswer, CodedKeys
    from analysis.profiling.shelf import give_back_memory

    if not _drawn_within(database, question):
        return None
    try:
        if database.rows > _MOST_CELLS:
            from analysis.profiling.counted_shares import coded_moments

            keys, value, moments = coded_moments(database, question, CLUSTER)
        else:
            moments, value = _moments(database, question), None
            keys = CodedKeys.of(moments.keys)
    except QueryError:
        return None
    answer = None if value is None else CodedAnswer(keys, value, int(value.sum()))
    errors = _Errors(keys, answer, moments.standard_error, moments.degrees)
    del moments
    give_back_memory()
    return errors


def drawn(database: "Database", question: Query) -> bool:
    """Return whether a question's samples are of two machines or more of one collection that draws them at random."""
    return not database.undrawn(question)


def without(database: "Database", question: Query) -> str:
    """Return in a line why the shares of a question have no intervals.

    Parameters
    ----------
    database : asked
    question : one to which `intervals` has no answer
    """
    if {CLUSTER, "process"} & set(question.by):
        return "no intervals: each visit was drawn once"
    return f"no intervals: {database.undrawn(question) or 'there are too many rows'}"


@dataclass(frozen=True, slots=True, eq=False)
class _Errors:
    """Standard errors and degrees of freedom of shares."""

    keys: "CodedKeys"
    """(n,)"""
    answer: "CodedAnswer | None"
    """Of these; none: events are not known exactly."""
    error: "Floats"
    degrees: "Floats"

    def at(self, place: "AnyInts") -> "tuple[Floats, Floats]":
        """Return variances and degrees of freedom of shares; 0 and 1 where places are −1."""
        known = place >= 0
        variance, degrees = np.zeros(len(place)), np.ones(len(place))
        variance[known] = np.nan_to_num(self.error[place[known]]) ** 2
        degrees[known] = self.degrees[place[known]]
        return variance, degrees


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """All changes between two queries, some rows at a time."""

    rows: int
    every: "Difference"
    """Those rows, or others of the same dimensions."""
    parts: "Iterable[tuple[Difference, Floats, Floats]]"
    """Rows, and of their changes variances and degrees of freedom; a variance of 0 is none."""
    without: str
    """Why there are no intervals; empty if there are."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangedShares:
    """The changes between two queries."""

    table: "pd.DataFrame"
    """Rows of `Database.diff`, with low, high and significant as of `with_change` where there are intervals: all, or
    the greatest, and of those that are significant the greatest, of very many."""
    rows: int
    """How many there are in all."""
    significant: int
    """Of these."""
    without: str
    """Why there are no intervals; empty if there are."""


def difference(a: "Database", of_a: Query, b: "Database", of_b: Query, most: int | None = 1) -> ChangedShares:
    """Return the changes between two queries, with intervals where there can be any; and else why there are none.

    Parameters
    ----------
    a, b : databases, or one and the same
    of_a, of_b : what is asked of them: one event, by the same dimensions
    most : so many rows at least are told, and all if they are no more than `_FEW_CHANGES`; none: all

    Raises
    ------
    QueryError, ProfileError
        As of `Database.diff`.
    """
    from analysis.profiling.database import refuse_many

    changes = _changes(a, of_a, b, of_b)
    if most is None:
        refuse_many(changes.rows)
    most = changes.rows if most is None else max(most, _FEW_CHANGES)
    greatest, variance, beyond, count = _greatest(changes, most)
    change = greatest.change
    rows = greatest.greatest(change, most)
    if changes.without:
        return ChangedShares(greatest.table(rows), changes.rows, 0, changes.without)
    if len(rows) < len(greatest):
        rows = np.union1d(rows, greatest.greatest(change, most, np.flatnonzero(beyond)))
        rows = greatest.greatest(change, len(rows), rows)
    table = _with_reach(greatest.table(rows), np.sqrt(variance[rows]), beyond[rows])
    return ChangedShares(table, changes.rows, count, "")


def _changes(a: "Database", of_a: Query, b: "Database", of_b: Query) -> _Changes:
    """Return all changes between two queries; parameters and errors as of `difference`."""
    from analysis.profiling.parted_differences import PartedDifference

    why, both = incomparable(a, of_a, b, of_b), ((a, of_a), (b, of_b))
    parted = PartedDifference.of(both, CLUSTER) if max(a.rows, b.rows) > _MOST_CELLS else None
    if parted is not None:
        return _Changes(parted.rows, parted.every, parted, why)
    sides = [None if why else _errors(*side) for side in both]
    if not why and None in sides:
        why = without(*both[sides.index(None)])
    whole = _at_once(a, b, (of_a, of_b), sides)
    return _Changes(len(whole[0]), whole[0], [whole], why)


def _at_once(
    a: "Database", b: "Database", queries: tuple[Query, Query], sides: "Sequence[_Errors | None]"
) -> "tuple[Difference, Floats, Floats]":
    """Return two answers side by side, variances of changes and their degrees of freedom; variances are 0 unless both
    sides have errors. What these rest on is not summed again."""
    from analysis.profiling.differences import Difference
    from analysis.profiling.intervals import welch

    own, other = sides
    if own is not None and other is not None and own.answer is not None and other.answer is not None:
        difference = Difference.of(own.answer, other.answer, queries[0].by)
        at = [*difference.at]
    else:
        difference = a.difference(*queries, b)
        at = [difference.at_keys(side.keys) for side in sides if side is not None]
    variance, degrees = np.zeros(len(difference)), np.ones(len(difference))
    for begin in range(0, len(difference) if None not in sides else 0, _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        errors = [side.at(place[some]) for side, place in zip(sides, at, strict=True) if side is not None]
        variance[some], degrees[some] = welch(*zip(*errors, strict=True))
    return difference, variance, degrees


def _greatest(changes: _Changes, most: int) -> "tuple[Difference, Floats, Bools, int]":
    """Return the greatest changes and the greatest significant ones, and others; variances, and which are significant.

    The last is how many are significant in all.
    """
    columns, count, least = list[tuple[np.ndarray, ...]](), 0, (0.0, 0.0)
    for rows, variance, degrees in changes.parts:
        change = rows.change
        beyond = _beyond(change, variance, degrees, changes.rows)
        count += int(beyond.sum())
        size = np.abs(change)
        least = max(least[0], _last(size, most)), max(least[1], _last(size[beyond], most))
        some = np.flatnonzero((size >= least[0]) | (beyond & (size >= least[1])))
        own = rows.code[some], rows.values(0, some), rows.values(1, some), size[some], variance[some], beyond[some]
        columns.append(own)
        if sum(len(column[0]) for column in columns) > 3 * most:
            whole = tuple(map(np.concatenate, zip(*columns, strict=True)))
            least = _last(whole[3], most), _last(whole[3][whole[5]], most)
            great = (whole[3] >= least[0]) | (whole[5] & (whole[3] >= least[1]))
            columns = [tuple(column[great] for column in whole)]
    code, of_a, of_b, _, variance, beyond = map(np.concatenate, zip(*columns, strict=True))
    return changes.every.like(code, (of_a, of_b)), variance, beyond, count


def _last(size: "Floats", most: int) -> float:
    """Return the last of so many greatest; 0 of fewer."""
    return float(np.partition(size, -most)[-most]) if len(size) > most else 0.0


def incomparable(a: "Database", of_a: Query, b: "Database", of_b: Query) -> str:
    """Return in a line why the changes between two queries have no intervals; nothing if they can have some.

    Parameters
    ----------
    a, b : databases, or one and the same
    of_a, of_b : what is asked of them
    """
    if not independent(a, of_a, b, of_b):
        return DEPENDENT
    sides = ((a, of_a), (b, of_b))
    return next((without(*side) for side in sides if {CLUSTER, "process"} & set(side[1].by) or not drawn(*side)), "")


def with_change(table: "pd.DataFrame", by: list[str], a: "pd.DataFrame", b: "pd.DataFrame") -> "pd.DataFrame":
    """Add low and high of the change of two independent shares to the rows of a difference, and if it is significant.

    The interval of each row, 95%, is normal. A change is significant if it is in t so far from 0 that over all K rows
    the chance that any is called so by chance is at most `FALSE_CHANGES` (Bonferroni: a two-sided p-value below 0.05 /
    K), with the degrees of freedom of Welch (1947).

    Parameters
    ----------
    table : all rows of the difference, with the keys and change
    by : the keys
    a, b : of each side, keys, standard_error and degrees

    Examples
    --------
    >>> import pandas as pd
    >>> side = pd.DataFrame({"function": ["f"], "standard_error": [0.01], "degrees": [20.0]})
    >>> with_change(pd.DataFrame({"function": ["f"], "change": [0.1]}), ["function"], a=side, b=side).round(3)
      function  change    low   high  significant
    0        f     0.1  0.072  0.128         True
    """
    variances = []
    freedoms = []
    for side in (a, b):
        errors_of = table[by].merge(side[[*by, *ERRORS]], on=by, how="left")
        variances.append(errors_of["standard_error"].fillna(0.0).to_numpy(np.float64) ** 2)
        freedoms.append(errors_of["degrees"].fillna(1.0).to_numpy(np.float64))
    errors = np.sqrt(variances[0] + variances[1])
    return _with_reach(table, errors, significant(table["change"].to_numpy(np.float64), variances, freedoms))


def _with_reach(table: "pd.DataFrame", errors: "Floats", beyond: "Bools") -> "pd.DataFrame":
    """Add low and high of changes, of which the standard errors are known, and whether they are significant."""
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * errors
    return table.assign(low=table["change"] - reach, high=table["change"] + reach, significant=beyond)


def significant(change: "Floats", variances: "Sequence[Floats]", degrees: "Sequence[Floats]") -> "Bools":
    """Return which of K changes are significant, so that the chance of any false one is at most `FALSE_CHANGES`.

    Parameters
    ----------
    change : (K,) differences of two independent shares
    variances, degrees : of both shares, (K,) each
    """
    from analysis.profiling.intervals import welch

    return _beyond(change, *welch(variances, degrees), len(change))


def _beyond(change: "Floats", variance: "Floats", degrees: "Floats", of: int) -> "Bools":
    """Return which of some changes, of so many, are significant."""
    from scipy.special import ndtri, stdtr

    far = (variance > _NO_VARIANCE * change**2) & (np.abs(change) > _ROUNDING)
    distance = np.divide(np.abs(change), np.sqrt(variance), out=np.zeros(len(change)), where=far)
    # Student's law has longer tails than the normal one.
    beyond = distance >= -ndtri(min(FALSE_CHANGES / max(of, 1), 1.0) / 2.0) * (1.0 - 1e-9)
    p_value = 2.0 * stdtr(np.maximum(degrees[beyond], 1.0), -distance[beyond])
    beyond[beyond] = p_value * max(of, 1) <= FALSE_CHANGES
    return np.asarray(beyond, dtype=np.bool_)


def independent(a: "Database", of_a: Query, b: "Database", of_b: Query) -> bool:
    """Return whether no visit is on both sides of a difference."""
    if not set(a.paths) & set(b.paths):
        return True
    clusters = [set(visits_of(profile, of)[CLUSTER].tolist()) for profile, of in ((a, of_a), (b, of_b))]
    return not clusters[0] & clusters[1]
