"""Machines that an estimator needs to detect a change, in each corner of a sweep, and relative to other estimators.

Draws from one fleet are alike, so errors come from leaving out one fleet after another (jackknife).
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.statistics import student_quantile
from models.arrays import Floats

WANTED = 0.95
"""Share of draws in which a change is to be detected."""
AGAINST = ("cuped", "published")
"""Estimators that the machines needed are compared with."""
_FEWEST = 2
"""Fleets of which no error can be told: what two of them differ by is hardly known."""
_NAMES = ["corner", "design", "estimator"]


def needed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the machines needed in each corner by each design and estimator.

    Parameters
    ----------
    table : corner, seed, design, estimator, machines, draws, detected

    Returns
    -------
    DataFrame
        corner, design, estimator, n95 (machines at which the change is detected in 95% of draws), bound ("" if known,
        "at most" the least size, "more than" the greatest), relative_error (over fleets; NaN of one or two, or where
        only a bound is known), left (by seed, n95 without that fleet). Sizes that some fleet lacks are not looked at.
    """
    rows = []
    for names, of in table.groupby(_NAMES, sort=False):
        detected, draws = (
            of.pivot_table(index="seed", columns="machines", values=name) for name in ("detected", "draws")
        )
        every = detected.notna().all()
        if not every.any():
            continue
        hits, tries = detected.loc[:, every].to_numpy(), draws.loc[:, every].to_numpy()
        sizes = [int(size) for size in detected.columns[every]]
        n95, bound = machines_needed(sizes, hits.sum(axis=0) / tries.sum(axis=0))
        left = dict(zip(detected.index.tolist(), _without_each(sizes, hits, tries), strict=False))
        rows.append([*names, n95, bound, math.nan if bound else jackknife(np.log(list(left.values()))), left])
    return pd.DataFrame(rows, columns=[*_NAMES, "n95", "bound", "relative_error", "left"])


def machines_needed(sizes: Sequence[int], power: Floats, wanted: float = WANTED) -> tuple[float, str]:
    """Return how many machines have the wanted power, and in which way that is only bounded.

    Between the greatest size whose power falls short and the next one, power is interpolated in the logarithm of size.

    Parameters
    ----------
    sizes : ascending
    power : (S,) shares
    wanted : share
    """
    short = np.flatnonzero(power < wanted)
    if not len(short):
        return float(sizes[0]), "at most"
    last = int(short[-1])
    if last == len(sizes) - 1:
        return float(sizes[-1]), "more than"
    share = (wanted - power[last]) / (power[last + 1] - power[last])
    between = (1 - share) * math.log(sizes[last]) + share * math.log(sizes[last + 1])
    return round(math.exp(between), 9), ""


def ratios(machines: pd.DataFrame) -> pd.DataFrame:
    """Return how many machines every estimator needs relative to those it is compared with.

    Parameters
    ----------
    machines : as from `needed`

    Returns
    -------
    DataFrame
        design, estimator, against, ratio (geometric mean of n95 over corners in which both are known), low and high
        (95% interval over corners), corners, unknown (corners in which one of them is not known).
    """
    rows = []
    for design, of in machines.groupby("design", sort=False):
        known = of.assign(n95=of["n95"].where(of["bound"] == ""))
        wide = known.pivot_table(index="corner", columns="estimator", values="n95", dropna=False, sort=False)
        for against in (name for name in AGAINST if name in wide):
            for estimator in wide.columns:
                logs = np.log((wide[estimator] / wide[against]).dropna().to_numpy(dtype=np.float64))
                rows.append([design, estimator, against, *_geometric(logs), len(logs), len(wide) - len(logs)])
    return pd.DataFrame(rows, columns=["design", "estimator", "against", "ratio", "low", "high", "corners", "unknown"])


def gains(machines: pd.DataFrame, against: str = AGAINST[0]) -> pd.DataFrame:
    """Return how many times as many machines another estimator needs on the same draws, over corners and at worst.

    Where the other one needs more machines than were tried, or this one fewer, the gain is at least what the sizes
    tried say; where this one needs more, or the other fewer, it is at most that. Both count as what they are bounded
    by. Of corners where both need more, or both fewer, nothing is known.

    Parameters
    ----------
    machines : as from `needed`
    against : the other estimator

    Returns
    -------
    DataFrame
        design, estimator, against, gain (geometric mean over corners), low and high (95% interval over corners),
        corners, bounded (how many of them count as a bound), at_most (of these, those whose gain is at most that),
        unknown (other corners), worst (the least gain of a corner), worst_corner, worst_error (relative, over fleets).
    """
    rows = []
    for (design, estimator), of in machines.groupby(["design", "estimator"], sort=False):
        others = machines[(machines["design"] == design) & (machines["estimator"] == against)]
        if estimator == against or others.empty:
            continue
        both = of.merge(others, on="corner", suffixes=("", "_other"))
        both = both[(both["bound"] == "") | (both["bound"] != both["bound_other"])].reset_index(drop=True)
        logs = np.log((both["n95_other"] / both["n95"]).to_numpy(dtype=np.float64))
        bounded = int(((both["bound"] != "") | (both["bound_other"] != "")).sum())
        at_most = int(((both["bound"] == "more than") | (both["bound_other"] == "at most")).sum())
        named = [design, estimator, against, *_geometric(logs), len(both), bounded, at_most, len(of) - len(both)]
        rows.append([*named, *_worst(both, logs)])
    columns = ["design", "estimator", "against", "gain", "low", "high", "corners", "bounded", "at_most", "unknown"]
    return pd.DataFrame(rows, columns=[*columns, "worst", "worst_corner", "worst_error"])


def jackknife(left: Floats) -> float:
    """Return the standard error of an estimate from what it is without each of its units; NaN of fewer than three."""
    units = len(left)
    return float(np.sqrt((units - 1) / units * ((left - left.mean()) ** 2).sum())) if units > _FEWEST else math.nan


def _without_each(sizes: Sequence[int], hits: Floats, tries: Floats) -> list[float]:
    """Return the machines needed without one fleet after another; none of one fleet."""
    if len(hits) < 2:
        return []
    power = (hits.sum(axis=0) - hits) / (tries.sum(axis=0) - tries)
    return [machines_needed(sizes, shares)[0] for shares in power]


def _worst(both: pd.DataFrame, logs: Floats) -> tuple[float, str, float]:
    """Return the least gain, its corner and its relative standard error over fleets."""
    if not len(logs):
        return math.nan, "", math.nan
    at = int(logs.argmin())
    mine, other = both["left"].iloc[at], both["left_other"].iloc[at]
    left = np.log([other[seed] / mine[seed] for seed in mine if seed in other])
    return math.exp(float(logs[at])), str(both["corner"].iloc[at]), jackknife(left)


def _geometric(logs: Floats) -> tuple[float, float, float]:
    """Return the geometric mean of what has these logarithms, and its 95% interval; NaN where there are too few."""
    if not len(logs):
        return math.nan, math.nan, math.nan
    mean = float(logs.mean())
    if len(logs) < 2:
        return math.exp(mean), math.nan, math.nan
    half = float(student_quantile(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs)))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
