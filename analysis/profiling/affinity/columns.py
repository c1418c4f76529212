"""What the columns of a table of affinities must not be: of an unknown name, or counts that no processor can make."""

import difflib
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.tables.cells import Cells
from analysis.tables.faults import FileFault
from models.arrays import Floats

_LEVELS = ("l1_misses", "l2_misses", "llc_misses")
"""Caches from the first level on: what misses in one missed in those before it."""
_ROUNDING = 1e-9


def unknown_columns(cells: Cells, known: Sequence[str]) -> Iterator[FileFault]:
    """Yield a fault for every column that is none of those known, with the nearest name.

    Parameters
    ----------
    cells : of the file
    known : names of the columns that a table may have

    Examples
    --------
    >>> cells = Cells(["clok_hz"], {}, np.array([2]))
    >>> [fault.problem for fault in unknown_columns(cells, ["load", "clock_hz"])]
    ['unknown column; did you mean clock_hz?']
    """
    for place, name in enumerate(cells.names, 1):
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield FileFault(1, place, name, f"unknown column; {hint}", f'"{name}"')


def impossible(cells: Cells) -> Iterator[FileFault]:
    """Yield a fault for every row with more misses of a cache than of one before it, or over 1 misprediction.

    Every access that misses in a level of a hierarchy of caches missed in the levels before it (Hennessy and Patterson
    2019, appendix B); an instruction is one branch at most.

    Parameters
    ----------
    cells : of the file; what is no number is left to others

    Examples
    --------
    >>> columns = {"l1_misses": pd.Series(["0.01"]), "llc_misses": pd.Series(["0.02"])}
    >>> [fault.problem for fault in impossible(Cells([*columns], columns, np.array([2])))]
    ['should be at most l1_misses, 0.01']
    """
    there = [name for name in _LEVELS if name in cells.columns]
    numbers = {name: _numbers(cells, name) for name in there}
    for i, name in enumerate(there[1:], 1):
        least = np.fmin.reduce([numbers[before] for before in there[:i]])
        for row in np.flatnonzero(numbers[name] > least * (1.0 + _ROUNDING)).tolist():
            bound = next(before for before in reversed(there[:i]) if numbers[before][row] == least[row])
            yield _fault(cells, row, name, f"should be at most {bound}, {least[row]:.10g}")
    if "mispredictions" in cells.columns:
        for row in np.flatnonzero(_numbers(cells, "mispredictions") > 1.0).tolist():
            yield _fault(cells, row, "mispredictions", "should be at most 1 an instruction")


def _numbers(cells: Cells, name: str) -> Floats:
    return np.asarray(pd.to_numeric(cells.columns[name], errors="coerce"), dtype=np.float64)


def _fault(cells: Cells, row: int, name: str, problem: str) -> FileFault:
    got = f"{_numbers(cells, name)[row]:.10g}"
    return FileFault(int(cells.lines[row]), cells.position(name), name, problem, got)
