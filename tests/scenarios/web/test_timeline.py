"""The course of a query over time."""

import numpy as np
import pytest

from analysis.profiling.intervals import share_intervals
from analysis.profiling.query import Query
from scenarios.web.parameters import PageQuery
from scenarios.web.site import ProfileSite
from scenarios.web.timeline import timeline
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
