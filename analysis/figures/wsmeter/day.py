"""A fleet's day: how much of its CPU is allocated and used, and what it draws."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, GREY, ORANGE, label, legend, panels, percent


def draw_day(epochs: pd.DataFrame, threads: float) -> Figure:
    """Return allocation, utilisation and the share of capped machines over the day, and below them power.

    Parameters
    ----------
    epochs : table `epochs`, at least two rows
    threads : hardware threads of the fleet

    Examples
    --------
    >>> epochs = pd.DataFrame({"start_s": [0.0, 300.0], "quota_vcpu": 8.0, "cpu_s": 1200.0, "energy_j": 6e4})
    >>> len(draw_day(epochs.assign(capped_share=0.5), threads=10.0).axes)
    2
    """
    figure, (shares, power) = panels(rows=2, height_inches=1.7)
    hours = epochs["start_s"] / 3600.0
    epoch_s = float(epochs["start_s"].diff().median())
    shares.plot(hours, epochs["quota_vcpu"] / threads, color=GREY, label="CPU allocated")
    shares.plot(hours, epochs["cpu_s"] / (epoch_s * threads), color=BLUE, label="CPU used")
    shares.plot(hours, epochs["capped_share"], color=ORANGE, label="power-capped")
    shares.set_ylim(0.0, 1.03)
    percent(shares)
    label(shares, "", "share of the fleet")
    legend(shares, columns=3, above=True)
    drawn_mw = epochs["energy_j"] / epoch_s / 1e6
    power.plot(hours, drawn_mw, color=BLUE)
    power.set_ylim(0.0, 1.15 * float(drawn_mw.max()))
    label(power, "time (h)", "power (MW)")
    return figure
