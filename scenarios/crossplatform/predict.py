"""`wsc predict`: from the log of a service on one platform to its service and response times on others."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.crossplatform.evidence import Prediction, ServiceLog
from analysis.crossplatform.split import halves, outside_hull
from models.platforms import Platform
from scenarios.crossplatform.calibrated import (
    Asked,
    Calibrated,
    calibrate,
    cures,
    do_not_carry_over,
    head,
    rate_per_s,
    unsaid,
)
from scenarios.files.faults import Fault, FaultsError
from scenarios.wsmeter.own import show_notes

_ROUNDING = 1e-9
"""What is as close to a full machine as this is full."""
_SAID = ("service_time_s", "response_time_s")
_RESPONSES = ("response_time_s", "response_low_s", "response_high_s")
_HALVINGS = 40
"""A machine that cannot carry so small a part of the volume carries nothing."""


def predict(asked: Asked) -> dict[str, Any]:
    """Return what `wsc predict` says: times on other platforms for the log's own mean mix and volume.

    Parameters
    ----------
    asked : log, platforms and method

    Returns
    -------
    dict
        kind, from, isa (of the log), method, types, intervals, requests_per_s, outside_hull (share of the mixes of the
        log's second half outside those of its first, as counts by type, intervals without requests left out: how much
        it extrapolates itself), targets and notes. A target: platform, isa, service_time_s (of the whole machine, CPU
        time over logical processors) with service_low and service_high, processor_s (CPU time of a request),
        response_time_s with low and high, utilisation. Ends of 90% intervals; NaN for what a method does not say. A
        platform that cannot carry the volume has utilisation 1, no response time, and the CPU time of half, a quarter,
        … the volume.

    Raises
    ------
    FaultsError
        If a file cannot be used or does not suffice for the method, with all its faults; if an option is wrong; if the
        method says nothing of a platform that was named; if the log's instruction counts do not carry over to one and
        nothing is said of how its instructions compare.
    PlatformError
        If a platform is not known.
    RunError
        If a folder is no cross-platform run, or a table of it cannot be read.
    """
    made = calibrate(asked)
    if made.foreign:
        sides = made.evidence.platform, made.foreign
        raise FaultsError([Fault(str(asked.log), 0, 0, "", f"{do_not_carry_over(*sides)}; {cures(*sides)}")])
    log = made.evidence.log
    targets = [_target(made, platform) for platform in made.targets]
    silent = [row["platform"] for row in targets if np.isnan([row[name] for name in _SAID]).all()]
    notes = [*made.notes, *unsaid(asked, made, silent, "the service")]
    return {
        "kind": "predict",
        **head(made),
        "requests_per_s": rate_per_s(log),
        "outside_hull": _outside(log),
        "targets": targets,
        "notes": [*notes, *_overloads(targets, rate_per_s(log))],
    }


def show_predict(payload: Mapping[str, Any], console: Console) -> None:
    """Print a prediction as a table, and what must be known to read it.

    Examples
    --------
    >>> time = {"service_time_s": 0.01, "service_low": 0.009, "service_high": 0.012, "processor_s": 0.02}
    >>> time |= {"response_time_s": 0.1, "low": 0.09, "high": 0.11, "utilisation": 0.02, "platform": "pres"}
    >>> said = {"from": "piii", "method": "testbed", "types": ["buy"], "intervals": 60, "notes": []}
    >>> show_predict(said | {"requests_per_s": 2.0, "outside_hull": 0.5, "targets": [time]}, Console(width=80))
    method testbed on 60 intervals of piii with 1 type of request, 2 requests a second; predicted at that mean mix and \
volume
    platform CPU time         90% response          90% busy
    ────────────────────────────────────────────────────────
    pres        20 ms 18 to 24 ms   100 ms 90 to 110 ms   2%
    50% of the later intervals' counts by type, volume included, lie outside those of the earlier ones
    """
    console.print(
        f"{told(payload)}, {payload['requests_per_s']:.3g} requests a second; predicted at that mean mix and volume",
        soft_wrap=True,
    )
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for number, heading in enumerate(("platform", "CPU time", "90%", "response", "90%", "busy")):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in payload["targets"]:
        table.add_row(row["platform"], *_cells(row))
    console.print(table)
    outside = payload["outside_hull"]
    if math.isfinite(outside):
        console.print(
            f"{outside:.0%} of the later intervals' counts by type, volume included, lie outside those of the earlier "
            "ones",
            highlight=False,
            soft_wrap=True,
        )
    show_notes(payload, console)


def told(payload: Mapping[str, Any]) -> str:
    """Return how the text of an answer from a log begins.

    Examples
    --------
    >>> told({"from": "piii", "method": "testbed", "types": ["buy"], "intervals": 60})
    'method testbed on 60 intervals of piii with 1 type of request'
    """
    types = len(payload["types"])
    of = f"{types} type{'s' * (types > 1)} of request{'s' * (types > 1)}"
    return f"method {payload['method']} on {payload['intervals']:,} intervals of {payload['from']} with {of}"


def _cells(row: Mapping[str, Any]) -> Iterator[str]:
    scale = row["processor_s"] / row["service_time_s"] if row["service_time_s"] else math.nan
    yield milliseconds(row["processor_s"])
    yield _between(scale * row["service_low"], scale * row["service_high"])
    yield milliseconds(row["response_time_s"])
    yield _between(row["low"], row["high"])
    yield f"{row['utilisation']:.0%}" if math.isfinite(row["utilisation"]) else ""


def _between(low_s: float, high_s: float) -> str:
    ends = milliseconds(low_s).removesuffix(" ms"), milliseconds(high_s)
    return " to ".join(ends) if all(ends) else ""


def milliseconds(seconds: float) -> str:
    """Return a time as people read it.

    Examples
    --------
    >>> milliseconds(0.0123), milliseconds(1.5), milliseconds(float("nan"))
    ('12.3 ms', '1,500 ms', '')
    """
    if not math.isfinite(seconds):
        return ""
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def _target(made: Calibrated, platform: Platform) -> dict[str, Any]:
    """Return what is predicted of the mean over the whole log, as if it were one interval: chance averages out."""
    rate = rate_per_s(made.evidence.log)
    said = _asked(made, platform)
    roomy = _roomy(made, platform, said)
    carried = not said.service_time_s[0] * rate >= 1.0 - _ROUNDING
    service = float((said if carried else roomy).service_time_s[0])
    if not carried:
        said = replace(roomy, **dict.fromkeys(_RESPONSES, np.full(1, np.nan)))
    elif roomy is not said:
        said = replace(said, service_high_s=service * roomy.service_high_s / roomy.service_time_s)
    return {
        "platform": platform.name,
        "isa": platform.isa,
        "service_time_s": service,
        "service_low": float(said.service_low_s[0]),
        "service_high": float(said.service_high_s[0]),
        "processor_s": service * platform.vcpus,
        "response_time_s": float(said.response_time_s[0]),
        "low": float(said.response_low_s[0]),
        "high": float(said.response_high_s[0]),
        "utilisation": rate * service if carried else 1.0,
    }


def _asked(made: Calibrated, platform: Platform, part: float = 1.0) -> Prediction:
    """Return what is predicted of the log's requests at its mean rate, or at a part of that."""
    log = made.evidence.log
    return made.predictor(platform, log.counts.sum(axis=0, keepdims=True), len(log.start_s) * log.interval_s / part)


def _roomy(made: Calibrated, platform: Platform, said: Prediction) -> Prediction:
    """Return what is predicted at the volume, half of it, a quarter, …: the first at which nothing is cut off.

    A method may say of a machine's service time no more than that it is full, which is not what a request needs.
    """
    rate = rate_per_s(made.evidence.log)
    for halving in range(1, _HALVINGS + 1):
        ends = float(said.service_time_s[0]), float(said.service_high_s[0])
        if not any(abs(end * rate - 1.0) <= _ROUNDING for end in ends):
            break
        rate /= 2
        said = _asked(made, platform, 0.5**halving)
    return said


def _overloads(targets: Sequence[Mapping[str, Any]], rate: float) -> Iterator[str]:
    """Yield which platforms cannot carry the volume, and which may not."""
    full = [row["platform"] for row in targets if row["utilisation"] == 1.0]
    unsure = [row["platform"] for row in targets if row["service_high"] * rate >= 1.0 and row["platform"] not in full]
    if full:
        yield f"{', '.join(full)} cannot carry {rate:.3g} requests a second: CPU time is that at a volume that fits"
    if unsure:
        yield f"{', '.join(unsure)} might not carry {rate:.3g} requests a second: the high end of CPU time is too much"


def _outside(log: ServiceLog) -> float:
    """Return the share of the later half's counts outside the hull of the earlier half's; NaN of a log too short."""
    if len(log.start_s) < 2:
        return math.nan
    earlier, later = (half.counts[half.requests > 0] for half in halves(log))
    return outside_hull(earlier, later) if len(earlier) and len(later) else math.nan
