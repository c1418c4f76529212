"""Arguments of calls from Python, which may be of any type: what each should be, and what was given instead."""

import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, NoReturn, Union, cast, get_args, get_origin

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le, Lt
from pydantic import ConfigDict, TypeAdapter, ValidationError

from analysis.tables.cells import Source, source_of
from analysis.tables.queries import TableQuery
from models.fleet.metrics import MetricName
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.runs.rundir import Run
from scenarios.views.numbers import closest

_LATER: Final[Mapping[object, object]] = {"MetricName | None": MetricName | None}
"""Annotations that stand as texts where loading a type would take long; arguments of others are read by `table`."""
_OPTION: Final = re.compile(
    r"--column (?P<column>\w+)=(?P<made>'[^']*'|[^\s,;)]*)|(?P<name>--[a-z][a-z-]*)(?: (?P<value>\d\w*))?"
)
"""An option in a message: one that makes a column, or another with its value if that is a number and a unit."""
_WORDS: Final[Mapping[object, str]] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
    Path: "a path",
    types.NoneType: "None",
}


def judged(function: Callable[..., object], given: Mapping[str, object]) -> dict[str, object]:
    """Return arguments as a function's annotations say, lists as tuples; refuse what is anything else, all at once.

    Parameters
    ----------
    given : arguments by the names of parameters

    Raises
    ------
    FaultsError
        With every argument that is not what its annotation says, what it should be and what it is.

    Examples
    --------
    >>> def serve(servers: Annotated[int, Ge(1)], speed: float | None = None) -> None: ...
    >>> judged(serve, {"servers": np.int64(4), "speed": None})
    {'servers': 4, 'speed': None}
    >>> judged(serve, {"servers": 2.5, "speed": "fast"})
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: servers: should be a whole number of at least 1, got 2.5
    speed: should be a number, or None, got "fast"
    """
    values, faults = dict[str, object](given), list[Fault]()
    for name, entry in inspect.signature(function).parameters.items():
        kind = _LATER.get(entry.annotation, entry.annotation)
        if name not in given or kind is entry.empty or isinstance(kind, str) or entry.kind is entry.VAR_KEYWORD:
            continue
        try:
            values[name] = _reader(kind, entry.kind is entry.VAR_POSITIONAL).validate_python(_plain(given[name]))
        except ValidationError as error:
            faults.append(Fault("", 0, 0, name, f"should be {_words(kind)}", _got(_blamed(given[name], error))))
    if faults:
        raise FaultsError(faults)
    return values


@cache
def _reader(kind: object, several: bool) -> TypeAdapter[object]:
    """Return what reads values of an annotation: no text as a number, no truth value as one, no NaN, no infinity."""
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    whole = types.GenericAlias(tuple, (kind, ...)) if several else kind
    return TypeAdapter(cast(type, whole), config=strict)


def _plain(value: object) -> object:
    """Return a value with numbers of NumPy as Python's, and any list, array or series as a tuple."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (str, bytes, Mapping, pd.DataFrame)) or not isinstance(value, Iterable):
        return value
    return tuple(map(_plain, value))


def _blamed(given: object, error: ValidationError) -> object:
    """Return the entry of a list that is wrong, or all that was given."""
    entries = (wrong["input"] for wrong in error.errors() if any(isinstance(key, int) for key in wrong["loc"]))
    return next(entries, given)


def _words(kind: object) -> str:
    """Return what an annotation says in words; one that has words of its own has them as a text."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        own = next((mark for mark in inner[1:] if isinstance(mark, str)), None)
        return own or _words(inner[0]) + "".join(map(_bound, inner[1:]))
    if origin in {Union, types.UnionType}:
        words = list(dict.fromkeys(_words(choice) for choice in inner if not (choice is str and Path in inner)))
        words = ["several" if f"several, each {other}" == text else text for text in words for other in words[:1]]
        return f"{', '.join(words[:-1])}, or {words[-1]}" if len(words) > 1 else words[0]
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is not None and issubclass(origin, Mapping):
        return "texts by name"
    if origin is not None and issubclass(origin, Sequence):
        return f"several, each {_words(inner[0])}"
    return _WORDS.get(kind, str(getattr(kind, "__name__", kind)))


def _bound(bound: object) -> str:
    match bound:
        case Ge(ge=least):
            return f" of at least {least}"
        case Gt(gt=below):
            return f" above {below}"
        case Le(le=most):
            return f" of at most {most}"
        case Lt(lt=above):
            return f" and below {above}"
        case _:
            return ""


def _got(given: object) -> str:
    """Return what was given, as a user would write it; of what has no short text its kind."""
    given = given.item() if isinstance(given, np.generic) else given
    if given is None or isinstance(given, bool):
        return str(given)
    if isinstance(given, (list, tuple, dict)) and not given:
        return "none"
    if isinstance(given, (str, int, float, list, tuple, dict)):
        return shown(given)
    if isinstance(given, type):
        return f"the class {given.__name__}"
    kind = type(given).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def refuse(argument: str, should_be: str, given: object) -> NoReturn:
    """Raise that an argument should be something else.

    Examples
    --------
    >>> refuse("servers", "a whole number of at least 1", "four")
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: servers: should be a whole number of at least 1, got "four"
    """
    raise FaultsError([Fault("", 0, 0, argument, f"should be {should_be}", _got(given))])


def one_of(argument: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that are not known.

    Examples
    --------
    >>> one_of("designs", ["day", "night"], ["day", "week"])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: designs: should be of day, week, got "night"
    """
    for name in given:
        if name not in known:
            refuse(argument, f"of {', '.join(known)}", name)


def parts(argument: str, given: object) -> list[object]:
    """Return names and objects of somebody's own, of which one may stand alone.

    Examples
    --------
    >>> parts("guards", "mine.py:racks_alike")
    ['mine.py:racks_alike']
    """
    several = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping, type))
    entries = list(cast(Iterable[object], given)) if several else [given]
    for entry in entries:
        if not (isinstance(entry, str) or callable(entry) or hasattr(entry, "estimate")):
            refuse(argument, "names, parts of your own such as mine.py:Mine, or objects", entry)
    return entries


def of_arguments(function: Callable[..., object], error: FaultsError) -> FaultsError:
    """Return faults with options as arguments of the same name, those that they are of and those that mend them.

    Examples
    --------
    >>> def regress(at_s: float | None = None) -> None: ...
    >>> raise of_arguments(regress, FaultsError([Fault("--at", 0, 0, "", "is needed")]))
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: at_s: is needed
    >>> def effect(table: str, columns: Mapping[str, str], period: str | None = None) -> None: ...
    >>> raise of_arguments(effect, FaultsError([Fault("", 0, 0, "job", "is missing (--column job=svc, --period 1d)")]))
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: job: is missing (columns={"job": "svc"}, period="1d")
    """
    parameters = set[str]()
    for name, entry in inspect.signature(function).parameters.items():
        inner = get_args(entry.annotation) if entry.kind is entry.VAR_KEYWORD else ()
        parameters |= set(inspect.get_annotations(inner[0])) if inner else {name}

    def argument(option: str) -> str:
        plain = option.removeprefix("--").replace("-", "_")
        return next((name for name in (plain, f"{plain}_s") if name in parameters), "")

    def mending(option: re.Match[str]) -> str:
        if option["column"]:
            return f'columns={{"{option["column"]}": "{option["made"]}"}}' if "columns" in parameters else option[0]
        name, value = argument(option["name"]), option["value"]
        return f'{name}="{value}"' if name and value else f"{name}=" if name else option[0]

    def of_python(fault: Fault) -> Fault:
        fault = replace(fault, problem=_OPTION.sub(mending, fault.problem), got=_OPTION.sub(mending, fault.got))
        name = argument(fault.file) if fault.file.startswith("--") else ""
        return replace(fault, file="", line=0, column=0, field=name) if name else fault

    return FaultsError(map(of_python, error.faults))


def known_names(function: Callable[..., object], given: Iterable[str], more: Iterable[str]) -> None:
    """Refuse keyword arguments that are neither parameters of a function nor among some others.

    Examples
    --------
    >>> known_names(refuse, ["argumnet"], ["where"])
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: argumnet: there is no such argument (did you mean argument?)
    """
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    own = [
        name
        for name, entry in inspect.signature(function).parameters.items()
        if entry.kind not in kinds and name != "self"
    ]
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
        wrong = [f"{name} more than once" for name in given.columns[given.columns.duplicated()]]
        wrong += [f"{kind} in {name}" for name, kind in given.dtypes.items() if kind.kind == "c"]
        if wrong:
            problem = "should have each column once, and no complex numbers"
            raise FaultsError([Fault("", 0, 0, argument, problem, wrong[0])])
        return given
    if isinstance(given, str) and given.strip():
        return source_of(given)
    if isinstance(given, Run):
        return given.path
    if isinstance(given, Path) or (isinstance(given, TableQuery) and isinstance(given.sql, str)):
        return given
    refuse(argument, "a frame, a path, a SELECT or a run", given)


def file(argument: str, given: object, wanted: str = "a path or a run") -> Path:
    """Return where a file is, or the folder of a run.

    Examples
    --------
    >>> file("log", "requests.csv").name
    'requests.csv'
    """
    if isinstance(given, Run):
        return given.path
    if isinstance(given, Path) or (isinstance(given, str) and given.strip()):
        return Path(given)
    refuse(argument, wanted, given)


def optional_table(argument: str, given: object) -> Source | None:
    """Return a source of rows, or None for None."""
    return None if given is None else table(argument, given)


def tables(given: Sequence[object]) -> list[Source]:
    """Return one table or more, each an argument of its own."""
    if not given:
        raise FaultsError([Fault("", 0, 0, "tables", "should be at least one", "none")])
    several = len(given) > 1
    return [table(f"table {number}" if several else "table", source) for number, source in enumerate(given, 1)]


def observations(given: Sequence[object]) -> list[Source]:
    """Return tables of observations, or runs; not both, as they do not name jobs and machines alike."""
    sources = tables(given)
    runs = [source for source in sources if isinstance(source, Path) and source.is_dir()]
    if runs and len(runs) < len(sources):
        raise FaultsError([Fault("", 0, 0, "tables", "should be runs alone or tables alone", f"the run {runs[0]} too")])
    return sources
