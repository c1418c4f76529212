"""What work costs on machines of several kinds: money and carbon per work, regret of a choice, and payback.

A machine costs its price over the years of its life and the power that it draws. Work is told in what one machine of
the reference does in an hour, so a kind of machine that is worth w of them costs its cost per hour over w. Regret is
what a choice costs beyond the cheapest, on average over what is believed of w; payback is when a machine that was
bought has saved its price, against running w machines of the reference that are there already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from analysis.tables.cells import Source
from analysis.tables.columns import BY_SELECT, Field, Remedies, read_rows
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats

FIELDS = (
    Field("platform", "text"),
    Field("price", "real", above_zero=False),
    Field("years", "real"),
    Field("power_w", "real", above_zero=False),
    Field("power_price", "real", above_zero=False),
    Field("carbon_kg", "real", above_zero=False, required=False),
    Field("carbon_kg_per_kwh", "real", above_zero=False, required=False),
)
"""Columns of a table of prices."""
HOURS_A_YEAR: Final = 8766.0
_DRAWS: Final = 4000
_WATTS_A_KILOWATT: Final = 1000.0


def read_prices(source: Source) -> pd.DataFrame:
    """Read a table of prices: `FIELDS`, a platform once.

    Raises
    ------
    FileError
        With every fault.
    """
    rows = read_rows(source, FIELDS, lambda names: ("platform",) if "platform" in names else (), remedies=_REMEDY)
    power, column = rows.table["power_w"], [*rows.table.columns].index("power_w") + 1
    faults = [
        FileFault(
            int(rows.lines[row]), column, "power_w", "should be watts: no machine draws less than 1", f"{watts:g}"
        )
        for row, watts in enumerate(power)
        if 0 < watts < _LEAST_W
    ]
    if faults:
        raise FileError(faults)
    return rows.table


_LEAST_W: Final = 1.0
_REMEDY = Remedies(missing=BY_SELECT)


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """What is believed of n kinds of machines: how many of the reference one of them is worth."""

    names: tuple[str, ...]
    worth: Floats
    """(n,) 1 of the reference."""
    low: Floats
    high: Floats
    """(n,) ends of intervals."""
    covariance: Floats
    """(n, n) of logarithms."""


def costs_of_work(prices: pd.DataFrame, believed: Believed, reference: str, confidence: float = 0.95) -> pd.DataFrame:
    """Return what work costs on each kind of machine, the cheapest first.

    Parameters
    ----------
    prices : as `FIELDS`, a row for each kind
    believed : what machines are worth
    reference : the kind in whose work costs are told
    confidence : of the upper end of regret

    Returns
    -------
    DataFrame
        platform, cost_per_hour (of a machine), cost (of the work that one machine of the reference does in an hour)
        with cost_low and cost_high, carbon (kg of the same work, NaN where it is not known) with ends, regret (mean)
        and regret_high, cheapest (how likely it is that), payback_years with ends (infinite: never; NaN: the
        reference).

    Examples
    --------
    >>> table = pd.DataFrame({"platform": ["old", "new"], "price": [0.0, 8766.0], "power_w": [1000.0, 0.0]})
    >>> certain = Believed(("old", "new"), np.array([1.0, 4.0]), *[np.array([1.0, 4.0])] * 2, np.zeros((2, 2)))
    >>> told = costs_of_work(table.assign(years=1.0, power_price=0.5), certain, "old")
    >>> told[["platform", "cost", "regret", "payback_years"]].values.tolist()
    [['new', 0.25, 0.0, 0.5], ['old', 0.5, 1.0, nan]]
    """
    rows = prices.set_index("platform").loc[list(believed.names)]
    running = rows["power_w"].to_numpy(np.float64) / _WATTS_A_KILOWATT * rows["power_price"].to_numpy(np.float64)
    price, hours = (rows[name].to_numpy(np.float64) for name in ("price", "years"))
    hours = hours * HOURS_A_YEAR
    per_hour = price / hours + running
    table = pd.DataFrame({"platform": list(believed.names), "cost_per_hour": per_hour})
    table["cost"], table["cost_low"], table["cost_high"] = (
        per_hour / worth for worth in (believed.worth, believed.high, believed.low)
    )
    carbon = np.full(len(rows), np.nan)
    if {"carbon_kg", "carbon_kg_per_kwh"} <= {*rows}:
        of_power = (
            rows["power_w"].to_numpy(np.float64) / _WATTS_A_KILOWATT * rows["carbon_kg_per_kwh"].to_numpy(np.float64)
        )
        carbon = rows["carbon_kg"].to_numpy(np.float64) / hours + of_power
    table["carbon"], table["carbon_low"], table["carbon_high"] = (
        carbon / worth for worth in (believed.worth, believed.high, believed.low)
    )
    # The seed is fixed so that the same table gives the same answer.
    drawn = np.random.default_rng(0).multivariate_normal(np.log(believed.worth), believed.covariance, _DRAWS)
    spent = per_hour / np.exp(drawn)
    least = spent.min(axis=1, keepdims=True)
    beyond = np.divide(spent, least, out=np.ones_like(spent), where=least > 0) - 1.0
    table["regret"], table["regret_high"] = beyond.mean(axis=0), np.quantile(beyond, confidence, axis=0)
    wins = spent == least
    table["cheapest"] = (wins / wins.sum(axis=1, keepdims=True)).mean(axis=0)
    at = believed.names.index(reference)
    for name, worth in (
        ("payback_years", believed.worth), ("payback_low", believed.high), ("payback_high", believed.low),
    ):  # fmt: skip
        table[name] = _payback(price, worth * running[at] - running, at)
    return table.sort_values("cost", kind="stable", ignore_index=True)


def _payback(price: Floats, saved: Sequence[float] | Floats, reference: int) -> Floats:
    """Return years until savings per hour are the price; infinite if nothing is saved, NaN of the reference."""
    saved = np.asarray(saved, dtype=np.float64)
    years = np.where(saved > 0, price / np.where(saved > 0, saved, 1.0) / HOURS_A_YEAR, np.inf)
    years[reference] = np.nan
    return years
