"""What every estimator must be indifferent to, and what it must say where there is nothing to doubt."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells as made_cells
from analysis.effects.estimators import adjusted
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.methods import METHODS, RECOMMENDED, by_rack, for_design, method, names, of_tables, together
from analysis.effects.study import Answers, Study
from tests.helpers.effect_studies import fleet_jobs, fleet_rows, observed

ANY = [one for one in METHODS if not one.needs]
EACH = pytest.mark.parametrize("one", ANY, ids=lambda one: one.name)
TABLE = observed(np.random.default_rng(5), machines=24)
STUDY = Study.of(TABLE)


def said(one, study):
    found = one.estimate(study)
    return [found.change, found.error, found.freedom]


def test_names_are_unique_and_found():
    assert len({one.name for one in METHODS}) == len(METHODS)
    assert all(method(one.name) is one for one in METHODS)
    assert method(RECOMMENDED).name == RECOMMENDED
    with pytest.raises(ValueError, match=r"estimator: should be one of published, .*got 'best'"):
        method("best")


def test_the_table_says_which_estimator_a_design_and_a_table_can_have():
    assert for_design(RECOMMENDED, "concurrent").name == for_design(RECOMMENDED, "crossover").name == RECOMMENDED
    assert for_design(RECOMMENDED, "staged").name == "staged"
    assert for_design("cuped", "staged").name == "cuped"
    assert set(of_tables()) - set(names()) == {"stratified", "staged"}
    assert [one.name for one in METHODS if one.name not in of_tables()] == ["balanced", "paired"]


@pytest.mark.parametrize("one", [one for one in METHODS if one.needs], ids=lambda one: one.name)
def test_what_an_estimator_lacks_of_how_machines_were_drawn_is_named(one):
    with pytest.raises(ValueError, match=f"the estimator {one.name} needs the "):
        one.estimate(STUDY)


def test_racks_are_clusters_of_adjusted_differences_alone():
    assert {one.name for one in METHODS if by_rack(one)} == {
        "adjusted",
        "unadjusted",
        "own-past",
        "shrunken",
        "random-effects",
    }
    assert by_rack(method("adjusted")).cluster == "rack"


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


def full(rng, machines=40, jobs=6):
    """Cells of a fleet whose both courses are known, some jobs on few machines, and racks of three machines."""
    rows = fleet_rows(rng, machines, jobs, covariates=3).assign(rack=lambda table: table["machine"] // 3)
    fleet = fleet_jobs(rng, jobs)
    before = rows.assign(value=rows["quota"] * rows["off"]).groupby("machine")[["value", "quota"]].sum()
    return made_cells(rows, fleet, before, racks=rows.groupby("machine")["rack"].first())


@pytest.mark.parametrize("known", [False, True])
def test_together_methods_say_what_each_says_alone_to_the_last_digit(known):
    rng = np.random.default_rng(7)
    cells = replace(full(rng), known=known)
    treated = np.array([rng.permutation(40) < size for size in rng.integers(1, 40, 37)])
    asked = [*ANY, *(Adjusted(f"rack-{c}", cluster="rack", correction=c) for c in ("cr0", "cr2", "jackknife"))]
    both = together([*asked, Alone()], cells, treated)
    for one, answers in zip([*asked, Alone()], both, strict=True):
        for made, expected in zip(answers, one.many(cells, treated), strict=True):
            np.testing.assert_array_equal(made, expected, err_msg=one.name)


@EACH
def test_what_else_is_in_its_block_does_not_matter_to_a_draw(one):
    rng = np.random.default_rng(8)
    cells = full(rng)
    treated = np.array([rng.permutation(40) < size for size in rng.integers(1, 40, 2 * adjusted.BLOCK + 5)])
    whole = np.array(one.many(cells, treated))
    for cut in (1, 3, adjusted.BLOCK - 1):
        parts = [np.array(one.many(cells, treated[at : at + cut])) for at in range(0, len(treated), cut)]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


class Alone:
    """A method that shares nothing."""

    name = "alone"

    def many(self, cells, treated):
        return Answers(treated.sum(axis=1) / len(cells.machines), np.ones(len(treated)), np.ones(len(treated)))
