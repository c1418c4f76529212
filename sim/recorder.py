"""Recorders: columns of what was simulated become Parquet tables with a digest of what they say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from models import tables
from models.errors import InputError

Values: TypeAlias = npt.NDArray[Any] | Sequence[Any] | pa.Array | pd.Series
"""One column as writers have it: a numpy array, a list, an Arrow array (dictionaries too) or a pandas series."""
Progress: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share done."""

ROW_GROUP_ROWS = 65_536
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a finished table holds: its rows, and a digest of its logical columns.

    The digest depends on names, types and values alone, not on compression, row groups or file format.
    """

    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The tables that a simulation wrote, and how much there was of what."""

    tables: tuple[TableSummary, ...]
    counts: Mapping[str, int]


class TableWriter:
    """Stream one table of `models.tables` into ``<directory>/<table>.parquet``.

    Rows are gathered into row groups of 65,536, so memory stays proportional to a row group and to the largest
    append; neither the file nor the digest depends on how the rows were cut into appends. The file carries the
    suffix ``.partial`` until it is closed.

    Parameters
    ----------
    directory : an existing directory
    table : a name in `models.tables.TABLES`

    Raises
    ------
    KeyError
        If there is no such table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory, TableWriter(Path(directory), "events") as writer:
    ...     for second in (0.0, 1.0):
    ...         writer.append({"time_s": [second], "kind": ["drain"], "machine": [3], "instance": [-1]})
    ...     writer.close().rows
    2
    """

    def __init__(self, directory: Path, table: str) -> None:
        self.table = table
        self.path = Path(directory) / f"{table}.parquet"
        self.rows = 0
        self._schema = tables.SCHEMAS[table]
        self._digests = [_ColumnDigest(field) for field in self._schema]
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._partial = self.path.with_name(self.path.name + ".partial")
        self._file = _parquet(self._partial, self._schema)

    def append(self, columns: Mapping[str, Values]) -> None:
        """Add rows, given as one array or list per column.

        Parameters
        ----------
        columns : every column of the table, all of one length

        Raises
        ------
        ValueError
            If a column is missing, unknown, of another length or type, out of its type's range, or has nulls.
        """
        rows = _rows(self.table, self._schema, columns)
        for digest, column in zip(self._digests, rows.columns, strict=True):
            digest.update(column)
        self.rows += rows.num_rows
        self._pending_rows += rows.num_rows
        self._pending.append(rows)
        if self._pending_rows >= ROW_GROUP_ROWS:
            self._flush()
        else:
            self._pending[-1] = _owned(rows)

    def close(self) -> TableSummary:
        """Write what is pending, give the file its final name and return what it holds; again: the same."""
        if self._file.is_open:
            self._write(pa.Table.from_batches(self._pending, self._schema))
            self._file.close()
            self._partial.replace(self.path)
        return TableSummary(self.table, self.rows, _table_digest(self._digests))

    def discard(self) -> None:
        """Give up: close and remove the unfinished file."""
        if self._file.is_open:
            self._file.close()
            self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _flush(self) -> None:
        pending = pa.Table.from_batches(self._pending, self._schema)
        whole = pending.num_rows - pending.num_rows % ROW_GROUP_ROWS
        self._write(pending.slice(0, whole))
        self._pending = [_owned(batch) for batch in pending.slice(whole).to_batches()]
        self._pending_rows = pending.num_rows - whole

    def _write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._file.write_table(rows, row_group_size=ROW_GROUP_ROWS)


def write_table(directory: Path, table: str, columns: Mapping[str, Values]) -> TableSummary:
    """Write a whole table at once and return what it holds.

    Parameters
    ----------
    directory : an existing directory
    table : a name in `models.tables.TABLES`
    columns : every column of the table, all of one length; may be a DataFrame

    Raises
    ------
    KeyError
        If there is no such table.
    ValueError
        If the columns do not fit the table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     columns = {"time_s": [0.0], "kind": ["drain"], "machine": [3], "instance": [-1]}
    ...     write_table(Path(directory), "events", columns).rows
    1
    """
    with TableWriter(directory, table) as writer:
        writer.append(columns)
        return writer.close()


class _ColumnDigest:
    """Digest of one column's values in order: their bytes, and for texts also their lengths."""

    def __init__(self, field: pa.Field) -> None:
        self._field = field
        self._values = blake2b(digest_size=_DIGEST_BYTES)
        self._lengths = blake2b(digest_size=_DIGEST_BYTES)

    def update(self, column: pa.Array) -> None:
        if pa.types.is_string(column.type):
            self._lengths.update(_canonical(pc.binary_length(column).to_numpy()).data)
            self._values.update(_text_bytes(column))
        else:
            self._values.update(_canonical(column.to_numpy(zero_copy_only=False)).data)

    def digest(self) -> bytes:
        head = f"{self._field.name}\0{self._field.type}\0".encode()
        return head + self._lengths.digest() + self._values.digest()


def _table_digest(columns: Sequence[_ColumnDigest]) -> str:
    return blake2b(b"".join(column.digest() for column in columns), digest_size=_DIGEST_BYTES).hexdigest()


def _text_bytes(column: pa.Array) -> memoryview:
    """Return the UTF-8 bytes of all texts of the column, one after the other."""
    _, offsets, content = column.buffers()
    if not len(column) or content is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(content)[ends[0] : ends[-1]]


def _canonical(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values with every NaN of the same bits, whatever computed it."""
    if values.dtype.kind == "f" and np.isnan(values).any():
        return np.where(np.isnan(values), np.nan, values)
    return np.ascontiguousarray(values)


def _parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file; texts repeat and get a dictionary, numbers rarely do."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, use_dictionary=texts)


def _rows(table: str, schema: pa.Schema, columns: Mapping[str, Values]) -> pa.RecordBatch:
    """Return the columns as one Arrow batch of the table's schema."""
    unknown = [name for name in columns if name not in schema.names]
    missing = [name for name in schema.names if name not in columns]
    for problem, names in (("unknown column", unknown), ("missing column", missing)):
        if names:
            raise InputError(f"{table}: {problem} {', '.join(names)}")
    arrays = [_array(f"{table}.{field.name}", field.type, columns[field.name]) for field in schema]
    for field, array in zip(schema, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise InputError(
                f"{table}.{field.name}: {len(array)} rows, but {table}.{schema.names[0]} has {len(arrays[0])}"
            )
    return pa.record_batch(arrays, schema=schema)


def _array(where: str, kind: pa.DataType, values: Values) -> pa.Array:
    """Return the values as an Arrow array of that type, or say why that cannot be."""
    try:
        array = _arrow(values, kind)
        if not _fits(array.type, kind):
            raise InputError(f"{where}: expects {kind}, got {array.type}")
        array = array.cast(kind)
    except pa.ArrowException as fault:
        raise InputError(f"{where}: expects {kind}: {fault}") from fault
    if array.null_count:
        raise InputError(f"{where}: {array.null_count} of {len(array)} values are missing")
    return array


def _arrow(values: Values, kind: pa.DataType) -> pa.Array:
    """Return the values as one Arrow array; NaN stays NaN, and an empty list has any type."""
    if isinstance(values, pd.Series):
        values = values.to_numpy() if values.dtype.kind in "iufb" else pa.array(values)
    array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=False)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type):
        return array.cast(kind)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _fits(given: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether values of a type may be stored as another: integers widen or narrow, nothing else changes."""
    if pa.types.is_integer(kind):
        return bool(pa.types.is_integer(given))
    if pa.types.is_floating(kind):
        return bool(pa.types.is_floating(given) or pa.types.is_integer(given))
    if pa.types.is_string(kind):
        return bool(pa.types.is_string(given) or pa.types.is_large_string(given))
    return bool(given == kind)


def _owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy of the batch: the writer's arrays may be used again before the row group is full."""
    return batch.take(pa.array(np.arange(batch.num_rows)))
