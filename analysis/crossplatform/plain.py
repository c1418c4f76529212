"""Methods that answer in plain numbers: what they answer is checked, and made a whole prediction."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from analysis.crossplatform.evidence import Evidence, Prediction, Predictor, ServiceLog
from analysis.crossplatform.published import unqueued
from analysis.crossplatform.response import queueing
from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform

TIMES = tuple(field.name for field in fields(Prediction))
_SERVICE, _RESPONSE = TIMES[:3], TIMES[3:]
Times: TypeAlias = Prediction | Mapping[str, ArrayLike] | ArrayLike
"""Service times of m mixes, or arrays by name: `service_time_s`, and perhaps `service_low_s`, `service_high_s` and the
same of `response`; seconds, NaN for what a method does not say."""


class PlatformModel(Protocol):
    """A service as somebody's method understands it, after it looked at the evidence."""

    def predict(self, platform: Platform, counts: Floats, interval_s: float) -> Times:
        """Return the times of mixes on a platform.

        Parameters
        ----------
        platform : its spec sheet
        counts : (m, J) requests of each type
        interval_s : in which they come, seconds
        """


def own_copy(evidence: Evidence) -> Evidence:
    """Return the same evidence in arrays of its own, so that a method cannot change what others look at."""
    logs = {name: _copied(log) for name, log in evidence.logs.items()}
    scores = None if evidence.benchmarks is None else evidence.benchmarks.copy()
    scored = None if evidence.scored is None else dict(evidence.scored)
    return replace(evidence, logs=logs, platforms=dict(evidence.platforms), benchmarks=scores, scored=scored)


def _copied(log: ServiceLog) -> ServiceLog:
    return log.taken(np.ones(len(log.start_s), dtype=np.bool_))


def answered(name: str, answer: object, counts: Floats) -> Prediction:
    """Return what a method answered to m mixes as a prediction.

    Parameters
    ----------
    name : of the method, for errors
    answer : `Times`, or anything else that a method may have answered by mistake
    counts : (m, J) what it was asked about; where there is no request times are NaN

    Raises
    ------
    InputError
        If a time is no number, is not above 0, or lies outside of its interval.

    Examples
    --------
    >>> answered("mine", [0.1, 0.2], np.ones((2, 1))).service_time_s
    array([0.1, 0.2])
    >>> answered("mine", {"service_time_s": -0.1}, np.ones((1, 1)))
    Traceback (most recent call last):
    models.errors.InputError: mine: service_time_s should be above 0 seconds, and finite, got -0.1
    """
    given = asdict(answer) if isinstance(answer, Prediction) else answer
    named = given if isinstance(given, Mapping) else {"service_time_s": given}
    unknown = [str(key) for key in named if key not in TIMES]
    if unknown or "service_time_s" not in named:
        got = f"got {', '.join(map(str, named)) or 'nothing'}"
        raise InputError(f"{name}: should answer with service_time_s and perhaps {', '.join(TIMES[1:])}, {got}")
    silent = counts.sum(axis=1) <= 0
    nothing: Floats = np.full(len(counts), np.nan)
    times = {key: _array(name, key, named[key], len(counts)) if key in named else nothing for key in TIMES}
    times = {key: np.where(silent, np.nan, time) for key, time in times.items()}
    for key, time in times.items():
        # An overloaded machine never answers, but what a request needs of it is finite.
        wrong = (time <= 0) | (np.isinf(time) & (key in _SERVICE))
        if wrong.any():
            kind = "above 0 seconds, and finite" if key in _SERVICE else "above 0 seconds"
            raise InputError(f"{name}: {key} should be {kind}, got {time[wrong][0]:g}")
    for middle, low, high in (_SERVICE, _RESPONSE):
        _within(name, middle, times[middle], times[low], times[high])
    return Prediction(**times)


def with_responses(evidence: Evidence, times: Predictor) -> Predictor:
    """Return a predictor that adds other tiers and an M/M/1 wait to service times, where a method says no responses.

    The ends of a response time are those of its service time, as far as the method has them.
    """
    source = evidence.platform
    here = times(source, evidence.log.counts, evidence.log.interval_s)
    alone = unqueued(evidence.log, here.service_time_s)

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        known = times(platform, counts, interval_s)
        if alone is None or not np.isnan([getattr(known, name) for name in _RESPONSE]).all():
            return known
        requests = counts.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            elsewhere = alone.predict(counts) / requests - times(source, counts, interval_s).service_time_s
            rate = requests / interval_s
            responses = [elsewhere + time + queueing(time, rate) for time in map(known.__getattribute__, _SERVICE)]
        return replace(known, **dict(zip(_RESPONSE, responses, strict=True)))

    return predict


def _array(name: str, key: str, value: object, mixes: int) -> Floats:
    """Return m numbers; one stands for all."""
    problem = f"{name}: {key} should be {mixes} numbers, one a mix"
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{problem}, got a {type(value).__name__} without them") from None
    if value is None or numbers.shape not in {(), (mixes,)}:
        raise InputError(f"{problem}, got {'None' if value is None else f'an array of {numbers.shape}'}")
    return np.broadcast_to(numbers, (mixes,)).copy()


def _within(name: str, key: str, time: Floats, low: Floats, high: Floats) -> None:
    """Refuse times outside of their interval; what is not said is no fault."""
    wrong = np.flatnonzero((low > time) | (time > high) | (low > high))
    if len(wrong):
        at = wrong[0]
        got = f"got {low[at]:g}, {time[at]:g} and {high[at]:g}"
        raise InputError(f"{name}: {key} should lie between its low and its high, {got}")
