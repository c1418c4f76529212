"""Request logs of clients, whose response times have the way to the servers and back in them."""

import math
from dataclasses import replace

import numpy as np

from analysis.occupancy.logs.log import Log
from models.arrays import Floats
from models.errors import ArgumentError

SHORTER = 0.01
"""Share of the requests that may take less than the delay of the network: answers of a cache, or given up early."""


def at_the_servers(log: Log, network_delay_s: float, tick_s: float = 0.0) -> Log:
    """Return a log without the network: each request comes so much later.

    How much of the delay is before the service and how much after it does not matter: if it is the same for all, times
    at the servers are these, moved by a constant. Requests that took less, at most a hundredth, arrive when they leave.

    Parameters
    ----------
    log : as a client wrote it
    network_delay_s : both ways, seconds; it is rounded to a multiple of `tick_s`
    tick_s : what stamps are multiples of; 0: of nothing

    Raises
    ------
    ArgumentError
        If more requests took less than that, it is less than half of a tick, or departures belong to no arrivals.

    Examples
    --------
    >>> import pandas as pd
    >>> log = Log(pd.DataFrame({"arrival_s": [0.0, 1.0], "departure_s": [0.4, 1.6]}))
    >>> at_the_servers(log, 0.1).table
       arrival_s  departure_s
    0        0.1          0.4
    1        1.1          1.6
    """
    came, left = (log.table[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    took, delay_s = left - came, network_delay_s
    if np.isnan(took).all():
        raise ArgumentError("network_delay", "needs the departure of each request", f"{delay_s:g} s")
    if tick_s > 0:
        delay_s = math.floor(delay_s / tick_s + 0.5) * tick_s
    if delay_s <= 0:
        problem = f"should be at least {tick_s / 2:g} s: stamps are multiples of {tick_s:g} s"
        raise ArgumentError("network_delay", problem, f"{network_delay_s:g} s")
    short = (took >= 0) & (took < delay_s - tick_s / 2)
    few = int(np.count_nonzero(short))
    if few > SHORTER * np.count_nonzero(took >= 0):
        most_s = rounded_down(float(np.quantile(took[took >= 0], SHORTER, method="lower")), 4)
        problem = f"should be at most {most_s:g} s: 99% of the requests took as long"
        raise ArgumentError("network_delay", problem, f"{delay_s:g} s")
    note = f"times and objectives are those at the servers: the log's response times are {delay_s:g} s longer"
    note += f"; requests that took less, and arrive here when they leave: {few:,}" if few else ""
    arrival_s = np.where(short, left, came + delay_s)
    return replace(log, table=log.table.assign(arrival_s=arrival_s), notes=(*log.notes, note))


def network_option(delay_s: float, response_s: Floats) -> str:
    """Return how a delay of the network is said to `wsc occupancy`; empty if there is none.

    Parameters
    ----------
    delay_s : as it was found out, seconds; NaN: it was not
    response_s : (n,) response times, of which nearly all have the delay in them; NaN: not known

    Examples
    --------
    >>> network_option(0.00456, np.array([0.005, 0.02, np.nan])), network_option(-1.0, np.array([1.0]))
    ('--network-delay 0.0045', '')
    """
    took_s = response_s[response_s >= 0]
    if not len(took_s):
        return ""
    text = f"{rounded_down(min(delay_s, float(np.quantile(took_s, SHORTER, method='lower'))), 2):g}"
    return "" if text == "0" else f"--network-delay {text}"


def rounded_down(value: float, digits: int) -> float:
    """Return a number with so many digits that is not larger; 0 of none above 0.

    Examples
    --------
    >>> rounded_down(0.001669, 2), rounded_down(12.34, 3), rounded_down(-1.0, 2), rounded_down(float("nan"), 2)
    (0.0016, 12.3, 0.0, 0.0)
    """
    if not value > 0:
        return 0.0
    places = digits - 1 - math.floor(math.log10(value))
    return math.floor(round(value * 10.0**places, 6)) / 10.0**places
