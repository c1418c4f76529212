"""`world/dvfs-mechanism`: why jobs gain or lose under a governor: their memory stalls, their machines' power limits."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, statistic
from analysis.figures.wsmeter.changes import mean_interval
from analysis.statistics import UNKNOWN, NotEnoughDataError, Statistic, normal_quantile
from models.arrays import Floats, Ints

STRATA = 10
"""Groups of jobs of about the same stall share within which gain and power limit are ranked."""


def job_table(gain: pd.DataFrame, hosts: pd.DataFrame, stall: pd.DataFrame, capped: pd.DataFrame) -> pd.DataFrame:
    """Return each job's gain, stall share and how often its machines' power cap lowered the clock.

    Parameters
    ----------
    gain : columns job, gain (relative change of its mean performance)
    hosts : columns job, machine; one row per stay
    stall : columns job, stall_share
    capped : columns machine, capped_share

    Returns
    -------
    DataFrame
        job, gain, stall_share, capped_share (mean over the job's stays).
    """
    limits = hosts[["job", "machine"]].merge(capped, on="machine").groupby("job", as_index=False)["capped_share"].mean()
    return gain.merge(stall, on="job").merge(limits, on="job")[["job", "gain", "stall_share", "capped_share"]]


def measure_mechanism(jobs: pd.DataFrame, stall_threshold: float) -> pd.DataFrame:
    """Return how a job's gain goes with its stall share, and with the power limit among jobs that stall alike.

    Rank correlations are Spearman's (1904), with 95% intervals by Fisher's z with the variance of Bonett and Wright
    (2000); the second one is of ranks within tenths of the jobs by stall share.

    rank_stall, rank_capped, rank_capped_given_stall with _low and _high, the last one also of the jobs below and above
    the threshold apart; mean gain of the tenths that stall least and most, with intervals; the curve of gain over stall
    share by tenths.

    Parameters
    ----------
    jobs : of `job_table`: gain, stall_share, capped_share
    stall_threshold : stall share above which the policy slows a core down

    Raises
    ------
    NotEnoughDataError
        If there are fewer than 40 jobs in all.
    """
    if len(jobs) < 4 * STRATA:
        raise NotEnoughDataError(4 * STRATA, len(jobs), "jobs measured in both arms")
    gain, stall, capped = (jobs[name].to_numpy(dtype=np.float64) for name in ("gain", "stall_share", "capped_share"))
    stratum = _strata(stall)
    tenths = pd.DataFrame({"stratum": stratum, "gain": gain, "stall": stall}).groupby("stratum")
    middle = tenths.mean()
    by_stall = pd.DataFrame({"series": "gain_by_stall", "x": middle["stall"], "value": middle["gain"]})
    from scipy.stats import rankdata

    below, above = stall <= stall_threshold, stall > stall_threshold
    return measures(
        by_stall,
        rank_stall=_interval(_correlation(rankdata(gain), rankdata(stall)), len(gain)),
        rank_capped=_interval(_correlation(rankdata(gain), rankdata(capped)), len(gain)),
        rank_capped_given_stall=_within(gain, capped, stall),
        rank_capped_below_threshold=_within(gain[below], capped[below], stall[below]),
        rank_capped_above_threshold=_within(gain[above], capped[above], stall[above]),
        gain_without_stall=mean_interval(gain[stratum == 0]),
        gain_with_stall=mean_interval(gain[stratum == STRATA - 1]),
    )


def _strata(stall: Floats) -> Ints:
    from scipy.stats import rankdata

    return (rankdata(stall, method="ordinal") - 1).astype(np.int64) * STRATA // len(stall)


def _within(gain: Floats, capped: Floats, stall: Floats) -> Statistic:
    """Return the correlation of ranks within strata; NaN where one side is constant in all of them, or of few jobs."""
    if len(gain) < 4 * STRATA:
        return UNKNOWN
    table = pd.DataFrame({"gain": gain, "capped": capped, "stratum": _strata(stall)})
    ranks = table.groupby("stratum")[["gain", "capped"]].rank()
    return _interval(_correlation(ranks["gain"].to_numpy(), ranks["capped"].to_numpy()), len(gain) - STRATA)


def _correlation(left: Floats, right: Floats) -> float:
    """Return Pearson's correlation; NaN where one side is constant."""
    a, b = left - left.mean(), right - right.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else float("nan")


def _interval(correlation: float, count: int) -> Statistic:
    inside = np.clip(correlation, -1 + 1e-12, 1 - 1e-12)
    error = float(normal_quantile(0.975)) * np.sqrt((1 + correlation**2 / 2) / (count - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-error, error]))
    return Statistic(correlation, float(low), float(high))


def mechanism(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw the mean gain over the stall share, by tenths of the jobs, with both rank correlations."""
    figure, (axes,) = style.panels(height_inches=2.6)
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    stall, gain = curve(measured, "gain_by_stall")
    axes.plot(stall, gain, "o-", color=style.BLUE, linewidth=1.2, markersize=4, label="a tenth of the jobs")
    for at, name in ((stall[0], "gain_without_stall"), (stall[-1], "gain_with_stall")):
        value, low, high = statistic(measured, name)
        words = "95% interval" if name == "gain_without_stall" else ""
        look: dict[str, Any] = {"color": style.INK, "capsize": 2, "linewidth": 1.0, "label": words}
        axes.errorbar(at, value, [[value - low], [high - value]], fmt="none", **look)
    ranks = {"rank_stall": "with stall share", "rank_capped_given_stall": "with power limit, at equal stall share"}
    text = "\n".join(f"rank correlation {number(measured, name):+.2f} {what}" for name, what in ranks.items())
    style.percent(axes)
    style.label(axes, "memory-stall share of the job, alone", "change of instructions per CPU second", text)
    style.legend(axes, above=True, columns=2)
    return figure
