"""How long a sample-size plan takes: the project's solver against what one would write instead.

    python benchmarks/plan.py [--jobs 2,50,200,1000,5000] [--repeats 3] [--limit 20]

All solve the same problems, random populations of jobs with two fifths of the margin that four instances of every job
would give, so that most of the quota needs more than four:

- cp-sat: the straightforward model in OR-tools, one integer per job and a table of variance / n, rounded up to whole
  numbers; it stops after `--limit` seconds;
- slsqp: the real-valued problem in scipy, rounded up; it proves nothing. It solves a dense problem in every step, so it
  is left out beyond 1,000 jobs, where a single step takes minutes.

Costs are relative to the proven optimum, and the last columns are how many times longer the others take.
"""

import argparse
import time
from statistics import median

import numpy as np
import pandas as pd
from ortools.sat.python import cp_model
from scipy.optimize import minimize

from analysis.wsmeter.plan import plan
from models.randomness import stream

T, LEAST = 2.0, 4
TIGHTER = 0.4
"""Margin asked for, relative to that of the fewest instances."""
DENSE = 1000
"""Most jobs that SLSQP is asked for."""
SCALE = 1_000_000
"""Whole units that the allowed variance is cut into for CP-SAT; a finer scale makes it slower."""


def population(jobs, seed=1):
    """Return a plan's table: heavy-tailed quota, lognormal performance, whole costs."""
    rng = stream(seed, f"benchmarks/plan/{jobs}")
    quota = np.sort(rng.lognormal(0, 2.0, jobs))[::-1]
    mean = rng.lognormal(0, 0.5, jobs)
    return pd.DataFrame(
        {
            "job": np.arange(jobs),
            "weight": quota / quota.sum(),
            "mean": mean,
            "std": mean * rng.uniform(0.05, 0.3, jobs),
            "instances": np.maximum(LEAST, max(3_000, 30 * jobs) * quota / quota.sum()).astype(int),
            "cost": rng.integers(1, 9, jobs),
        }
    )


def margin_of(table):
    """Return the margin asked for."""
    metric = (table["weight"] * table["mean"]).sum()
    return TIGHTER * T * np.sqrt(((table["weight"] * table["std"]) ** 2 / LEAST).sum()) / metric


def own(table):
    """Return cost and whether it is proven, by the project."""
    found = plan(table, margin_of(table), T, LEAST)
    return found.cost, found.optimal


def variance(table):
    """Return each job's variance with one instance, as a share of what the margin allows."""
    metric = (table["weight"] * table["mean"]).sum()
    return ((table["weight"] * table["std"]) ** 2 / (margin_of(table) * metric / T) ** 2).to_numpy()


def cp_sat(table, limit):
    """Return cost and whether it is proven, by the model that follows the formula."""
    model = cp_model.CpModel()
    left, observed = [], []
    for share, most in zip(variance(table).tolist(), table["instances"].tolist(), strict=True):
        n = model.new_int_var(LEAST, most, "")
        of_n = [int(np.ceil(share / k * SCALE)) for k in range(LEAST, most + 1)]
        spread = model.new_int_var(of_n[-1], of_n[0], "")
        model.add_element(n - LEAST, of_n, spread)
        left.append(spread)
        observed.append(n)
    model.add(sum(left) <= SCALE)
    model.minimize(sum(cost * n for cost, n in zip(table["cost"].tolist(), observed, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    status = solver.solve(model)
    known = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    return solver.objective_value if known else float("nan"), status == cp_model.OPTIMAL


def slsqp(table, limit):
    """Return the cost of the real-valued optimum rounded up; nothing is proven."""
    if len(table) > DENSE:
        return float("nan"), False
    share, cost, most = variance(table), table["cost"].to_numpy(float), table["instances"].to_numpy(float)
    end = time.perf_counter() + limit

    def stop(_):
        if time.perf_counter() > end:
            raise StopIteration

    constraint = {"type": "ineq", "fun": lambda n: 1 - np.sum(share / n), "jac": lambda n: share / n**2}
    found = minimize(lambda n: cost @ n, most, jac=lambda n: cost, bounds=[(LEAST, top) for top in most],
                     constraints=[constraint], method="SLSQP", options={"maxiter": 1000}, callback=stop)  # fmt: skip
    whole = np.minimum(most, np.ceil(np.round(found.x, 6)))
    return (cost @ whole if found.success and np.sum(share / whole) <= 1 + 1e-9 else float("nan")), False


def timed(solve, table, repeats):
    """Return median seconds, cost and proof."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        cost, proven = solve(table)
        seconds.append(time.perf_counter() - start)
        if seconds[-1] > 5:
            break
    return median(seconds), cost, proven


def said(cost, optimum, proven):
    """Return a cost relative to the optimum in words."""
    return "none" if np.isnan(cost) else ("proven" if proven else "not proven") + f" {cost / optimum - 1:+.2%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="2,50,200,1000,5000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0)
    asked = parser.parse_args()
    own(population(20))
    print(f"{'jobs':>6} {'plan s':>8} {'':>10} | {'cp-sat s':>8} {'cost':>18} {'times':>7} | "
          f"{'slsqp s':>8} {'cost':>18} {'times':>7}")  # fmt: skip
    for jobs in map(int, asked.jobs.split(",")):
        table = population(jobs)
        seconds, optimum, proven = timed(own, table, asked.repeats)
        line = f"{jobs:>6,} {seconds:>8.3f} {'proven' if proven else 'not proven':>10}"
        for solve in (cp_sat, slsqp):
            took, cost, sure = timed(lambda table, solve=solve: solve(table, asked.limit), table, asked.repeats)
            left_out = solve is slsqp and jobs > DENSE
            line += (
                f" | {took:>8.3f} {said(cost, optimum, sure):>18} {took / seconds:>7.1f}" if not left_out else " | -"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
