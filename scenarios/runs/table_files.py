"""Files of answers, such as plans of roll-outs: they replace former ones and nothing else."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.tables.cells import header_of
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.disk import unwritable, whole


def irreplaceable(file: Path, read: Sequence[Path], columns: Sequence[str]) -> str:
    """Return why a table cannot be written there; empty: it may take the place of what is there.

    Parameters
    ----------
    file : .csv or .parquet
    read : files that are read
    columns : of such a table

    Examples
    --------
    >>> irreplaceable(Path("plan.csv"), [Path("plan.csv")], ("machine", "slot"))
    'would overwrite a file that is read, got plan.csv'
    """
    if problem := unwritable(file):
        return problem
    if file.resolve() in {source.resolve() for source in read}:
        return f"would overwrite a file that is read, got {file}"
    former = not file.exists() or tuple(header_of(file)) == tuple(columns)
    return "" if former else f"is there and holds no former table of the kind ({', '.join(columns)}), got {file}"


def write_table(table: pd.DataFrame, file: Path, argument: str) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    table : its rows
    file : .csv or .parquet
    argument : that named the file

    Raises
    ------
    FaultsError
        If it cannot be written.
    """
    try:
        with whole(file) as partial:
            if file.suffix == ".parquet":
                table.to_parquet(partial, index=False)
            else:
                table.to_csv(partial, index=False, lineterminator="\n")
    except OSError as error:
        problem = f"cannot write {file}: {error.strerror or error}"
        raise FaultsError([Fault("", 0, 0, argument, problem)]) from None
