"""Guards about who is compared: how machines were drawn, who came and went, which jobs and weights the answer is of."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.special import gammaln
from scipy.stats import binomtest, norm, t

from analysis.audit.case import Audited, Case
from analysis.audit.findings import ALPHA, MATERIAL, Finding, Severity
from analysis.statistics import ROUNDING
from models.arrays import Bools, Floats, Ints

_MOST_JOBS = 500
_SUSPECT = ("covering", "densest", "chosen")
_WHAT: Mapping[str, str] = {
    "instances": "instances a machine",
    "jobs": "jobs a machine",
    "quota": "CPU quota a machine",
    "covered": "jobs that the treated machines cover",
}


def selection_optimised(case: Case) -> list[Finding] | None:
    """Find machines that were chosen for what they hold: their composition is not that of a random draw.

    Instances, jobs and quota of the treated machines before the study and the jobs that they cover together are
    compared with the exact mean and variance over simple random draws, within platforms (Cochran 1977, section 2.5;
    for coverage the hypergeometric chance that a draw misses a job, and both of two). It alarms at a chance of `ALPHA`.
    """
    table, selection = case.table, case.about.selection
    remedy = "draw machines at random, or with known probabilities and weights that use them"
    if selection in _SUSPECT:
        what = f"machines were not drawn but selected ({selection}): their error is not that of a random draw"
        return [Finding("selection_optimised", "error", what, {}, remedy)]
    treated, unit = table.ever, table.units()
    if selection == "probabilities" or treated.all() or len(np.unique(unit)) < 8:
        return None
    tests = dict(_composition(table, treated, unit))
    if not tests:
        return None
    worst = max(tests, key=lambda name: abs(tests[name]))
    chance = float(min(2 * norm.sf(abs(tests[worst])) * len(tests), 1.0))
    if chance > ALPHA:
        return []
    evidence = {f"z_{name}": z for name, z in tests.items()} | {"chance": chance}
    more = "more" if tests[worst] > 0 else "fewer"
    what = (
        f"machines look selected: {_WHAT[worst]} are {more} than in random draws ({tests[worst]:+.1f} standard errors)"
    )
    return [Finding("selection_optimised", "error", what, evidence, remedy)]


def _composition(table: Audited, treated: Bools, unit: Ints) -> Iterator[tuple[str, float]]:
    """Yield how many standard errors each statistic of the treated units is from its mean over random draws."""
    rows = ~table.study if (~table.study).any() else table.period == table.period[table.study].min()
    units, jobs = int(unit.max()) + 1, len(table.jobs)
    of = unit[table.machine[rows]]
    pair = np.unique(of * jobs + table.job[rows])
    counted = np.bincount(of, minlength=units) > 0
    size = np.maximum(np.bincount(unit, minlength=units), 1)
    code, names = table.platforms()
    platform = np.zeros(units, dtype=np.int64)
    platform[unit] = code
    having = np.bincount(unit, treated, units) > 0
    columns = {
        "instances": np.bincount(of, minlength=units) / size,
        "jobs": np.bincount(pair // jobs, minlength=units) / size,
        "quota": np.bincount(of, table.weight[rows], units) / size,
    }
    for name, column in columns.items():
        z = _drawn(column[counted], having[counted], platform[counted])
        if z is not None:
            yield name, z
    if len(names) == 1:
        yield "covered", _covered(pair // jobs, pair % jobs, having, counted)


def _drawn(column: Floats, having: Bools, stratum: Ints) -> float | None:
    """Return how many standard errors the treated units' sum is from that of simple random draws within strata."""
    apart, variance = 0.0, 0.0
    for number in np.unique(stratum):
        inside = stratum == number
        n, total = int(having[inside].sum()), int(inside.sum())
        if 0 < n < total:
            apart += float(column[inside & having].sum() - n * column[inside].mean())
            spread = float(column[inside].std(ddof=1))
            variance += n * (1 - n / total) * spread**2 * (spread > ROUNDING * float(np.abs(column[inside]).max()))
    return apart / float(np.sqrt(variance)) if variance > 0 else None


def _covered(unit: Ints, job: Ints, having: Bools, known: Bools) -> float:
    """Return how many standard errors the number of jobs on treated units is from that of random draws."""
    total, n = int(known.sum()), int((having & known).sum())
    count = np.bincount(job)
    most = np.argsort(-count, kind="stable")[:_MOST_JOBS]
    most = most[count[most] > 0]
    holds = np.zeros((len(having), len(count)), dtype=np.float32)
    holds[unit, job] = 1
    holds = holds[:, most]
    holders = holds.sum(axis=0).astype(np.float64)
    either = holders[:, None] + holders[None, :] - (holds.T @ holds).astype(np.float64)
    missed = _misses(holders, total, n)
    variance = float((_misses(either, total, n) - np.outer(missed, missed)).sum())
    covered_jobs = float((holds[having].sum(axis=0) > 0).sum())
    # Near certain coverage of all jobs the number is far from normal: half a job is given away, as for any count.
    apart = covered_jobs - float((1 - missed).sum())
    return float(np.sign(apart) * max(abs(apart) - 0.5, 0.0) / np.sqrt(max(variance, 0.25)))


def _misses(holders: Floats, total: int, n: int) -> Floats:
    """Return the chance that n of `total` units, drawn at random, hold none of so many."""
    left = np.maximum(total - holders, 0)
    fits = left >= n
    log = gammaln(left + 1) - gammaln(np.maximum(left - n, 0) + 1) - gammaln(total + 1) + gammaln(total - n + 1)
    return np.asarray(np.where(fits, np.exp(log), 0.0), dtype=np.float64)


def imbalance_before(case: Case) -> list[Finding] | None:
    """Find arms that differed before anything had the feature.

    It alarms at a chance of `ALPHA` and if the difference is `MATERIAL` half-widths of the plain estimate.
    """
    prior, plain = case.prior, case.plain
    if prior is None or plain is None or case.table.crossover or not prior.error > 0:
        return None
    chance = float(2 * t.sf(abs(prior.change) / prior.error, prior.freedom))
    ratio = plain.half_widths(prior.change)
    if chance > ALPHA or ratio <= MATERIAL:
        return []
    evidence = {"difference": prior.change, "error": prior.error, "chance": chance, "difference_in_half_widths": ratio}
    what = f"machines with the feature were {prior.change:+.2%} from the others before they had it"
    remedy = "draw machines at random; if they were, adjust for the pre-period"
    return [Finding("imbalance_before", "error" if ratio > 1 else "warning", what, evidence, remedy)]


def sample_ratio(case: Case) -> list[Finding] | None:
    """Find that more or fewer machines have the feature than were planned, in all or on a platform.

    Exact binomial tests of the machines of the study (racks, if whole racks were drawn), overall and by platform.
    Without a planned share the platforms are compared with the share of all. It alarms at a chance of `ALPHA`.
    """
    table, planned = case.table, case.about.planned_share
    platform, names = table.platforms()
    if table.crossover or (planned is None and len(names) == 1):
        return None
    unit, known = table.units(), table.ever | table.never
    first = np.zeros(len(known), dtype=np.bool_)
    first[np.unique(np.where(known, unit, -1), return_index=True)[1]] = True
    first &= known
    counts = [(name, first & (platform == k)) for k, name in enumerate(names)] if len(names) > 1 else []
    if planned is not None and not isinstance(planned, Mapping):
        counts.append(("all", first))
    findings = []
    for name, among in counts:
        share = _planned(planned, str(name), float(table.ever[first].mean()))
        n, having = int(among.sum()), int((among & table.ever).sum())
        if share is None or not n:
            continue
        chance = float(min(binomtest(having, n, share).pvalue * len(counts), 1.0))
        if chance <= ALPHA:
            evidence = {
                "machines": n,
                "treated": having,
                "treated_share": having / n,
                "planned": share,
                "chance": chance,
            }
            where = "all machines" if name == "all" else f"platform {name}"
            what = f"{having} of {n} units have the feature in {where}; {share:.0%} were to have it"
            remedy = "find out which machines are lost, and why; compare all that were drawn, as drawn"
            findings.append(Finding("sample_ratio", "error", what, evidence, remedy))
    return findings


def _planned(planned: float | Mapping[str, float] | None, name: str, overall: float) -> float | None:
    """Return the share planned for a platform; without a plan that of all machines."""
    if planned is None:
        return overall if 0 < overall < 1 else None
    return planned.get(name) if isinstance(planned, Mapping) else planned


_ALIKE, _OVER_TIME = 0.05, ("rows", "stayed")
"""How far apart the arms' windows may be where what adds up over periods is compared."""
_LEAST = 0.02
"""Difference of shares, or relative difference of rows, from which churn is told."""


def churn(case: Case) -> list[Finding] | None:
    """Find that instances of one arm arrived, left or were there for less of the time more often than the other's.

    Compared are, for each machine, the share of its rows in the study whose instance it did not hold before, the share
    of its instances before that it still holds, its rows relative to before, and the mean time present (`present_s`);
    Welch's tests over machines, which together alarm at a chance of `ALPHA`, from differences of 2%.
    Arrivals are less their period's mean; where the arms were observed at different times, what adds up over periods
    is not compared.
    """
    table = case.table
    if table.crossover:
        return None
    tests = dict(_compared(table))
    if table.windows_apart() > _ALIKE:
        tests = {name: test for name, test in tests.items() if name not in _OVER_TIME}
    if not tests:
        return None
    level = ALPHA / len(tests)
    far = {name: test for name, test in tests.items() if test[1] <= level and abs(test[0]) > _LEAST}
    if not far:
        return []
    name = min(far, key=lambda name: far[name][1])
    apart, chance = far[name]
    evidence = {f"{name_}_difference": test[0] for name_, test in tests.items()} | {"chance": chance * len(tests)}
    what = f"the arms' instances {_WHAT_CHURNS[name]} differently: {apart:+.1%} with the feature"
    remedy = "compare instances as they were before the feature, wherever they went, or redraw what is restarted"
    return [Finding("churn", "error", what, evidence, remedy)]


_WHAT_CHURNS = {"arrived": "arrived", "stayed": "stayed", "rows": "are counted", "present": "were present"}


def _compared(table: Audited) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield by what arms are compared: difference (with less without the feature) and its chance."""
    both = np.bincount(table.machine, table.study, len(table.machines)) > 0
    before = ~table.study
    if before.any():
        both &= np.bincount(table.machine, before, len(table.machines)) > 0
    for name, value in _shares(table):
        known = both & np.isfinite(value)
        arms = value[known & table.ever], value[known & ~table.ever]
        if min(map(len, arms)) >= 3:
            yield name, _welch(*arms)


def _shares(table: Audited) -> Iterator[tuple[str, Floats]]:
    """Yield (M,) what churn makes of each machine, NaN where it is not known."""
    machines, before = len(table.machines), ~table.study
    total = np.bincount(table.machine[before], minlength=machines).astype(np.float64)
    has = np.bincount(table.machine[table.study], minlength=machines).astype(np.float64)
    if before.any():
        spans = len(np.unique(table.period[table.study])) / len(np.unique(table.period[before]))
        yield "rows", has / np.where(total > 0, total, np.nan) / spans
    if before.any() and "instance" in table.rows:
        instance = pd.factorize(table.rows["instance"])[0]
        key = table.machine * (int(instance.max()) + 1) + instance
        old, new = np.unique(key[before]), np.unique(key[table.study])
        known = np.isin(key[table.study], old)
        rows, period = table.study, table.period[table.study]
        usual = np.bincount(period, ~known) / np.maximum(np.bincount(period), 1)
        arrived = np.bincount(table.machine[rows], ~known - usual[period], machines)
        yield "arrived", arrived / np.where(has > 0, has, np.nan)
        owner = old // (int(instance.max()) + 1)
        stayed = np.bincount(owner, np.isin(old, new), machines)
        yield (
            "stayed",
            stayed
            / np.where(np.bincount(owner, minlength=machines) > 0, np.bincount(owner, minlength=machines), np.nan),
        )
    if "present_s" in table.rows:
        present = table.rows["present_s"].to_numpy(dtype=np.float64)
        yield "present", _mean(table, table.study, present / present.max())


def _mean(table: Audited, rows: Bools, value: Floats) -> Floats:
    count = np.bincount(table.machine[rows], minlength=len(table.machines))
    return np.asarray(
        np.bincount(table.machine[rows], value[rows], len(table.machines)) / np.where(count > 0, count, np.nan)
    )


def _welch(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the difference of two means and its two-sided chance (Welch 1947)."""
    parts = [float(arm.var(ddof=1)) / len(arm) for arm in (first, second)]
    apart, variance = float(first.mean() - second.mean()), sum(parts)
    if not variance > 0:
        return apart, 0.0 if apart else 1.0
    freedom = variance**2 / sum(part**2 / (len(arm) - 1) for part, arm in zip(parts, (first, second), strict=True))
    return apart, float(2 * t.sf(abs(apart) / np.sqrt(variance), freedom))


_MUCH, _SOME = 0.25, 0.05
"""Shares of the quota: uncovered so much is always told; so little never."""
_LOST = 0.01


def weights_renormalised(case: Case) -> list[Finding] | None:
    """Find that covered jobs hold less than the whole quota, and weights made whole again move the target.

    How far: the spread of the jobs' own effects (DerSimonian and Laird 1986, with machines as clusters) times what
    the weights of covered and uncovered jobs change by.
    """
    plain, table = case.plain, case.table
    if plain is None or case.about.weights == "full":
        return None
    lacking = 1 - plain.covered
    if lacking <= _SOME:
        return []
    spread = _spread(case)
    shares = table.quota / table.quota.sum() * (1 - table.unseen)
    covers = shares[plain.comparable]
    moved = (
        float(np.sqrt((covers**2).sum() * (1 / plain.covered - 1) ** 2 + (shares[~plain.comparable] ** 2).sum()))
        * spread
    )
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
    if plain is None or plain.comparable.sum() < 3:
        return 0.0
    rows = table.study
    noise = np.zeros(len(table.jobs))
    for arm in (table.treated, ~table.treated):
        noise += _mean_variance(case, rows & arm)
    good = plain.comparable & np.isfinite(noise) & (noise > 0)
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
    """
    table = case.table
    if case.plain is None:
        return None
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
        by_chance = _absent((arms[0] + arms[1]).astype(np.float64), sum(sizes), sizes[k])
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


def _unmeasured(share: float) -> Finding:
    what = f"jobs with {share:.1%} of the fleet's quota have no row at all"
    severity: Severity = "error" if share > _MUCH else "warning"
    return Finding("missing_jobs", severity, what, {"quota_share": share}, "measure them, or say which jobs are meant")


def _absent(holders: Floats, total: int, n: int) -> Floats:
    """Return the chance that none of n units drawn from `total` is among the `held`."""
    left = np.maximum(total - holders, 0)
    log = gammaln(left + 1) - gammaln(np.maximum(left - n, 0) + 1) - gammaln(total + 1) + gammaln(total - n + 1)
    return np.asarray(np.where(left >= n, np.exp(log), 0.0), dtype=np.float64)
