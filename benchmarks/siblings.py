"""What the mean sibling leaves out: threads paired one by one in a fleet, and loaded siblings in services.

    python benchmarks/siblings.py [--machines 20] [--worlds 10]

Fleets: residents of machines of `today`, each thread beside one of the machine's other busy threads, both solved
together, against the machine's mean thread. Services: throughput at saturation if siblings waited as on a saturated
machine, against as on an idle one; and without relief, and without prefetchers.
"""

import argparse
from dataclasses import replace

import numpy as np

from models.fleet.processors import beside_sibling
from models.services.world import ServiceWorld
from scenarios.files.loader import load, settings
from sim.fleet.day import Day, prepare
from sim.services import capacity
from sim.services.costs import costs_of, first_guess
from sim.services.stack import _set_up, _solved

PLATFORMS = ("xeon_2h_1c_1p", "xeon_2h_2c_2p", "icelake_8380", "rome_7742")
EPOCH, THREADS, SLOWER_MEMORY, STEPS = 100, 64, 1.2, 100


def machine(day: Day, number: int) -> tuple[float, ...]:
    """Return by how much pairs differ from the mean sibling on a machine: mean and most, spread; and time for work."""
    timeline, jobs, relief = day.timeline, day.jobs, day.world.interference.sibling_relief
    here = (timeline.machine == number) & (timeline.start_epoch <= EPOCH) & (timeline.end_epoch > EPOCH)
    job = timeline.job[here]
    core, slowdown = jobs.core_cpi[job], jobs.smt_slowdown[job]
    stall = (jobs.reference_cpi - jobs.core_cpi)[job] * SLOWER_MEMORY
    share = (jobs.utilisation * jobs.instance_quota_vcpu)[job]
    busy = share.sum() / THREADS
    share = share / share.sum()
    chance = max(busy**2, 2.0 - 1.0 / busy if busy > 0.5 else 0.0)
    waits, pairs = np.full(job.size, 0.5), np.full((job.size, job.size), 0.5)
    for _ in range(STEPS):
        cpi = core * (1.0 + slowdown * beside_sibling(chance, relief, float(share @ waits))) + stall
        waits = stall / cpi
        both = core[:, None] * (1.0 + slowdown[:, None] * beside_sibling(np.ones(1), relief, pairs.T)) + stall[:, None]
        pairs = stall[:, None] / both
    alone = core + stall
    mean = core * (1.0 + slowdown * beside_sibling(1.0, relief, float(share @ waits))) + stall
    rate = (1.0 - chance) / alone + chance * ((1.0 / both) @ share)
    expected = (1.0 - chance) / alone + chance / mean
    off = rate / expected - 1.0
    spread = np.sqrt(((1.0 / both) ** 2) @ share - ((1.0 / both) @ share) ** 2) / ((1.0 / both) @ share)
    by_time = rate * cpi - 1.0
    return (
        float(share @ off),
        float(abs(off).max()),
        float(share @ spread),
        float(share @ by_time),
        float(by_time.max()),
    )


def service(name: str, seed: int) -> tuple[float, ...]:
    """Return relative changes of throughput: loaded siblings, relief, prefetchers; and of CPU time by prefetchers."""
    world = ServiceWorld(seed=seed, platforms=(name,))
    site = capacity.sites(world)[name]
    mix = site.activities.popularity
    most = capacity.saturation(site, mix)
    waits = []
    for per_s in (1.0, 2.0 * most):
        setting = _set_up(site.activities, site.machine, site.mechanisms, site.activities.rates(per_s * mix[None]).T)
        costs = costs_of(setting, first_guess(setting)) if per_s == 1.0 else _solved(setting)[0]
        waits.append(float(costs.waiting[0]))
    idle, loaded = (beside_sibling(1.0, site.machine.sibling_relief, waiting) for waiting in waits)
    other = replace(site.machine, smt_factor=site.machine.smt_factor * loaded / idle)
    alike = replace(world, hardware=replace(world.hardware, sibling_relief=0.0))
    plain = replace(world, mechanisms=replace(world.mechanisms, prefetch=False))
    without = [capacity.sites(changed)[name] for changed in (alike, plain)]
    idle_s, plain_s = (capacity.offered(host, 0.0 * mix[None])[1][0] for host in (site, without[1]))
    return (
        capacity.saturation(replace(site, machine=other), mix) / most - 1.0,
        most / capacity.saturation(without[0], mix) - 1.0,
        most / capacity.saturation(without[1], mix) - 1.0,
        float(mix @ idle_s / (mix @ plain_s)) - 1.0,
        float((idle_s / plain_s).min()) - 1.0,
    )


def main() -> None:
    """Print a line for the fleet and one for each platform."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=20)
    parser.add_argument("--worlds", type=int, default=10)
    given = parser.parse_args()
    day = prepare(load("today", settings([f"fleet.machines={2 * given.machines}"])))
    found = np.array([machine(day, number) for number in range(given.machines)])
    print(
        f"fleet, pairs against the mean: {found[:, 0].mean():+.2%}, at most {found[:, 1].max():.2%} for a resident; "
        f"spread by partner {found[:, 2].mean():.1%}; chance by time: {found[:, 3].mean():+.1%}, "
        f"at most {found[:, 4].max():+.1%}"
    )
    for name in PLATFORMS:
        found = np.array([service(name, seed) for seed in range(1, given.worlds + 1)])
        mean = found.mean(axis=0)
        print(
            f"{name}: throughput with loaded siblings {mean[0]:+.1%}, at most {abs(found[:, 0]).max():.1%}; by relief "
            f"{mean[1]:+.1%}; by prefetchers {mean[2]:+.1%}; CPU time by prefetchers {mean[3]:+.1%}, "
            f"of a type down to {found[:, 4].min():+.0%}"
        )


if __name__ == "__main__":
    main()
