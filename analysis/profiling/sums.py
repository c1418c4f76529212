"""The one way in which samples are summed: small keys of processes and places first, then every sample once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from analysis.profiling.query import LABEL, LOCATION_DIMENSIONS, Query, is_label, of_process
from analysis.profiling.storage import TAKEN, ProfileError
from analysis.profiling.views import MOST_VALUE, Counts, row
from models.arrays import Floats

SQL: Mapping[str, str] = MappingProxyType(
    {
        "application": "o.application",
        "revision": "coalesce(b.revision, '[none]')",
        "compiler": "coalesce(b.compiler, '[none]')",
        "builder": "coalesce(b.builder, '[none]')",
        "build": "coalesce(b.build_id, '[none]')",
        "kernel": "v.kernel",
        "platform": "v.platform",
        "machine": "v.named_machine",
        "datacentre": "v.datacentre",
        "collection": "v.collection",
        "day": "floor(v.start_s / 86400)::BIGINT",
        "date": "v.dated",
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
"""Each dimension but labels as an expression over `PROCESSES` or `locations`."""
PROCESSES = "processes o JOIN visits v USING (visit) LEFT JOIN builds b ON o.build = b.build"
"""Processes with what their visit and their build say."""
_INT64_MAX = 2**63 - 1
_SUMS = ("samples", "value")


def expression(name: str) -> str:
    """Return a dimension as an expression over `PROCESSES` or `locations`; a label that a process has not is empty.

    Examples
    --------
    >>> expression("kernel")
    'v.kernel'
    """
    if not is_label(name):
        return SQL[name]
    key = name.removeprefix(LABEL).replace("'", "''")
    return f"coalesce((SELECT min(l.value) FROM labels l WHERE l.process = o.process AND l.key = '{key}'), '')"


def quoted(*names: str) -> str:
    """Return names of columns as SQL has them, whatever characters labels have.

    Examples
    --------
    >>> print(quoted("application", 'label.a"b'))
    "application", "label.a""b"
    """
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums that stand ready as `groups` of a cursor.

    Its columns are `pkey`, into the table `process_keys` with the dimensions of processes; `lkey`, into `location_keys`
    with those of locations; `samples` and `value`.
    """

    by: tuple[str, ...]
    samples: int
    """Samples in all."""
    value: int
    """Events in all: Σ count × period × duty × weight."""

    @property
    def wide(self) -> tuple[str, ...]:
        """Names of the sums that need more than 64 bits."""
        return tuple(name for name, total in zip(_SUMS, (self.samples, self.value), strict=True) if total > _INT64_MAX)

    def numbers(self, samples: str = "samples", value: str = "value") -> str:
        """Return the two columns of sums: integers of 64 bits if they fit, text otherwise."""
        kinds = ("VARCHAR" if total > _INT64_MAX else "BIGINT" for total in (self.samples, self.value))
        return ", ".join(
            f"{column}::{kind} AS {name}" for column, kind, name in zip((samples, value), kinds, _SUMS, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Scales:
    """Of how many keys processes are, and what one sample of them stands for."""

    keys: int
    greatest: int
    several: bool
    """Whether processes of one key differ in scale, so that each sample has to be multiplied for itself."""


def sum_samples(cursor: duckdb.DuckDBPyConnection, query: Query, counts: Counts) -> Sums:
    """Sum the samples of a query by its dimensions, so that they stand as `groups`.

    Processes and locations get one small key for each combination of the dimensions asked for, and processes their
    scale (period × duty × weight); samples are then joined by number and summed by these keys alone, so the cost of a
    query hardly depends on its dimensions.

    Parameters
    ----------
    cursor : a cursor of its own on a connection of `views.connect`
    query : what is asked
    counts : bounds of the samples' counts
    """
    by_process = [name for name in query.by if of_process(name)]
    by_location = [name for name in query.by if name in LOCATION_DIMENSIONS]
    scales = key_processes(cursor, query, by_process)
    in_value = scales.several or counts.taken
    joined, key = "", "0 AS lkey"
    if by_location or any(name in LOCATION_DIMENSIONS for name, _ in query.where):
        key_locations(cursor, query, by_location)
        joined, key = "JOIN location_map USING (location)", "lkey"
    else:
        cursor.execute("CREATE TEMP TABLE location_keys AS SELECT 0 AS lkey")
    counted = f"sum({TAKEN})::HUGEINT" if counts.taken else f"sum(count)::{_kind(counts.rows * counts.most)}"
    columns = [
        "pkey" if scales.keys > 1 else "1 AS pkey",
        key,
        f"{counted} AS samples",
        f"sum({_product(counts.most * scales.greatest)}) AS value",
    ]
    cursor.execute(
        f"CREATE TEMP TABLE counted AS SELECT {', '.join(columns if in_value else columns[:-1])}"
        f" FROM samples JOIN process_map USING (process) {joined} WHERE event = ?"
        " GROUP BY ALL HAVING count(*) > 0",
        [query.event],
    )
    _refuse_unrated(cursor, query.event)
    multiplied = "SELECT counted.*, samples::HUGEINT * scale AS value FROM counted JOIN process_keys USING (pkey)"
    cursor.execute(f"CREATE TEMP VIEW groups AS {'FROM counted' if in_value else multiplied}")
    return Sums(query.by, *_totals(cursor, query))


def _kind(most: int) -> str:
    return "BIGINT" if most <= _INT64_MAX else "HUGEINT"


def _product(most: int) -> str:
    """Return a row's count times its scale; 64 bits where they are enough, as they nearly always are."""
    return "count * scale" if most <= _INT64_MAX else "count::HUGEINT * scale"


def name_processes(cursor: duckdb.DuckDBPyConnection, query: Query, by: Sequence[str]) -> None:
    """Make `named_processes` of a query's processes: process, scale, whether it is rated, dimensions.

    Parameters
    ----------
    cursor, query : as of `sum_samples`
    by : dimensions of processes
    """
    columns = "".join(f", {expression(name)} AS {quoted(name)}" for name in by)
    filters, values = filters_of(query, locations=False)
    for bound, compared in ((query.since_s, ">="), (query.until_s, "<")):
        if bound is not None:
            filters.append(f"v.start_s {compared} ?")
            values.append(bound)
    cursor.execute(
        "CREATE TEMP TABLE named_processes AS"
        f" SELECT o.process, coalesce(r.period::HUGEINT * r.duty * v.weight, 0) AS scale, r.period IS NOT NULL AS rated"
        f" {columns} FROM {PROCESSES} LEFT JOIN rates r"
        " ON r.source = v.source AND r.collection = v.collection AND r.platform = v.platform AND r.event = ?"
        f" WHERE {' AND '.join(filters) or 'true'}",
        [query.event, *values],
    )


def key_processes(cursor: duckdb.DuckDBPyConnection, query: Query, by: Sequence[str]) -> Scales:
    """Make `process_keys` of the dimensions, with their scale if it is one, and `process_map` to key and scale.

    Parameters
    ----------
    cursor, query : as of `sum_samples`
    by : dimensions of processes, in whose order keys are numbered 1, 2, 3, …
    """
    name_processes(cursor, query, by)
    names = quoted("rated", *by)
    cursor.execute(
        "CREATE TEMP TABLE process_keys AS"
        f" SELECT (row_number() OVER (ORDER BY {names}))::INTEGER AS pkey, * FROM (SELECT {names}, max(scale) AS scale,"
        f" min(scale) AS least FROM named_processes GROUP BY {names})"
    )
    known = "SELECT count(*), coalesce(max(scale), 0), coalesce(bool_or(scale <> least), false) FROM process_keys"
    scales = Scales(*row(cursor, known))
    cursor.execute(
        f"CREATE TEMP TABLE process_map AS SELECT process, pkey, n.scale::{_kind(scales.greatest)} AS scale"
        f" FROM named_processes n JOIN process_keys USING ({names})"
    )
    cursor.execute("DROP TABLE named_processes")
    return scales


def _refuse_unrated(cursor: duckdb.DuckDBPyConnection, event: str) -> None:
    """Refuse samples without a rate, and forget the groups that have none."""
    without = "pkey IN (SELECT pkey FROM process_keys WHERE NOT rated)"
    groups, samples = row(cursor, f"SELECT count(*), sum(samples) FROM counted WHERE {without}")
    if samples:
        raise unrated(event, samples)
    if groups:
        cursor.execute(f"DELETE FROM counted WHERE {without}")


def unrated(event: str, samples: int) -> ProfileError:
    """Return what is wrong with samples that have no period."""
    return ProfileError(f"rates: no period of {event} for the collection and platform of {samples:,} samples")


def key_locations(cursor: duckdb.DuckDBPyConnection, query: Query, by: Sequence[str]) -> None:
    """Make `location_map` from location to key, and `location_keys`.

    Parameters
    ----------
    cursor, query : as of `sum_samples`
    by : dimensions of locations
    """
    filters, values = filters_of(query, locations=True)
    where = " AND ".join(filters) or "true"
    if not by:
        cursor.execute("CREATE TEMP TABLE location_keys AS SELECT 0 AS lkey")
        cursor.execute(
            f"CREATE TEMP TABLE location_map AS SELECT location, 0 AS lkey FROM locations WHERE {where}", values
        )
        return
    columns = ", ".join(f"{SQL[name]} AS {quoted(name)}" for name in by)
    cursor.execute(
        f"CREATE TEMP TABLE named_locations AS SELECT location, {columns} FROM locations WHERE {where}", values
    )
    names = quoted(*by)
    cursor.execute(
        "CREATE TEMP TABLE location_keys AS"
        f" SELECT (row_number() OVER ())::INTEGER AS lkey, * FROM (SELECT DISTINCT {names} FROM named_locations)"
    )
    cursor.execute(
        "CREATE TEMP TABLE location_map AS"
        f" SELECT location, lkey FROM named_locations JOIN location_keys USING ({names})"
    )
    cursor.execute("DROP TABLE named_locations")


def filters_of(query: Query, *, locations: bool) -> tuple[list[str], list[float | list[str]]]:
    """Return conditions with a mark for each bound list of values, and the lists.

    Parameters
    ----------
    query : whose restrictions
    locations : those on locations; otherwise those on processes
    """
    chosen = [(name, values) for name, values in query.where if of_process(name) != locations]
    return [f"({expression(name)})::VARCHAR IN (SELECT unnest(?))" for name, _ in chosen], [
        list(values) for _, values in chosen
    ]


def _totals(cursor: duckdb.DuckDBPyConnection, query: Query) -> tuple[int, int]:
    samples, value = row(cursor, "SELECT sum(samples), sum(value) FROM groups")
    if max(samples or 0, value or 0) > MOST_VALUE:
        raise ProfileError(f"samples: sum of {query.event} is beyond 1e37")
    return int(samples or 0), int(value or 0)


def frame(cursor: duckdb.DuckDBPyConnection, sql: str, *values: object) -> pd.DataFrame:
    """Return the rows of a query, with integers of 64 bits and texts that share their memory."""
    table: pd.DataFrame = cursor.sql(sql, params=list(values)).to_arrow_table().to_pandas(self_destruct=True)
    return table


def column(cursor: duckdb.DuckDBPyConnection, sql: str, *values: object) -> list[Any]:
    """Return the first column of a query as a list."""
    return [row[0] for row in cursor.execute(sql, list(values)).fetchall()]


def summed(cursor: duckdb.DuckDBPyConnection, sums: Sums, sql: str, *values: object) -> pd.DataFrame:
    """Return rows whose sums came as `Sums.numbers` gives them; sums beyond 64 bits are Python's integers.

    Parameters
    ----------
    cursor : cursor that holds the sums
    sums : what all rows add up to
    sql : a query with the columns `samples` and `value`
    values : what is bound to its marks
    """
    table = frame(cursor, sql, *values)
    return table.assign(**{name: pd.Series(list(map(int, table[name])), dtype=object) for name in sums.wide})


def shares(values: pd.Series, total: int) -> Floats:
    """Return values over their total; 0 of nothing.

    Parameters
    ----------
    values : integers, of 64 bits or Python's
    total : of which they are shares
    """
    if values.dtype == object:
        return np.array([int(value) / total if total else 0.0 for value in values])
    return values.to_numpy(dtype=np.float64) / float(total or 1)
