"""The scorecard summed up: coverage, bias, margins, power, and machines needed, of estimators over many fleets.

Draws from one fleet are alike, so every standard error takes fleets as units (Cochran 1977, section 2.11, equation
2.46: a ratio of sums over clusters).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from models.arrays import Bools
from scenarios.effects.scorecard.corners import was_drawn
from scenarios.effects.scorecard.needed import AGAINST, gains, needed, ratios

_EXPERIMENT = ["design", "estimator", "machines"]
_COUNTS = ["draws", "answered", "covered", "detected"]
_MEANS = ["bias", "error", "margin"]


def summary(pieces: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return what all pieces together say.

    Corners that were drawn at random stand beside the others: they are no part of what is said of all corners, unless
    there are no others.

    Parameters
    ----------
    pieces : as `pieces.judged` returns them, one at least

    Returns
    -------
    dict
        corners: one row for each corner, design, estimator and number of machines: fleets, draws, answered, covered,
        detected (sums), coverage and coverage_error, power and power_error (shares of draws and standard errors over
        fleets), bias, bias_error, sd, error, margin (of draws with an answer), bias_to_margin (size of the bias over
        the mean margin); overall: the same over all corners; by_corner: the same over all sizes; needed: for each
        corner, design and estimator, n95 (machines at which +1% is detected in 95% of draws), bound ("" if known, "at
        most" the least size, "more than" the greatest), relative_error (over fleets); ratios: design, estimator,
        against, ratio (geometric mean of n95 over corners in which both are known), low and high (95% interval over
        corners), corners, unknown (corners in which one of them is not known); gains: as `needed.gains` says them, the
        other way round, with the worst corner; estimators: the table for people, a row for each design and estimator:
        fleets, draws, coverage, coverage_error (all sizes and corners), worst (the least coverage of a corner),
        worst_corner, bias_to_margin (the greatest of a corner, all sizes), n95 (geometric mean over the corners in
        which it is known), n95_error (relative, over fleets), corners (how many those are), cuped and published (the
        ratios to them); drawn: the same table of the corners that were drawn; silent: designs and estimators without
        any answer, left out of the rest.

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
    known = needed(table)
    beside = _beside(table["corner"])
    of_all = known[~_beside(known["corner"])]
    return {
        "corners": _records(_summed(table, ["corner", *_EXPERIMENT])),
        "overall": _records(_summed(table[~beside], _EXPERIMENT)),
        "by_corner": _records(_summed(table, ["corner", *keys])),
        "needed": _records(known.drop(columns="left")),
        "ratios": _records(ratios(of_all)),
        "gains": _records(gains(of_all)),
        "estimators": _records(_estimators(table[~beside], of_all)),
        "drawn": _records(_estimators(table[beside], known[_beside(known["corner"])])) if beside.any() else [],
        "silent": _records(silent),
    }


def _beside(corner: pd.Series) -> Bools:
    """Return which rows are of corners drawn at random; none, if all are."""
    drawn = np.array([was_drawn(name) for name in corner], dtype=np.bool_)
    return np.zeros_like(drawn) if drawn.all() else drawn


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


def _estimators(table: pd.DataFrame, machines: pd.DataFrame) -> pd.DataFrame:
    """Return the table for people."""
    keys = ["design", "estimator"]
    made = _summed(table, keys).set_index(keys)
    made["fleets"] = table.drop_duplicates([*keys, "corner", "seed"]).groupby(keys, sort=False).size()
    corners = _summed(table, ["corner", *keys]).set_index("corner").groupby(keys, sort=False)
    made["worst"], made["worst_corner"] = corners["coverage"].min(), corners["coverage"].idxmin()
    made["bias_to_margin"] = corners["bias_to_margin"].max()
    known = machines[machines["bound"] == ""].groupby(keys, sort=False)
    made["n95"] = known["n95"].agg(lambda values: math.exp(np.log(values).mean()))
    made["n95_error"] = known["relative_error"].agg(
        lambda errors: math.sqrt((errors**2).sum(skipna=False)) / len(errors)
    )
    made["corners"] = known.size().reindex(made.index, fill_value=0)
    compared = ratios(machines).set_index(keys)
    for against in AGAINST:
        made[against] = compared.loc[compared["against"] == against, "ratio"]
    shown = ["fleets", "draws", "coverage", "coverage_error", "worst", "worst_corner", "bias_to_margin"]
    return made[[*shown, "n95", "n95_error", "corners", *AGAINST]].reset_index()


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
