"""Rates between platforms in a simulated fleet whose scheduler puts heavy jobs on new machines, beside the truth."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from analysis.effects.rates import FILLED
from analysis.figures.criteria import numbers
from models.arrays import Floats, Ints
from models.errors import InputError
from models.fleet.inventory import Jobs, Machines, build_jobs, build_machines
from models.fleet.world import Feature, Recording, Window
from models.randomness import stream
from scenarios.effects.rates import RatesQuestion, rates
from scenarios.effects.simulated_past import job_quotas, observations
from scenarios.files.loader import load
from scenarios.files.schema import Scenario
from scenarios.papers.rows import Reproduction
from scenarios.papers.sources import Sources
from sim.fleet.arms import everywhere, nowhere
from sim.fleet.day import Day, day_of
from sim.fleet.timeline import from_placement

SCENARIO: Final = "today"
OLD, NEW = "broadwell_2698v4", "skylake_6148"
"""With equally many hardware threads, so that the same instances load both alike."""
STEEPNESS: Final = {"": 0.5, "strict_": 1.5}
"""Log odds by which a job runs rather on new machines than one with 1 / e of its quota, of either scheduler."""
FULLER: Final = 0.1
"""By how much more of their hardware threads new machines have placed than old ones."""
LOOKED_AT: Final = 3
"""Machines of which the scheduler takes the least loaded."""
HEAD: Final = 0.01
"""Share of the quota from which on a job is of the head."""
EPOCH_S: Final = 900.0


def measure(sources: Sources) -> Reproduction:
    """Return how far rates are from the truth in a day of a fleet of two platforms, under each of two schedulers."""
    world = load(SCENARIO)
    if not isinstance(world, Scenario):
        raise InputError(f"{SCENARIO} is no fleet")
    sources.progress("simulating a day of a fleet of two platforms", 0.0)
    whole, tables = dict[str, float](), list[pd.DataFrame]()
    for number, (name, steepness) in enumerate(STEEPNESS.items()):
        measured, table = _judged(_day(replace(world, seed=sources.world), steepness))
        whole |= {name + what: value for what, value in measured.items() if not (name and what == "machines")}
        tables.append(table.assign(scheduler=steepness))
        sources.progress("simulating it with one platform, and with the other", (1.0 + number) / len(STEEPNESS))
    return Reproduction(numbers(**whole), table=pd.concat(tables, ignore_index=True))


def _judged(day: Day) -> tuple[dict[str, float], pd.DataFrame]:
    """Return how far rates of a day are from the truth, and a table of it."""
    table = observations(day, nowhere(day)).assign(vcpus=float(day.machines.vcpus[0]))
    quotas = job_quotas(day).astype({"job": str})
    answer = rates([table.drop(columns="domain")], RatesQuestion(OLD), quotas)
    truth = _truth(day)
    jobs = answer.rates.jobs.merge(truth, on="job")
    share = quotas.set_index("job")["quota"].reindex(truth["job"]).to_numpy()
    true = float(np.average(truth["true"], weights=share))
    fleet = answer.rates.fleet.iloc[0]
    jobs["error"] = jobs["rate"] / jobs["true"] - 1.0
    jobs["covered"] = (jobs["low"] <= jobs["true"]) & (jobs["true"] <= jobs["high"])
    head, filled = jobs["quota_share"] >= HEAD, jobs["source"] == FILLED
    covered, of_filled = (float(jobs.loc[rows, "covered"].mean()) for rows in (~filled, filled))
    measured = {
        "machines": float(day.machines.count),
        "naive": abs(float(fleet["naive"]) / true - 1.0),
        "fleet": abs(float(fleet["rate"]) / true - 1.0),
        "fleet_held": float(fleet["low"] <= true <= fleet["high"]),
        "head": float(np.sqrt((jobs.loc[head, "error"] ** 2).mean())),
        "coverage_min": covered,
        "coverage_max": covered,
        "filled_min": of_filled,
        "filled_max": of_filled,
    }
    return measured, _described(jobs, head, fleet, true)


def _described(jobs: pd.DataFrame, head: "pd.Series[bool]", fleet: "pd.Series[float]", true: float) -> pd.DataFrame:
    """Return a row for the fleet, one for the head, and one for each source of jobs' rates."""
    parts = {"head": jobs[head], **{f"jobs {source}": rows for source, rows in jobs.groupby("source")}}
    rows = [
        {
            "of": name,
            "jobs": len(part),
            "quota": part["quota_share"].sum(),
            "bias": part["error"].mean(),
            "rmse": float(np.sqrt((part["error"] ** 2).mean())),
            "log_error": part["log_error"].median(),
            "covered": part["covered"].mean(),
        }
        for name, part in parts.items()
    ]
    bias = float(fleet["rate"]) / true - 1.0
    whole = {"of": "fleet", "jobs": int(fleet["jobs"]), "quota": fleet["seen"], "bias": bias, "rmse": abs(bias)}
    return pd.DataFrame([{**whole, "log_error": fleet["log_error"], "covered": np.nan}, *rows])


def _day(world: Scenario, steepness: float) -> Day:
    """Return the day of a fleet of two platforms on which instances were placed by `placed`."""
    platforms = {OLD: 0.5, NEW: 0.5}
    windows = Recording(windows=(Window("day", 0.0, world.horizon_s),))
    world = replace(
        world, epoch_s=EPOCH_S, fleet=replace(world.fleet, platforms=platforms), recording=windows,
        feature=Feature("all new", {OLD: NEW}),
    )  # fmt: skip
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    instances = placed(machines, jobs, steepness, stream(world.seed, "heavy jobs on new machines"))
    return day_of(world, machines, jobs, from_placement(world, machines.count, instances.job, instances.machine))


def _truth(day: Day) -> pd.DataFrame:
    """Return job and true rate: means over its instances, all on new machines over all on old ones."""
    old = replace(day.world, feature=Feature("all old", {NEW: OLD}))
    both = [day, day_of(old, day.machines, day.jobs, day.timeline)]
    means = list[pd.Series]()
    for number, fleet in enumerate(both):
        rows = observations(fleet, everywhere(fleet))
        sums = rows.assign(part=rows["present_s"] * rows["value"]).groupby("job")[["part", "present_s"]].sum()
        means.append((sums["part"] / sums["present_s"]).rename(str(number)))
    return (means[0] / means[1]).rename("true").rename_axis("job").reset_index().astype({"job": str})


@dataclass(frozen=True, slots=True, eq=False)
class PlacedInstances:
    """Where instances run."""

    job: Ints
    machine: Ints
    """(I,) each."""


def placed(machines: Machines, jobs: Jobs, steepness: float, rng: np.random.Generator) -> PlacedInstances:
    """Place all instances: heavy jobs rather on the last platform, each on the least loaded of a few machines.

    Parameters
    ----------
    machines : of two platforms with equally many hardware threads
    jobs : in order of falling quota
    steepness : log odds by which a job runs rather on new machines than one with 1 / e of its quota
    rng : of which platform, and which machines are looked at
    """
    size = np.log(jobs.quota_vcpu)
    share = jobs.quota_vcpu / jobs.quota_vcpu.sum()
    sizes = np.bincount(machines.platform, minlength=2) * (1.0 + FULLER * np.array([-0.5, 0.5]))
    wanted = sizes[1] / sizes.sum()

    def chance(level: float) -> Floats:
        return np.asarray(1.0 / (1.0 + np.exp(-(level + steepness * (size - size.max())))))

    of_job = chance(brentq(lambda level: float(share @ chance(level)) - wanted, -20.0, 20.0))
    job = rng.permutation(np.repeat(np.arange(jobs.count), jobs.instances))
    on_new = rng.random(len(job)) < of_job[job]
    free = machines.vcpus.copy()
    members = [np.flatnonzero(machines.platform == number) for number in range(2)]
    looked = rng.random((len(job), LOOKED_AT))
    machine = np.empty(len(job), np.int64)
    quota = jobs.instance_quota_vcpu[job]
    for number, (newer, draws) in enumerate(zip(on_new, looked, strict=True)):
        among = members[int(newer)]
        candidates = among[(draws * len(among)).astype(np.int64)]
        chosen = candidates[free[candidates].argmax()]
        if free[chosen] < quota[number]:
            chosen = among[free[among].argmax()]
        machine[number] = chosen
        free[chosen] -= quota[number]
    return PlacedInstances(job, machine)
