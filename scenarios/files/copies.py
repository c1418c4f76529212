"""Tables that are no files, as temporary files: what reads only files then reads frames and queries, too."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pyarrow.parquet import write_table

from analysis.tables.cells import Source, name_of
from analysis.tables.queries import TableQuery, store, table_of
from scenarios.files.faults import Fault, FaultsError, faults_in


@contextmanager
def as_file(source: Source) -> Generator[tuple[Path, str | None]]:
    """Yield where a table is, and what people call it if that is a copy, which goes when the block ends.

    Raises
    ------
    FaultsError
        If a query cannot be run, or the copy not be written.

    Examples
    --------
    >>> with as_file(TableQuery("SELECT 1 AS arrival_s")) as (file, name):
    ...     file.name, name
    ('table.parquet', 'SELECT 1 AS arrival_s')
    >>> with as_file(Path("log.csv")) as copied:
    ...     copied
    (PosixPath('log.csv'), None)
    """
    if isinstance(source, Path):
        yield source, None
        return
    with tempfile.TemporaryDirectory(prefix="wsc-") as folder:
        file = Path(folder) / "table.parquet"
        with faults_in(source):
            try:
                if isinstance(source, TableQuery):
                    store(source, file)
                else:
                    write_table(table_of(source), file)
            except OSError as error:
                problem = str(error).partition(". Detail")[0]
                raise FaultsError([Fault("$TMPDIR", 0, 0, "", f"its copy cannot be written: {problem}")]) from error
        yield file, name_of(source)
