"""What a profile database holds of one event, as a profile for other tools: every place, with callers where known."""

from typing import Any

import duckdb

from analysis.profiling import views
from analysis.profiling.database import MEMORY_BYTES, MOST_ROWS, Database
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import find
from analysis.profiling.sums import PROCESSES, filters_of

_Rows = list[tuple[Any, ...]]
_COUNTERS = ("samples", "sample_count")
"""Measure that counts samples, and its name where an event is called so too."""
_STEPS = "SELECT s.stack, s.location FROM stacks s SEMI JOIN places USING (stack) ORDER BY s.stack, s.depth"
_PLACES = (
    "SELECT location, \"function\", l.image, coalesce(b.build_id, '') AS build_id, file, function_line, line"
    " FROM locations l LEFT JOIN builds b USING (build) ORDER BY location"
)


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
    >>> from analysis.profiling.formats.tables import to_tables, write_tables
    >>> frames, samples = (Frame("f"), Frame("main")), (Sample((0, 1), (30,)),)
    >>> tables = to_tables([ForeignProfile((Measure("cpu", "ns", 10),), frames, samples)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(tables, Path(folder))
    ...     with Database([Path(folder)]) as database:
    ...         extract(database, Query("cpu")).samples
    (Sample(stack=(0, 1), amounts=(3, 30), origin=0, chain=True, taken=()),)
    """
    samples, value = database.total(query)
    folders = find(database.paths)
    connection = views.connect(folders, MEMORY_BYTES, None)
    try:
        with views.understood(name):
            views.check_stacks(connection, folders)
            rows = _rows(connection, query)
            steps, places = connection.execute(_STEPS).fetchall(), connection.execute(_PLACES).fetchall()
    finally:
        connection.close()
    if (sum(row[-2] for row in rows), sum(row[-1] for row in rows)) != (samples, value):
        raise QueryError("the profile changed while it was read")
    events = [Measure(query.event, database.units()[query.event], _period(database, query.event))]
    notes: tuple[str, ...] = ()
    if value > LARGEST:
        events, notes = [], (f"{query.event} sums to {value}, more than 64 bits hold: samples only",)
    counter = _COUNTERS[query.event == _COUNTERS[0]]
    return _profile((Measure(counter), *events), (rows, steps, places), name, notes)


def _rows(connection: duckdb.DuckDBPyConnection, query: Query) -> _Rows:
    """Return application, location, stack (−1: none), samples and value; the greatest value first."""
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
    filters, values = filters_of(query, locations=True)
    connection.execute(
        f"CREATE TEMP TABLE chosen AS SELECT location FROM locations WHERE {' AND '.join(filters) or 'true'}", values
    )
    connection.execute(
        "CREATE TEMP TABLE places AS SELECT application, location, stack,"
        " sum(taken)::HUGEINT AS samples, sum(count::HUGEINT * scale)::HUGEINT AS value"
        " FROM samples JOIN scales USING (process) SEMI JOIN chosen USING (location) WHERE event = ? GROUP BY ALL",
        [query.event],
    )
    (many,) = views.row(connection, "SELECT count(*) FROM places")
    if many > MOST_ROWS:
        raise QueryError(f"there are {many:,} places and call paths, more than {MOST_ROWS:,}; restrict the query")
    return connection.execute("SELECT * FROM places ORDER BY value DESC, application, location, stack").fetchall()


def _period(database: Database, event: str) -> int:
    """Return the period of an event, if it is the same on all platforms and in all collections, or else 1."""
    rates = database.table("rates")
    periods = rates.loc[rates["event"] == event, "period"].unique()
    return int(periods[0]) if len(periods) == 1 else 1


def _profile(
    measures: tuple[Measure, ...], tables: tuple[_Rows, _Rows, _Rows], name: str, notes: tuple[str, ...]
) -> ForeignProfile:
    rows, steps, places = tables
    paths: dict[int, list[int]] = {}
    for stack, location in steps:
        paths.setdefault(stack, []).append(location)
    known = {location: Frame(*rest) for location, *rest in places}
    frames: dict[Frame, int] = {}
    origins: dict[Origin, int] = {}
    samples = []
    for application, location, stack, *counts in rows:
        path = tuple(frames.setdefault(known[at], len(frames)) for at in paths.get(stack, [location]))
        origin = origins.setdefault(Origin(application), len(origins))
        samples.append(Sample(path, tuple(counts[: len(measures)]), origin, stack in paths))
    return ForeignProfile(
        measures, tuple(frames), tuple(samples), tuple(origins) or (Origin(),), name=name, notes=notes
    )
