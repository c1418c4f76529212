"""Guards about time: a baseline of another time, arms at different times, states carried over, repeated looks."""

import numpy as np
from scipy.stats import t

from analysis.audit.case import Audited, Case, contrast
from analysis.audit.findings import ALPHA, MATERIAL, Finding, Severity
from models.arrays import Bools, Floats

_LEAST_MACHINES = 8
_LONE = 0.1
"""Share of the treated quota without concurrent control from which a guard warns."""


def baseline_not_concurrent(case: Case) -> list[Finding]:
    """Find treated observations that nothing untreated was observed beside.

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
        what = f"{alone:.0%} of what was observed with the feature has no untreated observation in the same period"
        return [Finding("baseline_not_concurrent", "error", what, evidence, remedy)]
    if case.about.baseline != "before":
        return []
    drift = _drift(table)
    if drift is not None and case.plain is not None:
        evidence |= {"drift": drift, "drift_in_half_widths": case.plain.half_widths(drift)}
        if evidence["drift_in_half_widths"] <= MATERIAL:
            what = f"the baseline is of another time; untreated machines changed by {drift:+.2%} since"
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


def different_windows(case: Case) -> list[Finding] | None:
    """Find arms that were observed at different times, by what that shifts the difference of untreated levels.

    The shift is what the change of the untreated from period to period adds to a comparison that pools periods. In a
    crossover each machine is its own control within the same periods, so that it is not looked at.
    """
    table, plain = case.table, case.plain
    if plain is None or table.crossover:
        return None
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


def carry_over(case: Case) -> list[Finding] | None:
    """Find, in crossovers, that a period's performance depends on the machine's state in the period before.

    A regression of machines' mean values, relative and less their job's mean, on the state now and before, with
    effects of machines and periods and errors clustered by machine (Jones and Kenward 2014, chapter 5). It alarms at
    a chance of `ALPHA` and if the shift is `MATERIAL` half-widths.
    """
    table, plain = case.table, case.plain
    if plain is None or not table.crossover or table.switching.sum() < _LEAST_MACHINES:
        return None
    lagged = _lagged(table)
    if lagged is None:
        return None
    carried, error, freedom, missed = lagged
    chance = float(2 * t.sf(abs(carried) / error, freedom)) if error > 0 else 1.0
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
    value = _within_jobs(table, rows)
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


def _within_jobs(table: Audited, rows: Bools) -> Floats:
    """Return the rows' relative values less the mean of their job over these rows."""
    job, value = table.job[rows], table.relative[rows]
    mean = np.bincount(job, value, len(table.jobs)) / np.maximum(np.bincount(job, minlength=len(table.jobs)), 1)
    return np.asarray(value - mean[job], dtype=np.float64)


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


_LOOKS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
_FALSE = (0.05, 0.083, 0.107, 0.126, 0.142, 0.193, 0.248, 0.320, 0.374)
"""Chance of at least one false positive at equally spaced looks (Armitage, McPherson and Rowe 1969, table 2)."""
_MOST = 0.10


def peeking(case: Case) -> list[Finding] | None:
    """Find a result that was looked at several times with an interval that is made for one look."""
    looks = case.about.looks
    if looks is None:
        return None
    if looks == 1 or case.about.interval == "always-valid":
        return []
    chance = false_positives(looks)
    severity: Severity = "error" if chance > 2 * _MOST else "warning" if chance > _MOST else "note"
    what = f"{looks} looks at an interval for one look: {chance:.0%} false positives in place of 5%"
    remedy = "decide at the look that was planned, or use an always-valid confidence sequence"
    return [Finding("peeking", severity, what, {"looks": looks, "false_positives": chance}, remedy)]


def false_positives(looks: int) -> float:
    """Return the chance that any of so many equally spaced looks at a nominal 5% is a false positive."""
    return float(np.interp(np.log(looks), np.log(_LOOKS), _FALSE))
