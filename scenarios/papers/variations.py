"""One fleet's world with one thing changed at a time, and what each change does to the fleet and to WSMeter.

Fleets have fewer machines than those of the paper, so that many can be compared, and the same seeds throughout: two
worlds of one seed share machines, jobs, placement and every random draw.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.world.variations import job_cv, moved, rack_variance_ratio, slowdown
from analysis.figures.wsmeter.changes import machine_cv
from analysis.wsmeter.dependence import effective_correlation
from scenarios.effects.validate import scores
from scenarios.files.schema import WSMeter
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run
from scenarios.wsmeter.measurements import Tables, halves_of

UPGRADE: Final = "cpu_upgrade"
MACHINES: Final = 1500

SWITCHES: Final[Mapping[str, Mapping[str, float]]] = {
    "base": {},
    "llc": {"interference.llc": False},
    "bandwidth": {"interference.bandwidth": False},
    "smt": {"interference.smt": False},
    "power_cap": {"power.cap_share": 10.0, "power.domain_budget_share": 10.0},
    "input_variance": {"population.behaviour.input_log_sd": 0.0},
    "rack_effects": {
        "conditions.rack_latency_log_sd": 0.0,
        "conditions.rack_power_log_sd": 0.0,
        "conditions.rack_access_log_sd": 0.0,
    },
}
"""What is switched off, and how the scenario says it; nothing in the base."""
LEVELS: Final = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Spreads of the memory accesses that a rack or a machine shares."""
AXES: Final = {"rack": (1, 0), "machine": (0, 1), "both": (1, 1)}
"""Which of the two is spread: that of racks, that of machines."""


@dataclass(frozen=True, slots=True)
class Fleets:
    """How many fleets are compared, and how closely test clusters look at each."""

    seeds: tuple[int, ...]
    cluster: int
    """Machines of a test cluster."""
    draws: int = 300

    def settings(self) -> WSMeter:
        """Return how a fleet is validated."""
        return WSMeter(machines=(self.cluster,), draws=self.draws)


ABLATION: Final = Fleets((1, 2, 3), 50)
COVARIANCE: Final = Fleets((1, 2, 3, 4, 5), 100)


def ablation(sources: Sources, fleets: Fleets = ABLATION) -> pd.DataFrame:
    """Return what each switch does to fleets that get new processors.

    Returns
    -------
    DataFrame
        seed, switch (a name in `SWITCHES`), change (the true one), machine_cv, job_cv, slowdown (against alone), speed
        (instructions per CPU second), margin and coverage (WSMeter's, of the covered jobs' change), moved (median
        stay's change of IPC against the base), rack_variance_ratio (of those changes).
    """
    rows = []
    for seed in fleets.seeds:
        base = pd.DataFrame()
        for switch, off in SWITCHES.items():
            run = sources.run(UPGRADE, **{"fleet.machines": MACHINES, "seed": seed, **off})
            tables = Tables.of(run, fleets.settings())
            base = tables.nowhere if switch == "base" else base
            rows.append({"seed": seed, "switch": switch} | _described(run, tables, base, fleets))
    return pd.DataFrame(rows)


def _described(run: Run, tables: Tables, base: pd.DataFrame, fleets: Fleets) -> dict[str, float]:
    judged = scores(tables, fleets.settings(), int(run.manifest["seed"]))
    wsmeter = judged.rows("wsmeter")[0]
    epochs = run.table("truth_nowhere_epochs", ["instructions", "cpu_s"]).sum()
    now = tables.nowhere
    return {
        "change": judged.true["change"],
        "machine_cv": machine_cv(now).value,
        "job_cv": job_cv(now),
        "slowdown": slowdown(now, _alone(run)),
        "speed": float(epochs["instructions"] / epochs["cpu_s"]),
        "margin": wsmeter["margin"],
        "coverage": wsmeter["covers_covered"],
        "moved": moved(base, now),
        "rack_variance_ratio": np.nan if now is base else rack_variance_ratio(base, now),
    }


def _alone(run: Run) -> pd.DataFrame:
    """Return job and cpi alone on the reference machine."""
    jobs = run.table("truth_jobs", ["job", "core_cpi", "stall_share"])
    return pd.DataFrame({"job": jobs["job"], "cpi": jobs["core_cpi"] / (1 - jobs["stall_share"])})


def covariance(sources: Sources, fleets: Fleets = COVARIANCE) -> pd.DataFrame:
    """Return how often WSMeter's interval is right as racks and machines share more.

    Returns
    -------
    DataFrame
        seed, axis (a name in `AXES`), level (log spread), correlation (effective, of the fleet without the feature),
        draws, and the shares of draws whose interval holds the covered jobs' change (covered) or the whole fleet's
        (truth), and the same with the margin widened by 20% (covered_widened, truth_widened).
    """
    return pd.DataFrame(_swept(sources, fleets))


def _swept(sources: Sources, fleets: Fleets) -> Iterator[dict[str, float | str]]:
    for seed in fleets.seeds:
        measured: dict[tuple[float, float], dict[str, float]] = {}
        for axis, (rack, machine) in AXES.items():
            for level in LEVELS:
                spread = (rack * level, machine * level)
                if spread not in measured:
                    measured[spread] = _shared(sources, fleets, seed, spread)
                yield {"seed": seed, "axis": axis, "level": level, **measured[spread]}


def _shared(sources: Sources, fleets: Fleets, seed: int, spread: tuple[float, float]) -> dict[str, float]:
    names = ("conditions.rack_access_log_sd", "conditions.machine_access_log_sd")
    run = sources.run(UPGRADE, **{"fleet.machines": MACHINES, "seed": seed, **dict(zip(names, spread, strict=True))})
    tables = Tables.of(run, fleets.settings())
    without, _ = halves_of(tables.observed)
    judged = scores(tables, fleets.settings(), seed)
    published, wider = judged.rows("wsmeter")[-1], judged.rows("wsmeter-widened")[-1]
    shares = {"covered": "covers_covered", "truth": "covers_truth"}
    plain = {name: published[column] for name, column in shares.items()}
    widened = {f"{name}_widened": wider[column] for name, column in shares.items()}
    correlation = effective_correlation(without, tables.jobs).ratio
    return {"correlation": correlation, "draws": published["draws"], **plain, **widened}
