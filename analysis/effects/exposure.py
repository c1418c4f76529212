"""The total effect of a feature whose machines disturb their neighbours: everybody on against nobody on.

Machines of one domain (a power budget, a machine room's cooling, a scheduler's pool) feel each other, so machines
without the feature are no picture of a fleet without it. Where domains have the feature to unlike shares, their own
effect and what neighbours do come apart (Hudgens and Halloran 2008; Baird et al. 2018): a value is

    v = job's level + direct × has the feature + spill × share of its neighbours that have it + β · covariates + rest

(Aronow and Samii 2017, exposures by a share), and the total effect is direct + spill, by a straight line in the share.
Errors are a jackknife over domains, which are what was drawn.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from analysis.effects.cells import JobMachineSums, of_machines
from analysis.effects.estimators.adjusted import slopes_of
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from analysis.statistics import intraclass
from models.arrays import Bools, Floats, Ints

_MOST_LIFTED = 2.0
"""A job on few domains counts for so many times at most: it has less than its share of the contrasts within jobs."""
_RIDGE = 1e-10
_ALIKE = 1e-9
_ROUNDING = 1e-12
_AT_ONCE = 2**21
"""So many numbers of sums are held at once, where domains are left out one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """Which machines feel each other, and which of them have the feature."""

    domain: Ints
    """(M,) from 0."""
    treated: Bools
    """(M,)"""

    @property
    def size(self) -> Ints:
        """(D,) machines of each domain."""
        return np.bincount(self.domain)

    @property
    def share(self) -> Floats:
        """(D,) its saturation: the share of its machines that have the feature."""
        return np.asarray(np.bincount(self.domain, self.treated) / np.maximum(self.size, 1))

    @property
    def neighbours(self) -> Floats:
        """(M,) share of the other machines of its domain that have the feature; NaN of a machine alone in its own."""
        others = (self.size - 1)[self.domain]
        having = np.bincount(self.domain, self.treated)[self.domain] - self.treated
        return np.where(others > 0, having / np.maximum(others, 1), np.nan)

    @property
    def nobody(self) -> Bools:
        """(D,) domains in which no machine has it."""
        return np.asarray(self.share <= 0.0)

    @property
    def everybody(self) -> Bools:
        """(D,) domains in which all have it."""
        return np.asarray(self.share >= 1.0)

    @property
    def whole(self) -> bool:
        """Whether no domain has machines of both kinds."""
        return bool((self.nobody | self.everybody).all())

    @property
    def alike(self) -> bool:
        """Whether all domains have the same share."""
        return bool(np.ptp(self.share) <= _ALIKE)


class EffectPart(NamedTuple):
    """A relative change, its standard error, and degrees of freedom."""

    change: float
    error: float
    freedom: float


@dataclass(frozen=True, slots=True)
class ExposureEffect:
    """The effect of a feature in its parts; direct and spill are NaN where no domain has machines of both kinds."""

    total: EffectPart
    """Everybody on against nobody on."""
    direct: EffectPart
    """Of a machine's own feature, whatever its neighbours have."""
    spill: EffectPart
    """Of all neighbours' feature on a machine, whatever it has itself."""
    correlation: float = np.nan
    """Of machines within domains, in what exposures and covariates leave."""
    machines: float = np.nan
    """Of a domain, in the mean that counts for the correlation."""

    @property
    def price(self) -> float:
        """How many times as wide intervals are as if as many machines had been drawn alone (Kish 1965)."""
        return float(max(1.0 + (self.machines - 1.0) * self.correlation, 0.0) ** 0.5)


class _Sums(NamedTuple):
    """Sums of D domains, or over all domains but each, and J jobs, by what instances count for."""

    weight: Floats
    """(D, J)"""
    x: Floats
    """(D, J, K) regressors: exposures, then covariates."""
    xx: Floats
    """(D, J, K, K)"""
    y: Floats
    """(D, J)"""
    xy: Floats
    """(D, J, K)"""

    def without(self, left_out: Ints) -> Self:
        """Return sums over all domains but each of these."""
        return type(self)(*(part.sum(axis=0) - part[left_out] for part in self))

    def over(self) -> Floats:
        """Return 1 over the weight, 0 where what is left of it after a subtraction is rounding."""
        enough = self.weight > _ROUNDING * np.maximum(self.weight.max(axis=-1, keepdims=True), 1e-300)
        return np.divide(1.0, self.weight, out=np.zeros(self.weight.shape), where=enough)


@dataclass(frozen=True, slots=True)
class Exposure:
    """Total effect by the share of neighbours that have the feature; domains are what `JobMachineSums.rack` says."""

    name: str = "exposure"
    """Its name in tables and on the command line."""
    covariates: int = 99
    """How many of the study's covariates are used at most, in their order."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ()

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return the total effect of R draws; NaN where it cannot be told.

        Parameters
        ----------
        cells : with both arms where a draw needs them
        treated : (R, M)
        """
        parts = [self.parts(cells, draw).total for draw in treated]
        return Answers(*(np.array(column) for column in zip(*parts, strict=True)))

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return the total effect in one experiment."""
        return concluded(self, study, confidence)

    def parts(self, cells: JobMachineSums, treated: Bools) -> ExposureEffect:
        """Return the effect in its parts; NaN if all domains have the same share of machines with the feature.

        Machines that are alone in their domain have no neighbours and count for nothing.

        Parameters
        ----------
        cells : of M machines
        treated : (M,)
        """
        beside = np.bincount(cells.rack)[cells.rack] > 1
        if not beside.all():
            cells, treated = of_machines(cells, beside), treated[beside]
        domains = Domains(np.unique(cells.rack, return_inverse=True)[1], treated)
        unknown = EffectPart(np.nan, np.nan, np.nan)
        if not treated.any() or domains.alike:
            return ExposureEffect(unknown, unknown, unknown)
        used = min(self.covariates, cells.x.shape[1], slopes_of(len(domains.size)))
        regressors = _regressors(cells, domains, used)
        wanted = np.array([[1.0]]) if domains.whole else np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        fit = _Fit.of(cells, domains, regressors, wanted)
        parts = [fit.part(number) for number in range(len(wanted))]
        direct, spill = (unknown, unknown) if domains.whole else parts[1:]
        return ExposureEffect(parts[0], direct, spill, fit.correlation, fit.machines)


@dataclass(frozen=True, slots=True)
class WholeDomains:
    """Total effect between domains in which everybody has the feature and those in which nobody has it."""

    name: str = "whole-domains"
    """Its name in tables and on the command line."""
    covariates: int = 99
    """How many of the study's covariates are used at most, in their order."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ()

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws, (R, M); domains are what `JobMachineSums.rack` says."""
        whole_alone = Exposure(covariates=self.covariates)
        answers = []
        for draw in treated:
            domains = Domains(cells.rack, draw)
            whole = (domains.everybody | domains.nobody)[cells.rack]
            answers.append(whole_alone.many(of_machines(cells, whole), draw[None, whole]))
        return Answers(*(np.concatenate(column) for column in zip(*answers, strict=True)))

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def _regressors(cells: JobMachineSums, domains: Domains, used: int) -> Floats:
    """Return exposures and covariates of each cell, as means over its instances, (C, K); NaN of a machine alone."""
    machine = np.repeat(np.arange(len(domains.domain)), np.diff(cells.start))
    having, near = domains.treated.astype(np.float64)[machine], domains.neighbours[machine]
    exposures = [having] if domains.whole else [having, near]
    return np.column_stack([*exposures, cells.x[:, :used] / cells.count[:, None]])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Sums of the exposures' coefficients with all domains and without each, relative to the level without the feature.

    They are linear in values. What a unit on all values of a domain, a machine or a cell moves them by tells, for a
    working model in which each of these has a variance of its own, how far a jackknife errs in the mean.
    """

    changes: Floats
    """(1 + D, P) with all domains, then without each."""
    of_domains: Floats
    """(1 + D, P, D) what a unit on all values of a domain moves them by."""
    squares: Floats
    """(2, P, 3) sums of squares of what units on domains, machines and cells move: changes; then what leaving domains
    out adds to them."""
    variances: Floats
    """(3,) of the working model: domains, machines, and cells of one instance."""
    spread: Floats
    """(D,) variance of a domain's mean in the working model."""
    correlation: float
    """Of machines within domains, in what is left; 0 at least."""
    machines: float
    """Of a domain, in the mean that counts for the correlation."""

    @classmethod
    def of(cls, cells: JobMachineSums, domains: Domains, regressors: Floats, wanted: Floats) -> Self:
        """Fit by least squares within jobs; `wanted` are sums of exposures' coefficients, (P, E)."""
        rows = _rows(cells, domains, regressors)
        sums = _summed(cells, domains, rows)
        total, where = _Sums(*(part.sum(axis=0, keepdims=True) for part in sums)), _Places.of(cells, domains)
        combined = np.zeros((regressors.shape[1], len(wanted)))
        combined[: wanted.shape[1]] = wanted.T
        count = len(domains.size)
        counting = _counting(sums.weight, np.ones((1, count)), cells.weight)
        slopes, pull = _solved(total, counting, rows, combined, where.job)
        base = _level(cells, total, slopes)
        whole, changes = pull / base[:, None, None], [slopes @ combined / base[:, None]]
        marks, squares = [where.by_domain(whole)], np.zeros((2, len(wanted), 3))
        squares[0] = where.squares(whole[0], rows.instances)
        together = max(1, _AT_ONCE // max(sums.xx[0].size, whole.size))
        for first in range(0, count, together):
            left_out = np.arange(first, min(first + together, count))
            rest, present = sums.without(left_out), (np.arange(count) != left_out[:, None]).astype(np.float64)
            left = _counting(sums.weight, present, cells.weight)
            without, pull = _solved(rest, left, rows, combined, where.job)
            level = _level(cells, rest, without)
            changes.append(without @ combined / level[:, None])
            own = (where.domain == left_out[:, None])[:, None]
            moved = np.where(own, 0.0, pull / level[:, None, None])
            marks.append(where.by_domain(moved))
            squares[1] += where.squares(moved - whole, rows.instances).sum(axis=0)
        mean = (total.over() * (total.y - total.x @ slopes[0]))[0]
        residual = rows.y - rows.x @ slopes[0] - mean[where.job]
        alike, machines = where.correlation(residual, rows.by)
        by = counting[0, where.job] * rows.by
        variances, spread = where.working(residual, by, rows.instances)
        return cls(
            np.concatenate(changes), np.concatenate(marks), squares, variances, spread, max(alike, 0.0), machines
        )

    def part(self, number: int) -> EffectPart:
        """Return a change, with its jackknife error freed of its bias and Satterthwaite's degrees of freedom."""
        off = self.changes[1:, number] - self.changes[0, number]
        own, added = self.squares[:, number] @ self.variances
        error = float(np.sqrt(own / max(added, 1e-300) * (off**2).sum()))
        moved = (self.of_domains[1:, number] - self.of_domains[0, number]) * np.sqrt(self.spread)
        form = moved @ moved.T
        freedom = float(np.trace(form) ** 2 / max((form**2).sum(), 1e-300))
        return EffectPart(float(self.changes[0, number]), error, freedom)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where C cells are, and sums of what is cell by cell."""

    domain: Ints
    """(C,)"""
    machine: Ints
    job: Ints
    of_machine: Ints
    """(M,) domains."""
    to_domains: csr_array
    """(D, C) ones where cells are."""
    to_machines: csr_array
    """(M, C)"""

    @classmethod
    def of(cls, cells: JobMachineSums, domains: Domains) -> Self:
        machine = np.repeat(np.arange(len(domains.domain)), np.diff(cells.start))
        domain = domains.domain[machine]
        sums = _ones(domain, len(domains.size)), _ones(machine, len(domains.domain))
        return cls(domain, machine, cells.job, domains.domain, *sums)

    def by_domain(self, values: Floats) -> Floats:
        """Return (…, D) sums of (…, C)."""
        return _sums_by(self.to_domains, values)

    def by_machine(self, values: Floats) -> Floats:
        """Return (…, M) sums of (…, C)."""
        return _sums_by(self.to_machines, values)

    def squares(self, values: Floats, instances: Floats) -> Floats:
        """Return (…, 3) sums of squares of what units on domains, machines and cells of so many instances move."""
        each_cell = (values**2 / np.maximum(instances, _ROUNDING)).sum(axis=-1)
        sums = (self.by_domain(values), self.by_machine(values))
        return np.stack([*((of**2).sum(axis=-1) for of in sums), each_cell], axis=-1)

    def correlation(self, residual: Floats, by: Floats) -> tuple[float, float]:
        """Return that of machines within domains, and how many machines of a domain count for it."""
        weight = self.by_machine(by)
        mean = self.by_machine(by * residual) / np.maximum(weight, 1e-300)
        # An exposure is a line between domains, which takes a degree of freedom from what is left there.
        return intraclass(mean[weight > 0], self.of_machine[weight > 0], spent=1)

    def working(self, residual: Floats, by: Floats, instances: Floats) -> tuple[Floats, Floats]:
        """Return variances of domains, machines and cells, by moments of what is left, and of domains' means."""
        (domains, machines, cells), left = self.squares(by, instances), self.squares(by * residual, instances)
        count = int((by > 0).sum())
        used = max(int((self.by_domain(by) > 0).sum()), 3)
        of_domain = max(left[0] * used / (used - 2) - left[1], 0.0) / max(domains - machines, 1e-300)
        alone = max(left[1] - of_domain * machines, 0.0), float((instances * residual**2).sum())
        matrix = np.array([[machines, cells], [instances.sum(), count]])
        known = np.linalg.det(matrix) > _ROUNDING * matrix[0, 0] * matrix[1, 1]
        of_machine = float(np.linalg.solve(matrix, alone)[0]) if known else 0.0
        of_machine = min(max(of_machine, 0.0), alone[0] / max(machines, 1e-300))
        of_cell = (alone[0] - of_machine * machines) / max(cells, 1e-300)
        variances = np.array([of_domain, of_machine, of_cell])
        if not variances.any():
            variances[0] = 1.0
        weight = self.by_domain(by)
        within = np.bincount(self.of_machine, self.by_machine(by) ** 2, len(weight))
        alone_in = self.by_domain(by**2 / np.maximum(instances, _ROUNDING))
        own = variances[1] * within + variances[2] * alone_in
        return variances, variances[0] + np.divide(own, weight**2, out=np.zeros(len(own)), where=weight > 0)


def _ones(place: Ints, count: int) -> csr_array:
    """Return (count, n) ones where each of n is."""
    return csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(count, len(place)))


def _sums_by(ones: csr_array, values: Floats) -> Floats:
    """Return (…, count) sums of (…, n) where each of n is."""
    sums = (ones @ values.reshape(-1, values.shape[-1]).T).T
    return np.asarray(sums.reshape(*values.shape[:-1], ones.shape[0]), dtype=np.float64)


def _level(cells: JobMachineSums, rest: _Sums, slopes: Floats) -> Floats:
    """Return (D,) the fleet's levels in which nobody has the feature, jobs by their quota."""
    over = rest.over()
    weight = np.where(over > 0, cells.weight, 0.0)
    mean = over * (rest.y - (rest.x @ slopes[:, :, None])[:, :, 0])
    return np.asarray((weight * mean).sum(axis=1) / weight.sum(axis=1))


class _Rows(NamedTuple):
    """Cells with their regressors; those that have none count for nothing."""

    by: Floats
    """(C,) what each counts for in its job."""
    x: Floats
    """(C, K)"""
    y: Floats
    """(C,) mean."""
    instances: Floats
    """(C,)"""


def _rows(cells: JobMachineSums, domains: Domains, regressors: Floats) -> _Rows:
    """Return the cells as the fit takes them, by their instances."""
    machine = np.repeat(np.arange(len(domains.domain)), np.diff(cells.start))
    usable = np.isfinite(regressors).all(axis=1) & (cells.count > 0)
    instances = np.where(usable, cells.count, 0.0)
    arm = domains.treated[machine].astype(np.int64)
    y = np.where(usable, cells.y[np.arange(len(arm)), arm], 0.0) / np.where(usable, cells.count, 1.0)
    of_job = np.bincount(cells.job, instances, len(cells.jobs))
    per_instance = np.divide(cells.weight, of_job, out=np.zeros(len(of_job)), where=of_job > 0)
    return _Rows(per_instance[cells.job] * instances, np.where(usable[:, None], regressors, 0.0), y, instances)


def _counting(weight: Floats, present: Floats, job: Floats) -> Floats:
    """Return how many times as much jobs count for in fits as their cells do, (B, J).

    Jobs count by their quota, whatever domains are left, and those on few domains by more: of a contrast within a job
    whose D domains have the feature by chance, 1 − 1 / D is left.

    Parameters
    ----------
    weight : (D, J) of domains
    present : (B, D) 1 for domains that a fit has, else 0
    job : (J,) by quota
    """
    total = present @ weight
    over = np.divide(1.0, total, out=np.zeros(total.shape), where=total > _ROUNDING * max(float(job.max()), 1e-300))
    alone = (present @ weight**2) * over**2
    return np.asarray(job * over * np.minimum(1.0 / np.maximum(1.0 - alone, 1e-9), _MOST_LIFTED))


def _summed(cells: JobMachineSums, domains: Domains, rows: _Rows) -> _Sums:
    """Return sums by domain and job."""
    count, jobs = len(domains.size), len(cells.jobs)
    at = np.repeat(domains.domain, np.diff(cells.start))
    place = at * jobs + cells.job

    def by_place(values: Floats) -> Floats:
        flat = values.reshape(len(place), -1)
        sums = np.stack([np.bincount(place, column, count * jobs) for column in flat.T], axis=1)
        return np.asarray(sums.reshape(count, jobs, *values.shape[1:]), dtype=np.float64)

    weighed = rows.by[:, None] * rows.x
    return _Sums(
        weight=by_place(rows.by),
        x=by_place(weighed),
        xx=by_place(weighed[:, :, None] * rows.x[:, None, :]),
        y=by_place(rows.by * rows.y),
        xy=by_place(weighed * rows.y[:, None]),
    )


def _solved(rest: _Sums, counting: Floats, rows: _Rows, combined: Floats, job: Ints) -> tuple[Floats, Floats]:
    """Return slopes within jobs, (D, K), and what a unit on each cell moves their sums by, (D, P, C)."""
    over = rest.over()
    by, mean = counting * over, over[:, :, None] * rest.x
    across = (by[:, :, None] * rest.x).swapaxes(1, 2)
    square = np.einsum("dj,djkl->dkl", counting, rest.xx) - across @ rest.x
    value = np.einsum("dj,djk->dk", counting, rest.xy) - (across @ rest.y[:, :, None])[:, :, 0]
    diagonal = np.arange(square.shape[1])
    square[:, diagonal, diagonal] += _RIDGE * square[:, diagonal, diagonal] + 1e-14
    right = np.broadcast_to(combined, (len(value), *combined.shape))
    solution = np.linalg.solve(square, np.concatenate([value[:, :, None], right], axis=2))
    along = solution[:, :, 1:].swapaxes(1, 2)
    lines = along @ rows.x.T - (along @ mean.swapaxes(1, 2))[:, :, job]
    return solution[:, :, 0], (counting[:, job] * rows.by)[:, None] * lines
