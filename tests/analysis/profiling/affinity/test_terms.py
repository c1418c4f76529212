import numpy as np
import pytest

from analysis.profiling.affinity.table import COUNTERS, Table
from analysis.profiling.affinity.terms import Structure, structure_of, terms_of, without
from tests.helpers.modelled_jobs import modelled_rows


@pytest.mark.parametrize(
    ("jobs", "counters", "misses", "expected"),
    [
        (8, True, False, "model"),
        (80, True, False, "model_slopes"),
        (8, False, True, "effects"),
        (80, False, True, "effects_slopes"),
        (80, False, False, "effects"),
    ],
)
def test_the_structure_is_the_richest_that_a_table_allows(jobs, counters, misses, expected):
    rows = modelled_rows(1, jobs)
    rows = rows.assign(misses=rows["llc_misses"].fillna(0.01)) if misses else rows
    assert structure_of(Table.of(rows if counters else rows.drop(columns=[*COUNTERS]))).name == expected


def test_features_of_a_job_know_nothing_of_a_platform_that_is_hidden():
    rows = modelled_rows(2, 80, departure=0.1, hidden=0.0)
    table, other = Table.of(rows), rows.copy()
    changed = rows["platform"].eq(table.platforms[1])
    other.loc[changed, ["cpi", "llc_misses", "load"]] *= 1.5
    both = Structure(model=True, slopes=True)
    one, two = (terms_of(without(each, 1), both, table) for each in (table, Table.of(other)))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.offset, two.offset)
    assert not one.seen[:, 1].any()
    assert one.seen[:, [0, 2, 3]].all()


def test_features_are_standardised_by_load():
    table = Table.of(modelled_rows(3, 80))
    found = terms_of(table, Structure(slopes=True)).features
    assert (found[:, 0] == 1.0).all()
    np.testing.assert_allclose(np.average(found[:, 1:], axis=0, weights=table.total), 0.0, atol=0.02)
    assert np.sqrt(np.average(found[:, 1:] ** 2, axis=0, weights=table.total)) == pytest.approx([1.0, 1.0], rel=0.05)
