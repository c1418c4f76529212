"""Which jobs should run on which platforms: from a table or a profile, by `wsc affinity`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.profiling.affinity.advice import Advice, Judgement, Method, Settings, advise, spent
from analysis.profiling.affinity.shrinkage import compare
from analysis.profiling.affinity.table import COUNTERS, Table, frame_of, read
from analysis.profiling.affinity.terms import Structure
from models.arrays import Floats
from scenarios.files.faults import Fault, FaultsError
from scenarios.views import text
from scenarios.views.numbers import amount, plural
from scenarios.views.section import Section
from scenarios.views.tables import of_rows
from scenarios.wsmeter.own import faults_in

if TYPE_CHECKING:
    from rich.console import Console

_ROWS = 30
_ROUNDING = 1e-9


def affinity(path: Path, method: Method = "lp", *, keep_traffic: bool = False, judged: bool = False) -> dict[str, Any]:
    """Return the best assignment of a table's, or a profile's, jobs to platforms.

    Parameters
    ----------
    path : a CSV or Parquet file with a row per job and platform, or the folder of a profiled run
    method : the exact linear programme or simulated annealing
    keep_traffic : whether no platform may get more last-level-cache misses than it has now
    judged : whether to judge it at the run's true CPI and by moving the jobs in simulation

    Returns
    -------
    dict
        total_cycles_before and total_cycles_after; assignment (job, platform, load: every pair with load); optimal
        (whether that is certified), gap (relative, to the bound of the dual), saving (of cycles, or of time with
        clocks); with clocks total_seconds_before and total_seconds_after; prices of capacity by platform; use
        (platform, capacity, before and after, cycles); notes;
        predicted_by (what CPIs of pairs that were not sampled come from) and held_out (how well each way predicts
        pairs that were left out, where there are such); for a run with its truth `truth`, and `moved` if it was judged.

    Raises
    ------
    FaultsError
        With everything that is wrong with the path or the table, or if the capacities are too small.
    AffinityError
        If a profile's are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.csv"
    ...     _ = file.write_text("job,platform,load,cpi,capacity\\na,1,9,1,9\\na,2,0,2,9\\n")
    ...     affinity(file)["assignment"]
    [{'job': 'a', 'platform': '1', 'load': 9.0}]
    """
    settings = Settings(keep_traffic=keep_traffic)
    if path.is_dir():
        return _of_run(path, method, settings, judged)
    if judged:
        raise FaultsError([Fault("--judge", 0, 0, "", "needs the folder of a profiled run", str(path))])
    with faults_in(path):
        return _payload(advise(read(path), method, settings))


def _of_run(path: Path, method: Method, settings: Settings, judged: bool) -> dict[str, Any]:
    from analysis.profiling.affinity.sampled import table_of
    from analysis.profiling.database import Database

    with Database([path]) as database:
        frame = table_of(database)
    found = advise(Table.of(frame), method, settings)
    payload = _payload(found)
    from scenarios.profiling import affinity_trial

    payload |= affinity_trial.truth(path, frame, found)
    payload["notes"] += _exceeded(payload.get("truth", {}))
    if judged:
        payload["moved"] = affinity_trial.moved(path, found)
    return payload


def _payload(found: Advice) -> dict[str, Any]:
    table, cpi = found.table, found.believed.cpi
    loads = table.load, found.plan.load
    cycles = [spent(table, cpi, load, clocked=False) for load in loads]
    seconds = [spent(table, cpi, load) for load in loads] if table.clock_hz is not None else None
    prices = dict(zip(table.platforms, found.plan.prices[0].tolist(), strict=True))
    return {
        "kind": "affinity",
        "method": found.method,
        "total_cycles_before": cycles[0],
        "total_cycles_after": cycles[1],
        **({"total_seconds_before": seconds[0], "total_seconds_after": seconds[1]} if seconds else {}),
        "saving": found.saving,
        "assignment": frame_of(table, found.plan.load).to_dict("records"),
        "optimal": found.plan.optimal,
        "gap": found.plan.gap,
        "prices": prices,
        "use": _use(found),
        "headroom": dict(zip(table.platforms, found.headroom.tolist(), strict=True)),
        "jobs": len(table.jobs),
        "platforms": len(table.platforms),
        "moved_share": _moved_share(found),
        "predicted_pairs": found.believed.filled,
        "predicted_by": found.believed.structure.name,
        "held_out": compare(table, found.believed.left_out).query("cells > 0").to_dict("records")
        if found.believed.filled
        else [],
        "shrunk_pairs": found.believed.shrunk,
        "notes": _notes(found),
    }


def _exceeded(truth: Mapping[str, float]) -> list[str]:
    """Return a warning if an assignment takes more than there is at the true CPI."""
    excess = truth.get("capacity_excess", 0.0)
    return [f"warning: at the true CPI the assignment exceeds capacities by {excess:.2%}"] if excess > _ROUNDING else []


def _use(found: Advice) -> list[dict[str, Any]]:
    """Return of each platform: capacity, used before and used after, in cycles."""
    table, cpi = found.table, found.believed.cpi
    rows = zip(
        table.platforms, table.capacity, *(_cycles(load, cpi) for load in (table.load, found.plan.load)), strict=True
    )
    return [
        {"platform": name, "capacity": float(capacity), "before": float(before), "after": float(after)}
        for name, capacity, before, after in rows
    ]


def _cycles(load: Floats, cpi: Floats) -> Floats:
    """Return (I,) cycles on each platform; pairs without load take none."""
    return np.asarray(np.where(load > 0, load * cpi, 0.0).sum(axis=0), dtype=np.float64)


def _moved_share(found: Advice) -> float:
    """Return the share of all instructions that are to be executed on another platform."""
    moved = np.maximum(found.plan.load - found.table.load, 0.0).sum()
    return float(moved / max(found.table.load.sum(), 1e-300))


def _parts(structure: Structure) -> str:
    """Return what CPI is predicted from, in words."""
    slopes = ", with slopes for how much a job waits for memory" if structure.slopes else ""
    return ("the cross-platform model" if structure.model else "job and platform") + slopes


def _notes(found: Advice) -> list[str]:
    believed, notes = found.believed, list[str]()
    if found.table.clock_hz is not None:
        notes.append("CPI is divided by clock_hz: time is minimised, and capacities hold in seconds")
    if believed.filled:
        error = f"{float(np.median(believed.log_se[found.table.unobserved])):.0%}"
        notes.append(
            f"{believed.filled} pairs have no CPI: predicted from {_parts(believed.structure)}, median error {error}"
        )
    if believed.shrunk:
        notes.append(
            f"{believed.shrunk} sampled CPIs were shrunk towards what is predicted of them; "
            f"interactions spread by {believed.interaction_sd:.1%}"
        )
    if found.table.unused:
        missing = ", ".join(name for name in COUNTERS if name not in found.table.unused)
        given = ", ".join(found.table.unused)
        notes.append(f"not used: {given}; CPIs are predicted from all {len(COUNTERS)} counters; missing: {missing}")
    if found.headroom.any():
        notes.append("capacity is kept free for what is not known of the CPI of what moves")
    if found.keeps_traffic:
        notes.append("no platform gets more last-level-cache misses than it has now")
    if found.raised:
        notes.append(f"capacity raised by rounding to what is used now: {', '.join(found.raised)}")
    return notes


def show(payload: dict[str, Any], console: "Console") -> None:
    """Print what an assignment saves and where load moves."""
    from rich.markup import escape

    before, after = payload["total_cycles_before"], payload["total_cycles_after"]
    proof = "optimal, proven by duality" if payload["optimal"] else f"within {payload['gap']:.2%} of the optimum"
    size = f"{plural(payload['jobs'], 'job')} on {plural(payload['platforms'], 'platform')}"
    true = ""
    if "truth" in payload:
        true = f", {payload['truth']['saving']:.2%} at the true CPI"
    console.print(
        f"{size} by {payload['method']}: {proof}",
        f"  saving {payload['saving']:.2%} promised{true}; {payload['moved_share']:.1%} of the load moves",
        f"  total cycles {amount(before)} → {amount(after)}",
        sep="\n",
        soft_wrap=True,
    )
    if "total_seconds_before" in payload:
        seconds = payload["total_seconds_before"], payload["total_seconds_after"]
        console.print(f"  total seconds {amount(seconds[0])} → {amount(seconds[1])}", soft_wrap=True)
    for line in [*(f"  note: {note}" for note in payload["notes"]), *_judged(payload)]:
        console.print(escape(line), soft_wrap=True)
    cycles = {name: f"{name} (cycles)" for name in ("capacity", "before", "after")}
    text.show(Section("", (of_rows(payload["use"], cycles),)), console)
    largest = sorted(payload["assignment"], key=lambda row: -row["load"])
    text.show(Section("", (of_rows(largest[:_ROWS], {"load": "load (instructions)"}),)), console)
    if len(largest) > _ROWS:
        console.print(f"  and {len(largest) - _ROWS:,} more with less load; --json has all")


def _judged(payload: dict[str, Any]) -> list[str]:
    """Return lines about the truth and the simulation, where they were asked."""
    lines = []
    if (true := payload.get("truth")) is not None:
        lines.append(
            f"  at the true CPI: saves {true['saving']:.2%} of a possible {true['possible']:.2%}; "
            f"{true['unseen']:.0%} of what is possible rests on pairs that never ran"
        )
    for moved in payload.get("moved", []):
        kept = ", traffic kept" if moved["keeps_traffic"] else ""
        lines.append(
            f"  moved in simulation{kept}: saves {moved['realised']:.2%}, {moved['realised_over_promised']:.0%} of the "
            f"{moved['promised']:.2%} promised; {moved['placed_share']:.1%} of the moves found room"
        )
    return lines


def judgement(made: Judgement) -> dict[str, float]:
    """Return what is told of a judgement.

    Examples
    --------
    >>> judgement(Judgement(0.03, 0.04, 0.0))["sampled_over_possible"]
    0.75
    """
    return {
        "saving": made.saving,
        "possible": made.possible,
        "sampled_over_possible": made.sampled_over_possible,
        "capacity_excess": made.capacity_excess,
        "unseen": made.unseen,
    }
