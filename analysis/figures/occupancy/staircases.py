"""Kelly et al. (2008), Figures 2 to 5: occupancy curves, and where the Occupancy Law and the bounds lie in them."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures import style
from analysis.figures.criteria import curve as series
from analysis.figures.criteria import measures, number, numbers, rows
from analysis.figures.occupancy.accuracy import in_service
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import area, intervals, law
from models.arrays import Floats
from models.queues.serve import serve

UNIT_JOBS, UNIT_ARRIVAL_S = 4, 1.0
"""Figure 2: four jobs of unit demand arrive together."""
_ROUNDING = 1e-12


def of_servers(replays: pd.DataFrame, servers: int) -> Curve:
    """Return the occupancy curve of a load served by so many servers.

    Parameters
    ----------
    replays : servers, arrival_s, departure_s
    servers : which of them
    """
    own = replays[replays["servers"] == servers]
    return curve(own["arrival_s"].to_numpy(), own["departure_s"].to_numpy())


def measure_fig2(demand_s: float = 1.0) -> pd.DataFrame:
    """Return the curves of four equal jobs with one and with two servers, and the areas under them.

    jobs_k{k} at times 0, 1, 2, …; service_k{k}, queueing_k{k} and response_k{k} in seconds.

    Parameters
    ----------
    demand_s : of each job
    """
    arrival_s, demands_s = np.full(UNIT_JOBS, UNIT_ARRIVAL_S), np.full(UNIT_JOBS, demand_s)
    parts = []
    for k in (1, 2):
        occupancy = curve(arrival_s, serve("fcfs", arrival_s, demands_s, k).departure_s)
        total, times = law(occupancy, k), np.arange(6.0)
        areas = {"service": total.service_time_s, "queueing": total.queueing_time_s, "response": total.response_time_s}
        parts.append(rows(f"jobs_k{k}", times, _jobs_at(occupancy, times)))
        parts.append(numbers(**{f"{name}_k{k}": value for name, value in areas.items()}))
    return pd.concat(parts, ignore_index=True)


def measure_fig3(served: pd.DataFrame, servers: int, interval_s: float = 60.0) -> pd.DataFrame:
    """Return how exactly the area below and above N = k is service and queueing time, by the servers' own record.

    The curve, split_error, service_error, queueing_error and interval_error (relative).

    Parameters
    ----------
    served : arrival_s, start_s, departure_s, demand_s; exact stamps of servers without preemption, all requests
    servers : k
    interval_s : length of the intervals in which the law is tested as well
    """
    occupancy = curve(served["arrival_s"].to_numpy(), served["departure_s"].to_numpy())
    total, demand_s = law(occupancy, servers), float(served["demand_s"].sum())
    response_s = float((served["departure_s"] - served["arrival_s"]).sum())
    parts = intervals(occupancy, servers, interval_s)
    recorded = in_service(served, servers, [*parts["start_s"], parts["end_s"].iloc[-1]])
    off = np.abs(parts["utilisation"] - recorded["utilisation"]) / max(float(recorded["utilisation"].max()), 1e-9)
    return measures(
        _staircase("jobs", occupancy),
        servers=float(servers),
        split_error=abs(total.service_time_s + total.queueing_time_s - response_s) / response_s,
        service_error=abs(total.service_time_s - demand_s) / demand_s,
        queueing_error=abs(total.queueing_time_s - (response_s - demand_s)) / max(response_s - demand_s, 1e-9),
        interval_error=float(off.max()),
    )


def measure_fig4(replays: pd.DataFrame, servers: int, to: int) -> pd.DataFrame:
    """Return the area between two numbers of servers, and how much more queueing than that really vanishes.

    The curve, area, reduction (seconds), area_error, excess (share of the area).

    Parameters
    ----------
    replays : servers, arrival_s, departure_s; the same load served by `servers` and by `to`
    servers, to : k < k'
    """
    before, after = of_servers(replays, servers), of_servers(replays, to)
    between = _above(before, servers) - _above(before, to)
    shaded = area(before, to) - area(before, servers)
    reduction = _above(before, servers) - _above(after, to)
    return measures(
        _staircase("jobs", before),
        servers=float(servers),
        to=float(to),
        area=shaded,
        reduction=reduction,
        area_error=abs(between - shaded),
        excess=reduction / shaded - 1.0,
    )


def measure_fig5(replays: pd.DataFrame) -> pd.DataFrame:
    """Return whether more servers ever make the curve higher, and the bound's slack, over all pairs of a replayed load.

    The curves of the least and the next number of servers, rise_max (jobs), slack_min (seconds), identity_error
    (relative).

    Parameters
    ----------
    replays : servers, arrival_s, departure_s; the same load served by several numbers of servers
    """
    curves = {int(k): of_servers(replays, int(k)) for k in sorted(replays["servers"].unique())}
    pairs = [(a, b) for a in curves for b in curves if a < b]
    rise, slack, identity = [], [], []
    for a, b in pairs:
        reduction = _above(curves[a], a) - _above(curves[b], b)
        response_s, less_s = (law(curves[k], k).response_time_s for k in (a, b))
        served = law(curves[a], a).service_time_s - law(curves[b], b).service_time_s
        rise.append(_rise(curves[a], curves[b]))
        slack.append(reduction - (area(curves[a], b) - area(curves[a], a)))
        identity.append(abs(reduction - (response_s - less_s - served)) / max(_above(curves[a], a), 1e-9))
    first, second = list(curves)[:2]
    return measures(
        _staircase(f"jobs_k{first}", curves[first]),
        _staircase(f"jobs_k{second}", curves[second]),
        rise_max=max(rise),
        slack_min=min(slack),
        identity_error=max(identity),
    )


def _above(occupancy: Curve, level: int) -> float:
    """Return the area above a level, from the steps themselves."""
    return float(np.sum(np.maximum(occupancy.jobs - level, 0) * np.diff(occupancy.time_s)))


def _rise(before: Curve, after: Curve) -> float:
    """Return by how many jobs `after` is ever above `before`, at most, for longer than rounding of the clock."""
    times = np.unique(np.concatenate([before.time_s, after.time_s]))
    lasting = np.diff(times) > _ROUNDING * max(1.0, float(np.abs(times).max()))
    middle = ((times[1:] + times[:-1]) / 2)[lasting]
    return float(np.max(_jobs_at(after, middle) - _jobs_at(before, middle)))


def _jobs_at(occupancy: Curve, times_s: Floats) -> Floats:
    at = np.searchsorted(occupancy.time_s, times_s, side="right") - 1
    inside = (at >= 0) & (at < occupancy.jobs.size)
    return np.where(inside, occupancy.jobs[np.clip(at, 0, occupancy.jobs.size - 1)], 0).astype(float)


def _staircase(name: str, occupancy: Curve) -> pd.DataFrame:
    return rows(name, occupancy.time_s, np.append(occupancy.jobs, 0.0))


def fig2(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the two staircases of four unit jobs."""
    figure, axes = style.panels(columns=2, share_y=True, height_inches=2.4)
    for panel, k in zip(axes, (1, 2), strict=True):
        times, jobs = (np.asarray(side) for side in series(measured, f"jobs_k{k}"))
        names = ((0.0, float(k), style.SKY, "service time"), (float(k), np.inf, style.ORANGE, "queueing time"))
        for low, high, colour, name in names:
            _between(panel, times, jobs, (low, high), color=colour, name=name)
        panel.step(times, jobs, where="post", color=style.BLUE, linewidth=1.2, label="jobs present, N(t)")
        style.published_points(panel, *series(published, f"jobs_k{k}"))
        parts = {
            name: [number(table, f"{name}_k{k}") for table in (measured, published)]
            for name in ("service", "queueing", "response")
        }
        lines = [f"{name} {ours:g} s (published {paper:g} s)" for name, (ours, paper) in parts.items()]
        style.label(panel, "time (s)", "" if panel is axes[1] else "jobs present", "\n".join([f"k = {k}", *lines]))
        panel.set_ylim(-0.15, 1.08 * UNIT_JOBS)
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    style.shared_legend(figure)
    return figure


def fig3(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the curve's busiest stretch split at N = k into service and queueing time."""
    figure, (panel,) = style.panels(height_inches=2.5)
    times, jobs = _stretch(*series(measured, "jobs"))
    servers = number(measured, "servers")
    _between(panel, times, jobs, (0.0, servers), color=style.SKY, name="service time")
    _between(panel, times, jobs, (servers, np.inf), color=style.ORANGE, name="queueing time")
    _finish(panel, times, jobs, (servers,), f"published and here: k = {number(published, 'servers'):g}")
    return figure


def fig4(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the curve's busiest stretch with the area between k and k'."""
    figure, (panel,) = style.panels(height_inches=2.6)
    times, jobs = _stretch(*series(measured, "jobs"))
    servers, to = number(measured, "servers"), number(measured, "to")
    _between(panel, times, jobs, (servers, to), color=style.ORANGE, name=f"between N = {servers:g} and N = {to:g}")
    area, less = number(measured, "area"), number(measured, "reduction")
    shown = float(np.sum(np.clip(jobs - servers, 0.0, to - servers)[:-1] * np.diff(times)))
    more = f"{less / area - 1:.0%} more than the area" if area else "no area"
    printed = f"published and here: k = {number(published, 'servers'):g}, k' = {number(published, 'to'):g}"
    title = (
        f"area: {shown:,.0f} s in this stretch, {area:,.0f} s in the run;\n"
        f"in the run queueing falls by {less:,.0f} s\n({more})\n{printed}"
    )
    _finish(panel, times, jobs, (servers, to), title)
    return figure


def fig5(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw queueing with few and with more servers, one over the other."""
    figure, (panel,) = style.panels(height_inches=2.5)
    names = sorted({name for name in measured["series"] if name.startswith("jobs_k")})
    few, more = (int(name.removeprefix("jobs_k")) for name in names)
    times, jobs = _stretch(*series(measured, names[0]))
    _between(panel, times, jobs, (few, np.inf), color=style.SKY, name=f"queueing, k = {few}")
    later, left = (np.asarray(column) for column in series(measured, names[1]))
    inside = (later >= times[0]) & (later <= times[-1])
    upper = np.maximum(left[inside], more)
    panel.fill_between(
        later[inside], more, upper, step="post", color=style.ORANGE, linewidth=0, label=f"queueing, k' = {more}"
    )
    panel.step(later[inside], left[inside], where="post", color=style.INK, linewidth=0.7, label=f"N(t), k' = {more}")
    _finish(panel, times, jobs, (few, more))
    return figure


def _stretch(times: list[float], jobs: list[float], most_events: int = 120) -> tuple[Floats, Floats]:
    """Return the part of a staircase around its peak, at most so many steps of it."""
    peak = int(np.argmax(jobs))
    first = max(0, min(peak - most_events // 2, len(times) - most_events))
    return np.asarray(times[first : first + most_events]), np.asarray(jobs[first : first + most_events])


def _between(panel: Axes, times: Floats, jobs: Floats, levels: tuple[float, float], *, color: str, name: str) -> None:
    top = np.clip(jobs, *levels)
    panel.fill_between(times, levels[0], top, step="post", color=color, alpha=0.6, linewidth=0, label=name)


def _finish(panel: Axes, times: Floats, jobs: Floats, levels: tuple[float, ...], title: str = "") -> None:
    """Draw the curve itself and the lines at numbers of servers; name all of it above the panel."""
    panel.step(times, jobs, where="post", color=style.BLUE, linewidth=0.8, label=f"N(t), k = {levels[0]:g}")
    for level, form in zip(levels, ("-", "--"), strict=False):
        panel.axhline(level, color=style.GREY, linestyle=form, linewidth=0.8, label=f"N = {level:g}")
    style.from_zero(panel)
    panel.set_xlim(times[0], times[-1])
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    style.label(panel, "time (s)", "jobs present", title)
    style.legend(panel, columns=2, above=True)
