"""The table of affinities that a profile gives, and the true one that a simulated fleet knows."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.affinity.calibration import ANSWERED, factors
from analysis.profiling.affinity.composite import composite
from analysis.profiling.affinity.pairs import BY, CLUSTER, ratio
from analysis.profiling.affinity.table import COUNTERS, Table
from analysis.profiling.asking import visits_of_fleet
from analysis.profiling.query import Query, QueryError, Where
from models.arrays import Floats

if TYPE_CHECKING:
    from analysis.profiling.database import Database

_FLEET: Where = (("collection", ("fleet",)),)


def table_of(database: "Database") -> pd.DataFrame:
    """Return the table of affinities that a profile of the fleet gives.

    Load is instructions and capacity is cycles, as estimated for the whole fleet from samples of its jobs; what
    machines do of their own, in brackets, is left out. Where the profile comes with a register of machines, platforms
    have the sizes that it says (`calibration`); where it has other counters, they help to count instructions
    (`composite`). The clock is the mean frequency of each platform's visits that stand for the fleet, each weighted by
    what it stands for. Standard errors are those between visits, steadied by those of other pairs.

    Parameters
    ----------
    database : a profile with cycles and instructions

    Returns
    -------
    DataFrame
        job, platform, load, cpi, cpi_se and load_se (NaN: not sampled), capacity, misses (last-level-cache misses per
        instruction), those of `COUNTERS` that the profile has (per instruction, NaN: not sampled) and clock_hz (all
        left out where not known); one row for each pair of job and platform.

    Raises
    ------
    QueryError, ProfileError
        If the profile lacks cycles or instructions, or cannot be read.
    """
    there = database.events()
    counters = [name for name in COUNTERS if name in there]
    events, visits = _of_visits(database, ("cycles", "instructions", *counters))
    found = composite(ratio(events["cycles"], events["instructions"]), events)
    found = found.assign(standard_error=found["cpi"] * found["relative_se"])
    found = found.merge(_load_errors(events["instructions"], visits), "left", list(BY))
    platforms = sorted(found["platform"].astype(str).unique())
    every = pd.MultiIndex.from_product([sorted(found["application"].astype(str).unique()), platforms], names=BY)
    table = found.astype(dict.fromkeys(BY, str)).set_index(list(BY)).reindex(every).reset_index()
    capacity = table.groupby("platform")["cycles"].transform("sum")
    made = pd.DataFrame(
        {
            "job": table["application"],
            "platform": table["platform"],
            "load": table["instructions"].fillna(0.0).astype(np.float64),
            "cpi": table["cpi"],
            "cpi_se": table["standard_error"],
            "load_se": table["load_se"],
            "capacity": capacity.astype(np.float64),
        }
    )
    for event in counters:
        made[event] = _counted(events[event].groupby(list(BY), observed=True)["value"].sum().reset_index(), made)
    if "llc_misses" in made:
        made["misses"] = _misses(made)
    clocks = table["platform"].map(_clocks(database))
    return made if clocks.isna().any() else made.assign(clock_hz=clocks)


def true_table(truth_cpi: pd.DataFrame, table: pd.DataFrame) -> Table:
    """Return the true table of a simulated fleet, for the platforms and clocks of a sampled one.

    Parameters
    ----------
    truth_cpi : application, platform, cycles, instructions over the horizon
    table : as `table_of` returns it

    Examples
    --------
    >>> truth = pd.DataFrame({"application": ["a"], "platform": ["p"], "cycles": [20.0], "instructions": [10.0]})
    >>> true_table(truth, pd.DataFrame({"platform": ["p"], "clock_hz": [2e9]})).cpi.tolist()
    [[2.0]]
    """
    truth = truth_cpi[truth_cpi["instructions"] > 0].astype(dict.fromkeys(BY, str))
    platforms = sorted(truth["platform"].unique())
    every = pd.MultiIndex.from_product([sorted(truth["application"].unique()), platforms], names=BY)
    rows = truth.set_index(list(BY)).reindex(every).reset_index()
    made = pd.DataFrame(
        {
            "job": rows["application"],
            "platform": rows["platform"],
            "load": rows["instructions"].fillna(0.0),
            "cpi": rows["cycles"] / rows["instructions"],
            "capacity": rows.groupby("platform")["cycles"].transform("sum"),
        }
    )
    if "clock_hz" in table:
        clocks = table.drop_duplicates("platform").set_index("platform")["clock_hz"]
        made["clock_hz"] = made["platform"].map(clocks).fillna(clocks.mean())
    return Table.of(made)


def aligned(shares: Floats, table: Table, truth: Table) -> Floats:
    """Return (J, I) shares by job and platform in the order of another table; 0 where this one has neither.

    Examples
    --------
    >>> rows = pd.DataFrame({"job": ["a", "b"], "platform": "p", "load": 1.0, "cpi": 2.0, "capacity": 4.0})
    >>> aligned(np.array([[1.0], [0.5]]), Table.of(rows), Table.of(rows[::-1])).tolist()
    [[0.5], [1.0]]
    """
    made = pd.DataFrame(shares, index=list(table.jobs), columns=list(table.platforms))
    return made.reindex(index=list(truth.jobs), columns=list(truth.platforms)).fillna(0.0).to_numpy(np.float64)


def _only_fleet(database: "Database") -> Where:
    """Return the restriction to the profile of the whole fleet, unless there is no such name."""
    return _FLEET if "fleet" in database.values("collection") else ()


def _of_visits(
    database: "Database", events: tuple[str, ...]
) -> tuple[dict[str, pd.DataFrame], "pd.Series[int] | None"]:
    """Return what jobs did of each event in each visit, by application and platform, calibrated if that is possible.

    Beside it stands how many visits each platform answered, if its size is known; none if that is left to chance.
    """
    jobs = tuple(name for name in database.values("application") if not name.startswith("["))
    where = (*_only_fleet(database), ("application", jobs))
    clustered = {event: database.clustered(Query(event, BY, where), CLUSTER) for event in events}
    try:
        machines = database.table("machines")
    except QueryError:
        return clustered, None
    visits = visits_of_fleet(database)
    factor = factors(visits, machines)
    if (factor == 1.0).all():
        return clustered, None
    for name, rows in clustered.items():
        times = rows[CLUSTER].astype(np.int64).map(factor).to_numpy(np.float64)
        clustered[name] = rows.assign(value=rows["value"] * times)
    return clustered, visits[visits["status"].isin(ANSWERED)].groupby(visits["platform"].astype(str)).size()


def _load_errors(instructions: pd.DataFrame, visits: "pd.Series[int] | None") -> pd.DataFrame:
    """Return the standard error of each pair's load, if the visits that met it were as random as counts are.

    Where the number of visits to a platform stands for its known size, it is the spread between them that counts.
    """
    rows = instructions[list(BY)].assign(value=instructions["value"].astype(np.float64))
    rows = rows.assign(square=rows["value"] ** 2)
    sums = rows.groupby(list(BY), observed=True, as_index=False)[["value", "square"]].sum()
    if visits is not None:
        sums["square"] -= sums["value"] ** 2 / sums["platform"].astype(str).map(visits).to_numpy(np.float64)
    return sums.assign(load_se=np.sqrt(np.maximum(sums["square"], 0.0)))[[*BY, "load_se"]]


def _counted(sampled: pd.DataFrame, made: pd.DataFrame) -> Floats:
    """Return an event's samples per instruction of every pair, NaN where the pair was not sampled."""
    value = sampled.astype(dict.fromkeys(BY, str)).set_index(list(BY))["value"].astype(np.float64)
    counted = value.reindex(pd.MultiIndex.from_frame(made[["job", "platform"]])).fillna(0.0).to_numpy(np.float64)
    return np.asarray(counted / made["load"].where(made["load"] > 0).to_numpy(np.float64))


def _misses(made: pd.DataFrame) -> Floats:
    """Return misses per instruction of every pair: those of the job, in proportion to those of the platform."""
    sums = made.assign(misses=made["llc_misses"].fillna(0.0) * made["load"])
    load = sums.groupby("job")["load"].transform("sum").to_numpy(np.float64)
    of_job = sums.groupby("job")["misses"].transform("sum").to_numpy(np.float64) / np.where(load > 0, load, 1.0)
    expected = sums.assign(expected=of_job * sums["load"]).groupby("platform")[["misses", "expected"]].transform("sum")
    factor = (expected["misses"] / expected["expected"].where(expected["expected"] > 0)).fillna(1.0)
    return np.asarray(of_job * factor.to_numpy(np.float64))


def _clocks(database: "Database") -> "pd.Series[float]":
    """Return each platform's mean frequency while busy, NaN if no visit says it."""
    visits = visits_of_fleet(database)
    known = visits[(visits["status"] == "ok") & (visits["frequency_hz"] > 0)]
    weight = known["weight"].astype(np.float64) * known["length_s"].astype(np.float64)
    sums = pd.DataFrame({"platform": known["platform"].astype(str), "hz": known["frequency_hz"] * weight, "w": weight})
    totals = sums.groupby("platform")[["hz", "w"]].sum()
    return totals["hz"] / totals["w"]
