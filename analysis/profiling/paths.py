"""Call paths: samples summed by path, by every function on it, by call and by caller."""

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pandas as pd

from analysis.profiling.answers import column, shares, summed
from analysis.profiling.sums import Sums
from analysis.profiling.views import row

_FRAMES_AT_ONCE = 1_500_000
ROOT = "[root]"
"""The caller of what nothing called."""
_FRAMES = "stacks s SEMI JOIN groups g ON s.stack = g.stack JOIN function_codes f ON s.location = f.location"


def paths(cursor: duckdb.DuckDBPyConnection, sums: Sums, top: int | None) -> pd.DataFrame:
    """Return sums by call path, the greatest first.

    Parameters
    ----------
    cursor : cursor that holds sums by stack, as from `sums.sum_samples`
    sums : what they add up to
    top : only so many paths

    Returns
    -------
    DataFrame
        `path` (tuple of names of functions, the outermost first), `samples`, `value`.
    """
    names = _code_functions(cursor)
    found = summed(
        cursor,
        sums,
        f"SELECT path, {sums.numbers('sum(samples)', 'sum(value)')}"
        " FROM (SELECT s.stack, list(f.code ORDER BY s.depth DESC) AS path"
        f" FROM {_FRAMES} GROUP BY s.stack)"
        " JOIN groups USING (stack) GROUP BY path ORDER BY sum(value) DESC, path LIMIT ?",
        _limit(top),
    )
    return found.assign(path=pd.Series([tuple(names[code] for code in path) for path in found["path"]], dtype=object))


def inclusive(cursor: duckdb.DuckDBPyConnection, sums: Sums, top: int | None) -> pd.DataFrame:
    """Return sums by each function that is anywhere on the path, once per path, the greatest first.

    Parameters
    ----------
    cursor, sums, top : as in `paths`

    Returns
    -------
    DataFrame
        `function`, `samples`, `value`, `share` of everything, `own` (the value of samples in the function itself).
    """
    names = _code_functions(cursor)
    kind = "VARCHAR" if sums.wide else "BIGINT"
    cursor.execute("CREATE TEMP TABLE reached (code INTEGER, samples HUGEINT, value HUGEINT, own HUGEINT)")
    for _ in _code_frames(cursor):
        cursor.execute(
            "INSERT INTO reached SELECT code, sum(samples), sum(value), sum(CASE WHEN leaf THEN value ELSE 0 END)"
            " FROM (SELECT stack, code, bool_or(depth = 0) AS leaf FROM frames GROUP BY stack, code)"
            " JOIN groups USING (stack) GROUP BY code"
        )
    found = summed(
        cursor,
        sums,
        f"SELECT code, {sums.numbers('sum(samples)', 'sum(value)')}, sum(own)::{kind} AS own"
        " FROM reached GROUP BY code ORDER BY sum(value) DESC, code LIMIT ?",
        _limit(top),
    )
    named = found.assign(code=_named(found["code"], names), share=shares(found["value"], sums.value))
    own = named["own"].map(int).astype(object) if sums.wide else named["own"]
    return named.assign(own=own).rename(columns={"code": "function"})[["function", "samples", "value", "share", "own"]]


def edges(cursor: duckdb.DuckDBPyConnection, sums: Sums, top: int | None) -> pd.DataFrame:
    """Return sums by call, each once per path, the greatest first.

    Parameters
    ----------
    cursor, sums, top : as in `paths`

    Returns
    -------
    DataFrame
        `caller`, `function`, `samples`, `value`.
    """
    names = _code_functions(cursor)
    cursor.execute("CREATE TEMP TABLE calls (caller INTEGER, called INTEGER, samples HUGEINT, value HUGEINT)")
    for _ in _code_frames(cursor):
        cursor.execute(
            "INSERT INTO calls SELECT caller, called, sum(samples), sum(value)"
            " FROM (SELECT DISTINCT stack, caller, code AS called FROM"
            " (SELECT stack, code, lead(code) OVER (PARTITION BY stack ORDER BY depth) AS caller FROM frames)"
            " WHERE caller IS NOT NULL) JOIN groups USING (stack) GROUP BY caller, called"
        )
    found = summed(
        cursor,
        sums,
        f"SELECT caller, called, {sums.numbers('sum(samples)', 'sum(value)')} FROM calls"
        " GROUP BY caller, called ORDER BY sum(value) DESC, caller, called LIMIT ?",
        _limit(top),
    )
    named = found.assign(caller=_named(found["caller"], names), function=_named(found["called"], names))
    return named[["caller", "function", "samples", "value"]]


def callers(cursor: duckdb.DuckDBPyConnection, sums: Sums, function: str) -> pd.DataFrame:
    """Return sums by the query's dimensions and by who called a function, each caller once per path.

    Parameters
    ----------
    cursor, sums : as in `paths`
    function : name of the function called

    Returns
    -------
    DataFrame
        The dimensions, `caller` ([root] where nothing called it), `samples`, `value`; the greatest first.
    """
    _code_functions(cursor)
    names = "".join(f"{name}, " for name in sums.by)
    cursor.execute("CREATE TEMP TABLE callers (pkey INTEGER, caller VARCHAR, samples HUGEINT, value HUGEINT)")
    for _ in _code_frames(cursor):
        cursor.execute(
            "INSERT INTO callers SELECT pkey, caller, sum(samples), sum(value)"
            " FROM (SELECT DISTINCT s.stack, coalesce(n.name, ?) AS caller FROM frames s"
            " JOIN function_names called ON called.code = s.code AND called.name = ?"
            " LEFT JOIN frames c ON c.stack = s.stack AND c.depth = s.depth + 1"
            " LEFT JOIN function_names n ON n.code = c.code)"
            " JOIN groups USING (stack) GROUP BY pkey, caller",
            [ROOT, function],
        )
    return summed(
        cursor,
        sums,
        f"SELECT {names} caller, {sums.numbers('sum(samples)', 'sum(value)')}"
        " FROM callers JOIN process_keys USING (pkey)"
        f" GROUP BY {names} caller ORDER BY sum(value) DESC, {names} caller",
    )


def _code_functions(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Number the functions' names in their order, by location, and return the names."""
    cursor.execute(
        "CREATE TEMP TABLE function_names AS SELECT name, (row_number() OVER (ORDER BY name) - 1)::INTEGER AS code"
        ' FROM (SELECT DISTINCT "function" AS name FROM locations)'
    )
    cursor.execute(
        "CREATE TEMP TABLE function_codes AS"
        ' SELECT location, code FROM locations JOIN function_names ON "function" = name'
    )
    return column(cursor, "SELECT name FROM function_names ORDER BY code")


def _code_frames(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make the table of the frames of the stacks that have sums, some stacks after the others to bound the memory."""
    first, last, rows = row(cursor, "SELECT min(stack), max(stack), count(*) FROM stacks")
    if not rows:
        return
    step = -(-(last - first + 1) // -(-rows // _FRAMES_AT_ONCE))
    for least in range(first, last + 1, step):
        cursor.execute(
            "CREATE OR REPLACE TEMP TABLE frames AS"
            f" SELECT s.stack, s.depth, f.code FROM {_FRAMES} WHERE s.stack BETWEEN ? AND ?",
            [least, least + step - 1],
        )
        yield


def _named(codes: pd.Series, names: Sequence[str]) -> pd.Series:
    """Return the names that belong to codes."""
    return pd.Series(np.asarray(names, dtype=object)[codes.to_numpy(dtype=np.int64)], dtype="str")


def _limit(top: int | None) -> int:
    return 2**62 if top is None else top
