"""Kappa as far as it is the service's own: against the variances that the priors give service and machine."""

from dataclasses import fields, replace

import numpy as np
import pytest

from analysis.crossplatform.departures import Priors
from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.measured import measure
from analysis.crossplatform.published import calibrated, kappa, published
from analysis.crossplatform.shrunken import own_share, shrunken
from models.platforms import PLATFORMS

COUNTS = np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [4.0, 1.0], [1.0, 1.0], [2.0, 5.0]])
MACHINES = [field.name for field in fields(Priors)][:5]


def evidence():
    work = COUNTS @ [3e7, 9e7]
    used = 0.2 * work / work.max()
    times = 30.0 * np.arange(len(COUNTS))
    log = ServiceLog(("a", "b"), 30.0, times, COUNTS, work, work[:, None] * [0.06, 0.02], np.full(6, 0.2), used)
    return Evidence("piii", {"piii": log}, PLATFORMS)


def said(fit):
    return fit(evidence())(PLATFORMS["pres"], COUNTS, 30.0).service_time_s


def test_log_kappa_is_shrunk_by_the_services_share_of_the_variance():
    asked = evidence()
    share = own_share(measure(asked.log, asked.platform, Priors()), Priors())
    np.testing.assert_allclose(said(shrunken) / said(published), kappa(asked) ** share, rtol=1e-12)


def test_machines_that_keep_to_their_spec_sheets_leave_kappa_whole():
    exact = replace(Priors(), **dict.fromkeys(MACHINES, 0.0))
    np.testing.assert_allclose(said(lambda asked: shrunken(asked, exact)), said(calibrated), rtol=1e-12)


def test_twice_the_departure_of_machines_is_four_times_their_variance():
    asked, typical = evidence(), Priors()
    farther = replace(typical, **{name: 2 * getattr(typical, name) for name in MACHINES})
    once, twice = (own_share(measure(asked.log, asked.platform, priors), priors) for priors in (typical, farther))
    assert twice == pytest.approx(once / (once + 4 * (1 - once)), rel=1e-3)
