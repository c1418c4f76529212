"""Guards about the arms: how machines were drawn, who came and went, when each arm was observed, what stood beside."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from scipy.special import gammaln

from analysis.audit.case import COMPARED, PAST, STEADY, Audited, Case, contrast, unmet
from analysis.audit.findings import ALPHA, MATERIAL, Finding
from analysis.statistics import ROUNDING, normal_tail, student_tail
from models.arrays import Bools, Floats, Ints

_MOST_JOBS = 500
_SUSPECT = ("covering", "densest", "chosen")
_WHAT: Mapping[str, str] = {
    "instances": "instances a machine",
    "jobs": "jobs a machine",
    "quota": "CPU quota a machine",
    "covered": "jobs that the treated machines cover",
}


def selection_optimised(case: Case) -> list[Finding] | str:
    """Find machines that were selected by the jobs on them, so that they are no random sample.

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
    needs = unmet(
        (selection == "probabilities", "machines that were not drawn with probabilities of their own (selection)"),
        (bool(treated.all()), "machines that never have the feature"),
        (
            (units := len(np.unique(unit))) < _LEAST_MACHINES,
            f"{_LEAST_MACHINES} machines (or racks), where {units} are",
        ),
    )
    if needs:
        return needs
    tests = dict(_composition(table, treated, unit))
    if not tests:
        return "a platform of which some machines have the feature and some do not"
    worst = max(tests, key=lambda name: abs(tests[name]))
    chance = float(min(2 * normal_tail(abs(tests[worst])) * len(tests), 1.0))
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
    missed = none_drawn(holders, total, n)
    variance = float((none_drawn(either, total, n) - np.outer(missed, missed)).sum())
    covered_jobs = float((holds[having].sum(axis=0) > 0).sum())
    # Near certain coverage of all jobs the number is far from normal: half a job is given away, as for any count.
    apart = covered_jobs - float((1 - missed).sum())
    return float(np.sign(apart) * max(abs(apart) - 0.5, 0.0) / np.sqrt(max(variance, 0.25)))


def none_drawn(holders: Floats, total: int, n: int) -> Floats:
    """Return the chance that n of `total` units, drawn at random, hold none of so many."""
    left = np.maximum(total - holders, 0)
    fits = left >= n
    log = gammaln(left + 1) - gammaln(np.maximum(left - n, 0) + 1) - gammaln(total + 1) + gammaln(total - n + 1)
    return np.asarray(np.where(fits, np.exp(log), 0.0), dtype=np.float64)


def imbalance_before(case: Case) -> list[Finding] | str:
    """Find arms that differed before anything had the feature.

    It alarms at a chance of `ALPHA` and if the difference is `MATERIAL` half-widths of the plain estimate.
    """
    prior, plain = case.prior, case.plain
    needs = unmet(
        (case.table.crossover, STEADY),
        (plain is None, COMPARED),
        (prior is None, f"{PAST} with a job that two machines of each arm have"),
    )
    if needs or prior is None or plain is None:
        return needs
    if not prior.error > 0:
        return "machines that differ before the feature"
    chance = float(2 * student_tail(abs(prior.change) / prior.error, prior.freedom))
    ratio = plain.half_widths(prior.change)
    if chance > ALPHA or ratio <= MATERIAL:
        return []
    evidence = {"difference": prior.change, "error": prior.error, "chance": chance, "difference_in_half_widths": ratio}
    what = f"machines with the feature were {prior.change:+.2%} from the others before they had it"
    remedy = "draw machines at random; if they were, adjust for the pre-period"
    return [Finding("imbalance_before", "error" if ratio > 1 else "warning", what, evidence, remedy)]


_ALIKE, _OVER_TIME = 0.05, ("rows", "stayed")
"""How far apart the arms' windows may be where what adds up over periods is compared."""
_LEAST = 0.02
"""Difference of shares, or relative difference of rows, from which churn is told."""


def churn(case: Case) -> list[Finding] | str:
    """Find arms whose instances arrive, leave or are absent more often than those of the other arm.

    Compared are, for each machine, the share of its rows in the study whose instance it did not hold before, the share
    of its instances before that it still holds, its rows relative to before, and the mean time present (`present_s`);
    tests over machines as of random draws, which together alarm at a chance of `ALPHA`, from differences of 2%.
    Arrivals are less their period's mean; where the arms were observed at different times, what adds up over periods
    is not compared.
    """
    table = case.table
    if table.crossover:
        return STEADY
    tests = dict(_compared(table))
    if table.windows_apart() > _ALIKE:
        tests = {name: test for name, test in tests.items() if name not in _OVER_TIME}
    if not tests:
        return f"{PAST} (or column present_s), and 3 machines of each arm that are in them and in the study"
    level = ALPHA / len(tests)
    far = {name: test for name, test in tests.items() if test[1] <= level and abs(test[0]) > _LEAST}
    if not far:
        return []
    name = min(far, key=lambda name: far[name][1])
    apart, chance = far[name]
    evidence = {f"{name_}_difference": test[0] for name_, test in tests.items()} | {"chance": chance * len(tests)}
    what = f"the arms' instances {_WHAT_CHURNS[name]} differently: {apart:+.1%} with the feature"
    remedy = (
        "compare instances by their arm before the feature, wherever they moved later, or assign restarted "
        "ones at random"
    )
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
            yield name, _apart(*arms)


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


def _apart(first: Floats, second: Floats) -> tuple[float, float]:
    """Return the difference of two means and its two-sided chance if both arms are drawn from the same machines.

    The variance is that of all machines together, as of random draws: an arm in which nothing happened has a variance
    of 0 by itself. Degrees of freedom are those of the smaller arm, as counts of rare events are skewed.
    """
    apart, everything = float(first.mean() - second.mean()), np.concatenate([first, second])
    variance = float(everything.var(ddof=1)) * (1 / len(first) + 1 / len(second))
    if not variance > 0:
        return apart, 1.0
    return apart, float(2 * student_tail(abs(apart) / np.sqrt(variance), min(len(first), len(second)) - 1))


_LEAST_MACHINES = 8
_LONE = 0.1
"""Share of the treated quota without concurrent control from which a guard warns."""


def baseline_not_concurrent(case: Case) -> list[Finding]:
    """Find treated observations without untreated ones in the same period.

    Yesterday's fleet is no baseline: what changed since then counts as the feature's. Where concurrent controls exist,
    their own change since the pre-period says how much.
    """
    table = case.table
    control = np.bincount(table.period, table.study & ~table.treated, len(table.periods)) > 0
    weight = table.weight * table.treated
    alone = float((weight * ~control[table.period]).sum() / weight.sum())
    evidence = {"treated_share_without_control": alone}
    remedy = "leave some machines without the feature and observe them at the same time"
    if alone > _LONE:
        what = f"{alone:.0%} of the observations with the feature have no untreated observation in the same period"
        return [Finding("baseline_not_concurrent", "error", what, evidence, remedy)]
    if case.about.baseline != "before":
        return []
    drift = _drift(table)
    if drift is not None and case.plain is not None:
        evidence |= {"drift": drift, "drift_in_half_widths": case.plain.half_widths(drift)}
        if evidence["drift_in_half_widths"] <= MATERIAL:
            what = f"the baseline is from another time; since then untreated machines changed by {drift:+.2%} since"
            return [Finding("baseline_not_concurrent", "note", what, evidence, remedy)]
    what = "the baseline is the fleet before the study, though untreated machines were observed beside the treated"
    if drift is not None:
        what += f"; those changed by {drift:+.2%} without the feature"
    return [
        Finding("baseline_not_concurrent", "error", what, evidence, "compare with the concurrent untreated machines")
    ]


def _drift(table: Audited) -> float | None:
    """Return the relative change of untreated rows from the pre-period to the study."""
    if table.study.all():
        return None
    drifted = contrast(table, ~table.treated, table.study, np.arange(len(table.machines)))
    return None if drifted is None else drifted.change


def different_windows(case: Case) -> list[Finding] | str:
    """Find arms that were observed at different times, and how far that alone shifts their difference.

    The shift is what the change of the untreated from period to period adds to a comparison that pools periods. In a
    crossover each machine is its own control within the same periods, so that it is not looked at.
    """
    table, plain = case.table, case.plain
    needs = unmet((table.crossover, STEADY), (plain is None, COMPARED))
    if needs or plain is None:
        return needs
    shares, level = list[Floats](), np.ones(len(table.periods))
    for arm in (~table.treated, table.treated):
        weight = np.bincount(table.period, table.weight * (arm & table.study), len(table.periods))
        shares.append(weight / weight.sum())
    controls = table.study & ~table.treated
    count = np.bincount(table.period, table.weight * controls, len(table.periods))
    sums = np.bincount(table.period, table.weight * controls * table.relative, len(table.periods))
    level = np.where(count > 0, sums / np.maximum(count, 1e-300), 1.0)
    shift = float(((shares[1] - shares[0]) * level).sum())
    apart = float(np.abs(shares[1] - shares[0]).sum() / 2)
    ratio = plain.half_widths(shift)
    if ratio <= MATERIAL or apart < 0.05:
        return []
    evidence = {"shares_apart": apart, "shift": shift, "shift_in_half_widths": ratio}
    what = f"the arms were observed at different times, which alone makes a difference of {shift:+.2%}"
    remedy = "compare within periods, or keep the periods in which both arms were observed alike"
    return [Finding("different_windows", "error" if ratio > 1 else "warning", what, evidence, remedy)]


def carry_over(case: Case) -> list[Finding] | str:
    """Find, in crossovers, that a period's performance depends on the machine's state in the period before.

    A regression of machines' mean values, relative and less their job's mean, on the state now and before, with
    effects of machines and periods and errors clustered by machine (Jones and Kenward 2014, chapter 5). It alarms at
    a chance of `ALPHA` and if the shift is `MATERIAL` half-widths.
    """
    table, plain = case.table, case.plain
    switching = int(table.switching.sum())
    needs = unmet(
        (not table.crossover, "a crossover, in which most machines with the feature are seen without it, too"),
        (
            table.crossover and switching < _LEAST_MACHINES,
            f"{_LEAST_MACHINES} machines that switch, where {switching} do",
        ),
        (table.crossover and plain is None, COMPARED),
    )
    if needs or plain is None:
        return needs
    lagged = _lagged(table)
    if lagged is None:
        return f"{4 * _LEAST_MACHINES} periods of machines, after which some stay in their state and some do not"
    carried, error, freedom, missed = lagged
    chance = float(2 * student_tail(abs(carried) / error, freedom)) if error > 0 else 1.0
    shift = carried * missed
    ratio = plain.half_widths(shift)
    if chance > ALPHA or ratio <= MATERIAL:
        return []
    evidence = {"carried": carried, "error": error, "chance": chance, "shift": shift, "shift_in_half_widths": ratio}
    what = f"the state of the period before still adds {carried:+.2%}; the change is misjudged by {shift:+.2%}"
    remedy = "leave out the time after each switch until the new state acts (wash-out), or switch less often"
    return [Finding("carry_over", "error" if ratio > 1 else "warning", what, evidence, remedy)]


def _lagged(table: Audited) -> tuple[float, float, float, float] | None:
    """Return the effect of the state before, its standard error and degrees of freedom, and what of it is missed."""
    both = table.switching
    rows = table.study & both[table.machine]
    periods, machines = len(table.periods), len(table.machines)
    cell = table.machine[rows] * periods + table.period[rows]
    n = np.bincount(cell, table.weight[rows], machines * periods).reshape(machines, periods)
    value = table.within_jobs(rows)
    z = np.bincount(cell, table.weight[rows] * value, machines * periods).reshape(machines, periods)
    on = np.bincount(cell, table.weight[rows] * table.treated[rows], machines * periods).reshape(machines, periods)
    measured, first = n > 0, int(table.period[table.study].min())
    state = np.where(measured, on / np.maximum(n, 1e-300) > 0.5, False)
    lag = np.zeros_like(state)
    lag[:, 1:] = state[:, :-1]
    use = measured.copy()
    use[:, 1:] &= measured[:, :-1] | (np.arange(1, periods) == first)
    use[:, first] = measured[:, first]
    machine, period = np.nonzero(use)
    if len(machine) < 4 * _LEAST_MACHINES:
        return None
    y = (z / np.maximum(n, 1e-300))[use]
    columns = _without_effects([y, state[use].astype(float), lag[use].astype(float)], machine, period)
    x = np.stack(columns[1:], axis=1)
    gram = x.T @ x
    if np.linalg.cond(gram) > 1e8:
        return None
    inverse = np.linalg.inv(gram)
    beta = inverse @ (x.T @ columns[0])
    scores = np.zeros((machines, 2))
    np.add.at(scores, machine, x * (columns[0] - x @ beta)[:, None])
    clusters = len(np.unique(machine))
    variance = np.maximum(np.diag(inverse @ (scores.T @ scores) @ inverse), 0.0)
    error = np.sqrt(variance * clusters / (clusters - 1))
    now, before = state[use], lag[use]
    missed = float(before[now].mean() - before[~now].mean()) - 1
    return float(beta[1]), float(error[1]), float(clusters - 1), missed


def _without_effects(columns: list[Floats], *effects: "np.typing.NDArray[np.int64]") -> list[Floats]:
    """Return columns less the means of each effect in turn until nothing is left of either."""
    residuals = []
    for column in columns:
        left = column - column.mean()
        for _ in range(50):
            for code in effects:
                left = left - (np.bincount(code, left) / np.maximum(np.bincount(code), 1))[code]
        residuals.append(left)
    return residuals


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
    remedy = "give the feature to whole machines, or model how neighbours affect each other"
    return [Finding("mixed_machines", "error", what, {"share": share}, remedy)]
