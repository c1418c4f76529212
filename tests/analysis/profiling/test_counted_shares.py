"""Intervals from samples counted part by part, beside those from a table of all keys and visits."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.profiling import counted_shares
from analysis.profiling import database as databases
from analysis.profiling.counted_shares import CountedStacks, counted_moments
from analysis.profiling.database import Database
from analysis.profiling.intervals import ClusteredProfile, ShareMoments, share_intervals
from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import TAKEN
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


@pytest.mark.parametrize(("dense", "marked"), [(0, 0), (0, 1_000), (1_000_000, 0)])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_they_are_those_of_a_table_of_all_pairs(databases_of, monkeypatch, query, dense, marked):
    monkeypatch.setattr(counted_shares, "_MARKED", marked)
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


@pytest.mark.parametrize("marked", [0, 1_000])
def test_too_many_keys_are_refused(databases_of, monkeypatch, marked):
    monkeypatch.setattr(counted_shares, "_MARKED", marked)
    monkeypatch.setattr(counted_shares, "_DENSE", 0)
    monkeypatch.setattr(databases, "MOST_ROWS", 2)
    with pytest.raises(QueryError, match="more than 2 rows"):
        counted_moments(databases_of[0], Query(by=("function", "line")))


STACKED = (
    (Query("cpu_time", ("application",)), ("mail", "search")),
    (Query("cpu_time", ()), ()),
    (Query("cpu_time", ("platform",), since_s=40_000.0), ("rome",)),
    (Query("cpu_time", (), (("function", ("deflate", "main")),)), ()),
)


def names_of(database, stacks):
    """Return the functions of stacks, the outermost first."""
    names, first, code = database.frames_on(np.unique(stacks), 1)
    paths = [tuple(names[at] for at in code[a + 1 : b]) for a, b in pairwise(first)]
    assert {code[a] for a in first[:-1]} <= {-1}
    return dict(zip(np.unique(stacks).tolist(), paths, strict=True))


@pytest.mark.parametrize(("query", "roots"), STACKED, ids=str)
def test_counted_stacks_have_the_sums_and_the_errors_of_a_table_of_all(databases_of, monkeypatch, query, roots):
    monkeypatch.setattr(counted_shares, "_PER_PART", 7)
    monkeypatch.setattr(counted_shares, "_PAIRS_AT_ONCE", 3)
    for database in databases_of:
        sums = database.stack_sums(replace(query, by=(*query.by, "visit")))
        named = names_of(database, sums.stack)
        rows = sums.keys.iloc[sums.key].assign(path=[*map(named.get, sums.stack.tolist())], value=sums.value)
        root = [roots.index(name) if name in roots else len(roots) for name in rows[query.by[0]]] if query.by else 0
        rows = rows.assign(root=root)
        counted = CountedStacks.of(database, query, roots)
        stack, on_root, value = counted.sums()
        assert list(zip(stack, on_root, strict=True)) == sorted(set(zip(stack, on_root, strict=True)))
        paths = names_of(database, stack)
        told, expected = Counter(), Counter()
        for at, own, each in zip(stack.tolist(), on_root.tolist(), value.tolist(), strict=True):
            told[paths[at], own] += each
        for path, own, each in zip(rows["path"], rows["root"], rows["value"], strict=True):
            expected[path, own] += each
        assert told == expected
        assert len(told)
        functions = sorted({name for path in paths.values() for name in path})
        items = [sorted({functions.index(name) for name in paths[at]}) for at in stack.tolist()]
        first = np.append(0, np.cumsum([len(own) for own in items]))
        moments = counted.moments((stack, on_root), (first, np.concatenate(items)), value.astype(float), functions)
        visits, code = np.unique(rows["visit"], return_inverse=True)
        for at, name in enumerate(functions):
            inside = np.array([name in path for path in rows["path"]])
            table = pd.DataFrame({"f": np.where(inside, "in", "out"), "visit": code, "value": rows["value"]})
            own = ShareMoments.of(ClusteredProfile.of(table.assign(samples=1), "visit"))
            place = own.keys["f"].tolist().index("in")
            assert moments.share[at] == pytest.approx(own.share[place])
            assert moments.second[at] == pytest.approx(own.second[place], rel=1e-9, abs=1e-15)
            assert moments.fourth[at] == pytest.approx(own.fourth[place], rel=1e-9, abs=1e-15)
        assert moments.clusters == len(visits)


@pytest.mark.parametrize(("count", "period"), [(2**40, 2**20), (8, 2**62)])
def test_sums_of_stacks_beyond_64_bits_are_exact(tmp_path, count, period):
    """Those of what one sample stands for as well: 2^62 times a duty and a weight."""
    tables = random_tables(0)
    tables["samples"]["count"] = count
    tables["rates"]["period"] = period
    with Database([write_folder(tmp_path, tables)]) as database:
        stack, _, value = CountedStacks.of(database, Query("cpu_time", ()), ()).sums()
        expected = database.stacks(Query("cpu_time"))
        assert sum(value.tolist()) == sum(expected["value"].tolist()) >= 2**64
        assert value.dtype == object
        assert len(stack) >= len(expected)


def test_samples_that_stand_for_several_counts_are_counted_once(tmp_path):
    """As of imports: a row has more counts than samples were taken, and rows without counts say nothing."""
    tables = random_tables(3)
    rows = tables["samples"]
    rows["count"] = rows["count"] * (np.arange(len(rows)) % 3)
    taken = (np.arange(len(rows)) % 2 + 1) * (rows["count"] > 0)
    query, folder = Query(by=("function",)), write_folder(tmp_path, tables)
    file = pq.read_table(folder / "samples.parquet")
    pq.write_table(file.append_column(TAKEN, pa.array(taken)), folder / "samples.parquet")
    with Database([folder]) as database:
        answer = counted_moments(database, query)
        expected = ShareMoments.of(ClusteredProfile.of(database.clustered(query, "visit"), "visit"))
    told = dict(zip(answer.keys["function"], answer.samples, strict=True))
    assert told == dict(zip(expected.keys["function"], expected.samples, strict=True))
    assert sum(told.values()) < rows["count"].sum()
    assert answer.share.sum() == pytest.approx(1.0)
