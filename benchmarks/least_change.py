"""The least change that slots of large fleets show: `python benchmarks/least_change.py [--machines 10000,100000]`.

A fleet without any feature is simulated for two weeks, cell by cell: cells of 5,000 machines of three platforms, whose
heaviest jobs all cells run. Its first week cuts each cell into 100 slots, so that a slot has 1% of every platform of
every cell. Then one slot of each pair gets a feature that is planted: from the eighth day on values of job j are
multiplied by 1 + change · g_j, where g_j is lognormal over jobs with a log standard deviation of 0.5, and the truth is
its mean over the jobs of the whole fleet by quota. `adjusted` compares the pair, N days after N days.

The change is the least that should be seen with power 95%: (1.96 + 1.645) / 1.96 times the half-width of five pairs in
which nothing is planted. Printed for each fleet, share and N: the half-width (median), that change, in how many pairs
zero was ruled out, in how many the 95% interval held the truth, and the root mean square error over the stated one.
With `--controls 9` the slot of each experiment is compared with nine times as many slots, which other experiments use
as controls, too. `--turns 5` makes five times as many experiments of the same cells: for each turn the slots of every
cell are numbered anew by chance, so that other slots of the cells go together.
Of fleets of more than 100,000 machines the first 20 slots alone are kept, and of those of more than 500,000 nothing is
known of what shards did in other slots. What was simulated is kept in `--folder`; a
run that was stopped goes on from there. Half a million machines take an hour of two cores and 6 GB of disk.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import norm

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet
from analysis.effects.study import Study
from models.arrays import DAY_S, Ints
from models.fleet.world import Recording, Window
from models.randomness import stream
from scenarios.effects.simulated_past import job_quotas, observations
from scenarios.files.loader import load, settings
from scenarios.files.schema import Scenario
from scenarios.runs.execution import alone, cells
from sim.fleet.arms import nowhere
from sim.fleet.day import prepare

CELL, SLOTS, WEEK = 5_000, 100, 7
WORLD = (
    f"fleet.machines={CELL}",
    "fleet.platforms={haswell_2698v3: 0.5, broadwell_2698v4: 0.3, skylake_6148: 0.2}",
    "population.jobs=4000",
    "population.common_jobs=1846",
)
COLUMNS = [
    "period", "job", "machine", "weight", "value", "instance", "shard", "rack", "platform", "present_s", "cpu_s", "slot"
]  # fmt: skip
WHOLE, KEPT = 20, 20
"""Cells of which all slots are written, and how many slots of each further one, with their shards' past elsewhere."""
REMEMBERED = 100
"""Cells of a fleet up to which it is known what the pair's shards did in other slots: memory allows no more."""
GAIN_LOG_SD = 0.5
POWER = 0.95
CONFIDENCE = 0.95
TIMES = float((norm.ppf(POWER) + norm.ppf(0.5 + CONFIDENCE / 2)) / norm.ppf(0.5 + CONFIDENCE / 2))
"""Least change with that power over the half-width."""
PILOT = 5


def simulate(number: int, name: str, seed: int, folder: Path) -> Path:
    """Return the file of a cell's two weeks, a group of rows for each slot; it is made unless it is there."""
    file = folder / f"{name}.parquet"
    if file.exists():
        return file
    scenario = load("fortnight", settings(list(WORLD)))
    if not isinstance(scenario, Scenario):
        raise SystemExit("fortnight is no fleet")
    windows = tuple(Window(f"day.{day:02}", day * DAY_S, (day + 1) * DAY_S) for day in range(2 * WEEK))
    world = replace(alone(scenario, cells(1, number + 1)[number]), seed=seed, feature=None)
    day = prepare(replace(world, recording=Recording(windows=windows)))
    table = observations(day, nowhere(day))
    table["period"] = np.rint(table["period"] / DAY_S).astype(np.int64)
    fleet = StratifiedFleet.of(table[table["period"] < WEEK])
    slot = pd.Series(cut(fleet, SLOTS, seed=seed).slot, fleet.names)
    table["slot"] = slot.reindex(table["machine"]).fillna(-1).astype(np.int64).to_numpy()
    jobs = job_quotas(day).assign(name=list(day.jobs.names))
    jobs["job"] = [int.from_bytes(blake2b(job.encode(), digest_size=7).digest(), "big") for job in jobs["name"]]
    table["job"] = jobs["job"].to_numpy()[table["job"]]
    for column in ("machine", "instance", "shard", "rack"):
        table[column] += number << 32
    part = file.with_suffix(f".{os.getpid()}")
    schema = pa.Schema.from_pandas(table[COLUMNS], preserve_index=False)
    with pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for slot_number in range(SLOTS if number < WHOLE else KEPT):
            rows = table.loc[table["slot"] == slot_number, COLUMNS]
            writer.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False), len(rows) or 1)
        if number >= WHOLE:
            known, past = (table["slot"] < KEPT, table["period"] < WEEK)
            served = np.isin(shards_of(table), np.unique(shards_of(table[known & ~past])))
            rows = table.loc[served & past & ~known, COLUMNS]
            writer.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False), len(rows) or 1)
    jobs[["job", "quota", "instances"]].to_parquet(folder / f"{name}.jobs")
    part.rename(file)
    return file


def simulated(count: int, folder: Path, processes: int) -> list[Path]:
    """Return the files of so many cells."""
    folder.mkdir(parents=True, exist_ok=True)
    files = list[Path]()
    with ProcessPoolExecutor(processes) as pool:
        wanted = [pool.submit(simulate, k, *cell, folder) for k, cell in enumerate(cells(1, count))]
        for done in wanted:
            files.append(done.result())
            print(f"\rsimulated {len(files)} of {count} cells", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return files


def fleet_jobs(files: Sequence[Path]) -> pd.DataFrame:
    """Return job, quota, instances of the whole fleet, and the gain g_j of each job."""
    jobs = pd.concat([pd.read_parquet(file.with_suffix(".jobs")) for file in files])
    jobs = jobs.groupby("job", as_index=False)[["quota", "instances"]].sum()
    gain = [float(stream(int(job) % 2**32, "gain").normal(0.0, GAIN_LOG_SD)) for job in jobs["job"]]
    return jobs.assign(gain=np.exp(np.array(gain) - 0.5 * GAIN_LOG_SD**2))


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """A fleet's files, and its past over so many days, with a number for each job's shard."""

    files: Sequence[Path]
    jobs: pd.DataFrame
    days: int
    past: pd.DataFrame
    shards: Ints
    slots: Ints
    """The slot that has each number, of the past too: [cell, number]."""

    @classmethod
    def of(cls, files: Sequence[Path], days: int) -> "Fleet":
        """Read the past."""
        within = [("period", ">=", WEEK - days), ("period", "<", WEEK)]
        read = files if len(files) <= REMEMBERED else files[:0]
        tables = [pd.DataFrame(columns=COLUMNS), *(pd.read_parquet(file, filters=within) for file in read)]
        past = pd.concat(tables[1:] or tables, ignore_index=True)
        numbers = np.tile(np.arange(SLOTS if len(files) <= WHOLE else KEPT), (len(files), 1))
        return cls(files, fleet_jobs(files), days, past, shards_of(past), numbers)

    def turned(self, turn: int) -> "Fleet":
        """Return the fleet with its slots numbered by chance within each cell; turn 0 has the numbers of the files."""
        if turn == 0:
            return self
        return replace(self, slots=stream(turn, "slots of cells").permuted(self.slots, axis=1))

    def rows(self, slots: Sequence[int]) -> pd.DataFrame:
        """Return the observations of some slots, and what the shards that they serve did in other slots before."""
        groups = self.slots[:, list(slots)]
        tables = [
            pq.ParquetFile(file).read_row_groups(of.tolist()).to_pandas()
            for file, of in zip(self.files, groups, strict=True)
        ]
        tables = [
            rows.assign(slot=pd.Series(slots, of).loc[rows["slot"]].to_numpy()) if len(rows) else rows
            for rows, of in zip(tables, groups, strict=True)
        ]
        own = pd.concat(tables, ignore_index=True)
        own = own[own["period"].between(WEEK - self.days, WEEK + self.days - 1)]
        served = np.unique(shards_of(own[own["period"] >= WEEK]))
        if self.past.empty:
            return pd.DataFrame(own)
        elsewhere = np.isin(self.shards, served) & ~self.past["machine"].isin(own["machine"].unique()).to_numpy()
        both: pd.DataFrame = pd.concat([own, self.past[elsewhere]], ignore_index=True)
        return both


def shards_of(rows: pd.DataFrame) -> Ints:
    """Return a number for each row's shard."""
    with np.errstate(over="ignore"):
        return np.asarray(rows["job"].to_numpy() * 1_000_003 + rows["shard"].to_numpy())


def strata_of(rows: pd.DataFrame) -> "pd.Series[int]":
    """Return each machine's platform in its cell, numbered."""
    machines = rows.drop_duplicates("machine")
    names = machines["platform"].astype(str) + "/" + (machines["machine"] // (1 << 32)).astype(str)
    return pd.Series(pd.factorize(names)[0], machines["machine"])


def compared(rows: pd.DataFrame, jobs: pd.DataFrame, having: Sequence[int], change: float) -> tuple[float, float]:
    """Return what the estimator says where the slots `having` got a change, and its half-width."""
    treated = rows["slot"].isin(having).to_numpy() & (rows["period"] >= WEEK).to_numpy()
    gain = jobs.set_index("job")["gain"].reindex(rows["job"]).to_numpy()
    value = rows["value"].to_numpy() * np.where(treated, 1.0 + change * gain, 1.0)
    study = Study.of(rows.assign(value=value, treated=treated.astype(np.int64)), jobs[["job", "quota", "instances"]])
    answer = InSlots(Adjusted(), strata_of(rows)).many(study.cells, study.treated[None])
    return float(answer.change[0]), float(answer.margin(CONFIDENCE)[0])


def experiments(available: int, merged: int, controls: int, most: int) -> list[tuple[list[int], list[int]]]:
    """Return the treated slots and the controls of experiments with `merged` treated slots each, `most` at most.

    No slot is treated in two experiments, or treated in one and a control in another. With as many controls as treated
    slots no two experiments share any; with more, experiments take their controls in turn from half of the slots.
    """
    if controls == 1:
        first = range(0, available - 2 * merged + 1, 2 * merged)
        return [(list(range(at, at + merged)), list(range(at + merged, at + 2 * merged))) for at in first][:most]
    half = available // 2
    wanted = controls * merged
    if wanted > available - half:
        return []
    turn = half + (np.arange(half // merged)[:, None] * wanted + np.arange(wanted)) % (available - half)
    return [(list(range(k * merged, (k + 1) * merged)), turn[k].tolist()) for k in range(half // merged)][:most]


def judged(fleet: Fleet, chosen: Sequence[tuple[list[int], list[int]]], turns: int) -> dict[str, float]:
    """Return a row of the table: what experiments on slots said, each with its treated slots and its controls."""
    jobs, files = fleet.jobs, fleet.files
    draws = [(fleet.turned(turn), a, b) for turn in range(turns) for a, b in chosen]
    truth_of_one = float(np.average(jobs["gain"], weights=jobs["quota"]))
    widths = [compared(fleet.rows([*a, *b]), jobs, a, 0.0)[1] for a, b in chosen[:PILOT]]
    change = TIMES * float(np.median(widths))
    said = list[tuple[float, float]]()
    for turned, a, b in draws:
        said.append(compared(turned.rows([*a, *b]), jobs, a, change / truth_of_one))
        print(f"\r{len(said)} of {len(draws)} experiments", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    estimate, width = np.array(said).T
    off = estimate - change
    return {
        "machines": len(files) * CELL,
        "slot_machines": len(files) * CELL * len(chosen[0][0]) // SLOTS,
        "controls": len(chosen[0][1]) // len(chosen[0][0]),
        "days": fleet.days,
        "experiments": len(said),
        "half_width": float(np.median(width)),
        "least_change": change,
        "found": float((estimate - width > 0).mean()),
        "covers": float((np.abs(off) <= width).mean()),
        "error_over_stated": float(np.sqrt((off**2).mean()) / np.sqrt((width**2).mean()) * norm.ppf(0.975)),
    }


def told(row: dict[str, float]) -> str:
    """Return a line of the table."""
    sizes = f"{row['machines']:>11,} {row['slot_machines']:>8,} {row['controls']:>9} {row['days']:>5}"
    widths = f"{row['experiments']:>6} {row['half_width']:>11.3%} {row['least_change']:>13.3%}"
    return f"{sizes} {widths} {row['found']:>7.0%} {row['covers']:>7.0%} {row['error_over_stated']:>13.2f}"


def table(asked: argparse.Namespace) -> Iterator[dict[str, float]]:
    """Yield the rows, and print them."""
    sizes = list(map(int, asked.machines.split(",")))
    print(f"{'machines':>11} {'of slot':>8} {'controls':>9} {'days':>5} {'number':>6} {'half-width':>11}", end="")
    print(f" {'least change':>13} {'found':>7} {'covers':>7} {'error/stated':>13}")
    for machines in sizes:
        files = simulated(machines // CELL, asked.folder, asked.processes)
        for days in map(int, asked.days.split(",")):
            fleet = Fleet.of(files, days)
            available = SLOTS if len(files) <= WHOLE else KEPT
            for share, controls in product(*(map(int, of.split(",")) for of in (asked.shares, asked.controls))):
                chosen = experiments(available, share, controls, asked.pairs)
                if not chosen:
                    print(f"{share}% against {controls} times as many: {available} slots are too few", file=sys.stderr)
                    continue
                row = judged(fleet, chosen, asked.turns)
                print(told(row), flush=True)
                yield row


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", default="10000,100000", help=f"of the fleets, in whole cells of {CELL:,}")
    parser.add_argument("--shares", default="1,5", help="of the fleet that a slot is, in percent")
    parser.add_argument("--controls", default="1", help="slots of controls for each treated one")
    parser.add_argument("--days", default="1,2,4,7", help="of the study, and of the past before it")
    parser.add_argument("--pairs", type=int, default=SLOTS // 2, help="experiments, at most")
    parser.add_argument("--turns", type=int, default=1, help="times that the slots of the cells are numbered anew")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("runs/least_change"))
    parser.add_argument("--csv", type=Path, help="file for the table")
    asked = parser.parse_args()
    rows = pd.DataFrame(list(table(asked)))
    if asked.csv:
        rows.to_csv(asked.csv, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
