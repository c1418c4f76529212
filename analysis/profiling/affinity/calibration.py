"""What visits stand for, corrected by what the register of machines says: as much time on each platform as there was.

Machines are drawn from all, so how many of a platform are visited is left to chance, and with it the size of a
platform in the profile. How long machines of each platform there were on each day is known; weighted by that over what
answered (poststratification; Holt and Smith 1979), the platforms have their true sizes, and a visit without an answer
is made up for by those of the same platform and day.
"""

import numpy as np
import pandas as pd

from models.arrays import DAY_S, Floats

ANSWERED = ("ok", "down")
"""Statuses of visits of which it is known what the machine did."""
_STRATUM = ["platform", "day"]


def factors(visits: pd.DataFrame, machines: pd.DataFrame) -> "pd.Series[float]":
    """Return for each visit by what its weight is to be multiplied; ones where the register knows other platforms.

    What a machine is after it was rebuilt is that as which machines of its kind were visited.

    Parameters
    ----------
    visits : columns visit, machine, platform, start_s, weight, length_s, status, drawn from all machines
    machines : columns machine, platform (at first), feature_from_s (when it was rebuilt; NaN: never)

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0, 1, 2], "machine": [0, 1, 2], "platform": ["p", "p", "q"], "start_s": 0.0})
    >>> visits = visits.assign(weight=1, length_s=300.0, status="ok")
    >>> machines = pd.DataFrame({"machine": [0, 1, 2, 3], "platform": ["p", "p", "q", "q"], "feature_from_s": np.nan})
    >>> factors(visits, machines).tolist()
    [0.75, 0.75, 1.5]
    """
    ones = pd.Series(1.0, index=pd.Index(visits["visit"], name="visit"))
    rows = visits[["visit", "machine", "platform", "start_s"]].astype({"platform": str}).assign(
        day=np.floor(visits["start_s"] / DAY_S).astype(np.int64),
        time_s=visits["weight"].astype(np.float64) * visits["length_s"].astype(np.float64),
        answered=visits["status"].isin(ANSWERED),
    )  # fmt: skip
    register = _register(rows, machines.astype({"platform": str}))
    if register is None:
        return ones
    for each in (rows, rows.assign(day=0)):
        size = _sizes(register, rows["day"].unique(), pooled=not each["day"].any())
        known = each[each["answered"]].groupby(_STRATUM)["time_s"].sum().reindex(size.index).fillna(0.0)
        if (known[size > 0] > 0).all():
            planned = each.groupby("day")["time_s"].sum().reindex(size.index.get_level_values("day")).to_numpy()
            share = size / size.groupby("day").transform("sum")
            factor = (share * planned / known.where(known > 0)).fillna(1.0)
            return pd.Series(factor.reindex(pd.MultiIndex.from_frame(each[_STRATUM])).to_numpy(), ones.index)
    return ones


def _register(rows: pd.DataFrame, machines: pd.DataFrame) -> pd.DataFrame | None:
    """Return platform, begin_s and end_s of all that machines were; none if a visit found a machine to be another."""
    both = rows.merge(machines.rename(columns={"platform": "first"}), "left", "machine")
    rebuilt = both["start_s"] >= both["feature_from_s"]
    became = both[rebuilt].groupby("first")["platform"].agg(["first", "nunique"])
    expected = both["first"].map(became["first"]).where(rebuilt, both["first"])
    if (became["nunique"] > 1).any() or (expected != both["platform"]).any():
        return None
    changes = machines["feature_from_s"].notna()
    before = machines.assign(begin_s=0.0, end_s=machines["feature_from_s"].fillna(np.inf))
    later = machines["platform"].replace(became["first"].to_dict())
    after = machines.assign(platform=later, begin_s=machines["feature_from_s"], end_s=np.inf)[changes]
    return pd.concat([before, after])[["platform", "begin_s", "end_s"]]


def _sizes(register: pd.DataFrame, days: Floats, pooled: bool) -> "pd.Series[float]":
    """Return how long machines of each platform there were on each day, or on all of these days together as day 0."""
    made = [
        register.assign(
            day=0 if pooled else int(day),
            time_s=np.clip(
                np.minimum(register["end_s"], (day + 1) * DAY_S) - np.maximum(register["begin_s"], day * DAY_S),
                0.0,
                None,
            ),
        )
        for day in days
    ]
    return pd.concat(made).groupby(_STRATUM)["time_s"].sum()
