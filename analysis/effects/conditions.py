"""Under which conditions an instance ran: how busy its machine was, what neighbours are like, how fast its clock."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.observations import numbered
from models.arrays import Floats, Ints

_SWEEPS = 20
_VARIES = 0.1
"""Standard deviation of a condition on one platform, over the difference between platforms, from which on rates are
adjusted for it: with less, what it does would be carried ten times further than it was seen."""
_LEAST = 0.05
"""Of the median ratio: jobs with less count as having so much."""
_ALONE = 1e-9
"""Share of a job that other machines have, below which it counts as being on one alone."""


@dataclass(frozen=True, slots=True, eq=False)
class RowConditions:
    """Conditions of N rows, and what is not among them."""

    table: pd.DataFrame
    """(N, K): load (hardware threads that others keep busy, over those of the machine), traffic (what the others' jobs
    miss the last-level cache, in deviations), clock (log, less what platform and load make expect)."""
    notes: tuple[str, ...]


def conditions_of(rows: pd.DataFrame) -> RowConditions:
    """Return the conditions under which instances ran, as far as the table tells.

    Neighbours count by who they are, not by what they did: each by the CPU time and the misses that an instance of its
    job with such a quota has in that period on other machines on average, platforms apart. What a platform does to
    neighbours is part of what it is worth: on a faster one they may need less CPU time, and slow the instance less.

    Parameters
    ----------
    rows : period, machine, job, platform, weight, and perhaps cpu_s, present_s, vcpus (hardware threads of the
        machine), llc_misses, mean_frequency_hz or clock_hz

    Examples
    --------
    >>> row = {"period": 0, "machine": [1, 1, 2], "job": ["a", "b", "a"], "platform": "x", "weight": 1.0, "vcpus": 4}
    >>> conditions_of(pd.DataFrame(row)).table["load"].tolist()
    [0.25, 0.25, 0.0]
    """
    place, _ = numbered([rows["machine"], rows["period"]])
    notes = list[str]()
    length_s = rows.groupby("period")["present_s"].transform("max") if "present_s" in rows else None
    present = np.ones(len(rows)) if length_s is None else np.asarray(rows["present_s"] / length_s, dtype=np.float64)
    quota = rows["weight"].to_numpy(np.float64) * present
    used = quota
    if "cpu_s" in rows and length_s is not None:
        used = quota * _of_jobs(rows, np.asarray(rows["cpu_s"] / length_s, dtype=np.float64), quota)
    else:
        notes.append("no columns cpu_s and present_s: machines are as loaded as their quotas say")
    threads = rows["vcpus"].to_numpy(np.float64) if "vcpus" in rows else _typical(rows, used, place)
    if "vcpus" not in rows:
        notes.append("no column vcpus: load is relative to the mean machine of the same platform")
    columns = {"load": _others(place, used) / threads}
    if "llc_misses" in rows and "cpu_s" in rows:
        rate = _of_jobs(rows, rows["llc_misses"].to_numpy(np.float64), rows["cpu_s"].to_numpy(np.float64))
        spread = float(rate.std())
        columns["traffic"] = _others(place, used * (rate - rate.mean()) / (spread if spread > 0 else 1.0)) / threads
    else:
        notes.append("no column llc_misses: neighbours count by their CPU time alone")
    clock = next((name for name in ("mean_frequency_hz", "clock_hz") if name in rows), None)
    if clock is not None:
        log = np.log(rows[clock].to_numpy(np.float64))
        columns["clock"] = _beyond(log, rows["platform"], np.column_stack(list(columns.values())))
    varying = {name: column for name, column in columns.items() if np.ptp(column) > 1e-9 * np.abs(column).max()}
    for name, column in list(varying.items()):
        spread, means = _within_platforms(rows, column)
        if spread < _VARIES * float(np.ptp(means)):
            del varying[name]
            ends = f"{means.min():.2g} to {means.max():.2g}"
            notes.append(
                f"{name} differs between platforms ({ends} on average) and hardly on one (standard deviation "
                f"{spread:.1g}): what it does cannot be told from what the platform does, so rates are those at each "
                "platform's own"
            )
    return RowConditions(pd.DataFrame(varying, index=rows.index), tuple(notes))


def _within_platforms(rows: pd.DataFrame, column: Floats) -> tuple[float, Floats]:
    """Return a condition's standard deviation over rows of one job on one platform, and its mean on each platform."""
    values = pd.Series(column, index=rows.index)
    of_cell = values.groupby([rows["job"], rows["platform"]]).transform("mean")
    means = values.groupby(rows["platform"]).mean().to_numpy(dtype=np.float64)
    return float(np.sqrt(np.mean((values - of_cell) ** 2))), np.asarray(means, dtype=np.float64)


def _others(place: Ints, of_row: Floats) -> Floats:
    """Return what all other rows of the same machine and period sum to."""
    return np.asarray(np.bincount(place, of_row)[place] - of_row)


def _typical(rows: pd.DataFrame, used: Floats, place: Ints) -> Floats:
    """Return the mean use of machines of the row's platform, in place of hardware threads."""
    busy = pd.Series(np.bincount(place, used)[place])
    return np.asarray(busy.groupby(rows["platform"].to_numpy()).transform("mean"), dtype=np.float64)


def _of_jobs(rows: pd.DataFrame, above: Floats, below: Floats) -> Floats:
    """Return (N,) the ratio of two amounts to expect of each row's job in its period, platforms apart.

    A slow machine may keep its instances busy for longer, and a busy one slow: so a job's ratio is that on all machines
    but the row's own (Angrist, Imbens and Krueger 1999), drawn towards that of all jobs by as much as it is uncertain.

    Parameters
    ----------
    rows : job, period, platform, machine
    above, below : (N,) amounts
    """
    stratum, _ = numbered([rows["job"], rows["period"]])
    meeting, _ = numbered([rows["job"], rows["period"], rows["machine"]])
    strata, meetings = int(stratum.max()) + 1, int(meeting.max()) + 1
    above = above / np.exp(_of_platforms(rows, stratum, above, below))
    stratum_of = np.zeros(meetings, dtype=np.int64)
    stratum_of[meeting] = stratum
    above_here, below_here = _sum(meeting, above, meetings), _sum(meeting, below, meetings)
    of_meetings = (above_here, below_here, below_here**2)
    of_strata = tuple(_sum(stratum_of, amount, strata) for amount in of_meetings)
    ratio = of_strata[0] / np.where(of_strata[1] > 0, of_strata[1], 1.0)
    floor = _LEAST * float(np.median(ratio[of_strata[1] > 0])) + 1e-300
    ratio_here = ratio[stratum_of]
    off = np.where(ratio_here > 0, above_here / np.maximum(ratio_here, floor) - below_here, 0.0)
    within = _spread_within(stratum_of, off, of_strata)
    centre, between = _spread_between(ratio, floor, within, of_strata)
    log, square = _leave_one_out(stratum_of, of_meetings, of_strata, floor, within)
    return np.asarray(_shrunk(log, square, centre, between)[meeting])


def _leave_one_out(
    stratum_of: Ints, of_meetings: Sequence[Floats], of_strata: Sequence[Floats], floor: float, within: float
) -> tuple[Floats, Floats]:
    """Return (M,) logarithms of the ratio on all machines but one, and their squared errors: infinite without others.

    Parameters
    ----------
    stratum_of : (M,) number of the stratum of a job on a machine
    of_meetings, of_strata : (M,) and (strata,) amounts above and below, and the sums of squares of those below
    floor : of the ratio
    within : relative variance between a job's machines
    """
    above, below, squares = (
        np.maximum(of_stratum[stratum_of] - of_meeting, 0.0)
        for of_stratum, of_meeting in zip(of_strata, of_meetings, strict=True)
    )
    elsewhere = below > _ALONE * of_strata[1][stratum_of]
    below = np.where(elsewhere, below, 1.0)
    log = np.where(elsewhere, np.log(np.maximum(above / below, floor)), 0.0)
    return np.asarray(log), np.where(elsewhere, within * squares / below**2, np.inf)


def _shrunk(log: Floats, square: Floats, centre: float, between: float) -> Floats:
    """Return what is expected of ratios, drawn towards all jobs' by as much as they are uncertain.

    Parameters
    ----------
    log, square : (M,) their logarithms as measured, and squared errors of these
    centre, between : mean and variance of logarithms between jobs
    """
    trust = between / np.where(between + square > 0, between + square, 1.0)
    return np.asarray(np.exp(centre + trust * (log - centre) + (1.0 - trust) * between / 2))


def _spread_between(ratio: Floats, floor: float, within: float, of_strata: Sequence[Floats]) -> tuple[float, float]:
    """Return mean and variance of the logarithms of jobs' ratios, less what machines add to the variance.

    Parameters
    ----------
    ratio : (strata,)
    floor : of the ratio
    within : relative variance between a job's machines
    of_strata : (strata,) amounts above and below, and the sum of squares of those below
    """
    known = of_strata[1] > 0
    log = np.log(np.maximum(ratio[known], floor))
    centre = float(log.mean())
    square = within * of_strata[2][known] / of_strata[1][known] ** 2
    return centre, max(float(np.mean((log - centre) ** 2 - square)), 0.0)


def _spread_within(stratum_of: Ints, off: Floats, of_strata: Sequence[Floats]) -> float:
    """Return the relative variance of a ratio between a job's machines.

    Parameters
    ----------
    stratum_of : (M,) number of the stratum of a job on a machine
    off : (M,) by how much its ratio is off that of the stratum, relative, times the amount below
    of_strata : (strata,) amounts above and below, and the sum of squares of those below
    """
    _, below, below_squares = of_strata
    machines = np.bincount(stratum_of, minlength=len(below))
    several = (machines > 1) & (below > 0)
    if not several.any():
        return 0.0
    left = np.maximum(1.0 - below_squares / np.where(several, below, 1.0) ** 2, _ALONE)
    variance = _sum(stratum_of, off**2, len(machines)) / np.where(several, below_squares, 1.0) / left
    return float(np.average(variance[several], weights=machines[several] - 1.0))


def _of_platforms(rows: pd.DataFrame, stratum: Ints, above: Floats, below: Floats) -> Floats:
    """Return (N,) what a row's platform adds to the logarithm of a ratio: logarithms are sums of job and platform."""
    platform = pd.factorize(rows["platform"])[0].astype(np.int64)
    count = int(platform.max()) + 1
    cell = stratum * count + platform
    sums = [np.bincount(cell, amount).astype(np.float64) for amount in (above, below)]
    cells = np.flatnonzero(sums[1] > 0)
    ratio, weight = sums[0][cells] / sums[1][cells], sums[1][cells]
    log = np.log(np.maximum(ratio, _LEAST * float(np.median(ratio)) + 1e-300))
    of_stratum, of_platform = np.zeros(int(stratum.max()) + 1), np.zeros(count)
    for _ in range(_SWEEPS):
        of_stratum = _mean(cells // count, weight, log - of_platform[cells % count], len(of_stratum))
        of_platform = _mean(cells % count, weight, log - of_stratum[cells // count], count)
    return np.asarray(of_platform[platform])


def _sum(of: Ints, value: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(of, value, count), dtype=np.float64)


def _mean(of: Ints, weight: Floats, value: Floats, count: int) -> Floats:
    total = np.bincount(of, weight, count).astype(np.float64)
    return np.asarray(np.bincount(of, weight * value, count) / np.where(total > 0, total, 1.0))


def _beyond(log: Floats, platform: "pd.Series[str]", x: Floats) -> Floats:
    """Return what is left of a column when a line in `x` of each platform is taken out."""
    left = log.copy()
    for _, where in platform.reset_index(drop=True).groupby(platform.to_numpy()).indices.items():
        design = np.column_stack([np.ones(len(where)), x[where]])
        left[where] -= design @ np.linalg.lstsq(design, log[where], rcond=None)[0]
    return left
