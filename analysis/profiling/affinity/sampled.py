"""The table of affinities that a profile gives, and the true one that a simulated fleet knows.

What visits stand for is corrected by what the register of machines says: machines are drawn from all, so how many of a
platform are visited is left to chance. How long machines of each platform there were on each day is known; weighted by
that over what answered (poststratification; Holt and Smith 1979), the platforms have their true sizes, and a visit
without an answer is made up for by those of the same platform and day.

Cycles per instruction are told twice. Of a pair that few samples tell of, most of the error is that of counting. A job
makes some events, such as mispredictions, of its instructions at a rate that is much the same wherever it runs; cycles
over such an event, times the rate expected, are a second estimate of the same CPI, whose errors are partly others. Both
are averaged with the weights that leave the least variance (a composite estimator; Rao and Molina 2015, section 3.3).
How far rates stray from an effect of the job and one of the platform is asked of the data (`effects.fit`): the event is
that whose rate strays least, and the more it strays the less it weighs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from analysis.profiling.affinity.effects import fit
from analysis.profiling.affinity.table import COUNTERS, AffinityTable
from analysis.profiling.affinity.terms import Terms
from analysis.profiling.fleet_samples import visits_of_fleet
from analysis.profiling.metrics import cpi
from analysis.profiling.query import Query, QueryError, Where
from models.arrays import DAY_S, Bools, Floats

if TYPE_CHECKING:
    from analysis.profiling.database import Database

BY = ("application", "platform")
CLUSTER = "visit"
"""What the collector draws anew each time."""
_PRIOR_VISITS, _ROUNDS = 8.0, 8


def ratio(above: pd.DataFrame, below: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio of two events of every pair that was sampled of both.

    Parameters
    ----------
    above, below : columns application, platform, visit, samples, value

    Returns
    -------
    DataFrame
        application, platform, cpi (the ratio), relative_se, cycles and instructions (what is above and below), samples
        (of both), clusters (visits).
    """
    pairs = cpi(above, below, cluster=CLUSTER)
    pairs = pairs[(pairs["cycles"] > 0) & (pairs["instructions"] > 0)].reset_index(drop=True)
    columns = [*BY, "cpi", "cycles", "instructions", "samples", "clusters"]
    return pairs.assign(relative_se=_relative_errors(pairs))[[*columns[:3], "relative_se", *columns[3:]]]


def _relative_errors(pairs: pd.DataFrame) -> Floats:
    """Return relative standard errors, steadied by those of all pairs.

    An error that few visits tell of is itself uncertain, so its square is averaged with what the pair's samples and
    visits make expect, α / samples + β / visits, fitted over all pairs; the latter counts as `_PRIOR_VISITS` visits.
    """
    own = ((pairs["standard_error"] / pairs["cpi"]) ** 2).to_numpy(np.float64)
    samples, visits = (pairs[name].to_numpy(np.float64) for name in ("samples", "clusters"))
    known = np.isfinite(own) & (visits > _PRIOR_VISITS) & (own < 1.0)
    inputs = np.column_stack([1.0 / samples, 1.0 / visits])
    fitted = np.array([2.0, 0.0])
    for _ in range(_ROUNDS if known.sum() > 2 else 0):
        weight = np.sqrt(visits[known]) / (inputs[known] @ fitted)
        fitted = nnls(inputs[known] * weight[:, None], own[known] * weight)[0]
        fitted = fitted if fitted.any() else np.array([2.0, 0.0])
    heard = np.where(np.isfinite(own), np.maximum(visits - 1.0, 0.0), 0.0)
    own = np.where(heard > 0, np.minimum(np.nan_to_num(own), 1.0), 0.0)
    return np.asarray(np.sqrt((heard * own + _PRIOR_VISITS * (inputs @ fitted)) / (heard + _PRIOR_VISITS)))


ANSWERED = ("ok", "down")
"""Statuses of visits of which it is known what the machine did."""
_STRATUM = ["platform", "day"]


def factors(visits: pd.DataFrame, machines: pd.DataFrame) -> "pd.Series[float]":
    """Return for each visit by what its weight is to be multiplied; ones where the register knows other platforms.

    What a machine is after it was rebuilt is that as which machines of its kind were visited.

    Parameters
    ----------
    visits : columns visit, machine, platform, start_s, weight, length_s, status, drawn from all machines
    machines : columns machine, platform (at first), feature_from_s (when it was rebuilt; NaN: never)
    """
    ones = pd.Series(1.0, index=pd.Index(visits["visit"], name="visit"))
    rows = visits[["visit", "machine", "platform", "start_s"]].astype({"platform": str}).assign(
        day=np.floor(visits["start_s"] / DAY_S).astype(np.int64),
        time_s=visits["weight"].astype(np.float64) * visits["length_s"].astype(np.float64),
        answered=visits["status"].isin(ANSWERED),
    )  # fmt: skip
    register = _register(rows, machines.astype({"platform": str}))
    if register is None:
        return ones
    for rows_used in (rows, rows.assign(day=0)):
        size = _sizes(register, rows["day"].unique(), pooled=not rows_used["day"].any())
        known = rows_used[rows_used["answered"]].groupby(_STRATUM)["time_s"].sum().reindex(size.index).fillna(0.0)
        if (known[size > 0] > 0).all():
            planned = rows_used.groupby("day")["time_s"].sum().reindex(size.index.get_level_values("day")).to_numpy()
            share = size / size.groupby("day").transform("sum")
            factor = (share * planned / known.where(known > 0)).fillna(1.0)
            return pd.Series(factor.reindex(pd.MultiIndex.from_frame(rows_used[_STRATUM])).to_numpy(), ones.index)
    return ones


def _register(rows: pd.DataFrame, machines: pd.DataFrame) -> pd.DataFrame | None:
    """Return platform, begin_s and end_s of all that machines were; none if a visit found a machine to be another."""
    both = rows.merge(machines.rename(columns={"platform": "first"}), "left", "machine")
    rebuilt = both["start_s"] >= both["feature_from_s"]
    became = both[rebuilt].groupby("first")["platform"].agg(["first", "nunique"])
    expected = both["first"].map(became["first"]).where(rebuilt, both["first"])
    if (became["nunique"] > 1).any() or (expected != both["platform"]).any():
        return None
    changes = machines["feature_from_s"].notna()
    before = machines.assign(begin_s=0.0, end_s=machines["feature_from_s"].fillna(np.inf))
    later = machines["platform"].replace(became["first"].to_dict())
    after = machines.assign(platform=later, begin_s=machines["feature_from_s"], end_s=np.inf)[changes]
    return pd.concat([before, after])[["platform", "begin_s", "end_s"]]


def _sizes(register: pd.DataFrame, days: Floats, pooled: bool) -> "pd.Series[float]":
    """Return how long machines of each platform there were on each day, or on all of these days together as day 0."""
    stays = [
        register.assign(
            day=0 if pooled else int(day),
            time_s=np.clip(
                np.minimum(register["end_s"], (day + 1) * DAY_S) - np.maximum(register["begin_s"], day * DAY_S),
                0.0,
                None,
            ),
        )
        for day in days
    ]
    return pd.concat(stays).groupby(_STRATUM)["time_s"].sum()


_MOST_SQUARE = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class _Second:
    """What another event says of N pairs."""

    strays: float
    """Variance of its rates between pairs, in logarithms, beside effects of job and platform."""
    shift: Floats
    """(N,) by what the logarithm of the CPI is to be changed."""
    gained: Floats
    """(N,) by what its squared error becomes less."""


def composite(pairs: pd.DataFrame, clustered: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return CPI and its error, told by instructions and by the event whose rate strays least.

    Parameters
    ----------
    found : of `pairs.ratio`: cycles over instructions
    clustered : event to application, platform, visit, samples, value; cycles, instructions, and those to choose from

    Returns
    -------
    DataFrame
        as `found`, with other cpi and relative_se, and instructions that go with them.
    """
    others = [name for name in clustered if name not in ("cycles", "instructions")]
    readings = [_second(pairs, clustered, name) for name in others]
    if not readings:
        return pairs
    best = min(readings, key=lambda reading: reading.strays)
    square = pairs["relative_se"] ** 2 - best.gained
    return pairs.assign(
        cpi=pairs["cpi"] * np.exp(best.shift),
        instructions=pairs["instructions"] * np.exp(-best.shift),
        relative_se=np.sqrt(np.maximum(square, 0.0)),
    )


def _second(pairs: pd.DataFrame, clustered: Mapping[str, pd.DataFrame], event: str) -> _Second:
    """Return what an event says of pairs; nothing of those where it was not counted, or of jobs on one platform."""
    keys = pd.MultiIndex.from_frame(pairs[list(BY)])
    rate, other = (
        ratio(*(clustered[name] for name in names)).set_index(list(BY)).reindex(keys)
        for names in ((event, "instructions"), ("cycles", event))
    )
    square = rate["relative_se"].to_numpy(np.float64) ** 2
    known = np.isfinite(square) & np.isfinite(other["relative_se"].to_numpy(np.float64))
    own, third = (table["relative_se"].to_numpy(np.float64) ** 2 for table in (pairs, other))
    square, third = np.where(known, square, 1.0), np.where(known, third, 0.0)
    common = np.clip(0.5 * (own + square - third), 0.0, np.sqrt(own * square))
    log_rate = np.log(np.where(known, rate["cpi"].to_numpy(np.float64), 1.0))
    strays, residual, platforms = _strays(pairs, log_rate, np.minimum(square, _MOST_SQUARE), known)
    weight = np.where(known, np.minimum(common / (square + strays), 1.0), 0.0)
    return _Second(strays, -weight * residual, weight * common * (1.0 - 1.0 / np.maximum(platforms, 1.0)))


def _strays(pairs: pd.DataFrame, log_rate: Floats, square: Floats, known: Bools) -> tuple[float, Floats, Floats]:
    """Return the variance of rates between pairs, (N,) residuals, and on how many platforms each job has a rate."""
    job, platform = (pd.factorize(pairs[name])[0] for name in BY)
    shape = job.max() + 1, platform.max() + 1
    rates, squares = np.zeros(shape), np.full(shape, np.inf)
    rates[job[known], platform[known]], squares[job[known], platform[known]] = log_rate[known], square[known]
    strays, effects, _ = fit(Terms(rates, squares, np.zeros(shape), np.ones((shape[0], 1))))
    platforms = np.isfinite(squares).sum(axis=1)[job].astype(np.float64)
    return strays, np.where(known, log_rate - effects[job, platform], 0.0), platforms


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
    events_sampled = database.events()
    counters = [name for name in COUNTERS if name in events_sampled]
    events, visits = _of_visits(database, ("cycles", "instructions", *counters))
    pairs = composite(ratio(events["cycles"], events["instructions"]), events)
    pairs = pairs.assign(standard_error=pairs["cpi"] * pairs["relative_se"])
    pairs = pairs.merge(_load_errors(events["instructions"], visits), "left", list(BY))
    platforms = sorted(pairs["platform"].astype(str).unique())
    every = pd.MultiIndex.from_product([sorted(pairs["application"].astype(str).unique()), platforms], names=BY)
    table = pairs.astype(dict.fromkeys(BY, str)).set_index(list(BY)).reindex(every).reset_index()
    capacity = table.groupby("platform")["cycles"].transform("sum")
    answer = pd.DataFrame(
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
        answer[event] = _counted(events[event].groupby(list(BY), observed=True)["value"].sum().reset_index(), answer)
    if "llc_misses" in answer:
        answer["misses"] = _misses(answer)
    clocks = table["platform"].map(_clocks(database))
    return answer if clocks.isna().any() else answer.assign(clock_hz=clocks)


def true_table(truth_cpi: pd.DataFrame, table: pd.DataFrame) -> AffinityTable:
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
    affinities = pd.DataFrame(
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
        affinities["clock_hz"] = affinities["platform"].map(clocks).fillna(clocks.mean())
    return AffinityTable.of(affinities)


def aligned(shares: Floats, table: AffinityTable, truth: AffinityTable) -> Floats:
    """Return (J, I) shares by job and platform in the order of another table; 0 where this one has neither.

    Examples
    --------
    >>> rows = pd.DataFrame({"job": ["a", "b"], "platform": "p", "load": 1.0, "cpi": 2.0, "capacity": 4.0})
    >>> aligned(np.array([[1.0], [0.5]]), AffinityTable.of(rows), AffinityTable.of(rows[::-1])).tolist()
    [[0.5], [1.0]]
    """
    frame = pd.DataFrame(shares, index=list(table.jobs), columns=list(table.platforms))
    return frame.reindex(index=list(truth.jobs), columns=list(truth.platforms)).fillna(0.0).to_numpy(np.float64)


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


def _counted(sampled: pd.DataFrame, affinities: pd.DataFrame) -> Floats:
    """Return an event's samples per instruction of every pair, NaN where the pair was not sampled."""
    value = sampled.astype(dict.fromkeys(BY, str)).set_index(list(BY))["value"].astype(np.float64)
    counted = value.reindex(pd.MultiIndex.from_frame(affinities[["job", "platform"]])).fillna(0.0).to_numpy(np.float64)
    return np.asarray(counted / affinities["load"].where(affinities["load"] > 0).to_numpy(np.float64))


def _misses(affinities: pd.DataFrame) -> Floats:
    """Return misses per instruction of every pair: those of the job, in proportion to those of the platform."""
    sums = affinities.assign(misses=affinities["llc_misses"].fillna(0.0) * affinities["load"])
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
