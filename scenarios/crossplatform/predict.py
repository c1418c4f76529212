"""`wsc predict`: from the log of a service on one platform to its service and response times on others."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd

from analysis.crossplatform import mix
from analysis.crossplatform.evidence import Evidence, Method, Prediction, Predictor, ServiceLog
from analysis.crossplatform.logs import read
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.split import halves, outside_hull
from analysis.tables.columns import Field, read_table
from models.arrays import Floats
from models.errors import ArgumentError, InputError
from models.platforms import UNKNOWN, Platform, same_instructions
from scenarios.crossplatform.platforms import available, choose_each
from scenarios.crossplatform.worlds import log_of
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.occupancy.stay_logs import is_served, log_on
from scenarios.runs.rundir import RunError, open_run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import closest
from scenarios.views.section import Block, Says, Section, says, table

BY_ITSELF = "testbed"
"""The method that is taken if none is asked for."""
WITHOUT_UTILISATION = "published"
"""The same where nobody counted CPU time."""
_SETTLED = "--instruction-ratio LOW,HIGH says how many instructions a request takes there over those here (90%)"
"""What a user can do where instruction counts do not carry over."""
CYCLES = (0.1, 100.0)
"""Cycles that the mean instruction may take: no machine retires as many as ten in one."""
SCORES = (Field("platform", "text"), Field("score_per_s", "real"))
"""Columns of public scores; counters may stand beside them."""
_COUNTED = ("instructions", "l1_misses", "l2_misses")
_TABLES = ("service_counts", "service_log", "service_cpu")
_SCORED = ("benchmark", "testbed")
"""Methods that look at public scores."""
_RATIO = "instruction_ratio"
_RARER = 1e6
"""Requests that come so much more rarely fill no machine, so that no end of an interval is cut off."""
_SCORES = "benchmark"
"""The method that goes by scores alone, whatever they were made with: it counts no instructions."""
_ROUNDING = 1e-9
"""What is as close to a full machine as this is full."""
_RESPONSES = ("response_time_s", "response_low_s", "response_high_s")
_HALVINGS = 40
"""A machine that cannot carry so small a part of the volume carries nothing."""


@dataclass(frozen=True, slots=True)
class ServiceQuestion:
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
    instruction_ratio: tuple[float, float] | None = None
    """Instructions of a request on a platform of another instruction set over those of the log: ends of 90%."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A method calibrated on a whole log, and what it is asked about."""

    evidence: Evidence
    targets: tuple[Platform, ...]
    """That something can be said of."""
    method: Method
    predictor: Predictor
    notes: tuple[str, ...]
    foreign: tuple[Platform, ...] = ()
    """Asked for, but of another instruction set, with nothing said of how its instructions compare."""


def calibrate(question: ServiceQuestion) -> Calibrated:
    """Return the method that is asked for, calibrated on the whole log."""
    known = available(question.platforms)
    origin = question.origin.strip()
    _, chosen = choose_each([[origin], [name.strip() for name in question.to]], known)
    if is_served(question.log):
        log, note = log_on(question.log, question.service, known[origin])
        logs, scores, read = {origin: log}, None, [note]
    elif question.service is not None:
        raise ArgumentError("service", "is about the folder of a fleet's run that served requests", question.service)
    else:
        (logs, scores), read = _read(question.log, origin, known), []
    method, notes = _method(question.method, logs[origin])
    notes = [*read, *notes]
    evidence = Evidence(origin, logs, known, scores)
    if method.learns and len(logs) > 1:
        notes.append(f"learnt from the logs of {', '.join(logs)}")
    if not method.learns:
        evidence = evidence.of_one()
    if question.benchmarks is not None:
        evidence = replace(evidence, benchmarks=_scores(question.benchmarks))
    elif scores is not None and method.name in _SCORED:
        notes.append("public scores are those of the run's table benchmarks")
    evidence, left_out = _of_one_instruction_set(evidence, method)
    notes += left_out
    targets = tuple(chosen) or tuple(known.values())
    foreign = tuple(
        platform
        for platform in targets
        if not same_instructions(evidence.platform, platform) and method.name != _SCORES
    )
    _refuse_ratio(question, method, foreign)
    with faults_in(question.log):
        _refuse_impossible(evidence)
        predictor = method.fit(evidence)
    if question.instruction_ratio is not None:
        predictor = translated(predictor, evidence.platform, question.instruction_ratio)
        notes.append(_said_of_ratio(question.instruction_ratio, evidence.platform, foreign))
        foreign = ()
    targets = tuple(platform for platform in targets if platform not in foreign)
    return Calibrated(evidence, targets, method, predictor, (*notes, *_notes(evidence)), foreign)


def do_not_carry_over(origin: Platform, foreign: Sequence[Platform]) -> str:
    """Return in words to which platforms the instruction counts of a log do not carry over.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> do_not_carry_over(PLATFORMS["piii"], [PLATFORMS["altra_q80_30"]])
    'instruction counts of a log on piii (x86) do not carry over to altra_q80_30 (arm64)'
    >>> mine = replace(PLATFORMS["piii"], name="mine", isa="unknown")
    >>> do_not_carry_over(PLATFORMS["piii"], [mine])[-54:]
    'not carry over to mine (unknown: its sheet has no isa)'
    """
    names = ", ".join(f"{platform.name} ({_isa(platform)})" for platform in foreign)
    return f"instruction counts of a log on {origin.name} ({_isa(origin)}) do not carry over to {names}"


def cures(origin: Platform, foreign: Sequence[Platform]) -> str:
    """Return in words what a user can do where instruction counts do not carry over.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> cures(PLATFORMS["piii"], [PLATFORMS["altra_q80_30"]])[:50]
    '--instruction-ratio LOW,HIGH says how many instruc'
    >>> cures(PLATFORMS["piii"], [replace(PLATFORMS["piii"], name="mine", isa="unknown")])[:82]
    'a line such as `isa: x86` in the sheet of mine says which instructions it has; whe'
    """
    unknown = [platform.name for platform in (origin, *foreign) if platform.isa == UNKNOWN]
    if not unknown:
        return _SETTLED
    known = next((platform.isa for platform in (origin, *foreign) if platform.isa != UNKNOWN), "x86")
    line = f"a line such as `isa: {known}` in the sheet of {', '.join(unknown)} says which instructions it has"
    return f"{line}; where they differ, {_SETTLED}"


def _isa(platform: Platform) -> str:
    return "unknown: its sheet has no isa" if platform.isa == UNKNOWN else platform.isa


def _of_one_instruction_set(evidence: Evidence, method: Method) -> tuple[Evidence, list[str]]:
    """Leave out logs, and scores where they are read as instructions, of platforms whose instructions are others."""
    origin = evidence.platform
    alike = {name for name, platform in evidence.platforms.items() if same_instructions(origin, platform)}
    notes = list[str]()
    others = [evidence.platforms[name] for name in evidence.logs if name not in alike]
    if others:
        notes.append(f"logs left out: {do_not_carry_over(origin, others)}")
        evidence = replace(evidence, logs={name: log for name, log in evidence.logs.items() if name in alike})
    table = evidence.benchmarks
    if table is not None and method.name != _SCORES:
        scored = [platform for name, platform in evidence.platforms.items() if name in set(table["platform"]) - alike]
        if scored:
            names = ", ".join(platform.name for platform in scored)
            known = f"{origin.name} ({_isa(origin)})"
            notes.append(f"scores of {names} left out: not known to be of the instruction set of {known}")
            evidence = replace(
                evidence, benchmarks=table[~table["platform"].isin([platform.name for platform in scored])]
            )
    return evidence, notes


def _refuse_ratio(question: ServiceQuestion, method: Method, foreign: Sequence[Platform]) -> None:
    """Refuse a ratio of instructions that would change nothing, or by which the method has no interval to widen."""
    if question.instruction_ratio is None:
        return
    text = ",".join(f"{end:g}" for end in question.instruction_ratio)
    if method.name == _SCORES:
        raise ArgumentError(_RATIO, f"method {_SCORES} goes by scores and counts no instructions", text)
    if not foreign:
        raise ArgumentError(_RATIO, f"all platforms asked for have the instructions of {question.origin.strip()}", text)
    if method.name != BY_ITSELF:
        problem = f"method {method.name} states no interval that it could widen, only {BY_ITSELF} does"
        raise ArgumentError(_RATIO, problem, text)


def _said_of_ratio(ratio: tuple[float, float], origin: Platform, foreign: Sequence[Platform]) -> str:
    names = ", ".join(f"{platform.name} ({_isa(platform)})" for platform in foreign)
    return (
        f"on {names} a request is taken to need {ratio[0]:g} to {ratio[1]:g} times (90%) as many instructions as on "
        f"{origin.name} ({_isa(origin)}), with as many misses in each"
    )


def translated(predictor: Predictor, origin: Platform, ratio: tuple[float, float]) -> Predictor:
    """Return a predictor that takes requests to need other numbers of instructions on other instruction sets.

    The ratio is log-normal: its median is the geometric mean of the ends. Its spread and that of service times add as
    independent errors do, in logarithms: each end is the predictor's own where as many more, or fewer, instructions
    are needed as brings service times there.

    Parameters
    ----------
    predictor : for platforms of the log's own instruction set
    origin : platform of the log
    ratio : ends of a 90% interval of instructions there over instructions here

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> def ten(platform, counts, _interval_s):
    ...     time_s = np.full(len(counts), 1e8 / platform.base_frequency_hz)
    ...     return Prediction(*[time_s] * 6)
    >>> prediction = translated(ten, PLATFORMS["piii"], (0.5, 2.0))(PLATFORMS["altra_q80_30"], np.ones((1, 1)), 30.0)
    >>> low_s, mean_s, high_s = prediction.service_low_s, prediction.service_time_s, prediction.service_high_s
    >>> (low_s / mean_s).round(3), (high_s / mean_s).round(3)
    (array([0.5]), array([2.]))
    """
    median = math.sqrt(ratio[0] * ratio[1])
    width = math.log(ratio[1] / median)

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        if same_instructions(origin, platform):
            return predictor(platform, counts, interval_s)

        def at(by: float, rarer: float = 1.0) -> Prediction:
            return predictor(_slowed(platform, median * by), counts, interval_s * rarer)

        middle, alone = at(1.0), at(1.0, _RARER)
        few = at(1.0 / _further(alone.service_time_s / alone.service_low_s, width))
        many = at(_further(alone.service_high_s / alone.service_time_s, width))
        return replace(
            middle,
            service_low_s=few.service_low_s,
            service_high_s=many.service_high_s,
            response_low_s=few.response_low_s,
            response_high_s=many.response_high_s,
        )

    return predict


def _further(factors: Floats, width: float) -> float:
    """Return by which factor an end of an interval is further away if a log-normal factor of this width comes to it.

    The greatest of all mixes' ends counts, which are nearly alike; mixes without requests have none.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.log(factors)
    widest = float(np.max(own[np.isfinite(own)], initial=0.0))
    return math.exp(math.hypot(widest, width) - widest)


def _slowed(platform: Platform, by: float) -> Platform:
    """Return a platform on which everything takes so many times as long: as many times the instructions, all alike."""
    clocks = {f"{name}_frequency_hz": getattr(platform, f"{name}_frequency_hz") / by for name in ("base", "min", "max")}
    return replace(
        platform,
        **clocks,
        memory_latency_s=platform.memory_latency_s * by,
        memory_bandwidth_bytes_per_s=platform.memory_bandwidth_bytes_per_s / by,
    )


def _read(path: Path, origin: str, known: Mapping[str, Platform]) -> tuple[dict[str, ServiceLog], pd.DataFrame | None]:
    """Return the log of a file, or those of a run with its public scores; that of the origin first."""
    if not path.is_dir():
        with faults_in(path):
            return {origin: read(path)}, None
    run = open_run(path)
    missing = [name for name in _TABLES if not run.has(name)]
    if missing and run.manifest.get("kind") != "cross_platform":
        raise RunError(f"{path}: is a run of kind {run.manifest.get('kind')}, which has no table {missing[0]}")
    tables = {name: run.table(name) for name in _TABLES}
    ran = [name for name in tables["service_log"]["platform"].unique() if name in known and name != origin]
    with faults_in(path):
        logs = {name: log_of(tables, name) for name in (origin, *ran)}
    return logs, run.table("benchmarks") if run.has("benchmarks") else None


def _refuse_impossible(evidence: Evidence) -> None:
    """Refuse a log that, had it been made on its platform, would have instructions that take no possible time."""
    log, platform = evidence.log, evidence.platform
    rows = log.taken(np.isfinite(log.utilisation))
    if not rows.instructions.sum() > 0:
        return
    cycles = rows.utilisation.sum() * log.interval_s * platform.vcpus * platform.base_frequency_hz
    cpi = float(cycles / rows.instructions.sum())
    if not CYCLES[0] <= cpi <= CYCLES[1]:
        raise InputError(
            f"its utilisation and instructions would be {cpi:.3g} cycles per instruction on {platform.name}, must be "
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
        raise ArgumentError("method", f"there is no such method ({closest(name, known)})", name)
    if name is None and not counted:
        note = f"no utilisation in the log: method {WITHOUT_UTILISATION}, which rests on spec sheets alone"
        return known[WITHOUT_UTILISATION], [note]
    return known[name or BY_ITSELF], []


def _notes(evidence: Evidence) -> Iterator[str]:
    """Yield what must be known to read a prediction."""
    verdict = mix.fit(evidence.log.counts, evidence.log.instructions)
    if not verdict.identified:
        yield f"{verdict.verdict}; the prediction is for this mix, not for others"


def rate_per_s(log: ServiceLog) -> float:
    """Return the requests per second of a whole log."""
    return float(log.requests.sum() / (len(log.start_s) * log.interval_s))


def unsaid(question: ServiceQuestion, fitted: Calibrated, silent: Sequence[str], what: str) -> list[str]:
    """Return the note that a method says nothing of some platforms; a fault if somebody asked for them, or for all.

    Parameters
    ----------
    question : with the platforms that were named
    fitted : with the method
    silent : names of platforms
    what : of which nothing is said
    """
    if not silent:
        return []
    score = ", for want of a public score" if fitted.method.name == "benchmark" else ""
    note = f"method {fitted.method.name} says nothing of {what} on {', '.join(silent)}{score}"
    if question.to or len(silent) == len(fitted.targets):
        refuse_log(question.log, note)
    return [note]


@dataclass(frozen=True, slots=True)
class AboutLog:
    """What every answer from a log begins with: where it was made, the method, types and intervals."""

    origin: str
    isa: str
    """Instruction set of the origin."""
    method: str
    types: tuple[str, ...]
    intervals: int

    def payload(self) -> Payload:
        """Return the first keys of the answer."""
        return {
            "from": self.origin,
            "isa": self.isa,
            "method": self.method,
            "types": list(self.types),
            "intervals": self.intervals,
        }

    def __str__(self) -> str:
        """Return how the text of the answer begins."""
        types = len(self.types)
        requests = f"{types} type{'s' * (types > 1)} of request{'s' * (types > 1)}"
        return f"method {self.method} on {self.intervals:,} intervals of {self.origin} with {requests}"


def about(fitted: Calibrated) -> AboutLog:
    """Return what an answer begins with."""
    log, evidence = fitted.evidence.log, fitted.evidence
    types = tuple(log.types)
    return AboutLog(evidence.calibration, evidence.platform.isa, fitted.method.name, types, len(log.start_s))


@dataclass(frozen=True, slots=True)
class TargetTimes:
    """What is predicted of one platform; seconds, ends of 90% intervals, NaN for what a method does not say."""

    platform: str
    isa: str
    service_time_s: float
    """Of the whole machine: CPU time over logical processors."""
    service_low: float
    service_high: float
    processor_s: float
    """CPU time of a request."""
    response_time_s: float
    low: float
    high: float
    utilisation: float
    """1 of a platform that cannot carry the volume: CPU time is then that of half, a quarter, … the volume."""

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table that people see."""
        scale = self.processor_s / self.service_time_s if self.service_time_s else math.nan
        return (
            self.platform,
            milliseconds(self.processor_s),
            _between(scale * self.service_low, scale * self.service_high),
            milliseconds(self.response_time_s),
            _between(self.low, self.high),
            f"{self.utilisation:.0%}" if math.isfinite(self.utilisation) else "",
        )


@dataclass(frozen=True, slots=True)
class Predicted(Conclusion):
    """Times on other platforms for a log's own mean mix and volume: ``wsc predict``."""

    log: AboutLog
    requests_per_s: float
    outside_hull: float
    """Share of the mixes of the log's second half outside those of its first, as counts by type: how much it
    extrapolates itself."""
    targets: tuple[TargetTimes, ...]
    notes: tuple[str, ...]

    def section(self) -> Section:
        """Return a table of platforms, and what must be known to read it."""
        headings = ("platform", "CPU time", "90%", "response", "90%", "busy")
        outside = (
            f"{self.outside_hull:.0%} of the later intervals' counts by type, volume included, lie outside those of "
            "the earlier ones"
        )
        blocks: tuple[Block, ...] = (
            Says(f"{self.log}, {self.requests_per_s:.3g} requests a second; predicted at that mean mix and volume"),
            table(headings, [target.cells() for target in self.targets]),
            *says(outside if math.isfinite(self.outside_hull) else ""),
            *(Says(f"note: {note}") for note in self.notes),
        )
        return Section("", blocks)

    def payload(self) -> Payload:
        """Return kind, the log, requests_per_s, outside_hull, targets and notes."""
        return {
            "kind": "predict",
            **self.log.payload(),
            "requests_per_s": self.requests_per_s,
            "outside_hull": self.outside_hull,
            "targets": [asdict(target) for target in self.targets],
            "notes": list(self.notes),
        }

    def frame(self) -> pd.DataFrame:
        """Return a row a platform."""
        return pd.DataFrame([asdict(target) for target in self.targets])


def predict(question: ServiceQuestion) -> Predicted:
    """Return times on other platforms for the log's own mean mix and volume.

    Raises
    ------
    ArgumentError
        If a value of the question is wrong, or changes nothing.
    FaultsError
        If a file cannot be used or does not suffice for the method, with all its faults; if the method says nothing of
        a platform that was named; if the log's instruction counts do not carry over to one and nothing is said of how
        its instructions compare.
    PlatformError
        If a platform is not known.
    RunError
        If a folder is no cross-platform run, or a table of it cannot be read.
    """
    fitted = calibrate(question)
    if fitted.foreign:
        sides = fitted.evidence.platform, fitted.foreign
        refuse_log(question.log, f"{do_not_carry_over(*sides)}; {cures(*sides)}")
    log = fitted.evidence.log
    targets = tuple(_target(fitted, platform) for platform in fitted.targets)
    silent = [row.platform for row in targets if np.isnan([row.service_time_s, row.response_time_s]).all()]
    notes = (
        *fitted.notes,
        *unsaid(question, fitted, silent, "the service"),
        *_overloads(targets, rate_per_s(log)),
    )
    return Predicted(about(fitted), rate_per_s(log), _outside(log), targets, notes)


def refuse_log(log: Path, problem: str) -> NoReturn:
    """Raise the fault that a whole log has."""
    raise FaultsError([Fault(str(log), 0, 0, "", problem)])


def _between(low_s: float, high_s: float) -> str:
    ends = milliseconds(low_s).removesuffix(" ms"), milliseconds(high_s)
    return " to ".join(ends) if all(ends) else ""


def milliseconds(seconds: float) -> str:
    """Return a time as people read it."""
    if not math.isfinite(seconds):
        return ""
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def _target(fitted: Calibrated, platform: Platform) -> TargetTimes:
    """Return what is predicted of the mean over the whole log, as if it were one interval: chance averages out."""
    rate = rate_per_s(fitted.evidence.log)
    predicted = _predicted(fitted, platform)
    roomy = _roomy(fitted, platform, predicted)
    carried = not predicted.service_time_s[0] * rate >= 1.0 - _ROUNDING
    service = float((predicted if carried else roomy).service_time_s[0])
    if not carried:
        predicted = replace(roomy, **dict.fromkeys(_RESPONSES, np.full(1, np.nan)))
    elif roomy is not predicted:
        predicted = replace(predicted, service_high_s=service * roomy.service_high_s / roomy.service_time_s)
    return TargetTimes(
        platform.name,
        platform.isa,
        service,
        float(predicted.service_low_s[0]),
        float(predicted.service_high_s[0]),
        service * platform.vcpus,
        float(predicted.response_time_s[0]),
        float(predicted.response_low_s[0]),
        float(predicted.response_high_s[0]),
        rate * service if carried else 1.0,
    )


def _predicted(fitted: Calibrated, platform: Platform, part: float = 1.0) -> Prediction:
    """Return what is predicted of the log's requests at its mean rate, or at a part of that."""
    log = fitted.evidence.log
    return fitted.predictor(platform, log.counts.sum(axis=0, keepdims=True), len(log.start_s) * log.interval_s / part)


def _roomy(fitted: Calibrated, platform: Platform, predicted: Prediction) -> Prediction:
    """Return what is predicted at the volume, half of it, a quarter, …: the first at which nothing is cut off.

    A method may say of a machine's service time no more than that it is full, which is not what a request needs.
    """
    rate = rate_per_s(fitted.evidence.log)
    for halving in range(1, _HALVINGS + 1):
        ends = float(predicted.service_time_s[0]), float(predicted.service_high_s[0])
        if not any(abs(end * rate - 1.0) <= _ROUNDING for end in ends):
            break
        rate /= 2
        predicted = _predicted(fitted, platform, 0.5**halving)
    return predicted


def _overloads(targets: Sequence[TargetTimes], rate: float) -> Iterator[str]:
    """Yield which platforms cannot carry the volume, and which may not."""
    full = [row.platform for row in targets if row.utilisation == 1.0]
    unsure = [row.platform for row in targets if row.service_high * rate >= 1.0 and row.platform not in full]
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
