"""Request logs of clients, whose response times have the way to the servers and back in them."""

from dataclasses import replace

import numpy as np

from analysis.occupancy.logs.hygiene import tick_of
from analysis.occupancy.logs.log import Log
from models.errors import ArgumentError


def at_the_servers(log: Log, network_delay_s: float) -> Log:
    """Return a log without the network: each request comes so much later.

    It matters not which part of the delay is before the service and which after it: arrivals and departures at the
    servers are those of the log, all moved by the same time.

    Parameters
    ----------
    log : as a client wrote it
    network_delay_s : both ways, seconds; it is rounded to a multiple of what stamps are rounded to

    Raises
    ------
    ArgumentError
        If requests took less than that, or it is less than half of what stamps are rounded to.

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
    tick_s = max(log.resolution_s, tick_of(came, left))
    delay_s = round(network_delay_s / tick_s) * tick_s if tick_s else network_delay_s
    if delay_s <= 0:
        problem = f"should be at least {tick_s / 2:g} s: stamps are multiples of {tick_s:g} s"
        raise ArgumentError("network_delay", problem, f"{network_delay_s:g} s")
    took = left - came
    less = (took >= 0) & (took < delay_s - tick_s / 2)
    if less.any():
        problem = f"should be at most {took[less].min():g} s, the shortest response time; {less.sum():,} are shorter"
        raise ArgumentError("network_delay", problem, f"{delay_s:g} s")
    note = f"times and objectives are those at the servers: the log's response times are {delay_s:g} s longer"
    return replace(log, table=log.table.assign(arrival_s=came + delay_s), notes=(*log.notes, note))
