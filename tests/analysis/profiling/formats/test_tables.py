"""Profiles of other tools as tables."""

import itertools

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.profiling.database import Database
from analysis.profiling.formats import stores
from analysis.profiling.formats.extract import extract
from analysis.profiling.formats.foreign import LARGEST, ForeignProfile, Frame, Measure, Origin, Sample
from analysis.profiling.formats.tables import NAMES, to_tables, totals, uncounted, write_tables
from analysis.profiling.query import Query
from analysis.profiling.storage import ProfileError
from analysis.tables.faults import FileError
from models.tables import TABLES
from tests.helpers.foreign_profiles import profile_of

FRAMES = st.tuples(st.sampled_from(["f", "g", ""]), st.sampled_from(["a", ""]), st.integers(0, 2)).map(
    lambda found: Frame(found[0], found[1], line=found[2])
)
STACKS = st.lists(FRAMES, max_size=4).map(tuple)
COUNTS = st.tuples(st.integers(0, 50), st.integers(0, 50).map(lambda count: 10 * count))
PROFILES = st.lists(st.tuples(STACKS, COUNTS), max_size=8).map(
    lambda samples: profile_of([Measure("samples"), Measure("cpu", "nanoseconds", 10)], samples)
)


def values(tables):
    """Sum of count × period × duty × weight by collection and event, joined row by row."""
    found = {}
    visits = {row.visit: row for row in tables["visits"].itertuples()}
    processes = {row.process: visits[row.visit] for row in tables["processes"].itertuples()}
    rates = {(row.collection, row.platform, row.event): row for row in tables["rates"].itertuples()}
    for row in tables["samples"].itertuples():
        visit = processes[row.process]
        rate = rates[visit.collection, visit.platform, row.event]
        key = (visit.collection, row.event)
        found[key] = found.get(key, 0) + row.count * rate.period * rate.duty * visit.weight
    return found


@settings(max_examples=25)
@given(st.lists(PROFILES, min_size=1, max_size=3))
def test_totals_are_those_of_the_files(profiles):
    tables = to_tables(profiles)
    names = list(dict.fromkeys(tables["visits"]["collection"]))
    expected = {
        (name, event): total
        for name, profile in zip(names, profiles, strict=True)
        for event in ("samples", "cpu")
        if (total := profile.total(event))
    }
    assert values(tables) == expected


@settings(max_examples=25)
@given(PROFILES)
def test_every_reference_is_to_a_row(profile):
    tables = to_tables([profile])
    assert set(tables["samples"]["location"]) <= set(tables["locations"]["location"])
    assert set(tables["samples"]["stack"]) <= {-1, *tables["stacks"]["stack"]}
    assert set(tables["stacks"]["location"]) <= set(tables["locations"]["location"])
    assert set(tables["locations"]["build"]) <= {-1, *tables["builds"]["build"]}
    top = tables["stacks"].query("depth == 0").set_index("stack")["location"]
    for row in tables["samples"].query("stack >= 0").itertuples():
        assert top[row.stack] == row.location
    assert not tables["samples"].duplicated(["process", "event", "location", "stack"]).any()


def test_columns_and_types_are_the_contract():
    tables = to_tables([profile_of([Measure("samples")], [((Frame("f", "a"),), (3,))])])
    assert tuple(tables) == NAMES
    for name, table in tables.items():
        for column in TABLES[name]:
            assert table[column.name].dtype == column.type.to_pandas_dtype() or column.type == "string"
        assert list(table.columns) == [column.name for column in TABLES[name]]


def test_a_period_that_does_not_divide_every_value_is_not_used():
    profile = profile_of([Measure("cpu", "nanoseconds", 10)], [((Frame("f"),), (30,)), ((Frame("g"),), (5,))])
    tables = to_tables([profile])
    assert tables["rates"]["period"].tolist() == [1]
    assert tables["samples"]["count"].tolist() == [30, 5]
    assert [(total.samples, total.value) for total in totals(profile)] == [(2, 35)]


def test_events_of_one_name_are_told_apart_by_their_units():
    profile = profile_of([Measure("wall", "count"), Measure("wall", "nanoseconds")], [((Frame("f"),), (1, 7))])
    assert to_tables([profile])["samples"]["event"].tolist() == ["wall/count", "wall/nanoseconds"]


def test_a_machine_is_a_visit_and_an_application_a_process():
    origins = (Origin("web", "1", "m1", "p"), Origin("db", "2", "m1", "p"), Origin("web", "3", "m2", "q"))
    samples = tuple(Sample((0,), (5,), at, chain=at != 1) for at in range(3))
    tables = to_tables([ForeignProfile((Measure("cycles"),), (Frame("f"),), samples, origins, name="x/day.pb")])
    assert tables["visits"][["collection", "machine", "platform"]].to_numpy().tolist() == [
        ["day.pb", 0, "p"],
        ["day.pb", 1, "q"],
    ]
    processes = tables["processes"][["visit", "application", "stacks"]].to_numpy().tolist()
    assert processes == [[0, "web", True], [0, "db", False], [1, "web", True]]
    assert tables["rates"][["collection", "platform"]].to_numpy().tolist() == [["day.pb", "p"], ["day.pb", "q"]]


def test_times_count_from_the_midnight_before_the_first_file():
    files = [
        ForeignProfile((Measure("cpu"),), name=name, start_s=start) for name, start in (("b", 90000.5), ("a", 180000.0))
    ]
    tables = to_tables([*files, ForeignProfile((Measure("cpu"),), name="a")])
    assert tables["visits"]["start_s"].tolist() == [3600.5, 93600.0, 0.0]
    assert tables["visits"]["collection"].tolist() == ["b", "a (1)", "a (2)"]


def test_functions_without_symbols_are_marked():
    tables = to_tables([profile_of([Measure("cpu")], [((Frame("", "a", address=5), Frame("f")), (3,))])])
    seen = tables["locations"][["image", "build", "function", "symbolised"]].to_numpy().tolist()
    assert seen == [["a", 0, "[unknown]", False], ["[generated]", -1, "f", True]]


def test_a_sum_beyond_64_bits_is_refused():
    with pytest.raises(FileError, match="cpu: should sum to at most"):
        to_tables([profile_of([Measure("cpu")], [((Frame("f"),), (LARGEST,)), ((Frame("g"),), (1,))])])


def test_samples_are_counted_as_the_file_counts_them(tmp_path):
    """Values of one sample differ, and no period divides them: counts are those of the file, values stay exact."""
    stacks = [((Frame("f"),), (3, 10**17 + 1)), ((Frame("g"), Frame("f")), (2, 7))]
    profile = profile_of([Measure("samples"), Measure("cycles", "events")], stacks)
    assert [(total.event, total.samples, total.value) for total in totals(profile)] == [
        ("samples", 5, 5),
        ("cycles", 5, 10**17 + 8),
    ]
    write_tables(to_tables([profile]), tmp_path)
    with Database([tmp_path]) as database:
        assert database.total(Query("cycles")) == (5, 10**17 + 8)
        found = database.query(Query("cycles", ("function",))).drop(columns="share").to_numpy().tolist()
        assert found == [["f", 3, 10**17 + 1], ["g", 2, 7]]
        assert extract(database, Query("cycles")).total("samples") == 5
        assert database.clustered(Query("cycles", ("function",)), "visit")["samples"].tolist() == [3, 2]


def test_profiles_with_and_without_counts_of_their_own_are_asked_together(tmp_path):
    one = profile_of([Measure("samples"), Measure("cycles", "events")], [((Frame("f"),), (3, 100))])
    other = profile_of([Measure("cycles", "events")], [((Frame("f"),), (50,))])
    for name, profile in (("one", one), ("other", other)):
        (tmp_path / name).mkdir()
        write_tables(to_tables([profile]), tmp_path / name)
    assert "taken" not in pd.read_parquet(tmp_path / "other" / "samples.parquet")
    with Database([tmp_path / "one", tmp_path / "other"]) as database:
        assert database.total(Query("cycles")) == (53, 150)


def test_a_negative_count_of_samples_is_refused(tmp_path):
    tables = to_tables([profile_of([Measure("samples"), Measure("cycles")], [((Frame("f"),), (3, 100))])])
    tables["samples"]["taken"] = -tables["samples"]["taken"]
    write_tables(tables, tmp_path)
    with pytest.raises(ProfileError, match="taken: should be at least 0, got -3"), Database([tmp_path]):
        pass


def test_bytes_are_no_samples(tmp_path):
    """A heap profile says how many bytes, not on how many samples they rest: each record is at least one."""
    measures = [Measure("alloc_objects"), Measure("alloc_space", "bytes"), Measure("inuse_space", "bytes", 524_288)]
    profile = profile_of(measures, [((Frame("f"),), (5, 48_928_729, 0)), ((Frame("g"),), (1, 100, 100))])
    assert [(total.samples, total.value) for total in totals(profile)] == [(2, 6), (2, 48_928_829), (1, 100)]
    assert uncounted(profile) == ["alloc_objects", "alloc_space", "inuse_space"]
    write_tables(to_tables([profile]), tmp_path)
    with Database([tmp_path]) as database:
        assert database.total(Query("alloc_space")) == (2, 48_928_829)
    counted = profile_of([Measure("sample_count"), Measure("alloc_space", "bytes")], [((Frame("f"),), (3, 900))])
    assert [(total.samples, total.value) for total in totals(counted)] == [(3, 3), (3, 900)]
    assert uncounted(counted) == []


def test_call_paths_that_are_forgotten_are_added_up_by_questions(tmp_path, monkeypatch):
    """Of very many files the paths of the earlier ones are no longer known, so that memory is bounded."""
    names = [Frame(name) for name in "abcd"]
    paths = [(*rest, Frame("main")) for rest in itertools.permutations(names, 2)]
    files = [
        profile_of([Measure("samples")], [(path, (at + n,)) for at, path in enumerate([(Frame(f"own_{n}"),), *paths])])
        for n in range(1, 6)
    ]
    answers, rows = [], []
    for most in (1, 10**6):
        monkeypatch.setattr(stores, "MOST_KNOWN", most)
        folder = tmp_path / str(most)
        folder.mkdir()
        tables = to_tables(files)
        write_tables(tables, folder)
        rows.append(len(tables["stacks"]))
        with Database([folder]) as database:
            query = Query("samples")
            answers.append([database.stacks(query), database.inclusive(query), database.edges(query)])
    assert rows == [3 * 3 * len(paths) + 5, 3 * len(paths) + 5]
    for forgotten, known in zip(*answers, strict=True):
        pd.testing.assert_frame_equal(forgotten, known)
    assert len(answers[0][0]) == len(paths) + 5
