"""What a trace itself says of its machines: platforms, and the clock that reference cycles have."""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.tables.faults import Faults, FileFault
from analysis.traces.cells import names, numbers
from analysis.traces.files import blocks
from analysis.traces.layouts import TraceTable

_CLOCKS_GHZ = (0.1, 100.0)
"""Clocks that machines may have; others are in another unit."""


def hosts(path: Path, layout: TraceTable, faults: Faults) -> pd.DataFrame:
    """Return the machines of a trace's own table of them.

    Parameters
    ----------
    path : as `analysis.traces.files.blocks`
    layout : with columns machine, platform and clock_ghz
    faults : takes what is wrong; a machine that is there twice, too, if the rows differ

    Returns
    -------
    DataFrame
        machine, platform ("unknown" where it is empty), clock_hz (NaN where it is empty or 0).

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from analysis.traces.layouts import FORMATS
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("n1,96,machine-1,skylake,2.5,2\\n")
    ...     hosts(Path(file.name), FORMATS["amtrace"].hosts, Faults())
      machine platform      clock_hz
    0      n1  skylake  2.500000e+09
    """
    columns = {column.field: column for column in layout.columns}
    parts = [pd.DataFrame({"machine": [], "platform": [], "clock_hz": [], "line": []})]
    place = 1
    for block in blocks(path, layout, faults):
        machine, nameless = names(block, columns["machine"], faults)
        platform, _ = names(block, columns["platform"], faults)
        clock_ghz, broken = numbers(block, columns["clock_ghz"], faults)
        place = block.places["machine"]
        unlikely = (clock_ghz > 0) & ~broken & ((clock_ghz < _CLOCKS_GHZ[0]) | (clock_ghz > _CLOCKS_GHZ[1]))
        for row in np.flatnonzero(unlikely):
            name, problem = columns["clock_ghz"].names[0], "should be in GHz, from {:g} to {:g}".format(*_CLOCKS_GHZ)
            faults.add(
                FileFault(int(block.lines[row]), block.places["clock_ghz"], name, problem, f"{clock_ghz[row]:g}")
            )
        part = {"machine": machine.to_pylist(), "platform": platform.to_pylist(), "clock_hz": clock_ghz * 1e9}
        rows = pd.DataFrame(part | {"line": block.lines})
        parts.append(rows[~(nameless | broken)])
    machines = pd.concat(parts[1:] or parts, ignore_index=True)
    machines["platform"] = machines["platform"].replace("", "unknown")
    machines["clock_hz"] = machines["clock_hz"].where(machines["clock_hz"] > 0, np.nan)
    different = machines.drop_duplicates(["machine", "platform", "clock_hz"])
    for line, machine in different.loc[different.duplicated("machine"), ["line", "machine"]].itertuples(index=False):
        problem = "is there before with another platform or clock"
        faults.add(FileFault(int(line), place, columns["machine"].names[0], problem, str(machine)))
    return different.drop_duplicates("machine").drop(columns="line").reset_index(drop=True)
