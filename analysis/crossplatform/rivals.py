"""What is done in practice: service times scaled by clock cycles or by public benchmark scores.

Stewart et al. 2008, section 4.2.2. Each needs the log's utilisation, for a service time on the calibration platform.
Response times are made from service times as for the published method, as in the paper's section 5.1.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from analysis.crossplatform import mix
from analysis.crossplatform.evidence import Evidence, Predictor
from analysis.crossplatform.published import queued
from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform


def cycle_ratio(origin: Platform, target: Platform) -> float:
    """Return the clock cycles per second of one platform over those of another, all logical processors together.

    Service times are in this proportion (equation 3, its clock rates summed as in section 4.1.3).

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> cycle_ratio(PLATFORMS["broadwell_2698v4"], PLATFORMS["skylake_6148"]).__round__(3)
    0.917
    """
    return origin.vcpus * origin.base_frequency_hz / (target.vcpus * target.base_frequency_hz)


def public_scores(evidence: Evidence) -> dict[str, float]:
    """Return the public benchmark's score of every platform that has one, requests per second.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"platform": ["piii", "pres"], "score_per_s": [20.0, 50.0]})
    >>> public_scores(Evidence("piii", {}, {}, scores))
    {'piii': 20.0, 'pres': 50.0}
    """
    table = evidence.benchmarks
    if table is None:
        raise InputError("benchmarks are not given: a public score of the old and of each new platform is needed")
    table = table.dropna(subset=["score_per_s"])
    if table["platform"].duplicated().any():
        twice = table.loc[table["platform"].duplicated(), "platform"].iloc[0]
        raise InputError(f"benchmarks score platform {twice} more than once, must be once")
    scores = {str(name): float(score) for name, score in zip(table["platform"], table["score_per_s"], strict=True)}
    for name, score in scores.items():
        if not 0 < score < np.inf:
            raise InputError(f"the benchmark score of {name} must be positive and finite, got {score:g}")
    if evidence.calibration not in scores:
        raise InputError(f"benchmarks have no score of {evidence.calibration}, on which the service was measured")
    return scores


def cycle_scalar(evidence: Evidence) -> Predictor:
    """Scale the mean service time by clock cycles, whatever the mix (equations 3 and 5)."""
    counts, busy_s = _busy(evidence)
    mean_s = busy_s.sum() / counts.sum()
    return _scaled(evidence, partial(_constant, float(mean_s)), partial(cycle_ratio, evidence.platform))


def cycle_mix(evidence: Evidence) -> Predictor:
    """Scale the service time of the mix, by a request-mix model of CPU time, by clock cycles (4.3.1, method 2)."""
    return _scaled(evidence, _of_mix(evidence), partial(cycle_ratio, evidence.platform))


def benchmark(evidence: Evidence) -> Predictor:
    """Scale the service time of the mix, by a request-mix model of CPU time, by public scores (equation 4).

    Of a platform without a score it says nothing: NaN.
    """
    scores = public_scores(evidence)
    origin = scores[evidence.calibration]
    return _scaled(evidence, _of_mix(evidence), lambda target: origin / scores.get(target.name, np.nan))


def _busy(evidence: Evidence) -> tuple[Floats, Floats]:
    """Return counts and processor seconds, of the whole machine, of the intervals whose utilisation is known."""
    log = evidence.log
    known = np.isfinite(log.utilisation)
    if not known.any() or not log.counts[known].sum() > 0:
        raise InputError(
            f"utilisation is not in the log of {evidence.calibration}: its service time has to be known to be scaled"
        )
    return log.counts[known], log.utilisation[known] * log.interval_s


def _constant(value_s: float, counts: Floats) -> Floats:
    return np.where(counts.sum(axis=1) > 0, value_s, np.nan)


def _of_mix(evidence: Evidence) -> Callable[[Floats], Floats]:
    model = mix.fit(*_busy(evidence))

    def service_s(counts: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(model.predict(counts) / counts.sum(axis=1))

    return service_s


def _scaled(evidence: Evidence, origin_s: Callable[[Floats], Floats], ratio: Callable[[Platform], float]) -> Predictor:
    """Return the predictor of a service time on the calibration platform and its ratio to that of a target."""
    return queued(evidence, lambda platform, counts: origin_s(counts) * ratio(platform))
