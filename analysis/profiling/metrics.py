"""What is derived from profiles: cycles per instruction, core-seconds beside the fleet's monitor, cover of stacks."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from analysis.profiling.intervals import MEASURES, share_intervals
from analysis.statistics import NotEnoughDataError, student_quantile
from models.arrays import DAY_S, Bools, Floats, Ints
from models.errors import InputError

_KNOWN_STATUSES = ("ok", "down")
"""Statuses of visits of which it is known what the machine did."""


def cpi(
    cycles: pd.DataFrame, instructions: pd.DataFrame, *, cluster: str = "machine", confidence: float = 0.95
) -> pd.DataFrame:
    """Return cycles per instruction of every key with an interval (Ren et al. 2010, "Derived metrics").

    A ratio of two totals, linearised over clusters, on a logarithmic scale with Student's t for as many degrees of
    freedom as clusters of equal size would have. The two events are
    counted one after the other within a visit, never at the same time; what the process does differently in between is
    part of the clusters' residuals, so the interval has it.

    Parameters
    ----------
    cycles, instructions : columns of keys (such as application, platform), the cluster, samples, value
    cluster : what was drawn: ``"machine"`` or ``"visit"``
    confidence : 0..1

    Returns
    -------
    DataFrame
        the keys, cpi, low, high, standard_error, cycles, instructions, samples (of both events), clusters; most cycles
        first. NaN where an event was not seen, or (low, high, standard_error) with one cluster alone.

    Raises
    ------
    ValueError
        If the tables have different keys, or the confidence is not between 0 and 1.

    Examples
    --------
    >>> counts = pd.DataFrame({"application": "a", "machine": [1, 2, 3], "samples": 10, "value": [10, 20, 30]})
    >>> ratios = cpi(counts, counts.assign(value=[5, 10, 15]))
    >>> ratios[["cpi", "clusters"]].values.tolist(), bool(ratios["low"][0] <= 2.0 <= ratios["high"][0])
    ([[2.0, 3.0]], True)
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence:g}")
    by = [str(name) for name in cycles.columns if name not in (cluster, *MEASURES)]
    if not by or set(cycles.columns) != set(instructions.columns):
        raise InputError("both tables must have the same columns: keys, the cluster, samples, value")
    pairs = _pairs(cycles, instructions, [*by, cluster])
    keys = pairs.groupby(by, sort=True, observed=True)[["cycles", "instructions", "samples"]].sum()
    key = pd.MultiIndex.from_frame(keys.index.to_frame()).get_indexer(pd.MultiIndex.from_frame(pairs[by]))
    above, below = pairs["cycles"].to_numpy(np.float64), pairs["instructions"].to_numpy(np.float64)
    ratio, error, clusters, degrees = _ratio(key.astype(np.int64), above, below, len(keys))
    with np.errstate(over="ignore"):
        width = np.exp(stdtrit(degrees, 0.5 + confidence / 2) * error / ratio)
    table = keys.assign(
        cpi=ratio, low=ratio / width, high=ratio * width, standard_error=error, clusters=clusters
    ).reset_index()
    columns = [*by, "cpi", "low", "high", "standard_error", "cycles", "instructions", "samples", "clusters"]
    return table.sort_values("cycles", ascending=False, kind="stable")[columns].reset_index(drop=True)


def _pairs(cycles: pd.DataFrame, instructions: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    left = cycles.groupby(on, observed=True, as_index=False)[list(MEASURES)].sum()
    right = instructions.groupby(on, observed=True, as_index=False)[list(MEASURES)].sum()
    both = left.merge(right, on=on, how="outer", suffixes=("", "_below")).fillna(
        {"samples": 0, "value": 0, "samples_below": 0, "value_below": 0}
    )
    return both.assign(
        cycles=both["value"].astype(np.float64),
        instructions=both["value_below"].astype(np.float64),
        samples=(both["samples"] + both["samples_below"]).astype(np.int64),
    )


def _ratio(key: Ints, above: Floats, below: Floats, keys: int) -> tuple[Floats, Floats, Ints, Floats]:
    """Return (K,) ratios of totals, their standard errors, clusters, and degrees of freedom.

    Residuals of large clusters are inflated by their leverage; the degrees of freedom are those of as many clusters of
    equal size as have the same sum of squares (Kish 1965).
    """
    clusters = np.bincount(key, minlength=keys).astype(np.int64)
    top, bottom = np.bincount(key, above, keys), np.bincount(key, below, keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((top > 0) & (bottom > 0), top / bottom, np.nan)
        leverage = np.minimum(below / bottom[key], 1 - 1e-9)
        residual = (above - ratio[key] * below) / bottom[key]
        squares = np.bincount(key, residual**2 / (1 - leverage), keys)
        degrees = np.fmax(1.0 / np.bincount(key, leverage**2, keys) - 1.0, 1.0)
    return ratio, np.where(clusters > 1, np.sqrt(squares), np.nan), clusters, degrees


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """Core-seconds of the fleet from its cycles profile, beside the fleet's own monitor."""

    core_s: float
    """Each visit's cycles over that visit's own mean frequency."""
    low: float
    high: float
    standard_error: float
    by_platform_s: float
    """With the mean frequency of each platform: biased where busy machines of a platform run at another frequency."""
    by_fleet_s: float
    """With one mean frequency, as printed (Ren et al. 2010): biased where platforms' frequencies and loads differ."""
    monitor_s: float
    """Busy time by the monitor; NaN: none given."""
    visits: int
    answered: int
    """Visits that gave a profile; the others are made up for by those of the same platform and day."""
    silent_days: int = 0
    """Days of which no visit gave a profile, made up for by the other days."""


def core_seconds(
    visits: pd.DataFrame,
    cycles: pd.DataFrame,
    monitor: pd.DataFrame | None = None,
    *,
    confidence: float = 0.95,
    cluster: str = "visit",
    machine_epochs: float | None = None,
) -> CoreSeconds:
    """Return the fleet's core-seconds (Ren et al. 2010: cycles × scale-up / frequency), with an interval.

    Every round draws machines anew, so visits of one day are independent draws and the error is that between visits
    within days. Visits that failed, were refused or stopped count with the mean of those of the same platform and
    day that answered (of the platform, then of all, where none did); on a machine that is down nothing runs. Of days
    without an answer the error is that between the other days; with one other day there is no interval.

    Where one machine in so many is visited and that does not divide the fleet, chance decides how many visits there
    are. The sum of weights then goes up and down with them, but not what they stand for, which is known: with
    `machine_epochs` the total is the mean of what they stand for times that (Hájek 1971), and the error is that of
    a ratio. The half-width is a quantile of Student's t, of as many degrees of freedom as days together have
    (Satterthwaite 1946).

    Parameters
    ----------
    visits : columns visit, machine, platform, start_s, weight, length_s, status, frequency_hz, of one collection that
        draws from all machines
    cycles : columns visit, value (estimated cycles of the fleet); a visit that is missing had none
    monitor : columns machine, start_s, busy_s; None: no comparison
    confidence : 0..1
    cluster : ``"visit"``, or ``"machine"`` where the same machines are visited again and again
    machine_epochs : what all weights stand for, machines times epochs; None: what they add up to

    Raises
    ------
    NotEnoughDataError
        If fewer than two visits answered.
    ValueError
        If visits with cycles have no frequency, or `machine_epochs` is not above 0.

    Examples
    --------
    >>> visits = pd.DataFrame({"visit": [0, 1, 2], "machine": [0, 1, 2], "platform": "p", "start_s": 0.0, "weight": 10})
    >>> visits = visits.assign(length_s=300.0, status=["ok", "ok", "failed"], frequency_hz=[2.0, 4.0, np.nan])
    >>> estimate = core_seconds(visits, pd.DataFrame({"visit": [0, 1], "value": [200, 400]}))
    >>> estimate.core_s, estimate.by_fleet_s, estimate.answered
    (300.0, 300.0, 2)
    """
    if machine_epochs is not None and not 0.0 < machine_epochs < math.inf:
        raise InputError(f"machine_epochs must be above 0, got {machine_epochs:g}")
    table, second = _seconds(visits, cycles)
    day = np.unique(np.floor(table["start_s"].to_numpy(np.float64) / DAY_S), return_inverse=True)[1]
    # Of a day on which nothing that runs answered, machines that are down say nothing either.
    heard = np.bincount(day, table["status"] == "ok")[day] > 0
    answered = table["status"].isin(_KNOWN_STATUSES).to_numpy() & heard
    if answered.sum() < 2:
        raise NotEnoughDataError(2, int(answered.sum()), "visits that answered")
    stands_for = table["weight"].to_numpy(np.float64)
    if not stands_for.sum() > 0:
        raise InputError(f"weight must be above 0 together, got {stands_for.sum():g}")
    scale = 1.0 if machine_epochs is None else machine_epochs / float(stands_for.sum())
    weight = stands_for * table["length_s"].to_numpy(np.float64)
    parts = scale * _adjusted(table, weight, second, answered)
    total = float(parts.sum())
    if machine_epochs is not None:
        parts -= total * stands_for / float(stands_for.sum())
    stratum = day if cluster == "visit" else np.zeros_like(day)
    variance, degrees = _between(parts, stratum, pd.factorize(table[cluster])[0].astype(np.int64))
    silent_days, more, freedom = _of_silent_days(scale * second, weight, answered, day)
    if silent_days:
        variance, degrees = np.append(variance, more), np.append(degrees, freedom)
    error = math.sqrt(float(variance.sum()))
    half = float(student_quantile(0.5 + confidence / 2, _freedom(variance, degrees))) * error
    return CoreSeconds(
        core_s=total,
        low=total - half,
        high=total + half,
        standard_error=error,
        by_platform_s=scale * float(_adjusted(table, weight, _mean_frequency(table, ["platform"]), answered).sum()),
        by_fleet_s=scale * float(_adjusted(table, weight, _mean_frequency(table, []), answered).sum()),
        monitor_s=float("nan") if monitor is None else float(monitor["busy_s"].sum()),
        visits=len(table),
        answered=int(answered.sum()),
        silent_days=silent_days,
    )


def _of_silent_days(second: Floats, weight: Floats, answered: Bools, day: Ints) -> tuple[int, float, float]:
    """Return on how many days no visit gave a profile, the variance of their total, and its degrees of freedom.

    Each of them is taken to be as the mean of the other days; of one other day the variance is NaN.

    Parameters
    ----------
    second : (V,) core-seconds that each visit stands for, 0 if it gave no profile
    weight : (V,) what it stands for
    answered : (V,) whether it is known what its machine did
    day : (V,) number of its day, 0, 1, …
    """
    whole, known = np.bincount(day, weight), np.bincount(day, weight * answered)
    heard = np.bincount(day, answered) > 0
    others, missing = int(heard.sum()), whole[~heard]
    if heard.all():
        return 0, 0.0, 1.0
    rates = np.bincount(day, second)[heard] / known[heard]
    spread = float(rates.var(ddof=1)) if others > 1 else math.nan
    return len(missing), spread * float((missing**2).sum() + missing.sum() ** 2 / others), others - 1.0


def _freedom(variance: Floats, degrees: Floats) -> float:
    """Return the degrees of freedom of a sum of variances that are estimated apart (Satterthwaite 1946)."""
    total = float(variance.sum())
    return total**2 / float(np.sum(variance**2 / degrees)) if total > 0 else math.inf


def _seconds(visits: pd.DataFrame, cycles: pd.DataFrame) -> tuple[pd.DataFrame, Floats]:
    """Return visits in order with their cycles, and the fleet's core-seconds that each stands for."""
    total = cycles.groupby("visit")["value"].sum()
    table = visits.sort_values("visit").reset_index(drop=True)
    table = table.assign(value=table["visit"].map(total).fillna(0).astype(np.float64))
    frequency = table["frequency_hz"].to_numpy(np.float64)
    used = ((table["status"] == "ok") & (table["value"] > 0)).to_numpy()
    wrong = used & ~(frequency > 0)
    if wrong.any():
        raise InputError(f"visit {table['visit'][int(wrong.argmax())]}: cycles but no frequency")
    return table, np.divide(table["value"].to_numpy(np.float64), frequency, out=np.zeros(len(table)), where=used)


def _mean_frequency(table: pd.DataFrame, by: list[str]) -> Floats:
    """Return core-seconds by the mean frequency of the visits that answered, of each group or of all."""
    known = table["frequency_hz"].where(table["status"] == "ok")
    mean = known.groupby([table[name] for name in by]).transform("mean") if by else known.mean()
    seconds = (table["value"] / mean).where(table["value"] > 0, 0.0)
    return seconds.to_numpy(np.float64)


def _adjusted(table: pd.DataFrame, weight: Floats, second: Floats, answered: Bools) -> Floats:
    """Return (visits,) parts whose sum is the total with silent visits made up for, linearised in the answers."""
    day = np.floor(table["start_s"].to_numpy(np.float64) / DAY_S)
    platform = pd.factorize(table["platform"])[0].astype(np.int64)
    fine = pd.factorize(pd.MultiIndex.from_arrays([platform, day]))[0].astype(np.int64)
    rate, scale = np.full(len(table), np.nan), np.zeros(len(table))
    for cell in (fine, platform, np.zeros(len(table), dtype=np.int64)):
        unknown = np.isnan(rate)
        whole, known = np.bincount(cell, weight * unknown), np.bincount(cell, weight * answered)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, share = np.bincount(cell, second * answered) / known, whole / known
        rate = np.where(unknown, mean[cell], rate)
        scale += np.where(answered, share[cell], 0.0)
    return np.asarray(weight * rate + scale * (second - weight * rate) * answered, dtype=np.float64)


def _between(parts: Floats, stratum: Ints, cluster: Ints) -> tuple[Floats, Floats]:
    """Return variances whose sum is that of a total of independent clusters within strata, and degrees of freedom.

    Strata of one cluster take the spread of all clusters, with its degrees of freedom.
    """
    sums = pd.DataFrame({"stratum": stratum, "cluster": cluster, "part": parts})
    grouped = sums.groupby(["stratum", "cluster"])["part"].sum().groupby("stratum")
    count, spread = grouped.size().to_numpy(np.float64), grouped.var(ddof=1).to_numpy(np.float64)
    of_all = sums.groupby("cluster")["part"].sum()
    several = count > 1
    variance = count * np.where(several, spread, float(of_all.var(ddof=1)))
    known = np.append(variance[several], variance[~several].sum())
    return known, np.append(count[several], len(of_all)) - 1.0


def coverage_of_stacks(
    cycles: pd.DataFrame, processes: pd.DataFrame, *, cluster: str = "visit", confidence: float = 0.95
) -> pd.DataFrame:
    """Return the share of all cycles spent in processes that answer with stacks, with an interval.

    Parameters
    ----------
    cycles : columns process, the cluster, samples, value, of the whole-machine profile
    processes : columns process, stacks (whether it answers with profiles that carry stacks)
    cluster, confidence : as in `share_intervals`

    Returns
    -------
    DataFrame
        one row: share, low, high, design_effect.

    Examples
    --------
    >>> cycles = pd.DataFrame({"process": [0, 1, 2, 3], "visit": [0, 0, 1, 1], "samples": 1, "value": [3, 1, 3, 1]})
    >>> processes = pd.DataFrame({"process": [0, 1, 2, 3], "stacks": [True, False, True, False]})
    >>> coverage_of_stacks(cycles, processes)["share"].tolist()
    [0.75]
    """
    answers = processes.set_index("process")["stacks"]
    named = cycles.assign(stacks=cycles["process"].map(answers).fillna(value=False).astype(bool))
    stacks = share_intervals(named.drop(columns="process"), cluster=cluster, confidence=confidence)
    columns = ["share", "low", "high", "design_effect"]
    if not stacks["stacks"].any():
        return pd.DataFrame([[0.0, 0.0, 1.0 - (stacks["low"].min() if len(stacks) else 0.0), np.nan]], columns=columns)
    return stacks.loc[stacks["stacks"], columns].reset_index(drop=True)
