"""What a fleet of the scorecard takes, part by part, and the estimator beside a twin in plain NumPy on the same draws.

    python benchmarks/scorecard.py [--machines 1000,6000] [--draws 500] [--designs day,week,crossover] [--corner base]

Seconds are of one processor. A fleet is simulated for two weeks in hourly epochs and, for crossovers, for a day in
epochs of five minutes; day, week and crossover are what an experiment is told of: a day after a day, a week after a
week, 24 hours of switching. `simulated` is the fleet with all its courses, and the cells of the first design; `cells`
are those of a design; `estimated` are all estimators on all draws of all sizes, with their intervals. Then one draw of
100 test machines by the recommended estimator alone, and by the twin; what both say must agree to nine digits. A first
fleet of 100 machines is there to have everything compiled.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums
from analysis.effects.methods import RECOMMENDED, method
from analysis.effects.methods import names as every_estimator
from models.randomness import stream
from scenarios.effects.scorecard.designs import designs
from scenarios.effects.scorecard.pieces import Piece, ScorecardDesign, ScorecardQuestion, judged

SIZES = {1000: (12, 25, 50, 100, 200, 400), 6000: (25, 50, 100, 200, 400)}
"""Of test machines, for the sizes of fleets that figures are given for."""
TWINNED, TEST = 20, 100
"""Draws that the twin is timed on, and test machines of each."""


def by_arm(cells: JobMachineSums, treated: np.ndarray) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per cell as a draw shows it: job, machine, arm, count, values, squares, covariates, products."""
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))
    arm = treated[machine].astype(int)
    at = np.arange(len(arm))
    names = [f"x{k}" for k in range(cells.x.shape[1])]
    table = pd.DataFrame({"job": cells.job, "machine": machine, "arm": arm, "n": cells.count})
    table["y"], table["yy"] = cells.y[at, arm], cells.yy[at, arm]
    table[names] = cells.x
    table[[f"y{name}" for name in names]] = cells.xy[at, arm]
    return table, names


def adjusted(cells: JobMachineSums, table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Add values and squares that covariates do not explain, `z` and `zz`."""
    sums = table.groupby(["job", "arm"])[["n", "y", *names, *(f"y{name}" for name in names)]].sum()
    x, xy = sums[names].to_numpy(), sums[[f"y{name}" for name in names]].to_numpy()
    per = 1.0 / sums["n"].to_numpy()
    xx = cells.xx.sum(axis=0) - (x * per[:, None]).T @ x
    within = (xy - (per * sums["y"].to_numpy())[:, None] * x).sum(axis=0)
    slope = np.linalg.solve(xx + np.diag(1e-9 * np.maximum(np.diag(xx), 0.0) + 1e-12), within)
    z = table["y"] - table[names].to_numpy() @ slope
    squares = np.einsum("k,ckm,m->c", slope, cells.xx, slope)
    return table.assign(z=z, zz=table["yy"] - 2 * table[[f"y{name}" for name in names]].to_numpy() @ slope + squares)


def by_job(cells: JobMachineSums, table: pd.DataFrame) -> pd.DataFrame:
    """Return each job's effect, variance, level and, for each arm, the share of its variance that no spread shows."""
    groups = table.groupby(["job", "arm"])
    sums = groups[["n", "y", "z", "zz"]].sum().assign(machines=groups.size())
    every = pd.MultiIndex.from_product([range(len(cells.jobs)), range(2)])
    n, y, z, zz, machines = sums.reindex(every).to_numpy().T.reshape(5, -1, 2)
    mean, squares = z / n, np.nansum(zz - z**2 / n, axis=1)
    freedom = np.nansum(n - 1.0, axis=1)
    spread = (np.maximum(squares, 0.0) + 10.0 * max(squares.sum(), 0.0) / max(freedom.sum(), 1.0)) / (freedom + 10.0)
    level = np.nan_to_num(y[:, 0] / n[:, 0], nan=1.0)
    made = pd.DataFrame({"off": mean[:, 0], "on": mean[:, 1], "level": level, "n_off": n[:, 0], "n_on": n[:, 1]})
    made["several_off"], made["several_on"] = machines[:, 0] > 1.5, machines[:, 1] > 1.5
    made["effect"] = (made["on"] - made["off"]) / level
    made["variance"] = np.maximum(spread * (1.0 / n).sum(axis=1) / level**2, 1e-12)
    made[["alone_off", "alone_on"]] = np.where(machines == 1, 1.0 / n, 0.0) / (1.0 / n).sum(axis=1, keepdims=True)
    share = cells.weight * level
    return made.assign(share=share / share.sum())


def between(jobs: pd.DataFrame) -> float:
    """Return the variance of effects between jobs, by moments."""
    seen = jobs.dropna()
    typical = seen["share"].sum() / (seen["share"] / seen["variance"]).sum()
    trust = 1.0 / (seen["variance"] + typical)
    trust = trust / trust.sum()
    found = (
        trust * (seen["effect"] - (trust * seen["effect"]).sum()) ** 2 - trust * (1 - trust) * seen["variance"]
    ).sum()
    return max(float(found / (1.0 - (trust**2).sum())), 1e-12)


def twin(cells: JobMachineSums, treated: np.ndarray) -> tuple[float, float, float]:
    """Return change, standard error and degrees of freedom of `adjusted`, of one draw, (M,)."""
    table = adjusted(cells, *by_arm(cells, treated))
    jobs = by_job(cells, table)
    gain = jobs["share"].where(jobs["effect"].notna(), 0.0)
    gain = gain / gain.sum()
    change = float((gain * jobs["effect"].fillna(0.0)).sum())
    alone = jobs["alone_on"] + (1.0 + change) ** 2 * jobs["alone_off"]
    left = between(jobs) * ((gain - jobs["share"]) ** 2).sum() + (gain**2 * jobs["variance"] * alone).sum()
    total, guessed = left, 0.0
    for arm, name in enumerate(("off", "on")):
        mine = table[table["arm"] == arm]
        job = mine["job"].to_numpy()
        held, mean, several = (jobs[column].to_numpy()[job] for column in (f"n_{name}", name, f"several_{name}"))
        counts = (gain / jobs["level"]).to_numpy()[job] / held
        grown = np.where(several, 1.0 / np.maximum(1.0 - mine["n"] / held, 0.1), 0.0)
        rest = mine["z"] - mine["n"] * mean
        if arm == 0:  # an effect is relative to the controls' level, whose error counts `change` times
            rest += change * (mine["y"] - mine["n"] * jobs["level"].to_numpy()[job])
        residual = np.bincount(mine["machine"], counts * grown * np.nan_to_num(rest))
        weight = np.bincount(mine["machine"], counts * mine["n"])
        clusters = (weight**2).sum() ** 2 / (weight**4).sum()
        part = (residual**2).sum() * clusters / (clusters - 1.0)
        total += part
        guessed += (part + (left if arm else 0.0)) ** 2 / (clusters - 1.0)
    return change, float(np.sqrt(total)), float(total**2 / guessed)


def beside(cells: JobMachineSums, size: int) -> tuple[float, float]:
    """Return seconds that one draw takes us and the twin; the answers must agree."""
    rng, treated = stream(1, f"benchmark of {size} machines"), np.zeros((25 * TWINNED, len(cells.machines)), bool)
    for draw in treated:
        draw[rng.permutation(len(draw))[:size]] = True
    start = time.process_time()
    ours = np.stack(method(RECOMMENDED).many(cells, treated), axis=1)
    ours_s, start = (time.process_time() - start) / len(treated), time.process_time()
    theirs = np.array([twin(cells, draw) for draw in treated[:TWINNED]])
    theirs_s = (time.process_time() - start) / TWINNED
    if not np.allclose(ours[:TWINNED], theirs, rtol=1e-9, atol=1e-12):
        raise SystemExit(f"the twin says otherwise: {ours[:TWINNED]} against {theirs}")
    return ours_s, theirs_s


def made(corner: str, machines: int, names: tuple[str, ...]) -> Iterator[tuple[ScorecardDesign, float]]:
    """Yield each design and the seconds that it took to make; the first one has the simulation in it."""
    start = time.process_time()
    for design in designs(corner, 1, machines, names):
        yield design, time.process_time() - start
        start = time.process_time()


def fleet(corner: str, machines: int, draws: int, tried: tuple[str, ...]) -> float:
    """Print the parts of one fleet, and return their sum."""
    whole, sizes = 0.0, SIZES.get(machines, SIZES[1000])
    asked = ScorecardQuestion(every_estimator(), sizes, draws, machines)
    for number, (design, cells_s) in enumerate(made(corner, machines, tried)):
        start = time.process_time()
        judged(asked, lambda *_, only=design: [only], Piece(corner, 1))
        seconds = time.process_time() - start
        whole += cells_s + seconds
        line = f"{machines:>8,}  {design.name:<10} {'simulated' if number == 0 else 'cells':>9} {cells_s:6.2f} s"
        line += f"   estimated {seconds:6.2f} s"
        if design.chosen is None and not design.courses[0].known and machines >= 2 * TEST:
            ours_s, theirs_s = beside(design.courses[0], TEST)
            line += f"   a draw: {1e3 * ours_s:.2f} ms, twin {1e3 * theirs_s:.1f} ms, x{theirs_s / ours_s:,.0f}"
        print(line)
    return whole


def main() -> None:
    """Print a block for every size of fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default="1000,6000")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--designs", default="day,week,crossover")
    parser.add_argument("--corner", default="base")
    asked = parser.parse_args()
    tried = tuple(asked.designs.split(","))
    print("     100  (everything is compiled)")
    fleet(asked.corner, 100, 2, tried)
    for machines in map(int, asked.machines.split(",")):
        whole = fleet(asked.corner, machines, asked.draws, tried)
        print(
            f"{machines:>8,}  all: {whole:.1f} s; {len(every_estimator())} estimators, {asked.draws} draws of each "
            f"size; 200 such fleets on two processors: {100 * whole / 60:.0f} min"
        )


if __name__ == "__main__":
    main()
