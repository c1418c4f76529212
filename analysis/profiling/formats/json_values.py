"""JSON of other tools' profiles: read within bounds, its fields with the types that they should have."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from analysis.tables.faults import refusal

LARGEST_JSON_BYTES = 1 << 26
"""Largest JSON that is read, as its values take some ten times its size in memory."""
Object = Mapping[str, Any]
_LARGEST_NUMBER = 10**100
_T = TypeVar("_T")
_WORDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
}


def json_object(data: bytes, name: str) -> Object:
    """Return a file's JSON object.

    Parameters
    ----------
    data : the file's bytes
    name : of the file, for faults

    Raises
    ------
    FileError
        If it is no JSON object, nested too deeply, or too large.

    Examples
    --------
    >>> json_object(b'{"nodes": []}', "a.json")
    {'nodes': []}
    """
    if len(data) > LARGEST_JSON_BYTES:
        raise refusal(name, "file", f"should be JSON of at most {LARGEST_JSON_BYTES} bytes", f"{len(data)} bytes")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise refusal(name, "file", "should be JSON", error) from None
    if not isinstance(value, dict):
        raise refusal(name, "file", "should be a JSON object", type(value).__name__)
    return value


def field(item: object, key: str, kind: type[_T], name: str, default: _T | None = None) -> _T:
    """Return a field of a type, where a whole number may stand for a number and text for neither.

    Parameters
    ----------
    item : an object
    key : of the field
    kind : dict, list, str, int or float
    name : of the file, for faults
    default : where there is none; None: there has to be one

    Raises
    ------
    FileError
        If it is missing or has another type.

    Examples
    --------
    >>> field({"id": 3}, "id", int, "a.json"), field({}, "url", str, "a.json", "")
    (3, '')
    """
    value: Any = item.get(key, default) if isinstance(item, Mapping) else None
    if value is None and default is not None:
        return default
    if not typed(value, kind):
        raise refusal(name, key, f"should be {_WORDS[kind]}", "nothing" if value is None else value)
    known: _T = value
    return known


def typed(value: object, kind: type) -> bool:
    """Return whether a value has a type; true, false, NaN and what overflows doubles in products are no numbers.

    Examples
    --------
    >>> typed(3, float), typed(True, float), typed(10**400, float), typed(float("nan"), float), typed(10**400, int)
    (True, False, False, False, True)
    """
    if isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= _LARGEST_NUMBER
    return isinstance(value, kind)


def place(table: Sequence[_T], at: object, what: str, name: str) -> _T:
    """Return an entry of a table.

    Raises
    ------
    FileError
        If there is no such entry.

    Examples
    --------
    >>> place(["f"], 0, "frame", "a.json")
    'f'
    """
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(table):
        raise refusal(name, what, f"should be an index of {len(table)} entries", at)
    return table[at]
