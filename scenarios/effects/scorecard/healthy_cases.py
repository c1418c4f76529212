"""Experiments on simulated fleets in which nothing is wrong: guards should keep quiet."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analysis.audit.about import About
from models.arrays import Ints
from scenarios.effects.scorecard.planted_fleets import PlantedExperiment, Potential, record, with_rare

Case = Callable[[Potential, np.random.Generator], PlantedExperiment]


@dataclass(frozen=True, slots=True)
class Random:
    """A share of the machines drawn at random, over some days, with what is said of it."""

    share: float
    days: int = 7
    before: int = 7
    told: Mapping[str, Any] = field(default_factory=dict)
    feature: bool = True
    """Whether the treated really have the feature; if not it is an A/A test."""
    with_jobs: bool = True

    @property
    def about(self) -> About:
        """What is said of it."""
        return About.of({"selection": "random", "planned_share": self.share} | dict(self.told))

    def __call__(self, fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
        """Return the experiment on a fleet."""
        rows = record(fleet, _drawn(fleet, rng, self.share))
        if not self.feature:
            rows["value"] = fleet.rows["off"]
            rows["mean_frequency_hz"] = fleet.rows["clock_off"]
        day = rows["period"] - fleet.first
        return PlantedExperiment(
            rows[(day < self.days) & (day >= -self.before)], fleet.jobs if self.with_jobs else None, self.about
        )


def _drawn(fleet: Potential, rng: np.random.Generator, share: float) -> Ints:
    return np.sort(rng.choice(fleet.machines, round(share * len(fleet.machines)), replace=False))


def by_rack(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """A third of the machines of every rack."""
    rack = fleet.rows.drop_duplicates("machine").set_index("machine")["rack"].reindex(fleet.machines)
    parts = [
        rng.choice(rack.index[rack == name].to_numpy(), max(int((rack == name).sum()) // 3, 1), replace=False)
        for name in np.unique(rack)
    ]
    return PlantedExperiment(record(fleet, np.sort(np.concatenate(parts))), fleet.jobs, About(clusters="machine"))


def whole_racks(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Half of the racks, and racks taken as clusters."""
    racks = np.unique(fleet.rows["rack"])
    chosen = rng.choice(racks, len(racks) // 2, replace=False)
    on = fleet.study & fleet.rows["rack"].isin(chosen).to_numpy()
    return PlantedExperiment(record(fleet, chosen, on), fleet.jobs, About(clusters="rack", planned_share=0.5))


def crossover(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Machines switch on and off by the day, in pairs of random order, and nothing carries over."""
    machines = fleet.machines
    days = int(fleet.rows["period"].max()) + 1
    state = np.zeros((int(fleet.rows["machine"].max()) + 1, days), dtype=np.bool_)
    for day in range(fleet.first, days - 1, 2):
        state[machines, day] = rng.random(len(machines)) < 0.5
        state[machines, day + 1] = ~state[machines, day]
    on = state[fleet.rows["machine"].to_numpy(), fleet.rows["period"].to_numpy()]
    rows = record(fleet, machines, on)
    return PlantedExperiment(rows[rows["period"] < fleet.first + (days - fleet.first) // 2 * 2], fleet.jobs)


def few_bad_rows(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """One row in a thousand has no value, in both arms, and one in a thousand is there twice."""
    rows = record(fleet, _drawn(fleet, rng, 0.3))
    rows["value"] = rows["value"].mask(rng.random(len(rows)) < 0.001)
    return PlantedExperiment(pd.concat([rows, rows[rng.random(len(rows)) < 0.001]], ignore_index=True), fleet.jobs)


def plain_columns(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Only the columns that every table has."""
    rows = record(fleet, _drawn(fleet, rng, 0.3))
    return PlantedExperiment(rows[["period", "job", "machine", "weight", "value", "treated"]])


def two_platforms(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Two platforms, one 20% faster, a third of the machines of each."""
    new = (fleet.rows["rack"] % 2 == 1).to_numpy()
    fleet = fleet.scaled(np.where(new, 1.2, 1.0))
    rows = fleet.rows.assign(platform=np.where(new, "new", "old"))
    fleet = Potential(rows, fleet.jobs, fleet.first)
    of = rows.drop_duplicates("machine").set_index("machine")["platform"].reindex(fleet.machines)
    parts = [rng.choice(part.index.to_numpy(), len(part) // 3, replace=False) for _, part in of.groupby(of)]
    about = About(planned_share={"new": 1 / 3, "old": 1 / 3})
    return PlantedExperiment(record(fleet, np.sort(np.concatenate(parts))), fleet.jobs, about)


def unlike_machines(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Machines that differ by 5% for good, and a third of them at random."""
    factor = np.exp(rng.normal(0, 0.05, int(fleet.rows["machine"].max()) + 1))
    fleet = fleet.scaled(factor[fleet.rows["machine"].to_numpy()])
    return PlantedExperiment(record(fleet, _drawn(fleet, rng, 1 / 3)), fleet.jobs)


def drifting(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Everything becomes 8% faster meanwhile, with the feature and without, and both arms are observed throughout."""
    period = fleet.rows["period"].to_numpy()
    fleet = fleet.scaled(1 + 0.08 * period / period.max())
    return PlantedExperiment(record(fleet, _drawn(fleet, rng, 1 / 3)), fleet.jobs, About(baseline="concurrent"))


def rare_slow_machines(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """One machine in 25 is 85% slower, and half of all have the feature: tails of arms of one size cancel."""
    fleet = with_rare(fleet, 0.85, rng)
    return PlantedExperiment(record(fleet, _drawn(fleet, rng, 0.5)), fleet.jobs, About(clusters="machine"))


def unlike_gains(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Machines gain from nothing to twice as much as they would, each to a degree of its own."""
    degree = rng.uniform(0.0, 2.0, int(fleet.rows["machine"].max()) + 1)[fleet.rows["machine"].to_numpy()]
    off = fleet.rows["off"]
    rows = fleet.rows.assign(on=off * (fleet.rows["on"] / off) ** degree)
    return Random(0.3)(Potential(rows, fleet.jobs, fleet.first), rng)


def common_course(fleet: Potential, rng: np.random.Generator) -> PlantedExperiment:
    """Days differ by 5% for everything."""
    period = fleet.rows["period"].to_numpy()
    return Random(0.3)(fleet.scaled(np.exp(rng.normal(0.0, 0.05, period.max() + 1))[period]), rng)


HEALTHY: Mapping[str, Case] = {
    "tenth": Random(0.1),
    "fifth": Random(0.2),
    "third": Random(0.3),
    "half": Random(0.5),
    "most": Random(0.8),
    "two thirds": Random(0.67),
    "one day": Random(0.3, days=1, before=1),
    "one day, a tenth": Random(0.1, days=1, before=1),
    "three days": Random(0.3, days=3, before=3),
    "three days, half": Random(0.5, days=3, before=3),
    "three days, A/A": Random(0.3, days=3, before=3, feature=False),
    "five days": Random(0.2, days=5, before=2),
    "nothing before": Random(0.3, before=0),
    "A/A": Random(0.3, feature=False),
    "A/A, half": Random(0.5, feature=False),
    "A/A, one day": Random(0.2, days=1, before=1, feature=False),
    "no table of jobs": Random(0.3, with_jobs=False),
    "always valid": Random(0.3, told={"looks": 14, "interval": "always-valid"}),
    "one look": Random(0.3, told={"looks": 1, "interval": "fixed"}),
    "machines as clusters": Random(0.3, told={"clusters": "machine"}),
    "not corrected": Random(0.5, told={"finite_population_correction": False}),
    "corrected, a twentieth": Random(0.05, told={"finite_population_correction": True, "weights": "full"}),
    "full weights": Random(0.2, told={"weights": "full"}),
    "instructions per second": Random(0.3, told={"metric": "ips"}),
    "instructions per cycle, A/A": Random(0.3, told={"metric": "ipc"}, feature=False),
    "by rack": by_rack,
    "whole racks as clusters": whole_racks,
    "crossover": crossover,
    "few bad rows": few_bad_rows,
    "plain columns": plain_columns,
    "two platforms": two_platforms,
    "unlike machines": unlike_machines,
    "rare slow machines": rare_slow_machines,
    "drifting": drifting,
    "unlike gains": unlike_gains,
    "common course": common_course,
}
"""The healthy cases by name."""
