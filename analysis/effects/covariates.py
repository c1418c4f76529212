"""What is known of a shard, of its machine and of how full that will be before the study: none of it can be an effect.

Performance in the past is taken apart into what belongs to the shard (its input), what belongs to the machine (its
silicon, its rack), and what its residents did to each other (power caps, shared caches), which follows how much they
are used to compute. So an instance that has moved is expected to do as its shard does on its new machine, filled as
that one is now. Placement must not depend on the feature.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.arrays import Floats, Ints

COVARIATE = "x"
"""Columns of covariates are named x0, x1, …"""
SHARD, MACHINE, LOAD, LOAD_SQUARE, LOAD_BEFORE, LOAD_BEFORE_SQUARE = (f"{COVARIATE}{number}" for number in range(6))
_SWEEPS = 30
_SHARD_PRIOR, _MACHINE_PRIOR = 0.05, 1.0
"""Stays of the whole past by which a shard's, and a machine's, effect is half known."""


@dataclass(frozen=True, slots=True)
class PastParts:
    """Additive parts of relative performance in the past."""

    unit: Floats
    """(U,) of each shard, or instance."""
    machine: Floats
    """(M,)"""
    load: Floats
    """(2,) slopes on the load and its square."""


def covariates(
    rows: pd.DataFrame,
    before: pd.DataFrame,
    study: pd.DataFrame,
    past: pd.DataFrame,
    fleet: pd.DataFrame,
    *,
    link: str = "shard",
    load: bool = True,
) -> pd.DataFrame:
    """Return the covariates of each stay of the study; 0 where nothing is known.

    x0: what its shard did in the past, other things equal; x1: what its machine did. x2 and x3: how busy the machine is
    expected to be while it is there, relative to the fleet's mean, and its square; x4 and x5: the same of the
    past, since a past of few periods cannot tell a slow machine from a full one.

    Parameters
    ----------
    rows, before : stays of the study and of the past, as `study.stays` makes them
    study, past : their observations by period
    fleet : job, scale
    link : shard: by job and shard, wherever that was served; own: by instance and machine; none: nothing is linked
    load : whether to tell x2 to x5

    Returns
    -------
    DataFrame
        In the order of `rows`; no column without a past.
    """
    scale = fleet.set_index("job")["scale"]
    known = before[before["job"].isin(scale.index)].reset_index(drop=True)
    if known.empty or link == "none":
        return pd.DataFrame(index=rows.index)
    keys = unit_of(rows, link)
    unit, units = pd.MultiIndex.from_frame(known[keys]).factorize()
    machine, machines = pd.factorize(known["machine"])
    loads = _loads(known, rows, past, study, has_shard=link == "shard" and "shard" in rows)
    deviation = (known["value"] / known["job"].map(scale) - 1.0).to_numpy(dtype=np.float64)
    presence = known["presence"].to_numpy(dtype=np.float64)
    parts = taken_apart(deviation, presence, unit, machine, loads[0] if load else None)
    of_unit = pd.Series(parts.unit, index=units).reindex(pd.MultiIndex.from_frame(rows[keys]))
    of_machine = pd.Series(parts.machine, index=machines).reindex(rows["machine"])
    columns = {SHARD: of_unit.fillna(0.0).to_numpy(), MACHINE: of_machine.fillna(0.0).to_numpy()}
    if load:
        past_load = np.bincount(machine, presence * loads[0]) / np.bincount(machine, presence)
        was = pd.Series(past_load, index=machines).reindex(rows["machine"]).fillna(0.0).to_numpy()
        columns |= {LOAD: loads[1], LOAD_SQUARE: loads[1] ** 2, LOAD_BEFORE: was, LOAD_BEFORE_SQUARE: was**2}
    return pd.DataFrame(columns, index=rows.index)


def unit_of(table: pd.DataFrame, link: str) -> list[str]:
    """Return the columns by which an instance is known again."""
    if link == "shard" and "shard" in table:
        return ["job", "shard"]
    return [name for name in ("job", "machine", "instance", "shard") if name in table]


def taken_apart(deviation: Floats, presence: Floats, unit: Ints, machine: Ints, load: Floats | None) -> PastParts:
    """Return the parts of stays' relative performance, each shrunk by how little of it was seen.

    Fitted by backfitting (Breiman and Friedman 1985); the parts of units and machines are random effects.

    Parameters
    ----------
    deviation : (N,) relative to the job's mean
    presence : (N,) 0..1
    unit, machine : (N,) numbers from 0
    load : (N,) of the machine while it was there, relative to the mean; None: not looked at
    """
    of_unit: Floats = np.zeros(unit.max() + 1)
    of_machine: Floats = np.zeros(machine.max() + 1)
    slope: Floats = np.zeros(2)
    columns = np.zeros((len(deviation), 2)) if load is None else np.stack([load, load**2], axis=1)
    root = np.sqrt(presence)
    totals = np.bincount(unit, presence) + _SHARD_PRIOR, np.bincount(machine, presence) + _MACHINE_PRIOR
    for _ in range(_SWEEPS):
        rest = deviation - columns @ slope
        of_machine = np.bincount(machine, presence * (rest - of_unit[unit])) / totals[1]
        of_unit = np.bincount(unit, presence * (rest - of_machine[machine])) / totals[0]
        if load is not None:
            left = deviation - of_unit[unit] - of_machine[machine]
            slope = np.linalg.lstsq(columns * root[:, None], left * root, rcond=None)[0].astype(np.float64)
    return PastParts(of_unit, of_machine, slope)


def _loads(
    known: pd.DataFrame, rows: pd.DataFrame, past: pd.DataFrame, study: pd.DataFrame, *, has_shard: bool
) -> tuple[Floats, Floats]:
    """Return how busy each stay's machine is expected to be while it is there, relative to the fleet's mean."""
    rates = _rates(past, has_shard=has_shard)
    then, now = (_load_of(table, rates, has_shard=has_shard) for table in (past, study))
    return _of_stays(known, then), _of_stays(rows, now)


def _rates(past: pd.DataFrame, *, has_shard: bool) -> pd.DataFrame:
    """Return how many CPU seconds a second each job, or each of its shards, used; or what they may use."""
    by = ["job", "shard"] if has_shard else ["job"]
    if "cpu_s" not in past or "present_s" not in past:
        return past.groupby(by, as_index=False).agg(rate=("weight", "mean"))
    sums = past.groupby(by, as_index=False)[["cpu_s", "present_s"]].sum()
    return sums.assign(rate=sums["cpu_s"] / sums["present_s"])[[*by, "rate"]]


def _load_of(table: pd.DataFrame, rates: pd.DataFrame, *, has_shard: bool) -> pd.DataFrame:
    """Return the rows of a table with the expected load of their machine and period, and how long they were there."""
    rate = table.merge(rates, on=["job", "shard"] if has_shard else ["job"], how="left")["rate"].to_numpy()
    whole = table["job"].map(rates.groupby("job")["rate"].mean()).to_numpy(dtype=np.float64)
    rate = np.where(np.isnan(rate), whole, rate)
    rate = np.where(np.isnan(rate), 1.0 if np.isnan(rate).all() else np.nanmean(rate), rate)
    present = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    busy = table.assign(part=rate * present).groupby(["machine", "period"])["part"].transform("sum").to_numpy()
    return table.assign(load=busy / np.average(busy, weights=present) - 1.0, there=present)


def _of_stays(stays: pd.DataFrame, table: pd.DataFrame) -> Floats:
    """Return the mean load of each stay over its periods; 0 if there is none."""
    keys = unit_of(stays, "own")
    sums = table.assign(part=table["there"] * table["load"]).groupby(keys, observed=True)[["part", "there"]].sum()
    load = (sums["part"] / sums["there"]).reindex(pd.MultiIndex.from_frame(stays[keys]))
    return np.asarray(load.fillna(0.0), dtype=np.float64)
