"""The greatest rows from samples counted part by part, beside those that DuckDB sums."""

import pandas as pd
import pytest

from analysis.profiling import counted
from analysis.profiling import database as databases
from analysis.profiling.database import Database
from analysis.profiling.query import Query
from tests.helpers.profile_tables import random_tables, write_folder

QUERIES = (
    Query(by=("function", "machine")),
    Query(by=("platform", "line", "application", "file")),
    Query("instructions", ("symbolised", "process"), since_s=40_000.0),
    Query("cpu_time", ("day", "image"), (("application", ("search", "mail")), ("function", ("deflate", "main")))),
)


@pytest.fixture(scope="module", params=[1, 2])
def folders(request, tmp_path_factory):
    """Counts are small, so that many rows have one value; two folders have other periods on one machine."""
    tables = [random_tables(seed, rows=900, visits=20, processes=40) for seed in range(request.param)]
    return [write_folder(tmp_path_factory.mktemp("p") / str(at), own) for at, own in enumerate(tables)]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_they_are_those_of_all_sums(folders, monkeypatch, query):
    with Database(folders) as database:
        expected, total = database.query(query), database.total(query)
    assert len(expected) > 5
    monkeypatch.setattr(databases, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(databases, "_PER_PART", 200)
    monkeypatch.setattr(databases, "_MANY_PAIRS", 0)
    for top in (1, 3, 20, len(expected) - 1):
        with Database(folders) as database:
            monkeypatch.setattr(database, "_table", None)
            pd.testing.assert_frame_equal(database.query(query, top), expected.head(top))
            assert (database.total(query), database.row_count(query)) == (total, len(expected))


def test_sums_beyond_64_bits_are_left_to_the_database(folders, monkeypatch):
    with Database(folders) as database:
        expected = database.query(QUERIES[0], 3)
    monkeypatch.setattr(databases, "_MOST_AT_ONCE", 0)
    monkeypatch.setattr(databases, "_MANY_PAIRS", 0)
    monkeypatch.setattr(counted, "_MOST_SUM", 1.0)
    with Database(folders) as database:
        pd.testing.assert_frame_equal(database.query(QUERIES[0], 3), expected)
