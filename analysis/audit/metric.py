"""The guard about the metric: cycles are no unit of time where the feature changes the clock."""

import numpy as np
from scipy.stats import t

from analysis.audit import contrast
from analysis.audit.case import Case
from analysis.audit.findings import ALPHA, MATERIAL, Finding
from analysis.audit.table import Table
from models.arrays import Floats

_PER_CYCLE = {"ipc", "cpi", "instructions_per_cycle", "cycles_per_instruction"}
_LEAST = 0.002


def ipc_across_frequencies(case: Case) -> list[Finding] | None:
    """Find instructions per cycle compared between arms whose mean frequencies differ.

    At a higher clock memory is further away in cycles: IPC falls where performance rises (Eyerman and Eeckhout 2010).
    Frequency is `mean_frequency_hz`, `clock_hz` or `cycles` / `cpu_s`. It alarms at a chance of `ALPHA` and if the
    difference of frequencies is `MATERIAL` half-widths of the plain estimate.

    Examples
    --------
    >>> import pandas as pd
    >>> from analysis.audit.about import About
    >>> rows = {"period": 1, "job": "a", "machine": range(8), "weight": 1.0, "value": 2.0, "treated": [0, 1] * 4}
    >>> frame = pd.DataFrame(rows | {"mean_frequency_hz": [2.0e9, 2.4e9] * 4})
    >>> [one.code for one in ipc_across_frequencies(Case.of(frame, about=About(metric="ipc")))]
    ['ipc_across_frequencies']
    """
    if case.about.metric is None:
        return None
    if case.about.metric.lower() not in _PER_CYCLE:
        return []
    clock = _clock_hz(case.table)
    remedy = "compare instructions per CPU second (or requests), which count in time"
    if clock is None or case.plain is None:
        what = "instructions per cycle are compared, and no frequency says whether the arms' clocks are alike"
        return [Finding("ipc_across_frequencies", "note", what, {}, remedy)]
    made = contrast.study(case.table, clock / clock.mean())
    if made is None:
        return None
    chance = float(2 * t.sf(abs(made.change) / made.error, made.freedom)) if made.error > 0 else float(made.change == 0)
    ratio = abs(made.change) / max(case.plain.half_width, 1e-300)
    if chance > ALPHA or ratio <= MATERIAL or abs(made.change) < _LEAST:
        return []
    evidence = {"frequency_change": made.change, "error": made.error, "chance": chance, "change_in_half_widths": ratio}
    what = f"instructions per cycle are compared, but the clock changes by {made.change:+.2%} with the feature"
    return [Finding("ipc_across_frequencies", "error", what, evidence, remedy)]


def _clock_hz(table: Table) -> Floats | None:
    """Return (N,) mean frequencies, if they are known of every row."""
    rows = table.rows
    for name in ("mean_frequency_hz", "clock_hz"):
        if name in rows:
            clock = rows[name].to_numpy(dtype=np.float64)
            return clock if np.isfinite(clock).all() and (clock > 0).all() else None
    if "cycles" in rows and "cpu_s" in rows:
        clock = rows["cycles"].to_numpy(dtype=np.float64) / rows["cpu_s"].to_numpy(dtype=np.float64)
        return clock if np.isfinite(clock).all() and (clock > 0).all() else None
    return None
