"""Guards about the feature's record: felt by controls, or by machines that vanish; how machines changed."""

import numpy as np
import pandas as pd

from analysis.audit.case import COMPARED, PAST, STEADY, Audited, Case, unmet
from analysis.audit.findings import ALPHA, MATERIAL, Finding
from analysis.statistics import student_tail
from models.arrays import Bools, Floats, Ints

_LEAST_MACHINES = 8
"""Machines of the smaller arm, and domains, from which a difference between them is tested."""
_LEAST = 0.02
"""Difference of shares of machines from which it is told that they vanish."""


def changes_of_machines(table: Audited, before: Bools, after: Bools) -> tuple[Floats, Ints]:
    """Return (M,) the mean change of each machine's series, less that of their jobs, and how many have both times.

    A series is an instance on a machine, or a job there. What machines that never have the feature do on average in a
    job and period is what the job does.
    """
    others = (table.never & ~table.ever)[table.machine]
    key = table.job * len(table.periods) + table.period
    count = np.bincount(key, others, len(table.jobs) * len(table.periods))
    total = np.bincount(key, others * table.relative, len(count))
    residual = table.relative - (total / np.where(count > 0, count, np.nan))[key]
    series = table.series
    size = int(series.max()) + 1
    usable = np.isfinite(residual)
    means = []
    for rows in (before & usable, after & usable):
        rows_of = np.bincount(series[rows], minlength=size)
        means.append(np.bincount(series[rows], residual[rows], size) / np.where(rows_of > 0, rows_of, np.nan))
    machine: Ints = np.zeros(size, dtype=np.int64)
    machine[series] = table.machine
    change = means[1] - means[0]
    known = np.isfinite(change)
    both = np.bincount(machine[known], minlength=len(table.machines))
    sums = np.bincount(machine[known], change[known], len(table.machines))
    return np.asarray(sums / np.maximum(both, 1), dtype=np.float64), both


def spill_over(case: Case) -> list[Finding] | str:
    """Find machines without the feature that change with the share of their neighbours that have it.

    Neighbours share a `domain`, or else a rack. The mean change of a domain's machines without the feature, from before
    to the study, is regressed on the share of its machines that have it, by the number of series; domains are the
    clusters. It alarms at a chance of `ALPHA`, if at the mean share it moves the plain estimate by `MATERIAL` of its
    half-widths. Where all shares are alike nothing can be seen.
    """
    table = case.table
    column, domains = "domain", table.of_machines("domain")
    if domains is None:
        column, domains = case.flagged.cluster, table.of_machines("rack")
    needs = unmet(
        (domains is None, "column domain or rack"),
        (table.crossover, STEADY),
        (case.plain is None, COMPARED),
        (bool(table.study.all()), PAST),
    )
    if needs or domains is None or case.plain is None:
        return needs
    domain = pd.factorize(domains, sort=True)[0]
    changes, series = changes_of_machines(table, ~table.study, table.study & ~table.treated)
    series = series * (table.never & ~table.ever)
    sizes = np.bincount(domain)
    count: Floats = np.asarray(np.bincount(domain, series, len(sizes)), dtype=np.float64)
    share = np.bincount(domain, table.ever, len(sizes)) / np.maximum(sizes, 1)
    mean = np.bincount(domain, series * changes, len(sizes)) / np.maximum(count, 1)
    compared = count > 0
    if compared.sum() < _LEAST_MACHINES or not np.ptp(share[compared]) > 0:
        unlike = "whose shares of machines with the feature are unlike"
        return f"{_LEAST_MACHINES} values of {column} {unlike}, where {compared.sum()} can be compared"
    slope, error = _regression(share[compared], mean[compared], count[compared])
    chance = float(2 * student_tail(abs(slope) / error, compared.sum() - 2)) if error > 0 else 1.0
    moved = slope * float(np.average(share[compared], weights=count[compared]))
    if chance > ALPHA or case.plain.half_widths(moved) < MATERIAL:
        return []
    evidence = {"slope": slope, "error": error, "chance": chance, "moved": moved, "domains": int(compared.sum())}
    evidence["moved_in_half_widths"] = case.plain.half_widths(moved)
    what = (
        f"machines without the feature change with the share of their neighbours that have it: by {moved:+.1%} at the "
        "mean share"
    )
    remedy = (
        f"wsc effect --domain {column} tells everybody on against nobody on; it knows most where whole values of "
        f"{column} are drawn (wsc design --domain {column})"
    )
    return [Finding("spill_over", "error", what, evidence, remedy)]


def _regression(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    """Return the slope of a weighted regression, and its standard error from the residuals."""
    x = x - np.average(x, weights=weight)
    y = y - np.average(y, weights=weight)
    square = float((weight * x**2).sum())
    slope = float((weight * x * y).sum()) / square
    residual = float((weight * (y - slope * x) ** 2).sum()) / (len(x) - 2)
    return slope, float(np.sqrt(residual / square))


def vanished_machines(case: Case) -> list[Finding] | str:
    """Find arms of which more machines vanish in the study: seen in a period of it, but not in its last one.

    Fisher's exact test over machines, at a chance of `ALPHA`, from a difference of 2% on. Those that vanish because the
    feature harms them take the harm with them.
    """
    table = case.table
    periods = np.unique(table.period[table.study])
    needs = unmet((table.crossover, STEADY), (len(periods) < 2, "2 periods in the study, where 1 is"))
    if needs:
        return needs
    present, last = (
        np.bincount(table.machine[rows], minlength=len(table.machines)) > 0
        for rows in (table.study, table.study & (table.period == periods[-1]))
    )
    arms = (present & table.ever, present & table.never & ~table.ever)
    gone = [int((arm & ~last).sum()) for arm in arms]
    machines = [int(arm.sum()) for arm in arms]
    if min(machines) < _LEAST_MACHINES:
        return f"{_LEAST_MACHINES} machines in each arm, where the smaller has {min(machines)}"
    if not any(gone):
        return []
    shares = [lost / count for lost, count in zip(gone, machines, strict=True)]
    remaining = [count - lost for lost, count in zip(gone, machines, strict=True)]
    from scipy.stats import fisher_exact

    chance = float(fisher_exact(np.array([gone, remaining])).pvalue)
    if chance > ALPHA or abs(shares[0] - shares[1]) < _LEAST:
        return []
    evidence = {"treated": shares[0], "untreated": shares[1], "machines": sum(gone), "chance": chance}
    what = f"machines vanish before the study's last period: {shares[0]:.1%} of the treated, {shares[1]:.1%} of others"
    remedy = "find out why; compare only the periods in which all were there, if they vanished at one time"
    return [Finding("vanished_machines", "error", what, evidence, remedy)]
