"""A method calibrated on the log of a user's service: files read, platforms found, evidence gathered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.crossplatform import mix
from analysis.crossplatform.evidence import Evidence, Method, Predictor, ServiceLog
from analysis.crossplatform.logs import read
from analysis.crossplatform.methods import METHODS
from analysis.readers import Field, read_table
from models.platforms import Platform
from scenarios.faults import Fault, FaultsError
from scenarios.measured import faults_in
from scenarios.options import refuse
from scenarios.platforms import available, choose_each
from scenarios.rundir import Run, RunError, open_run
from scenarios.stay_logs import is_served, log_on
from scenarios.trial import log_of
from scenarios.wording import closest

BY_ITSELF = "testbed"
"""The method that is taken if none is asked for."""
WITHOUT_UTILISATION = "published"
"""The same where nobody counted CPU time."""
CYCLES = (0.1, 100.0)
"""Cycles that the mean instruction may take: no machine retires as many as ten in one."""
SCORES = (Field("platform", "text"), Field("score_per_s", "real"))
"""Columns of public scores; counters may stand beside them."""
_COUNTED = ("instructions", "l1_misses", "l2_misses")
_TABLES = ("service_counts", "service_log", "service_cpu")
_SCORED = ("benchmark", "testbed")
"""Methods that look at public scores."""


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
    service: str | None = None
    """Of a fleet's run that served several."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A method calibrated on a whole log, and what it is asked about."""

    evidence: Evidence
    targets: tuple[Platform, ...]
    method: Method
    predictor: Predictor
    notes: tuple[str, ...]


def calibrate(asked: Asked) -> Calibrated:
    """Return the method that is asked for, calibrated on the whole log.

    Raises
    ------
    FaultsError, PlatformError, RunError
        As `predict.predict`; also if the log's CPU time and instructions cannot be of the platform that it is said of.
    """
    known = available(asked.platforms)
    origin = asked.origin.strip()
    _, chosen = choose_each([[origin], [name.strip() for name in asked.to]], known)
    if is_served(asked.log):
        log, note = log_on(asked.log, asked.service, known[origin])
        logs, scores, read = {origin: log}, None, [note]
    elif asked.service is not None:
        refuse("--service", "is about the folder of a fleet's run that served requests", asked.service)
    else:
        (logs, scores), read = _read(asked.log, origin, known), []
    method, notes = _method(asked.method, logs[origin])
    notes = [*read, *notes]
    evidence = Evidence(origin, logs, known, scores)
    if method.learns and len(logs) > 1:
        notes.append(f"learnt from the logs of {', '.join(logs)}")
    if not method.learns:
        evidence = evidence.of_one()
    if asked.benchmarks is not None:
        evidence = replace(evidence, benchmarks=_scores(asked.benchmarks))
    elif scores is not None and method.name in _SCORED:
        notes.append("public scores are those of the run's table benchmarks")
    with faults_in(asked.log):
        _refuse_impossible(evidence)
        predictor = method.fit(evidence)
    return Calibrated(evidence, tuple(chosen) or tuple(known.values()), method, predictor, (*notes, *_notes(evidence)))


def _read(path: Path, origin: str, known: Mapping[str, Platform]) -> tuple[dict[str, ServiceLog], pd.DataFrame | None]:
    """Return the log of a file, or those of a run with its public scores; that of the origin first."""
    if not path.is_dir():
        with faults_in(path):
            return {origin: read(path)}, None
    found = open_run(path)
    missing = [name for name in _TABLES if not found.has(name)]
    if missing and found.manifest.get("kind") != "cross_platform":
        raise RunError(f"{path}: is a run of kind {found.manifest.get('kind')}, which has no table {missing[0]}")
    tables = {name: table_of(found, name) for name in _TABLES}
    ran = [name for name in tables["service_log"]["platform"].unique() if name in known and name != origin]
    with faults_in(path):
        logs = {name: log_of(tables, name) for name in (origin, *ran)}
    return logs, table_of(found, "benchmarks") if found.has("benchmarks") else None


def table_of(found: Run, name: str) -> pd.DataFrame:
    """Return a table of a run.

    Raises
    ------
    RunError
        If it is not there or cannot be read, as a file that is cut off.
    """
    try:
        return found.table(name)
    except (OSError, ValueError) as error:
        raise RunError(f"{found.path}: table {name} cannot be read: is {found.file(name).name} cut off?") from error


def _refuse_impossible(evidence: Evidence) -> None:
    """Refuse a log that, had it been made on its platform, would have instructions that take no possible time."""
    log, platform = evidence.log, evidence.platform
    rows = log.taken(np.isfinite(log.utilisation))
    if not rows.instructions.sum() > 0:
        return
    cycles = rows.utilisation.sum() * log.interval_s * platform.vcpus * platform.base_frequency_hz
    each = float(cycles / rows.instructions.sum())
    if not CYCLES[0] <= each <= CYCLES[1]:
        raise ValueError(
            f"its utilisation and instructions would be {each:.3g} cycles per instruction on {platform.name}, must be "
            f"{CYCLES[0]:g} to {CYCLES[1]:g}: is it the log of another platform, or a counter in another unit?"
        )


def _scores(path: Path) -> pd.DataFrame:
    """Return public scores from a file; the counters of a request are NaN where they are not published."""
    with faults_in(path):
        table = read_table(path, SCORES, lambda _names: ("platform",))
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


def rate_per_s(log: ServiceLog) -> float:
    """Return the requests per second of a whole log.

    Examples
    --------
    >>> nothing, counts = np.zeros(2), np.array([[30.0], [90.0]])
    >>> rate_per_s(ServiceLog(("buy",), 30.0, np.array([0.0, 30.0]), counts, nothing, counts, nothing, nothing))
    2.0
    """
    return float(log.requests.sum() / (len(log.start_s) * log.interval_s))


def unsaid(asked: Asked, made: Calibrated, silent: Sequence[str], what: str) -> list[str]:
    """Return the note that a method says nothing of some platforms; a fault if somebody asked for them, or for all.

    Parameters
    ----------
    asked : with the platforms that were named
    made : with the method
    silent : names of platforms
    what : of which nothing is said

    Raises
    ------
    FaultsError
        If platforms were named, or there is nothing to be said of any.
    """
    if not silent:
        return []
    score = ", for want of a public score" if made.method.name == "benchmark" else ""
    said = f"method {made.method.name} says nothing of {what} on {', '.join(silent)}{score}"
    if asked.to or len(silent) == len(made.targets):
        raise FaultsError([Fault(str(asked.log), 0, 0, "", said)])
    return [said]


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
