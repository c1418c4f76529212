"""The guard that finds a feature which was active before it is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.audit.case import COMPARED, PAST, STEADY, Audited, Case, unmet
from analysis.audit.findings import ALPHA, MATERIAL, Finding, Severity
from analysis.audit.recorded_feature import changes_of_machines
from analysis.statistics import ROUNDING, normal_tail
from models.arrays import Floats, Ints

_LEAST_UNITS = 8
"""Units of the smaller arm from which arms are compared."""
_DRAWS, _CELLS, _PLENTY = 9_999, 1_000_000, 200
"""Draws of other machines at most, numbers of draws at once, and larger shifts after which draws are enough."""
_UNLIKELY, _MOST_UNITS = 0.05, 2000
"""Chance by the normal law from which draws say no more, and units from which that law is good enough."""
_PART = 0.5
"""Share of the machines that are thought to have it early, in what machines' steps count for."""
_TINY = 1e-12
_EXPECTED, _KNOWN = 0.9, 2.0
"""Share of false alarms for shifts in the direction of the feature's gain, and errors from which that is known."""
_NORMAL = 1.96
"""Errors in half of a 95% interval."""
_WARNING = 2.0
"""Times `ALPHA`, the chance of a false warning: a part of the machines for a day is little to see."""


def early_feature(case: Case) -> list[Finding] | str:
    """Find machines that move away from the others before they are recorded to have the feature.

    For each period before the study: by how much machines that get the feature changed from the periods before it to
    those from it on, against others. A machine's step counts by its log likelihood ratio, if a part of the machines
    had then moved by what they move when the feature is recorded (`_Scan.scores`); the sum over machines that get it,
    at the period where it is largest, is judged against draws of other machines (`_Scan.chance`). A feature that acts
    early acts as it does later, so most of the chance of a false alarm is for shifts in that direction, where it is
    known. An error has a chance of `ALPHA`, a warning of twice that. The shift must be `MATERIAL` half-widths of the
    plain estimate or of the gain over the past, whichever is narrower: an early feature moves only estimates that use
    the past. A feature that was active in all periods before the study cannot be seen.
    """
    table, periods, plain = case.table, np.unique(case.table.period[~case.table.study]), case.plain
    needs = unmet(
        (table.crossover, STEADY),
        (plain is None, COMPARED),
        (len(periods) < 2, f"2 {PAST}, where {len(periods)} {'is' if len(periods) == 1 else 'are'}"),
    )
    if needs or plain is None:
        return needs
    by_start = {int(since): steps for since in periods[1:] if (steps := _Steps.of(table, since)) is not None}
    if not by_start:
        return f"{_LEAST_UNITS} machines of each arm that differ, with rows in two {PAST}"
    scan = _Scan.of(table, list(by_start.values()))
    if not any(0 < count < len(units) for units, count in scan.strata):
        return "machines of both arms on one platform"
    gain, error = _gain(table)
    best, chance = 0, 1.0
    for sign in (1.0, -1.0):
        part = 0.5 if abs(gain) <= _KNOWN * error else _EXPECTED if sign * gain > 0 else 1.0 - _EXPECTED
        at, tail = scan.chance(sign * max(abs(gain), error))
        if tail / part < chance:
            best, chance = at, tail / part
    apart = float(scan.shifts[best])
    half_width = min(plain.half_width, _NORMAL * error) if error > 0 else plain.half_width
    if chance > _WARNING * ALPHA or abs(apart) < MATERIAL * half_width:
        return []
    first = table.periods[list(by_start)[best]]
    evidence = {"shift": apart, "period": float(first), "chance": chance}
    evidence["shift_in_half_widths"] = abs(apart) / half_width if half_width > 0 else 0.0
    what = (
        f"from period {first:g} on, before they are recorded to have the feature, machines move {apart:+.1%} against "
        "the others"
    )
    remedy = "find out when the feature was switched on; set treated from then on, or leave these periods out"
    severity: Severity = "error" if chance <= ALPHA else "warning"
    return [Finding("early_feature", severity, what, evidence, remedy)]


def _gain(table: Audited) -> tuple[float, float]:
    """Return the gain of machines when they are recorded to have the feature, against the whole past, and its error.

    Under noise without memory it says nothing of steps within the past.
    """
    changes, series = changes_of_machines(table, ~table.study, table.study)
    gain, square = 0.0, 0.0
    for arm, sign in ((table.ever, 1.0), (table.never & ~table.ever, -1.0)):
        weight = series * arm
        mean = float((weight * changes).sum()) / max(float(weight.sum()), 1.0)
        gain += sign * mean
        square += float((weight**2 * (changes - mean) ** 2).sum()) / max(float(weight.sum()), 1.0) ** 2
    return gain, square**0.5


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """How U units changed at a period of the past."""

    step: Floats
    """(U,) mean over a unit's series, less what jobs did in each period, and units of a platform in the mean."""
    weight: Floats
    """(U,) inverse to the variance of steps, of which a part is shared by a unit's series; 0 of units without any."""

    @classmethod
    def of(cls, table: Audited, since: int) -> "_Steps | None":
        """Return the steps at a period; None if few units of an arm have any."""
        past = ~table.study
        key = table.job * len(table.periods) + table.period
        left = table.relative - (np.bincount(key, table.relative) / np.maximum(np.bincount(key), 1))[key]
        early, count = table.period < since, int(table.series.max()) + 1
        before, after = (_means(table.series[rows], left[rows], count) for rows in (past & early, past & ~early))
        unit: Ints = np.zeros(count, dtype=np.int64)
        unit[table.series] = table.units()[table.machine]
        having, change = _having(table), after - before
        known = np.isfinite(change) & (having >= 0)[unit]
        series = np.bincount(unit[known], minlength=len(having)).astype(np.float64)
        compared = series > 0
        if min(int((compared & (having == arm)).sum()) for arm in (0, 1)) < _LEAST_UNITS:
            return None
        step = np.nan_to_num(_means(unit[known], change[known], len(having)))
        within = float(((change - step[unit])[known] ** 2).sum()) / max(float((series - compared).sum()), 1.0)
        shared = max(float((series * step**2).sum()) - within * float(compared.sum()), 0.0) / float(series.sum())
        weight = series / (1.0 + series * shared / within) if within > 0 else compared.astype(np.float64)
        stratum = _strata(table)
        total = np.bincount(stratum, weight)
        mean = np.bincount(stratum, weight * step) / np.where(total > 0, total, 1.0)
        return cls(np.where(compared, step - mean[stratum], 0.0), weight)


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """Steps of U units at each of K periods, and which k of them get the feature."""

    by_start: tuple[_Steps, ...]
    places: Ints
    """(k,) units that get it, platform by platform."""
    strata: tuple[tuple[Ints, int], ...]
    """Units of each platform, and how many of them get the feature."""
    shifts: Floats
    """(K,) by how much more units that get it changed."""

    @classmethod
    def of(cls, table: Audited, by_start: Sequence[_Steps]) -> "_Scan":
        """Return the scan over periods of a table."""
        having, stratum = _having(table), _strata(table)
        platforms = [np.flatnonzero((having >= 0) & (stratum == number)) for number in np.unique(stratum)]
        strata = tuple((of, int((having[of] == 1).sum())) for of in platforms)
        arms = [np.concatenate([of[having[of] == arm] for of in platforms]) for arm in (1, 0)]
        means = np.array([[np.average(of.step[arm], weights=of.weight[arm]) for arm in arms] for of in by_start])
        return cls(tuple(by_start), arms[0], strata, means[:, 0] - means[:, 1])

    def scores(self, gain: float) -> Floats:
        """Return what units' steps say for a gain of a part of the units, (U, K), of mean 0 in each platform.

        It is log(1 - p + p exp(d z - d² / 2)) of a step that is z standard deviations, and a gain that is d of them:
        nearly the step itself where gains are small beside steps, and 0 or 1 of each unit where they are large. Columns
        are such that a sum over draws has variance 1.
        """
        drawn = np.array([count * (1.0 - count / len(units)) for units, count in self.strata])
        columns = []
        for of in self.by_start:
            square = float((of.weight * of.step**2).sum()) / max(float((of.weight > 0).sum()), 1.0)
            d = gain * np.sqrt(of.weight / max(square, _TINY))
            z = of.step * np.sqrt(of.weight / max(square, _TINY))
            score = np.logaddexp(np.log(1.0 - _PART), np.log(_PART) + d * z - d**2 / 2.0)
            variance = 0.0
            for (units, _), times in zip(self.strata, drawn, strict=True):
                score[units] -= score[units].mean()
                variance += times * float((score[units] ** 2).sum()) / max(len(units) - 1, 1)
            columns.append(score / np.sqrt(max(variance, _TINY)))
        return np.stack(columns, axis=1)

    def chance(self, gain: float) -> tuple[int, float]:
        """Return the period at which steps say most for a gain, and the chance that they say so much at any period.

        It is the share of draws of as many units of each platform that say as much, which is exact for steps of any law
        if units were drawn at random. It is the normal law's, times the number of periods, where that is no small
        chance, or units are too many to be drawn so often.
        """
        scores, units = self.scores(gain), sum(len(of) for of, _ in self.strata)
        sums = scores[self.places].sum(axis=0)
        at, size = int(sums.argmax()), float(sums.max())
        chance = min(float(normal_tail(size)) * len(sums), 1.0)
        if chance > _UNLIKELY or units > _MOST_UNITS:
            return at, chance
        rng, block, larger = np.random.default_rng(_DRAWS), max(_CELLS // (units * len(sums)), 1), 0
        for first in range(0, _DRAWS, block):
            drawn = scores[self._drawn(min(block, _DRAWS - first), rng)].sum(axis=1).max(axis=1)
            larger += int((drawn >= size - ROUNDING * abs(size)).sum())
            if larger > _PLENTY:
                return at, larger / (first + len(drawn))
        return at, (larger + 1) / (_DRAWS + 1)

    def _drawn(self, draws: int, rng: np.random.Generator) -> Ints:
        """Return units that might have got the feature as well, (R, k)."""
        parts = [of[np.argsort(rng.random((draws, len(of))), axis=1)[:, :count]] for of, count in self.strata]
        return np.concatenate(parts, axis=1).astype(np.int64)


def _having(table: Audited) -> Ints:
    """Return (U,) 1 of units that get the feature, 0 of those that never do, and -1 of others."""
    units = table.units()
    size, ever, never = (np.bincount(units, of) for of in (None, table.ever, table.never & ~table.ever))
    return np.where(ever == size, 1, np.where(never == size, 0, -1)).astype(np.int64)


def _strata(table: Audited) -> Ints:
    """Return (U,) what units are drawn within: platforms of machines, or one for all if racks got the feature."""
    units = table.units()
    alone = len(np.unique(units)) == len(table.machines)
    return table.platforms()[0] if alone else np.zeros(int(units.max()) + 1, dtype=np.int64)


def _means(of: Ints, values: Floats, count: int) -> Floats:
    """Return the means of values by group; NaN of groups without any."""
    number = np.bincount(of, minlength=count)
    return np.asarray(np.bincount(of, values, count) / np.where(number > 0, number, np.nan), dtype=np.float64)
