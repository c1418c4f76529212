"""The answers about a feature's effect as figures: intervals by estimator and job, looks, and designs by size."""

import math
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, StrMethodFormatter

from analysis.figures.style import (
    BLUE,
    CYCLE,
    FONT_POINTS,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    forest,
    label,
    legend,
    panels,
    percent,
)

_MARKERS = ("o", "s", "^")
_VERDICTS = {"gained": GREEN, "lost": RED, "rose": BLUE, "fell": ORANGE}


def draw_effect(
    estimates: pd.DataFrame,
    jobs: pd.DataFrame,
    true_change: float = math.nan,
    title: str = "",
    *,
    unit: Literal["%", "points", ""] = "%",
) -> Figure:
    """Return the fleet's change by each estimator, and beside it the changes of single jobs.

    Parameters
    ----------
    estimates : estimator, change, low, high (relative); a row on each line
    jobs : job, change, low, high, verdict (gained and lost, or rose and fell, are coloured); no row if none are known
    true_change : of the fleet; NaN where nobody knows it
    title : what it all says
    unit : of the changes: percent, percentage points, or that of the values

    Examples
    --------
    >>> row = {"change": [0.1], "low": [0.08], "high": [0.12]}
    >>> estimates, jobs = pd.DataFrame({"estimator": ["adjusted"], **row}), pd.DataFrame({"job": ["search"], **row})
    >>> len(draw_effect(estimates, jobs.assign(verdict="gained")).axes)
    2
    """
    figure, (fleet, *others) = panels(columns=1 + bool(len(jobs)), height_inches=0.9 + 0.16 * max(len(jobs), 4))
    fleet.axvline(0.0, color=GREY, linewidth=0.6)
    times, points = (100.0, ", points") if unit == "points" else (1.0, "")
    forest(fleet, estimates["estimator"].tolist(), *_ends(estimates, times))
    if math.isfinite(true_change):
        fleet.axvline(true_change, color=GREY, linestyle="--", label="truth")
        legend(fleet)
    label(fleet, f"change of the fleet{points}", "")
    for panel in others:
        words = " or ".join(word for word in _VERDICTS if word in set(jobs["verdict"]))
        colours = [_VERDICTS.get(verdict, GREY) for verdict in jobs["verdict"]]
        forest(panel, jobs["job"].tolist(), *_ends(jobs, times), colours=colours)
        label(panel, f"change of a job{points}", "", words and f"coloured: {words}")
    for panel in (fleet, *others):
        if unit == "%":
            percent(panel, "x")
    if title:
        figure.suptitle(title, fontsize=FONT_POINTS)
    return figure


def draw_looks(looks: pd.DataFrame, planned: int, *, unit: Literal["%", "points", ""] = "%") -> Figure:
    """Return an experiment's estimates look by look, with what holds at all looks and what at one alone.

    Parameters
    ----------
    looks : period, share (of the planned information), change, low, high (of all looks together; infinite: says
        nothing), fixed_low, fixed_high (of that look alone)
    planned : looks until the horizon
    unit : as of `draw_effect`

    Examples
    --------
    >>> ends = {"low": [-np.inf, 0.0], "high": [np.inf, 0.2], "fixed_low": 0.05, "fixed_high": 0.15}
    >>> len(draw_looks(pd.DataFrame({"period": [1, 2], "share": [0.5, 1.0], "change": 0.1, **ends}), 2).axes)
    1
    """
    figure, (axes,) = panels()
    looks = looks.replace([np.inf, -np.inf], np.nan)
    period, times = looks["period"], 100.0 if unit == "points" else 1.0
    looks = looks.assign(**{name: times * looks[name] for name in ("change", "low", "high", "fixed_low", "fixed_high")})
    axes.fill_between(period, looks["low"], looks["high"], color=SKY, alpha=0.4, linewidth=0, label="of all looks")
    spread = [looks["change"] - looks["fixed_low"], looks["fixed_high"] - looks["change"]]
    axes.errorbar(period, looks["change"], spread, fmt="o", ms=3, capsize=2, color=BLUE, label="at this look alone")
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    horizon = period[looks["share"] >= 1.0]
    if len(horizon):
        axes.axvline(horizon.iloc[0], color=GREY, linestyle=":", label=f"horizon of {planned} looks")
    if unit == "%":
        percent(axes)
    label(axes, "period", "change so far, points" if unit == "points" else "change so far")
    legend(axes, columns=2, above=True)
    return figure


def draw_designs(forecasts: pd.DataFrame, detect: float, *, unit: Literal["%", "points", ""] = "%") -> Figure:
    """Return the smallest change that each design sees by the machines that it takes, beside the change to be seen.

    Parameters
    ----------
    forecasts : design (with its estimator), machines, smallest (relative change; infinite: none), trusted (whether
        intervals hold what they claim); a row for each size that was rehearsed
    detect : change to be seen
    unit : as of `draw_effect`

    Examples
    --------
    >>> columns = {"machines": [20, 80], "smallest": [0.04, 0.02], "trusted": True}
    >>> len(draw_designs(pd.DataFrame({"design": "1 day after 1 day, adjusted", **columns}), 0.03).axes)
    1
    """
    names, times, sign = list(dict.fromkeys(forecasts["design"])), 100.0 if unit else 1.0, "%" if unit == "%" else ""
    to_be_seen = f"{detect:.2%}" if unit == "%" else f"{times * detect:.4g}"
    figure, (axes,) = panels(height_inches=2.3 + 0.13 * len(names))
    for place, name in enumerate(names):
        of = forecasts[forecasts["design"] == name].replace(np.inf, np.nan).sort_values("machines")
        trusted = bool(of["trusted"].all())
        axes.plot(
            of["machines"],
            of["smallest"],
            f"{_MARKERS[place // len(CYCLE) % len(_MARKERS)]}-" if trusted else "x:",
            markersize=2.5,
            linewidth=0.9,
            color=CYCLE[place % len(CYCLE)] if trusted else GREY,
            label=name if trusted else f"{name} (not trusted)",
        )
    axes.axhline(detect, color=RED, linewidth=0.8, linestyle="--", label=f"to be seen: {to_be_seen}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda change, _place: f"{times * change:g}{sign}"))
    label(
        axes,
        "machines with the feature",
        "smallest change seen, points" if unit == "points" else "smallest change seen",
    )
    figure.legend(loc="outside lower center", frameon=False, fontsize=FONT_POINTS)
    return figure


def draw_slots(balance: pd.DataFrame, changes: pd.DataFrame) -> Figure:
    """Return how far slots are apart beside random ones, and what they differ by in the past, where nothing changed.

    Parameters
    ----------
    balance : variable, spread, random (standard deviations over slots), a row for each thing that is balanced
    changes : change, error (relative), each slot against all others; no row where the past is too short

    Examples
    --------
    >>> balance = pd.DataFrame({"variable": ["quota"], "spread": [0.001], "random": [0.01]})
    >>> len(draw_slots(balance, pd.DataFrame({"change": [0.01, -0.01], "error": 0.01})).axes)
    2
    """
    figure, (bars, *others) = panels(columns=1 + bool(len(changes)), height_inches=1.2 + 0.12 * len(balance))
    ratio = (balance["spread"] / balance["random"].where(balance["random"] > 0)).fillna(0.0)
    bars.barh(range(len(balance)), ratio[::-1], color=BLUE)
    bars.set_yticks(range(len(balance)), balance["variable"].tolist()[::-1])
    percent(bars, "x")
    label(bars, "spread of slots, in that of random ones", "")
    for panel in others:
        ranked = changes.sort_values("change", ignore_index=True)
        panel.axvline(0.0, color=GREY, linewidth=0.6)
        panel.errorbar(ranked["change"], ranked.index, xerr=2 * ranked["error"], fmt=".", ms=3, lw=0.6, color=BLUE)
        percent(panel, "x", decimals=2)
        label(panel, "slot against all others, in the past", "slots, ranked", "bars: two standard errors")
    return figure


def draw_rates(fleet: pd.DataFrame, jobs: pd.DataFrame, reference: str) -> Figure:
    """Return what platforms do beside a reference, with plain ratios of means, and the rates of single jobs.

    Parameters
    ----------
    fleet : platform, rate, low, high, naive, a row on each line
    jobs : job, platform, rate, low, high, source; those that were not measured on both are grey
    reference : the platform

    Examples
    --------
    >>> row = {"platform": ["new"], "rate": [1.2], "low": [1.1], "high": [1.3]}
    >>> fleet, jobs = pd.DataFrame({**row, "naive": [1.6]}), pd.DataFrame({"job": ["search"], **row})
    >>> len(draw_rates(fleet, jobs.assign(source="measured"), "old").axes)
    2
    """
    figure, (whole, single) = panels(columns=2, height_inches=0.9 + 0.16 * max(len(jobs), 4))
    for axes, table, names in (
        (whole, fleet, fleet["platform"]),
        (single, jobs, jobs["job"].astype(str) + (", " + jobs["platform"] if len(fleet) > 1 else "")),
    ):
        colours = [BLUE if source == "measured" else GREY for source in table.get("source", ["measured"] * len(table))]
        axes.axvline(1.0, color=GREY, linewidth=0.6)
        forest(axes, names.tolist(), *_ends(table.rename(columns={"rate": "change"})), colours=colours)
    whole.plot(fleet["naive"], range(len(fleet))[::-1], "x", color=RED, label="plain ratio of means")
    legend(whole)
    label(whole, f"rate of the fleet's mix, {reference} = 1", "")
    label(single, f"rate of a job, {reference} = 1", "", "grey: not measured enough on both")
    return figure


def _ends(table: pd.DataFrame, times: float = 1.0) -> tuple[list[float], list[float], list[float]]:
    change, low, high = ((times * table[name]).tolist() for name in ("change", "low", "high"))
    return change, low, high
