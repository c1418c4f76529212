"""The published method calibrated with part of kappa: what is the service's own, not the measured machine's.

Kappa holds for other platforms as far as it comes from the service. What is due to how the measured machine departs
from its spec sheet does not, and one log cannot tell the two apart; their variances before any measurement can. So log
kappa is shrunk towards 0, as the posterior mean of normal effects is (Gelman et al. 2013, section 2.5).
"""

import numpy as np

from analysis.crossplatform.departures import COMMON, Parameters, Priors, jacobian, model_of, prior
from analysis.crossplatform.evidence import Evidence, Predictor
from analysis.crossplatform.measured import MeasuredService, measure, service_s
from analysis.crossplatform.published import calibrate, kappa
from models.arrays import Floats


def own_share(measured: MeasuredService, priors: Priors) -> float:
    """Return the share of the variance of a log service time that services differ by; machines differ by the rest."""
    models = (model_of(measured.platform),)
    mean, covariance = prior(models, priors, (measured.exponent_sd, measured.exponent_sd), 0.0)

    def log_service_s(among: Floats) -> Floats:
        where = Parameters(models, among), measured.platform
        return np.log(service_s(measured, *where, measured.mean_mix, measured.rate_per_s))

    _, slopes = jacobian(log_service_s, mean)
    variances = slopes[0] ** 2 * np.diag(covariance)
    return float(variances[:COMMON].sum() / variances.sum())


def shrunken(evidence: Evidence, priors: Priors | None = None) -> Predictor:
    """Calibrate the published method and multiply its service times by kappa to the power of `own_share`."""
    before = Priors() if priors is None else priors
    measured = measure(evidence.log, evidence.platform, before)
    return calibrate(evidence, kappa(evidence) ** own_share(measured, before))
