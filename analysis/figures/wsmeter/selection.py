"""WSMeter, Figures 4 to 6: which jobs two WSCs share, and how few of them stand for a fleet.

Tables of jobs have columns job, name, quota.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows
from analysis.figures.wsmeter.changes import share_interval
from analysis.figures.wsmeter.draws import Halves
from analysis.wsmeter.selection import common_jobs, job_overlap, quota_cdf, selection_curve


def measure_fig4(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return how many jobs run by name on both of two WSCs, and on one only; the common share with its 95% interval."""
    common, only_first, only_second = job_overlap(first, second)["jobs"].tolist()
    return numbers(
        jobs_common=common,
        jobs_only_1=only_first,
        jobs_only_2=only_second,
        common_share=share_interval(common, common + only_first + only_second),
    )


def fig4(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the jobs that run on both WSCs and on one only, as one bar of all jobs."""
    figure, (axes,) = style.panels(height_inches=1.6)
    left = 0.0
    for name, colour, text in (
        ("only_1", style.SKY, "only on WSC 1"),
        ("common", style.BLUE, "on both"),
        ("only_2", style.ORANGE, "only on WSC 2"),
    ):
        jobs = number(measured, f"jobs_{name}")
        axes.barh(0, jobs, 0.6, left, color=colour, label=text)
        axes.text(
            left + jobs / 2, 0, f"{jobs:,.0f}", ha="center", va="center", color="white", fontsize=style.FONT_POINTS
        )
        left += jobs
    axes.set_yticks([])
    axes.set_ylim(-0.4, 0.4)
    ours, paper = (number(table, "common_share") for table in (measured, published))
    style.label(axes, f"jobs; {ours:.0%} run on both (published {paper:.0%})", "")
    figure.legend(
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=style.FONT_POINTS,
        handlelength=1.0,
        columnspacing=1.0,
    )
    return figure


def measure_fig5(first: pd.DataFrame, second: pd.DataFrame, few: float = 0.05) -> pd.DataFrame:
    """Return the share of the CPU quota that the common jobs hold, and the quota's distribution over the jobs.

    common_quota_share is over the WSC (1, 2), `quota_held_1` and `_2` over the share of the jobs, the heaviest first;
    of both findings the smaller of both WSCs. `few` is the share of the jobs that count as a few heavyweights.
    """
    common = job_overlap(first, second).iloc[0]
    shares = [float(common[f"quota_share_{side}"]) for side in "ab"]
    parts, quotas = [], []
    for wsc, table in enumerate((first, second), start=1):
        rank, quota = (quota_cdf(table)[column].to_numpy() for column in ("job_share", "quota_share"))
        parts.append(rows(f"quota_held_{wsc}", rank, quota))
        quotas.append(float(np.interp(few, np.append(0.0, rank), np.append(0.0, quota))))
    return measures(
        rows("common_quota_share", [1, 2], shares),
        *parts,
        common_quota_share_min=min(shares),
        top_5_percent_quota_min=min(quotas),
    )


def fig5(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the quota of common jobs on both WSCs, and the cumulative quota over the jobs."""
    figure, axes = style.panels(columns=2)
    wscs, share = curve(measured, "common_quota_share")
    axes[0].bar(wscs, share, 0.6, color=style.BLUE, label="common jobs")
    axes[0].bar(wscs, np.subtract(1, share), 0.6, share, color=style.SKY, label="jobs of one WSC")
    axes[0].axhline(number(published, "common_quota_share", 1), color=style.RED, linestyle=":", label="published 95%+")
    axes[0].set_xticks(wscs, [f"WSC {wsc:.0f}" for wsc in wscs])
    axes[0].set_ylim(0, 1.0)
    for wsc, colour in ((1, style.BLUE), (2, style.ORANGE)):
        axes[1].plot(*curve(measured, f"quota_held_{wsc}"), color=colour, label=f"WSC {wsc}")
    axes[1].set_xscale("log")
    for panel in axes:
        style.percent(panel, decimals=0)
        style.legend(panel, above=True)
    axes[1].set_xticks([0.001, 0.01, 0.1, 1.0], ["0.1%", "1%", "10%", "100%"])
    style.label(axes[0], "", "share of CPU quota")
    style.label(axes[1], "share of jobs, the heaviest first", "share of CPU quota held")
    return figure


def measure_fig6(halves: Halves, other: pd.DataFrame, most: int = 500, share: float = 0.2) -> pd.DataFrame:
    """Return coverage of the quota and deviation of the metric for the top N jobs of the first WSC.

    Parameters
    ----------
    halves : of which the current one is the first WSC
    other : the jobs of the second WSC
    most : largest N
    share : share of the common jobs from which the deviation, relative to the metric over all jobs, is judged
    """
    common = len(common_jobs(halves.jobs, other))
    sizes = list(range(1, min(most, len(halves.jobs)) + 1))
    table = selection_curve(halves.current, halves.jobs, sizes)
    deviation, coverage = table["deviation"].to_numpy(), table["quota_coverage"].to_numpy()
    start = min(max(1, round(share * common)), len(sizes)) - 1
    early, late = np.abs(deviation[:10]).mean(), np.abs(deviation[start:]).mean()
    return measures(
        rows("quota_coverage", sizes, coverage),
        rows("deviation", sizes, deviation),
        jobs_common=common,
        jobs_at_20_percent=start + 1,
        deviation_from_20_percent=float(np.abs(deviation[start:]).max()),
        reduction=float(early / late) if late > 0 else np.inf,
        quota_coverage_at_20_percent=float(coverage[start]),
    )


def fig6(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw coverage and deviation over the number of top jobs, with 10 to 20% of the common jobs shaded."""
    figure, axes = style.panels(columns=2)
    common, paper = number(measured, "jobs_common"), number(published, "deviation_from_20_percent")
    for panel, name, text in zip(
        axes, ("quota_coverage", "deviation"), ("share of CPU quota", "deviation from all jobs"), strict=True
    ):
        panel.plot(*curve(measured, name), color=style.BLUE)
        panel.axvspan(
            0.1 * common, 0.2 * common, color=style.SKY, alpha=0.25, linewidth=0, label="10–20% of common jobs"
        )
        style.percent(panel)
        style.label(panel, "top N jobs by CPU quota", text)
    axes[0].set_ylim(0, 1)
    axes[1].axhline(paper, color=style.RED, linestyle=":", label="published: few percent")
    axes[1].axhline(-paper, color=style.RED, linestyle=":")
    style.legend(axes[1])
    return figure
