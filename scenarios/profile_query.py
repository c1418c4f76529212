"""Questions to profiles: function tables by any dimensions, and differences of two profiles."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.profiling.query import Query, QueryError, Where, parse_where
from scenarios.faults import Fault, FaultsError
from scenarios.options import duration

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from analysis.profiling.database import Database

LEVEL = 0.95
"""Confidence of the intervals."""
_CLUSTERED_ROWS = 300_000
_TEXT = 50


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
        by = tuple(name.strip() for name in self.by.split(",") if name.strip())
        if not by:
            raise FaultsError([Fault("--by", 0, 0, "", "should name a dimension", '""')])
        first = "cycles" if "cycles" in events else next(iter(events), "cycles")
        return Query(
            self.event or first,
            by,
            parse_where(self.where),
            _time("--since", self.since),
            _time("--until", self.until),
        )


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator["Database"]:
    """Open profile directories, or files of other tools, as one database.

    Parameters
    ----------
    paths : run directories of a profile, folders with its tables, or files in a format that `wsc profile import` reads;
        files are read into a temporary folder

    Raises
    ------
    FaultsError
        If a path is not there.
    ProfileError, FormatError
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
            folders.append(_imported(files, Path(made)))
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
        event, unit, by, total (samples, value), rows (the dimensions, samples, value, share and, where the samples are
        of several machines, low and high of the share), unsymbolised_share, visits (with such samples), confidence.

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
    with opened(paths) as database:
        question = asked.query(database.events())
        table = database.query(question, asked.top)
        samples, value = database.total(question)
        known = database.query(replace(question, by=("symbolised",)))
        visits = len(database.query(replace(question, by=("visit",))))
        table, confidence = _with_intervals(database, question, table)
        unit = database.units().get(question.event, "")
    return {
        "kind": "profile query",
        "event": question.event,
        "unit": unit,
        "by": list(question.by),
        "where": _told(question.where),
        "total": {"samples": samples, "value": value},
        "rows": table.to_dict("records"),
        "unsymbolised_share": float(known.loc[~known["symbolised"].astype(bool), "share"].sum()),
        "visits": visits,
        "confidence": confidence,
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
        share_b, change), changed_rows (how many rows there are before the cut).

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
    with opened(a) as first, opened(b) as second:
        shared = [event for event in first.events() if event in second.events()]
        question = asked.query(shared or first.events())
        sides = [replace(question, where=(*question.where, *parse_where(only))) for only in (where_a, where_b)]
        table = first.diff(sides[0], sides[1], second)
        totals = [first.total(sides[0], second), second.total(sides[1], first)]
        unit = first.units().get(question.event, "")
    told = [
        {"total": {"samples": samples, "value": value}, "where": _told(side.where)}
        for (samples, value), side in zip(totals, sides, strict=True)
    ]
    return {
        "kind": "profile diff",
        "event": question.event,
        "unit": unit,
        "by": list(question.by),
        "a": told[0],
        "b": told[1],
        "changed_rows": len(table),
        "rows": table.head(asked.top or len(table)).to_dict("records"),
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
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    for line in _heading(payload):
        console.print(line, markup=False, soft_wrap=True)
    table = Table(box=SIMPLE_HEAD)
    columns = _columns(payload)
    for name in payload["by"]:
        table.add_column(name, overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for row in payload["rows"]:
        names = (_cell(row[name]) for name in payload["by"])
        table.add_row(*names, *(text(row) for text in columns.values()))
    console.print(table)


def _columns(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of numbers: heading to a function from a row to its text."""
    if payload["kind"] == "profile diff":
        return {
            "share a": lambda row: f"{row['share_a']:.2%}",
            "share b": lambda row: f"{row['share_b']:.2%}",
            "change": lambda row: f"{100 * row['change']:+.2f} pp",
            "value a": lambda row: _amount(row["value_a"]),
            "value b": lambda row: _amount(row["value_b"]),
        }
    columns = {
        "share": lambda row: f"{row['share']:.2%}",
        "samples": lambda row: f"{row['samples']:,}",
        payload["unit"] or "value": lambda row: _amount(row["value"]),
    }
    if payload["confidence"] is not None:
        columns[f"{payload['confidence']:.0%} interval"] = lambda row: f"{row['low']:.2%} to {row['high']:.2%}"
    return columns


def _heading(payload: Mapping[str, Any]) -> Iterator[str]:
    if payload["kind"] == "profile diff":
        for side in ("a", "b"):
            total = payload[side]["total"]
            value = f"{_amount(total['value'])} {payload['unit']}"
            yield f"{side}: {total['samples']:,} samples of {payload['event']}, {value}"
        yield f"{payload['changed_rows']:,} rows, {len(payload['rows']):,} shown"
        return
    total = payload["total"]
    yield (
        f"{total['samples']:,} samples of {payload['event']} on {payload['visits']:,} visits: "
        f"{_amount(total['value'])} {payload['unit']}; {payload['unsymbolised_share']:.2%} without a symbol"
    )


def _amount(value: int) -> str:
    return f"{value:,}" if value < 10**6 else f"{value:.4g}"


def _cell(value: object) -> str:
    """Return a value of a dimension as text on one line that no console takes for markup."""
    from rich.markup import escape

    text = "".join(each if each.isprintable() else "�" for each in str(value))
    return escape(text if len(text) <= _TEXT else text[: _TEXT - 1] + "…")


def _with_intervals(
    database: "Database", question: Query, table: "pd.DataFrame"
) -> tuple["pd.DataFrame", float | None]:
    """Add low and high of each share if the samples are of several machines and the table is not too long for it."""
    from analysis.profiling.effective import share_intervals

    if "machine" in question.by or len(database.query(replace(question, by=("machine",)))) < 2:
        return table, None
    keys = list(question.by)
    try:
        clustered = database.clustered(question, most=_CLUSTERED_ROWS)
    except QueryError:
        return table, None
    found = share_intervals(clustered, confidence=LEVEL)
    return table.merge(found[[*keys, "low", "high"]], on=keys, how="left"), LEVEL


def _imported(files: Sequence[Path], folder: Path) -> Path:
    """Write the files of other tools as the tables of a profile, and return where."""
    from analysis.profiling.formats.reading import read_profile
    from sim.recorder import write_table

    for name, table in read_profile(*files).items():
        write_table(folder, name, {str(column): table[column] for column in table})
    return folder


def _time(option: str, text: str | None) -> float | None:
    return None if text is None else 0.0 if text.strip() == "0" else duration(option, text)


def _told(where: Where) -> list[dict[str, Any]]:
    return [{"dimension": name, "values": list(values)} for name, values in where]
