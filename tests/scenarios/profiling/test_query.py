import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling import database as database_module
from analysis.profiling import parted_differences as parted_module
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.intervals import share_intervals
from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import ProfileError
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.profiling import intervals as interval_module
from scenarios.profiling.query import QueryOptions, diff, query
from scenarios.views.terminal import dumps, show
from tests.helpers.profile_tables import long_form, random_tables, write_folder
from tests.helpers.small_profile import write


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = random_tables(0, rows=4000, visits=60, processes=200)
    tables["visits"]["machine"] = np.arange(60) % 17
    return tables, write_folder(tmp_path_factory.mktemp("profile"), tables)


def shown(answer):
    text = io.StringIO()
    show(answer.section(), Console(file=text, width=160, highlight=False))
    return text.getvalue()


def test_a_query_says_totals_over_everything_before_the_cut(profile):
    tables, folder = profile
    rows = long_form(tables).query("event == 'cycles' and collection == 'fleet'")
    payload = json.loads(dumps(query([folder], QueryOptions(by="function,job", top=2)).payload()))
    assert (payload["event"], payload["unit"], payload["by"]) == ("cycles", "events", ["function", "application"])
    assert payload["total"] == {"samples": rows["count"].sum(), "value": rows["value"].sum()}
    assert len(payload["rows"]) == 2
    for row in payload["rows"]:
        own = rows[(rows["function"] == row["function"]) & (rows["application"] == row["application"])]
        assert (row["samples"], row["value"]) == (own["count"].sum(), own["value"].sum())
        assert row["share"] == row["value"] / payload["total"]["value"]
        assert 0.0 <= row["low"] <= row["share"] <= row["high"] <= 1.0
    unknown = rows.loc[~rows["symbolised"], "value"].sum() / rows["value"].sum()
    assert payload["unsymbolised_share"] == pytest.approx(unknown, rel=1e-12)
    assert payload["visits"] == rows["visit"].nunique()


def test_restrictions_and_times_are_taken(profile):
    tables, folder = profile
    rows = long_form(tables).query("event == 'instructions' and application == 'search' and collection == 'watch'")
    rows = rows[(rows["start_s"] >= 86400) & (rows["start_s"] < 2.5 * 86400)]
    asked = QueryOptions(
        where=("job=search", "collection=watch"), event="instructions", since_s=86400.0, until_s=216000.0, top=None
    )
    payload = query([folder], asked).payload()
    assert payload["total"]["value"] == rows["value"].sum()
    assert payload["where"][0] == {"dimension": "application", "values": ["search"]}
    assert query([folder], QueryOptions(since_s=0.0)).total == query([folder], QueryOptions()).total


def test_clusters_among_the_dimensions_get_no_intervals(profile):
    payload = query([profile[1]], QueryOptions(by="visit")).payload()
    assert payload["confidence"] is None
    assert "low" not in payload["rows"][0]


def test_a_difference_of_one_profile_under_two_restrictions(profile):
    _, folder = profile
    answer = diff([folder], [folder], QueryOptions(top=3), ["platform=haswell"], ["platform=rome"])
    payload = answer.payload()
    changes = [abs(row["change"]) for row in payload["rows"]]
    assert changes == sorted(changes, reverse=True)
    assert payload["changed_rows"] >= len(payload["rows"])
    assert payload["b"]["where"][0] == {"dimension": "platform", "values": ["rome"]}
    text = shown(answer)
    assert "change" in text
    assert "pp" in text


def test_what_is_shown_holds_every_row_and_its_interval(profile):
    answer = query([profile[1]], QueryOptions(by="function,job", top=4))
    payload = answer.payload()
    text = shown(answer)
    for row in payload["rows"]:
        assert f"{row['share']:.2%}" in text
        assert f"{row['low']:.2%} to {row['high']:.2%}" in text


def test_names_are_shown_as_names(tmp_path):
    tables = random_tables(0)
    tables["locations"]["function"] = "[red]\x1b[2Jx\ny"
    text = shown(query([write_folder(tmp_path, tables)], QueryOptions()))
    assert "[red]�[2Jx�y" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (QueryOptions(by="functoin"), "did you mean function"),
        (QueryOptions(by=" ,"), "--by: should name a dimension"),
        (QueryOptions(where=("job",)), "dimension=value"),
        (QueryOptions(where=("job=serch",)), "did you mean search"),
        (QueryOptions(event="cycels"), "did you mean cycles"),
        (QueryOptions(since_s=172800.0, until_s=86400.0), "until should be after since, 2d, got 1d"),
        (QueryOptions(top=0), "top should be from 1"),
        (QueryOptions(top=9_999_999), "top should be from 1 to 2,000,000, got 9,999,999"),
    ],
)
def test_what_cannot_be_answered_is_said_plainly(profile, asked, said):
    with pytest.raises((FaultsError, QueryError)) as caught:
        query([profile[1]], asked)
    assert said in str(caught.value)


def test_paths_that_are_not_there_are_all_named(tmp_path):
    with pytest.raises(FaultsError) as caught:
        query([tmp_path / "a", tmp_path / "b"], QueryOptions())
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(ProfileError, match="is no profile"):
        query([tmp_path], QueryOptions())


def test_a_file_that_is_no_profile_is_left_out_of_a_folder_of_files_and_said(tmp_path):
    (tmp_path / "README.md").write_text("Profiles of May.\n")
    (tmp_path / "a.folded").write_text("main;read 3\n")
    (tmp_path / "b.folded").write_text("main;read 2\nx\ny\n")
    answer = query([tmp_path], QueryOptions())
    assert answer.total.samples == 3
    assert answer.notes[0].startswith(f"left out: {tmp_path}/README.md: file: should be a profile")
    assert answer.notes[1].startswith(f"left out: {tmp_path}/b.folded:2: count: ")
    (tmp_path / "a.folded").unlink()
    with pytest.raises(ValueError, match="should be a profile") as caught:
        query([tmp_path], QueryOptions())
    assert len(str(caught.value).splitlines()) == 3


def test_a_folder_without_tables_is_refused_with_what_makes_one(tmp_path):
    with pytest.raises(ProfileError, match="there are none; of files of other tools wsc profile import FILE"):
        query([tmp_path], QueryOptions())


def test_files_and_folders_are_asked_together(profile, tmp_path):
    _, folder = profile
    file = tmp_path / "app.folded"
    file.write_text("main;work 30\nmain 10\n")
    alone = query([file], QueryOptions(top=None)).payload()
    assert alone["total"] == {"samples": 40, "value": 40}
    together = query([folder, file], QueryOptions(event=alone["event"], top=None)).payload()
    with_event = alone["event"] in {"cycles", "instructions", "cpu_time"}
    before = query([folder], QueryOptions(event=alone["event"])).payload()["total"]["value"] if with_event else 0
    assert together["total"]["value"] == 40 + before


def test_asked_takes_the_first_event_where_there_are_no_cycles():
    assert QueryOptions().query(["alloc", "inuse"]) == Query("alloc")
    assert QueryOptions().query(["alloc", "cycles"]) == Query("cycles")


def test_collections_that_look_again_are_not_added_to_the_fleet(profile):
    tables, folder = profile
    rows = long_form(tables).query("event == 'cycles'")
    payload = query([folder], QueryOptions()).payload()
    assert payload["total"]["samples"] == rows.query("collection == 'fleet'")["count"].sum()
    assert "without watch" in payload["notes"][0]
    asked = query([folder], QueryOptions(by="collection")).payload()
    assert asked["total"]["samples"] == rows["count"].sum()
    assert asked["notes"] == ["no intervals: samples of several collections (fleet, watch) do not add up to one"]


@pytest.mark.parametrize("most", [0, 1_000_000])
def test_intervals_are_those_of_visits(profile, monkeypatch, most):
    """Of few samples by a table of all visits, of many part by part."""
    monkeypatch.setattr(interval_module, "_MOST_CELLS", most)
    _, folder = profile
    payload = query([folder], QueryOptions(by="job", top=None)).payload()
    with Database([folder]) as database:
        clustered = database.clustered(of_fleet(database, "cycles", ("application",)), "visit")
    expected = share_intervals(clustered, cluster="visit").set_index("application")
    for row in payload["rows"]:
        assert row["low"] == pytest.approx(expected.loc[row["application"], "low"])
        assert row["high"] == pytest.approx(expected.loc[row["application"], "high"])


@pytest.mark.parametrize("by", ["symbolised,line", "job,function,day", "file,machine"])
def test_intervals_of_the_rows_that_are_told_are_those_that_they_have_among_all(profile, by):
    told, whole = (query([profile[1]], QueryOptions(by=by, top=top)) for top in (3, None))
    assert told.all_rows == len(whole.table) > 3
    assert not told.table[["low", "high"]].isna().any(axis=None)
    pd.testing.assert_frame_equal(told.table, whole.table.head(3), rtol=1e-9)


def test_rows_have_intervals_where_all_would_be_too_many(profile, monkeypatch):
    asked = QueryOptions(by="job,function,line,machine", top=3)
    expected = query([profile[1]], asked)
    assert expected.all_rows > 100
    monkeypatch.setattr(database_module, "MOST_ROWS", 100)
    monkeypatch.setattr(interval_module, "_FEW", 0)
    pd.testing.assert_frame_equal(query([profile[1]], asked).table, expected.table)


@pytest.mark.parametrize("most_cells", [0, 10**9])
@pytest.mark.parametrize("by", [("line", "application"), ("line", "machine")], ids=",".join)
def test_the_changes_that_are_told_of_very_many_are_the_greatest_and_the_greatest_beyond_chance(
    profile, monkeypatch, most_cells, by
):
    monkeypatch.setattr(interval_module, "_MOST_CELLS", most_cells)
    monkeypatch.setattr(parted_module, "_PER_PART", 500)
    _, folder = profile
    with Database([folder]) as database:
        a, b = (of_fleet(database, "cycles", by, (("day", (day,)),)) for day in "03")
        monkeypatch.setattr(interval_module, "FALSE_CHANGES", 5.0)
        whole, same = (interval_module.difference(database, a, database, other) for other in (b, a))
        monkeypatch.setattr(interval_module, "_AT_ONCE", 3)
        monkeypatch.setattr(interval_module, "_FEW_CHANGES", 2)
        some = interval_module.difference(database, a, database, b, 3)
    beyond = whole.table["significant"]
    assert whole.rows == some.rows == len(whole.table) > 6
    assert same.rows == len(same.table) > 6
    assert same.without
    assert whole.significant == some.significant == beyond.sum()
    expected = whole.table[(np.arange(len(beyond)) < 3) | (beyond & (beyond.cumsum() <= 3))]
    pd.testing.assert_frame_equal(some.table, expected.reset_index(drop=True))


def all_changes(pair):
    """Return all changes with their variances and degrees of freedom, in order of their names."""
    changes = interval_module._changes(*pair)
    parts = [
        rows.table(np.arange(len(rows))).assign(variance=variance, degrees=degrees)
        for rows, variance, degrees in changes.parts
    ]
    return pd.concat(parts).sort_values(list(changes.every.by), ignore_index=True)


@pytest.mark.parametrize(
    "by", [("machine",), ("function", "machine"), ("machine", "day", "line"), ("visit", "application")]
)
def test_changes_by_machine_are_the_same_in_parts_and_at_once(profile, tmp_path, monkeypatch, by):
    """Beside another day of the same profile, beside one with other machines and places, and beside itself."""
    monkeypatch.setattr(interval_module, "FALSE_CHANGES", 50.0)
    tables = random_tables(5, rows=3000, visits=50, processes=150)
    tables["visits"]["machine"] = np.arange(50) % 11 + 9
    later = write_folder(tmp_path, tables)
    with Database([profile[1]]) as database, Database([later]) as other:
        a, b = (of_fleet(database, "cycles", by, (("day", (day,)),)) for day in "03")
        c = of_fleet(other, "cycles", by)
        pairs = (database, a, database, b), (database, a, other, c), (other, c, database, b), (other, c, other, c)
        whole = [(interval_module.difference(*pair, None), all_changes(pair)) for pair in pairs]
        monkeypatch.setattr(interval_module, "_MOST_CELLS", 0)
        monkeypatch.setattr(parted_module, "_PER_PART", 700)
        for pair, (expected, errors) in zip(pairs, whole, strict=True):
            changes, parts = interval_module.difference(*pair, None), all_changes(pair)
            assert (changes.rows, changes.without) == (expected.rows, expected.without)
            assert changes.significant == expected.significant
            pd.testing.assert_frame_equal(changes.table, expected.table, rtol=1e-9, check_dtype=False)
            columns = [*by, "value_a", "value_b"] if expected.without else list(errors)
            pd.testing.assert_frame_equal(parts[columns], errors[columns], rtol=1e-9, check_dtype=False)
    whole = [expected for expected, _ in whole]
    assert whole[-1].without
    if "visit" not in by:
        assert whole[0].significant > 0
        assert not whole[0].without


def test_changes_by_machine_may_be_more_than_rows_of_an_answer_unless_all_are_wanted(profile, monkeypatch):
    with Database([profile[1]]) as database:
        by = ("function", "line", "machine", "application", "build")
        a, b = (of_fleet(database, "cycles", by, (("day", tuple(days)),)) for days in ("01", "23"))
        expected = interval_module.difference(database, a, database, b)
        monkeypatch.setattr(database_module, "MOST_ROWS", 70)
        assert min(database.row_count(a), database.row_count(b)) > 70
        with pytest.raises(QueryError, match="more than 70"):
            interval_module.difference(database, replace(a, since_s=0.0), database, b)
        monkeypatch.setattr(interval_module, "_MOST_CELLS", 0)
        told = interval_module.difference(database, a, database, b)
        pd.testing.assert_frame_equal(told.table, expected.table, rtol=1e-9, check_dtype=False)
        with pytest.raises(QueryError, match="more than 70"):
            interval_module.difference(database, a, database, b, None)


def test_changes_by_machine_that_64_bits_do_not_hold_are_told_at_once(tmp_path, monkeypatch):
    tables = random_tables(0)
    tables["samples"]["count"] = 2**40
    tables["rates"]["period"] = 2**20
    folder = write_folder(tmp_path, tables)
    with Database([folder]) as database:
        asked = of_fleet(database, "cycles", ("function", "machine"))
        monkeypatch.setattr(interval_module, "_MOST_CELLS", 0)
        assert parted_module.PartedDifference.of(((database, asked), (database, asked))) is None
        table = interval_module.difference(database, asked, database, asked).table
        assert sum(map(int, table["value_a"])) == database.total(asked)[1] > 2**63


def test_a_change_has_an_interval_only_if_no_visit_is_on_both_sides(profile):
    _, folder = profile
    parted = diff([folder], [folder], QueryOptions(by="job"), ["day=0"], ["day=1"]).payload()
    with Database([folder]) as database:
        errors = []
        for day in ("0", "1"):
            asked = of_fleet(database, "cycles", ("application",), (("day", (day,)),))
            found = share_intervals(database.clustered(asked, "visit"), cluster="visit")
            errors.append(found.set_index("application")["standard_error"])
    for row in parted["rows"]:
        error = float(np.hypot(*(side.get(row["application"], 0.0) for side in errors)))
        assert row["high"] - row["low"] == pytest.approx(2 * 1.959963985 * error)
        assert row["low"] <= row["change"] <= row["high"]
    shared = diff([folder], [folder], QueryOptions(by="function"), ["job=search"], ["job=mail"]).payload()
    assert shared["confidence"] is None
    assert "both sides" in shared["notes"][-1]


def test_visits_of_one_machine_have_no_interval(tmp_path):
    folder = write(tmp_path / "profile")
    asked = QueryOptions(where=("machine=1",))
    payload = query([folder], asked).payload()
    assert payload["visits"] == 4
    assert payload["confidence"] is None
    assert payload["notes"] == ["no intervals: all samples come from one machine"]


def test_files_of_other_tools_have_no_interval(tmp_path):
    files = [tmp_path / f"{i}.folded" for i in range(3)]
    for i, file in enumerate(files):
        file.write_text(f"main;work {30 + i}\nmain 10\n")
    answer = query(files, QueryOptions())
    payload = answer.payload()
    assert payload["visits"] == 3
    assert payload["confidence"] is None
    assert "samples of samples" not in shown(answer)
    assert "note: no intervals: samples of several collections" in shown(answer)
    assert "note: no intervals: no collector drew these machines at random" in shown(query(files[:1], QueryOptions()))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (QueryOptions(since_s=900 * 86400.0), "--since: leaves no samples of cycles: visits are from"),
        (QueryOptions(where=("job=search", "job=mail")), "--where: leaves no samples"),
    ],
)
def test_an_empty_selection_is_said(profile, asked, said):
    with pytest.raises(FaultsError) as caught:
        query([profile[1]], asked)
    assert str(caught.value).startswith(said)


def test_faults_of_several_options_are_said_at_once(profile):
    with pytest.raises(FaultsError) as caught:
        query([profile[1]], QueryOptions(by="functoin", where=("job",), event="cycels", top=0))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == ["--by", "--event", "--top", "--where"]
    assert "datacentre" in lines[0]


def test_how_a_file_was_understood_is_said_with_the_answer(tmp_path):
    file = tmp_path / "two.folded"
    file.write_text("main;read 12 274\nmain; 4 31\n")
    two = f"{file}: two counts a line, as of difffolded.pl: read as the events before and after; if the first of them"
    two += ' is the end of a name, put such names in quotes, as main;"req 200" 10'
    nameless = f"{file}: 1 line has a function without a name, which is read as [unknown]"
    answer = query([file], QueryOptions(event="before")).payload()
    assert answer["events"] == ["after", "before"]
    assert [(row["function"], row["value"]) for row in answer["rows"]] == [("read", 12), ("[unknown]", 4)]
    assert answer["notes"][:2] == [two, nameless]
    assert diff([file], [file], QueryOptions(), (), ()).payload()["notes"][:2] == [two, nameless]


def test_call_paths_are_asked_for_all_that_functions_call_and_for_callers(tmp_path):
    """Sums by hand; `b` is once on each of two paths, though it calls itself."""
    file, out = tmp_path / "s.folded", tmp_path / "rows.csv"
    file.write_text("main;a;b 12\nmain;b;b 4\nmain 3\n")
    answer = CliRunner().invoke(app, ["profile", "query", str(file), "--cumulative", "--csv", str(out), "--json"])
    rows = json.loads(answer.stdout)["rows"]
    assert [(row["function"], row["value"], row["own"]) for row in rows] == [
        ("main", 19, 3),
        ("b", 16, 16),
        ("a", 12, 0),
    ]
    assert pd.read_csv(out)[["function", "value"]].to_numpy().tolist() == [["main", 19], ["b", 16], ["a", 12]]
    answer = CliRunner().invoke(app, ["profile", "query", str(file), "--callers", "b", "--json"])
    assert {row["caller"]: row["value"] for row in json.loads(answer.stdout)["rows"]} == {"a": 12, "main": 4, "b": 4}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--cumulative", "--by", "line"], "--by: call paths are of functions"),
        (["--cumulative", "--callers", "f"], "--callers: is another question than --cumulative"),
        (["--callers", "g"], 'unknown function "g"'),
        (["--csv", "nowhere/rows.csv"], "--csv: no folder nowhere"),
        (["--csv", "s.folded"], "--csv: should end in .parquet or .csv"),
        (["--csv", "s.csv"], "--csv: is there and holds no former table of the kind (function"),
    ],
)
def test_faulty_questions_to_call_paths_are_refused(tmp_path, monkeypatch, words, problem):
    file = tmp_path / "s.folded"
    file.write_text("main;f 12\n")
    (tmp_path / "s.csv").write_text("main;f 12\n")
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["profile", "query", str(file), *words])
    assert (answer.exit_code, problem in answer.stderr) == (2, True)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"main;f 12\n"}


@pytest.mark.parametrize("variance", [0.0, 1e-17])
def test_a_variance_that_is_rounding_is_none(variance):
    """A whole profile of one platform beside one of another: in parts or at once, the verdict was not the same."""
    change, variances, degrees = np.array([1.0, -1.0]), [np.full(2, variance)] * 2, [np.full(2, 9.0)] * 2
    assert not interval_module.significant(change, variances, degrees).any()
