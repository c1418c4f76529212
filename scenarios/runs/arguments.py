"""Arguments of calls from Python, which may be of any type: what each should be, and what was given instead."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import pandas as pd

from analysis.tables.sources import Source, TableQuery
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.recipes import source_of
from scenarios.runs.rundir import Run
from scenarios.views.numbers import closest


def refuse(argument: str, should_be: str, given: object) -> NoReturn:
    """Raise that an argument should be something else.

    Examples
    --------
    >>> refuse("servers", "a whole number of at least 1", "four")
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: servers: should be a whole number of at least 1, got "four"
    """
    if given is None or isinstance(given, str | int | float):
        got = "None" if given is None else shown(given)
    else:
        kind = type(given).__name__
        got = f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
    raise FaultsError([Fault("", 0, 0, argument, f"should be {should_be}", got)])


def known_names(function: Callable[..., object], given: Iterable[str], more: Iterable[str]) -> None:
    """Refuse keyword arguments that are neither parameters of a function nor among some others.

    Examples
    --------
    >>> known_names(refuse, ["argumnet"], ["where"])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: argumnet: there is no such argument (did you mean argument?)
    """
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    own = [name for name, entry in inspect.signature(function).parameters.items() if entry.kind not in kinds]
    known = [*more, *own]
    problem = "there is no such argument"
    faults = [Fault("", 0, 0, name, f"{problem} ({closest(name, known)})") for name in given if name not in known]
    if faults:
        raise FaultsError(faults)


def table(argument: str, given: object) -> Source:
    """Return a frame, a path, a query or the folder of a run as a source of rows.

    Examples
    --------
    >>> table("jobs", "jobs.csv").name
    'jobs.csv'
    """
    if isinstance(given, pd.DataFrame):
        if not len(given.columns):
            raise FaultsError([Fault("", 0, 0, argument, "should have columns and rows", "an empty frame")])
        return given
    if isinstance(given, str) and given.strip():
        return source_of(given)
    if isinstance(given, Run):
        return given.path
    if isinstance(given, Path | TableQuery):
        return given
    refuse(argument, "a frame, a path, a SELECT or a run", given)


def optional_table(argument: str, given: object) -> Source | None:
    """Return a source of rows, or None for None."""
    return None if given is None else table(argument, given)


def tables(given: Sequence[object]) -> list[Source]:
    """Return one table or more, each an argument of its own."""
    if not given:
        raise FaultsError([Fault("", 0, 0, "tables", "should be at least one", "none")])
    several = len(given) > 1
    return [table(f"table {number}" if several else "table", each) for number, each in enumerate(given, 1)]


def observations(given: Sequence[object]) -> list[Source]:
    """Return tables of observations, or runs; not both, as they do not name jobs and machines alike."""
    sources = tables(given)
    runs = [source for source in sources if isinstance(source, Path) and source.is_dir()]
    if runs and len(runs) < len(sources):
        raise FaultsError([Fault("", 0, 0, "tables", "should be runs alone or tables alone", f"the run {runs[0]} too")])
    return sources
