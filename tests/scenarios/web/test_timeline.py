"""The course of a query over time."""

import re
from dataclasses import replace

import numpy as np
import pytest

from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.intervals import share_intervals
from analysis.profiling.query import Query
from scenarios.profiling.files import import_files
from scenarios.web.application import application
from scenarios.web.parameters import PageQuery
from scenarios.web.site import ProfileSite
from scenarios.web.timeline import timeline
from tests.helpers.foreign_profiles import Frame, Measure, profile_of
from tests.helpers.web_pages import ask, expected, harmless


@pytest.fixture(scope="module")
def site(small_profile):
    site = ProfileSite(small_profile)
    yield site
    site.close()


def test_the_course_has_the_shares_and_intervals_of_each_step(site, small_profile):
    """Four days of 24 visits: steps of six hours with a visit or two; shares are those of pandas."""
    made = timeline(site, PageQuery(Query("cycles", ("application",), (("collection", ("fleet",)),))))
    rows = expected(small_profile, "cycles")
    step = (rows["start_s"] // made.step_s).astype(int)
    whole = rows.groupby(step)["value"].sum()
    assert made.step_s == 21_600.0
    assert sum(len(course.dots) for course in made.courses) == len(made.courses) * len(whole)
    for course in made.courses:
        own = rows[rows["application"] == course.name].groupby(step)["value"].sum().reindex(whole.index, fill_value=0)
        for (_, _, says), share in zip(course.dots, own / whole, strict=True):
            assert f"{course.name} {100 * share:.2f}%" in says
    part = rows[step == 1]
    table = part.assign(name=part["application"], samples=part["count"])[["name", "visit", "samples", "value"]]
    table["value"] = table["value"].astype(float)
    limits = share_intervals(table, cluster="visit").set_index("name")
    if part["visit"].nunique() > 1:
        for course in made.courses:
            low, high = limits.loc[course.name, ["low", "high"]]
            assert f"({100 * low:.2f} to {100 * high:.2f})" in course.dots[1][2]


def test_keys_of_several_dimensions_and_truth_values_have_a_course(site):
    for by in (("application", "platform"), ("symbolised",), ("file", "line")):
        made = timeline(site, PageQuery(Query("cycles", by)))
        assert 1 <= len(made.courses) <= 4
        assert all(np.isfinite(y) for course in made.courses for _, y, _ in course.dots)
    assert timeline(site, PageQuery(Query("cycles", ("day",)))) is None


def test_the_times_that_are_offered_can_be_asked_for(pages):
    page = harmless(ask(pages, "/query?since=1d&until=2d&by=application"))
    links = {link for link in page.all("a", "href") if "since" in link and "by=application&where=collection" in link}
    links = {link for link in links if "where=application" not in link}
    assert {link.partition("?")[0] for link in links} >= {"/query", "/diff"}
    for link in links:
        assert ask(pages, link).status == 200
    chosen = [attributes for tag, attributes in page.tags if tag == "rect" and attributes.get("class") == "range"]
    assert len(chosen) == 1


def test_where_chance_cannot_be_judged_lines_have_no_bands(site, monkeypatch):
    monkeypatch.setattr("scenarios.web.timeline.drawn", lambda *_: False)
    monkeypatch.setattr("scenarios.web.timeline.without", lambda *_: "no intervals: nobody drew them")
    made = timeline(site, PageQuery(Query("cycles", ("application",))))
    assert made.lacking == "no intervals: nobody drew them"
    assert all(course.bands == () for course in made.courses)


def test_no_band_reaches_over_a_step_whose_interval_is_unknown(site):
    """Steps of an hour have a visit or none: one visit alone has no interval, and bands end beside it."""
    query = Query("cycles", ("application",), (("collection", ("fleet",)),), since_s=0.0, until_s=86_400.0)
    made = timeline(site, PageQuery(query))
    alone = 0
    for course in made.courses:
        bands = [[float(point.split(",")[0]) for point in band.split()] for band in course.bands]
        for x, _, says in course.dots:
            within = any(min(band) <= x <= max(band) for band in bands)
            assert within == ("(" in says), says
            alone += not within
    assert alone


def test_the_course_of_an_import_has_points_in_time(site, tmp_path):
    """That of a profile without a calendar counts days, and tells a script no beginning."""
    profile = profile_of([Measure("cpu", "ns", 10)], [((Frame("f"), Frame("main")), (30,))])
    for day in range(5):
        (tmp_path / f"{day}.pb").write_bytes(write_pprof(replace(profile, start_s=(20_000 + day) * 86400.0)))
    import_files(sorted(tmp_path.glob("*.pb")), tmp_path / "made")
    page = ask(application(tmp_path / "made"), "/query").text
    assert ">2024-10-04</text>" in page
    assert "<title>2024-10-05T00:00Z: f 100.00%" in page
    assert f'data-origin="{20_000 * 86400.0}"' in page
    assert not re.search(r"day \d", page)
    made = timeline(site, PageQuery(Query("cycles", ("application",))))
    assert made.x_labels[1][1] == "day 1"
    assert made.origin_s is None
