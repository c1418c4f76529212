"""Matched pairs: unbiased with the right variance over all coins, exact without noise, honest on made-up fleets."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells
from analysis.effects.estimators.paired import Paired, matched, tossed
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.effect_studies import small_study as example


def fleet(off, on, x=None, quota=None):
    """Cells of one job with an instance on every machine."""
    rows = pd.DataFrame({"job": "a", "machine": range(len(off)), "quota": 1.0, "off": off, "on": on})
    if x is not None:
        rows["x0"] = x
    if quota is not None:
        rows = rows.assign(job=[f"job {k}" for k in range(len(off))])
    jobs = pd.DataFrame({"job": rows["job"].unique(), "quota": 1.0 if quota is None else quota, "scale": 1.0})
    return cells(rows, jobs)


def coins(pairs, number):
    """Every draw there is: each choice of pairs, each way that their coins may fall."""
    draws = []
    for chosen in combinations(range(len(pairs)), number):
        for sides in product((0, 1), repeat=number):
            draw = np.zeros(pairs.max() + 1, dtype=bool)
            draw[[pairs[pair][side] for pair, side in zip(chosen, sides, strict=True)]] = True
            draws.append(draw)
    return np.array(draws)


@pytest.mark.parametrize("number", [3, 4, 5])
def test_over_all_draws_there_is_no_bias_and_the_variance_is_what_pairs_say(number):
    """Differences are so small that ratios are linear; effects are alike, so nothing of the variance is hidden."""
    rng = stream(1, "tiny fleet")
    off = 1.0 + 1e-4 * rng.standard_normal(10)
    pairs = np.arange(10).reshape(5, 2)
    found = Paired(pairs).many(fleet(off, off + 0.02), coins(pairs, number))
    assert found.change.mean() == pytest.approx(0.02 / off.mean(), abs=1e-8)
    exact = float(np.mean((found.change - found.change.mean()) ** 2))
    assert np.mean(found.error**2) == pytest.approx(exact, rel=1e-3)
    assert set(found.freedom) == {number - 1.0}


def test_effects_that_differ_between_pairs_widen_by_what_a_sample_of_them_would():
    """Of all pairs of a fleet: the mean square of errors is the variance plus Σ(τ − τ̄)² / (n (n − 1)) (Imai 2008)."""
    rng = stream(2, "tiny fleet")
    off = 1.0 + 1e-4 * rng.standard_normal(12)
    effect = np.repeat(1e-4 * rng.standard_normal(6), 2)
    pairs = np.arange(12).reshape(6, 2)
    found = Paired(pairs).many(fleet(off, off + effect), coins(pairs, 6))
    exact = float(np.mean((found.change - found.change.mean()) ** 2))
    hidden = float(((effect[::2] - effect.mean()) ** 2).sum() / 30)
    assert np.mean(found.error**2) == pytest.approx(exact + hidden, rel=2e-3)


def test_without_noise_the_change_is_exact_whatever_machines_hold():
    rng = stream(3, "quota")
    quota = rng.uniform(1, 9, 20)
    off = rng.uniform(1, 2, 20)
    known = fleet(np.ones(20), np.full(20, 1.07), quota=quota)
    pairs = matched(off[:, None])
    draws = np.stack([tossed(pairs, 6, 20, rng) for _ in range(5)])
    found = Paired(pairs).many(known, draws)
    np.testing.assert_allclose(found.change, 0.07, atol=1e-12)
    np.testing.assert_allclose(found.error, 0.0, atol=1e-12)


def test_what_a_covariate_tells_is_taken_out():
    rng = stream(4, "covariate")
    x = rng.standard_normal(60)
    off = 1.0 + 0.05 * x + 0.001 * rng.standard_normal(60)
    pairs = rng.permutation(60).reshape(30, 2)
    draws = np.stack([tossed(pairs, 10, 60, rng) for _ in range(40)])
    plain, adjusted = (Paired(pairs).many(fleet(off, 1.1 * off, *known), draws) for known in ((), (x,)))
    assert adjusted.error.max() < 0.25 * plain.error.min()
    assert np.abs(adjusted.change - 0.1).max() < 0.01


@pytest.mark.statistical
def test_intervals_hold_the_truth_of_a_made_up_fleet():
    """2,000 draws of 15 of 100 pairs, 95% ± 0.5: below 93.0% or above 97.0% once in 20,000 seeds."""
    rng = stream(5, "coverage")
    off = np.exp(0.1 * rng.standard_normal(200))
    on = off * (1.02 + 0.02 * rng.standard_normal(200))
    known = fleet(off, on, x=0.7 * (off - 1) + 0.05 * rng.standard_normal(200))
    pairs = matched((off + 0.05 * rng.standard_normal(200))[:, None])
    found = Paired(pairs).many(known, np.stack([tossed(pairs, 15, 200, rng) for _ in range(2000)]))
    truth = on.sum() / off.sum() - 1
    assert (np.abs(found.change - truth) <= found.margin()).mean() == pytest.approx(0.95, abs=0.02)
    assert found.error.mean() == pytest.approx(found.change.std(), rel=0.1)


def test_partners_are_near_to_each_other_and_of_one_stratum():
    rng = stream(6, "pairs")
    aux, stratum = rng.standard_normal((301, 2)), rng.integers(3, size=301)
    pairs = matched(aux, stratum)
    assert len(set(pairs.ravel())) == pairs.size
    assert (stratum[pairs[:, 0]] == stratum[pairs[:, 1]]).all()
    assert len(pairs) == sum(count // 2 for count in np.bincount(stratum))
    apart = np.linalg.norm(aux[pairs[:, 0]] - aux[pairs[:, 1]], axis=1)
    shuffled = np.linalg.norm(aux[pairs[:, 0]] - aux[rng.permutation(pairs[:, 1])], axis=1)
    assert apart.mean() < 0.4 * shuffled.mean()


def nearest_first(values):
    """Greedy matching by brute force."""
    free, made = set(range(len(values))), []
    while len(free) > 1:
        a, b = min(combinations(sorted(free), 2), key=lambda pair: abs(values[pair[0]] - values[pair[1]]))
        made.append((a, b))
        free -= {a, b}
    return sorted(made)


def test_the_nearest_are_paired_first():
    values = stream(7, "greedy").standard_normal(12)
    assert sorted(map(tuple, matched(values[:, None]).tolist())) == nearest_first(values)


def test_machines_all_alike_are_paired_too():
    assert len(set(matched(np.ones((31, 2))).ravel())) == 30


def test_pairs_and_sides_are_drawn_alike():
    rng = stream(8, "coins")
    pairs = np.arange(8).reshape(4, 2)
    draws = np.stack([tossed(pairs, 2, 9, rng) for _ in range(4000)])
    assert (draws.sum(axis=1) == 2).all()
    assert not (draws[:, 0::2][:, :4] & draws[:, 1::2]).any()
    np.testing.assert_allclose(draws[:, :8].mean(axis=0), 0.25, atol=0.03)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [([[0, 2], [1, 3], [4, 5]], "both machines of a pair"), ([[0, 1], [2, 3]], "a machine that is in no pair")],
)
def test_draws_that_do_not_fit_the_pairs_are_refused(pairs, told):
    with pytest.raises(ValueError, match=told):
        Paired(np.array(pairs)).estimate(example())


def test_too_few_pairs_are_refused():
    study = example()
    alone = np.zeros(12, dtype=bool)
    alone[[0, 2]] = True
    known = type(study)(study.cells, alone, study.design)
    with pytest.raises(NotEnoughDataError):
        Paired(np.arange(12).reshape(6, 2)).estimate(known)
    assert np.isnan(Paired(np.arange(12).reshape(6, 2)).many(study.cells, alone[None, :]).change).all()
    with pytest.raises(NotEnoughDataError):
        tossed(np.arange(4).reshape(2, 2), 3, 4, stream(1, "few"))


def test_what_is_not_finite_is_told_with_its_machine():
    with pytest.raises(ValueError, match="variable 1 of machine 2 must be finite, got nan"):
        matched(np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nan]]))
