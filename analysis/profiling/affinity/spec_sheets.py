"""Cycles per instruction of a job anywhere, by the cross-platform model: its counters and public spec sheets.

The method of Stewart et al. (2008, section 4.1), with a job in place of a service: its misses per instruction follow a
power of the cache size, which counters tell where the job was sampled; core, caches, memory and the pipeline of another
platform are those of the spec sheet, its clock the measured one. What the model is wrong by for a job, its κ, and for a
platform, is left to the effects that are fitted to the CPI that was sampled.
"""

from dataclasses import replace

import numpy as np

from analysis.crossplatform import traits
from analysis.crossplatform.costs import Hardware, Machine, Software, cycles
from analysis.crossplatform.departures import Priors
from analysis.crossplatform.service import sizes_bytes
from analysis.profiling.affinity.table import Table
from models.arrays import Bools, Floats
from models.platforms import PLATFORMS, Platform

_LEAST = 0.1
"""Of the median rate of an event: jobs of which fewer were sampled count as having so many."""


def machines(table: Table) -> list[Platform] | None:
    """Return the spec sheets of a table's platforms at the clocks measured; none if one is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"job": "a", "platform": "rome_7742", "load": 5.0, "cpi": 2.0, "capacity": 10.0, "clock_hz": 3e9}
    >>> [(sheet.name, sheet.base_frequency_hz) for sheet in machines(Table.of(pd.DataFrame([row])))]
    [('rome_7742', 3000000000.0)]
    """
    sheets = [PLATFORMS.get(name) for name in table.platforms]
    known = [sheet for sheet in sheets if sheet is not None and len(sheet.caches) > 1]
    if len(known) < len(sheets):
        return None
    clocks = [sheet.base_frequency_hz for sheet in known] if table.clock_hz is None else table.clock_hz.tolist()
    return [replace(sheet, base_frequency_hz=clock) for sheet, clock in zip(known, clocks, strict=True)]


def modelled(table: Table) -> Floats | None:
    """Return (J, I) cycles per instruction that the model says of every job and platform; none without counters.

    A job's curve of misses and its mispredictions are means over the platforms on which it was sampled, weighted by
    load. A job of which there are no counters has those of all jobs together.

    Parameters
    ----------
    table : counters, and platforms with spec sheets

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"job": "a", "load": 5.0, "cpi": 2.0, "capacity": 10.0}
    >>> counters = {"l1_misses": 0.04, "l2_misses": 0.02, "llc_misses": 0.01, "mispredictions": 0.004}
    >>> rows = [row | counters | {"platform": name} for name in ("haswell_2698v3", "rome_7742")]
    >>> modelled(Table.of(pd.DataFrame(rows))).round(2)
    array([[2.93, 3.07]])
    """
    sheets = machines(table)
    if sheets is None or table.counters is None:
        return None
    seen = np.isfinite(table.counters).all(axis=2) & np.isfinite(table.cpi) & (table.load > 0)
    rates = _floored(table.counters, seen)
    if rates is None:
        return None
    weight = np.where(seen, table.load, 0.0)
    curve = _curves(sheets, rates, weight, seen)
    branches = np.log(_mean(rates[:, :, -1], weight))[:, None]
    none = np.zeros_like(branches)
    job = Software(none, none + Priors().overlap[0], branches, none, none, none)
    made = np.empty(table.cpi.shape)
    for i, sheet in enumerate(sheets):
        missed = np.minimum.accumulate(curve(sizes_bytes(sheet)), axis=-1)
        spent = cycles(job, Machine(sheet, Hardware(*[none] * 7)), [level[:, None] for level in missed.T])
        made[:, i] = (spent.core + spent.caches + spent.memory)[:, 0]
    return made


def _floored(counters: Floats, seen: Bools) -> Floats | None:
    """Return rates that are all above 0 where they were seen; none if some event never was."""
    typical = [counted[seen & (counted > 0)] for counted in np.moveaxis(counters, 2, 0)]
    if any(not each.size for each in typical):
        return None
    least = np.array([_LEAST * float(np.median(each)) for each in typical])
    return np.asarray(np.maximum(np.where(seen[:, :, None], counters, 1.0), least))


def _curves(sheets: list[Platform], rates: Floats, weight: Floats, seen: Bools) -> traits.MissModel:
    """Return the power laws of all jobs: (J, 2) coefficients, means over platforms of those fitted on each.

    A platform with two levels of caches has the misses of the first and of the last.
    """
    coefficients = np.zeros((*seen.shape, 2))
    for i, sheet in enumerate(sheets):
        sizes, rows = sizes_bytes(sheet), seen[:, i]
        levels = [*range(min(len(sizes), 3) - 1), 2]
        sizes = sizes[[*range(len(levels) - 1), -1]]
        if rows.any():
            coefficients[rows, i] = traits.fit(sizes, rates[rows, i][:, levels]).coefficients
    both = [_mean(coefficients[:, :, k], weight) for k in range(2)]
    return traits.MissModel("power_law", np.column_stack(both))


def _mean(of: Floats, weight: Floats) -> Floats:
    """Return (J,) each job's weighted mean over platforms; that of all jobs where it has no weight."""
    total = weight.sum(axis=1)
    every = float((of * weight).sum() / total.sum())
    return np.where(total > 0, (of * weight).sum(axis=1) / np.where(total > 0, total, 1.0), every)
