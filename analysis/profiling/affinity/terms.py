"""What is known of every pair before effects are fitted: CPI that a model says, and how much jobs wait for memory.

The model is that of Stewart et al. (2008, section 4.1), with a job in place of a service: its misses per instruction
follow a power of the cache size, which counters tell where the job was sampled; core, caches, memory and the pipeline
of another platform are those of the spec sheet, its clock the measured one. What the model is wrong by for a job, its
κ, and for a platform, is left to the effects that are fitted to the CPI that was sampled.
"""

from dataclasses import dataclass, replace

import numpy as np

from analysis.crossplatform import traits
from analysis.crossplatform.costs import DepartingMachine, HardwareDepartures, ServiceDepartures, cycles
from analysis.crossplatform.departures import Priors
from analysis.crossplatform.service import sizes_bytes
from analysis.profiling.affinity.table import AffinityTable
from models.arrays import Bools, Floats
from models.platforms import Platform

_MOST_SE = 2.0
_JOBS_PER_FEATURE, _LEAST_MISSES, _TYPICAL, _FARTHEST = 5, 0.1, 0.1, 3.0


@dataclass(frozen=True, slots=True)
class Structure:
    """What log CPI is made of beside an effect of the job and one of the platform.

    Examples
    --------
    >>> Structure(model=True).name, Structure(model=True).within(Structure(model=True, slopes=True))
    ('model', True)
    """

    model: bool = False
    """Whether the log of what the cross-platform model says is a part of it."""
    slopes: bool = False
    """Whether each platform has a slope for how much a job waits for memory."""

    @property
    def name(self) -> str:
        """What it is called in answers.

        Examples
        --------
        >>> [structure.name for structure in STRUCTURES]
        ['effects', 'effects_slopes', 'model', 'model_slopes']
        """
        return ("model" if self.model else "effects") + "_slopes" * self.slopes

    def within(self, other: "Structure") -> bool:
        """Return whether another one has all parts of it.

        Examples
        --------
        >>> EFFECTS.within(Structure(slopes=True)), Structure(slopes=True).within(EFFECTS)
        (True, False)
        """
        return self.model <= other.model and self.slopes <= other.slopes


EFFECTS = Structure()
"""Effects alone."""
STRUCTURES = (EFFECTS, Structure(slopes=True), Structure(model=True), Structure(model=True, slopes=True))


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What least squares are fitted to."""

    log_cpi: Floats
    """(J, I) observed log CPI less the offset; 0 where not observed."""
    square: Floats
    """(J, I) its squared sampling error; infinite where not observed."""
    offset: Floats
    """(J, I) log CPI by the cross-platform model; 0 without it."""
    features: Floats
    """(J, K) what platforms weigh in each job: 1, and where there are enough jobs, how much it waits for memory."""

    @property
    def observed(self) -> Bools:
        """(J, I) which pairs were observed."""
        return np.isfinite(self.square)


def structure_of(table: AffinityTable) -> Structure:
    """Return the richest structure that a table allows: the cross-platform model where spec sheets and counters are.

    Slopes are fitted where misses are known of enough jobs on several platforms.
    """
    several = int((np.isfinite(table.cpi).sum(axis=1) > 1).sum())
    sloped = _memory(table) is not None and several >= _JOBS_PER_FEATURE * len(table.platforms) * 3
    return Structure(modelled(table) is not None, sloped)


def terms_of(table: AffinityTable, structure: Structure, like: AffinityTable | None = None) -> Terms:
    """Return the terms of a table.

    Parameters
    ----------
    table : CPI with standard errors, 0 where known exactly
    structure : of those that the table allows
    like : the table whose jobs' spread is the unit of features; this one without it
    """
    predicted = modelled(table) if structure.model else None
    offset = np.zeros(table.cpi.shape) if predicted is None else np.log(predicted)
    log_cpi, square = _observed(table)
    features = _features(table, table if like is None else like) if structure.slopes else None
    ones = np.ones((len(table.jobs), 1))
    left = np.where(np.isfinite(square), log_cpi - offset, 0.0)
    return Terms(left, square, offset, ones if features is None else np.column_stack([ones, features]))


def without(table: AffinityTable, platform: int) -> AffinityTable:
    """Return a table in which nothing was sampled on a platform."""
    cpi, load = table.cpi.copy(), table.load.copy()
    cpi[:, platform], load[:, platform] = np.nan, 0.0
    return replace(table, cpi=cpi, load=load)


def _observed(table: AffinityTable) -> tuple[Floats, Floats]:
    """Return (J, I) log CPI and its squared error; 0 and infinity where it was not observed."""
    sampled = table.allowed & np.isfinite(table.cpi)
    cpi = np.where(sampled, table.cpi, 1.0)
    error = np.where(sampled, table.cpi_se, 0.0) / cpi
    return np.log(cpi), np.where(sampled, np.minimum(error, _MOST_SE) ** 2, np.inf)


def _memory(table: AffinityTable) -> Floats | None:
    """Return (J, I) last-level-cache misses per instruction: as counted, else as the table has them."""
    return table.misses if table.counters is None else np.nan_to_num(table.counters[:, :, 2])


def _features(table: AffinityTable, like: AffinityTable) -> Floats:
    """Return (J, 2) how much jobs wait for memory, in standard deviations of the jobs of another table.

    That is the logarithm of a job's misses per instruction and of its CPI, weighted by load.
    """
    of_jobs, total = _traits(like), like.total
    centre = np.average(of_jobs, axis=0, weights=total)
    scale = np.sqrt(np.average((of_jobs - centre) ** 2, axis=0, weights=total))
    return np.clip((_traits(table) - centre) / np.where(scale > 0, scale, 1.0), -_FARTHEST, _FARTHEST)


def _traits(table: AffinityTable) -> Floats:
    misses = _memory(table)
    assert misses is not None
    total = table.total
    missed = (misses * table.load).sum(axis=1) / np.where(total > 0, total, 1.0)
    least = float(np.median(missed[missed > 0])) * _LEAST_MISSES if (missed > 0).any() else 1.0
    log_cpi, square = _observed(table)
    weight = np.where(np.isfinite(square), 1.0 / (np.where(np.isfinite(square), square, 1.0) + _TYPICAL**2), 0.0)
    mean_cpi = (weight * log_cpi).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300)
    return np.column_stack([np.log(np.maximum(missed, least)), mean_cpi])


_LEAST = 0.1
"""Of the median rate of an event: jobs of which fewer were sampled count as having so many."""


def machines(table: AffinityTable) -> list[Platform] | None:
    """Return the spec sheets of a table's platforms at the clocks measured; none if one is not known."""
    sheets = [table.sheets.get(name) for name in table.platforms]
    known = [sheet for sheet in sheets if sheet is not None and len(sheet.caches) > 1]
    if len(known) < len(sheets):
        return None
    clocks = [sheet.base_frequency_hz for sheet in known] if table.clock_hz is None else table.clock_hz.tolist()
    return [replace(sheet, base_frequency_hz=clock) for sheet, clock in zip(known, clocks, strict=True)]


def modelled(table: AffinityTable) -> Floats | None:
    """Return (J, I) cycles per instruction that the model says of every job and platform; none without counters.

    A job's curve of misses and its mispredictions are means over the platforms on which it was sampled, weighted by
    load. A job of which there are no counters has those of all jobs together.

    Parameters
    ----------
    table : counters, and platforms with spec sheets
    """
    sheets = machines(table)
    if sheets is None or table.counters is None:
        return None
    known = np.isfinite(table.counters).all(axis=2) & np.isfinite(table.cpi) & (table.load > 0)
    rates = _floored(table.counters, known)
    if rates is None:
        return None
    weight = np.where(known, table.load, 0.0)
    curve = _curves(sheets, rates, weight, known)
    branches = np.log(_mean(rates[:, :, -1], weight))[:, None]
    none = np.zeros_like(branches)
    job = ServiceDepartures(none, none + Priors().overlap[0], branches, none, none, none)
    cpi = np.empty(table.cpi.shape)
    for i, sheet in enumerate(sheets):
        missed = np.minimum.accumulate(curve(sizes_bytes(sheet)), axis=-1)
        spent = cycles(
            job, DepartingMachine(sheet, HardwareDepartures(*[none] * 7)), [level[:, None] for level in missed.T]
        )
        cpi[:, i] = (spent.core + spent.caches + spent.memory)[:, 0]
    return cpi


def _floored(counters: Floats, known: Bools) -> Floats | None:
    """Return rates that are all above 0 where they were seen; none if some event never was."""
    typical = [counted[known & (counted > 0)] for counted in np.moveaxis(counters, 2, 0)]
    if any(not rates.size for rates in typical):
        return None
    least = np.array([_LEAST * float(np.median(rates)) for rates in typical])
    return np.asarray(np.maximum(np.where(known[:, :, None], counters, 1.0), least))


def _curves(sheets: list[Platform], rates: Floats, weight: Floats, known: Bools) -> traits.MissModel:
    """Return the power laws of all jobs: (J, 2) coefficients, means over platforms of those fitted on each.

    A platform with two levels of caches has the misses of the first and of the last.
    """
    coefficients = np.zeros((*known.shape, 2))
    for i, sheet in enumerate(sheets):
        sizes, rows = sizes_bytes(sheet), known[:, i]
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
