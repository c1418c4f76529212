"""Guards about values and units: unusable or repeated rows, values in another unit, cycles where clocks differ."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.audit.case import COMPARED, Audited, Case, Contrast, contrast, study_contrast, unmet
from analysis.audit.findings import ALPHA, MATERIAL, Finding, Severity
from analysis.effects.observations import repeated
from analysis.statistics import student_tail
from models.arrays import Bools, Floats, Ints

_DECADES = 1.5
"""Distance from the job's median, in powers of ten, from which a value is in another unit."""
_SPREADS = 5.0
"""The same in standard deviations of the logarithms, where they vary so much that 1.5 powers of ten are no distance."""
_QUARTER = 0.3186
"""Quartile of the absolute values of a standard normal variable."""
_ARMS_DECADES = 0.99
"""The same of the arms' medians; no feature makes ten times of anything."""
_PREFIXES = {3: "kilo", 6: "mega", 9: "giga", 12: "tera", -3: "milli", -6: "micro", -9: "nano"}
_NEAR_A_POWER = 0.1
"""Distance of a ratio from a power of ten, in powers of ten, up to which it is taken for that power."""
_OTHER_UNIT = 0.001
"""Share of such rows up to which they are outliers."""
_MOST_OF_AN_ARM = 0.5
"""Share of an arm from which they are none, however small the arm."""
_JUMP = 1.4
"""Ratio of the arms' jumps from which a jump is another unit: one of 1.5 is seen through noise."""
_MOST_SPLITS = 16
"""Periods, evenly apart, from which a jump is looked for: one between two of them is hardly diluted."""
_DEVIATIONS, _FEWEST, _AFFECTED = 8.0, 3, 0.05
"""Deviations of a machine's jump, machines, and their share of an arm, from which a part of the machines has jumped."""
_ALIKE_ROWS = 0.05
"""Share of rows whose value another machine has, too, from which a value that stays the same says nothing."""
_CONSTANT = 0.5
"""Share of each arm's rows that repeat their last value, from which values are not measured period by period."""
_LEVELS = 100.0
"""Ratio of jobs' levels from which their values are taken to be in units of their own."""


@dataclass(frozen=True, slots=True)
class _Jump:
    """How much more one arm's level moved than the other's, from a period on; of one job, or of all."""

    since: object
    """The first period after it."""
    ratio: float
    chance: float
    arms: tuple[float, float]
    """Each arm's level after it relative to before: without the feature, and with it."""
    job: int | None
    past: bool
    """Whether nothing had the feature yet."""


def unit_change(case: Case) -> list[Finding]:
    """Find values or weights in another unit: far from their job's median, or in one arm from some period on.

    An arm is in another unit if the medians of the jobs that both arms have are 10 times apart. A single row is from 30
    times its job's median on, or from 5 standard deviations on where logarithms vary more; these are told by the
    quarter of the rows that is nearest to its median, so that many rows in another unit do not hide each other. An arm
    that moves 1.5 times or more relative to the other between periods, while nobody gets or loses the feature, is in
    another unit from then on, or the effect still builds up. So is a part of its machines that jump by far more than
    machines do: with a few instances a machine, from about twice on. A jump when the feature begins cannot be told from
    its effect. Jumps of arms are tested at a chance of `ALPHA` over all periods and jobs (Bonferroni), with errors
    clustered by machine.
    """
    findings = []
    for name in ("value", "weight"):
        if ratio := _between_arms(case.table, name):
            what = f"{name}: rows with the feature are about {times(ratio)} those of the same jobs without it"
            findings.append(Finding("unit_change", "error", what, {"factor": ratio}, "bring all files to one unit"))
            continue
        number = case.table.rows[name].to_numpy(dtype=np.float64)
        decades = _decades(number, case.table.job)
        far = np.abs(decades) > max(_DECADES, _SPREADS * float(np.quantile(np.abs(decades), 0.25)) / _QUARTER)
        arms = [far[arm] for arm in (case.table.treated, ~case.table.treated) if arm.any()]
        if far.mean() <= _OTHER_UNIT and max(arm.mean() for arm in arms) <= _MOST_OF_AN_ARM:
            continue
        factor = float(10 ** np.median(np.abs(decades[far])))
        evidence = {"rows": int(far.sum()), "share": float(far.mean()), "factor": factor}
        what = f"{name}: {far.mean():.1%} of the rows differ from their job's median by about {times(factor)}"
        where = _where(case, far)
        findings.append(Finding("unit_change", "error", f"{what}{where}", evidence, "bring all files to one unit"))
    return findings or [_finding(case, jump) for jump in _jumps(case.table)] or list(_some_machines(case))


def times(ratio: float) -> str:
    """Return a ratio in words, with the power of ten and the prefix of the SI that it comes near.

    Examples
    --------
    >>> times(985.0), times(0.00101), times(37.0)
    ('985 times (10^3: kilo?)', '0.00101 times (10^-3: milli?)', '37 times')
    """
    power = round(math.log10(ratio)) if ratio > 0 else 0
    near = abs(math.log10(ratio) - power) < _NEAR_A_POWER if ratio > 0 else False
    prefix = _PREFIXES.get(power, "") if near else ""
    return f"{ratio:,.4g} times{f' (10^{power}: {prefix}?)' if prefix else ''}"


def _between_arms(table: Audited, name: str) -> float:
    """Return the typical ratio of the arms' medians of a job in the study; 0 if they are no 10 times apart."""
    rows = pd.DataFrame({"job": table.job, "number": np.log10(table.rows[name].to_numpy(dtype=np.float64))})
    medians = [rows[table.study & arm].groupby("job")["number"].median() for arm in (table.treated, ~table.treated)]
    apart = (medians[0] - medians[1]).dropna()
    typical = float(apart.median()) if len(apart) else 0.0
    return 10**typical if abs(typical) >= _ARMS_DECADES else 0.0


def _decades(number: Floats, job: "np.typing.NDArray[np.int64]") -> Floats:
    """Return (N,) log10 of each number relative to the median of its job."""
    log = pd.Series(np.log10(number))
    return np.asarray(log - log.groupby(job).transform("median"), dtype=np.float64)


def _where(case: Case, far: Bools) -> str:
    """Return which file, period or arm holds most of these rows, if one does."""
    rows = case.table.rows.assign(treated=case.table.treated.astype(int))
    for name in ("file", "period", "treated", "platform"):
        if name in rows and (rows[name] != rows[name].iloc[0]).any():
            share = pd.Series(far).groupby(rows[name].to_numpy()).mean()
            if share.max() > 0.9 and share.min() < 0.1:
                return f", nearly all of {name} {share.idxmax()}"
    return ""


def _jumps(table: Audited) -> Iterator[_Jump]:
    """Yield the largest jump of all jobs together, or those of single jobs if there is none, before and in the study.

    In the study only machines are looked at that have the feature in all of it, or never.
    """
    with_it, everywhere = table.ever[table.machine], np.ones(len(table.machines), dtype=np.bool_)
    for among, steady, past in ((~table.study, everywhere, True), (table.study, ~table.switching, False)):
        rows = among & steady[table.machine]
        splits = _splits(np.unique(table.period[rows]))
        if not len(splits) or with_it[rows].all() or not with_it[rows].any():
            continue
        most = ALPHA / (len(splits) * (1 + len(table.jobs)))
        pairs = {split: pair for split in splits.tolist() if (pair := _pair(table, rows, with_it, split))}
        if not pairs:
            continue
        logs = np.array([_log_ratio(pair) for pair in pairs.values()])
        split = list(pairs)[int(np.abs(logs).argmax())]
        if _alarms(pairs[split], most):
            yield _jump(table, rows, with_it, split, pairs[split], past=past)
            continue
        by_job = np.array([np.log((1 + after.by_job) / (1 + before.by_job)) for before, after in pairs.values()])
        far = np.nan_to_num(np.abs(by_job))
        for job in np.flatnonzero(far.max(axis=0) > np.log(_JUMP)).tolist():
            own, split = rows & (table.job == job), list(pairs)[int(far[:, job].argmax())]
            pair = _pair(table, own, with_it, split)
            if pair is not None and _alarms(pair, most):
                yield _jump(table, own, with_it, split, pair, past=past, job=job)


def _some_machines(case: Case) -> Iterator[Finding]:
    """Yield, if a part of an arm's machines jumps by far more than machines do, how many and from which period on.

    A machine's jump is of the mean logarithm of its rows, less that of their job and period, and is compared with the
    jumps of all machines by their median absolute deviation.
    """
    table, with_it = case.table, case.table.ever
    rows = table.study & ~table.switching[table.machine]
    at, log = table.machine[rows], pd.Series(np.log(table.relative[rows]))
    left: Floats = (log - log.groupby([table.job[rows], table.period[rows]]).transform("median")).to_numpy(np.float64)
    worst = None
    for split in _splits(np.unique(table.period[rows])).tolist():
        far, jump, known = _far(at, left, table.period[rows] >= split, len(table.machines))
        shares = [float(far[known & arm].mean()) if (known & arm).any() else 0.0 for arm in (~with_it, with_it)]
        if far.sum() >= _FEWEST and max(shares) >= _AFFECTED and (worst is None or far.sum() > worst[0]):
            worst = int(far.sum()), split, shares, float(np.exp(np.median(np.abs(jump[far]))))
    if worst is None:
        return
    number, split, shares, ratio = worst
    shift = abs(shares[1] - shares[0]) * (ratio - 1) / 2
    material = case.plain is None or case.plain.half_widths(shift) > MATERIAL
    what = (
        f"value: from period {_named(table.periods[split])} on, {number} machines are about {ratio:.2f} times off what "
        f"they were, as no others are: {shares[1]:.0%} of those with the feature, {shares[0]:.0%} of those without"
    )
    evidence = {"machines": number, "ratio": ratio, "treated": shares[1], "untreated": shares[0]}
    remedy = "find out what changed on these machines, and bring all rows to one unit"
    yield Finding("unit_change", "error" if material else "warning", what, evidence, remedy)


def _far(at: Ints, log: Floats, later: Bools, machines: int) -> tuple[Bools, Floats, Bools]:
    """Return which machines jump far more than others, all jumps, and which machines have rows at both times."""
    count = np.array([np.bincount(at[half], minlength=machines) for half in (~later, later)])
    sums = np.array([np.bincount(at[half], log[half], machines) for half in (~later, later)])
    known: Bools = np.asarray((count > 0).all(axis=0), dtype=np.bool_)
    mean = sums / np.maximum(count, 1)
    jump = np.where(known, mean[1] - mean[0], 0.0)
    if not known.any():
        return known, jump, known
    scaled = (jump - np.median(jump[known])) / np.sqrt((1 / np.maximum(count, 1)).sum(axis=0))
    typical = 1.4826 * float(np.median(np.abs(scaled[known])))
    far = known & (np.abs(scaled) > _DEVIATIONS * typical) & (np.abs(jump) > np.log(_JUMP))
    return far, jump, known


def _named(period: object) -> str:
    return f"{period:g}" if isinstance(period, float) else str(period)


def _splits(periods: Ints) -> Ints:
    """Return the periods from which a jump is looked for: all but the first, or as many as are tested."""
    later = periods[1:]
    if len(later) <= _MOST_SPLITS:
        return later
    return later[np.unique(np.linspace(0, len(later) - 1, _MOST_SPLITS).round().astype(np.int64))]


def _pair(table: Audited, rows: Bools, with_it: Bools, split: int) -> tuple[Contrast, Contrast] | None:
    """Return the contrasts of the arms before a period and from it on, of the jobs that both have; None without."""
    later, unit = table.period >= split, table.units()
    before, after = (contrast(table, rows & half, with_it, unit) for half in (~later, later))
    if before is not None and after is not None and (before.comparable != after.comparable).any():
        rows = rows & (before.comparable & after.comparable)[table.job]
        before, after = (
            contrast(table, rows & half, with_it, unit) if (rows & half).any() else None for half in (~later, later)
        )
    if before is None or after is None or min(before.change, after.change) <= -1:
        return None
    return before, after


def _log_ratio(pair: tuple[Contrast, Contrast]) -> float:
    before, after = pair
    return float(np.log((1 + after.change) / (1 + before.change)))


def _alarms(pair: tuple[Contrast, Contrast], chance: float) -> bool:
    """Return whether the arms' jumps differ by a large factor, which noise has with at most that chance."""
    log = abs(_log_ratio(pair))
    return log > np.log(_JUMP) and _chance(pair, log) <= chance


def _chance(pair: tuple[Contrast, Contrast], log: float) -> float:
    """Return the p-value of a jump; errors are those of the logarithm (delta method), clustered over both times."""
    parts = [contrast_.influence[:, 1] / (1 + contrast_.change) - contrast_.influence[:, 0] for contrast_ in pair]
    error = float(np.sqrt(((parts[1] - parts[0]) ** 2).sum()))
    return float(2 * student_tail(log / error, min(contrast_.freedom for contrast_ in pair))) if error > 0 else 0.0


def _jump(
    table: Audited,
    rows: Bools,
    with_it: Bools,
    split: int,
    pair: tuple[Contrast, Contrast],
    *,
    past: bool,
    job: int | None = None,
) -> _Jump:
    log, later = _log_ratio(pair), table.period >= split
    own = [contrast(table, rows & arm, later, table.units()) for arm in (~with_it, with_it)]
    arms = [float("nan") if contrast_ is None else 1 + contrast_.change for contrast_ in own]
    chance = _chance(pair, abs(log))
    return _Jump(table.periods[split], float(np.exp(log)), chance, (arms[0], arms[1]), job, past)


def _finding(case: Case, jump: _Jump) -> Finding:
    """Return the finding of a jump; that of a single job is an error if it shifts the estimate enough."""
    table, weight = case.table, case.table.quota * case.table.scale
    share = 1.0 if jump.job is None else float(weight[jump.job] / weight.sum())
    severity: Severity = "error"
    if jump.job is not None and case.plain is not None:
        shift = share * abs(jump.ratio - 1) / 2
        severity = "error" if case.plain.half_widths(shift) > MATERIAL else "warning"
    rows = "rows" if jump.job is None else f"rows of job {table.jobs[jump.job]}"
    arms = ("of machines that later have the feature", "others") if jump.past else ("with the feature", "those without")
    what = (
        f"value: from period {_named(jump.since)} on, {rows} {arms[0]} are {jump.arms[1]:.2f} times their level "
        f"before, {arms[1]} {jump.arms[0]:.2f} times"
    )
    evidence = {"ratio": jump.ratio, "chance": jump.chance, "share": share}
    remedy = "find out what changed then: bring all rows to one unit, or leave out the time until the effect is whole"
    return Finding("unit_change", severity, what, evidence, remedy)


def units_between_jobs(case: Case) -> list[Finding]:
    """Find jobs whose levels are so far apart that they are hardly measured in one unit.

    The fleet's change weighs a job by its quota times its level, so a job in a smaller unit counts for more.
    """
    table = case.table
    with_quota = table.quota > 0
    levels = np.where(with_quota, table.scale, np.nan)
    ratio = float(np.nanmax(levels) / np.nanmin(levels))
    if ratio <= _LEVELS:
        return []
    weight = table.quota * table.scale
    high = weight * (levels > _LEVELS * np.nanmin(levels))
    top = int(high.argmax())
    quota, counts = float(table.quota[top] / table.quota.sum()), float(weight[top] / weight.sum())
    evidence = {"ratio": ratio, "lowest": float(np.nanmin(levels)), "highest": float(np.nanmax(levels))}
    evidence |= {"jobs_above": int((high > 0).sum()), "quota_share": quota, "weight_share": counts}
    what = (
        f"levels of jobs are up to {ratio:,.0f} times apart: {table.jobs[top]} has {quota:.1%} of the quota and counts "
        f"for {counts:.1%} of the change"
    )
    remedy = "measure all jobs in one unit, or divide each job's values by its mean before the study"
    return [Finding("units_between_jobs", "warning", what, evidence, remedy)]


_FEW = 0.01
"""Share of bad rows up to which they are worth a note only."""
_UNLIKE, _ERRORS = 0.005, 4.0
"""Shares left out of two arms are unlike if they differ by so much, and by so many standard errors."""


def unusable_values(case: Case) -> list[Finding]:
    """Find values or weights that are no numbers, not finite, 0 or negative, and other amounts that cannot be used.

    Rows without a value are left out by whatever estimates; if it is the slow that have none, the answer is too good.
    Rows without presence, CPU time, exposure or frequency are left out, too; no guard looks at such a column.
    """
    flagged = case.flagged
    lacking = f"no usable {', '.join(flagged.amounts)}"
    missing = "find out why they are missing; "
    remedy = "; ".join([*flagged.outside(), f"else {missing}" if flagged.outside() else missing])
    findings = [
        *_unusable(
            case,
            flagged.unusable,
            flagged.estimand.lacking,
            f"{remedy}compare only if they miss by chance in both arms",
        ),
        *_unusable(case, flagged.without_amounts, lacking, f"{missing}or leave the columns out"),
        *_left_out(case),
    ]
    return sorted(findings, key=lambda finding: finding.severity == "note")


def _unusable(case: Case, bad: Bools, lacking: str, remedy: str) -> list[Finding]:
    """Return what is to be said of rows that lack something, by how many there are in either arm."""
    if not bad.any():
        return []
    given = case.flagged.table
    treated = given["treated"].to_numpy() == 1
    study = treated | given["period"].isin(case.table.periods[np.unique(case.table.period[case.table.study])])
    shares = [_share(bad, arm & study) for arm in (~treated, treated)]
    worst = max(float(bad.mean()), *shares)
    severity: Severity = "note" if worst <= _FEW else "error" if worst > 10 * _FEW else "warning"
    count, elsewhere = int(bad.sum()), int((bad & ~study).sum())
    of_arms = f"{shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    if elsewhere:
        outside = "outside the periods that are compared"
        of_arms = f"{elsewhere} of them {outside}; in these {of_arms}" if elsewhere < count else f"all {outside}"
    what = f"{count} row{'s have' if count > 1 else ' has'} {lacking}: {of_arms}"
    evidence = {"rows": count, "share": float(bad.mean()), "treated": shares[1], "untreated": shares[0]}
    return [Finding("unusable_values", severity, what, evidence, remedy)]


def _left_out(case: Case) -> list[Finding]:
    """Return what is to be said of rows that were left out when the table was read, and whether both arms lack them."""
    left = case.flagged.left_out
    if left.empty or "treated" not in left:
        return []
    given = case.flagged.table["treated"].to_numpy() == 1
    out = pd.to_numeric(left["treated"], errors="coerce").to_numpy()
    lacking = np.array([(out == 0).sum(), (out == 1).sum()])
    rows = lacking + np.array([(~given).sum(), given.sum()])
    if not rows.all():
        return []
    shares, pooled = lacking / rows, lacking.sum() / rows.sum()
    apart = abs(shares[1] - shares[0])
    error = np.sqrt(pooled * (1 - pooled) * (1 / rows).sum())
    if apart < _UNLIKE or apart < _ERRORS * error:
        return []
    what = f"shares of rows left out differ between the arms: {shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    evidence = {"rows": len(left), "treated": float(shares[1]), "untreated": float(shares[0])}
    severity: Severity = "error" if apart > 10 * _FEW else "warning"
    return [Finding("unusable_values", severity, what, evidence, "find out why their cells cannot be used")]


def frozen_values(case: Case) -> list[Finding] | str:
    """Find values that stay the same to the last digit from a period to the next: a sensor that hangs.

    A series is an instance on a machine, or a job's one row there. Nothing is said where values are coarse, so that
    machines share them, or where most rows of both arms repeat, as values are then of longer than a period. Up to 1%
    of an arm's rows may be rounded values that agree by chance.
    """
    table = case.table
    names = [name for name in ("machine", "job", "instance", "residence") if name in table.rows]
    rows = table.rows[names].assign(
        period=table.period, value=table.rows["value"].to_numpy(), treated=table.treated, study=table.study
    )
    rows = rows[~rows.duplicated([*names, "period"], keep=False).to_numpy()].sort_values([*names, "period"])
    last = rows.groupby(names, observed=True, sort=False)[["period", "value"]].shift()
    followed = (rows["period"] - last["period"] == 1).to_numpy()
    alike = float(rows.duplicated(["period", "job", "value"], keep=False).mean())
    needs = unmet(
        (not followed.any(), "rows of an instance (or of a job on a machine) in two periods that follow each other"),
        (alike > _ALIKE_ROWS, f"finer values: {alike:.0%} of the rows have one that another machine has, too"),
    )
    if needs:
        return needs
    same = followed & (rows["value"] == last["value"]).to_numpy()
    study, treated = rows["study"].to_numpy(), rows["treated"].to_numpy()
    shares = [_share(same, followed & study & arm) for arm in (~treated, treated)]
    if min(shares) > _CONSTANT:
        return (
            f"values of single periods: {min(shares):.0%} of the rows of either arm, or more, repeat the period before"
        )
    worst = max(shares)
    if worst <= _FEW:
        return []
    severity: Severity = "error" if worst > 10 * _FEW else "warning"
    count, machines = int((same & study).sum()), int(rows.loc[same & study, "machine"].nunique())
    of = f"{count} row{'s' * (count > 1)} of {machines} machine{'s' * (machines > 1)}"
    what = (
        f"{of} with the value of the period before, to the last digit: "
        f"{shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    )
    evidence = {"rows": count, "machines": machines, "treated": shares[1], "untreated": shares[0]}
    remedy = "find out whether their counters were read again; leave these rows out of both arms"
    return [Finding("frozen_values", severity, what, evidence, remedy)]


def duplicated_rows(case: Case) -> list[Finding]:
    """Find repeated rows; the more rows are repeated, the more severe the finding."""
    usable_rows = case.flagged.table[~case.flagged.unusable]
    again = case.flagged.repeated(~case.flagged.unusable)[~case.flagged.unusable]
    if not again.any():
        return []
    treated = usable_rows["treated"].to_numpy() == 1
    share, shares = float(again.mean()), [_share(again, arm) for arm in (~treated, treated)]
    copied = again.copy()
    copied[again] = ~repeated(usable_rows[again])
    worst = max(_share(copied, arm & ~(again & ~copied)) for arm in (~treated, treated))
    severity: Severity = "note" if worst <= _FEW else "error" if share > 5 * _FEW else "warning"
    what = f"{int(again.sum())} rows are there twice or more: {shares[1]:.1%} of the treated, {shares[0]:.1%} of others"
    evidence = {"rows": int(again.sum()), "share": share, "treated": shares[1], "untreated": shares[0]}
    evidence["copies"] = len(again) / (len(again) - int(again.sum()))
    return [Finding("duplicated_rows", severity, what, evidence, "keep each row once; fix the join that doubled them")]


def _share(flags: Bools, among: Bools) -> float:
    return float(flags[among].mean()) if among.any() else 0.0


_PER_CYCLE = {"ipc", "cpi", "instructions_per_cycle", "cycles_per_instruction"}
_LEAST_CHANGE = 0.002


def ipc_across_frequencies(case: Case) -> list[Finding] | str:
    """Find instructions per cycle compared between arms whose mean frequencies differ.

    At a higher clock memory is further away in cycles: IPC falls where performance rises (Eyerman and Eeckhout 2010).
    Frequency is `mean_frequency_hz`, `clock_hz` or `cycles` / `cpu_s`. It alarms at a chance of `ALPHA` and if the
    difference of frequencies is `MATERIAL` half-widths of the plain estimate.
    """
    if case.about.metric is None:
        return "metric among the facts about the experiment (YAML)"
    if case.about.metric.lower() not in _PER_CYCLE:
        return []
    clock = _clock_hz(case.table)
    remedy = "compare instructions per CPU second (or requests), which count in time"
    if clock is None or case.plain is None:
        what = "instructions per cycle are compared, and no frequency says whether the arms' clocks are alike"
        return [Finding("ipc_across_frequencies", "note", what, {}, remedy)]
    speed = study_contrast(case.table, clock / clock.mean())
    if speed is None:
        return COMPARED
    chance = (
        float(2 * student_tail(abs(speed.change) / speed.error, speed.freedom))
        if speed.error > 0
        else float(speed.change == 0)
    )
    ratio = abs(speed.change) / max(case.plain.half_width, 1e-300)
    if chance > ALPHA or ratio <= MATERIAL or abs(speed.change) < _LEAST_CHANGE:
        return []
    evidence = {
        "frequency_change": speed.change,
        "error": speed.error,
        "chance": chance,
        "change_in_half_widths": ratio,
    }
    what = f"instructions per cycle are compared, but the clock changes by {speed.change:+.2%} with the feature"
    return [Finding("ipc_across_frequencies", "error", what, evidence, remedy)]


def _clock_hz(table: Audited) -> Floats | None:
    """Return (N,) mean frequencies, if they are known of every row."""
    rows = table.rows
    for name in ("mean_frequency_hz", "clock_hz"):
        if name in rows:
            clock = rows[name].to_numpy(dtype=np.float64)
            return clock if np.isfinite(clock).all() and (clock > 0).all() else None
    if "cycles" in rows and "cpu_s" in rows:
        clock = rows["cycles"].to_numpy(dtype=np.float64) / rows["cpu_s"].to_numpy(dtype=np.float64)
        return clock if np.isfinite(clock).all() and (clock > 0).all() else None
    return None
