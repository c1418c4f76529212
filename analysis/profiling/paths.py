"""Call paths: samples summed by path, by every function on it, by call and by caller."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling import frames
from analysis.profiling.frames import AnyInts
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.sums import column, shares
from analysis.profiling.symbolise import UNKNOWN
from analysis.profiling.views import row
from models.arrays import Ints

if TYPE_CHECKING:
    from analysis.profiling.sampled_stacks import SampledStacks

ROOT = "[root]"
"""The caller of what nothing called."""
_ROWS_AT_ONCE = 10_000


def paths(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", top: int | None) -> pd.DataFrame:
    """Return sums by call path, the greatest first.

    Parameters
    ----------
    cursor : of the profile
    sums : by stack
    top : only so many paths

    Returns
    -------
    DataFrame
        `path` (tuple of names of functions, the outermost first), `samples`, `value`.
    """
    names, weights = _code_functions(cursor), sums.weights()
    totals = frames.together(_equal(cursor, weights, len(names)))
    rank = np.cumsum(np.append(False, totals["value"].to_numpy()[1:] != totals["value"].to_numpy()[:-1]))[: len(totals)]
    last = rank[min(_limit(top), len(totals)) - 1] if len(totals) else 0
    cursor.register(
        "chosen", pa.table({"stack": totals["item"].to_numpy(), "rank": rank}).slice(0, (rank <= last).sum())
    )
    ordered = _rows(
        cursor.execute(
            "SELECT stack, path FROM chosen JOIN (SELECT s.stack, list(f.code ORDER BY s.depth DESC) AS path"
            " FROM stacks s SEMI JOIN chosen USING (stack) JOIN function_codes f ON s.location = f.location"
            " GROUP BY s.stack) USING (stack) ORDER BY rank, path LIMIT ?",
            [_limit(top)],
        )
    )
    paths_of = [(stack, tuple(map(names.__getitem__, path))) for stack, path in ordered]
    listed = totals.set_index("item").loc[[stack for stack, _ in paths_of]].reset_index(drop=True)
    named = pd.Series([path for _, path in paths_of], dtype=object)
    return listed.assign(path=named)[["path", "samples", "value"]]


def inclusive(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", top: int | None) -> pd.DataFrame:
    """Return sums by the query's dimensions and each function that is anywhere on the path, the greatest first.

    Parameters
    ----------
    cursor, sums, top : as in `paths`

    Returns
    -------
    DataFrame
        The dimensions, `function`, `samples`, `value`, `share` of everything, `own` (the value of samples in the
        function itself); each function once per path.
    """
    names, weights = _code_functions(cursor), sums.weights()
    leaves: list[pd.DataFrame] = []
    reached = frames.together(_reached(cursor, weights, leaves)).head(_limit(top))
    own = frames.together(leaves).set_index("item")["value"].reindex(reached["item"], fill_value=0)
    dimensions, function = _apart(sums, reached["item"])
    named = dimensions.assign(
        function=_named(function, names),
        samples=reached["samples"],
        value=reached["value"],
        share=shares(reached["value"], sums.totals[1]),
    )
    return named.assign(own=own.to_numpy())


def named(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", images: Sequence[str]) -> pd.DataFrame:
    """Return sums by the query's dimensions and whether a frame of these images has a name, each once per path.

    Parameters
    ----------
    cursor, sums : as in `paths`
    images : whose frames are looked at

    Returns
    -------
    DataFrame
        The dimensions, `named`, `samples`, `value`; a path that has frames of both kinds counts for both.
    """
    cursor.execute(
        "CREATE TEMP TABLE function_codes AS SELECT location,"
        ' CASE WHEN NOT list_contains(?, image) THEN 0 WHEN "function" = ? THEN 1 ELSE 2 END::INTEGER AS code'
        " FROM locations",
        [list(images), UNKNOWN],
    )
    reached = frames.together(_reached(cursor, sums.weights(), []))
    dimensions, code = _apart(sums, reached["item"])
    rows = dimensions.assign(
        named=code.to_numpy() == 2, samples=reached["samples"].to_numpy(), value=reached["value"].to_numpy()
    )
    return rows[code.to_numpy() > 0].reset_index(drop=True)


def edges(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", top: int | None) -> pd.DataFrame:
    """Return sums by the query's dimensions and call, each once per path, the greatest first.

    Parameters
    ----------
    cursor, sums, top : as in `paths`

    Returns
    -------
    DataFrame
        The dimensions, `caller`, `function`, `samples`, `value`.
    """
    names, weights = _code_functions(cursor), sums.weights()
    return _edges(sums, frames.together(_calls(cursor, weights, len(names))).head(_limit(top)), names)


def graph(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", most: int) -> tuple[pd.DataFrame, int]:
    """Return the greatest `edges`, and how many there are.

    Parameters
    ----------
    cursor, sums : as in `paths`
    most : so many edges, and those that are as great as the last of them
    """
    names = _code_functions(cursor)
    calls = frames.together(_calls(cursor, sums.weights(), len(names)))
    greatest = calls[calls["value"] >= calls["value"].iloc[most - 1]] if len(calls) > most else calls
    return _edges(sums, greatest.reset_index(drop=True), names), len(calls)


def _edges(sums: "SampledStacks", calls: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return calls by name; `names` are of functions, `calls` sums by the codes of both."""
    dimensions, call = _apart(sums, calls["item"])
    caller, function = call // max(1, len(names)), call % max(1, len(names))
    return dimensions.assign(
        caller=_named(caller, names),
        function=_named(function, names),
        samples=calls["samples"],
        value=calls["value"],
    )


def callers(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks", function: str) -> pd.DataFrame:
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
    names, weights = _code_functions(cursor), sums.weights()
    code = names.index(function) if function in names else -1
    rows = frames.together(_above(cursor, weights, code))
    del weights
    callers_of, keys = [ROOT, *names], max(len(sums.keys), 1)
    by = [*map(str, sums.keys)]
    # Equal values are in order of their names, of which each is ranked once.
    in_order = sums.keys.sort_values(by, kind="stable").index if by else sums.keys.index
    of_key, of_caller = np.argsort(in_order.to_numpy()), np.argsort(np.argsort(np.asarray(callers_of, dtype=object)))
    item = rows["item"].to_numpy()
    key = of_key[item % keys] if by else np.zeros(len(item), dtype=np.int64)
    order = np.lexsort((of_caller[item // keys if by else item], key))
    order = order[np.argsort(-rows["value"].to_numpy()[order], kind="stable")]
    rows = rows.iloc[order].reset_index(drop=True)
    del item, key, order
    dimensions, above = _apart(sums, rows["item"])
    return dimensions.assign(caller=_named(above, callers_of), samples=rows["samples"], value=rows["value"])


def stacks_with(cursor: duckdb.DuckDBPyConnection, function: str) -> Ints:
    """Return the numbers of the stacks that have a function, rising.

    Parameters
    ----------
    cursor : of the profile
    function : its name
    """
    rows = cursor.execute(
        "SELECT DISTINCT stack::BIGINT AS stack FROM stacks SEMI JOIN"
        ' (SELECT location FROM locations WHERE "function" = ?) USING (location) ORDER BY stack',
        [function],
    ).fetchnumpy()
    return np.asarray(rows["stack"], dtype=np.int64)


def frames_on(cursor: duckdb.DuckDBPyConnection, stacks: Ints, room: int) -> tuple[list[str], Ints, AnyInts]:
    """Return names of all functions, where those of each stack begin, and which they are, from the outermost on.

    Parameters
    ----------
    cursor : of the profile
    stacks : (P,) numbers, rising
    room : for so many frames before those of each stack, −1
    """
    names = _code_functions(cursor)
    (most,) = row(cursor, "SELECT count(*) FROM stacks")
    first, codes = np.zeros(len(stacks) + 1, dtype=np.int64), np.full(most + room * len(stacks), -1, dtype=np.int32)
    begin = 0
    for part in frames.read(cursor) if len(stacks) else ():
        at = np.minimum(np.searchsorted(stacks, part.stack), len(stacks) - 1)
        wanted = stacks[at] == part.stack
        length = part.length[wanted]
        first[at[wanted] + 1] = length + room
        before = np.cumsum(length) - length
        outermost = np.repeat(part.start[1:][wanted] - 1 + before, length)
        place = np.repeat(begin + room * np.arange(1, len(length) + 1), length)
        many = np.arange(int(length.sum()))
        codes[place + many] = part.code[outermost - many]
        begin += len(many) + room * len(length)
    return names, np.cumsum(first), codes[:begin]


def locations_on(cursor: duckdb.DuckDBPyConnection, stacks: Ints) -> tuple[Ints, AnyInts]:
    """Return how many frames each stack has, and the rank of each one's location, from the place sampled on.

    Parameters
    ----------
    cursor : of the profile
    stacks : (P,) numbers, rising
    """
    cursor.execute(
        "CREATE TEMP TABLE function_codes AS"
        " SELECT location, (row_number() OVER (ORDER BY location) - 1)::INTEGER AS code FROM locations"
    )
    parts: list[tuple[Ints, AnyInts]] = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))]
    for part in frames.read(cursor, (int(stacks[0]), int(stacks[-1]))) if len(stacks) else ():
        wanted = np.isin(part.stack, stacks)
        parts.append((part.length[wanted], part.code[np.repeat(wanted, part.length)]))
    length, code = map(np.concatenate, zip(*parts, strict=True))
    return length, code


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


def _apart(sums: "SampledStacks", item: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
    """Return the dimensions of sums whose keys stay apart, and their items without the keys."""
    if not len(sums.keys.columns):
        return pd.DataFrame(index=item.index), item
    keys = max(len(sums.keys), 1)  # as `SampledStacks.weights` has it
    return sums.keys.iloc[item % keys].reset_index(drop=True), item // keys


def _equal(cursor: duckdb.DuckDBPyConnection, weights: frames.Weights, codes: int) -> Iterator[pd.DataFrame]:
    """Yield the sums of stacks with equal paths by the first of them, part by part."""
    for stack, path in _same_paths(cursor, codes):
        place = weights.places(stack)
        yield frames.once_per_stack(place[place >= 0], path[place >= 0], weights)


def _same_paths(cursor: duckdb.DuckDBPyConnection, codes: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the stacks, and the first of those with an equal path, part by part."""
    for part in frames.read_by_leaf(cursor):
        yield part.stack, frames.same_paths(part, codes)
        del part  # before the next is read
        give_back_memory()


def _reached(
    cursor: duckdb.DuckDBPyConnection, weights: frames.Weights, leaves: list[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    """Yield the sums of the functions on the paths, part by part; those of the places sampled are put into a list."""
    for part in frames.read(cursor):
        place = weights.places(part.stack)
        within = np.repeat(place, part.length)
        on, leaf = within >= 0, place >= 0
        leaves.append(frames.once_per_stack(place[leaf], part.code[part.start[:-1]][leaf], weights))
        yield frames.once_per_stack(within[on], part.code[on], weights)


def _calls(cursor: duckdb.DuckDBPyConnection, weights: frames.Weights, codes: int) -> Iterator[pd.DataFrame]:
    """Yield the sums of the calls on the paths, part by part: the caller's code times all codes plus the called one."""
    for part in frames.read(cursor):
        within = np.repeat(weights.places(part.stack), part.length)
        at = np.flatnonzero(part.called & (within >= 0))
        call = part.code[at + 1].astype(np.int64) * codes + part.code[at]
        yield frames.once_per_stack(within[at], call, weights)


def _above(cursor: duckdb.DuckDBPyConnection, weights: frames.Weights, code: int) -> Iterator[pd.DataFrame]:
    """Yield the sums of the callers of a function, part by part: the caller's code plus 1, 0 where nothing called."""
    for part in frames.read(cursor):
        within = np.repeat(weights.places(part.stack), part.length)
        at = np.flatnonzero((part.code == code) & (within >= 0))
        above = np.where(part.called[at], part.code[np.minimum(at + 1, part.code.size - 1)] + 1, 0)
        yield frames.once_per_stack(within[at], above, weights)


def _named(codes: pd.Series, names: Sequence[str]) -> pd.Series:
    """Return the names that belong to codes."""
    return pd.Series(np.asarray(names, dtype=object)[codes.to_numpy(dtype=np.int64)], dtype="str")


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of an answer, of which some at a time are Python's objects."""
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def _limit(top: int | None) -> int:
    return 2**62 if top is None else top
