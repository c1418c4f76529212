"""What scores say of machines: whose counters are taken, and what is said of machines that nobody scored."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.crossplatform.departures import Parameters, Priors, model_of, prior
from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.measured import exponent_prior, measure
from analysis.crossplatform.scores import learn, scores
from analysis.crossplatform.service import sizes_bytes
from models.platforms import PLATFORMS

NAMES = ("pd4", "piii", "pres", "xeon_2h_2c_2p")
COUNTED = {"piii": (2e7, 1e6, 3e5), "pres": (3e7, 1.2e6, 1.5e5)}


def evidence(scattered=0.0, counted=("piii", "pres"), order=NAMES):
    """Scores as they would be of a service like the benchmark, times or over a factor in turn."""
    counts = np.array([[60.0], [90.0], [120.0], [75.0]])
    work, rates = 3e7 * counts[:, 0], np.array([0.05, 0.015])
    used = 0.3 * work / work.max()
    answer = np.full(4, 0.2)
    log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(4), counts, work, work[:, None] * rates, answer, used)
    table = pd.DataFrame({"platform": list(order), "score_per_s": [40.0] * len(order)})
    columns = ["instructions", "l1_misses", "l2_misses"]
    table[columns] = [COUNTED[name] if name in counted else (np.nan,) * 3 for name in order]
    bare = Evidence("piii", {"piii": log}, PLATFORMS, table)
    return replace(bare, benchmarks=table.assign(score_per_s=_modelled(bare) * _in_turn(order, scattered)))


def measured_of(given):
    return measure(given.log, given.platform, Priors())


def _in_turn(order, scattered):
    return np.exp(scattered * np.array([(-1.0) ** NAMES.index(name) for name in order]))


def _modelled(given):
    """The scores that machines as their spec sheets say would have, by what the posterior starts from."""
    found = scores(given, measured_of(given))
    models = tuple(dict.fromkeys(model_of(each) for each in (*found.platforms, found.counted_on)))
    exponent, sd = exponent_prior(sizes_bytes(found.counted_on)[:2], Priors())
    mean, _ = prior(models, Priors(), (sd, sd), 0.02)
    return found.rates_per_s(Parameters(models, mean[None]), exponent)[0]


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]])
def test_counters_of_the_calibration_platform_are_taken_if_somebody_counted_there(order):
    given = evidence(order=order)
    found = scores(given, measured_of(given))
    assert found.counted_on.name == "piii"
    assert found.instructions == 2e7
    assert found.misses == pytest.approx([1e6 / 2e7, 3e5 / 2e7])


def test_otherwise_those_of_another_platform():
    given = evidence(counted=("pres",))
    found = scores(given, measured_of(given))
    assert found.counted_on.name == "pres"
    assert found.misses == pytest.approx([1.2e6 / 3e7, 1.5e5 / 3e7])


def test_machines_nobody_scored_depart_as_far_as_the_scores_of_others_say():
    calm, wild = (learn(evidence(scattered=size), measured_of(evidence()), Priors()) for size in (0.0, 0.5))
    assert "altra_q80_30" not in wild.models
    expected = Priors().of_hardware()
    assert (calm.hardware_sd < 2.0 * expected).all()
    assert (wild.hardware_sd > 2.5 * expected).all()
    unseen = np.sqrt(np.diag(wild.including("altra_q80_30").covariance))[-expected.size :]
    np.testing.assert_allclose(unseen, wild.hardware_sd)
