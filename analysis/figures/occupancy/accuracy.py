"""Kelly et al. (2008), Figure 6: utilisation by the Occupancy Law beside utilisation as the server counts it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve as series
from analysis.figures.criteria import number, numbers, rows
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import law
from models.arrays import Floats

_QUANTILES = {"median": 0.5, "p97": 0.97}
_PICKS: tuple[tuple[Any, float], ...] = ((np.min, np.inf), (np.max, -np.inf))


def beside(requests: pd.DataFrame, cpu: pd.DataFrame, servers: int) -> pd.DataFrame:
    """Return utilisation by the law and as counted, interval by interval.

    Parameters
    ----------
    requests : arrival_s, departure_s; as seen by whoever stamped them
    cpu : start_s, end_s, utilisation; the server's own accounting
    servers : k

    Returns
    -------
    DataFrame
        start_s, end_s, law, counted, raw (absolute difference), normalised (the same over counted; NaN where idle),
        jobs (present on average), fewest, most (present at any moment).
    """
    starts, ends = cpu["start_s"].to_numpy(float), cpu["end_s"].to_numpy(float)
    arrival_s, departure_s = requests["arrival_s"].to_numpy(), requests["departure_s"].to_numpy()
    first, last = min(starts.min(), arrival_s.min()), max(ends.max(), np.nanmax(departure_s))
    occupancy = curve(arrival_s, departure_s, first, last)
    by_span = [law(occupancy, servers, *span) for span in zip(starts, ends, strict=True)]
    by_law = np.array([answer.utilisation for answer in by_span])
    jobs = np.array([answer.response_time_s for answer in by_span]) / (ends - starts)
    counted = cpu["utilisation"].to_numpy(float)
    raw = np.abs(by_law - counted)
    normalised = np.divide(raw, counted, out=np.full(raw.shape, np.nan), where=counted > 0)
    columns = {"law": by_law, "counted": counted, "raw": raw, "normalised": normalised, "jobs": jobs}
    fewest, most = _extremes(occupancy, starts, ends)
    return pd.DataFrame({"start_s": starts, "end_s": ends, **columns, "fewest": fewest, "most": most})


def _extremes(occupancy: Curve, starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Return the fewest and the most jobs that were present at any moment of each interval."""
    first = np.maximum(np.searchsorted(occupancy.time_s, starts, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(occupancy.time_s, ends, side="left"), first + 1)
    parts = [occupancy.jobs[a:b].astype(float) for a, b in zip(first, last, strict=True)]
    fewest, most = (np.array([pick(part, initial=start) for part in parts], float) for pick, start in _PICKS)
    return np.where(np.isfinite(fewest), fewest, 0.0), np.where(np.isfinite(most), most, 0.0)


def in_service(served: pd.DataFrame, servers: int, ends_s: Sequence[float]) -> pd.DataFrame:
    """Return utilisation by the servers' own record: for how long each request was on one of them.

    It knows nothing of how many requests were present, so it can judge the law. Only without preemption is a request
    on a server from its start to its departure.

    Parameters
    ----------
    served : start_s, departure_s; of servers without preemption, every request included
    servers : k
    ends_s : (m + 1,) where intervals end and the next begin, increasing, seconds

    Returns
    -------
    DataFrame
        start_s, end_s, utilisation.
    """
    start_s, length_s = served["start_s"].to_numpy(), (served["departure_s"] - served["start_s"]).to_numpy()
    ends = np.asarray(ends_s, dtype=float)
    until_s = np.array([np.clip(end - start_s, 0.0, length_s).sum() for end in ends])
    utilisation = np.diff(until_s) / (servers * np.diff(ends))
    return pd.DataFrame({"start_s": ends[:-1], "end_s": ends[1:], "utilisation": utilisation})


def errors(compared: pd.DataFrame, suffix: str = "") -> dict[str, float]:
    """Return median and 97th percentile of both errors.

    Parameters
    ----------
    compared : raw, normalised; of `beside`
    suffix : what the names end in
    """
    return {
        f"{kind}_error_{name}{suffix}": float(compared[kind].quantile(share))
        for kind in ("raw", "normalised")
        for name, share in _QUANTILES.items()
    }


def measure_fig6(long: pd.DataFrame, short: pd.DataFrame, exact: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of the law's utilisation in two simulated experiments and on a real server.

    Law, counted and jobs over minutes, distributions of errors, and the judged numbers.

    Parameters
    ----------
    long, short : of `beside`, by the client's stamps and the sampled counter; demands of seconds and of tenths of them
    exact : the same by the server's exact stamps and its own record of who was on a server
    live : the same of a stored run of a real server
    """
    low, high = float(long["counted"].min()), float(long["counted"].max())
    values = errors(long) | errors(short, "_short")
    values |= {f"live_{name}": value for name, value in errors(live).items()}
    parts = []
    for prefix, compared in (("", long), ("live_", live)):
        names = ("law", "counted", "jobs", "fewest", "most")
        parts += [rows(f"{prefix}{name}", compared["start_s"], compared[name]) for name in names]
        for kind in ("raw", "normalised"):
            ordered = np.sort(compared[kind].dropna())
            shares = np.arange(1, ordered.size + 1) / max(ordered.size, 1)
            parts.append(rows(f"{prefix}{kind}_error", ordered, shares))
    parts.append(
        numbers(utilisation_low=low, utilisation_high=high, exact_error=float(exact["raw"].max()), **values),
    )
    return pd.concat(parts, ignore_index=True)


def fig6(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the occupancy curve below utilisation by the law and as counted, and the errors of the former.

    As in the original, jobs are on the left scale and utilisation on the right one, and the distributions of the errors
    are beside; a row for the simulation and one for a real server.
    """
    figure, axes = style.panels(columns=2, rows=2, height_inches=2.3, widths=(1.7, 1.0))
    for row, (prefix, name) in enumerate(_SOURCES.items()):
        course, errors_at = axes[2 * row : 2 * row + 2]
        _course(course, measured, prefix)
        style.label(course, "time (min)", "jobs present, N(t)", name)
        _errors(errors_at, measured, published, prefix)
        errors_at.set_title(f"errors, {'(b)' if prefix else '(a)'}", fontsize=style.FONT_POINTS)
    ends = [
        [f"{number(table, f'utilisation_{end}'):.1%}" for end in ("low", "high")] for table in (measured, published)
    ]
    words = f"utilisation {ends[0][0]} to {ends[0][1]} (published {ends[1][0]} to {ends[1][1]})"
    axes[0].set_title(f"{axes[0].get_title()}\n{words}", fontsize=style.FONT_POINTS)
    style.shared_legend(figure)
    return figure


_SOURCES = {"": "(a) simulated, four servers", "live_": "(b) a real server, stored run"}


def _course(panel: Axes, measured: pd.DataFrame, prefix: str) -> None:
    """Draw jobs in the lower half of a panel and utilisation in the upper one, either with an axis of its own."""
    times, fewest = series(measured, f"{prefix}fewest")
    _, most = series(measured, f"{prefix}most")
    minutes = np.asarray(times) / 60
    panel.fill_between(minutes, fewest, most, step="post", color=style.SKY, linewidth=0, label="jobs, fewest to most")
    panel.set_ylim(0.0, 2.1 * float(np.max(most, initial=1.0)))
    panel.set_xlim(0.0, 1.02 * float(np.max(minutes, initial=1.0)))
    right = style.right_axis(panel, "utilisation", style.BLUE)
    counted: dict[str, Any] = {"color": style.ORANGE, "markersize": 5, "markeredgewidth": 1.2}
    right.plot(minutes, series(measured, f"{prefix}counted")[1], "_", label="utilisation, counted", **counted)
    by_law: dict[str, Any] = {"color": style.BLUE, "markersize": 2.5, "fillstyle": "none", "markeredgewidth": 0.7}
    right.plot(minutes, series(measured, f"{prefix}law")[1], "o", label="utilisation, Occupancy Law", **by_law)
    right.set_ylim(-1.15, 1.08)
    right.set_yticks([0.0, 0.5, 1.0])
    style.percent(right)


def _errors(panel: Axes, measured: pd.DataFrame, published: pd.DataFrame, prefix: str) -> None:
    """Draw the distributions of both errors, and printed quantiles beside ours where the paper has some."""
    for kind, colour, form in (("raw", style.GREEN, "-"), ("normalised", style.PURPLE, "--")):
        error, share = series(measured, f"{prefix}{kind}_error")
        panel.step(error, share, form, where="post", color=colour, linewidth=1.2, label=f"{kind} error")
    if not prefix:
        of_short = [
            [number(table, f"normalised_error_{name}_short") for name in _QUANTILES] for table in (measured, published)
        ]
        look: dict[str, Any] = {"color": style.RED, "markersize": 4.0, "markeredgewidth": 1.0, "zorder": 6}
        panel.plot(of_short[0], [*_QUANTILES.values()], "x", label="short demands, normalised", **look)
        style.published_points(panel, of_short[1], [*_QUANTILES.values()], style.RED, "published, short demands")
    style.published_line(panel, 0.01, "x", "published: within 1%")
    panel.set_xscale("log")
    panel.set_xlim(1e-5, 1.0)
    panel.set_ylim(0.0, 1.05)
    panel.set_xticks([1e-4, 1e-3, 1e-2, 1e-1], ["0.01%", "", "1%", "10%"])
    panel.minorticks_off()
    style.percent(panel)
    style.label(panel, "error of utilisation", "share of intervals")
    style.zoom(panel)
