"""Predictions for platforms of another instruction set, where a request takes another number of instructions."""

import math
from dataclasses import replace

import numpy as np

from analysis.crossplatform.evidence import Prediction, Predictor
from models.arrays import Floats
from models.platforms import Platform, same_instructions

_RARER = 1e6
"""Requests that come so much more rarely fill no machine, so that no end of an interval is cut off."""


def translated(predictor: Predictor, origin: Platform, ratio: tuple[float, float]) -> Predictor:
    """Return a predictor that takes requests to need other numbers of instructions on other instruction sets.

    The ratio is log-normal: its median is the geometric mean of the ends. Its spread and that of service times add as
    independent errors do, in logarithms: each end is the predictor's own where as many more, or fewer, instructions
    are needed as brings service times there.

    Parameters
    ----------
    predictor : for platforms of the log's own instruction set
    origin : platform of the log
    ratio : ends of a 90% interval of instructions there over instructions here

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> def ten(platform, counts, _interval_s):
    ...     time_s = np.full(len(counts), 1e8 / platform.base_frequency_hz)
    ...     return Prediction(*[time_s] * 6)
    >>> prediction = translated(ten, PLATFORMS["piii"], (0.5, 2.0))(PLATFORMS["altra_q80_30"], np.ones((1, 1)), 30.0)
    >>> low_s, mean_s, high_s = prediction.service_low_s, prediction.service_time_s, prediction.service_high_s
    >>> (low_s / mean_s).round(3), (high_s / mean_s).round(3)
    (array([0.5]), array([2.]))
    """
    median = math.sqrt(ratio[0] * ratio[1])
    width = math.log(ratio[1] / median)

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        if same_instructions(origin, platform):
            return predictor(platform, counts, interval_s)

        def at(by: float, rarer: float = 1.0) -> Prediction:
            return predictor(_slowed(platform, median * by), counts, interval_s * rarer)

        middle, alone = at(1.0), at(1.0, _RARER)
        few = at(1.0 / _further(alone.service_time_s / alone.service_low_s, width))
        many = at(_further(alone.service_high_s / alone.service_time_s, width))
        return replace(
            middle,
            service_low_s=few.service_low_s,
            service_high_s=many.service_high_s,
            response_low_s=few.response_low_s,
            response_high_s=many.response_high_s,
        )

    return predict


def _further(factors: Floats, width: float) -> float:
    """Return by which factor an end of an interval is further away if a log-normal factor of this width comes to it.

    The greatest of all mixes' ends counts, which are nearly alike; mixes without requests have none.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.log(factors)
    widest = float(np.max(own[np.isfinite(own)], initial=0.0))
    return math.exp(math.hypot(widest, width) - widest)


def _slowed(platform: Platform, by: float) -> Platform:
    """Return a platform on which everything takes so many times as long: as many times the instructions, all alike."""
    clocks = {f"{name}_frequency_hz": getattr(platform, f"{name}_frequency_hz") / by for name in ("base", "min", "max")}
    return replace(
        platform,
        **clocks,
        memory_latency_s=platform.memory_latency_s * by,
        memory_bandwidth_bytes_per_s=platform.memory_bandwidth_bytes_per_s / by,
    )
