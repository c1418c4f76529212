import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import Delaunay

from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.split import halves, outside_hull, split


def log_of(intervals):
    values = np.arange(float(intervals))
    return ServiceLog(("a",), 30.0, 30 * values, values[:, None], values, values[:, None], values, values)


def test_the_halves_are_the_earlier_and_the_later_intervals():
    train, test = halves(log_of(5))
    assert train.start_s.tolist() == [0, 30]
    assert test.start_s.tolist() == [60, 90, 120]
    assert test.counts[:, 0].tolist() == test.instructions.tolist() == test.misses[:, 0].tolist() == [2, 3, 4]


def test_a_share_comes_first():
    train, test = split(log_of(10), "share:0.8")
    assert (len(train.start_s), len(test.start_s)) == (8, 2)


@pytest.mark.parametrize("how", ["random", "random:0.5"])
def test_a_random_split_is_refused_with_the_reason(how):
    with pytest.raises(ValueError, match="intervals next to each other have nearly the same mix"):
        split(log_of(10), how)


@pytest.mark.parametrize(
    "how", ["", "share", "share:", "share:0", "share:1", "share:-0.5", "share:x", "share:nan", "5"]
)
def test_an_unknown_split_is_refused(how):
    with pytest.raises(ValueError, match="split must be halves or share:S"):
        split(log_of(10), how)


@pytest.mark.parametrize(("intervals", "how"), [(0, "halves"), (1, "halves"), (3, "share:0.2")])
def test_a_split_leaves_something_on_both_sides(intervals, how):
    with pytest.raises(ValueError, match="must leave intervals to fit to and to judge on"):
        split(log_of(intervals), how)


def test_the_hull_is_that_of_a_triangulation_in_the_plane():
    rng = np.random.default_rng(1)
    train, test = rng.normal(size=(40, 2)), 1.5 * rng.normal(size=(200, 2))
    assert outside_hull(train, test) == (Delaunay(train).find_simplex(test) < 0).mean()


def test_the_hull_is_that_of_linear_programming_among_counts():
    rng = np.random.default_rng(2)
    train, test = rng.poisson(9.0, (80, 4)).astype(float), rng.poisson(9.0, (60, 4)).astype(float)
    corners = np.vstack([train.T, np.ones(len(train))])
    infeasible = [linprog(np.zeros(80), A_eq=corners, b_eq=[*mix, 1.0]).status == 2 for mix in test]
    assert 0.2 < np.mean(infeasible) < 0.9
    assert outside_hull(train, test) == np.mean(infeasible)


def test_training_mixes_and_their_means_are_inside_whatever_their_units():
    train = np.random.default_rng(3).poisson(9.0, (50, 6)) * np.array([1.0, 1e9, 1e-9, 1.0, 0.0, 1.0])
    assert outside_hull(train, train) == 0
    assert outside_hull(train, (train[:25] + train[25:]) / 2) == 0


def test_a_type_that_never_came_is_outside():
    assert outside_hull(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[2.0, 0.0], [2.0, 0.5], [2.0, 0.1]])) == 2 / 3


def test_a_single_training_mix_holds_itself_alone():
    assert outside_hull(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [2.0, 4.0]])) == 0.5


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (np.ones((2, 2)), np.ones((2, 3)), r"must be \(n, J\) and \(m, J\)"),
        (np.ones((0, 2)), np.ones((2, 2)), "n, m and J above 0"),
        (np.ones((2, 2)), np.ones((0, 2)), "n, m and J above 0"),
        (np.ones(2), np.ones((2, 2)), r"must be \(n, J\) and \(m, J\)"),
        (np.ones((2, 2)), np.full((2, 2), np.nan), "counts must be finite"),
    ],
)
def test_mixes_that_cannot_be_compared_are_refused(train, test, message):
    with pytest.raises(ValueError, match=message):
        outside_hull(train, test)
