"""A server's log: how many requests were there, where the law cuts, and what that makes of each interval."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, ORANGE, RED, SKY, label, legend, panels, percent
from analysis.occupancy.curve import Curve
from models.arrays import Floats

_POINTS = 1000
"""A longer curve is drawn by its least and its greatest value in so many stretches."""


_COUNTED = 10
"""Fewer completions leave a rate open by more than a factor of two."""
_HEADROOM = 1.6
"""Bounds that are so much higher than all else are cut off; an arrow says so."""


def draw_occupancy(curve: Curve, servers: int, intervals: pd.DataFrame) -> Figure:
    """Return the occupancy curve with the line at N = k, and below it utilisation and queueing by interval.

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1
    intervals : as from `law.intervals`; at least one

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> from analysis.occupancy.law import intervals
    >>> occupancy = curve([0.0, 1.0], [3.0, 5.0])
    >>> len(draw_occupancy(occupancy, 1, intervals(occupancy, 1, 1.0)).axes)
    3
    """
    figure, (present, busy) = panels(rows=2, height_inches=1.7)
    scale, unit = _unit(curve.end_s - curve.start_s)
    time, low, high = _outline(curve)
    present.fill_between(time / scale, low, high, color=SKY, linewidth=0.4, step="post", label="requests present, N")
    present.axhline(servers, color=RED, linewidth=0.8, label=f"k = {servers}")
    present.set_ylim(bottom=0.0)
    label(present, f"time ({unit})", "requests")
    edges = np.append(intervals["start_s"], intervals["end_s"].iloc[-1]) / scale
    length_s = intervals["end_s"] - intervals["start_s"]
    present.stairs(
        intervals["response_time_s"] / length_s, edges, baseline=None, color=BLUE, linewidth=1.2, label="mean of N"
    )
    legend(present, columns=3, above=True)
    busy.stairs(intervals["utilisation"], edges, baseline=None, color=BLUE, linewidth=1.2, label="utilisation")
    busy.set_ylim(0.0, 1.05)
    percent(busy)
    label(busy, f"time ({unit})", "utilisation")
    waiting = busy.twinx()
    waiting.stairs(
        intervals["queueing_time_s"] / length_s, edges, baseline=None, color=ORANGE, linewidth=1.2, label="waiting"
    )
    waiting.set_ylim(bottom=0.0)
    waiting.set_ylabel("requests waiting", fontsize=8.0)
    for spine in waiting.spines.values():
        spine.set_visible(False)
    waiting.tick_params(width=0.6, length=2.5, labelsize=7.0)
    lines = [*busy.patches, *waiting.patches]
    busy.legend(handles=lines, frameon=False, ncols=2, fontsize=7.0, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return figure


def draw_servers(curve: Curve, servers: pd.DataFrame) -> Figure:
    """Return the requests present over time and the servers that were on, or on and starting.

    Parameters
    ----------
    curve : occupancy
    servers : time_s, servers, starting: from each time to the next; at least one row

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> course = pd.DataFrame({"time_s": [0.0, 2.0], "servers": [1, 2], "starting": [1, 0]})
    >>> len(draw_servers(curve([0.0, 1.0], [3.0, 5.0]), course).axes)
    1
    """
    figure, (axes,) = panels(rows=1, height_inches=2.0)
    scale, unit = _unit(curve.end_s - curve.start_s)
    time, low, high = _outline(curve)
    axes.fill_between(time / scale, low, high, color=SKY, linewidth=0.4, step="post", label="requests present, N")
    edges = np.append(servers["time_s"], max(curve.end_s, servers["time_s"].iloc[-1])) / scale
    ordered = servers["servers"] + servers["starting"]
    axes.stairs(ordered, edges, baseline=None, color=ORANGE, linewidth=0.8, label="servers ordered")
    axes.stairs(servers["servers"], edges, baseline=None, color=RED, linewidth=1.2, label="servers on")
    axes.set_ylim(bottom=0.0)
    label(axes, f"time ({unit})", "requests, servers")
    legend(axes, columns=3, above=True)
    return figure


def draw_scalability(rates: pd.DataFrame, servers: int) -> Figure:
    """Return completions per second by requests present, with the law and a queue of k servers.

    Parameters
    ----------
    rates : as from `scalability.accounts`
    servers : k >= 1
    """
    figure, (axes,) = panels(rows=1, height_inches=2.2)
    known = rates[rates["completions"] >= _COUNTED]
    value = known["rate_per_s"]
    axes.errorbar(
        known["present"],
        value,
        yerr=[value - known["low"], known["high"] - value],
        fmt="o",
        markersize=2.5,
        linewidth=0.7,
        color=BLUE,
        label="log, 95%",
    )
    axes.plot(rates["present"], rates["law_per_s"], color=RED, linewidth=1.2, label="scalability law")
    axes.plot(rates["present"], rates["queue_per_s"], color=ORANGE, linewidth=1.2, label=f"queue, k = {servers}")
    axes.set_ylim(bottom=0.0)
    label(axes, "requests present", "completions per second")
    legend(axes, columns=3, above=True)
    return figure


def draw_hours(needs: pd.DataFrame, servers: int) -> Figure:
    """Return the fewest servers for an objective by hour, and the largest load that those of the log carry.

    Parameters
    ----------
    needs : rows of `hours.HourNeeds`; a gap where the log cannot tell
    servers : k >= 1 of the log
    """
    figure, (above, below) = panels(rows=2, height_inches=3.4)
    at = np.arange(len(needs))
    for axes, (point, surely), recorded, unit in (
        (above, ("fewest", "surely"), servers, "servers"),
        (below, ("largest_load", "largest_load_surely"), 1.0, "largest load"),
    ):
        for column, colour, text in ((point, BLUE, "as recorded"), (surely, SKY, "surely")):
            value = needs[column].to_numpy(dtype=np.float64)
            axes.plot(at, value, drawstyle="steps-mid", marker=".", color=colour, linewidth=1.2, label=text)
        axes.axhline(recorded, color=RED, linewidth=0.8, label="in the log")
        axes.set_ylim(bottom=0.0)
        shown = at[:: max(1, len(at) // 12)]
        axes.set_xticks(shown, needs["hour"].iloc[shown].tolist())
        label(axes, "hour", unit)
    legend(above, columns=3, above=True)
    return figure


def draw_response(intervals: pd.DataFrame, what_if: pd.DataFrame, requests: int) -> Figure:
    """Return mean response time by interval, and the queueing time of a request with other numbers of servers.

    Parameters
    ----------
    intervals : as from `law.intervals`; at least one
    what_if : servers, seen_s (aggregate queueing time of the log itself), low_s and high_s (within which it would lie;
        infinite: no bound), replayed_s; NaN: unknown; no row if nothing was asked
    requests : that the times are divided by

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> from analysis.occupancy.law import intervals
    >>> rows = [{"servers": 1, "seen_s": 2.0}, {"servers": 2, "low_s": 0.0, "high_s": 1.0, "replayed_s": 0.0}]
    >>> len(draw_response(intervals(curve([0.0, 1.0], [3.0, 5.0]), 1, 1.0), pd.DataFrame(rows), 2).axes)
    2
    """
    figure, (present, *others) = panels(columns=1 + bool(len(what_if)), height_inches=2.1)
    scale, unit = _unit(intervals["end_s"].iloc[-1] - intervals["start_s"].iloc[0])
    edges = np.append(intervals["start_s"], intervals["end_s"].iloc[-1]) / scale
    length_s = (intervals["end_s"] - intervals["start_s"]).to_numpy()
    busy, all_of_them = (intervals[f"{name}_time_s"].to_numpy() / length_s for name in ("service", "response"))
    present.stairs(busy, edges, fill=True, color=SKY, label="in service")
    present.stairs(all_of_them, edges, baseline=busy, fill=True, color=ORANGE, label="waiting")
    label(present, f"time ({unit})", "mean number of requests")
    legend(present, columns=2, above=True)
    for panel in others:
        _what_if(panel, what_if, requests)
    return figure


def _what_if(axes: Axes, what_if: pd.DataFrame, requests: int) -> None:
    """Draw queueing time for each number of servers: between bounds, as replayed, and as it was."""
    at = np.arange(len(what_if))
    low, high, replayed, seen = (
        what_if[name].to_numpy(dtype=np.float64) / requests for name in ("low_s", "high_s", "replayed_s", "seen_s")
    )
    known = np.concatenate([values[np.isfinite(values)] for values in (low, replayed, seen)])
    top = _HEADROOM * float(known.max(initial=0.0)) or 1.0
    axes.vlines(at, low, np.minimum(high, top), color=SKY, linewidth=5.0, label="bounds")
    for cut in at[high > top]:
        axes.plot([cut], [top], "^", markersize=5.0, color=SKY, clip_on=False)
    axes.plot(at, replayed, "o", markersize=3.0, color=BLUE, label="replayed")
    axes.plot(at, seen, "x", markersize=4.0, color=RED, label="as it was")
    axes.set_xticks(at, [f"{servers}" for servers in what_if["servers"]])
    axes.set_xlim(-0.5, len(at) - 0.5)
    axes.set_ylim(-0.02 * top, top)
    label(axes, "servers", "queueing time of a request (s)")
    legend(axes, columns=3, above=True)


def _unit(length_s: float) -> tuple[float, str]:
    """Return the unit of time in which a length is a handy number."""
    return next(
        (unit for unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")) if length_s >= 3 * unit[0]), (1.0, "s")
    )


def _outline(curve: Curve) -> tuple[Floats, Floats, Floats]:
    """Return times from which on the curve lies between two values: each its own if they are few."""
    jobs = curve.jobs.astype(np.float64)
    if len(jobs) <= _POINTS:
        edges = np.append(jobs, jobs[-1:]) if len(jobs) else np.zeros(len(curve.time_s))
        return curve.time_s, np.zeros(len(edges)), edges
    grid = np.linspace(curve.start_s, curve.end_s, _POINTS + 1)
    first = np.minimum(np.searchsorted(curve.time_s, grid[:-1], side="right") - 1, len(jobs) - 1)
    low, high = np.minimum.reduceat(jobs, first), np.maximum.reduceat(jobs, first)
    return grid, np.append(low, low[-1]), np.append(high, high[-1])
