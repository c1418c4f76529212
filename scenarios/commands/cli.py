"""The command `wsc`: simulate a fleet, judge estimators, measure your own fleet, redraw published figures."""

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from models.errors import InputError
from scenarios.commands import convert as cli_convert
from scenarios.commands import crosscheck as cli_crosscheck
from scenarios.commands import crossplatform as cli_services
from scenarios.commands import effects as cli_effects
from scenarios.commands import experiments as cli_experiments
from scenarios.commands import report as cli_report
from scenarios.commands.guard import Json, app, command, folder, say, say_each
from scenarios.commands.profiling import profiles
from scenarios.files.options import number, refuse, share, whole

if TYPE_CHECKING:
    from io import BufferedIOBase

    from rich.console import Console

    from scenarios.files.schema import AnyScenario
    from scenarios.files.source import Override
    from scenarios.runs.rundir import Run
    from scenarios.views.output import Progress

__all__ = ("app", "cli_convert", "cli_crosscheck", "cli_effects", "cli_experiments", "cli_report", "cli_services")

Named = Annotated[str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, or path of a file.")]
NamedOrRun = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, path of a file, or folder of a run.")
]
Out = Annotated[Path, typer.Option(help="Folder that the runs' folders go into.")]
Force = Annotated[bool, typer.Option("--force", help="Simulate again even if an intact run is there.")]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Another seed.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Another value, such as fleet.machines=500; may be repeated."),
]
T = Annotated[str, typer.Option("--t", metavar="X", help="Half-width of intervals in standard errors.")]
MinInstances = Annotated[str, typer.Option(metavar="N", help="Least measured instances of a job.")]


app.add_typer(profiles, name="profile")

_changes = functools.partial(typer.Option, rich_help_panel="What would change")
_columns = functools.partial(typer.Option, rich_help_panel="Columns of the log")
_fleet = functools.partial(typer.Option, rich_help_panel="A fleet's run that served requests")
_stdin = functools.partial(typer.Option, rich_help_panel="Events on standard input")


@command
def run(
    scenario: NamedOrRun,
    *,
    out: Out = Path("runs"),
    seed: Seed = None,
    sets: Sets = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Lengthen a queue's run until its mean response is known to, say, 2%."),
    ] = None,
    executor: Annotated[
        str | None, typer.Option(metavar="WHERE", help="Of several cells: processes, or dask:ADDRESS of a scheduler.")
    ] = None,
    workers: Annotated[str | None, typer.Option(metavar="N", help="Processes; one for each processor.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulate a scenario and say what changed; an intact run of the same scenario is used again.

    The folder of a run in place of a scenario is measured as it is.
    """
    overrides = _overrides(sets, seed=seed)
    there = _is_run(scenario)
    if there and (overrides or force):
        refuse("--set", "cannot change a run that is there", scenario)
    wanted = share("--precision", precision) if precision is not None else None
    if there and wanted is not None:
        refuse("--precision", "cannot lengthen a run that is there", scenario)
    scenarios = [] if there else _load(scenario, overrides)
    from scenarios.kinds import render
    from scenarios.runs import execution
    from scenarios.runs.cells import workers_of
    from scenarios.views.output import progress

    cells_on = workers_of(scenarios, executor, workers)
    with progress(quiet=json) as tell, folder("--out"):
        payloads = [execution.run(one, out, force, tell, wanted, workers=cells_on) for one in scenarios]
        if there:
            payloads = [execution.measure(*execution.reopen(Path(scenario)), out, tell)]
    say_each(payloads, render, json)


@command
def validate(
    scenario: Named,
    *,
    draws: Annotated[
        str | None, typer.Option(metavar="N", help="Test clusters of each size; of a cross-platform scenario, worlds.")
    ] = None,
    machines: Annotated[str | None, typer.Option(metavar="N,N,…", help="Sizes of the test clusters.")] = None,
    out: Out = Path("runs"),
    seed: Seed = None,
    sets: Sets = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw many test clusters, or many worlds of services, and count how often each interval was right."""
    scenarios = _load(scenario, [*_overrides(sets, seed=seed, machines=machines), *_draws(scenario, draws)])
    from scenarios.kinds import show_validate
    from scenarios.runs import execution
    from scenarios.views.output import progress

    with progress(quiet=json) as tell, folder("--out"):
        payloads = [execution.validate(one, out, force, tell) for one in scenarios]
    say_each(payloads, show_validate, json)


@command
def plan(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet: job, weight, mean, std, instances, cost.")],
    *,
    margin: Annotated[str, typer.Option(metavar="SHARE", help="Relative margin to plan for, such as 3% or 0.03.")],
    t: T = "2",
    min_instances: MinInstances = "4",
    json: Json = False,
) -> None:
    """Say how many instances of each job to measure for a margin, at least cost."""
    wanted = share("--margin", margin), number("--t", t), whole("--min-instances", min_instances)
    from scenarios.wsmeter import own as measured

    say(measured.plan(table, *wanted), measured.show_plan, json)


@command
def estimate(
    *,
    current: Annotated[Path, typer.Option(metavar="FILE", help="Instances without the feature: CSV or Parquet.")],
    new: Annotated[Path, typer.Option(metavar="FILE", help="Instances with the feature.")],
    jobs: Annotated[Path | None, typer.Option(metavar="FILE", help="Jobs of the fleet: job, quota, instances.")] = None,
    current_is: Annotated[
        Literal["population", "sample"], typer.Option(help="Whether `current` is the whole fleet or a sample of it.")
    ] = "population",
    t: T = "2",
    min_instances: MinInstances = "4",
    json: Json = False,
) -> None:
    """Estimate a change from measurements of a real fleet: job, machine, weight, value."""
    half_width, enough = number("--t", t), whole("--min-instances", min_instances)
    from scenarios.wsmeter import own as measured

    payload = measured.estimate(current, new, jobs, current_is=current_is, t=half_width, min_instances=enough)
    say(payload, measured.show_estimate, json)
    raise typer.Exit(measured.status(payload))


@command
def occupancy(
    log: Annotated[Path, typer.Argument(help="Request log: CSV, Parquet, access log or SWF; a run; - stdin.")],
    *,
    servers: Annotated[
        str | None, typer.Option(metavar="N", help="Servers (cores) that the log was made with; a fleet's run knows.")
    ] = None,
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="Length of intervals: 60s, 5min, 200ms.")] = None,
    alert: Annotated[str | None, typer.Option(metavar="RATIO", help="Tell intervals of more queueing/service.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for a picture.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value and nothing else; of stdin, one on each line.")
    ] = False,
    to: Annotated[str | None, _changes(metavar="N,N,…", help="Other numbers of servers to be judged.")] = None,
    speed: Annotated[
        str | None, _changes(metavar="X,X,…", help="Other speeds of the servers, such as 1.5,2, to be judged.")
    ] = None,
    policy: Annotated[
        Literal["auto", "fcfs", "lcfs", "lcfs_pr", "ps", "rr", "fb", "srpt", "sjf", "priority", "random"] | None,
        _changes(help="Policy to replay the log under; auto: find it out."),
    ] = None,
    quantum: Annotated[str, _changes(metavar="TIME", help="Time slice of policy rr.")] = "100ms",
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
        Literal["s", "ms", "us", "ns"] | None, _columns(help="Unit of columns whose names do not say it.")
    ] = None,
    service: Annotated[str | None, _fleet(metavar="NAME", help="Service of which a stay is taken.")] = None,
    stay: Annotated[
        int | None, _fleet(metavar="N", min=0, help="Number of the stay; by itself the one with most requests.")
    ] = None,
    reorder: Annotated[str | None, _stdin(metavar="N", help="Events held back to be put in order of time.")] = None,
) -> None:
    """Say how long the requests of a log waited, how busy its servers were, and what other servers would change.

    A dash reads events from standard input as they come, lines of time,+1 and time,-1 for arrivals and departures.
    """
    from scenarios.files import options
    from scenarios.runs.rundir import make_folder

    count = whole("--servers", servers, options.MOST_SERVERS) if servers is not None else None
    ratio = number("--alert", alert) if alert is not None else None
    length_s = options.duration("--interval", interval) if interval is not None else None
    if str(log) == "-":
        files = {"--to": to, "--speed": speed, "--policy": policy, "--out": out, "--arrival": arrival}
        _refuse_all(files | {"--departure": departure, "--duration": duration, "--priority": priority})
        _refuse_all({"--service": service, "--stay": stay})
        from scenarios.occupancy import stream

        held = whole("--reorder", reorder) if reorder is not None else 0
        watched = stream.Watched(_needed(count), length_s or stream.INTERVAL_S, ratio, held, unit)
        stream.watch(cast("BufferedIOBase", sys.stdin.buffer), watched, stream.printer(json))
        return
    if reorder is not None:
        refuse("--reorder", "is about events on standard input, -", reorder)
    from scenarios.occupancy.own import Asked, Columns
    from scenarios.occupancy.own import occupancy as analyse
    from scenarios.occupancy.stay_logs import log_of_run
    from scenarios.occupancy.text import show_occupancy

    given = log_of_run(log, service, stay, count)
    asked = Asked(
        servers=given.servers if given is not None else _needed(count),
        to=options.numbers_of("--to", to, options.MOST_SERVERS) if to is not None else (),
        speed=options.factors("--speed", speed) if speed is not None else (),
        interval_s=length_s,
        policy=None if policy == "auto" else policy,
        identify=policy == "auto",
        quantum_s=options.duration("--quantum", quantum),
        alert=ratio,
    )
    if out is not None:
        with folder("--out"):
            make_folder(out)
    columns = Columns(arrival, departure, duration, unit, priority)
    say(analyse(log, asked, columns, out, given=given.log if given is not None else None), show_occupancy, json)


@command
def reproduce(
    what: Annotated[str, typer.Argument(metavar="[ID|PAPER|all]", help="What to redraw.")] = "all",
    *,
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("figures"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs that they are made from.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    json: Json = False,
) -> None:
    """Redraw published figures and tables from simulated fleets, and say which findings hold."""
    from scenarios.papers import reproduce as papers
    from scenarios.papers.evidence import Sources
    from scenarios.papers.trials import trials
    from scenarios.runs.rundir import make_folder
    from scenarios.views.output import progress

    if list_:
        say(papers.listing(), papers.show_listing, json)
        return
    papers.chosen(what)
    with folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, folder("--runs"):
        rows = papers.reproduce(what, out, Sources(_obtain(runs), tell, _judge(runs), trials(runs)))
    say(rows, papers.show, json)


@command
def live(
    *,
    servers: Annotated[str, typer.Option(metavar="N", help="CPUs of the server.")] = "1",
    minutes: Annotated[str, typer.Option(metavar="N", help="How long requests are sent, each time.")] = "2",
    replay: Annotated[
        bool, typer.Option("--replay", help="Serve one trace with 1 CPU and with 2; set the bounds beside the change.")
    ] = False,
    scheduler: Annotated[
        Literal["auto", "rr", "fifo", "nice", "other"],
        typer.Option(help="The server's: SCHED_RR, SCHED_FIFO, nice -20 or as it is; auto is nice where permitted."),
    ] = "auto",
    pool: Annotated[str | None, typer.Option(metavar="N", help="Workers made beforehand, not one a request.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the log and the tables: runs/live, or runs/live_replay.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the load.")] = 1,
    json: Json = False,
) -> None:
    """Try the laws on this machine: a real server under load, the law beside the kernel's own accounts."""
    wanted = whole("--servers", servers), 60 * number("--minutes", minutes), seed, scheduler
    workers = whole("--pool", pool) if pool is not None else 0
    from scenarios.live import command as once
    from scenarios.live import replay as live_replay
    from scenarios.views.output import progress

    with progress(quiet=json) as tell, folder("--out"):
        measure = live_replay.replay if replay else once.live
        place = out if out is not None else Path("runs/live_replay" if replay else "runs/live")
        payload = measure(once.Asked(*wanted, workers), place, tell)
    say(payload, live_replay.show if replay else once.show, json)


@command
def scenarios(json: Json = False) -> None:
    """List the shipped scenarios."""
    from scenarios.files import loader

    say(loader.shipped(), _show_shipped, json)


@command
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Scenario files, or names of the library.")],
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenario files and print all their faults, without simulating anything."""
    from scenarios.files.faults import Fault, FaultsError
    from scenarios.files.loader import load_each

    found, checked = list[Fault](), list[dict[str, Any]]()
    for file in files:
        names, faults = list[str](), list[Fault]()
        try:
            names = [one.name for one in load_each(file, _overrides(sets))]
        except FaultsError as error:
            faults = error.faults
        checked.append({"file": file, "scenarios": names, "faults": [asdict(fault) for fault in faults]})
        found += faults
    say({"kind": "check", "files": checked}, _show_checked, json)
    if found:
        raise FaultsError(found)


@command
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.files.json_schema import json_schema
    from scenarios.views.output import dumps

    typer.echo(dumps(json_schema()))


def _obtain(out: Path) -> Callable[[str, Mapping[str, Any], "Progress"], "Run"]:
    """Return how to get the run of a library scenario with other values."""
    from scenarios.files.loader import load
    from scenarios.files.source import Override
    from scenarios.runs import execution
    from scenarios.views.output import dumps

    def obtain(name: str, values: Mapping[str, Any], tell: "Progress") -> "Run":
        overrides = [Override(path, dumps(value), "value") for path, value in values.items()]
        return execution.obtain(load(name, overrides), out, False, tell)

    return obtain


def _judge(out: Path) -> Callable[[str, Mapping[str, Any], "Progress"], list[dict[str, Any]]]:
    """Return how to get judged worlds, or judged collectors, of a library scenario with other values."""
    from scenarios.crossplatform.worlds import worlds
    from scenarios.files.loader import load
    from scenarios.files.schema import ProfileScenario, ServiceScenario
    from scenarios.files.source import Override
    from scenarios.profiling.validate import validate
    from scenarios.views.output import dumps

    def judge(name: str, values: Mapping[str, Any], tell: "Progress") -> list[dict[str, Any]]:
        scenario = load(name, [Override(path, dumps(value), "value") for path, value in values.items()])
        if isinstance(scenario, ProfileScenario):
            return [validate(scenario, out, False, tell)]
        if not isinstance(scenario, ServiceScenario):
            raise InputError(f"{name}: is a {scenario.kind}, of which no worlds are judged")
        return worlds(scenario, out, False, tell)

    return judge


def _is_run(text: str) -> bool:
    """Return whether a text is the folder of a run; a plain name is a scenario unless a manifest is there."""
    return Path(text).is_dir() and ("/" in text or (Path(text) / "manifest.json").is_file())


def _overrides(sets: Iterable[str] | None, seed: str | None = None, machines: str | None = None) -> list["Override"]:
    from scenarios.files.source import Override, settings

    sizes = f"[{machines}]" if machines is not None else None
    options = [
        Override("seed", seed, "--seed"),
        Override("analyses.wsmeter.machines", sizes, "--machines", column=0),
    ]
    return [*settings(sets or ()), *(option for option in options if option.value is not None)]


def _draws(reference: str, draws: str | None) -> list["Override"]:
    """Return what `--draws` sets in a scenario of its kind."""
    if draws is None:
        return []
    from scenarios.files.loader import draws_path
    from scenarios.files.source import Override

    return [Override(draws_path(reference), draws, "--draws")]


def _load(reference: str, overrides: list["Override"]) -> list["AnyScenario"]:
    from scenarios.files.loader import load_each

    return load_each(reference, overrides)


def _needed(servers: int | None) -> int:
    """Return the servers of a log, which only the folder of a fleet's run knows by itself."""
    if servers is not None:
        return servers
    from scenarios.files.faults import Fault, FaultsError

    raise FaultsError([Fault("--servers", 0, 0, "", "is needed: how many servers the log was made with")])


def _refuse_all(options: Mapping[str, object]) -> None:
    """Refuse every option that was given although it is about files."""
    for option, given in options.items():
        if given is not None:
            refuse(option, "is about files, not about events on standard input", str(given))


def _show_shipped(payload: list[dict[str, str]], console: "Console") -> None:
    from rich.table import Table

    table = Table("scenario", "kind", "what it shows")
    for one in payload:
        table.add_row(one["name"], one["kind"], one["description"])
    console.print(table)


def _show_checked(payload: dict[str, Any], console: "Console") -> None:
    for one in payload["files"]:
        count = f" in {len(one['scenarios'])} scenarios" if len(one["scenarios"]) > 1 else ""
        if not one["faults"]:
            console.print(f"{one['file']}: no faults{count}", markup=False, soft_wrap=True)
