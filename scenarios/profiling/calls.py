"""Questions to call paths: functions with all that they call, and who calls a function."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from analysis.profiling.query import Query, event_or_default, of_process
from scenarios.files.faults import Fault, FaultsError
from scenarios.profiling.intervals import of_fleet
from scenarios.profiling.query import QueryOptions, opened
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import plural
from scenarios.views.records import TableRecords
from scenarios.views.section import Says, Section, note_lines
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd

    from analysis.profiling.database import Database

_AT_ONCE, _PAIRS_AT_ONCE = 1_000_000, 4_000_000
"""Rows of samples, and pairs of a key and a call path, up to which all are summed at once."""
_NO_INTERVALS = "no intervals: shares are of samples that have call paths, each function once a path"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallRows(Conclusion):
    """Functions with all that they call, or the callers of one: ``wsc profile query --cumulative``, ``--callers``."""

    query: Query
    kind: Literal["cumulative", "callers"]
    unit: str
    """What the event counts."""
    table: "pd.DataFrame"
    """Dimensions of processes, function or caller, share, value, own (in the function itself), samples."""
    all_rows: int
    """How many rows there are before the cut."""
    notes: list[str]

    def brief(self) -> str:
        """Return how many rows there are."""
        return plural(self.all_rows, "row")

    def frame(self) -> "pd.DataFrame":
        """Return the rows that are told."""
        return self.table

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {**self.records(), "rows": self.table.to_dict("records")}

    def records(self) -> Payload:
        """Return the same with the table itself for its rows."""
        return {
            "kind": f"profile query {self.kind}",
            "event": self.query.event,
            "unit": self.unit,
            "all_rows": self.all_rows,
            "rows": TableRecords(self.table),
            "notes": self.notes,
        }

    def section(self) -> Section:
        """Return how much there is, and the rows."""
        told = f"{len(self.table):,} of {plural(self.all_rows, 'row')} of {self.query.event}"
        titles = {name: f"{name} ({self.unit})" for name in ("value", "own") if self.unit}
        return Section("", (Says(told), of_rows(self.table, titles), *note_lines(self.notes)))


def cumulative(paths: Sequence[Path], options: QueryOptions) -> CallRows:
    """Return functions with all that they call, each once a path.

    Parameters
    ----------
    paths : as in `opened`
    options : the question, by function and dimensions of processes

    Raises
    ------
    FaultsError, ProfileError, QueryError
        With what is wrong with the paths or the question, and if no samples have call paths.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\nmain 4\\n")
    ...     cumulative([Path(file.name)], QueryOptions()).frame()[["function", "value", "own"]].values.tolist()
    [['main', 16, 4], ['read', 12, 12]]
    """
    notes: list[str] = []
    with opened(paths, notes) as database:
        question = _question(database, options)
        table, rows = _greatest(database, question, options.top)
        unit = database.units().get(question.event, "")
    columns = [*question.by, "function", "share", "value", "own", "samples"]
    return CallRows(question, "cumulative", unit, table[columns], rows, [*notes, _NO_INTERVALS])


def _greatest(database: "Database", query: Query, top: int | None) -> tuple["pd.DataFrame", int]:
    """Return the greatest rows of `Database.inclusive` and how many there are, summed in parts where they are many."""
    from analysis.profiling.database import check_top

    check_top(top)
    if query.by and database.rows > _AT_ONCE and _pairs(database, query) > _PAIRS_AT_ONCE:
        from analysis.profiling.cumulative import cumulative as in_parts

        if told := in_parts(database, query, top):
            return told
    table = database.inclusive(query, apart=query.by)
    return table.head(len(table) if top is None else top), len(table)


def _pairs(database: "Database", query: Query) -> int:
    """Return how many pairs of a key and a call path there may be."""
    return database.pair_count(query.by) * database.stack_numbers()[2]


def callers(paths: Sequence[Path], options: QueryOptions, function: str) -> CallRows:
    """Return who calls a function, with the share of what is spent under it.

    Parameters
    ----------
    paths, options : as in `cumulative`
    function : name

    Raises
    ------
    FaultsError, ProfileError, QueryError
        As `cumulative` does, and if there is no such function.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;a;read 12\\nmain;read 4\\n")
    ...     callers([Path(file.name)], QueryOptions(), "read").frame()[["caller", "share"]].values.tolist()
    [['a', 0.75], ['main', 0.25]]
    """
    notes: list[str] = []
    with opened(paths, notes) as database:
        question = _question(database, options)
        table = database.callers(function, question)
        unit = database.units().get(question.event, "")
    value = table["value"].astype(float)
    table = table.assign(share=value / max(float(value.sum()), 1.0))
    columns = [*question.by, "caller", "share", "value", "samples"]
    told = table[columns].head(options.top or len(table))
    return CallRows(question, "callers", unit, told, len(table), [*notes, _NO_INTERVALS])


def _question(database: "Database", options: QueryOptions) -> Query:
    """Return the query by dimensions of processes alone, of an event with call paths."""
    having = database.with_stacks()
    if not having:
        raise FaultsError([Fault("", 0, 0, "", "no samples of this profile have call paths")])
    question = of_fleet(database, options.query(database.events(), database.origin_s))[0]
    if options.event is None and question.event not in having:
        question = replace(question, event=event_or_default(having))
    if question.event not in having:
        problem = f"no samples of it have call paths, those of {', '.join(having)} have"
        raise FaultsError([Fault("--event", 0, 0, "", problem, question.event)])
    others = [name for name in question.by if name != "function" and not of_process(name)]
    if others:
        problem = "call paths are of functions: should be function or dimensions of processes"
        raise FaultsError([Fault("--by", 0, 0, "", problem, ", ".join(others))])
    return replace(question, by=tuple(filter(of_process, question.by)))
