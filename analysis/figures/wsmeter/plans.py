"""WSMeter, Figure 12 and Table 1: what the optimal plans cost, for several selections of jobs and fidelities."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve, measures, number, numbers, rows
from analysis.figures.spread import world_bars
from analysis.figures.wsmeter.draws import Halves
from analysis.wsmeter.plan import Plan, plan, plannable


def plan_table(current: pd.DataFrame, jobs: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return what the plan needs of the heaviest jobs; observing an instance costs its CPU quota.

    Parameters
    ----------
    current : measurement table of the current WSC
    jobs : columns job, quota, instances
    top : heaviest jobs kept, of those with four instances or more

    Returns
    -------
    DataFrame
        job, weight, mean, std (of the population), instances, cost (CPU quota); in order of falling quota.
    """
    return plannable(current, jobs).nlargest(top, "weight").reset_index(drop=True)


def machine_quota(current: pd.DataFrame) -> float:
    """Return the CPU quota that one machine's measured instances hold: what a plan's cost is counted in."""
    return float(current["weight"].sum()) / current["machine"].nunique()


def measure_fig12(
    halves: Halves, tops: tuple[int, ...] = (50, 100, 200), minima: tuple[int, ...] = (4, 20), target: float = 0.01
) -> pd.DataFrame:
    """Return machines and margin of the optimal plans for several job selections and least sample sizes.

    `margin_minN`, `machines_minN` and `at_minimum_minN` (share of the jobs held at the least sample size) over the
    number of jobs, growth from the fewest to the most jobs, and the largest gap of the margins with the first minimum
    from the target.

    Parameters
    ----------
    halves : of which the current one is planned for
    tops : heaviest jobs selected
    minima : least instances per job
    target : relative margin asked for
    """
    parts = [numbers(target_margin=target)]
    tables = [plan_table(halves.current, halves.jobs, top) for top in tops]
    for least in minima:
        plans = [plan(table, target, min_instances=least) for table in tables]
        margin, cost = [plan.margin for plan in plans], [plan.cost / machine_quota(halves.current) for plan in plans]
        at_minimum = [_at_minimum(*both, least) for both in zip(plans, tables, strict=True)]
        curves = {"margin": margin, "machines": cost, "at_minimum": at_minimum}
        parts += [rows(f"{name}_min{least}", tops, value) for name, value in curves.items()]
        singles = {
            f"cost_growth_min{least}": cost[-1] / cost[0],
            f"margin_min{least}_gap": max(abs(m - target) for m in margin),
            f"margin_min{least}_max": max(margin),
        }
        parts.append(numbers(**singles))
    return pd.concat(parts, ignore_index=True)


def _at_minimum(plan: Plan, table: pd.DataFrame, least: int) -> float:
    """Return the share of the jobs of which the plan observes no more instances than the minimum asks for."""
    minimum = np.minimum(least, table["instances"].to_numpy())
    return float(np.mean(plan.allocation["instances"].to_numpy() <= minimum))


def fig12(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw machines (left axis) and margin of error (right axis) of the plans for either least sample size."""
    figure, (axes,) = style.panels(height_inches=2.6)
    right = style.right_axis(axes, "margin of error", style.RED)
    for shift, (least, colour, marker) in zip((-0.19, 0.19), _MINIMA, strict=True):
        tops, machines = curve(measured, f"machines_min{least}")
        at = np.arange(len(tops)) + shift
        axes.bar(at, machines, 0.36, color=colour, label=f"machines, min(N) = {least}")
        world_bars(axes, at, measured, f"machines_min{least}")
        margins = curve(measured, f"margin_min{least}")[1]
        look: dict[str, Any] = {
            "color": style.RED,
            "markersize": 4.0,
            "markeredgecolor": "white",
            "markeredgewidth": 0.5,
        }
        right.plot(at, margins, f"{marker}-", linewidth=0.8, label=f"margin, min(N) = {least}", **look)
        printed = [number(published, f"margin_min{least}", top) for top in tops]
        if np.isfinite(printed).any():
            style.published_points(right, at, printed, name="published margin")
    axes.set_xticks(range(len(tops)), [f"top {top:.0f}" for top in tops])
    target = number(published, "target_margin")
    style.published_line(right, target, name="published target")
    style.from_zero(axes, headroom=0.9)
    margins = [margin for least, *_ in _MINIMA for margin in curve(measured, f"margin_min{least}")[1]]
    style.from_zero(right, headroom=0.35)
    right.set_yticks([0.0, 0.5 * target, target])
    style.percent(right)
    off = 100 * max((abs(margin / target - 1.0) for margin in margins), default=math.nan)
    style.label(axes, "jobs selected", "machines", f"margins differ from the target by at most {off:.1g}% of it")
    style.shared_legend(figure, columns=2)
    return figure


_MINIMA = ((4, style.BLUE, "o"), (20, style.ORANGE, "s"))
"""Least instances of a job, and how they are drawn."""


def measure_table1(halves: Halves, targets: tuple[float, ...] = (0.03, 0.01), top: int = 200) -> pd.DataFrame:
    """Return the ideal test cluster for two target fidelities over the heaviest jobs.

    Machines and margin per target (x), the share of jobs held at the least sample size and the margin over the target
    at the first target, the growth of machines to the last.

    Parameters
    ----------
    halves : of which the current one is planned for
    targets : relative margins, the wider first
    top : heaviest jobs selected
    """
    table = plan_table(halves.current, halves.jobs, top)
    plans = [plan(table, target) for target in targets]
    machines, margin = [plan.cost / machine_quota(halves.current) for plan in plans], [plan.margin for plan in plans]
    return measures(
        rows("machines", targets, machines),
        rows("margin", targets, margin),
        jobs=len(table),
        share_at_minimum=_at_minimum(plans[0], table, 4),
        margin_over_target=plans[0].margin / targets[0],
        machines_growth=plans[-1].cost / plans[0].cost,
    )
