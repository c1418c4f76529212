"""What a change goes with is the tag that was planted, the likelier one where two act alike."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes.causes import explanations
from models.randomness import stream

BINS, START = 20, 12


def cells(rollout=True, together=False):
    """Two applications on two platforms in two places; half of the machines get a release and a kernel at START."""
    rows, exposure = [], []
    for application in ("a", "b"):
        for platform in ("p", "q"):
            for place in ("east", "west"):
                for new in range(2):
                    for booted in range(2):
                        if together and new != booted:
                            continue
                        for late in range(2):
                            released = late and new and rollout
                            kernel = "k2" if late and booted else "k1"
                            rows.append((application, "r2" if released else "r1", kernel, platform, place))
                            exposure.append(np.where((np.arange(BINS) >= START) == bool(late), 5000.0, 0.0))
    names = ["application", "revision", "kernel", "platform", "datacentre"]
    table = pd.DataFrame(rows, columns=names)
    code = table.groupby(names).ngroup().to_numpy()
    summed = np.zeros((code.max() + 1, BINS))
    np.add.at(summed, code, np.array(exposure))
    return table.assign(code=code).drop_duplicates("code").sort_values("code").reset_index(drop=True), summed


@pytest.mark.parametrize(
    ("dimension", "value", "application"),
    [
        ("revision", "r2", "a"),
        ("kernel", "k2", ""),
        ("platform", "q", ""),
        ("datacentre", "west", ""),
        ("application", "b", ""),
        ("everywhere", "", ""),
    ],
)
@pytest.mark.parametrize("grew", [True, False])
def test_the_planted_dimension_is_named_first(dimension, value, application, grew):
    tags, exposure = cells()
    acts = np.ones(len(tags), dtype=bool) if dimension == "everywhere" else (tags[dimension] == value).to_numpy()
    if application:
        acts = acts & (tags["application"] == application).to_numpy()
    factor = np.where(acts[:, None] & (np.arange(BINS) >= START), 1.3 if grew else 0.7, 1.0)
    counts = stream(3, dimension).poisson(exposure * 0.02 * factor).astype(float)
    best = explanations(counts, exposure, tags, START, BINS, dispersion=1.0, grew=grew)[0]
    assert (best.dimension, best.value, best.application) == (dimension, value, application)
    assert np.exp(best.log_factor) == pytest.approx(1.3 if grew else 0.7, rel=0.06)


def test_of_two_causes_that_act_alike_the_likelier_is_named():
    tags, exposure = cells(together=True)
    tags, exposure = tags[tags["application"] == "a"].reset_index(drop=True), exposure[(tags["application"] == "a")]
    acts = (tags["revision"] == "r2").to_numpy()[:, None] & (np.arange(BINS) >= START)
    counts = stream(4, "alike").poisson(exposure * np.where(acts, 0.03, 0.02)).astype(float)
    first, second = explanations(counts, exposure, tags, START, BINS, dispersion=1.0, grew=True)[:2]
    assert (first.dimension, second.dimension) == ("revision", "kernel")
    assert first.explained == pytest.approx(second.explained)


def test_what_goes_away_is_no_cause():
    tags, exposure = cells()
    acts = (tags["kernel"] == "k1").to_numpy()[:, None] & (np.arange(BINS) >= START)
    counts = stream(5, "away").poisson(exposure * np.where(acts, 0.04, 0.02)).astype(float)
    named = explanations(counts, exposure, tags, START, BINS, dispersion=1.0, grew=True)
    assert ("kernel", "k1") not in {(one.dimension, one.value) for one in named}
