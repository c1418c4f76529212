"""What every documented question shares: samples of the whole fleet, hertz, days, and how a parameter is read."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.profiling.held import Profile
from analysis.profiling.query import Query, QueryError, Where
from models.arrays import DAY_S

Value = str | int | float
FLEET = "fleet"
"""Collection that draws from all machines; others look again at some of them and must not be added."""


def of_fleet(database: Profile, event: str, by: Sequence[str], where: Where = ()) -> Query:
    """Return a query of the samples that stand for the whole fleet; of all samples where no collection says so.

    Parameters
    ----------
    database : asked
    event : generic event
    by : dimensions to sum by
    where : restrictions

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> held = Held(pd.DataFrame({"collection": ["fleet", "watch"]}))
    >>> of_fleet(held, "cycles", ("function",)).where
    (('collection', ('fleet',)),)
    """
    query = Query(event, tuple(by), where)
    return query.restricted("collection", FLEET) if FLEET in database.values("collection") else query


def visits_of_fleet(database: Profile) -> pd.DataFrame:
    """Return the visits that stand for the whole fleet.

    Examples
    --------
    >>> from analysis.profiling.held import Held
    >>> visits_of_fleet(Held(pd.DataFrame(), {"visits": pd.DataFrame({"collection": ["watch", "fleet"]})})).index
    RangeIndex(start=0, stop=1, step=1)
    """
    visits = database.table("visits")
    fleet = visits["collection"] == FLEET
    return visits[fleet].reset_index(drop=True) if fleet.any() else visits


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
    """Return the time that the visits stand for, in whole days.

    Examples
    --------
    >>> span_s(pd.DataFrame({"start_s": [10.0, 90000.0]}))
    172800.0
    """
    if not len(visits):
        return 0.0
    first, last = np.floor(float(visits["start_s"].min()) / DAY_S), np.floor(float(visits["start_s"].max()) / DAY_S)
    return float(last - first + 1) * DAY_S


def read(defaults: Mapping[str, Value], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters of a question: the defaults, and what was given in the defaults' types.

    Raises
    ------
    QueryError
        If a name is unknown or a value is no number where one is wanted; the message lists every fault.

    Examples
    --------
    >>> read({"top": 20, "function": ""}, {"top": "5"})
    {'top': 5, 'function': ''}
    """
    faults, made = [], dict(defaults)
    for name, value in given.items():
        if name not in defaults:
            faults.append(f"{name[:60]}: no such parameter; there are {', '.join(defaults) or 'none'}")
            continue
        kind = type(defaults[name])
        try:
            made[name] = kind(value)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            faults.append(f'{name}: should be {what}, got "{str(value)[:60]}"')
    faults += [f"{name}: should be finite, got {value}" for name, value in made.items() if not _finite(value)]
    if faults:
        raise QueryError("\n".join(faults))
    return made


def _finite(value: Value) -> bool:
    return isinstance(value, str) or bool(np.isfinite(value))


def shares(values: "pd.Series[float]") -> "pd.Series[float]":
    """Return values over their sum; 0 of nothing.

    Examples
    --------
    >>> shares(pd.Series([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    numbers = values.astype(np.float64)
    return numbers / max(float(numbers.sum()), 1.0)


def ranked(table: pd.DataFrame, by: str, keys: Sequence[str], top: int) -> pd.DataFrame:
    """Return the first rows by a column, largest first, ties in order of the keys.

    Examples
    --------
    >>> ranked(pd.DataFrame({"f": ["b", "a"], "value": [1, 1]}), "value", ["f"], 1)["f"].tolist()
    ['a']
    """
    order = table.sort_values([by, *keys], ascending=[False, *[True] * len(keys)], kind="stable")
    return order.head(max(top, 0)).reset_index(drop=True)
