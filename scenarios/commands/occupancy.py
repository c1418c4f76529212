"""The command `wsc occupancy`."""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from models.queues.policies import PolicyName
from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import count, factors, number, written
from scenarios.commands.options import duration as time
from scenarios.files import options

if TYPE_CHECKING:
    from io import BufferedIOBase

    from analysis.tables.queries import TableQuery
    from scenarios.occupancy.standard_input import StandardInput


_CHANGES = "What would change"
_STDIN = "Events on standard input"
_COLUMNS = "Columns of the log"
_columns = partial(typer.Option, rich_help_panel=_COLUMNS)
_rows = partial(typer.Option, rich_help_panel="Rows of the log")
_FLEET = "A fleet's run that served requests"


def _servers(option: str, text: str) -> int:
    return options.whole(option, text, options.MOST_SERVERS)


@guard
def occupancy(
    log: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Request log, its files in any order: CSV, Parquet, JSON, access log or SWF; a SELECT; the folder of "
            "a run; or - for standard input.",
        ),
    ],
    *,
    servers: Annotated[
        int | None, written(_servers, "N", help="Servers (cores) that served the log; not needed for a fleet's run.")
    ] = None,
    interval: Annotated[float | None, time(help="Length of intervals: 60s, 5min, 200ms.")] = None,
    alert: Annotated[
        float | None, number(help="Report intervals in which queueing time is more than X times service time.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for a figure.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value and nothing else; for standard input one value a line.")
    ] = False,
    to: Annotated[
        Sequence[int] | None,
        written(
            partial(options.numbers_of, most=options.MOST_SERVERS),
            "N,N,…",
            help="Other numbers of servers, such as 3,8, for which queueing is bounded or predicted.",
            panel=_CHANGES,
        ),
    ] = None,
    speed: Annotated[
        Sequence[float] | None,
        factors(help="Other speeds of the servers, such as 1.5,2 (1: as in the log).", panel=_CHANGES),
    ] = None,
    policy: Annotated[
        Literal["auto", PolicyName] | None,
        typer.Option(
            rich_help_panel=_CHANGES, help="Scheduling policy for the replay; auto identifies it from the log."
        ),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="p99=TIME",
            rich_help_panel=_CHANGES,
            help="Objective, such as p99=300ms: the fewest servers and the largest load that meet it.",
        ),
    ] = None,
    load: Annotated[
        float, number(help="Load that the objective is asked for, as a multiple of the log's.", panel=_CHANGES)
    ] = 1.0,
    hourly: Annotated[
        bool,
        typer.Option(
            "--hourly",
            rich_help_panel=_CHANGES,
            help="Ask --slo for each hour of the day, or of the week in logs of two weeks, on the clock of --zone.",
        ),
    ] = False,
    scalability: Annotated[
        bool,
        typer.Option(
            "--scalability",
            rich_help_panel=_CHANGES,
            help="Fit contention and coherence (Universal Scalability Law) to completions by requests present.",
        ),
    ] = False,
    quantum: Annotated[
        float, time(help="Time slice of policy rr; in seconds if it has no unit.", panel=_CHANGES)
    ] = 0.1,
    by_column: Annotated[
        str | None, _rows("--by", metavar="COLUMN", help="Column of classes to compare: path, status.")
    ] = None,
    hosts_column: Annotated[
        str | None,
        _rows("--hosts", metavar="COLUMN", help="Column of machines, each with --servers of its own."),
    ] = None,
    rows_where: Annotated[
        str | None, _rows("--where", metavar="EXPR", help="Rows that count, such as \"status = '200'\".")
    ] = None,
    from_stamp: Annotated[
        str | None, _rows("--from", metavar="WHEN", help="Begin here: 2024-06-10T09:00, or seconds of the log.")
    ] = None,
    until_stamp: Annotated[str | None, _rows("--until", metavar="WHEN", help="End before this time.")] = None,
    arrival: Annotated[str | None, _columns(metavar="COLUMN", help="Column of arrivals.")] = None,
    departure: Annotated[str | None, _columns(metavar="COLUMN", help="Column of departures.")] = None,
    duration: Annotated[
        str | None,
        _columns(
            metavar="COLUMN",
            help="Column of response times; in an access log the name of its field, or 2: the second number.",
        ),
    ] = None,
    priority: Annotated[
        str | None, _columns(metavar="COLUMN", help="Column of priorities, 0 served first; --policy priority needs it.")
    ] = None,
    unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None, _columns(help="Unit of columns whose names have none, such as ms.")
    ] = None,
    format: Annotated[
        str | None,
        _columns(metavar="TEXT", help="Format of the lines, as nginx's log_format or Apache's LogFormat has it."),
    ] = None,
    upstream: Annotated[
        bool, _columns("--upstream", help="Take the time of the servers behind a proxy, not that of the proxy.")
    ] = False,
    network_delay: Annotated[
        float | None,
        time(help="What of each response time the network took, if a client wrote the log: 0.4ms.", panel=_COLUMNS),
    ] = None,
    zone: Annotated[
        str | None, _columns(metavar="NAME", help="Zone of stamps without one, such as Europe/Berlin; by default UTC.")
    ] = None,
    on_disk: Annotated[
        bool,
        typer.Option(
            "--on-disk",
            help="Read a long log part by part, in bounded memory, from a copy in $TMPDIR; what other servers would "
            "change is not answered.",
        ),
    ] = False,
    database: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Database of DuckDB or SQLite for a SELECT in place of a log."),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Service whose stay is analysed.", rich_help_panel=_FLEET),
    ] = None,
    stay: Annotated[
        int | None,
        written(
            partial(options.whole, least=0),
            "N",
            help="Number of the stay; by default the one with the most requests.",
            panel=_FLEET,
        ),
    ] = None,
    reorder: Annotated[
        int | None,
        count(help="Number of events that are held back, so that late ones can be put in order.", panel=_STDIN),
    ] = None,
) -> None:
    """Find from a log how long requests waited, how busy the servers were, and what other servers would change.

    A dash reads standard input: a log in any format, or events as they come, lines of time,+1 and time,-1 for arrivals
    and departures.
    """
    from scenarios.occupancy.standard_input import StandardInput
    from scenarios.runs.rundir import make_folder

    if "-" in log and len(log) > 1:
        options.refuse("LOG", "is one where it is standard input, -", " ".join(log))
    piped = StandardInput(cast("BufferedIOBase", sys.stdin.buffer)) if log[0] == "-" else None
    files, queried = _sources(log, database, {"--service": service, "--stay": stay})
    if piped is not None and piped.events:
        given_too = {"--to": to, "--speed": speed, "--policy": policy, "--out": out, "--arrival": arrival}
        _refuse_all(given_too | {"--departure": departure, "--duration": duration, "--priority": priority})
        _refuse_all({"--service": service, "--stay": stay, "--format": format, "--zone": zone})
        _refuse_all({"--upstream": upstream or None, "--from": from_stamp, "--until": until_stamp, "--slo": slo})
        _refuse_all({"--scalability": scalability or None, "--by": by_column, "--hosts": hosts_column})
        _refuse_all({"--where": rows_where, "--hourly": hourly or None, "--on-disk": on_disk or None})
        _refuse_all({"--database": database, "--network-delay": network_delay})
        from scenarios.occupancy import stream

        watched = stream.Watched(_needed(servers), interval or stream.INTERVAL_S, alert, reorder or 0, unit)
        stream.watch(piped, watched, stream.printer(json))
        return
    if reorder is not None:
        options.refuse("--reorder", "is about events on standard input, -", str(reorder))
    from analysis.occupancy.logs.log import LogOptions
    from scenarios.occupancy.occupancy import occupancy as conclude
    from scenarios.occupancy.occupancy import refuse_together
    from scenarios.occupancy.question import OccupancyQuery
    from scenarios.occupancy.slices import LogSlice
    from scenarios.views.terminal import working

    chosen = (rows_where, from_stamp, until_stamp, by_column, hosts_column)
    given = None
    if queried is None and (files[0].is_dir() or service is not None or stay is not None):
        from scenarios.runs.stays import log_of_run

        given = log_of_run(files[0], service, stay, servers)
    query = OccupancyQuery(
        servers=given.servers if given is not None else _needed(servers),
        to=tuple(to or ()),
        speed=tuple(speed or ()),
        interval_s=interval,
        policy=None if policy == "auto" else policy,
        identify=policy == "auto",
        quantum_s=quantum,
        alert=alert,
        objective=None if slo is None else options.objective("--slo", slo),
        load=load,
        hourly=hourly,
        scalability=scalability,
        network_delay_s=network_delay,
        rows=LogSlice(*chosen) if any(text is not None for text in chosen) else None,
    )
    if given is not None:
        from scenarios.occupancy.unserved import refuse_of_stay

        refuse_of_stay(query, given.refused)
    said = LogOptions(arrival, departure, duration, unit, priority, format, upstream, zone)
    if on_disk:
        from scenarios.occupancy.on_disk import occupancy_on_disk, refuse_whole

        if given is not None:
            options.refuse("--on-disk", "reads the file of a log, not a fleet's run", log[0])
        refuse_whole(query, said, out)
    elif out is not None:
        refuse_together(query, out)  # before the folder is there
        with folder("--out"):
            make_folder(out)
    with _copied(files, piped, queried) as (copied, name):
        with working("reading and replaying", quiet=json):
            conclusion = (
                occupancy_on_disk(copied, query, said, name=name)
                if on_disk
                else conclude(copied, query, said, out, given=None if given is None else given.log, name=name)
            )
        answer(conclusion, json)


def _sources(
    log: Sequence[str], database: Path | None, of_fleets: Mapping[str, object]
) -> "tuple[list[Path], TableQuery | None]":
    """Return the files of a log, and the query in their place, if it is one; it takes no option of fleets."""
    query = None
    if database is not None or any(len(text.split()) > 1 for text in log):
        from analysis.tables.cells import source_of
        from analysis.tables.queries import TableQuery

        queries = [source for source in (source_of(text, database) for text in log) if isinstance(source, TableQuery)]
        if queries and len(log) > 1:
            options.refuse("LOG", "is one where it is a SELECT", " ".join(log))
        if database is not None and not queries:
            options.refuse("--database", "is what a SELECT in place of a log is about; there is none", str(database))
        if queries:
            (query,) = queries
            _refuse_all(of_fleets, "is about the folder of a fleet's run that served requests, not about a SELECT")
    return [Path(text) for text in log], query


@contextmanager
def _copied(
    files: Sequence[Path], piped: "StandardInput | None", query: "TableQuery | None"
) -> "Generator[tuple[Path | Sequence[Path], str | None]]":
    """Yield where a log is, and what people call it if that is a copy: of standard input, or of a query's rows."""
    if piped is not None:
        from scenarios.occupancy.standard_input import NAME

        with piped.file() as file:
            yield file, NAME
    elif query is not None:
        from scenarios.files.copies import as_file

        with as_file(query) as copied:
            yield copied
    else:
        yield files[0] if len(files) == 1 else files, None


def _needed(servers: int | None) -> int:
    """Return the servers of a log, which only the folder of a fleet's run knows by itself."""
    if servers is not None:
        return servers
    from scenarios.files.faults import Fault, FaultsError

    raise FaultsError([Fault("--servers", 0, 0, "", "is needed: how many servers the log was made with")])


def _refuse_all(given: Mapping[str, object], why: str = "is about logs, not about events on standard input") -> None:
    """Refuse every option that was given although it is about something else."""
    for option, value in given.items():
        if value is not None:
            text = ",".join(f"{part:g}" for part in value) if isinstance(value, tuple) else str(value)
            options.refuse(option, why, text)
