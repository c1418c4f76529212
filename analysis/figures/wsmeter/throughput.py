"""WSMeter, section 3.1: does IPC move with user-level throughput? Job by job, under each feature."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, rows, statistic
from analysis.figures.wsmeter.changes import job_changes
from analysis.figures.wsmeter.draws import Halves
from analysis.statistics import UNKNOWN, Statistic
from models.arrays import Floats

FEATURES = {"cpu_upgrade": "CPU upgrade", "dvfs_policy": "DVFS policy"}
"""Scenarios of the features, and how the paper calls them."""


def changes_of_both(ipc: Halves, throughput: Halves, min_instances: int = 20) -> pd.DataFrame:
    """Return every job's change of IPC beside its change of throughput.

    Parameters
    ----------
    ipc, throughput : a fleet's halves measured in either metric
    min_instances : instances that a job must have in each half

    Returns
    -------
    DataFrame
        job, ipc, throughput (relative changes), instances (the fewer of both halves).
    """
    by_ipc, by_throughput = (job_changes(halves.current, halves.new, min_instances) for halves in (ipc, throughput))
    both = by_ipc.merge(by_throughput, on="job", suffixes=("", "_throughput"))
    fewer = both[["instances_current", "instances_new"]].min(axis=1)
    columns = {"ipc": both["change"], "throughput": both["change_throughput"], "instances": fewer}
    return pd.DataFrame({"job": both["job"], **columns})


def measure_ipc_vs_throughput(
    cpu_upgrade: pd.DataFrame, dvfs_policy: pd.DataFrame, resamples: int = 1000, seed: int = 1
) -> pd.DataFrame:
    """Return the rank correlation between both changes under either feature.

    A point per job and feature, rank correlations (Spearman 1904) with intervals, drop_low = lower end under the
    upgrade less upper end under DVFS.

    Parameters
    ----------
    cpu_upgrade, dvfs_policy : columns job, ipc, throughput; of `changes_of_both`
    resamples : of the jobs, for the 95% percentile bootstrap interval
    seed : of the resamples
    """
    rng = np.random.default_rng(seed)
    tables = dict(zip(FEATURES, (cpu_upgrade, dvfs_policy), strict=True))
    correlations = {
        f"rank_correlation_{name}": _rank_correlation(
            table["ipc"].to_numpy(), table["throughput"].to_numpy(), resamples, rng
        )
        for name, table in tables.items()
    }
    upgrade, policy = correlations.values()
    points = [rows(f"throughput_{name}", table["ipc"], table["throughput"]) for name, table in tables.items()]
    return measures(*points, **correlations, drop_low=upgrade.low - policy.high)


def _rank_correlation(x: Floats, y: Floats, resamples: int, rng: np.random.Generator) -> Statistic:
    if len(x) < 3:
        return UNKNOWN
    picks = rng.integers(len(x), size=(resamples, len(x)))
    low, high = np.nanquantile(_spearman(x[picks], y[picks]), [0.025, 0.975])
    return Statistic(float(_spearman(x[None], y[None])[0]), float(low), float(high))


def _spearman(x: Floats, y: Floats) -> Floats:
    """Return the rank correlation of every row of x with the same row of y; NaN where one does not vary."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(x, axis=1), rankdata(y, axis=1)], axis=2)
    varies = (np.ptp(ranks, axis=1) > 0).all(axis=1)
    correlations = np.full(len(ranks), np.nan)
    correlations[varies] = [np.corrcoef(pairs, rowvar=False)[1, 0] for pairs in ranks[varies]]
    return correlations


def ipc_vs_throughput(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw every job's change of throughput over its change of IPC, one panel per feature."""
    del published  # the paper prints words only
    figure, axes = style.panels(columns=2, height_inches=2.4)
    for panel, (name, feature) in zip(axes, FEATURES.items(), strict=True):
        ipc, throughput = curve(measured, f"throughput_{name}")
        panel.plot(ipc, throughput, ".", color=style.BLUE, markersize=2.5, alpha=0.6, label="a job")
        ends = [np.min(ipc, initial=0.0), np.max(ipc, initial=0.0)]
        panel.plot(ends, ends, "--", color=style.GREY, linewidth=0.8, label="equal changes, y = x")
        value, low, high = statistic(measured, f"rank_correlation_{name}")
        style.label(
            panel,
            "change of IPC",
            "change of throughput",
            f"{feature}: rank correlation\n{value:.2f} ({low:.2f} to {high:.2f})\npublished: “well correlated”",
        )
        style.percent(panel, "x", decimals=0)
        style.percent(panel, decimals=0)
    style.shared_legend(figure)
    return figure
