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
    """Sums of D domains and J jobs, by what instances count for."""

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

    def over(self) -> Floats:
        """Return 1 over the weight, 0 where what is left of it after a subtraction is rounding."""
        enough = self.weight > _ROUNDING * max(float(self.weight.max()), 1e-300)
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

        Parameters
        ----------
        cells : of M machines
        treated : (M,)
        """
        domains = Domains(np.unique(cells.rack, return_inverse=True)[1], treated)
        unknown = EffectPart(np.nan, np.nan, np.nan)
        if domains.alike or not treated.any():
            return ExposureEffect(unknown, unknown, unknown)
        used = min(self.covariates, cells.x.shape[1], slopes_of(len(domains.size)))
        regressors = _regressors(cells, domains, used)
        wanted = np.array([[1.0], [1.0], [0.0]]) if domains.whole else np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        fit = _Fit.of(cells, domains, regressors, wanted.shape[1])
        parts = [fit.part(combination) for combination in wanted]
        direct, spill = (unknown, unknown) if domains.whole else parts[1:]
        counting = fit.weights > 0
        alike, machines = intraclass(fit.residuals[counting], domains.domain[counting])
        return ExposureEffect(parts[0], direct, spill, max(alike, 0.0), machines)


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
    """Coefficients with all domains and without each, relative to the level of a fleet in which nobody has it."""

    coefficients: Floats
    """(1 + D, E) of the exposures: with all domains, then without each."""
    of_domains: Floats
    """(1 + D, E, D) what they are if all values of one domain are 1 and all others 0."""
    residuals: Floats
    """(M,) what is left of each machine's values, by what they count for."""
    weights: Floats
    """(M,)"""

    @classmethod
    def of(cls, cells: JobMachineSums, domains: Domains, regressors: Floats, exposures: int) -> Self:
        """Fit by least squares within jobs."""
        rows = _rows(cells, domains, regressors)
        sums = _summed(cells, domains, rows)
        total = _Sums(*(part.sum(axis=0) for part in sums))
        solutions, bases = [], []
        for left_out in range(-1, len(domains.size)):
            rest = total if left_out < 0 else _Sums(*(w - p[left_out] for w, p in zip(total, sums, strict=True)))
            solutions.append(_solved(rest, sums.weight, sums.x, left_out))
            bases.append(_level(cells, rest, solutions[-1][:, 0]))
        relative = np.array(solutions)[:, :exposures] / np.array(bases)[:, None, None]
        return cls(relative[:, :, 0], relative[:, :, 1:], *_left(cells, rows, total, solutions[0][:, 0]))

    def part(self, combination: Floats) -> EffectPart:
        """Return a sum of coefficients, with its jackknife error and Satterthwaite's degrees of freedom."""
        numbers = self.coefficients @ combination
        domains = len(numbers) - 1
        off = numbers[1:] - numbers[0]
        error = float(np.sqrt((domains - 1) / domains * (off**2).sum()))
        # Were domains' means alike in variance, the error's square would be a quadratic form of this matrix.
        moved = np.einsum("geh,e->gh", self.of_domains[1:] - self.of_domains[0], combination)
        square = moved @ moved.T
        freedom = float(np.trace(square) ** 2 / max((square**2).sum(), 1e-300))
        return EffectPart(float(numbers[0]), error, freedom)


def _level(cells: JobMachineSums, rest: _Sums, slopes: Floats) -> float:
    """Return the fleet's level in which nobody has the feature, jobs by their quota."""
    over = rest.over()
    weight = np.where(over > 0, cells.weight, 0.0)
    return float((weight * over * (rest.y - rest.x @ slopes)).sum() / weight.sum())


class _Rows(NamedTuple):
    """Cells with their regressors; those that have none count for nothing."""

    by: Floats
    """(C,) what each counts for in the fit."""
    x: Floats
    """(C, K)"""
    y: Floats
    """(C,) mean."""


def _rows(cells: JobMachineSums, domains: Domains, regressors: Floats) -> _Rows:
    """Return the cells as the fit takes them: jobs by their quota, and those on few domains by more."""
    count, jobs = len(domains.size), len(cells.jobs)
    machine = np.repeat(np.arange(len(domains.domain)), np.diff(cells.start))
    usable = np.isfinite(regressors).all(axis=1) & (cells.count > 0)
    instances = np.where(usable, cells.count, 0.0)
    arm = domains.treated[machine].astype(np.int64)
    y = np.where(usable, cells.y[np.arange(len(arm)), arm], 0.0) / np.where(usable, cells.count, 1.0)
    of_domains = np.bincount(domains.domain[machine] * jobs + cells.job, instances, count * jobs).reshape(count, jobs)
    of_job = of_domains.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of a contrast within a job, whose D domains have the feature by chance, 1 − 1 / D is left.
        alone = ((of_domains / of_job) ** 2).sum(axis=0)
        lifted = np.where(of_job > 0, np.minimum(1.0 / (1.0 - alone), _MOST_LIFTED), 0.0)
        per_instance = np.where(of_job > 0, cells.weight / of_job, 0.0)
    return _Rows((lifted * per_instance)[cells.job] * instances, np.where(usable[:, None], regressors, 0.0), y)


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


def _left(cells: JobMachineSums, rows: _Rows, total: _Sums, slopes: Floats) -> tuple[Floats, Floats]:
    """Return what a fit leaves of each machine's mean, (M,), and what machines count for."""
    machines = len(cells.machines)
    machine = np.repeat(np.arange(machines), np.diff(cells.start))
    level = total.over() * (total.y - total.x @ slopes)
    residual = rows.by * (rows.y - rows.x @ slopes - level[cells.job])
    weight = np.bincount(machine, rows.by, machines).astype(np.float64)
    return np.bincount(machine, residual, machines) / np.maximum(weight, 1e-300), weight


def _solved(rest: _Sums, weight: Floats, x: Floats, left_out: int) -> Floats:
    """Return slopes within jobs of values and of marks of domains, (K, 1 + D), without the domain that is left out."""
    over = rest.over()
    square = rest.xx.sum(axis=0) - np.einsum("j,jk,jl->kl", over, rest.x, rest.x)
    value = rest.xy.sum(axis=0) - np.einsum("j,jk,j->k", over, rest.x, rest.y)
    marks = (x.sum(axis=1) - np.einsum("dj,j,jk->dk", weight, over, rest.x)).T
    if left_out >= 0:
        marks[:, left_out] = 0.0
    square[np.diag_indices(len(square))] += _RIDGE * np.diag(square) + 1e-14
    return np.asarray(np.linalg.solve(square, np.column_stack([value, marks])), dtype=np.float64)
