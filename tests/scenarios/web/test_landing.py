"""The landing page, and the page of what changed."""

from dataclasses import replace

import pytest

from analysis.profiling.database import Database
from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.pprof_writing import write_pprof
from models.randomness import stream
from scenarios.profiling.files import import_files
from scenarios.web.application import application
from tests.helpers import drawn_profiles
from tests.helpers.foreign_profiles import profile_of
from tests.helpers.small_profile import EVENTS
from tests.helpers.web_pages import ask, expected, harmless


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    return application(drawn_profiles.write(tmp_path_factory.mktemp("grown"), stream(1, "grown"), 2.5))


def words(page):
    return " ".join("".join(page.said).split())


def test_the_fleet_is_told_in_a_line_and_every_event_in_a_row(pages, small_profile):
    """Samples and the share without symbols are those of pandas."""
    page = harmless(ask(pages, "/"))
    assert "7 machines of 2 platforms in 2 data centres, profiled from day 0 to day 3 by 24 visits" in words(page)
    for event, _ in EVENTS:
        rows = expected(small_profile, event)
        hidden = rows[~rows["symbolised"]]["value"].sum() / rows["value"].sum()
        assert f"{rows['count'].sum():,}" in page.said
        assert f"{hidden:.2%}" in page.said
        assert f"/query?event={event}" in " ".join(page.all("a", "href"))


def test_shares_of_the_first_page_have_the_intervals_of_their_query(pages):
    home = harmless(ask(pages, "/"))
    rows = ask(pages, "/query.csv?by=application").text.splitlines()
    assert rows[0].endswith("share,low,high")
    for row in rows[1:]:
        low, high = row.split(",")[-2:]
        assert f"{float(low):.2%}" in home.said
        assert f"{float(high):.2%}" in home.said


def test_what_changed_is_what_changed_beyond_chance(grown):
    page = harmless(ask(grown, "/changes"))
    assert "1 of 40 functions changed its share of the" in words(page)
    assert "f12" in page.said


def test_an_import_has_a_landing_page(tmp_path):
    """Two files of one day without a compiler: the page of changes says that there is nothing to compare."""
    for day in (0, 1):
        stacks = [((Frame("f", "a"), Frame("main", "a")), (7 + day,)), ((Frame("main", "a"),), (3,))]
        (tmp_path / f"{day}.pb.gz").write_bytes(write_pprof(profile_of([Measure("samples")], stacks)))
    import_files([tmp_path / "0.pb.gz", tmp_path / "1.pb.gz"], tmp_path / "made")
    pages = application(tmp_path / "made")
    text = words(harmless(ask(pages, "/")))
    assert "samples of 1 event." in text
    assert "platform in" not in text
    assert "not known" in text
    assert ask(pages, "/query").status == 200
    assert "one day alone" in words(harmless(ask(pages, "/changes")))


def test_one_application_alone_is_no_course(tmp_path):
    """The first page drew its share, 100% at any time; what parts the profile is its functions and their images."""
    for number, counts in enumerate(((7, 3), (5, 5), (2, 8))):
        stacks = [((Frame(name, image),), (count,)) for name, image, count in zip("fg", "ab", counts, strict=True)]
        profile = replace(profile_of([Measure("samples")], stacks), start_s=3600.0 * (1 + number))
        (tmp_path / f"{number}.pb.gz").write_bytes(write_pprof(profile))
    import_files(sorted(tmp_path.glob("*.gz")), tmp_path / "made")
    page = harmless(ask(application(tmp_path / "made"), "/"))
    assert "samples by application" not in page.said
    assert "samples by function" in page.said
    assert "samples by image" in page.said
    assert all(f"{name} {share}" in words(page) for name, share in (("f", "70.00%"), ("f", "20.00%"), ("g", "80.00%")))


def test_a_profile_of_one_day_says_so(pages, monkeypatch):
    monkeypatch.setattr("scenarios.web.landing.first_and_last_day", lambda *_: {"a": [], "b": []})
    answer = ask(pages, "/changes")
    assert answer.status == 400
    assert "one day alone" in words(harmless(answer))
    assert "The profile has one day alone" in words(harmless(ask(pages, "/")))


def test_times_chosen_on_the_first_page_lead_to_whole_tables_and_no_question_is_asked_twice(small_profile, monkeypatch):
    asked, summed = [], Database._sums
    monkeypatch.setattr(Database, "_sums", lambda self, *asking: asked.append(asking[1]) or summed(self, *asking))
    page = harmless(ask(application(small_profile), "/"))
    chosen = [address for address in page.all("a", "href") if "since=" in address or "since%3D" in address]
    assert chosen
    assert not [address for address in chosen if "top=8" in address]
    whole = [query for query in asked if query.by in {("application",), ("function",)}]
    assert len(whole) == len(set(whole)) == 2
