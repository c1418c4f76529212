"""The guards put to a corpus: planted faults of three strengths, and healthy experiments, on many simulated fleets."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypedDict

import numpy as np

from analysis.audit.case import examine
from analysis.audit.guards import GUARDS
from models.randomness import stream
from scenarios.effects.scorecard.healthy_cases import HEALTHY
from scenarios.effects.scorecard.planted_faults import FAULTS, STRENGTHS
from scenarios.effects.scorecard.planted_fleets import MACHINES, PlantedExperiment, Potential, holds, simulated
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress

FLEETS, ANSWERS, AUDITS = 20, 10, 2
"""Fleets; on each of them experiments of every kind, and how many of those are audited."""
_STRONG_TIMES = 3
"""Experiments with a strong fault for each with a weaker one: that strong ones do harm is to be beyond doubt."""
FRESH = 200
"""Seed of the first fleet that is judged; strengths were chosen, and guards mended, on fleets of seeds below."""
CORNERS = ("upgrade", "rough_upgrade")
"""Corners of the sweep that fleets are of, in turn."""


class GuardOutcome(TypedDict):
    """What experiments of one kind on one fleet came to."""

    covered: int
    """Experiments whose plain interval holds the truth, or all intervals that were looked at."""
    errors: list[float]
    """Of the last look."""
    half_widths: list[float]
    answers: int
    alarms: list[list[str]]
    """Codes of what is worse than a note, of each experiment that was audited."""


class PlantedOutcome(GuardOutcome):
    """The same of a planted fault."""

    fault: str
    strength: str


class HealthyOutcome(GuardOutcome):
    """The same of healthy experiments."""

    case: str


class GuardedFleet(TypedDict):
    """What is kept of one fleet."""

    seed: int
    planted: list[PlantedOutcome]
    healthy: list[HealthyOutcome]


class Rates(TypedDict):
    """What experiments of one kind came to on all fleets; errors are standard errors between fleets."""

    coverage: float
    coverage_error: float
    bias_in_half_widths: float
    bias_error: float
    alarm: float
    """Share with an alarm."""
    named: float
    """Share in which a code that names the fault is among them."""
    audits: int
    codes: list[str]


class PlantedRates(Rates):
    """The same of a planted fault."""

    fault: str
    strength: str


class HealthyRates(Rates):
    """The same of healthy experiments."""

    case: str


class GuardRates(TypedDict):
    """How often guards alarm, and what harm planted faults do by themselves."""

    faults: int
    healthy_cases: int
    missed: int
    """Strong faults that an experiment's alarms do not name."""
    harmless: int
    """Strong faults that do not, beyond two Monte-Carlo errors, push coverage below 90% or the bias above one
    half-width."""
    false_alarms: float
    """Share of healthy experiments that alarm."""
    weak_alarms: float
    """Share of experiments with a weak fault that is not harmful in that sense."""
    planted: list[PlantedRates]
    healthy: list[HealthyRates]


def corpus(out: Path, progress: Progress, fleets: int = FLEETS) -> GuardRates:
    """Return how often guards alarm, and what harm planted faults do by themselves.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    out : folder of all runs
    progress : told what is being done and the share done
    fleets : simulated fleets, at least one
    """
    question = {"fleets": [*CORNERS, MACHINES], "answers": ANSWERS, "audits": AUDITS}
    folder = folder_of(out, "guards", question, ["scipy", "pandas"])
    make = partial(judged, machines=MACHINES, answers=ANSWERS, audits=AUDITS)
    seeds = range(FRESH, FRESH + fleets)
    return summary(computed_parts(seeds, make, folder, {"planted", "healthy"}, progress, what="planting faults"))


def judged(seed: int, machines: int, answers: int, audits: int) -> GuardedFleet:
    """Return what experiments on one fleet came to.

    Parameters
    ----------
    seed : number of the fleet
    machines : of the fleet
    answers : experiments of each kind that the plain estimate is put to; thrice as many with a strong fault
    audits : how many of them are audited
    """
    fleet = simulated(seed, machines, CORNERS[seed % len(CORNERS)])
    truth, planted, healthy = fleet.truth(), list[PlantedOutcome](), list[HealthyOutcome]()
    for fault in FAULTS.values():
        for strength, value in zip(STRENGTHS, fault.strengths, strict=True):
            rng = stream(seed, f"{fault.name}, {strength}")
            times = _STRONG_TIMES if strength == STRENGTHS[-1] else 1
            experiments = [fault.plant(_copy(fleet), value, rng) for _ in range(times * answers)]
            planted.append({"fault": fault.name, "strength": strength, **_outcome(experiments, truth, audits)})
    for name, case in HEALTHY.items():
        rng = stream(seed, f"healthy: {name}")
        experiments = [case(_copy(fleet), rng) for _ in range(audits)]
        healthy.append({"case": name, **_outcome(experiments, truth, audits)})
    return {"seed": seed, "planted": planted, "healthy": healthy}


def _copy(fleet: Potential) -> Potential:
    return Potential(fleet.rows.copy(), fleet.jobs, fleet.first)


def _outcome(experiments: Sequence[PlantedExperiment], truth: float, audits: int) -> GuardOutcome:
    looks = [list(experiment.answers()) for experiment in experiments]
    last = [answers[-1] for answers in looks]
    alarms = []
    for experiment in experiments[:audits]:
        audit = examine(experiment.observations, experiment.jobs, experiment.about, guards=GUARDS)
        alarms.append(sorted({finding.code for finding in audit.findings if finding.severity != "note"}))
    return {
        "covered": sum(holds(answers, truth) for answers in looks),
        "errors": [answer[0] - truth for answer in last if answer is not None],
        "half_widths": [answer[1] for answer in last if answer is not None],
        "answers": len(experiments),
        "alarms": alarms,
    }


def summary(fleets: Sequence[GuardedFleet]) -> GuardRates:
    """Return what all fleets together say.

    Parameters
    ----------
    fleets : what `judged` returns, one for each
    """
    planted, healthy = list[PlantedRates](), list[HealthyRates]()
    for fault, strength in product(FAULTS.values(), STRENGTHS):
        if own := [row for fleet in fleets for row in fleet["planted"] if _is(row, fault.name, strength)]:
            planted.append({"fault": fault.name, "strength": strength, **_rates(own, fault.codes)})
    for name in HEALTHY:
        if cases := [row for fleet in fleets for row in fleet["healthy"] if row["case"] == name]:
            healthy.append({"case": name, **_rates(cases)})
    strong = [row for row in planted if row["strength"] == "strong"]
    weak = [row for row in planted if row["strength"] == "weak" and not _harmful(row)]
    return {
        "faults": len({row["fault"] for row in planted}),
        "healthy_cases": len(healthy),
        "missed": sum(row["named"] < 1 for row in strong),
        "harmless": sum(not _harmful(row) for row in strong),
        "false_alarms": float(np.mean([row["alarm"] for row in healthy])) if healthy else 0.0,
        "weak_alarms": float(np.mean([row["alarm"] for row in weak])) if weak else 0.0,
        "planted": planted,
        "healthy": healthy,
    }


def _is(row: PlantedOutcome, fault: str, strength: str) -> bool:
    return row["fault"] == fault and row["strength"] == strength


def _harmful(row: PlantedRates) -> bool:
    """Return whether coverage is below 90% or the bias above one half-width, each by more than two of its errors."""
    covers, biased = row["coverage"] + 2 * row["coverage_error"], abs(row["bias_in_half_widths"])
    return covers < 0.9 or biased - 2 * row["bias_error"] > 1


def _rates(parts: Sequence[GuardOutcome], codes: Collection[str] = ()) -> Rates:
    """Return what experiments of one kind came to on all fleets; `codes` name the fault."""
    errors = [error for part in parts for error in part["errors"]]
    widths = [width for part in parts for width in part["half_widths"]]
    width = float(np.mean(widths)) if widths else 1.0
    alarms = [codes for part in parts for codes in part["alarms"]]
    return {
        "coverage": sum(part["covered"] for part in parts) / sum(part["answers"] for part in parts),
        "coverage_error": _error([part["covered"] / part["answers"] for part in parts]),
        "bias_in_half_widths": float(np.mean(errors)) / width if errors else 0.0,
        "bias_error": _error([float(np.mean(part["errors"])) for part in parts if part["errors"]]) / width,
        "alarm": float(np.mean([bool(alarmed) for alarmed in alarms])),
        "named": float(np.mean([bool({*codes} & {*alarmed}) for alarmed in alarms])),
        "audits": len(alarms),
        "codes": sorted({code for alarmed in alarms for code in alarmed}),
    }


def _error(of_fleets: Sequence[float]) -> float:
    """Return the standard error of the mean over fleets; 0 of a single one."""
    return float(np.std(of_fleets, ddof=1) / np.sqrt(len(of_fleets))) if len(of_fleets) > 1 else 0.0
