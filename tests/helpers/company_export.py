"""An export as a company has one: its own column names, CPU limits as quantities, time stamps, and bad cells.

It shares no code with the simulated world. Services differ in level and spread, machines in a factor of their own, days
in load; half of the machines run the new kernel in the second week, which makes every service faster by `CHANGE` or so.
"""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

CHANGE = 0.064
DAYS, MACHINES, SERVICES = 14, 2000, 60
BAD = 0.015
COLUMNS = {
    "period": "timestamp",
    "job": "service",
    "machine": "hostname",
    "instance": "task",
    "weight": "cpu_limit",
    "value": "instructions / cpu_time_ms",
    "treated": "kernel = '6.6.30'",
}
"""Our columns by theirs."""


def company_export(rows: int = 330_000, seed: int = 1, bad: float = BAD) -> pd.DataFrame:
    """Return an export of about so many rows, all cells as texts."""
    rng = np.random.default_rng(seed)
    tasks = rows // DAYS
    service = rng.choice(SERVICES, tasks, p=_zipf(SERVICES))
    machine = rng.integers(0, MACHINES, tasks)
    limit = rng.choice(["500m", "1", "2", "1500m", "4"], SERVICES)[service]
    level = rng.lognormal(14.0, 0.4, SERVICES)[service] * rng.lognormal(0.0, 0.05, MACHINES)[machine]
    level *= rng.lognormal(0.0, 0.08, tasks)
    gain = rng.normal(CHANGE, 0.02, SERVICES)[service]
    chosen = rng.permutation(MACHINES) < MACHINES // 2
    days = []
    for day in range(DAYS):
        new = chosen[machine] & (day >= DAYS // 2)
        cpu_ms = rng.lognormal(12.0, 0.5, tasks)
        value = level * (1 + 0.03 * np.sin(day)) * (1 + gain * new) * rng.lognormal(0.0, 0.03, tasks)
        stamp = pd.Timestamp("2026-03-06", tz="UTC") + pd.Timedelta(days=day, seconds=int(rng.integers(0, 3600)))
        days.append(
            pd.DataFrame(
                {
                    "timestamp": stamp.isoformat(),
                    "hostname": [f"host-{number:05d}.example" for number in machine],
                    "service": [f"svc-{number:03d}" for number in service],
                    "task": [f"task-{number}" for number in range(tasks)],
                    "cpu_limit": limit,
                    "cpu_time_ms": cpu_ms.round(0).astype(np.int64).astype(str),
                    "instructions": (value * cpu_ms).round(0).astype(np.int64).astype(str),
                    "kernel": np.where(new, "6.6.30", "6.1.85"),
                }
            )
        )
    table = pd.concat(days, ignore_index=True)
    for column, marks in (("instructions", ["", "N/A", "0"]), ("cpu_time_ms", ["", "N/A"])):
        wrong = rng.random(len(table)) < bad / 2
        table.loc[wrong, column] = rng.choice(marks, int(wrong.sum()))
    return table


def written(table: pd.DataFrame, path: Path, mark: str = ",") -> Path:
    """Write an export as CSV."""
    table.to_csv(path, index=False, sep=mark, quoting=csv.QUOTE_MINIMAL)
    return path


def in_our_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return the same experiment as pandas makes it by hand, bad rows left out."""
    instructions, cpu = (pd.to_numeric(table[name], errors="coerce") for name in ("instructions", "cpu_time_ms"))
    limit = table["cpu_limit"].str.removesuffix("m").astype(float)
    days = pd.to_datetime(table["timestamp"]).dt.tz_localize(None).to_numpy("datetime64[D]")
    ours = pd.DataFrame(
        {
            "period": days.astype(np.int64),
            "job": table["service"],
            "machine": table["hostname"],
            "instance": table["task"],
            "weight": np.where(table["cpu_limit"].str.endswith("m"), limit / 1000, limit),
            "value": instructions / cpu,
            "treated": (table["kernel"] == "6.6.30").astype(int),
        }
    )
    return ours[(instructions > 0) & (cpu > 0)].reset_index(drop=True)


def _zipf(count: int) -> np.ndarray:
    share = 1.0 / np.arange(1, count + 1)
    return share / share.sum()
