"""`wsc select`: which platform would serve a service with the most requests a second per watt within a bound."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.crossplatform.choice import compare
from scenarios.crossplatform.calibrated import Asked, calibrate, cures, do_not_carry_over, head, rate_per_s, unsaid
from scenarios.crossplatform.predict import milliseconds, told
from scenarios.files.faults import Fault, FaultsError
from scenarios.occupancy.stay_logs import is_served
from scenarios.wsmeter.own import show_notes

FAR = 10.0
"""So many times the rate that was measured is far from it."""


def select(asked: Asked, bound_s: float) -> dict[str, Any]:
    """Return what `wsc select` says: platforms by throughput per watt at the log's own mix, the best first.

    Parameters
    ----------
    asked : log, platforms and method; without platforms all that are known are ranked
    bound_s : on mean response time, above 0

    Returns
    -------
    dict
        kind, from, isa (of the log), method, types, intervals, bound_s, platforms, not_ranked (platforms to which the
        log's instruction counts do not carry over) and notes. A platform: rank, platform, throughput_per_s with low and
        high (90% interval), watts, throughput_per_watt, probability_best.

    Raises
    ------
    FaultsError, PlatformError, RunError
        As `predict.predict`, but platforms to which instruction counts do not carry over are left out unless there are
        no others; also if the log has no response times, or is the folder of a fleet's run.
    """
    if is_served(asked.log):
        said = "stays in a fleet have servers of their own, so no machine's throughput is known; wsc predict takes it"
        raise FaultsError([Fault(str(asked.log), 0, 0, "", said)])
    made = calibrate(asked)
    sides = made.evidence.platform, made.foreign
    others = f"{do_not_carry_over(*sides)}; {cures(*sides)}" if made.foreign else ""
    if not made.targets:
        raise FaultsError([Fault(str(asked.log), 0, 0, "", others)])
    log = made.evidence.log
    if np.isnan(log.response_time_s).all():
        said = "response times are not in the log: no throughput within a bound on them is known"
        raise FaultsError([Fault(str(asked.log), 0, 0, "", said)])
    candidates = {platform.name: platform for platform in made.targets}
    table = compare(made.predictor, candidates, log.counts.sum(axis=0), bound_s)
    silent = table["platform"][table["throughput_per_s"].isna()].tolist()
    left_out = [f"not ranked: {others}"] if others else []
    notes = [
        *left_out,
        *made.notes,
        *unsaid(asked, made, silent, "response times"),
        *_notes(table, rate_per_s(log), bound_s),
    ]
    return {
        "kind": "select",
        **head(made),
        "bound_s": bound_s,
        "platforms": table.to_dict("records"),
        "not_ranked": [one.name for one in made.foreign],
        "notes": notes,
    }


def _notes(table: pd.DataFrame, measured_per_s: float, bound_s: float) -> Iterator[str]:
    """Yield what must be known to read some of the throughputs."""
    idle = table["platform"][table["throughput_per_s"] == 0]
    if len(idle):
        yield f"{milliseconds(bound_s)} is too short even for an idle machine on {', '.join(idle)}"
    far = int((table["throughput_per_s"] > FAR * measured_per_s).sum())
    if far:
        yield (
            f"{far} of {len(table)} throughputs are more than {FAR:g} times the {measured_per_s:.3g} requests a second "
            "of the log: extrapolations, in which other tiers stay as fast as they were"
        )


def show_select(payload: Mapping[str, Any], console: Console) -> None:
    """Print platforms from the best to the worst, and what must be known to read the table.

    Examples
    --------
    >>> row = {"rank": 1, "platform": "pres", "throughput_per_s": 12.5, "low": 11.0, "high": 14.0, "watts": 122.0}
    >>> row |= {"throughput_per_watt": 0.1025, "probability_best": 1.0}
    >>> said = {"from": "piii", "method": "testbed", "types": ["buy"], "intervals": 60, "notes": []}
    >>> show_select(said | {"bound_s": 0.15, "platforms": [row]}, Console(width=100))
    method testbed on 60 intervals of piii with 1 type of request; mean response within 150 ms
    rank platform requests/s      90% TDP, W per watt best
    ──────────────────────────────────────────────────────
       1 pres           12.5 11 to 14    122    0.102 100%
    """
    console.print(
        f"{told(payload)}; mean response within {milliseconds(payload['bound_s'])}",
        soft_wrap=True,
    )
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for number, heading in enumerate(("rank", "platform", "requests/s", "90%", "TDP, W", "per watt", "best")):
        table.add_column(heading, justify="left" if number == 1 else "right", no_wrap=True)
    for row in payload["platforms"]:
        known = math.isfinite(row["low"] + row["high"])
        interval = f"{_number(row['low'])} to {_number(row['high'])}" if known else ""
        sure = f"{row['probability_best']:.0%}" if math.isfinite(row["probability_best"]) else ""
        table.add_row(
            str(row["rank"]),
            row["platform"],
            _number(row["throughput_per_s"]),
            interval,
            f"{row['watts']:,.0f}",
            _number(row["throughput_per_watt"]),
            sure,
        )
    console.print(table)
    show_notes(payload, console)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "any" if math.isinf(value) else "unknown"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
