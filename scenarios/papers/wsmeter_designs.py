"""The rows about how test clusters are built: real roll-outs beside composed draws, and what packing does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import pandas as pd

from analysis.figures.wsmeter import designs
from models.fleet.world import Conditions
from models.metrics import MetricName
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.wsmeter.rollouts import Design, OnAdded, OnInstances, OnMachines, OnPacked, compare
from scenarios.wsmeter.twins import Twins

UPGRADE, DVFS, SERVICES = "cpu_upgrade", "dvfs_policy", "customer_services"
QUARTER_DAY: Final[Mapping[str, Any]] = {"fleet.machines": 1500, "horizon_s": 21600.0, "recording.loop": None}
"""A smaller fleet for six hours: every draw is a simulation of its own."""
QUIET: Final[Mapping[str, Any]] = {
    "interference.llc": False,
    "interference.bandwidth": False,
    "interference.smt": False,
    "power.cap_share": 10.0,
    "power.domain_budget_share": 10.0,
}
"""A world in which co-runners share nothing."""
ALIKE: Final = {f"conditions.{condition.name}": 0.0 for condition in fields(Conditions)}
"""A world in which machines and racks are all alike, at all times."""
WORLDS: Final[Mapping[str, Mapping[str, Any]]] = {"normal": {}, "quiet": QUIET, "alike": {**QUIET, **ALIKE}}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A design of test clusters, and the scenario and metric that it is judged on."""

    scenario: str
    metric: MetricName
    design: Design


ROLLOUTS: Final[Mapping[str, Comparison]] = {
    "machines": Comparison(UPGRADE, "ipc", OnMachines()),
    "machines_dvfs": Comparison(DVFS, "ips", OnMachines()),
    "added": Comparison(UPGRADE, "ipc", OnAdded()),
    "instances": Comparison(SERVICES, "requests_per_s", OnInstances()),
}
PACKED: Final = Comparison(UPGRADE, "ipc", OnPacked())


@dataclass(frozen=True, slots=True)
class Effort:
    """How many fleets are compared, and how many test clusters of each."""

    seeds: tuple[int, ...]
    draws: int


IN_FLEETS: Final = Effort((1, 2), 12)
IN_PACKS: Final = Effort(tuple(range(1, 11)), 8)


def _rollouts(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    draws = pd.concat(_draws(sources, name, each, IN_FLEETS, {}) for name, each in ROLLOUTS.items())
    note = (
        f"{len(IN_FLEETS.seeds)} fleets of {QUARTER_DAY['fleet.machines']:,} machines, six hours; difference: real "
        "less composed; bias: real less the change of the whole fleet, for instances of the rebuilt services; packed "
        "instances are in world/packing; machines added share a rack's conditions, which WSMeter's margin leaves out"
    )
    table = _by_design(designs.described(draws, designs.DRAWS))
    return Outcome(designs.measure_rollouts(draws), draw=designs.rollouts, note=note, table=table)


def _packing(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    draws = pd.concat(_draws(sources, name, PACKED, IN_PACKS, switches) for name, switches in WORLDS.items())
    note = (
        f"{len(IN_PACKS.seeds)} fleets of {QUARTER_DAY['fleet.machines']:,} machines, six hours; intervals are over "
        "fleets; quiet: no interference, no power caps; alike: also no differences between machines or racks"
    )
    table = _by_design(designs.described(draws, designs.FLEETS))
    return Outcome(designs.measure_packing(draws), draw=designs.packing, note=note, table=table)


def _by_design(described: pd.DataFrame) -> pd.DataFrame:
    """Return a row per number and a column per design, as fits a terminal."""
    return described.set_index("design").T.rename_axis(index="", columns=None).reset_index()


def _draws(sources: Sources, name: str, each: Comparison, effort: Effort, switches: Mapping[str, Any]) -> pd.DataFrame:
    """Return the draws of one design over all fleets, with columns design and seed."""
    return pd.concat(_of_fleets(sources, name, each, effort, switches), ignore_index=True)


def _of_fleets(
    sources: Sources, name: str, each: Comparison, effort: Effort, switches: Mapping[str, Any]
) -> Iterator[pd.DataFrame]:
    for done, seed in enumerate(effort.seeds):
        sources.progress(f"rolling out: {name}", done / len(effort.seeds))
        twins = Twins.of(sources.run(each.scenario, **{**QUARTER_DAY, **switches, "seed": seed}), each.metric)
        yield compare(twins, each.design, effort.draws, f"test clusters/{name}").assign(design=name, seed=seed)
    sources.progress(f"rolling out: {name}", 1.0)


DESIGNS: dict[str, Row] = {
    "world/rollouts": Row(
        "test clusters really rolled out, against draws composed of counterfactual fleets",
        (UPGRADE, DVFS, SERVICES),
        _rollouts,
    ),
    "world/packing": Row("what packing a test cluster does to its estimate, and why", (UPGRADE,), _packing),
}
"""Every row about designs of test clusters, by id."""
