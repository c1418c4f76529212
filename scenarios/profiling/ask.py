"""`wsc profile ask`: the named questions, and `wsc profile regress`: what became more expensive and why."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from scenarios.files.faults import Fault, FaultsError
from scenarios.views.section import Section
from scenarios.views.tables import of_rows
from scenarios.views.text import show as show_text

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from analysis.profiling.database import Database
    from analysis.profiling.regressions.comparison import Criteria

_CAUSES = ("revision", "compiler", "kernel", "platform", "datacentre")
_TAGS = ("function", "image", "application", *_CAUSES)
_TELLING = 10
"""Least number of functions of a machine, and a fifth of its samples, to tell it from any other by what was sampled."""
_NONE = ("", "[none]")
"""What a tag says that is not known."""
ADJUSTMENTS = ("holm", "benjamini-hochberg", "benjamini-yekutieli")
"""Corrections for the number of functions."""


def listing() -> list[dict[str, Any]]:
    """Return the questions: name, title, why, parameters with their defaults.

    Examples
    --------
    >>> [question["name"] for question in listing()][:2]
    ['shared', 'savings']
    """
    from analysis.profiling.questions.catalogue import QUESTIONS

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
    from analysis.profiling.questions.catalogue import QUESTIONS
    from scenarios.views.numbers import closest

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


def read_criteria(given: Mapping[str, str]) -> "tuple[Criteria | None, list[tuple[str, str, str]]]":
    """Return when a change is worth an alarm, as text says it; or none, and everything that is wrong.

    Parameters
    ----------
    given : min_factor (such as 1.25), min_cost and false_alarms (such as 0.01% and 1%), adjustment; defaults for others

    Returns
    -------
    tuple
        The criteria, none if there are faults; the faults: name, what it should be, and the text.

    Examples
    --------
    >>> read_criteria({"false_alarms": "5%", "adjustment": "benjamini-hochberg"})[0].false_alarms
    0.05
    >>> for fault in read_criteria({"min_factor": "0.5", "min_cost": "2"})[1]:
    ...     print(*fault)
    min_factor should be a factor of at least 1 and at most 64, such as 1.25 0.5
    min_cost should be a share from 0 to 1, such as 0.01% 2
    """
    from analysis.profiling.regressions.comparison import Criteria

    values: dict[str, Any] = {}
    faults = []
    for name, text in given.items():
        should, read = _CRITERIA[name]
        value = read(text.strip())
        if value is None:
            faults.append((name, should, text))
        values[name] = value
    return (None if faults else Criteria(**values)), faults


def _share(text: str) -> float:
    number = text.removesuffix("%").strip()
    try:
        return float(number) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return math.nan


def _factor_of(text: str) -> float | None:
    value = _share(text) if not text.endswith("%") else math.nan
    return value if 1 <= value <= 64 else None


def _cost_of(text: str) -> float | None:
    value = _share(text)
    return value if 0 <= value <= 1 else None


def _rate_of(text: str) -> float | None:
    value = _share(text)
    return value if 0 < value < 1 else None


def _adjustment_of(text: str) -> str | None:
    return text if text in ADJUSTMENTS else None


_CRITERIA: "Mapping[str, tuple[str, Callable[[str], Any]]]" = {
    "min_factor": ("should be a factor of at least 1 and at most 64, such as 1.25", _factor_of),
    "min_cost": ("should be a share from 0 to 1, such as 0.01%", _cost_of),
    "false_alarms": ("should be a share between 0 and 1, such as 1%", _rate_of),
    "adjustment": (f"should be {', '.join(ADJUSTMENTS[:-1])} or {ADJUSTMENTS[-1]}", _adjustment_of),
}


def regress(
    before: Path,
    after: Path | None = None,
    at_s: float | None = None,
    event: str | None = None,
    criteria: "Criteria | None" = None,
) -> dict[str, Any]:
    """Return the functions that became more expensive from one profile to the next, and what each change goes with.

    Parameters
    ----------
    before : profile directory
    after : the later one; none: the same, which then needs a time
    at_s : visits before that time are `before`, those from then on `after`
    event : what is compared; none: cycles, or the first event of a profile that has no cycles
    criteria : when a change is worth an alarm

    Returns
    -------
    dict
        kind, event, criteria, samples of both, alarms (the columns of `regressions.comparison.alarms`),
        probability, detectable (share, functions, factor: by how much functions of that share of all events must grow
        to be reported with the probability; no factor: they would not be, even if they grew by `most_factor`).

    Raises
    ------
    FaultsError
        If one profile is given and no time, or both sides hold the same visits.
    NotEnoughDataError
        If a side has samples of one machine alone.
    QueryError, ProfileError
        If a side has no samples of the event, or a folder is no profile.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.query import QueryError, unknown
    from analysis.profiling.regressions.comparison import Criteria

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
            raise QueryError(f"{side}: the event {event} has no samples")
    if at_s is None:
        _refuse_shared(tables["before"], tables["after"])
    wanted = criteria or Criteria()
    return {
        "kind": "profile regress",
        "event": event,
        "criteria": asdict(wanted),
        "samples": {side: int(table["samples"].sum()) for side, table in tables.items()},
        **compared(tables["before"], tables["after"], wanted),
    }


def _refuse_shared(before: "pd.DataFrame", after: "pd.DataFrame") -> None:
    """Refuse two sides with visits in common, which are not independent and would look as if nothing had changed."""
    shared, machines = len(_fingerprints(before) & _fingerprints(after)), before["machine"].nunique()
    rows = ["samples", *(name for name in _TAGS if name in before)]
    same = before[rows].sort_values(rows, ignore_index=True).equals(after[rows].sort_values(rows, ignore_index=True))
    if not (shared or same):
        return
    found = "the very samples of RUN" if same else f"the very samples of {shared:,} of RUN's {machines:,} machines"
    cure = "give a profile of another time, or RUN alone and --at"
    raise FaultsError(
        [Fault("LATER", 0, 0, "", f"holds {found}: visits on both sides say nothing of a change; {cure}")]
    )


def _fingerprints(table: "pd.DataFrame") -> set[int]:
    """Return a number for what was sampled on each machine, of those with so much that none are alike by chance."""
    from pandas.util import hash_pandas_object

    tags = [name for name in _TAGS if name in table]
    number = hash_pandas_object(table[[*tags, "samples"]].astype(dict.fromkeys(tags, str)), index=False)
    found = table[["samples"]].assign(number=number).groupby(table["machine"].astype(str))
    machines = found.agg(rows=("samples", "size"), samples=("samples", "sum"), number=("number", "sum"))
    telling = (machines["rows"] >= _TELLING) & (machines["samples"] >= 5 * _TELLING)
    return set(machines.loc[telling, "number"].tolist())


def compared(before: "pd.DataFrame", after: "pd.DataFrame", criteria: "Criteria") -> dict[str, Any]:
    """Return the alarms between two tables of `cells`, and what could have been found.

    Parameters
    ----------
    before, after : as from `cells`
    criteria : when a change is worth an alarm

    Returns
    -------
    dict
        alarms, probability, detectable, most_factor, as of `regress`.

    Raises
    ------
    NotEnoughDataError
        If a side has samples of one machine alone.
    """
    from analysis.profiling.regressions.comparison import PROBABILITY, Comparison
    from analysis.profiling.regressions.detection import FACTORS

    blank = _blank([before, after])
    comparison = Comparison.of(before.drop(columns=blank), after.drop(columns=blank), cluster="machine")
    sizes = comparison.detectable(criteria).to_dict("records")
    return {
        "alarms": comparison.alarms(criteria).to_dict("records"),
        "probability": PROBABILITY,
        "most_factor": float(FACTORS[-1]),
        "detectable": [row | {"factor": row["factor"] if math.isfinite(row["factor"]) else None} for row in sizes],
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

    from analysis.profiling.fleet_samples import of_fleet

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
    show_text(Section("", (of_rows(payload["rows"]),)), console)
    if "tried" in payload:
        from scenarios.profiling.colocate_trial import show

        show(payload["tried"], console)


def show_regress(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the alarms, the clearest first, and what could have been found.

    Examples
    --------
    >>> from rich.console import Console
    >>> said = {"event": "cycles", "samples": {"before": 10, "after": 12}, "alarms": [], "probability": 0.8}
    >>> said |= {"detectable": [{"share": 0.01, "functions": 7, "factor": 2.61}], "most_factor": 64.0}
    >>> criteria = {"false_alarms": 0.01, "min_factor": 1.25, "min_cost": 0.0001, "adjustment": "holm"}
    >>> show_regress(said | {"criteria": criteria}, Console(width=90))
    10 samples before, 12 after: no function is shown to be more expensive by over 25% (chance of any false alarm: 1%)
    on these machines a function of 1% of cycles must grow by 2.7 × to be reported (with 80% probability)
    """
    samples, found = payload["samples"], payload["alarms"]
    console.print(
        f"{samples['before']:,} samples before, {samples['after']:,} after: {verdict(payload)}", soft_wrap=True
    )
    console.print(could_find(payload), soft_wrap=True)
    rows = [
        {"function": row["function"], "goes_with": _blamed(row)}
        | {name: row[name] for name in ("factor", "low", "high")}
        | {"cost_share": row["cost"]}
        for row in found
    ]
    show_text(Section("", (of_rows(rows, {"cost_share": "cost"}),)), console)


def verdict(payload: Mapping[str, Any]) -> str:
    """Return in words how many functions became more expensive, by what criteria.

    Parameters
    ----------
    payload : as of `regress`; alarms and criteria suffice

    Examples
    --------
    >>> criteria = {"false_alarms": 0.05, "min_factor": 1.1, "adjustment": "benjamini-hochberg"}
    >>> verdict({"alarms": [{}, {}], "criteria": criteria})
    '2 functions became more expensive by over 10% (share of false alarms among all: 5%)'
    """
    found, criteria = payload["alarms"], payload["criteria"]
    count = f"{len(found)} function{'s' * (len(found) != 1)} became" if found else "no function is shown to be"
    rate = f"{100 * criteria['false_alarms']:.3g}%"
    kept = "chance of any false alarm" if criteria["adjustment"] == "holm" else "share of false alarms among all"
    return f"{count} more expensive by over {100 * (criteria['min_factor'] - 1):.3g}% ({kept}: {rate})"


def could_find(payload: Mapping[str, Any]) -> str:
    """Return in words by how much functions of some sizes must grow to be reported.

    Parameters
    ----------
    payload : as of `regress`; event, criteria, probability, detectable and most_factor suffice

    Examples
    --------
    >>> rows = [{"share": 0.001, "factor": None}, {"share": 0.01, "factor": 3.0}, {"share": 0.1, "factor": 1.79}]
    >>> could_find({"event": "cycles", "probability": 0.8, "detectable": rows, "most_factor": 64.0})
    ... # doctest: +NORMALIZE_WHITESPACE
    'on these machines a function of 1% of cycles must grow by 3 ×, one of 10% by 1.8 × to be reported
    (with 80% probability); one of 0.1% is not reported even if it grows by 64 ×'
    """
    rows, event = payload["detectable"], payload["event"]
    if not rows:
        return f"no function has {100 * payload['criteria']['min_cost']:.3g}% of {event}, so none could be reported"
    # Rounded up, so that growth by what is said suffices.
    factors = [(row["share"], math.ceil(row["factor"] * 10 - 1e-9) / 10) for row in rows if row["factor"]]
    finite = [(f"{100 * share:.2g}%", f"{factor:g} ×") for share, factor in factors]
    never = [f"{100 * row['share']:.2g}%" for row in rows if not row["factor"]]
    most, known = f"{payload['most_factor']:g} ×", f"(with {payload['probability']:.0%} probability)"
    if not finite:
        size = " or ".join(never)
        return f"on these machines a function of {size} of {event} is not reported even if it grows by {most} {known}"
    parts = [f"a function of {finite[0][0]} of {event} must grow by {finite[0][1]}"]
    parts += [f"one of {size} by {factor}" for size, factor in finite[1:]]
    rest = f"; one of {' or '.join(never)} is not reported even if it grows by {most}" if never else ""
    return f"on these machines {', '.join(parts)} to be reported {known}{rest}"


def _blamed(row: Mapping[str, Any]) -> str:
    """Return what a change goes with, in words."""
    owner = f" of {row['application']}" if row["dimension"] == "revision" and row["application"] else ""
    return f"{row['dimension']} {row['value']}{owner}".strip()
