"""Traces of requests read from files, for loads that replay them."""

from pathlib import Path

import pandas as pd

from analysis.tables.columns import Field, read_table

COLUMNS = (
    Field("arrival_s", "real", above_zero=False),
    Field("demand_s", "real", above_zero=False),
    Field("type", "text", required=False),
)


def read_trace(path: Path) -> pd.DataFrame:
    """Read a trace: one request a row, in any order.

    Parameters
    ----------
    path : CSV or Parquet, gzipped or not

    Returns
    -------
    DataFrame
        arrival_s (seconds from the start), demand_s (seconds on a server of speed 1) and, if the file has it, type.

    Raises
    ------
    FileError
        With every fault of the file.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "trace.csv"
    ...     _ = file.write_text("arrival_s,demand_s\\n0.5,1.5\\n")
    ...     read_trace(file)
       arrival_s  demand_s
    0        0.5       1.5
    """
    table = read_table(path, COLUMNS)
    return table[[field.name for field in COLUMNS if field.name in table]]
