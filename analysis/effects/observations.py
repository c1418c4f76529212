"""Tables of observations: one row per instance's stay and period; read, checked, and taken together by stay."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.tables.cells import read_cells
from analysis.tables.columns import Field, not_used, read_table
from analysis.tables.faults import FileError, FileFault
from analysis.wsmeter.measurements import Reading, measurements
from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.metrics import MetricName

FIELDS = (
    Field("period", "real", above_zero=False),
    Field("job", "text"),
    Field("machine", "text"),
    Field("weight", "real"),
    Field("value", "real"),
    Field("treated", "flag", required=False),
    Field("instance", "text", required=False),
    Field("residence", "text", required=False),
    Field("shard", "text", required=False),
    Field("rack", "text", required=False),
    Field("domain", "text", required=False),
    Field("platform", "text", required=False),
    Field("present_s", "real", required=False),
    Field("cpu_s", "real", above_zero=False, required=False),
    Field("exposure", "real", required=False),
    Field("mean_frequency_hz", "real", required=False),
    Field("clock_hz", "real", required=False),
    Field("cycles", "real", required=False),
)
"""Columns of a table of observations; others are left alone."""
_LENIENT = [replace(field, lenient=field.kind == "real" and field.name != "period") for field in FIELDS]
REQUIRED = ("period", "job", "machine", "weight", "value", "treated")
IDENTITY = ("period", "job", "machine", "instance", "shard")
"""Columns that say which observation a row is."""


def read_observations(path: Path, *, strict: bool = True) -> Reading:
    """Read the observations of a fleet from one file.

    A table without `treated` is of a fleet in which nothing has the feature. An instance may have several rows in a
    period, one for each stay; what agrees in every column is there twice.

    Parameters
    ----------
    path : CSV or Parquet, gzipped or not; columns period (number of a day, or seconds), job, machine, weight (CPU
        quota), value (performance), and perhaps treated (0 or 1, true or false), instance, shard, rack,
        domain (machines that feel each other, as behind one power budget), platform, present_s, cpu_s, exposure,
        mean_frequency_hz, clock_hz, cycles
    strict : whether amounts that cannot be used and rows that are there twice are faults; otherwise they are left in,
        for guards to judge

    Returns
    -------
    Reading
        The observations, and notes on what was missing or not used.

    Raises
    ------
    FileError
        With every fault, as `analysis.tables.columns.read_table`; or with the rows of a period that lies between the
        others, which are of equal length.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "today.csv"
    ...     _ = file.write_text("period,job,machine,weight,value,treated\\n0,a,m1,2,1.5,0\\n1,a,m1,2,1.6,1\\n")
    ...     read_observations(file).table
       period job machine  weight  value  treated
    0     0.0   a      m1     2.0    1.5        0
    1     1.0   a      m1     2.0    1.6        1
    """
    given = read_table(path, FIELDS, _whole_row) if strict else read_table(path, _LENIENT)
    stray = between(given["period"].to_numpy(dtype=np.float64))
    if stray.any():
        lines, column = read_cells(path).lines, 1 + list(given.columns).index("period")
        between_others = ((int(lines[row]), given["period"].iloc[row]) for row in np.flatnonzero(stray))
        problem = "should be as far from the next period as others are"
        raise FileError([FileFault(line, column, "period", problem, f"{period:g}") for line, period in between_others])
    known = [wanted.name for wanted in FIELDS if wanted.name in given.columns]
    table, notes = given[known].copy(), list(not_used(given, known))
    if "treated" not in table:
        table["treated"] = 0
        notes.append("no column treated: nothing has the feature")
    table["treated"] = table["treated"].astype(np.int64)
    return Reading(table, tuple(notes))


def between(period: Floats) -> Bools:
    """Return which rows are of a period between the others: neither side is a whole number of steps away.

    A step is what lies between half of the neighbours or more; where nothing does, no row is.
    """
    periods, at = np.unique(period, return_inverse=True)
    gaps = np.diff(periods)
    kinds, counts = np.unique(gaps, return_counts=True)
    if not len(gaps) or 2 * counts.max() < len(gaps):
        return np.zeros(len(period), np.bool_)
    steps = gaps / kinds[counts.argmax()]
    uneven = np.abs(steps - np.round(steps)) > 1e-6
    lonely = np.append(False, uneven) & np.append(uneven, False)
    return np.asarray(lonely[at], dtype=np.bool_)


def joined(tables: Mapping[str, pd.DataFrame], *, strict: bool = True) -> pd.DataFrame:
    """Return the observations of several files as one table, with the columns that all of them have, and `file`.

    Parameters
    ----------
    tables : by the name of the file
    strict : whether an observation may stand in one file only

    Raises
    ------
    ValueError
        If an observation stands in two files.

    Examples
    --------
    >>> row = {"period": [0.0], "job": ["a"], "machine": ["m1"], "weight": [2.0], "value": [1.5], "treated": [0]}
    >>> first = pd.DataFrame(row)
    >>> joined({"mon.csv": first, "tue.csv": first.assign(period=1.0)})["file"].tolist()
    ['mon.csv', 'tue.csv']
    """
    shared = [name for name in next(iter(tables.values())).columns if all(name in table for table in tables.values())]
    whole = pd.concat([table[shared].assign(file=name) for name, table in tables.items()], ignore_index=True)
    if strict and len(tables) > 1:
        number = whole.groupby(shared, sort=False, observed=True).ngroup().to_numpy()
        _, first = np.unique(number, return_index=True)
        origin = whole["file"].to_numpy()
        twice = np.flatnonzero(origin != origin[first[number]])
        if len(twice):
            again, before = twice[0], first[number[twice[0]]]
            row_name = ", ".join(f"{name} {whole[name].iloc[again]}" for name in IDENTITY if name in shared)
            raise InputError(
                f"{row_name} stands in {origin[again]} and in {origin[before]}: {len(twice)} rows stand in two"
            )
    return whole


def of_run(
    counters: pd.DataFrame,
    instances: pd.DataFrame,
    windows: pd.DataFrame,
    treated: pd.DataFrame | None = None,
    metric: MetricName = "ips",
) -> pd.DataFrame:
    """Return the observations of a simulated fleet: counters per stay and window.

    Parameters
    ----------
    counters : a run's table of counters
    instances : a run's table of instances
    windows : window, start_s: the counting windows to take, one period each
    treated : machine, start_s, end_s: when machines had the feature; nothing has it otherwise
    metric : a name in `models.fleet.metrics.METRICS`

    Returns
    -------
    DataFrame
        period (seconds), job, machine, weight, value, treated (the whole of the period), instance, shard, rack,
        platform, present_s, cpu_s, exposure (what the value is per), mean_frequency_hz; rows without CPU time, and
        those whose machine had the feature for part of the period, are left out.

    Raises
    ------
    ValueError
        If there is no such metric, or no row in the windows.

    Examples
    --------
    >>> stay = {"residence": [0], "job": 3, "machine": 5, "quota_vcpu": 2.0, "rack": 1, "instance": 0, "shard": 0}
    >>> counted = {"residence": [0], "window": "d0", "instructions": 6.0, "cycles": 4.0, "cpu_s": 2.0, "wall_s": 9.0}
    >>> windows = pd.DataFrame({"window": ["d0"], "start_s": [0.0], "end_s": [9.0]})
    >>> observations = of_run(pd.DataFrame(counted), pd.DataFrame(stay | {"platform": "x"}), windows)
    >>> observations[["period", "job", "machine", "value"]].values.tolist()
    [[0.0, 3.0, 5.0, 3.0]]
    """
    columns = ["residence", "window", "wall_s", "cpu_s", "mean_frequency_hz", "instance", "shard", "rack", "platform"]
    keep = [name for name in columns if name in counters or name in instances]
    rows = measurements(
        counters, instances, metric, list(windows["window"]), least_presence=0.0, busy=True, keep=keep
    ).merge(windows, on="window")
    if rows.empty:
        raise InputError(f"windows must be of {', '.join(map(str, counters['window'].unique())) or 'none'}")
    state = _state(rows, treated)
    rows = rows.rename(columns={"start_s": "period", "wall_s": "present_s"}).assign(
        treated=(state == 1.0).astype(np.int64)
    )
    names = ["period", "job", "machine", "weight", "value", "treated", "instance", "shard", "rack", "platform"]
    names += ["present_s", "cpu_s", "exposure", *(["mean_frequency_hz"] if "mean_frequency_hz" in rows else [])]
    return rows.loc[np.isin(state, (0.0, 1.0)), names].reset_index(drop=True)


def _state(rows: pd.DataFrame, treated: pd.DataFrame | None) -> Floats:
    """Return the share of each row's period in which its machine had the feature; (N,)."""
    share = np.zeros(len(rows))
    if treated is None or treated.empty:
        return share
    spans = rows[["machine", "start_s", "end_s"]].drop_duplicates().reset_index(drop=True)
    both = spans.merge(treated, on="machine", suffixes=("", "_on"))
    inside = np.minimum(both["end_s"], both["end_s_on"]) - np.maximum(both["start_s"], both["start_s_on"])
    both["on"] = np.maximum(inside, 0.0) / (both["end_s"] - both["start_s"])
    shares = both.groupby(["machine", "start_s"])["on"].sum()
    of_rows = shares.reindex(pd.MultiIndex.from_frame(rows[["machine", "start_s"]])).fillna(0.0)
    return np.asarray(of_rows.round(9).to_numpy(dtype=np.float64))


def _whole_row(names: Sequence[str]) -> Sequence[str]:
    return names


def checked(observations: pd.DataFrame) -> pd.DataFrame:
    """Return a table of observations whose columns are there and make sense."""
    missing = [name for name in REQUIRED if name not in observations.columns]
    if missing:
        raise InputError(f"the table lacks {', '.join(missing)}")
    table = observations.reset_index(drop=True)
    for name in ("period", "job", "machine", "instance", "shard"):
        if name in table and table[name].isna().any():
            raise InputError(f"{name} must not be missing, it is in row {int(table[name].isna().argmax())}")
    for name in ("weight", "value", "present_s"):
        if name in table:
            _finite(table, name, "above 0", lambda numbers: numbers > 0)
    for name in ("exposure", "cpu_s"):
        if name in table:
            _finite(table, name, "of 0 or more", lambda numbers: numbers >= 0)
    if not table["treated"].isin([0, 1]).all():
        raise InputError(f"treated must be 0 or 1, got {table.loc[~table['treated'].isin([0, 1]), 'treated'].iloc[0]}")
    table["treated"] = table["treated"].astype(bool)
    together, first = numbered([table["machine"], table["period"]])
    having = table["treated"].to_numpy(dtype=np.bool_)
    if (mixed := having != having[first][together]).any():
        machine, period = table.loc[int(mixed.argmax()), ["machine", "period"]]
        raise InputError(f"machine {machine} is with and without the feature in period {period}")
    return table


def _finite(table: pd.DataFrame, name: str, what: str, right: Callable[[Floats], Bools]) -> None:
    numbers = table[name].to_numpy(dtype=np.float64)
    wrong = ~(np.isfinite(numbers) & right(numbers))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"{name} must be a finite number {what}, got {numbers[at]} in row {at}")


def stays(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per stay: its periods taken together, each by its exposure, and its presence.

    Exposure is what the value is per: cpu_s for a rate per CPU second; else the time present; else every period alike.
    Presence is the time present relative to the longest stay's, or the number of periods.

    Examples
    --------
    >>> row = {"job": "a", "machine": 1, "instance": 7, "weight": 1.0, "treated": False}
    >>> stays(pd.DataFrame([row | {"period": 0, "value": 1.0}, row | {"period": 1, "value": 3.0}]))["value"].tolist()
    [2.0]
    """
    keys = identity(table)
    by = exposure(table)
    number, first = numbered([table[name] for name in keys])
    columns = [name for name in ("job", "machine", "instance", "shard", "rack", "weight", "treated") if name in table]
    rows = table.iloc[first][columns].reset_index(drop=True)
    total = np.bincount(number, by)
    rows["value"] = np.bincount(number, by * table["value"].to_numpy(dtype=np.float64)) / total
    present_s = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    present = np.bincount(number, present_s)
    return rows.assign(presence=present / present.max())


def identity(table: pd.DataFrame) -> list[str]:
    """Return the columns that tell one stay from another; without an instance or a shard, job and machine do."""
    return [name for name in ("job", "machine", "instance", "shard") if name in table]


def exposure(table: pd.DataFrame) -> Floats:
    """Return what each row's value counts by when periods are taken together; (N,), above 0."""
    for name in ("exposure", "cpu_s", "present_s"):
        if name in table:
            return np.asarray(np.maximum(table[name].to_numpy(dtype=np.float64), 1e-12))
    return np.ones(len(table))


def fleet_of(past: pd.DataFrame, study: pd.DataFrame, jobs: pd.DataFrame | None) -> pd.DataFrame:
    """Return the fleet's jobs: job, quota and scale, which is the job's mean before, or without the feature, or at all.

    Parameters
    ----------
    past, study : checked observations; one may be empty
    jobs : job, quota of the whole fleet; without it a job weighs as its rows in the study do
    """
    if jobs is None:
        stays_ = stays(study)
        quotas = (
            stays_.assign(quota=stays_["weight"] * stays_["presence"]).groupby("job")[["quota"]].sum().reset_index()
        )
    else:
        quotas = _checked_jobs(jobs)
    scale = pd.Series(np.nan, index=quotas["job"])
    for known in (past, study[~study["treated"]], study):
        if len(known):
            scale = scale.fillna(_means(stays(known), ["job"], "value"))
    return quotas.assign(scale=scale.fillna(1.0).to_numpy())


def _checked_jobs(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return job and quota of the whole fleet, each job once."""
    missing = [name for name in ("job", "quota") if name not in jobs.columns]
    if missing:
        raise InputError(f"the table of jobs lacks {', '.join(missing)}")
    table = jobs[["job", "quota"]].reset_index(drop=True)
    twice = table["job"].isna() | table["job"].duplicated()
    if twice.any():
        raise InputError(
            f"each job must be there once, {table['job'][twice.argmax()]} is again in row {twice.argmax()}"
        )
    _finite(table, "quota", "of 0 or more", lambda numbers: numbers >= 0)
    return table


def _means(table: pd.DataFrame, keys: list[str], what: str) -> pd.Series:
    """Return means over groups of stays, by presence."""
    sums = table.assign(part=table["presence"] * table[what]).groupby(keys, observed=True)[["part", "presence"]].sum()
    return sums["part"] / sums["presence"]


def scale_of(fleet: pd.DataFrame) -> "pd.Series[float]":
    """Return the scale of each job, indexed by job.

    Examples
    --------
    >>> scale_of(pd.DataFrame({"job": ["a"], "quota": [1.0], "scale": [2.0]}))["a"]
    np.float64(2.0)
    """
    return fleet.set_index("job")["scale"]


def racks_of(table: pd.DataFrame) -> pd.Series | None:
    """Return the rack of each machine, indexed by machine; nothing where the table does not say.

    Examples
    --------
    >>> racks_of(pd.DataFrame({"machine": [1, 1, 2], "rack": [7, 7, 8]})).to_dict(), racks_of(pd.DataFrame())
    ({1: 7, 2: 8}, None)
    """
    return table.groupby("machine")["rack"].first() if "rack" in table else None


_MOST = 2**62
"""Numbers of combinations must stay below this."""


def numbered(columns: Sequence[pd.Series | Ints]) -> tuple[Ints, Ints]:
    """Return the number of each row's combination of values, in order of appearance, and where each is first.

    Parameters
    ----------
    columns : one at least, without missing values
    """
    number, total = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        part, values = pd.factorize(column)
        if total * len(values) >= _MOST:
            number, combinations = pd.factorize(number)
            total = len(combinations)
        number, total = number * len(values) + part, total * len(values)
    number, combinations = pd.factorize(number)
    first = np.empty(len(combinations), dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return number.astype(np.int64), first
