"""Costs of work, regret and payback as people see them."""

import math
from collections.abc import Iterator

import pandas as pd

from scenarios.views.numbers import interval, number, share
from scenarios.views.section import Block, table


def cost_blocks(costs: pd.DataFrame, reference: str) -> Iterator[Block]:
    """Yield the table of what work costs, the cheapest platform first.

    Examples
    --------
    >>> row = {"platform": "new", "cost": 0.25, "cost_low": 0.2, "cost_high": 0.3, "regret": 0.0, "cheapest": 1.0}
    >>> row |= {"carbon": math.nan, "carbon_low": math.nan, "carbon_high": math.nan, "regret_high": 0.0}
    >>> row |= {"payback_years": 2.0, "payback_low": 1.5, "payback_high": math.inf}
    >>> [cell.text for cell in next(cost_blocks(pd.DataFrame([row]), "old")).rows[0]]
    ['new', '0.25', '0.2 to 0.3', '0.0%', '0.0%', '100%', '2', '1.5 to never']
    """
    carbon = costs["carbon"].notna().any()
    headings = (
        "platform", "cost", "interval", *(("carbon, kg", "interval") if carbon else ()),
        "regret", "at most", "cheapest", "payback, years", "interval",
    )  # fmt: skip
    rows = [
        (
            str(row["platform"]),
            number(row["cost"]),
            interval(row["cost_low"], row["cost_high"]),
            *((number(row["carbon"]), interval(row["carbon_low"], row["carbon_high"])) if carbon else ()),
            share(row["regret"], 1),
            share(row["regret_high"], 1),
            share(row["cheapest"], 0),
            _years(row["payback_years"]),
            "" if math.isnan(row["payback_low"]) else f"{_years(row['payback_low'])} to {_years(row['payback_high'])}",
        )
        for row in costs.to_dict("records")
    ]
    caption = f"costs and carbon are of what one machine of {reference} does in an hour"
    yield table(headings, rows, caption=caption)


def _years(value: float) -> str:
    return "never" if math.isinf(value) else number(value, ".3g")
