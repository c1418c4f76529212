"""Balanced selection: against a slow readable cube, all samples of tiny populations, and theory."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

from analysis.effects.cube import (
    BalanceError,
    balancing_variables,
    select,
    selections,
    total_variance,
)
from analysis.effects.estimators.balanced import imbalance
from analysis.statistics import NotEnoughDataError


def direction_of(rows):
    """How to move the first machines so that no weighted sum changes: the first that depends on others moves by 1."""
    for k in range(1, len(rows) + 1):
        if np.linalg.matrix_rank(rows[:k]) < k:
            return np.append(np.linalg.lstsq(rows[: k - 1].T, -rows[k - 1], rcond=None)[0], 1.0)
    return None


def moves(chance, line, rows):
    """Both ends of the way along the direction, as (chances, probability of this end)."""
    step = direction_of(rows)
    if step is None:
        return None
    ends = []
    for sign in (1, -1):
        room = [(1 - chance[m]) / s if s > 0 else -chance[m] / s for m, s in zip(line, sign * step, strict=False) if s]
        moved = chance.copy()
        moved[line[: len(step)]] += sign * min(room) * step
        ends.append((np.where(abs(moved - moved.round()) < 1e-9, moved.round(), moved), min(room)))
    (up, ahead), (down, back) = ends
    return (up, back / (ahead + back)), (down, ahead / (ahead + back))


def cube(aux, probability, order, decide):
    """All ends of the cube method, by `decide`: which of two moves, or both, are followed."""
    scaled = np.column_stack([np.ones(len(probability)), aux / probability[:, None]])

    def follow(chance, columns, weight):
        line = [m for m in order if 0 < chance[m] < 1][: columns + 1]
        if not line:
            yield chance.astype(bool), weight
            return
        ends = moves(chance, line, scaled[line, :columns])
        if ends is None:
            yield from follow(chance, columns - 1, weight)
            return
        for moved, share in decide(ends):
            yield from follow(moved, columns, weight * share)

    return follow(probability.copy(), scaled.shape[1], 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_the_selection_is_that_of_a_slow_readable_cube(seed):
    rng = np.random.default_rng(seed)
    aux, probability = rng.normal(size=(40, 1 + seed % 4)), rng.uniform(0.05, 0.6, 40)
    twin = np.random.default_rng(100 + seed)
    order, uniform = twin.permutation(40), iter(twin.random(40))

    def decide(ends):
        return [ends[0] if next(uniform) < ends[0][1] else ends[1]]

    ((expected, _),) = cube(aux, probability, order, decide)
    assert select(aux, probability, np.random.default_rng(100 + seed)).tolist() == expected.tolist()


@pytest.mark.statistical
def test_every_sample_of_a_tiny_population_is_as_likely_as_theory_says():
    """All orders and all ways of the cube are enumerated; a chi-square test with a false-alarm rate of 1 in 10,000."""
    aux, probability = np.array([[1.0], [2.0], [4.0], [3.0], [7.0]]), np.array([0.3, 0.5, 0.4, 0.6, 0.2])
    exact = np.zeros(32)
    for order in permutations(range(5)):
        for chosen, weight in cube(aux, probability, order, list):
            exact[np.dot(chosen, 1 << np.arange(5))] += weight / 120
    bits = (np.arange(32)[:, None] >> np.arange(5)) & 1
    np.testing.assert_allclose(exact @ bits, probability, atol=1e-12)
    drawn = selections(aux, probability, 20_000, np.random.default_rng(3)) @ (1 << np.arange(5))
    seen = np.bincount(drawn, minlength=32)
    possible = exact > 1e-12
    assert seen[~possible].sum() == 0
    distance = ((seen - 20_000 * exact)[possible] ** 2 / (20_000 * exact[possible])).sum()
    assert distance < chi2.ppf(1 - 1e-4, possible.sum() - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("equal", [True, False])
def test_inclusion_probabilities_are_those_asked_for(equal):
    """Exact binomial bounds for 80 machines together; false-alarm rate at most 1 in 1,000 each."""
    rng = np.random.default_rng(5)
    probability = np.full(80, 0.25) if equal else rng.uniform(0.02, 0.5, 80)
    probability *= round(probability.sum()) / probability.sum()
    chosen = selections(np.exp(rng.normal(size=(80, 6))), probability, 5_000, rng)
    assert set(chosen.sum(axis=1)) == {round(probability.sum())}
    low, high = binom.interval(1 - 1e-3 / 80, 5_000, probability)
    times = chosen.sum(axis=0)
    assert ((low <= times) & (times <= high)).all()


def test_balance_is_kept_but_for_what_the_landing_rounds():
    rng = np.random.default_rng(7)
    aux, probability = rng.normal(3.0, 1.0, (3000, 8)), rng.uniform(0.02, 0.1, 3000)
    expanded = aux / probability[:, None]
    for chosen in selections(aux, probability, 5, rng):
        missed = abs(expanded[chosen].sum(axis=0) - aux.sum(axis=0))
        assert (missed <= 9 * abs(expanded).max(axis=0)).all()
        assert (missed / aux.sum(axis=0)).max() < 0.1


def test_earlier_variables_are_balanced_better():
    rng = np.random.default_rng(8)
    aux = rng.normal(size=(500, 15))
    left = np.diag(imbalance(aux, selections(aux, np.full(500, 0.1), 300, rng)))
    assert left[:3].mean() < 0.6 * left[-3:].mean()


def test_dependent_variables_and_certain_machines_do_no_harm():
    rng = np.random.default_rng(9)
    load = rng.normal(size=(50, 1))
    probability = np.r_[0.0, 1.0, np.full(48, 0.25)]
    chosen = select(np.column_stack([load, 2 * load, np.ones(50), np.zeros(50)]), probability, rng)
    assert chosen.sum() == 13
    assert chosen[:2].tolist() == [False, True]


@pytest.mark.parametrize(
    ("aux", "probability", "words"),
    [
        (np.ones((3, 1)), np.array([0.5, 1.5, 0.5]), "probability of machine 1 must be within 0..1, got 1.5"),
        (np.ones((3, 1)), np.array([0.5, 0.5, np.nan]), "machine 2"),
        (np.array([[1.0], [np.inf]]), np.full(2, 0.5), "balancing variable 0 of machine 1 must be finite, got inf"),
        (np.ones((3, 1)), np.full(2, 0.5), "do not fit"),
    ],
)
def test_what_cannot_be_used_is_named(aux, probability, words):
    with pytest.raises(BalanceError, match=words):
        select(aux, probability, np.random.default_rng(1))


def test_without_variables_the_variance_is_that_of_simple_random_selection():
    rng = np.random.default_rng(11)
    value, chosen = rng.normal(size=100), rng.permutation(100) < 20
    expected = 100**2 * (1 - 0.2) * np.var(value[chosen], ddof=1) / 20
    assert total_variance(value, np.zeros((100, 0)), np.full(100, 0.2), chosen) == pytest.approx(expected)
    with pytest.raises(NotEnoughDataError, match="23 selected machines are needed, 20 given"):
        total_variance(value, rng.normal(size=(100, 21)), np.full(100, 0.2), chosen)


@pytest.mark.statistical
def test_the_variance_of_a_total_is_what_repeated_selections_show():
    """The ratio of estimated to true variance has a standard error of 4%; more than 4 of them: 1 in 10,000."""
    rng = np.random.default_rng(12)
    aux, probability = np.exp(0.5 * rng.normal(size=(600, 4))), rng.uniform(0.1, 0.3, 600)
    value = aux @ np.array([1.0, -2.0, 3.0, 1.0]) + rng.normal(size=600)
    chosen = selections(aux, probability, 1_500, rng)
    truth = np.mean((chosen @ (value / probability) - value.sum()) ** 2)
    estimated = np.mean([total_variance(value, aux, probability, one) for one in chosen[:300]])
    assert estimated / truth == pytest.approx(1.0, abs=0.16)


def test_balancing_variables_are_sums_over_the_rows_of_a_machine():
    rng = np.random.default_rng(16)
    rows = pd.DataFrame(
        {
            "period": rng.integers(2, size=60),
            "job": rng.choice(["a", "b", "c"], 60),
            "machine": rng.integers(7, size=60),
        }
    ).assign(weight=rng.uniform(1, 2, 60), value=rng.uniform(1, 2, 60), cpu_s=rng.uniform(1, 2, 60))
    rows["platform"] = np.where(rows["machine"] < 3, "new", "old")
    made = balancing_variables(rows, heavyweights=2)
    heavy = sorted("abc", key=lambda job: -rows.loc[rows["job"] == job, "weight"].sum())[:2]
    assert made.columns.tolist() == [
        "machine", "quota", "load", "residual", "platform new", f"job {heavy[0]}", f"job {heavy[1]}"
    ]  # fmt: skip
    mean = {job: rows.loc[rows["job"] == job, "value"].mean() for job in "abc"}
    load = {machine: rows.loc[rows["machine"] == machine, "cpu_s"].sum() for machine in range(7)}
    for row in made.to_dict("records"):
        own = [one for one in rows.to_dict("records") if one["machine"] == row["machine"]]
        total = sum(one["weight"] for one in own)
        over = sum(one["weight"] * (one["value"] / mean[one["job"]] - 1) for one in own)
        assert row["quota"] == pytest.approx(total / 2)
        assert row["residual"] == pytest.approx(over / total)
        assert row["load"] == pytest.approx(load[row["machine"]] / np.mean(list(load.values())))
        assert row["platform new"] == (row["machine"] < 3)
        for job in heavy:
            assert row[f"job {job}"] == pytest.approx(sum(one["weight"] for one in own if one["job"] == job) / 2)
    with pytest.raises(NotEnoughDataError):
        balancing_variables(rows[:0])
