"""Whether a run's tables are what they should be: columns, types, numbers, keys, references; and which were changed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from models.arrays import Bools
from models.tables import KEYS, REFERENCES, TABLES, Column
from scenarios.files.faults import Fault
from scenarios.runs.disk import file_digest

if TYPE_CHECKING:
    from scenarios.runs.rundir import Run

_Unfit = tuple[str, str, str]
"""A column, what its values should be, and what some are instead."""


def faults(run: "Run") -> Iterator[Fault]:
    """Yield what is wrong with a run's tables: each is read once, and held against `models.tables`.

    A table may be empty only if it was written so. Of several cells nothing is said: their parts are read with digests.

    Parameters
    ----------
    run : a finished run; tables that are not of `models.tables` are left alone

    Yields
    ------
    Fault
        A file that cannot be read, no rows, a column that is missing or of another type, a number that is none,
        infinite or below what its column may hold, a row whose key another row has; of tables without these, a row
        that names one of another table that is not there.

    Examples
    --------
    >>> import tempfile
    >>> from scenarios.runs.rundir import Run
    >>> jobs = {"job": [0, 0], "name": ["a", "b"], "latency_critical": True, "instances": 2, "quota_vcpu": [1.0, None]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame(jobs).to_parquet(Path(folder, "jobs.parquet"))
    ...     for fault in faults(Run(Path(folder), {"tables": {}})):
    ...         print(str(fault).removeprefix(folder + "/"))
    jobs.parquet: quota_vcpu: should be a number, got NaN or infinite in 1 of 2 rows
    jobs.parquet:3:1: job: should be there once, got 0 again
    """
    if run.cells:
        return
    faulty = False
    for name in run.tables:
        if name in TABLES:
            for fault in faults_of(run.file(name), name, int(run.listed.get(name, {}).get("rows", 1))):
                faulty = True
                yield fault
    if not faulty:
        yield from _dangling(run)


def changed(run: "Run") -> tuple[str, ...]:
    """Return the files, within the run's folder, that are not as they were when the run was made.

    Parameters
    ----------
    run : a finished run; files that are not there are left out

    Examples
    --------
    >>> import tempfile
    >>> from scenarios.runs.rundir import Run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "jobs.parquet").write_bytes(b"mended")
    ...     changed(Run(Path(folder), {"tables": {"jobs": {"file_bytes": 7, "file_digest": "ab"}}}))
    ('jobs.parquet',)
    """
    return tuple(
        str(file.relative_to(run.path))
        for file, entry in run.files()
        if file.is_file()
        and (file.stat().st_size != entry.get("file_bytes") or file_digest(file) != entry.get("file_digest"))
    )


def faults_of(file: Path, table: str, written: int) -> Iterator[Fault]:
    """Yield the faults of one table, which had so many rows as it was written."""
    try:
        with pq.ParquetFile(file) as opened:
            types = dict(zip(opened.schema_arrow.names, opened.schema_arrow.types, strict=True))
            sound = [column for column in TABLES[table] if _fits(column, types)]
            yield from (_misfit(file, column, types) for column in TABLES[table] if column not in sound)
            rows = opened.metadata.num_rows
            if not rows and written:
                yield Fault(str(file), 0, 0, "", "should hold rows", "none")
            wrong, key = _read(opened, sound, KEYS.get(table, ()))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        yield Fault(str(file), 0, 0, "", f"cannot be read: {error}".partition("\n")[0])
        return
    for (name, problem, got), many in wrong.items():
        if many:
            yield Fault(str(file), 0, 0, name, problem, f"{got} in {many:,} of {rows:,} rows")
    yield from _repeated(file, key)


def _read(opened: pq.ParquetFile, columns: list[Column], key: tuple[str, ...]) -> tuple[Counter[_Unfit], pd.DataFrame]:
    """Return how many values of each column should not be there, and the key if it is there; reads every page."""
    wrong, keys = Counter[_Unfit](), list[pa.RecordBatch]()
    names = [column.name for column in columns]
    known = [name for name in key if set(key) <= set(names)]
    for batch in opened.iter_batches(columns=names):
        for column in columns:
            wrong.update(_unfit(batch.column(column.name), column))
        keys.append(batch.select(known))
    return wrong, pa.Table.from_batches(keys).to_pandas() if keys else pd.DataFrame()


def _unfit(values: pa.Array, column: Column) -> dict[_Unfit, int]:
    """Return how many values are missing or, of numbers, none, infinite or less than there can be."""
    missing = (column.name, "should be in every row", "nothing")
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return {missing: 0 if column.may_be_nan else values.null_count}
    low = (column.name, f"should be at least {column.least:g}", "less")
    if not pa.types.is_floating(values.type):
        return {missing: 0 if column.may_be_nan else values.null_count, low: _many(pc.less(values, column.least))}
    finite = pc.is_finite(values)
    below = {low: _many(pc.and_(finite, pc.less(values, column.least)))}
    if column.may_be_nan:
        return below | {(column.name, "should be finite", "infinite"): _many(pc.is_inf(values))}
    return below | {(column.name, "should be a number", "NaN or infinite"): len(values) - _many(finite)}


def _many(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _repeated(file: Path, key: pd.DataFrame) -> Iterator[Fault]:
    """Yield a fault if rows have a key that an earlier one has: the first, and how many more."""
    again: Bools = key.duplicated().to_numpy(np.bool_) if len(key.columns) else np.zeros(0, np.bool_)
    if again.any():
        first = ", ".join(str(value) for value in key.iloc[int(again.argmax())])
        more = f" and {again.sum() - 1:,} more" if again.sum() > 1 else ""
        line = int(again.argmax()) + 2
        yield Fault(str(file), line, 1, ", ".join(key.columns), "should be there once", f"{first} again{more}")


def _dangling(run: "Run") -> Iterator[Fault]:
    """Yield a fault for every column that names rows of another table which are not there."""
    for (table, column), other in REFERENCES.items():
        if not (run.has(table) and run.has(other)):
            continue
        named, known = (run.table(name, [column])[column] for name in (table, other))
        lost = named[~named.isin(known)].unique()
        if len(lost):
            more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
            yield Fault(str(run.file(table)), 0, 0, column, f"should be of {other}", f"{lost[0]}{more}")


def _misfit(file: Path, column: Column, types: dict[str, pa.DataType]) -> Fault:
    if column.name not in types:
        return Fault(str(file), 0, 0, column.name, "column is missing", f"columns {', '.join(types)}")
    kinds = {"string": "text", "bool": "true and false", "double": "numbers"}
    kind = kinds.get(str(column.type), "whole numbers")
    return Fault(str(file), 0, 0, column.name, f"should hold {kind}", f"type {types[column.name]}")


def _fits(column: Column, columns: dict[str, pa.DataType]) -> bool:
    """Return whether a column is there as text, whole numbers, numbers or flags, as it should be; any width will do."""
    if column.name not in columns:
        return False
    types, type_ = pa.types, columns[column.name]
    type_ = type_.value_type if types.is_dictionary(type_) else type_
    if types.is_string(column.type):
        return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))
    if types.is_boolean(column.type):
        return bool(types.is_boolean(type_))
    return bool(types.is_integer(type_) or (types.is_floating(column.type) and types.is_floating(type_)))
