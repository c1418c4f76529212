"""Guards about who got the feature: machines chosen for what they hold, arms that differed before, shares off plan."""

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import gammaln
from scipy.stats import binomtest, norm, t

from analysis.audit.case import Case
from analysis.audit.findings import ALPHA, MATERIAL, Finding
from analysis.audit.table import Table
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

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [(1, j, m, 1.0, 2.0, int(m < 6)) for m in range(30) for j in range(1 + 9 * (m < 6))]
    >>> frame = pd.DataFrame(rows, columns=["period", "job", "machine", "weight", "value", "treated"])
    >>> selection_optimised(Case.of(frame))[0].code
    'selection_optimised'
    """
    table, said = case.table, case.about.selection
    remedy = "draw machines at random, or with known probabilities and weights that use them"
    if said in _SUSPECT:
        what = f"machines were not drawn but selected ({said}): their error is not that of a random draw"
        return [Finding("selection_optimised", "error", what, {}, remedy)]
    treated, unit = table.ever, table.units()
    if said == "probabilities" or treated.all() or len(np.unique(unit)) < 8:
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


def _composition(table: Table, treated: Bools, unit: Ints) -> Iterator[tuple[str, float]]:
    """Yield how many standard errors each statistic of the treated units is from its mean over random draws."""
    rows = ~table.study if (~table.study).any() else table.period == table.period[table.study].min()
    units, jobs = int(unit.max()) + 1, len(table.jobs)
    of = unit[table.machine[rows]]
    pair = np.unique(of * jobs + table.job[rows])
    there = np.bincount(of, minlength=units) > 0
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
        z = _drawn(column[there], having[there], platform[there])
        if z is not None:
            yield name, z
    if len(names) == 1:
        yield "covered", _covered(pair // jobs, pair % jobs, having, there)


def _drawn(column: Floats, having: Bools, stratum: Ints) -> float | None:
    """Return how many standard errors the treated units' sum is from that of simple random draws within strata."""
    apart, variance = 0.0, 0.0
    for each in np.unique(stratum):
        inside = stratum == each
        n, total = int(having[inside].sum()), int(inside.sum())
        if 0 < n < total:
            apart += float(column[inside & having].sum() - n * column[inside].mean())
            spread = float(column[inside].std(ddof=1))
            variance += n * (1 - n / total) * spread**2 * (spread > ROUNDING * float(np.abs(column[inside]).max()))
    return apart / float(np.sqrt(variance)) if variance > 0 else None


def _covered(unit: Ints, job: Ints, having: Bools, there: Bools) -> float:
    """Return how many standard errors the number of jobs on treated units is from that of random draws."""
    total, n = int(there.sum()), int((having & there).sum())
    count = np.bincount(job)
    most = np.argsort(-count, kind="stable")[:_MOST_JOBS]
    most = most[count[most] > 0]
    holds = np.zeros((len(having), len(count)), dtype=np.float32)
    holds[unit, job] = 1
    holds = holds[:, most]
    held = holds.sum(axis=0).astype(np.float64)
    either = held[:, None] + held[None, :] - (holds.T @ holds).astype(np.float64)
    missed = _misses(held, total, n)
    variance = float((_misses(either, total, n) - np.outer(missed, missed)).sum())
    seen = float((holds[having].sum(axis=0) > 0).sum())
    # Near certain coverage of all jobs the number is far from normal: half a job is given away, as for any count.
    apart = seen - float((1 - missed).sum())
    return float(np.sign(apart) * max(abs(apart) - 0.5, 0.0) / np.sqrt(max(variance, 0.25)))


def _misses(held: Floats, total: int, n: int) -> Floats:
    """Return the chance that n of `total` units, drawn at random, hold none of so many."""
    left = np.maximum(total - held, 0)
    fits = left >= n
    log = gammaln(left + 1) - gammaln(np.maximum(left - n, 0) + 1) - gammaln(total + 1) + gammaln(total - n + 1)
    return np.asarray(np.where(fits, np.exp(log), 0.0), dtype=np.float64)


def imbalance_before(case: Case) -> list[Finding] | None:
    """Find arms that differed before anything had the feature.

    It alarms at a chance of `ALPHA` and if the difference is `MATERIAL` half-widths of the plain estimate.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"period": 1, "job": "a", "machine": range(4), "weight": 1.0, "treated": [0, 0, 1, 1]}
    >>> imbalance_before(Case.of(pd.DataFrame(rows | {"value": [1.0, 3.0, 2.0, 3.0]}))) is None
    True
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

    Examples
    --------
    >>> import pandas as pd
    >>> from analysis.audit.about import About
    >>> rows = {"period": 1, "job": "a", "machine": range(90), "weight": 1.0, "treated": [0] * 65 + [1] * 25}
    >>> case = Case.of(pd.DataFrame(rows | {"value": 2.0}), about=About(planned_share=0.5))
    >>> [round(one.evidence["treated_share"], 3) for one in sample_ratio(case)]
    [0.278]
    """
    table, planned = case.table, case.about.planned_share
    platform, names = table.platforms()
    if table.crossover or (planned is None and len(names) == 1):
        return None
    unit, there = table.units(), table.ever | table.never
    first = np.zeros(len(there), dtype=np.bool_)
    first[np.unique(np.where(there, unit, -1), return_index=True)[1]] = True
    first &= there
    counts = [(name, first & (platform == k)) for k, name in enumerate(names)] if len(names) > 1 else []
    if planned is not None and not isinstance(planned, Mapping):
        counts.append(("all", first))
    found = []
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
            found.append(Finding("sample_ratio", "error", what, evidence, remedy))
    return found


def _planned(planned: float | Mapping[str, float] | None, name: str, overall: float) -> float | None:
    """Return the share planned for a platform; without a plan that of all machines."""
    if planned is None:
        return overall if 0 < overall < 1 else None
    return planned.get(name) if isinstance(planned, Mapping) else planned
