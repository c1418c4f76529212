"""Sums by stack are those of the tables put together by pandas, whatever their size."""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.profiling import row_groups, sampled_stacks
from analysis.profiling.database import Database
from analysis.profiling.query import Query
from analysis.profiling.sampled_stacks import TooManyStacksError
from analysis.profiling.storage import TAKEN, ProfileError
from tests.helpers.profile_tables import long_form, random_tables, write_folder

QUERIES = (
    Query("cpu_time", ()),
    Query("cpu_time", ("application", "platform")),
    Query("cpu_time", ("application",), (("function", ("deflate", "main")),)),
    Query("cpu_time", ("application",), (("platform", ("rome",)),), 40_000.0, 300_000.0),
)


def told(sums):
    """Return rows by dimensions and stack."""
    columns = (sums.key, sums.stack, sums.samples, sums.value)
    return {
        (*sums.keys.iloc[key], stack): (samples, value)
        for key, stack, samples, value in zip(*(column.tolist() for column in columns), strict=True)
    }


def expected(rows, query, stack):
    """Return the same of the long form of samples; `stack` of each row, None: it does not count."""
    wanted, sums = (rows["event"] == query.event) & (rows["start_s"] >= (query.since_s or 0)), {}
    for name, values in query.where:
        wanted &= rows[name].isin(values)
    if query.until_s is not None:
        wanted &= rows["start_s"] < query.until_s
    for row, own in zip(
        rows[wanted].to_dict("records"), [stack(row) for row in rows[wanted].to_dict("records")], strict=True
    ):
        if own is not None:
            sums.setdefault((*(row[name] for name in query.by), own), Counter()).update(
                samples=row.get(TAKEN, row["count"]), value=row["value"]
            )
    return {key: (own["samples"], own["value"]) for key, own in sums.items()}


def of_stack(row):
    return row["stack"] if row["stack"] >= 0 else None


def of_stack_or_place(row):
    return row["stack"] if row["stack"] >= 0 else -1 - row["location"]


@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize(("count", "period"), [(1, 1), (2**45, 1), (2**52, 2**50), (1, 2**60)])
def test_sums_by_stack_are_exact(tmp_path, monkeypatch, query, count, period):
    monkeypatch.setattr(row_groups, "_ROWS_AT_ONCE", 100)
    tables = random_tables(3, rows=900, visits=30, processes=60)
    tables["samples"]["count"] *= count
    tables["rates"]["period"] = tables["rates"]["period"] % 1000 + period
    rows = long_form(tables)
    with Database([write_folder(tmp_path, tables)]) as database:
        sums = database.stack_sums(query)
        assert told(sums) == expected(rows, query, of_stack)
        total = database.total(query)
    assert sums.totals == total == (sum(sums.samples.tolist()), sum(sums.value.tolist()))
    assert [amounts.dtype == object for amounts in (sums.samples, sums.value)] == [own >= 2**63 for own in total]
    assert sorted(zip(sums.stack, sums.key, strict=True)) == list(zip(sums.stack, sums.key, strict=True))


@pytest.mark.parametrize("count", [1, 2**55])
def test_sums_say_how_many_bytes_they_take(tmp_path, count):
    tables = random_tables(3, rows=900)
    tables["samples"]["count"] *= count
    with Database([write_folder(tmp_path, tables)]) as database:
        sums = database.stack_sums(QUERIES[1])
    columns = (sums.key, sums.stack, sums.samples, sums.value)
    integers = [number for own in columns if own.dtype == object for number in own.tolist()]
    taken = sum(own.nbytes for own in columns) + sum(map(sys.getsizeof, integers))
    assert bool(integers) == (count > 1)
    assert 0 <= sums.nbytes - sums.keys.memory_usage(deep=True).sum() - taken <= 8 * len(integers)


def test_counts_of_another_event_may_be_as_large_as_they_like(tmp_path):
    """Bounds of counts are those of all events; here only the other's need more than a word."""
    tables = random_tables(3, rows=900, visits=30, processes=60)
    tables["samples"].loc[tables["samples"]["event"] != "cpu_time", "count"] = 2**62
    tables["rates"]["period"] = tables["rates"]["period"] % 1000 + 10**7
    query, rows = QUERIES[1], long_form(tables)
    with Database([write_folder(tmp_path, tables)]) as database:
        sums = database.stack_sums(query)
    assert told(sums) == expected(rows, query, of_stack)
    assert sums.value.dtype == np.int64


def test_samples_without_a_stack_count_where_they_are_wanted(tmp_path):
    tables = random_tables(3, rows=200)
    without = np.random.default_rng(0).random(200) < 0.5
    tables["samples"].loc[without, "stack"] = -1
    query, rows = Query("cpu_time", ("application",)), long_form(tables)
    every = expected(rows, query, of_stack_or_place)
    with Database([write_folder(tmp_path, tables)]) as database:
        assert told(database.stack_sums(query)) == expected(rows, query, of_stack)
        assert told(database.stack_sums(query, alone=True)) == told(
            database.stack_sums(query, alone=True, most=len(every))
        )
        assert told(database.stack_sums(query, alone=True)) == every
        bound = len(expected(rows, query, of_stack)) - 1
        with pytest.raises(TooManyStacksError, match=f"there are more than {bound} places and call paths"):
            database.stack_sums(query, most=bound)
        for span in ((-3, 4), (4, 100)):
            own = {names: amounts for names, amounts in every.items() if span[0] <= names[-1] < span[1]}
            assert told(database.stack_sums(query, alone=True, span=span)) == own


def test_profiles_put_together_have_stacks_of_their_own(tmp_path):
    tables = [random_tables(seed, rows=200) for seed in (3, 4)]
    for own in tables:
        own["samples"].loc[:20, "stack"] = -1
    query, sums = Query("cpu_time", ("application",)), {}
    shift = {
        name: int(tables[0][table][name].max()) + 1 for table, name in (("stacks", "stack"), ("locations", "location"))
    }
    for at, own in enumerate(tables):
        for (*names, place), (samples, value) in expected(long_form(own), query, of_stack_or_place).items():
            moved = place + at * shift["stack"] if place >= 0 else place - at * shift["location"]
            sums[*names, moved] = samples, value
    with Database([write_folder(tmp_path / str(at), own) for at, own in enumerate(tables)]) as database:
        assert told(database.stack_sums(query, alone=True)) == sums


@pytest.mark.parametrize("function", ["deflate", "main"])
def test_sums_for_callers_tell_only_the_stacks_apart_that_have_the_function(tmp_path, monkeypatch, function):
    tables, sums, summing = random_tables(3, rows=900), [], sampled_stacks.sum_stacks
    stacks = tables["stacks"].merge(tables["locations"], on="location")
    having = set(stacks.loc[stacks["function"] == function, "stack"])
    query = Query("cpu_time", ("application",))
    every = Counter()
    for (*names, stack), own in expected(long_form(tables), query, of_stack).items():
        every.update({(*names, stack if stack in having else -1, at): amount for at, amount in enumerate(own)})
    monkeypatch.setattr(
        sampled_stacks, "sum_stacks", lambda *given, **more: sums.append(summing(*given, **more)) or sums[-1]
    )
    folder = write_folder(tmp_path, tables)
    with Database([folder]) as database:
        found = database.callers(function, query)
        assert 0 < len(having) < stacks["stack"].nunique()
        assert {(*row, at): own for row, amounts in told(sums[-1]).items() for at, own in enumerate(amounts)} == every
        assert sums[-1].totals == database.total(query)
    with Database([folder]) as database:
        database.inclusive(query, apart=query.by)
        pd.testing.assert_frame_equal(database.callers(function, query), found)
        assert len(sums) == 2  # those of all stacks were there already


def test_callers_in_profiles_put_together_are_those_of_each(tmp_path):
    query, folders, every, sums = Query("cpu_time", ("application", "platform")), [], Counter(), Counter()
    for seed in (3, 4):
        folders.append(write_folder(tmp_path / str(seed), random_tables(seed, rows=400)))
        with Database(folders[-1:]) as database:
            for *names, samples, value in database.callers("main", query).itertuples(index=False):
                sums.update({(*names, "samples"): samples, (*names, "value"): value})
    with Database(folders) as database:
        for *names, samples, value in database.callers("main", query).itertuples(index=False):
            every.update({(*names, "samples"): samples, (*names, "value"): value})
    assert len(every) > 2
    assert every == sums


def test_samples_may_be_others_than_counts(tmp_path):
    tables = random_tables(3, rows=300)
    folder = write_folder(tmp_path, tables)
    taken = np.random.default_rng(0).integers(0, 2**58, 300)
    rows = pq.read_table(folder / "samples.parquet")
    pq.write_table(rows.append_column(TAKEN, pa.array(taken)), folder / "samples.parquet")
    tables["samples"][TAKEN] = taken
    with Database([folder]) as database:
        assert told(database.stack_sums(QUERIES[1])) == expected(long_form(tables), QUERIES[1], of_stack)


def test_samples_without_a_rate_are_refused_and_sums_too_large(tmp_path):
    tables = random_tables(3, rows=300)
    query = Query("cpu_time", ("platform",))
    rates = tables["rates"]
    without = {**tables, "rates": rates[(rates["event"] != "cpu_time") | (rates["platform"] != "rome")]}
    with Database([write_folder(tmp_path / "a", without)]) as database:
        lacking = int(long_form(tables).query("event == 'cpu_time' and platform == 'rome'")["count"].sum())
        with pytest.raises(ProfileError, match=f"no period of cpu_time .* of {lacking} samples"):
            database.stack_sums(query)
        assert len(database.stack_sums(replace(query, where=(("platform", ("haswell",)),))).stack)
    tables["rates"]["period"], tables["samples"]["count"] = 2**62, 2**62
    with (
        Database([write_folder(tmp_path / "b", tables)]) as database,
        pytest.raises(ProfileError, match="sum of cpu_time is beyond 1e37"),
    ):
        database.stack_sums(query)
