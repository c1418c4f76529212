"""The command `wsc convert`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, written
from scenarios.files import options

_LONGEST_S = 366 * 86400.0


def _period_s(option: str, text: str) -> float:
    length_s = options.duration(option, text)
    if not 1.0 <= length_s <= _LONGEST_S or length_s != round(length_s):
        options.refuse(option, "should be whole seconds, at most 366 days", text)
    return length_s


@guard
def convert(
    trace: Annotated[
        Literal["google2011", "google2019", "alibaba2018", "amtrace"],
        typer.Argument(metavar="TRACE", help="Format of the trace."),
    ],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Tables of resource use: task_usage, instance_usage, container_usage or core_pmu; CSV, JSON lines, "
            "Parquet.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the observations: .parquet or .csv.")] = Path(
        "observations.parquet"
    ),
    period: Annotated[float, written(_period_s, "TIME", help="Length of periods, such as 1h or 1d.")] = 3600,
    requests: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Tables of resource requests: task_events, instance_events or container_meta; may be repeated.",
        ),
    ] = None,
    machines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of the machines: machine, optionally treated, since_s, until_s, clock_hz, platform, rack.",
        ),
    ] = None,
    jobs_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for the table of jobs (job, quota, instances); by default none is written."
        ),
    ] = None,
    hosts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="amtrace: its table of machines, host_meta, for their clocks.")
    ] = None,
    json: Json = False,
) -> None:
    """Convert a public trace of a cluster to the observations that effect, audit, design and monitor read."""
    from scenarios.effects.convert import Conversion
    from scenarios.effects.convert import convert as converted
    from scenarios.views.terminal import progress

    conversion = Conversion(trace, tuple(files), out, tuple(requests or ()), machines, jobs_out, float(period), hosts)
    with progress(quiet=json) as tell:
        conclusion = converted(conversion, tell)
    answer(conclusion, json)
