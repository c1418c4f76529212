"""Measurement tables: one row per measured instance, from a run's tables or from files of a real fleet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis.tables.cells import Source
from analysis.tables.columns import BY_EXPRESSION, BY_SELECT, Field, Remedies, not_used, read_rows
from analysis.tables.faults import FileError, FileFault
from analysis.tables.recipe import AS_IT_IS, PERIOD, Recipe
from models.arrays import Ints
from models.errors import InputError
from models.fleet.metrics import METRICS

__all__ = [
    "FileError",
    "FileFault",
    "Reading",
    "measurements",
    "read_jobs",
    "read_measurements",
    "read_plan",
]

LEAST_PRESENCE = 0.1
"""Share of a window from which on a stay is long enough to measure."""
PLACES = ("rack", "instance", "residence", "feature")
"""Where a stay was, beside its job and machine, and whether it had the feature."""

MEASUREMENTS = (
    Field("job", "text", required=False),
    Field("machine", "text", required=False),
    Field("weight", "real", required=False),
    Field("value", "real", above_zero=False),
    Field("exposure", "real", required=False),
    Field("instance", "text", required=False),
    Field("residence", "text", required=False),
)
_PERIOD = Field(PERIOD, "real", above_zero=False)
"""Of a table whose points in time become periods."""
JOBS = (Field("job", "text"), Field("quota", "real"), Field("instances", "count"))
PLAN = (
    Field("job", "text"),
    Field("weight", "real", above_zero=False),
    Field("mean", "real"),
    Field("std", "real", above_zero=False),
    Field("instances", "count"),
    Field("cost", "real", above_zero=False),
)
_SAY_NOTHING = {"job", "weight", "value", "exposure"}
"""Columns that are rightly equal in two rows: alone they do not tell that one row was written twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A table read from a file, and what a reader should know about how it was understood."""

    table: pd.DataFrame
    notes: tuple[str, ...]
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Rows that a recipe leaves out, with the columns line and reason."""
    lines: Ints | None = None
    """(N,) of the file that the table's rows stand in, if it is one."""


def measurements(
    counters: pd.DataFrame,
    instances: pd.DataFrame,
    metric: str,
    window: str | Sequence[str] = "all",
    *,
    least_presence: float = LEAST_PRESENCE,
    busy: bool = False,
    keep: Sequence[str] = PLACES,
) -> pd.DataFrame:
    """Return the measurement table of a fleet: its counters per stay, joined with where the stays were.

    An instance that moved has one row per stay. Stays of which the metric has nothing to divide by (no cycles, no CPU
    time) are left out. This is the only join of counters and instances; what callers want otherwise they say.

    Parameters
    ----------
    counters : a run's table of counters, per residence and window
    instances : a run's table of instances, per residence
    metric : a name in `models.fleet.metrics.METRICS`
    window : name of a counting window; `rest.*` stands for all whose names begin with `rest.`, summed per stay; a list
        of names for several windows, a row each
    least_presence : least share of the window's length (the longest stay's), 0..1; shorter stays are left out
    busy : whether stays that counted nothing, or had no CPU time, are left out too
    keep : further columns of either table that the result has

    Returns
    -------
    DataFrame
        job, machine, weight (CPU quota, hardware threads), value (per cycle or per second), exposure (cycles or
        seconds, what a machine's ratio weighs by), and those of `keep`.

    Raises
    ------
    InputError
        If the metric or the window is not there; the message lists those that are.

    Examples
    --------
    >>> stay = {"residence": [0], "job": 3, "machine": 5, "quota_vcpu": 2.0, "rack": 1, "instance": 0, "feature": True}
    >>> counted = {"residence": [0], "window": "all", "instructions": 6.0, "cycles": 4.0, "wall_s": 10.0}
    >>> measurements(pd.DataFrame(counted), pd.DataFrame(stay), "ipc")[["job", "value", "exposure"]]
       job  value  exposure
    0    3    1.5       4.0
    """
    if metric not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {metric}")
    ratio = METRICS[metric]
    counted = _of_windows(counters, window)
    longest = (
        counted["wall_s"].max() if isinstance(window, str) else counted.groupby("window")["wall_s"].transform("max")
    )
    enough = (counted["wall_s"] >= least_presence * longest) & (counted[ratio.per] > 0)
    if busy:
        enough &= (counted[ratio.counted] > 0) & (counted["cpu_s"] > 0)
    places = ["residence", "job", "machine", "quota_vcpu"]
    known = [*places, *(name for name in keep if name in instances.columns and name not in places)]
    one_window = isinstance(window, str)
    rows = counted[enough].merge(
        instances[known], on="residence", validate="one_to_one" if one_window else "many_to_one"
    )
    table: dict[str, Any] = {
        "job": rows["job"],
        "machine": rows["machine"],
        "weight": rows["quota_vcpu"],
        "value": rows[ratio.counted] / rows[ratio.per],
        "exposure": rows[ratio.per],
    }
    return pd.DataFrame(table | {name: rows[name] for name in keep})


def _of_windows(counters: pd.DataFrame, window: str | Sequence[str]) -> pd.DataFrame:
    """Return the counters of a window, of all whose names begin alike, summed per stay, or of several."""
    if not isinstance(window, str):
        return counters[counters["window"].isin(list(window))]
    if window.endswith("*"):
        chosen = counters[counters["window"].str.startswith(window[:-1])]
        counted = chosen.drop(columns="window").groupby("residence", as_index=False).sum().assign(window=window)
    else:
        counted = counters[counters["window"] == window]
    if counters.empty:
        raise InputError(f"no stay has counters, so nothing is measured in window {window}")
    if counted.empty:
        names = ", ".join(map(str, counters["window"].unique()))
        raise InputError(f"window must be one of {names}, got {window}")
    return counted


def read_measurements(source: Source, recipe: Recipe = AS_IT_IS, also: Sequence[str] = ()) -> Reading:
    """Read an instance table, or a table of one value per machine, of a real fleet.

    Only `value` is required. Without `job` all rows are one job, without `machine` every row is a machine of its own,
    without `weight` every row weighs 1. Further columns are allowed and named in a note.

    Parameters
    ----------
    source : CSV or Parquet, gzipped or not, a query, or a frame; columns job, machine, weight, value and perhaps
        exposure, instance, residence
    recipe : how the table's columns become these
    also : further columns that the result has, as they are, if the table has them

    Returns
    -------
    Reading
        The measurement table, and notes on what was missing or not used.

    Raises
    ------
    FileError
        With every fault. A row is repeated when its residence, or its job, machine and instance, or (without such
        identifiers) all its columns stand in an earlier row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "latency.csv"
    ...     _ = file.write_text("value,VM_id\\n89.0,0\\n96.5,1\\n")
    ...     read_measurements(file).table
       job machine  weight  value
    0  all       0     1.0   89.0
    1  all       1     1.0   96.5
    """
    fields = MEASUREMENTS if recipe.period_s is None else (*MEASUREMENTS, _PERIOD)
    rows = read_rows(source, fields, _identity, recipe, Remedies(BY_EXPRESSION, by_query=True))
    known = [*(wanted.name for wanted in MEASUREMENTS), *also]
    notes = [*rows.notes, *_absent(rows.table), *(not_used(rows.table, known) if recipe.takes_as_is else ())]
    return Reading(_with_defaults(rows.table, also), tuple(notes), rows.left_out)


def read_jobs(source: Source) -> Reading:
    """Read a fleet's jobs: columns job, quota (CPU quota of the whole job), instances.

    Parameters
    ----------
    source : CSV or Parquet, gzipped or not, a query, or a frame

    Raises
    ------
    FileError
        With every fault; a job may stand there once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "jobs.csv"
    ...     _ = file.write_text("job,quota,instances\\nsearch,30,10\\n")
    ...     read_jobs(file).table
          job  quota  instances
    0  search   30.0         10
    """
    return _one_row_per_job(source, JOBS, BY_SELECT)


def read_plan(source: Source, recipe: Recipe = AS_IT_IS) -> Reading:
    """Read the table that a plan is made from: columns job, weight, mean, std, instances, cost.

    Parameters
    ----------
    source : CSV or Parquet, gzipped or not, a query, or a frame; mean and std in the same units, instances the most
        that can be observed, cost that of observing one
    recipe : how the table's columns become these

    Raises
    ------
    FileError
        With every fault; a job may stand there once.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("job,weight,mean,std,instances,cost\\ncompute,0.5,100,7.4,1500,1\\n")
    ...     read_plan(file).table
           job  weight   mean  std  instances  cost
    0  compute     0.5  100.0  7.4       1500   1.0
    """
    return _one_row_per_job(source, PLAN, BY_EXPRESSION, recipe)


def _one_row_per_job(source: Source, fields: Sequence[Field], missing: str, recipe: Recipe = AS_IT_IS) -> Reading:
    remedies = Remedies(missing, by_query=True)
    rows = read_rows(source, fields, lambda names: ["job"] if "job" in names else [], recipe, remedies)
    table = rows.table
    known = [wanted.name for wanted in fields]
    table = table.assign(instances=table["instances"].astype("int64"))
    unused = not_used(table, known) if recipe.takes_as_is else ()
    return Reading(table[known], (*rows.notes, *unused), rows.left_out)


def _identity(names: Sequence[str]) -> Sequence[str]:
    """Return the columns that say which measurement a row is."""
    if "residence" in names:
        return ["residence"]
    if "instance" in names:
        return [name for name in ("job", "machine", "instance") if name in names]
    return names if set(names) - _SAY_NOTHING else []


def _with_defaults(given: pd.DataFrame, also: Sequence[str]) -> pd.DataFrame:
    table = given.copy(deep=False)
    if "job" not in given.columns:
        table["job"] = "all"
    if "machine" not in given.columns:
        table["machine"] = pd.Series(range(len(given))).astype(str)
    if "weight" not in given.columns:
        table["weight"] = 1.0
    names = [*(wanted.name for wanted in MEASUREMENTS), *also]
    return table[[name for name in names if name in table.columns]]


def _absent(given: pd.DataFrame) -> Iterator[str]:
    meaning = {
        "job": "all rows are one job",
        "machine": "every row is a machine of its own",
        "weight": "every row weighs 1",
    }
    yield from (f"no column {name}: {what}" for name, what in meaning.items() if name not in given.columns)
