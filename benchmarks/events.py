"""What the event-driven machine takes: solutions and other events a second on one core, beside the epoch kernel.

    python benchmarks/events.py [--machines 48] [--repeats 5]

A day of a small fleet without a feature, about 21 residents a machine, in CPU time, compiled code cached, the least of
some repeats. Solutions are solved at the tolerance of the scenario. Looks that change no clock are the difference
between two days without a power cap: one whose governors look after every change, and one where they look once. The
last line takes their time off that of the solutions.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from models.fleet.world import Power, Steps, World
from scenarios.files.loader import load, settings
from sim.fleet import slots
from sim.fleet.arms import nowhere, run_arm
from sim.fleet.day import prepare
from sim.fleet.events import LOOK

FREE = Power(cap_share=10.0, domain_budget_share=10.0)
NEVER_S = 1e9


def took(world: World, repeats: int, logged: int = 0) -> tuple[float, np.ndarray, float]:
    """Return CPU seconds, the bits of all logged events, and the largest residual."""
    day, seconds = prepare(world), []
    for _ in range(repeats):
        start = time.process_time()
        blocks = list(run_arm(day, nowhere(day), threads=1))
        seconds.append(time.process_time() - start)
    residual = max(block.epoch_sums[:, :, slots.E_RESIDUAL].max() for block in blocks)
    bits = np.concatenate([block.events[:, :, 2].ravel() for block in run_arm(day, nowhere(day), logged=logged)])
    return min(seconds), bits[~np.isnan(bits)].astype(int), float(residual)


def main() -> None:
    """Print a line for each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    jobs = ["population.jobs=300", "population.common_jobs=40"]
    epochs = load("today", settings([f"fleet.machines={given.machines}", *jobs]))
    events, logged = replace(epochs, simulation="events"), given.machines * 20_000
    seconds, _, residual = took(epochs, given.repeats)
    solutions = given.machines * epochs.epochs
    rate = solutions / seconds
    print(f"epochs: {solutions:,} solutions in {seconds:.2f} s, {rate:,.0f} a second, residual {residual:.4e}")
    by_epoch_s = seconds
    seconds, bits, residual = took(events, given.repeats, logged)
    solutions, others = int((bits != LOOK).sum()), int((bits == LOOK).sum())
    rate = solutions / seconds
    print(
        f"events: {solutions:,} solutions, {others:,} other events in {seconds:.2f} s, "
        f"{rate:,.0f} solutions a second, residual {residual:.4e}; {seconds / by_epoch_s:.1f} × epochs"
    )
    free = replace(events, power=FREE)
    looking, bits, _ = took(free, given.repeats, logged)
    blind, _, _ = took(replace(free, steps=Steps(governor_s=NEVER_S)), given.repeats)
    looks = int((bits == LOOK).sum())
    look_s = (looking - blind) / looks
    print(f"looks that change no clock: {looks:,} in {looking - blind:.3f} s, {1 / look_s:,.0f} a second")
    print(f"solutions without these looks: {solutions / (seconds - others * look_s):,.0f} a second")


if __name__ == "__main__":
    main()
