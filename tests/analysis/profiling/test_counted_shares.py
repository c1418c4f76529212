"""Intervals from samples counted part by part, beside those from a table of all keys and visits."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling import counted_shares
from analysis.profiling import database as databases
from analysis.profiling.counted_shares import counted_moments
from analysis.profiling.database import Database
from analysis.profiling.intervals import share_intervals
from analysis.profiling.query import Query, QueryError
from tests.helpers.profile_tables import random_tables, write_folder

QUERIES = (
    Query(by=("function",)),
    Query(by=("function", "application")),
    Query(by=("platform", "line", "image")),
    Query(by=("machine",)),
    Query(by=()),
    Query("instructions", ("function",), since_s=40_000.0),
)


@pytest.fixture(scope="module")
def databases_of(tmp_path_factory):
    folders = [write_folder(tmp_path_factory.mktemp("p") / str(seed), random_tables(seed)) for seed in (1, 2)]
    with Database(folders[:1]) as one, Database(folders) as two:
        yield one, two


@pytest.mark.parametrize("dense", [0, 1_000_000])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_they_are_those_of_a_table_of_all_pairs(databases_of, monkeypatch, query, dense):
    monkeypatch.setattr(counted_shares, "_PER_PART", 7)
    monkeypatch.setattr(counted_shares, "_DENSE", dense)
    for database in databases_of:
        if not database.total(query)[0]:
            continue
        moments = counted_moments(database, query)
        if not query.by:
            assert moments.share.tolist() == [1.0]
            continue
        names = list(query.by)
        expected = share_intervals(database.clustered(query, "visit"), cluster="visit").set_index(names).sort_index()
        answer = moments.intervals(0.95).set_index(names).sort_index()
        pd.testing.assert_frame_equal(answer, expected, rtol=1e-9, atol=1e-15, check_index_type=False)
        assert (np.diff(moments.share) <= 0).all()


def test_too_many_keys_are_refused(databases_of, monkeypatch):
    monkeypatch.setattr(counted_shares, "_DENSE", 0)
    monkeypatch.setattr(databases, "MOST_ROWS", 2)
    with pytest.raises(QueryError, match="more than 2 rows"):
        counted_moments(databases_of[0], Query(by=("function", "line")))
