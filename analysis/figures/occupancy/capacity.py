"""Kelly et al. (2008), sections 4.3, 5.2 and 5.3: one load served by one to four servers, and how tight bounds are."""

from itertools import permutations
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import curve as series
from analysis.figures.criteria import measures, number, rows
from analysis.figures.occupancy.staircases import of_servers
from analysis.occupancy.bounds import expansion
from analysis.occupancy.curve import curve
from analysis.occupancy.law import area, intervals, law
from models.queues.serve import serve

SERVERS: Final = (1, 2, 3, 4)
"""Numbers of servers in the paper's Tables 1 and 2."""
LIKE_SINGLE: Final = 0.25
"""Utilisation of four servers at which a single one would be full."""
BATCH: Final = 1000
"""Jobs that arrive at once in the workload that no constant bounds."""


def measure_table1(replays: pd.DataFrame, demand_s: float) -> pd.DataFrame:
    """Return the areas of Table 1 for a load that was served by one to four servers.

    area_k{k} over k', response_k{k}, queueing_k{k} (seconds), ratios of queueing, service_spread, area_rise_max,
    law_error.

    Parameters
    ----------
    replays : servers, arrival_s, departure_s
    demand_s : service demand of all requests together
    """
    curves = {k: of_servers(replays, k) for k in SERVERS}
    areas = np.array([[area(curves[k], to) for to in SERVERS] for k in SERVERS])
    response_s = [law(curves[k], k).response_time_s for k in SERVERS]
    queueing_s, service_s = np.array(response_s) - np.diag(areas), np.diag(areas)
    columns = np.column_stack([areas, response_s])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = queueing_s[:-1] / queueing_s[1:]
    parts = [rows(f"area_k{k}", SERVERS, areas[i]) for i, k in enumerate(SERVERS)]
    values = {f"response_k{k}": response_s[i] for i, k in enumerate(SERVERS)}
    values |= {f"queueing_k{k}": float(queueing_s[i]) for i, k in enumerate(SERVERS)}
    values |= {f"queueing_ratio_{k}{k + 1}": float(ratios[i]) for i, k in enumerate(SERVERS[:-1])}
    return measures(
        *parts,
        **values,
        service_spread=float(service_s.max() / service_s.min() - 1.0),
        area_rise_max=float(np.diff(columns, axis=0).max()),
        law_error=float(np.abs(service_s / demand_s - 1.0).max()),
    )


def measure_table2(areas: pd.DataFrame) -> pd.DataFrame:
    """Return change of queueing and bound for every pair of numbers of servers, from the numbers of Table 1.

    change_k{k} and bound_k{k} over k' in seconds, negative for less queueing; excess_14.

    Parameters
    ----------
    areas : series, x, value: area_k{k} over k', response_k{k}
    """
    queueing_s = {k: number(areas, f"response_k{k}") - number(areas, f"area_k{k}", k) for k in SERVERS}
    change, bound = {}, {}
    for k, to in permutations(SERVERS, 2):
        change[k, to] = queueing_s[to] - queueing_s[k]
        bound[k, to] = number(areas, f"area_k{k}", k) - number(areas, f"area_k{k}", to)
    parts = [
        rows(f"{name}_k{k}", [to for to in SERVERS if to != k], [table[k, to] for to in SERVERS if to != k])
        for k in SERVERS
        for name, table in (("change", change), ("bound", bound))
    ]
    return measures(*parts, excess_14=_ratio(change[1, 4], bound[1, 4]) - 1.0)


def _ratio(change_s: float, bound_s: float) -> float:
    return change_s / bound_s if bound_s else np.nan


def measure_load(requests: pd.DataFrame, servers: int = 4) -> pd.DataFrame:
    """Return utilisation over the replay: its peak, mean and fluctuation.

    Utilisation over minutes (seconds), peak_utilisation, mean_utilisation, overloaded_share (of the minutes above a
    quarter of the servers), fluctuation (over five minutes).

    Parameters
    ----------
    requests : arrival_s, departure_s
    servers : that served them
    """
    occupancy = curve(requests["arrival_s"].to_numpy(), requests["departure_s"].to_numpy())
    minutes, fives = intervals(occupancy, servers, 60.0), intervals(occupancy, servers, 300.0)
    utilisation, coarse = minutes["utilisation"].to_numpy(), fives["utilisation"].to_numpy()
    values = {
        "peak_utilisation": float(utilisation.max()),
        "mean_utilisation": law(occupancy, servers).utilisation,
        "overloaded_share": float(np.mean(utilisation > LIKE_SINGLE)),
        "fluctuation": float(coarse.std() / coarse.mean()),
    }
    return measures(rows("utilisation", minutes["start_s"], utilisation), **values)


def measure_tightness(replays: pd.DataFrame) -> pd.DataFrame:
    """Return reduction over bound for every expansion, beside the guarantee of section 4.3 and the best proven bound.

    ratio_k{k}, guarantee_k{k}, best_k{k} over k'; ratio_1{k'}, best_ratio_1{k'}, guarantee_share_max, far_better_max,
    unbounded_ratio, best_excess_share (of expansions from one server: what the reduction exceeds the best proven bound
    by, over the same for the paper's bound; the largest).

    Parameters
    ----------
    replays : servers, arrival_s, departure_s; the same load served by one to four servers that share their time, so
        that every bound is a theorem
    """
    curves = {k: of_servers(replays, k) for k in SERVERS}
    queueing_s = {k: law(curves[k], k).queueing_time_s for k in SERVERS}
    tables: dict[str, dict[tuple[int, int], float]] = {"ratio": {}, "guarantee": {}, "best": {}}
    for k, to in permutations(SERVERS, 2):
        if k < to:
            bounds, reduction = expansion(curves[k], k, to, per_job=True), queueing_s[k] - queueing_s[to]
            tables["ratio"][k, to] = _ratio(reduction, bounds.b0)
            tables["best"][k, to] = _ratio(reduction, bounds.b3)
            tables["guarantee"][k, to] = bounds.tightness
    share = {pair: tables["ratio"][pair] / tables["guarantee"][pair] for pair in tables["ratio"]}
    excess = [_ratio(tables["best"][1, to] - 1.0, tables["ratio"][1, to] - 1.0) for to in SERVERS[1:]]
    values = {f"{name}_1{to}": tables[short][1, to] for to in SERVERS[1:] for name, short in _NAMED.items()}
    return measures(
        *(_by_pair(name, table) for name, table in tables.items()),
        **values,
        guarantee_share_max=max(share.values()),
        far_better_max=max(value for (k, _), value in share.items() if k == 1),
        best_excess_share=float(np.max(excess)),
        unbounded_ratio=_batch_ratio(BATCH),
    )


_NAMED: Final = {"ratio": "ratio", "best_ratio": "best"}


def _by_pair(name: str, table: dict[tuple[int, int], float]) -> pd.DataFrame:
    first = sorted({k for k, _ in table})
    return pd.concat(
        [
            rows(f"{name}_k{k}", [to for a, to in table if a == k], [v for (a, _), v in table.items() if a == k])
            for k in first
        ],
        ignore_index=True,
    )


def _batch_ratio(jobs: int) -> float:
    """Return reduction over bound, one to two servers, for jobs of unit demand that all arrive at once."""
    zeros, ones = np.zeros(jobs), np.ones(jobs)
    few, more = (curve(zeros, serve("fcfs", zeros, ones, k).departure_s) for k in (1, 2))
    return (law(few, 1).queueing_time_s - law(more, 2).queueing_time_s) / (area(few, 2) - area(few, 1))


def measure_srpt(round_robin: pd.DataFrame, srpt: pd.DataFrame) -> pd.DataFrame:
    """Return how far the real change exceeds the bound under SRPT, beside round robin.

    The SRPT run's change_k{k} and bound_k{k} over k', excess_share_max, queueing_share_3, queueing_share_1.

    Parameters
    ----------
    round_robin, srpt : servers, arrival_s, departure_s; the loads served under either policy
    """
    tables = [measure_table2(measure_table1(replays, 1.0)) for replays in (round_robin, srpt)]
    shares = []
    for k, to in ((1, 2), (1, 3), (1, 4), (2, 3), (2, 4)):
        usual, best = (
            _ratio(number(table, f"change_k{k}", to), number(table, f"bound_k{k}", to)) - 1.0 for table in tables
        )
        shares.append(best / usual)
    queueing_s = [
        {k: law(of_servers(replays, k), k).queueing_time_s for k in (1, 3)} for replays in (round_robin, srpt)
    ]
    return measures(
        tables[1][tables[1]["series"].str.contains("_k")],
        excess_share_max=max(shares),
        queueing_share_3=queueing_s[1][3] / queueing_s[1][1],
        queueing_share_1=queueing_s[1][1] / queueing_s[0][1],
    )


def pairs(measured: pd.DataFrame) -> pd.DataFrame:
    """Return change and bound of every pair as a table to read, one row per number of servers."""
    table_rows = []
    for name in sorted({name for name in measured["series"] if name.startswith("change_k")}):
        k = name.removeprefix("change_k")
        change, bound = series(measured, name), series(measured, f"bound_k{k}")
        cells = {f"k' = {x:g}": f"{c:.2f} ({b:.2f})" for x, c, b in zip(change[0], change[1], bound[1], strict=True)}
        table_rows.append({"servers": f"k = {k}"} | cells)
    table = pd.DataFrame(table_rows)
    ordered = sorted(set(table.columns) - {"servers"})
    return table[["servers", *ordered]].fillna("")


def load(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw utilisation over the replay, with the printed peak, which is where one core of four is full, and mean."""
    figure, (panel,) = style.panels(height_inches=2.4)
    times, utilisation = series(measured, "utilisation")
    panel.plot(np.asarray(times) / 60, utilisation, color=style.BLUE, linewidth=1.2, label="minute by minute")
    panel.axhline(number(measured, "mean_utilisation"), color=style.ORANGE, linestyle="--", linewidth=1, label="mean")
    style.published_line(panel, number(published, "peak_utilisation"), name="published: peak above 25%")
    style.published_line(panel, number(published, "mean_utilisation"), name="published mean", colour=style.ORANGE)
    style.from_zero(panel)
    style.label(panel, "time (min)", "utilisation of four cores")
    style.percent(panel)
    style.shared_legend(figure, columns=2)
    return figure


def tightness(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw reduction over bound for expansions from one server, beside guarantee and best bound."""
    figure, (panel,) = style.panels(height_inches=2.5)
    lines = {
        "guarantee": ("guarantee (section 4.3)", style.GREY, "s--"),
        "ratio": ("the paper's bound", style.BLUE, "o-"),
        "best": ("best proven bound", style.GREEN, "^-"),
    }
    for name, (words, color, form) in lines.items():
        panel.plot(*series(measured, f"{name}_k1"), form, markersize=3, linewidth=1.2, color=color, label=words)
    paper = {to: number(published, f"ratio_1{to}") for to in SERVERS[1:]}
    style.published_points(panel, [*paper], [*paper.values()], style.BLUE, "published")
    panel.set_yscale("log")
    panel.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    panel.minorticks_off()
    panel.set_xticks([2, 3, 4])
    style.label(panel, "servers after the expansion from one", "reduction over bound")
    style.shared_legend(figure, columns=2)
    return figure
