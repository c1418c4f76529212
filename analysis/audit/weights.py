"""Guards about the target: jobs that were not covered, and jobs that one arm lacks."""

import numpy as np
from scipy.special import gammaln

from analysis.audit.case import Case
from analysis.audit.findings import ALPHA, MATERIAL, Finding, Severity
from models.arrays import Bools, Floats

_MUCH, _SOME = 0.25, 0.05
"""Shares of the quota: uncovered so much is always told; so little never."""
_LOST = 0.01


def weights_renormalised(case: Case) -> list[Finding] | None:
    """Find that covered jobs hold less than the whole quota, and weights made whole again move the target.

    How far: the spread of the jobs' own effects (DerSimonian and Laird 1986, with machines as clusters) times what
    the weights of covered and uncovered jobs change by.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": range(8), "weight": 1.0, "value": 2.0}
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "quota": [1.0, 1.0]})
    >>> weights_renormalised(Case.of(pd.DataFrame(rows | {"treated": [0, 1] * 4}), jobs))[0].evidence["covered"]
    0.5
    """
    plain, table = case.plain, case.table
    if plain is None or case.about.weights == "full":
        return None
    lacking = 1 - plain.covered
    if lacking <= _SOME:
        return []
    spread = _spread(case)
    shares = table.quota / table.quota.sum() * (1 - table.unseen)
    kept = shares[plain.seen]
    moved = float(np.sqrt((kept**2).sum() * (1 / plain.covered - 1) ** 2 + (shares[~plain.seen] ** 2).sum())) * spread
    ratio = plain.half_widths(2 * moved)
    if lacking <= _MUCH and ratio <= MATERIAL:
        return []
    evidence = {"covered": plain.covered, "spread_of_effects": spread, "moved": moved, "moved_in_half_widths": ratio}
    what = (
        f"jobs seen in both arms hold {plain.covered:.0%} of the quota: the change is of those jobs, not of the fleet"
    )
    remedy = (
        "keep the weights of the whole fleet, and estimate jobs that were not covered (shrunken post-stratification)"
    )
    return [Finding("weights_renormalised", "error" if ratio > 1 else "warning", what, evidence, remedy)]


def _spread(case: Case) -> float:
    """Return the standard deviation of the jobs' own effects, beyond what noise makes of it."""
    table, plain = case.table, case.plain
    if plain is None or plain.seen.sum() < 3:
        return 0.0
    rows = table.study
    noise = np.zeros(len(table.jobs))
    for arm in (table.treated, ~table.treated):
        noise += _mean_variance(case, rows & arm)
    good = plain.seen & np.isfinite(noise) & (noise > 0)
    if good.sum() < 3:
        return 0.0
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


def missing_jobs(case: Case) -> list[Finding] | None:
    """Find jobs that one arm lacks though, at random, it would hold them, and jobs of the fleet that nobody measured.

    A job on k of N machines is missing from all n of an arm by chance (1 − n / N) (1 − n / (N − 1)) …; with all jobs
    together (Bonferroni) this alarms at a chance of `ALPHA`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "machine": [*range(40), *range(0, 40, 2)], "job": ["a"] * 40 + ["b"] * 20}
    >>> frame = pd.DataFrame(rows | {"weight": 1.0, "value": 2.0})
    >>> missing_jobs(Case.of(frame.assign(treated=frame["machine"] % 2)))[0].evidence["jobs"]
    1
    """
    table = case.table
    if case.plain is None:
        return None
    found = [] if table.unseen <= _SOME else [_unmeasured(table.unseen)]
    if table.crossover:
        return found
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
        by_chance = _absent((arms[0] + arms[1]).astype(np.float64), sum(sizes), sizes[k])
        misses = np.where(arms[k] == 0, by_chance, 1.0) * jobs * 2
        lost |= misses <= ALPHA
        chance = min(chance, float(misses.min()))
    share = float(table.quota[lost].sum() / table.quota.sum())
    if share > _LOST:
        evidence = {"jobs": int(lost.sum()), "quota_share": share, "chance": chance}
        what = f"{int(lost.sum())} jobs with {share:.1%} of the quota are missing from one arm altogether"
        remedy = "find out who keeps them off; the answer does not hold for them"
        found.append(Finding("missing_jobs", "error", what, evidence, remedy))
    return found


def _unmeasured(share: float) -> Finding:
    what = f"jobs with {share:.1%} of the fleet's quota have no row at all"
    severity: Severity = "error" if share > _MUCH else "warning"
    return Finding("missing_jobs", severity, what, {"quota_share": share}, "measure them, or say which jobs are meant")


def _absent(held: Floats, total: int, n: int) -> Floats:
    """Return the chance that none of n units drawn from `total` is among the `held`."""
    left = np.maximum(total - held, 0)
    log = gammaln(left + 1) - gammaln(np.maximum(left - n, 0) + 1) - gammaln(total + 1) + gammaln(total - n + 1)
    return np.asarray(np.where(left >= n, np.exp(log), 0.0), dtype=np.float64)
