"""Kelly et al. (2008), Figure 6: utilisation by the Occupancy Law beside utilisation as the server counts it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve as series
from analysis.figures.criteria import numbers, rows
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law

_QUANTILES = {"median": 0.5, "p97": 0.97}


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
        jobs (present on average).
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
    return pd.DataFrame({"start_s": starts, "end_s": ends, **columns})


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
        parts += [rows(f"{prefix}{name}", compared["start_s"], compared[name]) for name in ("law", "counted", "jobs")]
        for kind in ("raw", "normalised"):
            ordered = np.sort(compared[kind].dropna())
            shares = np.arange(1, ordered.size + 1) / max(ordered.size, 1)
            parts.append(rows(f"{prefix}{kind}_error", ordered, shares))
    parts.append(
        numbers(utilisation_low=low, utilisation_high=high, exact_error=float(exact["raw"].max()), **values),
    )
    return pd.concat(parts, ignore_index=True)


def fig6(measured: pd.DataFrame, _published: pd.DataFrame) -> Figure:
    """Draw jobs present, utilisation by the law and as counted, in the simulation and on a real server; the errors."""
    figure, axes = style.panels(columns=2, rows=3)
    for column, (prefix, name) in enumerate(_SOURCES.items()):
        times, jobs = series(measured, f"{prefix}jobs")
        axes[column].plot(np.asarray(times) / 60, jobs, color=style.BLUE, linewidth=0.8)
        style.label(axes[column], "time (min)", "jobs present", name)
        _utilisation(axes[2 + column], measured, prefix)
        for panel, kind in zip(axes[4:], ("raw", "normalised"), strict=True):
            color = (style.BLUE, style.GREEN)[column]
            panel.step(*series(measured, f"{prefix}{kind}_error"), where="post", color=color, label=name)
            style.label(panel, f"{kind} error", "share of intervals")
            style.percent(panel, "x")
            style.percent(panel)
    style.legend(axes[5])
    return figure


_SOURCES = {"": "simulated, four servers", "live_": "a real server, stored run"}


def _utilisation(panel: Axes, measured: pd.DataFrame, prefix: str) -> None:
    times, counted = series(measured, f"{prefix}counted")
    panel.plot(np.asarray(times) / 60, counted, "_", color=style.ORANGE, markersize=4, label="counted by the server")
    times, by_law = series(measured, f"{prefix}law")
    words = "by the Occupancy Law"
    panel.plot(np.asarray(times) / 60, by_law, "o", color=style.BLUE, markersize=2, fillstyle="none", label=words)
    panel.set_ylim(top=1.35)
    panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
    style.label(panel, "time (min)", "utilisation")
    style.percent(panel)
    style.legend(panel)
