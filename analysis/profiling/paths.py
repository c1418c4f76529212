"""Call paths: samples summed by path, by every function on it, by call and by caller."""

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling import frames
from analysis.profiling.answers import column, shares, summed
from analysis.profiling.sums import Sums
from analysis.statistics import Ints

ROOT = "[root]"
"""The caller of what nothing called."""


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
    cursor.execute("CREATE TEMP TABLE equal_paths (stack BIGINT, first BIGINT)")
    for part in frames.read_by_leaf(cursor):
        first = frames.same_paths(part, len(names))
        cursor.register("found", pa.table({"stack": part.stack, "first": first}))
        cursor.execute("INSERT INTO equal_paths SELECT stack, first FROM found SEMI JOIN groups USING (stack)")
        cursor.unregister("found")
    cursor.execute(
        "CREATE TEMP TABLE path_sums AS SELECT first AS stack, sum(samples) AS samples, sum(value) AS value"
        " FROM equal_paths JOIN groups USING (stack) GROUP BY first"
    )
    if top is not None:
        greatest = f"SELECT value FROM path_sums ORDER BY value DESC LIMIT {top:d}"
        cursor.execute(f"DELETE FROM path_sums WHERE value < (SELECT min(value) FROM ({greatest}))")
    found = summed(
        cursor,
        sums,
        f"SELECT path, {sums.numbers()} FROM path_sums JOIN"
        " (SELECT s.stack, list(f.code ORDER BY s.depth DESC) AS path FROM stacks s SEMI JOIN path_sums USING (stack)"
        " JOIN function_codes f ON s.location = f.location GROUP BY s.stack)"
        " USING (stack) ORDER BY path_sums.value DESC, path LIMIT ?",
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
    weights = _weights(cursor, sums)
    reached, leaves = [], []
    for part in frames.read(cursor):
        place = weights.places(part.stack)
        within = np.repeat(place, part.length)
        reached.append(frames.once_per_stack(*_known(within, part.code), weights))
        leaves.append(frames.once_per_stack(*_known(place, part.code[part.start[:-1]]), weights))
    found = frames.together(reached).head(_limit(top))
    own = frames.together(leaves).set_index("item")["value"].reindex(found["item"], fill_value=0)
    named = found.assign(function=_named(found["item"], names), share=shares(found["value"], sums.value))
    return named.assign(own=own.to_numpy())[["function", "samples", "value", "share", "own"]]


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
    weights = _weights(cursor, sums)
    calls = []
    for part in frames.read(cursor):
        within = np.repeat(weights.places(part.stack), part.length)
        at = np.flatnonzero(part.called & (within >= 0))
        call = part.code[at + 1] * len(names) + part.code[at]
        calls.append(frames.once_per_stack(within[at], call, weights))
    found = frames.together(calls).head(_limit(top))
    caller, function = np.divmod(found["item"], max(1, len(names)))
    named = found.assign(caller=_named(caller, names), function=_named(function, names))
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
    coded = _code_functions(cursor)
    code = coded.index(function) if function in coded else -1
    cursor.execute("CREATE TEMP TABLE callers (stack BIGINT, code BIGINT)")
    for part in frames.read(cursor):
        at = np.flatnonzero(part.code == code)
        above = np.where(part.called[at], part.code[np.minimum(at + 1, part.code.size - 1)], -1)
        stack = np.repeat(part.stack, part.length)[at]
        cursor.register("found", pa.table({"stack": stack, "code": above}))
        cursor.execute("INSERT INTO callers SELECT DISTINCT stack, code FROM found")
        cursor.unregister("found")
    names = "".join(f"{name}, " for name in sums.by)
    return summed(
        cursor,
        sums,
        f"SELECT {names} coalesce(name, ?) AS caller, {sums.numbers('sum(samples)', 'sum(value)')}"
        " FROM callers JOIN groups USING (stack) JOIN process_keys USING (pkey) LEFT JOIN function_names USING (code)"
        f" GROUP BY {names} caller ORDER BY sum(value) DESC, {names} caller",
        ROOT,
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


def _weights(cursor: duckdb.DuckDBPyConnection, sums: Sums) -> frames.Weights:
    """Return the sums by stack as arrays."""
    found = summed(cursor, sums, f"SELECT stack, {sums.numbers()} FROM groups ORDER BY stack")
    return frames.Weights(*(found[name].to_numpy() for name in ("stack", "samples", "value")))


def _known(place: Ints, item: Ints) -> tuple[Ints, Ints]:
    """Return places and items without those whose stack has no sums."""
    there = place >= 0
    return place[there], item[there]


def _named(codes: pd.Series, names: Sequence[str]) -> pd.Series:
    """Return the names that belong to codes."""
    return pd.Series(np.asarray(names, dtype=object)[codes.to_numpy(dtype=np.int64)], dtype="str")


def _limit(top: int | None) -> int:
    return 2**62 if top is None else top
