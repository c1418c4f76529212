"""Fleets whose power domains switch a feature as a whole, drawn by NumPy alone: how often `adjusted` is right.

    python -m tests.helpers.outside_crossover [--fleets 500]

Half of the domains switch by a coin of their own each period. A machine with the feature gains by it, and loses by
what the others behind its power budget take; so the total effect is what the whole domain on has against it off.
"""

import argparse
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.effects.methods import for_design
from analysis.effects.observations import Observations
from analysis.effects.study import Study

DOMAINS: Final = 24
MACHINES: Final = 5
"""Of a domain."""
JOBS: Final = 12
PERIODS: Final = 16
INSTANCES: Final = 4
"""Of a machine."""
GAIN: Final = 0.06
HARM: Final = -0.04
"""By the rest of the domain."""


def drawn(rng: np.random.Generator) -> tuple[pd.DataFrame, float]:
    """Return a fleet's observations, and its true total effect: over jobs by their level and instances."""
    domain = np.repeat(np.arange(DOMAINS), MACHINES)
    machine = np.repeat(np.arange(domain.size), INSTANCES)
    job, where = rng.integers(JOBS, size=machine.size), domain[machine]
    level = rng.normal(0.0, 0.5, JOBS)
    effect = GAIN * (1.0 + rng.normal(0.0, 0.3, JOBS)) + HARM
    lasting = level[job] + rng.normal(0.0, 0.1, job.size) + rng.normal(0.0, 0.03, domain.size)[machine]
    switching = rng.permutation(DOMAINS) < DOMAINS // 2
    periods = []
    for period in range(PERIODS):
        on = ((rng.random(DOMAINS) < 0.5) & switching)[where]
        of_jobs, of_domains = rng.normal(0.0, 0.02, JOBS)[job], rng.normal(0.0, 0.01, DOMAINS)[where]
        of_machines, noise = rng.normal(0.0, 0.01, domain.size)[machine], rng.normal(0.0, 0.05, job.size)
        value = np.exp(lasting + of_jobs + of_domains + of_machines + noise) * (1.0 + effect[job] * on)
        columns: dict[str, Any] = {"period": period, "job": job, "machine": machine, "weight": 1.0, "value": value}
        columns |= {"treated": on.astype(np.int64), "instance": np.arange(job.size), "domain": where}
        periods.append(pd.DataFrame(columns))
    weight = np.bincount(job, minlength=JOBS) * np.exp(level)
    return pd.concat(periods, ignore_index=True), float(weight @ effect / weight.sum())


def main() -> None:
    """Print how often the interval holds the total effect, and how large the errors are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=500)
    held, errors, margins = [], [], []
    for seed in range(count := parser.parse_args().fleets):
        rows, truth = drawn(np.random.default_rng([8, seed]))
        answer = for_design("adjusted", Observations.of(rows).design).estimate(Study.of(rows, None))
        held.append(answer.low <= truth <= answer.high)
        errors.append(answer.change - truth)
        margins.append(answer.margin)
    share = np.mean(held)
    print(f"{count} fleets: held in {share:.1%} ± {np.sqrt(share * (1 - share) / count):.1%}")
    print(f"error {np.mean(errors):+.3%}, root mean square {np.std(errors):.3%}; margin ±{np.mean(margins):.3%}")


if __name__ == "__main__":
    main()
