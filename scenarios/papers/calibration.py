"""`world/calibration`: ten worlds beside what real fleets publish, each fact measured on the fleet that it is about."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from analysis.figures.world import calibration, cpi
from analysis.wsmeter.measurements import measurements
from models.fleet.inventory import build_machines
from models.randomness import stream
from scenarios.files.schema import SCENARIO, Scenario
from scenarios.papers.lone_jobs import alone_facts, platform_facts
from scenarios.papers.rows import Reproduction
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run
from sim.fleet.day import prepare
from sim.fleet.experiment import stays

TODAY, SERVICES = "today", "customer_services"
SEEDS: Final = range(1, 11)
"""Worlds over which each fact is averaged."""
SMALLER: Final[Mapping[str, object]] = {"fleet.machines": 1500}
LONG: Final[Mapping[str, object]] = {
    "fleet.machines": 500,
    "horizon_s": 5.5 * 86400,
    "recording.instance_epoch_share": 0.15,
}
"""A fleet watched for as long as the published series of one job, every epoch of some instances."""
MIXED: Final[Mapping[str, object]] = {
    "fleet.machines": 600,
    **{f"fleet.platforms.{name}": 0.25 for name in ("haswell_2698v3", "broadwell_2698v4", "skylake_6148", "rome_7742")},
    "recording.instance_epoch_share": 1.0,
}
"""A fleet of several platforms whose instances are looked at in one epoch each, as records of a cell mix both."""
EVENTS: Final[Mapping[str, object]] = {
    "fleet.machines": 60,
    "population.jobs": 400,
    "population.common_jobs": 185,
    "horizon_s": 3600.0,
    "epoch_s": 60.0,
    "simulation": "events",
    "recording.instance_epoch_share": 1.0,
}
"""A small fleet minute by minute."""
INSTANCE_VCPU: Final = 9.0, 0.9
"""Median and spread of instances in the cell of 2011, fitted to how many a machine holds."""
CELL_MACHINES: Final = 12_477
FLEET_MACHINES: Final = 11_000
"""Machines of which the latency of idle memory is published."""
OF_WSMETER: Final = frozenset({"quota_of_top_200", "instances_on_machine_mean"})
"""Facts about populations that are WSMeter's; the others are of Google's cell of 2011."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the fleets of one seed say: facts by name, and those about populations of the other population."""

    judged: pd.Series
    beside: pd.Series


def measure(sources: Sources) -> Reproduction:
    """Return every fact as its mean over the seeds, and below its spread between them, and the other population's."""
    every = [facts_of(sources, seed) for seed in SEEDS]
    judged = pd.DataFrame([facts.judged for facts in every])
    beside = pd.DataFrame([facts.beside for facts in every]).mean()
    table = pd.DataFrame(
        {
            "fact": judged.columns,
            "mean": judged.mean().to_numpy(),
            "sd_between_seeds": judged.std(ddof=1).to_numpy() if len(every) > 1 else np.nan,
            "other_population": beside.reindex(judged.columns).to_numpy(),
        }
    )
    means = dict(zip(map(str, judged.columns), judged.mean().tolist(), strict=True))
    return Reproduction(numbers(**means), table=table)


def facts_of(sources: Sources, seed: int) -> Facts:
    """Return the facts of one seed."""
    today, long, mixed, minutes = (sources.run(TODAY, **more, seed=seed) for more in (SMALLER, LONG, MIXED, EVENTS))
    scenario = today.world(SCENARIO)
    here, cell = _population(scenario), _population(_cell(scenario))
    named = [name for name in here.index if name in OF_WSMETER]
    parts = [
        *_fleet_facts(today, scenario),
        _service_facts(sources, seed),
        _series_facts(long),
        cpi.spread_facts(records_of(mixed, seed)),
        calibration.load_facts(minutes.table("instance_epochs", ["residence", "epoch", "cpu_s"])),
        calibration.latency_facts(_latency(scenario)),
        platform_facts(scenario),
    ]
    measured = pd.concat(parts, ignore_index=True).set_index("series")["value"]
    return Facts(pd.concat([cell.drop(named), here[named], measured]), pd.concat([here.drop(named), cell[named]]))


def _cell(scenario: Scenario) -> Scenario:
    """Return the scenario with the population of Google's cell of 2011."""
    median, spread = INSTANCE_VCPU
    population = replace(
        scenario.population, preset="google2011", instance_quota_vcpu=median, instance_quota_log_sd=spread
    )
    return replace(scenario, population=population)


def _population(scenario: Scenario) -> pd.Series:
    """Return the facts about jobs and placement, which need no physics: at noon of a day that is placed only."""
    day = prepare(replace(scenario, fleet=replace(scenario.fleet, machines=CELL_MACHINES), horizon_s=43_200.0))
    jobs = pd.DataFrame({"quota": day.jobs.quota_vcpu, "instances": day.jobs.instances})
    facts = [calibration.quota_facts(jobs), calibration.placement_facts(stays(day), day.world.horizon_s / 2)]
    return pd.concat(facts).set_index("series")["value"]


def _fleet_facts(today: Run, scenario: Scenario) -> list[pd.DataFrame]:
    """Return what one day of the fleet as it is says of CPI, machines and load."""
    counters, instances = today.table("counters"), today.table("instances")
    return [
        cpi.cpi_facts(cpi.stays(counters, instances)),
        alone_facts(scenario),
        calibration.machine_facts(measurements(counters, instances, "ipc")),
        calibration.diurnal_facts(today.table("epochs", ["start_s", "cpu_s"])),
    ]


def _service_facts(sources: Sources, seed: int) -> pd.DataFrame:
    services = sources.halves(SERVICES, "requests_per_s", **SMALLER, seed=seed).only(("compute", "network"))
    return calibration.service_facts(services.current, services.jobs)


def _series_facts(long: Run) -> pd.DataFrame:
    traced = long.table("instance_epochs", ["residence", "epoch", "cycles", "instructions"])
    epoch_s = long.world(SCENARIO).epoch_s
    return cpi.series_facts(traced, long.table("instances", ["residence", "job", "instance"]), epoch_s)


def records_of(mixed: Run, seed: int) -> pd.DataFrame:
    """Return job and cpi of one random epoch of every stay."""
    epochs = mixed.table("instance_epochs", ["residence", "epoch", "cycles", "instructions"])
    epochs = epochs[epochs["instructions"] > 0]
    order = stream(seed, "epochs of records").permutation(len(epochs))
    records = epochs.iloc[order].drop_duplicates("residence")
    records = records.merge(mixed.table("instances", ["residence", "job"]), on="residence")
    return pd.DataFrame({"job": records["job"], "cpi": records["cycles"] / records["instructions"]})


def _latency(scenario: Scenario) -> pd.Series:
    fleet = replace(scenario.fleet, machines=FLEET_MACHINES)
    return pd.Series(build_machines(replace(scenario, fleet=fleet)).latency_factor)
