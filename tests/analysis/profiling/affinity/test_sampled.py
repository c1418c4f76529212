import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.sampled import aligned, table_of, true_table
from analysis.profiling.affinity.table import Table
from analysis.profiling.affinity.trial import trial
from analysis.profiling.database import Database
from tests.helpers.affinities import random_table
from tests.helpers.profile_tables import long_form, random_tables, write_folder


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = random_tables(3, rows=6000, visits=80, processes=300)
    folder = write_folder(tmp_path_factory.mktemp("profile"), tables)
    rows = long_form(tables).query("collection == 'fleet' and application != '[kernel]'")
    with Database([folder]) as database:
        yield database, rows, pd.DataFrame(tables["visits"])


def summed(rows):
    return rows.pivot_table("value", ["application", "platform"], "event", "sum")


def test_the_table_of_a_profile_is_that_of_its_samples_put_together_by_hand(profile):
    database, rows, visits = profile
    found = table_of(database).set_index(["job", "platform"])
    sums = summed(rows)
    for key, row in sums.iterrows():
        assert found.loc[key, "load"] == row["instructions"]
        assert found.loc[key, "cpi"] == pytest.approx(row["cycles"] / row["instructions"])
        assert found.loc[key, "capacity"] == sums.xs(key[1], level="platform")["cycles"].sum()
        per_visit = rows.query("event == 'instructions' and application == @key[0] and platform == @key[1]")
        squares = (per_visit.groupby("visit")["value"].sum().astype(float) ** 2).sum()
        assert found.loc[key, "load_se"] == pytest.approx(np.sqrt(squares))
    assert len(found) == len(sums)
    assert (found["clock_hz"] == visits["frequency_hz"].iloc[0]).all()
    assert (found["cpi_se"] > 0).all()


def test_clocks_are_of_the_fleet_and_weigh_what_a_visit_stands_for(tmp_path):
    tables = random_tables(4, rows=4000, visits=12, processes=60)
    tables["visits"] = tables["visits"].assign(
        **{
            "collection": ["watch"] + ["fleet"] * 11,
            "platform": ["rome"] * 6 + ["haswell"] * 6,
            "frequency_hz": [9e9, 1e9, 3e9, 7e9, 0.0, 1e9, *[2e9] * 6],
            "weight": [100, 1, 3, 5, 100, 1, *[1] * 6],
            "length_s": [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, *[1.0] * 6],
            "status": ["ok", "ok", "ok", "failed", "ok", "ok", *["ok"] * 6],
        }
    )
    with Database([write_folder(tmp_path, tables)]) as database:
        found = table_of(database).groupby("platform")["clock_hz"].unique()
    assert found["haswell"].tolist() == [2e9]
    assert found["rome"].tolist() == [(1e9 + 2 * 3 * 3e9 + 1e9) / 8]


def registered(tables):
    """The tables with as many machines as visits, all of one day, and a register that knows twice as many haswells."""
    visits = tables["visits"].assign(collection="fleet", start_s=0.0, weight=12)
    visits = visits.assign(machine=visits["visit"], length_s=300.0)
    haswells = int((visits["platform"] == "haswell").sum())
    platform = pd.concat([visits["platform"].astype(str), pd.Series(["haswell"] * haswells)], ignore_index=True)
    machines = {
        "machine": range(len(platform)),
        "rack": 0,
        "power_domain": 0,
        "platform": platform,
        "vcpus": 64,
        "memory_bytes": 1e9,
        "feature": False,
        "feature_from_s": np.nan,
    }
    return tables | {"visits": visits}, pd.DataFrame(machines)


def test_platforms_are_as_large_as_the_register_of_machines_says(tmp_path):
    tables, machines = registered(random_tables(3, rows=6000, visits=80, processes=300))
    plain = write_folder(tmp_path / "plain", tables)
    known = write_folder(tmp_path / "known", tables | {"machines": machines})
    with Database([plain]) as database:
        before = table_of(database).set_index(["job", "platform"])
    with Database([known]) as database:
        after = table_of(database).set_index(["job", "platform"])
    count = tables["visits"]["platform"].value_counts()
    size = machines["platform"].value_counts()
    factor = size / size.sum() * count.sum() / count
    assert factor["haswell"] > 1 > factor["rome"]
    times = factor[before.index.get_level_values("platform")].to_numpy()
    np.testing.assert_allclose(after["load"], before["load"] * times)
    np.testing.assert_allclose(after["capacity"], before["capacity"] * times)
    np.testing.assert_allclose(after["cpi"], before["cpi"])
    visits = count[before.index.get_level_values("platform")].to_numpy()
    square = (before["load_se"] ** 2 - before["load"] ** 2 / visits) * times**2
    np.testing.assert_allclose(after["load_se"], np.sqrt(square))


def test_the_true_table_keeps_pairs_that_never_ran_as_unobserved():
    truth = pd.DataFrame({"application": ["a", "b", "b"], "platform": ["p", "p", "q"], "cycles": [2.0, 3.0, 8.0]})
    made = true_table(truth.assign(instructions=1.0), pd.DataFrame({"platform": ["p"], "clock_hz": [2e9]}))
    assert made.unobserved.tolist() == [[False, True], [False, False]]
    assert made.capacity.tolist() == [5.0, 8.0]
    assert made.clock.tolist() == [2e9, 2e9]


def test_a_trial_of_the_truth_itself_misses_nothing(profile):
    database, rows, _ = profile
    sums = summed(rows).reset_index()
    made = trial(database, sums)
    assert (made.jobs, made.platforms) == (2, 2)
    assert made.saved <= made.gain + made.capacity_excess + 1e-9
    assert 0 <= made.anneal_gap <= 1e-3


def test_shares_follow_their_names():
    table = random_table(1, 5, 3)
    order = np.array([3, 0, 4, 2, 1])
    names = tuple(table.jobs[j] for j in order), table.platforms[::-1]
    other = Table(*names, *(part[order][:, ::-1] for part in (table.load, table.cpi, table.cpi_se, table.allowed)),
                  table.capacity[::-1])  # fmt: skip
    assert (aligned(table.load, table, other) == other.load).all()
