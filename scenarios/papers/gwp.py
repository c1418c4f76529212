"""The rows of Google-Wide Profiling: its pipeline, its pages and how stable its profiles are."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import numbers
from analysis.figures.gwp import profiles, square_root
from analysis.figures.gwp.hot_functions import draw_functions
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.metrics import cpi
from analysis.profiling.query import Query, Where
from analysis.profiling.stability import periods
from models.randomness import stream
from scenarios.files.schema import ProfileScenario
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.profiling.profiled import within_jobs
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run
from scenarios.web import calls, listing
from scenarios.web.asked import Pairs
from scenarios.web.site import Page, Site
from sim.profiling.setting import Setting

FLEET: Final = "profiled_fleet"
DENSE: Final[Mapping[str, Any]] = {
    "profiling.collector.one_in": 480,
    "profiling.collector.samples_per_s": 400.0,
    "profiling.collector.seconds_per_event": 300.0,
    "profiling.collector.events": ("cycles",),
    "profiling.collector.stacks_per_s": 0.0,
}
"""Fewer machines, looked at more closely: what an application's own profile by machine needs."""
SQUARE_ROOT_ENTRIES: Final = 100
"""Functions whose square-root law is tried; the rest are one entry, so that every entry has many samples."""
REST: Final = "[rest]"
"""Entry of all other functions."""
_PAGE_ROWS: Final = 12
_EDGES: Final = 150
_VIEWS: Final = ("application", "function")


def _pipeline(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    raw, kept = (int(found.table(name, ["count"])["count"].sum()) for name in ("raw_samples", "samples"))
    with Database([found.path]) as database:
        answered = sum(database.total(Query(event, ()))[0] for event in database.events())
        names = database.query(of_fleet(database, "cycles", ("symbolised",)))
    unknown = names.loc[names["symbolised"].astype(str).str.lower() != "true", "share"].sum()
    page = _page(found.path, listing.home, {})
    stages = [raw > 0, kept > 0, len(found.table("symbols", ["build"])) > 0, answered > 0, "cycles" in page]
    judged = numbers(lost_samples=abs(raw - kept) + abs(kept - answered), stages=sum(stages), unknown_share=unknown)
    return Outcome(judged, note=f"{raw:,} samples of all events")


def _page(run: Path, build: Callable[[Site, Pairs], Page], pairs: Mapping[str, str]) -> str:
    """Return a page of a run as HTML."""
    site = Site(run)
    try:
        return site.render(build(site, list(pairs.items())))
    finally:
        site.close()


def _query_view(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        tops = {
            by: database.query(of_fleet(database, "cycles", (by,)), _PAGE_ROWS) for by in ("application", "function")
        }
    site = Site(found.path)
    try:
        told = {by: listing.query_json(site, [("by", by), ("top", str(_PAGE_ROWS))])["rows"] for by in tops}
    finally:
        site.close()
    samples = _samples_by_hand(found)
    error = max(abs(int(row["samples"]) - samples[by].get(row[by], 0)) for by, rows in told.items() for row in rows)
    hot = tops["function"].assign(low=tops["function"]["share"], high=tops["function"]["share"], true=np.nan)
    judged = numbers(rows_executables=len(told["application"]), rows_functions=len(told["function"]), page_error=error)
    return Outcome(
        judged,
        draw=lambda _measured, _printed: draw_functions(hot),
        table=tops["application"].assign(value=tops["application"]["value"].astype(float)),
        note="the page is wsc serve's /query; samples are compared with those added up from the tables without it",
    )


def _samples_by_hand(found: Run) -> dict[str, dict[str, int]]:
    """Return the fleet's samples of cycles by application and by function, from the tables alone."""
    rows = found.table("samples", ["process", "event", "location", "count"])
    rows = rows[rows["event"] == "cycles"].merge(found.table("processes", ["process", "visit", "application"]))
    rows = rows.merge(found.table("visits", ["visit", "collection"])).query("collection == 'fleet'")
    rows = rows.merge(found.table("locations", ["location", "function"]))
    sums = {by: rows.groupby(by)["count"].sum() for by in _VIEWS}
    return {by: {str(name): int(count) for name, count in found.items()} for by, found in sums.items()}


def _call_graph(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        known = (("symbolised", ("true",)),)
        tops = database.query(Query("cpu_time", ("application",), known), 1)
        where = (("application", (str(tops["application"].iloc[0]),)),)
        asked = Query("cpu_time", (), where)
        edges, reach = database.edges(asked, _EDGES), database.inclusive(asked)
    root = reach.loc[reach["function"] == "main", "share"].max()
    html = _page(found.path, calls.callgraph, {"event": "cpu_time", "where": f"application={where[0][1][0]}"})
    judged = numbers(edges=len(edges), root_share_gap=1.0 - root, page_bytes=len(html))
    shown = edges.head(_PAGE_ROWS).assign(share=edges["value"] / reach["value"].max()).drop(columns="value")
    return Outcome(judged, table=shown, note=f"{where[0][1][0]}; the page is wsc serve's /callgraph")


def _of_day(database: Database, event: str, where: Where, by: str = "application") -> pd.DataFrame:
    """Return day, entry, samples of the fleet's jobs; values on the scale of the day's number of samples."""
    rows = database.query(of_fleet(database, event, ("day", by), where))
    totals = rows.groupby("day")[["samples", "value"]].transform("sum")
    return pd.DataFrame(
        {
            "day": rows["day"].astype(int),
            "entry": rows[by],
            "samples": rows["value"].astype(float) * (totals["samples"] / totals["value"]).astype(float),
        }
    )


def _fig4(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    with Database([sources.run(FLEET).path]) as database:
        measured = profiles.measure_fig4(_of_day(database, "cycles", within_jobs(database)))
    return Outcome(measured, draw=profiles.draw_fig4)


def _fig5(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    usual, dense = sources.run(FLEET), sources.run(FLEET, **DENSE)
    setting = _setting(dense)
    states = dict(zip(setting.software.programs.names, setting.software.programs.states.tolist(), strict=True))
    with Database([usual.path]) as database:
        tops = database.query(of_fleet(database, "cycles", ("application",), within_jobs(database)))["application"]
        one, two = (next(name for name in tops if (states[name] > 1) == many) for many in (False, True))
        days = _of_day(database, "cycles", (("application", (one,)),), "function")
    closely, briefly = (_by_instance(found, two, setting) for found in (dense, usual))
    some = briefly["machine"].drop_duplicates().head(closely["machine"].nunique())
    machines = pd.concat([closely, briefly[briefly["machine"].isin(some)].assign(machine=-1 - briefly["machine"])])
    return Outcome(
        profiles.measure_fig5(days, machines),
        draw=profiles.draw_fig5,
        note=f"(a) {one}, which has one state; (b) instances of {two}, half of them looked at more closely",
    )


def _setting(found: Run) -> Setting:
    """Return the fleet of a run: the truth about its programs."""
    scenario, _ = reopen(found.path)
    if not isinstance(scenario, ProfileScenario):
        raise TypeError(f"{found.path}: is a {scenario.kind}")
    return Setting.of(scenario.world)


def _by_instance(found: Run, application: str, setting: Setting) -> pd.DataFrame:
    """Return machine (a stay of an instance), entry, samples and behaviour state of one application's stays."""
    with Database([found.path]) as database:
        asked = of_fleet(database, "cycles", ("function",), (("application", (application,)),))
        clustered, processes = database.clustered(asked, "process"), database.table("processes")
    visits = found.table("visits", ["visit", "start_s"])
    seen = clustered.assign(process=clustered["process"].astype(np.int64)).merge(
        processes[["process", "visit", "residence"]].merge(visits), on="process"
    )
    stay = np.repeat(setting.day.order, np.diff(setting.day.row_start))
    known = pd.DataFrame({"residence": stay, "day": setting.rows.day, "state": setting.rows.state})
    seen = seen.assign(day=(seen["start_s"] // 86400.0).astype(int)).merge(known, on=["residence", "day"])
    return by_stay(seen[["residence", "state", "function", "samples"]])


def by_stay(seen: pd.DataFrame) -> pd.DataFrame:
    """Return profiles of stays, each with the behaviour state that most of its samples were taken in.

    The state has no part in what is put together: it only judges.

    Parameters
    ----------
    seen : residence, state, function, samples

    Returns
    -------
    DataFrame
        machine (the residence), entry (the function), samples, state.

    Examples
    --------
    >>> seen = {"residence": 7, "state": [0, 1, 1], "function": ["f", "f", "g"], "samples": [2, 3, 4]}
    >>> by_stay(pd.DataFrame(seen)).values.tolist()
    [[7, 'f', 5, 1], [7, 'g', 4, 1]]
    """
    states = seen.groupby(["residence", "state"])["samples"].sum().reset_index()
    states = states.sort_values("samples", ascending=False, kind="stable").drop_duplicates("residence")
    group = seen.groupby(["residence", "function"])["samples"].sum().reset_index()
    group = group.rename(columns={"residence": "machine", "function": "entry"})
    return group.assign(state=group["machine"].map(states.set_index("residence")["state"]))


def _fig6a(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    with Database([sources.run(FLEET).path]) as database:
        where = within_jobs(database)
        frame = _of_day(database, "cycles", where)
        clustered = database.clustered(of_fleet(database, "cycles", ("application", "day"), where), "visit")
    expected = float(periods(clustered, k=20)["previous_expected"].median())
    return Outcome(profiles.measure_fig6a(frame, expected), draw=profiles.draw_fig6a)


def _fig6b(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    with Database([sources.run(FLEET).path]) as database:
        frames = {event: _of_day(database, event, within_jobs(database)) for event in profiles.EVENTS}
    return Outcome(profiles.measure_fig6b(frames), draw=profiles.draw_fig6b)


def _square_root(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        rows = database.clustered(of_fleet(database, "cycles", ("function",), within_jobs(database)))
    order = rows.groupby("function")["samples"].sum().sort_values(ascending=False, kind="stable").index
    named = rows["function"].where(rows["function"].isin(order[:SQUARE_ROOT_ENTRIES]), REST)
    table = rows.assign(entry=named).groupby(["entry", "machine"], as_index=False)[["samples"]].sum()
    measured = square_root.measure(table, stream(int(found.manifest["seed"]), "square-root law"))
    note = (
        f"{table['machine'].nunique()} machines, {table['samples'].sum():,} samples of cycles, "
        f"{table['entry'].nunique()} entries; parts are random parts of these samples, without replacement, whose "
        "distances are divided by √(1 − f)"
    )
    return Outcome(measured, draw=square_root.draw, note=note)


def _fig7(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        where = within_jobs(database)
        cycles, instructions = (
            database.clustered(of_fleet(database, event, ("day",), where), "visit")
            for event in ("cycles", "instructions")
        )
    days = cpi(cycles, instructions, cluster="visit")
    days = days.assign(day=days["day"].astype(int)).sort_values("day")
    true = found.table("truth_cpi")[["cycles", "instructions"]].sum()
    measured = profiles.measure_fig7(days["day"].tolist(), days["cpi"].tolist(), true["cycles"] / true["instructions"])
    return Outcome(measured, draw=_draw_fig7)


def _draw_fig7(measured: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    return profiles.draw_fig7(measured, paper)


PROFILES: dict[str, Row] = {
    "gwp/fig1": Row("the whole pipeline: collector, symboliser, storage, database, server", (FLEET,), _pipeline),
    "gwp/fig2": Row("query view: cycles by executable and by function", (FLEET,), _query_view),
    "gwp/fig3": Row("call graph of a server's profile", (FLEET,), _call_graph),
    "gwp/fig4": Row("entropy of daily application-level profiles", (FLEET,), _fig4),
    "gwp/fig5": Row("entropy of function-level profiles by day and by machine", (FLEET,), _fig5),
    "gwp/fig6a": Row("Manhattan distance of daily profiles", (FLEET,), _fig6a),
    "gwp/fig6b": Row("the same by type of profile", (FLEET,), _fig6b),
    "gwp/sqrt-law": Row("distance of a part of the samples from the whole", (FLEET,), _square_root),
    "gwp/fig7": Row("cycles per instruction by day", (FLEET,), _fig7),
}
"""The rows about pages and stability."""
