"""Measurements summed to one observation for each instance's stay and period, on disk where memory is too small."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pandas as pd
import pyarrow as pa

from analysis.tables.columns import Field
from analysis.traces.layouts import Format
from analysis.traces.measurements import REQUESTS, SCHEMA

MEMORY_BYTES = 240_000_000
"""What DuckDB may hold; what is more goes to the folder for temporary files."""
MACHINES = (
    Field("machine", "text"),
    Field("treated", "flag", required=False),
    Field("since_s", "real", above_zero=False, required=False, may_be_empty=True),
    Field("until_s", "real", above_zero=False, required=False, may_be_empty=True),
    Field("clock_hz", "real", required=False, may_be_empty=True),
    Field("platform", "text", required=False),
    Field("rack", "text", required=False),
)
"""What a fleet's owner may know of machines; times are the trace's, in seconds."""

_KEY = "machine, instance, start_us, cpu"
"""What no two measurements have in common, if none was written twice."""
_ROWS = f"""
CREATE TABLE rows AS
SELECT hash({_KEY}) AS mark, * FROM measured
"""
_MARKS = "CREATE TABLE marks AS SELECT mark FROM rows GROUP BY mark HAVING count(*) > 1"
_MARKED = "CREATE TABLE marked AS SELECT DISTINCT * FROM rows WHERE mark IN (FROM marks)"
_COPIES = "SELECT (SELECT count(*) FROM rows WHERE mark IN (FROM marks)) - (SELECT count(*) FROM marked)"
_DIFFERING = f"""
SELECT coalesce(sum(n), 0) FROM
(SELECT count(*) AS n FROM marked WHERE {{told}} GROUP BY {_KEY} HAVING n > 1)
"""
_DIFFER = "rows that differ from another of the same instance, machine and time, all of them summed"
_SUMS = """
CREATE TABLE sums AS
SELECT period, any_value(job) AS own_job, machine, instance, {present}(present_us) AS present_us,
       sum(cpu_ns) AS cpu_ns, sum(counted_ns) AS counted_ns, sum(work_ns) AS work_ns, sum(cycles) AS cycles,
       sum(misses) AS misses
FROM (FROM rows WHERE mark NOT IN (FROM marks) UNION ALL FROM marked) GROUP BY period, machine, instance
"""
_ASKED = """
CREATE TABLE asked AS
SELECT instance, min(job) AS asked_job, max(request_n) AS request_n, count(DISTINCT job) AS jobs
FROM requested GROUP BY instance
"""
_STAYS = """
CREATE VIEW stays AS
SELECT sums.*, coalesce(own_job, asked_job) AS job, request_n, treated, clock_hz,
       coalesce(platform, 'unknown') AS platform, coalesce(rack, 'unknown') AS rack,
       CASE WHEN coalesce(treated, 0) = 0 OR until_s <= period * {length} OR since_s >= (period + 1) * {length} THEN 0
            WHEN since_s <= period * {length} AND until_s >= (period + 1) * {length} THEN 1 END AS has,
       {weighed} AS weighed
FROM sums LEFT JOIN asked USING (instance) LEFT JOIN known USING (machine)
"""
_BY_REQUEST = "request_n::HUGEINT * present_us"
_BY_USE = "cpu_ns * 1000000"
_BY_CLOCK = "cpu_ns::HUGEINT * 1000000 * 1000000000 // clock_hz::HUGEINT"
"""Weight times time present, in billionths of a CPU times microseconds."""
_OBSERVATIONS = """
SELECT (period * {length})::DOUBLE AS period, job, machine, weighed::DOUBLE / present_us::DOUBLE / 1e9 AS weight,
       work_ns::DOUBLE / {per}::DOUBLE {clock} AS value, has::BIGINT AS treated, instance, {more}
FROM stays WHERE {usable} ORDER BY stays.period, job, machine, instance
"""
_JOBS = """
SELECT job, sum(weighed)::DOUBLE / 1e9 / {span} AS quota, count(DISTINCT instance) AS instances
FROM stays WHERE job IS NOT NULL AND weighed > 0 GROUP BY job ORDER BY job
"""


class TraceTotals:
    """The sums of a trace's measurements by period, machine and instance, and what is known of instances and machines.

    All sums are of whole numbers, so nothing depends on the order of rows or on threads.

    Parameters
    ----------
    form : the trace's format
    period_us : length of periods
    folder : for what does not fit into memory
    memory_bytes : most that DuckDB holds in memory

    Examples
    --------
    >>> import tempfile
    >>> from analysis.traces.layouts import FORMATS
    >>> row = [0, 0, "", "7", "m", "7/0", 300_000_000, 30_000_000_000, 30_000_000_000, 15_000_000_000, None, None]
    >>> batch = pa.record_batch([pa.array([cell], column.type) for cell, column in zip(row, SCHEMA)], SCHEMA)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TraceTotals(FORMATS["google2011"], 3_600_000_000, Path(folder)) as totals:
    ...         totals.take([batch], None, None)
    ...         totals.observations().read_pandas()[["period", "job", "weight", "value", "cpu_s"]]
       period job  weight  value  cpu_s
    0     0.0   7     0.1    0.5   30.0
    """

    def __init__(self, form: Format, period_us: int, folder: Path, memory_bytes: int = MEMORY_BYTES) -> None:
        self._form, self._length = form, f"{period_us / 1e6!r}"
        self._period_us = period_us
        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{memory_bytes}B",
                "temp_directory": str(folder),
                "preserve_insertion_order": "false",
            }
        )
        self._known = set[str]()
        self.copies = self._differing = 0
        """Rows that were left out because they repeat another of the same instance, machine and time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def take(
        self,
        measured: Iterable[pa.RecordBatch],
        requested: Iterable[pa.RecordBatch] | None,
        machines: pd.DataFrame | None,
    ) -> None:
        """Sum measurements, and keep what instances asked for and what is known of machines.

        Parameters
        ----------
        measured : in the schema of `analysis.traces.measurements.SCHEMA`
        requested : in that of `REQUESTS`; None: instances weigh by the CPU time that they use
        machines : columns of `MACHINES`, one row each

        Raises
        ------
        Exception
            Whatever the iterables raise.
        """
        self._create(_ROWS, measured=(SCHEMA, measured))
        for statement in (_MARKS, _MARKED, _SUMS.format(present="max" if self._form.counted else "sum")):
            self._connection.execute(statement)
        told = "cpu <> ''" if self._form.counted else "true"
        self.copies = self._row(_COPIES)[0]
        self._differing = self._row(_DIFFERING.format(told=told))[0]
        for table in ("rows", "marks", "marked"):  # their room is needed
            self._connection.execute(f"DROP TABLE {table}")
        self._create(_ASKED, requested=(REQUESTS, requested or []))
        known = pd.DataFrame({"machine": pd.Series(dtype=object)}) if machines is None else machines
        self._known = {str(name) for name in known.columns}
        self._connection.register("given", pa.Table.from_pandas(_whole(known), _KNOWN, preserve_index=False))
        self._connection.execute("CREATE TABLE known AS SELECT * FROM given")
        by_use = _BY_CLOCK if self._form.counted and self.clocked else _BY_USE
        weighed = _BY_REQUEST if requested is not None and self._form.requested else by_use
        self._connection.execute(_STAYS.format(length=self._length, weighed=weighed))

    def observations(self) -> pa.RecordBatchReader:
        """Return the observations: columns of `analysis.effects.observations.FIELDS`, ordered, in batches."""
        query = _OBSERVATIONS.format(
            length=self._length,
            per="cycles" if self._form.counted and not self.clocked else "counted_ns",
            clock="* clock_hz" if self.clocked else "",
            more=", ".join(self._more()),
            usable=" AND ".join(self._usable()),
        )
        return self._connection.sql(query).to_arrow_reader()

    @property
    def clocked(self) -> bool:
        """Whether the machines' clocks are known, so that values are instructions per CPU second."""
        return "clock_hz" in self._known

    def _more(self) -> Iterator[str]:
        """Yield the columns that not every trace has, and those that depend on what is known of its machines."""
        if self._form.counted:
            yield f"cpu_ns::DOUBLE / {'clock_hz' if self.clocked else '1e9'} AS cpu_s"
            yield "cycles::DOUBLE AS cycles, misses::DOUBLE / work_ns::DOUBLE AS misses_per_instruction"
        else:
            cpu = "(cpu_ns * request_n)::DOUBLE / 1e9" if self._form.use_of_request else "cpu_ns::DOUBLE"
            yield f"present_us::DOUBLE / 1e6 AS present_s, {cpu} / 1e9 AS cpu_s"
        if self._form.numbered:
            yield "instance AS shard"
        if self.clocked:
            clock = "cycles::DOUBLE / counted_ns::DOUBLE * clock_hz" if self._form.counted else "clock_hz"
            yield f"{clock} AS mean_frequency_hz"
        yield from (name for name in ("platform", "rack") if name in self._known)

    def jobs(self, span_us: int) -> pd.DataFrame:
        """Return the jobs of the whole trace: job, quota (mean over the time span), instances (all that there were).

        Where instances are present for whole periods, the time span is that of all periods in which any is.
        """
        if self._form.counted:
            span_us = self._period_us * self._row("SELECT count(DISTINCT period) FROM sums")[0]
        table: pd.DataFrame = self._connection.sql(_JOBS.format(span=int(span_us))).to_arrow_table().to_pandas()
        return table

    def counts(self) -> dict[str, int]:
        """Return how many observations, periods, jobs, machines, of them with the feature, and instances there are."""
        rows = f"""SELECT count(*), count(DISTINCT period), count(DISTINCT job), count(DISTINCT machine),
                          count(DISTINCT machine) FILTER (has = 1), count(DISTINCT instance)
                   FROM stays WHERE {" AND ".join(self._usable())}"""
        return dict(zip(_COUNTED, self._row(rows), strict=True))

    def set_aside(self) -> dict[str, int]:
        """Return how many instances' stays are in no observation although they were counted, and why."""
        cases = {
            "of instances that asked for no CPU": "weighed IS NULL OR weighed = 0",
            "of instances without a job": "job IS NULL",
            "on machines that got or lost the feature within the period": "has IS NULL",
        }
        if self.clocked:
            cases = {why: f"clock_hz IS NOT NULL AND ({case})" for why, case in cases.items()}
            cases["on machines without a clock"] = "clock_hz IS NULL"
        columns = ", ".join(f"count(*) FILTER ({case})" for case in cases.values())
        counts = self._row(f"SELECT {columns} FROM stays WHERE counted_ns > 0")
        return {why: count for why, count in zip(cases, counts, strict=True) if count}

    def doubts(self) -> dict[str, int]:
        """Return what seems wrong and may not be: how often, by what."""
        cases = {
            "stays measured for longer than their period": (
                f"SELECT count(*) FROM sums WHERE present_us > {self._period_us}"
            ),
            "instances of several jobs": "SELECT count(*) FROM asked WHERE jobs > 1",
            "machines listed that are in no measurement": (
                "SELECT count(*) FROM known WHERE machine NOT IN (SELECT machine FROM sums)"
            ),
        }
        counts = {what: self._row(query)[0] for what, query in cases.items()}
        counts = {_DIFFER: self._differing} | counts
        return {what: count for what, count in counts.items() if count}

    def _row(self, query: str) -> list[int]:
        (row,) = self._connection.execute(query).fetchall()
        return [int(count) for count in row]

    def _usable(self) -> Iterator[str]:
        """Yield what makes a stay an observation."""
        yield "counted_ns > 0 AND weighed > 0 AND job IS NOT NULL AND has IS NOT NULL"
        if self.clocked:
            yield "clock_hz IS NOT NULL"

    def _create(self, statement: str, **source: tuple[pa.Schema, Iterable[pa.RecordBatch]]) -> None:
        """Run a statement on a stream of batches; what the stream raises is raised here."""
        (name, (schema, batches)), failed = *source.items(), list[BaseException]()

        def guarded() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except BaseException as error:  # a database would wrap it
                failed.append(error)

        self._connection.register(name, pa.RecordBatchReader.from_batches(schema, guarded()))
        self._connection.execute(statement)
        self._connection.unregister(name)
        if failed:
            raise failed[0]


_COUNTED = ("observations", "periods", "jobs", "machines", "machines_treated", "instances")
_KNOWN = pa.schema(
    [("machine", pa.string()), ("treated", pa.int64())]
    + [(name, pa.float64()) for name in ("since_s", "until_s", "clock_hz")]
    + [(name, pa.string()) for name in ("platform", "rack")]
)


def _whole(machines: pd.DataFrame) -> pd.DataFrame:
    """Return machines with all columns; a time that is not said is before or after everything."""
    whole = machines.reindex(columns=_KNOWN.names)
    return whole.assign(
        treated=whole["treated"].fillna(0).astype("int64"),
        since_s=whole["since_s"].astype("float64").fillna(0.0),
        until_s=whole["until_s"].astype("float64").fillna(float("inf")),
    )
