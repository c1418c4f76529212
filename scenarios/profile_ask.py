"""`wsc profile ask`: the named questions, and `wsc profile regress`: what became dearer and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from scenarios.faults import Fault, FaultsError
from scenarios.profile_tables import print_rows

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from analysis.profiling.database import Database

_CAUSES = ("revision", "compiler", "kernel", "platform", "datacentre")
_TAGS = ("function", "image", "application", *_CAUSES)
_NONE = ("", "[none]")
"""What a tag says that is not known."""


def listing() -> list[dict[str, Any]]:
    """Return the questions: name, title, why, parameters with their defaults.

    Examples
    --------
    >>> [question["name"] for question in listing()][:2]
    ['shared', 'savings']
    """
    from analysis.profiling.questions import QUESTIONS

    return [
        {"name": one.name, "title": one.title, "why": one.why, "parameters": dict(one.parameters)}
        for one in QUESTIONS.values()
    ]


def ask(folder: Path, name: str, given: Iterable[str]) -> dict[str, Any]:
    """Return the answer of a named question.

    Parameters
    ----------
    folder : a profile directory
    name : a name of `listing`
    given : parameters such as ``function=inflate_fast``

    Returns
    -------
    dict
        kind, name, title, why, parameters, rows.

    Raises
    ------
    FaultsError
        If there is no such question, or a parameter has no value.
    QueryError, ProfileError
        If a parameter is wrong, or the folder is no profile.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.questions import QUESTIONS
    from scenarios.wording import closest

    if name not in QUESTIONS:
        near = closest(name, QUESTIONS, "wsc profile ask --list")
        raise FaultsError([Fault("QUESTION", 0, 0, "", f"there is none of this name; {near}", name)])
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise FaultsError([Fault("--set", 0, 0, "", "should be PARAMETER=VALUE", text) for text in wrong])
    question = QUESTIONS[name]
    said = {key.strip(): value.strip() for key, value in (text.split("=", 1) for text in given)}
    with Database([folder]) as database:
        table = question.ask(database, **said)
    head = {"kind": "profile ask", "name": name, "title": question.title, "why": question.why}
    return {**head, "parameters": {**question.parameters, **said}, "rows": table.to_dict("records")}


def regress(
    before: Path, after: Path | None = None, at_s: float | None = None, event: str | None = None
) -> dict[str, Any]:
    """Return the functions that became dearer from one profile to the next, and what each change goes with.

    Parameters
    ----------
    before : profile directory
    after : the later one; none: the same, which then needs a time
    at_s : visits before that time are `before`, those from then on `after`
    event : what is compared; none: cycles, or the first event of a profile that has no cycles

    Returns
    -------
    dict
        kind, event, criteria, samples of both, alarms (the columns of `analysis.profiling.regression.alarms`).

    Raises
    ------
    FaultsError
        If one profile is given and no time.
    NotEnoughDataError
        If a side has samples of one machine alone.
    QueryError, ProfileError
        If a side has no samples of the event, or a folder is no profile.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.query import QueryError, unknown
    from analysis.profiling.regression import Criteria, alarms

    if at_s is None and after is None:
        raise FaultsError([Fault("--at", 0, 0, "", "one run needs a time that parts before from after")])
    sides = {"before": (before, None, at_s), "after": (after or before, at_s, None)}
    tables: dict[str, pd.DataFrame] = {}
    for side, (folder, since_s, until_s) in sides.items():
        with Database([folder]) as database:
            events = database.events()
            event = event or ("cycles" if "cycles" in events else next(iter(events), "cycles"))
            if event not in events:
                raise QueryError(f"{side}: {unknown('event', event, events)}")
            tables[side] = cells(database, since_s, until_s, event)
        if tables[side].empty:
            raise QueryError(f"{side}: no samples of {event}")
    criteria, blank = Criteria(), _blank(tables.values())
    before_rows, after_rows = (tables[side].drop(columns=blank) for side in ("before", "after"))
    found = alarms(before_rows, after_rows, criteria, cluster="machine")
    return {
        "kind": "profile regress",
        "event": event,
        "criteria": asdict(criteria),
        "samples": {side: int(table["samples"].sum()) for side, table in tables.items()},
        "alarms": found.to_dict("records"),
    }


def _blank(tables: "Iterable[pd.DataFrame]") -> list[str]:
    """Return the tags that no row of any table has: what nobody recorded explains nothing."""
    there = list(tables)
    known = [name for name in _CAUSES if all(name in table for table in there)]
    return [name for name in known if all(table[name].astype(str).isin(_NONE).all() for table in there)]


def cells(
    database: "Database", since_s: float | None = None, until_s: float | None = None, event: str = "cycles"
) -> "pd.DataFrame":
    """Return an event of the fleet by function and every tag that may be at fault, machine by machine.

    Machines and not visits are what differ: an instance's data stay with it from one visit to the next.

    Parameters
    ----------
    database : asked
    since_s, until_s : visits of this time; none: all
    event : generic event
    """
    from dataclasses import replace

    from analysis.profiling.asking import of_fleet

    query = of_fleet(database, event, _TAGS)
    return database.clustered(replace(query, since_s=since_s, until_s=until_s), "machine")


def show_listing(questions: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Print the questions that there are.

    Examples
    --------
    >>> from rich.console import Console
    >>> show_listing([], Console(quiet=True))
    """
    table = Table("question", "", "parameters", box=SIMPLE_HEAD, padding=0)
    for one in questions:
        told = ", ".join(f"{name}={value}" for name, value in one["parameters"].items())
        table.add_row(one["name"], one["title"], told)
    console.print(table)


def show_answer(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the answer of a question as a table.

    Examples
    --------
    >>> from rich.console import Console
    >>> show_answer({"title": "How many?", "why": "", "rows": []}, Console(width=40))
    How many?
    """
    console.print(payload["title"], markup=False)
    if payload["why"]:
        console.print(payload["why"], markup=False, style="dim", soft_wrap=True)
    print_rows(payload["rows"], console)
    if "tried" in payload:
        from scenarios.colocate_trial import show

        show(payload["tried"], console)


def show_regress(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the alarms, the clearest first.

    Examples
    --------
    >>> from rich.console import Console
    >>> said = {"samples": {"before": 10, "after": 12}, "alarms": []}
    >>> show_regress(said | {"criteria": {"false_alarms": 0.01, "min_factor": 1.25}}, Console(width=90))
    10 samples before, 12 after: no function became dearer by over 25% (false alarms: 1%)
    """
    samples, found, criteria = payload["samples"], payload["alarms"], payload["criteria"]
    count = f"{len(found)} function{'s' * (len(found) != 1)}" if found else "no function"
    console.print(
        f"{samples['before']:,} samples before, {samples['after']:,} after: {count} became dearer "
        f"by over {criteria['min_factor'] - 1:.0%} (false alarms: {criteria['false_alarms']:.0%})",
        soft_wrap=True,
    )
    rows = [
        {"function": row["function"], "goes_with": _blamed(row)}
        | {name: row[name] for name in ("factor", "low", "high")}
        | {"cost_share": row["cost"]}
        for row in found
    ]
    print_rows(rows, console, {"cost_share": "cost"})


def _blamed(row: Mapping[str, Any]) -> str:
    """Return what a change goes with, in words."""
    owner = f" of {row['application']}" if row["dimension"] == "revision" and row["application"] else ""
    return f"{row['dimension']} {row['value']}{owner}".strip()
