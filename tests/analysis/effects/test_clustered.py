"""Standard errors of clustered sums: degrees of freedom, both arms, and too few clusters."""

import numpy as np
import pytest

from analysis.effects.clustered import How, standard_error


def error(squares, clusters, left=0.0, few=False, known=False):
    return standard_error(np.array(squares), np.array(clusters), left, How(0.5, few, known, False))


def test_degrees_of_freedom_are_never_fewer_than_those_of_the_smaller_arm_nor_more_than_of_both():
    for other in (1e-9, 1.0, 1e9):
        _, freedom = error([other, 1.0], [3.0, 50.0])
        assert 2.0 - 1e-9 <= freedom <= 51.0 + 1e-9
    assert error([1e9, 1.0], [3.0, 50.0])[1] == pytest.approx(2.0)
    assert error([1e-9, 1.0], [3.0, 50.0])[1] == pytest.approx(49.0)
    assert error([4.0, 4.0], [11.0, 11.0])[1] == pytest.approx(20.0)


def test_errors_add_up_over_arms_and_what_is_left():
    assert error([1.0, 2.0], [5.0, 9.0], left=6.0)[0] == pytest.approx(3.0)
    assert error([1.0, 2.0], [5.0, 9.0], few=True)[0] ** 2 == pytest.approx(1.25 + 2.25)
    assert error([1.0, 4.0], [5.0, 9.0], known=True) == pytest.approx((2.0, 8.0))


def test_one_cluster_is_no_answer_unless_its_arm_is_not_needed():
    assert np.isnan(error([1.0, 1.0], [1.0, 9.0])).all()
    assert np.isnan(error([1.0, 1.0], [9.0, 1.0])).all()
    assert np.isfinite(error([0.0, 1.0], [0.0, 9.0], known=True)).all()
    assert error([0.0, 0.0], [9.0, 9.0])[0] == 0.0
