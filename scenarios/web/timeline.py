"""The course of a query over time: shares with intervals in equal steps, and the times that one may choose from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.profiling.fleet_samples import visits_of_fleet
from analysis.profiling.intervals import share_intervals, within_visits
from analysis.profiling.query import Query
from models.arrays import DAY_S, HOUR_S
from scenarios.files.options import time_text
from scenarios.profiling.intervals import CLUSTER, LEVEL, drawn, without
from scenarios.views.section import Table, table
from scenarios.web.charts import OTHER
from scenarios.web.parameters import PageQuery
from scenarios.web.site import ProfileSite

_STEPS_S = (900.0, 1800.0, HOUR_S, 2 * HOUR_S, 3 * HOUR_S, 6 * HOUR_S, DAY_S / 2, DAY_S, 7 * DAY_S, 28 * DAY_S)
_MOST_STEPS, _SERIES, _LABELS = 28, 4, 8
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960.0, 190.0, 48.0, 8.0, 22.0
_APART = frozenset({"visit", "process", "day", "date"})
"""Dimensions that have no course over time, or are one."""
_BAR = 3.0
"""Half of the width of an interval that stands alone."""
_HEADROOM = 1.6
"""The ends of intervals are drawn up to so many times the largest share."""


@dataclass(frozen=True, slots=True)
class ShareLine:
    """One key over time: SVG's points of its line, of its bands, one a run of known intervals, and of each step."""

    name: str
    line: str
    bands: tuple[str, ...]
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True, slots=True)
class SharesOverTime:
    """Shares over time, drawn, with the times to choose."""

    width: float
    height: float
    left: float
    since_s: float
    until_s: float
    step_s: float
    origin_s: float | None
    """From when times count, in seconds since 1970; none: unknown."""
    courses: tuple[ShareLine, ...]
    series: tuple[str, ...]
    x_labels: tuple[tuple[float, str], ...]
    y_labels: tuple[tuple[float, str], ...]
    chosen: tuple[float, float] | None
    """Left end and width of the time that is asked for."""
    presets: tuple[tuple[str, str], ...]
    """Name and address."""
    query: str
    """Address of the page without its times, to which `since` and `until` are added."""
    diff: str
    """Address of the difference, to which the times of `a` and `b` are added."""
    lacking: str
    table: Table


def timeline(
    site: ProfileSite, request: PageQuery, path: str = "/query", rows: int | None = None
) -> SharesOverTime | None:
    """Return the course of the largest keys of a query; none if it has no course.

    Parameters
    ----------
    site : asked
    request : whose largest keys, within its times; the course is over all times
    path : page that the times are chosen for
    rows : of the table beside it, which asks the same question; as many as the request has if not said
    """
    query = request.query
    starts = visits_of_fleet(site.database)[[CLUSTER, "start_s"]]
    if _APART & set(query.by) or not len(starts) or starts["start_s"].min() == starts["start_s"].max():
        return None
    whole = replace(query, since_s=None, until_s=None)
    top = site.database.query(query, max(rows or request.top, _SERIES)).head(_SERIES)
    if not len(top):
        return None
    names = [" · ".join(map(str, row)) for row in top[list(query.by)].itertuples(index=False, name=None)]
    step_s = _step(float(starts["start_s"].max() - starts["start_s"].min()))
    since_s = math.floor(float(starts["start_s"].min()) / step_s) * step_s
    steps = math.floor((float(starts["start_s"].max()) - since_s) / step_s) + 1
    lacking = "" if drawn(site.database, whole) else without(site.database, whole)

    def shares_of() -> pd.DataFrame:
        rows = _by_visit(site, whole, top, names).merge(starts, on=CLUSTER)
        rows = rows.assign(step=((rows["start_s"] - since_s) // step_s).astype(int))
        return _shares(rows, names, known=not lacking)

    shares = site.once(("shares over time", whole, tuple(names)), shares_of)
    largest = float(shares["share"].max()) or 1.0
    highest = _round_above(min(float(shares[["share", "high"]].max().max()), _HEADROOM * largest))
    scale = _Scale(since_s, since_s + steps * step_s, step_s, highest, site.database.origin_s)
    bare = replace(request, query=whole)
    return SharesOverTime(
        _WIDTH,
        _HEIGHT + _BOTTOM,
        _LEFT,
        scale.since_s,
        scale.until_s,
        step_s,
        scale.origin_s,
        tuple(_course(name, shares, scale) for name in names),
        tuple(names),
        tuple((scale.x(time_s), scale.text(time_s).removesuffix("T00:00Z")) for time_s in _ticks(scale)),
        tuple((scale.y(part * highest), f"{100 * part * highest:.3g}%") for part in (0.0, 0.5, 1.0)),
        scale.chosen(query),
        _presets(bare, path, scale, float(starts["start_s"].max())),
        bare.url(path),
        bare.url("/diff"),
        lacking,
        _table(shares, names, scale),
    )


def _round_above(share: float) -> float:
    """Return the least share from one on whose half is short to write, too.

    Examples
    --------
    >>> _round_above(0.051), _round_above(0.11), _round_above(1.0)
    (0.06, 0.12, 1.0)
    """
    size = 10.0 ** math.floor(math.log10(share))
    least = next((part for part in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8) if part * size >= share * (1 - 1e-9)), 10)
    return float(f"{least * size:.3g}")


def _step(span_s: float) -> float:
    return next((step for step in _STEPS_S if span_s / step < _MOST_STEPS), _STEPS_S[-1])


def _by_visit(site: ProfileSite, query: Query, top: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return name, visit, samples and value of the top rows of a query, and of all others."""
    rows = within_visits(site.database, query, top)
    titles = np.array([*names, OTHER], dtype=object)  # of everything else, numbered −1, the last
    return rows.assign(name=titles[rows["row"]])[["name", CLUSTER, "samples", "value"]]


def _shares(rows: pd.DataFrame, names: Sequence[str], *, known: bool) -> pd.DataFrame:
    """Return step, name, share, low, high; without limits where nothing is known of them."""
    tables = []
    for step, part in rows.groupby("step"):
        value = part.assign(value=part["value"].astype(float))
        if not value["value"].sum():
            continue
        if known and len(set(value[CLUSTER])) > 1:
            columns = ["name", CLUSTER, "samples", "value"]
            own = share_intervals(value[columns], cluster=CLUSTER, confidence=LEVEL)[["name", "share", "low", "high"]]
        else:
            share = value.groupby("name")["value"].sum() / value["value"].sum()
            own = pd.DataFrame({"name": share.index, "share": share.to_numpy(), "low": np.nan, "high": np.nan})
        wanted = own.set_index("name").reindex(list(names))
        wanted["share"] = wanted["share"].fillna(0.0)
        tables.append(wanted.reset_index().assign(step=step))
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From times and shares to the chart's units."""

    since_s: float
    until_s: float
    step_s: float
    most: float
    origin_s: float | None

    def x(self, time_s: float) -> float:
        part = (time_s - self.since_s) / (self.until_s - self.since_s)
        return round(_LEFT + (_WIDTH - _LEFT) * min(max(part, 0.0), 1.0), 1)

    def y(self, share: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP) * (1 - min(share / self.most, 1.0)), 1)

    def begin(self, step: float) -> float:
        return self.since_s + step * self.step_s

    def text(self, time_s: float) -> str:
        return moment_text(time_s, self.origin_s)

    def chosen(self, query: Query) -> tuple[float, float] | None:
        """Return left end and width of a query's times; none if it is about all."""
        if query.since_s is None and query.until_s is None:
            return None
        first = self.x(self.since_s if query.since_s is None else query.since_s)
        last = self.x(self.until_s if query.until_s is None else query.until_s)
        return first, round(max(2.0, last - first), 1)


def _course(name: str, shares: pd.DataFrame, scale: _Scale) -> ShareLine:
    """Return how the shares of one key are drawn."""
    own = shares[shares["name"] == name].sort_values("step")
    line, dots = list[str](), list[tuple[float, float, str]]()
    runs: list[list[tuple[float, float, float]]] = [[]]
    for step, share, low, high in zip(
        *(own[column].tolist() for column in ("step", "share", "low", "high")), strict=True
    ):
        x = scale.x(scale.begin(step + 0.5))
        line.append(f"{x},{scale.y(share)}")
        if math.isfinite(low):
            runs[-1].append((x, scale.y(high), scale.y(low)))
        elif runs[-1]:
            runs.append([])
        dots.append((x, scale.y(share), f"{scale.text(scale.begin(step))}: {name} {_share(share, low, high)}"))
    return ShareLine(name, " ".join(line), tuple(band_points(run) for run in runs if run), tuple(dots))


def band_points(run: Sequence[tuple[float, float, float]]) -> str:
    """Return SVG's points of the band over steps that follow each other; a bar if it is a single step.

    Parameters
    ----------
    run : x, upper and lower end of each step, at least one, pixels

    Examples
    --------
    >>> band_points([(10.0, 5.0, 8.0)])
    '7.0,5.0 13.0,5.0 13.0,8.0 7.0,8.0'
    """
    if len(run) == 1:
        ((x, upper, lower),) = run
        run = [(x - _BAR, upper, lower), (x + _BAR, upper, lower)]
    ends = [(x, upper) for x, upper, _ in run] + [(x, lower) for x, _, lower in reversed(run)]
    return " ".join(f"{round(x, 1)},{y}" for x, y in ends)


def _share(share: float, low: float, high: float) -> str:
    limits = f" ({100 * low:.2f} to {100 * high:.2f})" if math.isfinite(low) else ""
    return f"{100 * share:.2f}%{limits}"


def moment_text(time_s: float, origin_s: float | None) -> str:
    """Return a time in words: day, and hour if it is no midnight; as the terminal does where that has a calendar.

    Parameters
    ----------
    time_s : since the beginning
    origin_s : the beginning, in seconds since 1970; None: it has no place in the calendar

    Examples
    --------
    >>> moment_text(86400.0, None), moment_text(90000.0, None), moment_text(86400.0 * 1.5 + 900, None)
    ('day 1', 'day 1 01:00', 'day 1 12:15')
    >>> moment_text(90000.0, 1777593600.0)
    '2026-05-02T01:00Z'
    """
    if origin_s is not None:
        return time_text(time_s, origin_s)
    day, rest = divmod(round(time_s), round(DAY_S))
    return f"day {day}" + (f" {rest // 3600:02d}:{rest % 3600 // 60:02d}" if rest else "")


def day_text(day: float, origin_s: float | None) -> str:
    """Return a time by its day, which may have a fraction, or as a point in time where that is known.

    Examples
    --------
    >>> day_text(1.5, None), day_text(1, 1777593600.0), day_text(1.5, 1777593600.0)
    ('day 1.5', '2026-05-02', '2026-05-02T12:00Z')
    """
    return f"day {day:g}" if origin_s is None else moment_text(day * DAY_S, origin_s).removesuffix("T00:00Z")


def most_labels(origin_s: float | None) -> int:
    """Return how many times at most stand below a chart: points in time are long.

    Examples
    --------
    >>> most_labels(None), most_labels(0.0)
    (8, 4)
    """
    return _LABELS if origin_s is None else _LABELS // 2


def _ticks(scale: _Scale) -> list[float]:
    """Return times to be labelled: midnights where there are several, else steps."""
    span_s = scale.until_s - scale.since_s
    pitch = DAY_S if span_s >= 3 * DAY_S else scale.step_s
    pitch *= max(1, -(-math.floor(span_s / pitch) // most_labels(scale.origin_s)))
    first = math.ceil(scale.since_s / pitch) * pitch
    count = max(0, math.ceil((scale.until_s - first) / pitch))
    return [first + index * pitch for index in range(count)]


def _presets(bare: PageQuery, path: str, scale: _Scale, latest_s: float) -> tuple[tuple[str, str], ...]:
    """Return addresses of usual times, and of usual pairs of times to compare."""
    last_s, first_s = math.floor(latest_s) + 1.0, scale.since_s
    chosen = [("whole time", bare.url(path))]
    for text, length_s in (("last day", DAY_S), ("last hour", HOUR_S)):
        if last_s - first_s > length_s:
            chosen.append((text, replace(bare, query=replace(bare.query, since_s=last_s - length_s)).url(path)))
    if last_s - first_s >= 2 * DAY_S - HOUR_S:
        middle_s = last_s - DAY_S
        chosen.append(("last day against the day before", bare.url("/diff", _two(middle_s - DAY_S, middle_s, last_s))))
    half_s = (first_s + scale.until_s) / 2
    return (*chosen, ("second half against the first", bare.url("/diff", _two(first_s, half_s, scale.until_s))))


def _two(first_s: float, middle_s: float, last_s: float) -> list[tuple[str, str]]:
    a = [("a", f"since={max(first_s, 0.0):.15g}"), ("a", f"until={middle_s:.15g}")]
    return [*a, ("b", f"since={middle_s:.15g}"), ("b", f"until={last_s:.15g}")]


def _table(shares: pd.DataFrame, names: Sequence[str], scale: _Scale) -> Table:
    """Return the course as a table: a row for each step, shares of each key with its interval."""
    columns = zip(*(shares[name].tolist() for name in ("step", "name", "share", "low", "high")), strict=True)
    cells = {(step, name): _share(share, low, high) for step, name, share, low, high in columns}
    steps = sorted({step for step, _ in cells})
    rows = [[scale.text(scale.begin(step)), *(cells[step, name] for name in names)] for step in steps]
    return table(["from", *names], rows, "Shares over time, with 95% intervals")
