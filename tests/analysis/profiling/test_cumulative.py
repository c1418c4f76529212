"""Functions with what they call, summed part by part of the keys, beside the sums of all at once."""

import pandas as pd
import pytest

from analysis.profiling import counted
from analysis.profiling import cumulative as module
from analysis.profiling import database as databases
from analysis.profiling.cumulative import cumulative
from analysis.profiling.database import Database
from analysis.profiling.query import Query, QueryError
from scenarios.files.faults import FaultsError
from scenarios.profiling import calls
from scenarios.profiling.query import QueryOptions
from tests.helpers.profile_tables import random_tables, write_folder

QUERIES = (
    Query("cpu_time", ("machine",)),
    Query("cpu_time", ("application", "platform"), since_s=40_000.0),
    Query("cpu_time", ("process",), (("function", ("deflate", "main")),)),
)


@pytest.fixture(scope="module", params=[1, 2, 3])
def folder(request, tmp_path_factory):
    tables = random_tables(request.param, rows=400, processes=20)
    return write_folder(tmp_path_factory.mktemp("profile"), tables)


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_they_are_those_of_a_table_of_all(folder, monkeypatch, query):
    with Database([folder]) as database:
        expected = database.inclusive(query, apart=query.by)
        monkeypatch.setattr(module, "_PER_PART", 90)
        monkeypatch.setattr(module, "_ROOM", 1)
        for top in (1, 4, None):
            table, rows = cumulative(database, query, top)
            assert rows == len(expected)
            cut = expected.head(top or rows)
            pd.testing.assert_frame_equal(table[cut.columns], cut, check_dtype=False, rtol=1e-15)


@pytest.mark.parametrize(("word", "pairs"), [(1.0, 0), (2.0**62, 0), (2.0**62, -1)])
def test_a_question_takes_them_where_they_are_many_and_sure_to_be_exact(folder, monkeypatch, word, pairs):
    with Database([folder]) as database:
        keys = database.pair_count(("machine",))
        assert keys == len(database.values("machine"))
        pairs = keys * database.stack_numbers()[2] + pairs if pairs else 0
    expected = calls.cumulative([folder], QueryOptions("machine", event="cpu_time", top=3))
    monkeypatch.setattr(calls, "_AT_ONCE", 0)
    monkeypatch.setattr(calls, "_PAIRS_AT_ONCE", pairs)
    monkeypatch.setattr(counted, "_MOST_SUM", word)
    if word > 1.0:
        monkeypatch.setattr(Database, "inclusive", None)
    told = calls.cumulative([folder], QueryOptions("machine", event="cpu_time", top=3))
    assert told.all_rows == expected.all_rows
    pd.testing.assert_frame_equal(told.table, expected.table, check_dtype=False)


def test_all_rows_are_refused_where_they_are_too_many(folder, monkeypatch):
    monkeypatch.setattr(databases, "MOST_ROWS", 5)
    with Database([folder]) as database:
        table, rows = cumulative(database, QUERIES[0], 5)
        assert rows > len(table) == 5
        with pytest.raises(QueryError, match=f"would have {rows} rows, more than 5"):
            cumulative(database, QUERIES[0], None)
    with pytest.raises(FaultsError, match="--top: top should be from 1 to 5, got 6"):
        calls.cumulative([folder], QueryOptions("machine", event="cpu_time", top=6))
