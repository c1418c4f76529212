"""The loop of WSMeter (Lee et al. 2018, Figs 10 and 14), run in the simulation: gather, plan, roll out, check, re-plan.

Each round really simulates the fleet with the feature on just the machines chosen so far. Nothing here looks at the
counterfactual tables: what a round knows is what the team that runs it would know.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.coverage import covered, plannable
from analysis.estimators import Estimate, WSMeter
from analysis.measurements import performance
from analysis.plan import plan
from analysis.statistics import Current, NotEnoughDataError
from models.randomness import stream
from models.scenario import Loop
from models.tables import ROUNDS
from scenarios.output import Progress
from sim.fleet import Day, nowhere, on_instances, on_machines
from sim.testclusters import measure

WHOLE_FLEET = 0.5
"""Largest share of the fleet that the loop gives the feature."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What the rounds share: the day, the current fleet, who may be chosen and in what order."""

    day: Day
    settings: Loop
    current: pd.DataFrame
    """Measurement table of the fleet as it is."""
    jobs: pd.DataFrame
    """job, quota, instances of the whole fleet, the considered jobs only."""
    by_instance: bool
    order: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Machines (or instances) in the random order in which they get the feature."""


def rounds(day: Day, settings: Loop, progress: Progress) -> pd.DataFrame:
    """Return what every round planned, rolled out and found: table `rounds`.

    The first round rolls out to as many machines as hold the planned instances, times the headroom; one that missed its
    margin is followed by another that plans with the spreads now seen and scales by how far it was off (footnote 7).

    Parameters
    ----------
    day : a day of a world with a feature
    settings : target margin, headroom, rounds, metric, top jobs, least instances
    progress : told that a round is being made

    Returns
    -------
    DataFrame
        Columns of table `rounds`; `machines` counts instances where the roll-out is by instance.

    Raises
    ------
    NotEnoughDataError
        If no job has enough instances to plan with.
    """
    made = []
    for found in _rounds(_trial(day, settings), progress):
        made.append(found)
        if found["accepted"]:
            break
    return pd.DataFrame(made, columns=[column.name for column in ROUNDS])


def _trial(day: Day, settings: Loop) -> Trial:
    feature = day.world.feature
    by_instance = feature is not None and feature.rollout.unit == "instance"
    current = performance(*_split(measure(day, nowhere(day))), settings.metric, settings.window)
    jobs = pd.DataFrame({"quota": day.jobs.quota_vcpu, "instances": day.jobs.instances}).rename_axis("job").reset_index()
    if feature is not None and by_instance:
        touched = [name for software in feature.software for name in software.jobs]
        jobs = jobs[np.isin(np.array(day.jobs.names), touched)]
    jobs = jobs.nlargest(settings.top_jobs, "quota")
    current = current[current["job"].isin(jobs["job"])]
    candidates = current["instance"].unique() if by_instance else np.arange(day.machines.count)
    order = stream(day.world.seed, "loop").permutation(np.sort(candidates))
    return Trial(day, settings, current, jobs, by_instance, order)


def _rounds(trial: Trial, progress: Progress) -> Iterator[dict[str, float]]:
    settings, wanted = trial.settings, trial.settings.target_margin
    table = plannable(trial.current, trial.jobs, settings.min_instances)
    size, most = 0, int(WHOLE_FLEET * trial.order.size)
    growth = 1.0
    for number in range(1, settings.rounds + 1):
        progress("rolling out", (number - 1) / settings.rounds)
        made = plan(table, wanted, settings.t, settings.min_instances)
        size = min(most, max(math.ceil(_units(trial, made.cost) * settings.headroom), math.ceil(size * growth)))
        new = _observe(trial, size)
        try:
            found = WSMeter(settings.t, settings.min_instances).estimate(trial.current, new, trial.jobs)
        except NotEnoughDataError:
            yield _row(number, size, wanted, made.margin, None)
            growth = 2.0
            continue
        yield _row(number, size, wanted, made.margin, found)
        growth = (found.margin / wanted) ** 2 * settings.headroom
        table = _seen(table, trial, new)
    progress("rolling out", 1.0)


def _units(trial: Trial, cost_vcpu: float) -> float:
    """Return how many machines (or instances) hold a planned cost in hardware threads."""
    if trial.by_instance:
        return cost_vcpu / float(trial.jobs["quota"].sum() / trial.jobs["instances"].sum())
    return cost_vcpu / float(trial.day.machines.vcpus.mean())


def _observe(trial: Trial, size: int) -> pd.DataFrame:
    """Simulate the fleet with the feature on the first `size` of the order, and measure those."""
    day, which, settings = trial.day, trial.order[:size], trial.settings
    if trial.by_instance:
        arm, hosts = on_instances(day, which), day.timeline.machine[np.isin(day.timeline.instance, which)]
    else:
        arm, hosts = on_machines(day, which), which
    seen = measure(day, arm, np.unique(hosts))
    seen = seen[seen["instance" if trial.by_instance else "machine"].isin(which)]
    new = performance(*_split(seen), settings.metric, settings.window)
    return new[new["job"].isin(trial.jobs["job"])]


def _seen(table: pd.DataFrame, trial: Trial, new: pd.DataFrame) -> pd.DataFrame:
    """Return the plan's table with the spreads of the new sample where it has them."""
    spread = covered(Current.of(trial.current), Current.of(new), trial.settings.min_instances, 1, trial.jobs)
    merged = table.merge(spread[["job", "std_new"]], on="job", how="left")
    return table.assign(std=merged["std_new"].fillna(merged["std"]).to_numpy())


def _row(number: int, size: int, wanted: float, planned: float, found: Estimate | None) -> dict[str, float]:
    return {
        "round": number,
        "machines": size,
        "jobs": found.jobs if found else 0,
        "target_margin": wanted,
        "planned_margin": planned,
        "margin": found.margin if found else math.nan,
        "change": found.change if found else math.nan,
        "quota_coverage": found.quota_coverage if found else 0.0,
        "accepted": bool(found and found.margin <= wanted),
    }


def _split(measured: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return counters and instances, as tables of a run are, from their join."""
    stays = ["residence", "instance", "job", "machine", "rack", "quota_vcpu", "feature"]
    counters = measured.drop(columns=[name for name in stays if name != "residence"])
    return counters, measured[stays].drop_duplicates("residence")
