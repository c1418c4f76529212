"""What is asked of a log of a service, and the method that is calibrated on it, for `wsc predict` and `wsc select`."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd

from analysis.crossplatform import mix
from analysis.crossplatform.alignment import ShiftedColumn, shifted_columns
from analysis.crossplatform.evidence import Evidence, PredictionMethod, Predictor, ServiceLog
from analysis.crossplatform.instruction_ratio import translated
from analysis.crossplatform.logs import read
from analysis.crossplatform.measured import OWN_SHARE
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.own_methods import own_method
from analysis.tables.cells import Source, name_of
from analysis.tables.columns import Field, read_table
from analysis.tables.recipe import AS_IT_IS, Recipe
from models.code.parts import PartError, is_part
from models.errors import ArgumentError, InputError
from models.platforms import UNKNOWN, Platform, same_instructions
from models.services.clocks import at_clocks
from scenarios.crossplatform.platforms import available, choose_each
from scenarios.crossplatform.trial import log_of
from scenarios.files.faults import Fault, FaultsError, faults_in
from scenarios.runs.rundir import RunError, open_run
from scenarios.runs.stays import is_served, log_on
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import closest, listed

BY_ITSELF = "testbed"
"""The method that is taken if none is asked for."""
WITHOUT_UTILISATION = "published"
"""The same where nobody counted CPU time."""
_SETTLED = "--instruction-ratio LOW,HIGH says how many instructions a request takes there over those here (90%)"
"""What a user can do where instruction counts do not carry over."""
CYCLES = (0.1, 100.0)
"""Cycles that the mean instruction may take: no machine retires as many as ten in one."""
UNLIKELY_CYCLES = 10.0
"""Cycles for the mean instruction from which a note doubts the counter: services take 0.5 to 4."""
SCORES = (Field("platform", "text"), Field("score_per_s", "real"))
"""Columns of public scores; counters may stand beside them."""
_COUNTED = ("instructions", "l1_misses", "l2_misses")
_TABLES = ("service_counts", "service_log", "service_cpu")
_SCORED = ("benchmark", "testbed")
"""Methods that look at public scores."""
_MOST_SCORES = 5
"""Names of scores that are told."""
_RATIO = "instruction_ratio"


@dataclass(frozen=True, slots=True)
class ServiceQuestion:
    """What is asked of a log: where it was made, for which platforms, on what evidence and by which method."""

    log: Source
    """A row an interval, or the folder of a run."""
    origin: str
    to: tuple[str, ...] = ()
    """Platforms that are predicted for; none: all that are known."""
    platforms: Path | None = None
    benchmarks: Source | None = None
    method: str | None = None
    service: str | None = None
    """Of a fleet's run that served several."""
    instruction_ratio: tuple[float, float] | None = None
    """Instructions of a request on a platform of another instruction set over those of the log: ends of 90%."""
    clock_hz: Mapping[str, float] = field(default_factory=dict)
    """Of platforms that do not run at the base clock of their spec sheets; a run says those of its own."""
    recipe: Recipe = AS_IT_IS
    """How the log's columns become ours."""

    @property
    def folder(self) -> Path | None:
        """Of a run; None of any other log."""
        return self.log if isinstance(self.log, Path) and self.log.is_dir() else None

    @property
    def is_served(self) -> bool:
        """Whether the log is the folder of a run of a fleet that served the requests of services."""
        return self.folder is not None and is_served(self.folder)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A method calibrated on a whole log, and what it is asked about."""

    evidence: Evidence
    targets: tuple[Platform, ...]
    """That something can be said of."""
    method: PredictionMethod
    predictor: Predictor
    notes: tuple[str, ...]
    foreign: tuple[Platform, ...] = ()
    """Asked for, but of another instruction set, with nothing said of how its instructions compare."""


def calibrate(question: ServiceQuestion) -> Calibrated:
    """Return the method that is asked for, calibrated on the whole log."""
    if question.folder is not None and not question.recipe.takes_as_is:
        refuse_log(question.log, "is a run's folder, whose columns are ours: --column and --where are about a table")
    sheets = {**_of_run(question.folder), **available(question.platforms)}
    origin = question.origin.strip()
    choose_each([[origin], [name.strip() for name in question.to]], sheets)
    clock_hz = {**_clocks_of_run(question.folder), **_clocks(question, sheets)}
    known = dict(at_clocks(sheets, clock_hz))
    _, chosen = choose_each([[origin], [name.strip() for name in question.to]], known)
    if question.folder is not None and question.is_served:
        log, note = log_on(question.folder, question.service, known[origin])
        logs, scores, read = {origin: log}, None, [note]
    elif question.service is not None:
        raise ArgumentError("service", "is about the folder of a fleet's run that served requests", question.service)
    else:
        (logs, scores), read = _read(question, origin, known), []
    method, notes = _method(question.method, logs[origin])
    if question.clock_hz and method.name == "benchmark":
        text = ",".join(f"{name}={hz / 1e9:g}GHz" for name, hz in question.clock_hz.items())
        raise ArgumentError("clock", "method benchmark goes by public scores, which are of base clocks", text)
    notes = [
        *read,
        *notes,
        *_said_of_clocks(clock_hz, sheets, {origin, *(platform.name for platform in chosen or known.values())}),
    ]
    evidence = Evidence(origin, logs, known, scores, sheets if clock_hz else None)
    if method.learns and len(logs) > 1:
        notes.append(f"learnt from the logs of {', '.join(logs)}")
    if not method.learns:
        evidence = evidence.of_one()
    if question.benchmarks is not None:
        evidence = replace(evidence, benchmarks=_scores(question.benchmarks))
        notes += _said_of_scores(question.benchmarks, evidence)
    elif scores is not None and method.name in _SCORED:
        notes.append("public scores are those of the run's table benchmarks")
    evidence, left_out = _of_one_instruction_set(evidence, method)
    notes += left_out
    targets = tuple(chosen) or tuple(known.values())
    foreign = tuple(
        platform
        for platform in targets
        if not same_instructions(evidence.platform, platform) and method.counts_instructions
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


def _of_run(folder: Path | None) -> Mapping[str, Platform]:
    """Return the spec sheets that the scenario of a run knew, none of other logs."""
    return open_run(folder).sheets if folder is not None and (folder / "manifest.json").is_file() else {}


def _clocks_of_run(folder: Path | None) -> Mapping[str, float]:
    """Return the clocks at which the platforms of a run ran that was not at their base clocks; none of other logs."""
    return open_run(folder).clock_hz if folder is not None and (folder / "manifest.json").is_file() else {}


def _clocks(question: ServiceQuestion, sheets: Mapping[str, Platform]) -> Mapping[str, float]:
    """Return the clocks that are asked for, refused where a platform cannot have one or it would change nothing."""
    meant = {question.origin.strip(), *(name.strip() for name in question.to)}
    for name, hz in question.clock_hz.items():
        if name not in sheets:
            raise ArgumentError("clock", f"there is no such platform ({closest(name, sheets)})", name)
        if question.to and name not in meant:
            raise ArgumentError("clock", "should be of the log's platform or of one that is predicted for", name)
        if hz > sheets[name].max_frequency_hz:
            most = f"{sheets[name].max_frequency_hz / 1e9:g} GHz, its highest clock with all cores busy"
            raise ArgumentError("clock", f"should be at most {most}", f"{name}={hz / 1e9:g}GHz")
    return question.clock_hz


def _said_of_clocks(
    clock_hz: Mapping[str, float], sheets: Mapping[str, Platform], meant: Collection[str]
) -> Iterator[str]:
    """Yield which platforms run at other clocks than those of their sheets, as far as they are meant."""
    for name, hz in clock_hz.items():
        if name in meant and hz != sheets[name].base_frequency_hz:
            base = f"{sheets[name].base_frequency_hz / 1e9:g} GHz"
            yield f"{name} runs at {hz / 1e9:g} GHz, not at the base clock of its sheet, {base}"


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


def _of_one_instruction_set(evidence: Evidence, method: PredictionMethod) -> tuple[Evidence, list[str]]:
    """Leave out logs, and scores where they are read as instructions, of platforms whose instructions are others."""
    origin = evidence.platform
    alike = {name for name, platform in evidence.platforms.items() if same_instructions(origin, platform)}
    notes = list[str]()
    others = [evidence.platforms[name] for name in evidence.logs if name not in alike]
    if others:
        notes.append(f"logs left out: {do_not_carry_over(origin, others)}")
        evidence = replace(evidence, logs={name: log for name, log in evidence.logs.items() if name in alike})
    table = evidence.benchmarks
    if table is not None and method.counts_instructions:
        scored = [platform for name, platform in evidence.platforms.items() if name in set(table["platform"]) - alike]
        if scored:
            names = ", ".join(platform.name for platform in scored)
            known = f"{origin.name} ({_isa(origin)})"
            notes.append(f"scores of {names} left out: not known to be of the instruction set of {known}")
            evidence = replace(
                evidence, benchmarks=table[~table["platform"].isin([platform.name for platform in scored])]
            )
    return evidence, notes


def _said_of_scores(source: Source, evidence: Evidence) -> Iterator[str]:
    """Yield which scores are of no platform that is known: servers of others, or names misspelt."""
    table = evidence.benchmarks
    names = [] if table is None else [str(name) for name in table["platform"] if name not in evidence.platforms]
    if names:
        meant = [(name, closest(name, evidence.platforms)) for name in names[:_MOST_SCORES]]
        unknown = ", ".join(f"{name} ({near})" if near.startswith("did") else name for name, near in meant)
        more = f" and {len(names) - len(meant):,} more" if len(names) > len(meant) else ""
        yield f"{name_of(source)}: scores that are not used, as no platform of that name is known: {unknown}{more}"


def _refuse_ratio(question: ServiceQuestion, method: PredictionMethod, foreign: Sequence[Platform]) -> None:
    """Refuse a ratio of instructions that would change nothing, or by which the method has no interval to widen."""
    if question.instruction_ratio is None:
        return
    text = ",".join(f"{end:g}" for end in question.instruction_ratio)
    if not method.counts_instructions:
        raise ArgumentError(_RATIO, f"method {method.name} counts no instructions", text)
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


def _read(
    question: ServiceQuestion, origin: str, known: Mapping[str, Platform]
) -> tuple[dict[str, ServiceLog], pd.DataFrame | None]:
    """Return the log of a table, or those of a run with its public scores; that of the origin first."""
    path = question.folder
    if path is None:
        with faults_in(question.log):
            return {origin: read(question.log, question.recipe)}, None
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
    platform = evidence.platform
    cpi = _cycles_per_instruction(evidence)
    if math.isfinite(cpi) and not CYCLES[0] <= cpi <= CYCLES[1]:
        raise InputError(
            f"its utilisation and instructions would be {cpi:.3g} cycles per instruction on {platform.name}, must be "
            f"{CYCLES[0]:g} to {CYCLES[1]:g}: is it the log of another platform, or a counter in another unit?"
        )


def _cycles_per_instruction(evidence: Evidence) -> float:
    """Return the cycles of the mean instruction at the platform's base clock; NaN where nobody counted."""
    log, platform = evidence.log, evidence.platform
    rows = log.taken(np.isfinite(log.utilisation))
    if not rows.instructions.sum() > 0:
        return math.nan
    cycles = rows.utilisation.sum() * log.interval_s * platform.vcpus * platform.base_frequency_hz
    return float(cycles / rows.instructions.sum())


def _scores(source: Source) -> pd.DataFrame:
    """Return public scores from a table; the counters of a request are NaN where they are not published."""
    with faults_in(source):
        table = read_table(source, SCORES, lambda _names: ("platform",))
    for name in _COUNTED:
        table[name] = pd.to_numeric(table[name], errors="coerce") if name in table else np.nan
    return table[["platform", "score_per_s", *_COUNTED]]


def _method(name: str | None, log: ServiceLog) -> tuple[PredictionMethod, list[str]]:
    if name is not None and is_part(name):
        try:
            return own_method(name), []
        except PartError as error:
            raise FaultsError([Fault("", 0, 0, "method", str(error))]) from None
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
    for shift, columns in groupby(sorted(shifted_columns(evidence.log), key=_shift), key=_shift):
        names, which = listed([column.column for column in columns], 4), "earlier" if shift > 0 else "later"
        intervals = "one interval" if abs(shift) == 1 else f"{abs(shift)} intervals"
        yield (
            f"{names}: numbers follow the requests {intervals} {which} far better than those of their own row; put "
            "together the rows of the same times"
        )
    yield from _doubtful_units(evidence)


def _doubtful_units(evidence: Evidence) -> Iterator[str]:
    """Yield what is possible in a log, but tells rather that a column is in another unit or of a sample."""
    log, platform = evidence.log, evidence.platform
    cpi = _cycles_per_instruction(evidence)
    if cpi > UNLIKELY_CYCLES:
        yield (
            f"utilisation and instructions are {cpi:.3g} cycles per instruction on {platform.name}, where services "
            f"take 0.5 to 4: instructions should be those of all {platform.vcpus} logical processors, not of one; "
            "check their unit, too"
        )
    rows = log.taken(np.isfinite(log.response_time_s) & np.isfinite(log.utilisation) & (log.requests > 0))
    requests = rows.requests.sum()
    if not requests:
        return
    processor_s = float(rows.utilisation.sum() * log.interval_s * platform.vcpus / requests)
    response_s = float((rows.response_time_s * rows.requests).sum() / requests)
    if response_s < OWN_SHARE[0] * processor_s:
        yield (
            f"the log's mean response time, {milliseconds(response_s)}, is shorter than its CPU time per request on "
            f"{platform.name}, {milliseconds(processor_s)}: if requests are a sample, multiply the columns requests_… "
            "to the whole; if response times are in another unit, name it, as in response_time_s; unless requests use "
            "several threads at once, or work on after they answered, predicted times are wrong until then"
        )


def _shift(column: ShiftedColumn) -> int:
    """Return by how many intervals."""
    return column.intervals


def rate_per_s(log: ServiceLog) -> float:
    """Return the requests per second of a whole log."""
    return float(log.requests.sum() / (len(log.start_s) * log.interval_s))


def unsaid(question: ServiceQuestion, fitted: Calibrated, silent: Sequence[str], what: str) -> list[str]:
    """Return the note that a method has no answer for some platforms; a fault if somebody asked for them, or for all.

    Parameters
    ----------
    question : with the platforms that were named
    fitted : with the method
    silent : names of platforms
    what : what there is no answer for, such as the service
    """
    if not silent:
        return []
    score = ", for want of a public score" if fitted.method.name == "benchmark" else ""
    note = f"method {fitted.method.name} has no answer (NaN) for {what} on {', '.join(silent)}{score}"
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


def refuse_log(log: Source, problem: str) -> NoReturn:
    """Raise the fault that a whole log has."""
    raise FaultsError([Fault(name_of(log), 0, 0, "", problem)])


def milliseconds(seconds: float) -> str:
    """Return a time as people read it."""
    if not math.isfinite(seconds):
        return ""
    return f"{1e3 * seconds:,.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"
