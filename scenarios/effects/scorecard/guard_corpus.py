"""The guards put to a corpus: planted faults of three strengths, and healthy experiments, on many simulated fleets."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.audit.guards import examine
from models.randomness import stream
from scenarios.effects.scorecard.healthy_cases import HEALTHY
from scenarios.effects.scorecard.planted_faults import FAULTS, STRENGTHS
from scenarios.effects.scorecard.planted_fleets import MACHINES, Experiment, Potential, holds, simulated
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.output import Progress

FLEETS, ANSWERS, AUDITS = 20, 10, 2
"""Fleets; on each of them experiments of every kind, and how many of those are audited."""
_STRONG_TIMES = 3
"""Experiments with a strong fault for each with a weaker one: that strong ones do harm is to be beyond doubt."""
FRESH = 200
"""Seed of the first fleet that is judged; strengths were chosen, and guards mended, on fleets of seeds below."""
CORNERS = ("upgrade", "rough_upgrade")
"""Corners of the sweep that fleets are of, in turn."""


def corpus(out: Path, progress: Progress, fleets: int = FLEETS) -> dict[str, Any]:
    """Return how often guards alarm, and what harm planted faults do by themselves.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    out : folder of all runs
    progress : told what is being done and the share done
    fleets : simulated fleets, at least one

    Returns
    -------
    dict
        As `summary`.
    """
    question = {"fleets": [*CORNERS, MACHINES], "answers": ANSWERS, "audits": AUDITS}
    folder = folder_of(out, "guards", question, ["scipy", "pandas"])
    make = partial(judged, machines=MACHINES, answers=ANSWERS, audits=AUDITS)
    seeds = range(FRESH, FRESH + fleets)
    return summary(computed_parts(seeds, make, folder, {"planted", "healthy"}, progress, what="planting faults"))


def judged(seed: int, machines: int, answers: int, audits: int) -> dict[str, Any]:
    """Return what experiments on one fleet came to.

    Parameters
    ----------
    seed : number of the fleet
    machines : of the fleet
    answers : experiments of each kind that the plain estimate is put to; thrice as many with a strong fault
    audits : how many of them are audited

    Returns
    -------
    dict
        seed; planted: for each fault and strength covered (experiments whose plain interval holds the truth, or all
        intervals that were looked at), errors and half_widths (lists, of the last look), alarms (lists of the codes of
        what is worse than a note); healthy: the same by case.
    """
    fleet = simulated(seed, machines, CORNERS[seed % len(CORNERS)])
    truth, planted, healthy = fleet.truth(), [], []
    for fault in FAULTS.values():
        for strength, value in zip(STRENGTHS, fault.strengths, strict=True):
            rng = stream(seed, f"{fault.name}, {strength}")
            times = _STRONG_TIMES if strength == STRENGTHS[-1] else 1
            experiments = [fault.plant(_copy(fleet), value, rng) for _ in range(times * answers)]
            planted.append({"fault": fault.name, "strength": strength} | _outcome(experiments, truth, audits))
    for name, case in HEALTHY.items():
        rng = stream(seed, f"healthy: {name}")
        experiments = [case(_copy(fleet), rng) for _ in range(audits)]
        healthy.append({"case": name} | _outcome(experiments, truth, audits))
    return {"seed": seed, "planted": planted, "healthy": healthy}


def _copy(fleet: Potential) -> Potential:
    return Potential(fleet.rows.copy(), fleet.jobs, fleet.first)


def _outcome(experiments: Sequence[Experiment], truth: float, audits: int) -> dict[str, Any]:
    looks = [list(experiment.answers()) for experiment in experiments]
    last = [answers[-1] for answers in looks]
    alarms = []
    for experiment in experiments[:audits]:
        audit = examine(experiment.observations, experiment.jobs, experiment.about)
        alarms.append(sorted({finding.code for finding in audit.findings if finding.severity != "note"}))
    return {
        "covered": sum(holds(answers, truth) for answers in looks),
        "errors": [answer[0] - truth for answer in last if answer is not None],
        "half_widths": [answer[1] for answer in last if answer is not None],
        "answers": len(experiments),
        "alarms": alarms,
    }


def summary(fleets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all fleets together say.

    Parameters
    ----------
    fleets : what `judged` returns, one for each

    Returns
    -------
    dict
        faults and healthy_cases (numbers of kinds); missed (strong faults that an experiment's alarms do not name),
        harmless (strong faults that do not, beyond two Monte-Carlo errors, push coverage below 90% or the bias above
        one half-width), false_alarms (share of healthy experiments that alarm), weak_alarms (of experiments with a weak
        fault that is not harmful in that sense);
        planted (a row for each fault and strength: coverage, bias in half-widths, their standard errors between fleets,
        alarm: share with an alarm, named: share in which a code that names the fault is among them), healthy (a row for
        each case: alarm).
    """
    planted = [_row([row for fleet in fleets for row in fleet["planted"] if _is(row, fault, strength)])
               | {"fault": fault, "strength": strength}
               for fault in FAULTS for strength in STRENGTHS
               if any(_is(row, fault, strength) for fleet in fleets for row in fleet["planted"])]  # fmt: skip
    cases = [name for name in HEALTHY if any(row["case"] == name for fleet in fleets for row in fleet["healthy"])]
    healthy = [
        {"case": name} | _row([row for fleet in fleets for row in fleet["healthy"] if row["case"] == name])
        for name in cases
    ]
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


def _is(row: Mapping[str, Any], fault: str, strength: str) -> bool:
    return bool(row["fault"] == fault and row["strength"] == strength)


def _harmful(row: Mapping[str, Any]) -> bool:
    """Return whether coverage is below 90% or the bias above one half-width, each by more than two of its errors."""
    covers, biased = row["coverage"] + 2 * row["coverage_error"], abs(row["bias_in_half_widths"])
    return bool(covers < 0.9 or biased - 2 * row["bias_error"] > 1)


def _row(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what experiments of one kind came to on all fleets."""
    errors = [error for part in parts for error in part["errors"]]
    widths = [width for part in parts for width in part["half_widths"]]
    width = float(np.mean(widths)) if widths else 1.0
    alarms = [codes for part in parts for codes in part["alarms"]]
    fault = FAULTS.get(parts[0].get("fault", ""))
    codes = set(fault.codes) if fault else set()
    return {
        "coverage": sum(part["covered"] for part in parts) / sum(part["answers"] for part in parts),
        "coverage_error": _error([part["covered"] / part["answers"] for part in parts]),
        "bias_in_half_widths": float(np.mean(errors)) / width if errors else 0.0,
        "bias_error": _error([float(np.mean(part["errors"])) for part in parts if part["errors"]]) / width,
        "alarm": float(np.mean([bool(alarmed) for alarmed in alarms])),
        "named": float(np.mean([bool(codes & {*alarmed}) for alarmed in alarms])),
        "audits": len(alarms),
        "codes": sorted({code for alarmed in alarms for code in alarmed}),
    }


def _error(of_fleets: Sequence[float]) -> float:
    """Return the standard error of the mean over fleets; 0 of a single one."""
    return float(np.std(of_fleets, ddof=1) / np.sqrt(len(of_fleets))) if len(of_fleets) > 1 else 0.0
