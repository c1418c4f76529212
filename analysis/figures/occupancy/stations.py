"""Several stations: how long requests are at each, served and waiting, and how busy its servers are."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, ORANGE, SKY, label, legend, panels, percent


def draw_stations(stations: pd.DataFrame) -> Figure:
    """Return the mean time at each station, split into service and waiting, and beside it utilisation and share.

    Parameters
    ----------
    stations : station; service_s and waiting_s, means of a request; utilisation; of_response, share of the response

    Examples
    --------
    >>> row = {"station": ["web"], "service_s": [0.2], "waiting_s": [0.1], "utilisation": [0.6], "of_response": [1.0]}
    >>> [axes.get_xlabel() for axes in draw_stations(pd.DataFrame(row)).axes]
    ['mean time at the station (s)', 'share']
    """
    figure, (times, shares) = panels(columns=2, height_inches=0.9 + 0.28 * len(stations))
    rows = range(len(stations))
    times.barh(rows, stations["service_s"], height=0.6, color=SKY, label="served")
    times.barh(rows, stations["waiting_s"], height=0.6, left=stations["service_s"], color=ORANGE, label="waiting")
    shares.barh([row - 0.2 for row in rows], stations["utilisation"], height=0.35, color=BLUE, label="servers busy")
    shares.barh([row + 0.2 for row in rows], stations["of_response"], height=0.35, color=SKY, label="of the response")
    shares.set_xlim(0.0, 1.0)
    percent(shares, "x")
    for axes, words in ((times, "mean time at the station (s)"), (shares, "share")):
        axes.set_yticks(list(rows), stations["station"].tolist())
        axes.invert_yaxis()
        label(axes, words, "")
        legend(axes, columns=2, above=True)
    return figure
