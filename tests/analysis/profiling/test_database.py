import shutil
import tempfile
import threading
from functools import cache
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.profiling import database as module
from analysis.profiling import frames, sampled_stacks
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import visits_of
from analysis.profiling.query import DIMENSIONS, Query, QueryError
from analysis.profiling.storage import ProfileError
from tests.helpers.profile_tables import EVENTS, SMALL_TABLES, long_form, random_tables, write_folder

HOSTILE = ("'; DROP TABLE samples; --", "' OR '1'='1", "../../etc/passwd", "x') UNION SELECT 1 --", "%", "*")


PROFILES = tempfile.TemporaryDirectory()
"""Of the profiles that hypothesis draws; it goes when the process ends."""


@cache
def made(seed):
    """Return the tables of a profile, its folder, its database and its long form; kept for the session."""
    tables = random_tables(seed)
    folder = write_folder(Path(PROFILES.name) / str(seed), tables)
    database = Database([folder], threads=1)
    return tables, folder, database, long_form(tables)


def restricted(rows, query):
    """Return the rows that a query takes, by plain pandas."""
    rows = rows[rows["event"] == query.event]
    for name, values in query.where:
        text = rows[name].map(lambda value: str(value).lower() if isinstance(value, bool) else str(value))
        rows = rows[text.isin(values)]
    if query.since_s is not None:
        rows = rows[rows["start_s"] >= query.since_s]
    return rows if query.until_s is None else rows[rows["start_s"] < query.until_s]


def by_pandas(rows, query):
    """Return what a query should answer, as a list of tuples, in Python's integers."""
    sums = {}
    for row in restricted(rows, query).to_dict("records"):
        key = tuple(row[name] for name in query.by)
        samples, value = sums.get(key, (0, 0))
        sums[key] = samples + row["count"], value + row["value"]
    total = sum(value for _, value in sums.values())
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return [(*key, samples, value, value / total if total else 0.0) for key, (samples, value) in ordered]


@cache
def values(seed, name):
    """Return the texts of a dimension that a profile has."""
    known = made(seed)[3][name].unique()
    return sorted({str(value).lower() if isinstance(value, bool | np.bool_) else str(value) for value in known})


@st.composite
def asked(draw):
    """Draw a seed of a profile and a query that it can answer."""
    seed = draw(st.integers(0, 2))
    by = draw(st.lists(st.sampled_from(sorted(DIMENSIONS)), max_size=3, unique=True))
    where = []
    for name in draw(st.lists(st.sampled_from(sorted(DIMENSIONS)), max_size=2)):
        where.append((name, tuple(draw(st.lists(st.sampled_from(values(seed, name)), min_size=1, max_size=2)))))
    since, until = draw(st.none() | st.floats(0, 1e5)), draw(st.none() | st.floats(2e5, 4e5))
    return seed, Query(draw(st.sampled_from(EVENTS)), tuple(by), tuple(where), since, until)


@given(asked())
@settings(max_examples=25, deadline=None)
def test_every_query_is_a_group_by_of_the_long_form(case):
    seed, query = case
    _, _, database, rows = made(seed)
    expected = by_pandas(rows, query)
    assert list(database.query(query).itertuples(index=False, name=None)) == expected
    assert database.total(query) == (sum(row[-3] for row in expected), sum(row[-2] for row in expected))
    top = database.query(query, 2)
    assert list(top.itertuples(index=False, name=None)) == expected[:2]


def walked(tables, rows):
    """Return (path of names from the outermost, samples, value) of each sample with a stack, one by one."""
    function = tables["locations"].set_index("location")["function"]
    frames = tables["stacks"].sort_values("depth").groupby("stack")["location"].apply(list)
    for row in rows[rows["stack"] >= 0].to_dict("records"):
        yield tuple(function[frame] for frame in reversed(frames[row["stack"]])), row["count"], row["value"]


def tallied(items):
    """Return sums by key, the greatest value first, ties by key."""
    sums = {}
    for key, samples, value in items:
        before = sums.get(key, (0, 0))
        sums[key] = before[0] + samples, before[1] + value
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return [(key, samples, value) for key, (samples, value) in ordered]


@pytest.mark.parametrize("seed", range(3))
def test_call_paths_are_those_that_one_walks_by_hand(seed, monkeypatch):
    monkeypatch.setattr(frames, "_FRAMES_AT_ONCE", (1_500_000, 5)[seed % 2])
    monkeypatch.setattr(frames, "_PATHS_AT_ONCE", (1_500_000, 5)[seed % 2])
    tables, _, database, rows = made(seed)
    query = Query("cpu_time", ())
    walks = list(walked(tables, restricted(rows, query)))
    found = database.stacks(query)
    assert list(found.itertuples(index=False, name=None)) == tallied(walks)
    inclusive = tallied((name, samples, value) for path, samples, value in walks for name in set(path))
    columns = ["function", "samples", "value"]
    assert list(database.inclusive(query)[columns].itertuples(index=False, name=None)) == inclusive
    own = database.inclusive(query).set_index("function")["own"]
    leaves = {name: value for name, _, value in tallied((path[-1], s, v) for path, s, v in walks)}
    assert {name: value for name, value in own.items() if value} == {n: v for n, v in leaves.items() if v}
    calls = tallied((call, samples, value) for path, samples, value in walks for call in set(pairwise(path)))
    edges = database.edges(query).itertuples(index=False, name=None)
    assert [((caller, called), samples, value) for caller, called, samples, value in edges] == calls


@pytest.mark.parametrize("seed", range(2))
def test_callers_are_those_that_one_walks_by_hand(seed):
    tables, _, database, rows = made(seed)
    for application in rows["application"].unique():
        query = Query("cpu_time", ("job", "function"), (("job", (application,)),))
        walks = list(walked(tables, restricted(rows, query)))
        for called in tables["locations"]["function"].unique():
            items = []
            for path, samples, value in walks:
                above = ("[root]", *path)
                callers = {above[at] for at, name in enumerate(path) if name == called}
                items += [((application, caller), samples, value) for caller in callers]
            found = database.callers(called, query).itertuples(index=False, name=None)
            assert [((job, caller), samples, value) for job, caller, samples, value in found] == tallied(items)


@pytest.mark.parametrize("seed", range(2))
def test_frames_of_images_with_and_without_a_name_are_those_that_one_walks_by_hand(seed):
    tables, _, _, rows = made(seed)
    places = tables["locations"].set_index("location")
    unnamed = places["function"].unique()[0]
    locations = tables["locations"].assign(function=places["function"].replace(unnamed, "[unknown]").to_numpy())
    folder = Path(PROFILES.name) / f"unnamed-{seed}"
    images = places["image"].unique()
    asked = images[: len(images) // 2 + 1].tolist()
    stacks = tables["stacks"].merge(locations, on="location")
    stacks = stacks[stacks["image"].isin(asked)].assign(named=lambda frame: frame["function"] != "[unknown]")
    kinds = stacks.groupby("stack")["named"].agg(set).to_dict()
    query = Query("cpu_time", ("application",))
    sampled = restricted(rows, query).to_dict("records")
    items = [
        ((row["application"], named), row["count"], row["value"])
        for row in sampled
        for named in kinds.get(row["stack"], ())
    ]
    with Database([write_folder(folder, {**tables, "locations": locations})], threads=1) as database:
        answer = database.named(query, asked).itertuples(index=False, name=None)
        having = locations.loc[locations["function"] == "[unknown]", "image"]
        assert database.images_of("[unknown]") == tuple(sorted(having.unique()))
    sums = {(job, named): (samples, value) for job, named, samples, value in answer}
    assert {named for _, named in sums} == {True, False}
    assert sums == {key: (samples, value) for key, samples, value in tallied(items)}


def test_clusters_add_up_to_the_query():
    _, _, database, _ = made(2)
    query = Query(by=("function", "job"))
    parts = database.clustered(query, "visit").groupby(list(query.by))[["samples", "value"]].sum()
    whole = database.query(query).set_index(list(query.by))[["samples", "value"]]
    pd.testing.assert_frame_equal(parts.sort_index(), whole.sort_index())
    for cluster in ("function", "application", "line"):
        with pytest.raises(QueryError, match="clusters should be"):
            database.clustered(query, cluster)


def test_what_was_summed_once_is_not_summed_again(monkeypatch):
    """A whole answer has its top rows; a total tells of which visits it is, and an answer its total."""
    tables = random_tables(2)
    query, asked = Query(by=("function",)), []
    with tempfile.TemporaryDirectory() as folder, Database([write_folder(Path(folder), tables)]) as database:
        alone = database.query(query, 3), database.total(query)
        sum_samples = module.sum_samples
        monkeypatch.setattr(module, "sum_samples", lambda *words: asked.append(words[1]) or sum_samples(*words))
    with tempfile.TemporaryDirectory() as folder, Database([write_folder(Path(folder), tables)]) as database:
        assert database.total(query) == alone[1]
        visits = visits_of(database, query)
        assert (visits["samples"].sum(), visits["value"].sum()) == alone[1]
        whole = database.query(query)
        pd.testing.assert_frame_equal(database.query(query, 3), alone[0])
        assert len(asked) == 2
        assert len(whole) > 3
        database.query(Query(by=("machine",), where=(("platform", ("rome",)),)))
        database.total(Query(where=(("platform", ("rome",)),)))
        assert len(asked) == 3


def test_clusters_of_one_application_after_another_are_those_of_all():
    _, _, database, _ = made(2)
    keys = ["application", "function", "visit"]
    parts = database.clustered_apart(Query(by=("function",)), "application", "visit")
    table = pd.concat([part.assign(application=name) for name, part in parts])
    whole = database.clustered(Query(by=("application", "function")), "visit").set_index(keys).sort_index()
    table = table.astype({"function": "str", "application": "str", "visit": np.int64}).set_index(keys).sort_index()
    pd.testing.assert_frame_equal(table, whole[whole["value"] > 0].astype(float))
    with pytest.raises(QueryError, match="clusters should be"):
        next(database.clustered_apart(Query(by=("function",)), "application", "application"))


@pytest.mark.parametrize("by", [("function",), ("day", "symbolised"), ("machine", "function", "line")])
def test_clusters_of_some_rows_are_those_of_all_that_have_their_values(by):
    _, _, database, _ = made(1)
    whole = database.clustered(Query(by=by), "visit")
    rows = whole[list(by)].drop_duplicates(ignore_index=True).iloc[1::2].sample(frac=1.0, random_state=0)
    some = database.clustered(Query(by=by), "visit", rows.assign(other=0))
    expected = whole.merge(rows, on=list(by))
    assert 0 < len(some) < len(whole)
    pd.testing.assert_frame_equal(some, expected)
    assert not len(database.clustered(Query(by=by), "visit", rows.head(0)))


@pytest.mark.parametrize("by", [(), ("machine",), ("day", "application")])
def test_callers_of_one_value_are_in_order_of_their_names(tmp_path, by):
    tables = random_tables(5, rows=300, visits=12, processes=30)
    tables["samples"]["count"] = 1
    tables["rates"]["period"] = tables["rates"]["duty"] = 1
    tables["visits"]["weight"] = 1
    tables["processes"]["stacks"] = True
    with Database([write_folder(tmp_path, tables)]) as database:
        names = sorted(set(tables["locations"]["function"]))
        some = [database.callers(name, Query("cpu_time", by)) for name in names]
    for table in some:
        order = table.assign(less=-table["value"]).sort_values(["less", *by, "caller"], kind="stable")
        pd.testing.assert_frame_equal(table, order.drop(columns="less").reset_index(drop=True))
    assert any(table["value"].duplicated().any() for table in some)


def test_a_difference_has_every_key_of_either_side():
    _, _, database, rows = made(1)
    early, late = Query(until_s=1.5e5), Query(since_s=1.5e5)
    a, b = ({row[0]: row for row in by_pandas(rows, each)} for each in (early, late))
    nothing = ("", 0, 0, 0.0)
    expected = [
        (name, a.get(name, nothing)[2], b.get(name, nothing)[2], a.get(name, nothing)[3], b.get(name, nothing)[3])
        for name in {**a, **b}
    ]
    expected.sort(key=lambda row: (-abs(row[4] - row[3]), row[0]))
    found = database.diff(early, late)
    assert list(found.drop(columns="change").itertuples(index=False, name=None)) == expected
    np.testing.assert_array_equal(found["change"], found["share_b"] - found["share_a"])
    assert found["value_a"].dtype == found["value_b"].dtype == np.int64
    with pytest.raises(QueryError, match="one event, by the same"):
        database.diff(early, Query("instructions"))


def test_a_difference_takes_names_that_only_the_other_profile_has(tmp_path):
    _, _, database, _ = made(1)
    tables = random_tables(1)
    tables["processes"]["application"] = "new"
    with Database([write_folder(tmp_path, tables)]) as other:
        only = Query().restricted("job", "new")
        assert database.diff(only, only, other)["share_a"].eq(0.0).all()
        assert database.total(only, other) == (0, 0)
        with pytest.raises(QueryError, match='unknown application "new"'):
            database.query(only)


def test_bytes_do_not_depend_on_threads():
    tables = random_tables(3, rows=20_000, visits=200, processes=3_000, locations=400)
    with tempfile.TemporaryDirectory() as folder:
        write_folder(Path(folder), tables)
        said = []
        for threads in (1, 2):
            with Database([Path(folder)], threads=threads) as database:
                by_all = Query(by=("function", "job", "machine", "day"))
                answers = [database.query(by_all), database.query(by_all, 7), database.stacks(Query("cpu_time"))]
                said.append([answer.to_csv() for answer in answers])
    assert said[0] == said[1]


def test_several_folders_are_put_together():
    (_, folder, database, rows), (_, other, second, more) = made(0), made(4)
    with Database([folder, other]) as both:
        query = Query(by=("function", "job", "revision"))
        assert list(both.query(query).itertuples(index=False, name=None)) == by_pandas(pd.concat([rows, more]), query)
        apart = [set(each.table("visits")["visit"]) for each in (database, second)]
        assert len(both.table("visits")["visit"].unique()) == sum(map(len, apart))
        stacked = sum(each.stacks(Query("cpu_time"))["value"].sum() for each in (database, second))
        assert both.stacks(Query("cpu_time"))["value"].sum() == stacked


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_ever_a_value(text):
    _, _, database, _ = made(0)
    for name in ("function", "job", "machine", "symbolised", "day"):
        with pytest.raises(QueryError, match="unknown"):
            database.query(Query(where=((name, (text,)),)))
    for refused in (
        lambda: database.query(Query(event=text)),
        lambda: database.callers(text, Query("cpu_time")),
        lambda: database.table(text),
        lambda: database.values(text),
        lambda: database.clustered(Query(), text),
    ):
        with pytest.raises(QueryError, match="unknown"):
            refused()
    assert database.total(Query())[0] > 0


def test_hostile_names_in_the_tables_are_only_names(tmp_path):
    tables = random_tables(0)
    tables["locations"]["function"] = [HOSTILE[number % len(HOSTILE)] for number in range(len(tables["locations"]))]
    with Database([write_folder(tmp_path / "it's; a [folder] *", tables)]) as database:
        expected = by_pandas(long_form(tables), Query())
        assert list(database.query(Query()).itertuples(index=False, name=None)) == expected
        assert database.query(Query(where=(("function", (HOSTILE[0],)),)))["function"].tolist() == [HOSTILE[0]]


def test_a_folder_whose_name_is_a_pattern_is_no_pattern(tmp_path):
    tables = random_tables(0)
    write_folder(tmp_path / "ab", random_tables(1))
    with Database([write_folder(tmp_path / "a*", tables)]) as database:
        assert database.total(Query())[1] == sum(row[2] for row in by_pandas(long_form(tables), Query()))


def test_the_connection_reaches_no_other_file(tmp_path):
    _, folder, database, _ = made(0)
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    connection = database._connection.cursor()
    for statement in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{folder.parent}/*/*.parquet'",
        f"COPY visits TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'new.db'}'",
        "SET enable_external_access = true",
        "SET threads = 7",
        "INSTALL httpfs",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]


def test_samples_of_call_paths_are_summed_once_for_all_questions(tmp_path, monkeypatch):
    tables, calls, summing = random_tables(0), [], sampled_stacks.sum_stacks
    monkeypatch.setattr(sampled_stacks, "sum_stacks", lambda *given, **more: calls.append(1) or summing(*given, **more))
    query = Query("cpu_time", ())
    with Database([write_folder(tmp_path, tables)]) as database:
        first = [database.stacks(query), database.inclusive(query), database.edges(query), *database.graph(query, 3)]
        assert len(calls) == 1
        assert first[0]["value"].sum() == database.total(query)[1]
        write_folder(tmp_path, random_tables(1))
        assert database.stacks(query)["value"].sum() == database.total(query)[1] != first[0]["value"].sum()
        assert len(calls) == 2


def test_call_paths_asked_while_the_files_are_replaced_are_not_kept_for_the_new_files(tmp_path, monkeypatch):
    """The old sums are kept after the new files were opened, by who was summing; another question was on its way."""
    query, summing, answered = Query("cpu_time", ()), sampled_stacks.sum_stacks, Database._answered_under
    with Database([write_folder(tmp_path, random_tables(0))]) as database:
        on_its_way, slow = [True], [True]

        def replaced_after_summing(*given, **more):
            sums = summing(*given, **more)
            if slow and slow.pop():
                write_folder(tmp_path, random_tables(1))
                database.events()
            return sums

        def beside_another(self, question, ask):
            if question == ("inclusive", query, None) and on_its_way and on_its_way.pop():
                self.stacks(query)
            return answered(self, question, ask)

        monkeypatch.setattr(sampled_stacks, "sum_stacks", replaced_after_summing)
        monkeypatch.setattr(Database, "_answered_under", beside_another)
        first, second = database.inclusive(query), database.inclusive(query)
    with Database([tmp_path]) as fresh:
        pd.testing.assert_frame_equal(second, fresh.inclusive(query))
    pd.testing.assert_frame_equal(first, second)


def test_an_answer_is_kept_until_a_file_changes(tmp_path, monkeypatch):
    folder = write_folder(tmp_path, random_tables(0))
    calls = []
    summing = module.sum_samples
    monkeypatch.setattr(module, "sum_samples", lambda *given: calls.append(1) or summing(*given))
    with Database([folder]) as database:
        first = database.query(Query())
        first.loc[:, "value"] = 0
        again = database.query(Query())
        assert (len(calls), again["value"].sum() > 0) == (1, True)
        write_folder(tmp_path, random_tables(1))
        changed = database.query(Query())
        assert list(changed.itertuples(index=False, name=None)) == by_pandas(long_form(random_tables(1)), Query())
        assert len(calls) == 2
        database.query(Query(event="instructions"), 1)
        database.query(Query(event="instructions"), 2)
        assert len(calls) == 4


def test_many_threads_may_ask_at_once():
    _, _, _, rows = made(2)
    queries = [Query(event, (name,)) for event in EVENTS for name in ("function", "job", "machine", "line")]
    found = {}
    with Database([made(2)[1]]) as database:

        def ask(query):
            found[query] = list(database.query(query).itertuples(index=False, name=None))

        threads = [threading.Thread(target=ask, args=(query,)) for query in queries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {query: by_pandas(rows, query) for query in queries}


def test_sums_beyond_64_bits_stay_exact(tmp_path):
    tables = random_tables(0)
    tables["samples"]["count"] = 2**62
    with Database([write_folder(tmp_path, tables)]) as database:
        query = Query(by=("function", "job"))
        expected = by_pandas(long_form(tables), query)
        assert list(database.query(query).itertuples(index=False, name=None)) == expected
        assert expected[0][-2] > 2**64
        assert database.clustered(query)["value"].sum() == database.total(query)[1]
        assert database.diff(query, query)["value_b"].tolist() == database.diff(query, query)["value_a"].tolist()
        assert sum(database.stacks(Query("cpu_time"))["value"]) == database.total(Query("cpu_time"))[1]


def test_sums_too_large_for_any_integer_are_refused(tmp_path):
    tables = random_tables(0)
    tables["samples"]["count"] = 2**63 - 1
    tables["rates"]["period"] = 2**62
    with (
        Database([write_folder(tmp_path, tables)]) as database,
        pytest.raises(ProfileError, match=r"too large|beyond 1e37"),
    ):
        database.query(Query())


def test_samples_without_a_rate_are_refused(tmp_path):
    tables = random_tables(0)
    tables["visits"]["platform"] = ["haswell", "rome"] * 2 + ["haswell"]
    rates = tables["rates"]
    tables["rates"] = rates[(rates["event"] != "cycles") | (rates["platform"] != "rome")]
    with Database([write_folder(tmp_path, tables)]) as database:
        with pytest.raises(ProfileError, match="no period of cycles"):
            database.query(Query())
        assert database.query(Query(where=(("platform", ("haswell",)),)))["value"].sum() > 0
        assert database.query(Query("instructions"))["value"].sum() > 0


def test_an_event_with_samples_and_no_rate_at_all_is_refused_as_such(tmp_path):
    tables = random_tables(0)
    tables["rates"] = tables["rates"].query("event != 'cycles'")
    with Database([write_folder(tmp_path, tables)]) as database:
        with pytest.raises(ProfileError, match="no period of cycles"):
            database.query(Query())
        with pytest.raises(QueryError, match='unknown event "cycels"; did you mean cycles'):
            database.query(Query("cycels"))


def test_answers_that_are_too_long_are_refused_but_their_top_is_told(monkeypatch):
    _, _, database, _ = made(0)
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    query = Query(by=("function", "line", "process"))
    with pytest.raises(QueryError, match="more than 3"):
        database.clustered(query, "collection")
    assert len(database.query(query, 2)) == 2
    for top in (0, -1, 4):
        with pytest.raises(QueryError, match="top should be"):
            database.query(query, top)
    with pytest.raises(QueryError, match="more than 3"):
        database.table("locations")
    with pytest.raises(QueryError, match="more than 3; a difference needs all of them"):
        database.difference(query, query)


def test_a_profile_without_samples_answers_with_nothing(tmp_path):
    tables = random_tables(0)
    tables["samples"] = tables["samples"].head(0)
    with Database([write_folder(tmp_path, tables)]) as database:
        assert database.query(Query(by=("function", "day"))).empty
        assert database.total(Query()) == (0, 0)
        assert database.events() == []
        assert database.stacks(Query("cpu_time")).empty
        assert database.inclusive(Query("cpu_time")).empty
        assert database.edges(Query("cpu_time")).empty
        assert database.diff(Query(), Query(until_s=5.0)).empty


def test_tables_are_as_they_were_written_and_the_truth_is_not_told(tmp_path):
    tables = random_tables(0)
    folder = write_folder(tmp_path, tables)
    shutil.copy(folder / "builds.parquet", folder / "truth_cpi.parquet")
    with Database([folder]) as database:
        for name in SMALL_TABLES:
            pd.testing.assert_frame_equal(
                database.table(name), tables[name], check_dtype=False, check_column_type=False
            )
        with pytest.raises(QueryError, match="no table truth_cpi"):
            database.table("truth_cpi")
        with pytest.raises(QueryError, match='unknown table "visit"; did you mean visits'):
            database.table("visit")


def test_values_are_in_the_order_of_the_dimension(tmp_path):
    tables = random_tables(0)
    tables["locations"]["line"] = [10, 9, 100] * 4
    with Database([write_folder(tmp_path, tables)]) as database:
        assert database.values("line") == ["9", "10", "100"]
        assert database.values("line", 2) == ["9", "10"]
        assert database.values("symbolised") == ["false", "true"]


def test_a_total_of_nothing_is_no_row():
    """Keys that are constants are no keys to GROUP BY ALL, which then has a row for nothing."""
    query = Query(by=(), where=(("builder", ("[none]",)),))
    _, _, database, rows = made(0)
    assert by_pandas(rows, query) == []
    assert database.query(query).empty
    assert database.total(query) == (0, 0)


def test_call_paths_are_checked_anew_where_files_are_replaced(tmp_path):
    tables = random_tables(2)
    write_folder(tmp_path, tables)
    with Database([tmp_path]) as database:
        assert len(database.stacks(Query("cpu_time")))
        tables["samples"].loc[tables["samples"]["stack"] >= 0, "stack"] += 1_000_000
        write_folder(tmp_path, tables)
        with pytest.raises(ProfileError, match="stack"):
            database.stacks(Query("cpu_time"))


def test_events_with_call_paths_are_named_though_they_have_no_rate(tmp_path):
    tables = random_tables(1)
    tables["rates"] = tables["rates"][tables["rates"]["event"] != "cpu_time"]
    with Database([write_folder(tmp_path, tables)]) as database:
        assert database.with_stacks() == ["cpu_time"]
        with pytest.raises(ProfileError, match="no period of cpu_time"):
            database.inclusive(Query("cpu_time"))


def test_samples_that_count_nothing_have_no_call_paths(tmp_path):
    tables = random_tables(1)
    tables["samples"].loc[tables["samples"]["stack"] >= 0, "count"] = 0
    with Database([write_folder(tmp_path, tables)]) as database:
        assert database.with_stacks() == []
