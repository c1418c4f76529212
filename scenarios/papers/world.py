"""The rows about the world itself: does it look like real fleets, and does each of its mechanisms do what it should?"""

import json
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import number
from analysis.figures.world import calibration, cpi, world
from analysis.figures.world.mechanism import job_table, measure_mechanism
from analysis.statistics import job_statistics
from analysis.wsmeter.measurements import measurements
from scenarios.files.schema import SCENARIO, Scenario, WSMeter
from scenarios.papers.alone import SLOW_MEMORY, alone_facts
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.papers.variations import ABLATION, COVARIANCE, MACHINES, SWITCHES, UPGRADE, ablation, covariance
from scenarios.runs.rundir import Run
from scenarios.wsmeter.truth import Tables

TODAY, DVFS, SERVICES = "today", "dvfs_policy", "customer_services"
LONG: Final[Mapping[str, Any]] = {
    "fleet.machines": MACHINES,
    "horizon_s": 5.5 * 86400,
    "recording.instance_epoch_share": 0.05,
}
"""A fleet watched for as long as the published series of one job, every epoch of some instances."""


def _calibration(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    services = sources.halves(SERVICES, "requests_per_s").only(("compute", "network"))
    now = sources.run(TODAY)
    parts = [
        *_fleet_facts(now),
        calibration.service_facts(services.current, services.jobs),
        _series_facts(sources.run(TODAY, **LONG)),
    ]
    note = (
        f"slow memory is assumed to take {SLOW_MEMORY:g} times as long; slowdowns are of jobs alone on the reference "
        "machine, the maximum is that of 22 random jobs; where Google's cell and WSMeter's disagree, the level is "
        "WSMeter's; a record is a stay of any instance, and the table has the same facts with one random stay a job"
    )
    return Outcome(pd.concat(parts, ignore_index=True), draw=world.calibration, note=note, table=_by_job(now))


def _by_job(now: Run) -> pd.DataFrame:
    """Return the facts about CPI twice: of all measured stays, and of one random stay of each job."""
    measured = cpi.stays(now.table("counters"), now.table("instances"))
    facts = [cpi.cpi_facts(records) for records in (measured, cpi.one_of_each_job(measured))]
    return (
        facts[0][["series", "value"]].assign(one_of_each_job=facts[1]["value"]).rename(columns={"value": "all_stays"})
    )


def _fleet_facts(now: Run) -> list[pd.DataFrame]:
    """Return what one day of the fleet as it is tells."""
    counters, instances = now.table("counters"), now.table("instances")
    jobs = now.table("jobs", ["quota_vcpu", "instances"]).rename(columns={"quota_vcpu": "quota"})
    measured, scenario = cpi.stays(counters, instances), _scenario(now)
    return [
        calibration.quota_facts(jobs),
        calibration.placement_facts(instances, scenario.horizon_s / 2),
        cpi.cpi_facts(measured),
        cpi.spread_facts(measured),
        alone_facts(scenario),
        calibration.machine_facts(measurements(counters, instances, "ipc")),
        calibration.diurnal_facts(now.table("epochs", ["start_s", "cpu_s"])),
    ]


def _series_facts(long: Run) -> pd.DataFrame:
    traced = long.table("instance_epochs", ["residence", "epoch", "cycles", "instructions"])
    return cpi.series_facts(traced, long.table("instances", ["residence", "job", "instance"]), _scenario(long).epoch_s)


def _scenario(run: Run) -> Scenario:
    """Return the scenario that a run was made from."""
    return SCENARIO.validate_json(json.dumps(run.manifest["resolved"]))


def _ablation(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    fleets = ablation(sources)
    means = fleets.drop(columns="seed").groupby("switch", sort=False).mean().reset_index()
    note = (
        f"means of {len(ABLATION.seeds)} fleets of {MACHINES:,} machines; margin and coverage of WSMeter over "
        f"the covered jobs at {ABLATION.cluster} machines, {ABLATION.draws} test clusters a fleet; where cache is not "
        "shared, each instance has the part that its quota buys, and what no quota buys stays empty"
    )
    return Outcome(world.measure_ablation(fleets), draw=_draw_ablation, note=note, table=means)


def _draw_ablation(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    return world.ablation(measured, tuple(SWITCHES))


def _covariance(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    fleets = covariance(sources)
    by = fleets.drop(columns=["seed", "draws"]).groupby(["axis", "level"], sort=False)
    means, between = by.mean(), by[["covered", "truth"]].std().add_suffix("_between")
    note = (
        f"means of {len(COVARIANCE.seeds)} fleets of {MACHINES:,} machines, {COVARIANCE.draws} test clusters of "
        f"{COVARIANCE.cluster} machines a fleet, half of whose machines have the feature; _between: standard deviation "
        "between fleets"
    )
    table = means.join(between).reset_index()
    return Outcome(world.measure_covariance(fleets), draw=world.covariance, note=note, table=table)


def _mechanism(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    run = sources.run(DVFS)
    tables = Tables.of(run, WSMeter(metric="ips"))
    capped = run.table("truth_nowhere_machine_windows", ["machine", "capped_share"])
    jobs = job_table(_gains(tables), tables.nowhere, run.table("truth_jobs", ["job", "stall_share"]), capped)
    note = (
        "gain: instructions per CPU second with the policy everywhere over nowhere; power limit: share of epochs in "
        "which a job's machines lowered the clock for their cap before the policy"
    )
    feature = _scenario(run).feature
    threshold = feature.governor.stall_threshold if feature and feature.governor else 1.0
    measured = measure_mechanism(jobs, threshold)
    return Outcome(measured, draw=world.mechanism, note=note, table=_correlations(measured))


def _correlations(measured: pd.DataFrame) -> pd.DataFrame:
    """Return each rank correlation and mean gain with its interval, a row each."""
    names = [name for name in measured.loc[measured["x"].isna(), "series"] if not name.endswith(("_low", "_high"))]
    ends = {end: [number(measured, f"{name}_{end}") for name in names] for end in ("low", "high")}
    return pd.DataFrame({"": names, "measured": [number(measured, name) for name in names]} | ends)


def _gains(tables: Tables) -> pd.DataFrame:
    """Return every job's relative change of mean performance between the counterfactual fleets."""
    off, on = (job_statistics(table)[["job", "mean"]] for table in tables.arms)
    both = off.merge(on, on="job", suffixes=("_off", "_on"))
    return pd.DataFrame({"job": both["job"], "gain": both["mean_on"] / both["mean_off"] - 1})


WORLD: dict[str, Row] = {
    "world/calibration": Row("the world's statistics beside those of real fleets", (TODAY, SERVICES), _calibration),
    "world/ablation": Row("what each mechanism moves, switched off one by one", (UPGRADE,), _ablation),
    "world/covariance": Row("coverage of WSMeter's interval over shared conditions", (UPGRADE,), _covariance),
    "world/dvfs-mechanism": Row("why jobs gain or lose under the DVFS policy", (DVFS,), _mechanism),
}
"""Every row about the world itself, by id."""
