"""The values of a dimension are counted as pandas counts them, and each leads back to the page that asked."""

from urllib.parse import parse_qs, urlsplit

import pytest

from scenarios.web.choices import PAGES
from tests.helpers.web_pages import SIDES, ask, expected, harmless


def lists(page):
    """The address of each dimension's list, by its key."""
    links = [link for link in page.all("a", "href") if link.startswith("/values")]
    return {parse_qs(urlsplit(link).query)["key"][0]: link for link in links}


def asked(link):
    return parse_qs(urlsplit(link).query)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_that_restricts_offers_lists_that_lead_back_to_it(pages, path):
    """Dimensions of one value restrict nothing; what the page was asked besides is asked again."""
    sides = SIDES + "&" if "diff" in path else ""
    page = harmless(ask(pages, f"{path}?{sides}where=platform=old&where=collection=fleet&until=3d"))
    offered = lists(page)
    assert {"application", "compiler", "kernel", "machine", "day"} <= set(offered)
    assert "collection" not in offered
    values = harmless(ask(pages, offered["kernel"]))
    (back,) = [link for link in values.all("a", "href") if "where=kernel%3D6.1.90" in link and "&a=kernel" not in link]
    assert urlsplit(back).path == path
    assert asked(back)["where"] == ["platform=old", "collection=fleet", "kernel=6.1.90"]
    assert (asked(back)["until"], asked(back).get("a")) == (["259200"], ["day=0"] if sides else None)
    assert ask(pages, back).status == 200


def test_values_have_the_counts_of_pandas_under_the_other_restrictions(pages, small_profile):
    """A restriction of the dimension itself is left out, so that others can be chosen."""
    url = "/values?key=application&to=/query&event=cycles&where=platform=old&where=application=search"
    answer = ask(pages, url)
    rows = expected(small_profile, "cycles", lambda rows: rows["platform"] == "old")
    counts = rows.groupby("application")["count"].sum()
    shares = rows.groupby("application")["value"].sum() / rows["value"].sum()
    page = harmless(answer)
    for name in counts.index:
        assert {name, f"{counts[name]:,}", f"{shares[name]:.2%}"} <= set(page.said)
    links = page.all("a", "href")
    wheres = [asked(link)["where"] for link in links if link.startswith("/query") and "where" in asked(link)]
    assert ["platform=old", "application=search", "application=[kernel]"] in wheres
    assert ["platform=old", "application=[kernel]"] in wheres
    assert ["platform=old"] in wheres


def test_a_side_of_a_comparison_is_chosen_from_a_list(pages):
    """What the side was restricted to in other dimensions stays."""
    page = harmless(ask(pages, "/values?key=platform&to=/diff&a=day=0&a=platform=new&b=day=1"))
    links = [link for link in page.all("a", "href") if link.startswith("/diff")]
    assert {"a": ["day=0", "platform=old"], "b": ["day=1"]} in [
        {side: asked(link).get(side) for side in "ab"} for link in links
    ]


def test_all_that_is_wrong_is_told(pages):
    answer = ask(pages, "/values?key=nosuch&to=/etc&rows=0&x=1")
    assert answer.status == 400
    for told in ("key: unknown dimension", "to: should be one of /query", "rows: should be", "x: is no parameter"):
        assert told in answer.text.replace("&#34;", '"')
