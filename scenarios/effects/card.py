"""The scorecard summed up: coverage, bias, margins, power, and machines needed, of estimators over many fleets.

Draws from one fleet are alike, so every standard error takes fleets as units (Cochran 1977, section 2.11, equation
2.46: a ratio of sums over clusters).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.statistics import Floats

WANTED = 0.95
"""Share of draws in which a change is to be detected."""
AGAINST = ("cuped", "published")
"""Estimators that the machines needed are compared with."""
_EXPERIMENT = ["design", "estimator", "machines"]
_COUNTS = ["draws", "answered", "covered", "detected"]
_MEANS = ["bias", "error", "margin"]


def summary(pieces: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what all pieces together say.

    Parameters
    ----------
    pieces : as `pieces.judged` returns them, one at least

    Returns
    -------
    dict
        corners: one row for each corner, design, estimator and number of machines: fleets, draws, answered, covered,
        detected (sums), coverage and coverage_error, power and power_error (shares of draws and standard errors over
        fleets), bias, bias_error, sd, error, margin (of draws with an answer), bias_to_margin (size of the bias over
        the mean margin); overall: the same over all corners; needed: for each corner, design and estimator, n95
        (machines at which +1% is detected in 95% of draws), bound ("" if known, "at most" the least size, "more than"
        the greatest), relative_error (over fleets); ratios: design, estimator, against, ratio (geometric mean of n95
        over corners in which both are known), low and high (95% interval over corners), corners, unknown (corners in
        which one of them is not known); estimators: the table for people, a row for each design and estimator: fleets,
        coverage, coverage_error (all sizes and corners), worst (the least coverage of a corner), worst_corner,
        bias_to_margin (the greatest of a corner, all sizes), n95 (geometric mean over the corners in which it is
        known), corners (how many those are), cuped and published (the ratios to them); silent: designs and estimators
        without any answer, left out of the rest.

    Examples
    --------
    >>> row = {"design": "day", "draws": 10, "answered": 10, "bias": 0.0, "sd": 0.01, "error": 0.01, "margin": 0.02}
    >>> row |= {"estimator": "cuped", "covered": 9}
    >>> rows = [row | {"machines": 10, "detected": 9}, row | {"machines": 40, "detected": 10}]
    >>> made = summary([{"corner": "base", "seed": seed, "rows": rows} for seed in (1, 2)])
    >>> made["corners"][0]["coverage"], round(made["needed"][0]["n95"]), made["ratios"][0]["ratio"]
    (0.9, 20, 1.0)
    """
    table = frame(pieces)
    keys = ["design", "estimator"]
    said = table.groupby(keys, sort=False)["answered"].transform("sum") > 0
    silent = table.loc[~said, keys].drop_duplicates()
    table = table[said]
    needed = _needed(table)
    return {
        "corners": _records(_summed(table, ["corner", *_EXPERIMENT])),
        "overall": _records(_summed(table, _EXPERIMENT)),
        "needed": _records(needed),
        "ratios": _records(_ratios(needed)),
        "estimators": _records(_estimators(table, needed)),
        "silent": _records(silent),
    }


def frame(pieces: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of all pieces as one table, with corner and seed.

    Examples
    --------
    >>> frame([{"corner": "base", "seed": 1, "rows": [{"design": "day", "bias": None}]}]).columns.tolist()
    ['corner', 'seed', 'design', 'bias']
    """
    table = pd.DataFrame(
        [{"corner": one["corner"], "seed": one["seed"], **row} for one in pieces for row in one["rows"]]
    )
    moments = [name for name in (*_MEANS, "sd") if name in table]
    return table.astype(dict.fromkeys(moments, np.float64))


def machines_needed(sizes: Sequence[int], power: Floats, wanted: float = WANTED) -> tuple[float, str]:
    """Return how many machines have the wanted power, and in which way that is only bounded.

    Between the greatest size whose power falls short and the next one, power is interpolated in the logarithm of size.

    Parameters
    ----------
    sizes : ascending
    power : (S,) shares
    wanted : share

    Examples
    --------
    >>> machines_needed([10, 40], np.array([0.9, 1.0]))
    (20.0, '')
    >>> machines_needed([10, 40], np.array([0.8, 0.9])), machines_needed([10, 40], np.array([0.96, 1.0]))
    ((40.0, 'more than'), (10.0, 'at most'))
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


def _summed(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the sums and means of each group, a row each, in order of appearance."""
    groups = table.groupby(keys, sort=False)
    made = groups[_COUNTS].sum()
    made.insert(0, "fleets", groups.size())
    for name, count in (("coverage", "covered"), ("power", "detected")):
        made[name] = made[count] / made["draws"]
        made[f"{name}_error"] = _error(table, keys, table[count], table["draws"])
    weight = table["answered"]
    for name in _MEANS:
        total = (table[name].fillna(0.0) * weight).groupby([table[key] for key in keys], sort=False).sum()
        made[name] = total / made["answered"]
    made["bias_error"] = _error(table, keys, table["bias"].fillna(0.0) * weight, weight)
    made["sd"] = _spread(table, keys)
    made["bias_to_margin"] = made["bias"].abs() / made["margin"]
    return made.reset_index()


def _error(table: pd.DataFrame, keys: list[str], above: pd.Series, below: pd.Series) -> pd.Series:
    """Return the standard error of the ratio of two sums over fleets in each group; NaN of one fleet."""
    named = table[list(dict.fromkeys([*keys, "corner", "seed"]))].assign(above=above, below=below)
    each = named.groupby(list(named.columns[:-2]), sort=False)[["above", "below"]].sum().reset_index()
    of = [each[key] for key in keys]
    sums = each[["above", "below"]].groupby(of, sort=False)
    total = sums.transform("sum")
    apart = (each["above"] - total["above"] / total["below"] * each["below"]) ** 2
    squares, fleets = apart.groupby(of, sort=False).sum(), sums.size()
    return (squares * fleets / (fleets - 1).where(fleets > 1)) ** 0.5 / sums["below"].sum()


def _spread(table: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Return the standard deviation of all draws of a group round their mean: within fleets and between."""
    of, weight = [table[key] for key in keys], table["answered"]
    total = weight.groupby(of, sort=False).sum()
    mean = (table["bias"].fillna(0.0) * weight).groupby(of, sort=False).transform("sum")
    apart = table["bias"] - mean / weight.groupby(of, sort=False).transform("sum")
    squares = (weight - 1) * table["sd"].fillna(0.0) ** 2 + weight * apart.fillna(0.0) ** 2
    return (squares.groupby(of, sort=False).sum() / (total - 1).where(total > 1)) ** 0.5


def _estimators(table: pd.DataFrame, needed: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people."""
    keys = ["design", "estimator"]
    made = _summed(table, keys).set_index(keys)
    made["fleets"] = table.drop_duplicates([*keys, "corner", "seed"]).groupby(keys, sort=False).size()
    corners = _summed(table, ["corner", *keys]).set_index("corner").groupby(keys, sort=False)
    made["worst"], made["worst_corner"] = corners["coverage"].min(), corners["coverage"].idxmin()
    made["bias_to_margin"] = corners["bias_to_margin"].max()
    known = needed[needed["bound"] == ""].groupby(keys, sort=False)["n95"]
    made["n95"] = known.agg(lambda values: math.exp(np.log(values).mean()))
    made["corners"] = known.size().reindex(made.index, fill_value=0)
    ratios = _ratios(needed).set_index(keys)
    for against in AGAINST:
        made[against] = ratios.loc[ratios["against"] == against, "ratio"]
    shown = ["fleets", "coverage", "coverage_error", "worst", "worst_corner", "bias_to_margin", "n95", "corners"]
    return made[[*shown, *AGAINST]].reset_index()


def _needed(table: pd.DataFrame) -> pd.DataFrame:
    """Return the machines needed in each corner by each design and estimator."""
    rows = []
    for names, of in table.groupby(["corner", "design", "estimator"], sort=False):
        detected, draws = (
            of.pivot_table(index="seed", columns="machines", values=name) for name in ("detected", "draws")
        )
        every = detected.notna().all()
        if not every.any():
            continue
        hits, tries = detected.loc[:, every].to_numpy(), draws.loc[:, every].to_numpy()
        sizes = [int(size) for size in detected.columns[every]]
        n95, bound = machines_needed(sizes, hits.sum(axis=0) / tries.sum(axis=0))
        error = _jackknife(sizes, hits, tries) if not bound else math.nan
        rows.append([*names, n95, bound, error])
    return pd.DataFrame(rows, columns=["corner", "design", "estimator", "n95", "bound", "relative_error"])


def _jackknife(sizes: Sequence[int], hits: Floats, tries: Floats) -> float:
    """Return the relative standard error of the machines needed, from leaving out one fleet after another."""
    fleets = len(hits)
    if fleets < 2:
        return math.nan
    power = (hits.sum(axis=0) - hits) / (tries.sum(axis=0) - tries)
    logs = np.log([machines_needed(sizes, one)[0] for one in power])
    return float(np.sqrt((fleets - 1) / fleets * ((logs - logs.mean()) ** 2).sum()))


def _ratios(needed: pd.DataFrame) -> pd.DataFrame:
    """Return how many machines every estimator needs relative to those it is compared with."""
    rows = []
    known = needed["n95"].where(needed["bound"] == "")
    wide = needed.assign(n95=known).pivot_table(
        index=["design", "corner"], columns="estimator", values="n95", dropna=False, sort=False
    )
    for design, of in wide.groupby(level="design", sort=False):
        there = of.loc[:, [name in set(needed.loc[needed["design"] == design, "estimator"]) for name in of.columns]]
        for against in (name for name in AGAINST if name in there):
            for estimator in there.columns:
                logs = np.log((there[estimator] / there[against]).dropna().to_numpy(dtype=np.float64))
                rows.append([design, estimator, against, *_geometric(logs), len(logs), len(there) - len(logs)])
    return pd.DataFrame(rows, columns=["design", "estimator", "against", "ratio", "low", "high", "corners", "unknown"])


def _geometric(logs: Floats) -> tuple[float, float, float]:
    """Return the geometric mean of what has these logarithms, and its 95% interval; NaN where there are too few."""
    if not len(logs):
        return math.nan, math.nan, math.nan
    mean = float(logs.mean())
    if len(logs) < 2:
        return math.exp(mean), math.nan, math.nan
    half = float(t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs)))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
