"""Which samples stand for the fleet and were drawn at random, and what intervals their shares then have."""

from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from analysis.profiling.asking import FLEET
from analysis.profiling.drawn import drawn_collections
from analysis.profiling.query import Query, QueryError

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.database import Database

LEVEL = 0.95
"""Confidence of the intervals."""
CLUSTER = "visit"
"""What the collector draws at random."""
_MOST_CELLS = 2_000_000


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
    there = database.values("collection")
    again = [name for name in there if name != FLEET and name in drawn_collections(database)]
    if FLEET not in there or not again:
        return question, []
    return question.restricted("collection", *(name for name in there if name not in again)), again


def intervals(database: "Database", question: Query) -> "pd.DataFrame | None":
    """Return keys, low, high and standard_error of each share over visits; none where no visit was drawn at random.

    Parameters
    ----------
    database : asked
    question : the question, of one collection; clusters among its dimensions have no interval

    Raises
    ------
    QueryError
        If the question cannot be answered.
    """
    from analysis.profiling.effective import share_intervals

    if {CLUSTER, "process"} & set(question.by) or not drawn(database, question):
        return None
    try:
        clustered = database.clustered(question, CLUSTER, most=_MOST_CELLS)
    except QueryError:
        return None
    found = share_intervals(clustered, cluster=CLUSTER, confidence=LEVEL)
    return found[[*question.by, "low", "high", "standard_error"]]


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


def with_change(table: "pd.DataFrame", by: list[str], a: "pd.DataFrame", b: "pd.DataFrame") -> "pd.DataFrame":
    """Add low and high of the change of two independent shares to the rows of a difference.

    Parameters
    ----------
    table : rows with the keys and change
    by : the keys
    a, b : of each side, keys and standard_error

    Examples
    --------
    >>> import pandas as pd
    >>> side = pd.DataFrame({"function": ["f"], "standard_error": [0.01]})
    >>> with_change(pd.DataFrame({"function": ["f"], "change": [0.1]}), ["function"], a=side, b=side).round(3)
      function  change    low   high
    0        f     0.1  0.072  0.128
    """
    errors = np.zeros(len(table))
    for side in (a, b):
        found = table[by].merge(side[[*by, "standard_error"]], on=by, how="left")["standard_error"].fillna(0.0)
        errors = np.hypot(errors, found.to_numpy(np.float64))
    reach = NormalDist().inv_cdf(0.5 + LEVEL / 2) * errors
    return table.assign(low=table["change"] - reach, high=table["change"] + reach)


def independent(a: "Database", of_a: Query, b: "Database", of_b: Query) -> bool:
    """Return whether no visit is on both sides of a difference."""
    if not set(a.paths) & set(b.paths):
        return True
    seen = [set(one.query(replace(of, by=(CLUSTER,)))[CLUSTER].tolist()) for one, of in ((a, of_a), (b, of_b))]
    return not seen[0] & seen[1]
