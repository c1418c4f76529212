import numpy as np
import pytest

from analysis.profiling.affinity.shrinkage import estimate
from analysis.profiling.affinity.table import COUNTERS, AffinityTable
from analysis.profiling.affinity.terms import Structure, modelled, structure_of, terms_of, without
from tests.helpers.modelled_jobs import CLOCKS, NAMES, modelled_rows


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
    assert structure_of(AffinityTable.of(rows if counters else rows.drop(columns=[*COUNTERS]))).name == expected


def test_features_of_a_job_know_nothing_of_a_platform_that_is_hidden():
    rows = modelled_rows(2, 80, departure=0.1, hidden=0.0)
    table, other = AffinityTable.of(rows), rows.copy()
    changed = rows["platform"].eq(table.platforms[1])
    other.loc[changed, ["cpi", "llc_misses", "load"]] *= 1.5
    both = Structure(model=True, slopes=True)
    one, two = (terms_of(without(each, 1), both, table) for each in (table, AffinityTable.of(other)))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.offset, two.offset)
    assert not one.observed[:, 1].any()
    assert one.observed[:, [0, 2, 3]].all()


def test_features_are_standardised_by_load():
    table = AffinityTable.of(modelled_rows(3, 80))
    found = terms_of(table, Structure(slopes=True)).features
    assert (found[:, 0] == 1.0).all()
    np.testing.assert_allclose(np.average(found[:, 1:], axis=0, weights=table.total), 0.0, atol=0.02)
    assert np.sqrt(np.average(found[:, 1:] ** 2, axis=0, weights=table.total)) == pytest.approx([1.0, 1.0], rel=0.05)


@pytest.mark.parametrize("jobs", [12, 80])
def test_pairs_of_a_world_of_the_models_form_are_filled_exactly(jobs):
    rows = modelled_rows(1, jobs)
    table = AffinityTable.of(rows)
    found = estimate(table)
    truth = rows["truth"].to_numpy().reshape(jobs, len(NAMES))
    assert found.structure.name == ("model" if jobs == 12 else "model_slopes")
    assert table.unobserved.sum() > jobs / 2
    np.testing.assert_allclose(found.cpi, truth, rtol=1e-6)
    plain = estimate(AffinityTable.of(rows.drop(columns=[*COUNTERS])))
    assert plain.structure.name == "effects"
    assert np.abs(plain.cpi / truth - 1)[table.unobserved].mean() > 0.01


def test_a_platform_that_no_job_shares_has_the_spec_sheets_cpi_relative_to_others():
    rows = modelled_rows(2, 6, NAMES[:2], hidden=0.0)
    alone = rows["platform"].eq(NAMES[1]) & rows["job"].ne("job-0")
    rows.loc[alone, ["cpi", "cpi_se", *COUNTERS]] = np.nan
    rows.loc[alone, "load"] = 0.0
    only = rows["job"].eq("job-0") & rows["platform"].eq(NAMES[0])
    rows.loc[only, ["cpi", "cpi_se", *COUNTERS]] = np.nan
    rows.loc[only, "load"] = 0.0
    table = AffinityTable.of(rows)
    said, found = modelled(table), estimate(table).cpi
    ratio = (found / said)[:, 1] / (found / said)[:, 0]
    assert ratio == pytest.approx(np.full(6, ratio[0]), rel=1e-9)


def test_counters_that_are_zero_everywhere_or_platforms_without_spec_sheets_are_no_model():
    rows = modelled_rows(3, 6)
    assert modelled(AffinityTable.of(rows.assign(l2_misses=rows["l2_misses"] * 0.0))) is None
    assert modelled(AffinityTable.of(rows.replace(NAMES[0], "ours"))) is None
    assert modelled(AffinityTable.of(rows.drop(columns="mispredictions"))) is None
    assert modelled(AffinityTable.of(rows)) is not None


def test_a_platform_with_two_levels_of_caches_counts_the_first_and_the_last():
    names = ("pres", "haswell_2698v3")
    rows = modelled_rows(4, 3, names[1:], hidden=0.0)
    two = rows.assign(platform="pres", clock_hz=CLOCKS[1])
    two[["l1_misses", "llc_misses"]] = 0.05, 0.01
    found, other = (modelled(AffinityTable.of(two.assign(l2_misses=each))) for each in (0.01, 0.04))
    assert (found == other).all()


def test_a_job_with_less_counted_than_anybody_waits_less_but_not_never():
    rows = modelled_rows(5, 8, hidden=0.0)
    nothing = rows["job"].eq("job-3")
    rows.loc[nothing, ["l2_misses", "llc_misses"]] = 0.0
    found = modelled(AffinityTable.of(rows))
    assert np.isfinite(found).all()
    assert (found[3] < np.median(found, axis=0)).all()
