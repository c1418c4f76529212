"""What a service would do on other platforms, drawn: its times, and throughput per watt."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, GREEN, ROW_INCHES, forest, label, panels


def draw_times(targets: pd.DataFrame) -> Figure:
    """Return CPU time and response time of a request on each platform, with 90% intervals.

    Parameters
    ----------
    targets : platform; processor_s, processor_low, processor_high, response_s, low, high (NaN: not said)

    Examples
    --------
    >>> times = {"processor_s": [0.02], "processor_low": 0.015, "processor_high": 0.03}
    >>> table = pd.DataFrame({"platform": "pres", **times, "response_s": 0.07, "low": 0.06, "high": 0.08})
    >>> len(draw_times(table).axes)
    2
    """
    figure, (processor, response) = panels(columns=2, height_inches=0.7 + ROW_INCHES * len(targets))
    names = targets["platform"].tolist()
    forest(processor, names, *_milliseconds(targets, ("processor_s", "processor_low", "processor_high")))
    label(processor, "CPU time of a request (ms)", "")
    forest(response, names, *_milliseconds(targets, ("response_s", "low", "high")))
    label(response, "mean response time (ms)", "")
    return figure


def draw_choice(platforms: pd.DataFrame) -> Figure:
    """Return throughput per watt of each platform with 90% intervals, the one most likely to be the best in colour.

    Parameters
    ----------
    platforms : platform, throughput_per_s, low, high, watts, probability_best; the best first

    Examples
    --------
    >>> row = {"platform": ["milan"], "throughput_per_s": 9e3, "low": 8e3, "high": 1e4, "watts": 280.0}
    >>> len(draw_choice(pd.DataFrame(row).assign(probability_best=1.0)).axes)
    1
    """
    figure, (axes,) = panels(height_inches=0.7 + ROW_INCHES * len(platforms))
    ends = (platforms[name].to_numpy() / platforms["watts"].to_numpy() for name in ("throughput_per_s", "low", "high"))
    likely = platforms["probability_best"].to_numpy(dtype=np.float64)
    best = likely >= np.nanmax(likely) if np.isfinite(likely).any() else np.zeros(len(likely), dtype=bool)
    forest(axes, platforms["platform"].tolist(), *ends, colours=[GREEN if first else BLUE for first in best])
    label(axes, "requests per second and watt of TDP", "", "green: most likely the best")
    return figure


def _milliseconds(table: pd.DataFrame, names: tuple[str, str, str]) -> list[list[float]]:
    return [(1e3 * table[name]).tolist() for name in names]
