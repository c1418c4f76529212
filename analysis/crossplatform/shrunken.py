"""The published method calibrated with part of kappa: what is the service's own, not the measured machine's.

Kappa holds for other platforms as far as it comes from the service. What is due to how the measured machine departs
from its spec sheet does not, and one log cannot tell the two apart; their variances before any measurement can. So log
kappa is shrunk towards 0, as the posterior mean of normal effects is (Gelman et al. 2013, section 2.5).
"""

import numpy as np

from analysis.crossplatform.departures import COMMON, Parameters, Priors, jacobian, model_of, prior
from analysis.crossplatform.evidence import Evidence, Predictor
from analysis.crossplatform.measured import Measured, measure, service_s
from analysis.crossplatform.published import calibrate, kappa
from models.arrays import Floats


def own_share(measured: Measured, priors: Priors) -> float:
    """Return the share of the variance of a log service time that services differ by; machines differ by the rest.

    Parameters
    ----------
    measured : the service on the calibration platform
    priors : how far services and machines depart from what is typical

    Examples
    --------
    >>> from analysis.crossplatform.evidence import ServiceLog
    >>> from models.platforms import PLATFORMS
    >>> counts = np.array([[60.0], [90.0], [120.0]])
    >>> work = 3e7 * counts[:, 0]
    >>> used, answer = 0.3 * work / work.max(), np.full(3, 0.2)
    >>> log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    >>> measured = measure(log, PLATFORMS["piii"], Priors())
    >>> 0.5 < own_share(measured, Priors()) < 0.8
    True
    """
    models = (model_of(measured.platform),)
    mean, covariance = prior(models, priors, (measured.exponent_sd, measured.exponent_sd), 0.0)

    def log_service_s(among: Floats) -> Floats:
        where = Parameters(models, among), measured.platform
        return np.log(service_s(measured, *where, measured.mean_mix, measured.rate_per_s))

    _, slopes = jacobian(log_service_s, mean)
    variances = slopes[0] ** 2 * np.diag(covariance)
    return float(variances[:COMMON].sum() / variances.sum())


def shrunken(evidence: Evidence, priors: Priors | None = None) -> Predictor:
    """Calibrate the published method and multiply its service times by kappa to the power of `own_share`.

    Raises
    ------
    ValueError
        As `published` and `kappa`.

    Examples
    --------
    >>> from analysis.crossplatform.evidence import ServiceLog
    >>> from models.platforms import PLATFORMS
    >>> counts = np.array([[60.0], [90.0], [120.0]])
    >>> work = 3e7 * counts[:, 0]
    >>> used, answer = 0.3 * work / work.max(), np.full(3, 0.2)
    >>> log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    >>> evidence = Evidence("piii", {"piii": log}, PLATFORMS)
    >>> whole, part, none = (fit(evidence)(PLATFORMS["pres"], counts, 30.0).service_time_s[0] for fit in (
    ...     lambda asked: calibrate(asked, kappa(asked)), shrunken, calibrate))
    >>> bool(min(whole, none) < part < max(whole, none))
    True
    """
    before = Priors() if priors is None else priors
    measured = measure(evidence.log, evidence.platform, before)
    return calibrate(evidence, kappa(evidence) ** own_share(measured, before))
