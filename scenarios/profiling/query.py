"""Questions to profiles: function tables by any dimensions, and differences of two profiles."""

import math
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from analysis.profiling.fleet_samples import visits_of
from analysis.profiling.query import (
    DIMENSIONS,
    NO_SAMPLES,
    Query,
    QueryError,
    UnknownValueError,
    Where,
    event_or_default,
    parse_where,
    unknown,
)
from models.arrays import DAY_S
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import time_since, time_text
from scenarios.profiling.intervals import ERRORS, FALSE_CHANGES, LEVEL, difference, intervals, of_fleet, without
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import amount, interval, listed, plural, share
from scenarios.views.records import TableRecords
from scenarios.views.section import Says, Section, Table, note_lines
from scenarios.views.tables import of_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from analysis.profiling.database import Database

_T = TypeVar("_T")
_LABELS = "and label.NAME for a label of the files' own"
_PATTERN = frozenset("*?[")
"""Characters of patterns of names."""


@dataclass(frozen=True, slots=True)
class Total:
    """How much of an event a query has in all."""

    samples: int
    value: int
    """Events of the fleet, in the event's unit."""

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        return {"samples": self.samples, "value": self.value}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProfileRows(Conclusion):
    """How much of an event goes to each key of a profile: the answer of ``wsc profile query``."""

    query: Query
    events: list[str]
    """Of the profile."""
    unit: str
    """What the event counts."""
    total: Total
    table: "pd.DataFrame"
    """The dimensions, samples, value, share and, where visits were drawn at random, low and high of the share."""
    all_rows: int
    """How many rows there are before the cut."""
    unsymbolised_share: float
    visits: int
    """With such samples."""
    confidence: float | None
    """Of low and high; none without them."""
    notes: list[str]

    def brief(self) -> str:
        """Return the shares of the first rows, with their intervals where they have some."""
        rows = _named(self.table, self.query).to_dict("records")
        ends = [f" ({interval(row['low'], row['high'], '.1%')})" if "low" in row else "" for row in rows]
        texts = [f"{row['function']} {share(row['share'])}{end}" for row, end in zip(rows, ends, strict=True)]
        return listed(texts, 1 if any(ends) else 3)

    def frame(self) -> "pd.DataFrame":
        """Return the rows."""
        return self.table

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {**self.records(), "rows": self.table.to_dict("records")}

    def records(self) -> Payload:
        """Return the same with the table itself for its rows."""
        return {
            "kind": "profile query",
            "event": self.query.event,
            "events": self.events,
            "unit": self.unit,
            "by": list(self.query.by),
            "where": _told(self.query.where),
            "total": self.total.payload(),
            "all_rows": self.all_rows,
            "rows": TableRecords(self.table),
            "unsymbolised_share": self.unsymbolised_share,
            "visits": self.visits,
            "confidence": self.confidence,
            "notes": self.notes,
        }

    def figure(self) -> "Figure":
        """Return the shares of the rows that are shown, with their intervals."""
        from analysis.figures.gwp.hot_functions import draw_functions

        unknown = {name: math.nan for name in ("low", "high", "true") if name not in self.table}
        return draw_functions(_named(self.table, self.query).assign(**unknown), self.query.event)

    def section(self) -> Section:
        """Return how much there is, and the rows."""
        return Section(
            "",
            (
                Says(
                    f"{_samples(self.total.samples, self.query.event)} on {plural(self.visits, 'visit')}: "
                    f"{amount(self.total.value)} {self.unit}; {share(self.unsymbolised_share)} without a symbol"
                ),
                Says(f"{len(self.table):,} of {plural(self.all_rows, 'row')}{_others(self.events, self.query.event)}"),
                _table(self.table, self.query, ("share", "low", "high", "value", "samples"), self.unit),
                *note_lines(self.notes),
            ),
        )


@dataclass(frozen=True, slots=True)
class QuerySide:
    """One of two queries that are compared."""

    query: Query
    total: Total


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProfileDifference(Conclusion):
    """What two profiles, or parts of one, spend differently: the answer of ``wsc profile diff``."""

    query: Query
    """What both sides are asked, without their own restrictions."""
    events: list[str]
    """Of both profiles."""
    unit: str
    a: QuerySide
    b: QuerySide
    table: "pd.DataFrame"
    """All rows, or the greatest changes of very many: the dimensions, value_a, value_b, share_a, share_b, change and,
    where both sides were drawn at random and no visit is on both, its low and high and whether it is significant among
    all rows."""
    all_rows: int
    """How many there are in all."""
    significant_rows: int | None
    """How many of these changed beyond chance; none without intervals."""
    top: int | None
    """Rows that are told; none: all."""
    confidence: float | None
    notes: list[str]

    def brief(self) -> str:
        """Return the largest change of a share, and how many rows changed beyond chance."""
        known = (
            ""
            if self.significant_rows is None
            else f"; {self.significant_rows} of {self.all_rows} rows changed beyond chance"
        )
        if not len(self.table):
            return "no rows"
        first = _named(self.table.head(1), self.query).to_dict("records")[0]
        ends = f" ({100 * first['low']:+.2f} to {100 * first['high']:+.2f})" if "low" in first else ""
        return f"{first['function']} {100 * first['change']:+.2f} points{ends}{known}"

    def frame(self) -> "pd.DataFrame":
        """Return the rows that are told."""
        return self.table.head(self.top or len(self.table))

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {**self.records(), "rows": self.frame().to_dict("records")}

    def records(self) -> Payload:
        """Return the same with the table itself for its rows."""
        sides = {
            name: {"total": side.total.payload(), "where": _told(side.query.where)}
            for name, side in (("a", self.a), ("b", self.b))
        }
        return {
            "kind": "profile diff",
            "event": self.query.event,
            "events": self.events,
            "unit": self.unit,
            "by": list(self.query.by),
            **sides,
            "changed_rows": self.all_rows,
            "rows": TableRecords(self.frame()),
            "confidence": self.confidence,
            "significant_rows": self.significant_rows,
            "notes": self.notes,
        }

    def figure(self) -> "Figure":
        """Return by how much the shares of the rows that are shown changed, with their intervals."""
        from analysis.figures.gwp.hot_functions import draw_differences

        rows = self.frame()
        unknown = {name: math.nan for name in ("low", "high") if name not in rows}
        known = {"significant": False} if "significant" not in rows else {}
        return draw_differences(_named(rows, self.query).assign(**unknown, **known), self.query.event)

    def section(self) -> Section:
        """Return how much there is on both sides, and the rows that changed most."""
        rows, event = self.frame(), self.query.event
        totals = (
            f"{name}: {_samples(side.total.samples, event)}, {amount(side.total.value)} {self.unit}".rstrip()
            for name, side in (("a", self.a), ("b", self.b))
        )
        columns = ("share_a", "share_b", "change", "low", "high", "value_a", "value_b")
        return Section(
            "",
            (
                *map(Says, totals),
                Says(f"{len(rows):,} of {plural(self.all_rows, 'row')}{_others(self.events, event)}"),
                _table(rows, self.query, columns, self.unit),
                *note_lines(self.notes),
            ),
        )


def _named(rows: "pd.DataFrame", query: Query) -> "pd.DataFrame":
    """Return rows with all their dimensions in one name, as pictures have it."""
    return rows.assign(function=rows[list(query.by)].astype(str).agg(" ".join, axis=1))


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a command asks of a profile."""

    by: str = "function"
    """Dimensions, with commas between them."""
    where: tuple[str, ...] = ()
    """Restrictions such as ``job=search,mail``."""
    event: str | None = None
    """Event; cycles without it, or the profile's first event if it has no cycles."""
    since_s: float | None = None
    """Visits from this time on; of imported files perhaps a point in time."""
    until_s: float | None = None
    """Visits before this time."""
    top: int | None = 20
    """Rows that are told; none: all."""

    def query(self, events: Sequence[str], origin_s: float | None = None) -> Query:
        """Return the query, given the events that there are, and from when times count, in seconds since 1970.

        Raises
        ------
        QueryError, FaultsError
            With what is wrong with the text.

        Examples
        --------
        >>> QueryOptions(by="function,job", since_s=7.0).query(["cycles"])
        Query(event='cycles', by=('function', 'application'), where=(), since_s=7.0, until_s=None)
        """
        from analysis.profiling.database import MOST_ROWS

        faults: list[Fault] = []
        by = tuple(name.strip() for name in self.by.split(",") if name.strip())
        if not by:
            faults.append(Fault("--by", 0, 0, "", "should name a dimension", '""'))
        if self.event is not None and events and self.event not in events:
            faults.append(Fault("--event", 0, 0, "", unknown("event", self.event, events)))
        if self.top is not None and not 1 <= self.top <= MOST_ROWS:
            faults.append(Fault("--top", 0, 0, "", f"top should be from 1 to {MOST_ROWS:,}", f"{self.top:,}"))
        where = _read("--where", lambda: parse_where(self.where), faults) or ()
        _read("--by", lambda: Query(by=by), faults)
        since_s = _read("--since", lambda: time_since("--since", self.since_s, origin_s), faults)
        until_s = _read("--until", lambda: time_since("--until", self.until_s, origin_s), faults)
        if since_s is not None and until_s is not None and until_s <= since_s:
            should = f"until should be after since, {time_text(since_s, origin_s)}"
            faults.append(Fault("--until", 0, 0, "", should, time_text(until_s, origin_s)))
        if faults:
            raise FaultsError(faults)
        return Query(event_or_default(events, self.event), by, where, since_s, until_s)


@contextmanager
def opened(paths: Sequence[Path], notes: list[str] | None = None) -> Generator["Database"]:
    """Open profile directories, or files of other tools, as one database.

    Parameters
    ----------
    paths : run directories of a profile, folders with its tables, files in a format that `wsc profile import` reads,
        folders of such files, or patterns of their names; files are read into a temporary folder
    notes : gets what a reader should know about how the files were understood
    """
    from analysis.profiling.database import Database

    known = [(path, _files_of(path)) for path in paths]
    if missing := [path for path, files in known if not files and not path.exists()]:
        raise FaultsError([Fault(str(path), 0, 0, "", "is not there") for path in missing])
    folders = [path for path, files in known if not files]
    files = [file for _, of_path in known for file in of_path]
    with tempfile.TemporaryDirectory(prefix="wsc-profile-") as folder:
        if files:
            from analysis.profiling.formats.reading import write_profile

            told = write_profile(files, Path(folder))
            folders.append(Path(folder))
            if notes is not None:
                notes += told
        with Database(folders) as database, known_values():
            yield database


@contextmanager
def known_values(option: str = "--where") -> Generator[None]:
    """Say which option restricts by values that a profile does not have.

    Examples
    --------
    >>> with known_values("--where-a"):
    ...     raise UnknownValueError('unknown machine "web"; did you mean web1?')
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: --where-a: unknown machine "web"; did you mean web1?
    """
    try:
        yield
    except UnknownValueError as error:
        raise FaultsError([Fault(option, 0, 0, "", line) for line in str(error).splitlines()]) from None


def _files_of(path: Path) -> list[Path]:
    """Return the files that a path stands for: itself, those of a folder without tables, or those of a pattern's names.

    A folder with any table of a profile, or without files, stands for none.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        return [] if any(file.suffix == ".parquet" for file in files) else files
    if path.exists():
        return [path]
    return matching(path)


def matching(path: Path) -> list[Path]:
    """Return the files whose names fit a pattern, sorted; none of a path that is no pattern.

    Parameters
    ----------
    path : such as ``m*.pb.gz``
    """
    return sorted(file for file in path.parent.glob(path.name) if file.is_file()) if _PATTERN & set(path.name) else []


def query(paths: Sequence[Path], options: QueryOptions) -> ProfileRows:
    """Answer a question to a profile.

    Parameters
    ----------
    paths : as in `opened`
    options : the question

    Raises
    ------
    FaultsError, ProfileError, QueryError
        With what is wrong with the paths or the question.

    Examples
    --------
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\nmain 4\\n")
    ...     query([Path(file.name)], QueryOptions()).frame().iloc[0].to_dict()
    {'function': 'read', 'samples': 12, 'value': 12, 'share': 0.75}
    """
    of_files: list[str] = []
    with opened(paths, of_files) as database:
        question, again = of_fleet(database, options.query(database.events(), database.origin_s))
        visits = visits_of(database, question)
        total = Total(*database.total(question))
        if not total.samples:
            raise FaultsError([_empty(database, question)])
        unsymbolised = _unsymbolised(database, question)
        unit, table = database.units().get(question.event, ""), database.query(question, options.top)
        rows, bounds = database.row_count(question), intervals(database, question, table)
        events, notes = database.events(), [*of_files, *_left_out(again), *_lacking(paths, database, question.event)]
        if bounds is None:
            notes.append(without(database, question))
    if bounds is not None:
        table = table.merge(bounds.drop(columns=ERRORS), on=list(question.by), how="left")
    return ProfileRows(
        question,
        events,
        unit,
        total,
        table,
        all_rows=rows,
        unsymbolised_share=unsymbolised,
        visits=len(visits),
        confidence=None if bounds is None else LEVEL,
        notes=notes,
    )


def _unsymbolised(database: "Database", question: Query) -> float:
    """Return what share of a question's events is at places that no symbol covers; of none nothing is summed."""
    if database.values("symbolised") == ["true"]:
        return 0.0
    known = database.query(replace(question, by=("symbolised",)))
    return float(known.loc[~known["symbolised"].astype(bool), "share"].sum())


def diff(
    a: Sequence[Path], b: Sequence[Path], options: QueryOptions, where_a: Sequence[str], where_b: Sequence[str]
) -> ProfileDifference:
    """Compare two profiles, or one with itself under two restrictions.

    Parameters
    ----------
    a, b : as in `opened`
    options : the question to both
    where_a, where_b : further restrictions of one side, such as ``revision=r1013``

    Raises
    ------
    FaultsError, ProfileError, QueryError
        With what is wrong with the paths or the question.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "a.folded"), Path(folder, "b.folded")
    ...     _ = first.write_text("main;read 3\\nmain 1\\n"), second.write_text("main;read 1\\nmain 1\\n")
    ...     diff([first], [second], QueryOptions(), (), ()).frame()["change"].tolist()
    [0.25, -0.25]
    """
    of_files: list[str] = []
    with opened(a, of_files) as first, nullcontext(first) if list(b) == list(a) else opened(b, of_files) as second:
        shared = [event for event in first.events() if event in second.events()]
        if not shared:
            raise FaultsError([_apart(first, second)])
        question, question_b = (options.query(shared, database.origin_s) for database in (first, second))
        of_a, again_a = of_fleet(first, replace(question, where=(*question.where, *parse_where(where_a))))
        of_b, again_b = of_fleet(second, replace(question_b, where=(*question.where, *parse_where(where_b))))
        with known_values("--where or --where-a"):
            side_a = QuerySide(of_a, Total(*first.total(of_a, second)))
        with known_values("--where or --where-b"):
            side_b = QuerySide(of_b, Total(*second.total(of_b, first)))
        sides = side_a, side_b
        empty = [
            _empty(database, side.query, name)
            for database, side, name in zip((first, second), sides, ("A: ", "B: "), strict=True)
            if not side.total.samples
        ]
        if empty:
            raise FaultsError(empty)
        unit = first.units().get(question.event, "")
        changed = difference(first, of_a, second, of_b, options.top)
    notes = [*dict.fromkeys(of_files), *_left_out(sorted({*again_a, *again_b}))]
    return ProfileDifference(
        question,
        shared,
        unit,
        *sides,
        changed.table,
        changed.rows,
        significant_rows=None if changed.without else changed.significant,
        top=options.top,
        confidence=None if changed.without else LEVEL,
        notes=[*notes, changed.without or _beyond(changed.significant, changed.rows)],
    )


def _table(table: "pd.DataFrame", query: Query, columns: Sequence[str], unit: str) -> Table:
    """Return rows under the names of their dimensions, and columns of numbers, the least important last."""
    unit = unit or "value"
    titles = {"value": unit, "value_a": f"{unit} A", "value_b": f"{unit} B"} | {name: name for name in query.by}
    chosen = [name for name in (*query.by, *columns) if name in table]
    return of_rows(table[chosen], titles, LEVEL, keys=len(query.by))


def _others(events: Sequence[str], event: str) -> str:
    others = [name for name in events if name != event]
    return f"; other events: {', '.join(others)}" if others else ""


def _samples(count: int, event: str) -> str:
    return plural(count, "sample") + ("" if event == "samples" else f" of {event}")


def _read(option: str, value: Callable[[], _T], faults: list[Fault]) -> _T | None:
    """Return what an option says; or none, with its faults added."""
    try:
        return value()
    except FaultsError as error:
        faults += error.faults
    except QueryError as error:
        faults += [Fault(option, 0, 0, "", _all_dimensions(line)) for line in str(error).splitlines()]
    return None


def _all_dimensions(line: str) -> str:
    """Return what is wrong with a dimension, with all that there are."""
    if not line.startswith("unknown dimension"):
        return line
    return f"{line.split('; there are', maxsplit=1)[0]}; there are {', '.join(DIMENSIONS)}, {_LABELS}"


def _empty(database: "Database", question: Query, side: str = "") -> Fault:
    """Return why a question has no samples, and what there is."""
    starts, samples = database.table("visits")["start_s"], f"{side}leaves no samples of {question.event}"
    events = database.events()
    if question.event not in events:
        problem = f"no samples of it; there are {', '.join(events)}" if events else NO_SAMPLES
        return Fault("--event", 0, 0, "", f"{side}{problem}")
    for option, time_s, outside in (
        ("--since", question.since_s, question.since_s is not None and not (starts >= question.since_s).any()),
        ("--until", question.until_s, question.until_s is not None and not (starts < question.until_s).any()),
    ):
        if outside:
            ends, origin_s = (float(starts.min()), float(starts.max())), database.origin_s
            first, last = (f"{end / DAY_S:.2f}d" if origin_s is None else time_text(end, origin_s) for end in ends)
            problem = f"{samples}: visits are from {first} to {last}"
            return Fault(option, 0, 0, "", problem, time_text(time_s or 0.0, origin_s))
    told = "; ".join(f"{name}={','.join(values)}" for name, values in question.where)
    return Fault("--where" if told else "--since and --until", 0, 0, "", samples, told)


def _apart(first: "Database", second: "Database") -> Fault:
    of_a, of_b = (", ".join(database.events()) or "none, as all counts are zero" for database in (first, second))
    return Fault("--event", 0, 0, "", f"A and B share no event: A has {of_a}; B has {of_b}")


def _beyond(count: int, rows: int) -> str:
    """Return in a line how many changes are significant, and by what rule."""
    told = f"{count or 'none'} of {plural(rows, 'row')} {'are' if count > 1 else 'is'}"
    return f"{told} beyond chance (chance of any false one: {FALSE_CHANGES:.0%})"


def _left_out(collections: Sequence[str]) -> list[str]:
    if not collections:
        return []
    names = ", ".join(collections)
    return [f"without {names}, a closer look at machines of the fleet; --where collection={collections[0]} selects it"]


def _lacking(paths: Sequence[Path], database: "Database", event: str) -> list[str]:
    """Return a note on the collections that lack the event, if several profiles are asked together."""
    if len(paths) < 2:
        return []
    sampled = set(database.query(Query(event, ("collection",)))["collection"])
    lacking = [name for name in database.values("collection") if name not in sampled]
    return [f"no samples of {event}: {', '.join(lacking)}"] if lacking else []


def _told(where: Where) -> list[Payload]:
    return [{"dimension": name, "values": list(values)} for name, values in where]
