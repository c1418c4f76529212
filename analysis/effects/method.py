"""What an estimator concludes, of one experiment and of many draws at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from scipy.stats import t

from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats
from models.errors import InputError

if TYPE_CHECKING:
    from analysis.effects.cells import Cells
    from analysis.effects.study import Study


Design = Literal["concurrent", "crossover", "staged"]
"""When machines had the feature, as a table shows it: some of them from one time on, on and off, or in waves."""
Need = Literal["platform", "stages", "pairs", "balancing"]
"""What an estimator has to know of how machines were drawn, beside who had the feature when."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A relative change of the fleet's performance, with its interval."""

    estimator: str
    design: str
    """concurrent, crossover, staged or before."""
    machines: int
    """Machines with the feature."""
    controls: int
    """Machines without it, at the same time."""
    change: float
    low: float
    high: float
    margin: float
    """Half-width of the interval."""
    error: float
    """Standard error."""
    freedom: float
    """Degrees of freedom of Student's t."""
    jobs: int
    """Jobs seen with the feature."""
    quota_coverage: float
    """Share of the fleet's CPU quota that they hold."""
    notes: tuple[str, ...] = ()


class Answers(NamedTuple):
    """What an estimator says of R draws; (R,) arrays."""

    change: Floats
    error: Floats
    freedom: Floats

    def margin(self, confidence: float = 0.95) -> Floats:
        """Return half-widths of Student's intervals.

        Examples
        --------
        >>> Answers(np.zeros(1), np.ones(1), np.full(1, 1e9)).margin().round(3)
        array([1.96])
        """
        return half_width(self.error, self.freedom, confidence)


class Method(Protocol):
    """What every estimator offers."""

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""

    @property
    def designs(self) -> frozenset[Design]:
        """The designs that it is for."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it has to know of how machines were drawn."""

    def many(self, cells: "Cells", treated: Bools) -> Answers:
        """Return what it says of R draws of machines; `treated` is (R, M)."""

    def estimate(self, study: "Study", confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""


def half_width(error: Floats, freedom: Floats, confidence: float = 0.95) -> Floats:
    """Return half-widths of intervals of Student's t.

    Parameters
    ----------
    error, freedom : arrays of one shape
    confidence : 0..1
    """
    return np.asarray(t.ppf(0.5 + confidence / 2, freedom) * error)


def concluded(method: Method, study: "Study", confidence: float = 0.95) -> Effect:
    """Return what a method says of one experiment, as its only draw.

    Parameters
    ----------
    method : an estimator
    study : the experiment
    confidence : of the interval, 0..1
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence}")
    answers = method.many(study.cells, study.treated[None, :])
    machines, controls = int(study.treated.sum()), int((~study.treated).sum())
    if study.cells.switched is not None:
        controls = len(np.unique(study.cells.switched.beside.machine))
    change, error, freedom = (float(numbers[0]) for numbers in answers)
    if not (np.isfinite(change) and np.isfinite(error)):
        if machines < 2:
            raise NotEnoughDataError(2, machines, "machines with the feature")
        if controls < 2 and not study.cells.known:
            raise NotEnoughDataError(2, controls, "machines without the feature while others have it")
        raise NotEnoughDataError(
            2, 0, f"machines in each arm of jobs that {method.name} can compare in a {study.design} study"
        )
    margin = float(half_width(np.array(error), np.array(freedom), confidence))
    chosen = np.repeat(study.treated, np.diff(study.cells.start))
    with_it = np.unique(study.cells.job[chosen])
    return Effect(
        estimator=method.name,
        design=study.design,
        machines=machines,
        controls=controls,
        change=change,
        low=change - margin,
        high=change + margin,
        margin=margin,
        error=error,
        freedom=freedom,
        jobs=len(with_it),
        quota_coverage=float(study.cells.share[with_it].sum()),
        notes=study.notes,
    )
