"""Which samples and visits stand for the whole fleet, which were drawn at random, and for what time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.profiling.query import Profile, Query, Where
from models.arrays import DAY_S

FLEET = "fleet"
"""Collection that draws from all machines; others look again at some of them and must not be added."""
VISITS = ("collection", "visit", "machine")
"""What tells of a visit whether it was drawn at random."""

_LISTED = 4
"""Collections that are listed by name."""


def of_fleet(database: Profile, event: str, by: Sequence[str], where: Where = ()) -> Query:
    """Return a query of the samples that stand for the whole fleet; of all samples where no collection says so.

    Parameters
    ----------
    database : asked
    event : generic event
    by : dimensions to sum by
    where : restrictions
    """
    query = Query(event, tuple(by), where)
    return query.restricted("collection", FLEET) if FLEET in database.values("collection") else query


def visits_of_fleet(database: Profile) -> pd.DataFrame:
    """Return the visits that stand for the whole fleet."""
    visits = database.table("visits")
    fleet = visits["collection"] == FLEET
    return visits[fleet].reset_index(drop=True) if fleet.any() else visits


def on_visits(database: Profile, event: str) -> pd.DataFrame:
    """Return application, platform, machine, visit, samples, value and share of what stands for the whole fleet.

    Parameters
    ----------
    database : asked; it keeps the answer for whoever asks the same
    event : generic event
    """
    return database.query(of_fleet(database, event, ("application", "platform", "machine", "visit")))


def mean_frequency(visits: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean frequency of busy threads on each platform, hertz, weighted by the visits' weights.

    Examples
    --------
    >>> rows = {"platform": ["p", "p"], "frequency_hz": [1.0, 3.0], "weight": [1, 3]}
    >>> mean_frequency(pd.DataFrame(rows)).to_dict()
    {'p': 2.5}
    """
    known = visits[visits["frequency_hz"] > 0]
    weight = known["weight"].astype(np.float64)
    total = (known["frequency_hz"] * weight).groupby(known["platform"]).sum()
    return total / weight.groupby(known["platform"]).sum()


def span_s(visits: pd.DataFrame) -> float:
    """Return the time that the visits stand for, in whole days."""
    if not len(visits):
        return 0.0
    first, last = np.floor(float(visits["start_s"].min()) / DAY_S), np.floor(float(visits["start_s"].max()) / DAY_S)
    return float(last - first + 1) * DAY_S


def drawn_collections(database: Profile) -> set[str]:
    """Return the collections that the fleet's collector drew; a file of another tool has weights of 1 and no power."""
    visits = database.table("visits")
    return set(visits.loc[(visits["weight"] > 1) | visits["power_w"].notna(), "collection"].astype(str))


def listed(names: Sequence[str], most: int = _LISTED) -> str:
    """Return names with commas between them; of many the first and their number.

    Parameters
    ----------
    names : at least one
    most : names that are listed
    """
    return ", ".join(names) if len(names) <= most else f"{names[0]} and {len(names) - 1:,} more"


def visits_of(database: Profile, query: Query) -> pd.DataFrame:
    """Return collection, visit, machine, samples, value and share of the visits that have samples of a query.

    Parameters
    ----------
    database : asked
    query : whose samples; its dimensions do not matter
    """
    return database.query(replace(query, by=VISITS))


def undrawn(database: Profile, query: Query) -> str:
    """Return why samples are not a random sample of machines; nothing if they are one.

    Parameters
    ----------
    database : asked
    query : whose samples; its dimensions do not matter
    """
    visits = visits_of(database, query)
    collections = set(visits["collection"])
    if len(collections) > 1:
        names = sorted(map(str, collections))
        drawn = drawn_collections(database) & set(names)
        # Files of other tools, each its own collection, may be a sample of machines; nobody has said so.
        cure = "" if drawn else "; wsc profile import --drawn-from says of how many machines they are a sample"
        return f"samples of several collections ({listed(names)}) do not add up to one{cure}"
    if not collections <= drawn_collections(database):
        return "no collector drew these machines at random"
    machines = len(set(visits["machine"]))
    return "" if machines > 1 else "all samples come from one machine" if machines else "there are no samples"
