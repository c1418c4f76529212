"""Total effects where machines share a power budget, judged in our own world: `python benchmarks/spill_over.py`.

    python benchmarks/spill_over.py [--fleets 1000] [--corners upgrade,…] [--seed 1] [--out runs/spill_over]

Every fleet has racks of four machines, each behind a power budget that binds, and a seed of its own. 24 racks take part
in the experiment. The fleet is simulated four times with the same draws: without the feature, with it on all machines,
with it on all machines of half of the racks, and with it on as many machines drawn one by one; assignments are drawn
anew for each fleet. Six hours before the feature, and six hours from an hour after it on, are counted in windows of
three hours. The truth is the change of the whole fleet, all on against all off (quota-weighted mean over jobs of
instructions per CPU second).

- upgrade: new processors, which do more for a watt; where they leave power, machines without the feature use it.
- upgrade_tight: the same with 3% less power.
- code: 5% fewer cycles and misses, which also leave power to neighbours.
- upgrade_of_part, upgrade_tight_of_part: fleets of 72 racks, of which 24 take part.

Printed are bias over the mean truth and coverage, with Monte-Carlo errors, of `whole-domains` (what `wsc effect
--domain power_domain` answers) and of `alone`: `adjusted`, side by side, of machines drawn one by one. The price is the
half-width over that of `alone`. Parts of twenty-five fleets are kept in the folder, so an interrupted run goes on.
"""

import argparse
import json
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.exposure import Exposure, WholeDomains
from analysis.effects.study import Study
from models.arrays import HOUR_S
from models.fleet.inventory import drawn_names
from models.fleet.world import Feature, Recording, Software, Window
from models.randomness import stream
from scenarios.effects.scorecard.fleets import change
from scenarios.effects.simulated_past import job_quotas, observations
from scenarios.files.loader import Override, load
from sim.fleet.arms import nowhere, on_machines
from sim.fleet.day import prepare
from tests.helpers.outside_spill import summary

PART, TAKING_PART, MACHINES = 25, 24, 4
WINDOWS = tuple(Window(f"w{hour:02}", hour * HOUR_S, (hour + 3) * HOUR_S) for hour in (1, 4, 8, 11))
SINCE_S = 7 * HOUR_S
"""When the feature comes, at the end of the second window."""


@dataclass(frozen=True)
class Corner:
    """How short power is, and the feature."""

    budget: float
    """Of a domain, as a share of its peak power."""
    cycles: float = 0.0
    """Factor on cycles and misses of new code; 0: new processors in place of code."""
    racks: int = TAKING_PART
    """Of the fleet."""


CORNERS = {
    "upgrade": Corner(0.68),
    "upgrade_tight": Corner(0.66),
    "code": Corner(0.66, 0.95),
    "upgrade_of_part": Corner(0.68, racks=72),
    "upgrade_tight_of_part": Corner(0.66, racks=72),
}


def world(corner, seed):
    """Return a small fleet in which power is short."""
    values = {
        "seed": seed, "fleet.machines": corner.racks * MACHINES, "fleet.machines_per_rack": MACHINES,
        "fleet.racks_per_power_domain": 1, "population.jobs": 40, "population.common_jobs": 40,
        "population.heavyweights": 10, "power.cap_share": 0.9, "power.domain_budget_share": corner.budget,
        "horizon_s": WINDOWS[-1].end_s, "epoch_s": 900.0, "analyses.wsmeter.machines": [1],
    }  # fmt: skip
    today = load("today", [Override(key, dumps(value)) for key, value in values.items()])
    feature = Feature("new processors", {"haswell_2698v3": "broadwell_2698v4"})
    if corner.cycles:
        names = drawn_names(today.population, seed)
        code = Software(names, core_cpi_factor=corner.cycles, memory_accesses_factor=corner.cycles)
        feature = Feature("new code", software=(code,))
    return replace(today, feature=feature, recording=Recording(windows=WINDOWS))


def answers(corner, seed):
    """Return truth and correlation, and change and half-width of each estimator, of one fleet."""
    day, rng = prepare(world(corner, seed)), stream(seed, "assignments")
    machines, domain = np.arange(day.machines.count), day.machines.power_domain
    order = rng.permutation(corner.racks)
    within, whole = (order < TAKING_PART)[domain], (order < TAKING_PART // 2)[domain]
    alone = np.zeros(len(machines), dtype=bool)
    alone[rng.permutation(machines[within])[: within.sum() // 2]] = True
    since, jobs = round(SINCE_S / day.world.epoch_s), job_quotas(day)
    off, on = (_study(observations(day, arm)) for arm in (nowhere(day), on_machines(day, machines, since)))
    keys = ["instance", "machine", "period"]
    off, on = (table.merge(other[keys], on=keys) for table, other in ((off, on), (on, off)))
    studies = [_experiment(day, machines[within], machines[treated], since) for treated in (whole, alone)]
    first = WholeDomains().estimate(studies[0])
    effects = [first, None, None, Adjusted().estimate(studies[1])]
    row = [change(off, on, jobs), Exposure().parts(studies[0].cells, studies[0].treated).correlation]
    return [*row, *(number for e in effects for number in ((np.nan, np.nan) if e is None else (e.change, e.margin)))]


def _study(table):
    return table[table["period"] >= SINCE_S]


def _experiment(day, within, treated, since):
    """Return what is recorded of some machines if some of them have the feature in the study."""
    table = observations(day, on_machines(day, treated, since))
    table = table[table["machine"].isin(within)].reset_index(drop=True)
    having = (table["period"] >= SINCE_S) & table["machine"].isin(treated)
    return Study.of(table.assign(treated=having.astype(int), rack=table["domain"]), job_quotas(day))


def counted(name, fleets, out, seed):
    """Return the answers of all fleets of a corner; parts may be in the folder."""
    parts = []
    for first in range(0, fleets, PART):
        file = out / f"{name}-{seed}-{first:05d}.json"
        if not file.is_file():
            block = [answers(CORNERS[name], 100_000 * seed + number) for number in range(first, first + PART)]
            out.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(json.dumps(block), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64))
    return np.concatenate(parts)


def main():
    """Print a row for each corner and estimator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--corners", default=",".join(CORNERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/spill_over"))
    asked = parser.parse_args()
    for number, name in enumerate(asked.corners.split(",")):
        rows = summary(name, counted(name, asked.fleets, asked.out, asked.seed))
        print(pd.DataFrame(rows).round(4).to_string(index=False, header=number == 0), flush=True)


if __name__ == "__main__":
    main()
