"""Questions to profiles: function tables by any dimensions, and differences of two profiles."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from analysis.profiling.query import DIMENSIONS, Query, QueryError, Where, parse_where, unknown
from models.arrays import DAY_S
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import duration
from scenarios.profiling.intervals import ERRORS, FALSE_CHANGES, LEVEL, difference, intervals, of_fleet, without
from scenarios.views.numbers import amount, plural
from scenarios.views.section import Section
from scenarios.views.tables import of_rows
from scenarios.views.text import show as show_text

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from analysis.profiling.database import Database

_T = TypeVar("_T")
_ORDER = {
    "profile query": ("share", "low", "high", "value", "samples"),
    "profile diff": ("share_a", "share_b", "change", "low", "high", "value_a", "value_b"),
}
"""Columns of numbers as they are printed, the least important last."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command asks of a profile, as text of the command line."""

    by: str = "function"
    """Dimensions, with commas between them."""
    where: tuple[str, ...] = ()
    """Restrictions such as ``job=search,mail``."""
    event: str | None = None
    """Event; cycles without it, or the profile's first event if it has no cycles."""
    since: str | None = None
    """Visits from this time on, such as ``2d``."""
    until: str | None = None
    """Visits before this time."""
    top: int | None = 20
    """Rows that are told; none: all."""

    def query(self, events: Sequence[str]) -> Query:
        """Return the query, given the events that there are.

        Raises
        ------
        QueryError, FaultsError
            With what is wrong with the text.

        Examples
        --------
        >>> Asked(by="function,job", since="2d").query(["cycles"]).since_s
        172800.0
        """
        faults: list[Fault] = []
        by = tuple(name.strip() for name in self.by.split(",") if name.strip())
        if not by:
            faults.append(Fault("--by", 0, 0, "", "should name a dimension", '""'))
        first = "cycles" if "cycles" in events else next(iter(events), "cycles")
        if self.event is not None and events and self.event not in events:
            faults.append(Fault("--event", 0, 0, "", unknown("event", self.event, events)))
        if self.top is not None and self.top < 1:
            faults.append(Fault("--top", 0, 0, "", "top should be from 1", str(self.top)))
        where = _read("--where", lambda: parse_where(self.where), faults) or ()
        since_s = _read("--since", lambda: _time("--since", self.since), faults)
        until_s = _read("--until", lambda: _time("--until", self.until), faults)
        _read("--by", lambda: Query(by=by), faults)
        if since_s is not None and until_s is not None and until_s <= since_s:
            faults.append(Fault("--until", 0, 0, "", f"until should be after since, {self.since}", str(self.until)))
        if faults:
            raise FaultsError(faults)
        return Query(self.event or first, by, where, since_s, until_s)


@contextmanager
def opened(paths: Sequence[Path], notes: list[str] | None = None) -> Iterator["Database"]:
    """Open profile directories, or files of other tools, as one database.

    Parameters
    ----------
    paths : run directories of a profile, folders with its tables, or files in a format that `wsc profile import` reads;
        files are read into a temporary folder
    notes : gets what a reader should know about how the files were understood

    Raises
    ------
    FaultsError
        If a path is not there.
    ProfileError, FileError
        If it is no profile.

    Examples
    --------
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\nmain 3\\n")
    ...     with opened([Path(file.name)]) as database:
    ...         database.query(Query(*database.events()))["function"].tolist()
    ['read', 'main']
    """
    from analysis.profiling.database import Database

    missing = [path for path in paths if not path.exists()]
    if missing:
        raise FaultsError([Fault(str(path), 0, 0, "", "is not there") for path in missing])
    folders, files = [path for path in paths if path.is_dir()], [path for path in paths if not path.is_dir()]
    with tempfile.TemporaryDirectory(prefix="wsc-profile-") as made:
        if files:
            told = _imported(files, Path(made))
            folders.append(Path(made))
            if notes is not None:
                notes += told
        with Database(folders) as database:
            yield database


def query(paths: Sequence[Path], asked: Asked) -> dict[str, Any]:
    """Answer a question to a profile.

    Parameters
    ----------
    paths : as in `opened`
    asked : the question

    Returns
    -------
    dict
        event, events (of the profile), unit, by, total (samples, value), all_rows (how many rows there are), rows (the
        dimensions, samples, value, share and, where visits were drawn at random, low and high of the share),
        unsymbolised_share, visits (with such samples), confidence, notes.

    Raises
    ------
    FaultsError, ProfileError, QueryError
        With what is wrong with the paths or the question.

    Examples
    --------
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\nmain 4\\n")
    ...     query([Path(file.name)], Asked())["rows"][0]
    {'function': 'read', 'samples': 12, 'value': 12, 'share': 0.75}
    """
    of_files: list[str] = []
    with opened(paths, of_files) as database:
        question, again = of_fleet(database, asked.query(database.events()))
        table = database.query(question, asked.top)
        samples, value = database.total(question)
        if not samples:
            raise FaultsError([_empty(database, question, asked)])
        known = database.query(replace(question, by=("symbolised",)))
        visits, found = len(database.query(replace(question, by=("visit",)))), intervals(database, question)
        unit, rows = database.units().get(question.event, ""), _count(database, question)
        events, notes = database.events(), [*of_files, *_left_out(again), *_lacking(paths, database, question.event)]
        if found is None:
            notes.append(without(database, question))
    if found is not None:
        table = table.merge(found.drop(columns=ERRORS), on=list(question.by), how="left")
    return {
        "kind": "profile query",
        "event": question.event,
        "events": events,
        "unit": unit,
        "by": list(question.by),
        "where": _told(question.where),
        "total": {"samples": samples, "value": value},
        "all_rows": rows,
        "rows": table.to_dict("records"),
        "unsymbolised_share": float(known.loc[~known["symbolised"].astype(bool), "share"].sum()),
        "visits": visits,
        "confidence": None if found is None else LEVEL,
        "notes": notes,
    }


def diff(
    a: Sequence[Path], b: Sequence[Path], asked: Asked, where_a: Sequence[str], where_b: Sequence[str]
) -> dict[str, Any]:
    """Compare two profiles, or one with itself under two restrictions.

    Parameters
    ----------
    a, b : as in `opened`
    asked : the question to both
    where_a, where_b : further restrictions of one side, such as ``revision=r1013``

    Returns
    -------
    dict
        event, unit, by, a and b (total of samples and value, where), rows (the dimensions, value_a, value_b, share_a,
        share_b, change and, where both sides were drawn at random and no visit is on both, its low and high and whether
        it is significant among all rows), changed_rows (how many rows there are before the cut), significant_rows (of
        these; none without intervals), confidence, notes.

    Raises
    ------
    FaultsError, ProfileError, QueryError
        With what is wrong with the paths or the question.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "a.folded"), Path(folder, "b.folded")
    ...     _ = first.write_text("main;read 3\\nmain 1\\n"), second.write_text("main;read 1\\nmain 1\\n")
    ...     [row["change"] for row in diff([first], [second], Asked(), (), ())["rows"]]
    [0.25, -0.25]
    """
    of_files: list[str] = []
    with opened(a, of_files) as first, opened(b, of_files) as second:
        shared = [event for event in first.events() if event in second.events()]
        if not shared:
            raise FaultsError([_apart(first, second)])
        question = asked.query(shared)
        found = [
            of_fleet(each, replace(question, where=(*question.where, *parse_where(only))))
            for each, only in ((first, where_a), (second, where_b))
        ]
        sides = [side for side, _ in found]
        totals = [first.total(sides[0], second), second.total(sides[1], first)]
        empty = [
            _empty(each, side, asked, name)
            for each, side, (samples, _), name in zip((first, second), sides, totals, ("A: ", "B: "), strict=True)
            if not samples
        ]
        if empty:
            raise FaultsError(empty)
        unit = first.units().get(question.event, "")
        table, lacking = difference(first, sides[0], second, sides[1])
    told = [
        {"total": {"samples": samples, "value": value}, "where": _told(side.where)}
        for (samples, value), side in zip(totals, sides, strict=True)
    ]
    notes = [*dict.fromkeys(of_files), *_left_out(sorted({name for _, again in found for name in again}))]
    return {
        "kind": "profile diff",
        "event": question.event,
        "events": shared,
        "unit": unit,
        "by": list(question.by),
        "a": told[0],
        "b": told[1],
        "changed_rows": len(table),
        "rows": table.head(asked.top or len(table)).to_dict("records"),
        "confidence": None if lacking else LEVEL,
        "significant_rows": None if lacking else int(table["significant"].sum()),
        "notes": [*notes, lacking or _beyond(table)],
    }


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print a table of a query or a difference.

    Parameters
    ----------
    payload : as from `query` or `diff`
    console : to print on

    Examples
    --------
    >>> from rich.console import Console
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("main;read 12\\nmain 4\\n")
    ...     show(query([Path(file.name)], Asked(top=1)), Console(width=80))  # doctest: +ELLIPSIS
    16 samples ...
    """
    for line in _heading(payload):
        console.print(line, markup=False, soft_wrap=True)
    order = _ORDER[payload["kind"]]
    rows = [{name: row[name] for name in (*payload["by"], *order) if name in row} for row in payload["rows"]]
    unit = payload["unit"] or "value"
    titles = {"value": unit, "value_a": f"{unit} a", "value_b": f"{unit} b"}
    titles |= {name: name for name in payload["by"]}
    show_text(Section("", (of_rows(rows, titles, payload["confidence"] or LEVEL),)), console)
    for note in payload["notes"]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)


def _heading(payload: Mapping[str, Any]) -> Iterator[str]:
    others = [event for event in payload["events"] if event != payload["event"]]
    more = f"; other events: {', '.join(others)}" if others else ""
    if payload["kind"] == "profile diff":
        for side in ("a", "b"):
            total = payload[side]["total"]
            value = f"{amount(total['value'])} {payload['unit']}".strip()
            yield f"{side}: {_samples(total['samples'], payload['event'])}, {value}"
        yield f"{len(payload['rows']):,} of {plural(payload['changed_rows'], 'row')}{more}"
        return
    total = payload["total"]
    yield (
        f"{_samples(total['samples'], payload['event'])} on {plural(payload['visits'], 'visit')}: "
        f"{amount(total['value'])} {payload['unit']}; {payload['unsymbolised_share']:.2%} without a symbol"
    )
    rows = "more rows" if payload["all_rows"] is None else plural(payload["all_rows"], "row")
    yield f"{len(payload['rows']):,} of {rows}{more}"


def _samples(count: int, event: str) -> str:
    return plural(count, "sample") + ("" if event == "samples" else f" of {event}")


def _read(option: str, made: Callable[[], _T], faults: list[Fault]) -> _T | None:
    """Return what an option says; or none, with its faults added."""
    try:
        return made()
    except FaultsError as error:
        faults += error.faults
    except QueryError as error:
        faults += [Fault(option, 0, 0, "", _all_dimensions(line)) for line in str(error).splitlines()]
    return None


def _all_dimensions(line: str) -> str:
    """Return what is wrong with a dimension, with all that there are."""
    if not line.startswith("unknown dimension"):
        return line
    return f"{line.split('; there are', maxsplit=1)[0]}; there are {', '.join(DIMENSIONS)}"


def _empty(database: "Database", question: Query, asked: Asked, side: str = "") -> Fault:
    """Return why a question has no samples, and what there is."""
    starts, samples = database.table("visits")["start_s"], f"{side}leaves no samples of {question.event}"
    if question.event not in database.events():
        return Fault("--event", 0, 0, "", f"{side}no samples of it; there are {', '.join(database.events()) or 'none'}")
    for option, text, outside in (
        ("--since", asked.since, question.since_s is not None and not (starts >= question.since_s).any()),
        ("--until", asked.until, question.until_s is not None and not (starts < question.until_s).any()),
    ):
        if outside:
            span = f"{starts.min() / DAY_S:.2f}d to {starts.max() / DAY_S:.2f}d"
            return Fault(option, 0, 0, "", f"{samples}: visits are from {span}", str(text))
    told = "; ".join(f"{name}={','.join(values)}" for name, values in question.where)
    return Fault("--where" if told else "--since and --until", 0, 0, "", samples, told)


def _apart(first: "Database", second: "Database") -> Fault:
    there = [", ".join(each.events()) or "none" for each in (first, second)]
    return Fault("--event", 0, 0, "", f"A and B share no event: A has {there[0]}; B has {there[1]}")


def _beyond(table: "pd.DataFrame") -> str:
    """Return in a line how many changes are significant, and by what rule."""
    count, rows = int(table["significant"].sum()), plural(len(table), "row")
    verb = "are" if count > 1 else "is"
    return f"{count or 'none'} of {rows} {verb} beyond chance (chance of any false one: {FALSE_CHANGES:.0%})"


def _count(database: "Database", question: Query) -> int | None:
    """Return how many rows the whole answer has; none: too many to count."""
    try:
        return len(database.query(question))
    except QueryError:
        return None


def _left_out(collections: Sequence[str]) -> list[str]:
    if not collections:
        return []
    names = ", ".join(collections)
    return [f"without {names}, which looked at machines of the fleet again; --where collection={collections[0]} asks"]


def _lacking(paths: Sequence[Path], database: "Database", event: str) -> list[str]:
    """Return a note on the collections that lack the event, if several profiles are asked together."""
    if len(paths) < 2:
        return []
    there = set(database.query(Query(event, ("collection",)))["collection"])
    lacking = [name for name in database.values("collection") if name not in there]
    return [f"no samples of {event}: {', '.join(lacking)}"] if lacking else []


def _imported(files: Sequence[Path], folder: Path) -> list[str]:
    """Write the files of other tools as the tables of a profile, and return the notes on them."""
    from analysis.profiling.formats.reading import read_all
    from analysis.profiling.formats.tables import to_tables, write_tables

    profiles = read_all(files)
    write_tables(to_tables(profiles), folder)
    return [f"{profile.name}: {note}" for profile in profiles for note in profile.notes]


def _time(option: str, text: str | None) -> float | None:
    return None if text is None else 0.0 if text.strip() == "0" else duration(option, text)


def _told(where: Where) -> list[dict[str, Any]]:
    return [{"dimension": name, "values": list(values)} for name, values in where]
