"""Slots of a simulated fleet that differ by generations in two clusters: the skew of a comparison, and its warning."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums, of_machines
from analysis.effects.methods import RECOMMENDED, method
from analysis.effects.mixes import mix_difference
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet
from analysis.effects.study import potential
from analysis.figures.criteria import numbers
from models.arrays import Bools, Ints
from models.errors import InputError
from scenarios.effects.simulated_past import simulated
from scenarios.files.loader import load
from scenarios.files.schema import Scenario
from scenarios.papers.rows import Reproduction
from scenarios.papers.sources import Sources

SCENARIO: Final = "mixed_platforms"
CLUSTERS: Final = 20
"""Of as many racks each; two of them are made unlike."""
SLOTS: Final = 10
CUTS: Final = 10
"""Of each fleet, with five pairs of slots each."""
MOST: Final = 4
"""Machines of the newest platform that a slot gets of the other in each of both clusters, for older ones."""
NEWEST: Final = "skylake"
SKEW: Final = 0.0025
"""The middle of what Google tells."""


def measure(sources: Sources) -> Reproduction:
    """Return what exchanges of machines in two clusters of twenty do to comparisons of slots."""
    world = load(SCENARIO)
    if not isinstance(world, Scenario):
        raise InputError(f"{SCENARIO} is no fleet")
    sources.progress("simulating two days without the feature", 0.0)
    table = simulated(replace(world, seed=sources.world), 2).table
    sources.progress("comparing slots", 0.5)
    racks = int(table["rack"].max()) + 1
    table["cluster"] = table["rack"] * CLUSTERS // racks
    pairs = pd.DataFrame(_compared(table, sources.world))
    base = pairs[pairs["exchanged"] == 0].set_index("pair")
    changed = pairs[pairs["exchanged"] > 0].merge(
        base[["unadjusted", RECOMMENDED]].add_suffix("_as_cut"), left_on="pair", right_index=True
    )
    for name in ("unadjusted", RECOMMENDED):
        changed[f"{name}_skew"] = changed[name] - changed[f"{name}_as_cut"]
    means = changed.groupby("exchanged")[["points", "unadjusted_skew", f"{RECOMMENDED}_skew", "told", "warned"]].mean()
    slope, told, left = (
        float((means["points"] * means[name]).sum() / (means["points"] ** 2).sum())
        for name in ("unadjusted_skew", "told", f"{RECOMMENDED}_skew")
    )
    strong = changed[changed["points"] >= SKEW / slope] if slope > 0 else changed.iloc[:0]
    measured = numbers(
        pairs=float(len(base)),
        points=SKEW / slope if slope > 0 else np.inf,
        as_cut=abs(float(base["unadjusted"].mean())),
        told_off=abs(told / slope - 1.0) * SKEW,
        warned=float(strong["warned"].mean()) if len(strong) else np.nan,
        false_warnings=float(base["warned"].mean()),
        adjusted=abs(left / slope),
    )
    return Reproduction(measured, table=means.reset_index())


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """A fleet that is cut by its first day, the cells of its second, and which machines are of the newest platform."""

    fleet: StratifiedFleet
    cells: JobMachineSums
    newest: Bools
    """(M,)"""

    @property
    def cluster(self) -> Ints:
        """(M,)"""
        return self.fleet.cluster[self.fleet.stratum]

    def exchange(self, slot: Ints, first: int, clusters: Ints, rng: np.random.Generator) -> None:
        """Give a slot one of the newest machines of the next, for an older one, in each of some clusters."""
        for cluster in clusters:
            here = self.cluster == cluster
            old = np.flatnonzero(here & ~self.newest & (slot == first))
            new = np.flatnonzero(here & self.newest & (slot == first + 1))
            if len(old) and len(new):
                slot[rng.choice(old)], slot[rng.choice(new)] = first + 1, first

    def compared(self, slot: Ints, first: int, clusters: Ints) -> dict[str, float]:
        """Return what is estimated of two slots, what the warning tells, and how their shares differ in clusters."""
        mix = mix_difference(self.fleet, slot == first, slot == first + 1, (1, 1))
        of_cells = pd.Series(slot, self.fleet.names).reindex(self.cells.machines).to_numpy()
        both, here = np.isin(of_cells, (first, first + 1)), np.isin(self.cluster, clusters)
        own, having = of_machines(self.cells, both), (of_cells[both] == first)[None]
        changes = {name: float(method(name).many(own, having).change[0]) for name in ("unadjusted", RECOMMENDED)}
        shares = [float(self.newest[here & (slot == number)].mean()) for number in (first, first + 1)]
        return {"points": shares[0] - shares[1], "told": mix.skew, "warned": float(mix.uneven), **changes}


def _compared(table: pd.DataFrame, seed: int) -> Iterator[dict[str, float]]:
    """Yield pairs of slots by how many machines were exchanged: what is estimated though nothing differs, and told."""
    before = table["period"] == table["period"].min()
    past, today = (table[rows].reset_index(drop=True) for rows in (before, ~before))
    fleet = StratifiedFleet.of(past)
    newest = np.array([NEWEST in name for name in fleet.strata])[fleet.stratum]
    study, rng = _Study(fleet, potential(past, today, today), newest), np.random.default_rng((seed, SLOTS))
    for number in range(CUTS):
        as_cut = cut(fleet, SLOTS, seed * CUTS + number).slot
        for first in range(0, SLOTS - 1, 2):
            slot, clusters = as_cut.copy(), rng.permutation(CLUSTERS)[:2]
            for exchanged in range(MOST + 1):
                if exchanged:
                    study.exchange(slot, first, clusters, rng)
                pair = number * SLOTS + first
                yield {"pair": pair, "exchanged": exchanged, **study.compared(slot, first, clusters)}
