"""Test clusters that are really rolled out, beside draws composed of counterfactual fleets: a simulation each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

import pandas as pd

from models.fleet.metrics import MetricName
from models.fleet.world import Conditions
from scenarios.papers.sources import Sources
from scenarios.wsmeter.rollouts import Design, OnAdded, OnInstances, OnMachines, OnPacked, Twins, compare

UPGRADE, DVFS, SERVICES = "cpu_upgrade", "dvfs_policy", "customer_services"
QUARTER_DAY: Final[Mapping[str, object]] = {"fleet.machines": 1500, "horizon_s": 21600.0, "recording.loop": None}
"""A smaller fleet for six hours: every draw is a simulation of its own."""
QUIET: Final[Mapping[str, object]] = {
    "interference.llc": False,
    "interference.bandwidth": False,
    "interference.smt": False,
    "interference.sockets": False,
    "power.cap_share": 10.0,
    "power.domain_budget_share": 10.0,
    "power.turbo": False,
}
"""A world in which co-runners share nothing."""
ALIKE: Final = {
    f"conditions.{condition.name}": 0.0 for condition in fields(Conditions) if condition.name != "slow_memory_factor"
}
"""A world in which machines and racks are all alike, at all times."""
WORLDS: Final[Mapping[str, Mapping[str, object]]] = {"normal": {}, "quiet": QUIET, "alike": {**QUIET, **ALIKE}}


@dataclass(frozen=True, slots=True)
class JudgedDesign:
    """A design of test clusters, and the scenario and metric that it is judged on."""

    scenario: str
    metric: MetricName
    design: Design


ROLLOUTS: Final[Mapping[str, JudgedDesign]] = {
    "machines": JudgedDesign(UPGRADE, "ipc", OnMachines()),
    "machines_dvfs": JudgedDesign(DVFS, "ips", OnMachines()),
    "added": JudgedDesign(UPGRADE, "ipc", OnAdded()),
    "instances": JudgedDesign(SERVICES, "requests_per_s", OnInstances()),
}
PACKED: Final = JudgedDesign(UPGRADE, "ipc", OnPacked())


@dataclass(frozen=True, slots=True)
class Effort:
    """How many fleets are compared, and how many test clusters of each."""

    seeds: tuple[int, ...]
    draws: int


IN_FLEETS: Final = Effort((1, 2), 12)
IN_PACKS: Final = Effort(tuple(range(1, 11)), 8)


def rolled_out(sources: Sources) -> pd.DataFrame:
    """Return the draws of every design: real less composed, with columns design and seed."""
    parts = (_draws(sources, name, comparison, IN_FLEETS, {}) for name, comparison in ROLLOUTS.items())
    return pd.concat(parts)


def packed(sources: Sources) -> pd.DataFrame:
    """Return the draws of packed instances in every one of `WORLDS`, with columns design (the world) and seed."""
    return pd.concat(_draws(sources, name, PACKED, IN_PACKS, switches) for name, switches in WORLDS.items())


def _draws(
    sources: Sources, name: str, comparison: JudgedDesign, effort: Effort, switches: Mapping[str, object]
) -> pd.DataFrame:
    """Return the draws of one design over all fleets, with columns design and seed."""
    return pd.concat(_of_fleets(sources, name, comparison, effort, switches), ignore_index=True)


def _of_fleets(
    sources: Sources, name: str, comparison: JudgedDesign, effort: Effort, switches: Mapping[str, object]
) -> Iterator[pd.DataFrame]:
    for done, seed in enumerate(effort.seeds):
        sources.progress(f"rolling out: {name}", done / len(effort.seeds))
        run = sources.run(comparison.scenario, **{**QUARTER_DAY, **switches, "seed": seed})
        twins = Twins.of(run, comparison.metric)
        draws = compare(twins, comparison.design, effort.draws, f"test clusters/{name}")
        yield draws.assign(design=name, seed=seed)
    sources.progress(f"rolling out: {name}", 1.0)
