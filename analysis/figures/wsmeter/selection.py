"""WSMeter, Figures 4 to 6: which jobs two WSCs share, and how few of them stand for a fleet.

Tables of jobs have columns job, name, quota.
"""

from typing import Any

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
    """Draw which share of all jobs runs on both WSCs and on one only, above the printed share of common ones."""
    figure, (axes,) = style.panels(height_inches=1.6)
    names = {
        "only_1": (style.SKY, "only on WSC 1"),
        "common": (style.BLUE, "on both"),
        "only_2": (style.ORANGE, "only on WSC 2"),
    }
    jobs = {name: number(measured, f"jobs_{name}") for name in names}
    starts = dict(zip(names, np.cumsum([0.0, *jobs.values()])[:-1] / sum(jobs.values()), strict=True))
    for name, (colour, text) in names.items():
        share = jobs[name] / sum(jobs.values())
        axes.barh(1.0, share, 0.6, starts[name], color=colour, label=text)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        at: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.FONT_POINTS, "bbox": box}
        axes.text(starts[name] + share / 2, 1.0, f"{jobs[name]:,.0f}", **at)
    paper = number(published, "common_share")
    style.published_bars(axes, np.array([0.0]), [paper], 0.6, "published, on both", across=True, start=starts["common"])
    axes.set_yticks([1.0, 0.0], ["measured (jobs)", "published"])
    axes.set(xlim=(0.0, 1.0), ylim=(-0.5, 1.5))
    style.percent(axes, "x")
    ours = jobs["common"] / sum(jobs.values())
    style.label(axes, "share of all jobs", "", f"{ours:.0%} run on both WSCs; published {paper:.0%}")
    style.shared_legend(figure, columns=2)
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
    figure, (common, few) = style.panels(columns=2, height_inches=2.2)
    wscs, share = (np.asarray(side) for side in curve(measured, "common_quota_share"))
    common.bar(wscs - 0.2, share, 0.36, color=style.BLUE, label="common jobs")
    common.bar(wscs - 0.2, 1 - share, 0.36, share, color=style.SKY, label="jobs of one WSC")
    style.published_bars(common, wscs + 0.2, curve(published, "common_quota_share")[1], 0.36, "published: 95%+")
    common.set_xticks(wscs, [f"WSC {wsc:.0f}" for wsc in wscs])
    style.from_zero(common)
    for wsc, colour, form in ((1, style.GREEN, "-"), (2, style.ORANGE, "--")):
        few.plot(*curve(measured, f"quota_held_{wsc}"), form, color=colour, linewidth=1.2, label=f"WSC {wsc}")
    few.set_xscale("log")
    style.from_zero(few)
    for panel in (common, few):
        style.percent(panel, decimals=0)
    few.set_xticks([0.001, 0.01, 0.1, 1.0], ["0.1%", "1%", "10%", "100%"])
    style.label(common, "", "share of CPU quota", "(a) quota of common jobs")
    style.label(few, "share of jobs, the heaviest first", "share of CPU quota held", "(b) cumulative quota")
    style.legend(common, above=True, columns=2)
    style.legend(few, above=True, columns=2)
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
    figure, (axes,) = style.panels(height_inches=2.6)
    common, paper = number(measured, "jobs_common"), number(published, "deviation_from_20_percent")
    axes.axvspan(0.1 * common, 0.2 * common, color=style.SKY, alpha=0.25, linewidth=0, label="10–20% of common jobs")
    axes.plot(*curve(measured, "quota_coverage"), color=style.BLUE, linewidth=1.2, label="coverage (left)")
    axes.set_ylim(0.0, 1.03)
    right = style.right_axis(axes, "deviation of IPC from all jobs", style.RED)
    jobs, deviation = curve(measured, "deviation")
    right.plot(jobs, deviation, "--", color=style.RED, linewidth=1.2, label="deviation (right)")
    style.published_band(right, -paper, paper, f"published: few percent ({paper:.0%})")
    bound = 0.05  # of the finding on the deviation, which reads "few percent" generously
    right.axhline(bound, color=style.GREY, linestyle="-.", linewidth=0.8, label=f"bound of the finding: {bound:.0%}")
    right.axhline(-bound, color=style.GREY, linestyle="-.", linewidth=0.8)
    limit = 1.1 * max(bound, float(np.max(np.abs(deviation), initial=0.0)))
    right.set_ylim(-limit, limit)
    for panel in (axes, right):
        style.percent(panel, decimals=0)
    style.label(axes, "top N jobs by CPU quota", "share of CPU quota covered")
    axes.yaxis.label.set_color(style.BLUE)
    style.shared_legend(figure, columns=2)
    return figure
