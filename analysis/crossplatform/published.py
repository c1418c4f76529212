"""The published method: request-mix models, a power law of cache misses, spec sheets and an M/M/1 wait, nothing else.

Stewart et al. 2008, section 4.1. The service's power law has the slope of its total misses at the cache sizes of the
calibration platform; a mix's own misses there, by its request-mix models, are moved along it to the target's sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.crossplatform import traits
from analysis.crossplatform.evidence import Evidence, Prediction, Predictor, ServiceLog
from analysis.crossplatform.mix import MixModel, fit
from analysis.crossplatform.response import queueing
from analysis.crossplatform.service import cycles_per_instruction, service_time_s, sizes_bytes
from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """The trait models of a service, calibrated on one platform: everything that is not in a spec sheet."""

    instructions: MixModel
    misses: tuple[MixModel, ...]
    """One for each measured cache level."""
    sizes_bytes: Floats
    """(L,) the cache sizes at which they were measured."""
    slope: float
    """B of misses = e^A size^B."""

    def misses_per_instruction(self, platform: Platform, counts: Floats) -> Floats:
        """Return a mix's misses per instruction at every cache level of a platform: (levels, m).

        Each level starts from the measured one of its own number, a further one from the last measured.
        """
        measured = np.stack([model.predict(counts) for model in self.misses]) / self.instructions.predict(counts)
        sizes = sizes_bytes(platform)
        start = np.minimum(np.arange(sizes.size), len(self.misses) - 1)
        return np.asarray(measured[start] * ((sizes / self.sizes_bytes[start]) ** self.slope)[:, None])

    def service_time_s(self, platform: Platform, counts: Floats) -> Floats:
        """Return the service time of the mean request of each mix on a platform: (m,) seconds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            cycles = cycles_per_instruction(platform, self.misses_per_instruction(platform, counts))
        return service_time_s(platform, self.instructions.predict(counts), cycles, counts.sum(axis=1))


def compose(log: ServiceLog, platform: Platform) -> Composition:
    """Calibrate the trait models on the log of one platform: ordinary least squares, the slope from total misses.

    Parameters
    ----------
    log : n intervals, misses of at least two cache levels
    platform : spec sheet of the machine that served it
    """
    levels, sizes = log.misses.shape[1], sizes_bytes(platform)
    if levels < 2:
        raise InputError(f"the log has misses of {levels} cache level, must be of at least 2")
    if levels > sizes.size:
        raise InputError(
            f"the log has misses of {levels} cache levels, the spec sheet of {platform.name} only {sizes.size}: more "
            "are counted than that machine has"
        )
    curve = traits.fit(sizes[:levels], log.misses.sum(axis=0) / log.instructions.sum())
    misses = tuple(fit(log.counts, log.misses[:, level]) for level in range(levels))
    return Composition(fit(log.counts, log.instructions), misses, sizes[:levels], float(curve.exponent))


def unqueued(log: ServiceLog, service_s: Floats) -> MixModel | None:
    """Return the request-mix model of response time without queueing: s_j of the paper, delays of other tiers included.

    Parameters
    ----------
    log : n intervals
    service_s : (n,) service time of the log's platform, used where it was not measured

    Returns
    -------
    MixModel of the sum of response times of a mix; None where the log has no response times.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> counts = np.array([[60.0], [90.0], [120.0]])
    >>> work = 3e7 * counts[:, 0]
    >>> used, answer = 0.3 * work / work.max(), np.full(3, 0.2)
    >>> log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    >>> unqueued(log, log.service_time_s).predict(np.ones((1, 1))) < 0.2
    array([ True])
    """
    measured = np.where(np.isfinite(log.service_time_s), log.service_time_s, service_s)
    wait = queueing(measured, log.requests / log.interval_s)
    alone = log.requests * (log.response_time_s - wait)
    known = np.isfinite(alone)
    return fit(log.counts[known], alone[known]) if known.any() else None


def queued(evidence: Evidence, service_s: Callable[[Platform, Floats], Floats]) -> Predictor:
    """Return the predictor of given service times that adds other tiers and an M/M/1 wait, without intervals.

    Parameters
    ----------
    evidence : a log; without response times none are predicted
    service_s : from a platform and (m, J) counts to service times of the whole machine, seconds
    """
    source = evidence.platform
    alone = unqueued(evidence.log, service_s(source, evidence.log.counts))

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        service, requests = service_s(platform, counts), counts.sum(axis=1)
        nothing = np.full(service.size, np.nan)
        response = nothing
        if alone is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                elsewhere = alone.predict(counts) / requests - service_s(source, counts)
            response = elsewhere + service + queueing(service, requests / interval_s)
        return Prediction(service, nothing, nothing, response, nothing, nothing)

    return predict


def calibrate(evidence: Evidence, scale: float = 1.0) -> Predictor:
    """Return the published method's predictor, service times multiplied by `scale`."""
    known = compose(evidence.log, evidence.platform)
    return queued(evidence, lambda platform, counts: scale * known.service_time_s(platform, counts))


def published(evidence: Evidence) -> Predictor:
    """Calibrate the published method (Stewart et al. 2008, section 4.1).

    A response time is the request-mix regression of measured ones without their queueing, with the part that is service
    time on the calibration platform replaced by that on the target, and the target's queueing added.

    Raises
    ------
    ValueError
        If the log has misses of fewer than two cache levels, or more levels than the spec sheet.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> counts = np.array([[60.0], [90.0], [120.0]])
    >>> work = 3e7 * counts[:, 0]
    >>> used, answer = 0.3 * work / work.max(), np.full(3, 0.2)
    >>> log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    >>> predict = published(Evidence("piii", {"piii": log}, PLATFORMS))
    >>> bool((predict(PLATFORMS["pres"], counts, 30.0).service_time_s < log.service_time_s).all())
    True
    """
    return calibrate(evidence)


def kappa(evidence: Evidence) -> float:
    """Return measured over predicted service time on the calibration platform, the median over intervals.

    It takes up what the spec sheet's CPI and latencies are wrong by on the machine that was measured.
    """
    log = evidence.log
    if not np.isfinite(log.utilisation).any():
        raise InputError(
            f"utilisation is not in the log of {evidence.calibration}: without it no service time is known there and "
            "nothing to calibrate kappa on; method published needs none"
        )
    predicted = compose(log, evidence.platform).service_time_s(evidence.platform, log.counts)
    ratio = log.service_time_s / predicted
    return float(np.median(ratio[np.isfinite(ratio)]))


def calibrated(evidence: Evidence) -> Predictor:
    """Calibrate the published method and multiply its service times by `kappa`."""
    return calibrate(evidence, kappa(evidence))
