"""Samples counted in one pass are those that the database sums, however they are cut into parts and put away."""

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.profiling import counted as module
from analysis.profiling import row_groups
from analysis.profiling.database import Database
from analysis.profiling.query import Query
from analysis.profiling.storage import Folder, ProfileError
from tests.helpers.profile_tables import random_tables, write_folder

BY = ("application", "machine", "function", "image")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two profiles that are put together; samples in no order, so that entries of a key do not follow each other."""
    tables = [random_tables(seed, rows=4000, visits=30, processes=90, locations=40) for seed in (5, 6)]
    return [write_folder(tmp_path_factory.mktemp("counted"), own) for own in tables], tables


@pytest.mark.parametrize(("parts", "pending"), [(1, 10**6), (3, 1)])
def test_parts_have_the_sums_of_a_query(folders, monkeypatch, parts, pending):
    monkeypatch.setattr(module, "_PENDING", pending)
    monkeypatch.setattr(row_groups, "_ROWS_AT_ONCE", 1000)
    query = Query("cycles", BY).restricted("platform", "rome")
    with Database(folders[0]) as database:
        whole = database.query(query).set_index(list(BY)).sort_index()
        samples = database.counted(query, lambda keys: keys["machine"].to_numpy(np.int64) % parts)
    rows = []
    for part in range(parts):
        entries = samples.entries(part)
        keys, places = samples.keys.iloc[entries.key], samples.places.iloc[entries.place]
        assert set(keys["machine"] % parts) <= {part}
        assert not pd.Series(zip(entries.key, entries.place, strict=True)).duplicated().any()
        assert (np.diff(entries.key) >= 0).all()
        raw = samples.raw(part)
        for amounts in ("samples", "value"):
            again = pd.Series(getattr(raw, amounts)).groupby([raw.key, raw.place]).sum()
            assert again.tolist() == getattr(entries, amounts).tolist()
        named = {name: (keys if name in keys else places)[name].to_numpy() for name in BY}
        rows.append(pd.DataFrame({**named, "samples": entries.samples, "value": entries.value}))
    sums = pd.concat(rows).groupby(list(BY)).sum().sort_index()
    assert samples.samples == int(whole["samples"].sum())
    pd.testing.assert_frame_equal(sums, whole[["samples", "value"]].astype(float), check_index_type=False)


def test_numbers_may_be_far_apart_and_row_groups_of_one_event(tmp_path):
    tables = random_tables(8, rows=4000, visits=30, processes=90, locations=40)
    for name in ("processes", "samples"):
        tables[name] = tables[name].assign(process=tables[name]["process"] * 20_000_000)
    folder = write_folder(tmp_path, tables)
    rows = pq.read_table(folder / "samples.parquet").sort_by([("event", "ascending"), ("process", "ascending")])
    parts = [rows.filter(pc.equal(rows["event"], event)) for event in pc.unique(rows["event"])]
    with pq.ParquetWriter(folder / "samples.parquet", rows.schema) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=300)
    query = Query("cycles", ("function", "machine")).during(2 * 86400.0, 9 * 86400.0)
    with Database([folder]) as database:
        assert Folder(folder).events() == set(pc.unique(rows["event"]).to_pylist()) == set(database.events())
        whole = database.query(query)
        samples = database.counted(query, lambda keys: np.zeros(len(keys), dtype=np.int64))
    entries = samples.entries(0)
    assert (len(whole) > 0, samples.samples) == (True, int(whole["samples"].sum()))
    machine = samples.keys["machine"].to_numpy()[entries.key]
    by_machine = pd.Series(entries.value).groupby(machine).sum()
    assert by_machine.to_dict() == whole.groupby("machine")["value"].sum().to_dict()


def test_samples_without_a_rate_are_refused(folders, tmp_path):
    tables = dict(folders[1][0])
    tables["rates"] = tables["rates"][tables["rates"]["event"] != "cycles"]
    with Database([write_folder(tmp_path, tables)]) as database, pytest.raises(ProfileError, match="no period of"):
        database.counted(Query("cycles", ("application",)), lambda keys: np.zeros(len(keys), dtype=np.int64))


def test_a_question_without_samples_has_no_entries(folders):
    query = Query("cycles", ("function", "application")).during(1e9, None)
    with Database(folders[0]) as database:
        samples = database.counted(query, lambda keys: np.zeros(len(keys), dtype=np.int64))
    assert samples.samples == 0
    assert len(samples.entries(0).key) == 0


def test_sums_of_small_counts_may_be_large(tmp_path, monkeypatch):
    """Counts whose sums fit in 32 bits within what is read at once, but not over all of it."""
    monkeypatch.setattr(module, "_PENDING", 1)
    monkeypatch.setattr(row_groups, "_ROWS_AT_ONCE", 500)
    tables = random_tables(7, rows=4000, visits=1, processes=1, locations=2)
    tables["samples"] = tables["samples"].assign(count=2**21)
    query = Query("cycles", ("function",))
    with Database([write_folder(tmp_path, tables)]) as database:
        whole = database.query(query)
        samples = database.counted(query, lambda keys: np.zeros(len(keys), dtype=np.int64))
    entries = samples.entries(0)
    assert entries.samples.sum() == whole["samples"].sum() == samples.samples
    assert entries.value.sum() == pytest.approx(float(whole["value"].sum()))
