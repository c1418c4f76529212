"""Utilisation of a run's servers: by the Occupancy Law, and as their own accounting counted it."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, ORANGE, label, legend, panels, percent


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
    minutes = beside["start_s"] / 60.0
    course.plot(minutes, beside["counted"], "_", color=ORANGE, markersize=4, label="counted")
    course.plot(minutes, beside["law"], "o", color=BLUE, markersize=2, fillstyle="none", label="by the Occupancy Law")
    course.set_ylim(bottom=0.0)
    percent(course)
    label(course, "time (min)", "utilisation")
    legend(course, columns=2, above=True)
    error.axhline(0.0, color=ORANGE, linewidth=0.8)
    error.plot(beside["counted"], beside["law"] - beside["counted"], "o", color=BLUE, markersize=2, fillstyle="none")
    percent(error, "x")
    percent(error, decimals=2)
    label(error, "counted utilisation", "law less counted")
    return figure
