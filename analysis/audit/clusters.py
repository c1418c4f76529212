"""Guards about what counts as independent: racks, machines, instances, and how many of them there are."""

import numpy as np
from scipy.stats import chi2, t

from analysis.audit.findings import ALPHA, LEAST_COVERAGE, Finding, Severity, coverage
from analysis.audit.table import Case
from models.arrays import Bools, Floats, Ints

_FEW = 7.0
"""Effective clusters of an arm below which intervals of normal quantiles cover less than 90%: Student's 6 degrees."""


def whole_racks(case: Case) -> list[Finding] | None:
    """Find machines that got the feature by racks while the error is to be that of single machines.

    How much that matters is Moulton's (1986) factor on the variance: 1 + (machines a rack − 1) · ρ of the feature
    · ρ of performance, both within racks. Clumping is tested at a chance of `ALPHA` (chi-squared over racks).
    """
    table, plain = case.table, case.plain
    if table.rack is None or table.crossover or plain is None or case.about.clusters == "rack":
        return None
    racks, size = len(np.unique(table.rack)), np.bincount(table.rack)
    if racks < 3 or size.max() < 2 or table.ever.all():
        return None
    having = np.bincount(table.rack, table.ever)
    share = float(table.ever.mean())
    scale = share * (1 - share) * len(table.ever) / (len(table.ever) - 1)
    apart = float(((having - size * share) ** 2 / size)[size > 0].sum() / scale)
    chance = float(chi2.sf(apart, racks - 1))
    mates = float((size**2).sum() / size.sum())
    alike, error = _alike_in_racks(case, table.rack)
    together = _correlation(table.ever.astype(float), table.rack)
    factor = 1 + (mates - 1) * max(together, 0.0) * max(alike + error, 0.0)
    covers = coverage(1 / np.sqrt(factor))
    if chance > ALPHA or (covers >= LEAST_COVERAGE and not table.whole_racks()):
        return []
    evidence = {
        "racks": racks,
        "racks_treated": int((having > 0).sum()),
        "alike_within_racks": alike,
        "feature_within_racks": together,
        "variance_factor": factor,
        "coverage_at_most": covers,
        "chance": chance,
    }
    what = f"the feature was given by racks ({int((having > 0).sum())} of {racks}), whose machines are alike"
    remedy = (
        "take the rack as the cluster of every error (wsc effect does by the estimator adjusted and its variants if "
        "--about says clusters: rack), and as many racks as you would take machines"
    )
    return [Finding("whole_racks", "error", what, evidence, remedy)]


def _alike_in_racks(case: Case, rack: Ints) -> tuple[float, float]:
    """Return the correlation within racks of machines' mean relative performance, and its standard error."""
    table = case.table
    correlations = []
    for rows in (table.study & ~table.treated, table.treated, ~table.study):
        count = np.bincount(table.machine[rows], table.weight[rows], len(rack))
        sums = np.bincount(table.machine[rows], table.weight[rows] * _less_job(case, rows), len(rack))
        known = count > 0
        if len(np.unique(rack[known])) >= 3 and known.sum() > len(np.unique(rack[known])):
            correlations.append(
                (_correlation((sums / np.maximum(count, 1e-300))[known], rack[known]), int(known.sum()))
            )
    if not correlations:
        return 0.0, 1.0
    machines = max(n for _, n in correlations)
    racks = len(np.unique(rack))
    alike = float(np.average([r for r, _ in correlations], weights=[n for _, n in correlations]))
    mates = machines / racks
    return alike, float(np.sqrt(2 / max(racks - 1, 1)) / mates)


def _less_job(case: Case, rows: Bools) -> Floats:
    job, value = case.table.job[rows], case.table.relative[rows]
    jobs = len(case.table.jobs)
    mean = np.bincount(job, value, jobs) / np.maximum(np.bincount(job, minlength=jobs), 1)
    return np.asarray(value - mean[job], dtype=np.float64)


def _correlation(value: Floats, group: Ints) -> float:
    """Return the intraclass correlation by analysis of variance (Donner 1986)."""
    code = np.unique(group, return_inverse=True)[1]
    size = np.bincount(code)
    groups, n = len(size), len(value)
    mean = np.bincount(code, value) / size
    between = float((size * (mean - value.mean()) ** 2).sum()) / (groups - 1)
    within = float(((value - mean[code]) ** 2).sum()) / max(n - groups, 1)
    typical = (n - float((size**2).sum()) / n) / (groups - 1)
    total = between + (typical - 1) * within
    return (between - within) / total if total > 0 else 0.0


def few_clusters(case: Case) -> list[Finding] | None:
    """Find arms that rest on too few clusters for an error to be known.

    Counted are effective clusters, 1 / Σ share², of what each carries of its arm's mean (Kish 1965).
    """
    table = case.table
    if case.plain is not None:
        untreated, treated = (float(clusters) for clusters in case.plain.clusters)
    elif table.crossover or not (table.ever.any() and table.never.any()):
        return None
    else:
        unit = table.units()
        untreated, treated = (float(len(np.unique(unit[arm]))) for arm in (table.never, table.ever))
    least = min(untreated, treated)
    if least >= _FEW:
        return [] if case.plain is not None else None
    named = "racks" if table.rack is not None and (table.by_rack or table.whole_racks()) else "machines"
    evidence = {"untreated": untreated, "treated": treated, "coverage": _normal_covers(least)}
    what = f"one arm rests on {least:.1f} {named} in effect: its error is hardly known"
    remedy = f"more {named}; until then Student's t with the effective number less 1"
    return [Finding("few_clusters", "error" if least < _FEW / 2 else "warning", what, evidence, remedy)]


def _normal_covers(clusters: float) -> float:
    """Return how often an interval of 1.96 standard errors covers with so many clusters."""
    return float(1 - 2 * t.sf(1.96, max(clusters - 1, 0.5)))


def instances_independent(case: Case) -> list[Finding] | None:
    """Find errors that take rows of one machine for independent, by the design effect of the data (Kish 1965)."""
    plain = case.plain
    if plain is None or case.about.clusters in {"machine", "rack"}:
        return None
    effect = plain.design_effect
    covers = coverage(1 / np.sqrt(max(effect, 1e-9)))
    if covers >= LEAST_COVERAGE:
        return []
    evidence = {
        "design_effect": effect,
        "coverage": covers,
        "error": plain.error,
        "error_as_independent": plain.alone_error,
    }
    what = f"rows of one machine are alike: as independent rows they would cover {covers:.0%} in place of 95%"
    stated = case.about.clusters == "instance"
    return [
        Finding("instances_independent", "error" if stated else "note", what, evidence, "take machines as clusters")
    ]


def finite_population(case: Case) -> list[Finding] | None:
    """Find a finite-population correction on a contrast, where it has no place.

    The machines that did not get the feature say nothing of what it does to them: drawn without replacement or not,
    the variance of a difference of two arms has no factor 1 − n / N (Neyman 1923; Imbens and Rubin 2015, section 6.4).
    Of a share s of the machines the correction keeps (1 − s) of the treated arm's variance and s of the other's, which
    hold 1 − s and s of the whole where machines vary alike: (1 − s)² + s².
    """
    if case.about.finite_population_correction is None:
        return None
    if not case.about.finite_population_correction:
        return []
    share = float(case.table.ever.mean())
    share_kept = 1.0 if case.table.crossover else (1 - share) ** 2 + share**2
    covers = coverage(float(np.sqrt(share_kept)))
    evidence = {"treated_share": share, "variance_kept": share_kept, "coverage": covers}
    what = f"a finite-population correction leaves {share_kept:.0%} of a contrast's variance: it covers {covers:.0%}"
    severity: Severity = "error" if covers < LEAST_COVERAGE else "note"
    return [Finding("finite_population", severity, what, evidence, "leave the correction out")]


def mixed_machines(case: Case) -> list[Finding]:
    """Find machines that had rows with and without the feature in one period: neighbours share caches and power."""
    table = case.table
    cell = (table.machine * len(table.periods) + table.period)[table.study]
    n, on = np.bincount(cell), np.bincount(cell, table.treated[table.study])
    touched = on > 0
    share = float(((on > 0) & (on < n))[touched].mean())
    if share <= 0.02:
        return []
    what = f"on {share:.0%} of the treated machines only some instances have the feature, beside others without"
    remedy = "give the feature to whole machines, or take in how neighbours act on each other"
    return [Finding("mixed_machines", "error", what, {"share": share}, remedy)]
