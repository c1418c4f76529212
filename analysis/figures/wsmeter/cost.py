"""WSMeter, Figures 13 and 16 and the efficiency: what fidelity costs, in machines of real test clusters.

Everything is measured over `draws` test clusters of each of `sizes` machines from the half with the feature.
"""

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import band, curve, error_bars, measures, number, rows
from analysis.figures.spread import world_bars
from analysis.figures.wsmeter.draws import Halves, cluster_draws, mean_of, of, worst_step
from analysis.figures.wsmeter.plans import machine_quota, plan_table
from analysis.statistics import Statistic
from analysis.wsmeter.plan import MarginOutOfReachError, Plan, plan
from analysis.wsmeter.summaries import quota_shares


def measure_fig13(halves: Halves, sizes: tuple[int, ...] = (25, 50, 100, 200, 400), draws: int = 100) -> pd.DataFrame:
    """Return coverage and margin over the test cluster's size.

    Mean (with its 95% interval) and best margin and quota_coverage over size, and their smallest improvement from one
    size to the next (lower 95% end).
    """
    table = of(cluster_draws(halves, sizes, draws=draws), "wsmeter")
    done = sorted(table["machines"].unique())
    by_size = table.groupby("machines")
    means = {name: [mean_of(table, "wsmeter", size, name) for size in done] for name in ("quota_coverage", "margin")}
    intervals = [
        rows(f"{name}_mean_{end}", done, [getattr(mean, end) for mean in of_sizes])
        for name, of_sizes in means.items()
        for end in ("low", "high")
    ]
    curves = {
        "quota_coverage_mean": by_size["quota_coverage"].mean(),
        "quota_coverage_best": by_size["quota_coverage"].max(),
        "margin_mean": by_size["margin"].mean(),
        "margin_best": by_size["margin"].min(),
    }
    return measures(
        *(rows(name, done, value) for name, value in curves.items()),
        *intervals,
        draws=draws,
        coverage_rise_low=worst_step(table, "wsmeter", "quota_coverage", 1),
        margin_fall_low=worst_step(table, "wsmeter", "margin", -1),
        coverage_largest_low=mean_of(table, "wsmeter", done[-1], "quota_coverage").low,
    )


def fig13(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw coverage and margin over the test cluster's size."""
    figure, axes = style.panels(columns=2, height_inches=2.1)
    names = {"quota_coverage": "share of CPU quota covered", "margin": "margin of error"}
    draws = f"{number(measured, 'draws'):.0f} draws (published: {number(published, 'draws'):.0f})"
    for panel, title, (name, text) in zip(axes, ("(a) coverage", "(b) fidelity"), names.items(), strict=True):
        for which, colour, form in (("best", style.ORANGE, "s--"), ("mean", style.BLUE, "o-")):
            sizes, value = curve(measured, f"{name}_{which}")
            panel.plot(sizes, value, form, color=colour, linewidth=1.2, markersize=3, label=f"{which} of {draws}")
            world_bars(panel, sizes, measured, f"{name}_{which}")
        sizes, mean, errors = error_bars(measured, f"{name}_mean")
        panel.errorbar(sizes, mean, errors, color=style.BLUE, **_OF_MEANS)
        style.percent(panel)
        style.label(panel, "machines in the test cluster", text, title)
    style.zoom_share(axes[0], "quota covered", most=1.0)
    style.from_zero(axes[1])
    style.shared_legend(figure)
    return figure


_OF_MEANS: Final[Any] = {"fmt": "none", "capsize": 2, "linewidth": 0.9, "label": "95% interval of the mean"}
"""How Monte-Carlo intervals of means over draws are drawn."""


def measure_fig16(
    halves: Halves, sizes: tuple[int, ...] = (25, 50, 100, 200), *, draws: int = 200, ideal_coverage: float = 0.915
) -> pd.DataFrame:
    """Return the margin over the cost: machine baseline, WSMeter and the solver's ideal.

    Mean margins over machines with their 95% intervals, and the extreme ends of the 95% intervals of WSMeter's mean
    margin over the baseline's, and over that of the ideal plan at the same cost, whose jobs hold `ideal_coverage` of
    the quota.
    """
    table = cluster_draws(halves, sizes, draws=draws)
    done = sorted(of(table, "wsmeter")["machines"].unique())
    margins = {name: [mean_of(table, name, s, "margin") for s in done] for name in ("baseline", "wsmeter")}
    cost, margin, coverage = _ideal(halves, ideal_coverage)
    at_cost = np.exp(np.interp(np.log(done), np.log(cost), np.log(margin), left=np.nan, right=np.nan))
    below = [_ratio(ours, theirs) for ours, theirs in zip(margins["wsmeter"], margins["baseline"], strict=True)]
    ideals = (Statistic(m, m, m) for m in at_cost)
    above = [_ratio(*pair) for pair in zip(margins["wsmeter"], ideals, strict=True) if np.isfinite(pair[1].value)]
    curves = [band(f"margin_{name}", done, means) for name, means in margins.items()]
    return measures(
        *curves,
        rows("margin_ideal", cost, margin),
        ideal_coverage=coverage,
        ratio_to_baseline_high=max((ratio.high for ratio in below), default=np.nan),
        ratio_to_ideal_low=min((ratio.low for ratio in above), default=np.nan),
        ratio_to_ideal_high=max((ratio.high for ratio in above), default=np.nan),
    )


def _ideal(halves: Halves, coverage: float) -> tuple[list[float], list[float], float]:
    """Return the cost and margin of optimal plans over the heaviest jobs that hold `coverage` of the quota."""
    everyone = plan_table(halves.current, halves.jobs, len(halves.jobs))
    share = pd.Series(quota_shares(halves.jobs, pd.Index(everyone["job"]))).cumsum()
    table = everyone[share.shift(fill_value=0.0) < coverage].reset_index(drop=True)
    targets = np.geomspace(0.06, 0.005, 10)
    plans = [plan for target in targets if (plan := _feasible(table, float(target))) is not None]
    best = {plan.cost / machine_quota(halves.current): plan.margin for plan in plans}
    return (list(best), list(best.values()), float(share.iloc[len(table) - 1]))


def _feasible(table: pd.DataFrame, target: float) -> Plan | None:
    """Return the plan for a target, or None if even all instances do not reach it."""
    try:
        return plan(table, target)
    except MarginOutOfReachError:
        return None


def _ratio(ours: Statistic, theirs: Statistic) -> Statistic:
    """Return the ratio of two means with its 95% interval (delta method)."""
    ratio = ours.value / theirs.value
    error = ratio * float(np.hypot(ours.half_width / ours.value, theirs.half_width / theirs.value))
    return Statistic.around(ratio, error)


def fig16(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the margin over the cost, both axes logarithmic, with the printed margins."""
    figure, (axes,) = style.panels(height_inches=2.6)
    covered = [number(table, "ideal_coverage") for table in (measured, published)]
    names = (
        ("baseline", "o-", style.ORANGE, "baseline"),
        ("wsmeter", "s-", style.BLUE, "WSMeter"),
        ("ideal", "--", style.GREEN, f"ideal, {covered[0]:.1%} covered (paper: {covered[1]:.1%})"),
    )
    for name, form, colour, text in names:
        axes.plot(*curve(measured, f"margin_{name}"), form, color=colour, linewidth=1.2, markersize=3, label=text)
        world_bars(axes, curve(measured, f"margin_{name}")[0], measured, f"margin_{name}")
        if name != "ideal":
            axes.errorbar(*error_bars(measured, f"margin_{name}"), color=colour, **_OF_MEANS)
        cost, margin = curve(published, f"margin_{name}")
        if cost:
            style.published_points(axes, cost, margin, colour, f"published, {text}")
    axes.set_xscale("log")
    sizes, _ = curve(measured, "margin_baseline")
    axes.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
    style.log_percent(axes, [0.005, 0.01, 0.02, 0.05])
    ideal, _ = curve(measured, "margin_ideal")
    least = f"no ideal plan below {min(ideal):.0f} machines: it takes four instances of each job" if ideal else ""
    style.label(axes, "cost (machines)", "margin of error", least)
    style.shared_legend(figure, columns=2)
    return figure


def measure_efficiency(halves: Halves, sizes: tuple[int, ...] = (25, 50), draws: int = 500) -> pd.DataFrame:
    """Return how many times as many machines the baseline needs for WSMeter's margin, at several sizes.

    A margin falls with the square root of the machines, so it is the squared ratio of the margins at one size:
    `efficiency` (margin widened by 20%) with its 95% interval, `efficiency_plain`, and `efficiency_by_error`, the ratio
    of the variances of the real errors against the references.
    """
    table = cluster_draws(halves, sizes, draws=draws)
    done = sorted(of(table, "wsmeter")["machines"].unique())
    wide = [_squared_ratio(table, size, "wsmeter-widened") for size in done]
    plain = [_squared_ratio(table, size, "wsmeter").value for size in done]
    by_error = [_error(table, "baseline", size) / _error(table, "wsmeter", size) for size in done]
    curves = [rows("efficiency_plain", done, plain), rows("efficiency_by_error", done, by_error)]
    return measures(band("efficiency", done, wide), *curves, efficiency_low_min=min(ratio.low for ratio in wide))


def _error(table: pd.DataFrame, estimator: str, size: int) -> float:
    """Return the variance of the real errors against the references."""
    chosen = of(table, estimator, size)
    return float((chosen["change"] - chosen["reference"]).to_numpy().var(ddof=1))


def _squared_ratio(table: pd.DataFrame, size: int, estimator: str) -> Statistic:
    ratio = _ratio(mean_of(table, "baseline", size, "margin"), mean_of(table, estimator, size, "margin"))
    return Statistic.around(ratio.value**2, 2 * ratio.value * (ratio.value - ratio.low))


def efficiency(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the machines of the baseline over those of WSMeter at equal margin."""
    figure, (axes,) = style.panels(height_inches=2.5)
    sizes, value, errors = error_bars(measured, "efficiency")
    at = np.arange(len(sizes))
    axes.bar(at - 0.26, value, 0.25, color=style.BLUE, label="by margin, widened by 20% (95% interval)")
    axes.errorbar(at - 0.26, value, errors, fmt="none", color=style.INK, capsize=2, linewidth=1.0)
    world_bars(axes, at - 0.17, measured, "efficiency")
    axes.bar(at, curve(measured, "efficiency_by_error")[1], 0.25, color=style.SKY, label="by real error")
    paper = [number(published, "efficiency", size) for size in sizes]
    style.published_bars(axes, at + 0.26, paper, 0.25, "published, by margin widened by 20%")
    style.published_line(axes, 4.0, name="published claim: more than 4×")
    axes.set_xticks(at, [f"{size:.0f}" for size in sizes])
    style.from_zero(axes)
    style.label(axes, "machines in WSMeter's test cluster", "machines: baseline over WSMeter")
    style.legend(axes, above=True)
    return figure
