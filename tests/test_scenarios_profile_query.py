import io
import json

import numpy as np
import pytest
from rich.console import Console

from analysis.profiling.query import Query, QueryError
from analysis.profiling.storage import ProfileError
from scenarios.faults import FaultsError
from scenarios.output import dumps
from scenarios.profile_query import Asked, diff, query, show
from tests.profile_tables import long_form, random_tables, write_folder


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    tables = random_tables(0, rows=4000, visits=60, processes=200)
    tables["visits"]["machine"] = np.arange(60) % 17
    return tables, write_folder(tmp_path_factory.mktemp("profile"), tables)


def shown(payload):
    text = io.StringIO()
    show(payload, Console(file=text, width=160, highlight=False))
    return text.getvalue()


def test_a_query_says_totals_over_everything_before_the_cut(profile):
    tables, folder = profile
    rows = long_form(tables).query("event == 'cycles'")
    payload = json.loads(dumps(query([folder], Asked(by="function,job", top=2))))
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
    rows = long_form(tables).query("event == 'instructions' and application == 'search'")
    rows = rows[(rows["start_s"] >= 86400) & (rows["start_s"] < 2.5 * 86400)]
    asked = Asked(where=("job=search",), event="instructions", since="1d", until="60h", top=None)
    payload = query([folder], asked)
    assert payload["total"]["value"] == rows["value"].sum()
    assert payload["where"] == [{"dimension": "application", "values": ["search"]}]
    assert query([folder], Asked(since="0"))["total"] == query([folder], Asked())["total"]


def test_clusters_among_the_dimensions_get_no_intervals(profile):
    payload = query([profile[1]], Asked(by="machine"))
    assert payload["confidence"] is None
    assert "low" not in payload["rows"][0]


def test_a_difference_of_one_profile_under_two_restrictions(profile):
    _, folder = profile
    payload = diff([folder], [folder], Asked(top=3), ["platform=haswell"], ["platform=rome"])
    changes = [abs(row["change"]) for row in payload["rows"]]
    assert changes == sorted(changes, reverse=True)
    assert payload["changed_rows"] >= len(payload["rows"])
    assert payload["b"]["where"] == [{"dimension": "platform", "values": ["rome"]}]
    text = shown(payload)
    assert "change" in text
    assert "pp" in text


def test_what_is_shown_holds_every_row_and_its_interval(profile):
    payload = query([profile[1]], Asked(by="function,job", top=4))
    text = shown(payload)
    for row in payload["rows"]:
        assert f"{row['share']:.2%}" in text
        assert f"{row['low']:.2%} to {row['high']:.2%}" in text


def test_names_are_shown_as_names(tmp_path):
    tables = random_tables(0)
    tables["locations"]["function"] = "[red]\x1b[2Jx\ny"
    text = shown(query([write_folder(tmp_path, tables)], Asked()))
    assert "[red]�[2Jx�y" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(by="functoin"), "did you mean function"),
        (Asked(by=" ,"), "--by: should name a dimension"),
        (Asked(where=("job",)), "dimension=value"),
        (Asked(where=("job=serch",)), "did you mean search"),
        (Asked(event="cycels"), "did you mean cycles"),
        (Asked(since="soon"), "should be a time above 0"),
        (Asked(since="2d", until="1d"), "until should be after since"),
        (Asked(top=0), "top should be from 1"),
    ],
)
def test_what_cannot_be_answered_is_said_plainly(profile, asked, said):
    with pytest.raises((FaultsError, QueryError)) as caught:
        query([profile[1]], asked)
    assert said in str(caught.value)


def test_paths_that_are_not_there_are_all_named(tmp_path):
    with pytest.raises(FaultsError) as caught:
        query([tmp_path / "a", tmp_path / "b"], Asked())
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(ProfileError, match="is no profile"):
        query([tmp_path], Asked())


def test_files_and_folders_are_asked_together(profile, tmp_path):
    _, folder = profile
    file = tmp_path / "app.folded"
    file.write_text("main;work 30\nmain 10\n")
    alone = query([file], Asked(top=None))
    assert alone["total"] == {"samples": 40, "value": 40}
    together = query([folder, file], Asked(event=alone["event"], top=None))
    with_event = alone["event"] in {"cycles", "instructions", "cpu_time"}
    before = query([folder], Asked(event=alone["event"]))["total"]["value"] if with_event else 0
    assert together["total"]["value"] == 40 + before


def test_asked_takes_the_first_event_where_there_are_no_cycles():
    assert Asked().query(["alloc", "inuse"]) == Query("alloc")
    assert Asked().query(["alloc", "cycles"]) == Query("cycles")
