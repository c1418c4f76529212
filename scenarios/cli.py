"""The command `wsc`: simulate a fleet, judge estimators, measure your own fleet, redraw published figures."""

import functools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar, cast

import typer

from scenarios.options import number, refuse, share, whole

if TYPE_CHECKING:
    from io import BufferedIOBase

    from rich.console import Console

    from scenarios.output import Progress
    from scenarios.rundir import Run
    from scenarios.schema import AnyScenario
    from scenarios.source import Override

_P = ParamSpec("_P")
_T = TypeVar("_T")
_FAULTY, _INTERRUPTED = 2, 130

app = typer.Typer(
    help="A simulated warehouse-scale computer with a statistician beside it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Named = Annotated[str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, or path of a file.")]
NamedOrRun = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, path of a file, or folder of a run.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
Out = Annotated[Path, typer.Option(help="Folder that the runs' folders go into.")]
Force = Annotated[bool, typer.Option("--force", help="Simulate again even if an intact run is there.")]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Another seed.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Another value, such as fleet.machines=500; may be repeated."),
]
T = Annotated[str, typer.Option("--t", metavar="X", help="Half-width of intervals in standard errors.")]
MinInstances = Annotated[str, typer.Option(metavar="N", help="Least measured instances of a job.")]


_changes = functools.partial(typer.Option, rich_help_panel="What would change")
_columns = functools.partial(typer.Option, rich_help_panel="Columns of the log")
_stdin = functools.partial(typer.Option, rich_help_panel="Events on standard input")


def _command(function: Callable[_P, None]) -> Callable[_P, None]:
    """Make a function a command: faults and other expected errors end it in a plain line and a status."""

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except BrokenPipeError:
            raise
        except MemoryError as error:
            typer.echo(f"there is not enough memory: {error}".removesuffix(": "), err=True)
            raise typer.Exit(_FAULTY) from None
        except Exception as error:
            if not (isinstance(error, OSError) or _ours(error)):
                raise
            typer.echo(str(error), err=True)
            raise typer.Exit(_FAULTY) from None

    app.command()(guarded)
    return guarded


def _ours(error: Exception) -> bool:
    """Return whether the testbed raised the error, to say what the user can mend."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = str(frames[-1].f_globals.get("__name__", "")) if isinstance(error, ValueError) else ""
    ours = {"models", "sim", "analysis", "scenarios"}
    return bool({type(error).__module__.partition(".")[0], raised_in.partition(".")[0]} & ours)


@_command
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
    from scenarios import execution
    from scenarios import run as runs
    from scenarios.output import progress

    with progress(quiet=json) as tell, _folder("--out"):
        payloads = [runs.run(one, out, force, tell, wanted) for one in scenarios]
        if there:
            payloads = [runs.measure(*execution.reopen(Path(scenario)), out, tell)]
    _say_each(payloads, runs.render, json)


@_command
def validate(
    scenario: Named,
    *,
    draws: Annotated[str | None, typer.Option(metavar="N", help="Test clusters of each size.")] = None,
    machines: Annotated[str | None, typer.Option(metavar="N,N,…", help="Sizes of the test clusters.")] = None,
    out: Out = Path("runs"),
    seed: Seed = None,
    sets: Sets = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw many test clusters and count how often each estimator's interval was right."""
    scenarios = _load(scenario, _overrides(sets, seed=seed, draws=draws, machines=machines))
    from scenarios import run as runs
    from scenarios.output import progress
    from scenarios.validate import show_validate

    with progress(quiet=json) as tell, _folder("--out"):
        payloads = [runs.validate(one, out, force, tell) for one in scenarios]
    _say_each(payloads, show_validate, json)


@_command
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
    from scenarios import measured

    _say(measured.plan(table, *wanted), measured.show_plan, json)


@_command
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
    from scenarios import measured

    payload = measured.estimate(current, new, jobs, current_is=current_is, t=half_width, min_instances=enough)
    _say(payload, measured.show_estimate, json)


@_command
def occupancy(
    log: Annotated[Path, typer.Argument(help="Request log: CSV, Parquet, nginx, Apache or SWF; a queue run; - stdin.")],
    *,
    servers: Annotated[str, typer.Option(metavar="N", help="Servers (cores) that the log was made with.")],
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
    duration: Annotated[str | None, _columns(metavar="COLUMN", help="Column of response times.")] = None,
    priority: Annotated[
        str | None, _columns(metavar="COLUMN", help="Column of priorities, 0 served first; --policy priority needs it.")
    ] = None,
    unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None, _columns(help="Unit of columns whose names do not say it.")
    ] = None,
    reorder: Annotated[str | None, _stdin(metavar="N", help="Events held back to be put in order of time.")] = None,
) -> None:
    """Say how long the requests of a log waited, how busy its servers were, and what other servers would change.

    A dash reads events from standard input as they come, lines of time,+1 and time,-1 for arrivals and departures.
    """
    from scenarios import options
    from scenarios.rundir import make_folder

    count = whole("--servers", servers, options.MOST_SERVERS)
    ratio = number("--alert", alert) if alert is not None else None
    length_s = options.duration("--interval", interval) if interval is not None else None
    if str(log) == "-":
        files = {"--to": to, "--speed": speed, "--policy": policy, "--out": out, "--arrival": arrival}
        _refuse_all(files | {"--departure": departure, "--duration": duration, "--priority": priority})
        from scenarios import occupancy_stream as stream

        held = whole("--reorder", reorder) if reorder is not None else 0
        watched = stream.Watched(count, length_s or stream.INTERVAL_S, ratio, held, unit)
        stream.watch(cast("BufferedIOBase", sys.stdin.buffer), watched, stream.printer(json))
        return
    if reorder is not None:
        refuse("--reorder", "is about events on standard input, -", reorder)
    from scenarios.occupancy import Asked, Columns
    from scenarios.occupancy import occupancy as analyse
    from scenarios.occupancy_text import show_occupancy

    asked = Asked(
        servers=count,
        to=options.numbers_of("--to", to, options.MOST_SERVERS) if to is not None else (),
        speed=options.factors("--speed", speed) if speed is not None else (),
        interval_s=length_s,
        policy=None if policy == "auto" else policy,
        identify=policy == "auto",
        quantum_s=options.duration("--quantum", quantum),
        alert=ratio,
    )
    if out is not None:
        with _folder("--out"):
            make_folder(out)
    _say(analyse(log, asked, Columns(arrival, departure, duration, unit, priority), out), show_occupancy, json)


@_command
def reproduce(
    what: Annotated[str, typer.Argument(metavar="[ID|PAPER|all]", help="What to redraw.")] = "all",
    *,
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("figures"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs that they are made from.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    json: Json = False,
) -> None:
    """Redraw published figures and tables from simulated fleets, and say which findings hold."""
    from scenarios import reproduce as papers
    from scenarios.output import progress
    from scenarios.rundir import make_folder

    if list_:
        _say(papers.listing(), papers.show_listing, json)
        return
    papers.chosen(what)
    with _folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, _folder("--runs"):
        rows = papers.reproduce(what, out, _obtain(runs), tell)
    _say(rows, papers.show, json)


@_command
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
    from scenarios.output import progress

    with progress(quiet=json) as tell, _folder("--out"):
        measure = live_replay.replay if replay else once.live
        folder = out if out is not None else Path("runs/live_replay" if replay else "runs/live")
        payload = measure(once.Asked(*wanted, workers), folder, tell)
    _say(payload, live_replay.show if replay else once.show, json)


@_command
def scenarios(json: Json = False) -> None:
    """List the shipped scenarios."""
    from scenarios import loader

    _say(loader.shipped(), _show_shipped, json)


@_command
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Scenario files, or names of the library.")],
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Check scenario files and print all their faults, without simulating anything."""
    from scenarios.faults import Fault, FaultsError
    from scenarios.loader import load_each

    found, checked = list[Fault](), list[dict[str, Any]]()
    for file in files:
        names, faults = list[str](), list[Fault]()
        try:
            names = [one.name for one in load_each(file, _overrides(sets))]
        except FaultsError as error:
            faults = error.faults
        checked.append({"file": file, "scenarios": names, "faults": [asdict(fault) for fault in faults]})
        found += faults
    _say({"kind": "check", "files": checked}, _show_checked, json)
    if found:
        raise FaultsError(found)


@_command
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from scenarios.json_schema import json_schema
    from scenarios.output import dumps

    typer.echo(dumps(json_schema()))


def _obtain(out: Path) -> Callable[[str, Mapping[str, Any], "Progress"], "Run"]:
    """Return how to get the run of a library scenario with other values."""
    from scenarios import execution
    from scenarios.loader import load
    from scenarios.output import dumps
    from scenarios.source import Override

    def obtain(name: str, values: Mapping[str, Any], tell: "Progress") -> "Run":
        overrides = [Override(path, dumps(value), "value") for path, value in values.items()]
        return execution.obtain(load(name, overrides), out, False, tell)

    return obtain


@contextmanager
def _folder(option: str) -> Iterator[None]:
    """Say which option names a folder that cannot be made."""
    from scenarios.faults import Fault, FaultsError
    from scenarios.rundir import FolderError

    try:
        yield
    except FolderError as error:
        raise FaultsError([Fault(option, 0, 0, "", str(error))]) from None


def _is_run(text: str) -> bool:
    """Return whether a text is the folder of a run; a plain name is a scenario unless a manifest is there."""
    return Path(text).is_dir() and ("/" in text or (Path(text) / "manifest.json").is_file())


def _overrides(
    sets: Iterable[str] | None, seed: str | None = None, draws: str | None = None, machines: str | None = None
) -> list["Override"]:
    from scenarios.source import Override, settings

    sizes = f"[{machines}]" if machines is not None else None
    options = [
        Override("seed", seed, "--seed"),
        Override("analyses.wsmeter.draws", draws, "--draws"),
        Override("analyses.wsmeter.machines", sizes, "--machines", column=0),
    ]
    return [*settings(sets or ()), *(option for option in options if option.value is not None)]


def _load(reference: str, overrides: list["Override"]) -> list["AnyScenario"]:
    from scenarios.loader import load_each

    return load_each(reference, overrides)


def _refuse_all(options: Mapping[str, object]) -> None:
    """Refuse every option that was given although it is about files."""
    for option, given in options.items():
        if given is not None:
            refuse(option, "is about files, not about events on standard input", str(given))


def _say(payload: _T, show: Callable[[_T, "Console"], None], json: bool) -> None:
    """Print a payload as JSON or as text."""
    from scenarios.output import dumps

    if json:
        typer.echo(dumps(payload))
        return
    from rich.console import Console

    show(payload, Console(highlight=False))


def _say_each(payloads: list[_T], show: Callable[[_T, "Console"], None], json: bool) -> None:
    """Print one payload, or those of a sweep as one value."""
    if len(payloads) == 1:
        _say(payloads[0], show, json)
        return

    def show_all(sweep: dict[str, Any], console: "Console") -> None:
        for payload in sweep["runs"]:
            show(payload, console)

    _say(dict[str, Any](kind="sweep", runs=payloads), show_all, json)


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
