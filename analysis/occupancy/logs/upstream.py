"""The times of the servers behind a proxy, where its log says how long they took."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.occupancy.logs.log import PER_SECOND, Log, counted
from analysis.occupancy.logs.records import Times
from analysis.tables.cells import FileCells
from analysis.tables.faults import FileError, FileFault
from models.arrays import Floats


def with_upstream(log: Log, cells: FileCells, times: Times) -> Log:
    """Return a log of what the servers behind a proxy saw: from when a request went to them until they had answered.

    A proxy that tried several servers in turn waited for all of them. Where the log does not say how long the request
    took to come in, that counts as nothing.
    """
    delay_s, took_s = behind(cells, times)
    came = log.table["arrival_s"].to_numpy() + delay_s
    reached = ~np.isnan(took_s)
    refuse_unreached(times, int(np.count_nonzero(reached)))
    table = log.table.assign(arrival_s=came, departure_s=came + took_s)[reached].reset_index(drop=True)
    notes = [*log.notes, *behind_notes(times, int(np.count_nonzero(~reached)))]
    fields = None if log.fields is None else log.fields[reached].reset_index(drop=True)
    return replace(log, table=table, notes=tuple(notes), fields=fields)


def behind(cells: FileCells, times: Times) -> tuple[Floats, Floats]:
    """Return how long after its arrival each request went to the servers behind a proxy, and how long they took.

    The latter is NaN where none was reached.
    """
    texts = cells.text(str(times.upstream))
    parts = texts.str.split(r"\s*[,:]\s*", regex=True, expand=True).apply(pd.to_numeric, errors="coerce")
    per_second = PER_SECOND[times.unit]
    took: Floats = parts.sum(axis=1, min_count=1).to_numpy(dtype=np.float64)
    delay: Floats = sum(
        (pd.to_numeric(cells.columns[name], errors="coerce").to_numpy() for name in times.delay), np.zeros(len(took))
    )
    return delay / per_second, took / per_second


def refuse_upstream(times: Times | None, names: Sequence[str]) -> None:
    """Raise the fault of records that do not say how long the servers behind took."""
    if times is None or times.upstream not in names:
        named = times.upstream if times and times.upstream else "such a field"
        raise FileError([FileFault(1, 1, "--upstream", f"needs {named} in the log", "none")])


def refuse_unreached(times: Times, reached: int) -> None:
    """Raise the fault of a log in which no request reached a server behind."""
    if not reached:
        raise FileError([FileFault(1, 1, "--upstream", f"needs numbers in {times.upstream}", "none")])


def behind_notes(times: Times, without: int) -> list[str]:
    """Return the notes on times of the servers behind, which so many requests did not reach."""
    notes = [f"times are those of the servers behind the proxy ({times.upstream})"]
    return [*notes, f"{counted(without, 'request')} reached no server, left out"] if without else notes
