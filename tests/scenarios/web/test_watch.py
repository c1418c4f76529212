"""The page of changes over time says what `wsc profile watch` does; it is worked out once and kept with the profile."""

import os
import re
import shutil
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes.detection import HiddenGrowth, WatchCriteria
from analysis.profiling.changes.reading import WatchSpan
from analysis.profiling.query import QueryError
from models.randomness import stream
from scenarios.profiling.watch import NamedCause, watch
from scenarios.web import site
from scenarios.web.application import application
from tests.helpers import drawn_profiles
from tests.helpers.drawn_profiles import GROWN
from tests.helpers.web_pages import ask, harmless

NAME = f"f{GROWN}"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return drawn_profiles.write(tmp_path_factory.mktemp("grown"), stream(1, "watched profile"), 9.0)


@pytest.fixture(scope="module")
def concluded(grown):
    return watch([grown])


@pytest.fixture
def asked(concluded, monkeypatch):
    """Questions that are worked out, each answered with what is concluded of the profile that grew."""
    questions = []

    def watched(_, *question):
        questions.append(question)
        return concluded

    monkeypatch.setattr(site, "watch_database", watched)
    return questions


def settled(pages, url):
    """The page once it is no longer being worked out; the first answer says that it is."""
    answer = ask(pages, url)
    while "data-pending" in answer.text:
        time.sleep(0.02)
        answer = ask(pages, url)
    assert answer.status == 200, answer.text
    return harmless(answer)


def words(page):
    return " ".join("".join(page.said).split())


def test_the_page_says_what_the_command_says_and_the_landing_page_the_same(grown, concluded, monkeypatch):
    pages = application(grown)
    first = ask(pages, "/")
    assert "data-pending" in first.text
    assert first.text.count("/watch") >= 2
    assert "data-pending" in ask(pages, "/watch").text
    page = settled(pages, "/watch")
    (change,) = concluded.changes
    for text in (concluded.verdict(), concluded.could_find(), concluded.hides(), *concluded.notes):
        assert text[1:] in words(page)
    for text in (
        NAME,
        "2024-10-05T00:00Z",
        f"{change.factor:.4g}",
        f"{change.low:.3g} to {change.high:.3g}",
        f"{change.cost:.2%}",
    ):
        assert text in page.said
    assert "From 2024-10-05T00:00Z: " in words(page)
    assert not re.search(r"day \d", words(page))
    assert f"its callers {change.callers[0]} changed with it" in words(page)
    home = harmless(ask(pages, "/"))
    assert concluded.verdict()[1:] in words(home)
    links = [link for link in home.all("a", "href") if (NAME in link and "callgraph" not in link) or "/watch#" in link]
    assert {link.partition("?")[0] for link in links} == {"/query", "/flamediff", "/watch#change-1"}
    assert "change-1" in page.all("section", "id")
    for link in links:
        assert ask(pages, link.partition("#")[0]).status == 200
    monkeypatch.setattr(site, "watch_database", None)
    again = ask(application(grown), "/watch")
    assert "data-pending" not in again.text
    assert words(harmless(again)) == words(page)


@pytest.mark.parametrize("drifts", [True, False])
def test_beside_what_drift_hides_alone_a_known_time_is_said_to_show_more(
    grown, concluded, monkeypatch, tmp_path, drifts
):
    folder = shutil.copytree(grown, tmp_path / "drifting", ignore=shutil.ignore_patterns("concluded"))
    hidden = HiddenGrowth(0.013, 0.048, 1.087, 1.38) if drifts else None
    monkeypatch.setattr(site, "watch_database", lambda *_: replace(concluded, hidden=hidden))
    page = words(settled(application(folder), "/watch"))
    assert ("unctions drift: a day differs from the days before by about 1.3% to 4.8%" in page) == drifts
    assert ("comparing two times may find smaller changes" in page) == drifts
    assert "finds smaller changes" not in page


def test_a_change_of_one_platform_says_so_in_its_row_and_above_its_course(grown, concluded, monkeypatch, tmp_path):
    folder = shutil.copytree(grown, tmp_path / "of a platform", ignore=shutil.ignore_patterns("concluded"))
    (change,) = concluded.changes
    within = replace(change, within={"platform": "skylake"}, causes=(NamedCause("platform", "skylake", "", 90.0),))
    monkeypatch.setattr(site, "watch_database", lambda *_: replace(concluded, changes=(within, change)))
    page = settled(application(folder), "/watch")
    assert {"where", "on skylake", "everywhere"} <= set(page.said)
    assert f"{within.between()}) on skylake; it costs" in words(page)
    assert "where" not in settled(application(grown), "/watch").said


def test_the_course_is_that_of_the_files(grown, concluded):
    """By pandas: samples of the function over what its share of the first day makes one expect of the second's."""
    rows = pd.read_parquet(grown / "samples.parquet").merge(pd.read_parquet(grown / "locations.parquet"), on="location")
    rows = rows.merge(pd.read_parquet(grown / "processes.parquet")[["process", "visit"]], on="process")
    rows = rows.merge(pd.read_parquet(grown / "visits.parquet")[["visit", "start_s"]], on="visit")
    rows = rows[rows["event"] == "cpu"]
    day = np.floor(rows["start_s"] / 86400.0)
    total, own = (part["taken"].groupby(day).sum() for part in (rows, rows[rows["function"] == NAME]))
    expected = own / total * total.shift(-1)
    ratio = (own.iloc[1] + 0.5) / (expected.iloc[0] + 0.5)
    (change,) = concluded.changes
    steps = [step for step in change.course if step.ratio is not None]
    assert [step.start_s for step in steps] == [0.0, 86400.0]
    assert [step.ratio for step in steps] == pytest.approx([1.0, ratio], rel=1e-12)
    assert all(step.low < step.ratio < step.high for step in steps)


def test_criteria_are_taken_as_the_command_takes_them_and_all_faults_are_told_at_once(grown, asked):
    pages = application(grown)
    settled(pages, "/watch?event=samples&min_factor=15&false_alarms=5%25&since=1h")
    assert asked == [("samples", WatchCriteria(0.05, 15.0), WatchSpan(3600.0))]
    answer = ask(pages, "/watch?event=x&min_factor=0&min_cost=-1&false_alarms=2&since=9d&until=x&top=3")
    assert answer.status == 400
    for name in ("event", "min_factor", "min_cost", "false_alarms", "since", "until", "top"):
        assert f"{name}: " in answer.text
    late = ask(pages, "/watch?since=1d&until=12h")
    assert (late.status, "until: should be after since, 2024-10-05T00:00Z, got" in late.text) == (400, True)
    assert len(asked) == 1


def test_why_there_is_no_answer_is_told(grown, monkeypatch):
    def refused(*_):
        raise QueryError("there are no visits in this time")

    monkeypatch.setattr(site, "watch_database", refused)
    pages = application(grown)
    url = "/watch?event=samples&since=2h"
    while "data-pending" in (answer := ask(pages, url)).text:
        time.sleep(0.02)
    assert (answer.status, "there are no visits in this time" in answer.text) == (400, True)


def test_a_folder_that_cannot_be_written_to_is_answered_all_the_same(small_profile, tmp_path, asked):
    """Where the conclusion would lie there is a file."""
    for file in small_profile.glob("*.parquet"):
        (tmp_path / file.name).hardlink_to(file)
    (tmp_path / "concluded").write_text("")
    for number in (1, 2):
        assert NAME in settled(application(tmp_path), "/watch").said
        assert len(asked) == number


def test_changed_files_are_watched_anew_and_few_conclusions_are_kept(small_profile, tmp_path, asked):
    """A kept conclusion is of files as they were: another time of change, and it is worked out again."""
    for file in small_profile.glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for number in (1, 1, 2):
        if number == 2:
            os.utime(tmp_path / "samples.parquet", (1, 1))
        pages = application(tmp_path)
        settled(pages, "/watch")
        assert len(asked) == number
    for factor in range(2, 9):
        settled(pages, f"/watch?min_factor={factor}")
    assert len(list((tmp_path / "concluded").glob("watch-*.json"))) == 8
