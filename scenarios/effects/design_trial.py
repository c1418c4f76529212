"""Plans judged: made of a simulated fleet's past without the feature, compared with its later days with it.

Of four weeks the first is left out, in which a simulated fleet still settles. Plans are made of the second and third,
as many days as the longest design takes, and judged in the fourth; those of crossovers on one day, judged on the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial, reduce
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from analysis.effects.arrangements import at_random
from analysis.effects.crossovers import Switchable
from analysis.effects.methods import RECOMMENDED, method
from analysis.effects.past import Past
from analysis.effects.planning import Wanted, fewest, forecast
from analysis.effects.rehearsals import Assumed, Course, Rehearsal, crossover, spans, truth
from analysis.effects.study import potential
from analysis.effects.switching import coins
from models.arrays import DAY_S
from models.fleet.world import Recording, Window, World
from models.randomness import stream
from scenarios.effects.scorecard import corners
from scenarios.effects.scorecard.fleets import change, either
from scenarios.effects.simulated_past import job_quotas, observations
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress
from sim.fleet.arms import crossover as switching
from sim.fleet.arms import everywhere, nowhere, on_machines
from sim.fleet.control import plan_crossover
from sim.fleet.day import prepare

FLEETS = (("base", 1), ("churn_high", 1), ("uniform", 1))
"""Corner and seed of the fleets that plans are made for."""
DETECT, POWER = 0.01, 0.95
_OF_CODE = (0.001, 0.001, 0.001, 0.001)
SPREADS: Mapping[str, tuple[float, float, float, float]] = {
    "governor": (0.024, 0.006, 0.004, 0.004),
    "software": _OF_CODE,
    "jobs": (corners.UNLIKE, *_OF_CODE[1:]),
}
"""What plans are told of the kind of feature: standard deviations of its effects on jobs, and on machines in studies of
a day, of a week and in crossovers. Those on machines are of independent effects that add to an error what the true ones
of another fleet do (base, seed 9; 0.0062, 0.0042, 0.0037): true ones differ by 0.0065 but go with what machines hold.
New code by which jobs gain unlike is known to do so; on machines it is like other code.
"""
DRAWS = 2000
_SCHEDULES = 12
_PERIODS = round(DAY_S / corners.CROSSOVER_PERIOD_S)
"""Of a day of a crossover."""
_WEEK = 7
_LAST = 3 * _WEEK
"""Day on which the last week begins, in which plans are judged."""


class JudgedPlan(TypedDict):
    """A plan for one fleet, beside what experiments of its size really say later."""

    corner: str
    fleet: int
    """Its seed."""
    design: str
    machines: int
    predicted: dict[str, float]
    """The fields of `Forecast`."""
    real: dict[str, float]


class PlannedFleet(TypedDict):
    """What is kept of one fleet."""

    seed: str
    """Corner and seed, such as base.1."""
    rows: list[JudgedPlan]


class PlannerTrial(TypedDict):
    """How far plans are from what happens."""

    fleets: int
    power: float
    """Largest absolute difference."""
    margin: float
    """Largest relative difference."""
    rows: list[JudgedPlan]


def planner(fleets: Sequence[tuple[str, int]], out: Path, progress: Progress, machines: int = 1000) -> PlannerTrial:
    """Return how far plans are from what happens: power and margin, predicted and on later days.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    fleets : corner of the sweep, seed
    out : folder of all runs
    progress : told what is being done and the share done
    machines : of each fleet, times those of its corner
    """
    question = {"detect": DETECT, "power": POWER, "spreads": SPREADS, "draws": DRAWS, "machines": machines}
    folder = folder_of(out, "planner", question, ["scipy", "pandas"])
    items = [f"{corner}.{seed}" for corner, seed in fleets]
    make = partial(judged, machines=machines)
    judged_fleets = computed_parts(items, make, folder, {"rows"}, progress, what="judging plans")
    rows = [row for fleet in judged_fleets for row in fleet["rows"]]
    power, margin = worst(rows)
    return {"fleets": len(judged_fleets), "power": power, "margin": margin, "rows": rows}


def worst(rows: Sequence[JudgedPlan]) -> tuple[float, float]:
    """Return by how much predictions are off at worst: of power, and relatively of margins."""
    return (
        max(abs(row["predicted"]["power"] - row["real"]["power"]) for row in rows),
        max(abs(row["predicted"]["margin"] / row["real"]["margin"] - 1.0) for row in rows),
    )


def judged(item: str, machines: int = 1000, draws: int = DRAWS) -> PlannedFleet:
    """Return plans for one fleet, each beside what experiments of its size really say later.

    Parameters
    ----------
    item : corner and seed, such as base.1
    machines : of the fleet, times those of the corner
    draws : experiments of each design
    """
    corner, _, seed = item.rpartition(".")
    wanted = Wanted(DETECT, POWER, draws=draws, seed=1)
    rows = list[JudgedPlan]()
    where = corners.corner(corner)
    world = corners.world(where, int(seed), machines)
    spread, *apart = SPREADS[where.change]
    day, week, crossed = (Assumed(DETECT, spread, machines_sd) for machines_sd in apart)
    for rehearsal, real in (*_spans(world, {1: day, _WEEK: week}), _crossover(world, crossed)):
        plan = fewest(rehearsal, wanted)
        later = replace(rehearsal, courses=real, scale=1.0)
        later_on = forecast(later, plan.forecast.machines, replace(wanted, seed=2))
        rows.append(
            {
                "corner": corner,
                "fleet": int(seed),
                "design": rehearsal.design,
                "machines": plan.forecast.machines,
                "predicted": asdict(plan.forecast),
                "real": asdict(later_on),
            }
        )
    return {"seed": item, "rows": rows}


def _spans(world: World, assumed: Mapping[int, Assumed]) -> Iterator[tuple[Rehearsal, tuple[Course, ...]]]:
    """Yield the designs of so many days, planned before the last week, with their courses in it."""
    windows = tuple(Window(f"day.{day:02}", day * DAY_S, (day + 1) * DAY_S) for day in range(_LAST + _WEEK))
    day = prepare(replace(world, horizon_s=len(windows) * DAY_S, recording=Recording(windows=windows)))
    since = round(_LAST * DAY_S / day.world.epoch_s)
    arms = nowhere(day), on_machines(day, np.arange(day.machines.count), since)
    off, on = _same_rows([observations(day, arm) for arm in arms])
    jobs = job_quotas(day)
    past = Past(_days(off, _WEEK, _LAST - _WEEK), DAY_S, jobs)
    for days, told in assumed.items():
        rehearsal = next(iter(spans(past, days, told, [RECOMMENDED])))
        courses = []
        for first in range(_LAST + 1, _LAST + _WEEK) if days == 1 else (_LAST,):
            before, without, having = (
                _days(table, start, days) for table, start in ((off, first - days), (off, first), (on, first))
            )
            cells = potential(before, without, having, jobs)
            courses.append(Course(cells, truth(cells), at_random(method(RECOMMENDED), len(cells.machines)).arrange))
        yield rehearsal, tuple(courses)


def _same_rows(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return the rows of stays and periods that all arms have."""
    keys = ["period", "job", "shard", "instance", "machine"]
    indices = [pd.MultiIndex.from_frame(table[keys]) for table in tables]
    shared = reduce(pd.MultiIndex.intersection, indices)
    return [table[index.isin(shared)].reset_index(drop=True) for table, index in zip(tables, indices, strict=True)]


def _days(table: pd.DataFrame, first: int, days: int) -> pd.DataFrame:
    """Return the observations of so many days."""
    within = (table["period"] >= first * DAY_S) & (table["period"] < (first + days) * DAY_S)
    return table[within].reset_index(drop=True)


def _crossover(world: World, assumed: Assumed) -> tuple[Rehearsal, tuple[Course, ...]]:
    """Return the crossover planned on a day without the feature, and its courses on the next day, really switched."""
    day = prepare(replace(corners.crossover(world), horizon_s=2 * DAY_S))
    jobs = job_quotas(day)
    arms = nowhere(day), everywhere(day), switching(day, 0), switching(day, 1)
    tables = _same_rows([_settled(observations(day, arm)) for arm in arms])
    past = Past(tables[0][tables[0]["period"] < _PERIODS].reset_index(drop=True), corners.CROSSOVER_PERIOD_S, jobs)
    never, always, switched, mirrored = (table[table["period"] >= _PERIODS].reset_index(drop=True) for table in tables)
    having = plan_crossover(day.world, day.machines, 0)[never["machine"].to_numpy(), never["period"].to_numpy()]
    able = Switchable.of(never, (either(~having, switched, mirrored), either(having, switched, mirrored)), jobs)
    true_change, rng, courses = change(never, always, jobs), stream(world.seed, "schedules of trials"), []
    for _ in range(_SCHEDULES):
        cells = able.cells(coins(able.switched.plan.shape, rng))
        courses.append(Course(cells, true_change, at_random(method(RECOMMENDED), len(cells.machines)).arrange))
    return crossover(past, assumed), tuple(courses)


def _settled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the observations of each period once the state before acts no more, periods numbered."""
    length = corners.CROSSOVER_PERIOD_S
    rest = table[table["period"] % length > 0].reset_index(drop=True)
    return rest.assign(period=(rest["period"] // length).astype(int))
