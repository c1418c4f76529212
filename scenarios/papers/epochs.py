"""`world/epochs`: what moves when a fleet is simulated in steps of 300, 60 and 10 seconds, or from event to event."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers, printed
from analysis.figures.world import calibration, cpi
from analysis.wsmeter.measurements import measurements
from analysis.wsmeter.summaries import job_statistics
from scenarios.papers.rows import Reproduction, published
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run

TODAY, UPGRADE, DVFS = "today", "cpu_upgrade", "dvfs_policy"
SEEDS: Final = (1, 2, 3)
"""The event-driven machine takes ten to twenty times as long as epochs, so worlds are few and small."""
MACHINES: Final = 120
HORIZON_S: Final = 14400.0
SMALL: Final[Mapping[str, object]] = {
    "fleet.machines": MACHINES,
    "fleet.machines_per_rack": 20,
    "fleet.racks_per_power_domain": 2,
    "population.jobs": 240,
    "population.common_jobs": 120,
    "horizon_s": HORIZON_S,
    "recording.loop": None,
    "analyses.wsmeter.machines": (10,),
}
BY_EPOCHS: Final = (300, 60, 10)
EVENTS: Final = "events"
PATHS: Final[Mapping[str, Mapping[str, object]]] = {
    **{f"{epoch_s} s": {"epoch_s": float(epoch_s)} for epoch_s in BY_EPOCHS},
    EVENTS: {"simulation": "events"},
}
CHANGES: Final[Mapping[str, tuple[str, str]]] = {
    "upgrade_ips": (UPGRADE, "ips"),
    "upgrade_ipc": (UPGRADE, "ipc"),
    "dvfs_ips": (DVFS, "ips"),
    "dvfs_ipc": (DVFS, "ipc"),
}
"""True changes, by the scenario and the metric."""


def measure(sources: Sources) -> Reproduction:
    """Return how far epochs of 300 seconds are from events: facts in units of their tolerances, changes in points.

    The table has every quantity by each way to simulate, means over the seeds.
    """
    means = pd.DataFrame(
        {path: pd.DataFrame([quantities(sources, path, seed) for seed in SEEDS]).mean() for path in PATHS}
    )
    tolerance = tolerances()
    facts = means.loc[means.index.intersection(tolerance.index)]
    off = facts.sub(facts[EVENTS], axis=0).abs().div(tolerance.reindex(facts.index), axis=0)
    changed = means.loc[list(CHANGES)]
    points = changed.sub(changed[EVENTS], axis=0).abs().max()
    coarse, fine = (f"{epoch_s} s" for epoch_s in (BY_EPOCHS[0], BY_EPOCHS[-1]))
    judged = numbers(
        largest_shift_in_tolerances=float(off[coarse].max()),
        median_shift_in_tolerances=float(off[coarse].median()),
        largest_shift_of_a_change=float(points[coarse]),
        largest_shift_in_tolerances_10s=float(off[fine].max()),
    )
    return Reproduction(judged, table=means.reset_index(names="quantity"))


def tolerances() -> "pd.Series[float]":
    """Return the tolerance of every fact of `world/calibration` that has one."""
    facts = printed(published("world/calibration")).dropna(subset=["tolerance"])
    return pd.Series(facts["tolerance"].to_numpy(np.float64), facts["series"])


def quantities(sources: Sources, path: str, seed: int) -> "pd.Series[float]":
    """Return what one fleet says when it is simulated in one way."""
    how = {**SMALL, **PATHS[path], "seed": seed}
    today = sources.run(TODAY, **how)
    counters, instances, epochs = (today.table(name) for name in ("counters", "instances", "epochs"))
    stays = cpi.stays(counters, instances)
    facts = pd.concat(
        [
            cpi.cpi_facts(stays),
            cpi.spread_facts(stays),
            calibration.machine_facts(measurements(counters, instances, "ipc")),
        ]
    )
    busy_s = epochs["cpu_s"].sum()
    beside = {
        "power_w": epochs["energy_j"].sum() / (HORIZON_S * MACHINES),
        "busy_threads": busy_s / HORIZON_S,
        "capped_share": epochs["capped_share"].mean(),
        "mean_frequency_ghz": epochs["cycles"].sum() / busy_s / 1e9,
    }
    runs = {scenario: sources.run(scenario, **how) for scenario in (UPGRADE, DVFS)}
    changes = {name: _change(runs[scenario], metric) for name, (scenario, metric) in CHANGES.items()}
    by_name = dict(zip(facts["series"], facts["value"], strict=True)) | beside | changes
    return pd.Series(by_name, dtype=np.float64)


def _change(run: Run, metric: str) -> float:
    """Return the true change of the quota-weighted metric of all jobs."""
    instances = run.table("instances")
    quota = run.table("jobs", ["job", "quota_vcpu"]).set_index("job")["quota_vcpu"]
    nowhere, everywhere = (
        job_statistics(measurements(run.table(f"truth_{arm}_counters"), instances, metric)).set_index("job")["mean"]
        for arm in ("nowhere", "everywhere")
    )
    weight = quota.reindex(nowhere.index.intersection(everywhere.index))
    return float((weight * everywhere).sum() / (weight * nowhere).sum() - 1.0)
