"""How long the best assignment takes, beside another solver of linear programmes and beside annealing.

    python benchmarks/affinity.py [--repeats 3]

Tables are random: lognormal CPI with interactions of 20%, lognormal loads, capacities that are in use now.

- exact: seconds of `analysis.profiling.affinity.programme.assign`, the best of the repeats, and its relative gap to the
  bound of the dual; `highs` is `scipy.optimize.linprog` on the same programme with sparse matrices, `times` the ratio.
- annealing: seconds, and how much more expensive its assignment is than the optimum; only for tables of up to 1,000
  jobs.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from analysis.profiling.affinity.programme import anneal, assign

SIZES = ((100, 4), (1_000, 4), (1_000, 20), (5_000, 20))
MOST_ANNEALED = 1_000
T = TypeVar("T")


def table(jobs: int, platforms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (J, I) cycles per instruction, (J, I) present load and (I,) capacities."""
    rng = np.random.default_rng(jobs + platforms)
    effects = rng.normal(0.0, 0.6, (jobs, 1)) + rng.normal(0.0, 0.2, (1, platforms))
    cost = np.exp(effects + rng.normal(0.0, 0.2, (jobs, platforms)))
    load = np.exp(rng.normal(0.0, 1.5, (jobs, 1))) * rng.dirichlet(np.ones(platforms), jobs)
    return cost, load, (cost * load).sum(axis=0)


def timed(repeats: int, call: Callable[..., T], *given: object) -> tuple[float, T]:
    """Return the least seconds of several calls, and what the last one gave."""
    least = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        made = call(*given)
        least = min(least, time.perf_counter() - start)
    return float(least), made


def highs(cost: np.ndarray, total: np.ndarray, capacity: np.ndarray) -> float:
    """Return the optimum by HiGHS."""
    jobs, platforms = cost.shape
    pair, platform = np.arange(cost.size), np.tile(np.arange(platforms), jobs)
    placed = sp.csr_matrix((np.ones(cost.size), (pair // platforms, pair)))
    limits = sp.csr_matrix((cost.ravel(), (platform, pair)))
    return float(linprog(cost.ravel(), limits, capacity, placed, total, method="highs").fun)


def main() -> None:
    """Print a line for every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    anneal(*table(3, 2), seed=1, moves=10)
    for jobs, platforms in SIZES:
        cost, load, capacity = table(jobs, platforms)
        total = load.sum(axis=1)
        exact_s, plan = timed(repeats, assign, cost[None], total, capacity[None])
        highs_s, optimum = timed(repeats, highs, cost, total, capacity)
        line = (
            f"{jobs:6,} × {platforms:2}: exact {exact_s:7.3f} s, gap {plan.gap:.1e}, highs {highs_s:7.3f} s, "
            f"times {highs_s / exact_s:5.1f}, cost over highs − 1 = {plan.cost / optimum - 1:+.1e}"
        )
        if jobs <= MOST_ANNEALED:
            seconds, found = timed(1, anneal, cost, load, capacity, 1)
            line += f", annealing {seconds:6.2f} s, {(cost * found).sum() / plan.cost - 1:+.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
