"""What an internet service does: its types of requests and what runs beside them, as instructions and reuse distances.

A request's data accesses reuse lines over distances that spread over many sizes: how often it misses in a cache of S
bytes is a sum over working sets, each of the log-logistic form of `models.fleet.inventory.miss_curve` ::

    misses per instruction (S) = sum over c of weight_c · set_c² / (set_c² + S²)

Weights that fall with a power of the set's size make a curve near that power of S (Hartstein et al. 2008).
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.fleet.processors import FACTORS
from models.randomness import stream
from models.services.world import Application, Mechanisms, Runtime

SET_BYTES: Floats = 2.0 ** np.arange(11, 29, dtype=np.float64)
"""Working sets of 2 KiB to 256 MiB. Weights in proportion to a power of their size make a curve that is within 4% of a
power law from 16 KiB to 16 MiB for slopes of −0.77 to −1, within 7% for −0.5 to −1.3."""
REFERENCE_BYTES = 32.0 * 2**10
"""Cache size at which misses per instruction are quoted."""
CURVE_BYTES: Floats = 2.0 ** np.arange(14, 25, dtype=np.float64)
"""Cache sizes over which the slope of a service's misses is taken: 16 KiB to 16 MiB (Stewart et al. 2008, Fig. 3)."""
FITTINGS = 60
"""Rounds that fit the types to the curve of the service; they leave less than a millionth of the error."""
SLOPES = (-1.9, -0.1)
"""Range of miss exponents of single types, inside the one of power laws."""
BRANCH_LOG_SD, ALLOCATION_LOG_SD, SHARED_LOG_SD, SMT_LOG_SD = 0.3, 0.5, 0.4, 0.15
"""Spreads between types of mispredicted branches, allocation, shared writes and slowdown by a busy sibling."""
CLIFFS_BYTES, CLIFFS_LOG2_SD, SMALL_SHARE = (2.0**14, 2.0**21), 0.6, 0.9
"""The two working sets of the miss curve with cliffs, their width, and the part of the weight in the small one."""
COLLECTION, TICKS = -2, -1
"""Places of garbage collection and of background ticks among the activities."""


@dataclass(frozen=True, slots=True, eq=False)
class Activities:
    """What keeps a machine busy: J types of requests, then a collection, then a second of ticks. A = J + 2, C sets."""

    names: tuple[str, ...]
    popularity: Floats
    """(J,) long-run shares of the types; sum 1."""
    instructions: Floats
    """(A,) mean user-level instructions of a request, a collection, a second of ticks."""
    core_cpi: Floats
    """(A,) cycles per instruction on the reference core with every access a hit in the first-level cache."""
    set_bytes: Floats
    """(C,) sizes of working sets."""
    weights: Floats
    """(A, C) misses per instruction of each working set in a cache of no size."""
    overlap: Floats
    """(A,) misses at once, at least 1."""
    prefetched: Floats
    """(A,) misses per instruction that no cache removes and whose latency prefetchers hide."""
    branch_misses: Floats
    """(A,) mispredicted branches per instruction."""
    allocation_bytes: Floats
    """(A,) heap allocation per instruction."""
    shared_write_share: Floats
    """(A,) share of first-level misses to lines that other requests write."""
    smt_slowdown: Floats
    """(A,) relative growth of core CPI while the sibling thread is busy."""
    other_tiers_s: Floats
    """(J,) mean delay of a request at the other tiers."""
    traits: Floats
    """(A, FACTORS) of `models.fleet.processors`, standard normal over types: which cores suit it; 0 beside requests."""
    spin_share: float
    """Share of instructions spun when all processors are busy."""
    heap_bytes: float
    """Allocation between two collections."""
    interleaved: bool
    """Whether pages spread over the memories of all sockets; otherwise each is at the socket that uses it."""

    @property
    def types(self) -> int:
        """Number of types of requests."""
        return self.popularity.size

    @property
    def collections_per_request(self) -> Floats:
        """Collections that a request of each type brings about in the mean: (J,); zero where a collection is free."""
        j = self.types
        collections = self.instructions[:j] * self.allocation_bytes[:j] / self.heap_bytes
        return np.asarray(collections * (self.instructions[COLLECTION] > 0))

    def rates(self, request_per_s: Floats) -> Floats:
        """Return the rates of all activities that go with rates of requests.

        Parameters
        ----------
        request_per_s : (n, J) array, requests of each type per second in each interval

        Returns
        -------
        (n, A) array
            The same with collections per second and seconds of ticks per second, which is 1.

        Examples
        --------
        >>> service = build_activities(Application(types=2), Runtime(), Mechanisms(), 1, "service")
        >>> service.rates(np.array([[2.0, 1.0]])).shape, float(service.rates(np.zeros((1, 2)))[0, TICKS])
        ((1, 4), 1.0)
        """
        collections = request_per_s @ self.collections_per_request
        return np.column_stack([request_per_s, collections, np.ones(len(request_per_s))])

    def misses_per_instruction(self, size_bytes: Floats) -> Floats:
        """Return the misses per instruction of each activity, alone in caches of some sizes.

        Parameters
        ----------
        size_bytes : (m,) array, non-negative, bytes

        Returns
        -------
        (A, m) array

        Examples
        --------
        >>> service = build_activities(Application(types=2, misses_log_sd=0.0), Runtime(), Mechanisms(), 1, "service")
        >>> service.misses_per_instruction(np.array([REFERENCE_BYTES]))[:2, 0].round(6)
        array([0.058, 0.058])
        """
        return np.asarray(self.weights @ present(self.set_bytes, size_bytes))


def present(set_bytes: Floats, size_bytes: Floats) -> Floats:
    """Return the share of accesses to each working set that miss in caches of some sizes: (C, m)."""
    square = np.square(set_bytes)[:, None]
    return np.asarray(square / (square + np.square(size_bytes)))


def build_activities(
    application: Application, runtime: Runtime, mechanisms: Mechanisms, seed: int, name: str
) -> Activities:
    """Return one draw of a service: how its types of requests, collections and ticks use a machine.

    Every spread is around a median or a mean as the field of `Application` says; means are over the types in their
    long-run mix, weighted by instructions where they are per instruction. Collections and ticks without their mechanism
    have no instructions.

    Parameters
    ----------
    seed : of the world
    name : of the service; services of different names are different draws

    Examples
    --------
    >>> rubis = build_activities(Application(), Runtime(), Mechanisms(), 1, "service")
    >>> rubis.types, rubis.names[-3:], float(round(rubis.popularity @ rubis.instructions[:-2]))
    (22, ('type-22', 'collection', 'ticks'), 8000000.0)
    """
    rng, j = stream(seed, f"activities of {name}"), application.types
    popularity: Floats = np.arange(1, j + 1, dtype=np.float64) ** -application.popularity_exponent
    popularity /= popularity.sum()
    instructions = _mean(_spread(rng, application.instructions_log_sd, j), popularity)
    work = popularity * instructions

    def about(mean: float, log_sd: float) -> Floats:
        """Return a trait of types of that mean, which is also that of collections and ticks."""
        return np.append(mean * _mean(_spread(rng, log_sd, j), work), [mean, mean])

    def around(median: float, log_sd: float) -> Floats:
        return np.append(median * _spread(rng, log_sd, j), [median, median])

    core_cpi = around(application.core_cpi, application.core_cpi_log_sd)
    weights = _weights(application, runtime, work, rng)
    return Activities(
        names=(*(f"type-{i + 1:02d}" for i in range(j)), "collection", "ticks"),
        popularity=popularity,
        instructions=np.append(
            application.instructions_per_request * instructions,
            [
                runtime.collection_instructions * mechanisms.collection,
                runtime.tick_instructions_per_s * mechanisms.ticks,
            ],
        ),
        core_cpi=core_cpi,
        set_bytes=SET_BYTES,
        weights=weights,
        overlap=np.maximum(1.0, around(application.overlap, application.overlap_log_sd)),
        prefetched=application.prefetched_share * weights[:, CURVE_BYTES[-1] < SET_BYTES].sum(axis=1),
        branch_misses=about(application.branch_misses_per_instruction, BRANCH_LOG_SD),
        allocation_bytes=about(application.allocation_bytes_per_instruction, ALLOCATION_LOG_SD) * ([1] * j + [0, 0]),
        shared_write_share=np.minimum(1.0, about(application.shared_write_share, SHARED_LOG_SD)),
        smt_slowdown=around(application.smt_slowdown, SMT_LOG_SD),
        other_tiers_s=application.other_tiers_s * _mean(_spread(rng, application.other_tiers_log_sd, j), popularity),
        traits=np.vstack([stream(seed, f"traits of {name}").standard_normal((j, FACTORS)), np.zeros((2, FACTORS))]),
        spin_share=application.spin_share * mechanisms.spin,
        heap_bytes=runtime.heap_bytes,
        interleaved=runtime.placement == "interleaved",
    )


def _spread(rng: np.random.Generator, log_sd: float, count: int) -> Floats:
    return np.exp(log_sd * rng.standard_normal(count))


def _mean(factors: Floats, weight: Floats) -> Floats:
    """Return positive numbers scaled so that their weighted mean is 1."""
    return np.asarray(factors * (weight.sum() / (weight @ factors)))


def _weights(application: Application, runtime: Runtime, work: Floats, rng: np.random.Generator) -> Floats:
    """Return the weights of all activities' working sets: (A, C).

    Each type is drawn with reuse distances of its own; all together are then made to lie on the service's curve.
    """
    types, sets = work.size, SET_BYTES.size
    deviation = application.miss_exponent_sd * rng.standard_normal(types)
    level = application.misses_per_instruction * np.append(
        _mean(_spread(rng, application.misses_log_sd, types), work),
        [runtime.collection_misses_factor, runtime.tick_misses_factor],
    )
    service = _spread(rng, application.reuse_log_sd, sets)
    drawn = np.ones((level.size, sets))
    drawn[:types] = _spread(rng, application.type_reuse_log_sd, types * sets).reshape(types, sets)
    if application.miss_curve == "cliffs":
        drawn, service = drawn * _cliffs(), service * _cliffs()
    else:
        middle = _centred(application.miss_exponent)
        slopes = np.append(middle + deviation, [middle * runtime.collection_exponent_factor, middle])
        drawn, service = drawn * _power(np.clip(slopes, *SLOPES)), service * _power(np.array([middle]))[0]
    collected = application.allocation_bytes_per_instruction * runtime.collection_instructions / runtime.heap_bytes
    return _fitted(drawn, service, level, np.append(work / work.sum(), [collected, 0.0]))


def _fitted(drawn: Floats, service: Floats, level: Floats, share: Floats) -> Floats:
    """Return drawn weights scaled so that each activity has its level and all together lie on the service's curve.

    Rows and columns are scaled in turn, which leaves what types have of their own (Deming and Stephan 1940).

    Parameters
    ----------
    drawn : (A, C) weights
    service : (C,) in proportion to the weights of the whole service
    level : (A,) misses per instruction in a cache of the reference size
    share : (A,) of instructions
    """
    whole = _at_reference(service[None], np.array([share @ level]))[0]
    for _ in range(FITTINGS):
        drawn = _at_reference(drawn, level)
        drawn = drawn * (whole / (share @ drawn))
    return _at_reference(drawn, level)


def _centred(miss_exponent: float) -> float:
    """Return the power of the sets' sizes whose curve has that slope, which is bent as sets end on both sides."""
    curve = _power(np.array([miss_exponent])) @ present(SET_BYTES, CURVE_BYTES)
    slope = np.polyfit(np.log(CURVE_BYTES), np.log(curve[0]), 1)[0]
    return float(2 * miss_exponent - slope)


def _at_reference(shape: Floats, level: Floats) -> Floats:
    """Return weights of that shape with `level` misses per instruction in a cache of the reference size."""
    return np.asarray(level[:, None] * shape / (shape @ present(SET_BYTES, np.array([REFERENCE_BYTES]))))


def _power(slopes: Floats) -> Floats:
    """Return weights in proportion to powers of the sets' sizes: (A, C)."""
    return np.asarray((SET_BYTES / REFERENCE_BYTES) ** slopes[:, None])


def _cliffs() -> Floats:
    """Return weights of two working sets with little between them: (C,)."""
    small, large = (np.exp(-0.5 * (np.log2(SET_BYTES / size) / CLIFFS_LOG2_SD) ** 2) for size in CLIFFS_BYTES)
    return np.asarray(SMALL_SHARE * small / small.sum() + (1 - SMALL_SHARE) * large / large.sum())
