"""Guards about the interval: what counts as independent, what tails and looks do to it, and which jobs it is of."""

import math

import numpy as np

from analysis.audit.arms import none_drawn
from analysis.audit.case import COMPARED, STEADY, Audited, Case, Contrast, unmet
from analysis.audit.findings import ALPHA, LEAST_COVERAGE, MATERIAL, Finding, Severity
from analysis.statistics import (
    ROUNDING,
    chi2_tail,
    intraclass,
    normal_density,
    normal_quantile,
    student_quantile,
    student_tail,
)
from models.arrays import Bools, Floats, Ints

_FEW = 7.0
"""Effective clusters of an arm below which intervals of normal quantiles cover less than 90%: Student's 6 degrees."""
_MOST = 0.2
"""Skewness of an estimate from which its interval errs (Cochran 1977, section 2.15: more than 25 G² are needed)."""
_SURE = 1.5
"""Standard errors of a skewness below which single machines make it."""
_FALSE = 0.9
"""Predicted coverage below which the interval is taken for false."""
_FEWEST = 8
_ARMS = ("with the feature", "without it")


def whole_racks(case: Case) -> list[Finding] | str:
    """Find a feature that was given to whole racks, while errors are computed by single machines.

    How much that matters is Moulton's (1986) factor on the variance: 1 + (machines a rack − 1) · ρ of the feature
    · ρ of performance, both within racks. Clumping is tested at a chance of `ALPHA` (chi-squared over racks).
    """
    table, plain = case.table, case.plain
    needs = unmet(
        (table.rack is None, "column rack"),
        (table.crossover, STEADY),
        (plain is None, COMPARED),
        (case.about.clusters == "rack", "errors that do not count racks already (clusters)"),
    )
    if needs or table.rack is None:
        return needs
    racks, size = len(np.unique(table.rack)), np.bincount(table.rack)
    if racks < 3 or size.max() < 2 or table.ever.all():
        return "3 racks, one with several machines, and a machine without the feature"
    having = np.bincount(table.rack, table.ever)
    share = float(table.ever.mean())
    scale = share * (1 - share) * len(table.ever) / (len(table.ever) - 1)
    apart = float(((having - size * share) ** 2 / size)[size > 0].sum() / scale)
    chance = float(chi2_tail(apart, racks - 1))
    mates = float((size**2).sum() / size.sum())
    alike, error = _alike_in_racks(case, table.rack)
    together = float(np.nan_to_num(intraclass(table.ever.astype(float), table.rack)[0]))
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
    what = f"the feature was given by racks ({int((having > 0).sum())} of {racks}), whose machines are correlated"
    remedy = "count racks, not machines: wsc effect … --cluster rack; and draw as many racks as you would draw machines"
    return [Finding("whole_racks", "error", what, evidence, remedy)]


def _alike_in_racks(case: Case, rack: Ints) -> tuple[float, float]:
    """Return the correlation within racks of machines' mean relative performance, and its standard error."""
    table = case.table
    correlations = []
    for rows in (table.study & ~table.treated, table.treated, ~table.study):
        count = np.bincount(table.machine[rows], table.weight[rows], len(rack))
        sums = np.bincount(table.machine[rows], table.weight[rows] * table.within_jobs(rows), len(rack))
        known = count > 0
        if len(np.unique(rack[known])) >= 3 and known.sum() > len(np.unique(rack[known])):
            correlations.append(
                (intraclass((sums / np.maximum(count, 1e-300))[known], rack[known])[0], int(known.sum()))
            )
    if not correlations:
        return 0.0, 1.0
    machines = max(n for _, n in correlations)
    racks = len(np.unique(rack))
    alike = float(np.average([r for r, _ in correlations], weights=[n for _, n in correlations]))
    mates = machines / racks
    return alike, float(np.sqrt(2 / max(racks - 1, 1)) / mates)


def few_clusters(case: Case) -> list[Finding] | str:
    """Find arms with too few clusters to estimate an error.

    Counted are effective clusters, 1 / Σ share², of what each carries of its arm's mean (Kish 1965).
    """
    table = case.table
    if case.plain is not None:
        untreated, treated = (float(clusters) for clusters in case.plain.clusters)
    elif table.crossover or not (table.ever.any() and table.never.any()):
        return COMPARED
    else:
        unit = table.units()
        untreated, treated = (float(len(np.unique(unit[arm]))) for arm in (table.never, table.ever))
    least = min(untreated, treated)
    if least >= _FEW:
        return [] if case.plain is not None else COMPARED
    by_rack = table.rack is not None and (table.by_rack or table.whole_racks())
    column = case.flagged.cluster
    named = "machines" if not by_rack else "racks" if column == "rack" else f"clusters by {column}"
    evidence = {"untreated": untreated, "treated": treated, "coverage": _normal_covers(least)}
    what = f"one arm rests on {least:.1f} {named} in effect: its error is hardly known"
    arm, unit = int(treated < untreated), table.units()
    count = len(np.unique(unit[(table.never, table.ever)[arm]]))
    needed = math.ceil(count * _FEW / max(least, 1.0))
    remedy = (
        f"about {needed:,} {named} {_ARMS[1 - arm]} in place of {count:,} (wsc design rehearses how many are needed); "
        "the interval of adjusted has the degrees of freedom of so few already"
    )
    return [Finding("few_clusters", "error" if least < _FEW / 2 else "warning", what, evidence, remedy)]


def _normal_covers(clusters: float) -> float:
    """Return how often an interval of 1.96 standard errors covers with so many clusters."""
    return float(1 - 2 * student_tail(1.96, max(clusters - 1, 0.5)))


def instances_independent(case: Case) -> list[Finding] | str:
    """Find errors that take rows of one machine as independent, by the design effect (Kish 1965)."""
    plain = case.plain
    needs = unmet(
        (plain is None, COMPARED),
        (case.about.clusters in {"machine", "rack"}, "errors that do not count machines or racks already (clusters)"),
    )
    if needs or plain is None:
        return needs
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
    what = (
        "rows of one machine are correlated: a 95% interval that takes them as independent holds the truth in "
        f"{covers:.0%} of cases"
    )
    stated = case.about.clusters == "instance"
    return [
        Finding("instances_independent", "error" if stated else "note", what, evidence, "take machines as clusters")
    ]


def finite_population(case: Case) -> list[Finding] | str:
    """Find a finite-population correction of a difference between arms, which makes intervals too narrow.

    The machines that did not get the feature say nothing of what it does to them: drawn without replacement or not,
    the variance of a difference of two arms has no factor 1 − n / N (Neyman 1923; Imbens and Rubin 2015, section 6.4).
    Of a share s of the machines the correction keeps (1 − s) of the treated arm's variance and s of the other's, which
    hold 1 − s and s of the whole where machines vary alike: (1 − s)² + s².
    """
    if case.about.finite_population_correction is None:
        return "finite_population_correction among the facts about the experiment (YAML)"
    if not case.about.finite_population_correction:
        return []
    share = float(case.table.ever.mean())
    share_kept = 1.0 if case.table.crossover else (1 - share) ** 2 + share**2
    covers = coverage(float(np.sqrt(share_kept)))
    evidence = {"treated_share": share, "variance_kept": share_kept, "coverage": covers}
    what = f"a finite-population correction leaves {share_kept:.0%} of a contrast's variance: it covers {covers:.0%}"
    severity: Severity = "error" if covers < LEAST_COVERAGE else "note"
    return [Finding("finite_population", severity, what, evidence, "leave the correction out")]


def heavy_tails(case: Case) -> list[Finding] | str:
    """Find arms with too few machines for heavy tails: rare machines, far from all others, make intervals false.

    An arm that happens to hold none of them has a mean that is off and an error that is too small, both at once. How
    skewed the estimate is follows from the skewness of what machines add to it, taken over both arms; arms of one size
    cancel each other's. It warns from a skewness of 0.2, which takes one point of coverage, if more than two machines
    make it: the skewness is 1.5 of its standard errors, as these follow from the sixth moment.
    """
    plain = case.plain
    if plain is None:
        return COMPARED
    parts, counts = _parts(plain)
    findings = _found(parts, counts)
    return f"{_FEWEST} machines, 2 in each arm, where {len(parts)} are" if findings is None else findings


def heavy_tails_of_samples(current: Floats, new: Floats, *, whole: bool = False) -> list[Finding]:
    """Find the same of two samples with one value per machine, compared by their means.

    Parameters
    ----------
    current : (M,) of the machines without the feature
    new : (N,) of those with it
    whole : whether the machines without it are all that there are, so that their mean is exact

    Examples
    --------
    >>> fleet = np.where(np.arange(1000) % 40 == 7, 0.5, 1.0) + np.arange(1000) % 3 / 100
    >>> heavy_tails_of_samples(fleet, fleet[:50])[0].severity, heavy_tails_of_samples(fleet[:50], fleet[50:100])
    ('error', [])
    """
    arms = [np.asarray(arm / arm.mean() - 1.0, dtype=np.float64) for arm in (current, new)]
    return _found(np.concatenate(arms), np.array([np.inf if whole else len(current), len(new)], dtype=np.float64)) or []


def _found(parts: Floats, counts: Floats) -> list[Finding] | None:
    """Return the finding of what machines would add to the mean, and how many there are in each arm."""
    if len(parts) < _FEWEST or min(counts) < 2:
        return None
    skewness = _skewness(parts)
    of_estimate = abs(skewness) * _passed_on(counts)
    if of_estimate <= _MOST or abs(skewness) <= _SURE * _error_of_skewness(parts):
        return []
    covers = skewed_coverage(of_estimate)
    needed = round((skewness / _MOST) ** 2)
    evidence = {
        "machines": int(counts[-1]),
        "skewness": skewness,
        "skewness_of_estimate": of_estimate,
        "largest_share": float((parts**2).max() / (parts**2).sum()),
        "coverage": covers,
        "machines_needed": needed,
    } | ({"equal_arms_wider": equal_arms_wider(counts)} if len(counts) > 1 else {})
    what = f"too few machines for such tails (skewness {skewness:+.1f}): an interval of 95% covers about {covers:.0%}"
    severity: Severity = "error" if covers < _FALSE else "warning"
    return [Finding("heavy_tails", severity, what, evidence, _remedy(needed, counts))]


def _remedy(needed: int, counts: Floats) -> str:
    """Return what to do and what it costs: machines, or an interval's width."""
    if len(counts) == 1:
        return f"{needed:,} machines, {needed - counts[0]:,.0f} more"
    short = {
        arm: needed - count for arm, count in zip(_ARMS, counts[::-1].tolist(), strict=True) if math.isfinite(count)
    }
    more = " and ".join(f"{count:,.0f} more {arm}" for arm, count in short.items() if count > 0)
    return (
        f"{needed:,} machines in each arm{f', {more}' if more else ''}; or {counts.min():,.0f} in each, drawn at "
        f"random from those that there are, with an interval {equal_arms_wider(counts):.2f} times as wide"
    )


def equal_arms_wider(counts: Floats) -> float:
    """Return how many times as wide Welch's interval is if the larger arm is cut down to the smaller one's size.

    Machines of both arms vary alike, as they do where the feature is given at random.

    Parameters
    ----------
    counts : (2,) machines of each arm, two at least; infinite of an arm whose mean is exact
    """
    return _half_width(np.full(2, counts.min())) / _half_width(counts)


def _half_width(counts: Floats) -> float:
    """Return half of the 95% interval of a difference of two means of machines whose variance is 1 (Welch 1947)."""
    part = 1 / counts
    freedom = float(part.sum() ** 2 / (part**2 / (counts - 1)).sum())
    return float(student_quantile(0.975, freedom) * np.sqrt(part.sum()))


def skewed_coverage(skewness: float, confidence: float = 0.95) -> float:
    """Return how often Student's interval covers where the estimate has so much skewness.

    The term of skewness in the Edgeworth expansion of the studentised mean (Hall 1992, The Bootstrap and Edgeworth
    Expansion, section 2.6).

    Parameters
    ----------
    skewness : of the estimate; that of a mean of n is that of one, divided by the root of n
    confidence : that the interval claims, 0..1
    """
    z = float(normal_quantile(0.5 + confidence / 2))
    lost = 2 * float(normal_density(z)) * z * (z**4 + 2 * z**2 - 3) / 18 * skewness**2
    return max(confidence - lost, 0.0)


def _parts(plain: Contrast) -> tuple[Floats, Floats]:
    """Return what each cluster would add to the mean if it were alone, and how many clusters each arm has.

    In a crossover a cluster is its own control: there is but one arm, of differences.
    """
    holding = plain.hold > 0
    if holding.all(axis=1).sum() > 0.5 * holding[:, 1].sum():
        any_arm = holding.any(axis=1)
        return (plain.influence[:, 1] - plain.influence[:, 0])[any_arm], np.array([any_arm.sum()], dtype=np.float64)
    counts = holding.sum(axis=0).astype(np.float64)
    return np.concatenate([counts[arm] * plain.influence[holding[:, arm], arm] for arm in (0, 1)]), counts


def _skewness(parts: Floats) -> float:
    away = parts - parts.mean()
    spread = math.sqrt(float((away**2).mean()))
    return float((away**3).mean()) / spread**3 if spread > ROUNDING else 0.0


def _error_of_skewness(parts: Floats) -> float:
    """Return the standard error of the skewness of a symmetric variable with the same even moments."""
    away = parts - parts.mean()
    square, fourth, sixth = (float((away**power).mean()) for power in (2, 4, 6))
    if not math.sqrt(square) > ROUNDING:
        return 0.0
    return math.sqrt(max(sixth / square**3 - 6 * fourth / square**2 + 9, 0.0) / len(parts))


def _passed_on(counts: Floats) -> float:
    """Return how much of one cluster's skewness the difference of two means keeps, or one mean of differences."""
    third = counts[-1] ** -2 - (counts[0] ** -2 if len(counts) > 1 else 0.0)
    return float(abs(third) / (1 / counts).sum() ** 1.5)


def coverage(error_share: float, freedom: float = 1e9, confidence: float = 0.95) -> float:
    """Return how often an unbiased interval covers whose standard error is only a share of the true one.

    Parameters
    ----------
    error_share : claimed standard error divided by the true one, above 0
    freedom : degrees of freedom of Student's t
    confidence : that the interval claims
    """
    half = float(student_quantile(0.5 + confidence / 2, freedom)) * error_share
    return float(1 - 2 * student_tail(half, freedom))


_LOOKS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
_BY_LOOKS = (0.05, 0.083, 0.107, 0.126, 0.142, 0.193, 0.248, 0.320, 0.374)
"""Chance of at least one false positive at equally spaced looks (Armitage, McPherson and Rowe 1969, table 2)."""
_MOST_FALSE = 0.10


def peeking(case: Case) -> list[Finding] | str:
    """Find a result that was looked at several times with an interval that is made for one look."""
    looks = case.about.looks
    if looks is None:
        return "looks among the facts about the experiment (YAML)"
    if looks == 1 or case.about.interval == "always-valid":
        return []
    chance = false_positives(looks)
    severity: Severity = "error" if chance > 2 * _MOST_FALSE else "warning" if chance > _MOST_FALSE else "note"
    what = f"{looks} looks at an interval for one look: {chance:.0%} false positives in place of 5%"
    remedy = "decide at the look that was planned, or use an always-valid confidence sequence"
    return [Finding("peeking", severity, what, {"looks": looks, "false_positives": chance}, remedy)]


def false_positives(looks: int) -> float:
    """Return the chance that any of so many equally spaced looks at a nominal 5% is a false positive."""
    return float(np.interp(np.log(looks), np.log(_LOOKS), _BY_LOOKS))


_MUCH, _SOME = 0.25, 0.05
"""Shares of the quota: uncovered so much is always noted; so little never."""
_LOST = 0.01
_TOLD = 5
"""Machines of each arm from which on a job's noise is known well enough to be weighed by."""


def weights_renormalised(case: Case) -> list[Finding] | str:
    """Find jobs without data in one arm: reweighting the others changes what is estimated.

    How far: the spread of the jobs' own effects (DerSimonian and Laird 1986, with machines as clusters) times what
    weights change by. Jobs that one arm lacks are missing by chance (else `missing_jobs` alarms), so the shift is a
    random error, of which the standard deviation counts. Nobody knows why other jobs have no row at all: all of them
    may be two standard deviations off. From `MATERIAL` half-widths on it warns, and if jobs without any row hold a
    quarter of the quota; otherwise a note says how much is covered, since `adjusted` has the spread in its error. An
    unknown spread is no warning: on machines too few for it, small jobs that one arm lacks are the rule.
    """
    plain, table = case.plain, case.table
    needs = unmet(
        (plain is None, COMPARED),
        (case.about.weights == "full", "weights that are not those of the whole fleet already"),
    )
    if needs or plain is None:
        return needs
    uncovered = 1 - plain.covered
    if uncovered <= _SOME:
        return []
    spread = _spread(case)
    shares = table.quota / table.quota.sum() * (1 - table.unseen)
    covers, lacking = shares[plain.comparable], shares[~plain.comparable]
    by_chance = np.sqrt((covers**2).sum() * (lacking.sum() / plain.covered) ** 2 + (lacking**2).sum())
    moved = (float(by_chance) + 2 * table.unseen) * spread
    unknown, ratio = math.isnan(moved), 0.0 if math.isnan(moved) else plain.half_widths(moved)
    if uncovered <= _MUCH and ratio <= MATERIAL:
        return []
    unexplained = table.unseen > _MUCH
    evidence = {"covered": plain.covered}
    evidence |= {} if unknown else {"spread_of_effects": spread, "moved": moved, "moved_in_half_widths": ratio}
    what = (
        f"jobs seen in both arms hold {plain.covered:.0%} of the quota: the change is that of these jobs, not "
        "of the whole fleet"
    )
    remedy = (
        "keep the weights of the whole fleet, and estimate jobs that were not covered (shrunken post-stratification)"
    )
    severity: Severity = "error" if ratio > 1 else "warning" if ratio > MATERIAL or unexplained else "note"
    return [Finding("weights_renormalised", severity, what, evidence, remedy)]


def _spread(case: Case) -> float:
    """Return the standard deviation of the jobs' own effects, beyond what noise makes of it; NaN if few jobs tell."""
    table, plain = case.table, case.plain
    if plain is None or plain.comparable.sum() < 3:
        return math.nan
    rows, jobs = table.study, len(table.jobs)
    noise, enough = np.zeros(jobs), plain.comparable.copy()
    for arm in (table.treated, ~table.treated):
        noise += _mean_variance(case, rows & arm)
        enough &= (
            np.bincount(np.unique(table.machine[rows & arm] * jobs + table.job[rows & arm]) % jobs, minlength=jobs)
            >= _TOLD
        )
    good = enough & np.isfinite(noise) & (noise > 0)
    if good.sum() < 3:
        return math.nan
    d, v = plain.by_job[good], noise[good]
    w = 1 / v
    mean = float((w * d).sum() / w.sum())
    excess = float((w * (d - mean) ** 2).sum()) - (good.sum() - 1)
    return float(np.sqrt(max(excess / (w.sum() - (w**2).sum() / w.sum()), 0.0)))


def _mean_variance(case: Case, rows: Bools) -> Floats:
    """Return (J,) the variance of each job's mean over these rows, by machines."""
    table = case.table
    jobs = len(table.jobs)
    cell, of = np.unique(table.machine[rows] * jobs + table.job[rows], return_inverse=True)
    n, s, job = np.bincount(of), np.bincount(of, table.relative[rows]), cell % jobs
    total = np.maximum(np.bincount(job, n, jobs), 1)
    mean = np.bincount(job, s, jobs) / total
    machines = np.bincount(job, minlength=jobs)
    squares = np.bincount(job, (s - n * mean[job]) ** 2, jobs) / total**2
    return np.asarray(np.where(machines > 1, squares * machines / np.maximum(machines - 1, 1), np.nan))


def missing_jobs(case: Case) -> list[Finding] | str:
    """Find jobs that one arm lacks although a random arm would have them, and jobs without any measurement.

    A job on k of N machines is missing from all n of an arm by chance (1 − n / N) (1 − n / (N − 1)) …; with all jobs
    together (Bonferroni) this alarms at a chance of `ALPHA`.
    """
    table = case.table
    if case.plain is None:
        return _no_job_in_both(table) or COMPARED
    findings = [] if table.unseen <= _SOME else [_unmeasured(table.unseen)]
    if table.crossover:
        return findings
    jobs, study = len(table.jobs), table.study
    pair = np.unique(table.machine[study] * jobs + table.job[study])
    machine, job = pair // jobs, pair % jobs
    unit = table.units()
    arms = [
        np.bincount(np.unique(unit[machine[arm]] * jobs + job[arm]) % jobs, minlength=jobs)
        for arm in (~table.ever[machine], table.ever[machine])
    ]
    sizes = [len(np.unique(unit[machine[arm]])) for arm in (~table.ever[machine], table.ever[machine])]
    lost, chance = np.zeros(jobs, dtype=np.bool_), 1.0
    for k in (0, 1):
        by_chance = none_drawn((arms[0] + arms[1]).astype(np.float64), sum(sizes), sizes[k])
        misses = np.where(arms[k] == 0, by_chance, 1.0) * jobs * 2
        lost |= misses <= ALPHA
        chance = min(chance, float(misses.min()))
    share = float(table.quota[lost].sum() / table.quota.sum())
    if share > _LOST:
        evidence = {"jobs": int(lost.sum()), "quota_share": share, "chance": chance}
        what = f"{int(lost.sum())} jobs with {share:.1%} of the quota are missing from one arm altogether"
        remedy = "find out who keeps them off; the answer does not hold for them"
        findings.append(Finding("missing_jobs", "error", what, evidence, remedy))
    return findings


def _no_job_in_both(table: Audited) -> list[Finding]:
    """Return that both arms were measured in the study, but no job in both; nothing if an arm has no row."""
    arms = [np.unique(table.job[rows]) for rows in (table.study & table.treated, table.study & ~table.treated)]
    if not all(map(len, arms)) or np.isin(arms[0], arms[1]).any():
        return []
    first, other = (str(table.jobs[jobs[0]]) for jobs in arms)
    what = (
        f"no job has rows in both arms, so nothing can be compared: {len(arms[0])} with the feature, such as {first}, "
        f"{len(arms[1])} without it, such as {other}"
    )
    evidence = {"treated": float(len(arms[0])), "untreated": float(len(arms[1]))}
    return [Finding("missing_jobs", "error", what, evidence, "give a job the same name in both arms (--column job=…)")]


def _unmeasured(share: float) -> Finding:
    what = f"jobs with {share:.1%} of the fleet's quota have no row at all"
    severity: Severity = "error" if share > _MUCH else "warning"
    return Finding("missing_jobs", severity, what, {"quota_share": share}, "measure them, or say which jobs are meant")
