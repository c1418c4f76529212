"""Raw profiles are symbolised after they were collected: addresses become functions, files and lines."""

from contextlib import ExitStack
from pathlib import Path

from analysis.profiling.symbolise import symbolised
from sim.recorder import TableSummary, TableWriter

TABLES = ("samples", "locations", "stacks")
"""What symbolisation makes."""


def write_symbolised(folder: Path, workers: int | None = None) -> list[TableSummary]:
    """Symbolise the raw samples and stacks of a folder and write the tables into it; the raw ones stay.

    Parameters
    ----------
    folder : with the tables `raw_samples`, `raw_stacks`, `symbols` and `builds`
    workers : at most so many at a time; what is written does not depend on it

    Returns
    -------
    list of TableSummary
        of `samples`, `locations` and `stacks`.
    """
    with ExitStack() as opened:
        writers = {name: opened.enter_context(TableWriter(folder, name)) for name in TABLES}
        for name, columns in symbolised(folder, workers):
            writers[name].append(columns)
    return [writers[name].close() for name in TABLES]
