"""Which samples were drawn at random, so that shares of them have intervals."""

from dataclasses import replace

import pandas as pd

from analysis.profiling.effective import share_intervals
from analysis.profiling.held import Profile
from analysis.profiling.query import Query


def drawn_collections(database: Profile) -> set[str]:
    """Return the collections that the fleet's collector drew; a file of another tool has weights of 1 and no power.

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> visits = pd.DataFrame({"collection": ["fleet", "cpu.pb"], "weight": [12, 1], "power_w": float("nan")})
    >>> drawn_collections(Held(pd.DataFrame(), {"visits": visits}))
    {'fleet'}
    """
    visits = database.table("visits")
    return set(visits.loc[(visits["weight"] > 1) | visits["power_w"].notna(), "collection"].astype(str))


def undrawn(database: Profile, query: Query) -> str:
    """Return why samples are not a random sample of machines; nothing if they are one.

    Parameters
    ----------
    database : asked
    query : whose samples; its dimensions do not matter

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> rows = {"event": "cycles", "collection": "cpu.pb", "visit": 0, "machine": [0], "samples": 3, "value": 3}
    >>> visits = pd.DataFrame({"collection": ["cpu.pb"], "weight": [1], "power_w": float("nan")})
    >>> undrawn(Held(pd.DataFrame(rows), {"visits": visits}), Query())
    'no collector drew these machines at random'
    """
    seen = database.query(replace(query, by=("collection", "visit", "machine")))
    collections = set(seen["collection"])
    if len(collections) > 1:
        return f"samples of several collections ({', '.join(sorted(collections))}) do not add up to one"
    if not collections <= drawn_collections(database):
        return "no collector drew these machines at random"
    machines = len(set(seen["machine"]))
    return "" if machines > 1 else "all samples are of one machine" if machines else "there are no samples"


def intervals(database: Profile, query: Query) -> pd.DataFrame:
    """Return shares with intervals over visits; low and high are NaN where visits were not drawn at random.

    Parameters
    ----------
    database : asked
    query : whose dimensions are the keys

    Returns
    -------
    DataFrame
        as of `share_intervals`.

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> rows = {"event": "cycles", "function": ["f", "g"], "visit": [0, 1], "samples": 3, "value": 3}
    >>> intervals(Held(pd.DataFrame(rows)), Query(by=("function",)))["high"].round(2).tolist()
    [1.0, 1.0]
    """
    return known(share_intervals(database.clustered(query, "visit"), cluster="visit"), database.undrawn(query))


def known(table: pd.DataFrame, undrawn: str = "") -> pd.DataFrame:
    """Return shares whose intervals are NaN where nothing is known of them: undrawn, or of one cluster alone.

    Parameters
    ----------
    table : of `share_intervals`
    undrawn : why there are no intervals at all; empty: there are

    Examples
    --------
    >>> known(pd.DataFrame({"low": [0.0], "high": [1.0], "standard_error": [float("nan")]})).values.tolist()
    [[nan, nan, nan]]
    """
    there = table["standard_error"].notna() & (not undrawn)
    return table.assign(low=table["low"].where(there), high=table["high"].where(there))
