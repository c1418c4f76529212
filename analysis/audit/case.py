"""An experiment under audit: its rows, the plain estimate that harm is measured against, and what guards find in it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.findings import Finding, Severity
from analysis.effects.estimand import Estimand
from analysis.effects.observations import NO_FEATURE, FlaggedRows, Observations, ObservationsError
from analysis.statistics import ROUNDING, student_quantile
from models.arrays import Bools, Floats, Ints
from models.errors import WscError


@dataclass(frozen=True, eq=False)
class Audited(Observations):
    """Observations with values relative to their job's level, and what jobs weigh."""

    relative: Floats
    """(N,) value divided by its job's mean without the feature; if it is no rate, by the mean of all jobs."""
    quota: Floats
    """(J,) the jobs' weights: of the whole fleet if there is a table of jobs."""
    scale: Floats
    """(J,) the jobs' means without the feature; 1 of what is no rate."""
    unseen: float
    """Share of the fleet's quota held by jobs that have no row at all."""
    rack: Ints | None
    """(M,) rack of each machine, if known."""
    rate: bool = True
    """Whether changes are relative to the level of what is compared; else to that of the study without the feature."""
    by_rack: bool = False
    """Whether errors are to count racks, whatever got the feature together."""

    @classmethod
    def under(cls, flagged: FlaggedRows, jobs: pd.DataFrame | None = None, *, by_rack: bool = False) -> "Audited":
        """Return what guards look at.

        Parameters
        ----------
        flagged : the observations as given
        jobs : job, quota of the whole fleet
        by_rack : as in `Audited`

        Raises
        ------
        ObservationsError
            If nothing can be used, or nothing has the feature.
        """
        rows = flagged.audited()
        coded = Observations.of(rows)
        if not coded.treated.any():
            raise ObservationsError("; ".join(_without_treated(flagged)))
        value = rows["value"].to_numpy(dtype=np.float64)
        racks = coded.of_machines("rack")
        quota, unseen = _quota(coded, jobs)
        if flagged.estimand.metric_kind == "rate":
            scale = _scale(coded, value)
        else:
            controls, scale = coded.study & ~coded.treated, np.ones(len(coded.jobs))
            value = _about_one(rows, flagged.estimand, controls)
        return cls(
            **{field.name: getattr(coded, field.name) for field in fields(coded)},
            relative=value / scale[coded.job],
            quota=quota,
            scale=scale,
            unseen=unseen,
            rate=flagged.estimand.metric_kind == "rate",
            rack=None if racks is None else pd.factorize(racks, sort=True)[0].astype(np.int64),
            by_rack=by_rack,
        )

    @property
    def crossover(self) -> bool:
        """Whether most machines with the feature were in the study without it, too."""
        return bool(self.switching.sum() > 0.5 * self.ever.sum())

    @property
    def weight(self) -> Floats:
        """(N,) the rows' own weights."""
        return self.rows["weight"].to_numpy(dtype=np.float64)

    @cached_property
    def series(self) -> Ints:
        """(N,) what is measured again and again: an instance on a machine, or a job there."""
        code = self.machine.astype(np.int64) * len(self.jobs) + self.job
        for name in ("instance", "residence"):
            if name in self.rows:
                own, names = pd.factorize(self.rows[name])
                code = pd.factorize(code)[0] * (len(names) + 1) + own + 1
        return pd.factorize(code)[0].astype(np.int64)

    def windows_apart(self) -> float:
        """Return the share of the treated quota of the study that is in other periods than the untreated quota."""
        shares = []
        for arm in (self.treated, self.study & ~self.treated):
            quota = np.bincount(self.period, self.weight * arm, len(self.periods))
            shares.append(quota / max(float(quota.sum()), 1e-300))
        return float(np.abs(shares[1] - shares[0]).sum() / 2)

    def within_jobs(self, rows: Bools) -> Floats:
        """Return some rows' relative values less the mean of their job over these rows."""
        job, value = self.job[rows], self.relative[rows]
        mean = np.bincount(job, value, len(self.jobs)) / np.maximum(np.bincount(job, minlength=len(self.jobs)), 1)
        return np.asarray(value - mean[job], dtype=np.float64)

    def platforms(self) -> tuple[Ints, pd.Index]:
        """Return (M,) each machine's platform and the platforms' names; one for all if there is no such column."""
        platforms = self.of_machines("platform")
        if platforms is None:
            return np.zeros(len(self.machines), dtype=np.int64), pd.Index([""])
        code, names = pd.factorize(platforms, sort=True)
        return code.astype(np.int64), pd.Index(names)

    def whole_racks(self) -> bool:
        """Return whether each of several racks has the feature on all of its machines or on none."""
        if self.rack is None or self.crossover:
            return False
        size = np.bincount(self.rack)
        having = np.bincount(self.rack, self.ever)
        several = size > 1
        mixed = several & (having > 0) & (having < size)
        return bool((several & (having > 0)).any() and mixed.sum() <= 0.1 * (several & (having > 0)).sum())

    def units(self) -> Ints:
        """Return (M,) what counts as independent: racks if they got the feature whole or it is asked, else machines."""
        if self.rack is not None and (self.by_rack or self.whole_racks()):
            return self.rack
        return np.arange(len(self.machines))


def _without_treated(flagged: FlaggedRows) -> Iterator[str]:
    """Yield all that is wrong with rows of which none can be used that has the feature."""
    usable, kind, bad = "value and a weight above 0", flagged.estimand.metric_kind, int(flagged.unusable.sum())
    rows, having = len(flagged.table), (flagged.table["treated"] == 1).any()
    if not having:
        yield NO_FEATURE
    if bad == rows:
        yield f"no row has a {usable}" if kind == "rate" else f"every row has {flagged.estimand.lacking}"
    elif having:
        yield (
            f"no row with the feature has a {usable}"
            if kind == "rate"
            else (f"every row with the feature has {flagged.estimand.lacking}")
        )
    elif bad:
        yield f"{bad:,} of {rows:,} rows {'have' if bad > 1 else 'has'} {flagged.estimand.lacking}"
    yield from flagged.outside()


def _scale(coded: Observations, value: Floats) -> Floats:
    """Return (J,) mean values: of the concurrent untreated rows, or else of the untreated, or else of all."""
    job, jobs = coded.job, len(coded.jobs)
    scale = np.full(jobs, np.nan)
    for chosen in (coded.study & ~coded.treated, ~coded.treated, np.ones(len(job), dtype=np.bool_)):
        count = np.bincount(job[chosen], minlength=jobs)
        mean = np.bincount(job[chosen], value[chosen], jobs) / np.maximum(count, 1)
        scale = np.where(np.isnan(scale) & (count > 0), mean, scale)
    return scale


def _about_one(rows: pd.DataFrame, estimand: Estimand, controls: Bools) -> Floats:
    """Return (N,) values that need not be positive, in parts of the level without the feature, of all jobs together.

    Of a ratio they are numerators less that level times their denominators. If values may be negative, they are 1 and
    the standard deviations that they are above the level.
    """
    value = rows["value"].to_numpy(dtype=np.float64)
    below = rows["exposure"].to_numpy(dtype=np.float64) if estimand.metric_kind == "ratio" else np.ones(len(rows))
    controls = controls if controls.any() else np.ones(len(rows), dtype=np.bool_)
    if not below[controls].sum() > 0:
        raise ObservationsError("exposure: should be above 0 in some usable row without the feature")
    level = float(value[controls].sum() / below[controls].sum())
    left = (value - level * below) / float(below[controls].mean())
    unit = level if level > 0 and (value >= 0).all() else float(left.std()) or 1.0
    return np.asarray(1.0 + left / unit, dtype=np.float64)


def _quota(coded: Observations, jobs: pd.DataFrame | None) -> tuple[Floats, float]:
    """Return (J,) the weights of the jobs that have rows, and the share of the fleet's quota that others hold."""
    if jobs is None:
        own = np.bincount(coded.job, coded.rows["weight"].to_numpy(dtype=np.float64), len(coded.jobs))
        return np.asarray(own, dtype=np.float64), 0.0
    missing = [name for name in ("job", "quota") if name not in jobs]
    if missing:
        raise ObservationsError(f"the table of jobs lacks columns: {', '.join(missing)}")
    given = jobs.drop_duplicates("job").set_index("job")["quota"].astype(np.float64)
    quota: Floats = np.asarray(given.reindex(coded.jobs).fillna(0.0), dtype=np.float64)
    if not quota.sum() > 0:
        raise ObservationsError("no job of the observations has a quota in the table of jobs")
    return quota, float(1 - quota.sum() / given.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A relative change of the fleet over the jobs that both arms have, and what it rests on.

    Its variance is that of linearised sums over clusters (Särndal, Swensson and Wretman 1992, section 5.5).
    """

    change: float
    error: float
    freedom: float
    influence: Floats
    """(G, 2) what each cluster adds to the estimate's error, by arm."""
    hold: Floats
    """(G, 2) share of each arm's mean that a cluster carries."""
    by_job: Floats
    """(J,) each job's own change; NaN where it was not seen."""
    comparable: Bools
    """(J,) whether at least two clusters of each arm hold the job."""
    covered: float
    """Share of the quota of all jobs that they hold."""
    alone_error: float
    """The standard error if every row were independent."""

    @property
    def half_width(self) -> float:
        """Half of the 95% interval."""
        return float(student_quantile(0.975, self.freedom)) * self.error

    def half_widths(self, shift: float) -> float:
        """Return how many half-widths of the 95% interval a shift is, in size; 0 of an interval without width."""
        return abs(shift) / self.half_width if self.half_width > 0 else 0.0

    @property
    def clusters(self) -> Floats:
        """(2,) effective number of clusters without and with the feature (Kish 1965)."""
        return np.asarray(1 / np.maximum((self.hold**2).sum(axis=0), 1e-300), dtype=np.float64)

    @property
    def design_effect(self) -> float:
        """Variance relative to that of independent rows."""
        return (self.error / self.alone_error) ** 2 if self.alone_error > 0 else 1.0


def contrast(
    table: Audited,
    among: Bools,
    treated: Bools,
    cluster: Ints,
    value: Floats | None = None,
) -> Contrast | None:
    """Return the change between two sets of rows, or None if they share no job on two clusters each.

    Parameters
    ----------
    table : the experiment
    among : (N,) rows that are compared
    treated : (N,) which of them have the feature
    cluster : (M,) what each machine belongs to
    value : (N,) relative values; those of the table if not given
    """
    jobs, groups = len(table.jobs), int(cluster.max()) + 1
    y = (table.relative if value is None else value)[among]
    job, arm, group = table.job[among], treated[among].astype(np.int64), cluster[table.machine[among]].astype(np.int64)
    cell, of = _cells((group * 2 + arm) * jobs + job, 2 * groups * jobs)
    n, s = np.bincount(of).astype(np.float64), np.bincount(of, y, len(cell))
    cell_job, cell_arm, cell_group = cell % jobs, cell // jobs % 2, cell // jobs // 2
    key = cell_arm * jobs + cell_job
    clusters_of, rows, sums = (
        np.bincount(key, numbers, 2 * jobs).reshape(2, jobs) for numbers in (np.ones(len(cell)), n, s)
    )
    comparable: Bools = np.asarray((clusters_of >= 2).all(axis=0), dtype=np.bool_)
    weight = np.where(comparable, table.quota * table.scale, 0.0)
    if not weight.sum() > 0:
        return None
    mean = sums / np.maximum(rows, 1)
    level = float((weight * mean[0] if table.rate else weight).sum())
    part = np.where(comparable, weight / level, 0.0) / np.maximum(rows, 1)
    spread = np.sqrt(clusters_of / np.maximum(clusters_of - 1, 1))
    out = (part * spread).ravel()[key] * (s - n * mean.ravel()[key])
    of_group = cell_group * 2 + cell_arm
    influence: Floats = np.bincount(of_group, out, 2 * groups).astype(np.float64).reshape(groups, 2)
    hold: Floats = np.bincount(of_group, part.ravel()[key] * n, 2 * groups).astype(np.float64).reshape(groups, 2)
    squares = np.bincount(arm * jobs + job, (y - mean.ravel()[arm * jobs + job]) ** 2, 2 * jobs).reshape(2, jobs)
    alone = part**2 * rows * squares / np.maximum(rows - 1, 1)
    change = float((weight * (mean[1] - mean[0])).sum()) / level
    error = float(np.sqrt(((influence[:, 1] - influence[:, 0]) ** 2).sum()))
    return Contrast(
        change=change if abs(change) > ROUNDING else 0.0,
        error=error if error > ROUNDING else 0.0,
        freedom=_freedom(influence, hold),
        influence=influence,
        hold=hold / hold.sum(axis=0),
        by_job=np.where(comparable, mean[1] / np.where(mean[0] > 0, mean[0], 1.0) - 1, np.nan),
        comparable=comparable,
        covered=float(table.quota[comparable].sum() / table.quota.sum()) * (1 - table.unseen),
        alone_error=float(np.sqrt(alone.sum())),
    )


def _cells(code: Ints, codes: int) -> tuple[Ints, Ints]:
    """Return the codes that occur, in order, and each row's place among them; without sorting if codes are few."""
    if codes > 4 * len(code):
        cell, of = np.unique(code, return_inverse=True)
        return cell.astype(np.int64), of.astype(np.int64)
    occurs = np.bincount(code, minlength=codes) > 0
    return np.flatnonzero(occurs).astype(np.int64), (np.cumsum(occurs) - 1)[code].astype(np.int64)


def study_contrast(table: Audited, value: Floats | None = None) -> Contrast | None:
    """Return the change between treated and concurrent untreated rows, clustered by what got the feature together."""
    return contrast(table, table.study, table.treated, table.units(), value)


def contrast_before(table: Audited) -> Contrast | None:
    """Return the difference, before the study, of machines that later got the feature from those that did not."""
    return contrast(table, ~table.study, table.ever[table.machine], table.units())


def _freedom(influence: Floats, hold: Floats) -> float:
    """Return Welch's degrees of freedom; clusters that are in both arms count once."""
    count = (hold > 0).sum(axis=0)
    if ((hold > 0).all(axis=1)).sum() > 0.5 * count[1]:
        return float(max((hold > 0).any(axis=1).sum() - 1, 1))
    variance = (influence**2).sum(axis=0)
    if not variance.sum() > 0:
        return float(max(count.min() - 1, 1))
    return float(max(variance.sum() ** 2 / (variance**2 / np.maximum(count - 1, 1)).sum(), 1))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One experiment under audit."""

    flagged: FlaggedRows
    table: Audited
    about: About
    plain: Contrast | None
    """Of the study: treated rows against concurrent untreated rows."""
    prior: Contrast | None
    """Of the pre-period: the same machines."""

    @classmethod
    def of(cls, flagged: FlaggedRows, jobs: pd.DataFrame | None = None, about: About | None = None) -> "Case":
        """Prepare what guards look at."""
        about = about or About()
        table = Audited.under(flagged, jobs, by_rack=about.clusters == "rack")
        return cls(flagged, table, about, study_contrast(table), contrast_before(table))


Guard = Callable[[Case], list[Finding] | str]
"""A guard's findings; or, if it cannot look, what it needs to be able to."""
COMPARED = "a job that two machines of each arm have in the study"
STEADY = "a study in which machines keep their arm, where most of these switch"
PAST = "periods before the feature"
_GRAVITY: Mapping[Severity, int] = {"error": 0, "warning": 1, "note": 2}


def unmet(*needs: tuple[bool, str]) -> str:
    """Return in words all that a case lacks; nothing if it lacks nothing.

    Parameters
    ----------
    needs : whether the case lacks it, and what it is

    Examples
    --------
    >>> unmet((True, "column rack"), (False, PAST), (True, COMPARED))
    'column rack; a job that two machines of each arm have in the study'
    """
    return "; ".join(need for missing, need in needs if missing)


class TooLittleError(WscError):
    """A guard has too little to look at, and says what it lacks."""


@dataclass(frozen=True, slots=True)
class Audit:
    """All findings, the gravest first, and the codes of the guards that had what they need to be checked."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    silent: tuple[str, ...] = ()
    """Notes on guards of other people that had too little to look at."""
    unchecked: Mapping[str, str] = field(default_factory=dict)
    """What the other guards need to be able to look (a column, a statement, a design, data), by their codes."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid a verdict."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def codes(self) -> str:
        """The codes of the errors, for a sentence."""
        return ", ".join(finding.code for finding in self.errors)

    def payload(self) -> Mapping[str, list[object]]:
        """Return it as JSON holds it: findings and checked."""
        return {"findings": [asdict(finding) for finding in self.findings], "checked": list(self.checked)}


def examine(
    observations: pd.DataFrame | FlaggedRows,
    jobs: pd.DataFrame | None = None,
    about: About | None = None,
    *,
    guards: Mapping[str, Guard],
) -> Audit:
    """Return what would make the answer false, and which guards had what they need.

    Parameters
    ----------
    observations : a row per instance's stay and period: period, job, machine, weight, value, treated, and perhaps
        instance, rack, platform, present_s, mean_frequency_hz (or cycles and cpu_s), file
    jobs : job, quota of the whole fleet
    about : what is said of the experiment
    guards : by the code of what they find, such as `analysis.audit.guards.GUARDS`

    Raises
    ------
    ObservationsError
        If the table cannot be audited: columns are missing, nothing can be used, nothing has the feature.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": range(30), "weight": 1.0, "value": 2.0, "treated": [0, 1] * 15}
    >>> from analysis.audit.guards import GUARDS
    >>> report = examine(pd.DataFrame(rows), about=About(looks=14), guards=GUARDS)
    >>> [str(finding) for finding in report.findings]
    ['error: peeking: 14 looks at an interval for one look: 22% false positives in place of 5%']
    >>> "peeking" in report.checked, report.unchecked["whole_racks"]
    (True, 'column rack')
    """
    flagged = observations if isinstance(observations, FlaggedRows) else FlaggedRows.of(observations)
    case = Case.of(flagged, jobs, about)
    results, silent, unchecked = dict[str, Sequence[Finding]](), list[str](), dict[str, str]()
    for code, guard in guards.items():
        try:
            outcome = guard(case)
        except TooLittleError as error:
            silent.append(f"guard {code} has too little to look at: {error}")
            outcome = str(error)
        if isinstance(outcome, str):
            unchecked[code] = outcome
        else:
            results[code] = outcome
    findings = [finding for own in results.values() for finding in own]
    findings.sort(key=lambda finding: _GRAVITY[finding.severity])
    return Audit(tuple(findings), tuple(results), tuple(silent), unchecked)
