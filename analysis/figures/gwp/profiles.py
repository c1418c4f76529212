"""Ren et al. (2010), Figures 4 to 7: how stable profiles are, from one day and from one machine to the next."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import band, curve, measures, number, rows
from analysis.figures.wsmeter.changes import NORMAL_95
from analysis.profiling.stability import entropy, manhattan
from analysis.statistics import Statistic
from models.arrays import Floats

EVENTS: Final[Mapping[str, str]] = {
    "cycles": "cycles",
    "instructions": "instructions",
    "cpu_time": "CPU time",
    "llc_misses": "LLC misses",
    "heap_bytes": "heap",
    "threads": "threads",
}
"""Profile types of Figure 6b, and how the figure writes them."""
REST: Final = ("cycles", "instructions", "cpu_time", "llc_misses")
"""Types whose variations go together."""


def entropies(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return entropy (nats) and samples of each profile: of a day, or of a machine, in order.

    It is the plain entropy, as the paper takes it: uncorrected for the number of samples.
    """
    profiles = {key: part.to_numpy() for key, part in frame.groupby(by, sort=True)["samples"]}
    plain = [entropy(part, correction="none") for part in profiles.values()]
    samples = [int(part.sum()) for part in profiles.values()]
    return pd.DataFrame({by: list(profiles), "entropy": plain, "samples": samples})


def _by_day(
    series: str, days: "pd.Series[int]", values: "pd.Series[float]", errors: "pd.Series[float] | None"
) -> pd.DataFrame:
    """Return a number by day as measured rows, with the ends of its 95% interval where its standard error is known."""
    if errors is None:
        return rows(series, days, values)
    half_widths = NORMAL_95 * errors.reindex(days).to_numpy()
    return band(series, days, map(Statistic.around, values, half_widths))


def measure_fig4(frame: pd.DataFrame, errors: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """Return the entropy of daily application-level profiles beside the number of samples.

    Parameters
    ----------
    frame : day, entry (application), samples
    errors : standard error of the entropy by day; none: no intervals
    """
    table = entropies(frame, "day")
    values = table["entropy"].to_numpy()
    return measures(
        _by_day("entropy", table["day"], table["entropy"], errors),
        rows("samples", table["day"], table["samples"]),
        spread=spread(values),
        count_correlation=abs(correlation(values, table["samples"])),
        days=len(table),
    )


def spread(values: Floats) -> float:
    """Return how far values lie apart: largest less smallest, relative to their mean."""
    return float((values.max() - values.min()) / values.mean())


def correlation(x: Floats | pd.Series, y: Floats | pd.Series) -> float:
    """Return Pearson's correlation, 0 where one of the two does not vary."""
    a, b = np.asarray(x, float), np.asarray(y, float)
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _course(
    axes: Axes,
    measured: pd.DataFrame,
    series: str,
    name: str,
    *,
    near: bool = False,
    title: str = "",
    interval: str = "",
) -> None:
    """Draw a number day by day with its interval: from 0 up, or near its mean, which the axis' name tells."""
    days, values = curve(measured, series)
    axes.plot(days, values, "o-", markersize=2.5, linewidth=1.2, color=style.BLUE)
    low, high = (curve(measured, f"{interval or series}_{end}")[1] for end in ("low", "high"))
    if low and high:
        axes.errorbar(days, values, [np.subtract(values, low), np.subtract(high, values)], **_INTERVAL)
    ends = [*values, *low, *high]
    if near:
        mean = float(np.mean(values))
        window = max(_WINDOW * mean, 1.2 * float(np.nanmax(np.abs(np.subtract(ends, mean)))))
        axes.set_ylim(mean - window, mean + window)
        name = _from_above_zero(axes, name)
    else:
        style.from_zero(axes)
    style.whole_ticks(axes)
    style.label(axes, "day", name, title)


_INTERVAL: Final[Any] = {
    "fmt": "none",
    "color": style.BLUE,
    "capsize": 1.5,
    "linewidth": 0.7,
    "capthick": 0.7,
    "label": "95% interval, by visits",
}


def _from_above_zero(axes: Axes, name: str) -> str:
    """Return the name of a vertical axis with where it begins."""
    return f"{name}\n(axis from {axes.get_ylim()[0]:.2f})"


@style.of_measured
def draw_fig4(measured: pd.DataFrame) -> Figure:
    """Draw entropy (left axis, near its mean) and number of samples (right axis) over the days."""
    figure, (axes,) = style.panels(height_inches=2.5)
    days, samples = curve(measured, "samples")
    scale, unit = (1e6, " (million)") if max(samples) >= 1e6 else (1e3, " (thousand)")
    right = style.right_axis(axes, f"samples of the day{unit}", style.GREY)
    right.bar(days, np.asarray(samples) / scale, color=style.SKY, alpha=0.6, label="samples (right)")
    right.set_ylim(0.0, 3.0 * max(samples) / scale)
    _course(axes, measured, "entropy", "entropy (nats)", near=True, title=_spread(measured, "entropy"))
    axes.lines[0].set_label("entropy of the day (left)")
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)
    style.shared_legend(figure, columns=2)
    return figure


_WINDOW: Final = 0.05
"""What lies within so much of its mean fills a panel."""


def _spread(measured: pd.DataFrame, series: str) -> str:
    """Return in words how small the interval is into which the days fall."""
    values = curve(measured, series)[1]
    return f"{min(values):.3f} to {max(values):.3f}; published: a small interval"


def measure_fig5(days: pd.DataFrame, machines: pd.DataFrame, errors: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """Return entropies of function-level profiles: of a stable application by day, of one with two states by machine.

    Parameters
    ----------
    days : day, entry (function), samples; of an application whose workload is stable
    machines : machine, entry (function), samples, state; of an application with two behaviour states
    errors : standard error of the entropy by day; none: no intervals

    Returns
    -------
    DataFrame
        Series day_entropy by day, entropy_a and entropy_b by number of samples, and the judged numbers. `rise` compares
        the quarter of the machines with most samples with that with least; clusters are cut where the sum of squares
        within them is least, among the half of the machines with most samples.
    """
    table = entropies(days, "day")
    states = machines.groupby("machine")["state"].first().to_numpy()
    machine_rows = entropies(machines, "machine").assign(state=states)
    dense = machine_rows[machine_rows["samples"] >= machine_rows["samples"].median()]
    cut = valley(dense["entropy"].to_numpy())
    low, high = dense["entropy"][dense["entropy"] < cut], dense["entropy"][dense["entropy"] >= cut]
    within = float(np.sqrt((low.var(ddof=0) * len(low) + high.var(ddof=0) * len(high)) / len(dense)))
    agree = float(((dense["entropy"] < cut) == (dense["state"] > 0)).mean())
    quarter = np.quantile(machine_rows["samples"], [0.25, 0.75])
    few, many = machine_rows[machine_rows["samples"] <= quarter[0]], machine_rows[machine_rows["samples"] >= quarter[1]]
    return measures(
        _by_day("day_entropy", table["day"], table["entropy"], errors),
        *(
            rows(f"entropy_state_{state}", part["samples"], part["entropy"])
            for state, part in machine_rows.groupby("state")
        ),
        day_spread=spread(table["entropy"].to_numpy()),
        cluster_low=float(low.mean()),
        cluster_high=float(high.mean()),
        rise=_rise(few, many),
        gap_over_spread=float((high.mean() - low.mean()) / max(within, 1e-12)),
        states_right=max(agree, 1.0 - agree),
    )


def valley(values: Floats) -> float:
    """Return the cut that leaves the least sum of squares in two clusters (Fisher 1958, two groups)."""
    ordered = np.sort(values)
    cuts = 0.5 * (ordered[1:] + ordered[:-1])
    loss = [ordered[:i].var() * i + ordered[i:].var() * (ordered.size - i) for i in range(1, ordered.size)]
    return float(cuts[int(np.argmin(loss))]) if loss else float(ordered[0])


def _rise(few: pd.DataFrame, many: pd.DataFrame) -> float:
    """Return by how much more entropy machines with many samples have, in the mean over states that both have."""
    gains = [
        many.loc[many["state"] == state, "entropy"].mean() - few.loc[few["state"] == state, "entropy"].mean()
        for state in sorted(set(few["state"]) & set(many["state"]))
    ]
    return float(np.mean(gains)) if gains else float("nan")


def draw_fig5(measured: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    """Draw the entropy of functions by day, and by machine over its samples with the printed clusters as bands."""
    figure, (left, right) = style.panels(columns=2, height_inches=2.6)
    title = "(a) functions of a stable application\n" + _spread(measured, "day_entropy")
    _course(left, measured, "day_entropy", "entropy (nats)", near=True, title=title)
    for name in ("cluster_low", "cluster_high"):
        middle = number(paper, name)
        words = "published clusters" if name == "cluster_low" else ""
        style.published_band(right, middle - _CLUSTER, middle + _CLUSTER, words)
    for state, (colour, marker) in enumerate(zip((*style.CYCLE, style.GREY, style.INK), "os^vPXD*", strict=True)):
        samples, values = curve(measured, f"entropy_state_{state}")
        if samples:
            # Open points of the first state and few of many, so that both states can be seen where they overlie.
            step = math.ceil(len(samples) / _MOST_POINTS)
            fill = {"facecolors": "none", "edgecolors": colour, "zorder": 3} if state == 0 else {"color": colour}
            look: dict[str, Any] = {"s": 7, "alpha": 0.8, "linewidths": 0.5 if state == 0 else 0.0, **fill}
            words = f"behaviour state {state + 1}{f' (one in {step})' if step > 1 else ''}"
            right.scatter(samples[::step], values[::step], marker=marker, label=words, **look)
    right.set_xscale("log")
    style.label(right, "samples of the instance", "entropy (nats)", "(b) functions of one application\nby machine")
    for name, words in (("cluster_low", "measured clusters, mean"), ("cluster_high", "")):
        right.axhline(
            number(measured, name), color=style.INK, linestyle="--", linewidth=0.8, label=words or "_clusters"
        )
    style.shared_legend(figure, columns=3)
    return figure


_MOST_POINTS: Final = 150
"""Instances of a state that are drawn: evenly picked in order of their samples."""
_CLUSTER: Final = 0.25
"""Half of the width of either printed cluster, nats."""


def distances(frame: pd.DataFrame, top: int | None = None) -> pd.DataFrame:
    """Return the Manhattan distance of each day's profile from that of the day before.

    Parameters
    ----------
    frame : day, entry, samples
    top : entries of the earlier day that count; all without it

    Returns
    -------
    DataFrame
        day, distance; from the second day on.
    """
    days = [(day, part.groupby("entry")["samples"].sum()) for day, part in frame.groupby("day", sort=True)]
    table_rows = [
        {"day": day, "distance": manhattan(before, after, top)} for (_, before), (day, after) in pairwise(days)
    ]
    return pd.DataFrame(table_rows, columns=["day", "distance"])


def measure_fig6a(
    frame: pd.DataFrame, by_sampling: float, top: int = 20, errors: "pd.Series[float] | None" = None
) -> pd.DataFrame:
    """Return distances of daily application-level profiles, beside what sampling alone would give.

    Parameters
    ----------
    frame : day, entry (application), samples
    by_sampling : expected distance of two days between which nothing changed
    top : entries that count
    errors : standard error of the distance by day; none: no intervals
    """
    table = distances(frame, top)
    return measures(
        _by_day("distance", table["day"], table["distance"], errors),
        distance_max=float(table["distance"].max()),
        by_sampling=by_sampling,
        excess_over_sampling=float(table["distance"].median()) / by_sampling,
    )


@style.of_measured
def draw_fig6a(measured: pd.DataFrame) -> Figure:
    """Draw the distance of each day from the day before."""
    figure, (axes,) = style.panels(height_inches=2.4)
    _course(axes, measured, "distance", "Manhattan distance from the day before")
    axes.lines[0].set_label("top 20 applications")
    sampling = number(measured, "by_sampling")
    axes.axhline(
        sampling, color=style.ORANGE, linestyle="--", linewidth=1.2, label="by sampling alone, if nothing changed"
    )
    style.from_zero(axes)
    style.legend(axes, above=True)
    return figure


def measure_fig6b(
    frames: Mapping[str, pd.DataFrame], errors: Mapping[str, "pd.Series[float]"] = MappingProxyType({})
) -> pd.DataFrame:
    """Return distances from day to day by type of profile, and how they go together.

    Parameters
    ----------
    frames : profile type (`EVENTS`) to day, entry (application), samples
    errors : profile type to the standard error of the distance by day; of those without there are no intervals
    """
    lines = {event: distances(frame) for event, frame in frames.items()}
    median = {event: float(line["distance"].median()) for event, line in lines.items()}
    table = pd.DataFrame({event: line.set_index("day")["distance"] for event, line in lines.items()}).dropna()

    def together(a: str, b: str) -> float:
        return correlation(table[a], table[b])

    own = float(np.mean([together(a, b) for i, a in enumerate(REST) for b in REST[i + 1 :]]))
    others = float(np.mean([together(a, b) for a in ("heap_bytes", "threads") for b in REST]))
    return measures(
        *(_by_day(event, line["day"], line["distance"], errors.get(event)) for event, line in lines.items()),
        memory_over_cycles=median["heap_bytes"] / median["cycles"],
        threads_over_cycles=median["threads"] / median["cycles"],
        cpu_cycles_correlation=together("cpu_time", "cycles"),
        cycles_instructions_correlation=together("cycles", "instructions"),
        correlation_gap=own - others,
    )


@style.of_measured
def draw_fig6b(measured: pd.DataFrame) -> Figure:
    """Draw the distances by type of profile: of counters solid, of CPU time dashed, of memory and threads dotted."""
    figure, (axes,) = style.panels(height_inches=2.8)
    for (event, name), colour, marker in zip(EVENTS.items(), style.CYCLE, style.MARKERS, strict=True):
        kind, form, width = _KINDS[event]
        look: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 3,
            "linestyle": form,
            "linewidth": width,
        }
        axes.plot(*curve(measured, event), label=f"{name} ({kind})", **look)
        (days, low), (_, high) = (curve(measured, f"{event}_{end}") for end in ("low", "high"))
        axes.fill_between(days, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.fill_between([], [], color=style.GREY, alpha=0.2, linewidth=0, label="bands: 95% intervals, by visits")
    style.from_zero(axes)
    style.whole_ticks(axes)
    style.label(axes, "day", "Manhattan distance from the day before")
    style.shared_legend(figure, columns=2)
    return figure


_KINDS: Final[Mapping[str, tuple[str, str, float]]] = {
    **dict.fromkeys(("cycles", "instructions", "llc_misses"), ("HPM", "-", 0.9)),
    "cpu_time": ("server", "--", 0.9),
    "heap_bytes": ("memory", ":", 1.6),
    "threads": ("thread", ":", 1.6),
}
"""Of each type of profile: its kind, and how its line is drawn."""


def measure_fig7(
    days: Sequence[float],
    cpi: Sequence[float],
    truth: float,
    ends: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the fleet's CPI by day, and how far it strays.

    Parameters
    ----------
    days, cpi : a day's number, and its cycles per instruction from samples
    truth : cycles per instruction of the fleet's counters over all days; NaN: not known
    ends : low and high of the interval of each; empty: no intervals
    """
    values = np.asarray(cpi, float)
    mean = float(values.mean())
    return measures(
        rows("cpi", days, values),
        *(rows(f"cpi_day_{end}", days, at) for end, at in ends.items()),
        cpi_low=float(values.min()),
        cpi_high=float(values.max()),
        spread=float(np.abs(values / mean - 1.0).max()),
        error=abs(mean / truth - 1.0),
    )


def draw_fig7(measured: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    """Draw CPI over the days, near its mean and beside the printed interval: the level is the world's own."""
    figure, (near, axes) = style.panels(columns=2, height_inches=2.4)
    low, high = (number(paper, f"cpi_{end}") for end in ("low", "high"))
    style.published_band(axes, low, high, f"published, {low:g} to {high:g}")
    values = curve(measured, "cpi")[1]
    spread = f"(a) {min(values):.3f} to {max(values):.3f}, ±{number(measured, 'spread'):.1%} of the mean"
    for panel, title in ((near, spread), (axes, "(b) beside the published range")):
        _course(panel, measured, "cpi", "cycles per instruction", near=True, title=title, interval="cpi_day")
        panel.lines[0].set_label("measured")
    least, most = min(low, *values), max(high, *values)
    axes.set_ylim(least - 0.15 * (most - least), most + 0.15 * (most - least))
    axes.set_ylabel(_from_above_zero(axes, "cycles per instruction"))
    style.shared_legend(figure)
    return figure
