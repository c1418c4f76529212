"""The scorecard summed up: coverage, bias, margins, power, and machines needed, of estimators over many fleets.

Draws from one fleet are alike, so every standard error takes fleets as units (Cochran 1977, section 2.11, equation
2.46: a ratio of sums over clusters).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from models.arrays import Bools
from scenarios.effects.scorecard.corners import was_drawn
from scenarios.effects.scorecard.needed import AGAINST, gains, needed, ratios
from scenarios.effects.scorecard.pieces import JudgedFleet

_EXPERIMENT = ["design", "estimator", "machines"]
_COUNTS = ["draws", "answered", "covered", "detected"]
_MEANS = ["bias", "error", "margin"]


class Card(NamedTuple):
    """What all fleets together say.

    Corners that were drawn at random stand beside the others: they are no part of what is said of all corners, unless
    there are no others.
    """

    corners: pd.DataFrame
    """One row for each corner, design, estimator and number of machines: fleets, draws, answered, covered, detected
    (sums), coverage and coverage_error, power and power_error (shares of draws and standard errors over fleets), bias,
    bias_error, sd, error, margin (of draws with an answer), bias_to_margin (size of the bias over the mean margin)."""
    overall: pd.DataFrame
    """The same over all corners."""
    by_corner: pd.DataFrame
    """The same over all sizes."""
    needed: pd.DataFrame
    """For each corner, design and estimator, n95 (machines at which +1% is detected in 95% of draws), bound ("" if
    known, "at most" the least size, "more than" the greatest), relative_error (over fleets)."""
    ratios: pd.DataFrame
    """design, estimator, against, ratio (geometric mean of n95 over corners in which both are known), low and high (95%
    interval over corners), corners, unknown (corners in which one of them is not known)."""
    gains: pd.DataFrame
    """As `needed.gains` says them, the other way round, with the worst corner."""
    estimators: pd.DataFrame
    """The table for people, a row for each design and estimator: fleets, draws, coverage, coverage_error (all sizes and
    corners), worst (the least coverage of a corner), worst_corner, bias_to_margin (the greatest of a corner, all
    sizes), n95 (geometric mean over the corners in which it is known), n95_error (relative, over fleets), corners (how
    many those are), cuped and published (the ratios to them)."""
    drawn: pd.DataFrame
    """The same table of the corners that were drawn."""
    silent: pd.DataFrame
    """Designs and estimators without any answer, left out of the rest."""

    def records(self) -> dict[str, list[dict[str, object]]]:
        """Return the rows of every table, for JSON."""
        return {name: _records(table) for name, table in self._asdict().items()}


def summary(pieces: Sequence[JudgedFleet]) -> Card:
    """Return what all fleets together say; one fleet at least."""
    table = frame(pieces)
    keys = ["design", "estimator"]
    answered = table.groupby(keys, sort=False)["answered"].transform("sum") > 0
    silent = table.loc[~answered, keys].drop_duplicates()
    table = table[answered]
    known = needed(table)
    beside = _beside(table["corner"])
    of_all = known[~_beside(known["corner"])]
    return Card(
        corners=_summed(table, ["corner", *_EXPERIMENT]),
        overall=_summed(table[~beside], _EXPERIMENT),
        by_corner=_summed(table, ["corner", *keys]),
        needed=known.drop(columns="left"),
        ratios=ratios(of_all),
        gains=gains(of_all),
        estimators=_estimators(table[~beside], of_all),
        drawn=_estimators(table[beside], known[_beside(known["corner"])]) if beside.any() else pd.DataFrame(),
        silent=silent,
    )


def _beside(corner: pd.Series) -> Bools:
    """Return which rows are of corners drawn at random; none, if all are."""
    drawn = np.array([was_drawn(name) for name in corner], dtype=np.bool_)
    return np.zeros_like(drawn) if drawn.all() else drawn


def frame(pieces: Sequence[JudgedFleet]) -> pd.DataFrame:
    """Return the scores of all fleets as one table, with corner and seed."""
    table = pd.DataFrame(
        [{"corner": fleet["corner"], "seed": fleet["seed"], **score} for fleet in pieces for score in fleet["rows"]]
    )
    moments = [name for name in (*_MEANS, "sd") if name in table]
    return table.astype(dict.fromkeys(moments, np.float64))


def _summed(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the sums and means of each group, a row each, in order of appearance."""
    groups = table.groupby(keys, sort=False)
    summed = groups[_COUNTS].sum()
    summed.insert(0, "fleets", groups.size())
    for name, count in (("coverage", "covered"), ("power", "detected")):
        summed[name] = summed[count] / summed["draws"]
        summed[f"{name}_error"] = _error(table, keys, table[count], table["draws"])
    weight = table["answered"]
    for name in _MEANS:
        total = (table[name].fillna(0.0) * weight).groupby([table[key] for key in keys], sort=False).sum()
        summed[name] = total / summed["answered"]
    summed["bias_error"] = _error(table, keys, table["bias"].fillna(0.0) * weight, weight)
    summed["sd"] = _spread(table, keys)
    summed["bias_to_margin"] = summed["bias"].abs() / summed["margin"]
    return summed.reset_index()


def _error(table: pd.DataFrame, keys: list[str], above: pd.Series, below: pd.Series) -> pd.Series:
    """Return the standard error of the ratio of two sums over fleets in each group; NaN of one fleet."""
    named = table[list(dict.fromkeys([*keys, "corner", "seed"]))].assign(above=above, below=below)
    by_fleet = named.groupby(list(named.columns[:-2]), sort=False)[["above", "below"]].sum().reset_index()
    of = [by_fleet[key] for key in keys]
    sums = by_fleet[["above", "below"]].groupby(of, sort=False)
    total = sums.transform("sum")
    apart = (by_fleet["above"] - total["above"] / total["below"] * by_fleet["below"]) ** 2
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
    summed = _summed(table, keys).set_index(keys)
    summed["fleets"] = table.drop_duplicates([*keys, "corner", "seed"]).groupby(keys, sort=False).size()
    corners = _summed(table, ["corner", *keys]).set_index("corner").groupby(keys, sort=False)
    summed["worst"], summed["worst_corner"] = corners["coverage"].min(), corners["coverage"].idxmin()
    summed["bias_to_margin"] = corners["bias_to_margin"].max()
    known = machines[machines["bound"] == ""].groupby(keys, sort=False)
    summed["n95"] = known["n95"].agg(lambda values: math.exp(np.log(values).mean()))
    summed["n95_error"] = known["relative_error"].agg(
        lambda errors: math.sqrt((errors**2).sum(skipna=False)) / len(errors)
    )
    summed["corners"] = known.size().reindex(summed.index, fill_value=0)
    compared = ratios(machines).set_index(keys)
    for against in AGAINST:
        summed[against] = compared.loc[compared["against"] == against, "ratio"]
    shown = ["fleets", "draws", "coverage", "coverage_error", "worst", "worst_corner", "bias_to_margin"]
    return summed[[*shown, "n95", "n95_error", "corners", *AGAINST]].reset_index()


def _records(table: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
