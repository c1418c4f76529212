"""Rows of an experiment's tables: checked, taken together by stay, and the fleet that they are of."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.errors import InputError

REQUIRED = ("period", "job", "machine", "weight", "value", "treated")


def checked(observations: pd.DataFrame) -> pd.DataFrame:
    """Return a table of observations whose columns are there and make sense.

    Raises
    ------
    ValueError, NotEnoughDataError
        As in `study.Study.of`.

    Examples
    --------
    >>> checked(pd.DataFrame({"period": [0]}))
    Traceback (most recent call last):
    ...
    models.errors.InputError: the table lacks job, machine, weight, value, treated
    """
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

    Raises
    ------
    ValueError
        If `jobs` makes no sense.

    Examples
    --------
    >>> row = {"job": "a", "machine": [1, 2], "weight": 2.0, "treated": False}
    >>> table = pd.DataFrame(row | {"value": [1.0, 3.0]})
    >>> fleet_of(table.iloc[:0], table, None).to_dict("records")
    [{'job': 'a', 'quota': 4.0, 'scale': 2.0}]
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

    Examples
    --------
    >>> numbered([pd.Series(["b", "a", "b"]), np.array([1, 1, 1])])
    (array([0, 1, 0]), array([0, 1]))
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
