"""The rows of Google-Wide Profiling (Ren et al. 2010): its pipeline, its pages, how stable profiles are, what for."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from analysis.figures.gwp import profiles, square_root
from analysis.figures.gwp.hot_functions import draw_query_view
from analysis.figures.gwp.sampling_errors import distance_errors, entropy_errors
from analysis.profiling.affinity.advice import advise, trial
from analysis.profiling.affinity.table import AffinityTable, frame_of
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.intervals import share_intervals
from analysis.profiling.metrics import cpi
from analysis.profiling.query import Query, Where
from analysis.profiling.questions.catalogue import QUESTIONS
from analysis.profiling.stability import periods
from models.arrays import DAY_S
from models.randomness import stream
from scenarios.files.schema import ProfileScenario
from scenarios.papers.rows import COSTLY, ArithmeticRow, MeasuredRow, Reproduction, Row, RunRow
from scenarios.papers.sources import Sources
from scenarios.profiling.profiled import within_jobs
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run
from scenarios.web import calls, landing, listing
from scenarios.web.parameters import Pairs
from scenarios.web.site import ProfileSite, WebPage
from sim.profiling.setting import ProfileSetting

FLEET: Final = "profiled_google"
DENSE: Final[Mapping[str, object]] = {
    "profiling.collector.one_in": 480,
    "profiling.collector.samples_per_s": 400.0,
    "profiling.collector.seconds_per_event": 300.0,
    "profiling.collector.events": ("cycles",),
    "profiling.collector.stacks_per_s": 0.0,
}
"""Fewer machines, looked at more closely: what an application's own profile by machine needs."""
FAST: Final[Mapping[str, object]] = {
    "fleet.machines": 96,
    "population.jobs": 80,
    "population.common_jobs": 37,
    "horizon_s": DAY_S,
    "feature.rollout.start_s": 0.0,
    "feature.rollout.waves": 1,
    "profiling.compiler.start_s": 0.0,
    "profiling.compiler.until_s": DAY_S / 2,
    "profiling.kernel.start_s": 0.0,
    "profiling.kernel.waves": 1,
    "profiling.collector.samples_per_s": 20_000.0,
    "profiling.collector.stacks_per_s": 10_000.0,
}
"""A smaller fleet for a day whose collector asks for more samples than any gatekeeper allows: these then decide. They
allow some 8,000 a second of a machine, and 3,000 with stacks."""
SQUARE_ROOT_ENTRIES: Final = 100
"""Functions whose square-root law is tried; the rest are one entry, so that every entry has many samples."""
REST: Final = "[rest]"
"""Entry of all other functions."""
LIBRARY: Final = "libz"
"""The world's compression library."""
LEAST_SHARE: Final = 0.001
"""Share of the cycles from which an application counts when asked whether shared code is hot in it."""
TENTH: Final = ("profiling.collector.one_in=10", "profiling.collector.round_s=21600")
"""A collector that visits one machine in ten in each round, four rounds a day."""
TENTH_DRAWS: Final = 400
_PAGE_ROWS: Final = 12
_EDGES: Final = 150
_VIEWS: Final[Mapping[str, str]] = {"application": "(a) top executables", "function": "(b) top functions"}
"""Views of Figure 2, and their titles."""


def _pipeline(run: Run) -> Reproduction:
    raw, symbolised = (int(run.table(name, ["count"])["count"].sum()) for name in ("raw_samples", "samples"))
    with Database([run.path]) as database:
        answered = sum(database.total(Query(event, ()))[0] for event in database.events())
        names = database.query(of_fleet(database, "cycles", ("symbolised",)))
    unknown = names.loc[names["symbolised"].astype(str).str.lower() != "true", "share"].sum()
    page = _page(run.path, landing.home, {})
    stages = [raw > 0, symbolised > 0, len(run.table("symbols", ["build"])) > 0, answered > 0, "cycles" in page]
    lost = abs(raw - symbolised) + abs(symbolised - answered)
    judged = numbers(lost_samples=lost, stages=sum(stages), unknown_share=unknown)
    return Reproduction(judged, note=f"{raw:,} samples of all events")


def _page(run: Path, build: Callable[[ProfileSite, Pairs], WebPage], pairs: Mapping[str, str]) -> str:
    """Return a page of a run as HTML."""
    with closing(ProfileSite(run)) as site:
        return site.render(build(site, list(pairs.items())))


def _query_view(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        tops = {by: database.query(of_fleet(database, "cycles", (by,)), _PAGE_ROWS) for by in _VIEWS}
        drawn = {title: _with_intervals(database, by) for by, title in _VIEWS.items()}
    with closing(ProfileSite(run.path)) as site:
        pages = {by: listing.query_json(site, [("by", by), ("top", str(_PAGE_ROWS))])["rows"] for by in tops}
    samples = _samples_by_hand(run)
    error = max(abs(int(row["samples"]) - samples[by].get(row[by], 0)) for by, rows in pages.items() for row in rows)
    judged = numbers(
        rows_executables=len(pages["application"]), rows_functions=len(pages["function"]), page_error=error
    )
    return Reproduction(
        judged,
        draw=lambda _measured, _printed: draw_query_view(drawn),
        table=tops["application"].assign(value=tops["application"]["value"].astype(float)),
    )


def _with_intervals(database: Database, by: str) -> pd.DataFrame:
    """Return name, share, low and high of the top of a view; visits are what was drawn."""
    clustered = database.clustered(of_fleet(database, "cycles", (by,)), "visit")
    return share_intervals(clustered, cluster="visit").head(_PAGE_ROWS)[[by, "share", "low", "high"]]


def _samples_by_hand(run: Run) -> dict[str, dict[str, int]]:
    """Return the fleet's samples of cycles by application and by function, from the tables alone."""
    rows = run.table("samples", ["process", "event", "location", "count"])
    rows = rows[rows["event"] == "cycles"].merge(run.table("processes", ["process", "visit", "application"]))
    rows = rows.merge(run.table("visits", ["visit", "collection"])).query("collection == 'fleet'")
    rows = rows.merge(run.table("locations", ["location", "function"]))
    sums = {by: rows.groupby(by)["count"].sum() for by in _VIEWS}
    return {by: {str(name): int(count) for name, count in counts.items()} for by, counts in sums.items()}


def _call_graph(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        known = (("symbolised", ("true",)),)
        busiest = str(database.query(Query("cpu_time", ("application",), known), 1)["application"].iloc[0])
        query = Query("cpu_time", (), (("application", (busiest,)),))
        edges, reach = database.edges(query, _EDGES), database.inclusive(query)
    root = reach.loc[reach["function"] == "main", "share"].max()
    html = _page(run.path, calls.callgraph, {"event": "cpu_time", "where": f"application={busiest}"})
    judged = numbers(edges=len(edges), root_share_gap=1.0 - root, page_bytes=len(html))
    shown = edges.head(_PAGE_ROWS).assign(share=edges["value"] / reach["value"].max()).drop(columns="value")
    return Reproduction(judged, table=shown, note=f"{busiest}; the page is wsc serve's /callgraph")


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


def _by_visit(database: Database, event: str, where: Where, by: str = "application") -> pd.DataFrame:
    """Return day, entry, visit, samples, value of the same: visits are what was drawn."""
    rows = database.clustered(of_fleet(database, event, ("day", by), where), "visit")
    return rows.rename(columns={by: "entry"}).astype({"day": int, "value": float})


def _fig4(run: Run) -> pd.DataFrame:
    with Database([run.path]) as database:
        where = within_jobs(database)
        errors = entropy_errors(_by_visit(database, "cycles", where))
        return profiles.measure_fig4(_of_day(database, "cycles", where), errors)


def _fig5(sources: Sources) -> Reproduction:
    usual, dense = sources.run(FLEET), sources.run(FLEET, **DENSE)
    setting = _setting(dense)
    states = dict(zip(setting.software.programs.names, setting.software.programs.states.tolist(), strict=True))
    with Database([usual.path]) as database:
        tops = database.query(of_fleet(database, "cycles", ("application",), within_jobs(database)))["application"]
        steady, changing = (next(name for name in tops if (states[name] > 1) == many) for many in (False, True))
        where = (("application", (steady,)),)
        days = _of_day(database, "cycles", where, "function")
        errors = entropy_errors(_by_visit(database, "cycles", where, "function"))
    closely, briefly = (_by_instance(run, changing, setting) for run in (dense, usual))
    some = briefly["machine"].drop_duplicates().head(closely["machine"].nunique())
    machines = pd.concat([closely, briefly[briefly["machine"].isin(some)].assign(machine=-1 - briefly["machine"])])
    return Reproduction(
        profiles.measure_fig5(days, machines, errors),
        note=f"(a) {steady}, which has one state; (b) instances of {changing}, half of them looked at more closely",
    )


def _setting(run: Run) -> ProfileSetting:
    """Return the fleet of a run: the truth about its programs."""
    scenario, _ = reopen(run.path)
    if not isinstance(scenario, ProfileScenario):
        raise TypeError(f"{run.path}: is a {scenario.kind}")
    return ProfileSetting.of(scenario.world)


def _by_instance(run: Run, application: str, setting: ProfileSetting) -> pd.DataFrame:
    """Return machine (a stay of an instance), entry, samples and behaviour state of one application's stays."""
    with Database([run.path]) as database:
        query = of_fleet(database, "cycles", ("function",), (("application", (application,)),))
        clustered, processes = database.clustered(query, "process"), database.table("processes")
    visits = run.table("visits", ["visit", "start_s"])
    samples = clustered.assign(process=clustered["process"].astype(np.int64)).merge(
        processes[["process", "visit", "residence"]].merge(visits), on="process"
    )
    stay = np.repeat(setting.day.order, np.diff(setting.day.row_start))
    states = pd.DataFrame({"residence": stay, "day": setting.rows.day, "state": setting.rows.state})
    samples = samples.assign(day=(samples["start_s"] // DAY_S).astype(int)).merge(states, on=["residence", "day"])
    return by_stay(samples[["residence", "state", "function", "samples"]])


def by_stay(samples: pd.DataFrame) -> pd.DataFrame:
    """Return profiles of stays, each with the behaviour state that most of its samples were taken in.

    The state has no part in what is put together: it only judges.

    Parameters
    ----------
    samples : residence, state, function, samples

    Returns
    -------
    DataFrame
        machine (the residence), entry (the function), samples, state.
    """
    states = samples.groupby(["residence", "state"])["samples"].sum().reset_index()
    states = states.sort_values("samples", ascending=False, kind="stable").drop_duplicates("residence")
    group = samples.groupby(["residence", "function"])["samples"].sum().reset_index()
    group = group.rename(columns={"residence": "machine", "function": "entry"})
    return group.assign(state=group["machine"].map(states.set_index("residence")["state"]))


def _fig6a(run: Run) -> pd.DataFrame:
    with Database([run.path]) as database:
        where = within_jobs(database)
        frame = _of_day(database, "cycles", where)
        clustered = database.clustered(of_fleet(database, "cycles", ("application", "day"), where), "visit")
        errors = distance_errors(_by_visit(database, "cycles", where), top=20)
    expected = float(periods(clustered, k=20)["previous_expected"].median())
    return profiles.measure_fig6a(frame, expected, errors=errors)


def _fig6b(run: Run) -> pd.DataFrame:
    with Database([run.path]) as database:
        where = within_jobs(database)
        frames = {event: _of_day(database, event, where) for event in profiles.EVENTS}
        errors = {event: distance_errors(_by_visit(database, event, where)) for event in profiles.EVENTS}
    return profiles.measure_fig6b(frames, errors)


def _square_root(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        rows = database.clustered(of_fleet(database, "cycles", ("function",), within_jobs(database)))
    order = rows.groupby("function")["samples"].sum().sort_values(ascending=False, kind="stable").index
    named = rows["function"].where(rows["function"].isin(order[:SQUARE_ROOT_ENTRIES]), REST)
    table = rows.assign(entry=named).groupby(["entry", "machine"], as_index=False)[["samples"]].sum()
    measured = square_root.measure(table, stream(int(run.manifest["seed"]), "square-root law"))
    note = (
        f"{table['machine'].nunique()} machines, {table['samples'].sum():,} samples of cycles, "
        f"{table['entry'].nunique()} entries; parts are random parts of these samples, without replacement, whose "
        "distances are divided by √(1 − f)"
    )
    return Reproduction(measured, note=note)


def _fig7(run: Run) -> pd.DataFrame:
    with Database([run.path]) as database:
        where = within_jobs(database)
        cycles, instructions = (
            database.clustered(of_fleet(database, event, ("day",), where), "visit")
            for event in ("cycles", "instructions")
        )
    days = cpi(cycles, instructions, cluster="visit")
    days = days.assign(day=days["day"].astype(int)).sort_values("day")
    true = run.table("truth_cpi")[["cycles", "instructions"]].sum()
    truth, ends = true["cycles"] / true["instructions"], {end: days[end].tolist() for end in ("low", "high")}
    return profiles.measure_fig7(days["day"].tolist(), days["cpi"].tolist(), truth, ends)


def _table1(paper: pd.DataFrame) -> Reproduction:
    printed = paper.set_index("series")["value"]
    pairs = [(job, platform) for job in ("NumCrunch", "MemBench") for platform in (1, 2)]
    rows = [
        {
            "job": job,
            "platform": f"Platform {platform}",
            "load": printed["load"],
            "cpi": printed[f"cpi_{job.lower()}_platform{platform}"],
            "capacity": printed[f"cycles_platform{platform}"],
        }
        for job, platform in pairs
    ]
    advice = advise(AffinityTable.of(pd.DataFrame(rows)))
    planned = frame_of(advice.table, advice.plan.load)
    load = planned.set_index(["job", "platform"])["load"]
    judged = numbers(
        total_before=advice.before,
        total_after=advice.after,
        moved_numcrunch_platform2=load.get(("NumCrunch", "Platform 2"), 0.0),
        moved_membench_platform1=load.get(("MemBench", "Platform 1"), 0.0),
    )
    return Reproduction(judged, table=planned, note=f"a linear programme; optimal: {advice.plan.optimal}")


def _affinity(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        saving = trial(database, run.table("truth_cpi"))
    values = {name: float(value) for name, value in asdict(saving).items()}
    note = (
        f"{saving.jobs} jobs on {saving.platforms} platforms; cycle time, the capacities being what the platforms do "
        f"now; with sampled CPI {saving.promised:.2%} are predicted and {saving.saved:.2%} saved at the true CPI"
    )
    return Reproduction(numbers(**values, gain_low=saving.gain, gain_high=saving.gain), note=note)


def _core_seconds(sources: Sources) -> Reproduction:
    study = sources.trial(
        "core_seconds", scenario=FLEET, draws=TENTH_DRAWS, overrides=(*TENTH, f"seed={sources.world}")
    )
    judged = numbers(
        error=study["error"],
        interval_holds=study["coverage"],
        half_width=study["half_width"],
        by_fleet_bias=study["by_fleet_bias"],
    )
    note = (
        f"{study['draws']} collectors, each {study['visits']:,.0f} visits; error is the root mean square; errors "
        f"spread by {study['spread']:.2f} of what is stated, and intervals hold to ±{study['coverage_error']:.1%} (one "
        f"standard error). With one frequency for the whole fleet, as printed, the bias is "
        f"{study['by_fleet_bias']:+.2%}; with each platform's own {study['by_platform_bias']:+.2%}; with each visit's "
        f"own, as judged, {study['bias']:+.2%}"
    )
    return Reproduction(judged, note=note)


def _shared_code(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        table = QUESTIONS["shared"].ask(database, by="image", top=40)
    library = table[table["image"] == LIBRARY].iloc[0]
    libraries = table[table["image"].str.startswith("lib")]["image"].tolist()
    judged = numbers(
        share=float(library["share"]),
        largest_in_one=_largest_in_one(run.path),
        rank=1 + libraries.index(LIBRARY),
        true_share=_true_share(run),
    )
    return Reproduction(judged, table=table.head(8))


def _largest_in_one(folder: Path) -> float:
    """Return the library's largest share of any application's cycles, of those that are not tiny."""
    with Database([folder]) as database:
        rows = database.query(of_fleet(database, "cycles", ("application", "image")))
    rows = rows.assign(value=rows["value"].astype(np.float64))
    totals = rows.groupby("application")["value"].sum()
    large = totals[(totals >= LEAST_SHARE * totals.sum()) & ~totals.index.str.startswith("[")].index
    own = rows[(rows["image"] == LIBRARY) & rows["application"].isin(large)].set_index("application")["value"]
    return float((own / totals[own.index]).max())


def _true_share(run: Run) -> float:
    rows = run.table("truth_functions", ["image", "cycles"])
    return float(rows.loc[rows["image"] == LIBRARY, "cycles"].sum() / rows["cycles"].sum())


def _overhead(sources: Sources) -> pd.DataFrame:
    """Measure what profiling costs a fleet whose gatekeepers allow less than is asked for."""
    run = sources.run(FLEET, **FAST)
    visits = run.table("visits", ["visit", "frequency_hz", "overhead_cycles"])
    busy_s = run.table("processes", ["visit", "cpu_s"]).groupby("visit")["cpu_s"].sum()
    busy = visits[visits["visit"].isin(busy_s.index)]
    cycles = busy_s[busy["visit"]].to_numpy() * busy["frequency_hz"].to_numpy()
    on_machine = busy["overhead_cycles"].to_numpy() / cycles
    fleet = float(run.table("epochs", ["cycles"])["cycles"].sum())
    return numbers(
        share=float(visits["overhead_cycles"].sum()) / fleet,
        always_on_share=float(busy["overhead_cycles"].sum() / cycles.sum()),
        visited_share=float(np.nanmax(on_machine)),
        visited_share_median=float(np.nanmedian(on_machine)),
    )


ROWS: tuple[Row, ...] = (
    RunRow(
        "gwp/fig1",
        "the whole pipeline: collector, symboliser, storage, database, server",
        (FLEET,),
        _pipeline,
        on=COSTLY,
    ),
    RunRow(
        "gwp/fig2",
        "query view: cycles by executable and by function",
        (FLEET,),
        _query_view,
        note="the page is wsc serve's /query; samples are compared with those added up from the tables without it",
        on=COSTLY,
    ),
    RunRow("gwp/fig3", "call graph of a server's profile", (FLEET,), _call_graph, on=COSTLY),
    RunRow("gwp/fig4", "entropy of daily application-level profiles", (FLEET,), _fig4, profiles.draw_fig4, on=COSTLY),
    MeasuredRow(
        "gwp/fig5",
        "entropy of function-level profiles by day and by machine",
        (FLEET,),
        _fig5,
        profiles.draw_fig5,
        on=COSTLY,
    ),
    RunRow("gwp/fig6a", "Manhattan distance of daily profiles", (FLEET,), _fig6a, profiles.draw_fig6a, on=COSTLY),
    RunRow("gwp/fig6b", "the same by type of profile", (FLEET,), _fig6b, profiles.draw_fig6b, on=COSTLY),
    RunRow(
        "gwp/sqrt-law",
        "distance of a part of the samples from the whole",
        (FLEET,),
        _square_root,
        square_root.draw,
        on=COSTLY,
    ),
    RunRow("gwp/fig7", "cycles per instruction by day", (FLEET,), _fig7, profiles.draw_fig7, on=COSTLY),
    ArithmeticRow("gwp/table1", "platform affinity: the paper's example", (), _table1, printed=True),
    RunRow("gwp/affinity", "what the best assignment of jobs to platforms saves", (FLEET,), _affinity, on=COSTLY),
    MeasuredRow(
        "gwp/core-seconds",
        "core-seconds from samples against the fleet's monitor",
        (FLEET,),
        _core_seconds,
        on=COSTLY,
    ),
    RunRow(
        "gwp/shared-code",
        "the hottest shared library, hot in no one job",
        (FLEET,),
        _shared_code,
        note=f"{LIBRARY}; wsc profile ask RUN shared --set by=image",
        on=COSTLY,
    ),
    MeasuredRow(
        "gwp/overhead",
        "what profiling costs the fleet",
        (FLEET,),
        _overhead,
        note="a day of 96 machines at the highest rates that gatekeepers allow; of the fleet's cycles, and at most of "
        "a machine's while it is visited",
        on=COSTLY,
    ),
)
"""Every figure and table of the paper that shows numbers, and what its text says of profiles."""
