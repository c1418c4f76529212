"""Which samples stand for the fleet and were drawn at random, and what intervals their shares then have."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from analysis.profiling.fleet_samples import FLEET, drawn_collections, visits_of
from analysis.profiling.query import Query, QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analysis.profiling.database import Database
    from analysis.profiling.differences import CodedAnswer, CodedKeys, Difference
    from analysis.profiling.frames import AnyInts
    from analysis.profiling.intervals import ShareMoments
    from models.arrays import Bools, Floats, Ints

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


@dataclass(frozen=True, slots=True, eq=False)
class _RowErrors:
    """Errors of the shares of the rows of a difference."""

    place: "AnyInts"
    """(n,) where each row's are; −1: it has none."""
    error: "Floats"
    degrees: "Floats"

    def at(self, rows: "Ints | slice") -> "tuple[Floats, Floats]":
        """Return variances and degrees of freedom of some rows; 0 and 1 where there are none."""
        place = self.place[rows]
        known = place >= 0
        variance, degrees = np.zeros(len(place)), np.ones(len(place))
        variance[known] = np.nan_to_num(self.error[place[known]]) ** 2
        degrees[known] = self.degrees[place[known]]
        return variance, degrees


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
    from analysis.profiling.shelf import give_back_memory

    if why := incomparable(a, of_a, b, of_b):
        changes = a.difference(of_a, of_b, b)
        most = len(changes) if most is None else max(most, _FEW_CHANGES)
        return ChangedShares(changes.table(changes.greatest(changes.change, most)), len(changes), 0, why)
    sides = [_errors(a, of_a), _errors(b, of_b)]
    failed = (a, of_a) if sides[0] is None else (b, of_b)
    changes, errors = _difference(a, b, (of_a, of_b), sides)
    del sides
    give_back_memory()
    most, change = len(changes) if most is None else max(most, _FEW_CHANGES), changes.change
    rows = changes.greatest(change, most)
    if not errors:
        return ChangedShares(changes.table(rows), len(changes), 0, without(*failed))
    beyond = np.zeros(len(changes), dtype=np.bool_)
    for begin in range(0, len(changes), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        variances, degrees = zip(*(side.at(some) for side in errors), strict=True)
        beyond[some] = significant(change[some], variances, degrees, len(changes))
    if len(rows) < len(changes):
        rows = np.union1d(rows, changes.greatest(change, most, np.flatnonzero(beyond)))
        rows = changes.greatest(change, len(rows), rows)
    error = np.sqrt(sum(side.at(rows)[0] for side in errors))
    table = _with_reach(changes.table(rows), error, beyond[rows])
    return ChangedShares(table, len(changes), int(beyond.sum()), "")


def _difference(
    a: "Database", b: "Database", queries: tuple[Query, Query], sides: "Sequence[_Errors | None]"
) -> "tuple[Difference, list[_RowErrors]]":
    """Return two answers side by side, and their errors if both have some; what these rest on is not summed again."""
    from analysis.profiling.differences import Difference

    own, other = sides
    if own is None or other is None:
        return a.difference(*queries, b), []
    if own.answer is None or other.answer is None:
        difference = a.difference(*queries, b)
        at = [difference.at_keys(side.keys) for side in (own, other)]
    else:
        difference = Difference.of(own.answer, other.answer, queries[0].by)
        at = [*difference.at]
    errors = (_RowErrors(rows, side.error, side.degrees) for rows, side in zip(at, (own, other), strict=True))
    return difference, [*errors]


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


def significant(
    change: "Floats", variances: "Sequence[Floats]", degrees: "Sequence[Floats]", of: int | None = None
) -> "Bools":
    """Return which of K changes are significant, so that the chance of any false one is at most `FALSE_CHANGES`.

    Parameters
    ----------
    change : (K,) differences of two independent shares
    variances, degrees : of both shares, (K,) each
    of : so many changes, of which these are some; none: these are all
    """
    from scipy.special import stdtr

    whole = variances[0] + variances[1]
    parts = sum(variance**2 / freedom for variance, freedom in zip(variances, degrees, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(parts > 0, whole**2 / np.maximum(parts, 1e-300), 1.0)
        varies = whole > _NO_VARIANCE * change**2
        distance = np.where(varies & (np.abs(change) > _ROUNDING), np.abs(change) / np.sqrt(whole), 0.0)
    return np.asarray(2.0 * stdtr(np.maximum(freedom, 1.0), -distance) * max(of or len(change), 1) <= FALSE_CHANGES)


def independent(a: "Database", of_a: Query, b: "Database", of_b: Query) -> bool:
    """Return whether no visit is on both sides of a difference."""
    if not set(a.paths) & set(b.paths):
        return True
    clusters = [set(visits_of(profile, of)[CLUSTER].tolist()) for profile, of in ((a, of_a), (b, of_b))]
    return not clusters[0] & clusters[1]
