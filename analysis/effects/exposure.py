"""The total effect of a feature whose machines disturb their neighbours: everybody on against nobody on.

Machines of one domain (a power budget, a machine room's cooling, a scheduler's pool) feel each other, so machines
without the feature are no picture of a fleet without it. Where domains have the feature to unlike shares, their own
effect and what neighbours do come apart (Hudgens and Halloran 2008; Baird et al. 2018): a value is

    v = job's level + direct × has the feature + spill × share of its neighbours that have it + β · covariates + rest

(Aronow and Samii 2017, exposures by a share), and the total effect is direct + spill, by a straight line in the share.
Errors are a jackknife over domains, which are what was drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimators.adjusted import slopes_of
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from analysis.statistics import intraclass
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

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
        share = self.share
        return bool(((share <= 0.0) | (share >= 1.0)).all())

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


_UNKNOWN = EffectPart(np.nan, np.nan, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What a fit takes of C cells of a job on a machine, machine by machine."""

    cells_of: Ints
    """(M,) cells of each machine."""
    domain: Ints
    """(M,)"""
    job: Ints
    """(C,)"""
    count: Floats
    """(C,) instances."""
    x: Floats
    """(C, K) covariates."""
    y: Floats
    """(C, 2) sums without and with the feature."""
    quota: Floats
    """(J,) what jobs count for."""

    @classmethod
    def of(cls, cells: JobMachineSums) -> Self:
        """Return those of a fleet."""
        return cls(np.diff(cells.start), cells.rack, cells.job, cells.count, cells.x, cells.y, cells.weight)

    def on(self, chosen: Bools) -> Self:
        """Return the cells of some machines, (M,)."""
        place, domain = np.flatnonzero(np.repeat(chosen, self.cells_of)), self.domain[chosen]
        job, count, x, y = self.job[place], self.count[place], self.x[place], self.y[place]
        return type(self)(self.cells_of[chosen], domain, job, count, x, y, self.quota)


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
        places = _Cells.of(cells)
        return _answers([_fitted(places, draw, self.covariates) for draw in treated])

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
        fit = _fitted(_Cells.of(cells), treated, self.covariates)
        if fit is None:
            return ExposureEffect(_UNKNOWN, _UNKNOWN, _UNKNOWN)
        parts = [fit.part(number) for number in range(fit.changes.shape[1])]
        direct, spill = parts[1:] or (_UNKNOWN, _UNKNOWN)
        correlation, machines = fit.correlation()
        return ExposureEffect(parts[0], direct, spill, max(correlation, 0.0), machines)


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
        places, fits = _Cells.of(cells), []
        for draw in treated:
            share = Domains(cells.rack, draw).share
            whole = ((share <= 0.0) | (share >= 1.0))[cells.rack]
            fits.append(_fitted(places.on(whole), draw[whole], self.covariates))
        return _answers(fits)

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def _fitted(cells: _Cells, treated: Bools, covariates: int) -> "_Fit | None":
    """Return the fit of a draw, by so many covariates at most; None where domains do not differ in their shares."""
    beside = np.bincount(cells.domain)[cells.domain] > 1
    if not beside.all():
        cells, treated = cells.on(beside), treated[beside]
    present = np.bincount(cells.domain) > 0
    domains = Domains((np.cumsum(present) - 1)[cells.domain], treated)
    if not treated.any() or domains.alike:
        return None
    used = min(covariates, cells.x.shape[1], slopes_of(len(domains.size)))
    regressors = _regressors(cells, domains, used)
    wanted = np.array([[1.0]]) if domains.whole else np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    return _Fit.of(cells, domains, regressors, wanted)


def _answers(fits: Sequence["_Fit | None"]) -> Answers:
    """Return the total effects of fits; NaN where there is none."""
    parts = [_UNKNOWN if fit is None else fit.part(0) for fit in fits]
    return Answers(*(np.array(column) for column in zip(*parts, strict=True)))


def _regressors(cells: _Cells, domains: Domains, used: int) -> Floats:
    """Return exposures and covariates of each cell, as means over its instances, (C, K); NaN of a machine alone."""
    having = domains.treated.astype(np.float64)
    exposures = [having] if domains.whole else [having, domains.neighbours]
    per_cell = (np.repeat(exposure, cells.cells_of) for exposure in exposures)
    return np.column_stack([*per_cell, cells.x[:, :used] / cells.count[:, None]])


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
    residual: Floats
    """(C,) what regressors and jobs leave of the cells' means."""
    by: Floats
    """(C,) what cells count for in their jobs."""
    places: "_Places"

    @classmethod
    def of(cls, cells: _Cells, domains: Domains, regressors: Floats, wanted: Floats) -> Self:
        """Fit by least squares within jobs; `wanted` are sums of exposures' coefficients, (P, E)."""
        rows = _rows(cells, domains, regressors)
        machine = np.repeat(np.arange(len(domains.domain)), cells.cells_of)
        places = _Places(_Where(domains.domain[machine], machine, cells.job, domains.domain))
        combined = np.zeros((regressors.shape[1], len(wanted)))
        combined[: wanted.shape[1]] = wanted.T
        sums = _summed(cells, domains, rows)
        total, count = _Sums(*(part.sum(axis=0, keepdims=True) for part in sums)), len(domains.size)
        counting = _counting(sums.weight, np.ones((1, count)), cells.quota)
        slopes, lines = _solved(total, counting, combined, cells.quota)
        changes, parts = [slopes @ combined / lines.level[:, None]], len(wanted)
        of_domains, squares = np.zeros((1 + count, parts, count)), np.zeros((2, parts, 3))
        moves = _Moves(np.empty((parts, len(rows.by))), of_domains, squares)
        _move(rows, places.at, lines, -1, moves)
        together = max(1, _AT_ONCE // max(sums.xx[0].size, 1))
        for first in range(0, count, together):
            left_out = np.arange(first, min(first + together, count))
            present = (np.arange(count) != left_out[:, None]).astype(np.float64)
            left = _counting(sums.weight, present, cells.quota)
            without, lines = _solved(sums.without(left_out), left, combined, cells.quota)
            changes.append(without @ combined / lines.level[:, None])
            _move(rows, places.at, lines, first, moves)
        squares[0, :, 0] = (of_domains[0] ** 2).sum(axis=1)
        squares[1, :, 0] = ((of_domains[1:] - of_domains[0]) ** 2).sum(axis=(0, 2))
        mean = (total.over() * (total.y - total.x @ slopes[0]))[0]
        residual = rows.y - rows.x @ slopes[0] - mean[cells.job]
        by = counting[0, cells.job] * rows.by
        variances, spread = places.working(residual, by, rows.instances)
        return cls(np.concatenate(changes), of_domains, squares, variances, spread, residual, rows.by, places)

    def correlation(self) -> tuple[float, float]:
        """Return that of machines within domains, in what is left, and how many machines of a domain count for it."""
        return self.places.correlation(self.residual, self.by)

    def part(self, number: int) -> EffectPart:
        """Return a change, with its jackknife error freed of its bias and Satterthwaite's degrees of freedom."""
        off = self.changes[1:, number] - self.changes[0, number]
        own, added = self.squares[:, number] @ self.variances
        error = float(np.sqrt(own / max(added, 1e-300) * (off**2).sum()))
        moved = (self.of_domains[1:, number] - self.of_domains[0, number]) * np.sqrt(self.spread)
        form = moved @ moved.T
        freedom = float(np.trace(form) ** 2 / max((form**2).sum(), 1e-300))
        return EffectPart(float(self.changes[0, number]), error, freedom)


class _Where(NamedTuple):
    """Where C cells are. It has no methods: compiled code that takes them keeps all that they know of alive."""

    domain: Ints
    """(C,)"""
    machine: Ints
    job: Ints
    of_machine: Ints
    """(M,) domains."""


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Sums of what is cell by cell, where cells are."""

    at: _Where

    def by_domain(self, values: Floats) -> Floats:
        """Return (D,) sums of (C,)."""
        return np.asarray(np.bincount(self.at.domain, values, int(self.at.of_machine.max()) + 1), dtype=np.float64)

    def by_machine(self, values: Floats) -> Floats:
        """Return (M,) sums of (C,)."""
        return np.asarray(np.bincount(self.at.machine, values, len(self.at.of_machine)), dtype=np.float64)

    def squares(self, values: Floats, instances: Floats) -> Floats:
        """Return (3,) sums of squares of what units on domains, machines and cells of so many instances move."""
        each_cell = (values**2 / np.maximum(instances, _ROUNDING)).sum()
        return np.array([(self.by_domain(values) ** 2).sum(), (self.by_machine(values) ** 2).sum(), each_cell])

    def correlation(self, residual: Floats, by: Floats) -> tuple[float, float]:
        """Return that of machines within domains, and how many machines of a domain count for it."""
        weight = self.by_machine(by)
        mean = self.by_machine(by * residual) / np.maximum(weight, 1e-300)
        # An exposure is a line between domains, which takes a degree of freedom from what is left there.
        return intraclass(mean[weight > 0], self.at.of_machine[weight > 0], spent=1)

    def working(self, residual: Floats, by: Floats, instances: Floats) -> tuple[Floats, Floats]:
        """Return variances of domains, machines and cells, by moments of what is left, and of domains' means."""
        (domains, machines, cells), left = self.squares(by, instances), self.squares(by * residual, instances)
        weight, count = self.by_domain(by), int((by > 0).sum())
        used = max(int((weight > 0).sum()), 3)
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
        within = np.bincount(self.at.of_machine, self.by_machine(by) ** 2, len(weight))
        alone_in = self.by_domain(by**2 / np.maximum(instances, _ROUNDING))
        own = variances[1] * within + variances[2] * alone_in
        return variances, variances[0] + np.divide(own, weight**2, out=np.zeros(len(own)), where=weight > 0)


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


def _rows(cells: _Cells, domains: Domains, regressors: Floats) -> _Rows:
    """Return the cells as the fit takes them, by their instances."""
    usable = np.isfinite(regressors).all(axis=1) & (cells.count > 0)
    instances = np.where(usable, cells.count, 0.0)
    arm = np.repeat(domains.treated, cells.cells_of).astype(np.int64)
    y = np.where(usable, cells.y[np.arange(len(arm)), arm], 0.0) / np.where(usable, cells.count, 1.0)
    of_job = np.bincount(cells.job, instances, len(cells.quota))
    per_instance = np.divide(cells.quota, of_job, out=np.zeros(len(of_job)), where=of_job > 0)
    x = np.ascontiguousarray(np.where(usable[:, None], regressors, 0.0))
    return _Rows(per_instance[cells.job] * instances, x, y, instances)


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


def _level(quota: Floats, rest: _Sums, slopes: Floats) -> Floats:
    """Return (D,) the fleet's levels in which nobody has the feature, jobs by their quota."""
    over = rest.over()
    weight = np.where(over > 0, quota, 0.0)
    mean = over * (rest.y - (rest.x @ slopes[:, :, None])[:, :, 0])
    return np.asarray((weight * mean).sum(axis=1) / weight.sum(axis=1))


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


def _summed(cells: _Cells, domains: Domains, rows: _Rows) -> _Sums:
    """Return sums by domain and job."""
    count, jobs, regressors = len(domains.size), len(cells.quota), rows.x.shape[1]
    sums = np.zeros((count, jobs, 2 + regressors * (2 + regressors)))
    _add(rows, np.repeat(domains.domain, cells.cells_of), cells.job, sums)
    x, xy, xx = np.split(sums[:, :, 2:], [regressors, 2 * regressors], axis=2)
    return _Sums(sums[:, :, 0], x, xx.reshape(count, jobs, regressors, regressors), sums[:, :, 1], xy)


@njit(cache=True)
def _add(rows: _Rows, domain: Ints, job: Ints, sums: Floats) -> None:
    """Add to `sums`, (D, J, 2 + K (2 + K)), the weights and, by weight, y, x, x y and x x of cells."""
    regressors = rows.x.shape[1]
    for c in range(len(rows.by)):
        d, j, by = domain[c], job[c], rows.by[c]
        sums[d, j, 0] += by
        sums[d, j, 1] += by * rows.y[c]
        for k in range(regressors):
            weighed, place = by * rows.x[c, k], 2 + regressors * (2 + k)
            sums[d, j, 2 + k] += weighed
            sums[d, j, 2 + regressors + k] += weighed * rows.y[c]
            for m in range(regressors):
                sums[d, j, place + m] += weighed * rows.x[c, m]


class _Lines(NamedTuple):
    """What a unit on a cell moves the wanted sums of slopes by, in B fits."""

    along: Floats
    """(B, K, P) by its regressors."""
    offset: Floats
    """(B, J, P) less this."""
    counting: Floats
    """(B, J) times what the cell counts for."""
    level: Floats
    """(B,) relative to this."""


class _Moves(NamedTuple):
    """What a unit on values moves fits by."""

    whole: Floats
    """(P, C) on a cell's, with all domains."""
    of_domains: Floats
    """(1 + D, P, D) on all of a domain, with all domains, then without each."""
    squares: Floats
    """(2, P, 3) `_Fit.squares`, those of domains left out."""


def _solved(rest: _Sums, counting: Floats, combined: Floats, quota: Floats) -> tuple[Floats, _Lines]:
    """Return slopes within jobs, (B, K), and what a unit on each cell moves their sums by."""
    over = rest.over()
    by, mean = counting * over, over[:, :, None] * rest.x
    across = (by[:, :, None] * rest.x).swapaxes(1, 2)
    square = np.einsum("dj,djkl->dkl", counting, rest.xx) - across @ rest.x
    value = np.einsum("dj,djk->dk", counting, rest.xy) - (across @ rest.y[:, :, None])[:, :, 0]
    diagonal = np.arange(square.shape[1])
    square[:, diagonal, diagonal] += _RIDGE * square[:, diagonal, diagonal] + 1e-14
    right = np.broadcast_to(combined, (len(value), *combined.shape))
    solution = np.linalg.solve(square, np.concatenate([value[:, :, None], right], axis=2))
    slopes, along = solution[:, :, 0], np.ascontiguousarray(solution[:, :, 1:])
    return slopes, _Lines(along, mean @ along, counting, _level(quota, rest, slopes))


@njit(cache=True, error_model="numpy")
def _move(rows: _Rows, where: _Where, lines: _Lines, first: int, moves: _Moves) -> None:
    """Write what units move fits by that leave out one domain after the other, from `first` on; -1 leaves out none."""
    machines, which = np.empty(len(where.of_machine)), 0 if first < 0 else 1
    for b in range(len(lines.level)):
        for p in range(lines.along.shape[2]):
            machines[:] = 0.0
            for c in range(len(rows.by)):
                moved, j, d = 0.0, where.job[c], where.domain[c]
                if d != first + b:
                    for k in range(rows.x.shape[1]):
                        moved += rows.x[c, k] * lines.along[b, k, p]
                    moved = lines.counting[b, j] * rows.by[c] * (moved - lines.offset[b, j, p]) / lines.level[b]
                moves.of_domains[1 + first + b, p, d] += moved
                if first < 0:
                    moves.whole[p, c] = moved
                else:
                    moved -= moves.whole[p, c]
                machines[where.machine[c]] += moved
                moves.squares[which, p, 2] += moved**2 / max(rows.instances[c], _ROUNDING)
            for m in range(len(machines)):
                moves.squares[which, p, 1] += machines[m] ** 2
