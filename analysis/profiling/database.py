"""A profile as a database: samples summed by any dimensions, restricted by others, exact on any number of threads."""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.profiling import paths, views
from analysis.profiling.cache import AnswerCache
from analysis.profiling.cancellation import interruptible
from analysis.profiling.fleet_samples import VISITS, undrawn
from analysis.profiling.frames import AnyInts, BrokenStacksError
from analysis.profiling.query import (
    LABEL,
    LOCATION_DIMENSIONS,
    Query,
    QueryError,
    TooManyRowsError,
    UnknownValueError,
    dimension,
    is_label,
    of_process,
    restriction_text,
    unknown,
)
from analysis.profiling.shelf import give_back_memory
from analysis.profiling.storage import NEEDED, Identity, find, identity, origin_of
from analysis.profiling.sums import (
    PROCESSES,
    Sums,
    column,
    expression,
    frame,
    quoted,
    shares,
    sum_samples,
    summed,
)
from models.arrays import Ints
from models.tables import TABLES

if TYPE_CHECKING:
    from analysis.profiling.counted import CountedSamples
    from analysis.profiling.counted_rows import GreatestRows
    from analysis.profiling.differences import CodedAnswer, Difference
    from analysis.profiling.row_groups import SampleFile
    from analysis.profiling.sampled_stacks import SampledStacks

MEMORY_BYTES = 160_000_000
"""What DuckDB may hold without being asked for another limit; beyond it, intermediate results go to temporary files."""
MOST_ROWS = 2_000_000
"""Rows of an answer; a query that would have more is refused unless only its top is wanted."""

_MOST_AT_ONCE, _PER_PART = 1_000_000, 500_000
"""Rows of samples up to which an answer is never summed in parts, and rows that a part is of, about."""
_MANY_PAIRS = 30_000_000
"""Values of processes times those of locations up to which it is not either: beyond, DuckDB's table goes to disk."""

_T = TypeVar("_T")


class Database:
    """A profile that is asked: opened read-only on one or several profile directories, which are put together.

    Samples are summed as integers, so no answer depends on the number of threads; every answer has a total order, the
    greatest first and ties by their keys. Answers are kept until a file of the profile changes. Several threads may ask
    at once.

    Parameters
    ----------
    folders : profile directories: run directories of a profile, or folders with such tables
    memory_bytes : most that DuckDB may hold in memory
    threads : threads that work on a query; all processors without it

    Raises
    ------
    ProfileError
        With every fault of the folders and their tables.

    Examples
    --------
    >>> with Database([Path("nowhere")]) as database:
    ...     database.events()
    Traceback (most recent call last):
    analysis.profiling.storage.ProfileError: nowhere: is no folder
    """

    def __init__(self, folders: Sequence[Path], memory_bytes: int = MEMORY_BYTES, threads: int | None = None) -> None:
        self.paths = tuple(Path(folder) for folder in folders)
        self._memory_bytes, self._threads = memory_bytes, threads
        self._lock = threading.RLock()
        self._answers = AnswerCache()
        self._checked: Identity | None = None
        """The state of the files in which their call paths were checked."""
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and forget all answers."""
        self._answers.clear()
        self._connection.close()

    @property
    def identity(self) -> Identity:
        """Path, bytes and time of last change of every file; answers hold as long as it stays the same."""
        return self._identity

    @property
    def origin_s(self) -> float | None:
        """From when times count, in seconds since 1970; none: a simulated run, or files that do not say it."""
        return self._origin_s

    def events(self) -> list[str]:
        """Return the events that have samples, in alphabetical order."""
        return self._answered(("events",), self._events)

    def units(self) -> dict[str, str]:
        """Return what each event with a rate counts: events, bytes, nanoseconds, threads."""
        rows = "SELECT event, min(unit) FROM rates GROUP BY event ORDER BY event"
        return self._answered(("units",), lambda cursor: dict(cursor.execute(rows).fetchall()))

    def labels(self) -> list[str]:
        """Return the labels of the files' own, in alphabetical order; each is a dimension, `label.` before its name."""
        return self._answered(("labels",), lambda cursor: column(cursor, "SELECT DISTINCT key FROM labels ORDER BY 1"))

    def with_stacks(self) -> list[str]:
        """Return the events of which samples have call paths, in alphabetical order."""
        # One of an event is soon found, or from the bounds of row groups it is clear that there is none.
        any_of = "SELECT event FROM samples WHERE event = ? AND stack >= 0 AND count > 0 LIMIT 1"
        events = self.events()
        return self._answered(
            ("with stacks",), lambda cursor: [name for event in events for name in column(cursor, any_of, event)]
        )

    def values(self, name: str, limit: int = 10_000) -> list[str]:
        """Return the values of a dimension as text, in order, sampled or not.

        Parameters
        ----------
        name : a dimension
        limit : most values that are returned

        Raises
        ------
        QueryError
            If there is no such dimension.
        """
        own = dimension(name)
        distinct = f"SELECT DISTINCT {expression(own)} AS value FROM {_source(own)}"
        rows = f"SELECT value::VARCHAR FROM ({distinct}) ORDER BY value LIMIT ?"
        return self._answered(("values", own, limit), lambda cursor: column(cursor, rows, limit))

    def query(self, query: Query, top: int | None = None) -> pd.DataFrame:
        """Sum the samples of a query by its dimensions.

        Parameters
        ----------
        query : what is asked
        top : only so many rows, the greatest; totals and shares are over everything

        Returns
        -------
        DataFrame
            The dimensions under their own names, `samples`, `value` (Σ count × period × duty × weight, in events of the
            fleet) and `share` of everything that the restrictions leave; the greatest value first, ties by the keys.

        Raises
        ------
        QueryError
            If the event or a value of a restriction is not in the profile, or there would be too many rows.
        ProfileError
            If samples lack a rate, or sums are too large.
        """
        check_top(top)
        self._check(query)
        if top is not None and isinstance(whole := self._kept(("query", query, None)), pd.DataFrame):
            return whole.head(top)

        def ask(cursor: duckdb.DuckDBPyConnection, state: Identity) -> pd.DataFrame:
            if top is not None and (greatest := self._greatest(cursor, query, top)):
                table, total, rows = greatest.table, (greatest.samples, greatest.value), greatest.rows
            else:
                table, sums = self._table(cursor, query, top)
                total, rows = (sums.samples, sums.value), _groups(cursor)
            self._answers.put(state, ("total", replace(query, by=())), total)
            self._answers.put(state, ("rows", query), rows)
            return table

        return self._answered_under(("query", query, top), ask)

    def row_count(self, query: Query) -> int:
        """Return how many rows the whole answer to a query has; nothing is summed if it was asked before.

        Raises
        ------
        QueryError, ProfileError
            As `query` does.
        """
        self._check(query)

        def count(cursor: duckdb.DuckDBPyConnection) -> int:
            self._sums(cursor, query)
            return _groups(cursor)

        return self._answered(("rows", query), count)

    def pair_count(self, by: Sequence[str]) -> int:
        """Return how many pairs there are of values of processes' and of locations' dimensions, sampled or not.

        Parameters
        ----------
        by : dimensions; of one kind alone, it is how many combinations of their values there are
        """
        return self._answered(("pairs", tuple(by)), lambda cursor: _pairs(cursor, by))

    def total(self, query: Query, other: "Database | None" = None) -> tuple[int, int]:
        """Return samples and value of everything that a query's restrictions leave.

        Parameters
        ----------
        query : what is asked; its dimensions do not matter
        other : a second database; names that are only in that one have a total of 0 here and are no fault

        Raises
        ------
        QueryError, ProfileError
            As `query` does.
        """
        self._check(query, (self, other or self))
        apart = replace(query, by=VISITS)

        def totals(cursor: duckdb.DuckDBPyConnection, state: Identity) -> tuple[int, int]:
            sums = self._sums(cursor, apart)
            if _groups(cursor) <= MOST_ROWS:
                # Whoever asks for the total next asks which visits it is of: samples are summed once.
                self._answers.put(state, ("query", apart, None), self._rows(cursor, apart, sums, None))
            return sums.samples, sums.value

        return self._answered_under(("total", replace(query, by=())), totals)

    def diff(self, a: Query, b: Query, other: "Database | None" = None) -> pd.DataFrame:
        """Compare two queries of the same event and dimensions.

        Parameters
        ----------
        a, b : the two queries
        other : the database that `b` is asked of; the same one without it

        Returns
        -------
        DataFrame
            The dimensions, `value_a`, `value_b`, `share_a`, `share_b` and `change` = share_b − share_a; 0 where
            there is nothing. The greatest change in either direction first, ties by the keys.

        Raises
        ------
        QueryError
            If the queries differ in event or dimensions, or cannot be answered.
        """
        difference = self.difference(a, b, other)
        return difference.table(difference.greatest(difference.change, len(difference)))

    def difference(self, a: Query, b: Query, other: "Database | None" = None) -> "Difference":
        """Return what `diff` does in numbers, of which some rows can be named.

        Parameters
        ----------
        a, b, other : as of `diff`

        Raises
        ------
        QueryError
            As `diff` does.
        """
        from analysis.profiling.differences import Difference

        if (a.event, a.by) != (b.event, b.by):
            raise QueryError("a difference needs two queries of one event, by the same dimensions")
        second = other or self
        both = (self, second)
        for query in (a, b):
            self._check(query, both)
        sides = []
        for database, query in ((self, a), (second, b)):
            sides.append(database._answered(("coded", query), partial(database._coded, query)))
            give_back_memory()
        return Difference.of(sides[0], sides[1], a.by)

    def _coded(self, query: Query, cursor: duckdb.DuckDBPyConnection) -> "CodedAnswer":
        """Return the rows of an answer with numbers for their names."""
        from analysis.profiling.differences import CodedAnswer, CodedKeys

        sums = self._sums(cursor, query)
        refuse_many(_groups(cursor), "a difference needs all of them: restrict both sides, or ask for fewer dimensions")
        keys = "pkey::INTEGER AS pkey, lkey::INTEGER AS lkey"
        groups = summed(cursor, sums, f"SELECT {keys}, {sums.numbers('0')} FROM groups")
        value = groups.pop("value").to_numpy()
        tables, numbers = [], []
        for key, table, of_kind in (("pkey", "process_keys", True), ("lkey", "location_keys", False)):
            names = [name for name in query.by if of_process(name) == of_kind]
            named = frame(cursor, f"SELECT {', '.join((key, *map(quoted, names)))} FROM {table} ORDER BY {key}")
            first = named.pop(key).to_numpy(np.int32)[:1].sum(dtype=np.int32)
            numbers.append(groups.pop(key).to_numpy(np.int32) - first)
            tables.append(named)
        return CodedAnswer(CodedKeys(tables[0], tables[1], *numbers), value, sums.value)

    @property
    def rows(self) -> int:
        """Rows of samples, of all events."""
        return self._counts.rows

    def clustered(self, query: Query, cluster: str = "machine", rows: pd.DataFrame | None = None) -> pd.DataFrame:
        """Sum the samples of a query by its dimensions within each cluster, for error bars.

        Parameters
        ----------
        query : what is asked
        cluster : a dimension of processes that was drawn at random, such as `machine` or `visit`
        rows : the query's dimensions, of the rows that are wanted; none: all

        Returns
        -------
        DataFrame
            The dimensions, the cluster, `samples`, `value`; the greatest value first.

        Raises
        ------
        QueryError
            As `query` does, and if the cluster is already one of the query's dimensions or belongs to locations.
        """
        own = dimension(cluster)
        if own in LOCATION_DIMENSIONS or own in query.by:
            raise QueryError(f"clusters should be of another dimension of processes, got {own}")
        self._check(query)
        wide = replace(query, by=(*query.by, own))
        if rows is None:
            return self.query(wide).drop(columns="share")
        some = rows[list(query.by)]
        question = "clustered", wide, tuple(some.itertuples(index=False, name=None))
        table = self._answered(question, lambda cursor: self._rows(cursor, wide, self._sums(cursor, wide), None, some))
        refuse_many(len(table))
        return table.drop(columns="share")

    def clustered_apart(
        self, query: Query, apart: str, cluster: str = "machine"
    ) -> "Iterator[tuple[str, pd.DataFrame]]":
        """Yield what `clustered` returns for each value of a dimension of processes; one at a time is in memory.

        Parameters
        ----------
        query, cluster : as of `clustered`, with one dimension of locations
        apart : a dimension of processes that is not one of the query's

        Yields
        ------
        str, DataFrame
            The value, in order; the query's dimension, the cluster, `samples`, `value` above 0, in no order that
            matters.

        Raises
        ------
        QueryError
            As `clustered` does.
        """
        from analysis.profiling.counted import clusters_apart

        own = dimension(cluster)
        if own in LOCATION_DIMENSIONS or own in (*query.by, apart):
            raise QueryError(f"clusters should be of another dimension of processes, got {own}")
        wide = replace(query, by=(apart, *query.by, own))
        yield from clusters_apart(self.counted(wide, lambda keys: pd.factorize(keys[apart], sort=True)[0]), apart, own)

    def counted(
        self, query: Query, part_of: Callable[[pd.DataFrame], Ints], *, stacks: bool = False
    ) -> "CountedSamples":
        """Sum the samples of a query by its dimensions, however many rows that are; the sums are not kept.

        Parameters
        ----------
        query : what is asked
        part_of, stacks : as of `analysis.profiling.counted.count_samples`

        Raises
        ------
        QueryError, ProfileError
            As `query` does.
        """
        from analysis.profiling.counted import count_samples

        def count(cursor: duckdb.DuckDBPyConnection) -> "CountedSamples":
            return count_samples(cursor, query, self._counts, part_of, self._files(), stacks=stacks)

        self._check(query)
        return self._answered_under(None, self._with_stacks(count)) if stacks else self._answered(None, count)

    def undrawn(self, query: Query) -> str:
        """Return why a query's samples are not a random sample of machines; nothing if they are one."""
        return undrawn(self, query)

    def stacks(self, query: Query, top: int | None = None) -> pd.DataFrame:
        """Sum the samples that have call paths by path.

        Parameters
        ----------
        query : what is asked; its dimensions do not matter, and restrictions on locations are on the sampled one
        top : only so many paths, the greatest

        Returns
        -------
        DataFrame
            `path` (names of functions, the outermost first), `samples`, `value`; greatest value first.

        Raises
        ------
        QueryError, ProfileError
            As `query` does, and if call paths refer to nothing.
        """
        return self._of_stacks(
            "stacks", replace(query, by=()), lambda cursor, sums: paths.paths(cursor, sums, top), top
        )

    def inclusive(self, query: Query, top: int | None = None, *, apart: Sequence[str] = ()) -> pd.DataFrame:
        """Sum the samples that have call paths by each function on the path, once per path.

        Parameters
        ----------
        query : as in `stacks`
        top : only so many functions, the greatest
        apart : dimensions of processes that stay apart

        Returns
        -------
        DataFrame
            These dimensions, `function`, `samples`, `value`, `share` of all samples with call paths, and `own`, the
            value of samples in the function itself.

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does.
        """
        bare = replace(query, by=tuple(apart))
        return self._of_stacks("inclusive", bare, lambda cursor, sums: paths.inclusive(cursor, sums, top), top)

    def edges(self, query: Query, top: int | None = None, *, apart: Sequence[str] = ()) -> pd.DataFrame:
        """Sum the samples that have call paths by each call on the path, once per path.

        Parameters
        ----------
        query : as in `stacks`
        top : only so many calls, the greatest
        apart : dimensions of processes that stay apart

        Returns
        -------
        DataFrame
            These dimensions, `caller`, `function`, `samples`, `value`; the greatest value first.

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does.
        """
        bare = replace(query, by=tuple(apart))
        return self._of_stacks("edges", bare, lambda cursor, sums: paths.edges(cursor, sums, top), top)

    def graph(self, query: Query, most: int, *, apart: Sequence[str] = ()) -> tuple[pd.DataFrame, int, pd.DataFrame]:
        """Return the greatest `edges`, how many there are, and all functions; samples are summed once.

        Parameters
        ----------
        query, apart : as in `edges`
        most : so many edges, and those that are as great as the last of them

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does.
        """
        bare = replace(query, by=tuple(apart))

        def ask(cursor: duckdb.DuckDBPyConnection, sums: "SampledStacks") -> pd.DataFrame:
            edges, count = paths.graph(cursor, sums, most)
            return edges.assign(of=count)

        edges = self._of_stacks(f"graph {most}", bare, ask, None)
        functions = self.inclusive(query, apart=apart)
        return edges.drop(columns="of"), int(edges["of"].max()) if len(edges) else 0, functions

    def stack_sums(
        self, query: Query, *, alone: bool = False, span: tuple[int, int] | None = None, most: int | None = None
    ) -> "SampledStacks":
        """Sum the samples of a query by call path, and by its dimensions of processes.

        Parameters
        ----------
        query, alone, span, most : as of `analysis.profiling.sampled_stacks.sum_stacks`

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does, and if there are more rows than `most`.
        """
        self._check(query)
        return self._answered_under(
            None,
            self._with_stacks(lambda cursor: self._sum_stacks(cursor, query, alone=alone, span=span, most=most)),
        )

    def _sum_stacks(
        self,
        cursor: duckdb.DuckDBPyConnection,
        query: Query,
        *,
        alone: bool = False,
        apart: Ints | None = None,
        span: tuple[int, int] | None = None,
        most: int | None = None,
    ) -> "SampledStacks":
        from analysis.profiling.sampled_stacks import sum_stacks

        files = self._files()
        sums = sum_stacks(cursor, query, self._counts, files, alone=alone, apart=apart, span=span, most=most)
        give_back_memory()
        return sums

    def stack_numbers(self) -> tuple[int, int, int, int]:
        """Return the least and the greatest number plus 1 of stacks as `stack_sums` has them, stacks, and frames."""
        rows = (
            "SELECT -1 - coalesce((SELECT max(location) FROM locations), -1)::BIGINT,"
            " coalesce(max(stack), -1)::BIGINT + 1, count(*) FILTER (depth = 0), count(*) FROM stacks"
        )
        return self._answered(("stack numbers",), lambda cursor: views.row(cursor, rows))

    def stack_edges(self, span: tuple[int, int], parts: int) -> list[int]:
        """Return the numbers that divide the stacks of a span into parts of as many each, rising.

        Parameters
        ----------
        span : the first number, and the one after the last
        parts : how many; there may be fewer edges than parts less one
        """
        fractions = ", ".join(str(at / parts) for at in range(1, parts))
        rows = f"SELECT DISTINCT unnest(quantile_disc(stack, [{fractions}]))::BIGINT AS edge FROM stacks"
        where = f"WHERE depth = 0 AND stack > {span[0]} AND stack < {span[1]} ORDER BY edge"
        return self._answered(None, lambda cursor: column(cursor, f"{rows} {where}"))

    def locations_on(self, stacks: Ints) -> tuple[Ints, AnyInts]:
        """Return how many frames each stack has, and which place of `code` each is, from the place sampled on.

        Parameters
        ----------
        stacks : (P,) numbers, rising

        Raises
        ------
        ProfileError
            If call paths refer to nothing.
        """
        return self._answered_under(None, self._with_stacks(lambda cursor: paths.locations_on(cursor, stacks)))

    def code(self) -> pa.Table:
        """Return all places in the code: location, function, image, build_id, file, function_line, line; in order."""
        rows = (
            "SELECT location::BIGINT AS location, \"function\", l.image, coalesce(b.build_id, '') AS build_id, file,"
            " function_line::BIGINT AS function_line, line::BIGINT AS line"
            " FROM locations l LEFT JOIN builds b USING (build) ORDER BY location"
        )
        return self._answered(None, lambda cursor: cursor.sql(rows).to_arrow_table())

    def frames_on(self, stacks: Ints, room: int = 0) -> tuple[list[str], Ints, AnyInts]:
        """Return names of all functions, where those of each stack begin, and which, from the outermost on.

        Parameters
        ----------
        stacks : (P,) numbers, rising
        room : for so many frames before those of each stack, −1

        Raises
        ------
        ProfileError
            If call paths refer to nothing.
        """
        return self._answered_under(None, self._with_stacks(lambda cursor: paths.frames_on(cursor, stacks, room)))

    def callers(self, function: str, query: Query) -> pd.DataFrame:
        """Sum the samples whose call path has a function by who called it.

        Parameters
        ----------
        function : name of the function called
        query : as in `stacks`, but its dimensions of processes stay apart

        Returns
        -------
        DataFrame
            The query's dimensions of processes, `caller` ([root] where nothing called it), `samples`, `value`; each
            caller once per path.

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does, and if there is no such function.
        """
        try:
            self._check(Query(query.event).restricted("function", function))
        except UnknownValueError as error:
            raise QueryError(str(error)) from None
        by_process = replace(query, by=tuple(filter(of_process, query.by)))
        return self._of_stacks(
            f"callers {function}",
            by_process,
            lambda cursor, sums: paths.callers(cursor, sums, function),
            None,
            function,
        )

    def images_of(self, function: str) -> tuple[str, ...]:
        """Return the images that have code of a function, sampled itself or only on call paths."""
        rows = 'SELECT DISTINCT image FROM locations WHERE "function" = ? ORDER BY image'
        return tuple(self._answered(("images_of", function), lambda cursor: column(cursor, rows, function)))

    def places(self) -> pd.DataFrame:
        """Return where each function is: function, images (how many have it), and image, file and line of the first."""
        first = ", ".join(
            f"arg_min({name}, location) AS {told}"
            for name, told in (("image", "image"), ("file", "file"), ("function_line", "line"))
        )
        rows = f'SELECT "function", count(DISTINCT image) AS images, {first} FROM locations GROUP BY 1 ORDER BY 1'
        return self._answered(("places",), lambda cursor: frame(cursor, rows))

    def named(self, query: Query, images: Sequence[str]) -> pd.DataFrame:
        """Sum the samples that have call paths by whether a frame of these images on the path has a name.

        Parameters
        ----------
        query : as in `stacks`, but its dimensions of processes stay apart
        images : whose frames are looked at

        Returns
        -------
        DataFrame
            These dimensions, `named`, `samples`, `value`; a path that has frames of both kinds counts for both.

        Raises
        ------
        QueryError, ProfileError
            As `stacks` does.
        """
        kind = "named " + "\0".join(images)
        return self._of_stacks(kind, query, lambda cursor, sums: paths.named(cursor, sums, images), None)

    def table(self, name: str) -> pd.DataFrame:
        """Return a table as it is, of all folders; numbers of later folders are shifted as in queries.

        Raises
        ------
        QueryError
            If there is no such table, it holds the truth, or it is too long to be returned.
        """
        names = sorted({table for folder in self._folders for table in folder.tables})
        if name not in names:
            raise QueryError(f"this profile has no table {name}" if name in TABLES else unknown("table", name, names))
        having = [(number, folder) for number, folder in enumerate(self._folders) if name in folder.tables]
        rows = sum(folder.rows(name) for _, folder in having)
        if rows > MOST_ROWS:
            raise QueryError(f"table {name} has {rows:,} rows, more than {MOST_ROWS:,}; query it instead")
        columns = ", ".join(f'"{column.name}"' for column in TABLES[name]) if name in NEEDED else "*"
        sources = [name] if name in NEEDED else [f"{name}_{number}" for number, _ in having]
        rows_of = " UNION ALL BY NAME ".join(f"SELECT {columns} FROM {source}" for source in sources)
        return self._answered(("table", name), lambda cursor: frame(cursor, rows_of))

    def _events(self, cursor: duckdb.DuckDBPyConnection) -> list[str]:
        """Return the events of the samples, from the files' footers if these say them."""
        known = [folder.events() for folder in self._folders]
        if None in known:
            return column(cursor, "SELECT DISTINCT event FROM samples ORDER BY 1")
        return sorted(set[str]().union(*(events for events in known if events is not None)))

    def _files(self) -> list["SampleFile"]:
        """Return the files of samples."""
        from analysis.profiling.row_groups import SampleFile

        shifts = zip(self._folders, self._shifts, strict=True)
        return [SampleFile(folder.file("samples"), by["process"], by["location"], by["stack"]) for folder, by in shifts]

    def _open(self) -> None:
        self._folders = find(self.paths)
        self._identity = identity(self._folders)
        self._origin_s = origin_of(self._folders)
        self._connection = views.connect(self._folders, self._memory_bytes, self._threads)
        with views.understood(self._named):
            self._counts = views.counts(self._connection, self._folders)
            self._shifts = views.shifts(self._connection, self._folders)

    @property
    def _named(self) -> str:
        return ", ".join(map(str, self.paths))

    def _answered(self, question: Hashable, ask: Callable[[duckdb.DuckDBPyConnection], _T]) -> _T:
        """Return a kept answer, or ask on a cursor of its own and keep the answer, unless the question is None."""
        return self._answered_under(question, lambda cursor, _: ask(cursor))

    def _answered_under(self, question: Hashable, ask: Callable[[duckdb.DuckDBPyConnection, Identity], _T]) -> _T:
        """Do as `_answered`; what is asked gets the state of the files, under which alone it may keep more answers."""
        with self._lock:
            if identity(self._folders) != self._identity:
                self._answers.clear()
                self._open()
            current = self._identity
            cached = None if question is None else self._answers.get(current, question)
            if cached is not None:
                return cast("_T", cached)
            cursor = self._connection.cursor()
        with views.understood(self._named):
            try:
                with interruptible(cursor):
                    answer = ask(cursor, current)
            finally:
                cursor.close()
        if question is not None:
            self._answers.put(current, question, answer)
        return answer

    def _check(self, query: Query, databases: "Sequence[Database]" = ()) -> None:
        """Refuse an event or a value that is in none of the databases."""
        searched = databases or (self,)
        faults = []
        for name in dict.fromkeys((*query.by, *(name for name, _ in query.where))):
            known = sorted({label for database in searched for label in database.labels()})
            if is_label(name) and name.removeprefix(LABEL) not in known:
                faults.append(unknown("label", name.removeprefix(LABEL), known))
        if faults:
            raise QueryError("\n".join(faults))
        if not any(query.event in database.units() for database in searched):
            known = sorted({event for database in searched for event in database.events()})
            faults += [] if query.event in known else [unknown("event", query.event, known)]
        values_only = not faults
        for name, values in query.where:
            missing = set.intersection(*(database._missing(name, values) for database in searched))
            if missing:
                known = sorted({near for database in searched for near in database.values(name)})
                faults += [unknown(name, value, known) for value in values if value in missing]
        if faults:
            raise (UnknownValueError if values_only else QueryError)("\n".join(faults))

    def _missing(self, name: str, values: tuple[str, ...]) -> set[str]:
        """Return which of the values a dimension does not have."""
        values_of = f"SELECT ({expression(name)})::VARCHAR AS value FROM {_source(name)}"
        rows = f"SELECT value FROM (SELECT unnest(?) AS value) ANTI JOIN ({values_of}) USING (value)"
        return set(self._answered(("missing", name, values), lambda cursor: column(cursor, rows, list(values))))

    def _kept(self, question: Hashable) -> object | None:
        """Return an answer that is kept, if it still holds."""
        with self._lock:
            return self._answers.get(identity(self._folders), question)

    def _sums(self, cursor: duckdb.DuckDBPyConnection, query: Query) -> Sums:
        return sum_samples(cursor, query, self._counts)

    def _greatest(self, cursor: duckdb.DuckDBPyConnection, query: Query, top: int) -> "GreatestRows | None":
        """Return the greatest rows where there may be so many that DuckDB would put them on disk; else None."""
        kinds = {of_process(name) for name in query.by}
        if self.rows <= _MOST_AT_ONCE or len(kinds) < 2 or _pairs(cursor, query.by) < _MANY_PAIRS:
            return None
        from analysis.profiling.counted import count_samples
        from analysis.profiling.counted_rows import greatest_rows, parts_of

        part_of = parts_of(query.by, max(1, self.rows // _PER_PART))
        # DuckDB names the same tables where sums turn out not to be exact.
        with closing(cursor.cursor()) as own:
            return greatest_rows(count_samples(own, query, self._counts, part_of, self._files()), query.by, top)

    def _table(self, cursor: duckdb.DuckDBPyConnection, query: Query, top: int | None) -> tuple[pd.DataFrame, Sums]:
        sums = self._sums(cursor, query)
        if top is None:
            refuse_many(_groups(cursor))
        return self._rows(cursor, query, sums, top), sums

    def _rows(
        self,
        cursor: duckdb.DuckDBPyConnection,
        query: Query,
        sums: Sums,
        top: int | None,
        some: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Return the greatest rows; or of all, those that have the values of some dimensions."""
        names = quoted(*query.by)
        values, among = list[list[str]](), ""
        if some is not None:
            values = [list(map(restriction_text, some[name])) for name in some]
            own = ", ".join(f"({quoted(str(name))})::VARCHAR" for name in some)
            among = f"WHERE ({own}) IN (SELECT {', '.join('unnest(?)' for _ in values)})"
        order = ", ".join(("value DESC", *map(quoted, query.by)))
        rows = summed(
            cursor,
            sums,
            f"SELECT {names + ', ' if names else ''}{sums.numbers('g.samples', 'g.value')}"
            " FROM groups g JOIN process_keys USING (pkey) JOIN location_keys USING (lkey)"
            f" {among} ORDER BY g.{order} LIMIT ?",
            *values,
            MOST_ROWS + 1 if top is None else top,
        )
        return rows.assign(share=shares(rows["value"], sums.value))

    def _of_stacks(
        self,
        kind: str,
        query: Query,
        ask: "Callable[[duckdb.DuckDBPyConnection, SampledStacks], _T]",
        top: int | None,
        function: str | None = None,
    ) -> _T:
        """Answer a question to sums of samples; where only stacks with a function matter, the others may be as one."""
        check_top(top)
        self._check(query)

        def answer(cursor: duckdb.DuckDBPyConnection, state: Identity) -> _T:
            sums = self._answers.get(state, ("sampled stacks", query))
            if sums is None and query.by and function is not None:  # by stack and key, sums are many
                sums = self._sum_stacks(cursor, query, apart=paths.stacks_with(cursor, function))
            elif sums is None:
                sums = self._sum_stacks(cursor, query)
                self._answers.put(state, ("sampled stacks", query), sums)
            return ask(cursor, cast("SampledStacks", sums))

        return self._answered_under((kind, query, top), self._checking(answer))

    def _with_stacks(
        self, ask: Callable[[duckdb.DuckDBPyConnection], _T]
    ) -> Callable[[duckdb.DuckDBPyConnection, Identity], _T]:
        """Do as `_checking`, for a question that keeps no further answers."""
        return self._checking(lambda cursor, _: ask(cursor))

    def _checking(
        self, ask: Callable[[duckdb.DuckDBPyConnection, Identity], _T]
    ) -> Callable[[duckdb.DuckDBPyConnection, Identity], _T]:
        """Return a question to call paths, which are checked before, and whole where they are found to be broken."""

        def answer(cursor: duckdb.DuckDBPyConnection, state: Identity) -> _T:
            if self._checked != state:
                views.check_stacks(cursor, self._folders, frames=False)
                self._checked = state
            try:
                return ask(cursor, state)
            except BrokenStacksError:
                views.check_stacks(cursor, self._folders)
                raise

        return answer


def _source(name: str) -> str:
    """Return the tables over which a dimension is an expression."""
    return PROCESSES if of_process(name) else "locations"


def _pairs(cursor: duckdb.DuckDBPyConnection, by: Sequence[str]) -> int:
    """Return the product of how many values processes and locations have of the dimensions."""
    pairs = 1
    for process in (True, False):
        values = [expression(name) for name in by if of_process(name) == process]
        if not values:
            continue
        rows = f"SELECT DISTINCT {', '.join(values)} FROM {PROCESSES if process else 'locations'}"
        pairs *= int(column(cursor, f"SELECT count(*) FROM ({rows})")[0])
    return pairs


def check_top(top: int | None) -> None:
    """Refuse a number of rows that no answer can have.

    Raises
    ------
    QueryError
        If it is below 1 or above `MOST_ROWS`.
    """
    if top is not None and not 1 <= top <= MOST_ROWS:
        raise QueryError(f"top should be from 1 to {MOST_ROWS:,}, got {top:,}")


def refuse_many(rows: int, cure: str = "ask for the top, or for fewer dimensions") -> None:
    """Refuse an answer that would have too many rows.

    Parameters
    ----------
    rows : how many
    cure : what would have an answer

    Raises
    ------
    TooManyRowsError
        If it would have more than `MOST_ROWS`.
    """
    if rows > MOST_ROWS:
        raise TooManyRowsError(f"the answer would have {rows:,} rows, more than {MOST_ROWS:,}; {cure}")


def _groups(cursor: duckdb.DuckDBPyConnection) -> int:
    """Return how many rows an answer has."""
    return int(column(cursor, "SELECT count(*) FROM groups")[0])
