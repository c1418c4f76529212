"""The rows of the operational laws (Kelly et al. 2008, MASCOTS): what each is measured on, and what draws it."""

from collections.abc import Mapping

import pandas as pd

from analysis.figures.criteria import measures, number
from analysis.figures.occupancy import accuracy, capacity, staircases
from scenarios.live.measurement import LEAST_UTILISATION, stored
from scenarios.papers.rows import MeasuredRow, Reproduction, Row, nothing
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run

SESSIONS, SHORT, REPLAY, SRPT = "queue_sessions", "queue_short", "queue_replay", "queue_srpt"
EXAMPLE_SERVERS, EXAMPLE_TO = 2, 4
"""Servers of the paper's Figures 3 and 4."""
SEEDS = (2, 1, 3, 4, 5, 6, 7, 8, 9, 10)
"""Draws of the replayed load; the first is the shipped scenario's own, which was chosen to resemble Table 1."""


def _two_servers(sources: Sources) -> Mapping[str, object]:
    run = sources.run(REPLAY, **{"station.servers": EXAMPLE_SERVERS, "station.policy": "fcfs", "replays": ()})
    return {"served": run.table("truth_requests"), "servers": EXAMPLE_SERVERS}


def _replays(sources: Sources) -> Mapping[str, object]:
    return {"replays": replays(sources.run(REPLAY))}


def _two_to_four(sources: Sources) -> Mapping[str, object]:
    return {**_replays(sources), "servers": EXAMPLE_SERVERS, "to": EXAMPLE_TO}


def _replays_and_demand(sources: Sources) -> Mapping[str, object]:
    return {**_replays(sources), "demand_s": _demand_s(sources.run(REPLAY))}


def _recorded(sources: Sources) -> Mapping[str, object]:
    run = sources.run(REPLAY)
    return {"requests": run.table("requests"), "servers": servers(run)}


def _both_policies(sources: Sources) -> Mapping[str, object]:
    return {"round_robin": replays(sources.run(REPLAY)), "srpt": replays(sources.run(SRPT))}


def _beside(sources: Sources) -> Mapping[str, object]:
    """Return utilisation by the law beside the server's own: long and short requests, service alone, a real server."""
    long, short = (sources.run(name) for name in (SESSIONS, SHORT))
    log, cpu = stored()
    slow, quick = (accuracy.beside(run.table("requests"), run.table("cpu"), servers(run)) for run in (long, short))
    queued = sources.run(SESSIONS, **{"station.policy": "fcfs"})
    served, counted = queued.table("truth_requests"), queued.table("cpu")
    record = accuracy.in_service(served, servers(queued), [*counted["start_s"], counted["end_s"].iloc[-1]])
    return {
        "long": slow,
        "short": quick,
        "exact": accuracy.beside(served, record, servers(queued)),
        "live": accuracy.beside(log, cpu[cpu["utilisation"] >= LEAST_UTILISATION], 1),
    }


def _table2(replays: pd.DataFrame, paper: pd.DataFrame) -> Reproduction:
    ours = capacity.measure_table2(capacity.measure_table1(replays, 1.0))
    return Reproduction(capacity.measure_table2(paper), table=capacity.pairs(ours))


def _by_seed(sources: Sources) -> Mapping[str, object]:
    return {"draws": {seed: _shared(sources.run(REPLAY, **{"station.policy": "ps", "seed": seed})) for seed in SEEDS}}


def _shared(run: Run) -> pd.DataFrame:
    """Return how tight bounds are under processor sharing, and the queueing with one server."""
    load = replays(run)
    queueing_s = number(capacity.measure_table1(load, _demand_s(run)), "queueing_k1")
    return measures(capacity.measure_tightness(load), queueing_k1=queueing_s)


def _tightness(draws: Mapping[int, pd.DataFrame]) -> Reproduction:
    names = ("queueing_k1", "ratio_12", "best_ratio_12", "ratio_14", "best_ratio_14")
    table = pd.DataFrame(
        [{"seed": seed, **{name: number(draw, name) for name in names}} for seed, draw in draws.items()]
    )
    note = (
        "under processor sharing, where the bounds are theorems. The best ratios are medians of the draws of the load "
        f"below, the guarantees their worst; the shipped draw, the first, has {table['best_ratio_12'][0]:.3g} and "
        f"{table['best_ratio_14'][0]:.3g}"
    )
    return Reproduction(capacity.over_draws(list(draws.values())), note=note, table=table)


def _srpt(round_robin: pd.DataFrame, srpt: pd.DataFrame) -> Reproduction:
    measured = capacity.measure_srpt(round_robin, srpt)
    return Reproduction(measured, table=capacity.pairs(measured))


def replays(run: Run) -> pd.DataFrame:
    """Return servers, arrival_s, departure_s of a load under every number of servers that it was served with."""
    columns = ["servers", "arrival_s", "departure_s"]
    recorded = run.table("requests", columns[1:]).assign(servers=servers(run))
    others = [run.table("replays", columns)] if run.has("replays") else []
    return pd.concat([recorded[columns], *others], ignore_index=True)


def servers(run: Run) -> int:
    """Return the number of servers of a queue run."""
    return int(run.manifest["resolved"]["station"]["servers"])


def _demand_s(run: Run) -> float:
    truth = run.table("truth_requests", ["request", "demand_s"])
    return float(truth.loc[truth["request"] >= 0, "demand_s"].sum())


ROWS: tuple[Row, ...] = (
    MeasuredRow(
        "occupancy/fig2",
        "occupancy curves of four unit jobs with one and with two servers",
        (),
        nothing,
        staircases.measure_fig2,
        staircases.fig2,
    ),
    MeasuredRow(
        "occupancy/fig3",
        "the Occupancy Law: service time below N = k, queueing time above",
        (REPLAY,),
        _two_servers,
        staircases.measure_fig3,
        staircases.fig3,
    ),
    MeasuredRow(
        "occupancy/fig4",
        "the area between k and k' is not the reduction, only a bound",
        (REPLAY,),
        _two_to_four,
        staircases.measure_fig4,
        staircases.fig4,
    ),
    MeasuredRow(
        "occupancy/fig5",
        "why: with more servers the curve is never higher",
        (REPLAY,),
        _replays,
        staircases.measure_fig5,
        staircases.fig5,
    ),
    MeasuredRow(
        "occupancy/fig6",
        "utilisation by the law and as the server counts it",
        (SESSIONS, SHORT),
        _beside,
        accuracy.measure_fig6,
        accuracy.fig6,
    ),
    MeasuredRow(
        "occupancy/table1",
        "areas under the curves of one load and one to four servers",
        (REPLAY,),
        _replays_and_demand,
        capacity.measure_table1,
    ),
    MeasuredRow(
        "occupancy/table2",
        "change of queueing and its bounds, from the printed Table 1",
        (REPLAY,),
        _replays,
        _table2,
        note="computed from the printed Table 1; the text's roughly 27% is 48.65%; below, the same of the simulated "
        "load",
        printed=True,
    ),
    MeasuredRow(
        "occupancy/load",
        "utilisation over the 90 minutes of the replayed load",
        (REPLAY,),
        _recorded,
        capacity.measure_load,
        capacity.load,
    ),
    MeasuredRow(
        "occupancy/tightness",
        "reduction over bound: guaranteed, measured, improved",
        (REPLAY,),
        _by_seed,
        _tightness,
        capacity.tightness,
    ),
    MeasuredRow(
        "occupancy/srpt",
        "the bounds under shortest remaining processing time",
        (REPLAY, SRPT),
        _both_policies,
        _srpt,
        note="the paper's table is lost in the scan; ours is below",
    ),
)
"""Every figure and table of the paper that shows numbers."""
