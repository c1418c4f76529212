"""`wsc predict`: from the log of a service on one platform to its service and response times on others."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.crossplatform import mix
from analysis.crossplatform.evidence import Evidence, Method, Prediction, Predictor, ServiceLog
from analysis.crossplatform.logs import read
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.split import halves, outside_hull
from analysis.readers import Field, read_table
from models.platforms import Platform
from scenarios.measured import faults_in, show_notes
from scenarios.options import refuse
from scenarios.platforms import available, choose, closest
from scenarios.rundir import RunError, open_run
from scenarios.trial import log_of

BY_ITSELF = "testbed"
"""The method that is taken if none is asked for."""
WITHOUT_UTILISATION = "published"
"""The same where nobody counted CPU time."""
_COUNTED = ("instructions", "l1_misses", "l2_misses")
_TABLES = ("service_counts", "service_log", "service_cpu")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a log: where it was made, for which platforms, on what evidence and by which method."""

    log: Path
    origin: str
    to: tuple[str, ...] = ()
    """Platforms that are predicted for; none: all that are known."""
    platforms: Path | None = None
    benchmarks: Path | None = None
    method: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A method calibrated on a whole log, and what it is asked about."""

    evidence: Evidence
    targets: tuple[Platform, ...]
    method: Method
    predictor: Predictor
    notes: tuple[str, ...]


def predict(asked: Asked) -> dict[str, Any]:
    """Return what `wsc predict` says: times on other platforms for the log's own mean mix and volume.

    Parameters
    ----------
    asked : log, platforms and method

    Returns
    -------
    dict
        kind, from, method, types, intervals, requests_per_s, outside_hull (share of the mixes of the log's second half
        outside those of its first: how much it extrapolates itself), targets and notes. A target: platform,
        service_time_s (of the whole machine, CPU time over logical processors) with service_low and service_high,
        processor_s (CPU time of a request), response_time_s with low and high, utilisation. Ends of 90% intervals; NaN
        for what a method does not say.

    Raises
    ------
    FaultsError
        If a file cannot be used, with all its faults, or an option is wrong.
    PlatformError
        If a platform is not known.
    RunError
        If a folder is no cross-platform run.
    ValueError
        If the log does not suffice for the method.
    """
    made = calibrate(asked)
    log = made.evidence.log
    return {
        "kind": "predict",
        **head(made),
        "requests_per_s": float(log.requests.sum() / (len(log.start_s) * log.interval_s)),
        "outside_hull": _outside(log),
        "targets": [_target(platform, _mean(made, platform), log) for platform in made.targets],
        "notes": list(made.notes),
    }


def head(made: Calibrated) -> dict[str, Any]:
    """Return what every answer from a log begins with: where it was made, the method, types and intervals.

    Examples
    --------
    >>> import tempfile
    >>> rows = ["start_s,requests_buy,instructions,l1_misses,l2_misses"]
    >>> rows += [f"{30 * i},{i + 1},{i + 1}e6,{i + 1}e4,{i + 1}e3" for i in range(4)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder) / "log.csv").write_text("\\n".join(rows))
    ...     head(calibrate(Asked(file, "piii", ("pres",))))
    {'from': 'piii', 'method': 'published', 'types': ['buy'], 'intervals': 4}
    """
    log = made.evidence.log
    return {
        "from": made.evidence.calibration,
        "method": made.method.name,
        "types": list(log.types),
        "intervals": len(log.start_s),
    }


def calibrate(asked: Asked) -> Calibrated:
    """Return the method that is asked for, calibrated on the whole log.

    Raises
    ------
    FaultsError, PlatformError, RunError, ValueError
        As `predict`.
    """
    known = available(asked.platforms)
    choose([asked.origin], known)
    targets = tuple(choose(asked.to, known)) if asked.to else tuple(known.values())
    log, scores = _read(asked.log, asked.origin)
    if asked.benchmarks is not None:
        scores = _scores(asked.benchmarks)
    method, notes = _method(asked.method, log)
    evidence = Evidence(asked.origin, {asked.origin: log}, known, scores)
    with faults_in(asked.log):
        predictor = method.fit(evidence)
    return Calibrated(evidence, targets, method, predictor, (*notes, *_notes(evidence)))


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
    50% of the later mixes lie outside the earlier ones
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
        console.print(f"{outside:.0%} of the later mixes lie outside the earlier ones", highlight=False, soft_wrap=True)
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


def _mean(made: Calibrated, platform: Platform) -> Prediction:
    """Return what is predicted of the mean over the whole log, as if it were one interval: chance averages out."""
    log = made.evidence.log
    return made.predictor(platform, log.counts.sum(axis=0, keepdims=True), len(log.start_s) * log.interval_s)


def _target(platform: Platform, said: Prediction, log: ServiceLog) -> dict[str, Any]:
    service, response = float(said.service_time_s[0]), float(said.response_time_s[0])
    rate_per_s = float(log.requests.sum() / (len(log.start_s) * log.interval_s))
    return {
        "platform": platform.name,
        "service_time_s": service,
        "service_low": float(said.service_low_s[0]),
        "service_high": float(said.service_high_s[0]),
        "processor_s": service * platform.vcpus,
        "response_time_s": response,
        "low": float(said.response_low_s[0]),
        "high": float(said.response_high_s[0]),
        "utilisation": rate_per_s * service,
    }


def _outside(log: ServiceLog) -> float:
    """Return the share of the later half's mixes outside the hull of the earlier half's; NaN of a log too short."""
    if len(log.start_s) < 2:
        return math.nan
    earlier, later = halves(log)
    return outside_hull(earlier.counts, later.counts)


def _read(path: Path, origin: str) -> tuple[ServiceLog, pd.DataFrame | None]:
    """Return the log of a file or of a run, and the run's public scores."""
    if not path.is_dir():
        with faults_in(path):
            return read(path), None
    found = open_run(path)
    missing = [name for name in _TABLES if not found.has(name)]
    if missing:
        raise RunError(f"{path}: is a run of kind {found.manifest.get('kind')}, which has no table {missing[0]}")
    with faults_in(path):
        log = log_of({name: found.table(name) for name in _TABLES}, origin)
    return log, found.table("benchmarks") if found.has("benchmarks") else None


def _scores(path: Path) -> pd.DataFrame:
    """Return public scores from a file; the counters of a request are NaN where they are not published."""
    with faults_in(path):
        fields = [Field("platform", "text"), Field("score_per_s", "real")]
        table = read_table(path, fields, lambda _names: ("platform",))
    for name in _COUNTED:
        table[name] = pd.to_numeric(table[name], errors="coerce") if name in table else np.nan
    return table[["platform", "score_per_s", *_COUNTED]]


def _method(name: str | None, log: ServiceLog) -> tuple[Method, list[str]]:
    known = {method.name: method for method in METHODS}
    counted = bool(np.isfinite(log.utilisation).any())
    if name is not None and name not in known:
        refuse("--method", f"there is no such method ({closest(name, known)})", name)
    if name is None and not counted:
        said = f"no utilisation in the log: method {WITHOUT_UTILISATION}, which rests on spec sheets alone"
        return known[WITHOUT_UTILISATION], [said]
    return known[name or BY_ITSELF], []


def _notes(evidence: Evidence) -> Iterator[str]:
    """Yield what must be known to read a prediction."""
    verdict = mix.fit(evidence.log.counts, evidence.log.instructions)
    if not verdict.identified:
        yield f"{verdict.verdict}; the prediction is for this mix, not for others"
