"""Clocks that differ between the arms: what all machines of a job do at one time stands at another in one arm."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from analysis.audit.case import STEADY, Audited, Case, unmet
from analysis.audit.findings import ALPHA, Finding
from models.arrays import Bools, Floats

_DRAWS = 499
"""Random assignments; with the given one, the least chance that they can tell is `ALPHA`."""
_LEAST = 0.3
"""Correlation of the arms' steps from which they are said to share a course."""
_MOST = 24
"""Periods by which clocks might differ."""
_LEAST_UNITS = 8
"""Machines, or racks, of the smaller arm."""
_JOBS = 50
"""Jobs with the most rows, whose courses are compared."""


def shifted_clocks(case: Case) -> list[Finding] | str:
    """Find an arm whose courses agree with the other's only if its times are moved.

    A course is a job's mean over an arm, period by period. Its steps from one period to the next are compared, once as
    they are and once less what all jobs do together. The statistic is the arms' best correlation at a shift of at most
    a third of the periods, less that at none. Its chance is from random assignments of the machines, or racks, to the
    arms, so that no law need be known. It alarms at a chance of `ALPHA`, from a correlation of 0.3 on that is twice
    that without a shift. Where jobs have no course in common nothing can be seen.
    """
    table = case.table
    periods = len(table.periods)
    reach = min((periods - 1) // 3, _MOST)
    having = np.bincount(table.units(), table.ever) > 0
    fewest = int(min(having.sum(), len(having) - having.sum()))
    needs = unmet(
        (table.crossover, STEADY),
        (reach < 1, f"4 periods, where {periods} {'is' if periods == 1 else 'are'}"),
        (fewest < _LEAST_UNITS, f"{_LEAST_UNITS} machines (or racks) in each arm, where the smaller has {fewest}"),
    )
    if needs:
        return needs
    courses = Courses.of(table)
    shift, best, apart = courses.agreement(having, reach)
    if best < _LEAST or best - apart > best / 2:
        return []
    exceeding, allowed, rng = 1, ALPHA * (_DRAWS + 1), np.random.default_rng(len(having))
    for _ in range(_DRAWS):
        exceeding += courses.agreement(rng.permutation(having), reach)[2] >= apart
        if exceeding > allowed:
            return []
    moved = float(np.median(table.periods[abs(shift) :] - table.periods[: -abs(shift)])) * float(np.sign(shift))
    evidence = {"shift": moved, "correlation": best, "unshifted": best - apart, "chance": exceeding / (_DRAWS + 1)}
    what = (
        "the arms' clocks differ: in period, rows of machines with the feature are "
        f"{abs(moved):g} too {'late' if moved < 0 else 'early'}; once that is mended, jobs' courses agree "
        f"(correlation {best:.2f}, {best - apart:.2f} as given)"
    )
    change = f"{'subtract' if moved < 0 else 'add'} {abs(moved):g} {'from' if moved < 0 else 'to'} period"
    remedy = f"set the times of both arms by one clock: {change} in these rows, or the reverse in the others"
    return [Finding("shifted_clocks", "error", what, evidence, remedy)]


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """What the largest jobs do over time on each unit of assignment."""

    shape: tuple[int, int]
    """Jobs and periods."""
    total: csr_array
    """(J x T, G) sums of relative values by unit."""
    rows: csr_array
    """(J x T, G) numbers of rows."""
    onset: int
    """The step at which the study begins: machines with the feature take it for its effect."""

    @classmethod
    def of(cls, table: Audited) -> "Courses":
        """Collect the courses of an experiment."""
        largest = np.argsort(-np.bincount(table.job, minlength=len(table.jobs)), kind="stable")[:_JOBS]
        place = np.full(len(table.jobs), -1)
        place[largest] = np.arange(len(largest))
        chosen = place[table.job] >= 0
        shape, units = (len(largest), len(table.periods)), table.units()
        cell = place[table.job[chosen]] * shape[1] + table.period[chosen]
        unit = units[table.machine[chosen]]
        size = (shape[0] * shape[1], int(units.max()) + 1)
        total, rows = (
            csr_array((values, (cell, unit)), shape=size) for values in (table.relative[chosen], np.ones(len(cell)))
        )
        study = np.unique(table.period[table.study])
        return cls(shape, total, rows, int(study[0]) - 1)

    def agreement(self, having: Bools, reach: int) -> tuple[int, float, float]:
        """Return the shift with the best correlation, that correlation, and by how much it exceeds that of no shift.

        Parameters
        ----------
        having : (G,) which units have the feature
        reach : the largest shift, periods
        """
        treated, rows = self._steps(having)
        others, rows_of_others = self._steps(~having)
        if 0 <= self.onset < rows.shape[1]:
            rows[:, self.onset] = 0.0
        alone = treated - _by_period(treated, rows), others - _by_period(others, rows_of_others)
        shifts = [shift for size in range(1, reach + 1) for shift in (-size, size)]
        answers = []
        for x, y in ((treated, others), alone):
            given, *moved = (_correlation(x, y, rows, rows_of_others, shift) for shift in (0, *shifts))
            best = int(np.argmax(moved))
            answers.append((shifts[best], moved[best], moved[best] - given))
        return max(answers, key=lambda answer: answer[2])

    def _steps(self, arm: Bools) -> tuple[Floats, Floats]:
        """Return (J, T - 1) steps of an arm's courses, and on how many rows they rest; 0 where one lacks its mean."""
        count = (self.rows @ arm.astype(np.float64)).reshape(self.shape)
        mean = (self.total @ arm.astype(np.float64)).reshape(self.shape) / np.maximum(count, 1)
        return np.diff(mean, axis=1), np.minimum(count[:, 1:], count[:, :-1])


def _by_period(steps: Floats, weight: Floats) -> Floats:
    """Return (T - 1,) the mean step of all jobs."""
    return np.asarray((weight * steps).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300), dtype=np.float64)


def _correlation(treated: Floats, others: Floats, rows: Floats, rows_of_others: Floats, shift: int) -> float:
    """Return the correlation about 0 of the treated's steps with the others' so many periods later."""
    steps = treated.shape[1]
    own, other = slice(max(-shift, 0), steps - max(shift, 0)), slice(max(shift, 0), steps - max(-shift, 0))
    x, y, m, n = treated[:, own], others[:, other], rows[:, own], rows_of_others[:, other]
    weight = m * n / np.maximum(m + n, 1)
    squares = float((weight * x**2).sum() * (weight * y**2).sum())
    return float((weight * x * y).sum()) / squares**0.5 if squares > 0 else 0.0
