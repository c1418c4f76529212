"""What every estimator must be indifferent to, and what it must say where there is nothing to doubt."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.methods import METHODS, RECOMMENDED, method
from analysis.effects.study import Study
from tests.effect_studies import observed

EACH = pytest.mark.parametrize("one", METHODS, ids=lambda one: one.name)
TABLE = observed(np.random.default_rng(5), machines=24)
STUDY = Study.of(TABLE)


def said(one, study):
    found = one.estimate(study)
    return [found.change, found.error, found.freedom]


def test_names_are_unique_and_found():
    assert len({one.name for one in METHODS}) == len(METHODS)
    assert all(method(one.name) is one for one in METHODS)
    assert method(RECOMMENDED).name == RECOMMENDED
    with pytest.raises(ValueError, match=r"estimator must be one of published, .*got best"):
        method("best")


@EACH
def test_units_of_value_and_of_weight_do_not_matter(one):
    scaled = TABLE.assign(value=TABLE["value"] * 1000.0, weight=TABLE["weight"] * 8.0)
    assert said(one, Study.of(scaled)) == pytest.approx(said(one, STUDY), rel=1e-6)


@EACH
def test_names_and_order_of_rows_do_not_matter(one):
    rng = np.random.default_rng(1)
    machine, job = rng.permutation(24), rng.permutation(4)
    named = TABLE.assign(
        machine=[f"m{machine[m]}" for m in TABLE["machine"]], job=[f"j{job[j]}" for j in TABLE["job"]]
    ).sample(frac=1.0, random_state=1)
    assert said(one, Study.of(named)) == pytest.approx(said(one, STUDY), rel=1e-6)


@EACH
def test_no_effect_and_no_noise_is_no_change(one):
    still = TABLE.assign(value=1.0 + TABLE["job"])
    found = one.estimate(Study.of(still))
    assert (found.change, found.error, found.margin) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


@EACH
def test_the_fleet_twice_has_half_the_variance(one):
    rows, copies = observed(np.random.default_rng(2), machines=60), 2
    shifted = [
        rows.assign(machine=rows["machine"] + 100 * k, instance=rows["instance"] + 1000 * k) for k in range(copies)
    ]
    alone, both = (one.estimate(Study.of(table)) for table in (rows, pd.concat(shifted)))
    assert both.change == pytest.approx(alone.change, rel=0.02)
    assert (both.error / alone.error) ** 2 == pytest.approx(0.5, rel=0.15)


@EACH
def test_many_draws_are_draws_one_by_one(one):
    rng = np.random.default_rng(3)
    treated = np.array([rng.permutation(24) < 10 for _ in range(5)])
    cells = STUDY.cells
    both = cells.y.sum(axis=1)
    full = replace(
        cells,
        y=np.stack([both, 1.1 * both], axis=1),
        yy=np.stack([cells.yy.sum(axis=1), 1.21 * cells.yy.sum(axis=1)], axis=1),
        xy=np.stack([cells.xy.sum(axis=1), 1.1 * cells.xy.sum(axis=1)], axis=1),
    )
    together = np.array(one.many(full, treated))
    apart = np.concatenate([np.array(one.many(full, each[None, :])) for each in treated], axis=1)
    assert together == pytest.approx(apart, rel=1e-9)


@EACH
def test_a_large_effect_is_found(one):
    found = one.estimate(Study.of(observed(np.random.default_rng(4), machines=80, effect=0.5)))
    assert found.change == pytest.approx(0.5, abs=0.1)
    assert (found.estimator, found.machines, found.controls, found.jobs) == (one.name, 40, 40, 4)
    assert found.high - found.change == pytest.approx(found.margin)
    assert found.quota_coverage == pytest.approx(1.0)


@EACH
def test_a_confidence_out_of_range_is_refused(one):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 95"):
        one.estimate(STUDY, confidence=95)
