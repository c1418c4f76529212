"""The best method: own measurements and public scores tell how machines depart from spec sheets; with 90% intervals.

The service time measured on the calibration platform, by a request-mix model, is multiplied by the ratio of what
`costs` says of target and calibration platform; the departures in it are the posterior of `departures`, given the
service's CPU time where it was measured and the scores of a public benchmark on all platforms that have one.
"""

from functools import cache

import numpy as np

from analysis.crossplatform import costs
from analysis.crossplatform.departures import COMMON, Departures, Parameters, Priors, jacobian, model_of
from analysis.crossplatform.evidence import NORMAL_90, Evidence, Prediction, Predictor
from analysis.crossplatform.measured import OWN_SHARE, MeasuredService, measure, service_s
from analysis.crossplatform.mix import MixModel
from analysis.crossplatform.response import stay_s
from analysis.crossplatform.scores import learn
from models.arrays import Floats
from models.platforms import Platform

_WIDEST = 300.0
"""Logarithm of the greatest factor that an interval is wide: it says nothing then, and is cut off at a full machine."""


def tailored(evidence: Evidence, priors: Priors | None = None) -> Predictor:
    """Calibrate the best method.

    Intervals hold the realised means of intervals: they know of the posterior of departures, of the regression and of
    requests that differ within an interval. They widen where scores contradict the priors (`departures.posterior`);
    one log without scores seldom can.

    Parameters
    ----------
    evidence : a log with utilisation; scores help
    priors : what is known before; None: the published defaults

    Raises
    ------
    ValueError
        If the log has no utilisation, misses of fewer than two cache levels or more than the spec sheet, or scores are
        wrong.

    Examples
    --------
    >>> from analysis.crossplatform.evidence import ServiceLog
    >>> from models.platforms import PLATFORMS
    >>> counts = np.array([[60.0], [90.0], [120.0]])
    >>> work = 3e7 * counts[:, 0]
    >>> used, answer = 0.3 * work / work.max(), np.full(3, 0.2)
    >>> log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    >>> predict = tailored(Evidence("piii", {"piii": log}, PLATFORMS))
    >>> prediction = predict(PLATFORMS["pres"], counts, 30.0)
    >>> low_s, mean_s, high_s = prediction.service_low_s, prediction.service_time_s, prediction.service_high_s
    >>> bool(np.all((low_s < mean_s) & (mean_s < high_s)))
    True
    """
    before = Priors() if priors is None else priors
    measured = measure(evidence.log, evidence.platform, before)
    learnt = learn(evidence, measured, before)

    @cache
    def known_of(platform: Platform) -> tuple[Departures, float]:
        known = learnt.including(model_of(platform))
        return known, _machine_variance(measured, known, platform)

    def predict(platform: Platform, counts: Floats, interval_s: float) -> Prediction:
        some = counts.sum(axis=1) > 0
        columns = np.full((6, len(counts)), np.nan)
        if some.any():
            columns[:, some] = _predicted(measured, known_of(platform), platform, counts[some], interval_s)
        return Prediction(*columns)

    return predict


def _predicted(
    measured: MeasuredService, learnt: tuple[Departures, float], platform: Platform, counts: Floats, interval_s: float
) -> Floats:
    """Return the rows of a prediction for mixes with requests: (6, m)."""
    known, machine_variance = learnt
    rate = counts.sum(axis=1) / interval_s
    ratio = _ratio(measured, Parameters(known.models, known.mean[None]), platform, counts, rate)[0]
    needed = measured.processor_s(counts) / measured.platform.vcpus * ratio
    variance = machine_variance + _mix_variance(measured, counts)
    width = np.exp(np.minimum(NORMAL_90 * np.sqrt(variance), _WIDEST))
    ends = np.stack([needed, needed / width, needed * width])
    # What a machine needs may be more than there is time for; what it serves is not.
    return np.stack([*np.minimum(ends, 1.0 / rate), *_responses(measured, platform, counts, rate, ends)])


def _ratio(
    measured: MeasuredService, parameters: Parameters, platform: Platform, counts: Floats, rate: Floats
) -> Floats:
    """Return modelled service times on a platform over those on the calibration platform at its mean rate: (D, m)."""
    here = service_s(measured, parameters, measured.platform, counts, measured.rate_per_s)
    return service_s(measured, parameters, platform, counts, rate) / here


def _machine_variance(measured: MeasuredService, known: Departures, platform: Platform) -> float:
    """Return the variance of the log of that ratio that departures leave, for the mean mix at the mean rate."""
    parameters = Parameters(known.models, known.mean[None])
    machines = [parameters.places(model_of(side)) for side in (platform, measured.platform)]
    places = np.unique(np.concatenate([np.arange(len(costs.ServiceDepartures._fields)), [COMMON - 2], *machines]))
    rate = np.array([measured.rate_per_s])

    def log_ratio(among: Floats) -> Floats:
        return np.log(_ratio(measured, Parameters(known.models, among), platform, measured.mean_mix, rate))

    _, slopes = jacobian(log_ratio, known.mean, places)
    return float(slopes[0] @ known.covariance[np.ix_(places, places)] @ slopes[0])


def _mix_variance(measured: MeasuredService, counts: Floats) -> Floats:
    """Return the variance of the log of an interval's CPU time that regression and differing requests leave: (m,)."""
    model = measured.busy_s
    sum_s = measured.processor_s(counts) * counts.sum(axis=1)
    return np.asarray((_coefficient_variance(model, counts) + model.noise_sd(counts) ** 2) / sum_s**2)


def _coefficient_variance(model: MixModel, counts: Floats) -> Floats:
    return np.asarray(((counts @ model.covariance) * counts).sum(axis=1))


def _responses(
    measured: MeasuredService, platform: Platform, counts: Floats, rate: Floats, service: Floats
) -> list[Floats]:
    """Return mean response times and the ends of their intervals given (3, m) those of service times: three of (m,).

    Requests differ within an interval as on the calibration platform, in proportion to their response times.
    """
    elsewhere = measured.elsewhere_s
    if elsewhere is None:
        return [np.full(len(counts), np.nan)] * 3
    requests = counts.sum(axis=1)
    apart = np.maximum(elsewhere.predict(counts) / requests, 0.0)
    middle, low, high = (apart + OWN_SHARE[0] * stay_s(platform, service_s, rate) for service_s in service)
    source = measured.platform
    at_source = apart + OWN_SHARE[0] * stay_s(source, measured.processor_s(counts) / source.vcpus, rate)
    known = np.isfinite(middle)
    noise = (
        elsewhere.noise_sd(counts) * np.where(known, middle, 0.0) / np.where(np.isfinite(at_source), at_source, np.inf)
    )
    of_share = OWN_SHARE[1] / OWN_SHARE[0] * np.where(known, middle - apart, 0.0)
    variance = (_coefficient_variance(elsewhere, counts) + noise**2) / requests**2 + of_share**2
    beyond = NORMAL_90**2 * variance
    with np.errstate(invalid="ignore"):
        below = np.where(known, middle - np.sqrt((middle - low) ** 2 + beyond), low)
        above = np.where(known, middle + np.sqrt((high - middle) ** 2 + beyond), np.inf)
    return [middle, np.maximum(below, 0.0), above]
