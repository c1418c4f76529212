"""The service on the calibration platform as the best method sees it: request-mix models and their composition."""

from dataclasses import dataclass, replace

import numpy as np

from analysis.crossplatform import costs
from analysis.crossplatform.departures import Parameters, Priors, model_of, prior
from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.mix import MixModel, fit
from analysis.crossplatform.response import busy, stay_s, thread_rates
from analysis.crossplatform.service import sizes_bytes
from models.arrays import Bools, Floats
from models.errors import InputError
from models.platforms import Platform

FULL = 0.95
"""Utilisation from which an interval's work runs over into the next ones: it is not used for calibration."""
OWN_SHARE = (0.88, 0.05)
"""Mean and deviation of requests' share of CPU time: what else runs is in no request's response time. Collection alone
takes 5 to 20% of a sound application's time (IBM, WebSphere Application Server 5.1 performance guide)."""
LEAST = 0.05
"""Least cost of a mix relative to that of the mean mix: regression may say less than none of a mix far from others."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredService:
    """The service on the calibration platform, by request-mix models of what was counted there."""

    platform: Platform
    rate_per_s: float
    """Mean rate of requests."""
    mean_mix: Floats
    """(1, J) requests of the whole log."""
    mean_misses: Floats
    """(L,) misses per instruction of the whole log."""
    instructions: MixModel
    misses: tuple[MixModel, ...]
    busy_s: MixModel
    """Sum of logical processors' busy seconds."""
    elsewhere_s: MixModel | None
    """Sum of response times less those of requests on logical processors and waiting for them."""
    exponent: tuple[float, float]
    exponent_sd: float

    def per_request(self, model: MixModel, counts: Floats) -> Floats:
        """Return what a model says of the mean request of mixes, (m, J) counts: (m,), above 0."""
        mean = model.predict(self.mean_mix) / self.mean_mix.sum()
        return np.asarray(np.maximum(model.predict(counts) / counts.sum(axis=1), LEAST * mean))

    def processor_s(self, counts: Floats) -> Floats:
        """Return the measured CPU seconds of the mean request of mixes at the mean rate: (m,)."""
        return self.per_request(self.busy_s, counts)

    def work(self, counts: Floats, parameters: Parameters) -> costs.CountedWork:
        """Return what the mean requests of mixes do, (m, J) counts."""
        instructions = self.per_request(self.instructions, counts)
        misses = np.stack([self.per_request(model, counts) for model in self.misses]) / instructions
        return costs.CountedWork(
            parameters.machine(self.platform), instructions, misses, self.mean_misses, self.exponent
        )


def exponent_prior(sizes: Floats, priors: Priors) -> tuple[tuple[float, float], float]:
    """Return how the exponent measured at some cache sizes is combined with that of other services.

    Conjugate normal: the weight of the measured one and what is added to it; the deviation of both together.
    """
    log_size = np.log(sizes)
    of_data = ((log_size - log_size.mean()) ** 2).sum() / priors.curve_log_sd**2
    total = of_data + priors.exponent[1] ** -2
    weight = float(of_data / total)
    return (weight, (1.0 - weight) * priors.exponent[0]), float(total**-0.5)


def measure(log: ServiceLog, platform: Platform, priors: Priors) -> MeasuredService:
    """Fit the request-mix models of a log."""
    rows = log.taken(_usable(log, platform))
    levels, sizes = log.misses.shape[1], sizes_bytes(platform)
    if levels < 2:
        raise InputError(f"the log has misses of {levels} cache level, must be of at least 2")
    if levels > sizes.size:
        raise InputError(
            f"the log has misses of {levels} cache levels, the spec sheet of {platform.name} only {sizes.size}: more "
            "are counted than that machine has"
        )
    exponent, exponent_sd = exponent_prior(sizes[:levels], priors)
    busy_s = rows.utilisation * rows.interval_s * platform.vcpus
    measured = MeasuredService(
        platform,
        float(rows.requests.mean() / rows.interval_s),
        rows.counts.sum(axis=0)[None],
        rows.misses.sum(axis=0) / rows.instructions.sum(),
        fit(rows.counts, rows.instructions, "bayes", 1.0),
        tuple(fit(rows.counts, rows.misses[:, level], "bayes", 1.0) for level in range(levels)),
        fit(rows.counts, busy_s, "bayes", 1.0),
        _elsewhere(rows, platform),
        exponent,
        exponent_sd,
    )
    return replace(measured, busy_s=fit(rows.counts, busy_s / _crowding(measured, rows, priors), "bayes", 1.0))


def _usable(log: ServiceLog, platform: Platform) -> Bools:
    """Return the intervals that tell CPU times: with requests, and not so full that work runs over."""
    served = np.isfinite(log.utilisation) & (log.requests > 0)
    usable = served & (log.utilisation < FULL)
    problems = {
        f"utilisation is not in the log of {platform.name}": not served.any(),
        f"utilisation is never below {FULL:.0%} in the log of {platform.name}": not usable.any(),
        f"utilisation is 0 throughout the log of {platform.name}": not log.utilisation[usable].any(),
    }
    for problem, present in problems.items():
        if present:
            raise InputError(f"{problem}: no service time is known there; method published needs none")
    return np.asarray(usable)


def _crowding(measured: MeasuredService, log: ServiceLog, priors: Priors) -> Floats:
    """Return how much longer requests take in each interval than at the mean rate, because more or fewer come: (n,)."""
    platform = measured.platform
    models = (model_of(platform),)
    mean, _ = prior(models, priors, (measured.exponent_sd, measured.exponent_sd), 0.0)
    typical = Parameters(models, mean[None])
    here = service_s(measured, typical, platform, log.counts, log.requests / log.interval_s)
    return np.asarray((here / service_s(measured, typical, platform, log.counts, measured.rate_per_s))[0])


def _elsewhere(log: ServiceLog, platform: Platform) -> MixModel | None:
    """Return the request-mix model of response time that is neither service nor wait on logical processors."""
    here = stay_s(platform, log.service_time_s, log.requests / log.interval_s)
    beyond = log.requests * (log.response_time_s - OWN_SHARE[0] * here)
    known = np.isfinite(beyond)
    return fit(log.counts[known], beyond[known], "bayes", 1.0) if known.any() else None


def service_s(
    measured: MeasuredService, parameters: Parameters, platform: Platform, counts: Floats, rate_per_s: Floats | float
) -> Floats:
    """Return the service time of the whole machine by the model alone: (D, m) seconds.

    Where more comes than the machine can do it is what would be needed, so that its product with the rate exceeds 1.

    Parameters
    ----------
    measured : the service
    parameters : D vectors
    platform : where it runs
    counts : (m, J) requests, at least one in each mix
    rate_per_s : (m,) or one
    """
    rate = np.broadcast_to(np.asarray(rate_per_s, float), (len(counts),))
    machine, software, work = parameters.machine(platform), parameters.service(), measured.work(counts, parameters)
    alone, slower = costs.processor_s(work, software, machine, parameters.memory(), rate)
    if platform.threads_per_core == 1:
        return alone / platform.vcpus
    offered, rates = (alone * rate).ravel(), thread_rates(platform, slower.ravel())
    processors = busy(offered, rates) * np.maximum(offered / rates[:, -1], 1.0)
    return np.asarray(processors.reshape(alone.shape) / (rate * platform.vcpus))
