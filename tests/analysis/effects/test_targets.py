"""What is estimated: within a job each instance alike, or by its quota; or a ratio of sums."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.classic import Published
from analysis.effects.methods import method
from analysis.effects.study import Study
from models.errors import InputError
from tests.helpers.outside_coverage import answers
from tests.helpers.outside_fleets import CONDITIONS, TARGETS

ESTIMATORS = ("adjusted", "own-past", "unadjusted", "ratio", "cuped")


def exact(rng, machines=40, jobs=3):
    """Instances without noise, whose gain goes with their weight and with their exposure."""
    machine, job = np.divmod(np.arange(machines * jobs), jobs)
    weight, part = rng.integers(1, 4, len(job)).astype(float), rng.integers(1, 3, len(job)).astype(float)
    rows = pd.DataFrame({"job": job, "machine": machine, "weight": weight, "exposure": part})
    return rows.assign(off=1.0 + job, on=(1.0 + job) * (1.0 + 0.1 * weight + 0.3 * part))


def of_target(rows, target):
    """The change by the book: with the feature over without it, less 1."""
    if target == "sums":
        return (rows["exposure"] * rows["on"]).sum() / (rows["exposure"] * rows["off"]).sum() - 1
    by = rows["weight"] if target == "quota" else 1.0
    means = rows.assign(on=by * rows["on"], off=by * rows["off"], by=by).groupby("job")[["on", "off", "by"]].sum()
    quota = rows.groupby("job")["weight"].sum()
    return (quota * means["on"] / means["by"]).sum() / (quota * means["off"] / means["by"]).sum() - 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_all_estimators_of_one_table_estimate_the_target_that_is_named(name, target):
    """Each arm has the same instances, so every estimator of that target gives it exactly, and no other does."""
    rows = exact(np.random.default_rng(1))
    arms = [
        rows.assign(machine=2 * rows["machine"] + arm, period=1, treated=arm, value=rows["on" if arm else "off"])
        for arm in (0, 1)
    ]
    study = Study.of(pd.concat(arms, ignore_index=True).drop(columns=["on", "off"]), target=target)
    truth = {other: of_target(rows, other) for other in TARGETS}
    assert method(name).estimate(study).change == pytest.approx(truth[target], rel=1e-9)
    assert all(abs(truth[target] - truth[other]) > 0.005 for other in TARGETS if other != target)


def test_what_cannot_be_estimated_is_refused():
    rows = exact(np.random.default_rng(1)).assign(period=1, treated=lambda t: t["machine"] % 2, value=2.0)
    with pytest.raises(InputError, match="needs the column exposure"):
        Study.of(rows.drop(columns="exposure"), target="sums")
    with pytest.raises(InputError, match="published estimates the mean over instances, not target quota"):
        Published().estimate(Study.of(rows, target="quota"))
    later = rows.assign(period=2, treated=1)
    with pytest.raises(InputError, match="in a staged study it is the mean over instances"):
        Study.of(pd.concat([rows, later]), staged=True, target="quota")


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["weights_within_jobs", "ratio_of_sums"])
def test_intervals_hold_the_target_where_effects_go_with_weights(name):
    """100 draws of 4 fleets: they held it in 8% before. Of a true 95% fewer than 85 hold it in 1 of 10,000 seeds."""
    found = np.concatenate([answers(CONDITIONS[name], 3, number, ["adjusted"]) for number in range(4)])[:, 0]
    assert np.mean(np.abs(found[:, 0] - found[:, 2]) <= found[:, 1]) >= 0.85
