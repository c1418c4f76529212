"""Recipes for tables with columns of their own, as options or as YAML beside a table."""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pandas as pd

from analysis.effects.observations import FIELDS
from analysis.tables.quantities import times_s
from analysis.tables.recipe import Recipe
from analysis.wsmeter.measurements import MEASUREMENTS, PLAN
from scenarios.files import options
from scenarios.files.faults import Fault, FaultsError, shown
from scenarios.files.tree import ValueNode, parse_file

KNOWN = tuple(dict.fromkeys(field.name for field in (*FIELDS, *MEASUREMENTS, *PLAN)))
"""Columns of ours: of a table of observations, of the two of `wsc wsmeter estimate`, and of that of a plan."""
WrongName = Callable[[str], str]
"""What is wrong with the name of a column that should be one of ours; nothing if it is one."""


def columns_of(texts: Sequence[str], wrong: WrongName | None = None) -> dict[str, str]:
    """Return expressions by the name of our column, of texts such as ``value=instructions/cpu_ms``.

    Parameters
    ----------
    wrong : of tables other than those of `KNOWN`

    Raises
    ------
    FaultsError
        If a text has no name, or one that an earlier text has; the faults are of the argument `column`.

    Examples
    --------
    >>> columns_of(["job=service", "treated=kernel = '6.6'"])
    {'job': 'service', 'treated': "kernel = '6.6'"}
    """
    columns, faults = dict[str, str](), list[Fault]()
    for text in texts:
        name, equals, expression = (part.strip() for part in text.partition("="))
        if equals and not expression:
            faults.append(Fault("", 0, 0, "column", f"should have an expression after {name}=", shown(text)))
        elif not (equals and name):
            faults.append(Fault("", 0, 0, "column", "should be NAME=EXPRESSION, such as job=service", shown(text)))
        elif name in columns:
            faults.append(Fault("", 0, 0, "column", f"{name} should be given once", shown(text)))
        elif problem := (wrong or unknown)(name):
            faults.append(Fault("", 0, 0, "column", problem, shown(text)))
        columns[name] = expression
    if faults:
        raise FaultsError(faults)
    return columns


def unknown(name: str, known: Sequence[str] = KNOWN) -> str:
    """Return what is wrong with the name of a column that is none of ours; nothing if it is one.

    Examples
    --------
    >>> unknown("waeght"), unknown("weight")
    ('is none of our columns (did you mean weight?)', '')
    """
    if name in known:
        return ""
    near = difflib.get_close_matches(name, known, 1)
    return f"is none of our columns ({f'did you mean {near[0]}?' if near else ', '.join(known)})"


def point_in_time(option: str, text: str, zone: str = "UTC") -> float:
    """Return seconds since 1970 of a stamp in ISO 8601, or of a count since 1970."""
    value = float(times_s(pd.Series([text]), zone)[0][0])
    if math.isnan(value):
        options.refuse(option, "should be a point in time, such as 2026-03-06 or 2026-03-06T12:00:00Z", text)
    return value


def zone_of(option: str, text: str) -> str:
    """Return the IANA name of a time zone."""
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        options.refuse(option, "should be a time zone's name, such as UTC or Europe/Berlin", text)
    return text


def recipe_of(given: Mapping[str, object], file: Path | None = None, wrong: WrongName | None = None) -> Recipe:
    """Return the recipe of the arguments columns, where, period, since, until, zone and skip_bad.

    Texts and numbers are read as those of options; None is left out.

    Parameters
    ----------
    file : one that says what the arguments do not, as `recipe_file` reads it
    wrong : of tables other than those of `KNOWN`, of which only columns and where are taken

    Raises
    ------
    FaultsError
        With every fault, of its argument.

    Examples
    --------
    >>> recipe_of({"period": "1d", "skip_bad": 0.03, "since": "1970-01-02"})
    Recipe(columns={}, where=None, period_s=86400.0, since_s=86400.0, until_s=None, zone='UTC', skip_bad=0.03)
    """
    fields, faults = dict[str, Any](), list[Fault]()
    texts = {name: value for name, value in given.items() if value is not None}
    base = Recipe() if file is None else recipe_file(file, wrong)
    columns, zone = texts.pop("columns", {}), base.zone
    if isinstance(columns, Mapping) and all(isinstance(text, str) for part in columns.items() for text in part):
        fields["columns"] = dict(columns)
        problems = {name: (wrong or unknown)(name) for name in columns}
        faults += [Fault("", 0, 0, f"columns.{name}", problem) for name, problem in problems.items() if problem]
    else:
        faults.append(Fault("", 0, 0, "columns", "should be expressions by our names", shown(columns)))
    for name, value in sorted(texts.items(), key=lambda item: item[0] != "zone"):
        field, read = _READ[_KEYS.get(name, name)]
        if wrong and field != "where":
            faults.append(Fault("", 0, 0, name, _NOT_TAKEN, shown(value)))
            continue
        try:
            fields[field] = read(name, str(value), zone)
        except FaultsError as error:
            faults += [Fault("", 0, 0, name, fault.problem, shown(value)) for fault in error.faults]
        zone = fields.get("zone", zone)
    if "period" not in texts and base.period_s is None:  # without it no column is a point in time
        ends = [("", name, text) for name, text in texts.items() if _KEYS.get(name) in {"from", "until"}]
        ends += [(str(file), "from", base.since_s), (str(file), "until", base.until_s)]
        problem = "needs a period, such as 1d"
        faults += [Fault(at, 0, 0, name, problem, shown(end)) for at, name, end in ends if end is not None]
    if faults:
        raise FaultsError(faults)
    return replace(base, columns={**base.columns, **fields.pop("columns")}, **fields)


_KEYS = {"since": "from", "until": "until", "from_stamp": "from", "until_stamp": "until", "rows_where": "where"}
"""Keys in YAML of arguments, those of commands among them, that go by another name or are ends of a recipe."""


_NOT_TAKEN = "is about tables of observations; of this one only columns and where are taken"


def recipe_file(path: Path, wrong: WrongName | None = None) -> Recipe:
    """Read a recipe from YAML: columns, where, period, from, until, zone, skip_bad.

    Parameters
    ----------
    wrong : as for `recipe_of`

    Raises
    ------
    FaultsError
        With every fault, at its line.
    """
    node, faults = parse_file(path)
    if faults or node is None:
        raise FaultsError(faults)
    if not isinstance(node.value, dict):
        raise FaultsError([node.place.fault("", "should be a map of columns, where, period, …", shown(node.plain()))])
    fields: dict[str, Any] = {"zone": "UTC"}
    for key, value in sorted(node.value.items(), key=lambda item: item[0] != "zone"):
        try:
            if key == "columns":
                fields["columns"] = _expressions(value, wrong or unknown)
            elif wrong and key in _READ and key != "where":
                faults.append(value.key.fault(key, _NOT_TAKEN))
            elif key in _READ and isinstance(value.value, (dict, list)):
                faults.append(value.place.fault(key, "should be a text or a number", shown(value.plain())))
            elif key in _READ:
                name, read = _READ[key]
                fields[name] = read(key, str(value.value), fields["zone"])
            else:
                known = ", ".join(("columns", *(("where",) if wrong else _READ)))
                faults.append(value.key.fault(key, f"is not known; known are {known}"))
        except FaultsError as error:
            faults += [
                fault if fault.file == node.place.file else value.place.fault(key, fault.problem, fault.got)
                for fault in error.faults
            ]
    if faults:
        raise FaultsError(faults)
    return Recipe(**fields)


_READ: Mapping[str, tuple[str, Callable[[str, str, str], object]]] = {
    "where": ("where", lambda _key, text, _zone: text),
    "period": ("period_s", lambda key, text, _zone: options.duration(key, text)),
    "from": ("since_s", point_in_time),
    "until": ("until_s", point_in_time),
    "zone": ("zone", lambda key, text, _zone: zone_of(key, text)),
    "skip_bad": ("skip_bad", lambda key, text, _zone: options.share(key, text)),
}
"""By the key in YAML, the recipe's field and how its text is read in a zone."""


def _expressions(node: ValueNode, wrong_name: WrongName) -> dict[str, str]:
    if not isinstance(node.value, dict):
        raise FaultsError([node.place.fault("columns", "should be a map of names to expressions", shown(node.plain()))])
    wrong = [
        child.place.fault(f"columns.{name}", "should be an expression", shown(child.plain()))
        for name, child in node.value.items()
        if isinstance(child.value, (dict, list)) or child.value is None
    ]
    wrong += [
        child.key.fault(f"columns.{name}", wrong_name(name)) for name, child in node.value.items() if wrong_name(name)
    ]
    if wrong:
        raise FaultsError(wrong)
    return {name: str(child.value) for name, child in node.value.items()}
