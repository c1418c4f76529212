import numpy as np
import pytest

from analysis.profiling.affinity.effects import fit, left_out
from analysis.profiling.affinity.table import AffinityTable
from analysis.profiling.affinity.terms import EFFECTS, terms_of, without
from tests.helpers.modelled_jobs import NAMES, modelled_rows


def test_effects_and_their_errors_are_those_of_a_written_out_regression():
    rows = modelled_rows(1, 12, departure=0.1)
    table = AffinityTable.of(rows)
    spread, effects, square = fit(terms_of(table, EFFECTS))
    jobs, platforms = len(table.jobs), len(NAMES)
    every = np.array(
        [[np.eye(jobs + platforms)[[j, jobs + i]].sum(axis=0) for i in range(platforms)] for j in range(jobs)]
    )
    seen = np.isfinite(table.cpi)
    weight = 1.0 / ((table.cpi_se[seen] / table.cpi[seen]) ** 2 + spread)
    covariance = np.linalg.pinv(every[seen].T @ (every[seen] * weight[:, None]))
    beta = covariance @ (every[seen].T @ (weight * np.log(table.cpi[seen])))
    np.testing.assert_allclose(effects, every @ beta, atol=1e-7)
    np.testing.assert_allclose(square, np.einsum("jik,kl,jil->ji", every, covariance, every), rtol=1e-6)
    residual = np.log(table.cpi[seen]) - (every @ beta)[seen]
    assert (weight * residual**2).sum() == pytest.approx(seen.sum() - jobs - platforms + 1, rel=1e-6)


def test_errors_of_cells_left_out_are_those_of_a_table_without_them():
    rows = modelled_rows(2, 10, departure=0.1, hidden=0.0)
    table = AffinityTable.of(rows)
    terms, less = terms_of(table, EFFECTS), terms_of(without(table, 2), EFFECTS, table)
    spread = fit(terms)[0]
    effect, square = left_out(terms, less, 2, np.array([4]), spread)
    rows.loc[4 * len(NAMES) + 2, ["cpi", "load"]] = np.nan, 0.0
    again = terms_of(AffinityTable.of(rows), EFFECTS)
    other = left_out(again, again, 2, np.array([4]), spread)
    assert effect == pytest.approx(other[0], rel=1e-9)
    assert square == pytest.approx(other[1], rel=1e-9)
