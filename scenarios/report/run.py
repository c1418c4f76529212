"""The report of a run: every lens that has something to say of it, in order, and why the others do not."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from analysis.effects.study import Effect
from models.errors import WscError
from models.fleet.metrics import MetricName
from scenarios.effects.effect import EffectAnswer
from scenarios.files.schema import ProfileScenario
from scenarios.kinds import KINDS
from scenarios.report import agreement, effect, fleet, papers, profile, queue, service
from scenarios.report.page import Page
from scenarios.report.settings import facts, settings
from scenarios.report.subject import Lens, Subject, composed
from scenarios.report.tables import listed
from scenarios.runs.execution import reopen
from scenarios.views.section import Section, Verdict
from scenarios.views.terminal import Progress
from scenarios.wsmeter.measure import FleetRun
from scenarios.wsmeter.measurements import in_metric

LENSES: Mapping[str, Lens] = {
    "The fleet": fleet.happened,
    "The feature": effect.concluded,
    "WSMeter": fleet.wsmeter,
    "The Occupancy Law": queue.laws,
    "Requests": profile.served,
    "The profile": profile.cycles,
    "Stability": profile.stable,
    "Prediction": service.predicted,
    "Agreement": agreement.agree,
    "The papers": papers.printed,
}
"""Each way to look at a run, in the order of the report."""
PROFILED = ("The profile", "Stability", "The feature")
"""What comes first in the report of a profiled fleet: findings about what was profiled; then the fleet's own tables."""


def report(path: Path, progress: Progress, metric: MetricName | None = None) -> Page:
    """Return the report of a run.

    Parameters
    ----------
    path : folder of a finished run; a copy without its ``truth_`` tables will do
    progress : told what is being done
    metric : what is measured of a fleet, if not what its scenario says
    """
    recorded, run = reopen(path)
    scenario = in_metric(recorded, metric)
    subject = Subject(scenario, run)
    tables = listed(run)
    sections = list[Section]()
    first = PROFILED if isinstance(scenario, ProfileScenario) else ()
    ordered = [name for name in first if name in LENSES] + [name for name in LENSES if name not in first]
    for i, (name, lens) in enumerate((name, LENSES[name]) for name in ordered):
        progress("writing the report", i / len(LENSES))
        sections += _concluded(name, lens, subject, progress)
    sections = beside_effect(sections)
    last = (settings(subject), tables)
    return Page(KINDS[scenario.kind].singular, scenario.name, scenario.description, facts(subject), (*sections, *last))


def beside_effect(sections: Sequence[Section]) -> list[Section]:
    """Return sections in which WSMeter's verdict says so if it disagrees with the feature's effect, and which counts.

    They do if their intervals have nothing in common. The effect counts: its interval knows that instances of one
    machine are alike, and takes account of how machines differ without the feature.

    Parameters
    ----------
    sections : of one report
    """
    effects = [section.answer.effect for section in sections if isinstance(section.answer, EffectAnswer)]
    if not effects:
        return list(sections)
    return [
        replace(
            section,
            blocks=tuple(
                _beside(block, section.answer, effects[-1]) if isinstance(block, Verdict) else block
                for block in section.blocks
            ),
        )
        for section in sections
    ]


def _beside(verdict: Verdict, answer: object, estimate: Effect) -> Verdict:
    if verdict.lens != "WSMeter" or not isinstance(answer, FleetRun):
        return verdict
    rows = answer.estimates.to_dict("records")
    known = [row for row in rows if row["estimator"] == "wsmeter" and math.isfinite(row["change"])]
    if not known or (known[-1]["low"] <= estimate.high and estimate.low <= known[-1]["high"]):
        return verdict
    why = "disagrees with the feature's effect above, which counts: that one allows for how machines differ without it"
    return replace(verdict, says=f"{verdict.says}; {why}")


def _concluded(name: str, lens: Lens, subject: Subject, progress: Progress) -> Iterator[Section]:
    """Yield what a lens says; why nothing can be concluded, where a run has too little for it."""
    try:
        yield from lens(subject, progress)
    except WscError as error:
        why = tuple(str(error).splitlines())
        says = f"nothing could be concluded: {why[0] if why else type(error).__name__}"
        yield composed(f"{name}: not concluded", why, verdicts=(Verdict(name, says),))
