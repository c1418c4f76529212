"""The guard that counts machines with the feature against the plan."""

from collections.abc import Iterator, Mapping

import numpy as np

from analysis.audit.case import STEADY, Audited, Case, unmet
from analysis.audit.findings import ALPHA, Finding
from analysis.statistics import ROUNDING, binomial_p_value, chi2_tail, normal_tail
from models.arrays import Bools, Floats, Ints

_LEAST_UNITS = 40
"""Units from which slow and fast ones are counted by themselves."""
_POWERS = (3, 9)
"""Powers of a unit's rank from the fastest, 0..1, by which slow ones are weighted: half at the slowest 21 and 7%."""
_DRAWS, _MOST_UNITS, _UNLIKELY = 9_999, 2_000, 0.05
"""Draws of arms, and units from which, and chances above which, the normal law is good enough."""
_DECIMALS = 9
"""Of units' values before the study, relative to their jobs': what differs less is alike but for rounding."""
_LEAST_VARIANCE = 3.0
"""Variance of a platform's count from which its square is nearly a chi-square."""
_REMEDY = "find out which machines are lost, and why; compare all that were drawn, as drawn"


def sample_ratio(case: Case) -> list[Finding] | str:
    """Find that more or fewer machines have the feature than were planned: in all, on a platform, of slow or fast ones.

    Counted are machines of the study (racks, if whole racks were drawn). Where a share was planned: all of them, and
    with weights for those whose values were low or high before the study, because machines that are lost are often slow
    (`_unlikely`). Where there are several platforms: each by itself (exact binomial tests), and, if none is unlikely by
    itself, all beside each other (chi-square; Pearson 1900), without a planned share against the share of all. All
    together alarm at a chance of `ALPHA` (Bonferroni).
    """
    table, planned = case.table, case.about.planned_share
    platform, names = table.platforms()
    needs = unmet(
        (table.crossover, STEADY),
        (
            planned is None and len(names) == 1,
            "planned_share among the facts about the experiment (YAML), or several values of platform",
        ),
    )
    if needs:
        return needs
    first = _first_of_units(table)
    by_platform = _planned(planned, [str(name) for name in names], float(table.ever[first].mean()))
    share = by_platform[platform]
    among = first & np.isfinite(share)
    counts = (planned is not None) + (len(names) > 1)
    findings = list(_of_all(table, share, among, counts)) if planned is not None and among.any() else []
    if len(names) > 1:
        of_platforms = [among & (platform == k) for k in range(len(names))]
        findings += _of_platforms(table.ever, share, [*map(str, names)], of_platforms, counts)
    return findings


def _first_of_units(table: Audited) -> Bools:
    """Return (M,) the first machine of each unit whose arm is known."""
    known = table.ever | table.never
    first = np.zeros(len(known), dtype=np.bool_)
    first[np.unique(np.where(known, table.units(), -1), return_index=True)[1]] = True
    return first & known


def _planned(planned: float | Mapping[str, float] | None, names: list[str], overall: float) -> Floats:
    """Return (P,) the share planned for each platform, NaN if it is not known; without a plan that of all machines."""
    if planned is None:
        planned = overall if 0 < overall < 1 else np.nan
    return np.array([planned.get(name, np.nan) if isinstance(planned, Mapping) else planned for name in names])


def _off(ever: Bools, share: Floats, of: Bools, where: str, chance: float) -> Finding:
    """Return that so many units have the feature, and how many should."""
    n, having, expected = int(of.sum()), int((of & ever).sum()), float(share[of].mean())
    evidence = {"machines": n, "treated": having, "treated_share": having / n, "planned": expected, "chance": chance}
    what = f"{having} of {n} units have the feature {where}; {expected:.0%} were to have it"
    return Finding("sample_ratio", "error", what, evidence, _REMEDY)


def _of_all(table: Audited, share: Floats, among: Bools, counts: int) -> Iterator[Finding]:
    """Yield that too many or too few of all units have the feature, or of slow or fast ones; one of so many counts."""
    past = np.where(among, np.round(_past(table), _DECIMALS), np.nan)
    ranked = np.isfinite(past)
    if ranked.sum() < _LEAST_UNITS:
        having, n = int((among & table.ever).sum()), int(among.sum())
        chance = counts * binomial_p_value(having, n, float(share[among].mean()))
        if chance <= ALPHA:
            yield _off(table.ever, share, among, "in all machines", chance)
        return
    side, chance = _unlikely(table.ever[among], share[among], past[among])
    chance *= counts
    if chance > ALPHA:
        return
    fifth = -(-int(ranked.sum()) // 5)
    if side < 0:
        low = ranked & (past <= np.sort(past[ranked])[fifth - 1])
        yield _off(table.ever, share, low, "of the fifth with the lowest values before the study", chance)
    elif side > 0:
        high = ranked & (past >= np.sort(past[ranked])[-fifth])
        yield _off(table.ever, share, high, "of the fifth with the highest values before the study", chance)
    else:
        yield _off(table.ever, share, among, "in all machines", chance)


def _past(table: Audited) -> Floats:
    """Return (M,) the mean over series of what a unit did before the study, less what jobs did in each period."""
    before, unit = ~table.study, table.units()
    key = table.job * len(table.periods) + table.period
    left = table.relative - (np.bincount(key, table.relative) / np.maximum(np.bincount(key), 1))[key]
    rows = np.bincount(table.series[before], minlength=int(table.series.max()) + 1)
    mean = np.bincount(table.series[before], left[before], len(rows)) / np.maximum(rows, 1)
    of_series: Ints = np.zeros(len(rows), dtype=np.int64)
    of_series[table.series] = unit[table.machine]
    count = np.bincount(of_series[rows > 0], minlength=int(unit.max()) + 1)
    total = np.bincount(of_series[rows > 0], mean[rows > 0], len(count))
    return np.asarray(total / np.where(count > 0, count, np.nan), dtype=np.float64)[unit]


def _unlikely(ever: Bools, share: Floats, past: Floats) -> tuple[int, float]:
    """Return where counts of units are furthest from the plan (-1 low values, 0 all, 1 high ones), and the chance.

    Of units in all, and weighted by powers of their ranks from either end: the largest of these sums in standard
    deviations, among so many draws of arms as planned, or by the normal law, times the number of sums. Units without
    a past (NaN) count in all alone; units alike before have the mean of their weights.
    """
    weight = np.column_stack([np.ones(len(ever)), np.zeros((len(ever), 2 * len(_POWERS)))])
    ranked = np.flatnonzero(np.isfinite(past))
    _, alike, count = np.unique(past[ranked], return_inverse=True, return_counts=True)
    rank = (np.arange(len(ranked)) + 0.5) / len(ranked)
    ends = [*((1.0 - rank) ** power for power in _POWERS), *(rank**power for power in _POWERS)]
    for column, of_rank in enumerate(ends, 1):
        weight[ranked, column] = (np.add.reduceat(of_rank, np.cumsum(count) - count) / count)[alike]
    weight /= np.sqrt(np.maximum((weight**2 * (share * (1.0 - share))[:, None]).sum(axis=0), ROUNDING))
    sizes = np.abs((ever - share) @ weight)
    at, size = int(sizes.argmax()), float(sizes.max())
    side = 0 if at == 0 else -1 if at <= len(_POWERS) else 1
    chance = min(float(2.0 * normal_tail(size)) * len(sizes), 1.0)
    if chance > _UNLIKELY or len(ever) > _MOST_UNITS:
        return side, chance
    rng, larger, block = np.random.default_rng(_DRAWS), 0, 1_111
    for _ in range(_DRAWS // block):
        drawn = (rng.random((block, len(ever))) < share) - share
        larger += int((np.abs(drawn @ weight).max(axis=1) >= size - ROUNDING).sum())
    return side, (larger + 1) / (_DRAWS + 1)


def _of_platforms(ever: Bools, share: Floats, names: list[str], of: list[Bools], counts: int) -> list[Finding]:
    """Return platforms with too many or too few units, or that all are further apart than draws make them.

    Each half of this one of so many counts, the platforms by themselves and beside each other, has half of its chance.
    """
    present = {name: units for name, units in zip(names, of, strict=True) if units.any()}
    halves, findings = 2 * counts, list[Finding]()
    for name, units in present.items():
        having, n = int((units & ever).sum()), int(units.sum())
        chance = halves * len(present) * binomial_p_value(having, n, float(share[units].mean()))
        if chance <= ALPHA:
            findings.append(_off(ever, share, units, f"on platform {name}", chance))
    if findings:
        return findings
    off, variance = (
        np.array([of_unit[units].sum() for units in present.values()])
        for of_unit in (ever - share, share * (1 - share))
    )
    usable = variance >= _LEAST_VARIANCE
    off, variance = off[usable], variance[usable]
    if len(off) < 2:
        return []
    size = float((off**2 / variance).sum() - off.sum() ** 2 / variance.sum())
    chance = halves * float(chi2_tail(size, len(off) - 1))
    if chance > ALPHA:
        return []
    counted = [name for name, ok in zip(present, usable, strict=True) if ok]
    most, fewest = counted[int(off.argmax())], counted[int(off.argmin())]
    evidence = {"chi_square": size, "platforms": float(len(off)), "chance": chance}
    what = (
        f"platforms are further apart than the plan: {off.max():+.0f} units with the feature on {most}, "
        f"{off.min():+.0f} on {fewest}"
    )
    return [Finding("sample_ratio", "error", what, evidence, _REMEDY)]
