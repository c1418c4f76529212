"""Which machine of a mixed cluster serves which type of requests, from what is predicted of one type at a time.

Three answers: every type to its best platform (Stewart et al. 2008, section 5.2 and table 8); shares of every type that
minimise the mean response of all; and the table of predicted times by which a router decides when a request arrives
(router ``least_expected`` of `models.queues.dispatch`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from analysis.crossplatform.evidence import Predictor
from analysis.crossplatform.response import thread_rates
from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform
from models.queues.birth_death import present

ALONE_PER_S: Final = 10.0
"""Arrival rate at which a type is looked at alone, as in table 8."""
SIBLING_SLOWS: Final = 0.65
"""How much longer a request is taken to need while its core's other thread is busy: both then do a fifth more than one
(16% to 28% on server benchmarks: Marr et al. 2002, Intel Technology Journal 6-1)."""
GAP: Final = 1e-6
"""Shares are good enough when the mean response is within this of the least possible one, relatively."""
CUTS: Final = 200
"""Times that the linear programme is solved at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Shares of J types that go to m machines, and what they are predicted to lead to."""

    share: Floats
    """(J, m), each row of sum 1."""
    used: Floats
    """(m,) work per second over the most that the machine can do."""
    response_s: float
    """Mean time of a request at the machines."""
    at_least_s: float
    """What no other shares can be predicted to go below."""


def alone(
    predictor: Predictor, platforms: Sequence[Platform], types: int, interval_s: float = 30.0
) -> tuple[Floats, Floats]:
    """Return what a request of each type takes on each platform if its type comes alone, ten requests per second.

    Parameters
    ----------
    predictor : from platform, counts and interval to a prediction
    platforms : m spec sheets
    types : J >= 1
    interval_s : length of the intervals that the predictor is asked about, seconds

    Returns
    -------
    two (J, m) arrays, seconds
        Processor time, which is the service time of the whole machine times its logical processors; response time.

    Raises
    ------
    ValueError
        If there are no platforms or no types.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> from analysis.crossplatform.evidence import Prediction
    >>> def tenth(platform, counts, interval_s):
    ...     return Prediction(*[np.full(len(counts), 0.1 / platform.vcpus)] * 3, *[np.full(len(counts), 0.2)] * 3)
    >>> alone(tenth, [PLATFORMS["piii"], PLATFORMS["pd4"]], types=1)[0]
    array([[0.1, 0.1]])
    """
    if not platforms or types < 1:
        raise InputError(f"at least one platform and one type are needed, got {len(platforms)} and {types}")
    counts = ALONE_PER_S * interval_s * np.eye(types)
    predictions = [predictor(platform, counts, interval_s) for platform in platforms]
    processor_s = [
        prediction.service_time_s * platform.vcpus for prediction, platform in zip(predictions, platforms, strict=True)
    ]
    return np.stack(processor_s, axis=1), np.stack([prediction.response_time_s for prediction in predictions], axis=1)


def expected_rates(platform: Platform, slower: float = SIBLING_SLOWS) -> Floats:
    """Return the work per second that a platform is taken to do while 1, 2, … logical processors are busy: (k,).

    Parameters
    ----------
    platform : spec sheet
    slower : how much longer a request takes while its core's other thread is busy, relative

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> expected_rates(PLATFORMS["xeon_2h_1c_2p"], slower=0.6)
    array([1.  , 2.  , 2.25, 2.5 ])
    """
    return np.asarray(thread_rates(platform, slower)[0])


def to_the_best(time_s: ArrayLike) -> Floats:
    """Return the shares that send every type to the platform where it takes least: (J, m), ones and zeros.

    Parameters
    ----------
    time_s : (J, m) array, predicted time of each type on each platform; NaN where nothing is said. Of equal ones the
        first is taken.

    Raises
    ------
    ValueError
        If it is no such array, or says nothing of some type.

    Examples
    --------
    >>> to_the_best([[0.053, 0.048], [0.080, 0.132]])
    array([[0., 1.],
           [1., 0.]])
    """
    time = np.asarray(time_s, dtype=np.float64)
    if time.ndim != 2 or not time.size:
        raise InputError(f"time_s has shape {time.shape}, must be (types, platforms)")
    silent = np.flatnonzero(np.isnan(time).all(axis=1))
    if silent.size:
        raise InputError(f"time_s says nothing of type {silent[0]} on any platform")
    return np.asarray(np.eye(time.shape[1])[np.where(np.isnan(time), np.inf, time).argmin(axis=1)])


def least_mean(
    rate_per_s: ArrayLike, processor_s: ArrayLike, rates: Sequence[ArrayLike], most_used: float = 0.9
) -> Shares:
    """Return the shares of each type for each machine whose mean response is least, for requests routed by chance.

    With Poisson arrivals that share each machine evenly, the mean number there depends on the work alone that comes to
    it (`models.queues.birth_death.present`), is convex in it, and the work is linear in the shares. By Little's law the
    mean response is the sum of these numbers over the arrival rate. Tangents below the curves make that a linear
    programme whose value no shares can beat; tangents are added at its solution until that is reached (Kelley 1960).

    Parameters
    ----------
    rate_per_s : (J,) array, non-negative, not all zero: expected requests of each type per second
    processor_s : (J, m) array, positive: predicted seconds of a processor of each machine
    rates : m arrays, work per second of each machine while 1, 2, … of its processors are busy, each adding no more than
        the one before
    most_used : greatest share of what a machine can do that may be planned for it, above 0 and below 1

    Raises
    ------
    ValueError
        If arguments are not like that, or machines would have to be used more.

    Examples
    --------
    >>> plan = least_mean([1.0, 1.0], [[0.2, 0.4], [0.4, 0.2]], [[1.0], [1.0]])
    >>> plan.share.round(3) + 0.0, round(plan.response_s, 3)
    (array([[1., 0.],
           [0., 1.]]), 0.25)
    """
    rate, time, work_rates = _checked(rate_per_s, processor_s, rates, most_used)
    able = np.array([row[-1] for row in work_rates])
    offered = _Offered(rate, time, most_used * able)
    cuts = [np.array([offered.evenly(), *np.outer([0.0, 0.3, 0.6, 0.8, 1.0], offered.most)])]
    best = Shares(np.empty((0, 0)), np.empty(0), np.inf, 0.0)
    for _ in range(CUTS):
        flow, at_least = offered.solve(*_tangents(np.concatenate(cuts), work_rates))
        work = (flow * time).sum(axis=0)
        number = sum(float(present(work[i], row)[0]) for i, row in enumerate(work_rates))
        if number / rate.sum() < best.response_s:
            best = Shares(_rows(flow, rate), work / able, number / float(rate.sum()), 0.0)
        if number - at_least <= GAP * number:
            break
        cuts.append(work[None])
    return Shares(best.share, best.used, best.response_s, min(best.response_s, at_least / float(rate.sum())))


@dataclass(frozen=True, slots=True, eq=False)
class _Offered:
    """Requests of J types per second, what they take on m machines, and the most work that may come to each."""

    rate_per_s: Floats
    processor_s: Floats
    most: Floats

    def evenly(self) -> Floats:
        """Return the work that comes to each machine if all get their part of every type by what they can do: (m,)."""
        return np.asarray(np.minimum(self.most, self.most / self.most.sum() * (self.rate_per_s @ self.processor_s)))

    def solve(self, slope: Floats, height: Floats) -> tuple[Floats, float]:
        """Return the flows (J, m) of least summed bounds, which are at least slope × work + height, and that sum."""
        j, m = self.processor_s.shape
        work = np.zeros((m, j * m))
        for i in range(m):
            work[i, i::m] = self.processor_s[:, i]
        tangent = np.concatenate([np.column_stack([row[:, None] * work, -np.eye(m)]) for row in slope])
        limit = np.column_stack([work, np.zeros((m, m))])
        whole = np.column_stack([np.kron(np.eye(j), np.ones(m)), np.zeros((j, m))])
        done = linprog(
            np.repeat([0.0, 1.0], [j * m, m]),
            A_ub=np.concatenate([tangent, limit]),
            b_ub=np.concatenate([-height.ravel(), self.most]),
            A_eq=whole,
            b_eq=self.rate_per_s,
            method="highs",
        )
        if done.x is None or done.fun is None:
            raise InputError("the machines would have to be used more than most_used for these requests")
        return np.maximum(done.x[: j * m].reshape(j, m), 0.0), float(done.fun)


def _tangents(work: Floats, rates: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return slopes and heights at zero work of the tangents at the given work: (cuts, m) each."""
    told = [present(work[:, i], row) for i, row in enumerate(rates)]
    slope = np.stack([tangent[1] for tangent in told], axis=1)
    return slope, np.stack([tangent[0] for tangent in told], axis=1) - slope * work


def _rows(flow: Floats, rate: Floats) -> Floats:
    """Return flows as shares; a type that never comes goes where the others go."""
    share = np.where(rate[:, None] > 0.0, flow, flow.sum(axis=0))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _checked(
    rate_per_s: ArrayLike, processor_s: ArrayLike, rates: Sequence[ArrayLike], most_used: float
) -> tuple[Floats, Floats, list[Floats]]:
    """Return the arguments as arrays, or say what is wrong with them."""
    rate, time = np.asarray(rate_per_s, dtype=np.float64), np.asarray(processor_s, dtype=np.float64)
    work_rates = [np.asarray(row, dtype=np.float64) for row in rates]
    faults = []
    if rate.ndim != 1 or not (np.isfinite(rate) & (rate >= 0.0)).all() or not rate.sum() > 0.0:
        faults.append("rate_per_s must be one finite rate per type, none negative and not all zero")
    if time.shape != (rate.size, len(work_rates)) or not (np.isfinite(time) & (time > 0.0)).all():
        faults.append(f"processor_s must be ({rate.size}, {len(work_rates)}), positive and finite")
    for i, row in enumerate(work_rates):
        steps = np.diff(row, prepend=0.0)
        if row.ndim != 1 or not row.size or not (steps > 0.0).all() or (np.diff(steps) > 1e-9 * row[-1]).any():
            faults.append(f"rates[{i}] must grow, by no more from one processor to the next: {row.tolist()}")
    if not 0.0 < most_used < 1.0:
        faults.append(f"most_used is {most_used:g}, must be above 0 and below 1")
    if faults:
        raise InputError("; ".join(faults))
    return rate, time, work_rates
