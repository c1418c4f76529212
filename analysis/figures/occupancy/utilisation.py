"""Utilisation of a run's servers: by the Occupancy Law, and as their own accounting counted it."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, ORANGE, label, legend, panels, percent

_DOTS = 2000
"""More dots are drawn as an image within the SVG, which would otherwise grow by 300 bytes with each interval."""


def draw_beside(beside: pd.DataFrame) -> Figure:
    """Return utilisation over time both ways, and every interval's error over its utilisation.

    Parameters
    ----------
    beside : start_s, law, counted; of `accuracy.beside`

    Examples
    --------
    >>> figure = draw_beside(pd.DataFrame({"start_s": [0.0, 60.0], "law": [0.5, 0.7], "counted": [0.5, 0.69]}))
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['time (min)', 'counted utilisation']
    """
    figure, (course, error) = panels(columns=2, height_inches=2.0)
    minutes, image = beside["start_s"] / 60.0, len(beside) > _DOTS
    course.plot(minutes, beside["counted"], "_", color=ORANGE, markersize=4, label="counted", rasterized=image)
    words = "by the Occupancy Law"
    ring: dict[str, Any] = {"markersize": 2, "fillstyle": "none", "color": BLUE, "rasterized": image}
    course.plot(minutes, beside["law"], "o", label=words, **ring)
    course.set_ylim(bottom=0.0)
    percent(course)
    label(course, "time (min)", "utilisation")
    legend(course, columns=2, above=True)
    error.axhline(0.0, color=ORANGE, linewidth=0.8)
    error.plot(beside["counted"], beside["law"] - beside["counted"], "o", **ring)
    percent(error, "x")
    percent(error, decimals=2)
    label(error, "counted utilisation", "law less counted")
    return figure
