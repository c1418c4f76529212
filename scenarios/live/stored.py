"""The run of `wsc live` that is shipped: its log, the kernel's accounts per interval and its summary."""

import json
from typing import Any

import pandas as pd

from scenarios.files.source import LIBRARY
from scenarios.live.command import CPU, REQUESTS, SUMMARY

FOLDER = LIBRARY / "live"


def stored() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the shipped run's log and the kernel's accounts, as `live_summary.tables` made them.

    Returns
    -------
    (DataFrame, DataFrame)
        session, arrival_s, departure_s, demand_s; and start_s, end_s, utilisation, cpu_s, run_queue_wait_s, others_s,
        stolen_s.

    Examples
    --------
    >>> requests, cpu = stored()
    >>> list(requests), float(cpu["start_s"][0])
    (['session', 'arrival_s', 'departure_s', 'demand_s'], 0.0)
    """
    return pd.read_csv(FOLDER / REQUESTS), pd.read_csv(FOLDER / CPU)


def stored_summary() -> dict[str, Any]:
    """Return what the shipped run's summary says: the machine, the scheduler, whether it was quiet, the errors.

    Examples
    --------
    >>> stored_summary()["kind"]
    'live'
    """
    return dict(json.loads((FOLDER / SUMMARY).read_text(encoding="utf-8")))
