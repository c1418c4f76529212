"""The rows of the operational laws (Kelly et al. 2008, MASCOTS): which run each needs, how its numbers come from it."""

import pandas as pd

from analysis.figures.criteria import number, numbers
from analysis.figures.occupancy import accuracy, capacity, staircases
from scenarios.live.stored import stored
from scenarios.live.summary import LEAST_UTILISATION
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.runs.rundir import Run

SESSIONS, SHORT, REPLAY, SRPT = "queue_sessions", "queue_short", "queue_replay", "queue_srpt"
EXAMPLE_SERVERS, EXAMPLE_TO = 2, 4
"""Servers of the paper's Figures 3 and 4."""
SEEDS = (2, 1, 3, 4, 5, 6, 7, 8, 9, 10)
"""Draws of the replayed load; the first is the shipped scenario's own, which was chosen to resemble Table 1."""


def _fig2(_sources: Sources, _paper: pd.DataFrame) -> Outcome:
    return Outcome(staircases.measure_fig2(), draw=staircases.fig2)


def _fig3(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    run = sources.run(REPLAY, **{"station.servers": EXAMPLE_SERVERS, "station.policy": "fcfs", "replays": ()})
    return Outcome(staircases.measure_fig3(run.table("truth_requests"), EXAMPLE_SERVERS), draw=staircases.fig3)


def _fig4(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    measured = staircases.measure_fig4(replays(sources.run(REPLAY)), EXAMPLE_SERVERS, EXAMPLE_TO)
    return Outcome(measured, draw=staircases.fig4)


def _fig5(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    return Outcome(staircases.measure_fig5(replays(sources.run(REPLAY))), draw=staircases.fig5)


def _fig6(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    long, short = (sources.run(name) for name in (SESSIONS, SHORT))
    log, cpu = stored()
    slow, quick = (accuracy.beside(run.table("requests"), run.table("cpu"), servers(run)) for run in (long, short))
    queued = sources.run(SESSIONS, **{"station.policy": "fcfs"})
    served, counted = queued.table("truth_requests"), queued.table("cpu")
    record = accuracy.in_service(served, servers(queued), [*counted["start_s"], counted["end_s"].iloc[-1]])
    exact = accuracy.beside(served, record, servers(queued))
    live = accuracy.beside(log, cpu[cpu["utilisation"] >= LEAST_UTILISATION], 1)
    return Outcome(accuracy.measure_fig6(slow, quick, exact, live), draw=accuracy.fig6)


def _table1(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    run = sources.run(REPLAY)
    return Outcome(capacity.measure_table1(replays(run), _demand_s(run)))


def _table2(sources: Sources, paper: pd.DataFrame) -> Outcome:
    ours = capacity.measure_table2(capacity.measure_table1(replays(sources.run(REPLAY)), 1.0))
    note = "computed from the printed Table 1; the text's roughly 27% is 48.65%; below, the same of the simulated load"
    return Outcome(capacity.measure_table2(paper), note=note, table=capacity.pairs(ours))


def _load(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    run = sources.run(REPLAY)
    return Outcome(capacity.measure_load(run.table("requests"), servers(run)), draw=capacity.load)


def _tightness(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    made = {seed: _shared(sources, seed) for seed in SEEDS}
    table = pd.DataFrame([{"seed": seed, **_tight(measured)} for seed, measured in made.items()])
    note = (
        "under processor sharing, where the bounds are theorems. The best ratios are medians of the draws of the load "
        f"below, the guarantees their worst; the shipped draw, the first, has {table['best_ratio_12'][0]:.3g} and "
        f"{table['best_ratio_14'][0]:.3g}"
    )
    return Outcome(capacity.over_draws(list(made.values())), draw=capacity.tightness, note=note, table=table)


def _shared(sources: Sources, seed: int) -> pd.DataFrame:
    run = sources.run(REPLAY, **{"station.policy": "ps", "seed": seed})
    made = replays(run)
    queueing_s = number(capacity.measure_table1(made, _demand_s(run)), "queueing_k1")
    return pd.concat([capacity.measure_tightness(made), numbers(queueing_k1=queueing_s)], ignore_index=True)


def _tight(measured: pd.DataFrame) -> dict[str, float]:
    names = ("queueing_k1", "ratio_12", "best_ratio_12", "ratio_14", "best_ratio_14")
    return {name: number(measured, name) for name in names}


def _srpt(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    measured = capacity.measure_srpt(replays(sources.run(REPLAY)), replays(sources.run(SRPT)))
    return Outcome(
        measured, table=capacity.pairs(measured), note="the paper's table is lost in the scan; ours is below"
    )


def replays(run: Run) -> pd.DataFrame:
    """Return servers, arrival_s, departure_s of a load under every number of servers that it was served with.

    Parameters
    ----------
    run : of a queue scenario, with or without replays
    """
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


OCCUPANCY: dict[str, Row] = {
    "occupancy/fig2": Row("occupancy curves of four unit jobs with one and with two servers", (), _fig2),
    "occupancy/fig3": Row("the Occupancy Law: service time below N = k, queueing time above", (REPLAY,), _fig3),
    "occupancy/fig4": Row("the area between k and k' is not the reduction, only a bound", (REPLAY,), _fig4),
    "occupancy/fig5": Row("why: with more servers the curve is never higher", (REPLAY,), _fig5),
    "occupancy/fig6": Row("utilisation by the law and as the server counts it", (SESSIONS, SHORT), _fig6),
    "occupancy/table1": Row("areas under the curves of one load and one to four servers", (REPLAY,), _table1),
    "occupancy/table2": Row("change of queueing and its bounds, from the printed Table 1", (REPLAY,), _table2),
    "occupancy/load": Row("utilisation over the 90 minutes of the replayed load", (REPLAY,), _load),
    "occupancy/tightness": Row("reduction over bound: guaranteed, measured, improved", (REPLAY,), _tightness),
    "occupancy/srpt": Row("the bounds under shortest remaining processing time", (REPLAY, SRPT), _srpt),
}
"""Every row of the paper by its id."""
