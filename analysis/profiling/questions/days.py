"""Questions about change: roll-outs day by day, and code whose profile one build's feedback would not fit."""

import math

import numpy as np
import pandas as pd

from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.intervals import ClusteredProfile, known, share_intervals
from analysis.profiling.query import DIMENSIONS, Profile, QueryError, dimension
from analysis.profiling.questions.question import ranked
from analysis.profiling.stability import expected_distance

_LEAST_SAMPLES = 50
"""Samples of an application in one place from which its profile there is compared."""


def rollout(
    database: Profile, by: str = "compiler", application: str = "", event: str = "cycles", top: int = 200
) -> pd.DataFrame:
    """Return the share of each compiler (revision, kernel, platform, …) day by day, with intervals.

    Parameters
    ----------
    database : asked
    by : dimension that is rolled out
    application : only this one; empty: all
    event : what is counted
    top : rows

    Returns
    -------
    DataFrame
        day, the dimension, share (of the day), low, high, samples; in order of days, largest share first.
    """
    own = dimension(by)
    if own in ("day", "date", "visit", "machine", "process"):
        raise QueryError(f"by: {own} is not rolled out")
    where = (("application", (application,)),) if application else ()
    query = of_fleet(database, event, ("day", own), where)
    clustered, undrawn = database.clustered(query, "visit"), database.undrawn(query)
    parts = [
        known(share_intervals(part.drop(columns="day"), cluster="visit"), undrawn).assign(day=day)
        for day, part in clustered.groupby("day", sort=True)
    ]
    columns = ["day", own, "share", "low", "high", "samples"]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)[columns].head(max(top, 0))


def unsuited(
    database: Profile, across: str = "machine", min_excess: float = 0.25, event: str = "cycles", top: int = 20
) -> pd.DataFrame:
    """Return the applications that feedback from one profile would suit badly: it differs, is flat, or is cold.

    A compiler optimises what one profile of the application says. Where machines (days, platforms) differ
    by more than sampling makes them, one profile is wrong for most of them; where no function stands out, or the
    application is small, there is little to gain.

    Parameters
    ----------
    database : asked
    across : dimension over which profiles are compared: machine, day, platform, datacentre, …
    min_excess : Manhattan distance beyond sampling from which a profile differs, 0..2
    event : what is counted
    top : rows

    Returns
    -------
    DataFrame
        application, share (of the fleet), places (values of the dimension compared), distance (mean, of a place's
        profile to the application's), expected (of sampling alone), excess (√(distance² − expected²)),
        hottest_share (of its functions), reason (differs, flat, cold, or empty); largest excess first.
    """
    own = dimension(across)
    if own not in DIMENSIONS or own in ("application", "function"):
        raise QueryError(f"across: should be another dimension than {own}")
    rows, total = [], 0.0
    for name, part in database.clustered_apart(of_fleet(database, event, ("function",)), "application", own):
        data = _clusters(part, own)
        total += data.total
        if not name.startswith("["):
            rows.append((name, data.total, *_differences(data), float(data.shares.max())))
    columns = ["application", "share", "places", "distance", "expected", "excess", "hottest_share"]
    answer = pd.DataFrame(rows, columns=columns)
    answer["share"] /= max(total, 1.0)
    reason = np.select(
        [answer["excess"] >= min_excess, answer["hottest_share"] < 0.05, answer["share"] < 0.001],
        ["differs", "flat", "cold"],
        default="",
    )
    return ranked(answer.assign(reason=reason), "excess", ["application"], top)


def _clusters(part: pd.DataFrame, cluster: str) -> ClusteredProfile:
    """Return the clusters of rows of one function and cluster each."""
    function, own = (pd.Categorical(part[name]) for name in ("function", cluster))
    sums = (part[name].to_numpy(np.float64) for name in ("samples", "value"))
    return ClusteredProfile.of_numbers(
        pd.DataFrame({"function": function.categories}), (function.codes, own.codes), *sums
    )


def _differences(data: ClusteredProfile) -> tuple[int, float, float, float]:
    """Return places, mean distance to the whole, what sampling alone makes of it, and what is beyond that."""
    samples = np.bincount(data.cluster, data.samples, len(data.size))
    used = samples >= _LEAST_SAMPLES
    if used.sum() < 2:
        return int(used.sum()), 0.0, 0.0, 0.0
    shares = data.shares
    apart = np.abs(data.value / data.size[data.cluster] - shares[data.key]) - shares[data.key]
    distance = 1.0 + np.bincount(data.cluster, apart, len(data.size))
    weight = data.size[used] / data.size[used].sum()
    mean = float(weight @ distance[used])
    expected = float(weight @ (expected_distance(shares, 1.0) * np.sqrt(1.0 / samples[used])))
    return int(used.sum()), mean, expected, math.sqrt(max(mean**2 - expected**2, 0.0))
