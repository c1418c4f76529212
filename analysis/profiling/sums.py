"""The one way in which samples are summed: small keys of processes and places first, then every sample once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import duckdb

from analysis.profiling.query import LOCATION_DIMENSIONS, PROCESS_DIMENSIONS, Query
from analysis.profiling.storage import ProfileError
from analysis.profiling.views import MOST_VALUE, row

SQL: Mapping[str, str] = MappingProxyType(
    {
        "application": "o.application",
        "revision": "coalesce(b.revision, '[none]')",
        "compiler": "coalesce(b.compiler, '[none]')",
        "builder": "coalesce(b.builder, '[none]')",
        "build": "coalesce(b.build_id, '[none]')",
        "kernel": "v.kernel",
        "platform": "v.platform",
        "machine": "v.machine::BIGINT",
        "datacentre": "v.datacentre",
        "collection": "v.collection",
        "day": "floor(v.start_s / 86400)::BIGINT",
        "visit": "v.visit::BIGINT",
        "process": "o.process::BIGINT",
        "function": '"function"',
        "image": "image",
        "file": "file",
        "file_hash": "file_hash",
        "line": "line::BIGINT",
        "symbolised": "symbolised",
    }
)
"""Each dimension as an expression over `PROCESSES` or `locations`."""
PROCESSES = "processes o JOIN visits v USING (visit) LEFT JOIN builds b ON o.build = b.build"
"""Processes with what their visit and their build say."""
_WORD = 2**63 - 1

Part = Literal["location", "stack"]
"""What samples are told apart by beside their process: the place sampled, or the call path to it."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums that stand ready as `groups` of a cursor.

    Its columns are `pkey`, into the table `process_keys` with the dimensions of processes; `lkey`, into `location_keys`
    with those of locations, or `stack`; `samples` and `value`.
    """

    by: tuple[str, ...]
    samples: int
    """Samples in all."""
    value: int
    """Events in all: Σ count × period × duty × weight."""

    @property
    def wide(self) -> bool:
        """Whether a sum needs more than 64 bits."""
        return max(self.samples, self.value) > _WORD

    def numbers(self, samples: str = "samples", value: str = "value") -> str:
        """Return the two columns of sums: integers of 64 bits if they fit, text otherwise.

        Examples
        --------
        >>> Sums((), 3, 5).numbers()
        'samples::BIGINT AS samples, value::BIGINT AS value'
        """
        kind = "VARCHAR" if self.wide else "BIGINT"
        return f"{samples}::{kind} AS samples, {value}::{kind} AS value"


def sum_samples(cursor: duckdb.DuckDBPyConnection, query: Query, most_samples: int, part: Part = "location") -> Sums:
    """Sum the samples of a query by its dimensions, so that they stand as `groups`.

    Processes and locations get one small key for each combination of the dimensions asked for; samples are then joined
    by number and counted by these keys alone, so the cost of a query hardly depends on its dimensions. The keys also
    tell scales apart (period × duty × weight, of which there are few), so that no single row is multiplied.

    Parameters
    ----------
    cursor : a cursor of its own on a connection of `views.connect`
    query : what is asked
    most_samples : a bound of the sum of all counts
    part : `stack` keeps stacks apart, in place of the dimensions of locations, and takes only samples that have one

    Raises
    ------
    ProfileError
        If samples have no rate of their event, or sums are beyond 10³⁷.
    """
    by_process = [name for name in query.by if name in PROCESS_DIMENSIONS]
    by_location = [name for name in query.by if name in LOCATION_DIMENSIONS] if part == "location" else []
    _key_processes(cursor, query, by_process)
    joined, key = "", "stack" if part == "stack" else "0 AS lkey"
    if by_location or any(name in LOCATION_DIMENSIONS for name, _ in query.where):
        _key_locations(cursor, query, by_location)
        joined, key = "JOIN location_map USING (location)", "lkey" if part == "location" else key
    elif part == "location":
        cursor.execute("CREATE TEMP TABLE location_keys AS SELECT 0 AS lkey")
    only = "AND stack >= 0" if part == "stack" else ""
    kind = "BIGINT" if most_samples <= _WORD else "HUGEINT"
    cursor.execute(
        f"CREATE TEMP TABLE counted AS SELECT skey, {key}, sum(count)::{kind} AS samples"
        f" FROM samples JOIN process_map USING (process) {joined} WHERE event = ? {only} GROUP BY ALL",
        [query.event],
    )
    _group(cursor, "stack" if part == "stack" else "lkey")
    return Sums(query.by, *_totals(cursor, query))


def _key_processes(cursor: duckdb.DuckDBPyConnection, query: Query, by: Sequence[str]) -> None:
    """Make `process_keys` of the dimensions, `scales` of these and scale (0: no rate), and `process_map` to those."""
    columns = "".join(f", {SQL[name]} AS {name}" for name in by)
    filters, values = _filters(query, PROCESS_DIMENSIONS)
    for bound, compared in ((query.since_s, ">="), (query.until_s, "<")):
        if bound is not None:
            filters.append(f"v.start_s {compared} ?")
            values.append(bound)
    cursor.execute(
        "CREATE TEMP TABLE named_processes AS"
        f" SELECT o.process, coalesce(r.period::HUGEINT * r.duty * v.weight, 0) AS scale, 0 AS every {columns}"
        f" FROM {PROCESSES} LEFT JOIN rates r"
        " ON r.source = v.source AND r.collection = v.collection AND r.platform = v.platform AND r.event = ?"
        f" WHERE {' AND '.join(filters) or 'true'}",
        [query.event, *values],
    )
    names = ", ".join(("every", *by))
    cursor.execute(
        "CREATE TEMP TABLE process_keys AS"
        f" SELECT (row_number() OVER ())::INTEGER AS pkey, * FROM (SELECT DISTINCT {names} FROM named_processes)"
    )
    cursor.execute(
        "CREATE TEMP TABLE scales AS"
        f" SELECT (row_number() OVER ())::INTEGER AS skey, * FROM (SELECT DISTINCT scale, {names} FROM named_processes)"
        f" JOIN process_keys USING ({names})"
    )
    cursor.execute(
        f"CREATE TEMP TABLE process_map AS SELECT process, skey FROM named_processes JOIN scales USING (scale, {names})"
    )
    cursor.execute("DROP TABLE named_processes")


def _group(cursor: duckdb.DuckDBPyConnection, key: str) -> None:
    """Make `groups` of what was counted; keys of several scales are put together."""
    (several,) = row(cursor, "SELECT count(*) <> count(DISTINCT pkey) FROM scales")
    if several:
        cursor.execute(
            f"CREATE TEMP TABLE groups AS SELECT pkey, {key}, sum(samples)::HUGEINT AS samples,"
            " sum(samples::HUGEINT * scale)::HUGEINT AS value FROM counted JOIN scales USING (skey)"
            f" GROUP BY pkey, {key}"
        )
        return
    cursor.execute(
        f"CREATE TEMP VIEW groups AS SELECT pkey, {key}, samples, samples::HUGEINT * scale AS value"
        " FROM counted JOIN scales USING (skey)"
    )


def _key_locations(cursor: duckdb.DuckDBPyConnection, query: Query, by: Sequence[str]) -> None:
    """Make `location_map` from location to key, and `location_keys`."""
    filters, values = _filters(query, LOCATION_DIMENSIONS)
    where = " AND ".join(filters) or "true"
    if not by:
        cursor.execute("CREATE TEMP TABLE location_keys AS SELECT 0 AS lkey")
        cursor.execute(
            f"CREATE TEMP TABLE location_map AS SELECT location, 0 AS lkey FROM locations WHERE {where}", values
        )
        return
    columns = ", ".join(f"{SQL[name]} AS {name}" for name in by)
    cursor.execute(
        f"CREATE TEMP TABLE named_locations AS SELECT location, {columns} FROM locations WHERE {where}", values
    )
    names = ", ".join(by)
    cursor.execute(
        "CREATE TEMP TABLE location_keys AS"
        f" SELECT (row_number() OVER ())::INTEGER AS lkey, * FROM (SELECT DISTINCT {names} FROM named_locations)"
    )
    cursor.execute(
        "CREATE TEMP TABLE location_map AS"
        f" SELECT location, lkey FROM named_locations JOIN location_keys USING ({names})"
    )
    cursor.execute("DROP TABLE named_locations")


def _filters(query: Query, dimensions: Mapping[str, str]) -> tuple[list[str], list[float | list[str]]]:
    """Return conditions with a mark for each bound list of values, and the lists."""
    chosen = [(name, values) for name, values in query.where if name in dimensions]
    return [f"({SQL[name]})::VARCHAR IN (SELECT unnest(?))" for name, _ in chosen], [
        list(values) for _, values in chosen
    ]


def _totals(cursor: duckdb.DuckDBPyConnection, query: Query) -> tuple[int, int]:
    samples, value = row(cursor, "SELECT sum(samples), sum(value) FROM groups")
    (unrated,) = row(cursor, "SELECT sum(samples) FROM counted JOIN scales USING (skey) WHERE scale = 0")
    if unrated:
        what = f"for the collection and platform of {unrated:,} samples"
        raise ProfileError(f"rates: no period of {query.event} {what}")
    if max(samples or 0, value or 0) > MOST_VALUE:
        raise ProfileError(f"samples: sum of {query.event} is beyond 1e37")
    return int(samples or 0), int(value or 0)
