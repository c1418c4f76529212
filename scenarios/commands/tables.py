"""Options of the commands that read tables: which columns of somebody else's table are ours."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from scenarios.commands.options import duration, share, written
from scenarios.files.faults import Fault, FaultsError

if TYPE_CHECKING:
    from analysis.tables.cells import Source
    from analysis.tables.recipe import Recipe

_PANEL = "Tables with columns of their own"


def _zone(option: str, text: str) -> str:
    from scenarios.files import recipes

    return recipes.zone_of(option, text)


_OPTIONS: dict[str, Any] = {
    "column": Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EXPR",
            help="Expression for one of our columns, such as value=instructions/cpu_ms; repeatable.",
            rich_help_panel=_PANEL,
        ),
    ],
    "columns": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file of such expressions; by default TABLE.columns.yaml if it stands beside a table.",
            rich_help_panel=_PANEL,
        ),
    ],
    "rows_where": Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="Read only the rows for which this expression is true.",
            rich_help_panel=_PANEL,
        ),
    ],
    "period": Annotated[
        float | None,
        duration(
            help="Cut the time stamps in the column period into periods of this length, such as 1d.", panel=_PANEL
        ),
    ],
    "from_stamp": Annotated[
        str | None,
        typer.Option(
            "--from", metavar="WHEN", help="Read rows from this time on; needs --period.", rich_help_panel=_PANEL
        ),
    ],
    "until_stamp": Annotated[
        str | None,
        typer.Option(
            "--until", metavar="WHEN", help="Read rows before this time; needs --period.", rich_help_panel=_PANEL
        ),
    ],
    "zone": Annotated[
        str | None,
        written(_zone, "NAME", help="Time zone of time stamps without one; days begin at its midnight.", panel=_PANEL),
    ],
    "skip_bad": Annotated[
        float | None,
        share(
            "--skip-bad",
            help="Leave out rows with a cell that cannot be used, up to this share of all rows.",
            panel=_PANEL,
        ),
    ],
    "database": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Database of DuckDB or SQLite for a SELECT in place of a table.",
            rich_help_panel=_PANEL,
        ),
    ],
}
"""By the name of the parameter."""


class NamedTables(NamedTuple):
    """Tables of observations as they were named, and how their columns become ours."""

    sources: "tuple[Source, ...]"
    recipe: "Recipe"
    database: Path | None


Named = Path
"""A table as it was named, which a decorator below makes a source of: a path or a SELECT."""
OneNamed = Named | None


def reads_tables(help: str, metavar: str = "TABLE…") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command the argument TABLE… and the options of its columns, as its first parameter.

    Parameters
    ----------
    help : what may be named as a table
    metavar : what help calls it
    """
    return partial(_reading, argument=Annotated[list[str], typer.Argument(metavar=metavar, help=help)])


def reads_table(help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what gives a command the argument TABLE, as `reads_tables` gives it several."""
    return partial(_reading, argument=Annotated[str, typer.Argument(metavar="TABLE", help=help)])


def reads_log(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the log of a service, and the options of its columns and rows."""
    holds = "Log of a service, one row per interval: CSV or Parquet; a SELECT; or the folder of a run."
    argument = Annotated[str, typer.Argument(metavar="LOG", help=holds)]
    return _reading(command, argument=argument, options=_OF_OTHERS, wrong=_not_of_log)


def _not_of_log(name: str) -> str:
    from analysis.crossplatform.log_columns import not_of_log

    return not_of_log(name)


def reads_pairs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a table of jobs on platforms, and the options of its columns and rows."""
    holds = (
        "Table of job, platform, load, cpi, capacity, optionally clock_hz and cpi_se: CSV or Parquet; a SELECT; or a "
        "profiled run's folder."
    )
    argument = Annotated[str, typer.Argument(metavar="TABLE|RUN", help=holds)]
    return _reading(command, argument=argument, options=_OF_OTHERS, wrong=_not_of_pairs)


def _not_of_pairs(name: str) -> str:
    from analysis.profiling.affinity.table import NAMES
    from scenarios.files.recipes import unknown

    return unknown(name, NAMES)


_OF_OTHERS = ("column", "columns", "rows_where", "database")
"""Options of a table that is none of observations."""


def reads_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes the tables of a command of some of its options, in order, and gives it those of columns."""
    return partial(_reading, names=names)


def _reading(
    command: Callable[..., None],
    names: Sequence[str] = (),
    argument: Any = None,  # noqa: ANN401  # an annotation
    options: Sequence[str] = tuple(_OPTIONS),
    wrong: Callable[[str], str] | None = None,
) -> Callable[..., None]:
    """Return a command whose first parameter, the named tables, is made of an argument or of options."""

    @wraps(command)
    def reading(**given: Any) -> None:  # noqa: ANN401  # options of all types
        tables = given.pop("tables", None) or [given[name] for name in names]
        named = [tables] if isinstance(tables, str) else tables
        read = _tables(named, wrong, **{name: given.pop(name) for name in options})
        given |= dict(zip(names, read.sources, strict=False))
        for name in ("jobs", "prices", "benchmarks"):
            if given.get(name) is not None:
                from analysis.tables.cells import source_of

                given[name] = source_of(str(given[name]), read.database)
        command(read, **given)

    _, *own = inspect.signature(command).parameters.values()
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, keyword, default=None, annotation=_OPTIONS[name]) for name in options]
    first = [] if argument is None else [inspect.Parameter("tables", positional, annotation=argument)]
    at = next((place for place, entry in enumerate(own) if entry.name == "json"), len(own))
    signature = inspect.Signature([*first, *own[:at], *added, *own[at:]])
    vars(reading).update(__signature__=signature)
    reading.__annotations__ = {name: entry.annotation for name, entry in signature.parameters.items()}
    del vars(reading)["__wrapped__"]  # its parameters are not those of the command
    return reading


def _tables(
    named: list[str],
    wrong: Callable[[str], str] | None,
    database: Path | None,
    column: list[str] | None,
    columns: Path | None,
    **given: object,
) -> NamedTables:
    """Return the sources and the recipe that options give; what they do not say is as a file beside a table says."""
    from analysis.tables.cells import recipe_beside, source_of
    from analysis.tables.queries import TableQuery
    from analysis.tables.recipe import AS_IT_IS

    sources = tuple(source_of(text, database) for text in named)
    if database is not None and not any(isinstance(source, TableQuery) for source in sources):
        raise FaultsError([Fault("", 0, 0, "database", "is what a SELECT in place of a table is about; there is none")])
    file = columns or recipe_beside(sources)
    if not column and file is None and all(value is None for value in given.values()):
        return NamedTables(sources, AS_IT_IS, database)
    from scenarios.files.recipes import columns_of, recipe_of

    recipe = recipe_of({"columns": columns_of(column or (), wrong), **given}, file, wrong)
    return NamedTables(sources, recipe, database)
