"""Standard errors of what is drawn by day of profiles (Ren et al. 2010, Figures 4 to 6), from the visits of each day.

Visits are what was drawn at random, so the error comes from the spread between them (Kish 1965). It is that of the
plain number, as the paper takes it, whose bias it does not tell: sampling alone makes entropies smaller (by a quarter
of the half-width in Figure 4) and distances larger (by what Figure 6a draws as a line).
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from analysis.profiling.stability import clustered_entropy


def entropy_errors(clustered: pd.DataFrame) -> "pd.Series[float]":
    """Return the standard error of each day's entropy, nats.

    Parameters
    ----------
    clustered : day, entry, visit, samples, value

    Returns
    -------
    Series
        By day; NaN where a day has one visit alone.

    Examples
    --------
    >>> day = pd.DataFrame({"day": 1, "entry": ["a", "b"] * 2, "visit": [1, 1, 2, 2], "samples": 5, "value": 5.0})
    >>> entropy_errors(day).to_dict()
    {1: 0.0}
    """
    days = clustered.groupby("day", sort=True)
    errors = {day: clustered_entropy(part.drop(columns="day"), cluster="visit").standard_error for day, part in days}
    return pd.Series(errors, dtype=float)


def distance_errors(clustered: pd.DataFrame, top: int | None = None) -> "pd.Series[float]":
    """Return the standard error of each day's Manhattan distance from the day before.

    By the delta method, which takes the sign of each difference of shares as known: an entry whose difference is small
    beside its error varies less than that, so the error is rather too large than too small.

    Parameters
    ----------
    clustered : day, entry, visit, samples, value
    top : entries of the earlier day that count; all without it

    Returns
    -------
    Series
        By day, from the second on; NaN where either day has one visit alone.

    Examples
    --------
    >>> days = [1, 1, 1, 1, 2, 2, 2]
    >>> columns = {"day": days, "entry": list("ababaab"), "visit": [1, 1, 2, 2, 3, 4, 4], "samples": 5, "value": 5.0}
    >>> distance_errors(pd.DataFrame(columns)).round(3).to_dict()
    {2: 0.471}
    """
    errors: dict[object, float] = {}
    for (_, before), (day, after) in pairwise(clustered.groupby("day", sort=True)):
        share, other = (part.groupby("entry")["value"].sum() / part["value"].sum() for part in (before, after))
        chosen = share.nlargest(top).index if top else share.index.union(other.index)
        difference = share.reindex(chosen, fill_value=0.0) - other.reindex(chosen, fill_value=0.0)
        sign = pd.Series(np.sign(difference.to_numpy()), index=chosen)
        errors[day] = float(np.hypot(_error(before, sign), _error(after, sign)))
    return pd.Series(errors, dtype=float)


def _error(day: pd.DataFrame, weight: "pd.Series[float]") -> float:
    """Return the standard error of the sum of a day's shares, each times the weight of its entry."""
    weighted = day["value"] * day["entry"].map(weight).fillna(0.0)
    visits = day.assign(weighted=weighted).groupby("visit")[["value", "weighted"]].sum()
    size, total = visits["value"].to_numpy(), float(day["value"].sum())
    residual = (visits["weighted"].to_numpy() - weighted.sum() / total * size) / total
    return float(np.sqrt(np.sum(residual**2 / (1.0 - size / total)))) if len(visits) > 1 else float("nan")
