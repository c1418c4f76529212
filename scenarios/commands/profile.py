"""The commands `wsc profile …`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, count, duration, share, written
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import count_or_all, moment_or_point, refuse, typed
from scenarios.profiling.regress import adjustment as adjustment_of
from scenarios.profiling.regress import least_cost, least_growth

if TYPE_CHECKING:
    from scenarios.views.conclusion import Conclusion

Profiles = Annotated[
    list[Path],
    typer.Argument(metavar="RUN|FILE…", help="Folders of profiled runs, or files that wsc profile import reads."),
]
By = Annotated[str, typer.Option(metavar="KEY,…", help="Dimensions to group by, such as function,job.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,…",
        help="Only samples with these values; may be repeated. A comma within brackets, as in f(int, char), parts no "
        r"values; write others that are part of a value as \,.",
    ),
]
Event = Annotated[
    str | None, typer.Option(metavar="EVENT", help="Event; by default cycles, or the first of a profile without them.")
]
Top = Annotated[int | None, written(count_or_all, "N", help="Rows to print, or all.")]
_POINT = "of imported files also such as 2026-05-01T12:00Z (UTC without a zone) or seconds since 1970"
Since = Annotated[
    float | None,
    written(moment_or_point, "TIME", help=f"Visits from this time on, such as 2d or 36h; {_POINT}."),
]
Until = Annotated[float | None, written(moment_or_point, "TIME", help="Visits before this time.")]
profile = typer.Typer(
    name="profile",
    add_completion=False,
    help="Query, compare, import and export fleet-wide profiles.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@profile.command()
@guard
def query(
    paths: Profiles,
    *,
    by: By = "function",
    where: Where = None,
    event: Event = None,
    top: Top = 20,
    since: Since = None,
    until: Until = None,
    cumulative: Annotated[
        bool, typer.Option("--cumulative", help="Functions with all that they call, from call paths.")
    ] = False,
    callers: Annotated[str | None, typer.Option(metavar="FUNCTION", help="Who calls this function.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the rows shown into this file, too.")] = None,
    json: Json = False,
) -> None:
    """Group samples by any dimensions and restrict the others; shares with 95% intervals."""
    from scenarios.profiling import calls
    from scenarios.profiling import query as profile_query
    from scenarios.runs.table_files import irreplaceable, write_table
    from scenarios.views.terminal import working

    options = profile_query.QueryOptions(by, tuple(where or ()), event, since, until, top)
    if cumulative and callers is not None:
        refuse("--callers", "is another question than --cumulative: leave one out", callers)
    with working("reading profiles", quiet=json):
        if callers is not None:
            rows: Conclusion = calls.callers(paths, options, callers)
        else:
            rows = calls.cumulative(paths, options) if cumulative else profile_query.query(paths, options)
    if csv is not None:
        table = rows.frame()
        if problem := irreplaceable(csv, [], table.columns.tolist()):
            raise FaultsError([Fault("", 0, 0, "csv", problem)])
        write_table(table, csv, "csv")
    answer(rows, json)


@profile.command()
@guard
def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="Folder of a run, or a file.")],
    b: Annotated[
        Path, typer.Argument(metavar="B", help="Another run or file, or the same folder with another restriction.")
    ],
    *,
    by: By = "function",
    where: Where = None,
    where_a: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Restriction of A alone.")] = None,
    where_b: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Restriction of B alone.")] = None,
    event: Event = None,
    top: Top = 20,
    since: Since = None,
    until: Until = None,
    json: Json = False,
) -> None:
    """Compare two profiles, the largest change of share first."""
    from scenarios.profiling import query as profile_query
    from scenarios.views.terminal import working

    options = profile_query.QueryOptions(by, tuple(where or ()), event, since, until, top)
    with working("reading profiles", quiet=json):
        payload = profile_query.diff([a], [b], options, tuple(where_a or ()), tuple(where_b or ()))
    answer(payload, json)


@profile.command("import")
@guard
def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE…",
            help="Profiles, or patterns of names: pprof, OTLP, folded stacks, perf, speedscope, Chrome and others.",
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="New folder that the tables go into.")] = Path("imported"),
    append: Annotated[
        bool, typer.Option("--append", help="Add to the files of an earlier import; those that are there are left out.")
    ] = False,
    machine_from: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="What says a file's machine: label.NAME, file (its name), or a pattern of names such as '{}-*.pb.gz'.",
        ),
    ] = None,
    service_from: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="The same for the service (application).")
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Table of the files in place of FILE…: file, perhaps machine, service, start (ISO 8601, UTC without a "
            "zone, or seconds since 1970) and duration_s; other columns are labels.",
        ),
    ] = None,
    binary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Program, library or debug file that names the addresses of files without symbols; may be repeated.",
        ),
    ] = None,
    source_root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the source files, whose text is kept to be annotated.")
    ] = None,
    source_link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PREFIX=]URL",
            help="Repository that pages link to, or an address with {revision}, {path} and {line}; may be repeated.",
        ),
    ] = None,
    drawn_from: Annotated[
        int | None, count(help="Number of machines of which those in the files are a random sample.")
    ] = None,
    equal_lengths: Annotated[
        bool,
        typer.Option(
            "--equal-lengths", help="All machines were profiled equally long, where the files have no lengths."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Read profiles of other tools into a folder that every other command takes."""
    if equal_lengths and drawn_from is None:
        refuse("--equal-lengths", "is for --drawn-from, which is not given", "--equal-lengths")
    if files and manifest is not None:
        refuse("--manifest", "names the files: leave FILE… out", str(files[0]))
    from scenarios.profiling import files as profile_files
    from scenarios.views.terminal import progress

    with progress(quiet=json) as tell:
        payload = profile_files.import_files(
            files or (),
            out,
            tell,
            drawn_from,
            equal_lengths=equal_lengths,
            append=append,
            machine_from=machine_from,
            service_from=service_from,
            manifest=manifest,
            binaries=binary or (),
            source_root=source_root,
            source_links=source_link or (),
        )
    answer(payload, json)


@profile.command()
@guard
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of profiled runs.")],
    *,
    form: Annotated[
        Literal["pprof", "folded", "speedscope", "llvm"], typer.Option("--format", help="Format to write.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")],
    event: Event = None,
    where: Where = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Write estimates for the fleet in place of counts of samples.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a profile for pprof, flame graphs, or a compiler's feedback."""
    from scenarios.profiling import files as profile_files
    from scenarios.views.terminal import working

    selection = profile_files.ExportSelection(event, tuple(where or ()), weighted)
    with working("reading and writing profiles", quiet=json):
        conclusion = profile_files.export(runs, form, out, selection)
    answer(conclusion, json)


@profile.command()
@guard
def stability(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of profiled runs.")],
    *,
    by: By = "application",
    event: Event = None,
    k: Annotated[
        int | None, written(count_or_all, "N", help="Number of largest entries in the distances, or all.")
    ] = 20,
    bits: Annotated[bool, typer.Option("--bits", help="Entropy in bits in place of nats.")] = False,
    json: Json = False,
) -> None:
    """Show how much profiles vary from day to day, and how much they would vary by sampling alone."""
    from scenarios.profiling import stability as profile_stability
    from scenarios.views.terminal import working

    keys = tuple(name.strip() for name in by.split(",") if name.strip())
    with working("reading profiles", quiet=json):
        payload = profile_stability.stability(runs, keys, event, k, bits=bits)
    answer(payload, json)


@profile.command()
@guard
def ask(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="Folder of a profiled run.")] = None,
    question: Annotated[str | None, typer.Argument(metavar="[QUESTION]", help="Name of a question.")] = None,
    *,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="PARAMETER=VALUE", help="A parameter; may be repeated.")
    ] = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="For colocate: move jobs apart and together in simulation, and compare CPI.")
    ] = False,
    pairs: Annotated[int, count(help="Pairs of jobs that --judge moves together, at most.")] = 80,
    listed: Annotated[bool, typer.Option("--list", help="List the questions and their parameters.")] = False,
    json: Json = False,
) -> None:
    """Answer a question that has a name: shared code, savings, locks, memory, old hardware and others."""
    from scenarios.profiling import ask as profile_ask
    from scenarios.views.terminal import progress, working

    if listed:
        answer(profile_ask.listing(), json)
        return
    if run is None or question is None:
        refuse("RUN QUESTION", "both are needed; --list names the questions", "nothing" if run is None else str(run))
    if judge and question != "colocate":
        refuse("--judge", "only answers to colocate can be judged", question)
    with working("reading profiles", quiet=json):
        concluded = profile_ask.ask(run, question, tuple(sets or ()))
    if judge:
        from scenarios.profiling import beside_trial, colocate_trial

        with progress(quiet=json) as tell:
            tried = colocate_trial.tried(run, colocate_trial.suffering(concluded.table), tell)
            together = beside_trial.judged(run, concluded.parameters, pairs, tell)
        concluded = replace(concluded, tried=tuple(tried), together=together)
    answer(concluded, json)


@profile.command()
@guard
def regress(
    a: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a profiled run, or of files; a file, or a pattern of names."),
    ],
    b: Annotated[
        Path | None, typer.Argument(metavar="[LATER]", help="A later run or later files, in place of --at.")
    ] = None,
    *,
    at: Annotated[
        float | None,
        written(moment_or_point, "TIME", help=f"Time that splits one run into before and after, such as 7d; {_POINT}."),
    ] = None,
    event: Event = None,
    min_factor: Annotated[
        float, written(least_growth, "X", help="Factor that a function's growth must significantly exceed.")
    ] = 1.25,
    min_cost: Annotated[
        float, written(least_cost, "SHARE", help="Least cost of the growth, as a share of all events after.")
    ] = 0.0001,
    false_alarms: Annotated[
        float, share(help="Chance of any false alarm; or share of false ones among the alarms.")
    ] = 0.01,
    adjustment: Annotated[
        str,
        written(
            adjustment_of,
            "METHOD",
            help="Correction for the number of functions: holm (chance of any false alarm), benjamini-hochberg or "
            "benjamini-yekutieli (share of false ones among the alarms).",
        ),
    ] = "holm",
    fail: Annotated[
        bool, typer.Option("--fail", help="End with status 1 if a function became more expensive.")
    ] = False,
    json: Json = False,
) -> None:
    """Name the functions that became more expensive or cheaper, and the revision, compiler or platform at fault."""
    from analysis.profiling.regressions.comparison import AlarmCriteria
    from scenarios.profiling import regress as regression
    from scenarios.views.terminal import working

    if b is not None and at is not None:
        refuse("--at", "is for one run; two were given", typed("TIME", at))
    criteria = AlarmCriteria(false_alarms, min_factor, min_cost, adjustment_of("--adjustment", adjustment))
    with working("reading and comparing", quiet=json):
        concluded = regression.regress(a, b, at, event, criteria)
    answer(concluded, json)
    raise typer.Exit(1 if fail and len(concluded.alarms) else 0)


@profile.command()
@guard
def watch(
    paths: Profiles,
    *,
    event: Event = None,
    bin_s: Annotated[float, duration("--bin", help="Width of the bins of time.")] = 3600.0,
    min_factor: Annotated[
        float, written(least_growth, "X", help="Factor beyond which the interval of a change must lie.")
    ] = 1.0,
    min_cost: Annotated[
        float, written(least_cost, "SHARE", help="Least cost of a change, as a share of all events.")
    ] = 0.00002,
    false_alarms: Annotated[float, share(help="Chance of any false alarm, over all functions and times.")] = 0.01,
    since: Since = None,
    until: Until = None,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail", help="End with status 1 if a function became more expensive, 2 if nothing could be compared."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Find what changed over time, when, and with which revision, compiler, kernel, platform or data centre."""
    from analysis.profiling.changes.detection import WatchCriteria
    from scenarios.profiling import watch as profile_watch
    from scenarios.views.terminal import working

    criteria = WatchCriteria(false_alarms, min_factor, min_cost)
    with working("reading and watching", quiet=json):
        concluded = profile_watch.watch(paths, event, criteria, profile_watch.WatchedTime(since, until, bin_s))
    answer(concluded, json)
    raise typer.Exit((2 if concluded.lacking else 1 if concluded.alarms else 0) if fail else 0)
