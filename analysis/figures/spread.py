"""How numbers of a figure spread over the worlds that its row was judged on, drawn as thin bars in the same colours.

The figure is of the first world. Where others were measured too, each of its numbers has the least and the most of all
worlds beside it: series "least of NAME" and "most of NAME".
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from analysis.figures.criteria import curve, number
from analysis.figures.style import INK

LEAST: Final = "least of "
MOST: Final = "most of "


def with_spread(worlds: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the table of the first world, with the least and the most of all worlds of each number that all have.

    Parameters
    ----------
    worlds : columns series, x, value; a table a world

    Examples
    --------
    >>> tables = [pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [value]}) for value in (0.02, 0.03)]
    >>> with_spread(tables)["value"].tolist()
    [0.02, 0.02, 0.03]
    """
    first, *others = worlds
    if not others:
        return first
    keys = ["series", "x"]
    by = pd.concat(worlds).groupby(keys, dropna=False, sort=False)["value"].agg(["size", "min", "max"])
    every = by[by["size"] == len(worlds)].reset_index()
    ends = ((LEAST, "min"), (MOST, "max"))
    parts = [every.assign(series=end + every["series"], value=every[name])[[*keys, "value"]] for end, name in ends]
    return pd.concat((first, *parts), ignore_index=True)


def world_bars(axes: Axes, places: ArrayLike, measured: pd.DataFrame, series: str, across: bool = False) -> None:
    """Draw from the least to the most of all worlds at each number of a curve; nothing where one world was measured."""
    (_, least), (_, most) = (curve(measured, f"{end}{series}") for end in (LEAST, MOST))
    at = np.asarray(places, dtype=float)
    if len(least) == len(at):
        (axes.hlines if across else axes.vlines)(at, least, most, **_LOOK)


def world_bar(axes: Axes, place: float, measured: pd.DataFrame, name: str) -> None:
    """Draw from the least to the most of all worlds at a single number; nothing where one world was measured."""
    least, most = (number(measured, f"{end}{name}") for end in (LEAST, MOST))
    if np.isfinite([least, most]).all():
        axes.vlines([place], least, most, **_LOOK)


_LOOK: Final[Any] = {"color": INK, "linewidth": 0.7, "label": "spread over worlds", "zorder": 4}
