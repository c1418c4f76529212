"""Rows of a table as JSON, some at a time, so that very many take no memory."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, cast

from scenarios.views.terminal import dumps

if TYPE_CHECKING:
    import pandas as pd

_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class TableRecords:
    """A table where JSON has a list with a value for each row."""

    table: "pd.DataFrame"


def texts(value: object) -> Iterator[str]:
    """Yield the parts of what `dumps` of the terminal returns, where the values of a map may be `TableRecords`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"function": ["f", "g"], "share": [0.5, float("nan")]})
    >>> "".join(texts({"rows": TableRecords(table)})) == dumps({"rows": table.to_dict("records")})
    True
    """
    if not isinstance(value, Mapping) or not any(isinstance(entry, TableRecords) for entry in value.values()):
        yield dumps(value)
        return
    before = "{\n "
    for key, entry in value.items():
        yield f"{before}{json.dumps(str(key), ensure_ascii=False)}: "
        if isinstance(entry, TableRecords):
            yield from _rows(entry.table)
        else:
            yield dumps(entry).replace("\n", "\n ")
        before = ",\n "
    yield "\n}"


def _rows(table: "pd.DataFrame") -> Iterator[str]:
    """Yield the parts of the list of a table's rows, which is in a map."""
    if not len(table):
        yield "[]"
        return
    keys = [f"\n   {json.dumps(str(name), ensure_ascii=False)}: " for name in table]
    before = "[\n  {"
    for begin in range(0, len(table), _AT_ONCE):
        some = table.iloc[begin : begin + _AT_ONCE]
        columns = [map(key.__add__, _cells(some.iloc[:, at].tolist())) for at, key in enumerate(keys)]
        yield before + "\n  },\n  {".join(map(",".join, zip(*columns, strict=True)))
        before = "\n  },\n  {"
    yield "\n  }\n ]"


def _cells(values: list[object]) -> Iterator[str]:
    """Yield values as JSON."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return map(encode_basestring, cast("list[str]", values))
    if kinds == {int} or (kinds == {float} and all(map(math.isfinite, cast("list[float]", values)))):
        return map(repr, values)
    return (dumps(value).replace("\n", "\n   ") for value in values)
