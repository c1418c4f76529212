"""The designs of experiments that the scorecard tries on every simulated fleet, as cells that estimators take."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pandas as pd

from analysis.effects import arrangements
from analysis.effects.cells import JobMachineSums, Stages, cells, only
from analysis.effects.crossovers import Switchable
from analysis.effects.methods import RECOMMENDED, method
from analysis.effects.stages import stage_rows, sums_of
from analysis.effects.stays import stays
from analysis.effects.study import potential
from analysis.effects.switching import coins
from models.errors import InputError
from models.randomness import stream
from scenarios.effects.scorecard.fleets import STUDY, ScorecardFleet, Span, Switching, fleet
from scenarios.effects.scorecard.pieces import DesignTables, ScorecardDesign

DESIGNS: Final = (
    "day",
    "week",
    "crossover",
    "by_platform",
    "balanced",
    "covering",
    "paired",
    "one_job",
    "staged",
)
"""day, week: so long after as long, machines drawn at random beside all others as controls. crossover: machines drawn
at random switch the feature on and off for 24 hours, by own coins, beside all others that never do. Then a day after a
day, by_platform: machines drawn within platforms; balanced: on the past, by the cube method; covering: random
bundles that hold enough of each top job; paired: one of each pair of machines that did alike in the past; one_job: new
code of one job on machines that hold it. staged: a week after a week, a sixth, half and all of the machines in stages
of one day, two and four, of which others than its own estimator see the last."""
WITHOUT_TABLES: Final = frozenset({"crossover", "one_job", "staged"})
"""Designs that no two courses describe; estimators of other people are not judged on them."""
_BESIDE: Final = frozenset({RECOMMENDED, "cuped"})
"""Estimators that are judged beside the own one of a design that chooses its machines."""
THINNED: Final = {"balanced": 10, "covering": 5, "paired": 2, "staged": 20}
"""Designs that get one of so many of the draws asked for."""
_SCHEDULES = 5
_STAGES: Final = (STUDY, STUDY + 1, STUDY + 3)
"""First days of the stages."""


def designs(corner: str, seed: int, machines: int, names: Collection[str] = DESIGNS) -> Iterator[ScorecardDesign]:
    """Yield the designs that can be tried on a fleet of the sweep, each simulated course made into cells.

    By platform only where there are several; crossovers only of a feature that can be switched off, a course for each
    random schedule.

    Parameters
    ----------
    corner : its name
    seed : of the fleet
    machines : times those of the corner
    names : designs that are wanted

    Raises
    ------
    FaultsError
        If there is no such corner.

    Examples
    --------
    >>> names = ("day", "week", "crossover", "paired")
    >>> [(design.name, len(design.courses)) for design in designs("base", 1, 50, names)]
    [('day', 1), ('week', 1), ('crossover', 5), ('paired', 1)]
    """
    simulated = fleet(corner, seed, machines, switching="crossover" in names, one_job="one_job" in names)
    day = _cells(simulated, simulated.day)
    if "day" in names:
        yield ScorecardDesign("day", (day,), simulated.day.truth, tables=_tables(simulated, simulated.day))
    if "week" in names:
        week = _cells(simulated, simulated.week)
        yield ScorecardDesign("week", (week,), simulated.week.truth, tables=_tables(simulated, simulated.week))
    if simulated.switching is not None:
        yield ScorecardDesign("crossover", _crossovers(simulated, simulated.switching), simulated.switching.truth)
    yield from _chosen(simulated, day, [name for name in DESIGNS if name in names])
    if simulated.one_job is not None:
        yield _one_job(simulated)
    if "staged" in names:
        yield _staged(simulated)


def _chosen(simulated: ScorecardFleet, day: JobMachineSums, names: Sequence[str]) -> Iterator[ScorecardDesign]:
    """Yield the designs of a day that choose their machines."""
    before = simulated.day.before
    before = before.assign(platform=simulated.platform[before["machine"].to_numpy()])
    for name in names:
        chosen = _arrangement(name, day, before)
        if chosen is not None:
            tables = _tables(simulated, simulated.day)
            yield ScorecardDesign(name, (day,), simulated.day.truth, chosen, _BESIDE, THINNED.get(name, 1), tables)


def _arrangement(name: str, day: JobMachineSums, before: pd.DataFrame) -> arrangements.Arrangement | None:
    if name == "by_platform" and len(before["platform"].unique()) > 1:
        return arrangements.stratified(day, before)
    if name == "balanced":
        return arrangements.balanced(day, before)
    if name == "covering":
        return arrangements.covering(method(RECOMMENDED), day, before)
    return arrangements.pairing(day, before) if name == "paired" else None


def _crossovers(simulated: ScorecardFleet, day: Switching) -> tuple[JobMachineSums, ...]:
    """Return the cells of several schedules, in which a coin of each machine's own says the order of each pair."""
    able, rng = (
        Switchable.of(day.never, (day.off, day.on), simulated.jobs),
        stream(simulated.seed, f"schedules of {simulated.corner}"),
    )
    return tuple(able.cells(coins(able.switched.plan.shape, rng)) for _ in range(_SCHEDULES))


def _one_job(simulated: ScorecardFleet) -> ScorecardDesign:
    if simulated.one_job is None:
        raise InputError("a feature of one job was not simulated")
    before, off, job = simulated.day.before, simulated.day.off, simulated.one_job.job
    cells = only(potential(before, off, simulated.one_job.on, simulated.jobs), job, before)
    return ScorecardDesign("one_job", (cells,), simulated.one_job.truth, estimators=_BESIDE)


def _staged(simulated: ScorecardFleet) -> ScorecardDesign:
    span = simulated.week
    rows = stage_rows(span.before, span.off, span.on, _STAGES)
    scale = span.before.groupby("job")["value"].mean().reindex(simulated.jobs["job"])
    scale = scale.fillna(span.off.groupby("job")["value"].mean()).fillna(1.0)
    jobs = simulated.jobs.assign(scale=scale.to_numpy())
    sums, machines = sums_of(rows, jobs)
    past = stays(span.before)
    quota = past["weight"] * past["presence"]
    before = past.assign(value=quota * past["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()
    last = cells(rows[rows["stage"] == rows["stage"].max()], jobs, before)
    whole = replace(last, stages=Stages(sums))
    return ScorecardDesign(
        "staged", (whole,), span.truth, arrangements.staged(len(machines)), _BESIDE, THINNED["staged"]
    )


def _tables(simulated: ScorecardFleet, span: Span) -> DesignTables:
    return DesignTables(span.before, span.off, span.on, simulated.jobs[["job", "quota"]])


def _cells(simulated: ScorecardFleet, span: Span) -> JobMachineSums:
    return potential(span.before, span.off, span.on, simulated.jobs)
