"""The error under balanced selection: against Neyman's, what repeated selections show, and sums in loops."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from analysis.effects.cells import cells
from analysis.effects.cube import selections
from analysis.effects.estimators import balanced
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.balanced import Balanced, balanced_error, imbalance, influence
from analysis.statistics import NotEnoughDataError
from tests.helpers.effect_studies import small_study as example


def test_without_relevant_variables_the_error_is_neymans():
    rng = np.random.default_rng(13)
    value, treated = rng.normal(size=60), np.arange(60) < 20
    found = balanced_error(value / np.where(treated, 20, 40), treated, np.ones((60, 1)), np.zeros((1, 1)), 0.5)
    expected = np.var(value[:20], ddof=1) / 20 + np.var(value[20:], ddof=1) / 40
    assert found.error**2 == pytest.approx(expected + 0.5)
    assert (found.freedom, found.saved) == (19.0, pytest.approx(0.0))


def population(rng):
    """A fleet whose outcomes depend on what is balanced, otherwise with the feature than without."""
    aux = rng.normal(size=(400, 5))
    off = aux @ np.array([1.0, -0.5, 0.5, 0.2, 0.0]) + 0.7 * rng.normal(size=400)
    return aux, off, 1.2 * off + 0.3 * aux[:, 0] + 0.2 * rng.normal(size=400)


def contrast(off, on, treated, aux, left):
    change = on[treated].mean() - off[~treated].mean()
    values = np.where(treated, on - on[treated].mean(), off - off[~treated].mean())
    return change, balanced_error(values / np.where(treated, treated.sum(), (~treated).sum()), treated, aux, left)


@pytest.mark.statistical
def test_intervals_are_shorter_and_hold_the_truth():
    """1,000 selections at a coverage of 95% or more: below 93% has a probability of 0.3%."""
    rng = np.random.default_rng(14)
    aux, off, on = population(rng)
    chosen = selections(aux, np.full(400, 0.1), 1_000, rng)
    left, truth = imbalance(aux, chosen), (on - off).mean()
    found = [contrast(off, on, treated, aux, left) for treated in chosen]
    inside = [abs(change - truth) <= t.ppf(0.975, each.freedom) * each.error for change, each in found]
    assert 0.93 <= np.mean(inside) <= 0.985
    assert np.mean([each.saved for _, each in found]) > 0.5
    spread = np.std([change for change, _ in found])
    assert np.mean([each.error for _, each in found]) == pytest.approx(spread, rel=0.15)


def test_under_simple_random_selection_nothing_is_saved():
    rng = np.random.default_rng(15)
    aux, off, on = population(rng)
    chosen = np.array([rng.permutation(400) < 40 for _ in range(400)])
    left = imbalance(aux, chosen)
    assert abs(np.mean([contrast(off, on, treated, aux, left)[1].saved for treated in chosen])) < 0.08


def test_arms_and_machines_must_be_enough():
    with pytest.raises(NotEnoughDataError, match="machines in either arm"):
        balanced_error(np.zeros(9), np.arange(9) < 1, np.zeros((9, 1)), np.zeros((1, 1)))
    with pytest.raises(NotEnoughDataError, match="12 machines are needed, 9 given"):
        balanced_error(np.zeros(9), np.arange(9) < 4, np.zeros((9, 9)), np.zeros((9, 9)))
    with pytest.raises(NotEnoughDataError, match="every draw"):
        imbalance(np.zeros((4, 1)), np.zeros((1, 4), dtype=bool))


def fleet(rng):
    """A fleet of one job whose instances depend on their machine's load, and the load."""
    load = rng.normal(size=300)
    machine = np.repeat(np.arange(300), 3)
    rows = pd.DataFrame({"job": np.tile(["a", "b", "c"], 300), "machine": machine, "quota": 1.0})
    rows["off"] = 1.0 + 0.1 * load[machine] + 0.05 * rng.normal(size=900)
    rows["on"] = rows["off"] * 1.05 + 0.02 * rng.normal(size=900)
    return cells(rows, pd.DataFrame({"job": ["a", "b", "c"], "quota": [1.0, 2.0, 1.0], "scale": 1.0})), load[:, None]


@pytest.mark.statistical
def test_the_estimator_keeps_its_change_and_states_the_smaller_spread():
    """400 selections: coverage below 91% or an error 15% off the spread has a probability of 0.1% each."""
    rng = np.random.default_rng(17)
    known, load = fleet(rng)
    chosen = selections(load, np.full(300, 0.1), 400, rng)
    method = Balanced(load, imbalance(load, chosen), Adjusted())
    found, plain = method.many(known, chosen), Adjusted().many(known, chosen)
    assert found.change.tolist() == plain.change.tolist()
    sums = np.array([np.bincount(known.job, known.y[:, arm]) @ known.share for arm in (0, 1)])
    truth = sums[1] / sums[0] - 1
    assert (abs(found.change - truth) <= found.margin()).mean() > 0.91
    assert found.error.mean() == pytest.approx(found.change.std(), rel=0.15)
    assert found.error.mean() < 0.6 * plain.error.mean()


def test_influence_is_the_weighted_residual_of_each_instance():
    rng = np.random.default_rng(18)
    rows = pd.DataFrame({"job": rng.integers(4, size=90), "machine": rng.integers(12, size=90), "quota": 1.0})
    rows = rows.assign(
        off=rng.uniform(1, 2, 90), on=rng.uniform(1, 2, 90), x0=rng.normal(size=90), x1=rng.normal(size=90)
    )
    quota = np.array([0.4, 0.3, 0.2, 0.1])
    known = cells(rows, pd.DataFrame({"job": range(4), "quota": quota, "scale": 1.5}))
    treated = np.arange(12) < 5
    rows["with_it"] = treated[rows["machine"]]
    rows["y"] = np.where(rows["with_it"], rows["on"], rows["off"]) / 1.5
    within = rows[["y", "x0", "x1"]] - rows.groupby(["job", "with_it"])[["y", "x0", "x1"]].transform("mean")
    for used in (0, 1, 2):
        x = within[["x0", "x1"][:used]].to_numpy()
        rest = within["y"].to_numpy() - x @ np.linalg.lstsq(x, within["y"], rcond=None)[0]
        expected = np.zeros(12)
        for row, value in zip(rows.to_dict("records"), rest, strict=True):
            same = (rows["job"] == row["job"]) & (rows["with_it"] == row["with_it"])
            expected[row["machine"]] += quota[row["job"]] * value / same.sum()
        np.testing.assert_allclose(influence(known, treated, used), expected, atol=1e-12)
        raw = rows.assign(weight=quota[rows["job"]], rest=within["y"]).groupby(["job", "with_it"], group_keys=False)
        level = raw.apply(lambda group: group["weight"] * group["rest"] / len(group))
        level = level.groupby(rows["machine"]).sum() * ~treated
        doubled = influence(known, treated, used, change=1.0)
        np.testing.assert_allclose(doubled, expected + level, atol=1e-12)


def test_copies_of_a_covariate_and_constants_change_nothing():
    """Their squares leave slopes open: what is subtracted is the same whichever of them is taken."""
    rng = np.random.default_rng(19)
    rows = pd.DataFrame({"job": rng.integers(4, size=90), "machine": rng.integers(12, size=90), "quota": 1.0})
    rows = rows.assign(off=rng.uniform(1, 2, 90), on=rng.uniform(1, 2, 90), x0=rng.normal(size=90))
    jobs, treated = pd.DataFrame({"job": range(4), "quota": 0.25, "scale": 1.5}), np.arange(12) < 5
    copies = cells(rows.assign(x1=rows["x0"], x2=1e6, x3=-3.0 * rows["x0"], x4=0.0), jobs)
    alone = influence(cells(rows, jobs), treated, 1)
    assert abs(alone - influence(copies, treated, 0)).max() > 1e-3
    for used in range(1, 6):
        np.testing.assert_allclose(influence(copies, treated, used), alone, rtol=1e-5, atol=1e-8)


def test_balancing_variables_of_other_machines_are_refused():
    with pytest.raises(ValueError, match="needed of 12 machines, not 3"):
        Balanced(np.zeros((3, 1)), np.zeros((1, 1))).estimate(example())


def test_for_arms_that_cannot_be_written_to_nothing_is_compiled_once_more():
    known, treated = example().cells, example().treated.copy()
    influences, kernels = influence(known, treated, 0), len(balanced._all_influences.overloads)
    treated.flags.writeable = False
    np.testing.assert_array_equal(influence(known, treated, 0), influences)
    assert len(balanced._all_influences.overloads) == kernels
