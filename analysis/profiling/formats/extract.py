"""What a profile database holds of one event, as a profile for other tools: every place, with callers where known."""

from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling import views
from analysis.profiling.database import MEMORY_BYTES, MOST_ROWS, Database
from analysis.profiling.formats.columns import Amounts, FrameTable, SampleTable
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Measure, Origin
from analysis.profiling.query import Query, QueryError
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.storage import find
from analysis.profiling.sums import PROCESSES, column, filters_of
from models.arrays import Ints

_COUNTERS = ("samples", "sample_count")
"""Measure that counts samples, and its name where an event is called so too."""
_STEPS_AT_ONCE = 750_000
"""Frames of call paths that are read at once."""
_ROWS_AT_ONCE = 100_000
"""Rows whose frames are numbered at once."""
_TEXTS = ("function", "image", "build_id", "file")
_PLACES = (
    "SELECT location, \"function\", l.image, coalesce(b.build_id, '') AS build_id, file,"
    " function_line::BIGINT AS function_line, line::BIGINT AS line"
    " FROM locations l LEFT JOIN builds b USING (build) ORDER BY location"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Sums by application, location and call path, the greatest value first."""

    applications: list[str]
    application: Ints
    location: Ints
    stack: Ints
    """−1: none."""
    samples: Amounts
    value: Amounts | None
    """None: they are too large."""


@dataclass(frozen=True, slots=True, eq=False)
class _Paths:
    """Call paths, one after another."""

    stack: Ints
    """(s,) their numbers, rising."""
    length: Ints
    location: Ints
    """(n,) the place sampled first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Places in the code, and the frames that differ among them."""

    location: Ints
    """(l,) rising."""
    frame: Ints
    """(l,)"""
    texts: tuple[str, ...]
    names: Ints
    """(f, 4) as of `FrameTable`."""
    lines: Ints


def extract(database: Database, query: Query, name: str = "profile") -> ForeignProfile:
    """Return what a query's restrictions leave, by application, place and call path, nothing cut off.

    Measures are samples (`sample_count` if the event itself is called `samples`) and the event, whose values are
    count × period × duty × weight; both sum to what `Database.total` says. A sample without a call path
    has a stack of one frame.

    Parameters
    ----------
    database : the profile
    query : what is asked; its dimensions do not matter
    name : of the profile

    Returns
    -------
    Profile
        Frames and samples in a fixed order. Where values sum to more than 2⁶³ − 1, `samples` only, with a note.

    Raises
    ------
    QueryError
        If the event or a value of a restriction is not in the profile, or there are more than 2 million rows.
    ProfileError
        If samples lack a rate, call paths refer to nothing, or sums are too large.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from analysis.profiling.formats.foreign import Frame, Sample
    >>> from analysis.profiling.formats.tables import to_tables, write_tables
    >>> frames, samples = (Frame("f"), Frame("main")), (Sample((0, 1), (30,)),)
    >>> tables = to_tables([ForeignProfile((Measure("cpu", "ns", 10),), frames, samples)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(tables, Path(folder))
    ...     with Database([Path(folder)]) as database:
    ...         tuple(extract(database, Query("cpu")).samples)
    (Sample(stack=(0, 1), amounts=(3, 30), origin=0, chain=True, taken=()),)
    """
    samples, value = database.total(query)
    folders = find(database.paths)
    connection = views.connect(folders, MEMORY_BYTES, None)
    try:
        with views.understood(name):
            views.check_stacks(connection, folders)
            rows = _rows(connection, query, (samples, value))
            paths = _paths(connection)
            places = _places(connection)
    finally:
        connection.close()
        give_back_memory()
    events = [Measure(query.event, database.units()[query.event], _period(database, query.event))]
    notes: tuple[str, ...] = ()
    if value > LARGEST:
        events, notes = [], (f"{query.event} sums to {value}, more than 64 bits hold: samples only",)
    counter = _COUNTERS[query.event == _COUNTERS[0]]
    frames, samples_of = _samples(rows, paths, places)
    origins = tuple(Origin(rows.applications[at]) for at in pd.unique(rows.application).tolist())
    measures = (Measure(counter), *events)
    return ForeignProfile(measures, frames, samples_of, origins or (Origin(),), name=name, notes=notes)


def _rows(connection: duckdb.DuckDBPyConnection, query: Query, totals: tuple[int, int]) -> _Rows:
    """Return a query's sums; `totals` are what samples and values should add up to."""
    filters, values = filters_of(query, locations=False)
    for bound, compared in ((query.since_s, ">="), (query.until_s, "<")):
        if bound is not None:
            filters.append(f"v.start_s {compared} ?")
            values.append(bound)
    connection.execute(
        "CREATE TEMP TABLE scales AS SELECT o.process, o.application, r.period::HUGEINT * r.duty * v.weight AS scale"
        f" FROM {PROCESSES} JOIN rates r"
        " ON r.source = v.source AND r.collection = v.collection AND r.platform = v.platform AND r.event = ?"
        f" WHERE {' AND '.join(filters) or 'true'}",
        [query.event, *values],
    )
    applications = column(connection, "SELECT DISTINCT application FROM scales ORDER BY application")
    (greatest,) = views.row(connection, "SELECT coalesce(max(scale), 0) FROM scales")
    kind = "BIGINT" if max(greatest, totals[1]) <= LARGEST else "HUGEINT"
    connection.execute(
        f"CREATE TEMP TABLE keyed AS SELECT process, scale::{kind} AS scale,"
        " (dense_rank() OVER (ORDER BY application) - 1)::INTEGER AS application FROM scales"
    )
    filters, values = filters_of(query, locations=True)
    chosen = ""
    if filters:
        connection.execute(
            f"CREATE TEMP TABLE chosen AS SELECT location FROM locations WHERE {' AND '.join(filters)}", values
        )
        chosen = "SEMI JOIN chosen USING (location)"
    connection.execute(
        "CREATE TEMP TABLE places AS SELECT application, location, stack, sum(taken)::HUGEINT AS samples,"
        " sum(count * scale)::HUGEINT AS value"
        f" FROM samples JOIN keyed USING (process) {chosen} WHERE event = ? GROUP BY ALL",
        [query.event],
    )
    many, *sums = views.row(connection, "SELECT count(*), sum(samples), sum(value) FROM places")
    if many > MOST_ROWS:
        raise QueryError(f"there are {many:,} places and call paths, more than {MOST_ROWS:,}; restrict the query")
    if tuple(int(total or 0) for total in sums) != totals:
        raise QueryError("the profile changed while it was read")
    kinds = ("BIGINT" if total <= LARGEST else "VARCHAR" for total in totals)
    amounts = (f"{name}::{kind} AS {name}" for name, kind in zip(("samples", "value"), kinds, strict=True))
    rows = connection.execute(
        f"SELECT application, location::BIGINT AS location, stack::BIGINT AS stack, {', '.join(amounts)}"
        " FROM places ORDER BY places.value DESC, application, location, stack"
    ).fetchnumpy()
    samples = np.array([int(count) for count in rows["samples"]], object) if totals[0] > LARGEST else rows["samples"]
    value = None if totals[1] > LARGEST else np.asarray(rows["value"])
    application, location, stack = (np.asarray(rows[name], np.int64) for name in ("application", "location", "stack"))
    return _Rows(applications, application, location, stack, np.asarray(samples), value)


def _paths(connection: duckdb.DuckDBPyConnection) -> _Paths:
    """Return the call paths of places, some of them after others."""
    connection.execute("CREATE TEMP TABLE sampled AS SELECT DISTINCT stack FROM places WHERE stack >= 0")
    first, last, rows = views.row(connection, "SELECT min(stack), max(stack), count(*) FROM stacks")
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))]
    step = -(-(last - first + 1) // -(-rows // _STEPS_AT_ONCE)) if rows else 1
    for least in range(first, last + 1, step) if rows else ():
        steps = connection.execute(
            "SELECT stack::BIGINT AS stack, depth, location FROM stacks SEMI JOIN sampled USING (stack)"
            " WHERE stack BETWEEN ? AND ? ORDER BY stack, depth",
            [least, least + step - 1],
        ).fetchnumpy()
        stack = np.asarray(steps["stack"])
        start = np.flatnonzero(np.append(True, stack[1:] != stack[:-1])[: len(stack)])
        parts.append((stack[start], np.diff(np.append(start, len(stack))), np.asarray(steps["location"])))
    return _Paths(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _places(connection: duckdb.DuckDBPyConnection) -> _Places:
    """Return all places, those that differ in nothing that formats have as one frame."""
    table: pa.Table = connection.sql(_PLACES).to_arrow_table()
    texts, names = {"": 0}, list[Ints]()
    for name in _TEXTS:
        coded = table[name].combine_chunks().dictionary_encode()
        places = [texts.setdefault(text, len(texts)) for text in coded.dictionary.to_pylist()]
        names.append(np.array(places, np.int64)[coded.indices.to_numpy(zero_copy_only=False)])
    lines = [table[name].to_numpy() for name in ("function_line", "line")]
    rows = pd.DataFrame(dict(enumerate([*names, *lines])))
    frame = np.asarray(rows.groupby(list(rows.columns), sort=False).ngroup().to_numpy(), np.int64)
    at = np.flatnonzero(~rows.duplicated().to_numpy(np.bool_))
    location = np.asarray(table["location"].to_numpy(), np.int64)
    return _Places(location, frame, tuple(texts), np.column_stack(names)[at], np.column_stack(lines)[at])


def _period(database: Database, event: str) -> int:
    """Return the period of an event, if it is the same on all platforms and in all collections, or else 1."""
    rates = database.table("rates")
    periods = rates.loc[rates["event"] == event, "period"].unique()
    return int(periods[0]) if len(periods) == 1 else 1


def _samples(rows: _Rows, paths: _Paths, places: _Places) -> tuple[FrameTable, SampleTable]:
    """Return frames in the order of the samples that have them first, and samples."""
    alone = rows.stack < 0
    leaves, leaf = np.unique(rows.location[alone], return_inverse=True)
    stack = np.empty(len(rows.stack), np.int64)
    stack[alone] = len(paths.stack) + leaf
    stack[~alone] = np.searchsorted(paths.stack, rows.stack[~alone])
    depths = np.append(paths.length, np.ones(len(leaves), np.int64))
    frames = places.frame[np.searchsorted(places.location, np.append(paths.location, leaves))]
    number, used = np.full(len(places.names), -1), 0
    table = SampleTable(
        stack,
        frames.astype(np.int32),
        depths,
        np.column_stack([rows.samples] if rows.value is None else [rows.samples, rows.value]),
        pd.factorize(rows.application)[0].astype(np.int64),
        ~alone,
    )
    for first in range(0, len(stack), _ROWS_AT_ONCE):
        within = table.frames_of(slice(first, first + _ROWS_AT_ONCE))
        fresh = pd.unique(within[number[within] < 0])
        number[fresh] = used + np.arange(len(fresh))
        used += len(fresh)
    order = np.argsort(number, kind="stable")[len(number) - used :]
    names, lines = places.names[order], places.lines[order]
    nothing, unknown = np.zeros(used, np.int64).tolist(), np.full(used, -1).tolist()
    return (
        FrameTable(places.texts, names, lines, nothing, unknown),
        replace(table, frames=number[table.frames].astype(np.int32)),
    )
