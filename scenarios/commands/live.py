"""The command `wsc live`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from models.errors import ArgumentError
from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json, Seed, count, duration, number, share


@guard
def live(
    *,
    servers: Annotated[int, count(help="CPUs of the server.")] = 1,
    minutes: Annotated[float, number(help="Minutes for which requests are sent; with --replay twice.")] = 2,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Serve one trace with 1 CPU and with 2, and compare the change with the bounds."),
    ] = False,
    scheduler: Annotated[
        Literal["auto", "rr", "fifo", "nice", "other"],
        typer.Option(
            help="Scheduler of the server: SCHED_RR, SCHED_FIFO, nice -20 or no change; auto is nice where permitted."
        ),
    ] = "auto",
    utilisation: Annotated[
        float | None, share(help="Send requests at one rate that keeps the CPUs so busy, in place of sessions.")
    ] = None,
    demand: Annotated[float | None, duration(help="Mean CPU time of a request; by default 300ms.")] = None,
    pool: Annotated[int | None, count(help="Start N workers beforehand, in place of one for each request.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the log and the tables: runs/live, or runs/live_replay.")
    ] = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Test the Occupancy Law on this machine: a real server under load, compared with the kernel's accounts."""
    from scenarios.live import measurement
    from scenarios.live import replay as live_replay
    from scenarios.views.terminal import progress

    fixed = {"utilisation": utilisation, "demand": demand, "pool": pool}
    if replay and (chosen := next((name for name, value in fixed.items() if value is not None), None)):
        raise ArgumentError(chosen, "cannot be chosen with --replay", str(fixed[chosen]))
    with progress(quiet=json) as tell, folder("--out"):
        measure = live_replay.replay if replay else measurement.live
        place = out if out is not None else Path("runs/live_replay" if replay else "runs/live")
        options = measurement.LiveOptions(servers, 60 * minutes, seed, scheduler, pool or 0, utilisation=utilisation)
        options = options if demand is None else options.with_demand(demand)
        conclusion = measure(options, place, tell)
    answer(conclusion, json)
